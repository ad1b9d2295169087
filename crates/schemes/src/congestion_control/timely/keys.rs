//! The table `[timely]`, and the parameters that it makes.

use super::super::Step;
use super::super::keys::{Keys, MINIMUM_RATE, Setting, Traits, at_most, share, step, timer};
use super::TimelyParams;
use crate::flow_control::keys::{Complaint, LONGEST};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::time::MICROSECOND;
use xoff_net::units::{Bandwidth, Span};

/// The congestion control `timely`. It measures a round trip from the start of sending a packet
/// until its ACK. Retransmissions are not measured. With `transport.ack_every` above 1 the wait
/// for the ACK is included. The defaults are those of the evaluation of HPCC (SIGCOMM 2019).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimelyKeys {
    /// α, the weight of the newest sample in the gradient of round-trip times; above 0, up to 1.
    /// Default: 0.875.
    #[schemars(extend("x-unit" = "ratio", "default" = TimelyKeys::EWMA, "exclusiveMinimum" = 0, "maximum" = 1))]
    pub ewma: Option<f64>,
    /// β, the share of a decrease; above 0, up to 1. Default: 0.8.
    #[schemars(extend("x-unit" = "ratio", "default" = TimelyKeys::BETA, "exclusiveMinimum" = 0, "maximum" = 1))]
    pub beta: Option<f64>,
    /// T_low: below this round-trip time the rate always increases. Default: 50 us.
    #[schemars(extend("default" = TimelyKeys::T_LOW))]
    pub t_low: Option<Span>,
    /// T_high: above this round-trip time the rate always decreases. Default: 500 us.
    #[schemars(extend("default" = TimelyKeys::T_HIGH))]
    pub t_high: Option<Span>,
    /// minRTT, the unit of the gradient, 100 ns or longer. Default: 20 us.
    #[schemars(extend("default" = TimelyKeys::MIN_RTT))]
    pub min_rtt: Option<Span>,
    /// δ, the step of an increase. Default: 1/1000 of the line rate.
    #[schemars(extend("x-default" = format!("line rate / {}", TimelyKeys::ADDITIVE_SHARE)))]
    pub additive_increase: Option<Bandwidth>,
    /// N·δ, the step of later increases. Default: 1/200 of the line rate.
    #[schemars(extend("x-default" = format!("line rate / {}", TimelyKeys::HYPER_SHARE)))]
    pub hyper_increase: Option<Bandwidth>,
    /// Number of increases of δ in a row, before increases of N·δ. Default: 5.
    #[schemars(extend("x-unit" = "increases", "default" = TimelyKeys::HYPER_AFTER))]
    pub hyper_after: Option<u32>,
    /// The lowest rate of a flow. It must be below the line rate of at least one flow. Default: 1
    /// Gbit/s.
    #[schemars(extend("default" = MINIMUM_RATE))]
    pub minimum_rate: Option<Bandwidth>,
}

impl TimelyKeys {
    const EWMA: f64 = 0.875;
    const BETA: f64 = 0.8;
    const T_LOW: Span = Span(50 * MICROSECOND);
    const T_HIGH: Span = Span(500 * MICROSECOND);
    const MIN_RTT: Span = Span(20 * MICROSECOND);
    /// δ is the line rate divided by this: 100 Mbit/s at 100 Gbit/s.
    const ADDITIVE_SHARE: u64 = 1_000;
    /// N·δ is the line rate divided by this: 500 Mbit/s at 100 Gbit/s.
    const HYPER_SHARE: u64 = 200;
    const HYPER_AFTER: u32 = 5;
}

impl Keys for TimelyKeys {
    type Params = TimelyParams;

    const TRAITS: Traits = Traits::RATES;

    fn params(&self, cx: &mut Setting<'_>) -> Result<TimelyParams, Complaint> {
        let (t_low, t_high) = (self.t_low.unwrap_or(Self::T_LOW), self.t_high.unwrap_or(Self::T_HIGH));
        for (key, span) in [("timely.t_low", t_low), ("timely.t_high", t_high)] {
            at_most(key, span, Span(LONGEST))?;
        }
        if t_low > t_high {
            let message = format!("t_low = {t_low} is above t_high = {t_high}");
            let key = if self.t_low.is_some() { "timely.t_low" } else { "timely.t_high" };
            let help =
                "write t_low no larger than t_high: below t_low rates increase, above t_high they decrease";
            return Err(Complaint::new(key, message, help));
        }
        let minimum_rate = step(self.minimum_rate, Step::Rate(MINIMUM_RATE.0));
        cx.check_minimum("timely.minimum_rate", minimum_rate)?;
        Ok(TimelyParams {
            ewma: share("timely.ewma", "alpha", self.ewma.unwrap_or(Self::EWMA), "0.875")?,
            beta: share("timely.beta", "beta", self.beta.unwrap_or(Self::BETA), "0.8")?,
            t_low: t_low.0,
            t_high: t_high.0,
            min_rtt: timer("timely.min_rtt", self.min_rtt.unwrap_or(Self::MIN_RTT))?,
            additive_increase: step(self.additive_increase, Step::LineShare(Self::ADDITIVE_SHARE)),
            hyper_increase: step(self.hyper_increase, Step::LineShare(Self::HYPER_SHARE)),
            hyper_after: self.hyper_after.unwrap_or(Self::HYPER_AFTER),
            minimum_rate,
        })
    }
}
