//! BifrostX's feedback frame: the grants of a downstream port for a slot, in total and by priority.
//!
//! No standard has such a frame. It is laid out as an Ethernet frame of an experimental EtherType (IEEE 802
//! local experimental 1, 0x88B5) to the address of MAC control, which bridges never forward:
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

use crate::flow_control::frame::{ControlFrame, Effect, Frame};
use xoff_wire::experimental::{self, NotFrame};
use xoff_wire::{SMALLEST_BYTES, SMALLEST_FRAME, u32_at};

const KIND: u8 = 5;
const LEAST: usize = 54;

/// The grant of one slot.
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

impl FeedbackFrame {
    /// Bytes on the wire, check sequence included.
    pub const LENGTH: u32 = SMALLEST_FRAME;

    pub fn entries(self) -> impl Iterator<Item = (u8, u32)> {
        (0..8u8).filter(move |p| self.enabled >> p & 1 == 1).map(move |p| (p, self.each[usize::from(p)]))
    }

    /// The frame without its check sequence.
    pub fn emit(&self, source: [u8; 6]) -> [u8; SMALLEST_BYTES] {
        let mut bytes = experimental::emit(KIND, source);
        bytes[15] = self.enabled;
        bytes[16] = u8::from(self.whole);
        bytes[18..22].copy_from_slice(&self.total.to_be_bytes());
        for (p, granted) in self.entries() {
            let at = 22 + 4 * usize::from(p);
            bytes[at..at + 4].copy_from_slice(&granted.to_be_bytes());
        }
        bytes
    }

    /// Reads a frame; grants to priorities that are not enabled are ignored.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotFrame> {
        experimental::expect(bytes, KIND, LEAST)?;
        if bytes[16] > 1 || bytes[17] != 0 {
            return Err(NotFrame::Field);
        }
        let mut frame =
            Self { enabled: bytes[15], whole: bytes[16] == 1, total: u32_at(bytes, 18), each: [0; 8] };
        for p in (0..8).filter(|p| frame.enabled >> p & 1 == 1) {
            frame.each[p] = u32_at(bytes, 22 + 4 * p);
        }
        Ok(frame)
    }
}

impl Frame for FeedbackFrame {
    fn effect(&self) -> Effect {
        Effect::Credit { priorities: self.enabled.into(), limited: Some(!self.whole) }
    }

    /// A later slot takes the place of an earlier one.
    fn merge(&mut self, later: &ControlFrame) -> bool {
        let ControlFrame::Feedback(later) = later else { return false };
        *self = *later;
        true
    }

    #[cfg(test)]
    fn note(&self, port: u32) -> String {
        format!("feed {port} {} of {:?}", self.total, self.entries().collect::<Vec<_>>())
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
        assert_eq!(FeedbackFrame::parse(&bytes[..53]), Err(NotFrame::Short));
        for (at, value, error) in [
            (0, 0, NotFrame::Other),
            (13, 0, NotFrame::Other),
            (14, 1, NotFrame::Other),
            (16, 2, NotFrame::Field),
            (17, 1, NotFrame::Field),
        ] {
            let mut other = bytes;
            other[at] = value;
            assert_eq!(FeedbackFrame::parse(&other), Err(error), "byte {at}");
        }
    }

    /// It limits its sender unless it grants the whole slot.
    #[test]
    fn a_grant_of_a_whole_slot_is_no_limit() {
        for whole in [true, false] {
            let frame = FeedbackFrame { enabled: 0b1000, whole, total: 0, each: [0; 8] };
            assert_eq!(frame.effect(), Effect::Credit { priorities: 0b1000, limited: Some(!whole) });
        }
    }
}
