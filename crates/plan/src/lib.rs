//! From a scenario file's text to a [`plan::Plan`]: parsing with errors that name
//! line, key and remedy; traffic; loads; ideal completion times. Pure: it knows
//! nothing of running and touches no file but those that the caller read for it.

mod document;
mod parse;
pub mod scenario;
pub mod error;
pub mod ideal;
pub mod plan;
