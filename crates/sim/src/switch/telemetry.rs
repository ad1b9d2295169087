//! In-band telemetry: the records of devices about their links, in the packets that pass. It is stored beside
//! the packets, by their slots, and is empty unless the congestion control uses it. A record is added when a
//! packet is taken out of an egress queue. An ACK takes over the slot of its data packet, and so the records.
//! Under some congestion controls packets have a [`Stamp`] instead of records. The bitmaps of ACKs and the labels of
//! packets are here, too.

use xoff_kernel::time::Time;
use xoff_plan::plan::Plan;
use xoff_schemes::congestion_control::telemetry::{Hop, Stamp};
use xoff_schemes::load_balancing::seam::Label;

/// In place of a count: the packet has met more devices than it has room for.
const TOO_MANY: u8 = u8::MAX;

/// The records of all packets.
#[derive(Debug, Default)]
pub struct Telemetry {
    /// Most records of a packet; 0 without telemetry.
    most: usize,
    /// By slot, `most` for each.
    records: Vec<Hop>,
    counts: Vec<u8>,
    /// Whether packets have stamps.
    stamped: bool,
    /// By slot, with the time when the packet reached the inside of its slow receiver.
    stamps: Vec<(Stamp, Option<Time>)>,
    /// Whether ACKs have bitmaps, or data and ACKs labels.
    has_beside: bool,
    /// By slot.
    beside: Vec<Beside>,
}

/// The content of an ACK, and the label of data and its ACK, beside the packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// The packets that it names beyond the expected one.
    pub bits: u64,
    /// The credit of its flow, below 2^24, if it carries that.
    pub credit: Option<u32>,
    /// That of the data, if senders label each packet.
    pub label: Option<Label>,
}

/// The records of packets that leave for another part, one after the other.
#[derive(Debug, Default)]
pub struct Parcel {
    records: Vec<Hop>,
    counts: Vec<u8>,
    stamps: Vec<(Stamp, Option<Time>)>,
    beside: Vec<Beside>,
    /// So many records, and packets, have been taken out.
    taken: (usize, usize),
}

/// Bytes of a record of telemetry in a frame.
const HOP: usize = 36;
/// In place of a count in a frame: a stamp follows.
const STAMP: u8 = TOO_MANY - 1;

impl Parcel {
    /// The content beside the next packet; nothing if ACKs have none.
    pub fn next_beside(&self) -> Beside {
        self.beside.get(self.taken.1).copied().unwrap_or_default()
    }

    /// Takes out what is beside the next packet, as bytes. First, if there are any, its bitmap, its credit plus one or 0,
    /// and its label with 0 (none), 1, or 2 (congested). Then the count of its records, or [`TOO_MANY`], and the records;
    /// or its stamp.
    pub fn emit(&mut self, bytes: &mut Vec<u8>) {
        let (first, packet) = self.taken;
        if let Some(Beside { bits, credit, label }) = self.beside.get(packet) {
            bytes.extend(bits.to_be_bytes());
            bytes.extend(credit.map_or(0, |credit| credit + 1).to_be_bytes());
            let Label { number, congested } = label.unwrap_or_default();
            bytes.extend(number.to_be_bytes());
            bytes.push(u8::from(label.is_some()) + u8::from(congested));
        }
        if let Some(&(Stamp { sent, hops, endpoint }, inside)) = self.stamps.get(packet) {
            bytes.push(STAMP);
            let words = [sent, hops.into(), endpoint, inside.map_or(0, |since| since + 1)];
            bytes.extend(words.map(u64::to_be_bytes).as_flattened());
            self.taken.1 += 1;
            return;
        }
        let Some(&count) = self.counts.get(packet) else {
            self.taken.1 += 1;
            return;
        };
        let records = if count == TOO_MANY { 0 } else { usize::from(count) };
        bytes.push(count);
        for hop in &self.records[first..first + records] {
            bytes.extend([hop.at, hop.sent, hop.queued, hop.rate].map(u64::to_be_bytes).as_flattened());
            bytes.extend(hop.port.to_be_bytes());
        }
        self.taken = (first + records, packet + 1);
    }

    /// Appends the records of a packet, as [`Parcel::emit`] has written them. `of` says which there are.
    pub fn parse(&mut self, of: &Telemetry, mut bytes: &[u8]) -> Option<()> {
        if of.has_beside {
            let (bits, rest) = bytes.split_first_chunk()?;
            let (credit, rest) = rest.split_first_chunk()?;
            let (number, rest) = rest.split_first_chunk()?;
            let (&state, rest) = rest.split_first()?;
            let number = u16::from_be_bytes(*number);
            let label = match state {
                0 if number == 0 => None,
                1 | 2 => Some(Label { number, congested: state == 2 }),
                _ => return None,
            };
            let credit = u32::from_be_bytes(*credit).checked_sub(1);
            if credit.is_some_and(|credit| credit >> 24 > 0) {
                return None;
            }
            self.beside.push(Beside { bits: u64::from_be_bytes(*bits), credit, label });
            bytes = rest;
        }
        if !of.used() {
            return bytes.is_empty().then_some(());
        }
        let (&count, records) = bytes.split_first()?;
        if count == STAMP {
            let (words, []) = records.as_chunks::<8>() else { return None };
            let [sent, hops, endpoint, inside] =
                words.try_into().ok().map(|w: [[u8; 8]; 4]| w.map(u64::from_be_bytes))?;
            let stamp = Stamp { sent, hops: hops.try_into().ok()?, endpoint };
            self.stamps.push((stamp, inside.checked_sub(1)));
            return Some(());
        }
        let (records, rest) = records.as_chunks::<HOP>();
        if count != TOO_MANY && usize::from(count) != records.len() || !rest.is_empty() {
            return None;
        }
        self.counts.push(count);
        self.records.extend(records.iter().map(|hop| {
            let word = |i: usize| u64::from_be_bytes(std::array::from_fn(|at| hop[8 * i + at]));
            let port = u32::from_be_bytes(std::array::from_fn(|at| hop[32 + at]));
            Hop { at: word(0), sent: word(1), queued: word(2), rate: word(3), port }
        }));
        Some(())
    }

    pub fn clear(&mut self) {
        self.records.clear();
        self.counts.clear();
        self.stamps.clear();
        self.beside.clear();
        self.taken = (0, 0);
    }
}

impl Telemetry {
    pub fn new(plan: &Plan) -> Self {
        let most = plan.congestion_control.hops().map_or(0, usize::from);
        let stamped = plan.congestion_control.stamps();
        let has_beside = plan.labels_packets() || plan.transport.kind.traits().acks_have_bitmaps;
        Self { most, stamped, has_beside, ..Self::default() }
    }

    /// Whether devices record data packets.
    #[inline]
    pub fn used(&self) -> bool {
        self.most > 0 || self.stamped
    }

    /// Whether packets have data beside them.
    #[inline]
    pub fn travels(&self) -> bool {
        self.used() || self.has_beside
    }

    /// The slot of a data packet holds its ACK now, with this beside it if ACKs have anything. The label remains.
    #[inline]
    pub fn keep_beside(&mut self, id: u32, bits: u64, credit: Option<u32>) {
        if self.has_beside {
            let label = self.beside(id).label;
            self.set_beside(id, Beside { bits, credit, label });
        }
    }

    /// The slot holds a packet of a host with this bitmap, or 0, and nothing else.
    #[inline]
    pub fn keep_bits(&mut self, id: u32, bits: u64) {
        if self.has_beside {
            self.set_beside(id, Beside { bits, ..Beside::default() });
        }
    }

    /// The slot holds a data packet with this label.
    pub fn label(&mut self, id: u32, number: u16) {
        self.set_beside(id, Beside { label: Some(Label { number, congested: false }), ..Beside::default() });
    }

    /// The data packet is marked, or was trimmed.
    pub fn was_congested(&mut self, id: u32) {
        if let Some(Beside { label: Some(label), .. }) = self.beside.get_mut(id as usize) {
            label.congested = true;
        }
    }

    fn set_beside(&mut self, id: u32, beside: Beside) {
        let slots = id as usize + 1;
        if self.beside.len() < slots {
            self.beside.resize(slots, Beside::default());
        }
        self.beside[id as usize] = beside;
    }

    /// The content beside a packet; nothing if there is none.
    #[inline]
    pub fn beside(&self, id: u32) -> Beside {
        self.beside.get(id as usize).copied().unwrap_or_default()
    }

    #[inline]
    pub fn stamped(&self) -> bool {
        self.stamped
    }

    /// The slot holds a packet that leaves its sender.
    pub fn stamp(&mut self, id: u32, now: Time) {
        let slots = id as usize + 1;
        if self.stamps.len() < slots {
            self.stamps.resize(slots, Default::default());
        }
        self.stamps[id as usize] = (Stamp { sent: now, ..Stamp::default() }, None);
    }

    /// The packet leaves a switch.
    pub fn count_switch(&mut self, id: u32) {
        self.stamps[id as usize].0.hops += 1;
    }

    /// The packet waits for its slow receiver.
    pub fn waits_inside(&mut self, id: u32, now: Time) {
        self.stamps[id as usize].1 = Some(now);
    }

    /// The packet has reached its receiver, which writes the ACK.
    pub fn delivered(&mut self, id: u32, now: Time) {
        let (stamp, inside) = &mut self.stamps[id as usize];
        stamp.endpoint = inside.map_or(0, |since| now - since);
    }

    pub fn stamp_of(&self, id: u32) -> Stamp {
        self.stamps.get(id as usize).map_or_else(Stamp::default, |stamp| stamp.0)
    }

    /// The slot holds a packet that has met no device yet.
    pub fn clear(&mut self, id: u32) {
        let slots = id as usize + 1;
        if self.counts.len() < slots {
            self.counts.resize(slots, 0);
            self.records.resize(slots * self.most, Hop::default());
        }
        self.counts[id as usize] = 0;
    }

    /// The packets of two slots change places.
    #[cold]
    pub fn swap(&mut self, a: u32, b: u32) {
        let (a, b) = (a as usize, b as usize);
        if self.stamped {
            self.stamps.swap(a, b);
        }
        if self.most > 0 {
            self.counts.swap(a, b);
            (0..self.most).for_each(|i| self.records.swap(a * self.most + i, b * self.most + i));
        }
        if self.has_beside {
            let (one, other) = (self.beside(a as u32), self.beside(b as u32));
            self.set_beside(a as u32, other);
            self.set_beside(b as u32, one);
        }
    }

    /// The slot holds a packet that its host makes, and that no device records.
    #[cold]
    pub fn begin(&mut self, id: u32, now: Time) {
        self.keep_bits(id, 0);
        if self.stamped {
            self.stamp(id, now);
        } else if self.most > 0 {
            self.clear(id);
        }
    }

    pub fn push(&mut self, id: u32, record: Hop) {
        let count = &mut self.counts[id as usize];
        if usize::from(*count) >= self.most {
            *count = TOO_MANY;
            return;
        }
        self.records[id as usize * self.most + usize::from(*count)] = record;
        *count += 1;
    }

    /// The records of a packet, in the order of its path; `None` if it had no room for all.
    pub fn of(&self, id: u32) -> Option<&[Hop]> {
        let &count = self.counts.get(id as usize)?;
        let first = id as usize * self.most;
        (count != TOO_MANY).then(|| &self.records[first..first + usize::from(count)])
    }

    #[cold]
    pub fn pack(&self, id: u32, parcel: &mut Parcel) {
        if self.has_beside {
            parcel.beside.push(self.beside(id));
        }
        if self.stamped {
            return parcel.stamps.push(self.stamps[id as usize]);
        }
        if self.most == 0 {
            return;
        }
        parcel.records.extend_from_slice(self.of(id).unwrap_or(&[]));
        parcel.counts.push(self.counts[id as usize]);
    }

    /// Takes the records of a parcel's next packet, which has a slot now.
    #[cold]
    pub fn unpack(&mut self, id: u32, parcel: &mut Parcel) {
        if self.has_beside {
            self.set_beside(id, parcel.beside[parcel.taken.1]);
        }
        if self.most == 0 && !self.stamped {
            parcel.taken.1 += 1;
            return;
        }
        if self.stamped {
            self.stamp(id, 0);
            self.stamps[id as usize] = parcel.stamps[parcel.taken.1];
            parcel.taken.1 += 1;
            return;
        }
        self.clear(id);
        let (first, packet) = parcel.taken;
        let count = parcel.counts[packet];
        self.counts[id as usize] = count;
        let records = if count == TOO_MANY { 0 } else { usize::from(count) };
        let slot = id as usize * self.most;
        self.records[slot..slot + records].copy_from_slice(&parcel.records[first..first + records]);
        parcel.taken = (first + records, packet + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(port: u32) -> Hop {
        Hop { port, ..Hop::default() }
    }

    #[test]
    fn packets_change_slots_with_their_records() {
        let mut records = Telemetry { most: 2, ..Telemetry::default() };
        [3, 1].into_iter().for_each(|id| records.clear(id));
        records.push(3, hop(31));
        [11, 12, 13].into_iter().for_each(|port| records.push(1, hop(port)));
        records.swap(1, 3);
        assert_eq!((records.of(1), records.of(3)), (Some(&[hop(31)][..]), None));
        records.swap(3, 1);
        assert_eq!((records.of(1), records.of(3)), (None, Some(&[hop(31)][..])));
        let mut stamps = Telemetry { stamped: true, ..Telemetry::default() };
        [(0, 5), (4, 9)].into_iter().for_each(|(id, now)| stamps.stamp(id, now));
        stamps.swap(0, 4);
        assert_eq!([0, 4].map(|id| stamps.stamp_of(id).sent), [9, 5]);
        // Without either there is nothing to swap.
        Telemetry::default().swap(0, 4);
    }

    /// Records of packets of one part reach those of another, which have other slots.
    #[test]
    fn records_travel_in_the_order_of_their_packets() {
        let with = || Telemetry { most: 2, has_beside: true, ..Telemetry::default() };
        let (mut here, mut there, mut parcel) = (with(), with(), Parcel::default());
        for id in [3, 0, 5] {
            here.clear(id);
        }
        let label = Some(Label { number: 7, congested: true });
        here.set_beside(5, Beside { bits: 9, credit: Some(8), label });
        here.push(3, hop(31));
        here.push(3, hop(32));
        (0..3).for_each(|i| here.push(5, hop(50 + i)));
        for id in [5, 0, 3] {
            here.pack(id, &mut parcel);
        }
        there.clear(1);
        there.push(1, hop(99));
        for id in [1, 7, 2] {
            there.unpack(id, &mut parcel);
        }
        parcel.clear();
        let none = Beside::default();
        let first = Beside { bits: 9, credit: Some(8), label };
        assert_eq!([1, 7, 2, 99].map(|id| there.beside(id)), [first, none, none, none]);
        assert_eq!(there.of(1), None);
        assert_eq!(there.of(7), Some(&[][..]));
        assert_eq!(there.of(2), Some(&[hop(31), hop(32)][..]));
        assert_eq!((parcel.records.len(), parcel.counts.len(), parcel.beside.len()), (0, 0, 0));
        assert_eq!(parcel.taken, (0, 0));
    }

    /// The same for stamps. The wait inside a receiver ends at the delivery.
    #[test]
    fn stamps_travel_in_the_order_of_their_packets() {
        let with = || Telemetry { stamped: true, ..Telemetry::default() };
        let (mut here, mut there, mut parcel) = (with(), with(), Parcel::default());
        for (id, now) in [(3, 30), (0, 40), (5, 50)] {
            here.stamp(id, now);
        }
        here.count_switch(3);
        here.count_switch(3);
        here.waits_inside(0, 60);
        [5, 0, 3].into_iter().for_each(|id| here.pack(id, &mut parcel));
        [1, 7, 2].into_iter().for_each(|id| there.unpack(id, &mut parcel));
        [1, 7, 2].into_iter().for_each(|id| there.delivered(id, 100));
        let stamp = |sent, hops, endpoint| Stamp { sent, hops, endpoint };
        let stamps = [1, 7, 2].map(|id| there.stamp_of(id));
        assert_eq!(stamps, [stamp(50, 0, 0), stamp(40, 0, 40), stamp(30, 2, 0)]);
        parcel.clear();
        assert_eq!((parcel.stamps.len(), parcel.taken), (0, (0, 0)));
    }

    /// The same over bytes, of which none may be missing.
    #[test]
    fn records_survive_the_wire() {
        let records = vec![Hop { at: 1, sent: 2, queued: 3, rate: 4, port: 5 }, hop(6)];
        let of = Telemetry { most: 2, has_beside: true, ..Telemetry::default() };
        let beside = |bits, credit, label| Beside { bits, credit, label };
        let label = |number, congested| Some(Label { number, congested });
        let bits = vec![beside(3, Some(0), None), beside(1 << 63, Some(0xff_ffff), label(u16::MAX, true))];
        let mut parcel = Parcel {
            records: records.clone(),
            counts: vec![2, TOO_MANY],
            beside: bits.clone(),
            ..Parcel::default()
        };
        let (mut first, mut second) = (Vec::new(), Vec::new());
        parcel.emit(&mut first);
        parcel.emit(&mut second);
        let mut read = Parcel::default();
        assert_eq!(read.parse(&of, &first).and_then(|()| read.parse(&of, &second)), Some(()));
        assert_eq!((read.records, read.counts, read.beside), (records, vec![2, TOO_MANY], bits));
        for bytes in [&first[..0], &first[..7], &first[..8], &first[..12], &first[..80], &first[..45]] {
            assert_eq!(Parcel::default().parse(&of, bytes), None);
        }
        let of = Telemetry { stamped: true, ..Telemetry::default() };
        let stamps = vec![(Stamp { sent: 7, hops: 2, endpoint: 9 }, None), (Stamp::default(), Some(0))];
        let mut parcel = Parcel { stamps: stamps.clone(), ..Parcel::default() };
        let mut read = Parcel::default();
        for _ in 0..2 {
            let mut bytes = Vec::new();
            parcel.emit(&mut bytes);
            assert_eq!(Parcel::default().parse(&of, &bytes[..bytes.len() - 1]), None);
            assert_eq!(read.parse(&of, &bytes), Some(()));
        }
        assert_eq!(read.stamps, stamps);
        // Only bitmaps.
        let of = Telemetry { has_beside: true, ..Telemetry::default() };
        let (mut bytes, mut read) = (Vec::new(), Parcel::default());
        Parcel { beside: vec![beside(5, None, None)], ..Parcel::default() }.emit(&mut bytes);
        assert_eq!((read.parse(&of, &bytes), read.beside), (Some(()), vec![beside(5, None, None)]));
        bytes.push(0);
        assert_eq!(Parcel::default().parse(&of, &bytes), None);
    }
}
