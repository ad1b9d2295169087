//! The `[irn]`, `[tcp-newreno]`, `[tcp-dctcp]`, `[ndp]`, `[rud]` and `[dcqcn]` tables.

use crate::resolve::congestion::preset;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::time::{MICROSECOND, SECOND};
use xoff_net::units::{Bandwidth, Bytes, Span, Threshold};
use xoff_schemes::congestion_control::Step;
use xoff_schemes::congestion_control::dcqcn::{DcqcnParams, Reaction};
use xoff_schemes::transport::irn::Timer;

/// Timeouts of the transport `irn`, and what differs between datacenters. The
/// window is `transport.window`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Irn {
    /// Timeout while few packets are in flight. Default: 100 us (IRN, SIGCOMM 2018).
    #[schemars(extend("default" = Irn::RTO_LOW))]
    pub rto_low: Option<Span>,
    /// Timeout while more packets are in flight. Default: 320 us (IRN, SIGCOMM 2018).
    #[schemars(extend("default" = Irn::RTO_HIGH))]
    pub rto_high: Option<Span>,
    /// N: the number of packets in flight up to which `rto_low` applies. Default: 3 (IRN, SIGCOMM
    /// 2018).
    #[schemars(extend("x-unit" = "packets", "default" = Irn::FEW))]
    pub few: Option<u32>,
    /// What has a retransmission timer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = Timer::default()))]
    pub timer: Option<Timer>,
    /// Values for flows between datacenters.
    #[serde(skip_serializing_if = "IrnInter::is_default")]
    pub inter: IrnInter,
}

/// Those of Mittal et al., SIGCOMM 2018, §4.1.
impl Irn {
    pub(crate) const RTO_LOW: Span = Span(100 * MICROSECOND);
    pub(crate) const RTO_HIGH: Span = Span(320 * MICROSECOND);
    pub(crate) const FEW: u32 = 3;
}

/// Values for flows between datacenters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IrnInter {
    /// A flow is between datacenters if its route crosses a long link of `dci`, or a link whose
    /// one-way delay is longer than this. Default: 20 us, which is 4 km.
    #[schemars(extend("default" = IrnInter::LINK_DELAY))]
    pub link_delay: Option<Span>,
    /// Most payload in flight; see `transport.window`. Default: `"1bdp"`.
    #[schemars(extend("default" = IrnInter::WINDOW))]
    pub window: Option<Threshold>,
    /// Timeout while few packets are in flight. Default: the longest unloaded round trip among
    /// these flows plus `irn.rto_low`.
    #[schemars(extend("x-default" = "derived: `irn.rto_low` + the longest unloaded round trip of these flows"))]
    pub rto_low: Option<Span>,
    /// Timeout while more packets are in flight. Default: the longest unloaded round trip among
    /// these flows plus `irn.rto_high`.
    #[schemars(extend("x-default" = "derived: `irn.rto_high` + the longest unloaded round trip of these flows"))]
    pub rto_high: Option<Span>,
}

impl IrnInter {
    /// A link with more delay than this lies between datacenters: 4 km.
    pub(crate) const LINK_DELAY: Span = Span(20 * MICROSECOND);
    pub(crate) const WINDOW: Threshold = Threshold::Bdp(1_000);

    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The transport `ndp`: the first window and the timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ndp {
    /// Payload that a flow sends at line rate before the first PULL: bytes, or multiples of the flow's own BDP
    /// (the rate of the slowest link of its route times its unloaded round trip), rounded up to whole packets.
    /// Default: `"1bdp"`.
    #[schemars(extend("default" = Ndp::INITIAL_WINDOW))]
    pub initial_window: Option<Threshold>,
    /// Time after which a packet without an answer is retransmitted, and a sender without any answer sends
    /// a packet that was not requested; 100 ns or longer. Default: 1 ms.
    #[schemars(extend("default" = Ndp::RTO))]
    pub rto: Option<Span>,
}

impl Ndp {
    pub(crate) const INITIAL_WINDOW: Threshold = Threshold::Bdp(1_000);
    pub(crate) const RTO: Span = Span(1_000 * MICROSECOND);
}

/// The transport `rud`: how it finds losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Rud {
    /// If true, a sender infers losses from packets out of order: if at least 5 of them are acknowledged, and at least
    /// 1.5 windows or the largest window. It finds the losses of full queues and lossy links before the timeout.
    pub infer_losses: bool,
    /// If true, a sender without ACKs sends probes, and infers from the ACK of a probe that what left before it is
    /// lost, if the ACK comes soon. It requires `infer_losses`. A probe has the size of an ACK and the priority
    /// of the data. It is sent one round trip after the last ACK if all packets have been sent, else after three.
    pub probes: bool,
}

/// The transport `tcp-newreno`. The receive window is `transport.window`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpNewReno {
    /// Initial window of a flow in packets. Default: 10 (RFC 6928).
    #[schemars(range(min = 1), extend("x-unit" = "packets", "default" = TcpNewReno::INITIAL_WINDOW))]
    pub initial_window: Option<u32>,
    /// Retransmission timeout before the first round trip is measured. Default: 1 s (RFC 6298), or
    /// `max_rto` if that is shorter.
    #[schemars(extend("x-default" = tcp_timeout()))]
    pub initial_rto: Option<Span>,
    /// Minimum of the measured retransmission timeout. Default: 1 s (RFC 6298), or `max_rto` if
    /// that is shorter. Operating systems use 200 ms or less.
    #[schemars(extend("x-default" = tcp_timeout()))]
    pub min_rto: Option<Span>,
    /// Maximum of the retransmission timeout. Default: 60 s (RFC 6298).
    #[schemars(extend("default" = TcpNewReno::MAX_RTO))]
    pub max_rto: Option<Span>,
}

impl TcpNewReno {
    /// RFC 6928 §2.
    pub(crate) const INITIAL_WINDOW: u32 = 10;
    /// RFC 6298 §2: before a measurement (2.1), and at least (2.4).
    pub(crate) const RTO: Span = Span(SECOND);
    /// RFC 6298 §2.5: the least that an upper bound may be.
    pub(crate) const MAX_RTO: Span = Span(60 * SECOND);
}

/// The default of a timeout as the reference says it.
fn tcp_timeout() -> String {
    format!("{}, at most `max_rto`", text(TcpNewReno::RTO))
}

/// The transport `tcp-dctcp`: the keys of `tcp-newreno`, and g.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpDctcp {
    /// The same as `tcp-newreno.initial_window`.
    #[schemars(range(min = 1), extend("x-unit" = "packets", "default" = TcpNewReno::INITIAL_WINDOW))]
    pub initial_window: Option<u32>,
    /// The same as `tcp-newreno.initial_rto`.
    #[schemars(extend("x-default" = tcp_timeout()))]
    pub initial_rto: Option<Span>,
    /// The same as `tcp-newreno.min_rto`.
    #[schemars(extend("x-default" = tcp_timeout()))]
    pub min_rto: Option<Span>,
    /// The same as `tcp-newreno.max_rto`.
    #[schemars(extend("default" = TcpNewReno::MAX_RTO))]
    pub max_rto: Option<Span>,
    /// g, the weight of the newest sample in α; above 0, up to 1. Once per window of data
    /// α ← (1 − g)·α + g·F, where F is the share of marked packets; α begins at 1. Default: 1/16
    /// (DCTCP, SIGCOMM 2010).
    #[schemars(extend("x-unit" = "ratio", "default" = TcpDctcp::GAIN, "exclusiveMinimum" = 0, "maximum" = 1))]
    pub gain: Option<f64>,
}

impl TcpDctcp {
    /// g of DCTCP's paper (§4).
    pub(crate) const GAIN: f64 = 1.0 / 16.0;
}

/// The congestion control `dcqcn`. What is not given comes from the preset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Dcqcn {
    /// Source of the values that are not written.
    pub preset: DcqcnPreset,
    /// When a CNP changes the rate.
    #[schemars(extend("x-default" = by_preset(|p| reaction(p.reaction))))]
    pub reaction: Option<DcqcnReaction>,
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
    let [field, paper] = [DcqcnPreset::Field, DcqcnPreset::Paper].map(|of| value(&preset(of)));
    if field == paper {
        return field;
    }
    format!("by `preset`: {field} with `\"field\"`, {paper} with `\"paper\"`")
}

/// A value as a scenario has it, in the reference.
fn text(value: impl std::fmt::Display) -> String {
    format!("`\"{value}\"`")
}

fn number(value: impl std::fmt::Display) -> String {
    format!("`{value}`")
}

fn rate(step: Step) -> String {
    match step {
        Step::Rate(rate) => text(Bandwidth(rate)),
        Step::LineShare(divisor) => format!("line rate / {divisor}"),
    }
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

/// When a CNP changes the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DcqcnReaction {
    /// At the next check of a free-running timer, as in NICs.
    Periodic,
    /// Immediately, as in DCQCN's paper.
    Immediate,
}
