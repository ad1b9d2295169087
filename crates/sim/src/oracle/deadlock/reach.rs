//! Egress ports that packets of an ingress port can take, from the routes of the plan.
//!
//! An account, or a queue whose packets are counted, can only be held by queues of these ports. The oracle strikes
//! out all others before it reads a queue. Where routes have no cyclic dependency, none is left, and the oracle
//! need not look.

use super::{Member, Set, Stalled};
use crate::world::World;
use std::collections::BTreeSet;
use xoff_plan::plan::{ENDS, Plan};
use xoff_schemes::flow_control::PauseScope;

pub struct Reach {
    /// By ingress port: the egress ports of its device that its packets can take.
    ports: Vec<BTreeSet<u32>>,
    /// Whether queues are held by what lies at the next device only, on the way of their packets.
    counts: bool,
    allows_deadlock: bool,
}

impl Reach {
    pub fn new(plan: &Plan) -> Self {
        let topology = &plan.topology;
        let beside = |port: u32| &topology.nodes[topology.ports[port as usize].node as usize].ports;
        let mut reach = vec![BTreeSet::new(); topology.ports.len()];
        for hop in plan.hops.windows(2).filter(|hop| hop[0] < ENDS) {
            let ports = &mut reach[topology.ports[hop[0] as usize].peer as usize];
            match (hop[1], plan.choices_at(hop[1])) {
                (port, _) if port < ENDS => drop(ports.insert(port)),
                (entry, Some(choices)) => {
                    ports.extend(choices.options(entry).iter().map(|&option| plan.hops[option as usize]));
                }
                // The end of a route.
                (_, None) => {}
            }
        }
        // Packets may continue elsewhere in their device; a pause that is passed on holds all other ports.
        let jumps = !plan.detours.is_empty() || !plan.faults.tables.is_empty();
        for (ingress, ports) in (0..).zip(&mut reach) {
            if jumps || plan.passes_pauses_on(topology.ports[ingress as usize].node) {
                ports.extend(beside(ingress));
            }
        }
        // Pauses of roots, and those that queues of a port send together, can come from further away.
        let (counts, further) = match plan.flow_control.traits().pause_scope {
            PauseScope::Queue { .. } => (true, false),
            PauseScope::Root | PauseScope::Onward => (false, true),
            PauseScope::Nothing | PauseScope::Lane | PauseScope::Link | PauseScope::Flow => (false, false),
        };
        let mut still: BTreeSet<u32> = (0..topology.ports.len() as u32).collect();
        let mut before = still.len() + 1;
        while still.len() < before {
            before = still.len();
            let all = still.clone();
            still.retain(|&port| !reach[topology.ports[port as usize].peer as usize].is_disjoint(&all));
        }
        Self { ports: reach, counts, allows_deadlock: further || !still.is_empty() }
    }

    /// Whether queues that only each other's pauses stop can wait in a cycle.
    pub fn allows_deadlock(&self) -> bool {
        self.allows_deadlock
    }

    /// Whether packets from `ingress` can wait in a queue of `egress`.
    pub fn leads(&self, ingress: u32, egress: u32) -> bool {
        self.ports[ingress as usize].contains(&egress)
    }

    /// Strikes out members whose packets can be in no queue that is stalled or that the others pause.
    pub fn strike_out(&self, world: &World, set: &mut Set, stalled: &Stalled) {
        loop {
            let paused = set.keys().map(|member| member.upstream(world).0);
            let still: BTreeSet<u32> = paused.chain(stalled.iter().map(|&(port, _)| port)).collect();
            let before = set.len();
            set.retain(|member, _| {
                let ingress = match *member {
                    Member::Account(account) => account / world.lanes(),
                    Member::Queue(_) if self.counts => world.peer(member.upstream(world).0),
                    Member::Queue(_) | Member::Root(_) => return true,
                };
                !self.ports[ingress as usize].is_disjoint(&still)
            });
            if set.len() == before {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_routes_with_a_cycle_allow_a_deadlock() {
        let allows = |topology: &str, balancing: &str| {
            let link = "{ rate = \"100Gbps\", delay = \"1us\" }";
            let text = format!(
                "[topology]\n{}\n{balancing}\n\
                 [[traffic]]\nkind = \"permutation\"\nsize = \"10kB\"\n",
                topology.replace("LINK", link)
            );
            let read = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
            let plan = xoff_plan::load("test.toml", text.as_bytes(), &[], &read).expect("a scenario").plan;
            Reach::new(&plan).allows_deadlock()
        };
        let leaf_spine = "kind = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 4\n\
                          host_link = LINK\nfabric_link = LINK";
        let torus = "kind = \"torus-2d\"\nwidth = 4\nheight = 4\nhosts_per_switch = 1\nlink = LINK";
        assert!(!allows(leaf_spine, ""));
        assert!(
            !allows(leaf_spine, "[routing]\nload_balancing = \"spray\""),
            "each packet's path is one of them"
        );
        assert!(allows(torus, ""));
    }
}
