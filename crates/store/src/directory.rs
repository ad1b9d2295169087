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

/// Writes files of these names unless there are such: each completely or not at all, and synced if `synced`. Returns
/// which were written. None is there before all are synced.
///
/// Folders are not synced: after a power failure a file may be missing, and its chunk is made again.
pub fn put_new(files: &[(PathBuf, &[u8])], synced: bool) -> io::Result<Vec<bool>> {
    let unfinished =
        files.iter().map(|(target, bytes)| unfinished(target, bytes)).collect::<io::Result<Vec<_>>>()?;
    if synced {
        // One after the other, so that one commit of the file system serves all of them.
        unfinished.iter().try_for_each(|unfinished| unfinished.file.sync_all())?;
    }
    // A second name is given in one step, and only to nothing.
    let put = |(unfinished, (target, _)): (&Unfinished, &(PathBuf, &[u8]))| match fs::hard_link(
        &unfinished.path,
        target,
    ) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        linked => linked.map(|()| true),
    };
    unfinished.iter().zip(files).map(put).collect()
}

/// Writes a file in place of one that may be there: completely, synced, or not at all.
pub fn put(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = unfinished(target, bytes)?;
    unfinished.file.sync_all()?;
    fs::rename(&unfinished.path, target)
}

/// A file beside the place that it is for. It is removed when this is dropped.
struct Unfinished {
    path: PathBuf,
    file: File,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After a rename it is gone.
        let _ = fs::remove_file(&self.path);
    }
}

fn unfinished(target: &Path, bytes: &[u8]) -> io::Result<Unfinished> {
    let folder = target.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut unfinished = loop {
        let random = RandomState::new().build_hasher().finish();
        let path = folder.join(format!("{UNFINISHED}{random:016x}"));
        match File::create_new(&path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            file => break Unfinished { file: file?, path },
        }
    };
    unfinished.file.write_all(bytes)?;
    Ok(unfinished)
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
