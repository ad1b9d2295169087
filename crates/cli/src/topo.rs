//! `xoff topo`: the network of a scenario.

use std::process::ExitCode;

use xoff_plan::Needs;

use crate::{TopoArgs, load, output};

pub fn topo(args: &TopoArgs) -> miette::Result<ExitCode> {
    let loaded = load::load(&args.scenario.path, &args.scenario.set, args.scenario.strict, Needs::Network)?;
    let text = if args.json {
        let network = xoff_results::network::network(&loaded.plan);
        output::json(&network)?
    } else {
        xoff_plan::describe::describe(&loaded)
    };
    output::print(&text)?;
    output::warnings(&loaded);
    Ok(ExitCode::SUCCESS)
}
