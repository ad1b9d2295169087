//! All routes where any single link fails in addition.
//!
//! A failure changes the routes to a place only if it takes the last next hop of some device on the path;
//! otherwise fewer packets take the same paths. The check examines only such pairs of links and places, and
//! all links for places that static routes lead to. Under a failure, packets take the new routes from all
//! hosts. Packets that were in flight at the failure continue on the new routes from the device that they
//! reached on the old ones. The waits before, during and after the failure are taken together.

use crate::all::{Matrix, Place, Spread, lanes, matrix};
use crate::graph::{Graph, Part, Wait};
use crate::routes::{inner, pausable};
use crate::{Halt, Watch, go_on};
use std::collections::{BTreeMap, BTreeSet};
use xoff_net::routing::Router;
use xoff_net::topology::{NodeId, PortId};
use xoff_plan::plan::Plan;

pub type At = (PortId, u8);

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
    /// If there is none: orders of all waits, in the intact network, then under failures that need another.
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
    pub fn new(plan: &Plan, router: &mut Router, cx: &Context<'_>, spread: &mut Spread) -> Self {
        let fixed = |place: &Place| place.hosts.iter().any(|host| cx.apart.contains(host));
        let apart = (0..cx.places.len()).filter(|&i| fixed(&cx.places[i])).collect();
        Self { touched: touched(plan, router, cx.places, spread), apart }
    }

    /// Whether `link` is a device's last next hop to a place, and the places that its failure concerns.
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
    pub graph: Graph,
    /// Whether the routes around the failure make the cycle, not only packets in flight.
    pub lasting: bool,
}

/// Properties of the intact network beside its routes.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub places: &'a [Place],
    /// Hosts to which static routes lead.
    pub apart: &'a BTreeSet<NodeId>,
    pub explicit: &'a [u32],
}

/// Most failures with a cycle that are searched for one that lasts.
const SEARCHED: usize = 16;

/// The links that are up, by the lower of their ports, that a failure can take without cutting a host off.
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

pub struct Failing<'a, 'p> {
    pub gone: [PortId; 2],
    /// Places that packets may go to by other routes.
    pub places: Vec<&'a Place>,
    /// The routes before …
    pub before: &'a mut Router,
    /// … and after.
    pub after: &'a mut Router,
    pub spread: &'a mut Spread<'p>,
}

impl Failing<'_, '_> {
    /// Calls `visit` with the steps of the old routes to a place, where packets are in flight.
    pub fn under_way(&mut self, place: &Place, visit: &mut impl FnMut(At, At)) -> Vec<At> {
        self.spread.spread(self.before, place, &[], visit);
        self.spread.found.iter().copied().filter(|(port, _)| !self.gone.contains(port)).collect()
    }
}

/// The positions of the waits in an order.
pub struct Ranks(BTreeMap<Wait, usize>);

impl Ranks {
    pub fn new(order: &[Wait]) -> Self {
        Self(order.iter().copied().zip(0..).collect())
    }

    /// Whether both are in the order, `from` before `to`.
    pub fn forwards(&self, from: Wait, to: Wait) -> bool {
        matches!((self.0.get(&from), self.0.get(&to)), (Some(a), Some(b)) if a < b)
    }
}

/// The intact network: its routes, the links that are down, and an order of its waits.
pub struct Intact<'a> {
    pub plan: &'a Plan,
    pub router: &'a mut Router,
    pub dead: &'a BTreeSet<PortId>,
    pub context: &'a Context<'a>,
    pub order: &'a [Wait],
}

/// Whether a failure changes steps of packets, and the waits under it if the intact order does not hold.
type Change = (bool, Option<Graph>);

/// Examines every single failure, with packets of `lanes`. `under` returns the changes, `steady` the waits of
/// the routes around the failure.
pub fn examine_each(
    intact: Intact<'_>,
    lanes: &[u8],
    watch: Watch<'_>,
    under: &mut dyn FnMut(&mut Failing<'_, '_>) -> Result<Change, Halt>,
    steady: &mut dyn FnMut(&mut Router) -> Result<Graph, Halt>,
) -> Result<Failures, Halt> {
    let Intact { plan, router, dead, context: cx, order } = intact;
    let mut spread = Spread::new(plan, lanes);
    let reach = Reach::new(plan, router, cx, &mut spread);
    let links = links(plan, router);
    let mut found = Failures::none_yet(links.len(), order);
    for (done, &link) in links.iter().enumerate() {
        go_on(watch, "examining failed links", done, links.len())?;
        let Some((touches, others)) = reach.of(link) else { continue };
        let mut failed = router.without(&with(plan, dead, link));
        let (changes, graph) = under(&mut Failing {
            gone: [link, plan.topology.ports[link as usize].peer],
            places: others.into_iter().map(|place| &cx.places[place]).collect(),
            before: router,
            after: &mut failed,
            spread: &mut spread,
        })?;
        found.changing += usize::from(touches || changes);
        let Some(graph) = graph else { continue };
        match graph.order() {
            Some(order) => found.orders.push((Some(link), order)),
            None => {
                found.cyclic.push(link);
                let lasts = found.worst.as_ref().is_some_and(|w| w.lasting);
                if !lasts && found.cyclic.len() <= SEARCHED {
                    let steady = steady(&mut failed)?;
                    let lasting = steady.order().is_none();
                    if lasting || found.worst.is_none() {
                        let graph = if lasting { steady } else { graph };
                        found.worst = Some(Worst { link, graph, lasting });
                    }
                }
            }
        }
    }
    if !found.cyclic.is_empty() {
        found.orders.clear();
    }
    Ok(found)
}

/// The same of pauses that stop lanes.
pub fn examine(intact: Intact<'_>, known: &Matrix, watch: Watch<'_>) -> Result<Failures, Halt> {
    let (plan, cx, ranks) = (intact.plan, *intact.context, Ranks::new(intact.order));
    let mut under = |failing: &mut Failing<'_, '_>| {
        let mut new: BTreeSet<(At, At)> = BTreeSet::new();
        for place in std::mem::take(&mut failing.places) {
            let under_way = failing.under_way(place, &mut |_, _| {});
            failing.spread.spread(failing.after, place, &under_way, &mut |from, to| {
                if pausable(plan, from.1) && pausable(plan, to.1) && !known.has(&plan.topology, from, to) {
                    new.insert((from, to));
                }
            });
        }
        let wait = |(port, lane): At| Wait { port, lane, part: Part::Whole };
        if new.iter().all(|&(from, to)| ranks.forwards(wait(from), wait(to))) {
            return Ok((!new.is_empty(), None));
        }
        let mut whole = known.clone();
        new.iter().for_each(|&(from, to)| whole.set(&plan.topology, from, to));
        Ok((true, Some(whole.graph(&plan.topology))))
    };
    let mut steady =
        |failed: &mut Router| Ok(matrix(plan, failed, &cx, &mut |_| true)?.graph(&plan.topology));
    examine_each(intact, &lanes(plan), watch, &mut under, &mut steady)
}

/// The ports that are down, and one more link.
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
