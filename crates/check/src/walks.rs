//! Every way of a plan's packets, queue by queue: what counting needs, where the
//! graph of waits needs single steps.

use crate::graph::Wait;
use crate::routes::{answers_wait, passed_on, pausable};
use std::collections::{BTreeMap, BTreeSet};
use xoff_net::topology::PortId;
use xoff_plan::plan::{ENDS, Plan};
use xoff_schemes::congestion_control::CongestionControlParams;
use xoff_schemes::flow_control::PauseScope;

/// Instead of a queue: the packet waits where no pause reaches it.
pub const UNPAUSED: u32 = u32::MAX;

/// What a pause can stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Queue {
    /// The egress port.
    pub port: PortId,
    /// The lane. Under BFC it stands for all queues of the lane that flows are
    /// spread over: in the worst case any two flows share one.
    pub lane: u8,
    /// The flow, where each has a queue of its own.
    pub flow: Option<u32>,
}

/// Lists of numbers, one behind the other.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    first: Vec<u32>,
    items: Vec<u32>,
}

impl Lists {
    /// `count` lists of the `(list, item)` pairs, each in order and without repeats.
    pub fn of(count: usize, mut pairs: Vec<(u32, u32)>) -> Self {
        pairs.sort_unstable();
        pairs.dedup();
        let mut first = vec![0; count + 1];
        pairs.iter().for_each(|p| first[p.0 as usize + 1] += 1);
        for i in 0..count {
            first[i + 1] += first[i];
        }
        Self { first, items: pairs.into_iter().map(|p| p.1).collect() }
    }

    /// A list.
    pub fn get(&self, list: u32) -> &[u32] {
        &self.items[self.first[list as usize] as usize..self.first[list as usize + 1] as usize]
    }

    /// Number of lists.
    pub fn count(&self) -> usize {
        self.first.len() - 1
    }
}

/// One way of a flow's data, or of its answers, from its sender on, or from where
/// a packet stood when routes changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// The flow.
    pub flow: u32,
    /// Its answers (acknowledgements and notifications), rather than its data.
    pub answers: bool,
    /// It begins at the sender.
    pub whole: bool,
    first: u32,
    last: u32,
}

/// All ways, and the queues on them.
#[derive(Clone, Debug)]
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
    /// By port: the walks over it, whatever lane or queue they are in.
    pub over: Lists,
    /// By port: its queues.
    pub of_port: Lists,
}

/// The numbers of queues, given out as walks come to them.
struct Numbers {
    lanes: u32,
    by_flow: bool,
    /// By port and lane.
    fixed: Vec<u32>,
    /// Of the flow at hand, by port and lane.
    own: BTreeMap<u32, u32>,
    queues: Vec<Queue>,
}

impl Numbers {
    fn number(&mut self, port: PortId, lane: u8, flow: u32) -> u32 {
        let key = port * self.lanes + u32::from(lane);
        let new = self.queues.len() as u32;
        let known = match self.by_flow {
            true => self.own.entry(key).or_insert(UNPAUSED),
            false => &mut self.fixed[key as usize],
        };
        if *known == UNPAUSED {
            *known = new;
            self.queues.push(Queue { port, lane, flow: self.by_flow.then_some(flow) });
        }
        *known
    }
}

impl Walks {
    /// The walks of all flows of a plan, at first and after every change of routes,
    /// those of packets that are under way then included; where a source chooses
    /// between two routes, both.
    pub fn new(plan: &Plan) -> Self {
        let by_flow = plan.flow_control.pause_scope() == PauseScope::Flow;
        let (ports, lanes) = (plan.topology.ports.len(), plan.lanes.len());
        let mut numbers = Numbers {
            lanes: lanes as u32,
            by_flow,
            fixed: if by_flow { Vec::new() } else { vec![UNPAUSED; ports * lanes] },
            own: BTreeMap::new(),
            queues: Vec::new(),
        };
        let mut all = Self {
            walks: Vec::new(),
            queues: Vec::new(),
            ports: Vec::new(),
            at: Vec::new(),
            upstream: Lists::of(0, Vec::new()),
            through: Lists::of(0, Vec::new()),
            over: Lists::of(0, Vec::new()),
            of_port: Lists::of(0, Vec::new()),
        };
        let mut later: BTreeMap<u32, [Vec<u32>; 2]> = BTreeMap::new();
        let mut moves = Vec::new();
        for table in &plan.faults.tables {
            for route in &table.flows {
                let starts = later.entry(route.flow).or_default();
                starts[0].push(route.path);
                starts[1].push(route.ack_path);
            }
            moves.extend(&table.positions);
        }
        for flow in 0..plan.flows.len() as u32 {
            if let Some(other) = plan.other_route(flow) {
                later.entry(flow).or_default()[0].push(other);
            }
        }
        moves.sort_unstable();
        moves.dedup();
        let cnp_lane = match &plan.congestion_control {
            CongestionControlParams::None => None,
            CongestionControlParams::Dcqcn(dcqcn) => dcqcn.cnp_lane,
        };
        let answers_wait = answers_wait(plan);
        let none = [Vec::new(), Vec::new()];
        for (flow, f) in (0u32..).zip(&plan.flows) {
            numbers.own.clear();
            let starts = later.get(&flow).unwrap_or(&none);
            let cnp = cnp_lane.filter(|&l| l != f.ack_lane).map(|l| (true, f.ack_path, l));
            let kinds = [Some((false, f.path, f.lane)), Some((true, f.ack_path, f.ack_lane)), cnp];
            for (answers, start, lane) in kinds.into_iter().flatten() {
                let first = all.walks.len();
                let mut places = vec![(start, lane, true)];
                places.extend(starts[usize::from(answers)].iter().map(|&p| (p, lane, true)));
                let mut covered: BTreeSet<(u32, u8)> = BTreeSet::new();
                // In the order in which they are found.
                let mut next = 0;
                while let Some(&(start, lane, whole)) = places.get(next) {
                    next += 1;
                    if moves.is_empty() || !covered.contains(&(start, lane)) {
                        let walk = Walk { flow, answers, whole, first: 0, last: 0 };
                        let mut follow =
                            Follow { plan, numbers: &mut numbers, waits: !answers || answers_wait };
                        follow.walk(&mut all, walk, (start, lane), &moves, &mut covered, &mut places);
                    }
                }
                debug_assert!(all.walks.len() > first);
            }
        }
        // A host that passes pauses on stops what comes in, whoever's packets there are.
        numbers.own.clear();
        let mut number = |wait: Wait| numbers.number(wait.port, wait.lane, 0);
        let passed = passed_on(plan).into_iter().map(|(from, to)| (number(to), number(from))).collect();
        all.queues = numbers.queues;
        all.index(ports, passed);
        all
    }

    /// The flows whose data crosses a port, in order.
    pub fn data_over(&self, port: PortId) -> Vec<u32> {
        let walks = self.over.get(port).iter().map(|&w| self.walks[w as usize]);
        let mut flows: Vec<u32> = walks.filter(|w| !w.answers).map(|w| w.flow).collect();
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
            let next = at.windows(2).filter(|s| s[0] != UNPAUSED && s[1] != UNPAUSED);
            upstream.extend(next.map(|s| (s[1], s[0])));
        }
        self.upstream = Lists::of(self.queues.len(), upstream);
        self.through = Lists::of(self.queues.len(), through);
        self.over = Lists::of(ports, over);
        self.of_port = Lists::of(ports, self.queues.iter().zip(0..).map(|(q, i)| (q.port, i)).collect());
    }

    /// The egress ports of a walk, in order.
    pub fn ports(&self, walk: u32) -> &[PortId] {
        let w = &self.walks[walk as usize];
        &self.ports[w.first as usize..w.last as usize]
    }

    /// Its queues, port by port; [`UNPAUSED`] where no pause reaches it.
    pub fn at(&self, walk: u32) -> &[u32] {
        let w = &self.walks[walk as usize];
        &self.at[w.first as usize..w.last as usize]
    }
}

/// Follows one way.
struct Follow<'a> {
    plan: &'a Plan,
    numbers: &'a mut Numbers,
    /// Its packets lie in queues that can be paused.
    waits: bool,
}

impl Follow<'_> {
    fn walk(
        &mut self,
        all: &mut Walks,
        mut walk: Walk,
        (start, mut lane): (u32, u8),
        moves: &[(u32, u32)],
        covered: &mut BTreeSet<(u32, u8)>,
        places: &mut Vec<(u32, u8, bool)>,
    ) {
        walk.first = all.ports.len() as u32;
        for position in start.. {
            let port = self.plan.hops[position as usize];
            if port >= ENDS {
                break;
            }
            if position > start {
                let ingress = self.plan.topology.ports[self.plan.hops[position as usize - 1] as usize].peer;
                lane = self.plan.onward_lane(lane, ingress, port);
            }
            let waits = self.waits && pausable(self.plan, lane);
            all.ports.push(port);
            all.at.push(if waits { self.numbers.number(port, lane, walk.flow) } else { UNPAUSED });
            if !moves.is_empty() {
                covered.insert((position, lane));
                let from = moves.partition_point(|m| m.0 < position);
                let moved = moves[from..].iter().take_while(|m| m.0 == position);
                places.extend(moved.map(|m| (m.1, lane, false)));
            }
        }
        walk.last = all.ports.len() as u32;
        all.walks.push(walk);
    }
}
