//! DCTCP (Alizadeh et al., SIGCOMM 2010; RFC 8257) in TCP: the sender's reaction to marks. The window, losses
//! and the timer are NewReno's ([`super::newreno`]). (DCTCP with a rate, for RoCE, is
//! [`crate::congestion_control::dctcp`].)
//!
//! Switches mark by one threshold (K_min = K_max). Each packet has its own ACK, which says whether it
//! was marked: the echo is exact, and neither the receiver's state machine for delayed ACKs (RFC 8257 §3.2)
//! nor CWR is needed. A sender keeps α, the estimate of the share of packets that are marked.
//!
//! ```text
//!   for each ACK:      F is the share of the marked ones
//!   una > end:         α ← (1 − g)·α + g·F;  F ← 0;  end = nxt
//!   marked, and una ≥ spared:
//!                      ssthresh = max(W·(1 − α/2), 2 SMSS);  cwnd = min(cwnd, ssthresh);
//!                      spared = nxt + 1
//!   loss or timeout:   as in NewReno;  spared = highest + 1
//! ```
//!
//! So a window of data is reduced once, for any marks or losses in it (RFC 3168 §6.1.2), slow start ends with
//! the first mark, and the ACK that reduces the window does not grow it; other marked ones do, as in the
//! model of DCTCP's paper (§3.3). α begins at 1, and `end` at 0, so the first ACK does not change α (RFC 8257
//! §3.3).
//!
//! W is cwnd, or FlightSize and a segment where that is less (RFC 8257 says cwnd). A sender that its port's
//! rate or the receive window holds back does not fill cwnd, which grows all the same; cut by α/2 it would
//! still be more than is in flight. NewReno goes by FlightSize for that reason (RFC 5681 §3.1; RFC 8511 for
//! marks).
//!
//! F counts packets, not the acknowledged bytes: after a gap ACKs acknowledge none, while packets are marked
//! most where they are lost. Linux counts the same; RFC 8257 §3.3 leaves out packets after a gap.
//!
//! α is a fraction of [`ONE`], rounded down.

/// α = 1, and g = 1.
pub const ONE: u64 = 1 << 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DctcpParams {
    /// g: the weight of news in α, 1 to [`ONE`].
    pub gain: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// α, 0 to [`ONE`].
    pub(super) alpha: u64,
    /// ACKs in this window of data, and the marked ones among them.
    acks: u64,
    marked: u64,
    /// The window of data ends when more than this is acknowledged.
    pub(super) end: u32,
    /// No reduction until as much as this is acknowledged.
    pub(super) spared: u32,
}

impl Marks {
    pub(super) fn new() -> Self {
        Self { alpha: ONE, acks: 0, marked: 0, end: 0, spared: 0 }
    }

    /// An ACK has arrived of everything below `una`; the next packet in order is `nxt`, and the ACK's data
    /// packet was `marked`. Returns whether to reduce the window.
    pub fn on_ack(&mut self, params: &DctcpParams, una: u32, nxt: u32, marked: bool) -> bool {
        self.acks += 1;
        self.marked += u64::from(marked);
        if una > self.end {
            let share = self.marked * ONE / self.acks;
            self.alpha = ((ONE - params.gain) * self.alpha + params.gain * share) / ONE;
            (self.acks, self.marked) = (0, 0);
            self.end = nxt;
        }
        let reduces = marked && una >= self.spared;
        if reduces {
            self.spare(nxt);
        }
        reduces
    }

    /// Sent packets, all below `highest`, do not reduce the window any more.
    pub fn spare(&mut self, highest: u32) {
        self.spared = highest.saturating_add(1);
    }

    /// `window · (1 − α/2)`, rounded up.
    pub fn reduced(&self, window: u64) -> u64 {
        window - (u128::from(window) * u128::from(self.alpha) / u128::from(2 * ONE)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: DctcpParams = DctcpParams { gain: ONE / 16 };

    /// By hand, four packets in flight after each ACK, and none lost. ACK 1 ends the first window: α = 15/16.
    /// Packets 0 to 4 had been sent by then, so the second one ends with ACK 6: of ACKs 2 to 6 the last two
    /// are marked, F = 2/5, and α = 0.9375² + 0.4/16. ACK 5 reduces the window, with packets 0 to 8 sent; 10
    /// is the next.
    #[test]
    fn alpha_is_updated_once_per_window_of_data() {
        let mut m = Marks::new();
        let seen: Vec<(bool, f64)> = (1..=10u32)
            .map(|n| {
                let marked = [5, 6, 7, 9, 10].contains(&n);
                (m.on_ack(&PARAMS, n, n + 4, marked), m.alpha as f64 / ONE as f64)
            })
            .collect();
        let first = 0.9375;
        let second = 0.9375 * 0.9375 + 0.4 / 16.0;
        for (n, (reduces, alpha)) in (1..).zip(seen) {
            let expected = if n < 6 { first } else { second };
            assert!((alpha - expected).abs() < 1e-8, "{n}: {alpha} {expected}");
            assert_eq!(reduces, n == 5 || n == 10, "{n}");
        }
        // 1 − α/2 of 1 MB.
        assert!(m.reduced(1_000_000).abs_diff((1e6 * (1.0 - second / 2.0)) as u64) <= 1);
    }
}
