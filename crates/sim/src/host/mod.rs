//! Hosts: queue pairs that make packets when the NIC serves them, and the
//! receiving ends.
//!
//! Each (port, lane) of a host has a ring of the flows that may send. Its head
//! is served, goes to the back if it may send more, and leaves the ring
//! otherwise, until an ACK, a NACK, a timeout or its pace brings it back. A
//! pause of the lane stops the ring.

pub mod congestion;
pub mod first_hop;
pub mod irn;
pub mod selective;
pub mod tcp;

use crate::core::{Core, kind};
use crate::host::congestion::{CONTROLLED, Departure};
use crate::packet::{Kind, NONE, Packet};
use crate::switch::leaves::Newcomer;
use xoff_kernel::time::{Time, serialisation};
use xoff_kernel::wheel::{Event, Wheel};
use xoff_plan::plan::{Flow, FlowRoute, Plan};
use xoff_schemes::congestion_control::CongestionControlParams;
use xoff_schemes::flow_control::PauseScope;
use xoff_schemes::transport::go_back_n::{Receiver, Reply, Sender};
use xoff_schemes::transport::{TransportKind, newreno};

/// The sending end of a flow: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct SenderState {
    pub transport: Sender,
    /// Wire size of every packet but the last.
    full_size: u32,
    last_size: u32,
    /// Start of its route.
    path: u32,
    port: u32,
    /// Behind it in the ring.
    pub ring_next: u32,
    retransmitted: u32,
    lane: u8,
    pub in_ring: bool,
    /// Waits for its pace.
    held: bool,
    /// A timeout event is pending.
    timer_pending: bool,
    /// Time out at this time.
    deadline: Time,
    /// Bits per second, or 0, or [`CONTROLLED`].
    pace: u64,
}

/// The receiving end of a flow: half a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct ReceiverState {
    transport: Receiver,
    total: u32,
    ack_path: u32,
    ack_lane: u8,
    class: u16,
}

/// A flow is delivered: the gate that it counts towards, if any, waits for one
/// less, and opens after its delay when it waits for none.
#[cold]
fn count_down(gates: &mut [u32], wheel: &mut Wheel, plan: &Plan, flow: u32, now: Time) {
    let Some(gate) = plan.flows[flow as usize].opens else { return };
    let waits = &mut gates[gate as usize];
    *waits -= 1;
    if *waits == 0 {
        wheel.push(Event::new(now + plan.gates[gate as usize].delay, kind::GATE, gate, 0));
    }
}

impl SenderState {
    /// A flow of the plan, before its start.
    pub fn new(plan: &Plan, index: usize) -> Self {
        let flow = &plan.flows[index];
        let total =
            u32::try_from(plan.packet.packets(flow.size)).expect("the plan bounds flows to 2^32 packets");
        let in_packets =
            |bytes: u64| u32::try_from(bytes / u64::from(plan.packet.mtu)).unwrap_or(u32::MAX).max(1);
        let window = match &plan.transport.kind {
            TransportKind::Irn { .. } => plan.irn[index].window,
            TransportKind::Tcp(params) => newreno::first_window(params),
            TransportKind::GoBackN => plan.transport.window.map_or(u32::MAX, in_packets),
        };
        Self {
            transport: Sender::new(total, window),
            full_size: plan.packet.mtu + plan.packet.header,
            last_size: plan.packet.wire_size(flow.size, u64::from(total) - 1),
            path: flow.path,
            port: plan.hops[flow.path as usize],
            ring_next: NONE,
            retransmitted: 0,
            lane: flow.lane,
            in_ring: false,
            held: plan.arbiter.is_some(),
            timer_pending: false,
            deadline: 0,
            pace: match plan.congestion_control {
                CongestionControlParams::None => flow.pace,
                _ => CONTROLLED,
            },
        }
    }

    /// Data packets sent, repeats included, and repeats alone.
    pub fn sent(&self) -> (u64, u64) {
        let repeats = u64::from(self.retransmitted);
        (u64::from(self.transport.highest) + repeats, repeats)
    }

    /// Start of its route in the plan's hops.
    pub fn path(&self) -> u32 {
        self.path
    }

    pub fn port(&self) -> u32 {
        self.port
    }

    /// It stands in its ring: it may send.
    pub fn ready(&self) -> bool {
        self.in_ring
    }

    /// It waits, as if for its pace, until an event lets it go.
    pub fn hold(&mut self) {
        self.held = true;
    }

    /// It waits for its pace.
    pub fn held(&self) -> bool {
        self.held
    }

    /// Packets acknowledged in order.
    pub fn acknowledged(&self) -> u32 {
        self.transport.una
    }

    /// All of it is acknowledged.
    pub fn complete(&self) -> bool {
        self.transport.complete()
    }

    /// Wire size of the packet that it would send next.
    pub fn next_size(&self) -> u32 {
        if self.transport.next + 1 == self.transport.total { self.last_size } else { self.full_size }
    }
}

impl ReceiverState {
    /// A flow of the plan, before its start.
    pub fn new(plan: &Plan, flow: &Flow) -> Self {
        Self {
            transport: Receiver::default(),
            total: plan.packet.packets(flow.size) as u32,
            ack_path: flow.ack_path,
            ack_lane: flow.ack_lane,
            class: flow.class,
        }
    }

    /// Packets delivered in order.
    pub fn expected(&self) -> u32 {
        self.transport.expected
    }

    /// Payload bytes delivered in order, of a flow of `size` bytes.
    pub fn delivered_bytes(&self, size: u64, mtu: u32) -> u64 {
        (u64::from(self.transport.expected) * u64::from(mtu)).min(size)
    }
}

impl Core<'_> {
    /// The flow may send: it joins its ring. The caller then kicks the port.
    pub fn join_ring(&mut self, flow: u32) {
        let sender = &mut self.senders[flow as usize];
        if sender.in_ring || sender.held || !sender.transport.can_send() {
            return;
        }
        sender.in_ring = true;
        sender.ring_next = NONE;
        if self.blocking.is_some() {
            self.source_wait_ends(flow, None);
        }
        let sender = &mut self.senders[flow as usize];
        if self.leaves.used() {
            self.newcomer = Newcomer::Flow(flow);
            return;
        }
        let (port, queue) = (sender.port, 1 + self.lanes + usize::from(sender.lane));
        let p = &mut self.ports[port as usize];
        if let Some(oracle) = &mut self.blocking {
            oracle.pair_joins(flow, p.paused >> queue & 1 == 1, self.now);
        }
        let ring = &mut self.queues[p.first_queue as usize + queue];
        let tail = std::mem::replace(&mut ring.tail, flow);
        if tail == NONE {
            ring.head = flow;
            p.ready |= 1 << queue;
        } else {
            self.senders[tail as usize].ring_next = flow;
        }
    }

    /// The ring, or the list of a leaf, that a flow which may send stands in.
    pub fn ring_of(&self, flow: u32) -> usize {
        if self.leaves.used() {
            return self.leaves.list_of(flow);
        }
        let sender = &self.senders[flow as usize];
        self.ports[sender.port as usize].first_queue as usize + 1 + self.lanes + usize::from(sender.lane)
    }

    /// Takes a flow that has nothing more to send out of its ring. Answers the
    /// port to kick, if the flow control is to be told.
    #[cold]
    pub fn leave_ring(&mut self, flow: u32) -> Option<u32> {
        let (mut before, mut at) = (NONE, self.queues[self.ring_of(flow)].head);
        while at != flow {
            (before, at) = (at, self.senders[at as usize].ring_next);
        }
        self.leave_ring_behind(flow, before)
    }

    /// The same of a flow of which it is known who stands before it; [`NONE`] if
    /// it is the first.
    #[cold]
    pub fn leave_ring_behind(&mut self, flow: u32, before: u32) -> Option<u32> {
        if self.blocking.is_some() {
            self.pair_leaves(flow);
        }
        let at = self.ring_of(flow);
        let sender = &self.senders[flow as usize];
        let (port, queue) = (sender.port, 1 + self.lanes + usize::from(sender.lane));
        let after = sender.ring_next;
        let ring = &mut self.queues[at];
        if before == NONE {
            debug_assert_eq!(ring.head, flow);
            ring.head = after;
            if after == NONE {
                ring.tail = NONE;
                self.ring_emptied(port, queue, at);
            }
        } else {
            debug_assert_eq!(self.senders[before as usize].ring_next, flow);
            self.senders[before as usize].ring_next = after;
            if ring.tail == flow {
                ring.tail = before;
            }
        }
        self.senders[flow as usize].in_ring = false;
        if !self.leaves.used() {
            return None;
        }
        self.newcomer = Newcomer::Gone(flow);
        Some(port)
    }

    /// Writes down what the ends of this part's flows know of them.
    pub fn tell_flows(&mut self) {
        for (i, flow) in self.plan.flows.iter().enumerate() {
            let told = &mut self.observed.flows[i];
            if self.partition.of(flow.src) == self.part {
                (told.packets_sent, told.retransmitted) = self.senders[i].sent();
            }
            if self.partition.of(flow.dst) == self.part {
                told.delivered_bytes = self.receivers[i].delivered_bytes(flow.size, self.plan.packet.mtu);
            }
        }
    }

    /// A flow begins. Answers the port to kick.
    pub fn begin_flow(&mut self, flow: u32) -> u32 {
        self.observed.started(flow, self.now);
        if self.blocking.is_some() {
            self.path_begins(flow);
        }
        if !self.sources.is_empty() {
            self.choose_first_hop(flow);
        }
        if self.arbiter.is_some() {
            self.arbiter_begins(flow);
        }
        self.join_ring(flow);
        self.senders[flow as usize].port
    }

    /// Makes the next packet of the flow at the head of a ring.
    #[inline(always)]
    pub fn serve_ring(&mut self, port: u32, queue: usize) -> u32 {
        let at = match self.leaves.used() {
            true => self.leaves.serving(port, queue),
            false => self.ports[port as usize].first_queue as usize + queue,
        };
        let ring = &mut self.queues[at];
        let flow = ring.head;
        let sender = &mut self.senders[flow as usize];
        ring.data_packets += 1;
        let size = sender.next_size();
        let idle = sender.transport.una == sender.transport.next;
        let (psn, repeat) = sender.transport.send();
        let selective = self.selective_senders.get_mut(flow as usize);
        if repeat {
            sender.retransmitted += 1;
        } else if psn == 0 {
            self.observed.first_sent(flow, self.now);
        }
        if let Some(own) = selective {
            own.sent(&mut sender.transport, &mut self.wheel, self.now, flow, (psn, repeat));
        } else if idle {
            sender.deadline = self.now + self.plan.transport.rto;
            if !sender.timer_pending {
                sender.timer_pending = true;
                self.wheel.push(xoff_kernel::wheel::Event::new(sender.deadline, kind::TIMEOUT, flow, 0));
            }
        }
        if sender.pace != 0
            && let Some(gap) = match sender.pace {
                CONTROLLED => {
                    let packet = Departure { flow, psn, again: repeat, size };
                    self.controls.gap(self.plan, self.now, packet)
                }
                pace => Some(serialisation(u64::from(size), pace)),
            }
        {
            sender.held = true;
            let next = self.now + gap;
            self.wheel.push(xoff_kernel::wheel::Event::new(next, kind::PACE, flow, 0));
        }
        let stays = !sender.held && sender.transport.can_send();
        let (path, lane) = (sender.path, sender.lane);
        // To the back of the ring, or out of it.
        if !(stays && ring.head == ring.tail) {
            let next = sender.ring_next;
            sender.ring_next = NONE;
            sender.in_ring = stays;
            ring.head = next;
            if stays {
                let tail = std::mem::replace(&mut ring.tail, flow);
                self.senders[tail as usize].ring_next = flow;
            } else if next == NONE {
                ring.tail = NONE;
                self.ring_emptied(port, queue, at);
            }
        }
        self.observed.counters.sent += 1;
        if !self.sources.is_empty() {
            self.note_sent(port, size);
        }
        if self.arbiter.is_some() && !repeat && psn + 1 == self.receivers[flow as usize].total {
            self.arbiter_sent(flow, port, size);
        }
        self.packets.insert(Packet::new(Kind::Data, flow, psn, size, lane, path))
    }

    /// A data packet reached its receiver, which may answer. Answers the port to kick.
    #[inline]
    pub fn receive_data(&mut self, id: u32) -> Option<u32> {
        let packet = &mut self.packets[id];
        let flow = packet.flow;
        let receiver = &mut self.receivers[flow as usize];
        let psn = packet.number;
        let expected = receiver.transport.expected;
        let observed = &mut self.observed;
        observed.counters.delivered += 1;
        let notifies = packet.marked && {
            observed.flows[flow as usize].marked += 1;
            if let Some(echo) = self.echoes.get_mut(flow as usize) {
                *echo += 1;
            }
            crate::host::congestion::on_marked(self.plan, &mut self.notifications, flow, self.now)
        };
        let mut payload = u64::from(packet.size - self.plan.packet.header);
        let mut duplicate = psn < expected;
        let reply = match self.selective_receivers.get_mut(flow as usize) {
            None => receiver.transport.on_data(psn, receiver.total, self.plan.transport.ack_every),
            Some(own) => {
                let got = own.receive(self.plan, flow, psn, receiver.total);
                receiver.transport.expected = got.expected;
                (payload, duplicate) = (got.in_order, got.duplicate);
                got.reply
            }
        };
        if receiver.transport.expected > expected {
            observed.class_bytes[usize::from(receiver.class)] += payload;
            if receiver.transport.expected == receiver.total {
                observed.flows[flow as usize].delivered = Some(self.now);
                if !self.gates.is_empty() {
                    count_down(&mut self.gates, &mut self.wheel, self.plan, flow, self.now);
                }
            }
        } else if duplicate {
            observed.flows[flow as usize].spurious += 1;
        } else {
            observed.flows[flow as usize].out_of_order += 1;
        }
        let (path, lane) = (receiver.ack_path, receiver.ack_lane);
        let (kind, number, ahead) = match reply {
            Reply::Silent => {
                self.packets.remove(id);
                return if notifies { Some(self.send_cnp(flow, path, lane)) } else { None };
            }
            Reply::Ack(n) => (Kind::Ack, n, [0; 3]),
            // Nothing is lost, and what comes early is kept: no reason to repeat anything.
            Reply::Nack(n) if self.arbiter.is_some() => (Kind::Ack, n, [0; 3]),
            Reply::Nack(n) if self.selective_receivers.is_empty() => (Kind::Nack, n, [0; 3]),
            Reply::Nack(n) => (Kind::Nack, n, Packet::three_bytes(psn - n)),
        };
        // The answer takes the data packet's place.
        let marked = self.notifications.get_mut(flow as usize).is_some_and(|n| n.on_answer());
        let answer = Packet::new(kind, flow, number, self.plan.packet.ack, lane, path);
        *packet = answer;
        (packet.marked, packet.ahead) = (marked, ahead);
        if !self.labelled.is_empty() {
            self.echo_marks(id);
        }
        let port = self.hops[path as usize];
        if self.leaves.used() {
            self.newcomer = Newcomer::Answer(id);
        } else {
            self.enqueue_own(port, lane, id);
        }
        if notifies {
            self.send_cnp(flow, path, lane);
        }
        Some(port)
    }

    /// An ACK, NACK or CNP reached its sender. Answers the port to kick.
    #[inline]
    pub fn receive_answer(&mut self, id: u32) -> Option<u32> {
        let packet = self.packets[id];
        self.packets.remove(id);
        let flow = packet.flow;
        let sender = &mut self.senders[flow as usize];
        if sender.complete() {
            return None;
        }
        if packet.marked || packet.kind == Kind::Cnp {
            self.observed.flows[flow as usize].cnps += 1;
            self.controls.on_cnp(flow, self.now);
            if packet.kind == Kind::Cnp {
                return None;
            }
        }
        if packet.kind == Kind::Nack {
            self.observed.flows[flow as usize].nacks += 1;
        }
        if self.hears_answers {
            self.windows.widen(flow, sender);
        }
        let news = if let Some(own) = self.selective_senders.get_mut(flow as usize) {
            own.answered(&mut sender.transport, &mut self.wheel, self.now, &packet)
        } else if packet.kind == Kind::Nack {
            sender.transport.on_nack(packet.number)
        } else {
            sender.transport.on_ack(packet.number)
        };
        if self.hears_answers {
            self.controls.on_answer(self.now, sender, &packet, &self.telemetry, id);
            self.windows.bound(self.plan, &self.controls, self.now, flow, sender);
        }
        if news {
            sender.deadline = self.now + self.plan.transport.rto;
            if sender.complete() {
                self.observed.completed(flow, self.now);
                if self.blocking.is_some() {
                    self.path_ends(flow, id);
                }
                let sender = &self.senders[flow as usize];
                // Gone back for packets that had arrived after all.
                return if sender.in_ring { self.leave_ring(flow) } else { None };
            }
        }
        if !self.labelled.is_empty() {
            self.weigh_answer(&packet);
        }
        let sender = &mut self.senders[flow as usize];
        if sender.in_ring {
            // What it was to repeat has arrived after all, and new packets may not go.
            return if sender.transport.can_send() { None } else { self.leave_ring(flow) };
        }
        let port = sender.port;
        if self.blocking.is_some() && !sender.held && sender.transport.can_send() {
            self.source_wait_ends(flow, Some(id));
        }
        self.join_ring(flow);
        Some(port)
    }

    /// A retransmission timer went off. Answers the port to kick.
    pub fn timeout(&mut self, flow: u32) -> Option<u32> {
        let sender = &mut self.senders[flow as usize];
        if let Some(own) = self.selective_senders.get_mut(flow as usize) {
            if !own.timeout(&mut sender.transport, &mut self.wheel, self.now, flow) {
                return None;
            }
            self.observed.flows[flow as usize].timeouts += 1;
            let port = sender.port;
            if !self.labelled.is_empty() {
                self.relabel_after_timeout(flow);
            }
            self.join_ring(flow);
            return Some(port);
        }
        sender.timer_pending = false;
        if sender.complete() {
            return None;
        }
        let late = self.now >= sender.deadline;
        if late {
            if !sender.transport.on_timeout() {
                // Nothing in flight: the next packet sent arms the timer again.
                return None;
            }
            self.observed.flows[flow as usize].timeouts += 1;
            sender.deadline = self.now + self.plan.transport.rto;
        }
        let (deadline, port) = (sender.deadline, sender.port);
        sender.timer_pending = true;
        if late && !self.labelled.is_empty() {
            self.relabel_after_timeout(flow);
        }
        self.post(deadline, kind::TIMEOUT, flow, 0);
        self.join_ring(flow);
        Some(port)
    }

    /// Whether a queue pair waits in a queue that its route has chosen, so that one whose
    /// route changes has to join anew: what it waits for need not be ahead of it any more.
    pub fn queues_by_route(&self) -> bool {
        matches!(self.plan.flow_control.traits().pause_scope, PauseScope::Onward | PauseScope::Root)
    }

    /// Takes a flow that may send out of its ring for a moment: the flow control hears
    /// that it has left with the next kick of its port, and it joins again by an event of
    /// its own, at the same time.
    #[cold]
    pub fn step_aside(&mut self, flow: u32) {
        self.leave_ring(flow);
        self.senders[flow as usize].held = true;
        self.post(self.now, kind::PACE, flow, 0);
    }

    /// A flow and its ACKs go over to other routes. If it then waits at another
    /// port, it stands in no ring.
    pub fn set_route(&mut self, route: &FlowRoute) {
        self.receivers[route.flow as usize].ack_path = route.ack_path;
        self.set_data_route(route.flow, route.path);
    }

    /// The same of its data alone.
    pub fn set_data_route(&mut self, flow: u32, path: u32) {
        let port = self.hops[path as usize];
        let sender = &mut self.senders[flow as usize];
        (sender.path, sender.port) = (path, port);
        self.leaves.move_flow(flow, port);
    }

    /// A paced flow may send again. Answers the port to kick.
    pub fn pace(&mut self, flow: u32) -> u32 {
        let src = self.plan.flows[flow as usize].src;
        if self.arbiter.as_ref().is_some_and(|arbiter| !arbiter.lets(src, flow)) {
            return self.senders[flow as usize].port;
        }
        self.senders[flow as usize].held = false;
        if self.blocking.is_some() {
            self.pace_ends(flow);
        }
        self.join_ring(flow);
        self.senders[flow as usize].port
    }
}
