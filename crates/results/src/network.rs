//! A plan's network as data, for programs: `xoff topo --json`.

use serde::Serialize;

use crate::names;
use xoff_kernel::time::Time;
use xoff_net::topology::{Node, NodeId, NodeKind, Port, PortId, Topology};
use xoff_plan::plan::{Buffer, Lane, Plan};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Network {
    pub nodes: Vec<NodeEntry>,
    pub links: Vec<LinkEntry>,
    /// The priorities in use, in the order of service.
    pub priorities: Vec<PriorityEntry>,
    pub flow_control: &'static str,
    /// Traffic classes, with their number of flows.
    pub traffic: Vec<TrafficEntry>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeEntry {
    pub name: String,
    /// `host` or `switch`.
    pub kind: &'static str,
    /// Packet memory in bytes.
    pub buffer: u64,
    /// The part of it that the ingresses share, in bytes.
    pub shared: u64,
}

/// A link; both directions are alike.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkEntry {
    pub a: String,
    pub b: String,
    pub rate_bps: u64,
    pub delay_ps: Time,
    /// Leads from one site to another.
    pub long: bool,
    /// Probability that a frame is lost, in each direction.
    pub loss: f64,
    /// Lossless priorities' headroom at the ingress of `a`, in bytes, by priority.
    pub headroom_a: Vec<u64>,
    /// The same at the ingress of `b`.
    pub headroom_b: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PriorityEntry {
    pub priority: u8,
    /// Tiers are served strictly, the lowest first.
    pub tier: u8,
    /// Bytes per turn of deficit round robin.
    pub quantum: u32,
    /// Paused instead of dropped.
    pub lossless: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrafficEntry {
    pub name: String,
    pub flows: u64,
    pub bytes: u64,
}

/// The kind of a node, as files spell it: a relay is one in the end of a long link.
pub fn kind_name(topology: &Topology, node: NodeId) -> &'static str {
    match topology.nodes[node as usize].kind {
        NodeKind::Host => "host",
        NodeKind::Switch if topology.is_relay(node) => "relay",
        NodeKind::Switch => "switch",
    }
}

/// The network of a plan; the inside of slow receivers is left out.
pub fn network(plan: &Plan) -> Network {
    let topology = &plan.topology;
    let lanes = plan.lanes.len();
    let headroom = |port: PortId| -> Vec<u64> {
        let first = port as usize * lanes;
        let accounts = &plan.accounts[first..first + lanes];
        accounts.iter().filter_map(|a| a.headroom.as_ref()).map(|h| h.total).collect()
    };
    let mut traffic: Vec<TrafficEntry> =
        plan.classes.iter().map(|name| TrafficEntry { name: name.clone(), flows: 0, bytes: 0 }).collect();
    for flow in &plan.flows {
        let class = &mut traffic[usize::from(flow.class)];
        class.flows += 1;
        class.bytes += flow.size;
    }
    let node = |(id, (node, buffer)): (NodeId, (&Node, &Buffer))| NodeEntry {
        name: node.name.clone(),
        kind: kind_name(topology, id),
        buffer: buffer.total,
        shared: buffer.shared,
    };
    let link = |(id, port): (PortId, &Port)| LinkEntry {
        a: names::port(plan, id),
        b: names::port(plan, port.peer),
        rate_bps: port.rate,
        delay_ps: port.delay,
        long: port.long,
        loss: port.loss,
        headroom_a: headroom(id),
        headroom_b: headroom(port.peer),
    };
    let priority = |lane: &Lane| PriorityEntry {
        priority: lane.priority,
        tier: lane.tier,
        quantum: lane.quantum,
        lossless: lane.lossless,
    };
    let links = (0..).zip(&topology.ports);
    let links = links.filter(|&(id, port)| id < port.peer && !names::is_inner(plan, id));
    Network {
        nodes: (0..).zip(topology.nodes.iter().zip(&plan.buffers)).map(node).collect(),
        links: links.map(link).collect(),
        priorities: plan.lanes.iter().map(priority).collect(),
        flow_control: names::flow_control(plan),
        traffic,
    }
}
