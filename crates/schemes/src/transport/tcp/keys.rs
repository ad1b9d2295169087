//! The tables of NewReno and DCTCP.

use super::dctcp::{DctcpParams, ONE};
use super::newreno::NewRenoParams;
use crate::congestion_control::keys::share;
use crate::flow_control::keys::Complaint;
use crate::transport::keys::{Keys, Resolved, Setting, Traits, timeout};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::time::{SECOND, Time};
use xoff_net::units::Span;

/// The transport `tcp-newreno`: fast retransmit at the third duplicate ACK, fast recovery with
/// partial ACKs, and limited transmit. The receive window is `transport.window`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpNewReno {
    /// Initial window of a flow in packets. Default: 10 (RFC 6928).
    #[schemars(range(min = 1), extend("x-unit" = "packets", "default" = TcpNewReno::INITIAL_WINDOW))]
    pub initial_window: Option<u32>,
    /// Retransmission timeout before the first round trip is measured. Default: 1 s (RFC 6298), or
    /// `max_rto` if that is shorter.
    #[schemars(extend("x-default" = default_timeout()))]
    pub initial_rto: Option<Span>,
    /// Minimum of the measured retransmission timeout. Default: 1 s (RFC 6298), or `max_rto` if
    /// that is shorter. Operating systems use 200 ms or less.
    #[schemars(extend("x-default" = default_timeout()))]
    pub min_rto: Option<Span>,
    /// Maximum of the retransmission timeout. Default: 60 s (RFC 6298).
    #[schemars(extend("default" = TcpNewReno::MAX_RTO))]
    pub max_rto: Option<Span>,
}

impl TcpNewReno {
    /// RFC 6928 §2.
    const INITIAL_WINDOW: u32 = 10;
    /// RFC 6298 §2: before a measurement (2.1), and at least (2.4).
    const RTO: Span = Span(SECOND);
    /// RFC 6298 §2.5: the least that an upper bound may be.
    const MAX_RTO: Span = Span(60 * SECOND);
}

/// The default of a timeout as the reference says it.
fn default_timeout() -> String {
    format!("`\"{}\"`, at most `max_rto`", TcpNewReno::RTO)
}

/// The transport `tcp-dctcp`. Each packet has its own ACK. The first mark of a window of data
/// cuts the congestion window to 1 − α/2 of its size, at least two packets, and ends slow
/// start. The paper sets the marking threshold above 1/7 of rate × RTT: 14.3 kB at 100 Gbit/s
/// and 8 us. Without `[ecn]` it equals `tcp-newreno`, with a warning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpDctcp {
    /// The same as `tcp-newreno.initial_window`.
    #[schemars(range(min = 1), extend("x-unit" = "packets", "default" = TcpNewReno::INITIAL_WINDOW))]
    pub initial_window: Option<u32>,
    /// The same as `tcp-newreno.initial_rto`.
    #[schemars(extend("x-default" = default_timeout()))]
    pub initial_rto: Option<Span>,
    /// The same as `tcp-newreno.min_rto`.
    #[schemars(extend("x-default" = default_timeout()))]
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
    const GAIN: f64 = 1.0 / 16.0;
}

const TRAITS: Traits = Traits {
    timeouts: &["min_rto", "initial_rto"],
    backs_off: true,
    limits_flight: true,
    gap: Some("TCP treats three packets after a gap as a loss"),
    one_port: Some("TCP: its source port identifies a connection"),
    segments: true,
    ..Traits::NONE
};

impl Keys for TcpNewReno {
    type Params = NewRenoParams;

    const TRAITS: Traits = TRAITS;

    fn resolve(&self, cx: &mut Setting<'_>) -> Result<Resolved<NewRenoParams>, Complaint> {
        refuse_others(cx)?;
        resolve(self, None, cx)
    }
}

impl Keys for TcpDctcp {
    type Params = NewRenoParams;

    const TRAITS: Traits = TRAITS;

    fn resolve(&self, cx: &mut Setting<'_>) -> Result<Resolved<NewRenoParams>, Complaint> {
        refuse_others(cx)?;
        let gain = share("tcp-dctcp.gain", "g", self.gain.unwrap_or(Self::GAIN), "0.0625 (1/16)")?;
        if !cx.marks {
            let message = "no packet is marked without [ecn]: `tcp-dctcp` then behaves like `tcp-newreno`";
            cx.warn("transport.kind", message);
        }
        let Self { initial_window, initial_rto, min_rto, max_rto, .. } = *self;
        let dctcp = DctcpParams { gain: ((gain * ONE as f64) as u64).max(1) };
        resolve(&TcpNewReno { initial_window, initial_rto, min_rto, max_rto }, Some(dctcp), cx)
    }
}

fn refuse_others(cx: &Setting<'_>) -> Result<(), Complaint> {
    cx.refuse_control("TCP, which has its own congestion control")?;
    cx.refuse_rare_acks("TCP acknowledges every packet: delayed ACKs are not simulated")
}

fn resolve(
    keys: &TcpNewReno,
    dctcp: Option<DctcpParams>,
    cx: &mut Setting<'_>,
) -> Result<Resolved<NewRenoParams>, Complaint> {
    let table = cx.transport;
    let initial_window = keys.initial_window.unwrap_or(TcpNewReno::INITIAL_WINDOW);
    if initial_window == 0 {
        let help = "write a whole number of packets, 1 or more";
        let message = "initial_window = 0 is out of range: no flow could begin";
        return Err(Complaint::new(&format!("{table}.initial_window"), message, help));
    }
    let max_rto = timeout(&format!("{table}.max_rto"), keys.max_rto.unwrap_or(TcpNewReno::MAX_RTO))?;
    let bounded = |key: &str, span: Option<Span>| -> Result<Time, Complaint> {
        let Some(span) = span else { return Ok(TcpNewReno::RTO.0.min(max_rto)) };
        let path = format!("{table}.{key}");
        if timeout(&path, span)? <= max_rto {
            return Ok(span.0);
        }
        let message = format!("{key} = {span} is above max_rto = {}", Span(max_rto));
        Err(Complaint::new(&path, message, format!("lower it, or raise {table}.max_rto")))
    };
    let min_rto = bounded("min_rto", keys.min_rto)?;
    let initial_rto = bounded("initial_rto", keys.initial_rto)?;
    let smss = cx.packet.mtu;
    let receive_window = match cx.network_window()? {
        None => u32::MAX,
        Some(window) => u32::try_from(window / u64::from(smss)).unwrap_or(u32::MAX),
    };
    let (_, longest) = cx.routes.extremes();
    cx.warn_of_timeout(&format!("{table}.initial_rto"), initial_rto, longest);
    cx.warn_of_timeout(&format!("{table}.max_rto"), max_rto, longest);
    let params = NewRenoParams { smss, initial_window, receive_window, initial_rto, min_rto, max_rto, dctcp };
    Ok(Resolved { params, rto: max_rto, window: None, windows: Vec::new() })
}
