//! `xoff run` with `--vary` or `--seeds`: a grid of runs. Every plan is checked,
//! then the runs are made side by side, then their points are compared.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::{num::NonZeroUsize, path::Path, process::ExitCode, thread};

use miette::{IntoDiagnostic, WrapErr, miette};
use xoff_plan::{Loaded, plan::Setup};
use xoff_results::grid::compare::{self, Entry, Status};
use xoff_results::grid::directory::{self as place, About, Directory, Found, RunAbout};
use xoff_results::grid::{Grid, dataset, fingerprint, table};
use xoff_results::{directory, grid::metrics::Row, human, integrity::reason};
use xoff_sim::outcome::Stop;

use crate::grid_progress::{GridMeter, Tally};
use crate::load::{self, Source};
use crate::memory::{self, Phase, Watch};
use crate::run::{self, LOST, VERSION};
use crate::{FAILED, RunArgs, interrupt, output, pool, progress::Goal, vary};

/// The scenario of a run, and its overrides before those of the grid.
pub type Base<'a> = (&'a Source, Vec<(String, String)>);

/// The runs of a grid, to be checked and made.
pub struct Work<'a> {
    pub grid: &'a Grid,
    /// The scenario with which each run begins.
    pub base: &'a (dyn Fn(usize) -> Base<'a> + Sync),
    pub name: String,
    /// Overrides of every run, as the grid's files have them.
    pub overrides: Vec<(String, String)>,
    /// Two runs of one scenario are an error, because one value would count twice.
    pub distinct: bool,
    /// Runs made at a time.
    pub jobs: usize,
    /// Threads of each run; without a number one, and for the last run also the cores that become free.
    pub threads: Option<usize>,
    pub quiet: bool,
    pub interrupted: &'a AtomicBool,
    pub tally: &'a Tally,
    /// Results cannot be stored: to go on would be in vain.
    pub broken: AtomicBool,
}

pub fn grid(args: &RunArgs) -> miette::Result<ExitCode> {
    let overrides = args.overrides();
    let source = Source::read(&args.scenario.path, args.scenario.strict)?;
    let variants = vary::for_command(&source, &args.variant, &overrides)?;
    let grid =
        vary::bounded(vary::with_variants(&overrides, &variants, args.vary.clone(), args.seeds.as_ref())?)?;
    let baseline = grid.baseline(args.baseline.as_deref()).map_err(|why| miette!("--baseline: {why}"))?;
    if !args.quiet {
        vary::one_seed(&grid);
    }
    let threads = args.threads.map(usize::from);
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let interrupted = interrupt::flag()?;
    let work = Work {
        grid: &grid,
        base: &|run| (&source, vary::of_variant(&grid, &variants, run, &overrides)),
        name: load::name(&args.scenario.path),
        overrides: overrides.clone(),
        distinct: true,
        jobs: args
            .jobs
            .map_or((cores / threads.unwrap_or(1)).max(1), NonZeroUsize::get)
            .min(grid.runs().unwrap_or(1)),
        threads,
        quiet: args.quiet,
        interrupted: &interrupted,
        tally: &Tally::default(),
        broken: AtomicBool::new(false),
    };
    let Some((about, _)) = work.check()? else {
        output::complain("interrupted before the first run");
        return Ok(ExitCode::from(interrupt::INTERRUPTED));
    };

    let mut entries = vec![Entry::default(); about.runs.len()];
    let default = || Path::new("xoff-runs").join(format!("{}-grid", work.name));
    let out = (!args.no_out).then(|| args.out.clone().unwrap_or_else(default));
    let directory = out.map(|out| work.open(&out, &about, args.resume, &mut entries)).transpose()?;

    work.make(&about, directory.as_ref(), &mut entries);

    // The comparison is printed even if it cannot be stored.
    let store = |d: &Directory| {
        d.write(&grid, &about, &entries)
            .and_then(|()| dataset::write(d, &grid, &entries))
            .map_err(run::report)
    };
    let stored = directory.as_ref().map_or(Ok(()), store);
    let comparison = compare::compare(&work.name, &grid, &entries, args.interval(), baseline);
    let answer = if args.json { output::json(&comparison)? } else { table::render(&grid, &comparison) };
    output::print(&answer)?;
    stored?;
    if let Some(directory) = directory.filter(|_| !args.quiet) {
        let at = directory.path().display();
        output::complain(&format!("written to {at}; for an HTML page: xoff report {at}"));
    }
    let any = |status| entries.iter().any(|e| e.status == status);
    Ok(output::status(&[
        (interrupted.load(Ordering::Relaxed) && any(Status::Pending), interrupt::INTERRUPTED),
        (any(Status::Failed), FAILED),
        (any(Status::Lost), LOST),
    ]))
}

/// A word as shells read it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/=:,+".contains(c);
    if word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

impl Work<'_> {
    /// The scenario of a run and all of its overrides.
    fn base(&self, run: usize) -> Base<'_> {
        let (source, mut overrides) = (self.base)(run);
        overrides.extend(self.grid.overrides(run));
        (source, overrides)
    }

    /// The command that makes a run by itself.
    pub fn command(&self, run: usize) -> String {
        let (source, overrides) = self.base(run);
        let mut kept: Vec<(String, String)> = Vec::new();
        for (key, value) in overrides {
            kept.retain(|(other, _)| !vary::replaces(&key, other));
            kept.push((key, value));
        }
        let mut command = format!("xoff run {}", quoted(&source.path().display().to_string()));
        for (key, value) in kept {
            command += &format!(" --set {}", quoted(&format!("{key}={value}")));
        }
        command
    }

    /// Makes the grid's directory, or resumes it: then `entries` are those of the runs that are there.
    pub fn open(
        &self,
        out: &Path,
        about: &About,
        resume: bool,
        entries: &mut [Entry],
    ) -> miette::Result<Directory> {
        output::sweep_beside(out);
        if !resume {
            return place::create(out, self.grid, about).map_err(run::report);
        }
        let directory = place::resume(out, self.grid, about).map_err(run::report)?;
        output::sweep(directory.path());
        output::sweep(&directory.path().join(place::RUNS));
        // Every byte of each run is read.
        let look = |_, i: usize| directory.finished(&self.grid.name(i), about, &about.runs[i]);
        let found = pool::each(self.jobs, entries.len(), || false, look);
        for (i, (entry, found)) in entries.iter_mut().zip(found.into_iter().flatten()).enumerate() {
            *entry = match found.map_err(run::report)? {
                Found::Whole(entry) => entry,
                Found::Nothing => Entry::default(),
                Found::Damaged(why) => {
                    output::complain(&format!(
                        "warning: run {} is repeated, because its stored result is unusable: {why}",
                        self.grid.name(i)
                    ));
                    Entry::default()
                }
            };
        }
        let there = entries.iter().filter(|e| e.row.is_some()).count();
        if !self.quiet {
            let runs = human::counted(entries.len() as u64, "run");
            output::complain(&format!("{there} of {runs} are already stored"));
        }
        Ok(directory)
    }

    fn label(&self, run: usize) -> String {
        format!("run {} of {} ({})", run + 1, self.grid.runs().unwrap_or(0), self.grid.label(run))
    }

    /// Builds a run's scenario; returns it and the grid's record of it.
    fn load(&self, run: usize) -> miette::Result<(Loaded, serde_json::Value, RunAbout)> {
        let mut files = Vec::new();
        let (source, overrides) = self.base(run);
        let loaded = source.load(
            &overrides,
            &mut |path, contents| {
                files.push((path.display().to_string(), fingerprint::of_bytes(contents)));
            },
            &|| self.interrupted.load(Ordering::Relaxed),
        )?;
        let scenario = serde_json::to_value(&loaded.scenario).into_diagnostic()?;
        let fingerprint = fingerprint::of_run(&scenario, &files);
        let about = RunAbout { seed: loaded.plan.seed, fingerprint, files };
        Ok((loaded, scenario, about))
    }

    /// Builds every plan and drops it again: together they may not fit in memory. Returns also what their
    /// set-ups are. `None` if it was interrupted.
    pub fn check(&self) -> miette::Result<Option<(About, Vec<Option<Setup>>)>> {
        let runs = self.grid.runs().expect("a grid that was accepted has a number of runs");
        let meter = GridMeter::new(runs, self.jobs, self.quiet, self.tally);
        // Runs begin in order, so every run before the first wrong one is checked.
        let wrong = AtomicUsize::new(usize::MAX);
        let stop = || self.interrupted.load(Ordering::Relaxed) || wrong.load(Ordering::Relaxed) < usize::MAX;
        let checked = pool::each(self.jobs, runs, stop, |_, run| {
            let kept = |(loaded, scenario, about): (Loaded, _, _)| {
                ((run == 0).then_some(scenario), about, loaded.plan.setup())
            };
            let result = self.load(run).map(kept);
            if result.is_err() {
                if self.interrupted.load(Ordering::Relaxed) {
                    return None;
                }
                wrong.fetch_min(run, Ordering::Relaxed);
            }
            meter.checked();
            Some(result)
        });
        meter.finish();
        let mut scenario = None;
        let (mut abouts, mut setups) = (Vec::<RunAbout>::new(), Vec::new());
        for (run, result) in checked.into_iter().enumerate() {
            let Some(result) = result.flatten() else { return Ok(None) };
            let (first, about, setup) =
                result.wrap_err_with(|| format!("{} has an invalid scenario", self.label(run)))?;
            scenario = scenario.or(first);
            abouts.push(about);
            setups.push(setup);
        }
        if self.distinct {
            self.refuse_twins(&abouts)?;
        }
        let about = About {
            name: self.name.clone(),
            version: VERSION.into(),
            overrides: run::written(&self.overrides),
            scenario: scenario.unwrap_or_default(),
            runs: abouts,
        };
        Ok(Some((about, setups)))
    }

    /// Refuses two runs of one and the same scenario, such as of 1us and 1000ns.
    fn refuse_twins(&self, runs: &[RunAbout]) -> miette::Result<()> {
        let mut order: Vec<usize> = (0..runs.len()).collect();
        order.sort_by_key(|&i| (&runs[i].fingerprint, i));
        let same = |pair: &&[usize]| runs[pair[0]].fingerprint == runs[pair[1]].fingerprint;
        match order.windows(2).filter(same).min() {
            None => Ok(()),
            Some(pair) => Err(miette!(
                help = "remove the value that equals another one",
                "{} and {} have the same scenario",
                self.label(pair[0]),
                self.label(pair[1])
            )),
        }
    }

    /// Makes the runs that are neither done nor spared.
    pub fn make(&self, about: &About, directory: Option<&Directory>, entries: &mut [Entry]) {
        let missing = |entry: &Entry| entry.row.is_none() && entry.status != Status::Spared;
        let todo: Vec<usize> = (0..entries.len()).filter(|&i| missing(&entries[i])).collect();
        let meter = GridMeter::new(todo.len(), self.jobs, self.quiet, self.tally);
        let held: Vec<AtomicI64> = (0..self.jobs).map(|_| AtomicI64::new(0)).collect();
        let make = |worker, i: usize| {
            let (run, last) = (todo[i], i + 1 == todo.len());
            // A fault of the simulator in one run does not affect the others.
            let made = catch_unwind(AssertUnwindSafe(|| {
                self.make_one((worker, run, last), &about.runs[run], directory, &meter, &held)
            }));
            made.unwrap_or_else(|panic| Entry::failed(format!("bug in xoff: {}", reason(&*panic))))
        };
        let made = pool::each(self.jobs, todo.len(), || self.stopped(), make);
        let (wall, hops) = meter.finish();
        let mut done = 0u64;
        for (&run, entry) in todo.iter().zip(made) {
            entries[run] = entry.unwrap_or_default();
            done += u64::from(entries[run].row.is_some());
        }
        if !self.quiet && !todo.is_empty() {
            let speed = human::short(hops as f64 / wall.max(1e-9));
            let runs = human::counted(done, "run");
            output::complain(&format!("{runs} in {wall:.2} s: {speed} packet-hops/s in total"));
        }
    }

    fn stopped(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) || self.broken.load(Ordering::Relaxed)
    }

    /// Makes one run and stores it. A stopped run leaves no files.
    fn make_one(
        &self,
        (worker, run, last): (usize, usize, bool),
        expected: &RunAbout,
        directory: Option<&Directory>,
        meter: &GridMeter<'_>,
        held: &[AtomicI64],
    ) -> Entry {
        let loaded = match self.load(run) {
            Ok((loaded, _, about)) if about == *expected => loaded,
            Ok(_) => {
                let why = "a file that the scenario names has changed since the grid began";
                return Entry::failed(why.into());
            }
            Err(e) => return Entry::failed(format!("a file that the scenario names has changed: {e}")),
        };
        let plan = &loaded.plan;
        let mut meter = meter.begin(worker, self.grid.name(run), Goal::new(plan));
        let threads = match self.threads {
            Some(threads) => xoff_sim::worthwhile_threads(plan, threads),
            None if last => xoff_sim::default_threads(plan, self.jobs),
            None => 1,
        };
        let threads = xoff_sim::threads_with_cores(plan, threads);
        let mut budget = Watch::begin(held, worker);
        let mut outcome = xoff_sim::run_on(plan, threads, &mut |progress| {
            meter.update(progress);
            !self.stopped() && budget.goes_on()
        });
        memory::enter(Phase::Other);
        if budget.spent() {
            outcome.stop = Stop::Memory;
        }
        let wall_seconds = meter.elapsed();
        if outcome.stop == Stop::Interrupted {
            meter.finish(None, wall_seconds, "");
            return Entry::default();
        }
        let summary = run::summarise(&self.name, &loaded, &outcome);
        let store = |d: &Directory| {
            let about = run::about(&loaded, &self.base(run).1, wall_seconds).map_err(|e| e.to_string())?;
            let write = |writer: directory::Writer| writer.write(&about, plan, &outcome, &summary);
            directory::prepare_in_grid(&d.run(&self.grid.name(run))).and_then(write).map_err(|e| {
                self.broken.store(true, Ordering::Relaxed);
                e.to_string()
            })
        };
        let row = || Row::read(&serde_json::to_value(&summary).map_err(|e| e.to_string())?);
        let entry = directory.map(store).transpose().and_then(|written| {
            Ok(match written {
                Some(written) => Entry::stored(row()?, written.summary_xxh128, wall_seconds),
                None => Entry::done(row()?),
            })
        });
        if outcome.stop == Stop::Memory && entry.is_ok() {
            meter.finish(None, wall_seconds, ", MEMORY BUDGET EXHAUSTED");
            let largest = outcome.memory.first();
            let what =
                largest.map_or(String::new(), |u| format!(": {} uses {}", u.what, human::bytes(u.bytes)));
            let at = human::time(outcome.end);
            return Entry::failed(format!("memory budget exhausted at {at}{what}; allow more with --memory"));
        }
        let entry = entry.unwrap_or_else(Entry::failed);
        let what = match (&entry.status, summary.deadlock.is_some()) {
            (Status::Failed, _) => ", FAILED",
            (Status::Lost, _) => ", LOSSLESS DROPS",
            (_, true) => ", DEADLOCK",
            _ => "",
        };
        meter.finish(Some(outcome.counters.packet_hops), wall_seconds, what);
        entry
    }
}
