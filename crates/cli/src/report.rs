//! `xoff report`: a page of HTML for a run, two runs, a grid or a reproduction of papers.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use miette::miette;
use xoff_results::{grid, layout, report};

use crate::{ReportArgs, output, repro, run};

/// Distance of lines about the progress.
const LINES: Duration = Duration::from_secs(3);

pub fn report(args: &ReportArgs) -> miette::Result<ExitCode> {
    let first = &args.runs[0];
    let is_grid = first.join(grid::directory::MANIFEST).exists();
    if args.pages && (!is_grid || args.runs.len() > 1) {
        return Err(miette!(
            help = "type the directory of one grid, or remove --pages",
            "--pages is for grids"
        ));
    }
    let file = if args.runs.len() > 1 { layout::BESIDE } else { layout::PAGE };
    let target = args.out.clone().unwrap_or_else(|| first.join(file));
    output::sweep_beside(&target);
    if args.pages {
        let mut shown = Instant::now();
        let mut progress = |done: usize, of: usize| {
            if shown.elapsed() >= LINES {
                shown = Instant::now();
                output::complain(&format!("{done} of {of} pages"));
            }
        };
        let pages = report::write_runs(first, &mut progress).map_err(run::report)?;
        output::complain(&format!("{pages} pages of runs written"));
    }
    let document = match &args.runs[..] {
        [a, b] => report::pair([a, b]).map_err(run::report)?,
        _ if repro::has_results(first) => repro::document(first)?,
        _ => report::document(first).map_err(run::report)?,
    };
    report::put(&report::html::page(&document), &target).map_err(run::report)?;
    output::complain(&format!("written to {}", target.display()));
    Ok(ExitCode::SUCCESS)
}
