//! All commands of xoff work with the scheme.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Exit status, standard output and standard error of the program.
fn xoff(args: &[&str]) -> (Option<i32>, String, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_own-scheme"))
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("NO_COLOR", "1")
        .output()
        .expect("the program runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (done.status.code(), text(done.stdout), text(done.stderr))
}

/// Its standard output, if the exit status is 0.
fn printed(args: &[&str]) -> String {
    let (status, out, errors) = xoff(args);
    assert_eq!(status, Some(0), "{args:?}\n{out}\n{errors}");
    out
}

/// An empty directory for results.
fn place(name: &str) -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&place);
    place
}

#[test]
fn a_run_pauses_loses_nothing_and_can_be_explained_and_shown() {
    let place = place("run");
    let out = place.to_str().unwrap();
    let said = printed(&["run", "scenario.toml", "--json", "--quiet", "--out", out, "--pcap", "all"]);
    let summary: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(summary["pauses"]["count"].as_u64() > Some(0), "{said}");
    assert_eq!(summary["drops"]["lossless_packets"], 0, "{said}");
    // Destination of MAC control, any source, EtherType, PAUSE, 65535 quanta and 0.
    let capture = fs::read(place.join("capture.pcapng")).unwrap();
    for quanta in [0xff, 0] {
        let is = |frame: &[u8]| {
            frame[..6] == [0x01, 0x80, 0xc2, 0, 0, 1] && frame[12..18] == [0x88, 0x08, 0, 1, quanta, quanta]
        };
        assert!(capture.windows(18).any(is));
    }
    assert!(printed(&["explain", out]).contains("pause"));
    printed(&["report", out]);
    assert!(fs::read_to_string(place.join("report.html")).unwrap().contains("port-pause"));
}

/// Three hosts send 150 kB in each of two priorities: neither stores 200 kB, but both together do.
#[test]
fn priorities_count_together() {
    let pauses = |scheme: &str| {
        let mut args = vec!["run", "scenario.toml", "--json", "--no-out", "--quiet", "--set", scheme];
        let set = ["topology.leaves=1", "traffic.0.fan_in=3", "traffic.1.fan_in=3"];
        for set in set.into_iter().chain(["traffic.0.size=150kB", "traffic.1.size=150kB"]) {
            args.extend(["--set", set]);
        }
        let summary: serde_json::Value = serde_json::from_str(&printed(&args)).unwrap();
        summary["pauses"]["count"].as_u64().unwrap()
    };
    assert_eq!(pauses("flow_control.scheme=pfc"), 0);
    assert!(pauses("flow_control.scheme=port-pause") > 0);
}

#[test]
fn threads_change_nothing() {
    let args = ["run", "scenario.toml", "--no-out", "--quiet", "--json", "--threads"];
    let run = |threads| printed(&[&args[..], &[threads]].concat());
    assert_eq!(run("1"), run("2"));
}

#[test]
fn a_grid_compares_it_with_a_scheme_that_is_built_in() {
    let vary = ["--vary", "flow_control.scheme=port-pause,pfc", "--vary", "flow_control.xoff=100kB,200kB"];
    let said = printed(&[&["run", "scenario.toml", "--no-out", "--quiet"], &vary[..]].concat());
    for point in ["port-pause  100kB", "port-pause  200kB", "pfc         100kB", "pfc         200kB"] {
        assert!(said.contains(point), "{said}");
    }
}

#[test]
fn check_proves_by_its_pause_relation() {
    let said = printed(&["check", "scenario.toml"]);
    assert!(said.contains("port-pause (a pause stops a whole link)"), "{said}");
    assert!(said.contains("deadlock-free") || said.contains("cannot deadlock"), "{said}");
}

/// A ring whose flows have two priorities in turn: no single priority closes it.
#[test]
fn a_ring_of_two_priorities_deadlocks_and_check_shows_how() {
    let under = |scheme: &str| {
        let mut ring = vec!["../itsy.toml", "--set", scheme];
        for set in
            ["traffic.0.priority=3", "traffic.1.priority=4", "traffic.2.priority=3", "traffic.3.priority=4"]
        {
            ring.extend(["--set", set]);
        }
        let run = printed(&[&["run", "--no-out", "--quiet", "--json"], &ring[..]].concat());
        let summary: serde_json::Value = serde_json::from_str(&run).unwrap();
        (printed(&[&["check"], &ring[..]].concat()), summary["deadlock"].is_object())
    };
    let (said, deadlocked) = under("flow_control.scheme=port-pause");
    assert!(
        said.contains("can deadlock") && said.contains("a simulation confirms it") && deadlocked,
        "{said}"
    );
    let (said, deadlocked) = under("flow_control.scheme=pfc");
    assert!(said.contains("cannot deadlock") && !deadlocked, "{said}");
}

#[test]
fn errors_are_reported_with_their_place() {
    let errors = xoff(&["run", "scenario.toml", "--set", "flow_control.xof=1kB"]).2;
    assert!(errors.contains("unknown key `xof`") && errors.contains("did you mean `xoff`"), "{errors}");
    let place = place("wrong.toml");
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("scenario.toml")).unwrap();
    fs::write(&place, text.replace("xon = ", "quanta = 1\nxon = ")).unwrap();
    let errors = xoff(&["run", place.to_str().unwrap()]).2;
    assert!(errors.contains("wrong.toml:14:10") && errors.contains("would run out"), "{errors}");
}

#[test]
fn it_is_listed_with_its_keys() {
    let said = printed(&["schemes", "port-pause"]);
    for word in ["xoff", "2bdp", "bytes, BDP", "xon", "quanta", "65535"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let schema: serde_json::Value = serde_json::from_str(&printed(&["schema"])).unwrap();
    let all = schema["$defs"]["FlowControl"]["oneOf"].as_array().unwrap();
    assert!(all.iter().any(|one| one["properties"]["scheme"]["const"] == "port-pause"));
    assert!(printed(&["schema", "--markdown"]).contains("flow_control.scheme = \"port-pause\""));
}
