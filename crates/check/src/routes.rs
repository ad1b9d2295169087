//! Dependencies of the routes that a plan's flows take, in every epoch between changes of routes, and of
//! packets that are in flight when routes change.

use crate::graph::{Edges, Graph, Part, Wait};
use crate::{Halt, Watch, go_on};
use std::collections::{BTreeMap, BTreeSet};
use xoff_net::topology::PortId;
use xoff_plan::balancing::LoadBalancing;
use xoff_plan::plan::{ENDS, Plan};
use xoff_schemes::flow_control::{PauseScope, Queueing};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Data,
    /// Acknowledgements and congestion notifications.
    #[serde(rename = "answers")]
    Control,
}

pub fn pausable(plan: &Plan, lane: u8) -> bool {
    match plan.flow_control.traits().pause_scope {
        PauseScope::Nothing => false,
        // Under pauses by onward port the lane of data, but for some of its queues.
        PauseScope::Lane | PauseScope::Link | PauseScope::Onward => plan.lanes[usize::from(lane)].lossless,
        PauseScope::Queue { .. } | PauseScope::Flow | PauseScope::Root => true,
    }
}

/// The lane of the waits in `lane`: where a pause stops the whole link, its lossless lanes wait as one, and so do
/// they where one may wait for packets of another.
pub fn wait_lane(plan: &Plan, lane: u8) -> u8 {
    let traits = plan.flow_control.traits();
    match traits.pause_scope == PauseScope::Link || traits.couples_lanes {
        true if pausable(plan, lane) => {
            plan.lanes.iter().position(|l| l.lossless).map_or(lane, |first| first as u8)
        }
        _ => lane,
    }
}

/// Whether acknowledgements lie in queues that can be paused.
pub fn control_can_wait(plan: &Plan) -> bool {
    matches!(plan.flow_control.traits().queueing, Queueing::PerLane | Queueing::Numbered { acks: true, .. })
}

/// Whether a port belongs to the inside of a slow receiver. Packets there are read sooner or later (a stall
/// has an end), so no queue waits for it permanently.
pub fn inner(plan: &Plan, port: PortId) -> bool {
    plan.topology.neighbour(port) == plan.topology.ports[port as usize].node
}

/// A packet left port `from.0` in lane `from.1`, and leaves the next device by `to`.
pub type Step = ((PortId, u8), (PortId, u8));

/// Where the flows of a plan go, in all epochs together.
pub struct FlowPaths<'p> {
    plan: &'p Plan,
    /// Further routes of flows, data and control: after failures, and those that their sources may choose.
    pub later: BTreeMap<u32, [Vec<u32>; 2]>,
    /// The position to which a packet in flight changes: old and new positions, ordered.
    moves: Vec<(u32, u32)>,
    control_waits: bool,
    cnp_lane: Option<u8>,
}

impl<'p> FlowPaths<'p> {
    pub fn new(plan: &'p Plan) -> Self {
        let mut later: BTreeMap<u32, [Vec<u32>; 2]> = BTreeMap::new();
        for (flow, path) in plan.faults.later_routes() {
            later.entry(flow).or_default()[0].push(path);
        }
        for (flow, path) in plan.faults.later_ack_routes() {
            later.entry(flow).or_default()[1].push(path);
        }
        for flow in 0..plan.flows.len() as u32 {
            for other in plan.other_routes(flow) {
                later.entry(flow).or_default()[0].push(other);
            }
            for other in plan.other_ack_routes(flow) {
                later.entry(flow).or_default()[1].push(other);
            }
        }
        let mut moves: Vec<_> =
            plan.faults.tables.iter().flat_map(|table| &table.positions).copied().collect();
        moves.sort_unstable();
        moves.dedup();
        let cnp_lane = plan.congestion_control.cnp_lane();
        Self { plan, later, moves, control_waits: control_can_wait(plan), cnp_lane }
    }

    /// The positions to which a packet in flight at a position changes.
    pub fn moved(&self, at: u32) -> impl Iterator<Item = u32> + '_ {
        let begin = self.moves.partition_point(|&(old, _)| old < at);
        self.moves[begin..].iter().take_while(move |&&(old, _)| old == at).map(|&(_, new)| new)
    }

    /// Shows `visit` every step that packets of a flow take.
    pub fn steps(&self, flow: u32, visit: &mut impl FnMut(Kind, Step)) {
        let f = &self.plan.flows[flow as usize];
        let none = [Vec::new(), Vec::new()];
        let later = self.later.get(&flow).unwrap_or(&none);
        self.follow(f.path, &later[0], f.lane, &mut |step| visit(Kind::Data, step));
        if self.control_waits {
            let lanes = [Some(f.ack_lane), self.cnp_lane.filter(|&l| l != f.ack_lane)];
            for lane in lanes.into_iter().flatten() {
                self.follow(f.ack_path, &later[1], lane, &mut |step| visit(Kind::Control, step));
            }
        }
    }

    /// Shows `visit` every position at which data of a flow may wait, and whether the flow begins there.
    pub fn positions(&self, flow: u32, visit: &mut impl FnMut(u32, bool)) {
        let mut starts = vec![self.plan.flows[flow as usize].path];
        starts.extend(self.later.get(&flow).into_iter().flat_map(|[data, _]| data));
        let (mut next, mut seen) = (starts.clone(), BTreeSet::new());
        while let Some(at) = next.pop() {
            let port = self.plan.hops[at as usize];
            if let Some(choices) = self.plan.choices_at(port) {
                next.extend(choices.options(port));
                continue;
            }
            if port >= ENDS || inner(self.plan, port) || !seen.insert(at) {
                continue;
            }
            visit(at, starts.contains(&at));
            next.extend(self.moved(at));
            next.push(at + 1);
        }
    }

    /// Where the routes of a flow begin, with lanes: of data, and of control packets that can be paused.
    pub fn starts(&self, flow: u32) -> Vec<(u32, u8)> {
        let f = &self.plan.flows[flow as usize];
        let none = [Vec::new(), Vec::new()];
        let [data, ack_paths] = self.later.get(&flow).unwrap_or(&none);
        let mut starts: Vec<(u32, u8)> = data.iter().chain([&f.path]).map(|&at| (at, f.lane)).collect();
        for lane in [Some(f.ack_lane), self.cnp_lane].into_iter().flatten().filter(|_| self.control_waits) {
            starts.extend(ack_paths.iter().chain([&f.ack_path]).map(|&at| (at, lane)));
        }
        starts.sort_unstable();
        starts.dedup();
        starts
    }

    /// Whether packets may go over from one route to another.
    pub fn changes(&self) -> bool {
        !self.moves.is_empty()
    }

    /// All positions that a packet at `start` may come to; `start` among them if `whole`.
    pub fn reached(&self, start: u32, whole: bool) -> BTreeSet<u32> {
        let mut seen: BTreeSet<u32> = BTreeSet::new();
        let mut next = vec![start];
        while let Some(at) = next.pop() {
            if self.plan.hops[at as usize] < ENDS && seen.insert(at) {
                next.extend(self.moved(at));
                next.push(at + 1);
            }
        }
        if !whole {
            seen.remove(&start);
        }
        seen
    }

    /// Follows one kind of packet of a flow from each of its routes' starts.
    fn follow(&self, first: u32, later: &[u32], lane: u8, visit: &mut impl FnMut(Step)) {
        let forks = matches!(self.plan.load_balancing, LoadBalancing::Packets(_));
        if later.is_empty() && self.moves.is_empty() && !forks {
            let mut place = (first, lane);
            while let Some(next) = self.step(place, visit) {
                place = next;
            }
            return;
        }
        // A place is a position and the lane in which the packet left, or waits, there.
        let mut places: Vec<(u32, u8)> = later.iter().chain([&first]).map(|&start| (start, lane)).collect();
        let mut seen: BTreeSet<(u32, u8)> = BTreeSet::new();
        while let Some(place) = places.pop() {
            if !seen.insert(place) {
                continue;
            }
            places.extend(self.step(place, visit));
            if forks {
                self.fork(place, visit, &mut places);
            }
            places.extend(self.moved(place.0).map(|new| (new, place.1)));
        }
    }

    /// One step on from a place; `None` where the route ends.
    fn step(&self, (position, lane): (u32, u8), visit: &mut impl FnMut(Step)) -> Option<(u32, u8)> {
        let [from, to] = [position, position + 1].map(|p| self.plan.hops.get(p as usize).copied());
        let (from, to) = (from?, to?);
        if from >= ENDS || to >= ENDS || inner(self.plan, to) {
            return None;
        }
        let ingress = self.plan.topology.ports[from as usize].peer;
        let onward = self.plan.onward_lane(lane, ingress, to);
        visit(((from, wait_lane(self.plan, lane)), (to, wait_lane(self.plan, onward))));
        Some((position + 1, onward))
    }

    /// The steps from a place after which the device chooses.
    fn fork(&self, (position, lane): (u32, u8), visit: &mut impl FnMut(Step), next: &mut Vec<(u32, u8)>) {
        let [from, entry] = [position, position + 1].map(|p| self.plan.hops[p as usize]);
        let Some(choices) = self.plan.choices_at(entry) else { return };
        let ingress = self.plan.topology.ports[from as usize].peer;
        for &option in choices.options(entry) {
            let to = self.plan.hops[option as usize];
            let onward = self.plan.onward_lane(lane, ingress, to);
            visit(((from, wait_lane(self.plan, lane)), (to, wait_lane(self.plan, onward))));
            next.push((option, onward));
        }
    }
}

/// The waits of a step of a flow, if both can be paused. Not for pauses by onward port, where no single step
/// determines them: see [`crate::onward`].
pub fn edge(plan: &Plan, flow: u32, (from, to): Step) -> Option<(Wait, Wait)> {
    if !(pausable(plan, from.1) && pausable(plan, to.1)) {
        return None;
    }
    let part = match plan.flow_control.traits().pause_scope {
        PauseScope::Flow => Part::Flow(flow),
        _ => Part::Whole,
    };
    Some((Wait { port: from.0, lane: from.1, part }, Wait { port: to.0, lane: to.1, part }))
}

/// Waits that hosts and relays pass on: some pause all other ports while one of their ports is paused. Then
/// arrivals by the other ports wait for that port, even if no packet goes from one to the other.
pub fn passed_on(plan: &Plan) -> Vec<(Wait, Wait)> {
    let mut waits = Vec::new();
    for host in plan.passing_on() {
        let ports = plan.topology.relay_ports(host);
        for (&into, &out) in ports.iter().flat_map(|a| ports.iter().map(move |b| (a, b))) {
            let from = plan.topology.ports[into as usize].peer;
            for lane in (0..plan.lanes.len() as u8).filter(|&l| into != out && pausable(plan, l)) {
                let wait = |port: PortId| Wait { port, lane, part: Part::Whole };
                waits.push((wait(from), wait(out)));
            }
        }
    }
    waits
}

/// The graph of a plan's routes, but for pauses by onward port.
pub fn graph(plan: &Plan, watch: Watch<'_>) -> Result<Graph, Halt> {
    let paths = FlowPaths::new(plan);
    let mut edges = Edges::default();
    passed_on(plan).into_iter().for_each(|(from, to)| edges.add(from, to));
    // Flows on the same routes make the same edges, unless each flow waits for itself.
    let mut followed = BTreeSet::new();
    let alike = plan.flow_control.traits().pause_scope != PauseScope::Flow;
    each_flow(plan, watch, |flow| {
        let f = &plan.flows[flow as usize];
        if alike
            && !paths.later.contains_key(&flow)
            && !followed.insert((f.path, f.lane, f.ack_path, f.ack_lane))
        {
            return;
        }
        paths.steps(flow, &mut |_, step| {
            if let Some((from, to)) = edge(plan, flow, step) {
                edges.add(from, to);
            }
        });
    })?;
    Ok(edges.graph())
}

/// Follows every flow; `watch` gets the progress now and then.
pub fn each_flow(plan: &Plan, watch: Watch<'_>, mut follow: impl FnMut(u32)) -> Result<(), Halt> {
    for flow in 0..plan.flows.len() {
        if flow.is_multiple_of(1 << 6) {
            go_on(watch, "following flows", flow, plan.flows.len())?;
        }
        follow(flow as u32);
    }
    Ok(())
}
