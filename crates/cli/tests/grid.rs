//! Grids of runs from outside: order, bytes, interruption, resumption, and errors.

use crate::common::{self, command, xoff};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::{Value, json};

/// Four hosts that send into one, and one flow beside them.
const SMALL: &str = r#"
[topology]
kind = "line"
switches = 1
hosts_per_switch = 5
link = { rate = "100Gbps", delay = "1us" }

[flow_control]
scheme = "pfc"
xoff = "20kB"
xon = "10kB"

[[traffic]]
kind = "poisson"
sizes = "websearch"
load = 0.5

[[traffic]]
kind = "incast"
fan_in = 4
to = "H0"
size = "100kB"

[run]
duration = "200us"
drain = "1ms"

# As in grids, so that a single run has the same files.
[measure]
explain = false
"#;

/// An empty directory for one test, with `small.toml` in it.
fn scratch(test: &str) -> PathBuf {
    let path = common::scratch(test);
    fs::write(path.join("small.toml"), SMALL).unwrap();
    path
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Standard error in one line, without the frame that error reports are drawn in.
fn err(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    let words = text.split_whitespace().filter(|w| !["│", "×", "╰─▶", "├─▶", "|"].contains(w));
    words.collect::<Vec<_>>().join(" ")
}

fn read(path: impl AsRef<Path>) -> Value {
    serde_json::from_slice(&fs::read(path.as_ref()).unwrap()).unwrap()
}

/// Every file below a directory with its bytes, manifests of runs without their wall time.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(next) = todo.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
                continue;
            }
            let mut bytes = fs::read(&path).unwrap();
            if path.ends_with("manifest.json") {
                let text = String::from_utf8(bytes).unwrap();
                bytes = text.lines().filter(|l| !l.contains("\"wall_seconds\"")).collect::<String>().into();
            }
            found.insert(path.strip_prefix(dir).unwrap().to_path_buf(), bytes);
        }
    }
    found
}

fn statuses(grid: &Path) -> Vec<String> {
    let manifest = read(grid.join("grid.json"));
    let runs = manifest["runs"].as_array().unwrap();
    runs.iter().map(|r| r["status"].as_str().unwrap().to_string()).collect()
}

const GRID: [&str; 6] =
    ["--vary", "traffic.0.load=0.2,0.6", "--vary", "flow_control.scheme=pfc,none", "--seeds", "1..2"];

#[test]
fn a_grid_is_the_product_in_order_and_each_run_equals_a_single_run() {
    let dir = scratch("product");
    let args = ["run", "small.toml", "--json", "--out", "g"];
    let done = xoff(&dir, &[&args[..], &GRID].concat());
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    let manifest = read(dir.join("g/grid.json"));
    assert_eq!((&manifest["format"], &manifest["complete"]), (&json!("xoff grid"), &json!(true)));
    let mut names = Vec::new();
    for load in ["0.2", "0.6"] {
        for scheme in ["pfc", "none"] {
            for seed in [1, 2] {
                names.push(format!("{}_load={load}_scheme={scheme}_seed={seed}", names.len() + 1));
            }
        }
    }
    let runs = manifest["runs"].as_array().unwrap();
    assert_eq!(runs.iter().map(|r| r["name"].as_str().unwrap()).collect::<Vec<_>>(), names);
    assert_eq!(runs[7]["values"], json!({ "traffic.0.load": 0.6, "flow_control.scheme": "none" }));
    assert_eq!((&runs[7]["seed"], &runs[7]["point"]), (&json!(2), &json!(4)));
    let there: BTreeSet<String> = fs::read_dir(dir.join("g/runs"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(there, names.iter().cloned().collect());

    // The sixth run, by itself.
    let alone = ["--set", "traffic.0.load=0.6", "--set", "flow_control.scheme=pfc", "--set", "run.seed=2"];
    let done_alone = xoff(&dir, &[&["run", "small.toml", "--out", "alone"], &alone[..]].concat());
    assert_eq!(done_alone.status.code(), Some(0), "{}", err(&done_alone));
    assert_eq!(files(&dir.join("alone")), files(&dir.join("g").join(runs[5]["path"].as_str().unwrap())));

    // The comparison agrees with the summaries.
    let comparison: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(comparison["points"].as_array().unwrap().len(), 4);
    for (point, pair) in comparison["points"].as_array().unwrap().iter().zip(runs.chunks(2)) {
        assert_eq!(point["values"], pair[0]["values"]);
        let values: Vec<f64> = pair
            .iter()
            .map(|r| read(dir.join("g").join(r["path"].as_str().unwrap()).join("summary.json")))
            .map(|s| s["sizes"][4]["slowdown"]["p99"].as_f64().unwrap())
            .collect();
        let p99 = &point["metrics"]["slowdown_p99"];
        assert_eq!(p99["mean"].as_f64().unwrap(), (values[0] + values[1]) / 2.0);
        assert_eq!(p99["low"].as_f64().unwrap(), values[0].min(values[1]));
        assert_eq!(p99["high"].as_f64().unwrap(), values[0].max(values[1]));
    }
    let reader = SerializedFileReader::new(fs::File::open(dir.join("g/grid.parquet")).unwrap()).unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows(), 8);
}

#[test]
fn any_number_of_jobs_gives_the_same_bytes() {
    let dir = scratch("jobs");
    let outputs: Vec<(String, BTreeMap<PathBuf, Vec<u8>>)> = ["1", "2", "5"]
        .iter()
        .map(|jobs| {
            let args = ["run", "small.toml", "--quiet", "--interval", "ci95", "--jobs", jobs, "--out", jobs];
            let done = xoff(&dir, &[&args[..], &GRID].concat());
            assert_eq!(done.status.code(), Some(0), "{}", err(&done));
            assert!(done.stderr.is_empty(), "{}", err(&done));
            (out(&done), files(&dir.join(jobs)))
        })
        .collect();
    assert!(outputs[0].0.contains("95% confidence interval"), "{}", outputs[0].0);
    assert_eq!(outputs[0].1.len(), 8 * 13 + 2);
    assert!(outputs[0] == outputs[1] && outputs[0] == outputs[2]);
}

/// Waits until `there` holds; fails after a minute.
fn wait(there: impl Fn() -> bool) {
    let began = Instant::now();
    while !there() {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A grid whose second run takes seconds (or for ever), one at a time.
fn long(dir: &Path, size: &str, more: &[&str]) -> Vec<String> {
    let flow = SMALL.replace("duration = \"200us\"\ndrain = \"1ms\"", "seed = 3");
    let (head, _) = flow.split_once("[[traffic]]").unwrap();
    let text = format!("{head}[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"1kB\"\n");
    fs::write(dir.join("long.toml"), text).unwrap();
    let vary = format!("traffic.0.size=10kB,{size},20kB");
    let args = ["run", "long.toml", "--jobs", "1", "--out", "g", "--vary", &vary];
    args.iter().chain(more).map(|s| s.to_string()).collect()
}

fn start(dir: &Path, args: &[String]) -> Child {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    command(dir, &args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[cfg(unix)]
fn signal(child: &Child, name: &str) {
    let kill = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
}

#[cfg(unix)]
#[test]
fn a_killed_grid_resumes_and_ends_like_an_undisturbed_one() {
    let dir = scratch("kill");
    let args = long(&dir, "1GB", &[]);
    let mut child = start(&dir, &args);
    let first = dir.join("g/runs/1_size=10kB");
    wait(|| first.is_dir());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!dir.join("g/runs/2_size=1GB").exists(), "killed in the middle of it");
    assert_eq!(statuses(&dir.join("g")), ["pending"; 3]);
    // Files that a killed writer leaves.
    for left in ["g/runs/.2_size=1GB.xoff-0123456789abcdef", "g/.grid.json.xoff-0123456789abcdef"] {
        fs::create_dir_all(dir.join(left)).unwrap();
        fs::write(dir.join(left).join("xoff-temporary"), "").unwrap();
        fs::write(dir.join(left).join("new"), "{").unwrap();
    }
    // Files with similar names must survive.
    for theirs in ["g/.notes.old-2024", "g/runs/.notes.xoff-0123456789abcdef"] {
        fs::create_dir_all(dir.join(theirs)).unwrap();
        fs::write(dir.join(theirs).join("thesis.txt"), "years of work").unwrap();
    }
    let before = fs::read(first.join("manifest.json")).unwrap();

    let resumed = [&args[..], &["--resume".to_string()]].concat();
    let done = start(&dir, &resumed).wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    assert!(err(&done).contains("1 of 3 runs are already stored"), "{}", err(&done));
    assert!(err(&done).contains("[2/2] 3_size=20kB"), "{}", err(&done));
    assert_eq!(fs::read(first.join("manifest.json")).unwrap(), before, "not made again");
    for theirs in ["g/.notes.old-2024", "g/runs/.notes.xoff-0123456789abcdef"] {
        assert!(dir.join(theirs).join("thesis.txt").exists(), "{theirs} is not xoff's");
        fs::remove_dir_all(dir.join(theirs)).unwrap();
    }

    let whole: Vec<String> = args.iter().map(|a| if a == "g" { "whole".into() } else { a.clone() }).collect();
    let straight = start(&dir, &whole).wait_with_output().unwrap();
    assert_eq!(files(&dir.join("g")), files(&dir.join("whole")));
    assert_eq!(out(&done), out(&straight));

    // A run that lost a file is made again, the others are not.
    fs::remove_file(dir.join("g/runs/3_size=20kB/ports.parquet")).unwrap();
    let again = start(&dir, &resumed).wait_with_output().unwrap();
    assert!(err(&again).contains("2 of 3 runs are already stored"), "{}", err(&again));
    assert_eq!((out(&again), files(&dir.join("g"))), (out(&straight), files(&dir.join("whole"))));
}

#[cfg(unix)]
#[test]
fn an_interrupted_grid_keeps_completed_runs_and_names_the_others() {
    for name in ["-INT", "-TERM"] {
        let dir = scratch(&format!("interrupt{name}"));
        let args = long(&dir, "1000GB", &[]);
        let child = start(&dir, &args);
        wait(|| dir.join("g/runs/1_size=10kB").is_dir());
        // No other process may write it now.
        let other = start(&dir, &[&args[..], &["--resume".to_string()]].concat()).wait_with_output().unwrap();
        assert_eq!(other.status.code(), Some(1));
        assert!(err(&other).contains("is being written by another process"), "{}", err(&other));
        signal(&child, name);
        let done = child.wait_with_output().unwrap();
        assert_eq!(done.status.code(), Some(130), "{}", err(&done));
        assert!(out(&done).contains("INCOMPLETE, 1 of 3 runs"), "{}", out(&done));
        assert_eq!(statuses(&dir.join("g")), ["done", "pending", "pending"]);
        assert_eq!(read(dir.join("g/grid.json"))["complete"], false);
        let left: BTreeSet<PathBuf> = files(&dir.join("g")).into_keys().collect();
        assert!(left.iter().all(|p| !p.starts_with("runs") || p.starts_with("runs/1_size=10kB")), "{left:?}");
        assert!(left.contains(Path::new("grid.parquet")) && left.len() == 13 + 2, "{left:?}");
    }
}

#[cfg(unix)]
#[test]
fn sigterm_writes_a_partial_run_and_nohup_keeps_its_promise() {
    let dir = scratch("signals");
    let _ = long(&dir, "1GB", &[]);
    let script = format!(
        "trap '' HUP; exec {} run long.toml --set traffic.0.size=1000GB --out r",
        env!("CARGO_BIN_EXE_xoff")
    );
    let mut child = Command::new("sh")
        .current_dir(&dir)
        .args(["-c", &script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It ignores SIGHUP from its first moment; it handles SIGTERM once a probe
    // of the place for results has been removed, and soon after.
    std::thread::sleep(Duration::from_millis(1000));
    signal(&child, "-HUP");
    std::thread::sleep(Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none(), "hung up");
    signal(&child, "-TERM");
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(130), "{}", err(&done));
    assert_eq!(read(dir.join("r/manifest.json"))["stop"], "interrupted");
}

#[cfg(unix)]
#[test]
fn a_second_signal_ends_the_program_at_once() {
    let dir = scratch("twice");
    let args = ["run", "long.toml", "--set", "traffic.0.size=1000GB", "--out", "r"];
    let _ = long(&dir, "1GB", &[]);
    let child = start(&dir, &args.map(String::from));
    std::thread::sleep(Duration::from_millis(1000));
    // Both are there before the program goes on.
    for name in ["-STOP", "-INT", "-TERM", "-CONT"] {
        signal(&child, name);
    }
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(130), "{}", err(&done));
    assert!(done.stdout.is_empty() && !dir.join("r").exists(), "{}", out(&done));
}

#[test]
fn another_grid_is_not_resumed_and_a_grid_is_not_replaced() {
    let dir = scratch("other");
    let csv =
        |size: u64| fs::write(dir.join("f.csv"), format!("src,dst,bytes,start\nH0,H1,{size},0us\n")).unwrap();
    csv(1000);
    let (head, _) = SMALL.split_once("[[traffic]]").unwrap();
    let scenario = format!("{head}[[traffic]]\nkind = \"flows\"\nfile = \"f.csv\"\n");
    fs::write(dir.join("s.toml"), &scenario).unwrap();
    let base = ["run", "s.toml", "--quiet", "--out", "g", "--vary", "flow_control.xoff=20kB,30kB"];
    let first = xoff(&dir, &base);
    assert_eq!(first.status.code(), Some(0), "{}", err(&first));
    let before = files(&dir.join("g"));
    let refused = |args: &[&str], why: &str| {
        let output = xoff(&dir, args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(err(&output).contains(why), "{why}: {}", err(&output));
        assert!(output.stdout.is_empty());
        assert_eq!(files(&dir.join("g")), before);
    };
    refused(&base, "already contains a grid");
    let resumed = [&base[..], &["--resume"]].concat();
    let mut other = resumed.clone();
    other[6] = "flow_control.xoff=20kB,40kB";
    refused(&other, "varied keys and values");
    refused(
        &[&resumed[..], &["--seeds", "1..2"]].concat(),
        "seeds (--seeds): [] in the directory, [1,2] in this command",
    );
    refused(&[&resumed[..], &["--set", "flow_control.xon=9kB"]].concat(), "overrides (--set, --seed)");
    csv(2000);
    refused(&resumed, "a file that it names has changed, for run 1_xoff=20kB");
    csv(1000);
    fs::write(dir.join("s.toml"), scenario.replace("10kB", "11kB")).unwrap();
    refused(&resumed, "the scenario has changed at `flow_control.xon`");
    fs::write(dir.join("s.toml"), &scenario).unwrap();
    let mut nowhere = resumed.clone();
    nowhere[4] = "nowhere";
    refused(&nowhere, "no grid to resume");
    assert!(!dir.join("nowhere").exists());
    // No run is left to do: the output is the same.
    let again = xoff(&dir, &resumed);
    assert_eq!((again.status.code(), out(&again)), (Some(0), out(&first)), "{}", err(&again));
    assert_eq!(files(&dir.join("g")), before);
}

#[test]
fn wrong_grids_are_refused_before_anything_runs() {
    let dir = scratch("wrong");
    let usage: [&[&str]; 9] = [
        &["--vary", "traffic.0.load"],
        &["--vary", "traffic.0.load=0.1,,0.2"],
        &["--vary", "topology=[1,2"],
        &["--seeds", "5..1"],
        &["--seeds", "x"],
        &["--seeds", "1..3", "--seed", "1"],
        &["--jobs", "2"],
        &["--seeds", "1..2", "--jobs", "0"],
        &["--seeds", "1..2", "--resume", "--no-out"],
    ];
    for args in usage {
        let output = xoff(&dir, &[&["run", "small.toml"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{args:?}");
    }
    let wrong: [(&[&str], &[&str]); 8] = [
        // The second value of the second axis is the first wrong run: 3 of 8.
        (
            &[
                "--vary",
                "flow_control.scheme=pfc,none",
                "--vary",
                "traffic.0.load=0.5,1e9",
                "--seeds",
                "1..2",
            ],
            &[
                "run 3 of 8 (flow_control.scheme=pfc, traffic.0.load=1e9, seed 1) has an invalid scenario",
                "load",
            ],
        ),
        (
            &["--vary", "run.sead=1,2"],
            &["run 1 of 2 (run.sead=1) has an invalid scenario", "sead", "did you mean `seed`"],
        ),
        (&["--vary", "load=0.3,0.5"], &["`load` of --vary is not a complete key", "type traffic.0.load"]),
        (&["--vary", "traffic.0.load=0.5,0.50"], &["run 1 of 2", "and run 2 of 2", "have the same scenario"]),
        (&["--vary", "a=1,2", "--vary", "a=3,4"], &["`a` of --vary", "has no effect"]),
        (&["--vary", "run.seed=1,2", "--seeds", "1..2"], &["`run.seed` of --seeds"]),
        (&["--vary", "run.seed=1,2", "--seed", "1"], &["`run.seed` of --vary", "--set or --seed"]),
        (
            &["--seeds", "1..1000", "--vary", "a=0,1,2,3,4,5,6,7,8,9", "--vary", "b=0,1,2,3,4,5,6,7,8,9,10"],
            &["more than the maximum of 100000 runs"],
        ),
    ];
    for (args, parts) in wrong {
        let output = xoff(&dir, &[&["run", "small.toml", "--jobs", "2"], args].concat());
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", err(&output));
        for part in parts {
            assert!(err(&output).contains(part), "no `{part}` in {}", err(&output));
        }
        assert!(output.stdout.is_empty());
    }
    assert!(!dir.join("xoff-runs").exists(), "nothing is written");
}

#[test]
fn unusual_values_reach_the_scenario_as_written() {
    let dir = scratch("odd");
    let link = "topology.link={ rate = \"100Gbps\", delay = \"1us\" },{rate=\"40Gbps\",delay=\"2us\"}";
    let args = ["run", "small.toml", "--quiet", "--json", "--out", "g/../odd run", "--vary", link];
    fs::create_dir(dir.join("g")).unwrap();
    let more = ["--vary", "traffic[0].sizes='websearch',\"ali-storage\", 5kB", "--seeds", "9,3"];
    let done = xoff(&dir, &[&args[..], &more].concat());
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    let manifest = read(dir.join("odd run/grid.json"));
    let runs = manifest["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 12);
    let run =
        |i: usize| read(dir.join("odd run").join(runs[i]["path"].as_str().unwrap()).join("manifest.json"));
    assert_eq!((run(0)["seed"].clone(), run(1)["seed"].clone()), (json!(9), json!(3)));
    assert_eq!(run(2)["scenario"]["traffic"][0]["sizes"], "ali-storage");
    assert_eq!(runs[2]["values"]["traffic.0.sizes"], "ali-storage");
    let overrides = run(11)["overrides"].clone();
    assert_eq!(overrides[1], "traffic.0.sizes=5kB");
    assert_eq!(overrides[2], "run.seed=3");
    // No value makes a directory of its own.
    assert_eq!(fs::read_dir(dir.join("odd run/runs")).unwrap().count(), 12);
}

#[test]
fn a_run_that_loses_packets_does_not_stop_the_others() {
    let dir = scratch("lost");
    let args = ["run", "small.toml", "--jobs", "1", "--no-out", "--vary", "flow_control.headroom=3kB,auto"];
    let done = xoff(&dir, &args);
    assert_eq!(done.status.code(), Some(3), "{}{}", out(&done), err(&done));
    assert!(err(&done).contains("[1/2] 1_headroom=3kB: "), "{}", err(&done));
    assert!(err(&done).contains("LOSSLESS DROPS [2/2] 2_headroom=auto"), "{}", err(&done));
    assert!(
        out(&done).contains("error: packets of a lossless priority were dropped in 1_headroom=3kB"),
        "{}",
        out(&done)
    );
    assert!(!dir.join("xoff-runs").exists());
}

/// Limits on file sizes replace a full disk: one that is too small for `grid.json`, and one that is too small
/// for a run's flows.
#[cfg(unix)]
#[test]
fn a_full_disk_is_reported_and_written_files_remain() {
    let dir = scratch("full");
    let limited = |blocks: u32, args: &str| {
        let program = env!("CARGO_BIN_EXE_xoff");
        let script =
            format!("trap '' XFSZ; ulimit -f {blocks}; exec {program} run small.toml --jobs 1 {args}");
        Command::new("sh").current_dir(&dir).args(["-c", &script]).output().unwrap()
    };
    let nothing = limited(1, "--seeds 1..2 --out a");
    assert_eq!(nothing.status.code(), Some(1));
    assert!(err(&nothing).contains("cannot be written"), "{}", err(&nothing));
    assert!(nothing.stdout.is_empty() && !dir.join("a").exists());
    let args = "--vary run.duration=10us,50ms,20us --out b --set measure.interval=1ms";
    let some = limited(64, args);
    assert_eq!(some.status.code(), Some(1), "{}", err(&some));
    let answer = out(&some).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(answer.contains("error: 2_duration=50ms failed"), "{answer}");
    assert!(answer.contains("cannot be written"), "{answer}");
    assert_eq!(statuses(&dir.join("b")), ["done", "failed", "pending"]);
    assert_eq!(fs::read_dir(dir.join("b/runs")).unwrap().count(), 1);
    // With room it goes on.
    let more: Vec<&str> = args.split(' ').collect();
    let done = xoff(&dir, &[&["run", "small.toml", "--resume"], &more[..]].concat());
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    assert_eq!(statuses(&dir.join("b")), ["done"; 3]);
}

/// A varied key is a column beside the others of `grid.parquet`.
#[test]
fn no_key_of_a_scenario_is_called_like_a_column() {
    let schema = serde_json::to_value(xoff_plan::schema::schema()).unwrap();
    let keys = schema["properties"].as_object().unwrap();
    let metrics = xoff_results::grid::metrics::METRICS.map(|m| m.name);
    for column in metrics.iter().chain(&["name", "point", "seed", "stop"]) {
        assert!(!keys.contains_key(*column), "{column}");
    }
}

const VARIANTS: &str = r#"
[[variant]]
name = "pfc"
set = { flow_control.scheme = "pfc" }

[[variant]]
name = "cut"
set = { flow_control.scheme = "none", "traffic.1.size" = "50kB" }

[[variant]]
name = "irn"
[variant.set]
flow_control = { scheme = "none" }
transport.kind = "irn"
"#;

/// Variants are the first axis. Each run equals one by itself with the keys of its variant. Points are compared with
/// the baseline, seed by seed, and the flows of all runs are one dataset.
#[test]
fn variants_stand_in_one_grid() {
    let dir = scratch("variants");
    fs::write(dir.join("small.toml"), format!("{SMALL}{VARIANTS}")).unwrap();
    let grid = [
        "--variant",
        "cut,irn,pfc",
        "--vary",
        "traffic.0.load=0.2,0.6",
        "--seeds",
        "1..2",
        "--set",
        "switch.buffer=2MB",
    ];
    let done = xoff(&dir, &[&["run", "small.toml", "--json", "--out", "g"], &grid[..]].concat());
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    let runs = read(dir.join("g/grid.json"))["runs"].as_array().unwrap().clone();
    assert_eq!(runs.len(), 12);
    let last = "12_variant=pfc_load=0.6_seed=2";
    assert_eq!((&runs[11]["name"], &runs[0]["values"]["variant"]), (&json!(last), &json!("cut")));

    let alone =
        "--set flow_control={scheme=\"none\"} --set transport.kind=irn --set traffic.0.load=0.6 --seed 1";
    let alone: Vec<&str> = alone.split(' ').collect();
    xoff(
        &dir,
        &[&["run", "small.toml", "--out", "alone", "--set", "switch.buffer=2MB"], &alone[..]].concat(),
    );
    let in_grid = files(&dir.join("g").join(runs[6]["path"].as_str().unwrap()));
    let by_itself = files(&dir.join("alone"));
    for name in ["summary.json", "flows.parquet", "ports.parquet"] {
        assert!(in_grid[Path::new(name)] == by_itself[Path::new(name)], "{name}");
    }
    // The overrides and the keys of the variants are in the order in which they apply.
    let overrides =
        &read(dir.join("g").join(runs[2]["path"].as_str().unwrap()).join("manifest.json"))["overrides"];
    let expected = [
        "switch.buffer=2MB",
        "flow_control.scheme=\"none\"",
        "traffic.1.size=\"50kB\"",
        "traffic.0.load=0.6",
        "run.seed=1",
    ];
    assert_eq!(*overrides, json!(expected));

    let comparison: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(comparison["baseline"], json!(["variant", "cut"]));
    let points = comparison["points"].as_array().unwrap();
    assert!(points[0].get("ratios").is_none() && points[1].get("ratios").is_none());
    let p99 = |point: usize, seed: usize| {
        let summary =
            read(dir.join("g").join(runs[2 * point + seed]["path"].as_str().unwrap()).join("summary.json"));
        summary["sizes"][4]["slowdown"]["p99"].as_f64().unwrap()
    };
    let ratios = [p99(5, 0) / p99(1, 0), p99(5, 1) / p99(1, 1)];
    let found = &points[5]["ratios"]["slowdown_p99"];
    assert_eq!(found["mean"].as_f64().unwrap(), (ratios[0] + ratios[1]) / 2.0);
    assert_eq!(found["high"].as_f64().unwrap(), ratios[0].max(ratios[1]));

    let flows: BTreeMap<PathBuf, Vec<u8>> = files(&dir.join("g/flows"));
    assert_eq!(flows.len(), 12);
    let partition = Path::new("variant=irn/load=0.6/seed=1/flows.parquet");
    assert!(flows[partition] == in_grid[Path::new("flows.parquet")]);

    // Another baseline, as a value of a varied key; and as text.
    let again = [&["run", "small.toml", "--no-out", "--baseline", "0.6"], &grid[..]].concat();
    let text = out(&xoff(&dir, &again));
    assert!(
        text.contains("Difference to traffic.0.load = 0.6, with the same seed and other values:"),
        "{text}"
    );
    assert_eq!(text.matches("cut      0.6").count(), 2, "the baseline is not compared with itself: {text}");
    // Without the option variants have no effect.
    xoff(&dir, &["run", "small.toml", "--out", "plain"]);
    assert!(read(dir.join("plain/manifest.json"))["scenario"].get("variant").is_none());
}

#[test]
fn wrong_variants_are_refused() {
    let dir = scratch("wrong-variants");
    fs::write(dir.join("small.toml"), format!("{SMALL}{VARIANTS}")).unwrap();
    fs::write(dir.join("none.toml"), SMALL).unwrap();
    for (file, args, why) in [
        (
            "small.toml",
            "--variant nope",
            "the scenario has no variant `nope` help: its variants are pfc, cut, irn; type all",
        ),
        (
            "none.toml",
            "--variant all",
            "the scenario has no variant `all` help: write a table such as [[variant]]",
        ),
        ("small.toml", "--variant irn,irn", "`irn` is given twice"),
        (
            "small.toml",
            "--variant irn --set transport.kind=go-back-n",
            "of --set has no effect, because `transport.kind` of variant `irn`",
        ),
        (
            "small.toml",
            "--variant pfc --vary flow_control.scheme=pfc,none",
            "of variant `pfc` has no effect, because `flow_control.scheme` of --vary",
        ),
        (
            "small.toml",
            "--variant all --baseline tcp",
            "--baseline: no run has the value tcp; the values are pfc, cut, irn",
        ),
        ("small.toml", "--baseline pfc", "required arguments were not provided"),
    ] {
        let done =
            xoff(&dir, &[&["run", file, "--no-out"], &args.split(' ').collect::<Vec<_>>()[..]].concat());
        assert!(!done.status.success() && err(&done).contains(why), "{args}: {}", err(&done));
    }
    // A key that does not exist names the variant's run before anything runs.
    let wrong = format!("{SMALL}[[variant]]\nname = \"a\"\nset = {{ flow_control.xof = \"1kB\" }}\n");
    fs::write(dir.join("wrong.toml"), wrong).unwrap();
    let done = xoff(&dir, &["run", "wrong.toml", "--variant", "a"]);
    assert!(
        err(&done).contains("unknown key `xof`") && err(&done).contains("did you mean `xoff`"),
        "{}",
        err(&done)
    );
    assert!(!dir.join("xoff-runs").exists());
}

#[test]
fn one_seed_is_said_plainly() {
    let dir = scratch("one-seed");
    let done = xoff(&dir, &["run", "small.toml", "--no-out", "--seeds", "5"]);
    assert!(
        err(&done).contains("--seeds 5 is one seed, number 5; for 5 seeds type --seeds 1..5"),
        "{}",
        err(&done)
    );
    let done = xoff(&dir, &["run", "small.toml", "--no-out", "--seeds", "1..2"]);
    assert!(!err(&done).contains("one seed"));
}

#[test]
fn the_results_page_has_every_key_and_column_of_a_grid() {
    let dir = scratch("docs");
    let done = xoff(&dir, &["run", "small.toml", "--json", "--out", "g", "--vary", "run.duration=10us"]);
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    let page =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/RESULTS.md")).unwrap();
    let listed = |heading: &str| -> Vec<String> {
        let begin = page.find(heading).unwrap_or_else(|| panic!("no heading {heading}")) + heading.len();
        let body = &page[begin..];
        let body = &body[..body.find("\n## ").unwrap_or(body.len())];
        let cells = body.lines().filter_map(|l| l.strip_prefix('|')?.split('|').next());
        cells.flat_map(|c| c.split('`').skip(1).step_by(2)).map(String::from).collect()
    };
    let reader = SerializedFileReader::new(fs::File::open(dir.join("g/grid.parquet")).unwrap()).unwrap();
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let columns: Vec<&str> =
        schema.columns().iter().map(|c| c.name()).filter(|n| *n != "run.duration").collect();
    let (parts, columns): (Vec<&str>, Vec<&str>) =
        columns.into_iter().partition(|name| name.starts_with("class.") || name.starts_with("size."));
    assert_eq!(listed("\n## `grid.parquet`\n"), columns);
    assert_eq!(parts[..2], ["class.poisson.flows", "class.poisson.finished"]);
    assert_eq!(parts.len(), (2 + 4) * 11, "{parts:?}");
    let keys = |v: &Value| v.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let said: BTreeSet<String> = listed("\n## `grid.json`\n").into_iter().collect();
    assert_eq!(said, keys(&read(dir.join("g/grid.json"))));
    let said: BTreeSet<String> = listed("\n## The comparison as JSON\n").into_iter().collect();
    assert_eq!(said, keys(&serde_json::from_slice(&done.stdout).unwrap()));
}
