//! Congestion-root flow control in numbers: roots, trees, isolation queues.

use serde::Serialize;

use crate::human;
use crate::names;
use xoff_net::topology::PortId;
use xoff_plan::plan::Plan;
use xoff_sim::outcome::Outcome;

/// What Pyrrha did in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PyrrhaSummary {
    /// How often ports claimed to be a root.
    pub claims: u64,
    /// How often ports abdicated for a root further down.
    pub abdications: u64,
    /// Frames that merge a tree into another.
    pub merges: u64,
    /// Frames that give an isolation queue back.
    pub releases: u64,
    /// Those that hosts have sent.
    pub host_releases: u64,
    /// Frames ignored because they name the port that received them.
    pub own_roots: u64,
    /// How often a root had to share an isolation queue with another one.
    pub shared: u64,
    /// Packets that went on from one isolation queue to another.
    pub moves: u64,
    /// Most isolation queues that a port had in use at a time.
    pub most_queues: u64,
    /// The first port that had so many; null if none had any.
    pub most_queues_port: Option<String>,
    /// Ports that are roots at the end, in order; each once, whatever its priorities.
    pub standing_roots: Vec<String>,
}

/// Sums up, if the run was under Pyrrha.
pub fn summarise(plan: &Plan, outcome: &Outcome) -> Option<PyrrhaSummary> {
    let tally = outcome.pyrrha.as_ref()?;
    let most = tally.peak_queues.iter().copied().max().unwrap_or(0);
    let port = tally.peak_queues.iter().position(|&q| q == most && q > 0);
    let mut standing: Vec<PortId> = outcome.roots.iter().filter(|r| r.is_root).map(|r| r.port).collect();
    standing.dedup();
    Some(PyrrhaSummary {
        claims: tally.claims,
        abdications: tally.abdications,
        merges: tally.merges,
        releases: tally.releases,
        host_releases: tally.host_releases,
        own_roots: tally.own_roots,
        shared: tally.shared,
        moves: tally.moves,
        most_queues: most.into(),
        most_queues_port: port.map(|p| names::port(plan, p as PortId)),
        standing_roots: standing.into_iter().map(|p| names::port(plan, p)).collect(),
    })
}

/// Most isolation queues that `port` had in use at a time, if the run was under Pyrrha.
pub fn queues(outcome: &Outcome, port: usize) -> Option<u64> {
    let tally = outcome.pyrrha.as_ref()?;
    Some(tally.peak_queues.get(port).copied().unwrap_or(0).into())
}

/// The row of the answer's totals.
pub fn row(s: &PyrrhaSummary) -> String {
    let Some(port) = &s.most_queues_port else {
        return format!("{}, no isolation queue in use", human::counted(s.claims, "claim"));
    };
    let shared = match s.shared {
        0 => String::new(),
        n => format!(", {} times one for several roots", human::count(n)),
    };
    format!(
        "{}, {} abdicated, {}, {}; at most {} in use ({port}){shared}",
        human::counted(s.claims, "claim"),
        human::count(s.abdications),
        human::counted(s.merges, "merge"),
        human::counted(s.releases, "release"),
        human::counted(s.most_queues, "isolation queue"),
    )
}
