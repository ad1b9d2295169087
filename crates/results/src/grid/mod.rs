//! A grid of runs: one scenario, the values of some of its keys in every combination, each under one or
//! several seeds.
//!
//! A *point* is one combination of values; a *run* is a point under one seed. Runs are numbered along the axes
//! in the order given, the last axis fastest, seeds within points: everything that is written follows this
//! order, however the runs were spread over time and cores.

pub mod compare;
pub mod dataset;
pub mod directory;
pub mod fingerprint;
pub mod interval;
pub mod metrics;
pub mod table;
pub mod until;

use serde::{Deserialize, Serialize};

/// Most bytes of a run's name beside its number and seed.
const NAME: usize = 80;

/// A key that is varied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// The key, such as `traffic.0.load`.
    pub key: String,
    /// Its values as written, in the order given.
    pub values: Vec<String>,
    /// The values are names of variants rather than values of a key: the caller decides their settings, and
    /// they are no override of this grid.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub named: bool,
}

impl Axis {
    pub fn named(key: &str, values: Vec<String>) -> Self {
        Self { key: key.into(), values, named: true }
    }
}

/// Which runs there are.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Grid {
    /// The varied keys; without axes there is one point.
    pub axes: Vec<Axis>,
    /// The seeds of each point; empty if the scenario says it.
    pub seeds: Vec<u64>,
}

impl Grid {
    /// Number of points; `None` beyond a `usize`.
    pub fn points(&self) -> Option<usize> {
        self.axes.iter().try_fold(1usize, |n, axis| n.checked_mul(axis.values.len()))
    }

    /// Number of runs; `None` beyond a `usize`.
    pub fn runs(&self) -> Option<usize> {
        self.points()?.checked_mul(self.per_point())
    }

    pub fn per_point(&self) -> usize {
        self.seeds.len().max(1)
    }

    pub fn point_of(&self, run: usize) -> usize {
        run / self.per_point()
    }

    /// The seed that the grid gives a run, if it gives any.
    pub fn seed_of(&self, run: usize) -> Option<u64> {
        (!self.seeds.is_empty()).then(|| self.seeds[run % self.seeds.len()])
    }

    /// Which value of each axis a point has.
    pub fn positions(&self, point: usize) -> Vec<usize> {
        let mut left = point;
        let mut positions: Vec<usize> = Vec::new();
        for axis in self.axes.iter().rev() {
            positions.push(left % axis.values.len());
            left /= axis.values.len();
        }
        positions.reverse();
        positions
    }

    /// The value of each axis at a point.
    pub fn values(&self, point: usize) -> Vec<&str> {
        self.axes.iter().zip(self.positions(point)).map(|(axis, at)| axis.values[at].as_str()).collect()
    }

    /// The overrides of the scenario that make a run, in the order in which they apply.
    pub fn overrides(&self, run: usize) -> Vec<(String, String)> {
        let values = self.values(self.point_of(run));
        let keys = self.axes.iter().zip(values).filter(|(axis, _)| !axis.named);
        let mut all: Vec<(String, String)> =
            keys.map(|(axis, v)| (axis.key.clone(), v.to_string())).collect();
        all.extend(self.seed_of(run).map(|s| ("run.seed".to_string(), s.to_string())));
        all
    }

    /// A run in words: `traffic.0.load=0.8, seed 2`.
    pub fn label(&self, run: usize) -> String {
        let mut parts = self.values_of(self.point_of(run));
        parts.extend(self.seed_of(run).map(|s| format!("seed {s}")));
        parts.join(", ")
    }

    /// A point as people read it.
    pub fn point_label(&self, point: usize) -> String {
        match self.values_of(point) {
            values if values.is_empty() => "the only point".into(),
            values => values.join(", "),
        }
    }

    fn values_of(&self, point: usize) -> Vec<String> {
        self.axes.iter().zip(self.values(point)).map(|(axis, v)| format!("{}={v}", axis.key)).collect()
    }

    /// The name of a run's directory: its number from 1, then its values, in characters that every file
    /// system accepts: `07_load=0.8_seed=2`.
    pub fn name(&self, run: usize) -> String {
        let width = self.runs().map_or(1, |n| n.to_string().len());
        let values = self.heads().into_iter().zip(self.values(self.point_of(run)));
        let what: String = values.map(|(head, value)| format!("_{head}={value}")).collect();
        let harmless = |c: char| if c.is_ascii_alphanumeric() || "._=-".contains(c) { c } else { '-' };
        let mut what: String = what.chars().map(harmless).collect();
        what.truncate(NAME); // ASCII by now
        if let Some(seed) = self.seed_of(run) {
            what.push_str(&format!("_seed={seed}"));
        }
        format!("{:0width$}{what}", run + 1)
    }

    /// The value that others are compared with: of an axis (its position) one of its values (its position). `value`
    /// is a value of one axis; without it, it is the first variant, if there are several.
    ///
    /// # Errors
    /// No axis has the value, or several have; with what is possible.
    pub fn baseline(&self, value: Option<&str>) -> Result<Option<(usize, usize)>, String> {
        let Some(value) = value else {
            return Ok(self
                .axes
                .iter()
                .position(|axis| axis.named && axis.values.len() > 1)
                .map(|at| (at, 0)));
        };
        let is_it = |written: &String| typed(written) == typed(value);
        let found: Vec<(usize, usize)> = (self.axes.iter().enumerate())
            .filter_map(|(at, axis)| Some((at, axis.values.iter().position(is_it)?)))
            .collect();
        match found[..] {
            [one] => Ok(Some(one)),
            [] => {
                let values: Vec<&str> =
                    self.axes.iter().flat_map(|axis| axis.values.iter().map(String::as_str)).collect();
                Err(format!("no run has the value {value}; the values are {}", values.join(", ")))
            }
            _ => Err(format!("several keys have the value {value}: choose a value of one key")),
        }
    }

    /// The point that has the value of the baseline on its axis, and on the other axes the values of `point`.
    pub fn base_of(&self, point: usize, (axis, value): (usize, usize)) -> usize {
        let mut positions = self.positions(point);
        positions[axis] = value;
        positions.iter().zip(&self.axes).fold(0, |point, (at, axis)| point * axis.values.len() + at)
    }

    /// A short name for each axis: the shortest end of its key that distinguishes it from the others (`load`,
    /// or `0.load` and `1.load`).
    pub fn heads(&self) -> Vec<String> {
        let tail = |key: &str, parts: usize| {
            let all: Vec<&str> = key.split('.').collect();
            all[all.len().saturating_sub(parts)..].join(".")
        };
        let short = |i: usize, key: &str| {
            let most = key.split('.').count();
            let alone = |parts: usize| {
                let mine = tail(key, parts);
                self.axes.iter().enumerate().all(|(j, other)| i == j || tail(&other.key, parts) != mine)
            };
            tail(key, (1..most).find(|&parts| alone(parts)).unwrap_or(most))
        };
        self.axes.iter().enumerate().map(|(i, axis)| short(i, &axis.key)).collect()
    }
}

/// A value of an axis as data: a number or truth value if it is written as one, text without its quotes,
/// anything else as written.
pub fn typed(value: &str) -> serde_json::Value {
    let number = value.strip_prefix('-').unwrap_or(value);
    if number.starts_with(|c: char| c.is_ascii_digit()) {
        if let Ok(n) = value.parse::<i64>() {
            return n.into();
        }
        if let Some(x) = value.parse::<f64>().ok().filter(|x| x.is_finite()) {
            return x.into();
        }
    }
    if let Ok(truth) = value.parse::<bool>() {
        return truth.into();
    }
    for quote in ['"', '\''] {
        let inner = value.strip_prefix(quote).and_then(|v| v.strip_suffix(quote));
        if let Some(inner) = inner.filter(|v| !v.contains([quote, '\\'])) {
            return inner.into();
        }
    }
    value.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(axes: &[(&str, &[&str])], seeds: &[u64]) -> Grid {
        let axis = |(key, values): &(&str, &[&str])| Axis {
            key: key.to_string(),
            values: values.iter().map(|v| v.to_string()).collect(),
            named: false,
        };
        Grid { axes: axes.iter().map(axis).collect(), seeds: seeds.to_vec() }
    }

    #[test]
    fn the_last_axis_turns_fastest_and_seeds_within_points() {
        let g = grid(&[("a", &["1", "2"]), ("b", &["x", "y", "z"])], &[7, 9]);
        let mut by_hand = Vec::new();
        for a in ["1", "2"] {
            for b in ["x", "y", "z"] {
                for seed in [7, 9] {
                    by_hand.push(format!("a={a}, b={b}, seed {seed}"));
                }
            }
        }
        assert_eq!(g.runs(), Some(12));
        assert_eq!((0..12).map(|r| g.label(r)).collect::<Vec<_>>(), by_hand);
        assert_eq!(g.point_of(11), 5);
        let owned = |l: [(&str, &str); 3]| l.map(|(k, v)| (k.to_string(), v.to_string())).to_vec();
        assert_eq!(g.overrides(3), owned([("a", "1"), ("b", "y"), ("run.seed", "9")]));
        let mut named = g.clone();
        named.axes[0].named = true;
        assert_eq!(named.overrides(3), g.overrides(3)[1..]);
        assert_eq!(named.name(3), g.name(3));
    }

    #[test]
    fn without_axes_or_seeds_there_is_one_run_that_changes_nothing() {
        let g = Grid::default();
        assert_eq!((g.points(), g.runs(), g.overrides(0), g.name(0)), (Some(1), Some(1), vec![], "1".into()));
        let huge = Axis { key: "a".into(), values: vec![String::new(); 1 << 17], named: false };
        assert_eq!(Grid { axes: vec![huge; 4], seeds: vec![] }.runs(), None);
    }

    #[test]
    fn names_are_short_apart_and_harmless() {
        let g =
            grid(&[("traffic.0.load", &["0.5"]), ("traffic.1.load", &["1"]), ("switch.buffer", &["2"])], &[]);
        assert_eq!(g.heads(), ["0.load", "1.load", "buffer"]);
        let g = grid(&[("topology", &["{ k = 4, x = \"a/../b\" }", "é"]), ("x.load", &["0.5"])], &[3]);
        assert_eq!(g.name(0), "1_topology=--k-=-4--x-=--a-..-b---_load=0.5_seed=3");
        assert_eq!(g.name(1), "2_topology=-_load=0.5_seed=3");
        let long = "v".repeat(500);
        let g = grid(&[("k", &[&long, "w"])], &[u64::MAX]);
        assert!(g.name(0).len() < 120 && g.name(0).ends_with("_seed=18446744073709551615"));
    }

    #[test]
    fn values_become_data_as_written() {
        use serde_json::json;
        for (text, value) in [
            ("3", json!(3)),
            ("-3", json!(-3)),
            ("0.25", json!(0.25)),
            ("1e3", json!(1000.0)),
            ("true", json!(true)),
            ("100Gbps", json!("100Gbps")),
            ("\"a,b\"", json!("a,b")),
            ("'a'", json!("a")),
            ("\"a\\\"b\"", json!("\"a\\\"b\"")),
            ("[1, 2]", json!("[1, 2]")),
            ("inf", json!("inf")),
            ("nan", json!("nan")),
            ("\"", json!("\"")),
            ("", json!("")),
        ] {
            assert_eq!(typed(text), value, "{text}");
        }
    }
}
