//! `xoff grid status` and `xoff grid table`: what a store has.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use miette::miette;
use serde_json::{Value, json};
use xoff_results::grid::compare::{self, Comparison, Entry};
use xoff_results::grid::directory::{TABLE, read_rows, write_rows};
use xoff_results::grid::{Grid, interval::Interval, table};
use xoff_results::human;
use xoff_store::{lease, record};

use super::{Opened, now_ms, report};
use crate::progress::seconds;
use crate::{FAILED, IntervalArg, output};

/// Most records that are read for the speed, most failed runs that are named.
const SAMPLE: usize = 50;
const LISTED: usize = 6;

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
    let done: BTreeSet<String> = record::done(bucket).map_err(report)?.into_iter().collect();
    let chunks = layout.chunks();
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
        let text = bucket.get(&format!("failed/{name}")).map_err(report)?.unwrap_or_default();
        failed.extend(serde_json::from_slice::<Vec<(String, String)>>(&text).unwrap_or_default());
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
    let left = (sampled > 0 && !workers.is_empty() && done.len() < chunks)
        .then(|| (chunks - done.len()) as f64 * mean / workers.len() as f64);
    let runs = grid.runs().unwrap_or(0);
    let runs_done: usize =
        (0..chunks).filter(|&c| done.contains(&layout.name(c))).map(|c| layout.runs(c).len()).sum();
    let data = json!({
        "name": opened.plan.name, "runs": runs, "runs_done": runs_done, "chunks": chunks, "chunks_done": done.len(),
        "running": running.iter().map(|(chunk, worker)| json!({ "chunk": chunk, "worker": worker })).collect::<Vec<_>>(),
        "failed": failed.iter().map(|(run, why)| json!({ "run": run, "error": why })).collect::<Vec<_>>(),
        "lost_leases": lost.len(), "conflicts": conflicts, "seconds_per_chunk": mean,
        "packet_hops_per_second_of_a_worker": speed, "seconds_left": left,
    });
    let state = match (conflicts.len(), done.len() == chunks) {
        (0, true) => "complete",
        (0, false) if workers.is_empty() => "nobody works on it",
        (0, false) => "running",
        _ => "CONFLICT: two workers got different results",
    };
    let mut text = format!("{}: {state}\n\n", opened.plan.name);
    let percent = 100.0 * runs_done as f64 / runs.max(1) as f64;
    let all = human::counted(runs as u64, "run");
    text += &format!("done         {} of {all} ({percent:.1}%)\n", human::count(runs_done as u64));
    text += &format!("chunks       {} of {}\n", human::count(done.len() as u64), human::count(chunks as u64));
    text += &format!("workers      {}\n", workers.len());
    text += &format!("failed       {}\n", human::counted(failed.len() as u64, "run"));
    text += &format!("lost leases  {}\n", lost.len());
    if sampled > 0 {
        let hops = human::short(speed);
        text += &format!("speed        {hops} packet-hops/s and {mean:.2} s a chunk, of one worker\n");
    }
    text += &left.map_or(String::new(), |left| format!("time left    {}\n", seconds(left)));
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
    let Opened { bucket, layout, grid, plan, .. } = Opened::at(store)?;
    let baseline = grid.baseline(baseline).map_err(|why| miette!("--baseline: {why}"))?;
    let mut entries = vec![Entry::default(); grid.runs().unwrap_or(0)];
    for chunk in 0..layout.chunks() {
        let name = layout.name(chunk);
        let Some(done) = record::read(&bucket, &name).map_err(report)? else { continue };
        let part = done.files.first().ok_or_else(|| miette!("done/{name}.json has no parts"))?;
        part.read(&bucket, &name).map_err(report)?;
        let found = read_rows(&bucket.path(&part.name)).map_err(crate::run::report)?;
        for (run, row) in found {
            entries[run] = Entry::done(row);
        }
        if done.failed > 0 {
            let text = bucket.get(&format!("failed/{name}.json")).map_err(report)?.unwrap_or_default();
            let failed: Vec<(String, String)> = serde_json::from_slice(&text).unwrap_or_default();
            for run in layout.runs(chunk) {
                let why = failed.iter().find(|(name, _)| *name == grid.name(run));
                entries[run] =
                    why.map_or_else(|| entries[run].clone(), |(_, why)| Entry::failed(why.clone()));
            }
        }
    }
    let there: Vec<_> =
        entries.iter().enumerate().filter_map(|(run, e)| Some((run, e.row.as_ref()?))).collect();
    let default = || store.join(TABLE);
    write_rows(&out.map_or_else(default, Path::to_path_buf), &grid, &there).map_err(crate::run::report)?;
    let comparison = compare::compare(&plan.name, &grid, &entries, interval, baseline);
    Ok((grid, comparison))
}
