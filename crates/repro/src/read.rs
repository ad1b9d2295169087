//! Reads the file of an experiment, and that of a paper's claims.

use std::collections::BTreeMap;

use xoff_plan::Error;
use xoff_plan::document::{Document, Source};

use crate::experiment::{Claims, Experiment, Run, SCENARIO};
use crate::{check, check_claims, runs::RUN};

/// The scenario of an experiment or of one of its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    /// The table `[scenario]` of the experiment's file.
    Inline,
    /// A file beside it.
    File(String),
}

/// An experiment as it was read, and where its scenarios are.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// The file's contents, without the scenario. One that looks at another's runs
    /// has that one's `run`, `vary`, `seeds` and `quick`.
    pub experiment: Experiment,
    /// The scenario of each run, in their order.
    pub bases: Vec<Base>,
}

/// Reads the file of an experiment; `file` is its name in errors. Of the scenario it only checks that it is
/// there.
pub fn read(file: &str, text: &[u8]) -> Result<Read, Error> {
    read_beside(file, text, &|_| Ok(None))
}

/// Like [`read`], for a file among others: `other` reads the experiment that `runs_of` names.
pub fn read_beside(
    file: &str,
    text: &[u8],
    other: &dyn Fn(&str) -> Result<Option<Read>, Error>,
) -> Result<Read, Error> {
    let source = source(file, text)?;
    let doc = Document::parse(&source)?;
    let mut experiment: Experiment = whole(&doc, &[SCENARIO])?;
    if let Some(owner) = experiment.runs_of.clone() {
        check::without_runs(&doc, &experiment, &owner)?;
        let Some(read) = other(&owner)? else {
            let help = "write an experiment of the same paper (a file in the same directory)";
            return Err(doc.error("runs_of", format!("unknown experiment `{owner}`"), help));
        };
        let Read { experiment: other, bases } = read;
        experiment.run = other.run;
        experiment.vary = other.vary;
        experiment.seeds = other.seeds;
        experiment.quick = other.quick;
        checked(&doc, &experiment)?;
        return Ok(Read { experiment, bases });
    }
    if experiment.run.is_empty() {
        experiment.run.push(Run { name: RUN.into(), scenario: None, set: BTreeMap::new() });
    }
    let inline = doc.get(SCENARIO);
    if inline.is_some_and(|v| !v.get_ref().is_table()) {
        let help =
            "write the tables [scenario.topology] and so on, or give a file with `scenario` in a [[run]]";
        return Err(doc.error(SCENARIO, "`scenario` must be a table", help));
    }
    let bases = experiment.run.iter().map(|run| run.scenario.clone().map_or(Base::Inline, Base::File));
    let bases: Vec<Base> = bases.collect();
    if inline.is_none() && bases.contains(&Base::Inline) {
        let help = "write the tables [scenario.topology], [[scenario.traffic]] and so on, or give a file with \
                    `scenario` in each [[run]]";
        return Err(doc.error("", "the table [scenario] is missing", help).with_key(SCENARIO));
    }
    checked(&doc, &experiment)?;
    Ok(Read { experiment, bases })
}

/// Whether a file is an experiment that has a table `[scenario]`.
pub fn is_experiment(text: &[u8]) -> bool {
    let read = std::str::from_utf8(text).ok().and_then(|text| text.parse::<toml::Table>().ok());
    read.is_some_and(|t| t.get("paper").is_some_and(toml::Value::is_str) && t.contains_key(SCENARIO))
}

fn checked(doc: &Document<'_>, experiment: &Experiment) -> Result<(), Error> {
    check::experiment(doc, experiment)?;
    check_claims::of_experiment(doc, experiment)
}

pub fn read_claims(file: &str, text: &[u8]) -> Result<Claims, Error> {
    let source = source(file, text)?;
    let doc = Document::parse(&source)?;
    let claims: Claims = whole(&doc, &[])?;
    check_claims::claims(&doc, &claims)?;
    Ok(claims)
}

fn source(file: &str, text: &[u8]) -> Result<Source, Error> {
    let blank = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    if std::str::from_utf8(text).is_ok_and(|t| t.lines().all(blank)) {
        let help = "docs/EXPERIMENTS.md lists its tables";
        return Err(Error::new(file, "", None, "the file is empty").with_help(help));
    }
    Source::new(file, text, &[])
}

fn whole<T: serde::de::DeserializeOwned>(doc: &Document<'_>, without: &[&str]) -> Result<T, Error> {
    let read = doc.read("", without)?.expect("the root is there");
    doc.check_integers()?;
    Ok(read)
}
