//! The metrics that are compared between runs. A metric is read from `summary.json`, so a new run and one
//! that a resumed grid finds on disk give the same value.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::columns::Column;
use crate::statistics::ALL;

/// The quantity of a metric, which determines how it is stored and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Count,
    Bytes,
    /// Picoseconds of simulated time.
    Time,
    /// A ratio, such as a slowdown.
    Ratio,
    Rate,
}

/// Where `summary.json` has a metric: JSON pointers.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// In the summary itself.
    Top(&'static str),
    /// In the group of all flows.
    Flows(&'static str),
    /// In the summary itself, the sum of several.
    Sum(&'static [&'static str]),
    /// 1 if there is anything but null, else 0.
    Present(&'static str),
    /// Of every job; the largest, if all have it.
    Jobs(&'static str),
}

/// A number by which runs are compared.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name: a column of `grid.parquet`, a key of the comparison.
    pub name: &'static str,
    pub unit: Unit,
    /// Whether a run may have none, such as a slowdown where no flow finished.
    pub optional: bool,
    place: Place,
}

const fn metric(name: &'static str, unit: Unit, place: Place) -> Metric {
    Metric { name, unit, optional: false, place }
}

const fn optional(name: &'static str, unit: Unit, place: Place) -> Metric {
    Metric { name, unit, optional: true, place }
}

/// The kinds of drops.
const DROPS: [&str; 5] = [
    "/drops/lossless_packets",
    "/drops/lossy_packets",
    "/drops/expired_packets",
    "/drops/fault_packets",
    "/drops/scheme_packets",
];

/// All metrics, in the order in which they are stored.
pub const METRICS: [Metric; 35] = {
    use Place::{Flows, Jobs, Present, Sum, Top};
    use Unit::{Bytes, Count, Rate, Ratio, Time};
    [
        metric("simulated_ps", Time, Top("/simulated_ps")),
        metric("flows", Count, Flows("/flows")),
        metric("finished", Count, Flows("/finished")),
        metric("failed", Count, Flows("/failed")),
        optional("slowdown_mean", Ratio, Flows("/slowdown/mean")),
        optional("slowdown_p50", Ratio, Flows("/slowdown/p50")),
        optional("slowdown_p95", Ratio, Flows("/slowdown/p95")),
        optional("slowdown_p99", Ratio, Flows("/slowdown/p99")),
        optional("slowdown_p999", Ratio, Flows("/slowdown/p999")),
        metric("goodput_bps", Rate, Flows("/goodput_bps")),
        optional("flow_rate_bps", Rate, Flows("/flow_rate_bps")),
        optional("job_time_ps", Time, Jobs("/time_ps")),
        metric("retransmitted", Count, Flows("/retransmitted")),
        metric("drops", Count, Sum(&DROPS)),
        metric("lossless_drops", Count, Top("/drops/lossless_packets")),
        metric("lossy_drops", Count, Top("/drops/lossy_packets")),
        metric("expired_drops", Count, Top("/drops/expired_packets")),
        metric("fault_drops", Count, Top("/drops/fault_packets")),
        metric("pauses", Count, Top("/pauses/count")),
        metric("paused_ps", Time, Top("/pauses/total_ps")),
        metric("longest_pause_ps", Time, Top("/pauses/longest_ps")),
        metric("paused_queues", Count, Top("/pauses/queues")),
        metric("pause_frames", Count, Top("/pauses/pause_frames")),
        optional("own_ps", Time, Top("/blocking/own_ps")),
        optional("victim_ps", Time, Top("/blocking/victim_ps")),
        optional("source_own_ps", Time, Top("/blocking/source_own_ps")),
        optional("source_victim_ps", Time, Top("/blocking/source_victim_ps")),
        metric("deadlocks", Count, Present("/deadlock")),
        optional("deadlock_ps", Time, Top("/deadlock/closed_ps")),
        optional("buffer_peak", Bytes, Top("/peaks/buffer/bytes")),
        optional("headroom_peak", Bytes, Top("/peaks/headroom/bytes")),
        optional("queue_peak", Bytes, Top("/peaks/queue/bytes")),
        metric("sent", Count, Top("/counters/sent")),
        metric("events", Count, Top("/counters/events")),
        metric("packet_hops", Count, Top("/counters/packet_hops")),
    ]
};

pub fn index(name: &str) -> usize {
    METRICS.iter().position(|m| m.name == name).unwrap_or_else(|| panic!("no metric is called {name}"))
}

impl Metric {
    /// The least value that is possible: no flow is faster than ideal, and nothing else is negative.
    pub fn least(&self) -> f64 {
        if self.name.starts_with("slowdown") { 1.0 } else { 0.0 }
    }

    /// Reads it from a summary, or from a group of its flows for [`Place::Flows`].
    fn read(&self, summary: &Value, flows: &Value) -> Option<Number> {
        let read = |v: &Value| match self.unit {
            Unit::Count | Unit::Bytes | Unit::Time => v.as_u64().map(Number::Int),
            Unit::Ratio | Unit::Rate => v.as_f64().map(Number::Float),
        };
        let whole = |at: &&str| summary.pointer(at).and_then(Value::as_u64);
        match self.place {
            Place::Top(at) => summary.pointer(at).and_then(read),
            Place::Flows(at) => flows.pointer(at).and_then(read),
            Place::Sum(all) => all.iter().map(whole).sum::<Option<u64>>().map(Number::Int),
            Place::Jobs(at) => {
                let all =
                    summary["jobs"].as_array()?.iter().map(|job| job.pointer(at).and_then(Value::as_u64));
                all.collect::<Option<Vec<u64>>>()?.into_iter().max().map(Number::Int)
            }
            Place::Present(at) => summary.pointer(at).map(|v| Number::Int(u64::from(!v.is_null()))),
        }
    }

    /// Whether a part of the flows has it.
    fn is_of_flows(&self) -> bool {
        matches!(self.place, Place::Flows(_))
    }
}

/// A value of a metric: whole numbers stay exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Int(u64),
    Float(f64),
}

impl Number {
    /// The value as a floating-point number, rounded above 2^53.
    pub fn float(self) -> f64 {
        match self {
            Number::Int(n) => n as f64,
            Number::Float(x) => x,
        }
    }
}

/// A finished run in numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    pub seed: u64,
    /// Why it ended, as in the summary.
    pub stop: String,
    /// By metric, in the order of [`METRICS`].
    pub values: Vec<Option<Number>>,
    /// The metrics of flows for each class and each range of sizes, with the name of a column: `class.incast.slowdown_p99`.
    pub parts: Vec<(String, Unit, Option<Number>)>,
    /// The texts of its warnings.
    pub warnings: Vec<String>,
}

impl Row {
    pub fn lost_lossless(&self) -> bool {
        self.values[index("lossless_drops")].is_some_and(|n| n != Number::Int(0))
    }

    pub fn deadlocked(&self) -> bool {
        self.values[index("deadlocks")] == Some(Number::Int(1))
    }

    /// Reads a run's numbers from its `summary.json`; the error is the missing part.
    pub fn read(summary: &Value) -> Result<Self, String> {
        let missing = |what: &str| format!("its summary has no {what}");
        let groups = summary["sizes"].as_array();
        let flows =
            groups.and_then(|g| g.iter().find(|g| g["name"] == ALL)).ok_or(missing("group of all flows"))?;
        let mut values = Vec::new();
        for metric in METRICS {
            let number = metric.read(summary, flows);
            if number.is_none() && !metric.optional {
                return Err(missing(metric.name));
            }
            values.push(number);
        }
        let notes = summary["notes"].as_array().ok_or(missing("notes"))?;
        let warnings = notes.iter().filter(|n| n["level"] == "warning").filter_map(|n| n["text"].as_str());
        Ok(Self {
            seed: summary["seed"].as_u64().ok_or(missing("seed"))?,
            stop: summary["stop"].as_str().ok_or(missing("stop"))?.to_string(),
            values,
            parts: parts(summary),
            warnings: warnings.map(String::from).collect(),
        })
    }
}

/// The metrics of flows for each class and each range of sizes.
fn parts(summary: &Value) -> Vec<(String, Unit, Option<Number>)> {
    let mut parts = Vec::new();
    for (kind, key) in [("class", "classes"), ("size", "sizes")] {
        let groups = summary[key].as_array().into_iter().flatten();
        for group in groups.filter(|group| kind == "class" || group["name"] != ALL) {
            let name = group["name"].as_str().unwrap_or_default();
            let of_flows = METRICS.iter().filter(|metric| metric.is_of_flows());
            parts.extend(of_flows.map(|metric| {
                (format!("{kind}.{name}.{}", metric.name), metric.unit, metric.read(&Value::Null, group))
            }));
        }
    }
    parts
}

/// The column of a metric.
pub fn column(metric: usize, rows: &[&Row]) -> Column {
    values(METRICS[metric].unit, rows.iter().map(|r| r.values[metric]))
}

/// The columns of [`Row::parts`]: all that any of `rows` has.
pub fn part_columns(all: &[&Row], rows: &[&Row]) -> Vec<(String, Column)> {
    let mut found: Vec<(&str, Unit)> = Vec::new();
    let mut seen = HashSet::new();
    for (name, unit, _) in all.iter().flat_map(|row| &row.parts) {
        if seen.insert(name.as_str()) {
            found.push((name, *unit));
        }
    }
    let mut columns: Vec<(&str, Unit, Vec<Option<Number>>)> =
        found.into_iter().map(|(name, unit)| (name, unit, vec![None; rows.len()])).collect();
    let at: HashMap<&str, usize> = columns.iter().enumerate().map(|(i, column)| (column.0, i)).collect();
    for (row, parts) in rows.iter().map(|row| &row.parts).enumerate() {
        for (name, _, value) in parts {
            columns[at[name.as_str()]].2[row] = *value;
        }
    }
    columns.into_iter().map(|(name, unit, found)| (name.to_string(), values(unit, found))).collect()
}

fn values(unit: Unit, values: impl IntoIterator<Item = Option<Number>>) -> Column {
    let values = values.into_iter();
    let int = |value| if let Some(Number::Int(n)) = value { Some(n) } else { None };
    match unit {
        Unit::Ratio | Unit::Rate => Column::MaybeFloat(values.map(|v| v.map(Number::float)).collect()),
        Unit::Count | Unit::Bytes | Unit::Time => Column::MaybeInt(values.map(int).collect()),
    }
}
