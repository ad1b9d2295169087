//! Every wrong scenario gives one error that names file, line, key and remedy.
//!
//! Each table of `tests/wrong` has the cases of a topic: scenarios with one fault and their errors, as
//! printed and in one line. Within a scenario, a line `@NAME` is replaced by that text of `fragments.toml`,
//! and lines `# --set k=v` at the top are overrides. Files that scenarios name are in `tests/wrong/files`.
//! For a new case, write `error = '''` and `'''` on two lines, and let `UPDATE=1` fill them.

use miette::{GraphicalReportHandler, GraphicalTheme};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};
use toml::Table;
use xoff_plan::{Error, load};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrong")
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    // The system's own words differ between systems.
    fs::read(folder().join("files").join(path)).map_err(|_| io::Error::other("no such file"))
}

fn tables() -> Vec<PathBuf> {
    let entries = fs::read_dir(folder()).unwrap().map(|e| e.unwrap().path());
    let mut files: Vec<PathBuf> = entries
        .filter(|p| p.extension().is_some_and(|e| e == "toml") && !p.ends_with("fragments.toml"))
        .collect();
    files.sort();
    files
}

/// The scenario of a case.
fn scenario(case: &Table, fragments: &Table) -> Vec<u8> {
    if let Some(bytes) = case.get("bytes") {
        return bytes.clone().try_into().unwrap();
    }
    let expand = |line: &str| match line.strip_prefix('@') {
        Some(name) => fragments[name.trim_end()].as_str().unwrap().to_string(),
        None => line.to_string(),
    };
    case["scenario"].as_str().unwrap().split_inclusive('\n').map(expand).collect::<String>().into()
}

fn error_of(name: &str, bytes: &[u8]) -> Error {
    let overrides: Vec<(String, String)> = String::from_utf8_lossy(bytes)
        .lines()
        .filter_map(|l| l.strip_prefix("# --set "))
        .map(|l| l.split_once('=').map(|(k, v)| (k.to_string(), v.to_string())).unwrap())
        .collect();
    match load(name, bytes, &overrides, &read) {
        Err(e) => e,
        Ok(_) => panic!("{name} is accepted"),
    }
}

/// Checks that the error of a case names the place and the correction.
fn check(name: &str, file: &str, error: &Error) {
    assert!(error.remedy().is_some(), "{name}: no remedy: {error}");
    let whole = ["binary", "empty", "only-comments", "missing-topology", "missing-traffic"];
    let placed = error.position().is_some() || error.file().starts_with("--set ");
    assert!(placed || whole.contains(&name), "{name}: no place: {error}");
    let keyed = error.key().is_some() || error.file().contains("--set") || error.file() != file;
    assert!(keyed || whole.contains(&name) || name == "syntax", "{name}: no key: {error}");
}

#[test]
fn each_wrong_scenario_has_its_message() {
    let fragments = fs::read_to_string(folder().join("fragments.toml")).unwrap().parse().unwrap();
    let printer = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_width(100);
    let names = RefCell::new(BTreeSet::new());
    let message = |case: &Table| {
        let name = case["name"].as_str().unwrap();
        assert!(names.borrow_mut().insert(name.to_string()), "two cases are called {name}");
        let file = format!("{name}.toml");
        let error = error_of(&file, &scenario(case, &fragments));
        check(name, &file, &error);
        let mut text = String::new();
        printer.render_report(&mut text, &error).unwrap();
        format!("{text}\n{}\n", error.one_line())
    };
    let differences: String = tables().iter().map(|t| crate::common::compare(t, "error", message)).collect();
    assert!(differences.is_empty(), "expected (-), actual (+); UPDATE=1 accepts:\n{differences}");
    assert!(names.borrow().len() >= 400, "{names:?}");
}
