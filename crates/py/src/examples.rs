//! The scenarios of examples/, so that the package has them without files.

use pyo3::prelude::*;

/// The pairs of name and text of these scenarios.
macro_rules! examples {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../examples/", $name, ".toml")))),*]
    };
}

const EXAMPLES: &[(&str, &str)] = examples! {
    "all-reduce"
    "all-reduce-loop"
    "bcube-deadlock"
    "congestion-controls"
    "dci"
    "dci-stop"
    "drill"
    "fat-tree-failed-links"
    "hello"
    "incast-victims"
    "itsy"
    "leaf-spine"
    "moe"
    "parameter-server"
    "pause"
    "portfc-queues"
    "rail-only"
    "rail-only-ate"
    "tcp-bottleneck"
    "victims"
    "watchdog"
    "zeropod"
};

/// Name and text of each scenario in examples/.
#[pyfunction]
pub fn examples() -> Vec<(String, String)> {
    EXAMPLES.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect()
}
