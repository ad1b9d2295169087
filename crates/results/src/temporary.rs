//! Temporary directories beside the places of results, and the replacement of results by their content.
//!
//! A result is made within a directory `.NAME.xoff-16HEX` beside its place and renamed when it is complete
//! and synced. A file in that directory marks it as xoff's, and its owner keeps that file locked. The system
//! releases the lock when the owner ends, in any case. So [`sweep`] distinguishes directories of dead
//! processes from those of living ones, and from everything that is not xoff's.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use crate::storage::{Error, failed, store_text};

/// The file that marks a temporary directory as xoff's. Its owner holds a lock on it.
pub const MARKER: &str = "xoff-temporary";
/// In a temporary directory: the new result. After an exchange: the older result.
const NEW: &str = "new";
/// In a temporary directory: holds the older result under its own name between two renames,
/// where the system cannot exchange two directories in one step.
const OLDER: &str = "older";
/// The text between the result's name and the random part of a temporary name.
const INFIX: &str = ".xoff-";
/// Digits of the random part.
const DIGITS: usize = 16;
/// Most characters of the result's name in a temporary name: file names may have 255 bytes.
const NAME: usize = 48;

/// A temporary directory. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Temporary {
    path: PathBuf,
    target: PathBuf,
    /// Locked as long as it is open; unlocked where the file system knows no locks.
    _lock: File,
    /// It holds the only copy of an older result, which the next [`sweep`] puts back.
    keep: bool,
}

impl Temporary {
    pub(crate) fn beside(target: &Path) -> Result<Self, Error> {
        loop {
            let path = target.with_file_name(name(target));
            match fs::create_dir(&path) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made.map_err(|e| failed(target, "cannot be written", &e))?,
            }
            match claim(&path) {
                Ok(Some(lock)) => return Ok(Self { path, target: target.into(), _lock: lock, keep: false }),
                // Swept before it was locked.
                Ok(None) => {}
                Err(e) => {
                    // The error that led here is the one to report.
                    let _ = clear(&path);
                    return Err(failed(&path, "cannot be written", &e));
                }
            }
        }
    }

    pub(crate) fn place(&self) -> PathBuf {
        self.path.join(NEW)
    }

    /// Puts the file that was made in place, in one step; an older file there is replaced.
    pub(crate) fn put_file(self) -> Result<(), Error> {
        fs::rename(self.place(), &self.target).map_err(|e| self.not_renamed(&e))?;
        sync_parent(&self.target)
    }

    /// Puts the directory that was made in place, where nothing or an empty directory may be.
    pub(crate) fn put_new_directory(self) -> Result<(), Error> {
        sync(&self.place())?;
        self.put_file()
    }

    fn not_renamed(&self, error: &io::Error) -> Error {
        failed(&self.target, "cannot be renamed to its final name", error)
    }

    /// Puts the directory that was made in place. An older one there, of which `replaceable` approves, is
    /// exchanged with it and removed. After an error it remains. At each instant one of them is in the place;
    /// where the system cannot exchange directories, the next [`sweep`] puts the older one back if this process
    /// dies in between.
    pub(crate) fn put_directory(
        mut self,
        replaceable: impl Fn(&Path) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (new, target) = (self.place(), self.target.clone());
        sync(&new)?;
        match fs::rename(&new, &target) {
            Err(e) if occupied(&e) => match exchange(&new, &target) {
                Ok(()) => {
                    // Results that were created since the last check are not removed either.
                    if let Err(error) = replaceable(&new) {
                        self.keep = exchange(&new, &target).is_err();
                        return Err(Error { path: target, ..error });
                    }
                }
                Err(e) if unknown(&e) => self.put_by_two_renames()?,
                Err(e) => return Err(self.not_renamed(&e)),
            },
            renamed => renamed.map_err(|e| self.not_renamed(&e))?,
        }
        sync_parent(&target)
    }

    fn put_by_two_renames(&mut self) -> Result<(), Error> {
        let target = &self.target;
        let older = self.path.join(OLDER);
        fs::create_dir(&older).map_err(|e| failed(&older, "cannot be created as a directory", &e))?;
        let older = older.join(target.file_name().unwrap_or_default());
        fs::rename(target, &older).map_err(|e| failed(target, "cannot be moved aside", &e))?;
        let Err(e) = fs::rename(self.place(), target) else { return Ok(()) };
        let mut error = self.not_renamed(&e);
        if let Err(e) = fs::rename(&older, target) {
            self.keep = true;
            error.help = format!("The older run was moved to {} ({e}).", older.display());
        }
        Err(error)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.keep {
            // The next sweep names a file that cannot be removed: its lock is free then.
            let _ = clear(&self.path);
        }
    }
}

/// `dir/name` becomes `.name.xoff-` and random digits.
fn name(target: &Path) -> String {
    let name = target.file_name().map_or_else(Default::default, |n| n.to_string_lossy());
    let short: String = name.chars().take(NAME).collect();
    format!(".{short}{INFIX}{:0DIGITS$x}", RandomState::new().build_hasher().finish())
}

/// Whether a file name is of the form that [`name`] gives.
fn is_temporary(name: &str) -> bool {
    let random = name.strip_prefix('.').and_then(|rest| rest.rsplit_once(INFIX)).map(|(_, random)| random);
    random.is_some_and(|r| r.len() == DIGITS && r.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Marks a new directory as one's own; `None` if a sweep has taken it meanwhile.
fn claim(path: &Path) -> io::Result<Option<File>> {
    let marker = path.join(MARKER);
    let lock = match File::create_new(&marker) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    match lock.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(None),
        // Without locks no sweep removes anything.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(marker.exists().then_some(lock)),
    }
}

/// Removes a temporary directory, its marker last: the rest is then still recognised as xoff's.
fn clear(path: &Path) -> io::Result<()> {
    let absent = |result: io::Result<()>| match result {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    for inner in [NEW, OLDER] {
        let inner = path.join(inner);
        match fs::symlink_metadata(&inner) {
            Ok(found) if found.is_dir() => absent(fs::remove_dir_all(&inner))?,
            Ok(_) => absent(fs::remove_file(&inner))?,
            Err(e) => absent(Err(e))?,
        }
    }
    absent(fs::remove_file(path.join(MARKER)))?;
    absent(fs::remove_dir(path))
}

/// Removes the files of dead processes in `dir` under temporary names, and puts back an older result that one
/// of them had moved aside. Directories of living processes stay, and so does everything that has no marker
/// inside. Returns a sentence for each that cannot be removed.
pub fn sweep(dir: &Path) -> Vec<String> {
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    // If the directory cannot be read, the next access reports it.
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .filter(|e| e.file_type().is_ok_and(|t| t.is_dir()))
        .filter(|e| e.file_name().to_str().is_some_and(is_temporary))
        .map(|e| e.path())
        .collect();
    paths.sort_unstable();
    let remains =
        |path: &Path, e| format!("{} remains from a killed run and cannot be removed: {e}", path.display());
    paths.iter().filter_map(|path| Some(remains(path, sweep_one(path).err()?))).collect()
}

/// As [`sweep`], of the directory in which a result at `out` is.
pub fn sweep_beside(out: &Path) -> Vec<String> {
    let target = fs::canonicalize(out).unwrap_or_else(|_| out.to_path_buf());
    sweep(target.parent().unwrap_or(Path::new("")))
}

fn sweep_one(path: &Path) -> io::Result<()> {
    let marker = path.join(MARKER);
    let lock = match File::open(&marker) {
        Ok(file) => file,
        // Its process was killed before it was marked; or it is not xoff's, and not empty.
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let _ = fs::remove_dir(path);
            return Ok(());
        }
        Err(e) => return Err(e),
    };
    // Locked: its owner is running. Another error: the file system has no locks.
    if lock.try_lock().is_err() || !marker.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        if ![MARKER, NEW, OLDER].iter().any(|ours| name == *ours) {
            let name = name.to_string_lossy();
            return Err(io::Error::other(format!("it contains `{name}`, which xoff did not write")));
        }
    }
    put_back(path)?;
    clear(path)
}

/// Moves an older result back to its place if nothing is there.
fn put_back(path: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(path.join(OLDER)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let target = path.with_file_name(entry.file_name());
        if fs::symlink_metadata(&target).is_err() {
            fs::rename(entry.path(), &target)?;
            sync_parent(&target).map_err(|e| io::Error::other(e.to_string()))?;
        }
    }
    Ok(())
}

/// Makes a file at `target` by `write`, which is given a temporary path. It is in place whole or not at all.
pub(crate) fn replace<T>(target: &Path, write: impl FnOnce(&Path) -> Result<T, Error>) -> Result<T, Error> {
    let temporary = Temporary::beside(target)?;
    let written = write(&temporary.place())?;
    temporary.put_file()?;
    Ok(written)
}

/// Puts a text in a file, completely or not at all. A special file, such as a pipe, is written directly; a
/// link is followed.
pub fn put(path: &Path, text: &str) -> Result<(), Error> {
    let refused = |what| move |e: io::Error| failed(path, what, &e);
    let target = match fs::metadata(path) {
        Ok(found) if found.is_file() => fs::canonicalize(path).map_err(refused("cannot be resolved"))?,
        Ok(found) if !found.is_dir() => return fs::write(path, text).map_err(refused("cannot be written")),
        _ => path.to_path_buf(),
    };
    replace(&target, |path| store_text(path, || Ok(text.to_string())).map(drop))
}

/// Makes a directory and its missing parents, and syncs the directory that contains them.
pub fn make_directories(path: &Path) -> Result<(), Error> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        make_directories(parent)?;
    }
    match fs::create_dir(path) {
        // Made by somebody else meanwhile.
        Err(_) if path.is_dir() => Ok(()),
        Err(e) => Err(failed(path, "cannot be created as a directory", &e)),
        Ok(()) => sync_parent(path),
    }
}

/// Makes sure that the names in the directory that holds `path` have arrived on the disk.
fn sync_parent(path: &Path) -> Result<(), Error> {
    let parent = path.parent().unwrap_or(Path::new(""));
    sync(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
}

/// Makes sure that the names in a directory have arrived on the disk.
#[cfg(unix)]
pub(crate) fn sync(directory: &Path) -> Result<(), Error> {
    match File::open(directory).and_then(|d| d.sync_all()) {
        // Some file systems know no such thing.
        Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        synced => synced.map_err(|e| failed(directory, "cannot be synced to the disk", &e)),
    }
}

/// Other systems do not open directories as files.
#[cfg(not(unix))]
pub(crate) fn sync(_: &Path) -> Result<(), Error> {
    Ok(())
}

/// Exchanges two directories in one step.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
    Ok(renameat2(AT_FDCWD, a, AT_FDCWD, b, RenameFlags::RENAME_EXCHANGE)?)
}

/// Other systems get two renames.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether the system or file system does not know how to [`exchange`].
fn unknown(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

/// Whether a rename failed because a directory that is not empty is in its place.
fn occupied(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists)
}
