//! The effect of failures and losses on the plan.

use std::io;
use xoff_plan::plan::{DELIVER, ENDS, Plan, UNREACHABLE};
use xoff_plan::{Loaded, load};

const US: u64 = 1_000_000;

/// Two racks of one host each under two spines.
const RACKS: &str = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 1\n\
    host_link = { rate = \"100Gbps\", delay = \"1us\" }\nfabric_link = { rate = \"100Gbps\", delay = \"1us\" }\n";
const FLOW: &str = "[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"1MB\"\n";

fn loaded(parts: &[&str]) -> Loaded {
    load("test.toml", parts.concat().as_bytes(), &[], &|_| Err(io::Error::other("no files here")))
        .unwrap_or_else(|e| panic!("{}", e.one_line()))
}

fn plan(parts: &[&str]) -> Plan {
    loaded(parts).plan
}

/// The nodes of a route from `start` on, with its end.
fn way(plan: &Plan, start: u32) -> (String, u32) {
    let tail = &plan.hops[start as usize..];
    let end = tail.iter().position(|&h| h >= ENDS).unwrap();
    let names: Vec<&str> = tail[..end]
        .iter()
        .map(|&p| plan.topology.nodes[plan.topology.ports[p as usize].node as usize].name.as_str())
        .collect();
    (names.join(" "), tail[end])
}

fn spans(plan: &Plan, port: &str) -> Vec<(u64, u64)> {
    let down = plan.faults.down.iter().find(|d| plan.topology.port_name(d.port) == port);
    down.map_or(Vec::new(), |d| d.spans.clone())
}

#[test]
fn spans_of_one_link_are_merged_on_both_ends() {
    let plan = plan(&[
        RACKS,
        FLOW,
        "[[failure]]\nlink = \"S0.0-S1.0\"\nat = \"10us\"\nuntil = \"20us\"\nevery = \"30us\"\ntimes = 2\n\
         [[failure]]\nlink = \"S1.0-S0.0\"\nat = \"15us\"\nuntil = \"25us\"\n\
         [[failure]]\nswitch = \"S1.0\"\nat = \"25us\"\nuntil = \"30us\"\n",
    ]);
    let both = vec![(10 * US, 30 * US), (40 * US, 50 * US)];
    let port =
        plan.faults.down.iter().map(|d| d.port).find(|&p| plan.topology.port_name(p).starts_with("S0.0"));
    let port = port.unwrap();
    let peer = plan.topology.ports[port as usize].peer;
    for end in [port, peer] {
        assert_eq!(spans(&plan, &plan.topology.port_name(end)), both);
    }
    // Only the other link of the switch fails with it.
    assert_eq!(plan.faults.down.len(), 4);
    let other = plan.faults.down.iter().find(|d| d.port != port && d.port != peer).unwrap();
    assert_eq!(other.spans, [(25 * US, 30 * US)]);
}

/// Every position of a packet in flight, by hand: H0 - S0.0 - S1.x - S0.1 - H1, and the link from the spine
/// in use to S0.1 fails.
#[test]
fn packets_in_flight_turn_where_they_are() {
    let intact = plan(&[RACKS, FLOW]);
    let (used, end) = way(&intact, intact.flows[0].path);
    assert_eq!(end, DELIVER);
    let (spine, other) = if used.contains("S1.0") { ("S1.0", "S1.1") } else { ("S1.1", "S1.0") };
    assert_eq!(used, format!("H0 S0.0 {spine} S0.1"));
    let failure =
        format!("[[failure]]\nlink = \"{spine}-S0.1\"\nat = \"10us\"\n[routing]\nreconvergence = \"5us\"\n");
    let plan = plan(&[RACKS, FLOW, &failure]);
    let [change] = plan.faults.reroutes[..] else { panic!("{:?}", plan.faults.reroutes) };
    assert_eq!(change.at, 15 * US);
    let table = &plan.faults.tables[change.table as usize];
    let flow = table.flows[0];
    assert_eq!(way(&plan, flow.path).0, format!("H0 S0.0 {other} S0.1"));
    let old = plan.flows[0].path;
    let moved = |hop: u32| {
        let new = table.positions.iter().find(|p| p.0 == old + hop).map(|p| p.1);
        new.map(|new| way(&plan, new))
    };
    // On the host's link or before it: by the other spine.
    assert_eq!(moved(0), Some((format!("H0 S0.0 {other} S0.1"), DELIVER)));
    // Towards the spine that has lost its link: back from there.
    assert_eq!(moved(1), Some((format!("S0.0 {spine} S0.0 {other} S0.1"), DELIVER)));
    // After the link: no change.
    assert_eq!((moved(2), moved(3)), (None, None));
}

#[test]
fn without_a_path_packets_end_at_the_next_device() {
    let plan =
        plan(&[RACKS, FLOW, "[[failure]]\nlink = \"S0.1-H1\"\nat = \"10us\"\n[run]\nduration = \"1ms\"\n"]);
    let table = &plan.faults.tables[plan.faults.reroutes[0].table as usize];
    assert_eq!(way(&plan, table.flows[0].path), ("H0".into(), UNREACHABLE));
    assert_eq!(way(&plan, table.flows[0].ack_path), ("H1".into(), UNREACHABLE));
}

/// Loads and ideals are those of the intact network.
#[test]
fn failures_change_no_traffic() {
    let poisson =
        "[[traffic]]\nkind = \"poisson\"\nsizes = \"websearch\"\nload = 0.5\n[run]\nduration = \"2ms\"\n";
    let intact = plan(&[RACKS, poisson]);
    let failed = plan(&[RACKS, poisson, "[[failure]]\nswitch = \"S1.0\"\nat = \"0us\"\n"]);
    assert!(intact.flows.len() > 10);
    for (a, b) in intact.flows.iter().zip(&failed.flows) {
        assert_eq!((a.src, a.dst, a.size, a.start, a.ideal), (b.src, b.dst, b.size, b.start, b.ideal));
        assert!(!way(&failed, b.path).0.contains("S1.0") && !way(&failed, b.ack_path).0.contains("S1.0"));
    }
    assert!(intact.flows.iter().any(|f| way(&intact, f.path).0.contains("S1.0")));
}

#[test]
fn faults_without_effect_are_named() {
    let keys = |rest: &str| -> Vec<String> {
        loaded(&[RACKS, FLOW, rest]).warnings.into_iter().map(|w| w.key).collect()
    };
    let lonely = "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 3\nlink = { rate = \"100Gbps\", delay = \"1us\" }\n";
    let unused = "[[failure]]\nlink = \"S0.0-H2\"\nat = \"1us\"\n[[loss]]\nlink = \"S0.0-H2\"\nrate = 0.1\n";
    let found: Vec<String> = loaded(&[lonely, FLOW, unused]).warnings.into_iter().map(|w| w.key).collect();
    assert_eq!(found, ["failure[0]", "loss[0]"]);
    assert_eq!(keys("[routing]\nreconvergence = \"1us\"\n"), ["routing.reconvergence"]);
    let always = "[[failure]]\nlink = \"S0.0-S1.1\"\nat = \"0us\"\n[routing]\nreconvergence = \"1us\"\n";
    assert_eq!(keys(always), ["routing.reconvergence"]);
    let late = "[[failure]]\nlink = \"S0.0-S1.1\"\nat = \"2ms\"\n[run]\nduration = \"1ms\"\n";
    assert_eq!(keys(late), ["failure[0].at"]);
    assert!(plan(&[RACKS, FLOW, late]).faults.down.is_empty());
}

#[test]
fn a_scenario_with_faults_describes_them() {
    let loaded = loaded(&[
        RACKS,
        FLOW,
        "[[failure]]\nlink = \"S0.0-S1.0\"\nat = \"10us\"\nuntil = \"20us\"\nevery = \"30us\"\ntimes = 3\n\
         [[failure]]\nlink = \"S0.0-S1.1\"\nat = \"0us\"\n\
         [[loss]]\nlink = \"H0-S0.0\"\nfrom = \"H0\"\nrate = 1e-4\n[[loss]]\nlink = \"H0-S0.0\"\nber = 1e-9\nkind = \"corruption\"\n\
         [run]\nduration = \"1ms\"\n",
    ]);
    let text = xoff_plan::describe::describe(&loaded);
    let faults = text.split("\nfaults\n").nth(1).unwrap();
    assert_eq!(
        faults.trim_end(),
        "  S0.0:1 - S1.0:0 is down from 10us to 20us, 3 times in all
  S0.0:2 - S1.1:0 is down from 0ps to the end
  6 changes of routes, for at most 1 flow
  the link loses 0.0001 of the frames that H0:0 sends
  the link corrupts 0.000000001 of the bits that H0:0 sends
  the link corrupts 0.000000001 of the bits that S0.0:0 sends"
    );
}

/// Routes leave a link before planned maintenance, and come back after it.
#[test]
fn maintenance_drains_a_link_before_it_is_down() {
    let failure = "[[failure]]\nlink = \"S0.0-S1.0\"\nat = \"30us\"\nuntil = \"40us\"\ndrain = \"20us\"\n";
    let plan = plan(&[RACKS, "[routing]\nreconvergence = \"1us\"\n", FLOW, failure]);
    let port =
        plan.faults.down.iter().map(|d| plan.topology.port_name(d.port)).find(|n| n.starts_with("S0.0"));
    assert_eq!(spans(&plan, &port.unwrap()), [(30 * US, 40 * US)]);
    let changes: Vec<u64> = plan.faults.reroutes.iter().map(|r| r.at).collect();
    assert_eq!(changes, [11 * US, 41 * US]);
}
