//! From a path on the command line to a plan.

use std::path::{Path, PathBuf};
use std::{cell::RefCell, collections::BTreeMap, fs, io};

use miette::{Report, miette};
use xoff_net::import::Format;
use xoff_plan::plan::{Flow, Plan};
use xoff_plan::{Known, Loaded, Needs, variants::Variant};
use xoff_repro::{experiment::SCENARIO, read::is_experiment};
use xoff_results::names;

use crate::file::{self, LARGEST};
use crate::memory::{self, Phase};
use crate::vary;

#[derive(Clone)]
pub struct Source {
    path: PathBuf,
    text: Vec<u8>,
    /// The table of the text that is the scenario; empty if all of it is.
    table: &'static str,
    strict: bool,
    needs: Needs,
    /// The files that the scenario names, instead of those on the disk.
    files: Option<BTreeMap<PathBuf, Vec<u8>>>,
}

impl Source {
    /// Reads a scenario's file, or the scenario of an experiment's.
    pub fn read(path: &Path, strict: bool) -> miette::Result<Self> {
        let text = file::read(path).map_err(|e| unreadable(path, &e))?;
        let table = if is_experiment(&text) { SCENARIO } else { "" };
        foreign(path, &text)?;
        Ok(Self { path: path.into(), text, table, strict, needs: Needs::Traffic, files: None })
    }

    /// The same with other needs: [`Source::read`] and the other ways to make a source demand traffic.
    pub fn with_needs(self, needs: Needs) -> Self {
        Self { needs, ..self }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The first error in its keys and values, without working the scenario out.
    pub fn look(&self, overrides: &[(String, String)]) -> Result<(), xoff_plan::Error> {
        xoff_plan::look(&self.path.display().to_string(), &self.text, self.table, overrides, self.needs)
    }

    /// Its `[[variant]]` tables.
    pub fn variants(&self) -> Result<Vec<Variant>, xoff_plan::Error> {
        xoff_plan::variants(&self.path.display().to_string(), &self.text, self.table)
    }

    /// Its text, and whether a table of it is the scenario.
    pub fn parts(&self) -> (&[u8], bool) {
        (&self.text, !self.table.is_empty())
    }

    /// A scenario that is the table `table` of a file which has been read.
    pub fn within(path: &Path, text: &[u8], table: &'static str) -> Self {
        let (text, needs) = (text.into(), Needs::Traffic);
        Self { path: path.into(), text, table, strict: false, needs, files: None }
    }

    /// A scenario, which may be a table of an experiment, with the files that it names.
    pub fn embedded(path: &Path, text: &str, in_table: bool, files: BTreeMap<PathBuf, Vec<u8>>) -> Self {
        let table = if in_table { SCENARIO } else { "" };
        Self { files: Some(files), ..Self::within(path, text.as_bytes(), table) }
    }

    /// `seen` is shown every file that the scenario names: its path as written, and its contents. Planning ends with
    /// an error if `interrupted` returns true, or, in a program that calls xoff, if the memory budget is exhausted.
    pub fn load(
        &self,
        overrides: &[(String, String)],
        seen: &mut dyn FnMut(&Path, &[u8]),
        interrupted: &dyn Fn() -> bool,
    ) -> miette::Result<Loaded> {
        self.load_next(overrides, seen, interrupted, None)
    }

    /// The same after other runs, which have left `known`.
    pub fn load_next(
        &self,
        overrides: &[(String, String)],
        seen: &mut dyn FnMut(&Path, &[u8]),
        interrupted: &dyn Fn() -> bool,
        known: Option<&mut Known>,
    ) -> miette::Result<Loaded> {
        // Files that the scenario names lie beside it.
        let base = self.path.parent().unwrap_or(Path::new(""));
        let seen = RefCell::new(seen);
        let files = |path: &Path| {
            let contents = match &self.files {
                Some(files) => files.get(path).cloned().ok_or(io::ErrorKind::NotFound)?,
                None => file::read(&base.join(path))?,
            };
            (*seen.borrow_mut())(path, &contents);
            Ok(contents)
        };
        let name = self.path.display().to_string();
        let before = memory::enter(Phase::Plan);
        let goes_on = |bytes| match interrupted() {
            true => Err("interrupted".into()),
            false => memory::room(bytes),
        };
        let loaded = xoff_plan::load_table(
            &name, &self.text, self.table, overrides, self.needs, &files, &goes_on, known,
        );
        memory::enter(before);
        let loaded = loaded?;
        if self.strict && !loaded.warnings.is_empty() {
            let warnings: Vec<String> = loaded.warnings.iter().map(|w| w.to_string()).collect();
            return Err(miette!(
                help = "correct the scenario, or remove --strict",
                "{name} has warnings, and --strict treats warnings as errors\n{}",
                warnings.join("\n")
            ));
        }
        Ok(loaded)
    }
}

/// Refuses overrides that replace earlier ones, and warnings if `strict`.
pub fn load(
    path: &Path,
    overrides: &[(String, String)],
    strict: bool,
    needs: Needs,
) -> miette::Result<Loaded> {
    opened(path, overrides, strict, needs)?.load(overrides, &mut |_, _| {}, &|| false)
}

/// The same for a single run, which records critical paths if it is short.
pub fn load_run(path: &Path, overrides: &[(String, String)], strict: bool) -> miette::Result<Loaded> {
    let source = opened(path, overrides, strict, Needs::Traffic)?;
    let mut files = BTreeMap::new();
    let mut keep = |path: &Path, contents: &[u8]| drop(files.insert(path.to_path_buf(), contents.to_vec()));
    let loaded = source.load(overrides, &mut keep, &|| false)?;
    // A pipe can be read once.
    let source = Source { files: Some(files), ..source };
    let again = || explained(&source, overrides, loaded.warnings.len());
    Ok(is_short(&loaded).then(again).flatten().unwrap_or(loaded))
}

fn opened(path: &Path, overrides: &[(String, String)], strict: bool, needs: Needs) -> miette::Result<Source> {
    let given: Vec<(&str, &str)> = overrides.iter().map(|(key, _)| ("--set", key.as_str())).collect();
    vary::complete(&given)?;
    vary::given_once(&given)?;
    Ok(Source::read(path, strict)?.with_needs(needs))
}

/// Packet-hops of the longest run that records critical paths although its scenario does not ask for them: about half a
/// second, and 16 B of memory each.
const EXPLAINED: u64 = 4_000_000;
/// Least packet-hops for each of its flows. With fewer, critical paths would double the cost of the run.
const EACH: u64 = 300;

/// Whether a single run records critical paths without being asked: it is short, and its scenario does not say.
pub fn is_short(loaded: &Loaded) -> bool {
    let possible = !loaded.scenario.traffic.is_empty() && loaded.plan.pods.is_none();
    loaded.scenario.measure.explain.is_none()
        && possible
        && (EACH * loaded.plan.flows.len() as u64..=EXPLAINED).contains(&hops(&loaded.plan))
}

/// The scenario with `measure.explain`; `None` if another key is against it, or if it has more than `warnings`.
pub fn explained(source: &Source, overrides: &[(String, String)], warnings: usize) -> Option<Loaded> {
    let asked = [overrides, &[("measure.explain".into(), "true".into())]].concat();
    let again = source.load(&asked, &mut |_, _| {}, &|| false).ok()?;
    (again.warnings.len() == warnings).then_some(again)
}

/// The links that all packets of a plan cross, if none is dropped or sent twice.
fn hops(plan: &Plan) -> u64 {
    let links = |start: u32| names::route(plan, start).0.len() as u64;
    let its =
        |flow: &Flow| plan.packet.packets(flow.size).saturating_mul(links(flow.path) + links(flow.ack_path));
    plan.flows.iter().fold(0, |sum, flow| sum.saturating_add(its(flow)))
}

/// The scenario's name: its file's, without the ending.
pub fn name(path: &Path) -> String {
    path.file_stem().map_or_else(|| "scenario".into(), |s| s.to_string_lossy().into_owned())
}

/// Refuses a file that describes a network for another program.
fn foreign(path: &Path, text: &[u8]) -> miette::Result<()> {
    let is_scenario =
        path.extension().is_some_and(|e| e == "toml") || xoff_plan::variants("", text, "").is_ok();
    let Some(text) = std::str::from_utf8(text).ok().filter(|_| !is_scenario) else { return Ok(()) };
    let Ok(format) = Format::detect(text) else { return Ok(()) };
    let shown = path.display();
    let help = format!(
        "type `xoff import {shown} > net.toml`, then use net.toml; or write [topology] with kind = \"file\" and file = \"{shown}\" into a scenario"
    );
    Err(miette!(help = help, "{shown} is a network ({}), not a scenario", format.words()))
}

fn unreadable(path: &Path, error: &io::Error) -> Report {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::IsADirectory => {
            let paths = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
            let tables = paths.filter(|p| p.extension().is_some_and(|e| e == "toml"));
            let mut found: Vec<String> = tables.map(|p| p.display().to_string()).collect();
            found.sort_unstable();
            found.truncate(8);
            let help = match &found[..] {
                [] => "type a scenario file, such as examples/hello.toml".to_string(),
                found => format!("type one of its files: {}", found.join(", ")),
            };
            miette!(help = help, "{shown} is a directory, not a scenario file")
        }
        io::ErrorKind::NotFound => {
            let with_ending = path.with_extension("toml");
            let help = match with_ending != path && with_ending.is_file() {
                true => format!("did you mean {}?", with_ending.display()),
                false => "type the path of a scenario file (TOML), relative to the current directory".into(),
            };
            miette!(help = help, "there is no file {shown}")
        }
        io::ErrorKind::FileTooLarge => miette!(
            help = "put large lists of flows into a CSV file and name that file in the scenario",
            "{shown} is larger than the maximum of {} MiB",
            LARGEST >> 20
        ),
        io::ErrorKind::InvalidInput => miette!(
            help = "type a regular file, or a pipe such as <(command)",
            "{shown} cannot be read: {error}"
        ),
        _ => miette!("{shown} cannot be read: {error}"),
    }
}
