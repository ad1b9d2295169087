//! `xoff run`: simulates, writes the run directory, prints the results.

use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{cell::Cell, fmt, num::NonZeroUsize, process::ExitCode, sync::atomic::Ordering, thread};

use miette::{Diagnostic, IntoDiagnostic, Report, miette};
use xoff_net::topology::PortId;
use xoff_outcome::report::{Level, Note};
use xoff_plan::{Loaded, names, plan::Plan};
use xoff_results::capture::{self, What};
use xoff_results::directory::{self, About, Writer};
use xoff_results::summary::{self, Summary};
use xoff_results::verdicts::State;
use xoff_results::{human, overload, storage, table};
use xoff_sim::outcome::tap::{Crossing, Tap};
use xoff_sim::outcome::{Outcome, Progress, Stop};

use crate::live::{self, Live};
use crate::memory::{self, Phase, Watch};
use crate::{RunArgs, interrupt, load, output, progress::Meter};

/// Exit status: packets were lost in a lossless priority.
pub const LOST: u8 = 3;
/// Version of the program, as results name it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

pub fn run(args: RunArgs) -> miette::Result<ExitCode> {
    make(args, None)
}

/// Makes a run, on real frames by a clock or simulated.
pub fn make(args: RunArgs, live: Option<&Live>) -> miette::Result<ExitCode> {
    let overrides = args.overrides();
    let loaded = load::load_run(&args.scenario.path, &overrides, args.scenario.strict)?;
    let plan = &loaded.plan;
    if let Some(live) = live {
        live.begin(plan)?;
    }
    let name = load::name(&args.scenario.path);

    let default = || Path::new("xoff-runs").join(&name);
    let out = (!args.no_out).then(|| args.out.clone().unwrap_or_else(default));
    let request = Request {
        loaded: &loaded,
        name: &name,
        overrides: &overrides,
        threads: args.threads.map(usize::from),
        ports: &args.pcap,
        snap: args.pcap_snaplen,
        out: out.as_deref(),
        overwrite: args.overwrite,
        live,
    };
    let ready = request.prepare()?;
    if !args.quiet {
        ready.remarks.iter().for_each(|remark| output::complain(remark));
    }
    let interrupted = interrupt::flag()?;
    let mut meter = Meter::new(plan, args.quiet);
    let ports = ready.ports.len() as u64;
    let made = request.make(ready, &mut |progress| {
        meter.update(progress);
        !interrupted.load(Ordering::Relaxed)
    });
    meter.finish();
    let Made { outcome, summary, wall_seconds, written, valid } = made?;

    // The results are printed even if they cannot be stored.
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
            if let (true, Ok(file)) = (ports > 0, captured.metadata()) {
                let (size, ports) = (human::bytes(file.len()), human::counted(ports, "port"));
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
        (!valid, live::INVALID),
        (summary.lost_lossless(), LOST),
    ]))
}

/// A run that is to be made.
pub struct Request<'a> {
    pub loaded: &'a Loaded,
    pub name: &'a str,
    pub overrides: &'a [(String, String)],
    /// Without a number, as many as a long run of this plan can use.
    pub threads: Option<usize>,
    /// What is captured, as `--pcap` has it.
    pub ports: &'a [String],
    /// Most bytes of a captured packet.
    pub snap: Option<u32>,
    /// The run directory; without one nothing is stored.
    pub out: Option<&'a Path>,
    /// The run directory may replace an older one.
    pub overwrite: bool,
    /// The run is made on real frames.
    pub live: Option<&'a Live>,
}

/// The place and the threads of a run, found before any time is spent on it.
pub struct Ready {
    writer: Option<Writer>,
    ports: Vec<PortId>,
    threads: usize,
    /// Why the run has fewer threads than requested.
    pub remarks: Vec<String>,
}

pub struct Made {
    pub outcome: Outcome,
    pub summary: Summary,
    pub wall_seconds: f64,
    /// The run directory, if one was requested, or why it cannot be written.
    pub written: miette::Result<Option<PathBuf>>,
    /// `false` if events of a run by the wall clock were processed too late, or a device died.
    pub valid: bool,
}

impl Request<'_> {
    /// Finds the place for the results, and the number of threads.
    pub fn prepare(&self) -> miette::Result<Ready> {
        let plan = &self.loaded.plan;
        let ports = captured(plan, self.ports)?;
        let mut writer = None;
        if let Some(out) = self.out {
            output::sweep_beside(out);
            let prepare = if self.overwrite { directory::prepare } else { directory::prepare_new };
            let writer = writer.insert(prepare(out).map_err(report)?);
            if !ports.is_empty() {
                let what = What { ports: ports.clone(), snap: self.snap, version: VERSION.into() };
                writer.begin_capture(plan, &what).map_err(report)?;
            }
        }
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let mut remarks = Vec::new();
        let threads = match self.threads {
            Some(wanted) => xoff_sim::worthwhile_threads(plan, wanted),
            None => xoff_sim::default_threads(plan, cores),
        };
        if let Some(wanted) = self.threads.filter(|&wanted| threads < wanted) {
            remarks.push(format!(
                "using {threads} of {wanted} threads: the delay of the shortest link between threads is too short for more \
                 to help",
            ));
        }
        let with_cores = xoff_sim::threads_with_cores(plan, threads);
        if with_cores < threads && self.threads.is_some() {
            remarks.push(format!("using 1 of {threads} threads: other processes use the cores"));
        }
        Ok(Ready { writer, ports, threads: with_cores, remarks })
    }

    /// Makes the run and stores it. `watch` sees its progress, and ends it by `false`.
    pub fn make(&self, ready: Ready, watch: &mut dyn FnMut(&Progress) -> bool) -> miette::Result<Made> {
        let Ready { mut writer, ports, threads, .. } = ready;
        let plan = &self.loaded.plan;
        // A capture that cannot be written any more ends the run.
        let goes_on = Cell::new(true);
        let began = Instant::now();
        let mut budget = Watch::begin(&[], 0);
        let mut watch = |progress: &Progress| watch(progress) && goes_on.get() && budget.goes_on();
        let mut sink = |seen: &[Crossing]| goes_on.set(writer.as_mut().is_none_or(|w| w.capture(plan, seen)));
        let tap = (!ports.is_empty()).then_some(Tap { ports: &ports, sink: &mut sink });
        let (mut outcome, facts) = match (self.live, tap) {
            (Some(live), tap) => {
                live.run(plan, tap, &mut watch).map(|(outcome, facts)| (outcome, Some(facts)))?
            }
            (None, Some(tap)) => (xoff_sim::run_tapped(plan, threads, tap, &mut watch), None),
            (None, None) => (xoff_sim::run_on(plan, threads, &mut watch), None),
        };
        memory::enter(Phase::Other);
        if budget.spent() {
            outcome.stop = Stop::Memory;
        }
        let wall_seconds = began.elapsed().as_secs_f64();
        let mut summary = summarise(self.name, self.loaded, &outcome);
        let mut about = about(self.loaded, self.overrides, wall_seconds)?;
        let valid = facts.as_ref().is_none_or(|facts| facts.valid);
        if facts.as_ref().is_some_and(|facts| !facts.died.is_empty()) {
            // The counts have no part of a device that died, so nothing that they show is certain.
            for verdict in summary.verdicts.iter_mut().filter(|verdict| verdict.state == State::Held) {
                verdict.state = State::NotPromised;
                verdict.text += ", as far as is known without a device that died";
            }
        }
        if let Some(facts) = facts {
            summary.add_notes(facts.notes());
            about.live = Some(serde_json::to_value(facts).into_diagnostic()?);
        }
        let write = |writer: Writer| writer.write(&about, plan, &outcome, &summary).map(|w| w.path);
        let written = writer.map(write).transpose().map_err(report);
        Ok(Made { outcome, summary, wall_seconds, written, valid })
    }
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
            "some flows were victims; to see which ports blocked them: rerun with --overwrite --set measure.explain=true, then xoff explain".into()
        }
    })
}

/// Summarises a run, with the warnings of its scenario and the notes on its loads.
pub fn summarise(name: &str, loaded: &Loaded, outcome: &Outcome) -> Summary {
    let mut summary = summary::summarise(name, &loaded.plan, outcome);
    let warnings = loaded.warnings.iter().map(|w| Note::new(Level::Warning, format!("{w}.")));
    summary.add_notes(warnings.chain(overload::notes(loaded)));
    summary
}

/// The description of a run in its directory, besides plan and outcome.
pub fn about(loaded: &Loaded, overrides: &[(String, String)], wall_seconds: f64) -> miette::Result<About> {
    Ok(About {
        scenario: serde_json::to_value(&loaded.scenario).into_diagnostic()?,
        overrides: written(overrides),
        version: VERSION.into(),
        wall_seconds,
        live: None,
    })
}

/// Overrides as they were given: `key=value`.
pub fn written(overrides: &[(String, String)]) -> Vec<String> {
    overrides.iter().map(|(k, v)| format!("{k}={v}")).collect()
}

/// An error of results, as errors are shown.
pub fn report(error: storage::Error) -> Report {
    Unstored(error).into()
}

/// Results that cannot be read or written.
#[derive(Debug)]
pub struct Unstored(pub storage::Error);

impl fmt::Display for Unstored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Unstored {}

impl Diagnostic for Unstored {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&self.0.help))
    }
}
