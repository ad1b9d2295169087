//! Changes of labels in numbers, where senders make them (PLB).

use serde::Serialize;

use crate::human;
use xoff_plan::balancing::LoadBalancing;
use xoff_plan::plan::Plan;
use xoff_sim::outcome::{Outcome, Relabelling};

/// The flows of a run, and their labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlbSummary {
    /// Flows whose labels give them more than one route.
    pub flows_with_choice: u64,
    /// Flows that changed their label.
    pub flows_changed: u64,
    /// Changes for packets that came marked …
    pub changes_by_marks: u64,
    /// … and after timeouts.
    pub changes_by_timeouts: u64,
    /// Changes of both kinds that gave another route.
    pub moves: u64,
}

/// Sums up the labels of a run, if there are any.
pub fn summarise(plan: &Plan, outcome: &Outcome) -> Option<PlbSummary> {
    let LoadBalancing::Plb(plb) = &plan.load_balancing else { return None };
    let told = &outcome.plb.as_ref()?.flows;
    let sum = |get: fn(&Relabelling) -> u32| told.iter().map(|f| u64::from(get(f))).sum();
    let several = |labels: &&[u32]| labels.iter().any(|start| *start != labels[0]);
    Some(PlbSummary {
        flows_with_choice: plb.routes.chunks(plb.labels as usize).filter(several).count() as u64,
        flows_changed: told.iter().filter(|f| f.by_marks + f.by_timeouts > 0).count() as u64,
        changes_by_marks: sum(|f| f.by_marks),
        changes_by_timeouts: sum(|f| f.by_timeouts),
        moves: sum(|f| f.moves),
    })
}

/// The row of the answer's totals.
pub fn row(plb: &PlbSummary) -> String {
    format!(
        "{} changes for marks and {} after timeouts, by {} of {} with a choice; {} gave another route",
        human::count(plb.changes_by_marks),
        human::count(plb.changes_by_timeouts),
        human::count(plb.flows_changed),
        human::counted(plb.flows_with_choice, "flow"),
        human::count(plb.moves),
    )
}
