//! Loop Breaker and Deadlock Breaker in numbers and words: the deadlocks that control planes
//! found, and what became of them.

use crate::human;
use crate::names;
use crate::note::{Level, Note};
use serde::Serialize;
use xoff_kernel::time::Time;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::FlowControlParams;
use xoff_schemes::flow_control::breakers::{BreakerParams, Cure};
use xoff_sim::outcome::Outcome;

/// What the control planes did in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BreakerSummary {
    /// Deadlocks found: queues that a probe of theirs (or one that lists them) came back to,
    /// each once for every pause of it.
    pub found: u64,
    /// Probes that came back.
    pub attempts: u64,
    /// Deadlocks found whose queue went on later.
    pub dissolved: u64,
    /// What devices tried and achieved nothing by: no packet had another way, or the shared pool
    /// had no room.
    pub given_up: u64,
    /// When the first one was found, in picoseconds; null if there was none.
    pub first_ps: Option<Time>,
    /// The egress port that found it.
    pub first_port: Option<String>,
    /// From finding one until its queue went on, in picoseconds: the mean; null if none did.
    pub mean_ps: Option<Time>,
    /// The longest.
    pub longest_ps: Option<Time>,
    /// Frames between control planes.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that got another way.
    pub rerouted: u64,
    /// Packets that waited in such a queue and have no other way, or found it paused.
    pub stayed: u64,
    /// Ingress queues that got more room.
    pub enlarged: u64,
    /// Bytes of shared pools that this took.
    pub enlarged_bytes: u64,
}

fn params(plan: &Plan) -> Option<&BreakerParams> {
    match &plan.flow_control {
        FlowControlParams::Breaker(params) => Some(params),
        _ => None,
    }
}

/// Sums up, if one of the schemes ran.
pub fn summarise(plan: &Plan, outcome: &Outcome) -> Option<BreakerSummary> {
    params(plan)?;
    let tally = outcome.breakers.unwrap_or_default();
    let times: Vec<Time> = outcome.found.iter().filter_map(|f| Some(f.until? - f.at)).collect();
    let first = outcome.found.first();
    Some(BreakerSummary {
        found: outcome.found.len() as u64,
        attempts: outcome.found.iter().map(|f| f.attempts).sum(),
        dissolved: times.len() as u64,
        given_up: tally.failed,
        first_ps: first.map(|f| f.at),
        first_port: first.map(|f| names::port(plan, f.port)),
        mean_ps: (times.iter().sum::<Time>()).checked_div(times.len() as Time),
        longest_ps: times.iter().copied().max(),
        frames: tally.frames,
        bytes: tally.bytes,
        rerouted: tally.rerouted,
        stayed: tally.stayed,
        enlarged: tally.enlarged,
        enlarged_bytes: tally.enlarged_bytes,
    })
}

/// The row of the answer's totals.
pub fn row(s: &BreakerSummary) -> String {
    let messages = format!("{} between control planes", human::bytes(s.bytes));
    let (Some(first), Some(port)) = (s.first_ps, &s.first_port) else {
        return format!("no deadlock found; {messages}");
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
    format!("{text}; {messages}")
}

/// What it did, or how far it was from doing anything.
pub(crate) fn notes(plan: &Plan, outcome: &Outcome, notes: &mut Vec<Note>) {
    let (Some(params), Some(s)) = (params(plan), summarise(plan, outcome)) else { return };
    if s.found == 0 {
        return;
    }
    let done = match params.cure {
        Cure::Reroute => format!(
            "{} got another way, and {} stayed, for want of one that was not paused",
            human::counted(s.rerouted, "packet"),
            human::count(s.stayed)
        ),
        Cure::Room(_) => format!(
            "{} more room, {} in all",
            match s.enlarged {
                1 => "1 ingress queue got".into(),
                n => format!("{} ingress queues got", human::count(n)),
            },
            human::bytes(s.enlarged_bytes)
        ),
    };
    let text = format!(
        "Control planes found {} with {}: {done}.",
        human::counted(s.found, "deadlock"),
        human::counted(s.attempts, "probe")
    );
    notes.push(Note::new(Level::Finding, text));
    if s.given_up == 0 {
        return;
    }
    let (text, help) = match params.cure {
        Cure::Reroute => (
            format!("{} at rerouting moved no packet.", human::counted(s.given_up, "attempt")),
            "Nothing else ends such a deadlock here: a network with more ways, or another scheme.",
        ),
        Cure::Room(_) => (
            format!(
                "{} at making room failed: the shared pool had too little.",
                human::counted(s.given_up, "attempt")
            ),
            "To see it succeed: a larger switch.buffer, or less flow_control.room.",
        ),
    };
    notes.push(Note::new(Level::Finding, text).help(help));
}
