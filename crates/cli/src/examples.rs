//! `xoff examples`: the scenarios that the program contains, with the files that they name.

use std::path::PathBuf;
use std::process::ExitCode;

use miette::miette;
use xoff_plan::error::suggest;
use xoff_results::table::wrapped;

use crate::{grid::quoted, output};

/// Path and contents of each file, as `build.rs` lists them: scenarios, and in folders the files that these name.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/examples.rs"));
const ENDING: &str = ".toml";

#[derive(clap::Args)]
pub struct ExamplesArgs {
    /// Example to print, such as victims [default: list all examples]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Directory in which to write the example and the files that it names; without NAME all examples
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// A scenario of `examples/`.
#[derive(Clone, Copy)]
pub struct Example {
    /// Its path in `examples/` without the ending.
    pub name: &'static str,
    pub text: &'static str,
}

/// All examples, in alphabetical order.
pub fn all() -> impl Iterator<Item = Example> {
    FILES.iter().filter_map(|&(path, contents)| {
        let name = path.strip_suffix(ENDING)?;
        Some(Example { name, text: std::str::from_utf8(contents).expect("scenarios are text") })
    })
}

impl Example {
    /// Its folder in `examples/`, with a slash at the end; empty without a folder.
    fn folder(self) -> &'static str {
        self.name.rfind('/').map_or("", |slash| &self.name[..=slash])
    }

    /// The scenario and the files that it names, by their paths in its folder.
    fn files(self) -> Vec<(&'static str, &'static [u8])> {
        let beside = |&(path, contents): &(&'static str, &'static [u8])| {
            Some((path.strip_prefix(self.folder())?, contents)).filter(|(path, _)| !path.contains('/'))
        };
        let named = |(path, _): &(&str, &[u8])| {
            // Traces are named together: step.{rank}.et.
            let rank = |part| if str::parse::<u32>(part).is_ok() { "{rank}" } else { part };
            let together = path.split('.').map(rank).collect::<Vec<_>>().join(".");
            self.name.strip_prefix(self.folder()) == path.strip_suffix(ENDING)
                || self.text.contains(&format!("{path:?}"))
                || self.text.contains(&format!("\"{together}\""))
        };
        FILES.iter().filter_map(beside).filter(named).collect()
    }

    /// The first sentence of its first comment.
    fn about(self) -> String {
        let comment = self.text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim);
        let comment = comment.collect::<Vec<_>>().join(" ");
        let end = comment.find(". ").map_or(comment.len(), |end| end + 1);
        comment[..end].to_string()
    }
}

pub fn examples(args: &ExamplesArgs) -> miette::Result<ExitCode> {
    match (&args.name, &args.out) {
        (None, None) => output::print(&list())?,
        (Some(name), None) => output::print(find(name)?.text)?,
        (None, Some(out)) => {
            output::create_all(out, FILES)?;
            let path = quoted(&out.join("victims.toml").display().to_string());
            let count = all().count();
            output::print(&format!(
                "wrote {count} examples to {}\nto simulate one of them, type for example: xoff run {path}\n",
                out.display()
            ))?;
        }
        (Some(name), Some(out)) => {
            let files = find(name)?.files();
            output::create_all(out, &files)?;
            let path = |name: &str| quoted(&out.join(name).display().to_string());
            let written: Vec<String> = files.iter().map(|(name, _)| path(name)).collect();
            let scenario = files.iter().find(|(name, _)| name.ends_with(ENDING));
            let scenario = scenario.map(|(name, _)| path(name)).unwrap_or_default();
            output::print(&format!(
                "wrote {}\nto simulate it, type: xoff run {scenario}\n",
                written.join(", ")
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list() -> String {
    let width = all().map(|example| example.name.len()).max().unwrap_or(0);
    let indent = " ".repeat(width + 2);
    let line = |example: Example| wrapped(&format!("{:<width$}  ", example.name), &indent, &example.about());
    all().map(line).collect::<String>()
        + "\nxoff examples NAME prints one of them; with --out DIR it writes it and the files that it names.\n"
}

/// The example of a name, also as the path of its file, and without its folder if no other has this name.
fn find(name: &str) -> miette::Result<Example> {
    let wanted = name.strip_prefix("examples/").unwrap_or(name);
    let wanted = wanted.strip_suffix(ENDING).unwrap_or(wanted);
    let last = |example: &Example| example.name.rsplit('/').next() == Some(wanted);
    let in_folder = || Some(all().filter(last).collect::<Vec<_>>()).filter(|all| all.len() == 1)?.pop();
    all().find(|example| example.name == wanted).or_else(in_folder).ok_or_else(|| {
        let names: Vec<&str> = all().map(|example| example.name).collect();
        miette!(help = suggest(wanted, "the examples", &names), "unknown example `{wanted}`")
    })
}
