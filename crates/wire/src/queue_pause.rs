//! Pause frames that name one queue or one flow of the neighbour, where a PFC frame names a priority.
//!
//! No standard has such a frame. After the header of [`experimental`] come:
//!
//! ```text
//! byte 14  unit that it names: 1 a queue, 2 a flow
//!      15  1 pauses, 0 resumes
//!      16  priority, 0 to 7
//!      17  zero
//!      18  number of the queue or flow, 32 bits
//! ```
//!
//! A pause lasts until its resume, or for a time that both ends know: the frame says none.

use crate::{NotFrame, SMALLEST_BYTES, SMALLEST_FRAME, experimental, u32_at};

/// The unit that a frame names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// An egress queue of the neighbour's port, by its number there.
    Queue(u16),
    /// A flow, wherever the neighbour's port holds it.
    Flow(u32),
}

/// Pauses or resumes one queue or one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePauseFrame {
    pub target: Target,
    /// 802.1p priority that the queue or flow belongs to, 0 to 7.
    pub priority: u8,
    /// Whether it pauses (rather than resumes) that unit.
    pub pause: bool,
}

impl QueuePauseFrame {
    /// Bytes on the wire, check sequence included.
    pub const LENGTH: u32 = SMALLEST_FRAME;

    /// The frame without its check sequence.
    pub fn emit(&self, source: [u8; 6]) -> [u8; SMALLEST_BYTES] {
        let (kind, number) = match self.target {
            Target::Queue(queue) => (1, u32::from(queue)),
            Target::Flow(flow) => (2, flow),
        };
        let mut bytes = experimental::emit(kind, source);
        bytes[15] = u8::from(self.pause);
        bytes[16] = self.priority;
        bytes[18..22].copy_from_slice(&number.to_be_bytes());
        bytes
    }

    /// Reads a frame.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotFrame> {
        let kind = experimental::kind(bytes, 22)?;
        let number = u32_at(bytes, 18);
        let target = match kind {
            1 => Target::Queue(u16::try_from(number).map_err(|_| NotFrame::Field)?),
            2 => Target::Flow(number),
            _ => return Err(NotFrame::Field),
        };
        if bytes[15] > 1 || bytes[16] > 7 || bytes[17] != 0 {
            return Err(NotFrame::Field);
        }
        Ok(Self { target, priority: bytes[16], pause: bytes[15] == 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_survives_the_wire() {
        for target in [Target::Queue(0), Target::Queue(127), Target::Queue(u16::MAX), Target::Flow(u32::MAX)]
        {
            for (priority, pause) in [(0, true), (7, false)] {
                let frame = QueuePauseFrame { target, priority, pause };
                assert_eq!(QueuePauseFrame::parse(&frame.emit([2; 6])), Ok(frame));
            }
        }
    }

    #[test]
    fn the_layout_is_as_described() {
        let frame = QueuePauseFrame { target: Target::Flow(0x0102_0304), priority: 3, pause: true };
        let bytes = frame.emit([7; 6]);
        assert_eq!(bytes[..6], [0x01, 0x80, 0xc2, 0, 0, 1]);
        assert_eq!(bytes[12..23], [0x88, 0xb5, 2, 1, 3, 0, 1, 2, 3, 4, 0]);
    }

    #[test]
    fn other_bytes_are_refused() {
        let good = QueuePauseFrame { target: Target::Queue(5), priority: 3, pause: false }.emit([0; 6]);
        assert_eq!(QueuePauseFrame::parse(&good[..21]), Err(NotFrame::Short));
        let wrong = [
            (0, 0x40, NotFrame::Other),
            (13, 0x40, NotFrame::Other),
            (14, 4, NotFrame::Field),
            (15, 2, NotFrame::Field),
            (16, 8, NotFrame::Field),
            (17, 1, NotFrame::Field),
            (18, 1, NotFrame::Field), // beyond 16 bits
        ];
        for (at, flip, why) in wrong {
            let mut bad = good;
            bad[at] ^= flip;
            assert_eq!(QueuePauseFrame::parse(&bad), Err(why), "byte {at}");
        }
    }
}
