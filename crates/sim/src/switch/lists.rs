//! Packets and queue pairs join and leave leaves, and leaves stop and go on.

use crate::packet::{Kind, NONE};
use crate::switch::leaves::{Leaf, number_of};
use crate::{core::Core, features::Features};
use xoff_plan::{balancing::Ahead, plan::ENDS};
use xoff_schemes::flow_control::{FlowControl, Onward, Queueing, Scheme, Target, device::Queues};

impl Core<'_> {
    /// Bytes in queue `number` of a scheme that pulls.
    pub fn pulled_bytes(&self, port: u32, lane: u8, number: u16) -> u64 {
        if number > 0 {
            let leaf = self.egress.leaves.numbered(port, lane, number);
            return self.egress.queues[self.egress.leaves.list(leaf)].bytes;
        }
        let at = self.egress.at(port, 1 + usize::from(lane));
        self.egress.leaves.own_bytes(at, self.egress.queues[at].bytes)
    }

    /// A leaf got its first packet or queue pair.
    #[inline(always)]
    fn leaf_filled(&mut self, leaf: u32) {
        if !self.egress.leaves.get(leaf).paused {
            let (port, bit) = self.egress.leaves.link(leaf);
            self.egress.ports[port as usize].ready |= bit;
        }
    }

    /// Removes a leaf from its ring, if it was in it.
    #[inline(always)]
    fn leaf_stops(&mut self, leaf: u32) {
        let &Leaf { port, queue, group, in_ring, .. } = self.egress.leaves.get(leaf);
        if in_ring && self.egress.leaves.unlink(leaf) && self.egress.queues[group as usize].head == NONE {
            self.egress.ports[port as usize].ready &= !(1 << queue);
        }
    }

    /// The list at `at`, of queue pairs, is empty now. Of a leaf or of a queue of `port`.
    #[inline]
    pub fn ring_emptied(&mut self, port: u32, queue: usize, at: usize) {
        if self.egress.leaves.used() {
            self.leaf_stops((at - self.egress.leaves.first) as u32);
        } else {
            self.egress.ports[port as usize].ready &= !(1 << queue);
        }
    }

    #[inline(always)]
    pub fn leaf_append(&mut self, leaf: u32, id: u32) {
        let group = self.egress.leaves.get(leaf).group;
        let size = u64::from(self.packets[id].size);
        self.packets[id].next = NONE;
        if let Some(oracle) = &mut self.blocking {
            let paused = self.egress.leaves.get(leaf).paused;
            oracle.packet_joins(self.egress.leaves.list(leaf), id, paused, self.now);
        }
        if self.egress.leaves.pulls {
            self.egress.leaves.ring_mut(group).bytes += size;
        }
        let group = &mut self.egress.queues[group as usize];
        group.bytes += size;
        group.peak = group.peak.max(group.bytes);
        let list = &mut self.egress.queues[self.egress.leaves.first + leaf as usize];
        list.bytes += size;
        list.peak = list.peak.max(list.bytes);
        let tail = std::mem::replace(&mut list.tail, id);
        if tail == NONE {
            list.head = id;
            self.leaf_filled(leaf);
        } else {
            self.packets[tail].next = id;
        }
    }

    /// Takes the first packet of a leaf that has one.
    #[inline(always)]
    pub fn leaf_take(&mut self, leaf: u32) -> u32 {
        let group = self.egress.leaves.get(leaf).group;
        let list = &mut self.egress.queues[self.egress.leaves.first + leaf as usize];
        let id = list.head;
        let packet = &self.packets[id];
        let size = u64::from(packet.size);
        list.head = packet.next;
        list.bytes -= size;
        let empty = list.head == NONE;
        if empty {
            list.tail = NONE;
        }
        if self.egress.leaves.pulls {
            self.egress.leaves.ring_mut(group).bytes -= size;
        }
        let group = &mut self.egress.queues[group as usize];
        group.bytes -= size;
        group.data_packets += u64::from(packet.kind == Kind::Data);
        if let Some(oracle) = &mut self.blocking {
            oracle.packet_leaves(self.egress.leaves.list(leaf), id, packet, self.plan);
        }
        if empty {
            self.leaf_stops(leaf);
        }
        id
    }

    /// The leaves that a control frame at `port` names.
    fn named(&self, port: u32, lane: u8, target: Target) -> Vec<u32> {
        match target {
            Target::Queue(number) => vec![self.egress.leaves.numbered(port, lane, number)],
            Target::Flow(flow) => self.egress.leaves.by_flow.at_port(flow, port).collect(),
        }
    }

    pub fn lane_of(&self, leaf: &Leaf) -> u8 {
        ((usize::from(leaf.queue) - 1) % self.lanes) as u8
    }

    /// The numbered leaves of a lane on `port`, with those of queue pairs; none where queues have no numbers.
    pub fn leaves_of(&self, port: u32, lane: u8) -> std::ops::Range<u32> {
        let Queueing::Numbered { .. } = self.egress.leaves.queueing else { return 0..0 };
        let first = self.egress.leaves.numbered(port, lane, 0);
        let group = 1 + u16::from(lane);
        let groups = [group, group + self.lanes as u16];
        let its = |leaf: &u32| {
            let leaf = self.egress.leaves.get(*leaf);
            leaf.port == port && groups.contains(&leaf.queue)
        };
        let count = (first..self.egress.leaves.len() as u32).take_while(its).count() as u32;
        first..first + count
    }

    /// The numbered leaves of forwarded packets of a lane on `port`.
    pub fn forwarding_leaves(&self, port: u32, lane: u8) -> impl DoubleEndedIterator<Item = u32> + '_ {
        let forwards = |leaf: &u32| usize::from(self.egress.leaves.get(*leaf).queue) <= self.lanes;
        self.leaves_of(port, lane).filter(forwards)
    }

    /// Takes the first queue pair of a leaf out of it, to join another one.
    pub fn leaf_shift(&mut self, leaf: u32) {
        let at = self.egress.leaves.list(leaf);
        let flow = self.egress.queues[at].head;
        if self.blocking.is_some() {
            self.pair_leaves(flow);
        }
        let next = std::mem::replace(&mut self.hosts.senders[flow as usize].ring_next, NONE);
        self.egress.queues[at].head = next;
        if next == NONE {
            self.egress.queues[at].tail = NONE;
            self.leaf_stops(leaf);
        }
    }

    /// A queue pair joins a leaf.
    pub fn leaf_join(&mut self, leaf: u32, flow: u32) {
        if let Some(oracle) = &mut self.blocking {
            oracle.pair_joins(flow, self.egress.leaves.get(leaf).paused, self.now);
        }
        let list = &mut self.egress.queues[self.egress.leaves.first + leaf as usize];
        let tail = std::mem::replace(&mut list.tail, flow);
        if tail == NONE {
            list.head = flow;
            self.leaf_filled(leaf);
        } else {
            self.hosts.senders[tail as usize].ring_next = flow;
        }
    }
}

impl Queues for Core<'_> {
    fn pause_queue(&mut self, port: u32, lane: u8, target: Target) {
        self.check_queues(port, lane);
        // Packets of a flow may come back through its own host: both of its queues there stop at once.
        let mut pause = None;
        for leaf in self.named(port, lane, target) {
            if self.egress.leaves.get(leaf).paused {
                continue;
            }
            self.leaf_stops(leaf);
            let standing = *pause.get_or_insert_with(|| {
                let pause = self.new_pause(port, lane, Some(number_of(target)));
                self.observed.leaf_pause_begins(pause)
            });
            let l = &mut self.egress.leaves.leaves[leaf as usize];
            (l.paused, l.standing) = (true, standing);
        }
    }

    fn resume_queue(&mut self, port: u32, lane: u8, target: Target) {
        self.check_queues(port, lane);
        let mut ended = NONE;
        for leaf in self.named(port, lane, target) {
            if !self.egress.leaves.get(leaf).paused {
                continue;
            }
            if self.blocking.is_some() {
                self.leaf_resumes(leaf, self.now);
            }
            let l = &mut self.egress.leaves.leaves[leaf as usize];
            l.paused = false;
            let standing = std::mem::replace(&mut l.standing, NONE);
            if std::mem::replace(&mut ended, standing) != standing {
                self.observed.leaf_pause_ends(self.now, standing);
            }
            if self.egress.queues[self.egress.leaves.list(leaf)].head != NONE {
                self.leaf_filled(leaf);
            }
        }
        self.post_decision(port);
    }

    fn pause_queue_for(&mut self, port: u32, lane: u8, queue: u16, root: u32) {
        let named = std::mem::replace(&mut self.observed.named, root);
        self.pause_queue(port, lane, Target::Queue(queue));
        self.observed.named = named;
    }

    fn queue_bytes(&self, port: u32, lane: u8, queue: u16) -> u64 {
        self.check_queues(port, lane);
        self.pulled_bytes(port, lane, queue)
    }

    fn onward(&self, hop: u32, distance: u32) -> Onward {
        if self.chooser.is_some() {
            return match self.plan.ahead(hop, distance) {
                Ahead::Port(port) => Onward::Port(port),
                Ahead::Unknown => Onward::Unknown,
                Ahead::End => Onward::End,
            };
        }
        // No caller reads beyond the end.
        match self.hops.get(hop as usize + distance as usize) {
            Some(&port) if port < ENDS => Onward::Port(port),
            _ => Onward::End,
        }
    }

    fn is_paused(&self, port: u32, lane: u8, queue: u16) -> bool {
        self.check_queues(port, lane);
        self.egress.leaves.get(self.egress.leaves.numbered(port, lane, queue)).paused
    }

    fn active_queues(&self, port: u32, lane: u8) -> u32 {
        self.check_queues(port, lane);
        self.egress.leaves.active(port, 1 + usize::from(lane))
    }
}

/// Whether a packet waits in the scheme's queues, rather than in that of ACKs.
#[inline]
pub fn waits(core: &Core, id: u32) -> bool {
    core.packets[id].kind == Kind::Data || !core.egress.leaves.apart()
}

/// The first queue pair of a leaf makes its packet.
#[inline]
pub fn make<F: Features>(core: &mut Core, scheme: &mut FlowControl, leaf: u32, size: u32) -> u32 {
    let l = core.egress.leaves.get_mut(leaf);
    l.deficit -= size;
    let (port, queue, group) = (l.port, usize::from(l.queue), l.group);
    let flow = core.egress.queues[core.egress.leaves.list(leaf)].head;
    let id = core.serve_ring::<F>(port, queue);
    core.egress.queues[group as usize].data_packets += 1;
    if !core.hosts.senders[flow as usize].in_ring {
        own_left(core, scheme, flow);
    }
    id
}

/// A queue pair has nothing to send for now, and has left its leaf.
pub fn own_left(core: &mut Core, scheme: &mut FlowControl, flow: u32) {
    let mut entry = core.passing_flow(flow);
    entry.queue = core.egress.leaves.number(core.egress.leaves.of_flow(flow));
    scheme.left(core, &mut entry);
}
