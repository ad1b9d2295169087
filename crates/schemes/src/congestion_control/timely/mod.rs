//! TIMELY (Mittal et al., *TIMELY: RTT-based Congestion Control for the Datacenter*, SIGCOMM 2015), as
//! published, with the parameters and the rhythm of HPCC's evaluation: one measured round trip at a time.
//! (The *patched* TIMELY of Zhu et al., CoNEXT 2016, is another algorithm.)
//!
//! Algorithm 1 of the paper, for each round-trip time that a sender measures:
//!
//! ```text
//!   1  new_rtt_diff = new_rtt − prev_rtt
//!   2  prev_rtt = new_rtt
//!   3  rtt_diff = (1 − α)·rtt_diff + α·new_rtt_diff
//!   4  normalized_gradient = rtt_diff / minRTT
//!   5  if new_rtt < T_low:          rate ← rate + δ                                  return
//!   8  if new_rtt > T_high:         rate ← rate·(1 − β·(1 − T_high/new_rtt))         return
//!  11  if normalized_gradient ≤ 0:  rate ← rate + N·δ
//!  14  else:                        rate ← rate·(1 − β·normalized_gradient)
//! ```
//!
//! N·δ is the *hyper increase* after `hyper_after` increases without a decrease between, and δ before. As in
//! HPCC's evaluation increases below T_low count and get it, too (the paper has them in line 11 only); the
//! rate stays between a minimum and the line rate, and a factor in line 14 is never negative.
//!
//! The measurement: the sender records the time when a new data packet begins to leave, until an ACK covers
//! it (with `ack_every` above 1 perhaps that of a later packet), and then records the next new packet. So
//! rates change once per round trip. It does not measure a retransmitted packet, or one after a
//! retransmission: the ACK could belong to either copy. The first measurement of a flow only sets prev_rtt.

mod keys;

pub use keys::TimelyKeys;

use super::seam::{self, Answer, Departure, Parameters};
use super::{Step, gap_at};
use std::fmt::{self, Write};
use xoff_kernel::time::Time;
use xoff_net::units::Span;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimelyParams {
    /// α, the weight of news in the gradient; above 0, at most 1.
    pub ewma: f64,
    /// β, the share of a decrease; above 0, at most 1.
    pub beta: f64,
    /// T_low, in picoseconds: below it the rate grows for any gradient.
    pub t_low: Time,
    /// T_high, in picoseconds, no less than T_low: above it the rate shrinks for any gradient.
    pub t_high: Time,
    /// minRTT, in picoseconds, above 0: the unit of the gradient.
    pub min_rtt: Time,
    pub additive_increase: Step,
    pub hyper_increase: Step,
    /// So many increases in a row are of δ.
    pub hyper_after: u32,
    pub minimum_rate: Step,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sender {
    /// In bits per second.
    rate: f64,
    line: f64,
    prev_rtt: Option<Time>,
    /// In picoseconds.
    rtt_diff: f64,
    /// Increases since the last decrease.
    increases: u32,
    /// The packet that is measured, and when it left.
    timed: Option<(u32, Time)>,
}

impl Sender {
    /// A flow that starts at its line rate, in bits per second.
    pub fn new(line: u64) -> Self {
        let line = line as f64;
        Self { rate: line, line, prev_rtt: None, rtt_diff: 0.0, increases: 0, timed: None }
    }

    /// In bits per second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Packet `psn` of `size` wire bytes begins to leave, perhaps `again`. Returns the picoseconds that the
    /// next one must wait; `None` at line rate.
    pub fn on_sent(&mut self, now: Time, size: u32, psn: u32, again: bool) -> Option<Time> {
        match self.timed {
            None if !again => self.timed = Some((psn, now)),
            Some((timed, _)) if again && psn <= timed => self.timed = None,
            _ => {}
        }
        (self.rate < self.line).then(|| gap_at(size, self.rate))
    }

    pub fn on_response(&mut self, params: &TimelyParams, now: Time, acknowledged: u32) {
        if let Some((timed, left)) = self.timed
            && acknowledged > timed
        {
            self.timed = None;
            self.measured(params, now - left);
        }
    }

    fn measured(&mut self, p: &TimelyParams, new_rtt: Time) {
        let Some(prev_rtt) = self.prev_rtt.replace(new_rtt) else { return };
        let rtt = new_rtt as f64;
        self.rtt_diff = (1.0 - p.ewma) * self.rtt_diff + p.ewma * (rtt - prev_rtt as f64);
        let gradient = self.rtt_diff / p.min_rtt as f64;
        let factor = if new_rtt < p.t_low {
            None
        } else if new_rtt > p.t_high {
            Some(1.0 - p.beta * (1.0 - p.t_high as f64 / rtt))
        } else if gradient <= 0.0 {
            None
        } else {
            Some((1.0 - p.beta * gradient).max(0.0))
        };
        match factor {
            Some(factor) => {
                let least = p.minimum_rate.of(self.line).min(self.line);
                self.rate = (self.rate * factor).max(least);
                self.increases = 0;
            }
            None => {
                let step =
                    if self.increases < p.hyper_after { p.additive_increase } else { p.hyper_increase };
                self.rate = (self.rate + step.of(self.line)).min(self.line);
                self.increases = self.increases.saturating_add(1);
            }
        }
    }
}

impl seam::Sender for Sender {
    type Params = TimelyParams;

    fn new(_: &TimelyParams, line: u64) -> Self {
        Self::new(line)
    }

    fn rate_at(&self, _: &TimelyParams, _: Time) -> f64 {
        self.rate()
    }

    #[inline(never)]
    fn on_sent(&mut self, _: &TimelyParams, now: Time, packet: Departure) -> Option<Time> {
        self.on_sent(now, packet.size, packet.psn, packet.again)
    }

    fn on_answer(&mut self, params: &TimelyParams, now: Time, answer: &Answer<'_>) {
        self.on_response(params, now, answer.una);
    }
}

impl Parameters for TimelyParams {
    fn describe(&self, out: &mut String, head: &str, _: bool) -> fmt::Result {
        let [low, high, unit] = [self.t_low, self.t_high, self.min_rtt].map(Span);
        let (first, later, least) = (self.additive_increase, self.hyper_increase, self.minimum_rate);
        writeln!(out, "{head}timely (measures one round trip at a time)")?;
        writeln!(
            out,
            "  rates increase below {low} and decrease above {high}; between them the gradient per {unit} decides: alpha {}, beta {}",
            self.ewma, self.beta
        )?;
        let after = self.hyper_after;
        writeln!(out, "  increases of {first}, after {after} in a row of {later}; never below {least}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Time = 1_000_000;
    const LINE: u64 = 100_000_000_000;

    fn field() -> TimelyParams {
        TimelyParams {
            ewma: 0.875,
            beta: 0.8,
            t_low: 50 * US,
            t_high: 500 * US,
            min_rtt: 20 * US,
            additive_increase: Step::LineShare(1_000),
            hyper_increase: Step::LineShare(200),
            hyper_after: 5,
            minimum_rate: Step::Rate(1_000_000_000),
        }
    }

    /// A sender that measures these round trips, in microseconds; its rates in Gbit/s.
    fn rates(rtts: &[Time]) -> Vec<f64> {
        let p = field();
        let mut s = Sender::new(LINE);
        let mut now = 0;
        let mut rates = Vec::new();
        for (psn, rtt) in (0..).zip(rtts) {
            s.on_sent(now, 1_000, psn, false);
            now += rtt * US;
            s.on_response(&p, now, psn + 1);
            rates.push(s.rate() / 1e9);
        }
        rates
    }

    #[test]
    fn a_sender_below_line_rate_waits_and_one_at_line_rate_does_not() {
        let mut s = Sender::new(LINE);
        assert_eq!(s.on_sent(0, 1_000, 0, false), None);
        s.rate = LINE as f64 / 2.0;
        assert_eq!(s.on_sent(0, 1_000, 1, false), Some(160_000));
    }

    /// By hand, α = 7/8, minRTT 20 us. The first measurement, of 60 us, changes nothing. 64 us: rtt_diff =
    /// 3.5, gradient 0.175, factor 1 − 0.14 = 0.86, rate 86. 64 us: rtt_diff = 0.4375, gradient 0.021875,
    /// factor 0.9825, rate 84.495. 60 us: rtt_diff = 0.0546875 − 3.5 < 0: δ = 0.1, rate 84.595. 1000 us:
    /// above T_high: factor 1 − 0.8·(1 − 0.5) = 0.6, rate 50.757. 40 us: below T_low, for any gradient: rate
    /// 50.857.
    #[test]
    fn the_rate_follows_the_algorithm() {
        let expected = [100.0, 86.0, 84.495, 84.595, 50.757, 50.857];
        for (rate, expected) in rates(&[60, 64, 64, 60, 1_000, 40]).into_iter().zip(expected) {
            assert!((rate - expected).abs() < 1e-9, "{rate} instead of {expected}");
        }
    }

    /// 100 us after 60 us: gradient 1.75, the factor would be below 0: the minimum.
    /// Then five increases of 0.1, and further ones of 0.5.
    #[test]
    fn hyper_increase_comes_after_five_increases() {
        let rates = rates(&[60, 100, 40, 40, 40, 40, 40, 40, 40]);
        let expected = [100.0, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 2.0, 2.5];
        for (rate, expected) in rates.into_iter().zip(expected) {
            assert!((rate - expected).abs() < 1e-9, "{rate} instead of {expected}");
        }
    }

    /// One packet is measured at a time; a retransmitted packet, or one after a retransmission, is not.
    #[test]
    fn new_packets_are_measured() {
        let p = field();
        let mut s = Sender::new(LINE);
        s.on_sent(0, 1_000, 0, false);
        s.on_sent(US, 1_000, 1, false);
        assert_eq!(s.timed, Some((0, 0)));
        s.on_response(&p, 30 * US, 1);
        assert_eq!((s.timed, s.prev_rtt), (None, Some(30 * US)));
        // Packet 1 was in flight already: packet 2 is next.
        s.on_response(&p, 31 * US, 2);
        s.on_sent(40 * US, 1_000, 2, false);
        s.on_sent(41 * US, 1_000, 3, false);
        // An ACK that acknowledges nothing new.
        s.on_response(&p, 50 * US, 2);
        assert_eq!(s.timed, Some((2, 40 * US)));
        // Back to packet 2: neither it nor packet 3 is measured, but packet 4.
        s.on_sent(60 * US, 1_000, 2, true);
        s.on_sent(61 * US, 1_000, 3, true);
        assert_eq!(s.timed, None);
        s.on_sent(62 * US, 1_000, 4, false);
        s.on_response(&p, 99 * US, 5);
        assert_eq!(s.prev_rtt, Some(37 * US));
    }
}
