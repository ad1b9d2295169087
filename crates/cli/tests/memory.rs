//! The memory budget: a run ends with its results, a command without results with an error, and
//! nothing with an abort.

use crate::common;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// PFC with thresholds of a few packets pauses again and again, and every pause is recorded.
const PAUSES: &str = r#"
[topology]
kind = "line"
switches = 1
hosts_per_switch = 3
link = { rate = "100Gbps", delay = "1us" }

[flow_control]
scheme = "pfc"
xoff = "5kB"
xon = "2kB"

[[traffic]]
kind = "incast"
fan_in = 2
to = "H2"
size = "400MB"

[measure]
explain = false
"#;

/// A torus of 90,000 switches.
const WIDE: &str = r#"
[topology]
kind = "torus-2d"
width = 300
height = 300
hosts_per_switch = 1
link = { rate = "100Gbps", delay = "1us" }

[[traffic]]
kind = "flow"
src = "H0"
dst = "H1"
size = "1kB"
"#;

fn scratch(test: &str) -> PathBuf {
    let path = common::scratch(test);
    fs::write(path.join("pauses.toml"), PAUSES).unwrap();
    fs::write(path.join("wide.toml"), WIDE).unwrap();
    path
}

fn command(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xoff"));
    command.current_dir(dir).env("NO_COLOR", "1");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn status(output: &Output, expected: i32) {
    assert_eq!(output.status.code(), Some(expected), "{}", text(&output.stderr));
}

#[test]
fn a_run_beyond_the_budget_ends_with_its_results() {
    let dir = scratch("memory-run");
    let output = command(&dir).args(["run", "pauses.toml", "--memory", "1500kB"]).output().unwrap();
    status(&output, 4);
    let answer = text(&output.stdout);
    assert!(answer.contains("MEMORY BUDGET EXHAUSTED"), "{answer}");
    assert!(answer.contains("recorded pauses: "), "{answer}");
    let read =
        |name| serde_json::from_slice::<Value>(&fs::read(dir.join("xoff-runs/pauses").join(name)).unwrap());
    let manifest = read("manifest.json").unwrap();
    assert_eq!((&manifest["complete"], &manifest["stop"]), (&false.into(), &"memory".into()));
    assert!(read("summary.json").unwrap()["pauses"]["count"].as_u64().unwrap() > 1_000);
    // With more it ends, and the budget has changed nothing.
    let output = command(&dir).args(["run", "pauses.toml", "--no-out"]).output().unwrap();
    status(&output, 0);
    let same = command(&dir).args(["run", "pauses.toml", "--no-out", "--memory", "2GB"]).output().unwrap();
    assert_eq!(output.stdout, same.stdout);
}

#[test]
fn a_plan_beyond_the_budget_is_an_error() {
    let dir = scratch("memory-plan");
    for verb in [&["run", "--no-out"][..], &["topo"], &["check"]] {
        let output = command(&dir).args(verb).args(["wide.toml", "--memory", "20MB"]).output().unwrap();
        status(&output, 1);
        let said = text(&output.stderr);
        assert!(said.contains("× out of memory: planning the scenario"), "{said}");
        assert!(said.contains("the memory budget is 20.00 MB") && said.contains("--memory"), "{said}");
        assert!(output.stdout.is_empty());
    }
    assert!(!dir.join("xoff-runs").exists());
}

#[test]
fn in_a_grid_only_the_run_beyond_the_budget_fails() {
    let dir = scratch("memory-grid");
    let output = command(&dir)
        .args(["run", "pauses.toml", "--memory", "3MB", "--jobs", "2"])
        .args(["--vary", "traffic.0.size=10MB,1GB"])
        .output()
        .unwrap();
    status(&output, 1);
    let answer = text(&output.stdout);
    assert!(answer.contains("INCOMPLETE, 1 of 2 runs"), "{answer}");
    assert!(answer.contains("memory budget exhausted at"), "{answer}");
    // With enough memory the same grid goes on.
    let output = command(&dir)
        .args(["run", "pauses.toml", "--resume", "--vary", "traffic.0.size=10MB,1GB"])
        .output()
        .unwrap();
    status(&output, 0);
    assert!(!text(&output.stdout).contains("INCOMPLETE"));
}

#[cfg(target_os = "linux")]
#[test]
fn memory_that_the_system_refuses_is_an_error() {
    let dir = scratch("memory-system");
    let script = "ulimit -v 200000; exec \"$XOFF\" run wide.toml --no-out --memory 1000GB \
                  --set topology.width=1000 --set topology.height=1000";
    let output = Command::new("bash")
        .current_dir(&dir)
        .args(["-c", script])
        .env("XOFF", env!("CARGO_BIN_EXE_xoff"))
        .output()
        .unwrap();
    status(&output, 1);
    let said = text(&output.stderr);
    assert!(said.contains("× out of memory") && said.contains("the system has no memory left"), "{said}");
}

/// 400,000 flows of one packet.
#[cfg(target_os = "linux")]
const FLOWS: &str = r#"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 1
hosts_per_leaf = 16
host_link = { rate = "100Gbps", delay = "1us" }
fabric_link = { rate = "400Gbps", delay = "1us" }

[[traffic]]
kind = "poisson"
load = 0.4
flows = 400000
sizes = { uniform = ["1kB", "1kB"] }

[run]
duration = "10ms"

[measure]
explain = false
"#;

/// The system allows 100 MB of memory that is not a file.
#[cfg(target_os = "linux")]
#[test]
fn spilled_tables_take_no_memory_and_change_no_result() {
    let dir = scratch("memory-spill");
    fs::write(dir.join("flows.toml"), FLOWS).unwrap();
    let limited = |options: &str| {
        let script = format!("ulimit -d 100000; exec \"$XOFF\" run flows.toml --memory 1000GB {options}");
        let mut bash = Command::new("bash");
        bash.arg("-c").arg(script).current_dir(&dir).env("XOFF", env!("CARGO_BIN_EXE_xoff"));
        bash.output().unwrap()
    };
    let output = limited("--no-out");
    status(&output, 1);
    assert!(text(&output.stderr).contains("the system has no memory left"), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("--spill"), "{}", text(&output.stderr));

    status(&limited("--out spilled --spill ."), 0);
    status(&command(&dir).args(["run", "flows.toml", "--out", "kept"]).output().unwrap(), 0);
    for file in ["flows.parquet", "ports.parquet", "summary.json"] {
        assert!(
            fs::read(dir.join("spilled").join(file)).unwrap()
                == fs::read(dir.join("kept").join(file)).unwrap()
        );
    }
    let left: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 5, "{left:?}");
}

/// With a budget below its needs, the process gives its blocks back many times while it runs.
#[cfg(target_os = "linux")]
#[test]
fn blocks_that_left_the_memory_come_back_unchanged() {
    let dir = scratch("memory-spill-budget");
    fs::write(dir.join("flows.toml"), FLOWS).unwrap();
    let output = command(&dir)
        .args(["run", "flows.toml", "--no-out", "--memory", "60MB", "--spill", "."])
        .output()
        .unwrap();
    status(&output, 0);
    let same = command(&dir).args(["run", "flows.toml", "--no-out"]).output().unwrap();
    assert_eq!(output.stdout, same.stdout);
}

#[cfg(target_os = "linux")]
#[test]
fn a_directory_that_cannot_spill_is_an_error() {
    let dir = scratch("memory-spill-where");
    for (place, why) in [
        ("nowhere", "No such file or directory"),
        ("wide.toml", "Not a directory"),
        ("/dev/shm", "it is in memory itself (tmpfs)"),
    ] {
        let output = command(&dir).args(["run", "wide.toml", "--no-out", "--spill", place]).output().unwrap();
        status(&output, 1);
        let said = text(&output.stderr);
        assert!(said.contains(&format!("--spill: cannot keep files in {place}: {why}")), "{said}");
    }
}
