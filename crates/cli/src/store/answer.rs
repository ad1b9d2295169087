//! `xoff grid status` and `xoff grid table`: what a store has.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use miette::{IntoDiagnostic, miette};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use xoff_results::grid::compare::{self, Comparison, Entry};
use xoff_results::grid::directory::{self, TABLE, write_rows};
use xoff_results::grid::{Grid, interval::Interval, table};
use xoff_results::layout::PAGE;
use xoff_results::{human, report as pages};
use xoff_store::{Bucket, lease, record};

use super::need::{self, Need};
use super::{KEPT, Opened, now_ms, report};
use crate::progress::seconds;
use crate::{FAILED, IntervalArg, output};

/// Most records that are read for the speed, most failed runs that are named.
const SAMPLE: usize = 50;
const LISTED: usize = 6;
/// Most points of a page.
const SHOWN: usize = 10_000;

#[derive(clap::Args)]
pub struct StatusArgs {
    /// The store of `xoff grid plan`
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub fn status(args: &StatusArgs) -> miette::Result<ExitCode> {
    let State { data, text, fine } = state(&args.store)?;
    output::print(&if args.json { output::json(&data)? } else { text })?;
    Ok(output::status(&[(!fine, FAILED)]))
}

/// How far a store is.
pub struct State {
    pub data: Value,
    pub text: String,
    /// Whether no run failed, and no results differ.
    pub fine: bool,
}

pub fn state(store: &Path) -> miette::Result<State> {
    let opened = Opened::at(store)?;
    let Opened { bucket, layout, grid, .. } = &opened;
    let mut need = Need::of(&opened).map_err(report)?;
    let open = need.look().map_err(report)?;
    let done: BTreeSet<String> = open.done.iter().map(|&chunk| layout.name(chunk)).collect();
    let (runs_done, spared) = (opened.runs_of(&open.done), opened.runs_of(&open.spared));
    let (chunks, runs) = (layout.chunks() - open.spared.len(), grid.runs().unwrap_or(0) - spared);
    let mut running = Vec::new();
    for chunk in bucket.list("leases").map_err(report)?.into_iter().filter(|chunk| !done.contains(chunk)) {
        let last = lease::last(bucket, &chunk).map_err(report)?;
        running.extend(
            last.filter(|(_, lease)| lease.until_ms > now_ms()).map(|(_, lease)| (chunk, lease.worker)),
        );
    }
    let workers: BTreeSet<&String> = running.iter().map(|(_, worker)| worker).collect();
    let lost = bucket.list("lost").map_err(report)?;
    let conflicts = bucket.list("conflicts").map_err(report)?;
    let mut failed: Vec<(String, String)> = Vec::new();
    for name in bucket.list("failed").map_err(report)? {
        failed.extend(listed::<String>(bucket, "failed", name.trim_end_matches(".json"))?);
    }
    let (mut time, mut hops, mut sampled) = (0.0, 0, 0);
    for chunk in done.iter().step_by(done.len().div_ceil(SAMPLE).max(1)) {
        if let Some(record) = record::read(bucket, chunk).map_err(report)? {
            time += record.ended_ms.saturating_sub(record.began_ms) as f64 / 1e3;
            hops += record.packet_hops;
            sampled += 1;
        }
    }
    let mean = if sampled > 0 { time / f64::from(sampled) } else { 0.0 };
    let speed = hops as f64 / time.max(1e-9);
    let over = open.chunks.is_empty();
    let left = (sampled > 0 && !workers.is_empty() && !over)
        .then(|| (chunks - done.len()) as f64 * mean / workers.len() as f64);
    let wide: Vec<String> = open.wide.iter().map(|&point| grid.point_label(point)).collect();
    let data = json!({
        "name": opened.plan.name, "runs": runs, "runs_done": runs_done, "chunks": chunks, "chunks_done": done.len(),
        "until": need.rule().map(|rule| json!({ "rule": rule.text(), "narrow": open.narrow, "wide": wide })),
        "running": running.iter().map(|(chunk, worker)| json!({ "chunk": chunk, "worker": worker })).collect::<Vec<_>>(),
        "failed": failed.iter().map(|(run, why)| json!({ "run": run, "error": why })).collect::<Vec<_>>(),
        "lost_leases": lost.len(), "conflicts": conflicts, "seconds_per_chunk": mean,
        "packet_hops_per_second_of_a_worker": speed, "seconds_left": left,
    });
    let state = match (conflicts.len(), over) {
        (0, true) => "complete",
        (0, false) if workers.is_empty() => "nobody works on it",
        (0, false) => "running",
        _ => "CONFLICT: two workers got different results",
    };
    let mut text = format!("{}: {state}\n\n", opened.plan.name);
    let percent = 100.0 * runs_done as f64 / runs.max(1) as f64;
    let most = if need.rule().is_some() && !over { "at most " } else { "" };
    let all = human::counted(runs as u64, "run");
    text += &format!("done         {} of {most}{all} ({percent:.1}%)\n", human::count(runs_done as u64));
    text += &format!(
        "chunks       {} of {most}{}\n",
        human::count(done.len() as u64),
        human::count(chunks as u64)
    );
    text += &format!("workers      {}\n", workers.len());
    text += &format!("failed       {}\n", human::counted(failed.len() as u64, "run"));
    text += &format!("lost leases  {}\n", lost.len());
    if sampled > 0 {
        let hops = human::short(speed);
        text += &format!("speed        {hops} packet-hops/s and {mean:.2} s a chunk, of one worker\n");
    }
    text += &left.map_or(String::new(), |left| format!("time left    {}\n", seconds(left)));
    if let Some(rule) = need.rule() {
        let (narrow, spared) =
            (human::counted(open.narrow as u64, "point"), human::counted(spared as u64, "run"));
        text += &format!("until        {}: reached at {narrow}, {spared} not needed\n", rule.text());
    }
    for point in wide.iter().take(LISTED) {
        text += &format!("warning: the interval is still too wide with all seeds at {point}\n");
    }
    if wide.len() > LISTED {
        let all = human::counted(wide.len() as u64, "such point");
        text += &format!("warning: {all} in total: --json lists them\n");
    }
    for (run, why) in failed.iter().take(LISTED) {
        text += &format!("error: {run} failed: {why}\n");
    }
    if failed.len() > LISTED {
        let all = human::counted(failed.len() as u64, "failed run");
        text += &format!("error: {all} in total: --json lists them\n");
    }
    for name in &conflicts {
        let why = bucket.get(&format!("conflicts/{name}")).map_err(report)?.unwrap_or_default();
        text += &format!("error: {}\n", serde_json::from_slice::<String>(&why).unwrap_or_default());
    }
    Ok(State { data, text, fine: failed.is_empty() && conflicts.is_empty() })
}

/// Runs of a chunk, each with what the chunk's list in this folder says of it. A chunk that is not done has none.
fn listed<T: DeserializeOwned>(
    bucket: &Bucket,
    folder: &str,
    chunk: &str,
) -> miette::Result<Vec<(String, T)>> {
    let object = format!("{folder}/{chunk}.json");
    let done = record::read(bucket, chunk).map_err(report)?;
    let part = done.iter().flat_map(|done| &done.files).find(|part| part.name == object);
    let Some(part) = part else { return Ok(Vec::new()) };
    let text = part.read(bucket, chunk).map_err(report)?;
    let help = "start a worker of this version again";
    serde_json::from_slice(&text).map_err(|e| report(bucket.error(&object, format!("is damaged: {e}"), help)))
}

#[derive(clap::Args)]
pub struct TableArgs {
    /// The store of `xoff grid plan`
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// File for the numbers of all runs [default: grid.parquet in the store]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Compare with this variant, or this value of a varied key [default: the first of several variants]
    #[arg(long, value_name = "VALUE")]
    baseline: Option<String>,
    /// Spread to print with each mean over seeds [default: range]
    #[arg(long, value_enum)]
    interval: Option<IntervalArg>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

pub fn table(args: &TableArgs) -> miette::Result<ExitCode> {
    let interval = crate::interval(args.interval);
    let (grid, comparison) =
        comparison(&args.store, args.out.as_deref(), args.baseline.as_deref(), interval)?;
    output::print(&if args.json { output::json(&comparison)? } else { table::render(&grid, &comparison) })?;
    Ok(output::status(&[(!comparison.failed.is_empty(), FAILED)]))
}

/// Compares the points of a store, and writes the numbers of all runs to `out` or into the store.
pub fn comparison(
    store: &Path,
    out: Option<&Path>,
    baseline: Option<&str>,
    interval: Interval,
) -> miette::Result<(Grid, Comparison)> {
    let opened = Opened::at(store)?;
    let Opened { bucket, grid, plan, .. } = &opened;
    let baseline = grid.baseline(baseline).map_err(|why| miette!("--baseline: {why}"))?;
    let entries = entries(&opened)?;
    let there: Vec<_> =
        entries.iter().enumerate().filter_map(|(run, e)| Some((run, e.row.as_ref()?))).collect();
    match out {
        Some(out) => write_rows(out, grid, &there).map_err(crate::run::report)?,
        None => {
            let content = directory::rows(Vec::new(), grid, &there).into_diagnostic()?;
            bucket.put(TABLE, &content).map_err(report)?;
        }
    }
    let mut comparison = compare::compare(&plan.name, grid, &entries, interval, baseline);
    comparison.go_on = "`xoff work` makes them";
    Ok((opened.grid, comparison))
}

#[derive(clap::Args)]
pub struct ReportArgs {
    /// The store of `xoff grid plan`
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// File for the page [default: report.html in the store]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub fn report_page(args: &ReportArgs) -> miette::Result<ExitCode> {
    let (page, bucket) = page(&args.store)?;
    let place = write_page(&page, &bucket, args.out.as_deref())?;
    output::complain(&format!("written to {}", place.display()));
    Ok(ExitCode::SUCCESS)
}

/// Writes a page to `out`, or into its store; returns its place.
pub fn write_page(page: &str, bucket: &Bucket, out: Option<&Path>) -> miette::Result<PathBuf> {
    match out {
        Some(out) => pages::put(page, out).map_err(crate::run::report)?,
        None => bucket.put(PAGE, page.as_bytes()).map_err(report)?,
    }
    Ok(out.map_or_else(|| bucket.path(PAGE), Path::to_path_buf))
}

/// The page of a store, as HTML, and the store.
pub fn page(store: &Path) -> miette::Result<(String, Bucket)> {
    let opened = Opened::at(store)?;
    let Opened { grid, plan, .. } = &opened;
    if grid.points().is_none_or(|points| points > SHOWN) {
        let help = "`xoff grid table --json` has all points; flows/ and grid.parquet have all runs";
        return Err(miette!(help = help, "a page shows at most {SHOWN} points"));
    }
    let entries = entries(&opened)?;
    let seed = |(run, entry): (usize, &Entry)| {
        entry.row.as_ref().map(|row| row.seed).or(grid.seed_of(run)).unwrap_or_default()
    };
    let seeds: Vec<u64> = entries.iter().enumerate().map(seed).collect();
    let first = opened.source.load(&opened.overrides(0), &mut |_, _| {}, &|| false)?;
    let scenario = serde_json::to_value(&first.scenario).into_diagnostic()?;
    let folder = plan.keep.then_some(KEPT);
    let document = pages::grid::of(&plan.name, grid, &entries, &seeds, folder, scenario);
    Ok((pages::html::page(&pages::Document::Grid(Box::new(document))), opened.bucket))
}

/// What the store knows of each run.
fn entries(opened: &Opened) -> miette::Result<Vec<Entry>> {
    let Opened { bucket, layout, grid, .. } = opened;
    let mut entries = vec![Entry::default(); grid.runs().unwrap_or(0)];
    for chunk in Need::of(opened).and_then(|mut need| need.look()).map_err(report)?.spared {
        entries[layout.runs(chunk)].fill(Entry::spared());
    }
    for chunk in 0..layout.chunks() {
        let name = layout.name(chunk);
        let Some(done) = record::read(bucket, &name).map_err(report)? else { continue };
        let runs = layout.runs(chunk);
        let at = |wanted: &str| runs.clone().find(|&run| grid.name(run) == wanted);
        for (run, row) in need::rows(opened, chunk).map_err(report)? {
            entries[run] = Entry::done(row);
        }
        if done.failed > 0 {
            for (run, why) in listed::<String>(bucket, "failed", &name)? {
                at(&run).into_iter().for_each(|run| entries[run] = Entry::failed(why.clone()));
            }
        }
        if done.warned > 0 {
            for (run, texts) in listed::<Vec<String>>(bucket, "warnings", &name)? {
                let row = at(&run).and_then(|run| entries[run].row.as_mut());
                row.into_iter().for_each(|row| row.warnings.clone_from(&texts));
            }
        }
    }
    Ok(entries)
}
