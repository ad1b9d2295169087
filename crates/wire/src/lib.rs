//! Frames as bytes: those that more than one scheme uses, and helpers to parse and emit. It does not depend
//! on the simulation, and has no frame of a single scheme.

// Only crates of this workspace use it: names that say enough need no comment.
#![allow(missing_docs)]

pub mod experimental;
pub mod ip;
pub mod nodes;
pub mod pfc;
pub mod queue_pause;
pub mod roce;
pub mod tcp;

/// Whether readers compare check sequences. A fuzzer would not get past them.
pub const CHECKED: bool = !cfg!(fuzzing);

/// Ethernet header (14) and frame check sequence (4), in bytes.
pub const ETHERNET: u32 = 18;
/// Smallest Ethernet frame, in bytes (IEEE 802.3 §3.2.7).
pub const SMALLEST_FRAME: u32 = 64;
/// Frame check sequence, which closes every frame, in bytes.
pub const CHECK: usize = 4;
/// Smallest Ethernet frame without its check sequence, in bytes.
pub const SMALLEST_BYTES: usize = SMALLEST_FRAME as usize - CHECK;
/// The address of MAC control, which bridges never forward.
pub const MAC_CONTROL: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x01];
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

/// Why bytes are not a frame of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFrame {
    /// Fewer bytes than the fields take, or than they say.
    Short,
    /// Another address, protocol, kind or opcode.
    Other,
    /// A field has a value that it cannot have.
    Field,
    /// A checksum does not fit.
    Damaged,
}

/// The 16 bits at `at`, in network order.
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(array_at(bytes, at))
}

/// The 32 bits at `at`, in network order.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array_at(bytes, at))
}

/// The 64 bits at `at`, in network order.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(array_at(bytes, at))
}

pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[at + i])
}
