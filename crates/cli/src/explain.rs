//! `xoff explain`: where the time of a run's flows went, and who held them up.

use std::process::ExitCode;

use serde::Serialize;
use xoff_results::explain::{self, read, text};
use xoff_results::integrity::guarded;

use crate::{ExplainArgs, output, run::report};

pub fn explain(args: &ExplainArgs) -> miette::Result<ExitCode> {
    let path = &args.run;
    let run = read::read(path).map_err(report)?;
    output::print(&guarded(path, || Ok(answer(args, &run))).map_err(report)??)?;
    Ok(ExitCode::SUCCESS)
}

fn answer(args: &ExplainArgs, run: &read::Run) -> miette::Result<String> {
    let path = &args.run;
    let (class, src, dst) = (args.class.as_deref(), args.src.as_deref(), args.dst.as_deref());
    let choice = explain::Choice { class, src, dst };
    if let Some(id) = args.flow {
        let answer = explain::flow(path, run, id).map_err(report)?;
        render(args, &answer, text::flow)
    } else if let Some(port) = &args.port {
        let answer = explain::port(path, run, port, choice).map_err(report)?;
        render(args, &answer, text::port)
    } else {
        let answer =
            explain::overview(path, run, choice, args.slowest.unwrap_or(explain::SLOWEST)).map_err(report)?;
        render(args, &answer, text::overview)
    }
}

fn render<A: Serialize>(args: &ExplainArgs, answer: &A, text: fn(&A) -> String) -> miette::Result<String> {
    match args.json {
        true => Ok(output::json(answer)?),
        false => Ok(text(answer)),
    }
}
