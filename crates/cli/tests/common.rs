//! A directory for each test, and the program called in it.

use std::fs;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// An empty directory. Files of tests share no name: each has a directory of its own.
#[track_caller]
pub fn scratch(test: &str) -> PathBuf {
    let file = Path::new(Location::caller().file()).file_stem().unwrap();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file).join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// A call of the program in a directory, without colours.
pub fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xoff"));
    command.current_dir(dir).args(args).env("NO_COLOR", "1");
    command
}

pub fn xoff(dir: &Path, args: &[&str]) -> Output {
    command(dir, args).output().unwrap()
}
