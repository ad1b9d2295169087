//! The virtual-flow table of one side of a port: which queue each virtual flow
//! is assigned to. Only flows that have been met take room.

use xoff_kernel::time::Time;

const VACANT: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub struct Entry {
    flow: u32,
    /// Its packets in the queue (or its queue pairs that have something to send).
    pub packets: u32,
    pub left: Time,
    /// The number of its queue; 0 before the first assignment.
    pub queue: u16,
}

/// Entries by linear probing; nothing is ever taken out, and nothing depends on the order of the slots.
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

    pub fn entry(&mut self, flow: u32) -> &mut Entry {
        if 4 * (self.used + 1) > 3 * self.slots.len() {
            self.grow();
        }
        let at = self.slot(flow);
        let entry = &mut self.slots[at];
        if entry.flow == VACANT {
            entry.flow = flow;
            self.used += 1;
        }
        entry
    }

    #[cold]
    fn grow(&mut self) {
        let vacant = Entry { flow: VACANT, packets: 0, left: 0, queue: 0 };
        let size = (2 * self.slots.len()).max(8);
        for old in std::mem::replace(&mut self.slots, vec![vacant; size]) {
            if old.flow != VACANT {
                let at = self.slot(old.flow);
                self.slots[at] = old;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use xoff_kernel::random::mix;

    #[test]
    fn a_table_returns_the_values_of_a_map() {
        let (mut table, mut map) = (Table::default(), BTreeMap::new());
        for i in 0..5_000u64 {
            let flow = (mix(i) % 700) as u32;
            table.entry(flow).packets += 1;
            *map.entry(flow).or_insert(0u32) += 1;
        }
        assert_eq!(table.used, map.len());
        assert!(map.iter().all(|(&flow, &packets)| table.entry(flow).packets == packets));
    }
}
