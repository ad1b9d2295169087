//! One congested port in detail: the queues that it can pause, the packets in them, and the culprits.

use crate::walks::{UNPAUSED, Walk, Walks};
use std::collections::BTreeMap;
use xoff_net::topology::PortId;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::PauseScope;

/// The packets that cross a congested port. Data comes before control packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Culprit {
    /// Whether the flow's control packets cross it, not its data.
    pub is_control: bool,
    pub flow: u32,
}

impl Culprit {
    fn of(walk: &Walk) -> Self {
        Self { is_control: walk.is_control, flow: walk.flow }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeQueue {
    /// The queue, an index into [`Walks::queues`].
    pub queue: u32,
    /// How many pauses it takes: 1 if its packets go to the congested port next.
    pub level: u32,
    /// The queue that pauses it, one level nearer, in [`Tree::queues`]; `None`: the congested port itself.
    pub towards: Option<u32>,
    /// Flows whose data crosses it on its path to the congested port.
    pub culprits: u64,
    /// Flows whose data crosses it and never crosses the congested port.
    pub victims: u64,
    /// The first culprit through it, data before control packets; `None` if only other packets cross it.
    pub culprit: Option<Culprit>,
}

/// Packets that leave one queue of a tree and come to another one next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Flows with data on their path to the congested port.
    pub culprits: u64,
    /// Flows with data that never crosses it.
    pub victims: u64,
}

/// A flow that does not cross the congested port and can wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Victim {
    pub flow: u32,
    /// Its queue in [`Tree::queues`]: if possible, one that it shares with a culprit, the nearest.
    pub queue: u32,
    /// The culprit in that queue, or at the end of the chain of pauses from there to the port.
    pub culprit: Culprit,
    pub beside: bool,
}

/// The queues that a port's congestion can pause.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    pub port: PortId,
    pub culprits: u64,
    /// The queues, by level and then in the order of ports and lanes.
    pub queues: Vec<TreeQueue>,
    /// From queue to queue, by their indices in `queues`; `None` is the congested port.
    pub links: BTreeMap<(u32, Option<u32>), Link>,
    /// All victims: those that share a queue with a culprit first.
    pub victims: Vec<Victim>,
    /// How many of those beside culprits at a port share a queue with one on average, if flows are put into
    /// queues by chance, independently. `None` where flows are not spread over queues, or routes change.
    pub expected: Option<f64>,
}

/// The walks over a port, and the queues before it.
struct Culprits {
    crosses: Vec<bool>,
    /// Flows of which a walk crosses it.
    flows: Vec<bool>,
    /// Walks and places on them: the queues from which only pauses lead to the port.
    before: Vec<(u32, u32)>,
}

impl Culprits {
    fn new(plan: &Plan, walks: &Walks, port: PortId) -> Self {
        let (mut crosses, mut flows) = (vec![false; walks.walks.len()], vec![false; plan.flows.len()]);
        let mut before = Vec::new();
        for &walk in walks.over.get(port) {
            crosses[walk as usize] = true;
            flows[walks.walks[walk as usize].flow as usize] = true;
            before.extend(places_before(walks, walk, port).map(|at| (walk, at)));
        }
        Self { crosses, flows, before }
    }

    /// Whether the data of a walk is none of the port's business.
    fn victim(&self, walks: &Walks, walk: u32, own_flow: bool) -> bool {
        let w = walks.walks[walk as usize];
        !(w.is_control || self.crosses[walk as usize] || own_flow && self.flows[w.flow as usize])
    }
}

/// The places on a walk from which pauses lead to `port`, along the walk.
fn places_before(walks: &Walks, walk: u32, port: PortId) -> impl Iterator<Item = u32> {
    let at = walks.at(walk);
    let mut found = vec![false; at.len()];
    for (i, _) in walks.ports(walk).iter().enumerate().filter(|(_, p)| **p == port) {
        std::iter::successors(walks.before(at, i), |&j| walks.before(at, j)).for_each(|j| found[j] = true);
    }
    (0u32..).zip(found).filter(|f| f.1).map(|f| f.0)
}

/// Counts victims beside culprits, for one port after another.
pub struct Beside {
    /// By walk, queue and flow: the port for which it was last met.
    crosses: Vec<u32>,
    queues: Vec<u32>,
    flows: Vec<u32>,
    guilty: Vec<u32>,
}

impl Beside {
    pub fn new(walks: &Walks) -> Self {
        let flows = walks.walks.last().map_or(0, |w| w.flow as usize + 1);
        Self {
            crosses: vec![u32::MAX; walks.walks.len()],
            queues: vec![u32::MAX; walks.queues.len()],
            flows: vec![u32::MAX; flows],
            guilty: vec![u32::MAX; flows],
        }
    }

    /// Counts the flows that do not cross `port` and share a queue with a flow that is on its path there.
    pub fn count(&mut self, walks: &Walks, port: PortId, own_flow: bool) -> u64 {
        for &walk in walks.over.get(port) {
            self.crosses[walk as usize] = port;
            self.guilty[walks.walks[walk as usize].flow as usize] = port;
        }
        let mut n = 0;
        for &walk in walks.over.get(port) {
            for at in places_before(walks, walk, port) {
                let queue = walks.at(walk)[at as usize];
                if std::mem::replace(&mut self.queues[queue as usize], port) == port {
                    continue;
                }
                for &other in walks.through.get(queue) {
                    let w = walks.walks[other as usize];
                    let victim = !w.is_control
                        && self.crosses[other as usize] != port
                        && !(own_flow && self.guilty[w.flow as usize] == port);
                    if victim && std::mem::replace(&mut self.flows[w.flow as usize], port) != port {
                        n += 1;
                    }
                }
            }
        }
        n
    }
}

pub fn tree(plan: &Plan, walks: &Walks, port: PortId) -> Tree {
    let own_flow = plan.flow_control.traits().pause_scope == PauseScope::Flow;
    let culprits = Culprits::new(plan, walks, port);
    let (mut queues, index) = levels(walks, port);
    // The first flow through each queue.
    let mut first: Vec<Option<Culprit>> = vec![None; queues.len()];
    let mut guilty: Vec<(u32, u32)> = Vec::new();
    for &(walk, at) in &culprits.before {
        let queue = index[walks.at(walk)[at as usize] as usize];
        let w = walks.walks[walk as usize];
        let (known, its) = (&mut first[queue as usize], Culprit::of(&w));
        *known = Some(known.map_or(its, |other| other.min(its)));
        if !w.is_control {
            guilty.push((queue, w.flow));
        }
    }
    guilty.sort_unstable();
    guilty.dedup();
    guilty.iter().for_each(|g| queues[g.0 as usize].culprits += 1);
    queues.iter_mut().zip(first).for_each(|(q, culprit)| q.culprit = culprit);
    for q in &mut queues {
        let through = walks.through.get(q.queue).iter().filter(|&&w| culprits.victim(walks, w, own_flow));
        let mut flows: Vec<u32> = through.map(|&w| walks.walks[w as usize].flow).collect();
        flows.dedup();
        q.victims = flows.len() as u64;
    }
    Tree {
        port,
        culprits: walks.data_over(port).len() as u64,
        links: links(walks, &culprits, own_flow, port, &index),
        expected: expected(plan, walks, &culprits),
        victims: victims(walks, &culprits, own_flow, port, &queues, &index),
        queues,
    }
}

/// The queues that `port` can pause, by level, and by queue their index among them; [`UNPAUSED`] for others.
fn levels(walks: &Walks, port: PortId) -> (Vec<TreeQueue>, Vec<u32>) {
    let mut index = vec![UNPAUSED; walks.queues.len()];
    let mut queues: Vec<TreeQueue> = Vec::new();
    let paused = |queue, by: Option<u32>| walks.upstream.get(queue).iter().map(move |&q| (q, by));
    let mut next: Vec<_> = walks.of_port.get(port).iter().flat_map(|&own| paused(own, None)).collect();
    for level in 1.. {
        // The first of those that pause it, in the order of ports and lanes.
        next.sort_by_key(|&(q, towards)| (walks.queues[q as usize], towards));
        next.dedup_by_key(|l| l.0);
        let from = queues.len();
        for &(queue, towards) in &next {
            if index[queue as usize] == UNPAUSED {
                index[queue as usize] = queues.len() as u32;
                queues.push(TreeQueue { queue, level, towards, culprits: 0, victims: 0, culprit: None });
            }
        }
        if queues.len() == from {
            break;
        }
        let found = queues[from..].iter().zip(from as u32..);
        next = found.flat_map(|(q, i)| paused(q.queue, Some(i))).collect();
    }
    (queues, index)
}

fn victims(
    walks: &Walks,
    culprits: &Culprits,
    own_flow: bool,
    port: PortId,
    queues: &[TreeQueue],
    index: &[u32],
) -> Vec<Victim> {
    // The best place of each flow: with a culprit, near, early on its path.
    let mut best: BTreeMap<u32, (bool, u32)> = BTreeMap::new();
    for walk in (0..walks.walks.len() as u32).filter(|&walk| culprits.victim(walks, walk, own_flow)) {
        let at = walks.at(walk).iter().filter(|&&q| q != UNPAUSED).map(|&q| index[q as usize]);
        // Lower levels have lower indices.
        let place = at.filter(|&i| i != UNPAUSED).map(|i| (queues[i as usize].culprit.is_none(), i)).min();
        if let Some(place) = place {
            let flow = walks.walks[walk as usize].flow;
            best.entry(flow).and_modify(|known| *known = place.min(*known)).or_insert(place);
        }
    }
    let mut victims: Vec<Victim> = best
        .into_iter()
        .map(|(flow, (apart, queue))| {
            let mut at = queue;
            let culprit = loop {
                match (queues[at as usize].culprit, queues[at as usize].towards) {
                    (Some(culprit), _) => break culprit,
                    (None, Some(towards)) => at = towards,
                    // A host passes the port's pauses on here: any flow that fills it is to blame.
                    (None, None) => break Culprit::of(&walks.walks[walks.over.get(port)[0] as usize]),
                }
            };
            Victim { flow, queue, culprit, beside: !apart }
        })
        .collect();
    victims.sort_by_key(|i| (!i.beside, queues[i.queue as usize].level, i.flow));
    victims
}

fn links(
    walks: &Walks,
    culprits: &Culprits,
    own_flow: bool,
    port: PortId,
    index: &[u32],
) -> BTreeMap<(u32, Option<u32>), Link> {
    let mut links: BTreeMap<(u32, Option<u32>), Link> = BTreeMap::new();
    // The flow that was counted last on each of them, as culprit and as victim.
    let mut last: BTreeMap<(u32, Option<u32>, bool), u32> = BTreeMap::new();
    for walk in 0..walks.walks.len() as u32 {
        let (at, w) = (walks.at(walk), walks.walks[walk as usize]);
        let victim = culprits.victim(walks, walk, own_flow);
        let mut before = vec![false; if culprits.crosses[walk as usize] { at.len() } else { 0 }];
        if !before.is_empty() {
            places_before(walks, walk, port).for_each(|i| before[i as usize] = true);
        }
        for next in 1..at.len() {
            let Some(i) = walks.before(at, next) else { continue };
            if index[at[i] as usize] == UNPAUSED {
                continue;
            }
            let to = match (walks.ports(walk)[next] == port, index[at[next] as usize]) {
                (true, _) => None,
                (false, UNPAUSED) => continue,
                (false, to) => Some(to),
            };
            let link = links.entry((index[at[i] as usize], to)).or_default();
            let culprit = !w.is_control && before.get(i) == Some(&true);
            let key = (index[at[i] as usize], to, culprit);
            if (culprit || victim) && last.insert(key, w.flow) != Some(w.flow) {
                *(if culprit { &mut link.culprits } else { &mut link.victims }) += 1;
            }
        }
    }
    links
}

/// See [`Tree::expected`].
fn expected(plan: &Plan, walks: &Walks, culprits: &Culprits) -> Option<f64> {
    let PauseScope::Queue { queues, own } = plan.flow_control.traits().pause_scope else { return None };
    if !plan.faults.tables.is_empty() {
        return None;
    }
    // A sender's own packets are in other queues than those it forwards, including its control packets.
    let places =
        |walk: u32, at: u32| (walks.at(walk)[at as usize], at == 0 && !walks.walks[walk as usize].is_control);
    // Culprits by queue, each once.
    let mut all: Vec<_> = culprits.before.iter().map(|&(walk, at)| (places(walk, at), walk)).collect();
    all.sort_unstable();
    all.dedup();
    let mut beside = vec![[0u64; 2]; walks.queues.len()];
    all.iter().for_each(|&((queue, own), _)| beside[queue as usize][usize::from(own)] += 1);
    let mut sum = 0.0;
    for walk in (0..walks.walks.len() as u32).filter(|&w| culprits.victim(walks, w, false)) {
        let mut met: Vec<_> = (0..walks.at(walk).len() as u32).map(|at| places(walk, at)).collect();
        met.sort_unstable();
        met.dedup();
        let mut culprits = [0; 2];
        for &(queue, own) in met.iter().filter(|m| m.0 != UNPAUSED) {
            culprits[usize::from(own)] += beside[queue as usize][usize::from(own)];
        }
        let [forwarded, others] = culprits;
        sum += 1.0 - missed(queues, forwarded) * missed(own, others);
    }
    Some(sum)
}

/// The probability that a flow shares none of so many queues with `others` flows, by squaring.
fn missed(queues: u16, mut others: u64) -> f64 {
    let (mut missed, mut power) = (1.0, 1.0 - 1.0 / f64::from(queues));
    while others > 0 {
        missed *= if others & 1 == 1 { power } else { 1.0 };
        power *= power;
        others >>= 1;
    }
    missed
}
