//! The second world: [`xoff_plan::plan::Plan`] in, [`Outcome`] out, where pods' switches have no buffers, and
//! cores connect the pods (*Zeropod: Simplifying Datacenter Networking with Future-Proof Zero-Buffer Packet
//! Switches*). It depends neither on the first world, whose switches have queues, nor on files and terminals.
//!
//! The decisions are in [`xoff_schemes::scheduling::zeropod`]: Algorithm 1, and the times at which cells
//! cross links. The actors are here: `hosts` with a queue for each destination (`voq`), `cores`, the
//! `scheduler` with the content of RTS, `cells` that cross links, and `receivers`.
//!
//! A pod advances in epochs, not in cells. As long as nothing meets nothing waits, so a grant says all: its
//! cells are laid onto four links at once, each of which has room for one grant in an epoch, and a second one
//! stops the run. When each of them is where follows from the epoch. Three things happen in epoch e of a pod,
//! which begins at its hosts at B:
//!
//! ```text
//!   B              hosts: RTS of epoch e − 1; cells of what they were granted for e
//!   B + 1 hop      cores: the same
//!   B + 1 or 2 hops, when the epoch begins at the scheduler:
//!                  what has come of RTS until then goes into its matrices; Algorithm 1; grants are laid down
//!                  for the epoch in which data can leave (`Slots::pipeline`)
//! ```
//!
//! The scheduler knows the content of the RTS that have arrived, and hosts act on grants whose SCHD has
//! arrived. An RTS carries running totals, so none is needed to understand another one: of each destination
//! with news how many cells have been requested in total, and of the top k destinations the bytes of mice
//! that wait (§IV-B.1), with how many cells had been sent by then. From that and its later grants the
//! scheduler computes the rest.
//!
//! What the paper leaves open, and here is taken, besides the texts of the scheduler and the slots:
//! - *Demands* (`zeropod.e2p-demand`). RTS ask for cells, not bytes: a cell is for one host, so that a few
//!   bytes for each of many hosts need more cells than their sum does.
//! - *Commitment*. A host commits itself to the cells of an epoch when that begins.
//! - *RTS* (`zeropod.rts-content`) cost 40 B whatever they carry; how many entries the fullest carries is
//!   reported.
//! - *Optimistic sending* (`zeropod.optimistic-eligibility`): in `unscheduled`.
//! - *Cores* do not know the flows: their queues are first in, first out, and what they ask for is ordered by
//!   its sum.
//! - *Backpressure* (`zeropod.backpressure`): cells for a pod in a core, above the threshold or not; reported
//!   to the schedulers of all pods.
//! - *Reassembly*. The cells of a flow between pods may come in another order than they left in; the receiver
//!   holds back what is early. A flow is complete when all of it is there: nothing acknowledges it.

#![allow(missing_docs)]

mod acks;
mod cells;
mod cores;
mod end;
mod failures;
mod hosts;
mod links;
mod receivers;
mod scheduler;
mod taps;
mod unscheduled;
mod voq;

use acks::Acks;
use cores::{Core, Part};
use failures::{Watch, watches};
use hosts::{Host, Wanted};
use links::Links;
use receivers::Receivers;
use scheduler::{IDLE, PodState, Rts};
use std::collections::{BTreeMap, VecDeque};
use taps::Taps;
use unscheduled::Unscheduled;
use voq::{Item, Items, NONE, Piece, Voq};
use xoff_kernel::random::Stream;
use xoff_kernel::time::{MILLISECOND, Time};
use xoff_kernel::wheel::{Event, Wheel};
use xoff_outcome::tap::{INTERVAL, Tap};
use xoff_outcome::{Counters, DropReason, Drops, Outcome, PortOutcome, Progress, Sample, Stop};
use xoff_plan::plan::Plan;
use xoff_schemes::scheduling::zeropod::params::ZeropodParams;
use xoff_schemes::scheduling::zeropod::report::Report;
use xoff_schemes::scheduling::zeropod::slots::Pipeline;
use xoff_schemes::scheduling::zeropod::{Link, Scheduler};

/// Kinds of events, in the order in which those of one time happen.
mod kind {
    /// A part of a flow that was also sent unscheduled reaches its receiver.
    pub const ARRIVAL: u8 = 0;
    /// An unscheduled cell reaches a link, or its receiver.
    pub const CELL: u8 = 1;
    pub const START: u8 = 2;
    /// An epoch begins at the hosts of a pod.
    pub const HOSTS: u8 = 3;
    /// … at its cores.
    pub const CORES: u8 = 4;
    /// … at its scheduler.
    pub const SCHEDULER: u8 = 5;
    /// A host looks whether it can send something unscheduled.
    pub const SEND: u8 = 6;
    /// A sender has waited long for an acknowledgement.
    pub const ACK: u8 = 7;
    /// A core sends an RTS to a pod.
    pub const CORE_RTS: u8 = 8;
}

/// Number of events between two calls of the watcher.
const WATCH: u64 = 1 << 16;
/// Without an end time, a run is given up when nothing has been sent for so long, and no flow is to begin.
const QUIET: Time = 10 * MILLISECOND;

struct World<'a> {
    plan: &'a Plan,
    zeropod: &'a ZeropodParams,
    wheel: Wheel,
    now: Time,
    end: Time,
    links: Links,
    pipeline: Pipeline,
    /// Length of an epoch, and delay of a cable; how late an epoch begins at the scheduler.
    epoch: Time,
    hop: Time,
    late: Time,
    /// Hosts of a pod, and of all; targets of a host.
    per_pod: usize,
    all: usize,
    targets: usize,
    hosts: Vec<Host>,
    /// By host and target.
    wanted: Vec<Wanted>,
    items: Items,
    voqs: Vec<Voq>,
    /// The queue of a pair of hosts.
    voq_of: Vec<u32>,
    pods: Vec<PodState>,
    cores: Vec<Core>,
    unscheduled: Unscheduled,
    acks: Option<Acks>,
    /// Whether something may fail.
    watches: bool,
    receivers: Receivers<'a>,
    /// The captured frames, and when they are handed on next.
    taps: Option<Taps<'a>>,
    next_tap: Time,
    counters: Counters,
    ports: Vec<PortOutcome>,
    drops: BTreeMap<(u32, DropReason), Drops>,
    report: Report,
    series: Vec<Sample>,
    /// When something was sent last.
    moved: Time,
    /// Room that is used again and again.
    pieces: Vec<Piece>,
    parts: Vec<Part>,
    /// Links after those on which cells of a grant were lost.
    spared: Vec<Link>,
    room: Vec<(u64, u16)>,
    due: Vec<Rts>,
    work: u64,
}

/// Runs a plan of Zeropod to its end, or until `watch` returns `false`, with a tap if the caller gives one.
///
/// # Panics
/// If two scheduled cells meet, or cells are not conserved: faults of the simulator, never of a plan.
pub fn run<'a>(
    plan: &'a Plan,
    zeropod: &'a ZeropodParams,
    tap: Option<Tap<'a>>,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Outcome {
    let mut world = World::new(plan, zeropod, tap);
    if zeropod.scheduled {
        for (pod, &clock) in (0..).zip(&zeropod.clocks) {
            for core in 0..zeropod.pod.cores {
                world.next_request_of_core(core, pod, 0, clock + zeropod.slots.hop);
            }
        }
    }
    let stop = world.advance(watch);
    world.finish(stop)
}

impl<'a> World<'a> {
    fn new(plan: &'a Plan, zeropod: &'a ZeropodParams, tap: Option<Tap<'a>>) -> Self {
        let ZeropodParams { pod, slots, scheduler: params, .. } = zeropod;
        let pods = usize::from(pod.pods);
        let per_pod = pod.hosts();
        let all = per_pod * pods;
        let targets = per_pod + pods;
        let rows = per_pod + usize::from(pod.cores);
        let links = Links::new(*pod, plan.topology.ports.len(), &plan.faults);
        let pipeline = slots.pipeline(zeropod.delay, pod.cores > 0);
        let late = slots.late_at_scheduler(pod.cores > 0);
        let epoch = slots.epoch();
        let watches = watches(zeropod, links.may_fail());
        // From when a grant is recorded until its last cell has arrived, and was reported.
        let hops = |count: u64| (count * slots.hop).div_ceil(epoch);
        let ring = pipeline.data + 4 + hops(4) + if watches { hops(4) + 4 } else { 0 };
        let ring = ring.next_power_of_two() as usize;
        let mut items = Items::new(zeropod.levels.clone());
        items.list.extend(plan.flows.iter().map(|flow| Item::new(flow.size)));
        let mut wheel = Wheel::new(11);
        let mut receivers = Receivers::new(plan, all);
        receivers.begin(&mut wheel);
        // Without schedules no cell waits in a queue, or for an epoch.
        let scheduled = zeropod.scheduled;
        if scheduled {
            for (pod, &clock) in (0..).zip(&zeropod.clocks) {
                wheel.push(Event::new(clock, kind::HOSTS, pod, 0));
                wheel.push(Event::new(clock + late, kind::SCHEDULER, pod, 0));
                if zeropod.pod.cores > 0 {
                    wheel.push(Event::new(clock + slots.hop, kind::CORES, pod, 0));
                }
            }
        }
        let pod_state = |index: u64| PodState {
            scheduler: Scheduler::new(*pod, *params),
            stream: Stream::new(plan.seed, "zeropod scheduler", index),
            clock: zeropod.clocks[index as usize],
            from_hosts: VecDeque::new(),
            from_cores: VecDeque::new(),
            spare: Vec::new(),
            asked: vec![0; rows * targets],
            granted: vec![0; rows * targets],
            waiting: 0,
            pending: VecDeque::new(),
            plans: vec![(u64::MAX, Vec::new()); ring],
            laid: vec![IDLE; links.count() * ring],
            watch: if watches { Watch::new(rows, links.count(), ring) } else { Watch::new(0, 0, 0) },
        };
        let host = || Host { open: vec![Vec::new(); pods], ..Host::default() };
        let acks = zeropod.acks.is_some();
        let report = Report { epoch, pipeline: pipeline.data, cell: slots.data, acks, ..Report::default() };
        Self {
            plan,
            zeropod,
            wheel,
            now: 0,
            end: plan.end.unwrap_or(Time::MAX),
            pipeline,
            epoch,
            hop: slots.hop,
            late,
            per_pod,
            all,
            targets,
            hosts: std::iter::repeat_with(host).take(all).collect(),
            wanted: vec![Wanted::default(); if scheduled { all * targets } else { 0 }],
            items,
            voqs: Vec::new(),
            voq_of: vec![NONE; if scheduled { all * all } else { 0 }],
            pods: (0..if scheduled { pods as u64 } else { 0 }).map(pod_state).collect(),
            cores: (0..pod.cores).map(|_| Core::new(pods, all)).collect(),
            unscheduled: Unscheduled::new(plan, zeropod, all, links.count() * pods),
            acks: zeropod.acks.map(|timeout| Acks::new(timeout, plan.flows.len())),
            watches,
            receivers,
            next_tap: if tap.is_some() { INTERVAL } else { Time::MAX },
            taps: tap.map(|tap| Taps::new(plan, tap)),
            counters: Counters::default(),
            ports: vec![PortOutcome::default(); plan.topology.ports.len()],
            drops: BTreeMap::new(),
            report,
            series: Vec::new(),
            moved: 0,
            pieces: Vec::new(),
            parts: Vec::new(),
            spared: Vec::new(),
            room: Vec::new(),
            due: Vec::new(),
            work: 0,
            links,
        }
    }

    /// Takes events until all is done.
    fn advance(&mut self, watch: &mut dyn FnMut(&Progress) -> bool) -> Stop {
        let mut next_sample = self.plan.measure.interval.unwrap_or(Time::MAX);
        let mut watched = 0;
        loop {
            if self.receivers.done == self.plan.flows.len() {
                return Stop::AllDone;
            }
            let Some(event) = self.wheel.pop_before(self.end) else {
                return if self.end < Time::MAX { Stop::EndTime } else { Stop::Starved };
            };
            while event.time >= next_sample {
                self.sample(next_sample);
                next_sample += self.plan.measure.interval.unwrap_or(Time::MAX);
            }
            self.now = event.time;
            if self.now >= self.next_tap {
                self.flush();
            }
            self.counters.events += 1;
            self.work += 1;
            if self.work - watched >= WATCH {
                watched = self.work;
                let (now, counters, flows_done) = (self.now, self.counters, self.receivers.done);
                if !watch(&Progress { now, counters, flows_done, deadlocked: false }) {
                    return Stop::Interrupted;
                }
                if self.end == Time::MAX && self.now > self.moved + QUIET && self.nothing_begins() {
                    return Stop::Starved;
                }
                if self.end == Time::MAX && self.retransmits_for_ever() {
                    return Stop::Livelock;
                }
            }
            let element = event.element();
            match event.kind() {
                kind::ARRIVAL => self.arrive(element),
                kind::CELL => self.cross(element),
                kind::START => self.start(element),
                kind::HOSTS => self.hosts_begin(element as u16),
                kind::CORES => self.cores_begin(element as u16),
                kind::SCHEDULER => self.schedule(element as u16),
                kind::ACK => self.ack_timeout(element),
                kind::CORE_RTS => {
                    let pods = u32::from(self.zeropod.pod.pods);
                    self.request_of_core((element / pods) as u16, (element % pods) as u16);
                }
                _ => self.send_unscheduled(element),
            }
        }
    }

    fn start(&mut self, flow: u32) {
        let f = &self.plan.flows[flow as usize];
        self.receivers.flows[flow as usize].started = Some(self.now);
        self.moved = self.now;
        if self.zeropod.scheduled {
            self.hosts[f.src as usize].begun.push_back((self.now, flow));
        }
        self.try_unscheduled(flow);
    }
}
