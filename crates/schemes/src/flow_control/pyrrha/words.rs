//! Frames: a device's frames to its upstream neighbours about its trees, and its reactions to received
//! frames.

use super::frame::{RootId, RootPauseFrame, Word};
use super::port::{Entry, State, later};
use super::{At, Merging, Organisation, Pyrrha, ports_of, trees};
use crate::flow_control::{ControlFrame, device::Queues};

impl Pyrrha {
    /// The queue of `root` at a port wants `ingress` paused.
    pub(super) fn hold(&mut self, device: &mut impl Queues, at: At, root: u32, ingress: u32) {
        let Some(entry) = self.ports[at.index].entry_mut(root) else { return };
        if entry.state == State::SoftMerging || entry.holding.contains(&ingress) {
            return;
        }
        entry.holding.push(ingress);
        let id = self.params.places.id(root, entry.epoch);
        self.ask(device, at, root, id, ingress);
    }

    /// One more queue of the device wants the neighbour at `ingress` to stop for `root`.
    pub(super) fn ask(&mut self, device: &mut impl Queues, at: At, root: u32, id: RootId, ingress: u32) {
        let key = (device.device_of(at.port), at.lane, root);
        if let Some(sequence) = self.trees.hold(key, ingress) {
            self.send(device, ingress, at.lane, Word::Pause, id, sequence);
        }
    }

    /// Queues of `at` let all go that they have stopped for `root`.
    pub(super) fn let_go(
        &mut self,
        device: &mut impl Queues,
        at: At,
        root: u32,
        epoch: u16,
        holding: Vec<u32>,
    ) {
        let key = (device.device_of(at.port), at.lane, root);
        let id = self.params.places.id(root, epoch);
        for ingress in holding {
            if let Some(sequence) = self.trees.let_go(key, ingress) {
                self.send(device, ingress, at.lane, Word::Resume, id, sequence);
            }
        }
    }

    fn send(
        &mut self,
        device: &mut impl Queues,
        port: u32,
        lane: u8,
        word: Word,
        root: RootId,
        sequence: u16,
    ) {
        match word {
            Word::Merge { .. } => self.tally.merges += 1,
            Word::Release => {
                let host = self.params.places.host[port as usize];
                if host && self.params.variant.hosts_are_no_leaves {
                    return;
                }
                self.tally.releases += 1;
                self.tally.host_releases += u64::from(host);
            }
            Word::Pause | Word::Resume => {}
        }
        let priority = self.priorities[usize::from(lane)];
        device.send_control(port, ControlFrame::RootPause(RootPauseFrame { word, root, priority, sequence }));
    }

    /// A root whose OQ is down to K_resume disappears when no upstream neighbour has an IQ for it.
    pub(super) fn try_unroot(&mut self, device: &mut impl Queues, at: At) {
        let state = &self.ports[at.index];
        let remains = state.claimed && self.any((device.device_of(at.port), at.lane, at.port));
        self.ports[at.index].claimed = remains;
        self.settle_quiet(at);
    }

    /// Whether anybody upstream has something assigned to a root.
    fn any(&self, key: trees::Key) -> bool {
        let all = !self.params.variant.hosts_are_no_leaves;
        self.trees.any(key, |ingress| all || !self.params.places.to_host[ingress as usize])
    }

    /// An IQ is released: Figure 6.
    pub(super) fn try_release(&mut self, device: &mut impl Queues, at: At, root: u32) {
        let key = (device.device_of(at.port), at.lane, root);
        let state = &self.ports[at.index];
        let Some(entry) = state.entry(root) else { return };
        let empty = state.queues_of(root).iter().all(|&queue| state.iq(queue).members == 0);
        if entry.state == State::Paused || !empty || self.any(key) {
            return;
        }
        let Entry { epoch, sequence, holding, .. } = self.ports[at.index].remove(root);
        self.let_go(device, at, root, epoch, holding);
        let id = self.params.places.id(root, epoch);
        self.send(device, at.port, at.lane, Word::Release, id, sequence);
        self.settle_quiet(at);
        if self.params.variant.merge_enters_resumed {
            // Its packets may have been the only ones for a queue that a MERGE assigned.
            let others = &self.ports[at.index].entries;
            let others = others.iter().filter(|e| e.state == State::Resumed).map(|e| e.root);
            for other in others.collect::<Vec<_>>() {
                self.try_release(device, at, other);
            }
        }
    }

    pub(super) fn received(&mut self, device: &mut impl Queues, port: u32, frame: &RootPauseFrame) {
        let lane = self.priorities.iter().position(|&p| p == frame.priority);
        let (Some(lane), Some(root)) = (lane, self.params.places.port(frame.root)) else { return };
        let at = self.at(port, lane as u8);
        let deaf = !self.params.hosts_obey && self.params.places.host[port as usize];
        match frame.word {
            Word::Release => {
                if self.trees.released((device.device_of(port), at.lane, root), port, frame.sequence) {
                    self.after_release(device, at, root);
                }
            }
            // It says that nothing is assigned to the root.
            Word::Pause if deaf => {
                self.send(device, port, at.lane, Word::Release, frame.root, frame.sequence);
            }
            Word::Merge { into } if deaf => {
                if self.params.variant.merge_enters_resumed {
                    self.send(device, port, at.lane, Word::Release, into, frame.sequence);
                }
            }
            Word::Pause => {
                let later = |e: &Entry| e.state == State::SoftMerging && e.epoch != frame.root.epoch;
                let is_new = self.ports[at.index].entry(root).is_none_or(later);
                if !self.stop(device, at, root, frame.root, frame.sequence) {
                    return;
                }
                // A packet of this port has caused it, as need not be so of a MERGE: a root remains one.
                let may_merge = self.params.merging != Merging::Off
                    && (self.params.places.down[at.port as usize] || !self.params.variant.merge_down_only);
                if is_new && may_merge && self.ports[at.index].claimed {
                    self.abdicate(device, at, frame.root);
                }
                if self.params.organisation == Organisation::Hiq
                    && self.ports[at.index].entry(root).is_some_and(|e| e.queue.is_none())
                {
                    // A packet through this port caused the frame, and more will come.
                    self.assign_to(device, at, root);
                }
            }
            Word::Resume => self.go(device, at, root),
            Word::Merge { into } => self.merge(device, at, root, frame, into),
        }
    }

    /// Packets through `root` stop. Returns whether the state has changed.
    fn stop(&mut self, device: &mut impl Queues, at: At, root: u32, id: RootId, sequence: u16) -> bool {
        if root == at.port {
            self.tally.own_roots += 1;
            self.send(device, at.port, at.lane, Word::Release, id, sequence);
            return false;
        }
        let state = &mut self.ports[at.index];
        match state.entry_mut(root) {
            None => {
                state.entries.push(Entry::new(root, id.epoch, sequence));
                self.settle_quiet(at);
            }
            Some(entry) => {
                entry.sequence = sequence;
                let anew = later(id.epoch, entry.epoch);
                if entry.state == State::SoftMerging && !anew {
                    return false;
                }
                entry.state = State::Paused;
                if anew {
                    entry.epoch = id.epoch;
                }
            }
        }
        self.settle_all(device, at, root);
        let claimed = self.ports[at.index].claimed;
        if claimed && device.queue_bytes(at.port, at.lane, 0) <= self.params.k_resume[at.port as usize] {
            // It was one for a queue that merged away, and waits for its root again.
            self.drained_oq(device, at);
        }
        true
    }

    /// The port is a false root: some packets that congest it go through `into`.
    fn abdicate(&mut self, device: &mut impl Queues, at: At, into: RootId) {
        let long = device.queue_bytes(at.port, at.lane, 0) > self.params.k_resume[at.port as usize];
        let state = &mut self.ports[at.index];
        state.claimed = false;
        state.unarmed = long.then_some(0);
        let (epoch, holding) = (state.epoch, std::mem::take(&mut state.holding));
        self.tally.abdications += 1;
        self.merge_tree(device, at, at.port, epoch, holding, into);
    }

    fn go(&mut self, device: &mut impl Queues, at: At, root: u32) {
        let entry = self.ports[at.index].entry_mut(root);
        let Some(entry) = entry.filter(|e| e.state == State::Paused) else { return };
        entry.state = State::Resumed;
        self.settle_all(device, at, root);
        self.drained(device, at, root);
        self.try_release(device, at, root);
    }

    fn merge(&mut self, device: &mut impl Queues, at: At, old: u32, frame: &RootPauseFrame, into: RootId) {
        let epoch = frame.root.epoch;
        let Some(entry) = self.ports[at.index].entry_mut(old) else {
            if self.params.variant.merge_enters_resumed {
                self.send(device, at.port, at.lane, Word::Release, into, frame.sequence);
            }
            return;
        };
        // No port there needs anything of a later epoch; a port that does sends a frame.
        (entry.state, entry.epoch) = (State::SoftMerging, epoch);
        let holding = std::mem::take(&mut entry.holding);
        self.settle_all(device, at, old);
        if self.params.variant.merge_enters_resumed {
            self.enter_resumed(device, at, into, frame.sequence);
        }
        self.merge_tree(device, at, old, epoch, holding, into);
        self.try_release(device, at, old);
    }

    /// The tree of `old`, for which a queue of this port may have been `holding` neighbours, becomes part of
    /// that of `into`. This pauses no neighbour for `into`: only a packet through `into` that joins a too
    /// long queue does. (Otherwise ports would wait for ports that none of their packets cross, in cycles.)
    fn merge_tree(
        &mut self,
        device: &mut impl Queues,
        at: At,
        old: u32,
        epoch: u16,
        holding: Vec<u32>,
        into: RootId,
    ) {
        let key = (device.device_of(at.port), at.lane, old);
        for ingress in holding {
            self.trees.forget(key, ingress);
        }
        let id = self.params.places.id(old, epoch);
        let new = self.params.places.port(into).filter(|_| self.params.variant.merge_enters_resumed);
        for ingress in self.trees.assigned(key) {
            // A neighbour that another port still pauses for the old root waits for the frames of that port.
            if !self.trees.is_held(key, ingress) {
                let sequence = new.map_or(0, |new| self.trees.adopt((key.0, key.1, new), ingress));
                self.send(device, ingress, at.lane, Word::Merge { into }, id, sequence);
            }
        }
    }

    /// A MERGE, with the number `sequence`, assigns a queue to the new root, which stops nobody.
    fn enter_resumed(&mut self, device: &mut impl Queues, at: At, into: RootId, sequence: u16) {
        let root = self.params.places.port(into).filter(|&root| root != at.port);
        let Some(root) = root else {
            return self.send(device, at.port, at.lane, Word::Release, into, sequence);
        };
        let state = &mut self.ports[at.index];
        match state.entry_mut(root) {
            Some(entry) => entry.sequence = sequence,
            None => {
                let entry = Entry::new(root, into.epoch, sequence);
                state.entries.push(Entry { state: State::Resumed, ..entry });
                if self.params.organisation == Organisation::Hiq {
                    self.assign_to(device, at, root);
                }
            }
        }
    }

    /// Somebody upstream is no part of the tree of `root` any more.
    fn after_release(&mut self, device: &mut impl Queues, at: At, root: u32) {
        for port in ports_of(device, at.port) {
            let other = self.at(port, at.lane);
            if port == root {
                let state = &self.ports[other.index];
                let short = device.queue_bytes(port, at.lane, 0) <= self.params.k_resume[port as usize];
                if state.claimed && short && !self.params.waits_for_merging(port, state) {
                    self.try_unroot(device, other);
                }
            } else {
                self.try_release(device, other, root);
            }
        }
    }

    /// The neighbour that paused `port` is gone, and so are those that were paused through it.
    pub(super) fn link_failed(&mut self, device: &mut impl Queues, port: u32, lane: u8) {
        let at = self.at(port, lane);
        let roots: Vec<u32> = self.ports[at.index].entries.iter().map(|e| e.root).collect();
        for &root in &roots {
            let Some(entry) = self.ports[at.index].entry_mut(root) else { continue };
            entry.state = State::Resumed;
            let (epoch, holding) = (entry.epoch, std::mem::take(&mut entry.holding));
            self.settle_all(device, at, root);
            self.let_go(device, at, root, epoch, holding);
        }
        for root in roots {
            self.try_release(device, at, root);
        }
        let device_of = device.device_of(port);
        for root in self.trees.remove_child(device_of, lane, port) {
            for other in ports_of(device, port) {
                let index = self.at(other, lane).index;
                self.ports[index].forget(root, port, other == root);
            }
            self.after_release(device, at, root);
        }
    }
}
