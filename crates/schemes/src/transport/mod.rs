//! Transports: how a queue pair numbers, acknowledges and repeats its packets. Each transport has a folder here, and a line
//! in the registry.

pub mod go_back_n;
pub mod irn;
pub mod keys;
pub mod ndp;
mod registry;
pub mod retries;
pub mod rud;
pub mod seam;
pub mod tcp;

pub use registry::{Receivers, Senders, Transport, TransportKeys, TransportKind};

use xoff_kernel::time::Time;

/// The window of a flow, where the transport gives each flow its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowWindow {
    /// Most packets in flight, or those of the first window; at least 1, below 2^24.
    pub window: u32,
    /// The flow goes between datacenters, as IRN distinguishes them.
    pub inter: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportParams {
    pub kind: TransportKind,
    /// The receiver acknowledges every so many packets in order, and the last one. At least 1.
    pub ack_every: u32,
    /// Longest time without progress after which a sender repeats, in picoseconds.
    pub rto: Time,
    /// After so many retries a sender gives up; `None`: never. See [`retries`].
    pub retries: Option<u8>,
    /// Most payload bytes of each flow in flight; `None` is no limit. (A transport may have other windows.)
    pub window: Option<u64>,
    /// With a congestion control: a flow's rate times this round trip, in picoseconds, bounds what it has in
    /// flight, too (see [`crate::congestion_control::window_at`]).
    pub variable_window: Option<Time>,
}

impl TransportParams {
    /// The fewest packets that an ACK may be for.
    pub fn least_per_ack(&self) -> u32 {
        if self.kind.traits().acks_early { 1 } else { self.ack_every.max(1) }
    }
}
