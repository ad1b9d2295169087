//! The frames on the links of Zeropod's pods: requests (RTS), schedules (SCHD) and cells of data.
//!
//! *Zeropod* (§III-A, §IV-A) describes their content, and gives 40 B to each RTS, each SCHD and the header of
//! each cell, but no layout. Because slots determine the path, they need no addresses. After the header of
//! [`experimental`] come:
//!
//! ```text
//! byte 14  8: RTS
//!      15  bits: 1 the mice are named anew; 2 it reports an earlier epoch, in which it 4 sent data,
//!          8 got data, 16 received no SCHD
//!      16  sender: number of the node, 32 bits
//!      20  epoch in which it is sent, and 24 the earlier one, else 0: 32 bits each
//!      28  how many demands follow, 30 how many mice, 32 how many pods for which it takes no more
//!          (backpressure): 16 bits each
//!      34  each demand: target, cells asked for in all, cells served in all (where links may fail; else
//!          0), 32 bits each
//!          each of the mice: target, cells served in all, 32 bits each, bytes that wait, 64 bits
//!          each pod, 16 bits
//!
//!      14  9: SCHD; 15 zero
//!      16  sender: number of the node; 20 in which epoch; 24 target; 28 aggregation switch and 32 core
//!          on the path: numbers of the nodes, 2^32 − 1 for no core; 32 bits each
//!      36  how many cells, 16 bits
//!
//!      14  10: cell; 15 1: sent without a grant (§IV-B.3), else 0
//!      16  source host: number of the node, 20 destination host: 32 bits each
//!      24  how many parts are in it, 16 bits
//!      26  each part: 0 data of a flow or 1 an acknowledgement, 8 bits; zero, 8 bits; flow, 32 bits;
//!          its first byte in the flow, or how much of the flow is acknowledged, 64 bits; bytes, 32 bits
//!          the bytes of all parts, as zeros
//!
//!          zeros up to the smallest frame; of a cell, up to the whole slot
//! ```
//!
//! A target is the number of a host's node, or 2^31 plus the number of another pod.

use xoff_wire::experimental::{self, NotFrame};
use xoff_wire::{CHECK, SMALLEST_BYTES, SMALLEST_FRAME, u16_at, u32_at, u64_at};

const RTS: u8 = 8;
const SCHD: u8 = 9;
const CELL: u8 = 10;
/// Where lists begin in an RTS, and in a cell, and the length of a part there.
const DEMANDS: usize = 34;
const PARTS: usize = 26;
const PART: usize = 18;
const NO_CORE: u32 = u32::MAX;
const POD: u32 = 1 << 31;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A host, by the number of its node.
    Host(u32),
    Pod(u16),
}

/// A demand of an RTS, in counts that go on for ever, modulo 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    pub target: Target,
    pub asked: u32,
    /// Cells served in all; 0 where nothing may fail.
    pub served: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mice {
    pub target: Target,
    /// Cells served in all, modulo 2^32.
    pub served: u32,
    pub bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The epoch, modulo 2^32.
    pub epoch: u32,
    pub sent: bool,
    pub got: bool,
    pub no_schd: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rts {
    pub sender: u32,
    /// The epoch, modulo 2^32.
    pub epoch: u32,
    /// Where links may fail.
    pub account: Option<Account>,
    /// At most 65,535 of each.
    pub demands: Vec<Demand>,
    /// The mice, where they are named anew.
    pub mice: Option<Vec<Mice>>,
    /// Pods that a core takes no more for.
    pub full: Vec<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schd {
    pub sender: u32,
    pub epoch: u32,
    pub target: Target,
    /// Numbers of the aggregation switch and of the core on the cells' path.
    pub aggregation: u32,
    pub core: Option<u32>,
    pub cells: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Bytes of the flow from this one on.
    Data(u64),
    /// An acknowledgement of so many of its bytes.
    Ack(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub flow: u32,
    pub holds: Holds,
    pub bytes: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    pub optimistic: bool,
    /// Numbers of the nodes that it is from, and for.
    pub source: u32,
    pub destination: u32,
    /// At most 65,535.
    pub parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    Rts(Rts),
    Schd(Schd),
    Cell(Cell),
}

fn count(entries: usize) -> [u8; 2] {
    u16::try_from(entries).expect("lists are below 64 Ki").to_be_bytes()
}

impl Target {
    fn number(self) -> [u8; 4] {
        match self {
            Self::Host(node) => node,
            Self::Pod(pod) => POD | u32::from(pod),
        }
        .to_be_bytes()
    }

    fn of(number: u32) -> Result<Self, NotFrame> {
        match number & POD {
            0 => Ok(Self::Host(number)),
            _ => u16::try_from(number & !POD).map(Self::Pod).map_err(|_| NotFrame::Field),
        }
    }
}

impl Frame {
    /// The frame without its check sequence. `slot`: bytes of a whole cell on the wire, check sequence
    /// included.
    pub fn emit(&self, source: [u8; 6], slot: u32) -> Vec<u8> {
        let mut bytes = experimental::emit(0, source)[..14].to_vec();
        match self {
            Self::Rts(rts) => rts.put(&mut bytes),
            Self::Schd(schd) => schd.put(&mut bytes),
            Self::Cell(cell) => cell.put(&mut bytes),
        }
        let least = if matches!(self, Self::Cell(_)) { slot.max(SMALLEST_FRAME) } else { SMALLEST_FRAME };
        bytes.resize(bytes.len().max(least as usize - CHECK), 0);
        bytes
    }

    /// Reads a frame.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotFrame> {
        match experimental::kind(bytes, SMALLEST_BYTES)? {
            RTS => Rts::read(bytes).map(Self::Rts),
            SCHD => Schd::read(bytes).map(Self::Schd),
            CELL => Cell::read(bytes).map(Self::Cell),
            _ => Err(NotFrame::Other),
        }
    }
}

impl Rts {
    fn put(&self, bytes: &mut Vec<u8>) {
        let account = self.account.unwrap_or_default();
        let bits = [self.mice.is_some(), self.account.is_some(), account.sent, account.got, account.no_schd];
        let bits = bits.iter().rev().fold(0, |bits, &bit| bits << 1 | u8::from(bit));
        let mice = self.mice.as_deref().unwrap_or_default();
        bytes.extend([RTS, bits]);
        for number in [self.sender, self.epoch, account.epoch] {
            bytes.extend(number.to_be_bytes());
        }
        for entries in [self.demands.len(), mice.len(), self.full.len()] {
            bytes.extend(count(entries));
        }
        for demand in &self.demands {
            bytes.extend(demand.target.number());
            bytes.extend(demand.asked.to_be_bytes());
            bytes.extend(demand.served.to_be_bytes());
        }
        for mice in mice {
            bytes.extend(mice.target.number());
            bytes.extend(mice.served.to_be_bytes());
            bytes.extend(mice.bytes.to_be_bytes());
        }
        self.full.iter().for_each(|pod| bytes.extend(pod.to_be_bytes()));
    }

    fn read(bytes: &[u8]) -> Result<Self, NotFrame> {
        let bit = |at: u8| bytes[15] >> at & 1 == 1;
        let account = Account { epoch: u32_at(bytes, 24), sent: bit(2), got: bit(3), no_schd: bit(4) };
        let [demands, mice, full] = [28, 30, 32].map(|at| usize::from(u16_at(bytes, at)));
        let unannounced = !bit(1) && account != Account::default() || !bit(0) && mice > 0;
        if bytes[15] >= 1 << 5 || unannounced {
            return Err(NotFrame::Field);
        }
        let after_demands = DEMANDS + 12 * demands;
        let after_mice = after_demands + 16 * mice;
        if bytes.len() < after_mice + 2 * full {
            return Err(NotFrame::Short);
        }
        let demand = |at| {
            let target = Target::of(u32_at(bytes, at))?;
            Ok(Demand { target, asked: u32_at(bytes, at + 4), served: u32_at(bytes, at + 8) })
        };
        let small = |at| {
            let target = Target::of(u32_at(bytes, at))?;
            Ok(Mice { target, served: u32_at(bytes, at + 4), bytes: u64_at(bytes, at + 8) })
        };
        let named = (after_demands..after_mice).step_by(16).map(small).collect::<Result<_, _>>()?;
        Ok(Self {
            sender: u32_at(bytes, 16),
            epoch: u32_at(bytes, 20),
            account: bit(1).then_some(account),
            demands: (DEMANDS..after_demands).step_by(12).map(demand).collect::<Result<_, _>>()?,
            mice: bit(0).then_some(named),
            full: (0..full).map(|i| u16_at(bytes, after_mice + 2 * i)).collect(),
        })
    }
}

impl Schd {
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend([SCHD, 0]);
        bytes.extend(self.sender.to_be_bytes());
        bytes.extend(self.epoch.to_be_bytes());
        bytes.extend(self.target.number());
        bytes.extend(self.aggregation.to_be_bytes());
        bytes.extend(self.core.unwrap_or(NO_CORE).to_be_bytes());
        bytes.extend(self.cells.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Result<Self, NotFrame> {
        if bytes[15] != 0 {
            return Err(NotFrame::Field);
        }
        Ok(Self {
            sender: u32_at(bytes, 16),
            epoch: u32_at(bytes, 20),
            target: Target::of(u32_at(bytes, 24))?,
            aggregation: u32_at(bytes, 28),
            core: Some(u32_at(bytes, 32)).filter(|&core| core != NO_CORE),
            cells: u16_at(bytes, 36),
        })
    }
}

impl Cell {
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend([CELL, u8::from(self.optimistic)]);
        bytes.extend(self.source.to_be_bytes());
        bytes.extend(self.destination.to_be_bytes());
        bytes.extend(count(self.parts.len()));
        for part in &self.parts {
            let (what, at) = match part.holds {
                Holds::Data(at) => (0, at),
                Holds::Ack(at) => (1, at),
            };
            bytes.extend([what, 0]);
            bytes.extend(part.flow.to_be_bytes());
            bytes.extend(at.to_be_bytes());
            bytes.extend(part.bytes.to_be_bytes());
        }
        let held: usize = self.parts.iter().map(|part| part.bytes as usize).sum();
        bytes.resize(bytes.len() + held, 0);
    }

    fn read(bytes: &[u8]) -> Result<Self, NotFrame> {
        let end = PARTS + PART * usize::from(u16_at(bytes, 24));
        if bytes[15] > 1 {
            return Err(NotFrame::Field);
        }
        if bytes.len() < end {
            return Err(NotFrame::Short);
        }
        let part = |at| {
            let of = u64_at(bytes, at + 6);
            let holds = match bytes[at..at + 2] {
                [0, 0] => Holds::Data(of),
                [1, 0] => Holds::Ack(of),
                _ => return Err(NotFrame::Field),
            };
            Ok(Part { flow: u32_at(bytes, at + 2), holds, bytes: u32_at(bytes, at + 14) })
        };
        let parts = (PARTS..end).step_by(PART).map(part).collect::<Result<Vec<_>, _>>()?;
        if end as u64 + parts.iter().map(|part| u64::from(part.bytes)).sum::<u64>() > bytes.len() as u64 {
            return Err(NotFrame::Short);
        }
        let (source, destination) = (u32_at(bytes, 16), u32_at(bytes, 20));
        Ok(Self { optimistic: bytes[15] == 1, source, destination, parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 9];

    fn target() -> impl Strategy<Value = Target> {
        prop_oneof![(0..POD).prop_map(Target::Host), any::<u16>().prop_map(Target::Pod)]
    }

    fn rts() -> impl Strategy<Value = Frame> {
        let account = (any::<u32>(), any::<bool>(), any::<bool>(), any::<bool>())
            .prop_map(|(epoch, sent, got, no_schd)| Account { epoch, sent, got, no_schd });
        let demand = (target(), any::<u32>(), any::<u32>()).prop_map(|(target, asked, served)| Demand {
            target,
            asked,
            served,
        });
        let mice = (target(), any::<u32>(), any::<u64>()).prop_map(|(target, served, bytes)| Mice {
            target,
            served,
            bytes,
        });
        let lists = (
            prop::collection::vec(demand, 0..9),
            prop::option::of(prop::collection::vec(mice, 0..9)),
            prop::collection::vec(any::<u16>(), 0..9),
        );
        (any::<u32>(), any::<u32>(), prop::option::of(account), lists).prop_map(
            |(sender, epoch, account, (demands, mice, full))| {
                Frame::Rts(Rts { sender, epoch, account, demands, mice, full })
            },
        )
    }

    fn schd() -> impl Strategy<Value = Frame> {
        (any::<u32>(), any::<u32>(), target(), any::<u32>(), prop::option::of(0..NO_CORE), any::<u16>())
            .prop_map(|(sender, epoch, target, aggregation, core, cells)| {
                Frame::Schd(Schd { sender, epoch, target, aggregation, core, cells })
            })
    }

    fn cell() -> impl Strategy<Value = Frame> {
        let part =
            (any::<u32>(), any::<bool>(), any::<u64>(), 0..600u32).prop_map(|(flow, ack, at, bytes)| Part {
                flow,
                holds: if ack { Holds::Ack(at) } else { Holds::Data(at) },
                bytes,
            });
        (any::<bool>(), any::<u32>(), any::<u32>(), prop::collection::vec(part, 0..5)).prop_map(
            |(optimistic, source, destination, parts)| {
                Frame::Cell(Cell { optimistic, source, destination, parts })
            },
        )
    }

    proptest! {
        #[test]
        fn frames_survive_the_wire(frame in prop_oneof![rts(), schd(), cell()], slot in 0..2000u32) {
            let bytes = frame.emit(SOURCE, slot);
            prop_assert!(bytes.len() >= 60 && bytes[6..12] == SOURCE);
            prop_assert_eq!(Frame::parse(&bytes), Ok(frame));
        }

        #[test]
        fn truncated_frames_are_refused(frame in prop_oneof![rts(), cell()], keep in 0.0..1.0f64) {
            let bytes = frame.emit(SOURCE, 0);
            if bytes.len() > 60 {
                let keep = (bytes.len() as f64 * keep) as usize;
                prop_assert_eq!(Frame::parse(&bytes[..keep]), Err(NotFrame::Short));
            }
        }

        #[test]
        fn no_bytes_make_it_panic(tail in prop::collection::vec(any::<u8>(), 46..200), kind in 7u8..12) {
            let mut bytes = experimental::emit(kind, SOURCE)[..15].to_vec();
            bytes.extend(tail);
            if let Ok(frame) = Frame::parse(&bytes) {
                prop_assert_eq!(Frame::parse(&frame.emit(SOURCE, 0)), Ok(frame));
            }
        }
    }

    #[test]
    fn fields_are_where_the_layout_has_them() {
        let grant = Schd {
            sender: 5,
            epoch: 0x0102_0304,
            target: Target::Pod(3),
            aggregation: 70,
            core: None,
            cells: 16,
        };
        let bytes = Frame::Schd(grant).emit(SOURCE, 552);
        assert_eq!(bytes.len(), 60);
        let fields = [9, 0, 0, 0, 0, 5, 1, 2, 3, 4, 0x80, 0, 0, 3, 0, 0, 0, 70, 255, 255, 255, 255, 0, 16];
        assert_eq!(bytes[14..38], fields);
        let part = Part { flow: 7, holds: Holds::Data(512), bytes: 100 };
        let cell = Cell { optimistic: true, source: 1, destination: 2, parts: vec![part] };
        let bytes = Frame::Cell(cell).emit(SOURCE, 552);
        assert_eq!(bytes.len(), 548, "a cell fills its slot");
        assert_eq!(
            bytes[14..44],
            [10, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 100]
        );
    }

    #[test]
    fn foreign_bytes_are_refused() {
        let rts = Rts { sender: 1, epoch: 2, account: None, demands: vec![], mice: None, full: vec![] };
        let bytes = Frame::Rts(rts).emit(SOURCE, 0);
        for (at, value, error) in [
            (0, 0, NotFrame::Other),
            (13, 0, NotFrame::Other),
            (14, 7, NotFrame::Other),
            (15, 4, NotFrame::Field),
            (15, 32, NotFrame::Field),
            (27, 1, NotFrame::Field),
            (31, 1, NotFrame::Field),
            (29, 9, NotFrame::Short),
        ] {
            let mut other = bytes.clone();
            other[at] = value;
            assert_eq!(Frame::parse(&other), Err(error), "byte {at}");
        }
    }
}
