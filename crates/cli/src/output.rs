//! Printing that survives a closed pipe: `xoff run … | head` is no failure. Names, paths
//! and contents of files come from outside: nothing hidden in them reaches the terminal.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{error::Error, ffi::OsString, fmt, process::ExitCode};

use miette::{Diagnostic, IntoDiagnostic, LabeledSpan, Report, Severity, SourceCode, WrapErr, miette};
use serde::Serialize;
use xoff_net::text::{is_hidden, visible, visible_json};
use xoff_plan::Loaded;
use xoff_results::temporary;

/// Prints a result to standard output. A closed pipe is no error.
pub fn print(text: &str) -> miette::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(visible(text).as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() == io::ErrorKind::FileTooLarge => Err(miette!(
            help = "raise the file size limit of this shell with ulimit -f, or print to a pipe",
            "the output cannot be printed: {e}"
        )),
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(e).into_diagnostic().wrap_err("the output cannot be printed")
        }
        _ => Ok(()),
    }
}

/// The exit status of the first case that applies; 0 without one.
pub fn status(cases: &[(bool, u8)]) -> ExitCode {
    cases.iter().find(|case| case.0).map_or(ExitCode::SUCCESS, |case| ExitCode::from(case.1))
}

/// Prints a line to standard error; if that is closed there is nowhere to say so.
pub fn complain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", visible(text.trim_end()));
}

/// A value as JSON with a line end, for [`print()`].
pub fn json(value: &impl Serialize) -> miette::Result<String> {
    let text = serde_json::to_string_pretty(value).into_diagnostic()? + "\n";
    Ok(visible_json(&text).into_owned())
}

/// Writes a new file, completely or not at all. An existing file stays, and is an error.
pub fn create(path: &Path, contents: impl AsRef<[u8]>) -> miette::Result<()> {
    let refused = |e: io::Error| match e.kind() {
        io::ErrorKind::AlreadyExists => exists(path),
        _ => miette!("{} cannot be written: {e}", path.display()),
    };
    let mut file = File::create_new(path).map_err(refused)?;
    file.write_all(contents.as_ref()).and_then(|()| file.sync_all()).map_err(|e| {
        // The error that led here is the one to report.
        let _ = std::fs::remove_file(path);
        refused(e)
    })
}

/// Writes files into a directory, and replaces none. A file that has the same contents stays.
pub fn create_all(out: &Path, files: &[(&str, impl AsRef<[u8]>)]) -> miette::Result<()> {
    let there = |path: &Path, contents: &[u8]| std::fs::read(path).is_ok_and(|found| found == contents);
    let missing: Vec<(PathBuf, &[u8])> = files
        .iter()
        .map(|(name, contents)| (out.join(name), contents.as_ref()))
        .filter(|(path, contents)| !there(path, contents))
        .collect();
    // Before the first one is written.
    if let Some((path, _)) = missing.iter().find(|(path, _)| path.symlink_metadata().is_ok()) {
        return Err(exists(path));
    }
    for (path, contents) in missing {
        let folder = path.parent().unwrap_or(Path::new(""));
        // Its advice is about results.
        temporary::make_directories(folder).map_err(|e| miette!("{e}"))?;
        create(&path, contents)?;
    }
    Ok(())
}

/// The error that a file would be replaced.
fn exists(path: &Path) -> Report {
    let help = "it was not changed; choose another name, or remove it";
    miette!(help = help, "{} exists already", path.display())
}

/// Prints an error to standard error, in colours where the terminal has them.
pub fn fail(report: Report) {
    let text = format!("{:?}", Report::new(Shown::new(report)));
    // The colours are miette's own: foreign control characters were made visible before.
    let _ = writeln!(io::stderr().lock(), "{}", text.trim_end());
}

pub fn warnings(loaded: &Loaded) {
    for warning in &loaded.warnings {
        complain(&format!("warning: {warning}"));
    }
}

/// Ends the program as clap does, with its message about the arguments.
pub fn usage(error: clap::Error, arguments: &[OsString]) -> ! {
    if arguments.iter().any(|arg| arg.to_string_lossy().contains(is_hidden)) {
        let text = error.render().to_string();
        match error.use_stderr() {
            true => complain(&text),
            // Help and version have nothing of the arguments but the program's name.
            false => drop(print(&text)),
        }
        std::process::exit(error.exit_code());
    }
    error.exit()
}

/// An error whose words are made visible. Its source code is so already.
#[derive(Debug)]
struct Shown {
    message: String,
    help: Option<String>,
    cause: Option<Box<Cause>>,
    inner: Report,
}

/// The cause of an error, in words.
#[derive(Debug)]
struct Cause(String, Option<Box<Cause>>);

impl Shown {
    fn new(inner: Report) -> Self {
        let causes: Vec<String> =
            inner.chain().skip(1).map(|e| visible(&e.to_string()).into_owned()).collect();
        let cause = causes.into_iter().rev().fold(None, |next, text| Some(Box::new(Cause(text, next))));
        let help = inner.help().map(|help| visible(&help.to_string()).into_owned());
        Self { message: visible(&inner.to_string()).into_owned(), help, cause, inner }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Shown {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_ref().map(|cause| &**cause as &(dyn Error + 'static))
    }
}

impl Diagnostic for Shown {
    fn severity(&self) -> Option<Severity> {
        self.inner.severity()
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.inner.source_code()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.inner.labels()
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.1.as_ref().map(|cause| &**cause as &(dyn Error + 'static))
    }
}

/// Removes the temporary files of killed processes in a directory, and names the files that it cannot remove.
pub fn sweep(dir: &Path) {
    temporary::sweep(dir).iter().for_each(|left| complain(&format!("warning: {left}")));
}

/// As [`sweep`], of the directory in which a result at `out` is.
pub fn sweep_beside(out: &Path) {
    temporary::sweep_beside(out).iter().for_each(|left| complain(&format!("warning: {left}")));
}
