//! `xoff grid plan`: writes what is to be run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use miette::{IntoDiagnostic, WrapErr, miette};
use xoff_plan::variants::Variant;
use xoff_results::columns::{self, Column};
use xoff_results::grid::{Axis, Grid, directory::axis_column};
use xoff_results::human;
use xoff_store::Bucket;
use xoff_store::plan::{self as stored, Plan};

use super::report;
use crate::load::{self, Source};
use crate::run::VERSION;
use crate::vary::{self, Seeds};
use crate::{ScenarioArgs, output, whole};

/// Most runs of a store.
const LARGEST: usize = 10_000_000;
/// Most runs of a chunk without `--chunk`.
const CHUNK: usize = 100;
/// Chunks that are made at least without `--chunk`, as far as there are so many runs: many workers have work.
const CHUNKS: usize = 500;
const POINTS: &str = "points.parquet";

#[derive(clap::Args)]
pub struct PlanArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// The store: a directory that every worker reaches
    #[arg(long, value_name = "STORE")]
    store: PathBuf,
    /// One run for each value of the key; repeat the option for all combinations
    #[arg(long, value_name = "KEY=A,B,...", value_parser = vary::axis)]
    vary: Vec<Axis>,
    /// Variants of the scenario: names of its [[variant]] tables, or all
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    variant: Vec<String>,
    /// Seeds of each point, such as 1..1000 or 1,3,9
    #[arg(long, value_name = "SEEDS", value_parser = vary::many_seeds)]
    seeds: Option<Seeds>,
    /// Runs of a chunk, which one worker makes [default: 1 to 100, so that there are 500 chunks or more]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1, 1_000_000))]
    chunk: Option<u32>,
    /// Keep the whole directory of each run, with every file of `xoff run`, in kept/ of the store
    #[arg(long)]
    keep: bool,
    /// Print no summary
    #[arg(long, short)]
    quiet: bool,
}

pub fn plan(args: &PlanArgs) -> miette::Result<ExitCode> {
    let source = Source::read(&args.scenario.path, args.scenario.strict)?;
    let overrides = &args.scenario.set;
    let variants = vary::for_command(&source, &args.variant, overrides)?;
    let grid = vary::with_variants(overrides, &variants, args.vary.clone(), args.seeds.as_ref())?;
    if !args.quiet {
        vary::one_seed(&grid);
    }
    let name = load::name(&args.scenario.path);
    let options = Options { chunk: args.chunk.map(|n| n as usize), keep: args.keep };
    let text = write(&source, &name, overrides, &variants, &grid, options, &args.store)?;
    if !args.quiet {
        output::print(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// How the runs of a store are made.
#[derive(Clone, Copy, Default)]
pub struct Options {
    /// Most runs of a chunk; without a number 1 to 100.
    pub chunk: Option<usize>,
    /// Whether the whole directory of each run is kept.
    pub keep: bool,
}

/// Writes the plan of a grid into a store; returns what it is, in words.
pub fn write(
    source: &Source,
    name: &str,
    overrides: &[(String, String)],
    variants: &[Variant],
    grid: &Grid,
    options: Options,
    store: &Path,
) -> miette::Result<String> {
    let runs = grid.runs().filter(|&runs| runs <= LARGEST).ok_or_else(|| {
        let help = "vary fewer keys, or give fewer values or seeds";
        miette!(help = help, "the grid has more than the maximum of {LARGEST} runs")
    })?;
    let all = check(source, grid, variants, overrides)?;
    let (mut files, mut binary_files) = (BTreeMap::new(), BTreeMap::new());
    for (path, content) in all {
        match String::from_utf8(content) {
            Ok(text) => drop(files.insert(path, text)),
            Err(e) => {
                let digits = e.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
                binary_files.insert(path, digits);
            }
        }
    }
    let (text, in_table) = source.parts();
    let text =
        String::from_utf8(text.to_vec()).into_diagnostic().wrap_err("the scenario is not a text file")?;
    let mut plan = Plan {
        format: stored::FORMAT.into(),
        format_version: stored::FORMAT_VERSION,
        xoff_version: VERSION.into(),
        name: name.into(),
        path: source.path().display().to_string(),
        text,
        in_table,
        files,
        binary_files,
        overrides: overrides.to_vec(),
        variants: variants
            .iter()
            .map(|v| stored::Variant { name: v.name.clone(), set: v.set.clone() })
            .collect(),
        axes: grid.axes.clone(),
        seeds: ranges(&grid.seeds),
        chunk: options.chunk.unwrap_or((runs / CHUNKS).clamp(1, CHUNK)),
        keep: options.keep,
    };
    let bucket = Bucket::at(store).map_err(report)?;
    // Who does not say how the runs are made means those of the store.
    if let Ok(there) = Plan::get(&bucket) {
        plan.chunk = options.chunk.unwrap_or(there.chunk);
        plan.keep |= there.keep;
    }
    let new = plan.put(&bucket).map_err(report)?;
    // After a full disk the same command completes the store.
    let points =
        points(&plan, grid, variants).into_diagnostic().wrap_err("the list of points cannot be made")?;
    bucket.put_new(POINTS, &points).map_err(report)?;
    let (runs, chunks) = (human::counted(runs as u64, "run"), plan.layout().chunks() as u64);
    let before = if new { "" } else { "the store has the same plan already: " };
    let (name, chunks) = (bucket.name(), human::counted(chunks, "chunk"));
    Ok(format!(
        "{before}{runs} in {chunks}\nto make them: xoff work {name}\nto see them: xoff grid status {name}\n"
    ))
}

/// Plans the first run, and one run for each variant and each value of a key, with the first values of the other keys.
/// Returns the files that these runs name. All combinations would take too long: a wrong one fails when it is run.
fn check(
    source: &Source,
    grid: &Grid,
    variants: &[Variant],
    overrides: &[(String, String)],
) -> miette::Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    let points =
        grid.axes.iter().enumerate().flat_map(|(axis, a)| (0..a.values.len()).map(move |v| (axis, v)));
    for point in [0].into_iter().chain(points.filter(|(_, v)| *v > 0).map(|at| grid.base_of(0, at))) {
        let run = point * grid.per_point();
        let mut all = vary::of_variant(grid, variants, run, overrides);
        all.extend(grid.overrides(run));
        let mut seen = |path: &std::path::Path, content: &[u8]| {
            files.insert(path.display().to_string(), content.to_vec());
        };
        source
            .load(&all, &mut seen, &|| false)
            .wrap_err_with(|| format!("the run with {} has an invalid scenario", grid.label(run)))?;
    }
    Ok(files)
}

/// Consecutive seeds as their first and last one.
fn ranges(seeds: &[u64]) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for &seed in seeds {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == seed => *last = seed,
            _ => ranges.push((seed, seed)),
        }
    }
    ranges
}

/// A row for each run: its number, hash, values and seed.
fn points(plan: &Plan, grid: &Grid, variants: &[Variant]) -> parquet::errors::Result<Vec<u8>> {
    let runs = grid.runs().unwrap_or(0);
    let rows = |range: std::ops::Range<usize>| {
        let hash = |run: usize| {
            let mut all = vary::of_variant(grid, variants, run, &plan.overrides);
            all.extend(grid.overrides(run));
            plan.hash(&all)
        };
        let mut columns: Vec<(String, Column)> = vec![
            ("run".into(), Column::Int(range.clone().map(|run| run as u64 + 1).collect())),
            ("hash".into(), Column::Text(range.clone().map(hash).collect())),
        ];
        for (i, axis) in grid.axes.iter().enumerate() {
            let values = range.clone().map(|run| axis.values[grid.positions(grid.point_of(run))[i]].as_str());
            columns.push((axis.key.clone(), axis_column(axis, values)));
        }
        if !grid.seeds.is_empty() {
            let seed = |run: usize| grid.seeds[run % grid.seeds.len()];
            columns.push(("seed".into(), Column::Int(range.map(seed).collect())));
        }
        columns
    };
    columns::write(Vec::new(), runs, rows)
}
