//! TCP, NewReno and DCTCP: their parameters, and incompatible keys.

use super::{check_timeout, retries, timeout, variable_window, warn_of_timeout, window};
use crate::error::Error;
use crate::resolve::{Context, routes::Routes};
use crate::scenario::{CongestionControl, TcpDctcp, TcpNewReno, TransportKind as Kind};
use xoff_kernel::time::Time;
use xoff_net::units::Span;
use xoff_schemes::congestion_control::keys::share;
use xoff_schemes::transport::dctcp::{DctcpParams, ONE};
use xoff_schemes::transport::newreno::NewRenoParams;
use xoff_schemes::transport::{TransportKind, TransportParams};

pub(super) fn params(cx: &mut Context<'_>, routes: &Routes) -> Result<TransportParams, Error> {
    let t = &cx.scenario.transport;
    if t.congestion_control != CongestionControl::None {
        let message = "incompatible with TCP, which has its own congestion control";
        let help = "remove the key, or write transport.kind = \"go-back-n\" or \"irn\"";
        return cx.refuse("transport.congestion_control", message, help);
    }
    if t.ack_every != 1 {
        let message = "TCP acknowledges every packet: delayed ACKs are not simulated";
        return cx.refuse("transport.ack_every", message, "write 1, or remove the key");
    }
    let table = t.kind.name();
    let (given, dctcp) = match t.kind {
        Kind::TcpDctcp => {
            let (given, dctcp) = dctcp(cx)?;
            (given, Some(dctcp))
        }
        _ => (cx.scenario.tcp_newreno.unwrap_or_default(), None),
    };
    let initial_window = given.initial_window.unwrap_or(TcpNewReno::INITIAL_WINDOW);
    if initial_window == 0 {
        let help = "write a whole number of packets, 1 or more";
        let key = format!("{table}.initial_window");
        return cx.refuse(&key, "initial_window = 0 is out of range: no flow could begin", help);
    }
    let max_rto = timeout(cx, &format!("{table}.max_rto"), given.max_rto, TcpNewReno::MAX_RTO.0)?;
    let bounded = |key: &str, span: Option<Span>| -> Result<Time, Error> {
        let Some(span) = span else { return Ok(TcpNewReno::RTO.0.min(max_rto)) };
        let path = format!("{table}.{key}");
        check_timeout(cx, &path, span)?;
        if span.0 <= max_rto {
            return Ok(span.0);
        }
        let message = format!("{key} = {span} is above max_rto = {}", Span(max_rto));
        cx.refuse(&path, message, format!("lower it, or raise {table}.max_rto"))
    };
    let min_rto = bounded("min_rto", given.min_rto)?;
    let initial_rto = bounded("initial_rto", given.initial_rto)?;
    let receive_window = match window(cx, routes)? {
        None => u32::MAX,
        Some(window) => u32::try_from(window / u64::from(cx.packet.mtu)).unwrap_or(u32::MAX),
    };
    for (key, rto) in [("initial_rto", initial_rto), ("max_rto", max_rto)] {
        if rto < routes.longest {
            warn_of_timeout(cx, &format!("{table}.{key}"), Span(rto), routes.longest);
        }
    }
    let kind = TransportKind::Tcp(NewRenoParams {
        smss: cx.packet.mtu,
        initial_window,
        receive_window,
        initial_rto,
        min_rto,
        max_rto,
        dctcp,
    });
    let variable_window = variable_window(cx, routes)?;
    let retries = retries::limit(cx)?;
    Ok(TransportParams { kind, ack_every: 1, rto: max_rto, retries, window: None, variable_window })
}

/// DCTCP's table: the keys of NewReno in it, and the rest.
fn dctcp(cx: &mut Context<'_>) -> Result<(TcpNewReno, DctcpParams), Error> {
    let given = cx.scenario.tcp_dctcp.unwrap_or_default();
    let gain = share("tcp-dctcp.gain", "g", given.gain.unwrap_or(TcpDctcp::GAIN), "0.0625 (1/16)")
        .map_err(|c| cx.located(c))?;
    if cx.scenario.ecn.is_none() && cx.scenario.priority.iter().all(|p| p.ecn.is_none()) {
        let message = "no packet is marked without [ecn]: `tcp-dctcp` then behaves like `tcp-newreno`";
        cx.warn("transport.kind", message);
    }
    let TcpDctcp { initial_window, initial_rto, min_rto, max_rto, .. } = given;
    let newreno = TcpNewReno { initial_window, initial_rto, min_rto, max_rto };
    Ok((newreno, DctcpParams { gain: ((gain * ONE as f64) as u64).max(1) }))
}
