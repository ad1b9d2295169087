//! Buffer against distance, as a figure.

use crate::repro::svg::{Figure, Line, Panel, Point};
use xoff_net::units::Length;
use xoff_plan::size::Question;

/// Ends of the curve, in kilometres: what Bifrost's paper calls city-wide and nationwide.
pub const ENDS: (u64, u64) = (10, 2_000);

/// Points of a curve.
const POINTS: u64 = 200;

/// Most bytes of a point: a terabyte, beyond any link of the curve.
const MOST: u64 = 1_000_000_000_000;

/// The schemes that are drawn. Pyrrha and PortFC, which are for the inside of a datacenter
/// and need several BDP, would press the others flat.
pub const DRAWN: [&str; 6] = ["pfc", "pfc-deep", "bifrost", "bifrostx", "cbfc", "swing"];

/// What each of [`DRAWN`] needs from 10 km to 2,000 km, in MiB. A curve of formulas; see
/// [`measured`].
pub fn curve(question: &Question) -> Figure {
    let (first, last) = ENDS;
    let at = |i: u64| first * 1_000 + i * (last - first) * 1_000 / (POINTS - 1);
    let line = |scheme: &&str| Line {
        name: scheme.to_string(),
        points: (0..POINTS)
            .map(at)
            .map(|metres| {
                let needed = question.answer(scheme, Length(metres * 1_000)).buffer();
                Point { x: metres as f64 / 1e3, y: needed as f64 / (1u64 << 20) as f64, range: None }
            })
            .collect(),
    };
    let priorities = match question.priorities {
        1 => String::new(),
        n => format!(", {n} priorities"),
    };
    Figure {
        title: format!("Buffer against distance at {}{priorities}", question.rate),
        x: "length of the link (km)".into(),
        y: "buffer at one end (MiB)".into(),
        categories: Vec::new(),
        log_x: false,
        panels: vec![Panel { title: String::new(), lines: DRAWN.iter().map(line).collect() }],
    }
}

/// Points from a table with the columns `distance_km` and `measured_B`, such as
/// `docs/data/least-buffer.csv`: to be drawn beside the curve.
///
/// # Errors
/// There is no such column, or a value is no number or off the curve; in words.
pub fn measured(table: &str) -> Result<Line, String> {
    let mut rows = table.lines().map(|row| row.split(',').map(str::trim).collect::<Vec<_>>());
    let names = rows.next().unwrap_or_default();
    let column = |name: &str| {
        names.iter().position(|n| *n == name).ok_or_else(|| format!("there is no column `{name}`"))
    };
    let (distance, bytes) = (column("distance_km")?, column("measured_B")?);
    let mut points = Vec::new();
    for (i, row) in rows.enumerate() {
        let value = |column: usize, from: u64, to: u64| {
            let text = row.get(column).copied().unwrap_or_default();
            let number = text.parse().ok().filter(|n| (from..=to).contains(n));
            number.ok_or_else(|| {
                format!("row {}: {} = `{text}` is no whole number from {from} to {to}", i + 1, names[column])
            })
        };
        let (km, bytes) = (value(distance, ENDS.0, ENDS.1)?, value(bytes, 0, MOST)?);
        points.push(Point { x: km as f64, y: bytes as f64 / (1u64 << 20) as f64, range: None });
    }
    Ok(Line { name: "measured".into(), points })
}
