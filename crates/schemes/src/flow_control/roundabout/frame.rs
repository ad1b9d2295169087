//! Roundabout's frames: a PFC frame followed by `ra_hdr` (Roundabout, Figure 4 and Table I).
//!
//! The paper names the header's fields and leaves their widths open, but for the 32 bits that `rand` and
//! `credit` share. It fits into the padding of a PFC frame; only a list of switches makes a frame longer:
//!
//! ```text
//! byte  0  destination 01-80-C2-00-00-01
//!       6  source
//!      12  EtherType 0x8808, opcode 0x0101, priorities, quanta: as 802.1Qbb has them; a frame
//!          that pauses and resumes nothing enables no priority
//!      34  opcode: Table I
//!      35  varLen: how many node ids there are
//!      36  priority that the header is about
//!      37  links that the triplet has come over
//!      38  sid, 32 bits: the switch of the triplet
//!      42  qid, 16 bits: its ingress queue
//!      44  rand, or credit in bytes: 32 bits
//!      48  node ids, 32 bits each
//!          zeros up to the smallest frame
//! ```

use crate::flow_control::frame::{Effect, Frame};
use xoff_wire::nodes::{MOST_NODES, Nodes};
use xoff_wire::pfc::PfcFrame;
use xoff_wire::{CHECK, NotFrame, SMALLEST_BYTES, SMALLEST_FRAME, u16_at, u32_at};

const HEADER: usize = 34;
const LIST: usize = 48;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Opcode {
    /// Deadlock detection: a probe.
    Probe = 1,
    /// The triplet no longer holds.
    Invalid = 2,
    /// A deadlock has been found by the triplet's source.
    Announcement = 3,
    /// Collects the switches of the loop, against the flow.
    Collect = 4,
    /// Gives the switches their neighbours in the loop, along the flow.
    Build = 5,
    Credit = 6,
    /// Parts the packets of one switch from those of the next.
    Barrier = 7,
    /// Asks whether every switch is done.
    Check = 8,
}

const OPCODES: [Opcode; 8] = {
    use Opcode::*;
    [Probe, Invalid, Announcement, Collect, Build, Credit, Barrier, Check]
};

/// A probing message: who sent it, and how advantageous it is.
#[derive(Clone, Copy, Debug, Default, Eq)]
pub struct Triplet {
    /// The switch, by its number in the network.
    pub sid: u32,
    /// The ingress queue within it.
    pub qid: u16,
    pub rand: u32,
    /// Links that it has crossed; not a part of its identity.
    pub hops: u8,
}

impl PartialEq for Triplet {
    fn eq(&self, other: &Self) -> bool {
        self.same_source(other) && self.rand == other.rand
    }
}

impl std::hash::Hash for Triplet {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.sid, self.qid, self.rand).hash(state);
    }
}

impl Triplet {
    pub fn same_source(&self, other: &Self) -> bool {
        (self.sid, self.qid) == (other.sid, other.qid)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundaboutFrame {
    pub priority: u8,
    /// Pauses that priority for so many quanta, or resumes it with 0; `None`: neither.
    pub quanta: Option<u16>,
    pub opcode: Opcode,
    /// The triplet. Of a credit, `rand` is the bytes granted; of a check, its state.
    pub triplet: Triplet,
    /// The switches of a loop.
    pub nodes: Nodes,
}

impl RoundaboutFrame {
    /// The part that pauses or resumes.
    pub fn pfc(&self) -> PfcFrame {
        self.quanta.map_or(PfcFrame::default(), |quanta| PfcFrame::single(self.priority, quanta))
    }

    /// The frame without its check sequence.
    pub fn emit(&self, source: [u8; 6]) -> Vec<u8> {
        let mut bytes = self.pfc().emit(source).to_vec();
        bytes.resize(self.length() as usize - CHECK, 0);
        bytes[HEADER] = self.opcode as u8;
        bytes[HEADER + 1] = self.nodes.as_slice().len() as u8;
        bytes[HEADER + 2] = self.priority;
        bytes[HEADER + 3] = self.triplet.hops;
        bytes[38..42].copy_from_slice(&self.triplet.sid.to_be_bytes());
        bytes[42..44].copy_from_slice(&self.triplet.qid.to_be_bytes());
        bytes[44..48].copy_from_slice(&self.triplet.rand.to_be_bytes());
        self.nodes.emit(&mut bytes[LIST..]);
        bytes
    }

    /// Reads a frame.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotFrame> {
        let pfc = PfcFrame::parse(bytes)?;
        if bytes.len() < SMALLEST_BYTES {
            return Err(NotFrame::Short);
        }
        let number = usize::from(bytes[HEADER]).checked_sub(1);
        let opcode = *number.and_then(|at| OPCODES.get(at)).ok_or(NotFrame::Other)?;
        let (count, priority) = (usize::from(bytes[HEADER + 1]), bytes[HEADER + 2]);
        if count > MOST_NODES || priority > 7 || pfc.enabled & !(1 << priority) != 0 {
            return Err(NotFrame::Field);
        }
        if bytes.len() < LIST + 4 * count {
            return Err(NotFrame::Short);
        }
        Ok(Self {
            priority,
            quanta: (pfc.enabled != 0).then_some(pfc.quanta[usize::from(priority)]),
            opcode,
            triplet: Triplet {
                sid: u32_at(bytes, 38),
                qid: u16_at(bytes, 42),
                rand: u32_at(bytes, 44),
                hops: bytes[HEADER + 3],
            },
            nodes: Nodes::parse(bytes[HEADER + 1], &bytes[LIST..]),
        })
    }
}

impl Frame for RoundaboutFrame {
    fn length(&self) -> u32 {
        let bytes = LIST + 4 * self.nodes.as_slice().len() + CHECK;
        // At most `MOST_NODES` ids.
        SMALLEST_FRAME.max(bytes as u32)
    }

    fn effect(&self) -> Effect {
        if self.quanta.is_some() { Effect::Lanes(self.pfc()) } else { Effect::Nothing }
    }

    fn is_barrier(&self) -> bool {
        self.opcode == Opcode::Barrier
    }

    #[cfg(test)]
    fn note(&self, port: u32) -> String {
        format!("{:?} {port} {:?} {}:{}", self.opcode, self.quanta, self.triplet.sid, self.triplet.rand)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(nodes: &[u32]) -> RoundaboutFrame {
        let mut list = Nodes::default();
        nodes.iter().for_each(|&id| assert!(list.push_front(id)));
        RoundaboutFrame {
            priority: 3,
            quanta: None,
            opcode: Opcode::Collect,
            triplet: Triplet { sid: 70_000, qid: 513, rand: 0xdead_beef, hops: 9 },
            nodes: list,
        }
    }

    #[test]
    fn a_probe_is_a_pause_frame_of_the_usual_length_that_anyone_obeys() {
        let probe = RoundaboutFrame { quanta: Some(1_000), opcode: Opcode::Probe, ..frame(&[]) };
        let bytes = probe.emit([2; 6]);
        assert_eq!((bytes.len(), probe.length()), (60, PfcFrame::LENGTH));
        assert_eq!(PfcFrame::parse(&bytes), Ok(PfcFrame::single(3, 1_000)));
        assert_eq!(bytes[34..48], [1, 0, 3, 9, 0, 1, 0x11, 0x70, 2, 1, 0xde, 0xad, 0xbe, 0xef]);
        let read = RoundaboutFrame::parse(&bytes).expect("a frame");
        assert_eq!((read, read.triplet.hops), (probe, 9));
        let resume = RoundaboutFrame { quanta: Some(0), opcode: Opcode::Invalid, ..probe };
        assert_eq!(RoundaboutFrame::parse(&resume.emit([2; 6])), Ok(resume));
    }

    #[test]
    fn lists_grow_at_the_front_and_lengthen_the_frame() {
        let collect = frame(&[1, 2, 90_000, 4]);
        assert_eq!(collect.nodes.as_slice(), [4, 90_000, 2, 1]);
        assert_eq!((collect.length(), frame(&[1, 2, 3]).length()), (68, 64));
        let bytes = collect.emit([2; 6]);
        assert_eq!(RoundaboutFrame::parse(&bytes), Ok(collect));
        assert_eq!(RoundaboutFrame::parse(&bytes[..63]), Err(NotFrame::Short));
        let mut nodes = collect.nodes;
        assert_eq!((nodes.pop_front(), nodes.as_slice()), (Some(4), &[90_000, 2, 1][..]));
        assert_eq!(Nodes::default().pop_front(), None);
        let full: Vec<u32> = (0..MOST_NODES as u32).collect();
        assert!(!frame(&full).nodes.push_front(1));
        let longest = frame(&full);
        assert_eq!(RoundaboutFrame::parse(&longest.emit([2; 6])), Ok(longest));
    }

    #[test]
    fn foreign_bytes_are_refused() {
        let bytes = frame(&[7]).emit([2; 6]);
        for (at, value, error) in [
            (0, 0, NotFrame::Other),
            (HEADER, 0, NotFrame::Other),
            (HEADER, 9, NotFrame::Other),
            (HEADER + 1, 33, NotFrame::Field),
            (HEADER + 2, 8, NotFrame::Field),
            (17, 1, NotFrame::Field),
            (HEADER + 1, 4, NotFrame::Short),
        ] {
            let mut other = bytes.clone();
            other[at] = value;
            assert_eq!(RoundaboutFrame::parse(&other), Err(error), "byte {at}");
        }
        assert_eq!(RoundaboutFrame::parse(&bytes[..59]), Err(NotFrame::Short));
        // A plain pause frame has zeros where the opcode is.
        let plain = PfcFrame::single(3, 9).emit([2; 6]);
        assert_eq!(RoundaboutFrame::parse(&plain), Err(NotFrame::Other));
    }
}
