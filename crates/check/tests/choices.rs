//! Sources that choose between two routes: both count, in the search, in the
//! checker of proofs and in the walks of the blocking analysis.

use crate::common;

use common::{check, load};
use std::collections::BTreeSet;
use std::fmt::Write;
use xoff_check::Verdict;
use xoff_check::certificate::Routes;
use xoff_check::verify::verify;
use xoff_check::walks::Walks;
use xoff_kernel::random::Stream;

const N: u64 = 3;

/// A rail-only network of three by three; ACKs in a lossy priority, so only data makes dependencies.
const FABRIC: &str = "[topology]\nkind = \"rail-only\"\nn = 3\ndomain_link = {rate=\"160Gbps\", delay=\"1us\"}\n\
     rail_link = {rate=\"100Gbps\", delay=\"1us\"}\n[transport]\nack_priority = 0\n\
     [[priority]]\nid = 0\nlossless = false\n";

/// A few pairs of hosts.
fn pairs(seed: u64) -> Vec<(u64, u64)> {
    let mut random = Stream::new(seed, "pairs", 0);
    let mut pairs = Vec::new();
    while pairs.len() < 4 + (seed % 8) as usize {
        let (a, b) = (random.below(N * N), random.below(N * N));
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

/// The flows as they are routed, with keys of `[routing]`.
fn routed(pairs: &[(u64, u64)], routing: &str) -> String {
    let mut text = format!("{routing}{FABRIC}");
    pairs.iter().for_each(|&pair| flow(&mut text, pair, ""));
    text
}

/// Each flow once along each of its shortest routes, which are worked out by hand.
fn spelled_out(pairs: &[(u64, u64)]) -> String {
    let mut text = FABRIC.to_string();
    for &(a, b) in pairs {
        let (domain, rail) = (|h: u64| format!("S0.{}", h / N), |h: u64| format!("S1.{}", h % N));
        let mut paths: Vec<Vec<String>> = Vec::new();
        if a / N == b / N {
            paths.push(vec![domain(a)]);
        } else if a % N == b % N {
            paths.push(vec![rail(a)]);
        } else {
            paths.push(vec![domain(a), format!("H{}", a / N * N + b % N), rail(b)]);
            paths.push(vec![rail(a), format!("H{}", b / N * N + a % N), domain(b)]);
        }
        for path in paths {
            let inner: Vec<String> = path.iter().map(|node| format!("\"{node}\"")).collect();
            flow(&mut text, (a, b), &format!("path = [\"H{a}\", {}, \"H{b}\"]\n", inner.join(", ")));
        }
    }
    text
}

#[test]
fn the_check_sees_both_routes() {
    let (mut cycles, mut unseen) = (0, 0);
    for seed in 0..120 {
        let pairs = pairs(seed);
        let chosen = load(&routed(&pairs, "[routing.ate]\n"), &[]);
        let both = load(&spelled_out(&pairs), &[]);
        let (a, b) = (check(&chosen, Routes::Scenario), check(&both, Routes::Scenario));
        assert_eq!(
            (a.report.waits, a.report.dependencies),
            (b.report.waits, b.report.dependencies),
            "seed {seed}: {pairs:?}"
        );
        let safe = |v: &Verdict| matches!(v, Verdict::Safe { .. });
        assert_eq!(safe(&a.report.verdict), safe(&b.report.verdict), "seed {seed}: {pairs:?}");
        cycles += usize::from(!safe(&a.report.verdict));

        // The ports that each flow's packets may cross.
        let ports = |plan: &xoff_plan::plan::Plan| -> BTreeSet<Vec<u32>> {
            let walks = Walks::new(plan);
            let data = (0..walks.walks.len() as u32).filter(|&w| !walks.walks[w as usize].is_control);
            data.map(|w| walks.ports(w).to_vec()).collect()
        };
        assert_eq!(ports(&chosen.plan), ports(&both.plan), "seed {seed}: {pairs:?}");

        // A proof of the hash's routes is none of these.
        let hashed = load(&routed(&pairs, ""), &[]);
        let hash = check(&hashed, Routes::Scenario);
        if let (true, Some(proof)) = (hash.report.dependencies < a.report.dependencies, &hash.certificate) {
            let mut router = chosen.router.clone();
            assert!(verify(&chosen, &mut router, proof).is_err(), "seed {seed}: {pairs:?}");
            unseen += usize::from(!safe(&a.report.verdict));
        }
    }
    assert!(cycles >= 5 && unseen >= 3, "{cycles} with a cycle, {unseen} that the hash does not show");
}

/// A scenario that may show a cycle spells its routes out, and keeps no choice.
#[test]
fn candidates_for_a_cycle_make_no_choice() {
    let mut shown = 0;
    for seed in 0..120 {
        let analysis = check(&load(&routed(&pairs(seed), "[routing.ate]\n"), &[]), Routes::Scenario);
        for candidate in &analysis.candidates {
            let made = load(&candidate.text, &[]);
            // The scenario has ACKs after data, which causes a warning.
            let other = made.warnings.iter().find(|w| w.key != "transport.ack_priority");
            assert!(made.plan.ate.is_none() && other.is_none(), "{other:?}");
            shown += 1;
        }
    }
    assert!(shown >= 5, "{shown}");
}
