//! The tables `[timely]`, `[hpcc]`, `[dctcp]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::units::{Bandwidth, Bytes, Span};

/// The congestion control `timely`. The defaults are those of the evaluation of
/// HPCC (SIGCOMM 2019).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timely {
    /// α, the weight of news in the gradient of round-trip times; above 0, up to 1;
    /// 0.875 if not given.
    pub ewma: Option<f64>,
    /// β, the share of a decrease; above 0, up to 1; 0.8 if not given.
    pub beta: Option<f64>,
    /// T_low: below this round-trip time the rate grows whatever the gradient;
    /// 50 us if not given.
    pub t_low: Option<Span>,
    /// T_high: above this round-trip time the rate shrinks whatever the gradient;
    /// 500 us if not given.
    pub t_high: Option<Span>,
    /// minRTT, the unit of the gradient, 100 ns or longer; 20 us if not given.
    pub min_rtt: Option<Span>,
    /// δ, the step of an increase; line rate/1000 if not given.
    pub additive_increase: Option<Bandwidth>,
    /// N·δ, the step of later increases; line rate/200 if not given.
    pub hyper_increase: Option<Bandwidth>,
    /// So many increases without a decrease between are of δ, further ones of N·δ;
    /// 5 if not given.
    pub hyper_after: Option<u32>,
    /// The lowest rate of a flow; 1 Gbit/s if not given.
    pub minimum_rate: Option<Bandwidth>,
}

/// The congestion control `hpcc`. What is not given comes from the preset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hpcc {
    /// Where the values come from that are not given.
    pub preset: HpccPreset,
    /// η, the share of a link that is to be used; above 0, up to 1; 0.95 if not given.
    pub eta: Option<f64>,
    /// maxStage: so many additive increases in a row come before one by utilisation.
    pub max_stage: Option<u32>,
    /// R_AI = W_AI/T, the step of additive increase.
    pub additive_increase: Option<Bandwidth>,
    /// The lowest rate of a flow; 1 Gbit/s if not given.
    pub minimum_rate: Option<Bandwidth>,
    /// The rate follows every answer, instead of one per round trip; true if not given.
    pub fast_reaction: Option<bool>,
    /// Most hops that a packet has room to tell of, 1 to 63; 5 if not given. Longer
    /// routes are refused.
    #[schemars(range(min = 1, max = 63))]
    pub hops: Option<u8>,
    /// Bytes that telemetry takes in each data packet and each answer, besides
    /// `transport.header` and `transport.ack`; 2 B and 8 B per hop if not given, as in
    /// the paper: 42 B.
    pub telemetry: Option<Bytes>,
}

/// Sets of HPCC's parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HpccPreset {
    /// As the public simulator of its authors runs it by default, which others
    /// follow: maxStage 0; R_AI 40 Mbit/s at 100 Gbit/s and in proportion.
    #[default]
    Field,
    /// As its paper (SIGCOMM 2019) has it: maxStage 5; W_AI 80 B.
    Paper,
}

/// The congestion control `dctcp`. The defaults are those of the evaluation of
/// HPCC (SIGCOMM 2019).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dctcp {
    /// g, the weight of news in α; above 0, up to 1; 1/16 if not given.
    pub gain: Option<f64>,
    /// R_AI, the step of additive increase, once per round trip; 615 Mbit/s if not
    /// given (1 kB per round trip of 13 us).
    pub additive_increase: Option<Bandwidth>,
    /// R_min, the lowest rate of a flow; 1 Gbit/s if not given.
    pub minimum_rate: Option<Bandwidth>,
}
