//! The documentation is correct about keys, columns, files and arrows.

use crate::common::root;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value;

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The text under a heading, up to the next heading of its level or above.
fn section<'p>(page: &'p str, heading: &str) -> &'p str {
    let begin = page.find(heading).unwrap_or_else(|| panic!("no heading {heading}"));
    let body = &page[begin + heading.len()..];
    &body[..body.find("\n## ").unwrap_or(body.len())]
}

/// The code spans in a line of text.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The code spans in the first cells of the tables whose first cell is headed `head`.
fn first_cells(text: &str, head: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        let Some(cell) = line.strip_prefix('|').and_then(|l| l.split('|').next()) else {
            inside = false;
            continue;
        };
        if cell.trim() == head {
            inside = true;
        } else if inside {
            found.extend(spans(cell).map(String::from));
        }
    }
    found
}

/// Every word of the code spans of a text; a word with dashes counts as a whole and in parts.
fn words(text: &str) -> BTreeSet<&str> {
    let part = |c: char| !c.is_alphanumeric() && c != '_';
    let whole = |c: char| part(c) && c != '-';
    text.lines().flat_map(spans).flat_map(|s| s.split(part).chain(s.split(whole))).collect()
}

/// The keys of every object in a value, nested ones included.
fn keys(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                into.insert(key.clone());
                keys(value, into);
            }
        }
        Value::Array(list) => list.iter().for_each(|v| keys(v, into)),
        _ => {}
    }
}

/// The names of all properties in a JSON Schema.
fn properties(schema: &Value, into: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Object(properties)) = map.get("properties") {
                into.extend(properties.keys().cloned());
            }
            map.values().for_each(|v| properties(v, into));
        }
        Value::Array(list) => list.iter().for_each(|v| properties(v, into)),
        _ => {}
    }
}

#[test]
fn the_scenario_guide_names_every_table_and_no_wrong_key() {
    let page = page("docs/SCENARIO.md");
    let schema = serde_json::to_value(xoff_plan::schema::schema()).unwrap();
    let mut real = BTreeSet::new();
    properties(&schema, &mut real);
    let tables = schema["properties"].as_object().unwrap();
    let said = words(&page);
    let missing: Vec<_> = tables.keys().filter(|table| !said.contains(table.as_str())).collect();
    assert!(tables.len() > 20 && missing.is_empty(), "not in docs/SCENARIO.md: {missing:?}");
    let paths = page.lines().flat_map(spans).filter_map(|span| {
        let path = span.split([' ', '=']).next().unwrap().trim_matches(['[', ']']);
        let mut parts = path.split('.').filter(|part| part.parse::<usize>().is_err());
        let (table, key) = (parts.next()?, parts.next_back()?);
        tables.contains_key(table).then_some((path, key))
    });
    let (mut count, mut wrong) = (0, Vec::new());
    for (path, key) in paths {
        count += 1;
        wrong.extend((!real.contains(key)).then_some(path));
    }
    assert!(count >= 20 && wrong.is_empty(), "{count} paths; no such keys: {wrong:?}");
}

#[test]
fn the_reference_is_that_of_the_schema() {
    let current = xoff_plan::reference::reference();
    assert!(page("docs/REFERENCE.md") == current, "make reference writes docs/REFERENCE.md");
}

#[test]
fn the_results_page_has_every_column_and_key() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("docs-results");
    let done = Command::new(env!("CARGO_BIN_EXE_xoff"))
        .args(["run", "--quiet", "--overwrite", "--out"])
        .args([out.as_os_str(), root().join("examples/hello.toml").as_os_str()])
        .output()
        .unwrap();
    assert!(done.status.success());
    let page = page("docs/RESULTS.md");
    let mut tables = 0;
    for entry in fs::read_dir(&out).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        let said = section(&page, &format!("\n## `{name}`\n"));
        if name.ends_with(".parquet") {
            let reader = SerializedFileReader::new(fs::File::open(&path).unwrap()).unwrap();
            let schema = reader.metadata().file_metadata().schema_descr_ptr();
            let columns: Vec<&str> = schema.columns().iter().map(|c| c.name()).collect();
            assert_eq!(first_cells(said, "column"), columns, "{name}");
            tables += 1;
        } else {
            let value: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            let top: BTreeSet<String> = value.as_object().unwrap().keys().cloned().collect();
            assert_eq!(first_cells(said, "key").into_iter().collect::<BTreeSet<_>>(), top, "{name}");
            if name == "summary.json" {
                let (mut all, said) = (BTreeSet::new(), words(said));
                keys(&value, &mut all);
                let missing: Vec<_> = all.iter().filter(|k| !said.contains(k.as_str())).collect();
                assert!(missing.is_empty(), "not under summary.json: {missing:?}");
            }
        }
    }
    assert_eq!(tables, 10);
}

/// The folder of a crate of ours that a line of a manifest names.
fn room(line: &str) -> Option<&str> {
    match line.strip_prefix("xoff")? {
        of_cli if of_cli.starts_with('.') => Some("cli"),
        other => other.strip_prefix('-')?.split(['.', ' ']).next(),
    }
}

#[test]
fn the_arrows_are_those_of_the_manifests() {
    let page = page("ARCHITECTURE.md");
    assert!(page.len() <= 20_000, "{} bytes", page.len());
    let mut rooms = 0;
    for line in section(&page, "\n## The rooms\n").lines().filter(|l| l.starts_with("| `xoff")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let package = spans(cells[1]).next().unwrap();
        let folder = package.strip_prefix("xoff-").unwrap_or("cli");
        let manifest = self::page(&format!("crates/{folder}/Cargo.toml"));
        assert!(manifest.contains(&format!("name = \"{package}\"")));
        let dependencies = manifest.split("\n[").find(|t| t.starts_with("dependencies]")).unwrap_or("");
        let real: BTreeSet<&str> = dependencies.lines().filter_map(room).collect();
        let listed: BTreeSet<&str> = cells[4].split(", ").filter(|d| *d != "nothing").collect();
        assert_eq!(listed, real, "{package}");
        rooms += 1;
    }
    assert_eq!(rooms, fs::read_dir(root().join("crates")).unwrap().count());
}

#[test]
fn there_is_one_version_and_its_formats_are_named() {
    let version = env!("CARGO_PKG_VERSION");
    let changes = page("CHANGELOG.md");
    let newest = changes.lines().find_map(|line| line.strip_prefix("## ")).unwrap();
    assert_eq!(newest.split(',').next(), Some(version), "CHANGELOG.md");
    assert!(page("CITATION.cff").contains(&format!("\nversion: {version}\n")));
    assert!(page("examples/own-scheme/pyproject.toml").contains(&format!("\"xoff=={version}\"")));
    let said = Command::new(env!("CARGO_BIN_EXE_xoff")).arg("--version").output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    let [first, formats, build] = said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
    assert_eq!(first, format!("xoff {version}"));
    let formats = formats.strip_prefix("formats: ").unwrap();
    assert!(section(&changes, "\n## ").contains(&format!("Formats: {formats}.")), "CHANGELOG.md: {formats}");
    assert!(build.starts_with("build: ") && build.contains("rustc "), "{build}");
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let manifest = fs::read_to_string(entry.unwrap().path().join("Cargo.toml")).unwrap();
        assert!(manifest.contains("\nversion.workspace = true\n"), "{manifest}");
    }
}

#[test]
fn the_page_of_experiments_has_every_key_and_no_other() {
    use xoff_repro::{check, experiment, metrics};
    let page = page("docs/EXPERIMENTS.md");
    let mut real = BTreeSet::new();
    for schema in [experiment::schema(), experiment::claims_schema()] {
        properties(&serde_json::to_value(schema).unwrap(), &mut real);
    }
    assert!(real.len() > 60, "{real:?}");
    let said = words(&page);
    let missing: Vec<_> = real.iter().filter(|k| !said.contains(k.as_str())).collect();
    assert!(missing.is_empty(), "not in docs/EXPERIMENTS.md: {missing:?}");
    let file = &page[..page.find("\n## Verdicts\n").unwrap()];
    let listed = first_cells(file, "key");
    let unreal: Vec<_> = listed.iter().filter(|k| !real.contains(k.as_str())).collect();
    assert!(listed.len() > 60 && unreal.is_empty(), "no such keys: {unreal:?}");
    let measurable: BTreeSet<String> = metrics::MEASURABLE.iter().map(|m| m.name.to_string()).collect();
    assert_eq!(first_cells(&page, "measured").into_iter().collect::<BTreeSet<_>>(), measurable);
    for m in &metrics::MEASURABLE {
        assert!(check::keys(m).iter().all(|k| real.contains(*k)), "{}", m.name);
    }
    for v in xoff_repro::verdict::Verdict::ALL {
        assert!(section(&page, "\n## Verdicts\n").contains(&format!("*{}*", v.name())), "{v:?}");
    }
}

#[test]
fn the_pages_of_reproductions_are_those_of_the_results() {
    let text = page("experiments/results.json");
    let results: xoff_repro::report::Results = serde_json::from_str(&text).unwrap();
    assert!(!results.quick && results.complete);
    let (mut names, mut scoreboard) = (BTreeSet::new(), 0);
    for made in xoff_repro::page::render(&results) {
        let committed = page(&format!("docs/{}", made.path));
        assert!(committed == made.text, "make repro generates docs/{}", made.path);
        match made.path.strip_prefix("reproduction/") {
            Some(name) => drop(names.insert(name.to_string())),
            None => scoreboard = made.text.len(),
        }
    }
    assert!(scoreboard <= 25_000, "the scoreboard has {scoreboard} bytes");
    let present = fs::read_dir(root().join("docs/reproduction")).unwrap();
    let present: BTreeSet<String> =
        present.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names, present, "every paper has its page, every picture is there, and no other is left");
    // Every key of the file is described.
    let experiments = self::page("docs/EXPERIMENTS.md");
    let (mut all, said) = (BTreeSet::new(), words(&experiments));
    let mut value: Value = serde_json::from_str(&text).unwrap();
    strip_names(&mut value);
    keys(&value, &mut all);
    let missing: Vec<_> = all.iter().filter(|k| !said.contains(k.as_str())).collect();
    assert!(missing.is_empty(), "not under results.json: {missing:?}");
}

/// Removes the objects whose keys are names and no keys of the format.
fn strip_names(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for key in ["at", "against_at", "than_at", "per_case", "runs", "metrics", "values"] {
                map.get_mut(key).map(Value::take);
            }
            map.values_mut().for_each(strip_names);
        }
        Value::Array(list) => list.iter_mut().for_each(strip_names),
        _ => {}
    }
}
