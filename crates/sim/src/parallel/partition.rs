//! Which device runs on which thread.
//!
//! Devices are weighed by the packets that they will send. Hosts stay with the switch that they exchange most
//! with; switches with hosts keep the plan's order (by pod or rack), and are cut into runs of equal weight;
//! every other switch joins the part that it exchanges most with, unless that is full. The quality of the
//! partition changes only the speed.

use xoff_kernel::time::{MICROSECOND, SECOND, Time};
use xoff_net::topology::{NodeId, NodeKind};
use xoff_plan::plan::{ENDS, Plan};

#[derive(Clone, Debug)]
pub struct Partition {
    /// Number of parts, at least 1; each has at least one device.
    pub parts: usize,
    of_node: Vec<u16>,
    /// The smallest delay of a link between two parts, [`Time::MAX`] if none: no part affects another sooner.
    pub lookahead: Time,
    /// Devices are processes and may die, so every link between two of them may fail.
    pub mortal: bool,
}

const MOST: usize = 1024;

impl Partition {
    pub fn new(plan: &Plan, threads: usize) -> Self {
        let nodes = plan.topology.nodes.len();
        // An arbiter sees everyone at once.
        let parts = if plan.arbiter.is_some() { 1 } else { threads.clamp(1, MOST) };
        let mut partition = Self { parts: 1, of_node: vec![0; nodes], lookahead: Time::MAX, mortal: false };
        if parts > 1 {
            partition.of_node = deal(plan, parts);
            partition.close_gaps();
        }
        partition.look_ahead(plan);
        partition
    }

    /// Each device is a part, which has its number. No plan of this has an arbiter, nor a link without delay
    /// between two devices.
    pub fn of_devices(plan: &Plan) -> Self {
        let parts = plan.topology.nodes.len();
        let of_node = (0..parts).map(|node| node as u16).collect();
        let mut partition = Self { parts, of_node, lookahead: Time::MAX, mortal: false };
        partition.look_ahead(plan);
        partition
    }

    fn look_ahead(&mut self, plan: &Plan) {
        for port in &plan.topology.ports {
            let (here, there) = (port.node, plan.topology.ports[port.peer as usize].node);
            if self.of(here) != self.of(there) {
                self.lookahead = self.lookahead.min(port.delay);
            }
        }
    }

    #[inline]
    pub fn of(&self, node: NodeId) -> usize {
        usize::from(self.of_node[node as usize])
    }

    /// Numbers the parts that have a device from 0 on.
    fn close_gaps(&mut self) {
        let mut number = vec![u16::MAX; MOST];
        let mut parts = 0;
        for part in &mut self.of_node {
            let known = &mut number[usize::from(*part)];
            if *known == u16::MAX {
                *known = parts;
                parts += 1;
            }
            *part = *known;
        }
        self.parts = usize::from(parts);
    }
}

/// Least packets that the links of a part could carry in a window, for it to be worth a thread. Links are
/// seldom full, and a wait costs about as much as a few packet-hops.
const WORTHWHILE: u128 = 32;

/// The most parts, up to `threads`, that are worth a thread each.
pub fn worthwhile(plan: &Plan, threads: usize) -> usize {
    let used = crossings(plan);
    let ports = plan.topology.ports.iter().zip(&used).filter(|(_, packets)| **packets > 1);
    let rate: u128 = ports.map(|(port, _)| u128::from(port.rate)).sum();
    let bits = 8 * u128::from(plan.packet.largest());
    let fits = |parts: usize| {
        let partition = Partition::new(plan, parts);
        let window = u128::from(partition.lookahead.min(MICROSECOND));
        window * rate / u128::from(SECOND) / bits >= WORTHWHILE * partition.parts as u128
    };
    (2..=threads.min(MOST)).rev().find(|&parts| fits(parts)).unwrap_or(1)
}

/// How long a run takes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Length {
    /// Too short for a second thread.
    Short,
    /// Too short to measure the processors.
    Medium,
    Long,
}

/// The default number of parts of a run on `cores` cores. More than two were never measured.
pub fn default_parts(plan: &Plan, cores: usize) -> usize {
    if length(plan) > Length::Short { worthwhile(plan, cores.min(2)) } else { 1 }
}

pub fn length(plan: &Plan) -> Length {
    match crossings(plan).iter().sum::<u64>() {
        ..500_000 => Length::Short,
        500_000..4_000_000 => Length::Medium,
        4_000_000.. => Length::Long,
    }
}

/// Clusters that stay together, by union-find over nodes.
struct Clusters(Vec<NodeId>);

impl Clusters {
    fn find(&mut self, node: NodeId) -> NodeId {
        let mut root = node;
        while self.0[root as usize] != root {
            root = self.0[root as usize];
        }
        let mut at = node;
        while at != root {
            at = std::mem::replace(&mut self.0[at as usize], root);
        }
        root
    }

    /// Joins two clusters; the lower node names the whole.
    fn join(&mut self, a: NodeId, b: NodeId) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b) as usize] = a.min(b);
    }
}

/// Data packets that cross each port.
fn crossings(plan: &Plan) -> Vec<u64> {
    let mut packets = vec![1; plan.topology.ports.len()];
    for (index, flow) in plan.flows.iter().enumerate() {
        let count = plan.packet.packets(flow.size);
        for start in [flow.path, flow.ack_path] {
            let mut at = start as usize;
            loop {
                let next = plan.hops[at];
                at += 1;
                if next < ENDS {
                    packets[next as usize] += count;
                } else if let Some(choices) = plan.choices_at(next) {
                    // Successive flows use different paths, so all are weighed.
                    let options = choices.options(next);
                    at = options[index % options.len()] as usize;
                } else {
                    break;
                }
            }
        }
    }
    packets
}

fn deal(plan: &Plan, parts: usize) -> Vec<u16> {
    let topology = &plan.topology;
    let crossings = crossings(plan);
    let mut clusters = Clusters((0..topology.nodes.len() as NodeId).collect());
    let mut weights = vec![0u64; topology.nodes.len()];
    for (port, p) in topology.ports.iter().enumerate() {
        weights[p.node as usize] += crossings[port];
        // Devices without a distance cannot be apart.
        if p.delay == 0 {
            clusters.join(p.node, topology.ports[p.peer as usize].node);
        }
    }
    for host in topology.hosts() {
        let busiest = topology.nodes[host as usize]
            .ports
            .iter()
            .filter(|&&p| topology.neighbour(p) != host)
            .max_by_key(|&&p| (crossings[p as usize], std::cmp::Reverse(p)));
        if let Some(&port) = busiest {
            clusters.join(host, topology.neighbour(port));
        }
    }
    let mut sums = vec![0u64; weights.len()];
    let mut has_host = vec![false; weights.len()];
    for node in 0..weights.len() as NodeId {
        let root = clusters.find(node) as usize;
        sums[root] += weights[node as usize];
        has_host[root] |= topology.nodes[node as usize].kind == NodeKind::Host;
    }
    let total: u64 = sums.iter().sum();
    const NOWHERE: u16 = u16::MAX;
    let mut of_root = vec![NOWHERE; weights.len()];
    let mut load = vec![0u64; parts];
    let hosted: u64 = (0..sums.len()).filter(|&r| has_host[r]).map(|r| sums[r]).sum();
    let mut before = 0u64;
    for root in (0..sums.len()).filter(|&r| has_host[r]) {
        // The run that the cluster's middle falls into.
        let middle = u128::from(before + sums[root] / 2);
        let part = (middle * parts as u128 / u128::from(hosted.max(1))).min(parts as u128 - 1) as usize;
        of_root[root] = part as u16;
        load[part] += sums[root];
        before += sums[root];
    }
    // The rest, if it touches a device that has a part; until nothing is left.
    let full = total / parts as u64 + total / parts as u64 / 20;
    loop {
        let mut affinity: std::collections::BTreeMap<usize, Vec<u64>> = std::collections::BTreeMap::new();
        for (port, p) in topology.ports.iter().enumerate() {
            let there = topology.ports[p.peer as usize].node;
            let (a, b) = (clusters.find(p.node) as usize, clusters.find(there) as usize);
            for (free, fixed) in [(a, b), (b, a)] {
                if of_root[free] == NOWHERE && of_root[fixed] != NOWHERE {
                    let known = affinity.entry(free).or_insert_with(|| vec![0; parts]);
                    known[usize::from(of_root[fixed])] += crossings[port];
                }
            }
        }
        if affinity.is_empty() {
            break;
        }
        for (root, exchanged) in affinity {
            let fits = |part: usize| load[part] + sums[root] <= full;
            let part = (0..parts)
                .max_by_key(|&p| (fits(p), exchanged[p], std::cmp::Reverse((load[p], p))))
                .expect("at least one part");
            of_root[root] = part as u16;
            load[part] += sums[root];
        }
    }
    // A switch without any link to the rest has nothing to do, and may do it anywhere.
    of_root.iter_mut().filter(|part| **part == NOWHERE).for_each(|part| *part = 0);
    (0..weights.len() as NodeId).map(|node| of_root[clusters.find(node) as usize]).collect()
}
