//! What the ends of flows answer: to data, to what remains of trimmed packets, and to probes.

use crate::core::Core;
use crate::packet::{Kind, Packet};
use crate::switch::telemetry::Beside;
use xoff_plan::plan::Plan;
use xoff_schemes::transport::seam::{Answer, AnswerKind, Asks, Reply, Start};

/// The flows before they have sent anything.
pub fn starts(plan: &Plan) -> impl Iterator<Item = Start> + '_ {
    (0..plan.flows.len()).map(|i| {
        let size = plan.flows[i].size;
        Start {
            window: plan.windows.get(i).copied().unwrap_or_default(),
            full: plan.packet.mtu + plan.packet.header,
            last: plan.packet.wire_size(size, plan.packet.packets(size) - 1),
        }
    })
}

/// [`Packet::ahead`] of data.
pub fn requests(asks: Asks) -> [u8; 3] {
    Packet::requests(asks.ack, asks.credit)
}

/// An ACK, NACK, PULL or ACK of a probe, as a sender sees it.
#[inline]
pub fn answer(packet: &Packet, Beside { bits, credit, .. }: Beside) -> Answer {
    let kind = match packet.kind {
        Kind::Nack => AnswerKind::Nack,
        Kind::Pull => AnswerKind::Pull,
        Kind::ProbeAck => AnswerKind::ProbeAck,
        _ => AnswerKind::Ack,
    };
    let (number, ahead, marked) = (packet.number, packet.echoed(), packet.marked);
    Answer { kind, number, ahead, marked, bits, credit }
}

impl Core<'_> {
    /// What remains of a trimmed packet reached its receiver, which sends a NACK, or an ACK if the packet has arrived
    /// before. Returns the port to kick.
    #[inline(never)]
    pub fn receive_header(&mut self, id: u32) -> Option<u32> {
        let packet = self.packets[id];
        let (flow, psn) = (packet.flow, packet.number);
        let ends = &self.hosts.receivers[flow as usize];
        let (path, lane, total) = (ends.ack_path, ends.ack_lane, ends.total);
        let (reply, named) = self.hosts.own_receivers.on_header(flow, psn, total, packet.last_hop());
        let (kind, number) = match reply {
            Reply::Nack(number) => (Kind::Nack, number),
            Reply::Ack(number) => (Kind::Ack, number),
            Reply::Silent => unreachable!("receivers answer what remains of trimmed packets"),
        };
        let mut answer = Packet::new(kind, flow, number, self.plan.packet.ack, lane, path);
        answer.ahead = Packet::three_bytes(named.first.saturating_sub(number));
        self.packets[id] = answer;
        let credit = if kind == Kind::Ack { self.hosts.credits.in_ack(flow) } else { None };
        self.telemetry.keep_beside(id, named.bits, credit);
        self.telemetry.was_congested(id);
        if self.hosts.labelled.each_packet {
            self.label_answer(id);
        }
        let port = self.hops[path as usize];
        self.enqueue_own(port, lane, id);
        if !self.hosts.pulls.is_empty() {
            self.request(flow, port);
        }
        if self.hosts.credits.used() {
            self.request_credit(flow, port, packet.credit_target(), true);
        }
        Some(port)
    }

    /// The sender sends a probe. Returns the port to kick.
    #[cold]
    pub fn send_probe(&mut self, flow: u32, number: u32) -> u32 {
        let sender = &self.hosts.senders[flow as usize];
        let (path, lane, port) = (sender.path, sender.lane, sender.port);
        let id =
            self.packets.insert(Packet::new(Kind::Probe, flow, number, self.plan.packet.ack, lane, path));
        self.telemetry.begin(id, self.now);
        self.enqueue_own(port, lane, id);
        port
    }

    /// A probe has reached its receiver, which acknowledges it. Returns the port to kick.
    #[inline(never)]
    pub fn receive_probe(&mut self, id: u32) -> u32 {
        let probe = self.packets[id];
        let ends = &self.hosts.receivers[probe.flow as usize];
        let (path, lane) = (ends.ack_path, ends.ack_lane);
        let (expected, bits) = self.hosts.own_receivers.on_probe(probe.flow);
        let mut ack = Packet::new(Kind::ProbeAck, probe.flow, expected, self.plan.packet.ack, lane, path);
        ack.ahead = Packet::three_bytes(probe.number);
        self.packets[id] = ack;
        self.telemetry.keep_bits(id, bits);
        let port = self.hops[path as usize];
        self.enqueue_own(port, lane, id);
        port
    }
}
