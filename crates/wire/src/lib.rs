//! Frames as bytes: what crosses the wire, parsed and emitted. It knows nothing
//! of simulation.

pub mod credit;
pub mod feedback;
pub mod ip;
pub mod itsy;
pub mod pfc;
pub mod port_pause;
pub mod probe;
pub mod queue_pause;
pub mod roce;
pub mod root_pause;
pub mod roundabout;
pub mod tcp;
pub mod zeropod;

/// Whether readers compare check sequences. A fuzzer would not get past them.
const CHECKED: bool = !cfg!(fuzzing);

/// Ethernet header (14) and frame check sequence (4), in bytes.
pub const ETHERNET: u32 = 18;
/// Smallest Ethernet frame, in bytes (IEEE 802.3 §3.2.7).
pub const SMALLEST_FRAME: u32 = 64;
/// IPv4 header without options, in bytes (RFC 791).
pub const IPV4: u32 = 20;
/// UDP header, in bytes (RFC 768).
pub const UDP: u32 = 8;
/// Base transport header and invariant CRC of RoCEv2, in bytes (InfiniBand Annex A17).
pub const BTH_AND_ICRC: u32 = 12 + 4;
/// ACK extended transport header, in bytes.
pub const AETH: u32 = 4;

/// Everything but payload of a RoCEv2 data packet, in bytes.
pub const ROCE_DATA_OVERHEAD: u32 = ETHERNET + IPV4 + UDP + BTH_AND_ICRC;
/// A RoCEv2 acknowledgement on the wire, in bytes.
pub const ROCE_ACK: u32 = ROCE_DATA_OVERHEAD + AETH;
