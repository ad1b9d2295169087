//! A plan in words: the output of `xoff topo`.

use crate::Loaded;
use crate::balancing::LoadBalancing;
use crate::plan::{Arbiter, Hits, Limit, Plan};
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use xoff_kernel::time::Time;
use xoff_net::import::roles;
use xoff_net::text::{SAMPLE, count, sample};
use xoff_net::topology::{Node, NodeKind, PortId};
use xoff_net::units::{Bandwidth, Bytes, Span};
use xoff_schemes::congestion_control::CongestionControlParams;
use xoff_schemes::flow_control::{Headroom, Seen};
use xoff_schemes::link_layer::Limits;
use xoff_schemes::load_balancing::ate::{AteParams, Update};
use xoff_schemes::scheduling::describe_pods;
use xoff_schemes::transport::retries;

/// Nodes, links, lanes, memory with headroom and its terms, and traffic.
pub fn describe(loaded: &Loaded) -> String {
    let plan = &loaded.plan;
    let mut out = String::new();
    // Writing to a String does not fail.
    let _ = nodes(&mut out, plan)
        .and_then(|()| links(&mut out, plan))
        .and_then(|()| match &plan.pods {
            Some(pods) => describe_pods(&mut out, &plan.topology, pods),
            None => queues(&mut out, loaded),
        })
        .and_then(|()| traffic(&mut out, loaded))
        .and_then(|()| faults(&mut out, plan));
    out
}

fn queues(out: &mut String, loaded: &Loaded) -> fmt::Result {
    let plan = &loaded.plan;
    first_hops(out, plan)?;
    load_balancing(out, plan)?;
    channels(out, plan)?;
    link_layer(out, plan)?;
    transport(out, plan)?;
    lanes(out, loaded)?;
    memory(out, plan)?;
    headroom(out, plan)
}

fn nodes(out: &mut String, plan: &Plan) -> fmt::Result {
    writeln!(out, "nodes")?;
    let (others, relays) =
        plan.topology.nodes.split_at(plan.topology.nodes.len() - plan.topology.relays as usize);
    for (nodes, kind, what) in [
        (others, NodeKind::Host, ["host", "hosts"]),
        (others, NodeKind::Switch, ["switch", "switches"]),
        (relays, NodeKind::Switch, ["relay", "relays"]),
    ] {
        if what[0] == "relay" && nodes.is_empty() {
            continue;
        }
        let of: Vec<&Node> = nodes.iter().filter(|n| n.kind == kind).collect();
        let names: Vec<&str> = of.iter().map(|n| n.name.as_str()).collect();
        let mut ports: Vec<usize> = of.iter().map(|n| outer_ports(plan, n).count()).collect();
        ports.sort_unstable();
        ports.dedup();
        let ports = match ports[..] {
            [] => String::new(),
            [only] => format!(", with {} each", count(only as u64, "port")),
            [least, .., most] => format!(", with {least} to {most} ports each"),
        };
        let what = what[usize::from(of.len() != 1)];
        writeln!(out, "  {:>8} {what}{ports}: {}", of.len(), sample(&names))?;
    }
    Ok(())
}

/// Ports that the scenario gave the node (a slow host has two inner ones more).
fn outer_ports<'p>(plan: &'p Plan, node: &'p Node) -> impl Iterator<Item = PortId> + 'p {
    let inner = |p: PortId| plan.topology.neighbour(p) == plan.topology.ports[p as usize].node;
    node.ports.iter().copied().filter(move |&p| !inner(p))
}

/// The kind of a link's two ends: hosts, or switches of a tier. Names that were given by others say no tier, and their
/// tier is the number of links to the nearest host.
fn place(node: &Node, tier: u32) -> String {
    let built = |prefix: &str| {
        let number =
            prefix.strip_prefix('S').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()) && !n.is_empty());
        number || matches!(prefix, "DCI" | "RELAY")
    };
    match (node.kind, node.name.split_once('.')) {
        (NodeKind::Host, _) => "host".to_string(),
        (NodeKind::Switch, Some((prefix, _))) if built(prefix) => prefix.to_string(),
        (NodeKind::Switch, _) => format!("tier {tier}"),
    }
}

fn links(out: &mut String, plan: &Plan) -> fmt::Result {
    writeln!(out, "links")?;
    // Frame losses are probabilities, whose bits sort as they do.
    let tiers = roles::tiers(&plan.topology);
    let mut kinds: BTreeMap<(String, u64, u64, bool, u64), u64> = BTreeMap::new();
    for (id, node) in plan.topology.nodes.iter().enumerate() {
        for p in outer_ports(plan, node) {
            let port = &plan.topology.ports[p as usize];
            if p < port.peer {
                let far = plan.topology.neighbour(p) as usize;
                let mut ends = [place(node, tiers[id]), place(&plan.topology.nodes[far], tiers[far])];
                // Tiers read S0, S1, …, and sort before hosts.
                ends.sort_by_key(|e| (*e != "host", e.clone()));
                let key = (ends.join(" - "), port.rate, port.delay, port.long, port.loss.to_bits());
                *kinds.entry(key).or_default() += 1;
            }
        }
    }
    for ((ends, rate, delay, long, loss), count) in kinds {
        let bdp = u128::from(rate) * u128::from(delay) / 8_000_000_000_000;
        let long = if long { ", long" } else { "" };
        let loss = match f64::from_bits(loss) {
            0.0 => String::new(),
            loss => format!(", frame loss {loss}"),
        };
        let (rate, delay) = (Bandwidth(rate), Span(delay));
        writeln!(out, "  {count:>8} {ends}: {rate}, {delay} (one-hop BDP {bdp} B){long}{loss}")?;
    }
    sites(out, plan)
}

fn sites(out: &mut String, plan: &Plan) -> fmt::Result {
    if plan.topology.ports.iter().all(|p| !p.long) {
        return Ok(());
    }
    let mut hosts: Vec<Vec<&str>> = Vec::new();
    for (node, site) in plan.topology.nodes.iter().zip(plan.topology.sites()) {
        let site = site as usize;
        hosts.resize(hosts.len().max(site + 1), Vec::new());
        if node.kind == NodeKind::Host {
            hosts[site].push(&node.name);
        }
    }
    writeln!(out, "sites, connected by long links")?;
    for (site, hosts) in hosts.iter().enumerate() {
        writeln!(out, "  {site:>8} {}: {}", count(hosts.len() as u64, "host"), sample(hosts))?;
    }
    Ok(())
}

fn first_hops(out: &mut String, plan: &Plan) -> fmt::Result {
    let Some(ate) = &plan.ate else { return Ok(()) };
    let AteParams { p, window, update, first, least } = ate.params;
    let update = match update {
        Update::BothWays => "both ways, up to 1",
        Update::ToCapacity => "both ways, up to the share of the capacity",
        Update::OneSided => "only down",
    };
    let first = first.map_or("the share of the capacity".to_string(), |first| first.to_string());
    let flows = ate.routes.iter().filter(|routes| routes[0] != routes[1]).count() as u64;
    writeln!(out, "first hops: chosen by traffic (ate) for {}", count(flows, "flow"))?;
    writeln!(
        out,
        "  own data may use {p} of the port to layer 0; weights begin at {first}, change every {}, {update}, and are at least {least}",
        Span(window)
    )
}

fn link_layer(out: &mut String, plan: &Plan) -> fmt::Result {
    let Some(params) = &plan.link_layer else { return Ok(()) };
    let all = || params.ports.iter().flatten();
    let range = |of: &dyn Fn(&Limits) -> (u64, String)| {
        let mut values: Vec<(u64, String)> = all().map(of).collect();
        values.sort();
        match (values.first(), values.last()) {
            (Some(least), Some(most)) if least.1 != most.1 => format!("{} to {}", least.1, most.1),
            (Some(only), _) => only.1.clone(),
            _ => String::new(),
        }
    };
    let buffer = range(&|l| (l.bytes, format!("{} B", l.bytes)));
    let timer = range(&|l| (l.timer, Span(l.timer).to_string()));
    writeln!(out, "link layer: links retransmit lost frames; replay buffer {buffer}, timer {timer}")
}

fn channels(out: &mut String, plan: &Plan) -> fmt::Result {
    let Some(rules) = &plan.channels else { return Ok(()) };
    let onward = |lane: usize| usize::from(rules.next[lane]);
    let firsts = (0..plan.lanes.len()).filter(|&lane| {
        onward(lane) != lane && !(0..plan.lanes.len()).any(|l| l != lane && onward(l) == lane)
    });
    for first in firsts {
        let chain = std::iter::successors(Some(first), |&lane| (onward(lane) != lane).then(|| onward(lane)));
        let names: Vec<String> = chain.map(|lane| plan.lanes[lane].priority.to_string()).collect();
        writeln!(out, "virtual channels: packets go on in priorities {}", names.join(" -> "))?;
    }
    Ok(())
}

fn load_balancing(out: &mut String, plan: &Plan) -> fmt::Result {
    match &plan.load_balancing {
        LoadBalancing::Ecmp => Ok(()),
        LoadBalancing::Packets(choices) => {
            let rule = choices.rule.describe();
            writeln!(out, "load balancing: devices choose a path for each data packet, {rule}")?;
            let choices = count(choices.sets.len() as u64, "choice");
            writeln!(out, "  {choices} at devices, each for one destination host")
        }
        LoadBalancing::Labels(labels) => {
            let [senders, rule] = labels.rule.describe();
            let flows = count(labels.flows_with_choice(), "flow");
            writeln!(out, "load balancing: senders {senders}; {flows} have several routes")?;
            writeln!(out, "  {rule}")
        }
    }
}

/// Values that are not the default: those of the transport, and the congestion control.
fn transport(out: &mut String, plan: &Plan) -> fmt::Result {
    plan.transport.kind.describe(out, &plan.windows)?;
    if let Some(rule) = plan.arbiter {
        let (name, stops) = match rule {
            Arbiter::Srpt => ("srpt", "a flow waits for a shorter flow of its source"),
            Arbiter::SrptStrict => {
                ("srpt-strict", "a flow waits for a shorter flow of its source or its destination")
            }
        };
        writeln!(
            out,
            "arbiter: {name} (shortest remaining flow first, {stops};\n  \
             it sees all flows and takes no time: an ideal upper bound)"
        )?;
    }
    if !plan.transport.kind.traits().counts_retries && plan.transport.retries.is_some() {
        let after = retries::describe("a sender gives up after", plan.transport.retries, " without progress");
        writeln!(out, "retries: {after}")?;
    }
    let control = &plan.congestion_control;
    control.describe(out, "congestion control: ", plan.flow_control.traits().trims.is_some())?;
    match plan.transport.variable_window {
        Some(round_trip) if *control != CongestionControlParams::None => {
            writeln!(out, "  in flight: at most the rate times {}", Span(round_trip))
        }
        _ => Ok(()),
    }
}

fn lanes(out: &mut String, loaded: &Loaded) -> fmt::Result {
    let plan = &loaded.plan;
    // The inner ports of slow hosts come after the scenario's own.
    let links = plan.topology.ports.len() - 2 * plan.receivers.len();
    let seen = Seen { links, lanes: &plan.lanes, detours: plan.detours.len() };
    let scheme = format!("{} {}", plan.flow_control.name(), plan.flow_control.describe(&seen));
    writeln!(out, "flow control: {}", scheme.trim_end())?;
    writeln!(out, "priorities, in order of service")?;
    for lane in &plan.lanes {
        let loss = if lane.lossless { "lossless" } else { "lossy" };
        let ecn = match &lane.ecn {
            Some(r) => {
                let per = match r.per {
                    0 => String::new(),
                    rate => format!(" per {} of the port", Bandwidth(rate)),
                };
                let at = match (r.at_dequeue, r.of_port) {
                    (false, false) => "",
                    (true, false) => " at dequeue",
                    (false, true) => " by the bytes of the port",
                    (true, true) => " at dequeue by the bytes of the port",
                };
                let except = match (r.last_hop, r.hosts) {
                    (true, true) => "",
                    (false, true) => ", except to hosts,",
                    (true, false) => ", except at hosts,",
                    (false, false) => ", except at and to hosts,",
                };
                let at = at.to_string() + except;
                let own = loaded.scenario.priority.iter().any(|p| p.id == lane.priority && p.ecn.is_some());
                let from = match own || loaded.scenario.ecn.is_some() {
                    true => String::new(),
                    false => format!(", the default of {}", plan.congestion_control.name()),
                };
                format!(", ECN{at} from {} to {}{per} (p {}{from})", Bytes(r.k_min), Bytes(r.k_max), r.p_max)
            }
            None => String::new(),
        };
        let (priority, tier, quantum) = (lane.priority, lane.tier, Bytes(lane.quantum.into()));
        let limit = limit(&lane.egress_limit);
        writeln!(out, "  {priority:>8} tier {tier}, {loss}, {quantum} per turn, egress queue {limit}{ecn}")?;
    }
    Ok(())
}

fn limit(limit: &Limit) -> String {
    match *limit {
        Limit::Unlimited => "unlimited".to_string(),
        Limit::Static(bytes) => format!("up to {bytes} B"),
        Limit::Dynamic { alpha_q16, cap } => {
            let cap = if cap == u64::MAX { String::new() } else { format!(", at most {cap} B") };
            format!("up to {} times the free shared buffer{cap}", alpha_q16 as f64 / 65_536.0)
        }
    }
}

fn memory(out: &mut String, plan: &Plan) -> fmt::Result {
    writeln!(out, "buffers")?;
    let mut kinds: BTreeMap<(bool, u64, u64), Vec<&str>> = BTreeMap::new();
    for (node, b) in plan.topology.nodes.iter().zip(&plan.buffers) {
        kinds.entry((node.kind == NodeKind::Switch, b.total, b.shared)).or_default().push(&node.name);
    }
    for ((_, total, shared), names) in kinds {
        writeln!(
            out,
            "  {:>8} x {}, of which {shared} B are shared and {} B are reserved for headroom, reserves and packets: {}",
            names.len(),
            Bytes(total),
            total - shared,
            sample(&names)
        )?;
    }
    Ok(())
}

fn headroom(out: &mut String, plan: &Plan) -> fmt::Result {
    if !plan.flow_control.has_thresholds() {
        return Ok(());
    }
    let lanes = plan.lanes.len();
    let mut seen: Vec<(u64, u64, Headroom)> = Vec::new();
    for (id, port) in plan.topology.ports.iter().enumerate() {
        for account in &plan.accounts[id * lanes..(id + 1) * lanes] {
            let Some(h) = &account.headroom else { continue };
            let kind = (port.rate, port.delay, h.clone());
            if seen.contains(&kind) {
                continue;
            }
            seen.push(kind);
            let (rate, delay) = (Bandwidth(port.rate), Span(port.delay));
            writeln!(out, "ingress account on a link of {rate}, {delay}")?;
            let (less, of) = match plan.flow_control.port_levels().get(id) {
                Some(level) => {
                    (format!(" less {} B", level.margin), " of the port, for all its lossless priorities")
                }
                None => (String::new(), ""),
            };
            let (resume, below, reserve) = (account.resume, account.resume_offset, account.reserve);
            match account.limit {
                Limit::Static(xoff) => {
                    writeln!(out, "  XOFF at {xoff} B, XON at {resume} B, reserve {reserve} B")?
                }
                other => {
                    writeln!(out, "  XOFF {}{less}, XON {below} B below, reserve {reserve} B", limit(&other))?
                }
            }
            let written = if h.terms.is_empty() { ", as written" } else { "" };
            writeln!(out, "  headroom {} B{of}{written}", h.total)?;
            for (name, bytes) in &h.terms {
                writeln!(out, "  {bytes:>10} B  {name}")?;
            }
        }
    }
    Ok(())
}

fn traffic(out: &mut String, loaded: &Loaded) -> fmt::Result {
    let plan = &loaded.plan;
    writeln!(out, "traffic")?;
    let mut totals = vec![(0u64, 0u64); plan.classes.len()];
    for flow in &plan.flows {
        let total = &mut totals[usize::from(flow.class)];
        total.0 += 1;
        total.1 = total.1.saturating_add(flow.size);
    }
    for (i, (name, (flows, bytes))) in plan.classes.iter().zip(totals).enumerate() {
        writeln!(out, "  {name}: {}, {bytes} B{}", count(flows, "flow"), saturation(loaded, i))?;
    }
    Ok(())
}

fn faults(out: &mut String, plan: &Plan) -> fmt::Result {
    let faults = &plan.faults;
    if faults.down.is_empty() && faults.losses.is_empty() {
        return Ok(());
    }
    writeln!(out, "faults")?;
    let peer = |port: PortId| plan.topology.ports[port as usize].peer;
    let once: Vec<_> = faults.down.iter().filter(|d| d.port < peer(d.port)).collect();
    for down in once.iter().take(SAMPLE) {
        let ends =
            format!("{} - {}", plan.topology.port_name(down.port), plan.topology.port_name(peer(down.port)));
        let (from, until) = down.spans[0];
        let until = if until == Time::MAX { "to the end".to_string() } else { format!("to {}", Span(until)) };
        let again = match down.spans.len() {
            1 => String::new(),
            n => format!(", {} in all", count(n as u64, "time")),
        };
        writeln!(out, "  {ends} is down from {} {until}{again}", Span(from))?;
    }
    if once.len() > SAMPLE {
        writeln!(out, "  and {} more are down", once.len() - SAMPLE)?;
    }
    if !faults.reroutes.is_empty() {
        let most = faults.tables.iter().map(|t| t.flows.len()).max().unwrap_or(0) as u64;
        let changes = faults.reroutes.len() as u64;
        writeln!(out, "  {} of routes, for at most {}", count(changes, "change"), count(most, "flow"))?;
    }
    for loss in faults.losses.iter().take(SAMPLE) {
        let what = if loss.corrupts { "corrupts" } else { "loses" };
        let of = match loss.hits {
            Hits::Frames(p) => format!("{p} of the frames"),
            Hits::Bits(p) => format!("{p} of the bits"),
            Hits::Control(number) => format!("flow-control frame {number}"),
        };
        let port = plan.topology.port_name(loss.port);
        writeln!(out, "  the link {what} {of} that {port} sends")?;
    }
    if faults.losses.len() > SAMPLE {
        writeln!(out, "  and {} more do", faults.losses.len() - SAMPLE)?;
    }
    Ok(())
}

fn saturation(loaded: &Loaded, class: usize) -> String {
    match &loaded.saturation[class] {
        Some(s) => format!(
            "; the network carries at most {} Gbps of it: {} saturates first",
            (s.rate / 1e6).round() / 1e3,
            loaded.plan.topology.port_name(s.port)
        ),
        None => String::new(),
    }
}
