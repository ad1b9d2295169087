//! The discrete-event kernel: time, the event queue and named random streams.
//!
//! It does not depend on networks. Time is an integer number of picoseconds; events have the one total order
//! `(time, kind, element)`; every random number comes from a stream named by its purpose. So the same inputs
//! give the same bytes on every machine.

// Only crates of this workspace use it: names that say enough need no comment.
#![allow(missing_docs)]

pub mod random;
pub mod table;
pub mod time;
pub mod wheel;
