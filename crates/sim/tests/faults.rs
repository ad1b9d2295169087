//! Links that fail, lose and corrupt: the losses equal the computed ones, and all other packets arrive.

use crate::common;

use common::{plan, plan_with, run};
use proptest::prelude::*;
use std::collections::BTreeSet;
use xoff_plan::plan::{DELIVER, ENDS, Plan};
use xoff_sim::outcome::{DropReason, Outcome, Stop};

/// A packet of 1062 B at 100 Gbit/s, and the delay of a link, in picoseconds.
const T: u64 = 84_960;
const D: u64 = 1_000_000;
/// Packets of the flow under test.
const PACKETS: u64 = 1_000;

fn dropped(outcome: &Outcome, reason: DropReason) -> u64 {
    outcome.drops.iter().filter(|d| d.reason == reason).map(|d| d.packets).sum()
}

/// How many packets are on the link `hop` (from 0) at `from`, or would enter it
/// before `until`. Packet k begins there at (k + hop)·T + hop·D and arrives a
/// T and a D later.
fn caught(hop: u64, from: u64, until: u64) -> u64 {
    let begins = |k: u64| (k + hop) * T + hop * D;
    (0..PACKETS).filter(|&k| begins(k) < until && begins(k) + T + D > from).count() as u64
}

/// One flow over one switch whose second link is down from 20 us to 30 us.
#[test]
fn a_failed_link_loses_packets_on_it_and_packets_sent_to_it() {
    for scheme in ["none", "pfc"] {
        let plan = plan(&format!(
            "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 2\nlink = {{rate=\"100Gbps\", delay=\"1us\"}}\n\
             [flow_control]\nscheme = \"{scheme}\"\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"{PACKETS}kB\"\n\
             [[failure]]\nlink = \"S0.0-H1\"\nat = \"20us\"\nuntil = \"30us\"\n[routing]\nreconvergence = \"1ms\"\n"
        ));
        let outcome = run(&plan);
        let flow = outcome.flows[0];
        assert_eq!(flow.dropped, caught(1, 20 * D, 30 * D));
        assert!(flow.completed.is_some() && flow.timeouts == 0, "the gap is found by a NACK");
        // ACKs of 66 B (5.28 ns) on the same link at that time: one for each packet
        // that has arrived.
        let acks =
            (0..PACKETS).map(|k| (k + 2) * T + 2 * D).filter(|&t| t < 20 * D && t + 5_280 + D > 20 * D);
        let at_switch = plan
            .topology
            .ports
            .iter()
            .position(|p| plan.topology.nodes[p.node as usize].name == "S0.0" && p.index == 1);
        let lost: u64 =
            outcome.drops.iter().filter(|d| Some(d.ingress as usize) == at_switch).map(|d| d.packets).sum();
        assert_eq!(lost, acks.count() as u64);
        assert!(outcome.drops.iter().all(|d| d.reason == DropReason::LinkDown));
    }
}

/// One flow over one switch, whose second link loses or corrupts every frame of the switch from 20 us to 30 us. The
/// retransmission begins after that.
#[test]
fn losses_begin_and_end() {
    for (kind, reason) in [("loss", DropReason::FrameLost), ("corruption", DropReason::FrameCorrupted)] {
        let plan = plan(&format!(
            "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 2\nlink = {{rate=\"100Gbps\", delay=\"1us\"}}\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"{PACKETS}kB\"\n\
             [[loss]]\nlink = \"S0.0-H1\"\nfrom = \"S0.0\"\nrate = 1.0\nkind = \"{kind}\"\nat = \"20us\"\nuntil = \"30us\"\n"
        ));
        let outcome = run(&plan);
        let begins = |k: u64| (k + 1) * T + D;
        let hit = (0..PACKETS).filter(|&k| (20 * D..30 * D).contains(&begins(k))).count() as u64;
        assert!(hit > 100);
        assert_eq!((outcome.flows[0].dropped, dropped(&outcome, reason)), (hit, hit));
        assert_eq!((outcome.stop, outcome.flows[0].timeouts), (Stop::AllDone, 0));
    }
}

/// The number of a lost pause frame counts from the beginning of the losses.
#[test]
fn control_frames_are_counted_from_the_beginning_of_losses() {
    let lost = |more: &str| {
        let plan = plan(&format!(
            "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 3\nlink = {{rate=\"100Gbps\", delay=\"1us\"}}\n\
             [flow_control]\nxoff = \"20kB\"\nxon = \"10kB\"\nheadroom = \"1MB\"\n\
             [[traffic]]\nkind = \"incast\"\nto = \"H2\"\nfan_in = 2\nsize = \"1MB\"\n\
             [[loss]]\nlink = \"S0.0-H0\"\nfrom = \"S0.0\"\ncontrol_frame = 1\n{more}\n[switch]\nbuffer = \"10MB\"\n"
        ));
        let outcome = run(&plan);
        assert_eq!(outcome.stop, Stop::AllDone);
        outcome.drops.iter().map(|d| (d.reason, d.packets)).collect::<Vec<_>>()
    };
    let (whole, late) = (lost(""), lost("at = \"50us\""));
    assert_eq!(whole, [(DropReason::FrameLost, 1)]);
    assert_eq!(late, whole);
    assert_eq!(lost("at = \"50us\"\nuntil = \"50001ns\""), [], "none is sent in a nanosecond");
}

const LEAF_SPINE: &str = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
    host_link = {rate=\"100Gbps\", delay=\"1us\"}\nfabric_link = {rate=\"100Gbps\", delay=\"1us\"}\n";

fn one_flow(rest: &str) -> String {
    format!(
        "{LEAF_SPINE}[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H2\"\nsize = \"{PACKETS}kB\"\n{rest}"
    )
}

/// The link that a flow's route takes at `hop`, as scenarios name it.
fn link(plan: &Plan, flow: usize, hop: usize) -> String {
    plan.topology.port_name(plan.hops[plan.flows[flow].path as usize + hop])
}

#[test]
fn rerouting_loses_packets_in_flight_until_routes_change() {
    let intact = plan(&one_flow(""));
    for (hop, follow_us) in [(1, 0), (1, 7), (2, 0), (2, 3)] {
        let failed = link(&intact, 0, hop as usize);
        let plan = plan(&one_flow(&format!(
            "[[failure]]\nlink = \"{failed}\"\nat = \"20us\"\n[routing]\nreconvergence = \"{follow_us}us\"\n"
        )));
        let outcome = run(&plan);
        // Between the failure and the new routes packets continue towards the failed link. Packets that are
        // one link before it then turn; later ones are safe.
        assert_eq!(outcome.flows[0].dropped, caught(hop, 20 * D, (20 + follow_us) * D), "{failed}");
        assert_eq!((outcome.stop, outcome.flows[0].timeouts), (Stop::AllDone, 0));
        assert_eq!(dropped(&outcome, DropReason::Unreachable), 0);
        let port = intact.hops[intact.flows[0].path as usize + hop as usize];
        let crossed = (0..PACKETS).filter(|&k| (k + hop) * T + hop * D < 20 * D).count() as u64;
        assert_eq!(outcome.ports[port as usize].data_packets, crossed, "nothing enters a dead link");
    }
}

#[test]
fn links_down_from_the_start_are_never_used() {
    let intact = plan(&one_flow(""));
    let text = one_flow(&format!("[[failure]]\nlink = \"{}\"\nat = \"0us\"\n", link(&intact, 0, 1)));
    let plan = plan(&text);
    let outcome = run(&plan);
    assert!(outcome.drops.is_empty() && plan.faults.reroutes.is_empty());
    // The other spine is as far away: the same time.
    assert_eq!(outcome.flows[0].completed, Some(plan.flows[0].ideal));
}

#[test]
fn a_destination_without_a_path_is_unreachable_until_the_link_is_up() {
    let plan = plan(&one_flow(
        "[[failure]]\nlink = \"S0.1-H2\"\nat = \"20us\"\nuntil = \"60us\"\n[routing]\nreconvergence = \"5us\"\n[transport]\nrto = \"100us\"\n",
    ));
    let outcome = run(&plan);
    assert_eq!(outcome.stop, Stop::AllDone);
    let flow = outcome.flows[0];
    // The last link is dead from 20 us; from 25 us on no route leads there, and
    // packets are dropped as they reach the next device; from 65 us on there is one
    // again. Packet k is sent at k·T and at the first switch a T and a D later.
    let stopped = (0..PACKETS).filter(|&k| (25 * D..65 * D).contains(&((k + 1) * T + D))).count() as u64;
    let first = plan.topology.ports[plan.hops[plan.flows[0].path as usize] as usize].peer;
    let unreachable: u64 = outcome
        .drops
        .iter()
        .filter(|d| d.reason == DropReason::Unreachable && d.ingress == first)
        .map(|d| d.packets)
        .sum();
    // Packets already further on turn around nowhere and are dropped there.
    assert_eq!(unreachable, stopped);
    assert!(flow.dropped > stopped && flow.delivered_bytes == PACKETS * 1_000);
}

/// Two senders at line rate to one receiver, over a switch that fails at 15 us: all packets that they have
/// begun to send are lost, except those that have arrived by then.
#[test]
fn a_switch_that_fails_loses_its_packets() {
    let plan = plan(
        "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 3\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n\
         [[traffic]]\nkind = \"incast\"\nfan_in = 2\nto = \"H0\"\nsize = \"200kB\"\n\
         [[failure]]\nswitch = \"S0.0\"\nat = \"15us\"\nuntil = \"40us\"\n[transport]\nrto = \"100us\"\n",
    );
    let outcome = run(&plan);
    assert_eq!(outcome.stop, Stop::AllDone);
    let begun = 2 * (0..200).filter(|k| k * T < 15 * D).count();
    let arrived = (0..200).filter(|j| (j + 2) * T + 2 * D <= 15 * D).count();
    let lost: u64 = outcome.flows.iter().map(|f| f.dropped).sum();
    assert_eq!(lost, (begun - arrived) as u64);
    assert_eq!(outcome.counters.sent, outcome.counters.delivered + lost);
}

/// Pauses end with their link, and begin afresh where the ingress is still full.
#[test]
fn pauses_do_not_outlive_their_link() {
    let text = "[topology]\nkind = \"line\"\nswitches = 2\nhosts_per_switch = 3\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n\
         [flow_control]\nscheme = \"pfc\"\nxoff = \"20kB\"\nxon = \"10kB\"\n\
         [[slow_receiver]]\nhost = \"H3\"\nstall_from = \"5us\"\nstall_until = \"300us\"\n\
         [[traffic]]\nkind = \"incast\"\nfan_in = 3\nfrom = [\"H0\", \"H1\", \"H2\"]\nto = \"H3\"\nsize = \"300kB\"\n\
         [[failure]]\nlink = \"S0.0-S0.1\"\nat = \"100us\"\nuntil = \"120us\"\n[transport]\nrto = \"1ms\"\n";
    let plan = plan(text);
    let outcome = run(&plan);
    assert_eq!(outcome.stop, Stop::AllDone);
    let between = plan.topology.ports.iter().position(|p| {
        plan.topology.nodes[p.node as usize].name == "S0.0"
            && plan.topology.nodes[plan.topology.ports[p.peer as usize].node as usize].name == "S0.1"
    });
    let pauses: Vec<(u64, u64)> = outcome
        .pauses
        .iter()
        .filter(|p| Some(p.port as usize) == between)
        .map(|p| (p.from, p.until.expect("the receiver reads again")))
        .collect();
    // The stall reaches back to S0.0 long before the link fails, which ends the pause at once. At 120 us no
    // packet is sent until the frame that S0.1 sends at once (64 B) has arrived; its pause lasts until the
    // stall is over.
    assert!(pauses.iter().any(|&(from, until)| from < 100 * D && until == 100 * D), "{pauses:?}");
    assert!(pauses.iter().any(|&(from, until)| from == 121 * D + 5_120 && until > 300 * D), "{pauses:?}");
    assert!(!pauses.iter().any(|&(from, _)| (100 * D..=121 * D).contains(&from)));
}

#[test]
fn flapping_uses_its_tables_again() {
    let text = format!(
        "{LEAF_SPINE}[[traffic]]\nkind = \"permutation\"\nsize = \"500kB\"\n\
         [[failure]]\nlink = \"S0.0-S1.0\"\nat = \"3us\"\nuntil = \"7us\"\nevery = \"10us\"\ntimes = 40\n\
         [routing]\nreconvergence = \"1us\"\n[transport]\nrto = \"100us\"\n"
    );
    let plan = plan(&text);
    assert_eq!(plan.faults.reroutes.len(), 80);
    assert!(plan.faults.tables.len() <= 6, "{}", plan.faults.tables.len());
    check_tables(&plan);
    let outcome = run(&plan);
    assert_eq!(outcome.stop, Stop::AllDone);
    assert_eq!(outcome, run(&plan), "the same again");
}

/// Invariants of every change of routes, as data.
fn check_tables(plan: &Plan) {
    let routed_until = |start: u32| {
        let tail = &plan.hops[start as usize..];
        let end = tail.iter().position(|&h| h >= ENDS).expect("an end");
        (&tail[..end], tail[end])
    };
    let node = |port: u32| plan.topology.ports[port as usize].node;
    let connected = |ports: &[u32]| {
        ports.windows(2).all(|w| {
            let far = plan.topology.ports[w[0] as usize].peer;
            node(far) == node(w[1])
        })
    };
    for reroute in &plan.faults.reroutes {
        let table = &plan.faults.tables[reroute.table as usize];
        for route in &table.flows {
            let flow = &plan.flows[route.flow as usize];
            for (start, from, to) in [(route.path, flow.src, flow.dst), (route.ack_path, flow.dst, flow.src)]
            {
                let (ports, end) = routed_until(start);
                assert!(connected(ports) && node(ports[0]) == from);
                let arrives = plan.topology.neighbour(ports[ports.len() - 1]) == to;
                assert!(end != DELIVER || arrives);
            }
        }
        assert!(table.positions.windows(2).all(|w| w[0].0 < w[1].0));
        for &(old, new) in &table.positions {
            assert_eq!(plan.hops[old as usize], plan.hops[new as usize], "the packet stays where it is");
            assert!(connected(routed_until(new).0));
        }
    }
}

/// Every link once, as scenarios name it.
fn links(plan: &Plan) -> Vec<String> {
    let inner = |p: u32| plan.topology.neighbour(p) == plan.topology.ports[p as usize].node;
    let ports = 0..plan.topology.ports.len() as u32;
    ports
        .filter(|&p| p < plan.topology.ports[p as usize].peer && !inner(p))
        .map(|p| plan.topology.port_name(p))
        .collect()
}

const FABRICS: [&str; 6] = [
    "kind = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 2\nlinks_per_pair = 2\nhost_link = {rate=\"100Gbps\", delay=\"500ns\"}\nfabric_link = {rate=\"40Gbps\", delay=\"1us\"}\n",
    "kind = \"ring\"\nswitches = 5\nhosts_per_switch = 2\nlink = {rate=\"100Gbps\", delay=\"300ns\"}\n",
    "kind = \"fat-tree\"\nk = 4\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n",
    "kind = \"ndc\"\nn = 3\nk = 1\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n",
    "kind = \"ndc\"\nn = 2\nk = 2\nlink = {rate=\"25Gbps\", delay=\"100ns\"}\n[routing]\nkind = \"shortest-path\"\n",
    "kind = \"line\"\nswitches = 3\nhosts_per_switch = 2\nlink = {rate=\"10Gbps\", delay=\"2us\"}\n",
];

/// One failure: which link, when (in ns), how long, how often, and whether the
/// link's first switch fails with it.
type Fault = (usize, u64, u64, u32, bool);

fn faults(plan: &Plan, faults: &[Fault]) -> String {
    let (links, mut text) = (links(plan), String::new());
    for &(which, at, length, times, whole) in faults {
        let link = &links[which % links.len()];
        let node = link.split(':').next().unwrap_or(link);
        let what = if whole && node.starts_with('S') {
            format!("switch = \"{node}\"")
        } else {
            format!("link = \"{link}\"")
        };
        text += &format!("[[failure]]\n{what}\nat = \"{at}ns\"\nuntil = \"{}ns\"\n", at + length);
        if times > 1 {
            text += &format!("every = \"{}ns\"\ntimes = {times}\n", 2 * length + 1);
        }
    }
    text
}

fn fault() -> impl Strategy<Value = Fault> {
    (0usize..200, prop_oneof![Just(0u64), 0u64..300_000], 1u64..80_000, 1u32..5, any::<bool>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 400 / 256))]
    /// For any failures and recoveries: packets are conserved and no lossless packet is lost for lack of
    /// buffer (`run` asserts both), and unless the fabric deadlocks, every flow completes in the end.
    #[test]
    fn packets_are_conserved_under_any_failure(
        fabric in 0usize..FABRICS.len(), broken in prop::collection::vec(fault(), 1..5), follow in 0u64..60_000,
        seed in 0u64..1_000, response in 0u64..2_000, dynamic in any::<bool>(), quanta in prop::sample::select(vec![300u32, 65_535]),
        slow in any::<bool>(), lossy in any::<bool>(),
    ) {
        let control = if dynamic { "alpha = 0.01\n" } else { "xoff = \"20kB\"\nxon = \"10kB\"\n" };
        let (head, routing) = FABRICS[fabric].split_once("[routing]\n").unwrap_or((FABRICS[fabric], ""));
        let mut text = format!(
            "[topology]\n{head}[routing]\n{routing}reconvergence = \"{follow}ns\"\n[switch]\nbuffer = \"20MB\"\n\
             [flow_control]\nscheme = \"pfc\"\n{control}response_time = \"{response}ns\"\nquanta = {quanta}\n\
             [transport]\nrto = \"300us\"\n[run]\nseed = {seed}\n\
             [[traffic]]\nkind = \"incast\"\nfan_in = 4\nsize = \"150kB\"\nto = \"H0\"\n\
             [[traffic]]\nkind = \"permutation\"\nsize = \"100kB\"\npriority = {}\n", if lossy { 2 } else { 3 },
        );
        if lossy {
            text = text.replace("scheme = \"pfc\"\n", "scheme = \"pfc\"\npriorities = [3]\n");
        }
        if slow {
            text += "[[slow_receiver]]\nhost = \"H0\"\nrate = \"20Gbps\"\nstall_from = \"20us\"\nstall_until = \"90us\"\n";
        }
        let intact = plan(&text);
        let plan = plan(&(text + &faults(&intact, &broken)));
        check_tables(&plan);
        let outcome = run(&plan);
        if outcome.deadlock.is_none() {
            prop_assert_eq!(outcome.stop, Stop::AllDone);
        }
        let known = [DropReason::LinkDown, DropReason::Unreachable];
        prop_assert!(outcome.drops.iter().all(|d| known.contains(&d.reason) || !d.lossless), "{:?}", outcome.drops);
    }
}

/// A ring that is deadlocked while the data of two flows still gets through: their
/// acknowledgements do not, and they would repeat themselves for ever.
#[test]
fn a_deadlock_ends_the_run_though_senders_repeat_themselves() {
    let outcome = run(&plan(
        "[topology]\nkind = \"ring\"\nswitches = 5\nhosts_per_switch = 2\nlink = {rate=\"100Gbps\", delay=\"300ns\"}\n\
         [routing]\nreconvergence = \"49739ns\"\n[switch]\nbuffer = \"20MB\"\n\
         [flow_control]\nscheme = \"pfc\"\nxoff = \"20kB\"\nxon = \"10kB\"\nresponse_time = \"784ns\"\nquanta = 300\n\
         [transport]\nrto = \"300us\"\n[run]\nseed = 760\n\
         [[traffic]]\nkind = \"incast\"\nfan_in = 4\nsize = \"150kB\"\nto = \"H0\"\n\
         [[traffic]]\nkind = \"permutation\"\nsize = \"100kB\"\n\
         [[failure]]\nlink = \"H7:0\"\nat = \"99059ns\"\nuntil = \"140679ns\"\nevery = \"83241ns\"\ntimes = 4\n",
    ));
    assert!(outcome.deadlock.is_some() && outcome.flows.iter().any(|flow| flow.retransmitted > 50));
    assert_eq!(outcome.stop, Stop::Starved);
}

/// A loss process on the first link, in the direction of the data: frames hit
/// and frames sent.
fn hit(process: &str, seed: u64) -> (u64, u64, Outcome) {
    let plan = plan(&format!(
        "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 2\nlink = {{rate=\"100Gbps\", delay=\"100ns\"}}\n\
         [flow_control]\nscheme = \"none\"\n[run]\nseed = {seed}\n[transport]\nrto = \"20us\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"20MB\"\n\
         [[loss]]\nlink = \"H0-S0.0\"\nfrom = \"H0\"\n{process}\n"
    ));
    let outcome = run(&plan);
    assert!(outcome.flows[0].completed.is_some());
    let hit = outcome.drops.iter().map(|d| d.packets).sum();
    (hit, outcome.ports[plan.hops[plan.flows[0].path as usize] as usize].packets, outcome)
}

/// Within five standard deviations of the binomial distribution.
#[test]
fn frames_are_hit_at_their_rate() {
    // A frame of 1062 B escapes bit errors with (1 - ber)^8496.
    let by_bit = 1.0 - (0..8_496).fold(1.0, |escapes, _| escapes * (1.0 - 2e-6));
    for (process, probability, reason) in [
        ("rate = 0.01", 0.01, DropReason::FrameLost),
        ("rate = 0.001\nkind = \"corruption\"", 0.001, DropReason::FrameCorrupted),
        ("ber = 2e-6\nkind = \"corruption\"", by_bit, DropReason::FrameCorrupted),
    ] {
        let (hits, frames, outcome) = hit(process, 3);
        assert!(outcome.drops.iter().all(|d| d.reason == reason));
        let (mean, deviation) =
            (frames as f64 * probability, (frames as f64 * probability * (1.0 - probability)).sqrt());
        assert!(
            (hits as f64 - mean).abs() < 5.0 * deviation,
            "{process}: {hits} of {frames}, expected {mean}"
        );
        assert!(frames > 20_000 && hits > 5);
    }
    assert_ne!(hit("rate = 0.01", 3).0, hit("rate = 0.01", 4).0, "seeds draw anew");
}

/// Go-back-N over lossy links, ACKs and pause frames hit as well: everything
/// arrives once and in order (`run` compares the bytes).
#[test]
fn go_back_n_completes_under_loss() {
    for rate in ["1e-4", "1e-3", "1e-2"] {
        for scheme in ["none", "pfc"] {
            let mut text = format!(
                "{LEAF_SPINE}[flow_control]\nscheme = \"{scheme}\"\n[switch]\nbuffer = \"32MB\"\n[transport]\nrto = \"100us\"\n\
                 [[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n"
            );
            for link in ["H0-S0.0", "S0.0-S1.0", "S0.1-S1.1", "S0.1-H2", "S0.1-H3"] {
                text += &format!("[[loss]]\nlink = \"{link}\"\nrate = {rate}\n");
            }
            let plan = plan(&text);
            let outcome = run(&plan);
            assert_eq!(outcome.stop, Stop::AllDone);
            let resent: u64 = outcome.flows.iter().map(|f| f.retransmitted).sum();
            assert!(rate == "1e-4" || resent > 0, "{rate}");
        }
    }
}

/// A flow whose path is spelt out does not leave it.
#[test]
fn an_explicit_path_waits_for_its_link() {
    let text = format!(
        "{LEAF_SPINE}[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H2\"\nsize = \"1MB\"\npath = [\"H0\", \"S0.0\", \"S1.1\", \"S0.1\", \"H2\"]\n\
         [[failure]]\nlink = \"S0.0-S1.1\"\nat = \"10us\"\nuntil = \"200us\"\n[transport]\nrto = \"50us\"\n"
    );
    let outcome = run(&plan(&text));
    assert_eq!(outcome.stop, Stop::AllDone);
    assert!(outcome.flows[0].completed > Some(200 * D) && outcome.flows[0].timeouts > 0);
}

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/fat-tree-failed-links.toml");

/// Two failed links make shortest paths go down and up again; then buffers depend on each other in a cycle,
/// which they never do in a tree.
#[test]
fn a_fat_tree_deadlocks_with_two_failed_links_and_never_intact() {
    let text = std::fs::read_to_string(EXAMPLE).expect("the example exists");
    let failed = plan(&text);
    let outcome = run(&failed);
    let deadlock = outcome.deadlock.expect("it deadlocks");
    let nodes: BTreeSet<&str> = deadlock
        .cycle
        .iter()
        .map(|h| failed.topology.nodes[failed.topology.ports[h.port as usize].node as usize].name.as_str())
        .collect();
    assert!(nodes.len() >= 4, "{nodes:?}");
    let intact = text.split("[[failure]]").next().expect("the failures come last").to_owned();
    let mut pauses = 0;
    for seed in 0..100 {
        let plan = plan_with(&intact, &[("run.seed", &seed.to_string()), ("run.duration", "1200us")]);
        let outcome = run(&plan);
        assert!(outcome.deadlock.is_none(), "seed {seed}");
        pauses += outcome.pauses.len();
    }
    assert!(pauses > 1_000, "{pauses}");
}
