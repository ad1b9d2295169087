//! Pauses: each begins before it ends, within the run, and no queue is paused twice at once.

use std::collections::BTreeMap;

use xoff_plan::Loaded;
use xoff_sim::outcome::Outcome;

use super::{Broken, holds};

/// Pauses are in order, within the run, and apart.
pub fn well_formed(loaded: &Loaded, outcome: &Outcome) -> Result<(), Broken> {
    let ports = loaded.plan.topology.ports.len() as u32;
    let mut ends = BTreeMap::new();
    let mut before = (0, 0, 0);
    for pause in &outcome.pauses {
        let fail = |what: &str| Err(Broken::new(what, format!("{pause:?}, end {}", outcome.end)));
        let until = pause.until.unwrap_or(outcome.end);
        if pause.from > until || until > outcome.end {
            return fail("a pause begins before it ends");
        }
        if pause.port >= ports || pause.cause >= ports || usize::from(pause.lane) >= loaded.plan.lanes.len() {
            return fail("a pause has a place");
        }
        let place = (pause.from, pause.port, pause.lane);
        if place < before {
            return fail("pauses are in order");
        }
        before = place;
        let queue = (pause.port, pause.lane, pause.queue, pause.named_root);
        if let Some(last) = ends.insert(queue, until)
            && last > pause.from
        {
            return fail("no queue is paused twice at once");
        }
    }
    holds(
        outcome.deadlock.is_none() || !outcome.pauses.is_empty() || credits(loaded),
        "deadlocks are of pauses",
        String::new,
    )
}

/// Whether ports wait for credit, which is no pause.
fn credits(loaded: &Loaded) -> bool {
    matches!(loaded.plan.flow_control, xoff_schemes::flow_control::FlowControlParams::Cbfc(_))
}
