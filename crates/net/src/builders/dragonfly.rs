//! Dragonfly (Kim, Dally, Scott, Abts, ISCA 2008): groups of switches, with a full mesh inside each group and
//! global links between all pairs of groups.

use super::chain::edge;
use super::{Estimate, at_least};
use crate::error::SpecError;
use crate::topology::{Groups, LinkSpec, Topology};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Groups of `switches_per_group` switches, the paper's a, that are all linked to each other. Each switch has
/// `hosts_per_switch` hosts, the paper's p, and `global_links` ports to other groups, the paper's h. All pairs
/// of groups have equally many links, as many as the ports suffice for; ports that are left have no link.
///
/// Global port `k` of a group is at its switch `k / global_links`. In group `i` it leads to group `k` modulo
/// the number of other groups, not counting `i` itself (the absolute arrangement). Switch `s` of group `g` is
/// `S0.<g · switches_per_group + s>`, and host `i` is at switch `i / hosts_per_switch`. The paper balances
/// loads with a = 2p = 2h.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dragonfly {
    /// Switches of a group (a), at least 1.
    #[schemars(range(min = 1), extend("x-unit" = "switches"))]
    pub switches_per_group: u32,
    /// Hosts at each switch (p), at least 1.
    #[schemars(range(min = 1), extend("x-unit" = "hosts"))]
    pub hosts_per_switch: u32,
    /// Ports of a switch for links to other groups (h), at least 1.
    #[schemars(range(min = 1), extend("x-unit" = "links"))]
    pub global_links: u32,
    /// Groups (g), at least 2. At most, and by default, `switches_per_group · global_links` + 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "groups"))]
    #[schemars(extend("x-default" = "`switches_per_group · global_links` + 1"))]
    pub groups: Option<u32>,
    /// Links of hosts.
    pub link: LinkSpec,
    /// Links in a group. Default: `link`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`link`"))]
    pub local_link: Option<LinkSpec>,
    /// Links between groups. Default: `link`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`link`"))]
    pub global_link: Option<LinkSpec>,
}

impl Dragonfly {
    /// A switch's ports are those of its hosts, those to the other switches of its group in their order, then
    /// its global ones in the order of the groups that they lead to, unless several go to one group.
    pub fn build(&self) -> Result<Topology, SpecError> {
        let &Self { switches_per_group: a, hosts_per_switch: p, global_links: h, .. } = self;
        at_least("switches_per_group", a, 1)?;
        at_least("hosts_per_switch", p, 1)?;
        at_least("global_links", h, 1)?;
        let most = u64::from(a) * u64::from(h) + 1;
        let g = self.groups.map_or(most, u64::from);
        if let Some(given) = self.groups.filter(|&given| given < 2 || u64::from(given) > most) {
            let message = format!("{given} groups are out of range");
            let help = format!(
                "write 2 to {most}: a group has {} ports for links to other groups (switches_per_group · global_links)",
                most - 1
            );
            return Err(SpecError::new("groups", message, help));
        }
        let [a64, p64] = [a, p].map(u64::from);
        let switches = g.saturating_mul(a64);
        let per_pair = (most - 1) / (g - 1);
        let pairs = (g.saturating_mul(g - 1) / 2).saturating_mul(per_pair);
        let hosts = switches.saturating_mul(p64);
        let links = hosts.saturating_add(g.saturating_mul(a64 * (a64 - 1) / 2)).saturating_add(pairs);
        let radix = p64 + a64 - 1 + u64::from(h);
        Estimate { key: "switches_per_group", hosts, links, radix }.admit()?;

        // The estimate has admitted these numbers.
        let (g, per_pair) = (g as u32, per_pair as u32);
        let (mut topology, first) = edge(g * a, p, self.link);
        let local = self.local_link.unwrap_or(self.link);
        for group in 0..g {
            let first = first + group * a;
            for s in 0..a {
                (s + 1..a).for_each(|t| {
                    topology.link(first + s, first + t, local);
                });
            }
        }
        let global = self.global_link.unwrap_or(self.link);
        // Which switch has the `link`-th link of group `i` to group `j`.
        let owner = |i: u32, j: u32, link: u32| {
            let port = link * (g - 1) + if j < i { j } else { j - 1 };
            first + i * a + port / h
        };
        for link in 0..per_pair {
            for i in 0..g {
                for j in i + 1..g {
                    topology.link(owner(i, j, link), owner(j, i, link), global);
                }
            }
        }
        topology.groups = Some(Groups { switches: a, first });
        Ok(topology)
    }
}
