//! Hosts: queue pairs that make packets when the NIC serves them, and the receiving ends.
//!
//! Each (port, lane) of a host has a ring of the flows that may send. Its head is served, goes to the back if
//! it may send more, and else leaves the ring until an ACK, a NACK, a timeout or its pace brings it back.

pub mod answers;
pub mod arbitration;
pub mod congestion;
pub mod controls;
pub mod ends;
pub mod first_hop;
pub mod flow;
pub mod pulls;
pub mod rccc;
pub mod sources;

use crate::host::answers::answer;
use crate::host::controls::{gap, on_marked, on_response};
use crate::packet::{Kind, NONE, Packet};
use crate::switch::telemetry::Beside;
use crate::{core::Core, features::Features, host::flow::CONTROLLED, kind, switch::leaves::HostEvent};
use xoff_kernel::time::{Time, serialisation};
use xoff_kernel::wheel::{Event, Wheel, prefetch};
use xoff_plan::plan::{FlowRoute, Plan, Waits};
use xoff_schemes::congestion_control::seam::Departure;
use xoff_schemes::flow_control::PauseScope;
use xoff_schemes::transport::seam::{Arrival, Named, Reply};

/// A flow is delivered: its gate, if any, waits for one less.
#[cold]
fn count_down(gates: &mut Waits, wheel: &mut Wheel, plan: &Plan, flow: u32, now: Time) {
    let Some(gate) = plan.flows[flow as usize].opens else { return };
    gates.count_down(&plan.gates, gate, now, &mut |gate, at| await_gate(wheel, plan, gate, at));
}

/// The flows of a gate begin when it opens.
fn await_gate(wheel: &mut Wheel, plan: &Plan, gate: u32, at: Time) {
    if !plan.gates[gate as usize].flows.is_empty() {
        wheel.push(Event::new(at, kind::GATE, gate, 0));
    }
}

impl Core<'_> {
    /// Posts the gates of this part's hosts that depend on no delivery.
    pub fn await_gates(&mut self) {
        let Self { hosts, wheel, plan, partition, part, .. } = self;
        hosts.gates.begin(&plan.gates, &mut |gate, at| {
            if partition.of(plan.gates[gate as usize].host) == *part {
                await_gate(wheel, plan, gate, at);
            }
        });
    }

    /// The flow may send: it joins its ring. The caller then kicks the port.
    pub fn join_ring(&mut self, flow: u32) {
        let sender = &mut self.hosts.senders[flow as usize];
        if sender.in_ring || sender.held || !sender.transport.can_send() {
            return;
        }
        sender.in_ring = true;
        sender.ring_next = NONE;
        if self.blocking.is_some() {
            self.source_wait_ends(flow, None);
        }
        let sender = &mut self.hosts.senders[flow as usize];
        if self.egress.leaves.used() {
            self.egress.host_event = HostEvent::Flow(flow);
            return;
        }
        let (port, queue) = (sender.port, 1 + self.lanes + usize::from(sender.lane));
        let p = &mut self.egress.ports[port as usize];
        if let Some(oracle) = &mut self.blocking {
            oracle.pair_joins(flow, p.paused >> queue & 1 == 1, self.now);
        }
        let ring = &mut self.egress.queues[p.first_queue as usize + queue];
        let tail = std::mem::replace(&mut ring.tail, flow);
        if tail == NONE {
            ring.head = flow;
            p.ready |= 1 << queue;
        } else {
            self.hosts.senders[tail as usize].ring_next = flow;
        }
    }

    /// The ring, or the list of a leaf, for a flow that may send.
    pub fn ring_of(&self, flow: u32) -> usize {
        if self.egress.leaves.used() {
            return self.egress.leaves.list_of(flow);
        }
        let sender = &self.hosts.senders[flow as usize];
        self.egress.at(sender.port, 1 + self.lanes + usize::from(sender.lane))
    }

    /// Removes a flow with nothing to send from its ring. Returns the port to kick, if the scheme must know.
    #[cold]
    pub fn leave_ring(&mut self, flow: u32) -> Option<u32> {
        let (mut before, mut at) = (NONE, self.egress.queues[self.ring_of(flow)].head);
        while at != flow {
            (before, at) = (at, self.hosts.senders[at as usize].ring_next);
        }
        self.leave_ring_behind(flow, before)
    }

    /// The same for a flow whose predecessor in the ring is known; [`NONE`] if it is the first.
    #[cold]
    pub fn leave_ring_behind(&mut self, flow: u32, before: u32) -> Option<u32> {
        if self.blocking.is_some() {
            self.pair_leaves(flow);
        }
        let at = self.ring_of(flow);
        let sender = &self.hosts.senders[flow as usize];
        let (port, queue) = (sender.port, 1 + self.lanes + usize::from(sender.lane));
        let after = sender.ring_next;
        let ring = &mut self.egress.queues[at];
        if before == NONE {
            debug_assert_eq!(ring.head, flow);
            ring.head = after;
            if after == NONE {
                ring.tail = NONE;
                self.ring_emptied(port, queue, at);
            }
        } else {
            debug_assert_eq!(self.hosts.senders[before as usize].ring_next, flow);
            self.hosts.senders[before as usize].ring_next = after;
            if ring.tail == flow {
                ring.tail = before;
            }
        }
        self.hosts.senders[flow as usize].in_ring = false;
        if !self.egress.leaves.used() {
            return None;
        }
        self.egress.host_event = HostEvent::Gone(flow);
        Some(port)
    }

    pub fn tell_flows(&mut self) {
        for (i, flow) in self.plan.flows.iter().enumerate() {
            let told = &mut self.observed.flows[i];
            if self.partition.of(flow.src) == self.part {
                (told.packets_sent, told.retransmitted) = self.hosts.senders[i].sent();
            }
            if self.partition.of(flow.dst) == self.part {
                let receiver = &self.hosts.receivers[i];
                told.delivered_bytes = receiver.delivered_bytes(flow.size, self.plan.packet.mtu);
            }
        }
    }

    /// A flow begins. Returns the port to kick.
    pub fn begin_flow(&mut self, flow: u32) -> u32 {
        self.observed.started(flow, self.now);
        if self.blocking.is_some() {
            self.path_begins(flow);
        }
        if !self.hosts.sources.is_empty() {
            self.choose_first_hop(flow);
        }
        if self.hosts.arbiter.is_some() {
            self.arbiter_begins(flow);
        }
        self.join_ring(flow);
        self.hosts.senders[flow as usize].port
    }

    /// Makes the next packet of the flow at the head of a ring.
    #[inline(always)]
    pub fn serve_ring<F: Features>(&mut self, port: u32, queue: usize) -> u32 {
        let extras = self.hosts.has_extras::<F>();
        let at = match F::BY_FLOW && self.egress.leaves.used() {
            true => self.egress.leaves.serving(port, queue),
            false => self.egress.at(port, queue),
        };
        let ring = &mut self.egress.queues[at];
        let flow = ring.head;
        let sender = &mut self.hosts.senders[flow as usize];
        ring.data_packets += 1;
        let size = sender.next_size();
        let idle = sender.transport.una == sender.transport.next;
        let (psn, repeat) = sender.transport.send();
        let packet = Departure { flow, psn, again: repeat, size };
        if repeat {
            sender.retransmitted += 1;
        } else if psn == 0 {
            self.observed.first_sent(flow, self.now);
        }
        let asks = if extras {
            let post = &mut |at| self.wheel.push(Event::new(at, kind::TIMEOUT, flow, 0));
            self.hosts.own_senders.on_sent(&mut sender.transport, self.now, packet, post)
        } else {
            None
        };
        if asks.is_none() && idle {
            sender.deadline = self.now + self.plan.transport.rto;
            if !sender.timer_pending {
                sender.timer_pending = true;
                self.wheel.push(Event::new(sender.deadline, kind::TIMEOUT, flow, 0));
            }
        }
        if sender.pace != 0
            && let Some(gap) = match sender.pace {
                CONTROLLED => gap(&mut self.hosts.controls, self.plan, self.now, packet),
                pace => Some(serialisation(u64::from(size), pace)),
            }
        {
            sender.held = true;
            self.wheel.push(Event::new(self.now + gap, kind::PACE, flow, 0));
        }
        let stays = !sender.held && sender.transport.can_send();
        let (path, lane) = (sender.path, sender.lane);
        // To the back of the ring, or out of it.
        if !(stays && ring.head == ring.tail) {
            let next = sender.ring_next;
            sender.ring_next = NONE;
            sender.in_ring = stays;
            ring.head = next;
            prefetch(&self.hosts.senders, next as usize);
            if stays {
                let tail = std::mem::replace(&mut ring.tail, flow);
                self.hosts.senders[tail as usize].ring_next = flow;
            } else if next == NONE {
                ring.tail = NONE;
                self.ring_emptied(port, queue, at);
            }
        }
        self.observed.counters.sent += 1;
        if extras && !self.hosts.sources.is_empty() {
            self.note_sent(port, size);
        }
        if extras
            && self.hosts.arbiter.is_some()
            && !repeat
            && psn + 1 == self.hosts.receivers[flow as usize].total
        {
            self.arbiter_sent(flow, port, size);
        }
        let mut packet = Packet::new(Kind::Data, flow, psn, size, lane, path);
        if let Some(asks) = asks {
            packet.ahead = answers::requests(asks);
        }
        let id = self.packets.insert(packet);
        if extras && self.hosts.labelled.each_packet {
            self.label(id);
        }
        id
    }

    /// A data packet reached its receiver, which may send an ACK or NACK. Returns the port to kick.
    #[inline]
    pub fn receive_data<F: Features>(&mut self, id: u32) -> Option<u32> {
        let extras = self.hosts.has_extras::<F>();
        if F::EXTRAS && self.telemetry.stamped() {
            self.telemetry.delivered(id, self.now);
        }
        let packet = &mut self.packets[id];
        let flow = packet.flow;
        let receiver = &mut self.hosts.receivers[flow as usize];
        let psn = packet.number;
        let expected = receiver.transport.expected;
        let observed = &mut self.observed;
        observed.counters.delivered += 1;
        let notifies = packet.marked && {
            observed.flows[flow as usize].marked += 1;
            if extras && let Some(echo) = self.hosts.echoes.get_mut(flow as usize) {
                *echo += 1;
            }
            if extras && self.hosts.labelled.each_packet {
                self.telemetry.was_congested(id);
            }
            on_marked(self.plan, &mut self.hosts.notifications, flow, self.now)
        };
        let mut payload = u64::from(packet.size - self.plan.packet.header);
        let (asks, credit_target) = (packet.asks(), packet.credit_target());
        let mut duplicate = psn < expected;
        let mut named = Named::default();
        let (total, ack_every) = (receiver.total, self.plan.transport.ack_every);
        let arrival = Arrival { psn, total, marked: packet.marked, asks };
        let own = if extras { self.hosts.own_receivers.on_data(flow, ack_every, arrival) } else { None };
        let reply = match own {
            None => receiver.transport.on_data(psn, total, ack_every),
            Some(got) => {
                let size = self.plan.flows[flow as usize].size;
                let mtu = self.plan.packet.mtu;
                let before = receiver.delivered_bytes(size, mtu);
                (receiver.transport.expected, named, duplicate) = (got.expected, got.named, got.duplicate);
                payload = receiver.delivered_bytes(size, mtu) - before;
                got.reply
            }
        };
        if receiver.transport.expected > expected {
            observed.progress += u64::from(receiver.transport.expected - expected);
            observed.class_bytes[usize::from(receiver.class)] += payload;
            if receiver.transport.expected == receiver.total {
                observed.flows[flow as usize].delivered = Some(self.now);
                if !self.hosts.gates.is_empty() {
                    count_down(&mut self.hosts.gates, &mut self.wheel, self.plan, flow, self.now);
                }
            }
        } else if duplicate {
            observed.flows[flow as usize].spurious += 1;
        } else {
            observed.flows[flow as usize].out_of_order += 1;
        }
        let (path, lane) = (receiver.ack_path, receiver.ack_lane);
        let ahead_of = |n: u32| match extras {
            true => Packet::three_bytes(named.first.saturating_sub(n)),
            false => [0; 3],
        };
        let (kind, number, ahead) = match reply {
            Reply::Silent => {
                self.packets.remove(id);
                if extras && self.hosts.credits.used() {
                    let port = self.hops[path as usize];
                    self.request_credit(flow, port, credit_target, asks);
                    return Some(port);
                }
                return if notifies { Some(self.send_cnp(flow, path, lane)) } else { None };
            }
            // No packet is lost, and early packets are kept: there is no reason to retransmit.
            Reply::Nack(n) if extras && self.hosts.arbiter.is_some() => (Kind::Ack, n, [0; 3]),
            Reply::Ack(n) => (Kind::Ack, n, ahead_of(n)),
            Reply::Nack(n) => (Kind::Nack, n, ahead_of(n)),
        };
        // The ACK or NACK takes the data packet's place.
        let marked = self.hosts.notifications.get_mut(flow as usize).is_some_and(|n| n.take_mark());
        *packet = Packet::new(kind, flow, number, self.plan.packet.ack, lane, path);
        (packet.marked, packet.ahead) = (marked, ahead);
        if extras {
            let credit = if kind == Kind::Ack { self.hosts.credits.in_ack(flow) } else { None };
            self.telemetry.keep_beside(id, named.bits, credit);
        }
        if extras && self.hosts.labelled.counts_marks() {
            self.echo_marks(id);
        }
        if extras && self.hosts.labelled.each_packet {
            self.label_answer(id);
        }
        let port = self.hops[path as usize];
        if F::BY_FLOW && self.egress.leaves.used() && (F::EXTRAS || !self.egress.leaves.acks_first) {
            self.egress.host_event = HostEvent::Answer(id);
        } else if !F::EXTRAS {
            self.egress.append(&mut self.packets, port, 1 + usize::from(lane), id);
        } else {
            self.enqueue_own(port, lane, id);
        }
        if notifies {
            self.send_cnp(flow, path, lane);
        }
        if extras && !self.hosts.pulls.is_empty() {
            self.request(flow, port);
        }
        if extras && self.hosts.credits.used() {
            self.request_credit(flow, port, credit_target, asks);
        }
        Some(port)
    }

    /// An ACK, NACK or CNP reached its sender. Returns the port to kick.
    #[inline]
    pub fn receive_answer<F: Features>(&mut self, id: u32) -> Option<u32> {
        let extras = self.hosts.has_extras::<F>();
        let packet = self.packets[id];
        self.packets.remove(id);
        let flow = packet.flow;
        let sender = &mut self.hosts.senders[flow as usize];
        if sender.complete() {
            return None;
        }
        if packet.marked || packet.kind == Kind::Cnp {
            self.observed.flows[flow as usize].cnps += 1;
            self.hosts.controls.on_cnp(flow, self.now);
            if packet.kind == Kind::Cnp {
                return None;
            }
        }
        if packet.kind == Kind::Nack {
            self.observed.flows[flow as usize].nacks += 1;
        }
        if self.hosts.wants_acks {
            self.hosts.windows.widen(flow, sender);
        }
        let answer = answer(&packet, if extras { self.telemetry.beside(id) } else { Beside::default() });
        let una = sender.transport.una;
        let own = if extras {
            let post = &mut |at| self.wheel.push(Event::new(at, kind::TIMEOUT, flow, 0));
            self.hosts.own_senders.on_answer(flow, &mut sender.transport, self.now, &answer, post)
        } else {
            None
        };
        let progress = own.unwrap_or_else(|| match packet.kind {
            Kind::Nack => sender.transport.on_nack(packet.number),
            _ => sender.transport.on_ack(packet.number),
        });
        self.observed.progress += u64::from(sender.transport.una - una);
        if self.hosts.wants_acks {
            let own = &mut self.hosts.own_senders;
            let report = own.report(flow, &sender.transport, &answer);
            let telemetry = (&self.telemetry, id);
            on_response(&mut self.hosts.controls, self.now, sender, &packet, &report, telemetry);
            self.hosts.windows.bound(self.plan, &self.hosts.controls, self.now, flow, (sender, own));
        }
        if progress {
            sender.deadline = self.now + self.plan.transport.rto;
            if sender.complete() {
                if extras && self.hosts.own_senders.gave_up(flow) {
                    return self.give_up(flow);
                }
                self.observed.completed(flow, self.now);
                if self.blocking.is_some() {
                    self.path_ends(flow, id);
                }
                let sender = &self.hosts.senders[flow as usize];
                // Gone back for packets that had arrived after all.
                return if sender.in_ring { self.leave_ring(flow) } else { None };
            }
        }
        if extras && self.hosts.labelled.used() {
            self.weigh_answer(&packet, self.telemetry.beside(id).label);
        }
        let not_before = if F::EXTRAS { self.hosts.controls.not_before(flow) } else { None };
        let sender = &mut self.hosts.senders[flow as usize];
        if sender.in_ring {
            let port = sender.port;
            if F::EXTRAS && not_before.is_some() && self.hold_back(flow, not_before) {
                return Some(port);
            }
            let sender = &mut self.hosts.senders[flow as usize];
            // The packet to retransmit has arrived after all, and new packets may not leave.
            return if sender.transport.can_send() { None } else { self.leave_ring(flow) };
        }
        let port = sender.port;
        if F::EXTRAS && self.blocking.is_some() && !sender.held && sender.transport.can_send() {
            self.source_wait_ends(flow, Some(id));
        }
        if F::EXTRAS && not_before.is_some() {
            self.hold_back(flow, not_before);
        }
        self.join_ring(flow);
        Some(port)
    }

    /// Whether the sender, whose retransmission timer has just expired, gives up.
    fn gives_up(&mut self, flow: u32) -> bool {
        let Some(retries) = self.plan.transport.retries else { return false };
        let Some(attempts) = self.hosts.attempts.get_mut(flow as usize) else {
            return self.hosts.own_senders.gave_up(flow);
        };
        let inter = self.plan.windows.get(flow as usize).is_some_and(|f| f.inter);
        let apart = self.plan.transport.kind.timeouts_apart(inter);
        let una = self.hosts.senders[flow as usize].transport.una;
        attempts.on_timeout(retries, una, apart, self.now)
    }

    /// The sender gives up: the flow has failed. Returns the port to kick.
    #[cold]
    fn give_up(&mut self, flow: u32) -> Option<u32> {
        self.observed.failed(flow, self.now);
        if self.blocking.is_some() {
            self.path_is_cut(flow);
        }
        let sender = &mut self.hosts.senders[flow as usize];
        sender.transport.give_up();
        let in_ring = sender.in_ring;
        self.hosts.own_senders.release(flow);
        self.hosts.controls.release(flow);
        if in_ring { self.leave_ring(flow) } else { None }
    }

    /// A retransmission timer expired. Returns the port to kick.
    pub fn timeout(&mut self, flow: u32) -> Option<u32> {
        let sender = &mut self.hosts.senders[flow as usize];
        if sender.complete() {
            return None;
        }
        let own = &mut self.hosts.own_senders;
        let post = &mut |at| self.wheel.push(Event::new(at, kind::TIMEOUT, flow, 0));
        if let Some(losses) = own.on_timer(flow, &mut sender.transport, self.now, post) {
            let probe = own.take_probe(flow);
            if let Some(number) = probe {
                self.send_probe(flow, number);
            }
            let sender = &self.hosts.senders[flow as usize];
            if losses == 0 {
                return probe.map(|_| sender.port);
            }
            self.observed.flows[flow as usize].timeouts += 1;
            let port = sender.port;
            if self.gives_up(flow) {
                return self.give_up(flow);
            }
            if self.hosts.labelled.used() {
                self.relabel_after_timeout(flow);
            }
            self.control_timeout(flow, losses);
            self.join_ring(flow);
            return Some(port);
        }
        sender.timer_pending = false;
        let late = self.now >= sender.deadline;
        if late {
            if !sender.transport.on_timeout() {
                // Nothing in flight: the next packet sent arms the timer again.
                return None;
            }
            self.observed.flows[flow as usize].timeouts += 1;
            sender.deadline = self.now + self.plan.transport.rto;
            if self.gives_up(flow) {
                return self.give_up(flow);
            }
        }
        let sender = &mut self.hosts.senders[flow as usize];
        let (deadline, port) = (sender.deadline, sender.port);
        sender.timer_pending = true;
        if late && self.hosts.labelled.used() {
            self.relabel_after_timeout(flow);
        }
        self.post(deadline, kind::TIMEOUT, flow, 0);
        if late {
            self.control_timeout(flow, 1);
        }
        self.join_ring(flow);
        Some(port)
    }

    /// Whether a queue pair waits in a queue that its route has chosen. If so, it must join anew when its
    /// route changes, because the paused port may no longer be on its path.
    pub fn queues_by_route(&self) -> bool {
        matches!(self.plan.flow_control.traits().pause_scope, PauseScope::Onward | PauseScope::Root)
    }

    /// Takes a flow that may send out of its ring for a moment: the next kick of its port informs the flow
    /// control, and the flow joins again by a separate event, at the same time.
    #[cold]
    pub fn step_aside(&mut self, flow: u32) {
        self.leave_ring(flow);
        self.hosts.senders[flow as usize].held = true;
        self.post(self.now, kind::PACE, flow, 0);
    }

    /// A flow and its ACKs change to other routes. If it then waits at another port, it is in no ring.
    pub fn set_route(&mut self, route: &FlowRoute) {
        self.hosts.receivers[route.flow as usize].ack_path = route.ack_path;
        self.set_data_route(route.flow, route.path);
    }

    /// The same, only for its data.
    pub fn set_data_route(&mut self, flow: u32, path: u32) {
        let port = self.hops[path as usize];
        let sender = &mut self.hosts.senders[flow as usize];
        (sender.path, sender.port) = (path, port);
        self.egress.leaves.move_flow(flow, port);
    }

    /// A paced flow may send again. Returns the port to kick.
    pub fn pace(&mut self, flow: u32) -> u32 {
        if let Some(arbiter) = &self.hosts.arbiter
            && !arbiter.lets(self.plan.flows[flow as usize].src, flow)
        {
            return self.hosts.senders[flow as usize].port;
        }
        self.hosts.senders[flow as usize].held = false;
        if self.blocking.is_some() {
            self.pace_ends(flow);
        }
        self.join_ring(flow);
        self.hosts.senders[flow as usize].port
    }
}
