//! A figure as SVG and as CSV. The same figure gives the same bytes.
//!
//! Colours are those of Okabe and Ito, which people with any colour vision can distinguish; lines differ in
//! their dashes, too.

use std::fmt::Write as _;

/// Appends a line to a text.
macro_rules! put {
    ($out:expr, $($text:tt)*) => {
        let _ = writeln!($out, $($text)*);
    };
}

/// A point; `range` is the interval beside a mean over seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Along the horizontal axis; of bars the number of the category.
    pub x: f64,
    /// Along the vertical axis.
    pub y: f64,
    pub range: Option<(f64, f64)>,
}

/// A line, or the bars of one colour.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<Point>,
}

/// One of several pictures above each other with the same axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Its heading; empty if it is the only one.
    pub title: String,
    /// Its lines; a name has one colour in all panels.
    pub lines: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub title: String,
    /// Label of the horizontal axis.
    pub x: String,
    /// Label of the vertical axis.
    pub y: String,
    /// Names along the horizontal axis: then it has bars.
    pub categories: Vec<String>,
    pub log_x: bool,
    pub panels: Vec<Panel>,
}

const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];
const DASHES: [&str; 4] = ["", "7 3", "2 2", "8 3 2 3"];
const LEFT: f64 = 72.0;
const RIGHT: f64 = 560.0;
const WIDTH: f64 = 740.0;

/// The ends of an axis and the distance of its ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Axis {
    from: f64,
    to: f64,
    step: f64,
}

/// An axis with about five ticks at 1, 2 or 5 times a power of ten.
fn axis(from: f64, to: f64) -> Axis {
    let span = if to > from { to - from } else { 1.0 };
    let mut step = 1.0;
    // Powers of ten by multiplication: no logarithm, whose last bit varies.
    while step * 5.0 < span {
        step *= 10.0;
    }
    while step * 0.5 > span {
        step /= 10.0;
    }
    let step =
        [0.1, 0.2, 0.5, 1.0, 2.0].map(|f| f * step).into_iter().find(|s| span / s <= 6.0).unwrap_or(step);
    Axis { from: (from / step).floor() * step, to: ((from + span) / step).ceil() * step, step }
}

impl Axis {
    fn ticks(self) -> Vec<f64> {
        let n = ((self.to - self.from) / self.step).round() as usize;
        (0..=n).map(|i| self.from + i as f64 * self.step).collect()
    }

    /// A tick in words: as many decimals as its step needs.
    fn label(self, value: f64) -> String {
        let mut decimals = 0;
        let mut step = self.step;
        while decimals < 9 && (step - step.round()).abs() > 1e-6 * step {
            step *= 10.0;
            decimals += 1;
        }
        let value = if value.abs() < self.step * 1e-6 { 0.0 } else { value };
        format!("{value:.decimals$}")
    }
}

/// A point by itself, in the colour of the line of this number and a shape of its own.
fn mark(out: &mut String, number: usize, x: f64, y: f64) {
    let colour = COLOURS[number % COLOURS.len()];
    let shape = match number % 4 {
        0 => format!("M{:.1} {y:.1}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", x - 4.0),
        1 => format!("M{:.1} {:.1}h7v7h-7z", x - 3.5, y - 3.5),
        2 => format!("M{x:.1} {:.1}l4.5 8h-9z", y - 5.0),
        _ => format!("M{x:.1} {:.1}l5 5l-5 5l-5 -5z", y - 5.0),
    };
    put!(out, "<path class=\"mark\" d=\"{shape}\" fill=\"none\" stroke=\"{colour}\"/>");
}

pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

impl Figure {
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for line in self.panels.iter().flat_map(|p| &p.lines) {
            if !names.contains(&line.name.as_str()) {
                names.push(&line.name);
            }
        }
        names
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.panels.iter().flat_map(|p| &p.lines).flat_map(|l| &l.points)
    }

    /// The figure as a document. Without any point it has none but its axes.
    pub fn svg(&self) -> String {
        self.svg_with(&[])
    }

    /// The same with `marks` in the last panel: points by themselves, each in the colour of the
    /// line that is called as they are.
    pub fn svg_with(&self, marks: &[Line]) -> String {
        let names = self.names();
        let points = || self.points().chain(marks.iter().flat_map(|m| &m.points));
        let bars = !self.categories.is_empty();
        let place = |x: f64| if self.log_x { libm::log10(x.max(1e-12)) } else { x };
        let ends = |values: &mut dyn Iterator<Item = f64>| {
            values.fold(None, |ends: Option<(f64, f64)>, v| {
                let (a, b) = ends.unwrap_or((v, v));
                Some((a.min(v), b.max(v)))
            })
        };
        let (a, b) = ends(&mut points().map(|p| place(p.x))).unwrap_or((0.0, 1.0));
        let x = if bars {
            Axis { from: -0.5, to: self.categories.len() as f64 - 0.5, step: 1.0 }
        } else if self.log_x {
            let step = axis(a.floor(), b.ceil()).step.max(1.0);
            Axis { step, from: a.floor(), to: b.ceil().max(a.floor() + 1.0) }
        } else {
            let whole = axis(a, b);
            // The first sample of a series is one interval after its beginning.
            let a = if a > 0.0 && a < whole.step { 0.0 } else { a };
            Axis { from: a, to: b.max(a + whole.step * 1e-3), ..whole }
        };
        let heights = |p: &Point| [p.y, p.range.map_or(p.y, |r| r.0), p.range.map_or(p.y, |r| r.1)];
        let (low, high) = ends(&mut points().flat_map(heights)).unwrap_or((0.0, 1.0));
        let y = axis(low.min(0.0), if high > low.min(0.0) { high } else { 1.0 });
        let many = self.panels.len() > 1;
        let height = if many { 150.0 } else { 280.0 };
        let pitch = height + if many { 44.0 } else { 0.0 };
        let top = 58.0;
        let bottom = top + pitch * (self.panels.len().max(1) - 1) as f64 + height;
        let number_of = |name: &str| names.iter().position(|n| *n == name);
        let total = (bottom + 62.0).max(top + 20.0 * names.len() as f64 + 30.0);
        let mut out = String::new();
        let o = &mut out;
        put!(
            o,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{total}\" viewBox=\"0 0 {WIDTH} {total}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">"
        );
        put!(o, "<rect width=\"{WIDTH}\" height=\"{total}\" fill=\"#fff\"/>");
        let title = escaped(&self.title);
        put!(o, "<text x=\"{LEFT}\" y=\"24\" font-size=\"15\" font-weight=\"bold\">{title}</text>");
        let across = |v: f64| LEFT + (v - x.from) / (x.to - x.from) * (RIGHT - LEFT);
        for (i, panel) in self.panels.iter().enumerate() {
            let top = top + pitch * i as f64;
            let up = |v: f64| top + height - (v - y.from) / (y.to - y.from) * height;
            if !panel.title.is_empty() {
                let (y, title) = (top - 8.0, escaped(&panel.title));
                put!(o, "<text x=\"{LEFT}\" y=\"{y:.1}\" font-weight=\"bold\">{title}</text>");
            }
            for tick in y.ticks() {
                let at = up(tick);
                put!(o, "<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>");
                words(o, (LEFT - 6.0, at + 4.0), " text-anchor=\"end\"", &y.label(tick));
            }
            let foot = top + height;
            put!(o, "<path d=\"M{LEFT} {top:.1}V{foot:.1}H{RIGHT}\" fill=\"none\" stroke=\"#222\"/>");
            let ticks: Vec<(f64, String)> = if bars {
                self.categories.iter().enumerate().map(|(i, c)| (i as f64, c.clone())).collect()
            } else if self.log_x {
                let decades = (x.to - x.from).round() as i32;
                (0..=decades).map(|d| (x.from + f64::from(d), power(x.from as i32 + d))).collect()
            } else {
                let within = |t: &f64| *t >= x.from - x.step * 1e-6 && *t <= x.to + x.step * 1e-6;
                let (from, to) = ((x.from / x.step).floor() * x.step, (x.to / x.step).ceil() * x.step);
                Axis { from, to, ..x }.ticks().into_iter().filter(within).map(|t| (t, x.label(t))).collect()
            };
            for (tick, label) in ticks {
                let at = across(tick);
                if !bars {
                    let end = foot + 4.0;
                    put!(
                        o,
                        "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{foot:.1}\" y2=\"{end:.1}\" stroke=\"#222\"/>"
                    );
                }
                words(o, (at, foot + 18.0), " text-anchor=\"middle\"", &label);
            }
            for line in &panel.lines {
                let number = number_of(&line.name).expect("every line has a name");
                let colour = COLOURS[number % COLOURS.len()];
                if bars {
                    let width = 0.8 / names.len() as f64;
                    for p in &line.points {
                        let left = p.x - 0.4 + width * number as f64;
                        let (a, b) = (up(p.y.max(0.0)), up(p.y.min(0.0)));
                        let (from, to) = (across(left), across(left + width * 0.94));
                        let (width, height) = (to - from, (b - a).max(0.5));
                        put!(
                            o,
                            "<rect x=\"{from:.1}\" y=\"{a:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
                        );
                        bar(o, (from + to) / 2.0, p, &up);
                    }
                    continue;
                }
                let dash = DASHES[number % DASHES.len()];
                let mut path = String::new();
                for (i, p) in line.points.iter().enumerate() {
                    let (x, command) = (across(place(p.x)), if i == 0 { "M" } else { "L" });
                    path += &format!("{command}{x:.1} {:.1}", up(p.y));
                    bar(o, x, p, &up);
                }
                put!(
                    o,
                    "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\" stroke-dasharray=\"{dash}\"/>"
                );
            }
            for line in marks.iter().filter(|_| i + 1 == self.panels.len()) {
                let number = number_of(&line.name).unwrap_or(names.len());
                for p in &line.points {
                    mark(o, number, across(place(p.x)), up(p.y));
                }
            }
            let (middle, label) = (top + height / 2.0, escaped(&self.y));
            put!(
                o,
                "<text transform=\"translate(18 {middle:.1}) rotate(-90)\" text-anchor=\"middle\">{label}</text>"
            );
        }
        words(o, ((LEFT + RIGHT) / 2.0, bottom + 42.0), " text-anchor=\"middle\"", &self.x);
        for (i, name) in names.iter().enumerate() {
            let at = top + 8.0 + 20.0 * i as f64;
            let colour = COLOURS[i % COLOURS.len()];
            if bars {
                let (x, y) = (RIGHT + 16.0, at - 5.0);
                put!(o, "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"14\" height=\"10\" fill=\"{colour}\"/>");
            } else {
                let (x, dash) = (RIGHT + 12.0, DASHES[i % DASHES.len()]);
                put!(
                    o,
                    "<path d=\"M{x:.1} {at:.1}h24\" stroke=\"{colour}\" stroke-width=\"1.6\" stroke-dasharray=\"{dash}\"/>"
                );
            }
            if marks.iter().any(|line| line.name == *name) {
                mark(o, i, RIGHT + 24.0, at);
            }
            words(o, (RIGHT + 42.0, at + 4.0), "", name);
        }
        out.push_str("</svg>\n");
        out
    }

    /// Its data: a row for each point.
    pub fn csv(&self) -> String {
        let mut out = String::from("panel,line,x,y,low,high\n");
        for panel in &self.panels {
            for line in &panel.lines {
                for p in &line.points {
                    let x = match self.categories.get(p.x as usize) {
                        Some(category) => quoted(category),
                        None => p.x.to_string(),
                    };
                    let (low, high) =
                        p.range.map_or_else(Default::default, |r| (r.0.to_string(), r.1.to_string()));
                    let (panel, line) = (quoted(&panel.title), quoted(&line.name));
                    put!(out, "{panel},{line},{x},{},{low},{high}", p.y);
                }
            }
        }
        out
    }
}

/// A text at a place.
fn words(out: &mut String, (x, y): (f64, f64), attributes: &str, text: &str) {
    put!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\"{attributes}>{}</text>", escaped(text));
}

/// An interval as a thin bar.
fn bar(out: &mut String, x: f64, p: &Point, up: &dyn Fn(f64) -> f64) {
    if let Some((low, high)) = p.range.filter(|r| r.0 < r.1) {
        put!(out, "<path d=\"M{x:.1} {:.1}V{:.1}\" stroke=\"#222\"/>", up(low), up(high));
    }
}

/// A power of ten as people write it.
fn power(exponent: i32) -> String {
    match exponent {
        0..=4 => format!("1{}", "0".repeat(exponent as usize)),
        -3..=-1 => format!("0.{}1", "0".repeat((-exponent - 1) as usize)),
        e => format!("1e{e}"),
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for (from, to) in [(0.0, 1.0), (0.0, 97.3), (3.0, 12_345.0), (-0.02, 0.013), (0.0, 4e-7), (5.0, 5.0)]
        {
            let a = axis(from, to);
            let ticks = a.ticks();
            assert!((2..=9).contains(&ticks.len()), "{from} {to}: {ticks:?}");
            assert!(a.from <= from && a.to >= to);
        }
        let a = axis(0.0, 97.3);
        assert_eq!(
            a.ticks().iter().map(|&t| a.label(t)).collect::<Vec<_>>(),
            ["0", "20", "40", "60", "80", "100"]
        );
        let a = axis(0.0, 0.3);
        assert_eq!(a.label(0.1), "0.10");
    }

    #[test]
    fn every_point_is_in_the_data_and_the_picture() {
        let line = |name: &str, ys: &[f64]| Line {
            name: name.into(),
            points: ys
                .iter()
                .enumerate()
                .map(|(i, &y)| Point { x: i as f64, y, range: Some((y, y + 1.0)) })
                .collect(),
        };
        let mut figure = Figure {
            title: "a < b".into(),
            x: "t".into(),
            y: "v".into(),
            categories: vec![],
            log_x: false,
            panels: vec![Panel {
                title: "p,q".into(),
                lines: vec![line("one", &[1.0, 2.0]), line("two", &[0.5])],
            }],
        };
        assert_eq!(
            figure.csv(),
            "panel,line,x,y,low,high\n\"p,q\",one,0,1,1,2\n\"p,q\",one,1,2,2,3\n\"p,q\",two,0,0.5,0.5,1.5\n"
        );
        let svg = figure.svg();
        assert!(svg.contains("a &lt; b") && svg.contains(">two</text>"));
        assert_eq!(svg, figure.svg());
        figure.categories = vec!["x".into(), "y".into()];
        assert_eq!(figure.svg().matches("<rect").count(), 1 + 3 + 2, "ground, bars, legend");
        assert!(figure.csv().contains(",one,y,2,"));
    }
}
