//! `xoff schema`: the JSON Schema of scenario files, and the page of their keys.

use std::process::ExitCode;

use miette::IntoDiagnostic;

use crate::output;

pub fn schema(markdown: bool) -> miette::Result<ExitCode> {
    if markdown {
        output::print(&xoff_plan::reference::reference())?;
    } else {
        let text = serde_json::to_string_pretty(&xoff_plan::schema::schema()).into_diagnostic()?;
        output::print(&(text + "\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}
