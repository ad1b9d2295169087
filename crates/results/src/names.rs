//! Names instead of indices: every result that people read goes through here.

use std::collections::BTreeMap;

use crate::human;
use xoff_net::topology::{NodeId, NodeKind, PortId};
use xoff_plan::plan::{ENDS, EXPIRE, Plan};
use xoff_schemes::scheduling::PodsKeys;

/// The name of a port: `S1.2:3`.
pub fn port(plan: &Plan, port: PortId) -> String {
    plan.topology.port_name(port)
}

/// A port with where it leads, by the names of it and its peer: `S0.1:3 -> H35`.
pub(crate) fn link(port: &str, peer: &str) -> String {
    format!("{port} -> {}", peer.split_once(':').map_or(peer, |(node, _)| node))
}

/// The name of a node: `H13`.
pub fn node(plan: &Plan, node: NodeId) -> &str {
    &plan.topology.nodes[node as usize].name
}

/// The 802.1p priority of a lane.
pub fn priority(plan: &Plan, lane: u8) -> u8 {
    plan.lanes[usize::from(lane)].priority
}

/// A queue or an account: `S1.2:3`, with its priority where there are several.
pub fn queue(plan: &Plan, port_id: PortId, lane: u8) -> String {
    if plan.lanes.len() > 1 {
        format!("{} (priority {})", port(plan, port_id), priority(plan, lane))
    } else {
        port(plan, port_id)
    }
}

/// A flow: `flow 17: H3 -> H9 (websearch)`.
pub fn flow(plan: &Plan, index: u32) -> String {
    let f = &plan.flows[index as usize];
    let class = &plan.classes[usize::from(f.class)];
    format!("flow {index}: {} -> {} ({class})", node(plan, f.src), node(plan, f.dst))
}

/// Whether a port belongs to the inside of a slow receiver: it leads to its own node.
pub fn is_inner(plan: &Plan, port: PortId) -> bool {
    plan.topology.neighbour(port) == plan.topology.ports[port as usize].node
}

/// The egress ports of a route that starts at `start` in the pool, and whether it loops instead of ending at
/// its destination.
pub fn route(plan: &Plan, start: u32) -> (&[PortId], bool) {
    let tail = &plan.hops[start as usize..];
    let end = tail.iter().position(|&h| h >= ENDS).expect("a route has an end");
    (&tail[..end], tail[end] == EXPIRE)
}

/// The network in one line: `16 hosts, 8 switches, 32 links of 100 Gbps`.
pub fn network(plan: &Plan) -> String {
    let topology = &plan.topology;
    let kind = |k| topology.nodes.iter().filter(|n| n.kind == k).count() as u64;
    let mut links: BTreeMap<u64, u64> = BTreeMap::new();
    for (id, p) in topology.ports.iter().enumerate() {
        let id = id as PortId;
        if id < p.peer && !is_inner(plan, id) {
            *links.entry(p.rate).or_default() += 1;
        }
    }
    let of_rate = |(rate, n)| format!("{} of {}", human::counted(n, "link"), human::rate(rate as f64));
    let links: Vec<String> = links.into_iter().map(of_rate).collect();
    let relays = u64::from(topology.relays);
    let switches = match kind(NodeKind::Switch) - relays {
        1 => "1 switch".into(),
        n => format!("{} switches", human::count(n)),
    };
    let hosts = human::counted(kind(NodeKind::Host), "host");
    let relays = if relays > 0 { format!(" and {}", human::counted(relays, "relay")) } else { String::new() };
    format!("{hosts}, {switches}{relays}, {}", human::listed(&links))
}

pub fn flow_control(plan: &Plan) -> &'static str {
    if plan.pods.is_some() { PodsKeys::NAME } else { plan.flow_control.name() }
}

pub fn transport(plan: &Plan) -> &'static str {
    if plan.pods.is_some() { "none" } else { plan.transport.kind.name() }
}
