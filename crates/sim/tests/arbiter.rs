//! The arbiter that knows all: shortest remaining flow first, one for each source and destination.

use crate::common;

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

const RULES: [&str; 2] = ["srpt", "srpt-strict"];

/// Equal flows to one host end one after the other, without a gap between them.
#[test]
fn an_incast_is_served_flow_by_flow() {
    let traffic: String = (0..7).map(|src| flow(src, 7, "100kB", "0us")).collect();
    for rule in RULES {
        let plan = plan(&star(rule, &traffic));
        let times = fcts(&plan, &run(&plan));
        for (k, (flow, time)) in (0..).zip(plan.flows.iter().zip(&times)) {
            assert_eq!(*time, flow.ideal + k * 100 * PACKET, "{rule}, {k}");
        }
    }
}

/// Flows of one packet to one host: all at once where the destination is free when a packet begins to leave,
/// so they meet before it, and six wait for the first; one after the other where it is free when the packet
/// has left. In both cases the host's link has no gap.
#[test]
fn a_strict_matching_queues_nothing() {
    let traffic: String = (0..7).map(|src| flow(src, 7, "1kB", "0us")).collect();
    for (rule, queued) in [("srpt", 6), ("srpt-strict", 1)] {
        let plan = plan(&star(rule, &traffic));
        let outcome = run(&plan);
        for (k, (flow, time)) in (0..).zip(plan.flows.iter().zip(fcts(&plan, &outcome))) {
            assert_eq!(time, flow.ideal + k * PACKET, "{rule}, {k}");
        }
        let most = outcome.ports.iter().map(|port| port.queue_peak).max();
        assert_eq!(most, Some(queued * 1062), "{rule}");
    }
}

/// A smaller flow of another source takes the destination. Under a matching the larger one stops after the
/// packet on its wire, which the smaller one then meets; under YAPS's rule both continue and share the last
/// link. The larger one loses the same time.
#[test]
fn a_smaller_one_from_elsewhere() {
    let wait = 12 * PACKET - 1_000_000;
    for (rule, shared) in [("srpt", 99 * PACKET), ("srpt-strict", 0)] {
        let plan = plan(&star(rule, &(flow(0, 7, "1MB", "0us") + &flow(1, 7, "100kB", "1us"))));
        let times = fcts(&plan, &run(&plan));
        assert_eq!(times[1], plan.flows[1].ideal + wait + shared, "{rule}");
        assert_eq!(times[0], plan.flows[0].ideal + 100 * PACKET, "{rule}");
    }
}

/// A flow that waits does not stop a third one: the list is walked to its end.
#[test]
fn free_hosts_are_used() {
    let traffic = flow(0, 7, "10kB", "0us") + &flow(0, 6, "20kB", "0us") + &flow(1, 6, "30kB", "0us");
    for rule in RULES {
        let plan = plan(&star(rule, &traffic));
        let times = fcts(&plan, &run(&plan));
        assert_eq!(times[0], plan.flows[0].ideal, "{rule}");
        // The third one sends until the second one has its source. Then both share the last link under YAPS's
        // rule; under a matching the third one stops after a packet that it began at that moment.
        let shared = if rule == "srpt" { 19 } else { 1 };
        assert_eq!(times[1], plan.flows[1].ideal + (10 + shared) * PACKET, "{rule}");
        assert_eq!(times[2], plan.flows[2].ideal + 20 * PACKET, "{rule}");
    }
}

/// A smaller flow goes first, once the packet on the wire has left; the larger one loses just that time.
#[test]
fn the_smaller_one_goes_first() {
    for rule in RULES {
        // The small one begins amid packet 12 of the large one, by the same source.
        let plan = plan(&star(rule, &(flow(0, 7, "1MB", "0us") + &flow(0, 6, "10kB", "1us"))));
        let times = fcts(&plan, &run(&plan));
        let wait = 12 * PACKET - 1_000_000;
        assert_eq!(times[1], plan.flows[1].ideal + wait, "{rule}");
        assert_eq!(times[0], plan.flows[0].ideal + 10 * PACKET, "{rule}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 40 / 256, ..ProptestConfig::default() })]

    /// Every flow ends, none sooner than its ideal, no packet is sent twice, and threads change nothing.
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
