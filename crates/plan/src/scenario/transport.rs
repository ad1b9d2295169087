//! The `[irn]`, `[tcp-newreno]`, `[tcp-dctcp]` and `[dcqcn]` tables.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::units::{Bandwidth, Bytes, Span, Threshold};

/// Timeouts of the transport `irn`, and what differs between datacenters. The
/// window is `transport.window`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Irn {
    /// Timeout while few packets are in flight. Default 100 us (IRN, SIGCOMM 2018).
    pub rto_low: Option<Span>,
    /// Timeout while more are. Default 320 us (IRN, SIGCOMM 2018).
    pub rto_high: Option<Span>,
    /// N: so many packets in flight are few. Default 3 (IRN, SIGCOMM 2018).
    pub few: Option<u32>,
    /// What differs for flows between datacenters.
    #[serde(skip_serializing_if = "IrnInter::is_default")]
    pub inter: IrnInter,
}

/// What differs for flows between datacenters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IrnInter {
    /// A flow is between datacenters if its route crosses a long link of `dci`,
    /// or a link whose one-way delay is longer than this. Default 20 us, which is 4 km.
    pub link_delay: Option<Span>,
    /// Most payload in flight; see `transport.window`. Default `"1bdp"`.
    pub window: Option<Threshold>,
    /// Timeout while few packets are in flight. Default: the longest unloaded
    /// round trip among these flows, and `irn.rto_low` beyond it.
    pub rto_low: Option<Span>,
    /// Timeout while more are. Default: that round trip and `irn.rto_high`.
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
    /// Window that a flow begins with, in packets. Default 10 (RFC 6928).
    #[schemars(range(min = 1))]
    pub initial_window: Option<u32>,
    /// Retransmission timeout before the first round trip is measured. Default 1 s
    /// (RFC 6298), or `max_rto` if that is shorter.
    pub initial_rto: Option<Span>,
    /// Least retransmission timeout that follows from measurements. Default 1 s
    /// (RFC 6298), or `max_rto` if that is shorter; operating systems take 200 ms and less.
    pub min_rto: Option<Span>,
    /// Largest retransmission timeout, however often it is doubled. Default 60 s (RFC 6298).
    pub max_rto: Option<Span>,
}

/// The transport `tcp-dctcp`: the keys of `tcp-newreno`, and g.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpDctcp {
    /// As `tcp-newreno.initial_window`.
    #[schemars(range(min = 1))]
    pub initial_window: Option<u32>,
    /// As `tcp-newreno.initial_rto`.
    pub initial_rto: Option<Span>,
    /// As `tcp-newreno.min_rto`.
    pub min_rto: Option<Span>,
    /// As `tcp-newreno.max_rto`.
    pub max_rto: Option<Span>,
    /// g, the weight of news in α; above 0, up to 1. Default 1/16 (DCTCP, SIGCOMM 2010).
    pub gain: Option<f64>,
}

/// The congestion control `dcqcn`. What is not given comes from the preset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Dcqcn {
    /// Where the values come from that are not given.
    pub preset: DcqcnPreset,
    /// When notifications act.
    pub reaction: Option<DcqcnReaction>,
    /// Least time between two notifications (CNPs) of a flow. 0: none are sent,
    /// and each ACK tells whether what it answers was marked.
    pub cnp_interval: Option<Span>,
    /// A CNP on the wire; `transport.ack` if not given.
    pub cnp_size: Option<Bytes>,
    /// Priority of CNPs; that of the ACKs if not given.
    #[schemars(range(max = 7))]
    pub cnp_priority: Option<u8>,
    /// Time between two updates of α, 100 ns or longer.
    pub alpha_timer: Option<Span>,
    /// Time between two looks whether to decrease, 100 ns or longer; with the
    /// periodic reaction only.
    pub decrease_interval: Option<Span>,
    /// Time between two increases, 100 ns or longer.
    pub increase_timer: Option<Span>,
    /// Wire bytes between two increases of the byte counter; 0 is without it.
    pub byte_counter: Option<Bytes>,
    /// g, the weight of news in α; above 0, up to 1.
    pub gain: Option<f64>,
    /// F, the number of increases that are fast recovery.
    pub fast_recovery: Option<u32>,
    /// R_AI, the step of additive increase.
    pub additive_increase: Option<Bandwidth>,
    /// R_HAI, the step of hyper increase.
    pub hyper_increase: Option<Bandwidth>,
    /// R_min, the lowest rate of a flow.
    pub minimum_rate: Option<Bandwidth>,
    /// Every decrease sets the target to the rate. If false, a decrease that
    /// follows another without an increase between leaves the target.
    pub clamp_target: Option<bool>,
}

/// Sets of DCQCN's parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DcqcnPreset {
    /// As the evaluation of HPCC (SIGCOMM 2019) runs it, which others follow:
    /// periodic; marks travel in ACKs; α every 1 us, looks every 4 us, increases
    /// every 300 us without byte counter; g 1/256, F 1; R_AI and R_HAI 20 and
    /// 200 Mbit/s at 100 Gbit/s and in proportion; R_min 1 Gbit/s; the target is not clamped.
    #[default]
    Field,
    /// As its paper (SIGCOMM 2015): immediate; a CNP every 50 us at most; α and
    /// increases every 55 us, 10 MB of byte counter; g 1/256, F 5; R_AI 40
    /// Mbit/s; the target is clamped. R_HAI 200 Mbit/s and R_min 100 Mbit/s are
    /// of the simulator that its authors published.
    Paper,
}

/// When notifications act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DcqcnReaction {
    /// At the next look of a free-running timer, as in NICs.
    Periodic,
    /// At once, as in DCQCN's paper.
    Immediate,
}
