//! Pauses by congestion root: which ports may wait for which, root by root.
//!
//! A wait is a port p and a congestion root r: p is paused for packets through r. The rules of
//! [`PauseScope::Root`](xoff_schemes::flow_control::PauseScope::Root) give the dependencies:
//!
//! - p waits for r because a packet that p has sent to the next device lies there in a queue for r that is
//!   too long, at its next port q. So (p, r) depends on (q, r), where r is ahead of q on the route;
//! - if q is r itself, that queue is the output queue, which is never paused: (p, r) depends on nothing there;
//! - a PAUSE that names the port which receives it is ignored: no (r, r);
//! - a packet with roots r and s ahead whose turn has come in the queue of r moves to that of s even where s
//!   is paused: (p, r) does not depend on (p, s);
//! - a MERGE stops nobody.
//!
//! So dependencies keep their root, and follow routes up to the first visit of it. Of one route that gives a
//! chain, loops included. The routes of several flows to one root can close a cycle if they use different
//! paths; shortest routes cannot, because each step leads nearer to the root. Nothing is assumed here: the
//! graph is made from the routes, and the certificate lists its order.
//!
//! This holds if a port has an isolation queue for each root that can be ahead of it. A port with more roots
//! than queues is *short of queues*: any two roots can share a queue there, so a wait is a port, as with
//! shared queues. Where queues are for sets of roots (single tier), (p, r) depends on (q,
//! s) for each s that is ahead of q together with r on the route of any flow: the queue of both is paused
//! while s is. A port is short of queues if more sets can occur than it has queues; and along all routes,
//! where sets are not counted, every port is taken to be.

use crate::all::{FOLLOWING, MEMORY, Place, Spread, check_memory};
use crate::certificate::Failing;
use crate::failures::{At, Change, Context, Failures, Intact, Ranks, examine_each};
use crate::graph::{Edges, Graph, Part, Wait};
use crate::routes::{FlowPaths, each_flow};
use crate::{Halt, Watch, go_on};
use std::collections::{BTreeMap, BTreeSet};
use xoff_net::{routing::Router, topology::PortId};
use xoff_plan::plan::{ENDS, Plan};
use xoff_schemes::flow_control::seen::RootQueues;

/// Most roots ahead of which all sets are counted; 2^12 sets are more than there are queues.
const SETS: usize = 12;

/// Which roots lie ahead of which ports, and along which steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// Each port with each root that is ahead of it on some route; ordered, no repeats.
    roots: Vec<(At, PortId)>,
    /// A step from a port to the next one, and a root that is ahead of that one; ordered, no repeats.
    steps: Vec<(At, PortId, PortId)>,
    /// Single tier: the roots ahead of a port on each route.
    sets: BTreeSet<(At, Vec<PortId>)>,
    /// Ports with fewer queues than they may need.
    short: BTreeSet<At>,
    /// Most queues that a port may need, if that was counted.
    needed: Option<usize>,
    /// So many of `roots` and `steps` are known to be different.
    distinct: [usize; 2],
}

impl Ahead {
    fn add(&mut self, at: At, next: PortId, beyond: impl Iterator<Item = PortId>) {
        self.roots.push((at, next));
        for root in beyond.filter(|&root| root != at.0 && root != next) {
            self.roots.push((at, root));
            self.steps.push((at, next, root));
        }
        if self.roots.len() + self.steps.len() > 2 * (self.distinct[0] + self.distinct[1]) + (1 << 20) {
            self.tidy();
        }
    }

    fn tidy(&mut self) {
        self.roots.sort_unstable();
        self.roots.dedup();
        self.steps.sort_unstable();
        self.steps.dedup();
        self.distinct = [self.roots.len(), self.steps.len()];
    }

    /// Removes duplicates, and finds ports that may have too few queues; `all`: sets were not counted.
    fn count(&mut self, queues: RootQueues, all: bool) {
        self.tidy();
        let single = queues.by_set;
        let RootQueues { also_by_lane, queues, .. } = queues;
        let queues = usize::from(queues);
        self.needed = (!single).then_some(self.roots().0);
        for roots in self.roots.chunk_by(|a, b| a.0 == b.0) {
            let more = if single { all } else { roots.len() > queues };
            if more || also_by_lane {
                self.short.insert(roots[0].0);
            }
        }
        // All sets that can occur are subsets of these.
        let mut known: BTreeSet<(At, Vec<PortId>)> = BTreeSet::new();
        for (at, set) in &self.sets {
            if set.len() > SETS {
                self.short.insert(*at);
                continue;
            }
            let part = |bits: u32| (0..set.len()).filter(move |i| bits >> i & 1 == 1).map(|i| set[i]);
            known.extend((1..1u32 << set.len()).map(|bits| (*at, part(bits).collect())));
        }
        let mut counts: BTreeMap<At, usize> = BTreeMap::new();
        known.iter().for_each(|(at, _)| *counts.entry(*at).or_default() += 1);
        if single && !all && self.sets.iter().all(|(_, set)| set.len() <= SETS) {
            self.needed = Some(counts.values().copied().max().unwrap_or(0));
        }
        self.short.extend(counts.into_iter().filter(|&(_, sets)| sets > queues).map(|(at, _)| at));
    }

    /// Ports that may need more isolation queues than they have, with their lane.
    pub fn short(&self) -> &BTreeSet<At> {
        &self.short
    }

    /// Most roots ahead of a port, and how many pairs of a port and a root there are.
    pub fn roots(&self) -> (usize, usize) {
        let most = self.roots.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len).max();
        (most.unwrap_or(0), self.roots.len())
    }

    fn wait(&self, at: At, root: PortId) -> Wait {
        let part = if self.short.contains(&at) { Part::Whole } else { Part::Root(root) };
        Wait { port: at.0, lane: at.1, part }
    }

    /// The dependencies of these waits. Fails if they are too many.
    pub fn graph(&self) -> Result<Graph, String> {
        check_memory("the waits", self.steps.len() as u64 * 32)?;
        let mut together: BTreeSet<(At, PortId, PortId)> = BTreeSet::new();
        for (at, set) in self.sets.iter().filter(|s| !self.short.contains(&s.0)) {
            together.extend(set.iter().flat_map(|&r| set.iter().map(move |&s| (*at, r, s))));
        }
        let mut edges = Edges::default();
        for &(at, next, root) in &self.steps {
            let (from, next) = (self.wait(at, root), (next, at.1));
            edges.add(from, self.wait(next, root));
            let with = together.range((next, root, 0)..=(next, root, PortId::MAX));
            with.for_each(|&(_, _, other)| edges.add(from, self.wait(next, other)));
        }
        Ok(edges.graph())
    }

    /// The ports and roots on the path of a flow.
    fn flow(&mut self, plan: &Plan, paths: &FlowPaths<'_>, flow: u32, sets: bool) {
        for (start, lane) in paths.starts(flow) {
            if paths.changes() {
                self.changing(plan, paths, start, lane, sets);
                continue;
            }
            // Several where devices choose for each packet.
            plan.visit_paths(start, &mut |path| {
                let ports: Vec<PortId> = path.iter().map(|&at| plan.hops[at as usize]).collect();
                for (i, pair) in ports.windows(2).enumerate() {
                    self.step((pair[0], lane), pair[1], ports[i + 2..].iter().copied(), sets);
                }
                true
            });
        }
    }

    /// The same for a route from which packets may change to others.
    fn changing(&mut self, plan: &Plan, paths: &FlowPaths<'_>, start: u32, lane: u8, sets: bool) {
        for at in paths.reached(start, true) {
            let (port, next) = (plan.hops[at as usize], plan.hops[at as usize + 1]);
            if next < ENDS {
                let beyond: BTreeSet<PortId> = paths
                    .reached(at + 1, false)
                    .into_iter()
                    .map(|at| plan.hops[at as usize])
                    .filter(|&port| port < ENDS)
                    .collect();
                self.step((port, lane), next, beyond.iter().copied(), sets);
            }
        }
    }

    fn step(&mut self, at: At, next: PortId, beyond: impl Iterator<Item = PortId> + Clone, sets: bool) {
        if sets {
            let all = beyond.clone().chain([next]).filter(|&root| root != at.0);
            let set: BTreeSet<PortId> = all.collect();
            self.sets.insert((at, set.into_iter().collect()));
        }
        self.add(at, next, beyond);
    }

    /// The ports and roots on the path of packets to a place that take the steps `on`, after one of the steps
    /// `before`. It goes back from each root.
    fn spread(&mut self, on: &Steps, before: &Steps) {
        let mut last: BTreeMap<At, Vec<(At, bool)>> = BTreeMap::new();
        for (steps, goes_on) in [(on, true), (before, false)] {
            for &(from, to) in steps {
                last.entry(to).or_default().push((from, goes_on));
            }
        }
        let roots: BTreeSet<At> = on.iter().map(|step| step.1).collect();
        for &root in &roots {
            let (mut seen, mut queue) = (BTreeSet::from([root]), vec![root]);
            while let Some(next) = queue.pop() {
                for &(at, goes_on) in last.get(&next).into_iter().flatten().filter(|at| at.0 != root) {
                    let beyond = (next != root).then_some(root.0);
                    self.add(at, next.0, beyond.into_iter());
                    if goes_on && seen.insert(at) {
                        queue.push(at);
                    }
                }
            }
        }
    }
}

/// Steps of packets to one place: from a port to the next one.
type Steps = BTreeSet<(At, At)>;

/// The ports and roots of the plan's flows on all their routes.
pub fn of_flows(plan: &Plan, queues: RootQueues, watch: Watch<'_>) -> Result<Ahead, Halt> {
    let (mut ahead, paths) = (Ahead::default(), FlowPaths::new(plan));
    each_flow(plan, watch, |flow| ahead.flow(plan, &paths, flow, queues.by_set))?;
    ahead.count(queues, false);
    Ok(ahead)
}

/// Those of packets on all routes, and of the flows with explicit paths.
pub fn of_all(
    plan: &Plan,
    queues: RootQueues,
    router: &mut Router,
    cx: &Context<'_>,
    watch: Watch<'_>,
) -> Result<Ahead, Halt> {
    let (mut ahead, paths) = (Ahead::default(), FlowPaths::new(plan));
    cx.explicit.iter().for_each(|&flow| ahead.flow(plan, &paths, flow, false));
    let mut spread = Spread::new(plan, &crate::all::lanes(plan));
    for (done, place) in cx.places.iter().enumerate() {
        go_on(watch, FOLLOWING, done, cx.places.len())?;
        ahead.spread(&steps_to(&mut spread, router, place, &[]), &Steps::new());
        let bytes = (ahead.roots.len() * 16 + ahead.steps.len() * 16) as u64;
        if bytes > MEMORY {
            let most = MEMORY >> 30;
            let why =
                format!("all routes of this network need more than the maximum of {most} GiB of memory");
            return Err(why.into());
        }
    }
    ahead.count(queues, true);
    Ok(ahead)
}

/// The steps of packets to a place, from all hosts and from the far ends of the ports in `under_way`.
fn steps_to(spread: &mut Spread<'_>, router: &mut Router, place: &Place, under_way: &[At]) -> Steps {
    let mut steps = Steps::new();
    spread.spread(router, place, under_way, &mut |from, to| {
        steps.insert((from, to));
    });
    steps
}

/// Examines every single failure on top of an intact network, like [`crate::failures::examine`]. Packets in
/// flight came on the old routes and continue on the new ones; the waits of both are taken together.
pub fn examine(
    intact: Intact<'_>,
    failures: Failing,
    queues: RootQueues,
    known: &Ahead,
    watch: Watch<'_>,
) -> Result<Failures, Halt> {
    let (plan, cx, ranks) = (intact.plan, *intact.context, Ranks::new(intact.order));
    let mut under = |failing: &mut Change<'_, '_>| {
        let mut whole = known.clone();
        for place in std::mem::take(&mut failing.places) {
            let mut old = Steps::new();
            let under_way = failing.under_way(place, &mut |from, to| {
                old.insert((from, to));
            });
            whole.spread(&steps_to(failing.spread, failing.after, place, &under_way), &old);
        }
        whole.count(queues, true);
        if whole == *known {
            return Ok((false, None));
        }
        let graph = whole.graph()?;
        let forwards = |(n, &wait): (u32, &Wait)| {
            graph.next(n).iter().all(|&on| ranks.forwards(wait, graph.waits[on as usize]))
        };
        let holds = (0..).zip(&graph.waits).all(forwards);
        Ok((true, (!holds).then_some(graph)))
    };
    let mut steady = |failed: &mut Router| Ok(of_all(plan, queues, failed, &cx, &mut |_| true)?.graph()?);
    examine_each(intact, failures, &crate::all::lanes(plan), watch, &mut under, &mut steady)
}

/// Whether `route` leads from the wait `from` to the port of `to`, and on through the root of `from`.
pub fn closes(route: &[PortId], from: Wait, to: Wait) -> bool {
    let ahead = |rest: &[PortId]| match from.part {
        Part::Root(root) => rest.contains(&root),
        _ => true,
    };
    (2..=route.len()).any(|i| route[i - 2..i] == [from.port, to.port] && ahead(&route[i..]))
}

/// Whether no packet can wait for a port off its path, by the root that frames name: each root has queues of
/// its own everywhere, and false roots do not persist.
pub fn apart(queues: RootQueues, ahead: &Ahead) -> bool {
    ahead.short.is_empty() && queues.merges
}

pub fn notes(plan: &Plan, queues: RootQueues, ahead: &Ahead, all: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let single = queues.by_set;
    if let Some(&(port, _)) = ahead.short().first() {
        let ports = match ahead.short().len() {
            1 => "One port".to_string(),
            many => format!("{many} ports"),
        };
        notes.push(match (single, all) {
            _ if queues.also_by_lane => {
                "Switches that support only PFC pause whole priorities, so any two roots may wait for each other."
                    .to_string()
            }
            (true, true) => {
                "Sets of roots get their own queues only during a run. Along all routes, this check assumes the worst \
                 case: any two roots share a queue. Without --failures, it uses the sets of the flows' routes."
                    .to_string()
            }
            _ => {
                let of = if single { "sets of roots" } else { "roots" };
                let needed = ahead.needed.map_or_else(
                    || format!("more than {} {of} may be on the paths ahead of a port", 1 << SETS),
                    |n| {
                        let enough = if n <= 1_024 { format!(", and queues = {n} suffices") } else { String::new() };
                        format!("up to {n} {of} may be on the paths ahead of a port{enough}")
                    },
                );
                format!(
                    "{ports} (the first is {}) may need more than the {} isolation queues of each port: {needed}. \
                     Without a free queue, roots share one, and this check assumes that any two roots share. \
                     If no roots share a queue (a run reports this), no flow waits for a named port off its path.",
                    plan.topology.port_name(port),
                    queues.queues,
                )
            }
        });
    }
    if !queues.merges {
        notes.push(
            "With merging = \"off\", a false root is never merged, and it also stops packets that do not cross the \
             true root. For victims, this check assumes the worst case: every port on the path to a congested \
             port is a false root."
                .to_string(),
        );
    } else if ahead.short().is_empty() {
        notes.push(
            "Victims are counted by the root that frames name. A run also counts them by the root that survives a \
             MERGE: until the MERGE arrives, flows wait for a false root on their path."
                .to_string(),
        );
    }
    notes
}

/// Why a cycle of a single tier's queues proves nothing, and the effect of queues for each root on the same
/// routes of the flows; nothing about other schemes.
pub fn unproved(plan: &Plan, queues: RootQueues, all: bool, watch: Watch<'_>) -> Result<String, Halt> {
    let mut text =
        "Neither proved nor refuted: a queue holds a set of roots, and it waits for each root of its set. \
                    The cycle needs certain sets at the same time, and only a run determines whether they \
                    occur."
            .to_string();
    if !all {
        let hiq = RootQueues { by_set: false, ..queues };
        text += match of_flows(plan, hiq, watch)?.graph()?.order() {
            Some(_) => {
                " With organisation = \"hiq\" (one queue for each root), the same routes are proved deadlock-free."
            }
            None => " With organisation = \"hiq\" (one queue for each root), a cycle remains.",
        };
    }
    Ok(text)
}
