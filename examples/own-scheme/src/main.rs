//! xoff with one more scheme: `port-pause`, which pauses a link by the bytes that a port stores.

mod keys;
mod port_pause;

use keys::PortPauseKeys;
use port_pause::PortPause;
use std::process::ExitCode;
use xoff_schemes::flow_control::own::OwnScheme;

const SCHEME: OwnScheme = OwnScheme::new::<PortPauseKeys, PortPause>(
    "port-pause",
    "A pause of the whole link (IEEE 802.3 Annex 31B) while all lossless priorities of a port \
     together store too much.",
);

fn main() -> ExitCode {
    xoff::main_with(&[SCHEME])
}
