//! Planned faults: each call by which a run stores its results fails, or the process dies there. An
//! incomplete result must not look complete. An older result remains, and the next run removes the files of
//! the disturbed one.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod record;

use crate::common;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use record::Call;

/// A run of some microseconds with every kind of file.
const TINY: &str = r#"
[topology]
kind = "line"
switches = 1
hosts_per_switch = 2
link = { rate = "100Gbps", delay = "1us" }

[flow_control]
scheme = "pfc"

[[traffic]]
kind = "flow"
src = "H0"
dst = "H1"
size = "3kB"
"#;

/// One kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Fail,
    Kill,
}

/// The library that makes calls fail.
static SHIM: LazyLock<PathBuf> = LazyLock::new(|| {
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("faults-{}.so", std::process::id()));
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/shim.c");
    let done = Command::new("cc").args(["-O1", "-shared", "-fPIC", "-o"]).arg(&to).arg(from).status();
    assert!(done.unwrap().success());
    to
});

/// An empty directory, with `tiny.toml` in it; results go into `out`.
fn scratch(test: &str) -> PathBuf {
    let path = common::scratch(test).canonicalize().unwrap();
    fs::write(path.join("tiny.toml"), TINY).unwrap();
    path
}

/// How a process is disturbed.
#[derive(Clone, Copy, Debug, Default)]
struct Plan {
    /// Which call, from 1, and how; none is.
    fault: Option<(usize, How)>,
    /// Two directories cannot be exchanged.
    plain: bool,
    /// It is allocations that fail.
    memory: bool,
    /// The system refuses threads.
    alone: bool,
}

/// A process that has ended.
struct Done {
    output: Output,
    calls: Vec<Call>,
    allocations: usize,
}

/// Runs xoff in a directory, disturbed; only calls about files in it count.
fn xoff(dir: &Path, args: &[&str], plan: Plan) -> Done {
    let log = dir.join("log");
    let _ = fs::remove_file(&log);
    let mut command = Command::new(env!("CARGO_BIN_EXE_xoff"));
    command.current_dir(dir).args(args).env("NO_COLOR", "1");
    command.env("LD_PRELOAD", &*SHIM).env("XOFF_FAULT_ROOT", dir).env("XOFF_FAULT_LOG", &log);
    if let Some((at, how)) = plan.fault {
        command.env("XOFF_FAULT_AT", at.to_string());
        command.env("XOFF_FAULT_HOW", if how == How::Kill { "kill" } else { "fail" });
    }
    if plan.plain {
        command.env("XOFF_FAULT_PLAIN", "1");
    }
    if plan.memory {
        command.env("XOFF_FAULT_MEMORY", "1");
    }
    if plan.alone {
        command.env("XOFF_FAULT_ALONE", "1");
    }
    let output = command.output().unwrap();
    let (calls, allocations) = record::read(&fs::read_to_string(&log).unwrap_or_default());
    Done { output, calls, allocations }
}

/// As [`xoff`], undisturbed and with success.
fn good(dir: &Path, args: &[&str]) -> Done {
    let done = xoff(dir, args, Plan::default());
    assert_eq!(done.output.status.code(), Some(0), "{}", err(&done));
    done
}

fn err(done: &Done) -> String {
    String::from_utf8(done.output.stderr.clone()).unwrap()
}

/// Every file and directory below one, hidden ones too; manifests without the wall time.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(next) = todo.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(dir).unwrap().to_path_buf();
            if path.is_dir() {
                found.insert(name, Vec::new());
                todo.push(path);
                continue;
            }
            let mut bytes = fs::read(&path).unwrap();
            if path.ends_with("manifest.json") {
                let text = String::from_utf8(bytes).unwrap();
                bytes = text.lines().filter(|l| !l.contains("\"wall_seconds\"")).collect::<String>().into();
            }
            found.insert(name, bytes);
        }
    }
    found
}

/// A disturbed process ended as it should: killed, or with one clear message, or well in spite of
/// the fault.
fn ended(done: &Done, how: How, case: &str) {
    let text = err(done);
    assert!(!text.contains("panicked") && !text.contains("abort"), "{case}: {text}");
    match how {
        How::Kill => assert_eq!(done.output.status.signal(), Some(9), "{case}: {text}"),
        How::Fail => match done.output.status.code() {
            // A file that could not be removed does no harm.
            Some(0) => assert!(!text.contains('×'), "{case}: {text}"),
            Some(1) => {
                let errors = text.matches('×').count() + text.matches(" failed").count();
                assert!(
                    errors > 0 || String::from_utf8_lossy(&done.output.stdout).contains("failed"),
                    "{case}: {text}"
                );
                assert!(text.matches('×').count() <= 1, "{case}: {text}");
            }
            other => panic!("{case}: status {other:?}: {text}"),
        },
    }
}

/// Calls `f` with each of the numbers 1 to `last` in steps, on two threads, each with a directory
/// of its own. Returns how many there were.
fn each(test: &str, last: usize, step: usize, f: impl Fn(&Path, usize) + Sync) -> usize {
    let next = AtomicUsize::new(1);
    let count = AtomicUsize::new(0);
    thread::scope(|scope| {
        for worker in 0..2 {
            let (next, count, f) = (&next, &count, &f);
            scope.spawn(move || {
                let dir = scratch(&format!("{test}-{worker}"));
                loop {
                    let n = next.fetch_add(step, Ordering::Relaxed);
                    if n > last {
                        break;
                    }
                    f(&dir, n);
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    count.into_inner()
}

/// A copy of a directory; nothing if it is not there.
fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    if !from.is_dir() {
        return;
    }
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, to) = {
            let e = entry.unwrap();
            (e.path(), to.join(e.file_name()))
        };
        if path.is_dir() { copy(&path, &to) } else { fs::copy(&path, &to).map(drop).unwrap() }
    }
}

const RUN: [&str; 8] = ["run", "tiny.toml", "--pcap", "all", "--quiet", "--overwrite", "--out", ""];

/// The command of a run in `out/deep/run` of a directory.
fn run<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = RUN.to_vec();
    args[7] = out;
    args.extend(more);
    args
}

#[test]
fn each_fault_of_a_run_leaves_the_older_run_or_the_new_one_whole() {
    let dir = scratch("run");
    let place = |dir: &Path| dir.join("out/deep/run").display().to_string();
    let out = place(&dir);
    good(&dir, &run(&out, &["--seed", "9"]));
    copy(&dir.join("out"), &dir.join("older"));
    let older = contents(&dir.join("older/deep/run"));
    let faults = AtomicUsize::new(0);
    // Whether an older run is in the place, and whether the system can exchange directories.
    for (replaces, plain) in [(false, false), (true, false), (true, true)] {
        let begin = |at: &Path| {
            let _ = fs::remove_dir_all(at.join("out"));
            if replaces {
                copy(&dir.join("older"), &at.join("out"));
            }
        };
        begin(&dir);
        let straight = xoff(&dir, &run(&out, &[]), Plan { plain, ..Plan::default() });
        assert_eq!(straight.output.status.code(), Some(0), "{}", err(&straight));
        assert_eq!(record::check(&straight.calls).last(), Some(&PathBuf::from(&out)));
        let new = contents(&dir.join("out/deep/run"));
        assert_eq!(new.len(), 13);
        assert!(new != older);
        assert_eq!(contents(&dir.join("out")).len(), 15, "nothing is left beside the run");
        for how in [How::Fail, How::Kill] {
            let count = each(&format!("run-{replaces}-{plain}-{how:?}"), straight.calls.len(), 1, |at, n| {
                begin(at);
                let out = place(at);
                let done =
                    xoff(at, &run(&out, &[]), Plan { fault: Some((n, how)), plain, ..Plan::default() });
                let case = format!("{how:?} at {n} of {:?}", done.calls.last());
                ended(&done, how, &case);
                let found = contents(Path::new(&out));
                let is_new = found == new;
                assert!(is_new || done.output.status.code() != Some(0), "{case}");
                // Between two renames the older run is aside, and comes back below.
                let aside = plain && how == How::Kill && found.is_empty();
                let whole = is_new || aside || if replaces { found == older } else { found.is_empty() };
                assert!(whole, "{case}: {:?}", found.keys());
                // The next run in the same directory removes the remaining files, and restores the old ones.
                let other = at.join("out/deep/other").display().to_string();
                good(at, &run(&other, &[]));
                let names: Vec<String> = fs::read_dir(at.join("out/deep"))
                    .unwrap()
                    .map(|e| e.unwrap().file_name().into_string().unwrap())
                    .filter(|name| !["other", "run"].contains(&name.as_str()))
                    .collect();
                assert!(names.is_empty(), "{case}: {names:?} are left");
                let found = contents(Path::new(&out));
                assert!(
                    found == new || found == if replaces { older.clone() } else { BTreeMap::new() },
                    "{case}"
                );
            });
            faults.fetch_add(count, Ordering::Relaxed);
        }
    }
    eprintln!("{} faults of a run planned and survived", faults.into_inner());
}

/// The command of a grid of three runs, one after another.
fn grid<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let vary = ["--vary", "traffic.0.size=1kB,3kB", "--jobs", "1"];
    [&["run", "tiny.toml", "--quiet", "--out", out], &vary[..], more].concat()
}

/// Whether a path has no hidden part: temporary names begin with a dot.
fn visible(path: &Path) -> bool {
    path.iter().all(|part| !part.to_str().unwrap().starts_with('.'))
}

/// The files of a grid that are in their place must be complete, even after a failed process.
fn all_whole(place: &Path, whole: &BTreeMap<PathBuf, Vec<u8>>, case: &str) {
    let found = &contents(place);
    if let Some(manifest) = found.get(Path::new("grid.json")) {
        if let Err(error) = xoff_results::report::document(place) {
            panic!("{case}: {error}");
        }
        // The table has the runs that are done, and agrees with `grid.json` if that lists it.
        let listed = String::from_utf8_lossy(manifest).contains("grid.parquet");
        let table = found.get(Path::new("grid.parquet"));
        assert!(listed || table.is_none_or(|table| *table == whole[Path::new("grid.parquet")]), "{case}");
    }
    for path in found
        .keys()
        .filter(|path| visible(path))
        .filter(|path| !path.starts_with("grid.json") && !path.starts_with("grid.parquet"))
    {
        assert!(found[path] == whole[path], "{case}: {} differs", path.display());
    }
    for run in found.keys().filter(|p| p.starts_with("runs") && p.iter().count() == 2 && visible(p)) {
        let files = |of: &BTreeMap<PathBuf, Vec<u8>>| of.keys().filter(|p| p.starts_with(run)).count();
        assert_eq!(files(found), files(whole), "{case}: {} lacks files", run.display());
    }
}

/// The command that resumes a disturbed grid.
fn go_on(at: &Path, out: &str, whole: &BTreeMap<PathBuf, Vec<u8>>, case: &str) {
    let begun = at.join("out/g/grid.json").exists();
    good(at, &grid(out, if begun { &["--resume"] } else { &[] }));
    let found = contents(&at.join("out/g"));
    assert!(found == *whole, "{case}: {:?}", found.keys());
    assert_eq!(fs::read_dir(at.join("out")).unwrap().count(), 1, "{case}: something is left beside the grid");
}

#[test]
fn each_fault_of_a_grid_is_made_good_by_resuming_it() {
    let dir = scratch("grid");
    let place = |at: &Path| at.join("out/g").display().to_string();
    let out = place(&dir);
    let straight = good(&dir, &grid(&out, &[]));
    let places = record::check(&straight.calls);
    let names: Vec<_> = places.iter().map(|p| p.strip_prefix(&dir).unwrap().display().to_string()).collect();
    let runs = ["out/g/runs/1_size=1kB", "out/g/runs/2_size=3kB"];
    assert_eq!(names, ["out/g", runs[0], runs[1], "out/g/grid.parquet", "out/g/grid.json", "out/g/flows"]);
    let whole = contents(&dir.join("out/g"));
    let mut faults = 0;
    for how in [How::Fail, How::Kill] {
        faults += each(&format!("grid-{how:?}"), straight.calls.len(), 1, |at, n| {
            let _ = fs::remove_dir_all(at.join("out"));
            let out = place(at);
            let done = xoff(at, &grid(&out, &[]), Plan { fault: Some((n, how)), ..Plan::default() });
            let case = format!("{how:?} at {n} of {:?}", done.calls.last());
            ended(&done, how, &case);
            let found = contents(&at.join("out/g"));
            assert!(done.output.status.code() != Some(0) || found.len() >= whole.len(), "{case}");
            all_whole(&at.join("out/g"), &whole, &case);
            go_on(at, &out, &whole, &case);
        });
    }
    // Each fault of `--resume`, after a kill in the second run.
    let second = straight.calls.iter().position(|c| c.path.display().to_string().contains("2_size=3kB"));
    let killed = Plan { fault: Some((second.unwrap() + 12, How::Kill)), ..Plan::default() };
    let begin = |at: &Path| {
        let _ = fs::remove_dir_all(at.join("out"));
        let out = place(at);
        assert_eq!(xoff(at, &grid(&out, &[]), killed).output.status.signal(), Some(9));
        out
    };
    let resumed = good(&dir, &grid(&begin(&dir), &["--resume"]));
    record::check(&resumed.calls);
    assert_eq!(contents(&dir.join("out/g")), whole);
    for how in [How::Fail, How::Kill] {
        faults += each(&format!("resume-{how:?}"), resumed.calls.len(), 1, |at, n| {
            let out = begin(at);
            let done =
                xoff(at, &grid(&out, &["--resume"]), Plan { fault: Some((n, how)), ..Plan::default() });
            let case = format!("--resume: {how:?} at {n} of {:?}", done.calls.last());
            ended(&done, how, &case);
            all_whole(&at.join("out/g"), &whole, &case);
            go_on(at, &out, &whole, &case);
        });
    }
    eprintln!("{faults} faults of a grid planned and survived");
}

#[test]
fn other_results_are_synced_and_put_in_place_too() {
    let dir = scratch("others");
    let out = dir.join("out/run").display().to_string();
    good(&dir, &run(&out, &[]));
    let done = good(&dir, &["report", &out]);
    assert_eq!(record::check(&done.calls), [dir.join("out/run/report.html")]);
    let curve = dir.join("out/curve.svg").display().to_string();
    let done = good(&dir, &["size", "--rate", "100Gbps", "--curve", &curve]);
    assert_eq!(record::check(&done.calls), [dir.join("out/curve.svg")]);
}

#[test]
fn refused_threads_change_no_result() {
    let dir = scratch("alone");
    // Enough fits into the delay of a link for two threads.
    let wide = TINY.replace("switches = 1", "switches = 2").replace("100Gbps", "10Tbps");
    fs::write(dir.join("tiny.toml"), wide).unwrap();
    let out = dir.join("out/g").display().to_string();
    let vary = ["--vary", "traffic.0.size=1kB,3kB"];
    for more in [&["--threads", "2"][..], &[&["--jobs", "2"], &vary[..]].concat()] {
        let args = [&["run", "tiny.toml", "--quiet", "--out", &out], more].concat();
        let of = |alone| {
            let _ = fs::remove_dir_all(dir.join("out"));
            let done = xoff(&dir, &args, Plan { alone, ..Plan::default() });
            assert_eq!(done.output.status.code(), Some(0), "{}", err(&done));
            (contents(&dir.join("out")), done.calls.iter().filter(|call| call.kind == "thread").count())
        };
        let (with, none) = of(false);
        let (without, refused) = of(true);
        assert!(with == without && none == 0 && refused > 0, "{more:?}: {refused} threads refused");
    }
}

/// Every `step`-th allocation of a run fails.
fn allocations(test: &str, step: usize) {
    let dir = scratch(test);
    let place = |at: &Path| at.join("out/run").display().to_string();
    let out = place(&dir);
    good(&dir, &run(&out, &["--seed", "9"]));
    copy(&dir.join("out"), &dir.join("older"));
    let older = contents(&dir.join("older/run"));
    let straight = good(&dir, &run(&out, &[]));
    let new = contents(&dir.join("out/run"));
    let count = each(test, straight.allocations, step, |at, n| {
        copy(&dir.join("older"), &at.join("out"));
        let out = place(at);
        let plan = Plan { fault: Some((n, How::Fail)), memory: true, ..Plan::default() };
        let done = xoff(at, &run(&out, &[]), plan);
        let status = done.output.status;
        assert!([Some(0), Some(1)].contains(&status.code()), "allocation {n}: {status}: {}", err(&done));
        let found = contents(Path::new(&out));
        assert!(found == new || found == older, "allocation {n}: {:?}", found.keys());
        assert!(found == new || status.code() != Some(0), "allocation {n}");
        xoff_results::temporary::sweep(&at.join("out"));
        assert_eq!(fs::read_dir(at.join("out")).unwrap().count(), 1, "allocation {n}");
    });
    eprintln!("{count} faults of {} allocations planned and survived", straight.allocations);
}

/// Every `step`-th allocation of a grid fails; resuming it makes that good.
fn allocations_of_a_grid(test: &str, step: usize) {
    let dir = scratch(test);
    let place = |at: &Path| at.join("out/g").display().to_string();
    let straight = good(&dir, &grid(&place(&dir), &[]));
    let whole = contents(&dir.join("out/g"));
    let count = each(test, straight.allocations, step, |at, n| {
        let _ = fs::remove_dir_all(at.join("out"));
        let plan = Plan { fault: Some((n, How::Fail)), memory: true, ..Plan::default() };
        let done = xoff(at, &grid(&place(at), &[]), plan);
        let (status, case) = (done.output.status, format!("allocation {n}"));
        assert!([Some(0), Some(1)].contains(&status.code()), "{case}: {status}: {}", err(&done));
        // A temporary directory that could not be removed does no harm; `go_on` sees it removed.
        let mut found = contents(&at.join("out/g"));
        found.retain(|path, _| visible(path));
        assert!(status.code() != Some(0) || found == whole, "{case}");
        all_whole(&at.join("out/g"), &whole, &case);
        go_on(at, &place(at), &whole, &case);
    });
    eprintln!("{count} faults of {} allocations of a grid planned and survived", straight.allocations);
}

#[test]
fn a_failing_allocation_leaves_no_false_result() {
    allocations("memory", 97);
    allocations_of_a_grid("grid-memory", 397);
}

#[test]
#[ignore = "every allocation; `make soak` runs it"]
fn each_failing_allocation_leaves_no_false_result() {
    allocations("each-memory", 1);
    allocations_of_a_grid("each-grid-memory", 1);
}
