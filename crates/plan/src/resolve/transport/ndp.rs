//! NDP: its parameters, the first windows of flows, and incompatible keys.

use super::{check_window, retries, timeout, variable_window, warn_of_timeout, windows};
use crate::error::Error;
use crate::plan::FlowWindow;
use crate::resolve::{Context, Routed};
use crate::scenario::{CongestionControl, Ndp};
use xoff_net::units::{Span, Threshold};
use xoff_schemes::transport::ndp::NdpParams;
use xoff_schemes::transport::{TransportKind, TransportParams};

pub(super) fn params(
    cx: &mut Context<'_>,
    routed: &Routed<'_>,
) -> Result<(TransportParams, Vec<FlowWindow>), Error> {
    let routes = routed.routes;
    let s = cx.scenario;
    if s.transport.congestion_control != CongestionControl::None {
        let message = "incompatible with `ndp`, whose receivers set the rate";
        let help = "remove the key, or write transport.kind = \"go-back-n\" or \"irn\"";
        return cx.refuse("transport.congestion_control", message, help);
    }
    if s.transport.ack_every != 1 {
        let message = "`ndp` acknowledges every packet";
        return cx.refuse("transport.ack_every", message, "write 1, or remove the key");
    }
    if s.measure.explains() {
        let message = "incompatible with `ndp`: a trimmed packet and a PULL have no part of a flow's time";
        return cx.refuse("measure.explain", message, "remove the key, or choose another transport.kind");
    }
    if s.routing.load_balancing.counts_marks() {
        let name = s.routing.load_balancing.name();
        let message =
            format!("`{name}` is incompatible with `ndp`: its ACKs have no room for the number of marks");
        let help = "write \"spray\", which NDP is made for, or another load balancing";
        return cx.refuse("routing.load_balancing", message, help);
    }
    if s.transport.window.is_some() {
        let message = "had no effect: the transport `ndp` has ndp.initial_window";
        cx.warn("transport.window", message);
    }
    let given = s.ndp.unwrap_or_default();
    let rto = timeout(cx, "ndp.rto", given.rto, Ndp::RTO.0)?;
    if rto < routes.longest {
        warn_of_timeout(cx, "ndp.rto", Span(rto), routes.longest);
    }
    let first = given.initial_window.unwrap_or(Ndp::INITIAL_WINDOW);
    if let Threshold::Bytes(window) = first {
        check_window(cx, "ndp.initial_window", window.0, &window.to_string())?;
    }
    let windows = windows(cx, routed, Some(first), ("ndp.initial_window", "first window"))?;
    let params = TransportParams {
        kind: TransportKind::Ndp(NdpParams { rto }),
        ack_every: 1,
        rto,
        retries: retries::limit(cx)?,
        window: None,
        variable_window: variable_window(cx, routes)?,
    };
    Ok((params, windows))
}
