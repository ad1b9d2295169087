//! Consistency of the file of an experiment.

use std::collections::BTreeMap;

use xoff_outcome::report::Unit;
use xoff_plan::{Error, document::Document, error::suggest};

use crate::experiment::{Chosen, Experiment, Metric, Plot, PlotKind, SCENARIO, Vary};
use crate::metrics::{
    Dimension, MEASURABLE, Measurable, Place, QUANTITIES, STATISTICS, TIMES, facts, measurable, quantity,
};
use crate::runs::{number, written};
use xoff_results::data::DataFile;

const LARGEST: usize = 100_000;

pub(super) type Checked = Result<(), Error>;

/// Checks an experiment but for its claims. The error is the first thing that is wrong.
pub(super) fn experiment(doc: &Document<'_>, e: &Experiment) -> Checked {
    name(doc, "paper", &e.paper)?;
    name(doc, "id", &e.id)?;
    unique(doc, "run", e.run.iter().map(|r| r.name.as_str()))?;
    seeds(doc, "seeds", &e.seeds)?;
    vary(doc, "vary", &e.vary)?;
    if let Some(quick) = &e.quick {
        seeds(doc, "quick.seeds", &quick.seeds)?;
        vary(doc, "quick.vary", &quick.vary)?;
        for (i, v) in quick.vary.iter().enumerate() {
            if !e.vary.iter().any(|other| other.key == v.key) {
                let at = format!("quick.vary[{i}].key");
                return Err(doc.error(&at, format!("`{}` is not varied", v.key), "write a key of [[vary]]"));
            }
        }
        if quick.set.is_empty() && quick.seeds.is_empty() && quick.vary.is_empty() {
            let help = "write seeds, set or vary, or remove [quick]; then --quick uses the first seed";
            return Err(doc.error("quick", "`quick` has no effect", help));
        }
        for key in quick.set.keys() {
            free(doc, "quick.set", key, e, "use `quick.vary` for a varied key")?;
        }
    }
    for (i, run) in e.run.iter().enumerate() {
        for key in run.set.keys() {
            free(doc, &format!("run[{i}].set"), key, e, "remove one of the two")?;
        }
    }
    if e.grid(false, &[]).runs().is_none_or(|n| n > LARGEST) {
        let message = format!("more than the maximum of {LARGEST} runs");
        return Err(doc.error("vary", message, "vary fewer keys or values"));
    }
    for i in 0..e.chosen.len() {
        chosen(doc, e, i)?;
    }
    unique(doc, "metric", e.metric.iter().map(|m| m.name.as_str()))?;
    for (i, metric) in e.metric.iter().enumerate() {
        self::metric(doc, &format!("metric[{i}]"), metric)?;
    }
    unique(doc, "plot", e.plot.iter().map(|p| p.name.as_str()))?;
    for (i, plot) in e.plot.iter().enumerate() {
        self::plot(doc, &format!("plot[{i}]"), e, plot)?;
    }
    Ok(())
}

/// For an experiment that uses the runs of `owner`: the entries about runs are in the owner's file.
pub(super) fn without_runs(doc: &Document<'_>, e: &Experiment, owner: &str) -> Checked {
    let keyed = e.chosen.iter().position(|c| c.key.is_some());
    let sets = |c: &Chosen| c.instead.iter().any(|i| !i.set.is_empty());
    let set = e.chosen.iter().position(sets);
    for (at, given) in [
        (SCENARIO.to_string(), doc.get(SCENARIO).is_some()),
        ("run".into(), !e.run.is_empty()),
        ("vary".into(), !e.vary.is_empty()),
        ("seeds".into(), !e.seeds.is_empty()),
        ("quick".into(), e.quick.is_some()),
        (format!("chosen[{}].key", keyed.unwrap_or(0)), keyed.is_some()),
        (format!("chosen[{}].instead", set.unwrap_or(0)), set.is_some()),
    ] {
        if given {
            let message = format!("this has no effect, because the runs are those of `{owner}`");
            return Err(doc.error(&at, message, "move it to that experiment, or remove `runs_of`"));
        }
    }
    Ok(())
}

pub(super) fn name(doc: &Document<'_>, at: &str, name: &str) -> Checked {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(fits) {
        let help = "use only letters, digits, `.`, `_` and `-`, because the name becomes a file name";
        return Err(doc.error(at, format!("`{name}` is not a valid name"), help));
    }
    Ok(())
}

fn unique<'a>(doc: &Document<'_>, list: &str, names: impl Iterator<Item = &'a str>) -> Checked {
    let names: Vec<&str> = names.collect();
    for (i, n) in names.iter().enumerate() {
        let at = format!("{list}[{i}].name");
        name(doc, &at, n)?;
        if names[..i].contains(n) {
            let message = format!("the name `{n}` is given twice");
            return Err(doc.error(&at, message, "give each a different name"));
        }
    }
    Ok(())
}

pub(super) fn seeds(doc: &Document<'_>, at: &str, seeds: &[u64]) -> Checked {
    for (i, seed) in seeds.iter().enumerate() {
        if seeds[..i].contains(seed) {
            let message = format!("seed {seed} is given twice");
            return Err(doc.error(&format!("{at}[{i}]"), message, "remove one"));
        }
    }
    Ok(())
}

fn vary(doc: &Document<'_>, at: &str, vary: &[Vary]) -> Checked {
    for (i, v) in vary.iter().enumerate() {
        let at = format!("{at}[{i}]");
        if v.key.is_empty() || v.key.contains('[') || v.key == "run.seed" {
            let help = "write a key such as traffic.0.load; for seeds use `seeds`";
            return Err(doc.error(&format!("{at}.key"), format!("`{}` cannot be varied", v.key), help));
        }
        if vary[..i].iter().any(|other| other.key == v.key) {
            return Err(doc.error(&format!("{at}.key"), format!("`{}` is given twice", v.key), "remove one"));
        }
        if v.values.is_empty() {
            return Err(doc.error(&format!("{at}.values"), "`values` is empty", "write values = [0.4, 0.8]"));
        }
        for (j, value) in v.values.iter().enumerate() {
            if v.values[..j].contains(value) {
                let message = format!("the value {value} is given twice");
                return Err(doc.error(&format!("{at}.values[{j}]"), message, "remove one of the two"));
            }
        }
    }
    Ok(())
}

/// Refuses a key that is varied, too: one of its values would be without effect.
pub(super) fn free(doc: &Document<'_>, at: &str, key: &str, e: &Experiment, help: &str) -> Checked {
    let plain = key.replace('[', ".").replace(']', "");
    if plain == "run.seed" {
        return Err(doc.error(at, "`run.seed` cannot be set here", "use `seeds`"));
    }
    if e.vary.iter().any(|v| v.key == plain) {
        return Err(doc.error(at, format!("`{key}` is also varied"), help));
    }
    Ok(())
}

fn chosen(doc: &Document<'_>, e: &Experiment, index: usize) -> Checked {
    let at = format!("chosen[{index}]");
    let c = &e.chosen[index];
    let sensitive = c.low.is_some() || c.high.is_some() || !c.alternatives.is_empty();
    match (&c.key, &c.what, &c.value) {
        (None, None, _) => {
            let help = "write `key` and `value`, or describe the choice in `what`";
            return Err(doc.error(&at, "the choice is missing", help));
        }
        (None, Some(_), value) if value.is_some() || sensitive => {
            let help = "write the `key` of these values";
            return Err(doc.error(&at, "values have no effect without `key`", help));
        }
        (None, Some(_), _) if c.instead.is_empty() => {
            let help = "write `instead`; or write `[[fixed]]` in the place of `[[chosen]]`, if it has no other value";
            return Err(doc.error(&at, "the choice has no alternative", help));
        }
        (None, Some(_), _) => {}
        (Some(_), _, None) => {
            let help = "write the value of the key";
            return Err(doc.error(&format!("{at}.value"), "`value` is missing", help));
        }
        (Some(key), ..) => {
            free(doc, &format!("{at}.key"), key, e, "remove one of the two")?;
            let runs = |c: &Chosen, name: &String| c.runs.is_empty() || c.runs.contains(name);
            for run in e.run.iter().filter(|r| runs(c, &r.name)) {
                if run.set.contains_key(key) {
                    let message = format!("the run `{}` also sets it", run.name);
                    let help = "remove one of the two, or restrict this one with `runs`";
                    return Err(doc.error(&format!("{at}.key"), message, help));
                }
                let twice = |other: &Chosen| other.key.as_ref() == Some(key) && runs(other, &run.name);
                if e.chosen[..index].iter().any(twice) {
                    let message = format!("it is given twice for the run `{}`", run.name);
                    return Err(doc.error(&format!("{at}.key"), message, "restrict each with `runs`"));
                }
            }
        }
    }
    for (i, run) in c.runs.iter().enumerate() {
        known_run(doc, &format!("{at}.runs[{i}]"), e, run)?;
    }
    if !c.alternatives.is_empty() && (c.low.is_some() || c.high.is_some()) {
        let message = "`alternatives` excludes `low` and `high`";
        return Err(doc.error(&format!("{at}.alternatives"), message, "remove one of the two"));
    }
    Ok(())
}

pub(super) fn known_run(doc: &Document<'_>, at: &str, e: &Experiment, run: &str) -> Checked {
    if e.run_index(run).is_none() {
        let names: Vec<&str> = e.run.iter().map(|r| r.name.as_str()).collect();
        return Err(doc.error(at, format!("unknown run `{run}`"), suggest(run, "the runs", &names)));
    }
    Ok(())
}

pub(super) fn known_metric(doc: &Document<'_>, at: &str, e: &Experiment, name: &str) -> Result<usize, Error> {
    e.metric_index(name).ok_or_else(|| {
        let names: Vec<&str> = e.metric.iter().map(|m| m.name.as_str()).collect();
        doc.error(at, format!("unknown metric `{name}`"), suggest(name, "the metrics", &names))
    })
}

fn known_quantity(doc: &Document<'_>, at: &str, given: Option<&str>) -> Result<Dimension, Error> {
    given.and_then(quantity).ok_or_else(|| {
        let names: Vec<&str> = QUANTITIES.iter().map(|(n, _)| *n).collect();
        let (message, help) = match given {
            None => ("`quantity` is missing".into(), suggest("", "one of", &names)),
            Some(q) => (format!("unknown quantity `{q}`"), suggest(q, "the quantities", &names)),
        };
        doc.error(&format!("{at}.quantity"), message, help)
    })
}

fn known_unit(doc: &Document<'_>, at: &str, given: Option<&str>, of: Dimension) -> Checked {
    let units: Vec<&str> = of.units().iter().map(|u| u.0).collect();
    let Some(unit) = given.filter(|u| !units.contains(u)) else { return Ok(()) };
    let help = match units[..] {
        [""] => "remove it: this metric has no unit".into(),
        _ => suggest(unit, "the units", &units),
    };
    Err(doc.error(&format!("{at}.unit"), format!("`{unit}` is not a unit of this metric"), help))
}

fn varied<'e>(doc: &Document<'_>, at: &str, e: &'e Experiment, key: &str) -> Result<&'e Vary, Error> {
    e.vary.iter().find(|v| v.key == key).ok_or_else(|| {
        let keys: Vec<&str> = e.vary.iter().map(|v| v.key.as_str()).collect();
        doc.error(at, format!("`{key}` is not varied"), suggest(key, "the varied keys", &keys))
    })
}

/// The keys of a metric that only some measurable things have.
fn given(m: &Metric) -> [(&'static str, bool); 19] {
    macro_rules! keys {
        ($($key:ident)*) => { [$((stringify!($key), m.$key.is_some())),*] };
    }
    keys!(statistic threshold quantity element class src dst min_size max_size min_ideal max_ideal port queue
        cause root node from to arrivals)
}

/// The keys of a metric of flows, of which sums have all but the first.
const FLOW_KEYS: [&str; 10] =
    ["statistic", "class", "src", "dst", "min_size", "max_size", "min_ideal", "max_ideal", "from", "to"];

/// The keys that a measurable thing has beside `name`, `of` and `unit`.
pub fn keys(what: &Measurable) -> &'static [&'static str] {
    match what.place {
        Place::Fact(_, fact) if fact.unit == Unit::List => &["port"],
        Place::Summary(_) | Place::Fact(..) | Place::Present(_) | Place::Nodes(_) => &[],
        Place::Jobs(_) => &["class"],
        Place::Operations(_) => &["class", "element"],
        Place::Flows => &FLOW_KEYS,
        Place::Sum => &FLOW_KEYS[1..],
        Place::Pauses => &["port", "queue", "cause", "root", "from", "to"],
        Place::Series => &["statistic", "threshold", "quantity", "element", "from", "to", "arrivals"],
        Place::Peak(DataFile::Nodes, ..) => &["node"],
        Place::Peak(..) | Place::MeanInUse(..) => &["port"],
    }
}

fn metric(doc: &Document<'_>, at: &str, m: &Metric) -> Checked {
    let Some(what) = measurable(&m.of) else {
        let facts: Vec<String> = facts().collect();
        let facts = facts.iter().map(String::as_str);
        let names: Vec<&str> = MEASURABLE.iter().map(|m| m.name).chain(facts).collect();
        let message = format!("`{}` cannot be measured", m.of);
        return Err(doc.error(&format!("{at}.of"), message, suggest(&m.of, "the metrics", &names)));
    };
    let allowed = keys(&what);
    if let Some((key, _)) = given(m).iter().find(|(key, there)| *there && !allowed.contains(key)) {
        let help = match allowed {
            [] => format!("`{}` applies to the whole run", m.of),
            _ => format!("allowed: {}", allowed.join(", ")),
        };
        return Err(doc.error(&format!("{at}.{key}"), format!("`{key}` has no effect on `{}`", m.of), help));
    }
    if what.place == Place::Series {
        known_quantity(doc, at, m.quantity.as_deref())?;
        if m.element.is_none() {
            let help = "write the traffic class, port, node or flow, as in series.parquet";
            return Err(doc.error(&format!("{at}.element"), "`element` is missing", help));
        }
    }
    if allowed.contains(&"statistic") {
        let times = TIMES.into_iter().filter(|_| what.place == Place::Series);
        let known: Vec<&str> = STATISTICS.into_iter().chain(times).collect();
        let at = format!("{at}.statistic");
        match m.statistic.as_deref() {
            None => return Err(doc.error(&at, "`statistic` is missing", suggest("", "one of", &known))),
            Some(s) if !known.contains(&s) => {
                let message = format!("unknown statistic `{s}`");
                return Err(doc.error(&at, message, suggest(s, "the statistics", &known)));
            }
            Some(_) => {}
        }
    }
    let timed = m.statistic.as_deref().is_some_and(|s| TIMES.contains(&s));
    if timed != m.threshold.is_some() {
        let at = format!("{at}.threshold");
        let message = if timed { "`threshold` is missing" } else { "`threshold` has no effect" };
        let help = "use `threshold` only with statistics of time, such as `time-below`, which require it";
        return Err(doc.error(&at, message, help));
    }
    known_unit(doc, at, m.unit.as_deref(), m.dimension())?;
    if let Some([from, to]) = m.arrivals {
        let at = format!("{at}.arrivals");
        if !(0.0..=1.0).contains(&from) || !(0.0..=1.0).contains(&to) || from >= to {
            let message = format!("[{from}, {to}] is not a valid range");
            return Err(doc.error(&at, message, "write two numbers from 0 to 1, such as [0.2, 1.0]"));
        }
        if m.from.is_some() || m.to.is_some() {
            return Err(doc.error(&at, "`arrivals` excludes `from` and `to`", "remove one of the two"));
        }
    }
    if let (Some(from), Some(to)) = (m.from, m.to)
        && from >= to
    {
        return Err(doc.error(&format!("{at}.to"), "`to` is not after `from`", "write a later time"));
    }
    Ok(())
}

pub(super) fn points(
    doc: &Document<'_>,
    at: &str,
    e: &Experiment,
    values: &BTreeMap<String, toml::Value>,
) -> Checked {
    for (key, value) in values {
        let axis = varied(doc, at, e, key)?;
        if !axis.values.contains(value) {
            let values: Vec<String> = axis.values.iter().map(written).collect();
            let message = format!("`{key}` does not have the value {value}");
            return Err(doc.error(at, message, format!("the values are {}", values.join(", "))));
        }
    }
    Ok(())
}

fn plot(doc: &Document<'_>, at: &str, e: &Experiment, p: &Plot) -> Checked {
    for (i, run) in p.runs.iter().enumerate() {
        known_run(doc, &format!("{at}.runs[{i}]"), e, run)?;
    }
    points(doc, &format!("{at}.at"), e, &p.at)?;
    let [lines, cdf, curves] = [PlotKind::Lines, PlotKind::Cdf, PlotKind::Curves].map(|kind| p.kind == kind);
    for (key, there, belongs) in [
        ("metrics", !p.metrics.is_empty(), !lines),
        ("quantity", p.quantity.is_some(), lines),
        ("elements", !p.elements.is_empty(), lines),
        ("along", p.along.is_some(), curves),
    ] {
        let at = format!("{at}.{key}");
        if there && !belongs {
            return Err(doc.error(&at, format!("`{key}` has no effect on this kind of plot"), "remove it"));
        }
        if !there && belongs {
            let help = "docs/EXPERIMENTS.md lists the keys of each kind";
            return Err(doc.error(&at, format!("`{key}` is missing"), help));
        }
    }
    for (key, there) in [("unit", p.unit.is_some() && !lines), ("log_x", p.log_x && !cdf)] {
        if there {
            let message = format!("`{key}` has no effect on this kind of plot");
            return Err(doc.error(&format!("{at}.{key}"), message, "remove it"));
        }
    }
    for (i, metric) in p.metrics.iter().enumerate() {
        let at = format!("{at}.metrics[{i}]");
        let metric = known_metric(doc, &at, e, metric)?;
        let place = measurable(&e.metric[metric].of).map(|m| m.place);
        if cdf && place != Some(Place::Flows) {
            let help = "write a metric of fct, slowdown, flow-rate, completion or size";
            return Err(doc.error(&at, "the metric does not apply to single flows", help));
        }
    }
    if (cdf || curves) && p.metrics.len() != 1 {
        let help = "add another [[plot]] for the other metric";
        return Err(doc.error(&format!("{at}.metrics"), "this plot draws only one metric", help));
    }
    if let Some(q) = &p.quantity {
        let dimension = known_quantity(doc, at, Some(q))?;
        known_unit(doc, at, p.unit.as_deref(), dimension)?;
    }
    if let Some(key) = &p.along {
        let axis = varied(doc, &format!("{at}.along"), e, key)?;
        if p.at.contains_key(key) {
            return Err(doc.error(&format!("{at}.at"), format!("`{key}` is the x axis"), "remove it here"));
        }
        let numbers: Option<Vec<(f64, String)>> = axis.values.iter().map(number).collect();
        if numbers.is_none_or(|n| n.windows(2).any(|pair| pair[0].1 != pair[1].1)) {
            let message = "the values are not all numbers of one unit";
            return Err(doc.error(&format!("{at}.along"), message, "use one unit, or draw bars"));
        }
    }
    Ok(())
}
