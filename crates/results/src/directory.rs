//! The run directory: `manifest.json`, `summary.json`, the data files of
//! [`DataFile`], and a capture if there is one.
//!
//! It is written under a temporary name beside its place and renamed when whole,
//! so that whoever finds a run directory finds a complete one. An older run of
//! the same name is exchanged with it and deleted last; anything else in its
//! place is left alone and reported. Only `manifest.json` holds wall time. It
//! lists the checksum of every other file, and has one of itself.

use std::fmt;
use std::fs;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use serde::Serialize;

use crate::capture::{CAPTURE, Capture, What};
use crate::checksum::{self, Stored, Summing};
use crate::data::DataFile;
use crate::report;
use crate::summary::Summary;
use crate::temporary::{self, Temporary};
use crate::verdicts::Verdict;
use xoff_outcome::Outcome;
use xoff_outcome::tap::Crossing;
use xoff_plan::plan::Plan;

/// Value of `format` in every manifest.
pub const FORMAT: &str = "xoff run";
/// Version of the directory's layout; grows when a file or column changes its meaning.
pub const FORMAT_VERSION: u32 = 2;
/// The manifest's file name.
pub const MANIFEST: &str = "manifest.json";
/// The summary's file name.
pub const SUMMARY: &str = "summary.json";

/// What the caller knows of a run beyond its plan and outcome.
#[derive(Clone, Debug)]
pub struct About {
    /// The whole effective scenario.
    pub scenario: serde_json::Value,
    /// `key=value` overrides, as given.
    pub overrides: Vec<String>,
    /// Version of the program.
    pub version: String,
    /// Wall time of the simulation in seconds.
    pub wall_seconds: f64,
}

/// Contents of `manifest.json`.
#[derive(Serialize)]
struct Manifest<'a> {
    format: &'static str,
    format_version: u32,
    xoff_version: &'a str,
    name: &'a str,
    complete: bool,
    stop: &'a str,
    seed: u64,
    simulated_ps: u64,
    wall_seconds: f64,
    events: u64,
    packet_hops: u64,
    verdicts: &'a [Verdict],
    overrides: &'a [String],
    scenario: &'a serde_json::Value,
    files: Vec<FileEntry>,
}

/// A file of the run, as the manifest lists it.
#[derive(Serialize)]
struct FileEntry {
    name: &'static str,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<usize>,
    xxh128: String,
}

impl FileEntry {
    fn new(name: &'static str, stored: Stored, rows: Option<usize>) -> Self {
        Self { name, bytes: stored.bytes, rows, xxh128: stored.checksum }
    }
}

/// Why a run directory cannot be written.
#[derive(Debug)]
pub struct Error {
    /// The path that it is about.
    pub path: PathBuf,
    pub message: String,
    /// What to do about it.
    pub help: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.message)
    }
}

impl std::error::Error for Error {}

/// A place where a run directory can be written, found good by [`prepare`].
#[derive(Debug)]
pub struct Writer {
    /// Where the directory will be.
    target: PathBuf,
    /// What may be replaced there.
    older: Older,
    /// Where it is made, once something of it is written.
    temporary: Option<Temporary>,
    capture: Option<Capture>,
}

/// What a new run may replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Older {
    /// A directory that is known for a run by its manifest, or by all of its data files.
    Run,
    /// A directory in which nothing else than files of a run is: in a grid the place is xoff's.
    Remains,
}

/// Checks, before anything is simulated, that a run directory can be written at
/// `out`: makes its parent directories, tries to make and write a directory
/// there, and removes that again.
///
/// # Errors
/// Nothing can be written there, or something else than a run is in the way.
pub fn prepare(out: &Path) -> Result<Writer, Error> {
    prepare_to_replace(out, Older::Run)
}

/// As [`prepare`], for a run of a grid: what is left of a damaged run is replaced as well.
///
/// # Errors
/// As of [`prepare`].
pub fn prepare_in_grid(out: &Path) -> Result<Writer, Error> {
    prepare_to_replace(out, Older::Remains)
}

fn prepare_to_replace(out: &Path, older: Older) -> Result<Writer, Error> {
    // A link to an older run is followed, so that the link survives; so are `.` and `..`.
    let target = if fs::symlink_metadata(out).is_ok() {
        fs::canonicalize(out).map_err(|e| failed(out, "cannot be resolved", &e))?
    } else {
        out.to_path_buf()
    };
    let Some(parent) = target.parent().filter(|_| target.file_name().is_some()) else {
        return Err(Error {
            path: out.into(),
            message: "names no directory of its own".into(),
            help: "Choose a new directory with --out DIR.".into(),
        });
    };
    replaceable(&target, older)?;
    temporary::make_directories(parent)?;
    let writer = Writer { target, older, temporary: None, capture: None };
    let probe = writer.begin()?;
    let file = probe.place().join("probe");
    fs::write(&file, b"probe").map_err(|e| failed(&file, "cannot be written", &e))?;
    Ok(writer)
}

impl Writer {
    /// Makes a directory under a temporary name.
    fn begin(&self) -> Result<Temporary, Error> {
        let temporary = Temporary::beside(&self.target)?;
        let new = temporary.place();
        fs::create_dir(&new).map_err(|e| failed(&new, "cannot be made a directory", &e))?;
        Ok(temporary)
    }

    /// Begins the capture that the directory will have.
    ///
    /// # Errors
    /// Its file cannot be written.
    pub fn begin_capture(&mut self, plan: &Plan, what: &What) -> Result<(), Error> {
        let temporary = self.temporary.insert(self.begin()?);
        self.capture = Some(Capture::begin(temporary.place().join(CAPTURE), plan, what)?);
        Ok(())
    }

    /// Captures what has crossed ports. Answers whether to go on: if not, [`Writer::write`] will
    /// say why.
    pub fn capture(&mut self, plan: &Plan, crossings: &[Crossing]) -> bool {
        self.capture.as_mut().is_none_or(|capture| capture.write(plan, crossings))
    }

    /// Writes the run and puts it in its place.
    ///
    /// # Errors
    /// Anything that the file system refuses, such as a full disk. Nothing half
    /// written is left then, and an older run in that place stays.
    pub fn write(
        mut self,
        about: &About,
        plan: &Plan,
        outcome: &Outcome,
        summary: &Summary,
    ) -> Result<Written, Error> {
        let (target, older) = (self.target.clone(), self.older);
        // Whatever came into being since `prepare` is not overwritten either.
        replaceable(&target, older)?;
        let temporary = match self.temporary.take() {
            Some(temporary) => temporary,
            None => self.begin()?,
        };
        let new = temporary.place();
        let mut files = Vec::new();
        for data in DataFile::ALL {
            let stored =
                store(&new.join(data.name()), |sink| data.write(sink, plan, outcome).map_err(unwrapped))?;
            files.push(FileEntry::new(data.name(), stored, Some(data.rows(plan, outcome))));
        }
        if let Some(capture) = self.capture.take() {
            let (stored, packets) = capture.finish()?;
            files.push(FileEntry::new(CAPTURE, stored, Some(packets)));
        }
        let stored = store_text(&new.join(SUMMARY), || Ok(serde_json::to_string_pretty(summary)? + "\n"))?;
        let summary_xxh128 = stored.checksum.clone();
        files.push(FileEntry::new(SUMMARY, stored, None));
        let manifest = Manifest {
            format: FORMAT,
            format_version: FORMAT_VERSION,
            xoff_version: &about.version,
            name: &summary.scenario,
            complete: summary.complete,
            stop: summary.stop,
            seed: plan.seed,
            simulated_ps: outcome.end,
            wall_seconds: about.wall_seconds,
            events: outcome.counters.events,
            packet_hops: outcome.counters.packet_hops,
            verdicts: &summary.verdicts,
            overrides: &about.overrides,
            scenario: &about.scenario,
            files,
        };
        store_text(&new.join(MANIFEST), || Ok(checksum::sealed(&manifest)?))?;
        temporary.put_directory(|found| replaceable(found, older))?;
        Ok(Written { path: target, summary_xxh128 })
    }
}

/// A run directory in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub path: PathBuf,
    /// Checksum of its `summary.json`.
    pub summary_xxh128: String,
}

/// The run's files have these names and no others; its page goes with it.
fn is_ours(name: &str) -> bool {
    [MANIFEST, SUMMARY, CAPTURE, report::FILE].contains(&name)
        || DataFile::ALL.iter().any(|d| d.name() == name)
}

/// Whether nothing would be lost by putting a run at `target`: nothing is there,
/// or an empty directory, or a run directory with nothing else in it.
fn replaceable(target: &Path, older: Older) -> Result<(), Error> {
    let metadata = match fs::symlink_metadata(target) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        // A file where a parent directory should be: `create_dir_all` says it better.
        Err(e) if e.kind() == io::ErrorKind::NotADirectory => return Ok(()),
        Err(e) => return Err(failed(target, "cannot be looked at", &e)),
        Ok(metadata) => metadata,
    };
    let refuse = |message: String, help: &str| Err(Error { path: target.into(), message, help: help.into() });
    if !metadata.is_dir() {
        return refuse("is a file, not a directory".into(), "Choose another place with --out DIR.");
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(target).map_err(|e| failed(target, "cannot be read", &e))? {
        let entry = entry.map_err(|e| failed(target, "cannot be read", &e))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    if names.is_empty() {
        return Ok(());
    }
    let foreign = names.iter().find(|n| !is_ours(n));
    let manifest = fs::read(target.join(MANIFEST)).ok();
    let is_run = manifest
        .and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok())
        .is_some_and(|m| m["format"] == FORMAT);
    // A run whose manifest is damaged is known by its other files.
    let was_run = DataFile::ALL.iter().all(|data| names.iter().any(|name| name == data.name()));
    let remains = foreign.is_none() && (was_run || older == Older::Remains);
    if !is_run && !remains {
        return refuse(
            "exists and is not a run directory of xoff".into(),
            "It is left as it is. Choose another place with --out DIR, or remove it yourself.",
        );
    }
    if let Some(foreign) = foreign {
        return refuse(
            format!("is an older run, but holds `{foreign}` too, which replacing the run would delete"),
            "Move that elsewhere, or choose another place with --out DIR.",
        );
    }
    Ok(())
}

/// Creates a file, lets `fill` write it, and makes sure that it has arrived:
/// some file systems report a full disk no sooner. Returns what is in it.
pub(crate) fn store(path: &Path, fill: impl FnOnce(Sink) -> io::Result<Sink>) -> Result<Stored, Error> {
    let written =
        || -> io::Result<Stored> { arrived(fill(BufWriter::new(Summing::new(fs::File::create(path)?)))?) };
    written().map_err(|e| failed(path, "cannot be written", &e))
}

/// Where a file is written to, and summed up on the way.
pub(crate) type Sink = BufWriter<Summing<fs::File>>;

/// Makes sure that what was written has arrived on the disk; returns what it was.
pub(crate) fn arrived(sink: Sink) -> io::Result<Stored> {
    let (file, stored) = sink.into_inner().map_err(io::IntoInnerError::into_error)?.finish();
    file.sync_all()?;
    Ok(stored)
}

/// The file system's own error, where the Parquet writer wrapped one.
pub(crate) fn unwrapped(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(io) => *io,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

/// Creates a file with a text, and makes sure that it has arrived.
pub(crate) fn store_text(path: &Path, text: impl FnOnce() -> io::Result<String>) -> Result<Stored, Error> {
    store(path, |mut sink| {
        sink.write_all(text()?.as_bytes())?;
        Ok(sink)
    })
}

/// Makes a directory and those above it that are missing.
///
/// # Errors
/// The file system refuses.
pub fn make(path: &Path) -> Result<(), Error> {
    temporary::make_directories(path)
}

/// Puts a text in a file, whole or not at all. What is no regular file, such as a pipe, is
/// written to as it is; a link is followed.
///
/// # Errors
/// It cannot be written.
pub fn put(path: &Path, text: &str) -> Result<(), Error> {
    let target = match fs::metadata(path) {
        Ok(found) if found.is_file() => {
            fs::canonicalize(path).map_err(|e| failed(path, "cannot be resolved", &e))?
        }
        Ok(found) if !found.is_dir() => {
            return fs::write(path, text).map_err(|e| failed(path, "cannot be written", &e));
        }
        _ => path.to_path_buf(),
    };
    temporary::replace(&target, |path| store_text(path, || Ok(text.to_string())).map(drop))
}

pub(crate) fn failed(path: &Path, what: &str, error: &io::Error) -> Error {
    let help = match error.kind() {
        io::ErrorKind::StorageFull => {
            "The disk is full. Nothing half written was left; free some room, or choose \
                                       another disk with --out DIR."
        }
        io::ErrorKind::FileTooLarge => {
            "The file would exceed the limit of this shell on the size of files. Raise it with ulimit -f (ulimit -f \
             shows it), or measure less."
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "Choose a place where you may write with --out DIR."
        }
        _ => "Choose another place with --out DIR.",
    };
    Error { path: path.into(), message: format!("{what}: {error}"), help: help.into() }
}
