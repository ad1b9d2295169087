//! The event queue: a calendar wheel of two levels with a heap for later events.
//!
//! Near events (some microseconds ahead) are in fine buckets, which are sorted when time reaches them. Later
//! ones (some milliseconds) are in coarse buckets, which are distributed when their span begins. All others
//! are in a heap. An event moves at most twice, and the next ones are visible in order, for prefetching.

use crate::table::Table;
use crate::time::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that happens to one element at one time. Events are totally ordered by time, kind, element and data, never
/// by insertion, so the order of kinds has a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    pub time: Time,
    /// From the highest bit on: 4 of the kind, 28 of the element, 32 of the data. Two words stay in registers.
    what: u64,
}

const DATA_BITS: u32 = 32;
const ELEMENT_BITS: u32 = 28;
/// Elements of an event are below this number.
pub const ELEMENTS: u32 = 1 << ELEMENT_BITS;

impl Event {
    /// An event of `kind` (below 16) for `element` (below [`ELEMENTS`]).
    #[inline]
    pub fn new(time: Time, kind: u8, element: u32, data: u32) -> Self {
        debug_assert!(kind < 16 && element < ELEMENTS);
        let key = u64::from(u32::from(kind) << ELEMENT_BITS | element);
        Self { time, what: key << DATA_BITS | u64::from(data) }
    }

    #[inline]
    pub fn kind(&self) -> u8 {
        (self.what >> DATA_BITS >> ELEMENT_BITS) as u8
    }

    #[inline]
    pub fn element(&self) -> u32 {
        (self.what >> DATA_BITS) as u32 & (ELEMENTS - 1)
    }

    #[inline]
    pub fn data(&self) -> u32 {
        self.what as u32
    }

    /// Its place in the total order as one number, whose comparison has no branch.
    #[inline]
    fn order(&self) -> u128 {
        u128::from(self.time) << 64 | u128::from(self.what)
    }
}

/// Buckets of a level, as a power of two. With buckets of 2 ns the near one spans 8.4 us, the other 34 ms.
const SLOT_BITS: u32 = 12;
const SLOTS: usize = 1 << SLOT_BITS;
const WORDS: usize = SLOTS / 64;
/// The coming events are kept in order for [`Wheel::coming`]: when fewer than `LOW` are left, up to `HIGH` …
const LOW: usize = 12;
const HIGH: usize = 24;
/// … are brought in, but from no more than so many buckets beyond the next event.
const REACH: u64 = 16;
/// So many events that have been taken are thrown out at once.
const SPENT: usize = 64;

/// No chunk. The chunk with this number is always full and in no ring.
const END: u32 = 0;
/// Events of a chunk: with its links it fills two cache lines.
const CHUNK: usize = 7;

/// Events of one bucket that lie together.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Chunk {
    len: u32,
    /// The chunk begun after this one; of the last one, the first. If free, the next free one or [`END`].
    next: u32,
    events: [Event; CHUNK],
}

/// The events of all buckets, each a ring of chunks, known by its last one, and only this may have room. So
/// events leave in the order of their pushes, which is nearly that of their times. The last free chunk is
/// reused first, so pushes write to cache lines that are warm.
struct Lists {
    chunks: Table<Vec<Chunk>>,
    free: u32,
}

impl Lists {
    fn new() -> Self {
        let full = Chunk { len: CHUNK as u32, next: END, events: [Event::new(0, 0, 0, 0); CHUNK] };
        // SAFETY: all indices are of chunks that were made, and none is ever removed.
        Self { chunks: unsafe { Table::new(vec![full]) }, free: END }
    }

    /// Adds an event to the ring whose last chunk is `last` ([`END`] if it has none), if this chunk has room.
    #[inline]
    fn fits(&mut self, last: u32, event: Event) -> bool {
        let chunk = &mut self.chunks[last as usize];
        let Some(place) = chunk.events.get_mut(chunk.len as usize) else { return false };
        *place = event;
        chunk.len += 1;
        true
    }

    /// Adds a chunk with an event to the ring whose last chunk is `last`.
    #[inline]
    fn extend(&mut self, last: &mut u32, event: Event) {
        if self.free == END {
            self.grow(event);
        }
        let at = self.free;
        let before = std::mem::replace(last, at);
        let first = match before {
            END => at,
            before => std::mem::replace(&mut self.chunks[before as usize].next, at),
        };
        let chunk = &mut self.chunks[at as usize];
        self.free = std::mem::replace(&mut chunk.next, first);
        chunk.len = 1;
        chunk.events[0] = event;
    }

    /// Makes a free chunk, filled with any event.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, event: Event) {
        self.free = self.chunks.len() as u32;
        self.chunks.push(Chunk { len: 0, next: END, events: [event; CHUNK] });
    }

    /// Moves the events of a ring (not empty) to the end of `out`.
    #[inline]
    fn drain(&mut self, last: &mut u32, out: &mut Vec<Event>) {
        let last = std::mem::replace(last, END) as usize;
        let first = self.chunks[last].next;
        let mut at = first as usize;
        loop {
            let chunk = &self.chunks[at];
            // All of it, for a copy of known length is no call.
            let end = out.len() + chunk.len as usize;
            out.extend_from_slice(&chunk.events);
            out.truncate(end);
            if at == last {
                break;
            }
            at = chunk.next as usize;
            self.fetch(self.chunks[at].next);
        }
        self.chunks[last].next = self.free;
        self.free = first;
    }

    fn events(&self, last: u32) -> impl Iterator<Item = &Event> {
        let mut at = (last != END).then(|| self.chunks[last as usize].next);
        std::iter::from_fn(move || {
            let chunk = &self.chunks[at? as usize];
            at = (at != Some(last)).then_some(chunk.next);
            Some(&chunk.events[..chunk.len as usize])
        })
        .flatten()
    }

    /// Asks for the cache lines of a chunk.
    #[inline]
    fn fetch(&self, chunk: u32) {
        let chunk = &self.chunks[chunk as usize];
        prefetch(&chunk.events, 0);
        prefetch(&chunk.events, CHUNK - 1);
    }
}

/// One level of buckets with a bitmap of those that hold something.
struct Level {
    slots: Box<[u32; SLOTS]>,
    bits: [u64; WORDS],
}

impl Level {
    fn new() -> Self {
        Self { slots: Box::new([END; SLOTS]), bits: [0; WORDS] }
    }

    #[inline]
    fn push(&mut self, lists: &mut Lists, slot: usize, event: Event) {
        let last = &mut self.slots[slot];
        if !lists.fits(*last, event) {
            lists.extend(last, event);
            self.bits[slot / 64] |= 1 << (slot % 64);
        }
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

/// The event queue. Events may be pushed for any time from that of the last popped event on.
pub struct Wheel {
    tick_bits: u32,
    /// All events up to `horizon`, sorted; `current[cursor..]` is still to come.
    current: Vec<Event>,
    cursor: usize,
    /// From this cursor on fewer than [`LOW`] coming events are in order.
    few_from: usize,
    /// The last bucket taken into `current`: its number, time / 2^tick_bits.
    horizon: u64,
    /// Buckets `horizon + 1 .. horizon + SLOTS`, at their number modulo SLOTS. The horizon's epoch (SLOTS
    /// buckets from a multiple of SLOTS) is complete here; the next one is once its bucket is dealt out.
    near: Level,
    /// Epochs after the horizon's, at their number modulo SLOTS.
    coarse: Level,
    lists: Lists,
    /// Events of a coarse bucket while they are dealt out.
    dealt: Vec<Event>,
    beyond: BinaryHeap<Reverse<Event>>,
    /// Events that are not in `current`.
    later: usize,
}

impl Wheel {
    /// Bytes that its events take, those of empty buckets included.
    pub fn footprint(&self) -> u64 {
        let events = self.current.capacity() + self.dealt.capacity() + self.beyond.capacity();
        (events * size_of::<Event>() + self.lists.chunks.capacity() * size_of::<Chunk>()) as u64
    }

    /// An empty queue at time 0, with near buckets of 2^`tick_bits` ps (at most 2^20). The width changes only
    /// the speed: best are some ten events in a bucket.
    pub fn new(tick_bits: u32) -> Self {
        assert!(tick_bits <= 20, "a bucket of 2^{tick_bits} ps");
        Self {
            tick_bits,
            current: Vec::new(),
            cursor: 0,
            few_from: 0,
            horizon: 0,
            near: Level::new(),
            coarse: Level::new(),
            lists: Lists::new(),
            dealt: Vec::new(),
            beyond: BinaryHeap::new(),
            later: 0,
        }
    }

    /// The next `N` events, if so many are in order already.
    #[inline]
    pub fn coming<const N: usize>(&self) -> Option<&[Event; N]> {
        self.current[self.cursor..].first_chunk()
    }

    /// All pending events, in no order: not for the hot path.
    pub fn pending(&self) -> impl Iterator<Item = &Event> {
        let levels = [&self.near, &self.coarse].into_iter();
        let listed = levels.flat_map(|level| level.slots.iter().flat_map(|&last| self.lists.events(last)));
        self.current[self.cursor..].iter().chain(listed).chain(self.beyond.iter().map(|event| &event.0))
    }

    #[inline]
    pub fn push(&mut self, event: Event) {
        let tick = event.time >> self.tick_bits;
        let ahead = tick.wrapping_sub(self.horizon);
        if ahead.wrapping_sub(1) < SLOTS as u64 - 1 {
            self.later += 1;
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
            self.ordered();
        } else {
            self.later += 1;
            let epoch = tick >> SLOT_BITS;
            if epoch - (self.horizon >> SLOT_BITS) < SLOTS as u64 {
                self.coarse.push(&mut self.lists, epoch as usize % SLOTS, event);
            } else {
                self.beyond.push(Reverse(event));
            }
        }
    }

    /// Takes the first event of the total order if it comes before `limit`. If not, events may still be
    /// pushed for any time from `limit` on.
    #[inline]
    pub fn pop_before(&mut self, limit: Time) -> Option<Event> {
        if self.cursor >= self.few_from && self.later > 0 {
            self.refill(limit.saturating_sub(1) >> self.tick_bits);
        }
        let event = *self.current.get(self.cursor)?;
        if event.time >= limit {
            return None;
        }
        self.cursor += 1;
        Some(event)
    }

    /// The number of events in order has changed.
    #[inline]
    fn ordered(&mut self) {
        self.few_from = (self.current.len() + 1).saturating_sub(LOW);
    }

    /// When the first event comes. Looks through a bucket: not for every event.
    pub fn next_time(&self) -> Option<Time> {
        if let Some(event) = self.current.get(self.cursor) {
            return Some(event.time);
        }
        let first = |level: &Level, here: usize| {
            let slot = level.next(here + 1).or_else(|| level.next(0))?;
            self.lists.events(level.slots[slot]).map(|e| e.time).min()
        };
        let near = first(&self.near, self.horizon as usize % SLOTS);
        let coarse = first(&self.coarse, (self.horizon >> SLOT_BITS) as usize % SLOTS);
        let beyond = self.beyond.peek().map(|e| e.0.time);
        near.into_iter().chain(coarse).chain(beyond).min()
    }

    /// Brings in the next buckets, up to bucket `last`, until enough coming events are in order. The horizon
    /// stays near the next event, because each push before it must be sorted in singly.
    fn refill(&mut self, last: u64) {
        if self.cursor >= SPENT {
            self.current.drain(..self.cursor);
            self.cursor = 0;
            self.ordered();
        }
        while self.current.len() < self.cursor + HIGH && self.later > 0 {
            let offset = self.horizon as usize % SLOTS;
            let next = self.near.next(offset + 1);
            let first = self.current.get(self.cursor).map(|e| (e.time >> self.tick_bits) + REACH);
            if let Some(slot) = next {
                let bucket = self.horizon + (slot - offset) as u64;
                if bucket > last || first.is_some_and(|reach| bucket > reach) {
                    return;
                }
                self.take(slot);
                continue;
            }
            if first.is_some() {
                return;
            }
            // Nothing left in this epoch: enter the next one that has something. Events of the very next one
            // may already lie in the near level.
            let epoch = self.horizon >> SLOT_BITS;
            let next = if self.near.next(0).is_some() { epoch + 1 } else { self.next_epoch(epoch) };
            if next << SLOT_BITS > last {
                return;
            }
            self.enter(next);
            if self.near.next(0) == Some(0) {
                self.take(0);
            }
        }
    }

    /// The next epoch after `epoch` that the coarse level or the heap knows of.
    fn next_epoch(&self, epoch: u64) -> u64 {
        let here = epoch as usize % SLOTS;
        let slot = self.coarse.next(here + 1).or_else(|| self.coarse.next(0).map(|slot| slot + SLOTS));
        let coarse = slot.map(|slot| epoch + (slot - here) as u64);
        let beyond = self.beyond.peek().map(|e| e.0.time >> (self.tick_bits + SLOT_BITS));
        let first = coarse.into_iter().chain(beyond).min();
        first.unwrap_or_else(|| unreachable!("{} events are pending, yet no level holds one", self.later))
    }

    /// Makes `epoch` the horizon's: all of its events come to the near level.
    fn enter(&mut self, epoch: u64) {
        self.horizon = epoch << SLOT_BITS;
        let slot = epoch as usize % SLOTS;
        self.coarse.clear(slot);
        if self.coarse.slots[slot] != END {
            self.dealt.clear();
            self.lists.drain(&mut self.coarse.slots[slot], &mut self.dealt);
            for &event in &self.dealt {
                self.near.push(&mut self.lists, (event.time >> self.tick_bits) as usize % SLOTS, event);
            }
        }
        while let Some(Reverse(event)) = self.beyond.peek().copied() {
            let its = event.time >> (self.tick_bits + SLOT_BITS);
            if its - epoch >= SLOTS as u64 {
                break;
            }
            self.beyond.pop();
            if its == epoch {
                self.near.push(&mut self.lists, (event.time >> self.tick_bits) as usize % SLOTS, event);
            } else {
                self.coarse.push(&mut self.lists, its as usize % SLOTS, event);
            }
        }
    }

    /// Takes the near bucket at `slot` of the horizon's epoch into `current`.
    #[inline(always)]
    fn take(&mut self, slot: usize) {
        self.horizon = (self.horizon & !(SLOTS as u64 - 1)) + slot as u64;
        self.near.clear(slot);
        let sorted = self.current.len();
        self.lists.drain(&mut self.near.slots[slot], &mut self.current);
        self.later -= self.current.len() - sorted;
        self.ordered();
        // The turn of the next buckets comes soon: the last chunk leads to the first.
        self.lists.fetch(self.near.slots[(slot + 2) % SLOTS]);
        self.lists.fetch(self.lists.chunks[self.near.slots[(slot + 1) % SLOTS] as usize].next);
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
        if events[i - 1] > events[i] {
            insert(&mut events[..=i]);
        }
    }
}

/// Moves the last event before all that follow it. The others are in order.
#[inline]
fn insert(events: &mut [Event]) {
    let [others @ .., event] = events else { return };
    let event = *event;
    let mut at = others.len();
    while at > 0 && events[at - 1] > event {
        events[at] = events[at - 1];
        at -= 1;
    }
    events[at] = event;
}

/// Asks the processor to fetch the cache line of `items[index]`, which need not exist; does nothing where
/// there is no such instruction.
#[inline]
pub fn prefetch<T>(items: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing and faults at no address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(items.as_ptr().wrapping_add(index).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, index);
}

/// Asks the processor to fetch the cache line of `items[index]`, which need not exist, and to take it from other
/// processors, because it will be written. Does nothing where there is no such instruction.
#[inline]
pub fn prefetch_to_write<T>(items: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch changes no data and faults at no address.
    unsafe {
        let at = items.as_ptr().wrapping_add(index);
        std::arch::asm!("prefetchw [{at}]", at = in(reg) at, options(nostack, preserves_flags, readonly));
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
            let mut wheel = Wheel::new(8 + seed as u32 % 5);
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
                    assert_eq!(wheel.next_time(), heap.peek().map(|e| e.0.time));
                    let limit = match random.below(3) {
                        0 => now + random.below(50_000_000),
                        _ => Time::MAX,
                    };
                    let expected = heap.peek().map(|e| e.0).filter(|e| e.time < limit);
                    let got = wheel.pop_before(limit);
                    assert_eq!(got, expected, "seed {seed}");
                    match got {
                        Some(event) => {
                            heap.pop();
                            now = event.time;
                        }
                        None => now = now.max(limit),
                    }
                }
                assert_eq!(wheel.current.len() - wheel.cursor + wheel.later, heap.len());
                if serial % 64 == 0 {
                    let even = |e: &Event| e.data().is_multiple_of(2);
                    assert_eq!(wheel.pending().any(even), heap.iter().any(|e| even(&e.0)));
                    assert!(!wheel.pending().any(|e| e.data() > serial));
                }
            }
            while let Some(Reverse(expected)) = heap.pop() {
                assert_eq!(wheel.pop_before(Time::MAX), Some(expected));
            }
            assert_eq!(wheel.pop_before(Time::MAX), None);
        }
    }

    /// Rings of one and of several chunks, filled in turns, return the pushed items in order, and their
    /// chunks are used again.
    #[test]
    fn rings_keep_the_order_of_pushes() {
        let mut lists = Lists::new();
        let push = |lists: &mut Lists, last: &mut u32, event| {
            if !lists.fits(*last, event) {
                lists.extend(last, event);
            }
        };
        for (short, long) in [(1, 21), (7, 8), (5, 20), (14, 14)] {
            let mut rings = [END; 2];
            for i in 0..long {
                push(&mut lists, &mut rings[1], Event::new(i, 1, 0, 0));
                if i < short {
                    push(&mut lists, &mut rings[0], Event::new(i, 0, 0, 0));
                }
            }
            for (kind, count) in [(0, short), (1, long)] {
                let events: Vec<_> = (0..count).map(|i| Event::new(i, kind, 0, 0)).collect();
                let ring = &mut rings[usize::from(kind)];
                assert!(lists.events(*ring).eq(&events));
                let mut out = vec![Event::new(9, 9, 9, 9)];
                lists.drain(ring, &mut out);
                assert_eq!((*ring, &out[1..]), (END, &events[..]));
                assert_eq!(lists.events(*ring).count(), 0);
            }
        }
        assert_eq!(lists.chunks.len(), 1 + 4);
    }

    #[test]
    fn kinds_come_before_elements() {
        let mut wheel = Wheel::new(11);
        wheel.push(Event::new(5, 1, 0, 0));
        wheel.push(Event::new(5, 0, 9, 0));
        wheel.push(Event::new(4, 2, 9, 0));
        let order: Vec<_> = std::iter::from_fn(|| wheel.pop_before(Time::MAX))
            .map(|e| (e.time, e.kind(), e.element()))
            .collect();
        assert_eq!(order, [(4, 2, 9), (5, 0, 9), (5, 1, 0)]);
    }
}
