//! The ends of flows under NDP: the state beside the common one of senders and receivers, timers and PULLs.

use crate::packet::{Kind, Packet};
use crate::{core::Core, host::selective::SelectiveReceiver, kind};
use std::collections::VecDeque;
use xoff_kernel::time::{Time, serialisation};
use xoff_kernel::wheel::{Event, Wheel};
use xoff_plan::plan::Plan;
use xoff_schemes::congestion_control::seam::Departure;
use xoff_schemes::transport::ndp::{NdpParams, PullQueue, Receiver, Source};
use xoff_schemes::transport::{TransportKind, go_back_n::Sender};

/// The sending end of a flow, beside its numbers.
#[derive(Clone, Debug)]
pub struct NdpSender {
    params: NdpParams,
    source: Source,
    /// Time of the valid event. A deadline mostly moves later: then the event sets the next one.
    timer_at: Time,
}

impl NdpSender {
    pub fn new(params: NdpParams, window: u32) -> Self {
        // The numbers of the sender begin with the same window.
        Self { params, source: Source::new(&mut Sender::new(u32::MAX, window), window), timer_at: Time::MAX }
    }

    pub fn sent(&mut self, numbers: &mut Sender, wheel: &mut Wheel, now: Time, packet: Departure) {
        self.source.on_sent(numbers, packet.psn, packet.again, now);
        self.arm(numbers, wheel, packet.flow);
    }

    pub fn on_response(
        &mut self,
        numbers: &mut Sender,
        wheel: &mut Wheel,
        now: Time,
        answer: &Packet,
    ) -> bool {
        let progress = match answer.kind {
            Kind::Pull => {
                self.source.on_pull(numbers, answer.number, now);
                false
            }
            Kind::Nack => self.source.on_nack(numbers, answer.number, answer.sacked(), now),
            _ => self.source.on_ack(numbers, answer.number, answer.sacked(), now),
        };
        if numbers.complete() {
            self.source.release();
        } else {
            self.arm(numbers, wheel, answer.flow);
        }
        progress
    }

    pub fn timeout(&mut self, numbers: &mut Sender, wheel: &mut Wheel, now: Time, flow: u32) -> bool {
        if now != self.timer_at {
            return false;
        }
        self.timer_at = Time::MAX;
        let late = self.source.on_time(numbers, self.params.rto, now);
        self.arm(numbers, wheel, flow);
        late
    }

    /// The sender has given up.
    pub fn release(&mut self) {
        self.source.release();
    }

    /// Sees to it that an event comes at the deadline or before.
    fn arm(&mut self, numbers: &Sender, wheel: &mut Wheel, flow: u32) {
        // An earlier event sets the next one.
        if self.timer_at < Time::MAX {
            return;
        }
        if let Some(deadline) = self.source.deadline(numbers, self.params.rto) {
            self.timer_at = deadline;
            wheel.push(Event::new(deadline, kind::TIMEOUT, flow, 0));
        }
    }
}

/// By port: the PULLs that leave by it. Empty under other transports.
pub fn pull_queues(plan: &Plan) -> Vec<PullQueue> {
    if !matches!(plan.transport.kind, TransportKind::Ndp(_)) {
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
        let receiver = receiver_of(&mut self.hosts.selective_receivers, flow);
        if receiver.queued || !receiver.is_due() {
            return;
        }
        receiver.queued = true;
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
            let receiver = receiver_of(&mut self.hosts.selective_receivers, flow);
            let pull = receiver.pull();
            receiver.queued = receiver.is_due();
            if receiver.queued {
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

fn receiver_of(receivers: &mut [SelectiveReceiver], flow: u32) -> &mut Receiver {
    match &mut receivers[flow as usize] {
        SelectiveReceiver::Ndp(receiver) => receiver,
        _ => unreachable!("only NDP requests packets"),
    }
}
