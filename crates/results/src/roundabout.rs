//! Roundabout in numbers and words: the deadlocks that switches found, and what became of them.

use crate::human;
use crate::names;
use serde::Serialize;
use std::collections::BTreeSet;
use xoff_kernel::time::Time;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::FlowControlParams;
use xoff_schemes::flow_control::roundabout::dissolve::Step;
use xoff_sim::outcome::Outcome;

/// What Roundabout did in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RoundaboutSummary {
    /// Triplets that came back to the queue that had drawn them.
    pub found: u64,
    /// Loops in which every switch took its place.
    pub seated: u64,
    /// Rounds that packets went.
    pub rounds: u64,
    /// Loops dissolved.
    pub dissolved: u64,
    /// Attempts that some switch gave up.
    pub given_up: u64,
    /// When the first one was found, in picoseconds; null if there was none.
    pub first_ps: Option<Time>,
    /// The port whose ingress queue found it.
    pub first_port: Option<String>,
    /// From finding one until its announcement had been around the loop, in picoseconds: the
    /// mean; null if none had.
    pub known_ps: Option<Time>,
    /// From finding one until its loop was dissolved, in picoseconds: the mean; null if none was.
    pub mean_ps: Option<Time>,
    /// The longest.
    pub longest_ps: Option<Time>,
}

/// Sums up, where Roundabout ran.
pub fn summarise(plan: &Plan, outcome: &Outcome) -> Option<RoundaboutSummary> {
    if !matches!(plan.flow_control, FlowControlParams::Roundabout(_)) {
        return None;
    }
    let steps = |step: Step| outcome.attempts.iter().filter(move |a| a.step == step);
    let count = |step: Step| steps(step).count() as u64;
    let source = |t: &xoff_schemes::flow_control::roundabout::registers::Triplet| (t.sid, t.qid, t.rand);
    let times: Vec<Time> = steps(Step::Dissolved)
        .filter_map(|a| {
            let found = outcome.detections.iter().find(|d| d.triplet == a.attempt)?;
            Some(a.at - found.at)
        })
        .collect();
    let first = outcome.detections.first();
    let known: Vec<Time> = outcome.detections.iter().filter_map(|d| Some(d.all_know? - d.at)).collect();
    let mean = |times: &[Time]| times.iter().sum::<Time>().checked_div(times.len() as Time);
    Some(RoundaboutSummary {
        found: outcome.detections.len() as u64,
        seated: count(Step::Seated),
        rounds: count(Step::Round),
        dissolved: count(Step::Dissolved),
        given_up: steps(Step::GivenUp).map(|a| source(&a.attempt)).collect::<BTreeSet<_>>().len() as u64,
        first_ps: first.map(|d| d.at),
        first_port: first.map(|d| names::port(plan, d.port)),
        known_ps: mean(&known),
        mean_ps: mean(&times),
        longest_ps: times.iter().copied().max(),
    })
}

/// The row of the answer's totals.
pub fn row(s: &RoundaboutSummary) -> String {
    let (Some(first), Some(port)) = (s.first_ps, &s.first_port) else { return "no deadlock found".into() };
    let mut text = format!(
        "{} found, the first at {} by {port}; {} dissolved",
        human::counted(s.found, "deadlock"),
        human::time(first),
        human::count(s.dissolved)
    );
    if let (Some(mean), Some(longest)) = (s.mean_ps, s.longest_ps) {
        text += &format!(" in {} on average, {} at most", human::time(mean), human::time(longest));
    }
    if s.given_up > 0 {
        text += &format!("; {} given up", human::counted(s.given_up, "attempt"));
    }
    text
}
