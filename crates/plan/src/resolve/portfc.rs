//! PortFC: its keys, its map of queues, and the networks and routes that it can
//! serve.

use super::{Context, LONGEST, MEMORY, bytes};
use crate::error::Error;
use crate::plan::{Buffer, ENDS, Faults, Flow, Lane, PacketFormat};
use crate::scenario::{CongestionControl, FlowControl, PortFc, PortFcFlags, PortFcRelay, TransportKind};
use std::sync::Arc;
use xoff_net::topology::{NodeId, NodeKind, PortId, Topology};
use xoff_net::units::{Bandwidth, Span, Threshold};
use xoff_schemes::flow_control::portfc::bound::{Bound, Link, Side, bound};
use xoff_schemes::flow_control::portfc::map::{Place, QueueMap, Unmappable};
use xoff_schemes::flow_control::portfc::{Doubt, PortFcParams, RelayOrder, Variant};
use xoff_schemes::flow_control::sizing;

/// Priority of ACKs and notifications, if not given: first of all.
const HIGH: u8 = 7;

/// Most ports of a switch: what the numbers of its neighbours' queues have room for.
const LARGEST_SWITCH: u16 = 1 << 14;

/// Egress ports of the longest route: node, switch, node, switch.
const LONGEST_ROUTE: usize = 4;

/// The keys, if this is the scheme.
pub(super) fn chosen<'s>(cx: &Context<'s>) -> Option<&'s PortFc> {
    match &cx.scenario.flow_control {
        FlowControl::PortFc(portfc) => Some(portfc),
        _ => None,
    }
}

/// The priority of ACKs and of notifications without one of their own; `None`
/// where that of their flow.
pub(super) fn answers(cx: &Context<'_>) -> Option<u8> {
    cx.scenario.transport.ack_priority.or(chosen(cx).map(|_| HIGH))
}

/// Refuses values out of range.
pub(super) fn check(cx: &Context<'_>, portfc: &PortFc) -> Result<(), Error> {
    if portfc.response_time.0 > LONGEST {
        let message = format!("response_time = {} is out of range", portfc.response_time);
        let help = format!("{} are the most", Span(LONGEST));
        return Err(cx.doc.error("flow_control.response_time", message, help));
    }
    Ok(())
}

/// The priority of data, given those of the traffic tables: PortFC has one set of
/// queues.
pub(super) fn data_priority(cx: &Context<'_>, traffic: &[u8]) -> Result<(), Error> {
    let (Some(_), Some(&first)) = (chosen(cx), traffic.first()) else { return Ok(()) };
    if let Some(other) = traffic.iter().find(|&&p| p != first) {
        let message =
            format!("the traffic has priorities {first} and {other}, and PortFC has one set of queues");
        return Err(cx.doc.error("flow_control.scheme", message, "give all traffic the same priority"));
    }
    let hq = answers(cx).expect("of this scheme");
    let key = if cx.scenario.transport.ack_priority.is_some() {
        "transport.ack_priority"
    } else {
        "flow_control.scheme"
    };
    if hq == first {
        let message =
            format!("ACKs and data both have priority {hq}, but PortFC keeps ACKs in a queue of their own");
        return Err(cx.doc.error(
            key,
            message,
            "give ACKs another priority than data (7 if not given), with a better tier",
        ));
    }
    if cx.scenario.dcqcn.is_some_and(|d| d.cnp_priority == Some(first)) {
        let message =
            format!("notifications and data both have priority {first}, but PortFC keeps them apart");
        return Err(cx.doc.error(
            "dcqcn.cnp_priority",
            message,
            "remove the key: they then go with the ACKs",
        ));
    }
    Ok(())
}

/// Refuses ACKs and notifications that are not served strictly before data.
pub(super) fn check_tiers(cx: &Context<'_>, lanes: &[Lane]) -> Result<(), Error> {
    if chosen(cx).is_none() {
        return Ok(());
    }
    let Some(data) = lanes.iter().find(|l| l.lossless) else { return Ok(()) };
    let acks = answers(cx).map(|p| ("ACKs", p, "transport.ack_priority"));
    let cnps = cx.scenario.dcqcn.and_then(|d| d.cnp_priority);
    for (what, priority, key) in
        acks.into_iter().chain(cnps.map(|p| ("notifications", p, "dcqcn.cnp_priority")))
    {
        let behind = |l: &&Lane| l.priority == priority && l.tier >= data.tier;
        if lanes.iter().any(|l| behind(&l)) {
            let message = format!(
                "{what} (priority {priority}) are not served before data (priority {}), as PortFC's high-priority \
                 queue is",
                data.priority
            );
            let key = if cx.doc.get(key).is_some() { key } else { "flow_control.scheme" };
            let help = format!("choose a higher {key}, or tiers in [[priority]] tables");
            return Err(cx.doc.error(key, message, help));
        }
    }
    Ok(())
}

/// Where every port of a network is, as the map of queues wants it.
fn places(topology: &Topology) -> Vec<Place> {
    let node =
        |port: PortId| topology.nodes[topology.ports[port as usize].node as usize].kind == NodeKind::Host;
    (0..)
        .zip(&topology.ports)
        .map(|(id, p)| Place { device: p.node, index: p.index, peer: p.peer, node: node(id) })
        .collect()
}

/// The map of a network's queues.
fn map(cx: &Context<'_>, topology: &Topology) -> Result<QueueMap, Error> {
    let name = |node: NodeId| topology.nodes[node as usize].name.clone();
    let ends = |port: PortId| (name(topology.ports[port as usize].node), name(topology.neighbour(port)));
    let refuse = |why: String| {
        let help = "choose kind = \"ndc\" with k = 1, \"rail-only\", or another topology whose hosts have one or two ports to switches, or another scheme";
        Err(cx.doc.error("flow_control.scheme", why, help))
    };
    if !topology.relay_hosts {
        return refuse(
            "PortFC is for networks whose hosts relay, and none does in this topology".to_string(),
        );
    }
    match QueueMap::new(places(topology)) {
        Ok(map) => Ok(map),
        Err(Unmappable::BetweenSwitches(port) | Unmappable::BetweenNodes(port)) => {
            let (a, b) = ends(port);
            refuse(format!(
                "PortFC has queues for links between hosts and switches, and one joins {a} and {b}"
            ))
        }
        Err(Unmappable::Ports(node, ports)) => refuse(format!(
            "{} has {ports} ports: PortFC is defined for hosts of two (k = 1). With more, a relay leads to several \
             switches, the n - 1 queues of a switch do not tell their ports apart, and relayed packets enter \
             queues that nothing can pause",
            name(node)
        )),
        Err(Unmappable::NoSwitch) => refuse("PortFC needs a switch with two ports or more".to_string()),
    }
}

/// Refuses more queues than have numbers, or than fit in memory.
fn check_size(cx: &Context<'_>, topology: &Topology, map: &QueueMap, lanes: usize) -> Result<(), Error> {
    let help = "choose smaller switches, or another scheme";
    if map.n > LARGEST_SWITCH {
        let message =
            format!("a switch has {} ports, and PortFC's queues are numbered up to {LARGEST_SWITCH}", map.n);
        return Err(cx.doc.error("flow_control.scheme", message, help));
    }
    // List and state of each queue, for every priority.
    let each = 32 + 24;
    let of = |p: &xoff_net::topology::Port| match topology.nodes[p.node as usize].kind {
        NodeKind::Host => u64::from(map.of_node()),
        NodeKind::Switch => u64::from(map.of_switch()),
    };
    let queues = topology.ports.iter().map(of).sum::<u64>() * lanes as u64;
    if queues * each > MEMORY {
        let message = format!("{queues} queues would need {} GiB", (queues * each) >> 30);
        return Err(cx.doc.error("flow_control.scheme", message, help));
    }
    Ok(())
}

/// The egress ports from a position on, inner ports of slow hosts left out.
fn route<'h>(map: &QueueMap, hops: &'h [u32], at: u32) -> &'h [u32] {
    let rest = &hops[at as usize..];
    let length = rest.iter().take_while(|&&port| port < ENDS && !map.inner(port)).count();
    &rest[..length]
}

/// Refuses routes of data with more than one relay, and packets under way that
/// would go over another one.
fn check_routes(
    cx: &Context<'_>,
    topology: &Topology,
    map: &QueueMap,
    flows: &[Flow],
    faults: &Faults,
    hops: &[u32],
) -> Result<(), Error> {
    let why = "packets that come over a second relay enter queues that nothing can pause";
    let later = faults.tables.iter().flat_map(|t| &t.flows).map(|r| (r.flow, r.path, true));
    let first = (0..).zip(flows).map(|(i, f)| (i, f.path, false));
    for (flow, path, failed) in first.chain(later) {
        let way = route(map, hops, path);
        let links = way.len();
        if let [_, into, _, out] = *way
            && map.place(into).device == map.place(out).device
        {
            let f = &flows[flow as usize];
            let message = format!(
                "a flow from {} to {} comes back to {} over a relay: PortFC has no queue for that, and nothing \
                 could pause it",
                topology.nodes[f.src as usize].name,
                topology.nodes[f.dst as usize].name,
                topology.nodes[map.place(into).device as usize].name
            );
            let help = "send it over the relay's other switch, or straight to its receiver";
            return Err(cx.doc.error("flow_control.scheme", message, help));
        }
        if links > LONGEST_ROUTE {
            let f = &flows[flow as usize];
            let message = format!(
                "a flow from {} to {} takes {links} links{}, and PortFC is defined for up to {LONGEST_ROUTE}: {why}",
                topology.nodes[f.src as usize].name,
                topology.nodes[f.dst as usize].name,
                if failed { " after a failure" } else { "" }
            );
            let help = "use shortest paths in an intact network, or another scheme";
            return Err(cx.doc.error("flow_control.scheme", message, help));
        }
    }
    for &(old, new) in faults.tables.iter().flat_map(|t| &t.positions) {
        if route(map, hops, new).len() > route(map, hops, old).len() {
            let port = topology.port_name(hops[new as usize]);
            let message = format!("packets under way at {port} take a longer way after a failure: {why}");
            let help = "let the failure begin at time 0, so that routes avoid it from the beginning, or use another scheme";
            return Err(cx.doc.error("flow_control.scheme", message, help));
        }
    }
    Ok(())
}

/// What PortFC is told of the whole plan.
pub(super) struct Whole<'p> {
    pub(super) topology: &'p Topology,
    pub(super) packet: &'p PacketFormat,
    pub(super) lanes: &'p [Lane],
    pub(super) buffers: &'p [Buffer],
    pub(super) flows: &'p [Flow],
    pub(super) faults: &'p Faults,
    pub(super) hops: &'p [u32],
}

/// The parameters.
pub(super) fn params(
    cx: &mut Context<'_>,
    portfc: &PortFc,
    whole: &Whole<'_>,
) -> Result<PortFcParams, Error> {
    let Whole { topology, lanes, hops, .. } = *whole;
    let map = map(cx, topology)?;
    check_size(cx, topology, &map, lanes.len())?;
    check_routes(cx, topology, &map, whole.flows, whole.faults, hops)?;
    let least = u64::from(whole.packet.largest());
    let (xoff, xon) = thresholds(cx, topology, least, ["xoff", "xon"], portfc.xoff, portfc.xon)?;
    let (ddq_xoff, ddq_xon) = match (portfc.ddq_xoff, portfc.ddq_xon) {
        (None, None) => (xoff.clone(), xon.clone()),
        (own, on) => {
            let on = on.or(portfc.xon.filter(|_| own.is_none()));
            thresholds(cx, topology, least, ["ddq_xoff", "ddq_xon"], own.unwrap_or(portfc.xoff), on)?
        }
    };
    let queue_at: Vec<u16> = (0..hops.len())
        .map(|at| {
            let rest = &hops[at..hops.len().min(at + LONGEST_ROUTE)];
            map.queue(&rest[..rest.iter().take_while(|&&port| port < ENDS).count()])
        })
        .collect();
    let mut params = PortFcParams {
        map: Arc::new(map),
        queue_at: queue_at.into(),
        xoff,
        xon,
        ddq_xoff,
        ddq_xon,
        lane: lanes.iter().position(|l| l.lossless).unwrap_or(0) as u8,
        relay_order: match portfc.relay_queue {
            PortFcRelay::First => RelayOrder::First,
            PortFcRelay::Turns => RelayOrder::Turns,
            PortFcRelay::Last => RelayOrder::Last,
        },
        variant: Variant {
            one_flag: portfc.flags == PortFcFlags::One,
            no_signal_relay: !portfc.relay_signals,
        },
        response_time: portfc.response_time.0,
        needs: Vec::new(),
        doubts: Vec::new(),
    };
    let mut evenly_fed = true;
    for node in 0..topology.nodes.len() as NodeId {
        let (bound, evenly) = match topology.nodes[node as usize].kind {
            NodeKind::Switch => needs(topology, &params, whole.packet, node),
            NodeKind::Host => (Bound::default(), true),
        };
        params.needs.push(bound);
        evenly_fed &= evenly;
    }
    let slowed = cx.scenario.transport.congestion_control != CongestionControl::None
        || cx.scenario.transport.window.is_some()
        || cx.scenario.transport.kind != TransportKind::GoBackN;
    let doubts = [
        (!evenly_fed, Doubt::UnequalRates),
        (params.relay_order != RelayOrder::First, Doubt::RelayOrder),
        (params.variant.no_signal_relay, Doubt::NoSignalRelay),
        (params.variant.one_flag, Doubt::OneFlag),
        (!slowed && relays(whole, &params.map), Doubt::NothingSlows),
    ];
    params.doubts = doubts.into_iter().filter(|d| d.0).map(|d| d.1).collect();
    warn(cx, whole, &params);
    Ok(params)
}

/// Whether data of any flow goes over a relay.
fn relays(whole: &Whole<'_>, map: &QueueMap) -> bool {
    whole.flows.iter().any(|f| route(map, whole.hops, f.path).len() > 2)
}

/// Thresholds of every port, in bytes; an XOFF is at least a largest packet.
fn thresholds(
    cx: &Context<'_>,
    topology: &Topology,
    least: u64,
    keys: [&str; 2],
    off: Threshold,
    on: Option<Threshold>,
) -> Result<(Vec<u64>, Vec<u64>), Error> {
    let mut out = (Vec::new(), Vec::new());
    for (id, port) in (0..).zip(&topology.ports) {
        let xoff = off.resolve(port.rate, port.delay);
        let xon = on.map_or_else(|| sizing::portfc::xon(xoff), |t| t.resolve(port.rate, port.delay));
        let inner = topology.neighbour(id) == port.node;
        if xon > xoff && !inner {
            let message = format!(
                "{} = {} B is above {} = {} B on the link of {} ({}, {})",
                keys[1],
                xon,
                keys[0],
                xoff,
                topology.port_name(id),
                Bandwidth(port.rate),
                Span(port.delay)
            );
            let given =
                keys.into_iter().rev().find(|key| cx.doc.get(&format!("flow_control.{key}")).is_some());
            let key = format!("flow_control.{}", given.unwrap_or("scheme"));
            let help = format!("choose `{}` no larger than `{}`", keys[1], keys[0]);
            return Err(cx.doc.error(&key, message, help));
        }
        out.0.push(xoff.max(least));
        out.1.push(xon);
    }
    Ok(out)
}

/// What switch `node` may have to hold, and whether all its relays are fed no
/// faster than they are served.
fn needs(topology: &Topology, params: &PortFcParams, packet: &PacketFormat, node: NodeId) -> (Bound, bool) {
    let link = |port: PortId| {
        let p = &topology.ports[port as usize];
        Link { rate: p.rate, delay: p.delay }
    };
    let sides: Vec<Side> = topology.nodes[node as usize]
        .ports
        .iter()
        .map(|&port| {
            let peer = topology.ports[port as usize].peer;
            let host = &topology.nodes[topology.ports[peer as usize].node as usize];
            let far = host.ports.iter().find(|&&p| p != peer && !params.map.inner(p)).map(|&p| link(p));
            let at = port as usize;
            Side { near: link(port), far, xoff: params.xoff[at], ddq_xoff: params.ddq_xoff[at] }
        })
        .collect();
    let served = sides.iter().all(|s| s.far.is_none_or(|far| far.rate <= s.near.rate));
    (bound(&sides, packet.largest(), params.response_time), served)
}

/// Says where memory is less than what is known to suffice, and what cannot be
/// promised.
fn warn(cx: &mut Context<'_>, whole: &Whole<'_>, params: &PortFcParams) {
    let (topology, buffers) = (whole.topology, whole.buffers);
    let short = (0..)
        .zip(&params.needs)
        .filter(|(n, bound): &(NodeId, _)| bound.total() > buffers[*n as usize].total)
        .max_by_key(|(n, bound)| (bound.total() - buffers[*n as usize].total, std::cmp::Reverse(*n)));
    if !params.doubts.is_empty() {
        let why: Vec<&str> = params.doubts.iter().map(|d| d.why()).collect();
        let message = format!("no memory is known to suffice: {}. See the peaks of the run", why.join("; "));
        cx.warn("flow_control.scheme".into(), message);
    }
    if let Some((node, bound)) = short {
        let message = format!(
            "{} has {}, and {} are known to suffice while relay queues are short: {} for thresholds, {} for what still arrives at forwarding \
             queues, {} at direct ones, three hops included. Less may do: see the peaks of the run",
            topology.nodes[node as usize].name,
            bytes(buffers[node as usize].total),
            bytes(bound.total()),
            bytes(bound.thresholds),
            bytes(bound.forwarding),
            bytes(bound.direct),
        );
        cx.warn("switch.buffer".into(), message);
    }
    for (i, s) in cx.scenario.slow_receiver.iter().enumerate() {
        let message = format!(
            "PortFC has hosts pause nobody: what {} does not read in time fills its memory, and is lost then",
            s.host
        );
        cx.warn(format!("slow_receiver[{i}]"), message);
    }
    let lossy = !whole.faults.losses.is_empty();
    if lossy {
        let message = "PortFC sends each pause and resume once: a resume that a link loses leaves its queue paused for good";
        cx.warn("loss".into(), message.into());
    }
}
