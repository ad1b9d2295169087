//! Sets that grow along the pauses: for each queue, the packets in all queues that it can pause. It computes
//! them for all queues at once, exactly.
//!
//! Queues that can pause each other in a cycle have the same set, and the sets of cycles follow from the sets
//! upstream. A set is a row of bits. Bits are processed in batches to limit the memory.

use crate::graph::Lists;
use std::ops::Range;

/// About so many words (8 B each) are held at a time.
const WORDS: usize = 1 << 23;

/// Queues, grouped by cycle: upstream groups come first.
pub struct Groups {
    /// By queue: its group.
    of: Vec<u32>,
    /// By group: its queues.
    members: Lists,
    /// By group: the groups that it can pause, each of them before it.
    upstream: Lists,
}

impl Groups {
    /// The groups of the relation `upstream`: by queue, those that it can pause.
    pub fn new(upstream: &Lists) -> Self {
        let of = circles(upstream);
        let count = of.iter().max().map_or(0, |&last| last as usize + 1);
        let members = Lists::of(count, of.iter().zip(0..).map(|(&g, q)| (g, q)).collect());
        let pairs = (0..of.len() as u32).flat_map(|q| upstream.get(q).iter().map(move |&u| (q, u)));
        let pairs = pairs.map(|(q, u)| (of[q as usize], of[u as usize])).filter(|(a, b)| a != b).collect();
        Self { of, members, upstream: Lists::of(count, pairs) }
    }

    /// Calls `visit`, for each batch of items `from..to` and each set of queues in `asked`, with the bits of
    /// the items (counted from `from`) that are in any queue that one of these queues can pause. Item `i` of
    /// `items` is in a queue if the queue's list has it. A batch ends only before an item `i` for which
    /// `may_end` returns `true`. At the end of a batch, `visit` gets, without a set, all items together for
    /// which it returned `true`.
    pub fn spread(
        &self,
        upstream: &Lists,
        items: &Lists,
        count: u32,
        may_end: &dyn Fn(u32) -> bool,
        asked: &Lists,
        mut visit: impl FnMut(Option<u32>, Range<u32>, &mut [u64]) -> bool,
    ) {
        let groups = self.members.count();
        let width = (WORDS / groups.max(1)).clamp(1, 512);
        let (mut bits, mut answer, mut all) = (Vec::new(), Vec::new(), Vec::new());
        let mut from = 0;
        while from < count {
            let mut to = count.min(from + 64 * width as u32);
            while to > from + 1 && to < count && !may_end(to) {
                to -= 1;
            }
            // A stretch that may not be parted is taken whole.
            if to < count && !may_end(to) {
                to = (from + 1..count).find(|&i| may_end(i)).unwrap_or(count);
            }
            let width = (to - from).div_ceil(64) as usize;
            bits.clear();
            bits.resize(groups * width, 0u64);
            for group in 0..groups as u32 {
                let (before, own) = bits.split_at_mut(group as usize * width);
                let own = &mut own[..width];
                for &up in self.upstream.get(group) {
                    join(own, &before[up as usize * width..][..width]);
                }
                for &queue in self.members.get(group) {
                    let list = items.get(queue);
                    for &item in &list[list.partition_point(|&i| i < from)..] {
                        if item >= to {
                            break;
                        }
                        own[((item - from) / 64) as usize] |= 1 << ((item - from) % 64);
                    }
                }
            }
            answer.resize(width, 0);
            all.clear();
            all.resize(width, 0);
            for set in 0..asked.count() as u32 {
                if asked.get(set).is_empty() {
                    continue;
                }
                answer.fill(0);
                for &queue in asked.get(set) {
                    let mut last = u32::MAX;
                    for &up in upstream.get(queue) {
                        let group = self.of[up as usize];
                        if group != last {
                            join(&mut answer, &bits[group as usize * width..][..width]);
                            last = group;
                        }
                    }
                }
                if visit(Some(set), from..to, &mut answer) {
                    join(&mut all, &answer);
                }
            }
            visit(None, from..to, &mut all);
            from = to;
        }
    }
}

fn join(into: &mut [u64], other: &[u64]) {
    into.iter_mut().zip(other).for_each(|(a, b)| *a |= b);
}

/// Numbers the strongly connected components of a relation (Tarjan's algorithm, without recursion) and
/// returns the component of each node. The successors of a component have lower numbers.
fn circles(next: &Lists) -> Vec<u32> {
    const NEW: u32 = u32::MAX;
    let n = next.count();
    let (mut part, mut order, mut low) = (vec![NEW; n], vec![NEW; n], vec![0u32; n]);
    let (mut parts, mut clock) = (0, 0);
    let (mut open, mut path): (Vec<u32>, Vec<(u32, usize)>) = (Vec::new(), Vec::new());
    for root in 0..n as u32 {
        if order[root as usize] != NEW {
            continue;
        }
        path.push((root, 0));
        while let Some(&mut (node, ref mut edge)) = path.last_mut() {
            let v = node as usize;
            if *edge == 0 {
                (order[v], low[v]) = (clock, clock);
                clock += 1;
                open.push(node);
            }
            if let Some(&to) = next.get(node).get(*edge) {
                *edge += 1;
                if order[to as usize] == NEW {
                    path.push((to, 0));
                } else if part[to as usize] == NEW {
                    low[v] = low[v].min(order[to as usize]);
                }
                continue;
            }
            path.pop();
            if let Some(&(before, _)) = path.last() {
                low[before as usize] = low[before as usize].min(low[v]);
            }
            if low[v] == order[v] {
                while let Some(member) = open.pop() {
                    part[member as usize] = parts;
                    if member == node {
                        break;
                    }
                }
                parts += 1;
            }
        }
    }
    part
}
