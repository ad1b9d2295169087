//! Failures and losses: the times at which links are down, and the frames that are lost. Changes of routes
//! are in `reroute.rs`.

use super::transport::retries;
use super::{Context, LAST, LONGEST, measure, node};
use crate::document::with_article;
use crate::error::Error;
use crate::plan::{Down, Hits, Loss, PacketFormat};
use crate::scenario::LossKind;
use std::collections::BTreeMap;
use xoff_kernel::time::Time;
use xoff_net::human::listed;
use xoff_net::topology::{NodeKind, PortId, Topology};
use xoff_net::units::Span;

const MOST: u64 = 10_000;
/// Without an end, at least this share of the largest packets must get through.
const LEAST: f64 = 0.001;

/// Links that are down, with their times, and losses, both by port.
pub(super) struct Faults {
    pub(super) down: Vec<Down>,
    /// The links that routes should avoid, with their times: as they are down, and before that for `drain`.
    pub(super) avoided: Vec<Down>,
    pub(super) losses: Vec<Loss>,
    /// From a change until routes follow.
    pub(super) reconvergence: Time,
    /// The key of each table, and one of the ports that it names, for warnings.
    named: Vec<(String, Vec<PortId>)>,
}

/// Reads `[[failure]]` and `[[loss]]` of a run that ends at `end`.
pub(super) fn read(cx: &mut Context<'_>, topology: &Topology, end: Option<Time>) -> Result<Faults, Error> {
    let mut named = Vec::new();
    let mut spans: BTreeMap<PortId, Vec<(Time, Time)>> = BTreeMap::new();
    let mut early: BTreeMap<PortId, Vec<(Time, Time)>> = BTreeMap::new();
    for i in 0..cx.scenario.failure.len() {
        let ports = failing(cx, topology, i)?;
        let times = times(cx, i, end)?;
        let drain = drain(cx, i, &times)?;
        let end = end.unwrap_or(Time::MAX);
        if times[0].0 >= end {
            cx.warn(format!("failure[{i}].at"), "had no effect: the run ends earlier");
        }
        for &port in &ports {
            spans.entry(port).or_default().extend(times.iter().filter(|span| span.0 < end));
            let drained = times.iter().map(|&(from, until)| (from - drain, until));
            early.entry(port).or_default().extend(drained.filter(|span| span.0 < end));
        }
        named.push((format!("failure[{i}]"), ports));
    }
    let by_port = |spans: BTreeMap<PortId, Vec<(Time, Time)>>| -> Vec<Down> {
        let some = spans.into_iter().filter(|(_, spans)| !spans.is_empty());
        some.map(|(port, spans)| Down { port, spans: merged(spans) }).collect()
    };
    let (down, avoided) = (by_port(spans), by_port(early));
    let ends = end.is_some() || retries::end_flows(cx);
    let losses = losses(cx, topology, (end, ends), &mut named)?;
    let reconvergence = reconvergence(cx, &down)?;
    Ok(Faults { down, avoided, losses, reconvergence, named })
}

fn reconvergence(cx: &mut Context<'_>, down: &[Down]) -> Result<Time, Error> {
    let key = "routing.reconvergence";
    let Some(span) = cx.scenario.routing.reconvergence else { return Ok(0) };
    cx.at_most(key, span, Span(LONGEST))?;
    // A link that is down permanently from the start changes nothing later.
    if down.iter().all(|d| d.spans == [(0, Time::MAX)]) {
        cx.warn(key, "had no effect: no link fails or recovers during the run");
    }
    Ok(span.0)
}

/// The ports (both ends of each link) that `failure[i]` takes down.
fn failing(cx: &Context<'_>, topology: &Topology, i: usize) -> Result<Vec<PortId>, Error> {
    let failure = &cx.scenario.failure[i];
    let at = |key: &str| format!("failure[{i}].{key}");
    match (&failure.link, &failure.switch) {
        (Some(name), None) => {
            let ports = link(cx, topology, &at("link"), name)?;
            Ok(ports.into_iter().flat_map(|p| [p, topology.ports[p as usize].peer]).collect())
        }
        (None, Some(name)) => {
            let switch = node(cx, topology, &at("switch"), name)?;
            let node = &topology.nodes[switch as usize];
            if node.kind != NodeKind::Switch {
                let help = "only links and switches can fail: write the links of the host as `link`";
                return cx.refuse(&at("switch"), format!("`{name}` is a host"), help);
            }
            Ok(node.ports.iter().flat_map(|&p| [p, topology.ports[p as usize].peer]).collect())
        }
        (Some(_), Some(_)) => {
            cx.refuse(&at("switch"), "`link` and `switch` cannot be combined", "write one table for each")
        }
        (None, None) => cx.refuse(
            &format!("failure[{i}]"),
            "`link` or `switch` is missing",
            "add link = \"S0.0-S1.0\", or switch = \"S1.0\"",
        ),
    }
}

/// How long before each of its `times` routes avoid `failure[i]`.
fn drain(cx: &Context<'_>, i: usize, times: &[(Time, Time)]) -> Result<Time, Error> {
    let Some(drain) = cx.scenario.failure[i].drain else { return Ok(0) };
    let key = format!("failure[{i}].drain");
    cx.at_most(&key, drain, Span(LAST))?;
    let first = times.first().map_or(0, |span| span.0);
    if drain.0 > first {
        let message =
            format!("the drain of {drain} begins before the run: the failure is at {}", Span(first));
        return cx.refuse(&key, message, "write at most `at`");
    }
    if times.windows(2).any(|pair| pair[1].0 - pair[0].1 <= drain.0) {
        let message = format!("the drain of {drain} is not shorter than the time between two failures");
        return cx.refuse(&key, message, "write a shorter time");
    }
    Ok(drain.0)
}

/// When `failure[i]` is down, in order; at least one span, and no two overlap.
fn times(cx: &mut Context<'_>, i: usize, end: Option<Time>) -> Result<Vec<(Time, Time)>, Error> {
    let failure = &cx.scenario.failure[i];
    let at = |key: &str| format!("failure[{i}].{key}");
    cx.at_most(&at("at"), failure.at, Span(LAST))?;
    for (key, span) in [("until", failure.until), ("every", failure.every)] {
        span.map_or(Ok(()), |span| cx.at_most(&at(key), span, Span(LAST)))?;
    }
    let from = failure.at.0;
    if let Some(until) = failure.until.filter(|u| u.0 <= from) {
        let message = match until.0 == from {
            true => format!("the failure ends at {until}, when it begins"),
            false => format!("the failure ends at {until}, before it begins at {}", failure.at),
        };
        return cx.refuse(&at("until"), message, "choose a time after `at`, or remove `until`");
    }
    let Some(every) = failure.every else {
        if failure.times.is_some_and(|t| t != 1) {
            return cx.refuse(&at("times"), "`times` requires `every`", "add `every`, or remove `times`");
        }
        return Ok(vec![(from, failure.until.map_or(Time::MAX, |u| u.0))]);
    };
    let Some(until) = failure.until else {
        let message = "`every` requires `until`: a link must recover before it fails again";
        return cx.refuse(&at("every"), message, "add `until`");
    };
    let length = until.0 - from;
    if every.0 <= length {
        let message =
            format!("the next failure begins after {every}, but each failure lasts {}", Span(length));
        return cx.refuse(&at("every"), message, "write a time longer than each failure");
    }
    let times = match (failure.times, end) {
        (Some(0), _) => {
            return cx.refuse(&at("times"), "must be positive", "write 1 or more");
        }
        (Some(times), _) => u64::from(times),
        (None, Some(end)) => end.saturating_sub(from).div_ceil(every.0).max(1),
        (None, None) => {
            let message = "the failures would never end, because the run has no end";
            return cx.refuse(&at("every"), message, "add `times`, or run.duration");
        }
    };
    if times > MOST {
        let message = format!("{times} failures are too many");
        return cx.refuse(&at("every"), message, format!("the maximum is {MOST}"));
    }
    let last = u128::from(until.0) + u128::from(every.0) * u128::from(times - 1);
    if end.is_none() && last > u128::from(LAST) {
        let message = format!("the last of {times} failures ends after the last time, {}", Span(LAST));
        return cx.refuse(&at("times"), message, "write a smaller number");
    }
    let end = end.unwrap_or(Time::MAX);
    Ok((0..times)
        .map_while(|k| every.0.checked_mul(k).map(|after| (from + after, until.0 + after)))
        .take_while(|span| span.0 == from || span.0 < end)
        .collect())
}

/// The same spans, in order, those that overlap or touch made one.
fn merged(mut spans: Vec<(Time, Time)>) -> Vec<(Time, Time)> {
    spans.sort_unstable();
    let mut out: Vec<(Time, Time)> = Vec::with_capacity(spans.len());
    for (from, until) in spans {
        match out.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(until),
            _ => out.push((from, until)),
        }
    }
    out
}

/// `end` is that of the run, and `ends` says whether it has one even if almost no packet arrives.
fn losses(
    cx: &mut Context<'_>,
    topology: &Topology,
    (end, ends): (Option<Time>, bool),
    named: &mut Vec<(String, Vec<PortId>)>,
) -> Result<Vec<Loss>, Error> {
    let mut out = of_topology(cx, topology, ends)?;
    let first = named.len();
    for (i, loss) in cx.scenario.loss.iter().enumerate() {
        let at = |key: &str| format!("loss[{i}].{key}");
        let ports = link(cx, topology, &at("link"), &loss.link)?;
        let mut senders: Vec<PortId> =
            ports.iter().flat_map(|&p| [p, topology.ports[p as usize].peer]).collect();
        if let Some(name) = &loss.from {
            let from = node(cx, topology, &at("from"), name)?;
            senders.retain(|&p| topology.ports[p as usize].node == from);
            if senders.is_empty() {
                let message = format!("{name} is not an end of the link {}", loss.link);
                return cx.refuse(&at("from"), message, "write the end that sends the frames");
            }
        }
        let (key, hits) = match (loss.rate, loss.ber, loss.control_frame) {
            (Some(rate), None, None) => ("rate", Hits::Frames(rate)),
            (None, Some(ber), None) => ("ber", Hits::Bits(ber)),
            (None, None, Some(number)) => ("control_frame", Hits::Control(number)),
            (None, None, None) => {
                let help = "add rate = 1e-4 (per frame) or ber = 1e-9 (per bit)";
                return cx.refuse(&at("link"), "the loss rate is missing", help);
            }
            (_, ber, _) => {
                let (key, other) =
                    if ber.is_some() { ("ber", "`rate`") } else { ("control_frame", "`rate`") };
                let other = if loss.rate.is_some() { other } else { "`control_frame`" };
                let message = format!("{other} and `{key}` cannot be combined");
                return cx.refuse(&at(key), message, "write one table for each");
            }
        };
        match hits {
            Hits::Frames(p) | Hits::Bits(p) if !(p > 0.0 && p <= 1.0) => {
                let message = format!("{key} = {p} is not a probability above 0");
                return cx.refuse(&at(key), message, "write a number above 0, up to 1, such as 1e-4");
            }
            Hits::Control(0) => {
                let message = "control_frame = 0 is out of range: frames are counted from 1";
                return cx.refuse(&at(key), message, "write 1 or more");
            }
            _ => {}
        }
        let span = loss_span(cx, i, end)?;
        let of = |port| Loss { port, hits, corrupts: loss.kind == LossKind::Corruption, span };
        if !ends && passes(&of(0), &cx.packet) < LEAST {
            let p = loss.rate.or(loss.ber).unwrap_or_default();
            let message = format!("{key} = {p} drops almost every packet, and the run has no end");
            return cx.refuse(&at(key), message, "write a smaller value, or add run.duration");
        }
        out.extend(senders.iter().map(|&port| of(port)));
        named.push((format!("loss[{i}]"), senders));
    }
    // In the order of the scenario at each port.
    out.sort_by_key(|l: &Loss| l.port);
    if !ends {
        check_together(cx, topology, &out, &named[first..])?;
    }
    Ok(out)
}

/// The share of the largest frames that pass in the long run.
fn passes(loss: &Loss, packet: &PacketFormat) -> f64 {
    match loss.hits {
        _ if loss.span.1 < Time::MAX => 1.0,
        Hits::Frames(p) => 1.0 - p,
        Hits::Bits(p) => power(1.0 - p, 8 * u64::from(packet.largest())),
        Hits::Control(_) => 1.0,
    }
}

/// When frames are hit by `loss[i]`.
fn loss_span(cx: &mut Context<'_>, i: usize, end: Option<Time>) -> Result<(Time, Time), Error> {
    let loss = &cx.scenario.loss[i];
    let key = |key: &str| format!("loss[{i}].{key}");
    let at = loss.at.unwrap_or(Span(0));
    cx.at_most(&key("at"), at, Span(LAST))?;
    if let Some(until) = loss.until {
        cx.at_most(&key("until"), until, Span(LAST))?;
        if until <= at {
            let message = format!("the loss ends at {until}, and begins at {at}");
            return cx.refuse(&key("until"), message, "choose a time after `at`, or remove `until`");
        }
    }
    let span = (at.0, loss.until.map_or(Time::MAX, |until| until.0));
    if end.is_some_and(|end| span.0 >= end) {
        cx.warn(key("at"), "had no effect: the run ends earlier");
    }
    Ok(span)
}

/// Returns an error for losses that let almost no frame through where they meet at one port, although each of
/// them is allowed. `losses` are in the order of ports; `tables` returns the ports of each `[[loss]]` table.
fn check_together(
    cx: &Context<'_>,
    topology: &Topology,
    losses: &[Loss],
    tables: &[(String, Vec<PortId>)],
) -> Result<(), Error> {
    for all in losses.chunk_by(|a, b| a.port == b.port) {
        let share = all.iter().map(|loss| passes(loss, &cx.packet)).product::<f64>();
        if share >= LEAST {
            continue;
        }
        let port = all[0].port;
        let met: Vec<usize> = (0..tables.len()).filter(|&i| tables[i].1.contains(&port)).collect();
        let &last = met.last().expect("what the topology's file says alone has been checked");
        let key = if cx.scenario.loss[last].ber.is_some() { "ber" } else { "rate" };
        let mut names: Vec<&str> = met.iter().map(|&i| tables[i].0.as_str()).collect();
        if met.len() < all.len() {
            names.insert(0, "the topology's own error rate");
        }
        let message = format!(
            "{} together drop almost every packet from {}, and the run has no end",
            listed(&names),
            topology.port_name(port)
        );
        let key = format!("loss[{last}].{key}");
        return cx.refuse(&key, message, "write a smaller value, or add run.duration");
    }
    Ok(())
}

/// The losses that the topology's own file gives its links.
fn of_topology(cx: &Context<'_>, topology: &Topology, ends: bool) -> Result<Vec<Loss>, Error> {
    let lossy: Vec<Loss> = (0..)
        .zip(&topology.ports)
        .filter(|(_, p)| p.loss > 0.0)
        .map(|(port, p)| Loss { port, hits: Hits::Frames(p.loss), corrupts: false, span: (0, Time::MAX) })
        .collect();
    if let Some(worst) = lossy.iter().find(|l| !ends && 1.0 - topology.ports[l.port as usize].loss < LEAST) {
        let message = format!(
            "the link of {} drops almost every packet (error rate {}), and the run has no end",
            topology.port_name(worst.port),
            topology.ports[worst.port as usize].loss
        );
        return cx.refuse("topology.file", message, "lower the error rate, or add run.duration");
    }
    Ok(lossy)
}

/// `base` to the power of `exponent`, by squaring: the same on every platform.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut out = 1.0;
    while exponent > 0 {
        if exponent % 2 == 1 {
            out *= base;
        }
        base *= base;
        exponent /= 2;
    }
    out
}

/// A port of each link that `name` means: `A-B`, or the port `A:3`.
fn link(cx: &Context<'_>, topology: &Topology, path: &str, name: &str) -> Result<Vec<PortId>, Error> {
    if name.contains(':') {
        return Ok(vec![measure::port(cx, topology, path, name)?]);
    }
    // Names may hold hyphens themselves.
    let pairs = || name.match_indices('-').map(|(i, _)| (&name[..i], &name[i + 1..]));
    let known = pairs().find_map(|(a, b)| Some((topology.find(a)?, topology.find(b)?)));
    let (a, b) = match (known, pairs().next()) {
        (Some(pair), _) => pair,
        (None, Some((a, b))) => (node(cx, topology, path, a)?, node(cx, topology, path, b)?),
        (None, None) => {
            let value = cx.doc.get(path).map(|v| v.get_ref());
            let message = match value {
                Some(value) if !value.is_str() => {
                    format!("expected the name of a link, found {}", found(value.type_str()))
                }
                _ => format!("`{name}` is not the name of a link"),
            };
            return cx.refuse(path, message, link_names(topology));
        }
    };
    let mut ports: Vec<PortId> =
        topology.nodes[a as usize].ports.iter().copied().filter(|&p| topology.neighbour(p) == b).collect();
    ports.extend(topology.relayed(a, b));
    if ports.is_empty() {
        let mut near: Vec<&str> = topology.nodes[a as usize]
            .ports
            .iter()
            .map(|&p| topology.nodes[topology.neighbour(p) as usize].name.as_str())
            .collect();
        near.dedup();
        near.truncate(16);
        let a = &topology.nodes[a as usize].name;
        let message = format!("there is no link between {a} and {}", topology.nodes[b as usize].name);
        return cx.refuse(path, message, format!("the neighbours of {a} are {}", near.join(", ")));
    }
    Ok(ports)
}

fn found(kind: &str) -> String {
    with_article(match kind {
        "array" => "list",
        "integer" | "float" => "number",
        kind => kind,
    })
}

/// How links are named, and which there are.
fn link_names(topology: &Topology) -> String {
    const SHOWN: usize = 8;
    let name = |port: PortId| {
        let ends = [topology.ports[port as usize].node, topology.neighbour(port)];
        ends.map(|node| topology.nodes[node as usize].name.as_str()).join("-")
    };
    let mut links: Vec<PortId> = (0..topology.ports.len() as PortId)
        .filter(|&p| topology.ports[p as usize].node < topology.neighbour(p))
        .collect();
    // Links between switches fail most often.
    let of_hosts = |&p: &PortId| {
        let ends = [topology.ports[p as usize].node, topology.neighbour(p)];
        ends.iter().any(|&node| topology.nodes[node as usize].kind == NodeKind::Host)
    };
    links.sort_by_key(of_hosts);
    let Some(&first) = links.first() else { return "this topology has no links".into() };
    let more = match links.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let shown: Vec<String> = links.iter().take(SHOWN).map(|&p| name(p)).collect();
    format!(
        "write the two ends, such as \"{}\", or the port at one end, such as \"{}\"; the links are {}{more}",
        name(first),
        topology.port_name(first),
        shown.join(", "),
    )
}

/// Names the tables whose links no route leads over; `hops` are all routes.
pub(super) fn warn_of_unused(cx: &mut Context<'_>, ports: usize, faults: &Faults, hops: &[u32]) {
    // Which links a scheduler takes is not known beforehand.
    if faults.named.is_empty() || cx.scenario.topology.is_bufferless() {
        return;
    }
    let mut used = vec![false; ports];
    for &hop in hops.iter().filter(|&&h| (h as usize) < ports) {
        used[hop as usize] = true;
    }
    for (key, named) in &faults.named {
        if !named.iter().any(|&p| used[p as usize]) {
            cx.warn(key.clone(), "had no effect: no flow or ACK crosses it");
        }
    }
}
