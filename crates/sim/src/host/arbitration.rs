//! When flows begin, are sent and have left, the arbiter decides anew who sends.

use crate::{core::Core, kind};
use xoff_kernel::time::serialisation;
use xoff_plan::plan::Arbiter as Rule;

impl Core<'_> {
    fn ends(&self, flow: u32) -> (u32, u32) {
        let flow = &self.plan.flows[flow as usize];
        (flow.src, flow.dst)
    }

    #[cold]
    pub fn arbiter_begins(&mut self, flow: u32) {
        let ends = self.ends(flow);
        let Some(arbiter) = &mut self.hosts.arbiter else { return };
        arbiter.begins(flow, ends);
        self.arbitrate();
    }

    /// The last packet of a flow, of `size` bytes, begins to leave by `port`.
    #[cold]
    pub fn arbiter_sent(&mut self, flow: u32, port: u32, size: u32) {
        let ends = self.ends(flow);
        let Some(arbiter) = &mut self.hosts.arbiter else { return };
        arbiter.sent(flow, ends);
        if arbiter.rule == Rule::SrptStrict {
            let wire = serialisation(u64::from(size), self.plan.topology.ports[port as usize].rate);
            self.post(self.now + wire, kind::LEFT, flow, 0);
        }
        self.arbitrate();
    }

    /// The last packet of a flow has left.
    #[cold]
    pub fn arbiter_left(&mut self, flow: u32) {
        let ends = self.ends(flow);
        let Some(arbiter) = &mut self.hosts.arbiter else { return };
        arbiter.leaves(ends, false);
        self.arbitrate();
    }

    fn arbitrate(&mut self) {
        let Some(mut arbiter) = self.hosts.arbiter.take() else { return };
        arbiter.grant(|flow| {
            let sender = &self.hosts.senders[flow as usize].transport;
            sender.total - sender.una
        });
        for (flow, sends) in arbiter.changes.drain(..) {
            if sends {
                // It joins its ring by an event of its own, at the same time.
                self.post(self.now, kind::PACE, flow, 0);
                continue;
            }
            if self.hosts.senders[flow as usize].in_ring {
                self.leave_ring(flow);
            }
            self.hosts.senders[flow as usize].held = true;
        }
        self.hosts.arbiter = Some(arbiter);
    }
}
