//! `xoff repro`: an experiment from its file to its verdicts.

use crate::common::root;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// A directory of this test, which is not there yet.
fn place(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("repro-{test}"));
    let _ = fs::remove_dir_all(&path);
    path
}

fn xoff(out: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xoff"));
    command.current_dir(root()).arg("repro").args(args);
    command.arg("--out").arg(out).output().unwrap()
}

/// Every file below a directory, without wall times: all but manifests, and no seconds.
fn files(dir: &Path, into: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, into);
        } else if path.file_name().unwrap() != "manifest.json" {
            let bytes = fs::read(&path).unwrap();
            let timeless = str::from_utf8(&bytes).map(|text| timeless(text).into());
            into.insert(path.display().to_string(), timeless.unwrap_or(bytes));
        }
    }
}

/// A text without the seconds of experiments.
fn timeless(text: &str) -> String {
    let text = text.split("\n## Slowest experiments\n").next().unwrap_or_default();
    text.lines().filter(|line| !line.contains("\"seconds\":")).map(|line| format!("{line}\n")).collect()
}

/// Results without the seconds of experiments. Whether all have them, of those with runs of their own.
fn untimed(results: &[u8]) -> (Value, bool) {
    let mut results: Value = serde_json::from_slice(results).unwrap();
    let mut timed = true;
    for e in results["experiments"].as_array_mut().unwrap() {
        let seconds = e.as_object_mut().unwrap().remove("seconds");
        timed &= seconds.is_some_and(|s| s.as_f64().unwrap() > 0.0) == e["runs_of"].is_null();
    }
    (results, timed)
}

fn all_files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    files(dir, &mut found);
    found.into_iter().map(|(k, v)| (k.trim_start_matches(dir.to_str().unwrap()).to_string(), v)).collect()
}

#[test]
fn a_figure_is_run_judged_drawn_and_resumed() {
    let out = place("fig13");
    let done = xoff(&out, &["pyrrha/fig13", "--quick", "--quiet", "--jobs", "2"]);
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(text.contains("quick version") && text.contains("fig13.pfc"), "{text}");
    let (results, timed) = untimed(&fs::read(out.join("results.json")).unwrap());
    assert!(timed);
    assert_eq!(results["quick"], true);
    let claims = results["experiments"][0]["claims"].as_array().unwrap();
    let verdict = |id: &str| claims.iter().find(|c| c["id"] == id).unwrap()["verdict"].clone();
    // PFC and one shared queue deadlock, separate queues do not: this result does not depend on the amount of
    // traffic.
    for id in ["fig13.pfc", "fig13.bfc-collision", "fig13.bfc-isolated"] {
        assert_eq!(verdict(id), "reproduced", "{id}");
    }
    let svg = fs::read_to_string(out.join("pyrrha/fig13/throughput.svg")).unwrap();
    assert!(svg.contains("quick version"));
    let csv = fs::read_to_string(out.join("pyrrha/fig13/throughput.csv")).unwrap();
    assert!(csv.lines().count() > 300 && csv.contains("bfc-distinct-queues,F3,"), "{}", csv.lines().count());

    // An existing grid is not overwritten without a request.
    let again = xoff(&out, &["pyrrha/fig13", "--quick", "--quiet"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("--resume"));

    // Two runs are lost and made again: the same bytes, for another number of jobs.
    let before = all_files(&out);
    for run in fs::read_dir(out.join("pyrrha/fig13/runs")).unwrap().take(2) {
        fs::remove_dir_all(run.unwrap().path()).unwrap();
    }
    fs::remove_file(out.join("pyrrha/fig13/result.json")).unwrap();
    let resumed = xoff(&out, &["pyrrha/fig13", "--quick", "--quiet", "--resume", "--json", "--jobs", "1"]);
    assert!(resumed.status.success());
    assert_eq!(untimed(&resumed.stdout), (results, true));
    assert!(before == all_files(&out));
}

/// One experiment on a flow from one host to another, of paper `p`. `runs` are its runs.
fn experiment(dir: &Path, runs: &str) {
    fs::create_dir_all(dir.join("p")).unwrap();
    let text = format!(
        r#"paper = "p"
id = "e"
title = "t"
section = "1"
kind = "simulation"

[scenario.topology]
kind = "line"
switches = 1
hosts_per_switch = 2
link = {{ rate = "100Gbps", delay = "1us" }}

[[scenario.traffic]]
kind = "flow"
src = "H0"
dst = "H1"

{runs}
[quick]
set = {{ "traffic.0.size" = "1kB" }}

[[metric]]
name = "fct"
of = "fct"
statistic = "max"

[[claim]]
id = "e.c"
statement = "s"
subject = "a"
against = "none"
metric = "m"
relation = "shape"

[[claim.measure]]
run = "one"
metric = "fct"
says = "s"
low = 0
"#
    );
    fs::write(dir.join("p/e.toml"), text).unwrap();
}

fn run_of_size(name: &str, size: &str) -> String {
    format!("[[run]]\nname = \"{name}\"\nset = {{ \"traffic.0.size\" = \"{size}\" }}\n")
}

/// An interrupted `--sensitivity` has the changes that were made, ends as interrupted, and stores no table beside the full
/// results.
#[cfg(unix)]
#[test]
fn an_interrupted_table_has_only_what_was_made() {
    let (full, quick, dir) = (place("whole"), place("interrupted"), place("interrupted-experiments"));
    let chosen = |key: &str, value: &str, other: &str| {
        format!(
            "[[chosen]]\nkey = \"{key}\"\nvalue = \"{value}\"\nalternatives = [\"{other}\"]\nreason = \"r\"\n"
        )
    };
    let chosen = chosen("run.drain", "0s", "1us") + &chosen("transport.mtu", "1000B", "1B");
    experiment(&dir, &(run_of_size("one", "1MB") + &chosen));
    let base = ["p/e", "--experiments", dir.to_str().unwrap()];
    assert!(xoff(&full, &[&base[..], &["--quiet"]].concat()).status.success());

    let text = fs::read_to_string(dir.join("p/e.toml")).unwrap();
    fs::write(dir.join("p/e.toml"), text.replace("\"1kB\"", "\"40MB\"")).unwrap();
    let stored = full.join("results.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_xoff"));
    command.current_dir(root()).arg("repro").args(base).args(["--quick", "--sensitivity", "--jobs", "1"]);
    command.arg("--beside").arg(&stored).arg("--out").arg(&quick);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let runs = quick.join("p/e/sensitivity/runs");
    while fs::read_dir(&runs)
        .map_or(0, |runs| runs.flatten().filter(|r| r.path().join("summary.json").exists()).count())
        == 0
    {
        thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let done = child.wait_with_output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    assert_eq!(done.status.code(), Some(130), "{text}{}", String::from_utf8_lossy(&done.stderr));
    assert!(text.contains("PARTIAL: 2 of 3 runs finished") && !text.contains("undecided"), "{text}");
    let read = |path: PathBuf| -> Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    let changes = read(quick.join("p/e/result.json"))["sensitivity"].clone();
    assert_eq!(changes.as_array().map(Vec::len), Some(1), "{changes}");
    assert_eq!(changes[0]["flips"], Value::Array(Vec::new()));
    assert_eq!(read(quick.join("results.json"))["experiments"][0]["sensitivity"], Value::Null);
}

/// A change makes only runs that a claim is judged by, and not those whose scenario it leaves the same.
#[test]
fn a_change_makes_only_the_runs_that_a_verdict_needs() {
    let (out, dir) = (place("needed"), place("needed-experiments"));
    let chosen = |key: &str, value: &str, other: &str, runs: &str| {
        format!(
            "[[chosen]]\nkey = \"{key}\"\nvalue = \"{value}\"\nalternatives = [\"{other}\"]\n{runs}reason = \"r\"\n"
        )
    };
    let runs = run_of_size("one", "1MB") + &run_of_size("two", "2MB") + &run_of_size("reading", "3MB");
    let of_two = chosen("transport.header", "48B", "500B", "runs = [\"two\"]\n");
    experiment(&dir, &(runs + &chosen("transport.mtu", "1000B", "500B", "") + &of_two));
    let path = dir.join("p/e.toml");
    let reading = "[[chosen]]\nwhat = \"the moon\"\nreason = \"r\"\n\
                   instead = [{ choice = \"the sun\", runs = { one = \"reading\" } }]\n";
    let text = fs::read_to_string(&path)
        .unwrap()
        .replace("[quick]\nset = { \"traffic.0.size\" = \"1kB\" }\n", reading);
    let more = "[[claim.measure]]\nrun = \"two\"\nmetric = \"fct\"\nsays = \"s\"\nlow = 0\n\n\
                [[claim.reading]]\nchoice = \"c\"\nruns = { \"one\" = \"reading\" }\n";
    fs::write(&path, text + more).unwrap();
    let done =
        xoff(&out, &["p/e", "--experiments", dir.to_str().unwrap(), "--quiet", "--json", "--sensitivity"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let results: Value = serde_json::from_slice(&done.stdout).unwrap();
    let made: Vec<String> = fs::read_dir(out.join("p/e/sensitivity/runs"))
        .unwrap()
        .map(|run| run.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(made.len(), 3, "{made:?}");
    assert!(!made.iter().any(|name| name.contains("reading")), "{made:?}");
    let e = &results["experiments"][0];
    assert_eq!((&e["runs"], &e["done"]), (&6.into(), &6.into()));
    let means = |change: usize| {
        let means = &e["sensitivity"][change]["claims"][0]["means"];
        [0, 1].map(|measure| means[measure].as_f64().unwrap())
    };
    let chosen = e["as_chosen"]["claims"][0]["means"].clone();
    // Smaller packets have more bytes of headers in both runs, longer headers in the second one.
    assert!(means(0)[0] > chosen[0].as_f64().unwrap() && means(0)[1] > chosen[1].as_f64().unwrap());
    assert!(means(1)[0] == chosen[0].as_f64().unwrap() && means(1)[1] > chosen[1].as_f64().unwrap());
    // The other reading is judged by runs that are there.
    assert_eq!(e["sensitivity"][2]["change"], "the sun");
    assert!(means(2)[0] > chosen[0].as_f64().unwrap() && means(2)[1] == chosen[1].as_f64().unwrap());
}

/// Two equal runs are an error, unless only the shorter version makes them equal.
#[test]
fn the_shorter_version_may_make_runs_equal() {
    let (out, dir) = (place("equal"), place("equal-experiments"));
    let experiment =
        |other: &str| experiment(&dir, &(run_of_size("one", "1MB") + &run_of_size("other", other)));
    let repro = |more: &[&str]| {
        let _ = fs::remove_dir_all(&out);
        xoff(&out, &[&["p/e", "--experiments", dir.to_str().unwrap(), "--quiet"], more].concat())
    };
    experiment("2MB");
    for more in [&[][..], &["--quick"]] {
        let done = repro(more);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    experiment("1000kB");
    let refused = repro(&[]);
    assert_eq!(refused.status.code(), Some(1));
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(text.contains("(run=one) and run 2 of 2 (run=other) have the same scenario"), "{text}");
}

#[test]
fn figures_of_the_same_runs_share_them() {
    let (out, dir) = (place("shared"), place("shared-experiments"));
    fs::create_dir_all(dir.join("p")).unwrap();
    let owner = r#"paper = "p"
id = "runs"
title = "t"
section = "1"
kind = "simulation"
seeds = [1, 2]

[scenario.topology]
kind = "dumbbell"
left = 2
right = 1
link = { rate = "100Gbps", delay = "1us" }
bottleneck = { rate = "100Gbps", delay = "1us" }

[[scenario.traffic]]
kind = "incast"
fan_in = 2
to = "H2"

[[vary]]
key = "traffic.0.size"
values = ["10kB", "30kB"]

[[chosen]]
key = "transport.mtu"
value = "1kB"
reason = "r"

[[metric]]
name = "fct"
of = "fct"
statistic = "max"

[[metric]]
name = "hosts"
of = "hosts"

[[metric]]
name = "switches"
of = "switches"

[[metric]]
name = "size"
of = "size"
statistic = "p50"
unit = "B"

[[metric]]
name = "large"
of = "share"
min_size = "20kB"

[[plot]]
name = "fct"
kind = "bars"
title = "FCT"
metrics = ["fct"]

[[claim]]
id = "runs.c"
statement = "s"
subject = "a"
against = "none"
metric = "fct"
relation = "at_least"
low = 1
measure = [{ run = "run", metric = "fct" }]

[[claim]]
id = "runs.counted"
statement = "s"
subject = "a"
against = "none"
metric = "counts"
relation = "shape"
measure = [
    { run = "run", metric = "hosts", says = "s", low = 3 },
    { run = "run", metric = "switches", says = "s", low = 2 },
    { run = "run", metric = "size", says = "s", low = 1 },
    { run = "run", metric = "large", says = "s", low = 0 },
]
"#;
    fs::write(dir.join("p/runs.toml"), owner).unwrap();
    // Entries about the runs are left out: from [scenario] to the metrics.
    let (head, rest) = (owner.split("seeds").next().unwrap(), &owner[owner.find("[[metric]]").unwrap()..]);
    let figure = format!("{head}runs_of = \"runs\"\n\n{rest}").replace("\"runs\"\ntitle", "\"fig1\"\ntitle");
    let figure = figure.replace("\"runs.c", "\"fig1.c").replace("statistic = \"max\"", "statistic = \"min\"");
    fs::write(dir.join("p/fig1.toml"), figure).unwrap();
    let dir = dir.to_str().unwrap();
    let run = |out: &Path, what: &str| {
        let done = xoff(out, &[what, "--experiments", dir, "--quiet", "--json", "--sensitivity"]);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        serde_json::from_slice::<Value>(&done.stdout).unwrap()
    };
    let results = run(&out, "p");
    let found = results["experiments"].as_array().unwrap();
    // In the order of their names, though the runs are the second's.
    assert_eq!((&found[0]["id"], &found[1]["id"]), (&"fig1".into(), &"runs".into()));
    assert_eq!((&found[0]["runs_of"], &found[1]["runs_of"]), (&"runs".into(), &Value::Null));
    assert_eq!(
        (&found[0]["chosen"], &found[0]["sensitivity"][0]["change"]),
        (&Value::Array(vec![]), &found[1]["sensitivity"][0]["change"])
    );
    let mean = |e: &Value| e["claims"][0]["measures"][1]["mean"].as_f64().unwrap();
    assert!(mean(&found[0]) < mean(&found[1]), "the least of two and the greatest, of one run");
    // By hand: two senders, a receiver and two switches; two flows of one size in each run.
    let of = |e: &Value| {
        let measures = e["claims"][1]["measures"].as_array().unwrap().clone();
        measures.iter().map(|m| m["mean"].as_f64().unwrap()).collect::<Vec<f64>>()
    };
    assert_eq!(of(&found[0]), [3.0, 3.0, 2.0, 2.0, 10_000.0, 30_000.0, 0.0, 1.0]);
    assert!(out.join("p/runs/runs").is_dir() && !out.join("p/fig1/runs").exists());
    assert!(out.join("p/fig1/fct.svg").is_file() && out.join("p/fig1/result.json").is_file());
    // A separate run makes them too, with the same result.
    let alone = place("shared-alone");
    let again = run(&alone, "p/fig1");
    assert_eq!(again["experiments"][0], found[0]);
    assert!(alone.join("p/runs/runs").is_dir() && !alone.join("p/runs/result.json").exists());
}

#[test]
fn every_plan_is_worked_out_before_anything_runs() {
    let (out, dir) = (place("wrong"), place("wrong-experiments"));
    fs::create_dir_all(dir.join("p")).unwrap();
    let good = fs::read_to_string(root().join("experiments/pyrrha/fig13.toml")).unwrap();
    let good = good.replace("paper = \"pyrrha\"", "paper = \"p\"");
    fs::write(dir.join("p/fig13.toml"), &good).unwrap();
    let named = good.replace("id = \"fig13", "id = \"fig14");
    fs::write(dir.join("p/fig14.toml"), named.replace("delay = \"600ns\"", "delay = \"600nn\"")).unwrap();
    let dir = dir.to_str().unwrap();
    let done = xoff(&out, &["--experiments", dir, "--quiet"]);
    let text = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(1));
    // The place in the experiment's own file.
    assert!(
        text.contains("fig14.toml:") && text.contains("600nn") && text.contains("links[0].delay"),
        "{text}"
    );
    assert!(!out.exists());
    for (what, said) in [("q", "unknown paper `q`"), ("p/fig1", "did you mean `fig13`?")] {
        let done = xoff(&out, &[what, "--experiments", dir]);
        let text = String::from_utf8(done.stderr).unwrap();
        assert!(done.status.code() == Some(1) && text.contains(said), "{text}");
    }
    let mut list = Command::new(env!("CARGO_BIN_EXE_xoff"));
    let list = list.args(["repro", "--experiments", dir, "--list"]).output().unwrap();
    assert!(String::from_utf8(list.stdout).unwrap().contains("p/fig14"));
}

/// Pyrrha's records, by hand: four senders to each of two hosts, two of which send to both; and one incast
/// through a rack's uplink that is too slow for it.
#[test]
fn pyrrha_s_records_can_be_measured() {
    let (out, dir) = (place("pyrrha"), place("pyrrha-experiments"));
    fs::create_dir_all(dir.join("p")).unwrap();
    let metrics = [
        ("most", "pyrrha.isolation_queues", "H*"),
        ("mean", "pyrrha.isolation_queues.mean", "H*"),
        ("roots", "pyrrha.standing_roots", ""),
        ("of-h0", "pyrrha.standing_roots", "S0.0:0"),
        ("of-uplinks", "pyrrha.standing_roots", "S0.1:*"),
        ("merge-time", "merge-time", ""),
        ("merged-pauses", "merged-pauses", ""),
        ("merged-victims", "merged-victims", ""),
        ("moves", "pyrrha.moves", ""),
    ];
    let mut text = String::from(
        r#"paper = "p"
id = "e"
title = "t"
section = "1"
kind = "simulation"

[scenario.topology]
kind = "leaf-spine"
leaves = 2
spines = 1
hosts_per_leaf = 18
host_link = { rate = "100Gbps", delay = "600ns" }
fabric_link = { rate = "1Tbps", delay = "600ns" }

[scenario.switch]
buffer = "20MB"

[scenario.flow_control]
scheme = "pyrrha"

[[scenario.traffic]]
kind = "burst"
flows = 1
size = "1MB"
from = ["H18..H21"]
to = ["H0"]

[[scenario.traffic]]
kind = "burst"
flows = 1
size = "1MB"
from = ["H20..H23"]
to = ["H1"]

[scenario.run]
duration = "100us"

[scenario.measure]
blocking = true

[[run]]
name = "two"

[[run]]
name = "tree"
set = { "topology.fabric_link.rate" = "200Gbps", "traffic.0.from" = ["H18..H33"], "traffic.1.to" = ["H0"] }
"#,
    );
    for (name, of, port) in metrics {
        text += &format!("\n[[metric]]\nname = \"{name}\"\nof = \"{of}\"\n");
        if !port.is_empty() {
            text += &format!("port = \"{port}\"\n");
        }
    }
    text += "\n[[claim]]\nid = \"e.c\"\nstatement = \"s\"\nsubject = \"a\"\nagainst = \"none\"\nmetric = \"m\"\n\
             relation = \"shape\"\n";
    for run in ["two", "tree"] {
        for (name, ..) in metrics {
            text += &format!(
                "\n[[claim.measure]]\nrun = \"{run}\"\nmetric = \"{name}\"\nsays = \"s\"\nlow = 0\n"
            );
        }
    }
    fs::write(dir.join("p/e.toml"), text).unwrap();
    let done = xoff(&out, &["p/e", "--experiments", dir.to_str().unwrap(), "--quiet", "--json"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let results: Value = serde_json::from_slice(&done.stdout).unwrap();
    let measures = results["experiments"][0]["claims"][0]["measures"].as_array().unwrap().clone();
    let found: Vec<f64> = measures.iter().map(|m| m["mean"].as_f64().unwrap()).collect();
    // H18, H19, H22 and H23 have a queue for one root, H20 and H21 for two. The 1 Tbit/s between racks is no
    // root, so no port claims in vain.
    assert_eq!(found[..5], [2.0, 8.0 / 6.0, 2.0, 1.0, 0.0]);
    assert_eq!(found[5..9], [0.0; 4], "no merge, and each packet has one root ahead");
    // Both claim. The uplink abdicates when it receives the name of H0's port, three links from the hosts: a
    // MERGE crosses one of them.
    assert_eq!(found[11..14], [1.0, 1.0, 0.0]);
    let (time, pauses) = (found[14], found[15]);
    assert!((0.6..2.0).contains(&time) && pauses >= 16.0, "a merge took {time} us and ended {pauses} pauses");
}

/// One experiment is made again, and all others are those of before, in the library's order.
#[test]
fn one_goes_beside_those_of_before() {
    let (out, quick) = (place("beside"), place("beside-quick"));
    let before = fs::read_to_string(root().join("experiments/results.json")).unwrap();
    // A choice in words is that of the file, whatever it was before.
    let other = before.replace("a packet goes round until it has crossed 64 links", "the moon");
    assert_ne!(other, before);
    fs::create_dir_all(&quick).unwrap();
    let stored = quick.join("stored.json");
    fs::write(&stored, other).unwrap();
    let args = ["roundabout/fig5", "--quiet", "--json", "--beside", stored.to_str().unwrap()];
    let done = xoff(&out, &args);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    // Nothing else depends on the clock: made again, it is the same.
    assert_eq!(untimed(&done.stdout).0, untimed(before.as_bytes()).0);
    let before: Value = serde_json::from_str(&before).unwrap();
    // So are the scoreboard and the pages of all papers.
    let mut pages = vec!["REPRODUCTION.md".to_string()];
    for entry in fs::read_dir(out.join("reproduction")).unwrap() {
        pages.push(format!("reproduction/{}", entry.unwrap().file_name().to_str().unwrap()));
    }
    // Those of the five papers and of ten other sources, and the scoreboard.
    assert_eq!(pages.iter().filter(|page| page.ends_with(".md")).count(), 16);
    for page in pages {
        let [written, committed] = [out.join(&page), root().join("docs").join(&page)]
            .map(|path| fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
            .map(|text| timeless(&text));
        assert!(written == committed, "docs/{page} is not {}", out.join(&page).display());
    }

    let file = quick.join("quick.json");
    fs::write(&file, serde_json::to_vec(&Value::Object(quicker(before))).unwrap()).unwrap();
    let done = xoff(&quick, &["roundabout/fig5", "--beside", file.to_str().unwrap()]);
    let text = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.code() == Some(1) && text.contains("--quick"), "{text}");
}

fn quicker(results: Value) -> serde_json::Map<String, Value> {
    let Value::Object(mut results) = results else { panic!("an object") };
    results.insert("quick".into(), true.into());
    results
}

/// The program contains the experiments, and the files that these name.
#[test]
fn without_a_directory_the_experiments_of_the_program_are_run() {
    let dir = place("bundled");
    // A directory of this name without experiments is something else.
    fs::create_dir_all(dir.join("experiments/mine")).unwrap();
    let within = |at: &Path, args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_xoff")).current_dir(at).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let bundled = |args: &[&str]| within(&dir, &[&["repro"], args].concat());
    let list = bundled(&["--list"]);
    let (last, papers) = list.trim_end().rsplit_once("\n\n").unwrap();
    assert_eq!(papers, "xoff contains these experiments; `xoff repro --write DIR` writes their files.");
    let disk = within(&root(), &["repro", "--list"]);
    assert_eq!(disk.trim_end(), last);
    assert!(disk.lines().all(|line| line.chars().count() <= 120), "{disk}");
    // One with a scenario in its file, one with scenarios in files beside it, and one whose traffic is in files.
    for claim in ["pyrrha/fig13.pfc", "roundabout/fig6", "pyrrha/r5"] {
        let out = place("bundled-disk");
        let out = out.to_str().unwrap();
        let args = [claim, "--quick", "--quiet", "--jobs", "2", "--out"];
        let disk = within(&root(), &[&["repro"], &args[..], &[out]].concat());
        let text = bundled(&[&args[..], &["r"]].concat());
        assert_eq!(text.replace(", after `xoff repro --write experiments`", ""), disk);
        assert!(text.lines().all(|l| l.chars().count() <= 120 || l.starts_with("  xoff run ")), "{text}");
        let results = |dir: &Path| untimed(&fs::read(dir.join("results.json")).unwrap());
        assert_eq!(results(&dir.join("r")), results(Path::new(out)));
        fs::remove_dir_all(dir.join("r")).unwrap();
    }
    // Once they are written, the commands that it prints work.
    let text = bundled(&["pyrrha/fig13.pfc", "--quiet", "--out", "r"]);
    assert!(text.contains("Each run by itself, after `xoff repro --write experiments`:"), "{text}");
    assert!(bundled(&["--write", "experiments"]).contains("experiments to experiments"));
    for file in ["pyrrha/fig13.toml", "pyrrha/data/r5-incast.csv", "bifrost/scenarios/line.toml"] {
        let [ours, theirs] = [&dir, &root()].map(|at| fs::read(at.join("experiments").join(file)).unwrap());
        assert_eq!(ours, theirs);
    }
    within(
        &dir,
        &["run", "experiments/pyrrha/fig13.toml", "--set", "flow_control.alpha=2", "--no-out", "--quiet"],
    );
    // Now this directory is read.
    assert!(!bundled(&["--list"]).contains("--write"));
}
