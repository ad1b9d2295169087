//! A process for each device.
//!
//! Each process runs the [`Engine`] of its device. The device knows its frames, its clock, and the orders of a
//! coordinator: how far it may go. In lockstep, an order is a window, as in [`crate::parallel::executor`]. By the
//! wall clock an order names the next halt. The device follows the clock until then, and asks nobody.
//!
//! ```text
//!   coordinator   order │           │ look at all devices │ order │
//!   device 0        [ take frames, process events, send ] │ waits │ [ …
//!   device 1        [ take frames, process events, send ] │ waits │ [ …
//! ```
//!
//! *What the coordinator sees.* Oracles and samples read nearly everything of a device: queues, packets, accounts,
//! the state of its scheme. The memory of each device is therefore shared with the coordinator, at the same
//! address, and the coordinator reads it as a debugger does: only while the device waits for an order. So
//! oracles, samples and results need no second form, and a scheme that works in the simulator works here. No
//! device sees the memory of another, nor that of the coordinator after it has begun; but all see one [`Pace`]:
//! when the clock began, how many flows are complete, and whether the run ends.
//!
//! *Memory.* For this the devices begin as forks of the coordinator, after the plan is made: plan, code and
//! constants then lie at the same addresses. The device's own memory comes from an allocator that takes it from
//! the shared region. The coordinator never drops an engine of a device.
//!
//! *A device that dies* leaves memory that may be in the middle of a change. The coordinator reads from it only
//! numbers with a fixed place: its counters and its flows. A new engine takes its place among those that are read. The others go on as after a failure of its
//! links ([`Carrier`]). In lockstep these fail at the end of the window in which the coordinator sees the death: what
//! the device sent in that window would have arrived later, and is lost on the failed links.

use crate::engine::Engine;
use crate::outcome::Outcome;
use crate::outcome::tap::Tap;
use crate::parallel::carrier::Carrier;
use crate::parallel::executor::{self, After, NAP, Reached, Report, Shared, TICK, WATCH, lock};
use crate::parallel::follow::reached;
use crate::parallel::pace::{Lateness, Pace};
use crate::parallel::partition::Partition;
use crate::parallel::wires::{Wired, Wires};
use crate::{Watch, tap::Taps};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use xoff_kernel::time::Time;
use xoff_net::topology::{NodeId, PortId};
use xoff_plan::plan::Plan;

/// A command of the coordinator to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Take all frames, then process the events before `until`.
    Window { until: Time },
    /// Take all frames.
    Take,
    /// Take the frames that are there, since another device has failed.
    TakeSome,
    /// Follow the clock until this halt.
    Follow { halt: Time },
    /// All devices have reached the halt: take all frames.
    Settle { halt: Time },
}

impl Order {
    /// The order as numbers.
    pub fn emit(self) -> [u64; 2] {
        match self {
            Self::Window { until } => [0, until],
            Self::Take => [1, 0],
            Self::TakeSome => [2, 0],
            Self::Follow { halt } => [3, halt],
            Self::Settle { halt } => [4, halt],
        }
    }

    /// Reads an order that [`Order::emit`] has written.
    pub fn parse([kind, time]: [u64; 2]) -> Option<Self> {
        Some(match kind {
            0 => Self::Window { until: time },
            1 => Self::Take,
            2 => Self::TakeSome,
            3 => Self::Follow { halt: time },
            4 => Self::Settle { halt: time },
            _ => return None,
        })
    }
}

/// The answer of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It has obeyed.
    Obeyed,
    /// It cannot go on. The text says why.
    Failed(String),
    /// Its process has ended. The text says how.
    Died(String),
}

/// The processes of the devices.
pub trait Crew {
    /// Sends an order to the process of a device. If that has ended, the answer says so.
    fn order(&self, node: NodeId, order: Order);
    /// Ends the process of a device.
    fn end(&self, node: NodeId);
    /// Waits until `until` for an answer.
    fn answer(&self, until: Instant) -> Option<(NodeId, Answer)>;
}

/// A plan whose devices run in processes of their own.
pub struct Apart<'a> {
    plan: &'a Plan,
    partition: Partition,
    taps: Vec<PortId>,
}

/// A device in its own process.
pub struct Station<'a> {
    engine: Box<Engine<'a>>,
    wired: Wired<'a>,
    carrier: &'a Carrier,
    /// When its next event is due, or the first of those that it has sent.
    next: Time,
}

impl Station<'_> {
    /// Carries out an order.
    ///
    /// # Errors
    /// The wires have failed.
    pub fn obey(&mut self, order: Order) -> Result<(), String> {
        let (engine, wired, carrier) = (&mut *self.engine, &self.wired, self.carrier);
        carrier.look(&mut engine.core);
        match order {
            Order::Window { until } => {
                wired.take_all(&mut engine.core);
                engine.advance(until);
            }
            Order::Take => wired.take_all(&mut engine.core),
            Order::TakeSome => {
                wired.take(&mut engine.core, 0, Instant::now());
            }
            Order::Follow { halt } => wired.follow(engine, halt, &mut |core, _, _| carrier.look(core)),
            Order::Settle { halt } => {
                wired.settle(engine, halt);
            }
        }
        self.next = wired.send(&mut engine.core).min(engine.core.wheel.next_time().unwrap_or(Time::MAX));
        wired.failure().map_or(Ok(()), Err)
    }
}

/// A device that died in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    pub device: NodeId,
    /// The simulated time at which its links failed.
    pub at: Time,
    /// The text says how its process ended.
    pub how: String,
}

impl<'a> Apart<'a> {
    /// Of a plan, with these tapped ports.
    pub fn new(plan: &'a Plan, taps: &[PortId]) -> Self {
        let mut partition = Partition::of_devices(plan);
        partition.mortal = true;
        Self { plan, partition, taps: taps.to_vec() }
    }

    /// Makes a device in its own process.
    pub fn station(
        &'a self,
        node: NodeId,
        wires: &'a dyn Wires,
        pace: Option<&'a Pace>,
        carrier: &'a Carrier,
    ) -> Station<'a> {
        let mut engine = Box::new(Engine::new(self.plan, &self.partition, node as usize));
        if !self.taps.is_empty() {
            engine.core.begin_taps(Taps::new(self.plan, &self.taps));
        }
        let next = engine.core.wheel.next_time().unwrap_or(Time::MAX);
        Station { engine, wired: Wired::new(wires, pace, self.partition.parts), carrier, next }
    }

    /// Directs the devices from the coordinator, to the end. Returns the outcome, how late devices were, and which
    /// have died.
    ///
    /// # Errors
    /// A device has failed.
    ///
    /// # Safety
    /// The stations are those of all devices, in order, in memory that this process and theirs share at the same
    /// addresses. They change only between an order and its answer.
    pub unsafe fn direct(
        &'a self,
        stations: &[*mut Station<'a>],
        crew: &'a dyn Crew,
        (pace, carrier): (Option<&'a Pace>, &'a Carrier),
        tap: Option<Tap<'_>>,
        watch: &mut Watch,
    ) -> Result<(Outcome, Lateness, Vec<Death>), String> {
        // SAFETY: the caller's promise. An engine is not dropped here.
        let engine = |station: &*mut Station<'a>| unsafe { Box::from_raw(&raw mut *(**station).engine) };
        let mut shared = Shared::of(stations.iter().map(engine));
        let fleet = Fleet {
            partition: &self.partition,
            crew,
            pace,
            carrier,
            stations: stations.to_vec(),
            state: Mutex::default(),
        };
        let outcome = executor::run_fleet(self.plan, &self.partition, &mut shared, &fleet, tap, watch);
        fleet.fail_links();
        shared.engines.into_iter().for_each(std::mem::forget);
        if let Some(why) = fleet.failure() {
            return Err(why);
        }
        let mut lateness = Lateness::default();
        fleet.living().for_each(|(_, station)| lateness.add(&station.wired.lateness()));
        let outcome = outcome.expect("no device has failed");
        Ok((outcome, lateness, lock(&fleet.state).deaths.clone()))
    }
}

/// What has happened to the devices.
#[derive(Default)]
struct State {
    deaths: Vec<Death>,
    /// Devices that cannot go on, and take no more orders.
    failed: Vec<NodeId>,
    failure: Option<String>,
    /// In lockstep: when the last window ended.
    now: Time,
}

/// After an interruption a process that does not answer for so long is ended.
const ANSWER: Duration = Duration::from_secs(5);

/// The devices, as the coordinator sees them.
pub struct Fleet<'a> {
    partition: &'a Partition,
    crew: &'a dyn Crew,
    pub pace: Option<&'a Pace>,
    carrier: &'a Carrier,
    stations: Vec<*mut Station<'a>>,
    state: Mutex<State>,
}

impl<'a> Fleet<'a> {
    /// Why the run has failed.
    pub fn failure(&self) -> Option<String> {
        lock(&self.state).failure.clone()
    }

    fn is_dead(&self, node: usize) -> bool {
        lock(&self.state).deaths.iter().any(|death| death.device as usize == node)
    }

    /// Whether a device has failed.
    fn is_over(&self) -> bool {
        lock(&self.state).failure.is_some()
    }

    /// The devices that are alive. Only between an answer and the next order.
    fn living(&self) -> impl Iterator<Item = (usize, &Station<'a>)> {
        let living = self.stations.iter().enumerate().filter(|(node, _)| !self.is_dead(*node));
        // SAFETY: the promise of `Apart::direct`.
        living.map(|(node, &station)| (node, unsafe { &*station }))
    }

    /// Tells each device how many frames each other one has sent to it.
    fn tell_arrivals(&self) {
        for (to, station) in self.living() {
            for (from, sender) in self.living().filter(|(from, _)| *from != to) {
                station.wired.expect(from, to, sender.wired.sent(from, to));
            }
        }
    }

    /// Gives an order to all devices that can go on, and waits for their answers. Calls `idle` now and then, which
    /// returns whether the run goes on.
    fn order(&self, shared: &Shared<'a>, order: Order, idle: &mut dyn FnMut() -> bool) {
        let failed = lock(&self.state).failed.clone();
        let living = self.living().map(|(node, _)| node as NodeId);
        let mut pending: Vec<NodeId> = living.filter(|node| !failed.contains(node)).collect();
        for &node in &pending {
            self.crew.order(node, order);
        }
        let mut interrupted: Option<Instant> = None;
        while !pending.is_empty() {
            let Some((node, answer)) = self.crew.answer(Instant::now() + NAP) else {
                if !idle() {
                    let since = *interrupted.get_or_insert_with(Instant::now);
                    if since.elapsed() > ANSWER {
                        pending.iter().for_each(|&node| self.crew.end(node));
                    }
                }
                continue;
            };
            pending.retain(|&other| other != node);
            match answer {
                Answer::Obeyed => {}
                Answer::Failed(why) => {
                    let mut state = lock(&self.state);
                    state.failed.push(node);
                    state.failure.get_or_insert(why);
                    self.pace.inspect(|pace| pace.stop());
                }
                Answer::Died(_) if interrupted.is_some_and(|since| since.elapsed() > ANSWER) => {
                    self.bury(shared, node, "did not answer for 5 s after the interruption".into());
                }
                Answer::Died(how) => self.bury(shared, node, how),
            }
        }
    }

    /// A device has died: an engine without a past takes its place, with its counters.
    fn bury(&self, shared: &Shared<'a>, device: NodeId, how: String) {
        let mut place = lock(&shared.engines[device as usize]);
        let plan = place.core.plan;
        let mut new = Box::new(Engine::new(plan, self.partition, device as usize));
        new.core.observed.inherit(&place.core.observed);
        new.core.now = place.core.now;
        while new.core.wheel.pop_before(Time::MAX).is_some() {}
        std::mem::forget(std::mem::replace(&mut *place, new));
        let at = self.pace.map_or(Time::MAX, Pace::now);
        self.carrier.lose(device, at);
        lock(&self.state).deaths.push(Death { device, at, how });
    }

    /// In lockstep: the links of devices that have died since the last window fail at its end. Returns whether there
    /// are any.
    fn fail_links(&self) -> bool {
        let mut state = lock(&self.state);
        let at = state.now;
        let mut any = false;
        for death in state.deaths.iter_mut().filter(|death| death.at == Time::MAX) {
            death.at = at;
            self.carrier.lose(death.device, at);
            any = true;
        }
        any
    }

    /// Whether some device has died: its packets are lost with it.
    pub fn is_incomplete(&self) -> bool {
        !lock(&self.state).deaths.is_empty()
    }

    /// Devices take everything that was sent, so that nothing is on a wire.
    fn take(&self, shared: &Shared<'a>) {
        self.tell_arrivals();
        let order = if self.is_over() { Order::TakeSome } else { Order::Take };
        self.order(shared, order, &mut || true);
    }

    /// Advances all devices until `halt`.
    pub fn advance(
        &self,
        shared: &Shared<'a>,
        halt: Time,
        watch: &mut dyn FnMut(u64, &[Report]) -> After,
    ) -> Reached {
        let reached = match self.pace {
            Some(pace) => self.follow(shared, pace, halt, watch),
            None => self.windows(shared, halt, watch),
        };
        if self.is_over() { Reached::Interrupted } else { reached }
    }

    /// The same by the wall clock.
    fn follow(
        &self,
        shared: &Shared<'a>,
        pace: &Pace,
        halt: Time,
        watch: &mut dyn FnMut(u64, &[Report]) -> After,
    ) -> Reached {
        let plan = lock(&shared.engines[0]).core.plan;
        let mut report = Report::default();
        self.living().for_each(|(_, station)| report.counters.add(&station.engine.core.observed.counters));
        let mut idle = || {
            report.next = pace.now().min(halt);
            report.flows_done = pace.flows_done();
            if watch(WATCH, &[report]) == After::Stop {
                pace.stop();
            }
            !pace.has_stopped()
        };
        self.order(shared, Order::Follow { halt }, &mut idle);
        if self.is_over() {
            self.take(shared);
        } else {
            self.tell_arrivals();
            self.order(shared, Order::Settle { halt }, &mut idle);
        }
        reached(pace.has_stopped(), pace.end(plan), halt)
    }

    /// The same in lockstep: as [`Shared`] does it with threads.
    fn windows(
        &self,
        shared: &Shared<'a>,
        halt: Time,
        watch: &mut dyn FnMut(u64, &[Report]) -> After,
    ) -> Reached {
        let plan = lock(&shared.engines[0]).core.plan;
        let mut before: u64 = 0;
        loop {
            if self.fail_links() {
                self.take(shared);
                continue;
            }
            let report = |node: usize| {
                let seen = &lock(&shared.engines[node]).core.observed;
                let (flows_done, last_done, counters) = (seen.flows_done, seen.last_done, seen.counters);
                Report { next: Time::MAX, flows_done, last_done, counters, ..Report::default() }
            };
            let mut reports: Vec<Report> = (0..shared.engines.len()).map(report).collect();
            self.living().for_each(|(node, station)| reports[node].next = station.next);
            let events = reports.iter().map(|r| r.counters.events).sum();
            let new = if before == 0 { 0 } else { events - before };
            before = events;
            if self.is_over() || new > 0 && watch(new, &reports) == After::Stop {
                self.take(shared);
                return Reached::Interrupted;
            }
            let next = reports.iter().map(|r| r.next).min().unwrap_or(Time::MAX);
            let done: usize = reports.iter().map(|r| r.flows_done).sum();
            if plan.end.is_none() && done == plan.flows.len() {
                let last = reports.iter().map(|r| r.last_done).max().unwrap_or(0);
                let end = (last / TICK + 1) * TICK;
                if next >= end {
                    self.take(shared);
                    return Reached::Done(end);
                }
            }
            if next >= halt {
                self.take(shared);
                return Reached::Halt(next);
            }
            let until = executor::window(plan, TICK, self.partition.lookahead, next).min(halt);
            self.tell_arrivals();
            lock(&self.state).now = until;
            let mut goes_on = true;
            self.order(shared, Order::Window { until }, &mut || {
                goes_on = goes_on && watch(WATCH, &reports) == After::Continue;
                goes_on
            });
            if !goes_on {
                self.take(shared);
                return Reached::Interrupted;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_survive_as_numbers() {
        for order in [
            Order::Window { until: 2 },
            Order::Take,
            Order::TakeSome,
            Order::Follow { halt: 4 },
            Order::Settle { halt: 6 },
        ] {
            assert_eq!(Order::parse(order.emit()), Some(order));
        }
        assert_eq!(Order::parse([5, 0]), None);
    }
}
