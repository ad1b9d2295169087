//! For any CSV file of flows, the reader returns flows or an error with its line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use xoff_net::topology::Topology;
use xoff_net::traffic::flows_csv;

/// H0 to H3 around one switch.
static TOPOLOGY: LazyLock<Topology> = LazyLock::new(|| {
    let text = "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 4\n\
                link = {rate=\"100Gbps\", delay=\"1us\"}\n\
                [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"1kB\"\n";
    let none = |_: &std::path::Path| Err(std::io::Error::other("no such file"));
    xoff_plan::load("fuzz.toml", text.as_bytes(), &[], &none).expect("a scenario").plan.topology
});

fuzz_target!(|text: &str| {
    match flows_csv(text, &TOPOLOGY) {
        Ok(flows) => {
            let hosts = 4;
            assert!(flows.iter().all(|flow| flow.src < hosts && flow.dst < hosts && flow.src != flow.dst));
        }
        Err(error) => assert!(error.line >= 1 && error.line <= text.lines().count() + 1),
    }
});
