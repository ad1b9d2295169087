//! All routes where any single link fails in addition.
//!
//! A failure changes the routes to a place only if it takes the last next hop of
//! some device on the way there; else fewer packets take the same ways. Only such
//! pairs of links and places are looked at, and all links for places that static
//! routes lead to. Under a failure, packets take the new
//! routes from all hosts; and those that were under way when it happened go on by
//! the new routes from wherever the old ones had brought them. What waits before,
//! during and after is taken together.

use crate::Progress;
use crate::all::{Matrix, Place, Spread, lanes, matrix};
use crate::graph::{Graph, Part, Wait};
use crate::routes::{inner, pausable};
use std::collections::{BTreeMap, BTreeSet};
use xoff_net::routing::Router;
use xoff_net::topology::{NodeId, PortId};
use xoff_plan::plan::Plan;

/// A step of packets: out by the first port, in its lane, and then by the second.
type Step = ((PortId, u8), (PortId, u8));

/// What single failures do.
#[derive(Clone, Debug)]
pub struct Failures {
    /// Links whose failure was examined.
    pub examined: usize,
    /// Those of them that change some route.
    pub changing: usize,
    /// Links, by one port each, whose failure makes a cycle of waits possible.
    pub cyclic: Vec<PortId>,
    /// A failure with a cycle, and its graph; of several, one whose cycle lasts.
    pub worst: Option<Worst>,
    /// If there is none: orders of all waits, first in the intact network, then
    /// under each failure under which that one does not hold.
    pub orders: Vec<(Option<PortId>, Vec<Wait>)>,
}

impl Failures {
    /// None of `links` has been examined yet; `order` is that of the intact network.
    pub fn none_yet(links: usize, order: &[Wait]) -> Self {
        let orders = vec![(None, order.to_vec())];
        Self { examined: links, changing: 0, cyclic: Vec::new(), worst: None, orders }
    }
}

/// Which places the failure of a link can change routes to.
pub struct Reach {
    touched: BTreeMap<PortId, BTreeSet<usize>>,
    /// Places of hosts with static routes. These stay when the distances change beneath
    /// them, so that a failure may change next hops anywhere, also where none is lost.
    apart: Vec<usize>,
}

impl Reach {
    /// That of every link.
    pub fn new(plan: &Plan, router: &mut Router, cx: &Context<'_>, spread: &mut Spread) -> Self {
        let fixed = |place: &Place| place.hosts.iter().any(|host| cx.apart.contains(host));
        let apart = (0..cx.places.len()).filter(|&i| fixed(&cx.places[i])).collect();
        Self { touched: touched(plan, router, cx.places, spread), apart }
    }

    /// Whether `link` is some device's last next hop to a place, and the places to look at
    /// when it fails; `None` if there is none.
    pub fn of(&self, link: PortId) -> Option<(bool, BTreeSet<usize>)> {
        let around = self.touched.get(&link);
        let places = around.into_iter().flatten().chain(&self.apart).copied();
        (around.is_some() || !self.apart.is_empty()).then(|| (around.is_some(), places.collect()))
    }
}

/// A failure under which waits may form a cycle.
#[derive(Clone, Debug)]
pub struct Worst {
    /// A port of the link.
    pub link: PortId,
    /// The waits under it.
    pub graph: Graph,
    /// Whether the routes around the failure make the cycle, rather than packets
    /// that are under way when it happens.
    pub lasting: bool,
}

/// What is known of the intact network beside its routes.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub places: &'a [Place],
    /// Hosts to which static routes lead.
    pub apart: &'a BTreeSet<NodeId>,
    /// Flows with explicit paths.
    pub explicit: &'a [u32],
}

/// Most failures with a cycle that are searched for one that lasts.
pub const SEARCHED: usize = 16;

/// The links that are up, by the lower of their ports, that a failure can take
/// without cutting a host off.
pub fn links(plan: &Plan, router: &Router) -> Vec<PortId> {
    let topology = &plan.topology;
    let lone = |port: PortId| {
        let node = topology.ports[port as usize].node;
        let outer =
            topology.nodes[node as usize].ports.iter().filter(|&&p| !inner(plan, p) && router.alive(p));
        (node as usize) < topology.hosts().count() && outer.count() == 1
    };
    (0..topology.ports.len() as PortId)
        .filter(|&p| p < topology.ports[p as usize].peer && !inner(plan, p) && router.alive(p))
        .filter(|&p| !lone(p) && !lone(topology.ports[p as usize].peer))
        .collect()
}

/// Examines every single failure on top of an intact network whose waits have an
/// order; `None` if `watch` does not want to wait.
///
/// # Errors
/// The network is too large.
pub fn examine(
    plan: &Plan,
    router: &mut Router,
    dead: &BTreeSet<PortId>,
    cx: &Context<'_>,
    intact: &Matrix,
    order: &[Wait],
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Option<Failures>, String> {
    let places = cx.places;
    let mut spread = Spread::new(plan, &lanes(plan));
    let reach = Reach::new(plan, router, cx, &mut spread);
    let rank: BTreeMap<Wait, usize> = order.iter().zip(0..).map(|(&w, n)| (w, n)).collect();
    let links = links(plan, router);
    let mut found = Failures::none_yet(links.len(), order);
    for (done, &link) in links.iter().enumerate() {
        if !watch(Progress { what: "failing links", done, of: links.len() }) {
            return Ok(None);
        }
        let Some((touches, others)) = reach.of(link) else { continue };
        let mut failed = router.without(&with(plan, dead, link));
        let mut new: BTreeSet<Step> = BTreeSet::new();
        for place in others {
            new.extend(steps(plan, router, &mut failed, &places[place], link, &mut spread, intact));
        }
        found.changing += usize::from(touches || !new.is_empty());
        let rank = |(port, lane): (PortId, u8)| rank.get(&Wait { port, lane, part: Part::Whole });
        let forwards = |step: &Step| matches!((rank(step.0), rank(step.1)), (Some(a), Some(b)) if a < b);
        if new.iter().all(forwards) {
            continue;
        }
        let mut whole = intact.clone();
        for &(from, to) in &new {
            whole.set(&plan.topology, from, to);
        }
        let graph = whole.graph(&plan.topology);
        match graph.order() {
            Some(order) => found.orders.push((Some(link), order)),
            None => {
                found.cyclic.push(link);
                let lasts = found.worst.as_ref().is_some_and(|w| w.lasting);
                if !lasts && found.cyclic.len() <= SEARCHED {
                    let steady = matrix(plan, &mut failed, places, cx.explicit, &mut |_, _| true)?;
                    let steady = steady.expect("nobody ended it").graph(&plan.topology);
                    if steady.order().is_none() {
                        found.worst = Some(Worst { link, graph: steady, lasting: true });
                    } else if found.worst.is_none() {
                        found.worst = Some(Worst { link, graph, lasting: false });
                    }
                }
            }
        }
    }
    if !found.cyclic.is_empty() {
        found.orders.clear();
    }
    Ok(Some(found))
}

/// What is down, and a link in addition.
pub fn with(plan: &Plan, dead: &BTreeSet<PortId>, link: PortId) -> BTreeSet<PortId> {
    dead.iter().copied().chain([link, plan.topology.ports[link as usize].peer]).collect()
}

/// The links that are some device's last next hop to a place, with these places.
fn touched(
    plan: &Plan,
    router: &mut Router,
    places: &[Place],
    spread: &mut Spread<'_>,
) -> BTreeMap<PortId, BTreeSet<usize>> {
    let mut touched: BTreeMap<PortId, BTreeSet<usize>> = BTreeMap::new();
    for (index, place) in places.iter().enumerate() {
        spread.spread(router, place, &[], &mut |_, _| {});
        for port in spread.last_hops() {
            touched.entry(port.min(plan.topology.ports[port as usize].peer)).or_default().insert(index);
        }
    }
    touched
}

/// The steps towards a place under a failure that nothing takes in the intact network.
fn steps(
    plan: &Plan,
    router: &mut Router,
    failed: &mut Router,
    place: &Place,
    link: PortId,
    spread: &mut Spread<'_>,
    intact: &Matrix,
) -> Vec<Step> {
    spread.spread(router, place, &[], &mut |_, _| {});
    let peer = plan.topology.ports[link as usize].peer;
    let under_way: Vec<(PortId, u8)> =
        spread.found.iter().copied().filter(|&(port, _)| port != link && port != peer).collect();
    let mut new = Vec::new();
    spread.spread(failed, place, &under_way, &mut |from, to| {
        if pausable(plan, from.1) && pausable(plan, to.1) && !intact.has(&plan.topology, from, to) {
            new.push((from, to));
        }
    });
    new
}
