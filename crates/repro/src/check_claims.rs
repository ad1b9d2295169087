//! Consistency of claims and their measures.

use std::collections::BTreeMap;

use xoff_plan::{document::Document, error::suggest};

use crate::check::{Checked, free, known_metric, known_run, name, points, seeds};
use crate::experiment::{Claim, Claims, Combine, Experiment, Measure, Reading, Relation, compares};
use crate::{discussion, report::own};

const SECOND: &str = "the second value of the comparison is missing";

pub(super) fn of_experiment(doc: &Document<'_>, e: &Experiment) -> Checked {
    for (i, claim) in e.claim.iter().enumerate() {
        let at = format!("claim[{i}]");
        if !of(&claim.id, &e.id) {
            let help = format!("write {0}.NAME, or {0}a.NAME for panel a", e.id);
            return Err(doc.error(&format!("{at}.id"), "the claim does not belong to this experiment", help));
        }
        claim_itself(doc, &at, claim)?;
        for (j, measure) in claim.measure.iter().enumerate() {
            self::measure(doc, &format!("{at}.measure[{j}]"), e, claim, measure)?;
        }
        cases(doc, &at, claim)?;
        for (j, reading) in claim.reading.iter().enumerate() {
            self::reading(doc, &format!("{at}.reading[{j}]"), e, claim, reading)?;
        }
        references(doc, &format!("{at}.discussion"), Some(e), claim.discussion.as_deref())?;
    }
    for (i, chosen) in e.chosen.iter().enumerate() {
        for j in 0..chosen.instead.len() {
            instead(doc, &format!("chosen[{i}].instead[{j}]"), e, i, j)?;
        }
    }
    references(doc, "note", Some(e), Some(&e.note))?;
    duplicate_claims(doc, &e.claim)?;
    if e.claim.is_empty() {
        return Err(doc.error("", "the experiment has no claim", "add a [[claim]] table"));
    }
    Ok(())
}

/// Whether a claim is one of the experiment, or of a panel of it: `fig2a.low` is one of `fig2`.
fn of(claim: &str, experiment: &str) -> bool {
    let Some(rest) = claim.strip_prefix(experiment) else { return false };
    let rest = rest.strip_prefix(|c: char| c.is_ascii_lowercase()).unwrap_or(rest);
    rest.strip_prefix('.').is_some_and(|name| !name.is_empty())
}

pub(super) fn claims(doc: &Document<'_>, c: &Claims) -> Checked {
    name(doc, "paper", &c.paper)?;
    for (i, claim) in c.claim.iter().enumerate() {
        let at = format!("claim[{i}]");
        claim_itself(doc, &at, claim)?;
        if !claim.measure.is_empty() {
            let help = "move the claim to the file of an experiment, or remove `measure`";
            return Err(doc.error(&format!("{at}.measure"), "`measure` is not allowed in this file", help));
        }
        if !claim.reading.is_empty() {
            let help = "only a claim with measures has other readings; remove `reading`";
            return Err(doc.error(&format!("{at}.reading"), "`reading` is not allowed in this file", help));
        }
        references(doc, &format!("{at}.discussion"), None, claim.discussion.as_deref())?;
    }
    duplicate_claims(doc, &c.claim)
}

fn duplicate_claims(doc: &Document<'_>, claims: &[Claim]) -> Checked {
    for (i, claim) in claims.iter().enumerate() {
        if claims[..i].iter().any(|c| c.id == claim.id) {
            let message = format!("the claim {} is given twice", claim.id);
            return Err(doc.error(&format!("claim[{i}].id"), message, "remove one of the two"));
        }
    }
    Ok(())
}

fn claim_itself(doc: &Document<'_>, at: &str, c: &Claim) -> Checked {
    let reasons = [
        ("measure", !c.measure.is_empty()),
        ("not_simulated", c.not_simulated.is_some()),
        ("analysis", c.analysis.is_some()),
        ("later", c.later.is_some()),
    ];
    let given: Vec<&str> = reasons.iter().filter(|r| r.1).map(|r| r.0).collect();
    let help = "write [[claim.measure]], or one of `not_simulated`, `analysis` and `later` with the reason";
    match given[..] {
        [] => return Err(doc.error(at, format!("{} has neither a measurement nor a reason", c.id), help)),
        [_] => {}
        [a, b, ..] => return Err(doc.error(&format!("{at}.{b}"), format!("`{b}` excludes `{a}`"), help)),
    }
    let texts = [
        ("not_simulated", &c.not_simulated),
        ("analysis", &c.analysis),
        ("later", &c.later),
        ("discussion", &c.discussion),
    ];
    for (key, text) in texts {
        if text.as_ref().is_some_and(|t| t.trim().is_empty()) {
            return Err(doc.error(&format!("{at}.{key}"), "it is empty", "write the text"));
        }
    }
    if let Some(within) = c.within {
        let key = format!("{at}.within");
        if !(0.0..=1.0).contains(&within) {
            let help = "write a fraction of the claimed value from 0 to 1, such as 0.15";
            return Err(doc.error(&key, format!("{within} is out of range"), help));
        }
        if !own(&c.id) {
            let help = "the range of a claim of a paper is widened by 20% of the effect; remove the key, or name the claim own-…";
            return Err(doc.error(&key, "`within` is allowed only for claims named own-…", help));
        }
        if c.relation == Relation::Ordering {
            let help = "remove it, because an ordering has no range";
            return Err(doc.error(&key, "it has no effect", help));
        }
    }
    if let (Some(low), Some(high)) = (c.low, c.high)
        && low > high
    {
        return Err(doc.error(&format!("{at}.high"), "`high` is less than `low`", "swap the two values"));
    }
    Ok(())
}

/// Of a claim with cases, each is measured.
fn cases(doc: &Document<'_>, at: &str, c: &Claim) -> Checked {
    if c.measure.is_empty() {
        return Ok(());
    }
    for case in c.per_case.keys() {
        if !c.measure.iter().any(|m| m.case.as_ref() == Some(case)) {
            let help = format!("add a [[claim.measure]] with case = \"{case}\"");
            let message = format!("the case `{case}` is not measured");
            return Err(doc.error(&format!("{at}.per_case"), message, help));
        }
    }
    Ok(())
}

/// How a measure becomes one number.
pub(super) fn combine(claim: &Claim, m: &Measure) -> Combine {
    m.combine.unwrap_or(match claim.relation {
        Relation::Ratio => Combine::Ratio,
        Relation::Reduction => Combine::Reduction,
        Relation::Ordering => Combine::Difference,
        _ => Combine::Value,
    })
}

fn measure(doc: &Document<'_>, at: &str, e: &Experiment, c: &Claim, m: &Measure) -> Checked {
    let err = |key: &str, message: String, help: &str| Err(doc.error(&format!("{at}.{key}"), message, help));
    known_run(doc, &format!("{at}.run"), e, &m.run)?;
    if let Some(run) = &m.against {
        known_run(doc, &format!("{at}.against"), e, run)?;
    }
    let a = known_metric(doc, &format!("{at}.metric"), e, &m.metric)?;
    if let Some(metric) = &m.against_metric {
        let b = known_metric(doc, &format!("{at}.against_metric"), e, metric)?;
        if e.metric[a].scale().0 != e.metric[b].scale().0 {
            let help = "give both metrics the same unit";
            return err("against_metric", "the two have different units".into(), help);
        }
    }
    points(doc, &format!("{at}.at"), e, &m.at)?;
    points(doc, &format!("{at}.against_at"), e, &m.against_at)?;
    if let Some(key) = &m.largest_over {
        largest_over(doc, at, e, m, key)?;
    }
    if m.deviation && e.seeds.len() < 2 {
        return err("deviation", "a deviation requires at least two seeds".into(), "add seeds to `seeds`");
    }
    let combine = combine(c, m);
    let two = combine != Combine::Value;
    if two != compares(m) {
        let help = "`ratio`, `reduction`, `gain` and `difference` compare two values, so they require `against`, \
                    `against_metric` or `against_at`; `value` uses one value";
        let message = if two { SECOND } else { "`value` cannot compare two values" };
        return err("combine", message.into(), help);
    }
    points(doc, &format!("{at}.than_at"), e, &m.than_at)?;
    if !m.than_at.is_empty() && !two {
        let help = "it compares two comparisons; use `against_at` to compare two values";
        return err("than_at", "the comparison is missing".into(), help);
    }
    if let Some(metric) = &m.seeds_with {
        known_metric(doc, &format!("{at}.seeds_with"), e, metric)?;
        if m.deviation {
            let help = "a deviation is from the mean over all seeds; remove one of the two";
            return err("seeds_with", "`seeds_with` excludes `deviation`".into(), help);
        }
    }
    if let Some(case) = &m.case {
        let known: Vec<&str> = c.per_case.keys().map(String::as_str).collect();
        if !c.per_case.contains_key(case) {
            return err("case", format!("unknown case `{case}`"), &suggest(case, "the cases", &known));
        }
    }
    let bounds = m.low.is_some() || m.high.is_some();
    match c.relation {
        Relation::Shape => {
            if m.says.is_none() {
                return err("says", "`says` is missing".into(), "describe the test");
            }
            if bounds == m.expect.is_some() {
                let help = "each measure of a shape requires `low`, `high` or both, or `expect`";
                return Err(doc.error(at, "the expected value is missing", help));
            }
        }
        _ if bounds => {
            let help = "write the range in the claim; only a measure of a shape has bounds";
            return err(if m.low.is_some() { "low" } else { "high" }, "it has no effect".into(), help);
        }
        Relation::Ordering if m.expect.is_none() => {
            return err("expect", "`expect` is missing".into(), "write \"less\" or \"greater\"");
        }
        Relation::Ordering => {}
        _ => {
            if m.expect.is_some() {
                return err("expect", "it has no effect".into(), "use it only for an ordering or a shape");
            }
            if !c.per_case.is_empty() && m.case.is_none() {
                let help = "write the case whose value is claimed";
                return err("case", "`case` is missing".into(), help);
            }
            if c.per_case.is_empty() && c.low.is_none() && c.high.is_none() {
                return Err(doc.error(at, "the claim has no range", "give the claim `low` or `high`"));
            }
        }
    }
    if m.expect.is_some() && !two {
        return err("expect", SECOND.into(), "add `against`");
    }
    Ok(())
}

/// A reading replaces something in every measure's claim, by something that is known.
fn reading(doc: &Document<'_>, at: &str, e: &Experiment, c: &Claim, r: &Reading) -> Checked {
    one_line(doc, &format!("{at}.choice"), &r.choice)?;
    replaced(doc, at, e, &c.measure, r, "the claim does not measure")?;
    points(doc, &format!("{at}.at"), e, &r.at)?;
    if !changes(c, r) {
        let help = "write what differs: `runs`, `metrics` or `at`";
        return Err(doc.error(at, "the reading changes nothing", help));
    }
    read(doc, at, e, c, r)
}

/// Another choice in words sets keys, or is a reading that changes something.
fn instead(doc: &Document<'_>, at: &str, e: &Experiment, chosen: usize, index: usize) -> Checked {
    let c = &e.chosen[chosen];
    let i = &c.instead[index];
    one_line(doc, &format!("{at}.choice"), &i.choice)?;
    if c.key.is_some() {
        return Err(doc.error(at, "`instead` is only for a choice in words", "use `alternatives`"));
    }
    let before = e.chosen[..chosen].iter().flat_map(|c| &c.instead).chain(&c.instead[..index]);
    if before.map(|other| &other.choice).any(|choice| *choice == i.choice) {
        let help = "give each a different `choice`";
        return Err(doc.error(&format!("{at}.choice"), "the choice is given twice", help));
    }
    for key in i.set.keys() {
        free(doc, &format!("{at}.set"), key, e, "it cannot be changed")?;
    }
    seeds(doc, &format!("{at}.seeds"), &i.seeds)?;
    if let Some(seed) = i.seeds.iter().find(|seed| !e.seeds.contains(seed)) {
        let message = format!("{seed} is no seed of the experiment");
        return Err(doc.error(&format!("{at}.seeds"), message, "write some of its `seeds`"));
    }
    let reads = !(i.runs.is_empty() && i.metrics.is_empty() && i.at.is_empty());
    let leaves_out = !(i.vary.is_empty() && i.seeds.is_empty());
    let help = "write `set` for runs with other keys; or `runs`, `metrics`, `at`, `vary` or `seeds` for another reading of the same runs";
    if (reads || leaves_out) && !i.set.is_empty() {
        return Err(doc.error(at, "`set` excludes the other keys", help));
    }
    let measures: Vec<Measure> = e.claim.iter().flat_map(|c| &c.measure).cloned().collect();
    let all = Reading { runs: i.runs.clone(), metrics: i.metrics.clone(), ..Reading::default() };
    replaced(doc, at, e, &measures, &all, "no claim measures")?;
    points(doc, &format!("{at}.at"), e, &i.at)?;
    if let Some(key) = i.at.keys().find(|&key| !measures.iter().any(|m| m.at.contains_key(key))) {
        let message = format!("no claim has a value of `{key}` in `at`");
        return Err(doc.error(&format!("{at}.at"), message, "remove it"));
    }
    for v in &i.vary {
        if v.values.is_empty() {
            let message = format!("`{}` has no value", v.key);
            return Err(doc.error(&format!("{at}.vary"), message, "write some of its values"));
        }
        for value in &v.values {
            let one = BTreeMap::from([(v.key.clone(), value.clone())]);
            points(doc, &format!("{at}.vary"), e, &one)?;
        }
    }
    let left = i.points_of(e);
    if i.set.is_empty() && left == *e && !e.claim.iter().any(|c| changes(c, &i.reading(c))) {
        return Err(doc.error(at, "it changes nothing", help));
    }
    e.claim.iter().try_for_each(|c| read(doc, at, &left, c, &i.reading(c)))
}

fn one_line(doc: &Document<'_>, at: &str, choice: &str) -> Checked {
    if choice.trim().is_empty() || choice.trim().contains('\n') {
        return Err(doc.error(at, "it is not one line", "name the choice in one line"));
    }
    Ok(())
}

/// What a reading replaces is measured, and what it writes instead is known.
fn replaced(
    doc: &Document<'_>,
    at: &str,
    e: &Experiment,
    measures: &[Measure],
    r: &Reading,
    unmeasured: &str,
) -> Checked {
    let runs = measures.iter().flat_map(|m| m.against.iter().chain([&m.run]));
    let runs: Vec<&str> = runs.map(String::as_str).collect();
    for (from, to) in &r.runs {
        let at = format!("{at}.runs.{from}");
        if !runs.contains(&from.as_str()) {
            let help = suggest(from, "the measured runs", &runs);
            return Err(doc.error(&at, format!("{unmeasured} the run `{from}`"), help));
        }
        known_run(doc, &at, e, to)?;
    }
    let metrics =
        measures.iter().flat_map(|m| [Some(&m.metric), m.against_metric.as_ref(), m.seeds_with.as_ref()]);
    let metrics: Vec<&str> = metrics.flatten().map(String::as_str).collect();
    for (from, to) in &r.metrics {
        let at = format!("{at}.metrics.{from}");
        if !metrics.contains(&from.as_str()) {
            let help = suggest(from, "the measured metrics", &metrics);
            return Err(doc.error(&at, format!("{unmeasured} `{from}`"), help));
        }
        let unit = |metric: usize| e.metric[metric].scale().0;
        let to = known_metric(doc, &at, e, to)?;
        if e.metric_index(from).map(unit) != Some(unit(to)) {
            let help = "give both metrics the same unit";
            return Err(doc.error(&at, "the two have different units", help));
        }
    }
    Ok(())
}

/// Whether a reading changes what a claim measures.
fn changes(c: &Claim, r: &Reading) -> bool {
    c.read_as(r) != c.read_as(&Reading { choice: r.choice.clone(), ..Reading::default() })
}

/// Checks the measures of a claim under a reading. Errors name the reading, because its measures are not in the file.
fn read(doc: &Document<'_>, at: &str, e: &Experiment, c: &Claim, r: &Reading) -> Checked {
    let read = c.read_as(r);
    read.measure.iter().try_for_each(|m| measure(doc, at, e, &read, m))
}

/// Refuses a reference to a run or metric that does not exist.
fn references(doc: &Document<'_>, at: &str, e: Option<&Experiment>, text: Option<&str>) -> Checked {
    let Some(text) = text else { return Ok(()) };
    for inner in discussion::references(text) {
        let found = match e {
            Some(e) => discussion::resolve(e, inner).map(|_| ()),
            None => Err(("the claim has no runs".to_string(), "remove the braces".to_string())),
        };
        found.map_err(|(message, help)| doc.error(at, format!("{{{inner}}}: {message}"), help))?;
    }
    Ok(())
}

fn largest_over(doc: &Document<'_>, at: &str, e: &Experiment, m: &Measure, key: &str) -> Checked {
    let here = format!("{at}.largest_over");
    let keys: Vec<&str> = e.vary.iter().map(|v| v.key.as_str()).collect();
    if !keys.contains(&key) {
        let help = suggest(key, "the varied keys", &keys);
        return Err(doc.error(&here, format!("`{key}` is not varied"), help));
    }
    if m.at.contains_key(key) || m.against_at.contains_key(key) {
        let help = "remove it from `at` and `against_at`, or remove `largest_over`";
        return Err(doc.error(&here, format!("`{key}` has only one value here"), help));
    }
    if m.expect.is_some() {
        let help = "remove `largest_over`: an ordering is tested at every value of a key";
        return Err(doc.error(&here, "it has no effect with `expect`", help));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn claims_are_of_their_figure_or_of_a_panel_of_it() {
        for claim in ["fig2.low", "fig2a.low", "fig2z.low.of.all"] {
            assert!(of(claim, "fig2"), "{claim}");
        }
        for claim in
            ["fig2", "fig2.", "fig2a", "fig2a.", "fig2ab.low", "fig21.low", "fig2A.low", "fig3.low", "low"]
        {
            assert!(!of(claim, "fig2"), "{claim}");
        }
    }
}
