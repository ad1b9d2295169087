//! `xoff repro`: runs a paper's experiments, measures, and compares with the paper's claims.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{num::NonZeroUsize, process::ExitCode, thread};

use miette::{IntoDiagnostic, WrapErr, miette};
use xoff_plan::plan::Setup;
use xoff_repro::experiment::{Experiment, SCENARIO};
use xoff_repro::library::{self, Item, Paper, Place};
use xoff_repro::metrics::{Run, Value};
use xoff_repro::read::{Base, is_experiment};
use xoff_repro::report::{self, AsChosen, ExperimentResult, Results};
use xoff_repro::{answer, equal, evaluate, page, plot::Drawn, runs::Change, sensitivity, site};
use xoff_results::grid::Grid;
use xoff_results::grid::compare::{Entry, Status};
use xoff_results::grid::directory::{About, Directory, MANIFEST, RUNS};
use xoff_results::report::{Document, Papers};
use xoff_results::temporary::{make_directories, put};

use crate::grid_progress::Tally;
use crate::run::{LOST, VERSION};
use crate::{FAILED, file, grid::Work, interrupt, load::Source, output, pool};

/// The file of an experiment's result, in its directory.
const RESULT: &str = "result.json";
const RESULTS: &str = "results.json";
/// The directory of the runs of `--sensitivity`, in that of an experiment.
const SENSITIVITY: &str = "sensitivity";

/// Arguments of `xoff repro`.
#[derive(clap::Args)]
pub struct ReproArgs {
    /// Papers and experiments, or one claim [default: all papers]
    #[arg(value_name = "PAPER[/FIGURE[.CLAIM]]")]
    pub what: Vec<String>,
    /// List papers, experiments and missing parts; run nothing
    #[arg(long, conflicts_with_all = ["quick", "sensitivity", "json", "resume", "out", "jobs"])]
    pub list: bool,
    /// Run the shorter version of each experiment
    #[arg(long)]
    quick: bool,
    /// Change each assumed value separately, and list the verdicts that change
    #[arg(long)]
    sensitivity: bool,
    /// Runs in parallel; each needs its own memory [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = crate::jobs)]
    jobs: Option<NonZeroUsize>,
    /// Continue an interrupted command, given the same experiments and directory
    #[arg(long)]
    resume: bool,
    /// Directory for the results [default: xoff-repro, with --quick xoff-repro-quick]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Earlier results.json; its experiments that are not run now are added to the new results
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    beside: Option<PathBuf>,
    /// Directory of the experiments [default: experiments, if it contains some, or else those in xoff]
    #[arg(long, value_name = "DIR")]
    experiments: Option<PathBuf>,
    /// Write the experiments that xoff contains to a directory; run nothing
    #[arg(long, value_name = "DIR", exclusive = true)]
    write: Option<PathBuf>,
    /// Print results.json instead of tables
    #[arg(long)]
    json: bool,
    /// Print no progress and no timing
    #[arg(long, short)]
    quiet: bool,
}

impl ReproArgs {
    pub fn place(&self) -> Place {
        Place::found(self.experiments.as_deref())
    }
}

pub fn repro(args: &ReproArgs) -> miette::Result<ExitCode> {
    if let Some(out) = &args.write {
        output::create_all(out, library::BUNDLED)?;
        let count =
            library::load_from(&Place::Bundled)?.iter().map(|paper| paper.experiments.len()).sum::<usize>();
        output::print(&format!("wrote {count} experiments to {}\n", out.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let papers = library::choose(&library::load_from(&args.place())?, &args.what)?;
    if args.list {
        output::print(&list(args, &papers))?;
        return Ok(ExitCode::SUCCESS);
    }
    let interrupted = interrupt::flag()?;
    let Some(Made { results, complete, failed, lost, out }) =
        make(args, &papers, &interrupted, &mut output::print)?
    else {
        output::complain("interrupted before the first run");
        return Ok(ExitCode::from(interrupt::INTERRUPTED));
    };
    let text = if args.json { output::json(&results)? } else { answer::sum(&results) };
    output::print(&text)?;
    if !args.quiet {
        let slowest = answer::slowest(&results);
        if !slowest.is_empty() {
            output::complain(&slowest);
        }
        output::complain(&format!("written to {}", out.display()));
    }
    let stopped = interrupted.load(Ordering::Relaxed) && !complete;
    Ok(output::status(&[(stopped, interrupt::INTERRUPTED), (failed, FAILED), (lost, LOST)]))
}

/// Papers and experiments, and where they are from if it is no directory.
pub fn list(args: &ReproArgs, papers: &[Paper]) -> String {
    let text = answer::list(papers);
    match args.place() {
        Place::Directory(_) => text,
        Place::Bundled => {
            text + "\nxoff contains these experiments; `xoff repro --write DIR` writes their files.\n"
        }
    }
}

/// What `xoff repro` made.
pub struct Made {
    pub results: Results,
    /// Whether all runs of these experiments are there.
    pub complete: bool,
    /// Whether a run failed, or lost packets of a lossless priority.
    pub failed: bool,
    pub lost: bool,
    /// The directory of the results.
    pub out: PathBuf,
}

/// Runs the experiments of these papers, and stores the results. The answer about each experiment goes to
/// `print`. `None` if it was interrupted before the first run.
pub fn make(
    args: &ReproArgs,
    papers: &[Paper],
    interrupted: &AtomicBool,
    print: &mut dyn FnMut(&str) -> miette::Result<()>,
) -> miette::Result<Option<Made>> {
    let claim = args.what.first().and_then(|what| library::claim(what));
    if claim.is_some() && args.beside.is_some() {
        let help = "name the experiment instead of the claim";
        return Err(miette!(help = help, "--beside cannot add one claim"));
    }
    if args.quick && args.beside.is_some() && !args.sensitivity {
        let help = "add --sensitivity, whose table is stored, or remove --quick";
        return Err(miette!(help = help, "--beside stores nothing of the quick version"));
    }
    let default = if args.quick { "xoff-repro-quick" } else { "xoff-repro" };
    let out = args.out.clone().unwrap_or_else(|| default.into());
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let before = args.beside.as_deref().map(stored).transpose()?;
    let jobs = args.jobs.map_or(cores, NonZeroUsize::get);
    let place = args.place();
    let cx = Context { args, place: &place, out: &out, jobs, interrupted };
    // Every plan of every experiment is worked out before the first one runs.
    // Experiments that look at the same runs share a task.
    let items: Vec<&Item> = papers.iter().flat_map(|p| &p.experiments).collect();
    let mut tasks: Vec<Task<'_>> = Vec::new();
    for (i, item) in items.iter().enumerate() {
        let e = &item.read.experiment;
        let owner = item.owner();
        match tasks.iter_mut().find(|t| t.path == owner.path) {
            Some(task) => task.shown.push((i, e)),
            None => {
                let Some(mut task) = cx.tasks(owner)? else { return Ok(None) };
                task.shown.push((i, e));
                tasks.push(task);
            }
        }
        let task = tasks.iter().find(|t| t.path == owner.path).expect("it was found or made");
        let per_run = task.setups.len() / task.owner.run.len();
        equal::check(e, claim.is_none(), &|run| task.setups[run * per_run].as_ref())
            .map_err(|(message, help)| miette!(help = help, "{}: {message}", item.path.display()))?;
    }
    let mut results = Results {
        format: report::FORMAT.into(),
        format_version: report::FORMAT_VERSION,
        xoff_version: VERSION.into(),
        quick: args.quick,
        complete: true,
        experiments: Vec::new(),
        others: Vec::new(),
        papers: report::in_words(papers),
        counts: Vec::new(),
    };
    let mut made: Vec<Option<ExperimentResult>> = vec![None; items.len()];
    for task in &tasks {
        for ((i, _), mut result) in task.shown.iter().zip(cx.experiments(task)?) {
            if claim.is_some() {
                result.commands = cx.commands(task);
            }
            results.complete &= result.done == result.runs;
            if !args.json {
                let text = match claim {
                    Some(_) => answer::claim(&result, args.quick, place == Place::Bundled),
                    None => answer::experiment(&result, args.quick),
                };
                print(&format!("{text}\n"))?;
            }
            made[*i] = Some(result);
        }
    }
    results.experiments.extend(made.into_iter().flatten());
    results.others = report::others(papers);
    for other in results.others.iter().filter(|_| claim.is_some() && !args.json) {
        print(&format!("{}\n", answer::unmeasured(other)))?;
    }
    let any = |keep: fn(&ExperimentResult) -> bool| results.experiments.iter().any(keep);
    let (failed, lost) = (any(|e| !e.failed.is_empty()), any(|e| e.lost > 0));
    let complete = results.complete;
    results = match before {
        // The full results stay, and have the table of the quick version beside them.
        Some(before) if args.quick => before.with_tables(results, &library::load_from(&place)?),
        Some(before) => results.beside(before, &library::load_from(&place)?),
        None => results.counted(),
    };
    make_directories(&out).map_err(crate::run::report)?;
    output::sweep(&out);
    store(&out.join(RESULTS), &results)?;
    let details = out.join(page::DETAILS);
    make_directories(&details).map_err(crate::run::report)?;
    output::sweep(&details);
    for page in page::render(&results) {
        write(&out.join(&page.path), &page.text)?;
    }
    Ok(Some(Made { results, complete, failed, lost, out }))
}

/// Whether it is a directory of results of `xoff repro`.
pub fn has_results(path: &Path) -> bool {
    path.join(RESULTS).exists()
}

/// The page of a directory with the results of `xoff repro`.
pub fn document(path: &Path) -> miette::Result<Document> {
    let results = read(&path.join(RESULTS))?;
    let name =
        path.file_name().map_or_else(|| "xoff-repro".into(), |name| name.to_string_lossy().into_owned());
    let headline = site::headline(&results);
    let site = serde_json::to_value(site::site(&results, path)).into_diagnostic()?;
    Ok(Document::Papers(Box::new(Papers { name, headline, site })))
}

fn read(path: &Path) -> miette::Result<Results> {
    let shown = path.display();
    let text = file::read(path).into_diagnostic().wrap_err_with(|| format!("{shown} cannot be read"))?;
    serde_json::from_slice(&text)
        .into_diagnostic()
        .wrap_err_with(|| format!("{shown} is not a results.json of `xoff repro`"))
}

fn stored(path: &Path) -> miette::Result<Results> {
    let (shown, results) = (path.display(), read(path)?);
    if results.quick {
        return Err(miette!(
            help = "give the results of a command without --quick",
            "--beside: {shown} has results of --quick, which cannot be combined with full results"
        ));
    }
    Ok(results)
}

struct Context<'a> {
    args: &'a ReproArgs,
    place: &'a Place,
    out: &'a Path,
    jobs: usize,
    interrupted: &'a AtomicBool,
}

/// Runs whose plans have been checked, and the experiments that look at them.
struct Task<'a> {
    /// The experiment whose runs they are, and its file.
    owner: &'a Experiment,
    path: &'a Path,
    /// The experiments that use them, with their positions among all chosen ones.
    shown: Vec<(usize, &'a Experiment)>,
    sources: Vec<Source>,
    about: About,
    /// What the runs that are compared should have in common.
    setups: Vec<Option<Setup>>,
    /// The changes of `--sensitivity`, and its grid.
    changes: Vec<Change>,
    changed: Option<About>,
}

impl Task<'_> {
    /// The run without changes that has the scenario of a run of the changes: a change may concern only some runs.
    fn unchanged(&self, changed: &About, run: usize) -> Option<usize> {
        let fingerprint = &changed.runs[run].fingerprint;
        self.about.runs.iter().position(|unchanged| unchanged.fingerprint == *fingerprint)
    }

    /// Whether a run of the changes must be made for a verdict.
    fn needs_changed(&self, changed: &About, run: usize) -> bool {
        let per_run = self.setups.len() / self.owner.run.len();
        let name = &self.owner.run[run / per_run % self.owner.run.len()].name;
        self.shown.iter().any(|(_, e)| sensitivity::judges(e, name)) && self.unchanged(changed, run).is_none()
    }
}

impl Context<'_> {
    /// Works the runs of an experiment out; `None` if it was interrupted.
    fn tasks<'i>(&self, item: &'i Item) -> miette::Result<Option<Task<'i>>> {
        let e = &item.read.experiment;
        let source = |base: &Base| self.source(item, base);
        let sources = item.read.bases.iter().map(source).collect::<miette::Result<Vec<_>>>()?;
        let changes =
            if self.args.sensitivity { sensitivity::changes(e, self.args.quick) } else { Ok(Vec::new()) };
        let changes = changes.map_err(|why| miette!("{}: {why}", item.path.display()))?;
        let of = |changes: &[Change]| {
            let grid = e.grid(self.args.quick, changes);
            self.with_work(e, &sources, changes, &grid, |work| {
                work.check().wrap_err_with(|| item.path.display().to_string())
            })
        };
        let Some((about, setups)) = of(&[])? else { return Ok(None) };
        let changed = if changes.is_empty() { None } else { of(&changes)?.map(|(about, _)| about) };
        if !changes.is_empty() && changed.is_none() {
            return Ok(None);
        }
        let (owner, path, shown) = (e, item.path.as_path(), Vec::new());
        Ok(Some(Task { owner, path, shown, sources, about, setups, changes, changed }))
    }

    /// A scenario of an experiment.
    fn source(&self, item: &Item, base: &Base) -> miette::Result<Source> {
        let path = match base {
            Base::Inline => item.path.clone(),
            Base::File(file) => item.path.with_file_name(file),
        };
        match (self.place, base) {
            (Place::Directory(_), Base::Inline) => Ok(Source::within(&path, &item.text, SCENARIO)),
            (Place::Directory(_), Base::File(_)) => Source::read(&path, false),
            (Place::Bundled, _) => {
                let text = self.place.read(&path).into_diagnostic();
                let text = text.wrap_err_with(|| format!("xoff does not contain {}", path.display()))?;
                let (in_table, text) = (is_experiment(&text), String::from_utf8_lossy(&text));
                Ok(Source::embedded(&path, &text, in_table, library::bundled_beside(&path)))
            }
        }
    }

    /// Calls `f` with the runs of a grid of an experiment.
    fn with_work<T>(
        &self,
        e: &Experiment,
        sources: &[Source],
        changes: &[Change],
        grid: &Grid,
        f: impl FnOnce(&Work<'_>) -> T,
    ) -> T {
        let per_run: usize = e.vary(self.args.quick).iter().map(|v| v.values.len()).product();
        let base = |run: usize| {
            let variant = grid.point_of(run) / per_run;
            let (change, run) = (variant / e.run.len(), variant % e.run.len());
            (&sources[run], e.overrides(run, self.args.quick, changes.get(change)))
        };
        f(&Work {
            grid,
            base: &base,
            name: format!("{}/{}", e.paper, e.id),
            overrides: Vec::new(),
            // A choice may concern only some of the runs, and the shorter version may not have what tells two apart.
            distinct: changes.is_empty() && !self.args.quick,
            jobs: self.jobs,
            threads: None,
            quiet: self.args.quiet,
            interrupted: self.interrupted,
            tally: &Tally::default(),
            broken: AtomicBool::new(false),
        })
    }

    /// The command of each run. Each run has its own directory.
    fn commands(&self, task: &Task<'_>) -> Vec<report::RunCommand> {
        let grid = task.owner.grid(self.args.quick, &[]);
        let out = format!("xoff-runs/{}-{}", task.owner.paper, task.owner.id);
        self.with_work(task.owner, &task.sources, &[], &grid, |work| {
            let command = |run| report::RunCommand {
                run: grid.label(run),
                command: format!("{} --out {out}/{}", work.command(run), grid.name(run)),
            };
            (0..task.about.runs.len()).map(command).collect()
        })
    }

    /// Makes the runs and judges the claims of each experiment that looks at them.
    fn experiments(&self, task: &Task<'_>) -> miette::Result<Vec<ExperimentResult>> {
        let runs = self.out.join(&task.owner.paper).join(&task.owner.id);
        let made = self.grid(task, &[], &task.about, &runs, &|_| true)?;
        let grid = |about| {
            let needs = |run| task.needs_changed(about, run);
            self.grid(task, &task.changes, about, &runs.join(SENSITIVITY), &needs)
        };
        let changed = task.changed.as_ref().map(grid).transpose()?;
        task.shown.iter().map(|(_, e)| self.experiment(task, e, &runs, &made, changed.as_ref())).collect()
    }

    /// Judges the claims of an experiment by the runs at `runs`, and draws it.
    fn experiment(
        &self,
        task: &Task<'_>,
        e: &Experiment,
        runs: &Path,
        made: &MadeGrid,
        changed: Option<&MadeGrid>,
    ) -> miette::Result<ExperimentResult> {
        let place = self.out.join(&e.paper).join(&e.id);
        make_directories(&place).map_err(crate::run::report)?;
        output::sweep(&place);
        let MadeGrid { grid, entries, .. } = made;
        let measured = self.measured(e, made)?;
        let claims = evaluate::claims(e, self.args.quick, grid, &measured, 0);
        let count = |status| entries.iter().filter(|e| e.status == status).count();
        let fault = |(i, e): (usize, &Entry)| Some(format!("{}: {}", grid.label(i), e.error.as_ref()?));
        let mut result = ExperimentResult {
            paper: e.paper.clone(),
            id: e.id.clone(),
            title: e.title.clone(),
            section: e.section.clone(),
            kind: e.kind,
            note: e.note.clone(),
            runs_of: e.runs_of.clone(),
            unequal: e.unequal.clone(),
            runs: entries.len(),
            done: entries.iter().filter(|e| e.row.is_some()).count(),
            lost: count(Status::Lost),
            failed: entries.iter().enumerate().filter_map(fault).collect(),
            seconds: e.runs_of.is_none().then(|| seconds(made)),
            seeds: grid.seeds.clone(),
            chosen: report::chosen(e),
            fixed: e.fixed.clone(),
            claims,
            plots: Vec::new(),
            // Empty if no choice has a key; `None` if the user did not request it.
            sensitivity: self.args.sensitivity.then(Vec::new),
            as_chosen: None,
            commands: Vec::new(),
            values: evaluate::references(e, self.args.quick, grid, &measured),
        };
        let place_of = |run| runs.join(RUNS).join(grid.name(run));
        let drawn = Drawn { e, quick: self.args.quick, grid, measured: &measured, place: &place_of };
        for plot in &e.plot {
            let figure = drawn.figure(plot).map_err(|e| miette!("{e}"))?;
            write(&place.join(format!("{}.svg", plot.name)), &figure.svg())?;
            write(&place.join(format!("{}.csv", plot.name)), &figure.csv())?;
            result.plots.push(plot.name.clone());
        }
        if let (Some(changed), Some(about)) = (changed, &task.changed) {
            let (unchanged, entries) = (entries, &changed.entries);
            let grid = &changed.grid;
            let mut of_changes = self.measured(e, changed)?;
            result.runs += entries.iter().filter(|e| e.status != Status::Spared).count();
            result.done += entries.iter().filter(|e| e.row.is_some()).count();
            result.seconds = result.seconds.map(|runs| runs + seconds(changed));
            let mut pending: Vec<bool> = entries.iter().map(|e| e.status == Status::Pending).collect();
            for (run, values) in of_changes.iter_mut().enumerate() {
                if let Some(same) = task.unchanged(about, run) {
                    values.clone_from(&measured[same]);
                    pending[run] = unchanged[same].status == Status::Pending;
                }
            }
            let runs = entries.len() / task.changes.len();
            // Without all of its runs a change says nothing.
            let made = |i: usize| pending[i * runs..][..runs].iter().all(|&pending| !pending);
            let points = runs / grid.per_point();
            let changes = (0..task.changes.len()).filter(|&i| made(i)).map(|i| {
                let after = evaluate::claims(e, self.args.quick, grid, &of_changes, i * points);
                let change = grid.axes[0].values[i].clone();
                sensitivity::result(change, &result.claims, &after)
            });
            result.sensitivity = Some(changes.collect());
        }
        if let Some(table) = &mut result.sensitivity {
            if measured.iter().all(Option::is_some) {
                table.extend(sensitivity::readings(e, self.args.quick, grid, &measured, &result.claims));
            }
            let claims = sensitivity::numbers(&result.claims);
            result.as_chosen = (!table.is_empty()).then_some(AsChosen { quick: self.args.quick, claims });
        }
        store(&place.join(RESULT), &result)?;
        Ok(result)
    }

    /// Makes the runs of a grid that are needed and not there.
    fn grid(
        &self,
        task: &Task<'_>,
        changes: &[Change],
        about: &About,
        place: &Path,
        needs: &dyn Fn(usize) -> bool,
    ) -> miette::Result<MadeGrid> {
        let grid = task.owner.grid(self.args.quick, changes);
        let mut entries = vec![Entry::default(); about.runs.len()];
        // An interrupted process leaves no files of this experiment if the experiment had not begun.
        let resume = self.args.resume && place.join(MANIFEST).exists();
        let directory = self.with_work(task.owner, &task.sources, changes, &grid, |work| {
            let directory = work.open(place, about, resume, &mut entries)?;
            for (_, entry) in entries.iter_mut().enumerate().filter(|&(run, _)| !needs(run)) {
                *entry = Entry::spared();
            }
            work.make(about, Some(&directory), &mut entries);
            directory.write(&grid, about, &entries).map_err(crate::run::report)?;
            miette::Result::<Directory>::Ok(directory)
        })?;
        Ok(MadeGrid { grid, entries, directory })
    }

    /// Measures the experiment's metrics in every completed run.
    fn measured(&self, e: &Experiment, made: &MadeGrid) -> miette::Result<Vec<Option<Vec<Value>>>> {
        let measure = |_, i: usize| {
            made.entries[i].row.as_ref()?;
            let run = Run::at(&made.directory.run(&made.grid.name(i)));
            Some(e.metric.iter().map(|m| run.measure(m)).collect::<Result<Vec<Value>, String>>())
        };
        let measured = pool::each(self.jobs, made.entries.len(), || false, measure);
        let measured = measured.into_iter().map(|m| m.flatten().transpose());
        measured
            .collect::<Result<_, String>>()
            .map_err(|e| miette!(help = "Remove that run, then repeat the command with --resume.", "{e}"))
    }
}

struct MadeGrid {
    grid: Grid,
    entries: Vec<Entry>,
    directory: Directory,
}

/// Seconds of the simulation of all runs, to a thousandth.
fn seconds(made: &MadeGrid) -> f64 {
    (made.entries.iter().map(|e| e.seconds).sum::<f64>() * 1e3).round() / 1e3
}

fn write(path: &Path, text: &str) -> miette::Result<()> {
    put(path, text).map_err(crate::run::report)
}

fn store(path: &Path, value: &impl serde::Serialize) -> miette::Result<()> {
    write(path, &output::json(value)?)
}
