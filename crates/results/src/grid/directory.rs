//! The directory of a grid: `grid.json`, `grid.parquet` and below `runs/` the directory of each run.
//!
//! `grid.json` exists from the beginning, so a killed grid can be resumed. Both files are renamed into place
//! when they are complete. The completed runs are known by their directories, which are always complete.
//! Nothing in either file depends on the clock, or on the number of runs in parallel.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value};

use super::compare::{Entry, Status, complete};
use super::dataset::{self, FLOWS};
use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use super::metrics::{METRICS, Metric, Number, Row, column, part_columns};
use super::{Axis, Grid, fingerprint, typed};
use crate::checksum::{self, Stored};
use crate::columns::{self, Column};
use crate::directory::{copy_files, outside};
use crate::integrity;
use crate::layout::SUMMARY;
use crate::storage::{Error, failed, resolved, store, store_text, unwrapped};
use crate::temporary::{Temporary, make_directories, replace, sync};

/// Value of `format` in `grid.json`.
pub const FORMAT: &str = "xoff grid";
/// Version of the directory's layout; grows when a file or column changes its meaning.
pub const FORMAT_VERSION: u32 = 3;
pub const MANIFEST: &str = "grid.json";
pub const TABLE: &str = "grid.parquet";
pub const RUNS: &str = "runs";
/// A file that is locked while somebody writes the grid.
const LOCK: &str = ".lock";

/// The caller's information about a grid beyond its axes and seeds.
#[derive(Clone, Debug)]
pub struct About {
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// `key=value` overrides of every run, as given.
    pub overrides: Vec<String>,
    /// The whole effective scenario of the first run.
    pub scenario: Value,
    pub runs: Vec<RunAbout>,
}

/// The grid's information about a run before the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunAbout {
    pub seed: u64,
    /// Of its effective scenario and `files`, see [`fingerprint::of_run`].
    pub fingerprint: String,
    /// The files that the scenario names: path as written, hash of the contents.
    pub files: Vec<(String, u64)>,
}

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
    files: Vec<FileEntry>,
    scenario: &'a Value,
}

/// A file of the grid itself, as `grid.json` lists it.
#[derive(Serialize)]
struct FileEntry {
    name: &'static str,
    bytes: u64,
    rows: usize,
    xxh128: String,
}

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
    /// Checksum of its `summary.json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary_xxh128: Option<&'a str>,
}

/// A grid's directory, to which no other process writes.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// Locked as long as it is open; `None` where the file system knows no locks.
    _lock: Option<File>,
}

/// Makes the directory of a new grid, with a `grid.json` in which no run is done. An empty directory may be in
/// its place.
pub fn create(out: &Path, grid: &Grid, about: &About) -> Result<Directory, Error> {
    let (target, temporary) = begin(out)?;
    let new = temporary.place();
    fs::create_dir(new.join(RUNS))
        .map_err(|e| failed(&new.join(RUNS), "cannot be created as a directory", &e))?;
    let nothing = vec![Entry::default(); about.runs.len()];
    let text = || Ok(checksum::sealed(&manifest(grid, about, &nothing, Vec::new()))?);
    store_text(&new.join(MANIFEST), text)?;
    sync(&new.join(RUNS))?;
    temporary.put_new_directory()?;
    let lock = lock(&target)?;
    Ok(Directory { path: target, _lock: lock })
}

/// The manifest of the grid at `path`, whose table is as it was written.
pub fn open(path: &Path) -> Result<Value, Error> {
    let help = "Type the directory of a grid, such as xoff-runs/NAME-grid: `xoff run` with --vary writes it.";
    if !path.exists() {
        return Err(Error::new(path, "does not exist", help));
    }
    if !path.join(MANIFEST).is_file() {
        return Err(Error::new(path, format!("is not the directory of a grid: it has no {MANIFEST}"), help));
    }
    let manifest = read_manifest(path, RESUME)?;
    integrity::files(path, &manifest, MANIFEST, RESUME)?;
    Ok(manifest)
}

/// The correction for a damaged grid.
pub(crate) const RESUME: &str = "Repeat the command of the grid with --resume; it reruns damaged runs.";

/// Copies the grid at `from` and all of its runs to `out`, where nothing is; returns the new place.
pub fn copy(from: &Path, out: &Path) -> Result<PathBuf, Error> {
    outside(from, out)?;
    let (target, temporary) = begin(out)?;
    copy_files(from, &temporary.place(), &|path| path != from.join(FLOWS))?;
    temporary.put_new_directory()?;
    let stored = crate::report::grid::stored(&target)?;
    let directory = Directory { path: target.clone(), _lock: lock(&target)? };
    dataset::write(&directory, &stored.plan, &stored.entries)?;
    Ok(target)
}

/// The place of a new grid, and an empty directory under a temporary name beside it. An empty directory may be in
/// its place.
fn begin(out: &Path) -> Result<(PathBuf, Temporary), Error> {
    let target = resolved(out)?;
    let occupied = |message: &str, help: &str| Err(Error::new(&target, message, help));
    if let Ok(mut entries) = fs::read_dir(&target) {
        if target.join(MANIFEST).exists() {
            let help = "Continue it with --resume, choose another directory with --out DIR, or remove it.";
            return occupied("already contains a grid", help);
        }
        if entries.next().is_some() {
            let help = "It was not changed. Choose another directory with --out DIR, or remove it.";
            return occupied("exists and is not empty", help);
        }
    } else if target.exists() {
        return occupied("is a file, not a directory", "Choose another directory with --out DIR.");
    }
    make_directories(target.parent().unwrap_or(Path::new("")))?;
    let temporary = Temporary::beside(&target)?;
    let new = temporary.place();
    fs::create_dir(&new).map_err(|e| failed(&new, "cannot be created as a directory", &e))?;
    Ok((target, temporary))
}

/// Opens the directory of a grid that was begun before: of the same scenario, overrides, axes, seeds and files,
/// and by the same version of the program.
pub fn resume(out: &Path, grid: &Grid, about: &About) -> Result<Directory, Error> {
    let target = resolved(out)?;
    let file = target.join(MANIFEST);
    let refuse = |message: String, help: &str| Err(Error::new(&target, message, help));
    if !file.is_file() {
        let help = "Remove --resume to start a new grid, or give the directory of the grid with --out DIR.";
        return refuse(format!("has no grid to resume: {MANIFEST} is missing"), help);
    }
    let help = "Remove --resume, and either remove the grid or choose another directory with --out DIR.";
    let before = read_manifest(&target, help)?;
    if let Some(difference) = difference(&before, grid, about) {
        return refuse(format!("contains a different grid: {difference}"), OTHER);
    }
    let lock = lock(&target)?;
    Ok(Directory { path: target, _lock: lock })
}

const OTHER: &str = "It was not changed. Give the original arguments, or remove --resume and choose another \
                     directory with --out DIR.";

fn read_manifest(path: &Path, help: &str) -> Result<Value, Error> {
    integrity::manifest(&path.join(MANIFEST), FORMAT, FORMAT_VERSION, help)
}

/// The differences between a grid on disk and the requested one, in words.
fn difference(before: &Value, grid: &Grid, about: &About) -> Option<String> {
    let nothing = vec![Entry::default(); about.runs.len()];
    let now =
        serde_json::to_value(manifest(grid, about, &nothing, Vec::new())).expect("plain data becomes JSON");
    for (key, what) in [
        ("xoff_version", "version of xoff"),
        ("name", "scenario"),
        ("overrides", "overrides (--set, --seed)"),
        ("axes", "varied keys and values (--vary)"),
        ("seeds", "seeds (--seeds)"),
    ] {
        if before[key] != now[key] {
            let (before, now) = (brief(&before[key]), brief(&now[key]));
            return Some(format!("{what}: {before} in the directory, {now} in this command"));
        }
    }
    let prints = |m: &Value| -> Vec<Value> {
        m["runs"].as_array().into_iter().flatten().map(|r| r["fingerprint"].clone()).collect()
    };
    let (old, new) = (prints(before), prints(&now));
    let changed = (0..new.len()).find(|&i| old.get(i) != new.get(i))?;
    Some(first_difference("", &before["scenario"], &now["scenario"]).map_or_else(
        || format!("the scenario or a file that it names has changed, for run {}", grid.name(changed)),
        |key| format!("the scenario has changed at `{key}`"),
    ))
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
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn run(&self, name: &str) -> PathBuf {
        self.path.join(RUNS).join(name)
    }

    /// The stored part of a run; an error if it was made from another scenario or by another version.
    pub fn finished(&self, name: &str, about: &About, run: &RunAbout) -> Result<Found, Error> {
        let at = self.run(name);
        if fs::symlink_metadata(&at).is_err() {
            return Ok(Found::Nothing);
        }
        let manifest = match integrity::run(&at) {
            Ok(manifest) => manifest,
            Err(error) => return Ok(Found::Damaged(error.to_string())),
        };
        let differs = if manifest["xoff_version"] != about.version.as_str() {
            let its = brief(&manifest["xoff_version"]);
            format!("was written by xoff {its}, but this is xoff {}", about.version)
        } else if fingerprint::of_run(&manifest["scenario"], &run.files) != run.fingerprint {
            "was written for another scenario".to_string()
        } else if manifest["complete"] != true {
            return Ok(Found::Damaged(format!("{} was interrupted", at.display())));
        } else {
            return Ok(stored_entry(&at, &manifest).map_or_else(Found::Damaged, Found::Whole));
        };
        let help = "Remove that run, or remove --resume and choose another directory with --out DIR.";
        Err(Error::new(at, differs, help))
    }

    /// Writes the status of the runs: `grid.parquet`, then `grid.json`. After an error the older files remain.
    pub fn write(&self, grid: &Grid, about: &About, entries: &[Entry]) -> Result<(), Error> {
        let store_manifest = |files| {
            let manifest = manifest(grid, about, entries, files);
            let text = || Ok(checksum::sealed(&manifest)?);
            replace(&self.path.join(MANIFEST), |path| store_text(path, text)).map(drop)
        };
        // An older `grid.json` lists the older table, which would look damaged if this process
        // were killed between the two.
        if self.path.join(TABLE).exists() {
            store_manifest(Vec::new())?;
        }
        let Stored { bytes, checksum } = replace(&self.path.join(TABLE), |path| {
            store(path, |sink| table(sink, grid, entries).map_err(unwrapped))
        })?;
        let rows = entries.iter().filter(|e| e.row.is_some()).count();
        store_manifest(vec![FileEntry { name: TABLE, bytes, rows, xxh128: checksum }])?;
        Ok(())
    }
}

/// The stored part of a run of a grid.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    Nothing,
    /// A run that is not as it was written; why.
    Damaged(String),
    Whole(Entry),
}

/// The entry of the run at `at` by its summary, which has been compared with this manifest.
pub(crate) fn stored_entry(at: &Path, manifest: &Value) -> Result<Entry, String> {
    let path = at.join(SUMMARY);
    let wrong = |e: &dyn std::fmt::Display| format!("{} {e}", path.display());
    let summary: Value =
        serde_json::from_slice(&fs::read(&path).map_err(|e| wrong(&e))?).map_err(|e| wrong(&e))?;
    let row = Row::read(&summary).map_err(|e| wrong(&e))?;
    let listed = manifest["files"].as_array().into_iter().flatten().find(|f| f["name"] == SUMMARY);
    let checksum = listed.and_then(|f| f["xxh128"].as_str()).ok_or_else(|| wrong(&"is not listed"))?;
    Ok(Entry::stored(row, checksum.into(), manifest["wall_seconds"].as_f64().unwrap_or_default()))
}

impl Drop for Directory {
    fn drop(&mut self) {
        // An empty file that stays does no harm.
        let _ = fs::remove_file(self.path.join(LOCK));
    }
}

/// Makes sure that no other process writes the grid, if the file system has locks.
fn lock(target: &Path) -> Result<Option<File>, Error> {
    let path = target.join(LOCK);
    loop {
        let file = File::create(&path).map_err(|e| failed(&path, "cannot be written", &e))?;
        match file.try_lock() {
            // The one that it was locked by may have removed it meanwhile.
            Ok(()) if !is_at(&file, &path) => {}
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) => {
                let help = "Wait until that process ends, or choose another directory with --out DIR.";
                return Err(Error::new(target, "is being written by another process", help));
            }
            Err(TryLockError::Error(_)) => return Ok(None),
        }
    }
}

/// Whether an open file is the one of this name.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let number = |m: fs::Metadata| (m.dev(), m.ino());
    file.metadata().ok().map(number) == fs::metadata(path).ok().map(number)
}

/// An open file cannot be removed.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

fn manifest<'a>(
    grid: &'a Grid,
    about: &'a About,
    entries: &'a [Entry],
    files: Vec<FileEntry>,
) -> Manifest<'a> {
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
            summary_xxh128: entry.summary.as_deref(),
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
        files,
        scenario: &about.scenario,
    }
}

/// Names of the columns of `grid.parquet` beside the axes and metrics.
const COLUMNS: [&str; 4] = ["name", "point", "seed", "stop"];

/// Writes `grid.parquet`: a row for each run that is done.
fn table<W: std::io::Write + Send>(sink: W, grid: &Grid, entries: &[Entry]) -> parquet::errors::Result<W> {
    let all: Vec<(usize, &Row)> =
        entries.iter().enumerate().filter_map(|(i, e)| Some((i, e.row.as_ref()?))).collect();
    rows(sink, grid, &all)
}

/// Writes a table as `grid.parquet` of these runs of a grid.
pub fn rows<W: std::io::Write + Send>(
    sink: W,
    grid: &Grid,
    all: &[(usize, &Row)],
) -> parquet::errors::Result<W> {
    columns::write(sink, all.len(), |range| {
        let done = &all[range];
        let rows: Vec<&Row> = done.iter().map(|(_, row)| *row).collect();
        let every: Vec<&Row> = all.iter().map(|(_, row)| *row).collect();
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
        columns.extend(part_columns(&every, &rows));
        columns
    })
}

/// Writes a table as `grid.parquet` of these runs of a grid at `path`; an older file is replaced.
///
/// # Errors
/// It cannot be written.
pub fn write_rows(path: &Path, grid: &Grid, all: &[(usize, &Row)]) -> Result<(), Error> {
    let write = |path: &Path| store(path, |sink| rows(sink, grid, all).map_err(unwrapped));
    replace(&resolved(path)?, write).map(drop)
}

/// The runs of a table that [`rows`] has written: position in the grid, and numbers. Warnings are not in it.
///
/// # Errors
/// The content is damaged, or has no such rows.
pub fn read_rows(content: Vec<u8>) -> Result<Vec<(usize, Row)>, String> {
    let read = || {
        let file = SerializedFileReader::new(Bytes::from(content))?;
        let mut all = Vec::new();
        for row in file.get_row_iter(None)? {
            all.push(read_row(row?.into_columns())?);
        }
        Ok(all)
    };
    columns::read::guarded(read)
}

fn read_row(fields: Vec<(String, Field)>) -> parquet::errors::Result<(usize, Row)> {
    let missing = |what: &str| ParquetError::General(format!("a row has no {what}"));
    let mut row = Row { values: vec![None; METRICS.len()], ..Row::default() };
    let mut run = None;
    for (name, field) in fields {
        let number = match &field {
            Field::Long(n) => Some(Number::Int(n.unsigned_abs())),
            Field::Double(x) => Some(Number::Float(*x)),
            _ => None,
        };
        match (name.as_str(), field, number) {
            ("name", Field::Str(text), _) => {
                let digits = text.split('_').next().and_then(|n| n.parse::<usize>().ok());
                run = digits.and_then(|n| n.checked_sub(1));
            }
            ("seed", _, Some(Number::Int(seed))) => row.seed = seed,
            ("stop", Field::Str(text), _) => row.stop = text,
            (_, _, number) => {
                let of = |metric: &Metric| name == metric.name;
                let part = |metric: &&Metric| {
                    (name.starts_with("class.") || name.starts_with("size."))
                        && name.strip_suffix(metric.name).is_some_and(|rest| rest.ends_with('.'))
                };
                if let Some(at) = METRICS.iter().position(of) {
                    row.values[at] = number;
                } else if let Some(metric) = METRICS.iter().find(part) {
                    row.parts.push((name, metric.unit, number));
                }
            }
        }
    }
    Ok((run.ok_or_else(|| missing("number"))?, row))
}

/// The values of an axis: whole numbers or numbers if all of its values are such, else text (that of a value
/// that is no text is as written).
pub fn axis_column<'a>(axis: &Axis, values: impl Iterator<Item = &'a str>) -> Column {
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
