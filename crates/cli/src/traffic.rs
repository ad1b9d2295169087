//! `xoff traffic`: the flows that a scenario offers to its network.

use std::process::ExitCode;

use xoff_results::offered;

use xoff_plan::Needs;

use crate::{TrafficArgs, load, output};

pub fn traffic(args: &TrafficArgs) -> miette::Result<ExitCode> {
    let loaded = load::load(&args.scenario.path, &args.scenario.set, args.scenario.strict, Needs::Traffic)?;
    let offered = offered::offered(&load::name(&args.scenario.path), &loaded);
    let text = if args.json { output::json(&offered)? } else { offered::render(&offered) };
    output::print(&text)?;
    output::warnings(&loaded);
    Ok(ExitCode::SUCCESS)
}
