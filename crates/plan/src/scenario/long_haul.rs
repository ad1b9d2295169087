//! `[flow_control]` of schemes for long links, and PFC's tables for the switches at their ends.

use super::{HeadroomRule, defaults};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::units::{Span, Threshold};

/// PFC's thresholds on some of the links, static ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkThresholds {
    /// As `flow_control.xoff`. Default: that, or `flow_control.reserve`, or `"2bdp"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xoff: Option<Threshold>,
    /// As `flow_control.xon`. Default: that if `xoff` is not given here, else
    /// `xon_offset` below `xoff`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xon: Option<Threshold>,
    /// As `flow_control.headroom`. Default: that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom: Option<HeadroomRule>,
}

/// Bifrost: keys of its own for long links, and those of PFC for all others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Bifrost {
    /// What long links are granted.
    #[serde(flatten)]
    pub keys: BifrostKeys,
    /// PFC on all other links. `response_time` and `priorities` are those of all.
    #[serde(flatten)]
    pub pfc: super::Pfc,
}

/// What long links are granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BifrostKeys {
    /// T: the downstream port of a link says so often for how much of the next slot
    /// its peer must pause. Longer than `processing` and than 64 B take on the link, at most a
    /// quarter of the link's one-way delay, and at most what 65535 quanta last.
    #[serde(default = "slot")]
    pub slot: Span,
    /// H: what the port grants by. In bytes, or in BDP (rate times *one-way* delay; the
    /// paper's BDP is `"2bdp"`). Default: the least with which no throughput is lost,
    /// Δ + 2·R·T and what packets and late frames add. Of each lossless priority; with
    /// `bifrostx` of all of them together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Threshold>,
    /// k: leaks are looked for in every so many slots, 1 to 1000; the port has room for k
    /// largest packets beyond H.
    #[serde(default = "defaults::one")]
    #[schemars(range(min = 1, max = 1000))]
    pub repair_every: u32,
    /// How much longer than its grant says a pause lasts, against packets that have
    /// just begun and frames that come late. Default: both in full, the time of two
    /// largest packets and `jitter`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<Span>,
    /// Room beyond H for what comes beyond what was granted, in bytes. Default: k
    /// largest packets, and what passes while a frame is late.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spare: Option<xoff_net::units::Bytes>,
    /// From the end of a slot until its frame is at the wire.
    #[serde(default = "processing")]
    pub processing: Span,
    /// A frame is late by up to this, uniformly.
    #[serde(default = "defaults::zero_time")]
    pub jitter: Span,
    /// How F, what can still arrive, is kept.
    #[serde(default)]
    pub history: BifrostHistory,
    /// Which links.
    #[serde(default)]
    pub links: BifrostLinks,
    /// `bifrostx`: what becomes of tokens that a priority does not use in its slot.
    #[serde(default)]
    pub leftover: BifrostLeftover,
    /// Accepts a `buffer` with which throughput is lost, to see it.
    #[serde(default)]
    pub undersized: bool,
}

/// How Bifrost keeps what can still arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BifrostHistory {
    /// By the grants of the last RTT + T.
    #[default]
    Grants,
    /// By the recurrence that the paper's Algorithm 1 prints.
    Recurrence,
}

/// Which links Bifrost grants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BifrostLinks {
    /// Long ones.
    #[default]
    Long,
    /// All that lead to a switch.
    All,
}

/// What becomes of tokens that a priority does not use in its slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BifrostLeftover {
    /// Any priority may use them until the slot ends.
    #[default]
    Pooled,
    /// They are lost: a priority gets what it has queued when the frame comes, as the
    /// paper's Algorithm 3 prints it.
    Reserved,
}

fn slot() -> Span {
    "10us".parse().expect("a time")
}

fn processing() -> Span {
    "1us".parse().expect("a time")
}

impl Default for BifrostKeys {
    fn default() -> Self {
        BifrostKeys {
            slot: slot(),
            buffer: None,
            repair_every: defaults::one(),
            margin: None,
            spare: None,
            processing: processing(),
            jitter: defaults::zero_time(),
            history: BifrostHistory::default(),
            links: BifrostLinks::default(),
            leftover: BifrostLeftover::default(),
            undersized: false,
        }
    }
}
