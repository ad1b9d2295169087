//! Taps: what crosses some ports, for captures.
//!
//! A port that is tapped, and the one at the other end of its link, send by the way of those whose
//! wires are not simply links (`Wire::Odd`), so that nobody else is asked. What a
//! port will receive is known when its peer begins to send it. The parts of a run keep what they
//! have seen until they stand still; then all that has happened is put in order and handed on.
//!
//! Pods of Zeropod are tapped in a way of their own: `zeropod/taps.rs`.

use crate::core::Core;
use crate::faults;
use crate::outcome::DropReason;
use crate::packet::Kind;
use crate::switch::port::Wire;
use std::sync::Arc;
use xoff_kernel::time::{MICROSECOND, Time};
use xoff_net::topology::PortId;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::ControlFrame;
use xoff_schemes::transport::TransportKind;

/// What is seen is handed on so often: memory holds as much of it.
pub(crate) const INTERVAL: Time = 10 * MICROSECOND;

/// What is to be seen of a run, and who wants to see it.
pub struct Tap<'s> {
    /// The ports; none of them inside a slow receiver.
    pub ports: &'s [PortId],
    /// Is handed what has crossed them, in the order of time; of one time by port, and what was
    /// received first.
    pub sink: &'s mut dyn FnMut(&[Crossing]),
}

/// A packet that crosses a port.
#[derive(Clone, Debug, PartialEq)]
pub struct Crossing {
    /// In picoseconds: of what is sent, when its first bit leaves; of what is received, when its
    /// last bit has come.
    pub at: Time,
    /// The port.
    pub port: PortId,
    /// It leaves rather than comes.
    pub sent: bool,
    /// It comes corrupted, and is dropped.
    pub damaged: bool,
    /// What it is.
    pub what: Crosser,
}

/// A packet as it crosses.
#[derive(Clone, Debug, PartialEq)]
pub enum Crosser {
    /// From one end of a flow to the other.
    Packet {
        /// The flow.
        flow: u32,
        /// Its lane on this link.
        lane: u8,
        /// What it carries.
        carries: Carries,
        /// Data are marked; an answer echoes marks.
        marked: bool,
    },
    /// Between neighbours.
    Control(Box<ControlFrame>),
    /// A whole frame without its check sequence, its source address left to fill in.
    Bytes(Arc<[u8]>),
}

/// What a packet of a flow carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// Payload.
    Data {
        /// Number of the packet in its flow, from 0.
        psn: u32,
    },
    /// An acknowledgement.
    Ack {
        /// Number of the next packet that is expected.
        expected: u32,
    },
    /// A negative acknowledgement.
    Nack {
        /// Number of the packet that is missing.
        expected: u32,
        /// Number of the packet that has come in its place, where receivers tell (IRN).
        arrived: Option<u32>,
    },
    /// A congestion notification.
    Cnp,
}

/// What a part has seen.
#[derive(Default)]
pub(crate) struct Taps {
    /// By port; empty without taps.
    tapped: Vec<bool>,
    pub seen: Vec<Crossing>,
}

impl Taps {
    /// Taps on some ports of a plan.
    pub fn new(plan: &Plan, ports: &[PortId]) -> Self {
        if ports.is_empty() {
            return Self::default();
        }
        let mut tapped = vec![false; plan.topology.ports.len()];
        for &port in ports {
            let peer = plan.topology.ports[port as usize].peer;
            let inner = plan.topology.ports[peer as usize].node == plan.topology.ports[port as usize].node;
            assert!(!inner, "nothing crosses a link inside a slow receiver");
            tapped[port as usize] = true;
        }
        Self { tapped, seen: Vec::new() }
    }

    /// Whether what `port` sends is seen, by itself or by `peer`.
    pub fn see(&self, port: u32, peer: u32) -> bool {
        let at = |port: u32| self.tapped.get(port as usize).copied().unwrap_or(false);
        at(port) || at(peer)
    }
}

impl Core<'_> {
    /// Notes a packet that `port` begins to send; its last bit is due at `arrival`, if it is not
    /// `lost` on its way.
    #[cold]
    pub fn tap(&mut self, port: u32, id: u32, arrival: Time, lost: bool) {
        let peer = self.ports[port as usize].peer;
        if !self.taps.see(port, peer) {
            return;
        }
        let packet = self.packets[id];
        let what = match packet.kind {
            Kind::Free => unreachable!("a packet that is sent is one"),
            Kind::Control => Crosser::Control(Box::new(self.frame_of(id))),
            kind => {
                let irn = matches!(self.plan.transport.kind, TransportKind::Irn { .. });
                let expected = packet.number;
                let carries = match kind {
                    Kind::Data => Carries::Data { psn: packet.number },
                    Kind::Ack => Carries::Ack { expected },
                    Kind::Nack => Carries::Nack { expected, arrived: irn.then(|| packet.sacked()) },
                    _ => Carries::Cnp,
                };
                Crosser::Packet { flow: packet.flow, lane: packet.lane, carries, marked: packet.marked }
            }
        };
        let damaged =
            lost && faults::reason(self.hops[packet.hop as usize + 1]) == DropReason::FrameCorrupted;
        let taps = &mut self.taps;
        if taps.tapped[peer as usize] && (!lost || damaged) {
            taps.seen.push(Crossing { at: arrival, port: peer, sent: false, damaged, what: what.clone() });
        }
        if taps.tapped[port as usize] {
            taps.seen.push(Crossing { at: self.now, port, sent: true, damaged: false, what });
        }
    }

    /// Has every wire that is tapped looked at.
    pub fn begin_taps(&mut self, taps: Taps) {
        self.taps = taps;
        for port in 0..self.ports.len() as u32 {
            let wire = self.ports[port as usize].wire;
            if wire != Wire::Inner && self.taps.see(port, self.ports[port as usize].peer) {
                self.make_odd(port);
            }
        }
    }
}

/// What the parts have seen, on its way to who wants to see it.
pub(crate) struct Handover<'s> {
    sink: &'s mut dyn FnMut(&[Crossing]),
    /// What has not happened yet, or not been put in order.
    pending: Vec<Crossing>,
}

impl<'s> Handover<'s> {
    pub fn new(sink: &'s mut dyn FnMut(&[Crossing])) -> Self {
        Self { sink, pending: Vec::new() }
    }

    /// Takes what a part has seen.
    pub fn take(&mut self, seen: &mut Vec<Crossing>) {
        self.pending.append(seen);
    }

    /// Hands on what has happened before `until`, of which every part has told.
    pub fn hand_on(&mut self, until: Time) {
        // No two packets cross a port in one direction at one time.
        self.pending.sort_by_key(|crossing| (crossing.at, crossing.port, crossing.sent));
        let happened = self.pending.partition_point(|crossing| crossing.at < until);
        if happened > 0 {
            (self.sink)(&self.pending[..happened]);
            self.pending.drain(..happened);
        }
    }
}
