//! The event loop: what happens to packets and ports, in order.

use crate::Progress;
use crate::buffer::Refusal;
use crate::core::{Core, kind};
use crate::deadlock;
use crate::observe;
use crate::outcome::{AccountPeak, Counters, DropReason, Drops, Outcome, Stop};
use crate::packet::{Kind, NONE};
use xoff_kernel::time::{MICROSECOND, MILLISECOND, Time};
use xoff_kernel::wheel::Event;
use xoff_plan::plan::{DELIVER, EXPIRE, Plan, Red};
use xoff_schemes::flow_control::{Crossing, FlowControl};

/// How often the deadlock oracle looks.
const LOOK: Time = 100 * MICROSECOND;
/// Without an end time, a run is given up when no data packet has moved for
/// this long and four retransmission timeouts, and nothing but timers is pending.
const QUIET: Time = 10 * MILLISECOND;
/// Events between two calls of the watcher.
const WATCH: u64 = 1 << 16;

/// A run.
pub struct Engine<'a> {
    core: Core<'a>,
    flow_control: FlowControl,
    next_flow: usize,
    next_sample: Time,
    next_look: Time,
    /// Data packet-hops at the last look, and since when they have not changed.
    moved: (u64, Time),
    /// For the deadlock oracle: what the accounts that are over held at the last look.
    held: deadlock::Snapshot,
}

impl<'a> Engine<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        let priorities: Vec<u8> = plan.lanes.iter().map(|l| l.priority).collect();
        let flow_control = FlowControl::new(&plan.flow_control, plan.topology.ports.len(), &priorities);
        let mut core = Core::new(plan, flow_control.timers());
        if let Some(flow) = plan.flows.first().filter(|f| f.after.is_none()) {
            core.post(flow.start, kind::FLOWS, 0, 0);
        }
        for (i, receiver) in plan.receivers.iter().enumerate() {
            for &(from, until) in &receiver.stalls {
                core.post(from, kind::STALL, i as u32, 1);
                if until < Time::MAX {
                    core.post(until, kind::STALL, i as u32, 0);
                }
            }
        }
        Self {
            core,
            flow_control,
            next_flow: 0,
            next_sample: plan.measure.interval.unwrap_or(Time::MAX),
            next_look: LOOK,
            moved: (0, 0),
            held: deadlock::Snapshot::new(),
        }
    }

    pub fn run(mut self, watch: &mut dyn FnMut(&Progress) -> bool) -> Outcome {
        let end = self.core.plan.end.unwrap_or(Time::MAX);
        let flows = self.core.plan.flows.len();
        let mut events = 0u64;
        let mut halt = self.next_sample.min(self.next_look).min(end);
        let stop = loop {
            let next = self.core.wheel.pop();
            // Without any more events there is still the series, up to the end.
            let time = next.map_or(if end < Time::MAX { end } else { 0 }, |e| e.time);
            while time >= halt && halt < end {
                if let Some(stop) = self.pause_to_observe(halt, time, next) {
                    return self.finish(stop, halt, events);
                }
                halt = self.next_sample.min(self.next_look).min(end);
            }
            let Some(event) = next.filter(|e| e.time < end) else {
                break match self.core.observed.flows_done == flows {
                    true => Stop::AllDone,
                    false if end < Time::MAX => Stop::EndTime,
                    false => Stop::Starved,
                };
            };
            events += 1;
            self.core.now = event.time;
            self.core.fetch_ahead();
            let element = event.element();
            match event.kind() {
                kind::DECISION => {
                    self.core.ports[element as usize].pending = false;
                    self.transmit(element);
                }
                kind::ARRIVAL => self.arrive(element, event.data),
                kind::CONTROL => {
                    let frame = self.core.take_frame(event.data);
                    self.flow_control.received(&mut self.core, element, &frame);
                }
                kind::TIMER => {
                    if self.core.timer_is_current(element, event.data) {
                        self.flow_control.timer(&mut self.core, element);
                    }
                }
                kind::TIMEOUT => {
                    if let Some(port) = self.core.timeout(element) {
                        self.kick(port);
                    }
                }
                kind::PACE => {
                    let port = self.core.pace(element);
                    self.kick(port);
                }
                kind::STALL => self.stall(element, event.data == 1),
                kind::GATE => self.open_gate(element),
                _ => self.begin_flows(),
            }
            if events.is_multiple_of(WATCH) && !watch(&self.progress(events)) {
                break Stop::Interrupted;
            }
            if self.core.observed.flows_done == flows && self.core.plan.end.is_none() {
                break Stop::AllDone;
            }
        };
        let at = if stop != Stop::Interrupted && end < Time::MAX { end } else { self.core.now };
        self.finish(stop, at, events)
    }

    fn progress(&self, events: u64) -> Progress {
        Progress {
            now: self.core.now,
            counters: Counters { events, ..self.core.observed.counters },
            flows_done: self.core.observed.flows_done,
            deadlocked: self.core.observed.deadlock.is_some(),
        }
    }

    /// Samples and oracles that are due at `at`, before the event `popped`, which
    /// (or else the end) comes at `next`.
    #[cold]
    fn pause_to_observe(&mut self, at: Time, next: Time, popped: Option<Event>) -> Option<Stop> {
        if at == self.next_sample {
            observe::sample(&mut self.core, at);
            self.next_sample += self.core.plan.measure.interval.unwrap_or(Time::MAX);
        }
        if at == self.next_look {
            // Until the next event there is nothing new to see.
            self.next_look = (next / LOOK).saturating_add(1).saturating_mul(LOOK);
            if self.core.observed.deadlock.is_none() {
                self.core.observed.deadlock = deadlock::look(&self.core, at, &self.held);
            }
            self.held = deadlock::snapshot(&self.core);
            let hops = self.core.observed.counters.data_hops;
            if hops != self.moved.0 {
                self.moved = (hops, at);
            } else if self.core.plan.end.is_none() && popped.is_none_or(|e| is_timer(&e)) && self.starved(at)
            {
                return Some(Stop::Starved);
            }
        }
        None
    }

    /// Whether nothing will ever move again: no data packet has for long, and
    /// all that is pending are timers and the pause frames that they send.
    fn starved(&self, at: Time) -> bool {
        at - self.moved.1 > QUIET + 4 * self.core.plan.transport.rto && !self.core.wheel.any(|e| !is_timer(e))
    }

    fn begin_flows(&mut self) {
        let plan = self.core.plan;
        // Those behind gates come last, and are begun by their gates.
        while let Some(flow) = plan.flows.get(self.next_flow).filter(|f| f.after.is_none()) {
            if flow.start > self.core.now {
                self.core.post(flow.start, kind::FLOWS, 0, 0);
                break;
            }
            let port = self.core.begin_flow(self.next_flow as u32);
            self.next_flow += 1;
            self.kick(port);
        }
    }

    /// What a gate waited for has arrived: its flows begin.
    #[cold]
    fn open_gate(&mut self, gate: u32) {
        let plan = self.core.plan;
        for &flow in &plan.gates[gate as usize].flows {
            debug_assert!(
                plan.flows[flow as usize].start <= self.core.now,
                "no gate opens before its flows' start"
            );
            let port = self.core.begin_flow(flow);
            self.kick(port);
        }
    }

    fn stall(&mut self, receiver: u32, stops: bool) {
        let rx = self.core.plan.receivers[receiver as usize].rx;
        self.core.ports[rx as usize].paused = if stops { u64::MAX } else { 0 };
        self.core.post_decision(rx);
    }

    /// Something was given to `port`: it starts if it can.
    #[inline]
    fn kick(&mut self, port: u32) {
        let p = &mut self.core.ports[port as usize];
        if p.pending || p.eligible() == 0 {
            return;
        }
        if p.free_at <= self.core.now {
            self.transmit(port);
        } else {
            p.pending = true;
            let at = p.free_at;
            self.core.post(at, kind::DECISION, port, 0);
        }
    }

    /// The wire of `port` is free: the next packet goes, if one may.
    #[inline]
    fn transmit(&mut self, port: u32) {
        let core = &mut self.core;
        let p = &core.ports[port as usize];
        let eligible = p.eligible();
        if eligible == 0 {
            return;
        }
        let first_queue = p.first_queue as usize;
        let lanes = core.lanes;
        let queue = core.discipline.select(eligible, port, &mut core.rounds, |q| {
            let queue = &core.queues[first_queue + q as usize];
            if q as usize > lanes {
                core.senders[queue.head as usize].next_size()
            } else {
                core.packets[queue.head].size
            }
        }) as usize;
        let id = if queue > lanes { core.serve_ring(port, queue) } else { core.dequeue(port, queue) };
        let packet = &mut core.packets[id];
        let (size, kind_of, account) = (packet.size, packet.kind, packet.account);
        packet.account = NONE;
        let p = &mut core.ports[port as usize];
        let plan = core.plan;
        let done = core.now + p.wire_time(size, || plan.topology.ports[port as usize].rate);
        p.free_at = done;
        p.bytes += u64::from(size);
        p.packets += 1;
        let (peer, arrival) = (p.peer, done + p.delay);
        let more = p.eligible() != 0;
        p.pending = more;
        if p.is_link {
            core.observed.counters.packet_hops += 1;
            core.observed.counters.data_hops += u64::from(kind_of == Kind::Data);
        }
        if more {
            core.post(done, kind::DECISION, port, 0);
        }
        if kind_of == Kind::Control {
            core.note_control(port, id);
            let effect = arrival + core.response_time;
            core.post(effect, kind::CONTROL, peer, id);
        } else {
            core.post(arrival, kind::ARRIVAL, peer, id);
        }
        if account != NONE {
            let a = &mut core.accounts[account as usize];
            let profile = &core.profiles[usize::from(a.profile)];
            let memory = &mut core.memories[a.node as usize];
            if let Some(crossing) = a.release(u64::from(size), memory, profile) {
                self.crossed(account, crossing);
            }
        }
    }

    #[cold]
    fn crossed(&mut self, account: u32, crossing: Crossing) {
        let (port, lane) = (account / self.core.lanes as u32, account % self.core.lanes as u32);
        match crossing {
            Crossing::Over => drop(self.core.observed.over_since.insert(account, self.core.now)),
            Crossing::Under => drop(self.core.observed.over_since.remove(&account)),
        }
        self.flow_control.crossed(&mut self.core, port, lane as u8, crossing);
    }

    /// A packet's last bit arrived at `port`.
    #[inline]
    fn arrive(&mut self, port: u32, id: u32) {
        let core = &mut self.core;
        let packet = &mut core.packets[id];
        packet.hop += 1;
        let next = core.hops[packet.hop as usize];
        if next < EXPIRE {
            return self.forward(port, id, next);
        }
        if next == EXPIRE {
            return self.discard(port, id, DropReason::Expired, 0);
        }
        debug_assert_eq!(next, DELIVER);
        let kick = if packet.kind == Kind::Data { core.receive_data(id) } else { core.receive_answer(id) };
        if let Some(port) = kick {
            self.kick(port);
        }
    }

    /// Buffers a packet from `port` for `egress`.
    #[inline]
    fn forward(&mut self, port: u32, id: u32, egress: u32) {
        let core = &mut self.core;
        let packet = &mut core.packets[id];
        let (size, lane) = (u64::from(packet.size), usize::from(packet.lane));
        let at = port as usize * core.lanes + lane;
        let a = &mut core.accounts[at];
        let memory = &mut core.memories[a.node as usize];
        let rule = &core.egress[lane];
        let queued = core.queues[core.ports[egress as usize].first_queue as usize + 1 + lane].bytes;
        if rule.limit != xoff_plan::plan::Limit::Unlimited {
            let room = memory.egress_share(rule.limit);
            if queued + size > room {
                return self.discard(port, id, DropReason::QueueLimit, queued + size - room);
            }
        }
        let crossing = match a.admit(size, memory, &core.profiles[usize::from(a.profile)]) {
            Ok(crossing) => crossing,
            Err(Refusal::Headroom(by)) => return self.discard(port, id, DropReason::HeadroomFull, by),
            Err(Refusal::Memory(by)) => return self.discard(port, id, DropReason::BufferFull, by),
        };
        packet.account = at as u32;
        if let Some(red) = rule.ecn
            && marks(red, queued, || core.marking[egress as usize].unit())
        {
            packet.marked = true;
            core.observed.control[egress as usize][2] += 1;
        }
        core.enqueue(egress, 1 + lane, id);
        if let Some(crossing) = crossing {
            self.crossed(at as u32, crossing);
        }
        self.kick(egress);
    }

    #[cold]
    fn discard(&mut self, ingress: u32, id: u32, reason: DropReason, shortfall: u64) {
        let core = &mut self.core;
        let packet = core.packets[id];
        core.packets.remove(id);
        let drop = Drops {
            ingress,
            lane: packet.lane,
            lossless: core.egress[usize::from(packet.lane)].lossless,
            reason,
            packets: 1,
            bytes: u64::from(packet.size),
            first: core.now,
            shortfall,
        };
        core.observed.dropped(drop, (packet.kind == Kind::Data).then_some(packet.flow));
    }

    fn finish(mut self, stop: Stop, at: Time, events: u64) -> Outcome {
        if self.core.plan.measure.interval.is_some() {
            observe::sample(&mut self.core, at);
        }
        let core = &mut self.core;
        // The last look examines every account, however short the run was.
        let everything = deadlock::snapshot(core);
        if core.observed.deadlock.is_none() {
            core.observed.deadlock = deadlock::look(core, at, &everything);
        }
        let waiting = deadlock::waiting(core, at, &everything);
        let ports = observe::port_outcomes(core);
        let observed = &mut core.observed;
        for (i, flow) in observed.flows.iter_mut().enumerate() {
            (flow.packets_sent, flow.retransmitted) = core.senders[i].sent();
            flow.delivered_bytes =
                core.receivers[i].delivered_bytes(core.plan.flows[i].size, core.plan.packet.mtu);
        }
        let counters = &mut observed.counters;
        counters.events = events;
        counters.in_flight = core.packets.slots().iter().filter(|p| p.kind == Kind::Data).count() as u64;
        assert_eq!(
            counters.sent,
            counters.delivered + counters.dropped + counters.in_flight,
            "packets are conserved"
        );
        Outcome {
            end: at,
            stop,
            flows: std::mem::take(&mut observed.flows),
            pauses: std::mem::take(&mut observed.pauses),
            series: std::mem::take(&mut observed.series),
            ports,
            buffer_peaks: core.memories.iter().map(|m| m.peak).collect(),
            accounts: core
                .accounts
                .iter()
                .map(|a| AccountPeak { main: a.main_peak, headroom: a.headroom_peak() })
                .collect(),
            drops: std::mem::take(&mut observed.drops).into_values().collect(),
            deadlock: observed.deadlock.take(),
            waiting,
            counters: observed.counters,
        }
    }
}

/// Whether an event is a timer, or the effect of a frame that a timer sent.
fn is_timer(event: &Event) -> bool {
    matches!(event.kind(), kind::TIMER | kind::TIMEOUT | kind::CONTROL)
}

/// Whether RED marks a packet that finds `queued` bytes before it.
#[inline]
fn marks(red: Red, queued: u64, unit: impl FnOnce() -> f64) -> bool {
    if queued <= red.k_min {
        false
    } else if queued >= red.k_max {
        true
    } else {
        unit() < red.p_max * (queued - red.k_min) as f64 / (red.k_max - red.k_min) as f64
    }
}
