//! The `[irn]`, `[tcp-newreno]`, `[tcp-dctcp]` and `[dcqcn]` tables.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::units::{Bandwidth, Bytes, Span, Threshold};

/// Timeouts of the transport `irn`, and what differs between datacenters. The
/// window is `transport.window`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Irn {
    /// Timeout while few packets are in flight. Default: 100 us (IRN, SIGCOMM 2018).
    pub rto_low: Option<Span>,
    /// Timeout while more packets are in flight. Default: 320 us (IRN, SIGCOMM 2018).
    pub rto_high: Option<Span>,
    /// N: the number of packets in flight up to which `rto_low` applies. Default: 3 (IRN, SIGCOMM
    /// 2018).
    pub few: Option<u32>,
    /// Values for flows between datacenters.
    #[serde(skip_serializing_if = "IrnInter::is_default")]
    pub inter: IrnInter,
}

/// Values for flows between datacenters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IrnInter {
    /// A flow is between datacenters if its route crosses a long link of `dci`, or a link whose
    /// one-way delay is longer than this. Default: 20 us, which is 4 km.
    pub link_delay: Option<Span>,
    /// Most payload in flight; see `transport.window`. Default: `"1bdp"`.
    pub window: Option<Threshold>,
    /// Timeout while few packets are in flight. Default: the longest unloaded round trip among
    /// these flows plus `irn.rto_low`.
    pub rto_low: Option<Span>,
    /// Timeout while more packets are in flight. Default: the longest unloaded round trip among
    /// these flows plus `irn.rto_high`.
    pub rto_high: Option<Span>,
}

impl IrnInter {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The transport `tcp-newreno`. The receive window is `transport.window`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpNewReno {
    /// Initial window of a flow in packets. Default: 10 (RFC 6928).
    #[schemars(range(min = 1))]
    pub initial_window: Option<u32>,
    /// Retransmission timeout before the first round trip is measured. Default: 1 s (RFC 6298), or
    /// `max_rto` if that is shorter.
    pub initial_rto: Option<Span>,
    /// Minimum of the measured retransmission timeout. Default: 1 s (RFC 6298), or `max_rto` if
    /// that is shorter. Operating systems use 200 ms or less.
    pub min_rto: Option<Span>,
    /// Maximum of the retransmission timeout. Default: 60 s (RFC 6298).
    pub max_rto: Option<Span>,
}

/// The transport `tcp-dctcp`: the keys of `tcp-newreno`, and g.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpDctcp {
    /// The same as `tcp-newreno.initial_window`.
    #[schemars(range(min = 1))]
    pub initial_window: Option<u32>,
    /// The same as `tcp-newreno.initial_rto`.
    pub initial_rto: Option<Span>,
    /// The same as `tcp-newreno.min_rto`.
    pub min_rto: Option<Span>,
    /// The same as `tcp-newreno.max_rto`.
    pub max_rto: Option<Span>,
    /// g, the weight of the newest sample in α; above 0, up to 1. Default: 1/16 (DCTCP, SIGCOMM
    /// 2010).
    pub gain: Option<f64>,
}

/// The congestion control `dcqcn`. What is not given comes from the preset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Dcqcn {
    /// Source of the values that are not written.
    pub preset: DcqcnPreset,
    /// When a CNP changes the rate.
    pub reaction: Option<DcqcnReaction>,
    /// Shortest time between two CNPs of a flow. With 0 no CNPs are sent, and each ACK carries the
    /// mark of its packet.
    pub cnp_interval: Option<Span>,
    /// Size of a CNP on the wire. Default: `transport.ack`.
    pub cnp_size: Option<Bytes>,
    /// Priority of CNPs. Default: the priority of ACKs.
    #[schemars(range(max = 7))]
    pub cnp_priority: Option<u8>,
    /// Time between two updates of α, 100 ns or longer.
    pub alpha_timer: Option<Span>,
    /// Time between two checks for CNPs, 100 ns or longer. Only the periodic reaction uses it.
    pub decrease_interval: Option<Span>,
    /// Time between two increases, 100 ns or longer.
    pub increase_timer: Option<Span>,
    /// Wire bytes between two increases by the byte counter; 0 disables it.
    pub byte_counter: Option<Bytes>,
    /// g, the weight of the newest sample in α; above 0, up to 1.
    pub gain: Option<f64>,
    /// F, the number of increases in fast recovery.
    pub fast_recovery: Option<u32>,
    /// R_AI, the step of additive increase.
    pub additive_increase: Option<Bandwidth>,
    /// R_HAI, the step of hyper increase.
    pub hyper_increase: Option<Bandwidth>,
    /// R_min, the lowest rate of a flow.
    pub minimum_rate: Option<Bandwidth>,
    /// If true, every decrease sets the target to the current rate. If false, a decrease directly
    /// after another decrease keeps the target.
    pub clamp_target: Option<bool>,
}

/// Sets of DCQCN's parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DcqcnPreset {
    /// The values of the evaluation of HPCC (SIGCOMM 2019), which later papers use. The reaction is
    /// periodic, and ACKs carry marks. α every 1 us, checks every 4 us, increases every 300 us
    /// without byte counter; g 1/256, F 1. R_AI and R_HAI 20 and 200 Mbit/s at 100 Gbit/s, in
    /// proportion at other rates; R_min 1 Gbit/s. The target is not clamped.
    #[default]
    Field,
    /// The values of DCQCN's paper (SIGCOMM 2015). The reaction is immediate, with at most one CNP
    /// every 50 us. α and increases every 55 us, byte counter of 10 MB; g 1/256, F 5; R_AI 40
    /// Mbit/s. The target is clamped. R_HAI 200 Mbit/s and R_min 100 Mbit/s come from the authors'
    /// simulator.
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
