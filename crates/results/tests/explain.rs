//! `xoff explain`, from a run to its words.

use std::fs;
use std::path::{Path, PathBuf};

use xoff_results::directory::{self, About};
use xoff_results::explain::{self, read, text};
use xoff_results::storage;
use xoff_results::summary::summarise;

/// Three switches in a line, as in the tests of the simulator, where the times are
/// worked out by hand: A sends to X over a slow link, B one packet to Y next to S1.
const LINE: &str = "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"B\", \"X\", \"Y\"]\n\
    switches = [\"S0\", \"S1\", \"S2\"]\nlinks = [\n\
    {a=\"A\", b=\"S0\", rate=\"100Gbps\", delay=\"100ns\"}, {a=\"B\", b=\"S0\", rate=\"100Gbps\", delay=\"100ns\"},\n\
    {a=\"S0\", b=\"S1\", rate=\"100Gbps\", delay=\"100ns\"}, {a=\"S1\", b=\"S2\", rate=\"100Gbps\", delay=\"100ns\"},\n\
    {a=\"S2\", b=\"X\", rate=\"10Gbps\", delay=\"100ns\"}, {a=\"S1\", b=\"Y\", rate=\"100Gbps\", delay=\"100ns\"}]\n\
    [flow_control]\nscheme = \"pfc\"\nxoff = \"5kB\"\nxon = \"2kB\"\n\
    [transport]\nmtu = \"938B\"\nheader = \"62B\"\nack = \"100B\"\nack_every = 1000000\nrto = \"1s\"\n\
    [measure]\nexplain = true\n\
    [[traffic]]\nname = \"elephant\"\nkind = \"flow\"\nsrc = \"A\"\ndst = \"X\"\nsize = \"28140B\"\n\
    [[traffic]]\nname = \"mouse\"\nkind = \"flow\"\nsrc = \"B\"\ndst = \"Y\"\nsize = \"938B\"\nstart = \"1500ns\"\n";

/// Runs a scenario and leaves its directory.
fn left(name: &str, overrides: &[(&str, &str)]) -> PathBuf {
    left_by(LINE, name, overrides)
}

fn left_by(text: &str, name: &str, overrides: &[(&str, &str)]) -> PathBuf {
    left_until(text, name, overrides, &mut |_| true)
}

/// The same of a run that goes on while `watch` says so.
fn left_until(
    text: &str,
    name: &str,
    overrides: &[(&str, &str)],
    watch: &mut dyn FnMut(&xoff_outcome::Progress) -> bool,
) -> PathBuf {
    let overrides: Vec<_> = overrides.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let files = |path: &Path| Err(std::io::Error::other(format!("{path:?} in a test")));
    let loaded = xoff_plan::load("line.toml", text.as_bytes(), &overrides, &files).expect("a good scenario");
    let outcome = xoff_sim::run(&loaded.plan, watch);
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("explain").join(name);
    let _ = fs::remove_dir_all(&out);
    let about = About {
        scenario: serde_json::to_value(&loaded.scenario).expect("plain data"),
        overrides: Vec::new(),
        version: "test".into(),
        wall_seconds: 0.0,
        live: None,
    };
    let summary = summarise("line", &loaded.plan, &outcome);
    directory::prepare(&out).unwrap().write(&about, &loaded.plan, &outcome, &summary).unwrap().path
}

#[test]
fn a_victim_reads_whose_congestion_held_it_up() {
    let path = left("done", &[]);
    let run = read::read(&path).unwrap();
    let victim = explain::flow(&path, &run, 1).unwrap();
    // From 1680 ns, when it comes to S0, to 5950.24 ns, when that goes on.
    let root = &victim.roots[0];
    assert_eq!((root.port.as_str(), root.crossed, root.victim_ps), ("S2:1", false, 4_270_240));
    assert_eq!(victim.parts.iter().map(|p| p.time_ps).sum::<u64>(), victim.head.took_ps);
    assert_eq!(victim.steps.iter().map(|s| s.time_ps).sum::<u64>(), victim.head.took_ps);
    insta::assert_snapshot!("victim", text::flow(&victim));
    insta::assert_snapshot!("elephant", text::flow(&explain::flow(&path, &run, 0).unwrap()));

    let port = explain::port(&path, &run, "S2:1", explain::Choice::default()).unwrap();
    assert_eq!((port.victim_ps, port.victims.len(), port.own_flows), (4_270_240, 1, 1));
    assert_eq!(port.places[0].port, "S0:2");
    insta::assert_snapshot!("port", text::port(&port));
    let blameless = explain::port(&path, &run, "S0:2", explain::Choice::default()).unwrap();
    insta::assert_snapshot!("port-blameless", text::port(&blameless));

    let overview = explain::overview(&path, &run, explain::Choice::default(), explain::SLOWEST).unwrap();
    assert_eq!((overview.flows, overview.victim_flows, overview.roots.len()), (2, 1, 1));
    insta::assert_snapshot!("overview", text::overview(&overview));
    let elephants = explain::overview(
        &path,
        &run,
        explain::Choice { class: Some("elephant"), ..Default::default() },
        explain::SLOWEST,
    )
    .unwrap();
    assert_eq!((elephants.flows, elephants.victim_flows), (1, 0));
}

#[test]
fn what_did_not_end_is_said_not_to_have() {
    let path = left("cut", &[("run.duration", "6us")]);
    let run = read::read(&path).unwrap();
    insta::assert_snapshot!("unfinished", text::flow(&explain::flow(&path, &run, 1).unwrap()));
    // Of three hosts in a ring each sends once, and again when it has received; the
    // run ends before that.
    let ring = "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 3\n\
        link = { rate = \"100Gbps\", delay = \"1us\" }\n[measure]\nexplain = true\n[run]\nduration = \"1us\"\n\
        [[traffic]]\nkind = \"ring-all-reduce\"\nsize = \"300kB\"\n";
    let path = left_by(ring, "early", &[]);
    let run = read::read(&path).unwrap();
    let overview = explain::overview(&path, &run, explain::Choice::default(), explain::SLOWEST).unwrap();
    assert_eq!((overview.flows, overview.unfinished, run.flows.len()), (3, 3, 12));
    let later = explain::flow(&path, &run, 11).unwrap();
    assert!(text::flow(&later).ends_with("had not started when the run ended.\n") && later.parts.is_empty());
}

fn example() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/victims.toml");
    fs::read_to_string(path).unwrap()
}

/// The ports that Pyrrha's pauses name are on the path of all packets that wait for them, although the
/// packets that caused some pauses were elsewhere; the output has both.
#[test]
fn the_named_root_and_where_packets_stood_are_both_told() {
    let example = example();
    let path = left_by(&example, "named", &[("flow_control.scheme", "pyrrha")]);
    let run = read::read(&path).unwrap();
    let overview = explain::overview(&path, &run, explain::Choice::default(), explain::SLOWEST).unwrap();
    let surviving = overview.surviving.as_ref().expect("pauses name ports");
    assert_eq!((overview.victim_ps, overview.victim_flows, overview.victims.len()), (0, 0, 0));
    assert!(surviving.victim_ps > 0 && surviving.victim_flows > 0);
    assert_eq!(overview.own_roots[0].port, "S0.3:3", "the receiver of the incasts");
    let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = words(text::overview(&overview));
    assert!(text.contains("(by the port that each pause named): 0 s. By the port where"), "{text}");
    assert!(
        text.contains("Worst congested ports on the paths") && !text.contains("Worst victims flow"),
        "{text}"
    );
    // By flow: the sums are those of the parts.
    let mut by_flow = 0;
    for id in 0..run.flows.len() {
        let answer = explain::flow(&path, &run, id).unwrap();
        let told = answer.surviving.as_ref().unwrap();
        let off = told.stood.iter().filter(|s| s.surviving_off).map(|s| s.time_ps).sum::<u64>();
        assert_eq!((answer.victim_ps, off), (0, told.victim_ps), "flow {id}");
        assert!(told.stood.iter().all(|s| !s.named_off && s.named_root != s.surviving_root));
        let own = answer.parts.iter().filter(|p| p.part == "own").map(|p| p.time_ps).sum::<u64>();
        assert_eq!(answer.roots.iter().map(|r| r.own_ps).sum::<u64>(), own);
        by_flow += off;
    }
    assert_eq!(by_flow, surviving.victim_ps);
    let victim = surviving.victims[0].head.flow;
    insta::assert_snapshot!("named-flow", text::flow(&explain::flow(&path, &run, victim).unwrap()));
    let stood = &surviving.roots[0].port;
    let port = explain::port(&path, &run, stood, explain::Choice::default()).unwrap();
    assert_eq!((port.victim_ps, port.surviving.unwrap().victim_ps), (0, surviving.roots[0].victim_ps));

    // With one queue for all roots some wait for a named port off their path.
    let few = [("flow_control.scheme", "pyrrha"), ("flow_control.queues", "1")];
    let more = "[[traffic]]\nname = \"second\"\nkind = \"incast\"\nfan_in = 12\nsize = \"250kB\"\nto = \"H3\"\nperiod = \"400us\"\n";
    let example = example.replace("[measure]", &format!("{more}[measure]"));
    let path = left_by(&example, "shared", &few);
    let run = read::read(&path).unwrap();
    let overview = explain::overview(&path, &run, explain::Choice::default(), explain::SLOWEST).unwrap();
    assert!(overview.victim_ps > 0 && !overview.roots.is_empty());
    assert!(text::overview(&overview).contains("Worst victims\n"));

    // PFC's pauses name none.
    let path = left("unnamed", &[]);
    let run = read::read(&path).unwrap();
    assert!(
        explain::overview(&path, &run, explain::Choice::default(), explain::SLOWEST)
            .unwrap()
            .surviving
            .is_none()
    );
    assert!(explain::flow(&path, &run, 0).unwrap().surviving.is_none());
}

#[test]
fn a_deadlock_and_an_interruption_come_first() {
    let mut ring = "[topology]\nkind = \"ring\"\nswitches = 3\nhosts_per_switch = 1\n\
        link = {rate=\"100Gbps\", delay=\"1us\"}\n[measure]\nexplain = true\n\
        [flow_control]\nscheme = \"pfc\"\nxoff = \"20kB\"\nxon = \"10kB\"\n"
        .to_string();
    for i in 0..3 {
        let [next, dst] = [(i + 1) % 3, (i + 2) % 3];
        ring += &format!(
            "[[traffic]]\nkind = \"flow\"\nsrc = \"H{i}\"\ndst = \"H{dst}\"\nsize = \"10MB\"\n\
             path = [\"H{i}\", \"S0.{i}\", \"S0.{next}\", \"S0.{dst}\", \"H{dst}\"]\n"
        );
    }
    let path = left_by(&ring, "locked", &[]);
    let run = read::read(&path).unwrap();
    let deadlock = run.ending.deadlock.as_ref().expect("three flows round a ring of three");
    assert_eq!((run.ending.stop.as_str(), deadlock.cycle.len()), ("starved", 3));
    let overview = explain::overview(&path, &run, explain::Choice::default(), explain::SLOWEST).unwrap();
    insta::assert_snapshot!("locked", text::overview(&overview));
    let first = "The run deadlocked at ";
    assert!(text::flow(&explain::flow(&path, &run, 0).unwrap()).starts_with(first));
    let port = explain::port(&path, &run, &deadlock.cycle[0], explain::Choice::default()).unwrap();
    assert!(text::port(&port).starts_with(first));
    assert_eq!(serde_json::to_value(&port).unwrap()["run"]["deadlock"]["cycle"][0], deadlock.cycle[0]);

    let path = left_until(&example(), "interrupted", &[], &mut |_| false);
    let run = read::read(&path).unwrap();
    assert_eq!((run.ending.stop.as_str(), &run.ending.deadlock), ("interrupted", &None));
    let text = text::overview(
        &explain::overview(&path, &run, explain::Choice::default(), explain::SLOWEST).unwrap(),
    );
    assert!(text.starts_with("The run was interrupted at "), "{text}");
}

#[test]
fn what_cannot_be_explained_is_said() {
    let wrong = |error: storage::Error| format!("{}. {}", error.message, error.help);
    let path = left("done-2", &[]);
    let run = read::read(&path).unwrap();
    assert_eq!(
        wrong(explain::flow(&path, &run, 2).unwrap_err()),
        "has no flow 2. The flows are 0 to 1: column `id` of flows.parquet."
    );
    assert_eq!(
        wrong(explain::port(&path, &run, "S0:9", explain::Choice::default()).unwrap_err()),
        "has no port `S0:9`. The ports of S0 are S0:0, S0:1, S0:2."
    );
    let nowhere = wrong(explain::port(&path, &run, "tor3:5", explain::Choice::default()).unwrap_err());
    assert!(nowhere.contains("`xoff topo` and ports.parquet list the ports"), "{nowhere}");
    assert_eq!(
        wrong(
            explain::overview(
                &path,
                &run,
                explain::Choice { class: Some("cat"), ..Default::default() },
                explain::SLOWEST
            )
            .unwrap_err()
        ),
        "has no flow of the class `cat`. The classes are elephant, mouse."
    );
    let blind = left("blind", &[("measure.explain", "false"), ("measure.blocking", "true")]);
    let text = wrong(read::read(&blind).unwrap_err());
    assert!(
        text.contains("measure.explain was not set") && text.contains("--set measure.explain=true"),
        "{text}"
    );
    assert!(wrong(read::read(&path.join("gone")).unwrap_err()).starts_with("does not exist"));
    assert!(wrong(read::read(&path.join("flows.parquet")).unwrap_err()).starts_with("is a file"));
    // A directory that has changed since the run was written.
    fs::copy(
        left("cut-2", &[("run.duration", "6us")]).join("critical.parquet"),
        path.join("critical.parquet"),
    )
    .unwrap();
    let text = wrong(read::read(&path).unwrap_err());
    assert!(text.starts_with("is damaged: it has "), "{text}");
}
