//! `[zeropod]`: what a scenario says of pods without buffers.

use super::Order;
use super::params::Collision;
use crate::flow_control::keys::default_keys;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::units::{Bytes, Span};

/// Pods without buffers (Zeropod). The defaults are those of its evaluation of one pod
/// (§V-A), where it names a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Zeropod")]
pub struct ZeropodKeys {
    /// N: data cells in an epoch, 1 to 4096, and no fewer than positions below a switch
    /// less one. The paper has 16 in one pod, 32 in eight.
    #[serde(default = "defaults::cells")]
    #[schemars(range(min = 1, max = 4096))]
    #[schemars(extend("x-unit" = "cells"))]
    pub cells: u32,
    /// Payload of a data cell, 1 to 65535 B.
    #[serde(default = "defaults::payload")]
    pub payload: Bytes,
    /// Header of a data cell, up to 10000 B.
    #[serde(default = "defaults::control")]
    pub header: Bytes,
    /// A request or an answer (RTS, SCHD), 1 to 10000 B; two of them are shorter than a data cell.
    #[serde(default = "defaults::control")]
    pub control: Bytes,
    /// On both sides of a control slot, and behind each epoch.
    #[serde(default = "defaults::zero")]
    pub guard: Span,
    /// I: iterations of the scheduling algorithm, 1 to 1000.
    #[serde(default = "defaults::iterations")]
    #[schemars(range(min = 1, max = 1000))]
    #[schemars(extend("x-unit" = "iterations"))]
    pub iterations: u32,
    /// Paths that a demand asks for in an iteration, 1 to 1000.
    #[serde(default = "defaults::one")]
    #[schemars(range(min = 1, max = 1000))]
    #[schemars(extend("x-unit" = "paths"))]
    pub requests: u32,
    /// Who comes first of the demands without mice.
    #[serde(default)]
    pub order: Order,
    /// What a schedule takes. The paper grants 15 us to 256 hosts in a pod, 5 us to 16.
    #[serde(default = "defaults::delay")]
    pub delay: Span,
    /// k: of so many destinations, those with the shortest, an RTS tells what mice wait for them.
    #[serde(default = "defaults::top_k")]
    #[schemars(extend("x-unit" = "destinations"))]
    pub top_k: u16,
    /// So many cores, the last ones, take what hosts have of mice and nothing else.
    #[serde(default)]
    #[schemars(extend("x-unit" = "cores"))]
    pub mice_cores: u32,
    /// Bytes that a flow has sent when it leaves a level of its queue for the next one, in
    /// ascending order; 1 to 15 of them. What a flow sends in the first level is mice.
    /// Default: 100 kB, which the paper calls mice, then the thresholds of PIAS
    /// (NSDI 2015) for web search at a load of 0.8.
    #[serde(default = "defaults::levels")]
    pub levels: Vec<Bytes>,
    /// Flows of fewer cells are sent optimistically as well; 0 to 1000, where 0 and 1 are none.
    #[serde(default = "defaults::optimistic")]
    #[schemars(range(max = 1000))]
    #[schemars(extend("x-unit" = "cells"))]
    pub optimistic: u32,
    /// How often each of their cells is sent so, 1 to 1000, one round of all cells after the other,
    /// until the flow is granted. The paper does not say.
    #[serde(default = "defaults::one")]
    #[schemars(range(min = 1, max = 1000))]
    #[schemars(extend("x-unit" = "rounds"))]
    pub optimistic_rounds: u32,
    /// Which of two cells is lost that were sent without a grant and meet.
    #[serde(default)]
    pub collision: Collision,
    /// Whether anything is scheduled. If not, flows of fewer cells than `optimistic` are sent
    /// without a grant, once, and others not at all: what equations 1 to 7 are about.
    #[serde(default = "defaults::yes")]
    pub scheduled: bool,
    /// Memory of a core, 1 B to 1 EB.
    #[serde(default = "defaults::core_buffer")]
    pub core_buffer: Bytes,
    /// With more cells for a pod a core asks for nothing more for it.
    #[serde(default = "defaults::backpressure")]
    #[schemars(extend("x-unit" = "cells"))]
    pub backpressure: u32,
    /// The clocks of all pods begin at once, instead of each at a random part of an epoch.
    #[serde(default)]
    pub in_phase: bool,
    /// The clock of each host is off by something within this, at random.
    #[serde(default = "defaults::zero")]
    pub clock_error: Span,
    /// Receivers acknowledge what has come, and senders repeat what was lost.
    #[serde(default)]
    pub acks: bool,
    /// With `acks`: without news for so long a sender asks by a repeat, 1 us or longer.
    #[serde(default = "defaults::ack_timeout")]
    pub ack_timeout: Span,
    /// A link that was found to be down is tried again after this, 1 us or longer.
    #[serde(default = "defaults::retry")]
    pub retry: Span,
    /// Schedulers that fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scheduler_failure: Vec<SchedulerFailure>,
    /// Links between a scheduler and a switch of its pod that fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scheduler_link: Vec<SchedulerLink>,
}

/// A scheduler that fails, and whose backup takes over with all that it knew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SchedulerFailure {
    /// The pod, from 0.
    #[schemars(extend("x-unit" = "number of a pod"))]
    pub pod: u32,
    /// When.
    pub at: Span,
    /// How much later the backup hears and answers.
    pub takeover: Span,
}

/// The link between a scheduler and a switch of its pod that fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SchedulerLink {
    /// Name of the switch, a ToR or an aggregation switch.
    pub switch: String,
    /// From this time on …
    pub from: Span,
    /// … until this time; for ever if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none: it stays down"))]
    pub until: Option<Span>,
}

impl ZeropodKeys {
    /// The name of the table, and of the topology and the flow control that it is for.
    pub const NAME: &str = "zeropod";
}

/// Values of keys that are not given.
mod defaults {
    use xoff_kernel::time::{MICROSECOND, MILLISECOND};
    use xoff_net::units::{Bytes, Span};

    pub fn cells() -> u32 {
        16
    }
    pub fn payload() -> Bytes {
        Bytes(512)
    }
    pub fn control() -> Bytes {
        Bytes(40)
    }
    pub fn zero() -> Span {
        Span(0)
    }
    pub fn iterations() -> u32 {
        6
    }
    pub fn one() -> u32 {
        1
    }
    pub fn delay() -> Span {
        Span(15 * MICROSECOND)
    }
    pub fn top_k() -> u16 {
        16
    }
    pub fn levels() -> Vec<Bytes> {
        // Of PIAS in packets of 1460 B.
        let packets = [759, 1132, 1456, 1737, 2010, 2199, 2325];
        std::iter::once(100_000).chain(packets.map(|p| p * 1460)).map(Bytes).collect()
    }
    pub fn optimistic() -> u32 {
        5
    }
    pub fn yes() -> bool {
        true
    }
    pub fn core_buffer() -> Bytes {
        Bytes(32_000_000)
    }
    pub fn backpressure() -> u32 {
        320
    }
    pub fn ack_timeout() -> Span {
        Span(200 * MICROSECOND)
    }
    pub fn retry() -> Span {
        Span(MILLISECOND)
    }
}

default_keys!(ZeropodKeys);
