//! NSCC, the network-signalled congestion control of Ultra Ethernet (specification 1.0.1, section 3.6.13), alone or
//! beside the credit of receivers ([`super::nscc_rccc`]).
//!
//! A window in bytes follows two signals of each ACK: M, the mark of its packet, and delay, its round trip less
//! the smallest round trip. With `newly` bytes acknowledged, in the notation of the specification:
//!
//! ```text
//!   OnACK:  received_bytes, achieved_bytes, bytes_ignored += newly
//!           rtt < base_rtt:  base_rtt = rtt;  max_wnd = max_wnd_bdp·line rate·base_rtt
//!           delay = rtt − base_rtt;  update avg_delay
//!           quick_adapt(no loss, M, delay) returns true:  return
//!           ¬M, delay ≥ target:  fair increase              inc_bytes += fi·newly
//!           ¬M, delay < target:  fast increase, or
//!                                proportional increase      inc_bytes += alpha·newly·(target − delay)
//!            M, delay ≥ target:  multiplicative decrease
//!            M, delay < target:  nothing
//!           now − last_adjust ≥ base_rtt or received_bytes > 8 MTU:  fulfil
//!
//!   fast increase:  delay ≈ 0:  fi_count += newly
//!                               increase, or fi_count > cwnd:  increase = true;  cwnd += fi_scale·newly;  done
//!                   otherwise:  fi_count = 0
//!                   increase = false, and go on with the proportional increase
//!   multiplicative decrease:    increase = false;  fi_count = 0
//!                   avg_delay > target and now − last_dec > base_rtt:
//!                       cwnd ← max(cwnd·max(1 − γ·(avg_delay − target)/avg_delay, 1 − max_md_jump), MTU)
//!                       last_dec = now
//!   fulfil:         cwnd += inc_bytes/cwnd;  once per base_rtt:  last_adjust = now, cwnd += eta
//!                   cwnd ← min(cwnd, max_wnd);  inc_bytes = received_bytes = 0
//!   quick_adapt:    M and bytes_ignored < bytes_to_ignore:  true
//!                   otherwise, if now ≥ qa_endtime:
//!                       qa_endtime ≠ 0, achieved_bytes < max_wnd/2^qa_gate, and
//!                       loss, trigger_qa or delay > qa_threshold:
//!                           cwnd = max(achieved_bytes, MTU);  bytes_to_ignore = inflight;  bytes_ignored = 0;
//!                           trigger_qa = false;  true
//!                       achieved_bytes = 0;  qa_endtime = now + base_rtt + target
//!                   true: inc_bytes = received_bytes = 0
//!   OnNACK (trim):  rtt < base_rtt:  as above.  Update avg_delay with config_base_rtt
//!                   bytes_ignored += MTU;  trigger_qa = true
//!                   quick_adapt(loss, M = 1, 0) returns false:  cwnd ← max(cwnd − MTU, MTU), if the sender has no
//!                   credits or the trim was not at the last hop
//!   OnInferredLoss: cwnd ← max(cwnd − MTU, MTU);  bytes_ignored += MTU
//! ```
//!
//! The transport subtracts lost packets from inflight. A NACK of a transport that knows no trimmed packets is an
//! inferred loss.
//!
//! The constants scale with a = BDP/150,000 B and b = target/12 us: alpha = 4·a·b·MTU/target, fi = 5·a·MTU,
//! fi_scale = 0.25·a, eta = 0.15·a·MTU. The specification leaves the average of delays to implementations: here
//! it is an exponential average, of the delays or as [`UnmarkedDelay`] says. `delay ≈ 0` means below 1 us, as in uet-htsim.

mod keys;

pub use keys::{NsccKeys, UnmarkedDelay};

use super::seam::{self, Answer, Loss, Parameters};
use super::telemetry::Stamp;
use crate::flow_control::keys::LONGEST;
use std::fmt::{self, Write};
use xoff_kernel::time::{MICROSECOND, SECOND, Time};
use xoff_net::units::Span;

/// base_BDP of the specification, in bytes: 100 Gbit/s for 12 us.
const BASE_BDP: f64 = 150_000.0;
const BASE_RTT: f64 = 12.0 * MICROSECOND as f64;
/// Delays below this are none.
const NO_DELAY: Time = MICROSECOND;
/// Packets after which an increase is fulfilled before the round trip ends.
const ADJUST_PACKETS: f64 = 8.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NsccParams {
    /// config_base_rtt, in picoseconds, above 0.
    pub base_rtt: Time,
    /// target_qdelay, in picoseconds, above 0.
    pub target: Time,
    /// In multiples of the BDP.
    pub max_wnd: f64,
    /// alpha, fi, fi_scale and eta without their scaling.
    pub alpha: f64,
    pub fi: f64,
    pub fi_scale: f64,
    pub eta: f64,
    /// Above 0, at most 1.
    pub gamma: f64,
    /// Above 0, at most 1.
    pub max_md_jump: f64,
    pub qa_gate: u32,
    /// In picoseconds.
    pub qa_threshold: Time,
    /// Weight of the newest delay in the average; above 0, at most 1.
    pub delay_gain: f64,
    pub unmarked_delay: UnmarkedDelay,
    /// A packet that was trimmed at the last hop takes itself out of the window, as all others do.
    pub last_hop: bool,
    /// Payload of a packet in bytes.
    pub mtu: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// So many packets are acknowledged, by this control packet or earlier ones.
    pub acknowledged: u32,
    /// Packets in flight afterwards.
    pub in_flight: u32,
    pub loss: Option<Loss>,
    pub marked: bool,
    pub stamp: Stamp,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sender {
    /// In bytes, as all windows and counts here.
    cwnd: f64,
    max_wnd: f64,
    /// The line rate, in bits per second.
    line: f64,
    base_rtt: Time,
    rtt: Time,
    avg_delay: f64,
    achieved_bytes: f64,
    received_bytes: f64,
    inc_bytes: f64,
    fi_count: f64,
    increase: bool,
    trigger_qa: bool,
    qa_endtime: Time,
    bytes_to_ignore: f64,
    bytes_ignored: f64,
    last_adjust: Time,
    last_dec: Time,
    /// Packets acknowledged before the last ACK or NACK.
    acknowledged: u32,
    /// The number of the last packet that a NACK reported as lost.
    lost: Option<u32>,
}

/// The input of quick adapt.
#[derive(Clone, Copy)]
struct Signal {
    loss: bool,
    marked: bool,
    delay: Time,
}

fn bdp(line: f64, time: Time) -> f64 {
    line * time as f64 / (8.0 * SECOND as f64)
}

impl Sender {
    /// A flow that starts with the largest window, with its line rate in bits per second.
    pub fn new(p: &NsccParams, line: u64) -> Self {
        let line = line as f64;
        let max_wnd = (p.max_wnd * bdp(line, p.base_rtt)).max(f64::from(p.mtu));
        Self {
            cwnd: max_wnd,
            max_wnd,
            line,
            base_rtt: p.base_rtt,
            rtt: p.base_rtt,
            avg_delay: 0.0,
            achieved_bytes: 0.0,
            received_bytes: 0.0,
            inc_bytes: 0.0,
            fi_count: 0.0,
            increase: false,
            trigger_qa: false,
            qa_endtime: 0,
            bytes_to_ignore: 0.0,
            bytes_ignored: 0.0,
            last_adjust: 0,
            last_dec: 0,
            acknowledged: 0,
            lost: None,
        }
    }

    /// Packets that may be in flight: inflight + MTU ≤ cwnd.
    pub fn window(&self, p: &NsccParams) -> u32 {
        ((self.cwnd / f64::from(p.mtu)) as u32).max(1)
    }

    /// The window per round trip in bits per second of payload, at most the line rate.
    pub fn rate(&self) -> f64 {
        (self.cwnd * 8.0 * SECOND as f64 / self.rtt as f64).min(self.line)
    }

    pub fn on_response(&mut self, p: &NsccParams, now: Time, response: Response) {
        let mtu = f64::from(p.mtu);
        let packets = response.acknowledged.saturating_sub(self.acknowledged);
        self.acknowledged += packets;
        let newly = f64::from(packets) * mtu;
        self.received_bytes += newly;
        self.achieved_bytes += newly;
        self.bytes_ignored += newly;
        self.rtt = (now - response.stamp.sent).max(1);
        if self.rtt < self.base_rtt {
            self.base_rtt = self.rtt;
            self.max_wnd = (p.max_wnd * bdp(self.line, self.base_rtt)).max(mtu);
        }
        let in_flight = f64::from(response.in_flight) * mtu;
        if let Some(Loss::Trimmed { last_hop }) = response.loss {
            return self.on_trim(p, now, in_flight, !last_hop || p.last_hop);
        }
        let delay = self.rtt - self.base_rtt;
        let calm = !response.marked && delay > p.target && p.unmarked_delay == UnmarkedDelay::QuarterRtt;
        self.average(p, if calm { self.base_rtt / 4 } else { delay });
        // Of several NACKs for one packet the first one counts.
        if response.loss.is_some() && self.lost.replace(response.acknowledged) != Some(response.acknowledged)
        {
            return self.on_loss(p);
        }
        let signal = Signal { loss: false, marked: response.marked, delay };
        if self.quick_adapt(p, now, signal, in_flight) {
            return;
        }
        // BDP/base_BDP and target_qdelay/12 us.
        let a = bdp(self.line, p.base_rtt) / BASE_BDP;
        let b = p.target as f64 / BASE_RTT;
        match (response.marked, delay >= p.target) {
            (false, true) => self.inc_bytes += p.fi * a * mtu * newly,
            (false, false) => {
                if !self.fast_increase(p.fi_scale * a, delay, newly) {
                    let share = 1.0 - delay as f64 / p.target as f64;
                    self.inc_bytes += p.alpha * a * b * mtu * newly * share;
                }
            }
            (true, true) => self.decrease(p, now),
            (true, false) => {}
        }
        let period = now - self.last_adjust >= self.base_rtt;
        if period || self.received_bytes > ADJUST_PACKETS * mtu {
            self.cwnd += self.inc_bytes / self.cwnd;
            if period {
                self.last_adjust = now;
                self.cwnd += p.eta * a * mtu;
            }
            self.cwnd = self.cwnd.min(self.max_wnd);
            (self.inc_bytes, self.received_bytes) = (0.0, 0.0);
        }
    }

    /// Returns whether the window has grown by it.
    fn fast_increase(&mut self, scale: f64, delay: Time, newly: f64) -> bool {
        if delay < NO_DELAY {
            self.fi_count += newly;
            if self.increase || self.fi_count > self.cwnd {
                self.increase = true;
                self.cwnd = (self.cwnd + scale * newly).min(self.max_wnd);
                return true;
            }
        } else {
            self.fi_count = 0.0;
        }
        self.increase = false;
        false
    }

    fn decrease(&mut self, p: &NsccParams, now: Time) {
        (self.increase, self.fi_count) = (false, 0.0);
        let target = p.target as f64;
        if self.avg_delay > target && now - self.last_dec > self.base_rtt {
            let share = (p.gamma * (self.avg_delay - target) / self.avg_delay).min(p.max_md_jump);
            self.cwnd = (self.cwnd * (1.0 - share)).max(f64::from(p.mtu));
            self.last_dec = now;
        }
    }

    fn average(&mut self, p: &NsccParams, delay: Time) {
        self.avg_delay += p.delay_gain * (delay as f64 - self.avg_delay);
    }

    /// Returns whether the ACK or NACK changes nothing else.
    fn quick_adapt(&mut self, p: &NsccParams, now: Time, signal: Signal, in_flight: f64) -> bool {
        let ignores = signal.marked && self.bytes_ignored < self.bytes_to_ignore;
        let mut adapts = false;
        if !ignores && now >= self.qa_endtime {
            let gate = self.max_wnd / (1u64 << p.qa_gate.min(63)) as f64;
            let congested = self.trigger_qa || signal.loss || signal.delay > p.qa_threshold;
            adapts = self.qa_endtime != 0 && congested && self.achieved_bytes < gate;
            if adapts {
                self.cwnd = self.achieved_bytes.max(f64::from(p.mtu));
                (self.bytes_to_ignore, self.bytes_ignored) = (in_flight, 0.0);
                self.trigger_qa = false;
            }
            self.achieved_bytes = 0.0;
            self.qa_endtime = now + self.base_rtt + p.target;
        }
        if ignores || adapts {
            (self.inc_bytes, self.received_bytes) = (0.0, 0.0);
        }
        ignores || adapts
    }

    /// A NACK of a trimmed packet, which takes itself out of the window if it `counts`.
    fn on_trim(&mut self, p: &NsccParams, now: Time, in_flight: f64, counts: bool) {
        let mtu = f64::from(p.mtu);
        self.average(p, p.base_rtt);
        self.bytes_ignored += mtu;
        self.trigger_qa = true;
        if !self.quick_adapt(p, now, Signal { loss: true, marked: true, delay: 0 }, in_flight) && counts {
            self.cwnd = (self.cwnd - mtu).max(mtu);
        }
    }

    /// A packet is lost without a trace: a NACK of another transport, or a timeout.
    pub fn on_loss(&mut self, p: &NsccParams) {
        let mtu = f64::from(p.mtu);
        self.cwnd = (self.cwnd - mtu).max(mtu);
        self.bytes_ignored += mtu;
    }
}

impl seam::Sender for Sender {
    type Params = NsccParams;

    fn new(params: &NsccParams, line: u64) -> Self {
        Self::new(params, line)
    }

    fn rate_at(&self, _: &NsccParams, _: Time) -> f64 {
        self.rate()
    }

    fn window(&self, params: &NsccParams) -> Option<u32> {
        Some(self.window(params))
    }

    fn on_answer(&mut self, params: &NsccParams, now: Time, answer: &Answer<'_>) {
        let &Answer { acknowledged, in_flight, loss, inferred, marked, stamp, .. } = answer;
        self.on_response(params, now, Response { acknowledged, in_flight, loss, marked, stamp });
        (0..inferred).for_each(|_| self.on_loss(params));
    }

    fn on_timeout(&mut self, params: &NsccParams, losses: u32, _: Time) {
        (0..losses).for_each(|_| self.on_loss(params));
    }

    fn on_loss(&mut self, params: &NsccParams) {
        self.on_loss(params);
    }
}

impl Parameters for NsccParams {
    fn stamps(&self) -> bool {
        true
    }

    fn reads_marks(&self) -> bool {
        true
    }

    fn sets_windows(&self) -> bool {
        true
    }

    fn describe(&self, out: &mut String, head: &str, trims: bool) -> fmt::Result {
        let [base, target, threshold] = [self.base_rtt, self.target, self.qa_threshold].map(Span);
        let delay = format!("above {threshold} of delay");
        let quick = match trims {
            false => delay,
            true if self.qa_threshold > LONGEST => "after a trimmed packet".to_string(),
            true => delay + " or after a trimmed packet",
        };
        writeln!(out, "{head}nscc (the mark and the delay of each ACK change the window)")?;
        writeln!(
            out,
            "  window at most {} times line rate × {base}; target queueing delay {target}, for an average with weight {}{}",
            self.max_wnd,
            self.delay_gain,
            match self.unmarked_delay {
                UnmarkedDelay::Measured => "",
                UnmarkedDelay::QuarterRtt => ", a quarter of the round trip without a mark",
            }
        )?;
        writeln!(
            out,
            "  per 150 kB of BDP: proportional increase {}, fair {}, eta {} packets; fast increase {} per byte",
            self.alpha, self.fi, self.eta, self.fi_scale
        )?;
        writeln!(
            out,
            "  one decrease per round trip: gamma {}, at most {}; quick adapt {quick}",
            self.gamma, self.max_md_jump
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xoff_kernel::random::Stream;

    const US: Time = MICROSECOND;
    const LINE: u64 = 100_000_000_000;
    /// a and b are 1: 150,000 B at 100 Gbit/s for 12 us.
    fn params() -> NsccParams {
        NsccParams {
            base_rtt: 12 * US,
            target: 12 * US,
            max_wnd: 1.5,
            alpha: 4.0,
            fi: 5.0,
            fi_scale: 0.25,
            eta: 0.15,
            gamma: 0.8,
            max_md_jump: 0.5,
            qa_gate: 3,
            qa_threshold: 48 * US,
            delay_gain: 1.0,
            unmarked_delay: UnmarkedDelay::Measured,
            last_hop: true,
            mtu: 1_000,
        }
    }

    /// A sender whose window is 100,000 B, 1 ms after its start.
    fn sender() -> Sender {
        Sender {
            cwnd: 100_000.0,
            last_adjust: 1_000 * US,
            qa_endtime: Time::MAX,
            ..Sender::new(&params(), LINE)
        }
    }

    fn ack(s: &mut Sender, now: Time, packets: u32, delay: Time, marked: bool) {
        let stamp = Stamp { sent: now - 12 * US - delay, ..Stamp::default() };
        let acknowledged = s.acknowledged + packets;
        s.on_response(&params(), now, Response { acknowledged, in_flight: 50, loss: None, marked, stamp });
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} instead of {b}");
    }

    /// The four cases, by hand, for 10 packets of a window of 100,000 B and a = b = 1. More than 8 packets
    /// fulfil at once. Fair increase: 5·1,000·10,000/100,000 B. Proportional increase at a quarter of the
    /// target: 4·1,000·10,000·0.75/100,000 B. Decrease at 24 us: 0.8·12/24. At 120 us it would be 0.72, and
    /// is 0.5. Marked below the target: nothing.
    #[test]
    fn the_four_cases() {
        for (delay, marked, expected) in [
            (12 * US, false, 100_500.0),
            (3 * US, false, 100_300.0),
            (24 * US, true, 60_000.0),
            (120 * US, true, 50_000.0),
            (11 * US, true, 100_000.0),
        ] {
            let mut s = sender();
            ack(&mut s, 1_001 * US, 10, delay, marked);
            near(s.cwnd, expected);
        }
    }

    /// A long delay without a mark counts with a quarter of the base round trip, 3 us, if it is to; a short one and
    /// one with a mark count as they are.
    #[test]
    fn the_average_of_long_delays_without_a_mark() {
        for (delay, marked, average) in [(24, false, 3), (24, true, 24), (12, false, 12), (5, false, 5)] {
            for (unmarked_delay, average) in
                [(UnmarkedDelay::QuarterRtt, average), (UnmarkedDelay::Measured, delay)]
            {
                let p = NsccParams { unmarked_delay, ..params() };
                let stamp = Stamp { sent: 989 * US - delay * US, ..Stamp::default() };
                let mut s = sender();
                let response = Response { acknowledged: 1, in_flight: 50, loss: None, marked, stamp };
                s.on_response(&p, 1_001 * US, response);
                near(s.avg_delay, (average * US) as f64);
            }
        }
    }

    /// One decrease per base round trip; eta once per base round trip, here with its 150 B.
    #[test]
    fn decreases_and_eta_are_a_round_trip_apart() {
        let mut s = sender();
        ack(&mut s, 1_001 * US, 1, 24 * US, true);
        near(s.cwnd, 60_000.0);
        ack(&mut s, 1_011 * US, 1, 24 * US, true);
        near(s.cwnd, 60_000.0);
        ack(&mut s, 1_012 * US, 1, 11 * US, true);
        near(s.cwnd, 60_150.0);
        ack(&mut s, 1_014 * US, 1, 24 * US, true);
        near(s.cwnd, 60_150.0 * 0.6);
    }

    /// Without delay: after more than a window the window grows by a quarter of each acknowledged byte, up
    /// to 1.5 BDP, and a delay ends it.
    #[test]
    fn fast_increase_follows_a_window_without_delay() {
        let mut s = Sender { cwnd: 10_000.0, ..sender() };
        let mut acks = 0;
        while !s.increase && acks < 50 {
            assert!(s.fi_count <= s.cwnd);
            ack(&mut s, 1_001 * US, 2, 0, false);
            acks += 1;
        }
        assert!(s.increase && acks > 5, "{acks}");
        let before = s.cwnd;
        ack(&mut s, 1_001 * US, 2, 0, false);
        near(s.cwnd, before + 500.0);
        (0..10_000).for_each(|_| ack(&mut s, 1_001 * US, 2, 0, false));
        assert_eq!(s.cwnd, 225_000.0);
        ack(&mut s, 1_001 * US, 2, 2 * US, false);
        assert!(!s.increase && s.fi_count == 0.0);
    }

    /// Delays above 4 targets with less than 225,000/8 B in one period: the window becomes those bytes. Marked
    /// ACKs of packets that were in flight then change nothing.
    #[test]
    fn quick_adapt_sets_the_window_to_what_was_achieved() {
        let mut s = Sender { qa_endtime: 1_010 * US, ..sender() };
        ack(&mut s, 1_005 * US, 20, 11 * US, true);
        near(s.cwnd, 100_000.0);
        ack(&mut s, 1_010 * US, 5, 49 * US, true);
        near(s.cwnd, 25_000.0);
        assert_eq!((s.bytes_to_ignore, s.qa_endtime), (50_000.0, 1_034 * US));
        ack(&mut s, 1_031 * US, 49, 49 * US, true);
        near(s.cwnd, 25_000.0);
        ack(&mut s, 1_033 * US, 1, 24 * US, true);
        near(s.cwnd, 25_000.0 * 0.6 + 150.0);
        // Enough was achieved.
        let mut s = Sender { qa_endtime: 1_010 * US, ..sender() };
        ack(&mut s, 1_010 * US, 29, 49 * US, false);
        near(s.cwnd, 101_450.0);
    }

    fn nack(s: &mut Sender, now: Time, delay: Time) {
        let stamp = Stamp { sent: now - 12 * US - delay, ..Stamp::default() };
        let (acknowledged, loss) = (s.acknowledged, Some(Loss::Trimmed { last_hop: true }));
        s.on_response(&params(), now, Response { acknowledged, in_flight: 50, loss, marked: false, stamp });
    }

    /// A trimmed packet takes itself out of the window, and its delay counts as one base round trip. At the end of
    /// the period the first one sets the window to the bytes of that period, and those that were in flight then
    /// change nothing, up to 50,000 B.
    #[test]
    fn trimmed_packets_adapt_the_window_once() {
        let mut s = Sender { qa_endtime: 1_010 * US, ..sender() };
        nack(&mut s, 1_001 * US, US);
        near(s.cwnd, 99_000.0);
        assert_eq!((s.avg_delay, s.trigger_qa), (12.0 * US as f64, true));
        ack(&mut s, 1_002 * US, 7, 11 * US, true);
        nack(&mut s, 1_010 * US, US);
        near(s.cwnd, 7_000.0);
        assert_eq!((s.bytes_to_ignore, s.bytes_ignored, s.trigger_qa), (50_000.0, 0.0, false));
        (0..50).for_each(|_| nack(&mut s, 1_011 * US, US));
        // The first 49 are ignored, and one more is not.
        near(s.cwnd, 6_000.0);
        // A pending trigger suffices: an ACK without delay ends the period.
        let mut s = Sender { qa_endtime: 1_010 * US, trigger_qa: true, ..sender() };
        ack(&mut s, 1_010 * US, 3, 0, false);
        near(s.cwnd, 3_000.0);
        // Enough was achieved: one packet less.
        let mut s = Sender { qa_endtime: 1_010 * US, achieved_bytes: 29_000.0, ..sender() };
        nack(&mut s, 1_010 * US, US);
        near(s.cwnd, 99_000.0);
        assert!(s.trigger_qa && s.achieved_bytes == 0.0);
    }

    /// Beside credit a trim at the last hop takes no packet out of the window. All else is as without credit: the
    /// average, and quick adapt.
    #[test]
    fn beside_credit_trims_of_the_last_hop_take_nothing() {
        let p = NsccParams { last_hop: false, ..params() };
        let nack = |s: &mut Sender, now: Time, last_hop: bool| {
            let stamp = Stamp { sent: now - 13 * US, ..Stamp::default() };
            let (acknowledged, loss) = (s.acknowledged, Some(Loss::Trimmed { last_hop }));
            s.on_response(&p, now, Response { acknowledged, in_flight: 50, loss, marked: false, stamp });
        };
        let mut s = Sender { qa_endtime: 1_010 * US, ..sender() };
        nack(&mut s, 1_001 * US, true);
        near(s.cwnd, 100_000.0);
        assert_eq!((s.avg_delay, s.trigger_qa, s.bytes_ignored), (12.0 * US as f64, true, 1_000.0));
        nack(&mut s, 1_001 * US, false);
        near(s.cwnd, 99_000.0);
        ack(&mut s, 1_002 * US, 7, 11 * US, true);
        nack(&mut s, 1_010 * US, true);
        near(s.cwnd, 7_000.0);
    }

    /// For any events the window is between one packet and max_wnd, and a smaller round trip lowers the base.
    #[test]
    fn for_any_events_windows_keep_their_bounds() {
        for seed in 0..100 {
            let mut random = Stream::new(seed, "delays", 0);
            let p = params();
            let mut s = Sender::new(&p, LINE);
            let mut now = 100 * US;
            for _ in 0..500 {
                now += random.below(5 * US);
                let sent = now - 8 * US - random.below(80 * US);
                let response = Response {
                    acknowledged: s.acknowledged + random.below(4) as u32,
                    in_flight: random.below(200) as u32,
                    loss: [None, Some(Loss::Missing), Some(Loss::Trimmed { last_hop: random.below(2) == 0 })]
                        [random.below(3) as usize],
                    marked: random.below(2) == 0,
                    stamp: Stamp { sent, ..Stamp::default() },
                };
                s.on_response(&p, now, response);
                assert!(s.cwnd >= 1_000.0 && s.cwnd <= 225_000.0, "{}", s.cwnd);
                assert!(s.base_rtt <= 12 * US && s.window(&p) >= 1);
            }
        }
    }
}
