//! Known facts about fabrics under PFC, and the value of the certificates.

use crate::common;

use common::{check, cycle, example, load, run, safe, shown};
use xoff_check::certificate::{Certificate, Entry, Failing, Routes, Under};
use xoff_check::{Verdict, router, verify::verify};
use xoff_plan::Loaded;

const TIGHT: &str =
    "[switch]\nbuffer = \"2MB\"\n[flow_control]\nscheme = \"pfc\"\nxoff = \"20kB\"\nxon = \"10kB\"\n";
const LINK: &str = "link = {rate=\"10Gbps\", delay=\"1us\"}\n";

/// Everybody sends to everybody on a topology.
fn everybody(topology: &str) -> String {
    format!("[topology]\n{topology}\n{LINK}{TIGHT}[[traffic]]\nkind = \"all-to-all\"\nsize = \"10kB\"\n")
}

/// It has a cycle of so many queues, and a generated scenario deadlocks, again and again.
fn deadlocks(loaded: &Loaded, routes: Routes, length: usize) {
    let analysis = check(loaded, routes);
    assert_eq!(cycle(&analysis).len(), length, "{:?}", cycle(&analysis));
    let (_, text) = shown(&analysis).expect("a generated scenario deadlocks");
    // Failures that explicit routes go round anyway are the only thing without effect.
    let warnings: Vec<String> = load(text, &[]).warnings.iter().map(|w| w.key.clone()).collect();
    assert!(warnings.iter().all(|key| key.starts_with("failure")), "{warnings:?}");
}

/// How many failures were examined, of all classes.
fn examined(failures: &xoff_check::FailuresReport) -> usize {
    failures.classes.iter().map(|class| class.examined).sum()
}

#[test]
fn a_fat_tree_is_safe_until_two_links_fail() {
    let none = [("failure", "[]")];
    assert!(safe(&example("fat-tree-failed-links", &none), Routes::Scenario));
    assert!(safe(&example("fat-tree-failed-links", &none), Routes::ALL));
    let failed = example("fat-tree-failed-links", &[]);
    deadlocks(&failed, Routes::Scenario, 8);
    deadlocks(&failed, Routes::ALL, 8);
}

/// Two tiers: two failed links lead packets down and up again, unless routes have no valleys.
#[test]
fn pairs_of_links_and_switches_are_examined() {
    let routes = Routes::All(Failing { links: 2, switches: 1 });
    let of = |routing: &str| {
        let topology = format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 1\n\
             host_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\nfabric_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n[routing]\nkind = \"{routing}\"\n"
        );
        load(&format!("{topology}[[traffic]]\nkind = \"all-to-all\"\nsize = \"10kB\"\n"), &[])
    };
    let (shortest, free) = (of("shortest-path"), of("valley-free"));
    assert!(safe(&shortest, Routes::SINGLE_FAILURES));
    let found = check(&shortest, routes).report.failures.expect("they were asked for");
    // 8 links between switches, 28 pairs of them, 6 switches.
    assert_eq!(
        found.classes.iter().map(|c| (c.examined as u64, c.of)).collect::<Vec<_>>(),
        [(8, 8), (28, 28), (6, 6)]
    );
    assert!(found.is_exhaustive() && !found.cyclic.is_empty());
    assert!(
        found.cyclic.iter().all(|cut| cut.contains(" and ")),
        "one failure closes no cycle: {:?}",
        found.cyclic
    );

    let analysis = check(&free, routes);
    assert!(matches!(analysis.report.verdict, Verdict::Safe { compared: Some(1..) }));
    let text = xoff_check::text::render(&analysis.report);
    let verdict =
        "test cannot deadlock under valley-free routing with up to 2 links or any one switch down: ";
    assert!(text.starts_with(verdict), "{text}");
    let good = analysis.certificate.expect("it is safe");
    verify(&free, &mut router(&free), &good).expect("it holds");
    // It is no certificate for other routes.
    let said = verify(&shortest, &mut router(&shortest), &good).expect_err("packets go down and up");
    assert!(said.starts_with("if the link"), "{said}");
}

#[test]
fn single_failures_of_a_fat_tree_are_examined_one_by_one() {
    // Edge switches with their two uplinks, and aggregation switches with theirs.
    let analysis = check(&example("fat-tree-failed-links", &[("failure", "[]")]), Routes::SINGLE_FAILURES);
    let failures = analysis.report.failures.expect("they were asked for");
    assert_eq!(examined(&failures), 8 * 2 + 8 * 2);
    assert!(failures.changing > 0);
    assert_eq!(failures.cyclic, Vec::<String>::new());
    // With one link down, some second failure closes the cycle of the example.
    let one = example("fat-tree-failed-links", &[("failure", "[{link = \"S0.0-S1.1\", at = \"0us\"}]")]);
    assert!(safe(&one, Routes::ALL));
    let analysis = check(&one, Routes::SINGLE_FAILURES);
    let failures = analysis.report.failures.clone().expect("they were asked for");
    assert!(failures.lasting && !failures.cyclic.is_empty(), "{failures:?}");
    assert_eq!(examined(&failures), 8 * 2 + 8 * 2 - 1);
    assert!(shown(&analysis).is_some());
}

#[test]
fn rings_tori_and_cubes_have_cycles() {
    deadlocks(
        &load(&everybody("kind = \"ring\"\nswitches = 5\nhosts_per_switch = 1"), &[]),
        Routes::Scenario,
        5,
    );
    deadlocks(&load(&everybody("kind = \"ring\"\nswitches = 5\nhosts_per_switch = 1"), &[]), Routes::ALL, 5);
    // A ring of three or four has no two-hop shortest routes around it at each link.
    assert!(safe(&load(&everybody("kind = \"ring\"\nswitches = 3\nhosts_per_switch = 1"), &[]), Routes::ALL));
    let torus = "kind = \"torus-2d\"\nwidth = 4\nheight = 4\nhosts_per_switch = 1";
    deadlocks(&load(&everybody(torus), &[]), Routes::ALL, 4);
    let cube = "kind = \"ndc\"\nn = 2\nk = 1";
    deadlocks(&load(&everybody(cube), &[]), Routes::ALL, 8);
    deadlocks(&example("bcube-deadlock", &[]), Routes::Scenario, 8);
}

/// SONiC's dual-ToR case: packets that come back from standby ToRs close a cycle, and another priority opens it.
#[test]
fn packets_that_go_back_from_a_standby_tor_close_a_cycle() {
    let pfc = example("dual-tor", &[]);
    assert_eq!(cycle(&check(&pfc, Routes::Scenario)).len(), 4);
    let outcome = run(&pfc.plan);
    assert!(outcome.deadlock.is_some() && outcome.flows.iter().all(|f| f.completed.is_none()));
    let tagger = example("dual-tor", &[("flow_control.scheme", "tagger")]);
    assert!(safe(&tagger, Routes::Scenario));
    let outcome = run(&tagger.plan);
    assert!(outcome.deadlock.is_none() && outcome.flows.iter().all(|f| f.completed.is_some()));
}

#[test]
fn clos_and_mesh_are_safe() {
    for topology in [
        "kind = \"fat-tree\"\nk = 4",
        "kind = \"full-mesh\"\nswitches = 4\nhosts_per_switch = 2",
        "kind = \"line\"\nswitches = 4\nhosts_per_switch = 2",
    ] {
        assert!(safe(&load(&everybody(topology), &[]), Routes::Scenario), "{topology}");
        assert!(safe(&load(&everybody(topology), &[]), Routes::ALL), "{topology}");
    }
}

#[test]
fn one_switch_is_safe() {
    // Its hosts are one place: each sends to the others of its own.
    let incast = format!(
        "[topology]\nkind = \"custom\"\nhosts = [\"a\", \"b\", \"c\"]\nswitches = [\"s\"]\nlinks = [{}]\n{TIGHT}\
         [[traffic]]\nkind = \"flow\"\nsrc = \"a\"\ndst = \"c\"\nsize = \"1MB\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"b\"\ndst = \"c\"\nsize = \"1MB\"\n",
        ["a", "b", "c"]
            .map(|h| format!("{{a = \"{h}\", b = \"s\", rate = \"10Gbps\", delay = \"1us\"}}"))
            .join(", ")
    );
    for loaded in [example("hello", &[]), load(&incast, &[])] {
        for routes in [Routes::Scenario, Routes::ALL, Routes::SINGLE_FAILURES] {
            assert!(safe(&loaded, routes), "{routes:?}");
        }
    }
    // Each of three hosts sends to two others: three waits on the path in, six dependencies.
    let report = check(&load(&incast, &[]), Routes::ALL).report;
    assert_eq!((report.waits, report.dependencies), (6, 6));
}

#[test]
fn other_flow_controls_wait_otherwise() {
    let bcube = |scheme| example("bcube-deadlock", &[("flow_control.scheme", scheme)]);
    assert!(safe(&bcube("none"), Routes::Scenario));
    assert!(safe(&bcube("per-flow-queue"), Routes::Scenario));
    // Any two flows may share a queue.
    assert_eq!(cycle(&check(&bcube("bfc"), Routes::Scenario)).len(), 8);
    let refused = xoff_check::check(&bcube("per-flow-queue"), "test", Routes::ALL, &mut |_| true);
    assert!(refused.unwrap_err().contains("--failures does not apply"));
}

#[test]
fn tags_break_the_cycles() {
    for (name, rule) in
        [("fat-tree-failed-links", "bounce"), ("bcube-deadlock", "bounce"), ("bcube-deadlock", "hop")]
    {
        let tagger = [("flow_control.scheme", "tagger"), ("flow_control.rule", rule)];
        let loaded = example(name, &tagger);
        assert!(safe(&loaded, Routes::Scenario), "{name} {rule}");
        assert!(loaded.plan.lanes.iter().filter(|l| l.lossless).count() >= 2, "{name} {rule}");
    }
    // With too few tags packets go on in a lossy priority, and wait for nothing there.
    let one =
        [("flow_control.scheme", "tagger"), ("flow_control.rule", "bounce"), ("flow_control.lossless", "1")];
    assert!(safe(&example("fat-tree-failed-links", &one), Routes::Scenario));
}

/// Kim et al., §4: two channels make minimal routes of a dragonfly free of deadlocks, three make all routes so. The
/// same for the datelines of a torus or ring (Dally and Seitz).
#[test]
fn virtual_channels_break_the_cycles() {
    let dragonfly = "kind = \"dragonfly\"\nswitches_per_group = 3\nhosts_per_switch = 1\nglobal_links = 1";
    let torus = "kind = \"torus-2d\"\nwidth = 5\nheight = 5\nhosts_per_switch = 1";
    let ring = "kind = \"ring\"\nswitches = 5\nhosts_per_switch = 1";
    let ordered = ("routing.kind", "dimension-order");
    for (topology, routing, channels) in [
        (dragonfly, &[("routing.load_balancing", "valiant")][..], "3"),
        (dragonfly, &[("routing.load_balancing", "ugal")], "3"),
        (torus, &[ordered], "3"),
        (torus, &[ordered, ("routing.load_balancing", "valiant")], "6"),
        (ring, &[], "2"),
    ] {
        let sets = |channels| {
            let fixed = [
                ("transport.kind", "irn"),
                ("transport.ack_priority", "7"),
                ("flow_control.priorities", "[1]"),
                ("traffic.0.priority", "1"),
                ("routing.virtual_channels", channels),
            ];
            [&fixed[..], routing].concat()
        };
        let one = load(&everybody(topology), &sets("1"));
        for routes in [Routes::Scenario, Routes::ALL] {
            assert!(!safe(&one, routes), "{topology} {routing:?} {routes:?}");
            assert!(
                safe(&load(&everybody(topology), &sets(channels)), routes),
                "{topology} {routing:?} {routes:?}"
            );
        }
    }
    // Minimal routes of a dragonfly: local, global and local links may wait in a circle of groups.
    let minimal = |channels| {
        let sets = [
            ("transport.ack_priority", "7"),
            ("flow_control.priorities", "[3]"),
            ("routing.virtual_channels", channels),
        ];
        load(&everybody(dragonfly), &sets)
    };
    assert!(!safe(&minimal("1"), Routes::ALL));
    assert!(safe(&minimal("2"), Routes::ALL));
}

#[test]
fn hosts_that_pass_pauses_on_wait_on_all_routes() {
    // H1 sends in one direction, and receives from the other: no route leads through any host.
    let text = |relay: &str| {
        let mut text =
            format!("[topology]\nkind = \"ndc\"\nn = 2\nk = 1\n{LINK}{TIGHT}relay = \"{relay}\"\n");
        for (src, dst) in [(0, 1), (1, 3), (3, 2), (2, 0)] {
            text += &format!(
                "[[traffic]]\nkind = \"flow\"\nsrc = \"H{src}\"\ndst = \"H{dst}\"\nsize = \"1MB\"\n"
            );
        }
        load(&text, &[])
    };
    assert!(safe(&text("accounts"), Routes::Scenario));
    let blind = check(&text("blind"), Routes::Scenario);
    assert_eq!(cycle(&blind).len(), 8);
    let Verdict::CycleWithoutWitness { cycle, .. } = &blind.report.verdict else { panic!("it has a cycle") };
    assert_eq!(cycle.edges.iter().filter(|e| e.passed_on).count(), 4);
    assert!(xoff_check::text::render(&blind.report).contains("passes pauses on"));
}

/// Relays in long links wait like switches: a ring of sites has a cycle, which leads through them, and two
/// sites have none.
#[test]
fn relays_in_long_links_are_links_of_the_chain() {
    let sites = |links: &[(&str, &str)], flows: &[&str]| {
        let mut text = String::from(
            "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"B\", \"C\"]\nswitches = [\"X\", \"Y\", \"Z\"]\nlinks = [\n",
        );
        for (a, b) in [("A", "X"), ("B", "Y"), ("C", "Z")] {
            text += &format!("{{a=\"{a}\", b=\"{b}\", rate=\"10Gbps\", delay=\"1us\"}},\n");
        }
        for (a, b) in links {
            text += &format!("{{a=\"{a}\", b=\"{b}\", rate=\"10Gbps\", delay=\"10us\", long=true}},\n");
        }
        text += "]\n[flow_control]\nscheme = \"swing\"\nxoff = \"20kB\"\nxon = \"10kB\"\n";
        for path in flows {
            let nodes: Vec<String> = path.chars().map(|c| format!("\"{c}\"")).collect();
            text += &format!(
                "[[traffic]]\nkind = \"flow\"\nsrc = {}\ndst = {}\nsize = \"1MB\"\npath = [{}]\n",
                nodes[0],
                nodes[nodes.len() - 1],
                nodes.join(", ")
            );
        }
        load(&text, &[])
    };
    let line = sites(&[("X", "Y"), ("Y", "Z")], &["AXYZC", "CZYXA", "BYXA"]);
    assert!(safe(&line, Routes::Scenario));
    let ring = sites(&[("X", "Y"), ("Y", "Z"), ("Z", "X")], &["AXYZC", "BYZXA", "CZXYB"]);
    assert_eq!(cycle(&check(&ring, Routes::Scenario)).len(), 9);
}

#[test]
fn a_flow_that_loops_waits_for_itself() {
    let text = format!(
        "[topology]\nkind = \"ring\"\nswitches = 3\nhosts_per_switch = 1\n{LINK}\
         [flow_control]\nscheme = \"per-flow-queue\"\n[run]\nduration = \"1ms\"\n\
         [routing]\noverrides = [{{at = \"S0.0\", to = \"H2\", via = \"S0.1\"}}, {{at = \"S0.1\", to = \"H2\", via = \"S0.0\"}}]\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H2\"\nsize = \"1MB\"\n"
    );
    assert_eq!(cycle(&check(&load(&text, &[]), Routes::Scenario)).len(), 2);
}

#[test]
fn priorities_wait_each_for_itself() {
    // Two flows each on two priorities close no ring of three, three on one do.
    let ring = |priorities: [u8; 3]| {
        let mut text =
            format!("[topology]\nkind = \"ring\"\nswitches = 3\nhosts_per_switch = 1\n{LINK}{TIGHT}");
        for (i, priority) in priorities.into_iter().enumerate() {
            let [a, b, c] = [i, (i + 1) % 3, (i + 2) % 3];
            text += &format!(
                "[[traffic]]\nkind = \"flow\"\nsrc = \"H{a}\"\ndst = \"H{c}\"\nsize = \"1MB\"\npriority = {priority}\n\
                 path = [\"H{a}\", \"S0.{a}\", \"S0.{b}\", \"S0.{c}\", \"H{c}\"]\n"
            );
        }
        load(&text, &[])
    };
    assert!(safe(&ring([3, 3, 4]), Routes::Scenario));
    deadlocks(&ring([4, 4, 4]), Routes::Scenario, 3);
    // Shortest routes close no ring of three, but these flows are there as well.
    deadlocks(&ring([4, 4, 4]), Routes::ALL, 3);
    assert!(safe(&ring([3, 3, 4]), Routes::ALL));
    let lossy = [("flow_control.priorities", "[3]")];
    let mixed = ring([3, 3, 3]);
    assert!(!safe(&mixed, Routes::Scenario));
    let text = "[topology]\nkind = \"ring\"\nswitches = 5\nhosts_per_switch = 1\n".to_string()
        + LINK
        + TIGHT
        + "[[traffic]]\nkind = \"all-to-all\"\nsize = \"10kB\"\npriority = 2\n\
           [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"1kB\"\n";
    assert!(safe(&load(&text, &lossy), Routes::Scenario), "a lossy priority is never paused");
    assert!(!safe(&load(&text, &[]), Routes::Scenario));
}

#[test]
fn routes_that_change_are_taken_together() {
    // Intact, the fat-tree is safe; the two links fail while it runs.
    let later = "[{link = \"S0.0-S1.1\", at = \"500us\"}, {link = \"S0.2-S1.2\", at = \"600us\"}]";
    let loaded = example("fat-tree-failed-links", &[("failure", later)]);
    let analysis = check(&loaded, Routes::Scenario);
    assert!(!cycle(&analysis).is_empty());
    assert!(
        analysis.report.notes.iter().any(|n| n.contains("change 2 times")),
        "{:?}",
        analysis.report.notes
    );
}

#[test]
fn a_certificate_with_any_error_is_refused() {
    let loaded = example("fat-tree-failed-links", &[("failure", "[]")]);
    for routes in [Routes::Scenario, Routes::ALL, Routes::SINGLE_FAILURES] {
        let analysis = check(&loaded, routes);
        let Verdict::Safe { compared: Some(compared) } = analysis.report.verdict else {
            panic!("it is safe")
        };
        assert!(compared > 10);
        let good = analysis.certificate.expect("it is safe");
        let text = serde_json::to_vec(&good).unwrap();
        assert_eq!(Certificate::parse(&text).as_ref(), Ok(&good));
        let holds = |c: &Certificate| verify(&loaded, &mut router(&loaded), c);
        assert_eq!(holds(&good), Ok(compared));
        let spoil = |change: &dyn Fn(&mut Certificate)| {
            let mut bad = good.clone();
            change(&mut bad);
            holds(&bad).expect_err("it is refused")
        };
        assert!(spoil(&|c| c.order.reverse()).contains("is listed before it"));
        assert!(spoil(&|c| c.order.truncate(c.order.len() / 2)).contains("not listed"));
        assert!(spoil(&|c| c.order.push(c.order[0].clone())).contains("twice"));
        assert!(spoil(&|c| c.order[0].port = "S9.9:0".into()).contains("unknown port S9.9:0"));
        assert!(spoil(&|c| c.order[0].priority = 1).contains("priority 1"));
        // Every wait is needed.
        for i in 0..good.order.len() {
            spoil(&|c| drop(c.order.remove(i)));
        }
    }
    assert!(Certificate::parse(b"{}").is_err());
    // It is worth nothing for another scenario.
    let good = check(&loaded, Routes::Scenario).certificate.expect("it is safe");
    let failed = example("fat-tree-failed-links", &[]);
    assert!(verify(&failed, &mut router(&failed), &good).is_err());
}

#[test]
fn an_order_for_a_failure_holds_for_earlier_waits() {
    let loaded = example("fat-tree-failed-links", &[("failure", "[]")]);
    let good = check(&loaded, Routes::SINGLE_FAILURES).certificate.expect("it is safe");
    let topology = &loaded.plan.topology;
    let [edge, above] = ["S0.0", "S1.0"].map(|name| topology.find(name).expect("it is there"));
    let up = topology.nodes[edge as usize].ports.iter().find(|&&p| topology.neighbour(p) == above);
    let link = topology.port_name(*up.expect("they are neighbours"));
    let peer = topology.port_name(topology.ports[*up.expect("they are neighbours") as usize].peer);
    let at = good.under.iter().position(|u| u.down == [link.clone()] || u.down == [peer.clone()]);
    let holds = |order: Vec<Entry>| {
        let mut changed = good.clone();
        match at {
            Some(at) => changed.under[at].order = order,
            None => changed.under.push(Under { down: vec![link.clone()], order }),
        }
        verify(&loaded, &mut router(&loaded), &changed)
    };
    let order = at.map_or(&good.order, |at| &good.under[at].order);
    assert!(holds(order.clone()).is_ok());
    // No packet leaves by the link after it has failed, but earlier waits for it may remain.
    let (front, rest): (Vec<Entry>, Vec<Entry>) = order.iter().cloned().partition(|e| e.port == link);
    assert!(!front.is_empty());
    let refused = holds(front.into_iter().chain(rest).collect()).expect_err("it is refused");
    assert!(refused.contains(&format!("may wait for {link}, which is listed before it")), "{refused}");
}

#[test]
fn notifications_wait_in_their_own_priority() {
    let loaded = load(
        &everybody("kind = \"line\"\nswitches = 3\nhosts_per_switch = 2"),
        &[
            ("transport.congestion_control", "dcqcn"),
            ("dcqcn.cnp_interval", "50us"),
            ("dcqcn.cnp_priority", "5"),
        ],
    );
    let good = check(&loaded, Routes::ALL).certificate.expect("it is safe");
    assert!(good.order.iter().any(|e| e.priority == 5));
    let mut bad = good;
    bad.order.retain(|e| e.priority != 5);
    assert!(verify(&loaded, &mut router(&loaded), &bad).is_err());
}

#[test]
fn static_routes_hide_changes_by_a_failure() {
    // Packets from D to d go over A, whose static route leads over B. Without A-T, which
    // they do not use, A is farther from T than before, and E becomes as good as A.
    // Packets from T to x go over F and E.
    let links = ["x D", "d T", "A T", "A B", "B T", "D A", "D E", "E F", "F T"].map(|l| {
        let (a, b) = l.split_once(' ').expect("two names");
        format!("{{a = \"{a}\", b = \"{b}\", rate = \"10Gbps\", delay = \"1us\"}}")
    });
    let text = format!(
        "[topology]\nkind = \"custom\"\nhosts = [\"x\", \"d\"]\nswitches = [\"A\", \"B\", \"D\", \"E\", \"F\", \"T\"]\n\
         links = [{}]\n{TIGHT}[routing]\noverrides = [{{at = \"A\", to = \"d\", via = \"B\"}}, \
         {{at = \"T\", to = \"x\", via = \"F\"}}]\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"x\"\ndst = \"d\"\nsize = \"1MB\"\n",
        links.join(", ")
    );
    let failures = check(&load(&text, &[]), Routes::SINGLE_FAILURES).report.failures;
    // All but the links of the two hosts, and A-T among them.
    assert_eq!(failures.map(|f| (examined(&f), f.changing)), Some((7, 7)));
}

#[test]
fn the_first_sentence_is_the_verdict_and_the_cycle_names_its_flows() {
    let safe = check(&example("leaf-spine", &[]), Routes::Scenario).report;
    assert!(xoff_check::text::render(&safe).starts_with("test cannot deadlock"));
    let none = check(&example("leaf-spine", &[("flow_control.scheme", "none")]), Routes::Scenario).report;
    assert!(
        xoff_check::text::render(&none).starts_with("test cannot deadlock: its flow control never pauses")
    );
    for routes in [Routes::Scenario, Routes::ALL, Routes::SINGLE_FAILURES] {
        let pods = check(&example("zeropod", &[]), routes).report;
        let text = xoff_check::text::render(&pods);
        assert!(text.starts_with("test cannot deadlock: pods have no buffers"), "{text}");
    }
    let cyclic = check(&example("bcube-deadlock", &[]), Routes::Scenario).report;
    let text = xoff_check::text::render(&cyclic);
    assert!(text.starts_with("test may deadlock: 8 queues"), "{text}");
    let Verdict::CycleWithoutWitness { cycle, .. } = &cyclic.verdict else { panic!("{text}") };
    for (edge, next) in cycle.edges.iter().zip(cycle.edges.iter().cycle().skip(1)) {
        assert_eq!(edge.to, next.from);
        assert!(edge.flows > 0 && !edge.closed_by.is_empty());
        for route in &edge.closed_by {
            // The nodes of both ports follow each other on its path.
            let nodes = [&edge.from, &edge.to].map(|e| e.port.split(':').next().unwrap().to_string());
            assert!(route.path.windows(2).any(|w| w == nodes), "{route:?} {edge:?}");
            assert!(text.contains(&edge.from.port));
        }
    }
}

/// A host that passes pauses on stops queues from which no flow goes on to the
/// congested port: there, too, some flow is to blame for each victim.
#[test]
fn blind_relays_blame_all_flows_that_fill_the_port() {
    let loaded = load(
        "[topology]\nkind = \"ndc\"\nn = 2\nk = 1\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n\
         [flow_control]\nscheme = \"pfc\"\nrelay = \"blind\"\n[[traffic]]\nkind = \"all-to-all\"\nsize = \"1MB\"\n",
        &[],
    );
    let analysis = check(&loaded, Routes::Scenario);
    assert!(analysis.report.blocking.victim_flows > 0);
}

/// Hosts that are cut off, links that are down, and a slow host, whose inner ports
/// no router knows.
#[test]
fn links_down_from_the_start_do_not_matter() {
    let down = |link: &str| format!("[{{link = \"{link}\", at = \"0us\"}}]");
    let (host, fabric) = (down("H0-S0.0"), down("S0.0-S1.0"));
    for failure in [&host, &fabric] {
        for slow in ["[]", "[{host = \"H3\", rate = \"10Gbps\"}]"] {
            let loaded = example("leaf-spine", &[("failure", failure), ("slow_receiver", slow)]);
            assert!(safe(&loaded, Routes::ALL) && safe(&loaded, Routes::SINGLE_FAILURES), "{failure} {slow}");
        }
    }
}
