//! The results of the head-of-line blocking oracle, in names and in words.
//!
//! Nothing here exists for a run that did not measure it: no zero replaces a missing measurement.

use serde::Serialize;

use crate::human;
use crate::names;
use xoff_kernel::time::Time;
use xoff_net::topology::PortId;
use xoff_outcome::{Blame, Blocking, FlowBlame, Outcome, Place};
use xoff_plan::plan::Plan;

/// Most victims and roots that the summary names.
pub const LISTED: usize = 10;

/// How long packets and queue pairs waited in paused queues: sums over them, in
/// picoseconds, at most 2^63 - 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Waits {
    /// Packets, for a congested port on the rest of their path.
    pub own_ps: Time,
    /// Packets, for a congested port that they never meet.
    pub victim_ps: Time,
    /// Queue pairs in their NICs, for a congested port on their path.
    pub source_own_ps: Time,
    /// Queue pairs in their NICs, for a congested port off their path.
    pub source_victim_ps: Time,
    /// As `victim_ps`, but by the port that the pause's frame named, where it named one.
    pub named_victim_ps: Time,
    /// The same of queue pairs.
    pub source_named_victim_ps: Time,
}

/// Head-of-line blocking in short.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlockingSummary {
    /// Pauses that have a root.
    pub pauses: u64,
    /// Congested ports that pauses were traced to.
    pub congested_ports: u64,
    /// Queues' ports that were paused for one of them.
    pub paused_ports: u64,
    /// Most links between a congested port and a queue that was paused for it; 1
    /// where only its own neighbours were. 0 without pauses.
    pub most_links: u32,
    /// Waits of packets and queue pairs in queues whose pause named a port; 0 where
    /// pauses name none.
    pub named_waits: u64,
    /// Those of them for a port that was not on their path.
    pub named_victims: u64,
    /// Pauses that ended because the root that they named has yielded to another one.
    pub merged_pauses: u64,
    /// Waits of packets and queue pairs that did not cross the other port, from the time when the false root
    /// received the MERGE.
    pub merged_victim_ps: u64,
    /// Longest time from then until such a pause ended.
    pub merged_longest_ps: u64,
    #[serde(flatten)]
    pub waits: Waits,
    /// By traffic class, in the order of the plan.
    pub classes: Vec<ClassWaits>,
    /// The flows that waited longest as victims, the worst first; at most [`LISTED`].
    pub victims: Vec<Victim>,
    /// The congested ports that victims waited longest for, the worst first; at
    /// most [`LISTED`].
    pub roots: Vec<Root>,
}

/// The waits of the flows of a traffic class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassWaits {
    pub name: String,
    /// Flows of it that waited as victims, in packets or at their sources.
    pub victim_flows: u64,
    #[serde(flatten)]
    pub waits: Waits,
}

/// The waits of a flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Victim {
    /// The flow: `flow 17: H3 -> H9 (websearch)`.
    pub flow: String,
    #[serde(flatten)]
    pub waits: Waits,
}

/// The waits of other packets for a congested port.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Root {
    pub port: String,
    /// Pauses that were traced to it.
    pub pauses: u64,
    #[serde(flatten)]
    pub waits: Waits,
}

impl Waits {
    fn add(&mut self, other: &Waits) {
        let sum = |a: Time, b: Time| a.saturating_add(b).min(MOST);
        self.own_ps = sum(self.own_ps, other.own_ps);
        self.victim_ps = sum(self.victim_ps, other.victim_ps);
        self.source_own_ps = sum(self.source_own_ps, other.source_own_ps);
        self.source_victim_ps = sum(self.source_victim_ps, other.source_victim_ps);
        self.named_victim_ps = sum(self.named_victim_ps, other.named_victim_ps);
        self.source_named_victim_ps = sum(self.source_named_victim_ps, other.source_named_victim_ps);
    }

    /// Victim waiting of packets and queue pairs together, by which victims and
    /// roots are ranked.
    pub fn victim(&self) -> Time {
        self.victim_ps.saturating_add(self.source_victim_ps)
    }

    /// The same by the ports that pauses named.
    pub fn named_victim(&self) -> Time {
        self.named_victim_ps.saturating_add(self.source_named_victim_ps)
    }
}

/// The largest integer of a Parquet column, and so of all sums.
const MOST: Time = i64::MAX as Time;

impl From<&FlowBlame> for Waits {
    fn from(blame: &FlowBlame) -> Self {
        let FlowBlame { own, victim, source_own, source_victim, named_victim, source_named_victim } = *blame;
        Waits {
            own_ps: own.min(MOST),
            victim_ps: victim.min(MOST),
            source_own_ps: source_own.min(MOST),
            source_victim_ps: source_victim.min(MOST),
            named_victim_ps: named_victim.min(MOST),
            source_named_victim_ps: source_named_victim.min(MOST),
        }
    }
}

/// The waits that the pauses of one place caused, in the order of `Blocking::places`.
pub fn of_place(blocking: &Blocking, index: usize) -> Waits {
    let Blame { pauses: _, own, victim, source_own, source_victim, named_victim, source_named_victim } =
        blocking.places[index].1;
    Waits::from(&FlowBlame { own, victim, source_own, source_victim, named_victim, source_named_victim })
}

/// Summarises the results of the oracle; `None` if it did not watch.
pub fn summarise(plan: &Plan, outcome: &Outcome) -> Option<BlockingSummary> {
    let blocking = outcome.blocking.as_ref()?;
    let mut waits = Waits::default();
    let mut classes: Vec<ClassWaits> = plan
        .classes
        .iter()
        .map(|name| ClassWaits { name: name.clone(), victim_flows: 0, waits: Waits::default() })
        .collect();
    let mut victims = Vec::new();
    for (index, (flow, blame)) in plan.flows.iter().zip(&blocking.flows).enumerate() {
        let its = Waits::from(blame);
        let class = &mut classes[usize::from(flow.class)];
        waits.add(&its);
        class.waits.add(&its);
        if its.victim() > 0 {
            class.victim_flows += 1;
            victims.push((index as u32, its));
        }
    }
    // Stable: of two alike the earlier flow, or the lower port, comes first.
    victims.sort_by_key(|(_, waits)| std::cmp::Reverse(waits.victim()));
    victims.truncate(LISTED);
    let mut roots: Vec<(PortId, u64, Waits)> = Vec::new();
    for (index, (Place { root, .. }, blame)) in blocking.places.iter().enumerate() {
        let its = of_place(blocking, index);
        match roots.binary_search_by_key(root, |known| known.0) {
            Ok(at) => {
                roots[at].1 += blame.pauses;
                roots[at].2.add(&its);
            }
            Err(at) => roots.insert(at, (*root, blame.pauses, its)),
        }
    }
    let congested_ports = roots.len() as u64;
    let mut paused: Vec<PortId> = blocking.places.iter().map(|(place, _)| place.port).collect();
    paused.dedup();
    roots.retain(|(_, _, waits)| waits.victim() > 0);
    roots.sort_by_key(|(_, _, waits)| std::cmp::Reverse(waits.victim()));
    roots.truncate(LISTED);
    Some(BlockingSummary {
        pauses: blocking.places.iter().map(|(_, blame)| blame.pauses).sum(),
        congested_ports,
        paused_ports: paused.len() as u64,
        most_links: outcome.pauses.iter().map(|p| p.links).max().unwrap_or(0),
        named_waits: blocking.named.0,
        named_victims: blocking.named.1,
        merged_pauses: blocking.merged.pauses,
        merged_victim_ps: blocking.merged.victim,
        merged_longest_ps: blocking.merged.longest,
        waits,
        classes,
        victims: victims
            .into_iter()
            .map(|(flow, waits)| Victim { flow: names::flow(plan, flow), waits })
            .collect(),
        roots: roots
            .into_iter()
            .map(|(port, pauses, waits)| Root { port: names::port(plan, port), pauses, waits })
            .collect(),
    })
}

pub(crate) fn victim_times(packets: Time, sources: Time) -> String {
    format!("{} in packets and {} at sources", human::time(packets), human::time(sources))
}

/// Victim waiting in words; `named`: pauses name ports, so that there are two of it.
fn victim(waits: &Waits, named: bool) -> String {
    let by_root = victim_times(waits.victim_ps, waits.source_victim_ps);
    match named {
        false => format!("victims waited {by_root}"),
        true => format!(
            "by the port that the pause named, victims waited {}; by the packets' position, {by_root}",
            victim_times(waits.named_victim_ps, waits.source_named_victim_ps)
        ),
    }
}

/// The rows on blocking in the totals of the results: name and text.
pub fn rows(blocking: &BlockingSummary) -> Vec<(&'static str, String)> {
    let b = blocking;
    let named = b.named_waits > 0;
    let mut rows = vec![("blocking", victim(&b.waits, named) + " (sums)")];
    let mut row = |text: String| rows.push(("", text));
    for class in b.classes.iter().filter(|c| c.waits.victim() > 0 && b.classes.len() > 1) {
        let flows = human::counted(class.victim_flows, "flow");
        row(format!("{} ({flows}): {}", class.name, victim(&class.waits, named)));
    }
    if let (Some(root), Some(victim)) = (b.roots.first(), b.victims.first()) {
        row(format!("worst root: {} (victims waited {})", root.port, human::time(root.waits.victim())));
        row(format!("worst victim: {} (waited {})", victim.flow, human::time(victim.waits.victim())));
    }
    row(format!(
        "flows waited {} for ports on their own path",
        victim_times(b.waits.own_ps, b.waits.source_own_ps)
    ));
    row(format!(
        "{} on {}, traced to {}",
        human::counted(b.pauses, "pause"),
        human::counted(b.paused_ports, "port"),
        human::counted(b.congested_ports, "congested port"),
    ));
    if named {
        row(format!(
            "{} in queues whose pause named a port; {} of them for a port off their path",
            human::counted(b.named_waits, "wait"),
            human::count(b.named_victims)
        ));
    }
    if b.merged_pauses > 0 {
        row(format!(
            "{} for roots that merged into others; during merges, flows off the remaining root's path waited {} \
             (longest merge {})",
            human::counted(b.merged_pauses, "pause"),
            human::time(b.merged_victim_ps),
            human::time(b.merged_longest_ps)
        ));
    }
    rows
}
