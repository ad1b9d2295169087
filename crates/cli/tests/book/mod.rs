//! The book is consistent: each page is in its table of contents, each link has a target, and every block of
//! code does what the page says.

mod markdown;
mod snippets;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::root;
use markdown::{anchors, docs, links, page, pages, titles};

#[test]
fn the_table_of_contents_has_every_page_once() {
    let mut listed: Vec<String> =
        links(&page("docs/SUMMARY.md")).into_iter().map(|(to, _)| format!("docs/{to}")).collect();
    listed.sort();
    assert_eq!(listed, docs());
}

/// A path without `.` and `..`; a path that leads out of the repository keeps its `..`.
fn normal(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|p| *p != "..") => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn every_link_leads_somewhere() {
    let mut known = BTreeMap::<String, Vec<String>>::new();
    let (mut checked, mut wrong) = (0, Vec::new());
    for name in pages() {
        let text = page(&name);
        let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (to, at) in links(&text) {
            if to.contains("://") {
                continue;
            }
            checked += 1;
            let (path, anchor) = to.split_once('#').map_or((to.as_str(), None), |(p, a)| (p, Some(a)));
            let target = if path.is_empty() { name.clone() } else { normal(&format!("{folder}/{path}")) };
            if !root().join(&target).exists() {
                wrong.push(format!("{name}:{at}: there is no {target}"));
            } else if let Some(anchor) = anchor {
                let known = known.entry(target.clone()).or_insert_with(|| anchors(&page(&target)));
                if !known.iter().any(|a| a == anchor) {
                    wrong.push(format!("{name}:{at}: {target} has no heading #{anchor}"));
                }
            }
        }
    }
    assert!(checked > 150, "only {checked} links");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn each_page_begins_with_its_only_title() {
    for name in docs() {
        let text = page(&name);
        assert!(text.starts_with("# "), "{name}");
        assert_eq!(titles(&text), [1], "{name}: the lines of its titles");
    }
}

#[test]
fn the_drawn_cycle_is_that_of_the_check() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("book-cycle");
    let done = Command::new(env!("CARGO_BIN_EXE_xoff"))
        .args(["check", "--quiet", "examples/bcube-deadlock.toml", "--out"])
        .arg(&out)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(done.status.success());
    let drawn = fs::read_to_string(out.join("cycle.svg")).unwrap();
    assert!(drawn == page("docs/cycle.svg"), "docs/cycle.svg is not {}", out.join("cycle.svg").display());
}
