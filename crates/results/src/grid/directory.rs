//! The directory of a grid: `grid.json`, `grid.parquet` and below `runs/` the
//! directory of each run.
//!
//! `grid.json` is there from the beginning, so that a grid that was killed can
//! be resumed; both files are renamed into place when they are whole. Which
//! runs are done is asked of their directories, which are whole if they are
//! there. Nothing in either file depends on the clock, nor on how many runs
//! were made at a time.

use std::fs::{self, File, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value};

use super::compare::{Entry, Status, complete};
use super::metrics::{METRICS, Row, column};
use super::{Axis, Grid, fingerprint, typed};
use crate::columns::{self, Column};
use crate::directory::{self as run, Error, Partial, failed, replace, store, unwrapped};

/// Value of `format` in `grid.json`.
pub const FORMAT: &str = "xoff grid";
/// Version of the directory's layout; grows when a file or column changes its meaning.
pub const FORMAT_VERSION: u32 = 1;
/// The manifest's file name.
pub const MANIFEST: &str = "grid.json";
/// The file name of the table of runs.
pub const TABLE: &str = "grid.parquet";
/// The directory that holds the runs.
pub const RUNS: &str = "runs";
/// A file that is locked while somebody writes the grid.
const LOCK: &str = ".lock";

/// What the caller knows of a grid beyond its axes and seeds.
#[derive(Clone, Debug)]
pub struct About {
    /// The scenario's name.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// `key=value` overrides of every run, as given.
    pub overrides: Vec<String>,
    /// The whole effective scenario of the first run.
    pub scenario: Value,
    /// By run.
    pub runs: Vec<RunAbout>,
}

/// What a grid knows of a run before it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunAbout {
    /// Its seed.
    pub seed: u64,
    /// Of its effective scenario and `files`, see [`fingerprint::of_run`].
    pub fingerprint: String,
    /// The files that the scenario names: path as written, hash of the contents.
    pub files: Vec<(String, u64)>,
}

/// Contents of `grid.json`.
#[derive(Serialize)]
struct Manifest<'a> {
    format: &'static str,
    format_version: u32,
    xoff_version: &'a str,
    name: &'a str,
    complete: bool,
    overrides: &'a [String],
    axes: &'a [Axis],
    seeds: &'a [u64],
    runs: Vec<RunEntry<'a>>,
    scenario: &'a Value,
}

/// A run, as `grid.json` lists it.
#[derive(Serialize)]
struct RunEntry<'a> {
    name: String,
    path: String,
    point: usize,
    values: Map<String, Value>,
    seed: u64,
    fingerprint: &'a str,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

/// A grid's directory, which nobody else writes.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// Locked as long as it is open; `None` where the file system knows no locks.
    _lock: Option<File>,
}

/// Makes the directory of a new grid, with a `grid.json` in which no run is done.
///
/// # Errors
/// Nothing can be written there, or anything but an empty directory is in the way.
///
/// # Panics
/// If `about` does not have as many runs as the grid.
pub fn create(out: &Path, grid: &Grid, about: &About) -> Result<Directory, Error> {
    let target = resolved(out)?;
    let occupied = |message: &str, help: &str| {
        Err(Error { path: target.clone(), message: message.into(), help: help.into() })
    };
    if let Ok(mut entries) = fs::read_dir(&target) {
        if target.join(MANIFEST).exists() {
            return occupied(
                "holds a grid already",
                "Go on with it by --resume, choose another place with --out DIR, or remove it yourself.",
            );
        }
        if entries.next().is_some() {
            return occupied(
                "exists and is not empty",
                "It is left as it is. Choose another place with --out DIR, or remove it yourself.",
            );
        }
    } else if target.exists() {
        return occupied("is a file, not a directory", "Choose another place with --out DIR.");
    }
    let parent = target.parent().unwrap_or(Path::new(""));
    if !parent.as_os_str().is_empty() {
        fs::create_dir_all(parent).map_err(|e| failed(parent, "cannot be made a directory", &e))?;
    }
    let mut partial = Partial::create(&target)?;
    let runs = partial.path.join(RUNS);
    fs::create_dir(&runs).map_err(|e| failed(&runs, "cannot be made a directory", &e))?;
    let nothing = vec![Entry::default(); about.runs.len()];
    store_manifest(&partial.path, grid, about, &nothing)?;
    partial.rename(&target)?;
    let lock = lock(&target)?;
    Ok(Directory { path: target, _lock: lock })
}

/// Opens the directory of a grid that was begun before, and removes what a
/// killed process has left half written.
///
/// # Errors
/// There is no grid, or another one: of another scenario, with other overrides,
/// axes, seeds or files, or of another version of the program; or somebody is
/// writing it.
pub fn resume(out: &Path, grid: &Grid, about: &About) -> Result<Directory, Error> {
    let target = resolved(out)?;
    let file = target.join(MANIFEST);
    let refuse =
        |message: String, help: &str| Err(Error { path: target.clone(), message, help: help.into() });
    if !file.is_file() {
        let message = format!("there is no grid to resume: no {MANIFEST}");
        return refuse(
            message,
            "Leave out --resume to begin it, or name the grid's directory with --out DIR.",
        );
    }
    let text = fs::read(&file).map_err(|e| failed(&file, "cannot be read", &e))?;
    let before: Value = match serde_json::from_slice(&text) {
        Ok(value) => value,
        Err(e) => return refuse(format!("its {MANIFEST} is damaged: {e}"), OTHER),
    };
    if let Some(difference) = difference(&before, grid, about) {
        return refuse(format!("belongs to another grid: {difference}"), OTHER);
    }
    let lock = lock(&target)?;
    let directory = Directory { path: target, _lock: lock };
    directory.sweep()?;
    Ok(directory)
}

const OTHER: &str = "It is left as it is. Give the arguments with which it was begun, or choose another place \
                     with --out DIR and leave out --resume.";

/// In what a grid on disk differs from the one that is asked for, in words.
fn difference(before: &Value, grid: &Grid, about: &About) -> Option<String> {
    if before["format"] != FORMAT || before["format_version"] != FORMAT_VERSION {
        return Some(format!("its {MANIFEST} has another format"));
    }
    let nothing = vec![Entry::default(); about.runs.len()];
    let now = serde_json::to_value(manifest(grid, about, &nothing)).expect("plain data becomes JSON");
    for (key, what) in [
        ("xoff_version", "version of xoff"),
        ("name", "scenario"),
        ("overrides", "overrides (--set, --seed)"),
        ("axes", "varied keys and values (--vary)"),
        ("seeds", "seeds (--seeds)"),
    ] {
        if before[key] != now[key] {
            return Some(format!("its {what}: {} there, {} here", brief(&before[key]), brief(&now[key])));
        }
    }
    let prints = |m: &Value| -> Vec<Value> {
        m["runs"].as_array().into_iter().flatten().map(|r| r["fingerprint"].clone()).collect()
    };
    let (old, new) = (prints(before), prints(&now));
    let changed = (0..new.len()).find(|&i| old.get(i) != new.get(i))?;
    Some(match first_difference("", &before["scenario"], &now["scenario"]) {
        Some(key) => format!("the scenario has changed since at `{key}`"),
        None => {
            format!("the scenario or a file that it names has changed since, for run {}", grid.name(changed))
        }
    })
}

/// A value in one line of moderate length.
fn brief(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 120 { text } else { text.chars().take(119).chain(['…']).collect() }
}

/// The key at which two scenarios differ first.
fn first_difference(path: &str, a: &Value, b: &Value) -> Option<String> {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => x.keys().chain(y.keys()).find_map(|k| {
            let below = if path.is_empty() { k.clone() } else { format!("{path}.{k}") };
            first_difference(&below, a.get(k).unwrap_or(&Value::Null), b.get(k).unwrap_or(&Value::Null))
        }),
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            (0..x.len()).find_map(|i| first_difference(&format!("{path}[{i}]"), &x[i], &y[i]))
        }
        _ => (a != b).then(|| path.to_string()),
    }
}

impl Directory {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where a run's directory is to be.
    pub fn run(&self, name: &str) -> PathBuf {
        self.path.join(RUNS).join(name)
    }

    /// The numbers of a run that is done; `None` if it is not there, or not whole.
    ///
    /// # Errors
    /// It is whole, and made from another scenario or by another version.
    pub fn finished(&self, name: &str, about: &About, run: &RunAbout) -> Result<Option<Row>, Error> {
        let at = self.run(name);
        let Some((manifest, summary)) = whole(&at) else { return Ok(None) };
        let differs = if manifest["xoff_version"] != about.version.as_str() {
            format!("was made by xoff {}, this is {}", brief(&manifest["xoff_version"]), about.version)
        } else if fingerprint::of_run(&manifest["scenario"], &run.files) != run.fingerprint {
            "was made from another scenario".to_string()
        } else {
            return Ok(Row::read(&summary).ok());
        };
        let help = "Remove that run, or choose another place with --out DIR and leave out --resume.";
        Err(Error { path: at, message: differs, help: help.into() })
    }

    /// Writes what has become of the runs: `grid.parquet`, then `grid.json`.
    ///
    /// # Errors
    /// What the file system refuses. The older files are left then.
    pub fn write(&self, grid: &Grid, about: &About, entries: &[Entry]) -> Result<(), Error> {
        replace(&self.path.join(TABLE), |path| {
            store(path, |sink| table(sink, grid, entries).map_err(unwrapped)).map(drop)
        })?;
        store_manifest(&self.path, grid, about, entries)
    }

    /// Removes what a killed process has left under temporary names: only
    /// those that are made here, and nobody else writes while the lock is held.
    fn sweep(&self) -> Result<(), Error> {
        for place in [self.path.clone(), self.path.join(RUNS)] {
            let entries = match fs::read_dir(&place) {
                Ok(entries) => entries,
                Err(e) => return Err(failed(&place, "cannot be read", &e)),
            };
            for entry in entries {
                let path = entry.map_err(|e| failed(&place, "cannot be read", &e))?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let kind = name.rsplit_once('.').map_or("", |(_, kind)| kind);
                let ours = ["partial-", "old-"].iter().any(|k| kind.starts_with(k));
                if !name.starts_with('.') || !ours {
                    continue;
                }
                let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
                removed.map_err(|e| failed(&path, "(left by a killed run) cannot be removed", &e))?;
            }
        }
        Ok(())
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // An empty file that stays does no harm.
        let _ = fs::remove_file(self.path.join(LOCK));
    }
}

/// A link is followed, so that it survives; so are `.` and `..`.
fn resolved(out: &Path) -> Result<PathBuf, Error> {
    let target = if fs::symlink_metadata(out).is_ok() {
        fs::canonicalize(out).map_err(|e| failed(out, "cannot be resolved", &e))?
    } else {
        out.to_path_buf()
    };
    if target.file_name().is_none() {
        let help = "Choose a new directory with --out DIR.".into();
        return Err(Error { path: out.into(), message: "names no directory of its own".into(), help });
    }
    Ok(target)
}

/// Makes sure that nobody else writes the grid, where the file system can tell.
fn lock(target: &Path) -> Result<Option<File>, Error> {
    let path = target.join(LOCK);
    let file = File::create(&path).map_err(|e| failed(&path, "cannot be written", &e))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(Error {
            path: target.into(),
            message: "is being written by another process".into(),
            help: "Wait until it is done, or choose another place with --out DIR.".into(),
        }),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// Manifest and summary of a run that is done and whose files are all there.
fn whole(at: &Path) -> Option<(Value, Value)> {
    let read = |name: &str| serde_json::from_slice::<Value>(&fs::read(at.join(name)).ok()?).ok();
    let manifest = read(run::MANIFEST)?;
    let there = |file: &Value| {
        let size = file["name"].as_str().and_then(|name| fs::metadata(at.join(name)).ok()).map(|m| m.len());
        size.is_some() && size == file["bytes"].as_u64()
    };
    let done = manifest["format"] == run::FORMAT
        && manifest["format_version"] == run::FORMAT_VERSION
        && manifest["complete"] == true
        && manifest["files"].as_array().is_some_and(|files| files.iter().all(there));
    if done { Some((manifest, read(run::SUMMARY)?)) } else { None }
}

fn manifest<'a>(grid: &'a Grid, about: &'a About, entries: &'a [Entry]) -> Manifest<'a> {
    assert_eq!(Some(about.runs.len()), grid.runs(), "the caller knows every run");
    let runs = about.runs.iter().zip(entries).enumerate().map(|(i, (run, entry))| {
        let (name, point) = (grid.name(i), grid.point_of(i));
        let keys = grid.axes.iter().map(|a| a.key.clone());
        RunEntry {
            path: format!("{RUNS}/{name}"),
            name,
            point: point + 1,
            values: keys.zip(grid.values(point).into_iter().map(typed)).collect(),
            seed: run.seed,
            fingerprint: &run.fingerprint,
            status: entry.status,
            error: entry.error.as_deref(),
        }
    });
    Manifest {
        format: FORMAT,
        format_version: FORMAT_VERSION,
        xoff_version: &about.version,
        name: &about.name,
        complete: complete(entries),
        overrides: &about.overrides,
        axes: &grid.axes,
        seeds: &grid.seeds,
        runs: runs.collect(),
        scenario: &about.scenario,
    }
}

fn store_manifest(dir: &Path, grid: &Grid, about: &About, entries: &[Entry]) -> Result<(), Error> {
    let manifest = manifest(grid, about, entries);
    replace(&dir.join(MANIFEST), |path| {
        store(path, |mut sink| {
            serde_json::to_writer_pretty(&mut sink, &manifest)?;
            sink.write_all(b"\n")?;
            Ok(sink)
        })
        .map(drop)
    })
}

/// Names of the columns of `grid.parquet` beside the axes and metrics.
const COLUMNS: [&str; 4] = ["name", "point", "seed", "stop"];

/// Writes `grid.parquet`: a row for each run that is done.
fn table<W: std::io::Write + Send>(sink: W, grid: &Grid, entries: &[Entry]) -> parquet::errors::Result<W> {
    let done: Vec<(usize, &Row)> =
        entries.iter().enumerate().filter_map(|(i, e)| Some((i, e.row.as_ref()?))).collect();
    columns::write(sink, done.len(), |range| {
        let done = &done[range];
        let rows: Vec<&Row> = done.iter().map(|(_, row)| *row).collect();
        let [name, point, seed, stop] = COLUMNS;
        let mut columns: Vec<(String, Column)> = vec![
            (name.into(), Column::Text(done.iter().map(|(i, _)| grid.name(*i)).collect())),
            (point.into(), Column::Int(done.iter().map(|(i, _)| grid.point_of(*i) as u64 + 1).collect())),
        ];
        for (i, axis) in grid.axes.iter().enumerate() {
            let value = |run: usize| grid.values(grid.point_of(run))[i];
            columns.push((axis.key.clone(), axis_column(axis, done.iter().map(|(run, _)| value(*run)))));
        }
        columns.push((seed.into(), Column::Int(rows.iter().map(|r| r.seed).collect())));
        columns.push((stop.into(), Column::Text(rows.iter().map(|r| r.stop.clone()).collect())));
        for (i, metric) in METRICS.iter().enumerate() {
            columns.push((metric.name.into(), column(i, &rows)));
        }
        columns
    })
}

/// The values of an axis: whole numbers or numbers if all of its values are
/// such, else text (that of a value that is no text is as written).
fn axis_column<'a>(axis: &Axis, values: impl Iterator<Item = &'a str>) -> Column {
    let kinds: Vec<Value> = axis.values.iter().map(|v| typed(v)).collect();
    if kinds.iter().all(Value::is_u64) {
        Column::Int(values.filter_map(|v| typed(v).as_u64()).collect())
    } else if kinds.iter().all(Value::is_number) {
        Column::MaybeFloat(values.map(|v| typed(v).as_f64()).collect())
    } else {
        let text = |v: &str| typed(v).as_str().map_or_else(|| v.to_string(), String::from);
        Column::Text(values.map(text).collect())
    }
}
