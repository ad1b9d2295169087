//! Rail-only, rail-optimized, full mesh, torus and two datacenters: their counts against closed
//! forms, their distances against Floyd and Warshall, and a route for every pair.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use xoff_net::builders::TopologySpec;
use xoff_net::error::SpecError;
use xoff_net::routing::{Ends, HashKind, Router, RoutingKind, RoutingSpec, TTL, saturation, uniform};
use xoff_net::topology::{NodeId, NodeKind, Topology};

const LINK: &str = "{ rate = \"100Gbps\", delay = \"1us\" }";

fn try_build(toml: &str) -> Result<Topology, SpecError> {
    let spec: TopologySpec = toml::from_str(toml).unwrap_or_else(|e| panic!("{toml}\n{e}"));
    assert!(TopologySpec::KINDS.contains(&spec.kind()));
    spec.build("")
}

fn build(toml: &str) -> Topology {
    try_build(toml).unwrap_or_else(|e| panic!("{toml}\n{e:?}"))
}

fn rail_only(n: u32, domains: Option<u32>) -> Topology {
    let domains = domains.map_or(String::new(), |d| format!("domains = {d}\n"));
    build(&format!(
        "kind = \"rail-only\"\nn = {n}\n{domains}domain_link = {{ rate = \"160Gbps\", delay = \"200ns\" }}\nrail_link = {LINK}"
    ))
}

fn rail_optimized(n: u32, domains: u32, segments: u32, aggregations: u32) -> Topology {
    build(&format!(
        "kind = \"rail-optimized\"\nn = {n}\ndomains = {domains}\nsegments = {segments}\naggregations = {aggregations}\n\
         domain_link = {{ rate = \"160Gbps\", delay = \"200ns\" }}\nrail_link = {LINK}"
    ))
}

fn full_mesh(switches: u32, hosts: u32) -> Topology {
    build(&format!("kind = \"full-mesh\"\nswitches = {switches}\nhosts_per_switch = {hosts}\nlink = {LINK}"))
}

fn torus(width: u32, height: u32, hosts: u32) -> Topology {
    build(&format!(
        "kind = \"torus-2d\"\nwidth = {width}\nheight = {height}\nhosts_per_switch = {hosts}\nlink = {LINK}"
    ))
}

fn dragonfly(a: u32, p: u32, h: u32, groups: Option<u32>) -> Topology {
    let groups = groups.map_or(String::new(), |g| format!("groups = {g}\n"));
    build(&format!(
        "kind = \"dragonfly\"\nswitches_per_group = {a}\nhosts_per_switch = {p}\nglobal_links = {h}\n{groups}link = {LINK}"
    ))
}

fn dci(k: u32, tiers: u32, oversubscription: u32, long_links: u32) -> Topology {
    build(&format!(
        "kind = \"dci\"\nk = {k}\ntiers = {tiers}\noversubscription = {oversubscription}\nlong_links = {long_links}\n\
         link = {LINK}\nlong_link = {{ rate = \"400Gbps\", length = \"600km\" }}"
    ))
}

fn router(t: &Topology, kind: RoutingKind, hash: HashKind) -> Router {
    Router::new(t, &RoutingSpec { kind, hash, seed: 1, ttl: TTL }, &[]).unwrap()
}

/// Distances in links between all nodes, of which only those that relay are
/// passed through.
fn floyd_warshall(t: &Topology) -> Vec<Vec<u32>> {
    const FAR: u32 = 1 << 20;
    let n = t.nodes.len();
    let mut d = vec![vec![FAR; n]; n];
    for (i, node) in t.nodes.iter().enumerate() {
        d[i][i] = 0;
        for &port in &node.ports {
            d[i][t.neighbour(port) as usize] = 1;
        }
    }
    for via in (0..n).filter(|&via| t.nodes[via].kind == NodeKind::Switch || t.relay_hosts) {
        for a in 0..n {
            for b in 0..n {
                d[a][b] = d[a][b].min(d[a][via] + d[via][b]);
            }
        }
    }
    d
}

/// The nodes of a route between hosts, both ends included.
fn nodes(t: &Topology, router: &mut Router, src: NodeId, dst: NodeId, key: u64) -> Vec<NodeId> {
    let route = router.route(src, dst, key).unwrap();
    assert_eq!(route.ends, Ends::Deliver);
    let mut nodes = vec![src];
    for &port in &route.ports {
        assert_eq!(t.ports[port as usize].node, nodes[nodes.len() - 1]);
        nodes.push(t.neighbour(port));
    }
    assert_eq!(nodes.last(), Some(&dst));
    nodes
}

/// Ports are consistent, and every pair of hosts is routed on shortest paths,
/// with each kind of routing that fits.
fn check(t: &Topology) {
    for (id, port) in t.ports.iter().enumerate() {
        let peer = &t.ports[port.peer as usize];
        assert_eq!((peer.peer as usize, peer.long, peer.loss), (id, port.long, port.loss));
        assert_eq!((peer.rate, peer.delay), (port.rate, port.delay));
        assert_ne!(peer.node, port.node);
        assert_eq!(t.nodes[port.node as usize].ports[usize::from(port.index)] as usize, id);
    }
    let d = floyd_warshall(t);
    let mut kinds = vec![RoutingKind::ShortestPath];
    kinds.extend(t.cube.map(|_| RoutingKind::Bcube));
    kinds.extend(t.torus.map(|_| RoutingKind::DimensionOrder));
    let hosts: Vec<NodeId> = t.hosts().collect();
    for kind in kinds {
        let mut router = router(t, kind, HashKind::Toeplitz);
        for &src in &hosts {
            for &dst in hosts.iter().filter(|&&dst| dst != src) {
                let links =
                    nodes(t, &mut router, src, dst, u64::from(src) * 31 + u64::from(dst)).len() as u32 - 1;
                assert_eq!(links, d[src as usize][dst as usize], "{kind:?} {src} {dst}");
                assert_eq!(router.distance(src, dst), Some(links));
            }
        }
    }
}

fn counts(t: &Topology) -> (u32, u32, u32) {
    let hosts = t.hosts().count() as u32;
    (hosts, t.nodes.len() as u32 - hosts, t.ports.len() as u32 / 2)
}

fn radix(t: &Topology, name: &str) -> u32 {
    t.nodes[t.find(name).unwrap() as usize].ports.len() as u32
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 12 / 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rail_only_networks(n in 2u32..6, domains in 2u32..6) {
        let t = rail_only(n, Some(domains));
        check(&t);
        prop_assert_eq!(counts(&t), (n * domains, n + domains, 2 * n * domains));
        prop_assert!(t.relay_hosts && t.hosts().all(|h| t.nodes[h as usize].ports.len() == 2));
        prop_assert_eq!((radix(&t, "S0.0"), radix(&t, "S1.0")), (n, domains));
        prop_assert_eq!(t.cube.is_some(), n == domains);
        // One switch away in the domain or on the rail, else two.
        let d = floyd_warshall(&t);
        for a in 0..n * domains {
            for b in 0..n * domains {
                let steps = u32::from(a / n != b / n) + u32::from(a % n != b % n);
                prop_assert_eq!(d[a as usize][b as usize], 2 * steps);
            }
        }
    }

    #[test]
    fn rail_optimized_networks(n in 2u32..5, domains in 2u32..4, segments in 1u32..4, aggregations in 1u32..4) {
        let t = rail_optimized(n, domains, segments, aggregations);
        check(&t);
        let (hosts, rails) = (n * domains * segments, n * segments);
        let switches = domains * segments + rails + aggregations;
        prop_assert_eq!(counts(&t), (hosts, switches, 2 * hosts + rails * aggregations));
        prop_assert!(t.relay_hosts && t.hosts().all(|h| t.nodes[h as usize].ports.len() == 2));
        prop_assert_eq!((radix(&t, "S0.0"), radix(&t, "S1.0"), radix(&t, "S2.0")), (n, domains + aggregations, rails));
        // Within a domain or on a rail of a segment one switch; else over a relay or an aggregation switch.
        let d = floyd_warshall(&t);
        for a in 0..hosts {
            for b in 0..hosts {
                let near = a / n == b / n || a / n / domains == b / n / domains && a % n == b % n;
                let links = if a == b { 0 } else if near { 2 } else { 4 };
                prop_assert_eq!(d[a as usize][b as usize], links);
            }
        }
    }

    #[test]
    fn full_meshes(switches in 2u32..9, hosts in 1u32..4) {
        let t = full_mesh(switches, hosts);
        check(&t);
        prop_assert_eq!(
            counts(&t),
            (switches * hosts, switches, switches * hosts + switches * (switches - 1) / 2)
        );
        prop_assert!(t.nodes.iter().skip((switches * hosts) as usize)
            .all(|s| s.ports.len() as u32 == hosts + switches - 1));
    }

    #[test]
    fn tori(width in 3u32..7, height in 3u32..6, hosts in 1u32..3) {
        let t = torus(width, height, hosts);
        check(&t);
        let switches = width * height;
        prop_assert_eq!(counts(&t), (switches * hosts, switches, switches * (hosts + 2)));
        prop_assert!(t.nodes.iter().skip((switches * hosts) as usize).all(|s| s.ports.len() as u32 == hosts + 4));
        // Distance by definition: the shorter direction around each ring.
        let around = |a: u32, b: u32, size: u32| (a + size - b) % size;
        let ring = |a: u32, b: u32, size: u32| around(a, b, size).min(around(b, a, size));
        let mut in_order = router(&t, RoutingKind::DimensionOrder, HashKind::Mix64);
        for src in 0..switches * hosts {
            for dst in (0..switches * hosts).filter(|&dst| dst / hosts != src / hosts) {
                let (a, b) = (src / hosts, dst / hosts);
                let expected = ring(a % width, b % width, width) + ring(a / width, b / width, height) + 2;
                prop_assert_eq!(in_order.distance(src, dst), Some(expected));
                // First the column is corrected, then the row.
                let route = nodes(&t, &mut in_order, src, dst, u64::from(src ^ dst));
                let place = |node: NodeId| ((node - switches * hosts) % width, (node - switches * hosts) / width);
                let mut turned = false;
                for pair in route[1..route.len() - 1].windows(2) {
                    let vertical = place(pair[0]).0 == place(pair[1]).0;
                    prop_assert!(vertical || !turned, "{:?}", route);
                    turned |= vertical;
                }
            }
        }
    }

    #[test]
    fn two_datacenters(half in 1u32..3, tiers in 2u32..4, oversubscription in 1u32..3, long_links in 1u32..4) {
        let k = 2 * half;
        let t = dci(k, tiers, oversubscription, long_links);
        check(&t);
        let (edges, tops) = if tiers == 3 { (k * half, half * half) } else { (k, half) };
        let switches = if tiers == 3 { 2 * edges + tops } else { edges + tops };
        let hosts = edges * half * oversubscription;
        let links = hosts + edges * half * (tiers - 1) + tops;
        prop_assert_eq!(counts(&t), (2 * hosts, 2 * switches + 2, 2 * links + long_links));
        prop_assert_eq!((radix(&t, "DCI.0"), radix(&t, "DCI.1")), (tops + long_links, tops + long_links));
        // The long links, and no others, divide the network into its halves.
        let long: Vec<_> = t.ports.iter().filter(|p| p.long).collect();
        prop_assert_eq!(long.len() as u32, 2 * long_links);
        prop_assert!(long.iter().all(|p| (p.rate, p.delay) == (400_000_000_000, 3_000_000_000)));
        let sites = t.sites();
        let mut groups: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (node, &site) in t.nodes.iter().zip(&sites) {
            groups.entry(node.name.split_once('.').map_or("H", |(tier, _)| tier)).or_default().push(site);
        }
        for (group, sites) in groups {
            let (first, second) = sites.split_at(sites.len() / 2);
            prop_assert!(first.iter().all(|&s| s == 0) && second.iter().all(|&s| s == 1), "{}", group);
        }
        // Between the sites: up to the top tier, over both DCI switches, and down.
        let mut router = router(&t, RoutingKind::ShortestPath, HashKind::Mix64);
        prop_assert_eq!(router.distance(0, hosts), Some(2 * tiers + 3));
    }
}

#[test]
fn rail_only_is_the_ndc_of_the_paper_with_unequal_layers() {
    let t = rail_only(4, None);
    let ndc = build(&format!("kind = \"ndc\"\nn = 4\nk = 1\nlink = {LINK}"));
    let ends = |t: &Topology| {
        let port = |p: &xoff_net::topology::Port| (p.node, p.peer, p.index);
        t.ports.iter().map(port).collect::<Vec<_>>()
    };
    assert_eq!(ends(&t), ends(&ndc));
    assert_eq!(t.cube, ndc.cube);
    let names = |t: &Topology| t.nodes.iter().map(|n| n.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&t), names(&ndc));
    for host in t.hosts() {
        let facts = |index: usize| {
            let port = &t.ports[t.nodes[host as usize].ports[index] as usize];
            (
                t.nodes[t.neighbour(t.ports[port.peer as usize].peer) as usize].name.clone(),
                port.rate,
                port.delay,
            )
        };
        assert_eq!(facts(0), (format!("S0.{}", host / 4), 160_000_000_000, 200_000));
        assert_eq!(facts(1), (format!("S1.{}", host % 4), 100_000_000_000, 1_000_000));
    }
}

#[test]
fn both_directions_around_a_torus_are_used_where_they_are_equal() {
    let t = torus(4, 4, 1);
    let mut router = router(&t, RoutingKind::DimensionOrder, HashKind::Mix64);
    // Two columns away: over either neighbour in the row, and no other.
    let first: BTreeSet<NodeId> = (0..64).map(|key| nodes(&t, &mut router, 0, 2, key)[2]).collect();
    assert_eq!(first, [16 + 1, 16 + 3].into());
    // Both dimensions are half of the ring: two directions around each, and six orders for each pair of
    // directions.
    let paths: BTreeSet<Vec<NodeId>> = (0..400).map(|key| nodes(&t, &mut router, 0, 10, key)).collect();
    assert_eq!(paths.len(), 4);
    let mut any = self::router(&t, RoutingKind::ShortestPath, HashKind::Mix64);
    let paths: BTreeSet<Vec<NodeId>> = (0..4_000).map(|key| nodes(&t, &mut any, 0, 10, key)).collect();
    assert_eq!(paths.len(), 24);
}

#[test]
fn saturation_has_its_closed_forms() {
    let of = |t: &Topology, kind: RoutingKind| {
        let hosts: Vec<NodeId> = t.hosts().collect();
        let mut router = router(t, kind, HashKind::Mix64);
        saturation(&mut router, &hosts, &hosts, &uniform(&hosts, &hosts)).unwrap().unwrap().rate / 1e9
    };
    let close = |got: f64, expected: f64| assert!((got / expected - 1.0).abs() < 1e-9, "{got} {expected}");
    // In a ring of 5, a place is (0 + 1 + 1 + 2 + 2)/5 = 1.2 links away on average, and there are two
    // directed links per switch. With n hosts, n - 1 of them others, a link carries n/(n - 1) · 1.2/2 of the
    // traffic of a switch's hosts. One host at each: its own link is full first.
    let t = torus(5, 5, 1);
    close(of(&t, RoutingKind::DimensionOrder), 25.0 * 100.0);
    // Ten at each: a link of a row is.
    let t = torus(5, 5, 10);
    close(of(&t, RoutingKind::DimensionOrder), 250.0 * 100.0 / (10.0 * 250.0 / 249.0 * 0.6));
    // A mesh link carries the traffic from the hosts of one switch to those of another.
    let t = full_mesh(4, 6);
    close(of(&t, RoutingKind::ShortestPath), 24.0 * 100.0 / (6.0 * 6.0 / 23.0));
    // 16 + 16 hosts: 16/31 of the traffic leaves its site, half in each direction.
    let t = dci(4, 3, 1, 1);
    close(of(&t, RoutingKind::ShortestPath), 400.0 / (16.0 / 31.0) * 2.0);
}

#[test]
fn invalid_topologies_are_refused_at_their_key() {
    let link = format!("link = {LINK}");
    let rails = format!("domain_link = {LINK}\nrail_link = {LINK}");
    let long = "long_link = { rate = \"400Gbps\", delay = \"3ms\" }";
    for (toml, key) in [
        (format!("kind = \"rail-only\"\nn = 1\n{rails}"), "n"),
        (format!("kind = \"rail-only\"\nn = 4\ndomains = 1\n{rails}"), "domains"),
        (format!("kind = \"rail-only\"\nn = 8\ndomains = 4000000000\n{rails}"), "domains"),
        (format!("kind = \"rail-only\"\nn = 4000000000\n{rails}"), "n"),
        (format!("kind = \"rail-optimized\"\nn = 2\nsegments = 0\naggregations = 1\n{rails}"), "segments"),
        (
            format!("kind = \"rail-optimized\"\nn = 2\nsegments = 1\naggregations = 0\n{rails}"),
            "aggregations",
        ),
        (
            format!(
                "kind = \"rail-optimized\"\nn = 2\nsegments = 4000000000\naggregations = 4000000000\n{rails}"
            ),
            "aggregations",
        ),
        (format!("kind = \"full-mesh\"\nswitches = 1\nhosts_per_switch = 1\n{link}"), "switches"),
        (format!("kind = \"full-mesh\"\nswitches = 4294967295\nhosts_per_switch = 1\n{link}"), "switches"),
        (
            format!("kind = \"full-mesh\"\nswitches = 4\nhosts_per_switch = 4294967295\n{link}"),
            "hosts_per_switch",
        ),
        (format!("kind = \"torus-2d\"\nwidth = 2\nheight = 3\nhosts_per_switch = 1\n{link}"), "width"),
        (format!("kind = \"torus-2d\"\nwidth = 3\nheight = 2\nhosts_per_switch = 1\n{link}"), "height"),
        (
            format!(
                "kind = \"torus-2d\"\nwidth = 4294967295\nheight = 4294967295\nhosts_per_switch = 4294967295\n{link}"
            ),
            "hosts_per_switch",
        ),
        (
            format!("kind = \"torus-2d\"\nwidth = 3\nheight = 4294967295\nhosts_per_switch = 1\n{link}"),
            "height",
        ),
        (format!("kind = \"dci\"\nk = 5\n{link}\n{long}"), "k"),
        (format!("kind = \"dci\"\nk = 4\nlong_links = 0\n{link}\n{long}"), "long_links"),
        (format!("kind = \"dci\"\nk = 4\nlong_links = 4294967295\n{link}\n{long}"), "long_links"),
        (format!("kind = \"dci\"\nk = 4\noversubscription = 100000\n{link}\n{long}"), "oversubscription"),
        (format!("kind = \"dci\"\nk = 180\n{link}\n{long}"), "k"),
        (format!("kind = \"dci\"\nk = 4\n{link}\nlong_link = {{ rate = \"400Gbps\" }}"), "long_link"),
        (
            format!(
                "kind = \"dci\"\nk = 4\n{link}\nlong_link = {{ rate = \"400Gbps\", length = \"1km\", delay = \"5us\" }}"
            ),
            "long_link.delay",
        ),
    ] {
        let error = try_build(&toml).map(|_| ()).expect_err(&toml);
        assert_eq!(error.key, key, "{toml}\n{error:?}");
    }
}

#[test]
fn a_custom_link_can_be_long() {
    let t = build(
        "kind = \"custom\"\nhosts = [\"A\", \"B\"]\nswitches = [\"M\", \"N\"]\nlinks = [\
         { a = \"A\", b = \"M\", rate = \"100Gbps\", delay = \"1us\" },\
         { a = \"M\", b = \"N\", rate = \"100Gbps\", delay = \"80km\", long = true },\
         { a = \"N\", b = \"B\", rate = \"100Gbps\", delay = \"1us\" }]",
    );
    assert_eq!(t.ports.iter().map(|p| p.long).collect::<Vec<_>>(), [false, false, true, true, false, false]);
    assert_eq!(t.sites(), [0, 1, 0, 1]);
}

#[test]
fn relays_go_into_the_ends_of_long_links() {
    let mut t = build(
        "kind = \"dci\"\nk = 4\nlong_links = 2\nlink = { rate = \"100Gbps\", delay = \"1us\" }\n\
         long_link = { rate = \"400Gbps\", length = \"600km\" }",
    );
    let before = t.clone();
    t.insert_relays(7_000).expect("no such names before");
    assert_eq!((t.relays, t.nodes.len(), t.ports.len()), (4, before.nodes.len() + 4, before.ports.len() + 8));
    let [a, b] = ["DCI.0", "DCI.1"].map(|name| t.find(name).unwrap());
    let long = t.relayed(a, b);
    assert_eq!(long.len(), 2);
    assert!(t.relayed(a, 0).is_empty());
    for (i, &port) in long.iter().enumerate() {
        let (near, far) = (t.ports[port as usize].node, t.neighbour(port));
        assert_eq!(t.nodes[near as usize].name, format!("RELAY.{}", 2 * i));
        assert_eq!(t.nodes[far as usize].name, format!("RELAY.{}", 2 * i + 1));
        let (rate, delay) = (t.ports[port as usize].rate, t.ports[port as usize].delay);
        assert_eq!((rate, delay, t.ports[port as usize].long), (400_000_000_000, 3_000_000_000, true));
    }
    for (id, port) in (0..).zip(&t.ports) {
        assert_eq!(t.ports[port.peer as usize].peer, id);
        assert_eq!(t.nodes[port.node as usize].ports[usize::from(port.index)], id);
        // All others are unchanged.
        if let Some(old) = before.ports.get(id as usize) {
            let same = (old.node, old.index, old.rate) == (port.node, port.index, port.rate);
            assert!(same && (old.long || (old.peer, old.delay) == (port.peer, port.delay)));
            assert!(!old.long || port.delay == 7_000 && !port.long);
        }
    }
    let sites = t.sites();
    assert_eq!(sites[..before.nodes.len()], before.sites()[..]);
    assert_eq!(sites[before.nodes.len()..], [0, 1, 0, 1]);
    // A name is somebody's.
    let mut taken = before.clone();
    taken.nodes[20].name = "RELAY.3".into();
    assert_eq!(taken.insert_relays(0), Err("RELAY.3".into()));
}

/// Counts of Kim et al.: each switch has p hosts, a - 1 links in its group and at most h to others; all pairs of
/// groups have equally many links.
#[test]
fn dragonflies_have_the_links_of_their_shape() {
    for (a, p, h, groups) in [
        (4, 2, 2, None),
        (4, 2, 2, Some(5)),
        (2, 1, 1, Some(2)),
        (3, 2, 2, Some(4)),
        (1, 2, 3, None),
        (8, 4, 4, Some(9)),
    ] {
        let t = dragonfly(a, p, h, groups);
        let g = groups.unwrap_or(a * h + 1);
        assert_eq!((t.hosts().count() as u32, t.nodes.len() as u32), (g * a * p, g * a * (p + 1)));
        let shape = t.groups.unwrap();
        let mut between: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for switch in g * a * p..g * a * (p + 1) {
            let near: Vec<NodeId> =
                t.nodes[switch as usize].ports.iter().map(|&port| t.neighbour(port)).collect();
            let hosts: Vec<NodeId> = near.iter().copied().filter(|&n| shape.of(n).is_none()).collect();
            let first = (switch - g * a * p) * p;
            assert_eq!(hosts, (first..first + p).collect::<Vec<_>>());
            let own = shape.of(switch).unwrap();
            let local: BTreeSet<NodeId> =
                near.iter().copied().filter(|&n| shape.of(n) == Some(own)).collect();
            assert_eq!(local.len() as u32, a - 1);
            let global = near.iter().filter_map(|&n| shape.of(n)).filter(|&there| there != own);
            let mut count = 0;
            for there in global {
                count += 1;
                *between.entry((own, there)).or_default() += 1;
            }
            assert!(count <= h);
        }
        assert_eq!(between.len() as u32, g * (g - 1));
        assert!(between.values().all(|&links| links == a * h / (g - 1)), "{between:?}");
        assert!(t.port_name(0) == "H0:0" && t.nodes[shape.first as usize].name == "S0.0");
    }
    let refused =
        |text: &str| try_build(&format!("kind = \"dragonfly\"\n{text}\nlink = {LINK}")).unwrap_err();
    let ten = refused("switches_per_group = 4\nhosts_per_switch = 2\nglobal_links = 2\ngroups = 10");
    assert_eq!((ten.key.as_str(), ten.message.as_str()), ("groups", "10 groups are out of range"));
    assert!(ten.help.starts_with("write 2 to 9"), "{}", ten.help);
    let vast =
        refused("switches_per_group = 4294967295\nhosts_per_switch = 4294967295\nglobal_links = 4294967295");
    assert!(vast.message.starts_with("this network is too large"), "{}", vast.message);
}

/// A minimal path has at most a local, a global and a local link, and a packet of its group's own none between
/// groups. A non-minimal one turns in a third group, and has at most five links between switches.
#[test]
fn dragonfly_routes_cross_one_link_between_groups_and_others_two() {
    // With the links of the longest minimal path, those of hosts included.
    let shapes = [(4, 2, 2, None, 5), (4, 1, 2, Some(5), 5), (1, 2, 3, None, 3), (3, 1, 2, Some(2), 4)];
    for (a, p, h, groups, most) in shapes {
        let t = dragonfly(a, p, h, groups);
        let shape = t.groups.unwrap();
        let g = groups.unwrap_or(a * h + 1);
        let mut router = router(&t, RoutingKind::Dragonfly, HashKind::Mix64);
        let crossed = |ports: &[u32]| {
            let groups = |&port: &u32| [t.ports[port as usize].node, t.neighbour(port)].map(|n| shape.of(n));
            ports.iter().map(groups).filter(|[from, to]| from.is_some() && to.is_some() && from != to).count()
        };
        let mut longest = 0;
        for src in t.hosts() {
            for dst in t.hosts().filter(|&dst| dst != src) {
                let [first, last] = [src, dst].map(|host| t.neighbour(t.nodes[host as usize].ports[0]));
                let same = shape.of(first) == shape.of(last);
                for key in 0..4 {
                    let route = router.route(src, dst, key).unwrap();
                    assert_eq!(crossed(&route.ports), usize::from(!same));
                    longest = longest.max(route.ports.len());
                }
                let others = router.non_minimal(first, dst);
                // One for each link to a third group.
                let expected = if same || g == 2 { 0 } else { (g - 2) * (a * h / (g - 1)) };
                assert_eq!(others.len() as u32, expected);
                for path in others {
                    assert!(path.len() <= 2 && crossed(&path) == 1);
                    assert_eq!(t.ports[path[0] as usize].node, first);
                    let turn = t.neighbour(*path.last().unwrap());
                    assert!(![shape.of(first), shape.of(last)].contains(&shape.of(turn)));
                    let rest = router.distance(turn, dst).unwrap() as usize;
                    assert!(path.len() + rest <= 6, "five between switches, and the host's");
                }
            }
        }
        assert_eq!(longest, most);
    }
}

/// With dimension order a torus has a non-minimal path over each switch that makes the path longer.
#[test]
fn a_torus_has_paths_over_other_switches() {
    let t = torus(4, 3, 1);
    let mut router = router(&t, RoutingKind::DimensionOrder, HashKind::Mix64);
    let plain = Router::new(
        &t,
        &RoutingSpec { kind: RoutingKind::ShortestPath, hash: HashKind::Mix64, seed: 1, ttl: TTL },
        &[],
    );
    let mut plain = plain.unwrap();
    for (src, dst) in (0..12).flat_map(|src| (0..12).map(move |dst| (src, dst))).filter(|(a, b)| a != b) {
        let shortest = router.distance(12 + src, dst).unwrap();
        let mut turns = BTreeSet::new();
        for path in router.non_minimal(12 + src, dst) {
            let turn = t.neighbour(*path.last().unwrap());
            assert_eq!(path.len() as u32, router.distance(12 + src, turn).unwrap());
            assert!(turns.insert(turn));
        }
        let longer = (12..24).filter(|&via| {
            let whole = |router: &mut Router| {
                router.distance(12 + src, via).unwrap() + router.distance(via, dst).unwrap()
            };
            via != 12 + src && via != 12 + dst && whole(&mut router) > shortest
        });
        assert_eq!(turns, longer.collect());
        assert!(plain.non_minimal(12 + src, dst).is_empty());
    }
}
