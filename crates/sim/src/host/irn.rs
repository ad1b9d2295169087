//! The ends of flows under IRN: the state beside the common one of senders and receivers, and its timers.

use crate::kind;
use crate::packet::{Kind, Packet};
use xoff_kernel::time::Time;
use xoff_kernel::wheel::{Event, Wheel};
use xoff_plan::plan::{FlowWindow, Plan};
use xoff_schemes::congestion_control::seam::Departure;
use xoff_schemes::transport::irn::packet::PacketTimers;
use xoff_schemes::transport::irn::{Recovery, Timeouts, Timer};
use xoff_schemes::transport::{TransportKind, go_back_n::Sender};

/// The sending end of a flow, beside its numbers.
#[derive(Clone, Debug)]
pub struct IrnSender {
    recovery: Recovery,
    /// With a timer for each packet: instead of `recovery` and `progress`.
    packets: Option<Box<PacketTimers>>,
    timeouts: Timeouts,
    /// When `una` last advanced, or something was sent while nothing was in flight.
    progress: Time,
    /// Time of the valid event. The timeout shortens when little is in flight: other events are obsolete.
    timer_at: Time,
}

impl IrnSender {
    pub fn new(plan: &Plan, flow: &FlowWindow) -> Self {
        let TransportKind::Irn { intra, inter, timer } = plan.transport.kind else {
            unreachable!("only a plan with IRN has such flows")
        };
        let timeouts = if flow.inter { inter } else { intra };
        let packets = (timer == Timer::Packet).then(Box::default);
        Self { recovery: Recovery::default(), packets, timeouts, progress: 0, timer_at: Time::MAX }
    }

    pub fn sent(&mut self, numbers: &mut Sender, wheel: &mut Wheel, now: Time, packet: Departure) {
        if let Some(packets) = &mut self.packets {
            let deadline = now + self.timeouts.of(Recovery::in_flight(numbers));
            packets.on_sent(numbers, packet.psn, packet.again, deadline);
            self.expect(Some(deadline), wheel, packet.flow);
            return;
        }
        self.recovery.on_sent(numbers, packet.psn, packet.again);
        if Recovery::in_flight(numbers) == 1 && !packet.again {
            self.progress = now;
            self.arm(numbers, wheel, packet.flow);
        }
    }

    pub fn on_response(&mut self, numbers: &mut Sender, wheel: &mut Wheel, now: Time, ack: &Packet) -> bool {
        if let Some(packets) = &mut self.packets {
            let progress = match ack.kind {
                Kind::Nack => packets.on_nack(numbers, ack.number, ack.sacked()),
                _ => packets.on_ack(numbers, ack.number),
            };
            if numbers.complete() {
                packets.release();
            }
            return progress;
        }
        let progress = match ack.kind {
            Kind::Nack => self.recovery.on_nack(numbers, ack.number, ack.sacked()),
            _ => self.recovery.on_ack(numbers, ack.number),
        };
        if progress {
            self.progress = now;
            if numbers.complete() {
                self.recovery.release();
            } else if Recovery::in_flight(numbers) > 0 {
                self.arm(numbers, wheel, ack.flow);
            }
        }
        progress
    }

    pub fn timeout(&mut self, numbers: &mut Sender, wheel: &mut Wheel, now: Time, flow: u32) -> bool {
        if now != self.timer_at {
            return false;
        }
        self.timer_at = Time::MAX;
        if let Some(packets) = &mut self.packets {
            let late = packets.on_time(numbers, now);
            let next = packets.next_deadline();
            self.expect(next, wheel, flow);
            return late;
        }
        let in_flight = Recovery::in_flight(numbers);
        if in_flight == 0 {
            return false;
        }
        let late = now >= self.progress + self.timeouts.of(in_flight);
        if late {
            self.recovery.on_timeout(numbers);
            self.progress = now;
        }
        self.arm(numbers, wheel, flow);
        late
    }

    /// The sender has given up.
    pub fn release(&mut self) {
        match &mut self.packets {
            Some(packets) => packets.release(),
            None => self.recovery.release(),
        }
    }

    /// Sees to it that an event comes at the timeout or before.
    fn arm(&mut self, numbers: &Sender, wheel: &mut Wheel, flow: u32) {
        let deadline = self.progress + self.timeouts.of(Recovery::in_flight(numbers));
        self.expect(Some(deadline), wheel, flow);
    }

    /// The same for a deadline, if there is one.
    fn expect(&mut self, deadline: Option<Time>, wheel: &mut Wheel, flow: u32) {
        if let Some(deadline) = deadline
            && deadline < self.timer_at
        {
            self.timer_at = deadline;
            wheel.push(Event::new(deadline, kind::TIMEOUT, flow, 0));
        }
    }
}
