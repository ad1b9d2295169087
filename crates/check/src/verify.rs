//! The small checker of certificates. It shares nothing with the search that makes them: it walks along
//! routes and asks at each device whether the wait of the link in is listed before the wait of the link out.

use crate::certificate::{Certificate, Entry, Failing, Routes, port};
use crate::verify_all::{self, After, Queue};
use crate::{verify_onward, verify_roots};
use std::collections::{BTreeMap, BTreeSet};
use xoff_net::routing::Router;
use xoff_net::topology::NodeKind;
use xoff_plan::plan::{ENDS, Plan};
use xoff_plan::{Loaded, balancing::LoadBalancing};
use xoff_schemes::flow_control::{PauseScope, Queueing};

/// The position of each wait in the order.
#[derive(Default)]
pub struct Places {
    /// By port and lane (`port * 8 + lane`), from 1; 0: not listed.
    shared: Vec<u32>,
    /// Where each flow waits for itself: by port, lane and flow.
    by_flow: BTreeMap<(u32, u8, u32), u32>,
    /// Of pauses by onward port: by port and number of a queue of data.
    pub by_queue: BTreeMap<(u32, u16), u32>,
    /// Of pauses by root: by port, lane and root.
    pub by_root: BTreeMap<(u32, u8, u32), u32>,
}

impl Places {
    /// The position of the wait of a whole lane; 0 if it is not listed.
    pub fn shared(&self, (port, lane): Queue) -> u32 {
        self.shared[port as usize * 8 + usize::from(lane)]
    }
}

/// Checks a certificate against the routes of a scenario; `router` is that of the links that are up. Returns
/// the number of compared pairs of waits. The error is the first thing that does not hold.
pub fn verify(loaded: &Loaded, router: &mut Router, certificate: &Certificate) -> Result<u64, String> {
    let plan = &loaded.plan;
    let overrides = &loaded.scenario.routing.overrides;
    let apart: BTreeSet<u32> = overrides.iter().filter_map(|o| plan.topology.find(&o.to)).collect();
    let places = listed(plan, &certificate.order)?;
    if let Some(queues) = plan.flow_control.onward_queues() {
        return collected(
            (loaded, router, certificate, &places),
            |of| verify_onward::flows(plan, of),
            |router, after, filled| verify_onward::all(plan, router, after, filled),
            |places, filled| verify_onward::compare(plan, queues, places, filled),
        );
    }
    if let Some(queues) = plan.flow_control.root_queues() {
        return collected(
            (loaded, router, certificate, &places),
            |of| verify_roots::flows(plan, queues, of),
            |router, after, seen| verify_roots::all(plan, router, after, seen),
            |places, seen| verify_roots::compare(plan, queues, places, seen),
        );
    }
    passed_on(plan, &places)?;
    if certificate.routes == Routes::Scenario {
        return flows(plan, &places, &|_| true);
    }
    let (explicit, failing) = (explicit(loaded), certificate.routes.has_failures());
    let mut compared = flows(plan, &places, &explicit)?;
    let mut orders = BTreeMap::new();
    for order in under(plan, certificate).filter(|_| failing) {
        let (down, order) = order?;
        passed_on(plan, &order)?;
        compared += flows(plan, &order, &explicit)?;
        orders.insert(down, order);
    }
    compared += verify_all::all(plan, router, None, &apart, &places)?;
    if failing {
        compared +=
            under_each_failure((plan, certificate), router, &places, &orders, |failed, after, places| {
                verify_all::all(plan, failed, Some(after), &apart, places)
            })?;
    }
    Ok(compared)
}

/// Whether routing does not choose the paths of a class's flows.
fn explicit(loaded: &Loaded) -> impl Fn(u16) -> bool + '_ {
    |class| loaded.scenario.traffic[usize::from(class)].has_paths()
}

/// The ports of links that are down together.
type Down = BTreeSet<u32>;

/// Checks each set of failures of the certificate, by the order that is given for it, or else the common one. `check`
/// gets the router under the failures, and the ports of their links with the router from before.
fn under_each_failure(
    (plan, certificate): (&Plan, &Certificate),
    router: &mut Router,
    common: &Places,
    under: &BTreeMap<Down, Places>,
    mut check: impl FnMut(&mut Router, (&Down, &mut Router), &Places) -> Result<u64, String>,
) -> Result<u64, String> {
    let topology = &plan.topology;
    let Failing { links, switches } = certificate.routes.failing();
    let link = |&p: &u32| {
        let port = &topology.ports[p as usize];
        p < port.peer && router.alive(p) && topology.neighbour(p) != port.node
    };
    let both = |p: u32| [p, topology.ports[p as usize].peer];
    let of_links: Vec<Down> =
        (0..topology.ports.len() as u32).filter(link).map(|p| both(p).into_iter().collect()).collect();
    let of_switches: Vec<Down> = (0u32..)
        .zip(&topology.nodes)
        .filter(|(n, node)| node.kind == NodeKind::Switch && !topology.is_relay(*n))
        .map(|(_, node)| node.ports.iter().flat_map(|&p| both(p)).collect())
        .collect();
    let broken: Down = (0..topology.ports.len() as u32).filter(|&p| !router.alive(p)).collect();
    let mut compared = 0;
    for (single, most) in [(of_links, links), (of_switches, switches)] {
        // Sets of up to `most` members, by the indices of the members, each above the one before.
        let mut open: Vec<(usize, u8, Down)> = vec![(0, 0, Down::new())];
        while let Some((first, size, down)) = open.pop() {
            if size > 0 {
                let places = under.get(&down).unwrap_or(common);
                let mut failed = router.without(&broken.union(&down).copied().collect());
                compared += check(&mut failed, (&down, &mut *router), places).map_err(|e| {
                    let names: Vec<String> = down
                        .iter()
                        .filter(|&&port| port < topology.ports[port as usize].peer)
                        .map(|&port| topology.port_name(port))
                        .collect();
                    match &names[..] {
                        [link] => format!("if the link of {link} fails, {e}"),
                        links => format!("if the links of {} fail, {e}", links.join(", ")),
                    }
                })?;
            }
            if size < most {
                let more = (first..single.len())
                    .map(|i| (i + 1, size + 1, down.union(&single[i]).copied().collect()));
                open.extend(more);
            }
        }
    }
    Ok(compared)
}

/// The same where no single step determines the waits: `flows` and `all` collect the steps of packets, and
/// `compare` compares the waits that follow from them.
fn collected<S: Clone>(
    (loaded, router, certificate, places): (&Loaded, &mut Router, &Certificate, &Places),
    flows: impl Fn(&dyn Fn(u16) -> bool) -> S,
    all: impl Fn(&mut Router, After<'_>, &mut S) -> Result<(), String>,
    compare: impl Fn(&Places, &S) -> Result<u64, String>,
) -> Result<u64, String> {
    if certificate.routes == Routes::Scenario {
        return compare(places, &flows(&|_| true));
    }
    let mut seen = flows(&explicit(loaded));
    all(router, None, &mut seen)?;
    let mut compared = compare(places, &seen)?;
    if certificate.routes.has_failures() {
        let under = under(&loaded.plan, certificate).collect::<Result<_, _>>()?;
        compared += under_each_failure(
            (&loaded.plan, certificate),
            router,
            places,
            &under,
            |failed, after, places| {
                let mut seen = seen.clone();
                all(failed, Some(after), &mut seen)?;
                compare(places, &seen)
            },
        )?;
    }
    Ok(compared)
}

/// The orders under failures, by the ports of the links that are down.
fn under(plan: &Plan, certificate: &Certificate) -> impl Iterator<Item = Result<(Down, Places), String>> {
    let names = plan.topology.names();
    certificate.under.iter().map(move |failure| {
        let mut down = Down::new();
        for name in &failure.down {
            let near = match names.get(name.as_str()) {
                Some(&node) => plan.topology.nodes[node as usize].ports.clone(),
                None => {
                    vec![port(&plan.topology, &names, name).ok_or_else(|| format!("unknown port {name}"))?]
                }
            };
            down.extend(near.into_iter().flat_map(|p| [p, plan.topology.ports[p as usize].peer]));
        }
        Ok((down, listed(plan, &failure.order)?))
    })
}

/// The places of the waits in an order.
fn listed(plan: &Plan, order: &[Entry]) -> Result<Places, String> {
    let (names, scope) = (plan.topology.names(), plan.flow_control.traits().pause_scope);
    let ndc = verify_onward::Ndc::new(plan);
    let mut places = Places { shared: vec![0; plan.topology.ports.len() * 8], ..Places::default() };
    for (place, entry) in (1..).zip(order) {
        let out = port(&plan.topology, &names, &entry.port);
        let out = out.ok_or_else(|| format!("unknown port {}", entry.port))?;
        let lane = plan.lanes.iter().position(|l| l.priority == entry.priority);
        let lane = lane.ok_or_else(|| format!("priority {} is not in use", entry.priority))? as u8;
        let before = match (entry.flow, &entry.queue, plan.flow_control.onward_queues()) {
            (None, None, _) if entry.root.is_some() && scope == PauseScope::Root => {
                let root = entry.root.as_deref().unwrap_or_default();
                let root =
                    port(&plan.topology, &names, root).ok_or_else(|| format!("unknown port {root}"))?;
                places.by_root.insert((out, lane, root), place).unwrap_or(0)
            }
            _ if entry.root.is_some() => return Err(format!("{} does not wait for a root", entry.port)),
            (None, None, _) => {
                std::mem::replace(&mut places.shared[out as usize * 8 + usize::from(lane)], place)
            }
            (Some(flow), None, _) => places.by_flow.insert((out, lane, flow), place).unwrap_or(0),
            (None, Some(queue), Some(queues)) if lane == queues.lane() => {
                let number = ndc.number(out, queue);
                let number = number.ok_or_else(|| format!("{} has no queue `{queue}`", entry.port))?;
                places.by_queue.insert((out, number), place).unwrap_or(0)
            }
            _ => return Err(format!("{} does not wait for a queue and a flow", entry.port)),
        };
        if before > 0 {
            return Err(format!("{} is listed twice", entry.port));
        }
    }
    Ok(places)
}

/// Compares two waits; true if they are paused at all.
pub fn compare(plan: &Plan, places: &Places, from: Queue, to: Queue, flow: u32) -> Result<bool, String> {
    let scope = plan.flow_control.traits().pause_scope;
    let stops = |lane: u8| match scope {
        // Single queues and roots are compared elsewhere.
        PauseScope::Nothing | PauseScope::Onward | PauseScope::Root => false,
        PauseScope::Lane | PauseScope::Link => plan.lanes[usize::from(lane)].lossless,
        PauseScope::Queue { .. } | PauseScope::Flow => true,
    };
    if !stops(from.1) || !stops(to.1) {
        return Ok(false);
    }
    let couples = plan.flow_control.traits().couples_lanes;
    let place = |(port, lane): Queue| match scope {
        // Lossless lanes that wait for each other's packets wait as one, too.
        PauseScope::Lane if couples => {
            places.shared((port, plan.lanes.iter().position(|l| l.lossless).unwrap_or(0) as u8))
        }
        PauseScope::Flow => places.by_flow.get(&(port, lane, flow)).copied().unwrap_or(0),
        // The lossless lanes of a link wait as one, and its first one is listed.
        PauseScope::Link => {
            places.shared((port, plan.lanes.iter().position(|l| l.lossless).unwrap_or(0) as u8))
        }
        _ => places.shared((port, lane)),
    };
    in_order([place(from), place(to)], || [from, to].map(|(port, _)| plan.topology.port_name(port)))?;
    Ok(true)
}

/// Whether the first of two places is listed before the second one, which its wait may depend on.
pub fn in_order([a, b]: [u32; 2], names: impl FnOnce() -> [String; 2]) -> Result<(), String> {
    if 0 < a && a < b {
        return Ok(());
    }
    let [x, y] = names();
    Err(match (a, b) {
        (0, _) => format!("{x} may wait for {y}, but {x} is not listed"),
        (_, 0) => format!("{x} may wait for {y}, but {y} is not listed"),
        _ => format!("{x} may wait for {y}, which is listed before it"),
    })
}

/// Hosts and relays that pass pauses on: arrivals by one port wait for all others.
fn passed_on(plan: &Plan, places: &Places) -> Result<(), String> {
    for host in (0..plan.topology.nodes.len() as u32).filter(|&node| plan.passes_pauses_on(node)) {
        for &into in plan.topology.relay_ports(host) {
            for &out in plan.topology.relay_ports(host).iter().filter(|&&out| out != into) {
                for lane in 0..plan.lanes.len() as u8 {
                    let from = plan.topology.ports[into as usize].peer;
                    compare(plan, places, (from, lane), (out, lane), 0)?;
                }
            }
        }
    }
    Ok(())
}

/// Whether ACKs and congestion notifications can be paused, and the own lane of the latter.
pub fn control_lanes(plan: &Plan) -> (bool, Option<u8>) {
    let paused = !matches!(
        plan.flow_control.traits().queueing,
        Queueing::Numbered { acks: false, .. } | Queueing::PerFlow
    );
    (paused, plan.congestion_control.cnp_lane())
}

/// The routes of the flows of the requested classes, including routes after failures and routes that sources
/// may choose: the flow, and the beginnings of its data and control packets.
pub fn routes(plan: &Plan, of: &dyn Fn(u16) -> bool) -> impl Iterator<Item = (u32, u32, u32)> {
    let rerouted = plan.faults.tables.iter().flat_map(|t| &t.flows).map(|r| (r.flow, r.path, r.ack_path));
    let flows = || plan.flows.iter().zip(0..);
    let first = flows().map(|(f, id)| (id, f.path, f.ack_path));
    let labelled = plan.faults.tables.iter().flat_map(|t| &t.labels);
    let labelled =
        labelled.map(|r| (r.flow, r.path, r.ack_path.unwrap_or(plan.flows[r.flow as usize].ack_path)));
    let chosen = flows().flat_map(|(f, id)| {
        let data = plan.other_routes(id).map(move |path| (id, path, f.ack_path));
        data.chain(plan.other_ack_routes(id).map(move |ack_path| (id, f.path, ack_path)))
    });
    first.chain(rerouted).chain(labelled).chain(chosen).filter(|&(id, ..)| of(plan.flows[id as usize].class))
}

/// The positions to which packets in flight at each position change when routes change.
pub fn moves(plan: &Plan) -> BTreeMap<u32, Vec<u32>> {
    let mut moves: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for &(old, new) in plan.faults.tables.iter().flat_map(|t| &t.positions) {
        moves.entry(old).or_default().push(new);
    }
    moves
}

/// All flows of the requested classes: every place that a packet can reach by its route, by the other route
/// that its source may choose, or by a change of routes.
fn flows(plan: &Plan, places: &Places, of: &dyn Fn(u16) -> bool) -> Result<u64, String> {
    let (paused, cnp_lane) = control_lanes(plan);
    let mut compared = 0;
    let mut starts: BTreeSet<(u32, u32, u8)> = BTreeSet::new();
    for (id, path, ack_path) in routes(plan, of) {
        let flow = &plan.flows[id as usize];
        starts.insert((id, path, flow.lane));
        for lane in [Some(flow.ack_lane), cnp_lane].into_iter().flatten().filter(|_| paused) {
            starts.insert((id, ack_path, lane));
        }
    }
    let moves = moves(plan);
    let mut seen: BTreeSet<(u32, u32, u8)> = BTreeSet::new();
    let forks = matches!(plan.load_balancing, LoadBalancing::Packets(_));
    while let Some((id, at, lane)) = starts.pop_first() {
        let out = plan.hops[at as usize];
        if out >= ENDS || !(moves.is_empty() && !forks || seen.insert((id, at, lane))) {
            continue;
        }
        starts.extend(moves.get(&at).into_iter().flatten().map(|&new| (id, new, lane)));
        let (link, next) = (&plan.topology.ports[out as usize], plan.hops[at as usize + 1]);
        let inside = |port: u32| plan.topology.neighbour(port) == plan.topology.ports[port as usize].node;
        let options = plan.choices_at(next).map_or(&[] as &[u32], |choices| choices.options(next));
        let on = (next < ENDS && !inside(next)).then_some(at + 1);
        for position in options.iter().copied().chain(on) {
            let by = plan.hops[position as usize];
            let onward = plan.onward_lane(lane, link.peer, by);
            compared += u64::from(compare(plan, places, (out, lane), (by, onward), id)?);
            starts.insert((id, position, onward));
        }
    }
    Ok(compared)
}
