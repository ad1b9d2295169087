//! Experiments: a figure of a paper as a file, run as a grid, measured, and
//! held against what the paper claims.
//!
//! Input is the files of experiments and the run directories that
//! `xoff-results` wrote. This crate knows nothing of how a run is made: whoever
//! runs the grid hands it the directories.
//!
//! [`experiment`] is the file, [`metrics`] what is measured in a run's
//! directory, [`verdict`] how a measurement is judged, [`evaluate`] all of that
//! together, [`report`] what is written and [`answer`] what is printed of it.

// Where a name says it all, there is no more to say.
#![allow(missing_docs)]

pub mod answer;
pub mod check;
mod check_claims;
pub mod evaluate;
pub mod experiment;
pub mod library;
pub mod metrics;
pub mod names;
pub mod page;
pub mod plot;
pub mod read;
pub mod report;
pub mod runs;
pub mod sensitivity;
pub mod verdict;
