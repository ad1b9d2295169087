//! Grids: the comparison, its form, and the size of their directory.

use std::fs;

use crate::common::{deadlocked, healthy, plan, scratch};
use serde_json::{Value, json};
use xoff_results::directory;
use xoff_results::grid::compare::{Entry, Status, compare};
use xoff_results::grid::directory::{About, Found, MANIFEST, RunAbout, TABLE, create, resume};
use xoff_results::grid::interval::Interval;
use xoff_results::grid::metrics::{METRICS, Number, Row, index};
use xoff_results::grid::{Axis, Grid, fingerprint, table};
use xoff_results::summary::summarise;
use xoff_results::table::WIDTH;

fn axis(key: &str, values: &[&str]) -> Axis {
    Axis { key: key.into(), values: values.iter().map(|v| v.to_string()).collect(), named: false }
}

fn summary(locked: bool) -> Value {
    let plan = plan();
    let outcome = if locked { deadlocked(&plan) } else { healthy(&plan) };
    serde_json::to_value(summarise("ring", &plan, &outcome)).unwrap()
}

/// A run with these values of some metrics.
fn row(values: &[(&str, Number)]) -> Row {
    let mut row = Row::read(&summary(false)).unwrap();
    for (name, value) in values {
        row.values[index(name)] = Some(*value);
    }
    row
}

fn about(grid: &Grid) -> About {
    let run = |i: usize| RunAbout {
        seed: grid.seed_of(i).unwrap_or(1),
        fingerprint: fingerprint::of_run(&json!({ "run": i }), &[]),
        files: Vec::new(),
    };
    About {
        name: "ring".into(),
        version: "0.1.0".into(),
        overrides: Vec::new(),
        scenario: json!({ "run": 0 }),
        runs: (0..grid.runs().unwrap()).map(run).collect(),
    }
}

#[test]
fn metrics_are_what_the_summary_says() {
    for locked in [false, true] {
        let plan = plan();
        let outcome = if locked { deadlocked(&plan) } else { healthy(&plan) };
        let s = summarise("ring", &plan, &outcome);
        // As a file has it.
        let text = serde_json::to_string_pretty(&s).unwrap();
        let row = Row::read(&serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(row, Row::read(&serde_json::to_value(&s).unwrap()).unwrap(), "bit for bit");
        let get = |name: &str| row.values[index(name)];
        let all = s.sizes.last().unwrap();
        assert_eq!(get("flows"), Some(Number::Int(all.flows)));
        assert_eq!(get("finished"), Some(Number::Int(if locked { 30 } else { 60 })));
        assert_eq!(get("slowdown_p99"), Some(Number::Float(all.slowdown.unwrap().p99)));
        assert_eq!(get("goodput_bps"), Some(Number::Float(all.goodput_bps)));
        assert_eq!(get("pauses"), Some(Number::Int(if locked { 4 } else { 0 })));
        assert_eq!(get("deadlocks"), Some(Number::Int(u64::from(locked))));
        assert_eq!(get("deadlock_ps"), locked.then_some(Number::Int(301_234_567)));
        assert_eq!(get("buffer_peak"), Some(Number::Int(120_000)));
        assert_eq!(row.deadlocked(), locked);
    }
    // A run without any finished flow has no slowdown; a file of another shape is no run.
    let mut bare = summary(false);
    bare["sizes"][4]["slowdown"] = Value::Null;
    assert_eq!(Row::read(&bare).unwrap().values[index("slowdown_mean")], None);
    bare["pauses"] = Value::Null;
    assert!(Row::read(&bare).unwrap_err().contains("pauses"));
    assert!(Row::read(&json!({})).is_err());
}

#[test]
fn drops_of_every_kind_add_up_and_lossless_ones_mark_the_run() {
    let mut s = summary(false);
    for (kind, n) in
        [("lossless_packets", 2), ("lossy_packets", 30), ("expired_packets", 400), ("fault_packets", 5000)]
    {
        s["drops"][kind] = n.into();
    }
    let row = Row::read(&s).unwrap();
    assert_eq!(row.values[index("drops")], Some(Number::Int(5432)));
    assert_eq!(Entry::done(row).status, Status::Lost);
    s["drops"]["lossless_packets"] = 0.into();
    assert_eq!(Entry::done(Row::read(&s).unwrap()).status, Status::Done);
}

#[test]
fn a_point_is_the_mean_over_its_seeds() {
    let grid = Grid { axes: vec![axis("k", &["a", "b"])], seeds: vec![1, 2, 3] };
    let mut entries = vec![Entry::default(); 6];
    for (i, pauses) in [(0, 10), (1, 40), (2, 70), (4, 5)] {
        entries[i] = Entry::done(row(&[("pauses", Number::Int(pauses))]));
    }
    entries[3] = Entry::failed("why".into());
    let c = compare("ring", &grid, &entries, Interval::Range, None);
    let metric = |point: usize, name: &str| c.points[point].metrics[name].clone();
    assert_eq!(metric(0, "pauses"), json!({ "n": 3, "mean": 40.0, "low": 10.0, "high": 70.0 }));
    assert_eq!(metric(1, "pauses"), json!({ "n": 1, "mean": 5.0, "low": 5.0, "high": 5.0 }));
    assert_eq!(metric(0, "deadlock_ps"), Value::Null);
    assert_eq!((c.complete, c.points[1].runs), (false, 1));
    assert_eq!(c.pending, ["6_k=b_seed=3"]);
    assert_eq!((c.failed[0].run.as_str(), c.failed[0].error.as_str()), ("4_k=b_seed=1", "why"));

    let text = table::render(&grid, &c);
    assert!(text.contains("INCOMPLETE, 4 of 6 runs"), "{text}");
    assert!(text.contains("10..70"), "{text}");
    assert!(text.contains("error: 4_k=b_seed=1 failed: why"), "{text}");
    assert!(text.contains("not run: 6_k=b_seed=3; continue with --resume"), "{text}");
    // Student's t for two degrees of freedom, 4.3027, times 30 / sqrt(3).
    let c = compare("ring", &grid, &entries, Interval::Ci95, None);
    assert!(table::render(&grid, &c).contains("±74.5"), "{}", table::render(&grid, &c));
}

/// Two seeds have a wide confidence interval: it ends where no value can be.
/// The number of failed flows is that of the summary; the table has a column for it where a run has some.
#[test]
fn failed_flows_have_a_column_where_there_are_any() {
    let mut s = summary(false);
    assert_eq!(Row::read(&s).unwrap().values[index("failed")], Some(Number::Int(0)));
    s["sizes"][4]["failed"] = 7.into();
    assert_eq!(Row::read(&s).unwrap().values[index("failed")], Some(Number::Int(7)));
    let grid = Grid { axes: vec![axis("k", &["a", "b"])], seeds: vec![1, 2] };
    for failed in [[0, 0, 0, 0], [0, 0, 3, 5]] {
        let entries = failed.map(|n| Entry::done(row(&[("failed", Number::Int(n))])));
        let c = compare("ring", &grid, &entries, Interval::Range, None);
        let mean = |point: usize| c.points[point].metrics["failed"]["mean"].as_f64();
        assert_eq!([mean(0), mean(1)], [Some(0.0), Some((failed[2] + failed[3]) as f64 / 2.0)]);
        let text = table::render(&grid, &c);
        let heads: Vec<Vec<&str>> = text
            .lines()
            .filter(|l| l.contains(" finished"))
            .map(|l| l.split_whitespace().collect())
            .collect();
        let after = heads[0].iter().position(|head| *head == "finished").map(|at| heads[0][at + 1]);
        assert_eq!(after, Some(if failed[3] > 0 { "failed" } else { "mean" }), "{text}");
        assert_eq!(text.contains("3..5"), failed[3] > 0, "{text}");
    }
}

#[test]
fn an_interval_ends_at_what_is_possible() {
    let grid = Grid { axes: vec![axis("k", &["a"])], seeds: vec![1, 2] };
    let of = |p99: f64, pauses: u64| {
        Entry::done(row(&[("slowdown_p99", Number::Float(p99)), ("pauses", Number::Int(pauses))]))
    };
    let c = compare("ring", &grid, &[of(2.0, 1), of(9.0, 50)], Interval::Ci95, None);
    let low = |name: &str| c.points[0].metrics[name]["low"].clone();
    assert_eq!((low("slowdown_p99"), low("pauses")), (json!(1.0), json!(0.0)));
}

/// Each seed is divided by the same seed of the baseline. Where that is 0 there is no ratio.
#[test]
fn points_are_compared_with_a_baseline() {
    let grid = Grid { axes: vec![axis("k", &["a", "b"]), axis("l", &["x", "y"])], seeds: vec![1, 2] };
    let of = |goodput: f64, pauses: u64| {
        Entry::done(row(&[("goodput_bps", Number::Float(goodput)), ("pauses", Number::Int(pauses))]))
    };
    let mut entries: Vec<Entry> = [1.0, 2.0, 4.0, 8.0, 3.0, 2.0, 2.0, 1.0].map(|x| of(x, 0)).to_vec();
    entries[7] = of(1.0, 5);
    let baseline = grid.baseline(Some("a")).unwrap();
    assert_eq!(baseline, Some((0, 0)));
    let c = compare("ring", &grid, &entries, Interval::Range, baseline);
    let ratios = |point: usize, name: &str| c.points[point].ratios.as_ref().map(|all| all[name].clone());
    assert_eq!((ratios(0, "goodput_bps"), ratios(1, "goodput_bps")), (None, None));
    assert_eq!(ratios(2, "goodput_bps").unwrap(), json!({ "n": 2, "mean": 2.0, "low": 1.0, "high": 3.0 }));
    assert_eq!(
        ratios(3, "goodput_bps").unwrap(),
        json!({ "n": 2, "mean": 0.3125, "low": 0.125, "high": 0.5 })
    );
    assert_eq!(ratios(3, "pauses").unwrap(), Value::Null);
    let text = table::render(&grid, &c);
    assert!(text.contains("+100%") && text.contains("0%..+200%") && text.contains("-69%"), "{text}");

    // The second axis, a value that none has, one that two have, and no baseline.
    assert_eq!(grid.baseline(Some("\"y\"")).unwrap(), Some((1, 1)));
    assert_eq!(grid.base_of(0, (1, 1)), 1);
    assert!(grid.baseline(Some("z")).unwrap_err().contains("the values are a, b, x, y"));
    let twice = Grid { axes: vec![axis("k", &["1", "2"]), axis("l", &["1", "3"])], seeds: vec![] };
    assert!(twice.baseline(Some("1")).unwrap_err().contains("several keys"));
    assert_eq!(grid.baseline(None).unwrap(), None);
    let variants = Grid { axes: vec![Axis::named("variant", vec!["p".into(), "q".into()])], seeds: vec![] };
    assert_eq!(variants.baseline(None).unwrap(), Some((0, 0)));
}

#[test]
fn the_table_stays_within_its_width() {
    let long = "v".repeat(200);
    let axes = vec![axis("traffic.0.load", &["0.123456789"]), axis("traffic.1.load", &[&long, "w"])];
    let grid = Grid { axes, seeds: (1..=9).collect() };
    let entry = |i: u64| {
        let rate = Number::Float(1.234e11 * (i + 1) as f64);
        Entry::done(row(&[("goodput_bps", rate), ("pauses", Number::Int(i * 123_456))]))
    };
    let entries: Vec<Entry> = (0..18).map(entry).collect();
    for interval in [Interval::Range, Interval::Ci95] {
        let text = table::render(&grid, &compare("ring", &grid, &entries, interval, None));
        assert!(text.lines().all(|l| l.chars().count() <= WIDTH), "{text}");
        for head in ["0.load", "1.load", "runs", "flows", "p99", "goodput", "deadlock", "buffer"] {
            assert!(text.contains(head), "no {head} in {text}");
        }
    }
}

#[test]
fn warnings_that_differ_in_figures_only_are_one_line() {
    let grid = Grid { axes: vec![axis("k", &["a", "b", "c"])], seeds: Vec::new() };
    let entry = |text: &str| Entry::done(Row { warnings: vec![text.into()], ..row(&[]) });
    let entries = [entry("3 of 7 late"), entry("1,234 of 7.5 late"), entry("another")];
    let c = compare("ring", &grid, &entries, Interval::Range, None);
    assert_eq!(c.warnings.len(), 3);
    let text = table::render(&grid, &c);
    assert!(text.contains("warning: 3 of 7 late (1_k=a and 2_k=b, with different numbers)"), "{text}");
    assert!(text.contains("warning: another (3_k=c)"), "{text}");
}

#[test]
fn a_directory_takes_back_its_own_grid_and_no_other() {
    let dir = scratch("grid-resume");
    let out = dir.join("grid");
    let grid = Grid { axes: vec![axis("k", &["1", "2"])], seeds: vec![1, 2] };
    let mine = about(&grid);
    assert!(resume(&out, &grid, &mine).unwrap_err().to_string().contains("no grid to resume"));
    let made = create(&out, &grid, &mine).unwrap();
    assert!(resume(&out, &grid, &mine).unwrap_err().to_string().contains("another process"), "locked");
    drop(made);
    assert!(create(&out, &grid, &mine).unwrap_err().to_string().contains("already contains a grid"));
    drop(resume(&out, &grid, &mine).unwrap());

    let mut cases = Vec::new();
    let other = Grid { axes: vec![axis("k", &["1", "3"])], ..grid.clone() };
    cases.push((other.clone(), about(&other), "varied keys"));
    let other = Grid { seeds: vec![1, 3], ..grid.clone() };
    cases.push((other.clone(), about(&other), "seeds"));
    cases.push((grid.clone(), About { version: "9.9.9".into(), ..mine.clone() }, "version of xoff"));
    cases.push((grid.clone(), About { overrides: vec!["a=1".into()], ..mine.clone() }, "overrides"));
    let mut changed = mine.clone();
    changed.runs[2].fingerprint = "0".repeat(16);
    cases.push((grid.clone(), changed.clone(), "has changed, for run 3_k=2_seed=1"));
    changed.scenario = json!({ "run": 0, "traffic": [{ "load": 1 }] });
    cases.push((grid.clone(), changed, "has changed at `traffic`"));
    let before = fs::read(out.join(MANIFEST)).unwrap();
    for (grid, about, why) in cases {
        let error = resume(&out, &grid, &about).unwrap_err().to_string();
        assert!(error.contains(why), "{why}: {error}");
    }
    assert_eq!(fs::read(out.join(MANIFEST)).unwrap(), before);
    fs::write(out.join(MANIFEST), b"{").unwrap();
    assert!(resume(&out, &grid, &mine).unwrap_err().to_string().contains("damaged"));
    // A directory that is no grid is kept, unless it is empty.
    fs::write(dir.join("file"), b"").unwrap();
    fs::create_dir_all(dir.join("full/of")).unwrap();
    fs::create_dir(dir.join("empty")).unwrap();
    assert!(create(&dir.join("file"), &grid, &mine).unwrap_err().to_string().contains("is a file"));
    assert!(create(&dir.join("full"), &grid, &mine).unwrap_err().to_string().contains("not empty"));
    drop(create(&dir.join("empty"), &grid, &mine).unwrap());
}

#[test]
fn a_run_counts_as_done_only_if_it_is_whole_and_its_own() {
    let out = scratch("grid-whole").join("grid");
    let grid = Grid { axes: vec![axis("k", &["1"])], seeds: Vec::new() };
    let mut mine = about(&grid);
    let plan = plan();
    let outcome = healthy(&plan);
    let s = summarise("ring", &plan, &outcome);
    let made = create(&out, &grid, &mine).unwrap();
    let name = grid.name(0);
    let write = || {
        let about = directory::About {
            scenario: json!({ "run": 0 }),
            overrides: vec!["k=1".into()],
            version: "0.1.0".into(),
            wall_seconds: 1.0,
            live: None,
        };
        directory::prepare_in_grid(&made.run(&name)).unwrap().write(&about, &plan, &outcome, &s).unwrap();
    };
    let found = || made.finished(&name, &mine, &mine.runs[0]).unwrap();
    assert_eq!(found(), Found::Nothing);
    write();
    let Found::Whole(entry) = found() else { panic!("the run is whole") };
    assert_eq!(entry.row, Some(Row::read(&summary(false)).unwrap()));
    for file in ["flows.parquet", "summary.json", "manifest.json"] {
        let path = made.run(&name).join(file);
        fs::write(&path, &fs::read(&path).unwrap()[1..]).unwrap();
        assert!(matches!(found(), Found::Damaged(why) if why.contains(file)), "{file}");
        fs::remove_file(&path).unwrap();
        assert!(matches!(found(), Found::Damaged(why) if why.contains(file)), "{file}");
        // The rest of the run is replaced, whatever is missing.
        write();
    }
    mine.runs[0].files = vec![("sizes.cdf".into(), 7)];
    let error = made.finished(&name, &mine, &mine.runs[0]).unwrap_err();
    assert!(error.to_string().contains("another scenario"), "{error}");
    mine.version = "9.9.9".into();
    let error = made.finished(&name, &mine, &mine.runs[0]).unwrap_err();
    assert!(error.to_string().contains("written by xoff \"0.1.0\", but this is xoff 9.9.9"), "{error}");
}

#[test]
fn the_table_of_runs_keeps_axes_and_metrics_apart() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    let out = scratch("grid-table").join("grid");
    let axes =
        vec![axis("a.n", &["3", "20"]), axis("a.x", &["0.5", "1"]), axis("a.t", &["\"x,y\"", "[1, 2]"])];
    let grid = Grid { axes, seeds: vec![4] };
    let mine = about(&grid);
    let mut entries: Vec<Entry> = (0..8).map(|i| Entry::done(row(&[("pauses", Number::Int(i))]))).collect();
    entries[5] = Entry::default();
    let made = create(&out, &grid, &mine).unwrap();
    made.write(&grid, &mine, &entries).unwrap();
    let reader = SerializedFileReader::new(fs::File::open(out.join(TABLE)).unwrap()).unwrap();
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    let text = |s: &str| Field::Str(s.into());
    let cells = |i: usize| rows[i].get_column_iter().map(|(n, f)| (n.clone(), f.clone())).collect::<Vec<_>>();
    assert_eq!(rows.len(), 7, "only runs that are done");
    let names: Vec<String> = cells(0).into_iter().map(|(n, _)| n).collect();
    assert_eq!(names[..7], ["name", "point", "a.n", "a.x", "a.t", "seed", "stop"]);
    assert_eq!(names[7..][..METRICS.len()], METRICS.map(|m| m.name));
    let parts = &names[7 + METRICS.len()..];
    assert_eq!(parts[0], "class.websearch.flows");
    assert!(parts.contains(&"size.<= 30 kB.slowdown_p99".to_string()), "{parts:?}");
    let last: Vec<Field> = cells(6).into_iter().map(|(_, f)| f).collect();
    assert_eq!(last[..2], [text("8_n=20_x=1_t=-1--2-_seed=4"), Field::Long(8)]);
    assert_eq!(last[2..5], [Field::Long(20), Field::Double(1.0), text("[1, 2]")]);
    assert_eq!(cells(0)[4].1, text("x,y"));
    assert_eq!(cells(5)[7 + index("pauses")].1, Field::Long(6));
    let manifest: Value = serde_json::from_slice(&fs::read(out.join(MANIFEST)).unwrap()).unwrap();
    assert_eq!(manifest["complete"], false);
    let states: Vec<&str> =
        manifest["runs"].as_array().unwrap().iter().map(|r| r["status"].as_str().unwrap()).collect();
    assert_eq!(states.iter().filter(|s| **s == "done").count(), 7);
    assert_eq!(states[5], "pending");
    assert_eq!(manifest["runs"][7]["values"], json!({ "a.n": 20, "a.x": 1, "a.t": "[1, 2]" }));
}
