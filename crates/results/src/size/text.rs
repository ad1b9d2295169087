//! The result as a table, and each formula with its terms below it.

use super::{Request, Row, bdp, binary, brief, distance, priorities, reached, rows, size};
use crate::human;
use crate::table::Align::{Left, Right};
use crate::table::{aligned, paragraph, wrapped};
use xoff_net::units::{Bytes, Length};
use xoff_plan::size::{Question, SCHEMES};
use xoff_schemes::flow_control::size::{Unit, grouped};

/// The answer for the named schemes, and the needs of the link under every scheme.
pub fn render(request: &Request<'_>) -> String {
    let Request { question, distance, buffer, .. } = *request;
    let rows = rows(request, &SCHEMES);
    let details: String = rows.iter().map(|row| format!("\n{}", details(question, row))).collect();
    let (head, table) = (head(question, distance, buffer), table(question, &rows, buffer));
    format!("{}\n{head}\n{table}{details}", brief::verdict(request))
}

fn head(question: &Question, length: Length, buffer: Option<Bytes>) -> String {
    let reach = buffer
        .map_or(String::new(), |b| format!(" Column \"{b}:\": longest link that this buffer supports."));
    paragraph(&format!(
        "{} over {length}, delay {} one way. BDP (rate × round-trip delay): {}. Packets up to {}, {}. Numbers are \
         totals for one end of the link. Column \"/ deep\": buffer over the buffer of pfc-deep.{reach}",
        question.rate,
        human::time(question.link(length).delay),
        size(bdp(question, length)),
        question.mtu,
        priorities(question.priorities),
    ))
}

fn yes(it: bool) -> String {
    if it { "yes" } else { "no" }.into()
}

/// A share of the link as a percentage, with only significant digits. A note names the case of more than the
/// whole link.
fn percent(share: f64) -> String {
    match 100.0 * share {
        p if p >= 100.0 => ">= 100%".into(),
        p if p >= 0.001 => format!("{p:.4}%"),
        p if p >= 0.000_001 => format!("{p:.6}%"),
        p => format!("{p:.1e}%"),
    }
}

fn table(question: &Question, rows: &[Row], buffer: Option<Bytes>) -> String {
    let mut align = vec![Left, Right, Right, Right, Right, Right, Right, Left, Left];
    let deep = rows.iter().find(|r| r.sizing.scheme == "pfc-deep").map(|r| r.sizing.buffer());
    let heads = ["scheme", "buffer", "", "/ deep", "headroom", "control", "of link", "lossless", "full rate"];
    let mut head: Vec<String> = heads.map(String::from).into();
    if let Some(buffer) = buffer {
        head.push(format!("{buffer}:"));
        align.push(Right);
    }
    let mut lines = vec![head];
    for row in rows {
        let s = &row.sizing;
        let mut line = vec![
            s.scheme.to_string(),
            human::bytes(s.buffer()),
            binary(s.buffer()),
            deep.map_or(String::new(), |deep| format!("{:.3}", s.buffer() as f64 / deep as f64)),
            human::bytes(s.headroom.saturating_mul(s.shares)),
            format!("{}/s", human::bytes(s.control.bytes_per_second())),
            percent(s.control.share(question.rate.0)),
            yes(s.promise.lossless),
            yes(s.promise.full_throughput),
        ];
        line.extend(row.reach.map(reached));
        lines.push(line);
    }
    aligned(&lines, &align)
}

fn details(question: &Question, row: &Row) -> String {
    let s = &row.sizing;
    let mut text = wrapped(&format!("{:<10} ", s.scheme), "           ", s.formula);
    let term = |name: &str, bytes: u64| vec![" ".repeat(9), format!("{} B", grouped(bytes)), name.into()];
    let mut terms: Vec<_> = s.terms.iter().map(|(name, bytes)| term(name, *bytes)).collect();
    let sum = match s.shares {
        1 => "total".to_string(),
        n => format!("total per priority; for all {n} priorities: {} B", grouped(s.buffer())),
    };
    terms.push(term(&sum, s.share()));
    text += &aligned(&terms, &[Left, Right, Left]);
    let figures = s.thresholds.iter().map(|f| match f.unit {
        Unit::Bytes => format!("{} {} B", f.name, grouped(f.value)),
        Unit::Quanta => format!("{} {} quanta", f.name, grouped(f.value)),
        Unit::Blocks => format!("{} {} blocks", f.name, grouped(f.value)),
        Unit::Credits => format!("{} {} credits", f.name, grouped(f.value)),
        Unit::Time => format!("{} {}", f.name, human::time(f.value)),
    });
    let figures: Vec<String> = figures.collect();
    let indent = "           ";
    text += &wrapped(indent, indent, &format!("thresholds: {}", figures.join(", ")));
    let c = &s.control;
    let frames = match c.frames {
        1 => format!("a frame of {} B", c.frame),
        n => format!("{n} frames of {} B", c.frame),
    };
    let (every, share) = (human::time(c.every), percent(c.share(question.rate.0)));
    let control = format!("control: {frames} every {every}, {share} of the link, {}", c.when);
    text += &wrapped(indent, indent, &control);
    if let (Some(most), Some(reach)) = (s.most, row.format_reach) {
        let limit = format!("{} at most {}, enough for {}", most.because, size(most.bytes), reached(reach));
        let bare = bare_reach(question, most.bytes)
            .map_or(String::new(), |metres| format!(" ({} if only the cable counts)", distance(metres)));
        text += &wrapped(indent, indent, &format!("{limit}{bare}"));
    }
    for note in &s.notes {
        text += &wrapped(indent, indent, &format!("note: {note}"));
    }
    text + &wrapped(indent, indent, &format!("source: {}", s.source))
}

/// Metres of cable that `bytes` fill, there and back.
fn bare_reach(question: &Question, bytes: u64) -> Option<u64> {
    let per_metre = 2 * 5_000 * u128::from(question.rate.0);
    let bits = u128::from(bytes) * 8 * u128::from(xoff_kernel::time::SECOND);
    u64::try_from(bits / per_metre).ok()
}
