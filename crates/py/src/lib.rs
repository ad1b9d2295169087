//! The native part of the Python package `xoff`: the verbs of [`xoff::library`] for `python/xoff`, which gives
//! them their Python form. The core knows nothing of Python.
//!
//! A crate with other schemes has a module that calls [`fill`]. That module replaces this one.

mod answers;
mod errors;
mod examples;
mod scenario;
mod store;
mod supervise;
mod table;
mod values;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use xoff_schemes::flow_control::own::{self, OwnScheme};

/// The module, with the schemes that are built in.
#[pymodule]
#[cfg_attr(feature = "module", pyo3(name = "_xoff"))]
mod native {

    #[pymodule_export]
    use crate::answers::{
        Answer, compare_grid, explain, main, metrics, page, read_grid, read_run, report, repro, save_grid,
        save_run, schema, schemes, size,
    };
    #[pymodule_export]
    use crate::examples::examples;
    #[pymodule_export]
    use crate::scenario::{Scenario, grid, limit_memory};
    #[pymodule_export]
    use crate::store::{open_chunks, plan_grid, store_page, store_report, store_status, store_table, work};
    #[pymodule_export]
    use crate::supervise::fail;
    #[pymodule_export]
    use crate::table::{Table, read_runs, read_table};
    #[pymodule_export]
    use crate::values::{toml_document, toml_value};

    /// Version of xoff.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python calls it so")]
    const __version__: &str = xoff::library::VERSION;
}

/// Makes a Python module of another crate the native part of the package `xoff`, with `schemes` beside those that are
/// built in. Python imports it before `xoff`. That crate depends on this one without its default features.
///
/// # Errors
/// `xoff` was imported before.
///
/// # Panics
/// Two schemes have one name, or the process has called this before.
pub fn fill(module: &Bound<'_, PyModule>, schemes: &[OwnScheme]) -> PyResult<()> {
    let modules = module.py().import("sys")?.getattr("modules")?;
    if modules.contains(NAME)? {
        let name = module.name()?.to_string();
        let package = name.split('.').next().unwrap_or(&name);
        let message = format!("xoff was imported before: write `import {package}` before `import xoff`");
        return Err(PyImportError::new_err(message));
    }
    own::register(schemes);
    let all = pyo3::wrap_pymodule!(native)(module.py());
    for (name, value) in all.bind(module.py()).cast::<PyModule>()?.dict() {
        let name: String = name.extract()?;
        if name == "__version__" || !name.starts_with("__") {
            module.add(name, value)?;
        }
    }
    modules.set_item(NAME, module)
}

/// The native part, as Python imports it.
const NAME: &str = "xoff._xoff";
