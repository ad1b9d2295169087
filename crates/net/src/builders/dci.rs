//! Two datacenters and the long links between them.

use super::clos::{FatTree, one, three};
use super::{Estimate, add_tier, at_least, with_hosts};
use crate::error::SpecError;
use crate::topology::{LinkSpec, Topology};
use crate::units::{Bandwidth, Length, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Two equal fat-trees, each with a datacenter-interconnect (DCI) switch that
/// every switch of the top tier is linked to, and parallel long links between
/// the two DCI switches (Huang et al. 2024, §VI-B).
///
/// The first half of the hosts, and of each tier of switches, is the first
/// datacenter. The DCI switches are `DCI.0` and `DCI.1`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dci {
    /// Ports of a fat-tree's switch: even, at least 2.
    #[schemars(range(min = 2), extend("x-unit" = "ports"))]
    pub k: u32,
    /// Tiers of switches in a datacenter, 2 or 3, without its DCI switch.
    #[serde(default = "three")]
    #[schemars(range(min = 2, max = 3), extend("x-unit" = "tiers"))]
    pub tiers: u32,
    /// Hosts per uplink of an edge switch, at least 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1), extend("x-unit" = "ratio"))]
    pub oversubscription: u32,
    /// Links of hosts.
    pub link: LinkSpec,
    /// Links between the switches of a fat-tree. Default: `link`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`link`"))]
    pub fabric_link: Option<LinkSpec>,
    /// Links between the top tier and the DCI switch. Default: `fabric_link`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`fabric_link`"))]
    pub dci_link: Option<LinkSpec>,
    /// Each long link between the DCI switches.
    pub long_link: LongLink,
    /// Parallel long links, at least 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1), extend("x-unit" = "links"))]
    pub long_links: u32,
}

/// A long link: `{ rate = "400Gbps", length = "600km" }`, or with `delay` instead of `length`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LongLink {
    /// Line rate, above zero.
    pub rate: Bandwidth,
    /// Length of the cable, at 5 us per km. Write either this or `delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "required: `length` or `delay`"))]
    pub length: Option<Length>,
    /// One-way propagation delay. Write either this or `length`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "required: `length` or `delay`"))]
    pub delay: Option<Span>,
}

impl LongLink {
    fn resolve(&self) -> Result<LinkSpec, SpecError> {
        let delay = match (self.length, self.delay) {
            (Some(length), None) => length.delay(),
            (None, Some(delay)) => delay,
            (Some(_), Some(_)) => {
                let message = "`length` and `delay` cannot be combined";
                return Err(SpecError::new(
                    "long_link.delay",
                    message,
                    "remove one of the two: 1 km is 5 us",
                ));
            }
            (None, None) => {
                let help = "add length = \"600km\" or delay = \"3ms\"; 1 km is 5 us";
                return Err(SpecError::new("long_link", "the length of the long link is missing", help));
            }
        };
        Ok(LinkSpec { rate: self.rate, delay })
    }
}

impl Dci {
    pub fn build(&self) -> Result<Topology, SpecError> {
        let tree = FatTree {
            k: self.k,
            tiers: self.tiers,
            oversubscription: self.oversubscription,
            link: self.link,
            fabric_link: self.fabric_link,
        };
        let shape = tree.shape()?;
        let long_link = self.long_link.resolve()?;
        at_least("long_links", self.long_links, 1)?;
        let tops = u64::from(shape.tops());
        let tree_size = &shape.estimate;
        let parallel = u64::from(self.long_links);
        let key = if parallel > tops { "long_links" } else { tree_size.key };
        let links = 2 * (tree_size.links + tops) + parallel;
        Estimate { key, hosts: 2 * tree_size.hosts, links, radix: (tops + parallel).max(tree_size.radix) }
            .admit()?;

        let mut topology = with_hosts(2 * shape.hosts());
        let tiers: Vec<u32> =
            (0..).zip(&shape.switches).map(|(t, &n)| add_tier(&mut topology, t, 2 * n)).collect();
        let dci = topology.nodes.len() as u32;
        for site in 0..2 {
            topology.add(format!("DCI.{site}"), crate::topology::NodeKind::Switch);
        }
        let dci_link = self.dci_link.or(self.fabric_link).unwrap_or(self.link);
        for site in 0..2 {
            let first: Vec<u32> = tiers.iter().zip(&shape.switches).map(|(&t, &n)| t + site * n).collect();
            tree.link_up(&shape, &mut topology, site * shape.hosts(), &first);
            let top = first[first.len() - 1];
            for switch in top..top + shape.tops() {
                topology.link(switch, dci + site, dci_link);
            }
        }
        for _ in 0..self.long_links {
            let (port, _) = topology.link(dci, dci + 1, long_link);
            topology.set_long(port);
        }
        Ok(topology)
    }
}
