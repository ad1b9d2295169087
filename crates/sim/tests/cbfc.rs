//! Credit-based flow control in packet runs: never a drop, throughput by the closed
//! form, the distance that 12 bits reach, and what the oracles see.

use crate::common;

use common::{plan, plan_with, ran, run};
use proptest::prelude::*;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::cbfc::{Form, full_throughput};
use xoff_schemes::flow_control::{FlowControlParams, LinkFacts};
use xoff_sim::outcome::{Outcome, Stop};

/// Packets of 1,024 B, 16 blocks; one takes 81.92 ns at 100 Gbit/s.
const PACKET: u64 = 1_024;
const PAYLOAD: u64 = 960;

/// H0 sends to H1 over X continuously; the link of H0 has a delay of `delay_ps`. No data comes back without
/// `more`.
fn link(delay_ps: u64, duration: &str, keys: &str, more: &str) -> String {
    format!(
        "[topology]\nkind = \"custom\"\nhosts = [\"H0\", \"H1\"]\nswitches = [\"X\"]\n\
         links = [{{a=\"H0\", b=\"X\", rate=\"100Gbps\", delay=\"{delay_ps}ps\"}},\n\
         {{a=\"X\", b=\"H1\", rate=\"100Gbps\", delay=\"10ns\"}}]\n\
         [flow_control]\nscheme = \"cbfc\"\n{keys}\n\
         [transport]\nmtu = \"{PAYLOAD}B\"\nheader = \"64B\"\nack_every = 1000000000\nrto = \"1s\"\n[run]\nduration = \"{duration}\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"10GB\"\n{more}"
    )
}

/// Data packets delivered.
fn packets(outcome: &Outcome) -> u64 {
    outcome.flows[0].delivered_bytes / PAYLOAD
}

/// Whether H0 has waited for credit.
fn waited(plan: &Plan, outcome: &Outcome) -> bool {
    let nic = plan.hops[plan.flows[0].path as usize];
    outcome.pauses.iter().any(|p| p.port == nic)
}

#[test]
fn the_least_buffer_for_full_throughput_is_the_closed_form() {
    // Of 20 km, with updates much shorter and longer than the round trip, and a response time.
    for (delay, update, response) in
        [(100_000_000, 5_000_000, 0), (2_000_000, 50_000_000, 0), (5_000_000, 3_000_000, 777_000)]
    {
        let facts = LinkFacts { rate: 100_000_000_000, delay, largest: PACKET as u32, retries: 0 };
        let formula = full_throughput(&facts, update, response, Form::Wide);
        for reverse in [false, true] {
            // Packets back find every flow-control packet's wire busy.
            let more = "[[traffic]]\nkind = \"flow\"\nsrc = \"H1\"\ndst = \"H0\"\nsize = \"10GB\"\n";
            let waits = |blocks: u64| {
                let keys = format!(
                    "unlimited = true\nupdate = \"{update}ps\"\nresponse_time = \"{response}ps\"\nbuffer = \"{}B\"\n",
                    blocks * 64
                );
                let plan = plan(&link(delay, "1ms", &keys, if reverse { more } else { "" }));
                waited(&plan, &run(&plan))
            };
            assert!(!waits(formula), "{formula} blocks are enough");
            let (mut bad, mut good) = (16, formula);
            assert!(waits(bad));
            while good - bad > 1 {
                let middle = (good + bad) / 2;
                if waits(middle) { bad = middle } else { good = middle }
            }
            println!(
                "delay {delay}, update {update}, reverse {reverse}: formula {formula}, least {good} blocks"
            );
            // It counts a packet on the flow-control packet's wire, the window's edges, and
            // the worst phase of packets and updates.
            let loose = if reverse { 4 } else { 5 };
            assert!(formula - good <= loose * 16, "loose by {} blocks", formula - good);
        }
    }
}

#[test]
fn with_less_the_throughput_falls_in_proportion() {
    // Updates much more frequent than round trips of 20 us: a buffer for each round trip.
    let delay = 10_000_000u64;
    for share in [20u64, 40, 60, 80] {
        let buffer = 250_000 * share / 100;
        let keys = format!("unlimited = true\nupdate = \"100ns\"\nbuffer = \"{buffer}B\"\n");
        let outcome = run(&plan(&link(delay, "4ms", &keys, "")));
        let per_trip = (buffer / PACKET) as f64;
        // A block is in use for the cable in both directions, its packet, at most an update's period, and 24
        // B.
        let (least, most) =
            (20_000_000.0 + 81_920.0 + 1_920.0, 20_000_000.0 + 81_920.0 + 1_920.0 + 100_000.0);
        let trips = 4e9 - delay as f64;
        let got = packets(&outcome) as f64;
        let (low, high) = (per_trip * (trips / most - 1.0), per_trip * (trips / least + 1.0));
        assert!((low..=high).contains(&got), "{share}%: {got} packets, not {low} to {high}");
    }
    // Updates much less frequent: a buffer for each update.
    for buffer in [50u64, 200, 1_000] {
        let keys = format!("unlimited = true\nupdate = \"100us\"\nbuffer = \"{}B\"\n", buffer * PACKET);
        let outcome = run(&plan(&link(1_000_000, "10ms", &keys, "")));
        let got = packets(&outcome);
        assert!((99 * buffer..=101 * buffer).contains(&got), "{buffer} packets each: {got}");
    }
}

/// A claim of the Bifrost paper (section III-A): 12 bits reach about 1 km at 100 Gbit/s.
#[test]
fn twelve_bits_reach_a_kilometre_at_100_gbps() {
    let keys = |more: &str| format!("update = \"200ns\"\nbuffer = \"10MB\"\n{more}");
    let runs = |delay: u64, more: &str| {
        let plan = plan(&link(delay, "1ms", &keys(more), ""));
        let outcome = run(&plan);
        (waited(&plan, &outcome), packets(&outcome))
    };
    let (mut full, mut short) = (1_000_000, 20_000_000);
    assert!(!runs(full, "").0 && runs(short, "").0);
    while short - full > 5_000 {
        let middle = (full + short) / 2;
        if runs(middle, "").0 { short = middle } else { full = middle }
    }
    // 5 ns per metre.
    let reach = full as f64 / 5_000.0;
    println!("12-bit credits keep {reach:.0} m of cable busy at 100 Gbit/s");
    // Less than the 1,048.6 m of 2,048 blocks, by the parts of a packet, an update and the edges.
    // (Flow-control packets in the other direction take a part of the wire, so data is slower.)
    let limit = 2_048.0 * 64.0 * 8.0 / 100.0 / 2.0 / 5.0;
    assert!((limit - 40.0..limit).contains(&reach), "{reach} m of {limit} m");
    // At four times the distance a quarter is left, and all of it without the limit.
    let (all, far) = ((1_000_000_000 - 21_000_000) / 81_920, runs(20_971_520, "").1);
    assert!((all / 4 - all / 50..all / 4 + all / 50).contains(&far), "{far} of {all}");
    let (waits, without) = runs(20_971_520, "unlimited = true\n");
    // But for the 24 B of each flow-control packet.
    assert!(!waits && without >= all - all / 100, "{without} of {all}");
}

#[test]
fn credit_that_never_ran_out_is_reported() {
    let said = |keys: &str| {
        let plan = plan(&link(1_000, "100us", keys, ""));
        let outcome = run(&plan);
        let note = plan.flow_control.idle(&ran(&plan, &outcome));
        (waited(&plan, &outcome), note.map(|note| note.text))
    };
    assert_eq!(said("update = \"300ns\"\nbuffer = \"1024B\"\n"), (true, None));
    let enough = "Credit never ran out: the fullest buffer, X:0, held 1.02 kB of 40 kB.".to_string();
    assert_eq!(said("update = \"300ns\"\nbuffer = \"40kB\"\n"), (false, Some(enough)));
}

#[test]
fn a_packet_may_take_all_of_the_smallest_buffer() {
    let outcome = run(&plan(&link(1_000, "100us", "update = \"300ns\"\nbuffer = \"1024B\"\n", "")));
    // One for each update.
    assert!((300..=334).contains(&packets(&outcome)), "{}", packets(&outcome));
}

/// `n` switches in a ring with a host each; host i sends over `reach` links clockwise.
fn ring(n: usize, reach: usize, more: &str) -> String {
    let mut text = format!(
        "[topology]\nkind = \"ring\"\nswitches = {n}\nhosts_per_switch = 1\nlink = {{rate=\"100Gbps\", delay=\"1us\"}}\n\
         [flow_control]\nscheme = \"cbfc\"\n{more}"
    );
    for i in 0..n {
        let path: Vec<String> = (0..=reach).map(|j| format!("\"S0.{}\"", (i + j) % n)).collect();
        let dst = (i + reach) % n;
        text += &format!(
            "[[traffic]]\nkind = \"flow\"\nsrc = \"H{i}\"\ndst = \"H{dst}\"\nsize = \"2MB\"\npath = [\"H{i}\", {}, \"H{dst}\"]\n",
            path.join(", ")
        );
    }
    text
}

#[test]
fn a_ring_without_credit_is_a_deadlock_and_is_named() {
    let locked = plan(&ring(3, 2, "buffer = \"20kB\"\nupdate = \"1us\"\n"));
    let outcome = run(&locked);
    assert_eq!(outcome.stop, Stop::Starved);
    let deadlock = outcome.deadlock.expect("three flows around a ring of three");
    assert_eq!(deadlock.cycle.len(), 3);
    for (i, held) in deadlock.cycle.iter().enumerate() {
        let next = &deadlock.cycle[(i + 1) % 3];
        assert_eq!(locked.topology.neighbour(held.port), locked.topology.ports[next.port as usize].node);
        let last = outcome.pauses.iter().rfind(|p| p.port == held.port).expect("stopped");
        assert_eq!(last.until, None);
        assert!(last.from <= deadlock.closed, "it forms when the last of them runs out of credit");
    }
    assert!(outcome.pauses.iter().any(|p| p.from == deadlock.closed && p.until.is_none()));
    // One link each: no dependency at all.
    let outcome = run(&plan(&ring(3, 1, "buffer = \"20kB\"\nupdate = \"1us\"\n")));
    assert_eq!((outcome.deadlock, outcome.stop), (None, Stop::AllDone));
}

/// A network whose hosts relay deadlocks under credit as it does under PFC.
#[test]
fn a_bcube_deadlocks() {
    let text = "[topology]\nkind = \"ndc\"\nn = 4\nk = 1\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n\
        [flow_control]\nscheme = \"cbfc\"\nbuffer = \"6bdp\"\nupdate = \"2us\"\n\
        [[traffic]]\nkind = \"poisson\"\nsizes = \"websearch\"\nload = 0.6\n\
        [[traffic]]\nkind = \"incast\"\nfan_in = 8\nsize = \"1MB\"\nto = \"random\"\nperiod = \"500us\"\n\
        [run]\nduration = \"10ms\"\nseed = 1\n";
    let locked = plan(text);
    let outcome = run(&locked);
    let deadlock = outcome.deadlock.expect("a circle of relays");
    assert!(deadlock.cycle.len() >= 4);
    for held in &deadlock.cycle {
        let last = outcome.pauses.iter().rfind(|p| p.port == held.port && p.lane == held.lane);
        assert!(last.is_some_and(|p| p.until.is_none() && p.from <= deadlock.seen));
    }
    let outcome = run(&plan_with(text, &[("flow_control.scheme", "none")]));
    assert!(outcome.deadlock.is_none());
}

/// Lost frames, of data and credit, lose no credit permanently: all data arrives, and a link that fails
/// begins anew.
#[test]
fn losses_and_failures_lose_no_credit() {
    for (faults, response) in [
        ("[[loss]]\nlink = \"S0.0-S0.1\"\nrate = 0.05\n", 0),
        ("[[loss]]\nlink = \"S0.0-S0.1\"\nrate = 0.05\n", 700),
        ("[[loss]]\nlink = \"S0.0-S0.1\"\nrate = 0.02\nkind = \"corruption\"\n", 0),
        ("[[failure]]\nlink = \"S0.0-S0.1\"\nat = \"30us\"\nuntil = \"90us\"\n", 0),
        ("[[failure]]\nlink = \"S0.0-S0.1\"\nat = \"30us\"\nuntil = \"90us\"\n", 700),
    ] {
        let text = format!(
            "[topology]\nkind = \"line\"\nswitches = 2\nhosts_per_switch = 2\nlink = {{rate=\"100Gbps\", delay=\"1us\"}}\n\
             [flow_control]\nscheme = \"cbfc\"\nbuffer = \"20kB\"\nupdate = \"1us\"\nresponse_time = \"{response}ns\"\n\
             [transport]\nrto = \"100us\"\n{faults}\
             [[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H3\"\nsize = \"4MB\"\nstart = \"50us\"\npriority = 5\n"
        );
        let outcome = run(&plan(&text));
        assert!(outcome.drops.iter().any(|d| d.bytes > 0), "{faults}");
        assert_eq!(outcome.stop, Stop::AllDone, "{faults}");
    }
}

/// The content of a random scenario.
#[derive(Clone, Debug)]
struct Case {
    fabric: usize,
    seed: u64,
    load: u32,
    buffer: Option<u64>,
    update: Option<u64>,
    unlimited: bool,
    response: u64,
    mtu: u64,
    two: bool,
    lossy: bool,
    slow: bool,
    loss: bool,
    failure: bool,
    blocking: bool,
}

fn case() -> impl Strategy<Value = Case> {
    let keys = (
        prop::option::of(1u64..200),
        prop::option::of(100u64..30_000),
        any::<bool>(),
        prop_oneof![Just(0u64), 1u64..2_000],
        200u64..4_000,
    );
    let rest = (any::<[bool; 6]>(), prop::bool::weighted(0.3));
    (0usize..4, 0u64..10_000, 2u32..10, keys, rest).prop_map(
        |(fabric, seed, load, keys, (flags, failure))| Case {
            fabric,
            seed,
            load,
            buffer: keys.0,
            update: keys.1,
            unlimited: keys.2,
            response: keys.3,
            mtu: keys.4,
            two: flags[0],
            lossy: flags[1],
            slow: flags[2],
            loss: flags[3],
            failure,
            blocking: flags[4],
        },
    )
}

impl Case {
    fn toml(&self) -> String {
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
            "[topology]\n{fabric}\n[flow_control]\nscheme = \"cbfc\"\nunlimited = {}\nresponse_time = \"{}ns\"\n",
            self.unlimited, self.response
        );
        if let Some(buffer) = self.buffer {
            // At least a largest packet.
            text += &format!("buffer = \"{}B\"\n", (buffer * 1_000).max(self.mtu + 200));
        }
        if let Some(update) = self.update {
            text += &format!("update = \"{update}ns\"\n");
        }
        text += &format!(
            "[transport]\nmtu = \"{}B\"\nrto = \"200us\"\n[run]\nduration = \"200us\"\ndrain = \"100us\"\nseed = {}\n\
             [measure]\nblocking = {}\n\
             [[traffic]]\nkind = \"poisson\"\nsizes = \"fb-hadoop\"\nload = 0.{}\n\
             [[traffic]]\nkind = \"incast\"\nfan_in = 5\nsize = \"60kB\"\nperiod = \"50us\"\npriority = {}\n",
            self.mtu,
            self.seed,
            self.blocking,
            self.load,
            if self.two { 5 } else { 3 },
        );
        if self.two && self.lossy {
            text += "[[priority]]\nid = 5\nlossless = false\n";
        }
        if self.slow {
            text += "[[slow_receiver]]\nhost = \"H1\"\nrate = \"20Gbps\"\n[[slow_receiver]]\nhost = \"H2\"\nstall_from = \"10us\"\nstall_until = \"70us\"\n";
        }
        if self.loss {
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
    /// For any fabric, load and faults: every lossless packet finds room (`run` asserts it), no buffer
    /// exceeds its blocks (the scheme and the peaks show it), and two threads have the same result as one.
    #[test]
    fn nothing_is_lost_and_no_buffer_overflows(case in case()) {
        let text = case.toml();
        let plan = plan(&text);
        let FlowControlParams::Cbfc(params) = &plan.flow_control else { panic!() };
        let outcome = run(&plan);
        for (at, peak) in outcome.accounts.iter().enumerate() {
            let (port, lane) = (at / plan.lanes.len(), at % plan.lanes.len());
            if plan.lanes[lane].lossless && port < params.buffer.len() {
                prop_assert!(peak.main.max(peak.headroom) <= params.bytes(port));
                prop_assert!(peak.main % 64 == 0 && peak.headroom % 64 == 0, "whole blocks");
            }
        }
        let two = xoff_sim::run_on(&plan, 2, &mut |_| true);
        prop_assert!(outcome == two, "threads differ\n{text}");
    }

    /// Without an end: everything completes and the oracle was silent, or it fired and then the
    /// run starves.
    #[test]
    fn the_oracle_reports_exactly_the_permanent_pauses(
        n in 3usize..6, reach in 1usize..4, buffer in 2u64..100, update in 200u64..400_000, seed in 0u64..1_000,
    ) {
        let text = ring(n, reach.min(n - 1), &format!("buffer = \"{buffer}kB\"\nupdate = \"{update}ns\"\n"))
            + &format!("[[traffic]]\nkind = \"incast\"\nfan_in = 2\nsize = \"100kB\"\nto = \"random\"\n[run]\nseed = {seed}\n");
        let outcome = run(&plan(&text));
        match &outcome.deadlock {
            None => prop_assert_eq!(outcome.stop, Stop::AllDone),
            Some(_) => prop_assert_eq!(outcome.stop, Stop::Starved),
        }
    }
}

/// Two hosts that wait for credit because a third one's port is full: each wait names that port, although the credit
/// that is on its way leaves room in the buffers.
#[test]
fn waits_for_credit_are_traced_to_the_full_port() {
    let plan = plan(
        "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 2\n\
         host_link = { rate = \"100Gbps\", delay = \"1us\" }\nfabric_link = { rate = \"200Gbps\", delay = \"1us\" }\n\
         [flow_control]\nscheme = \"cbfc\"\nupdate = \"2us\"\n[measure]\nblocking = true\n[run]\nduration = \"300us\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H2\"\nsize = \"10MB\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H1\"\ndst = \"H2\"\nsize = \"10MB\"\n",
    );
    let outcome = run(&plan);
    let full = plan.hops[plan.flows[0].path as usize + 3];
    assert_eq!(plan.topology.port_name(full), "S0.1:0");
    assert!(outcome.pauses.len() > 50, "{} waits", outcome.pauses.len());
    for pause in &outcome.pauses {
        assert_eq!(
            pause.root,
            Some(full),
            "from {} ps at {}",
            pause.from,
            plan.topology.port_name(pause.port)
        );
    }
}
