//! The ends of flows under RUD: their timers, credit and probes, and what they answer.

use super::{RudParams, Source};
use crate::congestion_control::CongestionControlParams;
use crate::congestion_control::nscc_rccc::wanted;
use crate::congestion_control::rccc::Source as Credit;
use crate::congestion_control::seam::{Departure, Loss};
use crate::transport::FlowWindow;
use crate::transport::keys::LARGEST_WINDOW;
use crate::transport::retries;
use crate::transport::seam::{
    self, Answer, AnswerKind, Arrival, Asks, Named, Numbers, Parameters, Post, Received, Reply, Report,
    Start, Timer,
};
use std::fmt::{self, Write};
use xoff_kernel::time::Time;
use xoff_net::text::count;
use xoff_net::units::Span;

/// The sender of a flow, beside its numbers.
#[derive(Clone, Debug)]
pub struct Sender {
    source: Source,
    /// Under RCCC, alone or beside a window.
    credit: Option<CreditOf>,
    /// The last NACK was of a packet in flight.
    trimmed: bool,
    /// Losses inferred from the last ACK.
    inferred: u32,
    /// The probe that leaves now.
    probe: Option<u32>,
    timer: Timer,
}

/// The credit of a flow, and the sizes of its packets.
#[derive(Clone, Copy, Debug)]
struct CreditOf {
    source: Credit,
    full: u64,
    last: u64,
}

impl CreditOf {
    /// The credit_target of the packet that has just left.
    fn target(&self, numbers: &Numbers, source: &Source) -> u32 {
        let new = match numbers.total - numbers.highest {
            0 => 0,
            packets => u64::from(packets - 1) * self.full + self.last,
        };
        let most = source.window().map_or(u64::MAX, |cwnd| wanted(cwnd, self.full));
        self.source.target(new, u64::from(source.waiting(numbers)) * self.full, most)
    }
}

impl Sender {
    /// When a sender without credit, and with nothing in flight, has waited too long.
    fn silence(&self, params: &RudParams) -> Option<Time> {
        let credit = self.credit.as_ref().filter(|_| self.source.in_flight() == 0)?;
        credit.source.deadline(|times| params.timeout(times))
    }

    /// Sees to it that an event comes at the deadline or before.
    fn arm(&mut self, params: &RudParams, numbers: &Numbers, now: Time, post: Post<'_>) {
        let probe = self.source.probe_due().map(|due| due.max(now));
        let deadlines = [self.source.deadline(numbers), self.silence(params), probe];
        if let Some(deadline) = deadlines.into_iter().flatten().min() {
            self.timer.expect(deadline, post);
        }
    }
}

impl seam::Sender for Sender {
    type Params = RudParams;

    fn new(_: &RudParams, control: &CongestionControlParams, start: Start) -> Self {
        let window = start.window.window;
        let (full, last) = (u64::from(start.full), u64::from(start.last));
        let credit = control.rccc().map(|_| CreditOf {
            source: Credit::new(u64::from(window) * full, start.full),
            full,
            last,
        });
        let source = match control {
            CongestionControlParams::Rccc(_) => Source::new(window).without_window(),
            _ => Source::new(window),
        };
        Self { source, credit, trimmed: false, inferred: 0, probe: None, timer: Timer::default() }
    }

    fn on_sent(
        &mut self,
        params: &RudParams,
        numbers: &mut Numbers,
        now: Time,
        packet: Departure,
        post: Post<'_>,
    ) -> Asks {
        let credit = self.credit.as_mut().is_none_or(|credit| {
            credit.source.spend(packet.size);
            credit.source.may_send()
        });
        let ack = self.source.on_sent(params, numbers, (packet.psn, packet.again), credit, now);
        self.arm(params, numbers, now, post);
        Asks { ack, credit: self.credit.as_ref().map_or(0, |credit| credit.target(numbers, &self.source)) }
    }

    fn on_answer(
        &mut self,
        params: &RudParams,
        numbers: &mut Numbers,
        now: Time,
        answer: &Answer,
        post: Post<'_>,
    ) -> bool {
        let &Answer { kind, number, ahead, bits, credit: granted, .. } = answer;
        self.trimmed = kind == AnswerKind::Nack && self.source.on_nack(params, numbers, number);
        let progress = match kind {
            AnswerKind::Ack => self.source.on_ack(numbers, number, Named { first: answer.named(), bits }),
            AnswerKind::ProbeAck => self.source.on_ack(numbers, number, Named { first: number + 1, bits }),
            AnswerKind::Nack | AnswerKind::Pull => false,
        };
        self.inferred = match kind {
            AnswerKind::Ack if params.infers_losses => self.source.infer_losses(numbers),
            AnswerKind::ProbeAck => {
                let lost = self.source.on_probe_ack(params, numbers, ahead, now);
                lost + self.source.infer_losses(numbers)
            }
            _ => 0,
        };
        if let Some(probes) = params.probes
            && matches!(kind, AnswerKind::Ack | AnswerKind::ProbeAck)
        {
            self.source.await_probe(probes, numbers, now);
        }
        if let Some(credit) = &mut self.credit {
            credit.source.on_answer(now);
            if self.inferred > 0 {
                credit.source.on_inferred_loss();
            }
            let granted = if kind == AnswerKind::Pull { Some(number) } else { granted };
            granted.into_iter().for_each(|number| credit.source.on_credit(number));
            self.source.set_credit(numbers, credit.source.may_send());
        }
        if numbers.complete() {
            self.source.release();
        } else if self.source.gave_up() {
            numbers.give_up();
            return true;
        } else {
            self.arm(params, numbers, now, post);
        }
        progress
    }

    fn on_timer(&mut self, params: &RudParams, numbers: &mut Numbers, now: Time, post: Post<'_>) -> u32 {
        if !self.timer.expires(now) || numbers.complete() {
            return 0;
        }
        self.probe = params.probes.and_then(|probes| self.source.take_probe(probes, now));
        let mut lost = self.source.on_time(params, numbers, now);
        if self.source.gave_up() {
            return lost;
        }
        let silent = self.silence(params).is_some_and(|at| at <= now);
        if let Some(credit) = &mut self.credit
            && (silent || lost > 0)
        {
            credit.source.on_timeout(now);
            self.source.set_credit(numbers, credit.source.may_send());
            lost = lost.max(1);
        }
        self.arm(params, numbers, now, post);
        lost
    }

    fn take_probe(&mut self) -> Option<u32> {
        self.probe.take()
    }

    fn gave_up(&self) -> bool {
        self.source.gave_up()
    }

    fn release(&mut self) {
        self.source.release();
    }

    fn set_window(&mut self, numbers: &mut Numbers, window: u32) -> bool {
        self.source.set_window(numbers, window);
        true
    }

    fn report(&self, _: &Numbers, answer: &Answer) -> Report {
        Report {
            acknowledged: self.source.acknowledged(),
            in_flight: self.source.in_flight(),
            loss: self.trimmed.then_some(Loss::Trimmed { last_hop: answer.ahead != 0 }),
            inferred: self.inferred,
        }
    }
}

impl seam::Receiver for super::Receiver {
    fn new(_: &Start) -> Self {
        Self::default()
    }

    fn on_data(&mut self, ack_every: u32, packet: Arrival) -> Received {
        let got = self.receive(ack_every, packet);
        Received {
            reply: got.ack.map_or(Reply::Silent, |_| Reply::Ack(self.expected)),
            duplicate: got.duplicate,
            expected: self.expected,
            named: got.ack.unwrap_or_default(),
        }
    }

    fn on_header(&mut self, psn: u32, _: u32, last_hop: bool) -> (Reply, Named) {
        if self.is_missing(psn) {
            // Its distance from the number says whether the last hop has trimmed it.
            return (Reply::Nack(psn), Named { first: psn + u32::from(last_hop), bits: 0 });
        }
        (Reply::Ack(self.expected), self.names(psn))
    }

    fn on_probe(&self) -> (u32, u64) {
        (self.expected, self.names(self.expected).bits)
    }
}

impl Parameters for RudParams {
    fn describe(&self, out: &mut String, windows: &[FlowWindow]) -> fmt::Result {
        let windows = windows.iter().map(|f| f.window);
        let window = match windows.clone().min().zip(windows.max()) {
            None => "none".to_string(),
            Some((least, _)) if least + 1 >= LARGEST_WINDOW => "set by the congestion control".to_string(),
            Some((least, most)) if least == most => count(most.into(), "packet"),
            Some((least, most)) => format!("{least} to {}", count(most.into(), "packet")),
        };
        writeln!(
            out,
            "transport: rud (packets in any order, window {window};\n  \
             RTO_INIT {}{}{}{})",
            Span(self.rto),
            match (self.infers_losses, self.probes) {
                (false, _) => "",
                (true, None) => ", losses inferred from packets out of order",
                (true, Some(_)) => ", losses inferred from packets out of order and from probes",
            },
            retries::describe(", a sender gives up after", self.retries, " of a packet"),
            retries::describe(", or after", self.nack_retries, " of one for NACKs"),
        )
    }
}
