//! ITSY: a deadlock with one trigger is found where it began, and dissolved; one with several is
//! missed.

use crate::common;

use common::{pausing, plan, plan_with, run, standing};
use proptest::prelude::*;
use std::fmt::Write;
use xoff_schemes::flow_control::itsy::Report;
use xoff_schemes::flow_control::itsy::report::DROPPED;
use xoff_sim::outcome::{DropReason, Outcome, Stop};

const US: u64 = 1_000_000;

/// A ring of `n` switches whose link from S1 to S2 is slow, so that S1's queue from S0 is the one
/// that others come to wait for. Each host sends over two links clockwise, at a quarter of the
/// other links' rate.
fn one_trigger(n: usize, keys: &str) -> String {
    let mut text = "[topology]\nkind = \"custom\"\n".to_string();
    let names = |letter: char| (0..n).map(|i| format!("\"{letter}{i}\"")).collect::<Vec<_>>().join(", ");
    writeln!(text, "hosts = [{}]\nswitches = [{}]\nlinks = [", names('H'), names('S')).unwrap();
    for i in 0..n {
        let (next, rate) = ((i + 1) % n, if i == 1 { 2 } else { 100 });
        writeln!(text, "{{a = \"S{i}\", b = \"S{next}\", rate = \"{rate}Gbps\", delay = \"1us\"}},").unwrap();
        writeln!(text, "{{a = \"H{i}\", b = \"S{i}\", rate = \"25Gbps\", delay = \"1us\"}},").unwrap();
    }
    writeln!(text, "]\n[flow_control]\nscheme = \"itsy\"\nxoff = \"20kB\"\nxon = \"2kB\"\n{keys}").unwrap();
    for i in 0..n {
        let (b, c) = ((i + 1) % n, (i + 2) % n);
        writeln!(
            text,
            "[[traffic]]\nkind = \"flow\"\nsrc = \"H{i}\"\ndst = \"H{c}\"\nsize = \"500kB\"\n\
             path = [\"H{i}\", \"S{i}\", \"S{b}\", \"S{c}\", \"H{c}\"]"
        )
        .unwrap();
    }
    text
}

/// The same scenario under PFC, in which a deadlock lasts permanently.
fn bare(text: &str) -> Outcome {
    let outcome = run(&plan_with(text, &[("flow_control.scheme", "pfc")]));
    assert_eq!(outcome.stop, Stop::Starved);
    outcome
}

#[test]
fn one_trigger_finds_the_deadlock_at_once() {
    for n in 3..=8 {
        let text = one_trigger(n, "");
        let deadlock = bare(&text).deadlock.expect("a deadlock");
        assert_eq!(deadlock.cycle.len(), n);
        let plan = plan(&text);
        let outcome = run(&plan);
        let itsy = outcome.records.get::<Report>().unwrap();
        let found = itsy.detections[0];
        let name = |port: u32| plan.topology.port_name(port);
        assert!(name(found.port).starts_with("S1") && name(found.egress).starts_with("S1"));
        assert!(pausing(&plan, &deadlock).contains(&found.port));
        assert!(deadlock.cycle.iter().any(|held| held.port == found.egress));
        // The check has waited before the loop's last link: it comes with the pause that closes it, a link
        // later, maybe after a packet. Before that there is no deadlock.
        let link = US + (64 + u64::from(plan.packet.largest())) * 4_000;
        assert!((deadlock.closed..=deadlock.closed + link).contains(&found.at), "{found:?} {deadlock:?}");
        // It was the only trigger in the loop.
        let stood = standing(&plan, &outcome, &deadlock);
        assert_eq!(stood.iter().map(|t| t.port).collect::<Vec<_>>(), [found.port]);
        assert!(found.ended.is_some_and(|ended| ended > found.at));
    }
}

#[test]
fn packets_are_dropped_and_retransmitted() {
    for n in 3..=7 {
        let plan = plan(&one_trigger(n, ""));
        let outcome = run(&plan);
        assert_eq!(outcome.stop, Stop::AllDone);
        let found = &outcome.records.get::<Report>().unwrap().detections;
        // One drop is not enough: new packets fill the queue again.
        assert!(found[0].acted > 1 && found.iter().all(|d| (d.refused, d.room) == (0, 0)));
        assert!(outcome.counters.dropped > 0 && outcome.flows.iter().any(|f| f.retransmitted > 0));
        // All of it in queues that had found a deadlock.
        for drop in &outcome.drops {
            assert_eq!((drop.reason, drop.lossless), (DropReason::Scheme(&DROPPED), true));
            assert!(
                found.iter().any(|d| (d.port, d.lane) == (drop.ingress, drop.lane) && d.at <= drop.first)
            );
        }
    }
}

#[test]
fn room_is_given_while_the_shared_pool_has_it() {
    for n in 3..=7 {
        let outcome = run(&plan(&one_trigger(n, "resolution = \"lossless\"")));
        assert_eq!((outcome.stop, outcome.counters.dropped), (Stop::AllDone, 0));
        let found = &outcome.records.get::<Report>().unwrap().detections;
        // By default the bytes of a round trip on the 100 Gbit/s links, each time.
        assert!(found.iter().all(|d| d.refused == 0 && d.room >= d.acted * 25_000));
        assert!(outcome.flows.iter().all(|f| (f.out_of_order, f.retransmitted) == (0, 0)));
        // More than any pool has: it says so, and the deadlock stays.
        let plan = plan(&one_trigger(n, "resolution = \"lossless\"\nroom = \"1GB\""));
        let outcome = run(&plan);
        assert_eq!((outcome.stop, outcome.counters.dropped), (Stop::Starved, 0));
        assert_eq!(outcome.deadlock.as_ref().unwrap().ended, None);
        let [found] = outcome.records.get::<Report>().unwrap().detections[..] else { panic!("one deadlock") };
        assert!(found.refused > 0 && (found.acted, found.room, found.ended) == (0, 0, None));
    }
}

/// A ring of switches with a host each; flows over `reach` links clockwise.
#[derive(Clone, Debug)]
struct Ring {
    switches: usize,
    reach: usize,
    /// When each host begins, in nanoseconds.
    starts: Vec<u64>,
    xoff: u64,
    seed: u64,
}

fn rings() -> impl Strategy<Value = Ring> {
    (3usize..9).prop_flat_map(|n| {
        let starts = prop::collection::vec(prop_oneof![Just(0u64), 0u64..20_000], n);
        (2..n, starts, 10u64..60, 0u64..10_000).prop_map(move |(reach, starts, xoff, seed)| Ring {
            switches: n,
            reach,
            starts,
            xoff,
            seed,
        })
    })
}

impl Ring {
    fn text(&self, keys: &str) -> String {
        let (n, xoff, seed) = (self.switches, self.xoff, self.seed);
        let mut text = format!(
            "[topology]\nkind=\"ring\"\nswitches={n}\nhosts_per_switch=1\nlink={{rate=\"100Gbps\",delay=\"1us\"}}\n\
             [run]\nseed={seed}\n[flow_control]\nscheme=\"itsy\"\nxoff=\"{xoff}kB\"\nxon=\"{}kB\"\n{keys}\n",
            xoff / 2
        );
        for (i, start) in self.starts.iter().enumerate() {
            let path: Vec<String> = (0..=self.reach).map(|j| format!("\"S0.{}\"", (i + j) % n)).collect();
            let dst = (i + self.reach) % n;
            text += &format!(
                "[[traffic]]\nkind=\"flow\"\nsrc=\"H{i}\"\ndst=\"H{dst}\"\nsize=\"1MB\"\nstart=\"{start}ns\"\n\
                 path=[\"H{i}\",{},\"H{dst}\"]\n",
                path.join(",")
            );
        }
        text
    }
}

/// Everybody begins at once, so that all queues of the loop are triggers: each drops the others'
/// checks. Checks change nothing else: it is the deadlock of PFC, to the picosecond.
#[test]
fn several_triggers_miss_the_deadlock() {
    for n in 3..=8 {
        let ring = Ring { switches: n, reach: 2, starts: vec![0; n], xoff: 20, seed: 1 };
        let text = ring.text("");
        let pfc = bare(&text);
        let plan = plan(&text);
        let outcome = run(&plan);
        let itsy = outcome.records.get::<Report>().unwrap();
        assert_eq!((outcome.stop, &outcome.deadlock), (Stop::Starved, &pfc.deadlock));
        assert_eq!(outcome.pauses, pfc.pauses);
        assert_eq!(standing(&plan, &outcome, outcome.deadlock.as_ref().unwrap()).len(), n);
        assert_eq!(itsy.detections, []);
        assert!(itsy.discarded >= n as u64, "{}", itsy.discarded);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 60 / 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Of rings that begin at random the first deadlock is found if it has exactly one trigger, within a turn
    /// of a frame from its last pause; with several, or with none (it has drained to XON since and paused
    /// again as a spreader), it lasts permanently. No other deadlock is found: until then the run is that of
    /// PFC, and a later one is another deadlock.
    #[test]
    fn a_deadlock_is_found_if_it_has_one_trigger(ring in rings(), lossless in any::<bool>()) {
        let text = ring.text(if lossless { "resolution = \"lossless\"" } else { "" });
        let pfc = run(&plan_with(&text, &[("flow_control.scheme", "pfc")]));
        let plan = plan(&text);
        let outcome = run(&plan);
        let itsy = outcome.records.get::<Report>().unwrap();
        let Some(deadlock) = &pfc.deadlock else {
            prop_assert_eq!(&itsy.detections, &[]);
            return Ok(());
        };
        let stand = standing(&plan, &outcome, deadlock);
        let hop = US + (64 + u64::from(plan.packet.largest())) * 80;
        match (&stand[..], itsy.detections.first()) {
            ([trigger], Some(found)) => {
                prop_assert_eq!((found.port, found.lane), (trigger.port, trigger.lane));
                let turn = deadlock.cycle.len() as u64 * hop;
                prop_assert!((deadlock.closed..=deadlock.closed + turn).contains(&found.at), "{:?}", found);
            }
            ([_], None) => prop_assert!(false, "missed {deadlock:?}"),
            (_, found) => {
                prop_assert!(found.is_none(), "{:?} of {:?}", found, stand);
                prop_assert_eq!((outcome.stop, &outcome.deadlock), (Stop::Starved, &pfc.deadlock));
            }
        }
        // A deadlock that lasts until the end has been missed for the same reason.
        if let Some(last) = outcome.deadlock.as_ref().filter(|last| last.ended.is_none()) {
            prop_assert!(standing(&plan, &outcome, last).len() != 1);
        }
    }
}

/// Two lossless priorities, whose checks cross the same links: pauses overtake them, so no packet is lost for
/// lack of headroom; and a deadlock found in one priority does not affect the other.
#[test]
fn priorities_do_not_hold_each_other_up() {
    let single = one_trigger(4, "");
    let (head, flows) = single.split_at(single.find("[[traffic]]").unwrap());
    let other = flows.replace("kind = \"flow\"", "kind = \"flow\"\npriority = 5\nstart = \"7us\"");
    let plan = plan(&format!("{head}{flows}{other}"));
    assert_eq!(plan.lanes.iter().filter(|lane| lane.lossless).count(), 2);
    let outcome = run(&plan);
    let found = &outcome.records.get::<Report>().unwrap().detections;
    assert!((0..2).all(|lane| found.iter().any(|d| d.lane == lane)), "{found:?}");
    for drop in &outcome.drops {
        assert_eq!(drop.reason, DropReason::Scheme(&DROPPED));
        assert!(found.iter().any(|d| (d.port, d.lane) == (drop.ingress, drop.lane)));
    }
}

/// The same bytes on one thread and on two.
#[test]
fn threads_change_nothing() {
    for keys in ["", "resolution = \"lossless\""] {
        let plan = plan(&one_trigger(5, keys));
        let (one, two) = (run(&plan), xoff_sim::run_on(&plan, 2, &mut |_| true));
        assert!(!one.records.get::<Report>().unwrap().detections.is_empty());
        assert_eq!(
            (two.flows, two.pauses, two.records, two.drops),
            (one.flows, one.pauses, one.records, one.drops)
        );
    }
}

/// A link of the loop fails during the deadlock, and recovers; then frames get lost.
#[test]
fn faults_end_and_delay_but_break_nothing() {
    let refused = one_trigger(4, "resolution = \"lossless\"\nroom = \"1GB\"");
    let fails = "[[failure]]\nlink = \"S2-S3\"\nat = \"200us\"\nuntil = \"300us\"\n";
    let outcome = run(&plan(&(refused.clone() + fails)));
    let first = outcome.records.get::<Report>().unwrap().detections[0];
    assert!(first.at < 200 * US && first.ended.is_some_and(|ended| ended > 200 * US), "{first:?}");
    let loses = "[[loss]]\nlink = \"S2-S3\"\nrate = 0.01\n";
    let outcome = run(&plan(&(one_trigger(4, "") + loses)));
    assert_eq!(outcome.stop, Stop::AllDone);
}
