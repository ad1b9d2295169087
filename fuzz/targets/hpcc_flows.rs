//! For any flow.txt of the HPCC simulator, the reader returns flows or an error.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use xoff_net::topology::Topology;
use xoff_net::traffic::flows_hpcc;

/// The fabric of `examples/hpcc`.
static TOPOLOGY: LazyLock<Topology> = LazyLock::new(|| {
    let spec = xoff_net::builders::Hpcc { file: "topology.txt".to_string(), long_delay: None };
    spec.build(include_str!("../../examples/hpcc/topology.txt")).expect("an example")
});

fuzz_target!(|text: &str| {
    match flows_hpcc(text, &TOPOLOGY) {
        Ok(flows) => assert!(flows.iter().all(|(flow, _)| flow.src != flow.dst)),
        Err(error) => assert!(!error.message.is_empty()),
    }
});
