//! The two messages of UEC CBFC, the frames of `uec-cbfc`.
//!
//! CF_Update is a control ordered set: one block of 64 bits between two frames. It names two virtual channels
//! (VCs), each with the lowest 15 bits of its R_CF:
//!
//! ```text
//! byte  0  0x5C, the control character of an ordered set
//!       1  0x10, the type
//!       2  first VC, 5 bits
//!          its count, 15 bits
//!       4  O-code 6, in the lower 4 bits
//!       5  second VC, 5 bits
//!          its count, 15 bits
//!       7  zeros, in the lower 4 bits
//! ```
//!
//! With a single VC both halves name it. In captures the block lies in a frame of the EtherType of
//! [`xoff_wire::experimental`]: byte 14 is 13, and the block begins at byte 15.
//!
//! CC_Update is a frame of MAC control, as it is in captures:
//!
//! ```text
//! byte  0  destination 01-80-C2-00-00-01
//!       6  source
//!      12  EtherType 0x8808
//!      14  opcode 0xFFFE
//!      16  FA-7A-CB
//!      19  0x01: VCs 0 to 15
//!      20  S_CC of each VC, 20 bits
//! ```
//!
//! A VC is a priority, so S_CC of VCs 8 to 15 is 0.

use super::{LOW, MASK};
use crate::flow_control::frame::{ControlFrame, Effect, Frame};
use xoff_wire::experimental::{self, NotFrame};
use xoff_wire::{MAC_CONTROL, SMALLEST_BYTES, u16_at};

/// The kind of the frames that show CF_Updates in captures.
const KIND: u8 = 13;
const ORDERED_SET: u8 = 0x5c;
const CF_TYPE: u8 = 0x10;
const O_CODE: u8 = 0x6;
const ETHERTYPE: u16 = 0x8808;
const OPCODE: u16 = 0xfffe;
const COMPANY: [u8; 3] = [0xfa, 0x7a, 0xcb];
/// The message type of a CC_Update with VCs 0 to 15.
const CC_TYPE: u8 = 0x01;
/// Priorities, which are the VCs here.
const CHANNELS: usize = 8;

/// CF_Update: credits that the receiver has freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CfUpdate {
    /// Two VCs, each with the lowest 15 bits of its R_CF.
    pub freed: [(u8, u16); 2],
}

impl CfUpdate {
    /// Bytes on the wire.
    pub const LENGTH: u32 = 8;

    /// An ordered set with R_CF of these VCs.
    pub fn new(freed: [(u8, u32); 2]) -> Self {
        Self { freed: freed.map(|(channel, count)| (channel, (count & LOW) as u16)) }
    }

    /// The ordered set as bytes.
    pub fn emit_set(&self) -> [u8; 8] {
        let half =
            |(channel, count): (u8, u16)| (u32::from(channel) << 19 | u32::from(count) << 4).to_be_bytes();
        let [[_, a, b, c], [_, d, e, f]] = self.freed.map(half);
        [ORDERED_SET, CF_TYPE, a, b, c | O_CODE, d, e, f]
    }

    /// The ordered set in an Ethernet frame, without that one's check sequence.
    pub fn emit(&self, source: [u8; 6]) -> [u8; SMALLEST_BYTES] {
        let mut bytes = experimental::emit(KIND, source);
        bytes[15..23].copy_from_slice(&self.emit_set());
        bytes
    }

    /// Reads an ordered set in an Ethernet frame.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotFrame> {
        experimental::expect(bytes, KIND, 23)?;
        Self::parse_set(&bytes[15..23]).ok_or(NotFrame::Other)
    }

    /// Reads an ordered set; `None` if it is another.
    pub fn parse_set(bytes: &[u8]) -> Option<Self> {
        let &[ORDERED_SET, CF_TYPE, a, b, c, d, e, f] = bytes else { return None };
        if c & 0xf != O_CODE || f & 0xf != 0 {
            return None;
        }
        let half = |bytes: [u8; 3]| {
            let [a, b, c] = bytes;
            let word = u32::from_be_bytes([0, a, b, c]);
            ((word >> 19) as u8, (word >> 4 & LOW) as u16)
        };
        let freed = [half([a, b, c]), half([d, e, f])];
        freed.iter().all(|&(channel, _)| usize::from(channel) < CHANNELS).then_some(Self { freed })
    }
}

impl Frame for CfUpdate {
    fn length(&self) -> u32 {
        Self::LENGTH
    }

    fn effect(&self) -> Effect {
        let priorities = self.freed.iter().fold(0, |all, &(channel, _)| all | 1 << channel);
        Effect::Credit { priorities, limited: None }
    }

    /// The later counts hold, if there is a place for each.
    fn merge(&mut self, later: &ControlFrame) -> bool {
        let ControlFrame::CfUpdate(later) = later else { return false };
        let mut both = *self;
        for &(channel, count) in &later.freed {
            let place = both.freed.iter().position(|&(known, _)| known == channel);
            // Both halves name one VC: the second one is free.
            let free = (both.freed[0].0 == both.freed[1].0).then_some(1);
            let Some(place) = place.or(free) else { return false };
            let known = both.freed[place].0 == channel;
            both.freed[place] = (channel, count);
            if known && free.is_some() {
                both.freed[1] = both.freed[0];
            }
        }
        *self = both;
        true
    }

    #[cfg(test)]
    fn note(&self, port: u32) -> String {
        let [(a, x), (b, y)] = self.freed;
        format!("cf {port} v{a} {x} v{b} {y}")
    }
}

/// CC_Update: credits that the sender has consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CcUpdate {
    /// S_CC of each VC, below 2^20.
    pub consumed: [u32; CHANNELS],
}

impl CcUpdate {
    /// The frame without its check sequence.
    pub fn emit(&self, source: [u8; 6]) -> [u8; SMALLEST_BYTES] {
        let mut bytes = [0; SMALLEST_BYTES];
        bytes[..6].copy_from_slice(&MAC_CONTROL);
        bytes[6..12].copy_from_slice(&source);
        bytes[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
        bytes[14..16].copy_from_slice(&OPCODE.to_be_bytes());
        bytes[16..19].copy_from_slice(&COMPANY);
        bytes[19] = CC_TYPE;
        for (pair, at) in self.consumed.chunks(2).zip((20..).step_by(5)) {
            let both = u64::from(pair[0]) << 20 | u64::from(pair[1]);
            bytes[at..at + 5].copy_from_slice(&both.to_be_bytes()[3..]);
        }
        bytes
    }

    /// Reads a frame.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotFrame> {
        if bytes.len() < SMALLEST_BYTES {
            return Err(NotFrame::Short);
        }
        let same = bytes[..6] == MAC_CONTROL && u16_at(bytes, 12) == ETHERTYPE && u16_at(bytes, 14) == OPCODE;
        let unused = bytes[20 + 5 * CHANNELS / 2..].iter().all(|&byte| byte == 0);
        if !same || bytes[16..19] != COMPANY || bytes[19] != CC_TYPE || !unused {
            return Err(NotFrame::Other);
        }
        let mut frame = Self { consumed: [0; CHANNELS] };
        for (pair, at) in frame.consumed.chunks_mut(2).zip((20..).step_by(5)) {
            let both = bytes[at..at + 5].iter().fold(0, |n, &byte| n << 8 | u64::from(byte));
            (pair[0], pair[1]) = ((both >> 20) as u32 & MASK, both as u32 & MASK);
        }
        Ok(frame)
    }
}

impl Frame for CcUpdate {
    fn effect(&self) -> Effect {
        Effect::Nothing
    }

    /// No data leaves while a frame waits, so the later counts hold for both.
    fn merge(&mut self, later: &ControlFrame) -> bool {
        let ControlFrame::CcUpdate(later) = later else { return false };
        *self = *later;
        true
    }

    #[cfg(test)]
    fn note(&self, port: u32) -> String {
        format!("cc {port} {:?}", self.consumed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ordered_set_has_its_layout() {
        let set = CfUpdate::new([(3, 0x1234), (5, 0xf_8765)]);
        assert_eq!(set.freed, [(3, 0x1234), (5, 0x0765)]);
        // 00011 001 0010_0011 0100 0110, 00101 000 0111_0110 0101 0000.
        assert_eq!(set.emit_set(), [0x5c, 0x10, 0x19, 0x23, 0x46, 0x28, 0x76, 0x50]);
        let framed = set.emit([2; 6]);
        assert_eq!((framed[14], &framed[15..23]), (13, &set.emit_set()[..]));
        assert_eq!((framed.len(), CfUpdate::LENGTH), (60, 8));
    }

    #[test]
    fn every_message_survives_the_wire() {
        for channel in 0..8 {
            for count in [0, 1, 0x7fff, 0x5555] {
                let set = CfUpdate { freed: [(channel, count), (7 - channel, 0x7fff - count)] };
                assert_eq!(CfUpdate::parse(&set.emit([2; 6])), Ok(set));
            }
            let mut consumed = [0x12345; 8];
            consumed[usize::from(channel)] = MASK;
            let frame = CcUpdate { consumed };
            assert_eq!(CcUpdate::parse(&frame.emit([2; 6])), Ok(frame));
        }
    }

    #[test]
    fn a_cc_update_has_its_layout() {
        let frame = CcUpdate { consumed: [0x12345, 0x6789a, 0, 0, 0, 0, 0, 0xfffff] };
        let bytes = frame.emit([2; 6]);
        assert_eq!(bytes[12..20], [0x88, 0x08, 0xff, 0xfe, 0xfa, 0x7a, 0xcb, 1]);
        assert_eq!(bytes[20..25], [0x12, 0x34, 0x56, 0x78, 0x9a]);
        assert_eq!(bytes[35..41], [0, 0, 0x0f, 0xff, 0xff, 0]);
        assert_eq!(frame.length(), bytes.len() as u32 + 4);
    }

    #[test]
    fn other_bytes_are_refused() {
        let (set, frame) =
            (CfUpdate::new([(3, 1), (5, 2)]).emit([2; 6]), CcUpdate { consumed: [1; 8] }.emit([2; 6]));
        for at in [0, 13, 14, 15, 16, 19, 22] {
            let mut other = set;
            other[at] ^= 1;
            assert_eq!(CfUpdate::parse(&other), Err(NotFrame::Other), "byte {at}");
        }
        for at in [0, 13, 15, 17, 19, 40, 59] {
            let mut other = frame;
            other[at] ^= 1;
            assert_eq!(CcUpdate::parse(&other), Err(NotFrame::Other), "byte {at}");
        }
        // VC 8 is no priority.
        assert_eq!(CfUpdate::parse_set(&[0x5c, 0x10, 0x40, 0, 0x06, 0, 0, 0]), None);
        assert_eq!(CfUpdate::parse(&set[..22]), Err(NotFrame::Short));
        assert_eq!(CcUpdate::parse(&frame[..59]), Err(NotFrame::Short));
    }

    #[test]
    fn ordered_sets_merge_where_each_channel_has_a_place() {
        let set = |freed| CfUpdate { freed };
        let merged =
            |mut waiting: CfUpdate, later: CfUpdate| waiting.merge(&later.into()).then_some(waiting.freed);
        let same = set([(3, 1), (3, 1)]);
        assert_eq!(merged(same, set([(3, 2), (3, 2)])), Some([(3, 2), (3, 2)]));
        assert_eq!(merged(same, set([(5, 2), (5, 2)])), Some([(3, 1), (5, 2)]));
        assert_eq!(merged(same, set([(5, 2), (3, 4)])), Some([(3, 4), (5, 2)]));
        let two = set([(3, 1), (5, 7)]);
        assert_eq!(merged(two, set([(5, 8), (5, 8)])), Some([(3, 1), (5, 8)]));
        assert_eq!(merged(two, set([(5, 8), (3, 2)])), Some([(3, 2), (5, 8)]));
        assert_eq!(merged(two, set([(5, 8), (6, 2)])), None);
        let mut consumed = CcUpdate { consumed: [1; 8] };
        assert!(!consumed.merge(&two.into()) && consumed.merge(&CcUpdate { consumed: [2; 8] }.into()));
        assert_eq!(consumed.consumed, [2; 8]);
    }
}
