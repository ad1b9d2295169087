//! `xoff live`: what it refuses, and runs on real frames. Where the system forbids network namespaces the runs
//! are left out; `cargo test -p xoff-live` then counts a test as ignored.
#![cfg(target_os = "linux")]

use crate::common::{command, scratch, xoff};
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;

fn example(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/{name}.toml")).display().to_string()
}

/// Standard error in one line, without the frame that error reports are drawn in.
fn err(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    let words = text.split_whitespace().filter(|w| !["│", "×", "╰─▶", "|"].contains(w));
    words.collect::<Vec<_>>().join(" ")
}

/// Whether the system permits namespaces.
fn permitted(dir: &Path) -> bool {
    let ring = example("ring3");
    let tried = xoff(dir, &["live", &ring, "--lockstep", "--no-out", "-q", "--set", "run.duration=5us"]);
    let forbidden = err(&tried).contains("forbids network namespaces");
    assert!(forbidden || tried.status.success(), "{}", err(&tried));
    if forbidden {
        eprintln!("no run: {}", err(&tried));
    }
    !forbidden
}

fn manifest(dir: &Path, run: &str) -> Value {
    serde_json::from_slice(&fs::read(dir.join(run).join("manifest.json")).unwrap()).unwrap()
}

#[test]
fn what_does_not_fit_is_refused_before_anything_runs() {
    let dir = scratch("refused");
    let leaf_spine = |hosts: u32| format!("topology.hosts_per_leaf={hosts}");
    for (name, args, why) in [
        ("zeropod", &[][..], "pods without buffers have no queues"),
        (
            "ring3",
            &["--set", "transport.kind=tcp-newreno", "--set", "traffic.0.size=5GB", "--lockstep"],
            "a flow has 5000000000 B; TCP numbers bytes below 4294967294",
        ),
        (
            "ring3",
            &["--set", "traffic.0.size=17GB", "--lockstep"],
            "a flow has 17000000 packets; packets have numbers below 16777216",
        ),
        ("live/incast", &["--set", &leaf_spine(20)], "the scenario has 65 devices; at most 64 run live"),
        (
            "ring3",
            &["--set", "topology.link={ rate = \"100Gbps\", delay = \"0s\" }"],
            "a link has no delay, so no clock separates its ends",
        ),
        (
            "ring3",
            &["--set", "run.duration=1s"],
            "the run would take 10000 s at a dilation of 10000; the limit is 3600 s help: use --dilate 3600 or less",
        ),
        (
            "ring3",
            &["--in", "S9.9=true"],
            "--in: no device `S9.9` help: devices: H0, H1, H2, S0.0, S0.1, S0.2",
        ),
    ] {
        let output = xoff(&dir, &[&["live", &example(name), "--out", "r"], args].concat());
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(err(&output).contains(why), "{name}: {}", err(&output));
        assert!(!dir.join("r").exists());
    }
    for args in [
        &["--dilate", "0"][..],
        &["--dilate", "9", "--lockstep"],
        &["--in", "S0.0"],
        &["--no-out", "--out", "r"],
    ] {
        let output = xoff(&dir, &[&["live", &example("ring3")], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
}

/// Lockstep has the bytes of the simulator, oracles and captures included; only the note about the clock is new.
#[test]
fn lockstep_has_the_bytes_of_the_simulator() {
    let dir = scratch("lockstep");
    if !permitted(&dir) {
        return;
    }
    let ring = example("ring3");
    for scheme in ["pfc", "roundabout"] {
        let set = format!("flow_control.scheme={scheme}");
        let common = ["--set", &set, "--set", "measure.interval=10us", "--pcap", "S0.0", "--overwrite", "-q"];
        let simulated = xoff(&dir, &[&["run", &ring, "--out", "run"], &common[..]].concat());
        let live = xoff(&dir, &[&["live", &ring, "--out", "live", "--lockstep"], &common[..]].concat());
        assert!(simulated.status.success() && live.status.success(), "{}", err(&live));
        let mut files = 0;
        for entry in fs::read_dir(dir.join("run")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".parquet") || name == "capture.pcapng" {
                let read = |run: &str| fs::read(dir.join(run).join(&name)).unwrap();
                assert!(read("run") == read("live"), "{scheme}: {name}");
                files += 1;
            }
        }
        assert!(files >= 8, "{files}");
        let about = manifest(&dir, "live");
        assert_eq!(about["live"]["clock"], "lockstep");
        assert_eq!(about["live"]["frames"], about["packet_hops"]);
        assert_eq!(manifest(&dir, "run").get("live"), None);
        let shown = String::from_utf8(live.stdout).unwrap();
        let frames = about["packet_hops"].as_u64().unwrap();
        let note = "note: Live in lockstep:";
        assert!(frames > 700 && shown.contains(note), "{shown}");
    }
}

/// Half a millisecond is too short for the frames of the ring on any machine.
#[test]
fn a_run_that_is_too_fast_is_invalid() {
    let dir = scratch("invalid");
    if !permitted(&dir) {
        return;
    }
    let output = xoff(&dir, &["live", &example("ring3"), "--dilate", "1", "--out", "r", "-q"]);
    assert_eq!(output.status.code(), Some(6), "{}", err(&output));
    let live = &manifest(&dir, "r")["live"];
    assert_eq!((&live["clock"], &live["valid"], &live["dilate"]), (&"wall".into(), &false.into(), &1.into()));
    assert!(live["latest_ps"].as_u64() > live["bound_ps"].as_u64(), "{live}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("warning: Invalid: devices were too slow"));
}

/// A command of `--in` is in the namespace of its device, and gets SIGINT at the end. Ctrl-C ends a run by the
/// wall clock, and its results are kept.
#[test]
fn commands_run_in_namespaces_and_an_interrupted_run_is_kept() {
    let dir = scratch("commands");
    if !permitted(&dir) {
        return;
    }
    let seen =
        "H0=sh -c 'trap \"echo end >>seen; exit\" INT; cat /proc/net/dev >seen; while sleep 0.1; do :; done'";
    let args = [
        "live",
        &example("ring3"),
        "--dilate",
        "1000000",
        "--out",
        "r",
        "-q",
        "--in",
        seen,
        "--in",
        "S0.0=sh -c 'exit 3'",
    ];
    let mut child = command(&dir, &args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // The command captures nothing, so the run begins after 5 s.
    std::thread::sleep(Duration::from_secs(8));
    assert!(child.try_wait().unwrap().is_none(), "{:?}", child.wait_with_output());
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), nix::sys::signal::Signal::SIGINT)
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", err(&output));
    assert!(err(&output).contains("--in: `sh -c 'exit 3'` has failed: exit status: 3"), "{}", err(&output));
    assert_eq!(manifest(&dir, "r")["complete"], false);
    let text = fs::read_to_string(dir.join("seen")).unwrap();
    // H0 has one port, and no interface of the machine.
    let interfaces: Vec<&str> = text.lines().filter_map(|l| Some(l.split_once(':')?.0.trim())).collect();
    assert_eq!(interfaces, ["lo", "p0"], "{text}");
    assert!(text.ends_with("end\n"), "{text}");
}
