//! Pyrrha beside switches that know PFC alone.

mod common;

use xoff_plan::plan::Plan;

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
blocking = true

[run]
duration = "300us"
drain = "5ms"
"#;

/// Whether a link is one of a switch that knows PFC alone.
fn is_legacy(plan: &Plan, names: &[&str], port: u32) -> bool {
    let of = |p: u32| plan.topology.nodes[plan.topology.ports[p as usize].node as usize].name.as_str();
    names.contains(&of(port)) || names.contains(&of(plan.topology.ports[port as usize].peer))
}

/// A spine, or the rack of the receiver, knows PFC alone: on its links whole priorities
/// are paused, on all others queues of roots, and nothing is lost.
#[test]
fn each_link_is_paused_in_the_way_that_both_of_its_ends_know() {
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
        let tally = outcome.pyrrha.expect("of Pyrrha");
        assert!(by_priority > 10 && by_root > 10 && tally.claims > 0, "{by_priority} {by_root} {tally:?}");
        // What knows PFC alone claims nothing.
        assert!(outcome.roots.iter().all(|r| !r.is_root || !is_own(&plan, name, r.port)));
    }
}

fn is_own(plan: &Plan, name: &str, port: u32) -> bool {
    plan.topology.nodes[plan.topology.ports[port as usize].node as usize].name == name
}

/// Where no switch knows Pyrrha, it is PFC, to the picosecond.
#[test]
fn without_a_switch_that_knows_it_pyrrha_is_pfc() {
    for seed in ["1", "2", "3"] {
        let all = r#"{ switches = ["S0.0", "S0.1", "S0.2", "S1.0", "S1.1"] }"#;
        let hybrid = common::plan_with(FABRIC, &[("flow_control.legacy", all), ("run.seed", seed)]);
        let pfc = common::plan_with(FABRIC, &[("flow_control.scheme", "pfc"), ("run.seed", seed)]);
        let (a, b) = (common::run(&hybrid), common::run(&pfc));
        assert!(a.pauses.len() > 100);
        assert_eq!(common::fcts(&hybrid, &a), common::fcts(&pfc, &b));
        assert_eq!(a.pauses, b.pauses);
        assert_eq!(a.buffer_peaks, b.buffer_peaks);
    }
}
