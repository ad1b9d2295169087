//! Congestion controls, which set a sender's rate or window.

pub mod dcqcn;
pub mod dctcp;
pub mod hpcc;
pub mod nscc;
pub mod nscc_rccc;
pub mod powertcp;
pub mod rccc;
pub mod swift;
pub mod timely;

use crate::names::names;
use xoff_kernel::time::{SECOND, Time};

names! {
/// Congestion controls.
pub enum CongestionControl {
    /// None: line rate, or the `rate` of the flow.
    #[default]
    None = "none",
    /// DCQCN: switches mark, receivers notify, senders adapt a rate per flow
    /// (SIGCOMM 2015).
    Dcqcn = "dcqcn",
    /// TIMELY: senders measure round-trip times and adapt a rate per flow to their
    /// gradient (SIGCOMM 2015, as published).
    Timely = "timely",
    /// HPCC: packets carry the load of each link of their path, and senders adapt a rate and a
    /// window per flow (SIGCOMM 2019).
    Hpcc = "hpcc",
    /// DCTCP as a rate scheme of RoCE: switches mark, and senders adapt a rate and a
    /// window per flow to the share of marked packets in each round trip.
    Dctcp = "dctcp",
    /// Swift: senders measure the delay of each ACK and adapt a window per flow, which may be below one
    /// packet (SIGCOMM 2020).
    Swift = "swift",
    /// NSCC of Ultra Ethernet: senders adapt a window per flow to the mark and the delay of each ACK
    /// (specification 1.0.1, without trimmed packets and credits).
    Nscc = "nscc",
    /// PowerTCP: packets carry the load of each link of their path, and senders adapt a rate and a window per
    /// flow to the product of arriving bytes and waiting bytes (NSDI 2022).
    PowerTcp = "powertcp",
    /// RCCC of Ultra Ethernet: the receiver grants credit to its senders at the rate of its link (specification
    /// 1.0.x, section 3.6.14). It needs the transport `rud`.
    Rccc = "rccc",
    /// NSCC and RCCC of Ultra Ethernet together: a sender needs room in its window and credit of its receiver. It
    /// needs the transport `rud`.
    NsccRccc = "nscc+rccc",
}
}

impl CongestionControl {
    /// Those whose rules it applies, and whose tables it reads: itself, or its parts.
    pub fn parts(&self) -> &[Self] {
        match self {
            Self::NsccRccc => &[Self::Nscc, Self::Rccc],
            _ => std::slice::from_ref(self),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CongestionControlParams {
    None,
    Dcqcn(dcqcn::DcqcnParams),
    Timely(timely::TimelyParams),
    Hpcc(hpcc::HpccParams),
    Dctcp(dctcp::DctcpParams),
    Swift(swift::SwiftParams),
    Nscc(nscc::NsccParams),
    PowerTcp(powertcp::PowerTcpParams),
    Rccc(rccc::RcccParams),
    NsccRccc(nscc_rccc::NsccRcccParams),
}

impl CongestionControlParams {
    pub fn name(&self) -> &'static str {
        let control = match self {
            Self::None => CongestionControl::None,
            Self::Dcqcn(_) => CongestionControl::Dcqcn,
            Self::Timely(_) => CongestionControl::Timely,
            Self::Hpcc(_) => CongestionControl::Hpcc,
            Self::Dctcp(_) => CongestionControl::Dctcp,
            Self::Swift(_) => CongestionControl::Swift,
            Self::Nscc(_) => CongestionControl::Nscc,
            Self::PowerTcp(_) => CongestionControl::PowerTcp,
            Self::Rccc(_) => CongestionControl::Rccc,
            Self::NsccRccc(_) => CongestionControl::NsccRccc,
        };
        control.name()
    }

    /// Those of NSCC, alone or with others.
    pub fn nscc(&self) -> Option<&nscc::NsccParams> {
        match self {
            Self::Nscc(params) => Some(params),
            Self::NsccRccc(both) => Some(&both.nscc),
            _ => None,
        }
    }

    /// Those of the credit of receivers, alone or with others.
    pub fn rccc(&self) -> Option<&rccc::RcccParams> {
        match self {
            Self::Rccc(params) => Some(params),
            Self::NsccRccc(both) => Some(&both.rccc),
            _ => None,
        }
    }

    /// Most hops in a packet's telemetry; `None` without.
    pub fn hops(&self) -> Option<u8> {
        match self {
            Self::Hpcc(params) => Some(params.hops),
            Self::PowerTcp(params) => Some(params.hops),
            _ => None,
        }
    }

    /// The lane of congestion notifications, if they have one of their own.
    pub fn cnp_lane(&self) -> Option<u8> {
        match self {
            Self::Dcqcn(dcqcn) => dcqcn.cnp_lane,
            _ => None,
        }
    }
}

/// A rate, or a share of the flow's line rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Rate(u64),
    /// The line rate divided by this.
    LineShare(u64),
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
