//! References of a text to measured values: `{RUN/METRIC}`.
//!
//! A page writes the mean over seeds in the place of the reference, with its unit. `{RUN/METRIC at KEY=VALUE}`
//! names the values of varied keys, and `{RUN/METRIC over RUN/METRIC}` is the quotient of two means.

use std::collections::BTreeMap;

use xoff_plan::error::suggest;

use crate::experiment::Experiment;
use crate::report::{Referenced, with_unit};
use crate::runs::written;

/// A run and a metric, by their positions in the experiment.
pub type Side = (usize, usize);

/// What a reference names.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    pub value: Side,
    /// The mean that the value is divided by.
    pub over: Option<Side>,
    /// The value of each varied key, as written.
    pub at: BTreeMap<String, String>,
}

/// Words that name a cause which nobody measured.
const HEDGES: [&str; 6] = ["likely", "probably", "presumably", "perhaps", "supposedly", "may be because"];

/// The texts in braces.
pub fn references(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).map(|part| part.split_once('}').map_or(part, |(inner, _)| inner))
}

/// The run, the metric and the point that a reference names. The error is a message and a remedy.
pub fn resolve(e: &Experiment, inner: &str) -> Result<Resolved, (String, String)> {
    let (what, at) = match inner.split_once(" at ") {
        Some((what, at)) => (what, at.split(',').map(str::trim).collect()),
        None => (inner, Vec::new()),
    };
    let (value, over) = match what.split_once(" over ") {
        Some((value, over)) => (side(e, value)?, Some(side(e, over)?)),
        None => (side(e, what)?, None),
    };
    let mut point = BTreeMap::new();
    for pair in at {
        let form = || ("a value of a varied key is missing".to_string(), "write KEY=VALUE".to_string());
        let (key, value) = pair.split_once('=').ok_or_else(form)?;
        let fits = |full: &str| full == key || full.rsplit('.').next() == Some(key);
        let axes: Vec<_> = e.vary.iter().filter(|v| fits(&v.key)).collect();
        let [axis] = axes[..] else {
            let keys: Vec<&str> = e.vary.iter().map(|v| v.key.as_str()).collect();
            return Err((format!("`{key}` is not one varied key"), suggest(key, "the varied keys", &keys)));
        };
        let values: Vec<String> = axis.values.iter().map(written).collect();
        let Some(found) = values.iter().find(|v| v.trim_matches('"') == value) else {
            let known: Vec<&str> = values.iter().map(|v| v.trim_matches('"')).collect();
            return Err((
                format!("`{key}` does not have the value {value}"),
                suggest(value, "its values", &known),
            ));
        };
        point.insert(axis.key.clone(), found.clone());
    }
    for axis in &e.vary {
        match (&axis.values[..], point.contains_key(&axis.key)) {
            (_, true) => {}
            ([only], _) => drop(point.insert(axis.key.clone(), written(only))),
            _ => {
                let help =
                    format!("write {{{what} at {}=VALUE}}", axis.key.rsplit('.').next().unwrap_or(&axis.key));
                return Err((format!("the value of `{}` is missing", axis.key), help));
            }
        }
    }
    Ok(Resolved { value, over, at: point })
}

fn side(e: &Experiment, text: &str) -> Result<Side, (String, String)> {
    let form = || ("it does not name a run and a metric".to_string(), "write {RUN/METRIC}".to_string());
    let (run, metric) = text.trim().split_once('/').ok_or_else(form)?;
    let run_index = e.run_index(run).ok_or_else(|| {
        let names: Vec<&str> = e.run.iter().map(|r| r.name.as_str()).collect();
        (format!("unknown run `{run}`"), suggest(run, "the runs", &names))
    })?;
    let metric_index = e.metric_index(metric).ok_or_else(|| {
        let names: Vec<&str> = e.metric.iter().map(|m| m.name.as_str()).collect();
        (format!("unknown metric `{metric}`"), suggest(metric, "the metrics", &names))
    })?;
    Ok((run_index, metric_index))
}

/// All references of an experiment's texts, each once.
pub fn all(e: &Experiment) -> Vec<&str> {
    let texts = e.claim.iter().filter_map(|c| c.discussion.as_deref()).chain([e.note.as_str()]);
    let mut all: Vec<&str> = texts.flat_map(references).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The text with each value in the place of its reference.
pub fn expanded(text: &str, values: &BTreeMap<String, Referenced>) -> String {
    let mut parts = text.split('{');
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (inner, rest) = part.split_once('}').unwrap_or((part, ""));
        match values.get(inner).and_then(|found| Some((found.mean?, &found.unit))) {
            Some((mean, unit)) => out += &with_unit(crate::report::short(mean), unit),
            None => out += "(not measured)",
        }
        out += rest;
    }
    out
}

/// The sentences of a text that guess at a cause and refer to no run.
pub fn guesses(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut rest = line;
        while !rest.is_empty() {
            // A full stop within a name, such as fig3.peak, ends no sentence.
            let end = rest.find(". ").map_or(rest.len(), |at| at + 2);
            let (sentence, after) = rest.split_at(end);
            rest = after;
            let words = sentence.to_lowercase();
            let words: Vec<&str> =
                words.split(|c: char| !c.is_alphabetic()).filter(|w| !w.is_empty()).collect();
            let words = format!(" {} ", words.join(" "));
            let guess = HEDGES.iter().any(|hedge| words.contains(&format!(" {hedge} ")));
            if guess && !sentence.contains('{') {
                found.push(sentence.trim());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guess_needs_a_run() {
        let text =
            "It is likely A. Unlikely things happen.\nThe likely cause is {a/b}, see fig3.peak. Perhaps not.";
        assert_eq!(guesses(text), ["It is likely A.", "Perhaps not."]);
        assert_eq!(
            guesses("It may be because of rain: May, because of rain."),
            ["It may be because of rain: May, because of rain."]
        );
        assert!(guesses("A is slower by {a/fct over b/fct}.").is_empty());
    }

    #[test]
    fn values_take_the_places_of_references() {
        let value = |mean, unit: &str| Referenced { mean, unit: unit.into() };
        let values = BTreeMap::from([
            ("a/b".to_string(), value(Some(12.34), "us")),
            ("a/b over c/b".to_string(), value(Some(0.5), "")),
            ("c/b".to_string(), value(None, "us")),
        ]);
        assert_eq!(references("{a/b} {c/b}").collect::<Vec<_>>(), ["a/b", "c/b"]);
        assert_eq!(expanded("{a/b}: {a/b over c/b} of {c/b}.", &values), "12.3 us: 0.500 of (not measured).");
    }
}
