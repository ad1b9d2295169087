//! Pauses by onward port: which queues packets may fill, and which of them wait for which.
//!
//! With other flow control a wait follows from one packet: if it leaves by one port and then by the next one,
//! the first port waits for the second. Here a port of a switch pauses queues up to two hops away: the queues
//! of packets that will leave through it, whatever packets fill its own queues. So the first step collects
//! all queues that some packet may fill. Then each of them that can be paused waits for the queues of the set
//! that pauses it ([`OnwardQueues::pausers`]). A queue that nothing pauses does not wait.

use crate::all::{FOLLOWING, Place, Spread, check_memory};
use crate::certificate::Failing;
use crate::failures::{Change, Context, Failures, Intact, examine_each};
use crate::graph::{Edges, Graph, Part, Wait};
use crate::routes::{FlowPaths, each_flow};
use crate::{Halt, Watch, go_on};
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use xoff_net::{routing::Router, topology::PortId};
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::seen::OnwardQueues;

/// Queues that packets may fill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filled {
    /// Words for each port.
    words: usize,
    /// A bit for each queue of a port.
    bits: Vec<u64>,
    /// Packets may cross a second relay, where nothing can pause them: they may be dropped.
    pub second_relay: bool,
    /// Some routes are left out, because flows on them are refused.
    pub refused: bool,
}

impl Filled {
    fn new(plan: &Plan, of: &dyn OnwardQueues) -> Self {
        let words = usize::from(of.of_host()).div_ceil(64);
        Self { words, bits: vec![0; words * plan.topology.ports.len()], second_relay: false, refused: false }
    }

    fn add(&mut self, port: PortId, queue: u16) {
        self.bits[port as usize * self.words + usize::from(queue / 64)] |= 1 << (queue % 64);
    }

    pub fn has(&self, port: PortId, queue: u16) -> bool {
        self.bits[port as usize * self.words + usize::from(queue / 64)] >> (queue % 64) & 1 == 1
    }

    /// All of them, in order.
    pub fn all(&self) -> impl Iterator<Item = (PortId, u16)> + '_ {
        let per_port = (self.words * 64) as u16;
        (0..(self.bits.len() / self.words) as PortId)
            .flat_map(move |port| (0..per_port).map(move |queue| (port, queue)))
            .filter(|&(port, queue)| self.has(port, queue))
    }

    /// Those that a flow's data fills.
    fn flow(&mut self, of: &dyn OnwardQueues, plan: &Plan, paths: &FlowPaths<'_>, flow: u32) {
        paths.positions(flow, &mut |at, begins| {
            let port = plan.hops[at as usize];
            let relayed = of.at_host(port) && !begins;
            self.add(port, if relayed { of.relay() } else { of.queue_at(at) });
        });
    }

    /// Those that packets to a place fill, which have been spread.
    fn spread(
        &mut self,
        of: &dyn OnwardQueues,
        plan: &Plan,
        spread: &mut Spread<'_>,
        router: &mut Router,
        place: &Place,
    ) {
        let found: Vec<PortId> = spread.found.iter().map(|found| found.0).collect();
        let mut ahead = Ahead {
            of,
            plan,
            spread,
            router,
            place,
            known: BTreeMap::new(),
            open: Vec::new(),
            refused: false,
            loops: 0,
        };
        for port in found {
            for route in ahead.routes(port).iter() {
                self.add(port, of.queue(route));
                self.second_relay |= of.relays(route) > 1;
            }
        }
        self.refused |= ahead.refused;
    }

    /// The waits among these queues. Fails if they are too many.
    pub fn graph(&self, of: &dyn OnwardQueues) -> Result<Graph, String> {
        let wait = |(port, queue)| Wait { port, lane: of.lane(), part: Part::Queue(queue) };
        let on = |(port, queue)| of.pausers(port, queue).map(|on| (on.port, on.queues));
        let waits = || self.all().filter_map(|queue| Some((queue, on(queue)?)));
        let filled = |(port, set): (PortId, Range<u16>)| set.filter(move |&q| self.has(port, q));
        let count: u64 = waits().map(|(_, on)| filled(on).count() as u64).sum();
        // Two numbers of eight bytes for each.
        check_memory("the waits", count * 16)?;
        let mut edges = Edges::default();
        for (from, on) in waits() {
            let port = on.0;
            filled(on).for_each(|queue| edges.add(wait(from), wait((port, queue))));
        }
        Ok(edges.graph())
    }
}

/// Routes from ports on to one place.
struct Ahead<'a, 's> {
    of: &'a dyn OnwardQueues,
    plan: &'a Plan,
    spread: &'a mut Spread<'s>,
    router: &'a mut Router,
    place: &'a Place,
    known: BTreeMap<PortId, Rc<[Vec<PortId>]>>,
    /// The ports that are being followed.
    open: Vec<PortId>,
    /// Routes were left out, because flows on them are refused.
    refused: bool,
    /// How often a route came back to one of them.
    loops: usize,
}

impl Ahead<'_, '_> {
    /// Those from `port` on: one for each of its queues that they fill, and for each difference that they make to
    /// the queues of ports before.
    fn routes(&mut self, port: PortId) -> Rc<[Vec<PortId>]> {
        if let Some(known) = self.known.get(&port) {
            return known.clone();
        }
        let next = self.plan.topology.neighbour(port);
        if self.place.hosts.contains(&next) {
            return self.know(port, [vec![port]].into());
        }
        // Static routes can loop. Packets that loop come to a second relay, or climb again.
        if self.open.contains(&port) {
            self.refused = true;
            self.loops += 1;
            return [].into();
        }
        self.open.push(port);
        let (before, mut routes, mut route) = (self.loops, BTreeMap::new(), vec![port]);
        for second in self.spread.outs(self.router, next, self.place) {
            for tail in self.routes(self.spread.out(second)).iter() {
                route.truncate(1);
                route.extend_from_slice(tail);
                if self.of.refuses(&route) {
                    self.refused = true;
                    continue;
                }
                let key = (self.of.queue(&route), self.of.relays(&route).min(2), self.of.climb(&route));
                routes.entry(key).or_insert_with(|| route.clone());
            }
        }
        self.open.pop();
        let routes: Rc<[_]> = routes.into_values().collect();
        // From elsewhere it may be a route without a loop.
        if self.loops == before { self.know(port, routes) } else { routes }
    }

    fn know(&mut self, port: PortId, routes: Rc<[Vec<PortId>]>) -> Rc<[Vec<PortId>]> {
        self.known.insert(port, routes.clone());
        routes
    }
}

/// The queues that the plan's flows fill, on all their routes.
pub fn of_flows(plan: &Plan, of: &dyn OnwardQueues, watch: Watch<'_>) -> Result<Filled, Halt> {
    let (mut filled, paths) = (Filled::new(plan, of), FlowPaths::new(plan));
    each_flow(plan, watch, |flow| filled.flow(of, plan, &paths, flow))?;
    Ok(filled)
}

/// The queues that packets on all routes and the flows with explicit paths fill.
pub fn of_all(
    plan: &Plan,
    of: &dyn OnwardQueues,
    router: &mut Router,
    cx: &Context<'_>,
    watch: Watch<'_>,
) -> Result<Filled, Halt> {
    let (mut filled, paths) = (Filled::new(plan, of), FlowPaths::new(plan));
    cx.explicit.iter().for_each(|&flow| filled.flow(of, plan, &paths, flow));
    let mut spread = Spread::new(plan, &[of.lane()]);
    for (done, place) in cx.places.iter().enumerate() {
        go_on(watch, FOLLOWING, done, cx.places.len())?;
        spread.spread(router, place, &[], &mut |_, _| {});
        filled.spread(of, plan, &mut spread, router, place);
    }
    Ok(filled)
}

pub fn fault(of: &dyn OnwardQueues) -> String {
    format!("the waits of {} form a cycle, which is a bug in xoff", of.scheme())
}

/// Examines every single failure on top of an intact network whose packets fill `known`, like
/// [`crate::failures::examine`]. The second part is what packets do only under a failure: whether they cross a
/// second relay, and whether some routes are refused.
pub fn examine(
    intact: Intact<'_>,
    failures: Failing,
    of: &dyn OnwardQueues,
    known: &Filled,
    watch: Watch<'_>,
) -> Result<(Failures, [bool; 2]), Halt> {
    let plan = intact.plan;
    let (mut second_relay, mut refused) = (false, false);
    let mut under = |failing: &mut Change<'_, '_>| {
        let mut whole = known.clone();
        for place in std::mem::take(&mut failing.places) {
            let under_way = failing.under_way(place, &mut |_, _| {});
            failing.spread.spread(failing.after, place, &under_way, &mut |_, _| {});
            whole.spread(of, plan, failing.spread, failing.after, place);
        }
        second_relay |= whole.second_relay;
        refused |= whole.refused;
        let changes = whole.bits != known.bits;
        Ok((changes, if changes { Some(whole.graph(of)?) } else { None }))
    };
    let found =
        examine_each(intact, failures, &[of.lane()], watch, &mut under, &mut |_| Err(fault(of).into()))?;
    Ok((found, [second_relay && !known.second_relay, refused && !known.refused]))
}
