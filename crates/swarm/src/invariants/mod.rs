//! Invariants of every run.

mod flows;
mod liveness;
mod pauses;
mod ports;

use xoff_plan::Loaded;
use xoff_sim::outcome::Outcome;

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which one: the same for every scenario that breaks it.
    pub invariant: String,
    pub detail: String,
}

impl Broken {
    /// Describes the observation that violates it.
    pub fn new(invariant: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { invariant: invariant.into(), detail: detail.into() }
    }
}

/// Breaks an invariant unless something holds.
fn holds(condition: bool, invariant: &str, detail: impl FnOnce() -> String) -> Result<(), Broken> {
    if condition { Ok(()) } else { Err(Broken::new(invariant, detail())) }
}

/// Invariants at any time of a run, also of one that was cut short.
///
/// # Errors
/// The first invariant that does not hold.
pub fn partial(loaded: &Loaded, outcome: &Outcome) -> Result<(), Broken> {
    flows::conserved(loaded, outcome)?;
    flows::bounded(loaded, outcome)?;
    ports::lossless(loaded, outcome)?;
    ports::bounded(loaded, outcome)?;
    pauses::well_formed(loaded, outcome)?;
    flows::paths_add_up(loaded, outcome)
}

/// Invariants of a run that has ended by itself.
///
/// # Errors
/// As of [`partial`].
pub fn whole(loaded: &Loaded, outcome: &Outcome) -> Result<(), Broken> {
    liveness::ended(loaded, outcome)
}

pub use liveness::headway;

/// Two runs of one plan are the same, field by field.
///
/// # Errors
/// The first field that differs.
pub fn same(one: &Outcome, other: &Outcome, what: &str) -> Result<(), Broken> {
    let differs = |field: &str, detail: String| {
        Err(Broken::new(format!("same bytes: {field}"), format!("{what}: {detail}")))
    };
    macro_rules! field {
        ($($name:ident)*) => {$(
            if one.$name != other.$name {
                return differs(stringify!($name), format!("{:.400} and {:.400}", format!("{:?}", one.$name), format!("{:?}", other.$name)));
            }
        )*};
    }
    field!(counters stop end flows ports pauses drops series accounts buffer_peaks deadlock waiting);
    if one != other {
        return differs("what oracles and schemes saw", String::new());
    }
    Ok(())
}
