//! Runs work on a separate thread. The interpreter continues meanwhile, and handles Ctrl-C and progress.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::{thread, time::Duration};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyBool;
use xoff_results::integrity::reason;

use crate::errors;

/// Distance of looks at signals, and of calls of `progress`.
const PERIOD: Duration = Duration::from_millis(50);

/// What the work and the thread that waits for it share.
#[derive(Default)]
pub struct Shared {
    /// Ctrl-C was pressed: the work is to end.
    pub interrupted: AtomicBool,
    /// The part that is done, 0 to 1, and the state in words.
    state: Mutex<(f64, String)>,
}

impl Shared {
    /// Tells the state; returns whether to go on.
    pub fn tell(&self, done: f64, text: &dyn Fn() -> String) -> bool {
        // The text is made only if nobody is reading the last one.
        if let Ok(mut state) = self.state.try_lock() {
            *state = (done, text());
        }
        !self.interrupted.load(Ordering::Relaxed)
    }
}

/// Does `work`, and calls `progress(done, text)` meanwhile, if it is there and `look` finds a state. Returns also
/// whether Ctrl-C, or `False` of `progress`, asked the work to end. A panic becomes an exception.
pub fn supervised<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    look: &dyn Fn(&Shared) -> Option<(f64, String)>,
    work: impl FnOnce(&Shared) -> T + Send,
) -> PyResult<(T, bool)> {
    let shared = Shared::default();
    let (sender, receiver) = mpsc::channel();
    let mut failed = None;
    let mut pressed = false;
    let result = thread::scope(|scope| {
        let seen = &shared;
        let job = move || {
            let done = catch_unwind(AssertUnwindSafe(|| work(seen)));
            // The receiver waits until this arrives.
            let _ = sender.send(done);
        };
        let begun = thread::Builder::new().name("xoff".into()).spawn_scoped(scope, job);
        if let Err(e) = begun {
            return Err(errors::of_bug(py, &format!("a thread cannot be started: {e}")));
        }
        let receiver = Mutex::new(receiver);
        let wait = || receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(PERIOD);
        loop {
            match py.detach(wait) {
                Ok(done) => return done.map_err(|panic| errors::of_bug(py, reason(&*panic))),
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    return Err(errors::of_bug(py, "the thread ended without a result"));
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            let mut end = |e: PyErr| {
                shared.interrupted.store(true, Ordering::Relaxed);
                // Ctrl-C is no error: the results are written. Other exceptions go to the caller.
                if e.is_instance_of::<PyKeyboardInterrupt>(py) {
                    pressed = true;
                } else {
                    failed = failed.take().or(Some(e));
                }
            };
            if let Err(e) = py.check_signals() {
                end(e);
            }
            if let Some(progress) = progress
                && !shared.interrupted.load(Ordering::Relaxed)
                && let Some(state) = look(&shared)
            {
                match progress.call1(state) {
                    // The caller has enough.
                    Ok(answer) if answer.is(PyBool::new(py, false)) => end(PyKeyboardInterrupt::new_err(())),
                    Ok(_) => {}
                    Err(e) => end(e),
                }
            }
        }
    });
    match failed {
        Some(e) => Err(e),
        None => Ok((result?, pressed)),
    }
}

/// The state that the work told last.
pub fn told(shared: &Shared) -> Option<(f64, String)> {
    let state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
    (!state.1.is_empty()).then(|| state.clone())
}

/// Does `work` without the interpreter's lock. A panic becomes an exception.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let done =
        py.detach(|| catch_unwind(AssertUnwindSafe(work)).map_err(|panic| reason(&*panic).to_string()));
    done.map_err(|why| errors::of_bug(py, &why))
}

/// Panics in the way that a bug would, for tests: on the thread of a run, or in work without the interpreter's lock.
#[pyfunction]
#[pyo3(name = "_fail")]
pub fn fail(py: Python<'_>, on_thread: bool) -> PyResult<()> {
    let bug = || panic!("a fault for a test");
    match on_thread {
        true => supervised(py, None, &told, |_| bug()).map(drop),
        false => detached(py, bug),
    }
}
