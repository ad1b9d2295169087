//! GFC's feedback frames: for each priority in the frame the stage of an ingress account, or its stored bytes.
//!
//! They have the layout of this project. In captures they are Ethernet frames of an experimental EtherType
//! (IEEE 802 local experimental 1, 0x88B5) to the address of MAC control, which bridges never forward:
//!
//! ```text
//! byte  0  destination 01-80-C2-00-00-01
//!       6  source
//!      12  EtherType 0x88B5
//!      14  11: stages
//!      15  priorities that it names, one bit each
//!      16  stage of priority 0, 8 bits; then of 1 to 7; 0 where not named
//!      24  zeros up to the smallest frame
//! ```
//!
//! ```text
//! byte 14  14: stored bytes
//!      15  priorities that it names, one bit each
//!      16  stored bytes of priority 0, 32 bits; then of 1 to 7; 0 where not named
//!      48  zeros up to the smallest frame
//! ```

use crate::flow_control::frame::{ControlFrame, Effect, Frame};
use xoff_wire::experimental::{self, NotFrame};
use xoff_wire::{SMALLEST_BYTES, SMALLEST_FRAME};

const KIND: u8 = 11;
const LEAST: usize = 24;
const BYTES_KIND: u8 = 14;
const BYTES_LEAST: usize = 48;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageFrame {
    /// Bit `p` is set if the frame names priority `p`.
    pub enabled: u8,
    /// k: the rate of the priority is the link's rate, halved `k` times. Zero where not enabled.
    pub stages: [u8; 8],
}

impl StageFrame {
    /// Bytes on the wire, check sequence included.
    pub const LENGTH: u32 = SMALLEST_FRAME;

    /// A frame with the stage of one priority.
    pub fn single(priority: u8, stage: u8) -> Self {
        let mut frame = Self { enabled: 1 << priority, ..Self::default() };
        frame.stages[usize::from(priority)] = stage;
        frame
    }

    /// The priorities that it names, each with its stage.
    pub fn entries(self) -> impl Iterator<Item = (u8, u8)> {
        (0..8u8).filter(move |p| self.enabled >> p & 1 == 1).map(move |p| (p, self.stages[usize::from(p)]))
    }

    /// The frame without its check sequence.
    pub fn emit(&self, source: [u8; 6]) -> [u8; SMALLEST_BYTES] {
        let mut bytes = experimental::emit(KIND, source);
        bytes[15] = self.enabled;
        bytes[16..24].copy_from_slice(&self.stages);
        bytes
    }

    /// Reads a frame; stages of priorities that are not enabled are ignored.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotFrame> {
        experimental::expect(bytes, KIND, LEAST)?;
        let mut frame = Self { enabled: bytes[15], stages: [0; 8] };
        for p in (0..8).filter(|p| frame.enabled >> p & 1 == 1) {
            frame.stages[p] = bytes[16 + p];
        }
        Ok(frame)
    }
}

impl Frame for StageFrame {
    /// It stops nothing.
    fn effect(&self) -> Effect {
        Effect::Nothing
    }

    /// The stages of the later frame hold where both name a priority.
    fn merge(&mut self, later: &ControlFrame) -> bool {
        let ControlFrame::Stages(later) = later else { return false };
        for (priority, stage) in later.entries() {
            self.enabled |= 1 << priority;
            self.stages[usize::from(priority)] = stage;
        }
        true
    }

    #[cfg(test)]
    fn note(&self, port: u32) -> String {
        format!("stage {port} {:?}", self.entries().collect::<Vec<_>>())
    }
}

/// The feedback of the time-based form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredFrame {
    /// Bit `p` is set if the frame names priority `p`.
    pub enabled: u8,
    /// Zero where not enabled.
    pub stored: [u32; 8],
}

impl StoredFrame {
    /// Bytes on the wire, check sequence included.
    pub const LENGTH: u32 = SMALLEST_FRAME;

    /// A frame with the stored bytes of one priority.
    pub fn single(priority: u8, stored: u32) -> Self {
        let mut frame = Self { enabled: 1 << priority, ..Self::default() };
        frame.stored[usize::from(priority)] = stored;
        frame
    }

    /// The priorities that it names, each with its bytes.
    pub fn entries(self) -> impl Iterator<Item = (u8, u32)> {
        (0..8u8).filter(move |p| self.enabled >> p & 1 == 1).map(move |p| (p, self.stored[usize::from(p)]))
    }

    /// The frame without its check sequence.
    pub fn emit(&self, source: [u8; 6]) -> [u8; SMALLEST_BYTES] {
        let mut bytes = experimental::emit(BYTES_KIND, source);
        bytes[15] = self.enabled;
        bytes[16..48].copy_from_slice(self.stored.map(u32::to_be_bytes).as_flattened());
        bytes
    }

    /// Reads a frame; bytes of priorities that are not enabled are ignored.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotFrame> {
        experimental::expect(bytes, BYTES_KIND, BYTES_LEAST)?;
        let mut frame = Self { enabled: bytes[15], stored: [0; 8] };
        for p in (0..8).filter(|p| frame.enabled >> p & 1 == 1) {
            frame.stored[p] = u32::from_be_bytes(std::array::from_fn(|i| bytes[16 + 4 * p + i]));
        }
        Ok(frame)
    }
}

impl Frame for StoredFrame {
    /// It stops nothing.
    fn effect(&self) -> Effect {
        Effect::Nothing
    }

    /// The bytes of the later frame hold where both name a priority.
    fn merge(&mut self, later: &ControlFrame) -> bool {
        let ControlFrame::Stored(later) = later else { return false };
        for (priority, stored) in later.entries() {
            self.enabled |= 1 << priority;
            self.stored[usize::from(priority)] = stored;
        }
        true
    }

    #[cfg(test)]
    fn note(&self, port: u32) -> String {
        format!("stored {port} {:?}", self.entries().collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_single_frame_survives_the_wire() {
        for priority in 0..8 {
            for stage in [0, 1, 47, u8::MAX] {
                let frame = StageFrame::single(priority, stage);
                assert_eq!(StageFrame::parse(&frame.emit([2; 6])), Ok(frame));
                assert_eq!(frame.entries().collect::<Vec<_>>(), [(priority, stage)]);
            }
        }
    }

    #[test]
    fn the_layout_is_as_described() {
        let mut frame = StageFrame::single(3, 5);
        assert!(frame.merge(&StageFrame::single(7, 2).into()));
        assert!(frame.merge(&StageFrame::single(3, 6).into()));
        let bytes = frame.emit([2; 6]);
        assert_eq!(bytes[14..25], [11, 0b1000_1000, 0, 0, 0, 6, 0, 0, 0, 2, 0]);
        assert_eq!(bytes.len() as u32 + 4, frame.length());
        assert_eq!(StageFrame::parse(&bytes), Ok(frame));
        assert_eq!(StageFrame::parse(&bytes[..23]), Err(NotFrame::Short));
        for at in [0, 13, 14] {
            let mut other = bytes;
            other[at] ^= 1;
            assert_eq!(StageFrame::parse(&other), Err(NotFrame::Other), "byte {at}");
        }
    }

    #[test]
    fn the_layout_of_stored_bytes_is_as_described() {
        let mut frame = StoredFrame::single(3, 0x0102_0304);
        assert!(frame.merge(&StoredFrame::single(7, u32::MAX).into()));
        assert!(!frame.merge(&StageFrame::single(3, 1).into()));
        assert!(frame.merge(&StoredFrame::single(3, 0x0506_0708).into()));
        let bytes = frame.emit([2; 6]);
        assert_eq!(bytes[14..16], [14, 0b1000_1000]);
        assert_eq!(bytes[16..28], [0; 12]);
        assert_eq!(bytes[28..32], [5, 6, 7, 8]);
        assert_eq!(bytes[44..49], [255, 255, 255, 255, 0]);
        assert_eq!(bytes.len() as u32 + 4, frame.length());
        assert_eq!(StoredFrame::parse(&bytes), Ok(frame));
        assert_eq!(frame.entries().collect::<Vec<_>>(), [(3, 0x0506_0708), (7, u32::MAX)]);
        assert_eq!(StoredFrame::parse(&bytes[..47]), Err(NotFrame::Short));
        assert_eq!(StageFrame::parse(&bytes), Err(NotFrame::Other));
    }
}
