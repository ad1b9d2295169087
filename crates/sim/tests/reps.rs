//! REPS: senders that label each packet, and recycle the labels of packets that came unmarked.

use crate::common;

use common::{fcts, plan, run};
use xoff_plan::plan::Plan;
use xoff_schemes::load_balancing::reps::report::Report;
use xoff_sim::outcome::Outcome;

/// Two leaves with two hosts each and four spines, H0 sends 20,000 packets to H2.
fn leaves(routing: &str, rest: &str) -> Plan {
    plan(&format!(
        "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 4\nhosts_per_leaf = 2\n\
         host_link = {{rate=\"100Gbps\", delay=\"1us\"}}\nfabric_link = {{rate=\"100Gbps\", delay=\"1us\"}}\n\
         [routing]\n{routing}\n[transport]\nkind = \"irn\"\n[irn]\nrto_low = \"100us\"\nrto_high = \"100us\"\n\
         [ecn]\nk_min = \"20kB\"\nk_max = \"20kB\"\np_max = 1.0\n{rest}\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H2\"\nsize = \"20MB\"\n"
    ))
}

/// Packets from the first leaf to each spine.
fn to_spines(plan: &Plan, outcome: &Outcome) -> Vec<u64> {
    from_leaf(plan, outcome, "S0.0")
}

fn from_leaf(plan: &Plan, outcome: &Outcome, leaf: &str) -> Vec<u64> {
    let leaf = plan.topology.find(leaf).unwrap();
    let ports = &plan.topology.nodes[leaf as usize].ports[2..];
    ports.iter().map(|&port| outcome.ports[port as usize].packets).collect()
}

/// A packet has one of many labels, and the hash maps each to a path: all paths are used, the packets are
/// reordered by no more than queues that are almost empty, and each packet has one origin of its label.
#[test]
fn one_flow_uses_every_path() {
    let plan = leaves("load_balancing = \"reps\"", "");
    let outcome = run(&plan);
    fcts(&plan, &outcome);
    let packets = to_spines(&plan, &outcome);
    assert!(packets.iter().all(|&count| count > 2_000), "{packets:?}");
    let sums = outcome.records.get::<Report>().unwrap().sums;
    let sent: u64 = packets.iter().sum();
    assert_eq!(sums.recycled + sums.random + sums.frozen, sent);
    // So do the ACKs, one for each packet, because they have the labels of their packets.
    let acks = from_leaf(&plan, &outcome, "S0.1");
    assert!(acks.iter().all(|&count| count > 2_000) && acks.iter().sum::<u64>() == sent, "{acks:?}");
    // The flow has labels of the past round trip as soon as the first ACK comes.
    assert!(sums.random < 200, "{sums:?}");
    assert_eq!(xoff_sim::run_on(&plan, 2, &mut |_| true), outcome);
}

/// A link that loses every frame: no label of it is ever recycled, and a frozen flow draws none. Devices that
/// spray go on to lose a quarter of all packets.
#[test]
fn a_dead_path_is_avoided_after_a_round_trip() {
    let spine = 2;
    let loss = format!("[[loss]]\nlink = \"S0.0-S1.{spine}\"\nrate = 1.0\n[run]\nduration = \"100ms\"\n");
    let lost = |routing: &str| {
        let plan = leaves(routing, &loss);
        let outcome = run(&plan);
        fcts(&plan, &outcome);
        assert_eq!(xoff_sim::run_on(&plan, 3, &mut |_| true), outcome);
        (to_spines(&plan, &outcome)[spine], outcome)
    };
    let (sprayed, _) = lost("load_balancing = \"spray\"");
    let (recycled, outcome) = lost("load_balancing = \"reps\"");
    assert!(sprayed > 5_000 && recycled * 20 < sprayed, "{sprayed} {recycled}");
    let sums = outcome.records.get::<Report>().unwrap().sums;
    assert!(sums.freezes >= 1 && sums.frozen > 0, "{sums:?}");
    // Without freezing each loss costs a random label, and a quarter of these are those of the dead path.
    let (thawed, outcome) = lost("load_balancing = \"reps\"\nreps = { freezing = \"0us\" }");
    let sums = outcome.records.get::<Report>().unwrap().sums;
    assert!((sums.freezes, sums.frozen) == (0, 0) && thawed * 2 < sprayed, "{thawed} {sums:?}");
}

/// A link fails, and routes do not follow before the end. After its first timeout the flow freezes: it then loses no
/// packet, and delivers far more than a flow that is sprayed.
#[test]
fn a_flow_leaves_a_link_that_fails() {
    let ran = |kind: &str, until: &str| {
        let rest = format!(
            "[[failure]]\nlink = \"S0.0-S1.2\"\nat = \"100us\"\n[run]\nduration = \"100us\"\ndrain = \"{until}\"\n",
        );
        let plan = leaves(&format!("load_balancing = \"{kind}\"\nreconvergence = \"1s\""), &rest);
        let outcome = run(&plan);
        assert_eq!(xoff_sim::run_on(&plan, 2, &mut |_| true), outcome);
        (outcome.counters.dropped, outcome.flows[0].delivered_bytes, outcome)
    };
    let [(soon, _, outcome), (late, recycled, _)] = ["600us", "1200us"].map(|until| ran("reps", until));
    assert_eq!(outcome.records.get::<Report>().unwrap().sums.freezes, 1);
    assert!(soon > 0 && late == soon, "{soon} {late}");
    let (_, sprayed, _) = ran("spray", "1200us");
    assert!(recycled > 5 * sprayed, "{recycled} {sprayed}");
}

/// A flow fills one of four paths: marked packets return no label, so the other paths carry more than their share.
#[test]
fn a_hot_path_is_avoided() {
    let fixed = "[[traffic]]\nkind = \"flow\"\nsrc = \"H1\"\ndst = \"H3\"\nsize = \"20MB\"\n\
                 path = [\"H1\", \"S0.0\", \"S1.0\", \"S0.1\", \"H3\"]\n";
    // The part of the flow's packets that takes the hot path; IRN retransmits some packets that are only late.
    let hot = |routing: &str| {
        let plan = leaves(routing, fixed);
        let outcome = run(&plan);
        fcts(&plan, &outcome);
        let packets = to_spines(&plan, &outcome);
        let of_flow = packets[0] - outcome.flows[0].packets_sent;
        of_flow as f64 / (of_flow + packets[1..].iter().sum::<u64>()) as f64
    };
    let [sprayed, recycled] = ["spray", "reps"].map(|kind| hot(&format!("load_balancing = \"{kind}\"")));
    assert!((0.24..0.26).contains(&sprayed) && recycled < 0.12, "{sprayed} {recycled}");
}

/// Trimmed packets count as marked: RUD and NDP over devices that trim need no marks.
#[test]
fn trimmed_packets_return_no_label() {
    for transport in ["rud", "ndp"] {
        let text = format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 4\nhosts_per_leaf = 4\n\
             host_link = {{rate=\"100Gbps\", delay=\"1us\"}}\nfabric_link = {{rate=\"100Gbps\", delay=\"1us\"}}\n\
             [routing]\nload_balancing = \"reps\"\n[flow_control]\nscheme = \"trimming\"\n\
             [transport]\nkind = \"{transport}\"\n[switch]\nbuffer = \"100kB\"\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"H3\"\ndst = \"H7\"\nsize = \"2MB\"\n\
             path = [\"H3\", \"S0.0\", \"S1.0\", \"S0.1\", \"H7\"]\n\
             [[traffic]]\nkind = \"incast\"\nfan_in = 3\nfrom = [\"H0..H2\"]\nto = \"H4\"\nsize = \"1MB\"\n"
        );
        let plan = plan(&text);
        let outcome = run(&plan);
        fcts(&plan, &outcome);
        let sums = outcome.records.get::<Report>().unwrap().sums;
        assert!(
            common::trimmed(&outcome) > 0 && sums.recycled > 0 && sums.random > 300,
            "{transport} {sums:?}"
        );
        assert_eq!(xoff_sim::run_on(&plan, 2, &mut |_| true), outcome, "{transport}");
    }
}
