//! The PFC watchdog in numbers and words: the storms that it found, and what it cost.

use serde::Serialize;

use crate::human;
use crate::names;
use crate::note::{Level, Note};
use crate::pauses::pause_length;
use xoff_kernel::time::Time;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::FlowControlParams;
use xoff_schemes::flow_control::watchdog::{Action, WatchdogParams};
use xoff_sim::outcome::{DropReason, Outcome};

/// What the watchdog did in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WatchdogSummary {
    /// What is done about a storm: `drop`, `forward` or `alert`.
    pub action: &'static str,
    /// Storms found.
    pub storms: u64,
    /// Those that it held to be over, or whose link failed.
    pub restored: u64,
    /// When it found the first one, in picoseconds; null if there was none.
    pub first_ps: Option<Time>,
    /// Packets dropped in queues that were in a storm, or on their way there.
    pub dropped_packets: u64,
    /// Their bytes.
    pub dropped_bytes: u64,
    /// Packets that left a queue in a storm although it was paused, and that the peer then
    /// had no room for.
    pub overrun_packets: u64,
    /// Their bytes.
    pub overrun_bytes: u64,
    /// Each storm, in the order of their beginning.
    pub queues: Vec<StormSummary>,
}

/// A storm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StormSummary {
    /// The egress port.
    pub port: String,
    /// 802.1p priority.
    pub priority: u8,
    /// When it was found, in picoseconds.
    pub from_ps: Time,
    /// When it was over; null if it stood at the end.
    pub until_ps: Option<Time>,
}

fn params(plan: &Plan) -> Option<&WatchdogParams> {
    match &plan.flow_control {
        FlowControlParams::Watchdog(params) => Some(params),
        _ => None,
    }
}

/// Packets and bytes lost for a reason.
fn lost(outcome: &Outcome, reason: DropReason) -> (u64, u64) {
    let drops = outcome.drops.iter().filter(|d| d.reason == reason);
    drops.fold((0, 0), |(packets, bytes), d| (packets + d.packets, bytes + d.bytes))
}

/// Sums up, if there was a watchdog.
pub fn summarise(plan: &Plan, outcome: &Outcome) -> Option<WatchdogSummary> {
    let action = match params(plan)?.action {
        Action::Drop => "drop",
        Action::Forward => "forward",
        Action::Alert => "alert",
    };
    let (dropped_packets, dropped_bytes) = lost(outcome, DropReason::Watchdog);
    let (overrun_packets, overrun_bytes) = lost(outcome, DropReason::Overrun);
    Some(WatchdogSummary {
        action,
        storms: outcome.storms.len() as u64,
        restored: outcome.storms.iter().filter(|s| s.until.is_some()).count() as u64,
        first_ps: outcome.storms.first().map(|s| s.from),
        dropped_packets,
        dropped_bytes,
        overrun_packets,
        overrun_bytes,
        queues: outcome
            .storms
            .iter()
            .map(|s| StormSummary {
                port: names::port(plan, s.port),
                priority: names::priority(plan, s.lane),
                from_ps: s.from,
                until_ps: s.until,
            })
            .collect(),
    })
}

/// The row of the answer's totals.
pub fn row(s: &WatchdogSummary) -> String {
    let Some(first) = s.first_ps else { return "no storm".into() };
    let lost = |packets: u64, bytes: u64, what: &str| match packets {
        0 => String::new(),
        n => format!(", {} ({}) {what}", human::counted(n, "packet"), human::bytes(bytes)),
    };
    format!(
        "{} from {} on, {} over; {}{}{}",
        human::counted(s.storms, "storm"),
        human::time(first),
        human::count(s.restored),
        s.action,
        lost(s.dropped_packets, s.dropped_bytes, "dropped"),
        lost(s.overrun_packets, s.overrun_bytes, "that the peer had no room for"),
    )
}

/// What it did, or how far it was from doing anything.
pub(crate) fn notes(plan: &Plan, outcome: &Outcome, notes: &mut Vec<Note>) {
    let (Some(params), Some(s)) = (params(plan), summarise(plan, outcome)) else { return };
    let Some(first) = s.queues.first() else {
        let watched = outcome.pauses.iter().filter(|p| params.first[p.port as usize].is_some());
        if let Some(longest) = watched.map(|p| pause_length(p, outcome)).max() {
            let text = format!(
                "The watchdog never acted: of the queues that it watches none was paused for longer than {}, and \
                 a storm takes {} and two polls, which are {} apart.",
                human::time(longest),
                human::time(params.detection),
                human::time(params.poll),
            );
            let help = "To see it act: a shorter flow_control.detection_time, or a longer run.duration.";
            notes.push(Note::new(Level::Note, text).help(help));
        }
        return;
    };
    let what = match params.action {
        Action::Drop => format!(
            "dropped what waited there and came for them: {} ({})",
            human::counted(s.dropped_packets, "packet"),
            human::bytes(s.dropped_bytes)
        ),
        Action::Forward => format!(
            "let them send, of which {} ({}) found no room",
            human::counted(s.overrun_packets, "packet"),
            human::bytes(s.overrun_bytes)
        ),
        Action::Alert => "only told of them".into(),
    };
    notes.push(Note::new(
        Level::Finding,
        format!(
            "The watchdog found {}, the first at {} ({}), of which {} over at the end, and {what}.",
            human::counted(s.storms, "storm"),
            human::time(first.from_ps),
            first.port,
            match s.restored {
                1 => "1 was".into(),
                n => format!("{} were", human::count(n)),
            },
        ),
    ));
}
