//! `make soak`: new seeds for a given time, or one seed, or one scenario.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use xoff_swarm::soak::{self, Tally, Ticker};
use xoff_swarm::trial::{self, Verdict};
use xoff_swarm::{generate, scenario::Scenario};

/// Findings of one kind that are made smaller; the others are only counted.
const SAVED: usize = 3;

/// A seed that takes longer is named.
const SLOW: Duration = Duration::from_secs(3);

const USAGE: &str = "\
swarm seeds FROM COUNT SECONDS DIR   tries COUNT seeds from FROM on, for SECONDS at most (0 is no bound each);
                                     saves what it finds in DIR
swarm show SEED                      prints the scenario of a seed
swarm save FROM COUNT DIR            writes DIR/SEED/scenario.toml for COUNT seeds from FROM on
swarm try FILE                       tries a scenario";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().ok();
    match args[..] {
        ["show", seed] => match number(seed) {
            Some(seed) => show(seed),
            None => usage(),
        },
        ["save", from, count, dir] => match (number(from), number(count)) {
            (Some(from), Some(count)) => save(from, count, Path::new(dir)),
            _ => usage(),
        },
        ["try", file] => attempt(Path::new(file)),
        ["seeds", from, count, seconds, dir] => match (number(from), number(count), number(seconds)) {
            (Some(from), Some(count), Some(seconds)) => seeds(from, count, seconds, Path::new(dir)),
            _ => usage(),
        },
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

fn show(seed: u64) -> ExitCode {
    let scenario = generate::scenario(seed);
    print!("{}", scenario.text());
    for (name, text) in &scenario.files {
        match std::str::from_utf8(text) {
            Ok(text) => println!("\n# {name}\n{text}"),
            Err(_) => println!("\n# {name}: {} bytes", text.len()),
        }
    }
    ExitCode::SUCCESS
}

/// Writes the scenarios of seeds, each into a directory of its own.
fn save(from: u64, count: u64, dir: &Path) -> ExitCode {
    for seed in from..from.saturating_add(count) {
        let path = dir.join(seed.to_string()).join("scenario.toml");
        if let Err(e) = generate::scenario(seed).save(&path, &format!("Seed {seed}")) {
            eprintln!("{}: {e}", path.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Tries a scenario that lies beside its files.
fn attempt(path: &Path) -> ExitCode {
    let Ok(text) = fs::read_to_string(path) else {
        eprintln!("{} cannot be read", path.display());
        return ExitCode::FAILURE;
    };
    let table = match text.parse() {
        Ok(table) => table,
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::FAILURE;
        }
    };
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")))
        .into_iter()
        .flatten()
        .flatten()
    {
        if let (Ok(bytes), Some(name)) = (fs::read(entry.path()), entry.file_name().to_str()) {
            files.insert(name.to_string(), bytes);
        }
    }
    trial::catch_panics();
    let verdict = trial::trial(&Scenario { table, files });
    println!("{verdict:#?}");
    match verdict {
        Verdict::Finding(_) => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

fn seeds(from: u64, count: u64, seconds: u64, dir: &Path) -> ExitCode {
    trial::catch_panics();
    let begun = Instant::now();
    let running = dir.join("running");
    if let Err(e) = fs::create_dir_all(&running) {
        eprintln!("{}: {e}", running.display());
        return ExitCode::FAILURE;
    }
    let threads = thread::available_parallelism().map_or(1, |n| n.get());
    let tally = Arc::new(Mutex::new(Tally::default()));
    let kinds = Mutex::new(BTreeMap::<String, usize>::new());
    let shown = tally.clone();
    let ticker = Ticker::new(Duration::from_secs(10), move || {
        let tally = shown.lock().unwrap_or_else(|e| e.into_inner());
        eprintln!("{}, {:.1} seeds/s", tally.line(), tally.done as f64 / begun.elapsed().as_secs_f64());
    });
    let goes_on = || seconds == 0 || begun.elapsed().as_secs() < seconds;
    let count = if count == 0 { u64::MAX } else { count };
    let result = soak::seeds(from, count, threads, &goes_on, &|seed, scenario, done| {
        // If the process dies, the seeds that it was at are left.
        let under_way = running.join(seed.to_string());
        let Some((verdict, took)) = done else {
            let _ = fs::write(&under_way, scenario.text());
            return;
        };
        let _ = fs::remove_file(&under_way);
        if took > SLOW {
            eprintln!("seed {seed}: took {:.1} s", took.as_secs_f64());
        }
        tally.lock().unwrap_or_else(|e| e.into_inner()).count(seed, verdict.clone());
        let Verdict::Finding(broken) = verdict else { return };
        eprintln!("seed {seed}: {}: {:.300}", broken.invariant, broken.detail);
        let known = {
            let mut kinds = kinds.lock().unwrap_or_else(|e| e.into_inner());
            let known = kinds.entry(broken.invariant.clone()).or_default();
            *known += 1;
            *known
        };
        if known <= SAVED {
            match soak::save(dir, seed, scenario, broken) {
                Ok(path) => eprintln!("seed {seed}: made smaller in {}", path.display()),
                Err(e) => eprintln!("seed {seed}: cannot be saved: {e}"),
            }
        }
    });
    drop(ticker);
    println!("{} in {:.0} s", result.line(), begun.elapsed().as_secs_f64());
    let mut refused: Vec<_> = result.refused.iter().collect();
    refused.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
    if env::var_os("SWARM_REFUSED").is_some() {
        for (why, n) in &refused {
            println!("{n:5} refused: {why}");
        }
    }
    for (kind, n) in kinds.into_inner().unwrap_or_else(|e| e.into_inner()) {
        println!("{n:5} findings: {kind}");
    }
    if result.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
