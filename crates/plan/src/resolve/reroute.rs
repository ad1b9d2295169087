//! How routes follow failures.
//!
//! The network goes through *states*, each a set of links that are down. At each change of routes a flow's
//! sender changes to its route in the new state. A packet in flight keeps the port where it waits or which
//! sent it last, and continues from that port's far end by the new state. So every position on every segment
//! of route where a packet of the flow may be has a new position, whose segment begins with the same port.
//! Segments are shared: the new one is often the tail of an existing one, and a network that changes between
//! two states soon needs no new ones.

use super::balancing::{Laid, Spread, with_label};
use super::faults::Faults;
use super::offered::{Offers, flow_key};
use super::routes::{Routes, ended, segment};
use super::transport::retries;
use super::{Context, MEMORY};
use crate::balancing::{Labels, LoadBalancing};
use crate::error::Error;
use crate::plan::{self, DELIVER, ENDS, FRAME_CORRUPTED, FRAME_LOST, Flow, FlowRoute, LINK_DOWN, LabelRoute};
use crate::plan::{Reroute, Rerouting, UNREACHABLE};
use std::collections::{BTreeMap, BTreeSet};
use xoff_kernel::time::Time;
use xoff_net::routing::{Ends, Router};
use xoff_net::topology::{NodeId, PortId, Topology};

/// The path of a flow's packets, or of its ACKs, and all its segments on which a packet may be.
struct Path {
    flow: u32,
    from: NodeId,
    to: NodeId,
    /// Of the flow's hash, in this direction.
    key: u64,
    /// If it is the reverse of the other direction: that one's key.
    mirrors: Option<u64>,
    /// First port of the intact route, where packets without a route leave.
    first: PortId,
    /// Starts in the pool of routes; none if that is laid elsewhere.
    segments: Vec<u32>,
}

/// A label whose routes a state changes: the path of data, and that of answers if they have labels.
struct Label {
    number: u32,
    paths: Vec<LabelPath>,
}

struct LabelPath {
    path: Path,
    /// Of the flow's hash.
    flow_key: u64,
}

/// The paths that any state changes.
struct Changing {
    /// For each flow the path of its data and that of its ACKs.
    pairs: Vec<Path>,
    /// The further labels of flows, where senders label their packets.
    labels: Vec<Label>,
    labelled: bool,
    answers_labelled: bool,
}

/// The states, the times when routes follow them, and the paths that they change.
struct Rerouter<'a> {
    topology: &'a Topology,
    mirrored: bool,
    inner: BTreeMap<NodeId, PortId>,
    routers: Vec<Router>,
    hops: &'a mut Vec<u32>,
    /// Data whose packets are spread one by one has been laid.
    spread: Option<Spread>,
}

/// The states that the network goes through, as routes follow them.
pub(super) struct Timeline<'f> {
    faults: &'f Faults,
    /// The links that are down in each state, at least one.
    pub(super) distinct: Vec<BTreeSet<PortId>>,
    /// The state at time 0.
    pub(super) first: usize,
    /// When routes change, in order, and to which state.
    changes: Vec<(Time, usize)>,
}

impl Timeline<'_> {
    /// Whether any link is ever down.
    pub(super) fn fails(&self) -> bool {
        !self.faults.down.is_empty()
    }
}

/// The states of a network with these faults.
pub(super) fn timeline(faults: &Faults, end: Option<Time>) -> Timeline<'_> {
    let mut distinct: Vec<BTreeSet<PortId>> = Vec::new();
    let mut timeline: Vec<(Time, usize)> = Vec::new();
    for (at, dead) in states(faults) {
        let state = distinct.iter().position(|d| *d == dead).unwrap_or_else(|| {
            distinct.push(dead);
            distinct.len() - 1
        });
        let at = if at == 0 { 0 } else { at.saturating_add(faults.reconvergence) };
        if timeline.last().is_none_or(|last| last.1 != state) && end.is_none_or(|end| at < end) {
            timeline.push((at, state));
        }
    }
    Timeline { faults, distinct, first: timeline[0].1, changes: timeline[1..].to_vec() }
}

/// Changes of state: times in order, the first at 0, and the links that routes avoid from then on.
fn states(faults: &Faults) -> Vec<(Time, BTreeSet<PortId>)> {
    let mut changes: BTreeMap<Time, Vec<(PortId, bool)>> = BTreeMap::from([(0, Vec::new())]);
    for down in &faults.avoided {
        for &(from, until) in &down.spans {
            changes.entry(from).or_default().push((down.port, true));
            if until < Time::MAX {
                changes.entry(until).or_default().push((down.port, false));
            }
        }
    }
    let mut dead = BTreeSet::new();
    changes
        .into_iter()
        .map(|(at, ports)| {
            for (port, fails) in ports {
                if fails {
                    dead.insert(port)
                } else {
                    dead.remove(&port)
                };
            }
            (at, dead.clone())
        })
        .collect()
}

/// Routes `flows` around the links that are down at time 0, and computes every later change of routes. New
/// routes are added to those of `routes`.
pub(super) fn plan(
    cx: &Context<'_>,
    topology: &Topology,
    routes: &mut Routes,
    offers: &Offers,
    flows: &mut [Flow],
    timeline: &Timeline<'_>,
    (laid, balancing): (Laid, &mut LoadBalancing),
) -> Result<plan::Faults, Error> {
    let faults = timeline.faults;
    let fates = routes.hops.len() as u32;
    routes.hops.extend([LINK_DOWN, FRAME_LOST, FRAME_CORRUPTED]);
    let mut out = plan::Faults {
        down: faults.down.clone(),
        losses: faults.losses.clone(),
        fates,
        ..Default::default()
    };
    // Without buffers the schedulers choose the paths, because they detect the failed links.
    if !timeline.fails() || cx.scenario.topology.is_bufferless() {
        return Ok(out);
    }
    let (distinct, changes) = (&timeline.distinct, &timeline.changes);
    let end_state = changes.last().map_or(timeline.first, |change| change.1);
    let last = distinct[end_state].clone();
    check_memory(cx, topology, distinct.len())?;
    let (spread, numbers) = match laid {
        Laid::Hashed => (None, Vec::new()),
        Laid::Spread(spread) => (Some(spread), Vec::new()),
        Laid::Labels(numbers) => (None, numbers),
    };
    let mut rerouter = Rerouter {
        topology,
        mirrored: routes.mirrored,
        inner: routes.inner.iter().map(|(&host, &(rx, _))| (host, rx)).collect(),
        routers: distinct.iter().map(|dead| routes.router.without(dead)).collect(),
        hops: &mut routes.hops,
        spread,
    };
    let mut changing =
        rerouter.collect_changing_paths(cx, offers, flows, timeline.first, (numbers, balancing))?;
    // The same table serves whenever the same state comes after the same segments.
    let mut made: BTreeMap<(usize, usize), u32> = BTreeMap::new();
    for &(at, state) in changes {
        let before = rerouter.hops.len();
        let table = match made.get(&(state, before)) {
            Some(&table) => table,
            None => {
                out.tables.push(rerouter.table(&mut changing, state));
                let table = (out.tables.len() - 1) as u32;
                if rerouter.hops.len() == before {
                    made.insert((state, before), table);
                }
                table
            }
        };
        let held: usize =
            out.tables.iter().map(|t| t.positions.len() + 2 * (t.flows.len() + t.labels.len())).sum();
        if rerouter.hops.len() > (u32::MAX / 2) as usize || held as u64 * 8 > MEMORY {
            return Err(too_many(cx, flows.len()));
        }
        out.reroutes.push(Reroute { at, table });
    }
    let cut = rerouter.cut_off(offers, flows, &changing.pairs, end_state, &last);
    if cut > 0 && cx.scenario.run.duration.is_none() && !retries::end_flows(cx) {
        let message = format!(
            "the run might never end: the failures cut off {cut} of {} flows permanently",
            flows.len()
        );
        let help = "add run.duration, or `until` to the failure";
        return Err(cx.doc.error("failure", message, help).with_key("run.duration"));
    }
    Ok(out)
}

fn too_many(cx: &Context<'_>, flows: usize) -> Error {
    let message = format!("the routes of {flows} flows around the failures need too much memory");
    cx.doc.error("failure", message, "send fewer flows, or write fewer failures")
}

/// Each state has tables of distances of its own.
fn check_memory(cx: &Context<'_>, topology: &Topology, states: usize) -> Result<(), Error> {
    let ports = topology.ports.len() as u64;
    let places = topology.hosts().count().min(topology.nodes.len()) as u64;
    let each = ports * 9 + places.min(ports) * 8;
    let what = format_args!("{states} combinations of failed links");
    cx.fits("failure", each.saturating_mul(states as u64), what, "write fewer failures")
}

impl Rerouter<'_> {
    /// Returns the paths that any state changes; `flows` and labels get their routes of state `first`.
    fn collect_changing_paths(
        &mut self,
        cx: &Context<'_>,
        offers: &Offers,
        flows: &mut [Flow],
        first: usize,
        (numbers, balancing): (Vec<Option<u32>>, &mut LoadBalancing),
    ) -> Result<Changing, Error> {
        let (mut pairs, mut labels) = (Vec::new(), Vec::new());
        let all = flows.len();
        for (index, (flow, offer)) in flows.iter_mut().zip(&offers.offers).enumerate() {
            cx.go_on_at(index)?;
            if offers.explicit.contains_key(&flow.class) {
                continue;
            }
            let (there, back) = (flow_key(offer, flow.src, flow.dst), flow_key(offer, flow.dst, flow.src));
            let new_path = |from, to, key, mirrors, start: u32| Path {
                flow: index as u32,
                from,
                to,
                key,
                mirrors,
                first: self.hops[start as usize],
                segments: vec![start],
            };
            let pair = [
                new_path(flow.src, flow.dst, there, None, flow.path),
                new_path(flow.dst, flow.src, back, self.mirrored.then_some(there), flow.ack_path),
            ];
            let changes = |path: &Path, this: &mut Self| {
                (0..this.routers.len()).any(|state| this.whole(path, state) != this.segment(path.segments[0]))
            };
            let laid = self.spread.as_ref().map(|spread| spread.paths[first][index]);
            let pair_changes = [laid.is_some() || changes(&pair[0], self), changes(&pair[1], self)];
            let known = labels.len();
            if let LoadBalancing::Labels(of) = &mut *balancing {
                self.collect_labels(of, &numbers, first, (&pair, pair_changes), &mut labels);
                let each = size_of::<Label>() + 2 * size_of::<LabelPath>();
                if (labels.len() * each + 4 * self.hops.len()) as u64 > MEMORY {
                    return Err(too_many(cx, all));
                }
            }
            if pair_changes == [false; 2] && labels.len() == known {
                continue;
            }
            for (mut path, start) in pair.into_iter().zip([&mut flow.path, &mut flow.ack_path]) {
                if let Some(laid) = laid.filter(|_| path.from == flow.src) {
                    *start = laid;
                    path.segments.clear();
                    pairs.push(path);
                    continue;
                }
                let whole = self.whole(&path, first);
                *start = self.place(&mut path, &whole);
                // No packet is ever on the intact route if a failure breaks it from the start.
                path.segments = vec![*start];
                pairs.push(path);
            }
            if let LoadBalancing::Labels(of) = &mut *balancing {
                let entry = index * of.rule.labels() as usize;
                of.routes[entry] = flow.path;
                if let Some(start) = of.ack_routes.get_mut(entry) {
                    *start = flow.ack_path;
                }
            }
        }
        let (labelled, answers_labelled) = match balancing {
            LoadBalancing::Labels(labels) => (true, !labels.ack_routes.is_empty()),
            _ => (false, false),
        };
        Ok(Changing { pairs, labels, labelled, answers_labelled })
    }

    /// Adds the labels of a flow, which has these two paths, whose routes change in any state. They get their
    /// routes of state `first`. They share no segment, because packets in flight follow the hash of their label.
    fn collect_labels(
        &mut self,
        labels: &mut Labels,
        numbers: &[Option<u32>],
        first: usize,
        (pair, pair_changes): (&[Path; 2], [bool; 2]),
        out: &mut Vec<Label>,
    ) {
        let (count, states) = (labels.rule.labels(), self.routers.len());
        let mut routes = [Some(&mut labels.routes), Some(&mut labels.ack_routes).filter(|r| !r.is_empty())];
        for label in 1..count {
            let entry = pair[0].flow as usize * count as usize + label as usize;
            let number = numbers[entry];
            let mut starts: Vec<&mut u32> = routes.iter_mut().flatten().map(|r| &mut r[entry]).collect();
            let new_path = |of: &Path| {
                let key = number.map_or(of.key, |number| with_label(of.key, number));
                LabelPath { path: Path { key, segments: Vec::new(), ..*of }, flow_key: of.key }
            };
            let mut paths: Vec<LabelPath> = pair.iter().take(starts.len()).map(new_path).collect();
            let changes = (0..paths.len()).any(|i| {
                // Without a number it has the route of the flow in each state.
                let shared = pair_changes[i] && (number.is_none() || *starts[i] == pair[i].segments[0]);
                let differs = |state| self.whole_of_label(&paths[i], state) != segment(self.hops, *starts[i]);
                shared || number.is_some() && (0..states).any(differs)
            });
            if changes {
                for (path, start) in paths.iter_mut().zip(&mut starts) {
                    **start = self.lay(path, first);
                }
                out.push(Label { number: label, paths });
            }
        }
    }

    /// The position of the route of a label in a state.
    fn lay(&mut self, label: &mut LabelPath, state: usize) -> u32 {
        let whole = self.whole_of_label(label, state);
        self.place(&mut label.path, &whole)
    }

    /// The route of a label in a state: that of its flow, where the hash would lead it out of another port of its host.
    fn whole_of_label(&mut self, label: &LabelPath, state: usize) -> Vec<u32> {
        let path = &label.path;
        let own = self.whole(path, state);
        if self.topology.nodes[path.from as usize].ports.len() == 1 {
            return own;
        }
        let of_flow = self.whole(&Path { key: label.flow_key, segments: Vec::new(), ..*path }, state);
        if own[0] == of_flow[0] { own } else { of_flow }
    }

    /// The route of a path in a state, with its end.
    fn whole(&mut self, path: &Path, state: usize) -> Vec<u32> {
        let found = match path.mirrors {
            None => self.onward(path, state, path.from),
            Some(key) => {
                let router = &mut self.routers[state];
                let other = router.route(path.to, path.from, key).ok();
                match other.and_then(|route| router.reverse(&route)) {
                    Some(route) => self.ended(route.ports, Ends::Deliver, path.to),
                    None => self.onward(path, state, path.from),
                }
            }
        };
        if found == [UNREACHABLE] { vec![path.first, UNREACHABLE] } else { found }
    }

    /// The further path from a node in a state.
    fn onward(&mut self, path: &Path, state: usize, at: NodeId) -> Vec<u32> {
        if at == path.to {
            return self.ended(Vec::new(), Ends::Deliver, path.to);
        }
        match self.routers[state].route(at, path.to, path.key) {
            Ok(route) => self.ended(route.ports, route.ends, path.to),
            Err(_) => vec![UNREACHABLE],
        }
    }

    fn ended(&self, ports: Vec<PortId>, ends: Ends, to: NodeId) -> Vec<u32> {
        ended(ports, ends, self.inner.get(&to).copied())
    }

    fn segment(&self, start: u32) -> &[u32] {
        segment(self.hops, start)
    }

    /// The position of `route` in the pool: as the tail of a segment of the path, or as a new one.
    fn place(&mut self, path: &mut Path, route: &[u32]) -> u32 {
        for &start in &path.segments {
            let segment = self.segment(start);
            if segment.ends_with(route) {
                return start + (segment.len() - route.len()) as u32;
            }
        }
        let start = self.hops.len() as u32;
        self.hops.extend(route);
        path.segments.push(start);
        start
    }

    /// The effect of the change to a state on all paths.
    fn table(&mut self, changing: &mut Changing, state: usize) -> Rerouting {
        let mut table = Rerouting::default();
        for Label { number, paths } in &mut changing.labels {
            let starts: Vec<u32> = paths.iter_mut().map(|path| self.lay(path, state)).collect();
            let (flow, label) = (paths[0].path.flow, *number);
            table.labels.push(LabelRoute { flow, label, path: starts[0], ack_path: starts.get(1).copied() });
            for LabelPath { path, .. } in paths {
                self.move_packets(path, state, &mut table.positions);
            }
        }
        for pair in changing.pairs.chunks_exact_mut(2) {
            let starts = [0, 1].map(|i| {
                if let (0, Some(spread)) = (i, &self.spread) {
                    return spread.paths[state][pair[0].flow as usize];
                }
                let whole = self.whole(&pair[i], state);
                self.place(&mut pair[i], &whole)
            });
            let flow = pair[0].flow;
            table.flows.push(FlowRoute { flow, path: starts[0], ack_path: starts[1] });
            if changing.labelled {
                let ack_path = changing.answers_labelled.then_some(starts[1]);
                table.labels.push(LabelRoute { flow, label: 0, path: starts[0], ack_path });
            }
            pair.iter_mut().for_each(|path| self.move_packets(path, state, &mut table.positions));
        }
        if let Some(spread) = &self.spread {
            table.positions.extend(&spread.positions[state]);
        }
        table.positions.sort_unstable();
        table.labels.sort_unstable();
        table
    }

    /// Adds the new positions of packets in flight on a path.
    fn move_packets(&mut self, path: &mut Path, state: usize, positions: &mut Vec<(u32, u32)>) {
        for start in path.segments.clone() {
            let segment = self.segment(start).to_vec();
            for (i, &port) in segment.iter().enumerate().take_while(|(_, h)| **h < ENDS) {
                let new = self.moved(path, state, port, &segment[i + 1..]);
                let Some(new) = new else { continue };
                let (old, new) = (start + i as u32, self.place(path, &new));
                if old != new {
                    positions.push((old, new));
                }
            }
        }
    }

    /// The new path of a packet at or after `port`, which had `rest` before it; `None` if it does not change.
    fn moved(&mut self, path: &Path, state: usize, port: PortId, rest: &[u32]) -> Option<Vec<u32>> {
        // An inner port of a host leads to the host itself.
        let inner = port as usize >= self.topology.ports.len();
        if inner || self.topology.neighbour(port) == path.to {
            return None;
        }
        // Where the source chooses the route, it remains while its links are up.
        let outer = rest.iter().filter(|&&h| (h as usize) < self.topology.ports.len());
        if self.mirrored
            && rest.last() == Some(&DELIVER)
            && outer.clone().all(|&h| self.routers[state].alive(h))
        {
            return None;
        }
        let mut new = vec![port];
        new.extend(self.onward(path, state, self.topology.neighbour(port)));
        Some(new)
    }

    /// How many flows never complete if the last state holds for ever.
    fn cut_off(
        &mut self,
        offers: &Offers,
        flows: &[Flow],
        paths: &[Path],
        state: usize,
        dead: &BTreeSet<PortId>,
    ) -> usize {
        let mut cut: BTreeSet<u32> = BTreeSet::new();
        for path in paths {
            if self.whole(path, state).last() != Some(&DELIVER) {
                cut.insert(path.flow);
            }
        }
        for (index, flow) in flows.iter().enumerate() {
            let explicit = offers.explicit.contains_key(&flow.class);
            if explicit && self.segment(flow.path).iter().any(|h| dead.contains(h)) {
                cut.insert(index as u32);
            }
        }
        cut.len()
    }
}
