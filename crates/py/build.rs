//! Lists the scenarios of examples/, so that the package has them without files.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

fn main() {
    // Not `env!`: Cargo may use a build script of another folder again.
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("Cargo names the folder"));
    let examples = here.join("../../examples");
    println!("cargo::rerun-if-changed={}", examples.display());
    let entries = fs::read_dir(&examples).expect("the folder examples is there");
    let paths = entries.map(|entry| entry.expect("a file of examples can be read").path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    paths.sort();
    let mut list = String::from("&[\n");
    for path in paths {
        let path = path.canonicalize().expect("the path of an example can be resolved");
        let name = path.file_stem().expect("it has a name").to_string_lossy();
        writeln!(list, "    ({name:?}, include_str!({:?})),", path.display().to_string())
            .expect("text has room");
    }
    list += "]\n";
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo names a folder"));
    fs::write(out.join("examples.rs"), list).expect("the list can be written");
}
