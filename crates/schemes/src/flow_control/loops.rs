//! The common report of all schemes that find deadlocks.

use xoff_kernel::time::Time;
use xoff_net::human;

/// The mean of `times`; `None` of none.
pub(super) fn mean(times: &[Time]) -> Option<Time> {
    times.iter().sum::<Time>().checked_div(times.len() as Time)
}

/// The row in the totals of the results: deadlocks found, time and place of the first one, and how long the
/// others took to be `over`.
pub(super) fn row(
    found: u64,
    first: Option<&(Time, String)>,
    times: &[Time],
    over: &str,
    after: &str,
) -> String {
    let Some((at, port)) = first else { return "no deadlock found".into() };
    let mut text = format!(
        "{} found, the first at {} by {port}; {} {over}",
        human::counted(found, "deadlock"),
        human::time(*at),
        human::count(times.len() as u64)
    );
    if let (Some(mean), Some(longest)) = (mean(times), times.iter().max()) {
        text += &format!("{after} {} on average, {} at most", human::time(mean), human::time(*longest));
    }
    text
}
