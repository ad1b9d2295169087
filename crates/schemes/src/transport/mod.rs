//! Transports: how a queue pair numbers, acknowledges and repeats its packets.

pub mod dctcp;
pub mod go_back_n;
pub mod irn;
pub mod newreno;

use irn::Timeouts;
use newreno::NewRenoParams;
use xoff_kernel::time::Time;

/// Parameters of the transport, resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportParams {
    pub kind: TransportKind,
    /// The receiver acknowledges every so many packets in order, and the last one. At least 1.
    pub ack_every: u32,
    /// Longest time without progress after which a sender repeats, in picoseconds.
    pub rto: Time,
    /// Most payload bytes in flight; `None` is no bound. (IRN bounds each flow by itself, TCP has a
    /// receive window.)
    pub window: Option<u64>,
    /// With a congestion control: a flow's rate times this round trip, in
    /// picoseconds, bounds what it has in flight, too (see
    /// [`crate::congestion_control::window_at`]).
    pub variable_window: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportKind {
    /// One NACK per gap, then the sender goes back; a timeout for a lost tail.
    GoBackN,
    /// Selective repeat with a bounded window.
    Irn {
        /// Timeouts of flows within a datacenter.
        intra: Timeouts,
        /// Timeouts of flows between datacenters.
        inter: Timeouts,
    },
    /// TCP: NewReno, or DCTCP.
    Tcp(NewRenoParams),
}
