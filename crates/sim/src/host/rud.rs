//! The ends of flows under RUD: the state beside the common one of senders, and its timers.

use crate::packet::{Kind, Packet};
use crate::{host::controls::Departure, kind};
use xoff_kernel::time::Time;
use xoff_kernel::wheel::{Event, Wheel};
use xoff_schemes::transport::go_back_n::Sender;
use xoff_schemes::transport::rud::{Bitmap, RudParams, Source};

/// The sending end of a flow, beside its numbers.
#[derive(Clone, Debug)]
pub struct RudSender {
    params: RudParams,
    pub source: Source,
    /// The last NACK was of a packet in flight.
    pub trimmed: bool,
    /// Time of the valid event. Others are obsolete.
    timer_at: Time,
}

impl RudSender {
    pub fn new(params: RudParams, window: u32) -> Self {
        Self { params, source: Source::new(window), trimmed: false, timer_at: Time::MAX }
    }

    /// Returns whether the packet asks for an ACK.
    pub fn sent(&mut self, numbers: &mut Sender, wheel: &mut Wheel, now: Time, packet: Departure) -> bool {
        let asks = self.source.on_sent(&self.params, numbers, (packet.psn, packet.again), now);
        self.arm(numbers, wheel, packet.flow);
        asks
    }

    /// An ACK with these bits, or a NACK.
    pub fn on_response(
        &mut self,
        numbers: &mut Sender,
        wheel: &mut Wheel,
        answer: &Packet,
        bits: u64,
    ) -> bool {
        self.trimmed = answer.kind == Kind::Nack && self.source.on_nack(numbers, answer.number);
        let progress = answer.kind == Kind::Ack
            && self.source.on_ack(numbers, answer.number, Bitmap { first: answer.sacked(), bits });
        if numbers.complete() {
            self.source.release();
        } else {
            self.arm(numbers, wheel, answer.flow);
        }
        progress
    }

    /// Returns the number of packets that are lost.
    pub fn timeout(&mut self, numbers: &mut Sender, wheel: &mut Wheel, now: Time, flow: u32) -> u32 {
        if now != self.timer_at || numbers.complete() {
            return 0;
        }
        self.timer_at = Time::MAX;
        let lost = self.source.on_time(numbers, now);
        self.arm(numbers, wheel, flow);
        lost
    }

    /// Sees to it that an event comes at the deadline or before.
    fn arm(&mut self, numbers: &Sender, wheel: &mut Wheel, flow: u32) {
        if let Some(deadline) = self.source.deadline(numbers)
            && deadline < self.timer_at
        {
            self.timer_at = deadline;
            wheel.push(Event::new(deadline, kind::TIMEOUT, flow, 0));
        }
    }
}
