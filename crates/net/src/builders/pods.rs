//! Pods of two tiers, and cores between them.

use super::{Estimate, add_tier, at_least, with_hosts};
use crate::error::SpecError;
use crate::topology::{LinkSpec, PodShape, Topology};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::clos::one;

/// Most aggregation switches of a pod, and most cores at each of them.
const WIDEST: u32 = 64;

/// Pods, in each of which every ToR is linked to every aggregation switch; and
/// cores, each linked to one aggregation switch of every pod. As a part of a
/// fat-tree of k-port switches a pod has k/2 racks of k/2 hosts and k/2 aggregation
/// switches; here each number, that of the cores too, is one's own.
///
/// Host `i` is in rack `i / hosts_per_rack`, and racks follow pod by pod. ToRs are
/// `S0.i`, aggregation switches `S1.i`, both pod by pod, cores `S2.i`. Core c is linked
/// to aggregation switch `c mod aggs` of each pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pods {
    /// Pods, at least 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1), extend("x-unit" = "pods"))]
    pub pods: u32,
    /// Racks of a pod, at least 1, each with a ToR.
    #[schemars(range(min = 1), extend("x-unit" = "racks"))]
    pub racks: u32,
    /// Hosts of a rack, at least 1.
    #[schemars(range(min = 1), extend("x-unit" = "hosts"))]
    pub hosts_per_rack: u32,
    /// Aggregation switches of a pod, 1 to 64.
    #[schemars(range(min = 1, max = 64), extend("x-unit" = "switches"))]
    pub aggs: u32,
    /// Cores, up to 64 for each aggregation switch of a pod: at least 1 with several pods, 0 with
    /// one pod.
    #[serde(default)]
    #[schemars(extend("x-unit" = "cores"))]
    pub cores: u32,
    /// Every link.
    pub link: LinkSpec,
}

impl Pods {
    pub fn build(&self) -> Result<Topology, SpecError> {
        let &Self { pods, racks, hosts_per_rack, aggs, cores, link } = self;
        at_least("pods", pods, 1)?;
        at_least("racks", racks, 1)?;
        at_least("hosts_per_rack", hosts_per_rack, 1)?;
        at_least("aggs", aggs, 1)?;
        if aggs > WIDEST {
            let message = format!("{aggs} aggregation switches in a pod are too many");
            return Err(SpecError::new("aggs", message, format!("write 1 to {WIDEST}")));
        }
        if u64::from(cores) > u64::from(WIDEST) * u64::from(aggs) {
            let message = format!(
                "{cores} cores are too many: each of the {aggs} aggregation switches can have {WIDEST}"
            );
            return Err(SpecError::new("cores", message, format!("write {} or less", WIDEST * aggs)));
        }
        if pods > 1 && cores == 0 {
            let message = format!("{pods} pods need cores to connect them");
            return Err(SpecError::new("cores", message, "write cores = 1 or more, or pods = 1"));
        }
        if pods == 1 && cores > 0 {
            let message = "one pod cannot have cores: cores connect pods";
            return Err(SpecError::new("cores", message, "remove `cores`, or write pods = 2 or more"));
        }
        let [p, r, h, a, c] = [pods, racks, hosts_per_rack, aggs, cores].map(u64::from);
        let hosts = p.saturating_mul(r).saturating_mul(h);
        let key = "pods";
        let links = hosts.saturating_add(p.saturating_mul(r * a)).saturating_add(p.saturating_mul(c));
        Estimate { key, hosts, links, radix: (h + a).max(r.saturating_add(c.div_ceil(a))).max(p) }.admit()?;

        let mut topology = with_hosts(hosts as u32);
        let tors = add_tier(&mut topology, 0, pods * racks);
        let first_agg = add_tier(&mut topology, 1, pods * aggs);
        let first_core = add_tier(&mut topology, 2, cores);
        for host in 0..hosts as u32 {
            topology.link(host, tors + host / hosts_per_rack, link);
        }
        for tor in 0..pods * racks {
            for agg in 0..aggs {
                topology.link(tors + tor, first_agg + tor / racks * aggs + agg, link);
            }
        }
        for core in 0..cores {
            for pod in 0..pods {
                topology.link(first_agg + pod * aggs + core % aggs, first_core + core, link);
            }
        }
        topology.pods = Some(PodShape { pods, racks, hosts_per_rack, aggs, cores });
        Ok(topology)
    }
}
