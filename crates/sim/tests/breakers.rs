//! Loop Breaker and Deadlock Breaker: control planes find every deadlock that lasts, in bounded time, and end
//! it where there are other paths, or room.

use crate::common;

use common::{plan, plan_with, run};
use proptest::prelude::*;
use std::fmt::Write;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::FlowControlParams;
use xoff_schemes::flow_control::breakers::BreakerParams;
use xoff_schemes::flow_control::breakers::Report;
use xoff_sim::outcome::{Held, Outcome, Stop};

const US: u64 = 1_000_000;

/// `n` switches in a ring with a host each; flows over `reach` links clockwise.
#[derive(Clone, Debug)]
struct Ring {
    switches: usize,
    reach: usize,
    /// When each host begins, in nanoseconds.
    starts: Vec<u64>,
    xoff: u64,
    seed: u64,
    /// Of control planes, in microseconds.
    period: u64,
    latency: u64,
}

fn rings() -> impl Strategy<Value = Ring> {
    (3usize..9).prop_flat_map(|n| {
        let starts = prop::collection::vec(prop_oneof![Just(0u64), 0u64..20_000], n);
        (2..n, starts, 10u64..60, 0u64..10_000, 20u64..300, 0u64..40).prop_map(
            move |(reach, starts, xoff, seed, period, latency)| Ring {
                switches: n,
                reach,
                starts,
                xoff,
                seed,
                period,
                latency,
            },
        )
    })
}

impl Ring {
    fn text(&self, scheme: &str, keys: &str) -> String {
        let Ring { switches: n, xoff, seed, period, latency, .. } = *self;
        let mut text = format!(
            "[topology]\nkind=\"ring\"\nswitches={n}\nhosts_per_switch=1\nlink={{rate=\"100Gbps\",delay=\"1us\"}}\n\
             [run]\nseed={seed}\n[transport]\nrto=\"100ms\"\n[flow_control]\nscheme=\"{scheme}\"\nperiod=\"{period}us\"\n\
             latency=\"{latency}us\"\nxoff=\"{xoff}kB\"\nxon=\"{}kB\"\n{keys}\n",
            xoff / 2
        );
        for (i, start) in self.starts.iter().enumerate() {
            let path: Vec<String> = (0..=self.reach).map(|j| format!("\"S0.{}\"", (i + j) % n)).collect();
            let dst = (i + self.reach) % n;
            write!(
                text,
                "[[traffic]]\nkind=\"flow\"\nsrc=\"H{i}\"\ndst=\"H{dst}\"\nsize=\"2MB\"\nstart=\"{start}ns\"\n\
                 path=[\"H{i}\",{},\"H{dst}\"]\n",
                path.join(",")
            )
            .unwrap();
        }
        text
    }
}

fn params(plan: &Plan) -> &BreakerParams {
    match &plan.flow_control {
        FlowControlParams::Breaker(params) => params,
        _ => panic!("another scheme"),
    }
}

/// The last pause of the deadlock's cycle.
fn closed(outcome: &Outcome) -> u64 {
    let deadlock = outcome.deadlock.as_ref().expect("a deadlock");
    let pauses = |h: &Held| outcome.pauses.iter().rfind(|p| (p.port, p.lane) == (h.port, h.lane));
    deadlock.cycle.iter().filter_map(pauses).map(|p| p.from).max().expect("a cycle")
}

/// The longest time of a message for one link: it waits after a packet and a pause frame, crosses, and spends
/// its time in the control plane. (1,062 + 64 + 158 bytes are the maximum.)
fn hop(params: &BreakerParams) -> u64 {
    US + (1_062 + 64 + 158) * 80 + params.latency
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 60 / 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Deadlock Breaker without room to give, so a deadlock remains. Of the queues of the cycle the one with
    /// the smallest number leads. A poll within a period from the last pause sees it, the next one suspects
    /// it, and its first probe, smaller than all others, circulates: two periods and a turn. This holds for
    /// any number of suspecting queues. Without a deadlock none is found (all polls see queues that resume
    /// within a period), or the found queue continued.
    #[test]
    fn every_deadlock_is_found_within_two_periods_and_a_turn(ring in rings()) {
        let plan = plan(&ring.text("deadlock-breaker", "room=\"800MB\""));
        let outcome = run(&plan);
        prop_assert!(outcome.drops.is_empty());
        let Some(deadlock) = &outcome.deadlock else {
            // A deadlock that is found then was none, and resolved itself.
            prop_assert!(outcome.records.get::<Report>().unwrap().found.iter().all(|f| f.until.is_some()));
            prop_assert_eq!(outcome.stop, Stop::AllDone);
            return Ok(());
        };
        let members = deadlock.cycle.len() as u64;
        let bound = 2 * params(&plan).period + members * hop(params(&plan));
        let master = deadlock.cycle.iter().map(|h| h.port).min().unwrap();
        let found = outcome.records.get::<Report>().unwrap().found.iter().find(|f| f.port == master && f.until.is_none());
        let found = found.unwrap_or_else(|| panic!("{:?}", outcome.records.get::<Report>().unwrap().found));
        prop_assert!(found.at <= closed(&outcome) + bound, "{found:?} {}", closed(&outcome));
        // It tries again and again, and fails, and says so.
        prop_assert!(found.attempts > 1);
        let tally = outcome.records.get::<Report>().unwrap().tally;
        prop_assert!(tally.failed >= members && tally.enlarged == 0 && deadlock.ended.is_none());
        prop_assert_eq!(outcome.stop, Stop::Starved);
    }

    /// With room in the shared pool deadlocks end, nothing is lost, and all comes in order.
    #[test]
    fn room_ends_deadlocks(ring in rings(), room in 1_062u64..60_000) {
        let plan = plan(&ring.text("deadlock-breaker", &format!("room=\"{room}B\"")));
        let outcome = run(&plan);
        prop_assert_eq!(outcome.stop, Stop::AllDone);
        prop_assert!(outcome.flows.iter().all(|f| (f.out_of_order, f.dropped, f.retransmitted) == (0, 0, 0)));
        let tally = outcome.records.get::<Report>().unwrap().tally;
        prop_assert_eq!(tally.failed, 0);
        prop_assert!(outcome.deadlock.is_none() || tally.enlarged > 0);
    }

    /// The ring's other direction is another path. No packet is lost there. But rerouted packets can fill
    /// that direction, too (six of 12,000 rings): then each queue of the ring waits, the other path of each
    /// packet is paused, and the scheme finds the deadlock repeatedly and reports that nothing moved.
    #[test]
    fn other_paths_end_deadlocks(ring in rings()) {
        let plan = plan(&ring.text("loop-breaker", ""));
        let outcome = run(&plan);
        prop_assert!(outcome.drops.is_empty());
        let Some(deadlock) = &outcome.deadlock else {
            prop_assert_eq!(outcome.stop, Stop::AllDone);
            return Ok(());
        };
        let tally = outcome.records.get::<Report>().unwrap().tally;
        prop_assert!(tally.rerouted > 0);
        if outcome.stop != Stop::AllDone {
            prop_assert_eq!(outcome.stop, Stop::Starved);
            // Both directions of each of the ring's links, and the hosts' links into it.
            prop_assert_eq!(outcome.waiting.len(), 3 * ring.switches, "{:?} {:?}", deadlock, outcome.waiting);
            prop_assert!(tally.failed > 0);
        }
    }
}

/// The same bytes on one thread and on two; and rerouted packets arrive out of order.
#[test]
fn threads_change_nothing() {
    for (seed, scheme) in (0..6).zip(["loop-breaker", "deadlock-breaker"].iter().cycle()) {
        let starts = vec![700, 2_100, 1_400, 0];
        let ring = Ring { switches: 4, reach: 3, starts, xoff: 20, seed, period: 50, latency: 10 };
        let plan = plan(&ring.text(scheme, ""));
        let (one, two) = (run(&plan), xoff_sim::run_on(&plan, 2, &mut |_| true));
        assert!(!one.records.get::<Report>().unwrap().found.is_empty() && one.counters.extra_control > 0);
        assert_eq!(one.flows.iter().any(|f| f.out_of_order > 0), *scheme == "loop-breaker");
        assert!(one == two, "{scheme} {seed}");
    }
}

/// A mesh of `n` switches with a host each, whose flows go round it as if it were a ring.
fn mesh(n: usize, scheme: &str) -> String {
    let ring =
        Ring { switches: n, reach: 2, starts: vec![0; n], xoff: 20, seed: 1, period: 100, latency: 20 };
    ring.text(scheme, "").replace("kind=\"ring\"", "kind=\"full-mesh\"")
}

/// There another path is at most one link longer.
#[test]
fn a_mesh_has_other_paths() {
    for n in 4..7 {
        let plan = plan(&mesh(n, "loop-breaker"));
        let outcome = run(&plan);
        assert_eq!(outcome.stop, Stop::AllDone);
        let (deadlock, tally) =
            (outcome.deadlock.as_ref().expect("it locks up"), outcome.records.get::<Report>().unwrap().tally);
        // A queue led when it ended; if a queue has probed before, it takes a draw or two.
        let ended = deadlock.ended.expect("it ends");
        assert!(
            outcome
                .records
                .get::<Report>()
                .unwrap()
                .found
                .iter()
                .any(|f| f.at < ended && f.until.is_some_and(|until| until >= ended))
        );
        assert!(ended < deadlock.closed + 10 * params(&plan).period, "{ended} {}", deadlock.closed);
        assert!(tally.rerouted > 0 && outcome.drops.is_empty());
        assert!(outcome.records.get::<Report>().unwrap().found.iter().all(|f| f.until.is_some()));
    }
}

/// X's flow enters a deadlocked ring of three, so X's queue waits permanently, too; and its number is the
/// smallest. Fixed identifiers would hide the ring from probes.
fn fed(scheme: &str, seed: u64) -> String {
    let mut text = format!(
        "[topology]\nkind=\"custom\"\nhosts=[\"H0\",\"H1\",\"H2\",\"HX\"]\nswitches=[\"X\",\"S0\",\"S1\",\"S2\"]\n\
         links=[{}]\n[run]\nseed={seed}\n[flow_control]\nscheme=\"{scheme}\"\nperiod=\"100us\"\nlatency=\"5us\"\n\
         xoff=\"20kB\"\nxon=\"10kB\"\nroom=\"800MB\"\n",
        ["X S0", "S0 S1", "S1 S2", "S2 S0", "H0 S0", "H1 S1", "H2 S2", "HX X"]
            .map(|link| {
                let (a, b) = link.split_once(' ').unwrap();
                format!("{{a=\"{a}\",b=\"{b}\",rate=\"100Gbps\",delay=\"1us\"}}")
            })
            .join(",")
    );
    for path in ["H0 S0 S1 S2 H2", "H1 S1 S2 S0 H0", "H2 S2 S0 S1 H1", "HX X S0 S1 S2 H2"] {
        let nodes: Vec<&str> = path.split(' ').collect();
        write!(
            text,
            "[[traffic]]\nkind=\"flow\"\nsrc=\"{}\"\ndst=\"{}\"\nsize=\"4MB\"\npath={nodes:?}\n",
            nodes[0],
            nodes[nodes.len() - 1]
        )
        .unwrap();
    }
    text
}

#[test]
fn a_queue_outside_of_the_loop_does_not_hide_it() {
    let mut periods = Vec::new();
    for seed in 0..12 {
        for scheme in ["deadlock-breaker", "loop-breaker"] {
            let text =
                fed(scheme, seed).replace(if scheme == "loop-breaker" { "room=\"800MB\"\n" } else { "" }, "");
            let plan = plan(&text);
            let outcome = run(&plan);
            let deadlock = outcome.deadlock.as_ref().expect("it locks up");
            let cycle: Vec<u32> = deadlock.cycle.iter().map(|h| h.port).collect();
            assert_eq!(cycle.len(), 3);
            // X, whose number is the smallest, waits for it.
            assert!(outcome.pauses.iter().any(|p| p.port == 0 && p.from > US));
            let found = outcome
                .records
                .get::<Report>()
                .unwrap()
                .found
                .iter()
                .find(|f| f.until.is_none_or(|until| until > deadlock.closed));
            let found = found.unwrap_or_else(|| panic!("{scheme} {seed}"));
            assert!(cycle.contains(&found.port));
            let took = found.at.saturating_sub(deadlock.closed);
            // The path identifies it at once; without it, as soon as a draw is the smallest.
            if scheme == "deadlock-breaker" {
                assert!(took <= 2 * params(&plan).period + 4 * hop(params(&plan)), "{took}");
            } else {
                periods.push(took / params(&plan).period);
            }
        }
    }
    assert!(periods.iter().any(|&p| p > 2) && periods.iter().all(|&p| p < 30), "{periods:?}");
}

/// Messages are lost as any frame is; the next poll sends others.
#[test]
fn lost_probes_cost_only_time() {
    let starts = vec![0; 4];
    let ring = Ring { switches: 4, reach: 3, starts, xoff: 20, seed: 3, period: 50, latency: 10 };
    for scheme in ["loop-breaker", "deadlock-breaker"] {
        // Pauses are lost, too, and packets for it.
        let text = ring.text(scheme, "") + "[[loss]]\nlink=\"S0.0-S0.1\"\nrate=0.3\n";
        let outcome = xoff_sim::run(&plan(&text), &mut |_| true);
        assert_eq!(outcome.stop, Stop::AllDone, "{scheme}");
        assert!(!outcome.records.get::<Report>().unwrap().found.is_empty());
    }
}

/// Where nothing is paused for as long as two polls are apart, the run is PFC's, byte for byte,
/// but for polls.
#[test]
fn short_pauses_are_left_alone() {
    let text = "[topology]\nkind=\"leaf-spine\"\nleaves=2\nspines=2\nhosts_per_leaf=4\nhost_link={rate=\"100Gbps\",delay=\"1us\"}\n\
        fabric_link={rate=\"100Gbps\",delay=\"1us\"}\n[flow_control]\nscheme=\"pfc\"\nxoff=\"20kB\"\nxon=\"10kB\"\n\
        [[traffic]]\nkind=\"incast\"\nfan_in=4\nsize=\"60kB\"\nto=\"random\"\nperiod=\"30us\"\n[run]\nduration=\"1ms\"\n";
    let bare = run(&plan(text));
    assert!(bare.pauses.len() > 10);
    for scheme in ["loop-breaker", "deadlock-breaker"] {
        let mut watched = run(&plan_with(text, &[("flow_control.scheme", scheme)]));
        let told = watched.records.get::<Report>().unwrap();
        assert_eq!((told.found.len(), told.tally.frames, watched.counters.extra_control), (0, 0, 0));
        watched.records = bare.records.clone();
        watched.counters.events = bare.counters.events;
        assert!(watched == bare, "{scheme}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 12 / 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Hosts that relay, loops that overlap, links that fail: nothing is lost for want of room, and
    /// everything is the same over threads.
    #[test]
    fn nothing_is_lost_where_loops_overlap(
        seed in 0u64..1_000, rerouting: bool, fails: bool, period in 10u64..100, latency in 0u64..20,
    ) {
        let scheme = if rerouting { "loop-breaker" } else { "deadlock-breaker" };
        let failure = match fails {
            true => "[[failure]]\nlink=\"H0-S0.0\"\nat=\"400us\"\nuntil=\"700us\"\n",
            false => "",
        };
        let plan = plan(&format!(
            "[topology]\nkind=\"ndc\"\nn=4\nk=1\nlink={{rate=\"100Gbps\",delay=\"1us\"}}\n[run]\nseed={seed}\n\
             duration=\"2ms\"\n[flow_control]\nscheme=\"{scheme}\"\nxoff=\"20kB\"\nxon=\"10kB\"\n\
             period=\"{period}us\"\nlatency=\"{latency}us\"\n\
             [[traffic]]\nkind=\"poisson\"\nsizes=\"websearch\"\nload=0.9\n\
             [[traffic]]\nkind=\"incast\"\nfan_in=5\nsize=\"200kB\"\nto=\"random\"\nperiod=\"100us\"\n{failure}"
        ));
        let outcome = run(&plan);
        let two = xoff_sim::run_on(&plan, 2, &mut |_| true);
        prop_assert_eq!(&outcome.records.get::<Report>().unwrap().found, &two.records.get::<Report>().unwrap().found);
        prop_assert!(outcome == two);
    }
}
