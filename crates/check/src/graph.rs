//! The graph of waits, and its topological order or shortest cycle.

use xoff_net::topology::PortId;

/// Most edges looked at in search of a shorter cycle before the search settles for the one it has.
const PATIENCE: u64 = 2_000_000_000;

/// How much of a lane of an egress port one pause stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    Flow(u32),
    Queue(u16),
    /// Packets through this congestion root.
    Root(PortId),
    Whole,
}

/// The unit that one pause stops: a lane of an egress port, or a part of it. It is the unit that can wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wait {
    pub port: PortId,
    pub lane: u8,
    pub part: Part,
}

/// Marks the whole lane in [`Wait::key`], which otherwise has a queue's number.
const WHOLE: u32 = u32::MAX;
/// Separates roots in a key from the numbers of queues.
const ROOT: u32 = 1 << 31;

impl Wait {
    /// In one number, in the order of port, lane and part. Ports are below 2^28, lanes below 8.
    fn key(self) -> u64 {
        let (queue, number) = match self.part {
            Part::Flow(flow) => (0, flow),
            Part::Queue(queue) => (1, u32::from(queue)),
            Part::Root(root) => (1, ROOT | root),
            Part::Whole => (1, WHOLE),
        };
        u64::from(self.port) << 36 | u64::from(self.lane) << 33 | queue << 32 | u64::from(number)
    }

    fn of(key: u64) -> Self {
        let part = match (key >> 32 & 1, key as u32) {
            (0, flow) => Part::Flow(flow),
            (_, WHOLE) => Part::Whole,
            (_, root) if root & ROOT > 0 => Part::Root(root & !ROOT),
            (_, queue) => Part::Queue(queue as u16),
        };
        Self { port: (key >> 36) as PortId, lane: (key >> 33 & 7) as u8, part }
    }
}

/// The possible waits: an edge leads from a wait to each wait on whose end it may depend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The nodes, ordered: all that have an edge.
    pub waits: Vec<Wait>,
    /// By node: those that it waits for.
    next: Lists,
}

/// Lists of numbers, stored one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    first: Vec<u32>,
    items: Vec<u32>,
}

impl Lists {
    /// `count` lists of the `(list, item)` pairs, each in order and without repeats.
    pub fn of(count: usize, mut pairs: Vec<(u32, u32)>) -> Self {
        pairs.sort_unstable();
        pairs.dedup();
        let mut first = vec![0; count + 1];
        pairs.iter().for_each(|p| first[p.0 as usize + 1] += 1);
        for i in 0..count {
            first[i + 1] += first[i];
        }
        Self { first, items: pairs.into_iter().map(|p| p.1).collect() }
    }

    pub fn get(&self, list: u32) -> &[u32] {
        &self.items[self.first[list as usize] as usize..self.first[list as usize + 1] as usize]
    }

    pub fn count(&self) -> usize {
        self.first.len() - 1
    }
}

#[derive(Clone, Debug, Default)]
pub struct Edges {
    edges: Vec<(u64, u64)>,
    /// How many of them are known to be different.
    distinct: usize,
}

impl Edges {
    /// `from` may wait for `to`.
    pub fn add(&mut self, from: Wait, to: Wait) {
        self.edges.push((from.key(), to.key()));
        // Repeats are dropped now and then, so that memory follows the graph, not the routes.
        if self.edges.len() > 2 * self.distinct + (1 << 20) {
            self.tidy();
        }
    }

    fn tidy(&mut self) {
        self.edges.sort_unstable();
        self.edges.dedup();
        self.distinct = self.edges.len();
    }

    pub fn graph(mut self) -> Graph {
        self.tidy();
        let mut keys: Vec<u64> = self.edges.iter().flat_map(|&(a, b)| [a, b]).collect();
        keys.sort_unstable();
        keys.dedup();
        let node = |key: u64| keys.binary_search(&key).expect("every end is a node") as u32;
        let pairs = self.edges.iter().map(|&(from, to)| (node(from), node(to))).collect();
        Graph { next: Lists::of(keys.len(), pairs), waits: keys.into_iter().map(Wait::of).collect() }
    }
}

/// A cycle: nodes in order; the last one waits for the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    pub waits: Vec<Wait>,
    /// Whether no cycle is shorter; if not, the search was given up.
    pub shortest: bool,
}

impl Graph {
    pub fn edges(&self) -> usize {
        self.next.items.len()
    }

    /// The waits for which node `n` waits.
    pub fn next(&self, n: u32) -> &[u32] {
        self.next.get(n)
    }

    /// The same nodes with every edge turned round.
    fn turned(&self) -> Self {
        let nodes = 0..self.waits.len() as u32;
        let pairs = nodes.flat_map(|from| self.next(from).iter().map(move |&to| (to, from))).collect();
        Self { waits: self.waits.clone(), next: Lists::of(self.waits.len(), pairs) }
    }

    /// The nodes in an order in which edges lead forwards, without those on a cycle or reachable from one.
    fn sorted(&self) -> Vec<u32> {
        let mut waiting = vec![0u32; self.waits.len()];
        self.next.items.iter().for_each(|&to| waiting[to as usize] += 1);
        let mut order: Vec<u32> =
            (0..self.waits.len() as u32).filter(|&n| waiting[n as usize] == 0).collect();
        let mut done = 0;
        while let Some(&n) = order.get(done) {
            done += 1;
            for &to in self.next(n) {
                waiting[to as usize] -= 1;
                if waiting[to as usize] == 0 {
                    order.push(to);
                }
            }
        }
        order
    }

    /// All waits in an order in which every edge leads forwards; `None` if there is a cycle.
    pub fn order(&self) -> Option<Vec<Wait>> {
        let order = self.sorted();
        (order.len() == self.waits.len()).then(|| order.iter().map(|&n| self.waits[n as usize]).collect())
    }

    /// A shortest cycle: of several, one through the first node.
    pub fn shortest_cycle(&self) -> Option<Cycle> {
        let turned = self.turned();
        // A node that is neither on a cycle nor between two cycles needs no search.
        let mut gone = vec![false; self.waits.len()];
        for n in self.sorted().into_iter().chain(turned.sorted()) {
            gone[n as usize] = true;
        }
        let mut best: Option<Vec<u32>> = None;
        let mut search = Search::new([self, &turned]);
        for n in 0..self.waits.len() as u32 {
            if gone[n as usize] {
                continue;
            }
            let shorter_than = best.as_ref().map_or(usize::MAX, Vec::len);
            if let Some(found) = search.cycle(n, shorter_than, &gone) {
                best = Some(found);
            }
            // Every cycle through this node has been considered.
            gone[n as usize] = true;
            if search.looked > PATIENCE && best.is_some() {
                break;
            }
        }
        let shortest = search.looked <= PATIENCE;
        let waits = best?.into_iter().map(|n| self.waits[n as usize]).collect();
        Some(Cycle { waits, shortest })
    }
}

/// Breadth-first search from a node in both directions at once.
struct Search<'g> {
    graphs: [&'g Graph; 2],
    /// In each direction: the search that has reached a node, and from where.
    seen: [Vec<(u32, u32)>; 2],
    /// Number of the search.
    round: u32,
    looked: u64,
}

impl<'g> Search<'g> {
    fn new(graphs: [&'g Graph; 2]) -> Self {
        let none = vec![(0, 0); graphs[0].waits.len()];
        Self { graphs, seen: [none.clone(), none], round: 0, looked: 0 }
    }

    /// A shortest cycle through `start` that avoids the nodes in `gone`, if it has less than `limit` nodes.
    fn cycle(&mut self, start: u32, limit: usize, gone: &[bool]) -> Option<Vec<u32>> {
        self.round += 1;
        let mut fronts = [vec![start], vec![start]];
        let mut depths = [0, 0];
        loop {
            // A cycle that is found next has so many nodes.
            if depths[0] + depths[1] + 1 >= limit {
                return None;
            }
            let side = usize::from(fronts[1].len() < fronts[0].len());
            depths[side] += 1;
            let mut front = Vec::new();
            let mut meets: Option<(u32, u32)> = None;
            for &n in &fronts[side] {
                for &to in self.graphs[side].next(n) {
                    self.looked += 1;
                    if gone[to as usize] {
                        continue;
                    }
                    // Met by the other side, which has begun at the start itself.
                    if to == start || self.seen[1 - side][to as usize].0 == self.round {
                        meets = meets.or(Some((n, to)));
                    }
                    if to != start && self.seen[side][to as usize].0 != self.round {
                        self.seen[side][to as usize] = (self.round, n);
                        front.push(to);
                    }
                }
            }
            if let Some((near, far)) = meets {
                let (from, to) = if side == 0 { (near, far) } else { (far, near) };
                return Some(self.joined(start, from, to));
            }
            if front.is_empty() {
                return None;
            }
            fronts[side] = front;
        }
    }

    /// The cycle from `start` forwards to `from`, over the edge to `to`, and on to `start`.
    fn joined(&self, start: u32, from: u32, to: u32) -> Vec<u32> {
        let mut cycle = vec![from];
        while cycle.last() != Some(&start) {
            let last = *cycle.last().expect("it has one");
            cycle.push(self.seen[0][last as usize].1);
        }
        cycle.reverse();
        let mut at = to;
        while at != start {
            cycle.push(at);
            at = self.seen[1][at as usize].1;
        }
        cycle
    }
}
