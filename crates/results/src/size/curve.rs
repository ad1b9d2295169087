//! Buffer against distance, as a figure.

use crate::repro::svg::{Figure, Line, Panel, Point};
use xoff_net::units::Length;
use xoff_plan::size::Question;

/// Ends of the curve, in kilometres: what Bifrost's paper calls city-wide and nationwide.
pub const ENDS: (u64, u64) = (10, 2_000);

/// Points of a curve.
const POINTS: u64 = 200;

/// The schemes that are drawn. Pyrrha and PortFC, which are for the inside of a datacenter
/// and need several BDP, would press the others flat.
pub const DRAWN: [&str; 6] = ["pfc", "pfc-deep", "bifrost", "bifrostx", "cbfc", "swing"];

/// What each of [`DRAWN`] needs from 10 km to 2,000 km, in MiB. A curve of formulas: points that
/// were measured are others' to add.
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
