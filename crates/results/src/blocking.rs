//! The results of the head-of-line blocking oracle, in names and in words.
//!
//! Nothing here exists for a run that did not measure it: no zero replaces a missing measurement.

use serde::Serialize;

use crate::{human, names};
use xoff_kernel::time::Time;
use xoff_net::topology::PortId;
use xoff_outcome::{FlowBlame, Outcome, Place};
use xoff_plan::plan::Plan;

/// Most victims and roots that the summary names.
pub const LISTED: usize = 10;

/// The largest integer of a Parquet column, and so of all sums.
const MOST: Time = i64::MAX as Time;

/// Head-of-line blocking in short.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlockingSummary {
    /// Pauses that have a root.
    pub pauses: u64,
    /// Congested ports that pauses were traced to.
    pub congested_ports: u64,
    /// Queues' ports that were paused for one of them.
    pub paused_ports: u64,
    /// Most links between a congested port and a queue that was paused for it; 0 without pauses.
    pub most_links: u32,
    /// Waits of packets and queue pairs in queues whose pause named a port.
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
    pub waits: FlowBlame,
    /// By traffic class, in the order of the plan.
    pub classes: Vec<ClassWaits>,
    /// The flows that waited longest as victims, the worst first; at most [`LISTED`].
    pub victims: Vec<Victim>,
    /// The congested ports that victims waited longest for, the worst first; at most [`LISTED`].
    pub roots: Vec<Root>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassWaits {
    pub name: String,
    /// Flows of it that waited as victims, in packets or at their sources.
    pub victim_flows: u64,
    #[serde(flatten)]
    pub waits: FlowBlame,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Victim {
    /// The flow: `flow 17: H3 -> H9 (websearch)`.
    pub flow: String,
    #[serde(flatten)]
    pub waits: FlowBlame,
}

/// The waits of other packets for a congested port.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Root {
    pub port: String,
    /// Pauses that were traced to it.
    pub pauses: u64,
    #[serde(flatten)]
    pub waits: FlowBlame,
}

/// Waits in results: none exceeds 2^63 - 1 ps.
pub fn capped(waits: &FlowBlame) -> FlowBlame {
    let mut sum = FlowBlame::default();
    sum.add(waits, MOST);
    sum
}

/// Summarises the results of the oracle; `None` if it did not watch.
pub fn summarise(plan: &Plan, outcome: &Outcome) -> Option<BlockingSummary> {
    let blocking = outcome.blocking.as_ref()?;
    let mut waits = FlowBlame::default();
    let class = |name: &String| ClassWaits { name: name.clone(), victim_flows: 0, waits };
    let mut classes: Vec<ClassWaits> = plan.classes.iter().map(class).collect();
    let mut victims = Vec::new();
    for (index, (flow, blame)) in plan.flows.iter().zip(&blocking.flows).enumerate() {
        let its = capped(blame);
        let class = &mut classes[usize::from(flow.class)];
        waits.add(&its, MOST);
        class.waits.add(&its, MOST);
        if its.all_victim() > 0 {
            class.victim_flows += 1;
            victims.push((index as u32, its));
        }
    }
    // Stable: of two alike the earlier flow, or the lower port, comes first.
    victims.sort_by_key(|(_, waits)| std::cmp::Reverse(waits.all_victim()));
    victims.truncate(LISTED);
    let mut roots: Vec<(PortId, u64, FlowBlame)> = Vec::new();
    for (Place { root, .. }, blame) in &blocking.places {
        let its = capped(&blame.waits());
        match roots.binary_search_by_key(root, |known| known.0) {
            Ok(at) => {
                roots[at].1 += blame.pauses;
                roots[at].2.add(&its, MOST);
            }
            Err(at) => roots.insert(at, (*root, blame.pauses, its)),
        }
    }
    let congested_ports = roots.len() as u64;
    let mut paused: Vec<PortId> = blocking.places.iter().map(|(place, _)| place.port).collect();
    paused.dedup();
    roots.retain(|(_, _, waits)| waits.all_victim() > 0);
    roots.sort_by_key(|(_, _, waits)| std::cmp::Reverse(waits.all_victim()));
    roots.truncate(LISTED);
    let victim = |(flow, waits): (u32, FlowBlame)| Victim { flow: names::flow(plan, flow), waits };
    let root =
        |(port, pauses, waits): (u32, u64, FlowBlame)| Root { port: names::port(plan, port), pauses, waits };
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
        victims: victims.into_iter().map(victim).collect(),
        roots: roots.into_iter().map(root).collect(),
    })
}

pub(crate) fn victim_times(packets: Time, sources: Time) -> String {
    format!("{} in packets and {} at sources", human::time(packets), human::time(sources))
}

/// Victim waiting in words; `named`: pauses name ports, so that there are two of it.
fn victim(waits: &FlowBlame, named: bool) -> String {
    let by_root = victim_times(waits.victim, waits.source_victim);
    match named {
        false => format!("victims waited {by_root}"),
        true => format!(
            "by the port that the pause named, victims waited {}; by the packets' position, {by_root}",
            victim_times(waits.named_victim, waits.source_named_victim)
        ),
    }
}

/// The rows on blocking in the totals of the results: name and text.
pub fn rows(blocking: &BlockingSummary) -> Vec<(&'static str, String)> {
    let b = blocking;
    let named = b.named_waits > 0;
    let mut rows = vec![("blocking", victim(&b.waits, named) + " (sums)")];
    let mut row = |text: String| rows.push(("", text));
    for class in b.classes.iter().filter(|c| c.waits.all_victim() > 0 && b.classes.len() > 1) {
        let flows = human::counted(class.victim_flows, "flow");
        row(format!("{} ({flows}): {}", class.name, victim(&class.waits, named)));
    }
    if let (Some(root), Some(victim)) = (b.roots.first(), b.victims.first()) {
        row(format!("worst root: {} (victims waited {})", root.port, human::time(root.waits.all_victim())));
        row(format!("worst victim: {} (waited {})", victim.flow, human::time(victim.waits.all_victim())));
    }
    let own = victim_times(b.waits.own, b.waits.source_own);
    row(format!("flows waited {own} for ports on their own path"));
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
