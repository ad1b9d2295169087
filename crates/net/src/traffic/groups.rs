//! Groups of hosts that follow from the topology: racks, pods, data centres.

use crate::topology::{Node, NodeId, NodeKind, Topology};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Hosts whose first port leads to the same switch. In an NDC that is the switch of layer 0.
    Rack,
    /// Hosts that are connected only by switches of the tiers 0 and 1, in a network of three tiers or more:
    /// the pods of a fat-tree.
    Pod,
    /// Hosts that are connected without long links: the sites of a topology.
    Dc,
}

impl Level {
    /// From the smallest groups to the largest.
    pub const ALL: [Level; 3] = [Level::Rack, Level::Pod, Level::Dc];

    pub fn name(self) -> &'static str {
        match self {
            Level::Rack => "rack",
            Level::Pod => "pod",
            Level::Dc => "dc",
        }
    }
}

/// The tier of a switch that is called `S<tier>.<index>`.
fn tier(node: &Node) -> Option<u32> {
    match node.kind {
        NodeKind::Host => None,
        NodeKind::Switch => node.name.strip_prefix('S')?.split_once('.')?.0.parse().ok(),
    }
}

/// The group of every host, by node: groups are numbered from 0 in the order of
/// their first hosts. `None` where the network has no such groups, or one only.
pub fn groups(topology: &Topology, level: Level) -> Option<Vec<u32>> {
    let of_node: Vec<NodeId> = match level {
        Level::Rack => {
            let switch = |host: NodeId| {
                let near = topology.nodes[host as usize].ports.first().map(|&p| topology.neighbour(p));
                near.filter(|&n| topology.nodes[n as usize].kind == NodeKind::Switch).unwrap_or(host)
            };
            (0..topology.nodes.len() as NodeId).map(switch).collect()
        }
        Level::Pod => {
            let tiers: Vec<Option<u32>> = topology.nodes.iter().map(tier).collect();
            if tiers.iter().flatten().all(|&t| t < 2) {
                return None;
            }
            // Hosts, and switches of the two lowest tiers.
            let low = |n: NodeId| match topology.nodes[n as usize].kind {
                NodeKind::Host => true,
                NodeKind::Switch => tiers[n as usize].is_some_and(|t| t < 2),
            };
            topology
                .components(|port| low(topology.ports[port as usize].node) && low(topology.neighbour(port)))
        }
        Level::Dc => topology.sites(),
    };
    let mut numbers = std::collections::BTreeMap::new();
    let mut groups = vec![u32::MAX; topology.nodes.len()];
    for host in topology.hosts() {
        let next = numbers.len() as u32;
        groups[host as usize] = *numbers.entry(of_node[host as usize]).or_insert(next);
    }
    (numbers.len() > 1).then_some(groups)
}
