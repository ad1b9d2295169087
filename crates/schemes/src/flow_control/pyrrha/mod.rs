//! Pyrrha (Zhang et al., *Analysis of Pyrrha: Congestion-Root-Based Flow Control Is
//! Most Cost-Effective to Eliminate Head-of-Line Blocking*, IEEE Transactions on
//! Networking 2026): what goes through one congested port waits apart, at every hop
//! before it, and nothing else does.
//!
//! **Queues** (section IV-C). An egress port has an output queue, the *OQ*, which is
//! never paused, and *isolation queues*, *IQs*, one for each congestion root that lies
//! ahead ([`Organisation::Hiq`]) or for each set of such roots
//! ([`Organisation::SingleTier`]). A packet's levels are the roots on its own onward
//! path, the nearest first. It joins the IQ of the nearest one; when its turn comes
//! there it goes on to the IQ of the next, and from the last one to the OQ. The
//! schedulers of the levels serve their queues in turn, by equal weights, and so does
//! the wire: one turn of deficit round robin for the OQ and one for each IQ that may
//! send (`pyrrha.scheduling`). Queues are *pulled*: a packet leaves an IQ when the wire
//! is free and it is this IQ's turn. It then goes behind the OQ's packets and the OQ's
//! first packet is sent in its place, so that a flow's earlier packets there stay
//! before it, while the OQ keeps its length and no port is congested by its own IQs.
//! A packet whose next IQ is paused moves there and uses no wire time: it blocks
//! nobody behind it.
//!
//! **Roots** (section IV-A), at the OQ of port p, of which *len* is the length:
//!
//! ```text
//!              packet arrives, len > K_pause, armed:  claim; epoch + 1
//!     no root ──────────────────────────────────────────────────────► root
//!             ◄──────────────────────────────────────────────────────
//!              len ≤ K_resume and no IQ upstream is assigned to p
//!             ◄──────────────────────────────────────────────────────
//!              PAUSE of a root r ahead that p did not know:
//!              abdicate; MERGE(p → r) to all upstream; not armed
//!
//!     root, each further packet from port i, len > K_pause:  PAUSE(p) to i, once
//!     a packet leaves, len ≤ K_resume:  RESUME(p) to all that are paused;  armed
//! ```
//!
//! A port that has abdicated with a full OQ would claim again with the next packet;
//! it is armed again when *len* has been down to K_resume, or when what has arrived
//! since exceeds K_pause by itself (`pyrrha.reclaim-after-merge`).
//!
//! **Isolation queues** (Figure 6), at port p for a root r ahead:
//!
//! ```text
//!     unassigned ── PAUSE(r) ──► paused ── RESUME(r) ──► resumed
//!                                  ▲ ◄── PAUSE(r) ──────── │
//!        paused or resumed ── MERGE(r → s) ──► soft-merging
//!        soft-merging ── PAUSE(r) of a later epoch ──► paused
//!        resumed or soft-merging, and empty, and no IQ upstream assigned to r:
//!                                              RELEASE(r) downstream ──► unassigned
//!
//!     a packet from port i joins, length > K_pause, not soft-merging: PAUSE(r) to i, once
//!     a packet leaves, length ≤ K_resume: RESUME(r) to all that it has paused
//!     MERGE(r → s) goes on to all upstream that are assigned to r
//! ```
//!
//! A soft-merging IQ waits for nothing but its port's own wire: when it is longer than
//! K_pause, the port is congested as by its OQ, and claims and pauses for itself.
//! A MERGE names the new root and stops nobody for it: that is for a packet that goes
//! through it and joins a queue that is too long. (The paper has the new root's entry
//! made at once. Then ports wait for roots that none of their packets come to, and do so
//! in circles.) Nor does a root abdicate for a MERGE, of which its own packets need not
//! be part.
//!
//! A PAUSE after a MERGE whose epoch is old is ignored (`pyrrha.merge-in-flight`).
//! Packets that match a soft-merging root keep joining its IQ while it holds any, so
//! that none overtakes those inside (`pyrrha.reorder-single-tier`); from there the
//! congested ones go on to the IQ of the new root, where that is known by then, and the
//! others to the OQ. A device
//! can reach a root through several of its ports: it pauses an upstream neighbour
//! while the queue of any of them asks for it, and resumes it when none does.
//!
//! **Release** (`pyrrha.unassign-signal`). The paper has a root end when all IQs
//! upstream are unassigned, and no word that tells it. RELEASE does, hop by hop from
//! the leaves. It repeats the sequence number of the last frame that has paused its
//! sender, and one that crosses a newer PAUSE on the wire is not heard.
//!
//! **A port's own root.** A PAUSE that names the port which receives it is ignored
//! (section IV-E, `pyrrha.own-root-pause`) and answered by a RELEASE.
//!
//! **When IQs run out**, a hash of the root (or set) picks one, which is paused while
//! any of its roots is (`pyrrha.iq-exhaustion`). In a single tier a packet whose new queue
//! holds later ones of its flow then goes to the OQ, so as to stay in order.
//!
//! **Hosts** hold queue pairs back, each while any root on its path is paused: a queue
//! pair waits in the IQ of the nearest one. So a paused root stops its flows and no
//! others. Or they take no notice, as [`PyrrhaParams::hosts_obey`] says.
//!
//! **Single tier.** There is one queue for each set of roots that packets match, which
//! may send while none of the set is paused. A packet joins the queue that holds its
//! flow's last packet; without one, that of the paused roots on its path. When its turn
//! comes, and its path by then has other roots that are paused than the queue's, it moves
//! to the queue of these; packets of its flow behind it follow while it is there, so that
//! none overtakes it (`pyrrha.reorder-single-tier`). A queue that is too long pauses for those of its
//! roots that are paused, or for all.
//!
//! **Lost frames.** The paper sends each word once. What a link loses is lost.

mod port;
mod seen;
mod trees;

use super::pfc::{Pfc, PfcParams};
use super::{ControlFrame, Device, Onward, Passing};
use port::{Entry, FlowPlaces, PortState, State, later};
pub use seen::Ahead;
use std::sync::Arc;
use trees::Trees;
use xoff_kernel::time::Time;
use xoff_wire::queue_pause::Target;
use xoff_wire::root_pause::{RootId, RootPauseFrame, Word};

/// How isolation queues are organised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Organisation {
    /// Hierarchical: a queue for each root, passed through from near to far.
    #[default]
    Hiq,
    /// A queue for each set of roots.
    SingleTier,
}

/// What happens to the tree of a port that was no root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Merging {
    /// Its queues are let go, and emptied in order: into those of roots ahead that are
    /// known here, and into the OQ.
    #[default]
    Soft,
    /// The same, but its queues take no more packets: later ones may overtake.
    Hard,
    /// It goes on as a root.
    Off,
}

/// Rules that are read otherwise, to see what they do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// Every IQ that may send feeds the OQ a packet whenever one is sent, rather than in
    /// turn with it.
    pub push: bool,
    /// A port that has abdicated is armed.
    pub reclaim_at_once: bool,
    /// Hosts say no RELEASE, and nobody waits for one of theirs.
    pub hosts_are_no_leaves: bool,
    /// An IQ pauses and resumes a neighbour by what has come from it alone.
    pub count_by_ingress: bool,
}

/// Parameters of Pyrrha, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PyrrhaParams {
    /// How isolation queues are organised.
    pub organisation: Organisation,
    /// What becomes of roots that were none.
    pub merging: Merging,
    /// Isolation queues of a port and priority, at least 1.
    pub queues: u16,
    /// By port: K_pause, in bytes.
    pub k_pause: Vec<u64>,
    /// By port: K_resume, in bytes, at most K_pause.
    pub k_resume: Vec<u64>,
    /// Hosts hold their queue pairs back, or take no notice of frames.
    pub hosts_obey: bool,
    /// Packets of ACKs wait as data do, rather than in a queue that is served first.
    pub acks_in_queues: bool,
    /// Rules that are read otherwise.
    pub variant: Variant,
    /// By port, where some switches know PFC alone: the link is one of theirs, so that
    /// no frame of Pyrrha's crosses it. Empty where all know Pyrrha.
    pub deaf: Vec<bool>,
    /// PFC on those links.
    pub pfc: Option<PfcParams>,
    /// Who is who.
    pub places: Arc<Places>,
    /// From the arrival of a frame's last bit until it takes effect.
    pub response_time: Time,
}

/// The ports of a network, as frames name them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// By port: its device, and its number there.
    pub of: Vec<(u32, u16)>,
    /// By device: its ports.
    pub ports: Vec<Vec<u32>>,
    /// By port: its device is a host.
    pub host: Vec<bool>,
    /// By port: its neighbour is one.
    pub to_host: Vec<bool>,
}

impl Places {
    /// The root that `port` is, with its `epoch`.
    fn id(&self, port: u32, epoch: u16) -> RootId {
        let (switch, port) = self.of[port as usize];
        RootId { switch, port, epoch }
    }

    /// The port that a frame names, if there is one.
    pub fn port(&self, root: RootId) -> Option<u32> {
        self.ports.get(root.switch as usize)?.get(usize::from(root.port)).copied()
    }
}

/// What Pyrrha did in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Ports that have claimed to be a root, each time.
    pub claims: u64,
    /// Ports that have abdicated.
    pub abdications: u64,
    /// Frames sent that merge a tree into another.
    pub merges: u64,
    /// Frames sent that give an isolation queue back …
    pub releases: u64,
    /// … by hosts among them.
    pub host_releases: u64,
    /// Frames ignored because they name the port that received them.
    pub own_roots: u64,
    /// Times that a root (or set of roots) had to share a queue with another one.
    pub shared: u64,
    /// Packets that went on from one isolation queue to another.
    pub moves: u64,
    /// By port: most isolation queues in use at a time, over all priorities.
    pub peak_queues: Vec<u16>,
}

impl Tally {
    /// Adds what happened in another part of the run.
    pub fn add(&mut self, other: &Self) {
        self.claims += other.claims;
        self.abdications += other.abdications;
        self.merges += other.merges;
        self.releases += other.releases;
        self.host_releases += other.host_releases;
        self.own_roots += other.own_roots;
        self.shared += other.shared;
        self.moves += other.moves;
        self.peak_queues.resize(self.peak_queues.len().max(other.peak_queues.len()), 0);
        for (mine, theirs) in self.peak_queues.iter_mut().zip(&other.peak_queues) {
            *mine = (*mine).max(*theirs);
        }
    }
}

/// A port and lane, with the index of its state.
#[derive(Clone, Copy, Debug)]
struct At {
    port: u32,
    lane: u8,
    index: usize,
}

/// Pyrrha on every port of a run; each device's state stands alone.
#[derive(Clone, Debug)]
pub struct Pyrrha {
    params: PyrrhaParams,
    priorities: Vec<u8>,
    /// By port and lane.
    ports: Vec<PortState>,
    trees: Trees,
    /// Single tier: where the last packets of flows wait.
    flows: FlowPlaces,
    /// On the links of switches that know nothing else.
    pub(super) pfc: Option<Pfc>,
    tally: Tally,
}

impl Pyrrha {
    pub(super) fn new(params: &PyrrhaParams, ports: usize, priorities: &[u8]) -> Self {
        Self {
            params: params.clone(),
            priorities: priorities.to_vec(),
            ports: vec![PortState::default(); ports * priorities.len()],
            trees: Trees::default(),
            flows: FlowPlaces::default(),
            pfc: params.pfc.map(|pfc| Pfc::new(pfc, ports, priorities)),
            tally: Tally { peak_queues: vec![0; ports], ..Tally::default() },
        }
    }

    /// What it has done so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    fn at(&self, port: u32, lane: u8) -> At {
        At { port, lane, index: port as usize * self.priorities.len() + usize::from(lane) }
    }

    /// Whether an arriving packet can only join the OQ of a port, and be of no interest
    /// there while the OQ holds no more than K_pause.
    #[inline]
    pub fn is_quiet(&self, port: u32, lane: u8) -> bool {
        self.ports[port as usize * self.priorities.len() + usize::from(lane)].quiet
    }

    /// K_pause of a port.
    #[inline]
    pub fn k_pause(&self, port: u32) -> u64 {
        self.params.k_pause[port as usize]
    }

    /// As [`Variant::push`].
    #[inline]
    pub fn pushes(&self) -> bool {
        self.params.variant.push
    }

    /// Numbers of queues of packets come first at a port, then those of a host's queue
    /// pairs: where the latter begin.
    fn own(&self) -> u16 {
        self.params.queues + 1
    }

    /// The queue that a packet joins next: one that arrives (`packet.passed` is 0), or
    /// one whose turn has come in an IQ. 0 is the OQ.
    pub(super) fn classify(&mut self, device: &mut impl Device, packet: &mut Passing) -> u16 {
        let at = self.at(packet.port, packet.lane);
        if self.ports[at.index].entries.is_empty() {
            return if packet.own { self.own() } else { 0 };
        }
        match (self.params.organisation, packet.own) {
            (_, true) => self.own() + self.gate(device, at, packet),
            (Organisation::Hiq, _) => self.next_level(device, at, packet),
            (Organisation::SingleTier, _) => self.set_queue(device, at, packet),
        }
    }

    /// A packet's turn has come in `packet.queue`; the queue that it goes on to, 0 being
    /// the OQ. Of a queue pair: the queue that it belongs to now.
    pub(super) fn onward(&mut self, device: &mut impl Device, packet: &mut Passing) -> u16 {
        let at = self.at(packet.port, packet.lane);
        if packet.own {
            return self.classify(device, packet);
        }
        let next = match self.params.organisation {
            Organisation::Hiq => self.classify(device, packet),
            Organisation::SingleTier => self.next_set(device, at, packet),
        };
        self.tally.moves += u64::from(next > 0);
        next
    }

    /// Single tier: the queue that a packet whose turn has come goes on to.
    fn next_set(&mut self, device: &mut impl Device, at: At, packet: &mut Passing) -> u16 {
        packet.passed = 1;
        if let Some(queue) = self.flows.before(packet) {
            return queue;
        }
        let mut roots = self.matched(device, at, packet.hop);
        let own = self.ports[at.index].queue_roots(packet.queue).to_vec();
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

    /// Hierarchical: the IQ of the next root on the packet's way.
    fn next_level(&mut self, device: &mut impl Device, at: At, packet: &mut Passing) -> u16 {
        let mut distance = u32::from(packet.passed);
        loop {
            distance += 1;
            let root = match device.onward(packet.hop, distance) {
                Onward::Port(root) => root,
                Onward::Unknown => continue,
                Onward::End => return 0,
            };
            let hard = self.params.merging == Merging::Hard;
            let Some(entry) = self.ports[at.index].entry(root).filter(|e| e.takes_packets(hard)) else {
                continue;
            };
            packet.passed = distance as u16;
            return match entry.queue {
                Some(queue) => queue,
                None => {
                    let queue = self.assign(device, at, &[root]);
                    self.ports[at.index].entry_mut(root).expect("found above").queue = Some(queue);
                    queue
                }
            };
        }
    }

    /// Single tier: the queue of an arriving packet.
    fn set_queue(&mut self, device: &mut impl Device, at: At, packet: &Passing) -> u16 {
        let state = &self.ports[at.index];
        let merges = |root: &u32| state.entry(*root).is_some_and(|e| e.state == State::SoftMerging);
        let hard = self.params.merging == Merging::Hard;
        let last = self.flows.last(packet);
        if let Some(queue) = last.filter(|&queue| !(hard && state.queue_roots(queue).iter().any(merges))) {
            return queue;
        }
        let roots = self.matched(device, at, packet.hop);
        if roots.is_empty() { 0 } else { self.assign(device, at, &roots) }
    }

    /// The paused roots on the way behind `hop`, in order of their number.
    fn matched(&self, device: &impl Device, at: At, hop: u32) -> Vec<u32> {
        let mut roots = Vec::new();
        for distance in 1.. {
            match device.onward(hop, distance) {
                Onward::End => break,
                Onward::Unknown => {}
                Onward::Port(root) => {
                    if self.ports[at.index].entry(root).is_some_and(|e| e.state == State::Paused) {
                        roots.push(root);
                    }
                }
            }
        }
        roots.sort_unstable();
        // A loop crosses it again and again.
        roots.dedup();
        roots
    }

    /// A host's queue pair waits in the IQ of the nearest root on its way that is paused.
    fn gate(&mut self, device: &mut impl Device, at: At, pair: &Passing) -> u16 {
        for distance in 1.. {
            let root = match device.onward(pair.hop, distance) {
                Onward::Port(root) => root,
                Onward::Unknown => continue,
                Onward::End => break,
            };
            let Some(entry) = self.ports[at.index].entry(root).filter(|e| e.state == State::Paused) else {
                continue;
            };
            return match entry.queue {
                Some(queue) => queue,
                None => {
                    let queue = self.assign(device, at, &[root]);
                    self.ports[at.index].entry_mut(root).expect("found above").queue = Some(queue);
                    queue
                }
            };
        }
        0
    }

    /// The queue of a set of roots, a new one if need be.
    fn assign(&mut self, device: &mut impl Device, at: At, roots: &[u32]) -> u16 {
        let state = &mut self.ports[at.index];
        if let Some(queue) = state.queue_of(roots) {
            return queue;
        }
        let (queue, shared) = state.assign(roots, self.params.queues);
        self.tally.shared += u64::from(shared);
        let lanes = self.priorities.len();
        let of_port = &self.ports[at.port as usize * lanes..][..lanes];
        let in_use = of_port.iter().map(PortState::queues_in_use).sum();
        let peak = &mut self.tally.peak_queues[at.port as usize];
        *peak = (*peak).max(in_use);
        self.settle(device, at, queue);
        queue
    }

    /// Pauses or resumes a queue as its roots are.
    fn settle(&mut self, device: &mut impl Device, at: At, queue: u16) {
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

    /// The same of all queues of a root.
    fn settle_all(&mut self, device: &mut impl Device, at: At, root: u32) {
        for queue in self.ports[at.index].queues_of(root) {
            self.settle(device, at, queue);
        }
    }

    /// A packet (or queue pair) joined a queue; it arrived, or moved to an IQ.
    pub(super) fn enqueued(&mut self, device: &mut impl Device, packet: &Passing) {
        let at = self.at(packet.port, packet.lane);
        if packet.own {
            let queue = packet.queue - self.own();
            if queue > 0 {
                self.ports[at.index].iq_mut(queue).members += 1;
            }
            return;
        }
        if packet.queue == 0 {
            return self.joined_oq(device, at, packet);
        }
        let state = &mut self.ports[at.index];
        let iq = state.iq_mut(packet.queue);
        iq.members += 1;
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
            return self.joined_oq(device, at, packet);
        }
        let Some(ingress) = ingress else { return };
        let length = counted.unwrap_or(packet.queued);
        if length <= k_pause {
            return;
        }
        if !single {
            if let Onward::Port(root) = device.onward(packet.hop, packet.passed.into()) {
                self.hold(device, at, root, ingress);
            }
            return;
        }
        let roots = state.queue_roots(packet.queue).to_vec();
        let paused = |root: &u32| state.entry(*root).is_some_and(|e| e.state == State::Paused);
        let some = roots.iter().any(paused);
        let causes: Vec<u32> = roots.iter().copied().filter(|root| !some || paused(root)).collect();
        for root in causes {
            self.hold(device, at, root, ingress);
        }
    }

    /// A packet arrived at the OQ.
    fn joined_oq(&mut self, device: &mut impl Device, at: At, packet: &Passing) {
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
            state.quiet = false;
            self.tally.claims += 1;
        }
    }

    /// The queue of `root` at a port wants `ingress` paused.
    fn hold(&mut self, device: &mut impl Device, at: At, root: u32, ingress: u32) {
        let Some(entry) = self.ports[at.index].entry_mut(root) else { return };
        if entry.state == State::SoftMerging || entry.holding.contains(&ingress) {
            return;
        }
        entry.holding.push(ingress);
        let id = self.params.places.id(root, entry.epoch);
        self.ask(device, at, root, id, ingress);
    }

    /// One more queue of the device wants the neighbour at `ingress` to stop for `root`.
    fn ask(&mut self, device: &mut impl Device, at: At, root: u32, id: RootId, ingress: u32) {
        let key = (device.device_of(at.port), at.lane, root);
        if let Some(sequence) = self.trees.hold(key, ingress) {
            self.send(device, ingress, at.lane, Word::Pause, id, sequence);
        }
    }

    /// Queues of `at` let all go that they have stopped for `root`.
    fn let_go(&mut self, device: &mut impl Device, at: At, root: u32, epoch: u16, holding: Vec<u32>) {
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
        device: &mut impl Device,
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

    /// A packet (or queue pair) left a queue: for the wire, or for another queue.
    pub(super) fn left(&mut self, device: &mut impl Device, packet: &Passing) {
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
        if let Some(ingress) = ingress.filter(|_| self.params.variant.count_by_ingress)
            && self.ports[at.index].iq_mut(queue).count(ingress, u64::from(packet.size), false) <= k_resume
        {
            self.drained_of(device, at, queue, ingress);
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
        if empty || state.iq(queue).bytes <= k_resume && state.holds_for(queue) {
            for root in state.queue_roots(queue).to_vec() {
                self.drained(device, at, root);
                if empty {
                    self.try_release(device, at, root);
                }
            }
        }
    }

    /// The OQ is down to K_resume: nobody waits for it, unless a queue that is emptied
    /// into it is longer.
    fn drained_oq(&mut self, device: &mut impl Device, at: At) {
        let state = &mut self.ports[at.index];
        if state.quiet {
            return;
        }
        state.unarmed = None;
        if state.long_merging(self.params.k_resume[at.port as usize]) {
            return;
        }
        let (epoch, holding) = (state.epoch, std::mem::take(&mut state.holding));
        self.let_go(device, at, at.port, epoch, holding);
        self.try_unroot(device, at);
    }

    /// Those whom the queues of `root` have stopped may go on, if these are short now.
    fn drained(&mut self, device: &mut impl Device, at: At, root: u32) {
        let k_resume = self.params.k_resume[at.port as usize];
        let state = &mut self.ports[at.index];
        if state.queues_of(root).iter().any(|&queue| state.iq(queue).bytes > k_resume) {
            return;
        }
        let Some(entry) = state.entry_mut(root) else { return };
        let (epoch, holding) = (entry.epoch, std::mem::take(&mut entry.holding));
        self.let_go(device, at, root, epoch, holding);
    }

    /// What has come from `ingress` to `queue` is little now.
    fn drained_of(&mut self, device: &mut impl Device, at: At, queue: u16, ingress: u32) {
        for root in self.ports[at.index].queue_roots(queue).to_vec() {
            let Some(entry) = self.ports[at.index].entry_mut(root) else { continue };
            if let Some(held) = entry.holding.iter().position(|&i| i == ingress) {
                entry.holding.swap_remove(held);
                let epoch = entry.epoch;
                self.let_go(device, at, root, epoch, vec![ingress]);
            }
        }
    }

    /// A root disappears when its OQ is down to K_resume and nobody upstream has an IQ
    /// for it. Told when the former is so.
    fn try_unroot(&mut self, device: &mut impl Device, at: At) {
        let claimed = self.ports[at.index].claimed;
        if claimed && !self.any((device.device_of(at.port), at.lane, at.port)) {
            self.ports[at.index].claimed = false;
        }
        self.ports[at.index].set_quiet();
    }

    /// Whether anybody upstream has something assigned to a root.
    fn any(&self, key: trees::Key) -> bool {
        let all = !self.params.variant.hosts_are_no_leaves;
        self.trees.any(key, |ingress| all || !self.params.places.to_host[ingress as usize])
    }

    /// An IQ is given back: Figure 6.
    fn try_release(&mut self, device: &mut impl Device, at: At, root: u32) {
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
        self.ports[at.index].set_quiet();
    }

    /// `frame` arrived at `port` and has taken effect.
    pub(super) fn received(&mut self, device: &mut impl Device, port: u32, frame: &RootPauseFrame) {
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
                // A packet of this port has caused it. What a MERGE says need not concern
                // any: who is a root stays one.
                if is_new && self.ports[at.index].claimed && self.params.merging != Merging::Off {
                    self.abdicate(device, at, frame.root);
                }
                if self.params.organisation == Organisation::Hiq
                    && self.ports[at.index].entry(root).is_some_and(|e| e.queue.is_none())
                {
                    // The frame was caused by what goes through this port, and more will come.
                    let queue = self.assign(device, at, &[root]);
                    self.ports[at.index].entry_mut(root).expect("it is paused").queue = Some(queue);
                }
            }
            Word::Resume => self.go(device, at, root),
            Word::Merge { into } => self.merge(device, at, root, frame.root.epoch, into),
        }
    }

    /// Says that nothing is assigned to a root.
    fn refuse(&mut self, device: &mut impl Device, at: At, root: RootId, sequence: u16) {
        self.send(device, at.port, at.lane, Word::Release, root, sequence);
    }

    /// What goes through `root` stops. Answers whether it has.
    fn stop(&mut self, device: &mut impl Device, at: At, root: u32, id: RootId, sequence: u16) -> bool {
        if root == at.port {
            self.tally.own_roots += 1;
            self.refuse(device, at, id, sequence);
            return false;
        }
        let state = &mut self.ports[at.index];
        state.quiet = false;
        match state.entry_mut(root) {
            None => state.insert(Entry::new(root, id.epoch, sequence)),
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

    /// The port is no root: part of what congests it goes through `into`.
    fn abdicate(&mut self, device: &mut impl Device, at: At, into: RootId) {
        let long = device.queue_bytes(at.port, at.lane, 0) > self.params.k_resume[at.port as usize];
        let state = &mut self.ports[at.index];
        state.claimed = false;
        state.unarmed = long.then_some(0);
        let (epoch, holding) = (state.epoch, std::mem::take(&mut state.holding));
        self.tally.abdications += 1;
        self.merge_tree(device, at, at.port, epoch, holding, into);
    }

    /// What goes through `root` may go on.
    fn go(&mut self, device: &mut impl Device, at: At, root: u32) {
        let Some(entry) = self.ports[at.index].entry_mut(root) else { return };
        if entry.state == State::Paused {
            entry.state = State::Resumed;
            self.settle_all(device, at, root);
            self.drained(device, at, root);
            self.try_release(device, at, root);
        }
    }

    /// MERGE(`old` → `into`) arrived.
    fn merge(&mut self, device: &mut impl Device, at: At, old: u32, epoch: u16, into: RootId) {
        let state = &mut self.ports[at.index];
        let merged = match state.entry_mut(old) {
            Some(entry) => {
                // Of a later epoch nobody there asks for anything; whoever does so says it.
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

    /// The tree of `old`, of which a queue of this port was part that was `holding` some,
    /// becomes part of that of `into`. Nobody upstream is stopped for `into` by this: what
    /// it sends to here need not go through it. It is when a packet that does joins a
    /// queue that is too long. (Else ports would wait for ports that none of their packets
    /// come to, in circles where routes have none.)
    fn merge_tree(
        &mut self,
        device: &mut impl Device,
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
            // Whom another port still stops for the old one waits for what that one hears.
            if !self.trees.is_held(key, ingress) {
                self.send(device, ingress, at.lane, Word::Merge { into }, id, 0);
            }
        }
    }

    /// The neighbour at `at.port` has nothing assigned to `root` any more.
    fn released(&mut self, device: &mut impl Device, at: At, root: u32, sequence: u16) {
        let key = (device.device_of(at.port), at.lane, root);
        if self.trees.released(key, at.port, sequence) {
            self.after_release(device, at, root);
        }
    }

    /// Somebody upstream is no part of the tree of `root` any more.
    fn after_release(&mut self, device: &mut impl Device, at: At, root: u32) {
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

    /// The link of `port` has failed. Who paused here is gone, and who was paused
    /// through it.
    pub(super) fn link_failed(&mut self, device: &mut impl Device, port: u32, lane: u8) {
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

/// Whether who is behind `port` knows PFC alone.
fn is_deaf(params: &PyrrhaParams, port: u32) -> bool {
    params.deaf.get(port as usize).is_some_and(|&deaf| deaf)
}

/// The ports of the device of `port`.
fn ports_of(device: &impl Device, port: u32) -> Vec<u32> {
    (0..).map_while(|i| device.port_of(port, i)).collect()
}

#[cfg(test)]
mod explore;
#[cfg(test)]
mod tests;
