//! The control ordered sets of LLR: one block of 64 bits each, which crosses a link between two frames.

use super::{MASK, SEQUENCES};
use xoff_wire::{MAC_CONTROL, SMALLEST_BYTES};

const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
/// The kind of the frames that show words in captures.
const KIND: u8 = 12;
/// The control character of an ordered set, the first byte.
const ORDERED_SET: u8 = 0x5c;
/// The O-code in the lower half of byte 4.
const O_CODE: u8 = 0x6;

/// What one end of a link says to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Word {
    /// All frames up to this one have arrived.
    Ack(u32),
    /// All frames up to this one have arrived, and the next one has not.
    Nack(u32),
    /// The transmitter begins at this number.
    Init(u32),
    /// The answer to that.
    Echo(u32),
}

impl Word {
    /// Bytes on the wire.
    pub const LENGTH: u32 = 8;

    fn parts(self) -> (u8, u32) {
        match self {
            Self::Ack(number) => (0x01, number),
            Self::Nack(number) => (0x02, number),
            Self::Init(number) => (0x03, number),
            Self::Echo(number) => (0x04, number),
        }
    }

    /// The word as one number: its type above its sequence number.
    pub fn code(self) -> u32 {
        let (kind, number) = self.parts();
        u32::from(kind) << 24 | number
    }

    /// The word that [`Word::code`] made; `None` if there is none.
    pub fn from_code(code: u32) -> Option<Self> {
        let number = code & 0x00ff_ffff;
        let word = match code >> 24 {
            0x01 => Self::Ack,
            0x02 => Self::Nack,
            0x03 => Self::Init,
            0x04 => Self::Echo,
            _ => return None,
        };
        (number < SEQUENCES).then(|| word(number))
    }

    /// The bytes: the control character, the type, 20 bits of the sequence number, the O-code.
    pub fn emit(self) -> [u8; 8] {
        let (kind, number) = self.parts();
        let [_, high, middle, low] = (number << 4).to_be_bytes();
        [ORDERED_SET, kind, high, middle, low | O_CODE, 0, 0, 0]
    }

    /// An Ethernet frame with the word, for captures: the blocks between frames are not in them. EtherType 0x88B5
    /// (IEEE 802 local experimental 1), the kind 12, the word, padding.
    pub fn captured(self) -> [u8; SMALLEST_BYTES] {
        let mut bytes = [0; SMALLEST_BYTES];
        bytes[..6].copy_from_slice(&MAC_CONTROL);
        bytes[12..14].copy_from_slice(&ETHERTYPE);
        bytes[14] = KIND;
        bytes[15..23].copy_from_slice(&self.emit());
        bytes
    }

    /// The word of these bytes; `None` if they are none.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let &[ORDERED_SET, kind, high, middle, low, ..] = bytes else { return None };
        if bytes.len() != 8 || low & 0xf != O_CODE {
            return None;
        }
        let number = u32::from_be_bytes([0, high, middle, low]) >> 4 & MASK;
        Self::from_code(u32::from(kind) << 24 | number)
    }
}
