//! Stores: grids that many workers share.

use std::path::PathBuf;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use xoff::library::{self, GridRequest, PlanOptions, Tally, WorkOptions};
use xoff_plan::variants::Variant;
use xoff_results::grid::interval::Interval;

use crate::answers::Answer;
use crate::errors::raised;
use crate::scenario::{Keys, Scenario};
use crate::supervise::{Shared, detached, supervised};

/// `xoff grid plan` into `store`; returns what it is, in words.
#[pyfunction]
#[pyo3(signature = (scenario, vary, variants, seeds, store, chunk, keep))]
#[expect(clippy::too_many_arguments, reason = "they are keywords for Python")]
pub fn plan_grid(
    py: Python<'_>,
    scenario: &Scenario,
    vary: Vec<(String, Vec<String>)>,
    variants: Vec<(String, Keys)>,
    seeds: Vec<u64>,
    store: PathBuf,
    chunk: Option<usize>,
    keep: bool,
) -> PyResult<String> {
    let (scenario, out) = (&scenario.inner, store.as_path());
    let variants = variants.into_iter().map(|(name, set)| Variant { name, set }).collect();
    let request =
        GridRequest { scenario, vary, variants, seeds, jobs: None, threads: None, out, resume: false };
    detached(py, || request.plan(out, PlanOptions { chunk, keep }))?.map_err(|report| raised(py, report))
}

/// `xoff work`, of all chunks that are open or of these: runs that were made, those that failed, and the given chunks
/// that others work on. Ctrl-C raises KeyboardInterrupt.
#[pyfunction]
#[pyo3(signature = (store, jobs, lease, until, chunks, progress))]
pub fn work(
    py: Python<'_>,
    store: PathBuf,
    jobs: Option<usize>,
    lease: String,
    until: Option<String>,
    chunks: Option<Vec<usize>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(usize, usize, Vec<usize>)> {
    let tally = Tally::default();
    let options = WorkOptions { jobs, lease, until, chunks };
    let look = |_: &Shared| tally.state();
    let make = |shared: &Shared| library::work(&store, &options, &shared.interrupted, &tally);
    let (done, pressed) = supervised(py, progress, &look, make)?;
    let done = done.map_err(|report| raised(py, report))?;
    if pressed { Err(PyKeyboardInterrupt::new_err(())) } else { Ok(done) }
}

/// Chunks, each with the number of its runs; runs that are needed; runs that are done.
type Left = (Vec<(usize, usize)>, usize, usize);

/// The chunks of a store that can be made now, each with the number of its runs; the number of all runs that it needs,
/// as far as this is known; and of those of them that are done.
#[pyfunction]
#[pyo3(signature = (store, until))]
pub fn open_chunks(py: Python<'_>, store: PathBuf, until: Option<&str>) -> PyResult<Left> {
    let left = detached(py, || library::left(&store, until))?.map_err(|report| raised(py, report))?;
    Ok((left.chunks, left.needed, left.done))
}

/// `xoff grid status`.
#[pyfunction]
pub fn store_status(py: Python<'_>, store: PathBuf) -> PyResult<Answer> {
    detached(py, || library::store_status(&store))?.map(Answer::new).map_err(|report| raised(py, report))
}

/// `xoff grid table`.
#[pyfunction]
#[pyo3(signature = (store, out, ci95, baseline))]
pub fn store_table(
    py: Python<'_>,
    store: PathBuf,
    out: Option<PathBuf>,
    ci95: bool,
    baseline: Option<&str>,
) -> PyResult<Answer> {
    let interval = if ci95 { Interval::Ci95 } else { Interval::Range };
    let answer = detached(py, || library::store_table(&store, out.as_deref(), baseline, interval))?;
    answer.map(Answer::new).map_err(|report| raised(py, report))
}

/// The page of a store, as HTML.
#[pyfunction]
pub fn store_page(py: Python<'_>, store: PathBuf) -> PyResult<String> {
    detached(py, || library::store_page(&store))?.map_err(|report| raised(py, report))
}

/// `xoff grid report`; returns the place of the page.
#[pyfunction]
#[pyo3(signature = (store, out))]
pub fn store_report(py: Python<'_>, store: PathBuf, out: Option<PathBuf>) -> PyResult<String> {
    let place = detached(py, || library::store_report(&store, out.as_deref()))?;
    place.map(|place| place.display().to_string()).map_err(|report| raised(py, report))
}
