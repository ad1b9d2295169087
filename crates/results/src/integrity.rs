//! Whether a run directory is as it was written: its manifest by the checksum in it, each other
//! file by the manifest. Everything that reads runs asks here first.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Once;
use std::{fs, io};

use serde_json::Value as Json;

use crate::checksum::{self, Unsealed};
use crate::layout::{FORMAT, FORMAT_VERSION, MANIFEST, SUMMARY};
use crate::storage::Error;

/// Advice for a damaged run.
const AGAIN: &str = "Run the scenario again: `xoff run` replaces the run. For a run of a grid, repeat the command \
                     of the grid with --resume.";

/// The manifest of the run at `path`, all of whose files are as they were written.
pub(crate) fn run(path: &Path) -> Result<Json, Error> {
    let manifest = manifest(&path.join(MANIFEST), FORMAT, FORMAT_VERSION, AGAIN)?;
    files(path, &manifest, MANIFEST, AGAIN)?;
    Ok(manifest)
}

/// The manifest of the run at `path` if that and its summary are as they were written; no other file is read.
pub(crate) fn summary(path: &Path) -> Result<Json, Error> {
    let manifest = manifest(&path.join(MANIFEST), FORMAT, FORMAT_VERSION, AGAIN)?;
    let entry = manifest["files"].as_array().into_iter().flatten().find(|f| f["name"] == SUMMARY);
    let file = path.join(SUMMARY);
    let compared = compare(&file, entry.unwrap_or(&Json::Null), MANIFEST);
    compared.map_err(|message| Error::new(file, message, AGAIN))?;
    Ok(manifest)
}

/// A manifest of this format, if it is as it was written.
pub(crate) fn manifest(file: &Path, format: &str, version: u32, help: &str) -> Result<Json, Error> {
    let refuse = |message: String| Err(Error::new(file, message, help));
    let text = regular(file).and_then(|_| fs::read(file));
    let text = text.map_err(|e| Error::new(file, unreadable(&e), help))?;
    let manifest = match checksum::unsealed(&text) {
        Ok(manifest) => manifest,
        // Formats before the second had no checksums.
        Err(Unsealed::Without(older)) if older["format"] == format && older["format_version"] == 1 => {
            return refuse(other_format(&older, format, version));
        }
        Err(Unsealed::Without(_)) => return refuse(format!("is damaged, or not a manifest of `{format}`")),
        Err(Unsealed::Damaged) => return refuse("is damaged: it does not match its checksum".into()),
    };
    if manifest["format"] != format || manifest["format_version"] != version {
        return refuse(other_format(&manifest, format, version));
    }
    Ok(manifest)
}

/// The message on a manifest of another format, or of another version of it.
fn other_format(manifest: &Json, format: &str, version: u32) -> String {
    let its = manifest["format"].as_str().unwrap_or("an unknown program");
    let reads = if its == format { String::new() } else { format!(" of `{format}`") };
    format!(
        "is in format {} of `{its}`, and this version of xoff reads format {version}{reads}",
        manifest["format_version"]
    )
}

/// Compares the files in `dir` with the entries of the manifest of this name.
pub(crate) fn files(dir: &Path, manifest: &Json, name: &str, help: &str) -> Result<(), Error> {
    for file in manifest["files"].as_array().into_iter().flatten() {
        let path = dir.join(file["name"].as_str().unwrap_or_default());
        compare(&path, file, name).map_err(|message| Error::new(&path, message, help))?;
    }
    Ok(())
}

/// The damage of a file, by its entry in the manifest of this name.
fn compare(path: &Path, entry: &Json, name: &str) -> Result<(), String> {
    let size = regular(path).map_err(|e| unreadable(&e))?;
    if !checksum::COMPARED {
        return Ok(());
    }
    if Some(size) != entry["bytes"].as_u64() {
        return Err(format!("is damaged: it has {size} bytes instead of the {} in {name}", entry["bytes"]));
    }
    let stored = checksum::of_file(path).map_err(|e| unreadable(&e))?;
    if entry["xxh128"] != stored.checksum.as_str() {
        return Err(format!("is damaged: it does not match its checksum in {name}"));
    }
    Ok(())
}

/// The size of a regular file; reading a pipe would wait for a writer.
fn regular(path: &Path) -> io::Result<u64> {
    let data = fs::metadata(path)?;
    if data.is_file() { Ok(data.len()) } else { Err(io::Error::other("it is not a regular file")) }
}

fn unreadable(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::NotFound => "is missing".into(),
        _ => format!("cannot be read: {e}"),
    }
}

thread_local! {
    /// Whether this thread reads data that may be damaged: a panic is then a result.
    static READING: Cell<bool> = const { Cell::new(false) };
}

/// Reads something at `path` that may be damaged although its checksum is right. The Parquet
/// library panics on some damaged files.
pub fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    caught(read).unwrap_or_else(|why| {
        let message = format!("is damaged: its checksum is right, but its contents are invalid ({why})");
        Err(Error::new(path, message, AGAIN))
    })
}

/// The result of `read`, or the message of its panic, which is not printed.
pub(crate) fn caught<T>(read: impl FnOnce() -> T) -> Result<T, String> {
    static SILENCER: Once = Once::new();
    SILENCER.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !READING.get() {
                others(info);
            }
        }));
    });
    let before = READING.replace(true);
    let result = catch_unwind(AssertUnwindSafe(read));
    READING.set(before);
    result.map_err(|panic| reason(&*panic).to_string())
}

pub fn reason(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
