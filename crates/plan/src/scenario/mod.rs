//! The scenario as a user writes it. Every key is documented only here: the JSON Schema is made from these
//! types.

mod ate;
mod collective;
mod faults;
mod text;
mod traffic;

pub use ate::{Ate, AteUpdate};
pub use collective::{
    AllToAll, Moe, OtherCollectives, ParameterServer, Probe, RingAllReduce, Trace, TrainingStep,
};
pub use faults::{Failure, Loss, LossKind};
pub use traffic::{
    Burst, FlowFile, FlowFormat, Incast, IncastLoadOf, LoadOf, Locality, Loop, MatrixShare, Permutation,
    Poisson, PriorityShares, SingleFlow, Sizes, SizesTable, Traffic,
};

pub use xoff_schemes::congestion_control::{CongestionControl, CongestionControlKeys};
pub use xoff_schemes::load_balancing::{LoadBalancing, LoadBalancingKeys};
pub use xoff_schemes::transport::{Transport as TransportKind, TransportKeys};

use schemars::JsonSchema;
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use xoff_net::builders::TopologySpec;
use xoff_net::routing::{HashKind, RoutingKind, TTL};
use xoff_net::units::{Bandwidth, Bytes, Span, Threshold};
use xoff_schemes::flow_control::FlowControlKeys;
use xoff_schemes::flow_control::none::NoKeys;
use xoff_schemes::link_layer::LinkLayerKeys;
use xoff_schemes::scheduling::PodsKeys;

/// A scenario: a fabric, its traffic, and the measurements.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(remote = "Self")]
#[schemars(title = "xoff scenario", deny_unknown_fields)]
pub struct Scenario {
    /// Nodes and links.
    pub topology: TopologySpec,
    /// What repairs links that lose frames (`[[loss]]`).
    pub link_layer: Option<LinkLayerKeys>,
    /// How packets are routed.
    #[serde(default)]
    pub routing: Routing,
    /// Every switch.
    #[serde(default)]
    pub switch: Switch,
    /// Every host.
    #[serde(default)]
    pub host: Host,
    /// Hosts that read slowly, or stop reading for a while.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slow_receiver: Vec<SlowReceiver>,
    /// Links and switches that fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failure: Vec<Failure>,
    /// Links that lose or corrupt frames.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loss: Vec<Loss>,
    /// Priorities that differ from the default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub priority: Vec<Priority>,
    /// ECN marking by RED for every priority. Without this table no packet is marked, unless the
    /// congestion control sets default thresholds.
    pub ecn: Option<Ecn>,
    /// The flow control of every link. Default: PFC.
    #[serde(default)]
    pub flow_control: FlowControlKeys,
    /// How the packets of a flow are numbered, acknowledged and retransmitted.
    #[serde(default)]
    pub transport: Transport,
    /// The tables of transports.
    #[serde(flatten)]
    pub transports: TransportKeys,
    /// The tables of congestion controls.
    #[serde(flatten)]
    pub congestion: CongestionControlKeys,
    /// The topology `zeropod`: its cells, epochs, schedulers, hosts and cores.
    #[serde(rename = "zeropod")]
    pub pods: Option<PodsKeys>,
    /// The traffic. At least one table.
    pub traffic: Vec<Traffic>,
    /// Duration and seed.
    #[serde(default)]
    pub run: Run,
    /// What is recorded in addition to flows.
    #[serde(default)]
    pub measure: Measure,
    /// Named changes of this scenario, which [`crate::variants()`] reads. They are no part of a run.
    #[schemars(
        description = "Changes of this scenario with a name, for a grid of runs: `xoff run --variant`. Without that option they have no effect."
    )]
    #[serde(default, skip_serializing)]
    pub variant: Vec<Variant>,
}

/// A change of the scenario.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// The name, as `--variant` and the results have it.
    pub name: String,
    /// Keys and their values, such as `{ flow_control.scheme = "none" }`. A value in braces replaces a whole table.
    pub set: serde_json::Map<String, Value>,
}

impl Serialize for Scenario {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut written = Self::serialize(self, serde_json::value::Serializer).map_err(S::Error::custom)?;
        leave_out_nulls(&mut written);
        written.serialize(serializer)
    }
}

/// Leaves out absent keys.
pub(crate) fn leave_out_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(leave_out_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(leave_out_nulls),
        _ => {}
    }
}

impl Scenario {
    /// Removes the keys of queues, and of a transport over queues: pods without buffers have neither. Keys
    /// that are an error beside them remain.
    pub(crate) fn forget_queues(&mut self) {
        let Routing { overrides, overrides_file, ate, load_balancing, .. } =
            std::mem::take(&mut self.routing);
        self.routing = Routing { overrides, overrides_file, ate, load_balancing, ..Routing::default() };
        // Loads are by these.
        let Transport { mtu, header, .. } = self.transport;
        self.transport = Transport { mtu, header, ..Transport::default() };
        self.flow_control = FlowControlKeys::None(NoKeys {});
        (self.switch, self.host, self.link_layer) = Default::default();
        self.priority.clear();
        self.ecn = None;
    }
}

/// How packets are routed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Routing {
    /// How routes are chosen. Default: without `overrides`, `bcube` in an `ndc` topology, and in a
    /// `rail-only` topology with as many domains as hosts in a domain; `dragonfly` in a dragonfly; otherwise
    /// `shortest-path`.
    #[schemars(extend("x-default" = "derived: `\"bcube\"` in BCube topologies without `overrides`, `\"dragonfly\"` in dragonflies, else `\"shortest-path\"`"))]
    pub kind: Option<RoutingKind>,
    /// Number of priorities for each lossless priority, 1 to 8, its own included. A packet uses them one after the
    /// other, so that no cycle of waits can form in a dragonfly, torus or ring. It changes to the next one after a
    /// link between two groups, at the last link of a row, column or ring, and in a torus where it turns from a
    /// column into a row or goes back over a link. Only for these topologies, and for flow controls whose pauses stop
    /// priorities.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 8), extend("x-unit" = "priorities", "default" = 1))]
    pub virtual_channels: Option<u8>,
    /// The function that spreads flows over equal paths.
    pub hash: HashKind,
    /// Links that a packet may cross before it is dropped, 2 to 255; longer paths are refused. Default: 64, as IPv4
    /// stacks commonly set it.
    #[schemars(range(min = 2), extend("x-unit" = "links", "default" = TTL))]
    pub ttl: Option<u8>,
    /// Seed of the switches' hashes. Default: the run's seed.
    #[schemars(extend("x-unit" = "seed", "x-default" = "`run.seed`"))]
    pub seed: Option<u64>,
    /// Of `valley-free`: names of the switches of each tier, the tier next to the hosts first; `*` is
    /// any text and `?` one character. Default: the tier of a switch is the number of links to the
    /// nearest host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-default" = "derived: by the number of links to the nearest host"))]
    pub tiers: Vec<Vec<String>>,
    /// Of `up-down`: the switch at the top of the tree. Default: a switch in the middle of a long path.
    #[schemars(extend("x-default" = "derived: in the middle of a long path"))]
    pub root: Option<String>,
    /// Static routes, each for one switch and one destination.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<RouteOverride>,
    /// CSV file of further static routes, with the columns `at`, `to` and `via`. In `to`, `*` is any text and
    /// `?` one character, for the routes to several hosts. The path is relative to the scenario.
    #[schemars(extend("x-default" = "none"))]
    pub overrides_file: Option<String>,
    /// Time from a failure or a recovery until routes change. Default: 0.
    #[schemars(extend("default" = Span(0)))]
    pub reconvergence: Option<Span>,
    /// The source of a flow chooses the first hop by its own traffic, instead of by the hash.
    #[schemars(extend("x-default" = "none"))]
    pub ate: Option<Ate>,
    /// How flows spread over paths.
    #[serde(skip_serializing_if = "LoadBalancing::is_ecmp")]
    #[schemars(extend("default" = LoadBalancing::default()))]
    pub load_balancing: LoadBalancing,
    /// The tables of load balancing.
    #[serde(flatten, skip_deserializing)]
    #[schemars(!skip_deserializing)]
    pub balancing: LoadBalancingKeys,
}

/// A static route: at switch `at`, packets for host `to` go to `via`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteOverride {
    /// Name of the switch.
    pub at: String,
    /// Name of the destination host.
    pub to: String,
    /// Name of the next node, a neighbour of `at`.
    pub via: String,
}

/// Every switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// Buffer of a switch, shared by its ports. Default: proportional to the switch's fastest port,
    /// 32 MB at 100 Gbit/s (the size in published simulations of such switches), 128 MB at 400
    /// Gbit/s.
    #[schemars(extend("x-default" = "derived: 32 MB per 100 Gbit/s of the fastest port"))]
    pub buffer: Option<Bytes>,
}

/// Every host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Host {
    /// Buffer of a host for relayed packets, and for received packets that it has not read. Its own
    /// flows wait outside this buffer.
    pub buffer: Bytes,
}

/// A host that reads what it receives slowly, or not at all for a while. Several
/// tables may name the same host, each with another stall.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlowReceiver {
    /// Name of the host.
    pub host: String,
    /// Rate at which the host reads. Default: the rate of its links.
    #[schemars(extend("x-default" = "derived: the sum of the rates of its links"))]
    pub rate: Option<Bandwidth>,
    /// Beginning of a stall: the host reads nothing from this time.
    #[schemars(extend("x-default" = "none: no stall"))]
    pub stall_from: Option<Span>,
    /// End of the stall.
    #[schemars(extend("x-default" = "none: no stall"))]
    pub stall_until: Option<Span>,
}

/// A priority and its egress queues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Priority {
    /// 802.1p priority, 0 to 7.
    #[schemars(range(max = 7), extend("x-unit" = "802.1p priority"))]
    pub id: u8,
    /// Tiers are served strictly, the lowest number first. Priorities of one tier share by deficit
    /// round robin. Default: 7 − id: each priority has its own tier, and the highest priority is
    /// served first.
    #[schemars(extend("x-unit" = "number of a tier", "x-default" = "derived: 7 − `id`"))]
    pub tier: Option<u8>,
    /// Share within the tier, in largest packets per turn, 1 to 1000.
    #[serde(default = "defaults::one")]
    #[schemars(range(min = 1, max = 1000), extend("x-unit" = "packets"))]
    pub weight: u32,
    /// Whether packets are paused instead of dropped. Default: true if the flow control covers the
    /// priority.
    #[schemars(extend("x-default" = "derived: whether the flow control covers the priority"))]
    pub lossless: Option<bool>,
    /// Most bytes in one egress queue of a lossy priority.
    #[schemars(extend("x-default" = "none: `alpha` sets the limit"))]
    pub egress_limit: Option<Bytes>,
    /// For a lossy priority without `egress_limit`: a queue holds at most this multiple of the free
    /// buffer. Default: 1; no limit under schemes with queues of their own.
    #[schemars(extend("x-unit" = "ratio", "default" = Priority::ALPHA))]
    pub alpha: Option<f64>,
    /// ECN marking of this priority, instead of `[ecn]`.
    #[schemars(extend("x-default" = "`[ecn]`"))]
    pub ecn: Option<Ecn>,
}

impl Priority {
    pub(crate) const ALPHA: f64 = 1.0;
}

/// ECN marking by RED on the length of an egress queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ecn {
    /// Up to this length no packet is marked.
    pub k_min: Bytes,
    /// Above this length every packet is marked.
    pub k_max: Bytes,
    /// Marking probability at `k_max`; it increases linearly from 0 at `k_min`.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-unit" = "probability"))]
    pub p_max: f64,
    /// The lengths apply to a port of this rate, and in proportion to ports of other rates. Without
    /// this key they apply to every port.
    #[schemars(extend("x-default" = "none: the lengths hold for every port"))]
    pub per: Option<Bandwidth>,
    /// When the length of the queue is measured.
    #[serde(default)]
    pub at: MarkAt,
    /// Which bytes count.
    #[serde(default, skip_serializing_if = "MarkOf::is_priority")]
    #[schemars(extend("default" = MarkOf::default()))]
    pub of: MarkOf,
    /// Whether ports that lead to hosts mark. Ultra Ethernet turns their marks off where receivers grant credit.
    #[serde(default = "Ecn::marks", skip_serializing_if = "Clone::clone")]
    #[schemars(extend("default" = true))]
    pub last_hop: bool,
    /// Whether hosts mark: those that relay, and slow receivers.
    #[serde(default = "Ecn::marks", skip_serializing_if = "Clone::clone")]
    #[schemars(extend("default" = true))]
    pub hosts: bool,
}

impl Ecn {
    /// All ports mark.
    fn marks() -> bool {
        true
    }
}

/// The bytes whose number decides about a mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MarkOf {
    /// Those of the packet's priority at its egress port.
    #[default]
    Priority,
    /// Those of all priorities at its egress port.
    Port,
}

impl MarkOf {
    fn is_priority(&self) -> bool {
        *self == Self::Priority
    }
}

/// When a packet is marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MarkAt {
    /// When the packet joins the queue: the bytes before it count.
    #[default]
    Enqueue,
    /// When the packet leaves the queue: the bytes after it count, as in the RoCE simulators. The
    /// mark is then newer by the packet's waiting time.
    Dequeue,
}

/// How the packets of a flow are numbered, acknowledged and retransmitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Transport {
    /// The protocol.
    pub kind: TransportKind,
    /// What sets the sending rate.
    pub congestion_control: CongestionControl,
    /// Largest payload of a packet, 1 to 65535 B.
    pub mtu: Bytes,
    /// All headers of a data packet on the wire. The default is RoCEv2's: Ethernet 14, IPv4 20, UDP
    /// 8, BTH 12, ICRC 4, FCS 4.
    pub header: Bytes,
    /// Size of an ACK or NACK on the wire. The default is a header with AETH (4).
    pub ack: Bytes,
    /// Packets for each ACK; the last packet is always acknowledged. Must be 1 with TCP, because
    /// delayed ACKs are not simulated, and with `ndp`. `rud` also acknowledges at once where its page says so.
    #[schemars(range(min = 1), extend("x-unit" = "packets"))]
    pub ack_every: u32,
    /// Time without progress after which a go-back-N sender retransmits, and RTO_INIT of `rud`: 100 ns or longer.
    /// `irn`, TCP and `ndp` have their own tables. The default is longer than the 2.6 ms that a buffer of 32 MB
    /// takes to drain at 100 Gbit/s: a waiting packet is not treated as lost.
    pub rto: Span,
    /// After so many retries a sender gives up, and its flow has failed: 0 to 100, or `"unlimited"`. A retry is a
    /// timeout without progress since the last one; with `rud` it is a timeout of one packet. InfiniBand
    /// NICs have 7 at most. Default: `"unlimited"`; with `rud` 5, the Max_RTO_Retx_Cnt of Ultra Ethernet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "retries", "x-default" = "`\"unlimited\"`; with `rud` `5`"))]
    pub retries: Option<Retries>,
    /// With `rud`: after so many retransmissions of one packet because of NACKs a sender gives up: 0 to 100, or
    /// `"unlimited"`. Ultra Ethernet calls it Max_NACK_Retx_Cnt. Default: `"unlimited"`, as a packet may be trimmed
    /// often under an incast.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "retries", "x-default" = "`\"unlimited\"`"))]
    pub nack_retries: Option<Retries>,
    /// Most payload in flight per flow: bytes, or multiples of the network's BDP
    /// (the fastest sender's rate times the longest unloaded round trip among
    /// the flows), as in `"1bdp"`. No bound if not given. With `irn` the BDP is
    /// that of the slowest link of the flow's route times the longest unloaded
    /// round trip among the flows within datacenters, rounded up to whole
    /// packets, and the default is `"1bdp"`. With `rud` the BDP is that of the flow's route, rounded up to
    /// whole packets, and the default without `congestion_control` is `"1.5bdp"`. Where receivers grant
    /// credit, it is the first window and the largest credit of a sender instead (in addition, if the congestion control
    /// sets windows), and the default is `"1.5bdp"`. With TCP it is the receive window. `ndp` has `ndp.initial_window` instead.
    #[schemars(extend("x-default" = window()))]
    pub window: Option<Threshold>,
    /// Limits the payload in flight to the flow's rate times `base_rtt`, but at least `ack_every`
    /// packets. Each ACK updates it. If there are other windows, the smallest applies. Only for
    /// congestion controls that set rates. Default: true if the congestion control was published with such a window.
    #[schemars(extend("x-default" = variable_window()))]
    pub variable_window: Option<bool>,
    /// T, the base round-trip time of `variable_window` and of congestion controls that compare round trips or bytes in
    /// flight with it; 100 ns or longer. Default: the longest unloaded round trip among the flows.
    #[schemars(extend("x-default" = "derived: the longest unloaded round trip of all flows"))]
    pub base_rtt: Option<Span>,
    /// Priority of ACKs, and of NACKs, PULLs and credit. Default: the priority of the data; 7 under a scheme that
    /// must serve ACKs strictly before data.
    #[schemars(range(max = 7), extend("x-unit" = "802.1p priority"))]
    #[schemars(extend("x-default" = "the priority of the data"))]
    pub ack_priority: Option<u8>,
    /// Central arbiter that decides which flows send. It is an ideal upper bound: it knows all
    /// flows and takes no time.
    #[serde(skip_serializing_if = "Arbiter::is_none")]
    #[schemars(extend("default" = Arbiter::default()))]
    pub arbiter: Arbiter,
}

/// The defaults of `window` and `variable_window` as the reference says them.
fn window() -> String {
    let credit = CongestionControl::listed(|traits| traits.most_credit.is_some());
    format!(
        "none: no limit; with `irn` `\"1bdp\"`; with `rud` and no congestion control, {credit} `\"1.5bdp\"`"
    )
}

fn variable_window() -> String {
    let those = CongestionControl::listed(|traits| traits.window_follows);
    format!("derived: `true` with {those}, else `false`")
}

/// A limit of retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retries {
    Limit(u64),
    Unlimited,
}

/// Who decides which flows send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arbiter {
    /// No arbiter.
    #[default]
    None,
    /// Grants flows in order of their unacknowledged bytes, one for each source and each
    /// destination. As in the simulator YAPS, a flow stops only for flows of the same source, not for
    /// flows of other sources to the same destination.
    Srpt,
    /// The same as a strict matching: a flow stops for both.
    SrptStrict,
}

impl Arbiter {
    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// Duration and seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// Flows start before this time, and the run ends at it (see `drain`).
    /// Without it the run ends when every flow has completed.
    #[schemars(extend("x-default" = "none: the run ends when every flow has completed"))]
    pub duration: Option<Span>,
    /// Time that the run continues after `duration`: flows can complete, and no flow starts.
    pub drain: Span,
    /// Seed of every random stream.
    #[schemars(extend("x-unit" = "seed"))]
    pub seed: u64,
}

/// What is recorded in addition to flows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Measure {
    /// Time between samples. Default: 1/200 of `run.duration`.
    #[schemars(extend("x-default" = "derived: `run.duration` / 200"))]
    pub interval: Option<Span>,
    /// Ports whose queue and throughput are sampled: `["S0.0:1"]`, `"all"`,
    /// `"switches"` (their ports) or `"none"`.
    pub ports: PortSet,
    /// Enables the head-of-line blocking oracle. For each pause it finds the congestion root at the
    /// end of the chain. It assigns the waiting time of packets in paused queues to ports on their
    /// path or off it.
    pub blocking: bool,
    /// Records the time of each flow along its critical path, for `xoff explain`. It also enables
    /// the oracle of `blocking`. Default: true in a single run of at most 4 million packet-hops, at
    /// least 300 for each flow, unless another key is incompatible. It does not double the cost of such a run.
    #[serde(serialize_with = "whether")]
    #[schemars(extend("x-default" = "derived: true in a short single run"))]
    pub explain: Option<bool>,
    /// Flows that are sampled, by their `id` in results: bytes received, throughput, and the rate
    /// set by a congestion control.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-unit" = "number of a flow"))]
    pub flows: Vec<u64>,
}

impl Measure {
    pub fn explains(&self) -> bool {
        self.explain == Some(true)
    }
}

/// What is not set is false.
fn whether<S: Serializer>(set: &Option<bool>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(*set == Some(true))
}

/// A set of ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PortSet {
    /// No port.
    #[default]
    None,
    /// Every port.
    All,
    /// Every port of a switch.
    Switches,
    /// By name: `S0.0:1` is port 1 of S0.0.
    Named(Vec<String>),
}

/// Values of keys that are not given.
pub(crate) mod defaults {
    use xoff_net::units::{Bytes, Span};

    pub fn one() -> u32 {
        1
    }
    pub fn unscaled() -> f64 {
        1.0
    }
    pub fn element() -> Bytes {
        Bytes(2)
    }
    pub fn gradient() -> Bytes {
        Bytes(4)
    }
    pub fn priority() -> u8 {
        3
    }
    pub fn zero_time() -> Span {
        Span(0)
    }
    pub fn probe() -> Bytes {
        Bytes(64)
    }
    pub fn random() -> String {
        "random".to_string()
    }
}

impl Default for Host {
    fn default() -> Self {
        Host { buffer: Bytes(32_000_000) }
    }
}

impl Default for Transport {
    fn default() -> Self {
        Transport {
            kind: TransportKind::GoBackN,
            congestion_control: CongestionControl::None,
            mtu: Bytes(1000),
            header: Bytes(xoff_wire::ROCE_DATA_OVERHEAD.into()),
            ack: Bytes(xoff_wire::ROCE_ACK.into()),
            ack_every: 1,
            rto: Span(4_000_000_000),
            retries: None,
            nack_retries: None,
            window: None,
            variable_window: None,
            base_rtt: None,
            ack_priority: None,
            arbiter: Arbiter::None,
        }
    }
}

impl Default for Run {
    fn default() -> Self {
        Run { duration: None, drain: Span(0), seed: 1 }
    }
}
