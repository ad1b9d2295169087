//! Everything that the page of a grid shows: its points beside each other.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{int, text};
use crate::explain::read::{damaged, summary};
use crate::grid::compare::{Comparison, Entry, Point as Compared, Status, Warning, compare};
use crate::grid::directory::{self, RESUME, stored_entry};
use crate::grid::interval::{Interval, Spread};
use crate::grid::metrics::{METRICS, Row, Unit};
use crate::grid::table::shown;
use crate::grid::{Axis, Grid as Plan};
use crate::layout::{MANIFEST as RUN_MANIFEST, PAGE, SUMMARY};
use crate::storage::Error;
use crate::{human, integrity};

/// Finished runs that a page lists.
const LISTED: usize = 2000;

#[derive(Clone, Debug, Serialize)]
pub struct Grid {
    pub name: String,
    /// The comparison and its result, in a few sentences.
    pub headline: String,
    pub complete: bool,
    pub axes: Vec<Varied>,
    /// Seeds of each point; empty if the scenario says it.
    pub seeds: Vec<u64>,
    pub metrics: Vec<Metric>,
    /// In the order of the axes, the last one fastest.
    pub points: Vec<Point>,
    /// The folder of the runs' directories, if they are there.
    pub folder: Option<String>,
    /// Finished runs that are not in `runs`.
    pub left_out: usize,
    pub runs: Vec<Made>,
    pub warnings: Vec<Warning>,
    /// The slowdown by flow size; null if the runs' directories are not there.
    pub sizes: Option<Sizes>,
    /// The scenario of the first run.
    pub scenario: Json,
}

/// A key that was varied.
#[derive(Clone, Debug, Serialize)]
pub struct Varied {
    pub key: String,
    pub head: String,
    pub values: Vec<String>,
}

/// A number by which points are compared.
#[derive(Clone, Debug, Serialize)]
pub struct Metric {
    /// As in `grid.parquet`.
    pub name: String,
    /// `count`, `byte`, `ps`, `ratio` or `bit/s`.
    pub unit: String,
}

/// A combination of values.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// Of each axis, which value.
    pub values: Vec<usize>,
    pub runs: usize,
    /// How many of them deadlocked.
    pub deadlocks: usize,
    /// Of each metric; null where no run has it.
    pub metrics: Vec<Option<Value>>,
}

/// A metric over the seeds of a point.
#[derive(Clone, Debug, Serialize)]
pub struct Value {
    pub mean: f64,
    /// Least and greatest; null with one seed.
    pub range: Option<(f64, f64)>,
    /// The mean as people read it.
    pub text: String,
    /// The ends of the range, in the same form.
    pub ends: Option<(String, String)>,
}

/// Slowdowns by the size of flows, as in `summary.json`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sizes {
    pub groups: Vec<String>,
    /// By point, then by group: the mean over its runs; null where none has such flows.
    pub p99: Vec<Vec<Option<f64>>>,
}

/// A run of the grid.
#[derive(Clone, Debug, Serialize)]
pub struct Made {
    /// Its name, and that of its directory.
    pub name: String,
    /// Position of its point.
    pub point: usize,
    pub seed: u64,
    pub status: Status,
    pub error: Option<String>,
    /// Whether its directory has a page.
    pub page: bool,
}

/// The comparison of the points of a stored grid, and its axes and seeds.
///
/// # Errors
/// The grid cannot be read, or no key has the value `baseline` ([`Plan::baseline`]).
pub fn compared(
    path: &Path,
    interval: Interval,
    baseline: Option<&str>,
) -> Result<(Plan, Comparison), Error> {
    let stored = stored(path)?;
    let baseline = stored.plan.baseline(baseline);
    let baseline = baseline.map_err(|why| Error::new(path, format!("cannot be compared: {why}"), ""))?;
    let comparison =
        compare(text(&stored.manifest, "/name"), &stored.plan, &stored.entries, interval, baseline);
    Ok((stored.plan, comparison))
}

/// What the directory of a grid has.
pub(crate) struct Stored {
    manifest: Json,
    pub(crate) plan: Plan,
    runs: Vec<Json>,
    pub(crate) entries: Vec<Entry>,
}

pub(crate) fn stored(path: &Path) -> Result<Stored, Error> {
    let broken = |what: &str| damaged(path, format!("is damaged: {what}"));
    let manifest = directory::open(path)?;
    let list = |key: &str| manifest[key].as_array().cloned().unwrap_or_default();
    let plan = Plan {
        axes: list("axes").iter().filter_map(|axis| Axis::deserialize(axis).ok()).collect(),
        seeds: list("seeds").iter().filter_map(Json::as_u64).collect(),
    };
    let runs = list("runs");
    if plan.runs() != Some(runs.len()) {
        return Err(broken("the runs in grid.json do not match its axes and seeds"));
    }
    let entries = runs.iter().map(|run| entry(path, run)).collect::<Result<Vec<_>, _>>()?;
    Ok(Stored { manifest, plan, runs, entries })
}

pub fn read(path: &Path) -> Result<Grid, Error> {
    let Stored { manifest, plan, runs, entries } = stored(path)?;
    let seeds: Vec<u64> = runs.iter().map(|run| int(run, "/seed")).collect();
    let mut grid = of(
        text(&manifest, "/name"),
        &plan,
        &entries,
        &seeds,
        Some(directory::RUNS),
        manifest["scenario"].clone(),
    );
    grid.sizes = sizes(path, &plan, &runs);
    for run in &mut grid.runs {
        run.page = path.join(directory::RUNS).join(&run.name).join(PAGE).exists();
    }
    Ok(grid)
}

/// The p99 slowdowns of the size groups of all finished runs, from their summaries.
fn sizes(path: &Path, plan: &Plan, runs: &[Json]) -> Option<Sizes> {
    let mut sizes = Sizes::default();
    let mut sums: Vec<Vec<(f64, u32)>> = vec![Vec::new(); plan.points()?];
    for (i, run) in runs.iter().enumerate() {
        let place = path.join(text(run, "/path"));
        if text(run, "/path").is_empty() || !place.join(RUN_MANIFEST).exists() {
            continue;
        }
        let summary = summary(&place).ok()?;
        for group in summary["sizes"].as_array().into_iter().flatten() {
            let name = text(group, "/name");
            let known = sizes.groups.iter().position(|group| group == name);
            let at = known.unwrap_or_else(|| {
                sizes.groups.push(name.into());
                sizes.groups.len() - 1
            });
            let Some(p99) = group["slowdown"]["p99"].as_f64() else { continue };
            let sums = &mut sums[plan.point_of(i)];
            sums.resize(sums.len().max(at + 1), (0.0, 0));
            sums[at] = (sums[at].0 + p99, sums[at].1 + 1);
        }
    }
    let mean = |&(sum, count): &(f64, u32)| (count > 0).then(|| sum / f64::from(count));
    let row = |mut sums: Vec<(f64, u32)>| {
        sums.resize(sizes.groups.len(), (0.0, 0));
        sums.iter().map(mean).collect()
    };
    sizes.p99 = sums.into_iter().map(row).collect();
    (!sizes.groups.is_empty()).then_some(sizes)
}

/// The directories of the runs of a grid that are there, relative to it.
pub(crate) fn stored_runs(path: &Path) -> Result<Vec<String>, Error> {
    let stored = stored(path)?;
    let names = stored.runs.iter().map(|run| text(run, "/path").to_string());
    Ok(names.filter(|name| !name.is_empty() && path.join(name).join(RUN_MANIFEST).exists()).collect())
}

/// The content of the page of these runs. `seeds` are theirs, and their directories are in `folder`.
pub fn of(
    name: &str,
    plan: &Plan,
    entries: &[Entry],
    seeds: &[u64],
    folder: Option<&str>,
    scenario: Json,
) -> Grid {
    let compared = compare(name, plan, entries, Interval::Range, None);
    let points: Vec<Point> = compared.points.iter().enumerate().map(|(i, p)| point(plan, i, p)).collect();
    let heads = plan.heads();
    let varied =
        |(axis, head): (&Axis, String)| Varied { key: axis.key.clone(), head, values: axis.values.clone() };
    let axes: Vec<Varied> = plan.axes.iter().zip(heads).map(varied).collect();
    let made = |(i, (&seed, entry)): (usize, (&u64, &Entry))| Made {
        name: plan.name(i),
        point: plan.point_of(i),
        seed,
        status: entry.status,
        error: entry.error.clone(),
        page: false,
    };
    let mut left_out = 0;
    // A list of more runs would be longer than anybody reads.
    let mut listed = |(i, (_, entry)): &(usize, (&u64, &Entry))| match entry.status {
        Status::Spared => false,
        Status::Done if *i >= LISTED => {
            left_out += 1;
            false
        }
        _ => true,
    };
    let runs = seeds.iter().zip(entries).enumerate().filter(&mut listed).map(made).collect();
    Grid {
        name: compared.scenario.clone(),
        headline: headline(&axes, plan, &points, entries),
        complete: compared.complete,
        axes,
        seeds: plan.seeds.clone(),
        metrics: METRICS.iter().map(|m| Metric { name: m.name.into(), unit: unit(m.unit).into() }).collect(),
        points,
        folder: folder.map(String::from),
        left_out,
        runs,
        warnings: compared.warnings,
        sizes: None,
        scenario,
    }
}

/// A run, as `grid.json` lists it and as its directory has it.
fn entry(path: &Path, run: &Json) -> Result<Entry, Error> {
    if let Some(error) = run["error"].as_str() {
        return Ok(Entry::failed(error.into()));
    }
    let at = path.join(text(run, "/path"));
    let listed = &run["summary_xxh128"];
    // Whole runs are there by their names, also if the grid was killed before it listed them. One
    // that was removed makes the grid incomplete, and the page says so.
    if !at.exists() {
        return Ok(Entry::default());
    }
    let manifest = integrity::summary(&at).map_err(|e| Error { help: RESUME.into(), ..e })?;
    let entry = stored_entry(&at, &manifest).map_err(|e| damaged(path, format!("is damaged: {e}")))?;
    let refuse = |file: &str, message: &str| Err(Error::new(at.join(file), message, RESUME));
    match &entry.summary {
        _ if manifest["seed"] != run["seed"] => {
            refuse(RUN_MANIFEST, "belongs to another run: its seed differs from the seed in grid.json")
        }
        found if !listed.is_null() && listed.as_str() != found.as_deref() => {
            refuse(SUMMARY, "belongs to another run: it does not match its checksum in grid.json")
        }
        _ => Ok(entry),
    }
}

pub fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "count",
        Unit::Bytes => "byte",
        Unit::Time => "ps",
        Unit::Ratio => "ratio",
        Unit::Rate => "bit/s",
    }
}

fn point(plan: &Plan, index: usize, compared: &Compared) -> Point {
    let value = |(spread, unit): (&Spread, Unit)| {
        let range = spread.low.zip(spread.high);
        Value {
            mean: spread.mean,
            range,
            text: shown(spread.mean, unit),
            ends: range.map(|(low, high)| (shown(low, unit), shown(high, unit))),
        }
    };
    let metrics = METRICS
        .iter()
        .zip(&compared.spreads)
        .map(|(metric, spread)| Some(value((spread.as_ref()?, metric.unit))));
    let values = plan.positions(index);
    Point { values, runs: compared.runs, deadlocks: compared.deadlocks, metrics: metrics.collect() }
}

fn headline(axes: &[Varied], plan: &Plan, points: &[Point], entries: &[Entry]) -> String {
    let done: usize = points.iter().map(|p| p.runs).sum();
    let spared = entries.iter().filter(|e| e.status == Status::Spared).count();
    let needed = entries.len() - spared;
    let (runs, of) = (human::counted(needed as u64, "run"), human::counted(points.len() as u64, "point"));
    let mut text = match plan.seeds.len() {
        _ if done < needed => format!("INCOMPLETE: {done} of {runs} are finished. "),
        seeds if spared > 0 => format!("{runs} of {of}, at most {seeds} seeds each. "),
        0..=1 => format!("{runs} of {of}. "),
        seeds => format!("{runs} of {of}, {seeds} seeds each. "),
    };
    let named = |point: &Point| {
        let values =
            axes.iter().zip(&point.values).map(|(axis, &v)| format!("{} {}", axis.head, axis.values[v]));
        human::listed(&values.collect::<Vec<_>>())
    };
    let p99 = crate::grid::metrics::index("slowdown_p99");
    let mut ranked: Vec<(&Point, &Value)> =
        points.iter().filter_map(|p| Some((p, p.metrics[p99].as_ref()?))).collect();
    ranked.sort_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    if let [best, .., worst] = ranked[..] {
        text += &format!(
            "The p99 slowdown is lowest ({1}) with {0} and highest ({3}) with {2}. ",
            named(best.0),
            best.1.text,
            named(worst.0),
            worst.1.text
        );
    }
    let deadlocks: usize = points.iter().map(|p| p.deadlocks).sum();
    text += &match deadlocks {
        0 => "No run deadlocked.".to_string(),
        n => format!("{n} of {} DEADLOCKED.", human::counted(done as u64, "run")),
    };
    let lost = entries.iter().filter(|e| e.row.as_ref().is_some_and(Row::lost_lossless)).count();
    if lost > 0 {
        text += &format!(" {} dropped packets of a lossless priority.", human::counted(lost as u64, "run"));
    }
    text
}
