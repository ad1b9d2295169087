//! The pause and resume frames of PortFC, which name one egress port and queue of
//! the switch that sends them.
//!
//! The paper (section III-C and Algorithms 1 to 4) gives the frame three fields:
//! its type, the congested queue's number, plain rather than as a mask of eight
//! priorities, and the congested port's number. It has no layout; this one is an
//! Ethernet frame of an experimental EtherType (IEEE 802 local experimental 1,
//! 0x88B5) to the address of MAC control, which bridges never forward:
//!
//! ```text
//! byte  0  destination 01-80-C2-00-00-01
//!       6  source
//!      12  EtherType 0x88B5
//!      14  3: names a queue of an egress port
//!      15  1 pauses, 0 resumes
//!      16  number of the congested queue, 16 bits
//!      18  number of the congested port, 16 bits
//!      20  zeros up to the smallest frame
//! ```
//!
//! Byte 14 tells it from [`crate::queue_pause`].

use crate::SMALLEST_FRAME;
use crate::queue_pause::{DESTINATION, ETHERTYPE};

const KIND: u8 = 3;

/// Pauses or resumes what feeds one class of queues of a congested port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortPauseFrame {
    /// It stops (rather than restarts) what it names.
    pub pause: bool,
    /// Number of the congested queue at its port. Below n − 1 it is one of the
    /// inter-hop forwarding queues, n − 1 is the destination-direct queue.
    pub queue: u16,
    /// Number of the congested port at its switch.
    pub port: u16,
}

/// Why bytes are not such a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotPortPause {
    /// Fewer bytes than the fields take.
    Short,
    /// Another destination, EtherType or kind.
    Other,
    /// A field has a value that it cannot have.
    Field,
}

impl PortPauseFrame {
    /// Bytes on the wire, check sequence included.
    pub const LENGTH: u32 = SMALLEST_FRAME;

    /// The frame without its check sequence.
    pub fn emit(&self, source: [u8; 6]) -> [u8; SMALLEST_FRAME as usize - 4] {
        let mut bytes = [0; SMALLEST_FRAME as usize - 4];
        bytes[..6].copy_from_slice(&DESTINATION);
        bytes[6..12].copy_from_slice(&source);
        bytes[12..14].copy_from_slice(&ETHERTYPE);
        bytes[14] = KIND;
        bytes[15] = u8::from(self.pause);
        bytes[16..18].copy_from_slice(&self.queue.to_be_bytes());
        bytes[18..20].copy_from_slice(&self.port.to_be_bytes());
        bytes
    }

    /// Reads a frame.
    ///
    /// # Errors
    /// [`NotPortPause`] says what does not fit.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotPortPause> {
        if bytes.len() < 20 {
            return Err(NotPortPause::Short);
        }
        if bytes[..6] != DESTINATION || bytes[12..14] != ETHERTYPE || bytes[14] != KIND {
            return Err(NotPortPause::Other);
        }
        if bytes[15] > 1 {
            return Err(NotPortPause::Field);
        }
        Ok(Self {
            pause: bytes[15] == 1,
            queue: u16::from_be_bytes([bytes[16], bytes[17]]),
            port: u16::from_be_bytes([bytes[18], bytes[19]]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue_pause::{NotQueuePause, QueuePauseFrame, Target};

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
        assert_eq!(PortPauseFrame::parse(&good[..19]), Err(NotPortPause::Short));
        for (at, flip, why) in [
            (0, 0x40, NotPortPause::Other),
            (13, 0x40, NotPortPause::Other),
            (14, 1, NotPortPause::Other),
            (15, 2, NotPortPause::Field),
        ] {
            let mut bad = good;
            bad[at] ^= flip;
            assert_eq!(PortPauseFrame::parse(&bad), Err(why), "byte {at}");
        }
    }

    /// Neither of the two frames of this EtherType is taken for the other.
    #[test]
    fn the_kinds_are_told_apart() {
        let port = PortPauseFrame { pause: true, queue: 1, port: 2 }.emit([0; 6]);
        assert_eq!(QueuePauseFrame::parse(&port), Err(NotQueuePause::Field));
        let queue = QueuePauseFrame { target: Target::Queue(1), priority: 3, pause: true }.emit([0; 6]);
        assert_eq!(PortPauseFrame::parse(&queue), Err(NotPortPause::Other));
    }
}
