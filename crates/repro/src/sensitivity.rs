//! Which verdicts hang on a choice: each chosen value is changed by itself.

use std::collections::BTreeMap;

use crate::evaluate::{self, Measured};
use crate::experiment::{Chosen, Experiment, Instead};
use crate::report::{ChangeResult, ChangedClaim, ClaimResult, Flip};
use crate::runs::{Change, written};
use xoff_results::grid::Grid;

/// The changes of an experiment that need runs: of each choice of a key its alternatives, or its lower and higher
/// value, and of each choice in words the keys that are set instead. The shorter version leaves out changes of
/// keys that it sets itself.
pub fn changes(e: &Experiment, quick: bool) -> Result<Vec<Change>, String> {
    let set_by_quick = |key: &String| quick && e.quick.as_ref().is_some_and(|q| q.set.contains_key(key));
    let mut all = Vec::new();
    for (chosen, c) in e.chosen.iter().enumerate() {
        if let (Some(key), Some(value)) = (&c.key, &c.value) {
            if set_by_quick(key) {
                continue;
            }
            for value in others(c, value).ok_or_else(|| {
                format!(
                    "{value} of `{key}` cannot be changed by 30%: write `low` and `high`, or `alternatives`"
                )
            })? {
                all.push(Change { chosen, name: format!("{key}={value}"), set: vec![(key.clone(), value)] });
            }
        }
        let with_runs = |i: &&Instead| !i.set.is_empty() && !i.set.keys().any(set_by_quick);
        for instead in c.instead.iter().filter(with_runs) {
            let set = instead.set.iter().map(|(key, value)| (key.clone(), written(value))).collect();
            all.push(Change { chosen, name: instead.choice.clone(), set });
        }
    }
    Ok(all)
}

/// The changes of an experiment that are other readings of its runs, which must all be there. The shorter version
/// leaves out those of seeds and points that it does not have.
pub fn readings(
    e: &Experiment,
    quick: bool,
    grid: &Grid,
    measured: &Measured,
    as_chosen: &[ClaimResult],
) -> Vec<ChangeResult> {
    let all = e.chosen.iter().flat_map(|c| &c.instead).filter(|i| i.set.is_empty());
    let vary = e.vary(quick);
    let has =
        |key: &String, value: &toml::Value| vary.iter().any(|v| v.key == *key && v.values.contains(value));
    let there = |i: &&Instead| {
        i.seeds.iter().all(|seed| grid.seeds.contains(seed))
            && i.at.iter().all(|(key, value)| has(key, value))
            && i.vary.iter().all(|v| v.values.iter().all(|value| has(&v.key, value)))
    };
    let place = |grid: &Grid, run| (grid.values(grid.point_of(run)).join(" "), grid.seed_of(run));
    let places: BTreeMap<_, _> = (0..measured.len()).map(|run| (place(grid, run), run)).collect();
    let reading = |i: &Instead| {
        let mut e = i.points_of(e);
        e.claim.iter_mut().for_each(|claim| *claim = claim.read_as(&i.reading(claim)));
        let grid = e.grid(quick, &[]);
        let runs = 0..grid.runs().expect("fewer runs than before");
        let measured: Vec<_> = runs.map(|run| measured[places[&place(&grid, run)]].clone()).collect();
        result(i.choice.clone(), as_chosen, &evaluate::claims(&e, quick, &grid, &measured, 0))
    };
    all.filter(there).map(reading).collect()
}

/// What a change does to the claims.
pub fn result(change: String, before: &[ClaimResult], after: &[ClaimResult]) -> ChangeResult {
    let pairs = before.iter().zip(after).filter(|(a, b)| a.verdict != b.verdict);
    let flips = pairs.map(|(a, b)| Flip { claim: a.id.clone(), from: a.verdict, to: b.verdict }).collect();
    ChangeResult { change, flips, claims: numbers(after) }
}

fn others(c: &Chosen, value: &toml::Value) -> Option<Vec<String>> {
    if !c.alternatives.is_empty() {
        return Some(c.alternatives.iter().map(written).collect());
    }
    let end =
        |given: &Option<toml::Value>, tenths| given.as_ref().map(written).or_else(|| scaled(value, tenths));
    Some(vec![end(&c.low, 7)?, end(&c.high, 13)?])
}

/// A number, or a quantity such as `"120kB"`, times `tenths` / 10, by exact decimal arithmetic. A whole
/// number without a unit stays one, rounded to the nearest; `None` if that is the same again. So do bytes and
/// picoseconds, which have no parts.
fn scaled(value: &toml::Value, tenths: i128) -> Option<String> {
    let whole = |n: i128| Some((n * tenths + 5).div_euclid(10)).filter(|&scaled| scaled != n);
    match value {
        toml::Value::Integer(n) => whole(i128::from(*n)).map(|n| n.to_string()),
        toml::Value::Float(x) => decimal(&x.to_string(), tenths),
        toml::Value::String(text) => {
            let end = text.find(|c: char| !(c.is_ascii_digit() || "._".contains(c))).unwrap_or(text.len());
            let (number, unit) = text.split_at(end);
            if let (true, Ok(n)) = (["B", "ps"].contains(&unit.trim()), number.replace('_', "").parse()) {
                return whole(n).map(|n| format!("\"{n}{unit}\""));
            }
            Some(format!("\"{}{unit}\"", decimal(number, tenths)?))
        }
        _ => None,
    }
}

fn decimal(text: &str, tenths: i128) -> Option<String> {
    let text = text.replace('_', "");
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let digits: i128 = format!("{whole}{part}").parse().ok()?;
    if digits == 0 {
        return None;
    }
    let (sign, digits) = if digits < 0 { ("-", -digits) } else { ("", digits) };
    let places = part.len() + 1;
    let padded = format!("{:0>width$}", (digits * tenths).to_string(), width = places + 1);
    let (whole, part) = padded.split_at(padded.len() - places);
    let part = part.trim_end_matches('0');
    Some(if part.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") })
}

/// The numbers and verdicts of the measured claims.
pub fn numbers(claims: &[ClaimResult]) -> Vec<ChangedClaim> {
    let measured = claims.iter().filter(|c| !c.measures.is_empty());
    let of = |c: &ClaimResult| ChangedClaim {
        claim: c.id.clone(),
        means: c.measures.iter().map(|m| m.mean).collect(),
        verdict: c.verdict,
    };
    measured.map(of).collect()
}

/// Whether a claim is judged by a run of that name. Its readings are not judged under a change.
pub fn judges(e: &Experiment, run: &str) -> bool {
    let mut measures = e.claim.iter().flat_map(|claim| &claim.measure);
    measures.any(|m| m.run == run || m.against.as_deref() == Some(run))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_less_and_more_by_hand() {
        let text = |t: &str| toml::Value::String(t.into());
        for (value, low, high) in [
            (toml::Value::Integer(10), Some("7"), Some("13")),
            (toml::Value::Integer(32), Some("22"), Some("42")),
            (toml::Value::Integer(1), None, None),
            (toml::Value::Integer(2), Some("1"), Some("3")),
            (toml::Value::Integer(0), None, None),
            (toml::Value::Float(0.8), Some("0.56"), Some("1.04")),
            (toml::Value::Float(2.0), Some("1.4"), Some("2.6")),
            (text("120kB"), Some("\"84kB\""), Some("\"156kB\"")),
            (text("1.5us"), Some("\"1.05us\""), Some("\"1.95us\"")),
            (text("0.05us"), Some("\"0.035us\""), Some("\"0.065us\"")),
            (text("5MB"), Some("\"3.5MB\""), Some("\"6.5MB\"")),
            (text("1144B"), Some("\"801B\""), Some("\"1487B\"")),
            (text("5ps"), Some("\"4ps\""), Some("\"7ps\"")),
            (text("1B"), None, None),
            (text("websearch"), None, None),
            (toml::Value::Boolean(true), None, None),
        ] {
            assert_eq!(scaled(&value, 7).as_deref(), low, "{value}");
            assert_eq!(scaled(&value, 13).as_deref(), high, "{value}");
        }
    }
}
