//! Parameters of the congestion controls TIMELY, HPCC, PowerTCP and DCTCP. Defaults are those of the evaluation of HPCC
//! (SIGCOMM 2019) and of its authors' public simulator, unless another source is named beside them.

use super::congestion::{check_minimum, share, step};
use super::{Context, LONGEST, Routed, transport};
use crate::balancing::{self, is_choice};
use crate::error::Error;
use crate::plan::{DELIVER, ENDS, Faults};
use crate::scenario::{CongestionControl, Dctcp, Hpcc, HpccPreset, MINIMUM_RATE, PowerTcp, Timely};
use std::cmp::Reverse;
use xoff_kernel::time::SECOND;
use xoff_net::units::{Bytes, Span};
use xoff_schemes::congestion_control::dctcp::DctcpParams;
use xoff_schemes::congestion_control::hpcc::HpccParams;
use xoff_schemes::congestion_control::powertcp::PowerTcpParams;
use xoff_schemes::congestion_control::timely::TimelyParams;
use xoff_schemes::congestion_control::{CongestionControlParams, Step};

/// Lowest rate of a flow.
const MINIMUM: Step = Step::Rate(MINIMUM_RATE.0);
/// Links of the longest route, after which packets expire, less the sender's own.
const MOST_HOPS: u8 = 63;
/// Most bytes that telemetry may take; as `transport.header`.
const MOST_TELEMETRY: u64 = 10_000;

pub(super) fn timely(cx: &mut Context<'_>, routed: &Routed<'_>) -> Result<CongestionControlParams, Error> {
    let given = cx.scenario.timely.unwrap_or_default();
    let (t_low, t_high) = (given.t_low.unwrap_or(Timely::T_LOW), given.t_high.unwrap_or(Timely::T_HIGH));
    for (key, span) in [("timely.t_low", t_low), ("timely.t_high", t_high)] {
        cx.at_most(key, span, Span(LONGEST))?;
    }
    if t_low > t_high {
        let message = format!("t_low = {t_low} is above t_high = {t_high}");
        let key = if given.t_low.is_some() { "timely.t_low" } else { "timely.t_high" };
        return cx.refuse(
            key,
            message,
            "write t_low no larger than t_high: below t_low rates increase, above t_high they decrease",
        );
    }
    let minimum_rate = step(given.minimum_rate, MINIMUM);
    check_minimum(cx, "timely.minimum_rate", routed, minimum_rate)?;
    Ok(CongestionControlParams::Timely(TimelyParams {
        ewma: share(cx, "timely.ewma", "alpha", given.ewma.unwrap_or(Timely::EWMA), "0.875")?,
        beta: share(cx, "timely.beta", "beta", given.beta.unwrap_or(Timely::BETA), "0.8")?,
        t_low: t_low.0,
        t_high: t_high.0,
        min_rtt: cx.timer("timely", "min_rtt", given.min_rtt.unwrap_or(Timely::MIN_RTT))?,
        additive_increase: step(given.additive_increase, Step::LineShare(Timely::ADDITIVE_SHARE)),
        hyper_increase: step(given.hyper_increase, Step::LineShare(Timely::HYPER_SHARE)),
        hyper_after: given.hyper_after.unwrap_or(Timely::HYPER_AFTER),
        minimum_rate,
    }))
}

pub(super) fn dctcp(cx: &mut Context<'_>, routed: &Routed<'_>) -> Result<CongestionControlParams, Error> {
    let given = cx.scenario.dctcp.unwrap_or_default();
    let minimum_rate = step(given.minimum_rate, MINIMUM);
    check_minimum(cx, "dctcp.minimum_rate", routed, minimum_rate)?;
    Ok(CongestionControlParams::Dctcp(DctcpParams {
        gain: share(cx, "dctcp.gain", "g", given.gain.unwrap_or(Dctcp::GAIN), "0.0625 (1/16)")?,
        additive_increase: step(given.additive_increase, Step::Rate(Dctcp::ADDITIVE_INCREASE.0)),
        minimum_rate,
    }))
}

pub(super) fn hpcc(cx: &mut Context<'_>, routed: &Routed<'_>) -> Result<CongestionControlParams, Error> {
    let given = cx.scenario.hpcc.unwrap_or_default();
    let base_rtt = transport::base_rtt(cx, routed.routes)?;
    warn_of_paths(cx);
    let additive_increase = match given.preset {
        HpccPreset::Field => Step::LineShare(Hpcc::FIELD_SHARE),
        HpccPreset::Paper => {
            let bits = u128::from(8 * Hpcc::PAPER_STEP) * u128::from(SECOND) / u128::from(base_rtt);
            Step::Rate(u64::try_from(bits).unwrap_or(u64::MAX))
        }
    };
    let minimum_rate = step(given.minimum_rate, MINIMUM);
    check_minimum(cx, "hpcc.minimum_rate", routed, minimum_rate)?;
    Ok(CongestionControlParams::Hpcc(HpccParams {
        eta: share(cx, "hpcc.eta", "eta", given.eta.unwrap_or(Hpcc::ETA), "0.95")?,
        max_stage: given.max_stage.unwrap_or(given.preset.max_stage()),
        additive_increase: step(given.additive_increase, additive_increase),
        minimum_rate,
        fast_reaction: given.fast_reaction.unwrap_or(true),
        base_rtt,
        hops: given.hops.unwrap_or(Hpcc::HOPS),
        telemetry: telemetry(cx)?,
    }))
}

pub(super) fn powertcp(cx: &mut Context<'_>, routed: &Routed<'_>) -> Result<CongestionControlParams, Error> {
    let given = cx.scenario.powertcp.unwrap_or_default();
    let base_rtt = transport::base_rtt(cx, routed.routes)?;
    warn_of_paths(cx);
    let minimum_rate = step(given.minimum_rate, MINIMUM);
    check_minimum(cx, "powertcp.minimum_rate", routed, minimum_rate)?;
    let flows = given.flows.unwrap_or(PowerTcp::FLOWS);
    if !(1..=PowerTcp::MOST_FLOWS).contains(&flows) {
        let help = format!("write a whole number from 1 to {}", PowerTcp::MOST_FLOWS);
        return cx.out_of_range("powertcp", "flows", flows, help);
    }
    let telemetry = telemetry(cx)?;
    Ok(CongestionControlParams::PowerTcp(PowerTcpParams {
        gamma: share(cx, "powertcp.gamma", "gamma", given.gamma.unwrap_or(PowerTcp::GAMMA), "0.9")?,
        flows,
        minimum_rate,
        base_rtt,
        hops: given.hops.unwrap_or(Hpcc::HOPS),
        telemetry,
    }))
}

/// Telemetry of packets on different paths is not compared.
fn warn_of_paths(cx: &mut Context<'_>) {
    let balancing = cx.scenario.routing.load_balancing;
    if balancing.by_packet() {
        let message = format!(
            "{} compares the telemetry of two packets on one path: under `{}` rates change only if two packets in a row take the same path",
            cx.scenario.transport.congestion_control.name(),
            balancing.name()
        );
        cx.warn("transport.congestion_control", message);
    }
}

/// Bytes of telemetry in each data packet and each ACK.
pub(super) fn telemetry(cx: &Context<'_>) -> Result<u32, Error> {
    let control = cx.scenario.transport.congestion_control;
    let (hops, bytes) = match control {
        CongestionControl::Hpcc => cx.scenario.hpcc.map_or((None, None), |hpcc| (hpcc.hops, hpcc.telemetry)),
        CongestionControl::PowerTcp => cx.scenario.powertcp.map_or((None, None), |p| (p.hops, p.telemetry)),
        _ => return Ok(0),
    };
    let hops = hops.unwrap_or(Hpcc::HOPS);
    if !(1..=MOST_HOPS).contains(&hops) {
        let help = format!("write a whole number from 1 to {MOST_HOPS}");
        return cx.out_of_range(control.name(), "hops", hops, help);
    }
    let bytes = bytes.unwrap_or(Bytes(Hpcc::HEAD + Hpcc::EACH_HOP * u64::from(hops)));
    if bytes.0 > MOST_TELEMETRY {
        let help = format!("write 0B to {MOST_TELEMETRY}B");
        return cx.out_of_range(control.name(), "telemetry", bytes, help);
    }
    Ok(bytes.0 as u32)
}

/// Returns an error for routes with more hops than the packets' telemetry can record: the routes of the flows, and
/// those after failures. `ports` are those of the scenario, without the inside of slow receivers.
pub(super) fn check_hops(
    cx: &Context<'_>,
    control: &CongestionControlParams,
    routed: &Routed<'_>,
    balancing: &balancing::LoadBalancing,
    faults: &Faults,
) -> Result<(), Error> {
    let Some(room) = control.hops() else { return Ok(()) };
    let Routed { topology, routes, flows } = *routed;
    // Every device after the sender records the link by which it forwards.
    let rate_of = |start: u32| {
        let (mut at, mut links) = (start as usize, 0);
        let end = loop {
            let entry = routes.hops[at];
            at += 1;
            if entry < ENDS {
                links += usize::from((entry as usize) < topology.ports.len());
            } else if let (balancing::LoadBalancing::Packets(choices), true) = (balancing, is_choice(entry)) {
                // All further paths have the same length.
                at = choices.options(entry)[0] as usize;
            } else {
                break entry;
            }
        };
        // Packets that expire on their path are never acknowledged.
        if end == DELIVER { links.saturating_sub(1) } else { 0 }
    };
    let own = (0u32..).zip(flows).map(|(id, f)| (id, f.path));
    let choices = routes.choices.as_ref().map_or(&[][..], |c| &c.routes);
    let chosen = (0u32..).zip(choices).flat_map(|(id, starts)| starts.map(|start| (id, start)));
    let later = faults.tables.iter().flat_map(|table| table.flows.iter().map(|r| (r.flow, r.path)));
    let all = own.chain(chosen).chain(later).map(|(id, start)| (rate_of(start), Reverse(id)));
    let Some((most, Reverse(flow))) = all.max() else { return Ok(()) };
    if most <= usize::from(room) {
        return Ok(());
    }
    let name = |node: u32| &topology.nodes[node as usize].name;
    let f = &flows[flow as usize];
    let message = format!(
        "packets of flow {flow}, {} to {}, cross {most} devices that add telemetry, but have room for {room}",
        name(f.src),
        name(f.dst)
    );
    let hops = format!("{}.hops", control.name());
    let key = if cx.doc.get(&hops).is_some() { &hops } else { "transport.congestion_control" };
    let help = match most <= usize::from(MOST_HOPS) {
        true => format!("set {hops} to {most}: each hop adds {} B to every packet", Hpcc::EACH_HOP),
        false => "choose another congestion control".to_string(),
    };
    cx.refuse(key, message, help)
}
