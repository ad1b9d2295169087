//! Loop Breaker and Deadlock Breaker: control planes find every deadlock that lasts, in bounded
//! time, and end it where there are other ways, or room.

mod common;

use common::{plan, plan_with, run};
use proptest::prelude::*;
use std::fmt::Write;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::FlowControlParams;
use xoff_schemes::flow_control::breakers::BreakerParams;
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

/// The last pause of the deadlock's circle.
fn closed(outcome: &Outcome) -> u64 {
    let deadlock = outcome.deadlock.as_ref().expect("a deadlock");
    let pauses = |h: &Held| outcome.pauses.iter().rfind(|p| (p.port, p.lane) == (h.port, h.lane));
    deadlock.cycle.iter().filter_map(pauses).map(|p| p.from).max().expect("a cycle")
}

/// How long a message takes for one link at most: it waits behind a packet and a pause frame,
/// crosses, and spends its time in the control plane. (1,062 + 64 + 158 bytes are the most.)
fn hop(params: &BreakerParams) -> u64 {
    US + (1_062 + 64 + 158) * 80 + params.latency
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Deadlock Breaker without room to give, so that what stands stays. Of the queues of the
    /// circle the one with the smallest number leads. A poll within a period from the last pause
    /// sees it, the next one suspects it, and its first probe, smaller than all others, goes
    /// round: two periods and a turn. However many queues have begun it, and with nothing found
    /// where nothing stands (all polls see queues that resume within a period: or what was found
    /// went on).
    #[test]
    fn every_deadlock_is_found_within_two_periods_and_a_turn(ring in rings()) {
        let plan = plan(&ring.text("deadlock-breaker", "room=\"800MB\""));
        let outcome = run(&plan);
        prop_assert!(outcome.drops.is_empty());
        let Some(deadlock) = &outcome.deadlock else {
            // What is found then was no deadlock, and went on by itself.
            prop_assert!(outcome.found.iter().all(|f| f.until.is_some()));
            prop_assert_eq!(outcome.stop, Stop::AllDone);
            return Ok(());
        };
        let members = deadlock.cycle.len() as u64;
        let bound = 2 * params(&plan).period + members * hop(params(&plan));
        let master = deadlock.cycle.iter().map(|h| h.port).min().unwrap();
        let found = outcome.found.iter().find(|f| f.port == master && f.until.is_none());
        let found = found.unwrap_or_else(|| panic!("{:?}", outcome.found));
        prop_assert!(found.at <= closed(&outcome) + bound, "{found:?} {}", closed(&outcome));
        // It tries again and again, and fails, and says so.
        prop_assert!(found.attempts > 1);
        let tally = outcome.breakers.unwrap();
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
        let tally = outcome.breakers.unwrap();
        prop_assert_eq!(tally.failed, 0);
        prop_assert!(outcome.deadlock.is_none() || tally.enlarged > 0);
    }

    /// The ring's other direction is another way. Nothing is lost there, but order is.
    #[test]
    fn other_ways_end_deadlocks(ring in rings()) {
        let plan = plan(&ring.text("loop-breaker", ""));
        let outcome = run(&plan);
        prop_assert_eq!(outcome.stop, Stop::AllDone);
        prop_assert!(outcome.drops.is_empty());
        if outcome.deadlock.is_some() {
            prop_assert!(outcome.breakers.unwrap().rerouted > 0);
        }
    }
}
