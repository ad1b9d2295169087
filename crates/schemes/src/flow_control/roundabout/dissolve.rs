//! Roundabout's resolution (section IV): the packets of a deadlocked loop go round until they are
//! where they leave it.
//!
//! A switch that knows its two ports in the loop has a [`Seat`] there. The steps, in order:
//!
//! ```text
//! coordinator C (its triplet came back at ingress p):
//!   3  announcement, against the flow                    all learn that there is a deadlock
//!   4  [C], against the flow; each switch puts its id in front; copies on all causal queues that
//!      pause; each queue passes on the first one
//!   the first copy that is back at C, at egress e, selects the loop: C's seat is (p, e)
//!   5  [C, …, C], with the flow; each finds (the one before, itself, the next one), takes its seat
//!      and drops the front one; one that cannot says so against the flow, and so does one whose
//!      egress queue may go again: all leave their seats, and nothing has happened
//!   8  when that is back, with the flow: who passes it on stays until the end
//! C, when that is back, and every switch with the first grant from downstream:
//!   6  grants upstream what is free of its headroom, less what it has granted and not yet got;
//!      the same later, as soon as that is a largest packet, or makes one of what upstream has
//!   its barrier (7) goes ahead of all that waits at e; behind
//!      it data, while the credit left is a largest packet at least
//!   a packet with a path that leaves the loop here leaves it, unless that queue is paused, or too
//!      much waits there already, or one of its flow has missed it in this round: then it is marked
//!      and goes on in the loop
//!   a marked packet goes on in the loop
//!   its own barrier comes back behind everything that was ahead of it: nothing goes out any more,
//!      and marked packets behind the barrier are back: the mark is cleared
//! coordinator, when its own barrier is back:
//!   8  asks all, with the flow: is your barrier back, your queue below XON, has anything left?
//!      all below: a last 8 ends it; a barrier is out: it asks again; a queue is too long: another
//!      round, unless nothing has left the loop in this one
//! meanwhile, once for each turn of the longest loop:
//!   8  asks whether anything moves; so the others know that it is there
//! ```
//!
//! How the paper's open points are read:
//!
//! - `roundabout.credit-accounting`: grants are increments; what is granted and has not come is counted.
//!   `roundabout.redundant-headroom`: all that is free of the headroom is granted.
//! - `roundabout.false-full-audit`: a packet that leaves a loop's queue makes as much room for the loop's
//!   ingress queue, whosever it was: of its headroom as long as it has used any, else by a charge that stays
//!   without a packet, and that a packet which comes takes over. What such a packet had of the shared pool
//!   goes to that queue, whatever its threshold, so that nobody else can take it first. (The paper has it ask
//!   for more by its dynamic threshold, which with static thresholds is nothing.) Where the packet's own
//!   ingress queue had headroom alone, that stays charged, and the queue paused, until packets of the loop's
//!   leave in its place, or the switch leaves the loop.
//! - *A round ends, whatever happens around the loop.* What a switch has sent can come home: its ingress
//!   queue has the room of the start, and what its own queue has sent, less what is there of others. Those
//!   that go on in the loop do go on: around it the room is never less than at the start, and with a largest
//!   packet for each link someone can send. Those that leave it wait in queues that others may pause, so
//!   their sum is limited: to what was free at the start of the round, less a largest packet, or to one that
//!   finds its queue empty. A host's own packets have no room to come back to, and wait beside the loop. A
//!   grant is due, too, when it brings what upstream has to a largest packet.
//! - `roundabout.announcement-effect`: packets from other ingress ports wait beside the queue of a seat.
//! - `roundabout.nodeid-list`: C inserts itself before opcode 4 and before opcode 5.
//! - `roundabout.route-packet-priority`: all opcodes but 7 are control frames; a barrier lies among the data,
//!   takes no credit and no room of an account.
//! - `roundabout.nearest-exit`: a marked packet leaves the loop only from where it began, and packets of its
//!   flow behind it are marked as well.
//! - `roundabout.check-message`, `roundabout.check-sender`: every switch must be ready, and C asks. The last
//!   opcode 8, which reports the end to them, is not in the paper.
//! - A new round begins with C's next barrier: it carries the number of the round in `rand`, and a switch
//!   that sees a later one than its own sends its own ahead. (A control frame and data would overtake each
//!   other.)
//! - `roundabout.several-winners`: the first seat in a queue holds, and a frame that would give it another is
//!   refused. So of several loops that share a queue one is dissolved.
//!
//! **Giving up**: after a round in which nothing has left the loop, or [`MOST_ROUNDS`] of them, the
//! coordinator ends it. All packets are then back in their queues, the deadlock exists as before, and the
//! next refresh of its pauses finds it again. A switch that waits for longer than `patience` leaves its seat,
//! informs both neighbours, and obeys pauses again. Until all have agreed the limit is a quarter of
//! `patience`; for the coordinator the time counts in which nothing has moved. A marked packet then continues
//! on its own path from a switch on that path, and is dropped at any other switch.

use super::Roundabout;
use super::frame::{Opcode, RoundaboutFrame};
use super::registers::Triplet;
use crate::flow_control::device::Loops;
use crate::flow_control::{ControlFrame, LoopDecision, LoopPacket, Machine};
use xoff_kernel::time::Time;
use xoff_wire::nodes::{MOST_NODES, Nodes};

/// Most switches in a loop that a frame can name.
pub const LONGEST_LOOP: u64 = MOST_NODES as u64 - 2;

/// Rounds after which a coordinator gives up (`roundabout.check-sender`).
pub const MOST_ROUNDS: u32 = 10;

// States of a check.
const OUT: u32 = 1; // A barrier has not come back.
const LONG: u32 = 2; // A queue is not below XON.
const DONE: u32 = 4; // The deadlock is dissolved.
const GIVEN_UP: u32 = 8; // It is not, and everyone gives up.
const AGREED: u32 = 16; // Before the first round: who passes this on stays until the end.
const BACK: u32 = 32; // It goes against the flow.
const MOVED: u32 = 64; // Packets have left the loop in this round.
const ALIVE: u32 = 128; // A neighbour has sent something since the last check, or may send.
const STILL: u32 = 256; // The coordinator asks only that, in the middle of a round.

/// Readings that are taken as the paper prints them. None of them is by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Printed {
    /// `roundabout.check-message`: one switch that is ready replies for all.
    pub check: bool,
    /// `roundabout.credit-accounting`: a grant names all that is free, granted before or not.
    pub credit: bool,
    /// `roundabout.nearest-exit`: no rule for packets after one that has missed its exit.
    pub exit: bool,
}

/// A device's place in a loop that is being dissolved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seat {
    pub attempt: Triplet,
    /// It is the coordinator's.
    pub(super) leads: bool,
    /// Its ports in the loop.
    pub ingress: u32,
    pub egress: u32,
    pub lane: u8,
    /// Bytes that may be sent.
    pub(super) credit: u64,
    /// Whether it stays until the end, whatever its neighbour downstream sends.
    agreed: bool,
    /// All have agreed: upstream can be granted something.
    pub(super) grants: bool,
    /// Bytes granted that have not come.
    pub(super) outstanding: u64,
    /// Which round it is in; 0 until its first barrier.
    pub(super) round: u32,
    /// Its barrier has come back to the head of its queue.
    pub(super) back: bool,
    /// Its barrier has come back to its queue.
    pub(super) behind: bool,
    /// Flows of which a packet missed its exit in this round.
    missed: Vec<u32>,
    /// The free bytes of its headroom when the round began.
    room: u64,
    /// Bytes of its ingress queue that wait elsewhere than in the loop, against then.
    pub(super) outside: i64,
    /// Bytes that came from the loop in this round and did not stay in it.
    pub(super) left: i64,
    /// Whether it has sent something since the last check.
    pub(super) sent: bool,
    /// The coordinator: quarters of its patience in which nothing has moved.
    quiet: u32,
    /// The last word of the neighbour downstream: whether it pauses.
    paused: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// The coordinator's route packet is back, and all have their seats.
    Seated,
    /// All barriers are back.
    Round,
    Dissolved,
    GivenUp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempted {
    pub at: Time,
    pub attempt: Triplet,
    pub step: Step,
}

impl Roundabout {
    pub(super) fn seat_in(&self, port: u32, lane: u8) -> Option<usize> {
        self.seats.iter().position(|s| (s.ingress, s.lane) == (port, lane))
    }

    pub(super) fn seat_out(&self, port: u32, lane: u8) -> Option<usize> {
        self.seats.iter().position(|s| (s.egress, s.lane) == (port, lane))
    }

    fn patience_of(&self, port: u32, lane: u8) -> u32 {
        (self.pfc.timers() + self.at(port, lane)) as u32
    }

    fn frame(&self, lane: u8, opcode: Opcode, triplet: Triplet, nodes: Nodes) -> ControlFrame {
        let priority = self.priorities[usize::from(lane)];
        ControlFrame::Roundabout(RoundaboutFrame { priority, quanta: None, opcode, triplet, nodes })
    }

    /// A frame about an attempt, with a number in the place of `rand`.
    fn tell(&self, device: &mut impl Loops, port: u32, seat: &Seat, opcode: Opcode, number: u32) {
        let triplet = Triplet { rand: number, ..seat.attempt };
        device.send_control(port, self.frame(seat.lane, opcode, triplet, Nodes::default()));
    }

    pub(super) fn step(&mut self, device: &impl Loops, attempt: Triplet, step: Step) {
        self.attempts.push(Attempted { at: device.now(), attempt, step });
    }

    /// The triplet of the ingress queue came back: its switch leads the resolution.
    pub(super) fn coordinates(&mut self, device: &mut impl Loops, port: u32, lane: u8, own: Triplet) {
        // Copies on other paths, and refreshes, belong to the same attempt.
        let (at, now) = (self.at(port, lane), device.now());
        let soon = self.tried[at].is_some_and(|(t, before)| t == own && now - before < self.params.turn);
        if soon || self.seat_in(port, lane).is_some() {
            return;
        }
        self.tried[at] = Some((own, now));
        device.send_control(port, self.frame(lane, Opcode::Announcement, own, Nodes::default()));
        let mut nodes = Nodes::default();
        if nodes.push_front(own.sid) {
            device.send_control(port, self.frame(lane, Opcode::Collect, own, nodes));
        }
    }

    pub(super) fn guided(&mut self, device: &mut impl Loops, port: u32, lane: u8, frame: &RoundaboutFrame) {
        match frame.opcode {
            Opcode::Announcement => self.announced(device, port, lane, frame.triplet),
            Opcode::Collect => self.collects(device, port, lane, frame),
            Opcode::Build => self.builds(device, port, lane, frame),
            Opcode::Credit => self.credited(device, port, lane, frame.triplet.rand),
            Opcode::Check => self.checked(device, port, lane, frame.triplet),
            Opcode::Probe | Opcode::Invalid | Opcode::Barrier => {}
        }
    }

    /// An announcement goes to the source of its triplet; its content is recorded.
    fn announced(&mut self, device: &mut impl Loops, egress: u32, lane: u8, t: Triplet) {
        for port in Self::causes(device, egress, lane) {
            let at = self.at(port, lane);
            let registers = &self.registers[at];
            if registers.init.get() == Some(t) {
                if let Some(found) = self.detections.iter_mut().rfind(|d| d.triplet == t) {
                    found.all_know.get_or_insert(device.now());
                }
            } else if registers.pauses() && registers.curr.get() == Some(t) && self.announced[at] != Some(t) {
                self.announced[at] = Some(t);
                device.send_control(port, self.frame(lane, Opcode::Announcement, t, Nodes::default()));
            }
        }
    }

    /// Accumulation of routing information (section IV-A). A loop may lead through a switch twice, by
    /// different queues. So each queue, not each switch, passes on only the first copy (section VII-A).
    fn collects(&mut self, device: &mut impl Loops, egress: u32, lane: u8, frame: &RoundaboutFrame) {
        let (own, t, mut nodes) = (device.device_of(egress), frame.triplet, frame.nodes);
        // A longer loop than a frame can name.
        if !nodes.push_front(own) {
            return;
        }
        let causes = Self::causes(device, egress, lane);
        let leads = |&&port: &&u32| self.registers[self.at(port, lane)].init.get() == Some(t);
        if let Some(&ingress) = causes.iter().find(leads) {
            if device.is_stopped(egress, lane) && !self.taken(ingress, egress, lane) {
                self.sits(device, Seat { attempt: t, leads: true, ingress, egress, lane, ..Seat::default() });
                device.send_control(egress, self.frame(lane, Opcode::Build, t, nodes));
            }
            return;
        }
        let now = device.now();
        for port in causes {
            let at = self.at(port, lane);
            let passed = self.collected[at]
                .is_some_and(|(last, when, _)| last == t && now - when < self.params.turn / 2);
            if self.registers[at].pauses() && !passed {
                self.collected[at] = Some((t, now, egress));
                device.send_control(port, self.frame(lane, Opcode::Collect, t, nodes));
            }
        }
    }

    fn taken(&self, ingress: u32, egress: u32, lane: u8) -> bool {
        self.seat_in(ingress, lane).is_some() || self.seat_out(egress, lane).is_some()
    }

    /// Nothing will come of an attempt: all learn that, against the flow.
    fn refuses(&mut self, device: &mut impl Loops, ingress: u32, lane: u8, attempt: Triplet) {
        let triplet = Triplet { rand: GIVEN_UP | BACK, ..attempt };
        device.send_control(ingress, self.frame(lane, Opcode::Check, triplet, Nodes::default()));
    }

    /// Build-up of the routing table (section IV-A).
    fn builds(&mut self, device: &mut impl Loops, ingress: u32, lane: u8, frame: &RoundaboutFrame) {
        let (own, t) = (device.device_of(ingress), frame.triplet);
        let &[_, this, ref rest @ ..] = frame.nodes.as_slice() else { return };
        if this != own {
            return;
        }
        let Some(&next) = rest.first() else {
            // Around: everyone has a seat.
            let leads = |&at: &usize| self.seats[at].leads && self.seats[at].attempt == t;
            if let Some(at) = self.seat_in(ingress, lane).filter(leads) {
                self.seats[at].agreed = true;
                self.waits_on(device, at);
                self.tell(device, self.seats[at].egress, &self.seats[at], Opcode::Check, AGREED);
            }
            return;
        };
        // The loop goes on where the route packet came from: there may be several links to the next one.
        let came = self.collected[self.at(ingress, lane)].filter(|(last, ..)| *last == t);
        let leads = |&egress: &u32| {
            device.neighbour(egress) == next
                && device.is_stopped(egress, lane)
                && device.waits(ingress, egress, lane)
                && !self.taken(ingress, egress, lane)
        };
        let Some(egress) = came.map(|(.., egress)| egress).filter(leads) else {
            return self.refuses(device, ingress, lane, t);
        };
        self.sits(device, Seat { attempt: t, ingress, egress, lane, ..Seat::default() });
        let mut nodes = frame.nodes;
        nodes.pop_front();
        device.send_control(egress, self.frame(lane, Opcode::Build, t, nodes));
    }

    /// From now on credit, and no pause, says whether the egress queue sends.
    fn sits(&mut self, device: &mut impl Loops, seat: Seat) {
        let Seat { egress, lane, .. } = seat;
        self.seats.push(Seat { paused: Some(self.pfc.quanta()), ..seat });
        self.pfc.forgets_pause(device, egress, lane);
        device.enter_loop(egress, lane);
        self.follows_charges(device);
        self.waits_on(device, self.seats.len() - 1);
    }

    /// Something has happened: patience begins anew.
    fn waits_on(&mut self, device: &mut impl Loops, at: usize) {
        let seat = &self.seats[at];
        if seat.leads && seat.round > 0 {
            // Its timer goes off each turn.
            self.seats[at].quiet = 0;
            return;
        }
        // Until it has agreed it is a turn, else four.
        let turns = if seat.agreed && !seat.leads { 1 } else { 4 };
        device.arm(self.patience_of(seat.ingress, seat.lane), device.now() + self.params.patience / turns);
    }

    /// All have agreed. The first grant is due however little it is: with it upstream begins.
    fn begins_to_grant(&mut self, device: &mut impl Loops, at: usize) {
        let free = self.free(device, at);
        let seat = &mut self.seats[at];
        (seat.grants, seat.room, seat.outside) = (true, free, 0);
        self.grant(device, at, free);
    }

    /// Grants upstream the free bytes, if they are worth a frame.
    pub(super) fn grants(&mut self, device: &mut impl Loops, at: usize) {
        let (largest, outstanding) = (u64::from(self.params.largest), self.seats[at].outstanding);
        let free = self.free(device, at);
        let completes = outstanding < largest && outstanding + free >= largest;
        if self.seats[at].grants && (free >= largest || completes) {
            self.grant(device, at, free);
        }
    }

    /// The free bytes of the headroom that are not granted.
    fn free(&self, device: &impl Loops, at: usize) -> u64 {
        let seat = &self.seats[at];
        let granted = if self.resolves.credit { 0 } else { seat.outstanding };
        self.room(device, seat).saturating_sub(granted).min(u64::from(u32::MAX))
    }

    /// The free bytes of the headroom, with the account's kept bytes.
    fn room(&self, device: &impl Loops, seat: &Seat) -> u64 {
        let (total, used) = device.headroom(seat.ingress, seat.lane);
        (total + self.charges.reserved(seat.ingress, seat.lane)).saturating_sub(used)
    }

    fn grant(&mut self, device: &mut impl Loops, at: usize, bytes: u64) {
        self.seats[at].outstanding += bytes;
        let seat = &self.seats[at];
        self.tell(device, seat.ingress, seat, Opcode::Credit, bytes as u32);
    }

    /// Credit from downstream; with the first of it the first round begins.
    fn credited(&mut self, device: &mut impl Loops, egress: u32, lane: u8, bytes: u32) {
        let Some(at) = self.seat_out(egress, lane) else { return };
        self.waits_on(device, at);
        self.seats[at].credit += u64::from(bytes);
        if self.seats[at].round == 0 {
            self.begins_round(device, at, 1);
            // The leader has begun with it.
            if !self.seats[at].grants {
                self.begins_to_grant(device, at);
            }
        } else if !self.seats[at].back {
            device.gate(egress, lane, true);
        }
    }

    fn begins_round(&mut self, device: &mut impl Loops, at: usize, round: u32) {
        let room = self.room(device, &self.seats[at]);
        let seat = &mut self.seats[at];
        (seat.round, seat.back, seat.behind) = (round, false, false);
        if round > 1 {
            // Everything is back that was granted room. (The first round began with the grant.)
            (seat.room, seat.outside, seat.left) = (room, 0, 0);
            seat.missed.clear();
        }
        let (ingress, egress, lane) = (seat.ingress, seat.egress, seat.lane);
        let (sid, qid) = self.source(device, ingress, lane);
        let own = Triplet { sid, qid, rand: round, hops: 0 };
        device.insert(egress, lane, self.frame(lane, Opcode::Barrier, own, Nodes::default()), true);
        device.gate(egress, lane, true);
    }

    /// A barrier arrived at `port`: it waits among the data.
    pub(super) fn barrier(&mut self, device: &mut impl Loops, port: u32, lane: u8, frame: &RoundaboutFrame) {
        // Without a seat it has nowhere to go.
        let Some(at) = self.seat_in(port, lane) else { return };
        self.waits_on(device, at);
        let own = (frame.triplet.sid, frame.triplet.qid) == self.source(device, port, lane);
        let seat = &mut self.seats[at];
        let egress = seat.egress;
        if own && frame.triplet.rand == seat.round {
            seat.behind = true;
        } else if own {
            return;
        } else if frame.triplet.rand > seat.round && seat.round > 0 {
            // The next round has begun: its own barrier goes ahead of this one.
            self.begins_round(device, at, frame.triplet.rand);
        }
        device.insert(egress, lane, ControlFrame::Roundabout(*frame), false);
    }

    pub(super) fn asks(&mut self, device: &mut impl Loops, at: usize) {
        let seat = &self.seats[at];
        self.tell(device, seat.egress, seat, Opcode::Check, self.state(device, seat));
    }

    fn state(&self, device: &impl Loops, seat: &Seat) -> u32 {
        let out = if seat.back { 0 } else { OUT };
        let reserved = self.charges.reserved(seat.ingress, seat.lane);
        let long = if device.is_over(seat.ingress, seat.lane, reserved) { LONG } else { 0 };
        let moved = if seat.left > 0 { MOVED } else { 0 };
        // A queue that may send and does not waits for others on the wire.
        let may_go = !device.is_stopped(seat.egress, seat.lane) && device.backlog(seat.egress, seat.lane) > 0;
        out | long | moved | if seat.sent || may_go { ALIVE } else { 0 }
    }

    fn checked(&mut self, device: &mut impl Loops, port: u32, lane: u8, said: Triplet) {
        let sits = if said.rand & BACK == 0 { self.seat_in(port, lane) } else { self.seat_out(port, lane) };
        let Some(at) = sits.filter(|&at| self.seats[at].attempt.same_source(&said)) else { return };
        let (attempt, ingress, said) = (self.seats[at].attempt, self.seats[at].ingress, said.rand);
        if said & BACK != 0 {
            self.gives_up(device, at);
            return self.refuses(device, ingress, lane, attempt);
        }
        let seat = &self.seats[at];
        let leads = seat.leads;
        if said & (DONE | GIVEN_UP) != 0 {
            self.tell(device, seat.egress, seat, Opcode::Check, said);
            return self.leaves(device, at);
        }
        if said & AGREED != 0 {
            if !leads {
                self.tell(device, seat.egress, seat, Opcode::Check, said);
                self.seats[at].agreed = true;
                self.waits_on(device, at);
            } else if !seat.grants {
                self.step(device, attempt, Step::Seated);
                self.begins_to_grant(device, at);
            }
            return;
        }
        let state = self.state(device, seat);
        let ready = |state: u32| state & (OUT | LONG) == 0;
        let one_for_all = self.resolves.check && said & STILL == 0 && (ready(said) || ready(state));
        let said = if one_for_all { (said | state) & !(OUT | LONG) } else { said | state };
        self.seats[at].sent = false;
        // As long as anything moves the coordinator asks, and as long as it asks the others wait.
        if !leads || said & ALIVE != 0 {
            self.waits_on(device, at);
        }
        let seat = &self.seats[at];
        if !leads {
            return self.tell(device, seat.egress, seat, Opcode::Check, said);
        }
        if said & STILL != 0 {
            return;
        }
        if said & OUT != 0 {
            return self.asks(device, at);
        }
        if said & (LONG | MOVED) == LONG | MOVED && seat.round < MOST_ROUNDS {
            let round = seat.round + 1;
            return self.begins_round(device, at, round);
        }
        let (end, step) = if said & LONG == 0 { (DONE, Step::Dissolved) } else { (GIVEN_UP, Step::GivenUp) };
        self.tell(device, self.seats[at].egress, &self.seats[at], Opcode::Check, end);
        self.step(device, attempt, step);
        if step == Step::Dissolved {
            // A later triplet that comes back belongs to another deadlock.
            let queue = self.at(self.seats[at].ingress, lane);
            self.tried[queue] = None;
        }
        self.leaves(device, at);
    }

    /// It obeys pauses again; packets that waited outside the loop join its queue.
    fn leaves(&mut self, device: &mut impl Loops, at: usize) {
        let seat = self.seats.remove(at);
        device.cancel(self.patience_of(seat.ingress, seat.lane));
        self.settles_later(device, seat.ingress, seat.lane);
        device.leave_loop(seat.egress, seat.lane);
        self.follows_charges(device);
        if let Some(quanta) = seat.paused {
            let frame = xoff_wire::pfc::PfcFrame::single(self.priorities[usize::from(seat.lane)], quanta);
            self.pfc.obey(device, seat.egress, &frame);
        }
    }

    /// It leaves before the loop is dissolved.
    fn gives_up(&mut self, device: &mut impl Loops, at: usize) {
        let seat = &self.seats[at];
        if seat.leads {
            self.step(device, seat.attempt, Step::GivenUp);
        }
        self.leaves(device, at);
    }

    fn gives_up_with_all(&mut self, device: &mut impl Loops, at: usize) {
        let seat = &self.seats[at];
        let (ingress, lane, attempt) = (seat.ingress, seat.lane, seat.attempt);
        self.tell(device, seat.egress, seat, Opcode::Check, GIVEN_UP);
        self.refuses(device, ingress, lane, attempt);
        self.gives_up(device, at);
    }

    /// A pause of the neighbour downstream for a seat's egress queue counts later; but if it resumes before
    /// all have agreed, the loop was none.
    pub(super) fn on_pause(&mut self, device: &mut impl Loops, egress: u32, lane: u8, quanta: u16) -> bool {
        let Some(at) = self.seat_out(egress, lane) else { return false };
        self.seats[at].paused = (quanta > 0).then_some(quanta);
        if quanta == 0 && !self.seats[at].agreed {
            self.gives_up_with_all(device, at);
        }
        true
    }

    pub(super) fn loses_patience(&mut self, device: &mut impl Loops, timer: u32) {
        let at = timer as usize - self.pfc.timers();
        let lanes = self.priorities.len();
        let (port, lane) = ((at / lanes) as u32, (at % lanes) as u8);
        let Some(at) = self.seat_in(port, lane) else { return };
        let seat = &self.seats[at];
        let quiet = seat.quiet + 1;
        if !seat.leads || seat.round == 0 || quiet == 4 {
            return self.gives_up_with_all(device, at);
        }
        self.tell(device, seat.egress, seat, Opcode::Check, STILL | self.state(device, seat));
        device.arm(timer, device.now() + self.params.patience / 4);
        (self.seats[at].sent, self.seats[at].quiet) = (false, quiet);
    }

    /// The link of `port` has failed: a loop over it is none any more.
    pub(super) fn breaks(&mut self, device: &mut impl Loops, port: u32, lane: u8) {
        while let Some(at) = self.seat_in(port, lane).or_else(|| self.seat_out(port, lane)) {
            self.gives_up_with_all(device, at);
        }
    }

    pub(super) fn passes(&mut self, device: &mut impl Loops, packet: &LoopPacket) -> LoopDecision {
        let LoopPacket { ingress, egress, lane, flow, size, marked } = *packet;
        // Packets before its first grant belong to no round.
        let Some(at) = self.seat_in(ingress, lane).filter(|&at| self.seats[at].grants) else {
            return match (marked, self.seat_out(egress, lane).filter(|&at| self.seats[at].ingress != ingress))
            {
                (true, _) => LoopDecision::NoLoop,
                (false, Some(_)) => LoopDecision::SetAside,
                (false, None) => LoopDecision::Continue,
            };
        };
        let seat = &mut self.seats[at];
        let stays = marked || egress == seat.egress;
        if stays {
            seat.left -= i64::from(size);
        }
        match (marked, seat.behind) {
            (true, true) => return LoopDecision::Exit(seat.egress),
            (true, false) => return LoopDecision::Circulate(seat.egress),
            (false, behind) if behind || stays => return LoopDecision::Continue,
            (false, _) => {}
        }
        let missed = seat.missed.contains(&flow) && !self.resolves.exit;
        let outside = seat.outside + i64::from(size);
        let fits =
            outside + i64::from(self.params.largest) <= seat.room as i64 || device.backlog(egress, lane) == 0;
        // A queue of another loop is as good as paused.
        if missed || !fits || device.is_stopped(egress, lane) || self.seat_out(egress, lane).is_some() {
            let seat = &mut self.seats[at];
            seat.left -= i64::from(size);
            if !missed {
                seat.missed.push(flow);
            }
            return LoopDecision::Circulate(seat.egress);
        }
        self.seats[at].outside = outside;
        LoopDecision::Continue
    }

    /// The ingress port of a loop for which a packet makes room that came through `ingress` and leaves by
    /// `egress`: of the loop which it leaves or goes on in, wherever it came from (section IV-C), else its
    /// own.
    pub(super) fn makes_room(&self, ingress: u32, egress: u32, lane: u8) -> Option<u32> {
        let on = self.seat_out(egress, lane).map(|at| self.seats[at].ingress);
        on.filter(|&port| self.params.audit || port == ingress)
            .or_else(|| self.seat_in(ingress, lane).map(|_| ingress))
    }
}
