//! Tags and relays in plans: the number of tags that routes need, and the messages about them.

use std::io;
use std::path::Path;
use xoff_net::topology::PortId;
use xoff_plan::describe::describe;
use xoff_plan::plan::{ENDS, Plan};
use xoff_plan::{Loaded, load};
use xoff_schemes::flow_control::FlowControlParams;
use xoff_schemes::flow_control::tagger::TaggerParams;

fn no_files(_: &Path) -> io::Result<Vec<u8>> {
    Err(io::Error::other("no files here"))
}

fn loaded(text: &str) -> Loaded {
    load("test.toml", text.as_bytes(), &[], &no_files).unwrap_or_else(|e| panic!("{}", e.one_line()))
}

fn tagger(plan: &Plan) -> &TaggerParams {
    match &plan.flow_control {
        FlowControlParams::Tagger(tagger) => tagger,
        other => panic!("{other:?}"),
    }
}

const LINK: &str = "link = {rate=\"100Gbps\", delay=\"1us\"}\n";
const ALL: &str = "[switch]\nbuffer = \"100MB\"\n[[traffic]]\nkind = \"all-to-all\"\nsize = \"1kB\"\n";

fn all_to_all(topology: &str, control: &str) -> Loaded {
    loaded(&format!("[topology]\n{topology}\n{LINK}[flow_control]\nscheme = \"tagger\"\n{control}{ALL}"))
}

/// HPCC's telemetry adds bytes to packets, and changes neither the flows nor the tags that their routes need.
#[test]
fn tags_are_those_of_the_flows_that_run() {
    for seed in 0..20 {
        let plan = |more: &str| {
            let scenario = format!(
                "[topology]\nkind = \"ring\"\nswitches = 6\nhosts_per_switch = 2\n{LINK}\
                 [flow_control]\nscheme = \"tagger\"\nrule = \"hop\"\n[switch]\nbuffer = \"100MB\"\n\
                 [[traffic]]\nkind = \"poisson\"\nsizes = \"websearch\"\nload = 0.02\n\
                 [transport]\n{more}[run]\nduration = \"100us\"\nseed = {seed}\n"
            );
            loaded(&scenario).plan
        };
        let (bare, told) = (plan(""), plan("congestion_control = \"hpcc\"\n[hpcc]\ntelemetry = \"9kB\"\n"));
        let ends = |plan: &Plan| plan.flows.iter().map(|f| (f.src, f.dst, f.start)).collect::<Vec<_>>();
        assert_eq!(ends(&bare), ends(&told));
        assert_eq!(tagger(&bare), tagger(&told), "seed {seed}");
    }
}

/// Lossless tags that the routes need, and all shortest paths, by topology and rule. By hop: as many as
/// switches on the longest shortest path. By bounce: in a Clos none grows; in an NDC one at each relay, of
/// which there are k; around a ring one where the path turns up again, at its lowest switch.
#[test]
fn as_many_tags_as_the_routes_need() {
    for (topology, rule, needed) in [
        ("kind = \"fat-tree\"\nk = 4", "bounce", 1),
        ("kind = \"fat-tree\"\nk = 4", "hop", 5),
        ("kind = \"fat-tree\"\nk = 4\ntiers = 2", "hop", 3),
        ("kind = \"ndc\"\nn = 3\nk = 1", "hop", 2),
        ("kind = \"ndc\"\nn = 3\nk = 1", "bounce", 2),
        ("kind = \"ndc\"\nn = 2\nk = 3", "hop", 4),
        ("kind = \"ring\"\nswitches = 5\nhosts_per_switch = 1", "hop", 3),
        ("kind = \"ring\"\nswitches = 5\nhosts_per_switch = 1", "bounce", 2),
        ("kind = \"line\"\nswitches = 4\nhosts_per_switch = 2", "hop", 4),
        ("kind = \"line\"\nswitches = 4\nhosts_per_switch = 2", "bounce", 1),
        ("kind = \"full-mesh\"\nswitches = 4\nhosts_per_switch = 1", "hop", 2),
    ] {
        let l = all_to_all(topology, &format!("rule = \"{rule}\"\n"));
        let params = tagger(&l.plan);
        assert_eq!((params.needed, params.all_routes), (needed, Some(needed)), "{topology} {rule}");
        assert_eq!(params.lossless, needed);
        assert_eq!(l.plan.lanes.iter().filter(|lane| lane.lossless).count(), usize::from(needed));
        let unused = l.warnings.iter().any(|w| w.key == "flow_control.rule");
        assert_eq!(unused, needed == 1, "{topology} {rule}: {:?}", l.warnings);
    }
}

/// Along every route: the lane grows by one priority where the rule says, from
/// the flow's own; the last tag leads to the lossy lane, which is never left.
#[test]
fn lanes_follow_the_tags() {
    let control = "rule = \"hop\"\nlossless = 2\nlossy = 5\n";
    let l = all_to_all("kind = \"line\"\nswitches = 4\nhosts_per_switch = 1", control);
    let plan = &l.plan;
    let priority = |lane: u8| plan.lanes[usize::from(lane)].priority;
    let mut seen = 0;
    for flow in &plan.flows {
        let route: Vec<PortId> =
            plan.hops[flow.path as usize..].iter().copied().take_while(|&p| p < ENDS).collect();
        let mut lane = flow.lane;
        let mut tags = vec![priority(lane)];
        for pair in route.windows(2) {
            lane = plan.onward_lane(lane, plan.topology.ports[pair[0] as usize].peer, pair[1]);
            tags.push(priority(lane));
        }
        // One port more than switches; the last one does not count.
        let expected: &[u8] = match route.len() {
            3 => &[3, 4, 4],
            4 => &[3, 4, 5, 5],
            _ => &[3, 4, 5, 5, 5],
        };
        assert_eq!(tags, expected);
        seen += 1;
    }
    assert_eq!(seen, 12);
    assert_eq!((tagger(plan).needed, tagger(plan).lossless), (4, 2));
    assert!(plan.lanes.iter().all(|lane| lane.lossless == [3, 4].contains(&lane.priority)));
}

/// Data and ACKs of different priorities have tags of their own, and may share some.
#[test]
fn each_priority_has_its_tags() {
    let of = |more: &str| {
        let text = format!(
            "[topology]\nkind = \"ndc\"\nn = 2\nk = 1\n{LINK}[flow_control]\nscheme = \"tagger\"\nrule = \"hop\"\n{more}{ALL}"
        );
        let mut lanes: Vec<(u8, bool)> =
            loaded(&text).plan.lanes.iter().map(|l| (l.priority, l.lossless)).collect();
        lanes.sort_unstable();
        lanes
    };
    let (yes, no) = (true, false);
    assert_eq!(of(""), [(0, no), (3, yes), (4, yes)]);
    assert_eq!(of("[transport]\nack_priority = 6\n"), [(0, no), (3, yes), (4, yes), (6, yes), (7, yes)]);
    assert_eq!(of("[transport]\nack_priority = 4\n"), [(0, no), (3, yes), (4, yes), (5, yes)]);
    assert_eq!(
        of("priorities = [3]\n[transport]\nack_priority = 6\n"),
        [(0, no), (3, yes), (4, yes), (6, no)]
    );
    assert_eq!(of("[transport]\nack_priority = 0\n"), [(0, yes), (1, yes), (2, no), (3, yes), (4, yes)]);
}

#[test]
fn a_plan_describes_its_tags_and_relays() {
    let l = all_to_all("kind = \"ndc\"\nn = 2\nk = 1", "rule = \"hop\"\nlossless = 1\n");
    let told = describe(&l);
    for part in [
        "tagger (lossless tags of a packet: 1, then lossy priority 0; 65535 quanta, response time 0ps)",
        "lossless tags needed: 2 by the routes of this scenario, 2 by all shortest paths between hosts",
    ] {
        assert!(told.contains(part), "{told}");
    }
    // The manifest's text means the same.
    let text = toml::to_string(&l.scenario).unwrap();
    let again = loaded(&text);
    assert_eq!(text, toml::to_string(&again.scenario).unwrap());
    assert_eq!(l.plan.flow_control, again.plan.flow_control);

    let relay = |topology: &str, relay: &str| {
        loaded(&format!("[topology]\n{topology}\n{LINK}[flow_control]\nrelay = \"{relay}\"\n{ALL}"))
    };
    let cube = "kind = \"ndc\"\nn = 2\nk = 1";
    let blind = relay(cube, "blind");
    assert!(describe(&blind).contains("pfc (65535 quanta, response time 0ps, hosts forward pauses)"));
    assert!(blind.plan.passes_pauses_on(0) && !blind.plan.passes_pauses_on(4), "hosts, not switches");
    assert_eq!(blind.plan.topology.relay_ports(0).len(), 2);
    let counted = relay(cube, "accounts");
    assert!(!counted.plan.passes_pauses_on(0) && counted.warnings.is_empty());
    let line = relay("kind = \"line\"\nswitches = 2\nhosts_per_switch = 1", "accounts");
    assert_eq!(line.warnings.iter().map(|w| w.key.as_str()).collect::<Vec<_>>(), ["flow_control.relay"]);
}
