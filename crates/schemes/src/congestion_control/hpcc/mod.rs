//! HPCC (Li et al., *HPCC: High Precision Congestion Control*, SIGCOMM 2019).
//!
//! Each device that forwards a data packet adds to it the state of the link by which the packet leaves
//! ([`Hop`]): the time, the bytes sent so far, the bytes still queued, and the rate B. The ACK carries all of
//! it to the sender. The sender keeps the last state as L. From both it computes U, the utilisation of the
//! busiest link: the bytes in flight over B·T, with T the base round-trip time. It aims at U = η. Algorithm 1
//! of the paper:
//!
//! ```text
//!   1  MeasureInflight(ack):
//!   3    for each link i:  txRate = (ack.L[i].txBytes − L[i].txBytes) / (ack.L[i].ts − L[i].ts)
//!   5                      u' = min(ack.L[i].qlen, L[i].qlen) / (B·T) + txRate / B
//!   6    u = the largest u',  τ = ack.L[i].ts − L[i].ts of that link, at most T
//!   9    U = (1 − τ/T)·U + τ/T·u
//!  11  ComputeWind(U, updateWc):
//!  12    if U ≥ η or incStage ≥ maxStage:  W = W_c/(U/η) + W_AI;  if updateWc: incStage = 0, W_c = W
//!  16    else:                             W = W_c + W_AI;        if updateWc: incStage += 1, W_c = W
//!  21  NewAck(ack):
//!  22    if ack.seq > lastUpdateSeq:  W = ComputeWind(MeasureInflight(ack), true);  lastUpdateSeq = snd_nxt
//!  25    else:                        W = ComputeWind(MeasureInflight(ack), false)
//!  27    R = W/T;  L = ack.L
//! ```
//!
//! Here everything is written for the rate R = W/T, as in the authors' simulator: R_c and R_AI in the place
//! of W_c and W_AI, R between a minimum and the line rate, where it begins. U begins at 1. The first ACK of a
//! flow only fills L, and so does the first one whose packet took another path (pathID of the paper's header,
//! the port of a [`Hop`]). Without `fast_reaction`, an option of that simulator, nothing happens in line 25.
//! Telemetry is exact, where the paper's header has 24 bits of nanoseconds and rounds lengths.

mod keys;

pub use keys::{HpccKeys, HpccPreset};

use super::seam::{self, Answer, Departure, Parameters};
use super::telemetry::{Hop, same_way};
use super::{Step, gap_at};
use std::fmt::{self, Write};
use xoff_kernel::time::{SECOND, Time};
use xoff_net::units::{Bytes, Span};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HpccParams {
    /// η, the share of a link to be used; above 0, at most 1.
    pub eta: f64,
    /// maxStage: after so many additive increases in a row comes one by U.
    pub max_stage: u32,
    /// W_AI/T.
    pub additive_increase: Step,
    pub minimum_rate: Step,
    /// The rate (but not R_c) follows every ACK, instead of one per round trip.
    pub fast_reaction: bool,
    /// T, in picoseconds, above 0.
    pub base_rtt: Time,
    /// Most hops in a packet's telemetry.
    pub hops: u8,
    /// Bytes of telemetry in each data packet and in each ACK; they are part of the packets' sizes.
    pub telemetry: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Sender {
    /// R, in bits per second.
    rate: f64,
    reference: f64,
    line: f64,
    utilisation: f64,
    inc_stage: u32,
    last_update: u32,
    /// L. It takes no memory before the first ACK.
    last: Vec<Hop>,
}

impl Sender {
    /// A flow that starts at its line rate, in bits per second.
    pub fn new(line: u64) -> Self {
        let line = line as f64;
        let (inc_stage, last_update, last) = (0, 0, Vec::new());
        Self { rate: line, reference: line, line, utilisation: 1.0, inc_stage, last_update, last }
    }

    /// R, in bits per second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Picoseconds that the next packet must wait after one of `size` wire bytes; `None` at line rate.
    pub fn on_sent(&self, size: u32) -> Option<Time> {
        (self.rate < self.line).then(|| gap_at(size, self.rate))
    }

    /// An ACK or NACK has arrived: all packets below `acknowledged` are acknowledged, `next` will be sent
    /// next, and its data packet came by `hops`.
    pub fn on_response(&mut self, params: &HpccParams, acknowledged: u32, next: u32, hops: &[Hop]) {
        let full = acknowledged > self.last_update;
        // The first ACK fills L.
        if !same_way(&self.last, hops) {
            self.last.clear();
            self.last.extend_from_slice(hops);
            self.last_update = next.max(acknowledged);
            return;
        }
        if !full && !params.fast_reaction || !self.measure(params, hops) {
            return;
        }
        self.last.copy_from_slice(hops);
        let step = params.additive_increase.of(self.line);
        let by_use = self.utilisation >= params.eta || self.inc_stage >= params.max_stage;
        let base = if by_use { self.reference / (self.utilisation / params.eta) } else { self.reference };
        let rate = base + step;
        let least = params.minimum_rate.of(self.line).min(self.line);
        self.rate = rate.clamp(least, self.line);
        if full {
            self.reference = self.rate;
            self.inc_stage = if by_use { 0 } else { self.inc_stage + 1 };
            self.last_update = next.max(acknowledged);
        }
    }

    /// Lines 1 to 10. Returns whether the measurement is valid: time must have passed on some link.
    fn measure(&mut self, params: &HpccParams, hops: &[Hop]) -> bool {
        let t = params.base_rtt as f64;
        let (mut most, mut over) = (0.0, 0);
        for (new, old) in hops.iter().zip(&self.last) {
            let Some(tau) = new.at.checked_sub(old.at).filter(|&tau| tau > 0) else { continue };
            let picoseconds_per_byte = 8.0 * SECOND as f64 / new.rate as f64;
            let queue = new.queued.min(old.queued) as f64 * picoseconds_per_byte / t;
            let sent = new.sent.saturating_sub(old.sent) as f64 * picoseconds_per_byte / tau as f64;
            if queue + sent > most {
                (most, over) = (queue + sent, tau);
            }
        }
        if over == 0 {
            return false;
        }
        let share = over.min(params.base_rtt) as f64 / t;
        self.utilisation = (1.0 - share) * self.utilisation + share * most;
        true
    }

    pub fn release(&mut self) {
        self.last = Vec::new();
    }
}

impl seam::Sender for Sender {
    type Params = HpccParams;

    fn new(_: &HpccParams, line: u64) -> Self {
        Self::new(line)
    }

    fn rate_at(&self, _: &HpccParams, _: Time) -> f64 {
        self.rate()
    }

    #[inline(never)]
    fn on_sent(&mut self, _: &HpccParams, _: Time, packet: Departure) -> Option<Time> {
        Self::on_sent(self, packet.size)
    }

    fn on_answer(&mut self, params: &HpccParams, _: Time, answer: &Answer<'_>) {
        if answer.complete {
            return self.release();
        }
        if let Some(hops) = answer.whole_path() {
            self.on_response(params, answer.una, answer.next, hops);
        }
    }

    fn release(&mut self) {
        self.release();
    }
}

impl Parameters for HpccParams {
    fn hops(&self) -> Option<u8> {
        Some(self.hops)
    }

    fn describe(&self, out: &mut String, head: &str, _: bool) -> fmt::Result {
        let (telemetry, hops) = (Bytes(self.telemetry.into()), self.hops);
        writeln!(out, "{head}hpcc ({telemetry} of telemetry in each packet and ACK, for {hops} hops)")?;
        let (increase, least) = (self.additive_increase, self.minimum_rate);
        let which = if self.fast_reaction { "every ACK" } else { "one ACK per round trip" };
        writeln!(
            out,
            "  eta {}, T {}, increases of {increase}, then by utilisation after {} of them; never below {least}; {which} changes the rate",
            self.eta,
            Span(self.base_rtt),
            self.max_stage
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Time = 1_000_000;
    const LINE: u64 = 100_000_000_000;

    fn params(max_stage: u32) -> HpccParams {
        HpccParams {
            eta: 0.95,
            max_stage,
            additive_increase: Step::Rate(40_000_000),
            minimum_rate: Step::Rate(1_000_000_000),
            fast_reaction: true,
            base_rtt: 10 * US,
            hops: 5,
            telemetry: 42,
        }
    }

    /// At 100 Gbit/s a link sends 12,500 B in 1 us, and B·T is 125,000 B.
    fn hop(port: u32, at: Time, sent: u64, queued: u64) -> Hop {
        Hop { at, sent, queued, rate: LINE, port }
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} instead of {b}");
    }

    /// By hand. T = 10 us, two links.
    ///
    /// - The first ACK fills L.
    /// - 5 us later, in the first round trip: link 1 has sent 31,250 B (half of its capacity), link 2 all of
    ///   62,500 B with 25,000 B queued before and 50,000 B after: u = 1 + 25,000/125,000 = 1.2, τ = 5 us, U =
    ///   0.5·1 + 0.5·1.2 = 1.1. Not a full update: R = 100/(1.1/0.95) + 0.04 = 86.403636…, R_c stays 100.
    /// - 20 us later, full: 100,000 B in 20 us on link 2 (0.4), no queue; link 1 sends 125,000 B (0.5): τ is
    ///   more than T, U = 0.5: R = 100/(0.5/0.95) + 0.04 is more than the line.
    /// - 2 us later, full again: link 1 sends 25,000 B (1.0) with a standing queue of 250,000 B (2.0), u = 3,
    ///   U = 0.8·0.5 + 0.2·3 = 1.0: R = R_c = 100·0.95 + 0.04.
    /// - 1 us later, fast: link 1 as before, u = 3: U = 0.9 + 0.3 = 1.2; R = 95.04/(1.2/0.95) + 0.04 = 75.28.
    #[test]
    fn the_rate_follows_the_algorithm() {
        let p = params(0);
        let mut s = Sender::new(LINE);
        s.on_response(&p, 1, 100, &[hop(1, 0, 1_000, 0), hop(2, 0, 2_000, 25_000)]);
        near(s.rate(), 1e11);
        s.on_response(&p, 50, 150, &[hop(1, 5 * US, 32_250, 0), hop(2, 5 * US, 64_500, 50_000)]);
        near(s.utilisation, 1.1);
        near(s.rate(), 1e11 / (1.1 / 0.95) + 4e7);
        near(s.reference, 1e11);
        s.on_response(&p, 101, 200, &[hop(1, 25 * US, 157_250, 250_000), hop(2, 25 * US, 164_500, 0)]);
        near(s.utilisation, 0.5);
        near(s.rate(), 1e11);
        s.on_response(&p, 201, 230, &[hop(1, 27 * US, 182_250, 250_000), hop(2, 27 * US, 164_500, 0)]);
        near(s.utilisation, 1.0);
        near(s.rate(), 9.504e10);
        s.on_response(&p, 202, 231, &[hop(1, 28 * US, 194_750, 300_000), hop(2, 28 * US, 164_500, 0)]);
        near(s.utilisation, 1.2);
        near(s.rate(), 9.504e10 / (1.2 / 0.95) + 4e7);
        near(s.reference, 9.504e10);
    }

    /// Below η the rate grows additively maxStage times, then by U.
    #[test]
    fn additive_stages_come_before_a_jump() {
        let p = params(2);
        let mut s = Sender::new(LINE);
        // Down to a tenth first: a link that is used ten times over.
        s.on_response(&p, 1, 1, &[hop(1, 0, 0, 1_125_000)]);
        s.on_response(&p, 2, 2, &[hop(1, 10 * US, 125_000, 1_125_000)]);
        near(s.rate(), 9.54e9);
        let mut rates = Vec::new();
        for i in 2..6u64 {
            // Then at half of its capacity.
            let at = i * 10 * US;
            s.on_response(&p, i as u32 + 1, i as u32 + 1, &[hop(1, at, 125_000 + (i - 1) * 62_500, 0)]);
            rates.push(s.rate());
        }
        let jump = 9.62e9 / (0.5 / 0.95) + 4e7;
        for (rate, expected) in rates.into_iter().zip([9.58e9, 9.62e9, jump, jump + 4e7]) {
            near(rate, expected);
        }
    }

    /// Another path, an ACK without newer times, and no fast reaction.
    #[test]
    fn incomparable_telemetry_changes_nothing() {
        let p = HpccParams { fast_reaction: false, ..params(0) };
        let mut s = Sender::new(LINE);
        s.on_response(&p, 1, 10, &[hop(1, 0, 0, 500_000)]);
        let busy = [hop(1, 9 * US, 112_500, 500_000)];
        // In the first round trip nothing happens without fast reaction.
        s.on_response(&p, 5, 14, &busy);
        near(s.rate(), 1e11);
        // Another link: L is filled anew.
        s.on_response(&p, 11, 20, &[hop(7, 0, 0, 500_000)]);
        near(s.rate(), 1e11);
        assert_eq!((s.last[0].port, s.last_update), (7, 20));
        s.on_response(&p, 21, 30, &[hop(7, 0, 0, 500_000)]);
        near(s.rate(), 1e11);
        s.on_response(&p, 21, 30, &[hop(7, 10 * US, 125_000, 500_000)]);
        near(s.utilisation, 5.0);
        near(s.rate(), 1.904e10);
        assert_eq!(s.on_sent(1_000), Some(gap_at(1_000, 1.904e10)));
        s.release();
        assert_eq!(s.last.capacity(), 0);
    }
}
