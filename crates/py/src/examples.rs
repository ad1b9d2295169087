//! The scenarios of examples/, so that the package has them without files.

use pyo3::prelude::*;

/// Name and text of each, as `build.rs` lists them.
const EXAMPLES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/examples.rs"));

/// Name and text of each scenario in examples/.
#[pyfunction]
pub fn examples() -> Vec<(String, String)> {
    EXAMPLES.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect()
}
