//! The head-of-line blocking oracle. It sees everything and changes nothing.
//!
//! *Root of a pause.* A device pauses its upstream because packets pile up for
//! one of its egress ports: where accounts are paused (PFC), the egress that
//! holds most of the account's bytes; where queues are, the queue that was too
//! long. If that egress queue is not paused itself, its port is congested, and
//! the root. If it is, the root of its own pause is the root of this one, too.
//! So every pause is traced over all relayed pauses to the congested port at the
//! end of the chain, as it was when the device decided. A host that passes on a
//! pause blindly passes on its root. The root travels beside
//! the pause frame, outside of its bytes.
//!
//! *Charging.* A packet that waits in a paused queue is charged, for each pause,
//! the time from the pause's beginning (or its own arrival in the queue, if that
//! is later) to the pause's end (or the run's): to *own* if the root is on the
//! rest of its way, to *innocent* if not. A queue pair that has something to send
//! and stands in a paused queue of its NIC is charged alike, as a whole; this is
//! kept apart.

use crate::core::Core;
use crate::outcome::{Blame, Blocking, FlowBlame, Pause};
use crate::packet::NONE;
use std::collections::BTreeMap;
use xoff_kernel::time::Time;
use xoff_plan::plan::{ENDS, Plan};
use xoff_schemes::flow_control::{ControlFrame, Queueing, Target};

/// Roots by priority; what a control frame carries beside its bytes.
pub type Roots = [u32; 8];
const NO_ROOTS: Roots = [NONE; 8];

/// What the oracle keeps while a part of a run goes on.
pub struct Oracle {
    /// By packet: when it, or one that had its slot before, last joined a paused
    /// queue. Of one whose queue was not paused when it joined this is earlier
    /// than any pause that it sees, and so need not be cleared.
    joined: Vec<Time>,
    /// By flow: the same of its queue pair.
    pair_joined: Vec<Time>,
    /// By account: where its bytes by egress port of its device begin in `bytes`.
    rows: Vec<usize>,
    bytes: Vec<u64>,
    /// By slot of a control frame that is under way.
    frames: Vec<Roots>,
    /// Those of the frame that takes effect now.
    effective: Roots,
    /// The leaf that has just grown, and may be why its scheme sends a pause.
    grown: u32,
    /// The roots of pauses that stand and may be repeated, by ingress port,
    /// priority and what is paused.
    sent: BTreeMap<(u32, u8, Target), u32>,
    flows: Vec<FlowBlame>,
    /// By paused port and root.
    places: BTreeMap<(u32, u32), Blame>,
}

impl Oracle {
    /// Nothing has happened yet.
    pub fn new(plan: &Plan) -> Self {
        let (lanes, topology) = (plan.lanes.len(), &plan.topology);
        let mut rows = Vec::new();
        let mut all = 0;
        if plan.flow_control.queueing() == Queueing::PerLane {
            for port in &topology.ports {
                let degree = topology.nodes[port.node as usize].ports.len();
                for _ in 0..lanes {
                    rows.push(all);
                    all += degree;
                }
            }
        }
        Self {
            joined: Vec::new(),
            pair_joined: vec![0; plan.flows.len()],
            rows,
            bytes: vec![0; all],
            frames: Vec::new(),
            effective: NO_ROOTS,
            grown: NONE,
            sent: BTreeMap::new(),
            flows: vec![FlowBlame::default(); plan.flows.len()],
            places: BTreeMap::new(),
        }
    }

    /// A packet joined a queue.
    #[inline]
    pub fn packet_joins(&mut self, id: u32, paused: bool, now: Time) {
        if paused {
            let id = id as usize;
            if id >= self.joined.len() {
                self.joined.resize(id + 1, 0);
            }
            self.joined[id] = now;
        }
    }

    /// A queue pair joined a queue of its NIC.
    pub fn pair_joins(&mut self, flow: u32, paused: bool, now: Time) {
        if paused {
            self.pair_joined[flow as usize] = now;
        }
    }

    /// A packet that waits for the `egress`-th port of its device was charged to an account.
    #[inline]
    pub fn charged(&mut self, account: u32, egress: u16, size: u64) {
        if let Some(row) = self.rows.get(account as usize) {
            self.bytes[row + usize::from(egress)] += size;
        }
    }

    /// That charge is given back.
    #[inline]
    pub fn released(&mut self, account: u32, egress: u16, size: u64) {
        if let Some(row) = self.rows.get(account as usize) {
            self.bytes[row + usize::from(egress)] -= size;
        }
    }

    /// A leaf has grown, and its scheme is told; [`NONE`] when it has been told.
    pub fn grows(&mut self, leaf: u32) {
        self.grown = leaf;
    }

    /// The roots of a frame that leaves for another part of the run.
    pub fn roots_of(&self, slot: u32) -> Roots {
        self.frames.get(slot as usize).copied().unwrap_or(NO_ROOTS)
    }

    /// Keeps the roots of the frame in `slot`.
    pub fn keep(&mut self, slot: u32, roots: Roots) {
        let slot = slot as usize;
        if slot >= self.frames.len() {
            self.frames.resize(slot + 1, NO_ROOTS);
        }
        self.frames[slot] = roots;
    }

    /// The frame in `slot`, which still waits, takes up a later one's pauses.
    pub fn merge(&mut self, slot: u32, later: &Roots) {
        let waiting = &mut self.frames[slot as usize];
        waiting.iter_mut().zip(later).filter(|(_, root)| **root != NONE).for_each(|(w, &root)| *w = root);
    }

    /// The frame in `slot` takes effect; [`Oracle::effect_ends`] follows.
    pub fn takes_effect(&mut self, slot: u32) {
        self.effective = self.roots_of(slot);
    }

    /// Pauses that begin from now on are nobody's frame.
    pub fn effect_ends(&mut self) {
        self.effective = NO_ROOTS;
    }

    /// A pause begins. Answers its root, [`NONE`] if no frame is its cause.
    pub fn pause_begins(&mut self, port: u32, priority: u8) -> u32 {
        let root = self.effective[usize::from(priority)];
        if root != NONE {
            self.places.entry((port, root)).or_default().pauses += 1;
        }
        root
    }
}

/// Whether `root` is on the rest of a route.
fn crosses(hops: &[u32], at: u32, root: u32) -> bool {
    hops[at as usize..].iter().take_while(|&&port| port < ENDS).any(|&port| port == root)
}

impl Core<'_> {
    /// The roots of the pauses that `port` is about to send.
    #[cold]
    pub fn roots(&mut self, port: u32, frame: &ControlFrame) -> Roots {
        let mut roots = NO_ROOTS;
        match frame {
            ControlFrame::Pfc(frame) => {
                for (priority, _) in frame.entries().filter(|e| e.1 > 0) {
                    let lane = self.plan.lanes.iter().position(|l| l.priority == priority);
                    if let Some(lane) = lane {
                        roots[usize::from(priority)] = self.root_of_account(port, lane);
                    }
                }
            }
            ControlFrame::QueuePause(frame) => {
                let new = self.root_of_leaf();
                let Some(oracle) = &mut self.blocking else { return roots };
                let key = (port, frame.priority, frame.target);
                // What no leaf has just caused is a repeat.
                roots[usize::from(frame.priority)] = match (frame.pause, new) {
                    (true, NONE) => oracle.sent.get(&key).copied().unwrap_or(NONE),
                    (true, root) => {
                        oracle.sent.insert(key, root);
                        root
                    }
                    (false, _) => {
                        oracle.sent.remove(&key);
                        NONE
                    }
                };
            }
        }
        roots
    }

    /// Why the account of (`port`, `lane`) is over; or, where it is not and a host
    /// passes on a pause of another port, why that stands.
    fn root_of_account(&self, port: u32, lane: usize) -> u32 {
        let Some(oracle) = &self.blocking else { return NONE };
        let row = oracle.rows[port as usize * self.lanes + lane];
        let node = self.ports[port as usize].node;
        if self.plan.passes_pauses_on(node) && !self.accounts[port as usize * self.lanes + lane].over {
            let others = self.plan.relay_ports(node).iter().filter(|&&other| other != port);
            let mut pauses = others.filter_map(|&other| self.observed.standing(other, lane as u8));
            return pauses.find_map(|pause| pause.root).unwrap_or(NONE);
        }
        let ports = &self.plan.topology.nodes[node as usize].ports;
        let held = &oracle.bytes[row..row + ports.len()];
        let most = (0..ports.len()).rev().max_by_key(|&i| held[i]).filter(|&i| held[i] > 0);
        let Some(egress) = most.map(|i| ports[i]) else { return NONE };
        let onward = self.plan.onward_lane(lane as u8, port, egress);
        let standing = self.observed.standing(egress, onward);
        standing.and_then(|pause| pause.root).unwrap_or(egress)
    }

    /// Why the leaf that has just grown is too long.
    fn root_of_leaf(&self) -> u32 {
        let Some(oracle) = self.blocking.as_ref().filter(|o| o.grown != NONE) else { return NONE };
        let leaf = self.leaves.get(oracle.grown);
        let standing = self.observed.pauses.get(leaf.standing as usize);
        standing.and_then(|pause| pause.root).unwrap_or(leaf.port)
    }

    /// Charges those who waited for a pause in the list `at`: packets, or queue
    /// pairs if it is the host's `own`. The pause ends now.
    #[cold]
    pub fn charge_pause(&mut self, pause: &Pause, at: usize, own: bool, now: Time) {
        let (Some(oracle), Some(root)) = (&mut self.blocking, pause.root) else { return };
        let place = oracle.places.entry((pause.port, root)).or_default();
        let mut next = self.queues[at].head;
        // Few flows share a queue, packet by packet in turn: what is known of the
        // rest of their routes, by a hash of where that begins.
        let mut known = [(NONE, false); 64];
        while next != NONE {
            let (flow, hop, joined, behind) = if own {
                let sender = &self.senders[next as usize];
                (next, sender.path(), oracle.pair_joined[next as usize], sender.ring_next)
            } else {
                let packet = &self.packets[next];
                (packet.flow, packet.hop, oracle.joined.get(next as usize).copied().unwrap_or(0), packet.next)
            };
            let known = &mut known[(hop.wrapping_mul(0x9E37_79B9) >> 26) as usize];
            if known.0 != hop {
                *known = (hop, crosses(self.hops, hop, root));
            }
            let waited = now.saturating_sub(joined.max(pause.from));
            let flow = &mut oracle.flows[flow as usize];
            let (sum, its) = match (own, known.1) {
                (false, true) => (&mut place.own, &mut flow.own),
                (false, false) => (&mut place.innocent, &mut flow.innocent),
                (true, true) => (&mut place.source_own, &mut flow.source_own),
                (true, false) => (&mut place.source_innocent, &mut flow.source_innocent),
            };
            *sum += waited;
            *its += waited;
            next = behind;
        }
    }

    /// Charges for a lane's pause on `port`, which ends now.
    #[cold]
    pub fn charge_lane(&mut self, port: u32, lane: u8, now: Time) {
        let Some(&pause) = self.observed.standing(port, lane) else { return };
        let first = self.ports[port as usize].first_queue as usize + 1 + usize::from(lane);
        self.charge_pause(&pause, first, false, now);
        self.charge_pause(&pause, first + self.lanes, true, now);
    }

    /// Charges for a leaf's pause, which ends now.
    #[cold]
    pub fn charge_leaf(&mut self, leaf: u32, now: Time) {
        let l = *self.leaves.get(leaf);
        let Some(&pause) = self.observed.pauses.get(l.standing as usize) else { return };
        let own = usize::from(l.queue) > self.lanes;
        self.charge_pause(&pause, self.leaves.list(leaf), own, now);
    }

    /// What the oracle has found out, at the end of the run.
    pub fn blame(&mut self, now: Time) -> Option<Blocking> {
        self.blocking.as_ref()?;
        for port in 0..self.ports.len() as u32 {
            (0..self.lanes as u8).for_each(|lane| self.charge_lane(port, lane, now));
        }
        (0..self.leaves.len() as u32).for_each(|leaf| self.charge_leaf(leaf, now));
        let oracle = self.blocking.take()?;
        Some(Blocking { flows: oracle.flows, places: oracle.places.into_iter().collect() })
    }
}
