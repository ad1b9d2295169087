//! The report of Roundabout about a run: the deadlocks that switches found, and their resolution.

use super::Detection;
use super::dissolve::{Attempted, Step};
use crate::flow_control::loops;
use std::collections::BTreeSet;
use xoff_kernel::time::Time;
use xoff_net::human;
use xoff_outcome::facts;
use xoff_outcome::report::{Facts, Ran, Record, Section};

pub static FACTS: Facts = facts! { "roundabout":
    found: Count, "Triplets that returned to the queue that had drawn them.";
    seated: Count, "Loops in which every switch took its seat.";
    rounds: Count, "Rounds that packets made in loops.";
    dissolved: Count, "Loops dissolved.";
    given_up: Count, "Attempts that a switch gave up.";
    first_ps: Time, "Time of the first deadlock found; null if there was none.";
    first_port: Text, "The port whose ingress queue found it.";
    known_ps: Time, "Mean time from finding a deadlock until its announcement had passed around the loop; null if none had.";
    mean_ps: Time, "Mean time from finding a deadlock until its loop was dissolved; null if none was.";
    longest_ps: Time, "The longest such time.";
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Deadlocks that switches have found, in their order (then of port and lane).
    pub detections: Vec<Detection>,
    /// Their results, in their order.
    pub attempts: Vec<Attempted>,
}

impl Record for Report {
    fn add(&mut self, other: Self) {
        self.detections.extend(other.detections);
        self.attempts.extend(other.attempts);
    }

    fn sort(&mut self) {
        self.detections.sort_by_key(|d| (d.at, d.port, d.lane));
        self.attempts.sort_by_key(|p| (p.at, p.attempt.sid, p.attempt.qid, p.attempt.rand, p.step));
    }

    fn deadlocks_found(&self) -> Vec<Time> {
        self.detections.iter().map(|d| d.at).collect()
    }

    fn section(&self, ran: &Ran<'_>) -> Section {
        let steps = |step: Step| self.attempts.iter().filter(move |a| a.step == step);
        let count = |step: Step| steps(step).count() as u64;
        let found = |a: &Attempted| self.detections.iter().find(|d| d.triplet == a.attempt);
        let times: Vec<Time> = steps(Step::Dissolved).filter_map(|a| Some(a.at - found(a)?.at)).collect();
        let known: Vec<Time> = self.detections.iter().filter_map(|d| Some(d.all_know? - d.at)).collect();
        let source = |a: &Attempted| (a.attempt.sid, a.attempt.qid, a.attempt.rand);
        let given_up = steps(Step::GivenUp).map(source).collect::<BTreeSet<_>>().len() as u64;
        let first = self.detections.first().map(|d| (d.at, ran.port(d.port)));
        let mut row = loops::row(self.detections.len() as u64, first.as_ref(), &times, "dissolved", " in");
        if first.is_some() && given_up > 0 {
            row += &format!("; {} given up", human::counted(given_up, "attempt"));
        }
        let values = vec![
            (self.detections.len() as u64).into(),
            count(Step::Seated).into(),
            count(Step::Round).into(),
            count(Step::Dissolved).into(),
            given_up.into(),
            first.as_ref().map(|f| f.0).into(),
            first.map(|f| f.1).into(),
            loops::mean(&known).into(),
            loops::mean(&times).into(),
            times.iter().copied().max().into(),
        ];
        Section::new(&FACTS, values).row("loops", row)
    }
}
