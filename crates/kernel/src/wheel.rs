//! The event queue: a calendar wheel of two levels with a heap behind it.
//!
//! Near events (about 4 us ahead) lie in buckets of 2 ns that are sorted when
//! reached; farther ones (about 8 ms) in coarse buckets of 4 us that are dealt
//! out when their span begins; the rest in a heap. An event is moved at most
//! twice, and the next events can be seen in order, so that the caller can
//! prefetch what they will touch.

use crate::time::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that happens to one element at one time.
///
/// Events are totally ordered by `(time, key, data)`. `key` holds the kind in
/// its upper 4 bits and the element in the lower 28, so the order of kinds is
/// meaning. The order never depends on insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub time: Time,
    /// Kind and element, see [`Event::new`].
    pub key: u32,
    /// Whatever the kind needs.
    pub data: u32,
}

const ELEMENT_BITS: u32 = 28;
/// Elements of an event are below this number.
pub const ELEMENTS: u32 = 1 << ELEMENT_BITS;

impl Event {
    /// An event of `kind` (below 16) for `element` (below [`ELEMENTS`]).
    #[inline]
    pub fn new(time: Time, kind: u8, element: u32, data: u32) -> Self {
        debug_assert!(kind < 16 && element < ELEMENTS);
        Self { time, key: u32::from(kind) << ELEMENT_BITS | element, data }
    }

    /// The kind.
    #[inline]
    pub fn kind(&self) -> u8 {
        (self.key >> ELEMENT_BITS) as u8
    }

    /// The element.
    #[inline]
    pub fn element(&self) -> u32 {
        self.key & (ELEMENTS - 1)
    }

    #[inline]
    fn order(&self) -> u128 {
        u128::from(self.time) << 64 | u128::from(self.key) << 32 | u128::from(self.data)
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

/// Width of a near bucket: 2^11 ps.
const TICK_BITS: u32 = 11;
/// Buckets of a level: the near one spans 4.2 us, the coarse one 8.6 ms.
const SLOT_BITS: u32 = 11;
const SLOTS: usize = 1 << SLOT_BITS;
const WORDS: usize = SLOTS / 64;
/// The coming events are kept in order, to be seen by [`Wheel::peek`]: when
/// fewer than `LOW` are left they are filled up to `HIGH` …
const LOW: usize = 12;
const HIGH: usize = 24;
/// … but from no more than so many buckets (16 ns) beyond the next event.
const REACH: u64 = 8;

/// No event.
const END: u32 = u32::MAX;

/// The events of all buckets, as lists. Places are reused last out, first in, so
/// that pushes write to lines that are warm.
struct Lists {
    nodes: Vec<(Event, u32)>,
    free: u32,
}

impl Lists {
    /// Puts an event before the list that begins at `head`.
    #[inline]
    fn push(&mut self, head: &mut u32, event: Event) {
        let at = self.free;
        if at == END {
            self.nodes.push((event, *head));
            *head = (self.nodes.len() - 1) as u32;
            return;
        }
        let node = &mut self.nodes[at as usize];
        self.free = std::mem::replace(&mut node.1, *head);
        node.0 = event;
        *head = at;
    }

    /// Empties the list that begins at `head` (not empty).
    #[inline]
    fn drain(&mut self, head: &mut u32, mut take: impl FnMut(Event)) {
        let first = std::mem::replace(head, END);
        let mut at = first;
        loop {
            let (event, next) = self.nodes[at as usize];
            take(event);
            if next == END {
                break;
            }
            at = next;
        }
        self.nodes[at as usize].1 = self.free;
        self.free = first;
    }
}

/// One level of buckets with a bitmap of those that hold something.
struct Level {
    /// The list of each bucket.
    slots: Vec<u32>,
    bits: [u64; WORDS],
}

impl Level {
    fn new() -> Self {
        Self { slots: vec![END; SLOTS], bits: [0; WORDS] }
    }

    #[inline]
    fn push(&mut self, lists: &mut Lists, slot: usize, event: Event) {
        lists.push(&mut self.slots[slot], event);
        self.bits[slot / 64] |= 1 << (slot % 64);
    }

    /// The first occupied slot at or after `from`, without wrapping.
    #[inline]
    fn next(&self, from: usize) -> Option<usize> {
        if from >= SLOTS {
            return None;
        }
        let mut word = from / 64;
        let mut bits = self.bits[word] & (u64::MAX << (from % 64));
        loop {
            if bits != 0 {
                return Some(word * 64 + bits.trailing_zeros() as usize);
            }
            word += 1;
            if word == WORDS {
                return None;
            }
            bits = self.bits[word];
        }
    }

    #[inline]
    fn clear(&mut self, slot: usize) {
        self.bits[slot / 64] &= !(1 << (slot % 64));
    }
}

/// The event queue. Events may be pushed for any time from that of the last
/// popped event on.
pub struct Wheel {
    /// All events up to `horizon`, sorted; `current[cursor..]` is still to come.
    current: Vec<Event>,
    cursor: usize,
    /// The last bucket taken into `current`: its number, time / 2^11.
    horizon: u64,
    /// Buckets `horizon + 1 .. horizon + SLOTS`, at their number modulo SLOTS.
    /// The horizon's epoch (SLOTS buckets from a multiple of SLOTS) is complete
    /// here; the next one is once its coarse bucket has been dealt out.
    near: Level,
    /// Epochs after the horizon's, at their number modulo SLOTS.
    coarse: Level,
    lists: Lists,
    /// Events of a coarse bucket while they are dealt out.
    dealt: Vec<Event>,
    beyond: BinaryHeap<Reverse<Event>>,
    len: usize,
}

impl Default for Wheel {
    fn default() -> Self {
        Self::new()
    }
}

impl Wheel {
    /// An empty queue at time 0.
    pub fn new() -> Self {
        Self {
            current: Vec::new(),
            cursor: 0,
            horizon: 0,
            near: Level::new(),
            coarse: Level::new(),
            lists: Lists { nodes: Vec::new(), free: END },
            dealt: Vec::new(),
            beyond: BinaryHeap::new(),
            len: 0,
        }
    }

    /// Number of pending events.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The event `ahead` places after the next one, if it is in order already.
    #[inline]
    pub fn peek(&self, ahead: usize) -> Option<&Event> {
        self.current.get(self.cursor + ahead)
    }

    /// Adds an event.
    #[inline]
    pub fn push(&mut self, event: Event) {
        self.len += 1;
        let tick = event.time >> TICK_BITS;
        let ahead = tick.wrapping_sub(self.horizon);
        if ahead.wrapping_sub(1) < SLOTS as u64 - 1 {
            self.near.push(&mut self.lists, tick as usize % SLOTS, event);
        } else {
            self.push_rarely(event, tick);
        }
    }

    #[cold]
    fn push_rarely(&mut self, event: Event, tick: u64) {
        if tick <= self.horizon {
            let at = self.cursor + self.current[self.cursor..].partition_point(|e| *e < event);
            self.current.insert(at, event);
        } else {
            let epoch = tick >> SLOT_BITS;
            if epoch - (self.horizon >> SLOT_BITS) < SLOTS as u64 {
                self.coarse.push(&mut self.lists, epoch as usize % SLOTS, event);
            } else {
                self.beyond.push(Reverse(event));
            }
        }
    }

    /// Takes the first event of the total order.
    #[inline]
    pub fn pop(&mut self) -> Option<Event> {
        let ready = self.current.len() - self.cursor;
        if ready < LOW && ready < self.len {
            self.refill();
        }
        let event = *self.current.get(self.cursor)?;
        self.cursor += 1;
        self.len -= 1;
        Some(event)
    }

    /// Brings in the next buckets until enough coming events are in order. But
    /// the horizon does not run far ahead of what is left to come: pushes before
    /// it must be sorted in one by one.
    fn refill(&mut self) {
        self.current.drain(..self.cursor);
        self.cursor = 0;
        while self.current.len() < HIGH && self.current.len() < self.len {
            let offset = self.horizon as usize % SLOTS;
            let next = self.near.next(offset + 1);
            if let Some(first) = self.current.first() {
                let reach = (first.time >> TICK_BITS) + REACH;
                if next.is_none_or(|slot| self.horizon + (slot - offset) as u64 > reach) {
                    return;
                }
            }
            if let Some(slot) = next {
                self.take(slot);
                continue;
            }
            // Nothing left in this epoch: enter the next one that has something.
            // Events of the very next one may already lie in the near level.
            let epoch = self.horizon >> SLOT_BITS;
            let next = if self.near.next(0).is_some() { epoch + 1 } else { self.next_epoch(epoch) };
            self.enter(next);
            if let Some(slot) = self.near.next(0) {
                self.take(slot);
            }
        }
    }

    /// The next epoch after `epoch` that the coarse level or the heap knows of.
    fn next_epoch(&self, epoch: u64) -> u64 {
        let here = epoch as usize % SLOTS;
        let coarse = self
            .coarse
            .next(here + 1)
            .map(|slot| epoch + (slot - here) as u64)
            .or_else(|| self.coarse.next(0).map(|slot| epoch + (slot + SLOTS - here) as u64));
        let beyond = self.beyond.peek().map(|e| e.0.time >> (TICK_BITS + SLOT_BITS));
        match (coarse, beyond) {
            (Some(a), Some(b)) => a.min(b),
            (Some(a), None) | (None, Some(a)) => a,
            (None, None) => unreachable!("{} events are pending, yet no level holds one", self.len),
        }
    }

    /// Makes `epoch` the horizon's: all of its events come to the near level.
    fn enter(&mut self, epoch: u64) {
        self.horizon = epoch << SLOT_BITS;
        let slot = epoch as usize % SLOTS;
        self.coarse.clear(slot);
        if self.coarse.slots[slot] != END {
            self.dealt.clear();
            let dealt = &mut self.dealt;
            self.lists.drain(&mut self.coarse.slots[slot], |event| dealt.push(event));
            for &event in &self.dealt {
                self.near.push(&mut self.lists, (event.time >> TICK_BITS) as usize % SLOTS, event);
            }
        }
        while let Some(Reverse(event)) = self.beyond.peek().copied() {
            let its = event.time >> (TICK_BITS + SLOT_BITS);
            if its - epoch >= SLOTS as u64 {
                break;
            }
            self.beyond.pop();
            if its == epoch {
                self.near.push(&mut self.lists, (event.time >> TICK_BITS) as usize % SLOTS, event);
            } else {
                self.coarse.push(&mut self.lists, its as usize % SLOTS, event);
            }
        }
    }

    /// Takes the near bucket at `slot` of the horizon's epoch into `current`.
    #[inline]
    fn take(&mut self, slot: usize) {
        self.horizon = (self.horizon & !(SLOTS as u64 - 1)) + slot as u64;
        self.near.clear(slot);
        let sorted = self.current.len();
        let current = &mut self.current;
        self.lists.drain(&mut self.near.slots[slot], |event| current.push(event));
        sort(&mut self.current[sorted..]);
    }
}

/// Sorts a bucket, which is mostly small.
#[inline]
fn sort(events: &mut [Event]) {
    if events.len() > 20 {
        return events.sort_unstable_by_key(Event::order);
    }
    for i in 1..events.len() {
        let event = events[i];
        let order = event.order();
        let mut at = i;
        while at > 0 && events[at - 1].order() > order {
            events[at] = events[at - 1];
            at -= 1;
        }
        events[at] = event;
    }
}

/// Asks the processor to fetch the cache line of `items[index]`; does nothing
/// where there is no such instruction, or no such item.
#[inline]
pub fn prefetch<T>(items: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if index < items.len() {
        // SAFETY: the address is inside `items`; a prefetch has no other effect.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(items.as_ptr().add(index).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, index);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    /// Random pushes and pops at every distance agree with a heap.
    #[test]
    fn the_wheel_agrees_with_a_heap() {
        for seed in 0..40 {
            let mut random = Stream::new(seed, "wheel", 0);
            let mut wheel = Wheel::new();
            let mut heap = BinaryHeap::new();
            let mut now = 0;
            let mut serial = 0;
            for _ in 0..20_000 {
                if random.below(100) < 52 || heap.is_empty() {
                    let scale =
                        [1, 4_000, 100_000, 5_000_000, 1_000_000_000, 40_000_000_000, 10_000_000_000_000]
                            [random.below(if seed % 2 == 0 { 4 } else { 7 }) as usize];
                    serial += 1;
                    let event = Event::new(
                        now + random.below(scale),
                        random.below(3) as u8,
                        random.below(4) as u32,
                        serial,
                    );
                    wheel.push(event);
                    heap.push(Reverse(event));
                } else {
                    let expected = heap.pop().map(|e| e.0);
                    let got = wheel.pop();
                    assert_eq!(got, expected, "seed {seed}");
                    now = got.map_or(now, |e| e.time);
                }
                assert_eq!(wheel.len(), heap.len());
            }
            while let Some(Reverse(expected)) = heap.pop() {
                assert_eq!(wheel.pop(), Some(expected));
            }
            assert_eq!(wheel.pop(), None);
        }
    }

    #[test]
    fn kinds_come_before_elements() {
        let mut wheel = Wheel::new();
        wheel.push(Event::new(5, 1, 0, 0));
        wheel.push(Event::new(5, 0, 9, 0));
        wheel.push(Event::new(4, 2, 9, 0));
        let order: Vec<_> =
            std::iter::from_fn(|| wheel.pop()).map(|e| (e.time, e.kind(), e.element())).collect();
        assert_eq!(order, [(4, 2, 9), (5, 0, 9), (5, 1, 0)]);
    }
}
