//! The fabric of a scenario, as plain data: sizes of packets, lanes, buffers and accounts.

use super::keys::{Complaint, LARGEST, LARGEST_ALLOWED, Setting, bytes};
#[cfg(doc)]
use super::seam::LaneRules;
use super::seam::{Headroom, LinkFacts};
use std::collections::BTreeSet;
use xoff_kernel::random::Stream;
use xoff_kernel::time::Time;
use xoff_net::topology::{NodeId, NodeKind, Port, PortId, Topology};
use xoff_net::units::Bytes;

/// From this number on an entry of [`Routes::hops`] is an end or a choice; below it, a port.
pub const ENDS: u32 = 1 << 31;

/// An account that nothing is ever charged to, or that is bounded by egress queues only.
pub const UNBOUNDED: Account =
    Account { reserve: 0, limit: Limit::Unlimited, resume: 0, resume_offset: 0, headroom: None, pool: None };

/// The fabric for which parameters are resolved.
pub struct Fabric<'f> {
    /// Nodes, ports and links; inner ports of slow hosts come last.
    pub topology: &'f Topology,
    /// The priorities in use, in the order of service.
    pub lanes: &'f [Lane],
    /// By node; then the pools of accounts.
    pub buffers: &'f [Buffer],
    /// Slow hosts, and the inner port by which each reads.
    pub receivers: &'f [(NodeId, PortId)],
    pub routes: &'f Routes<'f>,
    pub fails: bool,
    /// Links lose or corrupt frames.
    pub loses: bool,
    /// When the last stall of a receiver ends, and the last failure that does; 0 without them.
    pub last_end: Time,
    /// The result of [`Keys::tags`](super::keys::Keys::tags).
    pub tags: Option<Layout>,
}

/// The priorities of a scenario with tags.
#[derive(Clone, Debug)]
pub struct Layout {
    /// By port; see [`LaneRules::turns`].
    pub turns: Vec<u8>,
    pub lossless: BTreeSet<u8>,
    /// Lossless tags of a packet.
    pub count: u8,
    /// As many as the routes need.
    pub needed: u8,
    /// As many as all shortest paths need.
    pub all_routes: Option<u8>,
    /// Where packets go whose tag has grown beyond the last one.
    pub lossy: u8,
}

pub struct Routes<'r> {
    /// Pool of routes: runs of egress ports, each with its end.
    pub hops: &'r [u32],
    /// Each flow's, and then those after failures.
    pub flows: Vec<Route>,
    /// For packets in flight when links fail: old and new positions in `hops`.
    pub moved: Vec<(u32, u32)>,
}

#[derive(Clone, Copy, Debug)]
pub struct Route {
    pub src: NodeId,
    pub dst: NodeId,
    /// Where the route of its data begins in [`Routes::hops`].
    pub path: u32,
    /// Where the route of its ACKs begins.
    pub ack_path: u32,
    /// It is taken after a failure.
    pub later: bool,
}

/// Memory of a switch whose size is not given: 32 MB per 100 Gbit/s of its fastest port.
pub fn default_switch(topology: &Topology, node: NodeId) -> u64 {
    let ports = &topology.nodes[node as usize].ports;
    ports.iter().map(|&p| topology.ports[p as usize].rate).max().unwrap_or(0) / 3_125
}

/// Whether `node` watches its queues: switches do, and hosts that relay. The NIC of a plain host does not.
pub fn watches(topology: &Topology, node: NodeId) -> bool {
    let own = |&&port: &&PortId| topology.neighbour(port) != node;
    let n = &topology.nodes[node as usize];
    match n.kind {
        NodeKind::Switch => true,
        NodeKind::Host => topology.relay_hosts && n.ports.iter().filter(own).count() > 1,
    }
}

/// A priority in use and how egress queues treat it.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// 802.1p priority, 0 to 7.
    pub priority: u8,
    /// Tiers are served strictly, the lowest number first.
    pub tier: u8,
    /// Deficit round robin within the tier: bytes per turn.
    pub quantum: u32,
    /// Paused instead of dropped.
    pub lossless: bool,
    /// Most bytes that one egress queue of this lane may hold.
    pub egress_limit: Limit,
    /// RED marking on the egress queue.
    pub ecn: Option<Red>,
}

/// A bound on a queue or an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// None but the buffer itself.
    Unlimited,
    /// So many bytes.
    Static(u64),
    /// α times the free bytes of the shared pool, with α in 1/65536, and at most `cap` bytes.
    Dynamic { alpha_q16: u64, cap: u64 },
}

/// ECN marking: none up to `k_min` bytes, then linearly up to `p_max` at `k_max`, then all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Red {
    /// Bytes.
    pub k_min: u64,
    /// Bytes, at least `k_min`.
    pub k_max: u64,
    /// Probability at `k_max`, 0 to 1.
    pub p_max: f64,
    /// The lengths are for a port of this rate in bits per second, and in
    /// proportion for others; 0: they hold for every port.
    pub per: u64,
    /// A packet is marked when it leaves the queue, by the rest of the queue, not when it joins it.
    pub at_dequeue: bool,
    /// The bytes of all priorities at the port count, not only those of the packet's.
    pub of_port: bool,
    /// Ports that lead to hosts mark, too.
    pub last_hop: bool,
    /// The ports of hosts mark, too.
    pub hosts: bool,
}

impl Red {
    /// The marking at a port of `rate` bits per second; lengths are rounded down.
    pub fn at(self, rate: u64) -> Self {
        if self.per == 0 {
            return self;
        }
        let product = |k: u64| u128::from(k) * u128::from(rate);
        let scaled = |k: u64| u64::try_from(product(k) / u128::from(self.per)).unwrap_or(u64::MAX);
        Self { k_min: scaled(self.k_min), k_max: scaled(self.k_max), per: 0, ..self }
    }

    /// Whether every port marks.
    pub fn everywhere(&self) -> bool {
        self.last_hop && self.hosts
    }

    pub fn holds_at(&self, topology: &Topology, port: PortId) -> bool {
        let of_host = || topology.nodes[topology.ports[port as usize].node as usize].kind == NodeKind::Host;
        (self.last_hop || !topology.leads_to_host(port)) && (self.hosts || !of_host())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// All of it, in bytes.
    pub total: u64,
    /// The bytes that the accounts share: the total less every account's headroom, reserve and one packet
    /// (the one that crosses the threshold).
    pub shared: u64,
}

/// Buffers by node, and accounts by port and lane.
pub type Memory = (Vec<Buffer>, Vec<Account>);

/// The account of one ingress port for one lane.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// Guaranteed bytes, outside the shared pool.
    pub reserve: u64,
    /// Beyond the reserve: where the account is over its threshold (XOFF).
    pub limit: Limit,
    /// The account is under its threshold again (XON) at this many bytes of the shared pool (static limit) …
    pub resume: u64,
    /// … or this many bytes below the threshold of the moment (dynamic limit).
    pub resume_offset: u64,
    /// Room for packets that arrive after XOFF; `None` on lossy lanes.
    pub headroom: Option<Headroom>,
    /// The buffer that it is charged to, an index into the plan's buffers, which it may
    /// share with the other lanes of its port; the node's if `None`.
    pub pool: Option<u32>,
}

impl Account {
    /// Over its threshold from `xoff` bytes on, under it again at `xon`; without a reserve.
    pub(super) fn fixed(xoff: u64, xon: u64, headroom: Headroom) -> Self {
        Self { limit: Limit::Static(xoff), resume: xon, headroom: Some(headroom), ..UNBOUNDED }
    }
}

/// Sizes of packets on the wire, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketFormat {
    /// Largest payload of a data packet.
    pub mtu: u32,
    /// Everything else of a data packet.
    pub header: u32,
    /// An ACK or NACK.
    pub ack: u32,
}

impl PacketFormat {
    /// Number of packets that carry `size` payload bytes.
    pub fn packets(&self, size: u64) -> u64 {
        size.div_ceil(u64::from(self.mtu))
    }

    /// Wire size of packet `index` of a flow of `size` bytes.
    pub fn wire_size(&self, size: u64, index: u64) -> u32 {
        (size - index * u64::from(self.mtu)).min(u64::from(self.mtu)) as u32 + self.header
    }

    /// Largest packet of any kind.
    pub fn largest(&self) -> u32 {
        (self.mtu + self.header).max(self.ack)
    }

    /// The facts of the link of `port`, whose link layer may send `retries` bytes after a pause.
    pub(super) fn facts(&self, port: &Port, retries: u64) -> LinkFacts {
        LinkFacts { rate: port.rate, delay: port.delay, largest: self.largest(), retries }
    }
}

/// By port: the time of its device's first poll, before `period`; `None` where nothing [`watches`]. Devices
/// boot at different times, which the stream `stream` draws.
pub(super) fn first_polls(topology: &Topology, seed: u64, stream: &str, period: Time) -> Vec<Option<Time>> {
    let first = |node: NodeId| {
        let mut stream = Stream::new(seed, stream, node.into());
        watches(topology, node).then(|| stream.below(period))
    };
    let polls: Vec<Option<Time>> = (0..topology.nodes.len() as NodeId).map(first).collect();
    topology.ports.iter().map(|p| polls[p.node as usize]).collect()
}

/// The first poll after `now`, of those that begin with `first`.
pub(super) fn next_poll(first: Time, period: Time, now: Time) -> Time {
    now.checked_sub(first).map_or(first, |past| first + (past / period + 1) * period)
}

/// Whether `node` has a long link.
pub(super) fn is_gateway(topology: &Topology, node: NodeId) -> bool {
    topology.nodes[node as usize].ports.iter().any(|&p| topology.ports[p as usize].long)
}

/// The memory of a node whose accounts are partitions, of `taken` bytes together; the others share `rest`
/// bytes at least. If its size is not written, or a long link requires more, it grows with them. `lower` is
/// the key that makes them smaller.
pub(super) fn partitioned(
    cx: &Setting<'_>,
    topology: &Topology,
    node: NodeId,
    taken: u64,
    rest: u64,
    lower: &str,
) -> Result<Buffer, Complaint> {
    let n = &topology.nodes[node as usize];
    let of_switch = cx.switch_buffer.unwrap_or_else(|| default_switch(topology, node));
    let (key, given) = match n.kind {
        NodeKind::Host => ("host.buffer", cx.host_buffer),
        NodeKind::Switch => ("switch.buffer", of_switch),
    };
    let need = taken.saturating_add(rest);
    let total = given.max(need);
    if total > LARGEST {
        let message = format!("a buffer of {} is out of range", Bytes(total));
        return Err(at_buffer(cx, key, message, LARGEST_ALLOWED));
    }
    let fixed = cx.written(key) && !is_gateway(topology, node);
    if fixed && given < need {
        let (name, given, needed) = (&n.name, bytes(given), bytes(need));
        let message = format!("the buffer of {name} is {given}, but the buffers of its ports need {needed}");
        let help = format!("raise {key} to {need}B or more, or lower {lower}");
        return Err(at_buffer(cx, key, message, &help));
    }
    Ok(Buffer { total, shared: total - taken })
}

/// An error about a buffer; if its size is not written, it shows a written key of its use, or the topology.
pub fn at_buffer(cx: &Setting<'_>, key: &str, message: String, help: &str) -> Complaint {
    let taking = ["headroom", "response_time", "reserve", "buffer"].map(|key| format!("flow_control.{key}"));
    let shown = [key.to_string()].into_iter().chain(taking).find(|key| cx.written(key));
    Complaint::new(shown.as_deref().unwrap_or("topology"), message, help).about(key)
}
