//! Small networks for close looks: dumbbell, line and ring.

use super::{Estimate, add_tier, at_least, with_hosts};
use crate::error::SpecError;
use crate::topology::{LinkSpec, NodeId, Topology};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Two switches, `S0.0` with the left hosts and `S0.1` with the right ones, and
/// one link between them. The left hosts come first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dumbbell {
    /// Hosts at the left switch, at least 1.
    #[schemars(range(min = 1), extend("x-unit" = "hosts"))]
    pub left: u32,
    /// Hosts at the right switch, at least 1.
    #[schemars(range(min = 1), extend("x-unit" = "hosts"))]
    pub right: u32,
    /// Links of hosts.
    pub link: LinkSpec,
    /// The link between the switches.
    pub bottleneck: LinkSpec,
}

impl Dumbbell {
    pub fn build(&self) -> Result<Topology, SpecError> {
        at_least("left", self.left, 1)?;
        at_least("right", self.right, 1)?;
        let hosts = u64::from(self.left) + u64::from(self.right);
        let most = self.left.max(self.right);
        let key = if self.left == most { "left" } else { "right" };
        Estimate { key, hosts, links: hosts + 1, radix: u64::from(most) + 1 }.admit()?;

        let mut topology = with_hosts(self.left + self.right);
        let left = add_tier(&mut topology, 0, 2);
        for host in 0..self.left + self.right {
            topology.link(host, left + u32::from(host >= self.left), self.link);
        }
        topology.link(left, left + 1, self.bottleneck);
        Ok(topology)
    }
}

/// Switches `S0.0`, `S0.1`, … in a row, each with its hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Switches, at least 1.
    #[schemars(range(min = 1), extend("x-unit" = "switches"))]
    pub switches: u32,
    /// Hosts at each switch, at least 1.
    #[schemars(range(min = 1), extend("x-unit" = "hosts"))]
    pub hosts_per_switch: u32,
    /// Links of hosts.
    pub link: LinkSpec,
    /// Links between switches. Default: `link`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`link`"))]
    pub fabric_link: Option<LinkSpec>,
}

impl Line {
    pub fn build(&self) -> Result<Topology, SpecError> {
        let (mut topology, first) = switches_with_hosts(self.switches, self.hosts_per_switch, 1, self.link)?;
        for switch in first..first + self.switches - 1 {
            topology.link(switch, switch + 1, self.fabric_link.unwrap_or(self.link));
        }
        Ok(topology)
    }
}

/// Switches `S0.0`, `S0.1`, … in a ring, each with its hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ring {
    /// Switches, at least 3.
    #[schemars(range(min = 3), extend("x-unit" = "switches"))]
    pub switches: u32,
    /// Hosts at each switch, at least 1.
    #[schemars(range(min = 1), extend("x-unit" = "hosts"))]
    pub hosts_per_switch: u32,
    /// Links of hosts.
    pub link: LinkSpec,
    /// Links between switches. Default: `link`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`link`"))]
    pub fabric_link: Option<LinkSpec>,
}

impl Ring {
    pub fn build(&self) -> Result<Topology, SpecError> {
        let (mut topology, first) = switches_with_hosts(self.switches, self.hosts_per_switch, 3, self.link)?;
        for i in 0..self.switches {
            let next = first + (i + 1) % self.switches;
            topology.link(first + i, next, self.fabric_link.unwrap_or(self.link));
        }
        Ok(topology)
    }
}

/// Hosts and switches of a line or ring, not yet linked to each other; and the first switch.
fn switches_with_hosts(
    switches: u32,
    hosts_per_switch: u32,
    least: u32,
    link: LinkSpec,
) -> Result<(Topology, NodeId), SpecError> {
    at_least("switches", switches, least)?;
    at_least("hosts_per_switch", hosts_per_switch, 1)?;
    let hosts = u64::from(switches) * u64::from(hosts_per_switch);
    let key = if switches >= hosts_per_switch { "switches" } else { "hosts_per_switch" };
    let links = hosts.saturating_add(u64::from(switches));
    Estimate { key, hosts, links, radix: u64::from(hosts_per_switch) + 2 }.admit()?;

    Ok(edge(switches, hosts_per_switch, link))
}

/// The lowest tier, with as many hosts at each switch; and its first switch.
pub(super) fn edge(switches: u32, hosts_per_switch: u32, link: LinkSpec) -> (Topology, NodeId) {
    let mut topology = with_hosts(switches * hosts_per_switch);
    let first = add_tier(&mut topology, 0, switches);
    for host in 0..switches * hosts_per_switch {
        topology.link(host, first + host / hosts_per_switch, link);
    }
    (topology, first)
}
