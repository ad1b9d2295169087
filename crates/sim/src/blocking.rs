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
//! rest of its way, to *innocent* if not. Where devices choose the way of each packet,
//! the root counts as on its way if any way on crosses it: so who is called innocent
//! could not have been its cause, whatever was chosen. A queue pair that has something to send
//! and stands in a paused queue of its NIC is charged alike, as a whole; this is
//! kept apart.
//!
//! Where a frame names a congested port itself (Pyrrha, PortFC), the same time is judged
//! once more by that port: innocent of the *named* root.
//!
//! *Two kinds of pauses* meet where switches that know PFC alone stand beside Pyrrha's:
//! a lane's pause stops all leaves of the lane. Time is charged once, to the pause that
//! began first. Why a packet stands there is told by its queue's own pause or, if it has
//! none, by its lane's.
//!
//! *At what cost.* Queues are long and pauses many, so nobody walks a queue of
//! packets when its pause ends. A queue is served in order: who saw a pause end
//! leaves before all who did not, and has seen every later one as a whole. So a
//! queue keeps the pauses that someone in it has seen end, and their sum by root;
//! a packet that leaves is charged these sums, less what the oldest of those
//! pauses had lasted when the packet joined. Queue pairs are few and take turns:
//! they are charged one by one as the pause ends. What is called for every packet
//! is marked cold: that keeps it out of the way of runs without the oracle.

use crate::core::Core;
use crate::critical::Critical;
use crate::leaves::Leaf;
use crate::outcome::{Blame, Blocking, FlowBlame, Merged, Pause, Place};
use crate::packet::{NONE, Packet};
use std::collections::{BTreeMap, VecDeque};
use xoff_kernel::time::Time;
use xoff_kernel::wheel::prefetch;
use xoff_plan::balancing::LoadBalancing;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::FlowControlParams;
use xoff_schemes::flow_control::{ControlFrame, Queueing, Target, Word};

/// The congested port at the end of a chain of pauses, [`NONE`] if there is none,
/// and the links from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    pub port: u32,
    pub links: u32,
    /// Of a PAUSE that names a root: when it was sent. Of a MERGE: when the PAUSE was
    /// that made the old root yield.
    pub since: Time,
}

/// What nobody is known to be the cause of.
pub const NO_ROOT: Root = Root { port: NONE, links: 0, since: 0 };

/// Roots by priority; what a control frame carries beside its bytes.
pub type Roots = [Root; 8];
const NO_ROOTS: Roots = [NO_ROOT; 8];

impl Root {
    /// The root of what a port asks for that has a pause standing, or none.
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
    sent: BTreeMap<(u32, u8, Target), Root>,
    flows: Vec<FlowBlame>,
    /// By list of packets, as [`Core::queues`] counts them.
    counts: Vec<Count>,
    /// The same.
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
    /// Where routes fork.
    known: Known,
    /// Of Pyrrha's frames: the root behind the last pause of a port and priority that
    /// named a congested port.
    told: BTreeMap<(u32, u8, u32), Root>,
    /// By list: until when those in it have been charged. Only where a lane's pause may
    /// stop leaves that are paused one by one as well (Pyrrha beside switches that know
    /// PFC alone); else empty.
    charged_until: Vec<Time>,
}

/// Whether ways on from a choice cross a port, as far as it was asked for: by entry
/// of the plan's hops and port.
pub type Known = BTreeMap<(u32, u32), bool>;

/// Who is in a list of packets.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// Packets that have left it so far, which is the number of its first one.
    left: u64,
    /// Packets in it.
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

/// What a pause was for.
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

    /// Whether the root, and the port that was named, are off the way on from `at`;
    /// where none was named the latter is as the former.
    fn off_way(self, plan: &Plan, at: u32, known: &mut Known) -> (bool, bool) {
        let mut off = |port| !crosses(plan, at, port, known);
        let innocent = off(self.root);
        (innocent, self.named.map_or(innocent, off))
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
    /// Nothing has happened yet; there are so many lists of packets and queue pairs.
    pub fn new(plan: &Plan, lists: usize) -> Self {
        let (lanes, topology) = (plan.lanes.len(), &plan.topology);
        let mut rows = Vec::new();
        let mut all = 0;
        let accounts = matches!(&plan.flow_control, FlowControlParams::Pyrrha(p) if p.pfc.is_some());
        if accounts || plan.flow_control.queueing() == Queueing::PerLane {
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
            charged_until: if accounts { vec![0; lists] } else { Vec::new() },
        }
    }

    /// Whether lists may be paused by lane and leaf by leaf: see `charged_until`.
    fn two_kinds(&self) -> bool {
        !self.charged_until.is_empty()
    }

    /// A packet joined a list.
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

    /// The first packet of a list left it.
    #[cold]
    pub fn packet_leaves(&mut self, list: usize, id: u32, packet: &Packet, plan: &Plan) {
        let count = &mut self.counts[list];
        let number = count.left;
        count.left += 1;
        count.length -= 1;
        if number < count.until {
            // The one behind it is next, and when it came lies anywhere.
            prefetch(&self.joined, packet.next as usize);
            self.charge_packet(list, number, id, packet, plan);
        }
    }

    /// Charges the packet with this number in a list, the first one there.
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
            let (innocent, named) = cause.off_way(plan, packet.hop, &mut self.known);
            let (sum, its) = match innocent {
                false => (&mut place.own, &mut flow.own),
                true => (&mut place.innocent, &mut flow.innocent),
            };
            *sum += waited;
            *its += waited;
            let waited = if named { waited } else { 0 };
            place.named_innocent += waited;
            flow.named_innocent += waited;
        }
        sums.retain(|sum| sum.2 > 0);
    }

    /// A pause of a list of packets ends.
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

    /// From when on a pause that stands in a list is charged there: its beginning, or
    /// the end of another one, which was charged until then.
    fn begins(&self, list: usize, pause: &Pause, now: Time) -> Time {
        let charged = self.charged_until.get(list).copied().unwrap_or(0);
        pause.from.max(charged).min(now)
    }

    /// The place of pauses of `port`.
    fn place(&mut self, port: u32, cause: Cause) -> u32 {
        let blame = &mut self.blame;
        let Cause { root, named } = cause;
        *self.places.entry(Place { port, root, named }).or_insert_with(|| {
            blame.push(Blame::default());
            blame.len() as u32 - 1
        })
    }

    /// A queue pair joined a queue of its NIC.
    pub fn pair_joins(&mut self, flow: u32, paused: bool, now: Time) {
        if paused || self.two_kinds() {
            self.pair_joined[flow as usize] = now;
        }
    }

    /// A packet that waits for the `egress`-th port of its device was charged to an account.
    #[cold]
    pub fn charged(&mut self, account: u32, egress: u16, size: u64) {
        if let Some(row) = self.rows.get(account as usize) {
            self.bytes[row + usize::from(egress)] += size;
        }
    }

    /// That charge is given back.
    #[cold]
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
        waiting.iter_mut().zip(later).filter(|(_, root)| **root != NO_ROOT).for_each(|(w, &root)| *w = root);
    }

    /// The frame in `slot` takes effect; [`Oracle::effect_ends`] follows.
    pub fn takes_effect(&mut self, slot: u32) {
        self.effective = self.roots_of(slot);
    }

    /// What takes effect ends pauses for `old`, since its tree is part of that of `into`.
    #[cold]
    pub fn merges(&mut self, priority: u8, old: u32, into: u32, now: Time) {
        let Root { since, .. } = self.effective[usize::from(priority)];
        if self.effective[usize::from(priority)] != NO_ROOT {
            self.merging = Some(Merges { old, into, since });
            self.merged.frames += 1;
            self.merged.longest = self.merged.longest.max(now - since);
        }
    }

    /// Pauses that begin from now on are nobody's frame.
    pub fn effect_ends(&mut self) {
        self.merging = None;
        self.effective = NO_ROOTS;
    }

    /// The frame that takes effect at `port` asks to stop what goes through `named`; it
    /// may do so later, when there is something to stop.
    pub fn told(&mut self, port: u32, priority: u8, named: u32) {
        let root = self.effective[usize::from(priority)];
        if root != NO_ROOT {
            self.told.insert((port, priority, named), root);
        }
    }

    /// A pause begins, for a frame that names port `named` if it is not [`NONE`].
    /// Answers its root, [`NO_ROOT`] if no frame is its cause.
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

/// Whether `root` is on the rest of a route; where that forks, on any way on.
pub fn crosses(plan: &Plan, at: u32, root: u32, known: &mut Known) -> bool {
    match plan.load_balancing {
        LoadBalancing::Packets(_) => plan.may_cross(at, root, known),
        LoadBalancing::Ecmp | LoadBalancing::Plb(_) => plan.onward(at).known.contains(&root),
    }
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
                    (true, NO_ROOT) => oracle.sent.get(&key).copied().unwrap_or(NO_ROOT),
                    (true, root) => {
                        oracle.sent.insert(key, root);
                        root
                    }
                    (false, _) => {
                        oracle.sent.remove(&key);
                        NO_ROOT
                    }
                };
            }
            ControlFrame::PortPause(frame) => {
                let FlowControlParams::PortFc(portfc) = &self.plan.flow_control else { return roots };
                if frame.pause {
                    let lane = usize::from(portfc.lane);
                    let priority = usize::from(self.plan.lanes[lane].priority);
                    roots[priority] = self.root_of_set(port, priority);
                }
            }
            ControlFrame::RootPause(frame) => {
                let priority = usize::from(frame.priority);
                match frame.word {
                    Word::Pause => match self.root_of_leaf() {
                        NO_ROOT => {}
                        root => roots[priority] = Root { since: self.now, ..root },
                    },
                    // Whoever merges passes on a pause that it has just got.
                    Word::Merge { .. } => {
                        if let Some(oracle) = &self.blocking
                            && oracle.effective[priority] != NO_ROOT
                        {
                            let root = oracle.effective[priority];
                            roots[priority] = Root { links: root.links + 1, ..root };
                        }
                    }
                    Word::Resume | Word::Release => {}
                }
            }
        }
        roots
    }

    /// Why the account of (`port`, `lane`) is over; or, where it is not and a host
    /// passes on a pause of another port, why that stands.
    fn root_of_account(&self, port: u32, lane: usize) -> Root {
        let Some(oracle) = &self.blocking else { return NO_ROOT };
        let row = oracle.rows[port as usize * self.lanes + lane];
        let node = self.ports[port as usize].node;
        if self.plan.passes_pauses_on(node) && !self.accounts[port as usize * self.lanes + lane].over {
            let others = self.plan.relay_ports(node).iter().filter(|&&other| other != port);
            let mut pauses = others.filter_map(|&other| self.observed.standing(other, lane as u8));
            let pause = pauses.find(|pause| pause.root.is_some());
            return pause.map_or(NO_ROOT, |pause| Root::behind(Some(pause), NONE));
        }
        let ports = &self.plan.topology.nodes[node as usize].ports;
        let held = &oracle.bytes[row..row + ports.len()];
        let most = (0..ports.len()).rev().max_by_key(|&i| held[i]).filter(|&i| held[i] > 0);
        let Some(egress) = most.map(|i| ports[i]) else { return NO_ROOT };
        let onward = self.plan.onward_lane(lane as u8, port, egress);
        let by_lane = self.observed.standing(egress, onward);
        Root::behind(by_lane.or_else(|| self.pause_of_longest(egress, onward)), egress)
    }

    /// Those of them that hold packets.
    pub fn forwarding_leaves(&self, port: u32, lane: u8) -> impl DoubleEndedIterator<Item = u32> + '_ {
        let forwards = |leaf: &u32| usize::from(self.leaves.get(*leaf).queue) <= self.lanes;
        self.leaves_of(port, lane).filter(forwards)
    }

    /// The pause of the longest queue of a lane on `port`, where queues are paused one
    /// by one.
    fn pause_of_longest(&self, port: u32, lane: u8) -> Option<&Pause> {
        let bytes = |leaf: &u32| self.queues[self.leaves.list(*leaf)].bytes;
        let longest = self.forwarding_leaves(port, lane).rev().max_by_key(bytes)?;
        let group = self.ports[port as usize].first_queue as usize + 1 + usize::from(lane);
        // The group's bytes are those of its own list and all leaves.
        let own = self.queues[group].bytes
            - self.forwarding_leaves(port, lane).map(|leaf| bytes(&leaf)).sum::<u64>();
        (bytes(&longest) > own).then_some(())?;
        self.observed.pauses.get(self.leaves.get(longest).standing as usize)
    }

    /// The lane of a leaf.
    fn lane_of(&self, leaf: &Leaf) -> u8 {
        ((usize::from(leaf.queue) - 1) % self.lanes) as u8
    }

    /// The numbered leaves of a lane on `port`, those of queue pairs included; none
    /// where queues have no numbers.
    fn leaves_of(&self, port: u32, lane: u8) -> std::ops::Range<u32> {
        let Queueing::Numbered { .. } = self.leaves.queueing else { return 0..0 };
        let first = self.leaves.numbered(port, lane, 0);
        let group = 1 + u16::from(lane);
        let groups = [group, group + self.lanes as u16];
        let its = |leaf: &u32| {
            let leaf = self.leaves.get(*leaf);
            leaf.port == port && groups.contains(&leaf.queue)
        };
        let count = (first..self.leaves.len() as u32).take_while(its).count() as u32;
        first..first + count
    }

    /// Why the leaf that has just grown is too long.
    fn root_of_leaf(&self) -> Root {
        let Some(oracle) = self.blocking.as_ref().filter(|o| o.grown != NONE) else { return NO_ROOT };
        let leaf = self.leaves.get(oracle.grown);
        let by_lane = || self.observed.standing(leaf.port, self.lane_of(leaf));
        Root::behind(self.observed.pauses.get(leaf.standing as usize).or_else(by_lane), leaf.port)
    }

    /// Why PortFC speaks through `port`: the fullest queue of the set whose leaf has
    /// just grown; or, where a host passes a frame on, the root of that.
    fn root_of_set(&self, port: u32, priority: usize) -> Root {
        let Some(oracle) = &self.blocking else { return NO_ROOT };
        if oracle.grown == NONE {
            let passed = oracle.effective[priority];
            return match passed {
                NO_ROOT => self.root_of_standing(port),
                root => Root { links: root.links + 1, ..root },
            };
        }
        let FlowControlParams::PortFc(portfc) = &self.plan.flow_control else { return NO_ROOT };
        let grown = self.leaves.get(oracle.grown);
        let number = self.leaves.number(oracle.grown, portfc.lane);
        let set = if number < portfc.map.n - 1 { 0..portfc.map.n - 1 } else { number..number + 1 };
        let bytes = |leaf: &u32| self.queues[self.leaves.list(*leaf)].bytes;
        let leaves = set.rev().map(|queue| self.leaves.numbered(grown.port, portfc.lane, queue));
        let fullest = leaves.max_by_key(bytes).unwrap_or(oracle.grown);
        let standing = self.leaves.get(fullest).standing;
        Root::behind(self.observed.pauses.get(standing as usize), grown.port)
    }

    /// Why PortFC says again through `port`, whose link is up, what stands: any of
    /// the pauses of the host's other ports; at a switch nobody remembers.
    fn root_of_standing(&self, port: u32) -> Root {
        let others = self.plan.relay_ports(self.ports[port as usize].node).iter().filter(|&&p| p != port);
        let pauses = others.flat_map(|&other| {
            let open = self.observed.open.iter().map(|&i| &self.observed.pauses[i as usize]);
            open.filter(move |pause| pause.port == other && pause.root.is_some())
        });
        pauses.min_by_key(|pause| pause.from).map_or(NO_ROOT, |pause| Root::behind(Some(pause), NONE))
    }

    /// Charges the queue pairs that waited for a pause in the list `at`, which ends now.
    fn charge_pairs(&mut self, pause: &Pause, cause: Cause, at: usize, now: Time) {
        let mut next = self.queues[at].head;
        while next != NONE {
            self.charge_pair(pause, cause, at, next, now);
            next = self.senders[next as usize].ring_next;
        }
    }

    /// Charges the queue pair of a flow, which has waited in the list `at` for a pause
    /// until now.
    fn charge_pair(&mut self, pause: &Pause, cause: Cause, at: usize, flow: u32, now: Time) {
        let Some(oracle) = &mut self.blocking else { return };
        let from = oracle.begins(at, pause, now);
        let place = oracle.place(pause.port, cause);
        let place = &mut oracle.blame[place as usize];
        let waited = now.saturating_sub(oracle.pair_joined[flow as usize].max(from));
        let flow_blame = &mut oracle.flows[flow as usize];
        let path = self.senders[flow as usize].path();
        let (innocent, named) = cause.off_way(self.plan, path, &mut oracle.known);
        let (sum, its) = match innocent {
            false => (&mut place.source_own, &mut flow_blame.source_own),
            true => (&mut place.source_innocent, &mut flow_blame.source_innocent),
        };
        *sum += waited;
        *its += waited;
        let waited = if named { waited } else { 0 };
        place.source_named_innocent += waited;
        flow_blame.source_named_innocent += waited;
    }

    /// The queue pair of a flow is about to leave its list, maybe a paused one: its
    /// window has closed, or it waits for another root from now on.
    #[cold]
    pub fn pair_leaves(&mut self, flow: u32) {
        let at = self.ring_of(flow);
        let leaf = self.leaves.used().then(|| self.leaves.get((at - self.leaves.list(0)) as u32));
        let of_leaf = leaf.and_then(|leaf| self.observed.pauses.get(leaf.standing as usize));
        let (port, lane) = (self.senders[flow as usize].port(), self.plan.flows[flow as usize].lane);
        let pauses = of_leaf.into_iter().chain(self.observed.standing(port, lane));
        if let Some(&pause) = pauses.min_by_key(|pause| pause.from)
            && let Some(cause) = Cause::of(&pause)
        {
            self.charge_pair(&pause, cause, at, flow, self.now);
        }
        self.ring_wait_ends(flow);
    }

    /// The pause of a list ends now, of packets or of the host's `own` queue pairs.
    fn end_wait(&mut self, pause: &Pause, at: usize, own: bool, now: Time) {
        if let Some(named) = pause.named_root {
            self.check_named(named, at, own);
            let merging = self.blocking.as_ref().and_then(|oracle| oracle.merging);
            if let Some(merges) = merging.filter(|merges| merges.old == named) {
                self.charge_merged(pause, merges, at, own, now);
            }
        }
        if let Some(critical) = self.blocking.as_mut().and_then(|oracle| oracle.critical.as_mut()) {
            critical.paused(at, pause, now);
        }
    }

    /// Charges those in the list `at` with a pause that ends now.
    fn charge(&mut self, pause: &Pause, at: usize, own: bool, now: Time) {
        let (Some(oracle), Some(cause)) = (&mut self.blocking, Cause::of(pause)) else { return };
        if own {
            self.charge_pairs(pause, cause, at, now);
        } else {
            oracle.list_resumes(at, pause, cause, now);
        }
        if let Some(oracle) = &mut self.blocking
            && let Some(until) = oracle.charged_until.get_mut(at)
        {
            *until = now;
        }
    }

    /// The pause of the list `at` ends because the root that it named yields to another
    /// one: who waited for it, and not for that one, should have gone on earlier.
    #[cold]
    fn charge_merged(&mut self, pause: &Pause, merges: Merges, at: usize, own: bool, now: Time) {
        let Some(oracle) = &mut self.blocking else { return };
        oracle.merged.pauses += 1;
        let mut next = self.queues[at].head;
        while next != NONE {
            let (path, joined, behind) = match own {
                true => {
                    let sender = &self.senders[next as usize];
                    (sender.path(), oracle.pair_joined[next as usize], sender.ring_next)
                }
                false => {
                    let joined = oracle.joined.get(next as usize).copied().unwrap_or(0);
                    (self.packets[next].hop, joined, self.packets[next].next)
                }
            };
            if !crosses(self.plan, path, merges.into, &mut oracle.known) {
                oracle.merged.waits += 1;
                oracle.merged.innocent += now - joined.max(pause.from).max(merges.since).min(now);
            }
            next = behind;
        }
    }

    /// Whether all who waited in the list `at` go through the port that the pause named.
    fn check_named(&mut self, named: u32, at: usize, own: bool) {
        let (mut waits, mut off) = (0, 0);
        let mut next = self.queues[at].head;
        while next != NONE {
            let (path, behind) = match own {
                true => (self.senders[next as usize].path(), self.senders[next as usize].ring_next),
                false => (self.packets[next].hop, self.packets[next].next),
            };
            waits += 1;
            let known = self.blocking.as_mut().map(|oracle| &mut oracle.known);
            off += u64::from(!crosses(self.plan, path, named, known.unwrap_or(&mut Known::new())));
            next = behind;
        }
        if let Some(oracle) = &mut self.blocking {
            oracle.named.0 += waits;
            oracle.named.1 += off;
        }
    }

    /// A lane's pause on `port` ends now.
    #[cold]
    pub fn lane_resumes(&mut self, port: u32, lane: u8, now: Time) {
        let Some(&pause) = self.observed.standing(port, lane) else { return };
        let first = self.ports[port as usize].first_queue as usize + 1 + usize::from(lane);
        for (at, own) in [(first, false), (first + self.lanes, true)] {
            self.end_wait(&pause, at, own, now);
            self.charge(&pause, at, own, now);
        }
        for leaf in self.leaves_of(port, lane) {
            let l = *self.leaves.get(leaf);
            let earlier = |other: &Pause| other.from <= pause.from;
            // Of two pauses at once the one that began first counts.
            if !self.observed.pauses.get(l.standing as usize).is_some_and(earlier) {
                let own = usize::from(l.queue) > self.lanes;
                self.charge(&pause, self.leaves.list(leaf), own, now);
            }
        }
    }

    /// A leaf's pause ends now.
    #[cold]
    pub fn leaf_resumes(&mut self, leaf: u32, now: Time) {
        let l = *self.leaves.get(leaf);
        let Some(&pause) = self.observed.pauses.get(l.standing as usize) else { return };
        let (at, own) = (self.leaves.list(leaf), usize::from(l.queue) > self.lanes);
        self.end_wait(&pause, at, own, now);
        let by_lane = self.observed.standing(l.port, self.lane_of(&l));
        if by_lane.is_none_or(|other| other.from >= pause.from) {
            self.charge(&pause, at, own, now);
        }
    }

    /// What the oracle has found out, at the end of the run: standing pauses end,
    /// and whoever waits leaves.
    pub fn blame(&mut self, now: Time) -> Option<Blocking> {
        self.blocking.as_ref()?;
        for port in 0..self.ports.len() as u32 {
            (0..self.lanes as u8).for_each(|lane| self.lane_resumes(port, lane, now));
        }
        (0..self.leaves.len() as u32).for_each(|leaf| self.leaf_resumes(leaf, now));
        let mut oracle = self.blocking.take()?;
        for (at, queue) in self.queues.iter().enumerate() {
            // Lists of queue pairs hold no packets.
            let mut next = if oracle.counts[at].length > 0 { queue.head } else { NONE };
            while next != NONE {
                let packet = &self.packets[next];
                oracle.packet_leaves(at, next, packet, self.plan);
                next = packet.next;
            }
        }
        let places = oracle.places.iter().map(|(&at, &place)| (at, oracle.blame[place as usize])).collect();
        Some(Blocking { flows: oracle.flows, places, named: oracle.named, merged: oracle.merged })
    }
}
