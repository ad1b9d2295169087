//! `[[traffic]]`: the offered traffic.

use super::collective::{AllToAll, Moe, ParameterServer, Probe, RingAllReduce, Trace, TrainingStep};
use super::defaults;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use xoff_net::units::{Bandwidth, Bytes, Span};

xoff_net::kinds! {
/// Something that is sent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub enum Traffic {
    /// Flows between random pairs, with exponential gaps.
    Poisson(Poisson) = "poisson",
    /// Several senders to one receiver at once.
    Incast(Incast) = "incast",
    /// Every host sends one flow and receives one.
    Permutation(Permutation) = "permutation",
    /// One flow.
    Flow(SingleFlow) = "flow",
    /// Flows from a file.
    Flows(FlowFile) = "flows",
    /// Every host sends one flow to every other.
    AllToAll(AllToAll) = "all-to-all",
    /// All-reduce around a ring: each step waits for the step before.
    RingAllReduce(RingAllReduce) = "ring-all-reduce",
    /// Workers push to servers; a server replies when it has received all pushes.
    ParameterServer(ParameterServer) = "parameter-server",
    /// Tokens to experts and back.
    Moe(Moe) = "moe",
    /// Training steps of a large model: tensor, pipeline, data and expert parallel groups.
    TrainingStep(TrainingStep) = "training-step",
    /// Recorded computations and messages of each rank: Chakra execution traces.
    Trace(Trace) = "trace",
    /// Small flows at regular times, to measure latency.
    Probe(Probe) = "probe",
    /// Every host sends several flows, one after the other.
    Burst(Burst) = "burst",
    /// Flows around a loop of switches.
    Loop(Loop) = "loop",
}
}

/// A value of the keys of a kind, whichever it is.
macro_rules! of_any {
    ($traffic:ident, $t:ident => $value:expr) => {
        of_any!($traffic, $t => $value; Poisson Incast Permutation Flow Flows AllToAll RingAllReduce
            ParameterServer Moe TrainingStep Trace Probe Burst Loop)
    };
    ($traffic:ident, $t:ident => $value:expr; $($kind:ident)*) => {
        match $traffic { $(Traffic::$kind($t) => $value,)* }
    };
}

impl Traffic {
    /// The name that the scenario gave it.
    pub fn name(&self) -> Option<&str> {
        of_any!(self, t => t.name.as_deref())
    }

    /// How its flows are dealt out to several priorities, if they are.
    pub fn priorities(&self) -> Option<&PriorityShares> {
        match self {
            Traffic::Poisson(Poisson { priorities, .. })
            | Traffic::Incast(Incast { priorities, .. })
            | Traffic::Permutation(Permutation { priorities, .. })
            | Traffic::Flows(FlowFile { priorities, .. })
            | Traffic::AllToAll(AllToAll { priorities, .. })
            | Traffic::Burst(Burst { priorities, .. })
            | Traffic::Loop(Loop { priorities, .. }) => priorities.as_ref(),
            Traffic::Flow(_)
            | Traffic::RingAllReduce(_)
            | Traffic::ParameterServer(_)
            | Traffic::Moe(_)
            | Traffic::TrainingStep(_)
            | Traffic::Trace(_)
            | Traffic::Probe(_) => None,
        }
    }

    /// Priority of its data packets, unless there are several.
    pub fn priority(&self) -> u8 {
        of_any!(self, t => t.priority)
    }

    /// Whether its flows follow nodes that it names, independent of the routing.
    pub fn has_paths(&self) -> bool {
        match self {
            Traffic::Flow(t) => t.path.is_some(),
            Traffic::Loop(_) => true,
            _ => false,
        }
    }
}

/// The keys of kinds. Those that many kinds have are written here once, and by their names in the kinds.
macro_rules! keys {
    ($($(#[$about:meta])* pub struct $kind:ident { $($keys:tt)* })*) => {
        $(keys! { @ [$(#[$about])* $kind] [] $($keys)* })*
    };
    (@ $about:tt [$($done:tt)*] name, $($rest:tt)*) => {
        keys! { @ $about [
            $($done)*
            /// Name of the class in results. Default: the kind, numbered if repeated.
            #[schemars(extend("x-default" = "the kind, numbered if it repeats"))]
            pub name: Option<String>,
        ] $($rest)* }
    };
    (@ $about:tt [$($done:tt)*] priority, $($rest:tt)*) => {
        keys! { @ $about [
            $($done)*
            /// 802.1p priority.
            #[serde(default = "defaults::priority")]
            #[schemars(range(max = 7), extend("x-unit" = "802.1p priority"))]
            pub priority: u8,
        ] $($rest)* }
    };
    (@ $about:tt [$($done:tt)*] priorities, $($rest:tt)*) => {
        keys! { @ $about [
            $($done)*
            /// Divides the flows among several priorities by weight, instead of `priority`.
            #[schemars(extend("x-unit" = "weight", "x-default" = "none: every flow has `priority`"))]
            pub priorities: Option<PriorityShares>,
        ] $($rest)* }
    };
    (@ $about:tt [$($done:tt)*] size_or_sizes, $($rest:tt)*) => {
        keys! { @ $about [
            $($done)*
            /// Payload of each flow. Write either this or `sizes`.
            #[schemars(extend("x-default" = "required: `size` or `sizes`"))]
            pub size: Option<Bytes>,
            /// Distribution of the flows' payload. Write either this or `size`.
            #[schemars(extend("x-default" = "required: `size` or `sizes`"))]
            pub sizes: Option<Sizes>,
        ] $($rest)* }
    };
    (@ $about:tt [$($done:tt)*] $(#[$own:meta])* pub $key:ident: $type:ty, $($rest:tt)*) => {
        keys! { @ $about [$($done)* $(#[$own])* pub $key: $type,] $($rest)* }
    };
    (@ [$(#[$about:meta])* $kind:ident] [$($keys:tt)*]) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $kind { $($keys)* }
    };
}
pub(super) use keys;

keys! {
/// Flows between random pairs, with exponential gaps: the source is uniform
/// among `from`, the destination uniform among the others of `to`.
pub struct Poisson {
    name,
    /// Flow sizes (payload).
    pub sizes: Sizes,
    /// Offered load as a fraction of `load_of`, above 0, at most 10. It counts the wire bytes of
    /// data packets with headers, and no ACKs.
    #[schemars(extend("x-unit" = "ratio", "exclusiveMinimum" = 0, "maximum" = 10))]
    pub load: f64,
    /// The meaning of a load of 1.
    #[serde(default)]
    pub load_of: LoadOf,
    priority,
    priorities,
    /// The senders: hosts or groups of hosts. Default: all hosts.
    #[schemars(extend("x-default" = "all hosts"))]
    pub from: Option<Vec<String>>,
    /// The receivers: hosts or groups of hosts. Default: all hosts.
    #[schemars(extend("x-default" = "all hosts"))]
    pub to: Option<Vec<String>>,
    /// A traffic matrix instead of `from` and `to`: each entry has a share of the flows.
    #[schemars(extend("x-default" = "none: `from` and `to` choose the hosts"))]
    pub matrix: Option<Vec<MatrixShare>>,
    /// Path of a CSV file with the traffic matrix, relative to the scenario.
    #[schemars(extend("x-default" = "none: `from` and `to` choose the hosts"))]
    pub matrix_file: Option<String>,
    /// How near a receiver is to its sender. Default: uniform.
    #[schemars(extend("x-default" = "none: all receivers are equally likely"))]
    pub locality: Option<Locality>,
    /// Largest number of flows, at least 1. No flow starts after `stop` or the run's duration, even
    /// if there are fewer.
    #[schemars(range(min = 1), extend("x-unit" = "flows", "x-default" = "none: no limit"))]
    pub flows: Option<u64>,
    /// No flow starts before this time.
    #[serde(default = "defaults::zero_time")]
    pub start: Span,
    /// No flow starts from this time on. Default: the run's duration.
    #[schemars(extend("x-default" = "`run.duration`"))]
    pub stop: Option<Span>,
}

/// Several senders to one receiver at once.
pub struct Incast {
    name,
    /// Senders of one event, at least 1. They are different hosts, drawn again for each event.
    #[schemars(extend("x-unit" = "hosts"), range(min = 1))]
    pub fan_in: u32,
    /// Flows that each sender sends at once, at least 1. With values above 1 a receiver can get
    /// more flows than there are hosts.
    #[serde(default = "defaults::one")]
    #[schemars(range(min = 1), extend("x-unit" = "flows"))]
    pub flows_per_sender: u32,
    size_or_sizes,
    /// Name of the receiver, or `"random"` (drawn again for each event), `"fixed"` (drawn once for
    /// all events), or `"rotate"` (the receivers take turns).
    #[serde(default = "defaults::random")]
    pub to: String,
    /// Hosts or groups of hosts that receive, by `"random"`, `"fixed"` or `"rotate"`. Default: all.
    #[schemars(extend("x-default" = "all hosts"))]
    pub receivers: Option<Vec<String>>,
    /// Hosts or groups of hosts from which senders are drawn. Default: all.
    #[schemars(extend("x-default" = "all hosts"))]
    pub from: Option<Vec<String>>,
    priority,
    priorities,
    /// Time of the first event.
    #[serde(default = "defaults::zero_time")]
    pub start: Span,
    /// Time between events. Default: without this and `load` there is only one event.
    #[schemars(extend("x-default" = "from `load`; one event only without `load`"))]
    pub period: Option<Span>,
    /// Instead of `period`: offered load as a fraction of `load_of`, above 0, at most 10. It counts
    /// the wire bytes of data packets with headers.
    #[schemars(extend("x-unit" = "ratio", "x-default" = "none: `period` sets the times"))]
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 10))]
    pub load: Option<f64>,
    /// The meaning of a load of 1.
    #[schemars(extend("default" = IncastLoadOf::default()))]
    pub load_of: Option<IncastLoadOf>,
    /// No event starts from this time on. Default: the run's duration.
    #[schemars(extend("x-default" = "`run.duration`"))]
    pub stop: Option<Span>,
}

/// Every host sends one flow and receives one, from and to random others, all at once.
pub struct Permutation {
    name,
    size_or_sizes,
    /// Hosts or groups of hosts that take part. Default: all.
    #[schemars(extend("x-default" = "all hosts"))]
    pub hosts: Option<Vec<String>>,
    /// When all flows start.
    #[serde(default = "defaults::zero_time")]
    pub start: Span,
    priority,
    priorities,
}

/// Every host of `from` sends several flows, each to a random one of `to`.
pub struct Burst {
    name,
    /// Flows of each sender; at least 1.
    #[schemars(range(min = 1), extend("x-unit" = "flows"))]
    pub flows: u32,
    size_or_sizes,
    /// The senders: hosts or groups of hosts. Default: all hosts.
    #[schemars(extend("x-default" = "all hosts"))]
    pub from: Option<Vec<String>>,
    /// The receivers: hosts or groups of hosts. Default: all hosts. Each flow draws a receiver
    /// other than its sender.
    #[schemars(extend("x-default" = "all hosts"))]
    pub to: Option<Vec<String>>,
    /// When the first flow of each sender starts.
    #[serde(default = "defaults::zero_time")]
    pub start: Span,
    /// Time from one flow of a sender to its next. With 0 all of its flows start together.
    #[serde(default = "defaults::zero_time")]
    pub gap: Span,
    priority,
    priorities,
}

/// Flows around a loop of switches: from the hosts of each of its switches to those of the
/// switch `hops` links on. With two links and more, each link has flows of several
/// switches, and what waits for it can wait for itself.
pub struct Loop {
    name,
    /// The switches, at least three, in the direction of the flows. Each must have a link to the
    /// next, and the last to the first.
    pub switches: Vec<String>,
    /// Links of the loop that each flow crosses: from 1 to one less than there are switches.
    #[schemars(range(min = 1), extend("x-unit" = "links"))]
    pub hops: u32,
    /// Flows that enter the loop at each switch, at least 1. Both the hosts of that switch and the
    /// hosts of the exit switch take turns.
    #[serde(default = "defaults::one")]
    #[schemars(range(min = 1), extend("x-unit" = "flows"))]
    pub flows: u32,
    /// Payload of each flow.
    pub size: Bytes,
    /// When the flows start.
    #[serde(default = "defaults::zero_time")]
    pub start: Span,
    /// For each switch: the start delay of the flows that enter there. Default: all start together.
    #[schemars(extend("x-default" = "`\"0ps\"` for each switch"))]
    pub offsets: Option<Vec<Span>>,
    /// How often all flows are sent, at least 1.
    #[serde(default = "defaults::one")]
    #[schemars(range(min = 1), extend("x-unit" = "bursts"))]
    pub bursts: u32,
    /// Time from one burst to the next.
    #[serde(default = "defaults::zero_time")]
    pub period: Span,
    priority,
    priorities,
}

/// One flow.
pub struct SingleFlow {
    name,
    /// Name of the sender.
    pub src: String,
    /// Name of the receiver.
    pub dst: String,
    /// Payload, at least 1 B.
    pub size: Bytes,
    /// Start of the flow.
    #[serde(default = "defaults::zero_time")]
    pub start: Span,
    /// Names of all nodes of the path, including sender and receiver. ACKs return over the same
    /// nodes. Default: routed like other flows. The relays in a long link may be left out.
    #[schemars(extend("x-default" = "the path of `[routing]`"))]
    pub path: Option<Vec<String>>,
    /// Sending rate in wire bits. Default: line rate.
    #[schemars(extend("x-default" = "the line rate of the sender's link"))]
    pub rate: Option<Bandwidth>,
    priority,
}

/// Flows from a file.
pub struct FlowFile {
    name,
    /// Path of the file, relative to the scenario.
    pub file: String,
    /// Format of the file.
    #[serde(default)]
    pub format: FlowFormat,
    /// 802.1p priority. A file in the format `hpcc` has a priority for each flow instead.
    #[serde(default = "defaults::priority")]
    #[schemars(range(max = 7), extend("x-unit" = "802.1p priority"))]
    pub priority: u8,
    priorities,
}
}

/// Weights of priorities (`"0"` to `"7"`), above 0: `{ 3 = 0.5, 4 = 0.3, 5 = 0.2 }`.
pub type PriorityShares = BTreeMap<String, f64>;

/// An entry of a traffic matrix. Within it senders and receivers are uniform.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MatrixShare {
    /// The senders: a host or a group of hosts, such as `"H3"`, `"H0..H7"`, `"rack:2"`, `"all"`.
    pub from: String,
    /// The receivers: a host or a group of hosts.
    pub to: String,
    /// Share of the flows, 0 or more, relative to the sum of all entries.
    #[schemars(extend("x-unit" = "weight"))]
    pub share: f64,
}

/// Shares of the flows by distance to the receiver, relative to their sum. Receivers of a level
/// that is 0 or not written count for the next larger level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Locality {
    /// Receivers in the sender's rack.
    #[schemars(extend("x-unit" = "weight", "default" = 0.0))]
    pub rack: Option<f64>,
    /// Receivers in the sender's pod, but not in its rack.
    #[schemars(extend("x-unit" = "weight", "default" = 0.0))]
    pub pod: Option<f64>,
    /// Receivers in the sender's datacenter, but not in its rack or pod.
    #[schemars(extend("x-unit" = "weight", "default" = 0.0))]
    pub dc: Option<f64>,
    /// All other receivers.
    #[schemars(extend("x-unit" = "weight", "default" = 0.0))]
    pub other: Option<f64>,
}

/// The meaning of a load of 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadOf {
    /// The offered bits per second at which the first link of the topology is
    /// full, if this traffic follows its routes evenly.
    #[default]
    Saturation,
    /// The sum of the senders' link rates.
    HostLinks,
    /// So much for each sender, whatever its link: for the same traffic in networks of
    /// different rates.
    Each(Bandwidth),
}

/// What an incast's load of 1 is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IncastLoadOf {
    /// The links of one receiver, or the mean of several: the default.
    #[default]
    Receiver,
    /// The sum of the link rates of all hosts that may send.
    HostLinks,
}

/// What a file of flows looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowFormat {
    /// Comma-separated values under the header `src,dst,bytes,start`.
    #[default]
    Csv,
    /// The format of the HPCC simulator and its descendants: the number of flows, then lines `src
    /// dst pg dport size start`, with `start` in seconds. Id `i` is the host `H<i>`, and the
    /// priority group `pg` is the 802.1p priority. A wrong number of flows is an error.
    Hpcc,
}

/// Flow sizes: a known distribution (`"websearch"`), one size (`"1MB"`), a range
/// (`{ uniform = ["1kB", "2kB"] }`) or a CDF file (`{ file = "cdf.txt" }`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Sizes {
    /// A known distribution by name, or one size.
    Text(String),
    /// A range or a file.
    Table(SizesTable),
}

/// Exactly one of `uniform` and `file`; `step` is allowed with `uniform`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizesTable {
    /// Every whole number of bytes from the first to the second, equally likely.
    #[schemars(extend("x-default" = "required: `uniform` or `file`"))]
    pub uniform: Option<[Bytes; 2]>,
    /// Distance of the possible sizes in the range `uniform`, which must be a multiple of it. With
    /// the payload of a packet, flows are whole packets. Default: 1 B.
    #[schemars(extend("x-default" = "`\"1B\"`"))]
    pub step: Option<Bytes>,
    /// Path of a CDF file (lines of bytes and percent), relative to the scenario.
    #[schemars(extend("x-default" = "required: `uniform` or `file`"))]
    pub file: Option<String>,
}
