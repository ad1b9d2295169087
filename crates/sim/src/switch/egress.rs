//! Ports and their queues: waiting packets, their order, and their marking.

use crate::packet::{Arena, Kind, NONE};
use crate::switch::leaves::{HostEvent, Leaves};
use crate::switch::port::{Discipline, Port, Queue, Rounds, Wire};
use crate::{faults::Faults, indices::table, parallel::partition::Partition};
use std::collections::BTreeMap;
use xoff_kernel::{random::Stream, table::Table, wheel::prefetch};
use xoff_plan::plan::{Limit, Plan, Red};

pub struct Egress {
    pub ports: Table<Vec<Port>>,
    /// `1 + 2 lanes` of each port, in the order of ports, and then the leaves'.
    pub queues: Table<Vec<Queue>>,
    pub rounds: Rounds,
    pub discipline: Discipline,
    pub leaves: Leaves,
    pub host_event: HostEvent,
    /// By lane.
    pub rules: Table<Vec<Rule>>,
    /// By port; empty without ECN.
    marking: Vec<Stream>,
    /// By port; empty unless devices choose the packet to be cut.
    pub cuts: Vec<Stream>,
    /// By port and lane, if marking depends on the port's rate; otherwise empty.
    reds: Vec<Option<Red>>,
    pub marks_at_dequeue: bool,
    /// Whether no function is called when packets join and leave queues: there are no queues by flow, no
    /// telemetry, no blocking oracle, and the flow control lets all packets leave.
    pub plain: bool,
    /// The same while no device of this part is in a loop.
    plain_by_plan: bool,
    /// Whether the flow control decides if a packet may leave.
    pub asks_to_leave: bool,
    /// Queues of devices of this part that belong to loops which are being dissolved.
    pub loops: u32,
    /// By port and lane of such a queue: the packets beside it, in their order.
    pub aside: BTreeMap<(u32, u8), Vec<u32>>,
}

#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub limit: Limit,
    pub lossless: bool,
    pub ecn: Option<Red>,
}

impl Egress {
    /// Empty queues, of which `part` will serve those of its devices; `recorded` as in [`crate::features`].
    pub fn new(plan: &Plan, partition: &Partition, part: usize, faults: &Faults, recorded: bool) -> Self {
        let topology = &plan.topology;
        let lanes = plan.lanes.len();
        let queues_per_port = 1 + 2 * lanes;
        let mut inner = vec![false; topology.ports.len()];
        for receiver in &plan.receivers {
            inner[receiver.rx as usize] = true;
            inner[topology.ports[receiver.rx as usize].peer as usize] = true;
        }
        let port = |(i, p): (usize, &xoff_net::topology::Port)| {
            let peer = topology.ports[p.peer as usize].node;
            let wire = match () {
                () if inner[i] => Wire::Inner,
                () if faults.is_faulty(i as u32) => Wire::Faulty,
                () if partition.of(p.node) == part && partition.of(peer) != part => Wire::Away,
                () => Wire::Link,
            };
            Port::new(p.rate, p.delay, p.peer, (i * queues_per_port) as u32, p.node, wire)
        };
        let ports: Vec<Port> = topology.ports.iter().enumerate().map(port).collect();
        let traits = plan.flow_control.traits();
        let shares: Vec<_> = plan.lanes.iter().map(|l| (l.tier, l.quantum)).collect();
        let discipline = Discipline::new(&shares, traits.relay_order);
        let leaves = Leaves::new(plan, ports.len() * queues_per_port);
        let ecn = || plan.lanes.iter().filter_map(|lane| lane.ecn);
        let marks_at_dequeue = ecn().any(|red| red.at_dequeue);
        let plain = !recorded && !leaves.used() && !traits.asks_to_leave;
        let red_at = |(port, p): (u32, &xoff_net::topology::Port)| {
            let rate = p.rate;
            plan.lanes.iter().map(move |lane| match lane.ecn {
                Some(red) if !red.holds_at(topology, port) => {
                    Some(Red { k_min: u64::MAX, k_max: u64::MAX, ..red })
                }
                red => red.map(|red| red.at(rate)),
            })
        };
        let reds: Vec<Option<Red>> = match ecn().any(|red| red.per > 0 || !red.everywhere()) {
            true => (0..).zip(&topology.ports).flat_map(red_at).collect(),
            false => Vec::new(),
        };
        let rule = |(i, lane): (usize, &xoff_plan::plan::Lane)| {
            // If it differs by port, the least: a larger queue is then compared exactly.
            let least = reds.iter().skip(i).step_by(lanes).flatten().map(|r| r.k_min).min();
            let ecn = lane.ecn.map(|red| Red { k_min: least.unwrap_or(red.k_min), ..red });
            Rule { limit: lane.egress_limit, lossless: lane.lossless, ecn }
        };
        let streams = |name: &'static str| -> Vec<Stream> {
            (0..ports.len() as u64).map(|port| Stream::new(plan.seed, name, port)).collect()
        };
        Self {
            queues: table(vec![Queue::default(); ports.len() * queues_per_port + leaves.len()]),
            rounds: discipline.rounds(ports.len()),
            discipline,
            leaves,
            host_event: HostEvent::None,
            rules: table(plan.lanes.iter().enumerate().map(rule).collect()),
            marking: ecn().next().map_or_else(Vec::new, |_| streams("ECN")),
            cuts: traits.trims.and_then(|trim| trim.last).map_or_else(Vec::new, streams),
            ports: table(ports),
            reds,
            marks_at_dequeue,
            plain,
            plain_by_plan: plain,
            asks_to_leave: traits.asks_to_leave,
            loops: 0,
            aside: BTreeMap::new(),
        }
    }

    /// Where a queue of `port` is among all.
    #[inline(always)]
    pub fn at(&self, port: u32, queue: usize) -> usize {
        self.ports[port as usize].first_queue as usize + queue
    }

    /// Appends a packet to a queue of `port`, without calls to others.
    #[inline(always)]
    pub fn append(&mut self, packets: &mut Arena, port: u32, queue: usize, id: u32) {
        let p = &mut self.ports[port as usize];
        let q = &mut self.queues[p.first_queue as usize + queue];
        let packet = &mut packets[id];
        packet.next = NONE;
        q.bytes += u64::from(packet.size);
        q.peak = q.peak.max(q.bytes);
        let tail = std::mem::replace(&mut q.tail, id);
        if tail == NONE {
            q.head = id;
            p.ready |= 1 << queue;
        } else {
            packets[tail].next = id;
        }
    }

    /// Puts a packet before all others in a queue of `port`, without calls to others.
    pub fn prepend(&mut self, packets: &mut Arena, port: u32, queue: usize, id: u32) {
        let at = self.at(port, queue);
        let q = &mut self.queues[at];
        if q.head == NONE {
            return self.append(packets, port, queue, id);
        }
        let packet = &mut packets[id];
        packet.next = std::mem::replace(&mut q.head, id);
        q.bytes += u64::from(packet.size);
        q.peak = q.peak.max(q.bytes);
    }

    /// Takes the first packet of a queue that has one, without calls to others.
    #[inline(always)]
    pub fn unlink(&mut self, packets: &Arena, port: u32, queue: usize) -> u32 {
        let p = &mut self.ports[port as usize];
        let q = &mut self.queues[p.first_queue as usize + queue];
        let id = q.head;
        let packet = &packets[id];
        q.head = packet.next;
        prefetch(packets.slots(), packet.next as usize);
        q.bytes -= u64::from(packet.size);
        q.data_packets += u64::from(packet.kind == Kind::Data);
        if q.head == NONE {
            q.tail = NONE;
            p.ready &= !(1 << queue);
        }
        id
    }

    /// Whether a packet is in the group's own list of a queue for forwarded packets, before all leaves.
    #[inline(always)]
    pub fn waits_apart(&self, port: u32, queue: usize) -> bool {
        (1..=self.rules.len()).contains(&queue) && self.queues[self.at(port, queue)].head != NONE
    }

    /// Takes its first packet, without calls to others.
    #[inline(always)]
    pub fn unlink_apart(&mut self, packets: &Arena, port: u32, queue: usize) -> u32 {
        let id = self.unlink(packets, port, queue);
        self.ports[port as usize].ready |= u64::from(self.leaves.active(port, queue) > 0) << queue;
        id
    }

    /// Whether RED marks a packet of `lane` whose queue at `port` holds `queued` bytes. Relays mark nothing.
    pub fn marks(&mut self, plan: &Plan, port: u32, lane: usize, queued: u64) -> bool {
        let by_port = self.reds.get(port as usize * self.rules.len() + lane).copied().flatten();
        let Some(red) = by_port.or(self.rules[lane].ecn) else { return false };
        let queued = if red.of_port { self.backlog(port) } else { queued };
        if queued <= red.k_min || plan.topology.is_relay(self.ports[port as usize].node) {
            false
        } else if queued >= red.k_max {
            true
        } else {
            let share = (queued - red.k_min) as f64 / (red.k_max - red.k_min) as f64;
            self.marking[port as usize].unit() < red.p_max * share
        }
    }

    /// The bytes in the queues of all priorities of `port`.
    fn backlog(&self, port: u32) -> u64 {
        (1..=self.rules.len()).map(|queue| self.queues[self.at(port, queue)].bytes).sum()
    }

    /// A queue of this part joins a loop: the flow control decides about each packet.
    pub fn enters_loop(&mut self) {
        self.loops += 1;
        (self.plain, self.asks_to_leave) = (false, true);
    }

    /// One leaves its loop.
    pub fn leaves_loop(&mut self) {
        self.loops -= 1;
        if self.loops == 0 {
            (self.plain, self.asks_to_leave) = (self.plain_by_plan, false);
        }
    }
}
