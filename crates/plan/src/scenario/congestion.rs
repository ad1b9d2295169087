//! The tables `[timely]`, `[hpcc]`, `[dctcp]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::units::{Bandwidth, Bytes, Span};

/// The congestion control `timely`. The defaults are those of the evaluation of
/// HPCC (SIGCOMM 2019).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timely {
    /// α, the weight of the newest sample in the gradient of round-trip times; above 0, up to 1.
    /// Default: 0.875.
    pub ewma: Option<f64>,
    /// β, the share of a decrease; above 0, up to 1. Default: 0.8.
    pub beta: Option<f64>,
    /// T_low: below this round-trip time the rate always increases. Default: 50 us.
    pub t_low: Option<Span>,
    /// T_high: above this round-trip time the rate always decreases. Default: 500 us.
    pub t_high: Option<Span>,
    /// minRTT, the unit of the gradient, 100 ns or longer. Default: 20 us.
    pub min_rtt: Option<Span>,
    /// δ, the step of an increase. Default: 1/1000 of the line rate.
    pub additive_increase: Option<Bandwidth>,
    /// N·δ, the step of later increases. Default: 1/200 of the line rate.
    pub hyper_increase: Option<Bandwidth>,
    /// Number of increases of δ in a row, before increases of N·δ. Default: 5.
    pub hyper_after: Option<u32>,
    /// The lowest rate of a flow. It must be below the line rate of at least one flow. Default: 1
    /// Gbit/s.
    pub minimum_rate: Option<Bandwidth>,
}

/// The congestion control `hpcc`. What is not given comes from the preset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hpcc {
    /// Source of the values that are not written.
    pub preset: HpccPreset,
    /// η, the target utilisation of a link; above 0, up to 1. Default: 0.95.
    pub eta: Option<f64>,
    /// maxStage: additive increases in a row before an increase by utilisation.
    pub max_stage: Option<u32>,
    /// R_AI = W_AI/T, the step of additive increase.
    pub additive_increase: Option<Bandwidth>,
    /// The lowest rate of a flow. It must be below the line rate of at least one flow. Default: 1
    /// Gbit/s.
    pub minimum_rate: Option<Bandwidth>,
    /// Whether every ACK changes the rate, instead of one ACK per round trip. Default: true.
    pub fast_reaction: Option<bool>,
    /// Most hops whose telemetry fits into a packet, 1 to 63. Longer routes are refused. Default:
    /// 5.
    #[schemars(range(min = 1, max = 63))]
    pub hops: Option<u8>,
    /// Bytes of telemetry in each data packet and ACK, added to `transport.header` and
    /// `transport.ack`. Default: 2 B plus 8 B per hop, as in the paper: 42 B. `load` does not count
    /// them.
    pub telemetry: Option<Bytes>,
}

/// Sets of HPCC's parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HpccPreset {
    /// The defaults of the authors' public simulator, which later papers use: maxStage 0; R_AI 40
    /// Mbit/s at 100 Gbit/s, in proportion at other rates.
    #[default]
    Field,
    /// The values of HPCC's paper (SIGCOMM 2019): maxStage 5; W_AI 80 B.
    Paper,
}

/// The congestion control `dctcp`. The defaults are those of the evaluation of
/// HPCC (SIGCOMM 2019).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dctcp {
    /// g, the weight of the newest sample in α; above 0, up to 1. Once per round trip
    /// α ← (1 − g)·α + g·F, where F is the share of marked packets. Default: 1/16.
    pub gain: Option<f64>,
    /// R_AI, the step of additive increase. The first mark of a round trip sets R ← R·(1 − α/2); a
    /// round trip without a reduction adds R_AI. Default: 615 Mbit/s (1 kB per round trip of 13
    /// us).
    pub additive_increase: Option<Bandwidth>,
    /// R_min, the lowest rate of a flow. It must be below the line rate of at least one flow.
    /// Default: 1 Gbit/s.
    pub minimum_rate: Option<Bandwidth>,
}
