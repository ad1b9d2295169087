//! Runs on several threads.

mod cpus;
pub mod executor;
pub mod outbox;
pub mod partition;
pub mod post;
mod turns;
