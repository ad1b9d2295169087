//! The table `[hpcc]`, and the parameters that it makes.

use super::super::Step;
use super::super::keys::{Keys, MINIMUM_RATE, Setting, Traits, share, step};
use super::super::telemetry::{self, EACH_HOP, HEAD, HOPS};
use super::HpccParams;
use crate::flow_control::keys::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::time::SECOND;
use xoff_net::units::{Bandwidth, Bytes};

/// The congestion control `hpcc`. The first ACK of a flow, and the first ACK after a route
/// change, only start a measurement. Load balancing by packet gives a warning, because packets seldom
/// take one path twice in a row. What is not given comes from the preset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HpccKeys {
    /// Source of the values that are not written.
    pub preset: HpccPreset,
    /// η, the target utilisation of a link; above 0, up to 1. Default: 0.95.
    #[schemars(extend("x-unit" = "ratio", "default" = HpccKeys::ETA, "exclusiveMinimum" = 0, "maximum" = 1))]
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
    #[schemars(range(min = 1, max = 63), extend("x-unit" = "hops", "default" = HOPS))]
    pub hops: Option<u8>,
    /// Bytes of telemetry in each data packet and ACK, added to `transport.header` and
    /// `transport.ack`. Default: 2 B plus 8 B per hop, as in the paper: 42 B. `load` does not count
    /// them.
    #[schemars(extend("x-default" = format!("derived: {} B + {} B × `hops`", HEAD, EACH_HOP)))]
    pub telemetry: Option<Bytes>,
}

impl HpccKeys {
    const ETA: f64 = 0.95;
    /// R_AI of [`HpccPreset::Field`] is the line rate divided by this: 40 Mbit/s at 100 Gbit/s.
    const FIELD_SHARE: u64 = 2_500;
    /// W_AI in the evaluation of HPCC's paper, in bytes.
    const PAPER_STEP: u64 = 80;
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
    let (share, step) = (HpccKeys::FIELD_SHARE, HpccKeys::PAPER_STEP);
    format!(
        "by `preset`: line rate / {share} with `\"field\"`, {step} B / `transport.base_rtt` with `\"paper\"`"
    )
}

impl HpccPreset {
    /// maxStage.
    const fn max_stage(self) -> u32 {
        match self {
            Self::Field => 0,
            Self::Paper => 5,
        }
    }
}

impl Keys for HpccKeys {
    type Params = HpccParams;

    const TRAITS: Traits = Traits { window_follows: true, has_base_rtt: true, ..Traits::RATES };

    fn telemetry(&self) -> Result<u32, Complaint> {
        telemetry::room("hpcc", self.hops, self.telemetry)
    }

    fn params(&self, cx: &mut Setting<'_>) -> Result<HpccParams, Complaint> {
        let base_rtt = cx.flows.base_rtt()?;
        telemetry::warn_of_paths(cx);
        let additive_increase = match self.preset {
            HpccPreset::Field => Step::LineShare(Self::FIELD_SHARE),
            HpccPreset::Paper => {
                let bits = u128::from(8 * Self::PAPER_STEP) * u128::from(SECOND) / u128::from(base_rtt);
                Step::Rate(u64::try_from(bits).unwrap_or(u64::MAX))
            }
        };
        let minimum_rate = step(self.minimum_rate, Step::Rate(MINIMUM_RATE.0));
        cx.check_minimum("hpcc.minimum_rate", minimum_rate)?;
        Ok(HpccParams {
            eta: share("hpcc.eta", "eta", self.eta.unwrap_or(Self::ETA), "0.95")?,
            max_stage: self.max_stage.unwrap_or(self.preset.max_stage()),
            additive_increase: step(self.additive_increase, additive_increase),
            minimum_rate,
            fast_reaction: self.fast_reaction.unwrap_or(true),
            base_rtt,
            hops: self.hops.unwrap_or(HOPS),
            telemetry: self.telemetry()?,
        })
    }
}
