//! The features that a run's packet-hops use: fixed when it begins. They have no code for the others.

use crate::{host::ends::Hosts, switch::egress::Egress, switch::port::Wire};
use xoff_plan::plan::Plan;

/// Which features a packet-hop uses besides ports, queues, accounts and the ends of flows.
pub trait Features {
    const BY_FLOW: bool;
    /// ECN marks at dequeue, lanes that change, counts of arrivals, and a flow control that is asked whether packets
    /// may leave.
    const HOOKS: bool;
    /// All others: telemetry, link layers, the blocking oracle, faults, taps, buffers within a buffer, headroom in the
    /// shared pool, loops, and further calls of the flow control for every packet. Where queues are by flow also those
    /// of [`Hosts`], such as transports that keep early packets.
    const EXTRAS: bool;
}

pub struct Has<const BY_FLOW: bool, const HOOKS: bool, const EXTRAS: bool>;
pub type Plain = Has<false, false, false>;
pub type ByFlow = Has<true, false, false>;
pub type Hooked = Has<false, true, false>;
pub type All = Has<true, true, true>;

impl<const B: bool, const H: bool, const E: bool> Features for Has<B, H, E> {
    const BY_FLOW: bool = B;
    const HOOKS: bool = H;
    const EXTRAS: bool = E;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Used {
    Plain,
    ByFlow,
    Hooked,
    All,
}

impl Used {
    /// Those of a plan. `recorded` says whether telemetry or the blocking oracle records each packet.
    pub fn new(plan: &Plan, egress: &Egress, hosts: &Hosts, recorded: bool) -> Self {
        let traits = plan.flow_control.traits();
        let extras = recorded
            || hosts.extras && egress.leaves.used()
            || egress.ports.iter().any(|port| port.wire == Wire::Faulty)
            || plan.link_layer.is_some()
            || plan.buffers.len() > plan.topology.nodes.len()
            || traits.ends_deadlocks
            || traits.reports_storage
            || traits.shares_headroom
            || traits.knows_causes;
        let hooks = egress.marks_at_dequeue
            || traits.asks_to_leave
            || traits.counts_arrivals
            || plan.lane_rules().is_some();
        match (extras, hooks, egress.leaves.used()) {
            (true, _, _) | (_, true, true) => Self::All,
            (_, true, false) => Self::Hooked,
            (_, false, true) => Self::ByFlow,
            (_, false, false) => Self::Plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Core;
    use crate::parallel::partition::Partition;

    /// What is switched off costs nothing: a healthy network has none of the code for faults, and devices that may
    /// die have it.
    #[test]
    fn a_run_has_the_features_that_it_uses() {
        let used = |more: &str, mortal: bool| {
            let text = format!(
                "[topology]\nkind=\"leaf-spine\"\nleaves=2\nspines=1\nhosts_per_leaf=1\n\
                 host_link={{rate=\"100Gbps\",delay=\"1us\"}}\nfabric_link={{rate=\"100Gbps\",delay=\"1us\"}}\n\
                 [run]\nduration=\"9us\"\n[measure]\nexplain=false\n\
                 [[traffic]]\nkind=\"flow\"\nsrc=\"H0\"\ndst=\"H1\"\nsize=\"1MB\"\n{more}"
            );
            let read = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
            let plan = xoff_plan::load("test.toml", text.as_bytes(), &[], &read).unwrap().plan;
            let mut partition = Partition::of_devices(&plan);
            partition.mortal = mortal;
            Core::new(&plan, &partition, 0, 0).features
        };
        let loss = "[[loss]]\nlink=\"S0.0-S1.0\"\nrate=0.01\n";
        let ecn = "[ecn]\nk_min=\"9kB\"\nk_max=\"9kB\"\np_max=1\nat=\"dequeue\"\n";
        assert_eq!(used("", false), Used::Plain);
        assert_eq!(used(ecn, false), Used::Hooked);
        assert_eq!(used(loss, false), Used::All);
        assert_eq!(used("", true), Used::All);
    }
}
