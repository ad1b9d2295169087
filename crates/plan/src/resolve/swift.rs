//! Parameters of the congestion control Swift.

use super::congestion::share;
use super::{Context, LONGEST, Routed, transport};
use crate::error::Error;
use crate::ideal::{self, Message};
use crate::scenario::Swift;
use xoff_kernel::time::Time;
use xoff_net::units::Span;
use xoff_schemes::congestion_control::CongestionControlParams;
use xoff_schemes::congestion_control::swift::{FlowScaling, SwiftParams};

pub(super) fn swift(cx: &mut Context<'_>, routed: &Routed<'_>) -> Result<CongestionControlParams, Error> {
    let given = cx.scenario.swift.unwrap_or_default();
    let base_target = given.base_target.unwrap_or(Swift::BASE_TARGET);
    let per_hop = given.per_hop.unwrap_or(Swift::PER_HOP);
    cx.timer("swift", "base_target", base_target)?;
    cx.at_most("swift.per_hop", per_hop, Span(LONGEST))?;
    let fs_range = given.fs_range.unwrap_or(Span(Swift::FS_RANGE * base_target.0));
    cx.at_most("swift.fs_range", fs_range, Span(Swift::FS_RANGE * LONGEST))?;
    let endpoint_target =
        cx.timer("swift", "endpoint_target", given.endpoint_target.unwrap_or(base_target))?;
    let additive_increase = given.additive_increase.unwrap_or(Swift::ADDITIVE_INCREASE);
    if !(additive_increase > 0.0 && additive_increase <= Swift::MOST_INCREASE) {
        let help = format!("write a number of packets above 0, up to {}", Swift::MOST_INCREASE);
        return cx.out_of_range("swift", "additive_increase", additive_increase, help);
    }
    let retx_reset_threshold = given.retx_reset_threshold.unwrap_or(Swift::RETX_RESET_THRESHOLD);
    if retx_reset_threshold == 0 {
        return cx.out_of_range("swift", "retx_reset_threshold", 0, "write a whole number, 1 or more");
    }
    let base_rtt = transport::base_rtt(cx, routed.routes)?;
    let longest = check_targets(cx, routed, base_target.0, per_hop.0);
    if cx.scenario.slow_receiver.is_empty() {
        for key in ["swift.endpoint_target", "swift.endpoint_gain"] {
            if cx.doc.get(key).is_some() {
                cx.warn(key, "had no effect: without [[slow_receiver]] packets do not wait in receivers");
            }
        }
    }
    Ok(CongestionControlParams::Swift(SwiftParams {
        base_target: base_target.0,
        per_hop: per_hop.0,
        flow_scaling: flow_scaling(cx, &given, fs_range)?,
        additive_increase,
        beta: share(cx, "swift.beta", "beta", given.beta.unwrap_or(Swift::BETA), "0.8")?,
        max_mdf: share(cx, "swift.max_mdf", "max_mdf", given.max_mdf.unwrap_or(Swift::MAX_MDF), "0.5")?,
        min_cwnd: windows(cx, &given)?,
        max_cwnd: given.max_cwnd,
        initial_cwnd: given.initial_cwnd,
        retx_reset_threshold,
        endpoint_target,
        endpoint_gain: share(
            cx,
            "swift.endpoint_gain",
            "endpoint_gain",
            given.endpoint_gain.unwrap_or(Swift::ENDPOINT_GAIN),
            "0.125",
        )?,
        base_rtt,
        longest_target: longest.max(base_rtt),
        mtu: cx.packet.mtu,
    }))
}

fn flow_scaling(cx: &Context<'_>, given: &Swift, range: Span) -> Result<FlowScaling, Error> {
    let least = given.fs_min_cwnd.unwrap_or(Swift::FS_MIN_CWND);
    let most = given.fs_max_cwnd.unwrap_or(Swift::FS_MAX_CWND);
    for (key, cwnd) in [("fs_min_cwnd", least), ("fs_max_cwnd", most)] {
        if !(Swift::LEAST..=Swift::MOST).contains(&cwnd) {
            return cx.out_of_range("swift", key, cwnd, in_packets());
        }
    }
    if least >= most {
        let message = format!("fs_min_cwnd = {least} is not below fs_max_cwnd = {most}");
        let key = if given.fs_min_cwnd.is_some() { "swift.fs_min_cwnd" } else { "swift.fs_max_cwnd" };
        let help = "write fs_min_cwnd below fs_max_cwnd: between them the target falls to its minimum";
        return cx.refuse(key, message, help);
    }
    Ok(FlowScaling::new(range.0, least, most))
}

fn in_packets() -> String {
    format!("write a number of packets from {} to {}", Swift::LEAST, Swift::MOST)
}

/// Checks the bounds of windows and the first window. Returns the smallest window.
fn windows(cx: &Context<'_>, given: &Swift) -> Result<f64, Error> {
    let min_cwnd = given.min_cwnd.unwrap_or(Swift::MIN_CWND);
    let all =
        [("min_cwnd", Some(min_cwnd)), ("max_cwnd", given.max_cwnd), ("initial_cwnd", given.initial_cwnd)];
    for (key, cwnd) in all.iter().filter_map(|&(key, cwnd)| Some((key, cwnd?))) {
        if !(Swift::LEAST..=Swift::MOST).contains(&cwnd) {
            return cx.out_of_range("swift", key, cwnd, in_packets());
        }
    }
    let pairs = [
        ("min_cwnd", Some(min_cwnd), "max_cwnd", given.max_cwnd),
        ("min_cwnd", Some(min_cwnd), "initial_cwnd", given.initial_cwnd),
        ("initial_cwnd", given.initial_cwnd, "max_cwnd", given.max_cwnd),
    ];
    for (low, least, high, most) in pairs {
        if let (Some(least), Some(most)) = (least, most)
            && least > most
        {
            let message = format!("{low} = {least} is above {high} = {most}");
            let key =
                format!("swift.{}", if cx.doc.get(&format!("swift.{low}")).is_some() { low } else { high });
            return cx.refuse(&key, message, format!("write {low} no larger than {high}"));
        }
    }
    Ok(min_cwnd)
}

/// Warns of flows whose unloaded round trip is not below their target. Returns the target of the longest path.
fn check_targets(cx: &mut Context<'_>, routed: &Routed<'_>, base: Time, per_hop: Time) -> Time {
    let Routed { topology, routes, flows } = *routed;
    let one = Message { size: u64::from(cx.packet.mtu), pace: 0, ack_every: 1 };
    let (mut data, mut ack) = (Vec::new(), Vec::new());
    let (mut longest, mut above, mut worst) = (base, 0, (0, 0));
    for flow in flows.iter().filter(|flow| flow.ideal > 0) {
        transport::links(topology, &routes.hops, flow.path, &mut data);
        transport::links(topology, &routes.hops, flow.ack_path, &mut ack);
        let target = base.saturating_add(per_hop.saturating_mul(data.len().saturating_sub(1) as u64));
        longest = longest.max(target);
        let trip = ideal::completion(&cx.packet, &one, &data, &ack).unwrap_or(Time::MAX);
        if trip >= target {
            above += 1;
            worst = worst.max((trip, target));
        }
    }
    if above > 0 {
        let (trip, target) = worst;
        let message = format!(
            "the unloaded round trip of {above} of {} flows is not below the target: up to {} ns, with a target of {}; their windows shrink without congestion",
            flows.len(),
            trip.div_ceil(1_000),
            Span(target)
        );
        cx.warn("swift.base_target", message);
    }
    longest
}
