//! `xoff report` from outside: its page agrees with the run, is complete, needs no other file, and is small.

use crate::common::{scratch, xoff};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

fn good(output: Output) {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn example(dir: &Path, name: &str, args: &[&str]) {
    let path = format!("{EXAMPLES}/{name}.toml");
    good(xoff(dir, &[&["run", &path, "--quiet"], args].concat()));
}

/// The page of a run, and the document in it.
fn page(dir: &Path, run: &str) -> (String, Value) {
    good(xoff(dir, &["report", run]));
    let page = fs::read_to_string(dir.join(run).join("report.html")).unwrap();
    let document = page.split_once("id=\"document\">").unwrap().1.split_once("</script>").unwrap().0;
    let document = serde_json::from_str(document).unwrap();
    (page, document)
}

fn summary(dir: &Path, run: &str) -> Value {
    serde_json::from_slice(&fs::read(dir.join(run).join("summary.json")).unwrap()).unwrap()
}

fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn names<'v>(document: &'v Value, pointer: &str) -> Vec<&'v str> {
    list(document, pointer).iter().filter_map(|v| v["name"].as_str()).collect()
}

/// Properties of every page of a run.
fn agrees(document: &Value, summary: &Value) {
    assert_eq!(document["kind"], "run");
    for key in ["verdicts", "notes", "sizes", "classes"] {
        assert_eq!(document[key], summary[key], "{key}");
    }
    assert_eq!(document["end_ps"], summary["simulated_ps"]);
    assert_eq!(document["complete"], summary["complete"]);
    assert_eq!(document["pauses"]["count"], summary["pauses"]["count"]);
    // The distributions are of the same flows as the tables of the terminal.
    let all = list(summary, "/sizes").last().unwrap();
    let cdf = &document["flows"]["cdfs"][0];
    assert_eq!((&cdf["flows"], &cdf["finished"]), (&all["flows"], &all["finished"]));
    for (at, key) in [(49, "p50"), (94, "p95"), (98, "p99")] {
        let shown = cdf["slowdown"].get(at).cloned().unwrap_or(Value::Null);
        assert_eq!(shown, all["slowdown"][key], "{key}");
    }
    let grouped: u64 = list(document, "/flows/by_size").iter().map(|g| g["flows"].as_u64().unwrap()).sum();
    assert_eq!(all["finished"], grouped);
    // The fullest buffer of all is that of a layer.
    let peak = &summary["peaks"]["buffer"];
    let marked = list(document, "/fabric/layers")
        .iter()
        .any(|layer| layer["buffer"]["place"] == peak["place"] && layer["buffer"]["bytes"] == peak["bytes"]);
    assert!(peak.is_null() || marked, "{peak} {}", document["fabric"]["layers"]);
    // Each port leads to one that leads back.
    let ports = list(document, "/fabric/ports");
    for (i, port) in ports.iter().enumerate() {
        assert_eq!(ports[port["peer"].as_u64().unwrap() as usize]["peer"], i);
    }
}

#[test]
fn a_deadlock_is_reported_drawn_and_explained() {
    let dir = scratch("deadlock");
    example(
        &dir,
        "bcube-deadlock",
        &["--set", "measure.explain=true", "--set", "measure.blocking=true", "--out", "run"],
    );
    let (page, document) = page(&dir, "run");
    let summary = summary(&dir, "run");
    agrees(&document, &summary);
    let headline = document["headline"].as_str().unwrap();
    for words in [
        "149 of 952 flows",
        "with pfc",
        "load 0.6",
        "No packet was dropped",
        "DEADLOCK: at 2.151 ms, 8 ports",
    ] {
        assert!(headline.contains(words), "{headline}");
    }
    assert!(page.contains(&format!("<p class=\"headline\">{headline}</p>")));
    // The cycle is that of the summary, and all of its ports are paused at its end.
    let ports = names(&document, "/fabric/ports");
    let cycle: Vec<&str> = list(&document, "/deadlock/cycle")
        .iter()
        .map(|h| ports[h["port"].as_u64().unwrap() as usize])
        .collect();
    let wanted: Vec<&str> =
        list(&summary, "/deadlock/cycle").iter().map(|h| h["port"].as_str().unwrap()).collect();
    assert_eq!(cycle, wanted);
    let paused = |name: &str| {
        let port = ports.iter().position(|p| *p == name).unwrap();
        list(&document, "/pauses/ports").iter().find(|p| p["port"] == port).unwrap()
    };
    for name in &cycle {
        assert!(paused(name)["levels"].as_str().unwrap().ends_with('_'), "{name} is paused at the end");
        assert!(!document["stories"]["ports"][name].is_null(), "{name} has a story");
    }
    // PFC has one lossless priority here: its queues are the ports, and their pauses add up.
    let total: u64 = list(&document, "/pauses/ports").iter().map(|p| p["paused_ps"].as_u64().unwrap()).sum();
    assert_eq!(summary["pauses"]["total_ps"], total);
    let count: u64 = list(&document, "/pauses/ports").iter().map(|p| p["count"].as_u64().unwrap()).sum();
    assert_eq!(summary["pauses"]["count"], count);
    // Words are those of explain.
    let told = xoff(&dir, &["explain", "run", "--port", cycle[0]]);
    assert_eq!(document["stories"]["ports"][cycle[0]], String::from_utf8(told.stdout).unwrap());
    let (flow, story) = document["stories"]["flows"].as_object().unwrap().iter().next().unwrap();
    let told = xoff(&dir, &["explain", "run", "--flow", flow]);
    let told = String::from_utf8(told.stdout).unwrap();
    let sentences = story["text"].as_str().unwrap();
    assert!(sentences.len() > 100 && told.contains(sentences), "{sentences}\n{told}");
    // The bars of its ports add up to its time.
    let row =
        list(&document, "/flows/rows").iter().find(|row| row["id"].as_u64() == flow.parse().ok()).unwrap();
    let shares = list(story, "/steps").iter().flat_map(|step| step["shares"].as_array().unwrap());
    let took: u64 = shares.map(|share| share[2].as_u64().unwrap()).sum();
    assert_eq!(row["fct_ps"], took);
    // The banner has the instant at which the page opens.
    let banner = &document["banner"];
    assert_eq!((&banner["state"], &banner["at_ps"]), (&"deadlock".into(), &summary["deadlock"]["closed_ps"]));
    assert_eq!(banner["text"], "Deadlock at 2.151 ms: 8 ports, 84% of 952 flows unfinished.");
}

/// The worst finding of a run is its banner.
#[test]
fn a_banner_says_the_most_important_finding() {
    let dir = scratch("banner");
    let duration = ["--set", "run.duration=200us"];
    let lossy = [
        "--set",
        "flow_control.headroom=0B",
        "--set",
        "flow_control.xoff=380kB",
        "--set",
        "switch.buffer=400kB",
    ];
    for (example_name, set, state, words) in [
        ("victims", &duration[..], "victims", "of the time of all flows for congestion off their path"),
        ("hello", &[], "fine", "no victims, no deadlock: 1 flow finished. p99 slowdown 1.00."),
        ("leaf-spine", &duration, "slow", "did not finish"),
        ("victims", &lossy, "loss", "lossless packets were lost, first at "),
        (
            "itsy",
            &["--set", "flow_control.scheme=pfc"],
            "deadlock",
            "Deadlock at 176.5 us: 4 ports, 100% of 4 flows",
        ),
        ("itsy", &[], "slow", "A slow tail: 1% of the flows took at least 11.7× their ideal time."),
    ] {
        let run = format!("{example_name}-{state}-{}", set.len());
        let path = format!("{}/../../examples/{example_name}.toml", env!("CARGO_MANIFEST_DIR"));
        xoff(&dir, &[&["run", &path, "--quiet", "--out", &run][..], set].concat());
        let (_, document) = page(&dir, &run);
        let banner = &document["banner"];
        assert_eq!(banner["state"], state, "{banner}");
        assert!(banner["text"].as_str().unwrap().contains(words), "{banner}");
    }
}

#[test]
fn a_run_of_160_hosts_fits_in_3_megabytes() {
    let dir = scratch("leaf-spine");
    // Thresholds low enough for pauses everywhere, and everything measured.
    let set =
        ["flow_control.xoff=20kB", "flow_control.xon=15kB", "measure.explain=true", "measure.blocking=true"];
    let set: Vec<&str> = set.iter().flat_map(|s| ["--set", s]).collect();
    example(&dir, "leaf-spine", &[&set[..], &["--set", "traffic.0.load=0.8", "--out", "run"]].concat());
    let (page, document) = page(&dir, "run");
    agrees(&document, &summary(&dir, "run"));
    assert!(document["pauses"]["paused_ports"].as_u64().unwrap() > 100, "{}", document["headline"]);
    assert!(!document["stories"]["flows"].as_object().unwrap().is_empty());
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    assert_eq!(names(&document, "/fabric/layers"), ["hosts", "switches S0", "switches S1"]);
    // Nothing in it is fetched, and the same run gives the same page.
    for place in ["src=\"", "@import", "url("] {
        assert!(!page.split_once("id=\"document\"").unwrap().0.contains(place), "{place}");
    }
    good(xoff(&dir, &["report", "run", "--out", "again.html"]));
    assert_eq!(page, fs::read_to_string(dir.join("again.html")).unwrap());
}

#[test]
fn runs_that_measured_little_have_pages_too() {
    let dir = scratch("little");
    for (name, set) in [
        ("zeropod", vec!["--set", "run.duration=200us", "--set", "run.drain=1ms"]),
        (
            "dci",
            vec!["--set", "run.duration=200us", "--set", "run.drain=0us", "--set", "measure.explain=false"],
        ),
        // Without any flow, and without samples.
        (
            "victims",
            vec!["--set", "run.duration=1ns", "--set", "run.drain=0ns", "--set", "measure.explain=false"],
        ),
        ("all-reduce-loop", vec!["--set", "flow_control.scheme=pfc"]),
        ("hello", vec!["--set", "measure.explain=false"]),
    ] {
        example(&dir, name, &[&set[..], &["--out", name]].concat());
        let (_, document) = page(&dir, name);
        agrees(&document, &summary(&dir, name));
        assert!(document["stories"].is_null(), "{name}");
        let missing = list(&document, "/left_out")
            .iter()
            .any(|text| text.as_str().unwrap().contains("measure.explain"));
        assert!(missing, "{name}");
    }
}

/// The page shows a run that is idle for most of its time where its packets move.
/// The last link loses everything: the sender gives up after three timeouts of 4 ms.
#[test]
fn a_failed_flow_is_one_on_the_page() {
    let dir = scratch("failed");
    example(
        &dir,
        "hello",
        &["--set", "transport.retries=2", "--set", "loss=[{link=\"H1-S0.0\",rate=1.0}]", "--out", "hello"],
    );
    let (_, document) = page(&dir, "hello");
    agrees(&document, &summary(&dir, "hello"));
    let row = &document["flows"]["rows"][0];
    assert_eq!((&row["fct_ps"], &row["slowdown"]), (&Value::Null, &Value::Null));
    assert_eq!(row["failed_ps"], 12_000_000_000u64);
    assert_eq!(document["flows"]["cdfs"][0]["finished"], 0);
}

#[test]
fn the_time_axis_ends_where_nothing_changes_any_more() {
    let dir = scratch("still");
    example(&dir, "all-reduce-loop", &["--set", "flow_control.scheme=pfc", "--out", "run"]);
    let (_, document) = page(&dir, "run");
    let (axis, end) = (document["clock"]["end_ps"].as_u64().unwrap(), document["end_ps"].as_u64().unwrap());
    let closed = document["deadlock"]["closed_ps"].as_u64().unwrap();
    assert!(closed < axis && axis < end, "{closed} {axis} {end}");
    assert!(
        list(&document, "/left_out").iter().any(|text| text.as_str().unwrap().contains("nothing changes"))
    );
    // Sums are of the whole run all the same.
    let total: u64 = list(&document, "/pauses/ports").iter().map(|p| p["paused_ps"].as_u64().unwrap()).sum();
    assert_eq!(summary(&dir, "run")["pauses"]["total_ps"], total);
}

#[test]
fn a_grid_is_compared_as_the_terminal_compares_it() {
    let dir = scratch("grid");
    let vary =
        ["--vary", "flow_control.scheme=pfc,none", "--vary", "traffic.0.load=0.1,0.2", "--seeds", "1..2"];
    let path = format!("{EXAMPLES}/victims.toml");
    let set = ["--set", "run.duration=100us", "--set", "measure.explain=false"];
    let compared =
        xoff(&dir, &[&["run", &path, "--quiet", "--json", "--out", "grid"], &vary[..], &set[..]].concat());
    let compared: Value = serde_json::from_slice(&compared.stdout).unwrap();
    let (_, document) = page(&dir, "grid");
    assert_eq!((&document["kind"], &document["complete"]), (&"grid".into(), &true.into()));
    let headline = document["headline"].as_str().unwrap();
    assert!(
        headline.starts_with("8 runs of 4 points, 2 seeds each. The p99 slowdown is lowest ("),
        "{headline}"
    );
    let (shown, wanted) = (list(&document, "/points"), list(&compared, "/points"));
    assert_eq!((shown.len(), wanted.len()), (4, 4));
    for (shown, wanted) in shown.iter().zip(wanted) {
        assert_eq!((&shown["runs"], &shown["deadlocks"]), (&wanted["runs"], &wanted["deadlocks"]));
        for (i, metric) in list(&document, "/metrics").iter().enumerate() {
            let wanted = &wanted["metrics"][metric["name"].as_str().unwrap()];
            assert_eq!(shown["metrics"][i]["mean"], wanted["mean"], "{metric}");
            assert_eq!(shown["metrics"][i]["range"][0], wanted["low"], "{metric}");
        }
    }
    // A run of the grid has its own page, and does not mind it when the grid is resumed.
    let run = format!("grid/runs/{}", document["runs"][0]["name"].as_str().unwrap());
    good(xoff(&dir, &["report", &run]));
    good(xoff(
        &dir,
        &[&["run", &path, "--quiet", "--out", "grid", "--resume"], &vary[..], &set[..]].concat(),
    ));
    // A run that is missing makes it incomplete.
    fs::remove_dir_all(dir.join(&run)).unwrap();
    let (_, document) = page(&dir, "grid");
    assert_eq!(document["complete"], false);
    assert!(document["headline"].as_str().unwrap().starts_with("INCOMPLETE: 7 of 8 runs are finished."));
    assert_eq!(document["runs"][0]["status"], "pending");
}

/// Ctrl-C in the middle of a run: the page says so first of all.
#[cfg(unix)]
#[test]
fn the_page_of_an_interrupted_run_is_marked() {
    let dir = scratch("interrupt");
    let text = fs::read_to_string(format!("{EXAMPLES}/hello.toml")).unwrap();
    let child = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xoff"));
        command
            .current_dir(&dir)
            .args(args)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        command.spawn().unwrap()
    };
    fs::write(dir.join("long.toml"), text).unwrap();
    let mut child = child(&["run", "long.toml", "--set", "traffic.0.size=1000GB", "--out", "run"]);
    // By then it runs: it has read a few lines of scenario.
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert!(child.try_wait().unwrap().is_none(), "it would run for long");
    good(Command::new("kill").args(["-INT", &child.id().to_string()]).output().unwrap());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let (_, document) = page(&dir, "run");
    agrees(&document, &summary(&dir, "run"));
    assert!(
        document["headline"].as_str().unwrap().starts_with("INTERRUPTED at "),
        "{}",
        document["headline"]
    );
}

#[test]
fn directories_without_a_run_are_refused_and_no_file_is_left() {
    let dir = scratch("refused");
    example(&dir, "hello", &["--out", "run"]);
    let cases: [(&[&str], &str); 4] = [
        (&["report", "nothing"], "nothing does not exist"),
        (&["report", "."], ". is not a run directory of xoff"),
        (&["report", "run", "--out", "run"], "run is a directory"),
        (&["report", "run", "--out", "no/such/page.html"], "cannot be written"),
    ];
    for (args, words) in cases {
        let output = xoff(&dir, args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(err(&output).contains(words), "{args:?}: {}", err(&output));
    }
    // A damaged table is named, an older page stays, and so do no partial files.
    good(xoff(&dir, &["report", "run"]));
    let before = fs::read(dir.join("run/report.html")).unwrap();
    fs::write(dir.join("run/ports.parquet"), "damaged").unwrap();
    let output = xoff(&dir, &["report", "run"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("ports.parquet"), "{}", err(&output));
    assert_eq!(fs::read(dir.join("run/report.html")).unwrap(), before);
    let hidden = |dir: &Path| {
        fs::read_dir(dir)
            .unwrap()
            .filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'))
            .count()
    };
    assert_eq!((hidden(&dir), hidden(&dir.join("run"))), (0, 0));
    // The page belongs to its run.
    example(&dir, "hello", &["--out", "run", "--overwrite"]);
    assert!(!dir.join("run/report.html").exists());
}
