//! The ends of flows under NDP: their timers, and what they answer.

use super::{NdpParams, Source};
use crate::congestion_control::CongestionControlParams;
use crate::congestion_control::seam::Departure;
use crate::transport::FlowWindow;
use crate::transport::seam::{
    self, Answer, AnswerKind, Arrival, Asks, Named, Numbers, Parameters, Post, Received, Reply, Start, Timer,
};
use std::fmt::{self, Write};
use xoff_kernel::time::Time;
use xoff_net::text::count;
use xoff_net::units::Span;

/// The sender of a flow, beside its numbers.
#[derive(Clone, Debug)]
pub struct Sender {
    source: Source,
    timer: Timer,
}

impl Sender {
    /// Sees to it that an event comes at the deadline or before.
    fn arm(&mut self, params: &NdpParams, numbers: &Numbers, post: Post<'_>) {
        // An earlier event sets the next one.
        if !self.timer.is_set()
            && let Some(deadline) = self.source.deadline(numbers, params.rto)
        {
            self.timer.expect(deadline, post);
        }
    }
}

impl seam::Sender for Sender {
    type Params = NdpParams;

    fn new(_: &NdpParams, _: &CongestionControlParams, start: Start) -> Self {
        let window = start.window.window;
        // The numbers of the sender begin with the same window.
        let source = Source::new(&mut Numbers::new(u32::MAX, window), window);
        Self { source, timer: Timer::default() }
    }

    fn on_sent(
        &mut self,
        params: &NdpParams,
        numbers: &mut Numbers,
        now: Time,
        packet: Departure,
        post: Post<'_>,
    ) -> Asks {
        self.source.on_sent(numbers, packet.psn, packet.again, now);
        self.arm(params, numbers, post);
        Asks::default()
    }

    fn on_answer(
        &mut self,
        params: &NdpParams,
        numbers: &mut Numbers,
        now: Time,
        answer: &Answer,
        post: Post<'_>,
    ) -> bool {
        let progress = match answer.kind {
            AnswerKind::Pull => {
                self.source.on_pull(numbers, answer.number, now);
                false
            }
            AnswerKind::Nack => self.source.on_nack(numbers, answer.number, answer.named(), now),
            _ => self.source.on_ack(numbers, answer.number, answer.named(), now),
        };
        if numbers.complete() {
            self.source.release();
        } else {
            self.arm(params, numbers, post);
        }
        progress
    }

    fn on_timer(&mut self, params: &NdpParams, numbers: &mut Numbers, now: Time, post: Post<'_>) -> u32 {
        if !self.timer.expires(now) {
            return 0;
        }
        let late = self.source.on_time(numbers, params.rto, now);
        self.arm(params, numbers, post);
        late.into()
    }

    fn release(&mut self) {
        self.source.release();
    }
}

/// The receiver of a flow.
#[derive(Clone, Debug)]
pub struct Receiver {
    of: super::Receiver,
    /// It waits to send a PULL.
    waits: bool,
}

impl seam::Receiver for Receiver {
    fn new(_: &Start) -> Self {
        Self { of: super::Receiver::default(), waits: false }
    }

    fn on_data(&mut self, _: u32, packet: Arrival) -> Received {
        let duplicate = self.of.on_data(packet.psn, packet.total);
        let expected = self.of.expected();
        let named = Named { first: packet.psn, bits: 0 };
        Received { reply: Reply::Ack(expected), duplicate, expected, named }
    }

    fn on_header(&mut self, psn: u32, total: u32, _: bool) -> (Reply, Named) {
        let missing = self.of.on_header(psn, total);
        let expected = self.of.expected();
        let reply = if missing { Reply::Nack(expected) } else { Reply::Ack(expected) };
        (reply, Named { first: psn, bits: 0 })
    }

    fn joins(&mut self) -> bool {
        let joins = !self.waits && self.of.is_due();
        self.waits |= joins;
        joins
    }

    fn request(&mut self) -> (Option<u32>, bool) {
        let pull = self.of.pull();
        self.waits = self.of.is_due();
        (pull, self.waits)
    }
}

impl Parameters for NdpParams {
    fn timeouts_apart(&self, _: bool) -> Time {
        self.rto
    }

    fn describe(&self, out: &mut String, windows: &[FlowWindow]) -> fmt::Result {
        let windows = windows.iter().map(|f| f.window);
        let window = match windows.clone().min().zip(windows.max()) {
            None => "none".to_string(),
            Some((least, most)) if least == most => count(most.into(), "packet"),
            Some((least, most)) => format!("{least} to {}", count(most.into(), "packet")),
        };
        writeln!(
            out,
            "transport: ndp (first window {window}, then one packet for each PULL;\n  \
             timeout {})",
            Span(self.rto)
        )
    }
}
