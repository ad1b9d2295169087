//! The discrete-event kernel: time, the event queue and named random streams.
//!
//! It does not depend on networks. Time is an integer number of picoseconds; events have the one total order
//! `(time, kind, element)`; every random number comes from a stream named by its purpose. So the same inputs
//! give the same bytes on every machine.

#![allow(missing_docs)]

pub mod random;
pub mod slots;
pub mod table;
pub mod time;
pub mod wheel;
