//! Grants of long links in numbers: what was stored and could still arrive, against the
//! bounds of Theorem 1 (Bifrost, section IV-C).

use serde::Serialize;

use crate::human;
use crate::names;
use xoff_plan::plan::Plan;
use xoff_sim::outcome::Outcome;

/// What ports granted in a run, under Bifrost or BifrostX.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BifrostSummary {
    /// Slots of all ports that grant; of each lossless priority under Bifrost.
    pub slots: u64,
    /// Those that were granted whole, so that no pause was sent.
    pub whole_slots: u64,
    /// The most that what is stored and can still arrive exceeded H at the end of a slot, in
    /// bytes; negative: how far it stayed below. Null if there was no slot.
    pub most_over_buffer: Option<i64>,
    /// The least that the same exceeded Δ + R·T, in bytes; negative: throughput can be lost.
    pub least_over_bdp: Option<i64>,
    /// Most bytes that a port had stored at the end of a slot.
    pub most_stored: u64,
    /// The port that had; null if none had any.
    pub most_stored_port: Option<String>,
    /// H of that port.
    pub buffer: Option<u64>,
    /// Least that the tokens of all priorities exceeded those of the port, in bytes; null
    /// but under BifrostX.
    pub least_spread: Option<i64>,
}

/// Sums up, if the run had ports that grant.
pub fn summarise(plan: &Plan, outcome: &Outcome) -> Option<BifrostSummary> {
    let seen = &outcome.grants;
    let first = seen.first()?;
    let diff = |a: u64, b: u64| a as i64 - b as i64;
    let most = seen.iter().rev().max_by_key(|g| g.tally.most_stored).unwrap_or(first);
    let stored = most.tally.most_stored;
    Some(BifrostSummary {
        slots: seen.iter().map(|g| g.tally.slots).sum(),
        whole_slots: seen.iter().map(|g| g.tally.whole).sum(),
        most_over_buffer: seen.iter().map(|g| diff(g.tally.most, g.params.buffer)).max(),
        least_over_bdp: seen.iter().map(|g| diff(g.tally.least, g.params.bdp() + g.params.of_slot())).min(),
        most_stored: stored,
        most_stored_port: (stored > 0).then(|| names::port(plan, most.port)),
        buffer: (stored > 0).then_some(most.params.buffer),
        least_spread: seen.iter().filter(|g| g.params.counted).map(|g| g.tally.least_spread).min(),
    })
}

/// The row of the answer's totals.
pub fn row(s: &BifrostSummary) -> String {
    let granted = format!("{}, {} whole", human::counted(s.slots, "slot"), human::count(s.whole_slots));
    match (&s.most_stored_port, s.buffer) {
        (Some(port), Some(buffer)) => format!(
            "{granted}; most stored {} of H = {} ({port})",
            human::bytes(s.most_stored),
            human::bytes(buffer)
        ),
        _ => format!("{granted}; nothing had to wait"),
    }
}
