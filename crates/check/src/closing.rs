//! The routes that close a cycle, and the other routes that cross its ports.

use crate::all::{Place, Spread};
use crate::graph::{Cycle, Part, Wait};
use crate::roots;
use crate::routes::{FlowPaths, Kind, edge, inner, passed_on, wait_lane};
use std::collections::BTreeMap;
use xoff_net::routing::Router;
use xoff_net::topology::{NodeId, NodeKind, PortId};
use xoff_plan::plan::{DELIVER, Plan};

/// Most routes that are kept for each edge of a cycle, and for each of its ports.
const KEPT: usize = 24;

/// A route that a flow takes, or may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Through {
    /// The flow, if it is one of the scenario's.
    pub flow: Option<u32>,
    pub kind: Kind,
    /// Its egress ports, from the sender's on; empty if packets take this path only while routes change.
    pub ports: Vec<PortId>,
    /// Whether it leads to its destination, not into a loop.
    pub delivers: bool,
    /// The lane in which it begins.
    pub lane: u8,
}

/// An edge of a cycle: `from` may wait for `to`, for the routes that lead over both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: Wait,
    pub to: Wait,
    /// Routes that lead over both: some of them, those from different ports first.
    pub closers: Vec<Through>,
    /// How many do; 0 where routes are not counted (all routes).
    pub count: u64,
    /// Routes that reach `to` on another path.
    pub feeders: Vec<Through>,
    /// Whether a host passes the pause of `to` on to `from`, on all routes.
    pub passed_on: bool,
}

/// The edges of a cycle, without routes.
fn edges(plan: &Plan, cycle: &Cycle) -> Vec<Edge> {
    let passed = passed_on(plan);
    let pairs = cycle.waits.iter().zip(cycle.waits.iter().cycle().skip(1));
    let edge = |(&from, &to): (&Wait, &Wait)| {
        let (closers, feeders, passed_on) = (Vec::new(), Vec::new(), passed.contains(&(from, to)));
        Edge { from, to, closers, count: 0, feeders, passed_on }
    };
    pairs.map(edge).collect()
}

/// Whether a packet that may be in `other` may be in `wait`: waits for roots differ in the roots ahead.
fn same(wait: Wait, other: Wait) -> bool {
    let part = if matches!(wait.part, Part::Root(_)) { Part::Whole } else { wait.part };
    Wait { part, ..wait } == other
}

fn keep(list: &mut Vec<Through>, route: Through) {
    if list.len() < KEPT {
        list.push(route);
    }
}

/// Orders routes so that those that begin at different senders come first, of each sender the longest one,
/// which may close several edges; data before control packets.
fn spread_out(list: &mut Vec<Through>) {
    list.sort_by_key(|t| std::cmp::Reverse(t.ports.len()));
    let mut turns: BTreeMap<(Kind, Option<PortId>), usize> = BTreeMap::new();
    let mut key = |t: &Through| {
        let turn = turns.entry((t.kind, t.ports.first().copied())).or_default();
        *turn += 1;
        (t.ports.is_empty(), t.kind, *turn)
    };
    let mut keyed: Vec<_> = list.drain(..).map(|t| (key(&t), t)).collect();
    keyed.sort_by_key(|(key, _)| *key);
    list.extend(keyed.into_iter().map(|(_, t)| t));
}

/// The flows of a plan that close each edge of a cycle, and those that feed it.
pub fn by_flows(plan: &Plan, cycle: &Cycle) -> Vec<Edge> {
    let mut edges = edges(plan, cycle);
    let paths = FlowPaths::new(plan);
    for flow in 0..plan.flows.len() as u32 {
        let mut met: Vec<(usize, Kind)> = Vec::new();
        let mut feeds = false;
        paths.steps(flow, &mut |kind, step| {
            let Some((from, to)) = edge(plan, flow, step) else { return };
            for (i, e) in edges.iter().enumerate() {
                if same(e.from, from) && same(e.to, to) && !met.contains(&(i, kind)) {
                    met.push((i, kind));
                }
                feeds |= same(e.to, to);
            }
        });
        if met.is_empty() && !feeds {
            continue;
        }
        let f = &plan.flows[flow as usize];
        for &(i, kind) in &met {
            let e = (edges[i].from, edges[i].to);
            let (first, lane, which) = match kind {
                Kind::Data => (f.path, f.lane, 0),
                Kind::Control => (f.ack_path, f.ack_lane, 1),
            };
            let later = paths.later.get(&flow).into_iter().flat_map(|later| &later[which]);
            let steady = std::iter::once(&first).chain(later).find_map(|&start| {
                let mut found = None;
                each_route(plan, flow, kind, start, lane, &mut |route| {
                    let waits = waits(plan, &route, e.0.part);
                    let over = waits.windows(2).any(|w| same(e.0, w[0]) && same(e.1, w[1]));
                    found = (over && roots::closes(&route.ports, e.0, e.1)).then_some(route);
                    found.is_none()
                });
                found
            });
            // It leads over both, and not through the root.
            if matches!(e.0.part, Part::Root(_)) && steady.is_none() && !paths.changes() {
                continue;
            }
            edges[i].count += 1;
            let none = Through { flow: Some(flow), kind, ports: Vec::new(), delivers: true, lane: f.lane };
            keep(&mut edges[i].closers, steady.unwrap_or(none));
        }
        for start in std::iter::once(f.path).chain(plan.other_routes(flow)).filter(|_| feeds) {
            each_route(plan, flow, Kind::Data, start, f.lane, &mut |route| {
                let waits = waits(plan, &route, cycle.waits[0].part);
                for e in &mut edges {
                    let at = waits.iter().position(|w| same(e.to, *w));
                    if at.is_some_and(|at| at == 0 || !same(e.from, waits[at - 1])) {
                        keep(&mut e.feeders, route.clone());
                    }
                }
                true
            });
        }
    }
    for e in &mut edges {
        spread_out(&mut e.closers);
        spread_out(&mut e.feeders);
    }
    edges
}

/// Calls `visit` with each route from `start` (several where devices choose), until it returns `false`.
fn each_route(
    plan: &Plan,
    flow: u32,
    kind: Kind,
    start: u32,
    lane: u8,
    visit: &mut dyn FnMut(Through) -> bool,
) {
    plan.visit_paths(start, &mut |path| {
        let ports = path.iter().map(|&at| plan.hops[at as usize]).filter(|&p| !inner(plan, p)).collect();
        let end = path.last().map(|&at| plan.hops[at as usize + 1]);
        visit(Through { flow: Some(flow), kind, ports, delivers: end == Some(DELIVER), lane })
    });
}

/// The waits of a route's packets, port by port; `part` is that of any other wait.
fn waits(plan: &Plan, route: &Through, part: Part) -> Vec<Wait> {
    let own = route.flow.filter(|_| matches!(part, Part::Flow(_)));
    let part = own.map_or(Part::Whole, Part::Flow);
    let (mut lane, mut waits) = (route.lane, Vec::with_capacity(route.ports.len()));
    for (i, &port) in route.ports.iter().enumerate() {
        if i > 0 {
            let ingress = plan.topology.ports[route.ports[i - 1] as usize].peer;
            lane = plan.onward_lane(lane, ingress, port);
        }
        waits.push(Wait { port, lane: wait_lane(plan, lane), part });
    }
    waits
}

/// Routes between any two hosts that close each edge of a cycle: a few of them for each edge.
pub fn by_all(plan: &Plan, router: &mut Router, places: &[Place], lanes: &[u8], cycle: &Cycle) -> Vec<Edge> {
    let mut edges = edges(plan, cycle);
    let mut spread = Spread::new(plan, lanes);
    for place in places {
        if edges.iter().all(|e| e.closers.len() >= KEPT / 4) {
            break;
        }
        let mut met: Vec<usize> = Vec::new();
        spread.spread(router, place, &[], &mut |from, to| {
            for (i, e) in edges.iter().enumerate() {
                let is = |w: Wait, p: (PortId, u8)| (w.port, w.lane) == p;
                if is(e.from, from) && is(e.to, to) && !met.contains(&i) {
                    met.push(i);
                }
            }
        });
        for i in met {
            let (from, to) = (edges[i].from, edges[i].to);
            let (mut ports, lane) = spread.path_to(from.port, from.lane, router.ttl());
            ports.push(to.port);
            let sender = plan.topology.ports[ports[0] as usize].node;
            // Takes the first next hop; without loops the place is soon reached.
            let mut at = plan.topology.neighbour(to.port);
            while !place.hosts.contains(&at) && ports.len() < router.ttl() {
                let outs = spread.outs(router, at, place);
                let out = outs.map(|i| spread.out(i)).find(|&p| plan.topology.neighbour(p) != sender);
                let Some(out) = out else { break };
                ports.push(out);
                at = plan.topology.neighbour(out);
            }
            if place.hosts.contains(&at) && at != sender && roots::closes(&ports, from, to) {
                let route = Through { flow: None, kind: Kind::Data, ports, delivers: true, lane };
                keep(&mut edges[i].closers, route);
            }
        }
    }
    // Flows on explicit paths close an edge that no choice of the router closes.
    if edges.iter().any(|e| e.closers.is_empty()) {
        for (e, own) in edges.iter_mut().zip(by_flows(plan, cycle)) {
            if e.closers.is_empty() {
                (e.closers, e.count) = (own.closers, own.count);
            }
        }
    }
    for e in &mut edges {
        spread_out(&mut e.closers);
    }
    edges
}

/// A short path of cross traffic over `port`: from a host near its device, not on the side of the port
/// `not_by`, to a host near its far end. `None` if there is none.
pub fn cross(
    plan: &Plan,
    port: PortId,
    not_by: PortId,
    dead: &dyn Fn(PortId) -> bool,
) -> Option<Vec<PortId>> {
    let topology = &plan.topology;
    let is = |node: NodeId, kind: NodeKind| topology.nodes[node as usize].kind == kind;
    // From `start` outwards to the nearest host but those in `not`, over links that are up.
    let nearest = |start: NodeId, avoid: &[PortId], not: &[NodeId]| -> Option<Vec<PortId>> {
        let mut from: BTreeMap<NodeId, PortId> = BTreeMap::new();
        let mut queue = vec![start];
        let mut next = 0;
        while let Some(&node) = queue.get(next) {
            next += 1;
            if is(node, NodeKind::Host) && !not.contains(&node) {
                let before = |port: &PortId| from.get(&topology.ports[*port as usize].node).copied();
                let mut ports: Vec<_> = std::iter::successors(from.get(&node).copied(), before).collect();
                ports.reverse();
                return Some(ports);
            }
            if node != start && !is(node, NodeKind::Switch) && !topology.relay_hosts {
                continue;
            }
            for &out in &topology.nodes[node as usize].ports {
                let to = topology.neighbour(out);
                if to != start && !from.contains_key(&to) && !avoid.contains(&out) && !dead(out) {
                    from.insert(to, out);
                    queue.push(to);
                }
            }
        }
        None
    };
    let (near, far) = (topology.ports[port as usize].node, topology.neighbour(port));
    let back = topology.ports[not_by as usize].peer;
    // The search goes outwards from the device; the path goes in the other direction.
    let there = nearest(near, &[port, back], &[far])?;
    let mut ports: Vec<PortId> = there.iter().rev().map(|&p| topology.ports[p as usize].peer).collect();
    let sender = ports.first().map_or(near, |&p| topology.ports[p as usize].node);
    ports.push(port);
    ports.extend(nearest(far, &[topology.ports[port as usize].peer], &[sender])?);
    Some(ports)
}
