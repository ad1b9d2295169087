//! The claims of an experiment as a picture: the paper's numbers and the measured ones on one axis.
//!
//! Claims have many units. So the axis is the *share of the paper's effect*: 0 is where neither of two schemes
//! wins (or the value 0, if nothing is compared), 1 is the end of the paper's range that is nearer to it.

use std::fmt::Write as _;

use crate::report::{ClaimResult, ExperimentResult, MeasureResult, short, with_unit};
use crate::verdict::Verdict;
use xoff_results::svg::escaped;

/// What the axis shows; values beyond are drawn at its end, as an arrow.
const AXIS: [f64; 2] = [-1.0, 3.0];
const WIDTH: f64 = 900.0;
/// Where the axis begins and ends.
const LEFT: f64 = 330.0;
const RIGHT: f64 = 700.0;
const TOP: f64 = 44.0;
const ROW: f64 = 20.0;
/// Most characters of a name.
const NAME: usize = 50;

/// A measure of one of the paper's claims with a range, as shares of the paper's effect.
struct Row {
    name: String,
    /// The paper's range; an open end is that of the axis.
    range: [f64; 2],
    mean: f64,
    /// The 95% confidence interval.
    interval: Option<[f64; 2]>,
    verdict: Verdict,
    numbers: String,
}

/// Whether the paper's claims have a number that was measured. Orderings have none.
pub fn has_numbers(e: &ExperimentResult) -> bool {
    rows(e).next().is_some()
}

/// The picture of the paper's claims with numbers; `None` if there are none.
pub fn chart(e: &ExperimentResult) -> Option<String> {
    has_numbers(e).then(|| svg(&rows(e).collect::<Vec<_>>()))
}

fn rows(e: &ExperimentResult) -> impl Iterator<Item = Row> {
    let claims = e.claims.iter().filter(|c| !c.own());
    claims.flat_map(|c| c.measures.iter().filter_map(|m| row(c, m)))
}

fn row(claim: &ClaimResult, m: &MeasureResult) -> Option<Row> {
    let neutral = m.combine.neutral().filter(|_| m.than_at.is_empty()).unwrap_or(0.0);
    let ends: Vec<f64> = [m.high, m.low].into_iter().flatten().collect();
    let near = ends.into_iter().min_by(|a, b| (a - neutral).abs().total_cmp(&(b - neutral).abs()))?;
    let mean = m.mean.filter(|_| m.expect.is_none() && near != neutral)?;
    let share = |x: f64| (x - neutral) / (near - neutral);
    let ordered = |[a, b]: [f64; 2]| [a.min(b), a.max(b)];
    // Where a smaller number is the larger effect, the lower end of the range is the upper one of the axis.
    let open = if near > neutral { AXIS } else { [AXIS[1], AXIS[0]] };
    let end = |end: Option<f64>, open| end.map_or(open, share);
    let name = claim.id.split_once('.').map_or(claim.id.as_str(), |(_, name)| name);
    let which = if claim.measures.len() > 1 { format!(", {}", m.which()) } else { String::new() };
    Some(Row {
        name: cut(&format!("{name}{which}")),
        range: ordered([end(m.low, open[0]), end(m.high, open[1])]),
        mean: share(mean),
        interval: m.from.zip(m.to).map(|(a, b)| ordered([share(a), share(b)])),
        verdict: m.verdict,
        numbers: format!("{}; {}", m.claimed(), with_unit(short(mean), m.own_unit())),
    })
}

/// At most [`NAME`] characters, cut between words.
fn cut(name: &str) -> String {
    let Some((end, _)) = name.char_indices().nth(NAME) else { return name.to_string() };
    let words = name[..end].rsplit_once(' ').map_or(&name[..end], |(words, _)| words);
    format!("{} …", words.trim_end_matches(','))
}

fn x(share: f64) -> f64 {
    let part = (share.clamp(AXIS[0], AXIS[1]) - AXIS[0]) / (AXIS[1] - AXIS[0]);
    LEFT + part * (RIGHT - LEFT)
}

/// Its colour, of those of Okabe and Ito, and whether its mark is filled.
fn look(verdict: Verdict) -> (&'static str, bool) {
    match verdict {
        Verdict::Reproduced => ("#009e73", true),
        Verdict::SameDirection => ("#0072b2", false),
        Verdict::Contradicted => ("#d55e00", true),
        _ => ("#555555", false),
    }
}

fn svg(rows: &[Row]) -> String {
    let bottom = TOP + rows.len() as f64 * ROW;
    let height = bottom + 42.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    let o = &mut out;
    legend(o);
    for share in [-1, 0, 1, 2, 3] {
        let (at, colour) =
            (x(f64::from(share)), if share == 0 || share == 1 { "#555555" } else { "#dddddd" });
        let _ =
            writeln!(o, "<line x1=\"{at}\" y1=\"{TOP}\" x2=\"{at}\" y2=\"{bottom}\" stroke=\"{colour}\"/>");
        text(o, at, bottom + 15.0, "middle", &share.to_string());
    }
    let label = "share of the paper's effect (0: none, 1: the paper's number)";
    text(o, (LEFT + RIGHT) / 2.0, bottom + 33.0, "middle", label);
    for (i, row) in rows.iter().enumerate() {
        let y = TOP + (i as f64 + 0.5) * ROW;
        text(o, LEFT - 8.0, y + 4.0, "end", &row.name);
        text(o, RIGHT + 8.0, y + 4.0, "start", &row.numbers);
        // A single number is a line that the axis at 1 does not hide.
        let ([from, to], top) = (row.range.map(x), y - 6.0);
        let (from, width, fill) = match to - from {
            width if width < 4.0 => (from - 2.0, 4.0, "#777777"),
            width => (from, width, "#bbbbbb"),
        };
        let _ = writeln!(
            o,
            "<rect x=\"{from:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"12\" fill=\"{fill}\"/>"
        );
        let (colour, filled) = look(row.verdict);
        if let Some([a, b]) = row.interval.map(|i| i.map(x)) {
            let _ = writeln!(
                o,
                "<line x1=\"{a:.1}\" y1=\"{y}\" x2=\"{b:.1}\" y2=\"{y}\" stroke=\"{colour}\" stroke-width=\"2\"/>"
            );
        }
        mark(o, row.mean, y, colour, filled);
    }
    out.push_str("</svg>\n");
    out
}

/// A circle, or an arrow to a value beyond the axis.
fn mark(o: &mut String, share: f64, y: f64, colour: &str, filled: bool) {
    let at = x(share);
    if (AXIS[0]..=AXIS[1]).contains(&share) {
        return circle(o, at, y, colour, filled);
    }
    let tip = at + if share > AXIS[1] { 7.0 } else { -7.0 };
    let (above, below, fill) = (y - 5.0, y + 5.0, if filled { colour } else { "#ffffff" });
    let _ = writeln!(
        o,
        "<path d=\"M{at:.1} {above}L{tip:.1} {y}L{at:.1} {below}Z\" fill=\"{fill}\" stroke=\"{colour}\"/>"
    );
}

fn circle(o: &mut String, at: f64, y: f64, colour: &str, filled: bool) {
    let fill = if filled { colour } else { "#ffffff" };
    let _ = writeln!(
        o,
        "<circle cx=\"{at:.1}\" cy=\"{y}\" r=\"4\" fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"2\"/>"
    );
}

fn legend(o: &mut String) {
    let verdicts = [Verdict::Reproduced, Verdict::SameDirection, Verdict::Undecided, Verdict::Contradicted];
    let mut at = 20.0;
    for verdict in verdicts {
        let (colour, filled) = look(verdict);
        circle(o, at, 20.0, colour, filled);
        text(o, at + 9.0, 24.0, "start", verdict.name());
        at += 30.0 + 7.0 * verdict.name().len() as f64;
    }
    let _ = writeln!(o, "<rect x=\"{at}\" y=\"14\" width=\"20\" height=\"12\" fill=\"#bbbbbb\"/>");
    text(
        o,
        at + 26.0,
        24.0,
        "start",
        "the paper's range; a line is the 95% interval. Right: paper; measured",
    );
}

fn text(o: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let text = escaped(text);
    let _ = writeln!(o, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Combine;
    use serde_json::json;

    fn measure(combine: Combine, low: Option<f64>, high: Option<f64>, mean: f64) -> MeasureResult {
        let none = json!({});
        let text = json!({
            "case": null, "says": null, "run": "a", "against": "b", "metric": "fct", "against_metric": null,
            "at": none, "against_at": none, "largest_over": null, "combine": combine, "unit": "us",
            "expect": null, "low": low, "high": high, "subject_mean": null, "against_mean": null,
            "values": [], "mean": mean, "as_printed": false, "from": mean - 0.1, "to": mean + 0.1,
            "verdict": Verdict::Reproduced, "notes": []
        });
        serde_json::from_value(text).unwrap()
    }

    fn claim() -> ClaimResult {
        let claim = json!({
            "paper": "p", "id": "e.c", "statement": "", "subject": "", "against": "", "metric": "",
            "relation": "ratio", "low": null, "high": null, "per_case": {}, "verdict": Verdict::Reproduced,
            "reason": null, "measures": []
        });
        serde_json::from_value(claim).unwrap()
    }

    fn shares(combine: Combine, low: Option<f64>, high: Option<f64>, mean: f64) -> ([f64; 2], f64) {
        let row = row(&claim(), &measure(combine, low, high, mean)).unwrap();
        (row.range, row.mean)
    }

    /// By hand: of a ratio of 2 to 3 the effect begins at 1, so 2 is 1 and 3 is 2.
    #[test]
    fn numbers_are_shares_of_the_papers_effect() {
        assert_eq!(shares(Combine::Ratio, Some(2.0), Some(3.0), 2.5), ([1.0, 2.0], 1.5));
        assert_eq!(shares(Combine::Ratio, None, Some(0.5), 0.75), ([1.0, 3.0], 0.5));
        assert_eq!(shares(Combine::Reduction, Some(0.4), Some(0.4), -0.2), ([1.0, 1.0], -0.5));
        assert_eq!(shares(Combine::Value, None, Some(10.0), 5.0), ([-1.0, 1.0], 0.5));
    }

    /// A similar pair has no effect, and an ordering no number.
    #[test]
    fn claims_without_a_number_have_no_row() {
        let claim = |m: MeasureResult| row(&claim(), &m).is_some();
        let numbered = measure(Combine::Ratio, Some(2.0), None, 2.0);
        assert!(claim(numbered.clone()));
        assert!(!claim(measure(Combine::Ratio, Some(1.0), Some(1.0), 1.0)));
        assert!(!claim(MeasureResult { expect: Some(crate::experiment::Side::Less), ..numbered.clone() }));
        assert!(!claim(MeasureResult { mean: None, ..numbered }));
    }
}
