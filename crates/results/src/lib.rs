//! The results of a run for people and programs: statistics, the summary, notes that explain the run, text
//! tables, and the run directory with its Parquet files.
//!
//! Input is a [`Plan`](xoff_plan::plan::Plan) and the [`Outcome`](xoff_outcome::Outcome) of running it. This
//! crate does not depend on the simulator or on terminals. Nothing that it writes depends on the clock,
//! except the wall time in `manifest.json`.

// Where a name says it all, there is no more to say.
#![allow(missing_docs)]

pub mod blocking;
pub mod breaking;
pub mod capture;
pub mod checksum;
pub mod columns;
pub mod data;
pub mod directory;
pub mod drops;
pub mod effects;
pub mod explain;
mod faults;
pub mod grid;
pub mod integrity;
pub mod jobs;
pub mod layout;
pub mod livelock;
pub mod names;
pub mod network;
pub mod notes;
pub mod offered;
pub mod overload;
pub mod pauses;
pub mod report;
pub mod sections;
pub mod size;
pub mod statistics;
pub mod storage;
pub mod stuck;
pub mod summary;
pub mod svg;
pub mod table;
pub mod temporary;
pub mod verdicts;

pub use xoff_net::human;
