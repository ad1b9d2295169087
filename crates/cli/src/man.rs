//! `xoff man`: the manual pages of the program and of each verb.

use std::fmt::Write as _;
use std::{io, path::PathBuf, process::ExitCode};

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use miette::{IntoDiagnostic, miette};
use xoff_plan::error::suggest;
use xoff_results::temporary::{make_directories, put};

use crate::{Cli, exit_statuses, grid::quoted, output, run::VERSION};

#[derive(clap::Args)]
pub struct ManArgs {
    /// Verb whose page to print, such as run or grid plan [default: the page of xoff]
    #[arg(value_name = "VERB")]
    verb: Vec<String>,
    /// Directory in which to write all pages, such as ~/.local/share/man/man1; replaces older pages
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    out: Option<PathBuf>,
}

pub fn man(args: &ManArgs) -> miette::Result<ExitCode> {
    let mut command = Cli::command().version(VERSION).disable_help_subcommand(true);
    command.build();
    match &args.out {
        None => output::print(&page(find(&command, &args.verb)?)?)?,
        Some(out) => {
            let mut pages = Vec::new();
            collect(&command, &mut pages)?;
            make_directories(out).map_err(crate::run::report)?;
            output::sweep(out);
            for (name, text) in &pages {
                put(&out.join(name), text).map_err(crate::run::report)?;
            }
            let first = quoted(&out.join(&pages[0].0).display().to_string());
            let mut said = String::new();
            let _ = writeln!(said, "wrote {} pages to {}", pages.len(), out.display());
            let _ = writeln!(said, "to read one, type: man {first}");
            output::print(&said)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The command of a verb, such as `grid plan`.
fn find<'c>(command: &'c Command, verb: &[String]) -> miette::Result<&'c Command> {
    let Some((first, rest)) = verb.split_first() else { return Ok(command) };
    let verbs: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    match command.find_subcommand(first) {
        Some(found) => find(found, rest),
        None => Err(miette!(help = suggest(first, "the verbs", &verbs), "unknown verb `{first}`")),
    }
}

/// Names and texts of the pages of a command and of its verbs, its own first.
fn collect(command: &Command, pages: &mut Vec<(String, String)>) -> miette::Result<()> {
    pages.push((Man::new(command.clone()).get_filename(), page(command)?));
    command.get_subcommands().try_for_each(|verb| collect(verb, pages))
}

fn page(command: &Command) -> miette::Result<String> {
    let man = Man::new(command.clone());
    let mut text = Vec::new();
    let mut render = || -> io::Result<()> {
        man.render_name_section(&mut text)?;
        man.render_synopsis_section(&mut text)?;
        man.render_description_section(&mut text)?;
        man.render_options_section(&mut text)?;
        if command.has_subcommands() {
            man.render_subcommands_section(&mut text)?;
        }
        statuses(command).to_writer(&mut text)
    };
    render().into_diagnostic()?;
    // Each section has the preamble of a page. Without the quotes man would take the source for the date.
    let preamble = Roff::new().render();
    let title = command.get_display_name().unwrap_or_else(|| command.get_name());
    let sections = String::from_utf8_lossy(&text).replace(&preamble, "");
    Ok(format!("{preamble}.TH {title} 1 \"\" \"xoff {VERSION}\" xoff\n{sections}"))
}

/// The section of the exit statuses of a verb, or of all of them for the program.
fn statuses(command: &Command) -> Roff {
    let name = command.get_display_name().unwrap_or_default();
    let verb = name.split('-').nth(1);
    let mut section = Roff::new();
    section.control("SH", ["EXIT STATUS"]);
    for (status, meaning) in exit_statuses(verb) {
        section.control("TP", []).text([bold(status.to_string())]).text([roman(meaning)]);
    }
    section
}
