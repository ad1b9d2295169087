//! Every wrong scenario gives one error that names file, line, key and remedy.
//!
//! Each file of `tests/wrong` is a scenario with one fault; lines `# --set k=v`
//! at its top are overrides. What it prints is kept as a snapshot.

use miette::{GraphicalReportHandler, GraphicalTheme};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use xoff_plan::{Error, load};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrong")
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    // The system's own words differ between systems.
    fs::read(folder().join(path)).map_err(|_| io::Error::other("no such file"))
}

fn scenarios() -> Vec<PathBuf> {
    let entries = fs::read_dir(folder()).unwrap().map(|e| e.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|p| p.extension().is_some_and(|e| e == "toml")).collect();
    files.sort();
    files
}

fn error_of(path: &Path) -> Error {
    let bytes = fs::read(path).unwrap();
    let overrides: Vec<(String, String)> = String::from_utf8_lossy(&bytes)
        .lines()
        .filter_map(|l| l.strip_prefix("# --set "))
        .map(|l| l.split_once('=').map(|(k, v)| (k.to_string(), v.to_string())).unwrap())
        .collect();
    let name = path.file_name().unwrap().to_str().unwrap();
    match load(name, &bytes, &overrides, &read) {
        Err(e) => e,
        Ok(_) => panic!("{name} is accepted"),
    }
}

#[test]
fn each_wrong_scenario_has_its_message() {
    let files = scenarios();
    assert!(files.len() >= 30, "{}", files.len());
    for path in files {
        let error = error_of(&path);
        let mut text = String::new();
        let printer = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_width(100);
        printer.render_report(&mut text, &error).unwrap();
        text.push_str(&format!("\n{}\n", error.one_line()));
        insta::assert_snapshot!(path.file_stem().unwrap().to_str().unwrap(), text);
    }
}

#[test]
fn each_error_says_where_and_what_to_do() {
    for path in scenarios() {
        let error = error_of(&path);
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(error.remedy().is_some(), "{name}: no remedy: {error}");
        let whole = [
            "binary.toml",
            "empty.toml",
            "only-comments.toml",
            "missing-topology.toml",
            "missing-traffic.toml",
        ];
        let placed = error.position().is_some() || error.file().starts_with("--set ");
        assert!(placed || whole.contains(&name), "{name}: no place: {error}");
        let keyed = error.key().is_some() || error.file().contains("--set") || error.file() != name;
        assert!(keyed || whole.contains(&name) || name == "syntax.toml", "{name}: no key: {error}");
    }
}
