//! What happens to packets and ports, in order: the event loop of the devices
//! that one thread runs.

use crate::core::{Core, around, kind};
use crate::faults;
use crate::outcome::{DropReason, Drops};
use crate::packet::{Kind, NONE, Packet};
use crate::parallel::partition::Partition;
use crate::switch::buffer::Refusal;
use crate::switch::by_flow;
use crate::switch::evict;
use crate::switch::leaves::Newcomer;
use crate::switch::modes;
use crate::switch::port::{Port, Queue, Wire};
use crate::switch::pull;
use xoff_kernel::time::Time;
use xoff_kernel::wheel::Event;
use xoff_plan::balancing::is_choice;
use xoff_plan::plan::{DELIVER, ENDS, Plan};
use xoff_schemes::flow_control::{Crossing, Effect, FlowControl, Mode, Passage, Passenger, Scheme};

/// A part of a run.
pub struct Engine<'a> {
    pub core: Core<'a>,
    pub flow_control: FlowControl,
    next_flow: usize,
}

impl<'a> Engine<'a> {
    /// The devices of `part`, before anything has happened.
    pub fn new(plan: &'a Plan, partition: &'a Partition, part: usize) -> Self {
        let priorities: Vec<u8> = plan.lanes.iter().map(|l| l.priority).collect();
        let flow_control = plan.flow_control.start(plan.topology.ports.len(), &priorities);
        let mut core = Core::new(plan, partition, part, flow_control.timers());
        core.post_faults();
        for (i, receiver) in plan.receivers.iter().enumerate().filter(|(_, r)| partition.of(r.host) == part) {
            for &(from, until) in &receiver.stalls {
                core.post(from, kind::STALL, i as u32, 1);
                if until < Time::MAX {
                    core.post(until, kind::STALL, i as u32, 0);
                }
            }
        }
        let mut engine = Self { core, flow_control, next_flow: 0 };
        for port in 0..plan.topology.ports.len() as u32 {
            let Port { node, wire, .. } = engine.core.ports[port as usize];
            if partition.of(node) == part && wire != Wire::Inner {
                engine.flow_control.begins(&mut engine.core, port);
            }
        }
        engine.await_flows();
        engine
    }

    /// Lets everything happen that comes before `until`. Answers the number of events.
    pub fn advance(&mut self, until: Time) -> u64 {
        let mut events = 0;
        while let Some(event) = self.core.wheel.pop_before(until) {
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
                    if let Some(oracle) = &mut self.core.blocking {
                        oracle.takes_effect(self.core.packets[event.data].number);
                    }
                    let frame = self.core.take_frame(event.data);
                    let faulty = self.core.wire_of(element) == Wire::Faulty;
                    if !(faulty && self.core.reset_since_arrival(element)) {
                        let effect = frame.effect();
                        let named = self.core.named_by(element, effect);
                        self.core.named = named;
                        if let Some(oracle) = &mut self.core.blocking {
                            match effect {
                                Effect::Root { priority, pause: Some(true), .. } => {
                                    oracle.told(element, priority, named);
                                }
                                Effect::Merge { priority, old, .. } => {
                                    let old = self.core.plan.topology.port_at(old).unwrap_or(NONE);
                                    oracle.merges(priority, old, named, self.core.now);
                                }
                                Effect::Credit { priorities, .. } => {
                                    let each = (0..8).filter(|p| priorities >> p & 1 == 1);
                                    each.for_each(|priority| oracle.credited(element, priority));
                                }
                                _ => {}
                            }
                        }
                        self.flow_control.received(&mut self.core, element, &frame);
                        self.core.named = NONE;
                    }
                    if let Some(oracle) = &mut self.core.blocking {
                        oracle.effect_ends();
                    }
                }
                kind::TIMER => {
                    if self.core.timer_is_current(element, event.data) {
                        self.flow_control.timer(&mut self.core, element);
                        modes::settle(&mut self.core, &mut self.flow_control);
                        evict::settle(&mut self.core, &mut self.flow_control);
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
                kind::LEFT => self.core.arbiter_left(element),
                kind::BARRIER => {
                    let frame = self.core.take_frame(event.data);
                    self.flow_control.received(&mut self.core, element, &frame);
                }
                kind::SETTLE => self.flow_control.settles(&mut self.core, element, event.data as u8),
                kind::FAULT => {
                    // A change of routes happens in every part.
                    events -= u64::from(element == faults::ROUTES);
                    faults::happens(&mut self.core, &mut self.flow_control, element, event.data);
                }
                // Flows count one by one: how many begin together depends on the part.
                _ => events += self.begin_flows() - 1,
            }
        }
        self.core.observed.counters.events += events;
        events
    }

    /// Posts the beginning of the next flow of this part's hosts.
    fn await_flows(&mut self) {
        let flows = &self.core.plan.flows;
        // Those behind gates come last, and are begun by their gates.
        while let Some(flow) = flows.get(self.next_flow).filter(|f| f.after.is_none()) {
            if self.core.owns(flow.src) {
                self.core.post(flow.start, kind::FLOWS, 0, 0);
                break;
            }
            self.next_flow += 1;
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

    /// Begins the flows that are due. Answers how many.
    fn begin_flows(&mut self) -> u64 {
        let plan = self.core.plan;
        let mut begun = 0;
        while let Some(flow) = plan.flows.get(self.next_flow).filter(|f| f.after.is_none()) {
            if self.core.owns(flow.src) {
                if flow.start > self.core.now {
                    break;
                }
                let port = self.core.begin_flow(self.next_flow as u32);
                self.kick(port);
                begun += 1;
            }
            self.next_flow += 1;
        }
        self.await_flows();
        begun
    }

    fn stall(&mut self, receiver: u32, stops: bool) {
        let rx = self.core.plan.receivers[receiver as usize].rx;
        self.core.ports[rx as usize].paused = if stops { u64::MAX } else { 0 };
        self.core.post_decision(rx);
    }

    /// Something was given to `port`: it starts if it can.
    #[inline(always)]
    fn kick(&mut self, port: u32) {
        if self.core.newcomer != Newcomer::None {
            by_flow::settle_newcomer(&mut self.core, &mut self.flow_control);
        }
        let p = &mut self.core.ports[port as usize];
        if p.pending || p.eligible() == 0 {
            if self.core.is_down(port) {
                faults::purge(&mut self.core, &mut self.flow_control, port);
            }
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
            if core.leaves.used() && queue.head == NONE {
                if core.leaves.pulls && q as usize <= lanes {
                    return core.packets[core.queues[core.leaves.serving(port, q as usize)].head].size;
                }
                let size = |list: &Queue| match q as usize > lanes {
                    true => core.senders[list.head as usize].next_size(),
                    false => core.packets[list.head].size,
                };
                return core.leaves.settle(port, q as usize, &core.queues, size).1;
            }
            if q as usize > lanes {
                core.senders[queue.head as usize].next_size()
            } else {
                core.packets[queue.head].size
            }
        }) as usize;
        let id = if !core.plain_queues {
            serve(core, &mut self.flow_control, port, queue)
        } else if queue > lanes {
            core.serve_ring(port, queue)
        } else {
            core.unlink(port, queue)
        };
        if id == NONE {
            return self.nothing_to_send(port);
        }
        let packet = &mut core.packets[id];
        let (size, kind_of, account) = (packet.size, packet.kind, packet.account);
        packet.account = NONE;
        let p = &mut core.ports[port as usize];
        let plan = core.plan;
        let done = core.now + p.wire_time(size, || plan.topology.ports[port as usize].rate);
        p.free_at = done;
        p.bytes += u64::from(size);
        p.packets += 1;
        let (peer, arrival, wire) = (p.peer, done + p.delay, p.wire);
        let more = p.eligible() != 0;
        p.pending = more;
        if wire != Wire::Inner {
            core.observed.counters.packet_hops += 1;
            core.observed.counters.data_hops += u64::from(kind_of == Kind::Data);
        }
        if more {
            core.post(done, kind::DECISION, port, 0);
        }
        if kind_of != Kind::Control && matches!(wire, Wire::Inner | Wire::Link) {
            core.post(arrival, kind::ARRIVAL, peer, id);
        } else {
            send(core, port, id, arrival);
        }
        if account != NONE {
            release(core, &mut self.flow_control, account, port, size);
        }
    }

    /// What was ready at `port` has moved into queues that are paused, or may not leave.
    /// There may be more, and frames that were sent meanwhile.
    #[cold]
    fn nothing_to_send(&mut self, port: u32) {
        self.core.ports[port as usize].pending = false;
        self.transmit(port);
    }

    fn crossed(&mut self, account: u32, crossing: Crossing) {
        crossed(&mut self.core, &mut self.flow_control, account, crossing);
    }

    /// A packet's last bit arrived at `port`.
    #[inline]
    fn arrive(&mut self, port: u32, id: u32) {
        let core = &mut self.core;
        let packet = &mut core.packets[id];
        packet.hop += 1;
        let mut next = core.hops[packet.hop as usize];
        if !core.received.is_empty() && !faults::is_lost(next) {
            core.count_arrival(port, id);
        }
        loop {
            if next < ENDS {
                return self.forward(port, id, next);
            }
            if next == DELIVER {
                break;
            }
            if !is_choice(next) {
                return discard(core, port, id, faults::reason(next), 0);
            }
            next = core.choose(core.ports[port as usize].node, id, next);
        }
        if core.tells_storage {
            let Packet { lane, size, .. } = core.packets[id];
            self.flow_control.stored(core, port, lane, size);
        }
        let core = &mut self.core;
        let packet = &core.packets[id];
        let kick = if packet.kind == Kind::Data { core.receive_data(id) } else { core.receive_answer(id) };
        if let Some(port) = kick {
            self.kick(port);
        }
    }

    /// Where a packet from `port` waits, whose way leads through `egress`, while loops are being
    /// dissolved, and whether beside that queue; `None` if it has lost its way.
    #[cold]
    fn detour(&mut self, port: u32, id: u32, egress: u32) -> Option<(u32, bool)> {
        let core = &mut self.core;
        let packet = core.packets[id];
        let (lane, flow, size) = (packet.lane, packet.flow, packet.size);
        let passenger = Passenger { ingress: port, egress, lane, flow, size, marked: packet.counted() };
        Some(match self.flow_control.passes(core, &passenger) {
            Passage::On => (egress, false),
            Passage::Aside => (egress, true),
            Passage::Round(on) => {
                // Its place stays in front of the port that it has missed.
                let packet = &mut core.packets[id];
                packet.set_counted(true);
                packet.hop -= 1;
                (on, false)
            }
            Passage::Home(at) => {
                core.packets[id].set_counted(false);
                core.packets[id].hop = core.place_before(id, |port| port == at)?;
                (at, false)
            }
            Passage::Stray => {
                core.packets[id].set_counted(false);
                let own = core.ports[port as usize].node;
                let ports = &core.ports;
                let hop = core.place_before(id, |port| ports[port as usize].node == own)?;
                let egress = core.hops[hop as usize];
                core.packets[id].hop = hop;
                (egress, false)
            }
        })
    }

    /// Buffers a packet from `port` for `egress`.
    #[inline]
    fn forward(&mut self, port: u32, id: u32, egress: u32) {
        let (egress, aside) = match self.core.loops {
            0 if !self.core.packets[id].counted() => (egress, false),
            _ => match self.detour(port, id, egress) {
                Some(found) => found,
                None => return discard(&mut self.core, port, id, DropReason::LoopGivenUp, 0),
            },
        };
        let core = &mut self.core;
        let out = &core.ports[egress as usize];
        if out.wire >= Wire::Faulty
            && let Some(reason) = core.keeps_out(egress, core.packets[id].lane)
        {
            return discard(core, port, id, reason, 0);
        }
        let out = &core.ports[egress as usize];
        let first_queue = out.first_queue as usize;
        let mut charge = core.in_cells(core.packets[id].size);
        let packet = &mut core.packets[id];
        let (size, arrived) = (u64::from(packet.size), packet.lane);
        // It is charged to the lane that it came in, and waits in that it goes on in.
        let lane = usize::from(core.lane_rules.map_or(arrived, |rules| rules.onward(arrived, port, egress)));
        let at = port as usize * core.lanes + usize::from(arrived);
        if core.follows_charges {
            charge = self.flow_control.charged(core, port, arrived, charge);
        }
        let packet = &mut core.packets[id];
        let a = &mut core.accounts[at];
        let memory = &mut core.memories[a.memory as usize];
        let rule = &core.egress[lane];
        let queued = core.queues[first_queue + 1 + lane].bytes;
        if rule.limit != xoff_plan::plan::Limit::Unlimited {
            let room = memory.egress_share(rule.limit);
            if queued + size > room {
                packet.lane = lane as u8;
                return discard(core, port, id, DropReason::QueueLimit, queued + size - room);
            }
        }
        let crossing = match a.admit(charge, memory, &core.profiles[usize::from(a.profile)]) {
            Ok(crossing) => crossing,
            Err(refusal) => return refuse(core, port, id, refusal),
        };
        if let Some(whole) = around(&mut core.memories, core.plan, a, port) {
            whole.hold(charge);
        }
        packet.account = at as u32;
        packet.lane = lane as u8;
        if let Some(oracle) = &mut core.blocking {
            oracle.charged(at as u32, core.plan.topology.ports[egress as usize].index, size);
        }
        if let Some(red) = rule.ecn
            && queued > red.k_min
            && !red.at_dequeue
            && packet.kind == Kind::Data
            && core.marks(egress, lane, queued)
        {
            core.packets[id].marked = true;
            core.observed.control[egress as usize][2] += 1;
        }
        if aside {
            core.aside.entry((egress, lane as u8)).or_default().push(id);
        } else if core.plain_queues {
            core.append(egress, 1 + lane, id);
        } else if core.leaves.pulls {
            pull::enqueue(core, &mut self.flow_control, egress, id);
        } else if core.leaves.used() {
            by_flow::enqueue(core, &mut self.flow_control, egress, id);
        } else {
            core.enqueue(egress, 1 + lane, id);
        }
        if self.core.tells_storage {
            self.flow_control.stored(&mut self.core, port, arrived, size as u32);
        }
        if self.core.causes.used() {
            let index = self.core.plan.topology.ports[egress as usize].index;
            if self.core.causes.joins(at as u32, index) {
                self.flow_control.waits(&mut self.core, port, egress, lane as u8);
            }
        }
        if let Some(crossing) = crossing {
            self.crossed(at as u32, crossing);
        }
        self.kick(egress);
    }
}

/// Takes the next packet of a queue of `port` where somebody is to be told of it.
#[inline(never)]
fn serve(core: &mut Core, flow_control: &mut FlowControl, port: u32, queue: usize) -> u32 {
    if core.loops > 0 && queue > 0 && !passes_barrier(core, flow_control, port, queue) {
        return NONE;
    }
    if core.asks_to_leave && queue > 0 && !may_leave(core, flow_control, port, queue) {
        return NONE;
    }
    let id = if core.leaves.used() && queue > 0 {
        // Whatever the scheme sends meanwhile waits for what is being chosen.
        core.ports[port as usize].pending = true;
        match core.leaves.pulls {
            true => pull::serve(core, flow_control, port, queue),
            false => by_flow::serve(core, flow_control, port, queue),
        }
    } else if queue > core.lanes {
        core.serve_ring(port, queue)
    } else {
        core.dequeue(port, queue)
    };
    if id == NONE {
        return id;
    }
    if core.marks_at_dequeue && (1..=core.lanes).contains(&queue) {
        core.mark_leaving(port, queue, id);
    }
    if core.telemetry.used() && queue > 0 {
        core.add_telemetry(port, queue, id);
    }
    // Behind that: it may have grown the packet.
    if core.blocking.as_ref().is_some_and(|oracle| oracle.critical.is_some()) {
        core.departs(port, queue, id);
    }
    id
}

/// Whether the flow control lets the first packet of a queue of `port` go; if not, it
/// has stopped the queue's lane.
fn may_leave(core: &mut Core, flow_control: &mut FlowControl, port: u32, queue: usize) -> bool {
    debug_assert!(!core.leaves.used(), "no scheme that is asked has queues by flow");
    let head = core.queues[core.ports[port as usize].first_queue as usize + queue].head;
    let (lane, size) = match queue > core.lanes {
        true => (queue - 1 - core.lanes, core.senders[head as usize].next_size()),
        // A barrier has been asked already.
        false if core.packets[head].kind == Kind::Control => return true,
        false => (queue - 1, core.packets[head].size),
    };
    // Whatever the scheme sends meanwhile waits for what is being chosen.
    core.ports[port as usize].pending = true;
    let may = flow_control.may_leave(core, port, lane as u8, size);
    debug_assert!(
        may || core.ports[port as usize].eligible() >> queue & 1 == 0,
        "else it would be asked again"
    );
    may
}

/// Whether what comes first in a queue of `port` is a barrier that ends here: then it is gone.
#[cold]
fn passes_barrier(core: &mut Core, flow_control: &mut FlowControl, port: u32, queue: usize) -> bool {
    let head = core.queues[core.ports[port as usize].first_queue as usize + queue].head;
    if queue > core.lanes || head == NONE || core.packets[head].kind != Kind::Control {
        return true;
    }
    // Whatever the scheme sends meanwhile waits for what is being chosen.
    core.ports[port as usize].pending = true;
    let frame = core.frame_of(head);
    let goes = flow_control.barrier_leaves(core, port, &frame);
    if !goes {
        let id = core.unlink(port, queue);
        core.take_frame(id);
    }
    goes
}

/// Sends a control frame, or any packet over a link that may lose it or that leads
/// to another part: its last bit is due at the peer at `arrival`.
#[inline(never)]
fn send(core: &mut Core, port: u32, id: u32, arrival: Time) {
    let Port { peer, wire: seen, .. } = core.ports[port as usize];
    let (wire, is_control) = (core.wire_of(port), core.packets[id].kind == Kind::Control);
    if seen == Wire::Odd && !is_control && core.mode(port, core.packets[id].lane) == Mode::Forward {
        core.packets[id].set_against(peer);
    }
    if is_control {
        core.note_control(port, id);
    }
    let lost = wire == Wire::Faulty && core.loses(port, id, arrival);
    if seen == Wire::Odd {
        core.tap(port, id, arrival, lost);
    }
    let (at, what) = match is_control && !lost {
        true if core.is_barrier(id) => (arrival, kind::BARRIER),
        true => (arrival + core.response_time, kind::CONTROL),
        false => (arrival, kind::ARRIVAL),
    };
    match wire {
        Wire::Inner | Wire::Link => core.post(at, what, peer, id),
        Wire::Away | Wire::Faulty | Wire::Odd => core.send_over(at, what, peer, id),
    }
}

/// Drops a packet that arrived at `ingress` and that there is no room for.
#[cold]
fn refuse(core: &mut Core, ingress: u32, id: u32, refusal: Refusal) {
    let (reason, by) = match refusal {
        Refusal::Headroom(by) => (DropReason::HeadroomFull, by),
        Refusal::Memory(by) => (DropReason::BufferFull, by),
    };
    let overrun = core.plan.flow_control.traits().overrun.filter(|_| core.packets[id].against(ingress));
    discard(core, ingress, id, overrun.map_or(reason, DropReason::Scheme), by);
}

/// Drops a packet that arrived at `ingress`, in no queue any more.
#[cold]
pub fn discard(core: &mut Core, ingress: u32, id: u32, reason: DropReason, shortfall: u64) {
    let packet = core.packets[id];
    if packet.kind == Kind::Control {
        core.take_frame(id);
    } else {
        core.packets.remove(id);
    }
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

/// Gives back what a packet of `size` bytes, which waited at `egress`, was charged.
#[inline(always)]
pub fn release(core: &mut Core, flow_control: &mut FlowControl, account: u32, egress: u32, size: u32) {
    if let Some(oracle) = &mut core.blocking {
        oracle.released(account, core.plan.topology.ports[egress as usize].index, size.into());
    }
    if core.causes.used() {
        core.causes.leaves(account, core.plan.topology.ports[egress as usize].index);
    }
    let charge = core.in_cells(size);
    if core.tells_storage {
        return frees(core, flow_control, account, egress, charge);
    }
    if let Some(crossing) = core.release(account, charge) {
        crossed(core, flow_control, account, crossing);
    }
}

/// The same where the flow control is told.
#[cold]
fn frees(core: &mut Core, flow_control: &mut FlowControl, account: u32, egress: u32, charge: u64) {
    let lanes = core.lanes as u32;
    let (ingress, lane) = (account / lanes, (account % lanes) as u8);
    if core.follows_charges {
        flow_control.gives_back(core, ingress, egress, lane, charge);
    } else if let Some(crossing) = core.release(account, charge) {
        crossed(core, flow_control, account, crossing);
    }
    flow_control.freed(core, ingress, egress, lane, charge as u32);
}

/// An account crossed a threshold.
#[cold]
fn crossed(core: &mut Core, flow_control: &mut FlowControl, account: u32, crossing: Crossing) {
    let (port, lane) = (account / core.lanes as u32, account % core.lanes as u32);
    if let Some(crossing) = core.crosses(account, crossing) {
        flow_control.crossed(core, port, lane as u8, crossing);
    }
}

/// Whether an event is a timer, or the effect of a frame that a timer sent.
pub fn is_timer(event: &Event) -> bool {
    matches!(event.kind(), kind::TIMER | kind::TIMEOUT | kind::CONTROL)
}

/// Whether an event comes from outside: what the plan has in store.
pub fn is_news(event: &Event) -> bool {
    matches!(event.kind(), kind::FAULT | kind::STALL | kind::FLOWS | kind::GATE)
}
