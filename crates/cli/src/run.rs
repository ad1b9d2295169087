//! `xoff run`: simulates, writes the run directory, prints the results.

use std::path::{Path, PathBuf};
use std::{cell::Cell, num::NonZeroUsize, process::ExitCode, sync::atomic::Ordering, thread};

use miette::{IntoDiagnostic, Report, miette};
use xoff_net::topology::PortId;
use xoff_outcome::report::{Level, Note};
use xoff_plan::{Loaded, names, plan::Plan};
use xoff_results::capture::{self, What};
use xoff_results::directory::{self, About};
use xoff_results::summary::{self, Summary};
use xoff_results::{human, storage, table};
use xoff_sim::outcome::tap::{Crossing, Tap};
use xoff_sim::outcome::{Outcome, Progress, Stop};

use crate::memory::{self, Phase, Watch};
use crate::{RunArgs, interrupt, load, output, progress::Meter};

/// Exit status: packets were lost in a lossless priority.
pub const LOST: u8 = 3;
/// Version of the program, as results name it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

pub fn run(args: RunArgs) -> miette::Result<ExitCode> {
    let overrides = args.overrides();
    let loaded = load::load(&args.scenario.path, &overrides, args.scenario.strict)?;
    let plan = &loaded.plan;
    let name = load::name(&args.scenario.path);

    // A place for the results is found before any time is spent on making them.
    let ports = captured(plan, &args.pcap)?;
    let mut writer = if args.no_out {
        None
    } else {
        let out = args.out.unwrap_or_else(|| Path::new("xoff-runs").join(&name));
        output::sweep_beside(&out);
        Some(directory::prepare(&out).map_err(report)?)
    };
    if let (Some(writer), false) = (&mut writer, ports.is_empty()) {
        let what = What { ports: ports.clone(), snap: args.pcap_snaplen, version: VERSION.into() };
        writer.begin_capture(plan, &what).map_err(report)?;
    }

    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let wanted = args.threads.map(usize::from);
    let threads = match wanted {
        Some(wanted) => xoff_sim::worthwhile_threads(plan, wanted),
        None => xoff_sim::default_threads(plan, cores),
    };
    if let Some(wanted) = wanted.filter(|wanted| threads < *wanted && !args.quiet) {
        output::complain(&format!(
            "using {threads} of {wanted} threads: the delay of the shortest link between threads is too short for more \
             to help",
        ));
    }
    let with_cores = xoff_sim::threads_with_cores(plan, threads);
    if with_cores < threads && wanted.is_some() && !args.quiet {
        output::complain(&format!("using 1 of {threads} threads: other processes use the cores"));
    }
    let threads = with_cores;
    let interrupted = interrupt::flag()?;
    let mut meter = Meter::new(plan, args.quiet);
    // A capture that cannot be written any more ends the run.
    let goes_on = Cell::new(true);
    let mut budget = Watch::begin(&[], 0);
    let mut watch = |progress: &Progress| {
        meter.update(progress);
        goes_on.get() && !interrupted.load(Ordering::Relaxed) && budget.goes_on()
    };
    let mut outcome = match &mut writer {
        Some(writer) if !ports.is_empty() => {
            let mut sink = |seen: &[Crossing]| goes_on.set(writer.capture(plan, seen));
            xoff_sim::run_tapped(plan, threads, Tap { ports: &ports, sink: &mut sink }, &mut watch)
        }
        _ => xoff_sim::run_on(plan, threads, &mut watch),
    };
    memory::enter(Phase::Other);
    if budget.spent() {
        outcome.stop = Stop::Memory;
    }
    let wall_seconds = meter.finish();

    let summary = summarise(&name, &loaded, &outcome);

    // The results are printed even if they cannot be stored.
    let written: miette::Result<Option<PathBuf>> = match writer {
        None => Ok(None),
        Some(writer) => {
            let about = about(&loaded, &overrides, wall_seconds)?;
            writer.write(&about, plan, &outcome, &summary).map(|w| Some(w.path)).map_err(report)
        }
    };
    let answer = if args.json { output::json(&summary)? } else { table::render(&summary) };
    output::print(&answer)?;
    let written = written?;

    if !args.quiet {
        let c = outcome.counters;
        output::complain(&format!(
            "run time {wall_seconds:.2} s: {} packet-hops/s, {:.2} events per packet-hop",
            human::short(c.packet_hops as f64 / wall_seconds.max(1e-9)),
            c.events as f64 / c.packet_hops.max(1) as f64,
        ));
        if let Some(path) = written {
            output::complain(&format!("written to {0}; for an HTML page: xoff report {0}", path.display()));
            let captured = path.join(capture::CAPTURE);
            if let (false, Ok(file)) = (ports.is_empty(), captured.metadata()) {
                let (size, ports) = (human::bytes(file.len()), human::counted(ports.len() as u64, "port"));
                output::complain(&format!("captured {size} at {ports}"));
            }
            if let Some(hint) = hint(plan, &summary, &path) {
                output::complain(&hint);
            }
        }
    }
    Ok(output::status(&[
        (outcome.stop == Stop::Interrupted, interrupt::INTERRUPTED),
        (outcome.stop == Stop::Memory, memory::SPENT),
        (summary.lost_lossless(), LOST),
    ]))
}

fn captured(plan: &Plan, names: &[String]) -> miette::Result<Vec<PortId>> {
    if !names.is_empty() && plan.packet.mtu > capture::LARGEST_PAYLOAD {
        return Err(miette!(
            help = format!("lower transport.mtu to {}B or less", capture::LARGEST_PAYLOAD),
            "--pcap: transport.mtu = {}B does not fit into an IPv4 packet",
            plan.packet.mtu
        ));
    }
    names::ports(&plan.topology, names).map_err(|e| miette!(help = e.help, "--pcap: {}", e.message))
}

/// The command that explains victims, if there are any.
fn hint(plan: &Plan, summary: &Summary, path: &Path) -> Option<String> {
    let found = summary.blocking.as_ref().is_some_and(|b| b.waits.all_victim() > 0);
    let run = path.display();
    found.then(|| match plan.measure.explain {
        true => format!("some flows were victims; to see which ports blocked them: xoff explain {run}"),
        false => {
            "some flows were victims; to see which ports blocked them: rerun with --set measure.explain=true, then xoff explain".into()
        }
    })
}

/// Summarises a run, with the warnings of its scenario.
pub fn summarise(name: &str, loaded: &Loaded, outcome: &Outcome) -> Summary {
    let mut summary = summary::summarise(name, &loaded.plan, outcome);
    summary.add_notes(loaded.warnings.iter().map(|w| Note::new(Level::Warning, format!("{w}."))));
    summary
}

/// The description of a run in its directory, besides plan and outcome.
pub fn about(loaded: &Loaded, overrides: &[(String, String)], wall_seconds: f64) -> miette::Result<About> {
    Ok(About {
        scenario: serde_json::to_value(&loaded.scenario).into_diagnostic()?,
        overrides: written(overrides),
        version: VERSION.into(),
        wall_seconds,
    })
}

/// Overrides as they were given: `key=value`.
pub fn written(overrides: &[(String, String)]) -> Vec<String> {
    overrides.iter().map(|(k, v)| format!("{k}={v}")).collect()
}

pub fn report(error: storage::Error) -> Report {
    miette!(help = error.help.clone(), "{error}")
}
