//! The results of a reproduction: `results.json`, the table of claims, and the page that is generated from
//! the file.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::{Deserialize, Serialize};

use crate::experiment::{
    Chosen, Claim, Claims, Combine, Experiment, Fixed, Kind, Reading, Relation, Side, Unequal,
};
use crate::{discussion, library::Paper, runs::written, verdict::Verdict};
use xoff_results::human;

pub const FORMAT: &str = "xoff repro";
/// Grows when a key of it changes its meaning.
pub const FORMAT_VERSION: u32 = 3;
/// So many of the slowest experiments are listed.
const SLOWEST: usize = 10;

/// Contents of `results.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    pub format: String,
    pub format_version: u32,
    pub xoff_version: String,
    /// The shorter version of each experiment was run.
    pub quick: bool,
    /// Every run of every experiment is done.
    pub complete: bool,
    pub experiments: Vec<ExperimentResult>,
    /// Claims whose experiment has no file.
    pub others: Vec<ClaimResult>,
    #[serde(default)]
    pub papers: Vec<PaperResult>,
    /// Numbers of claims: of each paper its own, then ours.
    #[serde(default)]
    pub counts: Vec<Count>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    pub paper: String,
    /// They are our own claims about the paper's system, not the paper's.
    pub own: bool,
    pub claims: usize,
    /// Claims that are reproduced without widening.
    pub as_printed: usize,
    pub verdicts: BTreeMap<Verdict, usize>,
}

impl Count {
    fn of<'a>(paper: &str, own: bool, claims: impl IntoIterator<Item = &'a ClaimResult>) -> Self {
        let mut count =
            Self { paper: paper.into(), own, claims: 0, as_printed: 0, verdicts: BTreeMap::new() };
        for claim in claims.into_iter().filter(|c| c.own() == own) {
            count.claims += 1;
            count.as_printed += usize::from(claim.as_printed());
            *count.verdicts.entry(claim.verdict).or_default() += 1;
        }
        count
    }

    /// The numbers in words, with those as printed if they are fewer; `None` if there are no claims.
    fn in_words(&self) -> Option<String> {
        let part = |(verdict, n): (&Verdict, &usize)| match verdict {
            Verdict::Reproduced if self.as_printed < *n => {
                format!("{n} reproduced ({} as printed)", self.as_printed)
            }
            _ => format!("{n} {}", verdict.name()),
        };
        let parts: Vec<String> = self.verdicts.iter().map(part).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperResult {
    pub name: String,
    pub title: String,
    /// As in the file of its claims: with it, they are counted apart from those of the five papers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<String>,
    pub summary: String,
}

impl Results {
    /// These, and those of the experiments of `papers` that are not among them but in `before`, in
    /// the order of `papers`; `others` and all that is said in words are those of `papers`.
    #[must_use]
    pub fn beside(mut self, mut before: Results, papers: &[Paper]) -> Results {
        self.complete &= before.complete;
        for made in &mut self.experiments {
            let same = |e: &&ExperimentResult| (&e.paper, &e.id) == (&made.paper, &made.id);
            if let Some(before) = before.experiments.iter().find(same) {
                made.keep_table(before);
            }
        }
        let mut take = |paper: &str, id: &str| {
            let same = |e: &ExperimentResult| (e.paper.as_str(), e.id.as_str()) == (paper, id);
            let made = self.experiments.iter().any(same);
            let from = if made { &mut self.experiments } else { &mut before.experiments };
            from.iter().position(same).map(|at| from.remove(at))
        };
        let of = |paper: &Paper| -> Vec<_> {
            let experiments = paper.experiments.iter().map(|item| &item.read.experiment);
            let found = experiments.filter_map(|e| Some((e, take(&paper.name, &e.id)?)));
            found.map(|(e, result)| result.in_words_of(e)).collect()
        };
        let experiments = papers.iter().flat_map(of).collect();
        Results { experiments, others: others(papers), papers: in_words(papers), ..self }.counted()
    }

    /// These, with the tables of `--sensitivity` of the same experiments in `quick`, results of the shorter
    /// version. A table whose runs are not all there is left out.
    #[must_use]
    pub fn with_tables(mut self, quick: Results, papers: &[Paper]) -> Results {
        for e in &mut self.experiments {
            let same = |made: &&ExperimentResult| (&e.paper, &e.id) == (&made.paper, &made.id);
            if let Some(made) = quick.experiments.iter().find(same).filter(|made| made.done == made.runs) {
                e.sensitivity.clone_from(&made.sensitivity);
                e.as_chosen.clone_from(&made.as_chosen);
            }
        }
        let head = Results { experiments: Vec::new(), ..self.clone() };
        head.beside(self, papers)
    }

    #[must_use]
    pub fn counted(mut self) -> Results {
        let mut papers: Vec<String> = self.claims().map(|c| c.paper.clone()).collect();
        papers.sort_unstable();
        papers.dedup();
        let count = |paper: &String, own| Count::of(paper, own, self.claims().filter(|c| c.paper == *paper));
        self.counts = papers.iter().flat_map(|paper| [false, true].map(|own| count(paper, own))).collect();
        self
    }
}

/// The experiments whose runs took longest, with their seconds.
pub fn slowest(results: &Results) -> Vec<(&ExperimentResult, f64)> {
    let mut slowest: Vec<_> = results.experiments.iter().filter_map(|e| Some((e, e.seconds?))).collect();
    slowest.sort_by(|a, b| b.1.total_cmp(&a.1));
    slowest.truncate(SLOWEST);
    slowest
}

pub fn in_words(papers: &[Paper]) -> Vec<PaperResult> {
    let words = |Claims { paper: name, title, sources, summary, .. }: Claims| PaperResult {
        name,
        title,
        sources,
        summary,
    };
    papers.iter().filter_map(|paper| paper.claims.clone().map(words)).collect()
}

pub fn others(papers: &[Paper]) -> Vec<ClaimResult> {
    let claims = papers.iter().filter_map(|paper| paper.claims.as_ref());
    claims.flat_map(|c| c.claim.iter().map(|claim| ClaimResult::without_runs(&c.paper, claim))).collect()
}

/// The result of an experiment; [`Experiment`] explains the keys that it has too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentResult {
    pub paper: String,
    pub id: String,
    pub title: String,
    pub section: String,
    pub kind: Kind,
    pub note: String,
    /// The experiment whose runs they are, if not its own.
    pub runs_of: Option<String>,
    /// Why compared runs have different set-ups.
    #[serde(default, skip_serializing_if = "Unequal::is_empty")]
    pub unequal: Unequal,
    pub runs: usize,
    /// Runs that are done.
    pub done: usize,
    /// Runs that lost packets of a lossless priority.
    pub lost: usize,
    /// Runs that failed, each with the reason.
    pub failed: Vec<String>,
    /// Seconds that its runs took, each on one core; `None` if they are those of another experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    pub seeds: Vec<u64>,
    pub chosen: Vec<ChosenResult>,
    /// Points of the set-up that have no other value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixed: Vec<Fixed>,
    pub claims: Vec<ClaimResult>,
    /// Names of the pictures.
    pub plots: Vec<String>,
    /// The values that its texts refer to.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Referenced>,
    /// The effects of other choices; null without `--sensitivity`, empty if none of them has a key.
    pub sensitivity: Option<Vec<ChangeResult>>,
    /// The claims with the chosen values, beside which `sensitivity` stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_chosen: Option<AsChosen>,
    /// Of one claim: the commands that make its runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<RunCommand>,
}

/// A run and the command that makes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunCommand {
    /// The run as people read it, such as `run=ours, seed 1`.
    pub run: String,
    pub command: String,
}

/// The value of a reference in a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Referenced {
    /// Mean over seeds, or the quotient of two; null if it was not measured.
    pub mean: Option<f64>,
    pub unit: String,
}

/// The claims without any change of `--sensitivity`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AsChosen {
    /// The table is of the shorter version.
    pub quick: bool,
    pub claims: Vec<ChangedClaim>,
}

impl ExperimentResult {
    /// This result, with the present texts of its file.
    fn in_words_of(mut self, e: &Experiment) -> Self {
        self.note.clone_from(&e.note);
        self.unequal.clone_from(&e.unequal);
        self.fixed.clone_from(&e.fixed);
        let mut stored = std::mem::take(&mut self.chosen);
        let of = |(choice, now): (&Chosen, ChosenResult)| {
            // The runs had the stored values of keys; what is in words has none.
            let Some(key) = &choice.key else { return Some(now) };
            if stored.iter().any(|old| old.what == now.what) {
                return Some(now);
            }
            let same = |old: &ChosenResult| old.what.starts_with(&format!("{key} = "));
            Some(stored.remove(stored.iter().position(same)?))
        };
        self.chosen = e.chosen.iter().zip(chosen(e)).filter_map(of).collect();
        for claim in &mut self.claims {
            let now = e.claim.iter().find(|c| c.id == claim.id);
            claim.discussion = now.and_then(|c| c.discussion.clone());
            let stored = std::mem::take(&mut claim.readings);
            let of = |reading: &Reading| {
                let other = ReadingResult::not_run(reading);
                let same = |r: &&ReadingResult| {
                    (&r.runs, &r.metrics, &r.at) == (&other.runs, &other.metrics, &other.at)
                };
                match stored.iter().find(same) {
                    Some(found) => ReadingResult { choice: other.choice, ..found.clone() },
                    None => other,
                }
            };
            claim.readings = now.iter().flat_map(|c| &c.reading).map(of).collect();
        }
        self.values =
            discussion::all(e).into_iter().filter_map(|r| Some((r.to_string(), self.value(e, r)?))).collect();
        self
    }

    /// The stored value of a reference: one that a text referred to before, or of a measure.
    fn value(&self, e: &Experiment, reference: &str) -> Option<Referenced> {
        if let Some(found) = self.values.get(reference) {
            return Some(found.clone());
        }
        let found = discussion::resolve(e, reference).ok()?;
        let readings = self.claims.iter().flat_map(|c| &c.readings).flat_map(|r| &r.measures);
        let all: Vec<&MeasureResult> = self.claims.iter().flat_map(|c| &c.measures).chain(readings).collect();
        let mean = |(run, metric): discussion::Side| {
            let (run, metric) = (&e.run[run].name, &e.metric[metric].name);
            all.iter().find_map(|m| m.mean_of(run, metric, &found.at))
        };
        let value = mean(found.value);
        let mean = match found.over {
            Some(over) => value.and_then(|value| Combine::Ratio.of(value, mean(over))),
            None => value,
        };
        let unit = if found.over.is_some() { "" } else { e.metric[found.value.1].scale().0 };
        Some(Referenced { mean, unit: unit.into() })
    }

    /// A text with the values that it refers to.
    pub fn expanded(&self, text: &str) -> String {
        discussion::expanded(text, &self.values)
    }

    /// What other readings of a claim gave: the readings of its file, and the changes of `--sensitivity`.
    pub fn tried(&self, claim: &ClaimResult) -> Vec<Tried> {
        let reading = |r: &ReadingResult| {
            let numbers =
                r.measures.iter().zip(claim.measures.iter().map(Some).chain(std::iter::repeat(None)));
            // Measures without a replaced run say nothing about the reading.
            let numbers =
                numbers.filter(|(m, old)| r.measures.len() != claim.measures.len() || Some(*m) != *old);
            Tried {
                choice: r.choice.clone(),
                values: numbers.map(|(m, _)| m.ours()).collect(),
                verdict: r.verdict,
                in_table: false,
            }
        };
        let as_chosen = self.as_chosen.as_ref();
        let quick = if as_chosen.is_some_and(|a| a.quick) { ", quick version" } else { "" };
        // A table in which the claim already holds says nothing about why it fails.
        let holds = |c: &ChangedClaim| c.claim == claim.id && c.verdict == Verdict::Reproduced;
        let table = self.sensitivity.iter().flatten();
        let table = table.filter(|_| !as_chosen.is_some_and(|a| a.claims.iter().any(holds)));
        let change = |change: &ChangeResult| {
            let found = change.claims.iter().find(|c| c.claim == claim.id)?;
            let choice = format!("`{}`{quick}", change.change);
            let values = claim.numbers(&found.means);
            Some(Tried { choice, values, verdict: Some(found.verdict), in_table: true })
        };
        let changes = table.filter_map(change);
        claim.readings.iter().map(reading).chain(changes).collect()
    }

    pub fn decision(&self, claim: &ClaimResult) -> Decision {
        let tried = self.tried(claim);
        if tried.iter().any(|t| t.verdict == Some(Verdict::Reproduced)) {
            Decision::Found
        } else if tried.iter().any(|t| t.verdict.is_some()) {
            Decision::NotFound
        } else {
            Decision::NotTried
        }
    }

    /// Keeps the table of `--sensitivity` of an earlier result, if the choices are the same as there and the claims have
    /// the same values. The table of the shorter version stays also if only the number of seeds is another.
    pub fn keep_table(&mut self, before: &Self) {
        let quick = before.as_chosen.as_ref().is_some_and(|a| a.quick)
            && self.seeds.iter().zip(&before.seeds).all(|(a, b)| a == b);
        let measures = |a: &ClaimResult, b: &ClaimResult| {
            let alike =
                |(a, b): (&MeasureResult, &MeasureResult)| a == b || quick && a.is_with_other_seeds(b);
            a.measures.len() == b.measures.len() && a.measures.iter().zip(&b.measures).all(alike)
        };
        let claims = self.claims.len() == before.claims.len()
            && self.claims.iter().zip(&before.claims).all(|(a, b)| a.id == b.id && measures(a, b));
        if self.sensitivity.is_none() && claims && self.chosen == before.chosen {
            self.sensitivity.clone_from(&before.sensitivity);
            self.as_chosen.clone_from(&before.as_chosen);
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChosenResult {
    /// The key and its value, or the choice in words.
    pub what: String,
    pub reason: String,
    /// Other values of the key, or other choices in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeResult {
    /// The key and its other value.
    pub change: String,
    pub flips: Vec<Flip>,
    /// The measured claims with this value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ChangedClaim>,
}

/// A claim under a change of `--sensitivity`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangedClaim {
    pub claim: String,
    /// The mean of each measure.
    pub means: Vec<Option<f64>>,
    pub verdict: Verdict,
}

/// Whether another reading of a claim that fails reproduces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Found,
    NotFound,
    NotTried,
}

impl Decision {
    pub const ALL: [Decision; 3] = [Decision::Found, Decision::NotFound, Decision::NotTried];

    pub fn name(self) -> &'static str {
        match self {
            Decision::Found => "a reading reproduces it",
            Decision::NotFound => "no reading found",
            Decision::NotTried => "no reading tried",
        }
    }
}

/// Another reading of a claim, and what it gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    pub choice: String,
    /// The number of each measure that it changes.
    pub values: Vec<String>,
    /// `None` if it was not run.
    pub verdict: Option<Verdict>,
    /// It is a change of `--sensitivity`.
    pub in_table: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flip {
    pub claim: String,
    /// Its verdict with the value that was chosen.
    pub from: Verdict,
    /// Its verdict with the other.
    pub to: Verdict,
}

/// A [`Claim`] and its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimResult {
    pub paper: String,
    pub id: String,
    pub statement: String,
    pub subject: String,
    pub against: String,
    pub metric: String,
    pub relation: Relation,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub per_case: BTreeMap<String, f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
    pub verdict: Verdict,
    /// Why it was not measured.
    pub reason: Option<String>,
    pub measures: Vec<MeasureResult>,
    /// Other readings, judged by the same measures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<ReadingResult>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discussion: Option<String>,
}

/// A [`Reading`] of a claim, and its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadingResult {
    pub choice: String,
    pub runs: BTreeMap<String, String>,
    pub metrics: BTreeMap<String, String>,
    pub at: BTreeMap<String, String>,
    /// Null if it was not run since it is in the file.
    pub verdict: Option<Verdict>,
    pub measures: Vec<MeasureResult>,
}

impl ReadingResult {
    pub fn not_run(reading: &Reading) -> Self {
        Self {
            choice: reading.choice.clone(),
            runs: reading.runs.clone(),
            metrics: reading.metrics.clone(),
            at: reading.at.iter().map(|(key, value)| (key.clone(), written(value))).collect(),
            verdict: None,
            measures: Vec::new(),
        }
    }
}

/// A [`Measure`](crate::experiment::Measure) of a claim, and its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasureResult {
    pub case: Option<String>,
    pub says: Option<String>,
    pub run: String,
    pub against: Option<String>,
    pub metric: String,
    pub against_metric: Option<String>,
    pub at: BTreeMap<String, String>,
    pub against_at: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub than_at: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeds_with: Option<String>,
    /// The varied key over whose values it is the largest: at the one in `at`.
    pub largest_over: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deviation: bool,
    pub combine: Combine,
    /// Unit of `subject_mean` and `against_mean`, and of the values if they are not quotients.
    pub unit: String,
    pub expect: Option<Side>,
    /// The least that is claimed.
    pub low: Option<f64>,
    /// The most that is claimed.
    pub high: Option<f64>,
    /// Mean over seeds of the run's own value.
    pub subject_mean: Option<f64>,
    /// Mean over seeds of the other's.
    pub against_mean: Option<f64>,
    /// The number of each seed, in their order.
    pub values: Vec<Option<f64>>,
    pub mean: Option<f64>,
    /// The mean lies in the range as it is printed, without widening; of an ordering, it is reproduced.
    pub as_printed: bool,
    /// Lower end of its 95% confidence interval; null of one seed.
    pub from: Option<f64>,
    /// Upper end of it.
    pub to: Option<f64>,
    pub verdict: Verdict,
    pub notes: Vec<String>,
}

impl ClaimResult {
    pub fn new(
        paper: &str,
        claim: &Claim,
        verdict: Verdict,
        reason: Option<String>,
        measures: Vec<MeasureResult>,
    ) -> Self {
        Self {
            paper: paper.into(),
            id: claim.id.clone(),
            statement: claim.statement.clone(),
            subject: claim.subject.clone(),
            against: claim.against.clone(),
            metric: claim.metric.clone(),
            relation: claim.relation,
            low: claim.low,
            high: claim.high,
            per_case: claim.per_case.clone(),
            within: claim.within,
            verdict,
            reason,
            measures,
            readings: Vec::new(),
            discussion: claim.discussion.clone(),
        }
    }

    /// The means of its measures in words, with their units.
    pub fn numbers(&self, means: &[Option<f64>]) -> Vec<String> {
        let unit = |i: usize| self.measures.get(i).map_or("", MeasureResult::own_unit);
        let text =
            |(i, mean): (usize, &Option<f64>)| mean.map_or("–".into(), |x| with_unit(short(x), unit(i)));
        means.iter().enumerate().map(text).collect()
    }

    /// Whether a run disagrees with it, or decides nothing.
    pub fn fails(&self) -> bool {
        matches!(self.verdict, Verdict::SameDirection | Verdict::Undecided | Verdict::Contradicted)
    }

    pub fn own(&self) -> bool {
        own(&self.id)
    }

    /// Whether it is reproduced without widening any range.
    pub fn as_printed(&self) -> bool {
        self.verdict == Verdict::Reproduced && self.measures.iter().all(|m| m.as_printed)
    }

    /// A claim that is not measured, with its reason.
    pub fn without_runs(paper: &str, claim: &Claim) -> Self {
        let (verdict, reason) = match (&claim.not_simulated, &claim.analysis, &claim.later) {
            (Some(reason), ..) => (Verdict::NotSimulated, reason),
            (_, Some(reason), _) => (Verdict::Analysis, reason),
            (_, _, Some(reason)) => (Verdict::NotYet, reason),
            _ => unreachable!("a claim was checked to have a measurement or a reason"),
        };
        Self::new(paper, claim, verdict, Some(reason.clone()), Vec::new())
    }
}

/// Whether a claim of this name is one of ours.
pub fn own(id: &str) -> bool {
    id.split('.').nth(1).is_some_and(|name| name.starts_with("own-"))
}

pub fn chosen(e: &Experiment) -> Vec<ChosenResult> {
    let words = e.chosen.iter().map(|c| {
        let what = match (&c.key, &c.value) {
            (Some(key), Some(value)) => format!("{key} = {value}"),
            _ => c.what.clone().unwrap_or_default(),
        };
        let instead = c.instead.iter().map(|i| i.choice.clone());
        let alternatives = c.alternatives.iter().map(written).chain(instead).collect();
        ChosenResult { what, reason: c.reason.clone(), alternatives }
    });
    words.collect()
}

/// A number for a table: three significant digits or a whole number.
pub(crate) fn short(x: f64) -> String {
    let size = x.abs();
    if x.fract() == 0.0 && size < 1e6 {
        return format!("{x:.0}");
    }
    match size {
        s if s >= 1e6 => human::short(x),
        s if s >= 100.0 => format!("{x:.0}"),
        s if s >= 10.0 => format!("{x:.1}"),
        s if s >= 1.0 => format!("{x:.2}"),
        _ => format!("{x:.3}"),
    }
}

pub(crate) fn with_unit(number: String, unit: &str) -> String {
    if unit.is_empty() { number } else { format!("{number} {unit}") }
}

impl MeasureResult {
    /// Whether it measures the same as another one, with the same values for the first seeds.
    fn is_with_other_seeds(&self, other: &Self) -> bool {
        let asked = Self {
            subject_mean: other.subject_mean,
            against_mean: other.against_mean,
            values: other.values.clone(),
            mean: other.mean,
            as_printed: other.as_printed,
            from: other.from,
            to: other.to,
            verdict: other.verdict,
            notes: other.notes.clone(),
            ..self.clone()
        };
        asked == *other && self.values.iter().zip(&other.values).all(|(a, b)| a == b)
    }

    /// The mean of a metric of a run at a point, if it is one of the two that are compared.
    fn mean_of(&self, run: &str, metric: &str, at: &BTreeMap<String, String>) -> Option<f64> {
        // These are means of other values, or over fewer seeds.
        if self.deviation || self.seeds_with.is_some() {
            return None;
        }
        if (self.run.as_str(), self.metric.as_str()) == (run, metric) && self.at == *at {
            return self.subject_mean;
        }
        let other_run = self.against.as_ref().unwrap_or(&self.run);
        let other = (other_run.as_str(), self.against_metric.as_ref().unwrap_or(&self.metric).as_str());
        let mut other_at = self.at.clone();
        other_at.extend(self.against_at.clone());
        self.against_mean.filter(|_| other == (run, metric) && other_at == *at)
    }

    pub(crate) fn own_unit(&self) -> &str {
        if matches!(self.combine, Combine::Value | Combine::Difference) { &self.unit } else { "" }
    }

    /// The claimed range, in words.
    pub fn claimed(&self) -> String {
        let range = match (self.expect, self.low, self.high) {
            (Some(Side::Less), ..) => return "less".into(),
            (Some(Side::Greater), ..) => return "greater".into(),
            (_, Some(a), Some(b)) if a == b => short(a),
            (_, Some(a), Some(b)) => format!("{} to {}", short(a), short(b)),
            (_, Some(a), None) => format!("at least {}", short(a)),
            (_, None, Some(b)) => format!("at most {}", short(b)),
            (_, None, None) => return "–".into(),
        };
        with_unit(range, self.own_unit())
    }

    /// Our value, with its interval, and where it is the largest.
    pub fn ours(&self) -> String {
        let text = self.number();
        let Some(value) = self.largest_over.as_ref().and_then(|key| self.at.get(key)) else { return text };
        format!("{text} at {value}")
    }

    fn number(&self) -> String {
        let Some(mean) = self.mean else { return "–".into() };
        let half = self.from.zip(self.to).map(|(a, b)| (b - a) / 2.0).filter(|h| *h > 0.0);
        let interval = half.map_or(String::new(), |half| format!(" ± {}", short(half)));
        let ours = with_unit(short(mean) + &interval, self.own_unit());
        let sides = self.subject_mean.zip(self.against_mean).filter(|_| self.than_at.is_empty());
        let sides = sides.map(|(a, b)| [a, b].map(|mean| with_unit(short(mean), &self.unit)).join(" : "));
        match (self.expect, sides) {
            (Some(_), Some(sides)) if interval.is_empty() || self.verdict == Verdict::Reproduced => sides,
            // The two means do not show why it is not reproduced.
            (Some(_), Some(sides)) => {
                let what = if self.combine == Combine::Difference { "difference " } else { "" };
                format!("{sides}, {what}{ours}")
            }
            (None, Some(sides)) => format!("{ours} ({sides})"),
            (_, None) => ours,
        }
    }

    /// Why it is undecided, in words; `None` if it is decided.
    pub fn why_undecided(&self) -> Option<String> {
        if self.verdict != Verdict::Undecided {
            return None;
        }
        let Some((from, to)) = self.from.zip(self.to) else { return Some("runs are missing".into()) };
        let interval = with_unit(format!("{} to {}", short(from), short(to)), self.own_unit());
        Some(match self.combine.neutral() {
            Some(neutral) if from < neutral && neutral < to => {
                format!("the 95% interval of the mean, {interval}, does not say which value is larger")
            }
            _ => format!("the 95% interval of the mean, {interval}, is not within the range"),
        })
    }

    /// Which measurement it is, in words.
    pub fn which(&self) -> String {
        let mut text = self.says.clone().or_else(|| self.case.clone()).unwrap_or_else(|| {
            let other = self.against.as_ref().filter(|a| **a != self.run);
            let other = other.map_or(String::new(), |other| format!(" : {other}"));
            let what = if self.deviation { "deviation of " } else { "" };
            format!("{what}{}, {}{other}", self.metric, self.run)
        });
        for (key, value) in self.at.iter().filter(|(key, _)| self.largest_over.as_ref() != Some(key)) {
            let _ = write!(text, ", {}={value}", key.rsplit('.').next().unwrap_or(key));
        }
        text
    }
}

/// How many claims there are of each verdict, in words: the paper's, then ours.
pub fn counts<'a>(claims: impl IntoIterator<Item = &'a ClaimResult>) -> String {
    let claims: Vec<&ClaimResult> = claims.into_iter().collect();
    let [theirs, ours] = [false, true].map(|own| Count::of("", own, claims.iter().copied()).in_words());
    match (theirs, ours) {
        (Some(theirs), Some(ours)) => format!("{theirs}; ours: {ours}"),
        (Some(theirs), None) => theirs,
        (None, Some(ours)) => format!("ours: {ours}"),
        (None, None) => "no claims".into(),
    }
}

impl Results {
    /// The text about a paper.
    pub fn about(&self, paper: &str) -> Option<&PaperResult> {
        self.papers.iter().find(|p| p.name == paper)
    }

    /// Whether a directory of experiments is about other sources than the five papers.
    pub fn other_source(&self, paper: &str) -> bool {
        self.about(paper).is_some_and(|p| p.sources.is_some())
    }

    pub fn claims(&self) -> impl Iterator<Item = &ClaimResult> {
        self.experiments.iter().flat_map(|e| &e.claims).chain(&self.others)
    }
}
