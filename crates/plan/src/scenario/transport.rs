//! The `[irn]`, `[tcp-newreno]`, `[tcp-dctcp]`, `[ndp]` and `[rud]` tables.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::time::{MICROSECOND, SECOND};
use xoff_net::units::{Span, Threshold};
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
    format!("`\"{}\"`, at most `max_rto`", TcpNewReno::RTO)
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
