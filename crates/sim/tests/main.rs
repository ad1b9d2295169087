//! The tests of the simulator in one program: each file is a module, so that they are linked once.

mod arbiter;
mod ate;
mod bifrost;
mod bifrost_faults;
mod blocking;
mod breakers;
mod by_flow;
mod cbfc;
mod common;
mod critical;
mod dcqcn;
mod deadlock;
mod determinism;
mod dsh;
mod exact;
mod faults;
mod gates;
mod gfc;
mod go_back_n_timer;
mod irn;
mod itsy;
mod link_layer;
mod livelock;
mod load_balancing;
mod lossless;
mod newreno;
mod nscc;
mod nscc_rccc;
mod pause;
mod pfc;
mod portfc;
mod pyrrha_deadlock;
mod pyrrha_fabrics;
mod pyrrha_hybrid;
mod pyrrha_loss;
mod pyrrha_reroute;
mod queueing;
mod queues_under_faults;
mod rate_controls;
mod rccc;
mod reference;
mod reference_incast;
mod relay;
mod reps;
mod retries;
mod roundabout;
mod rud;
mod series;
mod swift;
mod swing;
mod tagger;
mod tcp_dctcp;
mod threads;
mod topologies;
mod trace;
mod training;
mod trimming;
mod uec_cbfc;
mod watchdog;

/// A file that is not a module here would not be compiled, and its tests would not run.
#[test]
fn every_file_is_a_module() {
    let modules = include_str!("main.rs");
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".rs").filter(|name| *name != "main") else { continue };
        assert!(modules.contains(&format!("\nmod {name};\n")), "tests/main.rs lacks `mod {name};`");
    }
}
