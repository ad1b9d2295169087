//! Names the compiler and the target, for `xoff --version`, and lists the examples, so that the program has them
//! without files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = env::var("RUSTC").expect("Cargo names the compiler");
    let said = Command::new(rustc).arg("--version").output().expect("the compiler says its version");
    let version = String::from_utf8_lossy(&said.stdout);
    println!("cargo::rustc-env=XOFF_RUSTC={}", version.trim());
    println!("cargo::rustc-env=XOFF_TARGET={}", env::var("TARGET").expect("Cargo names the target"));

    // Not `env!`: Cargo may use a build script of another folder again.
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("Cargo names the folder"));
    let examples = followed(&here.join("bundled/examples"));
    println!("cargo::rerun-if-changed={}", examples.display());
    let mut found = Vec::new();
    list(&examples, "", &mut found);
    found.sort();
    let mut text = String::from("&[\n");
    for (name, path) in found {
        writeln!(text, "    ({name:?}, include_bytes!({:?})),", path.display().to_string())
            .expect("text has room");
    }
    text += "]\n";
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo names a folder"));
    fs::write(out.join("examples.rs"), text).expect("the list can be written");
}

/// The folder to which a link leads. Git for Windows may check a link out as a file that contains the target.
fn followed(link: &Path) -> PathBuf {
    let target = fs::read_to_string(link).ok().map(|target| link.with_file_name("").join(target.trim()));
    let folder = target.unwrap_or_else(|| link.to_path_buf());
    folder.canonicalize().expect("the folder of the examples is there")
}

/// Lists the scenarios in a folder, and all files of the folders in it. A folder with a crate is no example.
fn list(folder: &Path, prefix: &str, found: &mut Vec<(String, PathBuf)>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("an entry of the folder can be read").path();
        let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
        let is_scenario = path.extension().is_some_and(|e| e == "toml");
        if path.is_dir() {
            if !path.join("Cargo.toml").exists() {
                list(&path, &format!("{prefix}{name}/"), found);
            }
        } else if is_scenario || !prefix.is_empty() {
            found.push((format!("{prefix}{name}"), path));
        }
    }
}
