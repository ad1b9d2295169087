//! The table `[swift]`, and the parameters that it makes.

use super::super::keys::{Keys, Sets, Setting, Traits, at_most, out_of_range, share, timer};
use super::{FlowScaling, SwiftParams};
use crate::flow_control::keys::{Complaint, LONGEST};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::time::{MICROSECOND, Time};
use xoff_net::units::Span;

/// The congestion control `swift`. The delay of each ACK changes the flow's window, which is in packets of
/// `transport.mtu`. The receiver's delay is not 0 only in hosts with `[[slow_receiver]]`. No published
/// table of values is known: unless another source is named, the defaults are those of csg-htsim,
/// whose authors call them guesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwiftKeys {
    /// The target of the round trip's fabric delay without switches and with few flows, 100 ns or longer.
    /// Default: 20 us, the value of csg-htsim. It exceeds the unloaded round trip over 1 us links, so an
    /// idle path never decreases a window.
    #[schemars(extend("default" = SwiftKeys::BASE_TARGET))]
    pub base_target: Option<Span>,
    /// ħ, added to the target for each switch on the packet's path. Default: 3 us, as in csg-htsim
    /// (3.05 us). A switch with links of 1 us and 100 Gbit/s adds 2.1 us to an unloaded round trip.
    #[schemars(extend("default" = SwiftKeys::PER_HOP))]
    pub per_hop: Option<Span>,
    /// Largest addition to the target for many flows, at a window of `fs_min_cwnd`; 0 disables flow
    /// scaling. Default: 5 × `base_target`.
    #[schemars(extend("x-default" = format!("derived: {} × `base_target`", SwiftKeys::FS_RANGE)))]
    pub fs_range: Option<Span>,
    /// Window below which flow scaling adds no more than `fs_range`; 0.0001 to 1000000. Default: 0.1
    /// packets.
    #[schemars(extend("x-unit" = "packets", "default" = SwiftKeys::FS_MIN_CWND, "minimum" = SwiftKeys::LEAST, "maximum" = SwiftKeys::MOST))]
    pub fs_min_cwnd: Option<f64>,
    /// Window above which flow scaling adds nothing; above `fs_min_cwnd`, up to 1000000. Default: 100
    /// packets.
    #[schemars(extend("x-unit" = "packets", "default" = SwiftKeys::FS_MAX_CWND, "minimum" = SwiftKeys::LEAST, "maximum" = SwiftKeys::MOST))]
    pub fs_max_cwnd: Option<f64>,
    /// ai, the increase of a window in each round trip below the target; above 0, up to 1000. A window
    /// below 1 grows by `ai` for each acknowledged packet. Default: 1 packet.
    #[schemars(extend("x-unit" = "packets", "default" = SwiftKeys::ADDITIVE_INCREASE, "exclusiveMinimum" = 0, "maximum" = SwiftKeys::MOST_INCREASE))]
    pub additive_increase: Option<f64>,
    /// β: a delay above the target decreases a window by this share of (delay − target)/delay; above 0, up
    /// to 1. Default: 0.8.
    #[schemars(extend("x-unit" = "ratio", "default" = SwiftKeys::BETA, "exclusiveMinimum" = 0, "maximum" = 1))]
    pub beta: Option<f64>,
    /// Largest share of a window that one decrease removes; above 0, up to 1. Losses remove it too.
    /// Default: 0.5.
    #[schemars(extend("x-unit" = "ratio", "default" = SwiftKeys::MAX_MDF, "exclusiveMinimum" = 0, "maximum" = 1))]
    pub max_mdf: Option<f64>,
    /// Smallest window, 0.0001 to 1000000. A window below 1 is one packet in several round trips.
    /// Default: 0.001 packets (section 3.3 of the paper).
    #[schemars(extend("x-unit" = "packets", "default" = SwiftKeys::MIN_CWND, "minimum" = SwiftKeys::LEAST, "maximum" = SwiftKeys::MOST))]
    pub min_cwnd: Option<f64>,
    /// Largest window, `min_cwnd` to 1000000. Default: what a flow at line rate sends within the target of
    /// the longest path. No flow can use more without exceeding its target.
    #[schemars(extend("x-unit" = "packets", "x-default" = "derived: line rate × the target of the longest path", "minimum" = SwiftKeys::LEAST, "maximum" = SwiftKeys::MOST))]
    pub max_cwnd: Option<f64>,
    /// Window of a new flow, `min_cwnd` to `max_cwnd`. Default: what a flow at line rate sends within
    /// `transport.base_rtt`, because the other congestion controls begin at line rate, too.
    #[schemars(extend("x-unit" = "packets", "x-default" = "derived: line rate × `transport.base_rtt`", "minimum" = SwiftKeys::LEAST, "maximum" = SwiftKeys::MOST))]
    pub initial_cwnd: Option<f64>,
    /// RETX_RESET_THRESHOLD: consecutive timeouts that set the window to `min_cwnd`, 1 or more. Default: 5.
    #[schemars(range(min = 1), extend("x-unit" = "timeouts", "default" = SwiftKeys::RETX_RESET_THRESHOLD))]
    pub retx_reset_threshold: Option<u32>,
    /// The target of the average delay in the receiving host, 100 ns or longer. Default: `base_target`, so
    /// a slow receiver may hold as much as the fabric. csg-htsim has no such window.
    #[schemars(extend("x-default" = "derived: `base_target`"))]
    pub endpoint_target: Option<Span>,
    /// Weight of the newest sample in the average delay in the receiving host; above 0, up to 1. Default:
    /// 0.125, as in TCP's average of round trips (RFC 6298).
    #[schemars(extend("x-unit" = "ratio", "default" = SwiftKeys::ENDPOINT_GAIN, "exclusiveMinimum" = 0, "maximum" = 1))]
    pub endpoint_gain: Option<f64>,
}

impl SwiftKeys {
    const BASE_TARGET: Span = Span(20 * MICROSECOND);
    const PER_HOP: Span = Span(3 * MICROSECOND);
    /// fs_range is the base target times this.
    const FS_RANGE: u64 = 5;
    const FS_MIN_CWND: f64 = 0.1;
    const FS_MAX_CWND: f64 = 100.0;
    const ADDITIVE_INCREASE: f64 = 1.0;
    const BETA: f64 = 0.8;
    const MAX_MDF: f64 = 0.5;
    const MIN_CWND: f64 = 0.001;
    const RETX_RESET_THRESHOLD: u32 = 5;
    const ENDPOINT_GAIN: f64 = 0.125;
    /// Smallest and largest window that may be written, in packets.
    const LEAST: f64 = 0.0001;
    const MOST: f64 = 1_000_000.0;
    const MOST_INCREASE: f64 = 1_000.0;
}

impl Keys for SwiftKeys {
    type Params = SwiftParams;

    const TRAITS: Traits = Traits { sets: Sets::Windows, has_base_rtt: true, ..Traits::NONE };

    fn params(&self, cx: &mut Setting<'_>) -> Result<SwiftParams, Complaint> {
        let base_target = self.base_target.unwrap_or(Self::BASE_TARGET);
        let per_hop = self.per_hop.unwrap_or(Self::PER_HOP);
        timer("swift.base_target", base_target)?;
        at_most("swift.per_hop", per_hop, Span(LONGEST))?;
        let fs_range = self.fs_range.unwrap_or(Span(Self::FS_RANGE * base_target.0));
        at_most("swift.fs_range", fs_range, Span(Self::FS_RANGE * LONGEST))?;
        let endpoint_target = timer("swift.endpoint_target", self.endpoint_target.unwrap_or(base_target))?;
        let additive_increase = self.additive_increase.unwrap_or(Self::ADDITIVE_INCREASE);
        if !(additive_increase > 0.0 && additive_increase <= Self::MOST_INCREASE) {
            let help = format!("write a number of packets above 0, up to {}", Self::MOST_INCREASE);
            return Err(out_of_range("swift.additive_increase", additive_increase, help));
        }
        let retx_reset_threshold = self.retx_reset_threshold.unwrap_or(Self::RETX_RESET_THRESHOLD);
        if retx_reset_threshold == 0 {
            return Err(out_of_range("swift.retx_reset_threshold", 0, "write a whole number, 1 or more"));
        }
        let base_rtt = cx.flows.base_rtt()?;
        let longest = check_targets(cx, base_target.0, per_hop.0);
        if !cx.slow_receivers {
            for key in ["swift.endpoint_target", "swift.endpoint_gain"] {
                if cx.written(key) {
                    cx.warn(key, "had no effect: without [[slow_receiver]] packets do not wait in receivers");
                }
            }
        }
        let part = |key, symbol, given: Option<f64>, default: f64| {
            share(key, symbol, given.unwrap_or(default), &default.to_string())
        };
        Ok(SwiftParams {
            base_target: base_target.0,
            per_hop: per_hop.0,
            flow_scaling: self.flow_scaling(fs_range)?,
            additive_increase,
            beta: part("swift.beta", "beta", self.beta, Self::BETA)?,
            max_mdf: part("swift.max_mdf", "max_mdf", self.max_mdf, Self::MAX_MDF)?,
            min_cwnd: self.windows(cx)?,
            max_cwnd: self.max_cwnd,
            initial_cwnd: self.initial_cwnd,
            retx_reset_threshold,
            endpoint_target,
            endpoint_gain: part(
                "swift.endpoint_gain",
                "endpoint_gain",
                self.endpoint_gain,
                Self::ENDPOINT_GAIN,
            )?,
            base_rtt,
            longest_target: longest.max(base_rtt),
            mtu: cx.packet.mtu,
        })
    }
}

impl SwiftKeys {
    fn flow_scaling(&self, range: Span) -> Result<FlowScaling, Complaint> {
        let least = self.fs_min_cwnd.unwrap_or(Self::FS_MIN_CWND);
        let most = self.fs_max_cwnd.unwrap_or(Self::FS_MAX_CWND);
        for (key, cwnd) in [("swift.fs_min_cwnd", least), ("swift.fs_max_cwnd", most)] {
            check_window(key, cwnd)?;
        }
        if least >= most {
            let message = format!("fs_min_cwnd = {least} is not below fs_max_cwnd = {most}");
            let key = if self.fs_min_cwnd.is_some() { "swift.fs_min_cwnd" } else { "swift.fs_max_cwnd" };
            let help = "write fs_min_cwnd below fs_max_cwnd: between them the target falls to its minimum";
            return Err(Complaint::new(key, message, help));
        }
        Ok(FlowScaling::new(range.0, least, most))
    }

    /// Checks the bounds of windows and the first window. Returns the smallest window.
    fn windows(&self, cx: &Setting<'_>) -> Result<f64, Complaint> {
        let least = self.min_cwnd.unwrap_or(Self::MIN_CWND);
        let min = ("min_cwnd", Some(least));
        let (max, initial) = (("max_cwnd", self.max_cwnd), ("initial_cwnd", self.initial_cwnd));
        for (key, cwnd) in [min, max, initial] {
            cwnd.map_or(Ok(()), |cwnd| check_window(&format!("swift.{key}"), cwnd))?;
        }
        for ((low, least), (high, most)) in [(min, max), (min, initial), (initial, max)] {
            if let (Some(least), Some(most)) = (least, most)
                && least > most
            {
                let message = format!("{low} = {least} is above {high} = {most}");
                let key = if cx.written(&format!("swift.{low}")) { low } else { high };
                let help = format!("write {low} no larger than {high}");
                return Err(Complaint::new(&format!("swift.{key}"), message, help));
            }
        }
        Ok(least)
    }
}

/// Refuses a window that is out of range.
fn check_window(key: &str, cwnd: f64) -> Result<(), Complaint> {
    if (SwiftKeys::LEAST..=SwiftKeys::MOST).contains(&cwnd) {
        return Ok(());
    }
    let help = format!("write a number of packets from {} to {}", SwiftKeys::LEAST, SwiftKeys::MOST);
    Err(out_of_range(key, cwnd, help))
}

/// Warns of flows whose unloaded round trip is not below their target. Returns the target of the longest path.
fn check_targets(cx: &mut Setting<'_>, base: Time, per_hop: Time) -> Time {
    let (mut longest, mut above, mut worst) = (base, 0, (0, 0));
    cx.flows.trips(&mut |links, trip| {
        let target = base.saturating_add(per_hop.saturating_mul(links.saturating_sub(1)));
        longest = longest.max(target);
        if trip >= target {
            above += 1;
            worst = worst.max((trip, target));
        }
    });
    if above > 0 {
        let (trip, target) = worst;
        let message = format!(
            "the unloaded round trip of {above} of {} flows is not below the target: up to {} ns, with a target of {}; their windows shrink without congestion",
            cx.flows.number(),
            trip.div_ceil(1_000),
            Span(target)
        );
        cx.warn("swift.base_target", message);
    }
    longest
}
