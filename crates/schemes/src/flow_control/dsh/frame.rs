//! Frames of DSH: PFC frames, whose vector of priorities tells the two levels apart.
//!
//! ```text
//! byte  0  destination 01-80-C2-00-00-01
//!       6  source
//!      12  EtherType 0x8808, opcode 0x0101
//!      16  priorities: all eight at the port level; at the queue level those that change, never all
//!      18  a time in quanta for each priority; at the port level all eight are the same
//! ```

use crate::flow_control::frame::{ControlFrame, Effect, Frame};
use xoff_wire::SMALLEST_BYTES;
use xoff_wire::pfc::PfcFrame;

/// The vector of the port level.
const ALL: u8 = 0xff;

/// A pause or resume of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelFrame(PfcFrame);

impl LevelFrame {
    /// Pauses a queue, or (with 0 quanta) resumes it.
    pub fn of_queue(priority: u8, quanta: u16) -> Self {
        Self(PfcFrame::single(priority, quanta))
    }

    /// Pauses all lossless queues of a port, or (with 0 quanta) resumes them.
    pub fn of_port(quanta: u16) -> Self {
        Self(PfcFrame { enabled: ALL, quanta: [quanta; 8] })
    }

    /// Whether it is of the port level.
    pub fn is_port(&self) -> bool {
        self.0.enabled == ALL
    }

    /// Its content in the form of 802.1Qbb.
    pub fn pfc(&self) -> PfcFrame {
        self.0
    }

    /// The frame without its check sequence.
    pub fn emit(&self, source: [u8; 6]) -> [u8; SMALLEST_BYTES] {
        self.0.emit(source)
    }

    /// No bytes: the frame on the wire is a PFC frame, and is read as one.
    pub(in super::super) fn parse(_: &[u8]) -> Option<Self> {
        None
    }
}

impl From<PfcFrame> for LevelFrame {
    fn from(frame: PfcFrame) -> Self {
        Self(frame)
    }
}

impl Frame for LevelFrame {
    fn effect(&self) -> Effect {
        Effect::Lanes(self.0)
    }

    /// Frames of one level merge, unless queues would become a port.
    fn merge(&mut self, later: &ControlFrame) -> bool {
        let ControlFrame::Level(later) = later else { return false };
        let mut both = self.0;
        both.take_up(&later.0);
        let merges = self.is_port() == later.is_port() && (self.is_port() || both.enabled != ALL);
        if merges {
            self.0 = both;
        }
        merges
    }

    /// Losslessness depends on the port level.
    fn goes_before(&self, waiting: &ControlFrame) -> bool {
        matches!(waiting, ControlFrame::Level(waiting) if self.is_port() && !waiting.is_port())
    }

    #[cfg(test)]
    fn note(&self, port: u32) -> String {
        match self.is_port() {
            true => format!("port {port} {}", self.0.quanta[0]),
            false => format!("queues {port} {:?}", self.0.entries().collect::<Vec<_>>()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(of: LevelFrame) -> ControlFrame {
        of.into()
    }

    #[test]
    fn the_wire_has_a_pfc_frame() {
        for (of, enabled) in [(LevelFrame::of_queue(3, 9), 1 << 3), (LevelFrame::of_port(9), 0xff)] {
            let bytes = of.emit([2; 6]);
            assert_eq!(
                (bytes[12..16].to_vec(), bytes[16..18].to_vec()),
                (vec![0x88, 8, 1, 1], vec![0, enabled])
            );
            let read = PfcFrame::parse(&bytes).expect("a frame of 802.1Qbb");
            assert_eq!((LevelFrame::from(read), LevelFrame::from(read).is_port()), (of, enabled == 0xff));
            assert_eq!(ControlFrame::parse(&bytes), Some(ControlFrame::Pfc(read)));
        }
    }

    #[test]
    fn frames_of_a_level_merge_and_levels_do_not() {
        let mut queues = frame(LevelFrame::of_queue(3, 9));
        assert!(!queues.merge(&frame(LevelFrame::of_port(9))));
        assert!(queues.merge(&frame(LevelFrame::of_queue(5, 7))));
        assert!(queues.merge(&frame(LevelFrame::of_queue(3, 0))));
        let ControlFrame::Level(both) = queues else { panic!("of this scheme") };
        assert_eq!(both.pfc().entries().collect::<Vec<_>>(), [(3, 0), (5, 7)]);
        let mut port = frame(LevelFrame::of_port(9));
        assert!(!port.merge(&frame(LevelFrame::of_queue(3, 0))));
        assert!(port.merge(&frame(LevelFrame::of_port(0))));
        assert_eq!(port, frame(LevelFrame::of_port(0)));
    }

    /// An eighth queue has a second frame: a frame that names all eight priorities pauses the port.
    #[test]
    fn eight_queues_are_no_port() {
        let mut queues = frame(LevelFrame::of_queue(0, 9));
        assert!((1..7).all(|priority| queues.merge(&frame(LevelFrame::of_queue(priority, 9)))));
        assert!(!queues.merge(&frame(LevelFrame::of_queue(7, 9))));
    }

    #[test]
    fn a_frame_of_the_port_goes_first() {
        let [queue, port] = [LevelFrame::of_queue(3, 9), LevelFrame::of_port(9)].map(frame);
        let order = [(&port, &queue), (&queue, &port), (&port, &port), (&queue, &queue)];
        assert_eq!(order.map(|(new, waits)| new.overtakes(waits)), [true, false, false, false]);
    }
}
