//! Swift in runs: lone flows, targets, fair shares, windows below one packet, slow receivers, losses, and every
//! flow control.

use crate::common;

use common::{fcts, mean, numbered as flow, plan, plan_with, run, samples};
use xoff_sim::outcome::Quantity;

const US: u64 = 1_000_000;
const SWIFT: (&str, &str) = ("transport.congestion_control", "swift");

fn star(hosts: usize) -> String {
    common::controlled_star(hosts, "swift")
}

/// The unloaded round trip is below the target, and the first window holds it: a lone flow is as fast as
/// without congestion control, to the picosecond, and no queue forms.
#[test]
fn a_lone_flow_is_as_without() {
    let text = star(2) + &flow(0, 1, "3MB");
    let without = run(&plan_with(&text, &[("transport.congestion_control", "none")]));
    let with = run(&plan(&text));
    assert_eq!(without.flows, with.flows);
    assert!(with.ports.iter().all(|p| p.queue_peak <= 1_062));
}

/// A base target below the unloaded round trip T of 4.18 us, without flow scaling: the first ACK arrives at T
/// and decreases the window of 53 packets to 30.9 (by 0.8·(T − 2 us)/T). The next decrease follows a packet
/// that left at T or later. That is number 50: the window lets it leave when packet 20 is acknowledged, 20
/// packets of 84,960 ps after T, and its ACK arrives T later. Samples of the rate are the window per round
/// trip.
#[test]
fn decreases_are_a_round_trip_apart() {
    let text = star(2)
        + &flow(0, 1, "30MB")
        + "[swift]\nbase_target = \"2us\"\nper_hop = \"0us\"\nfs_range = \"0us\"\n"
        + "[measure]\ninterval = \"1ns\"\nflows = [0]\n[run]\nduration = \"11us\"\n";
    let plan = plan(&text);
    let outcome = run(&plan);
    let rates = samples(&outcome, Quantity::Rate(0), 0);
    let t = 2 * 84_960 + 4 * US + 2 * 5_280;
    let factor = 1.0 - 0.8 * (t - 2 * US) as f64 / t as f64;
    // 53 packets of 1,000 B at first: T at line rate, rounded up.
    let of = |window: f64| window * 8_000.0 * 1e12 / t as f64;
    let at = |time: u64| rates[(time / 1_000) as usize] as f64;
    let near = |rate: f64, expected: f64| assert!((rate / expected - 1.0).abs() < 1e-6, "{rate} {expected}");
    assert_eq!(at(t - 2_000), 1e11);
    near(at(t), of(53.0 * factor));
    let again = 2 * t + 20 * 84_960;
    near(at(again - 2_000), of(53.0 * factor));
    near(at(again), of(53.0 * factor * factor));
}

/// Results of long flows that share a bottleneck in the last third of 30 ms: Jain's index of their goodput, the
/// total in Gbit/s, and the mean queue in bytes.
fn share(n: usize, more: &[(&str, &str)]) -> (f64, f64, f64) {
    let mut text = star(n + 1);
    text += "[run]\nduration = \"30ms\"\n[measure]\ninterval = \"20us\"\nports = [\"S0.0:0\"]\n";
    (1..=n).for_each(|i| text += &flow(i, 0, "1GB"));
    let plan = plan_with(&text, more);
    let outcome = run(&plan);
    let from = 20_000 * US;
    let goodput: Vec<f64> =
        (0..n as u16).map(|class| mean(&samples(&outcome, Quantity::Goodput(class), from))).collect();
    let (sum, squares) = goodput.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
    let port = plan.topology.find("S0.0").map(|s| plan.topology.nodes[s as usize].ports[0]).unwrap();
    let queue = mean(&samples(&outcome, Quantity::Queue(port), from));
    println!(
        "{n} flows: Jain {:.4}, {:.1} Gbit/s, queue {queue:.0} B",
        sum * sum / (n as f64 * squares),
        sum / 1e9
    );
    assert_eq!(outcome.counters.dropped, 0);
    (sum * sum / (n as f64 * squares), sum / 1e9, queue)
}

/// The round trip settles at the target, so the queue is what the link sends in the target less the unloaded
/// round trip. With windows w of flow scaling the target is 23 us + α/√w − β, and the n windows fill one
/// target at line rate.
#[test]
fn flows_share_fairly_with_the_delay_at_the_target() {
    for (n, scaled) in [(2, false), (8, false), (8, true), (32, true)] {
        let more: &[_] = if scaled { &[] } else { &[("swift.fs_range", "0us")] };
        let (jain, gbps, queue) = share(n, more);
        let alpha = 100.0 / (10f64.sqrt() - 0.1);
        let mut target: f64 = 23.0;
        if scaled {
            // A fixed point: 1,062 B take 0.08496 us.
            for _ in 0..100 {
                let window = target / 0.084_96 / n as f64;
                target = 23.0 + (alpha / window.sqrt() - alpha / 10.0).clamp(0.0, 100.0);
            }
        }
        let expected = (target - 4.18) * 12_500.0;
        assert!((queue / expected - 1.0).abs() < 0.12, "{n}: {queue} B instead of {expected}");
        assert!(jain > 0.97, "{n}: {jain}");
        assert!(gbps > 0.99 * 100.0 * 1_000.0 / 1_062.0, "{n}: {gbps}");
    }
}

/// An incast with more flows than the target has packets: without windows below one packet the queue holds
/// one packet of each flow, with them it is near the target.
#[test]
fn windows_below_one_packet_bound_the_queue() {
    let n = 1_000;
    let more = |min: &'static str| {
        [
            ("swift.fs_range", "0us"),
            ("swift.min_cwnd", min),
            ("swift.initial_cwnd", "1"),
            ("swift.additive_increase", "0.1"),
        ]
    };
    let queue = |min| {
        let mut text = star(n + 1) + "[switch]\nbuffer = \"64MB\"\n";
        text += "[run]\nduration = \"6ms\"\n[measure]\ninterval = \"20us\"\nports = [\"S0.0:0\"]\n";
        (1..=n).for_each(|i| text += &flow(i, 0, "10MB"));
        let plan = plan_with(&text, &more(min));
        let outcome = run(&plan);
        let port = plan.topology.nodes[plan.topology.find("S0.0").unwrap() as usize].ports[0];
        mean(&samples(&outcome, Quantity::Queue(port), 4_000 * US))
    };
    let (without, with) = (queue("1"), queue("0.001"));
    println!("{without:.0} B and {with:.0} B");
    // A packet of each flow but those on links.
    assert!((without / (n as f64 * 1_062.0) - 1.0).abs() < 0.1, "{without}");
    assert!(with < 0.6 * without, "{with}");
}

/// A slow receiver delays packets inside the host: that is no fabric delay, and ecwnd keeps its average at
/// 20 us, which are 25 kB. Without that window fcwnd grows to 288 packets, and the host with a buffer of 400
/// kB pauses its switch.
#[test]
fn a_slow_receiver_is_bounded_by_the_endpoint_window() {
    let text = star(2)
        + &flow(0, 1, "1GB")
        + "[swift]\ninitial_cwnd = 10\n[host]\nbuffer = \"400kB\"\n[[slow_receiver]]\nhost = \"H1\"\nrate = \"10Gbps\"\n"
        + "[run]\nduration = \"20ms\"\n[measure]\ninterval = \"20us\"\nflows = [0]\n";
    let waiting = |target: &str| {
        let plan = plan_with(&text, &[("swift.endpoint_target", target)]);
        let outcome = run(&plan);
        assert_eq!(outcome.counters.dropped, 0);
        let rate = mean(&samples(&outcome, Quantity::Rate(0), 10_000 * US));
        (rate, outcome.pauses.len())
    };
    let (rate, pauses) = waiting("20us");
    // The window per round trip is the receiver's rate.
    assert!((rate / 9.4e9 - 1.0).abs() < 0.05 && pauses == 0, "{rate} {pauses}");
    let (_, pauses) = waiting("1s");
    assert!(pauses > 0);
}

/// NACKs and timeouts decrease windows: with random losses a flow is slower than a flow that keeps its window.
#[test]
fn losses_decrease_windows() {
    let text = star(2)
        + &flow(0, 1, "4MB")
        + "[[loss]]\nlink = \"H0-S0.0\"\nrate = 0.01\n[flow_control]\nscheme = \"none\"\n";
    for kind in ["irn", "go-back-n"] {
        let fct = |more: &[(&str, &str)]| {
            let all = [&[("transport.kind", kind)], more].concat();
            let plan = plan_with(&text, &all);
            fcts(&plan, &run(&plan))[0]
        };
        let (kept, cut) = (fct(&[("swift.max_mdf", "0.000001")]), fct(&[]));
        assert!(cut > kept, "{kind}: {cut} and {kept}");
    }
}

/// Every flow control and transport: all packets arrive, also with tiny windows.
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
        ("per-flow-queue", "irn", clos, "2MB"),
        ("portfc", "go-back-n", ndc, "8MB"),
        ("pyrrha", "go-back-n", clos, "4MB"),
        ("pyrrha", "irn", clos, "4MB"),
        ("none", "irn", clos, "300kB"),
        ("none", "go-back-n", clos, "300kB"),
    ] {
        for initial in ["60", "0.1"] {
            let what = format!("swift with {scheme}, {kind}, window {initial}");
            let text = format!(
                "{topology}[switch]\nbuffer = \"{buffer}\"\n[flow_control]\nscheme = \"{scheme}\"\n\
                 [transport]\nkind = \"{kind}\"\n[swift]\ninitial_cwnd = {initial}\nbase_target = \"8us\"\n\
                 [[traffic]]\nkind = \"incast\"\nfan_in = 7\nsize = \"300kB\"\nto = \"H0\"\n\
                 [[traffic]]\nkind = \"permutation\"\nsize = \"500kB\"\n"
            );
            let plan = plan_with(&text, &[SWIFT]);
            let outcome = run(&plan);
            assert!(outcome.flows.iter().all(|f| f.completed.is_some()), "{what}");
            assert!(scheme == "none" || outcome.counters.dropped == 0, "{what}");
        }
    }
}

/// Stamps of packets travel between threads.
#[test]
fn threads_change_nothing() {
    for (scheme, kind) in [("pfc", "go-back-n"), ("none", "irn"), ("bfc", "go-back-n"), ("pyrrha", "irn")] {
        let text = format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 3\n\
             host_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
             fabric_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n[switch]\nbuffer = \"1MB\"\n\
             [flow_control]\nscheme = \"{scheme}\"\n[transport]\nkind = \"{kind}\"\n\
             [[slow_receiver]]\nhost = \"H1\"\nrate = \"20Gbps\"\n[swift]\nbase_target = \"6us\"\n\
             [measure]\ninterval = \"10us\"\nflows = [0, 3]\n\
             [[traffic]]\nkind = \"incast\"\nfan_in = 7\nsize = \"300kB\"\n\
             [[traffic]]\nkind = \"permutation\"\nsize = \"200kB\"\n"
        );
        let plan = plan_with(&text, &[SWIFT]);
        let one = run(&plan);
        assert!(one.flows.iter().all(|f| f.completed.is_some()));
        for threads in 2..=4 {
            let many = xoff_sim::run_on(&plan, threads, &mut |_| true);
            assert_eq!(one, many, "{scheme} on {threads} threads");
        }
    }
}
