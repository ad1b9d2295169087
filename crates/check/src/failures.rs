//! All routes where links or switches fail in addition: those of one [`Cut`] at the same time.
//!
//! A cut changes the routes to a place only if it takes the last next hops of some device on the path;
//! otherwise fewer packets take the same paths. The check examines only such pairs of cuts and places, and
//! all cuts for places that static routes lead to. Under a failure, packets take the new routes from all
//! hosts. Packets that were in flight at the failure continue on the new routes from the device that they
//! reached on the old ones. The waits before, during and after the failure are taken together.

use crate::all::{Matrix, Place, Spread, lanes, matrix};
use crate::certificate::Failing;
use crate::graph::{Graph, Part, Wait};
use crate::routes::{inner, pausable};
use crate::{Halt, Watch, go_on};
use std::collections::{BTreeMap, BTreeSet};
use xoff_kernel::random::Stream;
use xoff_net::routing::Router;
use xoff_net::topology::{NodeId, NodeKind, PortId, Topology};
use xoff_plan::plan::Plan;

pub type At = (PortId, u8);

/// Links, or switches, that fail at the same time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cut {
    /// By the lower of their ports.
    Links(Vec<PortId>),
    Switches(Vec<NodeId>),
}

impl Cut {
    /// Both ports of every link that is down.
    pub fn ports(&self, topology: &Topology) -> BTreeSet<PortId> {
        let of = |node: &NodeId| topology.nodes[*node as usize].ports.clone();
        let near: Vec<PortId> = match self {
            Self::Links(links) => links.clone(),
            Self::Switches(switches) => switches.iter().flat_map(of).collect(),
        };
        near.into_iter().flat_map(|port| [port, topology.ports[port as usize].peer]).collect()
    }

    /// In words: `S0.0:2 - S1.0:0`, or the name of a switch.
    pub fn name(&self, topology: &Topology) -> String {
        let link = |&port: &PortId| {
            format!(
                "{} - {}",
                topology.port_name(port),
                topology.port_name(topology.ports[port as usize].peer)
            )
        };
        let switch = |&node: &NodeId| topology.nodes[node as usize].name.clone();
        let names: Vec<String> = match self {
            Self::Links(links) => links.iter().map(link).collect(),
            Self::Switches(switches) => switches.iter().map(switch).collect(),
        };
        names.join(" and ")
    }

    /// As certificates name it: a port of each link, or the switches.
    pub fn keys(&self, topology: &Topology) -> Vec<String> {
        match self {
            Self::Links(links) => links.iter().map(|&port| topology.port_name(port)).collect(),
            Self::Switches(nodes) => nodes.iter().map(|&n| topology.nodes[n as usize].name.clone()).collect(),
        }
    }
}

/// The cuts of one size, such as all pairs of links.
#[derive(Clone, Debug)]
pub struct Class {
    /// Whether switches fail, and not links.
    pub switches: bool,
    /// How many fail together.
    pub size: u8,
    /// How many such cuts there are.
    pub of: u64,
    /// Those that are examined: all, or a random sample.
    pub cuts: Vec<Cut>,
}

/// Fewest cuts of a class that are examined, if it has so many.
const LEAST_CUTS: u64 = 4_096;
/// Most cuts of a class that are examined, if several fail together.
const MOST_CUTS: u64 = 16_384;
/// Most work on a class with several failures together, in cuts times places times ports.
const CLASS_WORK: u64 = 20_000_000_000;

/// The cuts that are examined: up to so many links, or up to so many switches, at the same time.
pub fn classes(plan: &Plan, router: &Router, places: usize, failures: Failing) -> Vec<Class> {
    let switches = || {
        let all = plan.topology.nodes.len() - plan.topology.relays as usize;
        let is_switch = |&n: &NodeId| plan.topology.nodes[n as usize].kind == NodeKind::Switch;
        (0..all as NodeId).filter(is_switch).collect::<Vec<NodeId>>()
    };
    let work = (places.max(1) * plan.topology.ports.len().max(1)) as u64;
    let most = (CLASS_WORK / work).clamp(LEAST_CUTS, MOST_CUTS);
    let mut classes = Vec::new();
    for (members, most_together, by_switch) in
        [(links(plan, router), failures.links, false), (switches(), failures.switches, true)]
    {
        for size in 1..=most_together.min(members.len().try_into().unwrap_or(u8::MAX)) {
            let of = combinations(members.len() as u64, size.into());
            let chosen = if size == 1 || of <= most {
                all_of(&members, size.into())
            } else {
                sample(plan.seed, &members, size, most)
            };
            let cut = |of: Vec<u32>| if by_switch { Cut::Switches(of) } else { Cut::Links(of) };
            classes.push(Class {
                switches: by_switch,
                size,
                of,
                cuts: chosen.into_iter().map(cut).collect(),
            });
        }
    }
    classes
}

/// The number of choices of `k` of `n`; it saturates.
fn combinations(n: u64, k: u64) -> u64 {
    let mut out: u128 = 1;
    for i in 0..k {
        out = out.saturating_mul(u128::from(n.saturating_sub(i))) / u128::from(i + 1);
    }
    u64::try_from(out).unwrap_or(u64::MAX)
}

/// All choices of `k` members, in order.
fn all_of(members: &[u32], k: usize) -> Vec<Vec<u32>> {
    if k == 0 {
        return vec![Vec::new()];
    }
    let mut out = Vec::new();
    for (i, &first) in members.iter().enumerate() {
        for rest in all_of(&members[i + 1..], k - 1) {
            out.push(std::iter::once(first).chain(rest).collect());
        }
    }
    out
}

/// `most` different choices of `k` members at random.
fn sample(seed: u64, members: &[u32], k: u8, most: u64) -> Vec<Vec<u32>> {
    let mut draw = Stream::new(seed, "failures that are examined", k.into());
    let mut chosen: BTreeSet<Vec<u32>> = BTreeSet::new();
    while (chosen.len() as u64) < most {
        let mut cut: BTreeSet<u32> = BTreeSet::new();
        while cut.len() < usize::from(k) {
            cut.insert(members[draw.below(members.len() as u64) as usize]);
        }
        chosen.insert(cut.into_iter().collect());
    }
    chosen.into_iter().collect()
}

#[derive(Clone, Debug)]
pub struct Failures {
    /// What was examined, class by class; without its cuts.
    pub classes: Vec<(Class, usize)>,
    /// How many of the cuts change some route.
    pub changing: usize,
    /// Cuts that make a cycle of waits possible.
    pub cyclic: Vec<Cut>,
    /// A cut with a cycle, and its graph; of several, one whose cycle lasts.
    pub worst: Option<Worst>,
    /// If there is none: orders of all waits, in the intact network, then under cuts that need another.
    pub orders: Vec<(Option<Cut>, Vec<Wait>)>,
}

/// Which places a cut can change routes to.
struct Reach {
    /// The next hops of a device to a place, where these are so few that a cut may take all: by their links, or by the
    /// devices that they lead to.
    by_links: Index<PortId>,
    by_switches: Index<NodeId>,
    /// Places of hosts with static routes. These stay when the distances change beneath
    /// them, so that a failure may change next hops anywhere, also where none is lost.
    apart: Vec<usize>,
}

/// Sets of things, and for each thing the sets that contain it.
struct Index<T> {
    /// Of each set, its place and its size.
    sets: Vec<(usize, usize)>,
    of: BTreeMap<T, Vec<usize>>,
}

impl<T: Ord + Copy> Index<T> {
    fn new() -> Self {
        Self { sets: Vec::new(), of: BTreeMap::new() }
    }

    fn add(&mut self, place: usize, set: &BTreeSet<T>) {
        set.iter().for_each(|&thing| self.of.entry(thing).or_default().push(self.sets.len()));
        self.sets.push((place, set.len()));
    }

    /// The places of the sets that `things` contain.
    fn within(&self, things: &[T]) -> BTreeSet<usize> {
        let mut met: BTreeMap<usize, usize> = BTreeMap::new();
        for set in things.iter().filter_map(|thing| self.of.get(thing)).flatten() {
            *met.entry(*set).or_default() += 1;
        }
        met.iter().filter(|&(&set, &n)| self.sets[set].1 == n).map(|(&set, _)| self.sets[set].0).collect()
    }
}

impl Reach {
    fn new(plan: &Plan, router: &mut Router, cx: &Context<'_>, spread: &mut Spread, most: Failing) -> Self {
        let fixed = |place: &Place| place.hosts.iter().any(|host| cx.apart.contains(host));
        let apart = (0..cx.places.len()).filter(|&i| fixed(&cx.places[i])).collect();
        let mut reach = Self { by_links: Index::new(), by_switches: Index::new(), apart };
        let topology = &plan.topology;
        for (index, place) in cx.places.iter().enumerate() {
            spread.spread(router, place, &[], &mut |_, _| {});
            let mut known: BTreeSet<BTreeSet<PortId>> = BTreeSet::new();
            for outs in spread.next_hops() {
                let links: BTreeSet<PortId> =
                    outs.iter().map(|&port| port.min(topology.ports[port as usize].peer)).collect();
                let towards: BTreeSet<NodeId> = outs.iter().map(|&port| topology.neighbour(port)).collect();
                if links.len() <= most.links.into() && known.insert(links.clone()) {
                    reach.by_links.add(index, &links);
                }
                if towards.len() <= most.switches.into() {
                    reach.by_switches.add(index, &towards);
                }
            }
        }
        reach
    }

    /// Whether the cut takes a device's last next hops to a place, and the places that it concerns.
    fn of(&self, cut: &Cut) -> Option<(bool, BTreeSet<usize>)> {
        let mut places = match cut {
            Cut::Links(links) => self.by_links.within(links),
            Cut::Switches(switches) => self.by_switches.within(switches),
        };
        let touches = !places.is_empty();
        places.extend(&self.apart);
        (!places.is_empty()).then_some((touches, places))
    }
}

/// A cut under which waits may form a cycle.
#[derive(Clone, Debug)]
pub struct Worst {
    pub cut: Cut,
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

/// The network as a cut happens.
pub struct Change<'a, 'p> {
    /// The ports of the links that are down.
    pub gone: &'a BTreeSet<PortId>,
    /// Places that packets may go to by other routes.
    pub places: Vec<&'a Place>,
    /// The routes before …
    pub before: &'a mut Router,
    /// … and after.
    pub after: &'a mut Router,
    pub spread: &'a mut Spread<'p>,
}

impl Change<'_, '_> {
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

/// Whether a cut changes steps of packets, and the waits under it if the intact order does not hold.
type Changed = (bool, Option<Graph>);

/// Examines up to so many failures. Packets have `lanes`. `under` returns the changes of a cut, `steady` the waits of
/// the routes around it.
pub fn examine_each(
    intact: Intact<'_>,
    failures: Failing,
    lanes: &[u8],
    watch: Watch<'_>,
    under: &mut dyn FnMut(&mut Change<'_, '_>) -> Result<Changed, Halt>,
    steady: &mut dyn FnMut(&mut Router) -> Result<Graph, Halt>,
) -> Result<Failures, Halt> {
    let Intact { plan, router, dead, context: cx, order } = intact;
    let mut spread = Spread::new(plan, lanes);
    let reach = Reach::new(plan, router, cx, &mut spread, failures);
    let orders = vec![(None, order.to_vec())];
    let mut found = Failures { classes: Vec::new(), changing: 0, cyclic: Vec::new(), worst: None, orders };
    for mut class in classes(plan, router, cx.places.len(), failures) {
        let what = if class.switches { "examining failed switches" } else { "examining failed links" };
        let cuts = std::mem::take(&mut class.cuts);
        let examined = cuts.len();
        for (done, cut) in cuts.into_iter().enumerate() {
            go_on(watch, what, done, examined)?;
            let Some((touches, others)) = reach.of(&cut) else { continue };
            let gone = cut.ports(&plan.topology);
            let mut failed = router.without(&dead.union(&gone).copied().collect());
            let (changes, graph) = under(&mut Change {
                gone: &gone,
                places: others.into_iter().map(|place| &cx.places[place]).collect(),
                before: router,
                after: &mut failed,
                spread: &mut spread,
            })?;
            found.changing += usize::from(touches || changes);
            let Some(graph) = graph else { continue };
            match graph.order() {
                Some(order) => found.orders.push((Some(cut), order)),
                None => {
                    let lasts = found.worst.as_ref().is_some_and(|w| w.lasting);
                    if !lasts && found.cyclic.len() < SEARCHED {
                        let steady = steady(&mut failed)?;
                        let lasting = steady.order().is_none();
                        if lasting || found.worst.is_none() {
                            let graph = if lasting { steady } else { graph };
                            found.worst = Some(Worst { cut: cut.clone(), graph, lasting });
                        }
                    }
                    found.cyclic.push(cut);
                }
            }
        }
        found.classes.push((class, examined));
    }
    if !found.cyclic.is_empty() {
        found.orders.clear();
    }
    Ok(found)
}

/// The same of pauses that stop lanes.
pub fn examine(
    intact: Intact<'_>,
    failures: Failing,
    known: &Matrix,
    watch: Watch<'_>,
) -> Result<Failures, Halt> {
    let (plan, cx, ranks) = (intact.plan, *intact.context, Ranks::new(intact.order));
    let mut under = |failing: &mut Change<'_, '_>| {
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
    examine_each(intact, failures, &lanes(plan), watch, &mut under, &mut steady)
}
