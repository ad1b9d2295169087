//! `xoff size` from outside: results, exit status, usage.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// Two switches, a host each, and 80 km between them.
const LONG: &str = r#"
[topology]
kind = "line"
switches = 2
hosts_per_switch = 1
link = { rate = "100Gbps", delay = "80km" }

[switch]
buffer = "64MB"

[flow_control]
scheme = "pfc"
xoff = "1MB"
xon = "1MB"
headroom = "100kB"

[[traffic]]
kind = "flow"
src = "H0"
dst = "H1"
size = "10kB"
"#;

fn scratch(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("long.toml"), LONG).unwrap();
    path
}

fn xoff(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xoff"))
        .current_dir(dir)
        .arg("size")
        .args(args)
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Standard error in one line.
fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_link_has_text_data_and_a_picture() {
    let dir = scratch("size-link");
    let link = ["--rate", "400Gbps", "--distance", "600km"];
    let text = xoff(&dir, &link);
    assert_eq!(text.status.code(), Some(0), "{}", err(&text));
    assert!(out(&text).contains("286.1 MiB") && out(&text).contains("7,813 quanta"), "{}", out(&text));
    let json = xoff(&dir, &[&link[..], &["--json", "--priorities", "3", "--buffer", "64MiB"]].concat());
    let value: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(value["link"]["bdp_bytes"], 300_000_000);
    assert_eq!(value["schemes"].as_array().unwrap().len(), 9);
    assert_eq!(value["schemes"][2]["shares"], 3);
    assert_eq!(value["schemes"][2]["reach"]["kind"], "up-to");
    let curve = xoff(&dir, &["--rate", "400Gbps", "--curve", "curve.svg"]);
    assert_eq!((curve.status.code(), out(&curve).as_str()), (Some(0), ""));
    assert!(fs::read_to_string(dir.join("curve.svg")).unwrap().starts_with("<svg"));
    fs::write(dir.join("points.csv"), "distance_km,scheme,measured_B\n80,pfc-deep,20000000\n").unwrap();
    let points = ["--rate", "400Gbps", "--curve", "curve.svg", "--points", "points.csv"];
    assert_eq!(xoff(&dir, &points).status.code(), Some(0));
    assert!(fs::read_to_string(dir.join("curve.svg")).unwrap().contains("class=\"mark\""));
    fs::write(dir.join("points.csv"), "distance_km,scheme\n80,pfc\n").unwrap();
    let refused = xoff(&dir, &points);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("points.csv: the column `measured_B` is missing")
    );
    let piped = xoff(&dir, &["--rate", "400Gbps", "--curve", "-"]);
    assert!(out(&piped).starts_with("<svg") && !dir.join("-").exists(), "{}", err(&piped));
    let nowhere = xoff(&dir, &["--rate", "400Gbps", "--curve", "no/such/curve.svg"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(err(&nowhere).contains("cannot be written"), "{}", err(&nowhere));
}

/// Every option of a scheme changes the value that its help names.
#[test]
fn every_option_has_its_effect() {
    let dir = scratch("size-options");
    let link = ["--rate", "400Gbps", "--distance", "600km", "--json"];
    let buffers = |more: &[&str]| -> Vec<(String, u64)> {
        let done = xoff(&dir, &[&link[..], more].concat());
        assert_eq!(done.status.code(), Some(0), "{}", err(&done));
        let value: Value = serde_json::from_slice(&done.stdout).unwrap();
        let row =
            |s: &Value| (s["scheme"].as_str().unwrap().to_string(), s["buffer_bytes"].as_u64().unwrap());
        value["schemes"].as_array().unwrap().iter().map(row).collect()
    };
    let usual = buffers(&[]);
    let all = ["pfc", "pfc-deep", "bifrost", "bifrostx", "cbfc", "cbfc-ideal", "swing", "pyrrha", "portfc"];
    let granting = ["bifrost", "bifrostx"];
    for (option, value, moves) in [
        ("--mtu", "4kB", &all[..]),
        ("--priorities", "2", &["pfc", "pfc-deep", "bifrost", "cbfc", "cbfc-ideal", "swing", "pyrrha"]),
        ("--response-time", "1us", &all),
        ("--slot", "20us", &granting),
        ("--processing", "2us", &granting),
        ("--jitter", "100ns", &granting),
        ("--repair-every", "3", &granting),
        ("--xoff", "6MiB", &["pfc"]),
        ("--update", "50us", &["cbfc", "cbfc-ideal"]),
        ("--fan-in", "3", &["pyrrha", "portfc"]),
    ] {
        let now = buffers(&[option, value]);
        let moved: Vec<&str> =
            usual.iter().zip(&now).filter(|(a, b)| a.1 != b.1).map(|(a, _)| a.0.as_str()).collect();
        assert_eq!(moved, moves, "{option}");
        // Larger packets fill their blocks better.
        let less = |(a, b): &(&(String, u64), &(String, u64))| {
            a.1 > b.1 && !(option == "--mtu" && a.0.starts_with("cbfc"))
        };
        assert_eq!(usual.iter().zip(&now).filter(less).count(), 0, "{option}");
    }
}

#[test]
fn links_of_a_scenario_that_are_too_small_are_named_and_exit_with_3() {
    let dir = scratch("size-scenario");
    let small = xoff(&dir, &["--scenario", "long.toml"]);
    assert_eq!(small.status.code(), Some(3), "{}", err(&small));
    assert!(out(&small).contains("TOO SMALL"), "{}", out(&small));
    let auto = ["--scenario", "long.toml", "--set", "flow_control.headroom=auto"];
    let enough = xoff(&dir, &auto);
    assert_eq!(enough.status.code(), Some(0), "{}", err(&enough));
    assert!(
        out(&enough).contains("no buffer can overflow") && out(&enough).contains("may idle"),
        "{}",
        out(&enough)
    );
    let json = xoff(&dir, &["--scenario", "long.toml", "--json"]);
    assert_eq!(json.status.code(), Some(3));
    let value: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(value["too_small"][0]["configured"], 100_000);
    let lossy = xoff(&dir, &["--scenario", "long.toml", "--set", "flow_control={ scheme = \"none\" }"]);
    assert_eq!(lossy.status.code(), Some(1));
    assert!(err(&lossy).contains("`none`") && err(&lossy).contains("bifrost"), "{}", err(&lossy));
}

#[test]
fn wrong_values_are_refused_by_name() {
    let dir = scratch("size-wrong");
    for (args, status, said) in [
        (&[][..], 2, "--rate"),
        (&["--rate", "400Gbps"], 2, "--distance"),
        (&["--rate", "0Gbps", "--distance", "1km"], 2, "must be positive"),
        (&["--rate", "-1Gbps", "--distance", "1km"], 2, "invalid value"),
        (&["--rate", "100Tbps", "--distance", "1km"], 1, "a shorter --slot and --processing"),
        (&["--rate", "400Gbps", "--distance", "1km", "--curve", "-"], 1, "standard output"),
        (&["--rate", "400Gb", "--distance", "1km"], 2, "unknown unit"),
        (&["--rate", "400Gbps", "--distance", "1"], 2, "has no unit"),
        (&["--rate", "400Gbps", "--distance", "1ms"], 2, "unknown unit"),
        (&["--rate", "400Gbps", "--distance", "50000km"], 1, "--distance"),
        (&["--rate", "400Gbps", "--distance", "0km"], 1, "--distance"),
        (&["--rate", "400Gbps", "--distance", "1km", "--slot", "1us"], 1, "--slot"),
        (&["--rate", "400Gbps", "--distance", "1km", "--slot", "84us"], 1, "65,535"),
        (&["--rate", "400Gbps", "--distance", "1km", "--priorities", "9"], 1, "--priorities"),
        (&["--scenario", "long.toml", "--rate", "400Gbps"], 2, "cannot be used with"),
        (&["--scenario", "long.toml", "--slot", "10us"], 2, "cannot be used with"),
        (&["--rate", "400Gbps", "--distance", "1km", "--set", "a=1"], 2, "cannot be used with"),
        (&["--rate", "400Gbps", "--distance", "1km", "--strict"], 2, "cannot be used with"),
        (&["--scenario", "long.toml", "--buffer", "1MB"], 2, "cannot be used with"),
        (&["--rate", "400Gbps", "--curve", "c.svg", "--json"], 1, "--json"),
        (&["--scenario", "none.toml"], 1, "there is no file"),
    ] {
        let done = xoff(&dir, args);
        assert_eq!(done.status.code(), Some(status), "{args:?} {}", err(&done));
        assert!(err(&done).contains(said), "{args:?}: {}", err(&done));
        assert!(out(&done).is_empty(), "{args:?}");
    }
}
