//! `xoff size` from outside: results, exit status, usage.

use crate::common;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

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
    let path = common::scratch(test);
    fs::write(path.join("long.toml"), LONG).unwrap();
    path
}

fn xoff(dir: &Path, args: &[&str]) -> Output {
    common::xoff(dir, &[&["size"], args].concat())
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
    let text = xoff(&dir, &[&link[..], &["--all"]].concat());
    assert_eq!(text.status.code(), Some(0), "{}", err(&text));
    assert!(out(&text).contains("286.1 MiB") && out(&text).contains("7,813 quanta"), "{}", out(&text));
    let json = xoff(&dir, &[&link[..], &["--json", "--priorities", "3", "--buffer", "64MiB"]].concat());
    let value: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(value["link"]["bdp_bytes"], 300_000_000);
    assert_eq!(value["schemes"].as_array().unwrap().len(), 15);
    assert_eq!((&value["schemes"][3]["scheme"], &value["schemes"][3]["shares"]), (&"dsh".into(), &1.into()));
    assert_eq!(value["schemes"][4]["shares"], 3);
    assert_eq!(value["schemes"][4]["reach"]["kind"], "up-to");
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

/// The first line is the answer.
#[test]
fn the_named_schemes_come_first() {
    let dir = scratch("size-first");
    let link = ["--rate", "400Gbps", "--distance", "30km"];
    let first = |more: &[&str]| -> Vec<String> {
        let done = xoff(&dir, &[&link[..], more].concat());
        assert_eq!(done.status.code(), Some(0), "{}", err(&done));
        out(&done).lines().map(String::from).collect()
    };
    let usual = first(&[]);
    assert_eq!(
        usual[0],
        "PFC needs 15 MB of headroom per port and priority, 16.1 MB of buffer with 1.05 MB up to XOFF."
    );
    assert!(usual[1].starts_with("CBFC needs 15.6 MB of buffer"), "{usual:?}");
    assert!(usual[2].starts_with("warning: The response time of the switches is not included"), "{usual:?}");
    assert!(usual.len() < 25, "{usual:?}");
    let one = first(&["--scheme", "swing"]);
    assert!(one[0].starts_with("SWING needs") && !one.iter().any(|line| line.contains("PFC")), "{one:?}");
    let two = first(&["--scheme", "bifrost,pfc,bifrost"]);
    assert!(two[0].starts_with("Bifrost needs") && two[1].starts_with("PFC needs"), "{two:?}");
    assert!(two[2].starts_with("warning"), "{two:?}");
    let all = first(&["--all"]);
    assert_eq!(all[..3], usual[..3]);
    assert!(all.iter().any(|line| line.starts_with("portfc ")), "{all:?}");
    let named = xoff(&dir, &[&link[..], &["--json", "--scheme", "cbfc"]].concat());
    let value: Value = serde_json::from_slice(&named.stdout).unwrap();
    assert_eq!(value["schemes"].as_array().unwrap().len(), 1);
    let need = &value["schemes"][0]["need"];
    assert_eq!((&need["of"], &need["bytes"]), (&"buffer".into(), &15_634_944.into()), "{need}");
    assert!(value["answer"].as_str().unwrap().starts_with("CBFC needs 15.6 MB"), "{value}");
    let curve = xoff(&dir, &["--rate", "400Gbps", "--scheme", "pyrrha", "--curve", "-"]);
    assert!(
        out(&curve).contains(">pyrrha</text>") && !out(&curve).contains(">pfc</text>"),
        "{}",
        out(&curve)
    );
}

#[test]
fn a_chip_gives_the_response_time_of_the_rate() {
    let dir = scratch("size-asic");
    let link = ["--distance", "50m", "--asic"];
    let done = xoff(&dir, &[&["--rate", "400Gbps"][..], &link, &["ieee"]].concat());
    let text = out(&done).split_whitespace().collect::<Vec<_>>().join(" ");
    let said =
        "The response time is 1.158 us (--asic ieee): 57.9 kB at 400Gbps. Source: IEEE 802.3, 31B.3.7,";
    assert!(text.contains(said) && !text.contains("warning"), "{text}");
    let json = xoff(&dir, &[&["--rate", "100Gbps", "--json"][..], &link, &["ieee"]].concat());
    let value: Value = serde_json::from_slice(&json.stdout).unwrap();
    // 394 pause quanta of 512 bit.
    assert_eq!(value["settings"]["response_time_ps"], 2_017_280);
    assert_eq!(value["settings"]["asic"]["name"], "ieee");
    assert_eq!(value["settings"]["response_time_given"], true);
    let refused = xoff(&dir, &[&["--rate", "40Gbps"][..], &link, &["i40e"]].concat());
    assert_eq!(refused.status.code(), Some(1));
    assert!(err(&refused).contains("no response time for 40Gbps"), "{}", err(&refused));
    assert!(err(&refused).contains("--asic i40e is for 10Gbps"), "{}", err(&refused));
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
    let all = [
        "pfc",
        "pfc-ieee",
        "pfc-deep",
        "dsh",
        "bifrost",
        "bifrostx",
        "cbfc",
        "cbfc-ideal",
        "uec-cbfc",
        "gfc",
        "gfc-time",
        "swing",
        "pyrrha",
        "portfc",
        "llr",
    ];
    let granting = ["bifrost", "bifrostx"];
    for (option, value, moves) in [
        ("--mtu", "4kB", &all[..]),
        (
            "--priorities",
            "2",
            &[
                "pfc",
                "pfc-ieee",
                "pfc-deep",
                "dsh",
                "bifrost",
                "cbfc",
                "cbfc-ideal",
                "uec-cbfc",
                "gfc",
                "gfc-time",
                "swing",
                "pyrrha",
            ],
        ),
        ("--response-time", "1us", &all),
        ("--slot", "20us", &granting),
        ("--processing", "2us", &granting),
        ("--jitter", "100ns", &granting),
        ("--repair-every", "3", &granting),
        ("--xoff", "6MiB", &["pfc", "pfc-ieee"]),
        ("--update", "50us", &["cbfc", "cbfc-ideal"]),
        ("--fan-in", "3", &["pyrrha", "portfc"]),
    ] {
        let now = buffers(&[option, value]);
        let moved: Vec<&str> =
            usual.iter().zip(&now).filter(|(a, b)| a.1 != b.1).map(|(a, _)| a.0.as_str()).collect();
        assert_eq!(moved, moves, "{option}");
        // Larger packets fill their blocks better.
        let less = |(a, b): &(&(String, u64), &(String, u64))| {
            a.1 > b.1 && !(option == "--mtu" && a.0.contains("cbfc"))
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
    // The long link is the tightest class.
    let tightest = &value["classes"][0];
    assert_eq!((&tightest["what"], &tightest["if_too_small"]), (&"headroom".into(), &"drop".into()));
    assert_eq!((&tightest["configured"], &tightest["count"]), (&100_000.into(), &2.into()), "{tightest}");
    assert!(tightest["margin"].as_i64().unwrap() < 0, "{tightest}");
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
        (
            &["--rate", "400Gbps", "--distance", "1km", "--scheme", "pfx"],
            2,
            "possible values: pfc, pfc-ieee, pfc-deep, dsh, bifrost",
        ),
        (&["--rate", "400Gbps", "--distance", "1km", "--scheme", ""], 2, "possible values"),
        (&["--rate", "400Gbps", "--distance", "1km", "--scheme", "pfc", "--all"], 2, "cannot be used with"),
        (&["--rate", "400Gbps", "--curve", "c.svg", "--all"], 2, "--distance"),
        (&["--rate", "400Gbps", "--distance", "1km", "--asic", "x"], 2, "possible values: ieee, spectrum"),
        (
            &["--rate", "400Gbps", "--distance", "1km", "--asic", "ieee", "--response-time", "1us"],
            2,
            "cannot be used with",
        ),
        (&["--scenario", "long.toml", "--asic", "ieee"], 2, "cannot be used with"),
        (&["--scenario", "long.toml", "--scheme", "pfc"], 2, "cannot be used with"),
        (&["--scenario", "long.toml", "--all"], 2, "cannot be used with"),
    ] {
        let done = xoff(&dir, args);
        assert_eq!(done.status.code(), Some(status), "{args:?} {}", err(&done));
        assert!(err(&done).contains(said), "{args:?}: {}", err(&done));
        assert!(out(&done).is_empty(), "{args:?}");
    }
}

#[test]
fn measured_memories_stand_beside_the_formulas() {
    let dir = scratch("size-measured");
    let link = ["--rate", "100Gbps", "--distance", "100m", "--response-time", "1us", "--measure"];
    let done = xoff(&dir, &[&link[..], &["--scheme", "pfc,llr,swing"]].concat());
    assert!(done.status.success(), "{}", err(&done));
    let text = out(&done);
    for part in
        ["headroom", "replay buffer", "swing is not measured: its worst case needs more than one link."]
    {
        assert!(text.contains(part), "{text}");
    }
    let done = xoff(&dir, &[&link[..], &["--scheme", "pfc,llr,swing", "--json"]].concat());
    let answer: Value = serde_json::from_str(&out(&done)).unwrap();
    assert_eq!(answer["measured"].as_array().unwrap().len(), 2);
    assert_eq!(answer["not_measured"][0]["scheme"], "swing");
    for (at, memory) in ["headroom", "replay buffer"].into_iter().enumerate() {
        let measured = &answer["measured"][at];
        assert_eq!(measured["memory"], memory);
        assert_eq!(measured["formula_bytes"], answer["schemes"][at]["need"]["bytes"]);
        let bytes = |key: &str| measured[key].as_u64().unwrap();
        assert!(bytes("least_bytes") <= bytes("formula_bytes"), "{measured}");
        assert!(bytes("least_bytes") + 1_500 >= bytes("formula_bytes"), "{measured}");
    }
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let dir = scratch("size-refused");
    let link = ["--rate", "100Gbps", "--distance", "1km"];
    let refused = |more: &[&str]| {
        let done = xoff(&dir, &[&link[..], more].concat());
        assert_eq!(done.status.code(), Some(1));
        err(&done)
    };
    assert!(refused(&["--curve", "chart.png"]).contains("write --curve chart.svg"));
    assert!(!dir.join("chart.png").exists());
}
