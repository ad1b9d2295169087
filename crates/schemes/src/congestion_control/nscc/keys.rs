//! The table `[nscc]`, and the parameters that it makes.

use super::super::keys::{
    Keys, Marking, Sets, Setting, Traits, at_most, default_target, out_of_range, share, timer,
};
use super::NsccParams;
use crate::flow_control::keys::{Complaint, LONGEST};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::time::Time;
use xoff_net::units::Span;

/// The congestion control `nscc`. Without `[ecn]` switches mark at dequeue from 30 kB to 120 kB per 100
/// Gbit/s of the port's rate: 0.2 and 0.8 of a BDP of 12 us; with `nscc+rccc` not at ports that lead to hosts.
/// The defaults are those of Ultra Ethernet's specification 1.0.1 for switches that do not trim packets, unless
/// another source is named. Increases scale with the flow's BDP over 150 kB. `nscc+rccc` reads this table, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NsccKeys {
    /// target_qdelay: above this queueing delay marked ACKs decrease the window, 100 ns or longer. Default:
    /// `transport.base_rtt`, or 0.75 of it where switches trim packets.
    #[schemars(extend("x-default" = "derived: `transport.base_rtt`; where switches trim packets 0.75 × `transport.base_rtt`"))]
    pub target_qdelay: Option<Span>,
    /// MaxWnd, the first and largest window, in multiples of line rate × base round trip; 0.1 to 100.
    /// Default: 1.5.
    #[schemars(extend("x-unit" = "BDP", "default" = NsccKeys::MAX_WND, "minimum" = NsccKeys::LEAST_WND, "maximum" = NsccKeys::MOST))]
    pub max_wnd: Option<f64>,
    /// Proportional increase per round trip without delay, in packets; 0 to 100. Default: 4.
    #[schemars(extend("x-unit" = "packets", "default" = NsccKeys::ALPHA, "minimum" = 0, "maximum" = NsccKeys::MOST))]
    pub alpha: Option<f64>,
    /// Fair increase per round trip, in packets; 0 to 100. Default: 5.
    #[schemars(extend("x-unit" = "packets", "default" = NsccKeys::FI, "minimum" = 0, "maximum" = NsccKeys::MOST))]
    pub fi: Option<f64>,
    /// Fast increase per acknowledged byte; 0 to 100. Default: 0.25.
    #[schemars(extend("x-unit" = "ratio", "default" = NsccKeys::FI_SCALE, "minimum" = 0, "maximum" = NsccKeys::MOST))]
    pub fi_scale: Option<f64>,
    /// Increase once per round trip in all cases, in packets; 0 to 100. Default: 0.15.
    #[schemars(extend("x-unit" = "packets", "default" = NsccKeys::ETA, "minimum" = 0, "maximum" = NsccKeys::MOST))]
    pub eta: Option<f64>,
    /// gamma, the share of a decrease; above 0, up to 1. Default: 0.8.
    #[schemars(extend("x-unit" = "ratio", "default" = NsccKeys::GAMMA, "exclusiveMinimum" = 0, "maximum" = 1))]
    pub gamma: Option<f64>,
    /// Largest share of the window that one decrease removes; above 0, up to 1. Default: 0.5.
    #[schemars(extend("x-unit" = "ratio", "default" = NsccKeys::MAX_MD_JUMP, "exclusiveMinimum" = 0, "maximum" = 1))]
    pub max_md_jump: Option<f64>,
    /// Quick adapt requires fewer bytes than the largest window / 2^`qa_gate`; up to 63. Default: 3.
    #[schemars(range(max = 63), extend("x-unit" = "power of 2", "default" = NsccKeys::QA_GATE))]
    pub qa_gate: Option<u32>,
    /// Quick adapt requires a longer queueing delay than this, or a trimmed packet. Default: 4 × `target_qdelay`,
    /// the value for switches that drop above 5 BDP; where switches trim packets only trimmed packets count.
    #[schemars(extend("x-default" = format!("derived: {} × `target_qdelay`; none where switches trim packets", NsccKeys::QA_THRESHOLD)))]
    pub qa_threshold: Option<Span>,
    /// Weight of the newest sample in the average queueing delay; above 0, up to 1. The specification
    /// leaves the average open. Default: 0.0125, as in uet-htsim.
    #[schemars(extend("x-unit" = "ratio", "default" = NsccKeys::DELAY_GAIN, "exclusiveMinimum" = 0, "maximum" = 1))]
    pub delay_gain: Option<f64>,
    /// The sample of that average where an ACK without a mark has a delay above `target_qdelay`.
    #[serde(default, skip_serializing_if = "UnmarkedDelay::is_measured")]
    #[schemars(extend("default" = UnmarkedDelay::default()))]
    pub unmarked_delay: UnmarkedDelay,
}

/// What the average of NSCC takes for a long delay without a mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnmarkedDelay {
    /// The delay.
    #[default]
    Measured,
    /// A quarter of the base round trip, as in uet-htsim.
    QuarterRtt,
}

impl UnmarkedDelay {
    fn is_measured(&self) -> bool {
        *self == Self::Measured
    }
}

impl NsccKeys {
    const MAX_WND: f64 = 1.5;
    const ALPHA: f64 = 4.0;
    const FI: f64 = 5.0;
    const FI_SCALE: f64 = 0.25;
    const ETA: f64 = 0.15;
    const GAMMA: f64 = 0.8;
    const MAX_MD_JUMP: f64 = 0.5;
    const QA_GATE: u32 = 3;
    /// qa_threshold is the target times this.
    const QA_THRESHOLD: u64 = 4;
    const DELAY_GAIN: f64 = 0.0125;
    const LEAST_WND: f64 = 0.1;
    const MOST: f64 = 100.0;
}

impl Keys for NsccKeys {
    type Params = NsccParams;

    const TRAITS: Traits = Traits { sets: Sets::Windows, has_base_rtt: true, ..Traits::NONE };

    /// 0.2 and 0.8 of the BDP of 12 us, as in the specification.
    fn marking(&self) -> Option<Marking> {
        let (from, to, per) = (30_000, 120_000, 100_000_000_000);
        Some(Marking { from, to, most: 1.0, per, leaves: true, last_hop: true })
    }

    fn target_delay(&self, cx: &Setting<'_>) -> Result<Time, Complaint> {
        match self.target_qdelay {
            Some(span) => timer("nscc.target_qdelay", span),
            None => Ok(default_target(cx.trims, cx.flows.base_rtt()?)),
        }
    }

    fn params(&self, cx: &mut Setting<'_>) -> Result<NsccParams, Complaint> {
        let base_rtt = cx.flows.base_rtt()?;
        let target = self.target_delay(cx)?;
        // With trimmed packets no delay is too long.
        let by_delay = Span(Self::QA_THRESHOLD * if cx.trims { LONGEST } else { target });
        let qa_threshold = self.qa_threshold.unwrap_or(by_delay);
        at_most("nscc.qa_threshold", qa_threshold, Span(Self::QA_THRESHOLD * LONGEST))?;
        let qa_gate = self.qa_gate.unwrap_or(Self::QA_GATE);
        if qa_gate > 63 {
            return Err(out_of_range("nscc.qa_gate", qa_gate, "write a whole number up to 63"));
        }
        let number = |key, given: Option<f64>, default, least| {
            let value = given.unwrap_or(default);
            if (least..=Self::MOST).contains(&value) {
                return Ok(value);
            }
            Err(out_of_range(key, value, format!("write a number from {least} to {}", Self::MOST)))
        };
        let part = |key: &str, given: Option<f64>, default: f64| {
            let symbol = key.trim_start_matches("nscc.");
            share(key, symbol, given.unwrap_or(default), &default.to_string())
        };
        Ok(NsccParams {
            base_rtt,
            target,
            max_wnd: number("nscc.max_wnd", self.max_wnd, Self::MAX_WND, Self::LEAST_WND)?,
            alpha: number("nscc.alpha", self.alpha, Self::ALPHA, 0.0)?,
            fi: number("nscc.fi", self.fi, Self::FI, 0.0)?,
            fi_scale: number("nscc.fi_scale", self.fi_scale, Self::FI_SCALE, 0.0)?,
            eta: number("nscc.eta", self.eta, Self::ETA, 0.0)?,
            gamma: part("nscc.gamma", self.gamma, Self::GAMMA)?,
            max_md_jump: part("nscc.max_md_jump", self.max_md_jump, Self::MAX_MD_JUMP)?,
            qa_gate,
            qa_threshold: qa_threshold.0,
            delay_gain: part("nscc.delay_gain", self.delay_gain, Self::DELAY_GAIN)?,
            unmarked_delay: self.unmarked_delay,
            last_hop: true,
            mtu: cx.packet.mtu,
        })
    }
}
