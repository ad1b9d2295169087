//! The check of indices, once for each run: see [`xoff_kernel::table::Table`].
//!
//! Positions in the plan's hops, ports, accounts, memories, flows and lanes are checked when a run begins. A
//! device makes all other numbers itself (packets, queues, events), or checks a scheme's at each call.

use crate::core::Core;
use xoff_kernel::table::Table;
use xoff_plan::balancing::LoadBalancing;
use xoff_plan::plan::{ENDS, LINK_DOWN, Plan};

pub fn table<C>(items: C) -> Table<C> {
    // SAFETY: only this crate indexes its tables, and the checks above cover all of its indices.
    unsafe { Table::new(items) }
}

fn within(what: &str, all: usize, numbers: impl IntoIterator<Item = u32>) {
    let wrong = numbers.into_iter().find(|&n| n as usize >= all);
    assert!(wrong.is_none(), "{what} {wrong:?} of a plan, which has {all}");
}

/// Checks every number of a plan that is an index into the tables of a run. Panics at a fault of the planner.
pub fn check(plan: &Plan) {
    let topology = &plan.topology;
    let (ports, nodes, lanes) = (topology.ports.len(), topology.nodes.len(), plan.lanes.len());
    within("port", ports, topology.ports.iter().map(|p| p.peer));
    within("node", nodes, topology.ports.iter().map(|p| p.node));
    within("port", ports, plan.receivers.iter().map(|r| r.rx));
    within("port", ports, plan.hops.iter().copied().filter(|&hop| hop < ENDS));
    // So there is a position after each one that is a port.
    assert!(plan.hops.last().is_none_or(|&hop| hop >= ENDS), "the last route of a plan has no end");
    let hops = plan.hops.len();
    let tables = || plan.faults.tables.iter();
    within("position", hops, plan.flows.iter().flat_map(|f| [f.path, f.ack_path]));
    within("position", hops, plan.detours.iter().map(|&(_, other)| other));
    within("position", hops, tables().flat_map(|t| &t.positions).map(|&(_, new)| new));
    let later = plan.faults.later_routes().chain(plan.faults.later_ack_routes());
    within("position", hops, later.map(|(_, path)| path));
    within("position", hops, plan.ate.iter().flat_map(|ate| &ate.routes).flatten().copied());
    match &plan.load_balancing {
        LoadBalancing::Ecmp => {}
        LoadBalancing::Packets(choices) => within("position", hops, choices.positions().iter().copied()),
        LoadBalancing::Labels(labels) => {
            within("position", hops, labels.routes.iter().chain(&labels.ack_routes).copied());
        }
    }
    // There are three fates: the link is down, the frame is lost, the frame is corrupted.
    within("position", hops, [plan.faults.fates + 2]);
    assert_eq!(plan.hops[plan.faults.fates as usize], LINK_DOWN, "where the fates of a plan begin");
    let flows = plan.flows.len();
    within("flow", flows, plan.faults.later_routes().map(|(flow, _)| flow));
    within("flow", flows, plan.gates.iter().flat_map(|g| &g.flows).copied());
    within("lane", lanes, plan.flows.iter().flat_map(|f| [f.lane, f.ack_lane].map(u32::from)));
    assert_eq!(plan.accounts.len(), ports * lanes, "accounts of a plan");
    assert!(plan.buffers.len() >= nodes, "each node of a plan has a buffer");
    within("buffer", plan.buffers.len(), plan.accounts.iter().filter_map(|a| a.pool));
}

impl Core<'_> {
    /// Checks a port and a lane that a scheme names. Panics at a fault of the scheme.
    #[inline(always)]
    pub fn check_place(&self, port: u32, lane: u8) {
        let exists = (port as usize) < self.egress.ports.len() && usize::from(lane) < self.lanes;
        assert!(exists, "a scheme names lane {lane} of port {port}, which does not exist");
    }

    /// The same, for a scheme that names its queues there.
    #[inline(always)]
    pub fn check_queues(&self, port: u32, lane: u8) {
        self.check_place(port, lane);
        assert!(self.egress.leaves.used(), "a scheme without queues names those of port {port}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::partition::Partition;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use xoff_schemes::flow_control::{Device, device::Queues};

    fn plan() -> Plan {
        let text = "[topology]\nkind=\"ring\"\nswitches=3\nhosts_per_switch=1\nlink={rate=\"100Gbps\",delay=\"1us\"}\n\
            [[traffic]]\nkind=\"flow\"\nsrc=\"H0\"\ndst=\"H1\"\nsize=\"1MB\"\n\
            [[failure]]\nlink=\"S0.0-S0.1\"\nat=\"10us\"\n";
        let read = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
        xoff_plan::load("test.toml", text.as_bytes(), &[], &read).expect("a scenario").plan
    }

    /// Each number of a plan that is made too large is found before a run begins.
    #[test]
    fn numbers_out_of_range_are_found() {
        check(&plan());
        let changes: [fn(&mut Plan); 12] = [
            |p| p.topology.ports[1].peer = 1_000,
            |p| p.topology.ports[1].node = 1_000,
            |p| p.hops[0] = 1_000,
            |p| p.hops.push(0),
            |p| p.flows[0].path = 1_000,
            |p| p.flows[0].ack_path = 1_000,
            |p| p.flows[0].lane = 9,
            |p| p.faults.fates += 1,
            |p| p.faults.tables[0].flows[0].path = 1_000,
            |p| p.faults.tables[0].positions.push((0, 1_000)),
            |p| drop(p.accounts.pop()),
            |p| p.accounts[0].pool = Some(1_000),
        ];
        for (i, change) in changes.into_iter().enumerate() {
            let mut plan = plan();
            change(&mut plan);
            assert!(catch_unwind(AssertUnwindSafe(|| check(&plan))).is_err(), "change {i}");
        }
    }

    /// A scheme that names a port or a lane that does not exist is stopped, in every build.
    #[test]
    fn a_scheme_is_stopped_at_the_seam() {
        let plan = plan();
        let partition = Partition::new(&plan, 1);
        let mut core = Core::new(&plan, &partition, 0, 0);
        let (ports, lanes) = (plan.topology.ports.len() as u32, plan.lanes.len() as u8);
        core.pause(ports - 1, lanes - 1);
        core.resume(ports - 1, lanes - 1);
        for (port, lane) in [(ports, 0), (0, lanes)] {
            assert!(catch_unwind(AssertUnwindSafe(|| core.pause(port, lane))).is_err());
            assert!(catch_unwind(AssertUnwindSafe(|| core.resume(port, lane))).is_err());
            assert!(catch_unwind(AssertUnwindSafe(|| core.stored(port, lane))).is_err());
        }
        // The flow control of this plan has no queues of its own.
        assert!(catch_unwind(AssertUnwindSafe(|| core.active_queues(0, 0))).is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| core.queue_bytes(0, 0, 1))).is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| core.is_paused(0, 0, 1))).is_err());
    }
}
