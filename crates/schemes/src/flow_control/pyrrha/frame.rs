//! The frames of Pyrrha, which name the root of a congestion tree.
//!
//! The paper (section IV) names three frames, PAUSE, RESUME and MERGE, that travel upstream and carry the
//! root's identity, `switch-id:port-id`; a MERGE has the old and the new root. It does not define how a port
//! downstream learns that an isolation queue upstream has been released. Here a fourth frame does this,
//! RELEASE, which travels downstream. Nor has it a layout. Here, after the header of [`experimental`]:
//!
//! ```text
//! byte 14  4: names a congestion root
//!      15  0 RESUME, 1 PAUSE, 2 MERGE, 3 RELEASE
//!      16  priority, 0 to 7
//!      17  zero
//!      18  root: number of the switch, 32 bits
//!      22        number of the port, 16 bits
//!      24        how many times that port has claimed to be a root, 16 bits
//!      26  sequence number, 16 bits
//!      28  MERGE: the root that the old one is merged into, as bytes 18 to 25; else zeros
//! ```
//!
//! The *sequence number* counts how often a port has stopped one neighbour for a root; 0 in a MERGE. A
//! RELEASE repeats the last one that it has seen, so a port recognises a RELEASE that crosses a PAUSE on the
//! wire.

use crate::flow_control::frame::{Effect, Frame};
use xoff_wire::experimental::{self, NotFrame};
use xoff_wire::{SMALLEST_BYTES, SMALLEST_FRAME, u16_at, u32_at};

const KIND: u8 = 4;

/// A congested port that claims to be the root of a congestion tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RootId {
    pub switch: u32,
    pub port: u16,
    /// How many times it has claimed, this time included, modulo 2^16.
    pub epoch: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Word {
    /// Packets through the root may continue.
    Resume,
    /// Packets through the root stop.
    Pause,
    /// The root is a false root, and pauses no port: the true root is `into`.
    Merge { into: RootId },
    /// The neighbour upstream has given the root's isolation queue back.
    Release,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RootPauseFrame {
    pub word: Word,
    pub root: RootId,
    /// 802.1p priority that it is about, 0 to 7.
    pub priority: u8,
    pub sequence: u16,
}

impl RootPauseFrame {
    /// Bytes on the wire, check sequence included.
    pub const LENGTH: u32 = SMALLEST_FRAME;

    /// The frame without its check sequence.
    pub fn emit(&self, source: [u8; 6]) -> [u8; SMALLEST_BYTES] {
        let mut bytes = experimental::emit(KIND, source);
        bytes[15] = match self.word {
            Word::Resume => 0,
            Word::Pause => 1,
            Word::Merge { .. } => 2,
            Word::Release => 3,
        };
        bytes[16] = self.priority;
        bytes[18..26].copy_from_slice(&emit_root(self.root));
        bytes[26..28].copy_from_slice(&self.sequence.to_be_bytes());
        if let Word::Merge { into } = self.word {
            bytes[28..36].copy_from_slice(&emit_root(into));
        }
        bytes
    }

    /// Reads a frame.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotFrame> {
        experimental::expect(bytes, KIND, 36)?;
        let into = parse_root(&bytes[28..36]);
        let word = match bytes[15] {
            0 => Word::Resume,
            1 => Word::Pause,
            2 => Word::Merge { into },
            3 => Word::Release,
            _ => return Err(NotFrame::Field),
        };
        let empty = bytes[28..36].iter().all(|&b| b == 0);
        if bytes[16] > 7 || bytes[17] != 0 || bytes[15] != 2 && !empty {
            return Err(NotFrame::Field);
        }
        Ok(Self { word, root: parse_root(&bytes[18..26]), priority: bytes[16], sequence: u16_at(bytes, 26) })
    }
}

fn emit_root(root: RootId) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&root.switch.to_be_bytes());
    bytes[4..6].copy_from_slice(&root.port.to_be_bytes());
    bytes[6..].copy_from_slice(&root.epoch.to_be_bytes());
    bytes
}

fn parse_root(bytes: &[u8]) -> RootId {
    RootId { switch: u32_at(bytes, 0), port: u16_at(bytes, 4), epoch: u16_at(bytes, 6) }
}

impl Frame for RootPauseFrame {
    fn effect(&self) -> Effect {
        let port = |root: RootId| (root.switch, root.port);
        let pause = match self.word {
            Word::Pause => Some(true),
            Word::Resume => Some(false),
            Word::Release => None,
            Word::Merge { into } => {
                return Effect::Merge { priority: self.priority, old: port(self.root), into: port(into) };
            }
        };
        Effect::Root { priority: self.priority, root: port(self.root), pause }
    }

    #[cfg(test)]
    fn note(&self, port: u32) -> String {
        let root = |root: RootId| format!("{}:{}#{}", root.switch, root.port, root.epoch);
        let word = match self.word {
            Word::Pause => "stop".to_string(),
            Word::Resume => "go".to_string(),
            Word::Merge { into } => format!("merge into {} of", root(into)),
            Word::Release => "release".to_string(),
        };
        format!("{word} {port} {} /{}", root(self.root), self.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: RootId = RootId { switch: 0x0102_0304, port: 0x0506, epoch: 0x0708 };
    const OTHER: RootId = RootId { switch: 0xa1b2_c3d4, port: 0xe5f6, epoch: 0x9786 };

    #[test]
    fn every_frame_survives_the_wire() {
        for word in [Word::Resume, Word::Pause, Word::Merge { into: OTHER }, Word::Release] {
            for (root, priority, sequence) in
                [(ROOT, 0, 0), (OTHER, 7, u16::MAX), (RootId::default(), 3, 0x1234)]
            {
                let frame = RootPauseFrame { word, root, priority, sequence };
                assert_eq!(RootPauseFrame::parse(&frame.emit([2; 6])), Ok(frame));
            }
        }
    }

    #[test]
    fn the_layout_is_as_described() {
        let frame =
            RootPauseFrame { word: Word::Merge { into: OTHER }, root: ROOT, priority: 5, sequence: 0x0a0b };
        let bytes = frame.emit([7; 6]);
        assert_eq!(bytes[..6], [0x01, 0x80, 0xc2, 0, 0, 1]);
        assert_eq!(bytes[12..28], [0x88, 0xb5, 4, 2, 5, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x0a, 0x0b]);
        assert_eq!(bytes[28..36], [0xa1, 0xb2, 0xc3, 0xd4, 0xe5, 0xf6, 0x97, 0x86]);
        assert!(bytes[36..].iter().all(|&b| b == 0));
    }

    #[test]
    fn other_bytes_are_refused() {
        let good = RootPauseFrame { word: Word::Pause, root: ROOT, priority: 1, sequence: 9 }.emit([0; 6]);
        assert_eq!(RootPauseFrame::parse(&good[..35]), Err(NotFrame::Short));
        for (at, flip, why) in [
            (0, 0x40, NotFrame::Other),
            (13, 0x40, NotFrame::Other),
            (14, 1, NotFrame::Other),
            (15, 4, NotFrame::Field),
            (16, 8, NotFrame::Field),
            (17, 1, NotFrame::Field),
            // Only a merge has a second root.
            (28, 1, NotFrame::Field),
        ] {
            let mut bad = good;
            bad[at] ^= flip;
            assert_eq!(RootPauseFrame::parse(&bad), Err(why), "byte {at}");
        }
    }
}
