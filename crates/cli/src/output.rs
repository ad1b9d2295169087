//! Printing that survives a closed pipe: `xoff run … | head` is no failure.

use std::io::{self, Write};
use std::path::Path;

use miette::{IntoDiagnostic, WrapErr};
use xoff_results::temporary;

/// Prints an answer to standard output. Nobody reading it is no error.
///
/// # Errors
/// Standard output cannot be written for another reason, such as a full disk.
pub fn print(text: &str) -> miette::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(e).into_diagnostic().wrap_err("the answer cannot be printed")
        }
        _ => Ok(()),
    }
}

/// Prints a line to standard error; if that is closed there is nowhere to say so.
pub fn complain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", text.trim_end());
}

/// Removes what killed processes have left in a directory, and names what cannot be removed.
pub fn sweep(dir: &Path) {
    for left in temporary::sweep(dir) {
        complain(&format!("warning: {left}"));
    }
}

/// As [`sweep`], of the directory in which a result at `out` is.
pub fn sweep_beside(out: &Path) {
    for left in temporary::sweep_beside(out) {
        complain(&format!("warning: {left}"));
    }
}
