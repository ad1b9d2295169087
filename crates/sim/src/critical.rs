//! Critical paths: where the time of a flow went, from its start until its last
//! acknowledgement. Part of the blocking oracle; it sees everything and changes
//! nothing.
//!
//! *The path.* A flow is complete when an answer (an ACK, or under selective
//! repeat a NACK) reaches its sender. That answer left its receiver as a data
//! packet arrived there, and that packet left its sender at a time `s`. So the
//! time of the flow is cut in two: what its source did until `s`, and the way of
//! this packet and of its answer. Which packet it will be nobody knows before, so
//! each data packet has a record of what it has been through, which its answer
//! takes over; it starts with what the source had done when the packet was made.
//!
//! *The source* is in one state at a time: a packet of the flow is on its wire
//! (sending, or recovery if it is a repeat); the queue pair stands in its ring (and
//! waits as packets do, see below); its pace or congestion control holds it; or it
//! may not send before an answer comes. If it then sends something again, the wait
//! was recovery. If not, it waited for a packet that was under way: each instant of
//! the wait is put where that packet was.
//!
//! *A wait in a queue* is cut where pauses of the queue begin and end: own if the
//! pause's root is on the rest of the way, innocent if not, queueing while nothing
//! is paused. Who is let go and stands behind others that had piled up is queueing.
//!
//! *At what cost.* A record has a source's parts (one for each port, part and root)
//! and some four for each hop; so some hundred bytes, for each packet under way.
//! Records lie beside the packets' slots, and travel in letters.

use crate::core::Core;
use crate::outcome::{Leg, Part, Pause, Share};
use crate::packet::{Kind, NONE};
use std::collections::BTreeMap;
use xoff_kernel::time::Time;
use xoff_plan::plan::{ENDS, Plan};

/// A stretch of a path, or the sum of those that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    leg: Leg,
    part: Part,
    port: u32,
    /// [`NONE`] if no pause.
    root: u32,
    time: Time,
}

impl Piece {
    fn is_like(&self, other: &Self) -> bool {
        (self.leg, self.part, self.port, self.root) == (other.leg, other.part, other.port, other.root)
    }
}

/// Adds a piece to those like it.
fn add(sums: &mut Vec<Piece>, piece: Piece) {
    match sums.iter_mut().find(|known| known.is_like(&piece)) {
        Some(known) => known.time += piece.time,
        None if piece.time > 0 => sums.push(piece),
        None => {}
    }
}

/// What a flow's source has done since the flow began.
#[derive(Clone, Debug, Default)]
struct Source {
    /// Until when.
    at: Time,
    /// One beyond the highest packet that was ever sent.
    highest: u32,
    /// Where its last packet was sent, and whether again.
    last: Option<(u32, Part)>,
    /// Sums.
    pieces: Vec<Piece>,
}

impl Source {
    /// What was put beyond `now`, the end of a packet that is still being sent, has
    /// not happened yet: the flow goes on at another port, or the run ends.
    fn rewind(&mut self, now: Time) {
        let ahead = self.at.saturating_sub(now);
        let Some((port, part)) = self.last.filter(|_| ahead > 0) else { return };
        let sent = |p: &&mut Piece| (p.leg, p.part, p.port) == (Leg::Source, part, port);
        if let Some(piece) = self.pieces.iter_mut().find(sent) {
            piece.time -= ahead;
        }
        self.at = now;
    }
}

/// What a packet has been through.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The slot holds a data packet, or its answer.
    live: bool,
    /// When its source began to send it, and what that had done before.
    sent: Time,
    source: Vec<Piece>,
    /// Until when the way is known …
    at: Time,
    /// … and what it was, in the order of time.
    way: Vec<Piece>,
    /// The list that it waits in, or [`NONE`], …
    list: u32,
    /// … and those that it was in before at this port, each with when it left.
    stays: Vec<(u32, Time)>,
}

/// A span in which a list did not send.
#[derive(Clone, Copy, Debug)]
struct Past {
    from: Time,
    until: Time,
    part: Part,
    /// Of [`Part::Own`] or [`Part::Innocent`], whichever of them it is.
    root: u32,
}

/// Where something waits: its list, the queue of the port that this is a part of (or
/// is), and what is left of its way.
#[derive(Clone, Copy)]
struct Place<'h> {
    list: u32,
    group: u32,
    port: u32,
    leg: Leg,
    rest: &'h [u32],
}

/// What the oracle keeps for critical paths while a part of a run goes on.
#[derive(Default)]
pub struct Critical {
    /// By flow.
    sources: Vec<Source>,
    /// By packet.
    records: Vec<Record>,
    /// By list: its pauses that have ended, in order.
    pasts: Vec<Vec<Past>>,
    /// Ports that the plan closes: receivers that do not read, links that are down.
    closed: BTreeMap<u32, Vec<Past>>,
    /// By port and lane: held since then, with no pause, after a link's recovery.
    held: BTreeMap<(u32, u8), Time>,
    /// Paths of complete flows.
    done: Vec<(u32, Vec<Piece>)>,
    /// Of the wait that is being looked at.
    spans: Vec<Past>,
}

impl Critical {
    /// Nothing has happened yet; there are so many lists of packets and queue pairs.
    pub fn new(plan: &Plan, lists: usize) -> Self {
        let mut closed: BTreeMap<u32, Vec<Past>> = BTreeMap::new();
        let mut close = |port, spans: &[(Time, Time)], part| {
            let pasts = spans.iter().map(|&(from, until)| Past { from, until, part, root: NONE });
            closed.entry(port).or_default().extend(pasts);
        };
        plan.receivers.iter().for_each(|r| close(r.rx, &r.stalls, Part::Receiver));
        plan.faults.down.iter().for_each(|d| close(d.port, &d.spans, Part::Down));
        Self {
            sources: vec![Source::default(); plan.flows.len()],
            pasts: vec![Vec::new(); lists],
            closed,
            ..Self::default()
        }
    }

    /// A packet joins a list, maybe from another one of the same port.
    pub fn joins(&mut self, list: usize, id: u32, now: Time) {
        if let Some(record) = self.records.get_mut(id as usize).filter(|record| record.live) {
            let before = std::mem::replace(&mut record.list, list as u32);
            if before != NONE {
                record.stays.push((before, now));
            }
        }
    }

    /// A pause of a list has ended.
    pub fn paused(&mut self, list: usize, pause: &Pause, until: Time) {
        if pause.from < until {
            self.pasts[list].push(past(pause, until));
        }
    }

    /// The record of a packet that leaves for another part of the run.
    pub fn take(&mut self, id: u32) -> Record {
        self.records.get_mut(id as usize).map(std::mem::take).unwrap_or_default()
    }

    /// Keeps the record of a packet that has come from another part of the run.
    pub fn keep(&mut self, id: u32, record: Record) {
        let id = id as usize;
        if id >= self.records.len() {
            self.records.resize_with(id + 1, Record::default);
        }
        self.records[id] = record;
    }

    /// Cuts a wait into pieces, in the order of time. `standing` are pauses that have
    /// not ended yet.
    fn cut(
        &mut self,
        place: Place,
        (from, to): (Time, Time),
        standing: [Option<Past>; 2],
        mut give: impl FnMut(Piece),
    ) {
        if from >= to {
            return;
        }
        let spans = &mut self.spans;
        spans.clear();
        let lists = [place.list, place.group];
        let lists = if place.list == place.group { &lists[..1] } else { &lists };
        for &list in lists {
            let late = self.pasts[list as usize].iter().rev().take_while(|past| past.until > from);
            spans.extend(late.filter(|past| past.from < to));
        }
        spans.extend(standing.iter().flatten().filter(|past| past.from < to));
        if let Some(closed) = self.closed.get(&place.port) {
            spans.extend(closed.iter().filter(|past| past.until > from && past.from < to));
        }
        let mut give = |part, root, time| {
            if time > 0 {
                give(Piece { leg: place.leg, part, port: place.port, root, time });
            }
        };
        // Of two at once the one that began first counts.
        spans.sort_by_key(|past| (past.from, past.part, past.root));
        let mut at = from;
        for past in spans {
            let (begin, end) = (past.from.max(at), past.until.min(to));
            if begin >= end {
                continue;
            }
            give(Part::Queueing, NONE, begin - at);
            let own = past.part == Part::Own && !place.rest.contains(&past.root);
            give(if own { Part::Innocent } else { past.part }, past.root, end - begin);
            at = end;
        }
        give(Part::Queueing, NONE, to - at);
    }
}

/// A pause as a span; whether it is innocent depends on who waits.
fn past(pause: &Pause, until: Time) -> Past {
    // One that no frame caused follows a link's recovery.
    let part = if pause.root.is_some() { Part::Own } else { Part::Down };
    Past { from: pause.from, until, part, root: pause.root.unwrap_or(NONE) }
}

/// What is left of the way of what stands at `at`.
fn rest(hops: &[u32], at: u32) -> &[u32] {
    let rest = &hops[at as usize..];
    let end = rest.iter().position(|&port| port >= ENDS).expect("a route has an end");
    &rest[..end]
}

/// What a part of a run knows of paths at its end.
#[derive(Default)]
pub struct Known {
    /// Of flows whose sources it runs: complete ones, and those that stand at their
    /// source. `true`: nothing of it is under way as far as the source knows; what is
    /// under way counts if there is any.
    flows: Vec<(u32, bool, Vec<Piece>)>,
    /// By unfinished flow: of what is under way the oldest, and when it was sent.
    under_way: BTreeMap<u32, (Time, Vec<Piece>)>,
}

impl Core<'_> {
    fn critical(&mut self) -> Option<Box<Critical>> {
        self.blocking.as_mut()?.critical.take()
    }

    fn put_back(&mut self, critical: Box<Critical>) {
        if let Some(oracle) = &mut self.blocking {
            oracle.critical = Some(critical);
        }
    }

    /// The pause of a list that stands now.
    fn standing_at(&self, list: u32) -> Option<Past> {
        let first_leaf = self.queues.len() - self.leaves.len();
        let pause = if list as usize >= first_leaf {
            let leaf = self.leaves.get(list - first_leaf as u32);
            self.observed.pauses.get(leaf.standing as usize)
        } else {
            let queues = (1 + 2 * self.lanes) as u32;
            let lane = (list % queues).checked_sub(1)? as usize % self.lanes;
            self.observed.standing(list / queues, lane as u8)
        };
        pause.map(|pause| past(pause, Time::MAX))
    }

    /// A flow begins.
    #[cold]
    pub fn path_begins(&mut self, flow: u32) {
        let now = self.now;
        if let Some(critical) = self.blocking.as_mut().and_then(|oracle| oracle.critical.as_deref_mut()) {
            critical.sources[flow as usize].at = now;
        }
    }

    /// The wait of a flow's queue pair in its ring ends: it sends, or leaves the ring.
    #[cold]
    pub fn ring_wait_ends(&mut self, flow: u32) {
        let Some(mut critical) = self.critical() else { return };
        self.wait_in_ring(&mut critical, flow);
        self.put_back(critical);
    }

    fn wait_in_ring(&self, critical: &mut Critical, flow: u32) {
        let sender = &self.senders[flow as usize];
        let port = sender.port();
        let lane = u32::from(self.plan.flows[flow as usize].lane);
        let place = Place {
            list: self.ring_of(flow) as u32,
            group: self.ports[port as usize].first_queue + 1 + self.lanes as u32 + lane,
            port,
            leg: Leg::Source,
            rest: rest(self.hops, sender.path()),
        };
        let standing = [self.standing_at(place.list), self.standing_at(place.group)];
        let mut source = std::mem::take(&mut critical.sources[flow as usize]);
        critical.cut(place, (source.at, self.now), standing, |piece| add(&mut source.pieces, piece));
        source.at = source.at.max(self.now);
        critical.sources[flow as usize] = source;
    }

    /// A flow's wait outside of its ring ends, or what held it does: by its pace, by
    /// an answer (that was packet `answer`), or by its timer.
    #[cold]
    pub fn source_wait_ends(&mut self, flow: u32, answer: Option<u32>) {
        let (now, sender) = (self.now, &self.senders[flow as usize]);
        let (port, next) = (sender.port(), sender.transport.next);
        let Some(critical) = self.blocking.as_mut().and_then(|oracle| oracle.critical.as_deref_mut()) else {
            return;
        };
        let source = &mut critical.sources[flow as usize];
        let mut left = now.saturating_sub(source.at);
        source.at = source.at.max(now);
        let here = |part, time| Piece { leg: Leg::Source, part, port, root: NONE, time };
        if next < source.highest {
            return add(&mut source.pieces, here(Part::Recovery, left));
        }
        let Some(answer) = answer else { return add(&mut source.pieces, here(Part::Pacing, left)) };
        for piece in critical.records[answer as usize].way.iter().rev() {
            let time = piece.time.min(left);
            add(&mut source.pieces, Piece { time, ..*piece });
            left -= time;
        }
        debug_assert_eq!(left, 0, "the packet was under way before the wait began");
    }

    /// A flow's pace lets it go.
    #[cold]
    pub fn pace_ends(&mut self, flow: u32) {
        let (now, port) = (self.now, self.senders[flow as usize].port());
        let Some(critical) = self.blocking.as_mut().and_then(|oracle| oracle.critical.as_deref_mut()) else {
            return;
        };
        let source = &mut critical.sources[flow as usize];
        let time = now.saturating_sub(source.at);
        source.at = source.at.max(now);
        add(&mut source.pieces, Piece { leg: Leg::Source, part: Part::Pacing, port, root: NONE, time });
    }

    /// Packet `id` of `queue` of `port` goes on the wire now.
    #[cold]
    #[inline(never)]
    pub fn departs(&mut self, port: u32, queue: usize, id: u32) {
        let Some(mut critical) = self.critical() else { return };
        let (packet, now, p) = (self.packets[id], self.now, &self.ports[port as usize]);
        let leg = match packet.kind {
            Kind::Data => Leg::Data,
            Kind::Ack | Kind::Nack => Leg::Ack,
            Kind::Free | Kind::Cnp | Kind::Control => {
                critical.keep(id, Record::default());
                return self.put_back(critical);
            }
        };
        let sending = p.wire_time(packet.size, || self.plan.topology.ports[port as usize].rate);
        let group = p.first_queue + queue as u32;
        let mut record = critical.take(id);
        if leg == Leg::Data && queue > self.lanes {
            self.wait_in_ring(&mut critical, packet.flow);
            let source = &mut critical.sources[packet.flow as usize];
            source.rewind(now);
            record.live = true;
            (record.sent, record.at) = (now, now);
            record.source.clone_from(&source.pieces);
            record.way.clear();
            let part = if packet.number < source.highest { Part::Recovery } else { Part::Sending };
            add(&mut source.pieces, Piece { leg: Leg::Source, part, port, root: NONE, time: sending });
            source.highest = source.highest.max(packet.number + 1);
            source.last = Some((port, part));
            source.at = now + sending;
        } else {
            self.wait_in_queues(&mut critical, &mut record, group, (port, leg, packet.hop), now);
        }
        let mut on = |part, time| {
            if time > 0 {
                record.way.push(Piece { leg, part, port, root: NONE, time });
            }
        };
        on(Part::Sending, sending);
        on(Part::Propagation, p.delay);
        record.at = now + sending + p.delay;
        record.list = NONE;
        record.stays.clear();
        critical.keep(id, record);
        self.put_back(critical);
    }

    /// Puts down what a packet, which is at `hop` of the plan's hops, has waited at a port.
    fn wait_in_queues(
        &self,
        critical: &mut Critical,
        record: &mut Record,
        group: u32,
        (port, leg, hop): (u32, Leg, u32),
        now: Time,
    ) {
        let rest = rest(self.hops, hop);
        let last = if record.list == NONE { group } else { record.list };
        let stays = std::mem::take(&mut record.stays);
        for &(list, until) in stays.iter().chain(&[(last, now)]) {
            let place = Place { list, group, port, leg, rest };
            let standing = [self.standing_at(list), self.standing_at(group)];
            critical.cut(place, (record.at, until), standing, |piece| record.way.push(piece));
            record.at = record.at.max(until);
        }
        record.stays = stays;
    }

    /// The answer `id`, which has just been taken out, completes its flow.
    ///
    /// # Panics
    /// If the parts do not add up to the flow's completion time: a fault of the
    /// simulator, never of a plan.
    #[cold]
    pub fn path_ends(&mut self, flow: u32, id: u32) {
        let took = self.now - self.observed.flows[flow as usize].started.unwrap_or(0);
        let Some(critical) = self.blocking.as_mut().and_then(|oracle| oracle.critical.as_deref_mut()) else {
            return;
        };
        let Record { source, way, .. } = critical.take(id);
        let path = in_order(source, way);
        assert_eq!(path.iter().map(|p| p.time).sum::<Time>(), took, "the parts of flow {flow} add up");
        critical.done.push((flow, path));
        critical.sources[flow as usize].pieces = Vec::new();
    }

    /// A link has recovered, and a lane of its port is held.
    #[cold]
    pub fn lane_is_held(&mut self, port: u32, lane: u8) {
        let now = self.now;
        if let Some(critical) = self.blocking.as_mut().and_then(|oracle| oracle.critical.as_deref_mut()) {
            critical.held.entry((port, lane)).or_insert(now);
        }
    }

    /// A lane that may have been held goes on.
    #[cold]
    pub fn held_lane_resumes(&mut self, port: u32, lane: u8) {
        let until = self.observed.standing(port, lane).map_or(self.now, |pause| pause.from);
        let first = self.ports[port as usize].first_queue as usize + 1 + usize::from(lane);
        let lanes = self.lanes;
        let Some(critical) = self.blocking.as_mut().and_then(|oracle| oracle.critical.as_deref_mut()) else {
            return;
        };
        if let Some(from) = critical.held.remove(&(port, lane)) {
            for list in [first, first + lanes] {
                critical.pasts[list].push(Past { from, until, part: Part::Down, root: NONE });
            }
        }
    }

    /// What this part knows at the end of the run. Before [`Core::blame`].
    pub fn paths(&mut self, now: Time) -> Option<Known> {
        let mut critical = self.critical()?;
        self.now = now;
        let mut known = Known::default();
        known.flows.extend(critical.done.drain(..).map(|(flow, path)| (flow, false, path)));
        for (flow, f) in (0u32..).zip(&self.plan.flows) {
            let seen = &self.observed.flows[flow as usize];
            if self.partition.of(f.src) != self.part || seen.started.is_none() || seen.completed.is_some() {
                continue;
            }
            let sender = &self.senders[flow as usize];
            let (ready, held, port) = (sender.ready(), sender.held(), sender.port());
            critical.sources[flow as usize].rewind(now);
            if ready {
                self.wait_in_ring(&mut critical, flow);
            }
            let source = &mut critical.sources[flow as usize];
            let part = if held { Part::Pacing } else { Part::Recovery };
            let time = now - source.at;
            add(&mut source.pieces, Piece { leg: Leg::Source, part, port, root: NONE, time });
            known.flows.push((flow, !ready && !held, std::mem::take(&mut source.pieces)));
        }
        for id in 0..self.packets.slots().len() as u32 {
            let packet = self.packets[id];
            let leg = match packet.kind {
                Kind::Data => Leg::Data,
                Kind::Ack | Kind::Nack => Leg::Ack,
                Kind::Free | Kind::Cnp | Kind::Control => continue,
            };
            let mut record = critical.take(id);
            let oldest = known.under_way.get(&packet.flow).is_none_or(|other| record.sent < other.0);
            if !record.live || !oldest {
                continue;
            }
            if record.list != NONE {
                let port = self.hops[packet.hop as usize];
                let queue = 1 + u32::from(packet.lane);
                let group = self.ports[port as usize].first_queue + queue;
                self.wait_in_queues(&mut critical, &mut record, group, (port, leg, packet.hop), now);
            }
            // What is on a wire arrives after the end.
            let mut ahead = record.at - now;
            while let Some(piece) = record.way.last_mut().filter(|_| ahead > 0) {
                let time = piece.time.min(ahead);
                piece.time -= time;
                ahead -= time;
                if piece.time == 0 {
                    record.way.pop();
                }
            }
            let path = in_order(record.source, record.way);
            known.under_way.insert(packet.flow, (record.sent, path));
        }
        Some(known)
    }
}

/// The pieces of a path as one has them who follows it: those of the source first,
/// then port by port of the `way`; what is alike is one piece.
fn in_order(source: Vec<Piece>, way: Vec<Piece>) -> Vec<Piece> {
    let mut places: Vec<(Leg, u32)> = Vec::new();
    for piece in way.iter().chain(&source) {
        if !places.contains(&(piece.leg, piece.port)) {
            places.push((piece.leg, piece.port));
        }
    }
    // Stable: within a leg they stay in the order of the way.
    places.sort_by_key(|place| place.0);
    let mut path = source;
    way.into_iter().for_each(|piece| add(&mut path, piece));
    let place = |p: &Piece| places.iter().position(|&place| place == (p.leg, p.port));
    path.retain(|p| p.time > 0);
    path.sort_by_key(|p| (place(p), p.part, p.root));
    path
}

/// All flows' paths, of what the parts of a run know.
pub fn shares(plan: &Plan, parts: Vec<Known>) -> Vec<Share> {
    let mut under_way: BTreeMap<u32, (Time, Vec<Piece>)> = BTreeMap::new();
    let mut flows: Vec<Option<(bool, Vec<Piece>)>> = vec![None; plan.flows.len()];
    for part in parts {
        for (flow, waits, path) in part.flows {
            flows[flow as usize] = Some((waits, path));
        }
        for (flow, other) in part.under_way {
            let known = under_way.entry(flow).or_insert_with(|| (Time::MAX, Vec::new()));
            if other.0 < known.0 {
                *known = other;
            }
        }
    }
    let mut shares = Vec::new();
    for (flow, known) in (0..).zip(flows) {
        let Some((waits, mut path)) = known else { continue };
        if let Some((_, way)) = under_way.remove(&flow).filter(|_| waits) {
            path = way;
        }
        let path = in_order(path, Vec::new());
        let mut step = 0;
        for (i, p) in path.iter().enumerate() {
            step += u32::from(i > 0 && (path[i - 1].leg, path[i - 1].port) != (p.leg, p.port));
            let root = (p.root != NONE).then_some(p.root);
            shares.push(Share { flow, step, leg: p.leg, part: p.part, port: p.port, root, time: p.time });
        }
    }
    shares
}
