//! The comparison of a grid's points: each metric over the seeds of each point.

use serde::Serialize;
use serde_json::{Map, Value};

use super::interval::{Interval, Spread, spread};
use super::metrics::{METRICS, Number, Row};
use super::{Axis, Grid, typed};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It has not been made, or was interrupted.
    #[default]
    Pending,
    Done,
    /// It is done, and lost packets in a lossless priority.
    Lost,
    /// It could not be made or stored.
    Failed,
    /// Its point needs no further seed ([`super::until`]).
    Spared,
}

/// A run as its grid knows it.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Entry {
    pub status: Status,
    /// Its numbers, once it is done.
    pub row: Option<Row>,
    pub error: Option<String>,
    /// The checksum of its `summary.json`, once it is stored.
    pub summary: Option<String>,
    /// Wall time of its simulation in seconds, once it is stored.
    pub seconds: f64,
}

impl Entry {
    /// A run that is done.
    pub fn done(row: Row) -> Self {
        let status = if row.lost_lossless() { Status::Lost } else { Status::Done };
        Self { status, row: Some(row), ..Self::default() }
    }

    /// A run that is done and whose `summary.json` has this checksum, after `seconds` of simulation.
    pub fn stored(row: Row, summary: String, seconds: f64) -> Self {
        Self { summary: Some(summary), seconds, ..Self::done(row) }
    }

    /// A run that is not needed.
    pub fn spared() -> Self {
        Self { status: Status::Spared, ..Self::default() }
    }

    /// A run that could not be made or stored.
    pub fn failed(error: String) -> Self {
        Self { status: Status::Failed, error: Some(error), ..Self::default() }
    }
}

/// Whether every run that is needed is done.
pub fn complete(entries: &[Entry]) -> bool {
    entries.iter().all(|e| e.row.is_some() || e.status == Status::Spared)
}

/// A grid in short: the output of `--json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    pub scenario: String,
    pub axes: Vec<Axis>,
    /// The seeds of each point; empty if the scenario says it.
    pub seeds: Vec<u64>,
    /// The meaning of `low` and `high`.
    pub interval: Interval,
    /// What each point is compared with: the key, and its value there.
    pub baseline: Option<(String, Value)>,
    /// Whether every run that is needed is done.
    pub complete: bool,
    /// Runs that are not needed, because their points have enough seeds.
    pub spared: usize,
    pub points: Vec<Point>,
    /// Runs that lost packets in a lossless priority.
    pub lost: Vec<String>,
    /// Runs that failed, each with the reason.
    pub failed: Vec<Failure>,
    /// Runs that have not been made.
    pub pending: Vec<String>,
    /// How they are made, for people.
    #[serde(skip)]
    pub go_on: &'static str,
    pub warnings: Vec<Warning>,
}

/// A combination of values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The value of each varied key.
    pub values: Map<String, Value>,
    pub runs: usize,
    /// How many of them deadlocked.
    pub deadlocks: usize,
    /// Each metric over those of its seeds that have a value; null if none has.
    pub metrics: Map<String, Value>,
    /// The same, in the order of [`METRICS`].
    #[serde(skip)]
    pub spreads: Vec<Option<Spread>>,
    /// Each metric divided by that of the baseline under the same seed and other values; null where the baseline's is
    /// 0 or absent. Absent for the baseline itself, and without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratios: Option<Map<String, Value>>,
    /// The same, in the order of [`METRICS`].
    #[serde(skip)]
    pub ratio_spreads: Option<Vec<Option<Spread>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    pub run: String,
    pub error: String,
}

/// A warning, and which runs have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    pub text: String,
    pub runs: Vec<String>,
}

/// Compares the points of a grid. `entries` are its runs in order, and `baseline` is as of [`Grid::baseline`].
pub fn compare(
    scenario: &str,
    grid: &Grid,
    entries: &[Entry],
    interval: Interval,
    baseline: Option<(usize, usize)>,
) -> Comparison {
    assert_eq!(Some(entries.len()), grid.runs(), "an entry per run");
    let of_point = |i: usize| &entries[i * grid.per_point()..][..grid.per_point()];
    let base = |i: usize| baseline.map(|b| grid.base_of(i, b)).filter(|&other| other != i).map(of_point);
    let points =
        (0..grid.points().unwrap_or(0)).map(|i| point(grid, i, of_point(i), base(i), interval)).collect();
    let named = |status: Status| {
        let those = entries.iter().enumerate().filter(move |(_, e)| e.status == status);
        those.map(|(i, _)| grid.name(i)).collect()
    };
    let failed = entries.iter().enumerate().filter_map(|(i, e)| {
        let error = e.error.clone()?;
        Some(Failure { run: grid.name(i), error })
    });
    Comparison {
        scenario: scenario.into(),
        axes: grid.axes.clone(),
        seeds: grid.seeds.clone(),
        interval,
        baseline: baseline
            .map(|(axis, value)| (grid.axes[axis].key.clone(), typed(&grid.axes[axis].values[value]))),
        complete: complete(entries),
        spared: entries.iter().filter(|e| e.status == Status::Spared).count(),
        points,
        lost: named(Status::Lost),
        failed: failed.collect(),
        pending: named(Status::Pending),
        go_on: "continue with --resume",
        warnings: warnings(grid, entries),
    }
}

fn point(grid: &Grid, index: usize, entries: &[Entry], base: Option<&[Entry]>, interval: Interval) -> Point {
    let rows: Vec<&Row> = entries.iter().filter_map(|e| e.row.as_ref()).collect();
    let of_metric = |m: usize| {
        let values: Vec<f64> = rows.iter().filter_map(|r| r.values[m].map(Number::float)).collect();
        // A confidence interval ends at what is possible.
        spread(&values, interval).map(|s| Spread { low: s.low.map(|low| low.max(METRICS[m].least())), ..s })
    };
    let ratio = |base: &[Entry], m: usize| {
        let of = |entry: &Entry| entry.row.as_ref()?.values[m].map(Number::float);
        let each = entries.iter().zip(base).filter_map(|(own, base)| Some((of(own)?, of(base)?)));
        let ratios: Vec<f64> = each.filter(|(_, base)| *base > 0.0).map(|(own, base)| own / base).collect();
        spread(&ratios, interval).map(|s| Spread { low: s.low.map(|low| low.max(0.0)), ..s })
    };
    let spreads: Vec<Option<Spread>> = (0..METRICS.len()).map(of_metric).collect();
    let ratio_spreads =
        base.map(|base| (0..METRICS.len()).map(|m| ratio(base, m)).collect::<Vec<Option<Spread>>>());
    let named = |spreads: &[Option<Spread>]| {
        let value = |s: &Option<Spread>| serde_json::to_value(s).expect("plain data becomes JSON");
        METRICS.iter().zip(spreads).map(|(metric, spread)| (metric.name.into(), value(spread))).collect()
    };
    Point {
        metrics: named(&spreads),
        ratios: ratio_spreads.as_deref().map(named),
        ratio_spreads,
        values: grid.axes.iter().zip(grid.values(index)).map(|(a, v)| (a.key.clone(), typed(v))).collect(),
        runs: rows.len(),
        deadlocks: rows.iter().filter(|r| r.deadlocked()).count(),
        spreads,
    }
}

/// The same warning of several runs is one, at the place of the first.
fn warnings(grid: &Grid, entries: &[Entry]) -> Vec<Warning> {
    let mut found: Vec<Warning> = Vec::new();
    for (i, entry) in entries.iter().enumerate() {
        for text in entry.row.iter().flat_map(|r| &r.warnings) {
            match found.iter_mut().find(|w| w.text == *text) {
                Some(warning) => warning.runs.push(grid.name(i)),
                None => found.push(Warning { text: text.clone(), runs: vec![grid.name(i)] }),
            }
        }
    }
    found
}
