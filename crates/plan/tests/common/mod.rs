//! Texts that people read, kept in tables: TOML files of `[[case]]`s.
//!
//! Each case has a `name` and, last, the expected text as a multi-line literal string. `UPDATE=1 cargo test
//! -p xoff-plan` writes the actual texts into the tables; `git diff` then shows the changes.

pub mod line;

use std::{env, fs, path::Path};
use toml::{Table, Value};

/// Cases of the table at `path`.
pub fn cases(path: &Path) -> Vec<Table> {
    let text = fs::read_to_string(path).unwrap();
    let mut table: Table = text.parse().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let Some(Value::Array(cases)) = table.remove("case") else { panic!("{}: no case", path.display()) };
    cases.into_iter().map(|case| case.try_into().unwrap()).collect()
}

/// Compares the text `key` of each case at `path` with the actual one. Returns the
/// differences in words.
pub fn compare(path: &Path, key: &str, actual: impl Fn(&Table) -> String) -> String {
    let update = env::var_os("UPDATE").is_some();
    let open = format!("\n{key} = '''\n");
    let mut text = fs::read_to_string(path).unwrap();
    let (mut at, mut differences) = (0, String::new());
    for case in cases(path) {
        let (name, expected, actual) = (&case["name"], case[key].as_str().unwrap(), actual(&case));
        at += text[at..].find(&open).unwrap_or_else(|| panic!("{name}: no {key} = '''")) + open.len();
        if update {
            assert!(!actual.contains("'''"), "{name}: a literal string cannot hold '''");
            text.replace_range(at..at + expected.len(), &actual);
        } else if expected != actual {
            differences += &format!("{} {name}\n{}", path.display(), difference(expected, &actual));
        }
        at += if update { actual.len() } else { expected.len() };
    }
    if update {
        fs::write(path, text).unwrap();
    }
    differences
}

/// Lines that are expected (`-`) and actual (`+`), between those that are the same
/// at both ends.
fn difference(expected: &str, actual: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| pairs.take_while(|(a, b)| a == b).count();
    let head = same(&mut old.iter().zip(&new));
    let tail = same(&mut old[head..].iter().rev().zip(new[head..].iter().rev()));
    let lines = |sign: char, lines: &[&str]| -> String {
        lines.iter().map(|line| format!("{sign} {line}\n")).collect()
    };
    let (removed, added) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    [lines(' ', &old[..head]), lines('-', removed), lines('+', added), lines(' ', &old[old.len() - tail..])]
        .concat()
}
