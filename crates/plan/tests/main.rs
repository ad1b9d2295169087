//! The tests of scenario files and plans in one program: each file is a module, so that they are linked once.

mod ate;
mod bifrost;
mod cbfc;
mod common;
mod examples;
mod faults;
mod load_balancing;
mod meaning;
mod mutations;
mod pods;
mod size;
mod static_routes;
mod swing;
mod tags;
mod traffic;
mod wrong;
