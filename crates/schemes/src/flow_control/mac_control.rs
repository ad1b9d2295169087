//! MAC control frames (IEEE 802.3 clause 31): for schemes whose frame is an opcode and parameters.
//!
//! Destination 01-80-C2-00-00-01, EtherType 0x8808, the opcode, and parameters, which are padded to the
//! smallest frame.

use super::frame::{ControlFrame, Effect, Frame};
use xoff_wire::{MAC_CONTROL, SMALLEST_BYTES, u16_at};

const ETHERTYPE: [u8; 2] = [0x88, 0x08];
/// Where the parameters begin.
const HEADER: usize = 16;
const PARAMETERS: usize = SMALLEST_BYTES - HEADER;

/// A MAC control frame. While it waits for its wire, a later one of its opcode takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacControlFrame {
    /// The kind of frame: 0x0001 is PAUSE (Annex 31B), 0x0101 PFC (Annex 31D), which has a [frame of its
    /// own](xoff_wire::pfc).
    pub opcode: u16,
    /// In the order of the wire; zero beyond those that the opcode has.
    pub parameters: [u8; PARAMETERS],
    effect: Effect,
}

impl MacControlFrame {
    /// The frame with these parameters, 44 bytes at most; `effect` is their meaning.
    ///
    /// # Panics
    /// There are more.
    pub fn new(opcode: u16, parameters: &[u8], effect: Effect) -> Self {
        let mut padded = [0; PARAMETERS];
        padded[..parameters.len()].copy_from_slice(parameters);
        Self { opcode, parameters: padded, effect }
    }

    /// The frame without its check sequence.
    pub fn emit(&self, source: [u8; 6]) -> [u8; SMALLEST_BYTES] {
        let mut bytes = [0; SMALLEST_BYTES];
        bytes[..6].copy_from_slice(&MAC_CONTROL);
        bytes[6..12].copy_from_slice(&source);
        bytes[12..14].copy_from_slice(&ETHERTYPE);
        bytes[14..HEADER].copy_from_slice(&self.opcode.to_be_bytes());
        bytes[HEADER..].copy_from_slice(&self.parameters);
        bytes
    }

    /// Parses a frame of this opcode, whose parameters have the meaning `effect`; `None` if it is another.
    pub fn parse(bytes: &[u8], opcode: u16, effect: impl Fn(&[u8]) -> Effect) -> Option<Self> {
        let is = bytes.len() == SMALLEST_BYTES && bytes[..6] == MAC_CONTROL && bytes[12..14] == ETHERTYPE;
        let parameters = bytes.get(HEADER..).filter(|_| is && u16_at(bytes, 14) == opcode)?;
        Some(Self::new(opcode, parameters, effect(parameters)))
    }
}

impl Frame for MacControlFrame {
    fn effect(&self) -> Effect {
        self.effect
    }

    fn merge(&mut self, later: &ControlFrame) -> bool {
        match later {
            ControlFrame::MacControl(later) if later.opcode == self.opcode => {
                *self = *later;
                true
            }
            _ => false,
        }
    }

    #[cfg(test)]
    fn note(&self, port: u32) -> String {
        format!("send {port} {:#06x} {}", self.opcode, u16_at(&self.parameters, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// While a frame waits, a later one of its opcode takes its place, and no other does.
    #[test]
    fn a_later_frame_of_the_opcode_takes_its_place() {
        let frame = |opcode, quanta: u16| {
            MacControlFrame::new(opcode, &quanta.to_be_bytes(), Effect::Link { pause: quanta > 0 })
        };
        let mut waits = frame(1, 9);
        assert!(!waits.merge(&frame(2, 0).into()));
        assert_eq!(waits, frame(1, 9));
        assert!(waits.merge(&frame(1, 0).into()));
        assert_eq!(waits, frame(1, 0));
    }
}
