//! Optimistic sending (§IV-B.3): small flows use idle links at once, by a random path, and are sent again
//! when they are granted.
//!
//! What the paper leaves open, and here is taken:
//! - *Which* (`zeropod.optimistic-eligibility`). Flows of fewer cells than the limit, each cell once (or as
//!   often as `optimistic_rounds` says), and only inside a pod: the paper's analysis has no other, and a core
//!   would have to keep both copies.
//! - *When*. From the time at which the RTS that reports the flow has left, until the flow has a grant.
//!   During the cell the host's link must carry no scheduled cell, and it must not meet its receiver's SCHD.
//! - *Who loses* (`zeropod.optimistic-collision`). What is scheduled, data or control, always wins: an
//!   unscheduled cell that finds it on a link is dropped, and one that it runs into is cut. What was cut goes
//!   on, takes the links behind it for as long as it lasts, and is lost. Of two unscheduled ones the later is
//!   dropped, or, as in the paper's model, both are lost and go on as long as they are.
//! - *The model* of equations 1 to 7 (`zeropod.model-self-traffic`): a cell begins when it comes, whatever
//!   else its host sends.
//! - *Duplicates* (`zeropod.optimistic-duplicates`). A flow is complete when each byte has come in some copy.

use crate::{World, kind};
use std::collections::VecDeque;
use xoff_kernel::{random::Stream, slots::Slots, time::Time, wheel::Event};
use xoff_outcome::DropReason;
use xoff_plan::plan::Plan;
use xoff_schemes::scheduling::zeropod::Link;
use xoff_schemes::scheduling::zeropod::params::{Collision, ZeropodParams};
use xoff_schemes::scheduling::zeropod::report::{COLLISION, UnscheduledTally};

/// A cell in flight.
#[derive(Clone, Copy)]
pub struct Flying {
    pub flow: u32,
    /// Which cell of the flow.
    pub index: u32,
    agg: u16,
    /// Links that it has crossed.
    links: u8,
    /// How long it is, in time.
    length: Time,
    pub intact: bool,
}

struct Source {
    /// Flow and cell of it, to be sent from a time on.
    waiting: VecDeque<(Time, u32, u32)>,
    /// An event will come that looks at them.
    looks: bool,
    /// Its link is taken by an unscheduled cell until then.
    busy: Time,
    paths: Stream,
}

/// Whom an unscheduled cell on a link finds there.
#[derive(Clone, Copy, Default)]
struct Occupied {
    until: Time,
    cell: u32,
}

pub struct Unscheduled {
    /// Flows of fewer cells than this are sent optimistically.
    limit: u64,
    /// By flow: whether it is.
    tries: Vec<bool>,
    sources: Vec<Source>,
    cells: Slots<Flying>,
    /// By pod and link.
    links: Vec<Occupied>,
    /// Scheduled parts of items in flight, if their arrival time matters: item, from, to.
    pub parts: Slots<(u32, u64, u64)>,
    pub tally: UnscheduledTally,
}

impl Unscheduled {
    pub fn new(plan: &Plan, zeropod: &ZeropodParams, hosts: usize, links: usize) -> Self {
        let source = |host: u64| Source {
            waiting: VecDeque::new(),
            looks: false,
            busy: 0,
            paths: Stream::new(plan.seed, "zeropod unscheduled", host),
        };
        let on = zeropod.optimistic > 0;
        Self {
            limit: u64::from(zeropod.optimistic),
            tries: vec![false; plan.flows.len()],
            sources: if on { (0..hosts as u64).map(source).collect() } else { Vec::new() },
            cells: Slots::default(),
            links: if on { vec![Occupied::default(); links] } else { Vec::new() },
            parts: Slots::default(),
            tally: UnscheduledTally::default(),
        }
    }

    /// Whether a flow is also sent unscheduled.
    pub fn tries(&self, item: u32) -> bool {
        self.tries.get(item as usize).copied().unwrap_or(false)
    }

    /// Cells in flight.
    pub fn left(&self) -> u64 {
        self.cells.used() as u64
    }
}

impl World<'_> {
    /// Something that is scheduled arrives, from which more follows.
    pub(crate) fn arrive(&mut self, element: u32) {
        let (item, from, to) = self.unscheduled.parts.take(element);
        self.arrived(item, from, to);
    }

    /// Bytes of an item are there.
    fn arrived(&mut self, item: u32, from: u64, to: u64) {
        if item as usize >= self.plan.flows.len() {
            return self.acknowledged(item);
        }
        let new = self.receivers.receive(item, (from, to), self.now, &mut self.wheel);
        self.acknowledge(item, from, new);
    }

    /// A flow has begun: it is sent unscheduled if it is small.
    pub(crate) fn try_unscheduled(&mut self, flow: u32) {
        let f = &self.plan.flows[flow as usize];
        let cells = f.size.div_ceil(u64::from(self.zeropod.scheduler.payload));
        let (from, to) = (f.src as usize / self.per_pod, f.dst as usize / self.per_pod);
        if cells >= self.unscheduled.limit || from != to {
            return;
        }
        self.unscheduled.tries[flow as usize] = true;
        let at = if self.zeropod.scheduled { self.next_rts(f.src as usize) } else { self.now };
        let source = &mut self.unscheduled.sources[f.src as usize];
        let cells = 0..cells as u32;
        for _ in 0..self.zeropod.optimistic_rounds {
            source.waiting.extend(cells.clone().map(|cell| (at, flow, cell)));
        }
        if !std::mem::replace(&mut source.looks, true) {
            self.wheel.push(Event::new(at.max(source.busy), kind::SEND, f.src, 0));
        }
    }

    /// When the next RTS of a host has left.
    fn next_rts(&self, host: usize) -> Time {
        let (pod, host) = (host / self.per_pod, (host % self.per_pod) as u16);
        let clock = self.pods[pod].clock;
        let position = u32::from(host % self.zeropod.pod.hosts_per_rack);
        let mut epoch = self.now.saturating_sub(clock) / self.epoch;
        loop {
            let to = self.laid(pod, Link::HostUp { host }, epoch).map(|laid| laid.to);
            let at = clock + epoch * self.epoch + self.zeropod.slots.rts_at(position, to);
            if at >= self.now {
                return at + self.zeropod.slots.control;
            }
            epoch += 1;
        }
    }

    pub(crate) fn send_unscheduled(&mut self, host: u32) {
        let slots = self.zeropod.slots;
        let source = &mut self.unscheduled.sources[host as usize];
        source.looks = false;
        // Without the cells that have been granted in the meantime.
        let payload = u64::from(self.zeropod.scheduler.payload);
        while let Some(&(_, flow, _)) = source.waiting.front() {
            if self.items.list[flow as usize].sent == 0 {
                break;
            }
            source.waiting.pop_front();
        }
        let Some(&(from, flow, index)) = source.waiting.front() else { return };
        let at = from.max(source.busy).max(self.now);
        let pod = host as usize / self.per_pod;
        let up = Link::HostUp { host: (host as usize % self.per_pod) as u16 };
        let free = if at > self.now { at } else { self.free_from(pod, up, flow) };
        self.unscheduled.sources[host as usize].looks = true;
        if free > self.now {
            self.wheel.push(Event::new(free, kind::SEND, host, 0));
            return;
        }
        let source = &mut self.unscheduled.sources[host as usize];
        source.waiting.pop_front();
        // In the model cells begin when they come, even two of one host.
        source.busy = self.now + if self.zeropod.scheduled { slots.data } else { 0 };
        self.wheel.push(Event::new(source.busy, kind::SEND, host, 0));
        let agg = source.paths.below(u64::from(self.zeropod.pod.aggs)) as u16;
        let cell = Flying { flow, index, agg, links: 1, length: slots.data, intact: true };
        let element = self.unscheduled.cells.keep(cell);
        debug_assert!(u64::from(index) * payload < self.plan.flows[flow as usize].size);
        self.unscheduled.tally.sent += 1;
        self.counters.sent += 1;
        self.first_sent(flow, self.now, 1);
        self.moved = self.now;
        self.count_hop(pod, up);
        if self.taps.is_some() {
            self.tap_unscheduled(pod as u16, up, &cell);
        }
        if self.links.is_down(pod as u16, up, self.now, self.now + slots.data) {
            return self.lose(element, up, DropReason::LinkDown);
        }
        self.wheel.push(Event::new(self.now + self.hop, kind::CELL, element, 0));
    }

    /// The time from which a cell may leave, by its host's knowledge: not while a scheduled cell is on its
    /// link, nor when it would meet an SCHD on its receiver's link, in either of that position's two slots.
    fn free_from(&self, pod: usize, up: Link, flow: u32) -> Time {
        let slots = &self.zeropod.slots;
        if !self.zeropod.scheduled {
            return self.now;
        }
        if let Some((_, until)) = self.scheduled_on(pod, up, self.now, slots.data) {
            return until;
        }
        let to = self.plan.flows[flow as usize].dst as usize % self.per_pod;
        let position = (to as u64) % u64::from(self.zeropod.pod.hosts_per_rack);
        let clock = self.pods[pod].clock;
        let epoch = self.now.saturating_sub(clock) / self.epoch;
        for base in [clock + epoch * self.epoch, clock + (epoch + 1) * self.epoch] {
            let from = base + position * slots.data;
            let until = from + 2 * (slots.control + 2 * slots.guard);
            if from < self.now + slots.data && self.now < until {
                return until;
            }
        }
        self.now
    }

    fn count_hop(&mut self, pod: usize, link: Link) {
        let port = &mut self.ports[self.links.port(pod as u16, link) as usize];
        port.packets += 1;
        port.data_packets += 1;
        port.bytes += u64::from(self.zeropod.scheduler.payload + self.zeropod.header);
        self.counters.data_hops += 1;
    }

    /// An unscheduled cell reaches a link, or its last bit the receiver.
    pub(crate) fn cross(&mut self, element: u32) {
        let cell = *self.unscheduled.cells.get(element);
        let flow = &self.plan.flows[cell.flow as usize];
        let pod = flow.src as usize / self.per_pod;
        let host = |host: u32| (host as usize % self.per_pod) as u16;
        let rack = |h: u32| self.zeropod.pod.rack_of(host(h));
        let path = [
            Link::HostUp { host: host(flow.src) },
            Link::RackUp { rack: rack(flow.src), agg: cell.agg },
            Link::RackDown { agg: cell.agg, rack: rack(flow.dst) },
            Link::HostDown { host: host(flow.dst) },
        ];
        let crossed = path[usize::from(cell.links) - 1];
        let Some(&link) = path.get(usize::from(cell.links)) else {
            if self.taps.is_some() {
                self.tap_unscheduled_end(pod as u16, crossed, self.now, &cell);
            }
            return self.end_of(element, crossed);
        };
        if self.taps.is_some() {
            self.tap_unscheduled_end(pod as u16, crossed, self.now + cell.length, &cell);
        }
        if self.links.is_down(pod as u16, link, self.now, self.now + cell.length) {
            return self.lose(element, link, DropReason::LinkDown);
        }
        let number = pod * self.links.count() + self.links.number(link);
        let other = self.unscheduled.links[number];
        let busy = other.until > self.now;
        let scheduled = self.scheduled_on(pod, link, self.now, cell.length);
        if scheduled.is_some_and(|(from, _)| from <= self.now) {
            self.unscheduled.tally.met_scheduled += u64::from(cell.intact);
            return self.lose(element, link, DropReason::Scheme(&COLLISION));
        }
        match self.zeropod.collision {
            Collision::Later if busy => {
                self.unscheduled.tally.met_unscheduled += u64::from(cell.intact);
                return self.lose(element, link, DropReason::Scheme(&COLLISION));
            }
            Collision::Both if busy => {
                for lost in [other.cell, element] {
                    let lost = self.unscheduled.cells.get_mut(lost);
                    self.unscheduled.tally.met_unscheduled += u64::from(lost.intact);
                    lost.intact = false;
                }
            }
            _ => {}
        }
        let here = self.unscheduled.cells.get_mut(element);
        if let Some((from, _)) = scheduled {
            self.unscheduled.tally.met_scheduled += u64::from(here.intact);
            here.intact = false;
            here.length = from - self.now;
        }
        here.links += 1;
        let (links, length) = (here.links, here.length);
        let until = self.now + length;
        if until > other.until {
            self.unscheduled.links[number] = Occupied { until, cell: element };
        }
        self.count_hop(pod, link);
        if self.taps.is_some() {
            self.tap_unscheduled(pod as u16, link, &cell);
        }
        let next = self.now + self.hop + if links == 4 { length } else { 0 };
        self.wheel.push(Event::new(next, kind::CELL, element, 0));
    }

    fn end_of(&mut self, element: u32, link: Link) {
        let cell = *self.unscheduled.cells.get(element);
        if !cell.intact {
            return self.lose(element, link, DropReason::Scheme(&COLLISION));
        }
        self.unscheduled.cells.take(element);
        self.unscheduled.tally.delivered += 1;
        self.counters.delivered += 1;
        let payload = u64::from(self.zeropod.scheduler.payload);
        let from = u64::from(cell.index) * payload;
        let to = (from + payload).min(self.plan.flows[cell.flow as usize].size);
        self.arrived(cell.flow, from, to);
    }

    /// An unscheduled cell ends, before this link or, after it had met another one, after the link.
    fn lose(&mut self, element: u32, link: Link, reason: DropReason) {
        let flow = self.unscheduled.cells.take(element).flow;
        let pod = self.plan.flows[flow as usize].src as usize / self.per_pod;
        self.receivers.flows[flow as usize].dropped += 1;
        let port = self.links.port(pod as u16, link);
        self.drop_cell(self.plan.topology.ports[port as usize].peer, reason, self.now);
    }

    /// When the first scheduled cell, data or control, on a link in `[at, at + length)` begins and ends.
    fn scheduled_on(&self, pod: usize, link: Link, at: Time, length: Time) -> Option<(Time, Time)> {
        if !self.zeropod.scheduled {
            return None;
        }
        let slots = &self.zeropod.slots;
        let begins = self.pods[pod].clock + slots.begins(link);
        let position = |host: u16| u32::from(host % self.zeropod.pod.hosts_per_rack);
        let first = at.saturating_sub(begins) / self.epoch;
        let mut found: Option<(Time, Time)> = None;
        for epoch in first..=(at + length).saturating_sub(begins) / self.epoch {
            let base = begins + epoch * self.epoch;
            let laid = self.laid(pod, link, epoch);
            let mut see = |from: Time, long: Time| {
                if from < at + length && at < from + long && found.is_none_or(|(first, _)| from < first) {
                    found = Some((from, from + long));
                }
            };
            match link {
                Link::HostUp { host } => {
                    see(base + slots.rts_at(position(host), laid.map(|l| l.to)), slots.control);
                }
                Link::HostDown { host } => {
                    see(base + slots.schd_at(laid.map(|l| l.from), position(host)), slots.control);
                }
                _ => {}
            }
            if let Some(laid) = laid {
                for cell in 0..laid.cells {
                    see(base + slots.data_at(cell, laid.from, laid.to), slots.data);
                }
            }
        }
        found
    }
}
