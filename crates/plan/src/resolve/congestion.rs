//! The congestion control: which one, DCQCN's presets, and the marking that it brings.

use super::{Context, LONGEST, Routed, lanes, nscc, rates, rccc, swift};
use crate::error::Error;
use crate::plan::Flow;
use crate::scenario::{CongestionControl, Dcqcn, DcqcnPreset, DcqcnReaction, Ecn, MarkAt, MarkOf, Scenario};
use xoff_kernel::time::{MICROSECOND, Time};
use xoff_net::units::{Bandwidth, Bytes, Span};
use xoff_schemes::congestion_control::dcqcn::{DcqcnParams, Reaction};
use xoff_schemes::congestion_control::nscc_rccc::NsccRcccParams;
use xoff_schemes::congestion_control::{CongestionControlParams, Step};

const GBPS: u64 = 1_000_000_000;
const MBPS: u64 = 1_000_000;

pub(crate) fn preset(preset: DcqcnPreset) -> DcqcnParams {
    let field = DcqcnParams {
        reaction: Reaction::Periodic,
        cnp_interval: 0,
        cnp_size: 0,
        cnp_lane: None,
        alpha_timer: MICROSECOND,
        decrease_interval: 4 * MICROSECOND,
        increase_timer: 300 * MICROSECOND,
        byte_counter: 0,
        gain: 1.0 / 256.0,
        fast_recovery: 1,
        // 5 and 50 Mbit/s at 25 Gbit/s.
        additive_increase: Step::LineShare(5_000),
        hyper_increase: Step::LineShare(500),
        minimum_rate: Step::Rate(GBPS),
        clamp_target: false,
    };
    match preset {
        DcqcnPreset::Field => field,
        DcqcnPreset::Paper => DcqcnParams {
            reaction: Reaction::Immediate,
            cnp_interval: 50 * MICROSECOND,
            alpha_timer: 55 * MICROSECOND,
            decrease_interval: 50 * MICROSECOND,
            increase_timer: 55 * MICROSECOND,
            byte_counter: 10_000_000,
            fast_recovery: 5,
            additive_increase: Step::Rate(40 * MBPS),
            hyper_increase: Step::Rate(200 * MBPS),
            minimum_rate: Step::Rate(100 * MBPS),
            clamp_target: true,
            ..field
        },
    }
}

/// The marking that a congestion control brings, where the scenario has none.
pub(super) fn default_ecn(scenario: &Scenario) -> Option<Ecn> {
    let ecn = |k_min, k_max, p_max, per, at| Ecn {
        k_min: Bytes(k_min),
        k_max: Bytes(k_max),
        p_max,
        per: Some(Bandwidth(per)),
        at,
        of: MarkOf::Priority,
        last_hop: true,
    };
    match scenario.transport.congestion_control {
        CongestionControl::None
        | CongestionControl::Timely
        | CongestionControl::Hpcc
        | CongestionControl::PowerTcp
        | CongestionControl::Rccc
        | CongestionControl::Swift => None,
        // 0.2 and 0.8 of the BDP of 12 us, as in Ultra Ethernet's specification.
        CongestionControl::Nscc => Some(ecn(30_000, 120_000, 1.0, 100 * GBPS, MarkAt::Dequeue)),
        // The specification turns the marks of last hops off under RCCC.
        CongestionControl::NsccRccc => {
            Some(Ecn { last_hop: false, ..ecn(30_000, 120_000, 1.0, 100 * GBPS, MarkAt::Dequeue) })
        }
        CongestionControl::Dctcp => Some(ecn(300_000, 300_000, 1.0, 100 * GBPS, MarkAt::Dequeue)),
        CongestionControl::Dcqcn => Some(match scenario.dcqcn.unwrap_or_default().preset {
            DcqcnPreset::Field => ecn(100_000, 400_000, 0.2, 25 * GBPS, MarkAt::Dequeue),
            // DCQCN's paper, for its switches of 40 Gbit/s.
            DcqcnPreset::Paper => ecn(5_000, 200_000, 0.01, 40 * GBPS, MarkAt::Enqueue),
        }),
    }
}

/// The priority of CNPs, if there are any and it is given.
pub(super) fn priority(cx: &Context<'_>) -> Result<Option<u8>, Error> {
    if cx.scenario.transport.congestion_control != CongestionControl::Dcqcn {
        return Ok(None);
    }
    let given = cx.scenario.dcqcn.unwrap_or_default();
    let Some(priority) = given.cnp_priority else { return Ok(None) };
    lanes::check_priority(cx, "dcqcn.cnp_priority", priority)?;
    Ok((interval(&given) > 0).then_some(priority))
}

fn interval(given: &Dcqcn) -> Time {
    given.cnp_interval.map_or(preset(given.preset).cnp_interval, |s| s.0)
}

pub(super) fn build(
    cx: &mut Context<'_>,
    routed: &Routed<'_>,
    lane_of: &dyn Fn(u8) -> u8,
) -> Result<CongestionControlParams, Error> {
    let chosen = cx.scenario.transport.congestion_control;
    for control in CongestionControl::ALL.iter().filter(|control| !chosen.parts().contains(control)) {
        let table = control.name();
        cx.warn_of_table(table, format_args!("transport.congestion_control is not \"{table}\""));
    }
    match chosen {
        CongestionControl::None => Ok(CongestionControlParams::None),
        CongestionControl::Dcqcn => dcqcn(cx, routed, lane_of),
        CongestionControl::Timely => rates::timely(cx, routed),
        CongestionControl::Hpcc => rates::hpcc(cx, routed),
        CongestionControl::Dctcp => rates::dctcp(cx, routed),
        CongestionControl::Swift => swift::swift(cx, routed),
        CongestionControl::Nscc => nscc::params(cx, routed).map(CongestionControlParams::Nscc),
        CongestionControl::PowerTcp => rates::powertcp(cx, routed),
        CongestionControl::Rccc => rccc::params(cx).map(CongestionControlParams::Rccc),
        CongestionControl::NsccRccc => {
            let (nscc, rccc) = (nscc::params(cx, routed)?, rccc::params(cx)?);
            Ok(CongestionControlParams::NsccRccc(NsccRcccParams::new(nscc, rccc)))
        }
    }
}

fn dcqcn(
    cx: &mut Context<'_>,
    routed: &Routed<'_>,
    lane_of: &dyn Fn(u8) -> u8,
) -> Result<CongestionControlParams, Error> {
    let given = cx.scenario.dcqcn.unwrap_or_default();
    let base = preset(given.preset);
    let reaction = match given.reaction {
        None => base.reaction,
        Some(DcqcnReaction::Periodic) => Reaction::Periodic,
        Some(DcqcnReaction::Immediate) => Reaction::Immediate,
    };
    let (cnp_interval, packet) = (interval(&given), cx.packet);
    if cnp_interval > LONGEST {
        let help = format!("the maximum is {}", Span(LONGEST));
        return cx.out_of_range("dcqcn", "cnp_interval", Span(cnp_interval), help);
    }
    let cnp_size = given.cnp_size.map_or(u64::from(packet.ack), |b| b.0);
    if !(1..=u64::from(packet.largest())).contains(&cnp_size) {
        let help = format!("write 1B to {}B, which is the largest packet", packet.largest());
        return cx.refuse("dcqcn.cnp_size", format!("a CNP of {cnp_size} B is out of range"), help);
    }
    let byte_counter = given.byte_counter.map_or(base.byte_counter, |b| b.0);
    if (1..u64::from(packet.largest())).contains(&byte_counter) {
        let message = format!("byte_counter = {byte_counter} B is less than one packet");
        let help = format!("write {}B or more, or 0B to disable the byte counter", packet.largest());
        return cx.refuse("dcqcn.byte_counter", message, help);
    }
    let gain = share(cx, "dcqcn.gain", "g", given.gain.unwrap_or(base.gain), "0.00390625 (1/256)")?;
    if reaction == Reaction::Immediate && given.decrease_interval.is_some() {
        let message = "had no effect: with the immediate reaction the rate decreases at each CNP";
        cx.warn("dcqcn.decrease_interval", message);
    }
    if cnp_interval == 0 {
        for key in ["dcqcn.cnp_size", "dcqcn.cnp_priority"] {
            if cx.doc.get(key).is_some() {
                cx.warn(key, "had no effect: with dcqcn.cnp_interval = 0 ACKs carry the marks");
            }
        }
    }
    let minimum_rate = step(given.minimum_rate, base.minimum_rate);
    check_minimum(cx, "dcqcn.minimum_rate", routed, minimum_rate)?;
    let timer = |key, given: Option<Span>, base| cx.timer("dcqcn", key, given.unwrap_or(Span(base)));
    Ok(CongestionControlParams::Dcqcn(DcqcnParams {
        reaction,
        cnp_interval,
        cnp_size: cnp_size as u32,
        cnp_lane: priority(cx)?.map(lane_of),
        alpha_timer: timer("alpha_timer", given.alpha_timer, base.alpha_timer)?,
        decrease_interval: timer("decrease_interval", given.decrease_interval, base.decrease_interval)?,
        increase_timer: timer("increase_timer", given.increase_timer, base.increase_timer)?,
        byte_counter,
        gain,
        fast_recovery: given.fast_recovery.unwrap_or(base.fast_recovery),
        additive_increase: step(given.additive_increase, base.additive_increase),
        hyper_increase: step(given.hyper_increase, base.hyper_increase),
        minimum_rate,
        clamp_target: given.clamp_target.unwrap_or(base.clamp_target),
    }))
}

/// A rate that is given, or the preset's.
pub(super) fn step(given: Option<Bandwidth>, base: Step) -> Step {
    given.map_or(base, |rate| Step::Rate(rate.0))
}

pub(super) fn share(
    cx: &Context<'_>,
    key: &str,
    symbol: &str,
    value: f64,
    example: &str,
) -> Result<f64, Error> {
    if value > 0.0 && value <= 1.0 {
        return Ok(value);
    }
    let help = format!("write a number above 0, up to 1, such as {example}");
    cx.refuse(key, format!("{symbol} = {value} is out of range"), help)
}

/// Refuses a minimum rate, given as `key`, from which no flow can come down. Where
/// some flows can, or it is the preset's, the others are warned of.
pub(super) fn check_minimum(
    cx: &mut Context<'_>,
    key: &str,
    routed: &Routed<'_>,
    minimum: Step,
) -> Result<(), Error> {
    let Routed { topology, routes, flows } = *routed;
    let Step::Rate(minimum) = minimum else { return Ok(()) };
    // A flow's line rate is its own rate, if it has one, or that of its host's port.
    // Of two between which the host chooses, the faster one.
    let rate = |start: u32| {
        let port = routes.hops[start as usize] as usize;
        topology.ports.get(port).map_or(u64::MAX, |p| p.rate)
    };
    let line = |(id, f): (usize, &Flow)| {
        let chosen =
            routes.choices.as_ref().map_or(0, |c| c.routes[id].map(rate).into_iter().max().unwrap_or(0));
        let rate = rate(f.path).max(chosen);
        if f.pace > 0 { rate.min(f.pace) } else { rate }
    };
    let held = flows.iter().enumerate().filter(|&f| line(f) <= minimum).count();
    if held == 0 {
        return Ok(());
    }
    let minimum = Bandwidth(minimum);
    if held == flows.len() && cx.doc.get(key).is_some() {
        let message =
            format!("no flow could ever slow down: {minimum} is not below the line rate of any flow");
        return cx.refuse(key, message, "write less than the rate of the hosts' links");
    }
    let which = match held == flows.len() {
        true => "no flow ever slows".to_string(),
        false => format!("{held} of {} flows never slow", flows.len()),
    };
    cx.warn(key, format!("{which} down: {minimum} is not below their line rate"));
    Ok(())
}
