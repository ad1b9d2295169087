//! A directory of a run and one of a grid; the fuzzer replaces one file. Checksums are not compared under
//! `cfg(fuzzing)`, because otherwise the fuzzer would not reach the code after them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use xoff_plan::Loaded;
use xoff_results::directory::{About, prepare, prepare_in_grid};
use xoff_results::grid::compare::Entry;
use xoff_results::grid::directory::{self as grids, RunAbout};
use xoff_results::grid::metrics::Row;
use xoff_results::grid::{Axis, Grid, fingerprint};
use xoff_results::integrity::guarded;
use xoff_results::{explain, report, summary};
use xoff_sim::outcome::Outcome;

/// A small incast with pauses and a critical path, so that no file is empty.
const SCENARIO: &str = "[topology]\nkind = \"line\"\nswitches = 2\nhosts_per_switch = 2\n\
    link = {rate=\"100Gbps\", delay=\"1us\"}\n[flow_control]\nscheme = \"pfc\"\n\
    [measure]\ninterval = \"10us\"\nexplain = true\n[run]\nduration = \"50us\"\n\
    [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H3\"\nsize = \"200kB\"\n\
    [[traffic]]\nkind = \"flow\"\nsrc = \"H1\"\ndst = \"H3\"\nsize = \"200kB\"\n\
    [[traffic]]\nkind = \"flow\"\nsrc = \"H2\"\ndst = \"H3\"\nsize = \"200kB\"\n";

/// A directory to read: `run`, `grid`, and the files in them that are replaced.
pub struct Place {
    run: PathBuf,
    grid: PathBuf,
    grid_of: Grid,
    about: grids::About,
    files: Vec<PathBuf>,
}

impl Place {
    /// Runs the scenario and writes both directories. With `XOFF_FUZZ_SEEDS=DIR`, writes the fuzzer's first
    /// inputs to DIR: each file with this ending, after a byte that chooses it.
    pub fn make(ending: &str) -> Self {
        // The fuzzer's own hook aborts at once, before a reader can catch a panic of the Parquet library.
        std::panic::set_hook(Box::new(|info| eprintln!("{info}")));
        let place = env::temp_dir().join(format!("xoff-fuzz-{}", std::process::id()));
        let (run, grid) = (place.join("run"), place.join("grid"));
        fs::create_dir_all(&place).expect("a directory");
        let (loaded, outcome) = make_run(1);
        store(&run, false, &loaded, &outcome);

        let grid_of = Grid {
            axes: vec![Axis { key: "run.seed".into(), values: vec!["1".into(), "2".into()], named: true }],
            seeds: Vec::new(),
        };
        let scenario = serde_json::to_value(&loaded.scenario).expect("a scenario can be written");
        let about =
            |seed| RunAbout { seed, fingerprint: fingerprint::of_run(&scenario, &[]), files: Vec::new() };
        let about = grids::About {
            name: "fuzz".into(),
            version: "fuzz".into(),
            overrides: Vec::new(),
            scenario: scenario.clone(),
            runs: vec![about(1), about(2)],
        };
        let directory = grids::create(&grid, &grid_of, &about).expect("a grid");
        let entries: Vec<Entry> = (0..2)
            .map(|i| {
                let (loaded, outcome) = make_run(i as u64 + 1);
                let written = store(&directory.run(&grid_of.name(i)), true, &loaded, &outcome);
                Entry::stored(Row::read(&written).expect("a summary"), "0".into())
            })
            .collect();
        directory.write(&grid_of, &about, &entries).expect("a grid");
        drop(directory);

        let mut files = Vec::new();
        find(&place, ending, &mut files);
        files.sort();
        if let Some(seeds) = env::var_os("XOFF_FUZZ_SEEDS").map(PathBuf::from) {
            for (i, file) in files.iter().enumerate() {
                let mut seed = vec![u8::try_from(i).expect("few files")];
                seed.extend(fs::read(file).expect("a file"));
                fs::write(seeds.join(format!("seed-{i}")), seed).expect("a seed");
            }
        }
        Self { run, grid, grid_of, about, files }
    }

    /// Replaces the file that the first byte chooses by the other bytes, reads run and grid as every
    /// reader does, and puts the file back.
    pub fn read_with(&self, data: &[u8]) {
        let Some((&which, bytes)) = data.split_first() else { return };
        let file = &self.files[usize::from(which) % self.files.len()];
        let before = fs::read(file).expect("a file");
        fs::write(file, bytes).expect("a file");
        for path in [&self.run, &self.grid] {
            if let Ok(document) = report::document(path) {
                assert!(!report::html::page(&document).is_empty());
            }
        }
        if let Ok(run) = explain::read::read(&self.run) {
            // As the command does.
            let _ = guarded(&self.run, || {
                let _ = explain::overview(&self.run, &run, None).map(|a| explain::text::overview(&a));
                let _ = explain::port(&self.run, &run, "S0:0", None).map(|a| explain::text::port(&a));
                Ok(explain::flow(&self.run, &run, 0).map(|a| explain::text::flow(&a)).is_ok())
            });
        }
        if let Ok(directory) = grids::resume(&self.grid, &self.grid_of, &self.about) {
            for (i, run) in self.about.runs.iter().enumerate() {
                let _ = directory.finished(&self.grid_of.name(i), &self.about, run);
            }
        }
        fs::write(file, before).expect("a file");
    }
}

/// The scenario under a seed, and its outcome.
fn make_run(seed: u64) -> (Loaded, Outcome) {
    let none = |_: &Path| Err(std::io::Error::other("no such file"));
    let set = [("run.seed".to_string(), seed.to_string())];
    let loaded = xoff_plan::load("fuzz.toml", SCENARIO.as_bytes(), &set, &none).expect("a scenario");
    let outcome = xoff_sim::run(&loaded.plan, &mut |_| true);
    (loaded, outcome)
}

/// Writes a run's directory; returns its summary.
fn store(path: &Path, in_grid: bool, loaded: &Loaded, outcome: &Outcome) -> serde_json::Value {
    let about = About {
        scenario: serde_json::to_value(&loaded.scenario).expect("a scenario can be written"),
        overrides: Vec::new(),
        version: "fuzz".to_string(),
        wall_seconds: 0.0,
    };
    let summary = summary::summarise("fuzz", &loaded.plan, outcome);
    let writer = if in_grid { prepare_in_grid(path) } else { prepare(path) };
    writer.and_then(|w| w.write(&about, &loaded.plan, outcome, &summary)).expect("a run directory");
    serde_json::to_value(&summary).expect("a summary can be written")
}

/// The files below a directory whose names end so.
fn find(at: &Path, ending: &str, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(at).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            find(&path, ending, files);
        } else if path.to_str().is_some_and(|name| name.ends_with(ending)) {
            files.push(path);
        }
    }
}
