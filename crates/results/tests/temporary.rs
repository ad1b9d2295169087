//! The files of killed processes, and files that are not theirs.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::common::scratch;
use xoff_results::temporary::{MARKER, sweep, sweep_beside};

fn names(dir: &Path) -> BTreeSet<String> {
    fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

/// The files of a process that is killed while it makes `name`.
fn left(dir: &Path, name: &str, digits: &str) -> PathBuf {
    let path = dir.join(format!(".{name}.xoff-{digits}"));
    fs::create_dir_all(path.join("new/deep")).unwrap();
    fs::write(path.join("new/deep/half"), "half").unwrap();
    fs::write(path.join(MARKER), "").unwrap();
    path
}

#[test]
fn what_dead_processes_left_is_swept_and_nothing_else() {
    let dir = scratch("sweep");
    left(&dir, "run", "0123456789abcdef");
    left(&dir, "grid.json", "fedcba9876543210");
    // Killed before it was marked.
    fs::create_dir(dir.join(".run.xoff-1111111111111111")).unwrap();
    // Those of people: by other names, or without a marker, or no directories.
    let theirs = [
        ".notes.old-2024",
        ".run.partial-7",
        ".run.xoff-2222222222222222",
        "run.xoff-0123456789abcdef",
        ".run.xoff-12",
    ];
    for name in theirs {
        fs::create_dir(dir.join(name)).unwrap();
        fs::write(dir.join(name).join("thesis.txt"), "years of work").unwrap();
    }
    fs::write(dir.join(".file.xoff-0123456789abcdef"), "years of work").unwrap();
    std::os::unix::fs::symlink(dir.join(".notes.old-2024"), dir.join(".link.xoff-0123456789abcdef")).unwrap();
    assert_eq!(sweep(&dir), Vec::<String>::new());
    let mut expected: BTreeSet<String> = theirs.map(String::from).into();
    expected.extend([".file.xoff-0123456789abcdef", ".link.xoff-0123456789abcdef"].map(String::from));
    assert_eq!(names(&dir), expected);
    for name in theirs {
        assert_eq!(fs::read_to_string(dir.join(name).join("thesis.txt")).unwrap(), "years of work");
    }
}

#[test]
fn what_a_living_process_makes_stays() {
    let dir = scratch("sweep-living");
    let path = left(&dir, "run", "0123456789abcdef");
    let lock = File::open(path.join(MARKER)).unwrap();
    lock.lock().unwrap();
    assert_eq!(sweep_beside(&dir.join("run")), Vec::<String>::new());
    assert!(path.join("new/deep/half").exists());
    drop(lock);
    sweep_beside(&dir.join("run"));
    assert!(names(&dir).is_empty());
}

#[test]
fn what_holds_something_of_others_is_named_and_stays() {
    let dir = scratch("sweep-foreign");
    let path = left(&dir, "run", "0123456789abcdef");
    fs::write(path.join("thesis.txt"), "years of work").unwrap();
    let said = sweep(&dir);
    assert!(
        said.len() == 1 && said[0].contains("thesis.txt") && said[0].contains("0123456789abcdef"),
        "{said:?}"
    );
    assert!(path.join("thesis.txt").exists() && path.join("new/deep/half").exists());
}

#[test]
fn an_older_run_comes_back_if_the_new_one_is_not_in_its_place() {
    let dir = scratch("sweep-older");
    for (digits, in_place) in [("0123456789abcdef", false), ("0123456789abcde0", true)] {
        let path = left(&dir, "run", digits);
        fs::create_dir_all(path.join("older/run")).unwrap();
        fs::write(path.join("older/run/summary.json"), digits).unwrap();
        assert_eq!(dir.join("run").exists(), in_place);
        assert_eq!(sweep(&dir), Vec::<String>::new());
        // The second time something is there already.
        assert_eq!(fs::read_to_string(dir.join("run/summary.json")).unwrap(), "0123456789abcdef");
        assert_eq!(names(&dir), ["run".to_string()].into());
    }
}
