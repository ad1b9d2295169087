//! Runs on several threads.

pub mod executor;
pub mod partition;
