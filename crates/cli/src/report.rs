//! `xoff report`: a page of HTML for a run or a grid.

use std::process::ExitCode;

use xoff_results::{layout, report};

use crate::{ReportArgs, output, run};

pub fn report(args: &ReportArgs) -> miette::Result<ExitCode> {
    output::sweep_beside(args.out.as_deref().unwrap_or(&args.run.join(layout::PAGE)));
    let page = report::write(&args.run, args.out.as_deref()).map_err(run::report)?;
    output::complain(&format!("written to {}", page.display()));
    Ok(ExitCode::SUCCESS)
}
