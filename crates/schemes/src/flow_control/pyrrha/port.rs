//! What a port knows of the roots ahead, and its isolation queues.

use super::super::Passing;
use std::collections::BTreeMap;

/// States of an isolation queue: Figure 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Paused,
    Resumed,
    SoftMerging,
}

/// A root ahead: an entry of the congestion-root table.
#[derive(Clone, Debug)]
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

impl Entry {
    /// A root that has just said PAUSE.
    pub fn new(root: u32, epoch: u16, sequence: u16) -> Self {
        Self { root, state: State::Paused, epoch, sequence, queue: None, holding: Vec::new() }
    }

    /// Whether packets that go through the root join its queue: while it is paused, or
    /// while the queue may hold some that came before.
    pub fn takes_packets(&self, hard_merging: bool) -> bool {
        match self.state {
            State::Paused => true,
            State::Resumed => self.queue.is_some(),
            State::SoftMerging => self.queue.is_some() && !hard_merging,
        }
    }
}

/// An isolation queue.
#[derive(Clone, Debug, Default)]
pub struct Iq {
    /// Its roots, in order; none while it is unassigned.
    roots: Vec<u32>,
    /// Packets and queue pairs in it.
    pub members: u32,
    /// Bytes of its packets.
    pub bytes: u64,
    pub paused: bool,
}

/// A port, of one lane.
#[derive(Clone, Debug)]
pub struct PortState {
    /// Nothing but the length of the OQ matters here.
    pub quiet: bool,
    /// It says that it is a root.
    pub claimed: bool,
    /// How many times it has, modulo 2^16.
    pub epoch: u16,
    /// It has abdicated, and so many bytes have arrived at its OQ since; it must not
    /// claim again before its OQ has been short.
    pub unarmed: Option<u64>,
    /// As a root: ports whose neighbours it has stopped.
    pub holding: Vec<u32>,
    /// Roots ahead.
    pub entries: Vec<Entry>,
    /// Isolation queues, from number 1 on, as far as any has been used.
    queues: Vec<Iq>,
}

impl Default for PortState {
    fn default() -> Self {
        Self {
            quiet: true,
            claimed: false,
            epoch: 0,
            unarmed: None,
            holding: Vec::new(),
            entries: Vec::new(),
            queues: Vec::new(),
        }
    }
}

impl PortState {
    pub fn entry(&self, root: u32) -> Option<&Entry> {
        self.entries.iter().find(|e| e.root == root)
    }

    pub fn entry_mut(&mut self, root: u32) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|e| e.root == root)
    }

    pub fn insert(&mut self, entry: Entry) {
        self.entries.push(entry);
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

    /// Roots of a queue.
    pub fn queue_roots(&self, queue: u16) -> &[u32] {
        &self.iq(queue).roots
    }

    /// Queues of a root.
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

    /// Whether a queue waits for none of its roots any more: each has turned out to be
    /// none, and what is inside waits for this port alone.
    pub fn merges_away(&self, queue: u16) -> bool {
        let merging = |root: &u32| self.entry(*root).is_some_and(|e| e.state == State::SoftMerging);
        let roots = &self.iq(queue).roots;
        !roots.is_empty() && roots.iter().all(merging)
    }

    /// Whether such a queue is longer than `bytes`.
    pub fn long_merging(&self, bytes: u64) -> bool {
        (1..).zip(&self.queues).any(|(queue, iq)| iq.bytes > bytes && self.merges_away(queue))
    }

    /// How many are assigned.
    pub fn queues_in_use(&self) -> u16 {
        self.queues.iter().filter(|iq| !iq.roots.is_empty()).count() as u16
    }

    /// The queue of a set of roots: its own, or a free one, or, of `most`, one that it
    /// shares with others. Answers whether it has to share.
    pub fn assign(&mut self, roots: &[u32], most: u16) -> (u16, bool) {
        if let Some(at) = self.queues.iter().position(|iq| iq.roots == roots) {
            return (at as u16 + 1, false);
        }
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
        let news = roots.iter().filter(|root| !known.contains(root)).copied().collect::<Vec<_>>();
        let shares = !news.is_empty();
        known.extend(news);
        known.sort_unstable();
        (at as u16 + 1, shares)
    }

    /// The neighbour at `ingress` is gone; `own` tells that the root is this port itself.
    pub fn forget(&mut self, root: u32, ingress: u32, own: bool) {
        if own {
            self.holding.retain(|&i| i != ingress);
        }
        if let Some(entry) = self.entry_mut(root) {
            entry.holding.retain(|&i| i != ingress);
        }
    }

    /// Whether nothing but the length of the OQ matters from now on.
    pub fn set_quiet(&mut self) {
        self.quiet =
            !self.claimed && self.unarmed.is_none() && self.holding.is_empty() && self.entries.is_empty();
    }
}

/// Single tier: how many packets of which flows wait in which isolation queues, and
/// where the last one of each flow is.
#[derive(Clone, Debug, Default)]
pub struct FlowPlaces {
    /// By port, flow, direction: the queue.
    last: BTreeMap<(u32, u32, bool), u16>,
    /// By port, flow, direction and queue.
    counts: BTreeMap<(u32, u32, bool, u16), u32>,
}

impl FlowPlaces {
    /// The IQ in which the last packet of the flow waits.
    pub fn last(&self, packet: &Passing) -> Option<u16> {
        self.last.get(&(packet.port, packet.flow, packet.answer)).copied()
    }

    /// A packet joined an IQ: it has arrived, or `moved` there from another one.
    pub fn joined(&mut self, packet: &Passing, moved: bool) {
        let Passing { port, flow, answer, queue, .. } = *packet;
        *self.counts.entry((port, flow, answer, queue)).or_default() += 1;
        let last = self.last.entry((port, flow, answer)).or_insert(queue);
        // What moves, and leaves others of its flow behind, is not the last one.
        if !moved {
            *last = queue;
        }
    }

    /// A packet left an IQ. All of its flow that are in other ones are ahead of it.
    pub fn left(&mut self, packet: &Passing) {
        let Passing { port, flow, answer, queue, .. } = *packet;
        let key = (port, flow, answer, queue);
        let count = self.counts.get_mut(&key).expect("it joined");
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&key);
            if self.last.get(&(port, flow, answer)) == Some(&queue) {
                self.last.remove(&(port, flow, answer));
            }
        }
    }
}
