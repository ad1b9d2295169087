//! Roundabout: deadlocks found by election and dissolved with spare headroom (*Solving PFC
//! Deadlocks with Distributed Detection and Buffer Collaboration*).
//!
//! It is PFC ([`super::pfc`]) whose frames carry `ra_hdr` ([`frame`]), and on top of it:
//!
//! **Detection** (section III). Each ingress queue has two registers; what becomes of them is
//! [`registers`]. Here is what lies between them and the wire:
//!
//! - A pause has T_curr, and so does each of its refreshes; a new T_init is drawn only when the queue reaches
//!   XOFF (`roundabout.init-on-refresh`). A resume carries opcode 2 (`roundabout.resume-opcode`).
//! - A frame that arrives at an egress port goes to its *causal* ingress queues: those with a packet in the
//!   egress queue that the frame names (`roundabout.causal-bitmap`). So a probe is multicast where several
//!   ingress queues wait for one egress queue.
//! - The ingress queues with packets in a paused egress queue settle by its last received triplet.
//! - A pause that runs out, or whose link fails, ends as by a RESUME with the triplet it had.
//!
//! The three states of a switch (section III) are not kept: a queue that pauses is a *spreader* if its
//! packets wait for a paused queue, else a *trigger*, and the others are *non-pauses* (`roundabout.states`).

mod charges;
pub mod dissolve;
#[cfg(test)]
mod explore;
pub mod frame;
pub mod keys;
pub mod registers;
pub mod report;
#[cfg(test)]
mod tests;

use super::device::Loops;
use super::pfc::{Pfc, PfcParams};
use super::registry::FlowControl;
use super::{ControlFrame, Crossing, LoopDecision, LoopPacket, Machine, Parameters, Scheme, Seen, Traits};
use charges::Charges;
use dissolve::{Attempted, LONGEST_LOOP, Seat};
pub use frame::Opcode;
use frame::RoundaboutFrame;
use registers::{Printed, Reaction, Registers, Triplet, Word};
pub use report::Report;
use std::collections::BTreeMap;
use xoff_kernel::{random::Stream, time::Time};
use xoff_net::units::Span;
use xoff_outcome::report::{Facts, Records};
use xoff_wire::nodes::Nodes;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundaboutParams {
    pub pfc: PfcParams,
    /// By port: its number within its device.
    pub numbers: Vec<u16>,
    /// Seed of the numbers that triplets draw.
    pub seed: u64,
    pub largest: u32,
    /// How long a switch in a loop waits for something to happen before it gives up.
    pub patience: Time,
    /// A turn of a frame around the longest loop: for so long its copies are of one attempt.
    pub turn: Time,
    /// A packet from elsewhere that leaves a loop's queue releases shared room first (section IV-C).
    pub audit: bool,
    pub dissolves: bool,
}

impl Parameters for RoundaboutParams {
    fn traits(&self) -> Traits {
        Traits {
            // Until an attempt is given up, and another one is.
            patience: if self.dissolves { 3 * self.patience } else { 0 },
            ends_deadlocks: self.dissolves,
            knows_causes: true,
            ..Traits::of_pfc(&self.pfc)
        }
    }

    fn pfc(&self) -> Option<&PfcParams> {
        Some(&self.pfc)
    }

    fn describe(&self, _: &Seen<'_>) -> String {
        format!("({} quanta, response time {})", self.pfc.quanta, Span(self.pfc.response_time))
    }

    fn start(&self, ports: usize, priorities: &[u8]) -> FlowControl {
        FlowControl::Roundabout(Roundabout::new(self, ports, priorities))
    }
}

/// A deadlock that a switch has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detection {
    pub at: Time,
    /// The coordinator's ingress queue.
    pub port: u32,
    pub lane: u8,
    pub triplet: Triplet,
    /// When its announcement had been around the loop.
    pub all_know: Option<Time>,
}

/// Roundabout on every port of a run.
#[derive(Clone, Debug)]
pub struct Roundabout {
    pub(super) pfc: Pfc,
    params: RoundaboutParams,
    priorities: Vec<u8>,
    // By port and lane, of the ingress queue; `told` is of the egress queue.
    registers: Vec<Registers>,
    /// The last triplet, while the queue is paused.
    told: Vec<Option<Triplet>>,
    /// Where any was drawn: the numbers to come.
    draws: BTreeMap<usize, Stream>,
    /// The last attempt that was announced here.
    announced: Vec<Option<Triplet>>,
    /// The last attempt that it led, and since when.
    tried: Vec<Option<(Triplet, Time)>>,
    /// Whose route packet it passed on last, when, and by which egress port that had come.
    collected: Vec<Option<(Triplet, Time, u32)>>,
    seats: Vec<Seat>,
    detections: Vec<Detection>,
    attempts: Vec<Attempted>,
    charges: Charges,
    /// What is taken as printed, of Algorithm 1 and of section IV: nothing, but where a test tries it.
    printed: Printed,
    resolves: dissolve::Printed,
}

impl Roundabout {
    pub(super) fn new(params: &RoundaboutParams, ports: usize, priorities: &[u8]) -> Self {
        let queues = ports * priorities.len();
        Self {
            pfc: Pfc::new(params.pfc, ports, priorities),
            params: params.clone(),
            priorities: priorities.to_vec(),
            registers: vec![Registers::default(); queues],
            told: vec![None; queues],
            draws: BTreeMap::new(),
            detections: Vec::new(),
            announced: vec![None; queues],
            tried: vec![None; queues],
            collected: vec![None; queues],
            seats: Vec::new(),
            attempts: Vec::new(),
            charges: Charges::default(),
            printed: Printed::default(),
            resolves: dissolve::Printed::default(),
        }
    }

    fn at(&self, port: u32, lane: u8) -> usize {
        port as usize * self.priorities.len() + usize::from(lane)
    }

    /// The triplet's source that an ingress queue is.
    fn source(&self, device: &impl Loops, port: u32, lane: u8) -> (u32, u16) {
        let number = self.params.numbers[port as usize];
        (device.device_of(port), number * 8 + u16::from(self.priorities[usize::from(lane)]))
    }

    /// The triplets of the paused egress queues that have packets of the ingress queue.
    fn below<'a, D: Loops>(
        told: &'a [Option<Triplet>],
        lanes: usize,
        device: &'a D,
        port: u32,
        lane: u8,
    ) -> impl Iterator<Item = Triplet> + 'a {
        (0..).map_while(move |i| device.port_of(port, i)).filter_map(move |egress| {
            let triplet = told[egress as usize * lanes + usize::from(lane)]?;
            device.waits(port, egress, lane).then_some(triplet)
        })
    }

    fn causes<D: Loops>(device: &D, egress: u32, lane: u8) -> Vec<u32> {
        let mut ports = Self::ports(device, egress);
        ports.retain(|&port| device.waits(port, egress, lane));
        ports
    }

    fn ports<D: Loops>(device: &D, port: u32) -> Vec<u32> {
        (0..).map_while(|i| device.port_of(port, i)).collect()
    }

    fn send_frame(&mut self, device: &mut impl Loops, port: u32, lane: u8, word: Word) {
        let (quanta, opcode, triplet) = match word {
            Word::Pause(t) => (Some(self.pfc.quanta()), Opcode::Probe, t),
            Word::Resume(t) => (Some(0), Opcode::Invalid, t),
            Word::Invalid(t) => (None, Opcode::Invalid, t),
        };
        let priority = self.priorities[usize::from(lane)];
        let triplet = Triplet { hops: triplet.hops.saturating_add(1), ..triplet };
        let frame = RoundaboutFrame { priority, quanta, opcode, triplet, nodes: Nodes::default() };
        device.send_control(port, ControlFrame::Roundabout(frame));
        match word {
            Word::Pause(_) => self.pfc.closes(device, port, lane),
            Word::Resume(_) => self.pfc.opens(device, port, lane),
            Word::Invalid(_) => {}
        }
    }

    /// Applies the consequences of a received frame for an ingress queue.
    fn react(&mut self, device: &mut impl Loops, port: u32, lane: u8, reaction: Reaction) {
        if reaction.detected {
            let triplet = self.registers[self.at(port, lane)].init.get().expect("it came back");
            // A refresh of the pauses in the loop brings it back again.
            if !self.detections.iter().any(|d| (d.port, d.lane, d.triplet) == (port, lane, triplet)) {
                self.detections.push(Detection { at: device.now(), port, lane, triplet, all_know: None });
            }
            if self.params.dissolves {
                self.coordinates(device, port, lane, triplet);
            }
        }
        for word in reaction.words() {
            self.send_frame(device, port, lane, word);
        }
    }

    fn pauses(&mut self, device: &mut impl Loops, port: u32, lane: u8) {
        let (at, lanes) = (self.at(port, lane), self.priorities.len());
        let seed = self.params.seed;
        let stream = self.draws.entry(at).or_insert_with(|| Stream::new(seed, "Roundabout", at as u64));
        // The upper half of the bits.
        let rand = (stream.bits() >> 32) as u32;
        let (sid, qid) = self.source(device, port, lane);
        let below = Self::below(&self.told, lanes, device, port, lane);
        let word = self.registers[at].send_pause(Triplet { sid, qid, rand, hops: 0 }, below, &self.printed);
        self.send_frame(device, port, lane, word);
    }

    /// The egress half of PFC, unless the queue is part of a loop.
    fn obeys(&mut self, device: &mut impl Loops, port: u32, lane: u8, frame: &RoundaboutFrame) {
        if let Some(quanta) = frame.quanta
            && !self.on_pause(device, port, lane, quanta)
        {
            self.pfc.obey(device, port, &frame.pfc());
        }
    }

    /// PeerGetPause at a causal ingress queue.
    fn probed(&mut self, device: &mut impl Loops, port: u32, lane: u8, t: Triplet) {
        let (at, source) = (self.at(port, lane), self.source(device, port, lane));
        let below = Self::below(&self.told, self.priorities.len(), device, port, lane);
        let reaction = self.registers[at].peer_paused(t, source, below, &self.printed);
        self.react(device, port, lane, reaction);
    }

    /// PeerGetResume at the ingress queues, if the egress queue `goes` again, else PeerGetInvalid.
    fn withdrawn(&mut self, device: &mut impl Loops, port: u32, lane: u8, t: Triplet, goes: bool) {
        let (at, lanes) = (self.at(port, lane), self.priorities.len());
        self.told[at] = self.told[at].filter(|&known| !goes && known != t);
        for of in Self::ports(device, port) {
            let at = self.at(of, lane);
            let below = Self::below(&self.told, lanes, device, of, lane);
            let reaction = match goes {
                true => self.registers[at].peer_resumed(t, below, &self.printed),
                false => self.registers[at].peer_invalidated(t, below, &self.printed),
            };
            self.react(device, of, lane, reaction);
        }
    }
}

impl Machine for Roundabout {
    const FACTS: Option<&'static Facts> = Some(&report::FACTS);

    fn timers(&self) -> usize {
        self.pfc.timers() + self.registers.len()
    }

    fn records(&self) -> Records {
        Records::of(Report { detections: self.detections.clone(), attempts: self.attempts.clone() })
    }
}

impl<D: Loops> Scheme<D> for Roundabout {
    fn crossed(&mut self, device: &mut D, port: u32, lane: u8, crossing: Crossing) {
        match crossing {
            Crossing::Over => self.pauses(device, port, lane),
            Crossing::Under => {
                let at = self.at(port, lane);
                let word = self.registers[at].send_resume();
                self.send_frame(device, port, lane, word);
            }
        }
    }

    fn received(&mut self, device: &mut D, port: u32, frame: &ControlFrame) {
        let ControlFrame::Roundabout(frame) = frame else { return };
        // A priority that this device does not use has no queue to pause.
        let Some(lane) = self.priorities.iter().position(|&p| p == frame.priority) else { return };
        let (lane, t) = (lane as u8, frame.triplet);
        match frame.opcode {
            Opcode::Probe => {
                self.obeys(device, port, lane, frame);
                // It has grown too old to count.
                let at = self.at(port, lane);
                self.told[at] = Some(t).filter(|t| u64::from(t.hops) <= LONGEST_LOOP);
                for cause in Self::causes(device, port, lane) {
                    self.probed(device, cause, lane, t);
                }
            }
            Opcode::Invalid => {
                self.obeys(device, port, lane, frame);
                self.withdrawn(device, port, lane, t, frame.quanta.is_some());
            }
            Opcode::Barrier => self.barrier(device, port, lane, frame),
            _ => self.guided(device, port, lane, frame),
        }
    }

    /// The first packet of `ingress` waits in `lane` of `egress`: it has a cause more.
    fn waits(&mut self, device: &mut D, ingress: u32, egress: u32, lane: u8) {
        if let Some(t) = self.told[self.at(egress, lane)] {
            self.probed(device, ingress, lane, t);
        }
    }

    fn link_failed(&mut self, device: &mut D, port: u32, lane: u8) {
        self.breaks(device, port, lane);
        self.pfc.link_failed(device, port, lane);
        let at = self.at(port, lane);
        self.registers[at] = Registers::default();
        if let Some(t) = self.told[at] {
            self.withdrawn(device, port, lane, t, true);
        }
    }

    /// Begins afresh, as PFC does; an account that is over says so again.
    fn link_recovered(&mut self, device: &mut D, port: u32, lane: u8, over: bool, settled: Time) {
        if over {
            self.pauses(device, port, lane);
        }
        self.pfc.link_recovered(device, port, lane, false, settled);
    }

    fn timer(&mut self, device: &mut D, timer: u32) {
        if timer as usize >= self.pfc.timers() {
            return self.loses_patience(device, timer);
        }
        if let Some((port, lane)) = self.pfc.refreshes(timer) {
            let at = self.at(port, lane);
            let t = self.registers[at].curr.get().expect("a queue that pauses has a triplet");
            return self.send_frame(device, port, lane, Word::Pause(t));
        }
        self.pfc.timer(device, timer);
        if let Some((port, lane)) = self.pfc.expires(timer)
            && let Some(t) = self.told[self.at(port, lane)]
        {
            self.withdrawn(device, port, lane, t, true);
        }
    }

    fn passes(&mut self, device: &mut D, packet: &LoopPacket) -> LoopDecision {
        self.passes(device, packet)
    }

    /// A packet of `size` bytes from the loop was stored at `ingress`: it was granted.
    fn stored(&mut self, device: &mut D, ingress: u32, lane: u8, size: u32) {
        // As in `passes`.
        if let Some(at) = self.seat_in(ingress, lane).filter(|&at| self.seats[at].grants) {
            let seat = &mut self.seats[at];
            seat.left += i64::from(size);
            seat.outstanding = seat.outstanding.saturating_sub(u64::from(size));
            self.grants(device, at);
        }
    }

    /// The charge of the account for a packet of `bytes`: less its kept bytes.
    fn charged(&mut self, _: &mut D, port: u32, lane: u8, bytes: u64) -> u64 {
        let Some(reserved) = self.charges.reserved.get_mut(&(port, lane)) else { return bytes };
        let used = bytes.min(*reserved);
        *reserved -= used;
        bytes - used
    }

    /// A packet of the account (`ingress`, `lane`), charged `bytes`, leaves by `egress`.
    fn on_release(&mut self, device: &mut D, ingress: u32, egress: u32, lane: u8, bytes: u64) {
        let Some(port) = self.makes_room(ingress, egress, lane) else {
            return self.repay(device, ingress, lane, bytes);
        };
        if port != ingress {
            let shared = device.transfer_charge(ingress, port, lane, bytes);
            if bytes > shared {
                let owed = self.charges.owed.entry((port, lane)).or_default();
                owed.push_back(((ingress, lane), bytes - shared));
            }
            // It may be under its threshold now.
            self.release_charge(device, ingress, lane, 0);
        }
        let freed = bytes.min(device.headroom(port, lane).1);
        if bytes > freed {
            *self.charges.reserved.entry((port, lane)).or_default() += bytes - freed;
        }
        self.release_charge(device, port, lane, freed);
    }

    fn settles(&mut self, device: &mut D, port: u32, lane: u8) {
        self.settles(device, port, lane);
    }

    /// A packet of `size` bytes left the account (`ingress`, `lane`) by `egress`: there may be more to grant.
    fn freed(&mut self, device: &mut D, ingress: u32, egress: u32, lane: u8, size: u32) {
        if let Some(at) = self.seat_out(egress, lane) {
            self.grants(device, at);
        }
        if let Some(at) = self.seat_in(ingress, lane) {
            let seat = &mut self.seats[at];
            if seat.egress != egress {
                seat.outside -= i64::from(size);
            }
            self.grants(device, at);
        }
    }

    /// The turn of a packet of `size` bytes has come in a queue of a loop: whether it goes.
    fn may_leave(&mut self, device: &mut D, port: u32, lane: u8, size: u32) -> bool {
        let Some(at) = self.seat_out(port, lane) else { return true };
        let seat = &mut self.seats[at];
        let goes = seat.round > 0 && !seat.back && seat.credit >= u64::from(self.params.largest);
        match goes {
            true => (seat.credit, seat.sent) = (seat.credit - u64::from(size), true),
            false => device.gate(port, lane, false),
        }
        goes
    }

    /// The turn of a barrier has come in a queue; whether it goes on (without credit).
    fn barrier_leaves(&mut self, device: &mut D, port: u32, frame: &ControlFrame) -> bool {
        let ControlFrame::Roundabout(frame) = frame else { return false };
        let lane = self.priorities.iter().position(|&p| p == frame.priority);
        let Some(at) = lane.and_then(|lane| self.seat_out(port, lane as u8)) else { return false };
        let seat = &self.seats[at];
        let source = self.source(device, seat.ingress, seat.lane);
        if (frame.triplet.sid, frame.triplet.qid) != source || !seat.behind {
            return true;
        }
        device.gate(port, seat.lane, false);
        self.seats[at].back = true;
        let seat = &self.seats[at];
        if seat.leads {
            self.step(device, seat.attempt, dissolve::Step::Round);
            self.asks(device, at);
        }
        false
    }
}
