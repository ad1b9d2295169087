//! NSCC in runs: lone flows, recorded completion times of uet-htsim, fair shares, every flow control, threads.

use crate::common;

use common::{fcts, mean, numbered as flow, plan, plan_with, run, samples};
use xoff_sim::outcome::Quantity;

const US: u64 = 1_000_000;

fn star(hosts: usize) -> String {
    common::controlled_star(hosts, "nscc")
}

/// No mark and no queueing delay, and a window of 1.5 BDP: as without congestion control, to the picosecond.
#[test]
fn a_lone_flow_is_as_without() {
    let text = star(2) + &flow(0, 1, "3MB");
    let without = run(&plan_with(&text, &[("transport.congestion_control", "none")]));
    let with = run(&plan(&text));
    assert_eq!(without.flows, with.flows);
}

/// The network of uet-htsim's recorded runs (`validate_outputs`, NSCC alone): 16 hosts in a fat tree of 100
/// Gbit/s and 1 us, packets of 4,086 and 64 B, ECN at 0.2 and 0.8 BDP, a target of 0.75 base round trips.
/// There full queues trim packets; here PFC pauses.
fn recorded(flows: &str) -> Vec<u64> {
    let text = format!(
        "[topology]\nkind = \"fat-tree\"\nk = 4\nlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
         [transport]\ncongestion_control = \"nscc\"\nmtu = \"4086B\"\nheader = \"64B\"\nack = \"64B\"\n\
         [nscc]\ntarget_qdelay = \"10515ns\"\n\
         [ecn]\nk_min = \"35057B\"\nk_max = \"140227B\"\np_max = 1.0\nat = \"dequeue\"\n{flows}"
    );
    let plan = plan(&text);
    let outcome = run(&plan);
    assert_eq!(outcome.counters.dropped, 0);
    fcts(&plan, &outcome)
}

/// A flow of 2 MB between two pods: 176.2 us there, within 1%.
#[test]
fn a_flow_takes_the_recorded_time() {
    let fct = recorded(&flow(0, 15, "2MB"))[0] as f64 / 176.2e6;
    assert!((fct - 1.0).abs() < 0.01, "{fct}");
}

/// 15 flows of 2 MB to one host: the last completes after 2,478.5 us there, within 2%. It is bounded by the
/// bytes of all flows, 2,437.6 us and a round trip of 14 us, which this run may exceed by 2%.
#[test]
fn an_incast_takes_the_recorded_time() {
    let flows: String = (1..16).map(|i| flow(i, 0, "2MB")).collect();
    let mut fcts = recorded(&flows);
    fcts.sort_unstable();
    let (first, last) = (fcts[0] as f64 / 1e6, fcts[14] as f64 / 1e6);
    println!("first {first:.1} us, last {last:.1} us");
    assert!((last / 2_478.5 - 1.0).abs() < 0.02, "{last}");
    assert!(last > 2_437.6 && last < 1.02 * 2_451.6, "{last}");
}

/// Long flows at one bottleneck in the last third of 30 ms: equal shares, a full link, and a queue that
/// stays between the marking threshold and twice the target.
#[test]
fn flows_share_fairly_with_the_queue_near_the_target() {
    for n in [2, 8] {
        let mut text = star(n + 1);
        text += "[run]\nduration = \"30ms\"\n[measure]\ninterval = \"20us\"\nports = [\"S0.0:0\"]\n";
        (1..=n).for_each(|i| text += &flow(i, 0, "1GB"));
        let plan = plan(&text);
        let outcome = run(&plan);
        let from = 20_000 * US;
        let goodput: Vec<f64> =
            (0..n as u16).map(|class| mean(&samples(&outcome, Quantity::Goodput(class), from))).collect();
        let (sum, squares) = goodput.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
        let port = plan.topology.nodes[plan.topology.find("S0.0").unwrap() as usize].ports[0];
        let queue = mean(&samples(&outcome, Quantity::Queue(port), from));
        let jain = sum * sum / (n as f64 * squares);
        println!("{n} flows: Jain {jain:.4}, {:.1} Gbit/s, queue {queue:.0} B", sum / 1e9);
        assert!(outcome.counters.dropped == 0 && jain > 0.95, "{n}: {jain}");
        assert!(sum > 0.98e11 * 1_000.0 / 1_062.0, "{n}: {sum}");
        // The target of 4.18 us is 52 kB.
        assert!(queue > 30_000.0 && queue < 105_000.0, "{n}: {queue}");
    }
}

/// Every flow control and transport: all packets arrive.
#[test]
fn every_flow_completes_under_every_flow_control() {
    let clos = "[topology]\nkind = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 3\n\
        host_link = { rate = \"100Gbps\", delay = \"1us\" }\nfabric_link = { rate = \"100Gbps\", delay = \"1us\" }\n";
    let ndc = "[topology]\nkind = \"ndc\"\nn = 3\nk = 1\nlink = { rate = \"100Gbps\", delay = \"1us\" }\n";
    for (scheme, kind, topology, buffer) in [
        ("pfc", "go-back-n", clos, "2MB"),
        ("pfc", "irn", clos, "2MB"),
        ("pfc", "go-back-n", ndc, "2MB"),
        ("bfc", "go-back-n", clos, "2MB"),
        ("portfc", "go-back-n", ndc, "8MB"),
        ("pyrrha", "irn", clos, "4MB"),
        ("none", "irn", clos, "300kB"),
        ("none", "go-back-n", clos, "300kB"),
    ] {
        let what = format!("nscc with {scheme}, {kind}");
        let text = format!(
            "{topology}[switch]\nbuffer = \"{buffer}\"\n[flow_control]\nscheme = \"{scheme}\"\n\
             [transport]\nkind = \"{kind}\"\ncongestion_control = \"nscc\"\n\
             [[traffic]]\nkind = \"incast\"\nfan_in = 7\nsize = \"300kB\"\nto = \"H0\"\n\
             [[traffic]]\nkind = \"permutation\"\nsize = \"500kB\"\n"
        );
        let outcome = run(&plan(&text));
        assert!(outcome.flows.iter().all(|f| f.completed.is_some()), "{what}");
        assert!(scheme == "none" || outcome.counters.dropped == 0, "{what}");
    }
}

#[test]
fn threads_change_nothing() {
    for (scheme, kind) in [("pfc", "go-back-n"), ("none", "irn")] {
        let plan = plan(&format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 3\n\
             host_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
             fabric_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n[switch]\nbuffer = \"1MB\"\n\
             [flow_control]\nscheme = \"{scheme}\"\n[transport]\nkind = \"{kind}\"\n\
             congestion_control = \"nscc\"\n[measure]\ninterval = \"10us\"\nflows = [0, 3]\n\
             [[traffic]]\nkind = \"incast\"\nfan_in = 7\nsize = \"300kB\"\n\
             [[traffic]]\nkind = \"permutation\"\nsize = \"200kB\"\n"
        ));
        let one = run(&plan);
        for threads in 2..=4 {
            let many = xoff_sim::run_on(&plan, threads, &mut |_| true);
            assert_eq!(one, many, "{scheme} on {threads} threads");
        }
    }
}
