//! Pyrrha: the possible waits of ports, root by root; and the results of runs.

use crate::common;

use common::{check, cycle, example, load, run, safe, shown};
use std::collections::BTreeSet;
use std::fmt::Write;
use xoff_check::certificate::{Certificate, Routes};
use xoff_check::text::render;
use xoff_check::verify::verify;
use xoff_check::{Analysis, Verdict, router};
use xoff_kernel::random::Stream;
use xoff_plan::Loaded;
use xoff_schemes::flow_control::pyrrha::Tally;

const FABRICS: u64 = 300;

/// The scenario of an experiment on Pyrrha's paper, with the choices where the paper leaves points open,
/// under its run `name`.
fn experiment(id: &str, name: &str, more: &[(&str, &str)]) -> Loaded {
    let path = format!("{}/../../experiments/pyrrha/{id}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the experiment exists");
    let table: toml::Table = text.parse().expect("it is TOML");
    let value = |v: &toml::Value| v.as_str().map_or_else(|| v.to_string(), str::to_string);
    let mut set: Vec<(String, String)> = Vec::new();
    for chosen in table["chosen"].as_array().expect("a list") {
        let runs = chosen.get("runs").and_then(toml::Value::as_array);
        if runs.is_some_and(|runs| !runs.iter().any(|run| run.as_str() == Some(name))) {
            continue;
        }
        if let (Some(key), Some(v)) = (chosen.get("key"), chosen.get("value")) {
            set.push((value(key), value(v)));
        }
    }
    let runs = table["run"].as_array().expect("a list");
    let run = runs.iter().find(|r| r["name"].as_str() == Some(name)).expect("the run exists");
    let own = run.get("set").and_then(toml::Value::as_table).into_iter().flatten();
    set.extend(own.map(|(k, v)| (k.clone(), value(v))));
    set.extend(more.iter().map(|(k, v)| (k.to_string(), v.to_string())));
    let set: Vec<(&str, &str)> = set.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    load(&toml::to_string(&table["scenario"]).expect("it was TOML"), &set)
}

/// Whether a check proves it safe, and whether a run of 8 ms deadlocks.
fn proved_and_deadlocks(loaded: &Loaded) -> (bool, bool) {
    (safe(loaded, Routes::Scenario), run(&loaded.plan).deadlock.is_some())
}

#[test]
fn the_checks_of_the_figures_agree_with_runs() {
    let short = ("run.duration", "8ms");
    for id in ["fig12", "fig13"] {
        assert_eq!(proved_and_deadlocks(&experiment(id, "pfc", &[short])), (false, true), "{id}");
        for organisation in ["hiq", "single-tier"] {
            let more = [short, ("flow_control.organisation", organisation)];
            let loaded = experiment(id, "pyrrha", &more);
            // In the loop each port has both others ahead, and queues are for sets of roots:
            // they might wait for each other, and do not.
            let proved = (id, organisation) != ("fig12", "single-tier");
            assert_eq!(proved_and_deadlocks(&loaded), (proved, false), "{id} {organisation}");
            let checked = matches!(
                check(&loaded, Routes::Scenario).report.verdict,
                Verdict::Safe { compared: Some(1..) }
            );
            assert_eq!(checked, proved, "{id} {organisation}");
        }
    }
    assert_eq!(proved_and_deadlocks(&experiment("fig12", "bfc", &[short])), (false, true));
    assert_eq!(proved_and_deadlocks(&experiment("fig13", "bfc-one-queue", &[short])), (false, true));
    // Any two flows might share a queue; these do not.
    assert_eq!(proved_and_deadlocks(&experiment("fig13", "bfc-distinct-queues", &[short])), (false, false));
}

#[test]
fn waits_of_the_three_flows() {
    let analysis = check(&experiment("fig13", "pyrrha", &[]), Routes::Scenario);
    let certificate = analysis.certificate.expect("it is safe");
    let of = |port: &str| -> Vec<String> {
        let entries = certificate.order.iter().filter(|e| e.port == port);
        let mut roots: Vec<String> = entries.filter_map(|e| e.root.clone()).collect();
        roots.sort();
        roots
    };
    // F1 goes a, A to B, B to C, C to c; ACKs of F2 go a, A to C, C to B, B to b. The next port has a
    // wait only if others wait for it.
    assert_eq!(of("a:0"), ["B:1", "B:2", "C:0", "C:2"]);
    assert_eq!(of("A:0"), ["B:1", "B:2", "C:2"]);
    let report = &analysis.report.blocking;
    assert_eq!((report.victim_flows, report.blocking_ports), (0, 0));
    let c1 = report.worst.iter().find(|p| p.port == "C:1").expect("it is offered 200 Gbit/s");
    // F2 comes by b and B to C, F3 from c.
    assert_eq!((c1.culprits, c1.queues, c1.levels, c1.victims), (2, 3, 2, 0));
    // Under PFC the same flows are victims.
    let pfc = check(&experiment("fig13", "pfc", &[]), Routes::Scenario).report.blocking;
    assert!(pfc.victim_flows > 0, "{pfc:?}");
}

/// Three switches in a ring, and a fourth that all are linked to: three flows to its
/// host, each two links around the ring first.
fn one_root() -> String {
    let link = |(a, b): (&str, &str)| format!("{{a=\"{a}\", b=\"{b}\", rate=\"100Gbps\", delay=\"600ns\"}}");
    let links = [("A", "B"), ("B", "C"), ("C", "A"), ("A", "R"), ("B", "R"), ("C", "R")];
    let hosts = [("a", "A"), ("b", "B"), ("c", "C"), ("r", "R")];
    let links: Vec<String> = links.into_iter().chain(hosts).map(link).collect();
    let mut text = format!(
        "[topology]\nkind = \"custom\"\nswitches = [\"A\", \"B\", \"C\", \"R\"]\nhosts = [\"a\", \"b\", \"c\", \"r\"]\n\
         links = [{}]\n[switch]\nbuffer = \"20MB\"\n[flow_control]\nscheme = \"pyrrha\"\n[transport]\nrto = \"1s\"\n[run]\nduration = \"2ms\"\n",
        links.join(", ")
    );
    for path in ["a A B C R r", "b B C A R r", "c C A B R r"] {
        let nodes: Vec<String> = path.split(' ').map(|n| format!("\"{n}\"")).collect();
        let _ = writeln!(
            text,
            "[[traffic]]\nkind = \"flow\"\nsrc = {}\ndst = \"r\"\nsize = \"100MB\"\npath = [{}]",
            nodes[0],
            nodes.join(", ")
        );
    }
    text
}

/// Routes to one root on different paths: Pyrrha deadlocks with any organisation and any number of queues.
#[test]
fn routes_to_one_root_that_lead_round_a_ring_deadlock() {
    for organisation in ["hiq", "single-tier"] {
        let loaded = load(&one_root(), &[("flow_control.organisation", organisation)]);
        let analysis = check(&loaded, Routes::Scenario);
        assert_eq!(cycle(&analysis).len(), 3, "{organisation}");
        if organisation == "hiq" {
            let Verdict::CycleWithoutWitness { cycle, .. } = &analysis.report.verdict else { panic!() };
            let roots: BTreeSet<_> = cycle.edges.iter().map(|e| e.from.root.clone()).collect();
            assert_eq!(roots.len(), 1, "{roots:?}");
            assert!(cycle.edges.iter().all(|e| e.flows == 1 && e.closed_by.len() == 1), "{cycle:?}");
        }
        let deadlock = run(&loaded.plan).deadlock.expect("it does");
        let ports: BTreeSet<String> =
            deadlock.cycle.iter().map(|h| loaded.plan.topology.port_name(h.port)).collect();
        assert_eq!(ports, ["A:0", "B:1", "C:1"].map(String::from).into());
        assert!(shown(&analysis).is_some(), "{organisation}");
    }
}

#[test]
fn all_shortest_routes_are_safe_while_queues_suffice() {
    let link = "link = {rate=\"10Gbps\", delay=\"1us\"}\n";
    for topology in [
        "kind = \"ring\"\nswitches = 5\nhosts_per_switch = 1",
        "kind = \"torus-2d\"\nwidth = 4\nheight = 3\nhosts_per_switch = 1",
        "kind = \"ndc\"\nn = 2\nk = 1",
        "kind = \"fat-tree\"\nk = 4",
    ] {
        let text = format!(
            "[topology]\n{topology}\n{link}[switch]\nbuffer = \"2MB\"\n[flow_control]\nscheme = \"pyrrha\"\n\
             [[traffic]]\nkind = \"all-to-all\"\nsize = \"10kB\"\n"
        );
        let loaded = load(&text, &[]);
        for routes in [Routes::Scenario, Routes::ALL] {
            let verdict = check(&loaded, routes).report.verdict;
            assert!(matches!(verdict, Verdict::Safe { compared: Some(1..) }), "{topology} {routes:?}");
        }
        // With one queue it is a port that waits, as under PFC.
        let one = load(&text, &[("flow_control.queues", "1")]);
        let pfc = load(&text, &[("flow_control.scheme", "pfc")]);
        for routes in [Routes::Scenario, Routes::ALL] {
            assert_eq!(safe(&one, routes), safe(&pfc, routes), "{topology} {routes:?}");
        }
        // Along all routes sets are not counted.
        let single = load(&text, &[("flow_control.organisation", "single-tier")]);
        assert_eq!(safe(&single, Routes::ALL), safe(&pfc, Routes::ALL), "{topology}");
        let report = check(&loaded, Routes::SINGLE_FAILURES).report;
        assert!(matches!(report.verdict, Verdict::Safe { compared: Some(1..) }), "{topology}");
        let failures = report.failures.expect("they were asked for");
        assert!(failures.changing > 0 && failures.cyclic.is_empty(), "{topology}: {failures:?}");
    }
    let bcube = example("bcube-deadlock", &[("flow_control.scheme", "pyrrha")]);
    assert_eq!(proved_and_deadlocks(&bcube), (true, false));
}

/// Single failures of a fat-tree that has lost a link already: some close a cycle if one queue serves all
/// roots, the same as under PFC, and none with a queue for each.
#[test]
fn single_failures_are_examined_root_by_root() {
    let down = ("failure", "[{link = \"S0.0-S1.1\", at = \"0us\"}]");
    let of = |more: &[(&str, &str)]| {
        let loaded = example("fat-tree-failed-links", &[&[down], more].concat());
        let analysis = check(&loaded, Routes::SINGLE_FAILURES);
        (loaded, analysis)
    };
    let (_, pfc) = of(&[]);
    let scheme = ("flow_control.scheme", "pyrrha");
    let (_, one) = of(&[scheme, ("flow_control.queues", "1")]);
    let cyclic = |analysis: &Analysis| analysis.report.failures.clone().expect("they were asked for");
    assert_eq!((cyclic(&one).cyclic, cyclic(&one).lasting), (cyclic(&pfc).cyclic, true));
    assert_eq!(cyclic(&one).cyclic.len(), 7);
    let (loaded, analysis) = of(&[scheme]);
    assert!(matches!(analysis.report.verdict, Verdict::Safe { compared: Some(1..) }));
    assert_eq!(cyclic(&analysis).cyclic, Vec::<String>::new());
    // Each failure has waits that the intact network has not. Without their order it
    // proves nothing, nor with that of another failure.
    let good = analysis.certificate.expect("it is safe");
    assert!(good.under.len() > 10 && good.under.iter().any(|u| u.order.len() > good.order.len()));
    let refused = |change: &dyn Fn(&mut Certificate)| {
        let mut bad = good.clone();
        change(&mut bad);
        verify(&loaded, &mut router(&loaded), &bad).expect_err("it does not hold")
    };
    verify(&loaded, &mut router(&loaded), &good).expect("it holds");
    let said = refused(&|c| c.under.clear());
    assert!(said.starts_with("if the link of ") && said.contains("not listed"), "{said}");
    assert!(refused(&|c| c.under[3].order.reverse()).contains("is listed before it"));
    assert!(refused(&|c| c.under[0].order.truncate(900)).contains("not listed"));
    let other = good.under[1].order.clone();
    assert!(refused(&|c| c.under[0].order.clone_from(&other)).contains("not listed"));
}

/// The messages where nothing is proved, where false roots persist, and where there may be too few queues.
#[test]
fn missing_proofs_are_noted() {
    let single = [("flow_control.organisation", "single-tier")];
    let analysis = check(&experiment("fig12", "pyrrha", &single), Routes::Scenario);
    let text = render(&analysis.report);
    assert!(text.starts_with("test is not proved deadlock-free: 3 queues might block"), "{text}");
    assert!(text.contains("Neither proved nor refuted"), "{text}");
    // The other organisation is proved, on the same routes, as is said.
    assert!(text.contains("the same routes are proved deadlock-free"), "{text}");
    assert!(safe(&experiment("fig12", "pyrrha", &[]), Routes::Scenario));
    // Not of routes on which it is not.
    let ring = load(&one_root(), &single);
    let text = render(&check(&ring, Routes::Scenario).report);
    assert!(text.contains("a cycle remains") && !text.contains("are proved deadlock-free"), "{text}");

    let victims = |key: &str, value: &str| {
        let keys = [("flow_control.scheme", "pyrrha"), (key, value)];
        let report = check(&example("incast-victims", &keys), Routes::Scenario).report;
        (render(&report), report)
    };
    let (text, soft) = victims("flow_control.merging", "soft");
    assert!(text.contains("Blocking: none (by the roots that frames name)."), "{text}");
    assert!(text.contains("A run also counts them by the root that survives a MERGE"), "{text}");
    assert_eq!((soft.blocking.by_named_root, soft.blocking.victim_flows), (Some(true), 0));
    let (text, off) = victims("flow_control.merging", "off");
    assert!(text.contains("Blocking (worst case): "), "{text}");
    assert!(text.contains("a false root is never merged"), "{text}");
    assert_eq!(off.blocking.by_named_root, Some(false));
    assert!(off.blocking.victim_flows > 0 && off.verdict == soft.verdict);
    let (text, few) = victims("flow_control.organisation", "single-tier");
    assert!(text.contains("sets of roots may be on the paths ahead of a port, and queues = "), "{text}");
    assert!(few.blocking.victim_flows > 0);
    // With the recommended number there are no victims.
    let enough = text.split("queues = ").nth(1).and_then(|t| t.split(' ').next()).expect("a number");
    let keys = [
        ("flow_control.scheme", "pyrrha"),
        ("flow_control.organisation", "single-tier"),
        ("flow_control.queues", enough),
    ];
    let many = check(&example("incast-victims", &keys), Routes::Scenario).report.blocking;
    assert_eq!((many.by_named_root, many.victim_flows), (Some(true), 0), "{enough}");
}

#[test]
fn a_certificate_that_was_tampered_with_is_refused() {
    let loaded = experiment("fig13", "pyrrha", &[]);
    let good = check(&loaded, Routes::Scenario).certificate.expect("it is safe");
    let refused = |change: &dyn Fn(&mut Certificate)| {
        let mut bad = good.clone();
        change(&mut bad);
        verify(&loaded, &mut router(&loaded), &bad).expect_err("it does not hold")
    };
    verify(&loaded, &mut router(&loaded), &good).expect("it holds");
    assert!(refused(&|c| c.order.reverse()).contains("which is listed before it"));
    assert!(refused(&|c| c.order.clear()).contains("is not listed"));
    assert!(refused(&|c| c.order[0].root = None).contains("listed"));
    assert!(refused(&|c| c.order[0].root = Some("X:9".into())).contains("unknown port X:9"));
    assert!(refused(&|c| c.order.push(c.order[0].clone())).contains("listed twice"));
    // Under another flow control no wait is by root.
    let pfc = load(&one_root(), &[("flow_control.scheme", "pfc")]);
    let refused = verify(&pfc, &mut router(&pfc), &good).expect_err("it is not PFC's");
    assert!(refused.contains("does not wait for a root"), "{refused}");
}

/// A random fabric of three to six switches with a host each: mostly a ring, with some links more; or a ring,
/// torus or BCube whose hosts all send to all. Flows along random paths, so routes close cycles; a stall now
/// and then.
fn scenario(seed: u64) -> String {
    let mut random = Stream::new(seed, "fabric", 0);
    let mut below = |n: usize| random.below(n as u64) as usize;
    let end = format!(
        "[switch]\nbuffer = \"20MB\"\n[flow_control]\nscheme = \"pyrrha\"\n[run]\nduration = \"1ms\"\nseed = {seed}\n"
    );
    if seed.is_multiple_of(5) {
        let topology = match below(3) {
            0 => format!("kind = \"ring\"\nswitches = {}\nhosts_per_switch = {}", 4 + below(4), 1 + below(2)),
            1 => format!("kind = \"torus-2d\"\nwidth = {}\nheight = 3\nhosts_per_switch = 1", 3 + below(3)),
            _ => format!("kind = \"ndc\"\nn = {}\nk = 1", 2 + below(2)),
        };
        return format!(
            "[topology]\n{topology}\nlink = {{rate=\"10Gbps\", delay=\"500ns\"}}\n{end}\
             [[traffic]]\nkind = \"all-to-all\"\nsize = \"{}kB\"\n",
            20 + below(100)
        );
    }
    let n = 3 + below(4);
    let mut links: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut join = |a: usize, b: usize| {
        if a != b {
            links.insert((a.min(b), a.max(b)));
        }
    };
    if below(3) > 0 {
        (0..n).for_each(|i| join(i, (i + 1) % n));
    } else {
        (1..n).for_each(|i| join(i, below(i)));
    }
    for _ in 0..below(4) {
        join(below(n), below(n));
    }
    let names = |letter: char| (0..n).map(|i| format!("\"{letter}{i}\"")).collect::<Vec<_>>().join(", ");
    let mut text = format!(
        "[topology]\nkind = \"custom\"\nhosts = [{}]\nswitches = [{}]\nlinks = [\n",
        names('h'),
        names('s')
    );
    let pairs = (0..n).map(|i| (format!("h{i}"), format!("s{i}")));
    for (a, b) in pairs.chain(links.iter().map(|(a, b)| (format!("s{a}"), format!("s{b}")))) {
        let _ = writeln!(text, "{{a = \"{a}\", b = \"{b}\", rate = \"10Gbps\", delay = \"500ns\"}},");
    }
    text += &format!("]\n{end}");
    if below(3) == 0 {
        let _ = writeln!(
            text,
            "[[slow_receiver]]\nhost = \"h{}\"\nstall_from = \"50us\"\nstall_until = \"{}us\"",
            below(n),
            200 + below(400)
        );
    }
    for _ in 0..4 + below(8) {
        // A random walk that visits no switch twice.
        let mut path = vec![below(n)];
        for _ in 0..1 + below(n - 1) {
            let at = path[path.len() - 1];
            let next: Vec<usize> = links
                .iter()
                .flat_map(|&(a, b)| [(a, b), (b, a)])
                .filter(|&(a, b)| a == at && !path.contains(&b))
                .map(|(_, b)| b)
                .collect();
            if next.is_empty() {
                break;
            }
            path.push(next[below(next.len())]);
        }
        let (src, dst) = (path[0], path[path.len() - 1]);
        if src == dst {
            continue;
        }
        let nodes: Vec<String> = path.iter().map(|s| format!("\"s{s}\"")).collect();
        let _ = writeln!(
            text,
            "[[traffic]]\nkind = \"flow\"\nsrc = \"h{src}\"\ndst = \"h{dst}\"\nsize = \"{}kB\"\nstart = \"{}us\"\n\
             path = [\"h{src}\", {}, \"h{dst}\"]",
            100 + below(900),
            below(100),
            nodes.join(", ")
        );
    }
    let _ = writeln!(text, "[[traffic]]\nkind = \"permutation\"\nsize = \"200kB\"");
    text
}

/// Of random fabrics: a proved one never deadlocks; and with a queue for each root none does, although most
/// of these routes may deadlock under PFC.
#[test]
fn proved_fabrics_never_deadlock() {
    for (organisation, queues) in [("hiq", "100"), ("single-tier", "100"), ("hiq", "1"), ("single-tier", "2")]
    {
        let (mut proved, mut dead, mut proved_pfc, mut pauses, mut merges) = (0, 0, 0, 0, 0);
        for seed in 0..FABRICS {
            let text = scenario(seed);
            let keys = [("flow_control.organisation", organisation), ("flow_control.queues", queues)];
            let loaded = load(&text, &keys);
            let safe_here = safe(&loaded, Routes::Scenario);
            let outcome = run(&loaded.plan);
            proved += u64::from(safe_here);
            dead += u64::from(outcome.deadlock.is_some());
            pauses += outcome.pauses.len();
            merges += outcome.records.get::<Tally>().expect("it is Pyrrha").merges;
            assert!(
                !safe_here || outcome.deadlock.is_none(),
                "{organisation} {queues}, fabric {seed}:\n{text}"
            );
            if (organisation, queues) == ("hiq", "100") {
                proved_pfc +=
                    u64::from(safe(&load(&text, &[("flow_control.scheme", "pfc")]), Routes::Scenario));
            }
        }
        println!(
            "{organisation}, {queues} queues: of {FABRICS} fabrics {proved} proved safe, {dead} deadlocks; \
             {pauses} pauses, {merges} merges"
        );
        assert!(pauses > 10_000 && merges > 1_000, "{pauses} {merges}");
        // Queues for sets of roots may wait for each other: the paper's argument, that each wait is for an
        // output queue in the end, applies to single roots.
        match (organisation, queues) {
            ("hiq", "100") => assert_eq!((proved, dead), (FABRICS, 0)),
            ("single-tier", "100") => assert!(proved * 10 >= FABRICS * 8, "{proved}"),
            _ => assert!(proved >= 50 && dead > 0, "{proved} {dead}"),
        }
        if proved_pfc > 0 {
            println!("under PFC {proved_pfc} are proved safe");
            assert!(proved_pfc * 2 < FABRICS, "{proved_pfc}");
        }
    }
}
