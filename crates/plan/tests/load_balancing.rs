//! Forks of routes against brute force: every path of the plan is a shortest path, all shortest paths are in
//! the plan, and the known part of the further path is correct for each of them.

use std::collections::{BTreeMap, BTreeSet};
use xoff_plan::Loaded;
use xoff_plan::balancing::{Ahead, LoadBalancing};
use xoff_plan::plan::{ENDS, Plan};
use xoff_schemes::load_balancing::seam::Offer;

const FAT_TREE: &str = "[topology]\nkind = \"fat-tree\"\nk = 4\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n";
const LEAF_SPINE: &str = "[topology]\nkind = \"leaf-spine\"\nleaves = 3\nspines = 4\nhosts_per_leaf = 2\n\
    host_link = {rate=\"100Gbps\", delay=\"1us\"}\nfabric_link = {rate=\"100Gbps\", delay=\"1us\"}\n";
const TORUS: &str = "[topology]\nkind = \"torus-2d\"\nwidth = 4\nheight = 3\nhosts_per_switch = 1\n\
    link = {rate=\"100Gbps\", delay=\"1us\"}\n";
const CUBE: &str = "[topology]\nkind = \"ndc\"\nn = 3\nk = 2\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n";
const DRAGONFLY: &str = "[topology]\nkind = \"dragonfly\"\nswitches_per_group = 2\nhosts_per_switch = 1\n\
    global_links = 2\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n";
const TRAFFIC: &str = "[[traffic]]\nkind = \"all-to-all\"\nsize = \"1MB\"\n";

fn load(parts: &[&str]) -> Loaded {
    let files = |path: &std::path::Path| Err(std::io::Error::other(format!("{path:?} in a test")));
    let text = parts.concat();
    match xoff_plan::load("test.toml", text.as_bytes(), &[], &files) {
        Ok(loaded) => loaded,
        Err(error) => panic!("{:?}\n{text}", miette::Report::new(error)),
    }
}

fn spread(topology: &str) -> Plan {
    let irn = "[transport]\nkind = \"irn\"\n";
    load(&[topology, "[routing]\nkind = \"shortest-path\"\nload_balancing = \"spray\"\n", irn, TRAFFIC]).plan
}

/// The same with non-minimal paths.
fn valiant(topology: &str, kind: &str) -> Plan {
    let irn = "[transport]\nkind = \"irn\"\n";
    let routing = format!("[routing]\nkind = \"{kind}\"\nload_balancing = \"valiant\"\n");
    load(&[topology, &routing, irn, TRAFFIC]).plan
}

/// The ports of every path from a position.
fn all_paths(plan: &Plan, start: u32) -> Vec<Vec<u32>> {
    let mut paths = Vec::new();
    assert!(plan.visit_paths(start, &mut |path| {
        paths.push(path.iter().map(|&at| plan.hops[at as usize]).collect());
        true
    }));
    paths
}

/// All shortest paths from the far end of `first` to `to`, by breadth-first search over only the links.
/// (Hosts relay if the topology allows it.)
fn shortest(plan: &Plan, first: u32, to: u32) -> BTreeSet<Vec<u32>> {
    let topology = &plan.topology;
    let mut paths = vec![vec![first]];
    loop {
        let end = |path: &Vec<u32>| topology.neighbour(*path.last().unwrap());
        let done: BTreeSet<Vec<u32>> = paths.iter().filter(|p| end(p) == to).cloned().collect();
        if !done.is_empty() {
            return done;
        }
        assert!(paths[0].len() < 12);
        let hosts: BTreeSet<u32> = topology.hosts().collect();
        paths = paths
            .iter()
            .filter(|p| topology.relay_hosts || !hosts.contains(&end(p)))
            .flat_map(|p| {
                let outs = topology.nodes[end(p) as usize].ports.clone();
                outs.into_iter().map(move |out| [p.as_slice(), &[out]].concat())
            })
            .collect();
    }
}

#[test]
fn the_paths_are_all_shortest_paths() {
    for topology in [FAT_TREE, LEAF_SPINE, TORUS, CUBE] {
        let plan = spread(topology);
        let mut several = 0;
        for flow in &plan.flows {
            let found = all_paths(&plan, flow.path);
            let set: BTreeSet<Vec<u32>> = found.iter().cloned().collect();
            assert_eq!(set.len(), found.len(), "each once");
            assert_eq!(set, shortest(&plan, plan.hops[flow.path as usize], flow.dst));
            several += usize::from(found.len() > 1);
        }
        assert!(several * 4 > plan.flows.len(), "{several} of {}", plan.flows.len());
    }
    // (k / 2)² between pods, k / 2 within one.
    let plan = spread(FAT_TREE);
    let counts: BTreeSet<usize> = plan.flows.iter().map(|f| all_paths(&plan, f.path).len()).collect();
    assert_eq!(counts, BTreeSet::from([1, 2, 4]));
}

#[test]
fn the_known_part_of_the_path_is_on_every_path() {
    let others = [(DRAGONFLY, valiant(DRAGONFLY, "dragonfly")), (TORUS, valiant(TORUS, "dimension-order"))];
    let shortest = [FAT_TREE, LEAF_SPINE, TORUS, CUBE].map(|topology| (topology, spread(topology)));
    for (topology, plan) in shortest.into_iter().chain(others) {
        let mut known = BTreeMap::new();
        let positions: BTreeSet<u32> = plan
            .flows
            .iter()
            .flat_map(|f| {
                let mut all = Vec::new();
                plan.visit_paths(f.path, &mut |path| {
                    all.extend(path);
                    true
                });
                all
            })
            .collect();
        let mut gaps = 0;
        for &at in &positions {
            let paths = all_paths(&plan, at);
            let onward = plan.onward(at);
            assert_eq!(onward.sure.is_none(), paths.len() == 1);
            assert!(paths.iter().all(|path| path.starts_with(onward.known)));
            let common: Vec<u32> =
                paths[0].iter().copied().filter(|p| paths.iter().all(|path| path.contains(p))).collect();
            assert_eq!(onward.certain().collect::<Vec<_>>(), common);
            for distance in 0..10 {
                let there: BTreeSet<Option<&u32>> = paths.iter().map(|path| path.get(distance)).collect();
                let expected = match (there.len(), there.first().copied().flatten()) {
                    (1, Some(&port)) => Ahead::Port(port),
                    (1, None) => Ahead::End,
                    _ => Ahead::Unknown,
                };
                assert_eq!(plan.ahead(at, distance as u32), expected);
            }
            gaps += usize::from(onward.sure.is_some_and(|sure| !sure.is_empty()));
            let all: BTreeSet<u32> = paths.into_iter().flatten().collect();
            for port in 0..plan.topology.ports.len() as u32 {
                assert_eq!(plan.may_cross(at, port, &mut known), all.contains(&port));
            }
        }
        // A host of an NDC has several last hops; elsewhere that is known from the beginning.
        assert_eq!(gaps > 0, topology != CUBE);
    }
}

/// In a fat-tree all paths upwards from an aggregation switch lead down over one aggregation switch of the
/// destination's pod; those from an edge switch do not.
#[test]
fn in_a_fat_tree_a_single_path_down_is_known() {
    let plan = spread(FAT_TREE);
    let flow = plan.flows.iter().find(|f| f.src == 0 && f.dst == 15).unwrap();
    let name = |port: &u32| plan.topology.port_name(*port);
    let onward = plan.onward(flow.path);
    assert_eq!(onward.known.iter().map(name).collect::<Vec<_>>(), ["H0:0"]);
    assert_eq!(onward.sure.unwrap().len(), 1);
    let up = all_paths(&plan, flow.path)[0][1];
    let mut at = None;
    plan.visit_paths(flow.path, &mut |path| {
        at = at.or(path.iter().copied().find(|&at| plan.hops[at as usize] == up));
        true
    });
    let onward = plan.onward(at.unwrap());
    assert_eq!(onward.known, [up]);
    assert_eq!(
        onward.sure.unwrap().len(),
        2,
        "the port of the destination's aggregation switch, and the last"
    );
}

#[test]
fn packets_divide_evenly_over_the_paths() {
    let plan = spread(FAT_TREE);
    for flow in &plan.flows {
        let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
        plan.divide(flow.path, 1_000_001, &mut |port, amount| *sums.entry(port).or_default() += amount);
        let paths = all_paths(&plan, flow.path);
        for (port, sum) in sums {
            let share = paths.iter().filter(|path| path.contains(&port)).count() as u64;
            let even = 1_000_001 * share / paths.len() as u64;
            assert!(sum.abs_diff(even) <= 2, "{sum} {even}");
        }
    }
}

/// Answers have the label of their packet, if each packet has its own: their routes leave the receiver by one port, take
/// nearly every shortest path.
#[test]
fn answers_follow_the_labels_of_packets() {
    for topology in [FAT_TREE, CUBE] {
        let irn = "[transport]\nkind = \"irn\"\n";
        let routing = "[routing]\nkind = \"shortest-path\"\nload_balancing = \"reps\"\n";
        let plan = load(&[topology, routing, irn, TRAFFIC]).plan;
        let labels = plan.labels().expect("senders label packets");
        let mut found_all = 0;
        for (id, flow) in (0..).zip(&plan.flows) {
            let starts = labels.ack_routes(id);
            assert_eq!((starts.len(), starts[0]), (256, flow.ack_path));
            let path = |start: u32| all_paths(&plan, start).remove(0);
            let paths: Vec<Vec<u32>> = starts.iter().map(|&start| path(start)).collect();
            assert!(paths.iter().all(|path| path[0] == paths[0][0]));
            let all = shortest(&plan, paths[0][0], flow.src);
            let found: BTreeSet<Vec<u32>> = paths.into_iter().collect();
            assert!(found.is_subset(&all));
            found_all += usize::from(found == all);
            let others: BTreeSet<u32> = starts.iter().copied().filter(|&s| s != flow.ack_path).collect();
            assert_eq!(plan.other_ack_routes(id).collect::<BTreeSet<_>>(), others);
        }
        assert!(found_all * 10 > plan.flows.len() * 9, "{found_all}");
    }
    let plan = load(&[FAT_TREE, "[routing]\nload_balancing = \"plb\"\n", TRAFFIC]).plan;
    assert_eq!(plan.other_ack_routes(0).count(), 0, "PLB labels flows");
}

#[test]
fn labels_give_routes_of_the_same_first_port_and_the_first_is_that_of_ecmp() {
    for topology in [FAT_TREE, CUBE] {
        let routing =
            |kind: &str| format!("[routing]\nkind = \"shortest-path\"\nload_balancing = \"{kind}\"\n");
        let plan = load(&[topology, &routing("plb"), TRAFFIC]).plan;
        let ecmp = load(&[topology, &routing("ecmp"), TRAFFIC]).plan;
        let LoadBalancing::Labels(laid) = &plan.load_balancing else { panic!() };
        let route = |plan: &Plan, start: u32| -> Vec<u32> {
            plan.hops[start as usize..].iter().copied().take_while(|&h| h < ENDS).collect()
        };
        let mut routes = BTreeSet::new();
        for (id, flow) in (0..).zip(&plan.flows) {
            let labels = laid.routes(id);
            assert_eq!((labels.len(), labels[0]), (8, flow.path));
            assert_eq!(route(&plan, flow.path), route(&ecmp, ecmp.flows[id as usize].path));
            let all = shortest(&plan, plan.hops[flow.path as usize], flow.dst);
            assert!(labels.iter().all(|&start| all.contains(&route(&plan, start))));
            let others: BTreeSet<u32> = labels.iter().copied().filter(|&s| s != flow.path).collect();
            assert_eq!(plan.other_routes(id).collect::<BTreeSet<_>>(), others);
            routes.insert((all.len(), others.len() + 1));
        }
        // Eight labels find most of up to four paths.
        assert!(routes.iter().all(|&(all, found)| found <= all), "{routes:?}");
        assert!(routes.iter().any(|&(all, found)| all > 1 && found == all), "{routes:?}");
    }
}

#[test]
fn keys_without_effect_are_named() {
    let warnings = |routing: &str, traffic: &str| -> Vec<String> {
        load(&[LEAF_SPINE, routing, traffic]).warnings.iter().map(ToString::to_string).collect()
    };
    let has = |warnings: &[String], part: &str| warnings.iter().any(|w| w.contains(part));
    let w = warnings("[routing.drill]\nd = 4\n", TRAFFIC);
    assert!(has(&w, "routing.drill.d") && has(&w, "is \"ecmp\""), "{w:?}");
    let w = warnings("[routing]\nload_balancing = \"drill\"\nplb = { labels = 4 }\n", TRAFFIC);
    assert!(has(&w, "routing.plb.labels") && has(&w, "go-back-n"), "{w:?}");
    let w = warnings("[routing]\nload_balancing = \"plb\"\n", TRAFFIC);
    assert!(has(&w, "add [ecn]"), "{w:?}");
    // Trimmed packets show congested paths, so marks are not needed.
    let rud = "load_balancing = \"reps\"\n[transport]\nkind = \"rud\"\n[flow_control]\nscheme = ";
    for (scheme, wants_marks) in [("none", true), ("trimming", false)] {
        let w = warnings(&format!("[routing]\n{rud}\"{scheme}\"\n"), TRAFFIC);
        assert_eq!(has(&w, "add [ecn]"), wants_marks, "{scheme} {w:?}");
    }
    let near = "[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"1kB\"\n";
    for kind in ["plb", "spray"] {
        let w = warnings(&format!("[routing]\nload_balancing = \"{kind}\"\n"), near);
        assert!(has(&w, "no flow has more than one path"), "{w:?}");
    }
}

#[test]
fn a_fabric_of_a_thousand_hosts_fits() {
    let big = FAT_TREE.replace("k = 4", "k = 16");
    let traffic = "[[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n";
    let spray = "[routing]\nload_balancing = \"spray\"\n[transport]\nkind = \"irn\"\n";
    let plan = load(&[&big, spray, traffic]).plan;
    assert_eq!(plan.flows.len(), 1024);
    assert!(plan.hops.len() < 1024 * 500, "{}", plan.hops.len());
    let most = plan.flows.iter().map(|f| all_paths(&plan, f.path).len()).max();
    assert_eq!(most, Some(64));
}

/// Where routes change, a packet keeps its port, and every path from there is a shortest one over the links
/// that are up.
#[test]
fn forks_follow_failures() {
    let failures = "[[failure]]\nlink = \"S0.0-S1.0\"\nat = \"10us\"\nuntil = \"30us\"\n\
                    [[failure]]\nswitch = \"S2.1\"\nat = \"20us\"\n[run]\nduration = \"1ms\"\n";
    let routing = "[routing]\nload_balancing = \"drill\"\n[transport]\nkind = \"irn\"\n";
    let plan = load(&[FAT_TREE, routing, TRAFFIC, failures]).plan;
    assert_eq!(plan.faults.reroutes.len(), 3);
    let dead = BTreeSet::from([plan.topology.find("S2.1").unwrap()]);
    let mut moved = 0;
    for change in &plan.faults.reroutes {
        let down = |port: &u32| {
            let down = plan.faults.down.iter().filter(|d| d.port == *port).flat_map(|d| &d.spans);
            down.clone().any(|&(from, until)| from <= change.at && change.at < until)
        };
        let table = &plan.faults.tables[change.table as usize];
        assert_eq!(table.flows.len(), plan.flows.len());
        for route in &table.flows {
            let flow = &plan.flows[route.flow as usize];
            let found: BTreeSet<Vec<u32>> = all_paths(&plan, route.path).into_iter().collect();
            let first = plan.hops[route.path as usize];
            let all = shortest(&plan, first, flow.dst);
            let alive: BTreeSet<Vec<u32>> = all.into_iter().filter(|path| !path.iter().any(down)).collect();
            // One link and one core switch leave a shortest path between any two hosts.
            assert_eq!(found, alive);
        }
        for &(old, new) in &table.positions {
            moved += 1;
            assert_eq!(plan.hops[old as usize], plan.hops[new as usize], "it stays where it is");
            let ends = |start: u32| -> BTreeSet<u32> {
                all_paths(&plan, start)
                    .iter()
                    .map(|path| plan.topology.neighbour(*path.last().unwrap()))
                    .collect()
            };
            // A switch that is down leads nowhere.
            let (from, to) = (ends(old), ends(new));
            assert!(from == to || from == dead || to == dead, "to the same host: {from:?} {to:?}");
            assert!(all_paths(&plan, new).iter().all(|path| !path[1..].iter().any(down)));
        }
        // Positions that are not listed lead over links that are up.
        let listed: BTreeSet<u32> = table.positions.iter().map(|p| p.0).collect();
        for flow in &plan.flows {
            plan.visit_paths(flow.path, &mut |path| {
                let stays = path.iter().filter(|at| !listed.contains(at));
                assert!(
                    stays
                        .into_iter()
                        .all(|&at| all_paths(&plan, at).iter().all(|w| !w[1..].iter().any(down)))
                );
                true
            });
        }
    }
    assert!(moved > 100, "{moved}");
}

/// The same where senders label packets: each label has a shortest path over the links that are up, in each state of
/// the network; and so has each packet in flight after a change.
#[test]
fn labels_follow_failures() {
    let failures = "[[failure]]\nlink = \"S0.0-S1.0\"\nat = \"10us\"\nuntil = \"30us\"\n\
                    [[failure]]\nlink = \"S0.1-S1.0\"\nat = \"0us\"\nuntil = \"40us\"\n\
                    [[failure]]\nswitch = \"S2.1\"\nat = \"20us\"\n[run]\nduration = \"1ms\"\n";
    for kind in ["plb", "reps"] {
        let routing = format!("[routing]\nload_balancing = \"{kind}\"\n[transport]\nkind = \"irn\"\n");
        let plan = load(&[FAT_TREE, &routing, TRAFFIC, failures]).plan;
        assert_eq!(plan.faults.reroutes.len(), 4);
        let labels = plan.labels().expect("senders label packets");
        assert_eq!(labels.ack_routes.is_empty(), kind == "plb");
        let count = labels.rule.labels();
        let down_at = |at: u64| -> BTreeSet<u32> {
            let down =
                |d: &&xoff_plan::plan::Down| d.spans.iter().any(|&(from, until)| from <= at && at < until);
            plan.faults.down.iter().filter(down).map(|d| d.port).collect()
        };
        // Of data, and of its answers.
        let mut routes = [labels.routes.clone(), labels.ack_routes.clone()];
        // By position where a packet of a flow may be: its destination.
        let mut places: BTreeMap<u32, u32> = BTreeMap::new();
        let mut moved = 0;
        for at in [0].into_iter().chain(plan.faults.reroutes.iter().map(|change| change.at)) {
            let down = down_at(at);
            if let Some(change) = plan.faults.reroutes.iter().find(|change| change.at == at) {
                let table = &plan.faults.tables[change.table as usize];
                assert!(table.labels.is_sorted() && table.positions.windows(2).all(|w| w[0].0 < w[1].0));
                for route in &table.labels {
                    assert!(table.flows.iter().any(|flow| flow.flow == route.flow));
                    let entry = (route.flow * count + route.label) as usize;
                    routes[0][entry] = route.path;
                    assert_eq!(route.ack_path.is_some(), kind == "reps");
                    route.ack_path.into_iter().for_each(|path| routes[1][entry] = path);
                }
                for flow in &table.flows {
                    let first = routes.each_ref().map(|routes| routes.get((flow.flow * count) as usize));
                    assert_eq!(first[0], Some(&flow.path), "label 0 has the flow's route");
                    assert!(first[1].is_none_or(|start| *start == flow.ack_path));
                }
                let moves: BTreeMap<u32, u32> = table.positions.iter().copied().collect();
                let now = places.iter().map(|(at, &to)| (*moves.get(at).unwrap_or(at), to)).collect();
                moved += table.positions.len();
                for (position, to) in std::mem::replace(&mut places, now) {
                    let new = *moves.get(&position).unwrap_or(&position);
                    assert_eq!(plan.hops[position as usize], plan.hops[new as usize], "it stays where it is");
                    let [path] = &all_paths(&plan, new)[..] else { panic!("one path") };
                    let end = plan.topology.neighbour(path[path.len() - 1]);
                    let cut = plan.topology.find("S2.1").unwrap();
                    assert!(end == to || end == cut, "{kind} at {at}");
                    assert!(!path[1..].iter().any(|port| down.contains(port)), "{kind} at {at}");
                }
            }
            let both = routes.iter().zip([true, false]);
            for (index, &start, is_data) in both.flat_map(|(starts, is_data)| {
                starts.iter().enumerate().map(move |(index, start)| (index, start, is_data))
            }) {
                let flow = &plan.flows[index / count as usize];
                let (from, to) = if is_data { (flow.src, flow.dst) } else { (flow.dst, flow.src) };
                let [path] = &all_paths(&plan, start)[..] else { panic!("one path") };
                assert_eq!(plan.topology.ports[path[0] as usize].node, from);
                assert!(!path.iter().any(|port| down.contains(port)), "{kind} at {at}");
                assert!(shortest(&plan, path[0], to).contains(path), "{kind} at {at}");
                let end = start + path.len() as u32;
                places.extend((start..end).map(|position| (position, to)));
            }
        }
        assert!(moved > 100, "{moved}");
    }
}

/// The first switch of a packet chooses among the minimal paths, which come first, and one path over each link to a
/// third group; nowhere else a choice has other paths.
#[test]
fn only_first_switches_have_non_minimal_paths() {
    let plan = valiant(DRAGONFLY, "dragonfly");
    let LoadBalancing::Packets(choices) = &plan.load_balancing else { panic!("packets are spread") };
    let mut unequal = 0;
    for flow in &plan.flows {
        let entry = plan.hops[flow.path as usize + 1];
        let lengths: BTreeSet<usize> = all_paths(&plan, flow.path).iter().map(Vec::len).collect();
        if (flow.src / 2) == (flow.dst / 2) {
            assert_eq!(lengths, BTreeSet::from([3]), "within a group");
            continue;
        }
        let Offer { paths, minimal, links } = choices.offer(entry);
        // Five groups of two switches with two global ports: one link for each pair.
        assert_eq!((minimal, paths, choices.options(entry).len()), (1, 4, 4));
        for (&option, &links) in choices.options(entry).iter().zip(links) {
            assert!(all_paths(&plan, option).iter().all(|path| path.len() == usize::from(links) + 1));
        }
        assert!(links[0] <= 3 && links[1..].iter().all(|&l| (2..=5).contains(&l)), "{links:?}");
        unequal += usize::from(lengths.len() > 1);
    }
    assert!(unequal > 0);
}

/// A packet needs a channel more than it crosses links between groups, or datelines and turns into a row.
#[test]
fn routes_need_their_virtual_channels() {
    let needed = |topology: &str, routing: &str| {
        let ack = "[transport]\nkind = \"irn\"\nack_priority = 7\n[flow_control]\nscheme = \"pfc\"\npriorities = [0]\n";
        let traffic = TRAFFIC.to_string() + "priority = 0\n";
        let text =
            |count: u8| format!("{topology}[routing]\n{routing}\nvirtual_channels = {count}\n{ack}{traffic}");
        let files = |path: &std::path::Path| Err(std::io::Error::other(format!("{path:?} in a test")));
        let loads = |count: u8| match xoff_plan::load("test.toml", text(count).as_bytes(), &[], &files) {
            Ok(loaded) => Some(loaded.plan.channels.is_some()),
            Err(error) if error.message().starts_with("the routes need") => None,
            Err(error) => panic!("{:?}\n{}", miette::Report::new(error), text(count)),
        };
        assert_eq!(loads(1), Some(false), "one channel is none");
        (2..=7).find(|&count| loads(count).is_some()).expect("seven are enough")
    };
    assert_eq!(needed(DRAGONFLY, ""), 2);
    assert_eq!(needed(DRAGONFLY, "load_balancing = \"valiant\""), 3);
    assert_eq!(needed(DRAGONFLY, "load_balancing = \"ugal\""), 3);
    // The dateline of a row, then that of a column.
    assert_eq!(needed(TORUS, "kind = \"dimension-order\""), 3);
    // Up to two datelines of rows, two of columns, and the turn from a column into a row: in three rows not all of
    // them on one path.
    assert_eq!(needed(TORUS, "kind = \"dimension-order\"\nload_balancing = \"valiant\""), 5);
    let five = TORUS.replace("width = 4", "width = 5").replace("height = 3", "height = 5");
    assert_eq!(needed(&five, "kind = \"dimension-order\"\nload_balancing = \"valiant\""), 6);
    let ring = "[topology]\nkind = \"ring\"\nswitches = 5\nhosts_per_switch = 1\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n";
    assert_eq!(needed(ring, ""), 2);
}
