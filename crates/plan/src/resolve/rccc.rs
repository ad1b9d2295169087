//! Parameters of the congestion control RCCC.

use super::Context;
use crate::error::Error;
use crate::plan::FlowWindow;
use crate::scenario::{CongestionControl, Rccc, TransportKind};
use xoff_net::units::Bytes;
use xoff_schemes::congestion_control::rccc::{MOST, QUANTUM, RcccParams};

/// Whether receivers grant credit under this congestion control.
pub(super) fn grants(control: CongestionControl) -> bool {
    control.parts().contains(&CongestionControl::Rccc)
}

/// Refuses RCCC over a transport without credits.
pub(super) fn check_transport(cx: &Context<'_>) -> Result<(), Error> {
    let t = &cx.scenario.transport;
    if !grants(t.congestion_control) || t.kind == TransportKind::Rud {
        return Ok(());
    }
    let (control, kind) = (t.congestion_control.name(), t.kind.name());
    let message = format!("`{control}` requires the transport `rud`, and this run uses `{kind}`");
    let help = "write transport.kind = \"rud\", or choose another congestion control";
    cx.refuse("transport.congestion_control", message, help)
}

/// Refuses first windows with more credit than packets can ask for.
pub(super) fn check_windows(cx: &Context<'_>, windows: &[FlowWindow]) -> Result<(), Error> {
    let control = cx.scenario.transport.congestion_control;
    if !grants(control) {
        return Ok(());
    }
    let full = u64::from(cx.packet.mtu + cx.packet.header);
    let largest = windows.iter().map(|f| u64::from(f.window) * full).max().unwrap_or(0);
    if largest <= MOST {
        return Ok(());
    }
    let message = format!("a first window of {largest} B is out of range under `{}`", control.name());
    let help = format!("write transport.window so that its packets have at most {MOST} B with headers");
    cx.refuse("transport.window", message, help)
}

pub(super) fn params(cx: &Context<'_>) -> Result<RcccParams, Error> {
    let given = cx.scenario.rccc.unwrap_or_default();
    let rate = given.rate.unwrap_or(Rccc::RATE);
    if !(Rccc::LEAST_RATE..=1.0).contains(&rate) {
        return cx.out_of_range(
            "rccc",
            "rate",
            rate,
            format!("write a number from {} to 1", Rccc::LEAST_RATE),
        );
    }
    let grant = given.grant.map_or((Rccc::GRANT * u64::from(cx.packet.mtu)).max(QUANTUM), |b| b.0);
    if !(QUANTUM..=Rccc::MOST_GRANT).contains(&grant) {
        let help = format!("write {} to {}", Bytes(QUANTUM), Bytes(Rccc::MOST_GRANT));
        return cx.out_of_range("rccc", "grant", Bytes(grant), help);
    }
    Ok(RcccParams { rate, grant: (grant / QUANTUM) as u32, in_acks: given.in_acks })
}
