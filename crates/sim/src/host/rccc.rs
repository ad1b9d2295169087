//! The receiving ends of flows under RCCC, alone or beside NSCC: the credit of each flow and link.

use crate::core::Core;
use crate::kind;
use crate::outcome::footprint::of;
use crate::packet::{Kind, Packet};
use xoff_plan::plan::Plan;
use xoff_schemes::congestion_control::rccc::{CreditQueue, Destination, RcccParams};

/// The credit of flows, by flow and by port. Empty under other congestion controls.
#[derive(Debug)]
pub struct Credits {
    params: RcccParams,
    flows: Vec<Destination>,
    queues: Vec<CreditQueue>,
}

/// MaxWnd of a flow in bytes, with headers.
pub fn largest(plan: &Plan, flow: usize) -> u64 {
    u64::from(plan.windows[flow].window) * u64::from(plan.packet.mtu + plan.packet.header)
}

impl Credits {
    pub fn new(plan: &Plan) -> Self {
        let Some(&params) = plan.congestion_control.rccc() else {
            let params = RcccParams { rate: 1.0, grant: 1, in_acks: false };
            return Self { params, flows: Vec::new(), queues: Vec::new() };
        };
        let flows = (0..plan.flows.len()).map(|flow| Destination::new(largest(plan, flow))).collect();
        let queues = plan.topology.ports.iter().map(|port| CreditQueue::new(&params, port.rate)).collect();
        Self { params, flows, queues }
    }

    #[inline]
    pub fn used(&self) -> bool {
        !self.queues.is_empty()
    }

    /// The number of the flow's credit so far, if its ACKs carry it.
    pub fn in_ack(&self, flow: u32) -> Option<u32> {
        self.params.in_acks.then(|| self.flows[flow as usize].number())
    }

    pub fn footprint(&self) -> u64 {
        of(&self.flows) + of(&self.queues)
    }
}

impl Core<'_> {
    /// A packet of `flow`, or its header, has come with this credit_target. `asks` if it needs credit in any case.
    /// Where the link is free, the first flow in turn gets its credit. The caller then kicks `port`.
    #[inline(never)]
    pub fn request_credit(&mut self, flow: u32, port: u32, credit_target: u32, asks: bool) {
        let receiver = &self.hosts.receivers[flow as usize];
        let complete = receiver.transport.expected == receiver.total;
        let credits = &mut self.hosts.credits;
        let of = &mut credits.flows[flow as usize];
        if complete {
            of.complete();
        }
        of.on_target(credit_target);
        let queue = &mut credits.queues[port as usize];
        queue.request(flow, of, asks);
        if queue.armed || queue.is_empty() {
            return;
        }
        if queue.free_at <= self.now {
            self.grant(port);
        } else {
            queue.armed = true;
            let at = queue.free_at;
            self.post(at, kind::PULL, port, 0);
        }
    }

    /// `port` may send credit now: the flow whose turn it is gets it. The caller then kicks the port.
    pub fn grant(&mut self, port: u32) {
        let credits = &mut self.hosts.credits;
        let queue = &mut credits.queues[port as usize];
        queue.armed = false;
        let Some(grant) = queue.grant(&credits.params, &mut credits.flows, self.now) else { return };
        queue.armed = !queue.is_empty();
        let (at, armed) = (queue.free_at, queue.armed);
        if armed {
            self.post(at, kind::PULL, port, 0);
        }
        let ends = &self.hosts.receivers[grant.flow as usize];
        let (path, lane) = (ends.ack_path, ends.ack_lane);
        let credit = Packet::new(Kind::Pull, grant.flow, grant.number, self.plan.packet.ack, lane, path);
        let id = self.packets.insert(credit);
        self.telemetry.begin(id, self.now);
        // After a change of its route the flow may leave by another port.
        let own = self.hops[path as usize];
        self.enqueue_own(own, lane, id);
        if own != port {
            self.post_decision(own);
        }
    }
}
