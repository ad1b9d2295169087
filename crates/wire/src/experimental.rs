//! Frames of schemes that no standard has: Ethernet frames of IEEE 802's local experimental
//! EtherType 1 (0x88B5) to the address of MAC control, which bridges never forward.
//!
//! ```text
//! byte  0  destination 01-80-C2-00-00-01
//!       6  source
//!      12  EtherType 0x88B5
//!      14  kind: docs/CAPTURES.md lists all
//!      15  fields of the kind, then zeros up to the smallest frame
//! ```

pub use crate::NotFrame;
use crate::{MAC_CONTROL, SMALLEST_BYTES};

const ETHERTYPE: [u8; 2] = [0x88, 0xb5];

/// The smallest frame of a kind, without its check sequence: zeros where the fields are.
pub fn emit(kind: u8, source: [u8; 6]) -> [u8; SMALLEST_BYTES] {
    let mut bytes = [0; SMALLEST_BYTES];
    bytes[..6].copy_from_slice(&MAC_CONTROL);
    bytes[6..12].copy_from_slice(&source);
    bytes[12..14].copy_from_slice(&ETHERTYPE);
    bytes[14] = kind;
    bytes
}

/// The kind of a frame of at least `least` bytes, which are more than 14.
pub fn kind(bytes: &[u8], least: usize) -> Result<u8, NotFrame> {
    if bytes.len() < least {
        return Err(NotFrame::Short);
    }
    let ours = bytes[..6] == MAC_CONTROL && bytes[12..14] == ETHERTYPE;
    if ours { Ok(bytes[14]) } else { Err(NotFrame::Other) }
}

/// Whether a frame of at least `least` bytes is of this kind.
pub fn expect(bytes: &[u8], expected: u8, least: usize) -> Result<(), NotFrame> {
    if kind(bytes, least)? == expected { Ok(()) } else { Err(NotFrame::Other) }
}
