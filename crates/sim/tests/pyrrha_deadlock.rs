//! Pyrrha and cycles of waits: Figures 12 and 13 of its paper, and a cycle that it does close. (Random
//! fabrics are in the tests of `xoff check`, beside its proofs.)

use crate::common;

use common::{plan_with, run};
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::pyrrha::Tally;
use xoff_sim::outcome::{Outcome, RootsAtPort};

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

fn pyrrha(organisation: &str) -> Vec<(&str, &str)> {
    vec![("flow_control.scheme", "pyrrha"), ("flow_control.organisation", organisation)]
}

/// The egress ports of the ring, that lead from A to B, from B to C and from C to A.
const RING: [&str; 3] = ["A:0", "B:1", "C:1"];

fn port(plan: &Plan, name: &str) -> u32 {
    let is = |&p: &u32| plan.topology.port_name(p) == name;
    (0..plan.topology.ports.len() as u32).find(is).expect("it exists")
}

/// The ports of the deadlock that was seen, in order of their names.
fn deadlocked(plan: &Plan, outcome: &Outcome) -> Vec<String> {
    let cycle = outcome.deadlock.iter().flat_map(|d| &d.cycle);
    let mut ports: Vec<String> = cycle.map(|held| plan.topology.port_name(held.port)).collect();
    ports.sort();
    ports
}

fn at<'o>(plan: &Plan, outcome: &'o Outcome, name: &str) -> Option<&'o RootsAtPort> {
    outcome.roots.iter().find(|r| r.port == port(plan, name))
}

#[test]
fn pfc_and_bfc_deadlock_in_both_figures() {
    let bfc = [("flow_control.scheme", "bfc"), ("flow_control.queues", "2")];
    for text in [one_flow(), three_flows()] {
        for scheme in [&[("flow_control.scheme", "pfc")][..], &bfc] {
            let (plan, outcome) = figure(&text, scheme);
            assert_eq!(deadlocked(&plan, &outcome), RING, "{scheme:?}");
            assert!(!outcome.waiting.is_empty() && outcome.roots.is_empty());
        }
    }
    // In queues of their own the three flows do not meet.
    let (_, outcome) =
        figure(&three_flows(), &[("flow_control.scheme", "bfc"), ("flow_control.queues", "32")]);
    assert!(outcome.deadlock.is_none());
}

#[test]
fn one_looping_flow_does_not_deadlock_pyrrha() {
    for organisation in ["hiq", "single-tier"] {
        let (plan, outcome) = figure(&one_flow(), &pyrrha(organisation));
        assert!(outcome.deadlock.is_none() && outcome.waiting.is_empty(), "{organisation}");
        let tally = outcome.records.get::<Tally>().expect("it is Pyrrha");
        // Its pauses come round to the roots themselves, which ignore them.
        assert!(tally.own_roots > 10 && tally.claims > 0, "{organisation}: {tally:?}");
        // Each port has one root ahead at most times, or both others, and their set.
        assert!(tally.peak_queues.iter().all(|&n| n <= 3), "{organisation}: {tally:?}");
        // Packets that loop are dropped when their time to live ends; the other flow arrives.
        assert_eq!(outcome.flows[1].delivered_bytes, plan.flows[1].size);
        assert!(outcome.counters.dropped > 100, "{organisation}");
    }
}

#[test]
fn three_flows_round_a_ring_do_not_lock_pyrrha_up() {
    for organisation in ["hiq", "single-tier"] {
        for merging in ["soft", "hard", "off"] {
            let mut set = pyrrha(organisation);
            set.push(("flow_control.merging", merging));
            let (plan, outcome) = figure(&three_flows(), &set);
            assert!(outcome.deadlock.is_none() && outcome.waiting.is_empty(), "{organisation} {merging}");
            assert_eq!(outcome.counters.dropped, 0, "{organisation} {merging}");
            let tally = outcome.records.get::<Tally>().expect("it is Pyrrha");
            assert!(tally.claims >= 3, "{organisation} {merging}: {tally:?}");
            // Each link of the ring has 100 Gbit/s for two flows: 31 MB in 5 ms for each.
            for flow in &outcome.flows {
                let share = flow.delivered_bytes as f64 / 31.25e6;
                assert!((0.6..1.1).contains(&share), "{organisation} {merging}: {share}");
            }
            // Each port of the ring has had an isolation queue for the next one.
            for name in RING {
                let peak = tally.peak_queues[port(&plan, name) as usize];
                assert_eq!(peak, 1, "{organisation} {merging}: {name}");
            }
        }
    }
}

/// Figure 13(c): the ports of the ring are roots, and each has an isolation queue for the
/// next one, in which packets wait; from the first millisecond on.
#[test]
fn the_ring_ends_as_the_figure_has_it() {
    let mut seen = [0; 3];
    for end in 4..20 {
        let end = format!("{}us", end * 250);
        let mut set = pyrrha("hiq");
        set.extend([("flow_control.merging", "off"), ("run.duration", end.as_str())]);
        let (plan, outcome) = figure(&three_flows(), &set);
        for (i, (name, next)) in RING.into_iter().zip(["B:1", "C:1", "A:0"]).enumerate() {
            let Some(here) = at(&plan, &outcome, name) else { continue };
            // Nothing goes through any other root of the ring.
            assert!(here.ahead.iter().all(|a| plan.topology.port_name(a.root) == next), "{name}: {here:?}");
            seen[i] += u32::from(here.is_root && here.ahead.iter().any(|a| a.queues == [1] && a.bytes > 0));
        }
    }
    assert_eq!(seen, [16; 3]);
}

/// Three flows to one host, each two links around a ring first: packets for the root wait in one queue at
/// each port of the ring, on any further path.
#[test]
fn routes_to_one_root_that_lead_round_a_ring_lock_pyrrha_up() {
    let link = |(a, b): (&str, &str)| format!("{{a=\"{a}\", b=\"{b}\", rate=\"100Gbps\", delay=\"600ns\"}}");
    let links = [("A", "B"), ("B", "C"), ("C", "A"), ("A", "R"), ("B", "R"), ("C", "R")];
    let hosts = [("a", "A"), ("b", "B"), ("c", "C"), ("r", "R")];
    let links: Vec<String> = links.into_iter().chain(hosts).map(link).collect();
    let mut text = format!(
        "[topology]\nkind = \"custom\"\nswitches = [\"A\", \"B\", \"C\", \"R\"]\nhosts = [\"a\", \"b\", \"c\", \"r\"]\n\
         links = [{}]\n[switch]\nbuffer = \"20MB\"\n[transport]\nrto = \"1s\"\n[run]\nduration = \"5ms\"\n",
        links.join(", ")
    );
    for path in ["a A B C R r", "b B C A R r", "c C A B R r"] {
        let nodes: Vec<String> = path.split(' ').map(|n| format!("\"{n}\"")).collect();
        text += &format!(
            "[[traffic]]\nkind = \"flow\"\nsrc = {}\ndst = \"r\"\nsize = \"1GB\"\npath = [{}]\n",
            nodes[0],
            nodes.join(", ")
        );
    }
    for organisation in ["hiq", "single-tier"] {
        let (plan, outcome) = figure(&text, &pyrrha(organisation));
        assert_eq!(deadlocked(&plan, &outcome), RING, "{organisation}");
        let deadlock = outcome.deadlock.as_ref().expect("it has been seen");
        // It closed early, no packet has moved since, and the pauses of the ring last.
        assert!(deadlock.closed < 100_000_000 && deadlock.seen < 300_000_000, "{deadlock:?}");
        for held in &deadlock.cycle {
            assert!(held.bytes > 15_000 && held.flows.len() == 2, "{held:?}");
            let last = outcome.pauses.iter().rfind(|p| p.port == held.port).expect("it was paused");
            assert_eq!(last.until, None);
        }
        assert!(outcome.flows.iter().all(|f| f.delivered_bytes < 1_000_000));
        // Three ports of the ring, and the three hosts before them; all in each other.
        assert_eq!(outcome.waiting.len(), 6, "{:?}", outcome.waiting);
        assert!(outcome.waiting.iter().all(|w| w.root.is_none()));
    }
}

/// A host that does not read is the root of all that waits: no deadlock, and named.
#[test]
fn a_stalled_host_is_named_and_is_no_deadlock() {
    let stall = |until: &str| {
        three_flows()
            + &format!(
                "[[slow_receiver]]\nhost = \"a\"\nstall_from = \"10us\"\nstall_until = \"{until}\"\n[host]\nbuffer = \"20MB\"\n"
            )
    };
    for organisation in ["hiq", "single-tier"] {
        let (plan, outcome) = figure(&stall("1s"), &pyrrha(organisation));
        assert!(outcome.deadlock.is_none(), "{organisation}");
        assert!(!outcome.waiting.is_empty(), "{organisation}: F2 waits for a");
        for wait in &outcome.waiting {
            assert_eq!(wait.root.map(|n| plan.topology.nodes[n as usize].name.as_str()), Some("a"));
        }
        let (_, outcome) = figure(&stall("1ms"), &pyrrha(organisation));
        assert!(outcome.deadlock.is_none() && outcome.waiting.is_empty(), "{organisation}");
        assert!(outcome.flows[1].delivered_bytes > 10_000_000);
    }
}
