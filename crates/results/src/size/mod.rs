//! The needs of links, for people and programs: the output of `xoff size`.

mod brief;
pub mod curve;
pub mod links;
mod text;

use crate::human;
use serde_json::{Value, json};
use xoff_net::units::{Bytes, Length};
use xoff_plan::size::response::Asic;
use xoff_plan::size::{Question, Reach, SCHEMES};
use xoff_schemes::flow_control::size::{Figure, Sizing, Unit};

pub use brief::render;
pub use text::render as render_all;

/// The origin of the question's response time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    NotGiven,
    Given,
    Asic(&'static Asic),
}

/// A question about a link of length `distance`.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub question: &'a Question,
    pub distance: Length,
    /// Of this buffer, the distance that it supports.
    pub buffer: Option<Bytes>,
    /// The schemes that are named; [`DEFAULT`] where there are none.
    pub schemes: &'a [&'static str],
    pub response: Response,
}

/// The schemes of the short output.
pub use xoff_schemes::flow_control::registry::SIZE_STANDARD as DEFAULT;

/// Everything that is said of one scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub sizing: Sizing,
    /// The distance for which the given buffer is enough.
    pub reach: Option<Reach>,
    /// The longest link on which it works, where its frames or timers limit it.
    pub format_reach: Option<Reach>,
}

/// Asks `schemes` about the link, and about the buffer if given.
pub fn rows(request: &Request<'_>, schemes: &[&'static str]) -> Vec<Row> {
    let Request { question, distance, buffer, .. } = *request;
    let row = |scheme: &&'static str| {
        let sizing = question.compute_size(scheme, distance);
        let limited = sizing.most.is_some();
        Row {
            reach: buffer.map(|b| question.reach(scheme, b)),
            format_reach: limited.then(|| question.format_reach(scheme)),
            sizing,
        }
    };
    schemes.iter().map(row).collect()
}

/// The result as JSON, of all schemes if none is named; docs/SIZE.md has its keys.
pub fn json(request: &Request<'_>) -> Value {
    let Request { question, distance, buffer, .. } = *request;
    let link = question.link(distance);
    let named: &[&str] = if request.schemes.is_empty() { &SCHEMES } else { request.schemes };
    let schemes: Vec<Value> = rows(request, named).iter().map(|row| scheme(row, question.rate.0)).collect();
    let asic = match request.response {
        Response::Asic(asic) => Some(asic),
        _ => None,
    };
    json!({
        "answer": brief::sentences(request).join(" "),
        "link": {
            "rate_bps": link.rate,
            "distance_mm": distance.0,
            "delay_ps": link.delay,
            "bdp_bytes": bdp(question, distance),
            "mtu_bytes": link.largest,
            "priorities": question.priorities,
        },
        "settings": {
            "response_time_ps": question.response_time.0,
            "response_time_given": request.response != Response::NotGiven,
            "asic": asic.map(|asic| json!({ "name": asic.name, "source": asic.source })),
            "slot_ps": question.slot.0,
            "processing_ps": question.processing.0,
            "jitter_ps": question.jitter.0,
            "repair_every": question.repair_every,
            "xoff_bytes": question.xoff.0,
            "update_ps": question.update.map(|t| t.0),
            "fan_in": question.fan_in,
            "buffer_bytes": buffer.map(|b| b.0),
        },
        "schemes": schemes,
    })
}

/// Rate times round trip, in bytes.
fn bdp(question: &Question, distance: Length) -> u64 {
    let link = question.link(distance);
    xoff_schemes::flow_control::size::bytes_in(link.rate, 2 * link.delay)
}

fn scheme(row: &Row, rate: u64) -> Value {
    let s = &row.sizing;
    let figures: Vec<Value> = s.thresholds.iter().map(figure).collect();
    let terms: Vec<Value> = s.terms.iter().map(|t| json!({ "name": t.0, "bytes": t.1 })).collect();
    json!({
        "scheme": s.scheme,
        "title": s.title,
        "need": { "of": s.basis.name(), "bytes": s.need().1, "per": s.per },
        "buffer_bytes": s.buffer(),
        "shares": s.shares,
        "share_bytes": s.share(),
        "headroom_bytes": s.headroom,
        "terms": terms,
        "thresholds": figures,
        "control": {
            "frame_bytes": s.control.frame,
            "frames": s.control.frames,
            "every_ps": s.control.every,
            "bytes_per_second": s.control.bytes_per_second(),
            "share_of_link": s.control.share(rate),
            "when": s.control.when,
        },
        "lossless": s.promise.lossless,
        "full_throughput": s.promise.full_throughput,
        "expressible_bytes": s.most.map(|most| most.bytes),
        "reach": row.reach.map(far),
        "format_reach": row.format_reach.map(far),
        "formula": s.formula,
        "source": s.source,
        "notes": s.notes,
    })
}

/// As an object: `up-to` so many metres, `nowhere`, or `anywhere`.
fn far(reach: Reach) -> Value {
    let (kind, metres) = match reach {
        Reach::Nowhere => ("nowhere", None),
        Reach::UpTo(metres) => ("up-to", Some(metres)),
        Reach::Anywhere => ("anywhere", None),
    };
    json!({ "kind": kind, "metres": metres })
}

fn figure(f: &Figure) -> Value {
    let unit = match f.unit {
        Unit::Bytes => "bytes",
        Unit::Quanta => "quanta",
        Unit::Blocks => "blocks",
        Unit::Credits => "credits",
        Unit::Time => "ps",
    };
    json!({ "name": f.name, "value": f.value, "unit": unit })
}

/// Bytes in decimal and binary units: `300 MB (286.1 MiB)`.
fn size(bytes: u64) -> String {
    format!("{} ({})", human::bytes(bytes), binary(bytes))
}

/// Bytes in binary units, one decimal: `286.1 MiB`.
fn binary(bytes: u64) -> String {
    let units = [(1u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|u| bytes >= u.0) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
        None => format!("{bytes} B"),
    }
}

/// A distance: `613.4 km`, `480 m`.
fn distance(metres: u64) -> String {
    match metres {
        0..1_000 => format!("{metres} m"),
        1_000..100_000 => format!("{:.2} km", metres as f64 / 1e3),
        _ => format!("{:.1} km", metres as f64 / 1e3),
    }
}

fn reached(reach: Reach) -> String {
    match reach {
        Reach::Nowhere => "0 km".into(),
        Reach::UpTo(metres) => distance(metres),
        Reach::Anywhere => "any distance".into(),
    }
}

fn priorities(count: u8) -> String {
    match count {
        1 => "one lossless priority".into(),
        n => format!("{n} lossless priorities"),
    }
}
