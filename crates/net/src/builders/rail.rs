//! Rail-only and rail-optimized networks.

use super::{Estimate, add_tier, at_least, with_hosts};
use crate::error::SpecError;
use crate::topology::{Cube, LinkSpec, Topology};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rail-only network (Wang et al., "Rail-only", 2023): `domains` high-bandwidth
/// domains of `n` hosts (GPUs), and `n` rails that join the hosts of one rank.
/// With as many domains as hosts in one it is an NDC(n, 1) whose two layers may
/// differ (Cao et al. 2026, §V-E).
///
/// Host `H<i>` has rank `i mod n` in domain `i / n`. Its port 0 leads to the
/// switch of its domain, `S0.<domain>`, and its port 1 to that of its rail,
/// `S1.<rank>`. Hosts relay: another rank of another domain is two switches away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RailOnly {
    /// Hosts of a domain, which is the number of rails; at least 2.
    #[schemars(range(min = 2), extend("x-unit" = "hosts"))]
    pub n: u32,
    /// High-bandwidth domains, at least 2. Default: `n`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2), extend("x-unit" = "domains", "x-default" = "`n`"))]
    pub domains: Option<u32>,
    /// Links between hosts and the switch of their domain (scale-up).
    pub domain_link: LinkSpec,
    /// Links between hosts and the switch of their rail (scale-out).
    pub rail_link: LinkSpec,
}

impl RailOnly {
    pub fn build(&self) -> Result<Topology, SpecError> {
        let (n, domains) = (self.n, self.domains.unwrap_or(self.n));
        at_least("n", n, 2)?;
        at_least("domains", domains, 2)?;
        let hosts = u64::from(n) * u64::from(domains);
        let key = if domains > n { "domains" } else { "n" };
        Estimate { key, hosts, links: hosts.saturating_mul(2), radix: u64::from(n.max(domains)) }.admit()?;
        let mut topology = rails(n, domains, 1, self.domain_link, self.rail_link);
        topology.cube = (domains == n).then_some(Cube { n, k: 1 });
        Ok(topology)
    }
}

/// A rail-optimized network, such as a pod of Alibaba's HPN (Qian et al., SIGCOMM 2024): `segments` that are
/// each a rail-only network, and `aggregations` switches with a link to every switch of a rail (Cao et al.
/// 2026, §VI-D).
///
/// Host `H<i>` has rank `i mod n` in domain `i / n`, and domain d is in segment `d / domains`. Its port 0 leads
/// to the switch of its domain, `S0.<domain>`, and its port 1 to that of its rail,
/// `S1.<segment · n + rank>`. The aggregation switches are `S2.<j>`. Hosts relay: another rank of another domain
/// of the segment is two switches away over a relay, and three over an aggregation switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RailOptimized {
    /// Hosts of a domain, which is the number of rails of a segment; at least 2.
    #[schemars(range(min = 2), extend("x-unit" = "hosts"))]
    pub n: u32,
    /// High-bandwidth domains of a segment, at least 2. Default: `n`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2), extend("x-unit" = "domains", "x-default" = "`n`"))]
    pub domains: Option<u32>,
    /// Segments, at least 1.
    #[schemars(range(min = 1), extend("x-unit" = "segments"))]
    pub segments: u32,
    /// Aggregation switches, at least 1.
    #[schemars(range(min = 1), extend("x-unit" = "switches"))]
    pub aggregations: u32,
    /// Links between hosts and the switch of their domain (scale-up).
    pub domain_link: LinkSpec,
    /// Links between hosts and the switch of their rail (scale-out).
    pub rail_link: LinkSpec,
    /// Links between switches of rails and aggregation switches. Default: `rail_link`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`rail_link`"))]
    pub fabric_link: Option<LinkSpec>,
}

impl RailOptimized {
    pub fn build(&self) -> Result<Topology, SpecError> {
        let (n, domains) = (self.n, self.domains.unwrap_or(self.n));
        at_least("n", n, 2)?;
        at_least("domains", domains, 2)?;
        at_least("segments", self.segments, 1)?;
        at_least("aggregations", self.aggregations, 1)?;
        let [segments, aggregations] = [self.segments, self.aggregations].map(u64::from);
        let rails = segments.saturating_mul(n.into());
        let hosts = rails.saturating_mul(domains.into());
        let up = rails.saturating_mul(aggregations);
        let radix = rails.max(u64::from(domains) + aggregations);
        let sizes = [
            ("n", n),
            ("domains", domains),
            ("segments", self.segments),
            ("aggregations", self.aggregations),
        ];
        let key = sizes.into_iter().max_by_key(|size| size.1).map_or("n", |size| size.0);
        Estimate { key, hosts, links: hosts.saturating_mul(2).saturating_add(up), radix }.admit()?;
        let mut topology = self::rails(n, domains, self.segments, self.domain_link, self.rail_link);
        let rails = topology.nodes.len() as u32 - n * self.segments;
        let above = add_tier(&mut topology, 2, self.aggregations);
        for rail in rails..above {
            for aggregation in 0..self.aggregations {
                topology.link(rail, above + aggregation, self.fabric_link.unwrap_or(self.rail_link));
            }
        }
        Ok(topology)
    }
}

/// Segments of `domains` domains of `n` hosts, with the switches of domains and rails.
fn rails(n: u32, domains: u32, segments: u32, domain_link: LinkSpec, rail_link: LinkSpec) -> Topology {
    let hosts = n * domains * segments;
    let mut topology = with_hosts(hosts);
    topology.relay_hosts = true;
    let first = add_tier(&mut topology, 0, domains * segments);
    for host in 0..hosts {
        topology.link(host, first + host / n, domain_link);
    }
    let first = add_tier(&mut topology, 1, n * segments);
    for host in 0..hosts {
        topology.link(host, first + host / (n * domains) * n + host % n, rail_link);
    }
    topology
}
