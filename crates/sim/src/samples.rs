//! The data that is read during and after a run: series, and the records of ports and roots.

use crate::outcome::{PortOutcome, Quantity, RootAhead, RootsAtPort, Sample};
use crate::{switch::port::Port, world::World};
use xoff_kernel::time::{SECOND, Time};
use xoff_net::topology::NodeId;
use xoff_outcome::report::Records;
use xoff_plan::balancing::LoadBalancing;
use xoff_plan::plan::{Flow, Plan};
use xoff_schemes::flow_control::seen::Ahead;
use xoff_schemes::load_balancing::ate::report::{self, HIGH, OTHER, WEIGHT};

#[derive(Default)]
pub struct Series {
    pub samples: Vec<Sample>,
    /// At the last sample: bytes by class; bytes that left by measured port, see [`on_wire`].
    last_classes: Vec<u64>,
    last_ports: Vec<u128>,
    /// Bytes in order, by measured flow.
    last_flows: Vec<u64>,
    /// Bytes into both domains, by host that chooses the first hop of its flows.
    last_ate: Vec<[u64; 2]>,
    pub last_at: Time,
}

impl Series {
    pub fn new(plan: &Plan) -> Self {
        Self {
            last_classes: vec![0; plan.classes.len()],
            last_ports: vec![0; plan.measure.ports.len()],
            last_flows: vec![0; plan.measure.flows.len()],
            last_ate: vec![[0; 2]; if plan.ate.is_some() { plan.topology.hosts().count() } else { 0 }],
            ..Self::default()
        }
    }

    pub fn sample(&mut self, world: &World, now: Time) {
        let plan = world.plan;
        let span = now - self.last_at;
        if span == 0 {
            return;
        }
        let rate = |bytes: u64| (u128::from(bytes) * 8 * u128::from(SECOND) / u128::from(span)) as u64;
        let mut note = |what, value| self.samples.push(Sample { at: now, what, value });
        for (class, last) in self.last_classes.iter_mut().enumerate() {
            let bytes = world.cores.iter().map(|core| core.observed.class_bytes[class]).sum();
            note(Quantity::Goodput(class as u16), rate(bytes - *last));
            *last = bytes;
        }
        let paused = world.cores.iter().map(|core| core.observed.open.len() as u64).sum();
        note(Quantity::PausedQueues, paused);
        for (&port, last) in plan.measure.ports.iter().zip(&mut self.last_ports) {
            let p = world.port(port);
            let lanes = plan.lanes.len();
            let sent = on_wire(p, plan.topology.ports[port as usize].rate, now).max(*last);
            note(Quantity::Throughput(port), ((sent - *last) / u128::from(span)) as u64);
            note(Quantity::Queue(port), world.waiting_bytes(port));
            let paused = (0..lanes as u8).filter(|&lane| world.standing(port, lane).is_some());
            note(Quantity::PausedLanes(port), paused.count() as u64);
            *last = sent;
        }
        for (&flow, last) in plan.measure.flows.iter().zip(&mut self.last_flows) {
            let f = &plan.flows[flow as usize];
            if let Some(rate) = world.home(f.src).hosts.controls.rate_at(flow, now) {
                note(Quantity::Rate(flow), rate as u64);
            }
            let receiver = &world.home(f.dst).hosts.receivers[flow as usize];
            let bytes = receiver.delivered_bytes(f.size, plan.packet.mtu);
            note(Quantity::Sequence(flow), bytes);
            note(Quantity::FlowGoodput(flow), rate(bytes - *last));
            *last = bytes;
        }
        for (host, last) in (0u32..).zip(&mut self.last_ate) {
            let source = &world.home(host).hosts.sources[host as usize];
            let report = source.report(plan, now);
            // A host that never sent anything has nothing to show.
            if report.offered_bytes > 0 {
                note(Quantity::Told(host, &HIGH), rate(report.high_bytes - last[0]));
                note(Quantity::Told(host, &OTHER), rate(report.other_bytes - last[1]));
                note(Quantity::Told(host, &WEIGHT), (report.weight * 1e6) as u64);
            }
            *last = [report.high_bytes, report.other_bytes];
        }
        for node in 0..plan.topology.nodes.len() as u32 {
            let memory = world.memory(node);
            // A device that never held anything has nothing to show.
            if memory.peak > 0 {
                note(Quantity::Buffered(node), memory.used);
            }
        }
        self.last_at = now;
    }
}

/// The bits that have left a port of `rate` up to `now`, in bits times picoseconds per second, with the sent
/// part of the packet on the wire. The product is exact where bytes would have to be rounded, so the
/// difference of two never exceeds the rate; a serialisation time is rounded up, by less than a picosecond.
fn on_wire(port: &Port, rate: u64, now: Time) -> u128 {
    let begun = u128::from(port.bytes) * 8 * u128::from(SECOND);
    let ahead = u128::from(port.free_at.saturating_sub(now)) * u128::from(rate);
    begun.saturating_sub(ahead)
}

/// By flow: where the route of its data starts at the end, where senders choose or change it.
pub fn routes(world: &World) -> Option<Vec<u32>> {
    let plan = world.plan;
    let chosen = plan.ate.is_some() || matches!(plan.load_balancing, LoadBalancing::Labels(_));
    let home = |(i, f): (usize, &Flow)| world.home(f.src).hosts.senders[i].path;
    chosen.then(|| plan.flows.iter().enumerate().map(home).collect())
}

/// The records of senders that choose or change routes.
pub fn of_senders(world: &World, now: Time) -> Records {
    let plan = world.plan;
    let mut records = Records::default();
    if let Some(ate) = &plan.ate {
        let report = |host: NodeId| world.home(host).hosts.sources[host as usize].report(plan, now);
        let sources = plan.topology.hosts().map(report).collect();
        records.add(Records::of(report::Report { p: ate.params.p, sources }));
    }
    if let LoadBalancing::Labels(labels) = &plan.load_balancing {
        let with_choice = labels.flows_with_choice();
        world.cores.iter().for_each(|core| records.add(core.hosts.labelled.labellers.records(with_choice)));
    }
    records
}

/// Ports that are roots, or know of any, at this time; none if no pause is by root.
pub fn roots(world: &World) -> Vec<RootsAtPort> {
    let mut all = Vec::new();
    for port in 0..world.plan.topology.ports.len() as u32 {
        let Some(roots) = world.roots(port) else { continue };
        let bytes = |lane, queue| world.home_of_port(port).pulled_bytes(port, lane, queue);
        for lane in 0..world.lanes() as u8 {
            let is_root = roots.is_root(port, lane);
            let ahead = roots.ahead(port, lane).into_iter().map(|Ahead { root, paused, .. }| {
                let queues = roots.queues_of(port, lane, root);
                RootAhead { root, paused, bytes: queues.iter().map(|&q| bytes(lane, q)).sum(), queues }
            });
            let mut ahead: Vec<RootAhead> = ahead.collect();
            ahead.sort_by_key(|a| a.root);
            if is_root || !ahead.is_empty() {
                all.push(RootsAtPort { port, lane, is_root, output_bytes: bytes(lane, 0), ahead });
            }
        }
    }
    all
}

pub fn port_outcomes(world: &World) -> Vec<PortOutcome> {
    let of = |port| {
        let core = world.home_of_port(port);
        let &Port { packets, bytes, .. } = world.port(port);
        let [pause_frames, resume_frames, marks] = core.observed.control[port as usize];
        let queues = world.queues(port);
        let data_packets = queues.iter().map(|q| q.data_packets).sum();
        let queue_peak = queues.iter().map(|q| q.peak).max().unwrap_or(0);
        PortOutcome { packets, bytes, data_packets, queue_peak, pause_frames, resume_frames, marks }
    };
    (0..world.plan.topology.ports.len() as u32).map(of).collect()
}
