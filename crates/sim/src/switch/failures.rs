//! Failures and recoveries of links, and changes of routes.

use crate::core::Core;
use crate::faults::ROUTES;
use crate::features::All;
use crate::kind;
use crate::outcome::DropReason;
use crate::packet::{Kind, NONE};
use crate::switch::by_flow::{drain, report_host_event};
use crate::switch::drops::discard;
use crate::switch::port::Wire;
use crate::switch::release::release;
use std::collections::BTreeSet;
use xoff_kernel::time::{Time, serialisation};
use xoff_kernel::wheel::Event;
use xoff_plan::plan::{FRAME_CORRUPTED, FRAME_LOST, LINK_DOWN};
use xoff_schemes::flow_control::{FlowControl, Scheme};

impl Core<'_> {
    /// Whether the link of `port` is down now.
    #[inline]
    pub fn is_down(&self, port: u32) -> bool {
        self.egress.ports[port as usize].wire >= Wire::Faulty
            && self.faults.is_faulty(port)
            && self.faults.line(port).down
    }

    /// Whether a packet that `port`, whose link has faults, begins to send is lost before its last bit is due
    /// at `arrival`. It then arrives where the plan's hops have the reason.
    #[cold]
    pub fn loses(&mut self, port: u32, id: u32, arrival: Time) -> bool {
        let packet = &self.packets[id];
        let fate = self.fate(port, packet.size, packet.kind == Kind::Control, arrival);
        let Some(fate) = fate else { return false };
        self.packets[id].hop = self.hop_of(fate);
        true
    }

    /// Why a frame of `size` bytes, which `port` begins to send now, does not arrive well; `None` if it does.
    #[cold]
    pub fn fate(&mut self, port: u32, size: u32, is_control: bool, arrival: Time) -> Option<u32> {
        if !self.faults.is_faulty(port) {
            return None;
        }
        let now = self.now;
        let line = self.faults.line_mut(port);
        let next = line.spans.partition_point(|span| span.1 <= now);
        if line.spans.get(next).is_some_and(|span| span.0 < arrival) {
            return Some(LINK_DOWN);
        }
        let mut fate = None;
        for errors in &mut line.errors {
            let hit = errors.hit(size, is_control, now);
            fate = fate.or(hit.then_some(if errors.corrupts { FRAME_CORRUPTED } else { FRAME_LOST }));
        }
        fate
    }

    /// Whether the link of `port` has been down since the control frame arrived that takes effect now.
    #[cold]
    pub fn reset_since_arrival(&self, port: u32) -> bool {
        let spans = &self.faults.line(port).spans;
        let arrival = self.now - self.response_time;
        let next = spans.partition_point(|span| span.1 <= arrival);
        spans.get(next).is_some_and(|span| span.0 <= self.now)
    }

    /// The device at the other end of `port` has died: the link fails at `at`, or now if that is later. Frames
    /// that are on the link then are lost.
    #[cold]
    pub fn cut(&mut self, port: u32, at: Time) {
        let at = at.max(self.now + 1);
        self.faults.line_mut(port).cut(at);
        self.post(at, kind::FAULT, port, 1);
        let arrives = |e: &&Event| e.kind() == kind::ARRIVAL && e.element() == port && e.time > at;
        for id in self.wheel.pending().filter(arrives).map(|event| event.data()).collect::<Vec<_>>() {
            self.packets[id].hop = self.hop_of(LINK_DOWN);
        }
    }

    /// Whether a frame whose last bit is due at `port` at `arrival` is lost, because the sender died.
    pub fn is_cut(&self, port: u32, arrival: Time) -> bool {
        self.faults.is_faulty(port) && self.faults.line(port).cut < arrival
    }

    /// Where a packet arrives that a link did not deliver.
    pub fn hop_of(&self, fate: u32) -> u32 {
        self.plan.faults.fates + (LINK_DOWN - fate) - 1
    }

    /// Posts the plan's events.
    pub fn post_faults(&mut self) {
        for down in &self.plan.faults.down {
            if !self.owns(self.plan.topology.ports[down.port as usize].node) {
                continue;
            }
            for &(from, until) in &down.spans {
                self.post(from, kind::FAULT, down.port, 1);
                if until < Time::MAX {
                    self.post(until, kind::FAULT, down.port, 0);
                }
            }
        }
        for (i, change) in self.plan.faults.reroutes.iter().enumerate() {
            self.post(change.at, kind::FAULT, ROUTES, i as u32);
        }
    }
}

/// A link fails or recovers, or routes change.
#[cold]
pub fn happens(core: &mut Core, scheme: &mut FlowControl, element: u32, data: u32) {
    match (element, data) {
        (ROUTES, change) => reroute(core, scheme, change as usize),
        (port, 1) => fails(core, scheme, port),
        (port, _) => recovers(core, scheme, port),
    }
}

/// The link of `port` fails: its pauses end, and packets that wait for it are lost.
fn fails(core: &mut Core, scheme: &mut FlowControl, port: u32) {
    // A cut may come while it is down.
    if std::mem::replace(&mut core.faults.line_mut(port).down, true) {
        return;
    }
    for lane in 0..core.lanes {
        scheme.link_failed(core, port, lane as u8);
    }
    core.egress.ports[port as usize].paused = u64::MAX;
    purge(core, scheme, port);
}

/// The link of `port` is up again: the flow control begins afresh.
fn recovers(core: &mut Core, scheme: &mut FlowControl, port: u32) {
    if core.faults.line(port).cut <= core.now {
        return;
    }
    purge(core, scheme, port);
    core.faults.line_mut(port).down = false;
    core.egress.ports[port as usize].paused = 0;
    // When a frame that the peer sends at once takes effect here, but for its own length; the peer's
    // serialiser may still be busy with a packet from before.
    let link = &core.plan.topology.ports[port as usize];
    let busy = serialisation(u64::from(core.plan.packet.largest()), link.rate);
    let settled = core.now + busy + link.delay + core.response_time;
    for lane in (0..core.lanes).filter(|&lane| core.egress.rules[lane].lossless).collect::<Vec<_>>() {
        let over = core.ingress.accounts[port as usize * core.lanes + lane].over;
        scheme.link_recovered(core, port, lane as u8, over, settled);
    }
    scheme.link_reset(core, port);
    core.post_decision(port);
}

/// Drops all packets that wait for the link of `port`, which is down. A host's own flows keep unsent packets.
#[cold]
pub fn purge(core: &mut Core, scheme: &mut FlowControl, port: u32) {
    let first = core.egress.ports[port as usize].first_queue as usize;
    while core.egress.queues[first].head != NONE {
        let id = core.dequeue(port, 0);
        core.take_frame(id);
    }
    for queue in 1..=core.lanes {
        empty(core, scheme, port, queue, DropReason::LinkDown);
    }
}

/// Drops the packets in a forwarding queue of `port`, or in its leaves.
#[cold]
pub fn empty(core: &mut Core, scheme: &mut FlowControl, port: u32, queue: usize, reason: DropReason) {
    let at = core.egress.at(port, queue);
    while let Some(id) = waiting(core, scheme, port, queue) {
        let packet = core.packets[id];
        // It left the queue, but not the port.
        core.egress.queues[at].data_packets -= u64::from(packet.kind == Kind::Data);
        let ingress = if packet.account == NONE { port } else { packet.account / core.lanes as u32 };
        discard(core, ingress, id, reason, 0);
        if packet.account != NONE {
            release::<All>(core, scheme, packet.account, port, packet.size);
        }
    }
}

/// Takes a packet out of a queue of `port`, or of its leaves: none is paused, for the link is down.
fn waiting(core: &mut Core, scheme: &mut FlowControl, port: u32, queue: usize) -> Option<u32> {
    let at = core.egress.at(port, queue);
    if core.egress.queues[at].head != NONE && !core.egress.leaves.pulls {
        return Some(core.dequeue(port, queue));
    }
    let next = if core.egress.leaves.used() { drain(core, scheme, port, queue) } else { None };
    debug_assert!(next.is_some() || core.egress.queues[at].bytes == 0, "no leaf is left out");
    next
}

/// Routes change: flows change to their new ones, and so do packets in flight.
fn reroute(core: &mut Core, scheme: &mut FlowControl, change: usize) {
    let plan = core.plan;
    let table = &plan.faults.tables[plan.faults.reroutes[change].table as usize];
    for packet in core.packets.slots_mut() {
        if matches!(packet.kind, Kind::Free | Kind::Control) {
            continue;
        }
        if let Ok(at) = table.positions.binary_search_by_key(&packet.hop, |p| p.0) {
            packet.hop = table.positions[at].1;
        }
    }
    core.hosts.labelled.reroute(plan, &table.labels);
    let mut rings = Rings::default();
    for &(mut route) in &table.flows {
        let flow = route.flow;
        route.path = core.hosts.labelled.current_route(plan, flow).unwrap_or(route.path);
        let (port, sender) = (core.hops[route.path as usize], &core.hosts.senders[flow as usize]);
        let stays = sender.port == port && (sender.path == route.path || !core.queues_by_route());
        if stays || !sender.in_ring {
            core.set_route(&route);
            continue;
        }
        rings.leave(core, flow);
        report_host_event(core, scheme);
        core.set_route(&route);
        core.join_ring(flow);
        report_host_event(core, scheme);
        core.post_decision(port);
    }
}

/// The rings that a change of routes takes flows out of, each walked once, not once for each flow.
#[derive(Default)]
struct Rings {
    walked: BTreeSet<usize>,
    /// By flow: its predecessor in a walked ring. Flows that join later come after these, and stay.
    before: Vec<u32>,
}

impl Rings {
    /// Takes a flow that may send out of its ring.
    fn leave(&mut self, core: &mut Core, flow: u32) {
        let ring = core.ring_of(flow);
        if self.walked.insert(ring) {
            self.before.resize(core.hosts.senders.len(), NONE);
            let (mut last, mut at) = (NONE, core.egress.queues[ring].head);
            while at != NONE {
                self.before[at as usize] = last;
                (last, at) = (at, core.hosts.senders[at as usize].ring_next);
            }
        }
        let before = self.before[flow as usize];
        let after = core.hosts.senders[flow as usize].ring_next;
        if after != NONE {
            self.before[after as usize] = before;
        }
        core.leave_ring_behind(flow, before);
    }
}
