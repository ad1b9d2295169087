//! `xoff init`: a scenario to begin with.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::{grid::quoted, load, output};

/// The scenario, in whose comments `FILE` is its file and `NAME` the name of its results.
const SCENARIO: &str = include_str!("init.toml");
const DEFAULT: &str = "scenario.toml";

#[derive(clap::Args)]
pub struct InitArgs {
    /// File to write; `-` prints the scenario instead
    #[arg(value_name = "FILE", default_value = DEFAULT)]
    file: PathBuf,
}

pub fn init(args: &InitArgs) -> miette::Result<ExitCode> {
    if args.file == Path::new("-") {
        output::print(&scenario(Path::new(DEFAULT)))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::create(&args.file, scenario(&args.file))?;
    let name = quoted(&args.file.display().to_string());
    output::print(&format!("wrote {name}\nto simulate it, type: xoff run {name}\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn scenario(file: &Path) -> String {
    let path = file.display().to_string();
    // A line break in a name would end the comment.
    let file = if path.contains(char::is_control) { Path::new(DEFAULT) } else { file };
    let runs = Path::new("xoff-runs").join(load::name(file));
    SCENARIO
        .replace("xoff-runs/NAME", &quoted(&runs.display().to_string()))
        .replace("FILE", &quoted(&file.display().to_string()))
}
