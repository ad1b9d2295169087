//! Links that fail, recover, lose and corrupt, and routes that follow.
//!
//! Each end of a link handles its own end, at the same time. What a port sends
//! is lost if the frame's transmission or flight overlaps a span in which the
//! link is down: a pure function of the plan, so that it is known when the
//! transmission begins. Such a frame arrives all the same, at a position of the
//! plan's hops that says what became of it, and is counted there.

use crate::core::{Core, kind};
use crate::engine;
use crate::outcome::DropReason;
use crate::packet::{Kind, NONE};
use crate::switch::by_flow;
use crate::switch::port::Wire;
use std::collections::BTreeSet;
use xoff_kernel::random::Stream;
use xoff_kernel::time::{Time, serialisation};
use xoff_kernel::wheel::ELEMENTS;
use xoff_plan::plan::{EXPIRE, FRAME_CORRUPTED, FRAME_LOST, Hits, LINK_DOWN, Plan};
use xoff_schemes::flow_control::{FlowControl, Scheme};

/// The element of a change of routes, behind the ports that fail or recover at that time.
pub const ROUTES: u32 = ELEMENTS - 1;

/// The faulty ports of a run; nothing in a healthy network.
#[derive(Default)]
pub struct Faults {
    /// By port: its number in `lines`. Empty in a healthy network.
    numbers: Vec<u32>,
    lines: Vec<Line>,
}

/// One direction of a link that has faults.
#[derive(Default)]
struct Line {
    /// When it is down, in order.
    spans: Vec<(Time, Time)>,
    down: bool,
    errors: Vec<Errors>,
}

/// What hits frames: a random process, but for a single one.
struct Errors {
    stream: Stream,
    hits: Hits,
    corrupts: bool,
    /// Frames, bits, or control frames that pass before the next one is hit.
    pass: u64,
}

impl Errors {
    /// Whether a frame of `size` bytes is hit.
    fn hit(&mut self, size: u32, is_control: bool) -> bool {
        let length = match self.hits {
            Hits::Frames(_) => 1,
            Hits::Bits(_) => 8 * u64::from(size),
            Hits::Control(_) => u64::from(is_control),
        };
        let hit = self.pass < length;
        // What follows a hit does not depend on how far back that was.
        self.pass = match self.hits {
            _ if !hit => self.pass - length,
            Hits::Frames(p) | Hits::Bits(p) => self.stream.geometric(p),
            Hits::Control(_) => u64::MAX,
        };
        hit
    }
}

impl Faults {
    /// The faulty ports of a plan, all up.
    pub fn new(plan: &Plan) -> Self {
        let mut faults = Self::default();
        let named = plan.faults.down.iter().map(|d| d.port).chain(plan.faults.losses.iter().map(|l| l.port));
        for port in named {
            if faults.numbers.is_empty() {
                faults.numbers = vec![NONE; plan.topology.ports.len()];
            }
            let number = &mut faults.numbers[port as usize];
            if *number == NONE {
                *number = faults.lines.len() as u32;
                faults.lines.push(Line::default());
            }
        }
        for down in &plan.faults.down {
            faults.line_mut(down.port).spans.clone_from(&down.spans);
        }
        for loss in &plan.faults.losses {
            let errors = &mut faults.line_mut(loss.port).errors;
            // Another table for the same port has a stream of its own.
            let name = ["loss", "more loss"][usize::from(!errors.is_empty())];
            let place = u64::from(loss.port) << 32 | errors.len() as u64;
            let mut stream = Stream::new(plan.seed, name, place);
            let pass = match loss.hits {
                Hits::Frames(p) | Hits::Bits(p) => stream.geometric(p),
                Hits::Control(number) => number - 1,
            };
            errors.push(Errors { stream, hits: loss.hits, corrupts: loss.corrupts, pass });
        }
        faults
    }

    /// Whether what a port sends can be lost.
    pub fn is_faulty(&self, port: u32) -> bool {
        self.numbers.get(port as usize).is_some_and(|&number| number != NONE)
    }

    fn line(&self, port: u32) -> &Line {
        &self.lines[self.numbers[port as usize] as usize]
    }

    fn line_mut(&mut self, port: u32) -> &mut Line {
        &mut self.lines[self.numbers[port as usize] as usize]
    }
}

/// What an end of a route that is no delivery says.
pub fn reason(end: u32) -> DropReason {
    match end {
        EXPIRE => DropReason::Expired,
        LINK_DOWN => DropReason::LinkDown,
        FRAME_LOST => DropReason::FrameLost,
        FRAME_CORRUPTED => DropReason::FrameCorrupted,
        _ => DropReason::Unreachable,
    }
}

/// Whether an entry of the hops says that the packet was lost on the link.
pub fn is_lost(end: u32) -> bool {
    matches!(end, LINK_DOWN | FRAME_LOST | FRAME_CORRUPTED)
}

impl Core<'_> {
    /// Whether the link of `port` is down now.
    #[inline]
    pub fn is_down(&self, port: u32) -> bool {
        self.ports[port as usize].wire >= Wire::Faulty
            && self.faults.is_faulty(port)
            && self.faults.line(port).down
    }

    /// Whether the packet that `port`, whose link has faults, begins to send and
    /// whose last bit is due at `arrival` is lost on its way. It then arrives
    /// where the plan's hops say why.
    #[cold]
    pub fn loses(&mut self, port: u32, id: u32, arrival: Time) -> bool {
        let now = self.now;
        let packet = &mut self.packets[id];
        let line = self.faults.line_mut(port);
        let next = line.spans.partition_point(|span| span.1 <= now);
        let fate = if line.spans.get(next).is_some_and(|span| span.0 < arrival) {
            Some(LINK_DOWN)
        } else {
            let mut fate = None;
            for errors in &mut line.errors {
                let hit = errors.hit(packet.size, packet.kind == Kind::Control);
                fate = fate.or(hit.then_some(if errors.corrupts { FRAME_CORRUPTED } else { FRAME_LOST }));
            }
            fate
        };
        let Some(fate) = fate else { return false };
        packet.hop = self.plan.faults.fates + (LINK_DOWN - fate) - 1;
        true
    }

    /// Whether the link of `port` has been down since the control frame arrived
    /// that takes effect now.
    #[cold]
    pub fn reset_since_arrival(&self, port: u32) -> bool {
        let spans = &self.faults.line(port).spans;
        let arrival = self.now - self.response_time;
        let next = spans.partition_point(|span| span.1 <= arrival);
        spans.get(next).is_some_and(|span| span.0 <= self.now)
    }

    /// Posts what the plan has in store.
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
pub fn happens(core: &mut Core, flow_control: &mut FlowControl, element: u32, data: u32) {
    match (element, data) {
        (ROUTES, change) => reroute(core, flow_control, change as usize),
        (port, 1) => fails(core, flow_control, port),
        (port, _) => recovers(core, flow_control, port),
    }
}

/// The link of `port` fails: its pauses end, and what waits for it is lost.
fn fails(core: &mut Core, flow_control: &mut FlowControl, port: u32) {
    core.faults.line_mut(port).down = true;
    for lane in 0..core.lanes {
        flow_control.link_failed(core, port, lane as u8);
    }
    core.ports[port as usize].paused = u64::MAX;
    purge(core, flow_control, port);
}

/// The link of `port` is up again: the flow control begins afresh.
fn recovers(core: &mut Core, flow_control: &mut FlowControl, port: u32) {
    purge(core, flow_control, port);
    core.faults.line_mut(port).down = false;
    core.ports[port as usize].paused = 0;
    // When a frame that the peer sends at once takes effect here, but for its own
    // length; the peer's serialiser may still be busy with a packet from before.
    let link = &core.plan.topology.ports[port as usize];
    let busy = serialisation(u64::from(core.plan.packet.largest()), link.rate);
    let settled = core.now + busy + link.delay + core.response_time;
    for lane in (0..core.lanes).filter(|&lane| core.egress[lane].lossless).collect::<Vec<_>>() {
        let over = core.accounts[port as usize * core.lanes + lane].over;
        flow_control.link_recovered(core, port, lane as u8, over, settled);
    }
    flow_control.link_reset(core, port);
    core.post_decision(port);
}

/// Drops everything that waits for the link of `port`, which is down. A host's
/// own flows keep what they have not sent.
#[cold]
pub fn purge(core: &mut Core, flow_control: &mut FlowControl, port: u32) {
    let first = core.ports[port as usize].first_queue as usize;
    while core.queues[first].head != NONE {
        let id = core.dequeue(port, 0);
        core.take_frame(id);
    }
    for queue in 1..=core.lanes {
        empty(core, flow_control, port, queue, DropReason::LinkDown);
    }
}

/// Drops what waits in a forwarding queue of `port`, or in its leaves.
#[cold]
pub fn empty(core: &mut Core, flow_control: &mut FlowControl, port: u32, queue: usize, reason: DropReason) {
    let at = core.ports[port as usize].first_queue as usize + queue;
    while let Some(id) = waiting(core, flow_control, port, queue) {
        let packet = core.packets[id];
        // It left the queue, but not the port.
        core.queues[at].data_packets -= u64::from(packet.kind == Kind::Data);
        let ingress = if packet.account == NONE { port } else { packet.account / core.lanes as u32 };
        engine::discard(core, ingress, id, reason, 0);
        if packet.account != NONE {
            engine::release(core, flow_control, packet.account, port, packet.size);
        }
    }
}

/// Takes a packet out of a queue of `port`, or out of its leaves: of those none is
/// paused, for the link of `port` is down.
fn waiting(core: &mut Core, flow_control: &mut FlowControl, port: u32, queue: usize) -> Option<u32> {
    let at = core.ports[port as usize].first_queue as usize + queue;
    if core.queues[at].head != NONE && !core.leaves.pulls {
        return Some(core.dequeue(port, queue));
    }
    let next = if core.leaves.used() { by_flow::drain(core, flow_control, port, queue) } else { None };
    debug_assert!(next.is_some() || core.queues[at].bytes == 0, "no leaf is left out");
    next
}

/// Routes change: flows go over to their new ones, and so do packets under way.
fn reroute(core: &mut Core, flow_control: &mut FlowControl, change: usize) {
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
    let mut rings = Rings::default();
    for route in &table.flows {
        let flow = route.flow;
        let (port, sender) = (core.hops[route.path as usize], &core.senders[flow as usize]);
        let stays = sender.port() == port && (sender.path() == route.path || !core.queues_by_route());
        if stays || !sender.ready() {
            core.set_route(route);
            continue;
        }
        rings.leave(core, flow);
        by_flow::settle_newcomer(core, flow_control);
        core.set_route(route);
        core.join_ring(flow);
        by_flow::settle_newcomer(core, flow_control);
        core.post_decision(port);
    }
}

/// The rings that a change of routes takes flows out of. Each is walked once: a
/// search for each flow would cost the square of a host's flows.
#[derive(Default)]
struct Rings {
    walked: BTreeSet<usize>,
    /// By flow: who stands before it in its ring, if that was walked. Who has joined
    /// since then stands behind all of these, and does not leave again.
    before: Vec<u32>,
}

impl Rings {
    /// Takes a flow that may send out of its ring.
    fn leave(&mut self, core: &mut Core, flow: u32) {
        let ring = core.ring_of(flow);
        if self.walked.insert(ring) {
            self.before.resize(core.senders.len(), NONE);
            let (mut last, mut at) = (NONE, core.queues[ring].head);
            while at != NONE {
                self.before[at as usize] = last;
                (last, at) = (at, core.senders[at as usize].ring_next);
            }
        }
        let before = self.before[flow as usize];
        let after = core.senders[flow as usize].ring_next;
        if after != NONE {
            self.before[after as usize] = before;
        }
        core.leave_ring_behind(flow, before);
    }
}
