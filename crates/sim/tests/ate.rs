//! Sources that choose the first hop: their traffic over each hop, under every flow control, against closed
//! forms, their own random numbers and sums by hand.

use crate::common;

use common::{plan, plan_with, run};
use xoff_kernel::random::Stream;
use xoff_kernel::time::{MICROSECOND, Time};
use xoff_plan::plan::{ENDS, Plan};
use xoff_schemes::load_balancing::ate::report::{self, Report, Source};
use xoff_sim::outcome::{Outcome, Quantity};

/// Eight domains of eight: one host sends to all that are reached over either of
/// its ports, small flows at this share of both ports' 260 Gbit/s. So neither
/// the relays nor the receivers are a bottleneck.
fn one_sender(load: f64, ate: &str) -> String {
    let to: Vec<String> =
        (1..8).map(|domain| format!("\"H{}..H{}\"", 8 * domain + 1, 8 * domain + 7)).collect();
    format!(
        "[topology]\nkind = \"rail-only\"\nn = 8\ndomain_link = {{rate=\"160Gbps\", delay=\"1us\"}}\n\
         rail_link = {{rate=\"100Gbps\", delay=\"1us\"}}\n[routing.ate]\n{ate}\
         [[traffic]]\nkind = \"poisson\"\nsizes = \"10kB\"\nload = {load}\nload_of = \"host-links\"\n\
         from = [\"H0\"]\nto = [{}]\n[run]\nduration = \"3ms\"\n[measure]\ninterval = \"100us\"\n",
        to.join(", ")
    )
}

fn source(outcome: &Outcome, host: usize) -> Source {
    outcome.records.get::<Report>().expect("it was asked for").sources[host]
}

/// In Gbit/s over the run: into the high-bandwidth domain, into the other, offered.
fn rates(outcome: &Outcome, host: usize) -> [f64; 3] {
    let s = source(outcome, host);
    [s.high_bytes, s.other_bytes, s.offered_bytes].map(|bytes| bytes as f64 * 8_000.0 / outcome.end as f64)
}

/// Samples of a quantity of host 0.
fn series(outcome: &Outcome, what: Quantity) -> Vec<(Time, u64)> {
    outcome.series.iter().filter(|s| s.what == what).map(|s| (s.at, s.value)).collect()
}

/// T_H lies within 5% of p · B_H on the time average, and the rest, D − p · B_H,
/// goes to the other domain.
#[test]
fn above_the_threshold_traffic_rests_there() {
    for (p, load, window) in
        [(0.9, 0.7, 100), (0.9, 0.9, 100), (0.6, 0.5, 100), (0.5, 0.65, 200), (0.9, 0.8, 50)]
    {
        let plan = plan(&one_sender(load, &format!("p = {p}\nwindow = \"{window}us\"\n")));
        let outcome = run(&plan);
        let [high, other, offered] = rates(&outcome, 0);
        let threshold = p * 160.0;
        assert!(offered > 1.1 * threshold, "{offered} Gbit/s are too little for this test");
        assert!((high / threshold - 1.0).abs() < 0.05, "p {p}, load {load}: {high} for {threshold} Gbit/s");
        let excess = offered - threshold;
        assert!((other / excess - 1.0).abs() < 0.1, "p {p}, load {load}: {other} for {excess} Gbit/s");
        // At rest the weight is the share that may go there.
        let weights = series(&outcome, Quantity::Told(0, &report::WEIGHT));
        let late: Vec<f64> = weights[5..].iter().map(|w| w.1 as f64 / 1e6).collect();
        let mean = late.iter().sum::<f64>() / late.len() as f64;
        assert!((mean / (threshold / offered) - 1.0).abs() < 0.05, "p {p}, load {load}: {mean}");
    }
}

/// Below it each rule splits traffic differently.
#[test]
fn below_the_threshold_the_rule_says_how_it_is_split() {
    for (update, share) in [("both-ways", 1.0), ("to-capacity", 160.0 / 260.0)] {
        let plan = plan(&one_sender(0.3, &format!("update = \"{update}\"\n")));
        let outcome = run(&plan);
        let [high, other, _] = rates(&outcome, 0);
        let found = high / (high + other);
        // 10 kB flows: some 2,800 of them, each a draw.
        let deviation = (share * (1.0 - share) / plan.flows.len() as f64).sqrt();
        let first_window = 100.0 / 3_000.0;
        assert!((found - share).abs() < 4.0 * deviation + first_window * (share - 0.6), "{update}: {found}");
    }
}

/// The rule as printed reduces the weight by chance, and never increases it.
#[test]
fn the_printed_rule_ratchets_down() {
    let high = |update: &str| {
        rates(&run(&plan(&one_sender(0.88, &format!("update = \"{update}\"\nwindow = \"20us\"\n")))), 0)[0]
    };
    let (both, capacity, printed) = (high("both-ways"), high("to-capacity"), high("one-sided"));
    assert!((both / 144.0 - 1.0).abs() < 0.05, "{both}");
    assert!(capacity < both && printed < 0.8 * capacity, "{both}, {capacity}, {printed} Gbit/s");
    let outcome = run(&plan(&one_sender(0.88, "update = \"one-sided\"\nwindow = \"20us\"\n")));
    let weights: Vec<u64> =
        series(&outcome, Quantity::Told(0, &report::WEIGHT)).iter().map(|w| w.1).collect();
    assert!(weights.is_sorted_by(|a, b| a >= b) && weights[0] > weights[weights.len() - 1], "{weights:?}");
}

/// While the weight cannot move (little traffic, and no more than the first weight
/// allowed), each flow's route is that of one number of its source's own stream.
#[test]
fn choices_are_the_sources_own_random_numbers() {
    let text = "[topology]\nkind = \"rail-only\"\nn = 3\ndomain_link = {rate=\"300Gbps\", delay=\"1us\"}\n\
                rail_link = {rate=\"100Gbps\", delay=\"1us\"}\n[routing.ate]\nupdate = \"to-capacity\"\n\
                [[traffic]]\nkind = \"poisson\"\nsizes = \"2kB\"\nload = 0.1\n[run]\nduration = \"300us\"\nseed = 11\n";
    let plan = plan(text);
    let outcome = run(&plan);
    let ate = plan.ate.as_ref().expect("asked for");
    let mut streams: Vec<Stream> = (0..9).map(|host| Stream::new(11, "ATE", host)).collect();
    let mut chosen = [[0u64; 2]; 9];
    for (id, flow) in plan.flows.iter().enumerate() {
        let routes = ate.routes[id];
        let mut expected = routes[0];
        if routes[0] != routes[1] {
            let low = streams[flow.src as usize].unit() < 0.75;
            expected = routes[usize::from(!low)];
            chosen[flow.src as usize][usize::from(!low)] += 1;
        }
        assert_eq!(outcome.routes.as_ref().unwrap()[id], expected, "flow {id}");
    }
    assert!(plan.flows.len() > 500);
    let told: Vec<[u64; 2]> = (0..9).map(|host| source(&outcome, host).chosen).collect();
    assert_eq!(told, chosen);
    assert!((0..9).all(|host| source(&outcome, host).weight == 0.75));
}

/// Each port has sent the packets of its chosen routes, packet by packet; and the records of hosts are the
/// bytes of their flows.
fn assert_ports(plan: &Plan, outcome: &Outcome) {
    let mut packets = vec![0u64; plan.topology.ports.len()];
    let mut bytes = vec![[0u64; 2]; plan.topology.hosts().count()];
    for (id, flow) in plan.flows.iter().enumerate() {
        let start = outcome.routes.as_ref().unwrap()[id];
        assert!(plan.ate.as_ref().unwrap().routes[id].contains(&start));
        let count = plan.packet.packets(flow.size);
        for &port in plan.hops[start as usize..].iter().take_while(|&&p| p < ENDS) {
            packets[port as usize] += count;
        }
        let layer = plan.topology.ports[plan.hops[start as usize] as usize].index;
        bytes[flow.src as usize][usize::from(layer)] += flow.size + count * u64::from(plan.packet.header);
    }
    let sent: Vec<u64> = outcome.ports.iter().map(|p| p.data_packets).collect();
    assert_eq!(sent, packets);
    for (host, [high, other]) in bytes.into_iter().enumerate() {
        let s = source(outcome, host);
        assert_eq!((s.high_bytes, s.other_bytes, s.offered_bytes), (high, other, high + other), "H{host}");
    }
}

#[test]
fn packets_go_where_their_source_chose_under_every_flow_control() {
    let text = |n: u64, domains: u64| {
        format!(
            "[topology]\nkind = \"rail-only\"\nn = {n}\ndomains = {domains}\n\
             domain_link = {{rate=\"160Gbps\", delay=\"1us\"}}\nrail_link = {{rate=\"100Gbps\", delay=\"600ns\"}}\n\
             [routing.ate]\nwindow = \"2us\"\np = 0.3\n\
             [[traffic]]\nkind = \"poisson\"\nsizes = \"fb-hadoop\"\nload = 0.4\nstop = \"100us\"\n\
             [[traffic]]\nkind = \"ring-all-reduce\"\nsize = \"100kB\"\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H{}\"\nsize = \"50kB\"\n\
             path = [\"H0\", \"S1.0\", \"H{n}\", \"S0.1\", \"H{}\"]\n[run]\nduration = \"10ms\"\n",
            n + 1,
            n + 1
        )
    };
    for (n, domains) in [(3, 3), (2, 5)] {
        for scheme in ["pfc", "tagger", "bfc", "per-flow-queue", "portfc", "none"] {
            let set = [("flow_control.scheme", scheme)];
            let plan = plan_with(&text(n, domains), &set);
            let outcome = run(&plan);
            assert!(outcome.flows.iter().all(|f| f.completed.is_some() && f.retransmitted == 0), "{scheme}");
            assert_ports(&plan, &outcome);
            let other =
                |(id, f): (usize, &xoff_plan::plan::Flow)| outcome.routes.as_ref().unwrap()[id] != f.path;
            assert!(plan.flows.iter().enumerate().filter(|&f| other(f)).count() > 20, "{scheme}");
            let many = xoff_sim::run_on(&plan, 3, &mut |_| true);
            assert!(outcome == many, "{scheme}: the same on three threads");
        }
    }
}

#[test]
fn it_runs_with_irn_and_congestion_control() {
    for (transport, control) in [("irn", "none"), ("go-back-n", "dcqcn"), ("irn", "dcqcn")] {
        let mut text =
            one_sender(0.8, "").replace("3ms", "500us").replace("[run]\n", "[run]\ndrain = \"1ms\"\n");
        text += &format!("[transport]\nkind = \"{transport}\"\ncongestion_control = \"{control}\"\n");
        let plan = plan(&text);
        let outcome = run(&plan);
        assert!(outcome.flows.iter().all(|f| f.completed.is_some()), "{transport} {control}");
        assert_ports(&plan, &outcome);
    }
}

/// DCQCN begins at the rate of the port that was chosen.
#[test]
fn a_flow_begins_at_the_rate_of_its_port() {
    let mut seen = [false; 2];
    for seed in 0..20 {
        let text = format!(
            "[topology]\nkind = \"rail-only\"\nn = 2\ndomain_link = {{rate=\"160Gbps\", delay=\"1us\"}}\n\
             rail_link = {{rate=\"100Gbps\", delay=\"1us\"}}\n[routing.ate]\n\
             [transport]\ncongestion_control = \"dcqcn\"\n[measure]\nflows = [0]\ninterval = \"1us\"\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H3\"\nsize = \"100kB\"\n[run]\nseed = {seed}\n"
        );
        let plan = plan(&text);
        let outcome = run(&plan);
        let other = outcome.routes.as_ref().unwrap()[0] == plan.ate.as_ref().unwrap().routes[0][1];
        let rate = if other { 100_000_000_000 } else { 160_000_000_000 };
        assert_eq!(series(&outcome, Quantity::Rate(0))[0].1, rate, "seed {seed}");
        seen[usize::from(other)] = true;
    }
    assert_eq!(seen, [true; 2]);
}

/// T_H = 0: through any number of empty windows the weight stays as it was, and the
/// next traffic finds it so. The weights are worked out by hand.
#[test]
fn without_traffic_the_weight_stays() {
    // To a neighbour in the domain: 393 us at the line rate, then nothing until 2 ms.
    let text =
        one_sender(0.9, "") + "[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"7400kB\"\n";
    let text = text
        .replace("from = [", "start = \"2ms\"\nfrom = [")
        .replace("interval = \"100us\"", "interval = \"50us\"");
    let outcome = run(&plan(&text));
    let weights = series(&outcome, Quantity::Told(0, &report::WEIGHT));
    let at = |us: u64| weights.iter().find(|w| w.0 == us * MICROSECOND).expect("a sample").1 as f64 / 1e6;
    let first = 160.0 / 260.0;
    assert!((at(50) / first - 1.0).abs() < 1e-5);
    // Three whole windows, and one of 7,400 packets less the packets of these: 1,062 B each at 160 Gbit/s
    // take 53.1 ns.
    let mut expected = first;
    let mut left = 7_400.0;
    for window in [100, 200, 300, 400] {
        let sent = f64::min(left, 100_000.0 / 53.1);
        left -= sent;
        expected *= 0.9 * 100_000.0 / (sent * 53.1);
        assert!(
            (at(window + 50) / expected - 1.0).abs() < 2e-3,
            "after {window} us: {} for {expected}",
            at(window + 50)
        );
    }
    let idle = |w: &&(Time, u64)| (450 * MICROSECOND..=2_000 * MICROSECOND).contains(&w.0);
    let idle: Vec<u64> = weights.iter().filter(idle).map(|w| w.1).collect();
    assert!(idle.len() >= 30 && idle.iter().all(|&w| w == idle[0]), "{idle:?}");
    let high = series(&outcome, Quantity::Told(0, &report::HIGH));
    assert!(high.iter().filter(|h| (450..=2_000).contains(&(h.0 / MICROSECOND))).all(|h| h.1 == 0));
    assert!(high.iter().any(|h| h.0 > 2_000 * MICROSECOND && h.1 > 0));
    // The first choices after it are by that weight, and then it moves.
    assert!(weights.iter().any(|w| w.0 > 2_100 * MICROSECOND && w.1 != idle[0]));
}
