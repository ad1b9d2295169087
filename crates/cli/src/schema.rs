//! `xoff schema`: the JSON Schema of scenario files.

use std::process::ExitCode;

use miette::IntoDiagnostic;

use crate::output;

/// Prints the schema.
pub fn schema() -> miette::Result<ExitCode> {
    let text = serde_json::to_string_pretty(&xoff_plan::schema::schema()).into_diagnostic()?;
    output::print(&(text + "\n"))?;
    Ok(ExitCode::SUCCESS)
}
