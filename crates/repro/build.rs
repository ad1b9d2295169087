//! Lists the experiments and the files that they name, so that the program has them without files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Not `env!`: Cargo may use a build script of another folder again.
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("Cargo names the folder"));
    let experiments = followed(&here.join("bundled/experiments"));
    let mut found = Vec::new();
    for entry in fs::read_dir(&experiments).expect("the folder can be read") {
        let path = entry.expect("an entry of the folder can be read").path();
        // Not the stored results beside the papers.
        if path.is_dir() {
            println!("cargo::rerun-if-changed={}", path.display());
            list(&path, "", &mut found);
        }
    }
    found.sort();
    let mut text = String::from("&[\n");
    for (name, path) in found {
        writeln!(text, "    ({name:?}, include_bytes!({:?})),", path.display().to_string())
            .expect("text has room");
    }
    text += "]\n";
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo names a folder"));
    fs::write(out.join("experiments.rs"), text).expect("the list can be written");
}

/// The folder to which a link leads. Git for Windows may check a link out as a file that contains the target.
fn followed(link: &Path) -> PathBuf {
    let target = fs::read_to_string(link).ok().map(|target| link.with_file_name("").join(target.trim()));
    let folder = target.unwrap_or_else(|| link.to_path_buf());
    folder.canonicalize().expect("the folder of the experiments is there")
}

/// Lists all files below a folder, with paths that begin with its name.
fn list(folder: &Path, prefix: &str, found: &mut Vec<(String, PathBuf)>) {
    let name = folder.file_name().expect("it has a name").to_string_lossy();
    let prefix = format!("{prefix}{name}/");
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("an entry of the folder can be read").path();
        if path.is_dir() {
            list(&path, &prefix, found);
        } else {
            let name = path.file_name().expect("it has a name").to_string_lossy();
            found.push((format!("{prefix}{name}"), path.clone()));
        }
    }
}
