//! DCTCP (Alizadeh et al., SIGCOMM 2010) with a rate in the place of a window, as
//! a scheme of RoCE NICs: that of HPCC's evaluation and its public simulator.
//!
//! Switches mark by one threshold (K_min = K_max), and each ACK says whether its data packet was marked. A
//! sender keeps the rate R and α, the estimate of the share of marked packets. It updates α once per round
//! trip: a round ends with the first ACK that acknowledges a packet sent after the round began.
//!
//! ```text
//!   for each ACK:      F is the share of the packets that marked ACKs acknowledge
//!     round ends:      α ← (1 − g)·α + g·F;  F ← 0;  the next round begins
//!     reduced, and a packet sent since then is acknowledged:  no longer reduced
//!     marked, and not reduced:      R ← max(R·(1 − α/2), R_min);  reduced
//!     round ends, and not reduced:  R ← min(R + R_AI, line rate)
//! ```
//!
//! α begins at 1 (so does RFC 8257's, §3.2), and the first round, which ends with the first ACK, does not
//! change it. With one ACK per packet and without loss the public simulator's count (ACKs, over the packets
//! in flight when the round began, and one) is the same.

mod keys;

pub use keys::DctcpKeys;

use super::seam::{self, Answer, Departure, Parameters};
use super::{Step, gap_at};
use std::fmt::{self, Write};
use xoff_kernel::time::Time;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DctcpParams {
    /// g, above 0, at most 1.
    pub gain: f64,
    /// R_AI, per round trip.
    pub additive_increase: Step,
    pub minimum_rate: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// All packets below are acknowledged, by this control packet or earlier ones.
    pub acknowledged: u32,
    pub next: u32,
    /// It says that marked packets have come.
    pub marked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sender {
    /// R, in bits per second.
    rate: f64,
    line: f64,
    alpha: f64,
    /// Acknowledged before the last ACK or NACK.
    acknowledged: u32,
    /// Packets acknowledged in this round, and the part of them that marked ACKs acknowledged.
    packets: u32,
    marked: u32,
    /// The round ends when more than this is acknowledged.
    round: u32,
    /// Reduced: until more than this is acknowledged.
    reduced: Option<u32>,
}

impl Sender {
    /// A flow that starts at its line rate, in bits per second.
    pub fn new(line: u64) -> Self {
        let line = line as f64;
        Self { rate: line, line, alpha: 1.0, acknowledged: 0, packets: 0, marked: 0, round: 0, reduced: None }
    }

    /// R, in bits per second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Picoseconds that the next packet must wait after one of `size` wire bytes; `None` at line rate.
    pub fn on_sent(&self, size: u32) -> Option<Time> {
        (self.rate < self.line).then(|| gap_at(size, self.rate))
    }

    pub fn on_response(&mut self, params: &DctcpParams, response: Response) {
        let newly_acknowledged = response.acknowledged.saturating_sub(self.acknowledged);
        self.acknowledged += newly_acknowledged;
        self.packets += newly_acknowledged;
        self.marked += if response.marked { newly_acknowledged } else { 0 };
        let ends = self.acknowledged > self.round;
        if ends {
            if self.round > 0 {
                let share = f64::from(self.marked) / f64::from(self.packets);
                self.alpha = (1.0 - params.gain) * self.alpha + params.gain * share;
            }
            (self.packets, self.marked) = (0, 0);
            self.round = response.next.max(self.acknowledged);
        }
        if self.reduced.is_some_and(|until| self.acknowledged > until) {
            self.reduced = None;
        }
        if response.marked && self.reduced.is_none() {
            let least = params.minimum_rate.of(self.line).min(self.line);
            self.rate = (self.rate * (1.0 - self.alpha / 2.0)).max(least);
            self.reduced = Some(response.next.max(self.acknowledged));
        }
        if ends && self.reduced.is_none() {
            self.rate = (self.rate + params.additive_increase.of(self.line)).min(self.line);
        }
    }
}

impl seam::Sender for Sender {
    type Params = DctcpParams;

    fn new(_: &DctcpParams, line: u64) -> Self {
        Self::new(line)
    }

    fn rate_at(&self, _: &DctcpParams, _: Time) -> f64 {
        self.rate()
    }

    #[inline(never)]
    fn on_sent(&mut self, _: &DctcpParams, _: Time, packet: Departure) -> Option<Time> {
        Self::on_sent(self, packet.size)
    }

    fn on_answer(&mut self, params: &DctcpParams, _: Time, answer: &Answer<'_>) {
        let &Answer { una: acknowledged, next, marked, .. } = answer;
        self.on_response(params, Response { acknowledged, next, marked });
    }
}

impl Parameters for DctcpParams {
    fn reads_marks(&self) -> bool {
        true
    }

    fn describe(&self, out: &mut String, head: &str, _: bool) -> fmt::Result {
        let (increase, least) = (self.additive_increase, self.minimum_rate);
        writeln!(out, "{head}dctcp (ACKs carry marks; g = {})", self.gain)?;
        writeln!(out, "  increases of {increase} per round trip; never below {least}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: DctcpParams = DctcpParams {
        gain: 0.0625,
        additive_increase: Step::Rate(600_000_000),
        minimum_rate: Step::Rate(1_000_000_000),
    };

    /// By hand: four packets in flight, so rounds end with the ACKs 1, 6, 11, … ACKs 1 to 5 are not marked:
    /// at line rate nothing grows. ACK 6 is marked and ends the round of packets 2 to 6: F = 1/5, α = 15/16 +
    /// 0.2/16 = 0.95, R = 100·(1 − 0.475) = 52.5, reduced until a packet after 10 is acknowledged. ACKs 7 and
    /// 8 are marked and change nothing. ACK 11 ends the round of packets 7 to 11: F = 2/5, α = 0.95·15/16 +
    /// 0.4/16 = 0.915625; it is no longer reduced, and grows to 53.1. ACK 13 is marked: R = 53.1·(1 −
    /// 0.4578125).
    #[test]
    fn the_rate_follows_the_algorithm() {
        let mut s = Sender::new(100_000_000_000);
        let mut seen = Vec::new();
        for n in 1..=13 {
            let marked = [6, 7, 8, 13].contains(&n);
            s.on_response(&PARAMS, Response { acknowledged: n, next: n + 4, marked });
            seen.push((s.rate() / 1e9, s.alpha));
        }
        let expected = |n| match n {
            1..=5 => (100.0, 1.0),
            6..=10 => (52.5, 0.95),
            11..=12 => (53.1, 0.915_625),
            _ => (53.1 * 0.542_187_5, 0.915_625),
        };
        for (n, (rate, alpha)) in (1..).zip(seen) {
            let (r, a) = expected(n);
            assert!((rate - r).abs() < 1e-9 && (alpha - a).abs() < 1e-12, "{n}: {rate} {alpha}");
        }
    }

    /// Everything is marked: α stays 1, the rate is halved once per round trip, down
    /// to the minimum, which a slower line is below.
    #[test]
    fn it_halves_down_to_the_minimum() {
        for (line, least) in [(100_000_000_000u64, 1e9), (500_000_000, 5e8)] {
            let mut s = Sender::new(line);
            let mut rates = vec![s.rate()];
            for n in 1..200 {
                s.on_response(&PARAMS, Response { acknowledged: n, next: n + 9, marked: true });
                if s.rate() != *rates.last().unwrap() {
                    rates.push(s.rate());
                }
            }
            for pair in rates.windows(2) {
                assert!(pair[1] == (pair[0] / 2.0).max(least), "{rates:?}");
            }
            assert_eq!(*rates.last().unwrap(), least);
            assert_eq!(s.on_sent(1_000), if line > 1_000_000_000 { Some(8_000_000) } else { None });
        }
    }

    /// An ACK that acknowledges nothing new, and one for several packets.
    #[test]
    fn packets_count_not_acks() {
        let mut s = Sender::new(100_000_000_000);
        s.on_response(&PARAMS, Response { acknowledged: 2, next: 10, marked: false });
        // Of the packets up to 12, a marked ACK acknowledges 3.
        s.on_response(&PARAMS, Response { acknowledged: 5, next: 13, marked: true });
        s.on_response(&PARAMS, Response { acknowledged: 5, next: 5, marked: true });
        s.on_response(&PARAMS, Response { acknowledged: 12, next: 20, marked: false });
        assert_eq!(s.alpha, 0.9375 + 0.0625 * 0.3);
    }
}
