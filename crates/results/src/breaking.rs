//! What breaks the cycle of a deadlock: the flows of one of its steps, and other routes for them.
//!
//! A step leads from a queue of the cycle to the next one. If no packet crosses both, the first queue does not
//! wait for the second, so the cycle cannot form.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::{human, names};
use xoff_net::topology::{NodeKind, PortId};
use xoff_outcome::Deadlock;
use xoff_plan::balancing::LoadBalancing;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::PauseScope;

/// Flows that are named in a sentence.
const LISTED: usize = 2;
/// Most flows for which other routes are sought.
const ROUTED: usize = 64;

/// An egress port, and a lane.
type Queue = (PortId, u8);

/// The step of a cycle that the fewest flows cross.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Egress queues: packets of the flows cross `from`, then `to`.
    pub from: String,
    pub to: String,
    /// `flow 17: H3 -> H9 (websearch)`.
    pub flows: Vec<String>,
    /// The switches of another route of each flow, in order. Empty if one of the flows has none, and above 64 flows.
    pub routes: Vec<Vec<String>>,
    /// With these routes the routes of all flows have no cycle.
    pub acyclic: bool,
}

/// The step of a deadlock's cycle that the fewest flows cross. `None` where this is no matter of routes alone (a host
/// passes pauses on, or a pause stops other units than a priority), and where routes change.
pub(crate) fn step(plan: &Plan, deadlock: &Deadlock) -> Option<Step> {
    let by_lane = plan.flow_control.traits().pause_scope == PauseScope::Lane;
    let steady =
        plan.load_balancing == LoadBalancing::Ecmp && plan.ate.is_none() && plan.faults.reroutes.is_empty();
    if !by_lane || !steady || plan.topology.relay_hosts || deadlock.cycle.iter().any(|held| held.bytes == 0) {
        return None;
    }
    let cycle: Vec<Queue> = deadlock.cycle.iter().map(|held| (held.port, held.lane)).collect();
    let mut crossing: BTreeMap<[Queue; 2], Vec<u32>> =
        (0..cycle.len()).map(|i| ([cycle[i], cycle[(i + 1) % cycle.len()]], Vec::new())).collect();
    for flow in 0..plan.flows.len() as u32 {
        let its = steps(plan, flow, None);
        crossing.iter_mut().filter(|(step, _)| its.contains(*step)).for_each(|(_, flows)| flows.push(flow));
    }
    let crossed = crossing.into_iter().filter(|(_, flows)| !flows.is_empty());
    let ([from, to], flows) = crossed.min_by_key(|(_, flows)| flows.len())?;
    let other = |&flow: &u32| route_without(plan, flow, [from.0, to.0]);
    let routes: Option<Vec<_>> = if flows.len() <= ROUTED { flows.iter().map(other).collect() } else { None };
    let routes = routes.unwrap_or_default();
    let switches = |route: &Vec<PortId>| {
        route[1..]
            .iter()
            .map(|&port| names::node(plan, plan.topology.ports[port as usize].node).into())
            .collect()
    };
    Some(Step {
        from: names::queue(plan, from.0, from.1),
        to: names::queue(plan, to.0, to.1),
        acyclic: !routes.is_empty() && !cyclic(plan, &flows, &routes),
        routes: routes.iter().map(switches).collect(),
        flows: flows.into_iter().map(|flow| names::flow(plan, flow)).collect(),
    })
}

/// The steps of a flow's data and of its control packets: on its routes, or `moved` and back over the same switches.
fn steps(plan: &Plan, flow: u32, moved: Option<&[PortId]>) -> BTreeSet<[Queue; 2]> {
    let f = &plan.flows[flow as usize];
    let peer = |port: PortId| plan.topology.ports[port as usize].peer;
    let there = moved.unwrap_or_else(|| names::route(plan, f.path).0);
    let reversed: Option<Vec<PortId>> =
        moved.map(|ports| ports.iter().rev().map(|&port| peer(port)).collect());
    let back = reversed.as_deref().unwrap_or_else(|| names::route(plan, f.ack_path).0);
    let cnp = plan.congestion_control.cnp_lane().map(|lane| (back, lane));
    let mut steps = BTreeSet::new();
    for (ports, mut lane) in [(there, f.lane), (back, f.ack_lane)].into_iter().chain(cnp) {
        for pair in ports.windows(2) {
            let from = (pair[0], lane);
            lane = plan.onward_lane(lane, peer(pair[0]), pair[1]);
            steps.insert([from, (pair[1], lane)]);
        }
    }
    steps
}

/// The shortest route of a flow that does not cross the two ports of `turn` one after the other, there or back, over
/// links that never fail.
fn route_without(plan: &Plan, flow: u32, turn: [PortId; 2]) -> Option<Vec<PortId>> {
    let (topology, flow) = (&plan.topology, &plan.flows[flow as usize]);
    let usable = |&port: &PortId| {
        !names::is_inner(plan, port) && !plan.faults.down.iter().any(|down| down.port == port)
    };
    let leaving = |node| topology.nodes[node as usize].ports.iter().copied().filter(usable);
    let peer = |port: PortId| topology.ports[port as usize].peer;
    let back = [peer(turn[1]), peer(turn[0])];
    // By port, the port before it; itself at the source.
    let mut before: BTreeMap<PortId, PortId> = leaving(flow.src).map(|port| (port, port)).collect();
    let mut queue: VecDeque<PortId> = before.keys().copied().collect();
    while let Some(port) = queue.pop_front() {
        let at = topology.neighbour(port);
        if at == flow.dst {
            let mut route = vec![port];
            while before[&route[route.len() - 1]] != route[route.len() - 1] {
                route.push(before[&route[route.len() - 1]]);
            }
            route.reverse();
            return Some(route);
        }
        if topology.nodes[at as usize].kind == NodeKind::Host {
            continue;
        }
        for next in leaving(at) {
            // No route comes to a device twice.
            let to = topology.neighbour(next);
            let mut along = port;
            let again = loop {
                if topology.ports[along as usize].node == to {
                    break true;
                }
                if before[&along] == along {
                    break false;
                }
                along = before[&along];
            };
            if !again && [port, next] != turn && [port, next] != back && !before.contains_key(&next) {
                before.insert(next, port);
                queue.push_back(next);
            }
        }
    }
    None
}

/// Whether the routes of all flows have a cycle of steps, with `routes` for the `moved` ones.
fn cyclic(plan: &Plan, moved: &[u32], routes: &[Vec<PortId>]) -> bool {
    let mut next: BTreeMap<Queue, BTreeSet<Queue>> = BTreeMap::new();
    for flow in 0..plan.flows.len() as u32 {
        let route = moved.binary_search(&flow).ok().map(|i| routes[i].as_slice());
        for [from, to] in steps(plan, flow, route) {
            next.entry(from).or_default().insert(to);
        }
    }
    let mut entering: BTreeMap<Queue, usize> = next.keys().map(|&queue| (queue, 0)).collect();
    next.values().flatten().for_each(|&queue| *entering.entry(queue).or_default() += 1);
    let mut free: Vec<Queue> = entering.iter().filter(|(_, n)| **n == 0).map(|(&queue, _)| queue).collect();
    let mut left = entering.len();
    while let Some(queue) = free.pop() {
        left -= 1;
        for to in next.get(&queue).into_iter().flatten() {
            let count = entering.get_mut(to).expect("each queue is there");
            *count -= 1;
            if *count == 0 {
                free.push(*to);
            }
        }
    }
    left > 0
}

/// Such as `flow 17: H3 -> H9 (websearch)` of at most `most` ones, and the number of the others.
pub(crate) fn flows(names: &[String], most: usize) -> String {
    let shown = &names[..names.len().min(most)];
    match names.len() - shown.len() {
        0 => shown.join("; "),
        n => format!("{} and {n} more", shown.join("; ")),
    }
}

/// The advice, a clause each.
pub(crate) fn advice(step: &Step) -> Vec<String> {
    let one = step.flows.len() == 1;
    let it = if one { "it" } else { "them" };
    let mut advice = vec![format!(
        "{} {} the step {} -> {}, the fewest of the cycle: {}. Without {it}, or with {it} on {}, this cycle cannot form",
        human::counted(step.flows.len() as u64, "flow"),
        if one { "crosses" } else { "cross" },
        step.from,
        step.to,
        flows(&step.flows, LISTED),
        if one { "another route" } else { "other routes" },
    )];
    if !step.routes.is_empty() {
        let short = |flow: &str| flow.split(':').next().unwrap_or(flow).to_string();
        let route =
            |(flow, route): (&String, &Vec<String>)| format!("{} over {}", short(flow), route.join(", "));
        let routes: Vec<String> = step.flows.iter().zip(&step.routes).take(LISTED).map(route).collect();
        let then = match step.acyclic {
            true => "then the routes of all flows have no cycle",
            false => "but other cycles may remain",
        };
        let more = if step.routes.len() > LISTED { ", and so on" } else { "" };
        advice.push(format!("possible: {}{more}; {then}", routes.join("; ")));
    }
    advice
}
