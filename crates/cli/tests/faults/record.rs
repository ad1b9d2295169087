//! Checks the order of a process's calls: it syncs each result before it puts it in its place, and the
//! directory after.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A call of the library, as the shim writes it down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub kind: String,
    pub path: PathBuf,
    /// Of renames and exchanges: the new name.
    pub to: PathBuf,
}

/// The calls of a process about files, and how many allocations it made.
pub fn read(log: &str) -> (Vec<Call>, usize) {
    let mut allocations = 0;
    let mut calls = Vec::new();
    for line in log.lines() {
        let mut parts = line.split('\t').map(str::to_owned);
        let mut next = || parts.next().unwrap_or_default();
        let (kind, path, to) = (next(), next(), next());
        match kind.as_str() {
            "allocations" => allocations = path.parse().unwrap(),
            _ => calls.push(Call { kind, path: path.into(), to: to.into() }),
        }
    }
    (calls, allocations)
}

/// Whether a path is within a temporary directory.
fn temporary(path: &Path) -> bool {
    path.iter().any(|part| part.to_str().is_some_and(|p| p.starts_with('.') && p.contains(".xoff-")))
}

/// Asserts that nothing is put in a place before all of it is synced, that the names in the place
/// are synced after, and that nothing is written where a reader would look. Returns the places, in
/// order.
pub fn check(calls: &[Call]) -> Vec<PathBuf> {
    // Files with bytes, and directories with names, that are not on the disk yet.
    let mut unsynced: BTreeSet<PathBuf> = BTreeSet::new();
    let mut places = Vec::new();
    for call in calls {
        let (path, above) = (&call.path, call.path.parent().unwrap().to_path_buf());
        match call.kind.as_str() {
            "create" | "write" => {
                let is_lock = path.ends_with(".lock");
                assert!(temporary(path) || is_lock, "{} is written in its place", path.display());
                if !is_lock && !path.ends_with("xoff-temporary") {
                    unsynced.extend([path.clone(), above]);
                }
            }
            "mkdir" => {
                unsynced.insert(path.clone());
                if !temporary(path) {
                    unsynced.insert(above);
                }
            }
            "sync" => {
                unsynced.remove(path);
            }
            "rename" | "exchange" if temporary(&call.to) => {
                unsynced.insert(above);
            }
            "rename" | "exchange" => {
                let late: Vec<_> = unsynced.iter().filter(|p| p.starts_with(path)).collect();
                assert!(late.is_empty(), "{} is put in place before {late:?} are synced", call.to.display());
                unsynced.insert(call.to.parent().unwrap().to_path_buf());
                places.push(call.to.clone());
            }
            "remove" => {
                unsynced.retain(|p| !p.starts_with(path));
            }
            other => panic!("the shim knows no {other}"),
        }
    }
    unsynced.retain(|p| !temporary(p));
    assert!(unsynced.is_empty(), "names in {unsynced:?} are not synced at the end");
    places
}
