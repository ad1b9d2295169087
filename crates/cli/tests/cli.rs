//! The program from outside: usage, exit status, errors and output.

use crate::common::{self, xoff};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Two hosts and a switch with one flow between them.
const HELLO: &str = r#"
[topology]
kind = "line"
switches = 1
hosts_per_switch = 2
link = { rate = "100Gbps", delay = "1us" }

[[traffic]]
kind = "flow"
src = "H0"
dst = "H1"
size = "10kB"
"#;

/// An empty directory for one test, with `hello.toml` in it.
fn scratch(test: &str) -> PathBuf {
    let path = common::scratch(test);
    fs::write(path.join("hello.toml"), HELLO).unwrap();
    path
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Standard error in one line, without the frame that error reports are drawn in.
fn err(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    let words = text.split_whitespace().filter(|w| !["│", "×", "╰─▶", "|"].contains(w));
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn wrong_usage_exits_with_2() {
    let dir = scratch("usage");
    for args in [
        &[][..],
        &["fly"],
        &["run"],
        &["run", "hello.toml", "--set", "seed"],
        &["run", "hello.toml", "--set", "=7"],
        &["run", "hello.toml", "--out", "a", "--no-out"],
        &["run", "hello.toml", "--seed", "x"],
    ] {
        let output = xoff(&dir, args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "{args:?}");
    }
    let help = xoff(&dir, &["--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(out(&help).contains("130  interrupted"));
}

/// `UPDATE=1 cargo test` writes the file. `make prose` checks its sentences.
#[test]
fn the_help_of_every_verb_is_kept() {
    let dir = scratch("help");
    let mut text = out(&xoff(&dir, &["--help"]));
    let verbs: Vec<String> = text
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .map_while(|line| line.split_whitespace().next().map(str::to_string))
        .filter(|verb| verb != "help")
        .collect();
    assert!(verbs.len() >= 9, "{verbs:?}");
    for verb in verbs {
        let help = xoff(&dir, &[&verb, "--help"]);
        assert_eq!(help.status.code(), Some(0), "{verb}");
        text += &format!("\n$ xoff {verb} --help\n{}", out(&help));
    }
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help.txt");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&kept, &text).unwrap();
    }
    let before = fs::read_to_string(&kept).unwrap_or_default();
    let changed = text.lines().zip(before.lines()).find(|(now, before)| now != before);
    assert!(text == before, "tests/help.txt is not what the program prints: {changed:?}");
}

#[test]
fn files_without_a_scenario_are_refused() {
    let dir = scratch("no-file");
    let directory = xoff(&dir, &["run", "."]);
    assert_eq!(directory.status.code(), Some(1));
    assert!(err(&directory).contains(". is a directory, not a scenario file"), "{}", err(&directory));
    assert!(err(&directory).contains("hello.toml"));
    let missing = xoff(&dir, &["topo", "hello"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(err(&missing).contains("there is no file hello"), "{}", err(&missing));
    assert!(err(&missing).contains("did you mean hello.toml?"));
    assert!(!dir.join("xoff-runs").exists());
}

#[test]
fn a_wrong_scenario_shows_its_line() {
    let dir = scratch("wrong");
    fs::write(dir.join("wrong.toml"), HELLO.replace("size =", "sise =")).unwrap();
    let output = xoff(&dir, &["run", "wrong.toml"]);
    assert_eq!(output.status.code(), Some(1));
    let text = err(&output);
    assert!(text.contains("wrong.toml:12") && text.contains("sise") && text.contains("size"), "{text}");
    let set = xoff(&dir, &["run", "hello.toml", "--set", "run.sead=7"]);
    assert_eq!(set.status.code(), Some(1));
    assert!(err(&set).contains("--set run.sead=7"), "{}", err(&set));
    assert!(!dir.join("xoff-runs").exists(), "nothing runs, nothing is written");
}

#[test]
fn a_key_that_is_given_twice_is_refused() {
    let dir = scratch("twice");
    let refused = |args: &[&str], text: &str| {
        let output = xoff(&dir, args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(err(&output).contains(text), "{}", err(&output));
        assert!(output.stdout.is_empty() && !dir.join("xoff-runs").exists(), "nothing ran");
    };
    let twice = ["--set", "traffic.0.size=1kB", "--set", "traffic[0].size=2kB"];
    for verb in ["run", "topo", "traffic"] {
        refused(
            &[&[verb, "hello.toml"], &twice[..]].concat(),
            "`traffic.0.size` of --set has no effect, because `traffic.0.size` of --set replaces it",
        );
    }
    refused(
        &["run", "hello.toml", "--set", "run.seed=2", "--seed", "3"],
        "because `run.seed` of --set or --seed replaces it",
    );
    refused(
        &["run", "hello.toml", "--set", "run.seed=2", "--set", "run={}"],
        "`run.seed` of --set or --seed has no effect, because `run` of --set replaces it",
    );
    // A table first, and then a key of it.
    let part = ["run", "hello.toml", "--no-out", "--set", "run={ seed = 2 }", "--set", "run.duration=1ms"];
    assert_eq!(xoff(&dir, &part).status.code(), Some(0));
}

#[test]
fn unwritable_output_is_reported_before_simulating() {
    let dir = scratch("unwritable");
    fs::write(dir.join("file"), "").unwrap();
    for place in ["file", "file/run"] {
        let output = xoff(&dir, &["run", "hello.toml", "--out", place]);
        assert_eq!(output.status.code(), Some(1));
        assert!(err(&output).contains("file"), "{}", err(&output));
        assert!(output.stdout.is_empty(), "no answer, since nothing ran");
    }
}

#[test]
fn a_run_prints_results_and_writes_its_directory() {
    let dir = scratch("run");
    let table = xoff(&dir, &["run", "hello.toml"]);
    assert_eq!(table.status.code(), Some(0), "{}", err(&table));
    assert!(out(&table).contains("1 of 1 flow finished"), "{}", out(&table));
    assert!(out(&table).lines().all(|l| l.chars().count() <= 100));
    assert!(dir.join("xoff-runs/hello/manifest.json").is_file());

    // An older run stays, before anything is simulated.
    let manifest = fs::read(dir.join("xoff-runs/hello/manifest.json")).unwrap();
    let again = xoff(&dir, &["run", "hello.toml", "--seed", "9"]);
    assert_eq!(again.status.code(), Some(1));
    let why = err(&again);
    assert!(again.stdout.is_empty() && why.contains("xoff-runs/hello already contains a run"), "{why}");
    assert!(why.contains("--overwrite") && why.contains("--out DIR"), "{why}");
    assert_eq!(fs::read(dir.join("xoff-runs/hello/manifest.json")).unwrap(), manifest);

    // It is replaced by JSON's run on request; the output equals the file.
    let json = xoff(&dir, &["run", "hello.toml", "--json", "--quiet", "--seed", "9", "--overwrite"]);
    assert_eq!(json.status.code(), Some(0), "{}", err(&json));
    assert!(json.stderr.is_empty());
    let summary: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(summary["seed"], 9);
    assert_eq!(summary["stop"], "all-done");
    let file = fs::read_to_string(dir.join("xoff-runs/hello/summary.json")).unwrap();
    assert_eq!(out(&json), file);
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.join("xoff-runs/hello/manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["overrides"], serde_json::json!(["run.seed=9"]));
    assert_eq!(manifest["complete"], true);
}

#[test]
fn standard_output_has_no_wall_time() {
    let dir = scratch("same");
    let outputs = [0, 1].map(|_| out(&xoff(&dir, &["run", "hello.toml", "--no-out"])));
    assert!(!outputs[0].is_empty());
    assert_eq!(outputs[0], outputs[1]);
    assert!(!dir.join("xoff-runs").exists());
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let dir = scratch("pipe");
    for args in [&["schema"][..], &["schemes"], &["topo", "hello.toml"], &["run", "hello.toml", "--no-out"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_xoff"))
            .current_dir(&dir)
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take()); // before a byte is written
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", err(&output));
        assert!(!err(&output).contains("panicked"), "{args:?}");
    }
}

#[test]
fn traffic_as_text_and_as_data() {
    let dir = scratch("traffic");
    let text = xoff(&dir, &["traffic", "hello.toml", "--set", "run.duration=10us"]);
    assert_eq!(text.status.code(), Some(0), "{}", err(&text));
    // Ten packets of 1,062 B in 10 us at 100 Gbit/s.
    assert!(out(&text).contains("8.5%"), "{}", out(&text));
    let json = xoff(&dir, &["traffic", "hello.toml", "--json"]);
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(value["classes"][0]["bytes"], 10_000);
    assert_eq!(value["links"].as_array().unwrap().len(), 4);
    assert!(value["links"][0]["utilisation"].is_null());
    let wrong = xoff(&dir, &["traffic", "hello.toml", "--set", "traffic.0.size=0B"]);
    assert_eq!(wrong.status.code(), Some(1));
}

#[test]
fn flows_that_waited_to_the_end_are_reported() {
    let dir = scratch("waiting");
    let ring = HELLO.split("[[traffic]]").next().unwrap().to_string()
        + "[[traffic]]\nkind = \"ring-all-reduce\"\nsize = \"10kB\"\nrounds = 2\n[run]\nduration = \"4us\"\n";
    fs::write(dir.join("ring.toml"), ring).unwrap();
    let run = |more: &[&str]| {
        let output = xoff(&dir, &[&["run", "ring.toml", "--no-out", "--quiet"], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        out(&output).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    // Two hosts, four steps in all: at 4 us the second has begun, and no third.
    let short = run(&[]);
    assert!(
        short.contains("4 of the 6 flows of \"ring-all-reduce\" that depend on other flows never started"),
        "{short}"
    );
    assert!(!run(&["--set", "run.duration=1ms"]).contains("never started"));
}

#[test]
fn topo_as_text_and_as_data() {
    let dir = scratch("topo");
    let text = xoff(&dir, &["topo", "hello.toml"]);
    assert_eq!(text.status.code(), Some(0), "{}", err(&text));
    assert!(out(&text).contains("H0"));
    let json = xoff(&dir, &["topo", "hello.toml", "--json"]);
    let network: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(network["nodes"].as_array().unwrap().len(), 3);
    assert_eq!(network["links"].as_array().unwrap().len(), 2);
    assert_eq!(network["links"][0]["rate_bps"], 100_000_000_000u64);
    assert_eq!(network["traffic"][0]["bytes"], 10_000);
}

#[test]
fn schema_is_json_and_schemes_lists_its_keys() {
    let dir = scratch("schema");
    let schema: serde_json::Value = serde_json::from_slice(&xoff(&dir, &["schema"]).stdout).unwrap();
    assert!(schema["properties"]["flow_control"].is_object());
    let text = out(&xoff(&dir, &["schemes"]));
    for part in ["pfc", "802.1Qbb", "xoff", "headroom", "none", "go-back-n", "rto"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
}

/// A limit on file sizes replaces a full disk.
#[cfg(unix)]
#[test]
fn a_write_error_prints_the_results_and_leaves_no_directory() {
    let dir = scratch("full");
    let script = format!("trap '' XFSZ; ulimit -f 1; exec {} run hello.toml", env!("CARGO_BIN_EXE_xoff"));
    let output = Command::new("sh").current_dir(&dir).args(["-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    assert!(err(&output).contains("cannot be written"), "{}", err(&output));
    assert!(out(&output).contains("1 of 1 flow finished"));
    assert_eq!(fs::read_dir(dir.join("xoff-runs")).unwrap().count(), 0);
}

/// Ctrl-C in the middle of a run of many seconds.
#[cfg(unix)]
#[test]
fn an_interrupted_run_is_complete_and_marked() {
    let dir = scratch("interrupt");
    fs::write(dir.join("long.toml"), HELLO.replace("10kB", "1000GB")).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_xoff"))
        .current_dir(&dir)
        .args(["run", "long.toml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It has found its place for results, and listens soon after.
    while !dir.join("xoff-runs").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    std::thread::sleep(std::time::Duration::from_millis(500));
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", err(&output));
    assert!(out(&output).contains("INTERRUPTED"));
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.join("xoff-runs/long/manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["complete"], false);
    assert_eq!(manifest["stop"], "interrupted");
}

/// Headroom that is too small for the link loses packets, and the status says so.
#[test]
fn a_lossless_drop_exits_with_3_and_names_its_place() {
    let dir = scratch("lossless");
    let incast = HELLO.replace("hosts_per_switch = 2", "hosts_per_switch = 5").replace(
        "kind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"10kB\"",
        "kind = \"incast\"\nfan_in = 4\nto = \"H0\"\nsize = \"1MB\"",
    );
    let tight = format!(
        "{incast}\n[flow_control]\nscheme = \"pfc\"\nxoff = \"20kB\"\nxon = \"10kB\"\nheadroom = \"3kB\"\n"
    );
    fs::write(dir.join("tight.toml"), tight).unwrap();
    let output = xoff(&dir, &["run", "tight.toml", "--no-out"]);
    assert_eq!(output.status.code(), Some(3), "{}{}", out(&output), err(&output));
    assert!(out(&output).contains("error: S0.0:"), "{}", out(&output));
    let answer = out(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(answer.contains("its headroom of 3 kB was too small by up to"), "{answer}");
    // 2 · 1 us · 100 Gbps + 2 · 1062 B + 64 B
    assert!(answer.contains("This link needs 27188 B"), "{answer}");
    let auto = xoff(&dir, &["run", "tight.toml", "--no-out", "--set", "flow_control.headroom=auto"]);
    assert_eq!(auto.status.code(), Some(0), "{}", out(&auto));
}

/// Two senders over a link of 1 us and of 1 ns. More than one thread helps only in the first case. In the
/// second, xoff does not use it and says so.
#[test]
fn no_more_threads_than_help() {
    let dir = scratch("threads");
    let on = |delay: &str| {
        let delay = format!("topology.link={{rate=\"100Gbps\", delay=\"{delay}\"}}");
        let size = ["--set", "topology.switches=8", "--set", "traffic.0.dst=H15"];
        let run = ["run", "hello.toml", "--no-out", "--threads", "2", "--set", &delay];
        err(&xoff(&dir, &[&run[..], &size[..]].concat()))
    };
    assert!(!on("1us").contains("threads:"));
    let few = on("1ns");
    assert!(few.contains("using 1 of 2 threads: "), "{few}");
}

/// PortFC's Figure 6, read off the program: node 15 is H15, switch 23 is S1.3.
#[test]
fn schemes_shows_the_queues_of_portfc() {
    let dir = scratch("queues");
    let figure = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/portfc-queues.toml");
    let figure = figure.to_str().unwrap();
    let rows = |port: &str| {
        let text = out(&xoff(&dir, &["schemes", "portfc", "--topology", figure, "--port", port]));
        let words = |line: &str| line.split_whitespace().map(str::to_string).collect::<Vec<_>>().join(" ");
        text.lines().map(words).collect::<Vec<_>>()
    };
    let host = rows("H15:0");
    for row in [
        "0 four-hop forwarded through S0.3:0 (H12) S0.3:0, forwarding queues F1, F4",
        "1 four-hop forwarded through S0.3:1 (H13) S0.3:1, forwarding queues F2",
        "3 two-hop for H12 S0.3:0, direct queue F6",
        "6 RQ from others - F9, F10, F12, F13, F14, F15",
    ] {
        assert!(host.iter().any(|line| line == row), "{row} in {host:#?}");
    }
    let switch = rows("S1.3:3");
    for row in [
        "0 IHFQ forwarded through S0.3:0 (H12) S0.3:0, direct queue F9, F12",
        "2 IHFQ forwarded through S0.3:2 (H14) S0.3:2, direct queue F14, F15",
        "3 DDQ for H15 - F11, F16",
    ] {
        assert!(switch.iter().any(|line| line == row), "{row} in {switch:#?}");
    }
    let counts = out(&xoff(&dir, &["schemes", "portfc", "--topology", "ndc(4,2)"]));
    assert!(
        counts.contains("= 5 queues")
            && counts.contains("= 11 queues")
            && counts.contains("cannot be simulated")
    );
    let bare = out(&xoff(&dir, &["schemes", "portfc", "--topology", "NDC(4, 1)", "--port", "H0:0"]));
    assert!(bare.contains("8 queues") && !bare.contains(" flow\n"), "{bare}");
    for (args, why) in [
        (&["pfc", "--topology", "ndc(4,1)"][..], "--topology requires the scheme `portfc`"),
        (&["portfc", "--topology", "ndc(4,1)", "--port", "H16:0"], "unknown port `H16:0`"),
        (&["portfc", "--topology", "ndc(4,2)", "--port", "H0:0"], "defines no queues"),
        (&["portfc", "--topology", "hello.toml"], "the flow control of hello.toml is not portfc"),
        (&["sdn"], "unknown scheme `sdn`"),
    ] {
        let failed = xoff(&dir, &[&["schemes"], args].concat());
        assert_eq!(failed.status.code(), Some(1), "{args:?}");
        assert!(err(&failed).contains(why), "{}", err(&failed));
    }
}

#[test]
fn strict_takes_warnings_for_errors() {
    let dir = scratch("strict");
    let set = ["--set", "priority=[{ id = 1, weight = 2 }]"];
    for verb in ["run", "topo", "traffic", "check"] {
        let more: &[&str] = if verb == "run" { &["--overwrite"] } else { &[] };
        assert!(
            xoff(&dir, &[&[verb, "hello.toml", "--strict"][..], more].concat()).status.success(),
            "{verb}"
        );
        assert!(xoff(&dir, &[&[verb, "hello.toml"][..], more, &set].concat()).status.success(), "{verb}");
        let strict = xoff(&dir, &[&[verb, "hello.toml", "--strict"][..], &set].concat());
        assert_eq!(strict.status.code(), Some(1), "{verb}");
        assert!(
            err(&strict).contains("has warnings, and --strict treats warnings as errors"),
            "{}",
            err(&strict)
        );
    }
}
