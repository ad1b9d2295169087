//! Pauses of a run in numbers.

use std::collections::BTreeSet;

use serde::Serialize;

use xoff_kernel::time::Time;
use xoff_outcome::Outcome;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PauseSummary {
    pub count: u64,
    /// Pauses that lasted until the end of the run.
    pub standing: u64,
    /// Paused time of all queues together, at most 2^64 - 1; standing pauses count to the end.
    pub total_ps: Time,
    /// Mean length; absent without pauses.
    pub mean_ps: Option<f64>,
    pub longest_ps: Time,
    /// Distinct queues (egress port and priority) that were ever paused.
    pub queues: u64,
    /// Pause frames sent, refreshes included.
    pub pause_frames: u64,
    pub resume_frames: u64,
}

pub fn summarise(outcome: &Outcome) -> PauseSummary {
    let lengths = || outcome.pauses.iter().map(|p| p.length(outcome.end));
    let count = outcome.pauses.len() as u64;
    let total_ps = lengths().fold(0, Time::saturating_add);
    let paused: BTreeSet<_> = outcome.pauses.iter().map(|p| (p.port, p.lane, p.queue)).collect();
    PauseSummary {
        count,
        standing: outcome.pauses.iter().filter(|p| p.until.is_none()).count() as u64,
        total_ps,
        mean_ps: (count > 0).then(|| total_ps as f64 / count as f64),
        longest_ps: lengths().max().unwrap_or(0),
        queues: paused.len() as u64,
        pause_frames: outcome.ports.iter().map(|p| p.pause_frames).sum(),
        resume_frames: outcome.ports.iter().map(|p| p.resume_frames).sum(),
    }
}
