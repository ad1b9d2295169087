//! The table `[dcqcn]`, and the parameters that it makes.

use super::super::Step;
use super::super::keys::{Keys, Marking, Setting, Traits, out_of_range, rate, share, step, text, timer};
use super::{DcqcnParams, Reaction};
use crate::flow_control::keys::{Complaint, LONGEST, check_priority};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::time::{MICROSECOND, Time};
use xoff_net::units::{Bandwidth, Bytes, Span};

const GBPS: u64 = 1_000_000_000;
const MBPS: u64 = 1_000_000;
const PRIORITY: &str = "dcqcn.cnp_priority";

/// The congestion control `dcqcn`. A flow that never received a notification is not paced. What is not given comes
/// from the preset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DcqcnKeys {
    /// Source of the values that are not written.
    pub preset: DcqcnPreset,
    /// When a CNP changes the rate.
    #[schemars(extend("x-default" = by_preset(|p| reaction(p.reaction))))]
    pub reaction: Option<Reaction>,
    /// Shortest time between two CNPs of a flow. With 0 no CNPs are sent, and each ACK carries the
    /// mark of its packet.
    #[schemars(extend("x-default" = by_preset(|p| text(Span(p.cnp_interval)))))]
    pub cnp_interval: Option<Span>,
    /// Size of a CNP on the wire. Default: `transport.ack`.
    #[schemars(extend("x-default" = "`transport.ack`"))]
    pub cnp_size: Option<Bytes>,
    /// Priority of CNPs. Default: the priority of ACKs.
    #[schemars(range(max = 7), extend("x-unit" = "802.1p priority"))]
    #[schemars(extend("x-default" = "the priority of the ACKs"))]
    pub cnp_priority: Option<u8>,
    /// Time between two updates of α, 100 ns or longer.
    #[schemars(extend("x-default" = by_preset(|p| text(Span(p.alpha_timer)))))]
    pub alpha_timer: Option<Span>,
    /// Time between two checks for CNPs, 100 ns or longer. Only the periodic reaction uses it.
    #[schemars(extend("x-default" = by_preset(|p| text(Span(p.decrease_interval)))))]
    pub decrease_interval: Option<Span>,
    /// Time between two increases, 100 ns or longer.
    #[schemars(extend("x-default" = by_preset(|p| text(Span(p.increase_timer)))))]
    pub increase_timer: Option<Span>,
    /// Wire bytes between two increases by the byte counter; 0 disables it.
    #[schemars(extend("x-default" = by_preset(|p| text(Bytes(p.byte_counter)))))]
    pub byte_counter: Option<Bytes>,
    /// g, the weight of the newest sample in α; above 0, up to 1.
    #[schemars(extend("x-unit" = "ratio", "x-default" = by_preset(|p| number(p.gain))))]
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
    pub gain: Option<f64>,
    /// F, the number of increases in fast recovery.
    #[schemars(extend("x-unit" = "increases", "x-default" = by_preset(|p| number(p.fast_recovery))))]
    pub fast_recovery: Option<u32>,
    /// R_AI, the step of additive increase.
    #[schemars(extend("x-default" = by_preset(|p| rate(p.additive_increase))))]
    pub additive_increase: Option<Bandwidth>,
    /// R_HAI, the step of hyper increase.
    #[schemars(extend("x-default" = by_preset(|p| rate(p.hyper_increase))))]
    pub hyper_increase: Option<Bandwidth>,
    /// R_min, the lowest rate of a flow. It must be below the line rate of at least one flow.
    #[schemars(extend("x-default" = by_preset(|p| rate(p.minimum_rate))))]
    pub minimum_rate: Option<Bandwidth>,
    /// If true, every decrease sets the target to the current rate. If false, a decrease directly
    /// after another decrease keeps the target.
    #[schemars(extend("x-default" = by_preset(|p| number(p.clamp_target))))]
    pub clamp_target: Option<bool>,
}

/// The default of a key of `[dcqcn]` as the reference says it: a value for each preset.
fn by_preset(value: impl Fn(&DcqcnParams) -> String) -> String {
    let [field, paper] = [DcqcnPreset::Field, DcqcnPreset::Paper].map(|of| value(&of.params()));
    if field == paper {
        return field;
    }
    format!("by `preset`: {field} with `\"field\"`, {paper} with `\"paper\"`")
}

fn number(value: impl std::fmt::Display) -> String {
    format!("`{value}`")
}

fn reaction(reaction: Reaction) -> String {
    text(match reaction {
        Reaction::Periodic => "periodic",
        Reaction::Immediate => "immediate",
    })
}

/// Sets of DCQCN's parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DcqcnPreset {
    /// The values of the evaluation of HPCC (SIGCOMM 2019), which later papers use. The reaction is
    /// periodic, and ACKs carry marks. α every 1 us, checks every 4 us, increases every 300 us
    /// without byte counter; g 1/256, F 1. R_AI and R_HAI 20 and 200 Mbit/s at 100 Gbit/s, in
    /// proportion at other rates; R_min 1 Gbit/s. The target is not clamped. Without `[ecn]` switches
    /// mark with probability 0.2 from 100 to 400 kB per 25 Gbit/s, at dequeue.
    #[default]
    Field,
    /// The values of DCQCN's paper (SIGCOMM 2015). The reaction is immediate, with at most one CNP
    /// every 50 us. α and increases every 55 us, byte counter of 10 MB; g 1/256, F 5; R_AI 40
    /// Mbit/s. The target is clamped. R_HAI 200 Mbit/s and R_min 100 Mbit/s come from the authors'
    /// simulator. Without `[ecn]` switches mark with probability 0.01 from 5 to 200 kB per 40
    /// Gbit/s, at enqueue.
    Paper,
}

impl DcqcnPreset {
    /// The parameters of a scenario without other keys.
    fn params(self) -> DcqcnParams {
        let field = DcqcnParams {
            reaction: Reaction::Periodic,
            cnp_interval: 0,
            cnp_size: 0,
            cnp_lane: None,
            alpha_timer: MICROSECOND,
            decrease_interval: 4 * MICROSECOND,
            increase_timer: 300 * MICROSECOND,
            byte_counter: 0,
            gain: 1.0 / 256.0,
            fast_recovery: 1,
            // 5 and 50 Mbit/s at 25 Gbit/s.
            additive_increase: Step::LineShare(5_000),
            hyper_increase: Step::LineShare(500),
            minimum_rate: Step::Rate(GBPS),
            clamp_target: false,
        };
        match self {
            Self::Field => field,
            Self::Paper => DcqcnParams {
                reaction: Reaction::Immediate,
                cnp_interval: 50 * MICROSECOND,
                alpha_timer: 55 * MICROSECOND,
                decrease_interval: 50 * MICROSECOND,
                increase_timer: 55 * MICROSECOND,
                byte_counter: 10_000_000,
                fast_recovery: 5,
                additive_increase: Step::Rate(40 * MBPS),
                hyper_increase: Step::Rate(200 * MBPS),
                minimum_rate: Step::Rate(100 * MBPS),
                clamp_target: true,
                ..field
            },
        }
    }
}

impl Keys for DcqcnKeys {
    type Params = DcqcnParams;

    const TRAITS: Traits = Traits::RATES;

    fn marking(&self) -> Option<Marking> {
        Some(match self.preset {
            DcqcnPreset::Field => {
                let (from, to, per) = (100_000, 400_000, 25 * GBPS);
                Marking { from, to, most: 0.2, per, leaves: true, last_hop: true }
            }
            // For its switches of 40 Gbit/s.
            DcqcnPreset::Paper => {
                let (from, to, per) = (5_000, 200_000, 40 * GBPS);
                Marking { from, to, most: 0.01, per, leaves: false, last_hop: true }
            }
        })
    }

    fn notification_priority(&self) -> Result<Option<(u8, &'static str)>, Complaint> {
        let Some(priority) = self.cnp_priority else { return Ok(None) };
        check_priority(PRIORITY, priority)?;
        Ok((self.cnp_interval() > 0).then_some((priority, PRIORITY)))
    }

    fn params(&self, cx: &mut Setting<'_>) -> Result<DcqcnParams, Complaint> {
        let base = self.preset.params();
        let (reaction, packet) = (self.reaction.unwrap_or(base.reaction), cx.packet);
        let cnp_interval = self.cnp_interval();
        if cnp_interval > LONGEST {
            let help = format!("the maximum is {}", Span(LONGEST));
            return Err(out_of_range("dcqcn.cnp_interval", Span(cnp_interval), help));
        }
        let cnp_size = self.cnp_size.map_or(u64::from(packet.ack), |b| b.0);
        if !(1..=u64::from(packet.largest())).contains(&cnp_size) {
            let help = format!("write 1B to {}B, which is the largest packet", packet.largest());
            let message = format!("a CNP of {cnp_size} B is out of range");
            return Err(Complaint::new("dcqcn.cnp_size", message, help));
        }
        let byte_counter = self.byte_counter.map_or(base.byte_counter, |b| b.0);
        if (1..u64::from(packet.largest())).contains(&byte_counter) {
            let message = format!("byte_counter = {byte_counter} B is less than one packet");
            let help = format!("write {}B or more, or 0B to disable the byte counter", packet.largest());
            return Err(Complaint::new("dcqcn.byte_counter", message, help));
        }
        let gain = share("dcqcn.gain", "g", self.gain.unwrap_or(base.gain), "0.00390625 (1/256)")?;
        if reaction == Reaction::Immediate && self.decrease_interval.is_some() {
            let message = "had no effect: with the immediate reaction the rate decreases at each CNP";
            cx.warn("dcqcn.decrease_interval", message);
        }
        if cnp_interval == 0 {
            for key in ["dcqcn.cnp_size", PRIORITY] {
                if cx.written(key) {
                    cx.warn(key, "had no effect: with dcqcn.cnp_interval = 0 ACKs carry the marks");
                }
            }
        }
        let minimum_rate = step(self.minimum_rate, base.minimum_rate);
        cx.check_minimum("dcqcn.minimum_rate", minimum_rate)?;
        let period = |key, given: Option<Span>, base| timer(key, given.unwrap_or(Span(base)));
        Ok(DcqcnParams {
            reaction,
            cnp_interval,
            cnp_size: cnp_size as u32,
            cnp_lane: self.notification_priority()?.map(|(priority, _)| (cx.lane_of)(priority)),
            alpha_timer: period("dcqcn.alpha_timer", self.alpha_timer, base.alpha_timer)?,
            decrease_interval: period(
                "dcqcn.decrease_interval",
                self.decrease_interval,
                base.decrease_interval,
            )?,
            increase_timer: period("dcqcn.increase_timer", self.increase_timer, base.increase_timer)?,
            byte_counter,
            gain,
            fast_recovery: self.fast_recovery.unwrap_or(base.fast_recovery),
            additive_increase: step(self.additive_increase, base.additive_increase),
            hyper_increase: step(self.hyper_increase, base.hyper_increase),
            minimum_rate,
            clamp_target: self.clamp_target.unwrap_or(base.clamp_target),
        })
    }
}

impl DcqcnKeys {
    fn cnp_interval(&self) -> Time {
        self.cnp_interval.map_or(self.preset.params().cnp_interval, |s| s.0)
    }
}
