//! The run directory: `manifest.json`, `summary.json`, the data files of
//! [`DataFile`], and a capture if there is one.
//!
//! It is written under a temporary name beside its place and renamed when whole,
//! so that whoever finds a run directory finds a complete one. An older run of
//! the same name is moved aside first and deleted last; anything else in its
//! place is left alone and reported. Only `manifest.json` holds wall time.

use std::fmt;
use std::fs;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use serde::Serialize;

use crate::capture::{CAPTURE, Capture, What};
use crate::data::DataFile;
use crate::report;
use crate::summary::Summary;
use crate::verdicts::Verdict;
use xoff_plan::plan::Plan;
use xoff_sim::outcome::Outcome;
use xoff_sim::tap::Crossing;

/// Value of `format` in every manifest.
pub const FORMAT: &str = "xoff run";
/// Version of the directory's layout; grows when a file or column changes its meaning.
pub const FORMAT_VERSION: u32 = 1;
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
}

/// Why a run directory cannot be written.
#[derive(Debug)]
pub struct Error {
    /// The path that it is about.
    pub path: PathBuf,
    /// What is wrong.
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
    capture: Option<Capture>,
}

/// Checks, before anything is simulated, that a run directory can be written at
/// `out`: makes its parent directories, tries to make and write a directory
/// there, and removes that again.
///
/// # Errors
/// Nothing can be written there, or something else than a run is in the way.
pub fn prepare(out: &Path) -> Result<Writer, Error> {
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
    replaceable(&target)?;
    if !parent.as_os_str().is_empty() {
        fs::create_dir_all(parent).map_err(|e| failed(parent, "cannot be made a directory", &e))?;
    }
    let writer = Writer { target, capture: None };
    let probe = Partial::create(&writer.target)?;
    let file = probe.path.join("probe");
    fs::write(&file, b"probe").map_err(|e| failed(&file, "cannot be written", &e))?;
    Ok(writer)
}

impl Writer {
    /// Begins the capture that the directory will have, beside its place.
    ///
    /// # Errors
    /// Its file cannot be written.
    pub fn begin_capture(&mut self, plan: &Plan, what: &What) -> Result<(), Error> {
        self.capture = Some(Capture::begin(beside(&self.target, "capture"), plan, what)?);
        Ok(())
    }

    /// Captures what has crossed ports. Answers whether to go on: if not, [`Writer::write`] will
    /// say why.
    pub fn capture(&mut self, plan: &Plan, crossings: &[Crossing]) -> bool {
        self.capture.as_mut().is_none_or(|capture| capture.write(plan, crossings))
    }

    /// Writes the run and puts it in its place; returns that place.
    ///
    /// # Errors
    /// Anything that the file system refuses, such as a full disk. Nothing half
    /// written is left then, and an older run in that place stays.
    pub fn write(
        self,
        about: &About,
        plan: &Plan,
        outcome: &Outcome,
        summary: &Summary,
    ) -> Result<PathBuf, Error> {
        // Whatever came into being since `prepare` is not overwritten either.
        replaceable(&self.target)?;
        let mut partial = Partial::create(&self.target)?;
        let mut files = Vec::new();
        for data in DataFile::ALL {
            let bytes = store(&partial.path.join(data.name()), |sink| {
                data.write(sink, plan, outcome).map_err(unwrapped)
            })?;
            files.push(FileEntry { name: data.name(), bytes, rows: Some(data.rows(plan, outcome)) });
        }
        if let Some(capture) = self.capture {
            let (bytes, packets) = capture.finish(&partial.path.join(CAPTURE))?;
            files.push(FileEntry { name: CAPTURE, bytes, rows: Some(packets) });
        }
        let bytes = store_json(&partial.path.join(SUMMARY), summary)?;
        files.push(FileEntry { name: SUMMARY, bytes, rows: None });
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
        store_json(&partial.path.join(MANIFEST), &manifest)?;
        partial.rename(&self.target)?;
        Ok(self.target)
    }
}

/// The run's files have these names and no others; its page goes with it.
fn is_ours(name: &str) -> bool {
    [MANIFEST, SUMMARY, CAPTURE, report::FILE].contains(&name)
        || DataFile::ALL.iter().any(|d| d.name() == name)
}

/// Whether nothing would be lost by putting a run at `target`: nothing is there,
/// or an empty directory, or a run directory with nothing else in it.
fn replaceable(target: &Path) -> Result<(), Error> {
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
    let manifest = fs::read(target.join(MANIFEST)).ok();
    let is_run = manifest
        .and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok())
        .is_some_and(|m| m["format"] == FORMAT);
    if !is_run {
        return refuse(
            "exists and is not a run directory of xoff".into(),
            "It is left as it is. Choose another place with --out DIR, or remove it yourself.",
        );
    }
    if let Some(foreign) = names.iter().find(|n| !is_ours(n)) {
        return refuse(
            format!("is an older run, but holds `{foreign}` too, which replacing the run would delete"),
            "Move that elsewhere, or choose another place with --out DIR.",
        );
    }
    Ok(())
}

/// A directory under a temporary name, removed unless it is renamed.
pub(crate) struct Partial {
    pub(crate) path: PathBuf,
    armed: bool,
}

impl Partial {
    pub(crate) fn create(target: &Path) -> Result<Self, Error> {
        let path = beside(target, "partial");
        fs::create_dir(&path).map_err(|e| failed(&path, "cannot be made a directory", &e))?;
        Ok(Self { path, armed: true })
    }

    /// Puts the directory at `target`. An older run there is moved aside before
    /// and removed after; if the second move fails, the first is undone.
    pub(crate) fn rename(&mut self, target: &Path) -> Result<(), Error> {
        let old = beside(target, "old");
        let replaces = target.is_dir();
        if replaces {
            fs::rename(target, &old).map_err(|e| failed(target, "cannot be moved aside", &e))?;
        }
        if let Err(e) = fs::rename(&self.path, target) {
            let mut error = failed(target, "cannot be put in place", &e);
            if replaces && let Err(e) = fs::rename(&old, target) {
                error.help = format!("The older run is now {} ({e}).", old.display());
            }
            return Err(error);
        }
        self.armed = false;
        if replaces {
            fs::remove_dir_all(&old).map_err(|e| failed(&old, "(the older run) cannot be removed", &e))?;
        }
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if self.armed {
            // The error that led here is the one to report.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// `dir/name` becomes `dir/.name.kind-PID`: on the same file system, hidden, and
/// not another process's.
pub(crate) fn beside(target: &Path, kind: &str) -> PathBuf {
    let name = target.file_name().map_or_else(Default::default, |n| n.to_string_lossy());
    target.with_file_name(format!(".{name}.{kind}-{}", std::process::id()))
}

/// Lets `write` make a file under another name, and renames it when it is whole.
pub(crate) fn replace(target: &Path, write: impl FnOnce(&Path) -> Result<(), Error>) -> Result<(), Error> {
    let path = beside(target, "partial");
    let done = write(&path)
        .and_then(|()| fs::rename(&path, target).map_err(|e| failed(target, "cannot be put in place", &e)));
    if done.is_err() {
        // The error is the one to report.
        let _ = fs::remove_file(&path);
    }
    done
}

/// Creates a file, lets `fill` write it, and makes sure that it has arrived:
/// some file systems report a full disk no sooner. Returns its size.
pub(crate) fn store(
    path: &Path,
    fill: impl FnOnce(BufWriter<fs::File>) -> io::Result<BufWriter<fs::File>>,
) -> Result<u64, Error> {
    let written = || -> io::Result<u64> {
        let file = fill(BufWriter::new(fs::File::create(path)?))?
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok(file.metadata()?.len())
    };
    written().map_err(|e| failed(path, "cannot be written", &e))
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

fn store_json(path: &Path, value: &impl Serialize) -> Result<u64, Error> {
    store(path, |mut sink| {
        serde_json::to_writer_pretty(&mut sink, value)?;
        sink.write_all(b"\n")?;
        Ok(sink)
    })
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
