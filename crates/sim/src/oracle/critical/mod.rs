//! Critical paths: where the time of a flow went, from its start until its last acknowledgement. Part of the
//! blocking oracle; it sees everything and changes nothing.
//!
//! *The path.* A flow is complete when an ACK (or under selective repeat a NACK) reaches its sender. It left
//! its receiver as a data packet arrived there, and that packet left its sender at a time `s`. So the time of
//! the flow has two parts: the activity of its source until `s`, and the path of this packet and of its ACK.
//! The packet is not known in advance. So each possible data packet has a record of its past, which its ACK
//! takes over. The record starts with the activity of the source until the packet was made.
//!
//! *The source* is in one state at a time: a packet of the flow is on its wire (sending, or recovery if it is
//! a retransmission); the queue pair is in its ring (and waits as packets do, see below); its pace or
//! congestion control holds it; or it may not send before an ACK or NACK arrives. If it then retransmits, the
//! wait was recovery. If not, it waited for a packet in flight: each instant of the wait counts at the place
//! of that packet.
//!
//! *A wait in a queue* is cut where pauses of the queue begin and end: own if the pause's root is on the rest
//! of the path, victim if not, queueing while nothing is paused, and after a pause behind packets that had
//! piled up. If the pause's frame names a port, whether that is on the rest of the path is kept beside it.
//!
//! *Who was ahead.* Each port keeps a list of what it sent and when. At the end of the run, the packets that it sent
//! during a wait of a critical packet are those that were ahead of this packet.
//!
//! *At what cost.* A port keeps 16 bytes for each packet that it sends. A record has a source's parts (one for
//! each port, part and root) and some three for each hop; so some hundred bytes. Records are beside the
//! packets' slots, and travel with posted events. Where packets stay in order and no window closes (go-back-N
//! without one), only a flow's last packet and retransmissions are followed: the ACK of one of these then
//! completes a flow.

mod ahead;
mod end;
mod moves;
mod record;

pub use end::paths;
pub use record::Record;

use crate::oracle::ahead::{Known, crosses};
use crate::outcome::{Leg, Named, Part, Pause};
use crate::packet::{Kind, NONE};
use record::{Piece, Sent, Source, Wait};
use std::collections::BTreeMap;
use xoff_kernel::time::Time;
use xoff_plan::{balancing::LoadBalancing, plan::Plan};
use xoff_schemes::flow_control::PauseScope;

/// A span in which a list did not send.
#[derive(Clone, Copy, Debug)]
struct Past {
    from: Time,
    until: Time,
    part: Part,
    /// Of [`Part::Own`] or [`Part::Victim`], whichever of them it is.
    root: u32,
    /// The port that the pause's frame named, or [`NONE`].
    named: u32,
}

impl Past {
    /// A span that is no pause.
    fn closed(from: Time, until: Time, part: Part) -> Self {
        Self { from, until, part, root: NONE, named: NONE }
    }
}

/// The place of a wait: its list, the queue that this is a part of (or is), and the rest of its path.
#[derive(Clone, Copy)]
struct Place<'h> {
    list: u32,
    group: u32,
    port: u32,
    leg: Leg,
    plan: &'h Plan,
    hop: u32,
}

/// The oracle's state for critical paths in a part of a run.
#[derive(Default)]
pub struct Critical {
    sources: Vec<Source>,
    /// Every data packet is followed, not only those that can complete flows while packets stay in order.
    all: bool,
    /// By packet: whether it is followed.
    live: Vec<bool>,
    records: Vec<Record>,
    /// By list: its pauses that have ended, in order.
    pasts: Vec<Vec<Past>>,
    /// Ports that the plan closes: receivers that do not read, links that are down.
    closed: BTreeMap<u32, Vec<Past>>,
    /// By port and lane: held since then, with no pause, after a link's recovery.
    held: BTreeMap<(u32, u8), Time>,
    done: Vec<(u32, Vec<Piece>, Vec<Wait>)>,
    /// By port: what it sent, in the order of time.
    sent: Vec<Vec<Sent>>,
    /// Of the wait that is being looked at.
    spans: Vec<Past>,
    known: Known,
}

impl Critical {
    pub fn new(plan: &Plan, lists: usize) -> Self {
        let mut closed: BTreeMap<u32, Vec<Past>> = BTreeMap::new();
        let mut close = |port, spans: &[(Time, Time)], part| {
            let pasts = spans.iter().map(|&(from, until)| Past::closed(from, until, part));
            closed.entry(port).or_default().extend(pasts);
        };
        plan.receivers.iter().for_each(|r| close(r.rx, &r.stalls, Part::Receiver));
        plan.faults.down.iter().for_each(|d| close(d.port, &d.spans, Part::Down));
        let windows = plan.transport.kind.traits().limits_flight
            || plan.transport.window.is_some()
            || plan.transport.variable_window.is_some()
            || plan.congestion_control.wants_answers();
        Self {
            all: windows
                || !plan.faults.tables.is_empty()
                || matches!(plan.load_balancing, LoadBalancing::Packets(_))
                || plan.flow_control.traits().pause_scope == PauseScope::Root,
            sources: vec![Source::default(); plan.flows.len()],
            pasts: vec![Vec::new(); lists],
            sent: vec![Vec::new(); plan.topology.ports.len()],
            closed,
            ..Self::default()
        }
    }

    pub fn joins(&mut self, list: usize, id: u32, now: Time) {
        if self.follows(id) {
            let record = &mut self.records[id as usize];
            let before = std::mem::replace(&mut record.list, list as u32);
            if before != NONE {
                record.stays.get_or_insert_default().push((before, now));
            }
        }
    }

    fn follows(&self, id: u32) -> bool {
        self.live.get(id as usize).is_some_and(|live| *live)
    }

    pub fn paused(&mut self, list: usize, pause: &Pause, until: Time) {
        if pause.from < until {
            self.pasts[list].push(past(pause, until));
        }
    }

    pub fn take(&mut self, id: u32) -> Option<Record> {
        let followed = self.follows(id);
        self.forget(id);
        followed.then(|| std::mem::take(&mut self.records[id as usize]))
    }

    pub fn keep(&mut self, id: u32, record: Option<Record>) {
        match record {
            Some(record) => *self.begin(id) = record,
            None => self.forget(id),
        }
    }

    fn begin(&mut self, id: u32) -> &mut Record {
        let id = id as usize;
        if id >= self.records.len() {
            self.records.resize_with(id + 1, Record::default);
            self.live.resize(id + 1, false);
        }
        self.live[id] = true;
        &mut self.records[id]
    }

    fn forget(&mut self, id: u32) {
        if let Some(live) = self.live.get_mut(id as usize) {
            *live = false;
        }
    }

    /// Cuts a wait into pieces, in the order of time. `standing` are pauses that have not ended yet.
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
        let mut give = |piece: Piece| {
            if piece.time > 0 {
                give(piece);
            }
        };
        let queueing = |time| Piece::free(place.leg, Part::Queueing, place.port, time);
        // Of two at once the one that began first counts.
        spans.sort_by_key(|past| (past.from, past.part, past.root, past.named));
        let mut at = from;
        for past in spans {
            let (begin, end) = (past.from.max(at), past.until.min(to));
            if begin >= end {
                continue;
            }
            give(queueing(begin - at));
            let mut off = |root| !crosses(place.plan, place.hop, root, &mut self.known);
            let part = if past.part == Part::Own && off(past.root) { Part::Victim } else { past.part };
            let named = (past.named != NONE).then(|| Named { root: past.named, victim: off(past.named) });
            let Past { root, .. } = *past;
            give(Piece { leg: place.leg, part, port: place.port, root, named, time: end - begin });
            at = end;
        }
        give(queueing(to - at));
    }
}

/// The part of its flow's path that a packet is on; none if it carries neither data nor an acknowledgement.
fn leg(kind: Kind) -> Option<Leg> {
    match kind {
        Kind::Data => Some(Leg::Data),
        Kind::Ack | Kind::Nack => Some(Leg::Ack),
        Kind::Free
        | Kind::Cnp
        | Kind::Header
        | Kind::Pull
        | Kind::Control
        | Kind::Probe
        | Kind::ProbeAck
        | Kind::Replay
        | Kind::Word => None,
    }
}

/// A pause as a span; whether it is a victim depends on who waits.
fn past(pause: &Pause, until: Time) -> Past {
    // One that no frame caused follows a link's recovery.
    let Some(root) = pause.root else { return Past::closed(pause.from, until, Part::Down) };
    Past { from: pause.from, until, part: Part::Own, root, named: pause.named_root.unwrap_or(NONE) }
}
