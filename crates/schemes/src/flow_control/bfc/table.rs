//! The virtual-flow table of one side of a port: which queue each virtual flow is assigned to. Only flows that have
//! been met lately take room.

use xoff_kernel::time::Time;

const VACANT: u32 = u32::MAX;

/// In [`Entry::state`]: packets of the flow are in its queue.
const WAITS: u64 = 1 << 63;

const VACANT_ENTRY: Entry = Entry { flow: VACANT, queue: 0, state: 0 };

/// A virtual flow, in a quarter of a cache line.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    flow: u32,
    /// The number of its queue; 0 before the first assignment.
    pub queue: u16,
    /// The number of its packets in the queue (or of its queue pairs that have something to send) and [`WAITS`], or when
    /// the last one left.
    state: u64,
}

impl Entry {
    /// When its last packet left, if none is in its queue.
    pub fn idle_since(&self) -> Option<Time> {
        (self.state < WAITS).then_some(self.state)
    }

    /// A packet joins its queue. Returns whether it is the only one.
    pub fn joins(&mut self) -> bool {
        let alone = self.state < WAITS;
        self.state = if alone { WAITS + 1 } else { self.state + 1 };
        alone
    }

    /// A packet leaves its queue. Returns whether it was the last one.
    pub fn leaves(&mut self, now: Time) -> bool {
        debug_assert!(self.state > WAITS, "a packet leaves that never joined");
        self.state -= 1;
        let last = self.state == WAITS;
        if last {
            self.state = now;
        }
        last
    }
}

/// Entries by linear probing. Nothing depends on the order of the slots. When room is needed, entries of flows go that
/// keep their queue no longer: the next packet is assigned as for a new flow. So a table stays small enough for the caches.
#[derive(Clone, Debug, Default)]
pub struct Table {
    slots: Vec<Entry>,
    used: usize,
}

impl Table {
    fn slot(&self, flow: u32) -> usize {
        let last = self.slots.len() - 1;
        // A virtual flow is a hash already.
        let mut at = flow as usize & last;
        while self.slots[at].flow != flow && self.slots[at].flow != VACANT {
            at = (at + 1) & last;
        }
        at
    }

    /// The entry of a flow that has packets in its queue, or was met at this very time.
    pub fn known(&mut self, flow: u32) -> &mut Entry {
        let at = self.slot(flow);
        debug_assert_eq!(self.slots[at].flow, flow);
        &mut self.slots[at]
    }

    /// The entry of a flow, maybe a new one. At `now` no entry of a flow without packets lasts for longer than `keep`.
    pub fn met(&mut self, flow: u32, now: Time, keep: Time) -> &mut Entry {
        if 4 * (self.used + 1) > 3 * self.slots.len() {
            self.make_room(now, keep);
        }
        let at = self.slot(flow);
        let entry = &mut self.slots[at];
        if entry.flow == VACANT {
            *entry = Entry { flow, ..VACANT_ENTRY };
            self.used += 1;
        }
        entry
    }

    #[cold]
    fn make_room(&mut self, now: Time, keep: Time) {
        let lasts = |e: &Entry| {
            e.flow != VACANT && e.idle_since().is_none_or(|left| now <= left.saturating_add(keep))
        };
        let mut old = std::mem::take(&mut self.slots);
        old.retain(lasts);
        self.used = old.len();
        // Less than half full, so that this seldom happens.
        self.slots = vec![VACANT_ENTRY; (2 * self.used + 2).next_power_of_two().max(8)];
        for entry in old {
            let at = self.slot(entry.flow);
            self.slots[at] = entry;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use xoff_kernel::random::mix;

    /// Random flows join and leave as in a map from which nothing goes.
    #[test]
    fn a_table_returns_the_values_of_a_map() {
        const KEEP: Time = 40;
        let (mut table, mut map) = (Table::default(), BTreeMap::new());
        for now in 0..50_000u64 {
            let flow = (mix(now) % 700) as u32;
            let known = map.entry(flow).or_insert((0u16, 0u32, 0));
            let lasts = |&(_, packets, left): &(u16, u32, Time)| packets > 0 || now <= left + KEEP;
            let entry = table.met(flow, now, KEEP);
            if !lasts(known) {
                (known.0, entry.queue) = (0, 0);
            }
            assert_eq!(entry.queue, known.0);
            assert_eq!(entry.idle_since().is_none(), known.1 > 0);
            known.0 = now as u16;
            entry.queue = now as u16;
            if known.1 > 0 && !mix(now + 1).is_multiple_of(3) {
                known.1 -= 1;
                known.2 = now;
                assert_eq!(table.known(flow).leaves(now), known.1 == 0);
            } else {
                known.1 += 1;
                assert_eq!(table.known(flow).joins(), known.1 == 1);
            }
            assert!(table.used >= map.values().filter(|known| known.1 > 0).count());
        }
        assert!(table.slots.len() < 2_048, "{} slots", table.slots.len());
    }

    #[test]
    fn flows_without_packets_give_their_room_to_others() {
        let mut table = Table::default();
        table.met(0, 0, 10).joins();
        for flow in 1..10_000 {
            let now = u64::from(flow) * 10;
            let entry = table.met(flow, now, 10);
            entry.joins();
            entry.leaves(now);
        }
        assert!(!table.known(0).joins());
        assert_eq!(table.slots.len(), 8);
    }
}
