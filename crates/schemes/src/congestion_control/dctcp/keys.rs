//! The table `[dctcp]`, and the parameters that it makes.

use super::super::Step;
use super::super::keys::{Keys, MINIMUM_RATE, Marking, Setting, Traits, share, step};
use super::DctcpParams;
use crate::flow_control::keys::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::units::Bandwidth;

/// The congestion control `dctcp`. Without `[ecn]` switches mark all packets above 300 kB per
/// 100 Gbit/s of the port's rate, at dequeue. The defaults are those of the evaluation of HPCC (SIGCOMM 2019).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DctcpKeys {
    /// g, the weight of the newest sample in α; above 0, up to 1. Once per round trip
    /// α ← (1 − g)·α + g·F, where F is the share of marked packets. Default: 1/16.
    #[schemars(extend("x-unit" = "ratio", "default" = DctcpKeys::GAIN, "exclusiveMinimum" = 0, "maximum" = 1))]
    pub gain: Option<f64>,
    /// R_AI, the step of additive increase. The first mark of a round trip sets R ← R·(1 − α/2); a
    /// round trip without a reduction adds R_AI. Default: 615 Mbit/s (1 kB per round trip of 13
    /// us).
    #[schemars(extend("default" = DctcpKeys::ADDITIVE_INCREASE))]
    pub additive_increase: Option<Bandwidth>,
    /// R_min, the lowest rate of a flow. It must be below the line rate of at least one flow.
    /// Default: 1 Gbit/s.
    #[schemars(extend("default" = MINIMUM_RATE))]
    pub minimum_rate: Option<Bandwidth>,
}

impl DctcpKeys {
    const GAIN: f64 = 1.0 / 16.0;
    const ADDITIVE_INCREASE: Bandwidth = Bandwidth(615_000_000);
}

impl Keys for DctcpKeys {
    type Params = DctcpParams;

    const TRAITS: Traits = Traits { window_follows: true, ..Traits::RATES };

    fn marking(&self) -> Option<Marking> {
        let (from, to, per) = (300_000, 300_000, 100_000_000_000);
        Some(Marking { from, to, most: 1.0, per, leaves: true, last_hop: true })
    }

    fn params(&self, cx: &mut Setting<'_>) -> Result<DctcpParams, Complaint> {
        let minimum_rate = step(self.minimum_rate, Step::Rate(MINIMUM_RATE.0));
        cx.check_minimum("dctcp.minimum_rate", minimum_rate)?;
        Ok(DctcpParams {
            gain: share("dctcp.gain", "g", self.gain.unwrap_or(Self::GAIN), "0.0625 (1/16)")?,
            additive_increase: step(self.additive_increase, Step::Rate(Self::ADDITIVE_INCREASE.0)),
            minimum_rate,
        })
    }
}
