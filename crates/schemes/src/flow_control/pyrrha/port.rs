//! The state of a port about the roots ahead, and its isolation queues.

use super::super::QueueEntry;
use std::collections::BTreeMap;

/// States of an isolation queue: Figure 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    Paused,
    Resumed,
    SoftMerging,
}

/// A root ahead: an entry of the congestion-root table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    pub root: u32,
    pub state: State,
    /// Of the root, when it last said PAUSE.
    pub epoch: u16,
    /// Of the last frame that said so.
    pub sequence: u16,
    /// Hierarchical: its IQ, if one is assigned.
    pub queue: Option<u16>,
    /// Ports whose neighbours its queues want stopped.
    pub holding: Vec<u32>,
}

/// Whether epoch `a` of a root is later than epoch `b`; they are counted modulo 2^16.
pub fn later(a: u16, b: u16) -> bool {
    (1..1 << 15).contains(&a.wrapping_sub(b))
}

impl Entry {
    pub fn new(root: u32, epoch: u16, sequence: u16) -> Self {
        Self { root, state: State::Paused, epoch, sequence, queue: None, holding: Vec::new() }
    }

    /// Hierarchical: whether packets through the root join its queue, which may hold some that came before.
    pub fn takes_packets(&self, hard_merging: bool) -> bool {
        match self.state {
            State::Paused => true,
            State::Resumed => self.queue.is_some(),
            State::SoftMerging => self.queue.is_some() && !hard_merging,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Iq {
    /// Its roots, in order; none while it is unassigned.
    pub roots: Vec<u32>,
    /// Packets and queue pairs in it.
    pub members: u32,
    /// Bytes of its packets.
    pub bytes: u64,
    /// The same by their ingress port, if the parameters require it.
    by_ingress: Vec<(u32, u64)>,
    /// The root that it is paused for.
    pub paused: Option<u32>,
}

impl Iq {
    pub fn bytes_from(&self, ingress: u32) -> u64 {
        self.by_ingress.iter().find(|&&(i, _)| i == ingress).map_or(0, |&(_, bytes)| bytes)
    }

    /// A packet of `size` bytes from `ingress` joins or leaves. Returns the bytes from there.
    pub fn count(&mut self, ingress: u32, size: u64, joins: bool) -> u64 {
        let at = self.by_ingress.iter().position(|&(i, _)| i == ingress).unwrap_or_else(|| {
            self.by_ingress.push((ingress, 0));
            self.by_ingress.len() - 1
        });
        let bytes = &mut self.by_ingress[at].1;
        *bytes = if joins { *bytes + size } else { *bytes - size };
        *bytes
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PortState {
    /// It says that it is a root.
    pub claimed: bool,
    /// How many times it has, modulo 2^16.
    pub epoch: u16,
    /// It has abdicated, so many bytes have arrived at its OQ since, and that must be short before it claims.
    pub unarmed: Option<u64>,
    /// As a root: ports whose neighbours it has stopped.
    pub holding: Vec<u32>,
    pub entries: Vec<Entry>,
    /// Isolation queues, from number 1 on, as far as any has been used.
    pub queues: Vec<Iq>,
}

impl PortState {
    pub fn entry(&self, root: u32) -> Option<&Entry> {
        self.entries.iter().find(|e| e.root == root)
    }

    pub fn entry_mut(&mut self, root: u32) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|e| e.root == root)
    }

    /// Removes a root whose queues are empty, and frees those that have no other root.
    pub fn remove(&mut self, root: u32) -> Entry {
        for iq in &mut self.queues {
            iq.roots.retain(|&r| r != root);
        }
        let at = self.entries.iter().position(|e| e.root == root).expect("the caller has found it");
        self.entries.swap_remove(at)
    }

    pub fn iq(&self, queue: u16) -> &Iq {
        &self.queues[usize::from(queue) - 1]
    }

    pub fn iq_mut(&mut self, queue: u16) -> &mut Iq {
        &mut self.queues[usize::from(queue) - 1]
    }

    pub fn queues_of(&self, root: u32) -> Vec<u16> {
        (1..).zip(&self.queues).filter(|(_, iq)| iq.roots.contains(&root)).map(|(queue, _)| queue).collect()
    }

    /// A root of the queue that is paused.
    pub fn paused_root(&self, queue: u16) -> Option<u32> {
        let paused = |root: &&u32| self.entry(**root).is_some_and(|e| e.state == State::Paused);
        self.iq(queue).roots.iter().find(paused).copied()
    }

    /// Whether any root of the queue has stopped somebody.
    pub fn holds_for(&self, queue: u16) -> bool {
        let holds = |root: &u32| self.entry(*root).is_some_and(|e| !e.holding.is_empty());
        self.iq(queue).roots.iter().any(holds)
    }

    /// Whether all roots of a queue are false roots: its packets wait only for this port.
    pub fn merges_away(&self, queue: u16) -> bool {
        let merging = |root: &u32| self.entry(*root).is_some_and(|e| e.state == State::SoftMerging);
        let roots = &self.iq(queue).roots;
        !roots.is_empty() && roots.iter().all(merging)
    }

    /// Whether such a queue is longer than `bytes`.
    pub fn long_merging(&self, bytes: u64) -> bool {
        (1..).zip(&self.queues).any(|(queue, iq)| iq.bytes > bytes && self.merges_away(queue))
    }

    pub fn queues_in_use(&self) -> u16 {
        self.queues.iter().filter(|iq| !iq.roots.is_empty()).count() as u16
    }

    /// Queues that hold packets or queue pairs.
    pub fn queues_filled(&self) -> u16 {
        self.queues.iter().filter(|iq| iq.members > 0).count() as u16
    }

    /// The queue that a set of roots has to itself, if there is one.
    pub fn queue_of(&self, roots: &[u32]) -> Option<u16> {
        self.queues.iter().position(|iq| iq.roots == roots).map(|at| at as u16 + 1)
    }

    /// Assigns a queue to a set of roots that has none: its own, or a free one, or, of `most`, one that it
    /// shares with others. Returns whether it has to share.
    pub fn assign(&mut self, roots: &[u32], most: u16) -> (u16, bool) {
        // One that is empty of roots, but still holds packets, is being emptied.
        let free = self.queues.iter().position(|iq| iq.roots.is_empty() && iq.members == 0);
        if let Some(at) = free {
            self.queues[at].roots = roots.to_vec();
            return (at as u16 + 1, false);
        }
        if self.queues.len() < usize::from(most) {
            self.queues.push(Iq { roots: roots.to_vec(), ..Iq::default() });
            return (self.queues.len() as u16, false);
        }
        // FNV-1a.
        let mix = |hash: u64, root: &u32| (hash ^ u64::from(*root)).wrapping_mul(0x0100_0000_01b3);
        let hash = roots.iter().fold(0xcbf2_9ce4_8422_2325, mix);
        let at = ((hash >> 16) % self.queues.len() as u64) as usize;
        let known = &mut self.queues[at].roots;
        let added = roots.iter().filter(|root| !known.contains(root)).copied().collect::<Vec<_>>();
        let shares = !added.is_empty();
        known.extend(added);
        known.sort_unstable();
        (at as u16 + 1, shares)
    }

    /// The neighbour at `ingress` is gone; `own` is whether the root is this port itself.
    pub fn forget(&mut self, root: u32, ingress: u32, own: bool) {
        if own {
            self.holding.retain(|&i| i != ingress);
        }
        if let Some(entry) = self.entry_mut(root) {
            entry.holding.retain(|&i| i != ingress);
        }
    }

    /// Whether nothing but the length of the OQ matters here.
    pub fn is_quiet(&self) -> bool {
        !self.has_asked() && self.unarmed.is_none() && self.entries.is_empty()
    }

    /// Whether it is a root, or has stopped somebody as one.
    pub fn has_asked(&self) -> bool {
        self.claimed || !self.holding.is_empty()
    }
}

/// Single tier: the isolation queues in which the packets of flows wait, one or a chain of queues for each
/// flow: an arriving packet joins the last one, a moved packet the one before its own, while the flow has
/// packets there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FlowPlaces {
    /// By port, flow and direction: queues, the farthest ahead first, and how many packets are in each.
    pub chains: BTreeMap<(u32, u32, bool), Vec<(u16, u32)>>,
    /// Of the packet that has just left a queue: how many queues of its chain are ahead.
    ahead: usize,
}

fn chain_of(packet: &QueueEntry) -> (u32, u32, bool) {
    (packet.port, packet.flow, packet.response)
}

impl FlowPlaces {
    /// The queue in which the last packet of the flow waits.
    pub fn last(&self, packet: &QueueEntry) -> Option<u16> {
        self.chains.get(&chain_of(packet)).and_then(|chain| chain.last()).map(|&(queue, _)| queue)
    }

    /// The queue before that which the packet has just left, if any of its flow is there.
    pub fn before(&self, packet: &QueueEntry) -> Option<u16> {
        let chain = self.chains.get(&chain_of(packet))?;
        chain.get(self.ahead.checked_sub(1)?).map(|&(queue, _)| queue)
    }

    /// Whether a packet that has just left a queue finds later ones of its flow in `queue`.
    pub fn is_behind(&self, packet: &QueueEntry, queue: u16) -> bool {
        let chain = self.chains.get(&chain_of(packet)).map_or(&[][..], Vec::as_slice);
        chain.iter().skip(self.ahead).any(|&(other, _)| other == queue)
    }

    /// A packet joined a queue: it has arrived, or it has just `moved` from another one.
    pub fn joined(&mut self, packet: &QueueEntry, moved: bool) {
        let chain = self.chains.entry(chain_of(packet)).or_default();
        match if moved { self.ahead } else { chain.len() }.checked_sub(1) {
            Some(at) if chain[at].0 == packet.queue => chain[at].1 += 1,
            at => chain.insert(at.map_or(0, |at| at + 1), (packet.queue, 1)),
        }
    }

    pub fn left(&mut self, packet: &QueueEntry) {
        let key = chain_of(packet);
        let chain = self.chains.get_mut(&key).expect("it joined");
        let at = chain.iter().position(|&(queue, _)| queue == packet.queue).expect("it joined");
        self.ahead = at;
        chain[at].1 -= 1;
        if chain[at].1 == 0 {
            chain.remove(at);
            if chain.is_empty() {
                self.chains.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five queues that hold packets: another set of roots shares one by FNV-1a of all its roots. The places
    /// were computed apart from this program.
    #[test]
    fn sets_that_share_spread_over_all_queues() {
        let full = |roots: &[u32]| {
            let mut port = PortState::default();
            for root in 100..105 {
                assert_eq!(port.assign(&[root], 5), (root as u16 - 99, false));
            }
            port.assign(roots, 5)
        };
        let sets: [&[u32]; 5] = [&[7], &[8], &[300], &[7, 9], &[1, 70_000]];
        assert_eq!(sets.map(full), [2, 3, 4, 2, 1].map(|queue| (queue, true)));
        // One whose roots are all there already shares nothing.
        let mut port = PortState::default();
        assert_eq!(port.assign(&[7], 1), (1, false));
        assert_eq!(
            [port.assign(&[7], 1), port.assign(&[8], 1), port.assign(&[8], 1)],
            [(1, false), (1, true), (1, false)]
        );
    }

    fn packet(queue: u16) -> QueueEntry {
        QueueEntry {
            port: 1,
            lane: 0,
            queue,
            own: false,
            size: 1_000,
            queued: 0,
            hop: 0,
            flow: 7,
            response: false,
            ingress: Some(0),
            upstream: 0,
            passed: 0,
            counted: false,
            pausing: false,
        }
    }

    /// Packets of a flow are in queues 2 and 5; one of queue 5 moves to queue 3, between the two.
    #[test]
    fn a_flow_keeps_its_order_over_queues() {
        let mut places = FlowPlaces::default();
        assert_eq!((places.last(&packet(2)), places.before(&packet(2))), (None, None));
        for queue in [2, 5, 5, 5] {
            places.joined(&packet(queue), false);
            assert_eq!(places.last(&packet(0)), Some(queue));
        }
        places.left(&packet(5));
        assert_eq!(places.before(&packet(5)), Some(2));
        assert!(places.is_behind(&packet(5), 5) && !places.is_behind(&packet(5), 2));
        places.joined(&packet(3), true);
        assert_eq!(places.last(&packet(0)), Some(5));
        // Another one of queue 5 moves after it, into the same queue.
        places.left(&packet(5));
        assert_eq!(places.before(&packet(5)), Some(3));
        places.joined(&packet(3), true);
        for (queue, last) in [(2, 5), (3, 5), (3, 5), (5, 0)] {
            places.left(&packet(queue));
            assert_eq!(places.last(&packet(0)).unwrap_or(0), last, "after queue {queue}");
        }
        assert!(places.chains.is_empty());
        // Another flow, direction or port has a chain of its own.
        places.joined(&packet(2), false);
        for other in [
            QueueEntry { flow: 8, ..packet(2) },
            QueueEntry { response: true, ..packet(2) },
            QueueEntry { port: 2, ..packet(2) },
        ] {
            assert_eq!(places.last(&other), None);
        }
    }
}
