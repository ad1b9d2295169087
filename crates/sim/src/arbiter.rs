//! An arbiter that knows all and decides at once who sends: an upper bound to hold schemes against, and no
//! scheme (YAPS's *ideal*, after pFabric: shortest remaining flow first).
//!
//! It has a list of the flows that have not been sent whole, in the order of what is not acknowledged of them.
//! When a flow begins, or has been sent whole, it goes through the list and lets each flow send whose source and
//! destination no flow before it has. Who is not among them any more stops behind the packet on its wire. Packets
//! still cross real queues.
//!
//! A destination is free when the last packet for it has left its source: packets of two sources may then meet in
//! front of it. Under a strict matching it is free when the last packet has arrived.

use crate::core::{Core, kind};
use xoff_plan::plan::{Arbiter as Rule, Plan};

/// Its list, and who may send.
pub struct Arbiter {
    strict: bool,
    /// Flows that have begun and have not been sent whole.
    list: Vec<u32>,
    /// By flow: it may send.
    active: Vec<bool>,
    /// By node: taken as a source, and as a destination.
    taken: Vec<[bool; 2]>,
    /// By node: flows that have been sent whole, and are not there.
    arriving: Vec<u32>,
}

impl Arbiter {
    /// That of a plan, if it has one.
    pub fn new(plan: &Plan) -> Option<Self> {
        let nodes = plan.topology.nodes.len();
        plan.arbiter.map(|rule| Self {
            strict: rule == Rule::SrptStrict,
            list: Vec::new(),
            active: vec![false; plan.flows.len()],
            taken: vec![[false; 2]; nodes],
            arriving: vec![0; nodes],
        })
    }

    /// Whether a flow may send.
    pub fn lets(&self, flow: u32) -> bool {
        self.active[flow as usize]
    }
}

impl Core<'_> {
    /// A flow begins.
    #[cold]
    pub fn arbiter_begins(&mut self, flow: u32) {
        let Some(arbiter) = &mut self.arbiter else { return };
        arbiter.list.push(flow);
        self.arbitrate();
    }

    /// A flow has been sent whole.
    #[cold]
    pub fn arbiter_sent(&mut self, flow: u32) {
        let Some(arbiter) = &mut self.arbiter else { return };
        arbiter.list.retain(|&f| f != flow);
        arbiter.arriving[self.plan.flows[flow as usize].dst as usize] += 1;
        self.arbitrate();
    }

    /// A flow has arrived whole.
    #[cold]
    pub fn arbiter_delivered(&mut self, flow: u32) {
        let Some(arbiter) = &mut self.arbiter else { return };
        arbiter.arriving[self.plan.flows[flow as usize].dst as usize] -= 1;
        if arbiter.strict {
            self.arbitrate();
        }
    }

    /// Goes through the list.
    fn arbitrate(&mut self) {
        let Some(mut arbiter) = self.arbiter.take() else { return };
        let left = |&flow: &u32| {
            let sender = &self.senders[flow as usize].transport;
            (sender.total - sender.una, flow)
        };
        arbiter.list.sort_unstable_by_key(left);
        arbiter.taken.fill([false; 2]);
        for &flow in &arbiter.list {
            let f = &self.plan.flows[flow as usize];
            let (src, dst) = (f.src as usize, f.dst as usize);
            let busy = arbiter.strict && arbiter.arriving[dst] > 0;
            let lets = !arbiter.taken[src][0] && !arbiter.taken[dst][1] && !busy;
            if lets {
                arbiter.taken[src][0] = true;
                arbiter.taken[dst][1] = true;
            }
            if lets == std::mem::replace(&mut arbiter.active[flow as usize], lets) {
                continue;
            }
            if lets {
                // It joins its ring by an event of its own, at the same time.
                self.post(self.now, kind::PACE, flow, 0);
            } else {
                if self.senders[flow as usize].in_ring {
                    self.leave_ring(flow);
                }
                self.senders[flow as usize].hold();
            }
        }
        self.arbiter = Some(arbiter);
    }
}
