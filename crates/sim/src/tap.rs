//! What crosses tapped ports.
//!
//! A port that is tapped, and the one at the other end of its link, send by the way of those whose
//! wires are not simply links (`Wire::Odd`), so that nobody else is asked. What a
//! port will receive is known when its peer begins to send it. The parts of a run keep what they
//! have seen until they stand still; then all that has happened is put in order and handed on.

use crate::core::Core;
use crate::faults;
use crate::outcome::DropReason;
use crate::outcome::tap::{Carries, Crosser, Crossing};
use crate::packet::Kind;
use crate::switch::port::Wire;
use xoff_kernel::time::Time;
use xoff_net::topology::PortId;
use xoff_plan::plan::Plan;
use xoff_schemes::transport::TransportKind;

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
            Kind::Control => Crosser::Frame(self.frame_of(id).emit([0; 6]).into()),
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
