//! Runs on several threads.

pub mod carrier;
pub mod cpus;
pub mod executor;
pub mod fleet;
pub mod follow;
pub mod notes;
pub mod outbox;
pub mod pace;
pub mod partition;
pub mod post;
mod turns;
pub mod wires;
