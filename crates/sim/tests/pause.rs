//! 802.3x PAUSE loses nothing, and stops whole links.

use crate::common;

use common::{plan, plan_with, run};
use proptest::prelude::*;
use xoff_sim::outcome::Outcome;

/// Seven hosts send to one in priority 3; one of them sends to another host in priority 4.
const INCAST: &str = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 4\n\
     host_link = { rate = \"100Gbps\", delay = \"1us\" }\nfabric_link = { rate = \"400Gbps\", delay = \"1us\" }\n\
     [flow_control]\nscheme = \"pause\"\nxoff = \"100kB\"\nxon = \"50kB\"\n\
     [[traffic]]\nkind = \"incast\"\nto = \"H0\"\nfan_in = 7\nsize = \"1MB\"\npriority = 3\n\
     [[traffic]]\nkind = \"flow\"\nsrc = \"H4\"\ndst = \"H1\"\nsize = \"1MB\"\nstart = \"20us\"\npriority = 4\n";

fn completed(outcome: &Outcome) -> Vec<u64> {
    outcome.flows.iter().map(|flow| flow.completed.expect("completed")).collect()
}

/// Both priorities of a link stop and go together, so that the flow of the other priority waits for
/// the incast. Under PFC it does not.
#[test]
fn a_pause_stops_all_priorities_of_the_link() {
    let plan = plan(INCAST);
    let outcome = run(&plan);
    assert!(!outcome.pauses.is_empty());
    let spans = |lane| {
        let of_lane = outcome.pauses.iter().filter(|pause| pause.lane == lane);
        of_lane.map(|pause| (pause.port, pause.from, pause.until)).collect::<Vec<_>>()
    };
    assert_eq!(spans(0), spans(1));
    let pfc = run(&plan_with(INCAST, &[("flow_control.scheme", "pfc")]));
    let [by_link, by_lane] = [&outcome, &pfc].map(|outcome| completed(outcome)[7]);
    assert!(by_link > by_lane + by_lane / 4, "{by_link} {by_lane}");
}

/// A lossy priority stops, too, and packets for which it finds no room are dropped.
#[test]
fn a_pause_stops_lossy_priorities() {
    let plan = plan_with(INCAST, &[("flow_control.priorities", "[3]")]);
    let lossy = plan.lanes.iter().position(|lane| !lane.lossless).expect("priority 4 is lossy");
    let outcome = run(&plan);
    assert!(outcome.pauses.iter().any(|pause| usize::from(pause.lane) == lossy));
}

/// A ring of four switches with a slow link from S1 to S2. The flows alternate between two priorities, so
/// no single priority closes the ring.
const RING: &str = include_str!("../../../examples/itsy.toml");
const TURNS: [(&str, &str); 4] = [
    ("traffic.0.priority", "3"),
    ("traffic.1.priority", "4"),
    ("traffic.2.priority", "3"),
    ("traffic.3.priority", "4"),
];

/// A link stops because of arrivals of the other priority, and the ring closes. Under PFC it does not.
#[test]
fn two_priorities_can_close_a_cycle() {
    let under = |scheme| run(&plan_with(RING, &[&[("flow_control.scheme", scheme)], &TURNS[..]].concat()));
    let deadlock = under("pause").deadlock.expect("the ring closes");
    assert_eq!(deadlock.cycle.len(), 4);
    let pfc = under("pfc");
    assert!(pfc.deadlock.is_none() && pfc.flows.iter().all(|flow| flow.completed.is_some()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 8))]
    /// `run` asserts conservation and that no lossless packet was dropped; links fail and recover.
    #[test]
    fn nothing_is_lost(
        seed in 0u64..10_000, delay in 0u64..3_000, xoff in 1u64..150, gap in 0u64..100, fan_in in 2u32..8,
        size in 1u64..400, response in 0u64..2_000, quanta in prop::sample::select(vec![300u32, 65_535]),
        lossy in any::<bool>(), fails in prop::option::of(10u64..150),
    ) {
        let mut text = format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 3\n\
             host_link = {{ rate = \"100Gbps\", delay = \"{delay}ns\" }}\n\
             fabric_link = {{ rate = \"40Gbps\", delay = \"1us\" }}\n\
             [switch]\nbuffer = \"12MB\"\n[host]\nbuffer = \"12MB\"\n\
             [flow_control]\nscheme = \"pause\"\nxoff = \"{xoff}kB\"\nxon = \"{}kB\"\n\
             response_time = \"{response}ns\"\nquanta = {quanta}\n{}\n\
             [run]\nduration = \"300us\"\nseed = {seed}\n\
             [[traffic]]\nkind = \"poisson\"\nsizes = \"websearch\"\nload = 0.8\n\
             [[traffic]]\nkind = \"incast\"\nfan_in = {fan_in}\nsize = \"{size}kB\"\nperiod = \"50us\"\npriority = 5\n",
            xoff.saturating_sub(gap), if lossy { "priorities = [3]" } else { "" },
        );
        if let Some(at) = fails {
            text += &format!("[[failure]]\nlink = \"S0.0-S1.0\"\nat = \"{at}us\"\nuntil = \"{}us\"\n", at + 40);
        }
        run(&plan(&text));
    }
}
