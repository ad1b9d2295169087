//! The comparison as text: a row per point, over several seeds with the interval below each mean. Columns
//! that do not fit side by side go into further tables below, each with the values of the axes.

use super::Grid;
use super::compare::{Comparison, Point};
use super::interval::{Interval, Spread};
use super::metrics::{METRICS, Unit, index};
use crate::human;
use crate::table::{Align, WIDTH, aligned, shortened, wrapped};

/// Most columns of an axis's value.
const VALUE: usize = 24;
/// Most runs that are named in a remark, and most warnings that are shown.
const LISTED: usize = 6;

/// A column: its head, and per point the mean and the interval below it.
struct Column {
    head: String,
    align: Align,
    cells: Vec<(String, String)>,
}

/// The whole comparison: tables, and remarks about single runs.
pub fn render(grid: &Grid, c: &Comparison) -> String {
    let runs: usize = c.points.iter().map(|p| p.runs).sum();
    let all = c.points.len() * grid.per_point();
    let done = match (c.complete, c.spared) {
        (true, 0) => String::new(),
        (true, _) => format!("{} of at most ", human::count(runs as u64)),
        (false, _) => format!("INCOMPLETE, {} of ", human::count(runs as u64)),
    };
    let mut title = format!("{}: {done}{} of ", c.scenario, human::counted(all as u64, "run"));
    title.push_str(&human::counted(c.points.len() as u64, "point"));
    if grid.seeds.len() > 1 {
        let most = if c.spared > 0 { "at most " } else { "" };
        title.push_str(&format!(", {most}{} seeds each", grid.seeds.len()));
        title.push_str(match c.interval {
            Interval::Range => ": mean over seeds, with minimum and maximum below",
            Interval::Ci95 => ": mean over seeds, with half the 95% confidence interval below",
        });
    }
    let mut text = wrapped("", "  ", &title);
    text += "Columns mean, p50 and p99: slowdown (FCT over ideal FCT). Column buffer: peak occupancy.\n";
    let parts = blocks(&axes(grid, |_| true), metrics(grid, c)).into_iter();
    let parts = parts.chain(differences(grid, c)).chain([remarks(c, all)]);
    text.extend(parts.filter(|part| !part.is_empty()).map(|part| format!("\n{part}")));
    text
}

/// The columns of the axes, of the points that are `shown`.
fn axes(grid: &Grid, shown: impl Fn(&usize) -> bool) -> Vec<Column> {
    let points: Vec<usize> = (0..grid.points().unwrap_or(0)).filter(shown).collect();
    let column = |(axis, head): (usize, String)| {
        let value = |point| (shortened(grid.values(point)[axis], VALUE), String::new());
        Column { head, align: Align::Left, cells: points.iter().map(|&point| value(point)).collect() }
    };
    grid.heads().into_iter().enumerate().map(column).collect()
}

fn metrics(grid: &Grid, c: &Comparison) -> Vec<Column> {
    let many = grid.seeds.len() > 1;
    let column = |head: &str, cell: &dyn Fn(&Point) -> (String, String)| Column {
        head: head.into(),
        align: Align::Right,
        cells: c.points.iter().map(cell).collect(),
    };
    let metric = |head: &str, name: &str| {
        let m = index(name);
        column(head, &|p| cell(p.spreads[m].as_ref(), METRICS[m].unit, c.interval, many))
    };
    let mut columns = Vec::new();
    if many || !c.complete {
        columns.push(column("runs", &|p| (p.runs.to_string(), String::new())));
    }
    columns.extend(["flows", "finished"].map(|name| metric(name, name)));
    if c.points.iter().any(|p| p.spreads[index("failed")].as_ref().is_some_and(|s| s.mean > 0.0)) {
        columns.push(metric("failed", "failed"));
    }
    columns.extend(["mean", "p50", "p99"].map(|head| metric(head, &format!("slowdown_{head}"))));
    columns.push(metric("goodput", "goodput_bps"));
    columns.extend(["drops", "pauses"].map(|name| metric(name, name)));
    // Shown where a run has them.
    for (head, name) in [("job", "job_time_ps"), ("victim", "victim_ps"), ("at sources", "source_victim_ps")]
    {
        if c.points.iter().any(|p| p.spreads[index(name)].is_some()) {
            columns.push(metric(head, name));
        }
    }
    let closed = index("deadlock_ps");
    columns.push(column("deadlock", &|p| {
        let what = match (p.runs, p.deadlocks) {
            (0, _) => "-".into(),
            (_, 0) => "none".into(),
            (1, _) => p.spreads[closed].map_or("yes".into(), |s| human::time(s.mean as u64)),
            (runs, n) => format!("{n} of {runs}"),
        };
        (what, String::new())
    }));
    columns.push(metric("buffer", "buffer_peak"));
    columns
}

/// The metrics of points beside those of the baseline.
const COMPARED: [(&str, &str); 7] = [
    ("mean", "slowdown_mean"),
    ("p50", "slowdown_p50"),
    ("p99", "slowdown_p99"),
    ("goodput", "goodput_bps"),
    ("drops", "drops"),
    ("pauses", "pauses"),
    ("buffer", "buffer_peak"),
];

/// How each point differs from the baseline, in percent, below a line that says so. Nothing without a baseline.
fn differences(grid: &Grid, c: &Comparison) -> Option<String> {
    let (key, value) = c.baseline.as_ref()?;
    let shown: Vec<&Vec<Option<Spread>>> = c.points.iter().filter_map(|p| p.ratio_spreads.as_ref()).collect();
    let many = grid.seeds.len() > 1;
    let metric = |(head, name): &(&str, &str)| Column {
        head: (*head).into(),
        align: Align::Right,
        cells: shown.iter().map(|spreads| percent(spreads[index(name)].as_ref(), c.interval, many)).collect(),
    };
    let columns = COMPARED.iter().map(metric).collect();
    let value = value.as_str().map_or_else(|| value.to_string(), String::from);
    let mut text =
        wrapped("", "  ", &format!("Difference to {key} = {value}, with the same seed and other values:"));
    let axes = axes(grid, |&point| c.points[point].ratio_spreads.is_some());
    text.extend(blocks(&axes, columns));
    Some(text)
}

/// A ratio as a difference in percent: its mean, and beneath it its interval.
fn percent(spread: Option<&Spread>, interval: Interval, many: bool) -> (String, String) {
    let Some(s) = spread else { return ("-".into(), String::new()) };
    let shown = |ratio: f64| match (ratio - 1.0) * 100.0 {
        x if x.abs() < 0.05 => "0%".to_string(),
        x if x.abs() < 10.0 => format!("{x:+.1}%"),
        x => format!("{x:+.0}%"),
    };
    let mean = shown(s.mean);
    let beneath = match (s.low, s.high, interval) {
        (Some(low), Some(high), _) if many && (shown(low), shown(high)) != (mean.clone(), mean.clone()) => {
            format!("{}..{}", shown(low), shown(high))
        }
        _ => String::new(),
    };
    (mean, beneath)
}

/// A metric of a point: its mean, and beneath it its interval, unless it is too narrow to be seen.
fn cell(spread: Option<&Spread>, unit: Unit, interval: Interval, many: bool) -> (String, String) {
    let Some(s) = spread else { return ("-".into(), String::new()) };
    let mean = shown(s.mean, unit);
    let (Some(low), Some(high), true) = (s.low, s.high, many) else { return (mean, String::new()) };
    let ends = (shown(low.max(0.0), unit), shown(high, unit));
    let beneath = match interval {
        _ if ends.0 == mean && ends.1 == mean => String::new(),
        Interval::Ci95 => format!("±{}", shown(high - s.mean, unit)),
        // One unit for both ends where they share it.
        Interval::Range => match (ends.0.split_once(' '), ends.1.split_once(' ')) {
            (Some((low, a)), Some((high, b))) if a == b => format!("{low}..{high}"),
            _ => format!("{}..{}", ends.0, ends.1).replace(' ', ""),
        },
    };
    (mean, beneath)
}

/// A value of a metric as people read it, or a mean, which need not be whole.
pub fn shown(x: f64, unit: Unit) -> String {
    match unit {
        Unit::Ratio => human::ratio(x),
        Unit::Rate => human::rate(x),
        Unit::Bytes => human::bytes(x.round() as u64),
        Unit::Time => human::time(x.round() as u64),
        Unit::Count if x.fract() == 0.0 || x >= 100.0 => human::count(x.round() as u64),
        Unit::Count => match human::short(x).as_str() {
            "0" => "<0.01".into(),
            text => text.into(),
        },
    }
}

/// `axes` with as many of `metrics` beside them as fit, then tables with the others.
fn blocks(axes: &[Column], metrics: Vec<Column>) -> Vec<String> {
    let width = |c: &Column| {
        let cells = c.cells.iter().flat_map(|(a, b)| [a, b]).chain([&c.head]);
        cells.map(|t| t.chars().count()).max().unwrap_or(0) + 2
    };
    let taken: usize = axes.iter().map(width).sum();
    let mut blocks = Vec::new();
    let mut block: Vec<&Column> = Vec::new();
    let mut wide = taken;
    for column in &metrics {
        if !block.is_empty() && wide + width(column) > WIDTH + 2 {
            blocks.push(lines(axes, &block));
            block.clear();
            wide = taken;
        }
        wide += width(column);
        block.push(column);
    }
    blocks.push(lines(axes, &block));
    blocks
}

fn lines(axes: &[Column], metrics: &[&Column]) -> String {
    let columns: Vec<&Column> = axes.iter().chain(metrics.iter().copied()).collect();
    let mut rows = vec![columns.iter().map(|c| c.head.clone()).collect::<Vec<_>>()];
    for point in 0..metrics[0].cells.len() {
        rows.push(columns.iter().map(|c| c.cells[point].0.clone()).collect());
        let beneath: Vec<String> = columns.iter().map(|c| c.cells[point].1.clone()).collect();
        if beneath.iter().any(|b| !b.is_empty()) {
            rows.push(beneath);
        }
    }
    aligned(&rows, &columns.iter().map(|c| c.align).collect::<Vec<_>>())
}

/// Remarks about single runs.
fn remarks(c: &Comparison, all: usize) -> String {
    let mut text = String::new();
    let mut remark = |level: &str, what: &str| text.push_str(&wrapped(&format!("{level}: "), "  ", what));
    for failure in c.failed.iter().take(LISTED) {
        remark("error", &format!("{} failed: {}", failure.run, failure.error));
    }
    if c.failed.len() > LISTED {
        remark("error", &format!("{} runs failed in total", c.failed.len()));
    }
    if !c.lost.is_empty() {
        let who = some(&c.lost, all);
        remark("error", &format!("packets of a lossless priority were dropped in {who}"));
    }
    if !c.pending.is_empty() {
        remark("warning", &format!("not run: {}; {}", some(&c.pending, all), c.go_on));
    }
    let warnings = alike(c);
    for (first, runs, alike) in warnings.iter().take(LISTED) {
        let figures = if *alike { "" } else { ", with different numbers" };
        remark("warning", &format!("{first} ({}{figures})", some(runs, all)));
    }
    if warnings.len() > LISTED {
        let more = human::counted((warnings.len() - LISTED) as u64, "more warning");
        remark("warning", &format!("{more}: see the summaries of the runs"));
    }
    text
}

/// The warnings, those together that differ in their figures only: the first one's text, the runs that have
/// one, and whether all of them are the same.
fn alike(c: &Comparison) -> Vec<(&str, Vec<String>, bool)> {
    let skeleton = |text: &str| text.replace(|c: char| c.is_ascii_digit() || ".,".contains(c), "");
    let mut found: Vec<(&str, Vec<String>, bool)> = Vec::new();
    for warning in &c.warnings {
        match found.iter_mut().find(|(first, ..)| skeleton(first) == skeleton(&warning.text)) {
            Some((_, runs, alike)) => {
                runs.extend(warning.runs.iter().cloned());
                *alike = false;
            }
            None => found.push((&warning.text, warning.runs.clone(), true)),
        }
    }
    for (_, runs, _) in &mut found {
        runs.sort_unstable(); // names begin with the run's number
        runs.dedup();
    }
    found
}

/// Some of `all` runs: by name if they are few.
fn some(runs: &[String], all: usize) -> String {
    match runs.len() {
        n if n == all && n > 1 => format!("all {n} runs"),
        n if n > LISTED => format!("{n} of {all} runs, first {}", runs[0]),
        _ => human::listed(runs),
    }
}
