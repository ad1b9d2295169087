//! Dependencies of all routes that the routing may choose between any two hosts.
//!
//! For each place that packets go to (the hosts of one switch are one place, as long as they are routed
//! alike), packets spread from all hosts over every next hop that the router may choose. The check does not
//! examine each pair of hosts, and a queue that no packet reaches depends on nothing.

use crate::graph::{Edges, Graph, Part, Wait};
use crate::routes::{FlowPaths, control_can_wait, passed_on, pausable, wait_lane};
use crate::{Halt, Watch, failures::Context, go_on};
use std::collections::{BTreeMap, BTreeSet};
use xoff_net::routing::Router;
use xoff_net::topology::{NodeId, NodeKind, PortId, Topology};
use xoff_plan::{plan::Plan, scenario::Scenario};

/// Most memory for the dependencies of all routes, in bytes.
pub(crate) const MEMORY: u64 = 4 << 30;

pub(crate) fn check_memory(what: &str, bytes: u64) -> Result<(), String> {
    if bytes <= MEMORY {
        return Ok(());
    }
    let [needed, most] = [bytes, MEMORY].map(|bytes| bytes >> 30);
    Err(format!("{what} of this network need {needed} GiB of memory; the maximum is {most} GiB"))
}

/// The progress of packets that [`Spread`] follows.
pub(crate) const FOLLOWING: &str = "following all routes";

/// Hosts that packets reach by the same ports everywhere but at their switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The node at which the paths split, or the host itself.
    pub root: NodeId,
    pub hosts: Vec<NodeId>,
}

/// All places, by their first hosts. Hosts in `apart` have their own routes; hosts without links are nowhere.
pub fn places(topology: &Topology, router: &Router, apart: &BTreeSet<NodeId>) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    let mut at: BTreeMap<NodeId, usize> = BTreeMap::new();
    for host in topology.hosts() {
        let ports = topology.nodes[host as usize].ports.iter().filter(|&&p| topology.neighbour(p) != host);
        if !ports.clone().any(|&p| router.alive(p)) {
            continue;
        }
        let mut near: Vec<NodeId> = ports.map(|&p| topology.neighbour(p)).collect();
        near.dedup();
        let shared = !apart.contains(&host) && !topology.relay_hosts;
        let root = match near[..] {
            [] => continue,
            [only] if shared && topology.nodes[only as usize].kind == NodeKind::Switch => only,
            _ => host,
        };
        let place = *at.entry(root).or_insert(places.len());
        if place == places.len() {
            places.push(Place { root, hosts: Vec::new() });
        }
        places[place].hosts.push(host);
    }
    places
}

/// Which lane of an egress port waits for which of the ports that come next, as bits.
#[derive(Clone, Debug)]
pub struct Matrix {
    lanes: usize,
    /// By port and lane: where its row begins; a bit for each port and lane of the next node.
    rows: Vec<usize>,
    bits: Vec<u64>,
}

impl Matrix {
    pub fn new(plan: &Plan) -> Result<Self, String> {
        let (topology, lanes) = (&plan.topology, plan.lanes.len());
        let mut rows = Vec::with_capacity(topology.ports.len() * lanes + 1);
        let mut words = 0u64;
        for port in 0..topology.ports.len() as PortId {
            let next = topology.nodes[topology.neighbour(port) as usize].ports.len() * lanes;
            for _ in 0..lanes {
                rows.push(words as usize);
                words += next.div_ceil(64) as u64;
            }
        }
        rows.push(words as usize);
        check_memory("all routes", words * 8)?;
        Ok(Self { lanes, rows, bits: vec![0; words as usize] })
    }

    /// Word and bit of a dependency.
    fn at(&self, topology: &Topology, from: (PortId, u8), to: (PortId, u8)) -> (usize, u32) {
        let row = self.rows[from.0 as usize * self.lanes + usize::from(from.1)];
        let bit = usize::from(topology.ports[to.0 as usize].index) * self.lanes + usize::from(to.1);
        (row + bit / 64, (bit % 64) as u32)
    }

    /// `from` may wait for `to`, a port and lane of the next node.
    pub fn set(&mut self, topology: &Topology, from: (PortId, u8), to: (PortId, u8)) {
        let (word, bit) = self.at(topology, from, to);
        self.bits[word] |= 1 << bit;
    }

    pub fn has(&self, topology: &Topology, from: (PortId, u8), to: (PortId, u8)) -> bool {
        let (word, bit) = self.at(topology, from, to);
        self.bits[word] >> bit & 1 == 1
    }

    pub fn graph(&self, topology: &Topology) -> Graph {
        let mut edges = Edges::default();
        for row in 0..self.rows.len() - 1 {
            let (port, lane) = ((row / self.lanes) as PortId, (row % self.lanes) as u8);
            let next = &topology.nodes[topology.neighbour(port) as usize].ports;
            for (i, &word) in self.bits[self.rows[row]..self.rows[row + 1]].iter().enumerate() {
                let mut left = word;
                while left != 0 {
                    let bit = i * 64 + left.trailing_zeros() as usize;
                    left &= left - 1;
                    let wait = |port, lane| Wait { port, lane, part: Part::Whole };
                    edges.add(wait(port, lane), wait(next[bit / self.lanes], (bit % self.lanes) as u8));
                }
            }
        }
        edges.graph()
    }
}

/// How packets spread towards one place.
pub struct Spread<'p> {
    plan: &'p Plan,
    lanes: Vec<u8>,
    /// By port: lanes in which packets leave by it, as bits.
    active: Vec<u8>,
    /// By port and lane: where such packets came from; its own number at their sender.
    parents: Vec<u32>,
    /// Ports and lanes that are active, in the order in which they were found.
    pub found: Vec<(PortId, u8)>,
    /// By node: where its next hops begin in `outs`; 0 if it has none yet.
    begins: Vec<u32>,
    outs: Vec<PortId>,
    asked: Vec<NodeId>,
}

impl<'p> Spread<'p> {
    /// Packets of these lanes spread through the network of `plan`.
    pub fn new(plan: &'p Plan, lanes: &[u8]) -> Self {
        let ports = plan.topology.ports.len();
        Self {
            plan,
            lanes: lanes.to_vec(),
            active: vec![0; ports],
            parents: vec![0; ports * 8],
            found: Vec::new(),
            begins: vec![0; plan.topology.nodes.len()],
            outs: vec![PortId::MAX],
            asked: Vec::new(),
        }
    }

    /// Ports by which packets to the place leave a node; none at the place itself.
    pub fn outs(&mut self, router: &mut Router, at: NodeId, place: &Place) -> std::ops::Range<usize> {
        if self.begins[at as usize] == 0 {
            self.begins[at as usize] = self.outs.len() as u32;
            self.asked.push(at);
            if at == place.root {
                self.outs.extend(place.hosts.iter().flat_map(|&host| router.next_hops(at, host)));
            } else {
                // A host of the place sends to the others of it.
                let to = place.hosts.iter().find(|&&host| host != at);
                self.outs.extend(to.map(|&to| router.next_hops(at, to)).unwrap_or_default());
            }
            self.outs.push(PortId::MAX);
        }
        let begin = self.begins[at as usize] as usize;
        let count = self.outs[begin..].iter().take_while(|&&p| p != PortId::MAX).count();
        begin..begin + count
    }

    /// A next hop by its position in the result of [`Spread::outs`].
    pub fn out(&self, i: usize) -> PortId {
        self.outs[i]
    }

    fn reach(&mut self, port: PortId, lane: u8, parent: Option<(PortId, u8)>) {
        if self.active[port as usize] >> lane & 1 == 0 {
            self.active[port as usize] |= 1 << lane;
            let (from, of) = parent.unwrap_or((port, lane));
            self.parents[port as usize * 8 + usize::from(lane)] = from * 8 + u32::from(of);
            self.found.push((port, lane));
        }
    }

    fn clear(&mut self) {
        self.found.drain(..).for_each(|(port, _)| self.active[port as usize] = 0);
        self.asked.drain(..).for_each(|node| self.begins[node as usize] = 0);
        self.outs.truncate(1);
    }

    /// Packets that have left a host by `port` in `lane` take the non-minimal paths of their first switch up to the
    /// turning points.
    fn turn_aside(
        &mut self,
        router: &mut Router,
        place: &Place,
        (port, lane): (PortId, u8),
        visit: &mut impl FnMut((PortId, u8), (PortId, u8)),
    ) {
        let topology = &self.plan.topology;
        let at = topology.neighbour(port);
        let to = place.hosts.iter().find(|&&host| host != topology.ports[port as usize].node);
        let Some(&to) = to.filter(|_| topology.nodes[at as usize].kind == NodeKind::Switch) else { return };
        for path in router.non_minimal(at, to) {
            let mut from = (port, lane);
            for (&out, left) in path.iter().zip((0..path.len()).rev()) {
                let onward = self.plan.onward_lane(from.1, topology.ports[from.0 as usize].peer, out);
                visit(from, (out, onward));
                if left == 0 {
                    self.reach(out, onward, Some(from));
                } else if self.active[out as usize] >> onward & 1 == 0 {
                    // Only the path itself goes on from here.
                    self.parents[out as usize * 8 + usize::from(onward)] = from.0 * 8 + u32::from(from.1);
                }
                from = (out, onward);
            }
        }
    }

    /// Spreads packets to a place from all hosts, and from the far ends of the ports in `under_way`. Calls
    /// `visit` for each step, several times if several packets take it.
    pub fn spread(
        &mut self,
        router: &mut Router,
        place: &Place,
        under_way: &[(PortId, u8)],
        visit: &mut impl FnMut((PortId, u8), (PortId, u8)),
    ) {
        self.clear();
        let topology = &self.plan.topology;
        let lone = (place.hosts.len() == 1).then_some(place.hosts[0]);
        for host in topology.hosts().filter(|&h| Some(h) != lone) {
            for i in self.outs(router, host, place) {
                for lane in 0..self.lanes.len() {
                    self.reach(self.outs[i], self.lanes[lane], None);
                }
            }
        }
        under_way.iter().for_each(|&(port, lane)| self.reach(port, lane, None));
        let mut next = 0;
        while let Some(&(port, lane)) = self.found.get(next) {
            next += 1;
            let (from, at) = (topology.ports[port as usize].node, topology.neighbour(port));
            if place.hosts.binary_search(&at).is_ok() {
                continue;
            }
            if self.plan.is_non_minimal() && topology.nodes[from as usize].kind == NodeKind::Host {
                self.turn_aside(router, place, (port, lane), visit);
            }
            for i in self.outs(router, at, place) {
                let out = self.outs[i];
                // No host sends to itself.
                if topology.neighbour(out) == from && place.hosts.binary_search(&from).is_ok() {
                    continue;
                }
                let onward = self.plan.onward_lane(lane, topology.ports[port as usize].peer, out);
                visit((port, lane), (out, onward));
                self.reach(out, onward, Some((port, lane)));
            }
        }
    }

    /// The next hops of each device that packets to the place cross, if it has any.
    pub fn next_hops(&self) -> impl Iterator<Item = &[PortId]> + '_ {
        self.asked.iter().filter_map(|&node| {
            let outs = &self.outs[self.begins[node as usize] as usize..];
            let end = outs.iter().position(|&port| port == PortId::MAX).unwrap_or(outs.len());
            (end > 0).then(|| &outs[..end])
        })
    }

    /// The ports of a path on which packets reach `port` in `lane` within `ttl` links, and the lane in which they begin.
    pub fn path_to(&self, port: PortId, lane: u8, ttl: usize) -> (Vec<PortId>, u8) {
        let mut ports = vec![port];
        let mut at = (port, lane);
        loop {
            let parent = self.parents[at.0 as usize * 8 + usize::from(at.1)];
            let parent = (parent / 8, (parent % 8) as u8);
            // A path over a turning point may be put together from two, which may come back.
            if parent == at || ports.len() > ttl {
                ports.reverse();
                return (ports, at.1);
            }
            ports.push(parent.0);
            at = parent;
        }
    }
}

/// The lanes in which packets of the scenario begin; if it has no flows, all lanes that can be paused.
pub fn lanes(plan: &Plan) -> Vec<u8> {
    let mut lanes: BTreeSet<u8> = plan.flows.iter().flat_map(|f| [f.lane, f.ack_lane]).collect();
    if lanes.is_empty() {
        lanes.extend(0..plan.lanes.len() as u8);
    }
    lanes.extend(plan.congestion_control.cnp_lane().filter(|_| control_can_wait(plan)));
    let pausable = lanes.into_iter().filter(|&lane| pausable(plan, lane));
    let mut lanes: Vec<u8> = pausable.map(|lane| wait_lane(plan, lane)).collect();
    lanes.dedup();
    lanes
}

/// Hosts to which static routes lead.
pub fn apart(scenario: &Scenario, topology: &Topology) -> BTreeSet<NodeId> {
    scenario.routing.overrides.iter().filter_map(|o| topology.find(&o.to)).collect()
}

/// The flows with explicit paths, which are no choice of the routing.
pub fn explicit(scenario: &Scenario, plan: &Plan) -> Vec<u32> {
    let own = |class: u16| scenario.traffic[usize::from(class)].has_paths();
    plan.flows.iter().zip(0..).filter(|(f, _)| own(f.class)).map(|(_, id)| id).collect()
}

/// The dependencies of all routes, and of the flows with explicit paths.
pub fn matrix(plan: &Plan, router: &mut Router, cx: &Context<'_>, watch: Watch<'_>) -> Result<Matrix, Halt> {
    let mut matrix = Matrix::new(plan)?;
    for (from, to) in passed_on(plan) {
        matrix.set(&plan.topology, (from.port, from.lane), (to.port, to.lane));
    }
    let paths = FlowPaths::new(plan);
    for &flow in cx.explicit {
        paths.steps(flow, &mut |_, (from, to)| {
            if pausable(plan, from.1) && pausable(plan, to.1) {
                matrix.set(&plan.topology, from, to);
            }
        });
    }
    let mut spread = Spread::new(plan, &lanes(plan));
    let stops: Vec<bool> = (0..plan.lanes.len() as u8).map(|lane| pausable(plan, lane)).collect();
    for (done, place) in cx.places.iter().enumerate() {
        go_on(watch, FOLLOWING, done, cx.places.len())?;
        spread.spread(router, place, &[], &mut |from, to| {
            if stops[usize::from(from.1)] && stops[usize::from(to.1)] {
                matrix.set(&plan.topology, from, to);
            }
        });
    }
    Ok(matrix)
}
