//! Which verdicts hang on a choice: each chosen value is changed by itself.

use crate::experiment::{Chosen, Experiment};
use crate::report::{ChangedClaim, ClaimResult, Flip};
use crate::runs::{Change, written};

/// The changes of an experiment: of each choice of a key its alternatives, or its lower and higher value. The
/// shorter version leaves out choices whose key it sets itself.
pub fn changes(e: &Experiment, quick: bool) -> Result<Vec<Change>, String> {
    let set_by_quick = |key| quick && e.quick.as_ref().is_some_and(|q| q.set.contains_key(key));
    let mut all = Vec::new();
    for (chosen, c) in e.chosen.iter().enumerate() {
        let (Some(key), Some(value)) = (&c.key, &c.value) else { continue };
        if set_by_quick(key) {
            continue;
        }
        for value in others(c, value).ok_or_else(|| {
            format!("{value} of `{key}` cannot be changed by 30%: write `low` and `high`, or `alternatives`")
        })? {
            all.push(Change { chosen, value });
        }
    }
    Ok(all)
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

/// Claims whose verdict becomes another.
pub fn flips(before: &[ClaimResult], after: &[ClaimResult]) -> Vec<Flip> {
    let pairs = before.iter().zip(after).filter(|(a, b)| a.verdict != b.verdict);
    pairs.map(|(a, b)| Flip { claim: a.id.clone(), from: a.verdict, to: b.verdict }).collect()
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
