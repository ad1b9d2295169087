//! Runs on several threads.

pub mod executor;
pub mod letters;
pub mod partition;
pub mod post;
