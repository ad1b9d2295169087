//! Buffer against distance, as a figure.

use crate::human;
use crate::svg::{Figure, Line, Panel, Point};
use xoff_net::units::Length;
use xoff_plan::size::{LONGEST, Question, SCHEMES, line};

/// Ends of the curve without a distance, and of measured points, in kilometres: city-wide and nationwide.
pub const ENDS: (u64, u64) = (10, 2_000);

/// The distances of a curve, in metres.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    first: u64,
    last: u64,
}

impl Range {
    /// From [`ENDS`].
    pub const WIDE: Self = Self { first: ENDS.0 * 1_000, last: ENDS.1 * 1_000 };

    /// From 0 to a round number, with `distance` near the middle.
    pub fn around(distance: Length) -> Self {
        Self { first: 0, last: round(distance.0.div_ceil(1_000).saturating_mul(2)).min(LONGEST) }
    }

    /// From 0 to a round number of at least `metres`; [`Self::WIDE`] if most of that is needed.
    fn until(metres: u64) -> Self {
        if metres > Self::WIDE.last / 2 { Self::WIDE } else { Self { first: 0, last: round(metres) } }
    }

    /// Metres in a unit of the axis, and the unit.
    fn unit(self) -> (f64, &'static str) {
        if self.last < 10_000 { (1.0, "m") } else { (1e3, "km") }
    }
}

/// The least of 1, 2 and 5 times a power of ten that is at least `metres`.
fn round(metres: u64) -> u64 {
    let mut power = 1u64;
    loop {
        match [1, 2, 5].map(|digit: u64| digit.saturating_mul(power)).into_iter().find(|end| *end >= metres) {
            Some(end) => return end.max(10),
            None => power = power.saturating_mul(10),
        }
    }
}

/// Points of a curve.
const POINTS: u64 = 200;

/// Most bytes of a point: a terabyte, beyond any link of the curve.
const MOST: u64 = 1_000_000_000_000;

const MIB: f64 = 1_048_576.0;

/// The lines that are drawn, in the order of the schemes.
pub fn drawn() -> Vec<&'static str> {
    SCHEMES.into_iter().filter(|scheme| line(scheme) == Some(scheme)).collect()
}

/// A figure, and marks in it for `svg_with`.
pub type Chart = (Figure, Vec<Line>);

/// The need of each of `schemes` over the distances, and a mark on each line at `distance`. A curve of formulas;
/// see [`measured`].
pub fn curve(question: &Question, schemes: &[&'static str], range: Range, distance: Option<Length>) -> Chart {
    let mark = |scheme: &&'static str, distance| Line {
        name: scheme.to_string(),
        points: vec![needed(question, scheme, range, distance)],
    };
    let marks = distance.map_or(Vec::new(), |d| schemes.iter().map(|scheme| mark(scheme, d)).collect());
    let at = distance.map_or(String::new(), |d| format!(", marks at {d}"));
    chart(
        (question, &(packets(question) + &at)),
        &settings(question),
        range.unit().1,
        formulas(question, schemes, range),
        marks,
    )
}

fn formulas(question: &Question, schemes: &[&'static str], range: Range) -> Vec<Line> {
    let at = |i: u64| Length(range.first * 1_000 + i * (range.last - range.first) * 1_000 / (POINTS - 1));
    let line = |scheme: &&'static str| Line {
        name: scheme.to_string(),
        points: (0..POINTS).map(|i| needed(question, scheme, range, at(i))).collect(),
    };
    schemes.iter().map(line).collect()
}

fn needed(question: &Question, scheme: &str, range: Range, distance: Length) -> Point {
    let buffer = question.compute_size(scheme, distance).buffer();
    point(distance.0 as f64 / 1e3 / range.unit().0, buffer)
}

/// A chart of points whose heights are bytes; `more` ends the title, `said` is the line below it.
fn chart(
    (question, more): (&Question, &str),
    said: &str,
    unit: &str,
    mut lines: Vec<Line>,
    mut marks: Vec<Line>,
) -> Chart {
    let priorities = match question.priorities {
        1 => String::new(),
        n => format!(", {n} priorities"),
    };
    let points = || lines.iter().chain(&marks).flat_map(|line| &line.points);
    let largest = points().map(|point| point.y).fold(0.0, f64::max);
    let (name, bytes) = match largest {
        y if y < MIB => ("KiB", MIB / 1024.0),
        y if y < MIB * 16_384.0 => ("MiB", MIB),
        _ => ("GiB", MIB * 1024.0),
    };
    for point in lines.iter_mut().chain(&mut marks).flat_map(|line| &mut line.points) {
        point.y /= bytes;
    }
    let figure = Figure {
        title: format!("Buffer over distance at {}{priorities}{more}", question.rate),
        x: format!("length of the link ({unit})"),
        y: format!("buffer at one end ({name})"),
        categories: Vec::new(),
        log_x: false,
        panels: vec![Panel { title: said.into(), lines }],
    };
    (figure, marks)
}

fn packets(question: &Question) -> String {
    format!(", packets up to {}", question.mtu)
}

/// The other parameters of the curves, in a line.
fn settings(question: &Question) -> String {
    let mut said = format!(
        "formulas with slot {}, processing time {}, XOFF {}",
        question.slot, question.processing, question.xoff
    );
    for (name, time) in [("jitter", question.jitter), ("response time", question.response_time)] {
        if time.0 > 0 {
            said += &format!(", {name} {}", human::time(time.0));
        }
    }
    said + &question.update.map_or(", updates as in InfiniBand".into(), |t| format!(", updates every {t}"))
}

fn point(x: f64, bytes: u64) -> Point {
    Point { x, y: bytes as f64, range: None }
}

/// A figure from a table with the columns `distance_km`, `scheme` and `measured_B`, such as
/// `docs/data/least-buffer.csv`, and the marks that belong into it. Where the table has a column `formula_B`,
/// its lines are those formulas, with the settings of each measurement; otherwise they are those of [`curve`].
pub fn measured(question: &Question, table: &str) -> Result<Chart, String> {
    let cell = |text: &str| text.trim().trim_matches('"').to_string();
    let mut rows = table
        .trim_start_matches('\u{feff}')
        .lines()
        .filter(|row| !row.trim().is_empty())
        .map(|row| row.split(',').map(cell).collect::<Vec<_>>());
    let names = rows.next().unwrap_or_default();
    let column = |name: &str| match names.iter().filter(|n| *n == name).count() {
        0 => Ok(None),
        1 => Ok(names.iter().position(|n| n == name)),
        _ => Err(format!("the column `{name}` is given more than once")),
    };
    let needed = |name: &str| column(name)?.ok_or_else(|| format!("the column `{name}` is missing"));
    let (distance, of, bytes) = (needed("distance_km")?, needed("scheme")?, needed("measured_B")?);
    let formula = column("formula_B")?;
    let (mut marks, mut lines): (Vec<Line>, Vec<Line>) = (Vec::new(), Vec::new());
    let mut farthest = 0;
    for (i, row) in rows.enumerate() {
        let text = |column: usize| row.get(column).map_or("", String::as_str);
        let value = |column: usize, from: u64, to: u64| {
            let number = text(column).parse().ok().filter(|n| (from..=to).contains(n));
            number.ok_or_else(|| {
                let (name, text) = (&names[column], text(column));
                format!("row {}: {name} = `{text}` is not a whole number from {from} to {to}", i + 1)
            })
        };
        let whole = value(distance, ENDS.0, ENDS.1)?;
        farthest = farthest.max(whole * 1_000);
        let km = whole as f64;
        let name = line(text(of)).ok_or_else(|| {
            format!("row {}: unknown scheme `{}`; the schemes are {}", i + 1, text(of), drawn().join(", "))
        })?;
        put(&mut marks, name, point(km, value(bytes, 0, MOST)?));
        if let Some(formula) = formula {
            put(&mut lines, name, point(km, value(formula, 0, MOST)?));
        }
    }
    if marks.is_empty() {
        return Err("the file has no points".into());
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    if formula.is_some() {
        let said = "marks: measured; lines: formulas with the settings of each point";
        return Ok(chart((question, ""), said, "km", lines, marks));
    }
    let range = Range::until(farthest);
    let more = packets(question) + ", marks: measured";
    Ok(chart(
        (question, &more),
        &settings(question),
        range.unit().1,
        formulas(question, &drawn(), range),
        marks,
    ))
}

fn put(lines: &mut Vec<Line>, name: &str, point: Point) {
    match lines.iter_mut().find(|line| line.name == name) {
        Some(line) => line.points.push(point),
        None => lines.push(Line { name: name.to_string(), points: vec![point] }),
    }
}
