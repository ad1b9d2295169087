//! Where data wait at hosts: a virtual output queue (VOQ) for each destination, and in it the levels of PIAS.
//!
//! An item, which is a flow (or an acknowledgement), has a level by its sent bytes: it does not have to know
//! its size (§IV-B, information-agnostic). Lower levels go first, and within a level the item that joined it
//! first. A cell takes the content of the queue, of one item or of several, and never waits to be full
//! (`zeropod.cell-aggregation`).

use xoff_kernel::time::Time;

pub const NONE: u32 = u32::MAX;
/// Most levels.
pub const LEVELS: usize = 16;

/// Something to be sent from one host to another.
#[derive(Clone, Debug)]
pub struct Item {
    pub voq: u32,
    /// Bytes in all, and sent.
    pub size: u64,
    pub sent: u64,
    /// When it joined its level, as a number that grows.
    joined: u64,
    next: u32,
    level: u8,
    pub queued: bool,
}

impl Item {
    pub fn new(size: u64) -> Self {
        Self { voq: NONE, size, sent: 0, joined: 0, next: NONE, level: 0, queued: false }
    }
}

#[derive(Clone, Debug)]
pub struct Voq {
    /// The host whose it is, and that for whom, both of the whole network.
    pub src: u32,
    pub dst: u32,
    /// Bytes that wait.
    pub bytes: u64,
    /// Those of them in the first level.
    pub mice: u64,
    first: [u32; LEVELS],
    last: [u32; LEVELS],
}

/// A part of an item that is sent in one epoch.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub item: u32,
    pub from: u64,
    pub bytes: u64,
    /// The cells in which it begins and ends, counted from the first one of the grant.
    pub first: u32,
    pub last: u32,
}

/// All items, and the thresholds of levels.
pub struct Items {
    pub list: Vec<Item>,
    thresholds: Vec<u64>,
    joins: u64,
}

impl Items {
    pub fn new(thresholds: Vec<u64>) -> Self {
        assert!(thresholds.len() < LEVELS, "{} thresholds", thresholds.len());
        Self { list: Vec::new(), thresholds, joins: 0 }
    }

    /// Bytes that an item may still send before it leaves its level.
    fn rest_of_level(&self, item: &Item) -> u64 {
        let rest = item.size - item.sent;
        self.thresholds.get(usize::from(item.level)).map_or(rest, |&t| rest.min(t - item.sent))
    }

    fn level_of(&self, sent: u64) -> u8 {
        self.thresholds.iter().take_while(|&&t| t <= sent).count() as u8
    }
}

impl Voq {
    pub fn new(src: u32, dst: u32) -> Self {
        Self { src, dst, bytes: 0, mice: 0, first: [NONE; LEVELS], last: [NONE; LEVELS] }
    }

    /// An item joins it, with all that it has not sent.
    pub fn add(&mut self, items: &mut Items, index: u32) {
        let item = &mut items.list[index as usize];
        debug_assert!(!item.queued && item.sent < item.size);
        item.queued = true;
        self.bytes += item.size - item.sent;
        self.join(items, index);
    }

    /// An item begins anew at `from`: later bytes that it had sent must be sent again.
    pub fn go_back(&mut self, items: &mut Items, index: u32, from: u64) {
        let item = &mut items.list[index as usize];
        let again = item.sent.saturating_sub(from);
        if again == 0 {
            return;
        }
        if item.queued {
            // It keeps its place in its level, which only its next bytes may change.
            let old = items.rest_of_level(&items.list[index as usize]);
            let item = &mut items.list[index as usize];
            item.sent = from;
            self.bytes += again;
            if item.level == 0 {
                let new = items.rest_of_level(&items.list[index as usize]);
                self.mice = self.mice + new - old;
            }
        } else {
            item.sent = from;
            self.add(items, index);
        }
    }

    fn join(&mut self, items: &mut Items, index: u32) {
        let level = items.level_of(items.list[index as usize].sent);
        items.joins += 1;
        let joined = items.joins;
        let item = &mut items.list[index as usize];
        (item.level, item.joined, item.next) = (level, joined, NONE);
        let at = usize::from(level);
        match self.last[at] {
            NONE => self.first[at] = index,
            last => items.list[last as usize].next = index,
        }
        self.last[at] = index;
        if level == 0 {
            self.mice += items.rest_of_level(&items.list[index as usize]);
        }
    }

    /// Which goes first: its level, and since when it is there.
    pub fn head(&self, items: &Items) -> Option<(u8, u64)> {
        let first = self.first.iter().find(|&&first| first != NONE)?;
        let item = &items.list[*first as usize];
        Some((item.level, item.joined))
    }

    /// Fills at most `cells` cells of `payload` bytes, only with mice if requested. Adds their content to
    /// `out`, and returns how many are not empty.
    pub fn take(
        &mut self,
        items: &mut Items,
        (cells, payload): (u32, u32),
        mice_only: bool,
        out: &mut Vec<Piece>,
    ) -> u32 {
        let payload = u64::from(payload);
        let mut room = u64::from(cells) * payload;
        let all = room;
        let levels = if mice_only { 1 } else { LEVELS };
        while room > 0 {
            let Some(level) = self.first[..levels].iter().position(|&first| first != NONE) else { break };
            let index = self.first[level];
            let bytes = items.rest_of_level(&items.list[index as usize]).min(room);
            let item = &mut items.list[index as usize];
            let from = item.sent;
            item.sent += bytes;
            room -= bytes;
            self.bytes -= bytes;
            if level == 0 {
                self.mice -= bytes;
            }
            let end = all - room;
            let (first, last) = ((end - bytes) / payload, end.div_ceil(payload) - 1);
            out.push(Piece { item: index, from, bytes, first: first as u32, last: last as u32 });
            let (sent, size, next) = (item.sent, item.size, item.next);
            if sent == size || usize::from(items.level_of(sent)) > level {
                self.first[level] = next;
                if next == NONE {
                    self.last[level] = NONE;
                }
                if sent == size {
                    items.list[index as usize].queued = false;
                } else {
                    self.join(items, index);
                }
            }
        }
        (all - room).div_ceil(payload) as u32
    }
}

#[derive(Clone, Debug, Default)]
pub struct Received {
    /// Bytes from the beginning on, without a gap.
    pub prefix: u64,
    /// Parts after a gap, in order, with gaps between them.
    beyond: Vec<(u64, u64)>,
    /// When the last byte arrived.
    pub last: Time,
}

impl Received {
    /// `[from, to)` arrives. Returns how many of its bytes are new.
    pub fn insert(&mut self, from: u64, to: u64) -> u64 {
        if from <= self.prefix && self.beyond.is_empty() {
            let new = to.saturating_sub(self.prefix);
            self.prefix = self.prefix.max(to);
            return new;
        }
        let before = self.bytes();
        let at = self.beyond.partition_point(|part| part.0 < from);
        self.beyond.insert(at, (from, to));
        for (from, to) in std::mem::take(&mut self.beyond) {
            if from <= self.prefix {
                self.prefix = self.prefix.max(to);
                continue;
            }
            match self.beyond.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => self.beyond.push((from, to)),
            }
        }
        self.bytes() - before
    }

    /// Bytes that have come, each counted once.
    pub fn bytes(&self) -> u64 {
        self.prefix + self.beyond.iter().map(|part| part.1 - part.0).sum::<u64>()
    }

    /// Bytes that wait for others before them.
    pub fn waiting(&self) -> u64 {
        self.bytes() - self.prefix
    }
}
