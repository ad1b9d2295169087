//! The tiers of up*/down* routing (Schroeder et al., Autonet, IEEE JSAC 9(8), 1991).

use crate::topology::{NodeId, NodeKind, Topology};
use std::collections::VecDeque;

/// The tier of each node: 0 for hosts that do not relay; else higher the fewer links away from the root, whose tier is
/// the highest. Every part of a network that is not connected has a root: `root` in its own, elsewhere, and without
/// `root` everywhere, a node in the middle of a long path.
pub(super) fn tiers(topology: &Topology, root: Option<NodeId>) -> Vec<u32> {
    let mut depths = vec![None; topology.nodes.len()];
    if let Some(root) = root {
        spread(topology, root, &mut depths);
    }
    for node in 0..topology.nodes.len() as NodeId {
        if relays(topology, node) && depths[node as usize].is_none() {
            spread(topology, middle(topology, node), &mut depths);
        }
    }
    let deepest = depths.iter().flatten().max().copied().unwrap_or(0);
    depths.iter().map(|depth| depth.map_or(0, |depth| 1 + deepest - depth)).collect()
}

fn relays(topology: &Topology, node: NodeId) -> bool {
    topology.relay_hosts || topology.nodes[node as usize].kind == NodeKind::Switch
}

/// Sets the distance from `root` of all relaying nodes that it reaches, and returns them, nearest first.
fn spread(topology: &Topology, root: NodeId, depths: &mut [Option<u32>]) -> Vec<NodeId> {
    let (mut queue, mut order) = (VecDeque::from([root]), Vec::new());
    depths[root as usize] = Some(0);
    while let Some(node) = queue.pop_front() {
        order.push(node);
        let beyond = depths[node as usize].map(|depth| depth + 1);
        for &port in &topology.nodes[node as usize].ports {
            let near = topology.neighbour(port);
            if relays(topology, near) && depths[near as usize].is_none() {
                depths[near as usize] = beyond;
                queue.push_back(near);
            }
        }
    }
    order
}

/// The middle of the shortest path from a node that is farthest from `start` to the node that is farthest from it.
fn middle(topology: &Topology, start: NodeId) -> NodeId {
    let search = |from: NodeId| {
        let mut depths = vec![None; topology.nodes.len()];
        let last = spread(topology, from, &mut depths).pop().unwrap_or(from);
        (last, depths)
    };
    let (end, _) = search(start);
    let (mut at, depths) = search(end);
    let depth = |node: NodeId| depths[node as usize].unwrap_or(0);
    for _ in 0..depth(at) / 2 {
        let mut near = topology.nodes[at as usize].ports.iter().map(|&port| topology.neighbour(port));
        let nearer = near.find(|&n| relays(topology, n) && depth(n) + 1 == depth(at));
        at = nearer.expect("a search reached it from there");
    }
    at
}
