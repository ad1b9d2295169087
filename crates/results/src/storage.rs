//! Files that are complete on the disk, and the errors of writing or reading them.

use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use parquet::errors::ParquetError;

use crate::checksum::{Stored, Summing};

/// Why a file or directory of results cannot be written or read.
#[derive(Debug)]
pub struct Error {
    /// The path that it is about.
    pub path: PathBuf,
    pub message: String,
    /// The correction.
    pub help: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path.display(), self.message)
    }
}

impl std::error::Error for Error {}

impl Error {
    pub(crate) fn new(path: impl Into<PathBuf>, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), help: help.into() }
    }
}

pub(crate) fn failed(path: &Path, what: &str, error: &io::Error) -> Error {
    let help = match error.kind() {
        io::ErrorKind::StorageFull => {
            "The disk is full, and no partial result was left. Free space, or choose another disk with \
             --out DIR."
        }
        io::ErrorKind::FileTooLarge => {
            "The file would exceed the file size limit of this shell. Raise the limit with ulimit -f, or measure \
             less."
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "Choose a directory with write permission with --out DIR."
        }
        _ => "Choose another directory with --out DIR.",
    };
    Error::new(path, format!("{what}: {error}"), help)
}

/// The place of a directory that is to be made at `out`. A link is followed, so that it survives;
/// so are `.` and `..`.
pub(crate) fn resolved(out: &Path) -> Result<PathBuf, Error> {
    let target = match fs::symlink_metadata(out) {
        Ok(_) => fs::canonicalize(out).map_err(|e| failed(out, "cannot be resolved", &e))?,
        Err(_) => out.to_path_buf(),
    };
    if target.file_name().is_none() {
        let help = "Choose a new directory with --out DIR.";
        return Err(Error::new(out, "is not a name for a new directory", help));
    }
    Ok(target)
}

/// Creates a file, lets `fill` write it, and makes sure that it is on the disk: some file systems report a
/// full disk only then. Returns its content.
pub(crate) fn store(path: &Path, fill: impl FnOnce(Sink) -> io::Result<Sink>) -> Result<Stored, Error> {
    let file = fs::File::create(path);
    let written = file.and_then(|file| arrived(fill(BufWriter::new(Summing::new(file)))?));
    written.map_err(|e| failed(path, "cannot be written", &e))
}

/// The sink of a file, which computes its checksum.
pub(crate) type Sink = BufWriter<Summing<fs::File>>;

/// Makes sure that the written data is on the disk.
pub(crate) fn arrived(sink: Sink) -> io::Result<Stored> {
    let (file, stored) = sink.into_inner().map_err(io::IntoInnerError::into_error)?.finish();
    file.sync_all()?;
    Ok(stored)
}

/// The file system's own error, where the Parquet writer wrapped one.
pub(crate) fn unwrapped(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => inner.downcast().map_or_else(io::Error::other, |io| *io),
        other => io::Error::other(other),
    }
}

/// As [`store`], of a text.
pub(crate) fn store_text(path: &Path, text: impl FnOnce() -> io::Result<String>) -> Result<Stored, Error> {
    store(path, |mut sink| {
        sink.write_all(text()?.as_bytes())?;
        Ok(sink)
    })
}
