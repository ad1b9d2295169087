//! Runs every block of code in README and docs, in a directory of the page's own, in order. CONTRIBUTING.md
//! describes the languages and the comments before a block.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

use super::markdown::{Block, blocks, page, pages};
use crate::common::root;

/// The instructions of the comment before a block.
#[derive(Default)]
struct Asked {
    /// Commands that are run first, and not shown.
    first: Vec<String>,
    /// Arguments that are added to each command of xoff, to shorten it.
    add: String,
    /// The exit status of the last command.
    status: i32,
    /// The scenario whose tables the block replaces.
    within: Option<String>,
    /// The file of which the block is an exact part.
    from: Option<String>,
    /// The block makes its runs by the Python package; tests/snippets.py runs it.
    python: bool,
    /// The block is not run.
    not_run: bool,
}

impl Asked {
    fn of(block: &Block) -> Result<Self, String> {
        let mut asked = Self::default();
        for line in &block.test {
            let (verb, rest) = line.split_once([' ', ':']).unwrap_or((line, ""));
            let rest = rest.trim();
            match verb {
                "first" => asked.first.push(rest.into()),
                "add" => asked.add = rest.into(),
                "status" => asked.status = rest.parse().map_err(|e| format!("status: {e}"))?,
                "in" => asked.within = Some(rest.into()),
                "python" if rest.is_empty() => asked.python = true,
                "from" => asked.from = Some(rest.into()),
                "not" => {
                    let reason = rest.strip_prefix("run:").unwrap_or("").trim();
                    asked.not_run = true;
                    (reason.len() > 10).then_some(()).ok_or("`not run:` wants a reason")?;
                }
                _ => return Err(format!("`{line}` asks for nothing that is known")),
            }
        }
        Ok(asked)
    }
}

/// A directory with the examples, in which a page's commands run.
fn sandbox(page: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("book").join(page);
    let _ = fs::remove_dir_all(&dir);
    copy(&root().join("examples"), &dir.join("examples"));
    for name in ["docs", "experiments"] {
        std::os::unix::fs::symlink(root().join(name).canonicalize().unwrap(), dir.join(name)).unwrap();
    }
    dir
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() { copy(&path, &to) } else { fs::copy(&path, &to).map(drop).unwrap() }
    }
}

/// Exit status, standard output and standard error of a shell's command.
fn run(command: &str, dir: &Path) -> (i32, String, String) {
    let bin = Path::new(env!("CARGO_BIN_EXE_xoff")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let done = Command::new("sh")
        .args(["-c", command])
        .current_dir(dir)
        .env("PATH", path)
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (done.status.code().unwrap_or(-1), text(done.stdout), text(done.stderr))
}

/// Lines match if they are the same, a line `…` being any number of them.
fn matches(shown: &[&str], printed: &[&str]) -> bool {
    let Some((first, rest)) = shown.split_first() else { return printed.is_empty() };
    if *first == "…" {
        return (0..=printed.len()).any(|skip| matches(rest, &printed[skip..]));
    }
    printed.split_first().is_some_and(|(p, others)| p == first && matches(rest, others))
}

/// Lines with `$ ` are commands. The following lines are their standard output, and for commands that fail
/// also their standard error.
fn console(block: &Block, asked: &Asked, dir: &Path) -> Result<(), String> {
    let text = format!("\n{}", block.text.replace("\\\n", " "));
    let sessions: Vec<&str> = text.split("\n$ ").skip(1).collect();
    if sessions.is_empty() || !text.starts_with("\n$ ") {
        return Err("it begins with no `$ ` line".into());
    }
    for (i, session) in sessions.iter().enumerate() {
        let (command, shown) = session.split_once('\n').unwrap_or((session, ""));
        let status = if i + 1 == sessions.len() { asked.status } else { 0 };
        let (code, mut printed, errors) = run(command, dir);
        if code != status {
            return Err(format!("`{command}` ended with status {code}:\n{printed}{errors}"));
        }
        if status != 0 {
            printed.push_str(&errors);
        }
        let lines: Vec<&str> = printed.lines().collect();
        if !matches(&shown.lines().collect::<Vec<_>>(), &lines) {
            let shown: Vec<&str> = shown.lines().collect();
            let begins = |n: &usize| matches(&[&shown[..*n], &["…"]].concat(), &lines);
            let what = match (1..=shown.len()).find(|n| !begins(n)) {
                Some(n) => format!("`{}` is not what comes next", shown[n - 1]),
                None => "more comes at the end".into(),
            };
            return Err(format!("`{command}`: {what}:\n{printed}"));
        }
    }
    Ok(())
}

/// A command for each line; a `\` at the end of one goes on with the next.
fn sh(block: &Block, asked: &Asked, dir: &Path) -> Result<(), String> {
    let text = block.text.replace("\\\n", " ");
    let commands: Vec<&str> = text
        .lines()
        .map(|line| line.split_once(" #").map_or(line, |(command, _)| command).trim())
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    for (i, command) in commands.iter().enumerate() {
        if let Some(target) = command.strip_prefix("make ") {
            if !page("Makefile").contains(&format!("\n{target}:")) {
                return Err(format!("there is no `make {target}`"));
            }
            continue;
        }
        if let Some(script) = command.strip_prefix("./") {
            let script = script.split(' ').next().unwrap();
            if !root().join(script).is_file() {
                return Err(format!("there is no `./{script}`"));
            }
            continue;
        }
        if !command.starts_with("xoff ") {
            return Err(format!("`{command}` is no command of xoff or make, and no script"));
        }
        let status = if i + 1 == commands.len() { asked.status } else { 0 };
        let (code, printed, errors) = run(&format!("{command} {}", asked.add), dir);
        if code != status {
            return Err(format!("`{command}` ended with status {code}:\n{printed}{errors}"));
        }
    }
    Ok(())
}

/// A scenario, or tables that replace those of one.
fn scenario(block: &Block, asked: &Asked) -> Result<(), String> {
    let mut text = block.text.clone();
    let mut folder = PathBuf::from("examples");
    if let Some(base) = &asked.within {
        let mut whole: toml::Table = toml::from_str(&page(base)).map_err(|e| e.to_string())?;
        let part: toml::Table = toml::from_str(&text).map_err(|e| e.to_string())?;
        for (key, value) in part {
            match (whole.get_mut(&key), value) {
                (Some(toml::Value::Table(old)), toml::Value::Table(new)) => old.extend(new),
                (_, value) => drop(whole.insert(key, value)),
            }
        }
        text = toml::to_string(&whole).unwrap();
        folder = Path::new(base).parent().unwrap().to_path_buf();
    }
    let files = |path: &Path| fs::read(root().join(&folder).join(path));
    let loaded = xoff_plan::load("the block", text.as_bytes(), &[], &files).map_err(|e| format!("{e:?}"))?;
    if loaded.warnings.is_empty() { Ok(()) } else { Err(format!("{:?}", loaded.warnings)) }
}

fn check(block: &Block, dir: &Path) -> Result<(), String> {
    let asked = Asked::of(block)?;
    if asked.not_run {
        return Ok(());
    }
    if let Some(file) = &asked.from {
        // Indented as in the file.
        let all = page(file);
        return if all.contains(&block.text) { Ok(()) } else { Err(format!("{file} does not contain it")) };
    }
    for command in &asked.first {
        if !matches!(block.language.as_str(), "python" | "sql") {
            let (code, printed, errors) = run(command, dir);
            if code != 0 {
                return Err(format!("first `{command}` ended with status {code}:\n{printed}{errors}"));
            }
        }
    }
    match block.language.as_str() {
        "console" => console(block, &asked, dir),
        "sh" => sh(block, &asked, dir),
        "toml" => scenario(block, &asked),
        // Drawings and formulas.
        "text" => Ok(()),
        // tests/snippets.py runs them.
        "python" | "sql" if !asked.first.is_empty() || asked.python => Ok(()),
        "python" | "sql" => Err("a `first` line says by which run it reads".into()),
        other => Err(format!("blocks of `{other}` are `from` a file, or not known")),
    }
}

#[test]
fn every_block_of_code_does_what_the_page_says() {
    let only = std::env::var("XOFF_PAGE").unwrap_or_default();
    let todo: Mutex<VecDeque<String>> =
        Mutex::new(pages().into_iter().filter(|p| p.contains(&only)).collect());
    let (wrong, count) = (Mutex::new(Vec::new()), Mutex::new(0));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, |n| n.get()) {
            scope.spawn(|| {
                loop {
                    let Some(name) = todo.lock().unwrap().pop_front() else { break };
                    let found = blocks(&page(&name));
                    if found.is_empty() {
                        continue;
                    }
                    let (begin, dir) = (Instant::now(), sandbox(&name.replace('/', "-")));
                    for block in &found {
                        if let Err(why) = check(block, &dir) {
                            wrong.lock().unwrap().push(format!("{name}:{}: {why}", block.line));
                        }
                    }
                    *count.lock().unwrap() += found.len();
                    println!("{name}: {} blocks, {:.1} s", found.len(), begin.elapsed().as_secs_f64());
                    fs::remove_dir_all(&dir).unwrap();
                }
            });
        }
    });
    let (mut wrong, count) = (wrong.into_inner().unwrap(), count.into_inner().unwrap());
    wrong.sort();
    assert!(!only.is_empty() || count > 30, "only {count} blocks");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
}

#[test]
fn shown_output_is_compared() {
    let lines = ["a", "b", "c"];
    assert!(matches(&["a", "…", "c"], &lines) && matches(&["…", "c", "…"], &lines));
    assert!(!matches(&["a", "c"], &lines) && !matches(&["a", "b"], &lines) && !matches(&["…", "x"], &lines));
    let block = |language: &str, test: &[&str], text: &str| Block {
        language: language.into(),
        text: text.into(),
        line: 1,
        test: test.iter().map(|t| t.to_string()).collect(),
    };
    let dir = sandbox("compared");
    for (language, test, text) in [
        ("console", &[][..], "$ xoff schema | head -n 1\n}\n"),
        ("console", &[], "$ xoff run examples/none.toml\n…\n"),
        ("sh", &[], "xoff topo examples/none.toml\n"),
        ("sh", &[], "make nothing\n"),
        ("sh", &[], "rm examples/hello.toml\n"),
        ("sh", &["not run: why"], "cargo install\n"),
        ("toml", &["in examples/hello.toml"], "[flow_control]\nscheme = \"pfff\"\n"),
        ("rust", &["from Makefile"], "fn main() {}\n"),
        ("rust", &[], "fn main() {}\n"),
        ("python", &[], "print()\n"),
        ("", &[], "text\n"),
    ] {
        assert!(check(&block(language, test, text), &dir).is_err(), "{language}: {text}");
    }
    assert!(check(&block("console", &[], "$ xoff schema | head -n 1\n{\n"), &dir).is_ok());
    assert!(check(&block("sh", &["status 1"], "xoff topo examples/none.toml\n"), &dir).is_ok());
    fs::remove_dir_all(&dir).unwrap();
}
