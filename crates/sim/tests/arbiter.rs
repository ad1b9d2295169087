//! The arbiter that knows all: shortest remaining flow first, one for each source and destination.

mod common;

use common::{fcts, plan, run};
use proptest::prelude::*;

fn star(arbiter: &str, traffic: &str) -> String {
    format!(
        "[topology]\nkind = \"leaf-spine\"\nleaves = 1\nspines = 1\nhosts_per_leaf = 8\n\
         host_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\nfabric_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
         [flow_control]\nscheme = \"none\"\n[transport]\nkind = \"irn\"\narbiter = \"{arbiter}\"\nwindow = \"10bdp\"\n\
         [irn]\nrto_low = \"1s\"\nrto_high = \"1s\"\n{traffic}"
    )
}

fn flow(src: u32, dst: u32, size: &str, at: &str) -> String {
    format!(
        "[[traffic]]\nkind = \"flow\"\nsrc = \"H{src}\"\ndst = \"H{dst}\"\nsize = \"{size}\"\nstart = \"{at}\"\n"
    )
}

/// A full packet of 1,062 B at 100 Gbit/s.
const PACKET: u64 = 84_960;

/// Equal flows to one host end one after the other, without a gap between them.
#[test]
fn an_incast_is_served_flow_by_flow() {
    let traffic: String = (0..7).map(|src| flow(src, 7, "100kB", "0us")).collect();
    let plan = plan(&star("srpt", &traffic));
    let times = fcts(&plan, &run(&plan));
    for (k, (flow, time)) in (0..).zip(plan.flows.iter().zip(&times)) {
        assert_eq!(*time, flow.ideal + k * 100 * PACKET);
    }
}

/// Under a strict matching the next one begins when the last packet of the one before is there.
#[test]
fn a_strict_matching_waits_for_the_way() {
    let traffic: String = (0..7).map(|src| flow(src, 7, "100kB", "0us")).collect();
    let plan = plan(&star("srpt-strict", &traffic));
    let times = fcts(&plan, &run(&plan));
    // Two links, and the switch sends the last packet once more.
    let turn = 100 * PACKET + PACKET + 2_000_000;
    for (k, (flow, time)) in (0..).zip(plan.flows.iter().zip(&times)) {
        assert_eq!(*time, flow.ideal + k * turn);
    }
}

/// A smaller flow goes first, once the packet on the wire has left; the larger one loses just that time.
#[test]
fn the_smaller_one_goes_first() {
    // The small one begins amid packet 12 of the large one, by the same source.
    let plan = plan(&star("srpt", &(flow(0, 7, "1MB", "0us") + &flow(0, 6, "10kB", "1us"))));
    let times = fcts(&plan, &run(&plan));
    let wait = 12 * PACKET - 1_000_000;
    assert_eq!(times[1], plan.flows[1].ideal + wait);
    assert_eq!(times[0], plan.flows[0].ideal + 10 * PACKET);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Every flow ends, none sooner than alone, nothing is sent twice, and threads change nothing.
    #[test]
    fn every_flow_ends(
        pairs in prop::collection::vec((0u32..8, 1u32..8, 1u32..200, 0u32..50), 1..30),
        strict in any::<bool>(),
    ) {
        let traffic: String = pairs
            .iter()
            .map(|&(src, by, kb, at)| flow(src, (src + by) % 8, &format!("{kb}kB"), &format!("{at}us")))
            .collect();
        let plan = plan(&star(if strict { "srpt-strict" } else { "srpt" }, &traffic));
        let outcome = run(&plan);
        let times = fcts(&plan, &outcome);
        prop_assert!(outcome.flows.iter().all(|f| f.retransmitted == 0 && f.timeouts == 0 && f.spurious == 0));
        prop_assert_eq!(&outcome, &xoff_sim::run_on(&plan, 2, &mut |_| true));
        prop_assert!(times.iter().zip(&plan.flows).all(|(time, flow)| *time >= flow.ideal));
    }
}
