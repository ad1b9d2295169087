//! Transports whose receivers keep early packets and whose senders retransmit single packets: IRN, TCP, NDP, RUD.

use crate::core::Core;
use crate::host::{irn::IrnSender, ndp::NdpSender, rud::RudSender, tcp::TcpSender};
use crate::packet::{Kind, Packet};
use crate::switch::telemetry::Beside;
use xoff_kernel::{time::Time, wheel::Wheel};
use xoff_plan::plan::Plan;
use xoff_schemes::congestion_control::seam::{Departure, Loss};
use xoff_schemes::transport::go_back_n::{Reply, Sender};
use xoff_schemes::transport::{TransportKind, irn, ndp, newreno, rud};

/// The sending end of a flow, beside its numbers.
#[derive(Clone, Debug)]
pub enum SelectiveSender {
    Irn(IrnSender),
    /// Apart, for it is twice as large.
    Tcp(Box<TcpSender>),
    Ndp(Box<NdpSender>),
    Rud(Box<RudSender>),
}

/// The senders of all flows; none under go-back-N.
pub fn senders(plan: &Plan) -> Vec<SelectiveSender> {
    match plan.transport.kind {
        TransportKind::GoBackN => Vec::new(),
        TransportKind::Irn { .. } => {
            plan.windows.iter().map(|f| SelectiveSender::Irn(IrnSender::new(plan, f))).collect()
        }
        TransportKind::Tcp(params) => {
            vec![SelectiveSender::Tcp(Box::new(TcpSender::new(params))); plan.flows.len()]
        }
        TransportKind::Ndp(params) => {
            let senders = plan.windows.iter().map(|f| Box::new(NdpSender::new(params, f.window)));
            senders.map(SelectiveSender::Ndp).collect()
        }
        TransportKind::Rud(params) => {
            let senders = (0..plan.windows.len()).map(|flow| Box::new(RudSender::new(plan, params, flow)));
            senders.map(SelectiveSender::Rud).collect()
        }
    }
}

/// The receivers of all flows; none under go-back-N.
pub fn receivers(plan: &Plan) -> Vec<SelectiveReceiver> {
    let receiver = match plan.transport.kind {
        TransportKind::GoBackN => return Vec::new(),
        TransportKind::Irn { .. } => SelectiveReceiver::Irn(irn::Receiver::default()),
        TransportKind::Tcp(_) => SelectiveReceiver::Tcp(newreno::Receiver::default()),
        TransportKind::Ndp(_) => SelectiveReceiver::Ndp(ndp::Receiver::default()),
        TransportKind::Rud(_) => SelectiveReceiver::Rud(rud::Receiver::default()),
    };
    vec![receiver; plan.flows.len()]
}

impl SelectiveSender {
    /// Returns [`Packet::ahead`] of the packet.
    #[inline]
    pub fn sent(&mut self, numbers: &mut Sender, wheel: &mut Wheel, now: Time, packet: Departure) -> [u8; 3] {
        match self {
            Self::Irn(irn) => irn.sent(numbers, wheel, now, packet),
            Self::Ndp(ndp) => ndp.sent(numbers, wheel, now, packet),
            Self::Tcp(tcp) => tcp.sent(numbers, wheel, now, packet),
            Self::Rud(rud) => return rud.sent(numbers, wheel, now, packet),
        }
        [0; 3]
    }

    /// An ACK or NACK has arrived; ACKs may have a bitmap and credit beside them. Returns whether `una` advanced.
    #[inline]
    pub fn on_response(
        &mut self,
        numbers: &mut Sender,
        wheel: &mut Wheel,
        now: Time,
        ack: &Packet,
        beside: Beside,
    ) -> bool {
        match self {
            Self::Rud(rud) => rud.on_response(numbers, wheel, now, (ack, beside)),
            Self::Irn(irn) => irn.on_response(numbers, wheel, now, ack),
            Self::Ndp(ndp) => ndp.on_response(numbers, wheel, now, ack),
            Self::Tcp(tcp) => tcp.on_response(numbers, wheel, now, ack),
        }
    }

    /// A timer event expires. Returns the number of losses that the congestion control infers from it; 0 if it is
    /// no timeout.
    pub fn timeout(&mut self, numbers: &mut Sender, wheel: &mut Wheel, now: Time, flow: u32) -> u32 {
        match self {
            Self::Irn(irn) => irn.timeout(numbers, wheel, now, flow).into(),
            Self::Ndp(ndp) => ndp.timeout(numbers, wheel, now, flow).into(),
            Self::Tcp(tcp) => tcp.timeout(numbers, wheel, now, flow).into(),
            Self::Rud(rud) => rud.timeout(numbers, wheel, now, flow),
        }
    }

    /// The probe that leaves now, after a timer event.
    pub fn take_probe(&mut self) -> Option<u32> {
        if let Self::Rud(rud) = self { rud.take_probe() } else { None }
    }

    /// Whether the transport itself has found that the sender must give up.
    pub fn gave_up(&self) -> bool {
        if let Self::Rud(rud) = self { rud.source.gave_up() } else { false }
    }

    /// The sender has given up.
    pub fn release(&mut self) {
        match self {
            Self::Irn(irn) => irn.release(),
            Self::Ndp(ndp) => ndp.release(),
            // It has no memory of its own.
            Self::Tcp(_) => {}
            Self::Rud(rud) => rud.source.release(),
        }
    }

    /// The congestion control permits so many packets in flight.
    pub fn set_window(&mut self, numbers: &mut Sender, window: u32) -> bool {
        let Self::Rud(rud) = self else { return false };
        rud.source.set_window(numbers, window);
        true
    }

    /// What `answer`, which has just reached the transport, says to the congestion control.
    pub fn report(&self, numbers: &Sender, answer: &Packet) -> Report {
        match self {
            Self::Rud(rud) => Report {
                acknowledged: rud.source.acknowledged(),
                in_flight: rud.source.in_flight(),
                loss: rud.trimmed.then(|| Loss::Trimmed { last_hop: answer.echoed() != 0 }),
                inferred: rud.inferred,
            },
            _ => Report::in_order(numbers, answer),
        }
    }
}

/// The content of an answer for the congestion control.
pub struct Report {
    /// So many packets are acknowledged.
    pub acknowledged: u32,
    pub in_flight: u32,
    pub loss: Option<Loss>,
    /// Losses that the transport has inferred from it.
    pub inferred: u32,
}

impl Report {
    /// That of a cumulative acknowledgement.
    pub fn in_order(numbers: &Sender, answer: &Packet) -> Self {
        // A NACK that a later ACK has overtaken reports no loss.
        let lost = answer.kind == Kind::Nack && answer.number == numbers.una;
        Self {
            acknowledged: numbers.una,
            in_flight: numbers.highest - numbers.una,
            loss: lost.then_some(Loss::Missing),
            inferred: 0,
        }
    }
}

#[derive(Clone, Debug)]
pub enum SelectiveReceiver {
    Irn(irn::Receiver),
    Tcp(newreno::Receiver),
    Ndp(ndp::Receiver),
    Rud(rud::Receiver),
}

/// The effect of a received packet.
pub struct Received {
    pub reply: Reply,
    /// It had arrived before.
    pub duplicate: bool,
    /// Payload bytes that are now delivered in order.
    pub in_order: u64,
    /// Next packet in order.
    pub expected: u32,
    /// The packets that an ACK names beside those before `expected`.
    pub named: rud::Bitmap,
}

impl SelectiveReceiver {
    /// A data packet reached the receiver of its flow of `total` packets.
    pub fn receive(&mut self, plan: &Plan, packet: &Packet, total: u32) -> Received {
        let (flow, psn) = (packet.flow, packet.number);
        let mut named = rud::Bitmap::default();
        let f = &plan.flows[flow as usize];
        let payload = |packets: u32| (u64::from(packets) * u64::from(plan.packet.mtu)).min(f.size);
        let (before, expected, duplicate, reply) = match self {
            Self::Irn(receiver) => {
                let before = receiver.expected;
                let window = plan.windows[flow as usize].window;
                let got = receiver.on_data(psn, total, window, plan.transport.ack_every);
                if receiver.expected == total {
                    receiver.release();
                }
                (before, receiver.expected, got.duplicate, got.reply)
            }
            Self::Tcp(receiver) => {
                let before = receiver.expected;
                let duplicate = receiver.on_data(psn);
                (before, receiver.expected, duplicate, Reply::Ack(receiver.expected))
            }
            Self::Ndp(receiver) => {
                let before = receiver.expected();
                let duplicate = receiver.on_data(psn, total);
                (before, receiver.expected(), duplicate, Reply::Ack(receiver.expected()))
            }
            Self::Rud(receiver) => {
                let before = receiver.expected;
                let (marked, asks) = (packet.marked, packet.asks());
                let arrival = rud::Arrival { psn, total, marked, asks };
                let got = receiver.on_data(plan.transport.ack_every, arrival);
                let reply = got.ack.map_or(Reply::Silent, |_| Reply::Ack(receiver.expected));
                named = got.ack.unwrap_or_default();
                (before, receiver.expected, got.duplicate, reply)
            }
        };
        Received { reply, duplicate, in_order: payload(expected) - payload(before), expected, named }
    }
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
        let (kind, number, named) = match &mut self.hosts.selective_receivers[flow as usize] {
            SelectiveReceiver::Ndp(receiver) => {
                let missing = receiver.on_header(psn, total);
                let kind = if missing { Kind::Nack } else { Kind::Ack };
                let first = psn.max(receiver.expected());
                (kind, receiver.expected(), rud::Bitmap { first, bits: 0 })
            }
            SelectiveReceiver::Rud(receiver) if receiver.on_header(psn) => {
                // Its distance from the number says whether the last hop has trimmed it.
                (Kind::Nack, psn, rud::Bitmap { first: psn + u32::from(packet.last_hop()), bits: 0 })
            }
            SelectiveReceiver::Rud(receiver) => (Kind::Ack, receiver.expected, receiver.names(psn)),
            _ => unreachable!("the plan refuses trimmed packets under other transports"),
        };
        let mut answer = Packet::new(kind, flow, number, self.plan.packet.ack, lane, path);
        answer.ahead = Packet::three_bytes(named.first - number);
        self.packets[id] = answer;
        let credit = if kind == Kind::Ack { self.hosts.credits.in_ack(flow) } else { None };
        self.telemetry.keep_beside(id, named.bits, credit);
        self.telemetry.was_congested(id);
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
}
