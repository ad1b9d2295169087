//! From an experiment to its grid of runs.

use std::collections::BTreeMap;

use crate::experiment::{Experiment, Vary};
use xoff_results::grid::{Axis, Grid};

/// The varied key that chooses among the `[[run]]` tables, as grids list it.
pub const RUN: &str = "run";

/// The axis of the changes of `--sensitivity`.
pub const CHOSEN: &str = "chosen";

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

/// A change that `--sensitivity` makes.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Position in [`Experiment::chosen`].
    pub chosen: usize,
    /// The other value of the key, or the other choice in words.
    pub name: String,
    /// The keys of the scenario that it sets, and their values as written.
    pub set: Vec<(String, String)>,
}

impl Experiment {
    pub fn seeds(&self, quick: bool) -> Vec<u64> {
        match &self.quick {
            Some(q) if quick && !q.seeds.is_empty() => q.seeds.clone(),
            _ if quick => self.seeds.iter().take(1).copied().collect(),
            _ => self.seeds.clone(),
        }
    }

    pub fn vary(&self, quick: bool) -> Vec<&Vary> {
        let shorter = self.quick.iter().filter(|_| quick).flat_map(|q| &q.vary);
        self.vary.iter().map(|v| shorter.clone().find(|s| s.key == v.key).unwrap_or(v)).collect()
    }

    /// The grid of its runs: the runs are the values of its first axis. With
    /// `changes`, the grid of those, which are the values of one more axis before.
    pub fn grid(&self, quick: bool, changes: &[Change]) -> Grid {
        let mut axes = Vec::new();
        if !changes.is_empty() {
            axes.push(Axis::named(CHOSEN, changes.iter().map(|c| c.name.clone()).collect()));
        }
        axes.push(Axis::named(RUN, self.run.iter().map(|r| r.name.clone()).collect()));
        axes.extend(self.vary(quick).into_iter().map(|v| Axis {
            key: v.key.clone(),
            values: v.values.iter().map(written).collect(),
            named: false,
        }));
        Grid { axes, seeds: self.seeds(quick) }
    }

    /// The overrides of the run called `self.run[run]` before those of the grid (varied keys, seed): the
    /// choices, then the keys of the run, then those of a changed choice in words, then those of `--quick`.
    pub fn overrides(&self, run: usize, quick: bool, change: Option<&Change>) -> Vec<(String, String)> {
        let run = &self.run[run];
        let mut all = Vec::new();
        let mut last = Vec::new();
        for (i, chosen) in self.chosen.iter().enumerate() {
            if !chosen.runs.is_empty() && !chosen.runs.contains(&run.name) {
                continue;
            }
            let changed = change.filter(|c| c.chosen == i).map(|c| c.set.clone());
            match (&chosen.key, &chosen.value) {
                (Some(key), Some(value)) => {
                    all.extend(changed.unwrap_or_else(|| vec![(key.clone(), written(value))]));
                }
                _ => last = changed.unwrap_or(last),
            }
        }
        let pairs = |set: &BTreeMap<String, toml::Value>| -> Vec<(String, String)> {
            set.iter().map(|(k, v)| (k.clone(), written(v))).collect()
        };
        all.extend(pairs(&run.set));
        all.extend(last);
        if let Some(q) = self.quick.as_ref().filter(|_| quick) {
            all.extend(pairs(&q.set));
        }
        all
    }

    pub fn run_index(&self, name: &str) -> Option<usize> {
        self.run.iter().position(|r| r.name == name)
    }

    pub fn metric_index(&self, name: &str) -> Option<usize> {
        self.metric.iter().position(|m| m.name == name)
    }
}
