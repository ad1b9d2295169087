//! The scenario: what a user writes. Every key is documented here, and nowhere
//! else: the JSON Schema is made from these types.

mod ate;
mod balancing;
mod collective;
mod congestion;
mod faults;
mod text;
mod traffic;
mod transport;

pub use ate::{Ate, AteUpdate};
pub use balancing::{Drill, Plb};
pub use collective::{AllToAll, Moe, ParameterServer, Probe, RingAllReduce};
pub(crate) use congestion::MINIMUM_RATE;
pub use congestion::{Dctcp, Hpcc, HpccPreset, Timely};
pub use faults::{Failure, Loss, LossKind};
pub use traffic::{
    Burst, FlowFile, FlowFormat, Incast, IncastLoadOf, LoadOf, Locality, Loop, MatrixShare, Permutation,
    Poisson, PriorityShares, SingleFlow, Sizes, SizesTable, Traffic,
};
pub use transport::{Dcqcn, DcqcnPreset, DcqcnReaction, Irn, IrnInter, TcpDctcp, TcpNewReno};

pub use xoff_schemes::congestion_control::CongestionControl;
pub use xoff_schemes::load_balancing::LoadBalancing;
pub use xoff_schemes::transport::Transport as TransportKind;

use schemars::JsonSchema;
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use xoff_net::builders::TopologySpec;
use xoff_net::routing::{HashKind, RoutingKind};
use xoff_net::units::{Bandwidth, Bytes, Span, Threshold};
use xoff_schemes::flow_control::FlowControlKeys;
use xoff_schemes::flow_control::none::NoKeys;
use xoff_schemes::scheduling::PodsKeys;

/// A scenario: a fabric, what runs over it, and what is measured.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(remote = "Self")]
#[schemars(title = "xoff scenario", deny_unknown_fields)]
pub struct Scenario {
    /// Nodes and links.
    pub topology: TopologySpec,
    /// How packets find their way.
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
    /// ECN marking by RED on every lane; without it nothing is marked, unless
    /// the congestion control brings its own.
    pub ecn: Option<Ecn>,
    /// The flow control of every link; PFC if not given.
    #[serde(default)]
    pub flow_control: FlowControlKeys,
    /// How a flow's packets are numbered, acknowledged and repeated.
    #[serde(default)]
    pub transport: Transport,
    /// The transport `irn`.
    pub irn: Option<Irn>,
    /// The transport `tcp-newreno`.
    #[serde(rename = "tcp-newreno")]
    pub tcp_newreno: Option<TcpNewReno>,
    /// The transport `tcp-dctcp`.
    #[serde(rename = "tcp-dctcp")]
    pub tcp_dctcp: Option<TcpDctcp>,
    /// The congestion control `dcqcn`.
    pub dcqcn: Option<Dcqcn>,
    /// The congestion control `timely`.
    pub timely: Option<Timely>,
    /// The congestion control `hpcc`.
    pub hpcc: Option<Hpcc>,
    /// The congestion control `dctcp`.
    pub dctcp: Option<Dctcp>,
    /// The topology `zeropod`: its cells, epochs, schedulers, hosts and cores.
    #[serde(rename = "zeropod")]
    pub pods: Option<PodsKeys>,
    /// What is sent. At least one.
    pub traffic: Vec<Traffic>,
    /// Duration and seed.
    #[serde(default)]
    pub run: Run,
    /// What is recorded besides flows.
    #[serde(default)]
    pub measure: Measure,
}

impl Serialize for Scenario {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut written = Self::serialize(self, serde_json::value::Serializer).map_err(S::Error::custom)?;
        leave_out_nulls(&mut written);
        written.serialize(serializer)
    }
}

/// Leaves out what is not given.
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
    /// Leaves out what is of queues, and of a transport over them: pods without buffers have
    /// neither. What is refused beside them stays.
    pub(crate) fn forget_queues(&mut self) {
        let Routing { overrides, ate, load_balancing, .. } = std::mem::take(&mut self.routing);
        self.routing = Routing { overrides, ate, load_balancing, ..Routing::default() };
        // Loads are by these.
        let Transport { mtu, header, .. } = self.transport;
        self.transport = Transport { mtu, header, ..Transport::default() };
        self.flow_control = FlowControlKeys::None(NoKeys {});
        (self.switch, self.host) = Default::default();
        self.priority.clear();
        self.ecn = None;
    }
}

/// How packets find their way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Routing {
    /// If not given: `bcube` in an `ndc` topology, and in a `rail-only` one with as
    /// many domains as hosts in one, without `overrides`; else `shortest-path`.
    #[schemars(extend("x-default" = "derived: `\"bcube\"` in BCube topologies without `overrides`, else `\"shortest-path\"`"))]
    pub kind: Option<RoutingKind>,
    /// The function that spreads flows over equal paths.
    pub hash: HashKind,
    /// Seed of the switches' hashes; the run's seed if not given.
    #[schemars(extend("x-unit" = "seed"))]
    #[schemars(extend("x-default" = "`run.seed`"))]
    pub seed: Option<u64>,
    /// Static routes, each for one switch and one destination.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<RouteOverride>,
    /// From a failure or a recovery until routes follow; at once if not given.
    #[schemars(extend("default" = Span(0)))]
    pub reconvergence: Option<Span>,
    /// The source of a flow chooses its first hop by the traffic that it sends,
    /// instead of by the hash.
    #[schemars(extend("x-default" = "none"))]
    pub ate: Option<Ate>,
    /// How flows spread over equal paths.
    #[serde(skip_serializing_if = "LoadBalancing::is_ecmp")]
    #[schemars(extend("default" = LoadBalancing::default()))]
    pub load_balancing: LoadBalancing,
    /// The load balancing `drill`.
    #[schemars(extend("x-default" = "its own defaults"))]
    pub drill: Option<Drill>,
    /// The load balancing `plb`.
    #[schemars(extend("x-default" = "its own defaults"))]
    pub plb: Option<Plb>,
}

/// A static route: at switch `at`, packets for host `to` leave towards `via`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteOverride {
    /// Name of the switch.
    pub at: String,
    /// Name of the destination host.
    pub to: String,
    /// Name of the neighbour that comes next.
    pub via: String,
}

/// Every switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// Packet memory of a switch, shared by its ports. If not given, it grows
    /// with the switch's fastest port: 32 MB at 100 Gbit/s (the size that
    /// published simulations of such switches use), 128 MB at 400 Gbit/s.
    #[schemars(extend("x-default" = "derived: 32 MB per 100 Gbit/s of the fastest port"))]
    pub buffer: Option<Bytes>,
}

/// Every host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Host {
    /// Packet memory of a host: for what it relays, and for what it has received
    /// but not read. Its own flows wait outside of it.
    pub buffer: Bytes,
}

/// A host that reads what it receives slowly, or not at all for a while. Several
/// tables may name the same host, each with another stall.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlowReceiver {
    /// Name of the host.
    pub host: String,
    /// How fast it reads; as fast as its links bring data if not given.
    #[schemars(extend("x-default" = "derived: the sum of the rates of its links"))]
    pub rate: Option<Bandwidth>,
    /// It reads nothing from this time on …
    #[schemars(extend("x-default" = "none: no stall"))]
    pub stall_from: Option<Span>,
    /// … until this time.
    #[schemars(extend("x-default" = "none: no stall"))]
    pub stall_until: Option<Span>,
}

/// A priority and how egress queues treat it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Priority {
    /// 802.1p priority, 0 to 7.
    #[schemars(range(max = 7))]
    #[schemars(extend("x-unit" = "802.1p priority"))]
    pub id: u8,
    /// Tiers are served strictly, the lowest number first; priorities of one
    /// tier share by deficit round robin. Default: 7 − id, so that each priority
    /// has its own tier and the highest is served first.
    #[schemars(extend("x-unit" = "number of a tier"))]
    #[schemars(extend("x-default" = "derived: 7 − `id`"))]
    pub tier: Option<u8>,
    /// Share within the tier: so many largest packets per turn, 1 to 1000.
    #[serde(default = "defaults::one")]
    #[schemars(range(min = 1, max = 1000))]
    #[schemars(extend("x-unit" = "packets"))]
    pub weight: u32,
    /// Paused instead of dropped. Default: whether the flow control covers it.
    #[schemars(extend("x-default" = "derived: whether the flow control covers the priority"))]
    pub lossless: Option<bool>,
    /// Most bytes in one egress queue, if lossy.
    #[schemars(extend("x-default" = "none: `alpha` sets the limit"))]
    pub egress_limit: Option<Bytes>,
    /// If lossy and without `egress_limit`: a queue may hold so many times the
    /// free part of the buffer. Default 1.
    #[schemars(extend("x-unit" = "ratio"))]
    #[schemars(extend("default" = Priority::ALPHA))]
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
    /// Nothing is marked up to this length.
    pub k_min: Bytes,
    /// Everything is marked beyond this length.
    pub k_max: Bytes,
    /// Probability at `k_max`; it grows linearly from 0 at `k_min`.
    #[schemars(range(min = 0.0, max = 1.0))]
    #[schemars(extend("x-unit" = "probability"))]
    pub p_max: f64,
    /// The lengths are for a port of this rate, and in proportion for others.
    /// If not given they hold for every port.
    #[schemars(extend("x-default" = "none: the lengths hold for every port"))]
    pub per: Option<Bandwidth>,
    /// When the queue's length counts.
    #[serde(default)]
    pub at: MarkAt,
}

/// When a packet is marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MarkAt {
    /// When it joins the queue, by what it finds there.
    #[default]
    Enqueue,
    /// When it leaves the queue, by what it leaves behind, as the RoCE
    /// simulators do: the news is younger by the time that it waited.
    Dequeue,
}

/// How a flow's packets are numbered, acknowledged and repeated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Transport {
    /// The protocol.
    pub kind: TransportKind,
    /// What sets the sending rate.
    pub congestion_control: CongestionControl,
    /// Largest payload of a packet, 1 to 65535 B.
    pub mtu: Bytes,
    /// Everything else of a data packet on the wire. The default is RoCEv2's:
    /// Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4.
    pub header: Bytes,
    /// An ACK or NACK on the wire. The default is a header with AETH (4).
    pub ack: Bytes,
    /// The receiver acknowledges every so many packets, and the last one. With
    /// TCP, which has no timer for ACKs that are put off, each.
    #[schemars(range(min = 1))]
    #[schemars(extend("x-unit" = "packets"))]
    pub ack_every: u32,
    /// Time without progress after which a go-back-N sender goes back (`irn` and
    /// TCP have their own tables). The default is
    /// longer than the 2.6 ms that 32 MB of buffer need to drain at 100 Gbit/s:
    /// a packet that only waits is not taken for lost.
    pub rto: Span,
    /// Most payload in flight per flow: bytes, or multiples of the network's BDP
    /// (the fastest sender's rate times the longest unloaded round trip among
    /// the flows), as in `"1bdp"`. No bound if not given. With `irn` the BDP is
    /// that of the slowest link of the flow's route times the longest unloaded
    /// round trip among the flows within datacenters, rounded up to whole
    /// packets, and the default is `"1bdp"`. With TCP it is the receive window.
    #[schemars(extend("x-default" = "none: no limit; with `irn` `\"1bdp\"`"))]
    pub window: Option<Threshold>,
    /// A window of its own that follows a flow's rate R: no packet is begun while R
    /// times `base_rtt` or more of payload are in flight. Where there are other
    /// windows, the smaller one rules. If not given, `hpcc` and `dctcp` have it and
    /// the other congestion controls have not.
    #[schemars(extend("x-default" = "derived: `true` with `hpcc` and `dctcp`, else `false`"))]
    pub variable_window: Option<bool>,
    /// T, the base round-trip time of `variable_window` and of `hpcc`, 100 ns or
    /// longer; the longest unloaded round trip among the flows if not given.
    #[schemars(extend("x-default" = "derived: the longest unloaded round trip of all flows"))]
    pub base_rtt: Option<Span>,
    /// Priority of ACKs; that of the data if not given.
    #[schemars(range(max = 7))]
    #[schemars(extend("x-unit" = "802.1p priority"))]
    #[schemars(extend("x-default" = "the priority of the data"))]
    pub ack_priority: Option<u8>,
    /// Who decides which flows send. No scheme: an upper bound that knows all and takes no time.
    #[serde(skip_serializing_if = "Arbiter::is_none")]
    #[schemars(extend("default" = Arbiter::default()))]
    pub arbiter: Arbiter,
}

/// Who decides which flows send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arbiter {
    /// They themselves.
    #[default]
    None,
    /// One that grants flows in the order of what is left to acknowledge, one for each source and each
    /// destination. As the simulator YAPS has it: a flow stops for another one of its source, but not for
    /// one of another source to its destination.
    Srpt,
    /// The same as a strict matching: a flow stops for either.
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
    /// How long the run goes on after `duration`, so that flows can complete.
    pub drain: Span,
    /// Seed of every random stream.
    #[schemars(extend("x-unit" = "seed"))]
    pub seed: u64,
}

/// What is recorded besides flows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Measure {
    /// Distance of samples; a 200th of the duration if not given.
    #[schemars(extend("x-default" = "derived: `run.duration` / 200"))]
    pub interval: Option<Span>,
    /// Ports whose queue and throughput are sampled: `["S0.0:1"]`, `"all"`,
    /// `"switches"` (their ports) or `"none"`.
    pub ports: PortSet,
    /// Whether the head-of-line blocking oracle watches: for each pause it finds
    /// the congested port at the end of the chain, and charges the time that
    /// packets wait in paused queues to ports on their way, or off it.
    pub blocking: bool,
    /// Whether the time of each flow is accounted for along its critical path, which
    /// is what `xoff explain` shows. The oracle of `blocking` then watches, too.
    pub explain: bool,
    /// Flows that are sampled, by their `id` in results: what has arrived, how fast, and the
    /// rate that a congestion control grants.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-unit" = "number of a flow"))]
    pub flows: Vec<u64>,
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
mod defaults {
    use xoff_net::units::{Bytes, Span};

    pub fn one() -> u32 {
        1
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
