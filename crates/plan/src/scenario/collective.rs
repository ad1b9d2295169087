//! `[[traffic]]` of distributed computing: collectives whose flows wait for
//! others, and probes.

use super::defaults;
use super::traffic::{PriorityShares, Sizes, keys};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::units::{Bytes, Span};

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
