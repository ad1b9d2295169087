//! The verbs that need no scenario object, and what verbs answer.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use xoff::library;
use xoff_results::explain::{self as explained, read, text};
use xoff_results::grid::interval::Interval;
use xoff_results::grid::metrics::{METRICS, Metric, Number, Row};
use xoff_results::integrity::guarded;
use xoff_results::{directory, grid, report as pages, storage};

use crate::errors;
use crate::supervise::{detached, supervised, told};

/// An answer: JSON for programs, text for people, and files such as pictures.
#[pyclass(frozen, get_all, module = "xoff._xoff")]
pub struct Answer {
    /// The data as JSON.
    json: String,
    /// What the command line prints.
    text: String,
    /// Name and contents of each file that belongs to it.
    files: Vec<(String, String)>,
}

impl Answer {
    pub fn new(answer: library::Answer) -> Self {
        Self { json: answer.data.to_string(), text: answer.text, files: answer.files }
    }
}

fn stored<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, storage::Error> + Send) -> PyResult<T> {
    detached(py, work)?.map_err(|error| errors::of_results(py, &error))
}

/// `xoff explain` of the run at `path`: of one flow, of one congested port, or of all; also only of the flows of one
/// class, from or to one host.
#[pyfunction]
#[pyo3(signature = (path, flow = None, port = None, class_ = None, src = None, dst = None, slowest = None))]
#[allow(clippy::too_many_arguments)]
pub fn explain(
    py: Python<'_>,
    path: PathBuf,
    flow: Option<usize>,
    port: Option<&str>,
    class_: Option<&str>,
    src: Option<&str>,
    dst: Option<&str>,
    slowest: Option<usize>,
) -> PyResult<Answer> {
    let choice = explained::Choice { class: class_, src, dst };
    fn answer<A: serde::Serialize>(answer: &A, text: fn(&A) -> String) -> Answer {
        let json = serde_json::to_string(answer).expect("plain data becomes JSON");
        Answer { json, text: text(answer), files: Vec::new() }
    }
    stored(py, || {
        let run = read::read(&path)?;
        guarded(&path, || {
            if let Some(id) = flow {
                Ok(answer(&explained::flow(&path, &run, id)?, text::flow))
            } else if let Some(port) = port {
                Ok(answer(&explained::port(&path, &run, port, choice)?, text::port))
            } else {
                let slowest = slowest.unwrap_or(explained::SLOWEST);
                Ok(answer(&explained::overview(&path, &run, choice, slowest)?, text::overview))
            }
        })
    })
}

/// The page of the run or grid at `path`, as HTML.
#[pyfunction]
pub fn page(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    stored(py, || Ok(pages::html::page(&pages::document(&path)?)))
}

/// Writes the page of the run or grid at `path` to the file `out`, or into its directory; returns the file.
#[pyfunction]
#[pyo3(signature = (path, out = None))]
pub fn report(py: Python<'_>, path: PathBuf, out: Option<PathBuf>) -> PyResult<PathBuf> {
    stored(py, || pages::write(&path, out.as_deref()))
}

/// Manifest and summary of the run at `path`, as JSON, if all of its files are as they were written.
#[pyfunction]
pub fn read_run(py: Python<'_>, path: PathBuf) -> PyResult<(String, String)> {
    stored(py, || {
        directory::open(&path).map(|(manifest, summary)| (manifest.to_string(), summary.to_string()))
    })
}

/// The manifest of the grid at `path`, as JSON, if its files are as they were written.
#[pyfunction]
pub fn read_grid(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    stored(py, || grid::directory::open(&path).map(|manifest| manifest.to_string()))
}

/// The comparison of the points of the grid at `path`, with the range over the seeds or the 95% confidence interval
/// of the mean.
#[pyfunction]
#[pyo3(signature = (path, ci95, baseline = None))]
pub fn compare_grid(py: Python<'_>, path: PathBuf, ci95: bool, baseline: Option<&str>) -> PyResult<Answer> {
    let interval = if ci95 { Interval::Ci95 } else { Interval::Range };
    let (grid, comparison) = stored(py, || pages::grid::compared(&path, interval, baseline))?;
    let json = serde_json::to_string(&comparison).expect("plain data becomes JSON");
    Ok(Answer { json, text: grid::table::render(&grid, &comparison), files: Vec::new() })
}

/// Name, unit, value and value as people read it.
type Measured = (String, String, Option<f64>, String);

/// The numbers by which the run at `path` is compared: name, unit (`count`, `byte`, `ps`, `ratio` or `bit/s`), value,
/// and the value as people read it.
#[pyfunction]
pub fn metrics(py: Python<'_>, path: PathBuf) -> PyResult<Vec<Measured>> {
    stored(py, || {
        let (_, summary) = directory::open(&path)?;
        let refused = |message: String| storage::Error { path: path.clone(), message, help: String::new() };
        let row = Row::read(&summary).map_err(|why| refused(format!("is damaged: {why}")))?;
        let metric = |(metric, value): (&Metric, &Option<Number>)| {
            let text = value.map_or("-".into(), |v| grid::table::shown(v.float(), metric.unit));
            let unit = pages::grid::unit(metric.unit).to_string();
            (metric.name.to_string(), unit, value.map(Number::float), text)
        };
        Ok(METRICS.iter().zip(&row.values).map(metric).collect())
    })
}

/// Copies the run at `path` to `out`; returns its new place.
#[pyfunction]
pub fn save_run(py: Python<'_>, path: PathBuf, out: PathBuf) -> PyResult<PathBuf> {
    stored(py, || directory::copy(&path, &out))
}

/// Copies the grid at `path` to `out`; returns its new place.
#[pyfunction]
pub fn save_grid(py: Python<'_>, path: PathBuf, out: PathBuf) -> PyResult<PathBuf> {
    stored(py, || grid::directory::copy(&path, &out))
}

/// `xoff size` with the arguments of the command line.
#[pyfunction]
pub fn size(py: Python<'_>, arguments: Vec<String>) -> PyResult<Answer> {
    let answer = detached(py, || library::size(&arguments))?;
    answer.map(Answer::new).map_err(|report| errors::raised(py, report))
}

/// `xoff schemes`, also with `--topology` and `--port`.
#[pyfunction]
pub fn schemes(
    py: Python<'_>,
    scheme: Option<&str>,
    topology: Option<&str>,
    port: Option<&str>,
) -> PyResult<String> {
    let text = detached(py, || library::schemes(scheme, topology, port))?;
    text.map_err(|report| errors::raised(py, report))
}

/// `xoff schema`, as JSON.
#[pyfunction]
pub fn schema(py: Python<'_>) -> PyResult<String> {
    library::schema().map(|schema| schema.to_string()).map_err(|report| errors::raised(py, report))
}

/// `xoff repro` with the arguments of the command line. Ctrl-C raises KeyboardInterrupt once the finished runs are
/// stored.
#[pyfunction]
pub fn repro(py: Python<'_>, arguments: Vec<String>) -> PyResult<Answer> {
    let work = |shared: &crate::supervise::Shared| library::repro(&arguments, &shared.interrupted);
    let (done, pressed) = supervised(py, None, &told, work)?;
    match done.map_err(|report| errors::raised(py, report))? {
        Some(answer) if !pressed => Ok(Answer::new(answer)),
        _ => Err(PyKeyboardInterrupt::new_err(())),
    }
}

/// The command line: `arguments` begin with the program's name. Returns the exit status.
#[pyfunction]
pub fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    let status = py.detach(|| xoff::main_from(arguments));
    (0..=u8::MAX).find(|&code| ExitCode::from(code) == status).unwrap_or(1)
}
