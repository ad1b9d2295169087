//! Every path of a plan's packets, queue by queue. Counts need whole paths; the graph of waits needs single
//! steps.

use crate::graph::{Lists, Part};
use crate::routes::{FlowPaths, control_can_wait, passed_on, pausable, wait_lane};
use std::collections::{BTreeMap, BTreeSet};
use xoff_net::topology::PortId;
use xoff_plan::{balancing::LoadBalancing, plan::Plan};
use xoff_schemes::flow_control::PauseScope;
use xoff_schemes::flow_control::seen::{OnwardQueues, Pausers};

/// Instead of a queue: the packet waits where no pause reaches it.
pub const UNPAUSED: u32 = u32::MAX;

/// The unit that a pause can stop. A whole lane represents all its queues that flows are spread over: in the
/// worst case any two flows share one. Under pauses by onward port, some of them pause others and are never
/// paused themselves.
pub use crate::graph::Wait as Queue;

/// One path of a flow's data or control packets, from its sender or from a position in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    pub flow: u32,
    pub is_control: bool,
    /// It begins at the sender.
    pub whole: bool,
    first: u32,
    last: u32,
}

/// All paths, and the queues on them.
#[derive(Clone, Debug, Default)]
pub struct Walks {
    /// Ordered by flow; of each flow data first, and those that hold at first before later ones.
    pub walks: Vec<Walk>,
    /// Every queue that a pause may stop.
    pub queues: Vec<Queue>,
    ports: Vec<PortId>,
    at: Vec<u32>,
    /// By queue: those that it can pause, because packets leave them and come to it next.
    pub upstream: Lists,
    /// By queue: the walks through it.
    pub through: Lists,
    /// By port: the walks over it, in any lane or queue.
    pub over: Lists,
    /// By port: its queues.
    pub of_port: Lists,
    /// How many of the queues are never stopped themselves.
    pub unstopped: u64,
    /// Pauses go past the queues of relays, which are never stopped.
    past_relays: bool,
}

/// The numbers of queues, given out as walks come to them.
struct Numbers {
    /// Lanes of a port; under pauses by onward port its queues of data.
    width: u32,
    /// By port and lane, or by port and queue; nothing where each flow has its own.
    fixed: Vec<u32>,
    /// Of the flow at hand, by port and lane.
    own: BTreeMap<u32, u32>,
    queues: Vec<Queue>,
}

impl Numbers {
    fn new(plan: &Plan) -> Self {
        let width = match plan.flow_control.onward_queues() {
            Some(queues) => u32::from(queues.of_host()),
            None => plan.lanes.len() as u32,
        };
        let by_flow = plan.flow_control.traits().pause_scope == PauseScope::Flow;
        let fixed = if by_flow { 0 } else { plan.topology.ports.len() * width as usize };
        Self { width, fixed: vec![UNPAUSED; fixed], own: BTreeMap::new(), queues: Vec::new() }
    }

    fn number(&mut self, queue: Queue) -> u32 {
        let at = match queue.part {
            Part::Queue(number) => number,
            Part::Flow(_) | Part::Whole | Part::Root(_) => u16::from(queue.lane),
        };
        let key = queue.port * self.width + u32::from(at);
        let new = self.queues.len() as u32;
        let known = match queue.part {
            Part::Flow(_) => self.own.entry(key).or_insert(UNPAUSED),
            Part::Queue(_) | Part::Whole | Part::Root(_) => &mut self.fixed[key as usize],
        };
        if *known == UNPAUSED {
            *known = new;
            self.queues.push(queue);
        }
        *known
    }
}

/// The maximum number of paths of all flows together, where devices choose for each packet.
const MAX_PATHS: usize = 4_000_000;

pub fn check_path_count(plan: &Plan) -> Result<(), String> {
    let LoadBalancing::Packets(_) = plan.load_balancing else { return Ok(()) };
    let mut path_count = 0;
    for flow in &plan.flows {
        let fits = plan.visit_paths(flow.path, &mut |_| {
            path_count += 1;
            path_count <= MAX_PATHS
        });
        if !fits {
            return Err(format!(
                "packets of a flow take different paths, and the {} flows have more than the maximum of {MAX_PATHS} paths: \
                 check the scenario with fewer flows",
                plan.flows.len()
            ));
        }
    }
    Ok(())
}

impl Walks {
    /// The walks of all flows of a plan, at first and after every change of routes, including those of
    /// packets in flight at that time; where a source chooses between two routes, both.
    pub fn new(plan: &Plan) -> Self {
        let ports = plan.topology.ports.len();
        let mut numbers = Numbers::new(plan);
        let past_relays = plan.flow_control.onward_queues().is_some_and(|queues| queues.passes_on());
        let mut all = Self { past_relays, ..Self::default() };
        let paths = FlowPaths::new(plan);
        let cnp_lane = plan.congestion_control.cnp_lane();
        let control_waits = control_can_wait(plan);
        let none = [Vec::new(), Vec::new()];
        for (flow, f) in (0u32..).zip(&plan.flows) {
            numbers.own.clear();
            let starts = paths.later.get(&flow).unwrap_or(&none);
            let cnp = cnp_lane.filter(|&l| l != f.ack_lane).map(|l| (true, f.ack_path, l));
            let kinds = [Some((false, f.path, f.lane)), Some((true, f.ack_path, f.ack_lane)), cnp];
            for (is_control, start, lane) in kinds.into_iter().flatten() {
                let first = all.walks.len();
                if !is_control && let LoadBalancing::Packets(_) = plan.load_balancing {
                    let mut next: Vec<(u32, bool)> =
                        std::iter::once(start).chain(starts[0].iter().copied()).map(|s| (s, true)).collect();
                    let (mut begun, mut covered) = (BTreeSet::new(), BTreeSet::new());
                    while let Some((start, whole)) = next.pop() {
                        if !begun.insert(start) || !whole && covered.contains(&start) {
                            continue;
                        }
                        let walk = Walk { flow, is_control, whole, first: 0, last: 0 };
                        plan.visit_paths(start, &mut |path| {
                            let mut follow = Follow { plan, numbers: &mut numbers, waits: true };
                            follow.walk(&mut all, walk, path.iter().copied(), lane, &mut |position, _| {
                                if covered.insert(position) {
                                    next.extend(paths.moved(position).map(|new| (new, false)));
                                }
                            });
                            true
                        });
                    }
                    continue;
                }
                let mut places = vec![(start, lane, true)];
                places.extend(starts[usize::from(is_control)].iter().map(|&p| (p, lane, true)));
                let mut covered: BTreeSet<(u32, u8)> = BTreeSet::new();
                // In the order in which they are found.
                let mut next = 0;
                while let Some(&(start, lane, whole)) = places.get(next) {
                    next += 1;
                    if !paths.changes() || !covered.contains(&(start, lane)) {
                        let walk = Walk { flow, is_control, whole, first: 0, last: 0 };
                        let mut follow =
                            Follow { plan, numbers: &mut numbers, waits: !is_control || control_waits };
                        follow.walk(&mut all, walk, plan.run(start), lane, &mut |position, lane| {
                            if paths.changes() {
                                covered.insert((position, lane));
                                places.extend(paths.moved(position).map(|new| (new, lane, false)));
                            }
                        });
                    }
                }
                debug_assert!(all.walks.len() > first);
            }
        }
        // A host that passes pauses on stops all arriving packets.
        numbers.own.clear();
        let passed = passed_on(plan).into_iter();
        let passed = passed.map(|(from, to)| (numbers.number(to), numbers.number(from))).collect();
        all.queues = numbers.queues;
        let upstream = match plan.flow_control.onward_queues() {
            Some(queues) => all.onward(queues),
            None => passed,
        };
        all.index(ports, upstream);
        all
    }

    /// The flows whose data crosses a port, in order.
    pub fn data_over(&self, port: PortId) -> Vec<u32> {
        let walks = self.over.get(port).iter().map(|&w| self.walks[w as usize]);
        let mut flows: Vec<u32> = walks.filter(|w| !w.is_control).map(|w| w.flow).collect();
        flows.dedup();
        flows
    }

    /// `upstream`: pairs of queues of which the first can pause the second in any case.
    fn index(&mut self, ports: usize, mut upstream: Vec<(u32, u32)>) {
        let (mut through, mut over) = (Vec::new(), Vec::new());
        for (w, walk) in (0u32..).zip(&self.walks) {
            let steps = walk.first as usize..walk.last as usize;
            over.extend(self.ports[steps.clone()].iter().map(|&p| (p, w)));
            let at = &self.at[steps];
            through.extend(at.iter().filter(|&&q| q != UNPAUSED).map(|&q| (q, w)));
            let next = (1..at.len()).filter_map(|i| Some((at[i], at[self.before(at, i)?])));
            upstream.extend(next);
        }
        self.upstream = Lists::of(self.queues.len(), upstream);
        self.through = Lists::of(self.queues.len(), through);
        self.over = Lists::of(ports, over);
        self.of_port = Lists::of(ports, self.queues.iter().zip(0..).map(|(q, i)| (q.port, i)).collect());
    }

    /// Only the walks through congestion root `root`, with its queues: at each port before a walk first
    /// reaches the root, the isolation queue of the root, and at the root its output queue. Packets in other
    /// queues never wait for it.
    pub fn toward(&self, root: PortId) -> Self {
        let mut numbers: BTreeMap<Queue, u32> = BTreeMap::new();
        let mut all = Self { unstopped: 1, ..Self::default() };
        for &walk in self.over.get(root) {
            let first = all.ports.len() as u32;
            let mut before = true;
            for (&port, &at) in self.ports(walk).iter().zip(self.at(walk)) {
                all.ports.push(port);
                all.at.push(if before && at != UNPAUSED {
                    let Queue { port, lane, .. } = self.queues[at as usize];
                    let queue = Queue { port, lane, part: Part::Root(root) };
                    *numbers.entry(queue).or_insert_with(|| {
                        all.queues.push(queue);
                        all.queues.len() as u32 - 1
                    })
                } else {
                    UNPAUSED
                });
                before &= port != root;
            }
            let last = all.ports.len() as u32;
            all.walks.push(Walk { first, last, ..self.walks[walk as usize] });
        }
        all.index(self.over.count(), Vec::new());
        all
    }

    /// Pairs of queues of which the first can pause the second.
    fn onward(&mut self, queues: &dyn OnwardQueues) -> Vec<(u32, u32)> {
        let numbers: BTreeMap<Queue, u32> = self.queues.iter().copied().zip(0..).collect();
        let mut pairs = Vec::new();
        for (&queue, &paused) in &numbers {
            let Part::Queue(number) = queue.part else { continue };
            let Some(Pausers { port, queues: set, .. }) = queues.pausers(queue.port, number) else {
                self.unstopped += 1;
                continue;
            };
            let from = |number| Queue { port, lane: queue.lane, part: Part::Queue(number) };
            pairs.extend(numbers.range(from(set.start)..from(set.end)).map(|(_, &by)| (by, paused)));
        }
        pairs
    }

    /// The place before place `i` on a walk whose queue that of `i` can pause.
    pub fn before(&self, at: &[u32], i: usize) -> Option<usize> {
        let place = |back: usize| i.checked_sub(back).filter(|&j| at[i] != UNPAUSED && at[j] != UNPAUSED);
        place(1).or_else(|| place(2).filter(|_| self.past_relays))
    }

    /// The egress ports of a walk, in order.
    pub fn ports(&self, walk: u32) -> &[PortId] {
        let w = &self.walks[walk as usize];
        &self.ports[w.first as usize..w.last as usize]
    }

    /// Its queues, port by port; [`UNPAUSED`] where it neither can be paused nor makes others wait.
    pub fn at(&self, walk: u32) -> &[u32] {
        let w = &self.walks[walk as usize];
        &self.at[w.first as usize..w.last as usize]
    }
}

struct Follow<'a> {
    plan: &'a Plan,
    numbers: &'a mut Numbers,
    /// Its packets lie in queues that can be paused.
    waits: bool,
}

impl Follow<'_> {
    /// The part of its lane in which a packet waits at `position`; `None`: in a relay's queue.
    fn part(&self, port: PortId, position: u32, flow: u32, begins: bool) -> Option<Part> {
        match self.plan.flow_control.onward_queues() {
            Some(queues) if queues.at_host(port) && !begins => None,
            Some(queues) => Some(Part::Queue(queues.queue_at(position))),
            None if self.plan.flow_control.traits().pause_scope == PauseScope::Flow => Some(Part::Flow(flow)),
            None => Some(Part::Whole),
        }
    }

    /// The walk over these positions, which begins in `lane`; `visit` gets each position and its lane.
    fn walk(
        &mut self,
        all: &mut Walks,
        mut walk: Walk,
        positions: impl Iterator<Item = u32>,
        mut lane: u8,
        visit: &mut dyn FnMut(u32, u8),
    ) {
        walk.first = all.ports.len() as u32;
        let mut before: Option<PortId> = None;
        for position in positions {
            let port = self.plan.hops[position as usize];
            if let Some(before) = before {
                lane = self.plan.onward_lane(lane, self.plan.topology.ports[before as usize].peer, port);
            }
            let waits = self.waits && pausable(self.plan, lane);
            all.ports.push(port);
            let part = self.part(port, position, walk.flow, walk.whole && before.is_none());
            let queue =
                part.filter(|_| waits).map(|part| Queue { port, lane: wait_lane(self.plan, lane), part });
            all.at.push(queue.map_or(UNPAUSED, |queue| self.numbers.number(queue)));
            visit(position, lane);
            before = Some(port);
        }
        walk.last = all.ports.len() as u32;
        all.walks.push(walk);
    }
}
