//! The sections of a run's mechanisms.

use xoff_outcome::Outcome;
use xoff_outcome::report::{Ran, Section};
use xoff_plan::plan::Plan;

/// A section for each mechanism that has recorded anything.
pub fn sections(plan: &Plan, outcome: &Outcome) -> Vec<Section> {
    outcome.records.sections(&ran(plan, outcome, &priorities(plan)))
}

/// The 802.1p priority of each lane.
pub(crate) fn priorities(plan: &Plan) -> Vec<u8> {
    plan.lanes.iter().map(|lane| lane.priority).collect()
}

/// The run as mechanisms look at it.
pub(crate) fn ran<'a>(plan: &'a Plan, outcome: &'a Outcome, priorities: &'a [u8]) -> Ran<'a> {
    let (largest, loses_frames) = (plan.packet.largest(), !plan.faults.losses.is_empty());
    Ran { topology: &plan.topology, priorities, largest, loses_frames, outcome }
}
