//! TIMELY, HPCC, PowerTCP and DCTCP in runs: lone flows in closed form, fair shares and
//! queues, windows, and every flow control.

use crate::common;

use common::{fcts, plan, plan_with, run};
use xoff_sim::outcome::{Outcome, Quantity};

/// A microsecond.
const US: u64 = 1_000_000;
const CONTROLS: [&str; 4] = ["timely", "hpcc", "powertcp", "dctcp"];

/// Hosts at one switch, with links of 100 Gbit/s and 1 us.
fn star(hosts: usize, transport: &str) -> String {
    format!(
        "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = {hosts}\n\
         link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n[transport]\n{transport}\n"
    )
}

fn flow(src: usize, dst: usize, size: &str, start: &str) -> String {
    format!(
        "[[traffic]]\nkind = \"flow\"\nsrc = \"H{src}\"\ndst = \"H{dst}\"\nsize = \"{size}\"\nstart = \"{start}\"\n"
    )
}

/// Samples of one quantity from a time on.
fn samples(outcome: &Outcome, what: Quantity, from: u64) -> Vec<u64> {
    outcome.series.iter().filter(|s| s.what == what && s.at > from).map(|s| s.value).collect()
}

/// A round trip below T_low, no mark: TIMELY and DCTCP change nothing, to the
/// picosecond, and so does DCTCP's window, which holds a round trip.
#[test]
fn a_lone_flow_is_as_without() {
    let text = star(2, "") + &flow(0, 1, "3MB", "0us");
    let without = run(&plan(&text));
    for control in ["timely", "dctcp"] {
        let with = run(&plan_with(&text, &[("transport.congestion_control", control)]));
        assert_eq!(without.flows, with.flows, "{control}");
    }
}

/// One flow under HPCC on a link: every packet is as long as its telemetry makes it, the window holds a round trip,
/// and the first ACK that counts arrives after a round trip. U then follows R/B, and R comes to rest where R
/// = R/(U/η) + R_AI, U = R/B: at η·B + R_AI.
#[test]
fn hpcc_leaves_a_share_of_the_link() {
    let text = star(2, "congestion_control = \"hpcc\"")
        + &flow(0, 1, "30MB", "0us")
        + "[measure]\ninterval = \"10us\"\nflows = [0]\n";
    let plan = plan(&text);
    assert_eq!((plan.packet.header, plan.packet.ack), (62 + 42, 66 + 42));
    let outcome = run(&plan);
    let rates = samples(&outcome, Quantity::Rate(0), 500 * US);
    let rest = 0.95e11 + 4e7;
    for rate in &rates[..rates.len() - 2] {
        assert!((*rate as f64 / rest - 1.0).abs() < 2e-3, "{rate} instead of {rest}");
    }
    // 30,000 packets of 1,104 B at the rest rate, but for the first round trips.
    let expected = 30_000.0 * 1_104.0 * 8.0 / rest * 1e12;
    let fct = fcts(&plan, &outcome)[0] as f64;
    assert!((fct / expected - 1.0).abs() < 0.01, "{fct} instead of {expected}");
}

/// The same, ACK by ACK. A packet of 1,104 B takes s = 88,320 ps on a link, an ACK of 108 B 8,640 ps, and the
/// ACK of a packet arrives T = 2s + 4 us + 17,280 ps after the packet began to leave, which is the base
/// round-trip time.
///
/// - Packet 0 only fills L. 48 packets have begun by then.
/// - Packet 1: the link sent 1,104 B in s, so U stays 1: R = 100·0.95 + 0.04 = 95.04.
/// - The same holds for packets 2 to 48, which left at line rate, as does the next one, 49 (at 49 s), because
///   no gap was active when the rate changed. Packet 48 is the first one beyond the 48: R_c = 95.04.
/// - Packet 49: R = 95.04·0.95 + 0.04 = 90.328.
/// - Packet 50 left 92,930 ps (1,104 B at 95.04 Gbit/s) behind packet 49: u = s/92,930, U = 1 − (92,930 −
///   s)/T, and R follows.
#[test]
fn hpcc_rates_are_those_of_the_equations() {
    let text = star(2, "congestion_control = \"hpcc\"")
        + &flow(0, 1, "30MB", "0us")
        + "[measure]\ninterval = \"1ns\"\nflows = [0]\n[run]\nduration = \"9us\"\n";
    let outcome = run(&plan(&text));
    let rates = samples(&outcome, Quantity::Rate(0), 0);
    // The sample at n ns, which holds before its events.
    let rate_after = |at: u64| rates[(at / 1_000) as usize];
    let (s, t) = (88_320, 2 * 88_320 + 4 * US + 17_280);
    assert_eq!(rate_after(t + s - 2_000), 100_000_000_000);
    assert_eq!(rate_after(t + s), 95_040_000_000);
    assert_eq!(rate_after(t + 49 * s - 2_000), 95_040_000_000);
    assert_eq!(rate_after(t + 49 * s), 90_328_000_000);
    let gap = 92_930;
    let u = 1.0 - (gap - s) as f64 / t as f64;
    let expected = 95.04e9 * 0.95 / u + 4e7;
    assert!((rate_after(t + 49 * s + gap) as f64 - expected).abs() < 2.0, "instead of {expected}");
}

/// TIMELY measures the round trip to the picosecond: T = 2·84,960 + 4 us + 2·5,280 ps for packets of 1,062 B
/// and ACKs of 66 B. With T_high at 4 us the second measurement, which begins with the first packet that
/// leaves T or later (number 50, at 50·84,960 ps), takes the rate down by 0.8·(1 − 4 us/T).
#[test]
fn timely_measures_the_round_trip() {
    let text = star(2, "congestion_control = \"timely\"")
        + &flow(0, 1, "30MB", "0us")
        + "[timely]\nt_low = \"1us\"\nt_high = \"4us\"\n"
        + "[measure]\ninterval = \"1ns\"\nflows = [0]\n[run]\nduration = \"9us\"\n";
    let outcome = run(&plan(&text));
    let rates = samples(&outcome, Quantity::Rate(0), 0);
    let t = 2 * 84_960 + 4 * US + 2 * 5_280;
    let ack_time = 50 * 84_960 + t;
    let expected = 1e11 * (1.0 - 0.8 * (1.0 - 4e6 / t as f64));
    assert_eq!(rates[(ack_time / 1_000) as usize - 1], 100_000_000_000);
    assert_eq!(rates[(ack_time / 1_000) as usize], expected as u64);
}

/// Results of long flows that share a bottleneck, the second half of them from 300 us on: Jain's index of
/// their goodput in the last third, the total in Gbit/s, the mean and the longest queue there, in bytes, and
/// pauses.
struct Shares {
    jain: f64,
    gbps: f64,
    mean: f64,
    longest: u64,
    pauses: usize,
}

fn share(control: &str, n: usize, more: &[(&str, &str)]) -> Shares {
    let mut text = star(n + 1, &format!("congestion_control = \"{control}\""));
    text += "[run]\nduration = \"30ms\"\n[measure]\ninterval = \"20us\"\nports = [\"S0.0:0\"]\n";
    for i in 0..n {
        text += &flow(i + 1, 0, "1GB", if i < n / 2 { "0us" } else { "300us" });
    }
    let plan = plan_with(&text, more);
    let outcome = run(&plan);
    let from = 20_000 * US;
    let goodput: Vec<f64> = (0..n as u16)
        .map(|class| {
            let of = samples(&outcome, Quantity::Goodput(class), from);
            of.iter().sum::<u64>() as f64 / of.len() as f64
        })
        .collect();
    let (sum, squares) = goodput.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
    let port = plan.topology.find("S0.0").map(|s| plan.topology.nodes[s as usize].ports[0]).unwrap();
    let queue = samples(&outcome, Quantity::Queue(port), from);
    let shares = Shares {
        jain: sum * sum / (n as f64 * squares),
        gbps: sum / 1e9,
        mean: queue.iter().sum::<u64>() as f64 / queue.len() as f64,
        longest: queue.iter().copied().max().unwrap(),
        pauses: outcome.pauses.len(),
    };
    println!(
        "{control}, {n} flows: Jain {:.4}, {:.1} Gbit/s, queue {:.0} B, at most {} B, {} pauses",
        shares.jain, shares.gbps, shares.mean, shares.longest, shares.pauses
    );
    assert_eq!(outcome.counters.dropped, 0);
    shares
}

/// At η = 0.95 the rest of the link keeps the queue nearly empty: at all times below a tenth of a BDP, and
/// together the flows use η of the link (of which 1,000 of 1,104 B are payload). The additive step is made
/// for round trips of 13 us.
#[test]
fn hpcc_shares_fairly_with_a_queue_nearly_empty() {
    for (n, jain) in [(2, 0.99), (8, 0.95)] {
        let s = share("hpcc", n, &[("topology.link.delay", "3us")]);
        assert!(s.jain > jain, "{n}");
        let payload = 95.0 * 1_000.0 / 1_104.0;
        assert!((s.gbps / payload - 1.0).abs() < 0.02, "{n}: {} of {payload}", s.gbps);
        assert!(s.longest < 15_000, "{n}: {}", s.longest);
        assert_eq!(s.pauses, 0);
    }
}

/// In equilibrium each flow keeps β = line rate · τ / N in the queue: n of them keep n/N of a BDP, and the link is
/// full. The window bounds the payload in flight, so the queue is as much longer as packets are.
#[test]
fn powertcp_keeps_beta_of_each_flow_in_the_queue() {
    for (n, flows) in [(2, "10"), (8, "10"), (8, "40")] {
        let s = share("powertcp", n, &[("topology.link.delay", "3us"), ("powertcp.flows", flows)]);
        assert!(s.jain > 0.99, "{n}: {}", s.jain);
        let payload = 100.0 * 1_000.0 / 1_104.0;
        assert!(s.gbps > 0.99 * payload, "{n}: {} of {payload}", s.gbps);
        // τ is the unloaded round trip: 12 us on links, and a packet and an ACK on two links each.
        let tau = 12e-6 + 2.0 * (1_104.0 + 108.0) * 8.0 / 1e11;
        let queue = n as f64 / flows.parse::<f64>().unwrap() * 1e11 / 8.0 * tau * 1_104.0 / 1_000.0;
        assert!((s.mean / queue - 1.0).abs() < 0.1, "{n} of {flows}: {} instead of {queue}", s.mean);
        assert_eq!(s.pauses, 0);
    }
}

/// By marks only, the queue is about K, and the link is full. With the window as well, two flows never get
/// there.
#[test]
fn dctcp_shares_fairly_with_a_queue_about_its_threshold() {
    let rate_alone = [("transport.variable_window", "false")];
    for (n, jain) in [(2, 0.99), (8, 0.97)] {
        let s = share("dctcp", n, &rate_alone);
        assert!(s.jain > jain, "{n}");
        assert!(s.gbps > 0.97 * 100.0 * 1_000.0 / 1_062.0, "{n}: {}", s.gbps);
        assert!(
            s.mean > 150_000.0 && s.mean < 600_000.0 && s.longest < 900_000,
            "{n}: {} {}",
            s.mean,
            s.longest
        );
    }
    let s = share("dctcp", 2, &[]);
    assert!(s.jain > 0.99 && s.longest < 2 * 54 * 1_062, "{}", s.longest);
}

/// The queue exceeds the bytes that take T_low (less the empty network's 4 us) to drain, because below it
/// rates only grow, and stays far below the bytes that take T_high.
#[test]
fn timely_keeps_the_delay_between_its_thresholds() {
    for n in [2, 8] {
        let s = share("timely", n, &[]);
        let (low, high) = (46 * 12_500, 500 * 12_500);
        assert!(s.longest > low && s.longest < high, "{n}: {}", s.longest);
        // The published algorithm does not promise equal shares (Zhu et al., CoNEXT 2016); flows of the same
        // queue come near them.
        assert!(s.jain > 0.95 && s.gbps > 70.0, "{n}: {} {}", s.jain, s.gbps);
    }
}

/// The smallest of all windows limits: a single flow in a window of 20 kB has the results of that window,
/// even if other limits allow more.
#[test]
fn the_smaller_window_rules() {
    let text = star(2, "window = \"20kB\"") + &flow(0, 1, "2MB", "0us");
    let without = run(&plan(&text));
    let least = fcts(&plan(&text), &without)[0];
    // 20 packets in a round trip of 4.18 us.
    assert!(least > 2_000 / 20 * 4 * US);
    let fct = |text: &str, more: &[(&str, &str)]| {
        let plan = plan_with(text, more);
        fcts(&plan, &run(&plan))[0]
    };
    for control in ["timely", "dctcp", "dcqcn"] {
        let own = [("transport.congestion_control", control), ("transport.variable_window", "true")];
        assert_eq!(fct(&text, &own), least, "{control}");
        // A base round-trip time of 1.6 us makes the window of the rate 20 kB, too.
        let open = text.replace("window = \"20kB\"", "");
        let short = [own[0], own[1], ("transport.base_rtt", "1600ns")];
        assert_eq!(fct(&open, &short), least, "{control}");
        assert_eq!(fct(&open, &own[..1]), fct(&open, &[]), "{control}");
    }
    // IRN bounds each flow by a window of its own.
    let irn = [("transport.kind", "irn"), ("transport.congestion_control", "dctcp")];
    assert_eq!(fct(&text, &irn), fct(&text, &irn[..1]));
    let open = text.replace("window = \"20kB\"", "");
    let both = [irn[0], irn[1], ("transport.base_rtt", "1600ns")];
    assert_eq!(fct(&open, &both), fct(&text, &irn[..1]));
}

/// The window of a flow follows its rate: at a minimum rate of 1 Gbit/s and a round
/// trip of 4 us only one packet is in flight, at most two of 1,000 B, and queues of
/// many flows are bounded so.
#[test]
fn windows_shrink_with_rates() {
    let n = 16;
    let incast = |more: &str| {
        let mut text = star(n + 1, &format!("congestion_control = \"dctcp\"\n{more}"));
        for i in 1..=n {
            text += &flow(i, 0, "400kB", "0us");
        }
        let plan = plan(&text);
        run(&plan).ports.iter().map(|p| p.queue_peak).max().unwrap()
    };
    let (with, without) = (incast(""), incast("variable_window = false"));
    // With it, at most a window of a BDP for each flow at first: 53 packets.
    assert!(with <= n as u64 * 54 * 1_062, "{with}");
    assert!(without > 2 * with, "{without} and {with}");
}

/// Every congestion control under every flow control: all packets arrive.
#[test]
fn every_flow_completes_under_every_flow_control() {
    let clos = "[topology]\nkind = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 3\n\
        host_link = { rate = \"100Gbps\", delay = \"1us\" }\nfabric_link = { rate = \"100Gbps\", delay = \"1us\" }\n";
    let ndc = "[topology]\nkind = \"ndc\"\nn = 3\nk = 1\nlink = { rate = \"100Gbps\", delay = \"1us\" }\n";
    for control in CONTROLS {
        for (scheme, kind, topology, buffer) in [
            ("pfc", "go-back-n", clos, "2MB"),
            ("pfc", "irn", clos, "2MB"),
            ("pfc", "go-back-n", ndc, "2MB"),
            ("tagger", "go-back-n", ndc, "4MB"),
            ("bfc", "go-back-n", clos, "2MB"),
            ("bfc", "irn", clos, "2MB"),
            ("per-flow-queue", "go-back-n", clos, "2MB"),
            ("portfc", "go-back-n", ndc, "8MB"),
            ("pyrrha", "go-back-n", clos, "4MB"),
            ("pyrrha", "irn", clos, "4MB"),
            ("none", "irn", clos, "300kB"),
            ("none", "go-back-n", clos, "300kB"),
        ] {
            let what = format!("{control} with {scheme}, {kind}");
            let text = format!(
                "{topology}[switch]\nbuffer = \"{buffer}\"\n[flow_control]\nscheme = \"{scheme}\"\n\
                 [transport]\nkind = \"{kind}\"\ncongestion_control = \"{control}\"\n\
                 [[traffic]]\nkind = \"incast\"\nfan_in = 7\nsize = \"300kB\"\nto = \"H0\"\n\
                 [[traffic]]\nkind = \"permutation\"\nsize = \"500kB\"\n"
            );
            let plan = plan(&text);
            let outcome = run(&plan);
            assert!(outcome.flows.iter().all(|f| f.completed.is_some()), "{what}");
            if scheme != "none" {
                assert_eq!(outcome.counters.dropped, 0, "{what}");
            }
        }
    }
}

/// Ends of flows, and the devices whose signals they receive, on different threads.
#[test]
fn threads_change_nothing() {
    for control in CONTROLS {
        for (scheme, kind) in
            [("pfc", "go-back-n"), ("none", "irn"), ("bfc", "go-back-n"), ("pyrrha", "go-back-n")]
        {
            let plan = plan(&format!(
                "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 3\n\
                 host_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
                 fabric_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n[switch]\nbuffer = \"1MB\"\n\
                 [flow_control]\nscheme = \"{scheme}\"\n[transport]\nkind = \"{kind}\"\n\
                 congestion_control = \"{control}\"\n[measure]\ninterval = \"10us\"\nflows = [0, 3]\n\
                 [[traffic]]\nkind = \"incast\"\nfan_in = 7\nsize = \"300kB\"\n\
                 [[traffic]]\nkind = \"permutation\"\nsize = \"200kB\"\n"
            ));
            let one = run(&plan);
            assert!(one.flows.iter().all(|f| f.completed.is_some()));
            for threads in 2..=4 {
                let many = xoff_sim::run_on(&plan, threads, &mut |_| true);
                assert_eq!(one, many, "{control} with {scheme} on {threads} threads");
            }
        }
    }
}

/// Routes that change during a flow: records of the old and the new one are not compared.
#[test]
fn hpcc_follows_failures() {
    let text = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
        host_link = { rate = \"100Gbps\", delay = \"1us\" }\nfabric_link = { rate = \"100Gbps\", delay = \"1us\" }\n\
        [transport]\ncongestion_control = \"hpcc\"\nrto = \"200us\"\n[measure]\ninterval = \"10us\"\nflows = [0, 1]\n\
        [[failure]]\nlink = \"S0.0-S1.0\"\nat = \"100us\"\nuntil = \"400us\"\n\
        [[failure]]\nlink = \"S0.0-S1.1\"\nat = \"600us\"\nuntil = \"900us\"\n"
        .to_string()
        + &flow(0, 2, "20MB", "0us")
        + &flow(1, 3, "20MB", "0us");
    let outcome = run(&plan(&text));
    assert!(outcome.flows.iter().all(|f| f.completed.is_some()));
    // Both share the one link that is left, and then each has one, or they share again.
    for at in [350 * US, 850 * US] {
        let rate = |flow| samples(&outcome, Quantity::Rate(flow), at)[0] as f64;
        let sum = rate(0) + rate(1);
        assert!((sum / 0.95e11 - 1.0).abs() < 0.1, "{sum} at {at}");
    }
}
