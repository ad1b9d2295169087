use super::*;
use crate::error::SpecError;
use crate::topology::PortId;
use std::collections::BTreeSet;

fn build(toml: &str) -> Result<Topology, SpecError> {
    let spec: TopologySpec = toml::from_str(toml).unwrap_or_else(|e| panic!("{toml}\n{e}"));
    assert!(TopologySpec::KINDS.contains(&spec.kind()));
    let topology = spec.build("")?;
    check(&topology);
    Ok(topology)
}

/// Properties of every topology.
fn check(t: &Topology) {
    for (id, port) in t.ports.iter().enumerate() {
        let peer = &t.ports[port.peer as usize];
        assert_eq!(peer.peer as usize, id);
        assert_ne!(peer.node, port.node);
        assert_eq!((peer.rate, peer.delay), (port.rate, port.delay));
        assert_eq!(t.nodes[port.node as usize].ports[port.index as usize] as usize, id);
    }
    let names: BTreeSet<&str> = t.nodes.iter().map(|n| n.name.as_str()).collect();
    assert_eq!(names.len(), t.nodes.len(), "names are unique");
    let hosts = t.hosts().count() as NodeId;
    assert!(t.hosts().eq(0..hosts), "hosts come first");
}

fn radix(t: &Topology, name: &str) -> usize {
    t.nodes[t.find(name).unwrap() as usize].ports.len()
}

fn neighbours(t: &Topology, name: &str) -> Vec<String> {
    let ports = &t.nodes[t.find(name).unwrap() as usize].ports;
    ports.iter().map(|&p: &PortId| t.nodes[t.neighbour(p) as usize].name.clone()).collect()
}

const LINK: &str = "{ rate = \"100Gbps\", delay = \"1us\" }";

fn ndc(n: u32, k: u32) -> Result<Topology, SpecError> {
    build(&format!("kind = \"ndc\"\nn = {n}\nk = {k}\nlink = {LINK}"))
}

#[test]
fn ndc_4_1_has_the_papers_structure() {
    let t = ndc(4, 1).unwrap();
    assert_eq!((t.hosts().count(), t.nodes.len(), t.ports.len()), (16, 24, 64));
    assert!(t.relay_hosts);
    for host in t.hosts() {
        assert_eq!(t.nodes[host as usize].ports.len(), 2);
    }
    // A layer-0 switch holds one NDC(4, 0); a layer-1 switch joins the hosts
    // of the same position in each of them.
    assert_eq!(neighbours(&t, "S0.1"), ["H4", "H5", "H6", "H7"]);
    assert_eq!(neighbours(&t, "S1.1"), ["H1", "H5", "H9", "H13"]);
    assert_eq!(neighbours(&t, "H6"), ["S0.1", "S1.2"]);
}

#[test]
fn ndc_counts_follow_the_definition_and_layers_change_one_digit() {
    for (n, k) in [(2u32, 0u32), (2, 3), (3, 2), (8, 1), (5, 0)] {
        let t = ndc(n, k).unwrap();
        let hosts = n.pow(k + 1);
        assert_eq!(t.hosts().count() as u32, hosts);
        assert_eq!(t.nodes.len() as u32, hosts + (k + 1) * n.pow(k));
        let cube = t.cube.unwrap();
        for a in 0..hosts {
            for l in 0..=k {
                let switch = t.neighbour(t.nodes[a as usize].ports[l as usize]);
                for (digit, &port) in t.nodes[switch as usize].ports.iter().enumerate() {
                    let b = t.neighbour(port);
                    assert_eq!(cube.digit(b, l) as usize, digit);
                    assert!((0..=k).all(|m| m == l || cube.digit(a, m) == cube.digit(b, m)));
                }
            }
        }
    }
}

#[test]
fn leaf_spine_and_fat_tree_have_their_counts() {
    let t = build(&format!(
        "kind = \"leaf-spine\"\nleaves = 10\nspines = 4\nhosts_per_leaf = 16\nlinks_per_pair = 2\n\
         host_link = {LINK}\nfabric_link = {{ rate = \"400Gbps\", delay = \"600ns\" }}"
    ))
    .unwrap();
    assert_eq!((t.hosts().count(), t.nodes.len(), t.ports.len()), (160, 174, 2 * (160 + 80)));
    assert_eq!((radix(&t, "S0.9"), radix(&t, "S1.0")), (16 + 8, 20));
    assert_eq!(neighbours(&t, "H16"), ["S0.1"]);

    let t = build(&format!("kind = \"fat-tree\"\nk = 16\nlink = {LINK}")).unwrap();
    assert_eq!((t.hosts().count(), t.nodes.len(), t.ports.len()), (1024, 1344, 2 * 3 * 1024));
    assert!(t.nodes[1024..].iter().all(|s| s.ports.len() == 16));
    // Every core reaches every pod once.
    let pods: Vec<u32> = neighbours(&t, "S2.37").iter().map(|s| s[3..].parse::<u32>().unwrap() / 8).collect();
    assert_eq!(pods, (0..16).collect::<Vec<_>>());

    let t = build(&format!("kind = \"fat-tree\"\nk = 4\ntiers = 2\noversubscription = 3\nlink = {LINK}"))
        .unwrap();
    assert_eq!((t.hosts().count(), t.nodes.len(), t.ports.len()), (24, 30, 2 * (24 + 8)));
    assert_eq!((radix(&t, "S0.0"), radix(&t, "S1.1")), (8, 4));
}

#[test]
fn small_networks_are_as_drawn() {
    let t = build(&format!(
        "kind = \"dumbbell\"\nleft = 2\nright = 3\nlink = {LINK}\nbottleneck = {{ rate = \"10Gbps\", delay = \"80km\" }}"
    ))
    .unwrap();
    assert_eq!(neighbours(&t, "S0.0"), ["H0", "H1", "S0.1"]);
    assert_eq!(neighbours(&t, "S0.1"), ["H2", "H3", "H4", "S0.0"]);
    assert_eq!(t.ports.last().unwrap().delay, 400_000_000);

    let shape = format!("switches = 3\nhosts_per_switch = 1\nlink = {LINK}");
    let t = build(&format!("kind = \"line\"\n{shape}")).unwrap();
    assert_eq!(neighbours(&t, "S0.1"), ["H1", "S0.0", "S0.2"]);
    assert_eq!(neighbours(&t, "S0.2"), ["H2", "S0.1"]);
    let t = build(&format!("kind = \"ring\"\n{shape}")).unwrap();
    assert_eq!(neighbours(&t, "S0.2"), ["H2", "S0.1", "S0.0"]);
}

fn custom(hosts: &str, switches: &str, links: &[(&str, &str)]) -> Result<Topology, SpecError> {
    let links: String = links
        .iter()
        .map(|(a, b)| format!("{{ a = \"{a}\", b = \"{b}\", rate = \"10Gbps\", delay = \"1us\" }},"))
        .collect();
    build(&format!("kind = \"custom\"\nhosts = {hosts}\nswitches = {switches}\nlinks = [{links}]"))
}

#[test]
fn a_custom_topology_keeps_its_names() {
    let t = custom("[\"A\", \"B\"]", "[\"X\"]", &[("A", "X"), ("X", "B"), ("X", "B")]).unwrap();
    assert_eq!(neighbours(&t, "X"), ["A", "B", "B"]);
    assert_eq!(t.names()["B"], 1);
    assert!(!t.relay_hosts && t.cube.is_none());
}

#[test]
fn contradictions_are_errors_at_their_key() {
    let key = |result: Result<Topology, SpecError>| result.unwrap_err().key;
    assert_eq!(key(custom("[]", "[]", &[])), "hosts");
    assert_eq!(key(custom("[\"A\", \"A\"]", "[]", &[])), "hosts[1]");
    assert_eq!(key(custom("[\"A\"]", "[\"A\"]", &[])), "switches[0]");
    assert_eq!(key(custom("[\"7\"]", "[]", &[])), "hosts[0]");
    assert_eq!(key(custom("[\"A:1\"]", "[]", &[])), "hosts[0]");
    let two = "[\"A\", \"B\"]";
    assert_eq!(key(custom(two, "[\"X\"]", &[("A", "X"), ("Y", "B")])), "links[1].a");
    assert_eq!(key(custom(two, "[\"X\"]", &[("A", "X"), ("X", "X")])), "links[1].b");
    assert_eq!(key(custom(two, "[\"X\"]", &[("A", "X")])), "hosts[1]");
}

#[test]
fn counts_out_of_range_and_absurd_sizes_are_refused_before_building() {
    let error = |toml: String| build(&toml).unwrap_err();
    for (toml, key) in [
        (format!("kind = \"ndc\"\nn = 1\nk = 1\nlink = {LINK}"), "n"),
        (format!("kind = \"fat-tree\"\nk = 5\nlink = {LINK}"), "k"),
        (format!("kind = \"fat-tree\"\nk = 0\nlink = {LINK}"), "k"),
        (format!("kind = \"fat-tree\"\nk = 4\ntiers = 4\nlink = {LINK}"), "tiers"),
        (format!("kind = \"fat-tree\"\nk = 4\noversubscription = 0\nlink = {LINK}"), "oversubscription"),
        (
            format!("kind = \"fat-tree\"\nk = 4\noversubscription = 4000000\nlink = {LINK}"),
            "oversubscription",
        ),
        (
            format!("kind = \"fat-tree\"\nk = 4294967294\noversubscription = 4294967295\nlink = {LINK}"),
            "oversubscription",
        ),
        (format!("kind = \"ring\"\nswitches = 2\nhosts_per_switch = 1\nlink = {LINK}"), "switches"),
        (format!("kind = \"line\"\nswitches = 1\nhosts_per_switch = 0\nlink = {LINK}"), "hosts_per_switch"),
        (
            format!("kind = \"line\"\nswitches = 1\nhosts_per_switch = 100000\nlink = {LINK}"),
            "hosts_per_switch",
        ),
        (format!("kind = \"dumbbell\"\nleft = 0\nright = 1\nlink = {LINK}\nbottleneck = {LINK}"), "left"),
        (
            format!(
                "kind = \"leaf-spine\"\nleaves = 4294967295\nspines = 4294967295\nhosts_per_leaf = 1\n\
                 links_per_pair = 4294967295\nhost_link = {LINK}\nfabric_link = {LINK}"
            ),
            "spines",
        ),
    ] {
        assert_eq!(error(toml.clone()).key, key, "{toml}");
    }
    let large = ndc(1000, 20).unwrap_err();
    assert_eq!(large.key, "k");
    assert!(large.help.contains("2000000"), "{large:?}");
    let large = ndc(200, 2).unwrap_err();
    assert!(large.message.contains("8000000 hosts"), "{large:?}");
}

#[test]
fn unknown_and_missing_keys_are_refused_and_the_schema_knows_the_kinds() {
    let parse = |toml: String| toml::from_str::<TopologySpec>(&toml).unwrap_err().to_string();
    assert!(parse(format!("kind = \"ndc\"\nn = 4\nk = 1\nlinks = {LINK}")).contains("links"));
    assert!(parse(format!("kind = \"ndc\"\nn = 4\nlink = {LINK}")).contains("missing field `k`"));
    assert!(parse(format!("kind = \"torus\"\nn = 4\nlink = {LINK}")).contains("torus"));
    let schema = serde_json::to_string(&schemars::schema_for!(TopologySpec)).unwrap();
    assert!(
        TopologySpec::KINDS.iter().all(|kind| schema.contains(&format!("\"const\":\"{kind}\""))),
        "{schema}"
    );
    assert!(schema.contains("Gbps"));
}

#[test]
fn pods_have_the_links_of_their_shape_in_its_order() {
    let of = |shape: &str| build(&format!("kind = \"pods\"\n{shape}\nlink = {LINK}"));
    let t = of("pods = 3\nracks = 2\nhosts_per_rack = 4\naggs = 3\ncores = 4").unwrap();
    assert_eq!((t.hosts().count(), t.nodes.len()), (24, 24 + 3 * (2 + 3) + 4));
    assert_eq!(t.ports.len(), 2 * (24 + 3 * 2 * 3 + 3 * 4));
    assert_eq!(neighbours(&t, "H13"), ["S0.3"]);
    assert_eq!(neighbours(&t, "S0.3"), ["H12", "H13", "H14", "H15", "S1.3", "S1.4", "S1.5"]);
    // Core 3 is the second one of the first aggregation switch of each pod.
    assert_eq!(neighbours(&t, "S1.3"), ["S0.2", "S0.3", "S2.0", "S2.3"]);
    assert_eq!(neighbours(&t, "S1.4"), ["S0.2", "S0.3", "S2.1"]);
    assert_eq!(neighbours(&t, "S2.3"), ["S1.0", "S1.3", "S1.6"]);
    let shape = t.pods.unwrap();
    assert_eq!((shape.pods, shape.racks, shape.hosts_per_rack, shape.aggs, shape.cores), (3, 2, 4, 3, 4));

    // Hosts to ToRs, ToRs to aggregation switches, aggregation switches to cores.
    let first = |link: usize| {
        let name = |port: usize| t.nodes[t.ports[port].node as usize].name.as_str();
        (name(2 * link), name(2 * link + 1))
    };
    assert!((0..24).all(|host| first(host) == (&format!("H{host}"), &format!("S0.{}", host / 4))));
    let mut link = 24;
    for tor in 0..6 {
        for agg in 0..3 {
            assert_eq!(first(link), (&*format!("S0.{tor}"), &*format!("S1.{}", tor / 2 * 3 + agg)));
            link += 1;
        }
    }
    for core in 0..4 {
        for pod in 0..3 {
            assert_eq!(first(link), (&*format!("S1.{}", pod * 3 + core % 3), &*format!("S2.{core}")));
            link += 1;
        }
    }
    assert_eq!(2 * link, t.ports.len());

    // A pod of a fat-tree of 32-port switches, and 8-port switches with 7 of 16 cores.
    let one = of("racks = 16\nhosts_per_rack = 16\naggs = 16").unwrap();
    assert_eq!((one.hosts().count(), one.nodes.len(), one.ports.len()), (256, 288, 2 * 512));
    let eight = of("pods = 8\nracks = 4\nhosts_per_rack = 4\naggs = 4\ncores = 7").unwrap();
    assert_eq!((eight.hosts().count(), eight.nodes.len()), (128, 128 + 64 + 7));
    assert_eq!((radix(&eight, "S1.2"), radix(&eight, "S1.3"), radix(&eight, "S2.6")), (6, 5, 8));
}
