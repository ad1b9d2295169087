//! Proofs never fail: random fabrics, routes and traffic, checked and run.

use crate::common;

use common::{check, load, run, safe, shown};
use std::collections::BTreeSet;
use std::fmt::Write;
use xoff_check::Verdict;
use xoff_check::certificate::Routes;
use xoff_kernel::random::Stream;

const FABRICS: u64 = 500;

/// A random fabric of three to six switches with a host each: a ring, or a tree,
/// with some links more; flows along random paths; a stall now and then.
fn scenario(seed: u64) -> String {
    let mut random = Stream::new(seed, "fabric", 0);
    let mut below = |n: usize| random.below(n as u64) as usize;
    let n = 3 + below(4);
    let mut links: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut join = |a: usize, b: usize| {
        if a != b {
            links.insert((a.min(b), a.max(b)));
        }
    };
    if below(2) == 0 {
        (0..n).for_each(|i| join(i, (i + 1) % n));
    } else {
        (1..n).for_each(|i| join(i, below(i)));
    }
    for _ in 0..below(3) {
        join(below(n), below(n));
    }
    let control = match below(4) {
        0 => "scheme = \"bfc\"\nqueues = 2\n",
        1 => "scheme = \"per-flow-queue\"\n",
        _ => "scheme = \"pfc\"\nxoff = \"15kB\"\nxon = \"8kB\"\n",
    };
    let names = |letter: char| (0..n).map(|i| format!("\"{letter}{i}\"")).collect::<Vec<_>>().join(", ");
    let mut text = format!(
        "[topology]\nkind = \"custom\"\nhosts = [{}]\nswitches = [{}]\nlinks = [\n",
        names('h'),
        names('s')
    );
    let pairs = (0..n).map(|i| (format!("h{i}"), format!("s{i}")));
    for (a, b) in pairs.chain(links.iter().map(|(a, b)| (format!("s{a}"), format!("s{b}")))) {
        let _ = writeln!(text, "{{a = \"{a}\", b = \"{b}\", rate = \"10Gbps\", delay = \"500ns\"}},");
    }
    let _ = writeln!(text, "]\n[flow_control]\n{control}[run]\nduration = \"1500us\"\nseed = {seed}");
    if below(3) == 0 {
        let _ = writeln!(
            text,
            "[[slow_receiver]]\nhost = \"h{}\"\nstall_from = \"50us\"\nstall_until = \"{}us\"",
            below(n),
            200 + below(400)
        );
    }
    for _ in 0..3 + below(6) {
        // A random walk that visits no switch twice.
        let mut path = vec![below(n)];
        for _ in 0..1 + below(n - 1) {
            let at = path[path.len() - 1];
            let next: Vec<usize> = links
                .iter()
                .flat_map(|&(a, b)| [(a, b), (b, a)])
                .filter(|&(a, b)| a == at && !path.contains(&b))
                .map(|(_, b)| b)
                .collect();
            if next.is_empty() {
                break;
            }
            path.push(next[below(next.len())]);
        }
        let (src, dst) = (path[0], path[path.len() - 1]);
        if src == dst {
            continue;
        }
        let nodes: Vec<String> = path.iter().map(|s| format!("\"s{s}\"")).collect();
        let _ = writeln!(
            text,
            "[[traffic]]\nkind = \"flow\"\nsrc = \"h{src}\"\ndst = \"h{dst}\"\nsize = \"{}kB\"\nstart = \"{}us\"\n\
             path = [\"h{src}\", {}, \"h{dst}\"]",
            100 + below(900),
            below(100),
            nodes.join(", ")
        );
    }
    let _ = writeln!(text, "[[traffic]]\nkind = \"permutation\"\nsize = \"200kB\"");
    text
}

#[test]
fn proved_fabrics_never_deadlock_and_cycles_mostly_do() {
    let (mut proved, mut cycles, mut witnesses, mut own, mut every) = (0, 0, 0, 0, 0);
    for seed in 0..FABRICS {
        let loaded = load(&scenario(seed), &[]);
        let analysis = check(&loaded, Routes::Scenario);
        // All routes contain those of the flows.
        if analysis.report.pause_stops != "flow" && safe(&loaded, Routes::ALL) {
            every += 1;
            let own = matches!(analysis.report.verdict, Verdict::Safe { .. });
            assert!(own, "fabric {seed} is safe on all routes, but not on its own:\n{}", scenario(seed));
        }
        let deadlock = run(&loaded.plan).deadlock;
        match analysis.report.verdict {
            Verdict::Safe { .. } => {
                proved += 1;
                assert!(deadlock.is_none(), "fabric {seed} was proved safe:\n{}", scenario(seed));
            }
            _ => {
                cycles += 1;
                own += u32::from(deadlock.is_some());
                match shown(&analysis) {
                    Some(_) => witnesses += 1,
                    None => println!("no witness for fabric {seed}, {}", analysis.report.flow_control),
                }
            }
        }
    }
    println!(
        "of {FABRICS} fabrics {proved} proved safe ({every} on all routes); {cycles} with cycles, {witnesses} of which with a witness; \
         {own} deadlock by themselves"
    );
    assert!(every >= 50, "{every} are safe on all routes");
    assert!(proved >= 100 && cycles >= 50 && own > 0, "{proved} {cycles} {own}");
    assert!(witnesses * 10 >= cycles * 8, "{witnesses} of {cycles} cycles have a witness");
}

/// The same fabric under PFC or BFC, its flows routed: random static routes, and a link that fails while
/// packets are in flight.
fn failing(seed: u64) -> String {
    let mut random = Stream::new(seed, "failing", 0);
    let mut below = |n: usize| random.below(n as u64) as usize;
    let whole = scenario(seed).replace("per-flow-queue", "bfc");
    let text = whole.split("[[traffic]]").next().expect("there is always a first part");
    let names = text.lines().filter(|l| l.starts_with("{a = \"s")).map(|l| {
        let mut quoted = l.split('"');
        (quoted.nth(1).expect("a name").to_string(), quoted.nth(1).expect("a name").to_string())
    });
    let links: Vec<(String, String)> = names.collect();
    let hosts = text.matches("{a = \"h").count();
    let mut out = text.to_string();
    if below(2) == 0 {
        let overrides: Vec<String> = (0..1 + below(2))
            .map(|_| {
                let (at, via) = &links[below(links.len())];
                format!("{{at = \"{at}\", to = \"h{}\", via = \"{via}\"}}", below(hosts))
            })
            .collect();
        let _ = writeln!(out, "[routing]\noverrides = [{}]", overrides.join(", "));
    }
    let (a, b) = &links[below(links.len())];
    let _ = writeln!(out, "[[failure]]\nlink = \"{a}-{b}\"\nat = \"{}us\"", 20 + below(200));
    out + "[[traffic]]\nkind = \"all-to-all\"\nsize = \"200kB\"\n"
}

#[test]
fn fabrics_proved_under_failures_never_deadlock() {
    let (mut proved, mut cycles) = (0, 0);
    for seed in 0..FABRICS / 2 {
        let loaded = load(&failing(seed), &[]);
        if safe(&loaded, Routes::SINGLE_FAILURES) {
            proved += 1;
            // The changes of flows at the failure are a part of the proof.
            assert!(safe(&loaded, Routes::Scenario), "fabric {seed}:\n{}", failing(seed));
            assert!(run(&loaded.plan).deadlock.is_none(), "fabric {seed}:\n{}", failing(seed));
        } else {
            cycles += 1;
        }
    }
    println!("of {} fabrics {proved} proved safe under failures; {cycles} with cycles", FABRICS / 2);
    assert!(proved >= 20 && cycles >= 20, "{proved} {cycles}");
}
