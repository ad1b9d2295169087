//! The tests of topologies in one program: each file is a module, so that they are linked once.

mod hpcc_files;
mod topologies;
