//! The event queue: a calendar wheel of two levels with a heap behind it.
//!
//! Near events (about 4 us ahead) lie in buckets of 2,048 ps that are sorted when
//! reached; farther ones (about 8 ms) in coarse buckets of 4 us that are dealt
//! out when their span begins; the rest in a heap. An event is moved at most
//! twice, and the coming events of the current bucket can be seen, so that the
//! caller can prefetch what they will touch.

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

/// Width of a near bucket: 2^11 ps, half the time of the smallest frame at 200 Gbit/s.
const TICK_BITS: u32 = 11;
const SLOT_BITS: u32 = 11;
const SLOTS: usize = 1 << SLOT_BITS;
const WORDS: usize = SLOTS / 64;

/// One level of buckets with a bitmap of those that hold something.
struct Level {
    slots: Vec<Vec<Event>>,
    bits: [u64; WORDS],
}

impl Level {
    fn new() -> Self {
        Self { slots: (0..SLOTS).map(|_| Vec::new()).collect(), bits: [0; WORDS] }
    }

    #[inline]
    fn push(&mut self, slot: usize, event: Event) {
        self.slots[slot].push(event);
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
    /// The bucket being emptied, sorted; `current[cursor..]` is still to come.
    current: Vec<Event>,
    cursor: usize,
    /// Its number: time / 2^11.
    tick: u64,
    /// Buckets `tick + 1 .. tick + 2048`, at their number modulo 2048. The
    /// current epoch (2048 ticks from a multiple of 2048) is complete here; the
    /// next one is once its coarse bucket has been dealt out.
    near: Level,
    /// Epochs after the current one, up to 2047 ahead, modulo 2048.
    coarse: Level,
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
            tick: 0,
            near: Level::new(),
            coarse: Level::new(),
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

    /// The event `ahead` places after the next one, as far as the current bucket goes.
    #[inline]
    pub fn peek(&self, ahead: usize) -> Option<&Event> {
        self.current.get(self.cursor + ahead)
    }

    /// Adds an event.
    #[inline]
    pub fn push(&mut self, event: Event) {
        self.len += 1;
        let tick = event.time >> TICK_BITS;
        debug_assert!(tick >= self.tick, "an event in the past");
        let ahead = tick.wrapping_sub(self.tick);
        if ahead.wrapping_sub(1) < SLOTS as u64 - 1 {
            self.near.push(tick as usize % SLOTS, event);
        } else {
            self.push_rarely(event, tick, ahead);
        }
    }

    #[cold]
    fn push_rarely(&mut self, event: Event, tick: u64, ahead: u64) {
        if ahead == 0 {
            let at = self.cursor + self.current[self.cursor..].partition_point(|e| *e < event);
            self.current.insert(at, event);
        } else {
            let epoch = tick >> SLOT_BITS;
            if epoch - (self.tick >> SLOT_BITS) < SLOTS as u64 {
                self.coarse.push(epoch as usize % SLOTS, event);
            } else {
                self.beyond.push(Reverse(event));
            }
        }
    }

    /// Takes the first event of the total order.
    #[inline]
    pub fn pop(&mut self) -> Option<Event> {
        if self.cursor == self.current.len() && !self.advance() {
            return None;
        }
        let event = self.current[self.cursor];
        self.cursor += 1;
        self.len -= 1;
        Some(event)
    }

    /// Moves on to the next bucket that holds something.
    fn advance(&mut self) -> bool {
        if self.len == 0 {
            return false;
        }
        self.current.clear();
        self.cursor = 0;
        loop {
            let offset = self.tick as usize % SLOTS;
            if let Some(slot) = self.near.next(offset + 1) {
                self.take(slot);
                return true;
            }
            // Nothing left in this epoch: enter the next one that has something.
            let epoch = self.tick >> SLOT_BITS;
            // Events of the next epoch may already lie in the near level, below `offset`.
            let next = if self.near.next(0).is_some() { epoch + 1 } else { self.next_epoch(epoch) };
            self.enter(next);
            if let Some(slot) = self.near.next(0) {
                self.take(slot);
                return true;
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

    /// Makes `epoch` the current one: all of its events come to the near level.
    fn enter(&mut self, epoch: u64) {
        // One tick before the epoch begins: its own first bucket counts as coming.
        self.tick = epoch << SLOT_BITS;
        let slot = epoch as usize % SLOTS;
        let mut dealt = std::mem::take(&mut self.coarse.slots[slot]);
        self.coarse.clear(slot);
        for event in dealt.drain(..) {
            debug_assert_eq!(event.time >> (TICK_BITS + SLOT_BITS), epoch);
            self.near.push((event.time >> TICK_BITS) as usize % SLOTS, event);
        }
        self.coarse.slots[slot] = dealt;
        while let Some(Reverse(event)) = self.beyond.peek().copied() {
            let its = event.time >> (TICK_BITS + SLOT_BITS);
            if its - epoch >= SLOTS as u64 {
                break;
            }
            self.beyond.pop();
            if its == epoch {
                self.near.push((event.time >> TICK_BITS) as usize % SLOTS, event);
            } else {
                self.coarse.push(its as usize % SLOTS, event);
            }
        }
    }

    /// Makes the near bucket at `slot` of the current epoch the current one.
    #[inline]
    fn take(&mut self, slot: usize) {
        self.tick = (self.tick & !(SLOTS as u64 - 1)) + slot as u64;
        self.near.clear(slot);
        std::mem::swap(&mut self.current, &mut self.near.slots[slot]);
        self.current.sort_unstable_by_key(Event::order);
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
