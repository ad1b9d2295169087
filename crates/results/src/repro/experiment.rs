//! The file of an experiment, and of claims without one. Every key is here;
//! `check` refuses what does not fit together.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, Serialize};
use xoff_net::units::{Bytes, Span};
use xoff_plan::Error;
use xoff_plan::document::{Document, Source};

use super::check;
use super::names::Names;
use crate::grid::{Axis, Grid};

/// The table that holds a scenario within the file of an experiment.
pub const SCENARIO: &str = "scenario";
/// The varied key that chooses among the `[[run]]` tables, as grids list it.
pub const RUN: &str = "run";

/// The axis of the changes of `--sensitivity`.
pub const CHOSEN: &str = "chosen";

/// A figure or table of a paper: what is run, what is measured, what is drawn,
/// and what the paper says of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The paper's short name, that of the directory.
    pub paper: String,
    /// The experiment's name, that of the file without its ending.
    pub id: String,
    /// What it shows, in a line.
    pub title: String,
    /// Where in the paper it is.
    pub section: String,
    /// How the paper came to it.
    pub kind: Kind,
    /// What readers should know, such as how ours differs from the paper's.
    #[serde(default)]
    pub note: String,
    /// Seeds of each point of the grid; without them the scenario's own.
    #[serde(default)]
    pub seeds: Vec<u64>,
    /// What is run; without any, the scenario as it is, by the name `run`.
    #[serde(default)]
    pub run: Vec<Run>,
    /// Keys that are varied, every combination for each run.
    #[serde(default)]
    pub vary: Vec<Vary>,
    /// What `--quick` does instead.
    #[serde(default)]
    pub quick: Option<Quick>,
    /// What the paper leaves open, and what was chosen.
    #[serde(default)]
    pub chosen: Vec<Chosen>,
    /// What is measured in each run.
    #[serde(default)]
    pub metric: Vec<Metric>,
    /// What is drawn.
    #[serde(default)]
    pub plot: Vec<Plot>,
    /// What the paper says.
    #[serde(default)]
    pub claim: Vec<Claim>,
}

/// Claims of a paper whose experiments have no file: `claims.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// The paper's short name, that of the directory.
    pub paper: String,
    /// The paper's title.
    pub title: String,
    /// What it says, each with a reason for not being measured.
    #[serde(default)]
    pub claim: Vec<Claim>,
}

/// How the paper came to a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// By simulation.
    Simulation,
    /// By reasoning.
    Analysis,
    /// On a testbed.
    Testbed,
    /// From the hardware's own figures.
    Hardware,
}

/// A variant of the scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Its name: letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// A scenario file beside the experiment, in the place of its `[scenario]`.
    #[serde(default)]
    pub scenario: Option<String>,
    /// Keys of the scenario and their values, in alphabetical order of the keys.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub set: BTreeMap<String, toml::Value>,
}

/// A key that is varied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Vary {
    /// A key of the scenario, such as `traffic.0.load`.
    pub key: String,
    /// Its values.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub values: Vec<toml::Value>,
}

/// A shorter version of the experiment.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quick {
    /// Seeds in the place of the experiment's; without them its first one.
    #[serde(default)]
    pub seeds: Vec<u64>,
    /// Values of varied keys in the place of the experiment's.
    #[serde(default)]
    pub vary: Vec<Vary>,
    /// Keys of the scenario and their values, after those of the runs.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub set: BTreeMap<String, toml::Value>,
}

/// A choice where the paper leaves something open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chosen {
    /// The key of the scenario that it sets; without one, `what` says what was chosen.
    #[serde(default)]
    pub key: Option<String>,
    /// The choice in words, where no key of the scenario stands for it.
    #[serde(default)]
    pub what: Option<String>,
    /// The key's value.
    #[serde(default)]
    #[schemars(with = "Option<serde_json::Value>")]
    pub value: Option<toml::Value>,
    /// Why this.
    pub reason: String,
    /// The lower value for `--sensitivity`; 30% less without one.
    #[serde(default)]
    #[schemars(with = "Option<serde_json::Value>")]
    pub low: Option<toml::Value>,
    /// The higher value for `--sensitivity`; 30% more without one.
    #[serde(default)]
    #[schemars(with = "Option<serde_json::Value>")]
    pub high: Option<toml::Value>,
    /// Other values for `--sensitivity`, in the place of `low` and `high`.
    #[serde(default)]
    #[schemars(with = "Vec<serde_json::Value>")]
    pub alternatives: Vec<toml::Value>,
    /// The runs whose key it sets; without them all.
    #[serde(default)]
    pub runs: Vec<String>,
}

/// A number that is measured in each run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Its name, by which measures and plots call it.
    pub name: String,
    /// What is measured, one of the list in `docs/EXPERIMENTS.md`.
    pub of: String,
    /// Unit of the value; each measured thing has its own.
    #[serde(default)]
    pub unit: Option<String>,
    /// What becomes of many values: `mean`, `min`, `max`, `sum`, `p50`, `p90`,
    /// `p95`, `p99`, `p999`, of a series also `time-below` and `time-above`.
    #[serde(default)]
    pub statistic: Option<String>,
    /// With `time-below` and `time-above`: below or above what, in the series' own unit.
    #[serde(default)]
    pub threshold: Option<f64>,
    /// Of a series: its `quantity` in `series.parquet`, such as `goodput`.
    #[serde(default)]
    pub quantity: Option<String>,
    /// Of a series: its elements; several are summed at each time.
    #[serde(default)]
    pub element: Option<Names>,
    /// Only flows of these traffic classes.
    #[serde(default)]
    pub class: Option<Names>,
    /// Only flows from these hosts.
    #[serde(default)]
    pub src: Option<Names>,
    /// Only flows to these hosts.
    #[serde(default)]
    pub dst: Option<Names>,
    /// Only flows of at least this size.
    #[serde(default)]
    pub min_size: Option<Bytes>,
    /// Only flows of at most this size.
    #[serde(default)]
    pub max_size: Option<Bytes>,
    /// Only pauses of these egress ports, peaks of these ports.
    #[serde(default)]
    pub port: Option<Names>,
    /// Only pauses that these ingress ports asked for.
    #[serde(default)]
    pub cause: Option<Names>,
    /// Only pauses for congestion at these ports (`measure.blocking`).
    #[serde(default)]
    pub root: Option<Names>,
    /// Only peaks of these nodes.
    #[serde(default)]
    pub node: Option<Names>,
    /// Only what happens later than this: samples after it, flows that start
    /// and pauses that stand from then on.
    #[serde(default)]
    pub from: Option<Span>,
    /// Only what happens up to this time.
    #[serde(default)]
    pub to: Option<Span>,
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// Its name: the files are `NAME.svg` and `NAME.csv`.
    pub name: String,
    /// What is drawn.
    pub kind: PlotKind,
    /// Its heading.
    pub title: String,
    /// Label of the horizontal axis, with its unit; of `lines` the time.
    #[serde(default)]
    pub x: Option<String>,
    /// Label of the vertical axis, with its unit.
    #[serde(default)]
    pub y: Option<String>,
    /// The runs that are drawn; without them all.
    #[serde(default)]
    pub runs: Vec<String>,
    /// Values of varied keys: only these points of the grid.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub at: BTreeMap<String, toml::Value>,
    /// Names of metrics: the bars of each run, or the height of curves; of
    /// `cdf` the one of flows whose values are distributed.
    #[serde(default)]
    pub metrics: Vec<String>,
    /// Of `lines`: the `quantity` in `series.parquet`.
    #[serde(default)]
    pub quantity: Option<String>,
    /// Of `lines`: the elements, a line each.
    #[serde(default)]
    pub elements: Vec<String>,
    /// Of `lines`: unit of the values.
    #[serde(default)]
    pub unit: Option<String>,
    /// Of `curves`: the varied key along the horizontal axis.
    #[serde(default)]
    pub along: Option<String>,
    /// Whether the horizontal axis is logarithmic (`cdf`).
    #[serde(default)]
    pub log_x: bool,
}

/// What a picture shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlotKind {
    /// A series over time: a panel for each run, a line for each element.
    Lines,
    /// The distribution of flows: a line for each run.
    Cdf,
    /// Metrics of each run, means over seeds, as bars.
    Bars,
    /// A metric over a varied key: a line for each run.
    Curves,
}

/// What a paper says, and how we measure it, or why not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its name: the experiment's (and the letter of a panel, if it is of one), a
    /// full stop, and its own.
    pub id: String,
    /// What the paper says.
    pub statement: String,
    /// The scheme that it is about.
    pub subject: String,
    /// What that is compared with; `none` if nothing.
    pub against: String,
    /// What is compared, in the paper's words.
    pub metric: String,
    /// How.
    pub relation: Relation,
    /// Least value that the paper gives.
    #[serde(default)]
    pub low: Option<f64>,
    /// Greatest value that it gives.
    #[serde(default)]
    pub high: Option<f64>,
    /// Its values by case.
    #[serde(default)]
    pub per_case: BTreeMap<String, f64>,
    /// How we measure it; where there are several, all must hold.
    #[serde(default)]
    pub measure: Vec<Measure>,
    /// Why it is not simulated: it is about hardware.
    #[serde(default)]
    pub not_simulated: Option<String>,
    /// Where it is shown without simulation.
    #[serde(default)]
    pub analysis: Option<String>,
    /// What is missing to measure it.
    #[serde(default)]
    pub later: Option<String>,
}

/// What a claim says of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// One is less or greater than the other.
    Ordering,
    /// One over the other.
    Ratio,
    /// One is lower by this part of the other: 1 − a/b.
    Reduction,
    /// The value itself.
    Equals,
    /// The value itself, or more.
    AtLeast,
    /// The value itself, or less.
    AtMost,
    /// Conditions of our own, each with its bounds.
    Shape,
}

/// A measurement that a claim is held against.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// The case of `per_case` that it measures.
    #[serde(default)]
    pub case: Option<String>,
    /// What it tests, in words; a claim of a shape must say it.
    #[serde(default)]
    pub says: Option<String>,
    /// The run whose value it takes.
    pub run: String,
    /// The run that it is compared with.
    #[serde(default)]
    pub against: Option<String>,
    /// Name of the metric.
    pub metric: String,
    /// Name of the other's metric; the same without it.
    #[serde(default)]
    pub against_metric: Option<String>,
    /// Values of varied keys; of a key that is left out, every value must hold.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub at: BTreeMap<String, toml::Value>,
    /// The other's values of varied keys, where they are not the same.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub against_at: BTreeMap<String, toml::Value>,
    /// How the two become one number; by the claim's relation without it.
    #[serde(default)]
    pub combine: Option<Combine>,
    /// Of an ordering: how the run's value lies to the other's.
    #[serde(default)]
    pub expect: Option<Side>,
    /// Of a shape: the least value.
    #[serde(default)]
    pub low: Option<f64>,
    /// Of a shape: the greatest value.
    #[serde(default)]
    pub high: Option<f64>,
}

/// How the value *a* of a run and *b* of the one that it is compared with
/// become one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Combine {
    /// *a* alone.
    Value,
    /// *a* / *b*.
    Ratio,
    /// 1 − *a* / *b*.
    Reduction,
    /// *a* / *b* − 1.
    Gain,
    /// *a* − *b*.
    Difference,
}

/// On which side of another a value lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Below it.
    Less,
    /// Above it.
    Greater,
}

/// The JSON Schema of experiment files.
pub fn schema() -> Schema {
    schema_for!(Experiment)
}

/// The JSON Schema of `claims.toml`.
pub fn claims_schema() -> Schema {
    schema_for!(Claims)
}

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
    /// The file's contents, without the scenario.
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
    let source = source(file, text)?;
    let doc = Document::parse(&source)?;
    let mut experiment: Experiment = whole(&doc, &[SCENARIO])?;
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
    check::claims(&doc, &claims)?;
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
    Ok(doc.read("", without)?.expect("the root is there"))
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
