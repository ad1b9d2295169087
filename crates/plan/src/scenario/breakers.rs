//! `[flow_control]` of Loop Breaker and Deadlock Breaker.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::time::{MICROSECOND, MILLISECOND};
use xoff_net::units::{Span, Threshold};

/// Loop Breaker: its own keys, and those of the PFC that it rests on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct LoopBreaker {
    /// The control planes.
    #[serde(flatten)]
    pub keys: LoopBreakerKeys,
    /// Pauses. `relay` is `"accounts"`.
    #[serde(flatten)]
    pub pfc: super::Pfc,
}

/// Control planes that look for deadlocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoopBreakerKeys {
    /// A device looks at its queues so often, beginning at a random time of its own.
    #[serde(default = "period")]
    pub period: Span,
    /// How long a message spends in the control plane of each device.
    #[serde(default = "latency")]
    pub latency: Span,
}

/// Deadlock Breaker: its own keys, and those of the PFC that it rests on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct DeadlockBreaker {
    /// The control planes.
    #[serde(flatten)]
    pub keys: DeadlockBreakerKeys,
    /// Pauses. `relay` is `"accounts"`.
    #[serde(flatten)]
    pub pfc: super::Pfc,
}

/// Control planes that look for deadlocks, and have room to give.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeadlockBreakerKeys {
    /// A device looks at its queues so often, beginning at a random time of its own.
    #[serde(default = "period")]
    pub period: Span,
    /// How long a message spends in the control plane of each device.
    #[serde(default = "latency")]
    pub latency: Span,
    /// What each ingress queue of a deadlock may take in beyond what it holds, from the shared
    /// pool; a largest packet at least. In bytes, or in BDP (rate times *one-way* delay) of
    /// the network's longest link. Default: `"2bdp"`, or a largest packet if that is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room: Option<Threshold>,
}

impl Default for LoopBreakerKeys {
    fn default() -> Self {
        LoopBreakerKeys { period: period(), latency: latency() }
    }
}

impl Default for DeadlockBreakerKeys {
    fn default() -> Self {
        DeadlockBreakerKeys { period: period(), latency: latency(), room: None }
    }
}

/// The papers name none. Short for a control plane, to the schemes' favour.
fn period() -> Span {
    Span(MILLISECOND)
}

/// As [`period`].
fn latency() -> Span {
    Span(100 * MICROSECOND)
}
