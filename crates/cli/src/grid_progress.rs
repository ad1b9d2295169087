//! Progress of a grid on standard error: on a terminal a bar for each present run and one for the whole,
//! otherwise a line for each completed run.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::{io::IsTerminal, time::Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use xoff_outcome::Progress;
use xoff_results::human;

use crate::output;
use crate::progress::{Goal, REDRAWS, STEPS, left, seconds};

const MILLION: u64 = 1_000_000;

/// The progress of a grid in numbers, for another thread to read.
#[derive(Debug, Default)]
pub struct Tally {
    /// Steps in all: runs, or before them the plans to check.
    pub total: AtomicUsize,
    /// Steps that are done, in millionths.
    pub done: AtomicU64,
}

impl Tally {
    /// The part that is done, 0 to 1, and the state in words, once the number of steps is known.
    pub fn state(&self) -> Option<(f64, String)> {
        let total = self.total.load(Ordering::Relaxed);
        let steps = self.done.load(Ordering::Relaxed) as f64 / MILLION as f64;
        (total > 0).then(|| (steps / total as f64, format!("{} of {total}", steps as u64)))
    }
}

/// Shows the progress of a grid, which several workers report.
pub struct GridMeter<'a> {
    tally: &'a Tally,
    bars: Option<Bars>,
    quiet: bool,
    began: Instant,
    total: usize,
    state: Mutex<State>,
}

struct Bars {
    all: MultiProgress,
    overall: ProgressBar,
}

#[derive(Default)]
struct State {
    done: usize,
    /// Packet-hops of the runs that are done.
    hops: u64,
    /// The present run of each worker: its completed fraction, and its packet-hops.
    under_way: Vec<(f64, u64)>,
}

/// Shows how far one run of a grid is.
pub struct RunMeter<'a> {
    grid: &'a GridMeter<'a>,
    worker: usize,
    goal: Goal,
    label: String,
    began: Instant,
    shown: Instant,
    bar: Option<ProgressBar>,
}

impl<'a> GridMeter<'a> {
    /// A meter for `total` steps, which begins now with up to `jobs` workers; a `quiet` one shows nothing.
    pub fn new(total: usize, jobs: usize, quiet: bool, tally: &'a Tally) -> Self {
        tally.total.store(total, Ordering::Relaxed);
        tally.done.store(0, Ordering::Relaxed);
        let bars = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let all = MultiProgress::new();
            let overall =
                all.add(ProgressBar::new(STEPS).with_style(style("{bar:20} {percent:>3}%  {wide_msg}")));
            Bars { all, overall }
        });
        let state = Mutex::new(State { under_way: vec![(0.0, 0); jobs], ..State::default() });
        Self { tally, bars, quiet, began: Instant::now(), total, state }
    }

    /// A plan was checked; nothing is shown of that but on a terminal.
    pub fn checked(&self) {
        let done = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.done += 1;
            state.done
        };
        self.tally.done.store(done as u64 * MILLION, Ordering::Relaxed);
        if let Some(bars) = &self.bars {
            bars.overall.set_position(done as u64 * STEPS / self.total.max(1) as u64);
            bars.overall.set_message(format!("{done} of {} plans checked", self.total));
        }
    }

    pub fn begin(&self, worker: usize, label: String, goal: Goal) -> RunMeter<'_> {
        let bar = self.bars.as_ref().map(|bars| {
            let bar =
                ProgressBar::new(STEPS).with_style(style("{bar:20} {percent:>3}%  {prefix}: {wide_msg}"));
            bars.all.insert_before(&bars.overall, bar).with_prefix(label.clone())
        });
        let now = Instant::now();
        RunMeter { grid: self, worker, goal, label, began: now, shown: now, bar }
    }

    fn overall(&self, state: &State) {
        let parts: f64 = state.under_way.iter().map(|(part, _)| part).sum();
        let steps = state.done as f64 + parts;
        let hops = state.hops + state.under_way.iter().map(|(_, hops)| hops).sum::<u64>();
        self.tally.done.store((steps * MILLION as f64) as u64, Ordering::Relaxed);
        let Some(bars) = &self.bars else { return };
        let elapsed = self.began.elapsed().as_secs_f64();
        let done = steps / self.total.max(1) as f64;
        bars.overall.set_position((done * STEPS as f64) as u64);
        bars.overall.set_message(format!(
            "{} of {} runs, {} packet-hops/s{}",
            state.done,
            self.total,
            human::short(hops as f64 / elapsed.max(1e-9)),
            left(elapsed, done)
        ));
    }

    /// Removes the bars; returns wall time in seconds, and the packet-hops of the runs that are done.
    pub fn finish(self) -> (f64, u64) {
        if let Some(bars) = &self.bars {
            bars.overall.finish_and_clear();
        }
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        (self.began.elapsed().as_secs_f64(), state.hops)
    }
}

impl RunMeter<'_> {
    pub fn update(&mut self, progress: &Progress) {
        if self.shown.elapsed() < REDRAWS {
            return;
        }
        self.shown = Instant::now();
        let part = self.goal.fraction(progress);
        if let Some(bar) = &self.bar {
            bar.set_position((part * STEPS as f64) as u64);
            bar.set_message(self.goal.text(progress, self.began.elapsed().as_secs_f64()));
        }
        let mut state = self.grid.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.under_way[self.worker] = (part, progress.counters.packet_hops);
        self.grid.overall(&state);
    }

    pub fn elapsed(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Ends a run with so many packet-hops, or `None` if it was stopped. `what` is a remark about it.
    pub fn finish(self, hops: Option<u64>, wall_seconds: f64, what: &str) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let mut state = self.grid.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.under_way[self.worker] = (0.0, 0);
        let Some(hops) = hops else { return };
        state.done += 1;
        state.hops += hops;
        self.grid.overall(&state);
        if !self.grid.quiet && self.bar.is_none() {
            let speed = human::short(hops as f64 / wall_seconds.max(1e-9));
            let (done, total, label) = (state.done, self.grid.total, &self.label);
            let took =
                if wall_seconds < 10.0 { format!("{wall_seconds:.2} s") } else { seconds(wall_seconds) };
            output::complain(&format!("[{done}/{total}] {label}: {took}, {speed} packet-hops/s{what}"));
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is well-formed")
}
