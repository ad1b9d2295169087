//! Routes: their ports, their ends, and ideal times.

use crate::common::line::{FLOW, LINE, loaded, plan, route};
use xoff_plan::plan::{DELIVER, EXPIRE, Plan};

#[test]
fn a_flow_crosses_the_line_and_its_ack_returns() {
    let plan = plan(&[LINE, FLOW]);
    let flow = &plan.flows[0];
    assert_eq!(route(&plan, flow.path), (vec!["H0:0".into(), "S0.0:4".into(), "S0.1:1".into()], DELIVER));
    assert_eq!(route(&plan, flow.ack_path), (vec!["H5:0".into(), "S0.1:4".into(), "S0.0:0".into()], DELIVER));
    // 1,000 packets of 1,062 B at 80 ps per byte over three links of 1 us, an ACK of 66 B back.
    assert_eq!(flow.ideal, 6_000_000 + 1_002 * 1_062 * 80 + 3 * 66 * 80);
    assert_eq!(plan.end, None);
}

#[test]
fn a_slow_receiver_reads_through_an_inner_port() {
    let slow = "[[slow_receiver]]\nhost = \"H5\"\nrate = \"10Gbps\"\nstall_from = \"9us\"\nstall_until = \"12us\"\n\
                [[slow_receiver]]\nhost = \"H5\"\nstall_from = \"1us\"\nstall_until = \"2us\"\n";
    let fast = plan(&[LINE, FLOW]);
    let plan = plan(&[LINE, slow, FLOW]);
    let receiver = &plan.receivers[0];
    assert_eq!(receiver.host, 5);
    assert_eq!(receiver.stalls, [(1_000_000, 2_000_000), (9_000_000, 12_000_000)]);
    let rx = &plan.topology.ports[receiver.rx as usize];
    assert_eq!((rx.node, rx.rate, rx.delay), (5, 10_000_000_000, 0));
    assert_eq!(plan.topology.neighbour(receiver.rx), 5);
    assert_eq!(plan.topology.ports.len(), fast.topology.ports.len() + 2);
    assert_eq!(plan.accounts.len(), plan.topology.ports.len() * plan.lanes.len());
    assert_eq!(plan.buffers, fast.buffers);
    let (ports, end) = route(&plan, plan.flows[0].path);
    assert_eq!((ports.last().unwrap().as_str(), end), ("H5:1", DELIVER));
    assert_eq!(route(&plan, plan.flows[0].ack_path), route(&fast, fast.flows[0].ack_path));
    // The reader is the bottleneck: 1,000 packets at 800 ps per byte.
    assert_eq!(plan.flows[0].ideal, 6_000_000 + (3 * 80 + 1_000 * 800) * 1_062 + 3 * 66 * 80);
}

#[test]
fn an_explicit_path_is_kept_and_its_acks_return_by_it() {
    let ring = LINE
        .replace("line", "ring")
        .replace("switches = 2", "switches = 4")
        .replace("per_switch = 4", "per_switch = 1");
    let flow = "[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"1kB\"\n\
                path = [\"H0\", \"S0.0\", \"S0.3\", \"S0.2\", \"S0.1\", \"H1\"]\nrate = \"1Gbps\"\n";
    let plan = plan(&[&ring, flow]);
    let nodes = |ports: Vec<String>| {
        ports.iter().map(|p| p.split(':').next().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(nodes(route(&plan, plan.flows[0].path).0), ["H0", "S0.0", "S0.3", "S0.2", "S0.1"]);
    assert_eq!(nodes(route(&plan, plan.flows[0].ack_path).0), ["H1", "S0.1", "S0.2", "S0.3", "S0.0"]);
    assert_eq!(plan.flows[0].pace, 1_000_000_000);
}

#[test]
fn a_routing_loop_expires_and_is_named() {
    let overrides = "[routing]\noverrides = [\n{ at = \"S0.0\", to = \"H5\", via = \"S0.1\" },\n\
                     { at = \"S0.1\", to = \"H5\", via = \"S0.0\" } ]\n";
    let l = loaded(&[LINE, overrides, FLOW, "[run]\nduration = \"1ms\"\n"]);
    let (ports, end) = route(&l.plan, l.plan.flows[0].path);
    assert_eq!((ports.len(), end), (64, EXPIRE));
    assert_eq!(l.plan.flows[0].ideal, 0);
    assert!(l.warnings.iter().any(|w| w.key == "routing.overrides"), "{:?}", l.warnings);
}

#[test]
fn rails_are_routed_as_a_bcube_where_they_are_one() {
    let rails = |domains: u32| {
        let topology = format!(
            "[topology]\nkind = \"rail-only\"\nn = 4\ndomains = {domains}\n\
             domain_link = {{ rate = \"160Gbps\", delay = \"1us\" }}\nrail_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n"
        );
        plan(&[&topology, "[[traffic]]\nkind = \"permutation\"\nsize = \"1kB\"\n"])
    };
    // BCube's ACKs return by the data's nodes.
    let mirrored = |plan: &Plan| {
        let nodes = |start: u32| -> Vec<String> {
            route(plan, start).0.iter().map(|p| p.split(':').next().unwrap().to_string()).collect()
        };
        plan.flows.iter().all(|f| {
            let (mut there, back) = (nodes(f.path), nodes(f.ack_path));
            there.remove(0);
            there.reverse();
            there == back[1..]
        })
    };
    assert!(mirrored(&rails(4)) && !mirrored(&rails(8)));
    assert!(rails(8).flows.iter().all(|f| matches!(route(&rails(8), f.path).0.len(), 2 | 4)));
}
