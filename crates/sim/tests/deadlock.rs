//! The deadlock oracle: it reports if, and only if, a cycle is paused permanently.

use crate::common;

use common::{plan, plan_with, run};
use proptest::prelude::*;
use xoff_sim::outcome::Stop;

/// `n` switches in a ring with a host each; host i sends over `reach` links
/// clockwise.
fn ring(n: usize, reach: usize, size: &str, control: &str) -> String {
    let mut text = format!(
        "[topology]\nkind = \"ring\"\nswitches = {n}\nhosts_per_switch = 1\nlink = {{rate=\"100Gbps\", delay=\"1us\"}}\n{control}"
    );
    for i in 0..n {
        let path: Vec<String> = (0..=reach).map(|j| format!("\"S0.{}\"", (i + j) % n)).collect();
        let dst = (i + reach) % n;
        text += &format!(
            "[[traffic]]\nkind = \"flow\"\nsrc = \"H{i}\"\ndst = \"H{dst}\"\nsize = \"{size}\"\n\
             path = [\"H{i}\", {}, \"H{dst}\"]\n",
            path.join(", ")
        );
    }
    text
}

const TIGHT: &str = "[flow_control]\nscheme = \"pfc\"\nxoff = \"20kB\"\nxon = \"10kB\"\n";

#[test]
fn a_ring_of_three_deadlocks_and_the_cycle_is_named() {
    let plan = plan(&ring(3, 2, "10MB", TIGHT));
    let outcome = run(&plan);
    assert_eq!(outcome.stop, Stop::Starved);
    let deadlock = outcome.deadlock.expect("three flows around a ring of three");
    assert_eq!(deadlock.ended, None);
    let cycle: Vec<String> = deadlock.cycle.iter().map(|h| plan.topology.port_name(h.port)).collect();
    assert_eq!(cycle.len(), 3, "{cycle:?}");
    // Each port's neighbour owns the next one.
    for (i, held) in deadlock.cycle.iter().enumerate() {
        let next = &deadlock.cycle[(i + 1) % 3];
        assert_eq!(plan.topology.neighbour(held.port), plan.topology.ports[next.port as usize].node);
        assert!(!held.flows.is_empty() && held.bytes > 0);
    }
    // No cycle was paused before it closed, and all of it is paused since.
    for held in &deadlock.cycle {
        let last = outcome.pauses.iter().rfind(|p| p.port == held.port).expect("paused");
        assert_eq!(last.until, None);
        assert!(deadlock.seen >= last.from && deadlock.closed < last.from);
    }
    assert!(!outcome.waiting.is_empty());
    assert!(outcome.waiting.iter().all(|w| w.root.is_none()));
}

/// It can only be ended from outside.
#[test]
fn a_failed_link_ends_it_and_that_is_reported() {
    let failing = "[[failure]]\nlink = \"S0.1-S0.2\"\nat = \"1ms\"\nuntil = \"2ms\"\n";
    let plan = plan(&(ring(3, 2, "10MB", TIGHT) + failing + "[run]\nduration = \"3ms\"\n"));
    let deadlock = run(&plan).deadlock.expect("as above");
    assert!(deadlock.closed < 100_000_000);
    assert_eq!(deadlock.ended, Some(1_000_000_000));
}

#[test]
fn without_flow_control_or_with_a_lighter_load_it_does_not() {
    let text = ring(3, 2, "10MB", TIGHT);
    let outcome = run(&plan_with(&text, &[("flow_control.scheme", "none")]));
    assert!(outcome.deadlock.is_none());
    assert_eq!(outcome.stop, Stop::AllDone);
    // One link each: no dependency at all.
    let outcome = run(&plan(&ring(3, 1, "10MB", TIGHT)));
    assert_eq!((outcome.deadlock, outcome.stop), (None, Stop::AllDone));
}

/// A host that stops reading pauses the whole ring back to the senders in a cycle of pauses; when it reads
/// again, all of it drains.
#[test]
fn a_stalled_host_is_named_and_is_no_deadlock() {
    let stall = |until: &str| {
        ring(4, 1, "3MB", TIGHT)
            + &format!("[[slow_receiver]]\nhost = \"H2\"\nstall_from = \"10us\"\n{until}")
            + "[host]\nbuffer = \"1MB\"\n"
    };
    let plan_of_stall = plan(&(stall("stall_until = \"1s\"\n") + "[run]\nduration = \"20ms\"\n"));
    let outcome = run(&plan_of_stall);
    assert!(outcome.deadlock.is_none());
    assert!(!outcome.waiting.is_empty(), "H1's flow waits for H2");
    for wait in &outcome.waiting {
        assert_eq!(wait.root.map(|h| plan_of_stall.topology.nodes[h as usize].name.as_str()), Some("H2"));
    }
    let outcome = run(&plan(&stall("stall_until = \"5ms\"\n")));
    assert_eq!((outcome.stop, outcome.deadlock), (Stop::AllDone, None));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 150 / 256))]
    /// Runs without an end: either every flow completes and the oracle was
    /// silent, or it fired, and then its ports are paused for ever and the run
    /// starves.
    #[test]
    fn it_reports_exactly_the_permanent_pauses(
        n in 3usize..6, reach in 1usize..4, kilobytes in 20u64..3_000, xoff in 5u64..100, gap in 1u64..60,
        seed in 0u64..1_000, incast in 1u32..4, dynamic in any::<bool>(),
    ) {
        let control = if dynamic {
            "[flow_control]\nscheme = \"pfc\"\nalpha = 0.03\n[switch]\nbuffer = \"1GB\"\n".to_owned()
        } else {
            format!("[flow_control]\nscheme = \"pfc\"\nxoff = \"{}kB\"\nxon = \"{}kB\"\n", xoff, xoff - xoff.min(gap) / 2)
        };
        let text = ring(n, reach.min(n - 1), &format!("{kilobytes}kB"), &control)
            + &format!("[[traffic]]\nkind = \"incast\"\nfan_in = {}\nsize = \"200kB\"\nto = \"random\"\n[run]\nseed = {seed}\n", incast.min(n as u32 - 1));
        let plan = plan(&text);
        let outcome = run(&plan);
        match &outcome.deadlock {
            None => prop_assert_eq!(outcome.stop, Stop::AllDone),
            Some(deadlock) => {
                prop_assert_eq!(outcome.stop, Stop::Starved);
                for held in &deadlock.cycle {
                    let last = outcome.pauses.iter().rfind(|p| p.port == held.port && p.lane == held.lane);
                    prop_assert!(last.is_some_and(|p| p.until.is_none() && p.from <= deadlock.seen));
                    for &flow in &held.flows {
                        prop_assert!(outcome.flows[flow as usize].completed.is_none());
                    }
                }
            }
        }
    }
}

#[test]
fn the_example_deadlocks_under_pfc_and_not_without() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/bcube-deadlock.toml"))
            .expect("the example exists");
    let with_pfc = plan(&text);
    let outcome = run(&with_pfc);
    let deadlock = outcome.deadlock.expect("it deadlocks");
    assert!(deadlock.cycle.len() >= 4);
    assert!(outcome.pauses.iter().any(|p| p.until.is_none()));
    let goodput: Vec<u64> = outcome
        .series
        .iter()
        .filter(|s| {
            matches!(s.what, xoff_sim::outcome::Quantity::Goodput(_))
                && s.at > with_pfc.end.unwrap_or(0) * 9 / 10
        })
        .map(|s| s.value)
        .collect();
    println!(
        "closed at {} us, {} ports, goodput at the end {goodput:?}",
        deadlock.closed / 1_000_000,
        deadlock.cycle.len()
    );
    let without = plan_with(&text, &[("flow_control.scheme", "none")]);
    assert!(run(&without).deadlock.is_none());
}

/// The last look misses nothing: a run that ends soon after the cycle closed.
#[test]
fn a_deadlock_at_the_end_of_a_short_run_is_seen() {
    let plan = plan(&(ring(3, 2, "10MB", TIGHT) + "[run]\nduration = \"60us\"\n"));
    let outcome = run(&plan);
    let deadlock = outcome.deadlock.expect("it closed before the end");
    assert!(deadlock.closed < 20_000_000 && deadlock.seen == 60_000_000, "{deadlock:?}");
    assert!(!outcome.waiting.is_empty());
}

/// Slow is not stuck: a packet that takes 85 ms to send, or is paced as slowly,
/// or travels for 100 ms, or a host that reads again after seconds.
#[test]
fn slow_runs_are_not_given_up() {
    let line = |rate: &str, delay: &str, rest: &str| {
        format!(
            "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 2\nlink = {{rate=\"{rate}\", delay=\"{delay}\"}}\n\
             [switch]\nbuffer = \"1GB\"\n[transport]\nrto = \"1s\"\n{rest}[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"3kB\"\n"
        )
    };
    let stall = "[[slow_receiver]]\nhost = \"H1\"\nstall_from = \"0s\"\nstall_until = \"2s\"\n";
    // Only timers are pending at times, but the host will read again.
    let short_timeouts =
        line("100Gbps", "1us", stall).replace("rto = \"1s\"", "rto = \"1ms\"").replace("3kB", "3MB")
            + "[flow_control]\nscheme = \"pfc\"\nxoff = \"50kB\"\nxon = \"20kB\"\n";
    for text in [
        short_timeouts,
        line("100kbps", "1us", ""),
        line("1Gbps", "100ms", "[host]\nbuffer = \"1GB\"\n"),
        line("100Gbps", "1us", stall),
        line("100Gbps", "1us", "") + "rate = \"100kbps\"\n",
    ] {
        let outcome = run(&plan(&text));
        assert_eq!(outcome.stop, Stop::AllDone, "{text}");
    }
}

/// With an end, the run lasts until then, even if timers are left.
#[test]
fn a_run_with_an_end_lasts_until_then() {
    let text = "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 2\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"3kB\"\n[run]\nduration = \"10ms\"\n";
    let outcome = run(&plan(text));
    assert_eq!((outcome.stop, outcome.end), (Stop::AllDone, 10_000_000_000));
    assert_eq!(outcome.series.last().map(|s| s.at), Some(outcome.end));
}
