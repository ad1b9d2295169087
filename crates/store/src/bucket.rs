//! Objects with names, each of which is written once.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How the name of a file begins that is being written.
const UNFINISHED: &str = ".xoff-";
/// An unfinished file that is older was left by a process that was killed.
const STALE: Duration = Duration::from_secs(24 * 3600);

/// A directory of objects.
#[derive(Clone, Debug)]
pub struct Bucket {
    root: PathBuf,
}

/// What cannot be read or written, why, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub what: String,
    pub message: String,
    pub help: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.what, self.message)
    }
}

impl std::error::Error for Error {}

impl Bucket {
    /// The objects in the directory `root`, which need not exist.
    pub fn at(root: &Path) -> Self {
        Self { root: root.into() }
    }

    /// Where it is, as people name it.
    pub fn name(&self) -> String {
        self.root.display().to_string()
    }

    pub fn path(&self, object: &str) -> PathBuf {
        self.root.join(object)
    }

    /// An error about an object.
    pub fn error(&self, object: &str, message: impl Into<String>, help: &str) -> Error {
        Error { what: self.path(object).display().to_string(), message: message.into(), help: help.into() }
    }

    /// Writes an object unless there is one of that name: completely, synced, or not at all. Returns whether it was
    /// written.
    ///
    /// # Errors
    /// It cannot be written, for example because the disk is full.
    pub fn put_new(&self, object: &str, bytes: &[u8]) -> Result<bool, Error> {
        let target = self.path(object);
        let failed = |e: &io::Error| {
            let help = match e.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "free space; what is done stays done"
                }
                io::ErrorKind::PermissionDenied => "a worker needs permission to write there",
                io::ErrorKind::Unsupported => "the file system needs hard links: use another one",
                _ => "check that the store is still there, and start the worker again",
            };
            self.error(object, format!("cannot be written: {e}"), help)
        };
        put_new(&target, bytes).map_err(|e| failed(&e))
    }

    /// The content of an object; `None` if there is none.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn get(&self, object: &str) -> Result<Option<Vec<u8>>, Error> {
        match fs::read(self.path(object)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(self.error(object, format!("cannot be read: {e}"), "check the store")),
        }
    }

    /// The names of the objects and folders in a folder, sorted; none if it does not exist.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn list(&self, folder: &str) -> Result<Vec<String>, Error> {
        let unreadable = |e: io::Error| self.error(folder, format!("cannot be read: {e}"), "check the store");
        let entries = match fs::read_dir(self.path(folder)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(unreadable)?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(unreadable)?.file_name();
            names.extend(name.into_string().ok().filter(|name| !name.starts_with(UNFINISHED)));
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Removes files in a folder that a killed process left unfinished a day ago or more.
    pub fn sweep(&self, folder: &str) {
        for entry in fs::read_dir(self.path(folder)).into_iter().flatten().flatten() {
            let old =
                || SystemTime::now().duration_since(entry.metadata()?.modified()?).map_err(io::Error::other);
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED)
                && old().is_ok_and(|age| age > STALE)
            {
                // Somebody else may have removed it.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

fn put_new(target: &Path, bytes: &[u8]) -> io::Result<bool> {
    let folder = target.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let (unfinished, mut file) = loop {
        let random = RandomState::new().build_hasher().finish();
        let path = folder.join(format!("{UNFINISHED}{random:016x}"));
        match File::create_new(&path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            file => break (path, file?),
        }
    };
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    // A second name is given in one step, and only to nothing.
    let put = written.and_then(|()| match fs::hard_link(&unfinished, target) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        linked => linked.map(|()| true),
    });
    fs::remove_file(&unfinished)?;
    if put.as_ref().is_ok_and(|new| *new) {
        File::open(folder).and_then(|folder| folder.sync_all())?;
    }
    put
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::thread;

    fn bucket(test: &str) -> Bucket {
        let root = std::env::temp_dir().join(format!("xoff-bucket-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        Bucket::at(&root)
    }

    #[test]
    fn an_object_is_written_once() {
        let b = bucket("once");
        assert_eq!(b.get("a/x").unwrap(), None);
        assert_eq!(b.list("a").unwrap(), Vec::<String>::new());
        assert!(b.put_new("a/x", b"one").unwrap());
        assert!(!b.put_new("a/x", b"two").unwrap());
        assert!(b.put_new("a/b", b"").unwrap());
        assert_eq!(b.get("a/x").unwrap().unwrap(), b"one");
        assert_eq!(b.list("a").unwrap(), ["b", "x"]);
        assert_eq!(fs::read_dir(b.path("a")).unwrap().count(), 2, "nothing unfinished is left");
        fs::remove_dir_all(b.path("")).unwrap();
    }

    #[test]
    fn of_racing_writers_one_wins() {
        let b = bucket("race");
        let together = Barrier::new(4);
        let won: Vec<Vec<bool>> = thread::scope(|scope| {
            let writer = |me: u8| {
                let (b, together) = (&b, &together);
                scope.spawn(move || {
                    (0..250)
                        .map(|i| {
                            together.wait();
                            b.put_new(&format!("r/{i}"), &[me; 100]).unwrap()
                        })
                        .collect()
                })
            };
            let threads: Vec<_> = (0..4).map(writer).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        (0..250).for_each(|i| {
            let winners: Vec<usize> = (0..4).filter(|&me| won[me][i]).collect();
            assert_eq!(winners.len(), 1, "object {i}");
            assert_eq!(b.get(&format!("r/{i}")).unwrap().unwrap(), [winners[0] as u8; 100]);
        });
        fs::remove_dir_all(b.path("")).unwrap();
    }

    #[test]
    fn what_cannot_be_written_is_an_error() {
        let b = bucket("wrong");
        fs::write(&b.root, b"a file").unwrap();
        let error = b.put_new("a/x", b"one").unwrap_err();
        assert!(error.to_string().contains("cannot be written"), "{error}");
        assert!(b.list("a").is_err());
        fs::remove_file(&b.root).unwrap();
    }
}
