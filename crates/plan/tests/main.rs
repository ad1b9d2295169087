//! The tests of scenario files and plans in one program: each file is a module, so that they are linked once.

mod ate;
mod bifrost;
mod buffers;
mod cbfc;
mod common;
mod congestion_control;
mod examples;
mod faults;
mod flows;
mod hpcc_files;
mod load_balancing;
mod loading;
mod mutations;
mod pods;
mod routes;
mod size;
mod static_routes;
mod swing;
mod tags;
mod traffic;
mod transports;
mod warnings;
mod wrong;
