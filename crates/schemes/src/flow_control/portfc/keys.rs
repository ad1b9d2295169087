//! `[flow_control]` of PortFC.

use super::super::RelayOrder;
use super::super::fabric::{ENDS, Fabric, Lane, PacketFormat, Routes};
use super::super::keys::{
    Complaint, Keys, MEMORY, Setting, Whole, bytes, default_keys, defaults, link, time,
};
use super::super::registry::FlowControlParams;
use super::bound::{Bound, Link, Side, bound};
use super::map::{Place, QueueMap, Unmappable};
use super::{Doubt, PortFcParams, Variant, size};
use crate::load_balancing::LoadBalancing;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use xoff_net::topology::{NodeId, NodeKind, Port, PortId, Topology};
use xoff_net::units::{Span, Threshold};

/// Priority of ACKs and notifications, if not given: first of all.
const HIGH: u8 = 7;

/// Maximum number of ports of a switch: the limit of the numbers of its neighbours' queues.
const LARGEST_SWITCH: u16 = 1 << 14;

/// PortFC, per-port flow control for networks whose hosts relay (2026). All data
/// has one priority; ACKs and notifications have a better one, 7 if
/// `transport.ack_priority` is not given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortFcKeys {
    /// XOFF threshold: a switch port whose forwarding queues together hold this much pauses the
    /// queues that feed them. In bytes, or in BDP (rate times one-way delay) of its link.
    #[serde(default = "six_bdp")]
    pub xoff: Threshold,
    /// XON threshold: the paused queues are resumed when the forwarding queues hold no more than
    /// this. Default: two thirds of `xoff`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: `xoff` × 2/3"))]
    pub xon: Option<Threshold>,
    /// XOFF threshold of the destination-direct queue, and at links between switches of the queues of
    /// packets without a relay ahead, together. Default: `xoff`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`xoff`"))]
    pub ddq_xoff: Option<Threshold>,
    /// XON threshold of the same queues. Default: two thirds of `ddq_xoff`, or `xon`
    /// if neither is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: `ddq_xoff` × 2/3; `xon` if `ddq_xoff` is absent"))]
    pub ddq_xon: Option<Threshold>,
    /// When a host serves relayed packets, compared with its own traffic. A path that returns over
    /// a relay to the same switch is refused.
    #[serde(default)]
    pub relay_queue: RelayOrder,
    /// How many flags a switch port has.
    #[serde(default)]
    pub flags: PortFcFlags,
    /// What a switch port compares with `xoff` and `xon`.
    #[serde(default, skip_serializing_if = "PortFcQlen::is_sum")]
    #[schemars(extend("default" = PortFcQlen::default()))]
    pub qlen: PortFcQlen,
    /// Whether hosts forward the frames of destination-direct queues to their other ports.
    #[serde(default = "defaults::yes")]
    pub relay_signals: bool,
    /// Time from the arrival of a pause or resume frame until it takes effect.
    #[serde(default = "defaults::zero_time")]
    pub response_time: Span,
}

/// The number of flags by which a switch port knows its pauses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PortFcFlags {
    /// One flag for its forwarding queues, one for its destination-direct queue, or its queues of packets
    /// without a relay ahead.
    #[default]
    Two,
    /// One flag for both, as in the paper's algorithms.
    One,
}

/// The bytes by which a switch port detects that its forwarding queues are congested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PortFcQlen {
    /// The bytes of all its forwarding queues together, as in the paper's Algorithms 1 and 2.
    #[default]
    Sum,
    /// Those of the longest one. A switch then needs more buffer.
    Longest,
}

impl PortFcQlen {
    fn is_sum(&self) -> bool {
        *self == Self::Sum
    }
}

default_keys!(PortFcKeys);

fn six_bdp() -> Threshold {
    "6bdp".parse().expect("a threshold")
}

impl Whole for PortFcKeys {}

impl Keys for PortFcKeys {
    fn check(&self, _: &mut Setting<'_>) -> Result<(), Complaint> {
        time("response_time", self.response_time)
    }

    fn refuses_balancing(&self, balancing: LoadBalancing) -> Option<String> {
        let name = balancing.name();
        Some(format!("`portfc` is incompatible with `{name}`: it queues packets by the port after the next"))
    }

    fn default_ack_priority(&self) -> Option<u8> {
        Some(HIGH)
    }

    /// PortFC has one set of queues.
    fn check_priorities(&self, cx: &Setting<'_>, data: &[u8]) -> Result<(), Complaint> {
        let Some(&first) = data.first() else { return Ok(()) };
        if let Some(other) = data.iter().find(|&&p| p != first) {
            let message = format!(
                "PortFC supports one data priority, but the traffic uses priorities {first} and {other}"
            );
            return Err(Complaint::of_key("scheme", message, "give all traffic the same priority"));
        }
        let hq = ack_priority(cx);
        let key = if cx.ack_priority.is_some() { "transport.ack_priority" } else { "flow_control.scheme" };
        if hq == first {
            let message =
                format!("ACKs and data both have priority {hq}, but PortFC needs a separate queue for ACKs");
            let help = "set transport.ack_priority to another priority with a better tier (default 7)";
            return Err(Complaint::new(key, message, help));
        }
        if let Some((priority, key)) = cx.cnp_priority
            && priority == first
        {
            let message =
                format!("CNPs and data both have priority {first}, but PortFC needs separate queues");
            let help = "remove the key: CNPs then use the priority of ACKs";
            return Err(Complaint::new(key, message, help));
        }
        Ok(())
    }

    fn covered(&self, cx: &mut Setting<'_>, used: &[u8]) -> Result<Vec<u8>, Complaint> {
        let control = [Some(ack_priority(cx)), cx.cnp_priority.map(|(priority, _)| priority)];
        Ok(used.iter().copied().filter(|&p| !control.contains(&Some(p))).collect())
    }

    fn lossless(
        &self,
        _: &mut Setting<'_>,
        id: u8,
        key: &str,
        wanted: Option<bool>,
        covered: bool,
    ) -> Result<bool, Complaint> {
        if let Some(wanted) = wanted.filter(|&wanted| wanted != covered) {
            let what = if covered { "data" } else { "ACKs" };
            let message =
                format!("priority {id} carries {what}, which cannot be lossless = {wanted} under PortFC");
            return Err(Complaint::new(key, message, "remove `lossless`"));
        }
        Ok(covered)
    }

    fn may_be_lossy(&self) -> bool {
        false
    }

    fn lifts_limits(&self) -> bool {
        true
    }

    /// Refuses ACKs and notifications that are not served strictly before data.
    fn check_links(&self, cx: &mut Setting<'_>, _: &Topology, lanes: &[Lane]) -> Result<(), Complaint> {
        let Some(data) = lanes.iter().find(|l| l.lossless) else { return Ok(()) };
        let acks = ("ACKs", ack_priority(cx), "transport.ack_priority");
        let cnps = cx.cnp_priority.map(|(priority, key)| ("CNPs", priority, key));
        for (what, priority, key) in [acks].into_iter().chain(cnps) {
            if lanes.iter().any(|l| l.priority == priority && l.tier >= data.tier) {
                let message = format!(
                    "PortFC must serve {what} (priority {priority}) before data (priority {}), from its high-priority \
                     queue",
                    data.priority
                );
                let key = if cx.written(key) { key } else { "flow_control.scheme" };
                let help = format!("write a higher {key}, or set `tier` in [[priority]] tables");
                return Err(Complaint::new(key, message, help));
            }
        }
        Ok(())
    }

    fn params(&self, cx: &mut Setting<'_>, fabric: Fabric<'_>) -> Result<FlowControlParams, Complaint> {
        params(cx, self, &fabric).map(FlowControlParams::PortFc)
    }
}

fn ack_priority(cx: &Setting<'_>) -> u8 {
    cx.ack_priority.unwrap_or(HIGH)
}

/// Where every port of a network is, as the map of queues wants it.
fn places(topology: &Topology) -> Vec<Place> {
    let node = |node: NodeId| topology.nodes[node as usize].kind == NodeKind::Host;
    let place = |p: &Port| Place { device: p.node, index: p.index, peer: p.peer, node: node(p.node) };
    topology.ports.iter().map(place).collect()
}

fn map(topology: &Topology) -> Result<QueueMap, Complaint> {
    let name = |node: NodeId| topology.nodes[node as usize].name.clone();
    let refuse = |why: String| {
        let help = "choose topology.kind = \"ndc\" with k = 1, \"rail-only\", \"rail-optimized\", or another flow control";
        Err(Complaint::of_key("scheme", why, help))
    };
    let ends = |port: u32| [topology.ports[port as usize].node, topology.neighbour(port)].map(name);
    if !topology.relay_hosts {
        return refuse("PortFC requires hosts that relay, and this topology has none".to_string());
    }
    match QueueMap::new(places(topology)) {
        Ok(map) => Ok(map),
        Err(Unmappable::BetweenSwitches(port)) => {
            let [a, b] = ends(port);
            refuse(format!(
                "PortFC supports links between a switch with hosts and an aggregation switch without, but {a} and {b} \
                 have a link"
            ))
        }
        Err(Unmappable::BetweenNodes(port)) => {
            let [a, b] = ends(port);
            refuse(format!("PortFC supports no links between hosts, but {a} and {b} have one"))
        }
        Err(Unmappable::Ports(node, ports)) => refuse(format!(
            "PortFC supports hosts with at most two ports (k = 1), but {} has {ports}: relays would reach several \
             switches, and relayed packets would enter queues that no frame can pause",
            name(node)
        )),
        Err(Unmappable::NoSwitch) => refuse("PortFC requires a switch with two ports or more".to_string()),
    }
}

/// Refuses more queues than have numbers, or than fit in memory.
fn check_size(topology: &Topology, map: &QueueMap, lanes: usize) -> Result<(), Complaint> {
    let help = "choose smaller switches, or another flow control";
    if map.n > LARGEST_SWITCH {
        let message = format!("a switch has {} ports, but PortFC supports at most {LARGEST_SWITCH}", map.n);
        return Err(Complaint::of_key("scheme", message, help));
    }
    // List and state of each queue, for every priority.
    let each = 32 + 24;
    let of = |port: PortId| if map.place(port).node { map.of_node() } else { map.of_switch() };
    let queues = (0..topology.ports.len() as PortId).map(|p| u64::from(of(p))).sum::<u64>() * lanes as u64;
    if queues * each > MEMORY {
        let message = format!("{queues} queues would need {} GiB", (queues * each) >> 30);
        return Err(Complaint::of_key("scheme", message, help));
    }
    Ok(())
}

/// The egress ports from a position on, inner ports of slow hosts left out.
fn route<'h>(map: &QueueMap, hops: &'h [u32], at: u32) -> &'h [u32] {
    let rest = &hops[at as usize..];
    let length = rest.iter().take_while(|&&port| port < ENDS && !map.inner(port)).count();
    &rest[..length]
}

/// Refuses routes of data with more than one relay, and packets in flight that would change to another relay.
fn check_routes(topology: &Topology, map: &QueueMap, routes: &Routes<'_>) -> Result<(), Complaint> {
    let hops = routes.hops;
    let name = |node: NodeId| topology.nodes[node as usize].name.as_str();
    let why = "packets from a second relay enter queues that no frame can pause";
    for f in &routes.flows {
        let path = route(map, hops, f.path);
        let (src, dst) = (name(f.src), name(f.dst));
        let device = |port: u32| map.place(port).device;
        let returns = path.windows(3).find(|p| map.relays(&p[..2]) > 0 && device(p[0]) == device(p[2]));
        if let Some(&[into, ..]) = returns {
            let back = name(device(into));
            let message = format!(
                "a flow from {src} to {dst} returns to {back} over a relay: PortFC has no queue for such packets, and \
                 nothing can pause them"
            );
            let help = "route it over the relay's other switch, or directly to its receiver";
            return Err(Complaint::of_key("scheme", message, help));
        }
        let when = if f.later { " after a failure" } else { "" };
        if map.climbs_again(path) {
            let message = format!(
                "a flow from {src} to {dst} crosses more than two links between switches in a row{when}: under PortFC \
                 such packets could wait for each other in a cycle"
            );
            let help = "choose shortest paths in a network without failures, or another flow control";
            return Err(Complaint::of_key("scheme", message, help));
        }
        let relays = map.relays(path);
        if relays > 1 {
            let message = format!(
                "a flow from {src} to {dst} crosses {relays} relays{when}, but PortFC supports at most one: {why}"
            );
            let help = "choose shortest paths in a network without failures, or another flow control";
            return Err(Complaint::of_key("scheme", message, help));
        }
    }
    for &(old, new) in &routes.moved {
        if map.relays(route(map, hops, new)) > map.relays(route(map, hops, old)) {
            let port = topology.port_name(hops[new as usize]);
            let message = format!("packets at {port} change to a path over a relay after a failure: {why}");
            let help = "start the failure at time 0: routes then avoid it; or choose another flow control";
            return Err(Complaint::of_key("scheme", message, help));
        }
    }
    Ok(())
}

fn params(cx: &mut Setting<'_>, portfc: &PortFcKeys, fabric: &Fabric<'_>) -> Result<PortFcParams, Complaint> {
    let Fabric { topology, lanes, routes, .. } = *fabric;
    let hops = routes.hops;
    let map = map(topology)?;
    check_size(topology, &map, lanes.len())?;
    check_routes(topology, &map, routes)?;
    let least = u64::from(cx.packet.largest());
    let (xoff, xon) = thresholds(cx, topology, least, ["xoff", "xon"], portfc.xoff, portfc.xon)?;
    let (ddq_xoff, ddq_xon) = match (portfc.ddq_xoff, portfc.ddq_xon) {
        (None, None) => (xoff.clone(), xon.clone()),
        (own, on) => {
            let on = on.or(portfc.xon.filter(|_| own.is_none()));
            thresholds(cx, topology, least, ["ddq_xoff", "ddq_xon"], own.unwrap_or(portfc.xoff), on)?
        }
    };
    let queue_at: Vec<u16> = (0..hops.len() as u32).map(|at| map.queue(route(&map, hops, at))).collect();
    let mut params = PortFcParams {
        map: Arc::new(map),
        queue_at: queue_at.into(),
        xoff,
        xon,
        ddq_xoff,
        ddq_xon,
        lane: lanes.iter().position(|l| l.lossless).unwrap_or(0) as u8,
        relay_order: portfc.relay_queue,
        variant: Variant {
            one_flag: portfc.flags == PortFcFlags::One,
            no_signal_relay: !portfc.relay_signals,
            longest_alone: portfc.qlen == PortFcQlen::Longest,
        },
        response_time: portfc.response_time.0,
        needs: Vec::new(),
        doubts: Vec::new(),
    };
    let mut evenly_fed = true;
    for node in 0..topology.nodes.len() as NodeId {
        let (bound, evenly) = match topology.nodes[node as usize].kind {
            NodeKind::Switch => needs(topology, &params, &cx.packet, node),
            NodeKind::Host => (Bound::default(), true),
        };
        params.needs.push(bound);
        evenly_fed &= evenly;
    }
    let doubts = [
        (!evenly_fed, Doubt::UnequalRates),
        (params.relay_order != RelayOrder::First, Doubt::RelayOrder),
        (params.variant.no_signal_relay, Doubt::NoSignalRelay),
        (params.variant.one_flag, Doubt::OneFlag),
        (!cx.slows && relays(routes, &params.map), Doubt::NothingSlows),
    ];
    params.doubts = doubts.into_iter().filter(|d| d.0).map(|d| d.1).collect();
    warn(cx, fabric, &params);
    Ok(params)
}

/// Whether data of any flow goes over a relay.
fn relays(routes: &Routes<'_>, map: &QueueMap) -> bool {
    routes.flows.iter().any(|f| !f.later && map.relays(route(map, routes.hops, f.path)) > 0)
}

/// Thresholds of every port, in bytes; an XOFF is at least a largest packet.
fn thresholds(
    cx: &Setting<'_>,
    topology: &Topology,
    least: u64,
    keys: [&str; 2],
    off: Threshold,
    on: Option<Threshold>,
) -> Result<(Vec<u64>, Vec<u64>), Complaint> {
    let mut out = (Vec::new(), Vec::new());
    for (id, port) in (0..).zip(&topology.ports) {
        let xoff = off.resolve(port.rate, port.delay);
        let xon = on.map_or_else(|| size::xon(xoff), |t| t.resolve(port.rate, port.delay));
        let inner = topology.neighbour(id) == port.node;
        if xon > xoff && !inner {
            let (on_key, off_key, port) = (keys[1], keys[0], link(topology, id));
            let message = format!("{on_key} = {xon} B is above {off_key} = {xoff} B on {port}");
            let given = keys.into_iter().rev().find(|key| cx.written(&format!("flow_control.{key}")));
            let key = format!("flow_control.{}", given.unwrap_or("scheme"));
            let help = format!("choose `{}` no larger than `{}`", keys[1], keys[0]);
            return Err(Complaint::new(&key, message, help));
        }
        out.0.push(xoff.max(least));
        out.1.push(xon);
    }
    Ok(out)
}

/// The bytes that switch `node` may have to hold, and whether its relays are served as fast as they are fed.
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
            let neighbour = &topology.nodes[topology.ports[peer as usize].node as usize];
            let relay = neighbour.kind == NodeKind::Host;
            let far = neighbour.ports.iter().find(|&&p| relay && p != peer && !params.map.inner(p));
            let at = port as usize;
            // Where the longest queue of a set decides, each can be as long.
            let counted = if params.variant.longest_alone { u64::from(params.map.n - 1) } else { 1 };
            let direct = if relay { 1 } else { counted };
            Side {
                near: link(port),
                far: far.map(|&p| link(p)),
                xoff: counted * params.xoff[at],
                ddq_xoff: direct * params.ddq_xoff[at],
            }
        })
        .collect();
    let served = sides.iter().all(|s| s.far.is_none_or(|far| far.rate <= s.near.rate));
    (bound(&sides, packet.largest(), params.response_time), served)
}

/// Warns about memory that may be too small, and about missing promises.
fn warn(cx: &mut Setting<'_>, fabric: &Fabric<'_>, params: &PortFcParams) {
    let (topology, buffers) = (fabric.topology, fabric.buffers);
    let short = (0..)
        .zip(&params.needs)
        .filter(|(n, bound): &(NodeId, _)| bound.total() > buffers[*n as usize].total)
        .max_by_key(|(n, bound)| (bound.total() - buffers[*n as usize].total, std::cmp::Reverse(*n)));
    if !params.doubts.is_empty() {
        let why = params.why_unproven();
        let message =
            format!("PortFC has no proven buffer size here: {why}. Check the peak buffer use of the run");
        cx.warn("flow_control.scheme".into(), message);
    }
    if let Some((node, bound)) = short {
        let message = format!(
            "the buffer of {} is {}, below the {} that are proven enough while relay queues are short: {} for thresholds, {} for packets in flight to forwarding \
             queues, {} for packets in flight to direct queues. Less may be enough: check the peak buffer use of the run",
            topology.nodes[node as usize].name,
            bytes(buffers[node as usize].total),
            bytes(bound.total()),
            bytes(bound.thresholds),
            bytes(bound.forwarding),
            bytes(bound.direct),
        );
        cx.warn("switch.buffer".into(), message);
    }
    for (i, host) in cx.slow_receivers.clone().into_iter().enumerate() {
        let message = format!(
            "packets can be dropped at {host}: under PortFC hosts send no pauses, and a slow receiver fills its buffer"
        );
        cx.warn(format!("slow_receiver[{i}]"), message);
    }
    if fabric.loses {
        let message =
            "a queue can stay paused permanently: PortFC sends each resume once, and a link can lose it";
        cx.warn("loss".into(), message.into());
    }
}
