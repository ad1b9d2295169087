//! The program xoff with the schemes that are built in.

use std::process::ExitCode;

fn main() -> ExitCode {
    xoff::main()
}
