//! What the mechanisms of a run say of it.

use xoff_outcome::Outcome;
use xoff_outcome::report::{Ran, Section};
use xoff_plan::plan::Plan;

/// A section for each mechanism that has recorded anything.
pub fn sections(plan: &Plan, outcome: &Outcome) -> Vec<Section> {
    let priorities: Vec<u8> = plan.lanes.iter().map(|lane| lane.priority).collect();
    outcome.records.sections(&Ran { topology: &plan.topology, priorities: &priorities, outcome })
}
