//! Runs on several threads.

pub mod executor;
pub mod outbox;
pub mod partition;
pub mod post;
