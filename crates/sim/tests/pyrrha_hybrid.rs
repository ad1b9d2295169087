//! Pyrrha beside switches that support only PFC.

use crate::common;

use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::pyrrha::Tally;
use xoff_sim::outcome::{FlowBlame, Pause, Stop};

const FABRIC: &str = r#"
[topology]
kind = "leaf-spine"
leaves = 3
spines = 2
hosts_per_leaf = 4
host_link = { rate = "100Gbps", delay = "1us" }
fabric_link = { rate = "200Gbps", delay = "1us" }

[switch]
buffer = "4MB"

[flow_control]
scheme = "pyrrha"

[[traffic]]
name = "incast"
kind = "incast"
fan_in = 8
to = "H0"
size = "500kB"
period = "100us"

[[traffic]]
name = "others"
kind = "poisson"
sizes = "websearch"
load = 0.3

[measure]
explain = true

[run]
duration = "300us"
drain = "5ms"
"#;

/// Whether a link belongs to a switch that supports only PFC.
fn is_legacy(plan: &Plan, names: &[&str], port: u32) -> bool {
    let of = |p: u32| plan.topology.nodes[plan.topology.ports[p as usize].node as usize].name.as_str();
    names.contains(&of(port)) || names.contains(&of(plan.topology.ports[port as usize].peer))
}

/// A spine, or the rack of the receiver, supports only PFC: on its links whole priorities are paused, on all
/// others queues of roots, and no packet is lost.
#[test]
fn each_link_has_the_pauses_that_both_ends_support() {
    for (seed, name) in (1..=5).flat_map(|seed| [(seed, "S1.0"), (seed, "S0.0")]) {
        let legacy = format!(r#"{{ switches = ["{name}"], alpha = 0.02 }}"#);
        let seed = seed.to_string();
        let plan = common::plan_with(FABRIC, &[("flow_control.legacy", &legacy), ("run.seed", &seed)]);
        let outcome = common::run(&plan);
        assert!(outcome.flows.iter().all(|f| f.completed.is_some()));
        assert!(outcome.drops.is_empty(), "{:?}", outcome.drops);
        assert!(outcome.deadlock.is_none());
        let [mut by_priority, mut by_root] = [0, 0];
        for pause in &outcome.pauses {
            if is_legacy(&plan, &[name], pause.port) {
                assert!(pause.queue.is_none() && pause.named_root.is_none());
                by_priority += 1;
            } else {
                assert!(pause.queue.is_some() && pause.named_root.is_some());
                by_root += 1;
            }
        }
        let tally = outcome.records.get::<Tally>().cloned().expect("of Pyrrha");
        assert!(by_priority > 10 && by_root > 10 && tally.claims > 0, "{by_priority} {by_root} {tally:?}");
        // A switch that supports only PFC claims nothing.
        assert!(outcome.roots.iter().all(|r| !r.is_root || !is_own(&plan, name, r.port)));
    }
}

fn is_own(plan: &Plan, name: &str, port: u32) -> bool {
    plan.topology.nodes[plan.topology.ports[port as usize].node as usize].name == name
}

/// Where no switch knows Pyrrha, it is PFC, to the picosecond; and so say the oracles.
#[test]
fn without_a_switch_that_supports_it_pyrrha_is_pfc() {
    for seed in ["1", "2", "3"] {
        let all = r#"{ switches = ["S0.0", "S0.1", "S0.2", "S1.0", "S1.1"] }"#;
        let hybrid = common::plan_with(FABRIC, &[("flow_control.legacy", all), ("run.seed", seed)]);
        let pfc = common::plan_with(FABRIC, &[("flow_control.scheme", "pfc"), ("run.seed", seed)]);
        let (a, b) = (common::run(&hybrid), common::run(&pfc));
        assert!(a.pauses.len() > 100 && a.paths.as_ref().is_some_and(|paths| !paths.is_empty()));
        let sum = |of: fn(&FlowBlame) -> u64| a.blocking.iter().flat_map(|b| &b.flows).map(of).sum::<u64>();
        assert!(sum(|f| f.victim) > 0 && sum(|f| f.source_own + f.source_victim) > 0);
        assert!(a.blocking == b.blocking && a.paths == b.paths);
        assert_eq!(common::fcts(&hybrid, &a), common::fcts(&pfc, &b));
        assert_eq!(a.pauses, b.pauses);
        assert_eq!(a.buffer_peaks, b.buffer_peaks);
    }
}

/// `n` switches in a ring with a host each; host i sends over `reach` links clockwise. Those of `legacy`
/// support only PFC.
fn ring(n: usize, reach: usize, size: &str, control: &str) -> String {
    let mut text = format!(
        "[topology]\nkind = \"ring\"\nswitches = {n}\nhosts_per_switch = 1\n\
         link = {{rate=\"100Gbps\", delay=\"1us\"}}\n[switch]\nbuffer = \"1MB\"\n\
         [measure]\nexplain = true\n[flow_control]\n{control}"
    );
    for i in 0..n {
        let path: Vec<String> = (0..=reach).map(|j| format!("\"S0.{}\"", (i + j) % n)).collect();
        let dst = (i + reach) % n;
        text += &format!(
            "[[traffic]]\nkind = \"flow\"\nsrc = \"H{i}\"\ndst = \"H{dst}\"\nsize = \"{size}\"\n\
             path = [\"H{i}\", {}, \"H{dst}\"]\n",
            path.join(", ")
        );
    }
    text
}

fn legacy(switches: &[usize], more: &str) -> String {
    let names: Vec<String> = switches.iter().map(|i| format!("\"S0.{i}\"")).collect();
    format!("scheme = \"pyrrha\"\nlegacy = {{ switches = [{}], alpha = 0.25 }}\n{more}", names.join(", "))
}

/// A ring of switches that all support only PFC deadlocks as it does under PFC: at the same time, in the same
/// cycle, with the same flows.
#[test]
fn a_ring_that_supports_only_pfc_deadlocks_as_under_pfc() {
    for (n, reach) in [(3, 2), (4, 2), (4, 3)] {
        let hybrid = common::plan(&ring(n, reach, "10MB", &legacy(&(0..n).collect::<Vec<_>>(), "")));
        let pfc = common::plan(&ring(n, reach, "10MB", "scheme = \"pfc\"\nalpha = 0.25\n"));
        let (a, b) = (common::run(&hybrid), common::run(&pfc));
        let deadlock = b.deadlock.as_ref().expect("PFC locks a ring up");
        assert_eq!(deadlock.cycle.len(), n, "{deadlock:?}");
        assert_eq!(a.deadlock, b.deadlock, "{n} {reach}");
        assert!(!a.waiting.is_empty());
        assert_eq!((a.waiting, a.end), (b.waiting, b.end));
        assert!(a.blocking == b.blocking && a.paths == b.paths);
    }
}

/// The oracle reports a deadlock of a ring if, and only if, something in it is paused permanently, for any
/// switches that support only PFC.
#[test]
fn it_reports_exactly_the_permanent_pauses() {
    let mut seen = [0, 0];
    let mut mixed = 0;
    for case in 0..240u64 {
        let n = 3 + (case % 3) as usize;
        let few: Vec<usize> = (0..n).filter(|i| (case / 3) >> i & 1 == 1).collect();
        if few.is_empty() {
            continue;
        }
        let reach = 2 + (case / 7 % (n as u64 - 2)) as usize;
        let size = ["100kB", "400kB", "3MB"][(case % 7 % 3) as usize];
        let organisation = ["hiq", "single-tier"][(case % 2) as usize];
        let k_pause = 20 + case % 5 * 20;
        let more = format!("organisation = \"{organisation}\"\nk_pause = \"{k_pause}kB\"\n");
        let plan = common::plan(&ring(n, reach, size, &legacy(&few, &more)));
        let outcome = common::run(&plan);
        let done = outcome.flows.iter().all(|f| f.completed.is_some());
        seen[usize::from(done)] += 1;
        let deadlock = outcome.deadlock.as_ref();
        assert_eq!(deadlock.is_none(), done, "case {case}: {few:?} of {n}, {deadlock:?}");
        assert_eq!(outcome.stop, if done { Stop::AllDone } else { Stop::Starved }, "case {case}");
        let Some(deadlock) = deadlock else { continue };
        // All queues of the cycle are paused permanently, by either kind of pause.
        let mut kinds = [false, false];
        for held in &deadlock.cycle {
            let lasts = |p: &&Pause| p.port == held.port && p.until.is_none() && p.from <= deadlock.seen;
            let lasting: Vec<_> = outcome.pauses.iter().filter(lasts).collect();
            assert!(!lasting.is_empty() && held.bytes > 0, "case {case}: {held:?}");
            lasting.iter().for_each(|pause| kinds[usize::from(pause.queue.is_some())] = true);
            for &flow in &held.flows {
                assert!(outcome.flows[flow as usize].completed.is_none(), "case {case}: {held:?}");
            }
        }
        assert!(!outcome.waiting.is_empty());
        mixed += usize::from(kinds == [true, true]);
    }
    println!("{seen:?}, {mixed} cycles of both kinds of pauses");
    assert!(seen[0] > 10 && seen[1] > 10 && mixed > 3, "{seen:?} {mixed}");
}
