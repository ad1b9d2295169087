//! The second world: [`xoff_plan::plan::Plan`] in, [`Outcome`] out, where pods have no buffers. Their switches
//! hold nothing, and cores stand between them (*Zeropod: Simplifying Datacenter Networking with Future-Proof
//! Zero-Buffer Packet Switches*). It knows nothing of the first world, which has queues in its switches, and
//! nothing of files and terminals.
//!
//! What decides is in [`xoff_schemes::scheduling::zeropod`]: Algorithm 1, and when cells cross links. Here are
//! those who act on it: hosts with a queue for each destination (`voq`), cores (`cores`), what RTS and SCHD
//! carry, and what becomes of cells.
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
//! The scheduler knows what RTS have told it, once they have come, and hosts act on grants whose SCHD has come.
//! An RTS carries counts that go on for ever, so that none is needed to understand another one: of each
//! destination with news how many cells have been asked for in all, and of the top k destinations the bytes of
//! mice that wait (§IV-B.1), with how many cells had been sent by then. From that the scheduler, which knows what
//! it has granted since, knows what is left of them.
//!
//! What the paper leaves open, and here is taken, beside what stands in the scheduler's and the slots' texts:
//! - *Demands* (`zeropod.e2p-demand`). RTS ask for cells, not bytes: a cell is for one host, so that a few bytes
//!   for each of many hosts need more cells than their sum does.
//! - *Commitment*. A host commits itself to the cells of an epoch when that begins.
//! - *RTS* (`zeropod.rts-content`) cost 40 B whatever they carry; how many entries the fullest carries is
//!   reported.
//! - *Optimistic sending* (`zeropod.optimistic-eligibility`): in `unscheduled`.
//! - *Cores* do not know the flows: their queues are first in, first out, and what they ask for is ordered by
//!   its sum.
//! - *Backpressure* (`zeropod.backpressure`): cells for a pod in a core, above the threshold or not; told to the
//!   schedulers of all pods.
//! - *Reassembly*. The cells of a flow between pods may come in another order than they left in; the receiver
//!   holds back what is early. A flow is complete when all of it is there: nothing acknowledges it.

// Where a name says it all, there is no more to say.
#![allow(missing_docs)]

mod acks;
mod cores;
mod failures;
mod links;
mod taps;
mod unscheduled;
mod voq;

use acks::Acks;
use cores::{Core, Part};
use failures::{Said, Watch, watches};
use links::Links;
use std::collections::{BTreeMap, VecDeque};
use taps::Taps;
use unscheduled::Unscheduled;
use voq::{Item, Items, NONE, Piece, Received, Voq};
use xoff_kernel::random::Stream;
use xoff_kernel::time::{MICROSECOND, MILLISECOND, SECOND, Time, wire_time};
use xoff_kernel::wheel::{Event, Wheel};
use xoff_outcome::report::Records;
use xoff_outcome::tap::{INTERVAL, Tap};
use xoff_outcome::{
    AccountPeak, Counters, DropReason, Drops, FlowOutcome, Livelock, MemoryUse, Outcome, PortOutcome,
    Progress, Quantity, Sample, StalledFlow, Stop, footprint,
};
use xoff_plan::plan::Plan;
use xoff_schemes::scheduling::zeropod::params::ZeropodParams;
use xoff_schemes::scheduling::zeropod::report::{self, Report};
use xoff_schemes::scheduling::zeropod::slots::Pipeline;
use xoff_schemes::scheduling::zeropod::{Demand, Grant, Link, Scheduler, Sender, Target};

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

/// So much of the events, and of what they do, between two calls of the watcher.
const WATCH: u64 = 1 << 16;
/// A run without an end time ends at the first multiple of this after its last flow.
const TICK: Time = MICROSECOND;
/// Without an end time, a run is given up when nothing has been sent for so long, and no flow is to begin.
const QUIET: Time = 10 * MILLISECOND;

/// What a host has for a target: one of its pod, or another pod.
#[derive(Clone, Copy, Default)]
struct Wanted {
    /// Cells that it would need now.
    cells: u32,
    /// Cells that it has asked for, and that it was granted for epochs which have begun; counts that go round.
    asked: u32,
    served: u32,
    /// Whether it stands among the host's news, and among those with mice.
    is_news: bool,
    has_mice: bool,
}

/// A host, as a sender.
#[derive(Default)]
struct Host {
    /// Flows that have begun and are in no queue yet.
    begun: VecDeque<(Time, u32)>,
    /// Targets for which more cells are needed than were asked for.
    news: Vec<u16>,
    /// Targets for which mice wait, or did.
    mice: Vec<u16>,
    /// Whether its mice have changed since the last RTS.
    mice_changed: bool,
    /// Queues for other pods, by pod, that are not empty.
    open: Vec<Vec<u32>>,
}

/// A request to send, under way.
#[derive(Default)]
struct Rts {
    arrives: Time,
    /// The sender, as a row of the scheduler's matrices.
    row: u16,
    /// Target, and cells asked for in all.
    asks: Vec<(u16, u32)>,
    /// Whether it names the targets of mice anew …
    names_mice: bool,
    /// … which are these: target, bytes of mice, and cells served in all when it was sent.
    mice: Vec<(u16, u64, u32)>,
    /// Of a core: for each pod whether it takes no more for it. Of a host it is empty.
    full: Vec<bool>,
    /// Where something may fail: its epoch, of each target that is waited for the cells served in all, what was
    /// sent and got in an earlier epoch, and whether there was no SCHD then.
    epoch: u64,
    served: Vec<(u16, u32)>,
    said: Said,
    no_schd: bool,
}

/// A grant, laid down.
#[derive(Clone, Copy)]
struct Planned {
    grant: Grant,
    row: u16,
    column: u16,
    /// Positions of sender and receiver, which tell the control slots.
    from: u32,
    to: u32,
    /// Its SCHD is lost.
    lost: bool,
}

/// Who has a link in an epoch.
#[derive(Clone, Copy)]
struct Laid {
    /// The epoch; of one that is over another one's are stored here.
    epoch: u64,
    from: u32,
    to: u32,
    cells: u32,
    /// The receiver, as a column of the matrices.
    column: u16,
}

const IDLE: Laid = Laid { epoch: u64::MAX, from: 0, to: 0, cells: 0, column: 0 };

struct PodState {
    scheduler: Scheduler,
    stream: Stream,
    /// When its first epoch begins at its hosts.
    clock: Time,
    /// RTS of hosts and of cores, under way, in the order of arrival; and some to be used again.
    from_hosts: VecDeque<Rts>,
    from_cores: VecDeque<Rts>,
    spare: Vec<Rts>,
    /// By row and column: cells that were asked for, and that were granted, as counts that go round.
    asked: Vec<u32>,
    granted: Vec<u32>,
    /// Cells that were asked for and not granted.
    waiting: u64,
    /// Grants, at their epoch modulo their number.
    plans: Vec<(u64, Vec<Planned>)>,
    /// By link, and epoch modulo the number of `plans`.
    laid: Vec<Laid>,
    watch: Watch,
}

struct World<'a> {
    plan: &'a Plan,
    zeropod: &'a ZeropodParams,
    wheel: Wheel,
    now: Time,
    end: Time,
    links: Links,
    pipeline: Pipeline,
    /// Length of an epoch, and of the way through a cable; how late an epoch begins at the scheduler.
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
    /// What is captured, and when it is handed on next.
    taps: Option<Taps<'a>>,
    next_tap: Time,
    counters: Counters,
    ports: Vec<PortOutcome>,
    drops: BTreeMap<(u32, DropReason), Drops>,
    told: Report,
    series: Vec<Sample>,
    /// When something was sent last.
    moved: Time,
    /// Room that is used again and again.
    pieces: Vec<Piece>,
    parts: Vec<Part>,
    /// Links behind those on which cells of a grant were lost.
    spared: Vec<Link>,
    room: Vec<(u64, u16)>,
    due: Vec<Rts>,
    work: u64,
}

/// Who receives: flows and what depends on them.
struct Receivers<'a> {
    plan: &'a Plan,
    end: Time,
    flows: Vec<FlowOutcome>,
    received: Vec<Received>,
    /// By gate: deliveries that it waits for, and when the last one of those before came.
    gates: Vec<(u32, Time)>,
    done: usize,
    last_done: Time,
    /// When the last new byte arrived, or will.
    progressed: Time,
    /// Payload by class and interval.
    interval: Time,
    goodput: Vec<Vec<u64>>,
    /// Bytes that wait for others before them, by host, and most of them.
    held: Vec<u64>,
    most_held: u64,
}

/// Runs a plan of Zeropod to its end, or until `watch` answers `false`, with a tap if one is wanted.
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
        // From when a grant is laid down until its last cell has arrived, and been told of.
        let hops = |count: u64| (count * slots.hop).div_ceil(epoch);
        let ring = pipeline.data + 4 + hops(4) + if watches { hops(4) + 4 } else { 0 };
        let ring = ring.next_power_of_two() as usize;
        let mut items = Items::new(zeropod.levels.clone());
        items.list.extend(plan.flows.iter().map(|flow| Item::new(flow.size)));
        let mut wheel = Wheel::new(11);
        for (flow, index) in plan.flows.iter().zip(0..) {
            if flow.after.is_none() {
                wheel.push(Event::new(flow.start, kind::START, index, 0));
            }
        }
        // Without schedules nobody waits in a queue, or for an epoch.
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
            plans: vec![(u64::MAX, Vec::new()); ring],
            laid: vec![IDLE; links.count() * ring],
            watch: if watches { Watch::new(rows, links.count(), ring) } else { Watch::new(0, 0, 0) },
        };
        let host = || Host { open: vec![Vec::new(); pods], ..Host::default() };
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
            receivers: Receivers::new(plan, all),
            next_tap: if tap.is_some() { INTERVAL } else { Time::MAX },
            taps: tap.map(|tap| Taps::new(plan, tap)),
            counters: Counters::default(),
            ports: vec![PortOutcome::default(); plan.topology.ports.len()],
            drops: BTreeMap::new(),
            told: Report {
                epoch: zeropod.slots.epoch(),
                pipeline: zeropod.slots.pipeline(zeropod.delay, zeropod.pod.cores > 0).data,
                cell: zeropod.slots.data,
                acks: zeropod.acks.is_some(),
                ..Report::default()
            },
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
                self.hand_on();
            }
            self.counters.events += 1;
            self.work += 1;
            if self.work - watched >= WATCH {
                watched = self.work;
                let progress = Progress {
                    now: self.now,
                    counters: self.counters,
                    flows_done: self.receivers.done,
                    deadlocked: false,
                };
                if !watch(&progress) {
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

    /// Whether senders have retransmitted without progress for longer than timers and queues
    /// explain, and no flow is still to start.
    fn retransmits_for_ever(&self) -> bool {
        let Some(acks) = &self.acks else { return false };
        let cell = u64::from(self.zeropod.scheduler.payload + self.zeropod.header);
        let stored = self.cores.iter().map(|core| core.stored * cell).sum();
        let slowest = self.plan.topology.ports.iter().map(|port| port.rate).min().unwrap_or(SECOND);
        let waits = acks.timeout.saturating_mul(2).max(wire_time(stored, slowest));
        let explained = QUIET.saturating_add(waits.saturating_mul(4));
        self.now > self.receivers.progressed.max(acks.progressed).saturating_add(explained)
            && !self.wheel.any(|event| event.kind() == kind::START)
    }

    /// The stalled flows, if the run is in a livelock.
    fn livelock(&self) -> Option<Livelock> {
        let acks = self.acks.as_ref().filter(|_| self.retransmits_for_ever())?;
        let payload = u64::from(self.zeropod.scheduler.payload);
        let unfinished = |&flow: &u32| {
            let seen = &self.receivers.flows[flow as usize];
            seen.started.is_some() && seen.completed.is_none()
        };
        let stalled = |flow: u32| StalledFlow {
            flow,
            packets: self.plan.flows[flow as usize].size.div_ceil(payload),
            delivered: self.receivers.received[flow as usize].prefix.div_ceil(payload),
            acknowledged: acks.acked[flow as usize].div_ceil(payload),
            places: Vec::new(),
        };
        let flows: Vec<_> = (0..self.plan.flows.len() as u32).filter(unfinished).map(stalled).collect();
        let since = self.receivers.progressed.max(acks.progressed);
        (!flows.is_empty()).then_some(Livelock { since, flows })
    }

    /// What the run keeps in memory, the largest first.
    fn footprint(&self) -> Vec<MemoryUse> {
        let goodput: u64 = self.receivers.goodput.iter().map(footprint::of).sum();
        footprint::sorted([
            ("samples of series", footprint::of(&self.series) + goodput),
            ("queues of hosts", footprint::of(&self.items.list) + footprint::of(&self.voqs)),
            ("scheduled events", self.wheel.footprint()),
            ("state of flows", footprint::of(&self.plan.flows) + footprint::of(&self.receivers.received)),
            ("requests and grants", footprint::of(&self.wanted) + footprint::of(&self.voq_of)),
        ])
    }

    fn nothing_begins(&self) -> bool {
        !self.wheel.any(|event| matches!(event.kind(), kind::START | kind::CELL | kind::ARRIVAL))
    }

    /// The number of the epoch that begins now at what lies `late` behind the hosts.
    fn epoch_at(&self, pod: u16, late: Time) -> u64 {
        (self.now - late - self.pods[usize::from(pod)].clock) / self.epoch
    }

    /// The entry of an epoch in the ring of a link.
    fn laid_at(&self, pod: usize, link: Link, epoch: u64) -> usize {
        let ring = self.pods[pod].plans.len();
        self.links.number(link) * ring + epoch as usize % ring
    }

    /// Who has a link in an epoch.
    fn laid(&self, pod: usize, link: Link, epoch: u64) -> Option<Laid> {
        Some(self.pods[pod].laid[self.laid_at(pod, link, epoch)]).filter(|laid| laid.epoch == epoch)
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

    /// The queue from one host to another.
    fn voq(&mut self, src: u32, dst: u32) -> u32 {
        let at = &mut self.voq_of[src as usize * self.all + dst as usize];
        if *at == NONE {
            *at = self.voqs.len() as u32;
            self.voqs.push(Voq::new(src, dst));
        }
        *at
    }

    /// Which target of `src` a host is.
    fn target(&self, src: u32, dst: u32) -> u16 {
        let pod = dst as usize / self.per_pod;
        let target =
            if src as usize / self.per_pod == pod { dst as usize % self.per_pod } else { self.per_pod + pod };
        target as u16
    }

    /// Puts what began at a host by `until` into its queues.
    fn enqueue_begun(&mut self, host: usize, until: Time) {
        while let Some(&(at, item)) = self.hosts[host].begun.front() {
            if at > until {
                return;
            }
            self.hosts[host].begun.pop_front();
            let (src, dst) = match self.plan.flows.get(item as usize) {
                Some(flow) => (flow.src, flow.dst),
                None => {
                    let acks = self.acks.as_ref().expect("all other items are acknowledgements");
                    let flow = &self.plan.flows[acks.told[item as usize - self.plan.flows.len()].0 as usize];
                    (flow.dst, flow.src)
                }
            };
            let voq = self.voq(src, dst);
            self.items.list[item as usize].voq = voq;
            self.change(voq, |queue, items| queue.add(items, item));
        }
    }

    /// Puts something into a queue.
    fn change(&mut self, voq: u32, put: impl FnOnce(&mut Voq, &mut Items)) {
        let payload = u64::from(self.zeropod.scheduler.payload);
        let queue = &mut self.voqs[voq as usize];
        let before = queue.bytes.div_ceil(payload);
        put(queue, &mut self.items);
        let (src, dst, after, mice) = (queue.src, queue.dst, queue.bytes.div_ceil(payload), queue.mice);
        let target = self.target(src, dst);
        let host = &mut self.hosts[src as usize];
        let wanted = &mut self.wanted[src as usize * self.targets + usize::from(target)];
        wanted.cells += (after - before) as u32;
        if !std::mem::replace(&mut wanted.is_news, true) {
            host.news.push(target);
        }
        if mice > 0 {
            host.mice_changed = true;
            if !std::mem::replace(&mut wanted.has_mice, true) {
                host.mice.push(target);
            }
        }
        if before == 0 && usize::from(target) >= self.per_pod {
            host.open[usize::from(target) - self.per_pod].push(voq);
        }
    }

    /// Bytes of mice that a host has for a target.
    fn mice_for(&self, host: usize, target: u16) -> u64 {
        match usize::from(target).checked_sub(self.per_pod) {
            None => {
                let dst = host / self.per_pod * self.per_pod + usize::from(target);
                let voq = self.voq_of[host * self.all + dst];
                self.voqs.get(voq as usize).map_or(0, |voq| voq.mice)
            }
            Some(pod) => self.hosts[host].open[pod].iter().map(|&voq| self.voqs[voq as usize].mice).sum(),
        }
    }

    /// An epoch begins at the hosts of a pod.
    fn hosts_begin(&mut self, pod: u16) {
        let epoch = self.epoch_at(pod, 0);
        if epoch > 0 {
            self.request(pod, epoch - 1, self.now - self.epoch);
        }
        for host in 0..self.per_pod {
            self.enqueue_begun(usize::from(pod) * self.per_pod + host, self.now);
        }
        let ring = self.pods[usize::from(pod)].plans.len();
        let at = epoch as usize % ring;
        if self.pods[usize::from(pod)].plans[at].0 == epoch {
            let grants = std::mem::take(&mut self.pods[usize::from(pod)].plans[at].1);
            for planned in grants.iter().filter(|planned| !planned.lost) {
                if let Sender::Host(host) = planned.grant.demand.from {
                    self.send_from_host(pod, host, epoch, planned);
                }
            }
            self.pods[usize::from(pod)].plans[at].1 = grants;
        }
        self.wheel.push(Event::new(self.now + self.epoch, kind::HOSTS, u32::from(pod), 0));
    }

    /// The RTS that the hosts of a pod have sent in an epoch that began at `base`.
    fn request(&mut self, pod: u16, epoch: u64, base: Time) {
        let slots = self.zeropod.slots;
        let first = self.pods[usize::from(pod)].from_hosts.len();
        for host in 0..self.per_pod as u16 {
            let index = usize::from(pod) * self.per_pod + usize::from(host);
            let h = &self.hosts[index];
            if h.begun.is_empty() && h.news.is_empty() && !h.mice_changed && !self.watches {
                continue;
            }
            let position = u32::from(host % self.zeropod.pod.hosts_per_rack);
            let to = self.laid(usize::from(pod), Link::HostUp { host }, epoch).map(|laid| laid.to);
            let at = base + slots.rts_at(position, to);
            self.enqueue_begun(index, at);
            let h = &mut self.hosts[index];
            if h.news.is_empty() && !h.mice_changed && !self.watches {
                continue;
            }
            let mut rts = self.pods[usize::from(pod)].blank();
            rts.arrives = at + slots.control + 2 * self.hop;
            rts.row = host;
            for target in h.news.drain(..) {
                let wanted = &mut self.wanted[index * self.targets + usize::from(target)];
                wanted.is_news = false;
                let promised = wanted.asked.wrapping_sub(wanted.served);
                if wanted.cells > promised {
                    wanted.asked = wanted.asked.wrapping_add(wanted.cells - promised);
                    rts.asks.push((target, wanted.asked));
                }
            }
            rts.names_mice = std::mem::take(&mut h.mice_changed) || self.watches;
            if rts.names_mice {
                self.name_mice(index, &mut rts);
            }
            if self.watches {
                self.repeat(pod, epoch, &mut rts, |world, target| {
                    let wanted = &world.wanted[index * world.targets + usize::from(target)];
                    (wanted.asked, wanted.served)
                });
            }
            if !self.watches && rts.asks.is_empty() && !rts.names_mice {
                self.pods[usize::from(pod)].spare.push(rts);
                continue;
            }
            if self.taps.is_some() {
                self.tap_rts(pod, epoch, at, &rts);
            }
            if self.watches && self.rts_is_lost(pod, host, at) {
                self.pods[usize::from(pod)].spare.push(rts);
                continue;
            }
            self.told.most_in_rts = self.told.most_in_rts.max((rts.asks.len() + rts.mice.len()) as u64);
            self.pods[usize::from(pod)].from_hosts.push_back(rts);
        }
        self.pods[usize::from(pod)].from_hosts.make_contiguous()[first..]
            .sort_by_key(|rts| (rts.arrives, rts.row));
    }

    /// Has an RTS repeat all that is waited for, and say what came of an earlier epoch.
    fn repeat(&self, pod: u16, epoch: u64, rts: &mut Rts, counts: impl Fn(&Self, u16) -> (u32, u32)) {
        rts.epoch = epoch;
        rts.asks.clear();
        for target in 0..self.targets as u16 {
            let (asked, served) = counts(self, target);
            if asked != served {
                rts.asks.push((target, asked));
                rts.served.push((target, served));
            }
        }
        (rts.said, rts.no_schd) = self.account(pod, rts.row, epoch);
    }

    /// Names the targets with the smallest mice (§IV-B.1).
    fn name_mice(&mut self, host: usize, rts: &mut Rts) {
        let mut mice = std::mem::take(&mut self.hosts[host].mice);
        self.room.clear();
        mice.retain(|&target| {
            let bytes = self.mice_for(host, target);
            if bytes > 0 {
                self.room.push((bytes, target));
            }
            self.wanted[host * self.targets + usize::from(target)].has_mice = bytes > 0;
            bytes > 0
        });
        self.hosts[host].mice = mice;
        let top = usize::from(self.zeropod.top_k);
        if self.room.len() > top {
            if top > 0 {
                self.room.select_nth_unstable(top - 1);
            }
            self.room.truncate(top);
        }
        for &(bytes, target) in &self.room {
            let wanted = &self.wanted[host * self.targets + usize::from(target)];
            rts.mice.push((target, bytes, wanted.served));
        }
    }

    /// Cells of a grant, in the epoch that begins now, that begin before the run ends.
    fn begun(&self, planned: &Planned) -> u32 {
        let cells = planned.grant.cells;
        if self.end - self.now >= self.epoch {
            return cells;
        }
        let begins = |cell| self.now + self.zeropod.slots.data_at(cell, planned.from, planned.to);
        (0..cells).take_while(|&cell| begins(cell) < self.end).count() as u32
    }

    /// A host sends the cells of a grant, in the epoch that begins now.
    fn send_from_host(&mut self, pod: u16, host: u16, epoch: u64, planned: &Planned) {
        let src = usize::from(pod) * self.per_pod + usize::from(host);
        let payload = self.zeropod.scheduler.payload;
        let cells = self.begun(planned);
        let mut pieces = std::mem::take(&mut self.pieces);
        let mut filled = 0;
        let wanted = src * self.targets + usize::from(planned.column);
        match planned.grant.demand.to {
            Target::Host(to) => {
                let voq = self.voq_of[src * self.all + usize::from(pod) * self.per_pod + usize::from(to)];
                let (path, links) = self.path(planned);
                let path = &path[..links];
                // Where cells may be lost they are looked at one by one.
                let together = if self.watches { 1 } else { cells };
                while filled < cells && voq != NONE {
                    pieces.clear();
                    let queue = &mut self.voqs[voq as usize];
                    let before = queue.mice;
                    let taken = queue.take(&mut self.items, (together, payload), false, &mut pieces);
                    self.hosts[src].mice_changed |= queue.mice != before;
                    self.wanted[wanted].cells = queue.bytes.div_ceil(u64::from(payload)) as u32;
                    if taken == 0 {
                        break;
                    }
                    self.arrive_behind(pod, &pieces, planned, path, (filled, taken), false);
                    self.sent_all(&pieces);
                    filled += taken;
                    if !self.watches {
                        break;
                    }
                }
                self.use_links(pod, path, filled);
                if self.watches && filled > 0 {
                    self.saw(pod, host, epoch, true);
                }
            }
            Target::Pod(to) => {
                let core = planned.grant.core.expect("what leaves the pod goes to a core");
                let mice_only = core >= self.zeropod.pod.cores - self.zeropod.scheduler.mice_cores;
                let (path, links) = self.path(planned);
                let path = &path[..links];
                while filled < cells {
                    let open = &self.hosts[src].open[usize::from(to)];
                    let head = |&voq: &u32| {
                        let queue = &self.voqs[voq as usize];
                        queue
                            .head(&self.items)
                            .map(|head| (head, voq))
                            .filter(|(head, _)| !mice_only || head.0 == 0)
                    };
                    let Some((_, voq)) = open.iter().filter_map(head).min() else { break };
                    let queue = &mut self.voqs[voq as usize];
                    let before = queue.mice;
                    pieces.clear();
                    queue.take(&mut self.items, (1, payload), mice_only, &mut pieces);
                    self.hosts[src].mice_changed |= queue.mice != before;
                    let dst = queue.dst;
                    if queue.bytes == 0 {
                        let open = &mut self.hosts[src].open[usize::from(to)];
                        let at = open.iter().position(|&o| o == voq).expect("it was chosen among them");
                        open.swap_remove(at);
                    }
                    let sent = self.now + self.zeropod.slots.data_at(filled, planned.from, planned.to);
                    pieces.iter().for_each(|piece| self.first_sent(piece.item, sent, 1));
                    self.sent_all(&pieces);
                    self.counters.sent += 1;
                    filled += 1;
                    if self.taps.is_some() {
                        self.tap_cells(pod, path, &pieces, 1, &|_| sent);
                    }
                    if self.is_lost(pod, path, sent, &pieces) {
                        continue;
                    }
                    let arrives = sent + 3 * self.hop + self.zeropod.slots.data;
                    if self.watches {
                        self.saw(pod, (self.per_pod + usize::from(core)) as u16, epoch, false);
                    }
                    for (index, piece) in pieces.iter().enumerate() {
                        let part = Part {
                            item: piece.item,
                            from: piece.from,
                            bytes: piece.bytes as u32,
                            ends_cell: index + 1 == pieces.len(),
                        };
                        self.cores[usize::from(core)].coming[usize::from(pod)]
                            .push_back((arrives, dst, part));
                    }
                }
                let open = &self.hosts[src].open[usize::from(to)];
                let need = |&voq: &u32| self.voqs[voq as usize].bytes.div_ceil(u64::from(payload)) as u32;
                self.wanted[wanted].cells = open.iter().map(need).sum();
                self.use_links(pod, path, filled);
                if self.watches && filled > 0 {
                    self.saw(pod, host, epoch, true);
                }
            }
        }
        self.told.unused += u64::from(cells - filled);
        // What was asked for has been served, used or not; what is still needed is asked for again.
        let w = &mut self.wanted[wanted];
        w.served = w.served.wrapping_add(cells);
        if w.cells > w.asked.wrapping_sub(w.served) && !std::mem::replace(&mut w.is_news, true) {
            self.hosts[src].news.push(planned.column);
        }
        self.pieces = pieces;
    }

    /// Cells of a grant for a host of the pod, `taken` of them behind the first `before`, arrive,
    /// or are lost on their way.
    fn arrive_behind(
        &mut self,
        pod: u16,
        pieces: &[Piece],
        planned: &Planned,
        path: &[Link],
        (before, taken): (u32, u32),
        from_core: bool,
    ) {
        let (slots, now) = (self.zeropod.slots, self.now);
        let begins = |cell: u32| now + slots.data_at(before + cell, planned.from, planned.to);
        let behind = path.len() as Time * self.hop + slots.data;
        let last = begins(taken - 1);
        if self.taps.is_some() {
            self.tap_cells(pod, path, pieces, taken, &begins);
        }
        if !from_core {
            self.counters.sent += u64::from(taken);
            for piece in pieces {
                self.first_sent(piece.item, begins(piece.first), piece.last - piece.first + 1);
            }
        }
        if self.watches {
            if self.is_lost(pod, path, last, pieces) {
                return;
            }
            let epoch = self.epoch_at(pod, if from_core { self.hop } else { 0 });
            self.saw(pod, planned.column, epoch, false);
        }
        let here = match last + behind <= self.end {
            true => taken,
            false => (0..taken).filter(|&cell| begins(cell) + behind <= self.end).count() as u32,
        };
        self.counters.delivered += u64::from(here);
        self.counters.in_flight += u64::from(taken - here);
        for piece in pieces {
            self.receive(piece.item, (piece.from, piece.from + piece.bytes), begins(piece.last) + behind);
        }
    }

    /// Whether a cell that begins at a time is lost on a link of its path; then it is dropped there.
    fn is_lost(&mut self, pod: u16, path: &[Link], begins: Time, pieces: &[Piece]) -> bool {
        if !self.links.may_fail() {
            return false;
        }
        let long = self.zeropod.slots.data;
        let mut at = begins;
        for (index, &link) in path.iter().enumerate() {
            if self.links.is_down(pod, link, at, at + long) {
                self.spared.extend(&path[index + 1..]);
                for piece in pieces {
                    if let Some(flow) = self.receivers.flows.get_mut(piece.item as usize) {
                        flow.dropped += 1;
                    }
                }
                let port = self.links.port(pod, link);
                self.drop_cell(self.plan.topology.ports[port as usize].peer, DropReason::LinkDown, at);
                return true;
            }
            at += self.hop;
        }
        false
    }

    /// Notes which flows have been sent to their end.
    fn sent_all(&mut self, pieces: &[Piece]) {
        let Some(acks) = &self.acks else { return };
        for piece in pieces {
            let item = &self.items.list[piece.item as usize];
            if item.sent == item.size && (piece.item as usize) < self.plan.flows.len() {
                self.wheel.push(Event::new(self.now + acks.timeout, kind::ACK, piece.item, 0));
            }
        }
    }

    fn first_sent(&mut self, item: u32, at: Time, cells: u32) {
        if let Some(flow) = self.receivers.flows.get_mut(item as usize) {
            flow.first_sent = Some(flow.first_sent.map_or(at, |first| first.min(at)));
            flow.packets_sent += u64::from(cells);
        }
    }

    /// Bytes of an item will be at their receiver at a time.
    fn receive(&mut self, item: u32, (from, to): (u64, u64), at: Time) {
        if self.acks.is_some() || self.unscheduled.tries(item) {
            // What follows from it, or whether a copy is there before it, is found out then.
            let element = self.unscheduled.keep(item, from, to);
            self.wheel.push(Event::new(at, kind::ARRIVAL, element, 0));
            return;
        }
        self.receivers.receive(item, (from, to), at, &mut self.wheel);
    }

    /// The links that a grant's cells cross, and how many they are.
    fn path(&self, planned: &Planned) -> ([Link; 4], usize) {
        let Grant { demand, agg, core, .. } = planned.grant;
        let rack = |host: u16| self.zeropod.pod.rack_of(host);
        match (demand.from, demand.to, core) {
            (Sender::Host(host), Target::Host(to), _) => {
                let up = [Link::HostUp { host }, Link::RackUp { rack: rack(host), agg }];
                ([up[0], up[1], Link::RackDown { agg, rack: rack(to) }, Link::HostDown { host: to }], 4)
            }
            (Sender::Host(host), Target::Pod(_), Some(core)) => {
                let up = [Link::HostUp { host }, Link::RackUp { rack: rack(host), agg }];
                ([up[0], up[1], Link::CoreUp { core }, Link::CoreUp { core }], 3)
            }
            (Sender::Core(core), Target::Host(to), _) => {
                let last = Link::HostDown { host: to };
                ([Link::CoreDown { core }, Link::RackDown { agg, rack: rack(to) }, last, last], 3)
            }
            _ => unreachable!("what goes to another pod goes from a host to a core"),
        }
    }

    /// Cells cross the links of a grant, but for those that were lost before.
    fn use_links(&mut self, pod: u16, path: &[Link], cells: u32) {
        if cells == 0 {
            return;
        }
        self.moved = self.now;
        self.work += u64::from(cells);
        let bytes = u64::from(cells) * u64::from(self.zeropod.scheduler.payload + self.zeropod.header);
        for &link in path {
            let port = &mut self.ports[self.links.port(pod, link) as usize];
            port.packets += u64::from(cells);
            port.data_packets += u64::from(cells);
            port.bytes += bytes;
        }
        self.counters.data_hops += u64::from(cells) * path.len() as u64;
        while let Some(link) = self.spared.pop() {
            let port = &mut self.ports[self.links.port(pod, link) as usize];
            port.packets -= 1;
            port.data_packets -= 1;
            port.bytes -= bytes / u64::from(cells);
            self.counters.data_hops -= 1;
        }
        self.told.scheduled += u64::from(cells);
    }

    /// An epoch begins at the cores' ports to a pod.
    fn cores_begin(&mut self, pod: u16) {
        let epoch = self.epoch_at(pod, self.hop);
        let at = usize::from(pod);
        for core in 0..self.cores.len() {
            self.take_in(core, self.now);
            self.cores[core].release(at);
        }
        let slot = epoch as usize % self.pods[at].plans.len();
        if self.pods[at].plans[slot].0 == epoch {
            let grants = std::mem::take(&mut self.pods[at].plans[slot].1);
            for planned in grants.iter().filter(|planned| !planned.lost) {
                if let Sender::Core(core) = planned.grant.demand.from {
                    self.send_from_core(pod, core, epoch, planned);
                }
            }
            self.pods[at].plans[slot].1 = grants;
        }
        self.wheel.push(Event::new(self.now + self.epoch, kind::CORES, u32::from(pod), 0));
    }

    /// A core takes in what has come by a time.
    fn take_in(&mut self, core: usize, until: Time) {
        let cell = u64::from(self.zeropod.scheduler.payload + self.zeropod.header);
        let room = self.zeropod.core_buffer / cell;
        let mut lost = Vec::new();
        self.cores[core]
            .take_in(until, room, self.per_pod, &mut |at, from, part| lost.push((at, from, part)));
        for (at, from, part) in lost {
            // The items of acknowledgements follow those of flows.
            if let Some(flow) = self.receivers.flows.get_mut(part.item as usize) {
                flow.dropped += 1;
            }
            if part.ends_cell {
                let ingress = self.links.port(from as u16, Link::CoreDown { core: core as u16 });
                self.drop_cell(ingress, DropReason::BufferFull, at);
            }
        }
    }

    fn drop_cell(&mut self, ingress: u32, reason: DropReason, at: Time) {
        self.counters.dropped += 1;
        let bytes = u64::from(self.zeropod.scheduler.payload + self.zeropod.header);
        // What is scheduled is promised to arrive.
        let lossless = reason != DropReason::Scheme(&report::COLLISION);
        let none =
            Drops { ingress, lane: 0, lossless, reason, packets: 0, bytes: 0, first: at, shortfall: 0 };
        let drops = self.drops.entry((ingress, reason)).or_insert(none);
        drops.packets += 1;
        drops.bytes += bytes;
    }

    /// A core sends an RTS to the scheduler of a pod.
    fn request_of_core(&mut self, core: u16, pod: u16) {
        let slots = self.zeropod.slots;
        let at = usize::from(pod);
        self.take_in(usize::from(core), self.now);
        let threshold = self.zeropod.backpressure;
        let c = &self.cores[usize::from(core)];
        let same = c.told[at].iter().zip(&c.cells).all(|(&told, &cells)| told == (cells > threshold));
        if !same || !c.news[at].is_empty() || self.watches {
            let mut rts = self.pods[at].blank();
            rts.arrives = self.now + slots.control + 2 * self.hop;
            rts.row = self.per_pod as u16 + core;
            let c = &mut self.cores[usize::from(core)];
            for host in c.news[at].drain(..) {
                let asked = &mut c.asked[host as usize];
                *asked = asked.wrapping_add(1);
                let target = (host as usize % self.per_pod) as u16;
                match rts.asks.iter_mut().find(|ask| ask.0 == target) {
                    Some(ask) => ask.1 = *asked,
                    None => rts.asks.push((target, *asked)),
                }
            }
            for (told, &cells) in c.told[at].iter_mut().zip(&c.cells) {
                let full = cells > threshold;
                self.told.backpressure += u64::from(full && !*told);
                *told = full;
                rts.full.push(full);
            }
            let epoch = self.epoch_at(pod, self.hop);
            if self.watches {
                self.repeat(pod, epoch, &mut rts, |world, target| {
                    if usize::from(target) >= world.per_pod {
                        return (0, 0);
                    }
                    let core = &world.cores[usize::from(core)];
                    let host = at * world.per_pod + usize::from(target);
                    (core.asked[host], core.served[host])
                });
            }
            self.told.most_in_rts = self.told.most_in_rts.max(rts.asks.len() as u64);
            if self.taps.is_some() {
                self.tap_rts(pod, epoch, self.now, &rts);
            }
            if self.watches && self.rts_is_lost(pod, rts.row, self.now) {
                self.pods[at].spare.push(rts);
            } else {
                self.pods[at].from_cores.push_back(rts);
            }
        }
        let epoch = self.epoch_at(pod, self.hop) + 1;
        let begins = self.pods[at].clock + epoch * self.epoch + self.hop;
        self.next_request_of_core(core, pod, epoch, begins);
    }

    /// A core will send its RTS of an epoch, which begins there at a time.
    fn next_request_of_core(&mut self, core: u16, pod: u16, epoch: u64, begins: Time) {
        let position = u32::from(core / self.zeropod.pod.aggs);
        let to = self.laid(usize::from(pod), Link::CoreDown { core }, epoch).map(|laid| laid.to);
        let at = begins + self.zeropod.slots.rts_at(position, to);
        let element = u32::from(core) * u32::from(self.zeropod.pod.pods) + u32::from(pod);
        self.wheel.push(Event::new(at, kind::CORE_RTS, element, 0));
    }

    /// A core sends the cells of a grant.
    fn send_from_core(&mut self, pod: u16, core: u16, epoch: u64, planned: &Planned) {
        let dst = u32::from(pod) * self.per_pod as u32 + u32::from(planned.column);
        let (path, links) = self.path(planned);
        let path = &path[..links];
        let mut parts = std::mem::take(&mut self.parts);
        let mut pieces = std::mem::take(&mut self.pieces);
        let mut sent = 0;
        let cells = self.begun(planned);
        while sent < cells {
            parts.clear();
            if !self.cores[usize::from(core)].send(dst, usize::from(pod), &mut parts) {
                break;
            }
            pieces.clear();
            let piece = |part: &Part| Piece {
                item: part.item,
                from: part.from,
                bytes: u64::from(part.bytes),
                first: 0,
                last: 0,
            };
            pieces.extend(parts.iter().map(piece));
            self.arrive_behind(pod, &pieces, planned, path, (sent, 1), true);
            sent += 1;
        }
        self.parts = parts;
        self.pieces = pieces;
        let c = &mut self.cores[usize::from(core)];
        c.served[dst as usize] = c.served[dst as usize].wrapping_add(planned.grant.cells);
        self.told.unused += u64::from(cells - sent);
        self.use_links(pod, path, sent);
        if self.watches && sent > 0 {
            self.saw(pod, planned.row, epoch, true);
        }
    }

    /// An epoch begins at the scheduler of a pod.
    fn schedule(&mut self, pod: u16) {
        let late = self.late;
        let epoch = self.epoch_at(pod, late);
        let targets = self.targets;
        let per_pod = self.per_pod;
        let payload = u64::from(self.zeropod.scheduler.payload);
        let mut due = std::mem::take(&mut self.due);
        let state = &mut self.pods[usize::from(pod)];
        for queue in [&mut state.from_hosts, &mut state.from_cores] {
            while let Some(rts) = queue.pop_front_if(|rts| rts.arrives <= self.now) {
                due.push(rts);
            }
        }
        for rts in due.drain(..) {
            if self.watches {
                self.hear_of_failures(pod, rts.row, rts.epoch, rts.said, rts.no_schd);
                self.take_back(pod, epoch + self.pipeline.data, &rts);
            }
            let state = &mut self.pods[usize::from(pod)];
            state.hear(&rts, (per_pod, targets), payload);
            state.spare.push(rts);
        }
        self.due = due;
        if self.watches {
            self.look_for_failures(pod, epoch);
        }
        self.told.epochs += 1;
        let works = !self.watches || self.works(pod, self.now);
        let state = &mut self.pods[usize::from(pod)];
        if state.waiting > 0 && works {
            let data = epoch + self.pipeline.data;
            let ring = state.plans.len();
            let at = data as usize % ring;
            let (_, mut plan) = std::mem::take(&mut state.plans[at]);
            plan.clear();
            let grants = state.scheduler.schedule(&mut state.stream);
            for &grant in grants {
                let (row, from) = match grant.demand.from {
                    Sender::Host(host) => (host, host % self.zeropod.pod.hosts_per_rack),
                    Sender::Core(core) => (per_pod as u16 + core, core / self.zeropod.pod.aggs),
                };
                let (column, to) = match grant.demand.to {
                    Target::Host(host) => (host, host % self.zeropod.pod.hosts_per_rack),
                    Target::Pod(to) => {
                        let core = grant.core.expect("what leaves the pod goes to a core");
                        (per_pod as u16 + to, core / self.zeropod.pod.aggs)
                    }
                };
                let granted = &mut state.granted[usize::from(row) * targets + usize::from(column)];
                *granted = granted.wrapping_add(grant.cells);
                state.waiting -= u64::from(grant.cells);
                plan.push(Planned {
                    grant,
                    row,
                    column,
                    from: u32::from(from),
                    to: u32::from(to),
                    lost: false,
                });
            }
            self.told.grants += plan.len() as u64;
            self.work += plan.len() as u64;
            for planned in &mut plan {
                self.lay(pod, data, planned);
                // What is on the wire then is known by now, as its grants are older.
                planned.lost =
                    self.watches && self.schd_is_lost(pod, planned.row, epoch + self.pipeline.schd);
                if self.taps.is_some() {
                    self.tap_schd(pod, epoch + self.pipeline.schd, data, planned);
                }
            }
            self.pods[usize::from(pod)].plans[at] = (data, plan);
        }
        self.wheel.push(Event::new(self.now + self.epoch, kind::SCHEDULER, u32::from(pod), 0));
    }

    /// Lays a grant onto its links, which must be idle in that epoch.
    fn lay(&mut self, pod: u16, epoch: u64, planned: &Planned) {
        let (path, links) = self.path(planned);
        for &link in &path[..links] {
            let at = self.laid_at(usize::from(pod), link, epoch);
            let laid = &mut self.pods[usize::from(pod)].laid[at];
            assert!(laid.epoch != epoch, "two grants meet on {link:?} of pod {pod} in epoch {epoch}");
            let Planned { grant, column, from, to, .. } = *planned;
            *laid = Laid { epoch, from, to, cells: grant.cells, column };
        }
    }

    /// Grants that came to nothing, as what an RTS says was served shows, are demands again.
    fn take_back(&mut self, pod: u16, last: u64, rts: &Rts) {
        let payload = u64::from(self.zeropod.scheduler.payload);
        for &(column, served) in &rts.served {
            let behind = self.granted_behind(pod, rts.row, column, rts.epoch, last);
            let state = &mut self.pods[usize::from(pod)];
            let granted = &mut state.granted[usize::from(rts.row) * self.targets + usize::from(column)];
            let lost = granted.wrapping_sub(behind).wrapping_sub(served);
            // What was taken back before its epoch had come is served after all, or lost once.
            if lost == 0 || lost > u32::MAX / 2 {
                continue;
            }
            *granted = granted.wrapping_sub(lost);
            state.waiting += u64::from(lost);
            self.told.taken_back += u64::from(lost);
            let demand = state.demand(rts.row, column, self.per_pod);
            state.scheduler.add(demand, u64::from(lost) * payload);
        }
    }

    fn sample(&mut self, at: Time) {
        let cell = u64::from(self.zeropod.scheduler.payload + self.zeropod.header);
        for (index, core) in self.cores.iter().enumerate() {
            let node = (self.plan.topology.nodes.len() - self.cores.len() + index) as u32;
            self.series.push(Sample { at, what: Quantity::Buffered(node), value: core.stored * cell });
        }
    }

    fn finish(mut self, stop: Stop) -> Outcome {
        let end = match stop {
            Stop::AllDone if self.plan.end.is_none() => (self.receivers.last_done / TICK + 1) * TICK,
            Stop::AllDone | Stop::EndTime => self.end,
            // Grants fix what happens in the rest of an epoch: that has been counted.
            Stop::Interrupted | Stop::Memory | Stop::Starved | Stop::Livelock => {
                let times = self.receivers.flows.iter().flat_map(|flow| flow.first_sent.max(flow.completed));
                times.fold(self.now, Time::max)
            }
        };
        let livelock = self.livelock();
        let memory = match stop.cut_short() {
            true => self.footprint(),
            false => Vec::new(),
        };
        if let Some(taps) = &mut self.taps {
            // What is due at the end itself has not come, unless that is the time of the last event.
            taps.hand_on(if matches!(stop, Stop::AllDone | Stop::EndTime) { end } else { end + 1 });
        }
        let z = self.zeropod;
        // What is under way, or stands in cores.
        self.counters.in_flight += self.unscheduled.left();
        self.counters.in_flight += self.cores.iter().map(Core::left).sum::<u64>();
        let c = self.counters;
        assert_eq!(c.sent, c.delivered + c.dropped + c.in_flight, "cells are conserved");
        self.control_cells(end);
        self.counters.packet_hops += self.counters.data_hops;
        let cell = u64::from(z.scheduler.payload + z.header);
        let mut buffer_peaks = vec![0; self.plan.topology.nodes.len()];
        let first_core = buffer_peaks.len() - self.cores.len();
        for (peak, core) in buffer_peaks[first_core..].iter_mut().zip(&self.cores) {
            *peak = core.peak * cell;
        }
        for pod in &self.pods {
            let tally = pod.scheduler.tally();
            self.told.tally.iterations += tally.iterations;
            self.told.tally.requests += tally.requests;
            self.told.tally.granted += tally.granted;
            self.told.tally.approved += tally.approved;
            self.told.tally.accepted += tally.accepted;
        }
        self.told.unscheduled = self.unscheduled.tally;
        self.told.most_held = self.receivers.most_held;
        let mut series = std::mem::take(&mut self.series);
        series.extend(self.receivers.series(end));
        series.sort_by_key(|sample| sample.at);
        let accounts = self.plan.topology.ports.len() * self.plan.lanes.len();
        Outcome {
            end,
            stop,
            flows: self.receivers.flows,
            pauses: Vec::new(),
            series,
            ports: self.ports,
            buffer_peaks,
            accounts: vec![AccountPeak::default(); accounts],
            drops: self.drops.into_values().collect(),
            deadlock: None,
            waiting: Vec::new(),
            livelock,
            memory,
            blocking: None,
            paths: None,
            routes: None,
            roots: Vec::new(),
            records: Records::of(self.told),
            counters: self.counters,
        }
    }

    /// Counts RTS and SCHD, of which there is one for each host and each port of a core in each epoch, whether
    /// they say something or not.
    fn control_cells(&mut self, end: Time) {
        let z = self.zeropod;
        if !z.scheduled {
            return;
        }
        for pod in 0..z.pod.pods {
            let epochs = end.saturating_sub(z.clocks[usize::from(pod)]) / self.epoch;
            let hosts =
                (0..self.per_pod as u16).flat_map(|host| [Link::HostUp { host }, Link::HostDown { host }]);
            let cores = (0..z.pod.cores).flat_map(|core| [Link::CoreUp { core }, Link::CoreDown { core }]);
            for link in hosts.chain(cores) {
                let port = &mut self.ports[self.links.port(pod, link) as usize];
                port.packets += epochs;
                port.bytes += epochs * u64::from(z.control);
                // And over the scheduler's own link.
                self.counters.packet_hops += 2 * epochs;
                self.counters.extra_control += epochs * u64::from(z.control);
            }
        }
    }
}

impl PodState {
    /// An RTS that says nothing yet.
    fn blank(&mut self) -> Rts {
        let mut rts = self.spare.pop().unwrap_or_default();
        rts.asks.clear();
        rts.mice.clear();
        rts.names_mice = false;
        rts.full.clear();
        rts.served.clear();
        rts
    }

    /// What a row and a column of the matrices stand for.
    fn demand(&self, row: u16, column: u16, hosts: usize) -> Demand {
        let hosts = hosts as u16;
        Demand {
            from: if row < hosts { Sender::Host(row) } else { Sender::Core(row - hosts) },
            to: if column < hosts { Target::Host(column) } else { Target::Pod(column - hosts) },
        }
    }

    /// An RTS has come.
    fn hear(&mut self, rts: &Rts, (hosts, targets): (usize, usize), payload: u64) {
        let row = usize::from(rts.row);
        for &(column, asked) in &rts.asks {
            let known = &mut self.asked[row * targets + usize::from(column)];
            let cells = asked.wrapping_sub(*known);
            *known = asked;
            self.waiting += u64::from(cells);
            self.scheduler.add(self.demand(rts.row, column, hosts), u64::from(cells) * payload);
        }
        if rts.names_mice {
            // Less what was granted and not served yet when this was sent.
            let left = |&(column, bytes, served): &(u16, u64, u32)| {
                let under_way = self.granted[row * targets + usize::from(column)].wrapping_sub(served);
                let cells = bytes.div_ceil(payload).saturating_sub(u64::from(under_way));
                (self.demand(rts.row, column, hosts).to, cells * payload)
            };
            let mice: Vec<(Target, u64)> = rts.mice.iter().map(left).filter(|m| m.1 > 0).collect();
            self.scheduler.advertise(Sender::Host(rts.row), &mice);
        }
        for (pod, &full) in (0..).zip(&rts.full) {
            self.scheduler.set_backpressure((row - hosts) as u16, pod, full);
        }
    }
}

impl<'a> Receivers<'a> {
    fn new(plan: &'a Plan, hosts: usize) -> Self {
        Self {
            plan,
            end: plan.end.unwrap_or(Time::MAX),
            flows: vec![FlowOutcome::default(); plan.flows.len()],
            received: vec![Received::default(); plan.flows.len()],
            gates: plan.gates.iter().map(|gate| (gate.waits, 0)).collect(),
            done: 0,
            last_done: 0,
            progressed: 0,
            interval: plan.measure.interval.unwrap_or(0),
            goodput: vec![Vec::new(); plan.classes.len()],
            held: vec![0; hosts],
            most_held: 0,
        }
    }

    /// Bytes of a flow come at a time, which may lie ahead. Answers whether any of them is new.
    fn receive(&mut self, index: u32, (from, to): (u64, u64), at: Time, wheel: &mut Wheel) -> bool {
        if at > self.end {
            return false;
        }
        let flow = &self.plan.flows[index as usize];
        let told = &mut self.flows[index as usize];
        let received = &mut self.received[index as usize];
        let waited = received.waiting();
        told.out_of_order += u64::from(from > received.prefix);
        let prefix = received.prefix;
        let new = received.insert(from, to);
        told.spurious += u64::from(new == 0);
        if new > 0 {
            self.progressed = self.progressed.max(at);
        }
        received.last = received.last.max(at);
        let held = &mut self.held[flow.dst as usize];
        *held = *held + received.waiting() - waited;
        self.most_held = self.most_held.max(*held);
        told.delivered_bytes = received.prefix;
        if let Some(bin) = at.checked_div(self.interval) {
            let bins = &mut self.goodput[usize::from(flow.class)];
            let bin = bin as usize;
            if bins.len() <= bin {
                bins.resize(bin + 1, 0);
            }
            bins[bin] += received.prefix - prefix;
        }
        if received.prefix == flow.size && told.completed.is_none() && new > 0 {
            told.delivered = Some(received.last);
            told.completed = Some(received.last);
            self.done += 1;
            self.last_done = self.last_done.max(received.last);
            if let Some(gate) = flow.opens {
                let (waits, last) = &mut self.gates[gate as usize];
                *waits -= 1;
                *last = received.last.max(*last);
                if *waits == 0 {
                    let gate = &self.plan.gates[gate as usize];
                    for &flow in &gate.flows {
                        wheel.push(Event::new(*last + gate.delay, kind::START, flow, 0));
                    }
                }
            }
        }
        new > 0
    }

    fn series(&self, end: Time) -> Vec<Sample> {
        let mut series = Vec::new();
        if self.interval == 0 {
            return series;
        }
        for (class, bins) in self.goodput.iter().enumerate() {
            for bin in 0..end.div_ceil(self.interval) {
                let from = bin * self.interval;
                let at = (from + self.interval).min(end);
                let bytes = bins.get(bin as usize).copied().unwrap_or(0);
                let value = u128::from(bytes) * 8 * u128::from(SECOND) / u128::from(at - from);
                series.push(Sample { at, what: Quantity::Goodput(class as u16), value: value as u64 });
            }
        }
        series
    }
}
