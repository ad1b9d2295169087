//! Files of the HPCC simulator: topologies and flows.

use proptest::prelude::*;
use xoff_net::builders::TopologySpec;
use xoff_net::error::SpecError;
use xoff_net::topology::{NodeKind, Topology};
use xoff_net::traffic::{Demand, flows_hpcc, flows_left_out};

/// Like `mix/topology.txt` of the simulator: the switch has the lowest id, and prose is at the end.
const STAR: &str = "4 1 3\n0\n0 1 100Gbps 0.001ms 0\n0 2 100Gbps 0.001ms 0.000000\n\n0 3 25Gb/s 1000ns 1e-3\n\n\
                    First line: total node #, switch node #, link #\nsrc0 dst0 rate delay error_rate\n...\n";

fn topology(text: &str) -> Result<Topology, SpecError> {
    with_delay(text, "")
}

fn with_delay(text: &str, key: &str) -> Result<Topology, SpecError> {
    let spec: TopologySpec =
        toml::from_str(&format!("kind = \"hpcc\"\nfile = \"topology.txt\"\n{key}")).unwrap();
    assert_eq!(spec.file(), Some("topology.txt"));
    spec.build(text)
}

#[test]
fn ids_become_names_and_links_keep_their_order() {
    let t = topology(STAR).unwrap();
    let nodes: Vec<(&str, NodeKind)> = t.nodes.iter().map(|n| (n.name.as_str(), n.kind)).collect();
    let host = NodeKind::Host;
    assert_eq!(nodes, [("H1", host), ("H2", host), ("H3", host), ("S0", NodeKind::Switch)]);
    let ends: Vec<_> =
        t.ports.iter().map(|p| (t.nodes[p.node as usize].name.as_str(), p.rate, p.delay, p.loss)).collect();
    let fast = 100_000_000_000;
    assert_eq!(
        ends,
        [
            ("S0", fast, 1_000_000, 0.0),
            ("H1", fast, 1_000_000, 0.0),
            ("S0", fast, 1_000_000, 0.0),
            ("H2", fast, 1_000_000, 0.0),
            ("S0", 25_000_000_000, 1_000_000, 0.001),
            ("H3", 25_000_000_000, 1_000_000, 0.001),
        ]
    );
    assert!(!t.relay_hosts && t.ports.iter().all(|p| !p.long));
}

#[test]
fn a_list_of_switches_may_go_over_lines_and_be_empty() {
    let line = "4 2 3\n# the switches\n2\n3\n0 2 1Gbps 1us 0\n2 3 1Gbps 3ms 0\n3 1 1Gbps 1us 0\n";
    let t = with_delay(line, "long_delay = \"1ms\"").unwrap();
    assert_eq!(t.ports.iter().map(|p| p.long).collect::<Vec<_>>(), [false, false, true, true, false, false]);
    assert_eq!(t.sites(), [0, 1, 0, 1]);
    // Two hosts back to back.
    let t = topology("2 0 1\n\n0 1 1Gbps 1us 0\n").unwrap();
    assert_eq!((t.nodes.len(), t.ports.len()), (2, 2));
}

#[test]
fn contradictions_are_refused_at_their_line() {
    let replaced = |from: &str, to: &str| {
        assert!(STAR.contains(from), "{from}");
        let e = topology(&STAR.replacen(from, to, 1)).map(|_| ()).expect_err(to);
        assert_eq!(e.key, "file");
        (e.line.unwrap(), e.message)
    };
    let at = |(line, message): (usize, String), expected: usize, words: &str| {
        assert!(line == expected && message.contains(words), "line {line}: {message}");
    };
    // Numbers of the header.
    at(replaced("4 1 3", "4 1 2"), 1, "gives 4 nodes, but node 3 has no link");
    at(replaced("4 1 3", "4 1 4"), 8, "gives 4 links, but only 3 are above");
    at(replaced("4 1 3", "5 1 3"), 1, "gives 5 nodes, but node 4 has no link");
    at(replaced("4 1 3", "3 1 3"), 6, "node `3` does not exist");
    at(replaced("4 1 3", "4 2 3"), 3, "gives 2 switches, but only 1 are above");
    at(replaced("4 1 3", "4 0 3"), 2, "a link line with 1 field");
    at(replaced("4 1 3", "4 4 3"), 1, "leave no host");
    at(replaced("4 1 3", "4 1"), 1, "not a header");
    at(replaced("4 1 3", "4 8 0 1 3 A100"), 1, "not a header");
    at(replaced("4 1 3", "9999999 1 3"), 1, "9999999 hosts");
    at(replaced("4 1 3", "4 1 99999999"), 1, "ports");
    // The list of switches.
    at(replaced("\n0\n", "\n0 1\n"), 2, "lists more");
    at(replaced("\n0\n", "\n4\n"), 2, "node `4` does not exist");
    at(replaced("4 1 3\n0\n", "4 2 3\n0 0\n"), 2, "listed twice");
    at(replaced("0\n0 1", "0 1"), 2, "but only 0 are above");
    // Links.
    at(replaced("0 2 100Gbps", "2 2 100Gbps"), 4, "to itself");
    at(replaced("0 2 100Gbps", "0 2 100Gbs"), 4, "unknown unit");
    at(replaced("0 2 100Gbps", "0 2 0Gbps"), 4, "zero");
    at(replaced("1000ns", "1000"), 6, "has no unit");
    at(replaced("1e-3", "2"), 6, "error rate");
    at(replaced("1e-3", "nan"), 6, "error rate");
    at(replaced("1e-3", "-0.1"), 6, "error rate");
    at(replaced(" 1e-3", ""), 6, "a link line with 4 fields");
    let short = topology("3 1 2\n0\n0 1 1Gbps 1us 0\n").map(|_| ()).unwrap_err();
    at((short.line.unwrap(), short.message), 1, "gives 2 links, but 1 follow");
    let empty = topology("# nothing\n\n").map(|_| ()).unwrap_err();
    assert_eq!((empty.line, empty.message.as_str()), (Some(1), "the file is empty"));
}

/// As `mix/flow.txt` of the simulator is written.
const FLOWS: &str = "3\n2 1 3 100 200000000 2\n1 3 5 100 40 1.999999999\n\n3 2 0 9 1000 2.000000000001\n\n\
                     First line: # of flows\nsrc0 dst0 3 dst_port0 size0 start_time0\n";

#[test]
fn flows_come_in_the_order_of_time_with_their_priorities() {
    let t = topology(STAR).unwrap();
    let flow = |src, dst, size, start| Demand { src, dst, size, start };
    assert_eq!(
        flows_hpcc(FLOWS, &t).unwrap(),
        [
            (flow(0, 2, 40, 1_999_999_999_000), 5),
            (flow(1, 0, 200_000_000, 2_000_000_000_000), 3),
            (flow(2, 1, 1_000, 2_000_000_000_001), 0),
        ]
    );
    // What the header does not announce is left out, as in the files of HPCC's repository.
    let further = topology(&format!("{STAR}0 1 100Gbps 1us 0\n")).unwrap();
    assert_eq!(further.remarks.len(), 1);
    assert!(further.remarks[0].ends_with("gives 3 links: 1 further line left out, as by HPCC's simulator"));
    let fewer = FLOWS.replacen("3\n", "2\n", 1);
    assert_eq!(flows_hpcc(&fewer, &t).unwrap().len(), 2);
    assert_eq!(flows_left_out("f", FLOWS), None);
    assert!(
        flows_left_out("f.txt", &fewer)
            .unwrap()
            .starts_with("the header of `f.txt` gives 2 flows: 1 further line")
    );
    // ConWeave's lines have no port.
    assert_eq!(flows_hpcc("1\n2 1 3 8 2\n", &t).unwrap(), [(flow(1, 0, 8, 2_000_000_000_000), 3)]);
}

#[test]
fn flows_that_contradict_are_refused_at_their_line() {
    let t = topology(STAR).unwrap();
    let at = |from: &str, to: &str, line: usize, words: &str| {
        assert!(FLOWS.contains(from), "{from}");
        let e = flows_hpcc(&FLOWS.replacen(from, to, 1), &t).expect_err(to);
        assert!(e.key == "file" && e.line == Some(line) && e.message.contains(words), "{to}: {e:?}");
    };
    at("3\n", "4\n", 7, "gives 4 flows, but only 3 are above");
    at("3\n", "", 1, "not a number of flows");
    at("3\n", "0\n", 1, "no flows");
    at("3\n", "99999999999\n", 1, "99999999999 flows are too many");
    // The switch, no node, and a name.
    at("2 1 3", "0 1 3", 2, "`0` is not the id of a host");
    at("2 1 3", "2 4 3", 2, "`4` is not the id of a host");
    at("2 1 3", "H2 1 3", 2, "but only 0 are above this line");
    at("2 1 3", "1 1 3", 2, "from H1 to itself");
    at("2 1 3", "2 1 8", 2, "priority group `8`");
    at("200000000 2", "0 2", 2, "`0` is not a number of bytes");
    at("200000000 2", "200000000 2us", 2, "not a time in seconds");
    at("200000000 2", "200000000 2e-3", 2, "not a time in seconds");
    at("200000000 2", "200000000 0.0000000000001", 2, "not a time in seconds");
    at("40 1.999999999", "40", 3, "has 5 fields, but earlier lines have 6");
    at("2 1 3 100 200000000 2", "2 1 3 7 8 1000 2", 2, "7 fields");
    for (text, words) in [("", "the file is empty"), ("2\n1 2 3 100 5 0\n", "gives 2 flows, but 1 follow")] {
        let e = flows_hpcc(text, &t).unwrap_err();
        assert_eq!((e.line, e.message.contains(words)), (Some(1), true), "{e:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// For any text, reading returns, and an error names an existing line.
    #[test]
    fn no_text_makes_the_readers_panic(text in "([0-9a-z# .\n-]|[0-9]{1,20} |Gbps|1us){0,60}", cut in 0..200usize, piece in "[ -~\n]{0,8}") {
        let star = topology(STAR).unwrap();
        for base in [STAR, FLOWS] {
            let cut = cut.min(base.len());
            let mixed = format!("{}{piece}{}", &base[..cut], &base[cut..]);
            for text in [text.as_str(), &mixed] {
                let lines = text.lines().count().max(1);
                for line in [topology(text).err(), flows_hpcc(text, &star).err()].into_iter().flatten().map(|e| e.line.unwrap()) {
                    prop_assert!((1..=lines).contains(&line), "{line}: {text:?}");
                }
            }
        }
    }
}
