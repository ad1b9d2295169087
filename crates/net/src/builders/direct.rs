//! Direct networks, where every switch has hosts: full mesh and torus.

use super::chain::edge;
use super::{Estimate, at_least};
use crate::error::SpecError;
use crate::topology::{LinkSpec, Topology, Torus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Switches `S0.0`, `S0.1`, … that are all linked to each other, each with its
/// hosts. Host `i` is at switch `i / hosts_per_switch`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FullMesh {
    /// Switches, at least 2.
    #[schemars(range(min = 2), extend("x-unit" = "switches"))]
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

impl FullMesh {
    /// A switch's ports are those of its hosts, then those to the other switches in their order.
    pub fn build(&self) -> Result<Topology, SpecError> {
        at_least("switches", self.switches, 2)?;
        at_least("hosts_per_switch", self.hosts_per_switch, 1)?;
        let [n, h] = [self.switches, self.hosts_per_switch].map(u64::from);
        let fabric = n * (n - 1) / 2;
        let key = if fabric >= n * h { "switches" } else { "hosts_per_switch" };
        Estimate { key, hosts: n * h, links: (n * h).saturating_add(fabric), radix: h + n - 1 }.admit()?;

        let (mut topology, first) = edge(self.switches, self.hosts_per_switch, self.link);
        for a in 0..self.switches {
            for b in a + 1..self.switches {
                topology.link(first + a, first + b, self.fabric_link.unwrap_or(self.link));
            }
        }
        Ok(topology)
    }
}

/// A two-dimensional torus: `height` rows of `width` switches, each linked to
/// its four neighbours, the last of a row or column to its first.
///
/// The switch in column x and row y is `S0.<y · width + x>`. Host `i` is at
/// switch `i / hosts_per_switch`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Torus2d {
    /// Switches of a row, at least 3.
    #[schemars(range(min = 3), extend("x-unit" = "switches"))]
    pub width: u32,
    /// Rows, at least 3.
    #[schemars(range(min = 3), extend("x-unit" = "rows"))]
    pub height: u32,
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

impl Torus2d {
    pub fn build(&self) -> Result<Topology, SpecError> {
        let &Self { width, height, hosts_per_switch, .. } = self;
        // In a dimension of two, both directions would lead to one neighbour.
        at_least("width", width, 3)?;
        at_least("height", height, 3)?;
        at_least("hosts_per_switch", hosts_per_switch, 1)?;
        let [w, h, per] = [width, height, hosts_per_switch].map(u64::from);
        let switches = w * h;
        let hosts = switches.saturating_mul(per);
        let key = match () {
            () if per >= w.max(h) => "hosts_per_switch",
            () if w >= h => "width",
            () => "height",
        };
        let links = hosts.saturating_add(switches.saturating_mul(2));
        Estimate { key, hosts, links, radix: per + 4 }.admit()?;

        let (mut topology, first) = edge(width * height, hosts_per_switch, self.link);
        let fabric_link = self.fabric_link.unwrap_or(self.link);
        for y in 0..height {
            for x in 0..width {
                let at = first + y * width + x;
                topology.link(at, first + y * width + (x + 1) % width, fabric_link);
                topology.link(at, first + (y + 1) % height * width + x, fabric_link);
            }
        }
        topology.torus = Some(Torus { width, height, hosts_per_switch });
        Ok(topology)
    }
}
