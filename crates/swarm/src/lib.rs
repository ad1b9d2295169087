//! The swarm: random scenarios of every kind, the whole program on each, and everything that must
//! hold of any of them.
//!
//! [`generate::scenario`] makes the scenario of a seed, [`trial::trial`] runs it, [`soak`] runs
//! many, and [`shrink::shrink`] makes one smaller that breaks something. Only tests of other
//! crates depend on this one.

// Where a name says it all, there is no more to say.
#![allow(missing_docs)]

pub mod coverage;
mod draw;
pub mod generate;
pub mod invariants;
pub mod scenario;
pub mod shrink;
pub mod soak;
pub mod trial;
mod verbs;
