//! Frames between the control planes of neighbouring devices: probes for deadlocks, and the frames that
//! follow them (the schemes `loop-breaker` and `deadlock-breaker`).
//!
//! Shpiner et al. (HotNets 2016) leave their form open. They are laid out as Ethernet frames
//! of an experimental EtherType (IEEE 802 local experimental 1, 0x88B5) to the address of MAC
//! control, which bridges never forward:
//!
//! ```text
//! byte  0  destination 01-80-C2-00-00-01
//!       6  source
//!      12  EtherType 0x88B5
//!      14  6: between control planes
//!      15  1: a probe; 2: more room for the loop's ingress queues
//!      16  priority
//!      17  how many ports are listed
//!      18  draw, 32 bits: the higher half of the identifier
//!      22  port, 32 bits: its lower half, the egress port that the probe set out from
//!      26  ports, 32 bits each
//!          zeros up to the smallest frame
//! ```
//!
//! Ports have numbers that are unique in the network, as configured addresses are.

use crate::flow_control::frame::{Effect, Frame};
use xoff_wire::experimental::{self, NotFrame};
use xoff_wire::nodes::{MOST_NODES, Nodes};
use xoff_wire::{CHECK, SMALLEST_BYTES, SMALLEST_FRAME, u32_at};

const KIND: u8 = 6;
const LIST: usize = 26;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Word {
    /// It follows packets that wait for ever, if they do.
    Probe = 1,
    /// The devices of a loop must give their ingress queues in it more room.
    Room = 2,
}

/// Identifies probes; of two, the smaller one continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identifier {
    /// 0 in the first probe of a port that has just been suspected, else drawn.
    pub draw: u32,
    /// The egress port that it set out from.
    pub port: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeFrame {
    pub word: Word,
    pub priority: u8,
    /// The probe's identifier; of [`Word::Room`], that of the probe which found the loop.
    pub id: Identifier,
    /// Of a probe that carries its path: the egress ports that it has left by, the last one
    /// first. Of [`Word::Room`]: those that it has still to leave by, the next one first.
    pub ports: Nodes,
}

impl ProbeFrame {
    /// The frame without its check sequence.
    pub fn emit(&self, source: [u8; 6]) -> Vec<u8> {
        let mut bytes = experimental::emit(KIND, source).to_vec();
        bytes.resize(self.length() as usize - CHECK, 0);
        let ports = self.ports.as_slice().len() as u8;
        bytes[15..18].copy_from_slice(&[self.word as u8, self.priority, ports]);
        bytes[18..22].copy_from_slice(&self.id.draw.to_be_bytes());
        bytes[22..26].copy_from_slice(&self.id.port.to_be_bytes());
        self.ports.emit(&mut bytes[LIST..]);
        bytes
    }

    pub fn parse(bytes: &[u8]) -> Result<Self, NotFrame> {
        experimental::expect(bytes, KIND, SMALLEST_BYTES)?;
        let (priority, count) = (bytes[16], usize::from(bytes[17]));
        let word = match bytes[15] {
            1 => Word::Probe,
            2 => Word::Room,
            _ => return Err(NotFrame::Field),
        };
        if priority > 7 || count > MOST_NODES {
            return Err(NotFrame::Field);
        }
        if bytes.len() < LIST + 4 * count {
            return Err(NotFrame::Short);
        }
        let id = Identifier { draw: u32_at(bytes, 18), port: u32_at(bytes, 22) };
        Ok(Self { word, priority, id, ports: Nodes::parse(bytes[17], &bytes[LIST..]) })
    }
}

impl Frame for ProbeFrame {
    fn length(&self) -> u32 {
        let bytes = LIST + 4 * self.ports.as_slice().len() + CHECK;
        // At most `MOST_NODES` ports.
        SMALLEST_FRAME.max(bytes as u32)
    }

    fn effect(&self) -> Effect {
        Effect::Nothing
    }

    fn yields(&self) -> bool {
        true
    }

    #[cfg(test)]
    fn note(&self, port: u32) -> String {
        format!("{:?} {port} {}:{} {:?}", self.word, self.id.draw, self.id.port, self.ports.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(ports: &[u32]) -> ProbeFrame {
        let mut list = Nodes::default();
        ports.iter().rev().for_each(|&port| assert!(list.push_front(port)));
        ProbeFrame {
            word: Word::Probe,
            priority: 3,
            id: Identifier { draw: 0xdead_beef, port: 70_000 },
            ports: list,
        }
    }

    #[test]
    fn frames_survive_the_wire_and_grow_with_their_path() {
        let short = frame(&[]);
        let bytes = short.emit([2; 6]);
        assert_eq!((bytes.len(), short.length()), (60, 64));
        assert_eq!(bytes[14..26], [6, 1, 3, 0, 0xde, 0xad, 0xbe, 0xef, 0, 1, 0x11, 0x70]);
        assert_eq!(ProbeFrame::parse(&bytes), Ok(short));
        let full: Vec<u32> = (0..MOST_NODES as u32).map(|port| port << 20).collect();
        let longest = ProbeFrame { word: Word::Room, ..frame(&full) };
        assert_eq!((longest.length(), frame(&full[..8]).length(), frame(&full[..9]).length()), (158, 64, 66));
        assert_eq!(ProbeFrame::parse(&longest.emit([2; 6])), Ok(longest));
    }

    #[test]
    fn foreign_bytes_are_refused() {
        let bytes = frame(&[7]).emit([2; 6]);
        for (at, value, error) in [
            (0, 0, NotFrame::Other),
            (13, 0, NotFrame::Other),
            (14, 5, NotFrame::Other),
            (15, 3, NotFrame::Field),
            (16, 8, NotFrame::Field),
            (17, 33, NotFrame::Field),
            (17, 9, NotFrame::Short),
        ] {
            let mut other = bytes.clone();
            other[at] = value;
            assert_eq!(ProbeFrame::parse(&other), Err(error), "byte {at}");
        }
        assert_eq!(ProbeFrame::parse(&bytes[..59]), Err(NotFrame::Short));
    }

    #[test]
    fn draws_count_before_ports() {
        let id = |draw, port| Identifier { draw, port };
        assert!(id(0, 9) < id(1, 2) && id(1, 2) < id(1, 3));
    }
}
