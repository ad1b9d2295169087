//! The event queue: a calendar wheel of two levels with a heap behind it.
//!
//! Near events (about 4 us ahead) lie in buckets of 512 ps that are sorted when
//! reached; farther ones (about 34 ms) in coarse buckets of 4 us that are dealt
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

/// Width of a near bucket: 2^9 ps, less than the smallest frame takes at 800 Gbit/s.
const TICK_BITS: u32 = 11;
/// Buckets of a level: the near one spans 4.2 us, the coarse one 34 ms.
const SLOT_BITS: u32 = 11;
const SLOTS: usize = 1 << SLOT_BITS;
const WORDS: usize = SLOTS / 64;
/// So many coming events are kept in order, to be seen by [`Wheel::peek`] …
const LOOK_AHEAD: usize = 16;

/// … but no more than so many buckets (16 ns) beyond the next event.
const REACH: u64 = 8;

/// Events of a bucket that lie together: two cache lines with their links. Chunks
/// are reused last out, first in, so that pushes write to lines that are warm.
const CHUNK: usize = 7;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Chunk {
    events: [Event; CHUNK],
    len: u32,
    /// The chunk filled before this one, or [`NO_CHUNK`].
    next: u32,
}

const NO_CHUNK: u32 = u32::MAX;

/// Memory of all buckets.
struct Chunks {
    chunks: Vec<Chunk>,
    free: u32,
}

impl Chunks {
    /// Appends to the bucket whose last chunk is `head`.
    #[inline]
    fn push(&mut self, head: &mut u32, event: Event) {
        if *head != NO_CHUNK {
            let chunk = &mut self.chunks[*head as usize];
            if (chunk.len as usize) < CHUNK {
                chunk.events[chunk.len as usize] = event;
                chunk.len += 1;
                return;
            }
        }
        let next = *head;
        if self.free == NO_CHUNK {
            self.free = self.chunks.len() as u32;
            self.chunks.push(Chunk { events: [event; CHUNK], len: 0, next: NO_CHUNK });
        }
        *head = self.free;
        let chunk = &mut self.chunks[self.free as usize];
        self.free = chunk.next;
        chunk.events[0] = event;
        chunk.len = 1;
        chunk.next = next;
    }

    /// Empties the bucket whose last chunk is `head`, in no order of meaning.
    #[inline]
    fn drain(&mut self, head: &mut u32, mut take: impl FnMut(&mut Self, Event)) {
        let mut at = std::mem::replace(head, NO_CHUNK);
        while at != NO_CHUNK {
            let chunk = self.chunks[at as usize];
            self.chunks[at as usize].next = self.free;
            self.free = at;
            for event in &chunk.events[..chunk.len as usize] {
                take(self, *event);
            }
            at = chunk.next;
        }
    }
}

/// One level of buckets with a bitmap of those that hold something.
struct Level {
    /// The last chunk of each bucket.
    slots: Vec<u32>,
    bits: [u64; WORDS],
}

impl Level {
    fn new() -> Self {
        Self { slots: vec![NO_CHUNK; SLOTS], bits: [0; WORDS] }
    }

    #[inline]
    fn push(&mut self, chunks: &mut Chunks, slot: usize, event: Event) {
        chunks.push(&mut self.slots[slot], event);
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
    /// The last bucket taken into `current`: its number, time / 2^9.
    horizon: u64,
    /// Buckets `horizon + 1 .. horizon + SLOTS`, at their number modulo SLOTS.
    /// The horizon's epoch (SLOTS buckets from a multiple of SLOTS) is complete
    /// here; the next one is once its coarse bucket has been dealt out.
    near: Level,
    /// Epochs after the horizon's, at their number modulo SLOTS.
    coarse: Level,
    chunks: Chunks,
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
            chunks: Chunks { chunks: Vec::new(), free: NO_CHUNK },
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

    /// The event `ahead` places after the next one (below 16), as things stand.
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
            self.near.push(&mut self.chunks, tick as usize % SLOTS, event);
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
                self.coarse.push(&mut self.chunks, epoch as usize % SLOTS, event);
            } else {
                self.beyond.push(Reverse(event));
            }
        }
    }

    /// Takes the first event of the total order.
    #[inline]
    pub fn pop(&mut self) -> Option<Event> {
        let ready = self.current.len() - self.cursor;
        if ready < LOOK_AHEAD && ready < self.len {
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
        while self.current.len() < LOOK_AHEAD && self.current.len() < self.len {
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
        let near = &mut self.near;
        self.chunks.drain(&mut self.coarse.slots[slot], |chunks, event| {
            near.push(chunks, (event.time >> TICK_BITS) as usize % SLOTS, event);
        });
        while let Some(Reverse(event)) = self.beyond.peek().copied() {
            let its = event.time >> (TICK_BITS + SLOT_BITS);
            if its - epoch >= SLOTS as u64 {
                break;
            }
            self.beyond.pop();
            if its == epoch {
                self.near.push(&mut self.chunks, (event.time >> TICK_BITS) as usize % SLOTS, event);
            } else {
                self.coarse.push(&mut self.chunks, its as usize % SLOTS, event);
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
        self.chunks.drain(&mut self.near.slots[slot], |_, event| current.push(event));
        sort(&mut self.current[sorted..]);
    }
}

/// Sorts a bucket, which is mostly small.
#[inline]
fn sort(events: &mut [Event]) {
    if events.len() > 24 {
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
