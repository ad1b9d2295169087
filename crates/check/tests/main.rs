//! The tests of the checker in one program: each file is a module, so that they are linked once.

mod blocking;
mod choices;
mod common;
mod credit;
mod dsh;
mod graph;
mod isolation;
mod load_balancing;
mod model;
mod pause;
mod pictures;
mod portfc;
mod proofs;
mod pyrrha;
mod textbook;
