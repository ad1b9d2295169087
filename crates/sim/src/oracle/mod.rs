//! Oracles: they see everything, decide nothing, and no scheme sees them.

pub mod ahead;
pub mod blocking;
pub mod critical;
pub mod deadlock;
pub mod livelock;
