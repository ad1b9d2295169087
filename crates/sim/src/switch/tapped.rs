//! The packets and frames that a tapped port sends and its peer receives.

use crate::outcome::{DropReason, tap::*};
use crate::packet::{Kind, Packet};
use crate::switch::telemetry::Beside;
use crate::{core::Core, faults, features::Used, switch::port::Wire, tap::Taps};
use xoff_kernel::time::Time;
use xoff_schemes::flow_control::ControlFrame;
use xoff_schemes::transport::keys::Nacks;

impl Core<'_> {
    /// Records a packet that `port` begins to send; its last bit is due at `arrival`, unless it is `lost`.
    #[cold]
    pub fn tap(&mut self, port: u32, id: u32, arrival: Time, lost: bool) {
        let peer = self.egress.ports[port as usize].peer;
        if !self.taps.see(port, peer) {
            return;
        }
        let packet = self.packets[id];
        let what = self.crosser(&packet, self.telemetry.beside(id), |slot| self.frames.get(slot));
        let fate = || faults::reason(self.hops[packet.hop as usize + 1]);
        let damaged = lost && fate() == DropReason::FrameCorrupted;
        let taps = &mut self.taps;
        if taps.tapped[peer as usize] && (!lost || damaged) {
            taps.seen.push(Crossing { at: arrival, port: peer, sent: false, damaged, what: what.clone() });
        }
        if taps.tapped[port as usize] {
            taps.seen.push(Crossing { at: self.now, port, sent: true, damaged: false, what });
        }
    }

    /// A packet as it crosses a link, with the bitmap of an ACK; `frame` has the content of control packets.
    pub fn crosser<'f>(
        &self,
        packet: &Packet,
        Beside { bits, credit, label }: Beside,
        frame: impl FnOnce(u32) -> &'f ControlFrame,
    ) -> Crosser {
        let traits = self.plan.transport.kind.traits();
        let expected = packet.number;
        let carries = match packet.kind {
            Kind::Free | Kind::Replay | Kind::Word => unreachable!("a packet that is sent is one"),
            Kind::Control => return Crosser::Frame(frame(packet.number).emit([0; 6]).into()),
            Kind::Data => Carries::Data { psn: packet.number },
            Kind::Ack => match (credit, packet.sacked()) {
                (Some(credit), first) => Carries::CreditedAck { expected, first, bits, credit },
                (None, first) if bits != 0 => Carries::Sack { expected, first, bits },
                (None, arrived) => {
                    Carries::Ack { expected, arrived: traits.acks_name_arrival.then_some(arrived) }
                }
            },
            Kind::Nack => match traits.nacks {
                Nacks::Missing => Carries::Nack { expected, arrived: None },
                Nacks::MissingAndArrived => Carries::Nack { expected, arrived: Some(packet.sacked()) },
                Nacks::Trimmed => Carries::Trimmed { psn: packet.number, last_hop: packet.echoed() != 0 },
            },
            Kind::Cnp => Carries::Cnp,
            Kind::Header => Carries::Header { psn: packet.number, last_hop: packet.last_hop() },
            Kind::Probe => Carries::Probe { number: packet.number },
            Kind::ProbeAck => Carries::ProbeAck { expected, bits, number: packet.echoed() },
            Kind::Pull if traits.requests => Carries::Pull { count: packet.number },
            Kind::Pull => Carries::Credit { number: packet.number },
        };
        let label = label.map(|label| label.number);
        Crosser::Packet { flow: packet.flow, lane: packet.lane, carries, marked: packet.marked, label }
    }

    /// Has every wire that is tapped looked at.
    pub fn begin_taps(&mut self, taps: Taps) {
        self.taps = taps;
        self.features = Used::All;
        for port in 0..self.egress.ports.len() as u32 {
            let wire = self.egress.ports[port as usize].wire;
            if wire != Wire::Inner && self.taps.see(port, self.egress.ports[port as usize].peer) {
                self.make_odd(port);
            }
        }
    }
}
