//! The head-of-line blocking oracle. It sees everything and changes nothing.
//!
//! *Root of a pause.* A device pauses its upstream because packets pile up for one of its egress ports: where
//! accounts are paused (PFC), the egress that holds most of the account's bytes; where queues are, the queue
//! that was too long. If that egress queue is not paused itself, its port is congested, and the root. If it
//! is, the root of its own pause is the root of this one, too: every pause is traced over all relayed pauses
//! to the congested port at the end of the chain, as it was when the device decided. A host that passes on a
//! pause blindly passes on its root. The root travels beside the pause frame, outside of its bytes.
//!
//! *Charging.* A packet that waits in a paused queue is charged, for each pause, the time from the pause's
//! beginning (or its own arrival in the queue, if that is later) to the pause's end (or the run's): to *own*
//! if the root is on the rest of its path, to *victim* if not. Where devices choose the path of each packet,
//! any further path counts: a victim could not have been its cause for any choice. A queue pair that has
//! something to send and is in a paused queue of its NIC is charged alike, as a whole, in separate sums.
//! Where a frame names a congested port, the same time is judged once more by it: victim of the *named* root.
//!
//! *Two kinds of pauses* meet where some links are paused by lane and others by root: a lane's pause stops
//! all its leaves. Time is charged once, to the pause that began first. The reason of a wait is its queue's
//! own pause or, if it has none, its lane's.
//!
//! *At what cost.* Queues are long and pauses many, so the oracle never walks a queue of packets when its
//! pause ends. A queue is served in order: a packet that was there when a pause ended leaves before all later
//! ones, and was there for every later pause as a whole. So a queue keeps the pauses whose end a packet in it
//! has seen, and their sum by root; a packet that leaves is charged these sums, less what the oldest of those
//! pauses had lasted when the packet joined. Queue pairs are few and take turns: they are charged one by one
//! as the pause ends. Functions called for every packet are cold, so as not to slow runs without the oracle.

mod roots;
#[cfg(test)]
mod tests;
mod waits;

use crate::oracle::ahead::{Known, crosses};
use crate::outcome::{Blame, FlowBlame, Merged, Pause, Place};
use crate::packet::{NONE, Packet};
use crate::parallel::notes::Bytes;
use crate::{oracle::critical::Critical, switch::causes::rows};
use std::collections::{BTreeMap, VecDeque};
use xoff_kernel::{time::Time, wheel::prefetch};
use xoff_net::topology::Topology;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::{Effect, Queueing, Target};

/// The congested port at the end of a chain of pauses, or [`NONE`], and the links from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    pub port: u32,
    pub links: u32,
    /// When a PAUSE that names a root was sent; of a MERGE, the one that made the old root yield.
    pub since: Time,
}

/// Marks a wait without a known cause.
pub const NO_ROOT: Root = Root { port: NONE, links: 0, since: 0 };

/// Roots by priority; a control frame carries them beside its bytes.
pub type Roots = [Root; 8];
const NO_ROOTS: Roots = [NO_ROOT; 8];

impl Default for Root {
    fn default() -> Self {
        NO_ROOT
    }
}

impl Root {
    /// Appends it to the notes of a frame.
    pub fn emit(&self, bytes: &mut Vec<u8>) {
        bytes.extend([self.port, self.links].map(u32::to_be_bytes).as_flattened());
        bytes.extend(self.since.to_be_bytes());
    }

    /// Reads a root that [`Root::emit`] has written.
    pub fn parse(bytes: &mut Bytes) -> Option<Self> {
        Some(Self { port: bytes.word()?, links: bytes.word()?, since: bytes.long()? })
    }

    /// The root of the present pause that a port requested, or none.
    fn behind(standing: Option<&Pause>, port: u32) -> Self {
        match standing.and_then(|pause| Some((pause.root?, pause.links))) {
            Some((port, links)) => Self { port, links: links + 1, since: 0 },
            None => Self { port, links: 1, since: 0 },
        }
    }
}

/// A MERGE that takes effect.
#[derive(Clone, Copy, Debug)]
struct Merges {
    old: u32,
    into: u32,
    since: Time,
}

pub struct Oracle {
    /// By packet: when it, or one that had its slot before, last joined a paused queue. If its queue was not
    /// paused, this is earlier than any pause that it sees, and so need not be cleared.
    joined: Vec<Time>,
    /// By flow: the same of its queue pair.
    pair_joined: Vec<Time>,
    /// By account: where its bytes by egress port begin in `bytes`, see [`rows`]. Empty without accounts.
    rows: Vec<u32>,
    bytes: Vec<u64>,
    /// By slot of a control frame that is in flight.
    frames: Vec<Roots>,
    /// Those of the frame that takes effect now.
    effective: Roots,
    /// The leaf that has just grown, and may be why its scheme sends a pause.
    grown: u32,
    /// The roots of active pauses, which may be repeated, by ingress port, priority and paused unit.
    sent: BTreeMap<(u32, u8, Target), Root>,
    flows: Vec<FlowBlame>,
    /// By list of packets, as [`Core::queues`] counts them.
    counts: Vec<Count>,
    seen: Vec<Seen>,
    /// By place, in the order in which they were met.
    blame: Vec<Blame>,
    /// Where in `blame` a place is.
    places: BTreeMap<Place, u32>,
    /// As [`Blocking::named`].
    named: (u64, u64),
    /// As [`Blocking::merged`].
    merged: Merged,
    /// The MERGE that takes effect now, if it is one.
    merging: Option<Merges>,
    /// Critical paths, if the plan asks for them.
    pub critical: Option<Box<Critical>>,
    known: Known,
    /// The root of the last pause of a port and priority that named a congested port.
    told: BTreeMap<(u32, u8, u32), Root>,
    /// By list: until when those in it have been charged. Empty unless a lane's pause may stop leaves that
    /// are paused one by one as well.
    charged_until: Vec<Time>,
}

/// The members of a list of packets.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// Packets that have left it so far, which is the number of its first one.
    left: u64,
    length: u64,
    /// Packets with a lower number have seen a pause end here.
    until: u64,
}

/// The pauses that packets in a list have seen end.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// In order.
    pauses: VecDeque<Past>,
    /// For each cause of theirs: the cause, its place, and how long they lasted.
    sums: Vec<(Cause, u32, Time)>,
}

/// The reason of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cause {
    root: u32,
    /// The port that the pause's frame named, if it did.
    named: Option<u32>,
}

impl Cause {
    /// `None` if no frame caused the pause.
    fn of(pause: &Pause) -> Option<Self> {
        pause.root.map(|root| Self { root, named: pause.named_root })
    }

    /// Whether the root, and the named port (if any, else the root), are off the further path from `at`.
    fn off_path(self, plan: &Plan, at: u32, known: &mut Known) -> (bool, bool) {
        let mut off = |port| !crosses(plan, at, port, known);
        let victim = off(self.root);
        (victim, self.named.map_or(victim, off))
    }
}

/// A pause that has ended.
#[derive(Clone, Copy, Debug)]
struct Past {
    cause: Cause,
    from: Time,
    lasted: Time,
    /// Packets with a lower number have seen it end.
    until: u64,
}

impl Oracle {
    pub fn new(plan: &Plan, lists: usize) -> Self {
        let traits = plan.flow_control.traits();
        let accounts = traits.also_by_lane || traits.queueing == Queueing::PerLane;
        let (rows, all) = if accounts { rows(plan) } else { (Vec::new(), 0) };
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
            counts: vec![Count::default(); lists],
            seen: vec![Seen::default(); lists],
            blame: Vec::new(),
            places: BTreeMap::new(),
            named: (0, 0),
            merged: Merged::default(),
            merging: None,
            critical: plan.measure.explain.then(|| Box::new(Critical::new(plan, lists))),
            known: Known::new(),
            told: BTreeMap::new(),
            charged_until: if traits.also_by_lane { vec![0; lists] } else { Vec::new() },
        }
    }

    /// Whether lists may be paused by lane and leaf by leaf: see `charged_until`.
    fn two_kinds(&self) -> bool {
        !self.charged_until.is_empty()
    }

    #[cold]
    pub fn packet_joins(&mut self, list: usize, id: u32, paused: bool, now: Time) {
        let paused = paused || self.two_kinds();
        self.counts[list].length += 1;
        if let Some(critical) = &mut self.critical {
            critical.joins(list, id, now);
        }
        if paused {
            let id = id as usize;
            if id >= self.joined.len() {
                self.joined.resize(id + 1, 0);
            }
            self.joined[id] = now;
        }
    }

    #[cold]
    pub fn packet_leaves(&mut self, list: usize, id: u32, packet: &Packet, plan: &Plan) {
        let count = &mut self.counts[list];
        let number = count.left;
        count.left += 1;
        count.length -= 1;
        if number < count.until {
            // The packet after it is next, and its arrival time may be anywhere in memory.
            prefetch(&self.joined, packet.next as usize);
            self.charge_packet(list, number, id, packet, plan);
        }
    }

    /// Charges the first packet of a list, which has this number.
    fn charge_packet(&mut self, list: usize, number: u64, id: u32, packet: &Packet, plan: &Plan) {
        let Seen { pauses, sums } = &mut self.seen[list];
        while let Some(past) = pauses.front().filter(|past| past.until <= number) {
            let sum = sums.iter_mut().find(|sum| sum.0 == past.cause).expect("every pause is in a sum");
            sum.2 -= past.lasted;
            pauses.pop_front();
        }
        let oldest = pauses.front().expect("someone has seen a pause end");
        let joined = self.joined.get(id as usize).copied().unwrap_or(0);
        let missed = joined.saturating_sub(oldest.from);
        let flow = &mut self.flows[packet.flow as usize];
        for &(cause, place, lasted) in sums.iter().filter(|sum| sum.2 > 0) {
            let waited = lasted - if cause == oldest.cause { missed } else { 0 };
            let place = &mut self.blame[place as usize];
            let (victim, named) = cause.off_path(plan, packet.hop, &mut self.known);
            let (sum, its) = match victim {
                false => (&mut place.own, &mut flow.own),
                true => (&mut place.victim, &mut flow.victim),
            };
            *sum += waited;
            *its += waited;
            let waited = if named { waited } else { 0 };
            place.named_victim += waited;
            flow.named_victim += waited;
        }
        sums.retain(|sum| sum.2 > 0);
    }

    fn list_resumes(&mut self, list: usize, pause: &Pause, cause: Cause, now: Time) {
        let from = self.begins(list, pause, now);
        let count = &mut self.counts[list];
        let lasted = now - from;
        if count.length == 0 || lasted == 0 {
            return;
        }
        count.until = count.left + count.length;
        let until = count.until;
        let place = self.place(pause.port, cause);
        let Seen { pauses, sums } = &mut self.seen[list];
        if pauses.back().is_some_and(|last| last.until <= self.counts[list].left) {
            // All who saw those have left.
            pauses.clear();
            sums.clear();
        }
        match sums.iter_mut().find(|sum| sum.0 == cause) {
            Some(sum) => sum.2 += lasted,
            None => sums.push((cause, place, lasted)),
        }
        pauses.push_back(Past { cause, from, lasted, until });
    }

    /// From when an active pause of a list is charged there: its beginning, or the end of one charged before.
    fn begins(&self, list: usize, pause: &Pause, now: Time) -> Time {
        let charged = self.charged_until.get(list).copied().unwrap_or(0);
        pause.from.max(charged).min(now)
    }

    fn place(&mut self, port: u32, cause: Cause) -> u32 {
        let blame = &mut self.blame;
        let Cause { root, named } = cause;
        *self.places.entry(Place { port, root, named }).or_insert_with(|| {
            blame.push(Blame::default());
            blame.len() as u32 - 1
        })
    }

    pub fn pair_joins(&mut self, flow: u32, paused: bool, now: Time) {
        if paused || self.two_kinds() {
            self.pair_joined[flow as usize] = now;
        }
    }

    /// A packet that waits for the `egress`-th port of its device was charged to an account.
    #[cold]
    pub fn charged(&mut self, account: u32, egress: u16, size: u64) {
        if let Some(&row) = self.rows.get(account as usize) {
            self.bytes[row as usize + usize::from(egress)] += size;
        }
    }

    /// Reverses that charge.
    #[cold]
    pub fn released(&mut self, account: u32, egress: u16, size: u64) {
        if let Some(&row) = self.rows.get(account as usize) {
            self.bytes[row as usize + usize::from(egress)] -= size;
        }
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
        waiting.iter_mut().zip(later).filter(|(_, root)| **root != NO_ROOT).for_each(|(w, &root)| *w = root);
    }

    /// The frame in `slot` takes effect; [`Oracle::effect_ends`] follows.
    pub fn takes_effect(&mut self, slot: u32) {
        self.effective = self.roots_of(slot);
    }

    /// The present effect ends pauses for `old`, because its tree is part of that of `into`.
    #[cold]
    fn merges(&mut self, priority: u8, old: u32, into: u32, now: Time) {
        let Root { since, .. } = self.effective[usize::from(priority)];
        if self.effective[usize::from(priority)] != NO_ROOT {
            self.merging = Some(Merges { old, into, since });
            self.merged.frames += 1;
            self.merged.longest = self.merged.longest.max(now - since);
        }
    }

    /// Pauses that begin from now on have no frame.
    pub fn effect_ends(&mut self) {
        self.merging = None;
        self.effective = NO_ROOTS;
    }

    /// A frame takes effect at `port` that names `named`, or none.
    pub fn on_effect(&mut self, topology: &Topology, port: u32, effect: Effect, named: u32, now: Time) {
        match effect {
            Effect::Root { priority, pause: Some(true), .. } => self.told(port, priority, named),
            Effect::Merge { priority, old, .. } => {
                self.merges(priority, topology.port_at(old).unwrap_or(NONE), named, now);
            }
            Effect::Credit { priorities, .. } => {
                (0..8).filter(|p| priorities >> p & 1 == 1).for_each(|p| self.credited(port, p));
            }
            _ => {}
        }
    }

    /// The frame that takes effect at `port` asks for a stop of packets through `named`, now or later.
    fn told(&mut self, port: u32, priority: u8, named: u32) {
        let root = self.effective[usize::from(priority)];
        if root != NO_ROOT {
            self.told.insert((port, priority, named), root);
        }
    }

    /// Credit for a lane takes effect at `port`: waits for credit there have its root until the next one.
    #[cold]
    fn credited(&mut self, port: u32, priority: u8) {
        if self.effective[usize::from(priority)] == NO_ROOT {
            self.told.remove(&(port, priority, NONE));
        } else {
            self.told(port, priority, NONE);
        }
    }

    /// A pause begins, for a frame that names port `named` (or [`NONE`]). Returns its root, or [`NO_ROOT`].
    pub fn pause_begins(&mut self, port: u32, priority: u8, named: u32) -> Root {
        // A frame may bring about a pause for another root than its own.
        let told = self.told.get(&(port, priority, named)).copied();
        let root = told.unwrap_or(self.effective[usize::from(priority)]);
        if root != NO_ROOT {
            let named = (named != NONE).then_some(named);
            let place = self.place(port, Cause { root: root.port, named });
            self.blame[place as usize].pauses += 1;
        }
        root
    }
}
