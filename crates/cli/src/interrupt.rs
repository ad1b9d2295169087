//! Ctrl-C and its relatives: a run stops where it is and what it has found is written.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use miette::{IntoDiagnostic, WrapErr};

/// Exit status: interrupted, as shells say it for SIGINT.
pub const INTERRUPTED: u8 = 130;

/// A flag that the first Ctrl-C, SIGTERM or SIGHUP sets; the second one ends
/// the process. Under `nohup` SIGHUP stays without effect.
///
/// # Errors
/// The system refuses, or it is called twice.
pub fn flag() -> miette::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    keeping_nohup(|| {
        ctrlc::set_handler(move || {
            if set.swap(true, Ordering::Relaxed) {
                process::exit(i32::from(INTERRUPTED));
            }
        })
        .into_diagnostic()
        .wrap_err("Ctrl-C cannot be handled")
    })?;
    Ok(flag)
}

/// Lets a write beyond `ulimit -f` fail with an error: the signal that comes first
/// would end the program without a word.
///
/// # Errors
/// The system refuses.
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

/// Lets `install` set handlers, and then ignores SIGHUP again if it was ignored.
#[cfg(unix)]
fn keeping_nohup(install: impl FnOnce() -> miette::Result<()>) -> miette::Result<()> {
    use nix::sys::signal::{SigAction, SigHandler, SigSet, Signal, sigaction};
    let ignored = SigAction::new(SigHandler::SigIgn, nix::sys::signal::SaFlags::empty(), SigSet::empty());
    // What a handler was can only be learned by setting another.
    // SAFETY: no handler of ours is installed, so nothing runs in a signal's context.
    let before = unsafe { sigaction(Signal::SIGHUP, &ignored) }.into_diagnostic()?;
    install()?;
    if matches!(before.handler(), SigHandler::SigIgn) {
        // SAFETY: as above; SIGHUP is ignored, not handled.
        unsafe { sigaction(Signal::SIGHUP, &ignored) }.into_diagnostic()?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn keeping_nohup(install: impl FnOnce() -> miette::Result<()>) -> miette::Result<()> {
    install()
}
