//! Transports: how a queue pair numbers, acknowledges and repeats its packets.

pub mod go_back_n;

use xoff_kernel::time::Time;

/// Parameters of the transport, resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportParams {
    /// Which one.
    pub kind: TransportKind,
    /// The receiver acknowledges every so many packets in order, and the last one. At least 1.
    pub ack_every: u32,
    /// Time without progress after which the sender goes back, in picoseconds.
    pub rto: Time,
    /// Most payload bytes in flight; `None` is no bound.
    pub window: Option<u64>,
}

/// The transports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportKind {
    /// One NACK per gap, then the sender goes back; a timeout for a lost tail.
    GoBackN,
}
