//! ITSY in numbers and words: the deadlocks that triggers found, and what became of them.

use crate::human;
use crate::names;
use crate::note::{Level, Note};
use serde::Serialize;
use xoff_kernel::time::Time;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::FlowControlParams;
use xoff_schemes::flow_control::itsy::{ItsyParams, Resolution};
use xoff_sim::outcome::{DropReason, Outcome};

/// What ITSY did in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ItsySummary {
    /// What is done about a deadlock: `lossy` or `lossless`.
    pub resolution: &'static str,
    /// Times for which ingress queues were initial triggers.
    pub triggers: u64,
    /// Checks that triggers dropped because they were another's.
    pub discarded: u64,
    /// Deadlocks found: checks that came back to the trigger that had sent them.
    pub found: u64,
    /// How often packets of one were dropped, or its queue got room.
    pub attempts: u64,
    /// Deadlocks found whose queue went on later.
    pub dissolved: u64,
    /// How often the shared pool had too little room to give.
    pub given_up: u64,
    /// When the first one was found, in picoseconds; null if there was none.
    pub first_ps: Option<Time>,
    /// The port whose ingress queue found it.
    pub first_port: Option<String>,
    /// From finding one until its queue went on, in picoseconds: the mean; null if none did.
    pub mean_ps: Option<Time>,
    /// The longest.
    pub longest_ps: Option<Time>,
    /// Packets dropped for it.
    pub dropped_packets: u64,
    /// Their bytes.
    pub dropped_bytes: u64,
    /// Bytes that it took from shared pools.
    pub room_bytes: u64,
}

fn params(plan: &Plan) -> Option<&ItsyParams> {
    match &plan.flow_control {
        FlowControlParams::Itsy(params) => Some(params),
        _ => None,
    }
}

/// Sums up, where ITSY ran.
pub fn summarise(plan: &Plan, outcome: &Outcome) -> Option<ItsySummary> {
    let (params, itsy) = (params(plan)?, outcome.itsy.as_ref()?);
    let found = &itsy.detections;
    let times: Vec<Time> = found.iter().filter_map(|d| Some(d.ended? - d.at)).collect();
    let drops = || outcome.drops.iter().filter(|d| d.reason == DropReason::Itsy);
    Some(ItsySummary {
        resolution: match params.resolution {
            Resolution::Lossy => "lossy",
            Resolution::Lossless { .. } => "lossless",
        },
        triggers: itsy.triggers.len() as u64,
        discarded: itsy.discarded,
        found: found.len() as u64,
        attempts: found.iter().map(|d| d.acted).sum(),
        dissolved: times.len() as u64,
        given_up: found.iter().map(|d| d.refused).sum(),
        first_ps: found.first().map(|d| d.at),
        first_port: found.first().map(|d| names::port(plan, d.port)),
        mean_ps: times.iter().sum::<Time>().checked_div(times.len() as Time),
        longest_ps: times.iter().copied().max(),
        dropped_packets: drops().map(|d| d.packets).sum(),
        dropped_bytes: drops().map(|d| d.bytes).sum(),
        room_bytes: found.iter().map(|d| d.room).sum(),
    })
}

/// The row of the answer's totals.
pub fn row(s: &ItsySummary) -> String {
    let triggers = human::counted(s.triggers, "trigger");
    let (Some(first), Some(port)) = (s.first_ps, &s.first_port) else {
        return format!("no deadlock found; {triggers}");
    };
    let mut text = format!(
        "{} found, the first at {} by {port}; {} went on",
        human::counted(s.found, "deadlock"),
        human::time(first),
        human::count(s.dissolved)
    );
    if let (Some(mean), Some(longest)) = (s.mean_ps, s.longest_ps) {
        text += &format!(" after {} on average, {} at most", human::time(mean), human::time(longest));
    }
    format!("{text}; {triggers}")
}

/// What it did, or what it missed.
pub(crate) fn notes(plan: &Plan, outcome: &Outcome, notes: &mut Vec<Note>) {
    let Some(s) = summarise(plan, outcome) else { return };
    let missed = outcome.deadlock.as_ref().is_some_and(|d| d.ended.is_none());
    if missed && s.found == 0 {
        let text = format!(
            "ITSY missed the deadlock: of {} no check came back ({} dropped by other triggers).",
            human::counted(s.triggers, "trigger"),
            human::count(s.discarded)
        );
        let help = "It finds deadlocks with one trigger, in the loop itself: compare with roundabout.";
        notes.push(Note::new(Level::Finding, text).help(help));
    }
    if s.found == 0 {
        return;
    }
    let done = match s.resolution {
        "lossy" => format!(
            "{} ({}) dropped",
            human::counted(s.dropped_packets, "packet"),
            human::bytes(s.dropped_bytes)
        ),
        _ => format!("{} of room given", human::bytes(s.room_bytes)),
    };
    let text = format!(
        "ITSY found {}, and acted {}: {done}.",
        human::counted(s.found, "deadlock"),
        human::counted(s.attempts, "time")
    );
    notes.push(Note::new(Level::Finding, text));
    if s.given_up > 0 {
        let text = format!(
            "ITSY had no room to give {}: the shared pool had too little.",
            human::counted(s.given_up, "time")
        );
        let help = "To see it succeed: a larger switch.buffer, or less flow_control.room.";
        notes.push(Note::new(Level::Finding, text).help(help));
    }
}
