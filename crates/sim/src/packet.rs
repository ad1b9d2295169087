//! Packets, in an arena, named by a 32-bit index.

/// No packet, no account, no flow.
pub const NONE: u32 = u32::MAX;

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The slot is free.
    Free,
    /// Carries payload; `number` is its PSN.
    Data,
    /// `number` is the next PSN expected.
    Ack,
    /// `number` is the PSN that is missing.
    Nack,
    /// Between neighbours; `number` is its slot among the control frames.
    Control,
}

/// A packet: half a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct Packet {
    /// The packet behind it in its queue, or the next free slot.
    pub next: u32,
    /// Where it stands on its route: index into the plan's hops of the egress
    /// port that it waits at or was last sent from.
    pub hop: u32,
    /// Its flow.
    pub flow: u32,
    /// See [`Kind`].
    pub number: u32,
    /// The ingress account that it is charged to, or [`NONE`].
    pub account: u32,
    /// Bytes on the wire.
    pub size: u32,
    /// What it is.
    pub kind: Kind,
    /// Its lane.
    pub lane: u8,
    /// It carries an ECN mark.
    pub marked: bool,
    /// Number of the leaf that it left the neighbour from (see [`crate::leaves`]).
    pub upstream: u16,
    /// The flow control's own bit.
    pub counted: bool,
}

/// All packets.
#[derive(Default)]
pub struct Arena {
    slots: Vec<Packet>,
    free: u32,
}

impl Arena {
    /// An empty arena.
    pub fn new() -> Self {
        Self { slots: Vec::new(), free: NONE }
    }

    /// Stores a packet.
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

    /// Frees a packet's slot.
    #[inline]
    pub fn remove(&mut self, id: u32) {
        let slot = &mut self.slots[id as usize];
        slot.kind = Kind::Free;
        slot.next = self.free;
        self.free = id;
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
    #[test]
    fn a_packet_fills_half_a_cache_line() {
        assert_eq!(size_of::<super::Packet>(), 32);
    }
}
