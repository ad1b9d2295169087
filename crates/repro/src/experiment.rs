//! The file of an experiment, and of claims without one: every key. `read` reads it, and `check` refuses
//! inconsistent entries.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, Serialize};
use xoff_net::units::{Bytes, Span};

use crate::names::Names;

/// The table that holds a scenario within the file of an experiment.
pub const SCENARIO: &str = "scenario";

/// A figure or table of a paper: the runs, the metrics, the plots, and the paper's claims.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The paper's short name, that of the directory.
    pub paper: String,
    /// The experiment's name, that of the file without its ending.
    pub id: String,
    /// Its title, in one line.
    pub title: String,
    /// Where in the paper it is.
    pub section: String,
    /// How the paper came to it.
    pub kind: Kind,
    /// Notes for readers, such as differences to the paper.
    #[serde(default)]
    pub note: String,
    /// Why runs that a claim compares have different set-ups.
    #[serde(default)]
    pub unequal: Unequal,
    /// The experiment of the same paper whose runs it looks at, in the place of
    /// runs of its own.
    pub runs_of: Option<String>,
    /// Seeds of each point of the grid; without them the scenario's own.
    #[serde(default)]
    pub seeds: Vec<u64>,
    /// The runs; without any, the scenario as it is, with the name `run`.
    #[serde(default)]
    pub run: Vec<Run>,
    /// Keys that are varied, every combination for each run.
    #[serde(default)]
    pub vary: Vec<Vary>,
    /// The changes of `--quick`.
    pub quick: Option<Quick>,
    /// Points that the paper leaves open, and the choices.
    #[serde(default)]
    pub chosen: Vec<Chosen>,
    /// Points that have no other value.
    #[serde(default)]
    pub fixed: Vec<Fixed>,
    /// The metrics of each run.
    #[serde(default)]
    pub metric: Vec<Metric>,
    /// The plots.
    #[serde(default)]
    pub plot: Vec<Plot>,
    /// The paper's claims.
    #[serde(default)]
    pub claim: Vec<Claim>,
}

/// The reasons why runs that a claim compares differ in something other than their subject.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unequal {
    /// Whether ACKs wait among the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acks: Option<String>,
    /// Where packets are marked, if senders react to marks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marking: Option<String>,
    /// The bytes of the buffers of switches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffers: Option<String>,
    /// The congestion control, and its values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
}

/// Claims of a paper whose experiments have no file: `claims.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// The paper's short name, that of the directory.
    pub paper: String,
    /// The paper's title.
    pub title: String,
    /// The sources of the claims, where they are not one of the five papers. Such claims are counted apart.
    pub sources: Option<String>,
    /// The overall result.
    pub summary: String,
    /// Its claims, each with a reason why it is not measured.
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
#[serde(default, deny_unknown_fields)]
pub struct Quick {
    /// Seeds in the place of the experiment's; without them its first one.
    pub seeds: Vec<u64>,
    /// Values of varied keys in the place of the experiment's.
    pub vary: Vec<Vary>,
    /// Keys of the scenario and their values, after those of the runs.
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub set: BTreeMap<String, toml::Value>,
}

/// A choice where the paper leaves something open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chosen {
    /// The key of the scenario that it sets; without a key, `what` has the choice in words.
    pub key: Option<String>,
    /// The choice in words, if no key of the scenario has it.
    pub what: Option<String>,
    /// The key's value.
    #[schemars(with = "Option<serde_json::Value>")]
    pub value: Option<toml::Value>,
    /// Why this.
    pub reason: String,
    /// The lower value for `--sensitivity`; 30% less without one.
    #[schemars(with = "Option<serde_json::Value>")]
    pub low: Option<toml::Value>,
    /// The higher value for `--sensitivity`; 30% more without one.
    #[schemars(with = "Option<serde_json::Value>")]
    pub high: Option<toml::Value>,
    /// Other values for `--sensitivity`, in the place of `low` and `high`.
    #[serde(default)]
    #[schemars(with = "Vec<serde_json::Value>")]
    pub alternatives: Vec<toml::Value>,
    /// The runs whose keys it and its `instead` set; without them all.
    #[serde(default)]
    pub runs: Vec<String>,
    /// Of a choice in words: what `--sensitivity` does instead.
    #[serde(default)]
    pub instead: Vec<Instead>,
}

/// A point of the set-up that has no other value: it follows from the source or from another value, defines a word
/// of a claim, or is a rule of the simulator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fixed {
    /// The point.
    pub what: String,
    /// Why it has no other value.
    pub reason: String,
}

/// What `--sensitivity` does in the place of a choice in words: runs with other keys, or another reading of the same runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Instead {
    /// The other choice, in one line.
    pub choice: String,
    /// Keys of the scenario and their values, after those of the runs.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub set: BTreeMap<String, toml::Value>,
    /// For runs that claims measure, the runs in their place.
    #[serde(default)]
    pub runs: BTreeMap<String, String>,
    /// For metrics that claims measure, the metrics in their place.
    #[serde(default)]
    pub metrics: BTreeMap<String, String>,
    /// Values of varied keys in the place of those that claims name.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub at: BTreeMap<String, toml::Value>,
    /// Only these of the values of varied keys.
    #[serde(default)]
    pub vary: Vec<Vary>,
    /// Only these of the seeds.
    #[serde(default)]
    pub seeds: Vec<u64>,
}

impl Instead {
    /// As a reading of a claim, which may name only some of the varied keys.
    pub fn reading(&self, claim: &Claim) -> Reading {
        let named = |key: &String| claim.measure.iter().any(|m| m.at.contains_key(key));
        let mut at = self.at.clone();
        at.retain(|key, _| named(key));
        let (choice, runs, metrics) = (self.choice.clone(), self.runs.clone(), self.metrics.clone());
        Reading { choice, runs, metrics, at }
    }

    /// The experiment with the seeds and values of varied keys that it leaves.
    pub fn points_of(&self, e: &Experiment) -> Experiment {
        let mut e = e.clone();
        let quick = e.quick.iter_mut();
        let (seeds, vary): (Vec<_>, Vec<_>) = quick.map(|q| (&mut q.seeds, &mut q.vary)).unzip();
        for seeds in seeds.into_iter().chain([&mut e.seeds]) {
            seeds.retain(|seed| self.seeds.is_empty() || self.seeds.contains(seed));
        }
        for axis in vary.into_iter().flatten().chain(&mut e.vary) {
            let only = self.vary.iter().find(|only| only.key == axis.key);
            axis.values.retain(|value| only.is_none_or(|only| only.values.contains(value)));
        }
        e
    }
}

/// A number that is measured in each run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Its name, by which measures and plots call it.
    pub name: String,
    /// The measured quantity, one of the list in `docs/EXPERIMENTS.md`.
    pub of: String,
    /// Unit of the value; each measured thing has its own.
    pub unit: Option<String>,
    /// The statistic of many values: `mean`, `min`, `max`, `sum`, `stddev`, `p30`, `p50`, `p90`, `p95`,
    /// `p99`, `p999`, of a series also `time-below` and `time-above`, `longest-below` and `longest-above`.
    pub statistic: Option<String>,
    /// For `time-below` and the like: the threshold, in the series' own unit.
    pub threshold: Option<f64>,
    /// Of a series: its `quantity` in `series.parquet`, such as `goodput`.
    pub quantity: Option<String>,
    /// Of a series: its elements; several are summed at each time. Of `bus-bandwidth` and `straggler`: names of operations.
    pub element: Option<Names>,
    /// Only flows of these traffic classes.
    pub class: Option<Names>,
    /// Only flows from these hosts.
    pub src: Option<Names>,
    /// Only flows to these hosts.
    pub dst: Option<Names>,
    /// Only flows of at least this size.
    pub min_size: Option<Bytes>,
    /// Only flows of at most this size.
    pub max_size: Option<Bytes>,
    /// Only flows whose ideal completion time is at least this, so those that go far.
    pub min_ideal: Option<Span>,
    /// Only flows whose ideal completion time is at most this.
    pub max_ideal: Option<Span>,
    /// Only pauses of these egress ports, peaks of these ports.
    pub port: Option<Names>,
    /// Only pauses of queues of these numbers; none where whole priorities are
    /// paused.
    pub queue: Option<Vec<i64>>,
    /// Only pauses that these ingress ports caused.
    pub cause: Option<Names>,
    /// Only pauses for congestion at these ports (`measure.blocking`).
    pub root: Option<Names>,
    /// Only the memory and peaks of these nodes.
    pub node: Option<Names>,
    /// Only later times: samples after this time, flows that start and pauses that last after it.
    pub from: Option<Span>,
    /// Only times up to this one.
    pub to: Option<Span>,
    /// Of a series, instead: only samples between these two parts of the time in which flows
    /// start, such as `[0.2, 1.0]`.
    pub arrivals: Option<[f64; 2]>,
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// Its name: the files are `NAME.svg` and `NAME.csv`.
    pub name: String,
    /// The kind of picture.
    pub kind: PlotKind,
    /// Its heading.
    pub title: String,
    /// Label of the horizontal axis, with its unit; of `lines` the time.
    pub x: Option<String>,
    /// Label of the vertical axis, with its unit.
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
    pub quantity: Option<String>,
    /// Of `lines`: the elements, a line each.
    #[serde(default)]
    pub elements: Vec<String>,
    /// Of `lines`: unit of the values.
    pub unit: Option<String>,
    /// Of `curves`: the varied key along the horizontal axis.
    pub along: Option<String>,
    /// Whether the horizontal axis is logarithmic (`cdf`).
    #[serde(default)]
    pub log_x: bool,
}

/// The quantity in a picture.
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

/// A claim of a paper, and how we measure it, or why not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its name: the experiment's (and the letter of a panel, if it is of one), a
    /// full stop, and its own.
    pub id: String,
    /// The paper's statement.
    pub statement: String,
    /// The scheme that it is about.
    pub subject: String,
    /// The object of comparison; `none` if there is none.
    pub against: String,
    /// The compared quantity, in the paper's words.
    pub metric: String,
    /// How.
    pub relation: Relation,
    /// Least value that the paper gives.
    pub low: Option<f64>,
    /// Greatest value that it gives.
    pub high: Option<f64>,
    /// Its values by case.
    #[serde(default)]
    pub per_case: BTreeMap<String, f64>,
    /// Of a claim of our own: by how much of itself each end of its range is
    /// moved outwards, 0 to 1; a fifth without it.
    pub within: Option<f64>,
    /// How we measure it; where there are several, all must hold.
    #[serde(default)]
    pub measure: Vec<Measure>,
    /// Why it is not simulated: it is about hardware.
    pub not_simulated: Option<String>,
    /// Where it is shown without simulation.
    pub analysis: Option<String>,
    /// The missing part that would be needed to measure it.
    pub later: Option<String>,
    /// Other readings of what the paper leaves open, each judged by the same measures.
    #[serde(default)]
    pub reading: Vec<Reading>,
    /// For a claim that is not reproduced: where we looked for a fault of ours, and the effect of other
    /// choices. `{RUN/METRIC}` stands for a measured value, see `discussion`.
    pub discussion: Option<String>,
}

/// Another reading of what the paper leaves open: what takes the place of the claim's runs, metrics and values
/// of varied keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// The choice, in one line.
    pub choice: String,
    /// For runs of the claim's measures, the runs in their place.
    #[serde(default)]
    pub runs: BTreeMap<String, String>,
    /// For metrics of the claim's measures, the metrics in their place.
    #[serde(default)]
    pub metrics: BTreeMap<String, String>,
    /// Values of varied keys in the place of those in `at`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub at: BTreeMap<String, toml::Value>,
}

impl Claim {
    /// The claim with the measures of a reading.
    pub fn read_as(&self, reading: &Reading) -> Claim {
        let replace = |map: &BTreeMap<String, String>, name: &mut String| {
            if let Some(other) = map.get(name) {
                name.clone_from(other);
            }
        };
        let mut claim = self.clone();
        for m in &mut claim.measure {
            // Without a second name the second value is of the first one.
            if m.against.is_none() && compares(m) {
                m.against = Some(m.run.clone());
            }
            replace(&reading.runs, &mut m.run);
            m.against.iter_mut().for_each(|run| replace(&reading.runs, run));
            replace(&reading.metrics, &mut m.metric);
            m.against_metric.iter_mut().for_each(|metric| replace(&reading.metrics, metric));
            m.seeds_with.iter_mut().for_each(|metric| replace(&reading.metrics, metric));
            m.at.extend(reading.at.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        claim
    }

    /// The measures of the claim and of all its readings.
    pub fn all_measures(&self) -> Vec<Measure> {
        let others = self.reading.iter().flat_map(|reading| self.read_as(reading).measure);
        self.measure.iter().cloned().chain(others).collect()
    }
}

/// Whether a measure has a second value.
pub(crate) fn compares(m: &Measure) -> bool {
    m.against.is_some() || m.against_metric.is_some() || !m.against_at.is_empty()
}

/// The relation that a claim states about its values.
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
    pub case: Option<String>,
    /// The tested property, in words; a claim of a shape must have it.
    pub says: Option<String>,
    /// The run whose value it takes.
    pub run: String,
    /// The run that it is compared with.
    pub against: Option<String>,
    /// Name of the metric.
    pub metric: String,
    /// Name of the other's metric; the same without it.
    pub against_metric: Option<String>,
    /// Values of varied keys; of a key that is left out, every value must hold.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub at: BTreeMap<String, toml::Value>,
    /// The other's values of varied keys, where they are not the same.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub against_at: BTreeMap<String, toml::Value>,
    /// Values of varied keys: the number there is subtracted from the number at `at`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub than_at: BTreeMap<String, toml::Value>,
    /// A metric: only seeds under which it is above 0 in `run` count.
    pub seeds_with: Option<String>,
    /// A varied key over whose values the largest number is taken.
    pub largest_over: Option<String>,
    /// In the place of a value: by how much it differs from the mean over seeds.
    #[serde(default)]
    pub deviation: bool,
    /// How the two become one number; by the claim's relation without it.
    pub combine: Option<Combine>,
    /// Of an ordering: how the run's value lies to the other's.
    pub expect: Option<Side>,
    /// Of a shape: the least value.
    pub low: Option<f64>,
    /// Of a shape: the greatest value.
    pub high: Option<f64>,
}

/// How the value *a* of a run and *b* of the one that it is compared with
/// become one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Combine {
    /// Only *a*.
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
