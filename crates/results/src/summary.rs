//! The summary of a run: the content of `summary.json` and of the table.
//!
//! Names instead of indices, no wall time, every list in the order of the plan
//! or of time: the same run gives the same bytes.

use serde::{Serialize, Serializer};

use crate::blocking::{self, BlockingSummary};
use crate::breaking::{self, Step};
use crate::drops::{self, DropSummary};
use crate::jobs::{self, JobSummary};
use crate::livelock::{self, LivelockSummary};
use crate::pauses::{self, PauseSummary};
use crate::statistics::{self, Group};
use crate::verdicts::{self, Verdict};
use crate::{names, notes, sections};
use xoff_kernel::time::Time;
use xoff_net::topology::PortId;
use xoff_outcome::report::{Note, Section};
use xoff_outcome::{Counters, Held, Outcome, Pause, Stop, Wait};
use xoff_plan::plan::{Account, Plan};

/// A run in short. Protocols have their scenario names, priorities are those of 802.1p.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub scenario: String,
    pub network: String,
    pub flow_control: String,
    pub transport: String,
    pub congestion_control: String,
    pub seed: u64,
    pub simulated_ps: Time,
    /// Why it ended: a name of [`stop_name`].
    pub stop: &'static str,
    /// Whether it ran to its end (`false` after Ctrl-C, or where the memory budget was used up).
    pub complete: bool,
    /// Flow-size buckets, then all flows.
    pub sizes: Vec<Group>,
    pub classes: Vec<Group>,
    /// Classes of traffic whose flows are collective operations.
    pub jobs: Vec<JobSummary>,
    pub drops: DropSummary,
    pub pauses: PauseSummary,
    /// Head-of-line blocking, if it was measured.
    pub blocking: Option<BlockingSummary>,
    /// The sections of mechanisms, each in an object with its name; null where it did not run.
    #[serde(flatten, serialize_with = "by_name")]
    pub sections: Vec<Section>,
    pub deadlock: Option<DeadlockSummary>,
    /// Flows that made no progress while packets moved.
    pub livelock: Option<LivelockSummary>,
    pub waiting: Vec<WaitSummary>,
    pub peaks: Peaks,
    pub counters: Counters,
    pub verdicts: Vec<Verdict>,
    /// The run's explanation of itself.
    pub notes: Vec<Note>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeadlockSummary {
    /// When the pause that closed the cycle was decided.
    pub closed_ps: Time,
    /// When the last pause of the cycle took effect; null where parts of a priority are paused.
    pub standing_ps: Option<Time>,
    /// From then until a switch found it; null if none did, and where none looks for deadlocks.
    pub found_after_ps: Option<Time>,
    /// When the oracle saw it.
    pub seen_ps: Time,
    /// When the first of its queues continued nevertheless, because a scheme dissolved it or a link failed;
    /// null if they were paused at the end.
    pub ended_ps: Option<Time>,
    /// The cycle: each egress waits for the next one, the last for the first.
    pub cycle: Vec<HeldSummary>,
    /// The step of the cycle that the fewest flows cross: without them it cannot form. Null where a host passes pauses
    /// on, where a pause stops another unit than a priority, and where routes change.
    pub weakest: Option<Step>,
    /// Every ingress that could never drain by itself: the cycle and the queues that it blocked.
    pub stuck: Vec<QueueName>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueName {
    pub port: String,
    pub priority: u8,
}

/// An egress queue of a deadlock's cycle.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldSummary {
    pub port: String,
    pub priority: u8,
    pub bytes: u64,
    /// Flows that hold the cycle there: `flow 17: H3 -> H9 (websearch)`.
    pub flows: Vec<String>,
}

/// A queue that had bytes to send at the end and might not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitSummary {
    pub port: String,
    pub priority: u8,
    pub bytes: u64,
    pub since_ps: Time,
    /// The ingress that it waits for.
    pub waits_for: String,
    /// The host at the end of the chain that does not consume, if it has an end.
    pub root: Option<String>,
}

/// A high-water mark and the room that there was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Peak {
    /// The node or port (with priority where there are several).
    pub place: String,
    pub bytes: u64,
    /// Bytes that it could hold, where there is a bound.
    pub of: Option<u64>,
}

/// High-water marks: of each kind the fullest in proportion to its room.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Peaks {
    pub buffer: Option<Peak>,
    /// The memory of a host that relays.
    pub relay: Option<Peak>,
    pub headroom: Option<Peak>,
    /// A port's egress queues (the longest; no bound).
    pub queue: Option<Peak>,
}

impl Summary {
    /// Adds notes from elsewhere (the scenario's warnings), the gravest first as before.
    pub fn add_notes(&mut self, notes: impl IntoIterator<Item = Note>) {
        self.notes.extend(notes);
        self.notes.sort_by_key(|n| n.level);
    }

    /// Packets were lost in a lossless priority: the run is in error.
    pub fn lost_lossless(&self) -> bool {
        self.drops.lossless_packets > 0
    }
}

/// A stop reason as files spell it.
pub fn stop_name(stop: Stop) -> &'static str {
    match stop {
        Stop::AllDone => "all-done",
        Stop::EndTime => "end-time",
        Stop::Interrupted => "interrupted",
        Stop::Starved => "starved",
        Stop::Livelock => "livelock",
        Stop::Memory => "memory",
    }
}

/// A stop reason in words, by its name in files.
pub fn stop_words(stop: &str) -> &'static str {
    match stop {
        "all-done" => "every flow finished",
        "end-time" => "end time reached",
        "interrupted" => "INTERRUPTED",
        "livelock" => "LIVELOCK",
        "memory" => "MEMORY BUDGET EXHAUSTED",
        _ => "no event left, flows unfinished",
    }
}

fn by_name<S: Serializer>(sections: &[Section], to: S) -> Result<S::Ok, S::Error> {
    let known = xoff_schemes::facts();
    let of = |name: &str| sections.iter().find(|section| section.facts.section == name);
    let others = sections.iter().filter(|section| !known.contains(&section.facts));
    let all = known.iter().map(|facts| (facts.section, of(facts.section)));
    to.collect_map(all.chain(others.map(|section| (section.facts.section, Some(section)))))
}

/// Summarises the run of `plan`, made from the scenario called `scenario`.
pub fn summarise(scenario: &str, plan: &Plan, outcome: &Outcome) -> Summary {
    let drops = drops::summarise(plan, outcome);
    let pauses = pauses::summarise(outcome);
    let blocking = blocking::summarise(plan, outcome);
    let sections = sections::sections(plan, outcome);
    Summary {
        scenario: scenario.into(),
        network: names::network(plan),
        flow_control: names::flow_control(plan).into(),
        transport: names::transport(plan).into(),
        congestion_control: plan.congestion_control.name().into(),
        seed: plan.seed,
        simulated_ps: outcome.end,
        stop: stop_name(outcome.stop),
        complete: !outcome.stop.cut_short(),
        sizes: statistics::by_size(plan, outcome),
        classes: statistics::by_class(plan, outcome),
        jobs: jobs::summarise(plan, outcome),
        verdicts: verdicts::verdicts(plan, outcome, &drops, &pauses, blocking.as_ref(), &sections),
        drops,
        pauses,
        blocking,
        deadlock: deadlock(plan, outcome),
        livelock: livelock::summarise(plan, outcome),
        waiting: waiting(plan, outcome),
        peaks: peaks(plan, outcome),
        counters: outcome.counters,
        notes: notes::notes(plan, outcome, &sections),
        sections,
    }
}

fn deadlock(plan: &Plan, outcome: &Outcome) -> Option<DeadlockSummary> {
    let d = outcome.deadlock.as_ref()?;
    let began = |h: &Held| {
        let of_all = |p: &&Pause| (p.port, p.lane, p.queue) == (h.port, h.lane, None) && p.from <= d.seen;
        outcome.pauses.iter().rev().find(of_all).map(|p| p.from)
    };
    let standing = d.cycle.iter().map(began).max().flatten();
    let mut found = outcome.records.deadlocks_found();
    let held = |h: &Held| HeldSummary {
        port: names::port(plan, h.port),
        priority: names::priority(plan, h.lane),
        bytes: h.bytes,
        flows: h.flows.iter().map(|&f| names::flow(plan, f)).collect(),
    };
    let queue = |&(port, lane): &(PortId, u8)| QueueName {
        port: names::port(plan, port),
        priority: names::priority(plan, lane),
    };
    Some(DeadlockSummary {
        closed_ps: d.closed,
        standing_ps: standing,
        found_after_ps: standing.and_then(|from| found.find_map(|at| at.checked_sub(from))),
        seen_ps: d.seen,
        ended_ps: d.ended,
        cycle: d.cycle.iter().map(held).collect(),
        weakest: breaking::step(plan, d),
        stuck: d.stuck.iter().map(queue).collect(),
    })
}

fn waiting(plan: &Plan, outcome: &Outcome) -> Vec<WaitSummary> {
    let wait = |w: &Wait| WaitSummary {
        port: names::port(plan, w.port),
        priority: names::priority(plan, w.lane),
        bytes: w.bytes,
        since_ps: w.since,
        waits_for: names::port(plan, w.waits_for),
        root: w.root.map(|n| names::node(plan, n).to_string()),
    };
    outcome.waiting.iter().map(wait).collect()
}

/// The first index whose share `bytes / room` is the largest, if any has bytes.
fn fullest(shares: impl Iterator<Item = (u64, u64)>) -> Option<(usize, u64, u64)> {
    let mut best: Option<(usize, u64, u64)> = None;
    for (index, (bytes, room)) in shares.enumerate() {
        let fuller =
            best.is_none_or(|(_, b, r)| u128::from(bytes) * u128::from(r) > u128::from(b) * u128::from(room));
        if bytes > 0 && fuller {
            best = Some((index, bytes, room));
        }
    }
    best
}

fn peaks(plan: &Plan, outcome: &Outcome) -> Peaks {
    let lanes = plan.lanes.len();
    let buffers = outcome.buffer_peaks.iter().zip(&plan.buffers).map(|(&peak, b)| (peak, b.total));
    // Of relays and queues the one with most bytes, as if all were equally large.
    let is_relay = |node: usize| !plan.topology.relay_ports(node as u32).is_empty();
    let relays =
        (0..).zip(&outcome.buffer_peaks).map(|(node, &peak)| (if is_relay(node) { peak } else { 0 }, 1));
    let headroom = |account: &Account| account.headroom.as_ref().map_or(0, |h| h.total);
    let headrooms =
        outcome.accounts.iter().zip(&plan.accounts).map(|(peak, account)| (peak.headroom, headroom(account)));
    let queues = outcome.ports.iter().map(|p| (p.queue_peak, 1));
    let node = |(node, bytes, _): (usize, u64, u64)| Peak {
        place: names::node(plan, node as u32).into(),
        bytes,
        of: Some(plan.buffers[node].total),
    };
    let account = |(account, bytes, room): (usize, u64, u64)| Peak {
        place: names::queue(plan, (account / lanes) as PortId, (account % lanes) as u8),
        bytes,
        of: Some(room),
    };
    let port = |(port, bytes, _)| Peak { place: names::port(plan, port as PortId), bytes, of: None };
    Peaks {
        buffer: fullest(buffers).map(node),
        relay: fullest(relays).map(node),
        headroom: fullest(headrooms).filter(|_| plan.flow_control.has_thresholds()).map(account),
        queue: fullest(queues).map(port),
    }
}
