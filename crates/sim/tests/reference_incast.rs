//! A reference case: the simulator of the Pyrrha paper (NSDI 2025, ns-3) ran the
//! flows of `reference/fattree128-incast720.csv` under PFC and BFC.
//!
//! Fat-tree of 128 hosts (k = 8), all links 100 Gbit/s and 600 ns, packets of
//! 1460 + 76 B, ACKs of 84 B, no congestion control. 720 flows of 30 to 40
//! packets go to host 0 at once (`incast`), and from 30 µs on background traffic
//! flows between pods: `victim` to hosts 1 to 15 or from hosts 0 to 15, `other`
//! elsewhere. ECMP hashes differ, so that distributions are compared.
//!
//! **PFC** agrees within a few percent in every class.
//!
//! **BFC-32** agrees in the tail of the incast, in the tail of the victims and
//! in the mean of the others, and differs elsewhere. Of the incast's mean the
//! service is the cause: the start of that simulator's round robin never moves,
//! because its loop over priorities counts on before the start is stored. By its
//! source it always serves the lowest number that may send, hence finishes flows
//! one after another. With this rule (`service = "lowest-first"`) the incast's
//! mean is the peer's 1903 within 2%, and with fair turns, as in BFC's paper, 22%
//! above it. The rule does not explain the means of the victims and of the others,
//! which are lower with it than in the peer's one run. Queue pairs paused one by one, as in its
//! NICs (`host_queues`), change nothing, because no host has that many flows. Other differences (a random queue in place of a hashed one, packets
//! instead of bytes as turns) change little. The tail of the others depends on
//! which flows ECMP puts together: over 40 hash seeds ours is 924–1696 (mean 1289,
//! standard deviation 195), so that the peer's one draw, 1678, lies inside our
//! spread, as its victims' 2171 does (1430–2314) and the others' mean (58–89).

use crate::common;

use common::run;
use std::path::Path;
use xoff_plan::plan::Plan;
use xoff_sim::outcome::Outcome;

const FLOWS: &str = include_str!("reference/fattree128-incast720.csv");
const CLASSES: [&str; 3] = ["incast", "victim", "other"];

fn plan(flow_control: &str, seed: u64) -> Plan {
    let mut text = format!(
        "[topology]\nkind = \"fat-tree\"\nk = 8\nlink = {{ rate = \"100Gbps\", delay = \"600ns\" }}\n\
         [switch]\nbuffer = \"20MB\"\n[transport]\nmtu = \"1460B\"\nheader = \"76B\"\nack = \"84B\"\nrto = \"100ms\"\n\
         [run]\nseed = {seed}\n[flow_control]\n{flow_control}\n"
    );
    for class in CLASSES {
        text += &format!("[[traffic]]\nkind = \"flows\"\nname = \"{class}\"\nfile = \"{class}.csv\"\n");
    }
    // The reference's lines of one class, without its name.
    let files = |path: &Path| {
        let class = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default();
        let mut csv = String::from("src,dst,bytes,start_ns\n");
        for line in FLOWS.lines().skip(1) {
            if let Some(flow) = line.strip_suffix(class).and_then(|l| l.strip_suffix(',')) {
                csv += flow;
                csv.push('\n');
            }
        }
        Ok(csv.into_bytes())
    };
    match xoff_plan::load("reference.toml", text.as_bytes(), &[], &files) {
        Ok(loaded) => loaded.plan,
        Err(error) => panic!("{:?}", miette::Report::new(error)),
    }
}

/// Mean and 99th percentile (nearest rank) of the completion times of each
/// class in µs, each averaged over `seeds`; and the last run.
fn measure(flow_control: &str, seeds: u64) -> ([(f64, f64); 3], Outcome) {
    let mut sums = [(0.0, 0.0); 3];
    let mut last = None;
    for seed in 1..=seeds {
        let plan = plan(flow_control, seed);
        assert_eq!(plan.flows.len(), 720 + 1172 + 3742);
        let outcome = run(&plan);
        assert_eq!(outcome.drops, []);
        for (class, sum) in sums.iter_mut().enumerate() {
            let of_class =
                plan.flows.iter().zip(&outcome.flows).filter(|(f, _)| usize::from(f.class) == class);
            let mut fct: Vec<f64> =
                of_class.map(|(f, r)| (r.completed.expect("completed") - f.start) as f64 / 1e6).collect();
            fct.sort_by(f64::total_cmp);
            sum.0 += fct.iter().sum::<f64>() / fct.len() as f64 / seeds as f64;
            sum.1 += fct[(fct.len() * 99).div_ceil(100) - 1] / seeds as f64;
        }
        last = Some(outcome);
    }
    (sums, last.expect("a seed"))
}

/// Whether `ours` lies within 15% of `theirs`.
fn near(ours: f64, theirs: f64) -> bool {
    (ours / theirs - 1.0).abs() <= 0.15
}

#[test]
fn pfc_agrees_with_the_reference() {
    let control =
        "scheme = \"pfc\"\nalpha = 0.25\nheadroom = \"60kB\"\nreserve = \"4096B\"\nxon_offset = \"3072B\"";
    let (ours, outcome) = measure(control, 2);
    let theirs = [(2455.0, 3072.0), (431.0, 2200.0), (30.1, 152.0)];
    println!("PFC, mean and p99 in us: {ours:.1?}; reference {theirs:?}");
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert!(near(ours.0, theirs.0) && near(ours.1, theirs.1), "{ours:?} {theirs:?}");
    }
    let buffer = outcome.buffer_peaks.iter().max().expect("switches");
    assert!(near(*buffer as f64, 10.5e6), "{buffer}");
    assert!(!outcome.pauses.is_empty());
}

/// The peer's service, the lowest queue first, gives the incast's mean of the peer.
#[test]
fn bfc_with_the_lowest_queue_first_has_the_incast_of_the_reference() {
    let control = "scheme = \"bfc\"\nqueues = 32\nacks = \"queues\"\nreuse_kept = true\n\
                   virtual_flows = 25600\nservice = \"lowest-first\"";
    let (ours, outcome) = measure(control, 4);
    let [incast, victim, _] = ours;
    println!(
        "BFC-32, lowest first, mean and p99 in us: {ours:.1?}; reference 1903/3074, 247/2171, 68.5/1678"
    );
    assert!((incast.0 / 1903.0 - 1.0).abs() <= 0.05 && near(incast.1, 3074.0), "{incast:?}");
    assert!(near(victim.1, 2171.0), "{victim:?}");
    let buffer = outcome.buffer_peaks.iter().max().expect("switches");
    assert!(near(*buffer as f64, 1.5e6), "{buffer}");
}

#[test]
fn bfc_agrees_with_the_reference_but_for_its_round_robin() {
    // The peer's choices for points that the paper leaves open.
    let control =
        "scheme = \"bfc\"\nqueues = 32\nacks = \"queues\"\nreuse_kept = true\nvirtual_flows = 25600";
    let (ours, outcome) = measure(control, 4);
    let [incast, victim, other] = ours;
    println!("BFC-32, mean and p99 in us: {ours:.1?}; reference 1903/3074, 247/2171, 68.5/1678");
    assert!(near(incast.1, 3074.0) && near(victim.1, 2171.0) && near(other.0, 68.5), "{ours:?}");
    // The effect of the peer's scheduler (see above): bounds of our own.
    assert!((2_200.0..2_450.0).contains(&incast.0), "{incast:?}");
    assert!((120.0..200.0).contains(&victim.0), "{victim:?}");
    assert!((900.0..1_700.0).contains(&other.1), "{other:?}");
    let buffer = outcome.buffer_peaks.iter().max().expect("switches");
    assert!(near(*buffer as f64, 1.5e6), "{buffer}");
    assert!(outcome.pauses.len() > 10_000);
}

/// The remaining blocking of both: with a queue for each flow, or 128 queues, victims do as well as under
/// Pyrrha in the reference (28.1 and 161 µs).
#[test]
fn victims_of_the_incast_are_spared_by_enough_queues() {
    let (ideal, outcome) = measure("scheme = \"per-flow-queue\"", 1);
    println!("per-flow-queue, mean and p99 in us: {ideal:.1?}");
    assert!(near(ideal[1].0, 28.1) && ideal[1].1 < 300.0, "{ideal:?}");
    assert!(near(ideal[2].0, 25.3) && near(ideal[2].1, 167.0), "{ideal:?}");
    assert!(outcome.pauses.len() > 10_000);
    let (many, _) = measure("scheme = \"bfc\"\nqueues = 128", 1);
    println!("BFC-128, mean and p99 in us: {many:.1?}");
    assert!(many[1].0 < 1.25 * ideal[1].0 && many[2].0 < 1.25 * ideal[2].0, "{many:?} {ideal:?}");
}
