//! Ctrl-C and similar signals: a run stops, and its results are written.

use std::{sync::Arc, sync::atomic::AtomicBool};

use miette::{IntoDiagnostic, WrapErr};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Exit status: interrupted, as shells say it for SIGINT.
pub const INTERRUPTED: u8 = 130;

/// A flag that the first Ctrl-C, SIGTERM or SIGHUP sets; the second one ends
/// the process. Under `nohup` SIGHUP has no effect.
pub fn flag() -> miette::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [Some(SIGINT), Some(SIGTERM), hangup()?].into_iter().flatten() {
        // In this order: the signal that sets the flag must not end the process.
        flag::register_conditional_shutdown(signal, i32::from(INTERRUPTED), Arc::clone(&flag))
            .and_then(|_| flag::register(signal, Arc::clone(&flag)))
            .into_diagnostic()
            .wrap_err("Ctrl-C cannot be handled")?;
    }
    Ok(flag)
}

/// SIGHUP, unless it is ignored, as `nohup` has it.
#[cfg(unix)]
fn hangup() -> miette::Result<Option<i32>> {
    use nix::sys::signal::{SigHandler, Signal, signal};
    // The system returns the present handler only when it sets another. SAFETY: the signal is ignored, so
    // nothing runs in its context.
    let before = unsafe { signal(Signal::SIGHUP, SigHandler::SigIgn) }.into_diagnostic()?;
    Ok((!matches!(before, SigHandler::SigIgn)).then_some(signal_hook::consts::SIGHUP))
}

#[cfg(not(unix))]
fn hangup() -> miette::Result<Option<i32>> {
    Ok(None)
}

/// Lets a write beyond `ulimit -f` fail with an error: the signal that comes first
/// would end the program without a word.
#[cfg(unix)]
pub fn ignore_file_limit() -> miette::Result<()> {
    use nix::sys::signal::{SigHandler, Signal, signal};
    // SAFETY: the signal is ignored, so nothing runs in its context.
    unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) }
        .into_diagnostic()
        .wrap_err("the signal of the limit on files cannot be ignored")?;
    Ok(())
}

/// There is no such signal here.
#[cfg(not(unix))]
pub fn ignore_file_limit() -> miette::Result<()> {
    Ok(())
}
