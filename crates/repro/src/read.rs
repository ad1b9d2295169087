//! From the file of an experiment to its grid of runs.

use std::collections::BTreeMap;

use xoff_plan::Error;
use xoff_plan::document::{Document, Source};

use crate::experiment::{Claims, Experiment, Run, Vary};
use crate::{check, check_claims};
use xoff_results::grid::{Axis, Grid};

/// The table that holds a scenario within the file of an experiment.
pub const SCENARIO: &str = "scenario";
/// The varied key that chooses among the `[[run]]` tables, as grids list it.
pub const RUN: &str = "run";

/// The axis of the changes of `--sensitivity`.
pub const CHOSEN: &str = "chosen";

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

/// Reads the file of an experiment. `file` is its name in errors.
///
/// # Errors
/// The first thing that is wrong, with its place and a remedy. Its scenario is
/// not looked at but for being there.
pub fn read(file: &str, text: &[u8]) -> Result<Read, Error> {
    read_beside(file, text, &|_| Ok(None))
}

/// As [`read`], of a file that stands beside others: `other` reads the one of an
/// experiment that is named by `runs_of`, if there is one.
///
/// # Errors
/// As of [`read`], and those of `other`.
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
            let help = "name an experiment of the same paper, that is a file in the same directory";
            return Err(doc.error("runs_of", format!("there is no experiment `{owner}`"), help));
        };
        let Read { experiment: other, bases } = read;
        experiment.run = other.run;
        experiment.vary = other.vary;
        experiment.seeds = other.seeds;
        experiment.quick = other.quick;
        check::experiment(&doc, &experiment)?;
        return Ok(Read { experiment, bases });
    }
    if experiment.run.is_empty() {
        experiment.run.push(Run { name: RUN.into(), scenario: None, set: BTreeMap::new() });
    }
    let inline = doc.get(SCENARIO);
    if inline.is_some_and(|v| !v.get_ref().is_table()) {
        let help = "write [scenario.topology] and so on, or name a file by `scenario` of a [[run]]";
        return Err(doc.error(SCENARIO, "`scenario` is a table", help));
    }
    let bases = experiment.run.iter().map(|run| run.scenario.clone().map_or(Base::Inline, Base::File));
    let bases: Vec<Base> = bases.collect();
    if inline.is_none() && bases.contains(&Base::Inline) {
        let help = "write [scenario.topology], [[scenario.traffic]] and so on, or name a file by `scenario` \
                    of each [[run]]";
        return Err(doc.error("", "the table [scenario] is missing", help).with_key(SCENARIO));
    }
    check::experiment(&doc, &experiment)?;
    Ok(Read { experiment, bases })
}

/// Reads a paper's `claims.toml`.
///
/// # Errors
/// As of [`read`].
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
        let help = "docs/EXPERIMENTS.md tells what belongs into it";
        return Err(Error::new(file, "", None, "the file is empty").with_help(help));
    }
    Source::new(file, text, &[])
}

fn whole<T: serde::de::DeserializeOwned>(doc: &Document<'_>, without: &[&str]) -> Result<T, Error> {
    let read = doc.read("", without)?.expect("the root is there");
    doc.check_integers()?;
    Ok(read)
}

/// A value as an override writes it.
pub fn written(value: &toml::Value) -> String {
    value.to_string()
}

/// A value as a number and its unit, if it has that form: `4`, `"4bdp"`.
pub fn number(value: &toml::Value) -> Option<(f64, String)> {
    match value {
        toml::Value::Integer(n) => Some((*n as f64, String::new())),
        toml::Value::Float(x) => Some((*x, String::new())),
        toml::Value::String(text) => {
            let digits = |c: char| c.is_ascii_digit() || ".-_".contains(c);
            let (number, unit) = text.split_at(text.find(|c| !digits(c)).unwrap_or(text.len()));
            Some((number.replace('_', "").parse().ok()?, unit.to_string()))
        }
        _ => None,
    }
}

/// A change that `--sensitivity` makes: which choice, and its other value.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Position in [`Experiment::chosen`].
    pub chosen: usize,
    /// The value that takes the place of the chosen one, as written.
    pub value: String,
}

impl Experiment {
    /// The seeds that are used.
    pub fn seeds(&self, quick: bool) -> Vec<u64> {
        match &self.quick {
            Some(q) if quick && !q.seeds.is_empty() => q.seeds.clone(),
            _ if quick => self.seeds.iter().take(1).copied().collect(),
            _ => self.seeds.clone(),
        }
    }

    /// The keys that are varied.
    pub fn vary(&self, quick: bool) -> Vec<&Vary> {
        let shorter = self.quick.iter().filter(|_| quick).flat_map(|q| &q.vary);
        self.vary.iter().map(|v| shorter.clone().find(|s| s.key == v.key).unwrap_or(v)).collect()
    }

    /// The grid of its runs: the runs are the values of its first axis. With
    /// `changes`, the grid of those, which are the values of one more axis before.
    pub fn grid(&self, quick: bool, changes: &[Change]) -> Grid {
        let mut axes = Vec::new();
        if !changes.is_empty() {
            let name = |c: &Change| {
                format!("{}={}", self.chosen[c.chosen].key.as_deref().unwrap_or_default(), c.value)
            };
            axes.push(Axis::named(CHOSEN, changes.iter().map(name).collect()));
        }
        axes.push(Axis::named(RUN, self.run.iter().map(|r| r.name.clone()).collect()));
        axes.extend(self.vary(quick).into_iter().map(|v| Axis {
            key: v.key.clone(),
            values: v.values.iter().map(written).collect(),
            named: false,
        }));
        Grid { axes, seeds: self.seeds(quick) }
    }

    /// The overrides of the run called `self.run[run]` before those of the grid
    /// (varied keys, seed): what was chosen, then what the run sets, then what
    /// `--quick` sets.
    pub fn overrides(&self, run: usize, quick: bool, change: Option<&Change>) -> Vec<(String, String)> {
        let run = &self.run[run];
        let mut all = Vec::new();
        for (i, chosen) in self.chosen.iter().enumerate() {
            let applies = chosen.runs.is_empty() || chosen.runs.contains(&run.name);
            let (Some(key), Some(value), true) = (&chosen.key, &chosen.value, applies) else { continue };
            let changed = change.filter(|c| c.chosen == i).map(|c| c.value.clone());
            all.push((key.clone(), changed.unwrap_or_else(|| written(value))));
        }
        let pairs = |set: &BTreeMap<String, toml::Value>| -> Vec<(String, String)> {
            set.iter().map(|(k, v)| (k.clone(), written(v))).collect()
        };
        all.extend(pairs(&run.set));
        if let Some(q) = self.quick.as_ref().filter(|_| quick) {
            all.extend(pairs(&q.set));
        }
        all
    }

    /// The position of a run, by its name.
    pub fn run_index(&self, name: &str) -> Option<usize> {
        self.run.iter().position(|r| r.name == name)
    }

    /// The position of a metric, by its name.
    pub fn metric_index(&self, name: &str) -> Option<usize> {
        self.metric.iter().position(|m| m.name == name)
    }
}
