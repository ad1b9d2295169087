//! Scenarios and grids.

use std::path::PathBuf;

use miette::Report;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use xoff::library::{self, GridRequest, Planned, RunOptions, Tally};

use xoff_plan::variants::Variant;

use crate::answers::Answer;
use crate::errors::raised;
use crate::supervise::{Shared, detached, supervised, told};

/// Keys and their values as TOML.
pub type Keys = Vec<(String, String)>;

/// A scenario, with the keys that were set.
#[pyclass(frozen, module = "xoff._xoff")]
pub struct Scenario {
    pub inner: library::Scenario,
}

#[pymethods]
impl Scenario {
    /// Reads a scenario's file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let read = detached(py, || library::Scenario::read(&path))?;
        read.map(|inner| Self { inner }).map_err(|report| raised(py, report))
    }

    /// A scenario of this text; files that it names are searched in `directory`.
    #[staticmethod]
    fn of_text(py: Python<'_>, name: &str, text: &str, directory: PathBuf) -> PyResult<Self> {
        let read = library::Scenario::of_text(name, text, &directory);
        read.map(|inner| Self { inner }).map_err(|report| raised(py, report))
    }

    /// What `of_parts` makes the same scenario of in another process: path, text, whether the scenario is a table of
    /// it, name and keys that were set.
    fn parts(&self) -> (PathBuf, String, bool, String, Keys) {
        self.inner.parts()
    }

    /// A scenario of `parts`.
    #[staticmethod]
    fn of_parts(path: PathBuf, text: &str, in_table: bool, name: &str, keys: Keys) -> Self {
        Self { inner: library::Scenario::of_parts(&path, text, in_table, name, keys) }
    }

    /// The same with these keys set to these values.
    fn set(&self, py: Python<'_>, keys: Keys) -> PyResult<Self> {
        self.inner.set(&keys).map(|inner| Self { inner }).map_err(|report| raised(py, report))
    }

    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// The `[[variant]]` tables: names, and the keys that each sets.
    fn variants(&self, py: Python<'_>) -> PyResult<Vec<(String, Keys)>> {
        let found = self.inner.variants().map_err(|report| raised(py, report))?;
        Ok(found.into_iter().map(|Variant { name, set }| (name, set)).collect())
    }

    /// The keys that were set, with their values as written.
    #[getter]
    fn overrides(&self) -> Keys {
        self.inner.overrides().to_vec()
    }

    /// Every key with its value, as JSON, and the warnings. Ctrl-C raises KeyboardInterrupt; so it does below.
    fn resolved(&self, py: Python<'_>) -> PyResult<(String, Vec<String>)> {
        let (json, warnings) = self.planned(py, None, |_, planned| planned.resolved().map(Some))?;
        Ok((json.to_string(), warnings))
    }

    /// `xoff topo`.
    fn topo(&self, py: Python<'_>) -> PyResult<Answer> {
        self.planned(py, None, |_, planned| planned.topo().map(Some)).map(Answer::new)
    }

    /// `xoff traffic`.
    fn traffic(&self, py: Python<'_>) -> PyResult<Answer> {
        self.planned(py, None, |_, planned| planned.traffic().map(Some)).map(Answer::new)
    }

    /// `xoff size --scenario`.
    fn size(&self, py: Python<'_>) -> PyResult<Answer> {
        self.planned(py, None, |_, planned| planned.size().map(Some)).map(Answer::new)
    }

    /// `xoff check`.
    #[pyo3(signature = (failures, out, progress))]
    fn check(
        &self,
        py: Python<'_>,
        failures: Option<String>,
        out: Option<PathBuf>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Answer> {
        let check = |shared: &Shared, planned: &Planned<'_>| {
            planned.check(failures.as_deref(), out.as_deref(), &mut |line| shared.tell(0.0, line))
        };
        self.planned(py, progress, check).map(Answer::new)
    }

    /// `xoff check --verify`.
    fn verify(&self, py: Python<'_>, certificate: PathBuf) -> PyResult<String> {
        self.planned(py, None, |_, planned| planned.verify(&certificate).map(Some))
    }

    /// `xoff run` into the directory `out`; returns remarks about threads. After Ctrl-C the run is stored and not
    /// complete.
    #[pyo3(signature = (out, overwrite, threads, capture, snap, progress))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords for Python")]
    fn run(
        &self,
        py: Python<'_>,
        out: PathBuf,
        overwrite: bool,
        threads: Option<usize>,
        capture: Vec<String>,
        snap: Option<u32>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<String>> {
        let options = RunOptions { threads, capture, snap, overwrite };
        let run = |shared: &Shared, planned: &Planned<'_>| {
            planned.run(&options, &out, &mut |done, text| shared.tell(done, text)).map(Some)
        };
        self.planned(py, progress, run)
    }
}

impl Scenario {
    /// Plans the scenario and does `work` with the plan. Raises KeyboardInterrupt if Ctrl-C ended the planning, or if
    /// `work` has no result.
    fn planned<T: Send>(
        &self,
        py: Python<'_>,
        progress: Option<&Bound<'_, PyAny>>,
        work: impl FnOnce(&Shared, &Planned<'_>) -> Result<Option<T>, Report> + Send,
    ) -> PyResult<T> {
        let whole = |shared: &Shared| {
            let interrupted = || !shared.tell(0.0, &|| "planning".into());
            match self.inner.load(&interrupted) {
                Ok(planned) if !interrupted() => work(shared, &planned),
                Err(report) if !interrupted() => Err(report),
                _ => Ok(None),
            }
        };
        let (done, _) = supervised(py, progress, &told, whole)?;
        done.map_err(|report| raised(py, report))?.ok_or_else(|| PyKeyboardInterrupt::new_err(()))
    }
}

/// Limits the memory of the process, and keeps large tables in files in the directory `spill`.
#[pyfunction]
#[pyo3(signature = (memory, spill))]
pub fn limit_memory(py: Python<'_>, memory: Option<&str>, spill: Option<PathBuf>) -> PyResult<()> {
    library::limit_memory(memory, spill.as_deref()).map_err(|report| raised(py, report))
}

/// Makes a grid of runs in the directory `out`. After Ctrl-C the finished runs are stored. Ctrl-C before the first run
/// raises KeyboardInterrupt.
#[pyfunction]
#[pyo3(signature = (scenario, vary, variants, seeds, jobs, threads, out, resume, progress))]
#[expect(clippy::too_many_arguments, reason = "they are keywords for Python")]
pub fn grid(
    py: Python<'_>,
    scenario: &Scenario,
    vary: Vec<(String, Vec<String>)>,
    variants: Vec<(String, Keys)>,
    seeds: Vec<u64>,
    jobs: Option<usize>,
    threads: Option<usize>,
    out: PathBuf,
    resume: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let scenario = &scenario.inner;
    let tally = Tally::default();
    let look = |_: &Shared| tally.state();
    let work = |shared: &Shared| {
        let variants = variants.into_iter().map(|(name, set)| Variant { name, set }).collect();
        let request = GridRequest { scenario, vary, variants, seeds, jobs, threads, out: &out, resume };
        request.make(&shared.interrupted, &tally)
    };
    let (done, _) = supervised(py, progress, &look, work)?;
    match done.map_err(|report| raised(py, report))? {
        true => Ok(()),
        false => Err(PyKeyboardInterrupt::new_err(())),
    }
}
