//! Routing: which ports a flow crosses.
//!
//! A [`Router`] copies its data from a topology, so the topology may grow afterwards (inner ports). Distances
//! are found when first needed, one search per attachment switch instead of one per host; on an NDC they
//! follow from the addresses and nothing is stored.

mod hash;
mod load;
mod non_minimal;
mod route;
#[cfg(test)]
mod tests;
mod tree;

pub use hash::HashKind;
pub use load::{Saturation, host_capacity, saturation, uniform};
pub use route::{Ends, Route, RouteError};

use crate::error::SpecError;
use crate::import::roles::tiers;
use crate::topology::{Cube, Groups, Node, NodeId, NodeKind, PortId, Topology, Torus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use xoff_kernel::random::Stream;

/// The usual time to live of a packet in links, as IPv4 stacks commonly set it.
pub const TTL: u8 = 64;

#[derive(Clone, Copy, Debug)]
pub struct RoutingSpec {
    pub kind: RoutingKind,
    /// How a flow is mapped to one of several equal-cost paths.
    pub hash: HashKind,
    /// Every node's hash seed is derived from this one.
    pub seed: u64,
    /// Links that a packet may cross. A packet whose route loops is dropped after so many.
    pub ttl: u8,
}

/// A routing algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RoutingKind {
    /// Shortest paths. Each node of the path chooses among equal-cost next hops by its own hash of
    /// the flow (ECMP).
    #[default]
    ShortestPath,
    /// BCube's source routing, only for NDC. The source chooses the order in which differing digits
    /// of the addresses are corrected, by its hash of the flow. Each correction is a hop over one
    /// switch to the next host.
    Bcube,
    /// Only for tori: along the row to the destination's column, then along the column, each in the
    /// shorter direction. If both directions are equally long (half of an even dimension), the hash
    /// of the flow chooses.
    DimensionOrder,
    /// Only for dragonflies, where it is the default: over one link at most between groups. A packet goes to a switch
    /// of its group with a link to the destination's group, over that link, and to the destination's switch. After
    /// failures hosts may have no route although a path exists.
    Dragonfly,
    /// As BGP between tiers routes: first up, then at most one link within a tier, then down, and never
    /// up again. A device with routes of several of these kinds takes those down, else within its tier,
    /// else up; of one kind, the shortest (ECMP). `routing.tiers` sets the tiers. After failures hosts may
    /// have no route although a path exists.
    ValleyFree,
    /// Up*/down* routing (Autonet): as `valley-free`, with the tiers of a tree of shortest paths from one switch,
    /// `routing.root`. It needs no tiers in the network, and no cycle of waits can form.
    UpDown,
}

impl RoutingKind {
    /// As scenarios call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ShortestPath => "shortest-path",
            Self::Bcube => "bcube",
            Self::DimensionOrder => "dimension-order",
            Self::Dragonfly => "dragonfly",
            Self::ValleyFree => "valley-free",
            Self::UpDown => "up-down",
        }
    }

    /// Whether paths go up, then down.
    pub fn has_tiers(self) -> bool {
        matches!(self, Self::ValleyFree | Self::UpDown)
    }
}

/// A static route: at node `at`, packets to `to` leave by the links to the
/// neighbour `via`. Several for one `at` and `to` share the flows by hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Override {
    pub at: NodeId,
    pub to: NodeId,
    pub via: NodeId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Link {
    port: PortId,
    to: NodeId,
}

#[derive(Clone, Debug)]
pub struct Router {
    kind: RoutingKind,
    hash: HashKind,
    ttl: usize,
    names: Vec<String>,
    /// Whether the node forwards packets that are not its own.
    relays: Vec<bool>,
    /// `links[first[n]..first[n + 1]]` leave node `n`, in the order of its ports.
    first: Vec<u32>,
    links: Vec<Link>,
    /// By port.
    peers: Vec<PortId>,
    /// By port, bits per second.
    rates: Vec<u64>,
    /// By node, for its hash.
    seeds: Vec<u64>,
    cube: Option<Cube>,
    /// Set where dimensions are kept in order.
    torus: Option<Torus>,
    /// Set where packets go over one link at most between groups.
    groups: Option<Groups>,
    /// By node, set where paths go up, then down: hosts that do not relay have 0.
    tiers: Vec<u32>,
    /// By destination, then by node.
    overrides: BTreeMap<(NodeId, NodeId), Vec<Link>>,
    /// By root, where it was needed: each node's distance in links, with its [`Leg`] where they depend on tiers.
    distances: Vec<Option<Arc<[u32]>>>,
    /// By port, whether its link is down; empty in the intact network.
    dead: Vec<bool>,
    /// Memory for the next hops of a node, so that a route takes none for each.
    found: Vec<Link>,
}

/// A destination: every path to `to` ends with `root`, `extra` links before.
#[derive(Clone, Copy, Debug)]
struct Target {
    to: NodeId,
    root: NodeId,
    extra: u32,
}

/// In [`Router::distances`]: no path.
const UNREACHED: u32 = u32::MAX;
/// In [`Router::distances`]: the bits of the distance; those above it have the leg.
const LENGTH: u32 = (1 << LEG) - 1;
const LEG: u32 = 30;

/// The next link of a valley-free path, in the order of preference.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leg {
    Down = 0,
    Within = 1,
    Up = 2,
}

impl Leg {
    fn of(distance: u32) -> Self {
        match distance >> LEG {
            0 => Self::Down,
            1 => Self::Within,
            _ => Self::Up,
        }
    }
}

impl Router {
    pub fn new(topology: &Topology, spec: &RoutingSpec, overrides: &[Override]) -> Result<Self, SpecError> {
        let nodes = topology.nodes.len();
        let mut first = Vec::with_capacity(nodes + 1);
        let mut links = Vec::with_capacity(topology.ports.len());
        for (id, node) in topology.nodes.iter().enumerate() {
            first.push(links.len() as u32);
            for &port in &node.ports {
                let to = topology.neighbour(port);
                // Inner ports of a device lead nowhere.
                if to as usize != id {
                    links.push(Link { port, to });
                }
            }
        }
        first.push(links.len() as u32);
        let relays = |node: &Node| node.kind == NodeKind::Switch || topology.relay_hosts;
        let mut router = Self {
            kind: spec.kind,
            hash: spec.hash,
            ttl: usize::from(spec.ttl),
            names: topology.nodes.iter().map(|node| node.name.clone()).collect(),
            relays: topology.nodes.iter().map(relays).collect(),
            first,
            links,
            peers: topology.ports.iter().map(|port| port.peer).collect(),
            rates: topology.ports.iter().map(|port| port.rate).collect(),
            seeds: (0..nodes as u64).map(|node| Stream::new(spec.seed, "ECMP seeds", node).bits()).collect(),
            cube: topology.cube,
            torus: topology.torus.filter(|_| spec.kind == RoutingKind::DimensionOrder),
            groups: topology.groups.filter(|_| spec.kind == RoutingKind::Dragonfly),
            tiers: match spec.kind {
                RoutingKind::ValleyFree => tiers(topology),
                RoutingKind::UpDown => tree::tiers(topology, None),
                _ => Vec::new(),
            },
            overrides: BTreeMap::new(),
            distances: vec![None; nodes],
            dead: Vec::new(),
            found: Vec::new(),
        };
        if spec.kind == RoutingKind::Bcube {
            if router.cube.is_none() {
                let help = "write kind = \"shortest-path\", or choose the topology `ndc`, or `rail-only` with `domains` equal to `n`";
                return Err(SpecError::new("kind", "BCube routing requires the addresses of an NDC", help));
            }
            if !overrides.is_empty() {
                let message =
                    "BCube routing is incompatible with static overrides: the source sets the route";
                let help = "write kind = \"shortest-path\", or remove the overrides";
                return Err(SpecError::new("kind", message, help));
            }
        }
        if spec.kind == RoutingKind::DimensionOrder && router.torus.is_none() {
            let help = "write kind = \"shortest-path\", or choose the topology `torus-2d`";
            return Err(SpecError::new("kind", "dimension-order routing requires rows and columns", help));
        }
        if spec.kind == RoutingKind::Dragonfly && router.groups.is_none() {
            let help = "write kind = \"shortest-path\", or choose the topology `dragonfly`";
            return Err(SpecError::new("kind", "dragonfly routing requires groups of switches", help));
        }
        for (i, entry) in overrides.iter().enumerate() {
            if topology.nodes[entry.to as usize].kind == NodeKind::Switch {
                let message = format!("{} is a switch: only hosts receive packets", router.name(entry.to));
                return Err(SpecError::new(
                    format!("overrides[{i}].to"),
                    message,
                    "write the name of a host",
                ));
            }
            router.add_override(i, entry)?;
        }
        Ok(router)
    }

    /// The same with other tiers: of each node, hosts having 0. By default the tier is the number of links to the
    /// nearest host.
    pub fn with_tiers(self, tiers: Vec<u32>) -> Self {
        Self { tiers, distances: vec![None; self.distances.len()], ..self }
    }

    /// The same with the tree of another switch, of up-down routing.
    pub fn with_root(self, topology: &Topology, root: NodeId) -> Self {
        self.with_tiers(tree::tiers(topology, Some(root)))
    }

    fn add_override(&mut self, i: usize, entry: &Override) -> Result<(), SpecError> {
        let &Override { at, to, via } = entry;
        let name = |node: NodeId| &self.names[node as usize];
        if at == to {
            let message = format!("{} is the destination itself", name(at));
            let help = "write another node of the path";
            return Err(SpecError::new(format!("overrides[{i}].at"), message, help));
        }
        let links: Vec<Link> = self.links(at).iter().copied().filter(|link| link.to == via).collect();
        if links.is_empty() {
            let mut near: Vec<&str> = self.links(at).iter().map(|link| name(link.to).as_str()).collect();
            near.dedup();
            near.truncate(16);
            let message = format!("{} is not a neighbour of {}", name(via), name(at));
            let help = format!("its neighbours are {}", near.join(", "));
            return Err(SpecError::new(format!("overrides[{i}].via"), message, help));
        }
        if via != to && !self.relays[via as usize] {
            let message = format!("{} is a host that does not relay", name(via));
            let help = "write a switch, or the destination";
            return Err(SpecError::new(format!("overrides[{i}].via"), message, help));
        }
        let chosen = self.overrides.entry((to, at)).or_default();
        if !chosen.iter().any(|link| link.to == via) {
            chosen.extend(links);
        }
        Ok(())
    }

    /// The ports by which packets to `to` may leave `at`: those of the overrides, or all on shortest paths.
    /// Empty at `to` itself and where no path leads there.
    pub fn next_hops(&mut self, at: NodeId, to: NodeId) -> Vec<PortId> {
        let target = self.target(to);
        let mut links = Vec::new();
        self.choices(at, &target, &mut links);
        links.iter().map(|link| link.port).collect()
    }

    /// Length of the shortest path in links, overrides not counted; `None` where there is no path.
    pub fn distance(&mut self, from: NodeId, to: NodeId) -> Option<u32> {
        let target = self.target(to);
        let distance = self.distance_to(from, &target);
        (distance != UNREACHED).then_some(distance)
    }

    /// The same router where the links of the ports in `dead` (both ends of each) are down: distances are
    /// those of the remaining links, a choice among equal next hops is made among the live ones, and an
    /// override whose links are all dead does not hold. Under BCube routing the source takes its flow's next
    /// order of digits whose links live, or without one a shortest path.
    pub fn without(&self, dead: &BTreeSet<PortId>) -> Self {
        let mut router = Self { distances: vec![None; self.names.len()], dead: Vec::new(), ..self.clone() };
        if !dead.is_empty() {
            router.dead = vec![false; self.peers.len()];
            for &port in dead {
                router.dead[port as usize] = true;
            }
            for links in router.overrides.values_mut() {
                links.retain(|link| !dead.contains(&link.port));
            }
            router.overrides.retain(|_, links| !links.is_empty());
        }
        router
    }

    pub fn kind(&self) -> RoutingKind {
        self.kind
    }

    /// Links that a packet may cross.
    pub fn ttl(&self) -> usize {
        self.ttl
    }

    /// Takes over the distances that another router has found, if both have the same links.
    pub fn learn(&mut self, other: &Self) {
        let same = self.first == other.first
            && self.links == other.links
            && self.relays == other.relays
            && self.groups == other.groups
            && self.tiers == other.tiers;
        if same && self.dead.is_empty() && other.dead.is_empty() {
            self.distances.clone_from(&other.distances);
        }
    }

    /// Whether the link of `port` is up. Inner ports of a slow host, which the router
    /// does not know, always are.
    pub fn alive(&self, port: PortId) -> bool {
        !self.dead.get(port as usize).is_some_and(|&dead| dead)
    }

    /// The cube, if its addresses determine the distances: not with links down, and not by tiers.
    fn whole_cube(&self) -> Option<&Cube> {
        self.cube.as_ref().filter(|_| self.dead.is_empty() && !self.kind.has_tiers())
    }

    fn links(&self, node: NodeId) -> &[Link] {
        let node = node as usize;
        &self.links[self.first[node] as usize..self.first[node + 1] as usize]
    }

    /// Prepares the distances to `to`.
    fn target(&mut self, to: NodeId) -> Target {
        // All paths to a host with one neighbour lead over that neighbour, so
        // that the hosts of a switch share one table.
        let links = self.links(to);
        let single = links.first().map(|link| link.to);
        let target = match single {
            Some(root) if self.relays[root as usize] && links.iter().all(|link| link.to == root) => {
                Target { to, root, extra: 1 }
            }
            _ => Target { to, root: to, extra: 0 },
        };
        if self.whole_cube().is_none() && self.distances[target.root as usize].is_none() {
            let found = match self.kind.has_tiers() {
                true => self.search_tiers(target.root),
                false => self.search(target.root),
            };
            self.distances[target.root as usize] = Some(found.into());
        }
        target
    }

    /// Every node's distance to `root` in links, over nodes that relay.
    fn search(&self, root: NodeId) -> Box<[u32]> {
        let mut distances = vec![UNREACHED; self.names.len()].into_boxed_slice();
        distances[root as usize] = 0;
        let mut queue = vec![root];
        let mut next = 0;
        while let Some(&node) = queue.get(next) {
            next += 1;
            if node != root && !self.relays[node as usize] {
                continue;
            }
            let beyond = distances[node as usize] + 1;
            for link in self.links(node) {
                let new = distances[link.to as usize] == UNREACHED;
                if new && self.alive(link.port) && self.crosses_once(link.to, node, root) {
                    distances[link.to as usize] = beyond;
                    queue.push(link.to);
                }
            }
        }
        distances
    }

    /// Every node's valley-free distance to `root`, with its leg.
    fn search_tiers(&self, root: NodeId) -> Box<[u32]> {
        let mut distances = vec![UNREACHED; self.names.len()].into_boxed_slice();
        let tier = |node: NodeId| self.tiers[node as usize];
        let forwards = |node: NodeId| node == root || self.relays[node as usize];
        let live = |node: NodeId| self.links(node).iter().filter(|link| self.alive(link.port));
        // Down to the root: seen from it, up.
        let mut queue = VecDeque::from([root]);
        distances[root as usize] = 0;
        while let Some(node) = queue.pop_front() {
            for link in live(node).filter(|link| forwards(node) && tier(link.to) > tier(node)) {
                if distances[link.to as usize] == UNREACHED {
                    distances[link.to as usize] = distances[node as usize] + 1;
                    queue.push_back(link.to);
                }
            }
        }
        let shortest = |node: NodeId, distances: &[u32], counts: &dyn Fn(&Link) -> bool| {
            let next = live(node).filter(|link| forwards(link.to) && counts(link));
            next.map(|link| distances[link.to as usize]).filter(|&d| d != UNREACHED).map(|d| d & LENGTH).min()
        };
        let mut within: Vec<(NodeId, u32)> = Vec::new();
        for node in (0..self.names.len() as NodeId).filter(|&n| distances[n as usize] == UNREACHED) {
            let found = shortest(node, &distances, &|link| tier(link.to) == tier(node));
            within.extend(found.map(|length| (node, (length + 1) | (Leg::Within as u32) << LEG)));
        }
        within.into_iter().for_each(|(node, distance)| distances[node as usize] = distance);
        // From the highest tier on, so that a path upwards goes on from every choice that it meets there.
        let mut rest: Vec<NodeId> =
            (0..self.names.len() as NodeId).filter(|&n| distances[n as usize] == UNREACHED).collect();
        rest.sort_by_key(|&node| std::cmp::Reverse(tier(node)));
        for node in rest {
            if let Some(length) = shortest(node, &distances, &|link| tier(link.to) > tier(node)) {
                distances[node as usize] = (length + 1) | (Leg::Up as u32) << LEG;
            }
        }
        distances
    }

    /// The valley-free next hops of `at`, in the order of its ports.
    fn next_in_tiers(&self, at: NodeId, target: &Target, links: &mut Vec<Link>) {
        let table = self.distances[target.root as usize].as_ref().expect("target() has searched");
        let of = |node: NodeId| match node == target.to {
            true => Some((Leg::Down, 0)),
            false => Some(table[node as usize])
                .filter(|&d| d != UNREACHED)
                .map(|d| (Leg::of(d), (d & LENGTH) + target.extra)),
        };
        let tier = |node: NodeId| self.tiers[node as usize];
        let Some((leg, length)) = of(at) else { return };
        let next = |link: &&Link| {
            let there = link.to == target.to || self.relays[link.to as usize];
            let towards = match leg {
                Leg::Down => tier(link.to) < tier(at),
                Leg::Within => tier(link.to) == tier(at),
                Leg::Up => tier(link.to) > tier(at),
            };
            let follows =
                |(then, rest): (Leg, u32)| rest + 1 == length && (leg == Leg::Up || then == Leg::Down);
            there && towards && self.alive(link.port) && of(link.to).is_some_and(follows)
        };
        links.extend(self.links(at).iter().filter(next));
    }

    /// Distance of `node` to the target, or [`UNREACHED`].
    fn distance_to(&self, node: NodeId, target: &Target) -> u32 {
        if node == target.to {
            return 0;
        }
        if let Some(cube) = self.whole_cube() {
            return cube.distance(node, target.to);
        }
        let table = self.distances[target.root as usize].as_ref().expect("target() has searched");
        match table[node as usize] {
            UNREACHED => UNREACHED,
            distance => (distance & LENGTH) + target.extra,
        }
    }

    fn choices(&self, at: NodeId, target: &Target, links: &mut Vec<Link>) {
        links.clear();
        if at == target.to {
            return;
        }
        if let Some(chosen) = self.overrides.get(&(target.to, at)) {
            links.extend(chosen);
            return;
        }
        if self.kind.has_tiers() {
            self.next_in_tiers(at, target, links);
            return;
        }
        let distance = self.distance_to(at, target);
        if distance != UNREACHED {
            links.extend(self.nearer(at, target.to, distance, |node| self.distance_to(node, target)));
        }
    }

    /// The links of `at`, which is `distance` from `to`, that lead one hop nearer to it: in dimension order,
    /// unless a failed link leaves no such hop.
    fn nearer(
        &self,
        at: NodeId,
        to: NodeId,
        distance: u32,
        distance_to: impl Fn(NodeId) -> u32,
    ) -> impl Iterator<Item = &Link> {
        let near = move |link: &&Link| {
            (link.to == to || self.relays[link.to as usize])
                && distance_to(link.to) == distance - 1
                && self.alive(link.port)
                && self.crosses_once(at, link.to, to)
        };
        let ordered = self.torus.is_none()
            || self.links(at).iter().any(|link| near(&link) && self.in_order(at, to, link.to));
        self.links(at).iter().filter(move |link| near(link) && (!ordered || self.in_order(at, to, link.to)))
    }

    /// Whether a packet to `to` that goes from `at` to `next` stays in its group, or enters that of `to`; outside of
    /// dragonfly routing always. Links of hosts are in no group.
    fn crosses_once(&self, at: NodeId, next: NodeId, to: NodeId) -> bool {
        let Some(groups) = &self.groups else { return true };
        let [here, there, goal] = [at, next, to].map(|node| groups.of(node));
        let goal = goal.or_else(|| groups.of(self.links(to).first().map_or(to, |link| link.to)));
        here.is_none() || there.is_none() || here == there || there == goal
    }

    /// Whether dimension order allows the step from `at` to `next`: while the
    /// column is not that of `to`, a packet stays in its row.
    fn in_order(&self, at: NodeId, to: NodeId, next: NodeId) -> bool {
        let Some(torus) = &self.torus else { return true };
        let [here, goal, there] = [at, to, next].map(|node| torus.position(node));
        here.0 == goal.0 || here.1 == there.1
    }

    fn has_overrides(&self, to: NodeId) -> bool {
        self.overrides.range((to, NodeId::MIN)..=(to, NodeId::MAX)).next().is_some()
    }

    fn name(&self, node: NodeId) -> String {
        self.names[node as usize].clone()
    }
}

impl Cube {
    /// Links on a shortest path between two nodes of an NDC, `to` being a host or a switch: two for every
    /// digit that has to change, and one for the step between a host and a switch.
    fn distance(&self, from: NodeId, to: NodeId) -> u32 {
        let hosts = self.hosts();
        match (from < hosts, to < hosts) {
            (true, true) => 2 * self.hamming(from, to),
            (true, false) => self.host_to_switch(from, to - hosts),
            (false, true) => self.host_to_switch(to, from - hosts),
            (false, false) if from == to => 0,
            // Over the nearest host of the one switch.
            (false, false) => {
                let hosts_of = (0..self.n).map(|digit| self.host_at(from - hosts, digit));
                1 + hosts_of.map(|host| self.host_to_switch(host, to - hosts)).min().unwrap_or(0)
            }
        }
    }

    /// From a host to a switch (counted from the first one of layer 0): to the
    /// switch's host that has the same digit as this one where it is free.
    fn host_to_switch(&self, host: NodeId, switch: u32) -> u32 {
        let layer = switch / self.switches_per_layer();
        1 + 2 * self.hamming(self.host_at(switch, self.digit(host, layer)), host)
    }

    /// The host at port `digit` of a switch.
    fn host_at(&self, switch: u32, digit: u32) -> NodeId {
        let (layer, index) = (switch / self.switches_per_layer(), switch % self.switches_per_layer());
        let low = self.n.pow(layer);
        index / low * low * self.n + digit * low + index % low
    }
}
