//! Packets that are spread singly, and flows with labels: every path counts, in the search, in the checker of
//! proofs and in the walks of the blocking analysis.

use crate::common;

use common::{check, load, run, shown};
use std::collections::BTreeSet;
use std::fmt::Write;
use xoff_check::Verdict;
use xoff_check::certificate::Routes;
use xoff_check::verify::verify;
use xoff_check::walks::Walks;
use xoff_kernel::random::Stream;
use xoff_plan::balancing::LoadBalancing;
use xoff_plan::plan::Plan;

/// A torus of 4 by 4, whose shortest paths can wait for each other in cycles; ACKs in a lossy priority, so
/// only data makes dependencies.
const TORUS: &str = "[topology]\nkind = \"torus-2d\"\nwidth = 4\nheight = 4\nhosts_per_switch = 1\n\
     link = {rate=\"100Gbps\", delay=\"1us\"}\n[transport]\nkind = \"irn\"\nack_priority = 0\n\
     [[priority]]\nid = 0\nlossless = false\n";

fn pairs(seed: u64) -> Vec<(u64, u64)> {
    let mut random = Stream::new(seed, "pairs", 0);
    let mut pairs = Vec::new();
    while pairs.len() < 4 + (seed % 16) as usize {
        let (a, b) = (random.below(16), random.below(16));
        if a != b {
            pairs.push((a, b));
        }
    }
    pairs
}

fn flow(text: &mut String, (src, dst): (u64, u64), path: &str) {
    write!(text, "[[traffic]]\nkind = \"flow\"\nsrc = \"H{src}\"\ndst = \"H{dst}\"\nsize = \"10kB\"\n{path}")
        .unwrap();
}

fn routed(pairs: &[(u64, u64)], kind: &str) -> String {
    let mut text = format!("[routing]\nload_balancing = \"{kind}\"\n{TORUS}");
    pairs.iter().for_each(|&pair| flow(&mut text, pair, ""));
    text
}

/// Every shortest path of the torus: all orders of the steps that lead nearer, only by the coordinates.
fn paths((a, b): (u64, u64)) -> Vec<Vec<u64>> {
    fn extend(path: Vec<u64>, b: u64, done: &mut Vec<Vec<u64>>) {
        let at = *path.last().unwrap();
        if at == b {
            return done.push(path);
        }
        let apart = |a: u64, b: u64| {
            let one = |a: u64, b: u64| (a + 4 - b).rem_euclid(4).min((b + 4 - a).rem_euclid(4));
            one(a % 4, b % 4) + one(a / 4, b / 4)
        };
        let (x, y) = (at % 4, at / 4);
        for next in [y * 4 + (x + 1) % 4, y * 4 + (x + 3) % 4, (y + 1) % 4 * 4 + x, (y + 3) % 4 * 4 + x] {
            if apart(next, b) < apart(at, b) {
                extend([path.as_slice(), &[next]].concat(), b, done);
            }
        }
    }
    let mut done = Vec::new();
    extend(vec![a], b, &mut done);
    done
}

fn spelled_out(pairs: &[(u64, u64)]) -> String {
    let mut text = TORUS.to_string();
    for &(a, b) in pairs {
        for path in paths((a, b)) {
            let inner: Vec<String> = path.iter().map(|s| format!("\"S0.{s}\"")).collect();
            flow(&mut text, (a, b), &format!("path = [\"H{a}\", {}, \"H{b}\"]\n", inner.join(", ")));
        }
    }
    text
}

/// The ports that each flow's data may cross.
fn ports(plan: &Plan) -> BTreeSet<Vec<u32>> {
    ports_of(plan, false)
}

fn ports_of(plan: &Plan, is_control: bool) -> BTreeSet<Vec<u32>> {
    let walks = Walks::new(plan);
    let all = (0..walks.walks.len() as u32).filter(|&w| walks.walks[w as usize].is_control == is_control);
    all.map(|w| walks.ports(w).to_vec()).collect()
}

#[test]
fn the_check_covers_every_path() {
    let (mut cycles, mut unseen) = (0, 0);
    for seed in 0..60 {
        let pairs = pairs(seed);
        let spread = load(&routed(&pairs, "spray"), &[]);
        let all = load(&spelled_out(&pairs), &[]);
        let (a, b) = (check(&spread, Routes::Scenario), check(&all, Routes::Scenario));
        assert_eq!(
            (a.report.waits, a.report.dependencies),
            (b.report.waits, b.report.dependencies),
            "seed {seed}: {pairs:?}"
        );
        let safe = |v: &Verdict| matches!(v, Verdict::Safe { .. });
        assert_eq!(safe(&a.report.verdict), safe(&b.report.verdict), "seed {seed}: {pairs:?}");
        assert_eq!(ports(&spread.plan), ports(&all.plan), "seed {seed}: {pairs:?}");
        if let Verdict::CycleWithoutWitness { cycle, .. } = &a.report.verdict {
            cycles += 1;
            for edge in &cycle.edges {
                assert!(edge.flows > 0 && edge.closed_by.iter().all(|c| c.path.len() > 3), "{edge:?}");
            }
            assert!(!run(&spread.plan).flows.is_empty());
        }
        let hashed = load(&routed(&pairs, "ecmp"), &[]);
        let hash = check(&hashed, Routes::Scenario);
        if let (true, Some(proof)) = (hash.report.dependencies < a.report.dependencies, &hash.certificate) {
            let mut router = spread.router.clone();
            assert!(verify(&spread, &mut router, proof).is_err(), "seed {seed}: {pairs:?}");
            unseen += usize::from(!safe(&a.report.verdict));
        }
    }
    assert!(cycles >= 5 && unseen >= 3, "{cycles} with a cycle, {unseen} that the hash does not show");
}

/// A scenario that may show a cycle spells its routes out, and balances nothing.
#[test]
fn candidates_for_a_cycle_have_explicit_routes() {
    let (mut candidates, mut deadlocks) = (0, 0);
    for (seed, kind) in (0..30).zip(["spray", "drill", "plb", "reps"].into_iter().cycle()) {
        let analysis = check(&load(&routed(&pairs(seed), kind), &[]), Routes::Scenario);
        for candidate in &analysis.candidates {
            let made = load(&candidate.text, &[]);
            assert_eq!(made.plan.load_balancing, LoadBalancing::Ecmp);
            // The scenario has ACKs after data, which causes a warning.
            let other = made.warnings.iter().find(|w| w.key != "transport.ack_priority");
            assert!(other.is_none(), "{other:?}");
            candidates += 1;
        }
        deadlocks += usize::from(shown(&analysis).is_some());
    }
    assert!(candidates >= 5 && deadlocks >= 1, "{candidates} {deadlocks}");
}

#[test]
fn every_label_counts() {
    for seed in 0..30 {
        let pairs = pairs(seed);
        let labelled = load(&routed(&pairs, "plb"), &[("routing.plb.labels", "64")]);
        // So many labels find every path of at most six, with a chance of all but 10^-4.
        let near: Vec<_> = pairs.iter().copied().filter(|&p| paths(p).len() <= 6).collect();
        let few = load(&spelled_out(&near), &[]);
        assert!(near.is_empty() || ports(&few.plan).is_subset(&ports(&labelled.plan)), "seed {seed}");
        let all = load(&spelled_out(&pairs), &[]);
        assert!(ports(&labelled.plan).is_subset(&ports(&all.plan)), "seed {seed}");
        let analysis = check(&labelled, Routes::Scenario);
        if let Some(proof) = &analysis.certificate {
            verify(&labelled, &mut labelled.router.clone(), proof).expect("it holds");
        }
    }
}

/// Under REPS ACKs have the labels of their packets, and take every path back. In a lossless priority they can then
/// wait for each other where those of one path each cannot, and a proof that leaves their paths out does not hold.
#[test]
fn every_label_of_acks_counts() {
    let (mut new_waits, mut refuted) = (0, 0);
    for seed in 0..30 {
        let pairs = pairs(seed);
        let lossless = |kind: &str| {
            let text = routed(&pairs, kind);
            let text = text
                .replace("ack_priority = 0\n", "")
                .replace("[[priority]]\nid = 0\nlossless = false\n", "");
            load(&text, &[])
        };
        let back: Vec<_> = pairs.iter().map(|&(a, b)| (b, a)).filter(|&p| paths(p).len() <= 6).collect();
        let reps = lossless("reps");
        let few = load(&spelled_out(&back), &[]);
        assert!(back.is_empty() || ports(&few.plan).is_subset(&ports_of(&reps.plan, true)), "seed {seed}");
        let analysis = check(&reps, Routes::Scenario);
        if let Some(proof) = &analysis.certificate {
            verify(&reps, &mut reps.router.clone(), proof).expect("it holds");
        }
        // The same flows, whose data take all labels and whose ACKs take one path.
        let mut one_path = lossless("reps");
        let LoadBalancing::Labels(labels) = &mut one_path.plan.load_balancing else { panic!() };
        labels.ack_routes.clear();
        let of_one = check(&one_path, Routes::Scenario);
        assert!(of_one.report.dependencies <= analysis.report.dependencies, "seed {seed}");
        if let (true, Some(proof)) =
            (of_one.report.dependencies < analysis.report.dependencies, &of_one.certificate)
        {
            new_waits += 1;
            refuted += usize::from(verify(&reps, &mut reps.router.clone(), proof).is_err());
        }
    }
    assert!(new_waits > 0 && refuted == new_waits, "{new_waits} {refuted}");
}

/// A Clos network is deadlock-free for all choices of devices.
#[test]
fn a_fat_tree_is_safe() {
    let text = "[topology]\nkind = \"fat-tree\"\nk = 4\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n\
                [routing]\nload_balancing = \"drill\"\n[transport]\nkind = \"irn\"\n\
                [[traffic]]\nkind = \"all-to-all\"\nsize = \"10kB\"\n";
    let loaded = load(text, &[]);
    let own = check(&loaded, Routes::Scenario);
    let all = check(&loaded, Routes::ALL);
    for analysis in [&own, &all] {
        assert!(matches!(analysis.report.verdict, Verdict::Safe { compared: Some(n) } if n > 100));
    }
    assert_eq!(own.report.dependencies, all.report.dependencies);
}

/// Under failures the checker of proofs, which shares nothing with the search, finds the same paths,
/// including those of packets in flight.
#[test]
fn proofs_hold_where_forks_follow_failures() {
    let text = "[topology]\nkind = \"fat-tree\"\nk = 4\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n\
                [routing]\nload_balancing = \"spray\"\n[transport]\nkind = \"irn\"\nack_priority = 0\n\
                [[priority]]\nid = 0\nlossless = false\n[flow_control]\nscheme = \"bfc\"\n";
    let failure = "[[failure]]\nlink = \"S1.6-S2.0\"\nat = \"20us\"\n";
    let traffic = "[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H15\"\nsize = \"1MB\"\n";
    let intact = load(&format!("{text}{traffic}"), &[]);
    let failing = load(&format!("{text}{failure}{traffic}"), &[]);
    let (a, b) = (check(&intact, Routes::Scenario), check(&failing, Routes::Scenario));
    // Packets before the failed link go back, on paths that they did not take before.
    assert!(b.report.dependencies > a.report.dependencies);
    assert!(ports(&intact.plan).is_subset(&ports(&failing.plan)) || ports(&failing.plan).len() > 4);
    if let Some(proof) = &a.certificate {
        assert!(verify(&failing, &mut failing.router.clone(), proof).is_err());
        assert!(verify(&intact, &mut intact.router.clone(), proof).is_ok());
    }
}

/// The same where labels follow failures.
#[test]
fn proofs_hold_where_labels_follow_failures() {
    let fabric = "[topology]\nkind = \"fat-tree\"\nk = 4\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n\
                  [transport]\nkind = \"irn\"\n[flow_control]\nscheme = \"pfc\"\n";
    let failures = "[[failure]]\nlink = \"S0.0-S1.0\"\nat = \"20us\"\nuntil = \"50us\"\n\
                    [[failure]]\nlink = \"S1.6-S2.0\"\nat = \"30us\"\n";
    let traffic = "[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H15\"\nsize = \"1MB\"\n";
    for kind in ["plb", "reps"] {
        let text = format!("{fabric}[routing]\nload_balancing = \"{kind}\"\n");
        let intact = load(&format!("{text}{traffic}"), &[]);
        let failing = load(&format!("{text}{failures}{traffic}"), &[]);
        assert!(failing.plan.faults.tables.iter().any(|table| table.labels.len() > 1));
        let [a, b] = [&intact, &failing].map(|loaded| check(loaded, Routes::Scenario));
        // A packet before a failed link goes down again.
        assert!(b.report.dependencies > a.report.dependencies, "{kind}");
        let [a, b] = [a, b].map(|analysis| analysis.certificate);
        verify(&intact, &mut intact.router.clone(), &a.expect("a Clos network is safe")).expect("it holds");
        if let Some(proof) = b {
            verify(&failing, &mut failing.router.clone(), &proof).expect("it holds");
        }
    }
}

/// A single flow that may take every path offers a port no more than its own rate, so none is congested for long.
#[test]
fn a_flow_that_chooses_offers_no_more_than_its_rate() {
    for kind in ["spray", "adaptive"] {
        let blocking =
            |pairs: &[(u64, u64)]| check(&load(&routed(pairs, kind), &[]), Routes::Scenario).report.blocking;
        assert_eq!(blocking(&[(0, 10)]).congested_ports, 0, "{kind}");
        // Two flows to one host do.
        assert!(blocking(&[(0, 10), (5, 10)]).congested_ports > 0, "{kind}");
    }
}
