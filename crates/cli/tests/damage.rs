//! Damaged results: every reader reports them, names the file and ends with status 1.

use crate::common::{self, xoff};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use twox_hash::XxHash3_128;
use xoff_results::{explain, report};

/// Three senders into one receiver, so that every table has rows.
const INCAST: &str = r#"
[topology]
kind = "line"
switches = 2
hosts_per_switch = 2
link = { rate = "100Gbps", delay = "1us" }

[flow_control]
scheme = "pfc"
xoff = "10kB"
xon = "5kB"

[[traffic]]
kind = "incast"
fan_in = 3
to = "H0"
size = "50kB"

[measure]
explain = true
interval = "2us"
"#;

fn scratch(test: &str) -> PathBuf {
    let path = common::scratch(test);
    fs::write(path.join("incast.toml"), INCAST).unwrap();
    path
}

fn good(dir: &Path, args: &[&str]) -> Output {
    let done = xoff(dir, args);
    assert_eq!(done.status.code(), Some(0), "{args:?}: {}", err(&done));
    done
}

/// Standard error without blanks and frames: names of files are broken over lines.
fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).chars().filter(|c| !c.is_whitespace() && *c != '│').collect()
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

/// A damage of a file: its name, and the bytes after it; `None` removes the file.
type Damage = (String, Option<Vec<u8>>);

/// The damages of a file with these bytes; some use the bytes of another file.
fn damages(bytes: &[u8], others: &[(&str, Vec<u8>)], flips: usize) -> Vec<Damage> {
    let n = bytes.len();
    let mut all: Vec<Damage> = vec![("removed".into(), None)];
    let mut add = |what: String, after: Vec<u8>| {
        if after != bytes {
            all.push((what, Some(after)));
        }
    };
    for i in 0..flips {
        // The ends, and places spread over the file.
        let at = match i {
            0 => 0,
            1 => n - 1,
            _ => i * 7919 * n / (flips * 7919) % n,
        };
        let mut after = bytes.to_vec();
        after[at] ^= 1 << (i * 5 % 8);
        add(format!("bit {} of byte {at} flipped", i * 5 % 8), after);
    }
    for size in [0, 1, n / 2, n - 1] {
        add(format!("cut to {size}"), bytes[..size].to_vec());
    }
    for (from, to) in [(0, n), (n / 2, n), (n / 3, n / 3 + n / 9 + 1)] {
        let mut after = bytes.to_vec();
        after[from..to].fill(0);
        add(format!("zeros from {from} to {to}"), after);
    }
    add("a byte more".into(), [bytes, b"\n"].concat());
    add("a block of zeros more".into(), [bytes, &[0; 4096]].concat());
    for (what, other) in others {
        add(format!("replaced by {what}"), other.clone());
    }
    all
}

fn apply(path: &Path, damage: &Damage) {
    match &damage.1 {
        Some(bytes) => fs::write(path, bytes).unwrap(),
        None => fs::remove_file(path).unwrap(),
    }
}

/// Asserts that a program said that this file is damaged, in one message.
fn refused(done: &Output, name: &str, case: &str) {
    let text = err(done);
    assert_eq!(done.status.code(), Some(1), "{case}: {text}");
    assert!(text.contains(name) && !text.contains("panicked"), "{case}: {text}");
    assert!(done.stdout.is_empty(), "{case}");
}

#[test]
fn report_and_explain_see_every_damage_of_a_run() {
    let dir = scratch("run");
    good(&dir, &["run", "incast.toml", "--pcap", "all", "--out", "r"]);
    good(
        &dir,
        &["run", "incast.toml", "--pcap", "all", "--seed", "7", "--set", "traffic.0.size=51kB", "--out", "s"],
    );
    good(&dir, &["report", "r", "--out", "page.html"]);
    let page = fs::read(dir.join("page.html")).unwrap();
    let explained = good(&dir, &["explain", "r"]).stdout;
    let all = names(&dir.join("r"));
    assert_eq!(all.len(), 13);
    let mut cases = 0;
    for name in &all {
        let path = dir.join("r").join(name);
        let bytes = fs::read(&path).unwrap();
        let others = [
            ("that of another run", fs::read(dir.join("s").join(name)).unwrap()),
            (
                "another file",
                fs::read(dir.join("r").join(if name == "ports.parquet" {
                    "nodes.parquet"
                } else {
                    "ports.parquet"
                }))
                .unwrap(),
            ),
        ];
        // The manifest of another run agrees with itself, and not with the other files.
        let blamed = |what: &str| {
            if name == "manifest.json" && what.contains("another run") { ".parquet" } else { name.as_str() }
        };
        for damage in damages(&bytes, &others, 9) {
            apply(&path, &damage);
            let case = format!("{name}: {}", damage.0);
            let (a, b) = (xoff(&dir, &["report", "r", "--out", "new.html"]), xoff(&dir, &["explain", "r"]));
            // No checksum covers the wall time, and no result depends on it.
            if name == "manifest.json" && a.status.success() && b.status.success() {
                assert_eq!(fs::read(dir.join("new.html")).unwrap(), page, "{case}");
                assert_eq!(b.stdout, explained, "{case}");
            } else {
                refused(&a, blamed(&damage.0), &case);
                refused(&b, blamed(&damage.0), &case);
            }
            cases += 2;
            fs::write(&path, &bytes).unwrap();
        }
    }
    good(&dir, &["report", "r", "--out", "new.html"]);
    assert_eq!(fs::read(dir.join("new.html")).unwrap(), page);
    assert!(cases > 400, "{cases} cases");
    eprintln!("{cases} damages of a run seen");
}

/// A pipe in a file's place is refused: to read it would wait for a writer that never comes.
#[test]
#[cfg(unix)]
fn pipes_in_a_run_are_refused() {
    let dir = scratch("pipes");
    good(&dir, &["run", "incast.toml", "--out", "r"]);
    for name in names(&dir.join("r")) {
        let path = dir.join("r").join(&name);
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        for verb in ["report", "explain"] {
            refused(&xoff(&dir, &[verb, "r"]), &name, verb);
        }
        fs::remove_file(&path).unwrap();
        fs::write(&path, bytes).unwrap();
    }
}

/// Gives a run the manifest that fits to its damaged files.
fn sealed_again(run: &Path, name: &str) {
    let sum = |bytes: &[u8]| format!("{:032x}", XxHash3_128::oneshot(bytes));
    let bytes = fs::read(run.join(name)).unwrap();
    let text = fs::read_to_string(run.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    let file = manifest["files"].as_array().unwrap().iter().find(|f| f["name"] == name).unwrap();
    let text = text.replace(file["xxh128"].as_str().unwrap(), &sum(&bytes));
    let old = manifest["xxh128"].as_str().unwrap();
    let rest: String = text
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("  \"xxh128\": ") && !line.starts_with("  \"wall_seconds\": "))
        .collect();
    fs::write(run.join("manifest.json"), text.replacen(old, &sum(rest.as_bytes()), 1)).unwrap();
}

#[test]
fn readers_never_panic_even_if_the_checksums_fit() {
    let dir = scratch("sealed");
    good(&dir, &["run", "incast.toml", "--out", "r"]);
    let run = dir.join("r");
    let manifest = fs::read(run.join("manifest.json")).unwrap();
    let (mut cases, mut seen) = (0, 0);
    for name in names(&run).iter().filter(|n| n.ends_with(".parquet") || *n == "summary.json") {
        let bytes = fs::read(run.join(name)).unwrap();
        // The footer of a Parquet file describes all of it.
        let spread = (0..150).map(|i| i * bytes.len() / 150);
        let end = (0..150).map(|i| bytes.len().saturating_sub(1 + i * 4));
        for (i, at) in spread.chain(end).enumerate() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (i % 8);
            fs::write(run.join(name), &damaged).unwrap();
            sealed_again(&run, name);
            // A panic would end this test.
            let page = report::document(&run).map(drop);
            let story = explain::read::read(&run).map(drop);
            for error in [page, story].into_iter().filter_map(Result::err) {
                let text = error.to_string();
                // A changed name or number has another error.
                assert!(!text.contains("checksum in"), "{name}, byte {at}: the manifest fits: {text}");
                seen += 1;
            }
            cases += 2;
            fs::write(run.join("manifest.json"), &manifest).unwrap();
        }
        fs::write(run.join(name), &bytes).unwrap();
    }
    assert!(cases > 4000 && seen > 500, "{seen} of {cases}");
    eprintln!("{cases} readings of damaged files with checksums that fit, {seen} refused, no panic");
}

#[test]
fn a_damaged_run_of_a_grid_is_made_again_and_report_sees_it() {
    let dir = scratch("grid");
    let args = [
        "run",
        "incast.toml",
        "--quiet",
        "--vary",
        "traffic.0.size=50kB,51kB",
        "--seeds",
        "1,2",
        "--out",
        "g",
    ];
    let resume = [&args[..], &["--resume"]].concat();
    let answer = good(&dir, &args).stdout;
    good(&dir, &["report", "g", "--out", "page.html"]);
    let page = fs::read(dir.join("page.html")).unwrap();
    let (run, other) = ("g/runs/2_size=50kB_seed=2", "g/runs/3_size=51kB_seed=1");
    let mut cases = 0;

    // The grid's own files.
    for name in ["grid.json", "grid.parquet"] {
        let path = dir.join("g").join(name);
        let bytes = fs::read(&path).unwrap();
        let another = [("another file", fs::read(dir.join(run).join("summary.json")).unwrap())];
        for damage in damages(&bytes, &another, 15) {
            apply(&path, &damage);
            let case = format!("{name}: {}", damage.0);
            // Without `grid.json` there is no grid.
            let blamed = if name == "grid.json" && damage.1.is_none() { "isnotarundirectory" } else { name };
            refused(&xoff(&dir, &["report", "g", "--out", "new.html"]), blamed, &case);
            cases += 1;
            fs::write(&path, &bytes).unwrap();
        }
    }

    // Those of a run.
    for name in names(&dir.join(run)) {
        let path = dir.join(run).join(&name);
        let bytes = fs::read(&path).unwrap();
        let another = [("that of another run", fs::read(dir.join(other).join(&name)).unwrap())];
        // `report` reads the data on the page.
        let shown = ["manifest.json", "summary.json"].contains(&name.as_str());
        for damage in damages(&bytes, &another, 2) {
            let case = format!("{name}: {}", damage.0);
            apply(&path, &damage);
            if shown {
                let done = xoff(&dir, &["report", "g", "--out", "new.html"]);
                let blamed = if damage.0.contains("another run") { ".json" } else { &name };
                refused(&done, blamed, &case);
                cases += 1;
            }
            let done = good(&dir, &resume);
            let text = err(&done);
            let said = text.contains("warning:run2_size=50kB_seed=2isrepeated") && text.contains("damaged")
                || text.contains("missing");
            assert!(said && !text.contains("panicked"), "{case}: {text}");
            assert_eq!(done.stdout, answer, "{case}");
            let again = fs::read(&path).unwrap();
            assert!(again == bytes || name == "manifest.json", "{case}: made again, and differs");
            cases += 1;
        }
    }
    good(&dir, &["report", "g", "--out", "new.html"]);
    assert_eq!(fs::read(dir.join("new.html")).unwrap(), page);

    // Two whole runs in each other's place, and one that is gone.
    let (a, b, aside) = (dir.join(run), dir.join(other), dir.join("aside"));
    let swap = || {
        fs::rename(&a, &aside).unwrap();
        fs::rename(&b, &a).unwrap();
        fs::rename(&aside, &b).unwrap();
    };
    swap();
    refused(&xoff(&dir, &["report", "g"]), "belongstoanotherrun", "two runs exchanged");
    refused(&xoff(&dir, &resume), "anotherscenario", "two runs exchanged");
    swap();
    fs::rename(&a, &aside).unwrap();
    good(&dir, &["report", "g", "--out", "new.html"]);
    assert!(
        fs::read_to_string(dir.join("new.html")).unwrap().contains("INCOMPLETE: 3 of 4 runs are finished")
    );
    assert_eq!(good(&dir, &resume).stdout, answer);
    assert!(cases > 150, "{cases} cases");
    eprintln!("{cases} damages of a grid seen");
}

#[test]
fn directories_of_before_checksums_are_refused_in_words() {
    let dir = scratch("older");
    good(&dir, &["run", "incast.toml", "--out", "r"]);
    let path = dir.join("r/manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    let mut manifest: Value = serde_json::from_str(&text).unwrap();
    manifest["format_version"] = 1.into();
    manifest.as_object_mut().unwrap().remove("xxh128");
    fs::write(&path, manifest.to_string()).unwrap();
    for verb in ["report", "explain"] {
        let done = xoff(&dir, &[verb, "r"]);
        refused(&done, "manifest.jsonisinformat1of`xoffrun`,andthisversionofxoffreadsformat3", verb);
    }
    // The next run may replace it, as it may a run with a damaged manifest, and nothing else.
    let over = ["run", "incast.toml", "--out", "r", "--overwrite"];
    good(&dir, &over);
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    let kept = xoff(&dir, &over[..4]);
    assert!(kept.status.code() == Some(1) && fs::read(&path).unwrap().len() == text.len() / 2);
    good(&dir, &over);
    good(&dir, &["explain", "r"]);
    fs::write(&path, "{").unwrap();
    fs::write(dir.join("r/thesis.txt"), "years of work").unwrap();
    assert_eq!(xoff(&dir, &over).status.code(), Some(1));
    assert!(dir.join("r/thesis.txt").exists());
}
