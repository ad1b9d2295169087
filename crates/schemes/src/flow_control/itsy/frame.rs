//! ITSY's check messages: PFC frames with a check in their padding.
//!
//! Its paper's layout is not public; it is only known that a pause carries the check (Lv et al., 2025,
//! section II-B). So the check has the place of other schemes' probes, and byte 34 distinguishes them:
//!
//! ```text
//! byte  0  destination 01-80-C2-00-00-01
//!       6  source
//!      12  EtherType 0x8808, opcode 0x0101, priorities, quanta: as 802.1Qbb has them; a check
//!          that goes on by itself enables no priority
//!      34  0x80: a check
//!      35  priority that the check is about
//!      36  sid, 32 bits: the switch that sent it first
//!      40  qid, 16 bits: its ingress queue
//!      42  number, 16 bits: how often that queue had been a trigger before
//!          zeros up to the smallest frame
//! ```

use crate::flow_control::frame::{ControlFrame, Effect, Frame};
use xoff_wire::pfc::PfcFrame;
use xoff_wire::{NotFrame, SMALLEST_BYTES, SMALLEST_FRAME, u16_at, u32_at};

const KIND: usize = 34;
const CHECK: u8 = 0x80;

/// The check that an initial trigger sends around the loop that it may be part of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Check {
    pub priority: u8,
    /// The switch, by its number in the network.
    pub sid: u32,
    /// The ingress queue within it.
    pub qid: u16,
    /// How often that queue was a trigger before, modulo 2^16: it tells old checks from new ones.
    pub number: u16,
}

impl Check {
    pub fn same_source(&self, other: &Self) -> bool {
        (self.priority, self.sid, self.qid) == (other.priority, other.sid, other.qid)
    }
}

/// A frame of ITSY: a check, with or without a word of PFC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItsyFrame {
    pub pfc: PfcFrame,
    pub check: Check,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotItsy {
    Pfc(NotFrame),
    Short,
    NoCheck,
    Priority,
}

impl ItsyFrame {
    /// Bytes on the wire, check sequence included.
    pub const LENGTH: u32 = SMALLEST_FRAME;

    /// A check without a word of PFC.
    pub fn alone(check: Check) -> Self {
        Self { pfc: PfcFrame::default(), check }
    }

    /// Whether it says nothing to PFC.
    pub fn is_alone(&self) -> bool {
        self.pfc.enabled == 0
    }

    /// The frame without its check sequence.
    pub fn emit(&self, source: [u8; 6]) -> [u8; SMALLEST_BYTES] {
        let mut bytes = self.pfc.emit(source);
        (bytes[KIND], bytes[KIND + 1]) = (CHECK, self.check.priority);
        bytes[36..40].copy_from_slice(&self.check.sid.to_be_bytes());
        bytes[40..42].copy_from_slice(&self.check.qid.to_be_bytes());
        bytes[42..44].copy_from_slice(&self.check.number.to_be_bytes());
        bytes
    }

    pub fn parse(bytes: &[u8]) -> Result<Self, NotItsy> {
        let pfc = PfcFrame::parse(bytes).map_err(NotItsy::Pfc)?;
        if bytes.len() < SMALLEST_BYTES {
            return Err(NotItsy::Short);
        }
        if bytes[KIND] != CHECK {
            return Err(NotItsy::NoCheck);
        }
        let priority = bytes[KIND + 1];
        if priority > 7 {
            return Err(NotItsy::Priority);
        }
        let check =
            Check { priority, sid: u32_at(bytes, 36), qid: u16_at(bytes, 40), number: u16_at(bytes, 42) };
        Ok(Self { pfc, check })
    }
}

impl Frame for ItsyFrame {
    fn effect(&self) -> Effect {
        if self.is_alone() { Effect::Nothing } else { Effect::Lanes(self.pfc) }
    }

    /// A check is sent with a frame to the same neighbour; it does not delay that frame.
    fn merge(&mut self, later: &ControlFrame) -> bool {
        match later {
            ControlFrame::Pfc(later) if !self.is_alone() => {
                self.pfc.take_up(later);
                true
            }
            ControlFrame::Itsy(later) => later.is_alone() && self.check == later.check,
            _ => false,
        }
    }

    fn join(&self, waits: &PfcFrame) -> Option<ControlFrame> {
        self.is_alone().then(|| Self { pfc: *waits, check: self.check }.into())
    }

    fn yields(&self) -> bool {
        self.is_alone()
    }

    #[cfg(test)]
    fn note(&self, port: u32) -> String {
        format!("check {port} {}.{}#{}", self.check.sid, self.check.qid, self.check.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THIS: Check = Check { priority: 3, sid: 70_000, qid: 513, number: 65_535 };

    #[test]
    fn a_check_rides_on_a_pause_that_anyone_obeys() {
        let mut pfc = PfcFrame::single(3, 1_000);
        (pfc.enabled, pfc.quanta[5]) = (pfc.enabled | 1 << 5, 7);
        let frame = ItsyFrame { pfc, check: THIS };
        let bytes = frame.emit([2; 6]);
        assert_eq!((bytes.len() as u32 + 4, ItsyFrame::LENGTH), (PfcFrame::LENGTH, PfcFrame::LENGTH));
        assert_eq!(PfcFrame::parse(&bytes), Ok(pfc));
        assert_eq!(bytes[34..45], [0x80, 3, 0, 1, 0x11, 0x70, 2, 1, 0xff, 0xff, 0]);
        assert_eq!(ItsyFrame::parse(&bytes), Ok(frame));
        let alone = ItsyFrame::alone(THIS);
        assert!(alone.is_alone() && !frame.is_alone());
        assert_eq!(ItsyFrame::parse(&alone.emit([2; 6])), Ok(alone));
    }

    #[test]
    fn a_source_is_a_queue_of_a_priority() {
        assert!(THIS.same_source(&Check { number: 0, ..THIS }));
        for other in [Check { priority: 4, ..THIS }, Check { sid: 1, ..THIS }, Check { qid: 1, ..THIS }] {
            assert!(!THIS.same_source(&other));
        }
    }

    #[test]
    fn foreign_bytes_are_refused() {
        let bytes = ItsyFrame::alone(THIS).emit([2; 6]);
        for (at, value, error) in [
            (0, 0, NotItsy::Pfc(NotFrame::Other)),
            (KIND, 0, NotItsy::NoCheck),
            (KIND, 1, NotItsy::NoCheck),
            (KIND + 1, 8, NotItsy::Priority),
        ] {
            let mut other = bytes;
            other[at] = value;
            assert_eq!(ItsyFrame::parse(&other), Err(error), "byte {at}");
        }
        assert_eq!(ItsyFrame::parse(&bytes[..59]), Err(NotItsy::Short));
        assert_eq!(ItsyFrame::parse(&PfcFrame::single(3, 9).emit([2; 6])), Err(NotItsy::NoCheck));
    }
}
