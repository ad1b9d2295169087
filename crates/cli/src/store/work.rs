//! `xoff work`: takes chunks of a store by lease, makes their runs, and commits them.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, io, num::NonZeroUsize, thread};

use serde_json::{Value, json};
use xoff_net::units::Span;
use xoff_plan::{Known, plan::Plan};
use xoff_results::columns::{Column, Groups, ROWS_PER_GROUP};
use xoff_results::grid::{dataset, directory, directory::axis_column, metrics::Row, until::Rule};
use xoff_results::integrity::reason;
use xoff_results::layout::MANIFEST;
use xoff_results::summary::Summary;
use xoff_results::{data, directory::About, human, storage};
use xoff_sim::outcome::{Outcome, Stop};
use xoff_store::Error;
use xoff_store::lease::{self, Taken};
use xoff_store::record::{self, Part, Record};

use super::need::{self, Need};
use super::{KEPT, Opened, now_ms, report};
use crate::grid_progress::Tally;
use crate::memory::{self, Watch};
use crate::progress::seconds;
use crate::{FAILED, interrupt, output, pool, run};

/// First time between two looks for chunks that others have given up; it doubles.
const WAIT: Duration = Duration::from_secs(1);
/// Its longest.
const LONGEST: Duration = Duration::from_secs(30);
/// Chunks in a row that others have, after which a worker looks at the store again.
const MISSES: usize = 4;
/// Distance of looks at Ctrl-C meanwhile.
const LOOK: Duration = Duration::from_millis(50);

#[derive(clap::Args)]
pub struct WorkArgs {
    /// The store of `xoff grid plan`
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// Runs in parallel; each needs its own memory [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = crate::jobs)]
    jobs: Option<NonZeroUsize>,
    /// Time after which others take over a chunk of a worker that has ended without a word
    #[arg(long, value_name = "TIME", default_value = "60s")]
    lease: Span,
    /// Make seeds only until half the 95% confidence interval of a metric is below a part of its mean, such as
    /// 'ci95(slowdown.p99) < 5%'. The store keeps the rule, and every worker follows it
    #[arg(long, value_name = "RULE", value_parser = Rule::parse)]
    until: Option<Rule>,
    /// End after so many chunks
    #[arg(long, value_name = "N", value_parser = crate::whole::<u32>(1, u32::MAX.into()))]
    chunks: Option<u32>,
    /// Print no progress
    #[arg(long, short)]
    quiet: bool,
}

/// How a worker works.
pub struct Options {
    /// Runs in parallel; without a number, as many as there are cores.
    pub jobs: Option<usize>,
    /// Time after which others take over a chunk.
    pub lease: Span,
    /// The rule that the store gets.
    pub until: Option<Rule>,
    /// Most chunks.
    pub chunks: Option<usize>,
    /// Only these chunks, each at most once, instead of all that are open.
    pub these: Option<Vec<usize>>,
    /// It says nothing.
    pub quiet: bool,
}

pub fn work(args: &WorkArgs) -> miette::Result<ExitCode> {
    let options = Options {
        jobs: args.jobs.map(NonZeroUsize::get),
        lease: args.lease,
        until: args.until.clone(),
        chunks: args.chunks.map(|n| n as usize),
        these: None,
        quiet: args.quiet,
    };
    let interrupted = interrupt::flag()?;
    let ended = make(&args.store, &options, &interrupted, &Tally::default())?;
    if ended.failed > 0 && !args.quiet {
        let (failed, runs) = (ended.failed, human::counted(ended.runs as u64, "run"));
        output::complain(&format!(
            "{failed} of {runs} failed: xoff grid status {} says why",
            args.store.display()
        ));
    }
    if ended.spent {
        output::complain("the memory budget is exhausted: allow more with --memory, or use fewer --jobs");
    }
    Ok(output::status(&[
        (ended.spent, memory::SPENT),
        (interrupted.load(Ordering::Relaxed), interrupt::INTERRUPTED),
        (ended.failed > 0, FAILED),
    ]))
}

/// Makes runs of a store until all are done.
pub fn make(
    store: &Path,
    options: &Options,
    interrupted: &AtomicBool,
    tally: &Tally,
) -> miette::Result<Ended> {
    let opened = Opened::at(store)?;
    let lease_ms = options.lease.0 / 1_000_000_000;
    if lease_ms < 100 {
        return Err(miette::miette!(help = "such as 60s", "--lease: the minimum is 100 ms"));
    }
    if let Some(rule) = &options.until {
        need::set_rule(&opened, rule).map_err(report)?;
    }
    if let Some(chunk) = options.these.iter().flatten().find(|&&chunk| chunk >= opened.layout.chunks()) {
        return Err(miette::miette!("there is no chunk {chunk}: the store has {}", opened.layout.chunks()));
    }
    opened.bucket.sweep("done");
    let crew = Crew {
        opened: &opened,
        lease_ms,
        quiet: options.quiet,
        interrupted,
        tally,
        next: AtomicUsize::new(0),
        left: AtomicUsize::new(options.chunks.unwrap_or(usize::MAX)),
        spent: AtomicBool::new(false),
        failed: AtomicBool::new(false),
        last: OnceLock::new(),
    };
    let jobs = options.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, NonZeroUsize::get));
    let most = options.these.as_ref().map_or(opened.layout.chunks(), Vec::len).max(1);
    let host = host();
    let workers = pool::each(
        jobs.min(most),
        jobs.min(most),
        || false,
        |_, _| {
            let mut worker =
                Worker { crew: &crew, name: name(&host), known: Known::default(), ended: Ended::default() };
            let made = match &options.these {
                Some(these) => worker.these(these),
                None => worker.all(),
            };
            // Without the store nobody can go on.
            crew.failed.fetch_or(made.is_err(), Ordering::Relaxed);
            made.map(|()| worker.ended)
        },
    );
    let mut ended = Ended { spent: crew.spent.load(Ordering::Relaxed), ..Ended::default() };
    for worker in workers.into_iter().flatten() {
        let worker = worker.map_err(report)?;
        ended.runs += worker.runs;
        ended.failed += worker.failed;
        ended.hops += worker.hops;
        ended.busy.extend(worker.busy);
    }
    if let Some(last) = crew.last.get() {
        crew.say(last);
    }
    Ok(ended)
}

fn host() -> String {
    sysinfo::System::host_name().unwrap_or_else(|| "unknown".into())
}

/// What is left to be made.
pub struct Left {
    /// The chunks that can be made now, each with the number of its runs.
    pub chunks: Vec<(usize, usize)>,
    /// Runs that are needed, as far as this is known.
    pub needed: usize,
    /// Those of them that are done.
    pub done: usize,
}

/// Looks at a store, which gets the rule `until`.
pub fn left(store: &Path, until: Option<&Rule>) -> miette::Result<Left> {
    let opened = Opened::at(store)?;
    if let Some(rule) = until {
        need::set_rule(&opened, rule).map_err(report)?;
    }
    let open = Need::of(&opened).and_then(|mut need| need.look()).map_err(report)?;
    let runs = |chunk: usize| (chunk, opened.layout.runs(chunk).len());
    Ok(Left {
        needed: opened.grid.runs().unwrap_or(0) - opened.runs_of(&open.spared),
        done: opened.runs_of(&open.done),
        chunks: open.chunks.into_iter().map(runs).collect(),
    })
}

/// A name that no other worker has: host, process, time, and which worker of the process.
fn name(host: &str) -> String {
    static WORKERS: AtomicUsize = AtomicUsize::new(0);
    let (process, worker) = (std::process::id(), WORKERS.fetch_add(1, Ordering::Relaxed));
    format!("{host}:{process}:{:x}.{worker}", now_ms() & 0xffff)
}

/// The workers of a process. Each worker takes chunks, and makes the runs of a chunk one after the other.
struct Crew<'a> {
    opened: &'a Opened,
    lease_ms: u64,
    quiet: bool,
    interrupted: &'a AtomicBool,
    /// Runs that are open, and runs that they made.
    tally: &'a Tally,
    /// Position of the next one of given chunks.
    next: AtomicUsize,
    /// Chunks that they may still make.
    left: AtomicUsize,
    /// A run was beyond the memory budget of this machine, which says nothing of the run.
    spent: AtomicBool,
    /// One of them had an error.
    failed: AtomicBool,
    /// What to say after all of them ended: that nothing is left to be made.
    last: OnceLock<String>,
}

/// One of them.
struct Worker<'a> {
    crew: &'a Crew<'a>,
    name: String,
    /// The network of its last run.
    known: Known,
    ended: Ended,
}

/// What a worker has done.
#[derive(Default)]
pub struct Ended {
    /// Runs that it made.
    pub runs: usize,
    /// Those of them that failed.
    pub failed: usize,
    pub hops: u64,
    /// It ended because the memory budget was exhausted.
    pub spent: bool,
    /// Of the chunks that it was to make, those that others work on.
    pub busy: Vec<usize>,
}

/// What became of a chunk.
#[derive(PartialEq)]
enum Chunk {
    /// It is done, or not to be made.
    Over,
    /// Somebody else works on it.
    Busy,
    Made,
}

impl Crew<'_> {
    fn say(&self, text: &str) {
        if !self.quiet {
            output::complain(text);
        }
    }

    fn stopped(&self) -> bool {
        [self.interrupted, &self.spent, &self.failed].iter().any(|flag| flag.load(Ordering::Relaxed))
    }

    /// Whether one more chunk may be made.
    fn one_more(&self) -> bool {
        let less = |left: usize| left.checked_sub(1);
        !self.stopped() && self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// Waits, but not longer than half a lease.
    fn wait(&self, pause: Duration) {
        let until = Instant::now() + pause.min(Duration::from_millis(self.lease_ms / 2));
        while Instant::now() < until && !self.stopped() {
            thread::sleep(LOOK);
        }
    }

    /// Prolongs a lease until the work on its chunk is over.
    fn keep_lease(&self, chunk: &str, worker: &str, over: &Mutex<bool>) {
        let mut next = Instant::now() + Duration::from_millis(self.lease_ms / 3);
        while !*over.lock().unwrap_or_else(PoisonError::into_inner) {
            thread::park_timeout(next.saturating_duration_since(Instant::now()));
            if Instant::now() < next {
                continue;
            }
            next = Instant::now() + Duration::from_millis(self.lease_ms / 3);
            // Without a lease somebody else may make the chunk, too, and both are compared.
            let _ = lease::take(&self.opened.bucket, chunk, worker, now_ms(), self.lease_ms);
        }
    }
}

impl Worker<'_> {
    /// Works until every chunk is done or not needed, there may be no more, or Ctrl-C.
    fn all(&mut self) -> Result<(), Error> {
        let crew = self.crew;
        let mut need = Need::of(crew.opened)?;
        let mut pause = WAIT;
        loop {
            let open = need.look()?;
            crew.tally.total.fetch_max(crew.opened.runs_of(&open.chunks), Ordering::Relaxed);
            if open.chunks.is_empty() {
                crew.last.get_or_init(|| open.over(need.rule()));
                return Ok(());
            }
            let (mut found, mut missed) = (false, 0);
            for chunk in self.order(open.chunks)? {
                if crew.stopped() || crew.left.load(Ordering::Relaxed) == 0 {
                    return Ok(());
                }
                match self.chunk(chunk)? {
                    Chunk::Made => (found, missed) = (true, 0),
                    // The order is old, and a new one costs less than many more looks.
                    _ if missed == MISSES => break,
                    _ => missed += 1,
                }
            }
            if found {
                pause = WAIT;
            } else {
                crew.wait(pause);
                pause = (2 * pause).min(LONGEST);
            }
        }
    }

    /// In which order to try open chunks: those that nobody has begun, from a random place, so that workers seldom want
    /// the same one; then a few of the others, whose leases may be over. The more of them there are, the more workers
    /// look at them.
    fn order(&self, open: Vec<usize>) -> Result<Vec<usize>, Error> {
        let Opened { bucket, layout, .. } = self.crew.opened;
        let leased: BTreeSet<String> = bucket.list("leases")?.into_iter().collect();
        let random = RandomState::new().build_hasher().finish() as usize;
        let (mut begun, mut fresh): (Vec<usize>, Vec<usize>) =
            open.into_iter().partition(|&chunk| leased.contains(&layout.name(chunk)));
        let first = random % fresh.len().max(1);
        fresh.rotate_left(first);
        let first = random % begun.len().max(1);
        begun.rotate_left(first);
        begun.truncate((256 / begun.len().max(1)).max(4));
        fresh.extend(begun);
        Ok(fresh)
    }

    /// Makes these chunks together with the others of the crew.
    fn these(&mut self, chunks: &[usize]) -> Result<(), Error> {
        while let Some(&chunk) = chunks.get(self.crew.next.fetch_add(1, Ordering::Relaxed)) {
            if self.crew.stopped() {
                break;
            }
            if self.chunk(chunk)? == Chunk::Busy {
                self.ended.busy.push(chunk);
            }
        }
        Ok(())
    }

    /// Takes a chunk and makes it, unless it is done or somebody else has it.
    fn chunk(&mut self, chunk: usize) -> Result<Chunk, Error> {
        let (crew, Opened { bucket, layout, .. }) = (self.crew, self.crew.opened);
        let name = layout.name(chunk);
        // Another worker may have made it since the list was read, and before the lease is taken.
        if record::read(bucket, &name)?.is_some() {
            return Ok(Chunk::Over);
        }
        let taken = lease::take(bucket, &name, &self.name, now_ms(), crew.lease_ms)?;
        let Taken::Mine { lost_by } = taken else { return Ok(Chunk::Busy) };
        if record::read(bucket, &name)?.is_some() || !crew.one_more() {
            lease::give_back(bucket, &name, &self.name)?;
            return Ok(Chunk::Over);
        }
        let made = self.take_over(lost_by, &name).and_then(|()| self.make(chunk));
        if made.is_err() || crew.stopped() {
            // The store may be gone, which is an error already.
            let _ = lease::give_back(bucket, &name, &self.name);
        }
        made.map(|()| Chunk::Made)
    }

    /// Notes that another worker has lost its lease.
    fn take_over(&self, lost_by: Option<String>, chunk: &str) -> Result<(), Error> {
        let Some(other) = lost_by else { return Ok(()) };
        let text = serde_json::to_vec(&[&other, &self.name]).expect("texts become JSON");
        self.crew.opened.bucket.put_new(&format!("lost/{chunk}-{:016x}.json", now_ms()), &text)?;
        self.crew.say(&format!("chunk {chunk}: the lease of {other} is over"));
        Ok(())
    }

    /// Makes the runs of a chunk and commits them; nothing after Ctrl-C. The lease is prolonged meanwhile.
    fn make(&mut self, chunk: usize) -> Result<(), Error> {
        let (crew, Opened { bucket, layout, grid, .. }) = (self.crew, self.crew.opened);
        let (name, runs) = (layout.name(chunk), layout.runs(chunk));
        let (began_ms, began) = (now_ms(), Instant::now());
        let over = Mutex::new(false);
        let mut parts = Parts::new(crew.opened, chunk);
        let mut known = std::mem::take(&mut self.known);
        let me = &*self;
        let mut failed: Vec<(String, String)> = Vec::new();
        let mut warned: Vec<(String, Vec<String>)> = Vec::new();
        let whole = thread::scope(|scope| {
            let guard = scope.spawn(|| crew.keep_lease(&name, &me.name, &over));
            let whole = runs.clone().try_for_each(|run| {
                let one = catch_unwind(AssertUnwindSafe(|| me.one(run, &mut known, &mut parts)));
                let one =
                    one.unwrap_or_else(|panic| Err(Lost::Run(format!("bug in xoff: {}", reason(&*panic)))));
                match one {
                    Err(Lost::Store(error)) => return Err(Some(error)),
                    _ if crew.stopped() => return Err(None),
                    Err(Lost::Run(why)) => failed.push((grid.name(run), why)),
                    Ok(warnings) if warnings.is_empty() => {}
                    Ok(warnings) => warned.push((grid.name(run), warnings)),
                }
                Ok(())
            });
            *over.lock().unwrap_or_else(PoisonError::into_inner) = true;
            guard.thread().unpark();
            whole
        });
        self.known = known;
        match whole {
            Err(Some(error)) => return Err(error),
            Err(None) => return Ok(()),
            Ok(()) if crew.stopped() => return Ok(()),
            Ok(()) => {}
        }
        let hops = parts.hops;
        let mut parts =
            parts.finish().map_err(|e| bucket.error(&name, format!("cannot be written: {e}"), ""))?;
        let mut list = |folder: &str, runs: Value| {
            let content = serde_json::to_vec_pretty(&runs).expect("plain data becomes JSON");
            parts.push((Part::of(&format!("{folder}/{name}.json"), &content), content));
        };
        if !failed.is_empty() {
            list("failed", json!(failed));
        }
        if !warned.is_empty() {
            list("warnings", json!(warned));
        }
        let done = Record {
            worker: self.name.clone(),
            began_ms,
            ended_ms: now_ms(),
            runs: runs.len(),
            failed: failed.len(),
            warned: warned.len(),
            packet_hops: hops,
            files: parts.iter().map(|(part, _)| part.clone()).collect(),
        };
        let first = record::commit(bucket, &name, &done, &parts)?;
        self.ended.runs += runs.len();
        crew.tally.done.fetch_add(1_000_000 * runs.len() as u64, Ordering::Relaxed);
        self.ended.failed += failed.len();
        self.ended.hops += hops;
        let took = began.elapsed().as_secs_f64();
        let other = if first { "" } else { "; another worker had made it with the same bytes" };
        crew.say(&format!(
            "chunk {name}: {} in {}, {} packet-hops/s{other}",
            human::counted(runs.len() as u64, "run"),
            if took < 10.0 { format!("{took:.2} s") } else { seconds(took) },
            human::short(hops as f64 / took.max(1e-9))
        ));
        Ok(())
    }

    /// Makes a run, whose network may be `known` and whose numbers and flows go to `parts`; returns its warnings.
    fn one(&self, run: usize, known: &mut Known, parts: &mut Parts<'_>) -> Result<Vec<String>, Lost> {
        let (crew, opened) = (self.crew, self.crew.opened);
        let overrides = opened.overrides(run);
        let loaded = opened.source.load_next(&overrides, &mut |_, _| {}, &|| crew.stopped(), Some(known));
        let loaded = loaded.map_err(|e| e.to_string())?;
        let plan = &loaded.plan;
        let mut budget = Watch::begin(&[], 0);
        let began = Instant::now();
        let outcome = xoff_sim::run_on(plan, 1, &mut |_| !crew.stopped() && budget.goes_on());
        memory::enter(memory::Phase::Other);
        if budget.spent() {
            crew.spent.store(true, Ordering::Relaxed);
            return Err("the memory budget is exhausted".to_string().into());
        }
        if outcome.stop == Stop::Interrupted {
            return Err("interrupted".to_string().into());
        }
        let summary = run::summarise(&opened.plan.name, &loaded, &outcome);
        if opened.plan.keep {
            let about = run::about(&loaded, &overrides, began.elapsed().as_secs_f64());
            self.keep(run, &about.map_err(|e| e.to_string())?, plan, &outcome, &summary)?;
        }
        let mut row = Row::read(&serde_json::to_value(&summary).map_err(|e| e.to_string())?)?;
        let warnings = std::mem::take(&mut row.warnings);
        parts.push(run, row, plan, &outcome).map_err(|e| format!("its flows cannot be written: {e}"))?;
        Ok(warnings)
    }

    /// Keeps the whole directory of a run. In the cloud its manifest comes last.
    fn keep(
        &self,
        run: usize,
        about: &About,
        plan: &Plan,
        outcome: &Outcome,
        summary: &Summary,
    ) -> Result<(), Error> {
        let Opened { bucket, grid, .. } = self.crew.opened;
        let name = grid.name(run);
        let failed = |e: storage::Error| Error {
            what: e.path.display().to_string(),
            message: e.message,
            help: e.help,
        };
        let write = |place: &Path| {
            let writer = xoff_results::directory::prepare_in_grid(place)?;
            writer.write(about, plan, outcome, summary)
        };
        if let Some(directory) = bucket.directory() {
            return write(&directory.join(KEPT).join(name)).map(drop).map_err(failed);
        }
        let local = std::env::temp_dir().join(format!("xoff-{}", self.name.replace(':', "-")));
        let put = || {
            write(&local.join(&name)).map_err(failed)?;
            let read = |e: io::Error| bucket.error(&name, format!("cannot be read again: {e}"), "");
            let mut files: Vec<_> = fs::read_dir(local.join(&name))
                .and_then(|files| files.map(|file| Ok(file?.file_name())).collect::<io::Result<_>>())
                .map_err(read)?;
            files.sort_by_key(|file| (file == MANIFEST, file.clone()));
            for file in files {
                let content = fs::read(local.join(&name).join(&file)).map_err(read)?;
                bucket.put_new(&format!("{KEPT}/{name}/{}", file.display()), &content)?;
            }
            Ok(())
        };
        let done = put();
        // A rest of it is only in the directory of temporary files.
        let _ = fs::remove_dir_all(&local);
        done
    }
}

/// Why a run has no results.
enum Lost {
    /// The same reason wherever it is made.
    Run(String),
    /// They cannot be stored.
    Store(Error),
}

impl From<String> for Lost {
    fn from(why: String) -> Self {
        Self::Run(why)
    }
}

impl From<Error> for Lost {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

/// The files of a chunk: a row for each run, and its flows.
struct Parts<'a> {
    opened: &'a Opened,
    chunk: usize,
    rows: Vec<(usize, Row)>,
    /// The columns of the axes, once the first run has shown how those of flows are called.
    keys: Vec<String>,
    flows: Option<Groups<Vec<u8>>>,
    hops: u64,
}

impl<'a> Parts<'a> {
    fn new(opened: &'a Opened, chunk: usize) -> Self {
        Self { opened, chunk, rows: Vec::new(), keys: Vec::new(), flows: None, hops: 0 }
    }

    fn push(&mut self, run: usize, row: Row, plan: &Plan, outcome: &Outcome) -> parquet::errors::Result<()> {
        let Opened { grid, layout, .. } = self.opened;
        let values = grid.values(grid.point_of(run));
        let flows = plan.flows.len();
        for from in (0..flows).step_by(ROWS_PER_GROUP) {
            let range = from..flows.min(from + ROWS_PER_GROUP);
            let rows = range.len();
            let flows = data::flow_columns(plan, outcome, range);
            if self.flows.is_none() {
                let known = flows.iter().map(|(name, _)| name.to_string()).chain(["run".to_string()]);
                self.keys = dataset::keys(grid, &known.collect());
            }
            let mut columns: Vec<(String, Column)> =
                vec![("run".into(), Column::Int(vec![run as u64 + 1; rows]))];
            for (i, axis) in grid.axes.iter().enumerate().skip(layout.depth) {
                columns.push((self.keys[i].clone(), axis_column(axis, std::iter::repeat_n(values[i], rows))));
            }
            columns.push(("seed".into(), Column::Int(vec![row.seed; rows])));
            columns.extend(flows.into_iter().map(|(name, column)| (name.to_string(), column)));
            match &mut self.flows {
                Some(groups) => groups.push(columns)?,
                none => none.insert(Groups::new(Vec::new(), &columns)?).push(columns)?,
            }
        }
        self.rows.push((run, row));
        self.hops += outcome.counters.packet_hops;
        Ok(())
    }

    fn finish(self) -> parquet::errors::Result<Vec<(Part, Vec<u8>)>> {
        let Opened { grid, layout, .. } = self.opened;
        let file = format!("part-{}.parquet", layout.name(self.chunk));
        let part = |name: String, content: Vec<u8>| (Part::of(&name, &content), content);
        let rows: Vec<(usize, &Row)> = self.rows.iter().map(|(run, row)| (*run, row)).collect();
        let mut parts = vec![part(format!("runs/{file}"), directory::rows(Vec::new(), grid, &rows)?)];
        if let Some(flows) = self.flows {
            let values = grid.values(grid.point_of(layout.runs(self.chunk).start));
            let folders = self.keys.iter().zip(values).take(layout.depth);
            let folders = folders.map(|(key, value)| dataset::partition(key, value));
            let name: Vec<String> = ["flows".to_string()].into_iter().chain(folders).chain([file]).collect();
            parts.push(part(name.join("/"), flows.finish()?));
        }
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_workers_of_a_process_have_two_names() {
        assert_ne!(super::name("h"), super::name("h"));
    }
}
