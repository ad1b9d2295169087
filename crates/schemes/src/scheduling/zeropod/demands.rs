//! The traffic matrices, and the order in which demands are considered.
//!
//! Senders are the hosts and after them the cores, targets the hosts and after them the pods; so the three
//! matrices E2E, E2P and C2E are three blocks of one.
//!
//! The order remains from epoch to epoch: only changed demands are sorted, and merged into it.

use super::{Demand, Order, Pod, Sender, Target};
use xoff_kernel::random::Stream;

#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub sender: u16,
    pub target: u16,
    /// Whether a mice size is given.
    pub mice: bool,
}

#[derive(Clone, Copy, Debug)]
struct Placed {
    /// The sort key, smallest first: in the upper half the mice size, or more than any if none is given; in
    /// the lower half the aggregated size, or as [`Order`] has it. In bytes; 4 GiB and more count as equal.
    key: u64,
    demand: Waiting,
}

#[derive(Debug)]
pub(super) struct Demands {
    by: Order,
    hosts: usize,
    targets: usize,
    /// Requested bytes that are not granted yet.
    bytes: Vec<u64>,
    /// The mice size, in bytes; 0: none is given.
    mice: Vec<u64>,
    /// Columns that each sender's last list named.
    listed: Vec<Vec<u16>>,
    /// The demands as they were when last put in order.
    order: Vec<Placed>,
    /// The changed demands: row and column.
    changed: Vec<(u16, u16)>,
    is_changed: Vec<u64>,
    fresh: Vec<Placed>,
    merged: Vec<Placed>,
}

impl Demands {
    pub fn new(pod: &Pod, by: Order) -> Self {
        let (senders, targets) = (pod.senders(), pod.targets());
        let all = senders * targets;
        Self {
            by,
            hosts: pod.hosts(),
            targets,
            bytes: vec![0; all],
            mice: vec![0; all],
            listed: vec![Vec::new(); senders],
            order: Vec::with_capacity(all),
            changed: Vec::with_capacity(all),
            is_changed: vec![0; all.div_ceil(64)],
            fresh: Vec::with_capacity(all),
            merged: Vec::with_capacity(all),
        }
    }

    pub fn row(&self, sender: Sender) -> u16 {
        match sender {
            Sender::Host(host) => host,
            Sender::Core(core) => self.hosts as u16 + core,
        }
    }

    pub fn column(&self, target: Target) -> u16 {
        match target {
            Target::Host(host) => host,
            Target::Pod(pod) => self.hosts as u16 + pod,
        }
    }

    pub fn demand(&self, row: u16, column: u16) -> Demand {
        let hosts = self.hosts as u16;
        Demand {
            from: if row < hosts { Sender::Host(row) } else { Sender::Core(row - hosts) },
            to: if column < hosts { Target::Host(column) } else { Target::Pod(column - hosts) },
        }
    }

    fn at(&self, row: u16, column: u16) -> usize {
        usize::from(row) * self.targets + usize::from(column)
    }

    /// Requested bytes that are not granted yet.
    pub fn bytes(&self, row: u16, column: u16) -> u64 {
        self.bytes[self.at(row, column)]
    }

    /// The part of mice in them: the last advertised bytes, less the bytes granted since.
    pub fn mice(&self, row: u16, column: u16) -> u64 {
        let at = self.at(row, column);
        self.mice[at].min(self.bytes[at])
    }

    /// Demands that are not empty, when they were last put in order.
    pub fn order(&self) -> impl Iterator<Item = Waiting> {
        self.order.iter().map(|placed| placed.demand)
    }

    pub fn add(&mut self, row: u16, column: u16, bytes: u64) {
        let at = self.at(row, column);
        self.bytes[at] = self.bytes[at].checked_add(bytes).expect("a demand that counts in 64 bits");
        self.touch(row, column);
    }

    /// Subtracts the bytes of a grant; its sender sends mice first.
    pub fn subtract(&mut self, row: u16, column: u16, bytes: u64) {
        let at = self.at(row, column);
        self.bytes[at] = self.bytes[at].checked_sub(bytes).expect("no more is granted than was asked for");
        self.mice[at] = self.mice[at].saturating_sub(bytes);
        self.touch(row, column);
    }

    pub fn advertise(&mut self, row: u16, list: &[(Target, u64)]) {
        let mut named = std::mem::take(&mut self.listed[usize::from(row)]);
        for &column in &named {
            if !list.iter().any(|&(target, _)| self.column(target) == column) {
                self.set_mice(row, column, 0);
            }
        }
        named.clear();
        for &(target, bytes) in list {
            let column = self.column(target);
            self.set_mice(row, column, bytes);
            named.push(column);
        }
        self.listed[usize::from(row)] = named;
    }

    fn set_mice(&mut self, row: u16, column: u16, bytes: u64) {
        let at = self.at(row, column);
        if self.mice[at] != bytes {
            self.mice[at] = bytes;
            self.touch(row, column);
        }
    }

    fn touch(&mut self, row: u16, column: u16) {
        let at = self.at(row, column);
        let (word, bit) = (at / 64, 1 << (at % 64));
        if self.is_changed[word] & bit == 0 {
            self.is_changed[word] |= bit;
            self.changed.push((row, column));
        }
    }

    /// Puts the demands in order, those of the same sizes at random.
    pub fn sort(&mut self, stream: &mut Stream) {
        self.fresh.clear();
        for &(sender, target) in &self.changed {
            let bytes = self.bytes(sender, target);
            if bytes > 0 {
                let (mice, most) = (self.mice(sender, target), u64::from(u32::MAX));
                let first = if mice > 0 { mice.min(most) } else { most };
                let then = match self.by {
                    Order::Smallest => bytes.min(most),
                    Order::Largest => most - bytes.min(most),
                    Order::Random => 0,
                };
                let key = first << 32 | then;
                self.fresh.push(Placed { key, demand: Waiting { sender, target, mice: mice > 0 } });
            }
        }
        // Row and column come last, so that nothing depends on the order of the news.
        self.fresh.sort_unstable_by_key(|new| (new.key, new.demand.sender, new.demand.target));
        self.merged.clear();
        let mut fresh = self.fresh.iter().peekable();
        for old in &self.order {
            let at = self.at(old.demand.sender, old.demand.target);
            if self.is_changed[at / 64] >> (at % 64) & 1 == 1 {
                continue;
            }
            while let Some(new) = fresh.next_if(|new| new.key < old.key) {
                self.merged.push(*new);
            }
            self.merged.push(*old);
        }
        self.merged.extend(fresh);
        std::mem::swap(&mut self.order, &mut self.merged);
        for (row, column) in self.changed.drain(..) {
            let at = usize::from(row) * self.targets + usize::from(column);
            self.is_changed[at / 64] &= !(1 << (at % 64));
        }
        for equal in self.order.chunk_by_mut(|a, b| a.key == b.key) {
            for last in (1..equal.len()).rev() {
                equal.swap(last, stream.below(last as u64 + 1) as usize);
            }
        }
    }
}
