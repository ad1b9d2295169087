//! Leaf-spine and fat-tree networks.

use super::chain::edge;
use super::{Estimate, add_tier, at_least, with_hosts};
use crate::error::SpecError;
use crate::topology::{LinkSpec, NodeId, Topology};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) fn one() -> u32 {
    1
}

/// Two tiers of switches: leaves `S0.i` with the hosts, every leaf linked to
/// every spine `S1.j`. Host `i` is at leaf `i / hosts_per_leaf`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeafSpine {
    /// Leaf switches, at least 1.
    #[schemars(range(min = 1), extend("x-unit" = "switches"))]
    pub leaves: u32,
    /// Spine switches, at least 1.
    #[schemars(range(min = 1), extend("x-unit" = "switches"))]
    pub spines: u32,
    /// Hosts at each leaf, at least 1.
    #[schemars(range(min = 1), extend("x-unit" = "hosts"))]
    pub hosts_per_leaf: u32,
    /// Links between hosts and leaves.
    pub host_link: LinkSpec,
    /// Links between leaves and spines.
    pub fabric_link: LinkSpec,
    /// Parallel links between a leaf and a spine, at least 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1), extend("x-unit" = "links"))]
    pub links_per_pair: u32,
}

impl LeafSpine {
    pub fn build(&self) -> Result<Topology, SpecError> {
        let &Self { leaves, spines, hosts_per_leaf, links_per_pair, .. } = self;
        at_least("leaves", leaves, 1)?;
        at_least("spines", spines, 1)?;
        at_least("hosts_per_leaf", hosts_per_leaf, 1)?;
        at_least("links_per_pair", links_per_pair, 1)?;
        let [l, s, h, m] = [leaves, spines, hosts_per_leaf, links_per_pair].map(u64::from);
        let hosts = l * h;
        let fabric = (l * s).saturating_mul(m);
        let key = if hosts >= fabric { "hosts_per_leaf" } else { "spines" };
        let links = hosts.saturating_add(fabric);
        Estimate { key, hosts, links, radix: (l * m).max(h.saturating_add(s * m)) }.admit()?;

        let (mut topology, first_leaf) = edge(leaves, hosts_per_leaf, self.host_link);
        let first_spine = add_tier(&mut topology, 1, spines);
        for leaf in 0..leaves {
            for spine in 0..spines {
                for _ in 0..links_per_pair {
                    topology.link(first_leaf + leaf, first_spine + spine, self.fabric_link);
                }
            }
        }
        Ok(topology)
    }
}

/// A fat-tree of `k`-port switches (Al-Fares et al., SIGCOMM 2008).
///
/// Three tiers: `k` pods of `k/2` edge switches `S0.i` and `k/2` aggregation
/// switches `S1.i`, and `(k/2)^2` cores `S2.i`. Two tiers: `k` edge switches
/// and `k/2` spines `S1.i`. An edge switch has `oversubscription · k/2` hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FatTree {
    /// Ports of a switch (only towards the fabric, if oversubscribed): even, at least 2.
    #[schemars(range(min = 2), extend("x-unit" = "ports"))]
    pub k: u32,
    /// Tiers of switches, 2 or 3.
    #[serde(default = "three")]
    #[schemars(range(min = 2, max = 3), extend("x-unit" = "tiers"))]
    pub tiers: u32,
    /// Hosts per uplink of an edge switch, at least 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1), extend("x-unit" = "ratio"))]
    pub oversubscription: u32,
    /// Links of hosts.
    pub link: LinkSpec,
    /// Links between switches. Default: `link`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`link`"))]
    pub fabric_link: Option<LinkSpec>,
}

pub(super) fn three() -> u32 {
    3
}

/// A fat-tree's counts, found to be sound.
pub(super) struct Shape {
    /// Uplinks of an edge switch, `k / 2`.
    half: u32,
    /// Hosts of an edge switch.
    per_edge: u32,
    /// Switches by tier, from the edge.
    pub(super) switches: Vec<u32>,
    pub(super) estimate: Estimate,
}

impl Shape {
    pub(super) fn hosts(&self) -> u32 {
        self.switches[0] * self.per_edge
    }

    /// Switches of the highest tier.
    pub(super) fn tops(&self) -> u32 {
        self.switches[self.switches.len() - 1]
    }
}

impl FatTree {
    pub fn build(&self) -> Result<Topology, SpecError> {
        let shape = self.shape()?;
        let mut topology = with_hosts(shape.hosts());
        let first: Vec<NodeId> =
            (0..).zip(&shape.switches).map(|(tier, &count)| add_tier(&mut topology, tier, count)).collect();
        self.link_up(&shape, &mut topology, 0, &first);
        Ok(topology)
    }

    pub(super) fn shape(&self) -> Result<Shape, SpecError> {
        let &Self { k, tiers, oversubscription, .. } = self;
        at_least("k", k, 2)?;
        if !k.is_multiple_of(2) {
            let message = format!("{k} is odd: half of the ports of a switch go up, half go down");
            let help = format!("write an even number, such as {} or {}", k - 1, k.saturating_add(1));
            return Err(SpecError::new("k", message, help));
        }
        if tiers != 2 && tiers != 3 {
            return Err(SpecError::new("tiers", format!("tiers = {tiers} is out of range"), "write 2 or 3"));
        }
        at_least("oversubscription", oversubscription, 1)?;
        let pods = if tiers == 3 { u64::from(k) } else { 2 };
        let half = u64::from(k) / 2;
        let (edges, fabric) =
            (pods * half, (pods * half).saturating_mul(half).saturating_mul(u64::from(tiers) - 1));
        let per_edge = half * u64::from(oversubscription);
        let hosts = edges.saturating_mul(per_edge);
        let many = oversubscription > 1 && per_edge > MANY_HOSTS_PER_EDGE;
        let key = if many { "oversubscription" } else { "k" };
        let radix = u64::from(k).max(half + per_edge);
        let estimate = Estimate { key, hosts, links: hosts.saturating_add(fabric), radix };
        estimate.admit()?;
        let (edges, half) = (edges as u32, half as u32);
        let switches = if tiers == 2 { vec![edges, half] } else { vec![edges, edges, half * half] };
        Ok(Shape { half, per_edge: per_edge as u32, switches, estimate })
    }

    /// Links the hosts from `first_host` on and the switches from `first` on, by tier, which are all there.
    pub(super) fn link_up(
        &self,
        shape: &Shape,
        topology: &mut Topology,
        first_host: NodeId,
        first: &[NodeId],
    ) {
        let fabric_link = self.fabric_link.unwrap_or(self.link);
        let (half, edges) = (shape.half, shape.switches[0]);
        for host in 0..shape.hosts() {
            topology.link(first_host + host, first[0] + host / shape.per_edge, self.link);
        }
        if let &[edge_tier, spines] = first {
            for edge in 0..edges {
                for spine in 0..half {
                    topology.link(edge_tier + edge, spines + spine, fabric_link);
                }
            }
            return;
        }
        let (aggregations, cores) = (first[1], first[2]);
        for edge in 0..edges {
            for j in 0..half {
                topology.link(first[0] + edge, aggregations + edge / half * half + j, fabric_link);
            }
        }
        for aggregation in 0..edges {
            for j in 0..half {
                let core = aggregation % half * half + j;
                topology.link(aggregations + aggregation, cores + core, fabric_link);
            }
        }
    }
}

/// Above so many hosts at one edge switch, an oversized network is blamed on the oversubscription.
const MANY_HOSTS_PER_EDGE: u64 = 1_024;
