//! Transports whose receivers keep early packets and whose senders retransmit single packets: IRN, TCP and NDP.

use crate::host::{controls::Departure, irn::IrnSender, ndp::NdpSender, tcp::TcpSender};
use crate::packet::Packet;
use xoff_kernel::{time::Time, wheel::Wheel};
use xoff_plan::plan::Plan;
use xoff_schemes::transport::go_back_n::{Reply, Sender};
use xoff_schemes::transport::{TransportKind, irn, ndp, newreno};

/// The sending end of a flow, beside its numbers.
#[derive(Clone, Debug)]
pub enum SelectiveSender {
    Irn(IrnSender),
    /// Apart, for it is twice as large.
    Tcp(Box<TcpSender>),
    Ndp(Box<NdpSender>),
}

/// The senders of all flows; none under go-back-N.
pub fn senders(plan: &Plan) -> Vec<SelectiveSender> {
    match plan.transport.kind {
        TransportKind::GoBackN => Vec::new(),
        TransportKind::Irn { .. } => {
            plan.irn.iter().map(|f| SelectiveSender::Irn(IrnSender::new(plan, f))).collect()
        }
        TransportKind::Tcp(params) => {
            vec![SelectiveSender::Tcp(Box::new(TcpSender::new(params))); plan.flows.len()]
        }
        TransportKind::Ndp(params) => {
            let senders = plan.irn.iter().map(|f| Box::new(NdpSender::new(params, f.window)));
            senders.map(SelectiveSender::Ndp).collect()
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
    };
    vec![receiver; plan.flows.len()]
}

impl SelectiveSender {
    #[inline]
    pub fn sent(&mut self, numbers: &mut Sender, wheel: &mut Wheel, now: Time, packet: Departure) {
        match self {
            Self::Irn(irn) => irn.sent(numbers, wheel, now, packet),
            Self::Ndp(ndp) => ndp.sent(numbers, wheel, now, packet),
            Self::Tcp(tcp) => tcp.sent(numbers, wheel, now, packet),
        }
    }

    /// An ACK or NACK has arrived. Returns whether `una` advanced.
    #[inline]
    pub fn on_response(&mut self, numbers: &mut Sender, wheel: &mut Wheel, now: Time, ack: &Packet) -> bool {
        match self {
            Self::Irn(irn) => irn.on_response(numbers, wheel, now, ack),
            Self::Ndp(ndp) => ndp.on_response(numbers, wheel, now, ack),
            Self::Tcp(tcp) => tcp.on_response(numbers, wheel, now, ack),
        }
    }

    /// A timer event expires. Returns whether it is a timeout.
    pub fn timeout(&mut self, numbers: &mut Sender, wheel: &mut Wheel, now: Time, flow: u32) -> bool {
        match self {
            Self::Irn(irn) => irn.timeout(numbers, wheel, now, flow),
            Self::Ndp(ndp) => ndp.timeout(numbers, wheel, now, flow),
            Self::Tcp(tcp) => tcp.timeout(numbers, wheel, now, flow),
        }
    }
}

#[derive(Clone, Debug)]
pub enum SelectiveReceiver {
    Irn(irn::Receiver),
    Tcp(newreno::Receiver),
    Ndp(ndp::Receiver),
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
}

impl SelectiveReceiver {
    /// Packet `psn` of `total` reached the receiver of `flow`.
    pub fn receive(&mut self, plan: &Plan, flow: u32, psn: u32, total: u32) -> Received {
        let f = &plan.flows[flow as usize];
        let payload = |packets: u32| (u64::from(packets) * u64::from(plan.packet.mtu)).min(f.size);
        let (before, expected, duplicate, reply) = match self {
            Self::Irn(receiver) => {
                let before = receiver.expected;
                let window = plan.irn[flow as usize].window;
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
        };
        Received { reply, duplicate, in_order: payload(expected) - payload(before), expected }
    }
}
