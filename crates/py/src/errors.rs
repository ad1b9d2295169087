//! Errors as the exceptions of `xoff._errors`.

use miette::Report;
use pyo3::prelude::*;
use xoff::library::Unstored;
use xoff_plan::Error;
use xoff_results::storage;

/// The exception for an error, with the words of the command line.
pub fn raised(py: Python<'_>, report: Report) -> PyErr {
    let made = if let Some(error) = report.chain().find_map(|e| e.downcast_ref::<Error>()) {
        // What was being done comes before the error itself.
        let around: Vec<String> = report
            .chain()
            .take_while(|e| e.downcast_ref::<Error>().is_none())
            .map(|e| e.to_string())
            .collect();
        let message = around.into_iter().chain([error.message().to_string()]).collect::<Vec<_>>().join(": ");
        let (line, column) = error.position().unzip();
        exception(py, "ScenarioError", (message, error.file(), line, column, error.key(), error.remedy()))
    } else if let Some(Unstored(error)) = report.downcast_ref::<Unstored>() {
        return of_results(py, error);
    } else {
        let help = report.help().map(|help| help.to_string());
        let causes: Vec<String> = report.chain().map(|e| e.to_string()).collect();
        exception(
            py,
            "ScenarioError",
            (causes.join(": "), "", None::<usize>, None::<usize>, None::<&str>, help),
        )
    };
    made.unwrap_or_else(|e| e)
}

/// The exception for results that cannot be read or written.
pub fn of_results(py: Python<'_>, error: &storage::Error) -> PyErr {
    let arguments = (error.to_string(), error.path.display().to_string(), &error.help);
    exception(py, "ResultsError", arguments).unwrap_or_else(|e| e)
}

/// The exception for a bug in xoff.
pub fn of_bug(py: Python<'_>, what: &str) -> PyErr {
    exception(py, "InternalError", (format!("bug in xoff: {what}"),)).unwrap_or_else(|e| e)
}

/// The exception for an argument of a wrong type or value.
pub fn of_argument(py: Python<'_>, message: String, key: Option<&str>, remedy: &str) -> PyErr {
    let none = None::<usize>;
    exception(py, "ScenarioError", (message, "", none, none, key, remedy)).unwrap_or_else(|e| e)
}

fn exception<'py, A>(py: Python<'py>, class: &str, arguments: A) -> PyResult<PyErr>
where
    A: pyo3::call::PyCallArgs<'py>,
{
    let class = py.import("xoff._errors")?.getattr(class)?;
    Ok(PyErr::from_value(class.call1(arguments)?))
}
