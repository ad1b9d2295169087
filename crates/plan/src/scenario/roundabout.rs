//! `[flow_control]` of Roundabout.

use super::defaults;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::units::{Span, Threshold};

/// Roundabout: its own keys, and those of the PFC that it rests on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Roundabout {
    /// What finds and dissolves deadlocks.
    #[serde(flatten)]
    pub keys: RoundaboutKeys,
    /// PFC, whose frames carry the probes. `relay` is `"accounts"`.
    #[serde(flatten)]
    pub pfc: super::Pfc,
}

/// What finds and dissolves deadlocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoundaboutKeys {
    /// Headroom of each lossless ingress queue beyond what PFC needs, a largest packet at
    /// least. In bytes, or in BDP (rate times *one-way* delay). Default: `"2bdp"`, the paper's
    /// BDP, or a largest packet if that is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spare: Option<Threshold>,
    /// How long a switch with a place in a loop waits for something to happen there before it
    /// gives up. Default: as long as a frame takes for four turns around 30 of the network's
    /// longest links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<Span>,
    /// Whether packets of other ingress queues make room in the loop when they leave its queue.
    /// `false` shows what goes wrong without: the loop stalls.
    #[serde(default = "defaults::yes")]
    pub audit: bool,
    /// `false`: deadlocks are found, and stay.
    #[serde(default = "defaults::yes")]
    pub dissolve: bool,
}

impl Default for RoundaboutKeys {
    fn default() -> Self {
        RoundaboutKeys { spare: None, patience: None, audit: true, dissolve: true }
    }
}
