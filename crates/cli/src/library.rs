//! The verbs as functions, for programs that call xoff. No result is printed, and no signal is taken. Work may use
//! three quarters of the memory that is available when it begins, or what [`limit_memory`] says: a larger plan is an
//! error, and a larger run ends and keeps its results until then. The Python package is such a program.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{ffi::OsString, thread};

use clap::Parser;
use miette::{IntoDiagnostic, Report, miette};
use serde_json::Value;
use xoff_net::units::Bytes;
use xoff_outcome::Progress;
use xoff_plan::{Loaded, Needs, variants::Variant};
use xoff_repro::experiment::SCENARIO;
use xoff_repro::{answer, library as papers};
use xoff_results::grid::compare::Entry;
use xoff_results::grid::{Axis, Grid, dataset, interval::Interval, table, until::Rule};
use xoff_results::{network, offered, size as sizes, storage};

pub use crate::grid_progress::Tally;
use crate::load::Source;
use crate::progress::Goal;
use crate::repro::ReproArgs;
use crate::size::SizeArgs;
use crate::{check, grid::Work, load, memory, queue_map, repro, run, schemes, size, store, vary};

pub use crate::run::{Unstored, VERSION};
pub use crate::store::plan::Options as PlanOptions;
pub use crate::store::work::Left;

/// A scenario's text, with the keys that were set since.
#[derive(Clone)]
pub struct Scenario {
    source: Source,
    overrides: Vec<(String, String)>,
    name: String,
}

/// An answer for programs and for people.
pub struct Answer {
    /// As `--json` prints it.
    pub data: Value,
    /// As the command line prints it.
    pub text: String,
    /// Names and contents of files that belong to it, such as pictures.
    pub files: Vec<(String, String)>,
}

/// Limits the memory of the program, and keeps large tables in files in `spill`, as `--memory` and `--spill` do.
///
/// # Errors
/// `memory` is no size, or the directory cannot be used, or there is one already.
pub fn limit_memory(memory: Option<&str>, spill: Option<&Path>) -> Result<(), Report> {
    let size = |text: &str| {
        let help = "write a size, such as \"8GB\"";
        text.parse::<Bytes>().map_err(|e| miette!(help = help, "memory = `{text}`: {e}"))
    };
    memory::limit_library(memory.map(size).transpose()?, spill)
}

impl Answer {
    fn new(data: impl serde::Serialize, text: String) -> miette::Result<Self> {
        Ok(Self { data: serde_json::to_value(data).into_diagnostic()?, text, files: Vec::new() })
    }
}

/// How a run is to be made.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Without a number, as many as a long run of this scenario can use.
    pub threads: Option<usize>,
    /// Ports to capture, as `xoff run --pcap` takes them.
    pub capture: Vec<String>,
    /// Most bytes of a captured packet, 14 to 65,535.
    pub snap: Option<u32>,
    /// Replace an older run in the directory.
    pub overwrite: bool,
}

/// Gets the part of a run that is done, 0 to 1, and the state in words; ends the run by `false`.
pub type Watch<'a> = &'a mut dyn FnMut(f64, &dyn Fn() -> String) -> bool;

impl Scenario {
    /// Reads a scenario's file, or the scenario of an experiment's.
    ///
    /// # Errors
    /// The file cannot be read, or a key or value in it is wrong.
    pub fn read(path: &Path) -> Result<Self, Report> {
        let source = Source::read(path, false)?.with_needs(Needs::Network);
        Self { source, overrides: Vec::new(), name: load::name(path) }.looked()
    }

    /// A scenario without a file. The files that it names are searched in `directory`.
    ///
    /// # Errors
    /// A key or value in it is wrong.
    pub fn of_text(name: &str, text: &str, directory: &Path) -> Result<Self, Report> {
        // Errors name it by its name: there is no such file.
        let path = if directory == Path::new(".") { name.into() } else { directory.join(name) };
        let source = Source::within(&path, text.as_bytes(), "").with_needs(Needs::Network);
        Self { source, overrides: Vec::new(), name: name.into() }.looked()
    }

    /// The same with these keys set, as by `--set`: a value is TOML or else a text.
    ///
    /// # Errors
    /// A key is unknown or a value wrong, or one of these keys replaces another one of them.
    pub fn set(&self, keys: &[(String, String)]) -> Result<Self, Report> {
        let given: Vec<(&str, &str)> = keys.iter().map(|(key, _)| ("--set", key.as_str())).collect();
        vary::complete(&given)?;
        vary::given_once(&given)?;
        let mut new = self.clone();
        for (key, value) in keys {
            new.overrides.retain(|(other, _)| !vary::replaces(key, other));
            new.overrides.push((key.clone(), value.clone()));
        }
        new.looked()
    }

    /// What [`Scenario::of_parts`] makes the same scenario of: path, text, whether the scenario is a table of it, name
    /// and overrides.
    pub fn parts(&self) -> (PathBuf, String, bool, String, Vec<(String, String)>) {
        let (text, in_table) = self.source.parts();
        let (name, overrides) = (self.name.clone(), self.overrides.clone());
        (self.source.path().into(), String::from_utf8_lossy(text).into_owned(), in_table, name, overrides)
    }

    /// A scenario of [`Scenario::parts`].
    pub fn of_parts(
        path: &Path,
        text: &str,
        in_table: bool,
        name: &str,
        overrides: Vec<(String, String)>,
    ) -> Self {
        let table = if in_table { SCENARIO } else { "" };
        let source = Source::within(path, text.as_bytes(), table).with_needs(Needs::Network);
        Self { source, overrides, name: name.into() }
    }

    fn looked(self) -> Result<Self, Report> {
        self.source.look(&self.overrides)?;
        Ok(self)
    }

    /// Its `[[variant]]` tables.
    ///
    /// # Errors
    /// None is known: they are checked when the scenario is read.
    pub fn variants(&self) -> Result<Vec<Variant>, Report> {
        Ok(self.source.variants()?)
    }

    /// The name that results have.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The keys that were set, with their values as written.
    pub fn overrides(&self) -> &[(String, String)] {
        &self.overrides
    }

    /// Plans the scenario, within the memory budget.
    ///
    /// # Errors
    /// As [`xoff_plan::load_table`]; so have all functions below. `interrupted` returned true.
    pub fn load(&self, interrupted: &dyn Fn() -> bool) -> Result<Planned<'_>, Report> {
        memory::refresh();
        let loaded = self.source.load(&self.overrides, &mut |_, _| {}, interrupted)?;
        Ok(Planned { scenario: self, loaded })
    }
}

/// A scenario that is worked out.
pub struct Planned<'a> {
    scenario: &'a Scenario,
    loaded: Loaded,
}

impl Planned<'_> {
    /// Every key with its value, and the warnings.
    pub fn resolved(&self) -> Result<(Value, Vec<String>), Report> {
        let scenario = serde_json::to_value(&self.loaded.scenario).into_diagnostic()?;
        Ok((scenario, self.loaded.warnings.iter().map(ToString::to_string).collect()))
    }

    /// `xoff topo`.
    pub fn topo(&self) -> Result<Answer, Report> {
        Answer::new(network::network(&self.loaded.plan), xoff_plan::describe::describe(&self.loaded))
    }

    /// `xoff traffic`.
    pub fn traffic(&self) -> Result<Answer, Report> {
        let offered = offered::offered(&self.scenario.name, &self.loaded);
        let text = offered::render(&offered);
        Answer::new(offered, text)
    }

    /// `xoff size --scenario`.
    pub fn size(&self) -> Result<Answer, Report> {
        let report = size::compared(&self.loaded)?;
        let text = sizes::links::render(&self.scenario.name, &report);
        Answer::new(report, text)
    }

    /// `xoff check`, with `--failures` (as it is typed) and `--out`. `None` if `watch` ended it; it sees the state in
    /// words.
    pub fn check(
        &self,
        failures: Option<&str>,
        out: Option<&Path>,
        watch: &mut dyn FnMut(&dyn Fn() -> String) -> bool,
    ) -> Result<Option<Answer>, Report> {
        let Self { scenario, loaded } = self;
        let failing = failures.map(check::failing).transpose().map_err(|e| miette!("failures: {e}"))?;
        if let Some(dir) = out {
            check::clear(dir, scenario.source.path())?;
        }
        let (report, files) =
            match check::decide(loaded, &scenario.name, check::routes(failing, loaded), watch)? {
                check::Decision::Made { report, files } => (report, files),
                check::Decision::Interrupted(_) => return Ok(None),
            };
        if let Some(dir) = out {
            check::write(dir, &files)?;
        }
        let mut answer = Answer::new(&report, xoff_check::text::render(&report))?;
        answer.files = files.into_iter().map(|(name, text)| (name.to_string(), text)).collect();
        Ok(Some(answer))
    }

    /// `xoff check --verify`: whether the certificate in this file proves that the scenario cannot deadlock.
    pub fn verify(&self, certificate: &Path) -> Result<String, Report> {
        check::verify(&self.loaded, certificate)
    }

    /// `xoff run` into the run directory `out`; returns remarks about its threads. A run that `watch` ends is stored,
    /// too, and is not complete.
    pub fn run(&self, options: &RunOptions, out: &Path, watch: Watch<'_>) -> Result<Vec<String>, Report> {
        let Self { scenario, loaded } = self;
        if loaded.scenario.traffic.is_empty() {
            return Err(miette!(help = "add a [[traffic]] table", "the scenario sends no traffic"));
        }
        let again = || load::explained(&scenario.source, &scenario.overrides, loaded.warnings.len());
        let explained = load::is_short(loaded).then(again).flatten();
        let request = run::Request {
            loaded: explained.as_ref().unwrap_or(loaded),
            name: &scenario.name,
            overrides: &scenario.overrides,
            threads: options.threads,
            ports: &options.capture,
            snap: options.snap,
            out: Some(out),
            overwrite: options.overwrite,
            live: None,
        };
        let mut ready = request.prepare()?;
        let remarks = std::mem::take(&mut ready.remarks);
        let goal = Goal::new(&request.loaded.plan);
        let began = std::time::Instant::now();
        let mut seen = |progress: &Progress| {
            watch(goal.fraction(progress), &|| goal.text(progress, began.elapsed().as_secs_f64()))
        };
        request.make(ready, &mut seen)?.written?;
        Ok(remarks)
    }
}

/// The runs of a grid: every combination of values, each under every seed.
pub struct GridRequest<'a> {
    /// What all runs begin with.
    pub scenario: &'a Scenario,
    /// Keys and their values as written.
    pub vary: Vec<(String, Vec<String>)>,
    /// Variants, which come before the varied keys.
    pub variants: Vec<Variant>,
    /// Without seeds each point has the scenario's.
    pub seeds: Vec<u64>,
    /// Runs at a time; without a number, the number of cores divided by that of threads.
    pub jobs: Option<usize>,
    /// Threads of each run; without a number one.
    pub threads: Option<usize>,
    /// The directory of the grid.
    pub out: &'a Path,
    /// Continues the interrupted grid in that directory.
    pub resume: bool,
}

impl GridRequest<'_> {
    /// The axes and seeds, if they are valid together with the scenario's own overrides.
    fn grid(&self) -> Result<Grid, Report> {
        let axis = |(key, values): &(String, Vec<String>)| {
            let help = "give a list of at least one value, such as [0.4, 0.8]";
            if values.is_empty() {
                return Err(miette!(help = help, "the key `{key}` of vary has no values"));
            }
            match values.iter().enumerate().find(|(i, value)| values[..*i].contains(value)) {
                Some((_, twice)) => Err(miette!("vary: the value {twice} of `{key}` is given twice")),
                None => Ok(Axis { key: key.clone(), values: values.clone(), named: false }),
            }
        };
        let axes = self.vary.iter().map(axis).collect::<Result<Vec<_>, _>>()?;
        let seeds = (!self.seeds.is_empty()).then(|| vary::Seeds(self.seeds.clone()));
        // A varied key takes the place of what the scenario had.
        vary::with_variants(&[], &self.variants, axes, seeds.as_ref())
    }

    /// `xoff grid plan`: writes the grid into a store, for [`work`]; returns what it is, in words.
    ///
    /// # Errors
    /// A scenario of the grid is invalid, or the store has another plan or cannot be written.
    pub fn plan(&self, store: &Path, options: PlanOptions) -> Result<String, Report> {
        memory::refresh();
        let grid = self.grid()?;
        let Scenario { source, overrides, name } = self.scenario;
        store::plan::write(
            &source.clone().with_needs(Needs::Traffic),
            name,
            overrides,
            &self.variants,
            &grid,
            options,
            store,
        )
    }

    /// Checks every plan, makes the runs and stores them. `false` if it was interrupted before the first run.
    ///
    /// # Errors
    /// A scenario of the grid is invalid, or the directory cannot be written.
    pub fn make(&self, interrupted: &AtomicBool, tally: &Tally) -> Result<bool, Report> {
        memory::refresh();
        let grid = vary::bounded(self.grid()?)?;
        let source = self.scenario.source.clone().with_needs(Needs::Traffic);
        let base = |run: usize| {
            let overrides = vary::of_variant(&grid, &self.variants, run, &self.scenario.overrides);
            (&source, overrides)
        };
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let work = Work {
            grid: &grid,
            base: &base,
            name: self.scenario.name.clone(),
            overrides: self.scenario.overrides.clone(),
            distinct: true,
            jobs: self
                .jobs
                .unwrap_or((cores / self.threads.unwrap_or(1)).max(1))
                .min(grid.runs().unwrap_or(1)),
            threads: self.threads,
            quiet: true,
            interrupted,
            tally,
            broken: AtomicBool::new(false),
        };
        let Some((about, _)) = work.check()? else { return Ok(false) };
        let mut entries = vec![Entry::default(); about.runs.len()];
        let directory = work.open(self.out, &about, self.resume, &mut entries)?;
        work.make(&about, Some(&directory), &mut entries);
        directory.write(&grid, &about, &entries).map_err(run::report)?;
        dataset::write(&directory, &grid, &entries).map_err(run::report)?;
        match entries.iter().find_map(|entry| entry.error.as_ref()) {
            // The disk is full, or the like: what could not be stored is not there.
            Some(why) if work.broken.load(Ordering::Relaxed) => {
                let (message, help) =
                    (why.clone(), "free space, and continue the grid by resume".to_string());
                Err(run::report(storage::Error { path: self.out.into(), message, help }))
            }
            _ => Ok(true),
        }
    }
}

/// How a store is worked on.
pub struct WorkOptions {
    /// Runs in parallel; without a number, as many as there are cores.
    pub jobs: Option<usize>,
    /// Time after which others take over, such as `60s`.
    pub lease: String,
    /// The rule that the store gets, such as `ci95(slowdown.p99) < 5%`.
    pub until: Option<String>,
    /// Only these chunks, instead of all that are open.
    pub chunks: Option<Vec<usize>>,
}

/// `xoff work`: makes runs of the store until all are done; returns the number of runs that it made, of those that
/// failed, and the given chunks that others work on.
///
/// # Errors
/// It is no store of this version, cannot be read or written, has other results of the same run, or a run needs more
/// than the memory budget.
pub fn work(
    place: &Path,
    options: &WorkOptions,
    interrupted: &AtomicBool,
    tally: &Tally,
) -> Result<(usize, usize, Vec<usize>), Report> {
    memory::refresh();
    let WorkOptions { jobs, lease, until, chunks } = options;
    let lease = lease.parse().map_err(|e| miette!(help = "such as 60s", "lease = `{lease}`: {e}"))?;
    let until = until.as_deref().map(rule).transpose()?;
    let these = chunks.clone();
    let options = store::work::Options { jobs: *jobs, lease, until, chunks: None, these, quiet: true };
    let ended = store::work::make(place, &options, interrupted, tally)?;
    if ended.spent {
        return Err(miette!(help = "allow more, or use fewer jobs", "the memory budget is exhausted"));
    }
    Ok((ended.runs, ended.failed, ended.busy))
}

fn rule(text: &str) -> Result<Rule, Report> {
    Rule::parse(text).map_err(|why| miette!("until = {why}"))
}

/// What is left to be made of a store. The store gets the rule `until`.
///
/// # Errors
/// It is no store of this version, cannot be read, or has another rule.
pub fn left(place: &Path, until: Option<&str>) -> Result<Left, Report> {
    store::work::left(place, until.map(rule).transpose()?.as_ref())
}

/// The page of a store, as HTML.
///
/// # Errors
/// It is no store of this version, a part of it is damaged, or it has too many points.
pub fn store_page(place: &Path) -> Result<String, Report> {
    store::answer::page(place).map(|(page, _)| page)
}

/// `xoff grid report`; returns the place of the page.
///
/// # Errors
/// As [`store_page`], or the page cannot be written.
pub fn store_report(place: &Path, out: Option<&Path>) -> Result<PathBuf, Report> {
    let (page, bucket) = store::answer::page(place)?;
    store::answer::write_page(&page, &bucket, out)
}

/// `xoff grid status`.
///
/// # Errors
/// It is no store of this version, or cannot be read.
pub fn store_status(place: &Path) -> Result<Answer, Report> {
    let state = store::answer::state(place)?;
    Answer::new(state.data, state.text)
}

/// `xoff grid table`.
///
/// # Errors
/// It is no store of this version, a part of it is damaged, or `out` cannot be written.
pub fn store_table(
    place: &Path,
    out: Option<&Path>,
    baseline: Option<&str>,
    interval: Interval,
) -> Result<Answer, Report> {
    let (grid, comparison) = store::answer::comparison(place, out, baseline, interval)?;
    let text = table::render(&grid, &comparison);
    Answer::new(comparison, text)
}

#[derive(Parser)]
#[command(no_binary_name = true, name = "xoff size")]
struct SizeCommand {
    #[command(flatten)]
    args: SizeArgs,
}

#[derive(Parser)]
#[command(no_binary_name = true, name = "xoff repro")]
struct ReproCommand {
    #[command(flatten)]
    args: ReproArgs,
}

/// Reads arguments as the command line has them. The message has no usage.
fn parsed<T: Parser>(arguments: &[String]) -> Result<T, Report> {
    T::try_parse_from(arguments.iter().map(OsString::from)).map_err(|e| {
        let text = e.render().to_string();
        let first: Vec<&str> =
            text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim).collect();
        miette!("{}", first.join(" ").trim_start_matches("error: "))
    })
}

/// `xoff size` with these arguments, such as `--rate` and `400Gbps`. Its files are a chart of buffer over distance.
///
/// # Errors
/// An argument is missing or refused.
pub fn size(arguments: &[String]) -> Result<Answer, Report> {
    let args = parsed::<SizeCommand>(arguments)?.args;
    let question = size::question(&args)?;
    let Some(distance) = args.distance else { return Err(miette!("--distance is missing")) };
    if args.writes() {
        let help =
            "the chart is in the files of the answer, and the links of a scenario are asked by Scenario.size";
        return Err(miette!(help = help, "curve, points, json, all and scenario are not possible here"));
    }
    let schemes = size::schemes(&args);
    let request = size::request(&args, &question, distance, &schemes);
    let mut answer = Answer::new(sizes::json(&request), sizes::render(&request))?;
    answer.files.push(("size.svg".into(), size::chart(&args, &question)));
    Ok(answer)
}

/// `xoff schemes`: of all schemes or of one; or its queues in a network, which is `ndc(4,1)` or a scenario's file, also
/// only those of one port.
///
/// # Errors
/// There is no such scheme, network or port.
pub fn schemes(scheme: Option<&str>, network: Option<&str>, port: Option<&str>) -> Result<String, Report> {
    match network {
        Some(network) => queue_map::describe(scheme, network, port),
        None => schemes::list(scheme),
    }
}

/// `xoff schema`.
///
/// # Errors
/// None is known.
pub fn schema() -> Result<Value, Report> {
    serde_json::to_value(xoff_plan::schema::schema()).into_diagnostic()
}

/// `xoff repro` with these arguments, such as `PAPER/FIGURE` and `--quick`. `None` if it was interrupted before the
/// first run.
///
/// # Errors
/// The experiments cannot be read, or the results not be written.
pub fn repro(arguments: &[String], interrupted: &AtomicBool) -> Result<Option<Answer>, Report> {
    let args = parsed::<ReproCommand>(arguments)?.args;
    let chosen = papers::choose(&papers::load_from(&args.place())?, &args.what)?;
    if args.list {
        return Answer::new(Value::Null, repro::list(&args, &chosen)).map(Some);
    }
    let mut text = String::new();
    let made = repro::make(&args, &chosen, interrupted, &mut |part| {
        text += part;
        Ok(())
    })?;
    let Some(made) = made else { return Ok(None) };
    text += &answer::sum(&made.results);
    Answer::new(&made.results, text).map(Some)
}
