//! Flows whose source chooses the first hop: their two routes in the plan.

use std::io;
use std::path::Path;
use xoff_net::topology::PortId;
use xoff_plan::describe::describe;
use xoff_plan::plan::{ENDS, Plan};
use xoff_plan::{Loaded, load};

fn no_files(_: &Path) -> io::Result<Vec<u8>> {
    Err(io::Error::other("no files here"))
}

fn loaded(text: &str) -> Loaded {
    load("test.toml", text.as_bytes(), &[], &no_files).unwrap_or_else(|e| panic!("{}", e.one_line()))
}

const RAIL: &str = "[topology]\nkind = \"rail-only\"\nn = 3\ndomain_link = {rate=\"160Gbps\", delay=\"1us\"}\n\
                    rail_link = {rate=\"100Gbps\", delay=\"500ns\"}\n";
const LONG_RAIL: &str = "[topology]\nkind = \"rail-only\"\nn = 3\ndomains = 5\ndomain_link = {rate=\"160Gbps\", delay=\"1us\"}\n\
     rail_link = {rate=\"100Gbps\", delay=\"500ns\"}\n";
const CUBE: &str = "[topology]\nkind = \"ndc\"\nn = 3\nk = 1\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n";
const ALL: &str = "[[traffic]]\nkind = \"all-to-all\"\nsize = \"20kB\"\n";

/// The ports of the route that starts at `start`.
fn route(plan: &Plan, start: u32) -> Vec<PortId> {
    plan.hops[start as usize..].iter().copied().take_while(|&p| p < ENDS).collect()
}

/// The names of the nodes on it.
fn nodes(plan: &Plan, start: u32) -> Vec<&str> {
    let route = route(plan, start);
    let name = |node: u32| plan.topology.nodes[node as usize].name.as_str();
    let first = name(plan.topology.ports[route[0] as usize].node);
    std::iter::once(first).chain(route.iter().map(|&p| name(plan.topology.neighbour(p)))).collect()
}

#[test]
fn a_flow_by_hand() {
    let flow = "[routing.ate]\n[[traffic]]\nkind = \"flow\"\nsrc = \"H1\"\ndst = \"H6\"\nsize = \"20kB\"\n";
    // H1 is of rank 1 in domain 0, H6 of rank 0 in domain 2.
    for topology in [RAIL, LONG_RAIL] {
        let plan = loaded(&format!("{topology}{flow}")).plan;
        let [high, other] = plan.ate.as_ref().unwrap().routes[0];
        assert_eq!(nodes(&plan, high), ["H1", "S0.0", "H0", "S1.0", "H6"]);
        assert_eq!(nodes(&plan, other), ["H1", "S1.1", "H7", "S0.2", "H6"]);
    }
}

#[test]
fn flows_between_two_digits_have_two_routes_and_no_others_do() {
    for (topology, n, kind) in [
        (RAIL, 3, ""),
        (RAIL, 3, "[routing]\nkind = \"shortest-path\"\n"),
        (LONG_RAIL, 3, ""),
        (CUBE, 3, ""),
        (CUBE, 3, "[routing]\nkind = \"shortest-path\"\nhash = \"crc32\"\n"),
    ] {
        let plain = loaded(&format!("{kind}{topology}{ALL}")).plan;
        let plan = loaded(&format!("{kind}[routing.ate]\n{topology}{ALL}")).plan;
        let ate = plan.ate.as_ref().expect("asked for");
        assert_eq!((ate.routes.len(), plain.ate.is_none()), (plan.flows.len(), true));
        let mut chosen = 0;
        for (id, (flow, before)) in (0u32..).zip(plan.flows.iter().zip(&plain.flows)) {
            // The hash's routes, of data and of ACKs, are the same as without a choice.
            assert_eq!(route(&plan, flow.path), route(&plain, before.path));
            assert_eq!(route(&plan, flow.ack_path), route(&plain, before.ack_path));
            let [high, other] = ate.routes[id as usize];
            if flow.src % n == flow.dst % n || flow.src / n == flow.dst / n {
                assert_eq!((high, other, plan.other_route(id)), (flow.path, flow.path, None));
                continue;
            }
            chosen += 1;
            assert!([high, other].contains(&flow.path) && high != other);
            assert_eq!(plan.other_route(id), Some(high + other - flow.path));
            for (start, layer) in [(high, 0), (other, 1)] {
                let ports = route(&plan, start);
                assert_eq!(ports.len(), 4);
                let end = |p: PortId| plan.topology.neighbour(p);
                assert_eq!(plan.topology.ports[ports[0] as usize].index, layer);
                assert_eq!(
                    (plan.topology.ports[ports[0] as usize].node, end(ports[3])),
                    (flow.src, flow.dst)
                );
                for pair in ports.windows(2) {
                    assert_eq!(end(pair[0]), plan.topology.ports[pair[1] as usize].node, "one path");
                }
            }
            assert!(0 < flow.ideal && flow.ideal <= before.ideal, "the better of the two");
        }
        let hosts = plan.topology.hosts().count() as u32;
        assert_eq!(chosen, hosts * (n - 1) * (hosts / n - 1), "{topology}{kind}");
    }
}

#[test]
fn hosts_without_a_choice_are_named() {
    let two_hops = "[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"1kB\"\n";
    let spelled = "[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H4\"\nsize = \"1kB\"\n\
                   path = [\"H0\", \"S1.0\", \"H3\", \"S0.1\", \"H4\"]\n";
    let l = loaded(&format!("[routing.ate]\n{RAIL}{two_hops}{spelled}"));
    let keys: Vec<&str> = l.warnings.iter().map(|w| w.key.as_str()).collect();
    assert_eq!(keys, ["routing.ate"]);
    assert!((0..2).all(|flow| l.plan.other_route(flow).is_none()));
    assert!(describe(&l).contains("for 0 flows"), "{}", describe(&l));
    assert!(loaded(&format!("[routing.ate]\n{RAIL}{ALL}")).warnings.is_empty());
}

/// Why the number of tags does not depend on the choice.
#[test]
fn tags_grow_alike_on_both_routes() {
    for (topology, rule) in [(RAIL, "bounce"), (RAIL, "hop"), (LONG_RAIL, "bounce"), (LONG_RAIL, "hop")] {
        let text =
            format!("[routing.ate]\n{topology}[flow_control]\nscheme = \"tagger\"\nrule = \"{rule}\"\n{ALL}");
        let plan = loaded(&text).plan;
        let lane = |start: u32| {
            let ports = route(&plan, start);
            let onward = |lane, pair: &[PortId]| {
                plan.onward_lane(lane, plan.topology.ports[pair[0] as usize].peer, pair[1])
            };
            ports.windows(2).fold(plan.flows[0].lane, onward)
        };
        for [high, other] in &plan.ate.as_ref().unwrap().routes {
            assert!(plan.lanes[usize::from(lane(*high))].lossless);
            assert_eq!(lane(*high), lane(*other));
        }
    }
}
