//! The livelock oracle: packets move, and no flow progresses. It sees everything and changes nothing but the
//! end of a run without `run.duration`, which would otherwise never come.
//!
//! *Progress* is the number of packets delivered in order plus the number acknowledged in order, over all
//! flows: it does not grow while senders only retransmit. A run is in a livelock if progress stops and
//! nothing explains that any more:
//!
//! - four times the longest of these have passed: the drain of the fullest port, the round trip, the longest
//!   pause that PFC can ask for, the flow control's own patience;
//! - each retransmission timer that is armed has expired since then, as often as random losses ask for, and
//!   each paced sender has sent. The timer of a sender with a retry limit explains it: in the end the sender
//!   gives up. But NACKs may defer a timer for ever. So without random losses a sender that has sent its flow
//!   [`REPEATS`] times since then explains nothing;
//! - no flow, gate, failure, end of losses or stall of the plan is still to come.

use crate::kind::{self, is_news};
use crate::outcome::{Backlog, Livelock, StalledFlow};
use crate::{packet::Kind, switch::port::lane_mask, world::World};
use std::collections::BTreeMap;
use xoff_kernel::time::{MILLISECOND, SECOND, Time, wire_time};
use xoff_kernel::wheel::Event;
use xoff_plan::plan::{DELIVER, ENDS, Hits, Plan};

/// Least time without progress before the oracle suspects a livelock.
const QUIET: Time = 10 * MILLISECOND;
/// Time between two looks.
const EVERY: Time = QUIET / 4;
/// The longest pause of PFC, in bit times: 65,535 quanta of 512.
const LONGEST_PAUSE: u64 = 65_535 * 512;
/// Timeouts after which a sender counts as stalled, without random losses.
const ATTEMPTS: u32 = 2;
/// Most times that a sender with limits sends a packet before it gives up, for NACKs and timeouts together.
const REPEATS: u64 = 2 * 100 + 1;

#[derive(Default)]
pub struct Oracle {
    next: Time,
    progress: u64,
    /// When progress was seen to have changed last.
    since: Time,
    suspicion: Option<Suspicion>,
    /// Whether the run is in a livelock, by the last look.
    pub found: bool,
    /// The longest wait that links, pauses and the flow control explain, without queues.
    waits: Time,
    /// Timeouts of each sender that random losses explain.
    attempts: u32,
    /// Frames are lost at random.
    losses: bool,
    /// Until then losses explain that nothing progresses.
    losses_end: Time,
}

/// Progress has stopped for [`QUIET`].
struct Suspicion {
    /// All packets in flight have arrived by then.
    horizon: Time,
    /// By flow: timeouts of its sender, and packets sent.
    seen: Vec<(u32, u64)>,
}

impl Oracle {
    pub fn new(plan: &Plan) -> Self {
        let (waits, attempts, losses_end) = (waits(plan), attempts(plan), plan.faults.losses_end());
        Self {
            next: EVERY,
            waits,
            attempts,
            losses: !plan.faults.losses.is_empty(),
            losses_end,
            ..Self::default()
        }
    }

    pub fn look(&mut self, world: &World, at: Time) {
        if at < self.next {
            return;
        }
        self.next = at + EVERY;
        let progress = world.progress();
        if progress != self.progress || at < self.losses_end {
            (self.progress, self.since, self.suspicion, self.found) = (progress, at, None, false);
            return;
        }
        let flows = &world.plan.flows;
        let sent = |flow: usize| {
            let core = world.home(flows[flow].src);
            (core.observed.flows[flow].timeouts, core.hosts.senders[flow].sent().0)
        };
        let Some(suspicion) = &self.suspicion else {
            if at - self.since >= QUIET {
                let horizon = at.saturating_add(self.waits.max(drain(world)).saturating_mul(4));
                self.suspicion = Some(Suspicion { horizon, seen: (0..flows.len()).map(sent).collect() });
            }
            return;
        };
        // A complete sender leaves events that do nothing.
        let explains = |event: &Event| {
            let flow = event.element() as usize;
            let complete = || world.home(flows[flow].src).hosts.senders[flow].complete();
            match event.kind() {
                kind::TIMEOUT | kind::PACE if complete() => false,
                kind::TIMEOUT => {
                    let (before, now) = (suspicion.seen[flow], sent(flow));
                    let flow_packets = world.plan.packet.packets(flows[flow].size);
                    let repeats = !self.losses && now.1 - before.1 > REPEATS * flow_packets;
                    !repeats && now.0 - before.0 < self.attempts
                }
                kind::PACE => sent(flow).1 == suspicion.seen[flow].1,
                _ => is_news(event),
            }
        };
        self.found = at >= suspicion.horizon
            && unfinished(world).next().is_some()
            && !world.cores.iter().any(|core| core.wheel.pending().any(explains));
    }

    /// The stalled flows, where their packets wait and which lanes are served before these.
    pub fn livelock(&self, world: &World) -> Livelock {
        let plan = world.plan;
        let mut places: BTreeMap<u32, Vec<Backlog>> = BTreeMap::new();
        for port in 0..plan.topology.ports.len() as u32 {
            for lane in 0..world.lanes() {
                let mut waits: BTreeMap<u32, [u64; 2]> = BTreeMap::new();
                for packet in world.queued(port, lane).filter(|p| p.kind != Kind::Control) {
                    waits.entry(packet.flow).or_default()[usize::from(packet.kind != Kind::Data)] += 1;
                }
                let behind = before(world, port, lane);
                for (flow, [data, control_packets]) in waits {
                    let backlog = Backlog { port, lane: lane as u8, data, control_packets, behind };
                    places.entry(flow).or_default().push(backlog);
                }
            }
        }
        let stalled = |flow: u32| {
            let ends = &plan.flows[flow as usize];
            StalledFlow {
                flow,
                packets: plan.packet.packets(ends.size),
                delivered: world.home(ends.dst).hosts.receivers[flow as usize].transport.expected.into(),
                acknowledged: world.home(ends.src).hosts.senders[flow as usize].transport.una.into(),
                places: places.remove(&flow).unwrap_or_default(),
            }
        };
        Livelock { since: self.since, flows: unfinished(world).map(stalled).collect() }
    }
}

fn unfinished<'w>(world: &'w World) -> impl Iterator<Item = u32> + use<'w> {
    (0..).zip(&world.plan.flows).filter_map(|(index, flow)| {
        let seen = &world.home(flow.src).observed.flows[index as usize];
        seen.is_unfinished().then_some(index)
    })
}

/// The lane that a port serves strictly before `lane`, if packets of it are ready.
fn before(world: &World, port: u32, lane: u32) -> Option<u8> {
    let plan = world.plan;
    let eligible = world.port(port).eligible();
    let tier = |lane: u32| plan.lanes[lane as usize].tier;
    let ready = |lane: u32| eligible & lane_mask(lane as usize, plan.lanes.len()) != 0;
    let busy = |&other: &u32| tier(other) < tier(lane) && ready(other);
    (0..world.lanes()).find(busy).map(|other| other as u8)
}

/// The time that the fullest port takes to send all that waits there.
fn drain(world: &World) -> Time {
    let ports = (0..).zip(&world.plan.topology.ports);
    ports.map(|(port, p)| wire_time(world.waiting_bytes(port), p.rate)).max().unwrap_or(0)
}

/// The longest of the round trip, a pause of PFC and the flow control's patience.
fn waits(plan: &Plan) -> Time {
    let used = || plan.hops.iter().filter(|&&hop| hop < ENDS);
    let port = |&hop: &u32| &plan.topology.ports[hop as usize];
    let largest = u64::from(plan.packet.largest());
    let hop = used().map(port).map(|p| p.delay.saturating_add(wire_time(largest, p.rate))).max().unwrap_or(0);
    let trip = hop.saturating_mul(2 * longest_route(plan));
    let slowest = used().map(port).map(|p| p.rate).min().unwrap_or(SECOND);
    let pause = plan.flow_control.pfc().map_or(0, |_| wire_time(LONGEST_PAUSE / 8, slowest));
    trip.max(pause).max(plan.flow_control.traits().patience)
}

/// An upper bound on the hops of the longest route: where devices choose, its pieces are stored in a row.
fn longest_route(plan: &Plan) -> u64 {
    plan.hops.split(|&hop| hop == DELIVER).map(<[u32]>::len).max().unwrap_or(0) as u64
}

/// Timeouts in a row that random losses explain with a probability of at least one in a billion. [`ATTEMPTS`]
/// without random losses, and where no packet ever gets through.
fn attempts(plan: &Plan) -> u32 {
    let bits = f64::from(plan.packet.largest()) * 8.0;
    let hit = |hits: Hits| match hits {
        Hits::Frames(p) => p,
        Hits::Bits(p) => (p * bits).min(1.0),
        Hits::Control(_) => 0.0,
    };
    let worst = plan.faults.losses.iter().map(|loss| hit(loss.hits)).fold(0.0, f64::max);
    if plan.transport.retries.is_some() {
        return u32::MAX;
    }
    // Every link there and back may lose. e^-21 is below 1e-9, and (1 - p)^n is at most e^(-n p).
    let through = (0..2 * longest_route(plan)).fold(1.0, |all, _| all * (1.0 - worst));
    if worst == 0.0 || through == 0.0 { ATTEMPTS } else { (21.0 / through).ceil().min(1e9) as u32 }
}
