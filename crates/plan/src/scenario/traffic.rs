//! `[[traffic]]`: what is sent.

use super::defaults;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::units::{Bandwidth, Bytes, Span};

/// Something that is sent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Traffic {
    /// Flows between random pairs, with exponential gaps.
    Poisson(Poisson),
    /// Several senders to one receiver at once.
    Incast(Incast),
    /// Every host sends one flow and receives one.
    Permutation(Permutation),
    /// One flow.
    Flow(SingleFlow),
    /// Flows from a file.
    Flows(FlowFile),
}

impl Traffic {
    /// The kind as the scenario writes it.
    pub fn kind(&self) -> &'static str {
        match self {
            Traffic::Poisson(_) => "poisson",
            Traffic::Incast(_) => "incast",
            Traffic::Permutation(_) => "permutation",
            Traffic::Flow(_) => "flow",
            Traffic::Flows(_) => "flows",
        }
    }

    /// The name that the scenario gave it.
    pub fn name(&self) -> Option<&str> {
        match self {
            Traffic::Poisson(t) => t.name.as_deref(),
            Traffic::Incast(t) => t.name.as_deref(),
            Traffic::Permutation(t) => t.name.as_deref(),
            Traffic::Flow(t) => t.name.as_deref(),
            Traffic::Flows(t) => t.name.as_deref(),
        }
    }

    /// Priority of its data packets.
    pub fn priority(&self) -> u8 {
        match self {
            Traffic::Poisson(t) => t.priority,
            Traffic::Incast(t) => t.priority,
            Traffic::Permutation(t) => t.priority,
            Traffic::Flow(t) => t.priority,
            Traffic::Flows(t) => t.priority,
        }
    }
}

/// Flows between random pairs, with exponential gaps: the source is uniform
/// among `from`, the destination uniform among the others of `to`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Poisson {
    /// Name of the class in results; the kind (numbered if repeated) if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Flow sizes (payload).
    pub sizes: Sizes,
    /// Offered load as a fraction of `load_of`, above 0. Bytes of data packets on
    /// the wire count, headers included; ACKs do not.
    pub load: f64,
    /// What a load of 1 is.
    #[serde(default)]
    pub load_of: LoadOf,
    /// 802.1p priority.
    #[serde(default = "defaults::priority")]
    #[schemars(range(max = 7))]
    pub priority: u8,
    /// Names of the senders; all hosts if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Vec<String>>,
    /// Names of the receivers; all hosts if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Vec<String>>,
    /// Flows start from this time on …
    #[serde(default = "defaults::zero_time")]
    pub start: Span,
    /// … until this time; the run's duration if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Span>,
}

/// What a load of 1 is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadOf {
    /// The offered bits per second at which the first link of the topology is
    /// full, if this traffic follows its routes evenly.
    #[default]
    Saturation,
    /// The sum of the senders' link rates.
    HostLinks,
}

/// Several senders to one receiver at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Incast {
    /// Name of the class in results; the kind (numbered if repeated) if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Senders of one event, distinct and drawn anew for each; at least 1.
    pub fan_in: u32,
    /// Payload of each flow; or give `sizes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// Distribution of the flows' payload; or give `size`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Sizes>,
    /// Name of the receiver, or `"random"`: another one for each event.
    #[serde(default = "defaults::random")]
    pub to: String,
    /// Names of the hosts that senders are drawn from; all if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Vec<String>>,
    /// 802.1p priority.
    #[serde(default = "defaults::priority")]
    #[schemars(range(max = 7))]
    pub priority: u8,
    /// Time of the first event.
    #[serde(default = "defaults::zero_time")]
    pub start: Span,
    /// Distance of events; one event only if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<Span>,
    /// No event from this time on; the run's duration if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Span>,
}

/// Every host sends one flow and receives one, from and to random others, all at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Permutation {
    /// Name of the class in results; the kind (numbered if repeated) if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Payload of each flow; or give `sizes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// Distribution of the flows' payload; or give `size`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Sizes>,
    /// Names of the hosts that take part; all if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    /// When all flows start.
    #[serde(default = "defaults::zero_time")]
    pub start: Span,
    /// 802.1p priority.
    #[serde(default = "defaults::priority")]
    #[schemars(range(max = 7))]
    pub priority: u8,
}

/// One flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SingleFlow {
    /// Name of the class in results; the kind (numbered if repeated) if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Name of the sender.
    pub src: String,
    /// Name of the receiver.
    pub dst: String,
    /// Payload, at least 1 B.
    pub size: Bytes,
    /// When it starts.
    #[serde(default = "defaults::zero_time")]
    pub start: Span,
    /// Names of all nodes on its way, sender and receiver included; its ACKs
    /// return by the same nodes. Routed like other flows if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Vec<String>>,
    /// The sender keeps its packets this far apart (wire bits); line rate if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Bandwidth>,
    /// 802.1p priority.
    #[serde(default = "defaults::priority")]
    #[schemars(range(max = 7))]
    pub priority: u8,
}

/// Flows from a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowFile {
    /// Name of the class in results; the kind (numbered if repeated) if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Path of the file, relative to the scenario.
    pub file: String,
    /// What the file looks like.
    #[serde(default)]
    pub format: FlowFormat,
    /// 802.1p priority; a file in the format `hpcc` has one for each flow instead.
    #[serde(default = "defaults::priority")]
    #[schemars(range(max = 7))]
    pub priority: u8,
}

/// What a file of flows looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowFormat {
    /// Comma-separated values under the header `src,dst,bytes,start`.
    #[default]
    Csv,
    /// As the HPCC simulator and its descendants read it: the number of flows,
    /// then lines `src dst pg dport size start`, `start` in seconds. Id `i` is
    /// the host `H<i>`, and the priority group `pg` is the 802.1p priority.
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

/// Exactly one of the two keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizesTable {
    /// Every whole number of bytes from the first to the second, equally likely.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uniform: Option<[Bytes; 2]>,
    /// Path of a CDF file (lines of bytes and percent), relative to the scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}
