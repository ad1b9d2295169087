//! UEC CBFC in packet runs: never a drop, the closed form of its credits, VCs that share credit or do not, credits of
//! lost packets, and what the oracles see.

use crate::common;

use common::{plan, plan_with, run};
use proptest::prelude::*;
use std::collections::BTreeSet;
use xoff_kernel::time::{MICROSECOND, Time, serialisation};
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::uec_cbfc::report::Report;
use xoff_schemes::flow_control::uec_cbfc::{MOST, credits, full_throughput};
use xoff_schemes::flow_control::{FlowControlParams, LinkFacts};
use xoff_sim::outcome::{Held, Outcome, Stop};

/// Packets of 1,024 B, 8 credits of 128 B; one takes 81.92 ns at 100 Gbit/s.
const PACKET: u64 = 1_024;
const PAYLOAD: u64 = 960;
const CREDITS: u64 = 8;
const CREDIT: u64 = 128;
const RATE: u64 = 100_000_000_000;

fn report(outcome: &Outcome) -> Report {
    *outcome.records.get::<Report>().expect("the scheme reports")
}

/// H0 sends to H1 over X continuously; the link of H0 has a delay of `delay` ps, that of H1 the rate `out`.
fn link(delay: Time, out: &str, duration: &str, keys: &str, more: &str) -> String {
    format!(
        "[topology]\nkind = \"custom\"\nhosts = [\"H0\", \"H1\"]\nswitches = [\"X\"]\n\
         links = [{{a=\"H0\", b=\"X\", rate=\"100Gbps\", delay=\"{delay}ps\"}},\n\
         {{a=\"X\", b=\"H1\", rate=\"{out}\", delay=\"10ns\"}}]\n\
         [flow_control]\nscheme = \"uec-cbfc\"\n{keys}\n\
         [transport]\nmtu = \"{PAYLOAD}B\"\nheader = \"64B\"\nack = \"64B\"\nack_every = 1000000000\nrto = \"1s\"\n[run]\nduration = \"{duration}\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"10GB\"\n{more}"
    )
}

/// Data packets of a flow that were delivered.
fn packets(outcome: &Outcome, flow: usize) -> u64 {
    outcome.flows[flow].delivered_bytes / PAYLOAD
}

/// Whether H0 has waited for credit.
fn waited(plan: &Plan, outcome: &Outcome) -> bool {
    let nic = plan.hops[plan.flows[0].path as usize];
    outcome.pauses.iter().any(|p| p.port == nic)
}

/// A packet's credits are away for its own time, the cable, a CF_Update and the cable again. As many packets as begin
/// in that time, and the next one, need credit: with one credit less the link stalls.
#[test]
fn the_least_limit_for_full_rate_is_exact() {
    let (packet, set) = (serialisation(PACKET, RATE), serialisation(8, RATE));
    for (delay, response) in [(0, 0), (15_000, 0), (1_000_000, 0), (2_500_000, 300_000), (50_000_000, 0)] {
        let away = packet + 2 * delay + set + response;
        let least = (away / packet + 1) * CREDITS;
        let waits = |credits: u64| {
            let keys = format!(
                "buffer = \"{}B\"\nresponse_time = \"{response}ps\"\ncc_period = \"250ms\"\n",
                credits * CREDIT
            );
            // The switch sends on at once.
            let plan = plan(&link(delay, "400Gbps", "400us", &keys, ""));
            waited(&plan, &run(&plan))
        };
        assert!(!waits(least), "{least} credits suffice at {delay} ps");
        assert!(waits(least - 1), "{} credits do not at {delay} ps", least - 1);
        let facts = LinkFacts { rate: RATE, delay, largest: PACKET as u32, retries: 0 };
        let formula = full_throughput(&facts, serialisation(800, RATE), 1, response);
        assert!((least / CREDITS..=least / CREDITS + 4).contains(&formula), "{formula}, least {least}");
    }
}

/// The sum of `xoff size` suffices where packets in the other direction hold up CF_Updates, and is not far above.
#[test]
fn the_formula_suffices_under_traffic_in_both_directions() {
    let more = "[[traffic]]\nkind = \"flow\"\nsrc = \"H1\"\ndst = \"H0\"\nsize = \"10GB\"\n";
    for delay in [10_000, 1_000_000, 10_000_000] {
        let facts = LinkFacts { rate: RATE, delay, largest: PACKET as u32, retries: 0 };
        let formula = full_throughput(&facts, serialisation(800, RATE), 1, 0) * CREDITS;
        let waits = |credits: u64| {
            let keys = format!("buffer = \"{}B\"\n", credits * CREDIT);
            let plan = plan(&link(delay, "100Gbps", "400us", &keys, more));
            waited(&plan, &run(&plan))
        };
        assert!(!waits(formula), "{formula} credits at {delay} ps");
        let (mut bad, mut good) = (CREDITS, formula);
        assert!(waits(bad));
        while good - bad > 1 {
            let middle = (good + bad) / 2;
            if waits(middle) { bad = middle } else { good = middle }
        }
        println!("delay {delay}: formula {formula}, least {good} credits");
        assert!(formula - good <= 4 * CREDITS, "{formula} is far above {good}");
    }
}

#[test]
fn with_less_credit_the_throughput_falls_in_proportion() {
    let delay = 10_000_000u64;
    for share in [20u64, 40, 60, 80] {
        let keys = format!("buffer = \"{}B\"\ncc_period = \"250ms\"\n", 250_000 * share / 100);
        let outcome = run(&plan(&link(delay, "400Gbps", "4ms", &keys, "")));
        // Whole packets for each round trip.
        let per_trip = 250_000 * share / 100 / CREDIT / CREDITS;
        let away = serialisation(PACKET, RATE) + 2 * delay + serialisation(8, RATE);
        let expected = per_trip * ((4_000 * MICROSECOND - delay) / away);
        let got = packets(&outcome, 0);
        assert!(got.abs_diff(expected) <= 2 * per_trip, "{share}%: {got} packets, not {expected}");
    }
}

/// Small packets free credits all the time: a CF_Update every 800 B, 1% of the other direction. A larger spacing
/// costs less.
#[test]
fn cf_updates_take_eight_bytes_in_their_spacing() {
    for (spacing, share) in [(800u64, 0.01), (6_400, 0.00125), (768, 8.0 / 768.0)] {
        let keys = format!("cf_min_spacing = \"{spacing}B\"\ncc_period = \"250ms\"\n");
        let text = link(1_000_000, "100Gbps", "200us", &keys, "").replace("960B", "64B");
        let outcome = run(&plan(&text));
        // Both links have two ends; only X towards H0 and H1 towards X send them all the time.
        let sent = report(&outcome).cf_updates - report(&outcome).refreshes;
        let line = 200_000_000.0 * RATE as f64 / 8e12;
        let measured = 8.0 * sent as f64 / 2.0 / line;
        assert!((measured / share - 1.0).abs() < 0.02, "{spacing}: {measured} of {share}");
    }
}

/// A receiver that reads at the full, half or no rate: the sender has that rate, and nothing is lost.
#[test]
fn the_sender_has_the_rate_of_the_receiver() {
    let line = 1e9 / 81_920.0;
    for (more, low, high) in [
        ("", 0.985, 1.0),
        ("[[slow_receiver]]\nhost = \"H1\"\nrate = \"50Gbps\"\n", 0.49, 0.505),
        ("[[slow_receiver]]\nhost = \"H1\"\nstall_from = \"0us\"\nstall_until = \"1s\"\n", 0.0, 0.01),
    ] {
        let outcome = run(&plan(&link(1_000_000, "100Gbps", "1ms", "", more)));
        let share = packets(&outcome, 0) as f64 / line;
        assert!((low..=high).contains(&share), "{more}: {share}");
        assert!(outcome.drops.is_empty());
    }
}

/// 500 m of cable at line rate with the default buffer, as the test plan of the scale-up networks of SONiC has it.
#[test]
fn five_hundred_metres_run_at_line_rate() {
    let plan = plan(&link(2_500_000, "100Gbps", "1ms", "", ""));
    let outcome = run(&plan);
    let share = packets(&outcome, 0) as f64 / ((1e9 - 2.6e6) / 81_920.0);
    assert!(share > 0.99 && !waited(&plan, &outcome), "{share}");
}

#[test]
fn an_incast_of_three_loses_nothing() {
    let text = "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 4\nlink = {rate=\"100Gbps\", delay=\"500ns\"}\n\
        [flow_control]\nscheme = \"uec-cbfc\"\n[[traffic]]\nkind = \"incast\"\nfan_in = 3\nsize = \"5MB\"\nto = \"H0\"\n";
    let outcome = run(&plan(text));
    assert!(outcome.drops.is_empty() && outcome.stop == Stop::AllDone);
    // 15 MB of payload at the link's rate, and no more than a percent on top.
    let last = outcome.flows.iter().filter_map(|flow| flow.completed).max().unwrap();
    let wire = serialisation(15_000_000 * 1_062 / 1_000, RATE);
    assert!((wire..wire + wire / 50).contains(&last), "{last} of {wire}");
}

/// Four VCs share the link of H0. The receiver of the first one has a link of 10 Gbit/s, or none at all.
fn four(keys: &str, stall: bool) -> [f64; 4] {
    let mut text = format!(
        "[topology]\nkind = \"custom\"\nhosts = [\"H0\", \"H1\", \"H2\", \"H3\", \"H4\"]\nswitches = [\"X\"]\n\
         links = [{{a=\"H0\", b=\"X\", rate=\"100Gbps\", delay=\"1us\"}},\n\
         {{a=\"X\", b=\"H1\", rate=\"10Gbps\", delay=\"10ns\"}},\n\
         {{a=\"X\", b=\"H2\", rate=\"100Gbps\", delay=\"10ns\"}},\n\
         {{a=\"X\", b=\"H3\", rate=\"100Gbps\", delay=\"10ns\"}},\n\
         {{a=\"X\", b=\"H4\", rate=\"100Gbps\", delay=\"10ns\"}}]\n\
         [flow_control]\nscheme = \"uec-cbfc\"\n{keys}\n\
         [transport]\nmtu = \"{PAYLOAD}B\"\nheader = \"64B\"\nack_every = 1000000000\nrto = \"1s\"\n[run]\nduration = \"2ms\"\n"
    );
    for i in 1..=4 {
        text += &format!("[[priority]]\nid = {i}\ntier = 0\n");
        text += &format!(
            "[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H{i}\"\nsize = \"10GB\"\npriority = {i}\n"
        );
    }
    if stall {
        text += "[[slow_receiver]]\nhost = \"H1\"\nstall_from = \"0us\"\nstall_until = \"1s\"\n";
    }
    let outcome = run(&plan(&text));
    assert!(outcome.drops.is_empty());
    let line = 2e9 / 81_920.0;
    [0, 1, 2, 3].map(|flow| packets(&outcome, flow) as f64 / line)
}

/// With limits of their own the other VCs keep their quarter. Under one limit the slow VC fills it, and the others get
/// what they have in reserve.
#[test]
fn a_slow_channel_couples_the_others_only_under_a_total_limit() {
    for (stall, own) in [(false, 0.1), (true, 0.0)] {
        let apart = four("", stall);
        assert!((apart[0] - own).abs() < 0.03, "{apart:?}");
        assert!(apart[1..].iter().all(|&share| share >= 0.25), "{apart:?}");
        let total = four("limit = \"total\"\n", stall);
        assert!(total[1..].iter().all(|&share| share < own + 0.02), "{total:?}");
        // A reserve of a round trip for each.
        let reserve = four("limit = \"total\"\nreserve = \"40kB\"\n", stall);
        assert!(reserve[1..].iter().all(|&share| share >= 0.25), "{reserve:?}");
        // A reserve of one packet: 1,024 B for each round trip of 2.17 us.
        let one = four("limit = \"total\"\nreserve = \"1024B\"\n", stall);
        let trip = 1_024.0 * 8.0 / 100e9 / 2.17e-6;
        assert!(one[1..].iter().all(|&share| (share - trip).abs() < 0.02 + own), "{one:?}");
        println!(
            "{stall}: per-vc {apart:.3?}, total {total:.3?}, reserve {reserve:.3?}, one packet {one:.3?}"
        );
    }
}

fn lossy(period: &str, duration: &str, size: &str) -> String {
    let keys = format!("buffer = \"40kB\"\ncc_period = \"{period}\"\n");
    link(1_000_000, "100Gbps", duration, &keys, "[[loss]]\nlink = \"H0-X\"\nrate = 0.02\n")
        .replace("rto = \"1s\"", "rto = \"100us\"")
        .replace("ack_every = 1000000000", "ack_every = 1")
        .replace("10GB", size)
}

/// Each lost packet takes its credits with it, until a CC_Update returns them. Without one in the run, the link
/// starves: 40 kB are 39 packets, and 2% are lost.
#[test]
fn a_lossy_link_starves_without_cc_updates() {
    let run = |period: &str| {
        let plan = plan(&lossy(period, "5ms", "1GB"));
        let outcome = run(&plan);
        let nic = plan.hops[plan.flows[0].path as usize];
        let stands = outcome.pauses.iter().any(|p| p.port == nic && p.until.is_none());
        (packets(&outcome, 0), stands, report(&outcome).returned)
    };
    let (often, _, returned) = run("20us");
    let (never, stands, none) = run("250ms");
    println!("every 20 us {often} packets, {returned} credits returned; never {never}");
    assert!(stands && none == 0 && never < 5_000, "{never}");
    assert!(often > 4 * never && returned > 1_000, "{often} {never} {returned}");
}

/// In the end the credits of all lost packets have been returned, and no others.
#[test]
fn credits_of_lost_packets_return_exactly() {
    for (size, faults) in
        [("3MB", "rate = 0.02"), ("3MB", "rate = 0.05\nkind = \"corruption\""), ("20MB", "ber = 1e-6")]
    {
        // Frames of data alone: those of control count in the first lane, which another flow has.
        let other =
            "[[traffic]]\nkind = \"flow\"\nsrc = \"H1\"\ndst = \"H0\"\nsize = \"100B\"\npriority = 6\n";
        let text =
            lossy("5us", "40ms", size).replace("rate = 0.02", &format!("from = \"H0\"\n{faults}")) + other;
        let plan = plan(&text);
        let lane = plan.flows[0].lane;
        assert_ne!(lane, 0);
        let outcome = run(&plan);
        assert!(outcome.flows[0].completed.is_some(), "{faults}");
        let lost: u64 = outcome.drops.iter().filter(|drop| drop.lane == lane).map(|drop| drop.packets).sum();
        let returned = report(&outcome).returned;
        println!("{faults}: {lost} packets lost, {returned} credits returned");
        // The flow's last packet has fewer, and it and ACKs of the other flow may be lost, too.
        assert!(
            lost > 50 && returned.abs_diff(lost * CREDITS) <= CREDITS,
            "{faults}: {returned}, {lost} packets"
        );
    }
}

#[test]
fn losses_and_failures_lose_no_credit() {
    for limit in ["per-vc", "total"] {
        for (faults, response) in [
            ("[[loss]]\nlink = \"S0.0-S0.1\"\nrate = 0.05\n", 0),
            ("[[loss]]\nlink = \"S0.0-S0.1\"\nrate = 0.05\n", 700),
            ("[[loss]]\nlink = \"S0.0-S0.1\"\nrate = 0.02\nkind = \"corruption\"\n", 0),
            ("[[failure]]\nlink = \"S0.0-S0.1\"\nat = \"30us\"\nuntil = \"90us\"\n", 0),
            ("[[failure]]\nlink = \"S0.0-S0.1\"\nat = \"30us\"\nuntil = \"30.2us\"\n", 700),
        ] {
            let text = format!(
                "[topology]\nkind = \"line\"\nswitches = 2\nhosts_per_switch = 2\nlink = {{rate=\"100Gbps\", delay=\"1us\"}}\n\
                 [flow_control]\nscheme = \"uec-cbfc\"\nlimit = \"{limit}\"\nbuffer = \"20kB\"\ncc_period = \"5us\"\nresponse_time = \"{response}ns\"\n\
                 [transport]\nrto = \"100us\"\n{faults}\
                 [[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n\
                 [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H3\"\nsize = \"4MB\"\nstart = \"50us\"\npriority = 5\n"
            );
            let outcome = run(&plan(&text));
            assert!(outcome.drops.iter().any(|d| d.bytes > 0) || faults.contains("30.2"), "{faults}");
            assert_eq!(outcome.stop, Stop::AllDone, "{limit} {faults}");
        }
    }
}

/// With LLR below, frames are repaired by the link: no credit is lost, and nothing has to be returned.
#[test]
fn over_links_that_retransmit_nothing_is_returned() {
    let text = lossy("5us", "40ms", "20MB") + "[link_layer]\nscheme = \"llr\"\n";
    let outcome = run(&plan(&text));
    assert!(outcome.drops.is_empty() && outcome.flows[0].completed.is_some());
    assert_eq!((report(&outcome).returned, outcome.flows[0].retransmitted), (0, 0));
}

/// `n` switches in a ring with a host each; host i sends over `reach` links clockwise, in one of `priorities`.
fn ring(n: usize, reach: usize, priorities: &[u8], more: &str) -> String {
    let mut text = format!(
        "[topology]\nkind = \"ring\"\nswitches = {n}\nhosts_per_switch = 1\nlink = {{rate=\"100Gbps\", delay=\"1us\"}}\n\
         [flow_control]\nscheme = \"uec-cbfc\"\n{more}"
    );
    for i in 0..n {
        let path: Vec<String> = (0..=reach).map(|j| format!("\"S0.{}\"", (i + j) % n)).collect();
        let dst = (i + reach) % n;
        text += &format!(
            "[[traffic]]\nkind = \"flow\"\nsrc = \"H{i}\"\ndst = \"H{dst}\"\nsize = \"2MB\"\npath = [\"H{i}\", {}, \"H{dst}\"]\npriority = {}\n",
            path.join(", "),
            priorities[i % priorities.len()]
        );
    }
    // They share each port in turns.
    for priority in priorities.iter().collect::<BTreeSet<_>>() {
        text += &format!("[[priority]]\nid = {priority}\ntier = 0\n");
    }
    text
}

/// The deadlock of a ring is reported, with its cycle of ports.
/// When the last queue of a deadlock stopped.
fn last_stop(outcome: &Outcome) -> Option<u64> {
    let cycle = &outcome.deadlock.as_ref()?.cycle;
    let last = |held: &Held| outcome.pauses.iter().rfind(|p| p.port == held.port && p.lane == held.lane);
    cycle.iter().filter_map(last).map(|pause| pause.from).max()
}

fn assert_deadlock(plan: &Plan, outcome: &Outcome, length: usize) {
    assert_eq!(outcome.stop, Stop::Starved);
    let deadlock = outcome.deadlock.as_ref().expect("flows around a ring");
    assert_eq!(deadlock.cycle.len(), length);
    for (i, held) in deadlock.cycle.iter().enumerate() {
        let next = &deadlock.cycle[(i + 1) % length];
        assert_eq!(plan.topology.neighbour(held.port), plan.topology.ports[next.port as usize].node);
        let last = outcome.pauses.iter().rfind(|p| p.port == held.port && p.lane == held.lane);
        assert_eq!(last.expect("stopped").until, None);
    }
    assert_eq!(
        Some(deadlock.closed),
        last_stop(outcome),
        "it forms when the last of them runs out of credit"
    );
}

#[test]
fn a_ring_without_credit_is_a_deadlock_and_is_named() {
    let locked = plan(&ring(3, 2, &[3], "buffer = \"20kB\"\n"));
    assert_deadlock(&locked, &run(&locked), 3);
    let outcome = run(&plan(&ring(3, 1, &[3], "buffer = \"20kB\"\n")));
    assert_eq!((outcome.deadlock, outcome.stop), (None, Stop::AllDone));
}

/// Around the ring, neighbouring flows have different VCs: no VC has a cycle alone. Where they share credit, they wait
/// for each other, and deadlock; a reserve of a packet for each prevents it.
#[test]
fn channels_deadlock_where_they_share_credit() {
    let priorities = [1, 2, 1];
    let outcome = run(&plan(&ring(3, 2, &priorities, "buffer = \"10kB\"\n")));
    assert_eq!((outcome.deadlock, outcome.stop), (None, Stop::AllDone));
    let locked = plan(&ring(3, 2, &priorities, "buffer = \"10kB\"\nlimit = \"total\"\n"));
    let outcome = run(&locked);
    assert_deadlock(&locked, &outcome, 3);
    let lanes: Vec<u8> = outcome.deadlock.unwrap().cycle.iter().map(|held| held.lane).collect();
    assert!(lanes.iter().any(|&lane| lane != lanes[0]), "of both VCs: {lanes:?}");
    let outcome =
        run(&plan(&ring(3, 2, &priorities, "buffer = \"10kB\"\nlimit = \"total\"\nreserve = \"1100B\"\n")));
    assert_eq!((outcome.deadlock, outcome.stop), (None, Stop::AllDone));
}

/// The content of a random scenario.
#[derive(Clone, Debug)]
struct Case {
    fabric: usize,
    seed: u64,
    load: u32,
    buffer: Option<u64>,
    credit: u32,
    overhead: i32,
    spacing: [u64; 2],
    period: u64,
    reserve: Option<u64>,
    response: u64,
    mtu: u64,
    flags: [bool; 6],
    failure: bool,
}

fn case() -> impl Strategy<Value = Case> {
    let keys = (
        prop::option::of(1u64..200),
        0u32..7,
        -16i32..128,
        (768u64..131_073, 16_384u64..1_048_577),
        1u64..300,
        prop::option::of(0u64..30),
        prop_oneof![Just(0u64), 1u64..2_000],
        200u64..4_000,
    );
    let rest = (any::<[bool; 6]>(), prop::bool::weighted(0.3));
    (0usize..4, 0u64..10_000, 2u32..10, keys, rest).prop_map(
        |(fabric, seed, load, keys, (flags, failure))| {
            let (least, most) = keys.3;
            Case {
                fabric,
                seed,
                load,
                buffer: keys.0,
                credit: 32 << keys.1,
                overhead: keys.2,
                spacing: [least, most.max(least)],
                period: keys.4,
                reserve: keys.5,
                response: keys.6,
                mtu: keys.7,
                flags,
                failure,
            }
        },
    )
}

impl Case {
    fn toml(&self) -> String {
        let [two, lossy, slow, loss, blocking, total] = self.flags;
        let (fabric, link) = [
            (
                "kind = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 3\nhost_link = {rate=\"100Gbps\", delay=\"1us\"}\nfabric_link = {rate=\"400Gbps\", delay=\"600ns\"}",
                "S0.0-S1.1",
            ),
            ("kind = \"ndc\"\nn = 3\nk = 1\nlink = {rate=\"100Gbps\", delay=\"1us\"}", "H0-S0.0"),
            (
                "kind = \"ring\"\nswitches = 5\nhosts_per_switch = 2\nlink = {rate=\"40Gbps\", delay=\"1us\"}\nfabric_link = {rate=\"100Gbps\", delay=\"300ns\"}",
                "S0.0-S0.1",
            ),
            (
                "kind = \"line\"\nswitches = 3\nhosts_per_switch = 3\nlink = {rate=\"100Gbps\", delay=\"1us\"}\nfabric_link = {rate=\"25Gbps\", delay=\"4us\"}",
                "S0.0-S0.1",
            ),
        ][self.fabric];
        let mut text = format!(
            "[topology]\n{fabric}\n[flow_control]\nscheme = \"uec-cbfc\"\ncredit_size = \"{}B\"\npacket_overhead = {}\n\
             cf_min_spacing = \"{}B\"\ncf_max_spacing = \"{}B\"\ncc_period = \"{}us\"\nresponse_time = \"{}ns\"\n",
            self.credit, self.overhead, self.spacing[0], self.spacing[1], self.period, self.response
        );
        // A largest packet with its overhead, in whole credits.
        let largest = credits(self.mtu as u32 + 100, 127, self.credit) * u64::from(self.credit);
        if total {
            text += "limit = \"total\"\n";
            if let Some(reserve) = self.reserve {
                text += &format!("reserve = \"{}B\"\n", if reserve > 15 { largest } else { 0 });
            }
        }
        if let Some(buffer) = self.buffer {
            text += &format!("buffer = \"{}B\"\n", (buffer * 1_000).max(3 * largest));
        }
        text += &format!(
            "[transport]\nmtu = \"{}B\"\nrto = \"200us\"\n[run]\nduration = \"200us\"\ndrain = \"100us\"\nseed = {}\n\
             [measure]\nblocking = {blocking}\n\
             [[traffic]]\nkind = \"poisson\"\nsizes = \"fb-hadoop\"\nload = 0.{}\n\
             [[traffic]]\nkind = \"incast\"\nfan_in = 5\nsize = \"60kB\"\nperiod = \"50us\"\npriority = {}\n",
            self.mtu,
            self.seed,
            self.load,
            if two { 5 } else { 3 },
        );
        if two && lossy {
            text += "[[priority]]\nid = 5\nlossless = false\n";
        }
        if slow {
            text += "[[slow_receiver]]\nhost = \"H1\"\nrate = \"20Gbps\"\n[[slow_receiver]]\nhost = \"H2\"\nstall_from = \"10us\"\nstall_until = \"70us\"\n";
        }
        if loss {
            text += &format!("[[loss]]\nlink = \"{link}\"\nrate = 0.01\n");
        }
        if self.failure {
            text += &format!("[[failure]]\nlink = \"{link}\"\nat = \"40us\"\nuntil = \"81us\"\n");
        }
        text
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 120 / 256))]
    /// For any fabric, load and faults: every lossless packet finds room (`run` asserts it), no buffer exceeds its
    /// credits (the scheme and the peaks show it), and two threads have the same result as one.
    #[test]
    fn nothing_is_lost_and_no_buffer_overflows(case in case()) {
        let text = case.toml();
        let plan = plan(&text);
        let FlowControlParams::UecCbfc(params) = &plan.flow_control else { panic!() };
        let outcome = run(&plan);
        for (at, peak) in outcome.accounts.iter().enumerate() {
            let (port, lane) = (at / plan.lanes.len(), at % plan.lanes.len());
            if plan.lanes[lane].lossless && port < params.limits.len() {
                let most = params.bytes(params.limits[port].of_one());
                prop_assert!(peak.main.max(peak.headroom) <= most, "{peak:?} of {most}\n{text}");
                let whole = u64::from(params.credit);
                prop_assert!(peak.main % whole == 0 && peak.headroom % whole == 0, "whole credits\n{text}");
            }
        }
        let two = xoff_sim::run_on(&plan, 2, &mut |_| true);
        prop_assert!(outcome == two, "threads differ\n{text}");
    }

    /// Without an end: everything completes and the oracle was silent, or it fired and then the run starves.
    #[test]
    fn the_oracle_reports_exactly_the_permanent_waits(
        n in 3usize..6, reach in 1usize..4, buffer in 6u64..100, spacing in 768u64..20_000, seed in 0u64..1_000,
        priorities in prop::collection::vec(1u8..4, 1..5), total in any::<bool>(), reserve in prop_oneof![Just(0u64), 1u64..1_500],
    ) {
        let limit = match total {
            true => format!("limit = \"total\"\nreserve = \"{reserve}B\"\n"),
            false => String::new(),
        };
        let keys = format!("buffer = \"{buffer}kB\"\ncf_min_spacing = \"{spacing}B\"\n{limit}");
        let text = ring(n, reach.min(n - 1), &priorities, &keys)
            + &format!("[[traffic]]\nkind = \"incast\"\nfan_in = 2\nsize = \"100kB\"\nto = \"random\"\n[run]\nseed = {seed}\n");
        let outcome = run(&plan(&text));
        match &outcome.deadlock {
            None => prop_assert_eq!(outcome.stop, Stop::AllDone, "{}", text),
            Some(_) => prop_assert_eq!(outcome.stop, Stop::Starved, "{}", text),
        }
    }
}

/// Limits beyond 15 bits: 40 km at 400 Gbit/s need 20 MB of credits of 128 B, and run at line rate.
#[test]
fn limits_beyond_fifteen_bits_run_at_line_rate() {
    let text = link(200_000_000, "400Gbps", "2ms", "", "").replace("rate=\"100Gbps\"", "rate=\"400Gbps\"");
    let plan = plan_with(&text, &[("transport.mtu", "4032B")]);
    let FlowControlParams::UecCbfc(params) = &plan.flow_control else { panic!() };
    let most = params.limits.iter().map(|limits| limits.of_one()).max().unwrap();
    assert!(most > 1 << 15 && most <= MOST, "{most}");
    let outcome = run(&plan);
    assert!(!waited(&plan, &outcome));
    let line = (2e9 - 200e6) / (4_096.0 * 8.0 / 0.4);
    let share = (outcome.flows[0].delivered_bytes / 4_032) as f64 / line;
    assert!(share > 0.99, "{share}");
}
