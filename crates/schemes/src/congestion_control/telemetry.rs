//! What packets collect on their way, and their ACKs return.

use xoff_kernel::time::Time;

/// The state of a link that a device reports, when a packet begins to leave by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hop {
    /// ts, in picoseconds.
    pub at: Time,
    /// txBytes: bytes of any kind sent before this packet.
    pub sent: u64,
    /// qlen: bytes that wait after this packet.
    pub queued: u64,
    /// B, in bits per second.
    pub rate: u64,
    /// Which link it is.
    pub port: u32,
}

/// Whether two packets took the same path. Packets on one path stay in order, so time increases.
pub fn same_way(last: &[Hop], hops: &[Hop]) -> bool {
    last.iter().map(|h| h.port).eq(hops.iter().map(|h| h.port))
}

/// The state that a data packet collects and its ACK returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// When the packet began to leave its sender.
    pub sent: Time,
    /// Switches that it has crossed.
    pub hops: u32,
    /// Picoseconds that it waited in the receiving host.
    pub endpoint: Time,
}
