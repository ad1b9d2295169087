//! The ends of flows under IRN: their timers, and what they answer.

use super::packet::PacketTimers;
use super::{IrnParams, Recovery, Timeouts, Timer};
use crate::congestion_control::CongestionControlParams;
use crate::congestion_control::seam::Departure;
use crate::transport::FlowWindow;
use crate::transport::seam::{
    self, Answer, AnswerKind, Arrival, Asks, Named, Numbers, Parameters, Post, Received, Reply, Start,
};
use std::fmt::{self, Write};
use xoff_kernel::time::Time;
use xoff_net::text::count;
use xoff_net::units::Span;

/// The sender of a flow, beside its numbers.
#[derive(Clone, Debug)]
pub struct Sender {
    recovery: Recovery,
    /// With a timer for each packet: instead of `recovery` and `progress`.
    packets: Option<Box<PacketTimers>>,
    timeouts: Timeouts,
    /// When `una` last advanced, or something was sent while nothing was in flight.
    progress: Time,
    /// The timeout shortens when little is in flight.
    timer: seam::Timer,
}

impl Sender {
    /// Sees to it that an event comes at the timeout or before.
    fn arm(&mut self, numbers: &Numbers, post: Post<'_>) {
        self.timer.expect(self.progress + self.timeouts.of(Recovery::in_flight(numbers)), post);
    }
}

impl seam::Sender for Sender {
    type Params = IrnParams;

    fn new(params: &IrnParams, _: &CongestionControlParams, start: Start) -> Self {
        Self {
            recovery: Recovery::default(),
            packets: (params.timer == Timer::Packet).then(Box::default),
            timeouts: if start.window.inter { params.inter } else { params.intra },
            progress: 0,
            timer: seam::Timer::default(),
        }
    }

    fn on_sent(
        &mut self,
        _: &IrnParams,
        numbers: &mut Numbers,
        now: Time,
        packet: Departure,
        post: Post<'_>,
    ) -> Asks {
        if let Some(packets) = &mut self.packets {
            let deadline = now + self.timeouts.of(Recovery::in_flight(numbers));
            packets.on_sent(numbers, packet.psn, packet.again, deadline);
            self.timer.expect(deadline, post);
            return Asks::default();
        }
        self.recovery.on_sent(numbers, packet.psn, packet.again);
        if Recovery::in_flight(numbers) == 1 && !packet.again {
            self.progress = now;
            self.arm(numbers, post);
        }
        Asks::default()
    }

    fn on_answer(
        &mut self,
        _: &IrnParams,
        numbers: &mut Numbers,
        now: Time,
        answer: &Answer,
        post: Post<'_>,
    ) -> bool {
        if let Some(packets) = &mut self.packets {
            let progress = match answer.kind {
                AnswerKind::Nack => packets.on_nack(numbers, answer.number, answer.named()),
                _ => packets.on_ack(numbers, answer.number),
            };
            if numbers.complete() {
                packets.release();
            }
            return progress;
        }
        let progress = match answer.kind {
            AnswerKind::Nack => self.recovery.on_nack(numbers, answer.number, answer.named()),
            _ => self.recovery.on_ack(numbers, answer.number),
        };
        if progress {
            self.progress = now;
            if numbers.complete() {
                self.recovery.release();
            } else if Recovery::in_flight(numbers) > 0 {
                self.arm(numbers, post);
            }
        }
        progress
    }

    fn on_timer(&mut self, _: &IrnParams, numbers: &mut Numbers, now: Time, post: Post<'_>) -> u32 {
        if !self.timer.expires(now) {
            return 0;
        }
        if let Some(packets) = &mut self.packets {
            let late = packets.on_time(numbers, now);
            if let Some(deadline) = packets.next_deadline(numbers) {
                self.timer.expect(deadline, post);
            }
            return late.into();
        }
        let in_flight = Recovery::in_flight(numbers);
        if in_flight == 0 {
            return 0;
        }
        let late = now >= self.progress + self.timeouts.of(in_flight);
        if late {
            self.recovery.on_timeout(numbers);
            self.progress = now;
        }
        self.arm(numbers, post);
        late.into()
    }

    fn release(&mut self) {
        match &mut self.packets {
            Some(packets) => packets.release(),
            None => self.recovery.release(),
        }
    }
}

/// The receiver of a flow.
#[derive(Clone, Debug)]
pub struct Receiver {
    of: super::Receiver,
    /// Packets in flight, at most.
    window: u32,
}

impl seam::Receiver for Receiver {
    fn new(start: &Start) -> Self {
        Self { of: super::Receiver::default(), window: start.window.window }
    }

    fn on_data(&mut self, ack_every: u32, packet: Arrival) -> Received {
        let Arrival { psn, total, .. } = packet;
        let got = self.of.on_data(psn, total, self.window, ack_every);
        if self.of.expected == total {
            self.of.release();
        }
        let first = if let Reply::Nack(_) = got.reply { psn } else { 0 };
        Received {
            reply: got.reply,
            duplicate: got.duplicate,
            expected: self.of.expected,
            named: Named { first, bits: 0 },
        }
    }
}

impl Parameters for IrnParams {
    fn timeouts_apart(&self, inter: bool) -> Time {
        if inter { self.inter.low } else { self.intra.low }
    }

    fn describe(&self, out: &mut String, windows: &[FlowWindow]) -> fmt::Result {
        let timers = if self.timer == Timer::Packet { ", a timer for each packet" } else { "" };
        writeln!(out, "transport: irn (selective retransmission{timers})")?;
        for (what, timeouts, group) in
            [("within datacenters", self.intra, false), ("between datacenters", self.inter, true)]
        {
            let windows = windows.iter().filter(|f| f.inter == group).map(|f| f.window);
            let Some((least, most)) = windows.clone().min().zip(windows.clone().max()) else { continue };
            let window = if least == most { most.to_string() } else { format!("{least} to {most}") };
            writeln!(
                out,
                "  {:>8} {what}: window {window} packets, timeout {} with up to {} in flight, otherwise {}",
                count(windows.count() as u64, "flow"),
                Span(timeouts.low),
                timeouts.few,
                Span(timeouts.high)
            )?;
        }
        Ok(())
    }
}
