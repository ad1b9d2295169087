//! The head-of-line blocking oracle: who waits for whose congestion.

use crate::common;

use common::{plan, plan_with, run};
use proptest::prelude::*;
use std::collections::BTreeMap;
use xoff_net::topology::PortId;
use xoff_plan::plan::Plan;
use xoff_sim::outcome::{Blame, Blocking, FlowBlame, Outcome, Pause, Place};

fn found(outcome: &Outcome) -> &Blocking {
    outcome.blocking.as_ref().expect("the oracle watched")
}

/// The egress port of node `a` that leads to node `b`.
fn port(plan: &Plan, a: &str, b: &str) -> PortId {
    let node = |name: &str| plan.topology.find(name).expect("a node");
    let ports = &plan.topology.nodes[node(a) as usize].ports;
    *ports.iter().find(|&&p| plan.topology.neighbour(p) == node(b)).expect("neighbours")
}

/// Three switches in a line. A sends to X after the last one, over a link that is ten times slower than the
/// others; B sends to Y at the middle one, and shares with A the link between the first two.
const LINE: &str = "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"B\", \"X\", \"Y\"]\n\
    switches = [\"S0\", \"S1\", \"S2\"]\nlinks = [\n\
    {a=\"A\", b=\"S0\", rate=\"100Gbps\", delay=\"100ns\"}, {a=\"B\", b=\"S0\", rate=\"100Gbps\", delay=\"100ns\"},\n\
    {a=\"S0\", b=\"S1\", rate=\"100Gbps\", delay=\"100ns\"}, {a=\"S1\", b=\"S2\", rate=\"100Gbps\", delay=\"100ns\"},\n\
    {a=\"S2\", b=\"X\", rate=\"10Gbps\", delay=\"100ns\"}, {a=\"S1\", b=\"Y\", rate=\"100Gbps\", delay=\"100ns\"}]\n\
    [flow_control]\nscheme = \"pfc\"\nxoff = \"5kB\"\nxon = \"2kB\"\n\
    [transport]\nmtu = \"938B\"\nheader = \"62B\"\nack_every = 1000000\nrto = \"1s\"\n\
    [measure]\nblocking = true\n[run]\nduration = \"6us\"\n\
    [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"X\"\nsize = \"28140B\"\n\
    [[traffic]]\nkind = \"flow\"\nsrc = \"B\"\ndst = \"Y\"\nsize = \"9380B\"\nstart = \"1500ns\"\n";

/// Worked out by hand. A packet has 1000 B: 80 ns at 100 Gbit/s, 800 ns on the
/// slow link, and 180 ns from the beginning of its transmission to its arrival.
/// A pause frame takes 5.12 ns and 100 ns of cable. No ACK is on any wire. Times
/// in ns; packet i of A arrives at S0 at 180 + 80 i, at S1 at 360 + 80 i, at S2
/// at 540 + 80 i as long as nothing is paused.
///
/// *S2 pauses S1.* A0 leaves for X at once, at 540; the next ones leave at 1340,
/// 2140, … So the ingress of S2 holds 5 kB when A5 arrives, at 940: pause from
/// 940 + 105.12 = 1045.12. By then S1 has begun to send A8 (1000 to 1080), so
/// that S2 holds A1 to A8. Of these 2 kB are left when A6 leaves, at
/// 540 + 6 · 800 = 5340: the pause ends at 5445.12.
///
/// *S1 pauses S0.* A9 arrives at 1080 and waits. A13 makes 5 kB at 1400: pause
/// from 1505.12. S0 has begun to send A16 at 1460, so that S1 holds A9 to A16.
///
/// *S0 pauses A and B.* A17 arrives at 1540 and waits. A21 makes 5 kB at 1860:
/// A is paused from 1965.12, when A24 is on the wire. B0 arrives at
/// 1500 + 180 = 1680 and waits. B4 makes 5 kB at 2000: B is paused from 2105.12,
/// when B7 is on the wire. Both still have packets to send (30 and 10 in all).
///
/// *After 5445.12* S1 sends A9 to A13, 80 apart, and with the beginning of A14,
/// at 5845.12, holds 2 kB: S0 goes on at 5950.24, and sends A17. A9 makes the
/// 2 kB in S2 3, at 5625.12, and A11 5, at 5785.12: pause again from 5890.24,
/// with A14 on the wire, and A15 and A16 waiting. The run ends at 6000.
#[test]
fn three_switches_to_the_picosecond() {
    let plan = plan(LINE);
    let outcome = run(&plan);
    let port = |a, b| port(&plan, a, b);
    let root = port("S2", "X");

    let pauses: Vec<_> = outcome.pauses.iter().map(|p| (p.port, p.from, p.until, p.root)).collect();
    let by_hand = [
        (port("S1", "S2"), 1_045_120, Some(5_445_120), Some(root)),
        (port("S0", "S1"), 1_505_120, Some(5_950_240), Some(root)),
        (port("A", "S0"), 1_965_120, None, Some(root)),
        (port("B", "S0"), 2_105_120, None, Some(root)),
        (port("S1", "S2"), 5_890_240, None, Some(root)),
    ];
    assert_eq!(pauses, by_hand);

    // S1 to S2: A9 to A16 from 1080, 1160, … to 5445.12, then A15 and A16 from
    // 5890.24 to 6000. All of it is for A, which goes to X.
    let first: u64 = (0..8).map(|k| 5_445_120 - (1_080_000 + 80_000 * k)).sum();
    let again = 2 * (6_000_000 - 5_890_240);
    assert_eq!((first, again), (32_680_960, 219_520));
    // S0 to S1: A17 to A24 from 1540, 1620, …, and B0 to B7 from 1680, 1760, …,
    // to 5950.24. B never comes to S2.
    let shared: u64 = (0..8).map(|k| 5_950_240 - (1_540_000 + 80_000 * k)).sum();
    let victims: u64 = (0..8).map(|k| 5_950_240 - (1_680_000 + 80_000 * k)).sum();
    assert_eq!((shared, victims), (33_041_920, 31_921_920));
    // The queue pairs: from their pauses to the end.
    let (a, b) = (6_000_000 - 1_965_120, 6_000_000 - 2_105_120);

    let found = found(&outcome);
    // PFC's frames name no port: a victim is one in both senses.
    let blame = |own, victim, source_own, source_victim| FlowBlame {
        own,
        victim,
        source_own,
        source_victim,
        named_victim: victim,
        source_named_victim: source_victim,
    };
    assert_eq!(found.flows, [blame(first + again + shared, 0, a, 0), blame(0, victims, 0, b)]);
    let place = |pauses, own, victim, source_own, source_victim| Blame {
        pauses,
        own,
        victim,
        source_own,
        source_victim,
        named_victim: victim,
        source_named_victim: source_victim,
    };
    let at = |a, b| Place { port: port(a, b), root, named: None };
    let mut places = vec![
        (at("S1", "S2"), place(2, first + again, 0, 0, 0)),
        (at("S0", "S1"), place(1, shared, victims, 0, 0)),
        (at("A", "S0"), place(1, 0, 0, a, 0)),
        (at("B", "S0"), place(1, 0, 0, 0, b)),
    ];
    places.sort_by_key(|p| p.0);
    assert_eq!(found.places, places);
}

/// The same with B on its path to the last switch: it waits in the same queues, for the port next to its own,
/// and is also a victim. On its path to X it is not.
#[test]
fn the_path_decides_and_not_the_queue() {
    let to = |host: &str, at: &str| {
        let text = LINE
            .replace("{a=\"S1\", b=\"Y\"", &format!("{{a=\"{at}\", b=\"Y\""))
            .replace("dst = \"Y\"", &format!("dst = \"{host}\""));
        let plan = plan(&text);
        let outcome = run(&plan);
        let root = port(&plan, "S2", "X");
        assert!(outcome.pauses.iter().all(|p| p.root == Some(root)));
        found(&outcome).flows[1]
    };
    let (near, far, same) = (to("Y", "S1"), to("Y", "S2"), to("X", "S1"));
    assert_eq!((near.victim, near.source_victim), (far.victim, far.source_victim));
    assert_eq!((near.own, near.source_own, far.own, far.source_own), (0, 0, 0, 0));
    assert_eq!((same.own, same.source_own), (near.victim, near.source_victim));
    assert_eq!((same.victim, same.source_victim), (0, 0));
}

/// Incasts into single hosts, and flows between all hosts beside them.
const MIX: &str = "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 8\n\
    host_link = {rate=\"100Gbps\", delay=\"1us\"}\nfabric_link = {rate=\"200Gbps\", delay=\"1us\"}\n\
    [switch]\nbuffer = \"64MB\"\n[flow_control]\nscheme = \"pfc\"\n\
    [transport]\nrto = \"1s\"\n[measure]\nblocking = true\n[run]\nduration = \"300us\"\ndrain = \"700us\"\n\
    [[traffic]]\nname = \"background\"\nkind = \"poisson\"\nsizes = \"websearch\"\nload = 0.4\n\
    [[traffic]]\nname = \"incast\"\nkind = \"incast\"\nfan_in = 24\nsize = \"200kB\"\nto = \"random\"\nperiod = \"100us\"\n";

/// The schemes, with thresholds at which they pause in the mix.
const SCHEMES: [&[(&str, &str)]; 3] = [
    &[("flow_control.scheme", "pfc"), ("flow_control.xoff", "60kB"), ("flow_control.xon", "50kB")],
    &[("flow_control.scheme", "bfc"), ("flow_control.queues", "8")],
    &[("flow_control.scheme", "per-flow-queue")],
];

/// Victim waits (packets and queue pairs) of background flows whose route
/// shares a link with an incast's but not its last one, and the same of all flows.
fn victim(plan: &Plan, outcome: &Outcome) -> (u64, u64) {
    let route = |flow: usize| {
        let path = plan.flows[flow].path as usize;
        plan.hops[path..].iter().copied().take_while(|&p| (p as usize) < plan.topology.ports.len())
    };
    let incasts: Vec<usize> = (0..plan.flows.len()).filter(|&f| plan.flows[f].class == 1).collect();
    let mut crossed = vec![false; plan.topology.ports.len()];
    incasts.iter().flat_map(|&f| route(f)).for_each(|p| crossed[p as usize] = true);
    let receivers: Vec<_> = incasts.iter().map(|&f| plan.flows[f].dst).collect();
    let (mut vulnerable, mut all) = (0, 0);
    for (f, blame) in found(outcome).flows.iter().enumerate() {
        let its = blame.victim + blame.source_victim;
        all += its;
        let flow = &plan.flows[f];
        if flow.class == 0 && !receivers.contains(&flow.dst) && route(f).any(|p| crossed[p as usize]) {
            vulnerable += its;
        }
    }
    (vulnerable, all)
}

#[test]
fn queues_of_their_own_spare_the_victim_and_few_queues_some() {
    let with = |scheme: &[(&str, &str)]| {
        let plan = plan_with(MIX, scheme);
        let outcome = run(&plan);
        let pauses = outcome.pauses.iter().filter(|p| p.root.is_some()).count();
        assert!(pauses > 100 && outcome.drops.is_empty(), "{scheme:?}: {pauses} pauses");
        victim(&plan, &outcome)
    };
    let [(pfc, _), (bfc, _), (alone, all)] = SCHEMES.map(with);
    assert_eq!((alone, all), (0, 0), "a flow waits for itself alone");
    assert!(0 < bfc && bfc < pfc, "{bfc} {pfc}");
}

#[test]
fn watching_changes_nothing_else() {
    for scheme in SCHEMES {
        let watched = plan_with(MIX, scheme);
        let mut bare = watched.clone();
        bare.measure.blocking = false;
        let (mut with, without) = (run(&watched), run(&bare));
        assert!(with.pauses.len() > 100 && with.pauses.iter().all(|p| p.root.is_some()), "{scheme:?}");
        assert!(without.pauses.iter().all(|p| p.root.is_none()) && without.blocking.is_none());
        with.blocking = None;
        with.pauses.iter_mut().for_each(|p| (p.root, p.links) = (None, 0));
        assert!(with == without, "{scheme:?}");
    }
}

#[test]
fn threads_change_nothing() {
    for scheme in SCHEMES {
        // One window of threads after another takes long where cores are few.
        let short = [scheme, &[("run.duration", "60us"), ("run.drain", "40us")]].concat();
        let plan = plan_with(MIX, &short);
        let one = run(&plan);
        assert!(!found(&one).places.is_empty(), "{scheme:?}");
        for threads in 2..=4 {
            let outcome = xoff_sim::run_on(&plan, threads, &mut |_| true);
            assert!(outcome == one, "{scheme:?} on {threads} threads");
        }
    }
}

/// A random fabric with hosts on every switch.
fn fabric() -> impl Strategy<Value = String> {
    let link = || {
        (prop::sample::select(vec![25u64, 40, 100, 200]), 0u64..3_000)
            .prop_map(|(rate, delay)| format!("{{rate=\"{rate}Gbps\", delay=\"{delay}ns\"}}"))
    };
    let clos = (3u32..5, 1u32..4, 1u32..5, link(), link()).prop_map(|(leaves, spines, hosts, host, fabric)| {
        format!("kind = \"leaf-spine\"\nleaves = {leaves}\nspines = {spines}\nhosts_per_leaf = {hosts}\nhost_link = {host}\nfabric_link = {fabric}\n")
    });
    let chain = (prop::sample::select(vec!["line", "ring"]), 3u32..6, 1u32..4, link(), link()).prop_map(
        |(kind, switches, hosts, link, fabric)| {
            format!("kind = \"{kind}\"\nswitches = {switches}\nhosts_per_switch = {hosts}\nlink = {link}\nfabric_link = {fabric}\n")
        },
    );
    prop_oneof![clos, chain]
}

fn scheme() -> impl Strategy<Value = String> {
    prop_oneof![
        (2u64..80, 0u64..60).prop_map(|(xoff, gap)| format!(
            "scheme = \"pfc\"\nxoff = \"{xoff}kB\"\nxon = \"{}kB\"\n",
            xoff.saturating_sub(gap)
        )),
        (1u64..2_000).prop_map(|response| format!("scheme = \"pfc\"\nresponse_time = \"{response}ns\"\n")),
        (2u32..12, any::<bool>()).prop_map(|(queues, acks)| format!(
            "scheme = \"bfc\"\nqueues = {queues}\nacks = \"{}\"\n",
            if acks { "queues" } else { "control" }
        )),
        (1u64..60).prop_map(|xoff| format!("scheme = \"per-flow-queue\"\nxoff = \"{xoff}kB\"\n")),
    ]
}

/// Invariants of the oracle's results in any run.
fn consistent(plan: &Plan, outcome: &Outcome) {
    let found = found(outcome);
    let topology = &plan.topology;
    // The waits of places and of flows are the same.
    let mut sums = [[0u64; 6]; 2];
    for (place, b) in &found.places {
        [b.own, b.victim, b.source_own, b.source_victim, b.named_victim, b.source_named_victim]
            .iter()
            .zip(&mut sums[0])
            .for_each(|(n, sum)| *sum += n);
        assert!(b.named_victim <= b.own + b.victim);
        if place.named.is_none_or(|named| named == place.root) {
            assert_eq!((b.named_victim, b.source_named_victim), (b.victim, b.source_victim));
        }
    }
    for f in &found.flows {
        [f.own, f.victim, f.source_own, f.source_victim, f.named_victim, f.source_named_victim]
            .iter()
            .zip(&mut sums[1])
            .for_each(|(n, sum)| *sum += n);
    }
    assert_eq!(sums[0], sums[1]);
    // Pauses by place, and by the device that they stop.
    let mut pauses: BTreeMap<Place, u64> = BTreeMap::new();
    let mut by_device: BTreeMap<_, Vec<&Pause>> = BTreeMap::new();
    for pause in &outcome.pauses {
        let root = pause.root.expect("a frame caused it, as no link fails");
        *pauses.entry(Place { port: pause.port, root, named: pause.named_root }).or_default() += 1;
        let device = topology.ports[pause.port as usize].node;
        by_device.entry((device, root, pause.lane)).or_default().push(pause);
    }
    assert_eq!(pauses, found.places.iter().map(|(place, blame)| (*place, blame.pauses)).collect());
    for pause in &outcome.pauses {
        // The root sends packets, and is at the device that asked for the pause, or that device itself was
        // paused for it when it sent the pause: since then the frame has waited for a packet and another
        // frame, crossed the cable, and waited for the peer's response.
        let root = pause.root.expect("as above");
        let device = topology.ports[pause.cause as usize].node;
        let through = &topology.ports[pause.cause as usize];
        let way = through.delay
            + 2_200 * 8 * 1_000_000_000_000 / through.rate
            + plan.flow_control.traits().response_time;
        let stood =
            |p: &&Pause| p.from <= pause.from && p.until.is_none_or(|until| until + way >= pause.from);
        assert!(outcome.ports[root as usize].packets > 0);
        assert!(
            topology.ports[root as usize].node == device
                || by_device.get(&(device, root, pause.lane)).is_some_and(|all| all.iter().rev().any(stood)),
            "{pause:?} has a root that its cause does not wait for"
        );
    }
    // At a port no more can wait than its queue ever held, each packet as long as
    // the port was paused; and of queue pairs no more than its host has.
    for port in 0..topology.ports.len() as PortId {
        let paused: u64 = outcome
            .pauses
            .iter()
            .filter(|p| p.port == port)
            .map(|p| p.until.unwrap_or(outcome.end) - p.from)
            .sum();
        let at = || found.places.iter().filter(|(place, _)| place.port == port).map(|(_, blame)| blame);
        let smallest = u64::from(plan.packet.ack);
        let packets = outcome.ports[port as usize].queue_peak / smallest;
        assert!(at().map(|b| b.own + b.victim).sum::<u64>() <= paused * packets);
        let pairs = plan.flows.iter().filter(|f| plan.hops[f.path as usize] == port).count() as u64;
        assert!(at().map(|b| b.source_own + b.source_victim).sum::<u64>() <= paused * pairs);
    }
    // A queue pair waits in one place, and while it is open.
    for (blame, flow) in found.flows.iter().zip(&outcome.flows) {
        let open = flow.started.map_or(0, |from| flow.completed.unwrap_or(outcome.end) - from);
        assert!(blame.source_own + blame.source_victim <= open);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 60 / 256))]
    #[test]
    fn the_sums_and_roots_are_consistent(
        fabric in fabric(), scheme in scheme(), seed in 0u64..10_000, burst in 1u64..200, size in 1u64..300,
        mtu in 300u64..2_000, every in 1u32..4, two in any::<bool>(),
    ) {
        let text = format!(
            "[topology]\n{fabric}[switch]\nbuffer = \"1GB\"\n[host]\nbuffer = \"1GB\"\n[flow_control]\n{scheme}\
             [transport]\nmtu = \"{mtu}B\"\nack_every = {every}\nrto = \"1s\"\n[measure]\nblocking = true\n\
             [run]\nseed = {seed}\nduration = \"200us\"\ndrain = \"1ms\"\n\
             [[traffic]]\nkind = \"incast\"\nfan_in = 2\nsize = \"{burst}kB\"\nto = \"random\"\nperiod = \"40us\"\n\
             [[traffic]]\nkind = \"permutation\"\nsize = \"{size}kB\"\npriority = {}\n",
            if two { 5 } else { 3 },
        );
        let plan = plan(&text);
        let outcome = run(&plan);
        consistent(&plan, &outcome);
        if scheme.contains("per-flow-queue") {
            prop_assert!(found(&outcome).flows.iter().all(|f| (f.victim, f.source_victim) == (0, 0)));
        }
    }
}
