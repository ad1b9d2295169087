//! BifrostX's feedback frame: what a downstream port grants for the next slot, in all and
//! to each priority.
//!
//! No standard has such a frame. It is laid out as an Ethernet frame of an experimental
//! EtherType (IEEE 802 local experimental 1, 0x88B5) to the address of MAC control, which
//! bridges never forward:
//!
//! ```text
//! byte  0  destination 01-80-C2-00-00-01
//!       6  source
//!      12  EtherType 0x88B5
//!      14  5: feedback
//!      15  priorities it speaks of, one bit each
//!      16  1 if the slot is granted whole (then `c_max` rules nothing), else 0
//!      17  zero
//!      18  c_max, in bytes, 32 bits
//!      22  c_i of priority 0, in bytes, 32 bits; then of 1 to 7; 0 where not spoken of
//!      54  zeros up to the smallest frame
//! ```

use crate::SMALLEST_FRAME;
use crate::queue_pause::{DESTINATION, ETHERTYPE};

const KIND: u8 = 5;
const LEAST: usize = 54;

/// What one slot grants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedbackFrame {
    /// Bit `p` is set if the frame speaks of priority `p`.
    pub enabled: u8,
    /// Everything that the port can send in the slot may be sent.
    pub whole: bool,
    /// c_max: bytes that all priorities together may send.
    pub total: u32,
    /// c_i: bytes that each priority may send. Zero where not enabled.
    pub each: [u32; 8],
}

/// Why bytes are not such a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFeedback {
    /// Fewer bytes than the fields take.
    Short,
    /// Another destination, EtherType or kind.
    Other,
    /// A field has a value that it cannot have.
    Field,
}

impl FeedbackFrame {
    /// Bytes on the wire, check sequence included.
    pub const LENGTH: u32 = SMALLEST_FRAME;

    /// The priorities it speaks of, each with its bytes.
    pub fn entries(self) -> impl Iterator<Item = (u8, u32)> {
        (0..8u8).filter(move |p| self.enabled >> p & 1 == 1).map(move |p| (p, self.each[usize::from(p)]))
    }

    /// The frame without its check sequence.
    pub fn emit(&self, source: [u8; 6]) -> [u8; SMALLEST_FRAME as usize - 4] {
        let mut bytes = [0; SMALLEST_FRAME as usize - 4];
        bytes[..6].copy_from_slice(&DESTINATION);
        bytes[6..12].copy_from_slice(&source);
        bytes[12..14].copy_from_slice(&ETHERTYPE);
        bytes[14] = KIND;
        bytes[15] = self.enabled;
        bytes[16] = u8::from(self.whole);
        bytes[18..22].copy_from_slice(&self.total.to_be_bytes());
        for (p, granted) in self.entries() {
            let at = 22 + 4 * usize::from(p);
            bytes[at..at + 4].copy_from_slice(&granted.to_be_bytes());
        }
        bytes
    }

    /// Reads a frame; what it grants to priorities that are not enabled is dropped.
    ///
    /// # Errors
    /// [`NotFeedback`] says what does not fit.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotFeedback> {
        if bytes.len() < LEAST {
            return Err(NotFeedback::Short);
        }
        if bytes[..6] != DESTINATION || bytes[12..14] != ETHERTYPE || bytes[14] != KIND {
            return Err(NotFeedback::Other);
        }
        if bytes[16] > 1 || bytes[17] != 0 {
            return Err(NotFeedback::Field);
        }
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let mut frame = Self { enabled: bytes[15], whole: bytes[16] == 1, total: word(18), each: [0; 8] };
        for p in (0..8).filter(|p| frame.enabled >> p & 1 == 1) {
            frame.each[p] = word(22 + 4 * p);
        }
        Ok(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_the_wire_and_foreign_bytes_do_not() {
        let frame = FeedbackFrame {
            enabled: 0b1000_0010,
            whole: false,
            total: 500_000,
            each: [0, 499_999, 0, 0, 0, 0, 0, u32::MAX],
        };
        let bytes = frame.emit([2; 6]);
        assert_eq!(bytes[14..26], [5, 0b1000_0010, 0, 0, 0, 7, 0xa1, 0x20, 0, 0, 0, 0]);
        assert_eq!(FeedbackFrame::parse(&bytes), Ok(frame));
        assert_eq!(FeedbackFrame::parse(&bytes[..53]), Err(NotFeedback::Short));
        for (at, value, error) in [
            (0, 0, NotFeedback::Other),
            (13, 0, NotFeedback::Other),
            (14, 1, NotFeedback::Other),
            (16, 2, NotFeedback::Field),
            (17, 1, NotFeedback::Field),
        ] {
            let mut other = bytes;
            other[at] = value;
            assert_eq!(FeedbackFrame::parse(&other), Err(error), "byte {at}");
        }
    }
}
