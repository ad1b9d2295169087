//! What packets collect on their way, and their ACKs return.

use super::keys::{Setting, out_of_range};
use crate::flow_control::keys::Complaint;
use xoff_kernel::time::Time;
use xoff_net::units::Bytes;

/// Hops that HPCC's header has room for.
pub const HOPS: u8 = 5;
/// Links of the longest route, after which packets expire, less the sender's own.
pub const MOST_HOPS: u8 = 63;
/// HPCC's header without its hops (Li et al.), in bytes: the number of hops and that of the path.
pub const HEAD: u64 = 2;
/// Each hop in HPCC's header, in bytes.
pub const EACH_HOP: u64 = 8;
/// Most bytes that telemetry may take; as `transport.header`.
const MOST: u64 = 10_000;

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

/// Bytes of telemetry in each data packet and each ACK, with the keys `hops` and `telemetry` of a table.
pub(super) fn room(table: &str, hops: Option<u8>, bytes: Option<Bytes>) -> Result<u32, Complaint> {
    let hops = hops.unwrap_or(HOPS);
    if !(1..=MOST_HOPS).contains(&hops) {
        let help = format!("write a whole number from 1 to {MOST_HOPS}");
        return Err(out_of_range(&format!("{table}.hops"), hops, help));
    }
    let bytes = bytes.unwrap_or(Bytes(HEAD + EACH_HOP * u64::from(hops)));
    if bytes.0 > MOST {
        let help = format!("write 0B to {MOST}B");
        return Err(out_of_range(&format!("{table}.telemetry"), bytes, help));
    }
    Ok(bytes.0 as u32)
}

/// Telemetry of packets on different paths is not compared.
pub(super) fn warn_of_paths(cx: &mut Setting<'_>) {
    let Some(balancing) = cx.by_packet else { return };
    let message = format!(
        "{} compares the telemetry of two packets on one path: under `{balancing}` rates change only if two packets in a row take the same path",
        cx.control
    );
    cx.warn("transport.congestion_control", message);
}
