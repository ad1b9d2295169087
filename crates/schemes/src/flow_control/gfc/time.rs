//! The time-based form of GFC: an account names its stored bytes in each period, and the sender computes its rate.
//!
//! ```text
//! receiver, every T     send q, the bytes that the account stores
//! sender, on q          R = C                              q ≤ B_0
//!                       R = C·(B_m − q) / (B_m − B_0)      B_0 < q ≤ B_m − L
//!                       R = C·L / (B_m − B_0) / 2^j        beyond; j = ⌊(q − B_m) / L⌋, 0 to K
//! ```
//!
//! The second line is the paper's map. It ends one largest packet L before B_m, because packets are whole; the third
//! line is a ladder of stages, each of one packet. K is that of the buffer-based form, so in the last stage a packet
//! takes longer than any run. So no rate is 0.
//!
//! The sender is a leaky bucket. After a packet of z bytes began, `owed` = z falls with the rate R, also while R
//! changes, and the next packet may begin when it is 0. So the bytes that begin in a time are at most the integral of
//! R over it, and a packet.
//!
//! *No packet is lost.* τ and H = C·τ are those of the buffer-based form, D = B_m − B_0, k = C/D, and T ≥ τ. The
//! bound of the paper is D ≥ C·(√τ + √T)².
//!
//! 1. Let q′ be the stored bytes less those that are owed and those that are on the cable in the last packet's time:
//!    it grows continuously, at the rate in effect or less, and q′ ≤ q ≤ q′ + 2·L. As R falls with q, the rate that q
//!    gives is at most that of q′. Let e = B_m − q′, and e_n its value at the n-th frame, but D at most.
//! 2. While q′ ≤ B_m − L, rates are at most k·e_n. From frame n to frame n + 1 at most τ passes at the rate of frame
//!    n − 1. If e_n ≥ r·e_{n−1}, then e_{n+1} ≥ e_n·(1 − k·(T − τ) − k·τ/r). This is at least r·e_n for a root r of
//!    r² − (1 − k·(T − τ))·r + k·τ = 0, and the roots are real if D ≥ C·(√τ + √T)². All rates are C before the first
//!    frame, so e_0 ≥ r·D. Whatever leaves the account only adds to e. So q′ < B_m until the first frame that finds q′
//!    beyond B_m − L.
//! 3. The rate of the frame before that one lasts for τ: at most k·τ·L/r = r₂·L ≤ L/2 bytes, as the product of the
//!    roots is k·τ and their sum at most 1. From then on the rate is at most R_0 = k·L. Stage j is in effect T + τ
//!    after q′ has reached B_m + j·L. Meanwhile at most R_{j−1}·(T + τ) ≤ L bytes come, because D ≥ C·(T + τ). So q′
//!    reaches B_m + (j + 1)·L only at the rate of stage j. Beyond stage K it grows by two packets at most: one until
//!    the stage is in effect, and one in the rest of the run.
//! 4. So q ≤ B_m + (K + 4)·L: this is the buffer.

use super::super::LinkFacts;
use super::{feedback, stages};
use xoff_kernel::time::{Time, serialisation};

/// Bytes at line rate in the default period: InfiniBand's 65,536 symbol times, of a byte each.
pub const PERIOD: u64 = 65_536;

/// The rates of an ingress account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// B_0: the link has its full rate up to here.
    pub b0: u64,
    /// B_m.
    pub bm: u64,
    /// Bytes that the account may store.
    pub buffer: u64,
    /// L: bytes of the largest packet.
    pub largest: u64,
    /// K.
    pub stages: u8,
    /// T.
    pub period: Time,
}

impl Map {
    /// From B_0 on; `buffer` has [`room`] beyond it.
    pub fn new(b0: u64, buffer: u64, period: Time, link: &LinkFacts) -> Self {
        let (stages, largest) = (stages(link), link.largest.into());
        Self { b0, bm: buffer - packets(stages, largest), buffer, largest, stages, period }
    }

    /// The time in which `size` bytes pass at the rate for `q` stored bytes.
    pub fn time(&self, size: u32, rate: u64, q: u64) -> Time {
        let wire = serialisation(size.into(), rate);
        if q <= self.b0 {
            return wire;
        }
        let span = u128::from(self.bm - self.b0);
        let (left, stage) = match self.bm.saturating_sub(self.largest) {
            last if q <= last => (self.bm - q, 0),
            _ => (self.largest, self.stage(q)),
        };
        let time = (u128::from(wire) * span).div_ceil(left.into());
        Time::try_from(time.saturating_mul(1 << stage)).unwrap_or(Time::MAX)
    }

    /// j.
    fn stage(&self, q: u64) -> u8 {
        (q.saturating_sub(self.bm) / self.largest).min(self.stages.into()) as u8
    }

    /// How often the rate for `q` stored bytes is halved, rounded down.
    pub fn halvings(&self, q: u64) -> u8 {
        let span = self.bm - self.b0;
        let left = self.bm.saturating_sub(q).clamp(self.largest, span);
        (span / left).ilog2() as u8 + self.stage(q)
    }
}

/// D at least: C·(√τ + √T)² = H + C·T + 2·√(H·C·T).
pub fn least_span(link: &LinkFacts, period: Time, response_time: Time) -> u64 {
    let (h, passed) = (u128::from(feedback(link, response_time)), passed(link.rate, period));
    let square = 4 * h * passed;
    let root = square.isqrt();
    let root = root + u128::from(root * root < square);
    u64::try_from(h + passed + root).unwrap_or(u64::MAX)
}

/// C·T, rounded up.
pub fn passed(rate: u64, period: Time) -> u128 {
    (u128::from(rate) * u128::from(period)).div_ceil(8 * u128::from(xoff_kernel::time::SECOND))
}

/// The default of T: the time of [`PERIOD`], but τ at least.
pub fn default_period(link: &LinkFacts, response_time: Time) -> Time {
    serialisation(PERIOD.max(feedback(link, response_time)), link.rate).max(1)
}

/// The stages, and what whole packets add to the bytes that pass.
fn packets(stages: u8, largest: u64) -> u64 {
    (u64::from(stages) + 4).saturating_mul(largest)
}

/// Bytes that an account needs from B_0 on, at least.
pub fn room(link: &LinkFacts, period: Time, response_time: Time) -> u64 {
    least_span(link, period, response_time).saturating_add(packets(stages(link), link.largest.into()))
}
