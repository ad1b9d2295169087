//! Grids in a store from outside: many workers, killed and stopped ones, damage, and the bytes of `xoff run`.

use crate::common;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Value, json};

const SMALL: &str = r#"
[topology]
kind = "line"
switches = 1
hosts_per_switch = 5
link = { rate = "100Gbps", delay = "1us" }

[flow_control]
scheme = "pfc"

[[traffic]]
kind = "poisson"
sizes = "websearch"
load = 0.5

[run]
duration = "500us"
drain = "1ms"

[[variant]]
name = "pfc"
set = { flow_control.scheme = "pfc" }

[[variant]]
name = "irn"
set = { flow_control.scheme = "none", transport.kind = "irn" }
"#;

const GRID: &str = "--variant all --vary traffic.0.load=0.3,0.6 --seeds 1..10";

fn scratch(test: &str) -> PathBuf {
    let path = common::scratch(test);
    fs::write(path.join("small.toml"), SMALL).unwrap();
    path
}

fn command(dir: &Path, line: &str) -> Command {
    common::command(dir, &line.split(' ').collect::<Vec<_>>())
}

fn xoff(dir: &Path, line: &str) -> Output {
    command(dir, line).output().unwrap()
}

fn good(dir: &Path, line: &str) -> String {
    let done = xoff(dir, line);
    assert_eq!(done.status.code(), Some(0), "{line}: {}", err(&done));
    String::from_utf8(done.stdout).unwrap()
}

fn err(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    let words = text.split_whitespace().filter(|w| !["│", "×", "╰─▶", "├─▶", "|"].contains(w));
    words.collect::<Vec<_>>().join(" ")
}

fn status(dir: &Path) -> Value {
    serde_json::from_slice(&xoff(dir, "grid status st --json").stdout).unwrap()
}

fn start(dir: &Path, line: &str) -> Child {
    command(dir, line).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn wait(what: &str, there: impl Fn() -> bool) {
    let begun = Instant::now();
    while !there() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} does not come");
        thread::sleep(Duration::from_millis(2));
    }
}

fn signal(child: &Child, name: &str) {
    Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
}

/// The rows of all flows, by the number of the run: every column but those that tell the runs apart.
fn flows(store: &Path) -> BTreeMap<u64, Vec<Vec<(String, Field)>>> {
    let mut all: BTreeMap<u64, Vec<Vec<(String, Field)>>> = BTreeMap::new();
    let mut folders = vec![store.join("flows")];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            for row in rows(&path) {
                let Field::Long(run) = row.iter().find(|(name, _)| name == "run").unwrap().1 else {
                    panic!("a run has a number")
                };
                let row =
                    row.into_iter().filter(|(name, _)| !["run", "seed", "load"].contains(&name.as_str()));
                all.entry(run as u64).or_default().push(row.collect());
            }
        }
    }
    all
}

fn rows(path: &Path) -> Vec<Vec<(String, Field)>> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    reader.get_row_iter(None).unwrap().map(|row| row.unwrap().into_columns()).collect()
}

/// The numbers and flows of the store are those of `xoff run` with the same grid in `dir/g`.
fn equals_a_grid(dir: &Path, grid: &str) {
    good(dir, &format!("run small.toml {grid} --quiet --out g"));
    good(dir, "grid table st");
    let read = |path: &str| fs::read(dir.join(path)).unwrap();
    assert!(read("st/grid.parquet") == read("g/grid.parquet"), "the numbers differ");
    let runs: Value = serde_json::from_slice(&read("g/grid.json")).unwrap();
    let of_store = flows(&dir.join("st"));
    for (i, run) in runs["runs"].as_array().unwrap().iter().enumerate() {
        let of_run = rows(&dir.join("g").join(run["path"].as_str().unwrap()).join("flows.parquet"));
        assert!(of_store[&(i as u64 + 1)] == of_run, "run {i}");
    }
    assert_eq!(of_store.len(), runs["runs"].as_array().unwrap().len());
}

/// Workers are killed in the middle of a chunk, three times; two others make the rest together.
#[test]
fn killed_workers_change_no_byte() {
    let dir = scratch("killed");
    let said = good(&dir, &format!("grid plan small.toml {GRID} --chunk 4 --store st"));
    assert!(said.starts_with("40 runs in 12 chunks\n"), "{said}");
    for killed in 1..=3 {
        let mut worker = start(&dir, "work st --jobs 1 --lease 300ms");
        wait("a lease", || fs::read_dir(dir.join("st/leases")).is_ok_and(|leases| leases.count() >= killed));
        signal(&worker, "-KILL");
        worker.wait().unwrap();
    }
    let workers =
        ["work st --jobs 1 --lease 300ms", "work st --jobs 2 --lease 300ms"].map(|line| start(&dir, line));
    for worker in workers {
        let done = worker.wait_with_output().unwrap();
        assert_eq!(done.status.code(), Some(0), "{}", err(&done));
        assert!(err(&done).ends_with("every chunk is done"), "{}", err(&done));
    }
    let status = status(&dir);
    assert_eq!((&status["runs_done"], &status["chunks_done"]), (&json!(40), &json!(12)));
    assert_eq!(
        (&status["running"], &status["failed"], &status["conflicts"]),
        (&json!([]), &json!([]), &json!([]))
    );
    let text = good(&dir, "grid status st");
    assert!(text.starts_with("small: complete\n\ndone         40 of 40 runs (100.0%)\n"), "{text}");
    // Another worker finds nothing to do.
    assert!(err(&xoff(&dir, "work st")).contains("every chunk is done"));
    equals_a_grid(&dir, GRID);
    let folder = dir.join("st/flows/variant=irn/load=0.6");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 3);
    assert_eq!(rows(&dir.join("st/points.parquet")).len(), 40);
}

/// Workers have the traces of a job from the store, and none beside it.
#[test]
fn a_store_has_files_that_are_not_text() {
    let dir = scratch("traces");
    good(&dir, "examples trace/overlap --out .");
    assert!(String::from_utf8(fs::read(dir.join("overlap.0.et")).unwrap()).is_err());
    let grid = "--vary traffic.0.compute_scale=0,1 --vary topology.fabric_link.rate=100Gbps,400Gbps";
    good(&dir, &format!("run overlap.toml {grid} --quiet --out g"));
    good(&dir, &format!("grid plan overlap.toml {grid} --store st"));
    for rank in 0..8 {
        fs::remove_file(dir.join(format!("overlap.{rank}.et"))).unwrap();
    }
    good(&dir, "work st");
    good(&dir, "grid table st");
    assert_eq!(rows(&dir.join("st/grid.parquet")).len(), 4);
    assert!(fs::read(dir.join("st/grid.parquet")).unwrap() == fs::read(dir.join("g/grid.parquet")).unwrap());
}

/// A worker is stopped longer than its lease lasts. Another one makes its chunk. Both have the same bytes.
#[test]
fn a_worker_that_loses_its_lease_is_compared() {
    let dir = scratch("stopped");
    good(&dir, "grid plan small.toml --seeds 1..4 --set run.duration=20ms --chunk 4 --store st");
    let slow = start(&dir, "work st --jobs 1 --lease 300ms");
    // Prolonged: it is in the middle of the chunk.
    wait("a lease", || dir.join("st/leases/0000000/000002.json").exists());
    signal(&slow, "-STOP");
    let fast = xoff(&dir, "work st --jobs 2 --lease 300ms");
    assert_eq!(fast.status.code(), Some(0), "{}", err(&fast));
    assert!(err(&fast).contains("chunk 0000000: the lease of"), "{}", err(&fast));
    assert_eq!(status(&dir)["lost_leases"], 1);
    signal(&slow, "-CONT");
    let slow = slow.wait_with_output().unwrap();
    assert_eq!(slow.status.code(), Some(0), "{}", err(&slow));
    assert!(err(&slow).contains("another worker had made it with the same bytes"), "{}", err(&slow));
    equals_a_grid(&dir, "--seeds 1..4 --set run.duration=20ms");
}

#[test]
fn other_results_name_both_workers() {
    let dir = scratch("conflict");
    good(&dir, "grid plan small.toml --seeds 1..2 --chunk 2 --store st");
    // Somebody with another program had the lease and wrote a part.
    fs::create_dir_all(dir.join("st/leases/0000000")).unwrap();
    fs::write(dir.join("st/leases/0000000/000001.json"), r#"{"worker":"far:7:1","until_ms":5}"#).unwrap();
    fs::create_dir_all(dir.join("st/runs")).unwrap();
    fs::write(dir.join("st/runs/part-0000000.parquet"), "other").unwrap();
    let done = xoff(&dir, "work st");
    assert_eq!(done.status.code(), Some(1));
    let said = err(&done);
    assert!(said.contains("st/runs/part-0000000.parquet differs:"), "{said}");
    assert!(said.contains("and far:7:1 made the chunk 0000000 of one plan, and got other bytes"), "{said}");
    assert!(!dir.join("st/done/0000000.json").exists());
    let status = xoff(&dir, "grid status st");
    assert_eq!(status.status.code(), Some(1));
    let text = String::from_utf8(status.stdout).unwrap();
    assert!(text.contains("CONFLICT") && text.contains("far:7:1"), "{text}");
}

/// Planning looks at each value with the first values of the other keys. A combination that is wrong is a failed run,
/// and does not stop the others.
#[test]
fn a_combination_that_is_invalid_is_a_failed_run() {
    let dir = scratch("failed");
    good(
        &dir,
        "grid plan small.toml --vary traffic.0.start=0us,50us --vary run.duration=100us,20us --store st",
    );
    let done = xoff(&dir, "work st");
    assert_eq!(done.status.code(), Some(1), "{}", err(&done));
    assert!(err(&done).ends_with("1 of 4 runs failed: xoff grid status st says why"), "{}", err(&done));
    let status = status(&dir);
    assert_eq!((&status["runs_done"], &status["chunks_done"]), (&json!(4), &json!(4)));
    assert_eq!(status["failed"][0]["run"], "4_start=50us_duration=20us");
    let why = "the traffic starts at 50us, after it ends at 20us";
    assert!(status["failed"][0]["error"].as_str().unwrap().contains(why), "{status}");
    let text = String::from_utf8(xoff(&dir, "grid status st").stdout).unwrap();
    assert!(text.contains("failed       1 run\n") && text.contains(why), "{text}");
    let table = xoff(&dir, "grid table st");
    assert_eq!(table.status.code(), Some(1));
    assert!(String::from_utf8(table.stdout).unwrap().contains("error: 4_start=50us_duration=20us failed"));
    assert_eq!(rows(&dir.join("st/grid.parquet")).len(), 3);
}

#[test]
fn wrong_stores_have_one_clear_message() {
    let dir = scratch("wrong");
    let plan = format!("grid plan small.toml {GRID} --store st");
    good(&dir, &plan);
    assert!(good(&dir, &plan).starts_with("the store has the same plan already: 40 runs"));
    let fails = |line: &str, why: &str| {
        let done = xoff(&dir, line);
        assert!(!done.status.success() && err(&done).contains(why), "{line}: {}", err(&done));
    };
    fails(
        "grid plan small.toml --seeds 1..3 --store st",
        "plan.json is of another grid help: choose another store",
    );
    fails("work nowhere", "is no store: it has no plan.json help: type the store of `xoff grid plan`");
    fails("grid status small.toml", "cannot be read");
    fails("work st --lease 1ms", "the minimum is 100 ms");
    fails("grid plan small.toml --store a --variant tcp", "the scenario has no variant `tcp`");
    fails("grid plan small.toml --store a --vary flow_control.xof=1kB,2kB", "unknown key `xof`");
    assert!(!dir.join("a").exists());

    // Another version.
    let text = fs::read_to_string(dir.join("st/plan.json")).unwrap();
    let mut other = xoff_results::checksum::unsealed(text.as_bytes()).unwrap();
    other.as_object_mut().unwrap().remove("xxh128");
    other["xoff_version"] = "9.9.9".into();
    fs::write(dir.join("st/plan.json"), xoff_results::checksum::sealed(&other).unwrap()).unwrap();
    fails("work st", "st was planned by xoff 9.9.9, and this is xoff");
    fs::write(dir.join("st/plan.json"), text.replace("0.3", "0.4")).unwrap();
    fails("work st", "plan.json is damaged: it does not match its checksum");
    fs::write(dir.join("st/plan.json"), text).unwrap();

    // A truncated part is not read; without it and its record the chunk is made again.
    good(&dir, "work st --quiet --lease 300ms");
    let part = dir.join("st/runs/part-0000003.parquet");
    let whole = fs::read(&part).unwrap();
    fs::write(&part, &whole[..100]).unwrap();
    fails("grid table st", "part-0000003.parquet is damaged: it has 100 of");
    fs::remove_file(&part).unwrap();
    fails("grid table st", "part-0000003.parquet is missing help: remove that file and done/0000003.json");
    fs::remove_file(dir.join("st/done/0000003.json")).unwrap();
    good(&dir, "work st --quiet");
    assert!(fs::read(&part).unwrap() == whole);
    good(&dir, "grid table st");
}

/// The lists of failed runs and of warnings have checksums as the other parts have.
#[test]
fn a_damaged_list_of_failed_runs_or_warnings_is_one_error() {
    let dir = scratch("lists");
    let vary = "--vary traffic.0.start=0us,50us --vary run.duration=100us,20us";
    good(&dir, &format!("grid plan small.toml {vary} --set run.drain=1ps --chunk 2 --store st"));
    assert_eq!(xoff(&dir, "work st --quiet --lease 300ms").status.code(), Some(1));
    let damaged = |line: &str, object: &str, why: &str| {
        let done = xoff(&dir, line);
        let why = format!("{object} {why} help: remove that file and done/0000001.json, and start a worker");
        assert_eq!(done.status.code(), Some(1));
        assert!(done.stdout.is_empty() && err(&done).contains(&why), "{line}: {}", err(&done));
    };
    for (object, readers) in [
        ("failed/0000001.json", &["grid status st", "grid table st", "grid report st"][..]),
        ("warnings/0000001.json", &["grid table st", "grid report st"]),
    ] {
        let (path, whole) = (dir.join("st").join(object), fs::read(dir.join("st").join(object)).unwrap());
        let size = whole.len();
        for (content, found) in [(whole[..9].to_vec(), 9), (whole.to_ascii_uppercase(), size), (vec![], 0)] {
            fs::write(&path, content).unwrap();
            let why = format!("is damaged: it has {found} of {size} bytes, or others");
            readers.iter().for_each(|line| damaged(line, object, &why));
        }
        fs::remove_file(&path).unwrap();
        damaged("grid table st", object, "is missing");
        // As the help says.
        fs::remove_file(dir.join("st/done/0000001.json")).unwrap();
        assert_eq!(status(&dir)["failed"], json!([]), "the chunk is not done");
        assert_eq!(xoff(&dir, "work st --quiet --lease 300ms").status.code(), Some(1));
        assert!(fs::read(&path).unwrap() == whole);
    }
    assert_eq!(status(&dir)["failed"].as_array().unwrap().len(), 1);
    assert_eq!(xoff(&dir, "grid table st").status.code(), Some(1), "one run failed");
}

/// Ctrl-C leaves no part of a chunk behind; the store can be continued.
#[test]
fn ctrl_c_ends_a_worker() {
    let dir = scratch("interrupted");
    good(&dir, "grid plan small.toml --seeds 1..2 --set run.duration=5s --chunk 1 --store st");
    let worker = start(&dir, "work st --jobs 1");
    wait("a lease", || dir.join("st/leases").exists());
    signal(&worker, "-INT");
    let done = worker.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(130), "{}", err(&done));
    assert!(!dir.join("st/done").exists() && !dir.join("st/runs").exists());
}

/// A full disk, here a limit on the size of files: the error names the file, and nothing looks complete.
#[test]
fn a_full_disk_is_one_error() {
    let dir = scratch("full");
    good(&dir, "grid plan small.toml --seeds 1..2 --chunk 2 --store st");
    let program = env!("CARGO_BIN_EXE_xoff");
    let line = format!("ulimit -f 4; {program} work st");
    let done =
        Command::new("sh").current_dir(&dir).args(["-c", &line]).env("NO_COLOR", "1").output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", err(&done));
    assert!(err(&done).contains("cannot be written: File too large"), "{}", err(&done));
    assert!(!dir.join("st/done/0000000.json").exists());
    assert_eq!(status(&dir)["runs_done"], 0);
    good(&dir, "work st --quiet");
    equals_a_grid(&dir, "--seeds 1..2");
}

/// A store that vanishes during the work.
#[test]
fn a_store_that_vanishes_is_one_error() {
    let dir = scratch("vanished");
    good(&dir, "grid plan small.toml --seeds 1..2 --set run.duration=20ms --chunk 1 --store st");
    let worker = start(&dir, "work st --jobs 1");
    wait("a lease", || dir.join("st/leases").exists());
    fs::rename(dir.join("st"), dir.join("gone")).unwrap();
    fs::write(dir.join("st"), "a file").unwrap();
    let done = worker.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", err(&done));
    assert!(err(&done).contains("help: check"), "{}", err(&done));
}

/// Half the 95% confidence interval of the mean of values, over the mean. The t are those of the tables, by number of
/// values.
fn width(values: &[f64]) -> f64 {
    let t = match values.len() {
        5 => 2.776445,
        10 => 2.262157,
        15 => 2.144787,
        20 => 2.093024,
        25 => 2.063899,
        30 => 2.045230,
        35 => 2.042272,
        n => panic!("{n} values"),
    };
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    t * (variance / n).sqrt() / mean
}

/// A rule ends the seeds of a point where its interval is narrow. Which seeds are made does not depend on the workers.
#[test]
fn a_rule_makes_the_seeds_that_it_needs() {
    let dir = scratch("until");
    let grid = "--vary traffic.0.load=0.2,0.8 --seeds 1..30";
    good(&dir, &format!("run small.toml {grid} --quiet --out g"));
    let mut means: [Vec<f64>; 2] = Default::default();
    for row in rows(&dir.join("g/grid.parquet")) {
        let of = |name: &str| row.iter().find(|(n, _)| n == name).unwrap().1.clone();
        let (Field::Long(point), Field::Double(mean)) = (of("point"), of("slowdown_mean")) else { panic!() };
        means[point as usize - 1].push(mean);
    }
    // Between the widths of the two points after 10 seeds, so that one of them needs more.
    let limit = (width(&means[0][..10]) + width(&means[1][..10])) / 2.0;
    let needed =
        means.clone().map(|all| (1..=6).map(|n| 5 * n).find(|&n| width(&all[..n]) < limit).unwrap_or(30));
    assert!(needed[0] != needed[1], "{needed:?}");
    let rule = format!("ci95(slowdown.mean)<{}%", 100.0 * limit);
    for (store, jobs) in [("st", 1), ("two", 2)] {
        good(&dir, &format!("grid plan small.toml {grid} --chunk 5 --store {store}"));
        let done = xoff(&dir, &format!("work {store} --jobs {jobs} --until {rule}"));
        assert_eq!(done.status.code(), Some(0), "{}", err(&done));
        assert!(err(&done).contains("ci95(slowdown_mean) <"), "{}", err(&done));
        let made = |point: usize| {
            let chunks =
                (0..6).filter(|c| dir.join(format!("{store}/done/{:07}.json", point * 6 + c)).exists());
            5 * chunks.count()
        };
        assert_eq!([made(0), made(1)], needed, "{store}");
    }
    let state = status(&dir);
    assert_eq!(state["runs_done"], needed[0] + needed[1]);
    assert_eq!(state["runs"], state["runs_done"]);
    let text = good(&dir, "grid status st");
    assert!(
        text.starts_with("small: complete") && text.contains("until        ci95(slowdown_mean) <"),
        "{text}"
    );
    let table = good(&dir, "grid table st");
    let head =
        format!("small: {} of at most 60 runs of 2 points, at most 30 seeds each", needed[0] + needed[1]);
    assert!(table.starts_with(&head), "{table}");
    assert!(!table.contains("INCOMPLETE") && !table.contains("not run"), "{table}");

    // A worker without the rule follows it; another rule is refused.
    assert!(err(&xoff(&dir, "work st")).contains("ci95(slowdown_mean) <"));
    let other = xoff(&dir, "work st --until ci95(goodput_bps)<1%");
    assert!(err(&other).contains("has the rule `ci95(slowdown_mean) <"), "{}", err(&other));
    let wrong = xoff(&dir, "work st --until p99<1%");
    assert!(err(&wrong).contains("`p99<1%` is no rule"), "{}", err(&wrong));
    good(&dir, "grid plan small.toml --seeds 1..3 --chunk 3 --store few");
    let few = xoff(&dir, &format!("work few --until {rule}"));
    assert!(err(&few).contains("has chunks with all seeds of a point"), "{}", err(&few));
}

/// Whole runs are kept where the plan says so, and a page shows the points.
#[test]
fn runs_are_kept_and_shown() {
    let dir = scratch("kept");
    good(&dir, "grid plan small.toml --vary traffic.0.load=0.3,0.6 --keep --store st");
    good(&dir, "work st --quiet");
    good(&dir, "run small.toml --vary traffic.0.load=0.3,0.6 --quiet --out g");
    for run in ["1_load=0.3", "2_load=0.6"] {
        for file in ["summary.json", "flows.parquet", "pauses.parquet"] {
            let read = |place: &str| fs::read(dir.join(place).join(run).join(file)).unwrap();
            assert!(read("st/kept") == read("g/runs"), "{run}/{file}");
        }
        good(&dir, &format!("report st/kept/{run} --out page.html"));
    }
    good(&dir, "grid report st");
    good(&dir, "grid report st --out here.html");
    let page = fs::read_to_string(dir.join("st/report.html")).unwrap();
    assert!(page.contains("kept") && page.contains("2 runs of 2 points"), "{}", &page[..2000]);
    assert_eq!(page, fs::read_to_string(dir.join("here.html")).unwrap());
}

/// The job for Slurm. `tests/slurm.py` runs it.
#[test]
fn a_job_for_slurm_is_printed() {
    let dir = scratch("slurm");
    good(&dir, "grid plan small.toml --seeds 1..4 --store st");
    let text = good(&dir, "grid slurm st --workers 7 --cpus 2 -- --partition=long");
    let store = dir.join("st").canonicalize().unwrap();
    let wanted = format!(
        "#!/bin/sh\n#SBATCH --job-name=xoff-small\n#SBATCH --array=1-7\n#SBATCH --ntasks=1\n\
         #SBATCH --cpus-per-task=2\n#SBATCH --requeue\n#SBATCH --partition=long\n\
         exec xoff work {} --jobs \"$SLURM_CPUS_PER_TASK\"\n",
        store.display()
    );
    assert_eq!(text, wanted);
    let fails = |line: &str, why: &str| {
        let done = command(&dir, line).env("PATH", "").output().unwrap();
        assert!(done.status.code() == Some(1) && err(&done).contains(why), "{line}: {}", err(&done));
    };
    fails("grid slurm st --submit", "sbatch cannot be started");
    fails("grid slurm st -- long", "`long` is no option of sbatch");
    fails("grid slurm nowhere", "is no store");
}
