//! Progress of a run on standard error: a bar on a terminal, else a line every few seconds.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use xoff_outcome::Progress;
use xoff_plan::plan::Plan;
use xoff_results::human;

use crate::output;

pub const STEPS: u64 = 1000;
/// Distance of lines where there is no terminal.
const LINES: Duration = Duration::from_secs(5);
/// Distance of updates on a terminal.
pub const REDRAWS: Duration = Duration::from_millis(100);

/// Shows how far a run is.
pub struct Meter {
    bar: Option<ProgressBar>,
    quiet: bool,
    began: Instant,
    shown: Instant,
    goal: Goal,
}

#[derive(Clone, Copy)]
pub struct Goal {
    /// The end in simulated time, if the plan has one.
    end: Option<u64>,
    flows: usize,
}

impl Meter {
    /// A meter for the run of `plan`, which begins now; a `quiet` one shows nothing.
    pub fn new(plan: &Plan, quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template("{bar:30} {percent:>3}%  {msg}")
                .expect("the template is well-formed");
            ProgressBar::new(STEPS).with_style(style)
        });
        let now = Instant::now();
        Self { bar, quiet, began: now, shown: now, goal: Goal::new(plan) }
    }

    /// Shows the state if the last one was visible long enough.
    pub fn update(&mut self, progress: &Progress) {
        let distance = if self.bar.is_some() { REDRAWS } else { LINES };
        if self.quiet || self.shown.elapsed() < distance {
            return;
        }
        self.shown = Instant::now();
        let done = self.goal.fraction(progress);
        let text = self.goal.text(progress, self.began.elapsed().as_secs_f64());
        match &self.bar {
            Some(bar) => {
                bar.set_message(text);
                bar.set_position((done * STEPS as f64) as u64);
            }
            None => output::complain(&text),
        }
    }

    /// Removes the bar.
    pub fn finish(self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Goal {
    pub fn new(plan: &Plan) -> Self {
        Self { end: plan.end, flows: plan.flows.len() }
    }

    /// How much is done, 0 to 1: in simulated time, or in flows if the run lasts until they finish.
    pub fn fraction(&self, progress: &Progress) -> f64 {
        match self.end {
            Some(end) => (progress.now as f64 / end.max(1) as f64).min(1.0),
            None => progress.flows_done as f64 / self.flows.max(1) as f64,
        }
    }

    /// The state of a run in a line, after `elapsed` seconds of wall time.
    pub fn text(&self, progress: &Progress, elapsed: f64) -> String {
        let of = match self.end {
            Some(end) => format!(" of {}", human::time(end)),
            None => format!(", {} of {} flows", progress.flows_done, self.flows),
        };
        let speed = progress.counters.packet_hops as f64 / elapsed.max(1e-9);
        let left = left(elapsed, self.fraction(progress));
        let deadlock = if progress.deadlocked { ", DEADLOCK" } else { "" };
        format!("{}{of}, {} packet-hops/s{left}{deadlock}", human::time(progress.now), human::short(speed))
    }
}

/// How long it will still take: `, 2 min 5 s left`; nothing as long as nothing is done.
pub fn left(elapsed: f64, done: f64) -> String {
    if done > 0.0 { format!(", {} left", seconds(elapsed * (1.0 - done) / done)) } else { String::new() }
}

/// Wall time as people read it: `3 s`, `2 min 5 s`, `1 h 2 min`.
pub fn seconds(s: f64) -> String {
    let s = s.round() as u64;
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        _ => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}
