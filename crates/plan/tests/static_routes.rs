//! Static routes from a file, and tiers.

use std::io;
use std::path::Path;
use xoff_plan::{Error, Loaded, load};

/// Two racks of two hosts each under two spines.
const RACKS: &str = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
    host_link = { rate = \"100Gbps\", delay = \"1us\" }\nfabric_link = { rate = \"100Gbps\", delay = \"1us\" }\n[[traffic]]\nkind = \"all-to-all\"\nsize = \"1MB\"\n";

fn with(routing: &str, file: &str) -> Result<Loaded, Error> {
    let files = |path: &Path| match path.to_str() {
        Some("routes.csv") => Ok(file.as_bytes().to_vec()),
        _ => Err(io::Error::other("no such file")),
    };
    load("test.toml", format!("{RACKS}[routing]\n{routing}").as_bytes(), &[], &files)
}

#[test]
fn a_file_has_routes_for_several_hosts() {
    let file = "# to the second rack\nvia,at,to\nS1.1,S0.0,?2\nS1.1,S0.0,H3*\n";
    let loaded = with("overrides_file = \"routes.csv\"\n", file).unwrap();
    let mut router = loaded.router.clone();
    let topology = &loaded.plan.topology;
    let find = |name: &str| topology.find(name).unwrap();
    for to in ["H2", "H3"] {
        let next: Vec<u32> =
            router.next_hops(find("S0.0"), find(to)).iter().map(|&p| topology.neighbour(p)).collect();
        assert_eq!(next, [find("S1.1")], "{to}");
    }
    let error = |file: &str| {
        let e = with("overrides_file = \"routes.csv\"\n", file).err().unwrap();
        (e.file().to_string(), e.position().map(|(line, _)| line), e.message().to_string())
    };
    let at = |line: usize, message: &str| ("routes.csv".to_string(), Some(line), message.to_string());
    assert_eq!(error("at,to,via\nS0.0,H9,S1.0\n"), at(2, "no host is called `H9`"));
    assert_eq!(error("at,to,via\nS0.9,H1,S1.0\n"), at(2, "no node is called `S0.9`"));
    assert_eq!(error("at,to,via\nS0.0,H3,S0.1\n"), at(2, "S0.1 is not a neighbour of S0.0"));
    assert_eq!(error("at,to,via\nS0.0,H3,H0\n"), at(2, "H0 is a host that does not relay"));
    assert_eq!(error("at,to\n"), at(1, "the header must be at,to,via"));
    assert_eq!(error("at,to,via\nS0.0,H3\n"), at(2, "a line must have the three fields at, to and via"));
    assert_eq!(error("at,to,via\n"), at(1, "the file has no routes"));
}

#[test]
fn tiers_name_each_switch_once() {
    let error = |tiers: &str| {
        let e = with(&format!("kind = \"valley-free\"\ntiers = {tiers}\n"), "").err().unwrap();
        assert_eq!(e.key(), Some("routing.tiers"));
        e.message().to_string()
    };
    assert!(with("kind = \"valley-free\"\ntiers = [[\"S0.*\"], [\"S1.0\", \"S1.1\"]]\n", "").is_ok());
    assert_eq!(error("[[\"S0.*\"], [\"S1.0\"]]"), "switch S1.1 has no tier");
    assert_eq!(error("[[\"S*\"], [\"S1.*\"]]"), "switch S1.0 is on two tiers, 1 and 2");
    assert_eq!(error("[[\"S*\", \"T*\"]]"), "no switch is called `T*`");
    let unused = with("tiers = [[\"S*\"]]\n", "").err().unwrap();
    assert_eq!(unused.message(), "`tiers` applies to valley-free routing only");
    // With the tiers upside down no path goes up and then down.
    let none = with("kind = \"valley-free\"\ntiers = [[\"S1.*\"], [\"S0.*\"]]\n", "").err().unwrap();
    assert!(none.message().contains("no path"), "{none}");
}

#[test]
fn the_root_of_up_down_routing_is_a_switch() {
    let router = |root: &str| {
        with(&format!("kind = \"up-down\"\n{root}"), "").map(|loaded| (loaded.router, loaded.plan))
    };
    let (mut router_of_s1, plan) = router("root = \"S1.1\"\n").unwrap();
    let find = |name: &str| plan.topology.find(name).unwrap();
    let over = |router: &mut xoff_net::routing::Router| {
        let ports = router.next_hops(find("S0.0"), find("H3"));
        ports.iter().map(|&port| plan.topology.neighbour(port)).collect::<Vec<_>>()
    };
    assert_eq!(over(&mut router_of_s1), [find("S1.1")]);
    assert_eq!(over(&mut router("").unwrap().0).len(), 1);
    let message = |root: &str| {
        let e = router(root).err().unwrap();
        assert_eq!(e.key(), Some("routing.root"));
        e.message().to_string()
    };
    assert_eq!(message("root = \"S9\"\n"), "no node is called `S9`");
    assert_eq!(message("root = \"H0\"\n"), "H0 is a host that does not relay");
    let unused = with("root = \"S1.1\"\n", "").err().unwrap();
    assert_eq!(unused.message(), "`root` applies to up-down routing only");
}
