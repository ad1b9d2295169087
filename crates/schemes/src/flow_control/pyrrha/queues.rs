//! Queues: the queue that a packet joins, and the actions that the length of a queue causes.

use super::port::{Iq, PortState, State};
use super::{At, Merging, Organisation, Pyrrha, is_deaf, ports_of};
use crate::flow_control::device::Queues;
use crate::flow_control::{Onward, QueueEntry};
use xoff_wire::queue_pause::Target;

/// The ports on the path after `hop`, from so many hops on, each with its distance.
fn ahead(device: &impl Queues, hop: u32, from: u32) -> impl Iterator<Item = (u32, u32)> {
    let hops = (from..).map(move |distance| (distance, device.onward(hop, distance)));
    hops.take_while(|(_, next)| *next != Onward::End).filter_map(|(distance, next)| match next {
        Onward::Port(root) => Some((distance, root)),
        Onward::Unknown | Onward::End => None,
    })
}

impl Pyrrha {
    /// Single tier: the queue that a packet whose turn has come goes on to.
    pub(super) fn next_set(&mut self, device: &mut impl Queues, at: At, packet: &mut QueueEntry) -> u16 {
        packet.passed = 1;
        if let Some(queue) = self.flows.before(packet) {
            return queue;
        }
        let mut roots = self.matched(device, at, packet.hop);
        let own = self.ports[at.index].iq(packet.queue).roots.clone();
        if roots.iter().all(|root| own.contains(root)) {
            return 0;
        }
        let queue = self.assign(device, at, &roots);
        if !self.flows.is_behind(packet, queue) {
            return queue;
        }
        // Later ones of its flow wait there: it needs a queue of its own before it.
        roots.extend(own);
        roots.sort_unstable();
        roots.dedup();
        let queue = self.assign(device, at, &roots);
        if self.flows.is_behind(packet, queue) { 0 } else { queue }
    }

    /// Hierarchical: the IQ of the next root on the packet's path.
    pub(super) fn next_level(&mut self, device: &mut impl Queues, at: At, packet: &mut QueueEntry) -> u16 {
        let (state, hard) = (&self.ports[at.index], self.params.merging == Merging::Hard);
        let taking =
            |(distance, root)| Some((distance, state.entry(root).filter(|e| e.takes_packets(hard))?));
        let next = ahead(device, packet.hop, u32::from(packet.passed) + 1).find_map(taking);
        let Some((distance, entry)) = next else { return 0 };
        let (root, known) = (entry.root, entry.queue);
        packet.passed = distance as u16;
        known.unwrap_or_else(|| self.assign_to(device, at, root))
    }

    /// Single tier: the queue of an arriving packet.
    pub(super) fn set_queue(&mut self, device: &mut impl Queues, at: At, packet: &QueueEntry) -> u16 {
        let state = &self.ports[at.index];
        let merges = |root: &u32| state.entry(*root).is_some_and(|e| e.state == State::SoftMerging);
        let hard = self.params.merging == Merging::Hard;
        let last = self.flows.last(packet);
        if let Some(queue) = last.filter(|&queue| !(hard && state.iq(queue).roots.iter().any(merges))) {
            return queue;
        }
        let roots = self.matched(device, at, packet.hop);
        if roots.is_empty() { 0 } else { self.assign(device, at, &roots) }
    }

    /// The paused roots on the path after `hop`, in order of their number.
    fn matched(&self, device: &impl Queues, at: At, hop: u32) -> Vec<u32> {
        let state = &self.ports[at.index];
        let paused = |root: &u32| state.entry(*root).is_some_and(|e| e.state == State::Paused);
        let mut roots: Vec<u32> = ahead(device, hop, 1).map(|(_, root)| root).filter(paused).collect();
        roots.sort_unstable();
        // A loop crosses it again and again.
        roots.dedup();
        roots
    }

    /// A host's queue pair waits in the IQ of the nearest paused root on its path.
    pub(super) fn gate(&mut self, device: &mut impl Queues, at: At, pair: &QueueEntry) -> u16 {
        let state = &self.ports[at.index];
        let paused = |(_, root)| state.entry(root).filter(|e| e.state == State::Paused);
        let Some(entry) = ahead(device, pair.hop, 1).find_map(paused) else { return 0 };
        let (root, known) = (entry.root, entry.queue);
        known.unwrap_or_else(|| self.assign_to(device, at, root))
    }

    /// Hierarchical: a queue for the entry of a root that has none.
    pub(super) fn assign_to(&mut self, device: &mut impl Queues, at: At, root: u32) -> u16 {
        let queue = self.assign(device, at, &[root]);
        self.ports[at.index].entry_mut(root).expect("the caller has found it").queue = Some(queue);
        queue
    }

    fn assign(&mut self, device: &mut impl Queues, at: At, roots: &[u32]) -> u16 {
        let state = &mut self.ports[at.index];
        if let Some(queue) = state.queue_of(roots) {
            return queue;
        }
        let (queue, shared) = state.assign(roots, self.params.queues);
        self.tally.shared += u64::from(shared);
        let in_use = self.of_port(at.port).iter().map(PortState::queues_in_use).sum();
        let peak = &mut self.tally.peak_queues[at.port as usize];
        *peak = (*peak).max(in_use);
        self.settle(device, at, queue);
        queue
    }

    /// By lane.
    fn of_port(&self, port: u32) -> &[PortState] {
        let lanes = self.priorities.len();
        &self.ports[port as usize * lanes..][..lanes]
    }

    /// Something joined `queue`, perhaps as the first.
    fn count_filled(&mut self, at: At, queue: u16) {
        if self.ports[at.index].iq(queue).members == 1 {
            let filled = self.of_port(at.port).iter().map(PortState::queues_filled).sum();
            let peak = &mut self.tally.peak_filled[at.port as usize];
            *peak = (*peak).max(filled);
        }
    }

    /// Pauses or resumes a queue as its roots are.
    fn settle(&mut self, device: &mut impl Queues, at: At, queue: u16) {
        let state = &mut self.ports[at.index];
        let mut cause = state.paused_root(queue);
        let was = state.iq(queue).paused;
        if let Some(root) = was.filter(|&root| state.entry(root).is_some_and(|e| e.state == State::Paused)) {
            // It goes on for the root that it has been paused for.
            cause = Some(root);
        }
        if was == cause {
            return;
        }
        state.iq_mut(queue).paused = cause;
        let own = self.params.places.host[at.port as usize].then_some(self.own() + queue);
        for number in [Some(queue), own].into_iter().flatten() {
            if was.is_some() {
                device.resume_queue(at.port, at.lane, Target::Queue(number));
            }
            if let Some(root) = cause {
                device.pause_queue_for(at.port, at.lane, number, root);
            }
        }
    }

    pub(super) fn settle_all(&mut self, device: &mut impl Queues, at: At, root: u32) {
        for queue in self.ports[at.index].queues_of(root) {
            self.settle(device, at, queue);
        }
    }

    /// A packet (or queue pair) joined a queue; it arrived, or moved to an IQ.
    pub(super) fn enqueued(&mut self, device: &mut impl Queues, packet: &QueueEntry) {
        let at = self.at(packet.port, packet.lane);
        if packet.own {
            let queue = packet.queue - self.own();
            if queue > 0 {
                self.ports[at.index].iq_mut(queue).members += 1;
                self.count_filled(at, queue);
            }
            return;
        }
        if packet.queue == 0 {
            return self.joined_oq(device, at, packet);
        }
        self.ports[at.index].iq_mut(packet.queue).members += 1;
        self.count_filled(at, packet.queue);
        let state = &mut self.ports[at.index];
        let iq = state.iq_mut(packet.queue);
        iq.bytes = packet.queued;
        let single = self.params.organisation == Organisation::SingleTier;
        if single {
            self.flows.joined(packet, packet.passed > 0);
        }
        let ingress = packet.ingress.filter(|&i| !is_deaf(&self.params, i));
        let counted = ingress.filter(|_| self.params.variant.count_by_ingress);
        let counted = counted.map(|i| iq.count(i, u64::from(packet.size), true));
        let k_pause = self.params.k_pause[at.port as usize];
        if packet.queued > k_pause && state.merges_away(packet.queue) {
            if !self.params.variant.merging_never_pauses {
                self.joined_oq(device, at, packet);
            }
            return;
        }
        let Some(ingress) = ingress else { return };
        let length = if self.params.variant.count_over_ports {
            self.bytes_over_ports(device, at, packet.queue, counted.map(|_| ingress))
        } else {
            counted.unwrap_or(packet.queued)
        };
        if length <= k_pause {
            return;
        }
        let state = &self.ports[at.index];
        if !single {
            if let Onward::Port(root) = device.onward(packet.hop, packet.passed.into()) {
                self.hold(device, at, root, ingress);
            }
            return;
        }
        let roots = state.iq(packet.queue).roots.clone();
        let paused = |root: &u32| state.entry(*root).is_some_and(|e| e.state == State::Paused);
        let some = roots.iter().any(paused);
        let causes: Vec<u32> = roots.iter().copied().filter(|root| !some || paused(root)).collect();
        for root in causes {
            self.hold(device, at, root, ingress);
        }
    }

    fn joined_oq(&mut self, device: &mut impl Queues, at: At, packet: &QueueEntry) {
        let k_pause = self.params.k_pause[at.port as usize];
        let state = &mut self.ports[at.index];
        if let Some(since) = &mut state.unarmed {
            *since += u64::from(packet.size);
        }
        if packet.queued <= k_pause {
            return;
        }
        if state.claimed {
            let Some(ingress) = packet.ingress.filter(|&i| !is_deaf(&self.params, i)) else { return };
            if !state.holding.contains(&ingress) {
                state.holding.push(ingress);
                let id = self.params.places.id(at.port, state.epoch);
                self.ask(device, at, at.port, id, ingress);
            }
        } else if self.params.variant.reclaim_at_once || state.unarmed.is_none_or(|since| since > k_pause) {
            state.claimed = true;
            state.unarmed = None;
            state.epoch = state.epoch.wrapping_add(1);
            self.tally.claims += 1;
            self.settle_quiet(at);
        }
    }

    /// A packet (or queue pair) left a queue: for the wire, or for another queue.
    pub(super) fn left(&mut self, device: &mut impl Queues, packet: &QueueEntry) {
        let at = self.at(packet.port, packet.lane);
        let k_resume = self.params.k_resume[at.port as usize];
        let queue = if packet.own { packet.queue - self.own() } else { packet.queue };
        if queue == 0 {
            if !packet.own && packet.queued <= k_resume {
                self.drained_oq(device, at);
            }
            return;
        }
        let iq = self.ports[at.index].iq_mut(queue);
        iq.members -= 1;
        if !packet.own {
            iq.bytes = packet.queued;
            if self.params.organisation == Organisation::SingleTier {
                self.flows.left(packet);
            }
        }
        let ingress = packet.ingress.filter(|&i| !is_deaf(&self.params, i));
        if let Some(ingress) = ingress.filter(|_| self.params.variant.count_by_ingress) {
            let mut length = self.ports[at.index].iq_mut(queue).count(ingress, u64::from(packet.size), false);
            if self.params.variant.count_over_ports {
                length = self.bytes_over_ports(device, at, queue, Some(ingress));
            }
            if length <= k_resume {
                self.drained_of(device, at, queue, ingress);
            }
        }
        let state = &self.ports[at.index];
        let empty = state.iq(queue).members == 0;
        if state.claimed
            && state.iq(queue).bytes <= k_resume
            && state.merges_away(queue)
            && device.queue_bytes(at.port, at.lane, 0) <= k_resume
        {
            self.drained_oq(device, at);
        }
        let state = &self.ports[at.index];
        let may_hold = self.params.variant.count_over_ports || state.holds_for(queue);
        if empty || state.iq(queue).bytes <= k_resume && may_hold {
            for root in state.iq(queue).roots.clone() {
                self.drained(device, at, root);
                if empty {
                    self.try_release(device, at, root);
                }
            }
        }
    }

    /// The OQ is down to K_resume: no neighbour waits for it, unless a queue that is emptied into it is
    /// longer.
    pub(super) fn drained_oq(&mut self, device: &mut impl Queues, at: At) {
        if self.pulled.quiet[at.index] > 0 {
            return;
        }
        let state = &mut self.ports[at.index];
        if !state.has_asked() && state.unarmed.is_none() {
            // Its OQ has paused no neighbour, as in nearly all cases.
            if state.is_quiet() {
                self.settle_quiet(at);
            }
            return;
        }
        state.unarmed = None;
        if self.params.waits_for_merging(at.port, state) {
            return;
        }
        let (epoch, holding) = (state.epoch, std::mem::take(&mut state.holding));
        self.let_go(device, at, at.port, epoch, holding);
        self.try_unroot(device, at);
    }

    /// Most bytes for a root of `queue` in the isolation queues of all ports of the device, or those from
    /// `ingress`.
    fn bytes_over_ports(&self, device: &impl Queues, at: At, queue: u16, ingress: Option<u32>) -> u64 {
        let of_root = |&root: &u32| self.bytes_for(device, at, root, ingress);
        self.ports[at.index].iq(queue).roots.iter().map(of_root).max().unwrap_or(0)
    }

    fn bytes_for(&self, device: &impl Queues, at: At, root: u32, ingress: Option<u32>) -> u64 {
        let ports = (0..).map_while(|i| device.port_of(at.port, i));
        let queues = ports.flat_map(|port| &self.ports[self.at(port, at.lane).index].queues);
        let bytes = |iq: &Iq| ingress.map_or(iq.bytes, |ingress| iq.bytes_from(ingress));
        queues.filter(|iq| iq.roots.contains(&root)).map(bytes).sum()
    }

    /// Those whom the queues of `root` have stopped may go on, if these are short now.
    pub(super) fn drained(&mut self, device: &mut impl Queues, at: At, root: u32) {
        let k_resume = self.params.k_resume[at.port as usize];
        if self.params.variant.count_over_ports {
            if self.bytes_for(device, at, root, None) <= k_resume {
                for port in ports_of(device, at.port) {
                    let other = self.at(port, at.lane);
                    let Some(entry) = self.ports[other.index].entry_mut(root) else { continue };
                    let (epoch, holding) = (entry.epoch, std::mem::take(&mut entry.holding));
                    self.let_go(device, other, root, epoch, holding);
                }
            }
            return;
        }
        let state = &mut self.ports[at.index];
        if state.queues_of(root).iter().any(|&queue| state.iq(queue).bytes > k_resume) {
            return;
        }
        let Some(entry) = state.entry_mut(root) else { return };
        let (epoch, holding) = (entry.epoch, std::mem::take(&mut entry.holding));
        self.let_go(device, at, root, epoch, holding);
    }

    /// The bytes from `ingress` in `queue` are few now.
    fn drained_of(&mut self, device: &mut impl Queues, at: At, queue: u16, ingress: u32) {
        let over_ports = self.params.variant.count_over_ports;
        let ports = if over_ports { ports_of(device, at.port) } else { vec![at.port] };
        for root in self.ports[at.index].iq(queue).roots.clone() {
            for &port in &ports {
                let other = self.at(port, at.lane);
                let Some(entry) = self.ports[other.index].entry_mut(root) else { continue };
                if let Some(held) = entry.holding.iter().position(|&i| i == ingress) {
                    entry.holding.swap_remove(held);
                    let epoch = entry.epoch;
                    self.let_go(device, other, root, epoch, vec![ingress]);
                }
            }
        }
    }
}
