//! What the program has without any file: `xoff init` and `xoff examples`.

use crate::common::{scratch, xoff};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Standard output of a command that succeeds and prints nothing else.
fn out(output: Output) -> String {
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && err.is_empty(), "{err}");
    String::from_utf8(output.stdout).unwrap()
}

/// Standard error of a command that fails, in one line.
fn err(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let text = String::from_utf8_lossy(&output.stderr);
    text.split_whitespace().filter(|w| !["│", "×", "╰─▶", "help:"].contains(w)).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_first_scenario_runs_without_a_warning() {
    let dir = scratch("first");
    let said = out(xoff(&dir, &["init"]));
    assert!(said.ends_with("type: xoff run scenario.toml\n"), "{said}");
    let text = fs::read_to_string(dir.join("scenario.toml")).unwrap();
    for verb in ["run", "topo", "traffic"] {
        let args: &[&str] =
            if verb == "run" { &["--strict", "--quiet", "--json"] } else { &["--strict", "--json"] };
        let done = out(xoff(&dir, &[&[verb, "scenario.toml"], args].concat()));
        if verb == "run" {
            let summary: serde_json::Value = serde_json::from_str(&done).unwrap();
            assert_eq!(summary["notes"], serde_json::json!([]));
            assert!(summary["pauses"]["count"].as_u64() > Some(0), "the incasts pause the fabric");
            // What a comment names is there.
            out(xoff(&dir, &["explain", "xoff-runs/scenario"]));
        }
    }
    // Each key has a comment.
    for line in text.lines().filter(|line| line.contains('=')) {
        assert!(line.contains('#'), "{line}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100));
    assert_eq!(out(xoff(&dir, &["init", "-"])), text);
    assert!(xoff(&dir, &["init", "other.toml"]).status.success());
    let other = fs::read_to_string(dir.join("other.toml")).unwrap();
    let renamed =
        text.replace("scenario.toml", "other.toml").replace("xoff-runs/scenario", "xoff-runs/other");
    assert_eq!(other, renamed);
}

#[test]
fn no_file_is_replaced() {
    let dir = scratch("replaced");
    fs::write(dir.join("scenario.toml"), "mine").unwrap();
    fs::create_dir(dir.join("folder")).unwrap();
    for name in ["scenario.toml", "folder"] {
        let why = err(&xoff(&dir, &["init", name]));
        assert!(why.contains(&format!("{name} exists already")), "{why}");
    }
    assert_eq!(fs::read_to_string(dir.join("scenario.toml")).unwrap(), "mine");
    let why = err(&xoff(&dir, &["init", "none/scenario.toml"]));
    assert!(why.contains("none/scenario.toml cannot be written"), "{why}");

    fs::write(dir.join("folder/topology.txt"), "mine").unwrap();
    let why = err(&xoff(&dir, &["examples", "hpcc/replay", "--out", "folder"]));
    assert!(why.contains("folder/topology.txt exists already"), "{why}");
    assert_eq!(fs::read_dir(dir.join("folder")).unwrap().count(), 1, "nothing is written");
    let why = err(&xoff(&dir, &["examples", "--out", "scenario.toml"]));
    assert!(why.contains("scenario.toml"), "{why}");
}

/// A limit on file sizes replaces a full disk.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_no_file() {
    let dir = scratch("full");
    for verb in ["init", "examples victims --out ."] {
        let script = format!("ulimit -f 0; exec {} {verb} 2>&1 | cat", env!("CARGO_BIN_EXE_xoff"));
        let output = Command::new("sh").current_dir(&dir).args(["-c", &script]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("cannot be written"), "{said}");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    }
}

/// The paths of the scenarios in a folder and the folders in it, without those of crates.
fn scenarios(folder: &Path, prefix: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() && !path.join("Cargo.toml").exists() {
            scenarios(&path, &format!("{name}/"), found);
        } else if let Some(name) = name.strip_suffix(".toml") {
            found.push(name.into());
        }
    }
}

#[test]
fn every_example_is_in_the_program() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut names = Vec::new();
    scenarios(&examples, "", &mut names);
    names.sort();
    assert!(names.len() > 20 && names.contains(&"hpcc/replay".to_string()), "{names:?}");
    let dir = scratch("every");
    let list = out(xoff(&dir, &["examples"]));
    assert!(list.lines().all(|line| line.chars().count() <= 100), "{list}");
    for name in &names {
        let line = list.lines().find(|line| line.split("  ").next() == Some(name)).expect(name);
        assert!(line.len() > 30, "{line}");
        let text = fs::read_to_string(examples.join(format!("{name}.toml"))).unwrap();
        assert_eq!(out(xoff(&dir, &["examples", name])), text, "{name}");
        assert_eq!(out(xoff(&dir, &["examples", name.rsplit('/').next().unwrap()])), text, "{name}");
        // It has the files that it names.
        let said = out(xoff(&dir, &["examples", name, "--out", name]));
        let path = said.trim_end().rsplit(' ').next().unwrap();
        assert!(path.starts_with(name) && path.ends_with(".toml"), "{said}");
        out(xoff(&dir, &["topo", path]));
    }
    // All together, and again over the same files.
    for _ in 0..2 {
        let said = out(xoff(&dir, &["examples", "--out", "all"]));
        assert!(said.starts_with(&format!("wrote {} examples to all", names.len())), "{said}");
    }
    out(xoff(&dir, &["topo", "all/hpcc/load.toml"]));
    assert_eq!(
        out(xoff(&dir, &["examples", "examples/hello.toml"])),
        out(xoff(&dir, &["examples", "hello"]))
    );
    let why = err(&xoff(&dir, &["examples", "victim"]));
    assert!(why.contains("unknown example `victim`") && why.contains("victims"), "{why}");
}

/// Each script names the verbs, and a shell that is here accepts it.
#[test]
fn shells_get_completions() {
    let dir = scratch("completions");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = out(xoff(&dir, &["completions", shell]));
        for word in ["explain", "completions", "overwrite", "ci95"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        fs::write(dir.join(shell), script).unwrap();
        if ["bash", "zsh", "fish"].contains(&shell) {
            let checked = Command::new(shell).current_dir(&dir).args(["-n", shell]).status();
            assert!(checked.is_ok_and(|done| done.success()) || which(shell).is_none(), "{shell}");
        }
    }
    let completed = "source ./bash && COMP_WORDS=(xoff expl) COMP_CWORD=1 && \
                     _xoff xoff expl xoff && echo \"${COMPREPLY[@]}\"";
    if which("bash").is_some() {
        let done = Command::new("bash").current_dir(&dir).args(["-c", completed]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&done.stdout), "explain\n");
    }
    assert_eq!(xoff(&dir, &["completions", "csh"]).status.code(), Some(2));
}

/// The path of a program, if it is here.
fn which(program: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|path| path.join(program)).find(|path| path.is_file())
}

#[test]
fn each_verb_has_a_manual_page() {
    let dir = scratch("man");
    let said = out(xoff(&dir, &["man", "--out", "man1"]));
    assert!(said.ends_with("man man1/xoff.1\n"), "{said}");
    let count = fs::read_dir(dir.join("man1")).unwrap().count();
    assert!(said.starts_with(&format!("wrote {count} pages to man1\n")), "{said}");
    let help = out(xoff(&dir, &["--help"]));
    let verbs = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let verbs = verbs.map_while(|line| line.split_whitespace().next()).filter(|verb| *verb != "help");
    let mut pages = vec![(vec!["man"], "xoff.1".to_string())];
    pages.extend(verbs.map(|verb| (vec!["man", verb], format!("xoff-{verb}.1"))));
    pages.push((vec!["man", "grid", "plan"], "xoff-grid-plan.1".into()));
    assert!(pages.len() > 15, "{pages:?}");
    for (args, file) in pages {
        let page = fs::read_to_string(dir.join("man1").join(&file)).expect(&file);
        assert_eq!(out(xoff(&dir, &args)), page, "{file}");
        for part in [".TH ", "SYNOPSIS", "EXIT STATUS", "\\fB0\\fR"] {
            assert!(page.contains(part), "{file}: {part}");
        }
        assert!(!page.contains("formats:"), "{file}");
    }
    // An older page is replaced.
    fs::write(dir.join("man1/xoff.1"), "old").unwrap();
    out(xoff(&dir, &["man", "--out", "man1"]));
    assert!(fs::read(dir.join("man1/xoff.1")).unwrap().len() > 100);
    let why = err(&xoff(&dir, &["man", "grid", "plam"]));
    assert!(why.contains("unknown verb `plam`") && why.contains("plan"), "{why}");
    fs::write(dir.join("file"), "").unwrap();
    let why = err(&xoff(&dir, &["man", "--out", "file"]));
    assert!(why.contains("file cannot be"), "{why}");
}
