//! Grids beyond one machine: `xoff grid` and `xoff work`. A store ([`xoff_store`]) has the plan and the results; any
//! number of workers share it.

pub mod answer;
mod need;
pub mod plan;
pub mod slurm;
pub mod work;

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use miette::{Report, miette};
use xoff_plan::variants::Variant;
use xoff_results::grid::Grid;
use xoff_store::plan::{Layout, Plan};
use xoff_store::{Bucket, Error};

use crate::load::Source;
use crate::run::VERSION;
use crate::vary;

/// The folder with the directories of runs that are kept.
const KEPT: &str = "kept";

/// A grid on its way through a store.
#[derive(clap::Subcommand)]
pub enum GridVerb {
    /// Write what is to be run into a store, for `xoff work`
    Plan(plan::PlanArgs),
    /// Show how far the runs of a store are: done, running, failed, speed, time left
    Status(answer::StatusArgs),
    /// Compare the points of a store, and write grid.parquet
    Table(answer::TableArgs),
    /// Write an HTML page for the points of a store
    Report(answer::ReportArgs),
    /// Print a job of Slurm that makes the runs of a store, or submit it
    Slurm(slurm::SlurmArgs),
}

/// An error of a store, as errors are shown.
fn report(error: Error) -> Report {
    miette!(help = error.help.clone(), "{error}")
}

/// Now in milliseconds since 1970, UTC.
fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}

/// A store with a plan that this version can work on.
struct Opened {
    bucket: Bucket,
    plan: Plan,
    grid: Grid,
    layout: Layout,
    source: Source,
    variants: Vec<Variant>,
}

impl Opened {
    fn at(store: &Path) -> miette::Result<Self> {
        let bucket = Bucket::at(store).map_err(report)?;
        let plan = Plan::get(&bucket).map_err(report)?;
        if plan.xoff_version != VERSION {
            return Err(miette!(
                help = "use that version for every worker, or plan the grid again in another store",
                "{} was planned by xoff {}, and this is xoff {VERSION}",
                bucket.name(),
                plan.xoff_version
            ));
        }
        let files = plan
            .named_files()
            .map_err(|file| miette!("{}: the content of `{file}` is damaged", bucket.name()))?;
        let source = Source::embedded(Path::new(&plan.path), &plan.text, plan.in_table, files);
        let variants = plan.variants.iter().map(|v| Variant { name: v.name.clone(), set: v.set.clone() });
        let (grid, layout, variants) = (plan.grid(), plan.layout(), variants.collect());
        Ok(Self { bucket, grid, layout, source, variants, plan })
    }

    /// The number of the runs in these chunks.
    fn runs_of(&self, chunks: &[usize]) -> usize {
        chunks.iter().map(|&chunk| self.layout.runs(chunk).len()).sum()
    }

    /// Every override of a run, in the order in which they apply.
    fn overrides(&self, run: usize) -> Vec<(String, String)> {
        let mut all = vary::of_variant(&self.grid, &self.variants, run, &self.plan.overrides);
        all.extend(self.grid.overrides(run));
        all
    }
}
