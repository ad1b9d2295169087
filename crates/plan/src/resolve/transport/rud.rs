//! RUD: its parameters, the windows of flows, and incompatible keys.

use super::{base_rtt, retries, variable_window, warn_of_timeout, windows};
use crate::error::Error;
use crate::plan::FlowWindow;
use crate::resolve::{Context, Routed, congestion};
use crate::scenario::CongestionControl;
use xoff_net::units::Threshold;
use xoff_schemes::transport::rud::{Probes, RudParams};
use xoff_schemes::transport::{TransportKind, TransportParams};

/// MaxWnd of the specification.
const WINDOW: Threshold = Threshold::Bdp(1_500);

pub(super) fn params(
    cx: &mut Context<'_>,
    routed: &Routed<'_>,
) -> Result<(TransportParams, Vec<FlowWindow>), Error> {
    let routes = routed.routes;
    let s = cx.scenario;
    if s.measure.explains() {
        let message = "incompatible with `rud`: a trimmed packet has no part of a flow's time";
        return cx.refuse("measure.explain", message, "remove the key, or choose another transport.kind");
    }
    if s.routing.load_balancing.counts_marks() {
        let name = s.routing.load_balancing.name();
        let message =
            format!("`{name}` is incompatible with `rud`: its ACKs have no room for the number of marks");
        let help = "write \"spray\", which RUD is made for, or another load balancing";
        return cx.refuse("routing.load_balancing", message, help);
    }
    if s.transport.rto.0 < routes.longest {
        warn_of_timeout(cx, "transport.rto", s.transport.rto, routes.longest);
    }
    let control = s.transport.congestion_control;
    let first = control == CongestionControl::None || control.traits().most_credit.is_some();
    let given = s.transport.window.or(first.then_some(WINDOW));
    let windows = windows(cx, routed, given, ("transport.window", "window"))?;
    congestion::check_windows(cx, &windows)?;
    let (rto, ack_every) = (s.transport.rto.0, s.transport.ack_every);
    let given = s.rud.unwrap_or_default();
    let infers_losses = given.infer_losses;
    if given.probes && !infers_losses {
        let message = "`probes` requires `infer_losses`: losses are inferred from the ACKs of probes";
        return cx.refuse("rud.probes", message, "add infer_losses = true, or remove the key");
    }
    let base = base_rtt(cx.scenario, routes).map_err(|c| cx.located(c))?;
    let target = congestion::target_delay(cx, routed)?;
    let probes = given.probes.then_some(Probes { base, target });
    let (retries, nack_retries) = (retries::limit(cx)?, retries::nack_limit(cx)?);
    let params = TransportParams {
        kind: TransportKind::Rud(RudParams { rto, ack_every, retries, nack_retries, infers_losses, probes }),
        ack_every,
        rto,
        retries,
        window: None,
        variable_window: variable_window(cx, routes)?,
    };
    Ok((params, windows))
}
