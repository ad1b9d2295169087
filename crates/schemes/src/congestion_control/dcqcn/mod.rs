//! DCQCN (Zhu et al., *Congestion Control for Large-Scale RDMA Deployments*,
//! SIGCOMM 2015), also as NICs and the field's simulators run it.
//!
//! A switch marks packets (congestion point). The receiver sends congestion notification packets, CNPs, for
//! marked packets (notification point). The sender keeps for each flow (reaction point) its current rate R_C,
//! a target rate R_T and α, the estimate of the path's congestion:
//!
//! ```text
//!   α update      every alpha_timer:  α ← (1 − g)·α + g if a CNP has come since, else (1 − g)·α
//!   decrease      R_T ← R_C (see clamp_target),  R_C ← max(R_C·(1 − α/2), R_min);  T, B ← 0
//!   increase      every increase_timer (counted by T) and every byte_counter bytes (by B)
//!                 since the last decrease:
//!                   max(T, B) < F    fast recovery       R_C ← (R_T + R_C)/2
//!                   min(T, B) > F    hyper increase      R_T ← R_T + R_HAI, then the same
//!                   otherwise        additive increase   R_T ← R_T + R_AI,  then the same
//!                 R_T never exceeds the line rate; T or B grows by 1 afterwards. Without a
//!                 byte counter, min and max are T.
//! ```
//!
//! Reactions differ in when the first two happen.
//!
//! - [`Reaction::Periodic`] (NICs; the field's simulators): the first CNP of a flow sets α to 1, keeps the
//!   rate, and starts two timers that run freely from then on: one updates α, and the other, every
//!   `decrease_interval`, decreases if a CNP has come since its last look. The increase timer starts anew at
//!   each decrease.
//! - [`Reaction::Immediate`] (the paper): α is 1 until the first CNP. Each CNP
//!   decreases at once, then α ← (1 − g)·α + g, and both timers start anew.
//!
//! At one time, α is updated before the increase, that before the decrease, and all of them before a CNP that
//! arrives then and before a packet that leaves then.
//!
//! There are no timer events: the state advances to the present when a CNP arrives or a packet leaves, and
//! skips ticks that change nothing. More queries change no bit of the result. Arithmetic is IEEE addition,
//! multiplication, division and rounding up, the same everywhere. An α below 2⁻⁶⁴ counts as 0.

mod keys;

pub use keys::{DcqcnKeys, DcqcnPreset};

use super::notification::Cnps;
use super::seam::{self, Departure, Parameters};
use super::{Step, gap_at};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write};
use xoff_kernel::time::Time;
use xoff_net::units::{Bytes, Span};

/// α below this is 0.
const NOTHING: f64 = 1.0 / (1u128 << 64) as f64;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DcqcnParams {
    pub reaction: Reaction,
    /// Least picoseconds between two CNPs of a flow. 0: no CNPs; each ACK says whether its data was marked.
    pub cnp_interval: Time,
    pub cnp_size: u32,
    /// Lane of CNPs; `None` is that of the ACKs.
    pub cnp_lane: Option<u8>,
    /// Periods, in picoseconds, above 0; that of decreases is of [`Reaction::Periodic`].
    pub alpha_timer: Time,
    pub decrease_interval: Time,
    pub increase_timer: Time,
    /// Wire bytes between two increases by the byte counter; 0 is without.
    pub byte_counter: u64,
    /// g, above 0, at most 1.
    pub gain: f64,
    /// F: increases of each kind that are fast recovery.
    pub fast_recovery: u32,
    pub additive_increase: Step,
    pub hyper_increase: Step,
    /// R_min; never above a flow's line rate.
    pub minimum_rate: Step,
    /// Every decrease sets the target to the rate, also one that follows another without an increase between.
    pub clamp_target: bool,
}

/// When a CNP changes the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "DcqcnReaction")]
pub enum Reaction {
    /// At the next check of a free-running timer, as in NICs.
    Periodic,
    /// Immediately, as in DCQCN's paper.
    Immediate,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReactionPoint {
    /// R_C, in bits per second.
    rate: f64,
    target: f64,
    alpha: f64,
    line: f64,
    alpha_at: Time,
    decrease_at: Time,
    increase_at: Time,
    /// Since the byte counter's last increase.
    bytes: u64,
    timer_rounds: u32,
    byte_rounds: u32,
    /// A CNP has come.
    active: bool,
    cnp_since_alpha: bool,
    cnp_since_decrease: bool,
}

impl ReactionPoint {
    /// A flow that starts at its line rate, in bits per second.
    pub fn new(line: u64) -> Self {
        let line = line as f64;
        Self {
            rate: line,
            target: line,
            alpha: 1.0,
            line,
            alpha_at: Time::MAX,
            decrease_at: Time::MAX,
            increase_at: Time::MAX,
            ..Self::default()
        }
    }

    /// R_C at the time of the state.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// R_C at `now`, in whole bits per second, without touching the state.
    pub fn rate_at(&self, params: &DcqcnParams, now: Time) -> u64 {
        let mut copy = *self;
        copy.advance(params, now);
        copy.rate as u64
    }

    pub fn on_cnp(&mut self, params: &DcqcnParams, now: Time) {
        self.advance(params, now);
        match params.reaction {
            Reaction::Periodic => {
                self.cnp_since_decrease = true;
                if self.active {
                    self.cnp_since_alpha = true;
                } else {
                    self.alpha_at = now.saturating_add(params.alpha_timer);
                    self.decrease_at = now.saturating_add(params.decrease_interval);
                }
            }
            Reaction::Immediate => {
                self.decrease(params, now);
                self.alpha = (1.0 - params.gain) * self.alpha + params.gain;
                self.alpha_at = now.saturating_add(params.alpha_timer);
            }
        }
        self.active = true;
    }

    /// Counts a sent packet of `size` wire bytes. Returns the picoseconds that the flow's next one must wait;
    /// `None` at line rate.
    #[inline]
    pub fn on_sent(&mut self, params: &DcqcnParams, now: Time, size: u32) -> Option<Time> {
        if !self.active {
            return None;
        }
        self.advance(params, now);
        if params.byte_counter > 0 {
            self.bytes += u64::from(size);
            while self.bytes >= params.byte_counter {
                self.bytes -= params.byte_counter;
                self.increase(params);
                self.byte_rounds = self.byte_rounds.saturating_add(1);
            }
        }
        (self.rate < self.line).then(|| gap_at(size, self.rate))
    }

    pub fn advance(&mut self, params: &DcqcnParams, now: Time) {
        if !self.active {
            return;
        }
        loop {
            self.skip(params, now);
            let due = self.alpha_at.min(self.increase_at).min(self.decrease_at);
            if due > now {
                return;
            }
            if due == self.alpha_at {
                self.alpha *= 1.0 - params.gain;
                if self.cnp_since_alpha {
                    self.alpha += params.gain;
                }
                if self.alpha < NOTHING {
                    self.alpha = 0.0;
                }
                self.cnp_since_alpha = false;
                self.alpha_at = due.saturating_add(params.alpha_timer);
            } else if due == self.increase_at {
                self.increase(params);
                self.timer_rounds = self.timer_rounds.saturating_add(1);
                self.increase_at = due.saturating_add(params.increase_timer);
            } else {
                self.decrease_at = due.saturating_add(params.decrease_interval);
                if self.cnp_since_decrease {
                    self.cnp_since_decrease = false;
                    self.decrease(params, due);
                }
            }
        }
    }

    /// Passes over ticks up to `now` that change nothing.
    fn skip(&mut self, params: &DcqcnParams, now: Time) {
        // The first tick after `now`, and how many are passed over.
        let after = |at: Time, period: Time| match now.checked_sub(at) {
            None => (at, 0),
            Some(late) => {
                let ticks = late / period + 1;
                (at.saturating_add(ticks.saturating_mul(period)), ticks)
            }
        };
        if !self.cnp_since_decrease {
            self.decrease_at = after(self.decrease_at, params.decrease_interval).0;
        }
        if self.alpha == 0.0 && !self.cnp_since_alpha {
            self.alpha_at = after(self.alpha_at, params.alpha_timer).0;
        }
        // A decrease to come would start the timer anew.
        if self.rate >= self.line && !self.cnp_since_decrease {
            let (at, ticks) = after(self.increase_at, params.increase_timer);
            self.increase_at = at;
            self.timer_rounds = self.timer_rounds.saturating_add(u32::try_from(ticks).unwrap_or(u32::MAX));
        }
    }

    fn decrease(&mut self, params: &DcqcnParams, at: Time) {
        if params.clamp_target || self.timer_rounds > 0 || self.byte_rounds > 0 {
            self.target = self.rate;
        }
        let least = params.minimum_rate.of(self.line).min(self.line);
        self.rate = (self.rate * (1.0 - self.alpha / 2.0)).max(least);
        (self.timer_rounds, self.byte_rounds, self.bytes) = (0, 0, 0);
        self.increase_at = at.saturating_add(params.increase_timer);
    }

    fn increase(&mut self, params: &DcqcnParams) {
        let (t, b) = (self.timer_rounds, self.byte_rounds);
        let (least, most) = if params.byte_counter > 0 { (t.min(b), t.max(b)) } else { (t, t) };
        if most >= params.fast_recovery {
            let step =
                if least > params.fast_recovery { params.hyper_increase } else { params.additive_increase };
            self.target = (self.target + step.of(self.line)).min(self.line);
        }
        self.rate = self.rate / 2.0 + self.target / 2.0;
    }
}

impl seam::Sender for ReactionPoint {
    type Params = DcqcnParams;

    fn new(_: &DcqcnParams, line: u64) -> Self {
        Self::new(line)
    }

    fn rate_at(&self, params: &DcqcnParams, now: Time) -> f64 {
        self.rate_at(params, now) as f64
    }

    #[inline]
    fn on_sent(&mut self, params: &DcqcnParams, now: Time, packet: Departure) -> Option<Time> {
        self.on_sent(params, now, packet.size)
    }

    fn on_cnp(&mut self, params: &DcqcnParams, now: Time) {
        self.on_cnp(params, now);
    }
}

impl Parameters for DcqcnParams {
    fn reads_marks(&self) -> bool {
        true
    }

    fn cnps(&self) -> Option<Cnps> {
        Some(Cnps { interval: self.cnp_interval, size: self.cnp_size, lane: self.cnp_lane })
    }

    fn wants_answers(&self) -> bool {
        false
    }

    fn describe(&self, out: &mut String, head: &str, _: bool) -> fmt::Result {
        let reaction = match self.reaction {
            Reaction::Periodic => format!("checks for CNPs every {}", Span(self.decrease_interval)),
            Reaction::Immediate => "decreases at each CNP".to_string(),
        };
        let cnp = match self.cnp_interval {
            0 => "ACKs carry marks".to_string(),
            interval => format!("CNPs of {} B, at least {} apart", self.cnp_size, Span(interval)),
        };
        let bytes = match self.byte_counter {
            0 => String::new(),
            bytes => format!(" and every {}", Bytes(bytes)),
        };
        writeln!(out, "{head}dcqcn ({cnp}; {reaction})")?;
        writeln!(out, "  alpha every {} with g = {}", Span(self.alpha_timer), self.gain)?;
        let (first, later, least) = (self.additive_increase, self.hyper_increase, self.minimum_rate);
        let (timer, fast, not) =
            (Span(self.increase_timer), self.fast_recovery, if self.clamp_target { "" } else { "not " });
        writeln!(
            out,
            "  increases every {timer}{bytes}: {fast} of fast recovery, then {first}, then {later}; never below {least}; target {not}clamped"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion_control::notification::NotificationPoint;
    use xoff_kernel::random::Stream;
    use xoff_kernel::time::MICROSECOND as US;

    const LINE: u64 = 100_000_000_000;

    fn periodic() -> DcqcnParams {
        DcqcnParams {
            reaction: Reaction::Periodic,
            cnp_interval: 0,
            cnp_size: 66,
            cnp_lane: None,
            alpha_timer: US,
            decrease_interval: 4 * US,
            increase_timer: 300 * US,
            byte_counter: 0,
            gain: 1.0 / 256.0,
            fast_recovery: 1,
            additive_increase: Step::LineShare(5_000),
            hyper_increase: Step::LineShare(500),
            minimum_rate: Step::Rate(1_000_000_000),
            clamp_target: false,
        }
    }

    fn immediate() -> DcqcnParams {
        DcqcnParams {
            reaction: Reaction::Immediate,
            cnp_interval: 50 * US,
            alpha_timer: 55 * US,
            increase_timer: 55 * US,
            byte_counter: 10_000_000,
            fast_recovery: 5,
            additive_increase: Step::Rate(40_000_000),
            hyper_increase: Step::Rate(200_000_000),
            clamp_target: true,
            ..periodic()
        }
    }

    /// (R_C, R_T, α) at `now`.
    fn at(rp: &mut ReactionPoint, params: &DcqcnParams, now: Time) -> (f64, f64, f64) {
        rp.advance(params, now);
        (rp.rate(), rp.target, rp.alpha)
    }

    /// One CNP at 10 us, worked out by hand. α decays from 1 at 11, 12, 13 and 14 us; the decrease of 14 us
    /// comes after the fourth; then nothing but α moves until the timer's first increase at 314 us: fast
    /// recovery, then additive, then hyper increase towards the old target, which is the line.
    #[test]
    fn one_notification_by_hand() {
        let p = periodic();
        let mut rp = ReactionPoint::new(LINE);
        let line = LINE as f64;
        assert_eq!(rp.on_sent(&p, 0, 1_052), None);
        rp.on_cnp(&p, 10 * US);
        assert_eq!(at(&mut rp, &p, 10 * US), (line, line, 1.0));
        let q = 255.0 / 256.0;
        assert_eq!(at(&mut rp, &p, 11 * US), (line, line, q));
        assert_eq!(at(&mut rp, &p, 14 * US - 1), (line, line, q * q * q));
        let alpha = q * q * q * q;
        let cut = line * (1.0 - alpha / 2.0);
        assert_eq!(at(&mut rp, &p, 14 * US), (cut, line, alpha));
        // The gap is the packet at this rate, rounded up.
        let gap = rp.on_sent(&p, 14 * US, 1_052).unwrap();
        assert_eq!(gap, (1_052.0 * 8e12 / cut).ceil() as u64);
        let (rate, target, _) = at(&mut rp, &p, 314 * US - 1);
        assert_eq!((rate, target), (cut, line));
        let first = cut / 2.0 + line / 2.0;
        assert_eq!(at(&mut rp, &p, 314 * US).0, first);
        // The target is the line already: additive and hyper increase halve the distance, too.
        let second = first / 2.0 + line / 2.0;
        assert_eq!(at(&mut rp, &p, 614 * US).0, second);
        assert_eq!(at(&mut rp, &p, 914 * US).0, second / 2.0 + line / 2.0);
    }

    /// Continuous CNPs from 0 on: α stays 1 from its first update with a CNP (the first has none), each check
    /// after 4 us reduces the rate by α/2, the target stays at line rate (no increase between), and R_min
    /// holds.
    #[test]
    fn a_storm_of_notifications_reaches_the_minimum() {
        let p = periodic();
        let mut rp = ReactionPoint::new(LINE);
        let (mut rate, mut alpha) = (LINE as f64, 1.0);
        for ns in (0..60_000).step_by(100) {
            rp.on_cnp(&p, ns * 1_000);
            if ns > 0 && ns % 1_000 == 0 {
                // CNPs of this very time come after the tick; those of before count.
                alpha = alpha * (255.0 / 256.0) + 1.0 / 256.0;
            }
            if ns > 0 && ns % 4_000 == 0 {
                rate = (rate * (1.0 - alpha / 2.0)).max(1e9);
            }
            assert_eq!((rp.rate(), rp.alpha), (rate, alpha), "{ns} ns");
        }
        assert_eq!((rp.rate(), rp.target), (1e9, LINE as f64));
    }

    /// After a second decrease that follows increases, the target is the rate,
    /// and additive and hyper steps show.
    #[test]
    fn recovery_goes_through_its_three_phases() {
        let p = periodic();
        let mut rp = ReactionPoint::new(LINE);
        rp.on_cnp(&p, 0);
        let (before, ..) = at(&mut rp, &p, 400 * US);
        rp.on_cnp(&p, 400 * US);
        let (rate, target, alpha) = at(&mut rp, &p, 404 * US);
        assert_eq!((rate, target), (before * (1.0 - alpha / 2.0), before));
        let (mut rate, mut target) = (rate, target);
        for (round, step) in [0.0, 2e7, 2e8, 2e8, 2e8].into_iter().enumerate() {
            target += step;
            rate = rate / 2.0 + target / 2.0;
            let now = 404 * US + (round as u64 + 1) * 300 * US;
            let (r, t, _) = at(&mut rp, &p, now);
            assert_eq!((r, t), (rate, target), "round {round}");
        }
    }

    /// The paper's reaction: half at the first CNP; α grows with each CNP and
    /// decays every 55 us without one; the byte counter counts beside the timer.
    #[test]
    fn the_papers_reaction_by_hand() {
        let p = immediate();
        let mut rp = ReactionPoint::new(LINE);
        let g = 1.0 / 256.0;
        rp.on_cnp(&p, 100 * US);
        assert_eq!((rp.rate(), rp.target, rp.alpha), (5e10, 1e11, 1.0));
        assert_eq!(at(&mut rp, &p, 155 * US), (7.5e10, 1e11, 1.0 - g));
        rp.on_cnp(&p, 160 * US);
        let alpha = 1.0 - g;
        assert_eq!((rp.rate(), rp.target), (7.5e10 * (1.0 - alpha / 2.0), 7.5e10));
        assert_eq!(rp.alpha, (1.0 - g) * alpha + g);
        // 10 MB at once: five rounds of the byte counter recover, the sixth adds.
        let mut rate = rp.rate();
        for round in 0..6 {
            let mut target = 7.5e10;
            if round == 5 {
                target += 4e7;
            }
            rp.on_sent(&p, 161 * US, 9_999_999);
            rp.on_sent(&p, 161 * US, 1);
            rate = rate / 2.0 + target / 2.0;
            assert_eq!((rp.rate(), rp.target), (rate, target), "round {round}");
        }
        // Hyper increase needs both counters beyond F: B is, T is not yet.
        for _ in 0..3 {
            rp.on_sent(&p, 161 * US, 10_000_000);
        }
        assert_eq!(rp.target, 7.5e10 + 4.0 * 4e7);
    }

    /// Asking often and asking once agree to the last bit, also after silences
    /// that let α vanish and the rate reach the line.
    #[test]
    fn lazy_is_exact() {
        for seed in 0..60 {
            let mut random = Stream::new(seed, "test", 0);
            let p = if seed % 2 == 0 { periodic() } else { immediate() };
            let (mut eager, mut lazy) = (ReactionPoint::new(LINE), ReactionPoint::new(LINE));
            let mut now = 0;
            for _ in 0..200 {
                let pause = [2 * US, 50 * US, 3_000 * US, 500_000 * US][random.below(4) as usize];
                let until = now + random.below(pause);
                let step = (until - now) / 500 + 1;
                while now < until {
                    eager.advance(&p, now);
                    now += step;
                }
                if random.below(3) == 0 {
                    eager.on_cnp(&p, now);
                    lazy.on_cnp(&p, now);
                } else {
                    assert_eq!(lazy.rate_at(&p, now), eager.rate_at(&p, now));
                    let size = random.below(9_000) as u32;
                    assert_eq!(eager.on_sent(&p, now, size), lazy.on_sent(&p, now, size));
                }
                assert_eq!(eager, lazy);
            }
        }
    }

    #[test]
    fn notifications_keep_their_distance() {
        let p = immediate();
        let mut np = NotificationPoint::default();
        let sent: Vec<bool> = [0, 1, 49, 50, 99, 100, 400].map(|t| np.on_marked(p.cnps(), t * US)).to_vec();
        assert_eq!(sent, [true, false, false, true, false, true, true]);
        assert!(!np.take_mark());
        let echo = periodic();
        assert!(!np.on_marked(echo.cnps(), 500 * US));
        assert_eq!([np.take_mark(), np.take_mark()], [true, false]);
    }
}
