//! ITSY: a deadlock with one trigger is found where it began, and dissolved; one with several is
//! missed.

mod common;

use common::{plan, plan_with, run};
use std::fmt::Write;

/// A ring of `n` switches whose link from S1 to S2 is slow, so that S1's queue from S0 is the one
/// that others wait for. Each host sends over two links clockwise, at a quarter of the links' rate.
fn one_trigger(n: usize, keys: &str) -> String {
    let mut text = "[topology]\nkind = \"custom\"\n".to_string();
    let names = |letter: char| (0..n).map(|i| format!("\"{letter}{i}\"")).collect::<Vec<_>>().join(", ");
    writeln!(text, "hosts = [{}]\nswitches = [{}]\nlinks = [", names('H'), names('S')).unwrap();
    for i in 0..n {
        let rate = if i == 1 { 2 } else { 100 };
        writeln!(text, "{{a = \"S{i}\", b = \"S{}\", rate = \"{rate}Gbps\", delay = \"1us\"}},", (i + 1) % n).unwrap();
        writeln!(text, "{{a = \"H{i}\", b = \"S{i}\", rate = \"25Gbps\", delay = \"1us\"}},").unwrap();
    }
    writeln!(text, "]\n[flow_control]\nscheme = \"itsy\"\nxoff = \"20kB\"\nxon = \"2kB\"\n{keys}").unwrap();
    for i in 0..n {
        let (b, c) = ((i + 1) % n, (i + 2) % n);
        writeln!(
            text,
            "[[traffic]]\nkind = \"flow\"\nsrc = \"H{i}\"\ndst = \"H{c}\"\nsize = \"500kB\"\n\
             path = [\"H{i}\", \"S{i}\", \"S{b}\", \"S{c}\", \"H{c}\"]"
        )
        .unwrap();
    }
    text
}

#[test]
fn probe() {
    for n in 3..9 {
        let text = one_trigger(n, "");
        let bare = run(&plan_with(&text, &[("flow_control.scheme", "pfc")]));
        println!("{n} pfc {:?} {:?}", bare.stop, bare.deadlock.as_ref().map(|d| (d.closed, d.cycle.len())));
        for keys in ["", "resolution=\"lossless\""] {
            let plan = plan(&one_trigger(n, keys));
            let outcome = run(&plan);
            let itsy = outcome.itsy.unwrap();
            println!("  {keys} {:?} {:?} {:?} disc {} drops {} trig {} done {}", outcome.stop, outcome.deadlock.as_ref().map(|d| (d.closed, d.cycle.len(), d.ended)), itsy.detections.first(), itsy.discarded, outcome.counters.dropped, itsy.triggers.len(), outcome.flows.iter().filter(|f| f.completed.is_some()).count());
            for t in itsy.triggers.iter().filter(|t| outcome.deadlock.as_ref().is_some_and(|d| t.from <= d.closed && t.until.is_none_or(|u| u > d.closed))) {
                println!("    {} {:?}", plan.topology.port_name(t.port), t);
            }
        }
    }
}
