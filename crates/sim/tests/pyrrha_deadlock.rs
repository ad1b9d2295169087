//! Pyrrha and circles of waits: Figures 12 and 13, and what random fabrics do.

mod common;

use common::{plan_with, run};
use std::collections::BTreeSet;
use std::fmt::Write;
use xoff_kernel::random::Stream;
use xoff_plan::plan::Plan;
use xoff_sim::outcome::{Outcome, RootAhead, Stop};

/// A figure of the paper: its fabric and flows, under a flow control.
fn figure(text: &str, scheme: &[(&str, &str)]) -> (Plan, Outcome) {
    let plan = plan_with(text, scheme);
    let outcome = run(&plan);
    (plan, outcome)
}

/// Three switches in a ring, with a host each, and a further one at C.
fn ring() -> String {
    let link = |a: &str, b: &str| format!("{{a=\"{a}\", b=\"{b}\", rate=\"100Gbps\", delay=\"600ns\"}}");
    let links = [("A", "B"), ("B", "C"), ("C", "A"), ("a", "A"), ("b", "B"), ("c", "C"), ("c2", "C")];
    let links: Vec<String> = links.iter().map(|(a, b)| link(a, b)).collect();
    format!(
        "[topology]\nkind = \"custom\"\nswitches = [\"A\", \"B\", \"C\"]\nhosts = [\"a\", \"b\", \"c\", \"c2\"]\n\
         links = [{}]\n[switch]\nbuffer = \"20MB\"\n[transport]\nrto = \"1s\"\n[run]\nduration = \"5ms\"\n",
        links.join(", ")
    )
}

/// Figure 12: a flow that goes round, and another one that congests C1 (from C to A) first.
fn one_flow() -> String {
    ring()
        + "[routing]\noverrides = [{at = \"A\", to = \"c\", via = \"B\"}, {at = \"B\", to = \"c\", via = \"C\"}, \
           {at = \"C\", to = \"c\", via = \"A\"}]\n\
           [[traffic]]\nkind = \"flow\"\nsrc = \"a\"\ndst = \"c\"\nsize = \"1GB\"\nrate = \"50Gbps\"\n\
           [[traffic]]\nkind = \"flow\"\nsrc = \"c2\"\ndst = \"a\"\nsize = \"12500kB\"\n"
}

/// Figure 13: three flows, each over two links of the ring; F1 begins last.
fn three_flows() -> String {
    ring()
        + "[[traffic]]\nkind = \"flow\"\nsrc = \"a\"\ndst = \"c\"\nsize = \"1GB\"\nstart = \"10us\"\npath = [\"a\", \"A\", \"B\", \"C\", \"c\"]\n\
           [[traffic]]\nkind = \"flow\"\nsrc = \"b\"\ndst = \"a\"\nsize = \"1GB\"\npath = [\"b\", \"B\", \"C\", \"A\", \"a\"]\n\
           [[traffic]]\nkind = \"flow\"\nsrc = \"c\"\ndst = \"b\"\nsize = \"1GB\"\npath = [\"c\", \"C\", \"A\", \"B\", \"b\"]\n"
}

fn scheme(name: &str) -> Vec<(&str, &str)> {
    vec![("flow_control.scheme", name)]
}

fn pyrrha(organisation: &str) -> Vec<(&str, &str)> {
    vec![("flow_control.scheme", "pyrrha"), ("flow_control.organisation", organisation)]
}

#[test]
fn explore() {
    for (name, text) in [("12", one_flow()), ("13", three_flows())] {
        for s in [
            vec![("flow_control.scheme", "pfc")],
            vec![("flow_control.scheme", "bfc"), ("flow_control.queues", "2")],
            pyrrha("hiq"),
            pyrrha("single-tier"),
        ] {
            let (plan, o) = figure(&text, &s);
            println!(
                "{name} {s:?}: {:?}",
                o.deadlock.as_ref().map(|d| (
                    d.closed,
                    d.cycle.iter().map(|h| plan.topology.port_name(h.port)).collect::<Vec<_>>()
                ))
            );
            println!(
                "   {:?} pauses {} drops {:?}",
                o.pyrrha.as_ref().map(|t| (t.claims, t.abdications, t.merges, t.own_roots, t.shared)),
                o.pauses.len(),
                o.drops
            );
            for r in &o.roots {
                println!(
                    "   {} root {} oq {} ahead {:?}",
                    plan.topology.port_name(r.port),
                    r.is_root,
                    r.output_bytes,
                    r.ahead
                        .iter()
                        .map(|a| (plan.topology.port_name(a.root), a.paused, a.queues.clone(), a.bytes))
                        .collect::<Vec<_>>()
                );
            }
            println!("   {:?}", o.flows.iter().map(|f| f.delivered_bytes).collect::<Vec<_>>());
        }
    }
}

/// A random fabric of three to six switches with a host each: a ring, or a tree, with
/// some links more; flows along random paths, now and then with loops; a stall now and then.
fn random_fabric(seed: u64) -> String {
    let mut random = Stream::new(seed, "fabric", 0);
    let mut below = |n: usize| random.below(n as u64) as usize;
    let n = 3 + below(4);
    let mut links: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut join = |a: usize, b: usize| {
        if a != b {
            links.insert((a.min(b), a.max(b)));
        }
    };
    if below(3) > 0 {
        (0..n).for_each(|i| join(i, (i + 1) % n));
    } else {
        (1..n).for_each(|i| join(i, below(i)));
    }
    for _ in 0..below(4) {
        join(below(n), below(n));
    }
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
    let _ = writeln!(
        text,
        "]\n[switch]\nbuffer = \"20MB\"\n[flow_control]\nscheme = \"pyrrha\"\n[run]\nduration = \"1500us\"\nseed = {seed}"
    );
    if below(3) == 0 {
        let _ = writeln!(
            text,
            "[[slow_receiver]]\nhost = \"h{}\"\nstall_from = \"50us\"\nstall_until = \"{}us\"",
            below(n),
            200 + below(400)
        );
    }
    for _ in 0..4 + below(8) {
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
fn explore_random() {
    for o in ["hiq", "single-tier"] {
        for merging in ["soft", "off"] {
            let (mut dead, mut merges, mut claims, mut lost) = (0, 0, 0, 0);
            for seed in 0..300 {
                let text = random_fabric(seed);
                let plan =
                    plan_with(&text, &[("flow_control.organisation", o), ("flow_control.merging", merging)]);
                let outcome = run(&plan);
                let t = outcome.pyrrha.as_ref().unwrap();
                merges += t.merges;
                claims += t.claims;
                lost += u32::from(!outcome.drops.is_empty());
                if let Some(d) = &outcome.deadlock {
                    dead += 1;
                    println!(
                        "{o} {merging} {seed}: {:?} stuck {}",
                        d.cycle
                            .iter()
                            .map(|h| (plan.topology.port_name(h.port), h.bytes))
                            .collect::<Vec<_>>(),
                        outcome.waiting.len()
                    );
                }
            }
            println!("{o} {merging}: {dead} dead, {claims} claims, {merges} merges, {lost} lost");
        }
    }
}

#[test]
fn explore_one_root() {
    let link = |a: &str, b: &str| format!("{{a=\"{a}\", b=\"{b}\", rate=\"100Gbps\", delay=\"600ns\"}}");
    let links = [
        ("A", "B"),
        ("B", "C"),
        ("C", "A"),
        ("A", "R"),
        ("B", "R"),
        ("C", "R"),
        ("a", "A"),
        ("b", "B"),
        ("c", "C"),
        ("r", "R"),
    ];
    let links: Vec<String> = links.iter().map(|(a, b)| link(a, b)).collect();
    let text = format!(
        "[topology]\nkind = \"custom\"\nswitches = [\"A\", \"B\", \"C\", \"R\"]\nhosts = [\"a\", \"b\", \"c\", \"r\"]\n\
         links = [{}]\n[switch]\nbuffer = \"20MB\"\n[transport]\nrto = \"1s\"\n[run]\nduration = \"5ms\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"a\"\ndst = \"r\"\nsize = \"1GB\"\npath = [\"a\", \"A\", \"B\", \"C\", \"R\", \"r\"]\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"b\"\ndst = \"r\"\nsize = \"1GB\"\npath = [\"b\", \"B\", \"C\", \"A\", \"R\", \"r\"]\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"c\"\ndst = \"r\"\nsize = \"1GB\"\npath = [\"c\", \"C\", \"A\", \"B\", \"R\", \"r\"]\n",
        links.join(", ")
    );
    for o in ["hiq", "single-tier"] {
        let (plan, outcome) = figure(&text, &pyrrha(o));
        println!(
            "one root {o}: {:?} {:?}",
            outcome.deadlock.as_ref().map(|d| (
                d.closed,
                d.cycle.iter().map(|h| (plan.topology.port_name(h.port), h.bytes)).collect::<Vec<_>>()
            )),
            outcome.pyrrha
        );
        println!("{:?}", outcome.flows.iter().map(|f| f.delivered_bytes).collect::<Vec<_>>());
    }
}
