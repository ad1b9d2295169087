//! Receivers that request each packet after a flow's first window: the PULLs of each port.

use crate::core::Core;
use crate::kind;
use crate::packet::{Kind, Packet};
use std::collections::VecDeque;
use xoff_kernel::time::{Time, serialisation};
use xoff_plan::plan::Plan;

/// The PULLs of one link of a host. Flows take turns.
#[derive(Clone, Debug)]
pub struct PullQueue {
    flows: VecDeque<u32>,
    /// Time between two PULLs: that of a full packet on the link.
    interval: Time,
    /// When the next one may leave.
    free_at: Time,
    /// An event is pending at `free_at`.
    armed: bool,
}

/// By port: the PULLs that leave by it. Empty where receivers request nothing.
pub fn pull_queues(plan: &Plan) -> Vec<PullQueue> {
    if !plan.transport.kind.traits().requests {
        return Vec::new();
    }
    let full = u64::from(plan.packet.mtu + plan.packet.header);
    let queue = |rate| PullQueue {
        flows: VecDeque::new(),
        interval: serialisation(full, rate),
        free_at: 0,
        armed: false,
    };
    plan.topology.ports.iter().map(|port| queue(port.rate)).collect()
}

impl Core<'_> {
    /// A packet of `flow`, or its header, has come: the flow takes turns for the PULLs of `port` if any are due.
    pub fn request(&mut self, flow: u32, port: u32) {
        if !self.hosts.own_receivers.joins(flow) {
            return;
        }
        let queue = &mut self.hosts.pulls[port as usize];
        queue.flows.push_back(flow);
        if queue.armed {
            return;
        }
        if queue.free_at <= self.now {
            self.pull(port);
        } else {
            queue.armed = true;
            let at = queue.free_at;
            self.post(at, kind::PULL, port, 0);
        }
    }

    /// `port` may send a PULL or credit now. The caller then kicks the port.
    pub fn request_more(&mut self, port: u32) {
        if self.hosts.credits.used() { self.grant(port) } else { self.pull(port) }
    }

    /// `port` may send a PULL now: the flow whose turn it is gets it. The caller then kicks the port.
    fn pull(&mut self, port: u32) {
        let queue = &mut self.hosts.pulls[port as usize];
        queue.armed = false;
        while let Some(flow) = queue.flows.pop_front() {
            let (pull, again) = self.hosts.own_receivers.request(flow);
            if again {
                queue.flows.push_back(flow);
            }
            let Some(count) = pull else { continue };
            queue.free_at = self.now + queue.interval;
            queue.armed = !queue.flows.is_empty();
            let (at, armed) = (queue.free_at, queue.armed);
            let ends = &self.hosts.receivers[flow as usize];
            let (path, lane) = (ends.ack_path, ends.ack_lane);
            let id =
                self.packets.insert(Packet::new(Kind::Pull, flow, count, self.plan.packet.ack, lane, path));
            self.telemetry.begin(id, self.now);
            // After a change of its route the flow may leave by another port.
            let own = self.hops[path as usize];
            self.enqueue_own(own, lane, id);
            if own != port {
                self.post_decision(own);
            }
            if armed {
                self.post(at, kind::PULL, port, 0);
            }
            return;
        }
    }
}
