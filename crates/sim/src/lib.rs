//! The world: `Plan` in, `Outcome` out. It knows nothing of files and terminals.

pub mod outcome;

use outcome::{Counters, Outcome};
use xoff_kernel::time::Time;
use xoff_plan::plan::Plan;

/// Where a run stands; handed to the caller every few ten thousand events.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// Totals so far.
    pub counters: Counters,
    /// Flows completed.
    pub flows_done: usize,
    /// A deadlock has been seen.
    pub deadlocked: bool,
}

/// Runs a plan to its end, or until `watch` answers `false`.
pub fn run(_plan: &Plan, _watch: &mut dyn FnMut(&Progress) -> bool) -> Outcome {
    unimplemented!("the kernel comes next")
}
