//! The tests of experiments and verdicts in one program: each file is a module, so that they are linked once.

mod common;
mod repro;
mod sensitivity;
