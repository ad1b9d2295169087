//! Load balancing beyond ECMP: where it fits, the forks of routes whose packets are
//! spread one by one, and the routes by label of flows whose senders change them.

use super::offered::{Offers, flow_key};
use super::reroute::Timeline;
use super::routes::{self, Routes, ended, segment};
use super::{Context, MEMORY};
use crate::balancing::{Choices, Labels, LoadBalancing};
use crate::error::Error;
use crate::plan::{DELIVER, ENDS, Flow, Lane, UNREACHABLE};
use crate::scenario::{LoadBalancing as Kind, TransportKind};
use std::collections::BTreeMap;
use xoff_kernel::random::mix;
use xoff_net::routing::{Route, Router, RoutingKind};
use xoff_net::topology::{NodeId, NodeKind, PortId, Topology};
use xoff_schemes::load_balancing::keys::Setting;
use xoff_schemes::load_balancing::{PacketRule, Rule, SenderRules};

/// For each label that is wanted so many are tried for one whose route begins at the flow's own port.
const TRIES: u32 = 8;

/// The rule of load balancing; `None` is ECMP. Refuses one that does not fit, and values out of range; names keys of
/// another kind than the chosen one.
pub(super) fn rule(cx: &mut Context<'_>, topology: &Topology) -> Result<Option<Rule>, Error> {
    let routing = &cx.scenario.routing;
    let kind = routing.load_balancing;
    for other in Kind::ALL.iter().filter(|other| **other != kind) {
        let why = format!("routing.load_balancing is \"{}\"", kind.name());
        cx.warn_of_table(&format!("routing.{}", other.name()), why);
    }
    if kind == Kind::Ecmp {
        return Ok(None);
    }
    let refuse = |message: String, help: &str| cx.refuse("routing.load_balancing", message, help);
    let name = kind.name();
    if routes::kind(cx, topology) == RoutingKind::Bcube {
        let message =
            format!("`{name}` is incompatible with `bcube` routing, where the source sets the route");
        return refuse(message, "write kind = \"shortest-path\" in [routing], or remove load_balancing");
    }
    if routing.ate.is_some() {
        let message = format!("`{name}` is incompatible with [routing.ate]: both choose paths");
        return refuse(message, "remove one of the two");
    }
    if let Some(message) = cx.scenario.flow_control.refuses_balancing(kind) {
        return refuse(message, "choose `ecmp`, or another flow control");
    }
    if kind.by_packet() && !routing.overrides.is_empty() {
        let message = format!(
            "`{name}` is incompatible with routing.overrides: static routes can loop, and only the source knows the path"
        );
        let help = format!("remove the overrides, or choose {}", Kind::any(|kind| !kind.by_packet()));
        return refuse(message, &help);
    }
    let transport = cx.scenario.transport.kind.traits();
    if let Some(one_port) = transport.one_port.filter(|_| kind.labels_packets()) {
        let message = format!("`{name}` is incompatible with {one_port}");
        return refuse(message, "choose another transport.kind, or another load balancing");
    }
    let layered = matches!(routes::kind(cx, topology), RoutingKind::Dragonfly | RoutingKind::DimensionOrder);
    if kind.is_non_minimal() && !layered {
        let message = format!("`{name}` needs minimal paths of groups or dimensions");
        let help = "choose the topology `dragonfly`, or `torus-2d` with routing.kind = \"dimension-order\"";
        return refuse(message, help);
    }
    let doc = cx.doc;
    let mut setting = Setting { is_written: &|key| doc.get(key).is_some(), warnings: Vec::new() };
    let rule = routing.balancing.rule(kind, &mut setting);
    cx.warnings.append(&mut setting.warnings);
    let rule = rule.map_err(|complaint| cx.located(complaint))?;
    if let Some(gap) = transport.gap.filter(|_| routing.balancing.reorders(kind)) {
        let message = format!(
            "packets of a flow are reordered under `{name}`, and {gap}: \
             transport.kind = {} accepts packets in any order",
            TransportKind::values(|traits| traits.gap.is_none())
        );
        cx.warn("routing.load_balancing", message);
    }
    Ok(rule)
}

/// What the routes of flows are laid with.
pub(super) struct Laying<'a> {
    pub(super) topology: &'a Topology,
    pub(super) offers: &'a Offers,
    pub(super) lanes: &'a [Lane],
    pub(super) timeline: &'a Timeline<'a>,
}

/// What changes of routes must know of the load balancing.
pub(super) enum Laid {
    /// Each flow has one route.
    Hashed,
    Spread(Spread),
    /// By flow and label, if any link fails: the number with which [`with_label`] makes the key of the label's routes;
    /// `None` where the label always has the routes of its flow.
    Labels(Vec<Option<u32>>),
}

/// Gives the flows, which have their routes by hash, those of the rule; where
/// their packets are spread one by one, those in every state of the network.
pub(super) fn lay(
    cx: &mut Context<'_>,
    rule: Option<Rule>,
    laying: &Laying<'_>,
    routes: &mut Routes,
    flows: &mut [Flow],
) -> Result<(LoadBalancing, Laid), Error> {
    let (balancing, laid) = match rule {
        None => return Ok((LoadBalancing::Ecmp, Laid::Hashed)),
        Some(Rule::Senders(rule)) => {
            let (balancing, numbers) = labels(cx, laying, routes, flows, rule)?;
            (balancing, Laid::Labels(numbers))
        }
        Some(Rule::Switches(rule)) => {
            let (balancing, spread) = packets(cx, laying, routes, flows, rule)?;
            (balancing, Laid::Spread(spread))
        }
    };
    let some = match &balancing {
        LoadBalancing::Ecmp => true,
        LoadBalancing::Packets(choices) => !choices.sets.is_empty(),
        LoadBalancing::Labels(labels) => labels.flows_with_choice() > 0,
    };
    if !some {
        cx.warn("routing.load_balancing", "had no effect: no flow has more than one path");
    } else if matches!(balancing, LoadBalancing::Labels(_))
        && laying.lanes.iter().all(|l| l.ecn.is_none())
        && !cx.scenario.flow_control.trims()
    {
        let message = "no packet is marked, so senders learn of congested paths only from losses: add [ecn]";
        cx.warn("routing.load_balancing", message);
    }
    Ok((balancing, laid))
}

fn too_many(cx: &Context<'_>, flows: &[Flow]) -> Error {
    let message = format!("the routes of {} flows need too much memory", flows.len());
    cx.doc.error("traffic", message, "send fewer flows, or send to fewer hosts")
}

/// Where data of flows goes whose packets are spread one by one, in a network that
/// goes through several states; see [`super::reroute`].
pub(super) struct Spread {
    /// By state and flow: where its data begins. Of flows with an explicit path: that.
    pub(super) paths: Vec<Vec<u32>>,
    /// By state: old and new positions of packets in flight when it begins.
    pub(super) positions: Vec<Vec<(u32, u32)>>,
}

/// Flows whose packets are spread one by one: data gets forks in the place of routes.
fn packets(
    cx: &Context<'_>,
    laying: &Laying<'_>,
    routes: &mut Routes,
    flows: &mut [Flow],
    rule: PacketRule,
) -> Result<(LoadBalancing, Spread), Error> {
    let &Laying { topology, offers, timeline, .. } = laying;
    let hashed = std::mem::take(&mut routes.hops);
    let routers = timeline.distinct.iter().map(|dead| routes.router.without(dead)).collect();
    let mut forks = Forks::new(topology, routes, routers, rule);
    let states = timeline.distinct.len();
    let mut spread =
        Spread { paths: vec![vec![0; flows.len()]; states], positions: vec![Vec::new(); states] };
    let copy = |hops: &mut Vec<u32>, start: u32| {
        let new = hops.len() as u32;
        hops.extend(segment(&hashed, start));
        new
    };
    let mut order: Vec<(NodeId, usize)> = flows.iter().enumerate().map(|(i, f)| (f.dst, i)).collect();
    order.sort_unstable();
    for same in order.chunk_by(|a, b| a.0 == b.0) {
        cx.go_on(0)?;
        let to = same[0].0;
        for &(_, index) in same {
            let (flow, offer) = (&flows[index], &offers.offers[index]);
            let explicit = offers.explicit.contains_key(&flow.class);
            let own = if explicit { copy(&mut forks.routes.hops, flow.path) } else { u32::MAX };
            // A host with several ports keeps to that of the hash: a queue pair belongs to one.
            let first = hashed[flow.path as usize];
            let (src, key) = (flow.src, flow_key(offer, flow.src, to));
            for (state, paths) in spread.paths.iter_mut().enumerate() {
                paths[index] = match explicit {
                    true => own,
                    false => {
                        let route = forks.routers[state].route(src, to, key);
                        forks.run(state, route.map_or(first, |route| route.ports[0]), to)
                    }
                };
            }
            let flow = &mut flows[index];
            flow.ack_path = copy(&mut forks.routes.hops, flow.ack_path);
            flow.path = spread.paths[timeline.first][index];
        }
        forks.follow(to, &mut spread.positions);
        let tables: usize = spread.positions.iter().map(Vec::len).sum();
        let held = 4 * (forks.routes.hops.len() + 2 * tables + states * flows.len()) as u64;
        if forks.routes.hops.len() > (u32::MAX / 2) as usize || held + forks.choices.memory() > MEMORY {
            return Err(too_many(cx, flows));
        }
        forks.next_destination();
    }
    Ok((LoadBalancing::Packets(forks.choices), spread))
}

struct Forks<'a> {
    topology: &'a Topology,
    routes: &'a mut Routes,
    routers: Vec<Router>,
    choices: Choices,
    /// Numbers of sets of ports.
    sets: BTreeMap<Vec<PortId>, u32>,
    /// To the present destination, by state: the position where the path from each port begins …
    runs: Vec<BTreeMap<PortId, u32>>,
    /// … and the entry of the choice at a node, and at the first switch of a packet that may take a non-minimal path.
    entries: Vec<BTreeMap<NodeId, u32>>,
    firsts: Vec<BTreeMap<NodeId, u32>>,
    /// To this destination in any state: runs by their content …
    known_runs: BTreeMap<Vec<u32>, u32>,
    /// … their starts, and entries by their positions.
    starts: Vec<u32>,
    known_entries: BTreeMap<Vec<u32>, u32>,
}

impl<'a> Forks<'a> {
    fn new(topology: &'a Topology, routes: &'a mut Routes, routers: Vec<Router>, rule: PacketRule) -> Self {
        let states = routers.len();
        Self {
            topology,
            routes,
            routers,
            choices: Choices::new(rule),
            sets: BTreeMap::new(),
            runs: vec![BTreeMap::new(); states],
            entries: vec![BTreeMap::new(); states],
            firsts: vec![BTreeMap::new(); states],
            known_runs: BTreeMap::new(),
            starts: Vec::new(),
            known_entries: BTreeMap::new(),
        }
    }

    fn next_destination(&mut self) {
        self.runs.iter_mut().for_each(BTreeMap::clear);
        self.entries.iter_mut().for_each(BTreeMap::clear);
        self.firsts.iter_mut().for_each(BTreeMap::clear);
        self.known_runs.clear();
        self.starts.clear();
        self.known_entries.clear();
    }

    /// The position from which packets to `to` continue by `port` in a state. Equal paths of several states
    /// have one position.
    fn run(&mut self, state: usize, port: PortId, to: NodeId) -> u32 {
        if let Some(&known) = self.runs[state].get(&port) {
            return known;
        }
        let mut whole = vec![port];
        let from = self.topology.ports[port as usize].node;
        let begins = self.topology.nodes[from as usize].kind == NodeKind::Host;
        let first = begins.then(|| self.first(state, self.topology.neighbour(port), to)).flatten();
        match first {
            Some(entry) => whole.push(entry),
            None => self.go_on(state, &mut whole, to),
        }
        let start = self.start(whole);
        self.runs[state].insert(port, start);
        start
    }

    /// Adds the minimal path to `to` to a path, up to its end or the next choice.
    fn go_on(&mut self, state: usize, whole: &mut Vec<u32>, to: NodeId) {
        let mut at = self.topology.neighbour(whole[whole.len() - 1]);
        let end = loop {
            if at == to {
                whole.extend(self.routes.inner.get(&to).map(|&(rx, _)| rx));
                break DELIVER;
            }
            match self.routers[state].next_hops(at, to)[..] {
                [] => break UNREACHABLE,
                [only] => {
                    whole.push(only);
                    at = self.topology.neighbour(only);
                }
                ref several => break self.fork(state, at, to, several),
            }
        };
        whole.push(end);
    }

    /// The position where this path begins.
    fn start(&mut self, whole: Vec<u32>) -> u32 {
        let hops = &mut self.routes.hops;
        *self.known_runs.entry(whole).or_insert_with_key(|whole| {
            let start = hops.len() as u32;
            hops.extend(whole);
            self.starts.push(start);
            start
        })
    }

    /// The entry of the choice at the first switch of a packet, if it may take a non-minimal path from there.
    fn first(&mut self, state: usize, at: NodeId, to: NodeId) -> Option<u32> {
        if !self.choices.rule.is_non_minimal() {
            return None;
        }
        if let Some(&known) = self.firsts[state].get(&at) {
            return Some(known);
        }
        let others = self.routers[state].non_minimal(at, to);
        if others.is_empty() {
            return None;
        }
        let mut outs = self.routers[state].next_hops(at, to);
        let mut options: Vec<u32> = outs.iter().map(|&out| self.run(state, out, to)).collect();
        let minimal = options.len();
        for mut whole in others {
            outs.push(whole[0]);
            self.go_on(state, &mut whole, to);
            options.push(self.start(whole));
        }
        let entry = self.choice(options, minimal, outs);
        self.firsts[state].insert(at, entry);
        Some(entry)
    }

    /// The entry of the choice among `outs` at `node`.
    fn fork(&mut self, state: usize, node: NodeId, to: NodeId, outs: &[PortId]) -> u32 {
        if let Some(&known) = self.entries[state].get(&node) {
            return known;
        }
        let options: Vec<u32> = outs.iter().map(|&out| self.run(state, out, to)).collect();
        let entry = self.choice(options, outs.len(), outs.to_vec());
        self.entries[state].insert(node, entry);
        entry
    }

    /// The entry of the choice among these options, of which so many are minimal and which begin at `outs`.
    fn choice(&mut self, options: Vec<u32>, minimal: usize, outs: Vec<PortId>) -> u32 {
        let new = self.sets.len() as u32;
        let set = *self.sets.entry(outs).or_insert(new);
        let (choices, hops, topology) = (&mut self.choices, &self.routes.hops, self.topology);
        *self
            .known_entries
            .entry(options)
            .or_insert_with_key(|options| choices.add(topology, hops, options, minimal, set))
    }

    /// Where packets to the destination at hand go over to when each state begins: they stay on the port that
    /// they wait at or were last sent from, and go on from its far end as the new state has it.
    fn follow(&mut self, to: NodeId, positions: &mut [Vec<(u32, u32)>]) {
        if positions.len() == 1 {
            return;
        }
        let mut next = 0;
        while let Some(&start) = self.starts.get(next) {
            next += 1;
            let run = segment(&self.routes.hops, start).to_vec();
            for (old, &port) in (start..).zip(&run).take_while(|(_, h)| **h < ENDS) {
                // An inner port of a host leads to the host itself.
                if port as usize >= self.topology.ports.len() || self.topology.neighbour(port) == to {
                    continue;
                }
                for (state, moved) in positions.iter_mut().enumerate() {
                    let new = self.run(state, port, to);
                    if segment(&self.routes.hops, old) != segment(&self.routes.hops, new) {
                        moved.push((old, new));
                    }
                }
            }
        }
    }
}

/// A hash key of a flow, for its packets with a label.
pub(super) fn with_label(key: u64, number: u32) -> u64 {
    mix(key ^ mix(u64::from(number)))
}

/// Flows whose senders label their packets: further routes, which the hash gives the flow under other keys.
fn labels(
    cx: &Context<'_>,
    &Laying { offers, timeline, .. }: &Laying<'_>,
    routes: &mut Routes,
    flows: &[Flow],
    rule: SenderRules,
) -> Result<(LoadBalancing, Vec<Option<u32>>), Error> {
    let labels = rule.labels() as usize;
    let mut starts: Vec<u32> = Vec::with_capacity(flows.len() * labels);
    let mut ack_starts: Vec<u32> = Vec::new();
    let mut numbers: Vec<Option<u32>> = Vec::new();
    for (i, (flow, offer)) in flows.iter().zip(&offers.offers).enumerate() {
        cx.go_on_at(i)?;
        let begin = starts.len();
        starts.push(flow.path);
        if rule.each_packet() {
            ack_starts.push(flow.ack_path);
        }
        let mut own_numbers = vec![None];
        let (there, back) = (flow_key(offer, flow.src, flow.dst), flow_key(offer, flow.dst, flow.src));
        let tries = if offers.explicit.contains_key(&flow.class) { 0 } else { rule.labels() * TRIES };
        for number in 1..=tries {
            if starts.len() == begin + labels {
                break;
            }
            let found = routes.router.route(flow.src, flow.dst, with_label(there, number));
            let route = found.map_err(|e| routes::unroutable(cx, usize::from(flow.class), &e))?;
            if route.ports[0] != routes.hops[flow.path as usize] {
                continue;
            }
            if rule.each_packet() {
                let found = routes.router.route(flow.dst, flow.src, with_label(back, number));
                let back = found.map_err(|e| routes::unroutable(cx, usize::from(flow.class), &e))?;
                if back.ports[0] != routes.hops[flow.ack_path as usize] {
                    continue;
                }
                let start = place(routes, &ack_starts[begin..], &back, flow.src);
                ack_starts.push(start);
            }
            let start = place(routes, &starts[begin..], &route, flow.dst);
            starts.push(start);
            own_numbers.push(Some(number));
        }
        // Ports of a host that the hash hardly ever takes: fewer labels than wanted.
        starts.resize(begin + labels, flow.path);
        if rule.each_packet() {
            ack_starts.resize(begin + labels, flow.ack_path);
        }
        if timeline.fails() {
            numbers.append(&mut own_numbers);
            numbers.resize(begin + labels, None);
        }
        let held = (4 * (routes.hops.len() + starts.len() + ack_starts.len()) + 8 * numbers.len()) as u64;
        if routes.hops.len() > (u32::MAX / 2) as usize || held > MEMORY {
            return Err(too_many(cx, flows));
        }
    }
    Ok((LoadBalancing::Labels(Labels { rule, routes: starts, ack_routes: ack_starts }), numbers))
}

/// The position of a route in the pool: one of those at `known`, or a new one.
fn place(routes: &mut Routes, known: &[u32], route: &Route, to: NodeId) -> u32 {
    let whole = ended(route.ports.clone(), route.ends, routes.inner.get(&to).map(|&(rx, _)| rx));
    if let Some(&same) = known.iter().find(|&&start| segment(&routes.hops, start) == whole) {
        return same;
    }
    let start = routes.hops.len() as u32;
    routes.hops.extend(whole);
    start
}
