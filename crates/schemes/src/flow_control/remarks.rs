//! Remarks on runs that several schemes make.

use xoff_net::human;
use xoff_net::topology::PortId;
use xoff_outcome::FlowOutcome;
use xoff_outcome::report::{Level, Note, Ran};

/// Queues were paused at the end, and flows were unfinished; `why` this may be permanent.
pub fn paused_permanently(ran: &Ran<'_>, why: &str) -> Option<Note> {
    let standing = ran.outcome.pauses.iter().filter(|p| p.until.is_none()).count() as u64;
    let unfinished = ran.outcome.flows.iter().any(FlowOutcome::is_unfinished);
    let text = format!("{} may be paused permanently: {why}.", human::counted(standing, "queue"));
    let help = "A longer run does not help flows that wait in these queues.";
    (standing > 0 && unfinished).then(|| Note::new(Level::Warning, text).help(help))
}

/// The scheme called `name` paused nothing; the longest queues that it `watches`, and `then` more.
pub fn never_paused(
    ran: &Ran<'_>,
    name: &str,
    watches: impl Fn(PortId) -> bool,
    then: &str,
    help: &str,
) -> Option<Note> {
    let (flows, ports) = (&ran.outcome.flows, &ran.outcome.ports);
    if flows.is_empty() || ports.iter().any(|p| p.pause_frames > 0) {
        return None;
    }
    let mut text = format!("{name} sent no pause");
    let watched = (0..).zip(ports).filter(|&(port, _)| watches(port)).collect::<Vec<_>>();
    if let Some(&(port, p)) = watched.iter().rev().max_by_key(|(_, p)| p.queue_peak) {
        let (port, reached) = (ran.port(port), human::bytes(p.queue_peak));
        text += &format!(": the queues of {port} were the longest, {reached} together");
    }
    Some(Note::new(Level::Note, format!("{text}{then}.")).help(help))
}

/// No queue waited for credit; the fullest of the buffers, of which `buffer` returns the bytes by port.
pub fn never_short_of_credit(ran: &Ran<'_>, buffer: impl Fn(usize) -> Option<u64>) -> Option<Note> {
    if ran.outcome.flows.is_empty() || !ran.outcome.pauses.is_empty() {
        return None;
    }
    let (accounts, lanes) = (&ran.outcome.accounts, ran.priorities.len());
    let peaks = accounts.iter().enumerate().map(|(at, peak)| (peak.main + peak.headroom, at)).rev();
    let fullest = peaks.max().filter(|&(peak, _)| peak > 0);
    let text = match fullest.and_then(|(peak, at)| Some((peak, at, buffer(at / lanes)?))) {
        None => "Credit never ran out: no packet waited in a buffer.".to_string(),
        Some((peak, at, buffer)) => format!(
            "Credit never ran out: the fullest buffer, {}, held {} of {}.",
            ran.queue((at / lanes) as u32, (at % lanes) as u8),
            human::bytes(peak),
            human::bytes(buffer),
        ),
    };
    let help = "To make credit run out, raise the load or the fan-in, or lower flow_control.buffer.";
    Some(Note::new(Level::Note, text).help(help))
}
