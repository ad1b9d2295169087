//! The native part of the Python package `xoff`: the verbs of [`xoff::library`] for `python/xoff`, which gives
//! them their Python form. The core knows nothing of Python.
//!
//! A crate with schemes of its own makes the same package by a module `_xoff` that calls [`fill`].

mod answers;
mod errors;
mod scenario;
mod supervise;
mod table;
mod values;

use pyo3::prelude::*;
use xoff_schemes::flow_control::own::{self, OwnScheme};

/// Adds the functions and classes of xoff to a Python module, with `schemes` beside those that are built in.
///
/// # Errors
/// Python has no memory for them.
///
/// # Panics
/// Two schemes have one name, or the process has called this before.
pub fn fill(module: &Bound<'_, PyModule>, schemes: &[OwnScheme]) -> PyResult<()> {
    own::register(schemes);
    xoff::library::limit_runs();
    module.add("__version__", xoff::library::VERSION)?;
    module.add_class::<scenario::Scenario>()?;
    module.add_class::<answers::Answer>()?;
    module.add_class::<table::Table>()?;
    module.add_function(wrap_pyfunction!(answers::explain, module)?)?;
    module.add_function(wrap_pyfunction!(answers::page, module)?)?;
    module.add_function(wrap_pyfunction!(answers::report, module)?)?;
    module.add_function(wrap_pyfunction!(answers::read_run, module)?)?;
    module.add_function(wrap_pyfunction!(answers::read_grid, module)?)?;
    module.add_function(wrap_pyfunction!(answers::compare_grid, module)?)?;
    module.add_function(wrap_pyfunction!(answers::metrics, module)?)?;
    module.add_function(wrap_pyfunction!(answers::save_run, module)?)?;
    module.add_function(wrap_pyfunction!(answers::save_grid, module)?)?;
    module.add_function(wrap_pyfunction!(answers::size, module)?)?;
    module.add_function(wrap_pyfunction!(answers::schemes, module)?)?;
    module.add_function(wrap_pyfunction!(answers::schema, module)?)?;
    module.add_function(wrap_pyfunction!(answers::repro, module)?)?;
    module.add_function(wrap_pyfunction!(answers::main, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::grid, module)?)?;
    module.add_function(wrap_pyfunction!(table::read_table, module)?)?;
    module.add_function(wrap_pyfunction!(table::read_runs, module)?)?;
    module.add_function(wrap_pyfunction!(values::toml_value, module)?)?;
    module.add_function(wrap_pyfunction!(values::toml_document, module)?)?;
    Ok(())
}

#[cfg(feature = "module")]
#[pymodule]
fn _xoff(module: &Bound<'_, PyModule>) -> PyResult<()> {
    fill(module, &[])
}
