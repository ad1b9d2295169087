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
use std::ops::Range;
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
}

impl Filled {
    fn new(plan: &Plan, of: &dyn OnwardQueues) -> Self {
        let words = usize::from(of.of_host()).div_ceil(64);
        Self { words, bits: vec![0; words * plan.topology.ports.len()], second_relay: false }
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
        let there = |port: PortId| place.hosts.contains(&plan.topology.neighbour(port));
        for found in 0..spread.found.len() {
            let port = spread.found[found].0;
            if there(port) {
                self.add(port, of.queue(&[port]));
                continue;
            }
            for second in spread.outs(router, plan.topology.neighbour(port), place) {
                let second = spread.out(second);
                if there(second) {
                    self.add(port, of.queue(&[port, second]));
                    continue;
                }
                for third in spread.outs(router, plan.topology.neighbour(second), place) {
                    let third = spread.out(third);
                    self.add(port, of.queue(&[port, second, third]));
                    self.second_relay |= !of.at_host(port) && !there(third);
                }
            }
        }
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
/// [`crate::failures::examine`]. The second part is whether a failure leads packets over a second relay.
pub fn examine(
    intact: Intact<'_>,
    failures: Failing,
    of: &dyn OnwardQueues,
    known: &Filled,
    watch: Watch<'_>,
) -> Result<(Failures, bool), Halt> {
    let plan = intact.plan;
    let mut second_relay = false;
    let mut under = |failing: &mut Change<'_, '_>| {
        let mut whole = known.clone();
        for place in std::mem::take(&mut failing.places) {
            let under_way = failing.under_way(place, &mut |_, _| {});
            failing.spread.spread(failing.after, place, &under_way, &mut |_, _| {});
            whole.spread(of, plan, failing.spread, failing.after, place);
        }
        second_relay |= whole.second_relay;
        let changes = whole.bits != known.bits;
        Ok((changes, if changes { Some(whole.graph(of)?) } else { None }))
    };
    let found =
        examine_each(intact, failures, &[of.lane()], watch, &mut under, &mut |_| Err(fault(of).into()))?;
    Ok((found, second_relay))
}
