//! The pages about the reproduction, generated only from `results.json`: a scoreboard, and a page of details
//! for each paper.

use std::fmt::Write as _;

use crate::report::{self, ClaimResult, Count, Decision, ExperimentResult, Results, Tried, counts};
use crate::{answer::QUICK, chart, verdict::Verdict};
use xoff_results::human;

pub const SCOREBOARD: &str = "REPRODUCTION.md";
/// The directory of the papers' pages, beside the scoreboard.
pub const DETAILS: &str = "reproduction";
/// The heading of the claims that no experiment measures.
const OTHERS: &str = "Claims without an experiment";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its file, counted from the directory of the scoreboard.
    pub path: String,
    /// Markdown, or a picture as SVG.
    pub text: String,
}

/// The pictures of claims and the page of each paper, and the scoreboard at the end, which links to them.
pub fn render(r: &Results) -> Vec<Page> {
    let named = r.experiments.iter().map(|e| &e.paper).chain(r.claims().map(|c| &c.paper));
    let mut papers: Vec<&str> = named.map(String::as_str).collect();
    papers.sort_unstable_by_key(|paper| (r.other_source(paper), *paper));
    papers.dedup();
    let page = |paper: &&str| Page { path: format!("{DETAILS}/{paper}.md"), text: details(r, paper) };
    let picture = |e: &ExperimentResult| {
        let path = format!("{DETAILS}/{}", picture(e));
        chart::chart(e).map(|text| Page { path, text })
    };
    let mut pages: Vec<Page> = r.experiments.iter().filter_map(picture).collect();
    pages.extend(papers.iter().map(page));
    pages.push(Page { path: SCOREBOARD.into(), text: scoreboard(r, &papers) });
    pages
}

fn scoreboard(r: &Results, papers: &[&str]) -> String {
    let mut out = String::from("# Reproduction scoreboard\n\n");
    let o = &mut out;
    let _ = writeln!(
        o,
        "How many claims of each paper, and of other sources, xoff reproduces. `xoff repro` of xoff {} generated this page \
         and those of the papers from `results.json`. `make repro` runs all experiments, and keeps that file in `experiments/`. \
         `docs/EXPERIMENTS.md` explains how xoff measures and judges a claim.\n",
        r.xoff_version
    );
    state(o, r);
    let names = Verdict::ALL.map(Verdict::name);
    let [reproduced, same, undecided, contradicted, analysis, not_simulated, not_yet] = names;
    let _ = writeln!(
        o,
        "How to read a verdict:\n\n\
         - *{reproduced}*: the mean over seeds is in the claimed range, widened by 20% of the effect. *At least* and *at most* \
         are not widened. If the claim only orders two schemes, every mean that the 95% confidence interval allows \
         has this order.\n\
         - *{same}*: the scheme that wins in the paper wins in xoff too, by another margin.\n\
         - *{undecided}*: the seeds do not agree on the winner, the interval is wider than the range, or a run is missing.\n\
         - *{contradicted}*: the measurement disagrees with the claim. The paper's page names a reading that reproduces it, if any.\n\
         - *{analysis}*, *{not_simulated}*, *{not_yet}*: no run measures the claim. The paper's page gives the reason.\n\n\
         *As printed* counts reproduced claims whose means are in the ranges without widening. A claim whose name \
         contains `own-` is ours, not the paper's, and is counted apart."
    );
    table(o, r, &|c| !c.own && !r.other_source(&c.paper), "claims of the paper");
    table(o, r, &|c| c.own && !r.other_source(&c.paper), "our own claims");
    decisions(o, r, papers);
    if papers.iter().any(|paper| r.other_source(paper)) {
        let _ = writeln!(
            o,
            "\n*Other sources* are specifications, test plans, recorded results of public simulators, and papers of which \
             only a part was at hand. Their claims are counted apart:"
        );
        table(o, r, &|c| !c.own && r.other_source(&c.paper), "claims of other sources");
        table(o, r, &|c| c.own && r.other_source(&c.paper), "our own claims about them");
    }
    for paper in papers {
        let _ = writeln!(o, "\n## {paper}");
        if let Some(words) = r.about(paper) {
            let _ = writeln!(o, "\n*{}*\n\n{}", words.title, words.summary.trim());
        }
        let page = format!("{DETAILS}/{}.md", escaped(paper));
        let claims = r.claims().filter(|c| c.paper == *paper);
        let _ = writeln!(o, "\n[All claims]({page}): {}.", counts(claims));
        let marked = r.experiments.iter().filter(|e| e.paper == *paper && !remarks(e).is_empty());
        for (i, e) in marked.enumerate() {
            let space = if i == 0 { "\n" } else { "" };
            let _ = writeln!(o, "{space}- [{}]({page}#{}){}", e.id, anchor(&e.id), remarks(e));
        }
    }
    slowest(o, r);
    out
}

/// The numbers of claims, a row for each paper of `which` and one for all.
fn table(o: &mut String, r: &Results, which: &dyn Fn(&Count) -> bool, whose: &str) {
    let counts: Vec<&Count> = r.counts.iter().filter(|c| which(c) && c.claims > 0).collect();
    if counts.is_empty() {
        return;
    }
    let _ = write!(o, "\n| {whose} | reproduced | as printed |");
    let others = &Verdict::ALL[1..];
    for v in others {
        let _ = write!(o, " {} |", v.name());
    }
    let _ = writeln!(o, " all |\n|---|{}", "---|".repeat(others.len() + 3));
    let mut row = |name: &str, of: &[&Count]| {
        let number = |v: &Verdict| of.iter().filter_map(|c| c.verdicts.get(v)).sum::<usize>();
        let printed: usize = of.iter().map(|c| c.as_printed).sum();
        let _ = write!(o, "| {name} | {} | {printed} |", number(&Verdict::Reproduced));
        for v in others {
            let _ = write!(o, " {} |", number(v));
        }
        let _ = writeln!(o, " {} |", of.iter().map(|c| c.claims).sum::<usize>());
    };
    for &count in &counts {
        row(&format!("[{0}](#{1})", count.paper, anchor(&count.paper)), &[count]);
    }
    row("all", &counts);
}

/// Of the papers' claims that fail, how many another reading reproduces.
fn decisions(o: &mut String, r: &Results, papers: &[&str]) {
    let found = |paper: Option<&str>, contradicted: bool, decision: Decision| {
        let experiments = r.experiments.iter().filter(|e| !r.other_source(&e.paper));
        let experiments = experiments.filter(|e| paper.is_none_or(|p| p == e.paper));
        let claims = experiments.flat_map(|e| e.claims.iter().map(move |c| (e, c)));
        let fits =
            |c: &ClaimResult| !c.own() && c.fails() && (c.verdict == Verdict::Contradicted) == contradicted;
        claims.filter(|(e, c)| fits(c) && e.decision(c) == decision).count()
    };
    let kinds = [true, false].map(|contradicted| Decision::ALL.map(|d| (contradicted, d))).concat();
    let sum = |paper| kinds.iter().map(|&(contradicted, d)| found(paper, contradicted, d)).sum::<usize>();
    if sum(None) == 0 {
        return;
    }
    let _ = writeln!(
        o,
        "\nA *reading* replaces one choice that the paper leaves open, and is judged by the same measures. Of \
         the papers' claims that a run contradicts, and of those with the same direction or undecided:\n"
    );
    let _ = write!(o, "| paper |");
    for (contradicted, d) in &kinds {
        let which = if *contradicted { "contradicted" } else { "others" };
        let _ = write!(o, " {which}: {} |", d.name());
    }
    let _ = writeln!(o, "\n|---|{}", "---|".repeat(kinds.len()));
    for paper in papers.iter().map(|p| Some(*p)).chain([None]).filter(|p| sum(*p) > 0) {
        let name = paper.map_or("all".into(), |p| format!("[{p}]({DETAILS}/{}.md)", escaped(p)));
        let _ = write!(o, "| {name} |");
        for &(contradicted, d) in &kinds {
            let _ = write!(o, " {} |", found(paper, contradicted, d));
        }
        o.push('\n');
    }
}

/// What decides a claim that fails.
pub(crate) fn decided(e: &ExperimentResult, c: &ClaimResult) -> String {
    let tried = e.tried(c);
    let text = |t: &Tried| match t.verdict {
        Some(verdict) => format!("{} ({}: {})", t.choice, verdict.name(), t.values.join("; ")),
        None => format!("{} (not run yet)", t.choice),
    };
    let list = |keep: &dyn Fn(&Tried) -> bool| {
        let texts: Vec<String> = tried.iter().filter(|t| keep(t)).map(text).collect();
        texts.join("; ")
    };
    let reproduced = |t: &Tried| t.verdict == Some(Verdict::Reproduced);
    let others = list(&|t| !reproduced(t) && !t.in_table);
    let mut out = match e.decision(c) {
        Decision::Found => format!("Decided by: {}.", list(&reproduced)),
        Decision::NotFound => "No reading found.".to_string(),
        Decision::NotTried => "No reading tried.".to_string(),
    };
    if !others.is_empty() {
        let _ = write!(out, " Tried: {others}.");
    }
    let in_table = tried.iter().filter(|t| !reproduced(t) && t.in_table).count();
    if in_table > 0 {
        let _ = write!(
            out,
            " `--sensitivity` tried {} that did not reproduce it.",
            human::counted(in_table as u64, "alternative")
        );
    }
    out
}

/// The verdicts that change under another choice.
fn sensitivity(o: &mut String, e: &ExperimentResult) {
    let Some(changes) = &e.sensitivity else { return };
    let quick = if e.as_chosen.as_ref().is_some_and(|a| a.quick) { " in the quick version" } else { "" };
    let flips = || changes.iter().flat_map(|c| c.flips.iter().map(move |f| (c, f)));
    let tried = human::counted(changes.len() as u64, "alternative");
    let _ = match (changes.len(), flips().count()) {
        (0, _) => write!(o, "\nNo alternative was tried."),
        (_, 0) => write!(o, "\n{tried} tried{quick}. No verdict changes."),
        _ => write!(o, "\n{tried} tried{quick}. The table has the verdicts that change."),
    };
    o.push('\n');
    if flips().next().is_none() {
        return;
    }
    o.push_str(
        "\n| alternative | claim | as chosen | verdict | with the alternative | verdict |\n|---|---|---|---|---|---|\n",
    );
    let as_chosen = e.as_chosen.iter().flat_map(|a| &a.claims);
    for (change, flip) in flips() {
        let of = |c: &&report::ChangedClaim| c.claim == flip.claim;
        let claim = e.claims.iter().find(|c| c.id == flip.claim);
        let numbers = |found: Option<&report::ChangedClaim>| {
            claim.zip(found).map_or_else(String::new, |(c, found)| c.numbers(&found.means).join("; "))
        };
        let _ = writeln!(
            o,
            "| `{}` | `{}` | {} | {} | {} | {} |",
            cell(&shortened(&change.change)),
            flip.claim,
            numbers(as_chosen.clone().find(of)),
            flip.from.name(),
            numbers(change.claims.iter().find(of)),
            flip.to.name()
        );
    }
}

/// A change such as a list of weights, cut after 80 characters.
fn shortened(change: &str) -> String {
    match change.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &change[..end]),
        None => change.to_string(),
    }
}

fn slowest(o: &mut String, r: &Results) {
    let slowest = report::slowest(r);
    if slowest.is_empty() {
        return;
    }
    let _ = writeln!(
        o,
        "\n## Slowest experiments\n\nSeconds of simulation, summed over all runs of an experiment.\n\n\
         | experiment | runs | seconds |\n|---|---|---|"
    );
    for (e, seconds) in slowest {
        let page = format!("{DETAILS}/{}.md", escaped(&e.paper));
        let _ =
            writeln!(o, "| [{}/{}]({page}#{}) | {} | {seconds:.1} |", e.paper, e.id, anchor(&e.id), e.runs);
    }
}

/// Says that the results are not those of every run in full length.
fn state(o: &mut String, r: &Results) {
    if r.quick {
        let _ = writeln!(o, "**{QUICK}**\n");
    }
    if !r.complete {
        let _ = writeln!(o, "**Partial: not every run is done.**\n");
    }
}

fn others<'r>(r: &'r Results, paper: &str) -> Vec<&'r ClaimResult> {
    r.others.iter().filter(|c| c.paper == paper).collect()
}

fn yes(as_printed: bool) -> &'static str {
    if as_printed { "yes" } else { "" }
}

/// The experiments of a paper, with their verdicts.
fn experiments(o: &mut String, r: &Results, paper: &str) {
    let _ = writeln!(o, "\n| experiment | title | section | verdicts |\n|---|---|---|---|");
    for e in r.experiments.iter().filter(|e| e.paper == paper) {
        let text = remarks(e);
        let stop = if text.is_empty() { "" } else { "." };
        let _ = writeln!(
            o,
            "| [{}](#{}) | {} | {} | {}{stop}{text} |",
            e.id,
            anchor(&e.id),
            cell(&e.title),
            cell(&e.section),
            counts(&e.claims),
        );
    }
    let others = others(r, paper);
    if !others.is_empty() {
        let _ = writeln!(o, "| [others](#{}) | {OTHERS} | – | {} |", anchor(OTHERS), counts(others));
    }
}

/// Reasons not to take the verdicts of an experiment as they are.
fn remarks(e: &ExperimentResult) -> String {
    let mut text = String::new();
    if e.done < e.runs {
        let _ = write!(text, " **Partial: {} of {} done.**", e.done, human::counted(e.runs as u64, "run"));
    }
    text += &lost(e);
    if !e.failed.is_empty() {
        let _ = write!(text, " **{} failed.**", human::counted(e.failed.len() as u64, "run"));
    }
    text
}

fn lost(e: &ExperimentResult) -> String {
    let runs = human::counted(e.lost as u64, "run");
    if e.lost == 0 { String::new() } else { format!(" **{runs} lost packets of a lossless priority.**") }
}

fn details(r: &Results, paper: &str) -> String {
    let mut out = format!("# {paper}: claims and measurements\n\n");
    let o = &mut out;
    let words = r.about(paper);
    if let Some(words) = words {
        let _ = writeln!(o, "*{}*\n", words.title);
    }
    let _ = writeln!(
        o,
        "`xoff repro` of xoff {} generated this page from `results.json`. [The scoreboard](../{SCOREBOARD}#{}) has the \
         summary, and says how to read a verdict. The pictures have the claims with numbers. In them 0 is no effect, and 1 \
         is the end of the paper's range that is nearer to it.\n",
        r.xoff_version,
        anchor(paper)
    );
    if let Some(sources) = words.and_then(|words| words.sources.as_ref()) {
        let _ = writeln!(o, "**Sources:** {}\n", sources.trim());
    }
    state(o, r);
    let claims: Vec<&ClaimResult> = r.claims().filter(|c| c.paper == paper).collect();
    let _ = writeln!(o, "{}: {}.", human::counted(claims.len() as u64, "claim"), counts(claims));
    experiments(o, r, paper);
    for e in r.experiments.iter().filter(|e| e.paper == paper) {
        experiment(o, e, r.quick);
    }
    let others = others(r, paper);
    if !others.is_empty() {
        let _ = writeln!(o, "\n## {OTHERS}\n\n{}.\n", counts(others.iter().copied()));
        let _ = writeln!(o, "| claim | verdict | reason |\n|---|---|---|");
        for c in others {
            let reason = cell(c.reason.as_deref().unwrap_or_default());
            let _ = writeln!(o, "| `{}` {} | {} | {reason} |", c.id, cell(&c.statement), c.verdict.name());
        }
    }
    out
}

/// The file with the picture of an experiment, counted from the directory of the pages.
fn picture(e: &ExperimentResult) -> String {
    format!("{}-{}.svg", e.paper, e.id)
}

fn experiment(o: &mut String, e: &ExperimentResult, quick: bool) {
    let _ = writeln!(o, "\n## {}\n\n**{}**\n", e.id, e.title.trim());
    let _ = write!(o, "Section {}. ", e.section);
    let runs = human::counted(e.runs as u64, "run");
    let _ = match &e.runs_of {
        Some(owner) => write!(o, "It uses the runs and choices of `{owner}`: {runs}"),
        None => write!(o, "{runs}"),
    };
    let _ = match e.seeds.len() {
        0 | 1 => write!(o, ", one seed."),
        n => write!(o, ", {n} seeds."),
    };
    if e.done < e.runs {
        let _ = write!(o, " **Partial: {} done.**", human::counted(e.done as u64, "run"));
    }
    if quick {
        let _ = write!(o, " **{QUICK}.**");
    }
    *o += &lost(e);
    for failed in &e.failed {
        let _ = write!(o, " **Failed: {}.**", cell(failed));
    }
    let note = e.expanded(e.note.trim());
    let _ = if note.is_empty() { writeln!(o) } else { writeln!(o, " {note}") };
    for (what, why) in e.unequal.reasons() {
        let _ = writeln!(o, "\n**Not equal in all runs ({what}):** {why}");
    }
    if chart::has_numbers(e) {
        let _ = writeln!(o, "\n![The paper's numbers and the measured ones of {}]({})", e.id, picture(e));
    }
    let _ = writeln!(o, "\n| claim | paper | measured | verdict | as printed |\n|---|---|---|---|---|");
    for c in &e.claims {
        let head = format!("`{}` {}", c.id, cell(&c.statement));
        match &c.measures[..] {
            [] => {
                let why = cell(c.reason.as_deref().unwrap_or_default());
                let _ = writeln!(o, "| {head} | – | {why} | {} | |", c.verdict.name());
            }
            [m] if m.says.is_none() => {
                let (paper, ours, verdict) = (m.claimed(), m.ours(), c.verdict.name());
                let _ =
                    writeln!(o, "| {head} | {paper} | {ours} | **{verdict}** | {} |", yes(c.as_printed()));
            }
            several => {
                let _ = writeln!(o, "| {head} | | | **{}** | {} |", c.verdict.name(), yes(c.as_printed()));
                for m in several {
                    let _ = writeln!(
                        o,
                        "| · {} | {} | {} | {} | {} |",
                        cell(&m.which()),
                        m.claimed(),
                        m.ours(),
                        m.verdict.name(),
                        yes(m.as_printed && m.verdict == Verdict::Reproduced)
                    );
                }
            }
        }
    }
    for c in &e.claims {
        let decided = if c.fails() { decided(e, c) } else { String::new() };
        let text = c.discussion.as_ref().map_or(String::new(), |text| e.expanded(text.trim()));
        if !decided.is_empty() || !text.is_empty() {
            let space = if decided.is_empty() || text.is_empty() { "" } else { " " };
            let _ = writeln!(o, "\n**`{}`, {}.** {decided}{space}{text}", c.id, c.verdict.name());
        }
    }
    if !e.chosen.is_empty() {
        o.push_str("\nChoices of the experiment where the paper gives no value:\n\n");
        for c in &e.chosen {
            let others: Vec<String> = c.alternatives.iter().map(|other| format!("`{other}`")).collect();
            let others =
                if others.is_empty() { String::new() } else { format!(" (or {})", others.join(", ")) };
            let _ = writeln!(o, "- `{}`{others}: {}", c.what, c.reason.trim());
        }
    }
    if !e.fixed.is_empty() {
        o.push_str("\nPoints that have no other value:\n\n");
        for f in &e.fixed {
            let _ = writeln!(o, "- `{}`: {}", f.what, f.reason.trim());
        }
    }
    sensitivity(o, e);
}

/// Text within a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// The anchor of a heading, as GitHub and mdBook name it.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// A name as part of a link.
fn escaped(name: &str) -> String {
    let byte = |b: u8| match b {
        b if b.is_ascii_alphanumeric() || b"-_.".contains(&b) => char::from(b).to_string(),
        b => format!("%{b:02X}"),
    };
    name.bytes().map(byte).collect()
}
