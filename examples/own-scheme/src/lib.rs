//! A scheme of one's own: `port-pause`, which pauses a link by the bytes that a port stores.

mod keys;
mod port_pause;

use keys::PortPauseKeys;
use port_pause::PortPause;
use xoff_schemes::flow_control::own::OwnScheme;

/// The scheme, for xoff and for its Python package.
pub const SCHEME: OwnScheme = OwnScheme::new::<PortPauseKeys, PortPause>(
    "port-pause",
    "A pause of the whole link (IEEE 802.3 Annex 31B) while all lossless priorities of a port \
     together store too much.",
);

/// The native module for the Python package.
#[cfg(feature = "python")]
#[pyo3::pymodule]
#[pyo3(name = "port_pause")]
fn python(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
    xoff_py::fill(module, &[SCHEME])
}
