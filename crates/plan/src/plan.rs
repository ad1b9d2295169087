//! The plan: everything that a run needs, as pure data.
//!
//! All quantities are resolved (bytes, picoseconds, indices). Nothing here depends on simulated time: a plan
//! can be printed, checked or run.

use crate::balancing::LoadBalancing;
use xoff_kernel::time::Time;
use xoff_net::topology::{NodeId, NodeKind, PortId, Topology};
use xoff_schemes::congestion_control::CongestionControlParams;
pub use xoff_schemes::flow_control::fabric::{Account, Buffer, ENDS, Lane, Limit, PacketFormat, Red};
use xoff_schemes::flow_control::pfc::Relay;
use xoff_schemes::flow_control::{FlowControlParams, LaneRules, Queueing};
use xoff_schemes::load_balancing::ate::AteParams;
use xoff_schemes::scheduling::PodsParams;
use xoff_schemes::transport::{FlowWindow, TransportParams};

/// In [`Plan::hops`]: the packet has reached the node where it is delivered.
pub const DELIVER: u32 = u32::MAX;
/// In [`Plan::hops`]: the packet's time to live ends here (its route loops).
pub const EXPIRE: u32 = u32::MAX - 1;

/// In [`Plan::hops`]: no path leads on from here; the packet is dropped.
pub const UNREACHABLE: u32 = u32::MAX - 2;
/// In [`Plan::hops`]: the link failed while the packet was on it.
pub const LINK_DOWN: u32 = u32::MAX - 3;
/// In [`Plan::hops`]: the link lost the packet.
pub const FRAME_LOST: u32 = u32::MAX - 4;
/// In [`Plan::hops`]: the link corrupted the packet.
pub const FRAME_CORRUPTED: u32 = u32::MAX - 5;
/// From this number on, and below all of the ends above, an entry of [`Plan::hops`] is
/// a choice among next hops; see [`crate::balancing`].
pub const CHOICES: u32 = ENDS;

#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    /// Nodes, ports and links. A slow host has two ports more than the scenario gave it: see [`Receiver`].
    pub topology: Topology,
    /// The priorities in use, served in this order: by tier, strictly; within a tier by deficit round robin.
    pub lanes: Vec<Lane>,
    /// Buffer of each node, by node; after them the separate buffers of some accounts ([`Account::pool`]).
    pub buffers: Vec<Buffer>,
    /// Ingress accounts: `accounts[port * lanes + lane]` for packets that arrive at `port`.
    pub accounts: Vec<Account>,
    /// Names of the traffic classes (the `[[traffic]]` tables), by index.
    pub classes: Vec<String>,
    /// Every flow, ordered by start time (then by position in the scenario);
    /// those that wait for a gate come after all others.
    pub flows: Vec<Flow>,
    /// The conditions that flows wait for, besides their start time; see [`Gate`].
    pub gates: Vec<Gate>,
    /// Classes of traffic whose flows are collective operations.
    pub jobs: Vec<Job>,
    /// Pool of routes. A route is a run of egress ports, from the sender's NIC on, that ends in [`DELIVER`],
    /// [`EXPIRE`] or [`UNREACHABLE`], or goes on at a choice ([`CHOICES`]).
    pub hops: Vec<u32>,
    pub load_balancing: LoadBalancing,
    /// How packets change their lane by the routing: virtual channels.
    pub channels: Option<LaneRules>,
    pub packet: PacketFormat,
    pub flow_control: FlowControlParams,
    /// What repairs links, if something does.
    pub link_layer: Option<xoff_schemes::link_layer::Params>,
    pub transport: TransportParams,
    /// By flow, where each flow has its own; else empty.
    pub windows: Vec<FlowWindow>,
    pub congestion_control: CongestionControlParams,
    /// Hosts that consume received data slowly, or not at all for a while.
    pub receivers: Vec<Receiver>,
    /// When the run ends: `None` runs until every flow has completed.
    pub end: Option<Time>,
    /// What is recorded in addition to flows.
    pub measure: Measure,
    pub faults: Faults,
    /// Where the flow control reroutes: positions in [`Plan::hops`], each with another one of the same
    /// device from which its packets come to the same host; ordered by the first. Else empty.
    pub detours: Vec<(u32, u32)>,
    /// Sources choose the first hop of their flows, if they do.
    pub ate: Option<Ate>,
    /// The arbiter that decides which flows send, if there is one: only without a congestion
    /// control or a pace.
    pub arbiter: Option<Arbiter>,
    /// Pods without buffers, if there are any: then lanes, buffers, accounts, transport and
    /// congestion control say nothing.
    pub pods: Option<PodsParams>,
}

impl Plan {
    /// Where the other one of a flow's two routes starts in [`Plan::hops`], if its
    /// source chooses between them: its data may take it instead of [`Flow::path`].
    pub fn other_route(&self, flow: u32) -> Option<u32> {
        let [high, other] = self.ate.as_ref()?.routes[flow as usize];
        let path = self.flows[flow as usize].path;
        (high != other).then_some(if path == high { other } else { high })
    }

    fn ack_queue(&self) -> AckQueue {
        let own = match self.flow_control.traits().queueing {
            Queueing::PerLane => false,
            Queueing::Numbered { acks, .. } => !acks,
            Queueing::PerFlow => true,
        };
        if own || self.flows.iter().any(|f| f.ack_lane != f.lane) { AckQueue::Own } else { AckQueue::Data }
    }

    /// What another run should have in common with this one, if both are compared; `None` for pods without
    /// buffers.
    pub fn setup(&self) -> Option<Setup> {
        if self.pods.is_some() {
            return None;
        }
        let reacts = self.reacts_to_marks();
        let mut marking = Vec::new();
        for ecn in self.lanes.iter().filter_map(|lane| lane.ecn).filter(|_| reacts) {
            if !marking.contains(&ecn) {
                marking.push(ecn);
            }
        }
        let nodes = self.topology.nodes.iter().zip(&self.buffers);
        let switches = nodes.filter(|(node, _)| node.kind == NodeKind::Switch);
        let mut buffers: Vec<u64> = switches.map(|(_, buffer)| buffer.total).collect();
        buffers.sort_unstable();
        buffers.dedup();
        let congestion_control = self.congestion_control;
        Some(Setup { acks: self.ack_queue(), marking, buffers, congestion_control })
    }

    /// Whether senders slow down for ECN marks, which ACKs or CNPs report to them.
    pub fn reacts_to_marks(&self) -> bool {
        self.congestion_control.reads_marks() || self.transport.kind.reads_marks()
    }

    /// Whether `node` passes on the pauses that it receives, as a host ([`Relay::Blind`]) or as a relay in a
    /// long link ([`Relay::Mirror`]): while one of its ports is paused, it pauses the senders to all others.
    pub fn passes_pauses_on(&self, node: NodeId) -> bool {
        match self.flow_control.pfc().map(|pfc| pfc.relay) {
            Some(Relay::Blind) => !self.topology.relay_ports(node).is_empty(),
            Some(Relay::Mirror { .. }) => self.topology.is_relay(node),
            Some(Relay::Accounts) | None => false,
        }
    }

    /// The nodes that do so, in order.
    pub fn passing_on(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..self.topology.nodes.len() as NodeId).filter(|&node| self.passes_pauses_on(node))
    }

    /// The lane that a packet of `lane` goes on in at a device that it came to through port `ingress` and
    /// leaves through port `egress`. It is charged to `lane` there, and waits in this one.
    pub fn onward_lane(&self, lane: u8, ingress: PortId, egress: PortId) -> u8 {
        self.lane_rules().map_or(lane, |rules| rules.onward(lane, ingress, egress))
    }

    /// How packets change their lane, by the routing or by the flow control.
    pub fn lane_rules(&self) -> Option<&LaneRules> {
        self.channels.as_ref().or_else(|| self.flow_control.lane_rules())
    }

    /// Whether senders label each packet by itself.
    pub fn labels_packets(&self) -> bool {
        self.labels().is_some_and(|labels| labels.rule.each_packet())
    }

    /// Whether packets may take non-minimal paths: see [`xoff_net::routing::Router::non_minimal`].
    pub fn is_non_minimal(&self) -> bool {
        matches!(&self.load_balancing, LoadBalancing::Packets(choices) if choices.rule.is_non_minimal())
    }
}

/// What runs that are compared should have in common: what is neither their traffic nor their subject.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    pub acks: AckQueue,
    /// Where packets are marked; empty if no sender reacts to marks.
    pub marking: Vec<Red>,
    /// The sizes of the buffers of switches, in bytes, each once.
    pub buffers: Vec<u64>,
    pub congestion_control: CongestionControlParams,
}

/// Where ACKs wait in switches and hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckQueue {
    /// In the queues of data.
    Data,
    /// In queues of their own: by their priority, or because the flow control serves them first.
    Own,
}

/// A flow (a message of one queue pair).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    pub src: NodeId,
    /// Receiver, never the sender.
    pub dst: NodeId,
    /// Payload bytes, at least 1.
    pub size: u64,
    /// When the sender may begin. Of a flow after a gate: a time before which the gate cannot open.
    pub start: Time,
    /// The gate that it waits for, an index into [`Plan::gates`].
    pub after: Option<u32>,
    /// The gate that its complete delivery counts towards.
    pub opens: Option<u32>,
    pub class: u16,
    pub lane: u8,
    pub ack_lane: u8,
    /// Start of its route in [`Plan::hops`]; [`Faults::reroutes`] may change it.
    pub path: u32,
    /// Start of its ACKs' route in [`Plan::hops`].
    pub ack_path: u32,
    /// Paced at this many bits per second; 0 is line rate.
    pub pace: u64,
    /// Completion time (last ACK at the sender) of the same packets, without other traffic, in the intact
    /// network, in picoseconds; stalls and the window not considered. 0 if its packets or ACKs expire on
    /// their path, so that it cannot complete.
    pub ideal: Time,
}

/// Asymmetric traffic engineering: when a flow begins, its source chooses whether
/// its data go over layer 0 (the high-bandwidth domain) first, or over layer 1.
/// Layer 0 is that of a host's port 0. ACKs have one route.
#[derive(Clone, Debug, PartialEq)]
pub struct Ate {
    pub params: AteParams,
    /// By flow: starts of its routes in [`Plan::hops`], over layer 0 first and over
    /// layer 1 first. One of them is [`Flow::path`]; both are where there is no choice.
    pub routes: Vec<[u32; 2]>,
}

/// A dependency between flows: when the last of the deliveries and gates that it waits for is there, its
/// flows begin. Everything about it happens at one host, which is the receiver of the flows that open it and
/// the sender of those that wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Index of the traffic table.
    pub class: u16,
    pub host: NodeId,
    /// How many flows (those whose [`Flow::opens`] names it) and gates (those whose [`Gate::then`] does) open
    /// it. With 0 it opens `delay` after `start`.
    pub waits: u32,
    /// It waits until then, too.
    pub start: Time,
    /// From the last byte of the last delivery until it opens, in picoseconds: the host computes in this time.
    pub delay: Time,
    /// The flows that wait (those whose [`Flow::after`] names it), in the order in which they begin.
    pub flows: Vec<u32>,
    /// The gates of the same host that wait for it, each of a higher index.
    pub then: Vec<u32>,
}

/// The collective operations of a class of traffic, and its iterations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub class: u16,
    /// What its operations are called.
    pub names: Vec<String>,
    pub operations: Vec<Operation>,
    /// The gates that open at the ends of iterations, such as training steps: of each iteration, one for each
    /// host.
    pub iterations: Vec<Vec<u32>>,
}

/// A collective operation of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Index into [`Job::names`].
    pub name: usize,
    /// How many hosts take part.
    pub hosts: u32,
    /// Bytes of the buffer: of each host's where all-reduce or all-to-all, of the whole where all-gather or
    /// reduce-scatter.
    pub size: u64,
    /// Its flows, ascending.
    pub flows: Vec<u32>,
}

/// What gates still wait for.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    /// By gate: how many are missing, and when the last one of the others came.
    left: Vec<(u32, Time)>,
}

impl Waits {
    pub fn new(gates: &[Gate]) -> Self {
        Self { left: gates.iter().map(|gate| (gate.waits, gate.start)).collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Calls `open` with the gates that depend on no delivery, and when they open.
    pub fn begin(&mut self, gates: &[Gate], open: &mut dyn FnMut(u32, Time)) {
        for gate in (0..).zip(gates).filter(|(_, gate)| gate.waits == 0).map(|(gate, _)| gate) {
            self.opened(gates, gate, open);
        }
    }

    /// The last byte of a delivery that `gate` waits for comes at `at`. Calls `open` with each gate that waits
    /// for no other delivery, and when it opens: at `at` or later.
    pub fn count_down(&mut self, gates: &[Gate], gate: u32, at: Time, open: &mut dyn FnMut(u32, Time)) {
        if self.came(gate, at) {
            self.opened(gates, gate, open);
        }
    }

    /// Whether it was the last one.
    fn came(&mut self, gate: u32, at: Time) -> bool {
        let (left, last) = &mut self.left[gate as usize];
        *left -= 1;
        *last = at.max(*last);
        *left == 0
    }

    fn opened(&mut self, gates: &[Gate], gate: u32, open: &mut dyn FnMut(u32, Time)) {
        let mut next = vec![gate];
        while let Some(gate) = next.pop() {
            let Gate { delay, ref then, .. } = gates[gate as usize];
            let at = self.left[gate as usize].1.saturating_add(delay);
            open(gate, at);
            next.extend(then.iter().copied().filter(|&then| self.came(then, at)));
        }
    }
}

/// A slow receiver. Packets for the host wait in its own memory, charged to the ingress that they came
/// through, until the host consumes them: an inner port `rx` (rate = the host's reading speed, no delay)
/// sends them to its peer, an inner sink port of the same host, where they are delivered. Routes to the host
/// end with `rx`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receiver {
    pub host: NodeId,
    pub rx: PortId,
    /// Spans `[from, until)` in which it consumes nothing, ordered and apart.
    pub stalls: Vec<(Time, Time)>,
}

/// What is recorded in addition to flows.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Measure {
    /// Distance of samples; `None` records no series.
    pub interval: Option<Time>,
    /// Ports whose egress queue and throughput are sampled.
    pub ports: Vec<PortId>,
    /// Whether the head-of-line blocking oracle watches.
    pub blocking: bool,
    /// Whether the oracle keeps the critical path of each flow; only if it watches.
    pub explain: bool,
    /// Flows whose rate is sampled, by index into [`Plan::flows`].
    pub flows: Vec<u32>,
}

/// Faults of links, and the changes of routes after them.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Faults {
    /// Ports whose link fails, by port; both ends of a link are there.
    pub down: Vec<Down>,
    /// Ports whose frames are lost or corrupted, by port.
    pub losses: Vec<Loss>,
    /// Changes of routes, in the order of time, all after time 0. (Links that are down at time 0 are not in
    /// the flows' routes.)
    pub reroutes: Vec<Reroute>,
    /// The effects of the changes of routes; several changes may share one.
    pub tables: Vec<Rerouting>,
    /// Where [`Plan::hops`] holds the ends of packets that a link did not deliver: [`LINK_DOWN`],
    /// [`FRAME_LOST`], [`FRAME_CORRUPTED`].
    pub fates: u32,
}

/// When the link of a port is down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Down {
    pub port: PortId,
    /// Spans `[from, until)`, in order, with a gap between each two; the last
    /// one may end at `Time::MAX`: never.
    pub spans: Vec<(Time, Time)>,
}

/// Random loss or corruption of packets and frames that a port sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    pub port: PortId,
    pub hits: Hits,
    /// Whether the frame arrives and is discarded, rather than vanishes.
    pub corrupts: bool,
    /// Frames can be hit whose transmission begins from the first time on, and before the second one.
    pub span: (Time, Time),
}

/// Which frames of a port are lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Hits {
    /// Each one with this probability: above 0, up to 1.
    Frames(f64),
    /// Each one with this probability for each of its bits.
    Bits(f64),
    /// The so-manyth one of the flow control, from 1 on, and no other.
    Control(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reroute {
    /// When it takes place, at all devices.
    pub at: Time,
    /// Index into [`Faults::tables`].
    pub table: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Rerouting {
    /// Routes of flows and of their ACKs from now on, by flow.
    pub flows: Vec<FlowRoute>,
    /// Where senders label their packets: the routes of some labels from now on, by flow and label. Their flows are
    /// among `flows`.
    pub labels: Vec<LabelRoute>,
    /// For packets in flight: positions in [`Plan::hops`], old and new, ordered by the old one. A position
    /// that is not listed stays. The new one names the same port (where the packet waits, or which sent it
    /// last); the ports after it lead to the destination by the new routes.
    pub positions: Vec<(u32, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRoute {
    /// Index into [`Plan::flows`].
    pub flow: u32,
    /// As [`Flow::path`].
    pub path: u32,
    /// As [`Flow::ack_path`].
    pub ack_path: u32,
}

/// The routes of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LabelRoute {
    /// Index into [`Plan::flows`].
    pub flow: u32,
    pub label: u32,
    /// As [`Flow::path`].
    pub path: u32,
    /// As [`Flow::ack_path`]; `None` if answers have no label.
    pub ack_path: Option<u32>,
}

impl Faults {
    /// When the last loss that ends has ended; 0 if there is none.
    pub fn losses_end(&self) -> Time {
        let ends = self.losses.iter().map(|loss| loss.span.1).filter(|&end| end < Time::MAX);
        ends.max().unwrap_or(0)
    }

    /// Routes of data after changes: the flow, and where the route starts in [`Plan::hops`].
    pub fn later_routes(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.tables.iter().flat_map(|table| {
            let flows = table.flows.iter().map(|route| (route.flow, route.path));
            flows.chain(table.labels.iter().map(|route| (route.flow, route.path)))
        })
    }

    /// Likewise routes of ACKs.
    pub fn later_ack_routes(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.tables.iter().flat_map(|table| {
            let flows = table.flows.iter().map(|route| (route.flow, route.ack_path));
            flows.chain(table.labels.iter().filter_map(|route| Some((route.flow, route.ack_path?))))
        })
    }
}

/// An arbiter that knows all flows, and decides at once: shortest remaining first, one for each
/// source and each destination. An upper bound, and no scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arbiter {
    /// As in the simulator YAPS: only a flow that loses its destination resumes, and a destination is free
    /// when the last packet for it begins to leave its source.
    Srpt,
    /// A matching: who loses either stops, and both ends are free when that packet has left.
    SrptStrict,
}
