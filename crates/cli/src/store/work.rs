//! `xoff work`: takes chunks of a store by lease, makes their runs, and commits them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{num::NonZeroUsize, thread};

use xoff_net::units::Span;
use xoff_results::columns::{Column, Groups, ROWS_PER_GROUP};
use xoff_results::grid::{dataset, directory, directory::axis_column, metrics::Row};
use xoff_results::integrity::reason;
use xoff_results::{data, human};
use xoff_sim::outcome::Stop;
use xoff_store::Error;
use xoff_store::lease::{self, Taken};
use xoff_store::record::{self, Part, Record};

use super::{Opened, now_ms, report};
use crate::memory::{self, Watch};
use crate::progress::seconds;
use crate::{FAILED, interrupt, output, pool, run};

/// Longest time between two looks for chunks that others have given up.
const WAIT: Duration = Duration::from_secs(2);
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
    /// Most chunks.
    pub chunks: Option<usize>,
    /// It says nothing.
    pub quiet: bool,
}

pub fn work(args: &WorkArgs) -> miette::Result<ExitCode> {
    let options = Options {
        jobs: args.jobs.map(NonZeroUsize::get),
        lease: args.lease,
        chunks: args.chunks.map(|n| n as usize),
        quiet: args.quiet,
    };
    let interrupted = interrupt::flag()?;
    let ended = make(&args.store, &options, &interrupted)?;
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
pub fn make(store: &Path, options: &Options, interrupted: &AtomicBool) -> miette::Result<Ended> {
    let opened = Opened::at(store)?;
    let lease_ms = options.lease.0 / 1_000_000_000;
    if lease_ms < 100 {
        return Err(miette::miette!(help = "such as 60s", "--lease: the minimum is 100 ms"));
    }
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let worker = Worker {
        jobs: options.jobs.unwrap_or(cores),
        name: name(),
        lease_ms,
        quiet: options.quiet,
        interrupted,
        spent: AtomicBool::new(false),
        opened,
    };
    worker.opened.bucket.sweep("done");
    let mut ended = worker.run(options.chunks.unwrap_or(usize::MAX)).map_err(report)?;
    ended.spent = worker.spent.load(Ordering::Relaxed);
    Ok(ended)
}

/// A name that no other worker has: host, process, time, and which worker of the process.
fn name() -> String {
    static WORKERS: AtomicUsize = AtomicUsize::new(0);
    let host = sysinfo::System::host_name().unwrap_or_else(|| "unknown".into());
    let (process, worker) = (std::process::id(), WORKERS.fetch_add(1, Ordering::Relaxed));
    format!("{host}:{process}:{:x}.{worker}", now_ms() & 0xffff)
}

struct Worker<'a> {
    opened: Opened,
    name: String,
    jobs: usize,
    lease_ms: u64,
    quiet: bool,
    interrupted: &'a AtomicBool,
    /// A run was beyond the memory budget of this machine, which says nothing of the run.
    spent: AtomicBool,
}

/// What a worker has done.
#[derive(Default)]
pub struct Ended {
    /// Runs that it made.
    pub runs: usize,
    /// Those of them that failed.
    pub failed: usize,
    /// It ended because the memory budget was exhausted.
    pub spent: bool,
}

/// A run that was made.
struct Made {
    row: Row,
    flows: Vec<Vec<(&'static str, Column)>>,
    hops: u64,
}

impl Worker<'_> {
    fn say(&self, text: &str) {
        if !self.quiet {
            output::complain(text);
        }
    }

    fn stopped(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) || self.spent.load(Ordering::Relaxed)
    }

    /// Works until every chunk is done, `most` are made, or Ctrl-C.
    fn run(&self, most: usize) -> Result<Ended, Error> {
        let Opened { bucket, layout, .. } = &self.opened;
        let mut ended = Ended::default();
        let mut made = 0;
        loop {
            let mut open = vec![true; layout.chunks()];
            for name in record::done(bucket)? {
                if let Some(chunk) = name.parse::<usize>().ok().filter(|&chunk| chunk < open.len()) {
                    open[chunk] = false;
                }
            }
            let mut todo: Vec<usize> = (0..open.len()).filter(|&chunk| open[chunk]).collect();
            if todo.is_empty() {
                self.say("every chunk is done");
                return Ok(ended);
            }
            // Workers begin at different places, so that they seldom want the same chunk.
            let first = now_ms() as usize % todo.len();
            todo.rotate_left(first);
            let mut found = false;
            for chunk in todo {
                if self.stopped() || made == most {
                    return Ok(ended);
                }
                let name = layout.name(chunk);
                // Another worker may have made it since the list was read, and before the lease is taken.
                if record::read(bucket, &name)?.is_some() {
                    continue;
                }
                let taken = lease::take(bucket, &name, &self.name, now_ms(), self.lease_ms)?;
                let Taken::Mine { lost_by } = taken else { continue };
                if record::read(bucket, &name)?.is_some() {
                    continue;
                }
                if let Some(other) = lost_by {
                    let text = serde_json::to_vec(&[&other, &self.name]).expect("texts become JSON");
                    bucket.put_new(&format!("lost/{name}-{:016x}.json", now_ms()), &text)?;
                    self.say(&format!("chunk {name}: the lease of {other} is over"));
                }
                found = true;
                let done = self.chunk(chunk, &mut ended);
                if done.is_err() || self.stopped() {
                    // The store may be gone, which is an error already.
                    let _ = lease::give_back(bucket, &name, &self.name);
                }
                done?;
                made += 1;
            }
            if !found {
                self.wait();
            }
        }
    }

    fn wait(&self) {
        let until = Instant::now() + WAIT.min(Duration::from_millis(self.lease_ms));
        while Instant::now() < until && !self.stopped() {
            thread::sleep(LOOK);
        }
    }

    /// Makes the runs of a chunk and commits them; nothing after Ctrl-C. The lease is prolonged meanwhile.
    fn chunk(&self, chunk: usize, ended: &mut Ended) -> Result<(), Error> {
        let Opened { bucket, layout, .. } = &self.opened;
        let (name, runs) = (layout.name(chunk), layout.runs(chunk));
        let (began_ms, began) = (now_ms(), Instant::now());
        let over = Mutex::new(false);
        let made = thread::scope(|scope| {
            let over = &over;
            let guard = scope.spawn(|| self.keep_lease(&name, over));
            let made = pool::each(
                self.jobs,
                runs.len(),
                || self.stopped(),
                |_, i| {
                    let one = catch_unwind(AssertUnwindSafe(|| self.one(runs.start + i)));
                    one.unwrap_or_else(|panic| Err(format!("bug in xoff: {}", reason(&*panic))))
                },
            );
            *over.lock().unwrap_or_else(PoisonError::into_inner) = true;
            guard.thread().unpark();
            made
        });
        let Some(made) = made.into_iter().collect::<Option<Vec<_>>>().filter(|_| !self.stopped()) else {
            return Ok(());
        };
        let failed: Vec<(String, String)> = (runs.clone().zip(&made))
            .filter_map(|(run, made)| Some((self.opened.grid.name(run), made.as_ref().err()?.clone())))
            .collect();
        let good: Vec<(usize, &Made)> =
            runs.clone().zip(&made).filter_map(|(run, made)| Some((run, made.as_ref().ok()?))).collect();
        let parts = self
            .parts(chunk, &good)
            .map_err(|e| bucket.error(&name, format!("cannot be written: {e}"), ""))?;
        let hops = good.iter().map(|(_, made)| made.hops).sum();
        let done = Record {
            worker: self.name.clone(),
            began_ms,
            ended_ms: now_ms(),
            runs: runs.len(),
            failed: failed.len(),
            packet_hops: hops,
            files: parts.iter().map(|(part, _)| part.clone()).collect(),
        };
        if !failed.is_empty() {
            let text = serde_json::to_vec_pretty(&failed).expect("texts become JSON");
            bucket.put_new(&format!("failed/{name}.json"), &text)?;
        }
        let first = record::commit(bucket, &name, &done, &parts)?;
        ended.runs += runs.len();
        ended.failed += failed.len();
        let took = began.elapsed().as_secs_f64();
        let other = if first { "" } else { "; another worker had made it with the same bytes" };
        self.say(&format!(
            "chunk {name}: {} in {}, {} packet-hops/s{other}",
            human::counted(runs.len() as u64, "run"),
            if took < 10.0 { format!("{took:.2} s") } else { seconds(took) },
            human::short(hops as f64 / took.max(1e-9))
        ));
        Ok(())
    }

    /// Prolongs a lease until the work on its chunk is over.
    fn keep_lease(&self, chunk: &str, over: &Mutex<bool>) {
        let mut next = Instant::now() + Duration::from_millis(self.lease_ms / 3);
        while !*over.lock().unwrap_or_else(PoisonError::into_inner) {
            thread::park_timeout(next.saturating_duration_since(Instant::now()));
            if Instant::now() < next {
                continue;
            }
            next = Instant::now() + Duration::from_millis(self.lease_ms / 3);
            // Without a lease somebody else may make the chunk, too, and both are compared.
            let _ = lease::take(&self.opened.bucket, chunk, &self.name, now_ms(), self.lease_ms);
        }
    }

    /// Makes a run. The error says why it has no results; it is the same wherever it is made.
    fn one(&self, index: usize) -> Result<Made, String> {
        let overrides = self.opened.overrides(index);
        let loaded = self.opened.source.load(&overrides, &mut |_, _| {}, &|| self.stopped());
        let loaded = loaded.map_err(|e| e.to_string())?;
        let plan = &loaded.plan;
        let mut budget = Watch::begin(&[], 0);
        let outcome = xoff_sim::run_on(plan, 1, &mut |_| !self.stopped() && budget.goes_on());
        memory::enter(memory::Phase::Other);
        if budget.spent() {
            self.spent.store(true, Ordering::Relaxed);
            return Err("the memory budget is exhausted".into());
        }
        if outcome.stop == Stop::Interrupted {
            return Err("interrupted".into());
        }
        let summary = run::summarise(&self.opened.plan.name, &loaded, &outcome);
        let row = Row::read(&serde_json::to_value(&summary).map_err(|e| e.to_string())?)?;
        let flows = plan.flows.len();
        let groups = (0..flows).step_by(ROWS_PER_GROUP).map(|from| from..flows.min(from + ROWS_PER_GROUP));
        let flows = groups.map(|range| data::flow_columns(plan, &outcome, range)).collect();
        Ok(Made { row, flows, hops: outcome.counters.packet_hops })
    }

    /// The files of a chunk: a row for each run, and its flows.
    fn parts(&self, chunk: usize, made: &[(usize, &Made)]) -> parquet::errors::Result<Vec<(Part, Vec<u8>)>> {
        let Opened { grid, layout, .. } = &self.opened;
        let file = format!("part-{}.parquet", layout.name(chunk));
        let part = |name: String, content: Vec<u8>| (Part::of(&name, &content), content);
        let rows: Vec<(usize, &Row)> = made.iter().map(|(run, made)| (*run, &made.row)).collect();
        let mut parts = vec![part(format!("runs/{file}"), directory::rows(Vec::new(), grid, &rows)?)];
        let Some(columns) = made.iter().find_map(|(_, made)| made.flows.first()) else { return Ok(parts) };
        let known = columns.iter().map(|(name, _)| name.to_string()).chain(["run".to_string()]).collect();
        let keys = dataset::keys(grid, &known);
        let mut groups: Option<Groups<Vec<u8>>> = None;
        for (run, made) in made {
            let values = grid.values(grid.point_of(*run));
            for flows in &made.flows {
                let rows = flows[0].1.rows();
                let mut columns: Vec<(String, Column)> =
                    vec![("run".into(), Column::Int(vec![*run as u64 + 1; rows]))];
                for (i, axis) in grid.axes.iter().enumerate().skip(layout.depth) {
                    columns.push((keys[i].clone(), axis_column(axis, std::iter::repeat_n(values[i], rows))));
                }
                columns.push(("seed".into(), Column::Int(vec![made.row.seed; rows])));
                columns.extend(flows.iter().map(|(name, column)| (name.to_string(), column.clone())));
                if groups.is_none() {
                    groups = Some(Groups::new(Vec::new(), &columns)?);
                }
                groups.as_mut().expect("made above").push(columns)?;
            }
        }
        let values = grid.values(grid.point_of(layout.runs(chunk).start));
        let folders =
            keys.iter().zip(values).take(layout.depth).map(|(key, value)| dataset::partition(key, value));
        let name: Vec<String> = ["flows".to_string()].into_iter().chain(folders).chain([file]).collect();
        parts.push(part(name.join("/"), groups.expect("there are flows").finish()?));
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_workers_of_a_process_have_two_names() {
        assert_ne!(super::name(), super::name());
    }
}
