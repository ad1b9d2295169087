//! The smallest scenario that breaks an invariant: keys, tables and items are removed, and values
//! made smaller, one at a time, while the same invariant still breaks.

use std::time::{Duration, Instant};

use toml::Value;

use crate::scenario::Scenario;
use crate::trial::{Verdict, trial};

/// A place in a scenario: keys and indices from the top.
type Path = Vec<Step>;

#[derive(Clone, Debug)]
enum Step {
    Key(String),
    Item(usize),
}

/// Makes a scenario smaller that breaks `invariant`; runs at most `trials` of them, and starts none
/// after `longest`.
pub fn shrink(scenario: &Scenario, invariant: &str, mut trials: usize, longest: Duration) -> Scenario {
    let begun = Instant::now();
    let mut best = scenario.clone();
    let mut fails = |candidate: &Scenario| {
        if trials == 0 || begun.elapsed() > longest {
            return false;
        }
        trials -= 1;
        matches!(trial(candidate), Verdict::Finding(broken) if broken.invariant == invariant)
    };
    loop {
        let before = best.clone();
        // From the top, so that whole tables go before their keys.
        let mut paths = Vec::new();
        walk(&Value::Table(best.table.clone()), &mut Vec::new(), &mut paths);
        // The last items first: so the indices of those that are left stay.
        for path in paths.iter().rev() {
            let candidate = without(&best, path);
            if candidate != best && fails(&candidate) {
                best = candidate;
            }
        }
        let mut paths = Vec::new();
        walk(&Value::Table(best.table.clone()), &mut Vec::new(), &mut paths);
        for path in &paths {
            while let Some(candidate) = smaller(&best, path).filter(|c| fails(c)) {
                best = candidate;
            }
        }
        lines(&mut best, &mut fails);
        if best == before {
            return best;
        }
    }
}

/// All places of a value, each table before its content.
fn walk(value: &Value, at: &mut Path, out: &mut Vec<Path>) {
    if !at.is_empty() {
        out.push(at.clone());
    }
    let steps: Vec<(Step, &Value)> = match value {
        Value::Table(table) => table.iter().map(|(k, v)| (Step::Key(k.clone()), v)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(i, v)| (Step::Item(i), v)).collect(),
        _ => return,
    };
    for (step, value) in steps {
        at.push(step);
        walk(value, at, out);
        at.pop();
    }
}

/// The value that holds the last step of a path.
fn parent<'v>(scenario: &'v mut Scenario, path: &[Step]) -> Option<&'v mut Value> {
    let (Step::Key(first), rest) = path.split_first()? else { return None };
    rest.iter().try_fold(scenario.table.get_mut(first)?, |value, step| match step {
        Step::Key(key) => value.get_mut(key.as_str()),
        Step::Item(i) => value.get_mut(*i),
    })
}

/// The scenario without the value at a path.
fn without(scenario: &Scenario, path: &Path) -> Scenario {
    let mut out = scenario.clone();
    let Some((last, above)) = path.split_last() else { return out };
    match last {
        Step::Key(key) if above.is_empty() => {
            out.table.remove(key);
        }
        Step::Key(key) => {
            if let Some(Value::Table(table)) = parent(&mut out, above) {
                table.remove(key);
            }
        }
        Step::Item(i) => {
            if let Some(Value::Array(items)) = parent(&mut out, above)
                && *i < items.len()
            {
                items.remove(*i);
            }
        }
    }
    out
}

/// The scenario with the value at a path made smaller; `None` if it cannot be.
fn smaller(scenario: &Scenario, path: &Path) -> Option<Scenario> {
    let mut out = scenario.clone();
    let value = parent(&mut out, path)?;
    *value = match value {
        Value::Integer(n) if *n > 1 => Value::Integer(*n / 2),
        Value::String(text) => {
            let digits = text.chars().take_while(char::is_ascii_digit).count();
            let (number, unit) = text.split_at(digits);
            let n: u64 = number.parse().ok()?;
            let units = [
                "B", "kB", "MB", "GB", "ps", "ns", "us", "ms", "s", "bps", "kbps", "Mbps", "Gbps", "m", "km",
                "bdp",
            ];
            if !units.contains(&unit) {
                return None;
            }
            let simpler = round(n);
            let next = if simpler != n {
                simpler
            } else if n > 1 {
                n / 2
            } else {
                return None;
            };
            Value::String(format!("{next}{unit}"))
        }
        _ => return None,
    };
    Some(out)
}

/// A number of one digit and zeros that is no greater.
fn round(n: u64) -> u64 {
    let unit = 10u64.pow(n.checked_ilog10().unwrap_or(0));
    n / unit * unit
}

/// Removes lines of the files, and files that nothing names.
fn lines(best: &mut Scenario, fails: &mut impl FnMut(&Scenario) -> bool) {
    for name in best.files.keys().cloned().collect::<Vec<_>>() {
        let mut candidate = best.clone();
        candidate.files.remove(&name);
        if fails(&candidate) {
            *best = candidate;
            continue;
        }
        // Binary files stay as they are.
        let Ok(text) = String::from_utf8(best.files[&name].clone()) else { continue };
        let mut lines: Vec<&str> = text.lines().collect();
        for line in (1..lines.len()).rev() {
            let removed = lines.remove(line);
            let mut candidate = best.clone();
            let kept: String = lines.iter().map(|line| format!("{line}\n")).collect();
            candidate.files.insert(name.clone(), kept.into_bytes());
            if fails(&candidate) {
                *best = candidate;
            } else {
                lines.insert(line, removed);
            }
        }
    }
}
