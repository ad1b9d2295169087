//! The content of the page that `xoff report` makes of a reproduction: the scoreboard as a matrix of claims, and for
//! each experiment its figures, its claims beside the paper's numbers, and what decides those that fail.

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::report::{ClaimResult, Count, ExperimentResult, Results};
use crate::{chart, page::decided, verdict::Verdict};

#[derive(Clone, Debug, Serialize)]
pub struct Site {
    pub papers: Vec<Paper>,
    /// All verdicts, in the order in which they are counted.
    pub verdicts: Vec<&'static str>,
    pub experiments: Vec<Experiment>,
    /// Claims that no experiment measures.
    pub others: Vec<Claim>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Paper {
    pub name: String,
    pub title: String,
    pub summary: String,
    /// It is none of the five papers, and counted apart.
    pub other_source: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Experiment {
    pub paper: String,
    pub id: String,
    pub title: String,
    pub section: String,
    pub note: String,
    pub runs: usize,
    pub done: usize,
    pub seeds: usize,
    pub seconds: Option<f64>,
    /// The directory of its runs, relative to the page; null if it is not there.
    pub folder: Option<String>,
    /// Names and SVG texts: the paper's numbers beside the measured ones, then the plots that are there.
    pub figures: Vec<(String, String)>,
    pub claims: Vec<Claim>,
    /// Choices where the paper gives no value, with the reason.
    pub chosen: Vec<(String, String)>,
    /// Points that have no other value, with the reason.
    pub fixed: Vec<(String, String)>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    pub paper: String,
    pub id: String,
    /// It is ours, not the paper's.
    pub own: bool,
    pub statement: String,
    pub verdict: &'static str,
    pub as_printed: bool,
    pub measures: Vec<Measure>,
    /// Why it was not measured, what decides it if it fails, and what is to be said about it.
    pub remarks: Vec<String>,
}

/// A measured number beside the paper's.
#[derive(Clone, Debug, Serialize)]
pub struct Measure {
    pub which: String,
    pub paper: String,
    pub measured: String,
    pub verdict: &'static str,
}

/// The content of the page of these results. Plots and directories are searched in `path`.
pub fn site(results: &Results, path: &Path) -> Site {
    let papers = results.papers.iter().map(|paper| Paper {
        name: paper.name.clone(),
        title: paper.title.trim().into(),
        summary: paper.summary.trim().into(),
        other_source: results.other_source(&paper.name),
    });
    let measured =
        |c: &&ClaimResult| results.experiments.iter().any(|e| e.claims.iter().any(|m| m.id == c.id));
    Site {
        papers: papers.collect(),
        verdicts: Verdict::ALL.map(Verdict::name).to_vec(),
        experiments: results.experiments.iter().map(|e| experiment(e, path)).collect(),
        others: results.claims().filter(|c| !measured(c)).map(|c| claim(None, c)).collect(),
    }
}

fn experiment(e: &ExperimentResult, path: &Path) -> Experiment {
    let folder = format!("{}/{}", e.paper, e.id);
    let place = path.join(&folder);
    let chart = chart::chart(e).map(|svg| ("the paper's numbers and the measured ones".to_string(), svg));
    let plot =
        |name: &String| Some((name.clone(), fs::read_to_string(place.join(format!("{name}.svg"))).ok()?));
    Experiment {
        paper: e.paper.clone(),
        id: e.id.clone(),
        title: e.title.trim().into(),
        section: e.section.clone(),
        note: e.expanded(e.note.trim()),
        runs: e.runs,
        done: e.done,
        seeds: e.seeds.len().max(1),
        seconds: e.seconds,
        folder: place.is_dir().then_some(folder),
        figures: chart.into_iter().chain(e.plots.iter().filter_map(plot)).collect(),
        claims: e.claims.iter().map(|c| claim(Some(e), c)).collect(),
        chosen: e.chosen.iter().map(|c| (c.what.clone(), c.reason.trim().into())).collect(),
        fixed: e.fixed.iter().map(|f| (f.what.clone(), f.reason.trim().into())).collect(),
    }
}

fn claim(of: Option<&ExperimentResult>, c: &ClaimResult) -> Claim {
    let measure = |m: &crate::report::MeasureResult| Measure {
        which: m.which(),
        paper: m.claimed(),
        measured: m.ours(),
        verdict: m.verdict.name(),
    };
    let mut remarks: Vec<String> = c.reason.clone().into_iter().collect();
    if let Some(e) = of {
        remarks.extend(c.fails().then(|| decided(e, c)));
        remarks.extend(c.discussion.as_ref().map(|text| e.expanded(text.trim())));
    }
    Claim {
        paper: c.paper.clone(),
        id: c.id.clone(),
        own: c.own(),
        statement: c.statement.trim().into(),
        verdict: c.verdict.name(),
        as_printed: c.as_printed(),
        measures: c.measures.iter().map(measure).collect(),
        remarks,
    }
}

/// The strict count of the papers' claims, and of those of other sources, in a sentence each.
pub fn headline(results: &Results) -> String {
    let count = |other: bool| {
        let its = || results.counts.iter().filter(|c| !c.own && results.other_source(&c.paper) == other);
        let of = |verdict: &Verdict| its().filter_map(|c: &Count| c.verdicts.get(verdict)).sum::<usize>();
        let all: usize = its().map(|c| c.claims).sum();
        let parts: Vec<String> =
            Verdict::ALL.iter().filter(|v| of(v) > 0).map(|v| format!("{} {}", of(v), v.name())).collect();
        (all > 0).then(|| (all, parts.join(", ")))
    };
    let of = |(all, parts): (usize, String), whose: &str| format!("Of {all} claims of {whose}: {parts}.");
    let papers = count(false).map(|found| of(found, "the papers"));
    let others = count(true).map(|found| of(found, "other sources"));
    let state = if results.complete { None } else { Some("PARTIAL: some runs are missing.".to_string()) };
    papers.into_iter().chain(others).chain(state).collect::<Vec<_>>().join(" ")
}
