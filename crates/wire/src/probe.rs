//! Frames between the control planes of neighbouring devices: probes for deadlocks, and
//! what follows them (the schemes `loop-breaker` and `deadlock-breaker`).
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

use crate::SMALLEST_FRAME;
use crate::queue_pause::{DESTINATION, ETHERTYPE};
use crate::roundabout::{MOST_NODES, Nodes};

const KIND: u8 = 6;
const LIST: usize = 26;
/// Bytes of the check sequence, which closes every frame.
const CHECK: usize = 4;

/// What a frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Word {
    /// It follows packets that wait for ever, if they do.
    Probe = 1,
    /// It tells the devices of a loop to give their ingress queues in it more room.
    Room = 2,
}

/// Tells probes apart; of two, the smaller one goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identifier {
    /// 0 in the first probe of a port that has just been suspected, else drawn.
    pub draw: u32,
    /// The egress port that it set out from.
    pub port: u32,
}

/// A frame between control planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeFrame {
    /// What it says.
    pub word: Word,
    /// The priority that it is about.
    pub priority: u8,
    /// The probe's identifier; of [`Word::Room`], that of the probe which found the loop.
    pub id: Identifier,
    /// Of a probe that carries its path: the egress ports that it has left by, the last one
    /// first. Of [`Word::Room`]: those that it has still to leave by, the next one first.
    pub ports: Nodes,
}

/// Why bytes are not such a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotProbe {
    /// Fewer bytes than the fields take.
    Short,
    /// Another destination, EtherType or kind.
    Other,
    /// A field has a value that it cannot have.
    Field,
}

impl ProbeFrame {
    /// Bytes on the wire, check sequence included.
    pub fn length(&self) -> u32 {
        let bytes = LIST + 4 * self.ports.as_slice().len() + CHECK;
        // At most `MOST_NODES` ports.
        SMALLEST_FRAME.max(bytes as u32)
    }

    /// The frame without its check sequence.
    pub fn emit(&self, source: [u8; 6]) -> Vec<u8> {
        let mut bytes = vec![0; self.length() as usize - CHECK];
        let ports = self.ports.as_slice();
        bytes[..6].copy_from_slice(&DESTINATION);
        bytes[6..12].copy_from_slice(&source);
        bytes[12..14].copy_from_slice(&ETHERTYPE);
        bytes[14..18].copy_from_slice(&[KIND, self.word as u8, self.priority, ports.len() as u8]);
        bytes[18..22].copy_from_slice(&self.id.draw.to_be_bytes());
        bytes[22..26].copy_from_slice(&self.id.port.to_be_bytes());
        for (i, port) in ports.iter().enumerate() {
            bytes[LIST + 4 * i..][..4].copy_from_slice(&port.to_be_bytes());
        }
        bytes
    }

    /// Reads a frame.
    ///
    /// # Errors
    /// [`NotProbe`] says what does not fit.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotProbe> {
        if bytes.len() < SMALLEST_FRAME as usize - CHECK {
            return Err(NotProbe::Short);
        }
        if bytes[..6] != DESTINATION || bytes[12..14] != ETHERTYPE || bytes[14] != KIND {
            return Err(NotProbe::Other);
        }
        let (priority, count) = (bytes[16], usize::from(bytes[17]));
        let word = match bytes[15] {
            1 => Word::Probe,
            2 => Word::Room,
            _ => return Err(NotProbe::Field),
        };
        if priority > 7 || count > MOST_NODES {
            return Err(NotProbe::Field);
        }
        if bytes.len() < LIST + 4 * count {
            return Err(NotProbe::Short);
        }
        let number = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let mut ports = Nodes::default();
        for i in (0..count).rev() {
            assert!(ports.push_front(number(LIST + 4 * i)), "counted above");
        }
        Ok(Self { word, priority, id: Identifier { draw: number(18), port: number(22) }, ports })
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
            (0, 0, NotProbe::Other),
            (13, 0, NotProbe::Other),
            (14, 5, NotProbe::Other),
            (15, 3, NotProbe::Field),
            (16, 8, NotProbe::Field),
            (17, 33, NotProbe::Field),
            (17, 9, NotProbe::Short),
        ] {
            let mut other = bytes.clone();
            other[at] = value;
            assert_eq!(ProbeFrame::parse(&other), Err(error), "byte {at}");
        }
        assert_eq!(ProbeFrame::parse(&bytes[..59]), Err(NotProbe::Short));
    }

    #[test]
    fn draws_count_before_ports() {
        let id = |draw, port| Identifier { draw, port };
        assert!(id(0, 9) < id(1, 2) && id(1, 2) < id(1, 3));
    }
}
