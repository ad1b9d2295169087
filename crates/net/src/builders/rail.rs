//! Rail-only networks.

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

        let hosts = n * domains;
        let mut topology = with_hosts(hosts);
        topology.relay_hosts = true;
        topology.cube = (domains == n).then_some(Cube { n, k: 1 });
        let first = add_tier(&mut topology, 0, domains);
        for host in 0..hosts {
            topology.link(host, first + host / n, self.domain_link);
        }
        let first = add_tier(&mut topology, 1, n);
        for host in 0..hosts {
            topology.link(host, first + host % n, self.rail_link);
        }
        Ok(topology)
    }
}
