//! Tagger: tags grow before a route can close a cycle, so a network that deadlocks under PFC does not, and no
//! packet is lost. With too few tags, only packets beyond the last one are lossy.

use crate::common;

use common::{plan, plan_with, run};
use std::collections::{BTreeMap, BTreeSet};
use xoff_kernel::random::Stream;
use xoff_plan::plan::{ENDS, Plan};
use xoff_schemes::flow_control::FlowControlParams;
use xoff_schemes::flow_control::tagger::TaggerParams;
use xoff_sim::outcome::{Outcome, Stop};

fn tagger(plan: &Plan) -> &TaggerParams {
    match &plan.flow_control {
        FlowControlParams::Tagger(tagger) => tagger,
        other => panic!("{other:?}"),
    }
}

fn lossless(plan: &Plan) -> Vec<u8> {
    let mut tags: Vec<u8> = plan.lanes.iter().filter(|l| l.lossless).map(|l| l.priority).collect();
    tags.sort_unstable();
    tags
}

fn dropped_for_want_of_room(outcome: &Outcome) -> u64 {
    outcome.drops.iter().filter(|d| d.reason.for_want_of_room()).map(|d| d.packets).sum()
}

/// Whether no cycle of lossless (link, lane) can wait for one another along the plan's own routes: it removes
/// waits without dependencies until none is left.
fn acyclic(plan: &Plan) -> bool {
    let mut waits: BTreeMap<(u32, u8), BTreeSet<(u32, u8)>> = BTreeMap::new();
    let paths = plan.flows.iter().flat_map(|f| [(f.path, f.lane), (f.ack_path, f.ack_lane)]);
    for (start, mut lane) in paths {
        let route: Vec<u32> = plan.hops[start as usize..].iter().copied().take_while(|&p| p < ENDS).collect();
        for pair in route.windows(2) {
            let onward = plan.onward_lane(lane, plan.topology.ports[pair[0] as usize].peer, pair[1]);
            if plan.lanes[usize::from(onward)].lossless {
                waits.entry((pair[0], lane)).or_default().insert((pair[1], onward));
                waits.entry((pair[1], onward)).or_default();
            }
            lane = onward;
        }
    }
    loop {
        let free: BTreeSet<_> = waits.iter().filter(|(_, on)| on.is_empty()).map(|(&q, _)| q).collect();
        if free.is_empty() {
            return waits.is_empty();
        }
        waits.retain(|queue, _| !free.contains(queue));
        waits.values_mut().for_each(|on| on.retain(|queue| !free.contains(queue)));
    }
}

/// One hop each, by hand: A to X over two switches, the last link slow. The
/// packets come to S0 with tag 3 and to S1 with tag 4, in which they also wait
/// there. So S1 pauses tag 4 at S0, and S0, where packets of tag 3 wait in tag 4,
/// pauses tag 3 at A. (`blocking.rs` works the times out, which are the same.)
#[test]
fn each_hop_pauses_the_tag_that_came() {
    let text = "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"X\"]\nswitches = [\"S0\", \"S1\"]\nlinks = [\n\
        {a=\"A\", b=\"S0\", rate=\"100Gbps\", delay=\"100ns\"}, {a=\"S0\", b=\"S1\", rate=\"100Gbps\", delay=\"100ns\"},\n\
        {a=\"S1\", b=\"X\", rate=\"10Gbps\", delay=\"100ns\"}]\n\
        [flow_control]\nscheme = \"tagger\"\nrule = \"hop\"\nxoff = \"5kB\"\nxon = \"2kB\"\n\
        [transport]\nmtu = \"938B\"\nheader = \"62B\"\nack_every = 1000000\nrto = \"1s\"\n\
        [measure]\nblocking = true\n[run]\nduration = \"3us\"\n\
        [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"X\"\nsize = \"28140B\"\n";
    let plan = plan(text);
    assert_eq!((lossless(&plan), tagger(&plan).needed), (vec![3, 4], 2));
    assert_eq!(plan.lanes[usize::from(tagger(&plan).lossy)].priority, 0);
    let outcome = run(&plan);
    let seen: Vec<_> = outcome
        .pauses
        .iter()
        .map(|p| {
            let root = p.root.map(|root| plan.topology.port_name(root));
            (plan.topology.port_name(p.port), plan.lanes[usize::from(p.lane)].priority, p.from, root)
        })
        .collect();
    let root = Some("S1:1".to_string());
    // S1 has 5 kB when packet 5 arrives, at 360 + 400 = 760; S0 when packet 13
    // does, at 180 + 1040 = 1220: packet 8 was the last to leave before the pause.
    assert_eq!(
        seen,
        [("S0:1".to_string(), 4, 865_120, root.clone()), ("A:0".to_string(), 3, 1_325_120, root)]
    );
}

/// The example of a fat-tree with two failed links: up and down again, and up.
#[test]
fn two_tags_save_a_fat_tree_with_failed_links() {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/fat-tree-failed-links.toml"
    ))
    .expect("the example exists");
    let (mut locked, mut pauses) = (0, 0);
    for seed in 1..=20 {
        let seed = seed.to_string();
        let with = |more: &[(&str, &str)]| {
            let base = [
                ("run.seed", seed.as_str()),
                ("run.duration", "2500us"),
                ("flow_control.xoff", "2bdp"),
                ("flow_control.xon", "1bdp"),
            ];
            plan_with(&text, &[&base, more].concat())
        };
        let pfc = with(&[]);
        assert!(!acyclic(&pfc));
        locked += usize::from(run(&pfc).deadlock.is_some());
        let tags = with(&[("flow_control.scheme", "tagger")]);
        assert_eq!((lossless(&tags), tagger(&tags).needed), (vec![3, 4], 2), "one bounce");
        assert_eq!(tagger(&tags).all_routes, Some(1), "none without the failures");
        assert!(acyclic(&tags));
        let outcome = run(&tags);
        assert_eq!(
            (outcome.deadlock.is_some(), dropped_for_want_of_room(&outcome)),
            (false, 0),
            "seed {seed}"
        );
        pauses += outcome.pauses.len();
    }
    println!("PFC locked up {locked} times of 20; {pauses} pauses with tags");
    assert!(
        locked >= 5 && pauses > 1_000,
        "PFC locked up {locked} times of 20, {pauses} pauses with tags: they were not put to the test"
    );
}

/// `n` switches in a ring, whose hosts send `reach` switches on, clockwise.
fn ring(n: usize, reach: usize, control: &str) -> String {
    let mut text = format!(
        "[topology]\nkind = \"ring\"\nswitches = {n}\nhosts_per_switch = 1\nlink = {{rate=\"100Gbps\", delay=\"1us\"}}\n\
         [flow_control]\nxoff = \"20kB\"\nxon = \"10kB\"\n{control}"
    );
    for i in 0..n {
        let path: Vec<String> = (0..=reach).map(|j| format!("\"S0.{}\"", (i + j) % n)).collect();
        let dst = (i + reach) % n;
        text += &format!(
            "[[traffic]]\nkind = \"flow\"\nsrc = \"H{i}\"\ndst = \"H{dst}\"\nsize = \"3MB\"\n\
             path = [\"H{i}\", {}, \"H{dst}\"]\n",
            path.join(", ")
        );
    }
    text
}

/// By hop as many tags as switches on a route; by bounce two, because clockwise routes turn up again only at
/// the switch with the lowest number.
#[test]
fn rings_do_not_deadlock() {
    for (n, reach) in [(3, 2), (5, 2), (5, 3)] {
        let pfc = plan(&ring(n, reach, ""));
        assert_eq!(run(&pfc).stop, Stop::Starved);
        assert!(!acyclic(&pfc));
        for (rule, needed) in [("hop", reach as u8 + 1), ("bounce", 2)] {
            let control = format!("scheme = \"tagger\"\nrule = \"{rule}\"\n");
            let tags = plan(&ring(n, reach, &control));
            assert_eq!(tagger(&tags).needed, needed, "{n} {reach} {rule}");
            assert_eq!(lossless(&tags), (3..3 + needed).collect::<Vec<_>>());
            assert!(acyclic(&tags));
            let outcome = run(&tags);
            assert_eq!((outcome.stop, outcome.deadlock.as_ref()), (Stop::AllDone, None));
            assert_eq!(dropped_for_want_of_room(&outcome), 0);
        }
    }
}

/// One tag too few: only packets beyond it are dropped for lack of room, in their lossy lane; it does not
/// deadlock either.
#[test]
fn beyond_the_last_tag_packets_are_lossy() {
    // Each link carries a flow on its first hop, and another on its lossy one, with a smaller share.
    let control = "scheme = \"tagger\"\nrule = \"hop\"\nlossless = 2\nlossy = 1\n\
                   [switch]\nbuffer = \"300kB\"\n[transport]\nrto = \"100us\"\n[[priority]]\nid = 1\ntier = 3\negress_limit = \"20kB\"\n[[priority]]\nid = 4\nweight = 3\n";
    let plan = plan(&ring(3, 2, control).replace("3MB", "600kB"));
    let params = tagger(&plan);
    assert_eq!((lossless(&plan), params.needed, params.lossless), (vec![3, 4], 3, 2));
    assert_eq!(plan.lanes[usize::from(params.lossy)].priority, 1);
    assert!(acyclic(&plan));
    let outcome = run(&plan);
    assert_eq!((outcome.stop, outcome.deadlock.as_ref()), (Stop::AllDone, None));
    assert!(dropped_for_want_of_room(&outcome) > 0);
    for drop in &outcome.drops {
        assert_eq!((drop.lane, drop.lossless), (params.lossy, false), "{drop:?}");
    }
}

/// PFC* in node-centric networks: k + 1 tags, as `portfc.pfc-star` reads it.
#[test]
fn relays_count_one_tag_for_each_switch() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/bcube-deadlock.toml"))
            .expect("the example exists");
    for rule in ["hop", "bounce"] {
        let star = [("flow_control.scheme", "tagger"), ("flow_control.rule", rule), ("run.duration", "3ms")];
        let star = plan_with(&text, &star);
        assert_eq!((lossless(&star), tagger(&star).needed), (vec![3, 4], 2));
        assert!(acyclic(&star));
        let outcome = run(&star);
        assert_eq!((outcome.deadlock.is_some(), dropped_for_want_of_room(&outcome)), (false, 0));
        assert!(!outcome.pauses.is_empty());
    }
    let deeper = "[topology]\nkind = \"ndc\"\nn = 2\nk = 2\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n\
                  [flow_control]\nscheme = \"tagger\"\nrule = \"hop\"\n[[traffic]]\nkind = \"all-to-all\"\nsize = \"50kB\"\n";
    let deeper = plan(deeper);
    assert_eq!((tagger(&deeper).needed, tagger(&deeper).all_routes), (3, Some(3)));
    assert_eq!(run(&deeper).stop, Stop::AllDone);
}

/// Any topology, either rule, links that fail during the run: no deadlock, drops only by failures, and
/// threads change nothing.
#[test]
fn no_topology_deadlocks() {
    let mut grown = 0;
    for seed in 0..24 {
        let mut random = Stream::new(seed, "scenario", 0);
        let mut pick = |n: u64| random.below(n) as usize;
        let (topology, link) = [
            ("kind = \"fat-tree\"\nk = 4\nlink = {rate=\"100Gbps\", delay=\"1us\"}", "S0.0-S1.0"),
            ("kind = \"ndc\"\nn = 3\nk = 1\nlink = {rate=\"100Gbps\", delay=\"1us\"}", "H0-S0.0"),
            (
                "kind = \"ring\"\nswitches = 5\nhosts_per_switch = 2\nlink = {rate=\"100Gbps\", delay=\"1us\"}",
                "S0.0-S0.1",
            ),
            (
                "kind = \"torus-2d\"\nwidth = 3\nheight = 3\nhosts_per_switch = 1\nlink = {rate=\"100Gbps\", delay=\"1us\"}",
                "S0.0-S0.1",
            ),
        ][seed as usize % 4];
        let rule = ["hop", "bounce"][pick(2)];
        // By hop, packets that change routes on their path may need more tags than there are.
        let failure = match pick(2) {
            _ if rule == "hop" => String::new(),
            0 => String::new(),
            _ => format!("[[failure]]\nlink = \"{link}\"\nat = \"{}us\"\nuntil = \"70us\"\n", 5 + pick(30)),
        };
        let text = format!(
            "[topology]\n{topology}\n[switch]\nbuffer = \"20MB\"\n\
             [flow_control]\nscheme = \"tagger\"\nrule = \"{rule}\"\nxoff = \"{}kB\"\nxon = \"10kB\"\n\
             [transport]\nrto = \"300us\"\n{}{failure}\
             [[traffic]]\nkind = \"permutation\"\nsize = \"100kB\"\n\
             [[traffic]]\nkind = \"incast\"\nfan_in = 4\nsize = \"100kB\"\nstart = \"5us\"\n[run]\nseed = {seed}\n",
            [12, 40][pick(2)],
            ["", "ack_priority = 1\n"][pick(2)],
        );
        let plan = plan(&text);
        grown += usize::from(tagger(&plan).needed > 1);
        assert!(acyclic(&plan), "{text}");
        let outcome = run(&plan);
        assert_eq!((outcome.stop, outcome.deadlock.as_ref()), (Stop::AllDone, None), "{text}");
        assert_eq!(dropped_for_want_of_room(&outcome), 0, "{text}");
        if seed % 4 == 1 {
            assert!(outcome == xoff_sim::run_on(&plan, 2, &mut |_| true), "differs on two threads\n{text}");
        }
    }
    assert!(grown > 12, "tags grew in {grown} of 24 scenarios");
}
