//! From the measurements in the runs of an experiment to a verdict on each claim.

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::check_claims::combine;
use crate::discussion::{self, Resolved};
use crate::experiment::{Claim, Combine, Experiment, Measure, Reading, Relation, Side, compares};
use crate::report::{ClaimResult, MeasureResult, ReadingResult, Referenced};
use crate::verdict::{self, Test, Verdict, Widening, judge};
use crate::{metrics::Value, runs::written};
use xoff_results::grid::Grid;
use xoff_results::grid::interval::{Interval, spread};

/// For each run of a grid the value of each metric; `None` for a run that was not made.
pub type Measured = [Option<Vec<Value>>];

/// Judges every claim of an experiment. `first` is the number of the grid's first point that counts: the grid
/// of `--sensitivity` has the points of each change one after the other. The experiment must be checked.
pub fn claims(
    e: &Experiment,
    quick: bool,
    grid: &Grid,
    measured: &Measured,
    first: usize,
) -> Vec<ClaimResult> {
    assert_eq!(Some(measured.len()), grid.runs(), "an entry per run");
    let cx = Context { e, quick, grid, measured, first };
    e.claim.iter().map(|c| cx.claim(c)).collect()
}

/// The value of each reference in the texts of an experiment.
pub fn references(
    e: &Experiment,
    quick: bool,
    grid: &Grid,
    measured: &Measured,
) -> BTreeMap<String, Referenced> {
    let cx = Context { e, quick, grid, measured, first: 0 };
    let of = |inner: &str| {
        // Of a single claim, the experiment may lack a run that its texts refer to.
        let found = discussion::resolve(e, inner).ok()?;
        let unit = if found.over.is_some() { "" } else { e.metric[found.value.1].scale().0 };
        Some((inner.to_string(), Referenced { mean: cx.reference(&found), unit: unit.into() }))
    };
    discussion::all(e).into_iter().filter_map(of).collect()
}

struct Context<'a> {
    e: &'a Experiment,
    quick: bool,
    grid: &'a Grid,
    measured: &'a Measured,
    first: usize,
}

impl Context<'_> {
    fn claim(&self, claim: &Claim) -> ClaimResult {
        if claim.measure.is_empty() {
            return ClaimResult::without_runs(&self.e.paper, claim);
        }
        let (verdict, measures) = self.judged(claim);
        let mut result = ClaimResult::new(&self.e.paper, claim, verdict, None, measures);
        result.readings = claim.reading.iter().map(|r| self.reading(claim, r)).collect();
        result
    }

    fn judged(&self, claim: &Claim) -> (Verdict, Vec<MeasureResult>) {
        let measures: Vec<MeasureResult> =
            claim.measure.iter().flat_map(|m| self.measures(claim, m)).collect();
        (verdict::all(measures.iter().map(|m| m.verdict)), measures)
    }

    fn reading(&self, claim: &Claim, reading: &Reading) -> ReadingResult {
        let (verdict, measures) = self.judged(&claim.read_as(reading));
        ReadingResult { verdict: Some(verdict), measures, ..ReadingResult::not_run(reading) }
    }

    /// The mean over seeds that a reference names, or the quotient of two.
    fn reference(&self, found: &Resolved) -> Option<f64> {
        let mean = |(run, metric): discussion::Side| {
            let point = self.point(&self.e.run[run].name, &found.at)?;
            let values: Vec<f64> =
                self.values(point, metric, None, &mut Vec::new()).into_iter().flatten().collect();
            spread(&values, Interval::Range).map(|s| s.mean)
        };
        let value = mean(found.value)?;
        match found.over {
            Some(over) => Combine::Ratio.of(value, Some(mean(over)?)),
            None => Some(value),
        }
    }

    /// A measure at each point that it leaves open.
    fn measures(&self, claim: &Claim, m: &Measure) -> Vec<MeasureResult> {
        // Every combination of the values of the axes that `at` does not name.
        let mut points: Vec<BTreeMap<String, String>> = vec![BTreeMap::new()];
        for axis in self.e.vary(self.quick) {
            let values = match m.at.get(&axis.key) {
                Some(value) => vec![written(value)],
                None => axis.values.iter().map(written).collect(),
            };
            let with = |mut point: BTreeMap<String, String>, value: &String| {
                point.insert(axis.key.clone(), value.clone());
                point
            };
            points = points.iter().flat_map(|p| values.iter().map(|v| with(p.clone(), v))).collect();
        }
        let all = points.into_iter().map(|at| self.measure(claim, m, at));
        if let Some(key) = &m.largest_over { largest(all, key) } else { all.collect() }
    }

    /// The point of a run and of the values of the axes; `None` if the shorter version does not have it.
    fn point(&self, run: &str, at: &BTreeMap<String, String>) -> Option<usize> {
        let mut point = self.e.run_index(run).expect("a measure was checked");
        for axis in self.e.vary(self.quick) {
            let value = axis.values.iter().position(|v| written(v) == at[&axis.key])?;
            point = point * axis.values.len() + value;
        }
        Some(self.first + point)
    }

    /// The values of a metric at a point, by seed; and notes about them. With `bounded` a lower bound counts, too,
    /// and it tells that one does.
    fn values(
        &self,
        point: usize,
        metric: usize,
        bounded: Option<&Cell<bool>>,
        notes: &mut Vec<String>,
    ) -> Vec<Option<f64>> {
        let per_point = self.grid.per_point();
        let runs = point * per_point..(point + 1) * per_point;
        runs.map(|run| {
            let Some(values) = &self.measured[run] else {
                note(notes, "some runs are missing");
                return None;
            };
            let found = &values[metric];
            let bound = bounded.and_then(|bounded| found.at_least.inspect(|_| bounded.set(true)));
            if let Some(text) = &found.note {
                let counted = if bound.is_some() { ", counted until the end of the run" } else { "" };
                note(notes, &format!("{}: {text}{counted}", self.grid.label(run)));
            }
            found.value.or(bound)
        })
        .collect()
    }

    fn measure(&self, claim: &Claim, m: &Measure, at: BTreeMap<String, String>) -> MeasureResult {
        let combine = combine(claim, m);
        let metric = self.e.metric_index(&m.metric).expect("a measure was checked");
        let mut notes = Vec::new();
        let mut values =
            |run: &str, at: &BTreeMap<String, String>, metric: usize, bounded: Option<&Cell<bool>>| {
                let Some(point) = self.point(run, at) else {
                    note(&mut notes, "not part of the quick version");
                    return vec![None; self.grid.per_point()];
                };
                let values = self.values(point, metric, bounded, &mut notes);
                if m.deviation { deviations(values) } else { values }
            };
        let counts: Option<Vec<bool>> = m.seeds_with.as_ref().map(|name| {
            let metric = self.e.metric_index(name).expect("a measure was checked");
            values(&m.run, &at, metric, None).iter().map(|v| v.is_none_or(|v| v > 0.0)).collect()
        });
        // Where *a* should be greater, a lower bound of *a* is enough; where it should be less, one of *b*.
        let increasing = !m.deviation && m.than_at.is_empty() && combine != Combine::Reduction;
        let bounded = Cell::new(false);
        let if_expected = |side: Side| (increasing && m.expect == Some(side)).then_some(&bounded);
        let mut both = |at: &BTreeMap<String, String>| {
            let a = values(&m.run, at, metric, if_expected(Side::Greater));
            let b = compares(m).then(|| {
                let name = m.against_metric.as_ref().unwrap_or(&m.metric);
                let metric = self.e.metric_index(name).expect("a measure was checked");
                let run = m.against.as_ref().unwrap_or(&m.run);
                values(run, &moved(at, &m.against_at), metric, if_expected(Side::Less))
            });
            (a, b)
        };
        // Seed by seed: the same seed means the same traffic.
        let number = |a: &[Option<f64>], b: Option<&[Option<f64>]>, seed: usize| match b {
            Some(b) => combine.of(a[seed]?, Some(b[seed]?)),
            None => combine.of(a[seed]?, None),
        };
        let (a, b) = both(&at);
        let than = (!m.than_at.is_empty()).then(|| both(&moved(&at, &m.than_at)));
        let combined: Vec<Option<f64>> = (0..a.len())
            .map(|seed| {
                let here = number(&a, b.as_deref(), seed)?;
                match &than {
                    Some((a, b)) => Some(here - number(a, b.as_deref(), seed)?),
                    None => Some(here),
                }
            })
            .collect();
        if let Some(b) = &b
            && combine.of(1.0, Some(0.0)).is_none()
            && b.contains(&Some(0.0))
        {
            note(&mut notes, "division by 0");
        }
        let (low, high) = range(claim, m);
        let neutral = if than.is_some() { Some(0.0) } else { combine.neutral() };
        let widening = widening(claim, combine, low, high, neutral);
        let test = match m.expect {
            Some(side) => Test::Ordering { side, neutral: neutral.expect("a measure was checked") },
            None => Test::Range { low, high, neutral, widening },
        };
        let of_seeds = |seed: usize| counts.as_ref().is_none_or(|counts| counts[seed]);
        let counted: Vec<Option<f64>> = (0..a.len()).filter(|&s| of_seeds(s)).map(|s| combined[s]).collect();
        if let Some(name) = &m.seeds_with {
            note(&mut notes, &format!("{} of {} seeds have {name}", counted.len(), combined.len()));
        }
        let present: Vec<f64> = counted.iter().flatten().copied().collect();
        let mut verdict = judge(&present, test).unwrap_or(Verdict::Undecided);
        if bounded.get() && verdict != Verdict::Reproduced {
            verdict = Verdict::Undecided;
        }
        if present.len() < counted.len() {
            note(&mut notes, &format!("{} of {} seeds have a value", present.len(), counted.len()));
            // Missing values could change the verdict, unless a single run contradicts the claim.
            if !(test.of_every_run() && verdict == Verdict::Contradicted) {
                verdict = Verdict::Undecided;
            }
        }
        let over = spread(&present, Interval::Ci95);
        let mean = |values: &[Option<f64>]| {
            let present = (0..values.len()).filter(|&s| of_seeds(s)).filter_map(|s| values[s]);
            spread(&present.collect::<Vec<_>>(), Interval::Range).map(|s| s.mean)
        };
        MeasureResult {
            case: m.case.clone(),
            says: m.says.clone(),
            run: m.run.clone(),
            against: m.against.clone(),
            metric: m.metric.clone(),
            against_metric: m.against_metric.clone(),
            at,
            against_at: moved(&BTreeMap::new(), &m.against_at),
            than_at: moved(&BTreeMap::new(), &m.than_at),
            seeds_with: m.seeds_with.clone(),
            largest_over: m.largest_over.clone(),
            deviation: m.deviation,
            combine,
            unit: self.e.metric[metric].scale().0.to_string(),
            expect: m.expect,
            low: if m.expect.is_some() { None } else { low },
            high: if m.expect.is_some() { None } else { high },
            subject_mean: mean(&a),
            against_mean: b.as_ref().and_then(|b| mean(b)),
            values: combined,
            mean: over.map(|s| s.mean),
            as_printed: over.is_some_and(|s| test.as_printed(s.mean, verdict)),
            from: over.and_then(|s| s.low),
            to: over.and_then(|s| s.high),
            verdict,
            notes,
        }
    }
}

/// The measurement with the largest mean, among those that differ only in the value of `key`. One without
/// values may be the largest, and counts as such.
fn largest(all: impl Iterator<Item = MeasureResult>, key: &str) -> Vec<MeasureResult> {
    let size = |m: &MeasureResult| {
        let whole = !m.values.contains(&None);
        m.mean.filter(|_| whole).unwrap_or(f64::INFINITY)
    };
    let mut distinct: Vec<MeasureResult> = Vec::new();
    for found in all {
        let alike = |k: &MeasureResult| k.at.iter().all(|(at, v)| at == key || found.at.get(at) == Some(v));
        match distinct.iter_mut().find(|k| alike(k)) {
            Some(k) if size(&found) > size(k) => *k = found,
            Some(_) => {}
            None => distinct.push(found),
        }
    }
    distinct
}

/// Values of varied keys, with those of `to` in their place.
fn moved(at: &BTreeMap<String, String>, to: &BTreeMap<String, toml::Value>) -> BTreeMap<String, String> {
    let mut at = at.clone();
    at.extend(to.iter().map(|(k, v)| (k.clone(), written(v))));
    at
}

/// By how much each value differs from their mean; a single one from nothing.
fn deviations(values: Vec<Option<f64>>) -> Vec<Option<f64>> {
    let present: Vec<f64> = values.iter().flatten().copied().collect();
    let mean = spread(&present, Interval::Range).filter(|_| present.len() > 1).map(|s| s.mean);
    values.into_iter().map(|v| Some((v? - mean?).abs())).collect()
}

fn note(notes: &mut Vec<String>, text: &str) {
    if !notes.iter().any(|n| n == text) {
        notes.push(text.to_string());
    }
}

/// How the range of a measure is widened: by the effect, once. Bounds, bounds of a shape and tolerances around
/// neutral are not. Neutral itself means that the two are similar.
fn widening(
    claim: &Claim,
    combine: Combine,
    low: Option<f64>,
    high: Option<f64>,
    neutral: Option<f64>,
) -> Widening {
    if let Some(part) = claim.within {
        return Widening::Ends(part);
    }
    let (Some(low), Some(high)) = (low, high) else { return Widening::None };
    let tolerance = neutral.is_some_and(|n| low <= n && n <= high);
    match claim.relation {
        Relation::Shape => Widening::None,
        _ if tolerance && low == high && combine != Combine::Difference => Widening::Similar,
        _ if tolerance => Widening::None,
        _ => Widening::Effect,
    }
}

/// The range that is claimed of a measure: both bounds if the claim has both. For a single number the
/// relation determines which bound it is.
fn range(claim: &Claim, m: &Measure) -> (Option<f64>, Option<f64>) {
    let case = m.case.as_ref().and_then(|case| claim.per_case.get(case)).copied();
    let (low, high) = match claim.relation {
        Relation::Shape if case.is_none() => (m.low, m.high),
        _ => (claim.low, claim.high),
    };
    match (claim.relation, case) {
        (Relation::AtLeast, Some(value)) => (Some(value), None),
        (Relation::AtMost, Some(value)) => (None, Some(value)),
        (_, Some(value)) => (Some(value), Some(value)),
        (Relation::AtLeast, None) if low.is_none() => (high, None),
        (Relation::AtMost, None) if high.is_none() => (None, low),
        (_, None) => (low, high),
    }
}
