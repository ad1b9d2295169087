//! NDC(n, k), the node-centric network also known as BCube.

use super::{Estimate, add_tier, at_least, with_hosts};
use crate::error::SpecError;
use crate::topology::{Cube, LinkSpec, Topology};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// NDC(n, k) (Cao et al. 2026, §III-A; BCube, SIGCOMM 2009): `n^(k+1)` hosts with `k + 1`
/// ports each, and `k + 1` layers of `n^k` switches with `n` ports.
///
/// A host's number, written with `k + 1` digits in base `n`, is its address. Its
/// port `l` leads to the switch `S<l>.<i>` where `i` is the address without
/// digit `l`, at that switch's port number digit `l`. Hosts relay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ndc {
    /// Ports of a switch, at least 2.
    #[schemars(range(min = 2), extend("x-unit" = "ports"))]
    pub n: u32,
    /// Highest layer: a host has k + 1 ports.
    #[schemars(extend("x-unit" = "layers"))]
    pub k: u32,
    /// Every link.
    pub link: LinkSpec,
}

impl Ndc {
    pub fn build(&self) -> Result<Topology, SpecError> {
        at_least("n", self.n, 2)?;
        let layers = u64::from(self.k) + 1;
        let hosts = u64::from(self.n).saturating_pow(self.k.saturating_add(1));
        // With one layer only `n` can be at fault.
        let key = if self.k == 0 { "n" } else { "k" };
        let links = hosts.saturating_mul(layers);
        Estimate { key, hosts, links, radix: u64::from(self.n).max(layers) }.admit()?;

        let cube = Cube { n: self.n, k: self.k };
        let mut topology = with_hosts(cube.hosts());
        topology.relay_hosts = true;
        topology.cube = Some(cube);
        for layer in 0..=self.k {
            let first = add_tier(&mut topology, layer, cube.switches_per_layer());
            // In the order of hosts, so that a switch's port number is the digit.
            for host in 0..cube.hosts() {
                topology.link(host, first + cube.switch_of(host, layer), self.link);
            }
        }
        Ok(topology)
    }
}
