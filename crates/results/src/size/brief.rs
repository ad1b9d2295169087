//! The short output: a sentence for each scheme, the response time, and the parts of each need.

use super::{DEFAULT, Request, Response, Row, priorities, reached, rows};
use crate::human;
use crate::table::Align::{Left, Right};
use crate::table::{aligned, paragraph, wrapped};
use xoff_kernel::time::Time;
use xoff_plan::size::{Question, Reach};
use xoff_schemes::flow_control::size::{Basis, Sizing, Term, bytes_in, grouped};

const MICROSECOND: Time = 1_000_000;

/// Parts below this share of the need are in one row.
const SMALL: f64 = 0.01;

/// The needs of the named schemes.
pub fn render(request: &Request<'_>) -> String {
    let parts: String = chosen(request).iter().map(|row| format!("\n{}", parts(request, row))).collect();
    format!("{}{parts}\n{}", verdict(request), rest(request.question))
}

fn chosen(request: &Request<'_>) -> Vec<Row> {
    rows(request, if request.schemes.is_empty() { &DEFAULT } else { request.schemes })
}

/// The sentences, and what is known of the response time.
pub(super) fn verdict(request: &Request<'_>) -> String {
    let text: String = sentences(request).iter().map(|sentence| paragraph(sentence)).collect();
    text + &response(request)
}

/// A sentence for each of the named schemes.
pub(super) fn sentences(request: &Request<'_>) -> Vec<String> {
    chosen(request).iter().map(|row| sentence(request.question, &row.sizing)).collect()
}

fn sentence(question: &Question, s: &Sizing) -> String {
    let (need, basis) = (human::bytes(s.need().1), s.basis.name());
    let mut text = format!("{} needs {need} of {basis} per {}", s.title, s.per);
    if s.basis == Basis::Headroom {
        let rest = human::bytes(s.share().saturating_sub(s.need().1));
        text += &format!(", {} of buffer with {rest} up to XOFF", human::bytes(s.share()));
    }
    if s.shares > 1 {
        text += &format!(", {} for {} priorities", human::bytes(s.buffer()), question.priorities);
    }
    let beyond = s.most.filter(|_| !s.is_in_reach());
    if let Some(most) = beyond {
        text += &format!(", but {} at most {}", most.because, human::bytes(most.bytes));
    }
    if !s.promise.lossless {
        text += if beyond.is_some() { ", and" } else { ", but" };
        text += " packets can still be dropped";
    }
    text + "."
}

fn response(request: &Request<'_>) -> String {
    let Question { rate, response_time, .. } = request.question;
    let bytes = human::bytes(bytes_in(rate.0, response_time.0));
    let time = human::time(response_time.0);
    match request.response {
        Response::NotGiven => {
            let more = human::bytes(bytes_in(rate.0, MICROSECOND));
            wrapped(
                "warning: ",
                "  ",
                &format!(
                    "The response time of the switches is not included (--response-time or --asic): each 1 us \
                     adds {more} at {rate}."
                ),
            )
        }
        Response::Given => {
            paragraph(&format!("The response time is {time} (--response-time): {bytes} at {rate}."))
        }
        Response::Asic(asic) => paragraph(&format!(
            "The response time is {time} (--asic {}): {bytes} at {rate}. Source: {}.",
            asic.name, asic.source
        )),
    }
}

/// The parts of a need, and the largest of them.
fn parts(request: &Request<'_>, row: &Row) -> String {
    let s = &row.sizing;
    let (terms, total) = s.need();
    let share = |bytes: u64| bytes as f64 / total.max(1) as f64;
    let percent = |bytes: u64| format!("{:.1}%", 100.0 * share(bytes));
    let is_response = |name: &str| name.contains("response time");
    let largest = terms.iter().rev().max_by_key(|term| term.1);
    let basis = s.basis.name();
    let decides = largest
        .map_or(String::new(), |(name, bytes)| format!("; largest part: {name} ({})", percent(*bytes)));
    let mut text = wrapped("", "  ", &format!("{} {basis}{decides}", s.title));
    let (small, large): (Vec<&Term>, Vec<&Term>) =
        terms.iter().partition(|(name, bytes)| !is_response(name) && share(*bytes) < SMALL);
    let line =
        |bytes: u64, name: String| vec![String::new(), format!("{} B", grouped(bytes)), percent(bytes), name];
    let named = |&&(name, bytes): &&Term| match request.response {
        Response::NotGiven if is_response(name) => line(bytes, format!("{name} (not given)")),
        _ => line(bytes, name.to_string()),
    };
    let mut lines: Vec<_> = large.iter().map(named).collect();
    let names: Vec<&str> = small.iter().filter(|term| term.1 > 0).map(|term| term.0).collect();
    if !names.is_empty() {
        let bytes = small.iter().fold(0, |sum: u64, term| sum.saturating_add(term.1));
        let text = match names.len() {
            1..=3 => human::listed(&names),
            n => format!("{n} smaller parts"),
        };
        lines.push(line(bytes, text));
    }
    lines.push(line(total, format!("{basis} per {}", s.per)));
    text += &aligned(&lines, &[Left, Right, Right, Left]);
    if let (Some(buffer), Some(reach)) = (request.buffer, row.reach) {
        let supports = match reach {
            Reach::Nowhere => "no link".into(),
            Reach::UpTo(_) => format!("a link of at most {}", reached(reach)),
            Reach::Anywhere => "a link of any length".into(),
        };
        let all = if s.basis == Basis::Headroom { ", XOFF included," } else { "" };
        text += &wrapped("  ", "  ", &format!("{buffer} of buffer{all} supports {supports}."));
    }
    text
}

fn rest(question: &Question) -> String {
    paragraph(&format!(
        "Packets up to {}, {}. --all prints all schemes with thresholds, formulas and sources.",
        question.mtu,
        priorities(question.priorities)
    ))
}
