//! A store: the runs of a grid, and who makes which of them.
//!
//! A store is a directory, or a prefix of S3 or Google Cloud Storage, that any number of workers reach, on any number
//! of machines. Each object in it is written once and never changed: [`bucket`] puts it only if it is absent. So no
//! worker needs to know another one:
//!
//! | object | what it says |
//! |---|---|
//! | `plan.json` | what is to be run ([`plan::Plan`]) |
//! | `points.parquet` | each run with its hash and values |
//! | `leases/CHUNK/N.json` | who works on a chunk, and until when ([`lease`]) |
//! | `runs/**/part-CHUNK.parquet` | the numbers of the chunk's runs |
//! | `flows/**/part-CHUNK.parquet` | the flows of the chunk's runs |
//! | `done/CHUNK.json` | the chunk is done: by whom, and the checksums of its parts ([`record::Record`]) |
//! | `failed/CHUNK.json` | runs of the chunk failed, and why |
//! | `warnings/CHUNK.json` | runs of the chunk with their warnings |
//! | `lost/CHUNK-TIME.json` | a worker lost its lease, and who took over |
//! | `until.txt` | the rule by which points need no further seeds |
//! | `conflicts/CHUNK-WORKER.json` | somebody else got other results for the chunk |
//!
//! A part contains no wall-clock time, so every worker writes the same bytes for a chunk. If two workers make a chunk,
//! the second one compares its bytes with those of the first.

// Where a name says it all, there is no more to say.
#![allow(missing_docs)]

pub mod bucket;
mod cloud;
mod directory;
pub mod lease;
pub mod plan;
pub mod record;

pub use bucket::{Bucket, Error};
