//! Frames: a device's frames to its upstream neighbours about its trees, and its reactions to received
//! frames.

use super::frame::{RootId, RootPauseFrame, Word};
use super::port::{Entry, State, later};
use super::{At, Merging, Organisation, Pyrrha, ports_of, trees};
use crate::flow_control::ControlFrame;
use crate::flow_control::device::Queues;

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

    /// A root disappears when its OQ is down to K_resume and no upstream neighbour has an IQ for it. Called
    /// when the former is true.
    pub(super) fn try_unroot(&mut self, device: &mut impl Queues, at: At) {
        let claimed = self.ports[at.index].claimed;
        if claimed && !self.any((device.device_of(at.port), at.lane, at.port)) {
            self.ports[at.index].claimed = false;
        }
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
    }

    /// `frame` arrived at `port` and has taken effect.
    pub(super) fn received(&mut self, device: &mut impl Queues, port: u32, frame: &RootPauseFrame) {
        let lane = self.priorities.iter().position(|&p| p == frame.priority);
        let (Some(lane), Some(root)) = (lane, self.params.places.port(frame.root)) else { return };
        let at = self.at(port, lane as u8);
        if frame.word == Word::Release {
            return self.released(device, at, root, frame.sequence);
        }
        let deaf = !self.params.hosts_obey && self.params.places.host[port as usize];
        match frame.word {
            Word::Release => {}
            Word::Pause if deaf => self.refuse(device, at, frame.root, frame.sequence),
            Word::Merge { .. } if deaf => {}
            Word::Pause => {
                let later = |e: &Entry| e.state == State::SoftMerging && e.epoch != frame.root.epoch;
                let is_new = self.ports[at.index].entry(root).is_none_or(later);
                if !self.stop(device, at, root, frame.root, frame.sequence) {
                    return;
                }
                // A packet of this port has caused it. A MERGE may concern none of its packets: a root
                // remains one.
                if is_new && self.ports[at.index].claimed && self.params.merging != Merging::Off {
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
            Word::Merge { into } => self.merge(device, at, root, frame.root.epoch, into),
        }
    }

    /// Says that nothing is assigned to a root.
    fn refuse(&mut self, device: &mut impl Queues, at: At, root: RootId, sequence: u16) {
        self.send(device, at.port, at.lane, Word::Release, root, sequence);
    }

    /// Packets through `root` stop. Returns whether the state has changed.
    fn stop(&mut self, device: &mut impl Queues, at: At, root: u32, id: RootId, sequence: u16) -> bool {
        if root == at.port {
            self.tally.own_roots += 1;
            self.refuse(device, at, id, sequence);
            return false;
        }
        let state = &mut self.ports[at.index];
        match state.entry_mut(root) {
            None => {
                state.insert(Entry::new(root, id.epoch, sequence));
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

    /// Packets through `root` may continue.
    fn go(&mut self, device: &mut impl Queues, at: At, root: u32) {
        let Some(entry) = self.ports[at.index].entry_mut(root) else { return };
        if entry.state == State::Paused {
            entry.state = State::Resumed;
            self.settle_all(device, at, root);
            self.drained(device, at, root);
            self.try_release(device, at, root);
        }
    }

    /// MERGE(`old` → `into`) arrived.
    fn merge(&mut self, device: &mut impl Queues, at: At, old: u32, epoch: u16, into: RootId) {
        let state = &mut self.ports[at.index];
        let merged = match state.entry_mut(old) {
            Some(entry) => {
                // No port there needs anything of a later epoch; a port that does sends a frame.
                (entry.state, entry.epoch) = (State::SoftMerging, epoch);
                Some(std::mem::take(&mut entry.holding))
            }
            None => None,
        };
        if let Some(holding) = merged {
            self.settle_all(device, at, old);
            self.merge_tree(device, at, old, epoch, holding, into);
            self.try_release(device, at, old);
        }
    }

    /// A queue of this port was part of the tree of `old`, and may have been `holding` some neighbours; the
    /// tree becomes part of that of `into`. This pauses no upstream neighbour for `into`, because its packets
    /// need not go through it. A packet through `into` that joins a too long queue does so. (Otherwise ports
    /// would wait for ports that none of their packets cross, in cycles where routes have none.)
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
        for ingress in self.trees.assigned(key) {
            // A neighbour that another port still pauses for the old root waits for the frames of that port.
            if !self.trees.is_held(key, ingress) {
                self.send(device, ingress, at.lane, Word::Merge { into }, id, 0);
            }
        }
    }

    /// The neighbour at `at.port` has nothing assigned to `root` any more.
    fn released(&mut self, device: &mut impl Queues, at: At, root: u32, sequence: u16) {
        let key = (device.device_of(at.port), at.lane, root);
        if self.trees.released(key, at.port, sequence) {
            self.after_release(device, at, root);
        }
    }

    /// Somebody upstream is no part of the tree of `root` any more.
    fn after_release(&mut self, device: &mut impl Queues, at: At, root: u32) {
        for port in ports_of(device, at.port) {
            let other = self.at(port, at.lane);
            if port == root {
                let state = &self.ports[other.index];
                let k_resume = self.params.k_resume[port as usize];
                let short = device.queue_bytes(port, at.lane, 0) <= k_resume && !state.long_merging(k_resume);
                if state.claimed && short {
                    self.try_unroot(device, other);
                }
            } else {
                self.try_release(device, other, root);
            }
        }
    }

    /// The link of `port` has failed. The neighbour that paused it is gone, and so are those that were paused
    /// through it.
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
