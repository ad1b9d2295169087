//! PortFC (Cao et al., IEEE Transactions on Networking 2026): which queues packets
//! may fill, and which of them wait for which.
//!
//! Elsewhere a wait follows from one packet: where it leaves by one port and then by
//! the next one, the first waits for the second. Here a port of a switch pauses
//! queues up to two hops away, those of what is going to leave through it, whoever
//! fills its own queues. So first all queues are collected that some packet may
//! fill; and then each of them that can be paused waits for the queues of the set
//! that pauses it (equations 1 and 2):
//!
//! ```text
//!   four-hop queue of a node    ──► the IHFQs of the port that it leads to
//!   two-hop queue of a node     ──► the DDQ of the port that it leads to
//!   IHFQ of a switch            ──► the DDQ of the port, two hops on, that it leads to
//! ```
//!
//! DDQ, RQ and HQ (which acknowledgements, notifications and frames wait in) are
//! never paused and wait for nobody.

use crate::Progress;
use crate::all::{MEMORY, Place, Spread};
use crate::failures::{Context, Failures, Reach, links, with};
use crate::graph::{Edges, Graph, Part, Wait};
use crate::routes::Ways;
use std::collections::BTreeSet;
use std::ops::Range;
use xoff_net::routing::Router;
use xoff_net::topology::PortId;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::FlowControlParams;
use xoff_schemes::flow_control::portfc::PortFcParams;
use xoff_schemes::flow_control::portfc::map::Role;

/// The parameters of a plan under PortFC, `None` of others.
pub fn portfc(plan: &Plan) -> Option<&PortFcParams> {
    match &plan.flow_control {
        FlowControlParams::PortFc(portfc) => Some(portfc),
        _ => None,
    }
}

/// The queue of this number of a port in words: what it is for, and its number.
pub fn queue_name(portfc: &PortFcParams, port: PortId, queue: u16) -> String {
    match portfc.map.role(port, queue) {
        Role::FourHop => format!("four-hop {queue}"),
        Role::TwoHop => format!("two-hop {queue}"),
        Role::Ihfq => format!("ihfq {queue}"),
        Role::Ddq => "ddq".to_string(),
        Role::Relay => "rq".to_string(),
    }
}

/// The port and its queues that queue `queue` of `port` waits for when it is paused;
/// `None` if nothing ever pauses it.
pub fn waits_for(portfc: &PortFcParams, port: PortId, queue: u16) -> Option<(PortId, Range<u16>)> {
    let map = &portfc.map;
    let set = match map.role(port, queue) {
        Role::FourHop => 0..map.n - 1,
        Role::TwoHop => map.n - 1..map.n,
        // Without the relay of signals no frame about a DDQ comes to another switch.
        Role::Ihfq if portfc.variant.no_signal_relay => return None,
        Role::Ihfq => map.n - 1..map.n,
        Role::Ddq | Role::Relay => return None,
    };
    Some((map.leads_to(port, queue)?, set))
}

/// Queues that packets may fill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filled {
    /// Words for each port.
    words: usize,
    /// A bit for each queue of a port.
    bits: Vec<u64>,
    /// Packets may come over a second relay, to queues that nothing can pause for
    /// them: nothing waits for ever for that, but packets may be dropped.
    pub second_relay: bool,
}

impl Filled {
    /// None.
    fn new(plan: &Plan, portfc: &PortFcParams) -> Self {
        let words = usize::from(portfc.map.of_node()).div_ceil(64);
        Self { words, bits: vec![0; words * plan.topology.ports.len()], second_relay: false }
    }

    fn add(&mut self, port: PortId, queue: u16) {
        self.bits[port as usize * self.words + usize::from(queue / 64)] |= 1 << (queue % 64);
    }

    /// Whether packets may fill this queue.
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
    fn flow(&mut self, portfc: &PortFcParams, plan: &Plan, ways: &Ways<'_>, flow: u32) {
        ways.positions(flow, &mut |at, begins| {
            let port = plan.hops[at as usize];
            let relayed = portfc.map.place(port).node && !begins;
            self.add(port, if relayed { portfc.map.relay() } else { portfc.queue_at[at as usize] });
        });
    }

    /// Those that packets to a place fill, which have been spread.
    fn spread(
        &mut self,
        portfc: &PortFcParams,
        plan: &Plan,
        spread: &mut Spread<'_>,
        router: &mut Router,
        place: &Place,
    ) {
        let there = |port: PortId| place.hosts.contains(&plan.topology.neighbour(port));
        for found in 0..spread.found.len() {
            let port = spread.found[found].0;
            if there(port) {
                self.add(port, portfc.map.queue(&[port]));
                continue;
            }
            for second in spread.outs(router, plan.topology.neighbour(port), place) {
                let second = spread.out(second);
                if there(second) {
                    self.add(port, portfc.map.queue(&[port, second]));
                    continue;
                }
                for third in spread.outs(router, plan.topology.neighbour(second), place) {
                    let third = spread.out(third);
                    self.add(port, portfc.map.queue(&[port, second, third]));
                    self.second_relay |= !portfc.map.place(port).node && !there(third);
                }
            }
        }
    }

    /// Who waits for whom among these queues.
    ///
    /// # Errors
    /// They are too many.
    pub fn graph(&self, portfc: &PortFcParams) -> Result<Graph, String> {
        let wait = |(port, queue)| Wait { port, lane: portfc.lane, part: Part::Queue(queue) };
        let waits =
            || self.all().filter_map(|(port, queue)| Some(((port, queue), waits_for(portfc, port, queue)?)));
        let filled = |(port, set): (PortId, Range<u16>)| set.filter(move |&q| self.has(port, q));
        let count: u64 = waits().map(|(_, on)| filled(on).count() as u64).sum();
        // Two numbers of eight bytes for each.
        if count * 16 > MEMORY {
            return Err(format!(
                "the waits of this network would need {} GiB; {} are the most",
                (count * 16) >> 30,
                MEMORY >> 30
            ));
        }
        let mut edges = Edges::default();
        for (from, on) in waits() {
            let port = on.0;
            filled(on).for_each(|queue| edges.add(wait(from), wait((port, queue))));
        }
        Ok(edges.graph())
    }
}

/// The queues that the plan's flows fill, on all their routes; `None` if `watch`,
/// which is told how many flows have been followed, does not want to wait for it.
pub fn of_flows(plan: &Plan, portfc: &PortFcParams, watch: &mut dyn FnMut(usize) -> bool) -> Option<Filled> {
    let (mut filled, ways) = (Filled::new(plan, portfc), Ways::new(plan));
    for flow in 0..plan.flows.len() as u32 {
        if flow.is_multiple_of(1 << 14) && !watch(flow as usize) {
            return None;
        }
        filled.flow(portfc, plan, &ways, flow);
    }
    Some(filled)
}

/// The queues that packets on all routes fill, and those of the flows in `explicit`;
/// `None` if `watch`, which is told how many of how many places are done, does not
/// want to wait.
pub fn of_all(
    plan: &Plan,
    portfc: &PortFcParams,
    router: &mut Router,
    places: &[Place],
    explicit: &[u32],
    watch: &mut dyn FnMut(usize, usize) -> bool,
) -> Option<Filled> {
    let (mut filled, ways) = (Filled::new(plan, portfc), Ways::new(plan));
    explicit.iter().for_each(|&flow| filled.flow(portfc, plan, &ways, flow));
    let mut spread = Spread::new(plan, &[portfc.lane]);
    for (done, place) in places.iter().enumerate() {
        if !watch(done, places.len()) {
            return None;
        }
        spread.spread(router, place, &[], &mut |_, _| {});
        filled.spread(portfc, plan, &mut spread, router, place);
    }
    Some(filled)
}

/// That a circle of waits was found, which PortFC's queues do not allow.
pub fn fault() -> String {
    "PortFC's waits form a circle, which is a fault of this program".to_string()
}

/// Examines every single failure on top of an intact network whose packets fill
/// `intact`, like [`crate::failures::examine`]; `None` if `watch` does not want to
/// wait. The answer's second part tells whether a failure leads packets over a
/// second relay.
///
/// # Errors
/// The network is too large.
#[expect(clippy::too_many_arguments, reason = "as its counterpart for lanes, and the parameters")]
pub fn examine(
    plan: &Plan,
    portfc: &PortFcParams,
    router: &mut Router,
    dead: &BTreeSet<PortId>,
    cx: &Context<'_>,
    intact: &Filled,
    order: &[Wait],
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Option<(Failures, bool)>, String> {
    let places = cx.places;
    let mut spread = Spread::new(plan, &[portfc.lane]);
    let reach = Reach::new(plan, router, cx, &mut spread);
    let links = links(plan, router);
    let mut found = Failures::none_yet(links.len(), order);
    let mut second_relay = false;
    for (done, &link) in links.iter().enumerate() {
        if !watch(Progress { what: "failing links", done, of: links.len() }) {
            return Ok(None);
        }
        let Some((touches, others)) = reach.of(link) else { continue };
        let mut failed = router.without(&with(plan, dead, link));
        let mut whole = intact.clone();
        for place in others {
            let place = &places[place];
            spread.spread(router, place, &[], &mut |_, _| {});
            let gone = [link, plan.topology.ports[link as usize].peer];
            let under_way: Vec<_> = spread.found.iter().copied().filter(|f| !gone.contains(&f.0)).collect();
            spread.spread(&mut failed, place, &under_way, &mut |_, _| {});
            whole.spread(portfc, plan, &mut spread, &mut failed, place);
        }
        second_relay |= whole.second_relay;
        found.changing += usize::from(touches || whole.bits != intact.bits);
        if whole.bits != intact.bits {
            found.orders.push((Some(link), whole.graph(portfc)?.order().ok_or_else(fault)?));
        }
    }
    Ok(Some((found, second_relay)))
}
