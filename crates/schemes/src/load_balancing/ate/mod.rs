//! Asymmetric traffic engineering (ATE; Cao et al., *Revisiting Flow Control in Node-Centric Datacenter
//! Networks*, 2026, §III-E, Algorithm 5; §III-F, equation 3): over which of its two ports a node sends a
//! flow that may leave by either.
//!
//! A node *i* of a two-layer network has a port to the high-bandwidth domain, of rate *B_H*, and one to the
//! network domain, of rate *B_N*. To a node that differs in both digits of the address lead two routes of
//! equal length, one over each port. The node sends a new flow to the high-bandwidth domain with probability
//! *w_H*, else to the other (line 2), and measures the traffic *T_H* that it sends into the high-bandwidth
//! domain (line 3). Where that is too much, the weight follows it (lines 4 to 6):
//!
//! ```text
//!   T_H ≥ p · B_H:   w_H ← w_H · p · B_H / T_H        (equation 3)
//!                    w_N ← 1 − w_H
//! ```
//!
//! At rest T_H is p · B_H: of a demand *D* above that, the share p · B_H / D goes to
//! the high-bandwidth domain and the rest to the other.
//!
//! The points that the paper leaves open, and their readings:
//!
//! - *T_H* (`portfc.ate-formula`): a volume in flight cannot be compared with a rate. Here it is the bits of
//!   the node's own data packets, headers and repeats included, that went into the port during a window, over
//!   the window's length. Packets that the node relays and its ACKs do not count. Windows of one length
//!   follow each other from time 0.
//! - *When*: at the end of each window. It needs no timer, for nothing depends on the weight but choices: the
//!   first packet or choice after a window ends it.
//! - *Lines 5 and 6* forget the old weight, add a weight to a volume, and do not sum to 1. Equation 3 and w_N
//!   = 1 − w_H (both §III-F) hold instead, and w_H is kept within [`AteParams::least`] and 1.
//! - *Below the threshold* (`T_H < p · B_H`) the algorithm says nothing, and equation 3 has no condition:
//!   [`Update`] has three readings. Where weights grow, a window that is used in part, as the last one of a
//!   burst, counts as one of little traffic, and may bring the weight up to its bound.
//! - *T_H = 0*: the weight stays, as the paper says. As a weight of 0 would stay permanently, there is a
//!   least.
//! - *The first weight* ([`AteParams::first`]) is not given. The default is the high-bandwidth domain's share of
//!   the capacity, B_H / (B_H + B_N): "proportional fairness" (§III-F).

pub mod report;

use xoff_kernel::time::{SECOND, Time};

/// The rule by which a weight changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Equation 3 in both directions, up to 1: the high-bandwidth domain gets as much as it can take.
    BothWays,
    /// Equation 3 in both directions, up to the share of the capacity, which the high-bandwidth domain has as long
    /// as that is not too much for it.
    ToCapacity,
    /// As Algorithm 5 is printed: a weight only shrinks. Every window with traffic above the threshold by
    /// chance reduces it permanently.
    OneSided,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AteParams {
    /// p: how much of the high-bandwidth domain's rate may be used; above 0, up to 1.
    pub p: f64,
    /// Length of a window, above 0.
    pub window: Time,
    pub update: Update,
    /// The first weight, [`AteParams::least`] to 1; `None`: B_H / (B_H + B_N).
    pub first: Option<f64>,
    /// Least weight, 0 to 1: so much is always tried.
    pub least: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weight {
    value: f64,
    most: f64,
    /// p · B_H times the window: bits that a window may have.
    allowed: f64,
    end: Time,
    /// Bytes sent into the high-bandwidth domain in the current window.
    sent: u64,
}

impl Weight {
    /// The weight of a node whose ports have the rates `high` (B_H) and `other`
    /// (B_N), in bits per second, both above 0, at time 0.
    pub fn new(params: &AteParams, high: u64, other: u64) -> Self {
        let share = high as f64 / (high as f64 + other as f64);
        let first = params.first.unwrap_or(share);
        let most = match params.update {
            Update::BothWays => 1.0,
            Update::ToCapacity => share,
            Update::OneSided => first,
        };
        let allowed = params.p * high as f64 * (params.window as f64 / SECOND as f64);
        let (value, most) = (first.max(params.least), most.max(params.least));
        Self { value, most, allowed, end: params.window, sent: 0 }
    }

    /// A packet of `bytes` leaves for the high-bandwidth domain at `now`. Times of all calls ascend.
    #[inline]
    pub fn sent(&mut self, params: &AteParams, now: Time, bytes: u32) {
        self.at(params, now);
        self.sent += u64::from(bytes);
    }

    /// Whether a flow that begins at `now` goes to the high-bandwidth domain first; `random` is uniform in
    /// [0, 1) and drawn only for this flow (line 2).
    pub fn choose(&mut self, params: &AteParams, now: Time, random: f64) -> bool {
        random < self.at(params, now)
    }

    pub fn at(&mut self, params: &AteParams, now: Time) -> f64 {
        if now >= self.end {
            self.close(params, now);
        }
        self.value
    }

    /// The window is over, and `now` in another one; between them nothing was sent.
    fn close(&mut self, params: &AteParams, now: Time) {
        self.end = (now / params.window + 1).saturating_mul(params.window);
        let bits = 8.0 * std::mem::take(&mut self.sent) as f64;
        // T_H = 0: there is nothing to learn.
        if bits == 0.0 || (bits < self.allowed && params.update == Update::OneSided) {
            return;
        }
        self.value = (self.value * (self.allowed / bits)).clamp(params.least, self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xoff_kernel::random::Stream;
    use xoff_kernel::time::MICROSECOND;

    const GBPS: u64 = 1_000_000_000;
    /// As the paper's rail-only network has it: 160 Gbit/s against 100.
    const HIGH: u64 = 160 * GBPS;
    const OTHER: u64 = 100 * GBPS;
    const WINDOW: Time = 10 * MICROSECOND;
    /// Bytes of a full window of the port.
    const FULL: f64 = 200_000.0;

    fn params(update: Update) -> AteParams {
        AteParams { p: 0.9, window: WINDOW, update, first: None, least: 0.0 }
    }

    fn weight(update: Update) -> Weight {
        Weight::new(&params(update), HIGH, OTHER)
    }

    /// Sends `bytes` at the beginning of window `index`, and returns the weight of the next one.
    fn window(w: &mut Weight, p: &AteParams, index: u64, bytes: u32) -> f64 {
        w.sent(p, index * WINDOW, bytes);
        w.at(p, (index + 1) * WINDOW)
    }

    #[test]
    fn a_window_by_hand() {
        let p = params(Update::BothWays);
        let mut w = weight(Update::BothWays);
        assert_eq!(w.at(&p, 0), 160.0 / 260.0);
        // 200 kB in 10 us are 160 Gbit/s, and 144 are allowed: 0.9 of the weight remain.
        w.sent(&p, 0, 100_000);
        w.sent(&p, WINDOW - 1, 100_000);
        assert_eq!(w.at(&p, WINDOW - 1), 160.0 / 260.0, "the window is not over");
        let after = w.at(&p, WINDOW);
        assert!((after - 0.9 * 160.0 / 260.0).abs() < 1e-12, "{after}");
        // 72 Gbit/s, half of the limit: the weight doubles, and stops at 1.
        assert!((window(&mut w, &p, 1, 90_000) - 1.0).abs() < 1e-12);
    }

    /// A first weight above the share of the capacity shrinks to it at the first change, where that is the bound.
    #[test]
    fn the_first_weight_is_as_given() {
        for (update, after) in
            [(Update::BothWays, 1.0), (Update::ToCapacity, 160.0 / 260.0), (Update::OneSided, 0.9)]
        {
            let p = AteParams { first: Some(0.9), ..params(update) };
            let mut w = Weight::new(&p, HIGH, OTHER);
            assert_eq!(w.at(&p, 0), 0.9);
            assert_eq!(window(&mut w, &p, 0, 90_000), after, "{update:?}");
        }
    }

    #[test]
    fn bytes_at_the_end_of_a_window_belong_to_the_next() {
        let p = params(Update::OneSided);
        let mut w = weight(Update::OneSided);
        w.sent(&p, 0, 150_000);
        w.sent(&p, WINDOW, 150_000);
        // Neither of the two windows has more than the 180 kB that are allowed.
        assert_eq!(w.at(&p, 2 * WINDOW), 160.0 / 260.0);
        w.sent(&p, 2 * WINDOW, 150_000);
        w.sent(&p, 3 * WINDOW - 1, 50_000);
        assert!(w.at(&p, 3 * WINDOW) < 160.0 / 260.0);
    }

    /// With a demand D of which the share w_H comes, T_H = w_H · D: p · B_H is reached
    /// in one step from anywhere, and kept.
    #[test]
    fn the_fixed_point_is_p_times_the_rate() {
        let p = params(Update::BothWays);
        for demand in [145, 180, 200, 234, 260, 1_000] {
            let mut w = weight(Update::BothWays);
            let offered = demand as f64 / 160.0 * FULL;
            for i in 0..20 {
                let sent = (w.at(&p, i * WINDOW) * offered) as u32;
                let next = window(&mut w, &p, i, sent);
                let at_rest = 144.0 / demand as f64;
                assert!((next - at_rest).abs() < 1e-4, "{demand} Gbit/s, window {i}: {next} for {at_rest}");
            }
        }
    }

    /// Below the threshold all goes to the high-bandwidth domain, or its share.
    #[test]
    fn below_the_threshold_the_split_is_that_of_the_rule() {
        for (update, at_rest) in
            [(Update::BothWays, 1.0), (Update::ToCapacity, 160.0 / 260.0), (Update::OneSided, 160.0 / 260.0)]
        {
            let p = params(update);
            let mut w = weight(update);
            for i in 0..20 {
                let sent = (w.at(&p, i * WINDOW) * 100.0 / 160.0 * FULL) as u32;
                window(&mut w, &p, i, sent);
            }
            assert!((w.at(&p, 20 * WINDOW) - at_rest).abs() < 1e-12, "{update:?}");
        }
    }

    #[test]
    fn without_traffic_the_weight_stays() {
        for update in [Update::BothWays, Update::ToCapacity, Update::OneSided] {
            let p = params(update);
            let mut w = weight(update);
            let before = window(&mut w, &p, 0, 200_000);
            assert!(before < 160.0 / 260.0);
            // Many windows, with and without choices, and then another one of traffic.
            for i in [2, 3, 1_000, 1_000_000] {
                assert_eq!(w.at(&p, i * WINDOW), before, "{update:?}");
            }
            assert!(window(&mut w, &p, 1_000_001, 200_000) < before);
        }
    }

    /// One window of too much, and as much below it ever after: equation 3 goes back,
    /// Algorithm 5 as printed does not.
    #[test]
    fn the_printed_rule_is_a_ratchet() {
        let mean = |update| {
            let p = params(update);
            let mut w = weight(update);
            let mut random = Stream::new(1, "test", 0);
            let (mut sum, n) = (0.0, 2_000);
            for i in 0..n {
                // A demand of 234 Gbit/s, which the shares of the capacity bring to
                // p · B_H exactly, give or take a fifth.
                let demand = 234.0 * (0.8 + 0.4 * random.unit());
                let sent = w.at(&p, i * WINDOW) * demand / 160.0 * FULL;
                sum += sent;
                window(&mut w, &p, i, sent as u32);
            }
            sum / (n as f64 * 0.9 * FULL)
        };
        let (both, printed) = (mean(Update::BothWays), mean(Update::OneSided));
        assert!((both - 1.0).abs() < 0.03, "T_H over p · B_H: {both}");
        // The weight is soon that of the highest demand: 1 / 1.2 of the mean one.
        assert!((printed - 1.0 / 1.2).abs() < 0.01, "{printed}");
    }

    /// Nothing but the two-hop flows of a node may fill the port: the weight goes to
    /// 0, from where T_H = 0 cannot bring it back. With a least weight it comes back.
    #[test]
    fn a_least_weight_is_found_out_again() {
        for least in [0.0, 0.01] {
            let p = AteParams { least, ..params(Update::BothWays) };
            let mut w = Weight::new(&p, HIGH, OTHER);
            let mut i = 0;
            while i < 10_000 {
                window(&mut w, &p, i, 200_000);
                i += 1;
            }
            let lost = w.at(&p, i * WINDOW);
            assert!(if least > 0.0 { lost == least } else { lost < 1e-300 }, "{lost}");
            for _ in 0..100 {
                let sent = (w.at(&p, i * WINDOW) * 100.0 / 160.0 * FULL) as u32;
                window(&mut w, &p, i, sent);
                i += 1;
            }
            let back = w.at(&p, i * WINDOW);
            assert_eq!(back, if least > 0.0 { 1.0 } else { lost }, "least {least}");
        }
    }

    /// For any traffic, the weight stays within its bounds, never grows after a window of too much, and never
    /// shrinks after one of less. The effect of a choice depends only on the weight.
    #[test]
    fn weights_keep_to_their_bounds_and_directions() {
        let mut random = Stream::new(7, "test", 0);
        for _ in 0..300 {
            let update = [Update::BothWays, Update::ToCapacity, Update::OneSided][random.below(3) as usize];
            let (high, other) = ((1 + random.below(400)) * GBPS, (1 + random.below(400)) * GBPS);
            let share = high as f64 / (high + other) as f64;
            let least = 0.2 * random.unit();
            let bound = if update == Update::ToCapacity { share.max(least) } else { 1.0 };
            let first = (random.below(2) == 0).then(|| least + (bound - least) * random.unit());
            let p = AteParams {
                p: 0.05 + 0.95 * random.unit(),
                window: 1 + random.below(100 * MICROSECOND),
                update,
                first,
                least,
            };
            let mut w = Weight::new(&p, high, other);
            assert_eq!(w.value, first.unwrap_or(share).max(least));
            let most = if update == Update::OneSided { w.value } else { bound };
            let (mut now, mut sent, mut index) = (0, 0u64, 0);
            for _ in 0..200 {
                now += random.below(2 * p.window);
                let before = w;
                let bytes = random.below(100_000) as u32;
                w.sent(&p, now, bytes);
                assert!((p.least..=most).contains(&w.value), "{w:?}");
                if now / p.window > index {
                    index = now / p.window;
                    let too_much = 8.0 * sent as f64 >= before.allowed;
                    let fits = match (sent, too_much, update) {
                        (0, ..) | (_, false, Update::OneSided) => w.value == before.value,
                        (_, true, _) => w.value <= before.value,
                        (_, false, _) => w.value >= before.value,
                    };
                    assert!(fits, "{before:?} sent {sent}: {w:?}");
                    sent = 0;
                } else {
                    assert_eq!(w.value, before.value, "within a window");
                }
                sent += u64::from(bytes);
                let draw = random.unit();
                assert_eq!(w.choose(&p, now, draw), draw < w.value);
            }
        }
    }
}
