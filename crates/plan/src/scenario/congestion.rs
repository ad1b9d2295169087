//! The tables `[timely]`, `[hpcc]`, `[powertcp]`, `[dctcp]`, `[swift]`, `[nscc]`, `[rccc]`.

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

/// The congestion control `powertcp`, with telemetry. The defaults are those of its authors' group's
/// implementation for Linux.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PowerTcp {
    /// γ, the weight of the newest window; above 0, up to 1. Default: 0.9.
    #[schemars(extend("x-unit" = "ratio", "default" = PowerTcp::GAMMA, "exclusiveMinimum" = 0, "maximum" = 1))]
    pub gamma: Option<f64>,
    /// N, the expected flows of a bottleneck, 1 to 1000000: each ACK adds β, the line rate times
    /// `transport.base_rtt` over N, and in equilibrium a link's flows keep a queue of β each. Default: 10.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-unit" = "flows", "default" = PowerTcp::FLOWS))]
    pub flows: Option<u32>,
    /// The lowest rate of a flow. It must be below the line rate of at least one flow. Default: 1
    /// Gbit/s.
    #[schemars(extend("default" = MINIMUM_RATE))]
    pub minimum_rate: Option<Bandwidth>,
    /// Most hops whose telemetry fits into a packet, 1 to 63. Longer routes are refused. Default:
    /// 5.
    #[schemars(range(min = 1, max = 63), extend("x-unit" = "hops", "default" = Hpcc::HOPS))]
    pub hops: Option<u8>,
    /// Bytes of telemetry in each data packet and ACK, added to `transport.header` and
    /// `transport.ack`. Default: 2 B plus 8 B per hop, as HPCC's: 42 B. `load` does not count
    /// them.
    #[schemars(extend("x-default" = format!("derived: {} B + {} B × `hops`", Hpcc::HEAD, Hpcc::EACH_HOP)))]
    pub telemetry: Option<Bytes>,
}

impl PowerTcp {
    pub(crate) const GAMMA: f64 = 0.9;
    pub(crate) const FLOWS: u32 = 10;
    pub(crate) const MOST_FLOWS: u32 = 1_000_000;
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

/// The congestion control `swift`. Windows are in packets of `transport.mtu`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Swift {
    /// The target of the round trip's fabric delay without switches and with few flows, 100 ns or longer.
    /// Default: 20 us, the value of csg-htsim. It exceeds the unloaded round trip over 1 us links, so an
    /// idle path never decreases a window.
    #[schemars(extend("default" = Swift::BASE_TARGET))]
    pub base_target: Option<Span>,
    /// ħ, added to the target for each switch on the packet's path. Default: 3 us, as in csg-htsim
    /// (3.05 us). A switch with links of 1 us and 100 Gbit/s adds 2.1 us to an unloaded round trip.
    #[schemars(extend("default" = Swift::PER_HOP))]
    pub per_hop: Option<Span>,
    /// Largest addition to the target for many flows, at a window of `fs_min_cwnd`; 0 disables flow
    /// scaling. Default: 5 × `base_target`.
    #[schemars(extend("x-default" = format!("derived: {} × `base_target`", Swift::FS_RANGE)))]
    pub fs_range: Option<Span>,
    /// Window below which flow scaling adds no more than `fs_range`; 0.0001 to 1000000. Default: 0.1
    /// packets.
    #[schemars(extend("x-unit" = "packets", "default" = Swift::FS_MIN_CWND, "minimum" = Swift::LEAST, "maximum" = Swift::MOST))]
    pub fs_min_cwnd: Option<f64>,
    /// Window above which flow scaling adds nothing; above `fs_min_cwnd`, up to 1000000. Default: 100
    /// packets.
    #[schemars(extend("x-unit" = "packets", "default" = Swift::FS_MAX_CWND, "minimum" = Swift::LEAST, "maximum" = Swift::MOST))]
    pub fs_max_cwnd: Option<f64>,
    /// ai, the increase of a window in each round trip below the target; above 0, up to 1000. A window
    /// below 1 grows by `ai` for each acknowledged packet. Default: 1 packet.
    #[schemars(extend("x-unit" = "packets", "default" = Swift::ADDITIVE_INCREASE, "exclusiveMinimum" = 0, "maximum" = Swift::MOST_INCREASE))]
    pub additive_increase: Option<f64>,
    /// β: a delay above the target decreases a window by this share of (delay − target)/delay; above 0, up
    /// to 1. Default: 0.8.
    #[schemars(extend("x-unit" = "ratio", "default" = Swift::BETA, "exclusiveMinimum" = 0, "maximum" = 1))]
    pub beta: Option<f64>,
    /// Largest share of a window that one decrease removes; above 0, up to 1. Losses remove it too.
    /// Default: 0.5.
    #[schemars(extend("x-unit" = "ratio", "default" = Swift::MAX_MDF, "exclusiveMinimum" = 0, "maximum" = 1))]
    pub max_mdf: Option<f64>,
    /// Smallest window, 0.0001 to 1000000. A window below 1 is one packet in several round trips.
    /// Default: 0.001 packets (section 3.3 of the paper).
    #[schemars(extend("x-unit" = "packets", "default" = Swift::MIN_CWND, "minimum" = Swift::LEAST, "maximum" = Swift::MOST))]
    pub min_cwnd: Option<f64>,
    /// Largest window, `min_cwnd` to 1000000. Default: what a flow at line rate sends within the target of
    /// the longest path. No flow can use more without exceeding its target.
    #[schemars(extend("x-unit" = "packets", "x-default" = "derived: line rate × the target of the longest path", "minimum" = Swift::LEAST, "maximum" = Swift::MOST))]
    pub max_cwnd: Option<f64>,
    /// Window of a new flow, `min_cwnd` to `max_cwnd`. Default: what a flow at line rate sends within
    /// `transport.base_rtt`, because the other congestion controls begin at line rate, too.
    #[schemars(extend("x-unit" = "packets", "x-default" = "derived: line rate × `transport.base_rtt`", "minimum" = Swift::LEAST, "maximum" = Swift::MOST))]
    pub initial_cwnd: Option<f64>,
    /// RETX_RESET_THRESHOLD: consecutive timeouts that set the window to `min_cwnd`, 1 or more. Default: 5.
    #[schemars(range(min = 1), extend("x-unit" = "timeouts", "default" = Swift::RETX_RESET_THRESHOLD))]
    pub retx_reset_threshold: Option<u32>,
    /// The target of the average delay in the receiving host, 100 ns or longer. Default: `base_target`, so
    /// a slow receiver may hold as much as the fabric. csg-htsim has no such window.
    #[schemars(extend("x-default" = "derived: `base_target`"))]
    pub endpoint_target: Option<Span>,
    /// Weight of the newest sample in the average delay in the receiving host; above 0, up to 1. Default:
    /// 0.125, as in TCP's average of round trips (RFC 6298).
    #[schemars(extend("x-unit" = "ratio", "default" = Swift::ENDPOINT_GAIN, "exclusiveMinimum" = 0, "maximum" = 1))]
    pub endpoint_gain: Option<f64>,
}

impl Swift {
    pub(crate) const BASE_TARGET: Span = Span(20 * MICROSECOND);
    pub(crate) const PER_HOP: Span = Span(3 * MICROSECOND);
    /// fs_range is the base target times this.
    pub(crate) const FS_RANGE: u64 = 5;
    pub(crate) const FS_MIN_CWND: f64 = 0.1;
    pub(crate) const FS_MAX_CWND: f64 = 100.0;
    pub(crate) const ADDITIVE_INCREASE: f64 = 1.0;
    pub(crate) const BETA: f64 = 0.8;
    pub(crate) const MAX_MDF: f64 = 0.5;
    pub(crate) const MIN_CWND: f64 = 0.001;
    pub(crate) const RETX_RESET_THRESHOLD: u32 = 5;
    pub(crate) const ENDPOINT_GAIN: f64 = 0.125;
    /// Smallest and largest window that may be written, in packets.
    pub(crate) const LEAST: f64 = 0.0001;
    pub(crate) const MOST: f64 = 1_000_000.0;
    pub(crate) const MOST_INCREASE: f64 = 1_000.0;
}

/// The congestion control `nscc`. Increases scale with the flow's BDP over 150 kB, as in the specification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nscc {
    /// target_qdelay: above this queueing delay marked ACKs decrease the window, 100 ns or longer. Default:
    /// `transport.base_rtt`, or 0.75 of it where switches trim packets.
    #[schemars(extend("x-default" = "derived: `transport.base_rtt`; where switches trim packets 0.75 × `transport.base_rtt`"))]
    pub target_qdelay: Option<Span>,
    /// MaxWnd, the first and largest window, in multiples of line rate × base round trip; 0.1 to 100.
    /// Default: 1.5.
    #[schemars(extend("x-unit" = "BDP", "default" = Nscc::MAX_WND, "minimum" = Nscc::LEAST_WND, "maximum" = Nscc::MOST))]
    pub max_wnd: Option<f64>,
    /// Proportional increase per round trip without delay, in packets; 0 to 100. Default: 4.
    #[schemars(extend("x-unit" = "packets", "default" = Nscc::ALPHA, "minimum" = 0, "maximum" = Nscc::MOST))]
    pub alpha: Option<f64>,
    /// Fair increase per round trip, in packets; 0 to 100. Default: 5.
    #[schemars(extend("x-unit" = "packets", "default" = Nscc::FI, "minimum" = 0, "maximum" = Nscc::MOST))]
    pub fi: Option<f64>,
    /// Fast increase per acknowledged byte; 0 to 100. Default: 0.25.
    #[schemars(extend("x-unit" = "ratio", "default" = Nscc::FI_SCALE, "minimum" = 0, "maximum" = Nscc::MOST))]
    pub fi_scale: Option<f64>,
    /// Increase once per round trip in all cases, in packets; 0 to 100. Default: 0.15.
    #[schemars(extend("x-unit" = "packets", "default" = Nscc::ETA, "minimum" = 0, "maximum" = Nscc::MOST))]
    pub eta: Option<f64>,
    /// gamma, the share of a decrease; above 0, up to 1. Default: 0.8.
    #[schemars(extend("x-unit" = "ratio", "default" = Nscc::GAMMA, "exclusiveMinimum" = 0, "maximum" = 1))]
    pub gamma: Option<f64>,
    /// Largest share of the window that one decrease removes; above 0, up to 1. Default: 0.5.
    #[schemars(extend("x-unit" = "ratio", "default" = Nscc::MAX_MD_JUMP, "exclusiveMinimum" = 0, "maximum" = 1))]
    pub max_md_jump: Option<f64>,
    /// Quick adapt requires fewer bytes than the largest window / 2^`qa_gate`; up to 63. Default: 3.
    #[schemars(range(max = 63), extend("x-unit" = "power of 2", "default" = Nscc::QA_GATE))]
    pub qa_gate: Option<u32>,
    /// Quick adapt requires a longer queueing delay than this, or a trimmed packet. Default: 4 × `target_qdelay`,
    /// the value for switches that drop above 5 BDP; where switches trim packets only trimmed packets count.
    #[schemars(extend("x-default" = format!("derived: {} × `target_qdelay`; none where switches trim packets", Nscc::QA_THRESHOLD)))]
    pub qa_threshold: Option<Span>,
    /// Weight of the newest sample in the average queueing delay; above 0, up to 1. The specification
    /// leaves the average open. Default: 0.0125, as in uet-htsim.
    #[schemars(extend("x-unit" = "ratio", "default" = Nscc::DELAY_GAIN, "exclusiveMinimum" = 0, "maximum" = 1))]
    pub delay_gain: Option<f64>,
}

impl Nscc {
    pub(crate) const MAX_WND: f64 = 1.5;
    pub(crate) const ALPHA: f64 = 4.0;
    pub(crate) const FI: f64 = 5.0;
    pub(crate) const FI_SCALE: f64 = 0.25;
    pub(crate) const ETA: f64 = 0.15;
    pub(crate) const GAMMA: f64 = 0.8;
    pub(crate) const MAX_MD_JUMP: f64 = 0.5;
    pub(crate) const QA_GATE: u32 = 3;
    /// qa_threshold is the target times this.
    pub(crate) const QA_THRESHOLD: u64 = 4;
    pub(crate) const DELAY_GAIN: f64 = 0.0125;
    pub(crate) const LEAST_WND: f64 = 0.1;
    pub(crate) const MOST: f64 = 100.0;
}

/// The congestion control `rccc`: the credit that receivers grant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rccc {
    /// Share of its link's rate at which a receiver grants credit; 0.01 to 1. Default: 0.99.
    #[schemars(extend("x-unit" = "ratio", "default" = Rccc::RATE, "minimum" = Rccc::LEAST_RATE, "maximum" = 1))]
    pub rate: Option<f64>,
    /// Credit of one frame, rounded down to 256 B; 256 B to 16 MB. Default: four times `transport.mtu`, at least
    /// 256 B.
    #[schemars(extend("x-default" = "derived: 4 × `transport.mtu`"))]
    pub grant: Option<Bytes>,
    /// Whether each ACK carries the credit of its flow, too, for which the specification has room in it. A lost or late
    /// frame of credit then costs nothing after the next ACK. Default: false, as in uet-htsim.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub in_acks: bool,
}

impl Rccc {
    pub(crate) const RATE: f64 = 0.99;
    pub(crate) const LEAST_RATE: f64 = 0.01;
    /// Default of `grant`, in packets.
    pub(crate) const GRANT: u64 = 4;
    pub(crate) const MOST_GRANT: u64 = 16_000_000;
}
