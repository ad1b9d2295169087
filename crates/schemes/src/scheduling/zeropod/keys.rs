//! `[zeropod]`: the keys of pods without buffers.

use super::{MiceCores, Order, Subtract, params::Collision};
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
    /// N: data cells in an epoch, 1 to 4096; at least the number of positions below a switch minus
    /// one. The paper has 16 in one pod, 32 in eight.
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
    /// Size of a request or a grant (RTS, SCHD), 1 to 10000 B; two of them must be shorter than a
    /// data cell.
    #[serde(default = "defaults::control")]
    pub control: Bytes,
    /// Bytes by which each of the `top_k` destinations lengthens `control`. The paper has 40 B at
    /// k = 16, and no size for another k.
    #[serde(default = "defaults::none")]
    pub entry: Bytes,
    /// Guard band on both sides of a control slot, and after each epoch.
    #[serde(default = "defaults::zero")]
    pub guard: Span,
    /// I: iterations of the scheduling algorithm, 1 to 1000.
    #[serde(default = "defaults::iterations")]
    #[schemars(range(min = 1, max = 1000))]
    #[schemars(extend("x-unit" = "iterations"))]
    pub iterations: u32,
    /// Paths that a demand requests in an iteration, 1 to 1000. The paper's text has one random
    /// path, its pseudocode all paths.
    #[serde(default = "defaults::one")]
    #[schemars(range(min = 1, max = 1000))]
    #[schemars(extend("x-unit" = "paths"))]
    pub requests: u32,
    /// Which demand without mice is served first.
    #[serde(default)]
    pub order: Order,
    /// Time to calculate a schedule. The paper uses 15 us for 256 hosts in a pod, 5 us for 16.
    #[serde(default = "defaults::delay")]
    pub delay: Span,
    /// When the scheduler subtracts a grant from its demands.
    #[serde(default)]
    pub subtract: Subtract,
    /// k: destinations in an RTS whose waiting mice it lists, those with the fewest bytes first.
    #[serde(default = "defaults::top_k")]
    #[schemars(extend("x-unit" = "destinations"))]
    pub top_k: u16,
    /// Number of cores that carry only mice: the last cores. The paper has 1 of 7.
    #[serde(default)]
    #[schemars(extend("x-unit" = "cores"))]
    pub mice_cores: u32,
    /// Cores that data with mice may take to another pod.
    #[serde(default)]
    pub mice_over: MiceCores,
    /// Bytes after which a flow moves to the next level of its queue, in ascending order; 1 to 15
    /// values. Data of the first level are mice. Default: 100 kB, the paper's mice, then the
    /// thresholds of PIAS (NSDI 2015) for web search at a load of 0.8.
    #[serde(default = "defaults::levels")]
    pub levels: Vec<Bytes>,
    /// Flows with fewer cells are also sent optimistically, without a grant; 0 to 1000. 0 and 1
    /// disable it.
    #[serde(default = "defaults::optimistic")]
    #[schemars(range(max = 1000))]
    #[schemars(extend("x-unit" = "cells"))]
    pub optimistic: u32,
    /// How often each of these cells is sent optimistically, 1 to 1000, in rounds over all cells,
    /// until the flow gets a grant. The paper gives no value.
    #[serde(default = "defaults::one")]
    #[schemars(range(min = 1, max = 1000))]
    #[schemars(extend("x-unit" = "rounds"))]
    pub optimistic_rounds: u32,
    /// Which cell is lost when two cells without a grant collide.
    #[serde(default)]
    pub collision: Collision,
    /// Whether cells are scheduled. If false, flows with fewer cells than `optimistic` are sent
    /// once without a grant, and other flows are not sent, as in equations 1 to 7.
    #[serde(default = "defaults::yes")]
    pub scheduled: bool,
    /// Buffer of a core for all pods together, from one cell (`payload` plus `header`) to 1 EB.
    #[serde(default = "defaults::core_buffer")]
    pub core_buffer: Bytes,
    /// Cells for one pod above which a core requests no more cells for that pod.
    #[serde(default = "defaults::backpressure")]
    #[schemars(extend("x-unit" = "cells"))]
    pub backpressure: u32,
    /// Whether the clocks of all pods begin together, instead of at random times within an epoch.
    #[serde(default)]
    pub in_phase: bool,
    /// Largest clock error of a host; errors are random.
    #[serde(default = "defaults::zero")]
    pub clock_error: Span,
    /// Receivers acknowledge cells, and senders retransmit lost cells.
    #[serde(default)]
    pub acks: bool,
    /// With `acks`: a sender retransmits after this time without an ACK, 1 us or longer.
    #[serde(default = "defaults::ack_timeout")]
    pub ack_timeout: Span,
    /// Time after which a failed link is tried again, 1 us or longer.
    #[serde(default = "defaults::retry")]
    pub retry: Span,
    /// Schedulers that fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scheduler_failure: Vec<SchedulerFailure>,
    /// Links between a scheduler and a switch of its pod that fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scheduler_link: Vec<SchedulerLink>,
}

/// A scheduler that fails. Its backup takes over with the same state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SchedulerFailure {
    /// The pod, from 0.
    #[schemars(extend("x-unit" = "number of a pod"))]
    pub pod: u32,
    /// Time of the failure.
    pub at: Span,
    /// Time from the failure until the backup receives and grants requests.
    pub takeover: Span,
}

/// The link between a scheduler and a switch of its pod that fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SchedulerLink {
    /// Name of the switch, a ToR or an aggregation switch.
    pub switch: String,
    /// Time of the failure.
    pub from: Span,
    /// Time of the recovery. Default: never.
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
    use crate::names::default_values;
    use xoff_kernel::time::{MICROSECOND, MILLISECOND};
    use xoff_net::units::{Bytes, Span};

    // Of PIAS, in packets of 1460 B.
    const PACKETS: [u64; 7] = [759, 1132, 1456, 1737, 2010, 2199, 2325];

    default_values! {
        cells: u32 = 16;
        payload: Bytes = Bytes(512);
        control: Bytes = Bytes(40);
        none: Bytes = Bytes(0);
        zero: Span = Span(0);
        iterations: u32 = 6;
        one: u32 = 1;
        delay: Span = Span(15 * MICROSECOND);
        top_k: u16 = 16;
        levels: Vec<Bytes> = [100_000].into_iter().chain(PACKETS.map(|p| p * 1460)).map(Bytes).collect();
        optimistic: u32 = 5;
        yes: bool = true;
        core_buffer: Bytes = Bytes(32_000_000);
        backpressure: u32 = 320;
        ack_timeout: Span = Span(200 * MICROSECOND);
        retry: Span = Span(MILLISECOND);
    }
}

default_keys!(ZeropodKeys);
