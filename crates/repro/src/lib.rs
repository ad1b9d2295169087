//! Experiments: a figure of a paper as a file, run as a grid, measured, and compared with the paper's claims.
//!
//! Input is the files of experiments and the run directories that `xoff-results` wrote. This crate does not
//! make runs: its caller runs the grid and passes the directories.
//!
//! [`experiment`] is the file, [`metrics`] measures in a run's directory, [`verdict`] judges a measurement,
//! and [`evaluate`] does all of that together. [`report`] has the written results and [`answer`] the printed
//! ones.

// Where a name says it all, there is no more to say.
#![allow(missing_docs)]

pub mod answer;
mod chart;
pub mod check;
mod check_claims;
pub mod discussion;
pub mod equal;
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
pub mod site;
pub mod verdict;
