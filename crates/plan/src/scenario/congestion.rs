//! The tables `[timely]`, `[hpcc]`, `[dctcp]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::time::MICROSECOND;
use xoff_net::units::{Bandwidth, Bytes, Span};

/// The lowest rate of a flow, if not given.
pub(crate) const MINIMUM_RATE: Bandwidth = Bandwidth(1_000_000_000);

/// The congestion control `timely`. The defaults are those of the evaluation of
/// HPCC (SIGCOMM 2019).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timely {
    /// α, the weight of the newest sample in the gradient of round-trip times; above 0, up to 1.
    /// Default: 0.875.
    #[schemars(extend("x-unit" = "ratio", "default" = Timely::EWMA, "exclusiveMinimum" = 0, "maximum" = 1))]
    pub ewma: Option<f64>,
    /// β, the share of a decrease; above 0, up to 1. Default: 0.8.
    #[schemars(extend("x-unit" = "ratio", "default" = Timely::BETA, "exclusiveMinimum" = 0, "maximum" = 1))]
    pub beta: Option<f64>,
    /// T_low: below this round-trip time the rate always increases. Default: 50 us.
    #[schemars(extend("default" = Timely::T_LOW))]
    pub t_low: Option<Span>,
    /// T_high: above this round-trip time the rate always decreases. Default: 500 us.
    #[schemars(extend("default" = Timely::T_HIGH))]
    pub t_high: Option<Span>,
    /// minRTT, the unit of the gradient, 100 ns or longer. Default: 20 us.
    #[schemars(extend("default" = Timely::MIN_RTT))]
    pub min_rtt: Option<Span>,
    /// δ, the step of an increase. Default: 1/1000 of the line rate.
    #[schemars(extend("x-default" = format!("line rate / {}", Timely::ADDITIVE_SHARE)))]
    pub additive_increase: Option<Bandwidth>,
    /// N·δ, the step of later increases. Default: 1/200 of the line rate.
    #[schemars(extend("x-default" = format!("line rate / {}", Timely::HYPER_SHARE)))]
    pub hyper_increase: Option<Bandwidth>,
    /// Number of increases of δ in a row, before increases of N·δ. Default: 5.
    #[schemars(extend("x-unit" = "increases", "default" = Timely::HYPER_AFTER))]
    pub hyper_after: Option<u32>,
    /// The lowest rate of a flow. It must be below the line rate of at least one flow. Default: 1
    /// Gbit/s.
    #[schemars(extend("default" = MINIMUM_RATE))]
    pub minimum_rate: Option<Bandwidth>,
}

impl Timely {
    pub(crate) const EWMA: f64 = 0.875;
    pub(crate) const BETA: f64 = 0.8;
    pub(crate) const T_LOW: Span = Span(50 * MICROSECOND);
    pub(crate) const T_HIGH: Span = Span(500 * MICROSECOND);
    pub(crate) const MIN_RTT: Span = Span(20 * MICROSECOND);
    /// δ is the line rate divided by this: 100 Mbit/s at 100 Gbit/s.
    pub(crate) const ADDITIVE_SHARE: u64 = 1_000;
    /// N·δ is the line rate divided by this: 500 Mbit/s at 100 Gbit/s.
    pub(crate) const HYPER_SHARE: u64 = 200;
    pub(crate) const HYPER_AFTER: u32 = 5;
}

/// The congestion control `hpcc`. What is not given comes from the preset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hpcc {
    /// Source of the values that are not written.
    pub preset: HpccPreset,
    /// η, the target utilisation of a link; above 0, up to 1. Default: 0.95.
    #[schemars(extend("x-unit" = "ratio", "default" = Hpcc::ETA, "exclusiveMinimum" = 0, "maximum" = 1))]
    pub eta: Option<f64>,
    /// maxStage: additive increases in a row before an increase by utilisation.
    #[schemars(extend("x-unit" = "increases", "x-default" = max_stages()))]
    pub max_stage: Option<u32>,
    /// R_AI = W_AI/T, the step of additive increase.
    #[schemars(extend("x-default" = additive_increases()))]
    pub additive_increase: Option<Bandwidth>,
    /// The lowest rate of a flow. It must be below the line rate of at least one flow. Default: 1
    /// Gbit/s.
    #[schemars(extend("default" = MINIMUM_RATE))]
    pub minimum_rate: Option<Bandwidth>,
    /// Whether every ACK changes the rate, instead of one ACK per round trip. Default: true.
    #[schemars(extend("default" = true))]
    pub fast_reaction: Option<bool>,
    /// Most hops whose telemetry fits into a packet, 1 to 63. Longer routes are refused. Default:
    /// 5.
    #[schemars(range(min = 1, max = 63), extend("x-unit" = "hops", "default" = Hpcc::HOPS))]
    pub hops: Option<u8>,
    /// Bytes of telemetry in each data packet and ACK, added to `transport.header` and
    /// `transport.ack`. Default: 2 B plus 8 B per hop, as in the paper: 42 B. `load` does not count
    /// them.
    #[schemars(extend("x-default" = format!("derived: {} B + {} B × `hops`", Hpcc::HEAD, Hpcc::EACH_HOP)))]
    pub telemetry: Option<Bytes>,
}

impl Hpcc {
    pub(crate) const ETA: f64 = 0.95;
    /// R_AI of [`HpccPreset::Field`] is the line rate divided by this: 40 Mbit/s at 100 Gbit/s.
    pub(crate) const FIELD_SHARE: u64 = 2_500;
    /// W_AI in the evaluation of HPCC's paper, in bytes.
    pub(crate) const PAPER_STEP: u64 = 80;
    /// Hops that HPCC's header has room for.
    pub(crate) const HOPS: u8 = 5;
    /// HPCC's header without its hops (Li et al.), in bytes: the number of hops and that of the path.
    pub(crate) const HEAD: u64 = 2;
    /// Each hop in HPCC's header, in bytes.
    pub(crate) const EACH_HOP: u64 = 8;
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

/// The defaults of `max_stage` and `additive_increase` as the reference says them.
fn max_stages() -> String {
    let [field, paper] = [HpccPreset::Field, HpccPreset::Paper].map(HpccPreset::max_stage);
    format!("by `preset`: `{field}` with `\"field\"`, `{paper}` with `\"paper\"`")
}

fn additive_increases() -> String {
    let (share, step) = (Hpcc::FIELD_SHARE, Hpcc::PAPER_STEP);
    format!(
        "by `preset`: line rate / {share} with `\"field\"`, {step} B / `transport.base_rtt` with `\"paper\"`"
    )
}

impl HpccPreset {
    /// maxStage.
    pub(crate) const fn max_stage(self) -> u32 {
        match self {
            Self::Field => 0,
            Self::Paper => 5,
        }
    }
}

/// The congestion control `dctcp`. The defaults are those of the evaluation of
/// HPCC (SIGCOMM 2019).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dctcp {
    /// g, the weight of the newest sample in α; above 0, up to 1. Once per round trip
    /// α ← (1 − g)·α + g·F, where F is the share of marked packets. Default: 1/16.
    #[schemars(extend("x-unit" = "ratio", "default" = Dctcp::GAIN, "exclusiveMinimum" = 0, "maximum" = 1))]
    pub gain: Option<f64>,
    /// R_AI, the step of additive increase. The first mark of a round trip sets R ← R·(1 − α/2); a
    /// round trip without a reduction adds R_AI. Default: 615 Mbit/s (1 kB per round trip of 13
    /// us).
    #[schemars(extend("default" = Dctcp::ADDITIVE_INCREASE))]
    pub additive_increase: Option<Bandwidth>,
    /// R_min, the lowest rate of a flow. It must be below the line rate of at least one flow.
    /// Default: 1 Gbit/s.
    #[schemars(extend("default" = MINIMUM_RATE))]
    pub minimum_rate: Option<Bandwidth>,
}

impl Dctcp {
    pub(crate) const GAIN: f64 = 1.0 / 16.0;
    pub(crate) const ADDITIVE_INCREASE: Bandwidth = Bandwidth(615_000_000);
}
