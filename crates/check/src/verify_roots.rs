//! The small checker's reading of pauses by root. It shares nothing with [`crate::roots`]: it
//! follows packets by itself, at each device asks for every port that they have yet to
//! cross whether the wait for it of the link in is listed before that of the link out,
//! and counts the roots ahead of each port to see whether it may run short of queues.

use crate::verify::{Places, control_lanes, moves, routes};
use crate::verify_all::{After, Queue, reached};
use std::collections::{BTreeMap, BTreeSet};
use xoff_net::routing::Router;
use xoff_plan::plan::{ENDS, Plan};
use xoff_schemes::flow_control::seen::RootQueues;

/// The steps of packets: the next port after each port, the ports that they cross after that, and for each
/// route of a packet the remaining ports.
#[derive(Clone, Default)]
pub struct Seen {
    /// A port, the next one, and a port that is crossed later.
    beyond: BTreeSet<(Queue, u32, u32)>,
    /// A port and a port that is crossed later.
    ahead: BTreeSet<(Queue, u32)>,
    /// A port and all ports that are crossed later, for one packet.
    sets: BTreeSet<(Queue, BTreeSet<u32>)>,
    /// Those of all routes are not known.
    no_sets: bool,
}

impl Seen {
    fn step(&mut self, from: Queue, to: u32, beyond: &BTreeSet<u32>) {
        self.ahead.insert((from, to));
        for &root in beyond.iter().filter(|root| ![from.0, to].contains(root)) {
            self.ahead.insert((from, root));
            self.beyond.insert((from, to, root));
        }
    }
}

/// Follows the flows of the requested classes.
pub fn flows(plan: &Plan, isolation: RootQueues, of: &dyn Fn(u16) -> bool) -> Seen {
    let (paused, cnp_lane) = control_lanes(plan);
    let mut seen = Seen::default();
    let moves = moves(plan);
    // A packet here may be there next, or goes on by another route from there.
    let next = |at: u32| match plan.choices_at(plan.hops[at as usize + 1]) {
        Some(choices) => choices.options(plan.hops[at as usize + 1]).to_vec(),
        None => vec![at + 1],
    };
    let on = |at: u32| {
        let others = moves.get(&at).into_iter().flatten().copied();
        next(at).into_iter().chain(others).collect::<Vec<_>>()
    };
    let all = |from: Vec<u32>| {
        let (mut known, mut open) = (BTreeSet::new(), from);
        while let Some(at) = open.pop() {
            if plan.hops[at as usize] < ENDS && known.insert(at) {
                open.extend(on(at));
            }
        }
        known
    };
    for (id, path, ack_path) in routes(plan, of) {
        let flow = &plan.flows[id as usize];
        let mut starts = vec![(path, flow.lane)];
        let lanes = [Some(flow.ack_lane), cnp_lane].into_iter().flatten();
        starts.extend(lanes.filter(|_| paused).map(|lane| (ack_path, lane)));
        for (start, lane) in starts {
            for at in all(vec![start]) {
                for next in next(at) {
                    let (from, to) = (plan.hops[at as usize], plan.hops[next as usize]);
                    if to >= ENDS {
                        continue;
                    }
                    let ports: BTreeSet<u32> =
                        all(on(next)).into_iter().map(|at| plan.hops[at as usize]).collect();
                    seen.step((from, lane), to, &ports);
                    if isolation.by_set {
                        let mut set = ports;
                        set.insert(to);
                        set.remove(&from);
                        seen.sets.insert(((from, lane), set));
                    }
                }
            }
        }
    }
    seen
}

/// Follows packets from every host to every other one, along every next hop. `after`: as of
/// [`crate::verify_all::all`].
pub fn all(plan: &Plan, router: &mut Router, mut after: After<'_>, seen: &mut Seen) -> Result<(), String> {
    seen.no_sets = true;
    for to in plan.topology.hosts() {
        if !plan.topology.nodes[to as usize].ports.iter().any(|&port| router.alive(port)) {
            continue;
        }
        let mut steps: BTreeSet<(Queue, u32)> = BTreeSet::new();
        let mut begun = Vec::new();
        if let Some((link, before)) = &mut after {
            begun = reached(plan, before, to, Vec::new(), &mut |from, out| {
                steps.insert((from, out.0));
                Ok(())
            })?;
            let gone = *link;
            begun.retain(|queue| !gone.contains(&queue.0));
        }
        let mut next: BTreeMap<Queue, BTreeSet<u32>> = BTreeMap::new();
        reached(plan, router, to, begun, &mut |from, out| {
            next.entry(from).or_default().insert(out.0);
            steps.insert((from, out.0));
            Ok(())
        })?;
        for (from, out) in steps {
            let (mut known, mut open) = (BTreeSet::new(), vec![out]);
            while let Some(port) = open.pop() {
                let on = next.get(&(port, from.1)).into_iter().flatten();
                open.extend(on.copied().filter(|&port| known.insert(port)));
            }
            seen.step(from, out, &known);
        }
    }
    Ok(())
}

/// Compares all waits that may depend on each other. Returns the number of pairs.
pub fn compare(plan: &Plan, isolation: RootQueues, places: &Places, seen: &Seen) -> Result<u64, String> {
    let single = isolation.by_set;
    let queues = usize::from(isolation.queues);
    // Which sets of roots may have a queue at a port.
    let mut sets: BTreeMap<Queue, BTreeSet<Vec<u32>>> = BTreeMap::new();
    for (at, set) in &seen.sets {
        let all: Vec<u32> = set.iter().copied().collect();
        let known = sets.entry(*at).or_default();
        for bits in 1..1u64 << all.len().min(13) {
            known.insert(all.iter().zip(0..).filter(|(_, i)| bits >> i & 1 == 1).map(|(&r, _)| r).collect());
        }
    }
    let mut roots: BTreeMap<Queue, usize> = BTreeMap::new();
    seen.ahead.iter().for_each(|(at, _)| *roots.entry(*at).or_default() += 1);
    let short = |at: Queue| match single {
        _ if isolation.also_by_lane => true,
        // Of thirteen roots there are more sets than a port has queues, by far.
        true => seen.no_sets || sets.get(&at).is_some_and(|sets| sets.len() > queues.min(1 << 12)),
        false => roots.get(&at).is_some_and(|&roots| roots > queues),
    };
    let mut compared = 0;
    for &(from, to, root) in &seen.beyond {
        let to = (to, from.1);
        let mut on = BTreeSet::from([root]);
        if single && !short(to) {
            let shared = sets.get(&to).into_iter().flatten().filter(|set| set.contains(&root));
            on.extend(shared.flatten());
        }
        for other in on {
            let place = |at: Queue, root: u32| match short(at) {
                true => places.shared(at),
                false => places.by_root.get(&(at.0, at.1, root)).copied().unwrap_or(0),
            };
            let (a, b) = (place(from, root), place(to, other));
            compared += 1;
            if 0 < a && a < b {
                continue;
            }
            let [x, y, r, s] = [from.0, to.0, root, other].map(|port| plan.topology.port_name(port));
            return Err(match (a, b) {
                (0, _) => format!("{x} for {r} may wait for {y} for {s}, but {x} is not listed"),
                (_, 0) => format!("{x} for {r} may wait for {y} for {s}, but {y} is not listed"),
                _ => format!("{x} for {r} may wait for {y} for {s}, which is listed before it"),
            });
        }
    }
    Ok(compared)
}
