//! `xoff report`: a page of HTML for a run, two runs or a grid.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use miette::miette;
use xoff_results::{grid, layout, report};

use crate::{ReportArgs, output, run};

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
        [a, b] => report::pair([a, b]),
        _ => report::document(first),
    };
    report::put(&report::html::page(&document.map_err(run::report)?), &target).map_err(run::report)?;
    output::complain(&format!("written to {}", target.display()));
    Ok(ExitCode::SUCCESS)
}
