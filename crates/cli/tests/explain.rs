//! `xoff explain` from outside: arguments, exit status, output.

use crate::common::{self, xoff};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

/// Two senders to one host, and one of them to another host: under PFC its packets wait after the others in
/// the queue of the first switch.
const VICTIM: &str = r#"
[topology]
kind = "line"
switches = 2
hosts_per_switch = 3
link = { rate = "100Gbps", delay = "100ns" }
fabric_link = { rate = "200Gbps", delay = "100ns" }

[flow_control]
scheme = "pfc"
xoff = "10kB"
xon = "8kB"

[[traffic]]
name = "incast"
kind = "incast"
fan_in = 2
from = ["H0", "H1"]
to = "H3"
size = "200kB"

[[traffic]]
name = "mouse"
kind = "flow"
src = "H2"
dst = "H4"
size = "3kB"
start = "8us"
"#;

fn scratch(test: &str) -> PathBuf {
    let path = common::scratch(test);
    fs::write(path.join("victim.toml"), VICTIM).unwrap();
    path
}

fn out(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_run_says_how_to_ask_and_is_explained() {
    let dir = scratch("explain");
    let off = ["--set", "measure.blocking=true", "--set", "measure.explain=false"];
    let first = xoff(&dir, &[&["run", "victim.toml"], &off[..]].concat());
    assert!(err(&first).contains("with --overwrite --set measure.explain=true"), "{}", err(&first));
    let refused = xoff(&dir, &["explain", "xoff-runs/victim"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(err(&refused).contains("--set measure.explain=true"), "{}", err(&refused));

    let run = xoff(&dir, &["run", "victim.toml", "--overwrite"]);
    let hint = "to see which ports blocked them: xoff explain ";
    assert!(err(&run).contains(hint) && err(&run).trim_end().ends_with("xoff-runs/victim"), "{}", err(&run));
    let overview = out(&xoff(&dir, &["explain", "xoff-runs/victim"]));
    assert!(overview.contains("Worst victims") && overview.contains("2 H2 -> H4 (mouse)"), "{overview}");
    let flow = out(&xoff(&dir, &["explain", "xoff-runs/victim", "--flow", "2"]));
    // Sentences are broken into lines.
    let flow = flow.split_whitespace().collect::<Vec<_>>().join(" ");
    // The port of the second switch to H3, which the mouse never comes to.
    assert!(flow.contains("paused because of S0.1:0 -> H3, which it never crosses"), "{flow}");
    let port = out(&xoff(&dir, &["explain", "xoff-runs/victim", "--port", "S0.1:0"]));
    assert!(port.starts_with("S0.1:0 -> H3 blocked 1 victim, for "), "{port}");

    let json = |args: &[&str]| -> Value {
        let args = [&["explain", "xoff-runs/victim", "--json"], args].concat();
        serde_json::from_str(&out(&xoff(&dir, &args))).unwrap()
    };
    let flow = json(&["--flow", "2"]);
    let sum =
        |list: &Value| list.as_array().unwrap().iter().map(|p| p["time_ps"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum(&flow["parts"]), flow["took_ps"].as_u64().unwrap());
    assert_eq!(sum(&flow["steps"]), flow["took_ps"].as_u64().unwrap());
    assert_eq!(json(&["--port", "S0.1:0"])["victims"][0]["flow"], 2);
    assert_eq!(json(&["--class", "mouse"])["flows"], 1);
    assert_eq!(json(&[])["roots"][0]["port"], "S0.1:0");
}

#[test]
fn unrecorded_runs_cannot_be_explained() {
    let dir = scratch("explain-wrong");
    out(&xoff(&dir, &["run", "victim.toml", "--quiet", "--set", "measure.explain=true"]));
    let run = "xoff-runs/victim";
    for args in [
        &[run, "--flow", "3"][..],
        &[run, "--port", "S0.1"],
        &[run, "--class", "rat"],
        &["victim.toml"],
        &["no"],
    ] {
        let failed = xoff(&dir, &[&["explain"], args].concat());
        assert_eq!((failed.status.code(), failed.stdout.len()), (Some(1), 0), "{args:?}");
        assert!(err(&failed).contains("help:"), "{}", err(&failed));
    }
    for args in [
        &[][..],
        &[run, "--flow", "x"],
        &[run, "--flow", "1", "--port", "S0.1:0"],
        &[run, "--flow", "1", "--class", "a"],
    ] {
        assert_eq!(xoff(&dir, &[&["explain"], args].concat()).status.code(), Some(2), "{args:?}");
    }
    let grid =
        xoff(&dir, &["run", "victim.toml", "--quiet", "--seeds", "1..2", "--set", "measure.explain=true"]);
    out(&grid);
    let failed = xoff(&dir, &["explain", "xoff-runs/victim-grid"]);
    assert!(err(&failed).contains("is a grid, not a single run"), "{}", err(&failed));
}

/// The other route of the weakest step, written as a path, makes the checker prove the network.
#[test]
fn a_deadlock_names_the_flows_and_routes_that_break_it() {
    let dir = scratch("breaking");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for (example, step, route) in [
        ("itsy", "S0:1 -> S1:2", ["S0", "S3", "S2"].as_slice()),
        ("watchdog", "S0.0:1 -> S0.1:2", &["S0.0", "S0.2"]),
    ] {
        let scenario = examples.join(format!("{example}.toml"));
        let scenario = scenario.to_str().unwrap();
        let pfc = ["--set", "flow_control.scheme=pfc"];
        let run =
            [&["run", scenario, "--set", "measure.explain=true", "--quiet", "--out", example][..], &pfc]
                .concat();
        let text = out(&xoff(&dir, &run));
        assert!(text.contains(&format!("1 flow crosses the step {step}")), "{text}");
        let told = out(&xoff(&dir, &["explain", example])).replace('\n', " ");
        assert!(told.contains("To break it: 1 flow crosses the step"), "{told}");
        assert!(told.contains(&format!("flow 0 over {}", route.join(", "))), "{told}");
        assert!(told.contains("then the routes of all flows have no cycle"), "{told}");
        let answer: Value = serde_json::from_str(&out(&xoff(&dir, &["explain", example, "--json"]))).unwrap();
        assert_eq!(answer["run"]["deadlock"]["weakest"]["routes"][0], serde_json::json!(route));

        let path = [&["H0"], route, &["H2"]].concat();
        let path = format!("traffic.0.path={}", serde_json::to_string(&path).unwrap());
        let checked = |more: &[&str]| out(&xoff(&dir, &[&["check", scenario][..], &pfc, more].concat()));
        assert!(checked(&[]).contains("can deadlock"), "{}", checked(&[]));
        assert!(checked(&["--set", &path]).contains("cannot deadlock"), "{}", checked(&["--set", &path]));
    }
}

/// A run records critical paths without being asked if it is short and nothing is against it.
#[test]
fn short_runs_can_be_explained() {
    let dir = scratch("short");
    let manifest = |run: &Path| -> Value {
        serde_json::from_slice(&fs::read(run.join("manifest.json")).unwrap()).unwrap()
    };
    let records = |set: &[&str]| {
        let set: Vec<&str> = set.iter().flat_map(|set| ["--set", set]).collect();
        out(&xoff(
            &dir,
            &[&["run", "victim.toml", "--quiet", "--overwrite", "--out", "run"], &set[..]].concat(),
        ));
        let manifest = manifest(&dir.join("run"));
        assert_eq!(manifest["overrides"].as_array().unwrap().len(), set.len() / 2);
        manifest["scenario"]["measure"]["explain"].as_bool().unwrap()
    };
    assert!(records(&[]));
    assert!(out(&xoff(&dir, &["explain", "run"])).contains("3 flows explained"));
    assert!(!records(&["measure.explain=false"]));
    // Many flows of few packets, a long run, and a scheme whose pauses have no root.
    assert!(!records(&["traffic.0.size=1kB"]));
    assert!(!records(&["traffic.0.size=2GB", "run.duration=100us"]));
    assert!(!records(&["flow_control={ scheme = \"itsy\" }"]));
    // Grids record it only if asked.
    out(&xoff(
        &dir,
        &["run", "victim.toml", "--quiet", "--vary", "traffic.0.size=100kB,200kB", "--out", "grid"],
    ));
    for run in fs::read_dir(dir.join("grid/runs")).unwrap() {
        assert_eq!(manifest(&run.unwrap().path())["scenario"]["measure"]["explain"], false);
    }
}

/// The parts of a job's critical path add up to its time, and its ports are named.
#[test]
fn a_training_step_names_the_ports_that_slowed_it() {
    let dir = scratch("training");
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/training-step.toml");
    for explain in ["true", "false"] {
        let explains = format!("measure.explain={explain}");
        let run = xoff(&dir, &["run", scenario, "--no-out", "--json", "--set", &explains]);
        let summary: Value = serde_json::from_str(&out(&run)).unwrap();
        let [job] = &summary["jobs"].as_array().unwrap()[..] else { panic!("one job") };
        let time = job["time_ps"].as_u64().unwrap();
        let iterations = job["iterations"].as_array().unwrap();
        assert_eq!(iterations.len(), 2);
        assert_eq!(iterations.iter().map(|i| i["time_ps"].as_u64().unwrap()).sum::<u64>(), time);
        let path = &job["path"];
        let part = |name: &str| path[name].as_u64().unwrap_or_default();
        assert_eq!(part("compute_ps") + part("moving_ps") + part("waiting_ps"), time);
        assert_eq!(path["waiting_ps"].is_null(), explain == "false");
        assert_eq!(path["ports"].as_array().unwrap().is_empty(), explain == "false");
        // 16 hosts of 400 Gbit/s: no host sends faster, and each operation finished.
        for operation in job["operations"].as_array().unwrap() {
            assert_eq!(operation["count"], operation["finished"]);
            let bandwidth = operation["bus_bandwidth_bps"].as_f64().unwrap();
            assert!(bandwidth > 1e9 && bandwidth < 400e9, "{operation}");
            assert!(operation["longest_ps"].as_f64() >= operation["mean_ps"].as_f64());
            // The path of its last host is no longer than the operation.
            let path = &operation["straggler"]["path"];
            let part = |name: &str| path[name].as_u64().unwrap_or_default();
            let all = part("compute_ps") + part("moving_ps") + part("waiting_ps");
            assert!(all > 0 && all <= operation["longest_ps"].as_u64().unwrap(), "{operation}");
        }
    }
    let text = out(&xoff(&dir, &["run", scenario, "--no-out", "--set", "measure.explain=true"]));
    assert!(text.contains("Largest straggler: "), "{text}");
    let cut = out(&xoff(&dir, &["run", scenario, "--no-out", "--json", "--set", "run.duration=2ms"]));
    let summary: Value = serde_json::from_str(&cut).unwrap();
    assert!(summary["jobs"][0]["time_ps"].is_null() && summary["jobs"][0]["path"].is_null());
}
