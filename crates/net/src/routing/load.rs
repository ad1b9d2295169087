//! Expected load of ports, and the traffic at which the first one saturates.

use super::{RouteError, Router, Target, UNREACHED};
use crate::topology::{NodeId, PortId, Topology};
use std::collections::BTreeMap;

/// The most traffic that a network can carry of one pattern.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saturation {
    /// Bits per second on the wire, summed over all sources.
    pub rate: f64,
    /// The port that saturates first; of several, the first.
    pub port: PortId,
}

impl Router {
    /// Adds to `load`, by port, the traffic over it when every node `n` sends `inject[n]` to `to` and traffic
    /// divides evenly among the next hops. For BCube routing that is the even division among the orders of
    /// digits. Load that loops through overrides counts each time, until its time to live ends. Traffic from
    /// `to` to itself is left out.
    ///
    /// # Panics
    /// If a slice is shorter than the nodes or ports.
    pub fn accumulate(&mut self, to: NodeId, inject: &[f64], load: &mut [f64]) -> Result<(), RouteError> {
        let target = self.target(to);
        let mut amounts = inject[..self.names.len()].to_vec();
        amounts[to as usize] = 0.0;
        let stuck = if self.has_overrides(to) {
            self.push_round_by_round(&target, amounts, load)
        } else {
            self.push_by_distance(&target, amounts, load)
        };
        stuck.map_err(|from| RouteError::NoPath { from: self.name(from), to: self.name(to) })
    }

    /// From the farthest nodes inwards: each node is visited once, after all
    /// that send through it. Fails with a node that cannot go on.
    fn push_by_distance(
        &self,
        target: &Target,
        mut amounts: Vec<f64>,
        load: &mut [f64],
    ) -> Result<(), NodeId> {
        let nodes = 0..amounts.len() as NodeId;
        let distances: Vec<u32> = nodes.map(|node| self.distance_to(node, target)).collect();
        let mut tiers: Vec<Vec<NodeId>> = Vec::new();
        for (node, &distance) in (0..).zip(&distances) {
            if distance == UNREACHED {
                if amounts[node as usize] > 0.0 {
                    return Err(node);
                }
                continue;
            }
            let distance = distance as usize;
            if tiers.len() <= distance {
                tiers.resize(distance + 1, Vec::new());
            }
            tiers[distance].push(node);
        }
        for node in tiers.into_iter().skip(1).rev().flatten() {
            let amount = amounts[node as usize];
            if amount > 0.0 {
                let links =
                    || self.nearer(node, target.to, distances[node as usize], |n| distances[n as usize]);
                let share = amount / links().count() as f64;
                for link in links() {
                    load[link.port as usize] += share;
                    amounts[link.to as usize] += share;
                }
            }
        }
        Ok(())
    }

    /// Moves traffic over one link in each round. This also works where overrides lead into loops.
    fn push_round_by_round(
        &self,
        target: &Target,
        mut amounts: Vec<f64>,
        load: &mut [f64],
    ) -> Result<(), NodeId> {
        let mut links = Vec::new();
        for _ in 0..self.ttl {
            let mut next = vec![0.0; amounts.len()];
            let mut moved = false;
            for (node, &amount) in amounts.iter().enumerate().filter(|&(_, &amount)| amount > 0.0) {
                if node == target.to as usize {
                    continue;
                }
                self.choices(node as NodeId, target, &mut links);
                if links.is_empty() {
                    return Err(node as NodeId);
                }
                let share = amount / links.len() as f64;
                for link in &links {
                    load[link.port as usize] += share;
                    next[link.to as usize] += share;
                }
                moved = true;
            }
            if !moved {
                break;
            }
            amounts = next;
        }
        Ok(())
    }

    /// Expected load of every port, in the unit of `weight(src, dst)`; and the sum of all weights.
    fn expected_load(
        &mut self,
        sources: &[NodeId],
        destinations: &[NodeId],
        weight: &dyn Fn(NodeId, NodeId) -> f64,
    ) -> Result<(Vec<f64>, f64), RouteError> {
        let mut load = vec![0.0; self.rates.len()];
        let mut total = 0.0;
        // The destinations at one switch have the same path up to that switch.
        let mut groups: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
        for &to in destinations {
            let target = self.target(to);
            let root = if self.has_overrides(to) { to } else { target.root };
            groups.entry(root).or_default().push(to);
        }
        for (root, members) in groups {
            let mut inject = vec![0.0; self.names.len()];
            for &to in &members {
                let mut arriving = 0.0;
                for &from in sources.iter().filter(|&&from| from != to) {
                    let amount = weight(from, to);
                    inject[from as usize] += amount;
                    arriving += amount;
                }
                total += arriving;
                if to != root {
                    let last: Vec<PortId> =
                        self.links(root).iter().filter(|link| link.to == to).map(|link| link.port).collect();
                    for &port in &last {
                        load[port as usize] += arriving / last.len() as f64;
                    }
                }
            }
            // Traffic that begins at the root itself needs only the last link.
            self.accumulate(root, &inject, &mut load).map_err(|error| match error {
                RouteError::NoPath { from, .. } => RouteError::NoPath { from, to: self.name(members[0]) },
                other => other,
            })?;
        }
        Ok((load, total))
    }
}

/// The total rate at which the first port saturates, when each pair of a source and another node among the
/// destinations sends the share `weight(src, dst)` of all traffic. Shares need not sum to one.
///
/// `None` if there is no traffic at all.
pub fn saturation(
    router: &mut Router,
    sources: &[NodeId],
    destinations: &[NodeId],
    weight: &dyn Fn(NodeId, NodeId) -> f64,
) -> Result<Option<Saturation>, RouteError> {
    let (load, total) = router.expected_load(sources, destinations, weight)?;
    let mut first: Option<Saturation> = None;
    for (port, &load) in load.iter().enumerate().filter(|&(_, &load)| load > 0.0) {
        let rate = router.rates[port] as f64 * total / load;
        // Ports that are equal but for the rounding of sums count as equal.
        if first.is_none_or(|best| rate < best.rate * (1.0 - 1e-9)) {
            first = Some(Saturation { rate, port: port as PortId });
        }
    }
    Ok(first)
}

/// Weights of uniform random pairs, for [`saturation`]: the source uniform among `sources`, the destination
/// uniform among `destinations` without the source (as [`Pairs::uniform`](crate::traffic::Pairs::uniform)
/// draws them). No node may be listed twice in one list.
pub fn uniform(sources: &[NodeId], destinations: &[NodeId]) -> impl Fn(NodeId, NodeId) -> f64 + use<> {
    let nodes = sources.iter().chain(destinations).max().map_or(0, |&most| most as usize + 1);
    let mut others = vec![destinations.len(); nodes];
    for &to in destinations {
        others[to as usize] -= 1;
    }
    let sources = sources.len() as f64;
    // Without another node there is no pair, and no caller needs the weight.
    move |from, _| 1.0 / (sources * others[from as usize] as f64)
}

/// Bits per second that the links of the given hosts carry in one direction.
pub fn host_capacity(topology: &Topology, hosts: &[NodeId]) -> f64 {
    let ports = hosts.iter().flat_map(|&host| &topology.nodes[host as usize].ports);
    ports.map(|&port| topology.ports[port as usize].rate as f64).sum()
}
