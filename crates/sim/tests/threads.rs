//! A run over several threads leaves the same outcome, to the last bit, as one
//! on a single thread.

use crate::common;

use common::{plan, plan_with, run};
use std::collections::VecDeque;
use std::fmt::Write;
use xoff_kernel::random::Stream;
use xoff_kernel::time::{Time, serialisation};
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::cbfc::frame::CreditPacket;
use xoff_schemes::flow_control::watchdog::Report;
use xoff_sim::outcome::Outcome;
use xoff_sim::outcome::tap::{Carries, Crosser, Crossing, Tap};

/// A random scenario: any topology, scheme, transport and congestion control,
/// with failures, slow receivers, flows that wait for others, equal times and
/// smallest flows.
fn scenario(seed: u64) -> String {
    let mut random = Stream::new(seed, "scenario", 0);
    let mut pick = |n: u64| random.below(n) as usize;
    let mut text = String::new();
    // Topology, its number of hosts, and a link of it that may fail.
    let (topology, hosts, link) = [
        (
            "kind = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 3\nhost_link = {rate=\"100Gbps\", delay=\"1us\"}\nfabric_link = {rate=\"400Gbps\", delay=\"600ns\"}",
            9,
            "S0.0-S1.1",
        ),
        ("kind = \"fat-tree\"\nk = 4\nlink = {rate=\"40Gbps\", delay=\"700ns\"}", 16, "S0.0-S1.0"),
        ("kind = \"ndc\"\nn = 3\nk = 1\nlink = {rate=\"100Gbps\", delay=\"1us\"}", 9, "H0-S0.0"),
        (
            "kind = \"ring\"\nswitches = 5\nhosts_per_switch = 2\nlink = {rate=\"100Gbps\", delay=\"1us\"}\nfabric_link = {rate=\"100Gbps\", delay=\"300ns\"}",
            10,
            "S0.0-S0.1",
        ),
        (
            "kind = \"full-mesh\"\nswitches = 4\nhosts_per_switch = 2\nlink = {rate=\"100Gbps\", delay=\"1us\"}\nfabric_link = {rate=\"25Gbps\", delay=\"0ns\"}",
            8,
            "S0.0-S0.1",
        ),
        (
            "kind = \"torus-2d\"\nwidth = 3\nheight = 3\nhosts_per_switch = 1\nlink = {rate=\"100Gbps\", delay=\"1us\"}\nfabric_link = {rate=\"100Gbps\", delay=\"500ns\"}",
            9,
            "S0.0-S0.1",
        ),
        (
            "kind = \"dci\"\nk = 4\nlink = {rate=\"100Gbps\", delay=\"1us\"}\nlong_link = {rate=\"400Gbps\", length=\"10km\"}\nlong_links = 2",
            32,
            "",
        ),
    ][pick(7)];
    let scheme = ["pfc", "pfc", "none", "bfc", "per-flow-queue"][pick(5)];
    let transport = ["go-back-n", "irn"][pick(2)];
    // As often as "none" together, so that the other scenarios' kinds keep their shares.
    let controls = ["dcqcn", "timely", "hpcc", "dctcp", "swift", "nscc", "powertcp"];
    let control = controls.get(pick(14)).copied().unwrap_or("none");
    write!(
        text,
        "[topology]\n{topology}\n[switch]\nbuffer = \"{}\"\n[flow_control]\nscheme = \"{scheme}\"\n\
         [transport]\nkind = \"{transport}\"\ncongestion_control = \"{control}\"\nmtu = \"{}B\"\nack_every = {}\n",
        ["64MB", "200MB"][pick(2)],
        [500, 1_000, 1_460][pick(3)],
        1 + pick(2),
    )
    .unwrap();
    if transport == "go-back-n" {
        text += "rto = \"200us\"\n";
    }
    if pick(3) == 0 {
        text += "ack_priority = 6\n";
    }
    if matches!(control, "hpcc" | "powertcp") {
        // The path from one datacenter to the other, and detours.
        write!(text, "[{control}]\nhops = 10\n").unwrap();
    }
    text += "[measure]\ninterval = \"7us\"\nports = \"all\"\n";
    if pick(2) == 0 {
        text += "blocking = true\n";
    }
    let run = ["", "duration = \"150us\"\ndrain = \"50us\"\n"][pick(2)];
    write!(text, "[run]\nseed = {seed}\n{run}").unwrap();
    if !link.is_empty() && pick(3) == 0 {
        let until = ["", "until = \"61us\"\n"][pick(2)];
        let until = if run.is_empty() { "until = \"61us\"\n" } else { until };
        write!(text, "[[failure]]\nlink = \"{link}\"\nat = \"{}us\"\n{until}", pick(40)).unwrap();
    }
    if !link.is_empty() && pick(4) == 0 {
        write!(text, "[[loss]]\nlink = \"{link}\"\nrate = 0.01\n").unwrap();
    }
    if pick(4) == 0 {
        text += "[[slow_receiver]]\nhost = \"H1\"\nrate = \"20Gbps\"\n[[slow_receiver]]\nhost = \"H2\"\nstall_from = \"10us\"\nstall_until = \"70us\"\n";
    }
    // Everything at once, from the smallest flow on.
    write!(text, "[[traffic]]\nkind = \"permutation\"\nsize = \"{}\"\n", ["1B", "1kB", "60kB"][pick(3)])
        .unwrap();
    write!(
        text,
        "[[traffic]]\nkind = \"incast\"\nfan_in = {}\nsize = \"{}\"\nto = \"H0\"\nstart = \"5us\"\npriority = {}\n",
        2 + pick(hosts - 2),
        ["1B", "30kB", "200kB"][pick(3)],
        3 + pick(2)
    )
    .unwrap();
    if !run.is_empty() {
        write!(text, "[[traffic]]\nkind = \"poisson\"\nsizes = \"fb-hadoop\"\nload = 0.{}\n", 1 + pick(9))
            .unwrap();
    }
    if pick(4) == 0 {
        text += "[[traffic]]\nkind = \"ring-all-reduce\"\nsize = \"40kB\"\n";
    }
    text
}

/// The first difference, by field, so that a failure can be read.
fn assert_same(one: &Outcome, other: &Outcome, what: &str) {
    assert_eq!(one.counters, other.counters, "{what}");
    assert_eq!((one.stop, one.end), (other.stop, other.end), "{what}");
    assert_eq!(one.flows, other.flows, "{what}");
    assert_eq!(one.ports, other.ports, "{what}");
    assert_eq!(one.pauses, other.pauses, "{what}");
    assert_eq!(one.drops, other.drops, "{what}");
    assert!(one == other, "{what}: accounts, series, oracles or memory differ");
}

#[test]
fn two_hundred_random_scenarios_are_the_same_on_any_number_of_threads() {
    let mut seen = [0usize; 6];
    for seed in 0..200 {
        let text = scenario(seed);
        let plan = plan(&text);
        let one = run(&plan);
        for (at, there) in [
            !one.pauses.is_empty(),
            one.deadlock.is_some(),
            one.counters.dropped > 0,
            one.flows.iter().any(|f| f.retransmitted > 0),
            one.blocking.as_ref().is_some_and(|b| !b.places.is_empty()),
            !plan.faults.reroutes.is_empty(),
        ]
        .into_iter()
        .enumerate()
        {
            seen[at] += usize::from(there);
        }
        let threads = 2 + seed as usize % 3;
        let many = xoff_sim::run_on(&plan, threads, &mut |_| true);
        assert_same(&one, &many, &format!("seed {seed}, {threads} threads\n{text}"));
    }
    // The intended events of the scenarios have happened.
    assert!(seen[0] > 50 && seen[2] > 10 && seen[3] > 20 && seen[4] > 20 && seen[5] > 20, "{seen:?}");
}

/// A run with taps: its outcome, and its records.
fn tapped(plan: &Plan, threads: usize, ports: &[u32]) -> (Outcome, Vec<Crossing>) {
    let mut seen = Vec::new();
    let mut sink = |crossings: &[Crossing]| seen.extend_from_slice(crossings);
    let outcome = xoff_sim::run_tapped(plan, threads, Tap { ports, sink: &mut sink }, &mut |_| true);
    (outcome, seen)
}

/// The ports of links.
fn links(plan: &Plan) -> Vec<u32> {
    let topology = &plan.topology;
    let inner = |p: u32| topology.neighbour(p) == topology.ports[p as usize].node;
    (0..topology.ports.len() as u32).filter(|&p| !inner(p)).collect()
}

fn wire_time(plan: &Plan, crossing: &Crossing) -> Time {
    let size = match &crossing.what {
        Crosser::Frame(bytes) => match CreditPacket::parse(bytes) {
            Ok(packet) => packet.length(),
            // And a check sequence.
            Err(_) => bytes.len() as u32 + 4,
        },
        &Crosser::Packet { flow, carries: Carries::Data { psn }, .. } => {
            plan.packet.wire_size(plan.flows[flow as usize].size, psn.into())
        }
        Crosser::Packet { .. } => plan.packet.ack,
    };
    serialisation(size.into(), plan.topology.ports[crossing.port as usize].rate)
}

/// The records of taps on every link equal the counts of the outcome, each packet arrives when it must, and
/// none overlaps another. Returns how many were sent, and how many of them were lost.
fn assert_consistent(plan: &Plan, outcome: &Outcome, seen: &[Crossing], text: &str) -> [u64; 2] {
    let ports = plan.topology.ports.len();
    let (mut sent, mut data, mut lost) = (vec![0; ports], vec![0; ports], 0);
    let mut free: Vec<Time> = vec![0; ports];
    let mut under_way: Vec<VecDeque<&Crossing>> = vec![VecDeque::new(); ports];
    let mut before = 0;
    for crossing in seen {
        assert!(crossing.at >= before, "out of order\n{text}");
        before = crossing.at;
        let port = crossing.port as usize;
        if crossing.sent {
            sent[port] += 1;
            let carries = Carries::Data { psn: 0 };
            data[port] += u64::from(matches!(&crossing.what, Crosser::Packet { carries: c, .. }
                if std::mem::discriminant(c) == std::mem::discriminant(&carries)));
            assert!(crossing.at >= free[port], "two packets on one wire\n{text}");
            free[port] = crossing.at + wire_time(plan, crossing);
            under_way[port].push_back(crossing);
            continue;
        }
        let link = &plan.topology.ports[port];
        loop {
            let from = under_way[link.peer as usize].pop_front();
            let from = from.unwrap_or_else(|| panic!("nobody sent {crossing:?}\n{text}"));
            if from.at + wire_time(plan, from) + link.delay == crossing.at {
                assert_eq!(from.what, crossing.what, "{text}");
                break;
            }
            lost += 1;
        }
    }
    for (port, out) in outcome.ports.iter().enumerate().filter(|(p, _)| links(plan).contains(&(*p as u32))) {
        assert_eq!((sent[port], data[port]), (out.packets, out.data_packets), "port {port}\n{text}");
        // A packet that is still in flight could not have arrived.
        let link = &plan.topology.ports[port];
        for crossing in &under_way[port] {
            let due = crossing.at + wire_time(plan, crossing) + link.delay;
            lost += u64::from(due < outcome.end);
        }
    }
    [sent.iter().sum(), lost]
}

#[test]
fn taps_see_everything_and_change_nothing_on_any_number_of_threads() {
    let mut sums = [0; 2];
    for seed in 0..60 {
        let text = scenario(seed);
        let plan = plan(&text);
        let one = run(&plan);
        let all = links(&plan);
        let (outcome, seen) = tapped(&plan, 1, &all);
        assert_same(&one, &outcome, &format!("seed {seed}, tapped\n{text}"));
        let [sent, lost] = assert_consistent(&plan, &one, &seen, &text);
        let faulty = !plan.faults.down.is_empty() || !plan.faults.losses.is_empty();
        assert!(lost == 0 || faulty, "{lost} packets lost\n{text}");
        sums = [sums[0] + sent, sums[1] + lost];
        // Taps on some ports have the same records of them as taps on all.
        let some: Vec<u32> =
            all.iter().copied().filter(|p| (u64::from(*p) + seed).is_multiple_of(3)).collect();
        let (outcome, part) = tapped(&plan, 2 + seed as usize % 3, &some);
        assert_same(&one, &outcome, &format!("seed {seed}, tapped on threads\n{text}"));
        let there = seen.into_iter().filter(|crossing| some.contains(&crossing.port));
        assert!(there.eq(part), "seed {seed}\n{text}");
    }
    assert!(sums[0] > 1_000_000 && sums[1] > 100, "{sums:?}");
}

/// A watchdog changes how ports treat packets while they are tapped, and back.
#[test]
fn taps_outlast_a_watchdog() {
    let text = include_str!("../../../examples/watchdog.toml");
    for action in ["drop", "forward"] {
        let times = ["detection_time", "restoration_time", "poll"].map(|key| format!("flow_control.{key}"));
        let mut keys: Vec<(&str, &str)> = times.iter().map(|key| (key.as_str(), "100us")).collect();
        keys.extend([("flow_control.action", action), ("run.duration", "3ms")]);
        let plan = plan_with(text, &keys);
        let one = xoff_sim::run(&plan, &mut |_| true);
        let storms = &one.records.get::<Report>().unwrap().storms;
        assert!(storms.iter().any(|storm| storm.until.is_some()), "a storm has ended: {storms:?}");
        let (outcome, seen) = tapped(&plan, 1, &links(&plan));
        assert!(one == outcome, "taps change nothing");
        let [_, lost] = assert_consistent(&plan, &one, &seen, action);
        assert_eq!(lost, 0);
    }
}

/// The default: one thread for a short run, two for a long run on two cores, one with links of a nanosecond.
#[test]
fn only_long_runs_get_two_threads_by_default() {
    let plan = |size: &str, delay: &str| {
        let link = format!("{{ rate = \"100Gbps\", delay = \"{delay}\" }}");
        plan(&format!(
            "[topology]\nkind = \"fat-tree\"\nk = 8\nlink = {link}\n\
            [[traffic]]\nkind = \"permutation\"\nsize = \"{size}\"\n"
        ))
    };
    let (short, long) = (plan("250kB", "1us"), plan("500kB", "1us"));
    assert_eq!([1, 2, 16].map(|cores| xoff_sim::default_threads(&short, cores)), [1, 1, 1]);
    assert_eq!([1, 2, 16].map(|cores| xoff_sim::default_threads(&long, cores)), [1, 2, 2]);
    assert_eq!(xoff_sim::default_threads(&plan("500kB", "1ns"), 2), 1);
    assert_eq!(xoff_sim::worthwhile_threads(&short, 2), 2);
}
