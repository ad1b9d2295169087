//! The ends of flows under TCP: their timers, and what they answer.

use super::dctcp::ONE;
use super::newreno::{self, Congestion, NewRenoParams, first_window};
use crate::congestion_control::CongestionControlParams;
use crate::congestion_control::seam::Departure;
use crate::transport::FlowWindow;
use crate::transport::seam::{
    self, Answer, Arrival, Asks, Named, Numbers, Parameters, Post, Received, Reply, Start, Timer,
};
use std::fmt::{self, Write};
use xoff_kernel::time::Time;
use xoff_net::text::count;
use xoff_net::units::Span;

/// The sender of a flow, beside its numbers.
#[derive(Clone, Debug)]
pub struct Sender {
    congestion: Congestion,
    timer: Timer,
}

impl seam::Sender for Sender {
    type Params = NewRenoParams;

    fn new(params: &NewRenoParams, _: &CongestionControlParams, _: Start) -> Self {
        Self { congestion: Congestion::new(params), timer: Timer::default() }
    }

    fn on_sent(
        &mut self,
        params: &NewRenoParams,
        numbers: &mut Numbers,
        now: Time,
        packet: Departure,
        post: Post<'_>,
    ) -> Asks {
        self.congestion.on_sent(params, numbers, now, packet.psn, packet.again);
        self.timer.expect(self.congestion.deadline(), post);
        Asks::default()
    }

    fn on_answer(
        &mut self,
        params: &NewRenoParams,
        numbers: &mut Numbers,
        now: Time,
        answer: &Answer,
        post: Post<'_>,
    ) -> bool {
        let progress = self.congestion.on_ack(params, numbers, now, answer.number, answer.marked);
        self.timer.expect(self.congestion.deadline(), post);
        progress
    }

    fn on_timer(&mut self, params: &NewRenoParams, numbers: &mut Numbers, now: Time, post: Post<'_>) -> u32 {
        if !self.timer.expires(now) {
            return 0;
        }
        let late = now >= self.congestion.deadline() && self.congestion.on_timeout(params, numbers);
        self.timer.expect(self.congestion.deadline(), post);
        late.into()
    }
}

/// The receiver of a flow.
#[derive(Clone, Debug)]
pub struct Receiver(newreno::Receiver);

impl seam::Receiver for Receiver {
    fn new(_: &Start) -> Self {
        Self(newreno::Receiver::default())
    }

    fn on_data(&mut self, _: u32, packet: Arrival) -> Received {
        let duplicate = self.0.on_data(packet.psn);
        let expected = self.0.expected;
        Received { reply: Reply::Ack(expected), duplicate, expected, named: Named::default() }
    }
}

impl Parameters for NewRenoParams {
    fn first_window(&self) -> Option<u32> {
        Some(first_window(self))
    }

    fn reads_marks(&self) -> bool {
        self.dctcp.is_some()
    }

    fn describe(&self, out: &mut String, _: &[FlowWindow]) -> fmt::Result {
        let receive = match self.receive_window {
            u32::MAX => "unlimited".to_string(),
            packets => format!("at most {}", count(packets.into(), "packet")),
        };
        writeln!(
            out,
            "transport: {} (initial window {}, receive window {receive};\n  \
             timeout {} at first, then {} to {})",
            if self.dctcp.is_some() { "tcp-dctcp" } else { "tcp-newreno" },
            count(self.initial_window.into(), "packet"),
            Span(self.initial_rto),
            Span(self.min_rto),
            Span(self.max_rto)
        )?;
        let Some(dctcp) = self.dctcp else { return Ok(()) };
        // The written value, without the rounding error of 2^-30.
        let gain = (dctcp.gain as f64 / ONE as f64 * 1e6).round() / 1e6;
        writeln!(out, "  each ACK carries the mark of its packet; g = {gain}")
    }
}
