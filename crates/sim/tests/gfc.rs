//! GFC in packet runs: no packet is lost, rates follow the drain, and rings that deadlock under PFC go on.

use crate::common;

use common::{plan, plan_with, ran, run};
use proptest::prelude::*;
use xoff_outcome::report::Value;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::gfc::report::Report;
use xoff_schemes::flow_control::gfc::time::Map;
use xoff_schemes::flow_control::gfc::{Ladder, feedback, stages};
use xoff_schemes::flow_control::{FlowControlParams, LinkFacts};
use xoff_sim::outcome::{Outcome, Stop};

/// Packets of 1,062 B on links of 100 Gbit/s take 84.96 ns.
const PACKET: u64 = 1_062;

fn ladder(plan: &Plan, port: u32) -> &Ladder {
    let FlowControlParams::Gfc(params) = &plan.flow_control else { panic!("of this scheme") };
    &params.ladders[params.of_port[port as usize] as usize]
}

fn map(plan: &Plan, port: u32) -> &Map {
    let FlowControlParams::Gfc(params) = &plan.flow_control else { panic!("of this scheme") };
    &params.maps[params.of_port[port as usize] as usize]
}

fn report(outcome: &Outcome) -> Report {
    *outcome.records.get().expect("the scheme ran")
}

/// Whether every lossless account stayed below its buffer: up to B_1, with the packet that crosses it, and beyond.
fn keeps_within(plan: &Plan, outcome: &Outcome) -> bool {
    let largest = u64::from(plan.packet.largest());
    outcome.accounts.iter().zip(&plan.accounts).all(|(peak, account)| match &account.headroom {
        Some(beyond) => peak.main <= account.reserve + largest && peak.headroom < beyond.total,
        None => true,
    })
}

/// A ring of `n` switches with a host each. The flow from each host goes around the ring for `hops` links.
fn ring(n: usize, hops: usize, keys: &str, size: &str, more: &str) -> String {
    let names = |prefix: &str| (0..n).map(|i| format!("\"{prefix}{i}\"")).collect::<Vec<_>>().join(", ");
    let links = (0..n).flat_map(|i| {
        let next = (i + 1) % n;
        [(format!("H{i}"), format!("S{i}")), (format!("S{i}"), format!("S{next}"))]
    });
    let links: Vec<String> =
        links.map(|(a, b)| format!("{{a=\"{a}\", b=\"{b}\", rate=\"100Gbps\", delay=\"1us\"}}")).collect();
    let flows = (0..n).map(|i| {
        let around: Vec<String> = (0..=hops).map(|hop| format!("\"S{}\"", (i + hop) % n)).collect();
        let dst = (i + hops) % n;
        format!(
            "[[traffic]]\nkind = \"flow\"\nsrc = \"H{i}\"\ndst = \"H{dst}\"\nsize = \"{size}\"\n\
             path = [\"H{i}\", {}, \"H{dst}\"]\n",
            around.join(", ")
        )
    });
    format!(
        "[topology]\nkind = \"custom\"\nhosts = [{}]\nswitches = [{}]\nlinks = [{}]\n[flow_control]\n{keys}\n{}{more}",
        names("H"),
        names("S"),
        links.join(",\n"),
        flows.collect::<String>()
    )
}

/// Flows of two links: each link of the ring carries two flows, so each has half of it. Under PFC nothing moves
/// any more.
#[test]
fn a_ring_that_deadlocks_under_pfc_goes_on() {
    for n in [3, 4, 5] {
        let pfc = run(&plan(&ring(n, 2, "scheme = \"pfc\"\nxoff = \"30kB\"", "10MB", "")));
        assert!(pfc.deadlock.is_some(), "{n} switches");
        let plan = plan(&ring(n, 2, "scheme = \"gfc\"", "10MB", ""));
        let outcome = run(&plan);
        assert!(outcome.deadlock.is_none() && outcome.waiting.is_empty());
        assert_eq!(outcome.stop, Stop::AllDone);
        assert!(keeps_within(&plan, &outcome) && outcome.pauses.is_empty());
        // 10,000 packets of 84.96 ns, at half of the rate. Control packets take 6% of the links of the ring.
        let fair = 10_000.0 * 84.96 * 2.0;
        for flow in &outcome.flows {
            let time = (flow.completed.unwrap() - flow.started.unwrap()) as f64 / 1e3;
            println!("{n} switches: {time:.0} ns, fair {fair:.0} ns; {:?}", report(&outcome));
            assert!((0.95 * fair..1.1 * fair).contains(&time), "{n} switches: {time} ns of {fair} ns");
        }
        assert!(report(&outcome).deepest <= 2);
    }
}

/// The same with feedback in periods: each flow has half of its links, and the account of each ring link stands where
/// the map has half of the rate, B_m − (B_m − B_0) / 2. The frames take 64 B of each 65,536 B.
#[test]
fn with_periods_each_flow_of_a_ring_has_half_and_queues_stand_at_the_fixed_point() {
    for n in [3, 4, 5] {
        let keys = "scheme = \"gfc\"\nform = \"time\"";
        let plan = plan(&ring(n, 2, keys, "20MB", ""));
        let outcome = run(&plan);
        assert!(outcome.deadlock.is_none() && outcome.waiting.is_empty());
        assert_eq!(outcome.stop, Stop::AllDone);
        assert!(keeps_within(&plan, &outcome) && outcome.pauses.is_empty());
        let fair = 20_000.0 * 84.96 * 2.0;
        for flow in &outcome.flows {
            let time = (flow.completed.unwrap() - flow.started.unwrap()) as f64 / 1e3;
            println!("{n} switches: {time:.0} ns, fair {fair:.0} ns; {:?}", report(&outcome));
            assert!((0.95 * fair..1.1 * fair).contains(&time), "{n} switches: {time} ns of {fair} ns");
        }
        let map = map(&plan, 0);
        let fixed = (map.bm - (map.bm - map.b0) / 2) as f64;
        let peaks = outcome.accounts.iter().map(|peak| (peak.main + peak.headroom) as f64);
        let fullest = peaks.fold(0.0, f64::max);
        println!("{n} switches: fullest account {fullest} B, fixed point {fixed} B");
        assert!(fullest > 0.9 * fixed && fullest < map.bm as f64, "{fullest} B, {fixed} B");
        // Each port sends a frame in each period of 65,536 B.
        let bytes = report(&outcome).frames as f64 * 64.0;
        let links = plan.topology.ports.len() as f64 * 12.5 * outcome.end as f64 / 1e3;
        assert!((bytes / links - 64.0 / 65_536.0).abs() < 2e-5, "{}", bytes / links);
    }
}

/// A receiver that reads slowly: the sender sends as fast as it reads, with feedback in periods, too.
#[test]
fn with_periods_a_sender_converges_to_the_rate_of_its_receiver() {
    for gbps in [50u64, 30, 10, 3] {
        let text = format!(
            "[topology]\nkind = \"custom\"\nhosts = [\"H0\", \"H1\"]\nswitches = [\"X\"]\n\
             links = [{{a=\"H0\", b=\"X\", rate=\"100Gbps\", delay=\"1us\"}},\n\
             {{a=\"X\", b=\"H1\", rate=\"100Gbps\", delay=\"1us\"}}]\n[flow_control]\nscheme = \"gfc\"\nform = \"time\"\n\
             [transport]\nack_every = 1000000\nrto = \"1s\"\n[run]\nduration = \"2ms\"\n\
             [[slow_receiver]]\nhost = \"H1\"\nrate = \"{gbps}Gbps\"\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"10GB\"\n"
        );
        let plan = plan(&text);
        let outcome = run(&plan);
        let most = (2e-3 - 2.5e-6) * gbps as f64 * 1e9 / 8.0 / PACKET as f64;
        let packets = outcome.flows[0].delivered_bytes / 1_000;
        println!("{gbps} Gbit/s: {packets} packets of {most:.0}, {:?}", report(&outcome));
        assert!(packets as f64 > most - 3.0, "{gbps} Gbit/s: {packets} packets of {most}");
        assert!(keeps_within(&plan, &outcome));
    }
}

/// A receiver that stops for 20 ms: nothing is lost, and after that the rates rise within a period.
#[test]
fn with_periods_a_receiver_that_stops_reading_loses_nothing() {
    let text = "[topology]\nkind = \"line\"\nswitches = 2\nhosts_per_switch = 2\n\
                link = { rate = \"100Gbps\", delay = \"1us\" }\n[flow_control]\nscheme = \"gfc\"\nform = \"time\"\n\
                [transport]\nrto = \"3s\"\n\
                [[slow_receiver]]\nhost = \"H3\"\nstall_from = \"20us\"\nstall_until = \"20ms\"\n\
                [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H3\"\nsize = \"2MB\"\n\
                [[traffic]]\nkind = \"flow\"\nsrc = \"H1\"\ndst = \"H3\"\nsize = \"2MB\"\n";
    let plan = plan(text);
    let outcome = run(&plan);
    println!("{:?}, end {}", report(&outcome), outcome.end);
    assert_eq!(outcome.stop, Stop::AllDone);
    assert!(keeps_within(&plan, &outcome));
    // The rate is halved seven times by the map, and then with each packet: each takes twice the time.
    assert!((12..=20).contains(&report(&outcome).deepest), "{:?}", report(&outcome));
    // 4,000 packets take 0.34 ms.
    assert!(outcome.end < 20_600_000_000, "{}", outcome.end);
}

/// H, C·T of 65,536 B, and the terms of whole packets.
#[test]
fn the_default_buffer_with_periods_is_that_of_the_formula() {
    let plan = plan(&ring(3, 2, "scheme = \"gfc\"\nform = \"time\"", "1MB", ""));
    let map = map(&plan, 0);
    let h = 25_000.0 + 2.0 * PACKET as f64 + 64.0;
    assert_eq!((map.b0 as f64, map.period), (h, 65_536 * 80));
    let span = (h.sqrt() + 65_536f64.sqrt()).powi(2);
    assert!(((map.bm - map.b0) as f64 - span).abs() < 2.0, "{} B, not {span}", map.bm - map.b0);
    let facts = LinkFacts { rate: 100_000_000_000, delay: 1_000_000, largest: PACKET as u32, retries: 0 };
    assert_eq!(map.buffer - map.bm, (u64::from(stages(&facts)) + 4) * PACKET);
}

/// What the rule does not prevent: with one queue for all ingress ports, or on paths of three links, more bytes
/// join the ring than leave it at any rate above 0. Nothing is lost, nothing stops, and the rates fall and fall.
#[test]
fn in_other_rings_the_rates_fall_without_end() {
    for (n, hops, keys) in [(3, 2, "scheme = \"gfc\"\nservice = \"fifo\""), (4, 3, "scheme = \"gfc\"")] {
        let deepest = |duration: &str| {
            let more = format!("[run]\nduration = \"{duration}\"\n");
            let plan = plan_with(&ring(n, hops, keys, "1GB", &more), &[("transport.rto", "\"1s\"")]);
            let outcome = run(&plan);
            assert!(outcome.deadlock.is_none() && keeps_within(&plan, &outcome));
            report(&outcome).deepest
        };
        let stages = ["1ms", "10ms", "100ms"].map(deepest);
        println!("{n} switches, {hops} links, {keys}: stages {stages:?}");
        assert!(stages[0] + 1 < stages[1] && stages[1] + 1 < stages[2], "{stages:?}");
    }
}

/// A receiver that reads slowly: the sender sends as fast as it reads, and no packet is lost.
#[test]
fn a_sender_converges_to_the_rate_of_its_receiver() {
    for gbps in [50u64, 30, 10, 3, 1] {
        let text = format!(
            "[topology]\nkind = \"custom\"\nhosts = [\"H0\", \"H1\"]\nswitches = [\"X\"]\n\
             links = [{{a=\"H0\", b=\"X\", rate=\"100Gbps\", delay=\"1us\"}},\n\
             {{a=\"X\", b=\"H1\", rate=\"100Gbps\", delay=\"1us\"}}]\n[flow_control]\nscheme = \"gfc\"\n\
             [transport]\nack_every = 1000000\nrto = \"1s\"\n[run]\nduration = \"2ms\"\n\
             [[slow_receiver]]\nhost = \"H1\"\nrate = \"{gbps}Gbps\"\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"10GB\"\n"
        );
        let plan = plan(&text);
        let outcome = run(&plan);
        // The receiver never idles after the first packet has come.
        let most = (2e-3 - 2.5e-6) * gbps as f64 * 1e9 / 8.0 / PACKET as f64;
        let packets = outcome.flows[0].delivered_bytes / 1_000;
        println!("{gbps} Gbit/s: {packets} packets of {most:.0}, {:?}", report(&outcome));
        assert!(packets as f64 > most - 3.0, "{gbps} Gbit/s: {packets} packets of {most}");
        assert!(keeps_within(&plan, &outcome));
        // R_k above the drain, and then below it: at most a stage more than the drain needs, and one for the delay.
        let needed = (100.0 / gbps as f64).log2().ceil() as u8;
        let deepest = report(&outcome).deepest;
        assert!((needed..=needed + 2).contains(&deepest), "{gbps} Gbit/s: stage {deepest}, {needed} needed");
    }
}

/// A receiver that stops for 1 s: its account fills up to a stage in which packets come every 0.1 s or more,
/// and never overflows. After that the rates rise at once.
#[test]
fn a_receiver_that_stops_reading_loses_nothing() {
    let text = "[topology]\nkind = \"line\"\nswitches = 2\nhosts_per_switch = 2\n\
                link = { rate = \"100Gbps\", delay = \"1us\" }\n[flow_control]\nscheme = \"gfc\"\n\
                [transport]\nrto = \"3s\"\n\
                [[slow_receiver]]\nhost = \"H3\"\nstall_from = \"20us\"\nstall_until = \"1s\"\n\
                [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H3\"\nsize = \"2MB\"\n\
                [[traffic]]\nkind = \"flow\"\nsrc = \"H1\"\ndst = \"H3\"\nsize = \"2MB\"\n";
    let plan = plan(text);
    let outcome = run(&plan);
    let report = report(&outcome);
    println!("{report:?}, end {}", outcome.end);
    assert_eq!(outcome.stop, Stop::AllDone);
    assert!(keeps_within(&plan, &outcome));
    // 84.96 ns · 2^k is 0.09 s for k = 20, and 0.7 s for k = 23.
    assert!((20..=24).contains(&report.deepest), "{report:?}");
    // 4,000 packets take 0.34 ms.
    assert!(outcome.end < 1_000_500_000_000, "{}", outcome.end);
}

/// Frames of 64 B take less than 0.5% of a link, the figure of the paper's abstract, in the ring.
#[test]
fn feedback_takes_less_than_half_a_percent() {
    let plan = plan(&ring(3, 2, "scheme = \"gfc\"", "10MB", ""));
    let outcome = run(&plan);
    // Three links of the ring, one direction each.
    let bits = report(&outcome).frames as f64 * 64.0 * 8.0;
    let share = bits / (3.0 * 100.0 * outcome.end as f64 / 1e3);
    println!("{share} of each link of the ring");
    assert!(share < 0.005, "{share}");
}

#[test]
fn the_report_says_when_no_sender_was_slowed() {
    let text = "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 2\n\
                link = { rate = \"100Gbps\", delay = \"1us\" }\n[flow_control]\nscheme = \"gfc\"\n\
                [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"1MB\"\n";
    let plan = plan(text);
    let outcome = run(&plan);
    let sections = outcome.records.sections(&ran(&plan, &outcome));
    assert_eq!(*sections[0].value("deepest"), Value::Count(0));
    assert_eq!(sections[0].notes[0].text, "GFC had no effect: no sender waited for a lower rate.");
}

/// B_1 + 2·C·τ, and the terms of whole packets.
#[test]
fn the_default_buffer_is_that_of_the_formula() {
    let plan = plan(&ring(3, 2, "scheme = \"gfc\"", "1MB", ""));
    let facts = LinkFacts { rate: 100_000_000_000, delay: 1_000_000, largest: PACKET as u32, retries: 0 };
    let h = feedback(&facts, 0);
    assert_eq!(h, 25_000 + 2 * PACKET + 64);
    let ladder = ladder(&plan, 0);
    assert_eq!(ladder.thresholds[..2], [h, 2 * h + PACKET]);
    let stages = ladder.thresholds.len() as u64;
    assert!(ladder.buffer.abs_diff(3 * h + (stages + 1) * PACKET) <= stages);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 60 / 256))]
    /// Over random rings and lines, hosts, rates and delays: no loss and no deadlock. In lines, whose queues have
    /// no cycle, all flows finish.
    #[test]
    fn nothing_is_lost_and_without_a_cycle_every_flow_finishes(
        n in 3usize..7, is_ring in any::<bool>(), fifo in any::<bool>(),
        rates in prop::collection::vec(prop::sample::select(vec![10u64, 25, 40, 100, 400]), 7),
        delays in prop::collection::vec(0u64..3_000, 7), mtu in 200u64..4_000, response in 0u64..2_000,
        b1 in prop::option::of(1u64..100_000), fan_in in 2u32..4, seed in 0u64..10_000,
        slow in prop::option::of((1u64..50, 0u64..2)), two_priorities in any::<bool>(), lossy in any::<bool>(),
        by_time in any::<bool>(),
    ) {
        let names = |prefix: &str| (0..n).map(|i| format!("\"{prefix}{i}\"")).collect::<Vec<_>>().join(", ");
        let link = |a: String, b: String, at: usize| {
            format!("{{a=\"{a}\", b=\"{b}\", rate=\"{}Gbps\", delay=\"{}ns\"}}", rates[at % 7], delays[at % 7])
        };
        let hosts = (0..n).map(|i| link(format!("H{i}"), format!("S{i}"), i));
        let between = (0..n - usize::from(!is_ring)).map(|i| link(format!("S{i}"), format!("S{}", (i + 1) % n), i + 3));
        let links: Vec<String> = hosts.chain(between).collect();
        let mut text = format!(
            "[topology]\nkind = \"custom\"\nhosts = [{}]\nswitches = [{}]\nlinks = [{}]\n\
             [flow_control]\nscheme = \"gfc\"\nresponse_time = \"{response}ns\"\n{}{}\n[transport]\nmtu = \"{mtu}B\"\nrto = \"1s\"\n\
             [run]\nseed = {seed}\n{}\
             [[traffic]]\nkind = \"permutation\"\nsize = \"{}kB\"\n\
             [[traffic]]\nkind = \"incast\"\nfan_in = {}\nsize = \"100kB\"\npriority = {}\n",
            names("H"), names("S"), links.join(",\n"),
            b1.map_or(String::new(), |b1| format!("{} = \"{b1}B\"\n", if by_time { "b0" } else { "b1" }))
                + if by_time { "form = \"time\"\n" } else { "" },
            if fifo { "service = \"fifo\"" } else { "" },
            if is_ring { "duration = \"2ms\"\n" } else { "" },
            100 + seed % 400, fan_in.min(n as u32 - 1), if two_priorities { 5 } else { 3 },
        );
        if two_priorities && lossy {
            text += "[[priority]]\nid = 5\nlossless = false\n";
        }
        if let Some((rate, stall)) = slow {
            text += &format!("[[slow_receiver]]\nhost = \"H0\"\nrate = \"{rate}Gbps\"\n");
            if stall == 1 {
                text += "stall_from = \"10us\"\nstall_until = \"900us\"\n";
            }
        }
        for i in 0..n * usize::from(is_ring) {
            let at = |hop: usize| (i + hop) % n;
            text += &format!(
                "[[traffic]]\nkind = \"flow\"\nsrc = \"H{i}\"\ndst = \"H{}\"\nsize = \"400kB\"\n\
                 path = [\"H{i}\", \"S{i}\", \"S{}\", \"S{}\", \"H{}\"]\n",
                at(2), at(1), at(2), at(2)
            );
        }
        let plan = plan(&text);
        let outcome = run(&plan);
        prop_assert!(keeps_within(&plan, &outcome));
        prop_assert!(outcome.deadlock.is_none() && outcome.pauses.is_empty());
        if !is_ring {
            prop_assert_eq!(outcome.stop, Stop::AllDone);
            prop_assert!(outcome.flows.iter().all(|flow| flow.completed.is_some()));
        }
    }
}
