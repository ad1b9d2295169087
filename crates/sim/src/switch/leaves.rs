//! Leaves: the queues that a flow control puts in the place of a lane's one.
//!
//! Where a scheme queues by flow, each (port, queue) of [`crate::switch::port`] becomes a *group* of leaves.
//! The scheduler outside sees the group as one queue, which is ready while a leaf may send; inside, the
//! leaves that are not empty and not paused are in a ring, served by deficit round robin. An empty or paused
//! leaf is in no ring and costs nothing. A leaf's list is a [`Queue`] after those of the ports; its state
//! besides is here. The group's own queue keeps the totals of the group, and ACKs that are not queued by
//! flow: they go first and are never paused. Where queues are pulled it is the output queue, queue 0 of the
//! scheme, and takes its turn as leaves do: see [`crate::switch::pull`].
//!
//! Leaves belong to the device of their port. Nothing here is touched, or takes room, under other schemes.

use crate::{indices::table, packet::NONE, switch::port::Queue};
use std::collections::{BTreeMap, BTreeSet};
use xoff_kernel::table::Table;
use xoff_net::topology::NodeKind;
use xoff_plan::balancing::LoadBalancing;
use xoff_plan::plan::{ENDS, Flow, Plan};
use xoff_schemes::flow_control::{Queueing, Target};

/// A leaf: half a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct Leaf {
    next: u32,
    previous: u32,
    /// Bytes that it may still send in its turn.
    pub deficit: u32,
    /// Its standing pause among those observed, or [`NONE`].
    pub standing: u32,
    pub port: u32,
    /// Where the queue of its group is among the queues.
    pub group: u32,
    /// The queue of the port that it is a part of.
    pub queue: u16,
    /// The scheme's number of it; 0 where leaves have none.
    pub number: u16,
    pub in_ring: bool,
    pub paused: bool,
    /// The scheme's own bit.
    pub pausing: bool,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct Ring {
    /// The next leaf to serve.
    head: u32,
    active: u32,
    /// Where queues are pulled: bytes in the lists of leaves, in the ring or not.
    pub bytes: u64,
    /// Turns that leaves have had since the group's own list had one.
    turns: u32,
    /// Bytes that the group's own list may still send in its turns.
    own: u32,
    /// It is its turn.
    own_turn: bool,
}

impl Default for Ring {
    fn default() -> Self {
        Self { head: NONE, active: 0, bytes: 0, turns: 0, own: 0, own_turn: false }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The group's own list.
    Own,
    Leaf(u32),
}

pub struct Leaves {
    pub queueing: Queueing,
    /// Its queues are pulled: see [`crate::switch::pull`].
    pub pulls: bool,
    /// ACKs join the group's own list, which goes first.
    pub acks_first: bool,
    /// Forwarded packets leave from the leaf with the lowest number, instead of in turns.
    lowest: bool,
    lanes: usize,
    /// Deficit round robin: bytes per turn.
    quantum: u32,
    /// Where the lists of leaves begin among the queues.
    pub first: usize,
    pub leaves: Table<Vec<Leaf>>,
    /// By queue of a port, in the order of all queues.
    rings: Table<Vec<Ring>>,
    /// By port and lane: its first leaf, where queues are numbered.
    bases: Vec<u32>,
    /// By flow: the leaf of its queue pair.
    of_flow: Vec<u32>,
    /// Which leaf belongs to which flow, under [`Queueing::PerFlow`]; else empty.
    pub by_flow: ByFlow,
}

/// An event at a host, not reported to the scheme yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostEvent {
    None,
    Flow(u32),
    /// A control packet that replies to another packet.
    Answer(u32),
    /// A queue pair that has left its leaf: all of it is acknowledged.
    Gone(u32),
}

impl Leaves {
    /// The leaves of a plan; `first` is the number of queues without them.
    pub fn new(plan: &Plan, first: usize) -> Self {
        let queueing = plan.flow_control.traits().queueing;
        let lanes = plan.lanes.len();
        let ports = &plan.topology.ports;
        let mut leaves = Vec::new();
        let mut bases = Vec::new();
        let per_port = 1 + 2 * lanes;
        let leaf = |port: u32, queue: u16, number: u16| Leaf {
            next: NONE,
            previous: NONE,
            deficit: 0,
            standing: NONE,
            port,
            group: port * per_port as u32 + u32::from(queue),
            queue,
            number,
            in_ring: false,
            paused: false,
            pausing: false,
        };
        let mut of_flow = Vec::new();
        let mut by_flow = ByFlow::default();
        match queueing {
            Queueing::PerLane => {}
            Queueing::Numbered { numbers, .. } => {
                let all = (0..ports.len() as u32).flat_map(|p| (0..lanes as u16).map(move |l| (p, l)));
                for (port, lane) in all {
                    bases.push(leaves.len() as u32);
                    // Queue pairs are hosts' only.
                    if plan.topology.nodes[ports[port as usize].node as usize].kind != NodeKind::Host {
                        leaves.extend((0..numbers.switch).map(|number| leaf(port, 1 + lane, number)));
                        continue;
                    }
                    let (own, all) = (numbers.own, numbers.own.1 + numbers.relayed.1);
                    let is_own = |queue: u16| (own.0..own.0 + own.1).contains(&queue);
                    let group = |queue: u16| if is_own(queue) { 1 + lanes as u16 + lane } else { 1 + lane };
                    leaves.extend((0..all).map(|queue| leaf(port, group(queue), queue)));
                }
                of_flow = vec![NONE; plan.flows.len()];
            }
            Queueing::PerFlow => {
                by_flow = ByFlow::new(plan);
                for place in &by_flow.places {
                    let lane = u16::from(plan.flows[place.flow as usize].lane);
                    let group = if place.own { 1 + lanes as u16 + lane } else { 1 + lane };
                    leaves.push(leaf(place.port, group, 0));
                }
                let own = |(flow, f): (usize, &Flow)| by_flow.own(flow as u32, plan.hops[f.path as usize]);
                of_flow = plan.flows.iter().enumerate().map(own).collect();
            }
        }
        let groups = if queueing == Queueing::PerLane { 0 } else { ports.len() * per_port };
        Self {
            queueing,
            pulls: matches!(queueing, Queueing::Numbered { pulls: true, .. }),
            acks_first: matches!(
                queueing,
                Queueing::PerFlow | Queueing::Numbered { acks: false, pulls: false, .. }
            ),
            lowest: matches!(queueing, Queueing::Numbered { lowest: true, .. }),
            lanes,
            quantum: plan.packet.largest(),
            first,
            leaves: table(leaves),
            rings: table(vec![Ring::default(); groups]),
            bases,
            of_flow,
            by_flow,
        }
    }

    /// Whether the scheme queues by flow at all.
    #[inline]
    pub fn used(&self) -> bool {
        !self.rings.is_empty()
    }

    /// Whether ACKs do not wait as data does. Pulled, they are in leaf 0, which no data joins, and go first.
    #[inline]
    pub fn apart(&self) -> bool {
        !matches!(self.queueing, Queueing::Numbered { acks: true, .. })
    }

    pub fn len(&self) -> usize {
        self.leaves.len()
    }

    #[inline(always)]
    pub fn get(&self, leaf: u32) -> &Leaf {
        &self.leaves[leaf as usize]
    }

    #[inline(always)]
    pub fn get_mut(&mut self, leaf: u32) -> &mut Leaf {
        &mut self.leaves[leaf as usize]
    }

    /// The leaf of the scheme's queue `number` of a lane on `port`. Panics if there is none.
    #[inline(always)]
    pub fn numbered(&self, port: u32, lane: u8, number: u16) -> u32 {
        let leaf = self.bases[port as usize * self.lanes + usize::from(lane)] + u32::from(number);
        assert!((leaf as usize) < self.leaves.len(), "queue {number} of lane {lane} on port {port}");
        leaf
    }

    /// Where the list of a leaf is among the queues.
    #[inline(always)]
    pub fn list(&self, leaf: u32) -> usize {
        self.first + leaf as usize
    }

    pub fn of_flow(&self, flow: u32) -> u32 {
        self.of_flow[flow as usize]
    }

    pub fn list_of(&self, flow: u32) -> usize {
        self.list(self.of_flow(flow))
    }

    /// Queue pair `flow`, which is in no ring, belongs to `leaf` from now on.
    pub fn assign(&mut self, flow: u32, leaf: u32) {
        self.of_flow[flow as usize] = leaf;
    }

    /// Queue pair `flow`, which is in no ring, sends through `port` from now on. (Numbered queues are chosen
    /// each time that it joins one.)
    pub fn move_flow(&mut self, flow: u32, port: u32) {
        if self.queueing == Queueing::PerFlow {
            self.assign(flow, self.by_flow.own(flow, port));
        }
    }

    /// Under [`Queueing::PerFlow`]: the leaf of packets of `flow` at `hop` of the plan's hops, at `port`.
    #[inline]
    pub fn of_packet(&self, flow: u32, port: u32, hop: u32) -> u32 {
        match self.by_flow.leaf_at.get(hop as usize) {
            Some(&leaf) => leaf,
            None => self.by_flow.find(&Place { flow, port, own: false }).expect("every port has one"),
        }
    }

    /// A leaf of a group whose turn it is, if one holds something and may send.
    pub fn first(&self, port: u32, queue: usize) -> Option<u32> {
        let ring = self.ring(port, queue);
        (ring.active > 0).then_some(ring.head)
    }

    /// Where queues are pulled: bytes in the own list of the group at `at`, which holds `all` with its leaves.
    #[inline(always)]
    pub fn own_bytes(&self, at: usize, all: u64) -> u64 {
        all - self.rings[at].bytes
    }

    /// The list of the leaf whose turn it is.
    #[inline]
    pub fn serving(&self, port: u32, queue: usize) -> usize {
        self.list(self.ring(port, queue).head)
    }

    /// The leaves of a group that hold packets and may send, in the order of service.
    pub fn ring_of(&self, port: u32, queue: usize) -> Vec<u32> {
        let ring = self.ring(port, queue);
        let next = |leaf: &u32| Some(self.leaves[*leaf as usize].next);
        std::iter::successors(Some(ring.head), next).take(ring.active as usize).collect()
    }

    /// How many leaves of a group hold something and may send.
    #[inline(always)]
    pub fn active(&self, port: u32, queue: usize) -> u32 {
        self.ring(port, queue).active
    }

    #[inline(always)]
    fn at(&self, port: u32, queue: usize) -> usize {
        port as usize * (1 + 2 * self.lanes) + queue
    }

    #[inline(always)]
    fn ring(&self, port: u32, queue: usize) -> &Ring {
        &self.rings[self.at(port, queue)]
    }

    /// The ring of the group at `at` among the queues.
    #[inline(always)]
    pub fn ring_mut(&mut self, at: u32) -> &mut Ring {
        &mut self.rings[at as usize]
    }

    /// The scheme's number of a leaf; 0 where leaves have none.
    #[inline(always)]
    pub fn number(&self, leaf: u32) -> u16 {
        self.leaves[leaf as usize].number
    }

    /// Puts a leaf that is not empty at the end of its ring. Returns the port, and the ready queue's bit.
    #[inline(always)]
    pub fn link(&mut self, leaf: u32) -> (u32, u64) {
        let quantum = self.quantum;
        let &Leaf { port, queue, group, .. } = self.get(leaf);
        if self.lowest && usize::from(queue) <= self.lanes {
            self.link_in_order(leaf);
            return (port, 1 << queue);
        }
        let ring = &mut self.rings[group as usize];
        ring.active += 1;
        let (next, previous) = match ring.head {
            NONE => {
                // The own list has had all turns so far.
                (ring.head, ring.turns, ring.own, ring.own_turn) = (leaf, 0, 0, false);
                (leaf, leaf)
            }
            head => {
                let previous = std::mem::replace(&mut self.leaves[head as usize].previous, leaf);
                self.leaves[previous as usize].next = leaf;
                (head, previous)
            }
        };
        let l = &mut self.leaves[leaf as usize];
        (l.next, l.previous, l.deficit, l.in_ring) = (next, previous, quantum, true);
        (port, 1 << queue)
    }

    /// Puts a leaf of forwarded packets at the place of its number: the ring begins with the lowest.
    #[cold]
    fn link_in_order(&mut self, leaf: u32) {
        let ring = &mut self.rings[self.leaves[leaf as usize].group as usize];
        ring.active += 1;
        let (next, previous) = match ring.head {
            NONE => (leaf, leaf),
            head => {
                // Leaves of a group are in the order of their numbers.
                let mut next = head;
                while next < leaf {
                    next = self.leaves[next as usize].next;
                    if next == head {
                        break;
                    }
                }
                (next, self.leaves[next as usize].previous)
            }
        };
        if ring.head == NONE || leaf < ring.head {
            ring.head = leaf;
        }
        if next != leaf {
            self.leaves[previous as usize].next = leaf;
            self.leaves[next as usize].previous = leaf;
        }
        // Its turn lasts until it is empty or paused, or a lower number may send.
        let l = &mut self.leaves[leaf as usize];
        (l.next, l.previous, l.deficit, l.in_ring) = (next, previous, u32::MAX, true);
    }

    /// Takes a leaf out of its ring. Returns whether that is empty now.
    #[inline(always)]
    pub fn unlink(&mut self, leaf: u32) -> bool {
        let l = &mut self.leaves[leaf as usize];
        l.in_ring = false;
        let (next, previous, group) = (l.next, l.previous, l.group);
        let quantum = self.quantum;
        let ring = &mut self.rings[group as usize];
        ring.active -= 1;
        if ring.active == 0 {
            ring.head = NONE;
            return true;
        }
        if ring.head == leaf {
            ring.head = next;
            ring.turn_ends(quantum);
        }
        self.leaves[previous as usize].next = next;
        self.leaves[next as usize].previous = previous;
        false
    }

    /// The next sender of a group that has a leaf in its ring. First packets have the sizes `own` (of the
    /// group's own list, if it has any) and `size`. The own list has a turn after each round of the leaves.
    pub fn turn(
        &mut self,
        port: u32,
        queue: usize,
        own: Option<u32>,
        queues: &[Queue],
        size: impl Fn(&Queue) -> u32,
    ) -> Turn {
        let (quantum, at) = (self.quantum, self.at(port, queue));
        loop {
            let ring = &mut self.rings[at];
            if ring.own_turn {
                match own {
                    Some(size) if ring.own >= size => {
                        ring.own -= size;
                        return Turn::Own;
                    }
                    Some(_) => {}
                    // A list without anything to send does not save up.
                    None => ring.own = 0,
                }
                (ring.own_turn, ring.turns) = (false, 0);
            }
            let leaf = ring.head;
            // A leaf sends the own list's first packet, if there is any.
            let size = own.unwrap_or_else(|| size(&queues[self.first + leaf as usize]));
            let l = &mut self.leaves[leaf as usize];
            if l.deficit >= size {
                return Turn::Leaf(leaf);
            }
            l.deficit += quantum;
            let next = l.next;
            let ring = &mut self.rings[at];
            ring.head = next;
            ring.turn_ends(quantum);
        }
    }

    /// The leaf to serve in a ring that is not empty, and its first packet's `size`. It can be repeated.
    #[inline]
    pub fn settle(
        &mut self,
        port: u32,
        queue: usize,
        queues: &[Queue],
        size: impl Fn(&Queue) -> u32,
    ) -> (u32, u32) {
        let at = self.at(port, queue);
        loop {
            let leaf = self.rings[at].head;
            let size = size(&queues[self.first + leaf as usize]);
            let l = &mut self.leaves[leaf as usize];
            if l.deficit >= size {
                return (leaf, size);
            }
            if self.lowest && queue <= self.lanes {
                l.deficit = u32::MAX;
                return (leaf, size);
            }
            // Its turn is over; the next one's bytes are granted at once.
            l.deficit += self.quantum;
            self.rings[at].head = l.next;
        }
    }
}

impl Ring {
    /// A leaf's turn has ended; maybe the next one is that of the group's own list.
    #[inline(always)]
    fn turn_ends(&mut self, quantum: u32) {
        self.turns += 1;
        if self.turns >= self.active && !self.own_turn {
            self.own_turn = true;
            self.own += quantum;
        }
    }
}

/// A leaf of [`Queueing::PerFlow`]: that of a flow's packets at a port, or of its `own` queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    flow: u32,
    port: u32,
    own: bool,
}

/// The leaves of a plan's flows, one at each port of each route that a flow may have: so packets that stay at
/// a port when routes change stay in their queue.
#[derive(Debug, Default)]
pub struct ByFlow {
    /// By leaf, in order.
    places: Vec<Place>,
    /// By position in the plan's hops: the leaf of packets there. Empty if devices choose paths.
    leaf_at: Vec<u32>,
}

impl ByFlow {
    fn new(plan: &Plan) -> Self {
        if matches!(plan.load_balancing, LoadBalancing::Packets(_)) {
            return Self::of_choices(plan);
        }
        let mut by_flow = Self { places: Vec::new(), leaf_at: vec![NONE; plan.hops.len()] };
        // First the flow of each position. Routes begin with a queue pair; those of packets in flight do not.
        for (flow, f) in plan.flows.iter().enumerate() {
            by_flow.begin(plan, flow as u32, f.path);
            for other in plan.other_routes(flow as u32) {
                by_flow.begin(plan, flow as u32, other);
            }
        }
        for table in &plan.faults.tables {
            for route in &table.flows {
                by_flow.begin(plan, route.flow, route.path);
            }
            for route in &table.labels {
                by_flow.begin(plan, route.flow, route.path);
            }
            for &(old, new) in &table.positions {
                // Positions of ACKs have no flow here, and no leaf.
                let flow = by_flow.leaf_at[old as usize];
                if flow != NONE {
                    by_flow.go_on(plan, flow, new);
                }
            }
        }
        by_flow.places.sort_unstable();
        by_flow.places.dedup();
        for position in 0..plan.hops.len() {
            let flow = by_flow.leaf_at[position];
            if flow != NONE {
                let place = Place { flow, port: plan.hops[position], own: false };
                by_flow.leaf_at[position] = by_flow.find(&place).unwrap_or(NONE);
            }
        }
        by_flow
    }

    /// If devices choose paths: one at each port of all paths, with those of packets in flight at changes.
    fn of_choices(plan: &Plan) -> Self {
        let mut by_flow = Self::default();
        let mut moves: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &(old, new) in plan.faults.tables.iter().flat_map(|table| &table.positions) {
            moves.entry(old).or_default().push(new);
        }
        let mut starts: Vec<Vec<u32>> = plan.flows.iter().map(|f| vec![f.path]).collect();
        for route in plan.faults.tables.iter().flat_map(|table| &table.flows) {
            starts[route.flow as usize].push(route.path);
        }
        for (flow, mut next) in (0..).zip(starts) {
            let own = next.iter().map(|&start| Place { flow, port: plan.hops[start as usize], own: true });
            by_flow.places.extend(own);
            let mut seen: BTreeSet<u32> = BTreeSet::new();
            while let Some(at) = next.pop() {
                if !seen.insert(at) {
                    continue;
                }
                // A new position is at the port of the old one, which has a leaf already, or is that of the
                // queue pair, where no packet waits.
                next.extend(moves.get(&at).into_iter().flatten());
                let entry = plan.hops[at as usize + 1];
                let following = at + 1;
                let onward = match plan.choices_at(entry) {
                    Some(choices) => choices.options(entry),
                    None => std::slice::from_ref(&following),
                };
                for &position in onward.iter().filter(|&&p| plan.hops[p as usize] < ENDS) {
                    by_flow.places.push(Place { flow, port: plan.hops[position as usize], own: false });
                    next.push(position);
                }
            }
        }
        by_flow.places.sort_unstable();
        by_flow.places.dedup();
        by_flow
    }

    /// A route of `flow` begins at `start`.
    fn begin(&mut self, plan: &Plan, flow: u32, start: u32) {
        self.places.push(Place { flow, port: plan.hops[start as usize], own: true });
        self.go_on(plan, flow, start);
    }

    /// Packets of `flow` may change to `start`, which is at the port of the old one, which has a leaf
    /// already, or at that of the queue pair, where no packet waits.
    fn go_on(&mut self, plan: &Plan, flow: u32, start: u32) {
        debug_assert!([NONE, flow].contains(&self.leaf_at[start as usize]), "flows share no positions");
        if std::mem::replace(&mut self.leaf_at[start as usize], flow) == NONE {
            self.walk(plan, flow, start + 1);
        }
    }

    /// Packets of `flow` may wait at `at` and later positions.
    fn walk(&mut self, plan: &Plan, flow: u32, mut at: u32) {
        loop {
            let port = plan.hops[at as usize];
            if port >= ENDS {
                return;
            }
            self.places.push(Place { flow, port, own: false });
            // A known position is known to its end, except for a queue pair's own place.
            if std::mem::replace(&mut self.leaf_at[at as usize], flow) != NONE {
                return;
            }
            at += 1;
        }
    }

    fn find(&self, place: &Place) -> Option<u32> {
        self.places.binary_search(place).ok().map(|at| at as u32)
    }

    /// The leaf of a queue pair at `port`, which a route of the flow begins with.
    fn own(&self, flow: u32, port: u32) -> u32 {
        self.find(&Place { flow, port, own: true }).expect("every route's beginning has one")
    }

    pub fn at_port(&self, flow: u32, port: u32) -> impl Iterator<Item = u32> + use<'_> {
        [false, true].into_iter().filter_map(move |own| self.find(&Place { flow, port, own }))
    }
}

pub fn number_of(target: Target) -> u32 {
    match target {
        Target::Queue(number) => number.into(),
        Target::Flow(flow) => flow,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three leaves of one group, 1,000 B a turn; a leaf's list has the size of its first packet in `head`.
    fn three() -> (Leaves, Vec<Queue>) {
        let leaf = Leaf {
            next: NONE,
            previous: NONE,
            deficit: 0,
            standing: NONE,
            port: 0,
            group: 1,
            queue: 1,
            number: 0,
            in_ring: false,
            paused: false,
            pausing: false,
        };
        let mut leaves = Leaves {
            queueing: Queueing::PerFlow,
            pulls: false,
            acks_first: true,
            lowest: false,
            lanes: 1,
            quantum: 1_000,
            first: 0,
            leaves: table(vec![leaf; 3]),
            rings: table(vec![Ring::default(); 3]),
            bases: Vec::new(),
            of_flow: Vec::new(),
            by_flow: ByFlow::default(),
        };
        (0..3).for_each(|leaf| assert_eq!(leaves.link(leaf), (0, 1 << 1)));
        (leaves, vec![Queue::default(); 3])
    }

    fn serve(leaves: &mut Leaves, queues: &[Queue]) -> u32 {
        let (leaf, size) = leaves.settle(0, 1, queues, |list| list.head);
        leaves.get_mut(leaf).deficit -= size;
        leaf
    }

    /// Leaf 0 sends 300 B and is empty: the 700 B that it had left are gone, so its 1,500 B wait for the
    /// turns of the others.
    /// Whatever the order in which they join, the lowest that may send is served, for as long as it may.
    #[test]
    fn the_lowest_leaf_is_served_where_a_scheme_asks_for_it() {
        let (mut leaves, mut queues) = three();
        (0..3).for_each(|leaf| _ = leaves.unlink(leaf));
        leaves.lowest = true;
        queues.iter_mut().for_each(|list| list.head = 1_000);
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            order.into_iter().for_each(|leaf| _ = leaves.link(leaf));
            for lowest in 0..3 {
                (0..4).for_each(|_| assert_eq!(serve(&mut leaves, &queues), lowest, "{order:?}"));
                assert_eq!(leaves.unlink(lowest), lowest == 2);
            }
        }
        // One that joins later goes first if its number is lower.
        (_, _) = (leaves.link(2), leaves.link(1));
        assert_eq!(serve(&mut leaves, &queues), 1);
        leaves.link(0);
        assert_eq!(serve(&mut leaves, &queues), 0);
    }

    #[test]
    fn an_idle_leaf_loses_its_deficit() {
        let (mut leaves, mut queues) = three();
        queues.iter_mut().for_each(|list| list.head = 300);
        assert_eq!(serve(&mut leaves, &queues), 0);
        leaves.unlink(0);
        leaves.link(0);
        queues.iter_mut().for_each(|list| list.head = 1_500);
        let served: Vec<u32> = (0..6).map(|_| serve(&mut leaves, &queues)).collect();
        assert_eq!(served, [1, 2, 0, 1, 2, 0]);
    }

    /// A leaf keeps its turn while its bytes last, and takes the rest into its next one.
    #[test]
    fn a_busy_leaf_keeps_its_deficit() {
        let (mut leaves, mut queues) = three();
        queues.iter_mut().for_each(|list| list.head = 600);
        let served: Vec<u32> = (0..9).map(|_| serve(&mut leaves, &queues)).collect();
        // 1,000 B a turn: one packet, then two with the 400 B that were left, then two.
        assert_eq!(served, [0, 1, 2, 0, 0, 1, 1, 2, 2]);
    }

    /// The group's own list, of 300 B packets, sends for its quantum of 1,000 B once each leaf has had a
    /// turn.
    #[test]
    fn the_own_list_has_a_turn_of_several_packets() {
        let (mut leaves, queues) = three();
        let served: Vec<Option<u32>> = (0..15)
            .map(|_| match leaves.turn(0, 1, Some(300), &queues, |list| list.head) {
                Turn::Own => None,
                Turn::Leaf(leaf) => {
                    leaves.get_mut(leaf).deficit -= 300;
                    Some(leaf)
                }
            })
            .collect();
        let thrice = |who: Option<u32>| [who; 3];
        assert_eq!(served, [Some(0), Some(1), Some(2), None, Some(0)].map(thrice).concat());
    }
}
