//! The whole program on one scenario, and its invariants.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, PoisonError};

use xoff_kernel::time::MICROSECOND;
use xoff_plan::Loaded;
use xoff_sim::outcome::{Outcome, Stop};

use crate::invariants::{self, Broken};
use crate::scenario::Scenario;
use crate::verbs;

/// Events of a run, at most.
const MOST_EVENTS: u64 = 2_000_000;
/// Calls of a run's watch, at most: one in 65,536 events, or fewer where there are samples, which
/// take memory.
const MOST_CALLS: u64 = 200;

/// The result of a scenario.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It does not load; the message of the error.
    Refused(String),
    Held(Seen),
    /// The run has more events than a trial allows, and would continue: only the invariants of the middle of
    /// a run were checked.
    Cut(Seen),
    /// Something does not hold.
    Finding(Broken),
}

/// The activity of a run: a test can check that its invariants had something to check.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub completed: u64,
    pub pauses: u64,
    pub dropped: u64,
    pub deadlock: bool,
    /// Shares of critical paths.
    pub shares: u64,
    pub events: u64,
}

impl Seen {
    fn of(outcome: &Outcome) -> Self {
        Self {
            completed: outcome.flows.iter().filter(|f| f.completed.is_some()).count() as u64,
            pauses: outcome.pauses.len() as u64,
            dropped: outcome.counters.dropped,
            deadlock: outcome.deadlock.is_some(),
            shares: outcome.paths.as_ref().map_or(0, |p| p.len() as u64),
            events: outcome.counters.events,
        }
    }
}

thread_local! {
    /// Where this thread panicked last, while a trial catches its panics.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
    /// This thread catches its panics.
    static CATCHES: Cell<bool> = const { Cell::new(false) };
}

/// Catches panics without printing them, and returns their place. Called once for a process.
pub fn catch_panics() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !CATCHES.get() {
            before(info);
        }
        let place = info
            .location()
            .map_or_else(|| "an unknown place".into(), |l| format!("{}:{}", l.file(), l.line()));
        PANIC.with_borrow_mut(|p| *p = Some(place));
    }));
}

/// Runs `work`; a panic is a broken invariant whose name has the place of the panic.
fn caught<T>(what: &str, work: impl FnOnce() -> T) -> Result<T, Broken> {
    PANIC.take();
    CATCHES.set(true);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    CATCHES.set(false);
    done.map_err(|payload| {
        let message = match (payload.downcast_ref::<String>(), payload.downcast_ref::<&str>()) {
            (Some(text), _) => text.clone(),
            (_, Some(text)) => (*text).to_string(),
            _ => "no message".into(),
        };
        let place = PANIC.take().unwrap_or_else(|| "another thread".into());
        Broken::new(format!("panic at {place}"), format!("{what}: {message}"))
    })
}

/// Runs the whole program on a scenario.
pub fn trial(scenario: &Scenario) -> Verdict {
    match examine(scenario) {
        Ok(verdict) => verdict,
        Err(broken) => Verdict::Finding(broken),
    }
}

fn examine(scenario: &Scenario) -> Result<Verdict, Broken> {
    let loaded = match caught("load", || scenario.load())? {
        Ok(loaded) => loaded,
        Err(error) => {
            let line = caught("the error", || {
                (error.one_line(), format!("{:?}", miette::Report::new(error.clone())))
            })?
            .0;
            return Ok(Verdict::Refused(line));
        }
    };
    let one = caught("run", || run(&loaded, 1, 1))?;
    invariants::partial(&loaded, &one)?;
    let seen = Seen::of(&one);
    if one.stop == Stop::Interrupted {
        // A run that makes headway is long; one that does not may never end. Long timers explain many
        // events without headway, and more samples yet: those are not waited for.
        let headway = |times| {
            let more = caught("run", || run(&loaded, 1, times))?;
            invariants::headway(&loaded, &one, &more)
        };
        if one.counters.events >= MOST_EVENTS {
            headway(2).or_else(|_| headway(20))?;
        }
        return Ok(Verdict::Cut(seen));
    }
    invariants::whole(&loaded, &one)?;
    for &threads in affordable(&loaded, &one) {
        // Threads of several runs at once would wait for each other's processors.
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let other = caught("run on threads", || run(&loaded, threads, 1_000))?;
        invariants::same(&one, &other, &format!("{threads} threads"))?;
    }
    caught("the verbs", || verbs::all(&loaded, &one))??;
    Ok(Verdict::Held(seen))
}

/// Numbers of threads on which a run is repeated: 2 and 5. Of runs with many windows, in which
/// threads wait for each other, one in 16 is.
pub fn affordable(loaded: &Loaded, outcome: &Outcome) -> &'static [usize] {
    let delays = loaded.plan.topology.ports.iter().map(|p| p.delay).filter(|&d| d > 0);
    let window = delays.min().unwrap_or(1).min(MICROSECOND);
    let windows = outcome.counters.events.min(outcome.end / window);
    let most = if loaded.plan.seed.is_multiple_of(16) { 20_000 } else { 1_000 };
    if windows <= most { &[2, 5] } else { &[] }
}

/// A run of at most `times` the events that a trial allows.
fn run(loaded: &Loaded, threads: usize, times: u64) -> Outcome {
    let mut calls = 0;
    xoff_sim::run_on(&loaded.plan, threads, &mut |progress| {
        calls += 1;
        calls < times * MOST_CALLS && progress.counters.events < times * MOST_EVENTS
    })
}
