//! Pyrrha and circles of waits: Figures 12 and 13, and what random fabrics do.

mod common;

use common::{plan_with, run};
use std::collections::BTreeSet;
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
