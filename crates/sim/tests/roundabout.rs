//! Roundabout: every deadlock is found, soon, by a switch that is part of it.

use crate::common;

use common::{plan, plan_with, run, standing};
use proptest::prelude::*;
use xoff_net::topology::NodeKind;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::roundabout::Detection;
use xoff_schemes::flow_control::roundabout::dissolve::LONGEST_LOOP;
use xoff_schemes::flow_control::roundabout::dissolve::Step;
use xoff_sim::outcome::{DropReason, Held, Outcome, Pause, Stop};

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
    /// Under Roundabout, with one packet of headroom more than PFC needs (section IV-B).
    fn plan(&self, keys: &str) -> Plan {
        plan(&self.text(keys))
    }

    fn text(&self, keys: &str) -> String {
        let (n, xoff, seed) = (self.switches, self.xoff, self.seed);
        let mut text = format!(
            "[topology]\nkind=\"ring\"\nswitches={n}\nhosts_per_switch=1\nlink={{rate=\"100Gbps\",delay=\"1us\"}}\n\
             [run]\nseed={seed}\n[flow_control]\nscheme=\"roundabout\"\nspare=\"1062B\"\nxoff=\"{xoff}kB\"\nxon=\"{}kB\"\n{keys}\n",
            xoff / 2
        );
        for (i, start) in self.starts.iter().enumerate() {
            let path: Vec<String> = (0..=self.reach).map(|j| format!("\"S0.{}\"", (i + j) % n)).collect();
            let dst = (i + self.reach) % n;
            text += &format!(
                "[[traffic]]\nkind=\"flow\"\nsrc=\"H{i}\"\ndst=\"H{dst}\"\nsize=\"4MB\"\nstart=\"{start}ns\"\n\
                 path=[\"H{i}\",{},\"H{dst}\"]\n",
                path.join(",")
            );
        }
        text
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 60 / 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Deadlocks form again and again and are dissolved, with one packet of spare headroom on each link: all
    /// flows end, no packet is lost, and all packets arrive in order. (The oracle may find one that is about
    /// to be dissolved. An attempt may be given up if a pause of the loop ends before all switches have their
    /// seats.)
    #[test]
    fn every_deadlock_is_dissolved(ring in rings()) {
        let outcome = run(&ring.plan(""));
        prop_assert_eq!(outcome.stop, Stop::AllDone);
        prop_assert!(outcome.flows.iter().all(|f| (f.out_of_order, f.dropped, f.retransmitted) == (0, 0, 0)));
        let steps = |step: Step| outcome.records.get::<xoff_schemes::flow_control::roundabout::Report>().unwrap().attempts.iter().filter(|a| a.step == step).count();
        prop_assert!(steps(Step::Dissolved) + 1 >= outcome.records.get::<xoff_schemes::flow_control::roundabout::Report>().unwrap().detections.len() / 2);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 40 / 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Flows that leave a deadlocked loop and enter it again, after a switch outside (Figure 9), keep their
    /// order as well.
    #[test]
    fn flows_cross_the_loop_twice(ring in rings(), again in 2usize..6) {
        let n = ring.switches;
        // A full mesh: the switch after the last one of the loop is outside.
        let mut text = ring.text("");
        let shape = format!("kind=\"ring\"\nswitches={n}\n");
        text = text.replace(&shape, &format!("kind=\"full-mesh\"\nswitches={}\n", n + 1));
        for i in 0..n {
            let (next, back) = ((i + 1) % n, (i + again) % n);
            let last = (back + 1) % n;
            // A path does not cross a switch twice.
            if back == i || back == next || last == i {
                continue;
            }
            text += &format!(
                "[[traffic]]\nkind=\"flow\"\nsrc=\"H{i}\"\ndst=\"H{last}\"\nsize=\"2MB\"\n\
                 path=[\"H{i}\",\"S0.{i}\",\"S0.{next}\",\"S0.{n}\",\"S0.{back}\",\"S0.{last}\",\"H{last}\"]\n"
            );
        }
        let outcome = run(&plan(&text));
        prop_assert_eq!(outcome.stop, Stop::AllDone);
        prop_assert!(outcome.flows.iter().all(|f| (f.out_of_order, f.dropped, f.retransmitted) == (0, 0, 0)));
    }
}

/// The results of random runs, all together.
#[derive(Debug, Default)]
struct Found {
    deadlocks: usize,
    /// A deadlock lasted at the end, and no switch of it had found it.
    missed: usize,
    /// A switch found a deadlock that did not exist at the end.
    false_ones: usize,
    /// Two switches found one deadlock.
    twice: usize,
    /// A pause of a host was active after the last one of the cycle.
    outside: usize,
    /// Later than two turns after the last of these.
    late: usize,
    /// From there, at the longest, in hops; and that of four switches, in picoseconds.
    longest: f64,
    longest_of_four: u64,
    /// Deadlocks with no trigger of ITSY's in the loop, with one, and with several; and those of them
    /// that ITSY missed.
    by_triggers: [usize; 3],
    missed_by_itsy: [usize; 3],
}

/// Rings of 3 to 16 switches, from one host that begins to all of them, with hosts that do not read for a
/// while, so pauses begin and end (sections III and VI-B). No deadlock is missed, each is found once, within
/// two turns of a frame after the last pause of its cycle; where a pause from outside ended later, as many
/// links after that as a triplet crosses at most. `RUNS` says how many runs; with 2,000 of them the same
/// holds. ITSY misses deadlocks in the same runs.
#[test]
fn deadlocks_are_found_as_they_form() {
    let runs = std::env::var("RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(150);
    let mut draws = xoff_kernel::random::Stream::new(7, "rings", 0);
    let mut below = move |n: u64| draws.below(n);
    let mut found = Found::default();
    for _ in 0..runs {
        let switches = 3 + below(14) as usize;
        let triggers = 1 + below(switches as u64) as usize;
        let reach = 2 + below(switches as u64 - 2) as usize;
        // The others follow one by one.
        let starts = (0..switches).map(|i| if i < triggers { below(2_000) } else { below(40_000) }).collect();
        let ring = Ring { switches, reach, starts, xoff: 10 + below(50), seed: below(1 << 32) };
        let size = format!("{}kB", 40 + below(500));
        let mut text = ring.text("dissolve=false").replace("4MB", &size);
        let mut readers: Vec<u64> = (0..below(3)).map(|_| below(switches as u64)).collect();
        readers.dedup();
        for host in readers {
            let from = 5 + below(40);
            let until = from + 1 + below(20);
            text += &format!(
                "[[slow_receiver]]\nhost=\"H{host}\"\nstall_from=\"{from}us\"\nstall_until=\"{until}us\"\n"
            );
        }
        let plan = plan(&text);
        let outcome = run(&plan);
        let in_deadlock = |d: &Detection| {
            let peer = plan.topology.ports[d.port as usize].peer;
            outcome
                .deadlock
                .as_ref()
                .is_some_and(|k| k.cycle.iter().any(|h| (h.port, h.lane) == (peer, d.lane)))
        };
        // Of a cycle that lasted for a while and lasts at the end, the last pause counts.
        let pauses = |h: &Held| outcome.pauses.iter().rfind(|p| (p.port, p.lane) == (h.port, h.lane));
        let cycle = outcome.deadlock.as_ref().map_or(&[][..], |k| &k.cycle);
        let last = cycle.iter().filter_map(pauses).map(|p| p.from).max().unwrap_or(0);
        let (true_ones, false_ones): (Vec<&Detection>, Vec<&Detection>) = outcome
            .records
            .get::<xoff_schemes::flow_control::roundabout::Report>()
            .unwrap()
            .detections
            .iter()
            .partition(|d| in_deadlock(d) && d.at >= last);
        found.false_ones += false_ones.len();
        if outcome.deadlock.is_none() {
            continue;
        }
        found.deadlocks += 1;
        // The same run up to its first deadlock.
        let pfc = text.replace("spare=\"1062B\"\n", "").replace("dissolve=false\n", "");
        let itsy = run(&common::plan(&pfc.replace("\"roundabout\"", "\"itsy\"")));
        let first = outcome.deadlock.as_ref().expect("there is one");
        let triggers = standing(&plan, &itsy, first).len().min(2);
        let none =
            itsy.records.get::<xoff_schemes::flow_control::itsy::Report>().unwrap().detections.is_empty();
        found.by_triggers[triggers] += 1;
        found.missed_by_itsy[triggers] += usize::from(none);
        found.missed += usize::from(true_ones.is_empty());
        found.twice += usize::from(true_ones.len() > 1);
        let Some(first) = true_ones.first() else { continue };
        // A host that pauses lies outside of the loop: its triplet may win until it resumes.
        let hosts =
            |p: &&Pause| plan.topology.nodes[plan.topology.neighbour(p.port) as usize].kind == NodeKind::Host;
        let ends =
            outcome.pauses.iter().filter(hosts).filter_map(|p| p.until.filter(|&u| u > last && u < first.at));
        let outside = ends.max();
        found.outside += usize::from(outside.is_some());
        // A frame and a link, and a packet for which the frame waits.
        let hop = 1_000_000 + 64 * 80 + u64::from(plan.packet.largest()) * 80;
        let took = first.at - outside.unwrap_or(last);
        if outside.is_some() {
            // The copies of its triplet are valid for as many links more as one crosses.
            found.late += usize::from(took > (LONGEST_LOOP + 2 * cycle.len() as u64) * hop);
            continue;
        }
        found.late += usize::from(took > 2 * cycle.len() as u64 * hop);
        found.longest = found.longest.max(took as f64 / hop as f64);
        if cycle.len() == 4 {
            found.longest_of_four = found.longest_of_four.max(took);
        }
    }
    println!("{found:?}");
    assert!(found.deadlocks > runs / 4);
    assert_eq!((found.missed, found.twice, found.late), (0, 0, 0));
    assert!(found.longest_of_four < 10_000_000);
    // ITSY needs one trigger in the loop. (Its frames are others, so a run may differ.)
    let ([none, one, several], missed) = (found.by_triggers, found.missed_by_itsy);
    assert!(missed[0] == none && missed[1] * 100 <= one && missed[2] == several);
    assert!(one > 0 && several > found.deadlocks / 4);
}

/// The same bytes on one thread and on two, also over links that fail or lose frames; and all flows
/// end.
#[test]
fn threads_change_nothing() {
    for seed in 0..4 {
        let ring = Ring { switches: 4, reach: 3, starts: vec![700, 2_100, 1_400, 0], xoff: 20, seed };
        let at = |i: usize| format!("link=\"S0.{i}-S0.{}\"\n", (i + 1) % 4);
        let fails = |i: usize| {
            let from = 20 + 37 * i;
            format!("[[failure]]\n{}at=\"{from}us\"\nuntil=\"{}us\"\n", at(i), from + 30)
        };
        let loses = |i: usize| format!("[[loss]]\n{}rate=1e-3\n", at(i));
        let faults = [String::new(), (0..4).map(fails).collect(), (0..4).map(loses).collect()];
        for faults in faults {
            let plan = plan(&format!("{}{faults}", ring.text("")));
            let (one, two) = (xoff_sim::run(&plan, &mut |_| true), xoff_sim::run_on(&plan, 2, &mut |_| true));
            assert!(
                !one.records
                    .get::<xoff_schemes::flow_control::roundabout::Report>()
                    .unwrap()
                    .attempts
                    .is_empty()
                    && one.stop == Stop::AllDone
            );
            assert_eq!((two.flows, two.pauses, two.records), (one.flows, one.pauses, one.records));
        }
    }
}

/// In a network of nodes that relay, loops overlap, lead through one node twice (so with seed 8), and one
/// that is being dissolved waits for another: no packet is lost or out of order, and all flows end, given
/// time.
#[test]
fn loops_that_overlap() {
    let text = std::fs::read_to_string("../../examples/bcube-deadlock.toml").expect("the example");
    for seed in ["1", "8"] {
        let scheme = |name: &str| {
            let keys = [("flow_control.scheme", name), ("run.seed", seed), ("run.drain", "100ms")];
            run(&plan_with(&text, &keys))
        };
        assert_ne!(scheme("pfc").stop, Stop::AllDone);
        let outcome = scheme("roundabout");
        assert_eq!(outcome.stop, Stop::AllDone);
        assert!(outcome.flows.iter().all(|f| (f.out_of_order, f.dropped) == (0, 0)));
        let steps = |step: Step| {
            outcome
                .records
                .get::<xoff_schemes::flow_control::roundabout::Report>()
                .unwrap()
                .attempts
                .iter()
                .filter(|a| a.step == step)
                .count()
        };
        assert!(steps(Step::Dissolved) > 5 && steps(Step::GivenUp) > 5);
    }
}

/// One frame of the flow control is lost, or corrupted, any of the first forty that each switch of a loop
/// sends in each direction: all flows end nevertheless. Packets that circulate may be dropped then, and so
/// may packets that a lost pause would have stopped.
#[test]
fn any_one_control_frame_is_lost() {
    let ring = Ring { switches: 3, reach: 2, starts: vec![0, 700, 1_400], xoff: 20, seed: 3 };
    let text = ring.text("").replace("4MB", "500kB");
    let (mut hit, mut given_up) = (0, 0);
    for (from, to) in (0..3).flat_map(|i| [(i, (i + 1) % 3), (i, (i + 2) % 3)]) {
        for number in 1..=40 {
            let kind = ["loss", "corruption"][number % 2];
            let loss = format!(
                "[[loss]]\nlink=\"S0.{from}-S0.{to}\"\nfrom=\"S0.{from}\"\ncontrol_frame={number}\nkind=\"{kind}\"\n"
            );
            let outcome = xoff_sim::run(&plan(&format!("{text}{loss}")), &mut |_| true);
            assert_eq!(outcome.stop, Stop::AllDone, "frame {number} of {from} to {to}");
            let lost = |reason| matches!(reason, DropReason::FrameLost | DropReason::FrameCorrupted);
            hit += outcome.drops.iter().filter(|d| lost(d.reason)).map(|d| d.packets).sum::<u64>();
            given_up += outcome
                .records
                .get::<xoff_schemes::flow_control::roundabout::Report>()
                .unwrap()
                .attempts
                .iter()
                .filter(|a| a.step == Step::GivenUp)
                .count();
        }
    }
    assert!(hit > 200 && given_up > 30, "{hit} {given_up}");
}

/// Without a pause it is PFC, byte for byte. The same holds with pauses while no frame is sent that PFC would
/// not send: probes are in the padding of PFC's frames. The counters have the bytes of the other frames.
#[test]
fn only_the_bytes_of_its_frames_differ_from_pfc() {
    let (mut quiet, mut paused, mut more) = (0, 0, 0);
    for seed in 0..60 {
        let (load, xoff) = (1 + seed % 8, 20 + 20 * (seed % 7));
        let text = format!(
            "[topology]\nkind=\"leaf-spine\"\nleaves=3\nspines=2\nhosts_per_leaf=4\n\
             host_link={{rate=\"100Gbps\",delay=\"1us\"}}\nfabric_link={{rate=\"100Gbps\",delay=\"1us\"}}\n\
             [flow_control]\nscheme=\"SCHEME\"\nxoff=\"{xoff}kB\"\nxon=\"{}kB\"\n\
             [[traffic]]\nkind=\"poisson\"\nsizes=\"ali-storage\"\nload=0.{load}\n\
             [run]\nduration=\"300us\"\nseed={seed}\n",
            xoff / 2
        );
        let scheme = |name: &str| run(&plan(&text.replace("SCHEME", name)));
        let (pfc, mut outcome) = (scheme("pfc"), scheme("roundabout"));
        assert_eq!(
            outcome.records.get::<xoff_schemes::flow_control::roundabout::Report>().unwrap().detections,
            []
        );
        let frames = |o: &Outcome| o.ports.iter().map(|p| p.pause_frames + p.resume_frames).sum::<u64>();
        if (frames(&outcome), outcome.counters.extra_control) != (frames(&pfc), 0) {
            assert!(!pfc.pauses.is_empty());
            more += 1;
            continue;
        }
        *if pfc.pauses.is_empty() { &mut quiet } else { &mut paused } += 1;
        // The headroom is larger, and its used part is the same.
        outcome.records = pfc.records.clone();
        assert_eq!(outcome, pfc);
    }
    println!("{quiet} runs without pauses, {paused} with pauses of PFC alone, {more} with more frames");
    assert!(quiet > 5 && paused > 5, "{quiet} {paused} {more}");
}

/// *False full* (section IV-C): packets at the head of a loop's queue came from a host, and make room for
/// that one, if nothing is changed: the loop stalls, the attempt is given up, and the deadlock stays.
#[test]
fn without_the_audit_a_loop_stalls() {
    for seed in 0..5 {
        let ring = Ring { switches: 4, reach: 3, starts: vec![0, 700, 1_400, 300], xoff: 20 + seed, seed };
        let (with, without) = (run(&ring.plan("")), run(&ring.plan("audit=false")));
        assert_eq!((with.stop, without.stop), (Stop::AllDone, Stop::Starved));
        // It is tried again and again.
        assert!(
            without
                .records
                .get::<xoff_schemes::flow_control::roundabout::Report>()
                .unwrap()
                .attempts
                .iter()
                .filter(|a| a.step == Step::GivenUp)
                .count()
                > 10
        );
    }
}

/// Loops in two priorities over the same links, one of which is served strictly before the other: that
/// one waits for the wire, and loses no patience.
#[test]
fn loops_in_two_priorities() {
    for seed in 0..6 {
        let switches = 4 + seed as usize % 4;
        let starts: Vec<u64> = (0..switches as u64).map(|i| (i * 1_700 * seed) % 9_000).collect();
        let ring = Ring { switches, reach: 3, starts, xoff: 20 + 10 * seed, seed };
        let text = ring.text("priorities=[3,4]");
        let flows = text.find("[[traffic]]").expect("it has flows");
        let others = text[flows..].replace("size=", "priority=4\nsize=");
        let outcome = run(&plan(&format!("{text}{others}")));
        assert_eq!(outcome.stop, Stop::AllDone);
        assert!(outcome.flows.iter().all(|f| (f.out_of_order, f.dropped) == (0, 0)));
        let dissolved = outcome
            .records
            .get::<xoff_schemes::flow_control::roundabout::Report>()
            .unwrap()
            .attempts
            .iter()
            .filter(|a| a.step == Step::Dissolved)
            .count();
        assert!(dissolved > 10, "{dissolved}");
    }
}

/// Two links between neighbours: packets that wait for both are part of several loops.
#[test]
fn links_side_by_side() {
    let mut dissolved = 0;
    for seed in 0..8 {
        let n = 5;
        let link = |a: String, b: String| format!("{{a=\"{a}\",b=\"{b}\",rate=\"100Gbps\",delay=\"1us\"}}");
        let mut links: Vec<String> = (0..n).map(|i| link(format!("H{i}"), format!("S{i}"))).collect();
        for i in 0..2 * n {
            links.push(link(format!("S{}", i % n), format!("S{}", (i + 1) % n)));
        }
        // Faster than the links of the ring.
        let links = links.join(",").replacen("100Gbps", "400Gbps", n);
        let names = |of: &str| (0..n).map(|i| format!("\"{of}{i}\"")).collect::<Vec<_>>().join(",");
        let mut text = format!(
            "[topology]\nkind=\"custom\"\nhosts=[{}]\nswitches=[{}]\nlinks=[{links}]\n[run]\nseed={seed}\n\
             [flow_control]\nscheme=\"roundabout\"\nspare=\"1062B\"\nxoff=\"30kB\"\nxon=\"15kB\"\n",
            names("H"),
            names("S"),
        );
        for i in 0..6 * n {
            text += &format!(
                "[[traffic]]\nkind=\"flow\"\nsrc=\"H{}\"\ndst=\"H{}\"\nsize=\"1MB\"\nstart=\"{}ns\"\n",
                i % n,
                (i + 2) % n,
                (i as u64 * 700 * seed) % 9_000
            );
        }
        let outcome = run(&plan(&text));
        assert_eq!(outcome.stop, Stop::AllDone);
        assert!(outcome.flows.iter().all(|f| (f.out_of_order, f.dropped) == (0, 0)));
        dissolved += outcome
            .records
            .get::<xoff_schemes::flow_control::roundabout::Report>()
            .unwrap()
            .attempts
            .iter()
            .filter(|a| a.step == Step::Dissolved)
            .count();
    }
    assert!(dissolved > 20, "{dissolved}");
}

/// A ring that loses frames, so barriers stay behind, beside one that loses none: the same on one thread and
/// on two, which may have a ring each.
#[test]
fn rings_apart() {
    let ring = Ring { switches: 4, reach: 3, starts: vec![700, 2_100, 1_400, 0], xoff: 20, seed: 0 };
    let one = ring.text("");
    let flows = |shift: usize| {
        let all = one[one.find("[[traffic]]").expect("it has flows")..].replace("4MB", "1MB");
        (0..4).fold(all, |all, i| {
            let all = all.replace(&format!("\"H{i}\""), &format!("\"h{}\"", i + shift));
            all.replace(&format!("\"S0.{i}\""), &format!("\"s{}\"", i + shift))
        })
    };
    let link = |a: String, b: String| format!("{{a=\"{a}\",b=\"{b}\",rate=\"100Gbps\",delay=\"1us\"}}");
    let mut links = vec![link("s0".into(), "s4".into())];
    for i in 0..8 {
        links.push(link(format!("h{i}"), format!("s{i}")));
        links.push(link(format!("s{i}"), format!("s{}", i / 4 * 4 + (i + 1) % 4)));
    }
    let mut given_up = 0;
    let names = |of: &str| (0..8).map(|i| format!("\"{of}{i}\"")).collect::<Vec<_>>().join(",");
    for seed in 0..6 {
        let loss: String =
            (0..4).map(|i| format!("[[loss]]\nlink=\"s{i}-s{}\"\nrate=3e-3\n", (i + 1) % 4)).collect();
        let text = format!(
            "[topology]\nkind=\"custom\"\nhosts=[{}]\nswitches=[{}]\nlinks=[{}]\n[run]\nseed={seed}\n\
             [flow_control]\nscheme=\"roundabout\"\nspare=\"1062B\"\nxoff=\"20kB\"\nxon=\"10kB\"\n{}{}{loss}",
            names("h"),
            names("s"),
            links.join(","),
            flows(0),
            flows(4),
        );
        let plan = plan(&text);
        let (one, two) = (xoff_sim::run(&plan, &mut |_| true), xoff_sim::run_on(&plan, 2, &mut |_| true));
        assert_eq!(one.stop, Stop::AllDone);
        given_up += one
            .records
            .get::<xoff_schemes::flow_control::roundabout::Report>()
            .unwrap()
            .attempts
            .iter()
            .filter(|a| a.step == Step::GivenUp)
            .count();
        assert_eq!(
            (two.flows, two.pauses, two.records, two.ports),
            (one.flows, one.pauses, one.records, one.ports)
        );
    }
    assert!(given_up > 5, "{given_up}");
}
