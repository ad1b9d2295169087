//! The output of `xoff repro` about an experiment: its claims as a table.

use crate::report::{self, ClaimResult, ExperimentResult, Flip, MeasureResult, Results, RunCommand, counts};
use crate::{library::Paper, verdict::Verdict};
use xoff_results::human;
use xoff_results::table::{wrapped, wrapped_to};

/// Most columns of a table.
const WIDTH: usize = 120;
/// Least columns of a column whose cells are broken into lines.
const NARROWEST: usize = 16;

/// Said of everything that the shorter version gives.
pub const QUICK: &str = "quick version: shorter than the experiment, not a reproduction";

pub fn experiment(e: &ExperimentResult, quick: bool) -> String {
    let mut out = format!("{}/{}: {} (§ {})\n", e.paper, e.id, e.title, e.section);
    out.push_str(&state(e, quick));
    let rows: Vec<[String; 4]> = e.claims.iter().flat_map(|claim| rows(claim, false)).collect();
    out.push_str(&table(["claim", "paper", "xoff", "verdict"], &rows));
    out.push_str(&notes(&e.claims));
    out + &changes(e)
}

/// How many runs there are, and what went wrong in them.
fn state(e: &ExperimentResult, quick: bool) -> String {
    let seeds = match e.seeds.len() {
        0 | 1 => "one seed".to_string(),
        n => format!("{n} seeds"),
    };
    let mut runs = human::counted(e.runs as u64, "run");
    if let Some(owner) = &e.runs_of {
        runs += &format!(" of {owner}");
    }
    let done = if e.done == e.runs { runs } else { format!("PARTIAL: {} of {runs} finished", e.done) };
    let mut out = format!("  {done}, {seeds}{}\n", if quick { format!("; {QUICK}") } else { String::new() });
    if e.lost > 0 {
        let runs = human::counted(e.lost as u64, "run");
        out += &format!("  packets of a lossless priority were DROPPED in {runs}\n");
    }
    out.extend(e.failed.iter().map(|failed| item(&format!("FAILED: {failed}"))));
    out
}

/// The notes of the measures, each once.
fn notes(claims: &[ClaimResult]) -> String {
    let mut notes: Vec<String> = Vec::new();
    for claim in claims {
        for note in claim.measures.iter().flat_map(|m| &m.notes) {
            let line = item(&format!("{}: {note}", claim.id));
            if !notes.contains(&line) {
                notes.push(line);
            }
        }
    }
    notes.concat()
}

fn changes(e: &ExperimentResult) -> String {
    let mut out = String::new();
    for change in e.sensitivity.iter().flatten() {
        let what = &change.change;
        if change.flips.is_empty() {
            out += &item(&format!("{what}: no verdict changes"));
        }
        for Flip { claim, from, to } in &change.flips {
            let (from, to) = (from.name(), to.name());
            out += &item(&format!("{what}: the verdict of {claim} changes from {from} to {to}"));
        }
    }
    out
}

/// A line of a list, broken at blanks.
fn item(text: &str) -> String {
    wrapped("  ", "    ", text)
}

/// A claim in text: the paper's sentence, the numbers and the verdict, and the commands that make its runs. If the
/// experiments are `bundled`, the commands need their files.
pub fn claim(e: &ExperimentResult, quick: bool, bundled: bool) -> String {
    let [claim] = &e.claims[..] else { panic!("an experiment of one claim") };
    let mut out = sentence(claim, &format!(" (§ {}: {})", e.section, e.title));
    out.push_str(&state(e, quick));
    out.push_str(&table(["claim", "paper", "xoff", "verdict"], &rows(claim, true)));
    for measure in &claim.measures {
        let why = measure.why_undecided();
        out.extend(why.map(|why| item(&format!("Undecided ({}): {why}.", measure.which()))));
    }
    out.push_str(&notes(&e.claims));
    out.push_str(&changes(e));
    for tried in e.tried(claim).iter().filter(|t| !t.in_table) {
        let (verdict, values) = (tried.verdict.map_or("not run", Verdict::name), tried.values.join("; "));
        out += &item(&format!("Another reading, {}: {verdict}, {values}", tried.choice));
    }
    if let Some(text) = claim.discussion.as_ref().map(|text| e.expanded(text)) {
        out.push('\n');
        out.extend(text.trim().lines().map(|line| wrapped("  ", "  ", line)));
    }
    let first = if bundled { ", after `xoff repro --write experiments`" } else { "" };
    out.push_str(&format!("\n  Each run by itself{first}:\n"));
    let one = |c: &RunCommand| format!("{}  {}\n", wrapped("  # ", "  #   ", &c.run), c.command);
    out.extend(e.commands.iter().map(one));
    let page = format!("reproduction/{}.md", e.paper);
    out + &item(&format!("Choices, plots and other readings: {page} in the directory of the results."))
}

pub fn unmeasured(claim: &ClaimResult) -> String {
    let reason = claim.reason.as_deref().unwrap_or_default();
    sentence(claim, "") + &wrapped("  ", "  ", &format!("No run measures it: {reason}."))
}

fn sentence(claim: &ClaimResult, place: &str) -> String {
    let whose = if claim.own() { "Our own claim" } else { "The paper" };
    let head = format!("{}/{}: {}\n", claim.paper, claim.id, claim.verdict.name());
    head + &wrapped("  ", "  ", &format!("{whose}{place}: {}.", claim.statement.trim_end_matches('.')))
}

/// The rows of a claim; with `all` also one that says what its only measure is.
fn rows(claim: &ClaimResult, all: bool) -> Vec<[String; 4]> {
    let said = |verdict: Verdict, as_printed| match (verdict, as_printed) {
        (Verdict::Reproduced, true) => "reproduced, as printed".to_string(),
        _ => verdict.name().to_string(),
    };
    let verdict = said(claim.verdict, !claim.measures.is_empty() && claim.as_printed());
    match &claim.measures[..] {
        [] => vec![[claim.id.clone(), "–".into(), claim.reason.clone().unwrap_or_default(), verdict]],
        [one] if !all && one.says.is_none() => {
            vec![[claim.id.clone(), one.claimed(), one.ours(), verdict]]
        }
        several => {
            let each = |m: &MeasureResult| {
                [format!("  {}", m.which()), m.claimed(), m.ours(), said(m.verdict, m.as_printed)]
            };
            let head = [claim.id.clone(), String::new(), String::new(), verdict];
            [head].into_iter().chain(several.iter().map(each)).collect()
        }
    }
}

/// Columns as wide as their longest cell, if together they have at most [`WIDTH`] columns. Otherwise the cells of the
/// widest ones are broken at blanks into several lines.
fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let width = |c: usize| {
        let cells = rows.iter().map(|r| r[c].chars().count());
        cells.chain([head[c].chars().count()]).max().unwrap_or(0)
    };
    let mut widths: [usize; N] = std::array::from_fn(width);
    let room = WIDTH.saturating_sub(2 * N);
    while widths.iter().sum::<usize>() > room {
        let Some(widest) = widths.iter_mut().max().filter(|widest| **widest > NARROWEST) else { break };
        *widest -= 1;
    }
    let line = |cells: [&str; N]| {
        let broken: [Vec<String>; N] = std::array::from_fn(|c| broken(cells[c], widths[c]));
        let lines = broken.iter().map(Vec::len).max().unwrap_or(0);
        let cell = |n: usize, c: usize| broken[c].get(n).map_or("", String::as_str);
        let padded =
            |n: usize| (0..N).map(|c| format!("{:w$}", cell(n, c), w = widths[c])).collect::<Vec<_>>();
        (0..lines).map(|n| format!("  {}\n", padded(n).join("  ").trim_end())).collect::<String>()
    };
    let rows = rows.iter().map(|row| line(std::array::from_fn(|c| row[c].as_str())));
    line(head) + &rows.collect::<String>()
}

/// A cell in lines of at most `width` columns; the lines after the first are indented further.
fn broken(cell: &str, width: usize) -> Vec<String> {
    if cell.chars().count() <= width {
        return vec![cell.into()];
    }
    let indent = " ".repeat(cell.len() - cell.trim_start().len());
    let text = wrapped_to(width, &indent, &format!("{indent}  "), cell);
    text.lines().map(String::from).collect()
}

/// The sum of all experiments in a line.
pub fn sum(results: &Results) -> String {
    let of = |other: bool| results.claims().filter(move |c| results.other_source(&c.paper) == other);
    let mut out = match [false, true].map(|other| of(other).next().is_some()) {
        [true, true] => format!("{}\nother sources: {}\n", counts(of(false)), counts(of(true))),
        _ => format!("{}\n", counts(results.claims())),
    };
    if !results.complete {
        out.push_str("PARTIAL: some runs are missing; continue with --resume\n");
    }
    if results.quick {
        out.push_str(&format!("{QUICK}\n"));
    }
    out
}

/// A table of the experiments with the longest runs. Empty if no experiment has runs.
pub fn slowest(results: &Results) -> String {
    let slowest = report::slowest(results);
    if slowest.is_empty() {
        return String::new();
    }
    let rows = slowest.iter().map(|(e, seconds)| [format!("{}/{}", e.paper, e.id), format!("{seconds:.1}")]);
    let table = table(["slowest experiments", "seconds of simulation"], &rows.collect::<Vec<_>>());
    table.trim_end().to_string()
}

/// All papers and their experiments, for `--list`.
pub fn list(papers: &[Paper]) -> String {
    let mut out = String::new();
    for paper in papers {
        let title = paper.claims.as_ref().map_or(String::new(), |c| format!(": {}", c.title));
        out.push_str(&format!("{}{title}\n", paper.name));
        let mut rows = Vec::new();
        for item in &paper.experiments {
            let e = &item.read.experiment;
            let measured = e.claim.iter().filter(|c| !c.measure.is_empty()).count();
            let runs = match &e.runs_of {
                Some(owner) => format!("same as {owner}"),
                None => human::counted(e.grid(false, &[]).runs().unwrap_or(0) as u64, "run"),
            };
            let claims = format!("{measured} of {} measured", human::counted(e.claim.len() as u64, "claim"));
            rows.push([format!("{}/{}", e.paper, e.id), e.title.clone(), runs, claims]);
        }
        if !rows.is_empty() {
            out.push_str(&table(["experiment", "title", "runs", "claims"], &rows));
        }
        let mut missing: Vec<(String, usize)> = Vec::new();
        for claim in paper.claims.iter().flat_map(|c| &c.claim) {
            let why = ClaimResult::without_runs(&paper.name, claim);
            let text = format!("{}: {}", why.verdict.name(), why.reason.unwrap_or_default());
            match missing.iter_mut().find(|(t, _)| *t == text) {
                Some((_, n)) => *n += 1,
                None => missing.push((text, 1)),
            }
        }
        for (text, n) in missing {
            out.push_str(&item(&format!(
                "{} without an experiment: {text}",
                human::counted(n as u64, "claim")
            )));
        }
    }
    out
}
