//! Flows: offered load, files, permutations.

use crate::common::line::{LINE, loaded, no_files, plan, route};
use std::collections::BTreeMap;
use std::path::Path;
use xoff_plan::load;
use xoff_plan::plan::{Flow, Plan};

const POISSON: &str = "[[traffic]]\nkind = \"poisson\"\nsizes = \"10kB\"\nload = 0.5\n";

/// Bytes of data packets on the wire.
fn wire(plan: &Plan, flow: &Flow) -> u64 {
    flow.size + plan.packet.packets(flow.size) * u64::from(plan.packet.header)
}

#[test]
fn the_offered_load_is_the_requested_one() {
    let topology = "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 8\n\
                    host_link = { rate = \"100Gbps\", delay = \"1us\" }\nfabric_link = { rate = \"100Gbps\", delay = \"1us\" }\n";
    let check = |plan: &Plan, seconds: f64, capacity: f64, what: &str| {
        let bits: Vec<f64> = plan.flows.iter().map(|f| 8.0 * wire(plan, f) as f64).collect();
        let sum: f64 = bits.iter().sum();
        // The sum of a compound Poisson process has the variance Σ x².
        let error = bits.iter().map(|x| x * x).sum::<f64>().sqrt();
        let (load, error) = (sum / seconds / capacity, error / seconds / capacity);
        assert!(error < 0.02, "{what}: too few flows to tell, {error}");
        assert!((load - 0.5).abs() < 3.0 * error, "{what}: {load} ± {error}");
    };
    for sizes in ["\"10kB\"", "{ uniform = [\"1B\", \"20kB\"] }", "\"fb-hadoop\""] {
        let text = POISSON.replace("\"10kB\"", sizes);
        let l = loaded(&[topology, &text, "[run]\nduration = \"50ms\"\n"]);
        // A leaf's two uplinks carry 24/31 of the traffic of its eight hosts.
        let saturation = 4.0 * 200e9 * 31.0 / 24.0;
        let s = l.saturation[0].unwrap();
        assert!((s.rate / saturation - 1.0).abs() < 1e-9, "{} against {saturation}", s.rate);
        check(&l.plan, 50e-3, saturation, sizes);
    }
    let l = loaded(&[topology, POISSON, "load_of = \"host-links\"\n[run]\nduration = \"2ms\"\n"]);
    check(&l.plan, 2e-3, 32.0 * 100e9, "host links");
}

#[test]
fn a_table_keeps_its_flows_and_paths_beside_any_others() {
    let ndc = "[topology]\nkind = \"ndc\"\nn = 4\nk = 1\nlink = { rate = \"100Gbps\", delay = \"1us\" }\n";
    let run = "[run]\nduration = \"1ms\"\n";
    let incast = "[[traffic]]\nkind = \"incast\"\nfan_in = 8\nsize = \"1MB\"\nperiod = \"100us\"\n";
    let alone = plan(&[ndc, POISSON, run]);
    let both = plan(&[ndc, POISSON, incast, run]);
    let kept = |plan: &Plan| -> Vec<_> {
        let of = plan.flows.iter().filter(|f| f.class == 0);
        of.map(|f| (f.src, f.dst, f.size, f.start, route(plan, f.path), route(plan, f.ack_path), f.ideal))
            .collect()
    };
    assert_eq!(kept(&alone), kept(&both));
    assert_eq!(both.flows.iter().filter(|f| f.class == 1).count(), 10 * 8);
    assert!(both.flows.is_sorted_by_key(|f| (f.start, f.class)));
    assert_eq!(both.classes, ["poisson", "incast"]);
    // BCube routes return over the same nodes.
    for f in &both.flows {
        let port = |name: &str| {
            let (node, index) = name.split_once(':').unwrap();
            let node = both.topology.find(node).unwrap();
            both.topology.nodes[node as usize].ports[index.parse::<usize>().unwrap()]
        };
        let mirrored: Vec<u32> =
            route(&both, f.path).0.iter().rev().map(|p| both.topology.ports[port(p) as usize].peer).collect();
        let back: Vec<u32> = route(&both, f.ack_path).0.iter().map(|p| port(p)).collect();
        assert_eq!(mirrored, back);
    }
}

#[test]
fn flows_come_from_a_csv_file_and_late_ones_are_named() {
    let text = [
        LINE,
        "[[traffic]]\nkind = \"flows\"\nfile = \"a/b.csv\"\n[run]\nduration = \"1ms\"\ndrain = \"1ms\"\n",
    ]
    .concat();
    let files = |p: &Path| match p.to_str() {
        Some("a/b.csv") => Ok(b"src,dst,bytes,start\nH1,H0,5000,2us\nH0,H1,1000,1us\nH0,H1,1,3ms\n".to_vec()),
        _ => no_files(p),
    };
    let l = load("test.toml", text.as_bytes(), &[], &files).unwrap();
    let flows: Vec<_> = l.plan.flows.iter().map(|f| (f.src, f.dst, f.size, f.start)).collect();
    assert_eq!(flows, [(0, 1, 1_000, 1_000_000), (1, 0, 5_000, 2_000_000)]);
    assert_eq!(l.warnings.len(), 1);
    assert_eq!(l.plan.end, Some(2_000_000_000));
    assert_eq!(l.plan.measure.interval, Some(5_000_000));
}

#[test]
fn a_permutation_gives_each_host_one_flow_in_each_direction() {
    let plan = plan(&[LINE, "[[traffic]]\nkind = \"permutation\"\nsize = \"2MB\"\n"]);
    let mut ends: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for f in &plan.flows {
        ends.entry(f.src).or_default().0 += 1;
        ends.entry(f.dst).or_default().1 += 1;
    }
    assert_eq!(ends.len(), 8);
    assert!(ends.values().all(|&e| e == (1, 1)));
}

#[test]
fn a_byte_order_mark_is_not_part_of_a_distribution() {
    let text = "[[traffic]]\nkind = \"poisson\"\nsizes = { file = \"x.cdf\" }\nload = 0.1\nstop = \"1us\"\n";
    let files = |_: &Path| Ok("\u{feff}0 0\n1000 100\n".as_bytes().to_vec());
    let l = load("test.toml", [LINE, text].concat().as_bytes(), &[], &files);
    assert!(l.is_ok(), "{}", l.unwrap_err().one_line());
}
