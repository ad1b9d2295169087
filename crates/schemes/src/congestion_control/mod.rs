//! Congestion controls, which set a sender's rate or window.

pub mod dcqcn;
pub mod dctcp;
pub mod hpcc;
pub mod keys;
pub mod notification;
pub mod nscc;
pub mod nscc_rccc;
pub mod powertcp;
pub mod rccc;
mod registry;
pub mod seam;
pub mod swift;
pub mod telemetry;
pub mod timely;

pub use registry::{CongestionControl, CongestionControlKeys, CongestionControlParams, Controls};

use std::fmt;
use xoff_kernel::time::{SECOND, Time};
use xoff_net::units::Bandwidth;

/// A rate, or a share of the flow's line rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Rate(u64),
    /// The line rate divided by this.
    LineShare(u64),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Rate(rate) => write!(f, "{}", Bandwidth(*rate)),
            Step::LineShare(divisor) => write!(f, "1/{divisor} of the line rate"),
        }
    }
}

impl Step {
    /// Bits per second for a flow whose line rate is `line`.
    pub fn of(self, line: f64) -> f64 {
        match self {
            Step::Rate(rate) => rate as f64,
            Step::LineShare(divisor) => line / divisor as f64,
        }
    }
}

/// Picoseconds that the next packet must wait after one of `size` wire bytes at `rate` bits/s, rounded up.
#[inline]
pub fn gap_at(size: u32, rate: f64) -> Time {
    (f64::from(size) * (8.0 * SECOND as f64) / rate).ceil() as Time
}

/// Packets of `mtu` payload bytes that may be in flight with a window of `rate` bits per second times
/// `round_trip` picoseconds: as long as less than the window is in flight, one more may go. At least 1.
pub fn window_at(rate: f64, round_trip: Time, mtu: u32) -> u32 {
    let bytes = rate * round_trip as f64 / (8.0 * SECOND as f64);
    // A cast saturates.
    ((bytes / f64::from(mtu)).ceil() as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 Gbit/s for 8 us are 100,000 B: 100 packets of 1,000 B, and 67 of 1,500 B,
    /// of which the last begins below the window and ends above it.
    #[test]
    fn windows_in_packets() {
        assert_eq!(window_at(1e11, 8_000_000, 1_000), 100);
        assert_eq!(window_at(1e11, 8_000_000, 1_500), 67);
        assert_eq!(window_at(1e6, 8_000_000, 1_500), 1);
        assert_eq!(window_at(1e15, Time::MAX, 1), u32::MAX);
    }

    /// 1,000 B at 3 Gbit/s take 2,666,666.67 ps.
    #[test]
    fn gaps_are_rounded_up() {
        assert_eq!((gap_at(1_000, 3e9), gap_at(1_000, 1e9)), (2_666_667, 8_000_000));
    }
}
