//! `xoff check` from outside: verdicts, files, certificates, usage.

use crate::common::{scratch, xoff};
use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

fn example(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/{name}.toml")).display().to_string()
}

fn out(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_cycle_comes_with_a_scenario_that_deadlocks() {
    let dir = scratch("check-cycle");
    let said = out(&xoff(&dir, &["check", &example("fat-tree-failed-links"), "--out", "found"]));
    assert!(said.starts_with("fat-tree-failed-links can deadlock: 8 queues"), "{said}");
    assert!(!dir.join("found/certificate.json").exists());
    let run = out(&xoff(&dir, &["run", "found/witness.toml", "--no-out", "--quiet", "--json"]));
    let run: Value = serde_json::from_str(&run).unwrap();
    assert!(!run["deadlock"].is_null(), "{run}");
    // The same check says the same.
    let again = out(&xoff(&dir, &["check", &example("fat-tree-failed-links"), "--quiet"]));
    assert_eq!(said, again);
}

#[test]
fn a_proof_is_written_and_checked_and_replaces_an_older_one() {
    let dir = scratch("check-proof");
    let failed = example("fat-tree-failed-links");
    out(&xoff(&dir, &["check", &failed, "--out", "found", "--quiet"]));
    let intact = ["check", &failed, "--set", "failure=[]", "--quiet"];
    let said = out(&xoff(&dir, &[&intact[..], &["--out", "found", "--json"]].concat()));
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["verdict"]["kind"], "safe");
    assert!(said["verdict"]["compared"].as_u64().unwrap() > 100);
    assert!(!dir.join("found/witness.toml").exists());
    let verify = ["--verify", "found/certificate.json"];
    assert!(out(&xoff(&dir, &[&intact[..], &verify].concat())).starts_with("The certificate is valid"));
    // It proves nothing where the links have failed, and nothing once it is spoilt.
    let refused = xoff(&dir, &[&["check", &failed], &verify[..]].concat());
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is not a proof for this scenario"));
    let text = fs::read_to_string(dir.join("found/certificate.json")).unwrap();
    fs::write(dir.join("found/certificate.json"), text.replacen("S0.0:", "S0.1:", 1)).unwrap();
    assert_eq!(xoff(&dir, &[&intact[..], &verify].concat()).status.code(), Some(1));
}

#[test]
fn failures_are_examined_and_usage_is_checked() {
    let dir = scratch("check-failures");
    let intact = ["check", &example("fat-tree-failed-links"), "--set", "failure=[]", "--quiet"];
    let said = out(&xoff(&dir, &[&intact[..], &["--failures", "1"]].concat()));
    assert!(said.starts_with("fat-tree-failed-links cannot deadlock"), "{said}");
    assert!(said.contains("failures examined: 32 of 32 links;"), "{said}");
    let wrong: [&[&str]; 5] = [
        &["--failures", "4"],
        &["--failures", "links=1,links=2"],
        &["--failures", "switches=9"],
        &["--failures", "1", "--verify", "x"],
        &["--fail-on", "anything"],
    ];
    for wrong in wrong {
        assert_eq!(xoff(&dir, &[&intact[..], wrong].concat()).status.code(), Some(2), "{wrong:?}");
    }
    let missing = xoff(&dir, &[&intact[..], &["--verify", "x.json"]].concat());
    assert_eq!(missing.status.code(), Some(1));
}

/// The status says what a gate asks for, and suggestions are proved.
#[test]
fn a_check_is_a_gate() {
    let dir = scratch("check-gate");
    let failed = example("fat-tree-failed-links");
    let status = |args: &[&str]| {
        let done = xoff(&dir, &[&["check", &failed, "--quiet"], args].concat());
        (done.status.code(), String::from_utf8(done.stdout).unwrap())
    };
    for on in ["deadlock", "unproved"] {
        assert_eq!(status(&["--fail-on", on]).0, Some(5), "{on}");
    }
    let safe = ["--set", "routing.kind=valley-free"];
    assert_eq!(status(&[&safe[..], &["--fail-on", "unproved"]].concat()).0, Some(0));
    let (code, text) = status(&["--suggest", "--json"]);
    assert_eq!(code, Some(0));
    let report: Value = serde_json::from_str(&text).unwrap();
    let suggestions = report["suggestions"].as_array().unwrap();
    let proved = |key: &str| suggestions.iter().any(|s| s["set"][0] == key && s["proved"] == true);
    assert!(proved("routing.kind") && proved("flow_control"), "{suggestions:?}");
    for suggestion in suggestions.iter().filter(|s| s["proved"] == true) {
        let set =
            format!("{}={}", suggestion["set"][0].as_str().unwrap(), suggestion["set"][1].as_str().unwrap());
        assert_eq!(status(&["--set", &set, "--fail-on", "unproved"]).0, Some(0), "{set}");
    }
}

/// A network alone: all routes between all hosts; of too many failures a sample, which is no proof.
#[test]
fn a_network_needs_no_traffic() {
    let dir = scratch("check-network");
    let text = "[topology]\nkind = \"leaf-spine\"\nleaves = 10\nspines = 10\nhosts_per_leaf = 1\n\
        host_link = { rate = \"100Gbps\", delay = \"1us\" }\nfabric_link = { rate = \"100Gbps\", delay = \"1us\" }\n[routing]\nkind = \"valley-free\"\n";
    fs::write(dir.join("net.toml"), text).unwrap();
    let said = out(&xoff(&dir, &["check", "net.toml", "--quiet"]));
    assert!(said.starts_with("net cannot deadlock under valley-free routing: no cycle"), "{said}");
    assert!(said.contains("Failures were not examined") && !said.contains("Blocking"), "{said}");
    let sampled = ["check", "net.toml", "--quiet", "--failures", "links=3", "--out", "proof"];
    let said = out(&xoff(&dir, &sampled));
    assert!(said.starts_with("net cannot deadlock under valley-free routing: no cycle"), "{said}");
    assert!(
        said.contains("no cycle was found, which is no proof: examined 100 of 100 links, 4,950 of 4,950"),
        "{said}"
    );
    assert!(said.contains("16,384 of 161,700 sets of 3 links"), "{said}");
    let gated = xoff(&dir, &[&sampled[..5], &["--fail-on", "unproved"]].concat());
    assert_eq!(gated.status.code(), Some(5));
    out(&xoff(&dir, &["check", "net.toml", "--verify", "proof/certificate.json"]));
}

#[test]
fn foreign_files_are_not_replaced() {
    let dir = scratch("check-foreign");
    fs::create_dir_all(dir.join("found")).unwrap();
    fs::write(dir.join("found/cycle.svg"), "a drawing of mine").unwrap();
    let failed = example("fat-tree-failed-links");
    let refused = xoff(&dir, &["check", &failed, "--out", "found", "--quiet"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("which xoff check did not write"));
    assert_eq!(fs::read_to_string(dir.join("found/cycle.svg")).unwrap(), "a drawing of mine");
    // The scenario itself may be one that a check has made.
    out(&xoff(&dir, &["check", &failed, "--out", "made", "--quiet"]));
    let before = fs::read(dir.join("made/witness.toml")).unwrap();
    let refused = xoff(&dir, &["check", "made/witness.toml", "--out", "made", "--quiet"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("would replace the scenario"));
    assert_eq!(fs::read(dir.join("made/witness.toml")).unwrap(), before);
}
