//! When a point has enough seeds: `ci95(slowdown.p99) < 5%`.

use super::interval::{Interval, spread};
use super::metrics::{METRICS, Number, Row};

/// Fewest seeds of a point: the interval of fewer varies too much itself.
pub const FEWEST: usize = 5;

/// Half the 95% confidence interval of a metric's mean is below a part of the mean.
///
/// The seeds are looked at in order, and the rule ends them. So the interval contains the mean of all seeds a little
/// less often than in 95% of the cases.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// A column of `grid.parquet`, such as `slowdown_p99` or `class.incast.fct_p99_ps`.
    metric: String,
    /// Percent of the mean.
    percent: f64,
}

impl Rule {
    /// Reads a rule, such as `ci95(slowdown.p99) < 5%`.
    ///
    /// # Errors
    /// It has another form, or there is no such metric.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts = || {
            let rest = text.trim().strip_prefix("ci95")?.trim_start().strip_prefix('(')?;
            let (metric, rest) = rest.split_once(')')?;
            let percent = rest.trim_start().strip_prefix('<')?.trim().strip_suffix('%')?;
            Some((metric.trim(), percent.trim_end().parse::<f64>().ok()?))
        };
        let form = || format!("`{text}` is no rule: write one such as `ci95(slowdown.p99) < 5%`");
        let (metric, percent) = parts().ok_or_else(form)?;
        if !(percent > 0.0 && percent < 100.0) {
            return Err(format!("`{text}`: the limit lies between 0% and 100%"));
        }
        let part = metric.starts_with("class.") || metric.starts_with("size.");
        let of = |name: &str| if part { metric.ends_with(&format!(".{name}")) } else { metric == name };
        if let Some(known) = METRICS.iter().find(|m| !part && m.name == metric.replace('.', "_")) {
            return Ok(Self { metric: known.name.into(), percent });
        }
        if METRICS.iter().any(|m| of(m.name)) {
            return Ok(Self { metric: metric.into(), percent });
        }
        let names: Vec<&str> = METRICS.iter().map(|m| m.name).collect();
        Err(format!("`{metric}` is no metric: there are {}", names.join(", ")))
    }

    /// The rule as text, which [`Rule::parse`] reads.
    pub fn text(&self) -> String {
        format!("ci95({}) < {}%", self.metric, self.percent)
    }

    /// The metric of a run.
    pub fn value(&self, row: &Row) -> Option<f64> {
        let whole = METRICS.iter().position(|m| m.name == self.metric);
        let number = match whole {
            Some(at) => row.values[at],
            None => row.parts.iter().find(|(name, ..)| *name == self.metric)?.2,
        };
        number.map(Number::float)
    }

    /// Whether the metric is known well enough from these seeds.
    pub fn met(&self, values: &[f64]) -> bool {
        let Some(spread) = spread(values, Interval::Ci95).filter(|s| s.n >= FEWEST) else { return false };
        let half = spread.high.map_or(0.0, |high| high - spread.mean);
        half == 0.0 || half < spread.mean.abs() * self.percent / 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_and_written() {
        for (text, written) in [
            ("ci95(slowdown.p99) < 5%", "ci95(slowdown_p99) < 5%"),
            (" ci95 ( slowdown_p99 )<2.5 %", "ci95(slowdown_p99) < 2.5%"),
            ("ci95(class.a b.slowdown_p99) < 1%", "ci95(class.a b.slowdown_p99) < 1%"),
            ("ci95(size.<= 30 kB.slowdown_mean) < 1%", "ci95(size.<= 30 kB.slowdown_mean) < 1%"),
        ] {
            let rule = Rule::parse(text).unwrap();
            assert_eq!(rule.text(), written);
            assert_eq!(Rule::parse(written).unwrap(), rule);
        }
        for (text, why) in [
            ("slowdown.p99 < 5%", "is no rule"),
            ("ci95(slowdown.p99) < 5", "is no rule"),
            ("ci95(slowdown.p99) < x%", "is no rule"),
            ("ci95(slowdown.p99) < 0%", "between 0% and 100%"),
            ("ci95(slowdown.p99) < NaN%", "between 0% and 100%"),
            ("ci95(slowdown.p98) < 5%", "is no metric: there are "),
            ("ci95(class.incast) < 5%", "is no metric"),
        ] {
            let error = Rule::parse(text).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn an_interval_is_narrow_or_not() {
        let rule = |percent| Rule { metric: "slowdown_p99".into(), percent };
        // Mean 10, sample standard deviation sqrt(2.5), t(4) = 2.776445: half is 1.963.
        let five = [8.0, 9.0, 10.0, 11.0, 12.0];
        assert!(rule(19.7).met(&five) && !rule(19.6).met(&five));
        assert!(!rule(99.0).met(&five[..4]), "fewer than {FEWEST}");
        assert!(rule(1.0).met(&[0.0; 5]), "all alike");
        assert!(!rule(50.0).met(&[]));
    }
}
