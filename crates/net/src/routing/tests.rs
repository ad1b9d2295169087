use super::*;
use crate::builders::{Dumbbell, FatTree, LeafSpine, Ndc, Ring};
use crate::topology::{LinkSpec, Topology};
use crate::units::{Bandwidth, Span};
use proptest::prelude::*;
use xoff_kernel::random::mix;

const LINK: LinkSpec = LinkSpec { rate: Bandwidth(100_000_000_000), delay: Span(1_000_000) };

fn link(gbps: u64) -> LinkSpec {
    LinkSpec { rate: Bandwidth(gbps * 1_000_000_000), delay: Span(1_000_000) }
}

fn ndc(n: u32, k: u32) -> Topology {
    Ndc { n, k, link: LINK }.build().unwrap()
}

fn leaf_spine(leaves: u32, spines: u32, hosts_per_leaf: u32, links_per_pair: u32) -> Topology {
    LeafSpine { leaves, spines, hosts_per_leaf, links_per_pair, host_link: LINK, fabric_link: LINK }
        .build()
        .unwrap()
}

impl Default for RoutingSpec {
    fn default() -> Self {
        Self { kind: RoutingKind::ShortestPath, hash: HashKind::Mix64, seed: 1, ttl: TTL }
    }
}

fn router(t: &Topology) -> Router {
    Router::new(t, &RoutingSpec::default(), &[]).unwrap()
}

fn bcube(t: &Topology) -> Router {
    let spec = RoutingSpec { kind: RoutingKind::Bcube, ..RoutingSpec::default() };
    Router::new(t, &spec, &[]).unwrap()
}

/// Nodes that a route visits; fails where its ports are not connected.
fn nodes(t: &Topology, src: NodeId, route: &Route) -> Vec<NodeId> {
    let mut visited = vec![src];
    for &port in &route.ports {
        assert_eq!(t.ports[port as usize].node, *visited.last().unwrap(), "the route is connected");
        visited.push(t.neighbour(port));
    }
    visited
}

/// All distances by Floyd and Warshall, with relaying nodes only in between.
fn all_distances(t: &Topology) -> Vec<Vec<u32>> {
    let n = t.nodes.len();
    let mut d = vec![vec![u32::MAX / 4; n]; n];
    for port in &t.ports {
        d[port.node as usize][t.ports[port.peer as usize].node as usize] = 1;
    }
    for (i, row) in d.iter_mut().enumerate() {
        row[i] = 0;
    }
    for k in (0..n).filter(|&k| t.relay_hosts || t.nodes[k].kind == NodeKind::Switch) {
        for i in 0..n {
            for j in 0..n {
                d[i][j] = d[i][j].min(d[i][k] + d[k][j]);
            }
        }
    }
    d
}

/// Splits `amount` evenly at every node over the links to a neighbour that is
/// one nearer, by plain recursion over all paths.
fn spread(t: &Topology, d: &[Vec<u32>], at: NodeId, to: NodeId, amount: f64, load: &mut [f64]) {
    if at == to {
        return;
    }
    let left = d[at as usize][to as usize];
    let next: Vec<PortId> = t.nodes[at as usize]
        .ports
        .iter()
        .copied()
        .filter(|&p| {
            let v = t.neighbour(p);
            let relays = t.relay_hosts || t.nodes[v as usize].kind == NodeKind::Switch;
            (v == to || relays) && d[v as usize][to as usize] + 1 == left
        })
        .collect();
    for &port in &next {
        load[port as usize] += amount / next.len() as f64;
        spread(t, d, t.neighbour(port), to, amount / next.len() as f64, load);
    }
}

prop_compose! {
    /// A connected random network: a tree of switches and more links, hosts with
    /// one to three links, parallel ones among them.
    fn network()(
        switches in 1usize..7,
        hosts in 2usize..7,
        relay_hosts: bool,
        bits in proptest::collection::vec(any::<u64>(), 64),
    ) -> Topology {
        let mut t = Topology { relay_hosts, ..Topology::default() };
        let mut bits = bits.into_iter().cycle().scan(0u64, |n, b| { *n += 1; Some(mix(b ^ *n)) });
        let mut below = |bound: usize| (bits.next().unwrap() % bound as u64) as usize;
        for i in 0..hosts {
            t.add(format!("H{i}"), NodeKind::Host);
        }
        for i in 0..switches {
            t.add(format!("S{i}"), NodeKind::Switch);
        }
        let rates = [10, 25, 100];
        for i in 1..switches {
            let parent = below(i);
            t.link((hosts + i) as NodeId, (hosts + parent) as NodeId, link(rates[below(3)]));
        }
        for _ in 0..below(6) {
            let (a, b) = (below(switches), below(switches));
            if a != b {
                t.link((hosts + a) as NodeId, (hosts + b) as NodeId, link(rates[below(3)]));
            }
        }
        for host in 0..hosts {
            for _ in 0..1 + below(3) {
                t.link(host as NodeId, (hosts + below(switches)) as NodeId, link(rates[below(3)]));
            }
        }
        t
    }
}

proptest! {
    #[test]
    fn routes_are_connected_and_shortest(t in network(), key: u64, seed: u64, crc: bool) {
        let d = all_distances(&t);
        let hash = if crc { HashKind::Crc32 } else { HashKind::Mix64 };
        let mut r = Router::new(&t, &RoutingSpec { hash, seed, ..RoutingSpec::default() }, &[]).unwrap();
        for src in t.hosts() {
            for dst in t.hosts().filter(|&dst| dst != src) {
                let route = r.route(src, dst, key).unwrap();
                let visited = nodes(&t, src, &route);
                prop_assert_eq!(route.ends, Ends::Deliver);
                prop_assert_eq!(*visited.last().unwrap(), dst);
                prop_assert_eq!(route.ports.len() as u32, d[src as usize][dst as usize]);
                prop_assert_eq!(r.distance(src, dst), Some(route.ports.len() as u32));
                let relays = |&n: &NodeId| t.relay_hosts || t.nodes[n as usize].kind == NodeKind::Switch;
                prop_assert!(visited[1..visited.len() - 1].iter().all(relays));
                prop_assert_eq!(r.route(src, dst, key).unwrap(), route.clone());
                let back = r.reverse(&route).unwrap();
                let mut reversed = nodes(&t, dst, &back);
                reversed.reverse();
                prop_assert_eq!(&reversed, &visited);
                // The same nodes by name: no longer, though perhaps over another parallel link.
                let explicit = r.explicit(&visited).unwrap();
                prop_assert_eq!(nodes(&t, src, &explicit), visited);
            }
        }
    }

    #[test]
    fn loads_and_saturation_equal_those_of_all_paths(t in network(), one_sided: bool) {
        let d = all_distances(&t);
        let hosts: Vec<NodeId> = t.hosts().collect();
        let sources = if one_sided { &hosts[..1] } else { &hosts[..] };
        let mut r = router(&t);

        let mut load = vec![0.0; t.ports.len()];
        let weight = uniform(sources, &hosts);
        for &dst in &hosts {
            let mut inject = vec![0.0; t.nodes.len()];
            let mut expected = vec![0.0; t.ports.len()];
            for &src in sources.iter().filter(|&&src| src != dst) {
                inject[src as usize] = weight(src, dst);
                spread(&t, &d, src, dst, weight(src, dst), &mut expected);
            }
            let mut single = vec![0.0; t.ports.len()];
            r.accumulate(dst, &inject, &mut single).unwrap();
            for port in 0..single.len() {
                prop_assert!((single[port] - expected[port]).abs() < 1e-9);
                load[port] += expected[port];
            }
        }
        let rates = load.iter().zip(&t.ports).filter(|&(&l, _)| l > 0.0).map(|(l, p)| p.rate as f64 / l);
        let least = rates.fold(f64::INFINITY, f64::min);
        let found = saturation(&mut r, sources, &hosts, &weight).unwrap().unwrap();
        prop_assert!((found.rate / least - 1.0).abs() < 1e-9, "{} {}", found.rate, least);
        let port = found.port as usize;
        prop_assert!((t.ports[port].rate as f64 / load[port] / least - 1.0).abs() < 1e-6);
    }

    #[test]
    fn an_ndcs_distances_follow_from_its_addresses(n in 2u32..6, k in 0u32..3) {
        let t = ndc(n, k);
        // The same network without its addresses is searched.
        let plain = Topology { cube: None, ..t.clone() };
        let (mut a, mut b) = (router(&t), router(&plain));
        for from in 0..t.nodes.len() as NodeId {
            for to in 0..t.nodes.len() as NodeId {
                prop_assert_eq!(a.distance(from, to), b.distance(from, to), "{} {}", from, to);
            }
        }
        for (src, dst) in [(0, n.pow(k + 1) - 1), (1, 0)] {
            for key in 0..50 {
                prop_assert_eq!(a.route(src, dst, key), b.route(src, dst, key));
            }
        }
    }

    #[test]
    fn bcube_routes_correct_one_digit_per_hop(n in 2u32..5, k in 0u32..4, key: u64) {
        let t = ndc(n, k);
        let cube = t.cube.unwrap();
        let mut r = bcube(&t);
        let hosts = cube.hosts();
        for (src, dst) in (0..hosts).zip((0..hosts).map(|h| (mix(u64::from(h) ^ key) % u64::from(hosts)) as u32)) {
            if src == dst {
                prop_assert_eq!(r.route(src, dst, key), Err(RouteError::ToItself(format!("H{src}"))));
                continue;
            }
            let route = r.route(src, dst, key).unwrap();
            let visited = nodes(&t, src, &route);
            prop_assert_eq!(*visited.last().unwrap(), dst);
            prop_assert_eq!(route.ports.len() as u32, 2 * cube.hamming(src, dst));
            for pair in visited.chunks(2).collect::<Vec<_>>().windows(2) {
                prop_assert_eq!(cube.hamming(pair[0][0], pair[1][0]), 1);
            }
        }
    }
}

/// Chi-square of counts that should be equal.
fn chi_square(counts: &BTreeMap<Vec<PortId>, u32>) -> f64 {
    let mean = f64::from(counts.values().sum::<u32>()) / counts.len() as f64;
    counts.values().map(|&c| (f64::from(c) - mean) * (f64::from(c) - mean) / mean).sum()
}

fn paths(r: &mut Router, src: NodeId, dst: NodeId) -> BTreeMap<Vec<PortId>, u32> {
    let mut counts = BTreeMap::new();
    for key in 0..48_000 {
        *counts.entry(r.route(src, dst, key).unwrap().ports).or_default() += 1;
    }
    counts
}

#[test]
fn flows_spread_evenly_over_all_paths() {
    // 99.9% quantiles of chi-square with 15, 5 and 5 degrees of freedom.
    let tree =
        FatTree { k: 8, tiers: 3, oversubscription: 1, link: LINK, fabric_link: None }.build().unwrap();
    let counts = paths(&mut router(&tree), 0, 127);
    assert_eq!(counts.len(), 16);
    assert!(chi_square(&counts) < 37.7, "{counts:?}");

    let counts = paths(&mut router(&leaf_spine(2, 3, 1, 2)), 0, 1);
    assert_eq!(counts.len(), 12, "3 spines, 2 links up, 2 links down");
    assert!(chi_square(&counts) < 31.3, "{counts:?}");

    // Three differing digits: six orders.
    let counts = paths(&mut bcube(&ndc(4, 2)), 0, 63);
    assert_eq!(counts.len(), 6);
    assert!(chi_square(&counts) < 20.5, "{counts:?}");
}

#[test]
fn another_seed_gives_other_paths() {
    let t = leaf_spine(2, 8, 1, 1);
    let path =
        |seed| Router::new(&t, &RoutingSpec { seed, ..Default::default() }, &[]).unwrap().route(0, 1, 5);
    assert!((2..20).any(|seed| path(seed) != path(1)));
}

#[test]
fn saturation_has_its_closed_forms() {
    let rate = |t: &Topology, mut r: Router| {
        let hosts: Vec<NodeId> = t.hosts().collect();
        saturation(&mut r, &hosts, &hosts, &uniform(&hosts, &hosts)).unwrap().unwrap()
    };
    let near = |found: Saturation, expected: f64| {
        assert!((found.rate / expected - 1.0).abs() < 1e-9, "{} {expected}", found.rate)
    };
    // 64 hosts on 8 leaves: with 8 spines the host links are first, with 4 the uplinks.
    let t = leaf_spine(8, 8, 8, 1);
    near(rate(&t, router(&t)), 64.0 * 1e11);
    let t = leaf_spine(8, 4, 8, 1);
    let found = rate(&t, router(&t));
    near(found, 32.0 * 1e11 / (56.0 / 63.0));
    assert_eq!(t.port_name(found.port), "S0.0:8");
    // NDC(4, 1): 32 host links, over which a packet leaves 1.6 times on average.
    let t = ndc(4, 1);
    near(rate(&t, router(&t)), 32.0 * 1e11 / 1.6);
    near(rate(&t, bcube(&t)), 32.0 * 1e11 / 1.6);
    // Dumbbell: 3 of 5 hosts are left, and their partner is right in 2 of 4 cases.
    let t = Dumbbell { left: 3, right: 2, link: LINK, bottleneck: link(10) }.build().unwrap();
    near(rate(&t, router(&t)), 1e10 / (3.0 / 5.0 * 2.0 / 4.0));
    assert_eq!(host_capacity(&t, &[0, 1, 4]), 3e11);
}

#[test]
fn overrides_steer_and_can_make_a_loop() {
    let t = Ring { switches: 5, hosts_per_switch: 1, link: LINK, fabric_link: None }.build().unwrap();
    let s = |i: u32| 5 + i;
    let spec = RoutingSpec::default();
    // The longer path to H1, only for H0.
    let long = [Override { at: s(0), to: 1, via: s(4) }, Override { at: s(4), to: 1, via: s(3) }];
    let mut r = Router::new(&t, &spec, &long).unwrap();
    let route = r.route(0, 1, 9).unwrap();
    assert_eq!(nodes(&t, 0, &route), [0, s(0), s(4), s(3), s(2), s(1), 1]);
    assert_eq!(r.route(0, 2, 9).unwrap().ports.len(), 4);
    let mut inject = vec![0.0; 10];
    inject[0] = 1.0;
    let mut load = vec![0.0; t.ports.len()];
    r.accumulate(1, &inject, &mut load).unwrap();
    let loaded: Vec<PortId> = (0..).zip(&load).filter(|&(_, &l)| l == 1.0).map(|(p, _)| p).collect();
    let mut ports = route.ports.clone();
    ports.sort_unstable();
    assert_eq!(loaded, ports);

    // S0.0 and S0.1 send packets for H2 to each other.
    let turn = [Override { at: s(0), to: 2, via: s(1) }, Override { at: s(1), to: 2, via: s(0) }];
    let mut r = Router::new(&t, &spec, &turn).unwrap();
    let route = r.route(0, 2, 9).unwrap();
    assert_eq!((route.ports.len(), route.ends), (64, Ends::Expire));
    assert_eq!(nodes(&t, 0, &route)[..4], [0, s(0), s(1), s(0)]);
    assert_eq!(r.reverse(&route), None);
    assert_eq!(r.route(4, 2, 9).unwrap().ends, Ends::Deliver, "H4 goes the other way round");
    for ttl in [5, TTL] {
        let mut r = Router::new(&t, &RoutingSpec { ttl, ..spec }, &turn).unwrap();
        assert_eq!(r.route(0, 2, 9).unwrap().ports.len(), usize::from(ttl));
        let mut load = vec![0.0; t.ports.len()];
        r.accumulate(2, &inject, &mut load).unwrap();
        assert_eq!(load.iter().sum::<f64>(), f64::from(ttl));
    }
}

#[test]
fn impossible_routes_are_named() {
    let mut t = ndc(2, 0);
    t.relay_hosts = false;
    t.cube = None;
    let lonely = t.add("H2".into(), NodeKind::Host);
    let mut r = router(&t);
    let no_path = r.route(0, lonely, 1).unwrap_err();
    assert_eq!(no_path.to_string(), "there is no path from H0 to H2");
    assert!(r.accumulate(lonely, &[1.0; 4], &mut [0.0; 4]).is_err());
    let hosts = [0, 1, lonely];
    assert!(saturation(&mut r, &hosts, &hosts, &uniform(&hosts, &hosts)).is_err());
    assert_eq!(saturation(&mut r, &[0], &[0], &uniform(&[0], &[0])), Ok(None));

    let t = Ring { switches: 150, hosts_per_switch: 1, link: LINK, fabric_link: None }.build().unwrap();
    let mut r = router(&t);
    assert!(matches!(r.route(0, 75, 1), Err(RouteError::TooLong { most: 64, .. })));
    let mut far = Router::new(&t, &RoutingSpec { ttl: 77, ..RoutingSpec::default() }, &[]).unwrap();
    assert_eq!(far.route(0, 75, 1).unwrap().ports.len(), 77);
    assert_eq!(far.ttl(), 77);

    assert_eq!(r.explicit(&[0]), Err(RouteError::TooShort));
    assert_eq!(r.explicit(&[]), Err(RouteError::TooShort));
    assert_eq!(r.explicit(&[0, 151]), Err(RouteError::NotNeighbours("H0".into(), "S0.1".into())));
    assert_eq!(r.explicit(&[150, 0, 150, 1]), Err(RouteError::NoRelay("H0".into())));
}

#[test]
fn unusable_overrides_are_refused() {
    let t = leaf_spine(2, 2, 2, 1);
    let new = |at, to, via, kind| {
        let spec = RoutingSpec { kind, ..RoutingSpec::default() };
        Router::new(&t, &spec, &[Override { at, to, via }]).unwrap_err()
    };
    let at_leaf = |to, via| new(4, to, via, RoutingKind::ShortestPath);
    assert_eq!(at_leaf(2, 5).key, "overrides[0].via");
    assert!(at_leaf(2, 5).help.contains("H0, H1, S1.0, S1.1"));
    assert!(at_leaf(2, 0).message.contains("does not relay"));
    assert_eq!(at_leaf(4, 6).key, "overrides[0].to");
    assert_eq!(new(2, 2, 5, RoutingKind::ShortestPath).key, "overrides[0].at");
    assert_eq!(new(4, 2, 6, RoutingKind::Bcube).key, "kind");
}

#[test]
fn a_large_tree_is_routed_without_a_table_per_host() {
    let t = FatTree { k: 16, tiers: 3, oversubscription: 1, link: LINK, fabric_link: None }.build().unwrap();
    let mut r = router(&t);
    let mut links = 0;
    for key in 0..100_000u64 {
        let src = (mix(key) % 1024) as u32;
        let dst = (src + 1 + (mix(!key) % 1023) as u32) % 1024;
        links += r.route(src, dst, key).unwrap().ports.len();
    }
    assert_eq!(r.distances.iter().flatten().count(), 128);
    // 7 partners at the same edge switch, 56 in the same pod, 960 beyond.
    let mean = (7.0 * 2.0 + 56.0 * 4.0 + 960.0 * 6.0) / 1023.0;
    assert!((links as f64 / 1e5 - mean).abs() < 0.01);
}

#[test]
fn bcube_loads_average_over_all_orders_of_digits() {
    let t = ndc(3, 2);
    let mut r = bcube(&t);
    let (src, dst) = (5, 18);
    assert_eq!(t.cube.unwrap().hamming(src, dst), 3);
    let mut load = vec![0.0; t.ports.len()];
    let mut inject = vec![0.0; t.nodes.len()];
    inject[src as usize] = 1.0;
    r.accumulate(dst, &inject, &mut load).unwrap();
    let mut expected = vec![0.0; t.ports.len()];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut path = vec![src];
        for layer in order {
            let here = *path.last().unwrap();
            let weight = 3u32.pow(layer);
            let next = here - here / weight % 3 * weight + dst / weight % 3 * weight;
            path.push(t.neighbour(t.nodes[here as usize].ports[layer as usize]));
            path.push(next);
        }
        for port in r.explicit(&path).unwrap().ports {
            expected[port as usize] += 1.0 / 6.0;
        }
    }
    for (a, b) in load.iter().zip(&expected) {
        assert!((a - b).abs() < 1e-12);
    }
}

/// The topology without some links: as a new one, for comparison.
fn damaged(t: &Topology, dead: &BTreeSet<PortId>) -> Topology {
    let mut left = Topology { relay_hosts: t.relay_hosts, ..Topology::default() };
    for node in &t.nodes {
        left.add(node.name.clone(), node.kind);
    }
    for (id, port) in t.ports.iter().enumerate() {
        if (id as PortId) < port.peer && !dead.contains(&(id as PortId)) {
            left.link(port.node, t.neighbour(id as PortId), LINK);
        }
    }
    left
}

proptest! {
    /// Around dead links routes are as short as those of the network that has
    /// never had these links, and use none of them; where there is none, the
    /// network without them is not connected. BCube sources keep to their
    /// shortest routes while one of those is alive.
    #[test]
    fn routes_avoid_dead_links(
        kind in 0usize..4, source_routed in any::<bool>(),
        broken in prop::collection::vec(any::<prop::sample::Index>(), 1..7), key in any::<u64>(),
    ) {
        let t = match kind {
            0 => leaf_spine(3, 2, 2, 2),
            1 => FatTree { k: 4, tiers: 3, oversubscription: 1, link: LINK, fabric_link: None }.build().unwrap(),
            2 => Ring { switches: 5, hosts_per_switch: 1, link: LINK, fabric_link: None }.build().unwrap(),
            _ => ndc(3, 1),
        };
        let dead: BTreeSet<PortId> = broken
            .iter()
            .map(|i| i.index(t.ports.len()) as PortId)
            .flat_map(|p| [p, t.ports[p as usize].peer])
            .collect();
        let source_routed = source_routed && kind == 3;
        let whole = if source_routed { bcube(&t) } else { router(&t) };
        let mut router = whole.without(&dead);
        let expected = all_distances(&damaged(&t, &dead));
        for src in t.hosts() {
            for dst in t.hosts().filter(|&d| d != src) {
                let distance = expected[src as usize][dst as usize];
                match router.route(src, dst, key) {
                    Ok(route) => {
                        prop_assert_eq!(*nodes(&t, src, &route).last().unwrap(), dst);
                        prop_assert!(route.ports.iter().all(|p| !dead.contains(p)));
                        prop_assert_eq!(route.ports.len() as u32, distance);
                    }
                    Err(e) => {
                        let no_path = matches!(e, RouteError::NoPath { .. });
                        prop_assert!(no_path, "{}", e);
                        prop_assert!(distance >= u32::MAX / 4);
                    }
                }
            }
        }
        // Nothing dead: the same routes as before.
        let mut again = router.without(&BTreeSet::new());
        let mut whole = whole;
        prop_assert_eq!(again.route(0, 1, key), whole.route(0, 1, key));
    }
}

/// Hosts, then three tiers of switches with random links, also within tiers.
fn tiers_at_random(seed: u64) -> (Topology, Vec<u32>) {
    let mut random = Stream::new(seed, "tiers", 0);
    let (mut t, mut tiers) = (Topology::default(), Vec::new());
    for (tier, count) in [(0u32, 5u32), (1, 4), (2, 3), (3, 2)] {
        for i in 0..count {
            let (kind, name) = if tier == 0 { (NodeKind::Host, "H") } else { (NodeKind::Switch, "S") };
            t.add(format!("{name}{tier}.{i}"), kind);
            tiers.push(tier);
        }
    }
    let spec = LinkSpec { rate: Bandwidth(1_000_000_000), delay: Span(1_000_000) };
    for a in 0..tiers.len() {
        for b in a + 1..tiers.len() {
            let chance = match (tiers[a], tiers[b]) {
                (0, 1) => 2,
                (a, b) if a > 0 && b == a + 1 => 2,
                (a, b) if a > 0 && (a == b || b == a + 2) => 4,
                _ => continue,
            };
            if random.below(chance) == 0 {
                t.link(a as u32, b as u32, spec);
            }
        }
    }
    (t, tiers)
}

/// The nodes that a path up, at most once within a tier, and down again reaches from `from`.
fn without_valleys(t: &Topology, tiers: &[u32], dead: &BTreeSet<PortId>, from: NodeId) -> BTreeSet<NodeId> {
    let mut open = vec![(from, true)];
    let mut seen = BTreeSet::from([(from, true)]);
    while let Some((at, rising)) = open.pop() {
        if at != from && t.nodes[at as usize].kind == NodeKind::Host {
            continue;
        }
        for &port in t.nodes[at as usize].ports.iter().filter(|port| !dead.contains(port)) {
            let to = t.neighbour(port);
            let next = match tiers[to as usize].cmp(&tiers[at as usize]) {
                std::cmp::Ordering::Greater if rising => (to, true),
                std::cmp::Ordering::Equal if rising => (to, false),
                std::cmp::Ordering::Less => (to, false),
                _ => continue,
            };
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    seen.into_iter().map(|(node, _)| node).collect()
}

#[test]
fn valley_free_paths_reach_all_that_such_paths_can_reach() {
    let (mut reached, mut cut_off) = (0, 0);
    for seed in 0..300 {
        let (t, tiers) = tiers_at_random(seed);
        let mut random = Stream::new(seed, "failed links", 0);
        let links = t.ports.len() as u64 / 2;
        let dead: BTreeSet<PortId> = (0..random.below(4).min(links))
            .flat_map(|_| {
                let port = random.below(links) as PortId * 2;
                [port, port + 1]
            })
            .collect();
        let spec = RoutingSpec { kind: RoutingKind::ValleyFree, seed, ..RoutingSpec::default() };
        let mut router = Router::new(&t, &spec, &[]).unwrap().with_tiers(tiers.clone()).without(&dead);
        for (src, dst) in t.hosts().flat_map(|a| t.hosts().map(move |b| (a, b))).filter(|(a, b)| a != b) {
            let possible = without_valleys(&t, &tiers, &dead, src).contains(&dst);
            let Ok(route) = router.route(src, dst, seed) else {
                assert!(!possible, "seed {seed}: {src} to {dst} has a path");
                cut_off += 1;
                continue;
            };
            assert!(possible, "seed {seed}: {src} to {dst}");
            reached += 1;
            let mut rising = true;
            for &port in &route.ports {
                assert!(!dead.contains(&port));
                let (from, to) = (t.ports[port as usize].node, t.neighbour(port));
                let [from, to] = [from, to].map(|node| tiers[node as usize]);
                assert!(rising || to < from, "seed {seed}: a valley in {:?}", route.ports);
                rising &= to > from;
            }
        }
    }
    assert!(reached > 1000 && cut_off > 100, "{reached} {cut_off}");
}

#[test]
fn valley_free_paths_are_the_shortest_ones_of_an_intact_clos() {
    let t = FatTree { k: 4, tiers: 3, oversubscription: 1, link: LINK, fabric_link: None }.build().unwrap();
    let spec = |kind| RoutingSpec { kind, ..RoutingSpec::default() };
    let [mut free, mut shortest] = [RoutingKind::ValleyFree, RoutingKind::ShortestPath]
        .map(|kind| Router::new(&t, &spec(kind), &[]).unwrap());
    for (at, to) in (0..t.nodes.len() as NodeId).flat_map(|at| t.hosts().map(move |to| (at, to))) {
        assert_eq!(free.next_hops(at, to), shortest.next_hops(at, to), "{at} {to}");
    }
}

/// A random network of 9 switches with a host each, which is connected.
fn meshed(seed: u64) -> Topology {
    let mut random = Stream::new(seed, "mesh", 0);
    let mut t = Topology::default();
    let spec = LinkSpec { rate: Bandwidth(1_000_000_000), delay: Span(1_000_000) };
    for i in 0..9 {
        let (switch, host) =
            (t.add(format!("S{i}"), NodeKind::Switch), t.add(format!("H{i}"), NodeKind::Host));
        t.link(host, switch, spec);
        if i > 0 {
            t.link(switch, 2 * random.below(i) as NodeId, spec);
        }
    }
    for _ in 0..random.below(12) {
        let [a, b] = [0, 0].map(|_: u32| 2 * random.below(9) as NodeId);
        if a != b {
            t.link(a, b, spec);
        }
    }
    t
}

#[test]
fn up_down_paths_join_all_hosts_and_make_no_cycle_of_waits() {
    let mut by_shortest = 0;
    for seed in 0..200 {
        let t = meshed(seed);
        let cyclic = |router: &mut Router| {
            // Each port with those that packets cross next.
            let mut next: Vec<BTreeSet<PortId>> = vec![BTreeSet::new(); t.ports.len()];
            for (src, dst) in t.hosts().flat_map(|a| t.hosts().map(move |b| (a, b))).filter(|(a, b)| a != b) {
                for key in 0..8 {
                    let route = router.route(src, dst, key).unwrap();
                    route.ports.windows(2).for_each(|w| {
                        next[w[0] as usize].insert(w[1]);
                    });
                }
            }
            let mut open: BTreeSet<PortId> = (0..t.ports.len() as PortId).collect();
            while let Some(&last) = open.iter().find(|&&port| next[port as usize].is_disjoint(&open)) {
                open.remove(&last);
            }
            !open.is_empty()
        };
        let spec = |kind| RoutingSpec { kind, seed, ..RoutingSpec::default() };
        let mut router = Router::new(&t, &spec(RoutingKind::UpDown), &[]).unwrap();
        assert!(!cyclic(&mut router), "seed {seed}");
        for root in [0, 8, 16] {
            assert!(!cyclic(&mut router.clone().with_root(&t, root)), "seed {seed}, root {root}");
        }
        by_shortest +=
            usize::from(cyclic(&mut Router::new(&t, &spec(RoutingKind::ShortestPath), &[]).unwrap()));
    }
    assert!(by_shortest > 20, "shortest paths made a cycle in {by_shortest} networks");
}
