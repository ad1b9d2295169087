//! The ends of flows under TCP: the state beside the common one of senders, and its timer.

use crate::{kind, packet::Packet};
use xoff_kernel::time::Time;
use xoff_kernel::wheel::{Event, Wheel};
use xoff_schemes::congestion_control::seam::Departure;
use xoff_schemes::transport::go_back_n::Sender;
use xoff_schemes::transport::newreno::{Congestion, NewRenoParams};

/// The sending end of a flow, beside its numbers.
#[derive(Clone, Debug)]
pub struct TcpSender {
    params: NewRenoParams,
    congestion: Congestion,
    /// Time of the valid event. The deadline mostly moves later: then the event sets the next one. If it
    /// moves earlier, the obsolete event is recognised by its time.
    timer_at: Time,
}

impl TcpSender {
    pub fn new(params: NewRenoParams) -> Self {
        Self { params, congestion: Congestion::new(&params), timer_at: Time::MAX }
    }

    pub fn sent(&mut self, numbers: &mut Sender, wheel: &mut Wheel, now: Time, packet: Departure) {
        self.congestion.on_sent(&self.params, numbers, now, packet.psn, packet.again);
        self.arm(wheel, packet.flow);
    }

    pub fn on_response(&mut self, numbers: &mut Sender, wheel: &mut Wheel, now: Time, ack: &Packet) -> bool {
        let progress = self.congestion.on_ack(&self.params, numbers, now, ack.number, ack.marked);
        self.arm(wheel, ack.flow);
        progress
    }

    pub fn timeout(&mut self, numbers: &mut Sender, wheel: &mut Wheel, now: Time, flow: u32) -> bool {
        if now != self.timer_at {
            return false;
        }
        self.timer_at = Time::MAX;
        let late = now >= self.congestion.deadline() && self.congestion.on_timeout(&self.params, numbers);
        self.arm(wheel, flow);
        late
    }

    /// Sees to it that an event comes at the deadline or before.
    fn arm(&mut self, wheel: &mut Wheel, flow: u32) {
        let deadline = self.congestion.deadline();
        if deadline < self.timer_at {
            self.timer_at = deadline;
            wheel.push(Event::new(deadline, kind::TIMEOUT, flow, 0));
        }
    }
}
