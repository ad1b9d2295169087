//! Critical paths: the parts of every flow's time add up, and equal the results by hand.

use crate::common;

use common::{plan, plan_with, run};
use proptest::prelude::*;
use xoff_net::topology::PortId;
use xoff_plan::plan::{ENDS, Plan};
use xoff_schemes::flow_control::FlowControlParams;
use xoff_sim::outcome::{Leg, Outcome, Part, Share};

/// The shares of an outcome, after a check of their invariants.
fn shares(plan: &Plan, outcome: &Outcome) -> Vec<Share> {
    let shares = outcome.paths.clone().expect("the plan asks for them");
    let mut sums = vec![0; plan.flows.len()];
    for share in &shares {
        assert!(share.time > 0, "{share:?}");
        assert_eq!(share.root.is_some(), matches!(share.part, Part::Own | Part::Victim), "{share:?}");
        let names = matches!(plan.flow_control, FlowControlParams::Pyrrha(_) | FlowControlParams::PortFc(_));
        assert_eq!(share.named.is_some(), names && share.root.is_some(), "{share:?}");
        sums[share.flow as usize] += share.time;
    }
    for (flow, (seen, &sum)) in outcome.flows.iter().zip(&sums).enumerate() {
        // An unfinished flow is followed to the end of the run.
        let until = seen.completed.unwrap_or(outcome.end);
        assert_eq!(sum, seen.started.map_or(0, |started| until - started), "flow {flow}: {seen:?}");
    }
    // Packets ahead take no more time than the wait behind them.
    for of in outcome.ahead.chunk_by(|a, b| (a.flow, a.leg, a.port) == (b.flow, b.leg, b.port)) {
        let (flow, leg, port) = (of[0].flow, of[0].leg, of[0].port);
        let waited =
            shares.iter().filter(|s| (s.flow, s.leg, s.port, s.part) == (flow, leg, port, Part::Queueing));
        let (ahead, waited) = (of.iter().map(|a| a.time).sum::<u64>(), waited.map(|s| s.time).sum::<u64>());
        assert!(0 < ahead && ahead <= waited, "{ahead} {waited} {of:?}");
        assert!(of.len() <= 6 && of.iter().all(|a| a.time > 0 && a.bytes > 0), "{of:?}");
        assert!(of.windows(2).all(|pair| pair[1].other.is_none() || pair[0].time >= pair[1].time), "{of:?}");
    }
    for pair in shares.windows(2) {
        let place = |s: &Share| (s.flow, s.step, s.leg, s.part, s.root, s.named);
        assert!(place(&pair[0]) < place(&pair[1]), "{pair:?}");
    }
    shares
}

/// Those of a flow as (leg, port, part, root, ns), with names.
fn of(plan: &Plan, shares: &[Share], flow: u32) -> Vec<(Leg, String, Part, Option<String>, f64)> {
    let name = |port: PortId| plan.topology.port_name(port);
    let its = shares.iter().filter(|s| s.flow == flow);
    its.map(|s| (s.leg, name(s.port), s.part, s.root.map(name), s.time as f64 / 1e3)).collect()
}

/// A switch, hosts at 100 Gbit/s and 100 ns; a packet takes 80 ns on a link, an ACK 8.
const STAR: &str = "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 3\n\
    link = { rate = \"100Gbps\", delay = \"100ns\" }\n[flow_control]\nscheme = \"none\"\n\
    [transport]\nmtu = \"938B\"\nheader = \"62B\"\nack = \"100B\"\n[measure]\nexplain = true\n";

fn star(rest: &str) -> (Plan, Vec<Share>) {
    let plan = plan(&format!("{STAR}{rest}"));
    let outcome = run(&plan);
    let shares = shares(&plan, &outcome);
    (plan, shares)
}

fn flow(src: &str, dst: &str, size: &str, more: &str) -> String {
    format!("[[traffic]]\nkind = \"flow\"\nsrc = \"{src}\"\ndst = \"{dst}\"\nsize = \"{size}\"\n{more}\n")
}

/// The path of a packet from H0 to H1, and of its ACK, without other traffic: in ns.
fn alone() -> Vec<(Leg, String, Part, Option<String>, f64)> {
    let hop = |leg, port: &str, sending| {
        [(Part::Sending, sending), (Part::Propagation, 100.0)]
            .map(|(part, ns)| (leg, port.to_string(), part, None, ns))
    };
    [
        hop(Leg::Data, "H0:0", 80.0),
        hop(Leg::Data, "S0.0:1", 80.0),
        hop(Leg::Ack, "H1:0", 8.0),
        hop(Leg::Ack, "S0.0:0", 8.0),
    ]
    .concat()
}

#[test]
fn a_single_packet_is_sent_and_propagates() {
    let (plan, shares) = star(&flow("H0", "H1", "938B", ""));
    assert_eq!(of(&plan, &shares, 0), alone());
    assert_eq!(shares.iter().map(|s| s.time).sum::<u64>(), plan.flows[0].ideal);
}

#[test]
fn packets_before_the_last_one_are_sent_by_the_source() {
    // Ten packets: nine before the last one, without other traffic.
    let (plan, shares) = star(&flow("H0", "H1", "9380B", ""));
    let source = (Leg::Source, "H0:0".to_string(), Part::Sending, None, 720.0);
    assert_eq!(of(&plan, &shares, 0), [vec![source], alone()].concat());
}

#[test]
fn queue_pairs_of_a_nic_and_packets_at_a_port_wait_in_line() {
    // Two of H0 to H1 at once; one of H2 to H1 that comes as the first of them leaves.
    let text = flow("H0", "H1", "938B", "")
        + &flow("H0", "H1", "938B", "")
        + &flow("H2", "H1", "938B", "start = \"40ns\"");
    let (plan, shares) = star(&text);
    let queueing = |flow| {
        let all = of(&plan, &shares, flow).into_iter();
        all.filter(|s| s.2 == Part::Queueing).map(|s| (s.0, s.1, s.4)).collect::<Vec<_>>()
    };
    assert_eq!(queueing(0), []);
    // The first is on its last wire from 180 to 260, that of H2 comes at 220 and is
    // next, to 340; the second comes at 260.
    assert_eq!(queueing(2), [(Leg::Data, "S0.0:1".into(), 40.0)]);
    let nic = (Leg::Source, "H0:0".into(), 80.0);
    // Their ACKs leave H1 at 360, 440 (to H2) and 520: none of them waits there.
    assert_eq!(queueing(1), [nic, (Leg::Data, "S0.0:1".into(), 80.0)]);
}

#[test]
fn packets_ahead_are_named_by_flow() {
    // As above: the packet of H2 waits for the rest of the first one, and the second one for that of H2.
    let text = flow("H0", "H1", "938B", "")
        + &flow("H0", "H1", "938B", "")
        + &flow("H2", "H1", "938B", "start = \"40ns\"");
    let plan = plan(&format!("{STAR}{text}"));
    let outcome = run(&plan);
    shares(&plan, &outcome);
    let all = outcome
        .ahead
        .iter()
        .map(|a| (a.flow, plan.topology.port_name(a.port), a.other, a.bytes, a.time / 1000));
    let port = "S0.0:1".to_string();
    assert_eq!(all.collect::<Vec<_>>(), [(1, port.clone(), Some(2), 1000, 80), (2, port, Some(0), 1000, 40)]);
}

/// Eight flows of one packet each arrive at once: the last one waits for seven, of which five are named.
#[test]
fn of_many_flows_ahead_some_are_named() {
    let hosts = STAR.replace("hosts_per_switch = 3", "hosts_per_switch = 9");
    let flows: String = (0..8).map(|i| flow(&format!("H{i}"), "H8", "938B", "")).collect();
    let plan = plan(&format!("{hosts}{flows}"));
    let outcome = run(&plan);
    shares(&plan, &outcome);
    let last =
        outcome.ahead.iter().map(|a| a.flow).max_by_key(|&f| outcome.flows[f as usize].completed).unwrap();
    let its: Vec<_> = outcome.ahead.iter().filter(|a| a.flow == last && a.leg == Leg::Data).collect();
    assert_eq!(
        its.iter().map(|a| (a.others, a.bytes, a.time / 1000)).collect::<Vec<_>>(),
        [(1, 1000, 80), (1, 1000, 80), (1, 1000, 80), (1, 1000, 80), (1, 1000, 80), (2, 2000, 160)]
    );
    assert!(its[..5].iter().all(|a| a.other.is_some()) && its[5].other.is_none());
}

#[test]
fn a_pace_holds_the_source() {
    // Three packets of 1000 B at 10 Gbit/s: one each 800 ns.
    let (plan, shares) = star(&flow("H0", "H1", "2814B", "rate = \"10Gbps\""));
    let source = |part, ns| (Leg::Source, "H0:0".to_string(), part, None, ns);
    let by_hand = vec![source(Part::Sending, 160.0), source(Part::Pacing, 1440.0)];
    assert_eq!(of(&plan, &shares, 0), [by_hand, alone()].concat());
}

/// A window of one packet: each waits for the ACK of the one before, and that wait counts at the place of
/// that one. So two packets take twice the time of one.
#[test]
fn a_window_waits_where_its_packets_are() {
    for kind in ["go-back-n", "irn"] {
        let text = flow("H0", "H1", "1876B", "").replace("[[traffic]]", "[[traffic]]\nname = \"x\"");
        let plan =
            plan_with(&format!("{STAR}{text}"), &[("transport.window", "938B"), ("transport.kind", kind)]);
        let outcome = run(&plan);
        let shares = shares(&plan, &outcome);
        let mut twice: Vec<_> =
            alone().into_iter().map(|s| (s.4 * 2.0, s)).map(|(ns, s)| (s.0, s.1, s.2, s.3, ns)).collect();
        // The first one's own sending was its source's.
        twice[0].4 = 80.0;
        let source = (Leg::Source, "H0:0".to_string(), Part::Sending, None, 80.0);
        assert_eq!(of(&plan, &shares, 0), [vec![source], twice].concat(), "{kind}");
    }
}

#[test]
fn a_lost_packet_is_recovered() {
    // The link to H1 is down for an instant in which the only packet is on it.
    let text = flow("H0", "H1", "938B", "")
        + "[[failure]]\nlink = \"S0.0-H1\"\nat = \"200ns\"\nuntil = \"210ns\"\n[routing]\nreconvergence = \"1ms\"\n";
    let plan = plan_with(&format!("{STAR}{text}"), &[("transport.rto", "5us")]);
    let outcome = run(&plan);
    assert_eq!((outcome.flows[0].dropped, outcome.flows[0].timeouts), (1, 1));
    let shares = shares(&plan, &outcome);
    let source = |part, ns| (Leg::Source, "H0:0".to_string(), part, None, ns);
    // Sent at 0 and again at 5000.
    let by_hand = vec![source(Part::Sending, 80.0), source(Part::Recovery, 4920.0)];
    assert_eq!(of(&plan, &shares, 0), [by_hand, alone()].concat());
}

#[test]
fn a_receiver_that_does_not_read_is_waited_for() {
    let text = flow("H0", "H1", "938B", "")
        + "[[slow_receiver]]\nhost = \"H1\"\nstall_from = \"0us\"\nstall_until = \"3us\"\n";
    let (plan, shares) = star(&text);
    let mut by_hand = alone();
    // The packet arrives at 360; the host then reads it at the rate of its link.
    let inside = |part, ns| (Leg::Data, "H1:1".to_string(), part, None, ns);
    by_hand.splice(4..4, [inside(Part::Sending, 80.0), inside(Part::Receiver, 2640.0)]);
    assert_eq!(of(&plan, &shares, 0), by_hand);
}

/// The line of `blocking.rs`, where the times of its pauses are worked out: A sends
/// to X over a slow link, and S0's port to S1 is paused for that from 1505.12 to
/// 5950.24 ns. B sends one packet to Y, next to S1.
const LINE: &str = "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"B\", \"X\", \"Y\"]\n\
    switches = [\"S0\", \"S1\", \"S2\"]\nlinks = [\n\
    {a=\"A\", b=\"S0\", rate=\"100Gbps\", delay=\"100ns\"}, {a=\"B\", b=\"S0\", rate=\"100Gbps\", delay=\"100ns\"},\n\
    {a=\"S0\", b=\"S1\", rate=\"100Gbps\", delay=\"100ns\"}, {a=\"S1\", b=\"S2\", rate=\"100Gbps\", delay=\"100ns\"},\n\
    {a=\"S2\", b=\"X\", rate=\"10Gbps\", delay=\"100ns\"}, {a=\"S1\", b=\"Y\", rate=\"100Gbps\", delay=\"100ns\"}]\n\
    [flow_control]\nscheme = \"pfc\"\nxoff = \"5kB\"\nxon = \"2kB\"\n\
    [transport]\nmtu = \"938B\"\nheader = \"62B\"\nack = \"100B\"\nack_every = 1000000\nrto = \"1s\"\n\
    [measure]\nexplain = true\n\
    [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"X\"\nsize = \"28140B\"\n\
    [[traffic]]\nkind = \"flow\"\nsrc = \"B\"\ndst = \"Y\"\nsize = \"938B\"\nstart = \"1500ns\"\n";

/// B's packet comes to S0 at 1680 and waits, after two of A. From 5950.24 on these two are sent first. At S1
/// and later no other packet delays it.
#[test]
fn an_victim_wait_to_the_picosecond() {
    let plan = plan(LINE);
    let outcome = run(&plan);
    let shares = shares(&plan, &outcome);
    let hop = |leg, port: &str, part, ns| (leg, port.to_string(), part, None, ns);
    let by_hand = vec![
        hop(Leg::Data, "B:0", Part::Sending, 80.0),
        hop(Leg::Data, "B:0", Part::Propagation, 100.0),
        hop(Leg::Data, "S0:2", Part::Sending, 80.0),
        hop(Leg::Data, "S0:2", Part::Propagation, 100.0),
        hop(Leg::Data, "S0:2", Part::Queueing, 160.0),
        (Leg::Data, "S0:2".into(), Part::Victim, Some("S2:1".into()), 5950.24 - 1680.0),
        hop(Leg::Data, "S1:2", Part::Sending, 80.0),
        hop(Leg::Data, "S1:2", Part::Propagation, 100.0),
        hop(Leg::Ack, "Y:0", Part::Sending, 8.0),
        hop(Leg::Ack, "Y:0", Part::Propagation, 100.0),
        hop(Leg::Ack, "S1:0", Part::Sending, 8.0),
        hop(Leg::Ack, "S1:0", Part::Propagation, 100.0),
        hop(Leg::Ack, "S0:1", Part::Sending, 8.0),
        hop(Leg::Ack, "S0:1", Part::Propagation, 100.0),
    ];
    assert_eq!(of(&plan, &shares, 1), by_hand);
    // A's own source is paused from 1965.12 on for a port on its path.
    let own = |s: &&Share| s.flow == 0 && s.leg == Leg::Source && s.part == Part::Own;
    let root = shares.iter().find(own).map(|s| plan.topology.port_name(s.root.unwrap()));
    assert_eq!(root.as_deref(), Some("S2:1"));
}

/// The same run ended at 6 us: B's packet is on the wire from S0 to S1 since 6110.24
/// less 160, A's source is paused.
#[test]
fn unfinished_flows_are_followed_to_the_end() {
    let plan = plan_with(LINE, &[("run.duration", "6us")]);
    let outcome = run(&plan);
    let shares = shares(&plan, &outcome);
    let b: Vec<_> = of(&plan, &shares, 1).into_iter().map(|s| (s.1, s.2, s.4)).collect();
    let s0 = |part, ns| ("S0:2".to_string(), part, ns);
    let by_hand = vec![
        ("B:0".to_string(), Part::Sending, 80.0),
        ("B:0".to_string(), Part::Propagation, 100.0),
        // After A17, which is being sent since 5950.24.
        s0(Part::Queueing, 49.76),
        s0(Part::Victim, 4270.24),
    ];
    assert_eq!(b, by_hand);
    let a: Vec<_> = of(&plan, &shares, 0).into_iter().map(|s| (s.0, s.2, s.4)).collect();
    // 25 packets, the last from 1920 to 2000, after the pause's beginning at 1965.12.
    assert_eq!(a, [(Leg::Source, Part::Sending, 2000.0), (Leg::Source, Part::Own, 4000.0)]);
}

/// Schemes that pause in a small leaf-spine, with transports.
const MIX: &str = "[topology]\nkind = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 4\n\
    host_link = {rate=\"100Gbps\", delay=\"1us\"}\nfabric_link = {rate=\"100Gbps\", delay=\"1us\"}\n\
    [switch]\nbuffer = \"64MB\"\n[flow_control]\nscheme = \"pfc\"\n\
    [transport]\nrto = \"1ms\"\n[measure]\nexplain = true\n[run]\nduration = \"80us\"\ndrain = \"400us\"\n\
    [[traffic]]\nname = \"background\"\nkind = \"poisson\"\nsizes = \"websearch\"\nload = 0.4\n\
    [[traffic]]\nname = \"incast\"\nkind = \"incast\"\nfan_in = 8\nsize = \"100kB\"\nto = \"random\"\nperiod = \"40us\"\n";

const SCHEMES: [&[(&str, &str)]; 7] = [
    &[("flow_control.scheme", "pfc"), ("flow_control.xoff", "30kB"), ("flow_control.xon", "20kB")],
    &[("flow_control.scheme", "bfc"), ("flow_control.queues", "8"), ("transport.kind", "irn")],
    &[("flow_control.scheme", "bfc"), ("flow_control.acks", "queues"), ("flow_control.queues", "3")],
    &[("flow_control.scheme", "per-flow-queue"), ("transport.kind", "irn")],
    &[("flow_control.scheme", "none"), ("transport.kind", "irn"), ("switch.buffer", "300kB")],
    &[("flow_control.scheme", "none"), ("transport.kind", "tcp-newreno"), ("switch.buffer", "300kB")],
    &[("flow_control.scheme", "pyrrha"), ("flow_control.k_pause", "10kB"), ("transport.kind", "irn")],
];

#[test]
fn watching_changes_nothing_else() {
    for scheme in SCHEMES {
        let watched = plan_with(MIX, scheme);
        let mut bare = watched.clone();
        bare.measure.explain = false;
        let (mut with, without) = (run(&watched), run(&bare));
        shares(&watched, &with);
        (with.paths, with.ahead) = (None, Vec::new());
        assert!(with == without, "{scheme:?}");
    }
}

#[test]
fn threads_change_nothing() {
    for scheme in SCHEMES {
        let short = [scheme, &[("run.duration", "40us"), ("run.drain", "60us")]].concat();
        let plan = plan_with(MIX, &short);
        let one = run(&plan);
        shares(&plan, &one);
        for threads in 2..=4 {
            let outcome = xoff_sim::run_on(&plan, threads, &mut |_| true);
            assert!(outcome == one, "{scheme:?} on {threads} threads");
        }
    }
}

#[test]
fn queues_of_their_own_have_no_victims() {
    let victim = |scheme: &[(&str, &str)]| {
        let plan = plan_with(MIX, scheme);
        let outcome = run(&plan);
        let all = shares(&plan, &outcome);
        let own = all.iter().any(|s| s.part == Part::Own);
        (own, all.iter().filter(|s| s.part == Part::Victim).map(|s| s.time).sum::<u64>())
    };
    let (pauses, pfc) = victim(SCHEMES[0]);
    assert!(pauses && pfc > 0);
    let (pauses, alone) = victim(SCHEMES[3]);
    assert!(pauses && alone == 0, "{alone}");
}

/// Under Pyrrha with a queue for each root no packet waits for a named port off its path, although by the
/// place of packets some do.
#[test]
fn by_the_named_root_pyrrha_has_no_victims() {
    for organisation in ["hiq", "single-tier"] {
        let plan =
            plan_with(MIX, &[("flow_control.scheme", "pyrrha"), ("flow_control.organisation", organisation)]);
        let outcome = run(&plan);
        let all = shares(&plan, &outcome);
        let time = |of: &dyn Fn(&&Share) -> bool| all.iter().filter(of).map(|s| s.time).sum::<u64>();
        let waited = time(&|s| s.named.is_some());
        let named = time(&|s| s.named.is_some_and(|named| named.victim));
        let surviving = time(&|s| s.part == Part::Victim);
        println!("{organisation}: {waited} ps in paused queues, {surviving} ps by the surviving root");
        assert!(waited > 0 && named == 0, "{organisation}: {named} of {waited}");
        let found = outcome.blocking.as_ref().unwrap();
        let sum = |of: fn(&xoff_sim::outcome::FlowBlame) -> u64| found.flows.iter().map(of).sum::<u64>();
        assert_eq!(sum(|f| f.named_victim + f.source_named_victim), 0, "{organisation}");
        assert!(sum(|f| f.victim + f.source_victim) >= surviving, "{organisation}");
    }
}

/// Invariants beside the sums: a pause's root is on the rest of the path or not, and no flow waited longer
/// than all of its packets together, by the oracle's sums.
fn consistent(plan: &Plan, outcome: &Outcome) {
    let all = shares(plan, outcome);
    let found = outcome.blocking.as_ref().expect("the oracle watched");
    let mut sums = vec![[0u64; 6]; plan.flows.len()];
    for s in &all {
        let place = match (s.part, s.leg) {
            (Part::Own, Leg::Source) => 2,
            (Part::Victim, Leg::Source) => 3,
            (Part::Own, _) => 0,
            (Part::Victim, _) => 1,
            _ => continue,
        };
        sums[s.flow as usize][place] += s.time;
        if s.named.map_or(s.part == Part::Victim, |named| named.victim) {
            sums[s.flow as usize][4 + place / 2] += s.time;
        }
        let f = &plan.flows[s.flow as usize];
        let start = if s.leg == Leg::Ack { f.ack_path } else { f.path } as usize;
        let way: Vec<u32> = plan.hops[start..].iter().copied().take_while(|&p| p < ENDS).collect();
        if plan.faults.down.is_empty() {
            let at = way.iter().position(|&p| p == s.port).expect("its way goes there");
            let ahead = |root: PortId| way[at..].contains(&root);
            assert_eq!(ahead(s.root.unwrap()), s.part == Part::Own, "{s:?}");
            assert!(s.named.is_none_or(|named| ahead(named.root) != named.victim), "{s:?}");
        }
    }
    if plan.faults.down.is_empty() {
        for (flow, (sum, blame)) in sums.iter().zip(&found.flows).enumerate() {
            let [own, victim] = [[blame.own, blame.source_own], [blame.victim, blame.source_victim]];
            let named = [blame.named_victim, blame.source_named_victim];
            let all = [own[0], victim[0], own[1], victim[1], named[0], named[1]];
            assert!(sum.iter().zip(&all).all(|(sum, all)| sum <= all), "flow {flow}: {sum:?} of {all:?}");
        }
    }
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
        Just("scheme = \"none\"\n".to_string()),
        (
            prop::sample::select(vec!["hiq", "single-tier"]),
            prop::sample::select(vec!["soft", "hard", "off"]),
            (2u64..60, 1u32..20),
            any::<[bool; 2]>()
        )
            .prop_map(|(organisation, merging, (pause, queues), [hosts, acks])| format!(
                "scheme = \"pyrrha\"\norganisation = \"{organisation}\"\nmerging = \"{merging}\"\n\
                 k_pause = \"{pause}kB\"\nqueues = {queues}\nhosts = \"{}\"\nacks = \"{}\"\n",
                if hosts { "obey" } else { "ignore" },
                if acks { "queues" } else { "control" }
            )),
    ]
}

fn ends() -> impl Strategy<Value = String> {
    let kind = prop_oneof![
        Just("kind = \"go-back-n\"\n"),
        Just("kind = \"go-back-n\"\nwindow = \"20kB\"\nack_every = 3\n"),
        Just("kind = \"irn\"\n"),
        Just("kind = \"irn\"\nack_every = 4\n"),
        Just("kind = \"tcp-newreno\"\n[tcp-newreno]\nmin_rto = \"100us\"\ninitial_rto = \"200us\"\n"),
        Just("kind = \"go-back-n\"\ncongestion_control = \"dcqcn\"\n"),
        Just("kind = \"go-back-n\"\ncongestion_control = \"timely\"\n"),
        Just("kind = \"irn\"\ncongestion_control = \"hpcc\"\n"),
        Just("kind = \"irn\"\ncongestion_control = \"dctcp\"\nvariable_window = true\n"),
        Just("kind = \"go-back-n\"\ncongestion_control = \"swift\"\n"),
    ];
    kind.prop_map(|kind| format!("[transport]\nrto = \"300us\"\n{kind}"))
}

/// Failures, losses and a receiver that is slow, or nothing.
fn trouble() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just(String::new()),
        1 => Just("[[failure]]\nlink = \"S0.0-S1.0\"\nat = \"20us\"\nuntil = \"60us\"\n[routing]\nreconvergence = \"5us\"\n".to_string()),
        1 => Just("[[failure]]\nlink = \"S0.1-H3\"\nat = \"15us\"\nuntil = \"30us\"\nevery = \"40us\"\n".to_string()),
        1 => Just("[[loss]]\nlink = \"S0.0-S1.0\"\nrate = 0.01\n".to_string()),
        1 => Just("[[slow_receiver]]\nhost = \"H0\"\nrate = \"30Gbps\"\nstall_from = \"10us\"\nstall_until = \"50us\"\n".to_string()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 40 / 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_parts_of_every_flow_add_up(
        (leaves, spines, hosts) in (2u32..4, 1u32..3, 2u32..5),
        rates in (prop::sample::select(vec![25u64, 100]), prop::sample::select(vec![40u64, 100, 200])),
        delays in (0u64..2_000, 1u64..2_000),
        (scheme, ends, trouble) in (scheme(), ends(), trouble()),
        (fan_in, seed, threads) in (1u32..5, 0u64..1_000, 1usize..4),
    ) {
        let text = format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = {leaves}\nspines = {spines}\nhosts_per_leaf = {hosts}\n\
             host_link = {{rate=\"{}Gbps\", delay=\"{}ns\"}}\nfabric_link = {{rate=\"{}Gbps\", delay=\"{}ns\"}}\n\
             [switch]\nbuffer = \"64MB\"\n[flow_control]\n{scheme}{ends}{trouble}[measure]\nexplain = true\n\
             [[traffic]]\nkind = \"poisson\"\nsizes = \"websearch\"\nload = 0.5\n\
             [[traffic]]\nkind = \"incast\"\nfan_in = {}\nsize = \"60kB\"\nto = \"random\"\nperiod = \"20us\"\n\
             [run]\nduration = \"60us\"\ndrain = \"500us\"\nseed = {seed}\n",
            rates.0, delays.0, rates.1, delays.1, fan_in.min(leaves * hosts - 1)
        );
        // A chain of two leaves has no such host, or no such spine.
        let text = if leaves * hosts > 3 && hosts <= 3 { text } else { text.replace("S0.1-H3", "S0.0-H1") };
        let plan = plan(&text);
        let outcome = xoff_sim::run_on(&plan, threads, &mut |_| true);
        consistent(&plan, &outcome);
    }
}
