//! Packets, in an arena, named by a 32-bit index.

use crate::indices::table;
use xoff_kernel::table::Table;
use xoff_schemes::congestion_control::rccc::TARGETS;

/// No packet, no account, no flow.
pub const NONE: u32 = u32::MAX;

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The slot is free.
    Free,
    /// Carries payload; `number` is its PSN. `ahead` has a bit that asks for an ACK, and the credit_target.
    Data,
    /// `number` is the next PSN expected. The PSN that it names, or the first one of its bitmap
    /// ([`crate::switch::telemetry`]), is `ahead` of it.
    Ack,
    /// `number` is the PSN that is missing, and the PSN that has arrived, or was trimmed, is `ahead` of it. Or `number` is
    /// the PSN that was trimmed, and `ahead` is 1 if that was at the last hop. See [`xoff_schemes::transport::keys::Nacks`].
    Nack,
    /// A congestion notification to the flow's sender.
    Cnp,
    /// What remains of trimmed data, on the way to the receiver; `number` is its PSN. In `ahead` the bit that asks for
    /// an ACK says that it was trimmed at the last hop.
    Header,
    /// To the flow's sender; `number` counts the PULLs of the flow, or its credit.
    Pull,
    /// Between neighbours; `number` is its slot among the control frames.
    Control,
    /// To the flow's receiver, which acknowledges it at once; `number` counts the probes of the flow.
    Probe,
    /// The ACK of a probe: `number` is the next PSN expected, `ahead` the number of the probe, and the bitmap begins
    /// after the next PSN.
    ProbeAck,
    /// A frame that a link retransmits: its packet is at the receiver already (see [`crate::switch::link`]).
    Replay,
    /// A word of a link layer; `number` is its content.
    Word,
}

impl Kind {
    /// Whether it belongs to a link, and has no records.
    pub fn of_link(self) -> bool {
        matches!(self, Self::Replay | Self::Word)
    }
}

/// A packet: half a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct Packet {
    /// The next packet in its queue, or the next free slot.
    pub next: u32,
    /// Its position on its route (in the plan's hops): the egress port where it waits, or that it left by.
    pub hop: u32,
    pub flow: u32,
    /// See [`Kind`].
    pub number: u32,
    /// The ingress account that it is charged to, or [`NONE`].
    pub account: u32,
    /// Bytes on the wire.
    pub size: u32,
    pub kind: Kind,
    pub lane: u8,
    /// Data carries an ECN mark; an ACK or NACK says that marks have come.
    pub marked: bool,
    /// Number of the leaf that it left the neighbour from (see [`crate::switch::leaves`]), below 2^15; and in
    /// the highest bit the flow control's own.
    upstream: u16,
    /// See [`Kind::Nack`]. For other ACKs that report marked packets to senders that label flows: their number. Otherwise 0.
    /// Three bytes, so a packet keeps its size.
    pub ahead: [u8; 3],
}

/// The flow control's bit of [`Packet::upstream`].
const COUNTED: u16 = 1 << 15;
/// The numbers below that bit, but for 0.
const LEAVES: u32 = COUNTED as u32 - 1;
/// The bit of [`Packet::ahead`] with which data asks for an ACK.
const ASKS: u32 = TARGETS;

impl Packet {
    pub fn new(kind: Kind, flow: u32, number: u32, size: u32, lane: u8, hop: u32) -> Self {
        Self {
            next: NONE,
            hop,
            flow,
            number,
            account: NONE,
            size,
            kind,
            lane,
            marked: false,
            upstream: 0,
            ahead: [0; 3],
        }
    }

    /// Number of the leaf that it left the neighbour from.
    pub fn upstream(&self) -> u16 {
        self.upstream & !COUNTED
    }

    /// Number of its leaf, and the flow control's bit.
    pub fn marks(&self) -> u16 {
        self.upstream
    }

    pub fn set_marks(&mut self, marks: u16) {
        self.upstream = marks;
    }

    /// It leaves from that leaf. The flow control's bit is cleared.
    pub fn set_upstream(&mut self, number: u16) {
        debug_assert!(number < COUNTED, "the plan bounds queues");
        self.upstream = number;
    }

    pub fn counted(&self) -> bool {
        self.upstream & COUNTED != 0
    }

    pub fn set_counted(&mut self, counted: bool) {
        self.upstream = self.upstream & !COUNTED | if counted { COUNTED } else { 0 };
    }

    /// It leaves for `port`, whose device has not agreed to it. Where queues are per lane
    /// [`Packet::upstream`] is free for that, and 0 in all others.
    pub fn set_against(&mut self, port: u32) {
        self.set_upstream((port % LEAVES) as u16 + 1);
    }

    /// Whether [`Packet::set_against`] was called for `port`. Other ports' marks differ but in huge switches.
    pub fn against(&self, port: u32) -> bool {
        u32::from(self.upstream()) == port % LEAVES + 1
    }

    /// [`Packet::ahead`] of data: whether it asks for an ACK, and its credit_target, below 2^23.
    pub fn requests(asks: bool, credit_target: u32) -> [u8; 3] {
        Self::three_bytes(credit_target | if asks { ASKS } else { 0 })
    }

    /// Whether data asks for an ACK.
    pub fn asks(&self) -> bool {
        self.echoed() & ASKS != 0
    }

    /// Whether the last hop has trimmed what remains of data, which therefore asks for no ACK.
    pub fn set_last_hop(&mut self, last_hop: bool) {
        self.ahead = Self::requests(last_hop, self.credit_target());
    }

    /// See [`Packet::set_last_hop`].
    pub fn last_hop(&self) -> bool {
        self.asks()
    }

    /// The credit_target of data, or of what remains of it.
    pub fn credit_target(&self) -> u32 {
        self.echoed() & !ASKS
    }

    /// [`Packet::ahead`] as a number.
    pub fn sacked(&self) -> u32 {
        self.number + self.echoed()
    }

    /// [`Packet::ahead`] as a number by itself.
    pub fn echoed(&self) -> u32 {
        let [low, middle, high] = self.ahead;
        u32::from_le_bytes([low, middle, high, 0])
    }

    /// Three bytes of a number below 2^24.
    pub fn three_bytes(n: u32) -> [u8; 3] {
        let [low, middle, high, rest] = n.to_le_bytes();
        debug_assert_eq!(rest, 0, "the plan bounds windows");
        [low, middle, high]
    }
}

pub struct Arena {
    slots: Table<Vec<Packet>>,
    free: u32,
}

impl Arena {
    pub fn new() -> Self {
        Self { slots: table(Vec::new()), free: NONE }
    }

    #[inline]
    pub fn insert(&mut self, packet: Packet) -> u32 {
        if self.free == NONE {
            self.slots.push(packet);
            return (self.slots.len() - 1) as u32;
        }
        let id = self.free;
        let slot = &mut self.slots[id as usize];
        self.free = slot.next;
        *slot = packet;
        id
    }

    #[inline]
    pub fn remove(&mut self, id: u32) {
        let slot = &mut self.slots[id as usize];
        slot.kind = Kind::Free;
        slot.next = self.free;
        self.free = id;
    }

    pub fn footprint(&self) -> u64 {
        crate::outcome::footprint::of(&self.slots)
    }

    /// Every slot, the free ones included, to be changed.
    pub fn slots_mut(&mut self) -> &mut [Packet] {
        &mut self.slots
    }

    /// Every slot, the free ones included (their kind says so).
    pub fn slots(&self) -> &[Packet] {
        &self.slots
    }
}

impl std::ops::Index<u32> for Arena {
    type Output = Packet;
    #[inline]
    fn index(&self, id: u32) -> &Packet {
        &self.slots[id as usize]
    }
}

impl std::ops::IndexMut<u32> for Arena {
    #[inline]
    fn index_mut(&mut self, id: u32) -> &mut Packet {
        &mut self.slots[id as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_fills_half_a_cache_line() {
        assert_eq!(size_of::<Packet>(), 32);
    }
}
