//! PortFC: the waits of its queues by hand, proofs on NDC(n, 1), and runs.

use crate::common;

use common::{check, cycle, load, run, safe};
use std::collections::{BTreeMap, BTreeSet};
use xoff_check::blocking::{blocking, tree};
use xoff_check::certificate::{Certificate, Entry, Routes};
use xoff_check::graph::{Graph, Part};
use xoff_check::walks::Walks;
use xoff_check::{Verdict, onward, router, text, verify::verify};
use xoff_kernel::random::Stream;
use xoff_net::topology::{NodeId, PortId};
use xoff_plan::Loaded;
use xoff_plan::plan::Plan;
use xoff_sim::outcome::Outcome;

/// NDC(n, 1) with small memories under `scheme`, and flows.
fn cube(n: usize, scheme: &str, flows: &str) -> String {
    format!(
        "[topology]\nkind = \"ndc\"\nn = {n}\nk = 1\nlink = {{rate=\"10Gbps\", delay=\"1us\"}}\n\
         [switch]\nbuffer = \"20MB\"\n[flow_control]\nscheme = \"{scheme}\"\nxoff = \"20kB\"\nxon = \"10kB\"\n\
         [run]\nduration = \"1ms\"\n{flows}"
    )
}

const EVERYBODY: &str = "[[traffic]]\nkind = \"all-to-all\"\nsize = \"10kB\"\n";

/// Under PortFC, and the same file under PFC.
fn both(n: usize) -> [Loaded; 2] {
    let text = cube(n, "portfc", EVERYBODY);
    [load(&text, &[]), load(&text, &[("flow_control.scheme", "pfc")])]
}

/// Links between two devices, by breadth-first search.
fn distance(plan: &Plan, from: NodeId, to: NodeId) -> u32 {
    let mut far = BTreeMap::from([(from, 0)]);
    let mut next = std::collections::VecDeque::from([from]);
    while let Some(at) = next.pop_front() {
        for &port in &plan.topology.nodes[at as usize].ports {
            let (there, d) = (plan.topology.neighbour(port), far[&at] + 1);
            if let std::collections::btree_map::Entry::Vacant(new) = far.entry(there) {
                new.insert(d);
                next.push_back(there);
            }
        }
    }
    far[&to]
}

/// Most links that pauses go along one after the other.
fn depth(plan: &Plan, graph: &Graph) -> u32 {
    let order = graph.order().expect("there is no circle");
    let at = |n: u32| graph.waits[n as usize];
    let device = |n: u32| plan.topology.ports[at(n).port as usize].node;
    let number = |w| graph.waits.binary_search(&w).expect("a node") as u32;
    let mut deep = vec![0; graph.waits.len()];
    let mut known = BTreeMap::new();
    for &wait in order.iter().rev() {
        let n = number(wait);
        for &to in graph.next(n) {
            let ends = (device(n), device(to));
            let links = *known.entry(ends).or_insert_with(|| distance(plan, ends.0, ends.1));
            deep[n as usize] = deep[n as usize].max(links + deep[to as usize]);
        }
    }
    deep.into_iter().max().unwrap_or(0)
}

fn graph_of_flows(plan: &Plan) -> Graph {
    let portfc = plan.flow_control.onward_queues().expect("its flow control");
    onward::of_flows(plan, portfc, &mut |_| true).expect("nobody ends it").graph(portfc).expect("it fits")
}

/// In NDC(n, 1) with packets on all routes every queue is filled. A host's port has
/// n − 1 four-hop queues, each of which waits for the n − 1 IHFQs of a port, and
/// n − 1 two-hop queues, each of which waits for a DDQ; so does each IHFQ. There are
/// 2n² ports of hosts and as many of switches.
#[test]
fn cubes_are_proved_and_pfc_has_a_cycle_on_the_same_file() {
    for n in 2..=16usize {
        let [portfc, pfc] = both(n);
        let (ports, m) = (2 * n * n, n - 1);
        let small = n <= 6;
        for routes in [Routes::Scenario, Routes::ALL] {
            let report = check(&portfc, routes).report;
            let Verdict::Safe { compared: Some(compared) } = report.verdict else { panic!("NDC({n}, 1)") };
            let dependencies = ports * (m * m + m + m);
            // Flows take one of two routes, and need not fill every queue.
            if routes == Routes::ALL {
                assert_eq!(report.waits, ports * (m + m + m + 1));
                assert_eq!(report.dependencies, dependencies);
                assert_eq!(compared, dependencies as u64);
            } else {
                assert!(report.dependencies <= dependencies && report.dependencies > dependencies / 2);
                assert_eq!(compared, report.dependencies as u64);
            }
            assert_eq!(report.pause_stops, "onward");
            // Between four hosts one route each may not close the cycle.
            if routes == Routes::ALL || n > 2 && small {
                assert!(cycle(&check(&pfc, routes)).len() >= 4, "NDC({n}, 1)");
            }
        }
        if small {
            assert_eq!(depth(&portfc.plan, &graph_of_flows(&portfc.plan)), 3);
        }
    }
}

/// Segments of rails under aggregation switches (section VI-D), each with the verdict of PFC on the same file.
#[test]
fn rail_optimized_networks_are_proved() {
    for (n, domains, segments, aggregations) in
        [(2, 2, 1, 1), (2, 3, 2, 2), (3, 3, 2, 2), (4, 2, 3, 1), (4, 4, 2, 4)]
    {
        let topology = format!(
            "kind = \"rail-optimized\"\nn = {n}\ndomains = {domains}\nsegments = {segments}\n\
             aggregations = {aggregations}\ndomain_link = {{rate=\"10Gbps\", delay=\"1us\"}}\n\
             rail_link = {{rate=\"10Gbps\", delay=\"1us\"}}"
        );
        let text = cube(2, "portfc", EVERYBODY)
            .replace("kind = \"ndc\"\nn = 2\nk = 1\nlink = {rate=\"10Gbps\", delay=\"1us\"}", &topology);
        let [portfc, pfc] = [load(&text, &[]), load(&text, &[("flow_control.scheme", "pfc")])];
        let failures = if n * domains * segments > 16 { Routes::ALL } else { Routes::SINGLE_FAILURES };
        for routes in [Routes::Scenario, Routes::ALL, failures] {
            let report = check(&portfc, routes).report;
            let Verdict::Safe { compared: Some(compared) } = report.verdict else {
                panic!("{topology}\n{routes:?}")
            };
            // Without failures the small checker compares each pair once.
            if !routes.has_failures() {
                assert_eq!(compared, report.dependencies as u64, "{topology}\n{routes:?}");
            }
            let left_out = report.notes.iter().any(|note| note.contains("in a row"));
            assert!(routes.has_failures() || !left_out, "{:?}", report.notes);
        }
        assert!(cycle(&check(&pfc, Routes::ALL)).len() >= 4, "{topology}");
        // A pause goes from a direct queue down and up, over a relay, down and up again, and to a host.
        assert!(depth(&portfc.plan, &graph_of_flows(&portfc.plan)) <= 7);
    }
}

#[test]
fn single_failures_are_examined() {
    let [portfc, _] = both(3);
    let report = check(&portfc, Routes::SINGLE_FAILURES).report;
    let failures = report.failures.expect("they were asked for");
    // All links: no host is cut off by one.
    assert_eq!((failures.classes[0].examined, failures.changing, failures.cyclic.len()), (18, 18, 0));
    assert!(matches!(report.verdict, Verdict::Safe { compared: Some(_) }));
    // Round a failed link to the neighbour on the other side of it: over two relays.
    assert!(report.notes.iter().any(|n| n.contains("second relay")), "{:?}", report.notes);
    let intact = check(&portfc, Routes::ALL).report.notes;
    assert!(!intact.iter().any(|n| n.contains("second relay")), "{intact:?}");
}

/// The port by which `a` sends to its neighbour `b`.
fn port(plan: &Plan, a: &str, b: &str) -> PortId {
    let node = |name: &str| plan.topology.find(name).expect("a node");
    let ports = &plan.topology.nodes[node(a) as usize].ports;
    *ports.iter().find(|&&p| plan.topology.neighbour(p) == node(b)).expect("neighbours")
}

/// A flow on this path.
fn flow(path: &[String]) -> String {
    let quoted: Vec<String> = path.iter().map(|n| format!("\"{n}\"")).collect();
    format!(
        "[[traffic]]\nkind = \"flow\"\nsrc = {}\ndst = {}\nsize = \"1MB\"\npath = [{}]\n",
        quoted[0],
        quoted[quoted.len() - 1],
        quoted.join(", ")
    )
}

fn path(nodes: &str) -> String {
    flow(&nodes.split(' ').map(String::from).collect::<Vec<_>>())
}

/// Flows over one relay, to it, and beside it. In NDC(3, 1) host 3x + y hangs at S0.x,
/// by port y of it, and at S1.y, by port x.
fn by_hand(more: &str, overrides: &[(&str, &str)]) -> Loaded {
    let flows = [
        // Four hops: by port 1 of S0.0 to the relay H1, and by port 1 of S1.1 to H4.
        path("H0 S0.0 H1 S1.1 H4"),
        // The same relay, on to H7 by port 2 of S1.1.
        path("H2 S0.0 H1 S1.1 H7"),
        // Two hops: by port 1 of S1.1 to H4.
        path("H7 S1.1 H4"),
        // Two hops: to the relay itself.
        path("H0 S0.0 H1"),
    ];
    load(&cube(3, "portfc", &(flows.concat() + more)), overrides)
}

fn names(plan: &Plan, graph: &Graph) -> BTreeSet<(String, String)> {
    let portfc = plan.flow_control.onward_queues().expect("its flow control");
    let name = |n: u32| {
        let wait = graph.waits[n as usize];
        let Part::Queue(queue) = wait.part else { panic!("{wait:?}") };
        format!("{} {}", plan.topology.port_name(wait.port), portfc.name(wait.port, queue))
    };
    let all = (0..graph.waits.len() as u32).flat_map(|n| graph.next(n).iter().map(move |&to| (n, to)));
    all.map(|(a, b)| (name(a), name(b))).collect()
}

#[test]
fn waits_by_hand() {
    let loaded = by_hand("", &[]);
    // Seen from H0 (port 0) port 1 is the first of two others, from H2 (port 2) the
    // second; S1.1 is entered by port 0 from H1, and by port 2 from H7.
    let waits = [
        ("H0:0 four-hop 0", "S0.0:1 ihfq 0"),
        ("H0:0 four-hop 0", "S0.0:1 ihfq 1"),
        ("H2:0 four-hop 1", "S0.0:1 ihfq 0"),
        ("H2:0 four-hop 1", "S0.0:1 ihfq 1"),
        ("S0.0:1 ihfq 0", "S1.1:1 ddq"),
        ("S0.0:1 ihfq 1", "S1.1:2 ddq"),
        ("H7:1 two-hop 3", "S1.1:1 ddq"),
        ("H0:0 two-hop 2", "S0.0:1 ddq"),
    ];
    let named = |waits: &[(&str, &str)]| -> BTreeSet<(String, String)> {
        waits.iter().map(|&(a, b)| (a.to_string(), b.to_string())).collect()
    };
    assert_eq!(names(&loaded.plan, &graph_of_flows(&loaded.plan)), named(&waits));
    // Where nodes keep signals to themselves, no IHFQ is ever paused.
    let kept = by_hand("", &[("flow_control.relay_signals", "false")]);
    let fewer: Vec<_> = waits.into_iter().filter(|w| !w.0.starts_with('S')).collect();
    assert_eq!(names(&kept.plan, &graph_of_flows(&kept.plan)), named(&fewer));
    assert!(safe(&kept, Routes::Scenario) && safe(&kept, Routes::ALL));
    let one = by_hand("", &[("flow_control.flags", "one")]);
    let told = text::render(&check(&one, Routes::Scenario).report);
    assert!(told.contains("a resume may never be sent"), "{told}");
}

/// H4's port of S1.1 is offered 20 Gbit/s. Its DDQ pauses H7, and the IHFQ of S0.0 that leads there; that
/// one's port pauses the packets of H0 and H2 over the relay. So H2's flow to H7 waits for a port that it
/// never crosses: the IHFQs of a port are summed up (the paper's section III-F counts queues of switches
/// only).
#[test]
fn victims_by_hand() {
    for (more, victims, beside) in [("", 1, 0), (&*path("H0 S0.0 H1 S1.1 H7"), 2, 1)] {
        let loaded = by_hand(more, &[]);
        let plan = &loaded.plan;
        let walks = Walks::new(plan);
        let found = blocking(plan, &walks, None);
        let at = port(plan, "S1.1", "H4");
        let c = found.lasting().iter().find(|c| c.port == at).expect("it can be congested");
        assert_eq!((c.culprits, c.queues, c.victims, c.beside), (2, 4, victims, beside));
        let tree = tree(plan, &walks, at);
        let name = |i: u32| {
            xoff_check::blocking::queue_name(plan, walks.queues[tree.queues[i as usize].queue as usize])
        };
        let levels: Vec<_> = (0..4).map(|i| (name(i), tree.queues[i as usize].level)).collect();
        let expected =
            [("S0.0:1 ihfq 0", 1), ("H7:1 two-hop 3", 1), ("H0:0 four-hop 0", 2), ("H2:0 four-hop 1", 2)];
        assert_eq!(levels, expected.map(|(name, level)| (name.to_string(), level)));
        let others: Vec<u32> = tree.victims.iter().map(|i| i.flow).collect();
        assert_eq!(others, if more.is_empty() { vec![1] } else { vec![4, 1] });
        // The relay's own port to H1 makes only those wait that cross it.
        let near = found.lasting().iter().find(|c| c.port == port(plan, "S0.0", "H1"));
        assert_eq!(near.map(|c| c.victims), Some(0));
        // Three DDQs are among the queues, which cannot be stopped.
        assert_eq!((found.all_queues, walks.queues.len()), (6, 9));
        assert!(text::render(&check(&loaded, Routes::Scenario).report).contains("H2:0 four-hop 1"));
    }
}

/// A random NDC(n, 1), and flows over random paths of two and four hops.
fn random(seed: u64) -> String {
    let mut random = Stream::new(seed, "cube", 0);
    let mut below = |n: usize| random.below(n as u64) as usize;
    let n = 2 + below(5);
    let mut flows = String::new();
    for _ in 0..3 * n + below(3 * n) {
        let src = below(n * n);
        let layer = below(2);
        // Another digit in each layer that it crosses.
        let turn = |host: usize, layer: usize, by: usize| match layer {
            0 => host / n * n + (host % n + by) % n,
            _ => (host / n + by) % n * n + host % n,
        };
        let switch = |host: usize, layer: usize| match layer {
            0 => format!("S0.{}", host / n),
            _ => format!("S1.{}", host % n),
        };
        let relay = turn(src, layer, 1 + below(n - 1));
        let mut nodes = vec![format!("H{src}"), switch(src, layer), format!("H{relay}")];
        if below(4) > 0 {
            let dst = turn(relay, 1 - layer, 1 + below(n - 1));
            nodes.extend([switch(relay, 1 - layer), format!("H{dst}")]);
        }
        flows += &flow(&nodes);
    }
    cube(n, "portfc", &(flows + "[measure]\nblocking = true\n"))
}

/// A queue by its purpose (the letters of the paper's table 1), its port, and the port of a switch by which
/// its packets leave that.
type Queue = (char, PortId, PortId);

/// Of a flow's data: queues that can be paused, with the ports that pause them.
fn queues(plan: &Plan, flow: u32) -> (Vec<PortId>, Vec<Queue>) {
    let hops = &plan.hops[plan.flows[flow as usize].path as usize..];
    match *hops {
        [a, b, end, ..] if end >= xoff_plan::plan::ENDS => (vec![a, b], vec![('b', a, b)]),
        [a, b, c, d, ..] => (vec![a, b, c, d], vec![('a', a, b), ('A', b, d)]),
        _ => panic!("two hops or four"),
    }
}

/// By definition: queues that congestion of `port` can pause, victims, and those
/// of them beside culprits.
fn by_definition(plan: &Plan, port: PortId) -> (usize, BTreeSet<u32>, BTreeSet<u32>) {
    let flows = 0..plan.flows.len() as u32;
    let all: BTreeSet<Queue> = flows.clone().flat_map(|f| queues(plan, f).1).collect();
    let own = |q: &&Queue| q.2 == port;
    let forwarding: BTreeSet<PortId> = all.iter().filter(own).filter(|q| q.0 == 'A').map(|q| q.1).collect();
    let paused: BTreeSet<Queue> =
        all.iter().filter(|q| own(q) || q.0 == 'a' && forwarding.contains(&q.2)).copied().collect();
    let mut guilty: BTreeSet<Queue> = BTreeSet::new();
    for f in flows.clone() {
        let (ports, queues) = queues(plan, f);
        let at = ports.iter().position(|&p| p == port).unwrap_or(0);
        guilty.extend(queues.into_iter().filter(|q| ports[..at].contains(&q.1)));
    }
    let victim = |set: &BTreeSet<Queue>| {
        let is = |&f: &u32| {
            let (ports, queues) = queues(plan, f);
            !ports.contains(&port) && queues.iter().any(|q| set.contains(q))
        };
        flows.clone().filter(is).collect()
    };
    (paused.len(), victim(&paused), victim(&guilty))
}

#[test]
fn counts_of_victims_are_those_of_the_definition() {
    let (mut checked, mut with_victims, mut apart) = (0, 0, 0);
    for seed in 0..100 {
        let loaded = load(&random(seed), &[]);
        let plan = &loaded.plan;
        let walks = Walks::new(plan);
        let mut all = BTreeSet::new();
        let found = blocking(plan, &walks, None);
        for c in &found.congested {
            let (queues, victims, beside) = by_definition(plan, c.port);
            let counts = (c.queues as usize, c.victims as usize, c.beside as usize, c.control_victims);
            assert_eq!(counts, (queues, victims.len(), beside.len(), 0), "cube {seed}");
            let tree = tree(plan, &walks, c.port);
            assert_eq!(tree.victims.iter().map(|i| i.flow).collect::<BTreeSet<_>>(), victims);
            assert!(tree.queues.iter().all(|q| q.level <= 2));
            checked += 1;
            with_victims += usize::from(!victims.is_empty());
            apart += usize::from(victims != beside);
            if c.cause == xoff_check::blocking::Cause::Lasting {
                all.extend(victims);
            }
        }
        assert_eq!(found.victims, all.len() as u64, "cube {seed}");
    }
    assert!(checked > 1000 && with_victims > 100 && apart > 30, "{checked} {with_victims} {apart}");
}

#[test]
fn proved_fabrics_never_deadlock_and_pfc_does() {
    let (mut deadlocks, mut victims) = (0, 0);
    for seed in 0..40 {
        let text = random(seed);
        let loaded = load(&text, &[]);
        for routes in [Routes::Scenario, Routes::ALL] {
            assert!(safe(&loaded, routes), "cube {seed}:\n{text}");
        }
        assert!(depth(&loaded.plan, &graph_of_flows(&loaded.plan)) <= 3);
        let outcome = run(&loaded.plan);
        assert!(outcome.deadlock.is_none(), "cube {seed}:\n{text}");
        victims += foreseen(&loaded.plan, &outcome);
        deadlocks += u32::from(run(&load(&text, &[("flow_control.scheme", "pfc")]).plan).deadlock.is_some());
    }
    assert!(deadlocks > 0 && victims >= 10, "PFC: {deadlocks}, {victims} victims waited");
}

/// Asserts that the check predicts every pause and every victim that the oracle of the run
/// reports. Returns the number of victims that waited.
fn foreseen(plan: &Plan, outcome: &Outcome) -> usize {
    let walks = Walks::new(plan);
    let oracle = outcome.blocking.as_ref().expect("it watched");
    let mut victims = BTreeSet::new();
    for &(xoff_sim::outcome::Place { port: paused, root, .. }, b) in &oracle.places {
        // A frame goes to every host of its switch, even if the host has nothing to send there.
        if b.own + b.victim + b.source_own + b.source_victim == 0 {
            continue;
        }
        let tree = tree(plan, &walks, root);
        let ports = tree.queues.iter().map(|q| walks.queues[q.queue as usize].port);
        assert!(ports.into_iter().any(|p| p == paused), "{paused} was paused for {root}");
        victims.extend(tree.victims.iter().map(|i| i.flow));
    }
    let waited = |b: &xoff_sim::outcome::FlowBlame| b.victim + b.source_victim > 0;
    let waiting = (0u32..).zip(&oracle.flows).filter(|(_, b)| waited(b)).map(|(flow, _)| flow);
    waiting.inspect(|flow| assert!(victims.contains(flow), "flow {flow}")).count()
}

#[test]
fn a_certificate_with_any_error_is_refused() {
    let loaded = by_hand("", &[]);
    for routes in [Routes::Scenario, Routes::ALL, Routes::SINGLE_FAILURES] {
        let good = check(&loaded, routes).certificate.expect("it is safe");
        let text = serde_json::to_vec(&good).expect("it can be written");
        assert_eq!(Certificate::parse(&text).as_ref(), Ok(&good));
        let holds = |c: &Certificate| verify(&loaded, &mut router(&loaded), c);
        assert!(holds(&good).is_ok_and(|compared| compared >= 8));
        let spoil = |change: &dyn Fn(&mut Certificate)| {
            let mut bad = good.clone();
            change(&mut bad);
            holds(&bad).expect_err("it is refused")
        };
        assert!(spoil(&|c| c.order.reverse()).contains("is listed before it"));
        assert!(spoil(&|c| c.order.push(c.order[0].clone())).contains("twice"));
        let rename = |name: &str| spoil(&|c| c.order[0].queue = Some(name.into()));
        for name in ["ihfq 9", "four-hop 2", "two-hop 1", "rq", "four-hop", "ddq 0"] {
            assert!(rename(name).contains("has no queue"), "{name}");
        }
        assert!(spoil(&|c| c.order[0].queue = None).contains("not listed"));
        assert!(spoil(&|c| c.order[0].flow = Some(0)).contains("for a queue and a flow"));
        // Every wait is needed.
        for i in 0..good.order.len() {
            assert!(spoil(&|c| drop(c.order.remove(i))).contains("not listed"));
        }
    }
    // Two that depend on each other, changed with each other.
    let mut bad = check(&loaded, Routes::Scenario).certificate.expect("it is safe");
    let at = |c: &Certificate, port: &str, queue: &str| {
        let is = |e: &Entry| e.port == port && e.queue.as_deref() == Some(queue);
        c.order.iter().position(is).expect("it is listed")
    };
    let (a, b) = (at(&bad, "S0.0:1", "ihfq 1"), at(&bad, "S1.1:2", "ddq"));
    bad.order.swap(a, b);
    assert!(verify(&loaded, &mut router(&loaded), &bad).unwrap_err().contains("S0.0:1 queue 1 may wait for"));
    // A proof for these flows is none for more of them.
    let good = check(&loaded, Routes::Scenario).certificate.expect("it is safe");
    let more = by_hand(&path("H5 S0.1 H3 S1.0 H0"), &[]);
    assert!(verify(&more, &mut router(&more), &good).is_err());
}
