//! Buffer against distance, as a figure.

use crate::svg::{Figure, Line, Panel, Point};
use xoff_net::units::Length;
use xoff_plan::size::{Question, SCHEMES, line};

/// Ends of the curve, in kilometres: city-wide and nationwide.
pub const ENDS: (u64, u64) = (10, 2_000);

/// Points of a curve.
const POINTS: u64 = 200;

/// Most bytes of a point: a terabyte, beyond any link of the curve.
const MOST: u64 = 1_000_000_000_000;

/// The lines that are drawn, in the order of the schemes.
pub fn drawn() -> Vec<&'static str> {
    SCHEMES.into_iter().filter(|scheme| line(scheme) == Some(scheme)).collect()
}

/// The need of each [`drawn`] scheme from 10 km to 2,000 km, in MiB. A curve of formulas; see [`measured`].
pub fn curve(question: &Question) -> Figure {
    let (first, last) = ENDS;
    let at = |i: u64| first * 1_000 + i * (last - first) * 1_000 / (POINTS - 1);
    let needed = |scheme: &&str| {
        let buffer = |metres: u64| question.compute_size(scheme, Length(metres * 1_000)).buffer();
        let points = (0..POINTS).map(at).map(|metres| point(metres as f64 / 1e3, buffer(metres))).collect();
        Line { name: scheme.to_string(), points }
    };
    figure(question, &settings(question), drawn().iter().map(needed).collect())
}

fn figure(question: &Question, said: &str, lines: Vec<Line>) -> Figure {
    let priorities = match question.priorities {
        1 => String::new(),
        n => format!(", {n} priorities"),
    };
    Figure {
        title: format!("Buffer over distance at {}{priorities}", question.rate),
        x: "length of the link (km)".into(),
        y: "buffer at one end (MiB)".into(),
        categories: Vec::new(),
        log_x: false,
        panels: vec![Panel { title: said.into(), lines }],
    }
}

/// The other parameters of the curves, in a line.
fn settings(question: &Question) -> String {
    let mut said = format!(
        "formulas: packets up to {}, slot {}, processing time {}, XOFF {}",
        question.mtu, question.slot, question.processing, question.xoff
    );
    for (name, time) in [("jitter", question.jitter), ("response time", question.response_time)] {
        if time.0 > 0 {
            said += &format!(", {name} {time}");
        }
    }
    said + &question.update.map_or(", updates as in InfiniBand".into(), |t| format!(", updates every {t}"))
}

fn point(km: f64, bytes: u64) -> Point {
    Point { x: km, y: bytes as f64 / (1u64 << 20) as f64, range: None }
}

/// A figure from a table with the columns `distance_km`, `scheme` and `measured_B`, such as
/// `docs/data/least-buffer.csv`, and the marks that belong into it. Where the table has a column `formula_B`,
/// its lines are those formulas, with the settings of each measurement; otherwise they are those of [`curve`].
pub fn measured(question: &Question, table: &str) -> Result<(Figure, Vec<Line>), String> {
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
    for (i, row) in rows.enumerate() {
        let text = |column: usize| row.get(column).map_or("", String::as_str);
        let value = |column: usize, from: u64, to: u64| {
            let number = text(column).parse().ok().filter(|n| (from..=to).contains(n));
            number.ok_or_else(|| {
                let (name, text) = (&names[column], text(column));
                format!("row {}: {name} = `{text}` is not a whole number from {from} to {to}", i + 1)
            })
        };
        let km = value(distance, ENDS.0, ENDS.1)? as f64;
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
    let figure = match formula {
        None => curve(question),
        Some(_) => {
            figure(question, "marks: measured; lines: formulas with the settings of each point", lines)
        }
    };
    Ok((figure, marks))
}

fn put(lines: &mut Vec<Line>, name: &str, point: Point) {
    match lines.iter_mut().find(|line| line.name == name) {
        Some(line) => line.points.push(point),
        None => lines.push(Line { name: name.to_string(), points: vec![point] }),
    }
}
