//! The pause frame of priority flow control (IEEE 802.1Qbb, 802.3 Annex 31D).
//!
//! Destination 01-80-C2-00-00-01, EtherType 0x8808, opcode 0x0101, a vector of the priorities it speaks of,
//! and for each a time in quanta of 512 bit times of the port; time 0 resumes. Padded to the smallest frame.

use crate::{MAC_CONTROL, NotFrame, SMALLEST_BYTES, SMALLEST_FRAME, u16_at};

/// Bits that one pause quantum lasts.
pub const QUANTUM_BITS: u64 = 512;

const ETHERTYPE: [u8; 2] = [0x88, 0x08];
const OPCODE: [u8; 2] = [0x01, 0x01];

/// The content of a PFC frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PfcFrame {
    /// Bit `p` is set if the frame speaks of priority `p`.
    pub enabled: u8,
    /// Pause time of each priority in quanta; 0 resumes. Zero where not enabled.
    pub quanta: [u16; 8],
}

impl PfcFrame {
    /// Bytes on the wire, check sequence included.
    pub const LENGTH: u32 = SMALLEST_FRAME;

    /// A frame that pauses or (with 0 quanta) resumes one priority.
    pub fn single(priority: u8, quanta: u16) -> Self {
        let mut frame = Self { enabled: 1 << priority, ..Self::default() };
        frame.quanta[usize::from(priority)] = quanta;
        frame
    }

    /// The priorities it speaks of, each with its quanta.
    pub fn entries(self) -> impl Iterator<Item = (u8, u16)> {
        (0..8u8).filter(move |p| self.enabled >> p & 1 == 1).map(move |p| (p, self.quanta[usize::from(p)]))
    }

    /// Adds the content of a `later` frame, whose value counts where both name a priority.
    pub fn take_up(&mut self, later: &Self) {
        for (priority, quanta) in later.entries() {
            self.enabled |= 1 << priority;
            self.quanta[usize::from(priority)] = quanta;
        }
    }

    /// The frame without its check sequence.
    pub fn emit(&self, source: [u8; 6]) -> [u8; SMALLEST_BYTES] {
        let mut bytes = [0; SMALLEST_BYTES];
        bytes[..6].copy_from_slice(&MAC_CONTROL);
        bytes[6..12].copy_from_slice(&source);
        bytes[12..14].copy_from_slice(&ETHERTYPE);
        bytes[14..16].copy_from_slice(&OPCODE);
        bytes[17] = self.enabled;
        for (p, quanta) in self.quanta.iter().enumerate() {
            bytes[18 + 2 * p..20 + 2 * p].copy_from_slice(&quanta.to_be_bytes());
        }
        bytes
    }

    /// Reads a frame; the times of priorities that are not enabled are dropped.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotFrame> {
        if bytes.len() < 34 {
            return Err(NotFrame::Short);
        }
        if bytes[..6] != MAC_CONTROL || bytes[12..14] != ETHERTYPE || bytes[14..16] != OPCODE {
            return Err(NotFrame::Other);
        }
        if bytes[16] != 0 {
            return Err(NotFrame::Field);
        }
        let mut frame = Self { enabled: bytes[17], quanta: [0; 8] };
        for (p, quanta) in frame.quanta.iter_mut().enumerate() {
            if frame.enabled >> p & 1 == 1 {
                *quanta = u16_at(bytes, 18 + 2 * p);
            }
        }
        Ok(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_single_frame_survives_the_wire() {
        for priority in 0..8 {
            for quanta in [0, 1, 255, 256, u16::MAX] {
                let frame = PfcFrame::single(priority, quanta);
                assert_eq!(PfcFrame::parse(&frame.emit([2; 6])), Ok(frame));
                assert_eq!(frame.entries().collect::<Vec<_>>(), [(priority, quanta)]);
            }
        }
    }

    #[test]
    fn the_layout_is_that_of_the_standard() {
        let bytes = PfcFrame::single(3, 0xffff).emit([0; 6]);
        assert_eq!(bytes[12..18], [0x88, 0x08, 0x01, 0x01, 0x00, 0b1000]);
        assert_eq!(bytes[24..26], [0xff, 0xff]);
    }

    #[test]
    fn other_bytes_are_refused() {
        let good = PfcFrame::single(0, 1).emit([0; 6]);
        assert_eq!(PfcFrame::parse(&good[..33]), Err(NotFrame::Short));
        for (at, why) in
            [(0, NotFrame::Other), (13, NotFrame::Other), (15, NotFrame::Other), (16, NotFrame::Field)]
        {
            let mut bad = good;
            bad[at] ^= 0x40;
            assert_eq!(PfcFrame::parse(&bad), Err(why), "byte {at}");
        }
    }
}
