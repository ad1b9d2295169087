//! `xoff run`: simulate, write the run directory, print the answer.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use miette::{IntoDiagnostic, Report, WrapErr, miette};
use xoff_results::directory::{self, About};
use xoff_results::human;
use xoff_results::notes::{Level, Note};
use xoff_results::{summary, table};
use xoff_sim::outcome::Stop;

use crate::progress::Meter;
use crate::{RunArgs, load, output};

/// Exit status: packets were lost in a lossless priority.
const LOST: u8 = 3;
/// Exit status: interrupted, as shells say it for SIGINT.
const INTERRUPTED: u8 = 130;

/// Runs a scenario.
pub fn run(args: RunArgs) -> miette::Result<ExitCode> {
    let seed: Vec<(String, String)> =
        args.seed.iter().map(|s| ("run.seed".to_string(), s.to_string())).collect();
    let loaded = load::load(&args.scenario, &seed)?;
    let plan = &loaded.plan;
    let name = load::name(&args.scenario.path);

    // A place for the results is found before any time is spent on making them.
    let writer = if args.no_out {
        None
    } else {
        let out = args.out.unwrap_or_else(|| Path::new("xoff-runs").join(&name));
        Some(directory::prepare(&out).map_err(report)?)
    };

    let interrupted = on_interrupt()?;
    let mut meter = Meter::new(plan, args.quiet);
    let outcome = xoff_sim::run_on(plan, args.threads.into(), &mut |progress| {
        meter.update(progress);
        !interrupted.load(Ordering::Relaxed)
    });
    let wall_seconds = meter.finish();

    let mut summary = summary::summarise(&name, plan, &outcome);
    let warnings = loaded.warnings.iter().map(|w| Note::new(Level::Warning, format!("{w}.")));
    summary.add_notes(warnings);

    // The answer is printed even if it cannot be stored.
    let written: miette::Result<Option<PathBuf>> = match writer {
        None => Ok(None),
        Some(writer) => {
            let about = About {
                scenario: serde_json::to_value(&loaded.scenario).into_diagnostic()?,
                overrides: args.scenario.set.iter().chain(&seed).map(|(k, v)| format!("{k}={v}")).collect(),
                version: env!("CARGO_PKG_VERSION").into(),
                wall_seconds,
            };
            writer.write(&about, plan, &outcome, &summary).map(Some).map_err(report)
        }
    };
    let answer = if args.json {
        serde_json::to_string_pretty(&summary).into_diagnostic()? + "\n"
    } else {
        table::render(&summary)
    };
    output::print(&answer)?;
    let written = written?;

    if !args.quiet {
        let c = outcome.counters;
        output::complain(&format!(
            "{wall_seconds:.2} s, {} packet-hops/s, {:.2} events per packet-hop",
            human::short(c.packet_hops as f64 / wall_seconds.max(1e-9)),
            c.events as f64 / c.packet_hops.max(1) as f64,
        ));
        if let Some(path) = written {
            output::complain(&format!("written to {}", path.display()));
        }
    }
    Ok(if outcome.stop == Stop::Interrupted {
        ExitCode::from(INTERRUPTED)
    } else if summary.lost_lossless() {
        ExitCode::from(LOST)
    } else {
        ExitCode::SUCCESS
    })
}

/// A flag that the first Ctrl-C sets; the second one ends the process.
fn on_interrupt() -> miette::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    ctrlc::set_handler(move || {
        if set.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(INTERRUPTED));
        }
    })
    .into_diagnostic()
    .wrap_err("Ctrl-C cannot be handled")?;
    Ok(flag)
}

fn report(error: directory::Error) -> Report {
    miette!(help = error.help.clone(), "{error}")
}
