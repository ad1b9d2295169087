//! `[[traffic]]` of distributed computing: collectives whose flows wait for
//! others, and probes.

use super::defaults;
use super::traffic::{PriorityShares, Sizes, keys};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::units::{Bandwidth, Bytes, Span};

keys! {
/// Every host sends one flow to every other, all at once.
pub struct AllToAll {
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

/// Ring all-reduce: each host sends to the next one in the list (the last to the
/// first), in 2(n − 1) steps of a chunk of `size` / n bytes. A host's step begins
/// when the chunk of the step before has arrived from the host before it.
pub struct RingAllReduce {
    name,
    /// Bytes of each host that are reduced; at least 1 B for each host of the ring.
    pub size: Bytes,
    /// Hosts or groups of hosts, in the order of the ring. Default: all.
    #[schemars(extend("x-default" = "all hosts"))]
    pub hosts: Option<Vec<String>>,
    /// Rounds, one after another; at least 1.
    #[serde(default = "defaults::one")]
    #[schemars(range(min = 1), extend("x-unit" = "rounds"))]
    pub rounds: u32,
    /// When the first step begins.
    #[serde(default = "defaults::zero_time")]
    pub start: Span,
    /// Time that a host takes to reduce a chunk before it sends it.
    #[serde(default = "defaults::zero_time")]
    pub compute: Span,
    /// Time from a host's last chunk of a round to the beginning of its next round.
    #[serde(default = "defaults::zero_time")]
    pub gap: Span,
    priority,
}

/// Parameter servers: every worker pushes to every server; a server that has
/// everything sends its answer to all workers.
pub struct ParameterServer {
    name,
    /// Bytes that a worker pushes and receives in a round, in one shard for each server.
    pub size: Bytes,
    /// The servers: hosts or groups of hosts.
    pub servers: Vec<String>,
    /// The workers: hosts or groups of hosts. Default: all hosts except the servers.
    #[schemars(extend("x-default" = "all hosts except the servers"))]
    pub workers: Option<Vec<String>>,
    /// Rounds, one after another; at least 1.
    #[serde(default = "defaults::one")]
    #[schemars(range(min = 1), extend("x-unit" = "rounds"))]
    pub rounds: u32,
    /// When the first push begins.
    #[serde(default = "defaults::zero_time")]
    pub start: Span,
    /// Time from the last push at a server to its reply.
    #[serde(default = "defaults::zero_time")]
    pub compute: Span,
    /// Time from the last reply to a worker in a round to its next push.
    #[serde(default = "defaults::zero_time")]
    pub gap: Span,
    priority,
}

/// Mixture of experts: every host sends its tokens to the hosts with the experts
/// that they are meant for (dispatch); an expert that has all its tokens sends as
/// many bytes back (combine).
pub struct Moe {
    name,
    /// Hosts or groups of hosts that hold the tokens. Default: all.
    #[schemars(extend("x-default" = "all hosts"))]
    pub hosts: Option<Vec<String>>,
    /// Number of groups, at least 1. The hosts are divided in order into groups of equal size, each
    /// with its own experts.
    #[serde(default = "defaults::one")]
    #[schemars(range(min = 1), extend("x-unit" = "groups"))]
    pub groups: u32,
    /// Delay between the starts of two consecutive groups.
    #[serde(default = "defaults::zero_time")]
    pub phase: Span,
    /// Experts of a group: the first hosts of the group have one each.
    #[schemars(range(min = 1), extend("x-unit" = "experts"))]
    pub experts: u32,
    /// Relative probability of each expert. Default: all equal.
    #[schemars(extend("x-unit" = "weight", "x-default" = "equal weights"))]
    pub weights: Option<Vec<f64>>,
    /// Tokens of a host in each round, at least 1.
    #[schemars(range(min = 1), extend("x-unit" = "tokens"))]
    pub tokens: u32,
    /// Bytes of a token.
    pub token_size: Bytes,
    /// Different experts for each token, drawn by weight; at least 1.
    #[serde(default = "defaults::one")]
    #[schemars(range(min = 1), extend("x-unit" = "experts"))]
    pub experts_per_token: u32,
    /// Rounds, one after another; at least 1.
    #[serde(default = "defaults::one")]
    #[schemars(range(min = 1), extend("x-unit" = "rounds"))]
    pub rounds: u32,
    /// When the first group's first dispatch begins.
    #[serde(default = "defaults::zero_time")]
    pub start: Span,
    /// Time from the last token at an expert to its results.
    #[serde(default = "defaults::zero_time")]
    pub compute: Span,
    /// Time from the last result at a host in a round to its next dispatch.
    #[serde(default = "defaults::zero_time")]
    pub gap: Span,
    priority,
}

/// Training steps of a large model, spread over hosts in groups: a stage of the pipeline computes the forward
/// and the backward of micro-batches in turn (1F1B); in each layer, tensor groups all-reduce activations, and
/// expert groups exchange tokens; at the end of a step, data groups reduce-scatter gradients and all-gather
/// parameters. A host goes on when it has what it waits for.
pub struct TrainingStep {
    name,
    /// Hosts or groups of hosts, in the order of the ranks: those of a tensor group are neighbours, then those
    /// of an expert group and a data group, then the stages of the pipeline. Default: all.
    #[schemars(extend("x-default" = "all hosts"))]
    pub hosts: Option<Vec<String>>,
    /// Layers of the model; a multiple of `pipeline`.
    #[schemars(range(min = 1), extend("x-unit" = "layers"))]
    pub layers: u32,
    /// Elements of a token's activation (the hidden size).
    #[schemars(range(min = 1), extend("x-unit" = "elements"))]
    pub hidden: u64,
    /// Tokens of a sequence.
    #[schemars(range(min = 1), extend("x-unit" = "tokens"))]
    pub sequence: u64,
    /// Sequences of a micro-batch.
    #[serde(default = "defaults::one")]
    #[schemars(range(min = 1), extend("x-unit" = "sequences"))]
    pub micro_batch: u32,
    /// Micro-batches of each pipeline in a step.
    #[schemars(range(min = 1), extend("x-unit" = "micro-batches"))]
    pub micro_batches: u32,
    /// Parameters of the model, without those of its experts.
    #[schemars(range(min = 1), extend("x-unit" = "parameters"))]
    pub parameters: u64,
    /// Parameters of all experts of the model.
    #[serde(default)]
    #[schemars(extend("x-unit" = "parameters"))]
    pub expert_parameters: u64,
    /// GPUs that share each layer.
    #[serde(default = "defaults::one")]
    #[schemars(range(min = 1), extend("x-unit" = "GPUs"))]
    pub tensor: u32,
    /// Stages that the layers are divided into.
    #[serde(default = "defaults::one")]
    #[schemars(range(min = 1), extend("x-unit" = "stages"))]
    pub pipeline: u32,
    /// Ranks of a data group that a layer's experts are divided among; a divisor of the data group's size, which is
    /// the number of replicas that the hosts hold.
    #[serde(default = "defaults::one")]
    #[schemars(range(min = 1), extend("x-unit" = "ranks"))]
    pub expert: u32,
    /// Experts that each token goes to.
    #[serde(default = "defaults::one")]
    #[schemars(range(min = 1), extend("x-unit" = "experts"))]
    pub experts_per_token: u32,
    /// Size of an element of an activation, and of a parameter.
    #[serde(default = "defaults::element")]
    pub element: Bytes,
    /// Size of an element of a gradient.
    #[serde(default = "defaults::gradient")]
    pub gradient: Bytes,
    /// Rate of a GPU's links inside its server. With it, a host is a server with all GPUs of a tensor group,
    /// whose exchange takes time and no traffic. Default: each host is a GPU, and tensor groups exchange over the
    /// network.
    #[schemars(extend("x-default" = "tensor groups exchange over the network"))]
    pub scale_up: Option<Bandwidth>,
    /// Time that a stage computes for the forward of a micro-batch.
    pub forward: Span,
    /// Time that a stage computes for its backward. Default: twice `forward`.
    #[schemars(extend("x-default" = "2 × `forward`"))]
    pub backward: Option<Span>,
    /// Training steps, one after another.
    #[serde(default = "defaults::one")]
    #[schemars(range(min = 1), extend("x-unit" = "steps"))]
    pub steps: u32,
    /// Time that a host takes to update its parameters, between reduce-scatter and all-gather.
    #[serde(default = "defaults::zero_time")]
    pub optimizer: Span,
    /// When the first step begins.
    #[serde(default = "defaults::zero_time")]
    pub start: Span,
    priority,
}

/// Recorded computations and messages: one Chakra execution trace (MLCommons) for each host. Nodes wait for their
/// dependencies, computations take their recorded time, and the network carries all messages and collectives.
pub struct Trace {
    name,
    /// Paths of the traces, relative to the scenario: `{rank}` is replaced by the number of each rank, from 0. A
    /// trace may be compressed with gzip.
    pub files: String,
    /// Hosts or groups of hosts, in the order of the ranks. Default: all.
    #[schemars(extend("x-default" = "all hosts"))]
    pub hosts: Option<Vec<String>>,
    /// Path of a JSON file with the ranks of each group that a `pg_name` of the traces names, such as
    /// `{"1": [0, 1], "2": [2, 3]}`. Default: the groups that metadata nodes of the traces list.
    #[schemars(extend("x-default" = "the groups of the traces"))]
    pub groups: Option<String>,
    /// Factor of all recorded computations: 0.5 is for hosts that compute twice as fast.
    #[serde(default = "defaults::unscaled")]
    #[schemars(range(min = 0.0), extend("x-unit" = "factor"))]
    pub compute_scale: f64,
    /// Collectives that are no all-reduce, all-gather, reduce-scatter, all-to-all or barrier of GPUs.
    #[serde(default)]
    pub other_collectives: OtherCollectives,
    /// How often the traces run, one after another.
    #[serde(default = "defaults::one")]
    #[schemars(range(min = 1), extend("x-unit" = "steps"))]
    pub steps: u32,
    /// When the first step begins.
    #[serde(default = "defaults::zero_time")]
    pub start: Span,
    priority,
}

/// Small flows at regular times: each sender sends to its receivers one after another,
/// and the senders begin evenly spread over a period.
pub struct Probe {
    name,
    /// Payload of a probe.
    #[serde(default = "defaults::probe")]
    pub size: Bytes,
    /// Time between the probes of a sender.
    pub period: Span,
    /// The senders: hosts or groups of hosts. Default: all hosts.
    #[schemars(extend("x-default" = "all hosts"))]
    pub from: Option<Vec<String>>,
    /// The receivers: hosts or groups of hosts. Default: all hosts.
    #[schemars(extend("x-default" = "all hosts"))]
    pub to: Option<Vec<String>>,
    /// When the first probe starts.
    #[serde(default = "defaults::zero_time")]
    pub start: Span,
    /// No probe starts from this time on. Default: the run's duration.
    #[schemars(extend("x-default" = "`run.duration`"))]
    pub stop: Option<Span>,
    priority,
}
}

/// What becomes of a collective that cannot be sent, such as a broadcast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OtherCollectives {
    /// It is an error.
    #[default]
    Refuse,
    /// It takes its recorded time. It sends nothing, and its members do not wait for each other.
    RecordedTime,
}
