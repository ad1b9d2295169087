//! Loop Breaker and Deadlock Breaker: deadlocks found, and ended, by the control planes of devices, over
//! [`super::pfc`] (Shpiner et al., *Unlocking Credit Loop Deadlocks*, HotNets 2016; as Lv et al., 2025,
//! describe them, sections II-B and VI-D, and as claim 1 of US patent 10,630,590 has the detection).
//!
//! **A control plane is slow.** It checks the queues of its device every `period`, and each message takes
//! `latency` in it. Messages are frames ([`frame`]) that cross links after pauses and before data.
//!
//! **Detection.** An egress queue of (port, priority):
//!
//! ```text
//!            a poll finds it paused        the next poll finds that it still is,
//!            with something to send        and has been without a break
//!   Going ──────────────────────────► Seen ─────────────────────────────────────► Suspected
//!     ▲                                │                                              │
//!     └────────────────────────────────┴──────────────────────────────────────────────┘
//!            its pause ends, or a poll finds nothing to send
//! ```
//!
//! At each poll a suspected queue sends a probe over its own link, with a new identifier. A device
//! treats a probe from ingress port *i* as follows, for each of its egress ports *e* whose queue is paused
//! and holds packets that came in by *i*:
//!
//! | the probe | what happens |
//! |---|---|
//! | set out from *e* | a deadlock: *e* leads the resolution |
//! | `deadlock-breaker`: lists *e* in its path | the same: a loop that does not hold the probe's source |
//! | is smaller than the probes that *e* has recorded since its last poll, its own included | recorded, and passed on by *e* |
//! | else | dropped |
//!
//! **Loop Breaker** ([`Cure::Reroute`]) gives these packets another path: see [`Repair::reroute`].
//!
//! **Deadlock Breaker** ([`Cure::Room`]) gives more room to the ingress queue by which the probe returned
//! ([`Repair::enlarge`]), so its upstream neighbour resumes. It informs the next device of the loop, by the
//! path that the probe has recorded. That device does the same for the ingress queue by which it receives the
//! message. At a poll that finds the queue drained to its own resume threshold, the room is returned. If the
//! shared pool has too few bytes, the device gives nothing, and the report names this.
//!
//! While *e* stays paused the next probe that returns does the same again.
//!
//! *Readings*, where the papers are open:
//!
//! - **Which queues a probe follows.** Those that hold packets of the probe's ingress port. By any paused
//!   queue of the device it would come round along packets that do not wait for each other.
//! - **What passes probes on** need not be suspected itself: it is paused at that moment, with
//!   such packets. So a deadlock is found within two polls of its smallest identifier and a turn.
//! - **Identifiers.** The smaller ones go on, so that one probe goes round however many queues suspect. With
//!   fixed ones, a suspected queue outside of the loop whose packets wait for the loop could hide the loop
//!   forever: if its identifier is smaller, its probe suppresses the loop's probes and never returns. So the
//!   first probe of a queue has only the queue's number. Each later probe draws a number that counts before
//!   it, until a queue of the loop has the smallest identifier.
//! - **The master**, which leads, is the queue whose own identifier returned. The patent also
//!   checks that all buffers of the loop are full; that is what it is to be paused.
//! - **Which packets are rerouted.** The packets of the loop: those that arrived by *i*. If all that wait
//!   at *e* were rerouted, twice as many packets would get another path in rings, five times as many would
//!   arrive out of order, and the ring's other direction would fill until it is blocked, too.
//! - **A detection may be false**, because pauses are read one after the other. Nothing corrects it.

pub mod frame;
pub mod keys;
pub mod report;

#[cfg(test)]
mod tests;

use super::device::{Causes, Repair};
use super::fabric::next_poll;
use super::frame::Frame;
use super::pfc::{Pfc, PfcParams};
use super::{ControlFrame, Crossing, FlowControl, Machine, Parameters, Scheme, Seen, Traits};
pub use frame::{Identifier, ProbeFrame, Word};
pub use report::Report;
use std::collections::{BTreeMap, VecDeque};
use xoff_kernel::random::Stream;
use xoff_kernel::time::Time;
use xoff_net::units::{Bytes, Span};
use xoff_outcome::report::{Facts, Records};
use xoff_wire::nodes::Nodes;

/// The action against a deadlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cure {
    /// Loop Breaker: packets get another path.
    Reroute,
    /// Deadlock Breaker: ingress queues get so many bytes more than they hold.
    Room(u64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerParams {
    pub pfc: PfcParams,
    pub cure: Cure,
    /// Between two polls of a device.
    pub period: Time,
    /// How long a message spends in the control plane of a device.
    pub latency: Time,
    /// A turn of the longest loop that a probe can list, latencies included.
    pub turn: Time,
    /// By port: the time of its device's first poll, before `period`; `None` where no device polls.
    pub first: Vec<Option<Time>>,
    pub seed: u64,
}

impl Parameters for BreakerParams {
    fn alias(&self) -> Option<&'static str> {
        matches!(self.cure, Cure::Room(_)).then_some("deadlock-breaker")
    }

    fn traits(&self) -> Traits {
        Traits {
            // It has found the deadlock, in a reasonable number of draws, and has resolved it.
            patience: (4 * self.period + self.turn).saturating_mul(8),
            ends_deadlocks: true,
            knows_causes: true,
            ..Traits::of_pfc(&self.pfc)
        }
    }

    fn pfc(&self) -> Option<&PfcParams> {
        Some(&self.pfc)
    }

    fn describe(&self, seen: &Seen<'_>) -> String {
        let places = seen.detours;
        let cure = match self.cure {
            Cure::Reroute => {
                format!("packets are rerouted, with other paths known at {places} places of routes")
            }
            Cure::Room(bytes) => format!("ingress queues get {} of room", Bytes(bytes)),
        };
        format!(
            "(polls every {}, messages take {} in each device, {cure}; {} quanta, response time {})",
            Span(self.period),
            Span(self.latency),
            self.pfc.quanta,
            Span(self.pfc.response_time)
        )
    }

    fn start(&self, ports: usize, priorities: &[u8]) -> FlowControl {
        FlowControl::Breaker(Breaker::new(self, ports, priorities))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// When a probe came back first.
    pub at: Time,
    pub port: u32,
    pub lane: u8,
    /// When its pause ended; `None` if that has not come.
    pub until: Option<Time>,
    /// Probes that came back meanwhile, the first one included.
    pub attempts: u64,
}

/// The actions of the control planes, summed over devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Frames that set out or were passed on …
    pub frames: u64,
    /// … and their bytes, check sequences included.
    pub bytes: u64,
    /// Packets that got another path, and packets of the loop that have none or found it paused.
    pub rerouted: u64,
    pub stayed: u64,
    /// Ingress queues that got more room, and bytes of the shared pool that it took.
    pub enlarged: u64,
    pub enlarged_bytes: u64,
    /// Attempts at a device that achieved nothing: no packet had another path, or the pool had no room.
    pub failed: u64,
}

impl Tally {
    pub fn add(&mut self, other: &Self) {
        let Self { frames, bytes, rerouted, stayed, enlarged, enlarged_bytes, failed } = *other;
        self.frames += frames;
        self.bytes += bytes;
        self.rerouted += rerouted;
        self.stayed += stayed;
        self.enlarged += enlarged;
        self.enlarged_bytes += enlarged_bytes;
        self.failed += failed;
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Watch {
    /// A poll is to come.
    armed: bool,
    /// The neighbour has paused the egress queue.
    paused: bool,
    /// The first of the polls that have found it so without a break, with something to send.
    since: Option<Time>,
    /// It has sent a probe since then.
    probed: bool,
    /// The smallest identifier that has left since the last poll.
    recorded: Option<Identifier>,
    /// The number of the deadlock that it has found during this pause.
    found: Option<usize>,
    /// The ingress queue has more room than it would have.
    enlarged: bool,
}

#[derive(Clone, Debug)]
pub struct Breaker {
    params: BreakerParams,
    pfc: Pfc,
    /// By port and lane.
    watches: Vec<Watch>,
    /// By port, where any have come: messages in the control plane, and when each is through.
    inboxes: BTreeMap<u32, VecDeque<(Time, ProbeFrame)>>,
    /// By port and lane, where any were drawn: the numbers to come.
    draws: BTreeMap<usize, Stream>,
    found: Vec<Found>,
    tally: Tally,
}

impl Breaker {
    pub(super) fn new(params: &BreakerParams, ports: usize, priorities: &[u8]) -> Self {
        Self {
            pfc: Pfc::new(params.pfc, ports, priorities),
            params: params.clone(),
            watches: vec![Watch::default(); ports * priorities.len()],
            inboxes: BTreeMap::new(),
            draws: BTreeMap::new(),
            found: Vec::new(),
            tally: Tally::default(),
        }
    }

    fn poll_of(&self, port: u32, lane: u8) -> u32 {
        (self.pfc.timers() + self.pfc.at(port, lane)) as u32
    }

    fn inbox_of(&self, port: u32) -> u32 {
        (self.pfc.timers() + self.watches.len()) as u32 + port
    }

    /// Arms the device's next poll, if somebody looks and none is to come.
    fn await_poll(&mut self, device: &mut (impl Causes + Repair), port: u32, lane: u8) {
        let Some(first) = self.params.first[port as usize] else { return };
        let at = self.pfc.at(port, lane);
        if std::mem::replace(&mut self.watches[at].armed, true) {
            return;
        }
        device.arm(self.poll_of(port, lane), next_poll(first, self.params.period, device.now()));
    }

    fn goes(&mut self, now: Time, port: u32, lane: u8) {
        let at = self.pfc.at(port, lane);
        let watch = &mut self.watches[at];
        (watch.paused, watch.since, watch.probed) = (false, None, false);
        if let Some(found) = watch.found.take() {
            self.found[found].until = Some(now);
        }
    }

    /// A message has come: the control plane takes its time.
    pub(super) fn on_probe(&mut self, device: &mut (impl Causes + Repair), port: u32, frame: &ProbeFrame) {
        if self.params.first[port as usize].is_none() {
            return;
        }
        let through = device.now() + self.params.latency;
        let inbox = self.inboxes.entry(port).or_default();
        inbox.push_back((through, *frame));
        if inbox.len() == 1 {
            device.arm(self.inbox_of(port), through);
        }
    }

    /// The control plane is through with the messages from a port that are due.
    fn reads(&mut self, device: &mut (impl Causes + Repair), port: u32) {
        while let Some(inbox) = self.inboxes.get_mut(&port)
            && let Some(&(through, frame)) = inbox.front()
        {
            if through > device.now() {
                return device.arm(self.inbox_of(port), through);
            }
            inbox.pop_front();
            let Some(lane) = self.pfc.lane(frame.priority) else { continue };
            match frame.word {
                Word::Probe => self.probed(device, port, lane, &frame),
                Word::Room => self.on_room(device, port, lane, frame),
            }
        }
    }

    fn poll(&mut self, device: &mut (impl Causes + Repair), port: u32, lane: u8) {
        let (now, at) = (device.now(), self.pfc.at(port, lane));
        let waits = device.backlog(port, lane) > 0;
        let watch = &mut self.watches[at];
        (watch.armed, watch.recorded) = (false, None);
        if watch.enlarged && device.shrink(port, lane) {
            watch.enlarged = false;
        }
        watch.since = watch.since.or(Some(now)).filter(|_| watch.paused && waits);
        let suspected = watch.since.is_some_and(|since| since < now);
        let first = suspected && !std::mem::replace(&mut watch.probed, suspected);
        if suspected {
            let id = Identifier { draw: if first { 0 } else { self.draw(at) }, port };
            let (word, priority, ports) = (Word::Probe, self.pfc.priority(lane), Nodes::default());
            self.passes_on(device, port, lane, ProbeFrame { word, priority, id, ports });
        }
        let watch = &self.watches[at];
        if watch.paused || watch.enlarged {
            self.await_poll(device, port, lane);
        }
    }

    /// Above 0: that is the first probe's.
    fn draw(&mut self, at: usize) -> u32 {
        let seed = self.params.seed;
        let stream = self.draws.entry(at).or_insert_with(|| Stream::new(seed, "breakers", at as u64));
        // The upper half of the bits.
        ((stream.bits() >> 32) as u32).max(1)
    }

    fn send(&mut self, device: &mut (impl Causes + Repair), port: u32, frame: ProbeFrame) {
        self.tally.frames += 1;
        self.tally.bytes += u64::from(frame.length());
        device.send_control(port, ControlFrame::Probe(frame));
    }

    /// A probe leaves by an egress port, which it lists if it carries its path.
    fn passes_on(&mut self, device: &mut (impl Causes + Repair), port: u32, lane: u8, mut probe: ProbeFrame) {
        let at = self.pfc.at(port, lane);
        self.watches[at].recorded = Some(probe.id);
        // A loop longer than the list is not found.
        if self.params.cure == Cure::Reroute || probe.ports.push_front(port) {
            self.send(device, port, probe);
        }
    }

    /// A probe from an ingress port: see the module's table.
    fn probed(&mut self, device: &mut (impl Causes + Repair), ingress: u32, lane: u8, probe: &ProbeFrame) {
        for i in 0.. {
            let Some(egress) = device.port_of(ingress, i) else { break };
            if !device.is_stopped(egress, lane) || !device.waits(ingress, egress, lane) {
                continue;
            }
            let path = probe.ports.as_slice();
            let back = path.iter().position(|&port| port == egress);
            if probe.id.port == egress || back.is_some() {
                // The path from here on, in the order of the flow: all but this port.
                let loop_ports = &path[..back.unwrap_or(0)];
                self.finds(device, ingress, egress, lane, probe, loop_ports);
            } else if self.watches[self.pfc.at(egress, lane)].recorded.is_none_or(|known| probe.id < known) {
                self.passes_on(device, egress, lane, *probe);
            }
        }
    }

    /// A probe has come back to `egress`; `ports` are the others of the loop, the last one first.
    fn finds(
        &mut self,
        device: &mut (impl Causes + Repair),
        ingress: u32,
        egress: u32,
        lane: u8,
        probe: &ProbeFrame,
        ports: &[u32],
    ) {
        let at = self.pfc.at(egress, lane);
        // Something else than a pause may stop it (a link that has just recovered).
        if !self.watches[at].paused {
            return;
        }
        let found = *self.watches[at].found.get_or_insert_with(|| {
            self.found.push(Found { at: device.now(), port: egress, lane, until: None, attempts: 0 });
            self.found.len() - 1
        });
        self.found[found].attempts += 1;
        match self.params.cure {
            Cure::Reroute => {
                let (moved, stayed) = device.reroute(ingress, egress, lane);
                self.tally.rerouted += moved;
                self.tally.stayed += stayed;
                self.tally.failed += u64::from(moved == 0);
            }
            Cure::Room(_) => {
                self.makes_room(device, ingress, lane);
                let mut list = Nodes::default();
                for &port in ports {
                    assert!(list.push_front(port), "no more than the probe had");
                }
                if !ports.is_empty() {
                    self.send(device, egress, ProbeFrame { word: Word::Room, ports: list, ..*probe });
                }
            }
        }
    }

    /// Gives an ingress queue more room, if it pauses, and lets its neighbour go on.
    fn makes_room(&mut self, device: &mut (impl Causes + Repair), ingress: u32, lane: u8) {
        let Cure::Room(bytes) = self.params.cure else { return };
        if !device.is_over(ingress, lane, 0) {
            return;
        }
        match device.enlarge(ingress, lane, bytes) {
            Some(taken) => {
                self.tally.enlarged += 1;
                self.tally.enlarged_bytes += taken;
                let at = self.pfc.at(ingress, lane);
                self.watches[at].enlarged = true;
                self.await_poll(device, ingress, lane);
                self.pfc.crossed(device, ingress, lane, Crossing::Under);
            }
            None => self.tally.failed += 1,
        }
    }

    /// The loop's master asks for more room; the device's own egress port in the loop is the list's first.
    fn on_room(&mut self, device: &mut (impl Causes + Repair), ingress: u32, lane: u8, mut room: ProbeFrame) {
        self.makes_room(device, ingress, lane);
        let Some(next) = room.ports.pop_front() else { return };
        let is_here = (0..).map_while(|i| device.port_of(ingress, i)).any(|port| port == next);
        // The master follows the last one.
        if is_here && !room.ports.as_slice().is_empty() {
            self.send(device, next, room);
        }
    }
}

impl Machine for Breaker {
    const FACTS: Option<&'static Facts> = Some(&report::FACTS);

    /// PFC's, then a poll for each port and lane, then an inbox for each port.
    fn timers(&self) -> usize {
        self.pfc.timers() + self.watches.len() + self.params.first.len()
    }

    fn records(&self) -> Records {
        Records::of(Report { cure: self.params.cure, found: self.found.clone(), tally: self.tally })
    }
}

impl<D: Causes + Repair> Scheme<D> for Breaker {
    fn base(&mut self) -> Option<&mut Pfc> {
        Some(&mut self.pfc)
    }

    /// Egress half of PFC.
    fn received(&mut self, device: &mut D, port: u32, frame: &ControlFrame) {
        let pfc = match frame {
            ControlFrame::Pfc(pfc) => pfc,
            ControlFrame::Probe(probe) => return self.on_probe(device, port, probe),
            _ => return,
        };
        for (priority, quanta) in pfc.entries() {
            let Some(lane) = self.pfc.lane(priority) else { continue };
            if quanta == 0 {
                self.goes(device.now(), port, lane);
            } else {
                let at = self.pfc.at(port, lane);
                self.watches[at].paused = true;
                self.await_poll(device, port, lane);
            }
        }
        self.pfc.obey(device, port, pfc);
    }

    fn timer(&mut self, device: &mut D, timer: u32) {
        let Some(at) = (timer as usize).checked_sub(self.pfc.timers()) else {
            if let Some((port, lane)) = self.pfc.expires(timer) {
                self.goes(device.now(), port, lane);
            }
            return self.pfc.timer(device, timer);
        };
        match at.checked_sub(self.watches.len()) {
            None => {
                let (port, lane) = self.pfc.port_and_lane(at);
                self.poll(device, port, lane);
            }
            Some(port) => self.reads(device, port as u32),
        }
    }

    /// The polling half resets its state too: no neighbour pauses this port any more.
    fn link_failed(&mut self, device: &mut D, port: u32, lane: u8) {
        self.goes(device.now(), port, lane);
        self.pfc.link_failed(device, port, lane);
    }
}
