//! xoff with one more scheme.

use own_scheme::SCHEME;
use std::process::ExitCode;

fn main() -> ExitCode {
    xoff::main_with(&[SCHEME])
}
