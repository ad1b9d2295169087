//! The pause and resume frames of PortFC, which name one egress port and queue of the switch that sends them.
//!
//! The paper (section III-C and Algorithms 1 to 4) gives the frame its type, the congested queue's number,
//! plain rather than as a mask of eight priorities, and the congested port's number, but no layout. Here,
//! after the header of [`experimental`]:
//!
//! ```text
//! byte 14  3: names a queue of an egress port
//!      15  1 pauses, 0 resumes
//!      16  number of the congested queue, 16 bits
//!      18  number of the congested port, 16 bits
//! ```

use crate::flow_control::frame::{Effect, Frame};
use xoff_wire::experimental::{self, NotFrame};
use xoff_wire::{SMALLEST_BYTES, SMALLEST_FRAME, u16_at};

const KIND: u8 = 3;

/// Pauses or resumes the senders to one class of queues of a congested port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortPauseFrame {
    pub pause: bool,
    /// Below n − 1 one of the inter-hop forwarding queues; n − 1 is the destination-direct queue. At a port to a
    /// switch n − 1 and above are the queues of packets without a relay ahead.
    pub queue: u16,
    pub port: u16,
}

impl PortPauseFrame {
    /// Bytes on the wire, check sequence included.
    pub const LENGTH: u32 = SMALLEST_FRAME;

    /// The frame without its check sequence.
    pub fn emit(&self, source: [u8; 6]) -> [u8; SMALLEST_BYTES] {
        let mut bytes = experimental::emit(KIND, source);
        bytes[15] = u8::from(self.pause);
        bytes[16..18].copy_from_slice(&self.queue.to_be_bytes());
        bytes[18..20].copy_from_slice(&self.port.to_be_bytes());
        bytes
    }

    /// Reads a frame.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotFrame> {
        experimental::expect(bytes, KIND, 20)?;
        if bytes[15] > 1 {
            return Err(NotFrame::Field);
        }
        Ok(Self { pause: bytes[15] == 1, queue: u16_at(bytes, 16), port: u16_at(bytes, 18) })
    }
}

impl Frame for PortPauseFrame {
    fn effect(&self) -> Effect {
        Effect::Onward { port: self.port, pause: self.pause }
    }

    #[cfg(test)]
    fn note(&self, port: u32) -> String {
        format!("{} {port} q{} p{}", if self.pause { "stop" } else { "go" }, self.queue, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_survives_the_wire() {
        // The paper's example of a number that no mask of priorities has is 15.
        for (queue, port) in [(0, 0), (15, 3), (127, 300), (u16::MAX, u16::MAX)] {
            for pause in [true, false] {
                let frame = PortPauseFrame { pause, queue, port };
                assert_eq!(PortPauseFrame::parse(&frame.emit([2; 6])), Ok(frame));
            }
        }
    }

    #[test]
    fn the_layout_is_as_described() {
        let frame = PortPauseFrame { pause: true, queue: 0x0102, port: 0x0304 };
        let bytes = frame.emit([7; 6]);
        assert_eq!(bytes[..6], [0x01, 0x80, 0xc2, 0, 0, 1]);
        assert_eq!(bytes[12..21], [0x88, 0xb5, 3, 1, 1, 2, 3, 4, 0]);
    }

    #[test]
    fn other_bytes_are_refused() {
        let good = PortPauseFrame { pause: false, queue: 5, port: 6 }.emit([0; 6]);
        assert_eq!(PortPauseFrame::parse(&good[..19]), Err(NotFrame::Short));
        for (at, flip, why) in [
            (0, 0x40, NotFrame::Other),
            (13, 0x40, NotFrame::Other),
            (14, 1, NotFrame::Other),
            (15, 2, NotFrame::Field),
        ] {
            let mut bad = good;
            bad[at] ^= flip;
            assert_eq!(PortPauseFrame::parse(&bad), Err(why), "byte {at}");
        }
    }
}
