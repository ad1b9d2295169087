//! Parameters of Loop Breaker and Deadlock Breaker, and the other ways that the former gives
//! packets.

use super::routes::Routes;
use super::{Context, LARGEST, LONGEST, MEMORY};
use crate::error::Error;
use crate::plan::{self, DELIVER, ENDS, PacketFormat};
use crate::scenario::{FlowControl, LoadBalancing as Balancing, Relay as RelayKey};
use std::collections::{BTreeMap, BTreeSet};
use xoff_kernel::random::Stream;
use xoff_kernel::time::{MICROSECOND, Time, serialisation};
use xoff_net::routing::{Ends, Router, TTL};
use xoff_net::topology::{NodeId, Port, PortId, Topology};
use xoff_net::units::{Bytes, Span, Threshold};
use xoff_schemes::flow_control::breakers::{BreakerParams, Cure};
use xoff_wire::nodes::MOST_NODES;

/// The shortest time between two polls: a poll of every queue is an event.
const SHORTEST_PERIOD: Time = MICROSECOND;
/// Bytes of the longest frame, which lists a whole loop.
const LONGEST_FRAME: u32 = 158;
/// Room that a deadlock's ingress queues get unless the scenario says otherwise: what a link
/// carries until a pause is obeyed, so that no packet of a whole round trip is stopped.
const ROOM: Threshold = Threshold::Bdp(2_000);

/// The keys, where this is the scheme: period, latency, and what is done.
fn keys(cx: &Context<'_>) -> Option<(Span, Span, Option<Threshold>, RelayKey)> {
    match &cx.scenario.flow_control {
        FlowControl::LoopBreaker(b) => Some((b.keys.period, b.keys.latency, None, b.pfc.relay)),
        FlowControl::DeadlockBreaker(b) => Some((b.keys.period, b.keys.latency, b.keys.room, b.pfc.relay)),
        _ => None,
    }
}

/// A pause may have to wait for a frame so long, if its wire carries no longer packet.
pub(super) fn longest_frame(cx: &Context<'_>) -> u32 {
    if keys(cx).is_some() { LONGEST_FRAME } else { 0 }
}

/// Refuses values out of range, and keys that contradict each other.
pub(super) fn check(cx: &Context<'_>, packet: &PacketFormat) -> Result<(), Error> {
    let Some((period, latency, room, relay)) = keys(cx) else { return Ok(()) };
    let at = |key: &str| format!("flow_control.{key}");
    if period.0 < SHORTEST_PERIOD || period.0 > LONGEST {
        let message = format!("period = {period} is out of range");
        let help = format!("write {} to {}", Span(SHORTEST_PERIOD), Span(LONGEST));
        return Err(cx.doc.error(&at("period"), message, help));
    }
    super::flow_control::time(cx, "latency", latency)?;
    let largest = u64::from(packet.largest());
    if let Some(Threshold::Bytes(bytes)) = room
        && !(largest..=LARGEST).contains(&bytes.0)
    {
        let message = format!("room = {bytes} is out of range");
        let help = format!("write \"{largest}B\" to {}: what goes on is whole packets", Bytes(LARGEST));
        return Err(cx.doc.error(&at("room"), message, help));
    }
    if relay == RelayKey::Blind {
        let message = "hosts that pass pauses on blindly have no queue whose packets a probe could follow";
        return Err(cx.doc.error(&at("relay"), message, "remove the key"));
    }
    let reroutes = matches!(cx.scenario.flow_control, FlowControl::LoopBreaker(_));
    let by_packet = matches!(cx.scenario.routing.load_balancing, Balancing::Spray | Balancing::Drill);
    if reroutes && by_packet {
        let message = "`loop-breaker` gives packets other ways than their own, which have to be settled";
        let help = "choose \"ecmp\" or \"plb\"";
        return Err(cx.doc.error("routing.load_balancing", message, help));
    }
    if cx.scenario.measure.blocking || cx.scenario.measure.explain {
        let key = if cx.scenario.measure.blocking { "blocking" } else { "explain" };
        let message = format!("`{key}` does not know yet what a control plane does to queues and packets");
        return Err(cx.doc.error(&format!("measure.{key}"), message, "remove the key"));
    }
    Ok(())
}

/// The parameters of its state machines. Devices boot at different times: each begins to
/// poll at one of its own. Who would watch queues under `pfc-watchdog` does here.
pub(super) fn params(cx: &Context<'_>, topology: &Topology, packet: &PacketFormat) -> BreakerParams {
    let (period, latency, room, _) = keys(cx).expect("asked only where this is the scheme");
    let pfc = cx.scenario.flow_control.pfc().expect("it rests on PFC");
    let polls: Vec<Option<Time>> = (0..topology.nodes.len() as NodeId)
        .map(|node| {
            let mut stream = Stream::new(cx.scenario.run.seed, "breaker polls", node.into());
            super::watchdog::watches(topology, node).then(|| stream.below(period.0))
        })
        .collect();
    // A frame behind a packet and the links' other frames, over the link, until it is through.
    let hop = |p: &Port| {
        let frames = serialisation(u64::from(packet.largest()) + 2 * u64::from(LONGEST_FRAME), p.rate);
        frames.saturating_add(p.delay).saturating_add(pfc.response_time.0).saturating_add(latency.0)
    };
    let most = |p: &Port| room.unwrap_or(ROOM).resolve(p.rate, p.delay);
    let room = topology.ports.iter().map(most).max().unwrap_or(0).max(packet.largest().into());
    BreakerParams {
        pfc: super::memory::params(pfc),
        cure: match cx.scenario.flow_control {
            FlowControl::LoopBreaker(_) => Cure::Reroute,
            _ => Cure::Room(room),
        },
        period: period.0,
        latency: latency.0,
        turn: topology.ports.iter().map(hop).max().unwrap_or(0).saturating_mul(MOST_NODES as u64),
        first: topology.ports.iter().map(|p| polls[p.node as usize]).collect(),
        seed: cx.scenario.run.seed,
    }
}

/// Under Loop Breaker: for each place on a route where a packet can wait in a device, another
/// one of the same device. From there the packet comes to its host by a way that the network's
/// routing finds without the link that it would have left by, and without those that fail at
/// some time. All packets of a queue for one host get the same. Those on such ways can be
/// rerouted in turn.
pub(super) fn detours(
    cx: &Context<'_>,
    topology: &Topology,
    routes: &mut Routes,
    faults: &plan::Faults,
) -> Result<Vec<(u32, u32)>, Error> {
    if !matches!(cx.scenario.flow_control, FlowControl::LoopBreaker(_)) {
        return Ok(Vec::new());
    }
    let failing: BTreeSet<PortId> = faults.down.iter().map(|down| down.port).collect();
    let devices: Vec<bool> =
        (0..topology.nodes.len() as NodeId).map(|node| super::watchdog::watches(topology, node)).collect();
    // By egress port and destination: where the other way begins, if there is one.
    let mut ways: BTreeMap<(PortId, NodeId), Option<u32>> = BTreeMap::new();
    let mut detours: Vec<(u32, PortId, NodeId)> = Vec::new();
    let mut seen = 0;
    while seen < routes.hops.len() {
        // By egress port, so that each needs one router at a time.
        let mut wanted: BTreeMap<PortId, BTreeMap<NodeId, Vec<u32>>> = BTreeMap::new();
        while let Some(length) = routes.hops[seen..].iter().position(|&hop| hop >= ENDS) {
            let (from, end) = (seen, seen + length);
            seen = end + 1;
            let outer =
                routes.hops[from..end].iter().filter(|&&p| (p as usize) < topology.ports.len()).count();
            if routes.hops[end] != DELIVER || outer == 0 {
                continue;
            }
            let host = topology.neighbour(routes.hops[from + outer - 1]);
            // What leads into a slow host's inner queue.
            let tail = routes.hops[from + outer..=end].to_vec();
            for at in from..from + outer {
                let port = routes.hops[at];
                if devices[topology.ports[port as usize].node as usize] {
                    detours.push((at as u32, port, host));
                    if !ways.contains_key(&(port, host)) {
                        wanted.entry(port).or_default().entry(host).or_insert_with(|| tail.clone());
                    }
                }
            }
        }
        for (port, hosts) in wanted {
            let mut dead = failing.clone();
            dead.extend([port, topology.ports[port as usize].peer]);
            let mut router = routes.router.without(&dead);
            for (host, tail) in hosts {
                let way = other_way(&mut router, topology.ports[port as usize].node, host);
                ways.insert(
                    (port, host),
                    way.map(|ports| {
                        let start = routes.hops.len() as u32;
                        routes.hops.extend(ports);
                        routes.hops.extend(tail);
                        start
                    }),
                );
            }
        }
        if routes.hops.len() > (u32::MAX / 2) as usize || detours.len() as u64 * 12 > MEMORY {
            let message = "the other ways of all packets are too many to hold";
            return Err(cx.doc.error(
                "flow_control.scheme",
                message,
                "send fewer flows, or choose a smaller network",
            ));
        }
    }
    Ok(detours.into_iter().filter_map(|(at, port, host)| Some((at, ways[&(port, host)]?))).collect())
}

/// The egress ports of a way that ends at `host`.
fn other_way(router: &mut Router, device: NodeId, host: NodeId) -> Option<Vec<PortId>> {
    if device == host {
        return None;
    }
    let route = router.route(device, host, host.into(), TTL).ok()?;
    (route.ends == Ends::Deliver).then_some(route.ports)
}
