//! The possible blocking: by hand, by brute force, and against the runs' own oracle.

use std::collections::{BTreeMap, BTreeSet};
use xoff_check::blocking::{Blocking, Cause, Tree, blocking, tree};
use xoff_check::graph::Part;
use xoff_check::walks::{UNPAUSED, Walks};
use xoff_kernel::random::Stream;
use xoff_net::topology::PortId;
use xoff_plan::plan::{ENDS, Plan};
use xoff_schemes::flow_control::{PauseScope, Queueing};

fn plan(text: &str) -> Plan {
    let files = |path: &std::path::Path| Err(std::io::Error::other(format!("{path:?} in a test")));
    match xoff_plan::load("test.toml", text.as_bytes(), &[], &files) {
        Ok(loaded) => loaded.plan,
        Err(error) => panic!("{:?}\n{text}", miette::Report::new(error)),
    }
}

/// The egress port of node `a` that leads to node `b`.
fn port(plan: &Plan, a: &str, b: &str) -> PortId {
    let node = |name: &str| plan.topology.find(name).expect("a node");
    let ports = &plan.topology.nodes[node(a) as usize].ports;
    *ports.iter().find(|&&p| plan.topology.neighbour(p) == node(b)).expect("neighbours")
}

/// Three switches in a row. A sends to X after the last one, over a slow link; B sends to Y at the middle
/// one, and shares with A the link between the first two; C sends to D at the first one, and C2, at the host
/// of B, too.
fn three_switches(scheme: &str) -> Plan {
    plan(&format!(
        "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"B\", \"C\", \"D\", \"X\", \"Y\"]\n\
         switches = [\"S0\", \"S1\", \"S2\"]\nlinks = [\n\
         {{a=\"A\", b=\"S0\", rate=\"100Gbps\", delay=\"1us\"}}, {{a=\"B\", b=\"S0\", rate=\"100Gbps\", delay=\"1us\"}},\n\
         {{a=\"C\", b=\"S0\", rate=\"100Gbps\", delay=\"1us\"}}, {{a=\"D\", b=\"S0\", rate=\"400Gbps\", delay=\"1us\"}},\n\
         {{a=\"S0\", b=\"S1\", rate=\"400Gbps\", delay=\"1us\"}}, {{a=\"S1\", b=\"S2\", rate=\"400Gbps\", delay=\"1us\"}},\n\
         {{a=\"S2\", b=\"X\", rate=\"10Gbps\", delay=\"1us\"}}, {{a=\"S1\", b=\"Y\", rate=\"400Gbps\", delay=\"1us\"}}]\n\
         [switch]\nbuffer = \"100MB\"\n[flow_control]\nscheme = \"{scheme}\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"X\"\nsize = \"1MB\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"B\"\ndst = \"Y\"\nsize = \"1MB\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"C\"\ndst = \"D\"\nsize = \"1MB\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"B\"\ndst = \"D\"\nsize = \"1MB\"\n"
    ))
}

/// Only S2 to X gets more than it sends: 100 Gbit/s of A, at 10. It can pause S1 to
/// S2, which can pause S0 to S1, which can pause A and B. B's flow to Y shares the
/// link between S0 and S1 with A; its flow to D shares B's own link with that one.
/// C, though at the same switch, shares nothing.
#[test]
fn three_switches_by_hand() {
    let plan = three_switches("pfc");
    let walks = Walks::new(&plan);
    let found = blocking(&plan, &walks, None);
    let port = |a, b| port(&plan, a, b);
    let lasting: Vec<_> = found.lasting().iter().map(|c| c.port).collect();
    assert_eq!(lasting, [port("S2", "X")]);
    let worst = &found.congested[0];
    assert_eq!((worst.offered, worst.rate), (100_000_000_000, 10_000_000_000));
    assert_eq!(
        (worst.culprits, worst.queues, worst.victims, worst.beside, worst.control_victims),
        (1, 4, 2, 1, 0)
    );
    assert_eq!((found.victims, found.queues), (2, 4));

    let tree = tree(&plan, &walks, worst.port);
    let queue = |i: u32| walks.queues[tree.queues[i as usize].queue as usize].port;
    let levels: Vec<_> = tree
        .queues
        .iter()
        .zip(0..)
        .map(|(q, i)| (queue(i), q.level, q.towards.map(queue), q.culprits, q.victims))
        .collect();
    assert_eq!(
        levels,
        [
            (port("S1", "S2"), 1, None, 1, 0),
            (port("S0", "S1"), 2, Some(port("S1", "S2")), 1, 1),
            (port("A", "S0"), 3, Some(port("S0", "S1")), 1, 0),
            (port("B", "S0"), 3, Some(port("S0", "S1")), 0, 2),
        ]
    );
    let who: Vec<_> =
        tree.victims.iter().map(|i| (i.flow, queue(i.queue), i.culprit.flow, i.beside)).collect();
    assert_eq!(who, [(1, port("S0", "S1"), 0, true), (3, port("B", "S0"), 0, false)]);
    let link = |a, b| {
        let at = |p| (0..4).find(|&i| queue(i) == p).expect("a queue");
        tree.links[&(at(a), (b != worst.port).then(|| at(b)))]
    };
    let (near, far) = (link(port("S1", "S2"), worst.port), link(port("B", "S0"), port("S0", "S1")));
    assert_eq!((near.culprits, near.victims, far.culprits, far.victims), (1, 0, 0, 1));
    assert_eq!(tree.expected, None);
}

/// A sends to X over a slow link, and to Y: its flows meet at its own port, which has its own number of queues,
/// and at the port of the first switch.
#[test]
fn a_host_can_have_more_queues_than_a_switch() {
    let of = |keys: &str| {
        let plan = plan(&format!(
            "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"X\", \"Y\"]\nswitches = [\"S0\", \"S1\"]\nlinks = [\n\
             {{a=\"A\", b=\"S0\", rate=\"100Gbps\", delay=\"1us\"}}, {{a=\"S0\", b=\"S1\", rate=\"100Gbps\", delay=\"1us\"}},\n\
             {{a=\"S1\", b=\"X\", rate=\"10Gbps\", delay=\"1us\"}}, {{a=\"S1\", b=\"Y\", rate=\"100Gbps\", delay=\"1us\"}}]\n\
             [switch]\nbuffer = \"100MB\"\n[flow_control]\nscheme = \"bfc\"\nqueues = 5\n{keys}\
             [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"X\"\nsize = \"1MB\"\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"Y\"\nsize = \"1MB\"\n"
        ));
        tree(&plan, &Walks::new(&plan), port(&plan, "S1", "X")).expected
    };
    // Of the 5 queues one is that of ACKs.
    assert_eq!(of(""), Some(1.0 - 0.75 * 0.75));
    assert_eq!(of("host_queues = 16\n"), Some(1.0 - 0.75 * 0.9375));
}

/// The other schemes on the same three switches.
#[test]
fn the_scope_of_pauses_decides() {
    let of = |scheme: &str| {
        let plan = three_switches(scheme);
        let walks = Walks::new(&plan);
        (blocking(&plan, &walks, None), tree(&plan, &walks, port(&plan, "S2", "X")))
    };
    let (bfc, bfc_tree) = of("bfc");
    assert_eq!((bfc.victims, bfc.congested[0].beside), (2, 1));
    // One culprit in one of 31 queues.
    assert_eq!(bfc_tree.expected, Some(1.0 - (1.0 - 1.0 / 31.0)));
    let (own, own_tree) = of("per-flow-queue");
    // The culprit's own queues: S1, S0 and A.
    assert_eq!((own.congested[0].queues, own.victims, own.congested[0].beside), (3, 0, 0));
    assert!(own_tree.victims.is_empty() && own_tree.queues.len() == 3);
    let (none, _) = of("none");
    assert!(none.congested.is_empty() && none.all_queues == 0);
}

/// A queue that a pause can stop: port, lane, and the flow where each has its own.
type Key = (PortId, u8, u32);

/// A path of a flow's packets, computed without [`Walks`]: egress ports, and whether pauses reach the packets
/// there (with the lane and the flow, as far as these part queues).
struct FlowPath {
    flow: u32,
    is_control: bool,
    steps: Vec<(PortId, Option<Key>)>,
}

fn flow_paths(plan: &Plan) -> Vec<FlowPath> {
    let scope = plan.flow_control.traits().pause_scope;
    let mut paths = Vec::new();
    for (flow, f) in (0u32..).zip(&plan.flows) {
        for (is_control, start, lane) in [(false, f.path, f.lane), (true, f.ack_path, f.ack_lane)] {
            let reached = match (scope, plan.flow_control.traits().queueing) {
                (PauseScope::Nothing, _) => false,
                (PauseScope::Lane, _) => plan.lanes[usize::from(lane)].lossless,
                (_, Queueing::Numbered { acks, .. }) => acks || !is_control,
                _ => !is_control,
            };
            let own = if scope == PauseScope::Flow { flow } else { 0 };
            let hops = plan.hops[start as usize..].iter().take_while(|&&h| h < ENDS);
            let steps = hops.map(|&p| (p, reached.then_some((p, lane, own)))).collect();
            paths.push(FlowPath { flow, is_control, steps });
        }
    }
    paths
}

/// By definition: queues that `port` can pause, victims by data and by control packets, and those in a queue
/// with a culprit.
fn by_definition(plan: &Plan, port: PortId) -> (usize, BTreeSet<u32>, BTreeSet<u32>, BTreeSet<u32>) {
    let paths = flow_paths(plan);
    let crosses = |w: &FlowPath| w.steps.iter().any(|s| s.0 == port);
    let mut paused: BTreeSet<Key> = BTreeSet::new();
    loop {
        let before = paused.len();
        for path in &paths {
            for pair in path.steps.windows(2) {
                let (Some(from), Some(to)) = (pair[0].1, pair[1].1) else { continue };
                if pair[1].0 == port || paused.contains(&to) {
                    paused.insert(from);
                }
            }
        }
        if paused.len() == before {
            break;
        }
    }
    let mut with_culprits: BTreeSet<Key> = BTreeSet::new();
    for path in paths.iter().filter(|w| crosses(w)) {
        let last = path.steps.iter().rposition(|s| s.0 == port).expect("it crosses it");
        with_culprits.extend(path.steps[..last].iter().filter_map(|s| s.1));
    }
    let victim = |is_control: bool, queues: &BTreeSet<Key>| -> BTreeSet<u32> {
        let shares = |w: &&FlowPath| w.steps.iter().any(|s| s.1.is_some_and(|q| queues.contains(&q)));
        paths
            .iter()
            .filter(|w| w.is_control == is_control && !crosses(w))
            .filter(shares)
            .map(|w| w.flow)
            .collect()
    };
    let (data, control) = (victim(false, &paused), victim(true, &paused));
    (paused.len(), data, control, victim(false, &with_culprits))
}

/// A random scenario: a fabric, a scheme, and flows of several kinds.
fn random(number: u64) -> String {
    let mut stream = Stream::new(number, "scenarios of a test", 0);
    let mut pick = |n: u64| stream.below(n);
    let rate = |n: u64| [25, 40, 100, 200][n as usize];
    let fabric = match pick(5) {
        0 => format!(
            "kind = \"leaf-spine\"\nleaves = {}\nspines = {}\nhosts_per_leaf = {}\nhost_link = {{rate=\"{}Gbps\", delay=\"1us\"}}\nfabric_link = {{rate=\"{}Gbps\", delay=\"1us\"}}\n",
            2 + pick(3),
            1 + pick(3),
            2 + pick(3),
            rate(pick(4)),
            rate(pick(4))
        ),
        1 => format!(
            "kind = \"ring\"\nswitches = {}\nhosts_per_switch = {}\nlink = {{rate=\"{}Gbps\", delay=\"1us\"}}\n",
            3 + pick(4),
            1 + pick(3),
            rate(pick(4))
        ),
        2 => format!(
            "kind = \"line\"\nswitches = {}\nhosts_per_switch = {}\nlink = {{rate=\"{}Gbps\", delay=\"1us\"}}\nfabric_link = {{rate=\"{}Gbps\", delay=\"500ns\"}}\n",
            3 + pick(3),
            1 + pick(3),
            rate(pick(4)),
            rate(pick(4))
        ),
        3 => format!(
            "kind = \"ndc\"\nn = {}\nk = 1\nlink = {{rate=\"{}Gbps\", delay=\"1us\"}}\n",
            2 + pick(2),
            rate(pick(4))
        ),
        _ => "kind = \"fat-tree\"\nk = 4\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n".to_string(),
    };
    let scheme = match pick(6) {
        0..3 => format!("scheme = \"pfc\"\nxoff = \"{}kB\"\n", 3 + pick(40)),
        3 => format!("scheme = \"bfc\"\nqueues = {}\nacks = \"queues\"\n", 2 + pick(6)),
        4 => format!("scheme = \"bfc\"\nqueues = {}\n", 2 + pick(6)),
        _ => format!("scheme = \"per-flow-queue\"\nxoff = \"{}kB\"\n", 3 + pick(40)),
    };
    let slow = match pick(4) {
        0 => "[[slow_receiver]]\nhost = \"H0\"\nrate = \"10Gbps\"\n",
        1 => "[[slow_receiver]]\nhost = \"H1\"\nstall_from = \"5us\"\nstall_until = \"80us\"\n",
        _ => "",
    };
    format!(
        "[topology]\n{fabric}[switch]\nbuffer = \"1GB\"\n[host]\nbuffer = \"1GB\"\n{slow}[flow_control]\n{scheme}\
         [transport]\nrto = \"1s\"\nack_priority = {}\n[measure]\nblocking = true\n[run]\nseed = {number}\nduration = \"120us\"\ndrain = \"400us\"\n\
         [[traffic]]\nkind = \"incast\"\nfan_in = 2\nsize = \"{}kB\"\nto = \"random\"\nperiod = \"50us\"\n\
         [[traffic]]\nkind = \"permutation\"\nsize = \"{}kB\"\npriority = {}\n",
        3 + pick(2),
        20 + pick(200),
        20 + pick(400),
        3 + 2 * pick(2)
    )
}

/// The port's entry, as far as counts go.
fn counts(found: &Blocking, port: PortId) -> Option<(u64, u64, u64, u64)> {
    let c = found.congested.iter().find(|c| c.port == port)?;
    Some((c.queues, c.victims, c.control_victims, c.beside))
}

#[test]
fn counts_and_lists_are_those_of_the_definition() {
    let (mut checked, mut with_victims, mut apart) = (0, 0, 0);
    for number in 0..150 {
        let plan = plan(&random(number));
        let walks = Walks::new(&plan);
        let found = blocking(&plan, &walks, None);
        let mut all: BTreeSet<u32> = BTreeSet::new();
        for c in &found.congested {
            let (queues, data, control, beside) = by_definition(&plan, c.port);
            let by_hand = (queues as u64, data.len() as u64, control.len() as u64, beside.len() as u64);
            assert_eq!(
                counts(&found, c.port),
                Some(by_hand),
                "scenario {number}, {}",
                plan.topology.port_name(c.port)
            );
            let tree = tree(&plan, &walks, c.port);
            assert_eq!(tree.queues.len(), queues);
            assert_eq!(tree.culprits, c.culprits);
            let listed: BTreeSet<u32> = tree.victims.iter().map(|i| i.flow).collect();
            assert_eq!((listed.len(), &listed), (tree.victims.len(), &data));
            let near: BTreeSet<u32> = tree.victims.iter().filter(|i| i.beside).map(|i| i.flow).collect();
            assert_eq!(near, beside);
            lists_hold(&plan, &walks, &tree);
            checked += 1;
            with_victims += usize::from(!data.is_empty());
            apart += usize::from(data != beside);
            if c.cause == Cause::Lasting {
                all.extend(data);
            }
        }
        assert_eq!(found.victims, all.len() as u64, "scenario {number}");
        if plan.flow_control.traits().pause_scope == PauseScope::Flow {
            assert!(found.congested.iter().all(|c| (c.victims, c.beside, c.control_victims) == (0, 0, 0)));
        }
    }
    assert!(checked > 1000 && with_victims > 300 && apart > 100, "{checked} {with_victims} {apart}");
}

/// Checks each victim: it waits in the queue, and so does the culprit, or in the next queue of the chain that
/// a culprit crosses.
fn lists_hold(plan: &Plan, walks: &Walks, tree: &Tree) {
    let paths = flow_paths(plan);
    for i in &tree.victims {
        let queue = |at: u32| {
            let q = walks.queues[tree.queues[at as usize].queue as usize];
            (q.port, q.lane, if let Part::Flow(flow) = q.part { flow } else { 0 })
        };
        // A victim anywhere on its path; a culprit before it reaches the port.
        let lies = |flow: u32, at: u32, culprit: bool| {
            paths.iter().filter(|w| w.flow == flow && (culprit || !w.is_control)).any(|w| {
                let port = w.steps.iter().rposition(|s| s.0 == tree.port);
                let before = if culprit { port.unwrap_or(0) } else { w.steps.len() };
                port.is_some() == culprit && w.steps[..before].iter().any(|s| s.1 == Some(queue(at)))
            })
        };
        assert!(lies(i.flow, i.queue, false));
        let mut at = i.queue;
        while !lies(i.culprit.flow, at, true) {
            assert!(!i.beside);
            at = tree.queues[at as usize].towards.expect("a culprit is on the chain");
        }
        assert!(tree.queues[at as usize].culprit == Some(i.culprit));
    }
}

/// Each result of a run's oracle is possible by the plan: for each root the paused ports, and for each flow
/// that waited as a victim a root that it can wait for. (For the oracle, a packet that has crossed the root
/// and waits again is a victim, too.)
#[test]
fn runs_find_only_blocking_that_the_plan_finds() {
    let (mut places, mut victims, mut lasting, mut control, mut bursts, mut relays) = (0, 0, 0, 0, 0, 0);
    for number in 0..250 {
        let plan = plan(&random(number));
        let walks = Walks::new(&plan);
        let found = blocking(&plan, &walks, None);
        let outcome = xoff_sim::run(&plan, &mut |_| true);
        let c = outcome.counters;
        assert_eq!(c.sent, c.delivered + c.dropped + c.in_flight);
        assert!(outcome.drops.iter().all(|d| !d.lossless || !d.reason.for_want_of_room()));
        let oracle = outcome.blocking.as_ref().expect("it watched");
        let mut trees: BTreeMap<PortId, BTreeSet<PortId>> = BTreeMap::new();
        let mut of_root: BTreeMap<PortId, BTreeSet<u32>> = BTreeMap::new();
        for &(xoff_sim::outcome::Place { port: paused, root, .. }, blame) in &oracle.places {
            let queues = trees.entry(root).or_insert_with(|| {
                let tree = tree(&plan, &walks, root);
                let mut waits: BTreeSet<u32> = tree.victims.iter().map(|i| i.flow).collect();
                let queues: BTreeSet<u32> = tree.queues.iter().map(|q| q.queue).collect();
                // Data of flows that have crossed the root, and control packets.
                for walk in 0..walks.walks.len() as u32 {
                    let crossed = walks.ports(walk).iter().rposition(|&p| p == root);
                    let behind = &walks.at(walk)[crossed.map_or(0, |at| at + 1)..];
                    if behind.iter().any(|&q| q != UNPAUSED && queues.contains(&q)) {
                        waits.insert(walks.walks[walk as usize].flow);
                    }
                }
                of_root.insert(root, waits);
                tree.queues.iter().map(|q| walks.queues[q.queue as usize].port).collect()
            });
            assert!(queues.contains(&paused), "scenario {number}: {paused} was paused for {root}");
            places += 1;
            match found.congested.iter().find(|c| c.port == root).map(|c| c.cause) {
                Some(Cause::Lasting) => lasting += 1,
                Some(Cause::Control) => control += 1,
                Some(Cause::Bursts) => bursts += 1,
                // Left over when its own pause had just ended.
                None => {
                    let relayed = found.congested.iter().any(|c| {
                        tree(&plan, &walks, c.port)
                            .queues
                            .iter()
                            .any(|q| walks.queues[q.queue as usize].port == root)
                    });
                    assert!(relayed, "scenario {number}: {root} was a root");
                    relays += 1;
                }
            }
            assert!(blame.victim + blame.source_victim == 0 || !of_root[&root].is_empty());
        }
        for (flow, blame) in (0u32..).zip(&oracle.flows) {
            if blame.victim + blame.source_victim > 0 {
                assert!(of_root.values().any(|its| its.contains(&flow)), "scenario {number}: flow {flow}");
                assert!(plan.flow_control.traits().pause_scope != PauseScope::Flow);
                victims += 1;
            }
        }
    }
    assert!(
        places > 1000 && victims > 500 && lasting > 2 * (control + bursts + relays),
        "{places} {victims} {lasting} {control} {bursts} {relays}"
    );
}
