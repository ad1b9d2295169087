//! Swift (Kumar et al., *Swift: Delay is Simple and Effective for Congestion Control in the Datacenter*,
//! SIGCOMM 2020).
//!
//! Each data packet carries the time of its departure and counts the switches that it crosses (in the paper:
//! the TTL). The receiver adds the time that the packet waited in the receiving host, and the ACK returns all
//! of it ([`Stamp`]). The sender divides the round trip into the *endpoint delay*, which is that wait, and the
//! *fabric delay*, which is the rest. Each has a window in packets: fcwnd follows the fabric delay, and ecwnd
//! an average of the endpoint delay. The smaller one applies. Algorithm 1, for each window:
//!
//! ```text
//!   can_decrease = now − t_last_decrease ≥ rtt
//!   on ACK:            retransmit_cnt = 0
//!                      if delay < target:         cwnd ← cwnd + ai·num_acked/cwnd     if cwnd ≥ 1
//!                                                 cwnd ← cwnd + ai·num_acked          else
//!                      else if can_decrease:      cwnd ← cwnd·max(1 − β·(delay − target)/delay, 1 − max_mdf)
//!   on timeout:        retransmit_cnt += 1
//!                      if retransmit_cnt ≥ RETX_RESET_THRESHOLD:   cwnd ← min_cwnd
//!                      else if can_decrease:                       cwnd ← cwnd·(1 − max_mdf)
//!   on fast recovery:  retransmit_cnt = 0
//!                      if can_decrease:           cwnd ← cwnd·(1 − max_mdf)
//!   always:            cwnd ← clamp(cwnd, min_cwnd, max_cwnd)
//!                      if cwnd < cwnd_prev:       t_last_decrease = now
//!                      pacing_delay = rtt/cwnd if cwnd < 1, else 0
//! ```
//!
//! The fabric's target grows with the path (topology scaling) and with the number of flows, of which 1/√fcwnd
//! is an estimate (flow scaling):
//!
//! ```text
//!   target = base_target + #hops·ħ + max(0, min(α/√fcwnd + β_fs, fs_range))
//!   α = fs_range/(1/√fs_min_cwnd − 1/√fs_max_cwnd),   β_fs = −α/√fs_max_cwnd
//! ```
//!
//! Public implementations differ in the last comparison. INET's `Swift.cc` has cwnd ≤ cwnd_prev: then an ACK
//! that may not decrease the window restarts the round trip, and a queue of many packets allows one decrease
//! only. csg-htsim's `swift.cpp` has <, as here. The round trip of can_decrease is that of this ACK. So a
//! decrease follows another one only if the packet left after that one.
//!
//! A fast recovery begins with a NACK for the first missing packet.

mod keys;

pub use keys::SwiftKeys;

use super::seam::{self, Answer, Departure, Parameters};
use super::telemetry::Stamp;
use crate::flow_control::keys::LONGEST;
use std::fmt::{self, Write};
use xoff_kernel::time::{SECOND, Time};
use xoff_net::units::Span;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwiftParams {
    /// In picoseconds.
    pub base_target: Time,
    /// ħ, in picoseconds.
    pub per_hop: Time,
    pub flow_scaling: FlowScaling,
    /// ai, in packets per round trip; above 0.
    pub additive_increase: f64,
    /// β; above 0, at most 1.
    pub beta: f64,
    /// The largest share of one decrease; above 0, at most 1.
    pub max_mdf: f64,
    /// In packets; above 0.
    pub min_cwnd: f64,
    /// In packets; otherwise those that a flow at line rate sends within [`SwiftParams::longest_target`].
    pub max_cwnd: Option<f64>,
    /// In packets; otherwise those that a flow at line rate sends within [`SwiftParams::base_rtt`].
    pub initial_cwnd: Option<f64>,
    /// RETX_RESET_THRESHOLD, at least 1.
    pub retx_reset_threshold: u32,
    /// The target of the endpoint delay, in picoseconds.
    pub endpoint_target: Time,
    /// Weight of the newest endpoint delay; above 0, at most 1.
    pub endpoint_gain: f64,
    /// The round trip before the first measurement, in picoseconds, above 0.
    pub base_rtt: Time,
    /// The target of the longest path for a window of fs_max_cwnd, in picoseconds, at least `base_rtt`.
    pub longest_target: Time,
    /// Payload of a packet in bytes.
    pub mtu: u32,
}

/// The part of the target that grows with the number of flows, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowScaling {
    pub range: Time,
    /// fs_min_cwnd and fs_max_cwnd, in packets, in ascending order.
    pub cwnd: [f64; 2],
    alpha: f64,
    beta: f64,
}

impl FlowScaling {
    /// `least` is above 0 and below `most`.
    pub fn new(range: Time, least: f64, most: f64) -> Self {
        let alpha = range as f64 / (1.0 / least.sqrt() - 1.0 / most.sqrt());
        Self { range, cwnd: [least, most], alpha, beta: -alpha / most.sqrt() }
    }

    fn of(&self, cwnd: f64) -> f64 {
        (self.alpha / cwnd.sqrt() + self.beta).min(self.range as f64).max(0.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// All packets below are acknowledged, by this control packet or earlier ones.
    pub acknowledged: u32,
    /// It reports the first missing packet.
    pub lost: bool,
    pub stamp: Stamp,
}

/// One of the two windows.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Window {
    /// In packets.
    cwnd: f64,
    last_decrease: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sender {
    fabric: Window,
    endpoint: Window,
    /// In packets.
    max_cwnd: f64,
    /// The line rate, in bits per second.
    line: f64,
    /// The newest round trip, in picoseconds.
    rtt: Time,
    /// The average of the endpoint delay, in picoseconds.
    endpoint_delay: Option<f64>,
    retransmit_cnt: u32,
    /// Acknowledged before the last ACK or NACK.
    acknowledged: u32,
    last_sent: Option<Time>,
}

impl Window {
    /// The end of each event.
    fn set(&mut self, params: &SwiftParams, max_cwnd: f64, cwnd: f64, now: Time) {
        let before = self.cwnd;
        self.cwnd = cwnd.max(params.min_cwnd).min(max_cwnd);
        if self.cwnd < before {
            self.last_decrease = Some(now);
        }
    }

    fn can_decrease(&self, now: Time, rtt: Time) -> bool {
        self.last_decrease.is_none_or(|last| now - last >= rtt)
    }

    /// An ACK of `acked` packets: the window afterwards, before it is clamped.
    fn after(&self, p: &SwiftParams, acked: f64, delay: f64, target: f64, can_decrease: bool) -> f64 {
        if delay < target {
            self.cwnd + p.additive_increase * if self.cwnd >= 1.0 { acked / self.cwnd } else { acked }
        } else if can_decrease {
            self.cwnd * (1.0 - p.beta * (delay - target) / delay).max(1.0 - p.max_mdf)
        } else {
            self.cwnd
        }
    }
}

impl Sender {
    /// A flow before its start, with its line rate in bits per second.
    pub fn new(params: &SwiftParams, line: u64) -> Self {
        let line = line as f64;
        let within = |time| f64::from(super::window_at(line, time, params.mtu));
        let max_cwnd = params.max_cwnd.unwrap_or_else(|| within(params.longest_target)).max(params.min_cwnd);
        let cwnd = params.initial_cwnd.unwrap_or_else(|| within(params.base_rtt));
        let window = Window { cwnd: cwnd.max(params.min_cwnd).min(max_cwnd), last_decrease: None };
        Self {
            fabric: window,
            endpoint: window,
            max_cwnd,
            line,
            rtt: params.base_rtt,
            endpoint_delay: None,
            retransmit_cnt: 0,
            acknowledged: 0,
            last_sent: None,
        }
    }

    /// The window in packets, which may be below 1.
    pub fn cwnd(&self) -> f64 {
        self.fabric.cwnd.min(self.endpoint.cwnd)
    }

    /// Packets that may be in flight, at least 1. A window below 1 delays the packet instead.
    pub fn window(&self) -> u32 {
        (self.cwnd() as u32).max(1)
    }

    /// The window per round trip in bits per second of payload, at most the line rate.
    pub fn rate(&self, params: &SwiftParams) -> f64 {
        let bits = self.cwnd() * 8.0 * f64::from(params.mtu);
        (bits * SECOND as f64 / self.rtt as f64).min(self.line)
    }

    /// A packet begins to leave. Returns the picoseconds that the next one must wait at least.
    pub fn on_sent(&mut self, now: Time) -> Option<Time> {
        self.last_sent = Some(now);
        self.pacing_delay()
    }

    /// rtt/cwnd if the window is below 1, but never longer than other timers.
    fn pacing_delay(&self) -> Option<Time> {
        let cwnd = self.cwnd();
        (cwnd < 1.0).then(|| ((self.rtt as f64 / cwnd).ceil() as Time).min(LONGEST))
    }

    /// The next packet may not leave before this time, if its window is below 1.
    pub fn not_before(&self) -> Option<Time> {
        Some(self.last_sent? + self.pacing_delay()?)
    }

    /// The target of the fabric delay over so many switches, in picoseconds.
    pub fn target(&self, params: &SwiftParams, hops: u32) -> f64 {
        (params.base_target + Time::from(hops) * params.per_hop) as f64
            + params.flow_scaling.of(self.fabric.cwnd)
    }

    pub fn on_response(&mut self, params: &SwiftParams, now: Time, response: Response) {
        let acked = response.acknowledged.saturating_sub(self.acknowledged);
        self.acknowledged += acked;
        self.retransmit_cnt = 0;
        let Stamp { sent, hops, endpoint } = response.stamp;
        self.rtt = (now - sent).max(1);
        let (gain, sample) = (params.endpoint_gain, endpoint as f64);
        let average = self.endpoint_delay.map_or(sample, |old| (1.0 - gain) * old + gain * sample);
        self.endpoint_delay = Some(average);
        if response.lost {
            return self.cut(params, now);
        }
        let delays = [
            ((now - sent - endpoint) as f64, self.target(params, hops)),
            (average, params.endpoint_target as f64),
        ];
        for (window, (delay, target)) in [&mut self.fabric, &mut self.endpoint].into_iter().zip(delays) {
            let can_decrease = window.can_decrease(now, self.rtt);
            let cwnd = window.after(params, f64::from(acked), delay, target, can_decrease);
            window.set(params, self.max_cwnd, cwnd, now);
        }
    }

    pub fn on_timeout(&mut self, params: &SwiftParams, now: Time) {
        self.retransmit_cnt = self.retransmit_cnt.saturating_add(1);
        if self.retransmit_cnt < params.retx_reset_threshold {
            return self.cut(params, now);
        }
        for window in [&mut self.fabric, &mut self.endpoint] {
            window.set(params, self.max_cwnd, params.min_cwnd, now);
        }
    }

    /// A loss decreases both windows: its place is unknown.
    fn cut(&mut self, params: &SwiftParams, now: Time) {
        for window in [&mut self.fabric, &mut self.endpoint] {
            if window.can_decrease(now, self.rtt) {
                window.set(params, self.max_cwnd, window.cwnd * (1.0 - params.max_mdf), now);
            }
        }
    }
}

impl seam::Sender for Sender {
    type Params = SwiftParams;

    fn new(params: &SwiftParams, line: u64) -> Self {
        Self::new(params, line)
    }

    fn rate_at(&self, params: &SwiftParams, _: Time) -> f64 {
        self.rate(params)
    }

    fn window(&self, _: &SwiftParams) -> Option<u32> {
        Some(self.window())
    }

    #[inline]
    fn not_before(&self) -> Option<Time> {
        self.not_before()
    }

    #[inline(never)]
    fn on_sent(&mut self, _: &SwiftParams, now: Time, _: Departure) -> Option<Time> {
        self.on_sent(now)
    }

    fn on_answer(&mut self, params: &SwiftParams, now: Time, answer: &Answer<'_>) {
        let &Answer { una: acknowledged, loss, inferred, stamp, .. } = answer;
        let lost = loss.is_some() || inferred > 0;
        self.on_response(params, now, Response { acknowledged, lost, stamp });
    }

    fn on_timeout(&mut self, params: &SwiftParams, _: u32, now: Time) {
        self.on_timeout(params, now);
    }
}

impl Parameters for SwiftParams {
    fn stamps(&self) -> bool {
        true
    }

    fn sets_windows(&self) -> bool {
        true
    }

    fn describe(&self, out: &mut String, head: &str, _: bool) -> fmt::Result {
        let packets = |n: f64| format!("{n} packet{}", if n == 1.0 { "" } else { "s" });
        let [base, hop, range, endpoint] =
            [self.base_target, self.per_hop, self.flow_scaling.range, self.endpoint_target].map(Span);
        let [least, most] = self.flow_scaling.cwnd;
        writeln!(out, "{head}swift (the delay of each ACK changes the window)")?;
        write!(out, "  target delay {base}, {hop} more per switch")?;
        match self.flow_scaling.range {
            0 => writeln!(out, "; no flow scaling")?,
            _ => writeln!(out, ", up to {range} more for windows from {most} down to {least} packets")?,
        }
        writeln!(
            out,
            "  target delay in the receiver {endpoint}, for an average with weight {}",
            self.endpoint_gain
        )?;
        writeln!(
            out,
            "  adds {} per round trip below the target; one decrease per round trip: beta {}, at most {}",
            packets(self.additive_increase),
            self.beta,
            self.max_mdf
        )?;
        let window = |cwnd: Option<f64>, time| match cwnd {
            Some(cwnd) => packets(cwnd),
            None => format!("line rate × {}", Span(time)),
        };
        let first = window(self.initial_cwnd, self.base_rtt);
        let most = window(self.max_cwnd, self.longest_target);
        writeln!(out, "  window {first} at first, then {} packets to {most}", self.min_cwnd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xoff_kernel::random::Stream;

    const US: Time = 1_000_000;
    const LINE: u64 = 100_000_000_000;

    fn params() -> SwiftParams {
        SwiftParams {
            base_target: 20 * US,
            per_hop: 3 * US,
            flow_scaling: FlowScaling::new(100 * US, 0.1, 100.0),
            additive_increase: 1.0,
            beta: 0.8,
            max_mdf: 0.5,
            min_cwnd: 0.001,
            max_cwnd: Some(1_000.0),
            initial_cwnd: Some(200.0),
            retx_reset_threshold: 5,
            endpoint_target: 20 * US,
            endpoint_gain: 0.5,
            base_rtt: 8 * US,
            longest_target: 35 * US,
            mtu: 1_000,
        }
    }

    /// An ACK at `now` of a packet that took `rtt`, over two switches.
    fn ack(acknowledged: u32, now: Time, rtt: Time) -> Response {
        Response { acknowledged, lost: false, stamp: Stamp { sent: now - rtt, hops: 2, endpoint: 0 } }
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} instead of {b}");
    }

    /// By hand: the target over two switches is 26 us, and above fs_max_cwnd the flow scaling adds nothing.
    /// 40 us: 1 − 0.8·14/40 = 0.72, so 200 becomes 144. An ACK 39 us later, also of 40 us, left before the
    /// decrease and changes nothing; one at 40 us decreases to 103.68. 200 us: the factor would be 0.304, and
    /// 0.5 is the smallest. Below the target 10 packets of a window of 51.84 add 10/51.84.
    #[test]
    fn the_window_follows_the_algorithm() {
        let p = params();
        let mut s = Sender::new(&p, LINE);
        assert_eq!((s.cwnd(), s.window()), (200.0, 200));
        s.on_response(&p, 1_000 * US, ack(1, 1_000 * US, 40 * US));
        near(s.cwnd(), 144.0);
        s.on_response(&p, 1_039 * US, ack(2, 1_039 * US, 40 * US));
        near(s.cwnd(), 144.0);
        s.on_response(&p, 1_040 * US, ack(3, 1_040 * US, 40 * US));
        near(s.cwnd(), 103.68);
        s.on_response(&p, 2_000 * US, ack(4, 2_000 * US, 200 * US));
        near(s.cwnd(), 51.84);
        s.on_response(&p, 2_001 * US, ack(14, 2_001 * US, 10 * US));
        near(s.cwnd(), 51.84 + 10.0 / 51.84);
        assert_eq!(s.window(), 52);
        assert_eq!((s.on_sent(2_001 * US), s.not_before()), (None, None));
    }

    /// α = 100 us/(1/√0.1 − 1/√100) and the term is fs_range at fs_min_cwnd, 0 at fs_max_cwnd, and falls
    /// between them. The target is 20 us and 3 us per switch above it.
    #[test]
    fn targets_scale_with_the_path_and_the_window() {
        let scaling = params().flow_scaling;
        near(scaling.of(0.1), 100e6);
        near(scaling.of(0.01), 100e6);
        near(scaling.of(100.0), 0.0);
        near(scaling.of(1_000.0), 0.0);
        near(scaling.of(1.0), 100e6 * 0.9 / (10f64.sqrt() - 0.1));
        let mut last = f64::INFINITY;
        for n in 1..2_000 {
            let term = scaling.of(f64::from(n) * 0.06);
            assert!(term <= last && (0.0..=100e6).contains(&term));
            last = term;
        }
        let p = params();
        let s = Sender::new(&p, LINE);
        assert_eq!((s.target(&p, 0), s.target(&p, 5)), (20e6, 35e6));
    }

    /// 0.5 packets per round trip are one packet in two round trips. Below 1 an increase is a whole `ai` per
    /// packet.
    #[test]
    fn windows_below_one_packet_pace() {
        let p = SwiftParams { initial_cwnd: Some(1.0), ..params() };
        let mut s = Sender::new(&p, LINE);
        assert_eq!(s.on_sent(100 * US), None);
        let slow = 10_000 * US;
        s.on_response(&p, slow + 100 * US, ack(1, slow + 100 * US, slow));
        near(s.cwnd(), 0.5);
        assert_eq!(s.window(), 1);
        assert_eq!(s.not_before(), Some(100 * US + 2 * slow));
        assert_eq!(s.on_sent(3 * slow), Some(2 * slow));
        s.on_response(&p, 3 * slow + 30 * US, ack(2, 3 * slow + 30 * US, 30 * US));
        near(s.cwnd(), 1.5);
        assert_eq!(s.not_before(), None);
    }

    /// The endpoint delay is no part of the fabric delay, and has its own window and average: 30 us in the
    /// host and 10 us in the fabric decrease only ecwnd, by 0.8·10/30; then the average of 30 and 0 us is 15.
    #[test]
    fn endpoint_delay_has_a_window_of_its_own() {
        let p = params();
        let mut s = Sender::new(&p, LINE);
        let at = |now: Time, acknowledged, endpoint| {
            let stamp = Stamp { sent: now - 10 * US - endpoint, hops: 2, endpoint };
            (now, Response { acknowledged, lost: false, stamp })
        };
        let (now, response) = at(100 * US, 1, 30 * US);
        s.on_response(&p, now, response);
        near(s.fabric.cwnd, 200.0 + 1.0 / 200.0);
        near(s.endpoint.cwnd, 200.0 * (1.0 - 0.8 / 3.0));
        near(s.cwnd(), s.endpoint.cwnd);
        let before = s.endpoint.cwnd;
        let (now, response) = at(110 * US, 2, 0);
        s.on_response(&p, now, response);
        near(s.endpoint_delay.unwrap(), 15e6);
        near(s.endpoint.cwnd, before + 1.0 / before);
    }

    /// NACKs halve both windows once per round trip. The fifth timeout without an ACK between them sets the
    /// minimum at once.
    #[test]
    fn losses_decrease_and_repeated_timeouts_reset() {
        let p = params();
        let mut s = Sender::new(&p, LINE);
        let lost = |now| Response { lost: true, ..ack(0, now, 10 * US) };
        s.on_response(&p, 100 * US, lost(100 * US));
        s.on_response(&p, 109 * US, lost(109 * US));
        assert_eq!((s.fabric.cwnd, s.endpoint.cwnd), (100.0, 100.0));
        s.on_response(&p, 110 * US, lost(110 * US));
        assert_eq!(s.cwnd(), 50.0);
        for (n, expected) in [(1, 25.0), (2, 12.5), (3, 6.25), (4, 3.125), (5, 0.001), (6, 0.001)] {
            s.on_timeout(&p, 1_000 * n * US);
            assert_eq!(s.cwnd(), expected);
        }
        // 10 us at a window of 0.001: 10 ms between two packets.
        assert_eq!(s.on_sent(7_000 * US), Some(10_000 * US));
        s.on_response(&p, 7_010 * US, ack(1, 7_010 * US, 10 * US));
        assert_eq!(s.retransmit_cnt, 0);
        near(s.cwnd(), 1.001);
    }

    /// By default a flow begins with the bytes of one round trip at line rate, and its window grows to
    /// the longest target: 100 packets in 8 us, and 438 in 35 us.
    #[test]
    fn windows_come_from_the_line_rate() {
        let p = SwiftParams { initial_cwnd: None, max_cwnd: None, ..params() };
        let mut s = Sender::new(&p, LINE);
        assert_eq!((s.window(), s.max_cwnd), (100, 438.0));
        assert_eq!(s.rate(&p), 1e11);
        (1..100_000).for_each(|n| s.on_response(&p, n * US, ack(n as u32, n * US, 8 * US / 10)));
        assert_eq!(s.window(), 438);
        assert_eq!(Sender::new(&p, 1_000).window(), 1);
    }

    /// For any sequence of delays, losses and timeouts: windows stay within their bounds, two decreases by
    /// ACKs and NACKs are a round trip apart, and one decrease is at most max_mdf.
    #[test]
    fn for_any_events_decreases_are_a_round_trip_apart() {
        let p = SwiftParams { retx_reset_threshold: u32::MAX, ..params() };
        for seed in 0..100 {
            let mut random = Stream::new(seed, "delays", 0);
            let mut s = Sender::new(&p, LINE);
            let (mut now, mut acknowledged, mut last) = (1_000 * US, 0, None);
            for _ in 0..500 {
                now += random.below(10 * US);
                let rtt = 5 * US + random.below(100 * US);
                acknowledged += random.below(3) as u32;
                let before = s.fabric;
                match random.below(20) {
                    0 => s.on_timeout(&p, now),
                    n => s.on_response(&p, now, Response { lost: n == 1, ..ack(acknowledged, now, rtt) }),
                }
                let cwnd = s.fabric.cwnd;
                assert!((p.min_cwnd..=1_000.0).contains(&cwnd) && cwnd >= 0.5 * before.cwnd);
                if cwnd < before.cwnd {
                    assert!(last.is_none_or(|last| now - last >= s.rtt));
                    last = Some(now);
                }
                assert!(s.window() >= 1 && f64::from(s.window()) <= cwnd.max(1.0));
            }
            assert!(last.is_some());
        }
    }
}
