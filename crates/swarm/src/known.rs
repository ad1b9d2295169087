//! What is known to be wrong with the program, and not looked at until it is mended.

use xoff_plan::Loaded;
use xoff_schemes::flow_control::PauseScope;

use crate::invariants::Broken;

/// Whether a broken invariant is known: a lost ACK of a pod without buffers panics, and where
/// packets of a flow take several paths, `per-flow-queue` records the pauses of a host twice.
pub fn is_known(loaded: Option<&Loaded>, broken: &Broken) -> bool {
    let by_flow = loaded.is_some_and(|l| l.plan.flow_control.pause_scope() == PauseScope::Flow);
    broken.invariant.starts_with("panic at crates/sim/src/zeropod/mod.rs:943")
        || by_flow && broken.invariant == "no queue is paused twice at once"
}

/// Runs without an end that get nothing done: no verdict of the program says so yet.
pub fn may_never_end(_: &Loaded) -> bool {
    true
}
