//! Pyrrha with changes of routes for packets that wait for a root: queue pairs are sorted anew.

use crate::common;

use common::{plan, run};
use std::fmt::Write;
use xoff_plan::plan::Plan;
use xoff_schemes::load_balancing::plb::report::Report;
use xoff_sim::outcome::{Outcome, Stop};

/// A network of switches and hosts, each host linked to the switch of its name in capitals; links of `slow`
/// run at 100 Mbit/s, all others at 100 Gbit/s.
fn network(switches: &str, hosts: &str, links: &[(&str, &str)], slow: (&str, &str)) -> String {
    let quoted = |names: &str| names.chars().map(|c| format!("\"{c}\"")).collect::<Vec<_>>().join(", ");
    let mut text = format!(
        "[topology]\nkind = \"custom\"\nswitches = [{}]\nhosts = [{}]\nlinks = [\n",
        quoted(switches),
        quoted(hosts)
    );
    let own: Vec<(String, String)> =
        hosts.chars().map(|h| (h.to_string(), h.to_uppercase().to_string())).collect();
    let own = own.iter().map(|(a, b)| (a.as_str(), b.as_str()));
    for link in links.iter().copied().chain(own) {
        let rate = if link == slow { "100Mbps" } else { "100Gbps" };
        let _ =
            writeln!(text, "{{a = \"{}\", b = \"{}\", rate = \"{rate}\", delay = \"1us\"}},", link.0, link.1);
    }
    text + "]\n[switch]\nbuffer = \"10MB\"\n[flow_control]\nscheme = \"pyrrha\"\nk_pause = \"100kB\"\nk_resume = \"10kB\"\n\
            [run]\nduration = \"20ms\"\n[transport]\nrto = \"50us\"\n[measure]\nexplain = true\n"
}

fn flow(src: &str, size: &str) -> String {
    format!("[[traffic]]\nkind = \"flow\"\nsrc = \"{src}\"\ndst = \"d\"\nsize = \"{size}\"\n")
}

/// When the root's queue, once it holds K_pause, is down to K_resume: not before this.
const RESUMES: u64 = 90_000 * 8 * 10_000;

/// When the flow is complete, and how long its host has been paused for the slow port.
fn told(plan: &Plan, outcome: &Outcome, flow: usize, slow: &str) -> (Option<u64>, u64) {
    let root = (0..plan.topology.ports.len() as u32).find(|&p| plan.topology.port_name(p) == slow);
    let nic = plan.hops[plan.flows[flow].path as usize];
    let pause = outcome.pauses.iter().find(|p| p.port == nic && p.named_root == root);
    let pause = pause.expect("its host is paused for the slow link");
    (outcome.flows[flow].completed, pause.until.unwrap_or(outcome.end) - pause.from)
}

/// The path from A by B leads over a slow link, which is a root. When a link after it fails, the flow gets
/// another path by the same first port: it does not wait any more, although the root persists for
/// milliseconds.
#[test]
fn a_queue_pair_that_waits_for_a_root_continues_on_another_route() {
    let links = [("A", "B"), ("B", "C"), ("C", "D"), ("A", "E"), ("E", "F"), ("F", "G"), ("G", "D")];
    let text = network("ABCDEFG", "acd", &links, ("B", "C"))
        + &flow("a", "1MB")
        + "[[failure]]\nlink = \"C-D\"\nat = \"200us\"\n[routing]\nreconvergence = \"10us\"\n";
    let plan = plan(&text);
    let outcome = run(&plan);
    let (completed, paused) = told(&plan, &outcome, 0, "B:1");
    assert!(paused > RESUMES / 2, "its host was paused for {paused} ps");
    // It retransmits the packets before the slow link.
    assert!(completed.is_some_and(|t| t < 2_000_000_000), "{completed:?}");
    assert!(outcome.flows[0].timeouts > 0);
}

/// The same under PLB, whose senders change the label of a flow after a timeout: where
/// the new one leads by the other switch the flow goes on at once, and where it does not
/// it waits.
#[test]
fn a_queue_pair_with_another_label_continues() {
    let links = [("A", "P"), ("A", "Q"), ("P", "D"), ("Q", "D")];
    let mut seen = [0; 2];
    for seed in 1..40 {
        let plan = plan(
            &(network("APQD", "ad", &links, ("P", "D"))
                + &flow("a", "1MB")
                + &format!("[routing]\nload_balancing = \"plb\"\nseed = {seed}\n")),
        );
        let first = plan.topology.neighbour(plan.hops[plan.flows[0].path as usize + 1]);
        if plan.topology.nodes[first as usize].name != "P" {
            continue;
        }
        // Not by `run`: its other path is faster than the ideal, which is that of its first one.
        let outcome = xoff_sim::run(&plan, &mut |_| true);
        let (completed, paused) = told(&plan, &outcome, 0, "P:1");
        assert!(paused > RESUMES / 2, "seed {seed}: its host was paused for {paused} ps");
        let changes = outcome.records.get::<Report>().expect("PLB ran").flows[0];
        assert!(changes.by_timeouts > 0, "seed {seed}: {changes:?}");
        if changes.moves == 0 {
            assert_eq!(completed, None, "seed {seed}");
            seen[0] += 1;
        } else if changes.by_timeouts == 1 {
            seen[1] += 1;
            // Before the pause ends. All queues are released.
            assert!(completed.is_some_and(|t| t < RESUMES), "seed {seed}: {changes:?}, {completed:?}");
            assert_eq!(outcome.stop, Stop::AllDone, "seed {seed}");
        }
    }
    println!("{seen:?}");
    assert!(seen[0] > 0 && seen[1] > 2, "{seen:?}");
}
