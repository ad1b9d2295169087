//! Egress ports that packets of an ingress port can take, from the routes of the plan.
//!
//! An account can only be held by queues of these ports. The oracle strikes out all others before it reads a
//! queue. Where routes have no cyclic dependency, no account is left.

use super::{Member, Set, Stalled};
use crate::world::World;
use std::collections::BTreeSet;
use xoff_plan::plan::{ENDS, Plan};

/// By ingress port: the egress ports of its device that its packets can take.
pub struct Reach(Vec<BTreeSet<u32>>);

impl Reach {
    pub fn new(plan: &Plan) -> Self {
        let topology = &plan.topology;
        let beside = |port: u32| &topology.nodes[topology.ports[port as usize].node as usize].ports;
        let mut reach = vec![BTreeSet::new(); topology.ports.len()];
        for hop in plan.hops.windows(2).filter(|hop| hop[0] < ENDS) {
            let ingress = topology.ports[hop[0] as usize].peer;
            match hop[1] {
                port if port < ENDS => drop(reach[ingress as usize].insert(port)),
                // A choice of the device, or the end of a route.
                _ => reach[ingress as usize].extend(beside(ingress)),
            }
        }
        // Packets may continue elsewhere in their device; a pause that is passed on holds all other ports.
        let jumps = !plan.detours.is_empty() || !plan.faults.tables.is_empty();
        for (ingress, ports) in (0..).zip(&mut reach) {
            if jumps || plan.passes_pauses_on(topology.ports[ingress as usize].node) {
                ports.extend(beside(ingress));
            }
        }
        Self(reach)
    }

    /// Whether packets from `ingress` can wait in a queue of `egress`.
    pub fn leads(&self, ingress: u32, egress: u32) -> bool {
        self.0[ingress as usize].contains(&egress)
    }

    /// Strikes out accounts whose packets can be in no queue that is stalled or that the others pause.
    pub fn strike_out(&self, world: &World, set: &mut Set, stalled: &Stalled) {
        loop {
            let paused = set.keys().map(|member| member.upstream(world).0);
            let still: BTreeSet<u32> = paused.chain(stalled.iter().map(|&(port, _)| port)).collect();
            let before = set.len();
            set.retain(|member, _| match member {
                Member::Account(account) => !self.0[(account / world.lanes()) as usize].is_disjoint(&still),
                Member::Queue(_) | Member::Root(_) => true,
            });
            if set.len() == before {
                return;
            }
        }
    }
}
