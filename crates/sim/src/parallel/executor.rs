//! Threads: the parts of a run advance together, in windows.
//!
//! An action of a device reaches another part after at least the smallest delay of a link between parts (the
//! lookahead `L`). So, with `n` the time of the first event of all parts, every part may take its events in
//! `[n, n + L)`: those of others arrive later. At the end of a window each part posts its events and the time
//! of its next event; one barrier later all parts have the same data, and compute the same next window.
//!
//! ```text
//!   part 0   [ events ] post │barrier│ take events  [ events ] post │barrier│ …
//!   part 1   [ events ] post │       │ take events  [ events ] post │       │
//! ```
//!
//! Events have a total order by their content, no two devices share state, and each part processes its events
//! in that order: so the bytes of a result do not depend on the number of threads, nor on who advances which
//! part. While one thread is faster than all ([`crate::parallel::turns`]), the first one advances all parts
//! of each window, and the others sleep. Work on more than one device (samples, oracles, the end of the run)
//! happens between windows, at times that the plan and the events determine: a window never passes them.

use crate::kind::{is_news, is_timer};
use crate::oracle::{critical, deadlock, livelock};
use crate::outcome::tap::{self, Handover, Tap};
use crate::outcome::{AccountPeak, Blocking, Counters, Deadlock, Outcome, Progress, Stop};
use crate::parallel::fleet::Fleet;
use crate::parallel::pace::{Lateness, Pace};
use crate::parallel::wires::{Wired, Wires};
use crate::parallel::{cpus::Cpus, outbox::Outbox, partition::Partition, turns::Turns};
use crate::samples::{self, Series};
use crate::{Watch, engine::Engine, footprint::footprint, packet::Kind, tap::Taps, world::World};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use xoff_kernel::time::{MICROSECOND, MILLISECOND, Time};
use xoff_kernel::wheel::Event;
use xoff_plan::plan::Plan;

/// A run without an end time ends at the first multiple of this after its last flow: so each of its windows ends at
/// the next multiple at the latest …
pub const TICK: Time = MICROSECOND;
/// … and each window of other runs, which look for interruptions between windows, at the next multiple of this.
const LONGEST: Time = 16 * MICROSECOND;
/// How often the deadlock oracle looks.
const LOOK: Time = 100 * MICROSECOND;
/// Without an end time, a run is given up when no data packet has moved for this long and four retransmission
/// timeouts, and nothing but timers is pending; or when it is deadlocked and no flow has had progress for as
/// long, although senders retransmit. (Longer if the flow control may still drop waiting packets.)
const QUIET: Time = 10 * MILLISECOND;
/// Events (and windows) between two calls of the watcher.
pub const WATCH: u64 = 1 << 16;
/// The same over wires, where a window takes longer.
const WATCH_WIRES: u64 = 1 << 9;
/// The longest sleep of a part that follows the wall clock: how soon it sees that the run ends.
pub const NAP: Duration = Duration::from_millis(100);
/// So many events is a halt worth (samples and oracles look at every device).
const HALT: u64 = 1 << 8;
/// Looks at a barrier before a waiting thread sleeps: some windows. It does not yield, because a process of low priority
/// that waits for the processor would then keep it for a whole time slice.
const SPINS: u32 = 50_000;

/// The report of a part at the end of a window.
#[derive(Clone, Copy, Default)]
pub struct Report {
    /// When its next event comes, or the first of those it posted does.
    pub next: Time,
    pub flows_done: usize,
    pub last_done: Time,
    pub counters: Counters,
    pub interrupted: bool,
    /// The mode changes: see [`crate::parallel::turns`].
    pub turns: bool,
    /// How long its thread has waited for others.
    pub waited: Duration,
}

/// What comes after a window.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum After {
    Continue,
    /// The mode changes.
    Turn,
    Stop,
}

/// Why the windows have come to an end.
#[derive(Clone, Copy)]
pub enum Reached {
    /// The halt; the next event comes then or later, at this time.
    Halt(Time),
    /// The end of a run whose flows are all done.
    Done(Time),
    Interrupted,
    /// The mode changes.
    Turn,
}

/// The data that the threads share.
pub struct Shared<'a> {
    pub engines: Vec<Mutex<Box<Engine<'a>>>>,
    /// Posted events by parity of the window, receiver and sender.
    mail: [Vec<Vec<Mutex<Outbox>>>; 2],
    /// Reports by parity of the window and part.
    reports: [Vec<Mutex<Report>>; 2],
    barrier: Barrier,
    /// Where the windows end next, and their number so far; `None` ends the threads.
    halt: Mutex<Option<(Time, usize)>>,
    /// A share of the processors for each thread, if there are enough.
    cpus: Option<Cpus>,
    /// Carries posted events, in place of `mail`, if each part is a device of its own.
    wired: Option<Wired<'a>>,
}

/// Threads wait here for each other: awake for a while, since a window is short, then asleep.
#[derive(Default)]
struct Barrier {
    threads: usize,
    waiting: AtomicUsize,
    round: AtomicUsize,
    /// Threads asleep; a change of `round` or `broken` happens under this lock.
    asleep: Mutex<usize>,
    changed: Condvar,
    /// A thread has panicked and will not come.
    broken: AtomicBool,
    /// Others need the processors: nobody waits awake.
    crowded: bool,
}

impl Barrier {
    fn new(threads: usize) -> Self {
        let processors = || std::thread::available_parallelism().map_or(1, |n| n.get());
        Self { threads, crowded: threads > 1 && threads > processors(), ..Self::default() }
    }

    fn wait(&self) {
        if self.threads == 1 {
            return;
        }
        let round = self.round.load(Ordering::Acquire);
        if self.waiting.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.waiting.store(0, Ordering::Relaxed);
            let asleep = lock(&self.asleep);
            self.round.fetch_add(1, Ordering::Release);
            if *asleep > 0 {
                self.changed.notify_all();
            }
            return;
        }
        let waits = || self.round.load(Ordering::Acquire) == round && !self.broken.load(Ordering::Acquire);
        if !self.crowded {
            (0..SPINS).take_while(|_| waits()).for_each(|_| std::hint::spin_loop());
        }
        if waits() {
            let mut asleep = lock(&self.asleep);
            *asleep += 1;
            while waits() {
                asleep = self.changed.wait(asleep).unwrap_or_else(PoisonError::into_inner);
            }
            *asleep -= 1;
        }
        assert!(!self.broken.load(Ordering::Acquire), "another thread of the run has panicked");
    }
}

/// Breaks the barrier if its thread panics, so that the others do not wait for ever.
struct Alarm<'b>(&'b Barrier);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _asleep = lock(&self.0.asleep);
            self.0.broken.store(true, Ordering::Release);
            self.0.changed.notify_all();
        }
    }
}

/// The end of the window whose first event comes at `next`.
pub fn window(plan: &Plan, tick: Time, lookahead: Time, next: Time) -> Time {
    // Posted events must not miss a change of routes.
    let changes = &plan.faults.reroutes;
    let change = changes.get(changes.partition_point(|c| c.at <= next)).map_or(Time::MAX, |c| c.at);
    ((next / tick + 1) * tick).min(next.saturating_add(lookahead)).min(change)
}

fn world<'w, 'a>(
    plan: &'a Plan,
    partition: &'w Partition,
    engines: &'w [MutexGuard<'_, Box<Engine<'a>>>],
) -> World<'w, 'a> {
    World {
        plan,
        cores: engines.iter().map(|engine| &engine.core).collect(),
        flow_controls: engines.iter().map(|engine| &engine.flow_control).collect(),
        partition,
    }
}

/// A lock without contention: a thread that panicked ends the run anyway.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared<'_> {
    /// Advances the parts `mine` until `halt`, in windows or by the wall clock.
    fn advance(
        &self,
        mine: Range<usize>,
        halt: Time,
        parity: &mut usize,
        watch: &mut dyn FnMut(u64, &[Report]) -> After,
    ) -> Reached {
        match &self.wired {
            Some(wired) if wired.pace.is_some() => self.follow(wired, mine.start, halt, watch),
            _ => self.windows(mine, halt, parity, watch),
        }
    }

    /// Advances a part until `halt` by the wall clock.
    fn follow(
        &self,
        wired: &Wired,
        me: usize,
        halt: Time,
        watch: &mut dyn FnMut(u64, &[Report]) -> After,
    ) -> Reached {
        let mut engine = lock(&self.engines[me]);
        let mut looked = Instant::now();
        wired.follow(&mut engine, halt, &mut |core, now, flows_done| {
            if me == 0 && looked.elapsed() >= NAP {
                looked = Instant::now();
                let report =
                    Report { next: now, counters: core.observed.counters, flows_done, ..Report::default() };
                if watch(WATCH, &[report]) == After::Stop {
                    wired.stop();
                }
            }
        });
        // Everything was sent that is due before the halt.
        self.barrier.wait();
        wired.settle(&mut engine, halt)
    }

    /// Advances the parts `mine` until `halt`, in step with the others. `parity` counts windows; `watch` is
    /// the first part's.
    fn windows(
        &self,
        mine: Range<usize>,
        halt: Time,
        parity: &mut usize,
        watch: &mut dyn FnMut(u64, &[Report]) -> After,
    ) -> Reached {
        let mut engines: Vec<_> = mine.clone().map(|part| lock(&self.engines[part])).collect();
        let plan = engines[0].core.plan;
        let lookahead = engines[0].core.partition.lookahead;
        // Wires hold what is sent in a window: it is short.
        let tick = if plan.end.is_none() || self.wired.is_some() { TICK } else { LONGEST };
        let mut reports = vec![Report::default(); self.engines.len()];
        let mut waited = Duration::ZERO;
        loop {
            let now = *parity % 2;
            for (me, engine) in mine.clone().zip(&mut engines) {
                if let Some(wired) = &self.wired {
                    wired.take_all(&mut engine.core);
                }
                for events in &self.mail[now][me] {
                    engine.core.receive(&mut lock(events));
                }
            }
            for (known, report) in reports.iter_mut().zip(&self.reports[now]) {
                *known = *lock(report);
            }
            if reports.iter().any(|r| r.interrupted) {
                return Reached::Interrupted;
            }
            if reports[0].turns {
                return Reached::Turn;
            }
            let next = reports.iter().map(|r| r.next).min().expect("at least one part");
            let done: usize = reports.iter().map(|r| r.flows_done).sum();
            if plan.end.is_none() && done == plan.flows.len() {
                let last = reports.iter().map(|r| r.last_done).max().expect("at least one part");
                let end = (last / TICK + 1) * TICK;
                if next >= end {
                    return Reached::Done(end);
                }
            }
            if next >= halt {
                return Reached::Halt(next);
            }
            let until = window(plan, tick, lookahead, next).min(halt);
            *parity += 1;
            let after = *parity % 2;
            for (me, engine) in mine.clone().zip(&mut engines) {
                let events = engine.advance(until);
                let mut next = engine.core.wheel.next_time().unwrap_or(Time::MAX);
                if let Some(wired) = &self.wired {
                    next = next.min(wired.send(&mut engine.core));
                }
                for (part, post) in engine.core.outbox.iter_mut().enumerate() {
                    if !post.events.is_empty() {
                        next = post.events.iter().map(|l| l.time).fold(next, Time::min);
                        // The other box is empty: its events were taken two windows ago.
                        std::mem::swap(post, &mut lock(&self.mail[after][part][me]));
                    }
                }
                let then = if me == 0 { watch(events, &reports) } else { After::Continue };
                *lock(&self.reports[after][me]) = Report {
                    next,
                    flows_done: engine.core.observed.flows_done,
                    last_done: engine.core.observed.last_done,
                    counters: engine.core.observed.counters,
                    interrupted: then == After::Stop || self.wired.as_ref().is_some_and(Wired::has_stopped),
                    turns: then == After::Turn,
                    waited: reports[me].waited + waited,
                };
            }
            if engines.len() < self.engines.len() {
                let came = Instant::now();
                self.barrier.wait();
                waited = came.elapsed();
            }
        }
    }
}

/// Runs a plan on at most `threads` threads, until `watch` returns `false`. Where the system refuses a
/// thread, it runs on one.
pub fn run(plan: &Plan, threads: usize, tap: Option<Tap<'_>>, watch: &mut Watch) -> Outcome {
    run_in_turns(plan, threads, tap, watch, |parts| Turns::new(Instant::now(), parts))
}

/// Runs a plan with a thread for each device, whose packets `wires` carries: in windows, or by a wall clock on
/// which time passes `dilate` times as slowly.
///
/// # Errors
/// The system refuses a thread, or the wires have failed.
pub fn run_wired(
    plan: &Plan,
    wires: &dyn Wires,
    dilate: Option<u64>,
    mut tap: Option<Tap<'_>>,
    watch: &mut Watch,
) -> Result<(Outcome, Lateness), String> {
    let partition = Partition::of_devices(plan);
    let pace = dilate.map(Pace::new);
    let wired = Wired::new(wires, pace.as_ref(), partition.parts);
    let mut shared = shared(plan, &partition, tap.as_ref());
    shared.wired = Some(wired);
    // However few the devices are, the system carries their frames.
    shared.barrier.crowded = true;
    let outcome =
        on_threads(plan, &partition, &shared, &mut tap, watch, |parts| Turns::new(Instant::now(), parts));
    let wired = shared.wired.as_ref().expect("it was set above");
    match (wired.failure(), outcome) {
        (Some(why), _) => Err(why),
        (None, None) => Err("the system refuses a thread for each device".into()),
        (None, Some(outcome)) => Ok((outcome, wired.lateness())),
    }
}

/// The same. `turns` makes the rule for changes of the mode, from the number of threads.
fn run_in_turns(
    plan: &Plan,
    threads: usize,
    mut tap: Option<Tap<'_>>,
    watch: &mut Watch,
    turns: fn(usize) -> Turns,
) -> Outcome {
    let partition = Partition::new(plan, threads);
    let mut shared = shared(plan, &partition, tap.as_ref());
    if partition.parts > 1 {
        shared.cpus = Cpus::new(partition.parts);
    }
    let outcome = on_threads(plan, &partition, &shared, &mut tap, watch, turns);
    // The system refuses threads; one gives the same results.
    outcome.unwrap_or_else(|| run_in_turns(plan, 1, tap, watch, turns))
}

fn shared<'a>(plan: &'a Plan, partition: &'a Partition, tap: Option<&Tap<'_>>) -> Shared<'a> {
    let parts = partition.parts;
    let mut engines: Vec<_> = (0..parts).map(|part| Box::new(Engine::new(plan, partition, part))).collect();
    if let Some(tap) = tap {
        engines.iter_mut().for_each(|engine| engine.core.begin_taps(Taps::new(plan, tap.ports)));
    }
    Shared::of(engines.into_iter())
}

impl<'a> Shared<'a> {
    pub fn of(engines: impl Iterator<Item = Box<Engine<'a>>>) -> Self {
        let engines: Vec<_> = engines.map(Mutex::new).collect();
        let parts = engines.len();
        let report = |engine: &Mutex<Box<Engine>>| {
            let next = lock(engine).core.wheel.next_time().unwrap_or(Time::MAX);
            Mutex::new(Report { next, ..Report::default() })
        };
        let reports = [engines.iter().map(report).collect(), engines.iter().map(report).collect()];
        let mailbox = || (0..parts).map(|_| (0..parts).map(|_| Mutex::default()).collect()).collect();
        Self {
            engines,
            mail: [mailbox(), mailbox()],
            reports,
            barrier: Barrier::new(parts),
            halt: Mutex::new(None),
            cpus: None,
            wired: None,
        }
    }
}

/// Runs devices in processes of their own, from this process. `None` if one has failed.
pub fn run_fleet<'a>(
    plan: &'a Plan,
    partition: &Partition,
    shared: &mut Shared<'a>,
    fleet: &Fleet<'a>,
    tap: Option<Tap<'_>>,
    watch: &mut Watch,
) -> Option<Outcome> {
    // This is the only thread.
    shared.barrier.threads = 1;
    let turns = Turns::new(Instant::now(), partition.parts);
    Run { fleet: Some(fleet), ..Run::new(plan, partition, shared, tap) }.direct(watch, turns)
}

/// Runs on a thread for each part. `None` if the system refuses one, and then the tap is still there; or if the
/// wires have failed.
fn on_threads<'a>(
    plan: &'a Plan,
    partition: &'a Partition,
    shared: &Shared<'a>,
    tap: &mut Option<Tap<'_>>,
    watch: &mut Watch,
    turns: fn(usize) -> Turns,
) -> Option<Outcome> {
    let parts = partition.parts;
    let all_began = Mutex::new(false);
    std::thread::scope(|scope| {
        let mut began = lock(&all_began);
        let others = (1..parts).map(|me| {
            let (shared, all_began) = (shared, &all_began);
            std::thread::Builder::new().spawn_scoped(scope, move || {
                if !*lock(all_began) {
                    return;
                }
                let _alarm = Alarm(&shared.barrier);
                let _kept = shared.cpus.as_ref().map(|cpus| cpus.keep_to(me));
                if let Some(wired) = &shared.wired {
                    wired.begin(me);
                }
                loop {
                    shared.barrier.wait();
                    let Some((halt, mut parity)) = *lock(&shared.halt) else { break };
                    shared.advance(me..me + 1, halt, &mut parity, &mut |_, _| After::Continue);
                    // Everyone has read this halt before there is another one.
                    shared.barrier.wait();
                }
            })
        });
        others.collect::<Result<Vec<_>, _>>().ok()?;
        *began = true;
        drop(began);
        let _alarm = Alarm(&shared.barrier);
        if let Some(wired) = &shared.wired {
            wired.begin(0);
        }
        Run::new(plan, partition, shared, tap.take()).direct(watch, turns(parts))
    })
}

/// The work of the first thread besides its part: everything that concerns all parts.
struct Run<'s, 'a, 't> {
    plan: &'a Plan,
    partition: &'s Partition,
    shared: &'s Shared<'a>,
    /// Advances the parts, in place of threads, if each part is a process.
    fleet: Option<&'s Fleet<'a>>,
    series: Series,
    next_sample: Time,
    next_look: Time,
    /// The progress at the last check (data packet-hops, or after a deadlock that of flows), and since when.
    moved: (u64, Time),
    oracle: deadlock::Oracle,
    deadlock: Option<Deadlock>,
    livelock: livelock::Oracle,
    /// The crossings at taps, and when they are handed on next.
    tap: Option<Handover<'t>>,
    next_tap: Time,
}

impl<'s, 'a, 't> Run<'s, 'a, 't> {
    fn new(plan: &'a Plan, partition: &'s Partition, shared: &'s Shared<'a>, tap: Option<Tap<'t>>) -> Self {
        Self {
            plan,
            partition,
            shared,
            fleet: None,
            series: Series::new(plan),
            next_sample: plan.measure.interval.unwrap_or(Time::MAX),
            next_look: LOOK,
            moved: (0, 0),
            oracle: deadlock::Oracle::default(),
            deadlock: None,
            livelock: livelock::Oracle::new(plan),
            next_tap: if tap.is_some() { tap::INTERVAL } else { Time::MAX },
            tap: tap.map(|tap| Handover::new(tap.sink)),
        }
    }

    /// From one halt to the next, to the end.
    fn direct(mut self, watch: &mut Watch, mut turns: Turns) -> Option<Outcome> {
        let end = self.plan.end.unwrap_or(Time::MAX);
        let mut parity = 0;
        let mut quiet = 0;
        let parts = self.partition.parts;
        let mut kept = None;
        let wired = self.shared.wired.as_ref();
        let pace = wired.map_or_else(|| self.fleet.and_then(|fleet| fleet.pace), |wired| wired.pace);
        let (live, paced) = (wired.is_some() || self.fleet.is_some(), pace.is_some());
        let patience = if live { WATCH_WIRES } else { WATCH };
        let mut changes =
            self.plan.faults.reroutes.iter().map(|change| change.at).filter(|_| paced).peekable();
        let (stop, at) = loop {
            // By the wall clock no packet may be on a wire when routes change.
            let change = changes.peek().copied().unwrap_or(Time::MAX);
            let halt = self.next_sample.min(self.next_look).min(self.next_tap).min(end).min(change);
            changes.next_if(|&at| at == halt);
            let together = turns.together;
            if !together {
                kept = None;
            } else {
                kept = kept.or_else(|| self.shared.cpus.as_ref().map(|cpus| cpus.keep_to(0)));
                *lock(&self.shared.halt) = Some((halt, parity));
                self.shared.barrier.wait();
            }
            let deadlocked = self.deadlock.is_some();
            let mine = if together { 0..1 } else { 0..parts };
            let mut watching = |events: u64, reports: &[Report]| {
                quiet += 1 + events;
                if quiet >= patience {
                    quiet = 0;
                    let mut counters = Counters::default();
                    reports.iter().for_each(|r| counters.add(&r.counters));
                    let now = reports.iter().map(|r| r.next).min().unwrap_or(0);
                    let flows_done = reports.iter().map(|r| r.flows_done).sum();
                    if !watch(&Progress { now, counters, flows_done, deadlocked }) {
                        return After::Stop;
                    }
                }
                if parts == 1 || live {
                    return After::Continue;
                }
                let events = reports.iter().map(|r| r.counters.events).sum();
                let waited = reports.iter().map(|r| r.waited).sum();
                match turns.change(Instant::now(), events, waited) {
                    true => After::Turn,
                    false => After::Continue,
                }
            };
            let reached = match self.fleet {
                Some(fleet) => fleet.advance(self.shared, halt, &mut watching),
                None => self.shared.advance(mine, halt, &mut parity, &mut watching),
            };
            if together {
                self.shared.barrier.wait();
            }
            // All threads have read it.
            lock(&self.shared.reports[parity % 2][0]).turns = false;
            // Samples of an idle network are work, too.
            quiet += HALT;
            if quiet >= patience {
                quiet = 0;
                if !watch(&self.progress()) {
                    break (Stop::Interrupted, self.latest());
                }
            }
            match reached {
                // By the wall clock some devices may have passed it.
                Reached::Done(at) => break (Stop::AllDone, if paced { at.max(self.latest()) } else { at }),
                Reached::Interrupted => break (Stop::Interrupted, self.latest()),
                Reached::Turn => {}
                Reached::Halt(_) if halt == end && end < Time::MAX => {
                    let done = self.all(|world| world.flows_done()) == self.plan.flows.len();
                    break (if done { Stop::AllDone } else { Stop::EndTime }, end);
                }
                // Nothing will happen any more.
                Reached::Halt(Time::MAX) if end == Time::MAX => break (Stop::Starved, self.latest()),
                Reached::Halt(mut next) => {
                    if paced {
                        next = self.next_event();
                        if next == Time::MAX && end == Time::MAX {
                            break (Stop::Starved, self.latest());
                        }
                        next = next.max(halt);
                    }
                    if halt == self.next_tap {
                        self.flush(halt);
                        self.next_tap =
                            (next / tap::INTERVAL).saturating_add(1).saturating_mul(tap::INTERVAL);
                    }
                    if let Some(stop) = self.observe(halt, next) {
                        break (stop, halt);
                    }
                }
            }
        };
        *lock(&self.shared.halt) = None;
        self.shared.barrier.wait();
        drop(kept);
        let failed = wired.and_then(Wired::failure).or_else(|| self.fleet.and_then(Fleet::failure));
        if failed.is_some() {
            return None;
        }
        // Events at the end itself have not happened, unless that is the time of the last event.
        self.flush(if matches!(stop, Stop::AllDone | Stop::EndTime) { at } else { at + 1 });
        Some(self.finish(stop, at))
    }

    fn next_event(&self) -> Time {
        let next = |world: &World| world.cores.iter().filter_map(|core| core.wheel.next_time()).min();
        self.all(|world| next(world)).unwrap_or(Time::MAX)
    }

    /// Hands on the crossings before `until`.
    fn flush(&mut self, until: Time) {
        let Some(tap) = &mut self.tap else { return };
        for engine in &self.shared.engines {
            tap.take(&mut lock(engine).core.taps.seen);
        }
        tap.flush(until);
    }

    fn all<T>(&self, see: impl FnOnce(&World<'_, 'a>) -> T) -> T {
        let guards: Vec<_> = self.shared.engines.iter().map(lock).collect();
        see(&world(self.plan, self.partition, &guards))
    }

    fn progress(&self) -> Progress {
        self.all(|world| {
            let mut counters = Counters::default();
            world.cores.iter().for_each(|core| counters.add(&core.observed.counters));
            let now = world.cores.iter().map(|core| core.now).max().unwrap_or(0);
            let deadlocked = self.deadlock.is_some();
            Progress { now, counters, flows_done: world.flows_done(), deadlocked }
        })
    }

    /// The time of the last event, or of the last sample.
    fn latest(&self) -> Time {
        let event = self.all(|world| world.cores.iter().map(|core| core.now).max().unwrap_or(0));
        event.max(self.series.last_at)
    }

    /// Samples and oracles that are due at `at`, before the next event at `next`. Returns why the run ends
    /// here, if nothing will ever move again or no flow will ever progress.
    fn observe(&mut self, at: Time, next: Time) -> Option<Stop> {
        let guards: Vec<_> = self.shared.engines.iter().map(lock).collect();
        let world = world(self.plan, self.partition, &guards);
        if at == self.next_sample {
            self.series.sample(&world, at);
            self.next_sample += self.plan.measure.interval.unwrap_or(Time::MAX);
        }
        if at < self.next_look {
            return None;
        }
        // Until the next event there is nothing new to see.
        self.next_look = (next / LOOK).saturating_add(1).saturating_mul(LOOK);
        if self.deadlock.is_none() {
            self.deadlock = self.oracle.look(&world, at);
        }
        self.oracle.remember(&world);
        let (progress, pending): (_, fn(&Event) -> bool) = match self.deadlock {
            None => (world.data_hops(), |event| !is_timer(event)),
            Some(_) => (world.progress(), is_news),
        };
        if progress != self.moved.0 || at < self.plan.faults.losses_end() {
            self.moved = (progress, at);
        } else if self.plan.end.is_none()
            && at - self.moved.1
                > QUIET + 4 * self.plan.transport.rto + self.plan.flow_control.traits().patience
            && !world.cores.iter().any(|core| core.wheel.pending().any(pending))
        {
            return Some(Stop::Starved);
        }
        self.livelock.look(&world, at);
        if self.plan.end.is_some() || !self.livelock.found {
            return None;
        }
        // Senders that retransmit after a deadlock are no livelock: the rule above ends the run, except where `rto` is
        // the longest that backoff may ever reach.
        match self.deadlock {
            None => Some(Stop::Livelock),
            Some(_) => self.plan.transport.kind.traits().backs_off.then_some(Stop::Starved),
        }
    }

    fn finish(mut self, stop: Stop, at: Time) -> Outcome {
        let mut guards: Vec<_> = self.shared.engines.iter().map(lock).collect();
        let plan = self.plan;
        let world = world(plan, self.partition, &guards);
        if plan.measure.interval.is_some() {
            self.series.sample(&world, at);
        }
        // The last look examines every account, however short the run was.
        self.oracle.remember(&world);
        if self.deadlock.is_none() {
            self.deadlock = self.oracle.look(&world, at);
        }
        let waiting = self.oracle.waiting(&world, at);
        let livelocked = self.livelock.found && self.deadlock.is_none();
        let livelock = livelocked.then(|| self.livelock.livelock(&world));
        let memory = if stop.cut_short() { footprint(&world, &self.series.samples) } else { Vec::new() };
        let ports = samples::port_outcomes(&world);
        let roots = samples::roots(&world);
        let routes = samples::routes(&world);
        let mut records = samples::of_senders(&world, at);
        let buffer_peaks = (0..plan.topology.nodes.len() as u32).map(|n| world.memory(n).peak).collect();
        let accounts = (0..plan.accounts.len() as u32).map(|account| world.account(account));
        let accounts =
            accounts.map(|a| AccountPeak { main: a.main_peak, headroom: a.headroom_peak.into() }).collect();
        drop(world);
        let mut counters = Counters::default();
        let mut flows = Vec::new();
        let mut pauses = Vec::new();
        let mut drops = std::collections::BTreeMap::new();
        let mut blocking: Option<Blocking> = None;
        let mut paths = Vec::new();
        for engine in &mut guards {
            records.add(engine.flow_control.records());
            records.add(engine.core.links.records());
            let core = &mut engine.core;
            core.tell_flows();
            paths.extend(core.paths(at));
            match (&mut blocking, core.blame(at)) {
                (Some(sum), Some(part)) => sum.add(part),
                (none, part) => *none = part,
            }
            let observed = &mut core.observed;
            let data = core.packets.slots().iter().filter(|p| p.kind == Kind::Data);
            observed.counters.in_flight = data.count() as u64;
            counters.add(&observed.counters);
            if flows.is_empty() {
                flows = std::mem::take(&mut observed.flows);
            } else {
                flows.iter_mut().zip(&observed.flows).for_each(|(sum, seen)| sum.add(seen));
            }
            pauses.append(&mut observed.pauses);
            // A place and reason belongs to one device, so that no two are alike.
            drops.append(&mut observed.drops);
        }
        if self.fleet.is_some_and(Fleet::is_incomplete) {
            // Nobody knows which packets a dead device had, nor whether it had just received one.
            counters.in_flight = counters.sent.saturating_sub(counters.delivered + counters.dropped);
            counters.sent = counters.delivered + counters.dropped + counters.in_flight;
        }
        let known = counters.delivered + counters.dropped + counters.in_flight;
        assert_eq!(counters.sent, known, "packets are conserved");
        pauses.sort_by_key(|p| (p.from, p.port, p.lane, p.queue));
        records.sort();
        if let Some(deadlock) = &mut self.deadlock {
            deadlock.ended = deadlock::ended(deadlock, &pauses);
        }
        let watched = plan.measure.explain.then(|| critical::paths(plan, paths));
        let (paths, ahead) = watched.map_or((None, Vec::new()), |(paths, ahead)| (Some(paths), ahead));
        Outcome {
            end: at,
            stop,
            flows,
            pauses,
            series: self.series.samples,
            ports,
            buffer_peaks,
            accounts,
            drops: drops.into_values().collect(),
            deadlock: self.deadlock,
            waiting,
            livelock,
            memory,
            blocking,
            paths,
            ahead,
            routes,
            roots,
            records,
            counters,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xoff_schemes::flow_control::registry::FlowControlKeys;

    /// A run that changes its mode every three windows, or after each, has the outcome of one thread: under
    /// every scheme that runs on a leaf-spine, with losses, a failure, samples and the blocking oracle, and
    /// without.
    #[test]
    fn turns_change_no_outcome() {
        let extras = "[measure]\ninterval=\"7us\"\nblocking=true\n[[loss]]\nlink=\"S0.0-S1.0\"\nrate=0.01\n\
            [[failure]]\nlink=\"S0.1-S1.1\"\nat=\"20us\"\nuntil=\"40us\"\n";
        let mut runs = 0;
        for scheme in FlowControlKeys::names() {
            for (i, more) in [extras, ""].into_iter().enumerate() {
                let text = format!(
                    "[topology]\nkind=\"leaf-spine\"\nleaves=4\nspines=2\nhosts_per_leaf=3\n\
                    host_link={{rate=\"100Gbps\",delay=\"1us\"}}\nfabric_link={{rate=\"100Gbps\",delay=\"600ns\"}}\n\
                    [flow_control]\nscheme=\"{scheme}\"\n[run]\nduration=\"60us\"\n\
                    [[traffic]]\nkind=\"incast\"\nfan_in=9\nsize=\"60kB\"\n\
                    [[traffic]]\nkind=\"permutation\"\nsize=\"100kB\"\n{more}"
                );
                let read = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
                let load = |text: &str| xoff_plan::load("test.toml", text.as_bytes(), &[], &read);
                // Some schemes need a transport that requests packets.
                let pulls = || load(&format!("{text}[transport]\nkind=\"ndp\"\n"));
                let Ok(loaded) = load(&text).or_else(|_| pulls()) else { continue };
                let plan = loaded.plan;
                let alone = run(&plan, 1, None, &mut |_| true);
                assert!(alone.counters.packet_hops > 1_000, "{scheme}");
                let turns: [fn(usize) -> Turns; 2] = [|n| Turns::every(n, 3), |n| Turns::every(n, 1)];
                for threads in [2, 5] {
                    let outcome = run_in_turns(&plan, threads, None, &mut |_| true, turns[i]);
                    assert!(outcome == alone, "{scheme} on {threads} threads");
                    runs += 1;
                }
            }
        }
        assert!(runs >= 30, "{runs} runs");
    }
}
