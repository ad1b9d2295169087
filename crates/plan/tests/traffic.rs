//! Senders, receivers and sizes: groups, matrices, nearness, loads, priorities.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use xoff_plan::plan::{Flow, Plan};
use xoff_plan::{Loaded, load};

const LEAF_SPINE: &str = "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4\n\
                          host_link = { rate = \"100Gbps\", delay = \"1us\" }\n\
                          fabric_link = { rate = \"200Gbps\", delay = \"1us\" }\n";
const FAT_TREE: &str =
    "[topology]\nkind = \"fat-tree\"\nk = 4\nlink = { rate = \"100Gbps\", delay = \"1us\" }\n";
/// About 30,000 flows of 1 kB.
const POISSON: &str = "[run]\nduration = \"1ms\"\n[[traffic]]\nkind = \"poisson\"\nsizes = \"1kB\"\n\
                       load = 0.17\nload_of = \"host-links\"\n";

fn loaded(parts: &[&str]) -> Loaded {
    let files = |path: &Path| match path.to_str() {
        Some("list.csv") => Ok(b"from,to,share\nrack:0,rack:1,3\nH4..H7,H12,1\n".to_vec()),
        Some("square.csv") => Ok(b",rack:1,H12\nrack:0,3,0\n# the rest\nrack:1,0,1\n".to_vec()),
        _ => Err(io::Error::other("no such file")),
    };
    load("test.toml", parts.concat().as_bytes(), &[], &files).unwrap_or_else(|e| panic!("{}", e.one_line()))
}

fn plan(parts: &[&str]) -> Plan {
    loaded(parts).plan
}

/// Asserts that the share of flows that `keep` keeps is as expected, up to four
/// standard deviations of a binomial count.
fn assert_share(flows: &[Flow], expected: f64, what: &str, keep: impl Fn(&Flow) -> bool) {
    let n = flows.len() as f64;
    let found = flows.iter().filter(|f| keep(f)).count() as f64;
    let deviation = (n * expected * (1.0 - expected)).sqrt();
    assert!((found - n * expected).abs() <= 4.0 * deviation, "{what}: {} of {n}, expected {expected}", found);
}

#[test]
fn groups_and_ranges_name_hosts() {
    let ends = |topology: &str, from: &str| -> Vec<u32> {
        let hosts = format!("from = {from}\n");
        let mut from: Vec<u32> = plan(&[topology, POISSON, &hosts]).flows.iter().map(|f| f.src).collect();
        from.sort_unstable();
        from.dedup();
        from
    };
    assert_eq!(ends(LEAF_SPINE, "[\"rack:2\"]"), [8, 9, 10, 11]);
    assert_eq!(ends(LEAF_SPINE, "[\"H1..H3\", \"H9\"]"), [1, 2, 3, 9]);
    assert_eq!(ends(LEAF_SPINE, "[\"all\"]"), (0..16).collect::<Vec<_>>());
    // k = 4: pods of two racks with two hosts each.
    assert_eq!(ends(FAT_TREE, "[\"rack:3\"]"), [6, 7]);
    assert_eq!(ends(FAT_TREE, "[\"pod:3\"]"), [12, 13, 14, 15]);
    let ndc = "[topology]\nkind = \"ndc\"\nn = 3\nk = 1\nlink = { rate = \"10Gbps\", delay = \"1us\" }\n";
    assert_eq!(ends(ndc, "[\"rack:1\"]"), [3, 4, 5], "the switch of layer 0");
}

#[test]
fn data_centres_end_at_long_links() {
    let dci = "[topology]\nkind = \"dci\"\nk = 4\nlink = { rate = \"100Gbps\", delay = \"1us\" }\n\
               long_link = { rate = \"400Gbps\", length = \"10km\" }\n";
    let plan = plan(&[dci, POISSON, "from = [\"dc:1\"]\nto = [\"dc:0\"]\n"]);
    assert!(plan.flows.iter().all(|f| f.src >= 16 && f.dst < 16));
    // Pods are counted through both: four in each.
    let plan = self::plan(&[dci, POISSON, "from = [\"pod:5\"]\nlocality = { dc = 3, other = 1 }\n"]);
    assert!(plan.flows.iter().all(|f| (20..24).contains(&f.src)));
    assert_share(&plan.flows, 0.75, "dc", |f| f.dst >= 16);
}

#[test]
fn a_matrix_deals_out_its_shares() {
    let rack = |host: u32| host / 4;
    let inline = "matrix = [{ from = \"rack:0\", to = \"rack:1\", share = 3 }, { from = \"H4..H7\", to = \"H12\", share = 1 }]\n";
    for matrix in [inline, "matrix_file = \"list.csv\"\n", "matrix_file = \"square.csv\"\n"] {
        let plan = plan(&[LEAF_SPINE, POISSON, matrix]);
        assert_share(&plan.flows, 0.75, matrix, |f| rack(f.src) == 0 && rack(f.dst) == 1);
        assert_share(&plan.flows, 0.25, matrix, |f| rack(f.src) == 1 && f.dst == 12);
        for (src, dst) in [(0, 4), (3, 7)] {
            assert_share(&plan.flows, 0.75 / 16.0, matrix, |f| (f.src, f.dst) == (src, dst));
        }
        // Senders are those that the matrix names: 8 hosts of 100 Gbit/s.
        let bits = plan.flows.len() as f64 * 1062.0 * 8.0;
        assert!((bits / (0.17 * 8e11 * 1e-3) - 1.0).abs() < 0.03, "{bits}");
    }
}

#[test]
fn the_matrix_decides_which_link_saturates() {
    // A single pair: its host link is full at 100 Gbit/s. With another receiver
    // in the same share the sender's link is.
    let text = |matrix: &str| {
        let poisson = POISSON.replace("load_of = \"host-links\"\n", "");
        loaded(&[LEAF_SPINE, &poisson, matrix]).saturation[0].unwrap()
    };
    let one = text("matrix = [{ from = \"H0\", to = \"H4\", share = 1 }]\n");
    assert!((one.rate - 1e11).abs() < 1.0, "{}", one.rate);
    // H4 receives half of all: 200 Gbit/s in all until its link is full.
    let half = text(
        "matrix = [{ from = \"H0\", to = \"H4\", share = 1 }, { from = \"H1\", to = \"H5\", share = 1 }]\n",
    );
    assert!((half.rate - 2e11).abs() < 1.0, "{}", half.rate);
}

#[test]
fn nearness_has_its_shares() {
    let plan = plan(&[FAT_TREE, POISSON, "locality = { rack = 5, pod = 3, other = 2 }\n"]);
    let (rack, pod) = (|h: u32| h / 2, |h: u32| h / 4);
    assert_share(&plan.flows, 0.5, "rack", |f| rack(f.src) == rack(f.dst));
    assert_share(&plan.flows, 0.3, "pod", |f| rack(f.src) != rack(f.dst) && pod(f.src) == pod(f.dst));
    assert_share(&plan.flows, 0.2, "other", |f| pod(f.src) != pod(f.dst));
    assert!(plan.flows.iter().all(|f| f.src != f.dst));
    // Uniform within: one other host in the rack, two in the pod, twelve beyond.
    assert_share(&plan.flows, 0.5 / 16.0, "H0 to H1", |f| (f.src, f.dst) == (0, 1));
    assert_share(&plan.flows, 0.3 / 32.0, "H5 to H6", |f| (f.src, f.dst) == (5, 6));
    assert_share(&plan.flows, 0.2 / 192.0, "H5 to H12", |f| (f.src, f.dst) == (5, 12));
    // Without a share of the rack its hosts count to the pod.
    let plan = self::plan(&[FAT_TREE, POISSON, "locality = { pod = 0.9, other = 0.1 }\n"]);
    assert_share(&plan.flows, 0.9, "pod", |f| pod(f.src) == pod(f.dst));
    assert_share(&plan.flows, 0.3, "rack", |f| rack(f.src) == rack(f.dst));
    // All traffic in the rack never meets the fabric: the host links saturate.
    let poisson = POISSON.replace("load_of = \"host-links\"\n", "");
    let near = loaded(&[FAT_TREE, &poisson, "locality = { rack = 1 }\n"]).saturation[0].unwrap();
    assert!((near.rate - 16e11).abs() < 1e3, "{}", near.rate);
}

#[test]
fn priorities_are_dealt_out_by_weight_and_move_nothing_else() {
    let base = plan(&[LEAF_SPINE, POISSON]);
    let split = plan(&[LEAF_SPINE, POISSON, "priorities = { 5 = 2, 3 = 5, 0 = 3 }\n"]);
    let priority = |f: &Flow| split.lanes[usize::from(f.lane)].priority;
    assert_share(&split.flows, 0.5, "3", |f| priority(f) == 3);
    assert_share(&split.flows, 0.2, "5", |f| priority(f) == 5);
    assert_share(&split.flows, 0.3, "0", |f| priority(f) == 0);
    assert_eq!(base.flows.len(), split.flows.len());
    assert!(
        base.flows.iter().zip(&split.flows).all(|(a, b)| (a.src, a.dst, a.start) == (b.src, b.dst, b.start))
    );
    // ACKs go with their data.
    assert!(split.flows.iter().all(|f| f.lane == f.ack_lane));
}

#[test]
fn an_incast_has_its_load() {
    let incast = "[run]\nduration = \"10ms\"\n[[traffic]]\nkind = \"incast\"\nfan_in = 5\nsize = \"10kB\"\n";
    // Ten packets of 1,062 B from five senders at a fifth of 100 Gbit/s: 21.24 us.
    let fixed = plan(&[LEAF_SPINE, incast, "load = 0.2\nto = \"H3\"\n"]);
    let starts: Vec<u64> = fixed.flows.iter().step_by(5).map(|f| f.start).collect();
    assert!(starts.iter().enumerate().all(|(i, &t)| t == i as u64 * 21_240_000));
    assert!(fixed.flows.iter().all(|f| f.dst == 3));
    // Three flows of each sender are three times the bytes, and so a third as often.
    let three = plan(&[LEAF_SPINE, incast, "load = 0.2\nto = \"H3\"\nflows_per_sender = 3\n"]);
    let starts: Vec<u64> = three.flows.iter().step_by(15).map(|f| f.start).collect();
    assert!(starts.len() > 100 && starts.iter().enumerate().all(|(i, &t)| t == i as u64 * 63_720_000));
    // Of the links of all 16 hosts: 16 times as often.
    let all = plan(&[LEAF_SPINE, incast, "load = 0.2\nload_of = \"host-links\"\nto = \"rotate\"\n"]);
    assert_eq!(all.flows[5].start, 21_240_000 / 16);
    let receivers: Vec<u32> = all.flows.iter().step_by(5).map(|f| f.dst).take(20).collect();
    assert_eq!(receivers, (0..20).map(|i| i % 16).collect::<Vec<u32>>());
    let few =
        plan(&[LEAF_SPINE, incast, "period = \"1ms\"\nto = \"rotate\"\nreceivers = [\"H9\", \"rack:0\"]\n"]);
    let receivers: Vec<u32> = few.flows.iter().step_by(5).map(|f| f.dst).collect();
    assert_eq!(receivers, [9, 0, 1, 2, 3, 9, 0, 1, 2, 3]);
}

/// One receiver for all events, drawn by the seed among those that may receive.
#[test]
fn incasts_to_a_receiver_that_is_drawn_once() {
    let receiver = |seed: u64, among: &str| {
        let run = format!("[run]\nduration = \"10ms\"\nseed = {seed}\n");
        let incast = "[[traffic]]\nkind = \"incast\"\nfan_in = 5\nsize = \"10kB\"\nperiod = \"100us\"\nto = \"fixed\"\n";
        let plan = plan(&[LEAF_SPINE, &run, incast, among]);
        assert_eq!(plan.flows.len(), 500);
        let dst = plan.flows[0].dst;
        assert!(plan.flows.iter().all(|f| f.dst == dst && f.src != dst));
        dst
    };
    let drawn: BTreeSet<u32> = (0..40).map(|seed| receiver(seed, "")).collect();
    assert!(drawn.len() > 8, "{drawn:?}");
    let few: BTreeSet<u32> = (0..20).map(|seed| receiver(seed, "receivers = [\"H9\", \"H2\"]\n")).collect();
    assert_eq!(few, BTreeSet::from([2, 9]));
}

#[test]
fn all_to_all_has_every_pair_once() {
    let plan = plan(&[
        LEAF_SPINE,
        "[[traffic]]\nkind = \"all-to-all\"\nsize = \"5kB\"\nhosts = [\"H2\", \"rack:1\"]\n",
    ]);
    let mut pairs: Vec<(u32, u32)> = plan.flows.iter().map(|f| (f.src, f.dst)).collect();
    pairs.sort_unstable();
    let hosts = [2, 4, 5, 6, 7];
    let every = hosts.iter().flat_map(|&a| hosts.iter().filter(move |&&b| b != a).map(move |&b| (a, b)));
    assert_eq!(pairs, every.collect::<Vec<_>>());
    // Listed in rounds in which each host sends one and receives one.
    for round in plan.flows.chunks(5) {
        let (mut from, mut to): (Vec<u32>, Vec<u32>) = round.iter().map(|f| (f.src, f.dst)).unzip();
        from.sort_unstable();
        to.sort_unstable();
        assert_eq!((&from[..], &to[..]), (&hosts[..], &hosts[..]));
    }
}

#[test]
fn probes_go_round() {
    let probe = "[run]\nduration = \"160us\"\n[[traffic]]\nkind = \"probe\"\nperiod = \"10us\"\nfrom = [\"rack:0\"]\n";
    let plan = plan(&[LEAF_SPINE, probe]);
    assert_eq!(plan.flows.len(), 16 * 4);
    assert!(plan.flows.iter().all(|f| f.size == 64 && f.src != f.dst));
    // Evenly spread senders, each every 10 us; in 15 periods each has had every other host.
    for src in 0..4u32 {
        let own: Vec<&Flow> = plan.flows.iter().filter(|f| f.src == src).collect();
        assert!(
            own.iter()
                .enumerate()
                .all(|(i, f)| f.start == i as u64 * 10_000_000 + u64::from(src) * 2_500_000)
        );
        let mut to: Vec<u32> = own[..15].iter().map(|f| f.dst).collect();
        to.sort_unstable();
        assert_eq!(to, (0..16).filter(|&h| h != src).collect::<Vec<_>>());
    }
}

#[test]
fn a_hot_expert_gets_its_share_of_the_tokens() {
    let moe = "[[traffic]]\nkind = \"moe\"\nexperts = 4\nweights = [5, 1, 1, 1]\ntokens = 2000\ntoken_size = \"100B\"\nrounds = 3\n";
    let plan = plan(&[LEAF_SPINE, moe]);
    // Dispatch to an expert: from hosts without experts, whose tokens all travel.
    let mut tokens: BTreeMap<u32, u64> = BTreeMap::new();
    for f in plan.flows.iter().filter(|f| f.src >= 4) {
        *tokens.entry(f.dst).or_default() += f.size / 100;
    }
    let all = 12 * 2000 * 3;
    assert_eq!(tokens.values().sum::<u64>(), all);
    for (expert, share) in [(0, 5.0 / 8.0), (1, 1.0 / 8.0), (3, 1.0 / 8.0)] {
        let expected = all as f64 * share;
        let deviation = (expected * (1.0 - share)).sqrt();
        assert!((tokens[&expert] as f64 - expected).abs() < 4.0 * deviation, "{expert}: {tokens:?}");
    }
    // Two experts for each token: all different, so that four of four get each token.
    let plan = self::plan(&[LEAF_SPINE, moe, "experts_per_token = 4\n"]);
    assert!(plan.flows.iter().all(|f| f.size == 200_000));
    assert_eq!(plan.flows.len(), 3 * 2 * (12 * 4 + 4 * 3));
}

#[test]
fn times_without_effect_are_named() {
    let ring = "[[traffic]]\nkind = \"ring-all-reduce\"\nsize = \"1MB\"\ngap = \"1us\"\n";
    let moe = "[[traffic]]\nkind = \"moe\"\nexperts = 1\ntokens = 1\ntoken_size = \"1kB\"\nphase = \"1us\"\n";
    let incast = "[[traffic]]\nkind = \"incast\"\nfan_in = 2\nsize = \"1kB\"\nload_of = \"receiver\"\n";
    let loaded = loaded(&[LEAF_SPINE, ring, moe, incast]);
    let keys: Vec<&str> = loaded.warnings.iter().map(|w| w.key.as_str()).collect();
    assert_eq!(keys, ["traffic[0].gap", "traffic[1].phase", "traffic[2].load_of"]);
}

#[test]
fn waiting_flows_come_last_and_before_their_dependents() {
    let ring = "[[traffic]]\nkind = \"ring-all-reduce\"\nsize = \"1MB\"\nrounds = 2\nstart = \"1us\"\n";
    let flow = "[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"1kB\"\nstart = \"1ms\"\n";
    let plan = plan(&[LEAF_SPINE, ring, flow]);
    let first = plan.flows.iter().position(|f| f.after.is_some()).unwrap();
    assert_eq!(first, 17);
    assert!(plan.flows[first..].iter().all(|f| f.after.is_some() && f.start == 1_000_000));
    assert!(plan.flows[..first].is_sorted_by_key(|f| f.start));
    for (g, gate) in plan.gates.iter().enumerate() {
        let last = plan.flows.iter().rposition(|f| f.opens == Some(g as u32)).unwrap();
        assert!(gate.flows.iter().all(|&f| f as usize > last));
        assert_eq!(gate.waits, 1);
    }
}

#[test]
fn bursts_come_from_all_senders_at_once_and_keep_their_distance() {
    let burst = "[[traffic]]\nkind = \"burst\"\nflows = 3\nfrom = [\"rack:0\", \"rack:1\"]\nto = [\"rack:3\"]\n\
                 sizes = { uniform = [\"2kB\", \"4kB\"], step = \"1kB\" }\nstart = \"1us\"\ngap = \"10us\"\n";
    let flows = plan(&[LEAF_SPINE, burst]).flows;
    assert_eq!(flows.len(), 8 * 3);
    for (i, flow) in flows.iter().enumerate() {
        assert_eq!(flow.src, i as u32 % 8, "senders in their order");
        assert_eq!(flow.start, 1_000_000 + 10_000_000 * (i as u64 / 8));
        assert!((12..16).contains(&flow.dst) && [2_000, 3_000, 4_000].contains(&flow.size), "{flow:?}");
    }
    let warnings = |text: &str| loaded(&[LEAF_SPINE, text]).warnings.len();
    assert_eq!(warnings(burst), 0);
    assert_eq!(warnings(&burst.replace("flows = 3", "flows = 1")), 1, "a gap behind one flow");
}

#[test]
fn flows_of_a_loop_go_along_it() {
    let ring = "[topology]\nkind = \"ring\"\nswitches = 4\nhosts_per_switch = 2\n\
                link = { rate = \"100Gbps\", delay = \"1us\" }\n[run]\nduration = \"1ms\"\n";
    let around = "[[traffic]]\nkind = \"loop\"\nswitches = [\"S0.3\", \"S0.2\", \"S0.1\", \"S0.0\"]\nhops = 3\nflows = 2\n\
                  size = \"1MB\"\noffsets = [\"0us\", \"5us\", \"0us\", \"0us\"]\nbursts = 2\nperiod = \"100us\"\n";
    let plan = plan(&[ring, around]);
    assert_eq!(plan.flows.len(), 2 * 2 * 4);
    // Three links of the loop, counter-clockwise, where the shortest path is in the other direction.
    for flow in &plan.flows {
        let ports = plan.hops[flow.path as usize..]
            .iter()
            .take_while(|&&port| port < plan.topology.ports.len() as u32);
        let node = |&port: &u32| plan.topology.ports[port as usize].node as usize;
        let nodes: Vec<&str> = ports.map(|port| plan.topology.nodes[node(port)].name.as_str()).collect();
        assert_eq!(nodes.len(), 5, "{nodes:?}");
        for pair in nodes[1..].windows(2) {
            let [from, to] = [pair[0], pair[1]].map(|name| name[3..].parse::<u32>().unwrap());
            assert_eq!(to, (from + 3) % 4, "{nodes:?}");
        }
    }
    let late = plan.flows.iter().filter(|f| [5_000_000, 105_000_000].contains(&f.start)).count();
    assert_eq!(late, 4);
    let warnings = |text: &str| loaded(&[ring, text]).warnings.len();
    assert_eq!(warnings(around), 0);
    assert_eq!(warnings(&around.replace("bursts = 2", "bursts = 1")), 1, "a period of one burst");
}
