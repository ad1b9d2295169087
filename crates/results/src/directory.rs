//! The run directory: `manifest.json`, `summary.json`, the data files of [`DataFile`], and a capture if there
//! is one.
//!
//! It is written under a temporary name beside its place and renamed when complete, so a run directory is
//! always complete. An older run that may be replaced is exchanged with it and deleted last. Anything else in its
//! place is kept and reported. Only `manifest.json` has the wall time. It lists the checksum of every other
//! file, and has one of itself.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value as Json;

use crate::capture::{CAPTURE, Capture, What};
use crate::checksum::{self, Stored};
use crate::data::DataFile;
use crate::explain::read;
use crate::layout::{BESIDE, FORMAT, FORMAT_VERSION, MANIFEST, PAGE, SUMMARY};
use crate::storage::{Error, failed, resolved, store, store_text, unwrapped};
use crate::summary::Summary;
use crate::temporary::{Temporary, make_directories};
use crate::verdicts::Verdict;
use xoff_outcome::Outcome;
use xoff_outcome::tap::Crossing;
use xoff_plan::plan::Plan;

/// The caller's information about a run beyond its plan and outcome.
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
    /// The clock and the lateness of a run on real frames.
    pub live: Option<serde_json::Value>,
}

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
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<&'a serde_json::Value>,
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

/// A place where a run directory can be written, found good by [`prepare`].
#[derive(Debug)]
pub struct Writer {
    target: PathBuf,
    older: Older,
    /// Where it is made, once something of it is written.
    temporary: Option<Temporary>,
    capture: Option<Capture>,
}

/// The results that a new run may replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Older {
    /// None.
    Nothing,
    /// A directory that is known for a run by its manifest, or by all of its data files.
    Run,
    /// A directory in which nothing else than files of a run is: in a grid the place is xoff's.
    Remains,
}

/// Checks, before anything is simulated, that a run directory can be written at `out`: makes its parent
/// directories, tries to make and write a directory there, and removes that again. An older run there is an error.
pub fn prepare_new(out: &Path) -> Result<Writer, Error> {
    prepare_to_replace(out, Older::Nothing)
}

/// Like [`prepare_new`], but replaces an older run.
pub fn prepare(out: &Path) -> Result<Writer, Error> {
    prepare_to_replace(out, Older::Run)
}

/// Like [`prepare`], for a run of a grid: it also replaces the rest of a damaged run.
pub fn prepare_in_grid(out: &Path) -> Result<Writer, Error> {
    prepare_to_replace(out, Older::Remains)
}

fn prepare_to_replace(out: &Path, older: Older) -> Result<Writer, Error> {
    let target = resolved(out)?;
    replaceable(&target, older)?;
    make_directories(target.parent().unwrap_or(Path::new("")))?;
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
        fs::create_dir(&new).map_err(|e| failed(&new, "cannot be created as a directory", &e))?;
        Ok(temporary)
    }

    /// Begins the capture that the directory will have.
    pub fn begin_capture(&mut self, plan: &Plan, what: &What) -> Result<(), Error> {
        let temporary = self.temporary.insert(self.begin()?);
        self.capture = Some(Capture::begin(temporary.place().join(CAPTURE), plan, what)?);
        Ok(())
    }

    /// Captures the crossings of ports. Returns whether to continue: if not, [`Writer::write`] returns the
    /// reason.
    pub fn capture(&mut self, plan: &Plan, crossings: &[Crossing]) -> bool {
        self.capture.as_mut().is_none_or(|capture| capture.write(plan, crossings))
    }

    /// Writes the run and puts it in its place. After an error nothing half written is left, and an older run
    /// in that place stays.
    pub fn write(
        mut self,
        about: &About,
        plan: &Plan,
        outcome: &Outcome,
        summary: &Summary,
    ) -> Result<Written, Error> {
        let (target, older) = (self.target.clone(), self.older);
        // Results that were created after `prepare` are not overwritten either.
        replaceable(&target, older)?;
        let temporary = self.temporary.take().map_or_else(|| self.begin(), Ok)?;
        let new = temporary.place();
        let mut files = Vec::new();
        for &data in DataFile::ALL {
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
            live: about.live.as_ref(),
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

/// The manifest and the summary of the run at `path`, all of whose files are as they were written.
pub fn open(path: &Path) -> Result<(Json, Json), Error> {
    let manifest = read::manifest(path)?;
    Ok((manifest, read::summary(path)?))
}

/// Copies the run at `from`, whose files are as they were written, to `out`, byte by byte; returns the new place.
/// What is at `out` may be an older run.
pub fn copy(from: &Path, out: &Path) -> Result<PathBuf, Error> {
    outside(from, out)?;
    let writer = prepare(out)?;
    let temporary = writer.begin()?;
    copy_files(from, &temporary.place(), &|_| true)?;
    temporary.put_directory(|found| replaceable(found, Older::Run))?;
    Ok(writer.target)
}

/// Refuses to copy a directory into itself.
pub(crate) fn outside(from: &Path, out: &Path) -> Result<(), Error> {
    let real = |path: &Path| path.ancestors().find_map(|p| fs::canonicalize(p).ok());
    let inside = |from: &Path| real(out).is_some_and(|out| out.starts_with(from));
    match fs::canonicalize(from) {
        Ok(from) if inside(&from) => {
            Err(Error::new(out, "is in the directory that is to be copied", "Choose another directory."))
        }
        _ => Ok(()),
    }
}

/// Copies every file of a directory, and of those in it, into another one, as far as `wanted` wants them.
pub(crate) fn copy_files(from: &Path, to: &Path, wanted: &dyn Fn(&Path) -> bool) -> Result<(), Error> {
    let unreadable = |e: io::Error| failed(from, "cannot be read", &e);
    for entry in fs::read_dir(from).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let (old, new) = (entry.path(), to.join(entry.file_name()));
        if !wanted(&old) {
            continue;
        }
        if entry.file_type().map_err(unreadable)?.is_dir() {
            fs::create_dir(&new).map_err(|e| failed(&new, "cannot be created as a directory", &e))?;
            copy_files(&old, &new, wanted)?;
        } else {
            let copied = fs::copy(&old, &new).and_then(|_| fs::File::open(&new)?.sync_all());
            copied.map_err(|e| failed(&new, "cannot be written", &e))?;
        }
    }
    Ok(())
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub path: PathBuf,
    /// Checksum of its `summary.json`.
    pub summary_xxh128: String,
}

/// The run's files have these names and no others; its page belongs to it.
fn is_ours(name: &str) -> bool {
    [MANIFEST, SUMMARY, CAPTURE, PAGE, BESIDE].contains(&name)
        || DataFile::ALL.iter().any(|d| d.name() == name)
}

/// Whether nothing would be lost by putting a run at `target`: nothing is there, or an empty directory, or a
/// run directory with nothing else in it.
fn replaceable(target: &Path, older: Older) -> Result<(), Error> {
    let unreadable = |e: io::Error| failed(target, "cannot be read", &e);
    let metadata = match fs::symlink_metadata(target) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        // A file where a parent directory should be: `create_dir_all` says it better.
        Err(e) if e.kind() == io::ErrorKind::NotADirectory => return Ok(()),
        metadata => metadata.map_err(unreadable)?,
    };
    let refuse = |message: &str, help: &str| Err(Error::new(target, message, help));
    if !metadata.is_dir() {
        return refuse("is a file, not a directory", "Choose another directory with --out DIR.");
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(target).map_err(unreadable)? {
        names.push(entry.map_err(unreadable)?.file_name().to_string_lossy().into_owned());
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
            "exists, but is not a run directory of xoff",
            "It was not changed. Choose another directory with --out DIR, or remove it.",
        );
    }
    if older == Older::Nothing {
        let help = match foreign {
            None => "Replace it with --overwrite, choose another directory with --out DIR, or remove it.",
            Some(_) => "Choose another directory with --out DIR, or remove it.",
        };
        return refuse("already contains a run", help);
    }
    if let Some(foreign) = foreign {
        let message = format!(
            "is an older run that also contains `{foreign}`; replacing the run would delete that file"
        );
        return refuse(&message, "Move that file, or choose another directory with --out DIR.");
    }
    Ok(())
}
