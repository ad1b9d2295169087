//! Links that retransmit lost frames: nothing is lost, goodput by closed form, the size of the replay buffer.

use crate::common;

use common::{plan, run};
use xoff_kernel::time::serialisation;
use xoff_plan::plan::Plan;
use xoff_schemes::link_layer::{Report, UNDELIVERED};
use xoff_sim::outcome::{DropReason, Outcome, Part};

fn report(outcome: &Outcome) -> Report {
    *outcome.records.get::<Report>().expect("a link layer reports")
}

/// Two hosts and a switch. `rest` has further tables.
fn line(delay: &str, rest: &str) -> String {
    format!(
        "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"B\"]\nswitches = [\"S\"]\nlinks = [\n\
         {{a=\"A\", b=\"S\", rate=\"100Gbps\", delay=\"{delay}\"}},\n{{a=\"S\", b=\"B\", rate=\"100Gbps\", delay=\"{delay}\"}}]\n{rest}"
    )
}

fn all_complete(plan: &Plan, outcome: &Outcome) {
    for (flow, result) in plan.flows.iter().zip(&outcome.flows) {
        assert!(result.completed.is_some(), "{flow:?}");
        assert_eq!(result.delivered_bytes, flow.size);
    }
}

/// A random fabric with bit errors on every link between switches.
fn fabric(seed: u64, flow_control: &str) -> Plan {
    let (leaves, hosts) = (2 + seed % 3, 2 + seed % 2);
    let ber = ["1e-6", "3e-7", "1e-7", "5e-6"][seed as usize % 4];
    let kind = ["loss", "corruption"][seed as usize % 2];
    let mtu = [1_000, 4_096, 256][seed as usize % 3];
    let mut text = format!(
        "[topology]\nkind = \"leaf-spine\"\nleaves = {leaves}\nspines = 2\nhosts_per_leaf = {hosts}\n\
         host_link = {{rate=\"100Gbps\", delay=\"{}ns\"}}\nfabric_link = {{rate=\"100Gbps\", delay=\"{}ns\"}}\n\
         [flow_control]\n{flow_control}\n\
         [link_layer]\nscheme = \"llr\"\nprocessing = \"{}ns\"\n[transport]\nmtu = \"{mtu}B\"\n\
         [run]\nseed = {seed}\n\
         [[traffic]]\nkind = \"incast\"\nfan_in = {}\nsize = \"200kB\"\n[[traffic]]\nkind = \"permutation\"\nsize = \"300kB\"\n",
        100 + 70 * seed,
        200 + 90 * seed,
        40 * (seed % 3),
        (leaves * hosts - 1).min(4),
    );
    for leaf in 0..leaves {
        for spine in 0..2 {
            text += &format!("[[loss]]\nlink = \"S0.{leaf}-S1.{spine}\"\nber = {ber}\nkind = \"{kind}\"\n");
        }
    }
    plan(&text)
}

/// Nothing is lost, each packet arrives once and in order, and no flow retransmits. Returns the frames that links
/// retransmitted.
fn nothing_is_lost(seed: u64, plan: &Plan, outcome: &Outcome) -> u64 {
    all_complete(plan, outcome);
    assert!(outcome.drops.is_empty(), "seed {seed}: {:?}", outcome.drops);
    for flow in &outcome.flows {
        assert_eq!((flow.retransmitted, flow.out_of_order, flow.spurious), (0, 0, 0), "seed {seed}");
    }
    let seen = report(outcome);
    assert!(seen.hit + seen.hit_words == 0 || seen.replayed > 0, "seed {seed}: {seen:?}");
    seen.replayed
}

/// PFC, and two and three threads give the same outcome.
#[test]
fn with_pfc_nothing_is_lost() {
    let mut replayed = 0;
    for seed in 1..=20 {
        let plan = fabric(seed, "scheme = \"pfc\"");
        let outcome = run(&plan);
        replayed += nothing_is_lost(seed, &plan, &outcome);
        for threads in [2, 3] {
            let other = xoff_sim::run_on(&plan, threads, &mut |_| true);
            assert!(other == outcome, "seed {seed}, {threads} threads");
        }
    }
    assert!(replayed > 500, "only {replayed} frames were retransmitted");
}

/// Flow controls whose memory is not PFC's headroom.
#[test]
fn with_other_flow_controls_nothing_is_lost() {
    for scheme in ["scheme = \"gfc\"", "scheme = \"gfc\"\nform = \"time\"", "scheme = \"dsh\"", "bifrost"] {
        let mut replayed = 0;
        for seed in 1..=20 {
            // Slots of a quarter of the shortest delay.
            let slot = (100 + 70 * seed).min(200 + 90 * seed) / 4;
            let bifrost = format!(
                "scheme = \"bifrost\"\nlinks = \"all\"\nslot = \"{slot}ns\"\nprocessing = \"{}ns\"",
                slot / 2
            );
            let plan = fabric(seed, if scheme == "bifrost" { &bifrost } else { scheme });
            replayed += nothing_is_lost(seed, &plan, &run(&plan));
        }
        assert!(replayed > 500, "{scheme}: only {replayed} frames were retransmitted");
    }
}

/// Without bit errors a link layer costs only its words: ACKs of 8 B in the other direction.
#[test]
fn without_errors_it_only_acknowledges() {
    let traffic = "[[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"B\"\nsize = \"1MB\"\n";
    let with = run(&plan(&line("1us", &format!("[link_layer]\nscheme = \"llr\"\n{traffic}"))));
    let without = run(&plan(&line("1us", traffic)));
    let seen = report(&with);
    assert_eq!((seen.replayed, seen.nacks, seen.timeouts, seen.duplicates, seen.stalls), (0, 0, 0, 0, 0));
    assert!(seen.acks > 0);
    // Each word takes 8 B of a wire that data and ACKs share.
    let (a, b) = (with.flows[0].completed.expect("done"), without.flows[0].completed.expect("done"));
    assert!((b..=b + seen.acks * 640).contains(&a), "{a} and {b}");
}

/// The size of `xoff size` suffices for full rate in both directions, and one frame less does not: the port then
/// waits for acknowledgements.
#[test]
fn the_replay_buffer_is_as_large_as_full_rate_needs() {
    let mut tight = 0;
    for delay in ["1030ns", "1100ns", "1210ns", "1330ns", "1400ns"] {
        let traffic = "[transport]\nmtu = \"4096B\"\nheader = \"64B\"\nack = \"4160B\"\nack_every = 1\n[measure]\nexplain = false\n\
            [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"B\"\nsize = \"2MB\"\n[[traffic]]\nkind = \"flow\"\nsrc = \"B\"\ndst = \"A\"\nsize = \"2MB\"\n\
            [flow_control]\nscheme = \"none\"\n";
        let text = |buffer: &str| {
            line(
                delay,
                &format!(
                    "[link_layer]\nscheme = \"llr\"\nack_spacing = \"400B\"\ntimer = \"60us\"\n{buffer}{traffic}"
                ),
            )
        };
        let whole = plan(&text(""));
        let bytes = whole.link_layer.as_ref().and_then(|p| p.ports[0]).expect("a link").bytes;
        assert_eq!(bytes % 4_160, 0, "whole frames");
        assert_eq!(report(&run(&whole)).stalls, 0, "{delay}: {bytes} B");
        let less = run(&plan(&text(&format!("buffer = \"{}B\"\n", bytes - 4_160))));
        tight += u32::from(report(&less).stalls > 0);
        let much_less = run(&plan(&text(&format!("buffer = \"{}B\"\n", bytes - 3 * 4_160))));
        assert!(report(&much_less).stalls > 0, "{delay}");
    }
    assert!(tight > 0, "for some delay each frame of the buffer is needed");
}

/// Goodput of a saturated link at a bit error rate, by theory: a hit frame costs a round trip. Each frame is hit
/// with p = 1 - (1 - BER)^bits. After a NACK the link sends everything since again, so a hit costs the frames of a
/// round trip, and 1/goodput = 1 + p·W/(1 - p), with W frames in a round trip.
#[test]
fn goodput_is_that_of_go_back_n() {
    for (ber, delay_ns) in [(1e-7, 1_000u64), (1e-6, 1_000), (1e-6, 300), (3e-6, 500)] {
        let text = line(
            "1ns",
            &format!(
                "[link_layer]\nscheme = \"llr\"\nack_spacing = \"400B\"\n[transport]\nmtu = \"1000B\"\nheader = \"48B\"\nrto = \"10ms\"\n\
                 [measure]\nexplain = false\n[[loss]]\nlink = \"S-B\"\nfrom = \"S\"\nber = {ber}\nkind = \"corruption\"\n\
                 [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"B\"\nsize = \"60MB\"\n"
            ),
        )
        .replace("b=\"B\", rate=\"100Gbps\", delay=\"1ns\"", &format!("b=\"B\", rate=\"100Gbps\", delay=\"{delay_ns}ns\""));
        let plan = plan(&text);
        let outcome = run(&plan);
        all_complete(&plan, &outcome);
        let seen = report(&outcome);
        assert_eq!(seen.duplicates, 0, "no timer expires early");
        let frame = serialisation(1_048, 100_000_000_000) as f64;
        let p = 1.0 - (1.0f64 - ber).powi(8 * 1_048);
        // From the beginning of the hit frame until the NACK has been read and the frame on the wire is done.
        let trip = 2.0 * delay_ns as f64 * 1e3 + 2.0 * frame + 640.0;
        let w = (trip / frame).ceil();
        let expected = 1.0 / (1.0 + p * w / (1.0 - p));
        let took = outcome.flows[0].delivered.expect("done") as f64;
        let goodput = 60_000.0 * frame / took;
        assert!(
            (goodput / expected - 1.0).abs() < 0.02,
            "BER {ber}, {delay_ns} ns: {goodput} and {expected}"
        );
    }
}

/// A link that destroys everything for its replay limit gives its frames up; they are counted as dropped by the
/// link layer, and the transport sends them again.
#[test]
fn a_link_gives_up_after_its_limit() {
    let text = line(
        "500ns",
        "[link_layer]\nscheme = \"llr\"\nreplays = 0\n[[loss]]\nlink = \"S-B\"\nfrom = \"S\"\nrate = 0.5\n[run]\nseed = 3\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"B\"\nsize = \"100kB\"\n",
    );
    let plan = plan(&text);
    let outcome = run(&plan);
    all_complete(&plan, &outcome);
    let seen = report(&outcome);
    assert!(seen.flushes > 0 && seen.given_up > 0, "{seen:?}");
    assert!(
        outcome.drops.iter().all(|d| d.reason == DropReason::Scheme(&UNDELIVERED)),
        "{:?}",
        outcome.drops
    );
    let dropped: u64 = outcome.drops.iter().map(|d| d.packets).sum();
    assert_eq!(dropped, seen.given_up);
    assert!(outcome.flows[0].retransmitted > 0);
}

/// The parts of each flow's time add up, to the picosecond, wherever a run ends: also while links send packets again.
#[test]
fn paths_name_the_time_of_retries() {
    let mut unfinished = 0;
    for microseconds in [15, 20, 25, 30, 40, 1_000] {
        let text = line(
            "1us",
            &format!(
                "[link_layer]\nscheme = \"llr\"\n[measure]\nexplain = true\n[[loss]]\nlink = \"S-B\"\nber = 5e-6\n\
                 [run]\nduration = \"{microseconds}us\"\n\
                 [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"B\"\nsize = \"200kB\"\n\
                 [[traffic]]\nkind = \"flow\"\nsrc = \"B\"\ndst = \"A\"\nsize = \"100kB\"\n"
            ),
        );
        let plan = plan(&text);
        let outcome = run(&plan);
        let shares = outcome.paths.as_ref().expect("explained");
        for (flow, seen) in (0..).zip(&outcome.flows) {
            let until = seen.completed.unwrap_or(outcome.end);
            unfinished += u32::from(seen.completed.is_none());
            let sum: u64 = shares.iter().filter(|s| s.flow == flow).map(|s| s.time).sum();
            assert_eq!(sum, until - seen.started.expect("started"), "flow {flow}, {microseconds} us");
        }
        if microseconds == 1_000 {
            all_complete(&plan, &outcome);
            let late = shares.iter().filter(|s| s.part == Part::Recovery).count();
            assert!(late > 0, "retries take time: {shares:?}");
        }
    }
    assert!(unfinished > 0);
}
