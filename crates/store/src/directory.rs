//! Objects as files of a directory.

use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How the name of a file begins that is being written.
const UNFINISHED: &str = ".xoff-";
/// An unfinished file that is older was left by a process that was killed.
const STALE: Duration = Duration::from_secs(24 * 3600);

/// Writes a file unless there is one of that name: completely, synced, or not at all. Returns whether it was written.
pub fn put_new(target: &Path, bytes: &[u8]) -> io::Result<bool> {
    let (folder, unfinished) = unfinished(target, bytes)?;
    // A second name is given in one step, and only to nothing.
    let put = match fs::hard_link(&unfinished, target) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        linked => linked.map(|()| true),
    };
    fs::remove_file(&unfinished)?;
    if put.as_ref().is_ok_and(|new| *new) {
        File::open(folder).and_then(|folder| folder.sync_all())?;
    }
    put
}

/// Writes a file in place of one that may be there: completely, synced, or not at all.
pub fn put(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let (folder, unfinished) = unfinished(target, bytes)?;
    fs::rename(&unfinished, target).inspect_err(|_| drop(fs::remove_file(&unfinished)))?;
    File::open(folder).and_then(|folder| folder.sync_all())
}

/// Writes a synced file beside the place that it is for; returns its folder and it. After an error nothing is left.
fn unfinished<'a>(target: &'a Path, bytes: &[u8]) -> io::Result<(&'a Path, PathBuf)> {
    let folder = target.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let (path, mut file) = loop {
        let random = RandomState::new().build_hasher().finish();
        let path = folder.join(format!("{UNFINISHED}{random:016x}"));
        match File::create_new(&path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            file => break (path, file?),
        }
    };
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.inspect_err(|_| drop(fs::remove_file(&path)))?;
    Ok((folder, path))
}

/// The names of the files and folders in a folder; none if it does not exist.
pub fn list(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string().ok().filter(|name| !name.starts_with(UNFINISHED)));
    }
    Ok(names)
}

/// Removes files in a folder that a killed process left unfinished a day ago or more.
pub fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let old =
            || SystemTime::now().duration_since(entry.metadata()?.modified()?).map_err(io::Error::other);
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) && old().is_ok_and(|age| age > STALE) {
            // Somebody else may have removed it.
            let _ = fs::remove_file(entry.path());
        }
    }
}
