//! For any text of a scenario, loading returns; it never panics.
//!
//! Lines `# --set key=value` are overrides, as in `crates/plan/tests/wrong`. The target skips or shortens
//! large scenarios (a network of a million hosts, an hour of traffic): xoff builds them by design, and they
//! would only slow the search.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use std::path::{Path, PathBuf};
use std::{env, fs, io};
use toml::{Table, Value};
use xoff_net::units::Span;

/// Networks of about so many ports are built …
const SMALL: f64 = 3e3;
/// … and those far beyond the limits of the program are refused by it.
const REFUSED: f64 = 1e9;
/// Longest traffic, in picoseconds: 1 ns. Links have up to 1 Pbit/s.
const LONGEST: u64 = 1_000;

/// The wrong scenarios of the tests, in the directory `XOFF_FUZZ_SEEDS`.
fn seeds() {
    let Some(place) = env::var_os("XOFF_FUZZ_SEEDS").map(PathBuf::from) else { return };
    let tables = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/plan/tests/wrong");
    let read = |path: &Path| fs::read_to_string(path).unwrap().parse::<Table>().unwrap();
    let fragments = read(&tables.join("fragments.toml"));
    for path in fs::read_dir(tables).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file())
    {
        let table = read(&path);
        for case in table.get("case").and_then(Value::as_array).into_iter().flatten() {
            let Some(text) = case.get("scenario").and_then(Value::as_str) else { continue };
            let expand =
                |line| str::strip_prefix(line, '@').map_or(line, |name| fragments[name].as_str().unwrap());
            let text: Vec<&str> = text.lines().map(expand).collect();
            fs::write(place.join(case["name"].as_str().unwrap()), text.join("\n")).unwrap();
        }
    }
}

fuzz_target!(init: { seeds() }, |data: &[u8]| -> Corpus {
    let text = String::from_utf8_lossy(data);
    let table = text.parse::<Table>().unwrap_or_default();
    let size = table.get("topology").and_then(Value::as_table).map_or(0.0, size);
    if size > SMALL && size < REFUSED {
        return Corpus::Reject;
    }
    let mut overrides: Vec<(String, String)> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# --set ")?.split_once('='))
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .filter(|(key, _)| !key.contains("topology") && !key.contains("run"))
        .collect();
    if table.get("traffic").and_then(Value::as_array).is_some_and(|all| all.iter().any(repeats)) {
        return Corpus::Reject;
    }
    let duration = table.get("run").and_then(|run| run.get("duration"));
    let long = match duration {
        Some(given) => given.as_str().and_then(|t| t.parse::<Span>().ok()).is_some_and(|t| t.0 > LONGEST),
        // `stop` bounds traffic too.
        None => text.contains("stop"),
    };
    if long {
        overrides.push(("run.duration".to_string(), format!("{LONGEST}ps")));
    }
    match xoff_plan::load("fuzz.toml", data, &overrides, &file) {
        Ok(loaded) => {
            assert!(!xoff_plan::describe::describe(&loaded).is_empty());
            serde_json::to_value(&loaded.scenario).expect("a scenario can be written");
        }
        Err(error) => {
            assert!(!error.one_line().is_empty());
            assert!(!error.message().is_empty());
        }
    }
    Corpus::Keep
});

/// Whether a traffic table has so many rounds or tokens that building it takes
/// long, and not so many that it is refused.
fn repeats(traffic: &Value) -> bool {
    ["rounds", "tokens"].iter().any(|key| {
        traffic.get(*key).and_then(Value::as_integer).is_some_and(|n| (100..100_000_000).contains(&n))
    })
}

/// The files that a scenario may name.
fn file(path: &Path) -> io::Result<Vec<u8>> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("csv") => Ok(b"src,dst,bytes,start\nH0,H1,1000,0ns\n1,0,5,1ps\n".to_vec()),
        Some("cdf" | "txt") => Ok(b"0 0\n1000 50\n30000 100\n".to_vec()),
        _ => Err(io::Error::other("no such file")),
    }
}

/// About how many ports a topology has.
fn size(topology: &Table) -> f64 {
    let int = |key: &str| topology.get(key).and_then(Value::as_integer).map_or(1.0, |i| i.max(1) as f64);
    match topology.get("kind").and_then(Value::as_str) {
        Some("ndc") => {
            (1..=int("k") as u64 + 1).take(64).fold(1.0, |hosts, _| hosts * int("n")) * (int("k") + 1.0)
        }
        Some("fat-tree") => int("k") * int("k") * int("k") * int("oversubscription"),
        Some("leaf-spine") => int("leaves") * (int("spines") * int("links_per_pair") + int("hosts_per_leaf")),
        _ => topology.values().filter_map(Value::as_integer).fold(1.0, |all, i| all * i.max(1) as f64),
    }
}
