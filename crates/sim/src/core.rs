//! The state of every device, flat and by index, and its operations that do not call the flow control.

use crate::faults::Faults;
use crate::features::Used;
use crate::host::ends::Hosts;
use crate::indices::{self, table};
use crate::kind;
use crate::observe::Observed;
use crate::oracle::blocking::{NO_ROOT, Oracle};
use crate::outcome::Pause;
use crate::packet::{Arena, Kind, NONE};
use crate::parallel::{outbox::Outbox, partition::Partition};
use crate::switch::balancing::Chooser;
use crate::switch::egress::Egress;
use crate::switch::ingress::Ingress;
use crate::switch::link::Links;
use crate::switch::port::Queue;
use crate::switch::repairs::Repairs;
use crate::switch::telemetry::Telemetry;
use crate::tap::Taps;
use xoff_kernel::wheel::{Event, Wheel, prefetch};
use xoff_kernel::{slots::Slots, table::Table, time::Time};
use xoff_net::topology::NodeKind;
use xoff_plan::plan::{ENDS, Plan};
use xoff_schemes::flow_control::{ControlFrame, Crossing, Effect, LaneRules, Trim};

/// Bytes of ports, lanes' queues and accounts that fit into L2: up to here prefetching does not pay.
const NEAR: usize = 320 << 10;
/// Bytes of packets from which on prefetching pays: most wait in deep queues or on long links, in no cache.
pub const MANY_PACKETS: u64 = 2 << 20;
/// Prefetch distance of the data that an event names, in events …
const FETCH_FIRST: usize = 10;
/// … of the next hop of a packet that arrives …
const FETCH_HOP: usize = 7;
/// … and of the data to which that points.
const FETCH_SECOND: usize = 4;

/// Everything except the flow control's own state. Arrays are of the whole plan; a part uses its devices'.
pub struct Core<'a> {
    pub plan: &'a Plan,
    pub partition: &'a Partition,
    pub part: usize,
    pub outbox: Vec<Outbox>,
    /// By port: the part of its peer. Empty if there is one part.
    pub peer_parts: Vec<u16>,
    pub now: Time,
    pub wheel: Wheel,
    pub packets: Arena,
    /// The content of control packets, by [`Packet::number`](crate::packet::Packet::number).
    pub frames: Slots<ControlFrame>,
    pub hops: Table<&'a [u32]>,
    pub lanes: usize,
    pub features: Used,
    /// See [`NEAR`].
    pub prefetches: bool,
    pub lane_rules: Option<&'a LaneRules>,
    pub trims: Option<Trim>,
    pub egress: Egress,
    pub ingress: Ingress,
    pub hosts: Hosts,
    /// Devices that choose the next hop of each packet, if they do.
    pub chooser: Option<Box<Chooser<'a>>>,
    /// By packet; empty unless packets carry any.
    pub telemetry: Telemetry,
    /// Generation of each timer of the flow control.
    pub timers: Vec<u32>,
    /// From a control frame's arrival until it takes effect.
    pub response_time: Time,
    pub faults: Faults,
    /// The link layer, if there is one.
    pub links: Links,
    pub repairs: Repairs,
    pub observed: Observed,
    pub blocking: Option<Box<Oracle>>,
    pub taps: Taps,
}

/// Width of the wheel's buckets: shorter where more happens at once.
fn bucket_bits(plan: &Plan, parts: usize) -> u32 {
    let bits = f64::from(plan.packet.mtu + plan.packet.header) * 8.0 * parts as f64;
    let per_ps: f64 = plan
        .topology
        .hosts()
        .filter_map(|host| plan.topology.nodes[host as usize].ports.first())
        .map(|&port| plan.topology.ports[port as usize].rate as f64 / bits / 1e12)
        .sum();
    // A few packets at full load per bucket: each makes some ten events, and few hosts send at full load.
    (9..14).find(|&b| f64::from(1u32 << b) * per_ps > 1.25).unwrap_or(14)
}

impl<'a> Core<'a> {
    pub fn new(plan: &'a Plan, partition: &'a Partition, part: usize, timers: usize) -> Self {
        indices::check(plan);
        let ports = &plan.topology.ports;
        let faults = Faults::new(plan, partition);
        let telemetry = Telemetry::new(plan);
        let recorded = telemetry.used() || plan.measure.blocking;
        let egress = Egress::new(plan, partition, part, &faults, recorded);
        let hosts = Hosts::new(plan);
        let ingress = Ingress::new(plan);
        let near = size_of_val(&**egress.ports)
            + ports.len() * (1 + 2 * plan.lanes.len()) * size_of::<Queue>()
            + size_of_val(&**ingress.accounts);
        let features = Used::new(plan, &egress, &hosts, recorded);
        let mut core = Self {
            plan,
            partition,
            part,
            peer_parts: match partition.parts {
                1 => Vec::new(),
                _ => ports.iter().map(|p| partition.of(ports[p.peer as usize].node) as u16).collect(),
            },
            outbox: (0..partition.parts).map(|_| Outbox::default()).collect(),
            now: 0,
            wheel: Wheel::new(bucket_bits(plan, partition.parts)),
            packets: Arena::new(),
            frames: Slots::default(),
            hops: table(&plan.hops),
            lanes: plan.lanes.len(),
            features,
            prefetches: near > NEAR,
            lane_rules: plan.lane_rules(),
            trims: plan.flow_control.traits().trims,
            observed: Observed::new(plan, egress.ports.len(), plan.lanes.len()),
            blocking: plan.measure.blocking.then(|| Box::new(Oracle::new(plan, egress.queues.len()))),
            egress,
            ingress,
            hosts,
            chooser: Chooser::new(plan),
            telemetry,
            timers: vec![0; timers],
            response_time: plan.flow_control.traits().response_time,
            faults,
            links: Links::new(plan, |port| partition.of(ports[port as usize].node) == part),
            repairs: Repairs::default(),
            taps: Taps::default(),
        };
        core.begin_control();
        core.begin_links();
        core
    }

    #[inline(always)]
    pub fn account(&self, port: u32, lane: u8) -> usize {
        port as usize * self.lanes + usize::from(lane)
    }

    /// Records a crossing, and returns it for the flow control: `None` over a link that is down.
    #[cold]
    pub fn crosses(&mut self, account: u32, crossing: Crossing) -> Option<Crossing> {
        // Where the port is over, too, its lanes stay stopped from its own crossing on.
        match crossing {
            _ if self.ingress.rooms.get(account as usize / self.lanes).is_some_and(|room| room.over) => {}
            Crossing::Over => drop(self.observed.over_since.insert(account, self.now)),
            Crossing::Under => drop(self.observed.over_since.remove(&account)),
        }
        (!self.is_down(account / self.lanes as u32)).then_some(crossing)
    }

    #[cold]
    pub fn count_arrival(&mut self, port: u32, id: u32) {
        let packet = &self.packets[id];
        let at = self.account(port, packet.lane);
        self.ingress.received[at] += self.ingress.in_cells(packet.size);
    }

    #[inline]
    pub fn owns(&self, node: u32) -> bool {
        self.partition.of(node) == self.part
    }

    #[inline]
    pub fn post(&mut self, time: Time, kind: u8, element: u32, data: u32) {
        self.wheel.push(Event::new(time, kind, element, data));
    }

    /// Prefetches what coming events name, then, nearer to them, that to which this points. Decides nothing. A useless
    /// prefetch is cheaper than an unpredictable branch on the kind of an event.
    #[inline(always)]
    pub fn fetch_ahead(&self) {
        let queues = 1 + 2 * self.lanes;
        let Some(coming) = self.wheel.coming::<{ FETCH_FIRST + 1 }>() else { return };
        let event = &coming[FETCH_FIRST];
        let port = event.element() as usize;
        prefetch(self.packets.slots(), event.data() as usize);
        prefetch(&self.ingress.accounts, port * self.lanes);
        prefetch(&self.egress.ports, port);
        prefetch(&self.egress.queues, port * queues + 1);
        // For events that are not arrivals any packet.
        let packets = self.packets.slots();
        if let Some(packet) = packets.get(coming[FETCH_HOP].data() as usize) {
            prefetch(&self.hops, packet.hop as usize + 1);
        }
        if let Some(packet) = packets.get(coming[FETCH_SECOND].data() as usize)
            && let Some(&next) = self.hops.get(packet.hop as usize + 1)
        {
            if next < ENDS {
                prefetch(&self.egress.ports, next as usize);
                prefetch(&self.egress.queues, next as usize * queues + 1 + usize::from(packet.lane));
            } else if packet.kind == Kind::Data {
                prefetch(&self.hosts.receivers, packet.flow as usize);
            } else {
                prefetch(&self.hosts.senders, packet.flow as usize);
            }
        }
    }

    /// Appends a packet to a queue of `port`. The caller then kicks the port.
    #[inline]
    pub fn enqueue(&mut self, port: u32, queue: usize, id: u32) {
        if let Some(oracle) = &mut self.blocking {
            let p = &self.egress.ports[port as usize];
            oracle.packet_joins(p.first_queue as usize + queue, id, p.paused >> queue & 1 == 1, self.now);
        }
        self.egress.append(&mut self.packets, port, queue, id);
    }

    /// The same for an ACK of the host itself: it waits beside a queue that is part of a loop.
    #[inline(always)]
    pub fn enqueue_own(&mut self, port: u32, lane: u8, id: u32) {
        match self.egress.loops {
            0 => self.enqueue(port, 1 + usize::from(lane), id),
            _ => self.enqueue_beside(port, lane, id),
        }
    }

    #[cold]
    fn enqueue_beside(&mut self, port: u32, lane: u8, id: u32) {
        match self.egress.aside.get_mut(&(port, lane)) {
            Some(aside) => aside.push(id),
            None => self.enqueue(port, 1 + usize::from(lane), id),
        }
    }

    /// Takes the first packet of a queue that has one.
    #[inline]
    pub fn dequeue(&mut self, port: u32, queue: usize) -> u32 {
        let id = self.egress.unlink(&self.packets, port, queue);
        self.departed(port, queue, id);
        id
    }

    /// A packet was taken from a queue of `port`.
    #[inline]
    pub fn departed(&mut self, port: u32, queue: usize, id: u32) {
        if let Some(oracle) = &mut self.blocking {
            let list = self.egress.ports[port as usize].first_queue as usize + queue;
            oracle.packet_leaves(list, id, &self.packets[id], self.plan);
        }
    }

    /// Marks a packet that leaves `queue` of `port`, by the rest of the queue, if it is data and marked then.
    #[inline(always)]
    pub fn mark_leaving(&mut self, port: u32, queue: usize, id: u32) {
        if !self.egress.marks_at_dequeue || !(1..=self.lanes).contains(&queue) {
            return;
        }
        let packet = &self.packets[id];
        let lane = usize::from(packet.lane);
        let behind = self.egress.queues[self.egress.at(port, queue)].bytes;
        if let Some(red) = &self.egress.rules[lane].ecn
            && (behind > red.k_min || red.of_port)
            && red.at_dequeue
            && packet.kind == Kind::Data
            && self.egress.marks(self.plan, port, lane, behind)
        {
            self.packets[id].marked = true;
            self.observed.control[port as usize][2] += 1;
        }
    }

    /// Posts a decision for the time when the wire is free, if something may go and none is pending.
    pub fn post_decision(&mut self, port: u32) {
        let p = &mut self.egress.ports[port as usize];
        if !p.pending && p.eligible() != 0 {
            p.pending = true;
            let at = p.free_at.max(self.now);
            self.post(at, kind::DECISION, port, 0);
        }
    }

    /// A pause of a lane, or of one of its queues, from now on.
    pub fn new_pause(&mut self, port: u32, lane: u8, queue: Option<u32>) -> Pause {
        let priority = self.plan.lanes[usize::from(lane)].priority;
        let named = self.observed.named;
        let root =
            self.blocking.as_mut().map_or(NO_ROOT, |oracle| oracle.pause_begins(port, priority, named));
        Pause {
            port,
            lane,
            queue,
            from: self.now,
            until: None,
            cause: self.egress.ports[port as usize].peer,
            root: (root != NO_ROOT).then_some(root.port),
            links: root.links,
            named_root: (named != NONE).then_some(named),
        }
    }

    /// The congested port that a frame names which arrived at `port`, or [`NONE`]: of the next switch, or of the
    /// one before the host that has passed it on. Only the links decide this, not a scheme's map.
    #[inline]
    pub fn named_by(&self, port: u32, effect: Effect) -> u32 {
        let topology = &self.plan.topology;
        let named = match effect {
            Effect::Onward { port, .. } => port,
            Effect::Root { root, .. } | Effect::Merge { into: root, .. } => {
                return topology.port_at(root).unwrap_or(NONE);
            }
            _ => return NONE,
        };
        let next = topology.neighbour(port);
        let host = topology.nodes[next as usize].kind == NodeKind::Host;
        let back = self.egress.ports[port as usize].peer;
        let onward = || topology.relay_ports(next).iter().find(|&&p| p != back);
        let switch = if host { onward().map(|&p| topology.neighbour(p)) } else { Some(next) };
        switch.and_then(|switch| topology.port_at((switch, named))).unwrap_or(NONE)
    }

    /// The last position on a packet's path, up to its own, where it leaves through a port that is `sought`.
    pub fn place_before(&self, id: u32, sought: impl Fn(u32) -> bool) -> Option<u32> {
        let hops = self.hops;
        let earlier = (0..=self.packets[id].hop).rev();
        let ports = earlier.map(|hop| (hop, hops[hop as usize])).take_while(|&(_, port)| port < ENDS);
        { ports }.find(|&(_, port)| sought(port)).map(|(hop, _)| hop)
    }

    pub fn frame_of(&self, id: u32) -> &ControlFrame {
        self.frames.get(self.packets[id].number)
    }

    /// Takes the content of a control packet, and frees it.
    pub fn take_frame(&mut self, id: u32) -> ControlFrame {
        let slot = self.packets[id].number;
        self.packets.remove(id);
        self.frames.take(slot)
    }
}
