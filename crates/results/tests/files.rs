//! The run directory: its files read back, and its reaction to other files in its place.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::common::{blocked, deadlocked, healthy, plan, scratch};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use xoff_plan::plan::Plan;
use xoff_results::columns::{self, Column, ROWS_PER_GROUP};
use xoff_results::data::DataFile;
use xoff_results::directory::{About, prepare};
use xoff_results::layout::{MANIFEST, SUMMARY};
use xoff_results::summary::summarise;
use xoff_sim::outcome::Outcome;

fn about(wall_seconds: f64) -> About {
    About {
        scenario: serde_json::json!({ "run": { "seed": 7 } }),
        overrides: vec!["run.seed=7".into()],
        version: "0.1.0".into(),
        wall_seconds,
        live: None,
    }
}

fn write(out: &Path, plan: &Plan, outcome: &Outcome, wall_seconds: f64) {
    let writer = prepare(out).unwrap();
    let at = writer.write(&about(wall_seconds), plan, outcome, &summarise("ring", plan, outcome)).unwrap();
    assert_eq!(fs::canonicalize(at.path).unwrap(), fs::canonicalize(out).unwrap());
}

fn names(dir: &Path) -> BTreeSet<String> {
    fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

fn rows(file: &Path) -> Vec<Row> {
    let reader = SerializedFileReader::new(fs::File::open(file).unwrap()).unwrap();
    reader.get_row_iter(None).unwrap().map(Result::unwrap).collect()
}

fn field(row: &Row, name: &str) -> Field {
    row.get_column_iter().find(|(n, _)| *n == name).unwrap_or_else(|| panic!("no {name}")).1.clone()
}

#[test]
fn flows_read_back_as_they_were() {
    let dir = scratch("flows");
    let plan = plan();
    let outcome = deadlocked(&plan);
    write(&dir.join("run"), &plan, &outcome, 1.0);
    let rows = rows(&dir.join("run/flows.parquet"));
    assert_eq!(rows.len(), 60);
    for (i, (row, (flow, result))) in rows.iter().zip(plan.flows.iter().zip(&outcome.flows)).enumerate() {
        assert_eq!(field(row, "id"), Field::Long(i as i64));
        assert_eq!(field(row, "src"), Field::Str(format!("H{}", flow.src)));
        assert_eq!(field(row, "dst"), Field::Str(format!("H{}", flow.dst)));
        assert_eq!(field(row, "priority"), Field::Long(if flow.lane == 0 { 3 } else { 0 }));
        assert_eq!(field(row, "size"), Field::Long(flow.size as i64));
        assert_eq!(field(row, "delivered_bytes"), Field::Long(result.delivered_bytes as i64));
        match result.completed {
            Some(done) => {
                let fct = done - flow.start;
                assert_eq!(field(row, "fct_ps"), Field::Long(fct as i64));
                assert_eq!(field(row, "slowdown"), Field::Double(fct as f64 / flow.ideal as f64));
            }
            None => {
                for name in ["delivered_ps", "completed_ps", "fct_ps", "slowdown"] {
                    assert_eq!(field(row, name), Field::Null, "{name}");
                }
            }
        }
    }
}

#[test]
fn the_other_files_use_names() {
    let dir = scratch("others");
    let plan = plan();
    write(&dir.join("run"), &plan, &deadlocked(&plan), 1.0);
    let read = |file: DataFile| rows(&dir.join("run").join(file.name()));
    let text = |s: &str| Field::Str(s.into());

    let pauses = read(DataFile::Pauses);
    assert_eq!(pauses.len(), 4);
    assert_eq!((field(&pauses[0], "port"), field(&pauses[0], "cause")), (text("S0.0:1"), text("S0.1:1")));
    assert_eq!(field(&pauses[0], "duration_ps"), Field::Long(4_000_000));
    assert_eq!(field(&pauses[1], "until_ps"), Field::Null);

    let series = read(DataFile::Series);
    let first: Vec<Field> = ["quantity", "element", "unit"].iter().map(|c| field(&series[0], c)).collect();
    assert_eq!(first, [text("goodput"), text("websearch"), text("bit/s")]);
    assert_eq!(field(&series[2], "element"), text("network"));

    let ports = read(DataFile::Ports);
    assert_eq!(ports.len(), 12);
    assert_eq!((field(&ports[7], "port"), field(&ports[7], "peer")), (text("S0.1:1"), text("S0.0:1")));
    assert_eq!(field(&ports[7], "pause_frames"), Field::Long(12));

    let accounts = read(DataFile::Accounts);
    assert_eq!(accounts.len(), 24);
    assert_eq!(field(&accounts[14], "headroom_peak"), Field::Long(6_000));
    assert_eq!(
        (field(&accounts[15], "priority"), field(&accounts[15], "headroom")),
        (Field::Long(0), Field::Null)
    );

    let nodes = read(DataFile::Nodes);
    assert_eq!(
        (field(&nodes[4], "node"), field(&nodes[4], "buffer_peak")),
        (text("S0.1"), Field::Long(120_000))
    );
}

#[test]
fn only_the_manifest_knows_the_wall_time() {
    let dir = scratch("same");
    let plan = plan();
    let outcome = deadlocked(&plan);
    write(&dir.join("a"), &plan, &outcome, 1.0);
    write(&dir.join("b"), &plan, &outcome, 2.0);
    assert_eq!(names(&dir), ["a", "b"].map(String::from).into(), "nothing is left beside the runs");
    assert_eq!(names(&dir.join("a")).len(), 12);
    for name in names(&dir.join("a")) {
        let read = |run: &str| fs::read(dir.join(run).join(&name)).unwrap();
        assert_eq!(read("a") == read("b"), name != MANIFEST, "{name}");
    }
    let json = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&fs::read(dir.join("a").join(name)).unwrap()).unwrap()
    };
    let manifest = json(MANIFEST);
    assert_eq!(manifest["complete"], true);
    assert_eq!(manifest["scenario"]["run"]["seed"], 7);
    for file in manifest["files"].as_array().unwrap() {
        let size = fs::metadata(dir.join("a").join(file["name"].as_str().unwrap())).unwrap().len();
        assert_eq!(file["bytes"], size);
    }
    assert_eq!(json(SUMMARY)["deadlock"]["cycle"][0]["port"], "S0.0:1");
}

#[test]
fn an_older_run_is_replaced_and_nothing_else_is() {
    let dir = scratch("replace");
    let plan = plan();
    let out = dir.join("deep/run");
    write(&out, &plan, &healthy(&plan), 1.0);
    write(&out, &plan, &deadlocked(&plan), 1.0);
    let summary: serde_json::Value = serde_json::from_slice(&fs::read(out.join(SUMMARY)).unwrap()).unwrap();
    assert!(!summary["deadlock"].is_null(), "the newer run is in place");
    assert_eq!(names(&dir.join("deep")).len(), 1);

    fs::write(out.join("thesis.md"), "years of work").unwrap();
    assert!(prepare(&out).unwrap_err().message.contains("`thesis.md`"));
    assert!(out.join("thesis.md").exists());

    let foreign = dir.join("foreign");
    fs::create_dir(&foreign).unwrap();
    prepare(&foreign).unwrap(); // empty: nothing to lose
    fs::write(foreign.join(MANIFEST), r#"{"name": "some web application"}"#).unwrap();
    assert!(prepare(&foreign).unwrap_err().message.contains("not a run directory"));
    assert_eq!(names(&foreign).len(), 1);

    // A writer that was prepared before the directory filled up refuses as well.
    let late = dir.join("late");
    let writer = prepare(&late).unwrap();
    fs::create_dir(&late).unwrap();
    fs::write(late.join("other"), "").unwrap();
    let outcome = healthy(&plan);
    let error = writer.write(&about(1.0), &plan, &outcome, &summarise("ring", &plan, &outcome)).unwrap_err();
    assert!(error.message.contains("not a run directory"), "{error}");
}

#[test]
fn unwritable_places_are_refused_before_the_run() {
    let dir = scratch("unwritable");
    let file = dir.join("file");
    fs::write(&file, "x").unwrap();
    assert!(prepare(&file).unwrap_err().message.contains("is a file"));
    let below = prepare(&file.join("run")).unwrap_err();
    assert_eq!(below.path, file);
    assert!(below.message.contains("cannot be created as a directory"), "{below}");
    assert!(prepare(Path::new("/")).is_err());
    assert_eq!(names(&dir).len(), 1, "trying leaves nothing");
}

#[test]
fn a_failure_while_writing_leaves_nothing() {
    let dir = scratch("failure");
    let plan = plan();
    let mut outcome = healthy(&plan);
    let out = dir.join("run");
    write(&out, &plan, &outcome, 1.0);
    let before = fs::read(out.join(SUMMARY)).unwrap();
    let summary = summarise("ring", &plan, &outcome);
    outcome.flows[3].delivered_bytes = u64::MAX; // what no column can hold
    let error = prepare(&out).unwrap().write(&about(1.0), &plan, &outcome, &summary).unwrap_err();
    assert!(error.path.ends_with("flows.parquet") && error.message.contains("63 bits"), "{error}");
    assert_eq!(names(&dir), ["run".to_string()].into());
    assert_eq!(fs::read(out.join(SUMMARY)).unwrap(), before);
}

/// A sink that is full after so many bytes.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if bytes.len() > self.0 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error_wherever_it_strikes() {
    let plan = plan();
    let outcome = deadlocked(&plan);
    for file in DataFile::ALL {
        let whole = file.write(Vec::new(), &plan, &outcome).unwrap().len();
        for room in [0, 4, whole / 2, whole - 1] {
            assert!(file.write(Full(room), &plan, &outcome).is_err(), "{file:?} with {room}");
        }
        file.write(Full(whole), &plan, &outcome).unwrap();
    }
}

#[test]
fn long_tables_are_written_in_row_groups() {
    let n = 2 * ROWS_PER_GROUP + 5;
    let bytes = columns::write(Vec::new(), n, |range| {
        assert!(range.len() <= ROWS_PER_GROUP);
        vec![("n", Column::Int(range.map(|i| i as u64 * 3).collect()))]
    })
    .unwrap();
    let file = scratch("groups").join("n.parquet");
    fs::write(&file, bytes).unwrap();
    let reader = SerializedFileReader::new(fs::File::open(&file).unwrap()).unwrap();
    assert_eq!(reader.metadata().num_row_groups(), 3);
    let all = rows(&file);
    assert_eq!(all.len(), n);
    assert!(all.iter().enumerate().all(|(i, r)| field(r, "n") == Field::Long(i as i64 * 3)));
}

/// The results of the blocking oracle, with every table and sum that shows them.
#[test]
fn blocking_is_in_every_file_or_in_none() {
    let dir = scratch("blocking");
    let plan = plan();
    let off = deadlocked(&plan);
    write(&dir.join("off"), &plan, &off, 1.0);
    write(&dir.join("on"), &plan, &blocked(&plan), 1.0);
    let read = |run: &str, file: DataFile| rows(&dir.join(run).join(file.name()));
    let summary = |run: &str| -> serde_json::Value {
        serde_json::from_slice(&fs::read(dir.join(run).join(SUMMARY)).unwrap()).unwrap()
    };
    let columns = ["own_ps", "victim_ps", "source_own_ps", "source_victim_ps"];

    assert!(summary("off")["blocking"].is_null());
    assert_eq!(summary("off")["verdicts"].as_array().unwrap().len(), 4);
    assert!(read("off", DataFile::Blocking).is_empty());
    for row in read("off", DataFile::Flows) {
        assert!(columns.iter().all(|c| field(&row, c) == Field::Null));
    }
    for row in read("off", DataFile::Pauses) {
        assert_eq!((field(&row, "root"), field(&row, "named_root")), (Field::Null, Field::Null));
    }

    let found = &summary("on")["blocking"];
    for file in [DataFile::Flows, DataFile::Blocking] {
        for column in columns {
            let int = |row: &Row| match field(row, column) {
                Field::Long(n) => n,
                other => panic!("{column} is {other}"),
            };
            let sum: i64 = read("on", file).iter().map(int).sum();
            assert!(sum > 0);
            assert_eq!(found[column], sum, "{column} in {file:?}");
        }
    }
    let text = |s: &str| Field::Str(s.into());
    let pauses = read("on", DataFile::Pauses);
    assert_eq!(
        (field(&pauses[0], "root"), field(&pauses[0], "named_root")),
        (text("S0.1:0"), text("S0.2:0"))
    );
    assert_eq!(field(&pauses[1], "root"), Field::Null);
    let places = read("on", DataFile::Blocking);
    assert_eq!(places.len(), 3);
    assert_eq!((field(&places[1], "port"), field(&places[1], "root")), (text("S0.0:1"), text("S0.1:0")));
    assert_eq!(field(&places[1], "pauses"), Field::Long(3));
}
