//! `[flow_control]` of ITSY.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::units::Threshold;

/// ITSY: its own keys, and those of the PFC that it rests on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Itsy {
    /// What is done about deadlocks.
    #[serde(flatten)]
    pub keys: ItsyKeys,
    /// PFC, whose frames carry the checks. `relay` is `"accounts"`.
    #[serde(flatten)]
    pub pfc: super::Pfc,
}

/// What is done about deadlocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ItsyKeys {
    /// What becomes of the queue that began a deadlock.
    #[serde(default)]
    pub resolution: ItsyResolution,
    /// With `resolution = "lossless"`: what the queue may take in beyond what it holds, from the
    /// shared pool; a largest packet at least. In bytes, or in BDP (rate times *one-way* delay)
    /// of the network's longest link. Default: `"2bdp"`, or a largest packet if that is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room: Option<Threshold>,
}

/// What becomes of the queue that began a deadlock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ItsyResolution {
    /// Packets of it are dropped, those of large flows first, until it lets its neighbour go.
    #[default]
    Lossy,
    /// It gets more room, if the shared pool has it.
    Lossless,
}
