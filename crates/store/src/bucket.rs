//! Objects with names, most of which are written once.

use std::fmt::{self, Display};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cloud::Cloud;
use crate::directory;

/// Objects in a directory, or below a prefix in the cloud.
#[derive(Clone, Debug)]
pub struct Bucket {
    root: PathBuf,
    cloud: Option<Arc<Cloud>>,
}

/// What cannot be read or written, why, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub what: String,
    pub message: String,
    pub help: String,
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.what, self.message)
    }
}

impl std::error::Error for Error {}

impl Bucket {
    /// The objects in the directory `root`, which need not exist, or below `s3://…` or `gs://…`.
    ///
    /// # Errors
    /// The name of a bucket in the cloud is wrong, or its settings in the environment.
    pub fn at(root: &Path) -> Result<Self, Error> {
        let mut bucket = Self { root: root.into(), cloud: None };
        if let Some(name) = root.to_str().filter(|name| Cloud::has(name)) {
            let help =
                "type s3://BUCKET/PREFIX or gs://BUCKET/PREFIX; docs/howto/cluster.md has the variables";
            let refused =
                |e: object_store::Error| bucket.error("", format!("cannot be used: {}", cause(&e)), help);
            bucket.cloud = Some(Arc::new(Cloud::at(name).map_err(refused)?));
        }
        Ok(bucket)
    }

    /// Where it is, as people name it.
    pub fn name(&self) -> String {
        self.root.display().to_string()
    }

    /// The directory, if it is one.
    pub fn directory(&self) -> Option<&Path> {
        self.cloud.is_none().then_some(&self.root)
    }

    /// The place of an object; in the cloud a name only for people.
    pub fn path(&self, object: &str) -> PathBuf {
        self.root.join(object)
    }

    /// An error about an object.
    pub fn error(&self, object: &str, message: impl Into<String>, help: &str) -> Error {
        Error { what: self.path(object).display().to_string(), message: message.into(), help: help.into() }
    }

    /// Writes an object unless there is one of that name: completely, synced, or not at all. Returns whether it was
    /// written. In the cloud, where an answer can get lost, false also says that it may be one's own.
    ///
    /// # Errors
    /// It cannot be written, for example because the disk is full.
    pub fn put_new(&self, object: &str, bytes: &[u8]) -> Result<bool, Error> {
        Ok(self.put_all(&[(object, bytes)], true)?[0])
    }

    /// The same without waiting for the disk: after a power failure the object may be missing or empty.
    ///
    /// # Errors
    /// As [`Bucket::put_new`].
    pub fn put_new_soon(&self, object: &str, bytes: &[u8]) -> Result<bool, Error> {
        Ok(self.put_all(&[(object, bytes)], false)?[0])
    }

    /// The same for several objects; returns which were written.
    ///
    /// # Errors
    /// As [`Bucket::put_new`], of any of them.
    pub fn put_all(&self, objects: &[(&str, &[u8])], synced: bool) -> Result<Vec<bool>, Error> {
        let first = objects.first().map_or("", |(object, _)| object);
        match &self.cloud {
            Some(cloud) => objects
                .iter()
                .map(|(object, bytes)| {
                    cloud.put_new(object, bytes).map_err(|e| self.unwritten(object, &brief(&e), CLOUD))
                })
                .collect(),
            None => {
                let files: Vec<_> =
                    objects.iter().map(|(object, bytes)| (self.path(object), *bytes)).collect();
                directory::put_new(&files, synced).map_err(|e| self.unwritten(first, &e, help(&e)))
            }
        }
    }

    /// Writes an object, in place of one that may be there.
    ///
    /// # Errors
    /// As [`Bucket::put_new`].
    pub fn put(&self, object: &str, bytes: &[u8]) -> Result<(), Error> {
        match &self.cloud {
            Some(cloud) => cloud.put(object, bytes).map_err(|e| self.unwritten(object, &brief(&e), CLOUD)),
            None => {
                directory::put(&self.path(object), bytes).map_err(|e| self.unwritten(object, &e, help(&e)))
            }
        }
    }

    /// The content of an object; `None` if there is none.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn get(&self, object: &str) -> Result<Option<Vec<u8>>, Error> {
        match &self.cloud {
            Some(cloud) => cloud.get(object).map_err(|e| self.unread(object, &brief(&e), CLOUD)),
            None => match std::fs::read(self.path(object)) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(e) => Err(self.unread(object, &e, CHECK)),
            },
        }
    }

    /// The names of the objects and folders in a folder, sorted; none if it does not exist.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn list(&self, folder: &str) -> Result<Vec<String>, Error> {
        let mut names = match &self.cloud {
            Some(cloud) => cloud.list(folder).map_err(|e| self.unread(folder, &brief(&e), CLOUD)),
            None => directory::list(&self.path(folder)).map_err(|e| self.unread(folder, &e, CHECK)),
        }?;
        names.sort_unstable();
        Ok(names)
    }

    /// Removes files in a folder that a killed process left unfinished a day ago or more. In the cloud there are none.
    pub fn sweep(&self, folder: &str) {
        if self.cloud.is_none() {
            directory::sweep(&self.path(folder));
        }
    }

    fn unread(&self, object: &str, why: &dyn Display, help: &str) -> Error {
        self.error(object, format!("cannot be read: {why}"), help)
    }

    fn unwritten(&self, object: &str, why: &dyn Display, help: &str) -> Error {
        self.error(object, format!("cannot be written: {why}"), help)
    }
}

const CHECK: &str = "check the store";
const CLOUD: &str =
    "check the bucket, the access (AWS_ and GOOGLE_ variables) and the network; what is done stays done";

/// What to do if a file cannot be written.
fn help(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free space; what is done stays done",
        io::ErrorKind::PermissionDenied => "a worker needs permission to write there",
        io::ErrorKind::Unsupported => "the file system needs hard links: use another one",
        _ => "check that the store is still there, and start the worker again",
    }
}

/// An error of settings in one line, with the file or the name that it is about.
fn cause(error: &object_store::Error) -> String {
    let whole = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    whole.lines().next().unwrap_or_default().to_string()
}

/// An error of the cloud in one line: what the server said, or else the innermost cause.
fn brief(error: &object_store::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let whole = error.to_string();
    let said = |tag: &str| whole.split_once(&format!("<{tag}>"))?.1.split('<').next();
    match (said("Code"), said("Message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        _ => cause.to_string().lines().next().unwrap_or_default().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::{fs, thread};

    fn bucket(test: &str) -> Bucket {
        let root = std::env::temp_dir().join(format!("xoff-bucket-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        Bucket::at(&root).unwrap()
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
        b.put("a/b", b"new").unwrap();
        assert_eq!(b.get("a/b").unwrap().unwrap(), b"new");
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
        fs::write(b.directory().unwrap(), b"a file").unwrap();
        let error = b.put_new("a/x", b"one").unwrap_err();
        assert!(error.to_string().contains("cannot be written"), "{error}");
        assert!(b.list("a").is_err());
        fs::remove_file(b.directory().unwrap()).unwrap();
    }
}
