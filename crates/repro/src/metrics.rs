//! The metrics of a run, read from its directory. A new run and an existing one give the same values.

use std::path::{Path, PathBuf};
use std::{cell::OnceCell, collections::BTreeSet};

use serde_json::Value as Json;

use crate::experiment::Metric;
use crate::names::{Names, named};
use xoff_outcome::report::{Fact, Facts, Unit};
use xoff_results::columns::read::{Columns, Table};
use xoff_results::{data::DataFile, layout::SUMMARY, statistics::nearest_rank};

/// The dimension of a value, which determines its units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    Count,
    /// A quotient, such as a slowdown.
    Ratio,
    /// Picoseconds.
    Time,
    Rate,
    /// Bytes.
    Size,
    /// Parts per million of a whole.
    Share,
}

impl Dimension {
    /// The units, each with its size; the first is taken where none is named.
    pub fn units(self) -> &'static [(&'static str, f64)] {
        match self {
            Dimension::Count | Dimension::Ratio => &[("", 1.0)],
            Dimension::Time => &[("us", 1e6), ("ns", 1e3), ("ms", 1e9), ("s", 1e12)],
            Dimension::Rate => &[("Gbps", 1e9), ("Mbps", 1e6), ("Tbps", 1e12)],
            Dimension::Share => &[("", 1e6), ("%", 1e4)],
            Dimension::Size => &[("kB", 1e3), ("B", 1.0), ("MB", 1e6), ("GB", 1e9)],
        }
    }
}

/// Where something is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In `summary.json`: one number, at this pointer.
    Summary(&'static str),
    /// A fact in `summary.json` of a section, or of the first that has it; of a list, its length.
    Fact(Option<&'static str>, &'static Fact),
    /// In `summary.json`: 1 if there is anything at this pointer, else 0.
    Present(&'static str),
    /// In `summary.json`: the greatest of a number of jobs.
    Jobs(&'static str),
    /// In `summary.json`: the worst of the values at a pointer in the operations of jobs.
    Operations(&'static str),
    /// One number of each flow, of which there is a statistic.
    Flows,
    /// One number of all flows together.
    Sum,
    /// In `pauses.parquet`: one number of all pauses together.
    Pauses,
    /// In `series.parquet`, of which there is a statistic.
    Series,
    /// The greatest of this column of a file, with the column of names.
    Peak(DataFile, &'static str, &'static str),
    /// The mean of such a column, over those where it is not 0.
    MeanInUse(DataFile, &'static str, &'static str),
    /// In `nodes.parquet`: how many are of this kind.
    Nodes(&'static str),
}

#[derive(Clone, Copy, Debug)]
pub struct Measurable {
    /// Its name, as `of` has it.
    pub name: &'static str,
    /// The dimension of the value; for a series its quantity determines it.
    pub dimension: Dimension,
    pub place: Place,
}

const fn m(name: &'static str, dimension: Dimension, place: Place) -> Measurable {
    Measurable { name, dimension, place }
}

pub const MEASURABLE: [Measurable; 56] = {
    use Dimension::{Count, Rate, Ratio, Size, Time};
    use Place::{Flows, Jobs, Nodes, Operations, Pauses, Peak, Present, Series, Sum, Summary};
    [
        m("deadlocks", Count, Present("/deadlock")),
        m("deadlock-time", Time, Summary("/deadlock/closed_ps")),
        m("deadlock-standing", Time, Summary("/deadlock/standing_ps")),
        m("deadlock-found", Time, Summary("/deadlock/found_after_ps")),
        m("deadlock-end", Time, Summary("/deadlock/ended_ps")),
        m("simulated-time", Time, Summary("/simulated_ps")),
        m("lossless-drops", Count, Summary("/drops/lossless_packets")),
        m("lossy-drops", Count, Summary("/drops/lossy_packets")),
        m("pause-frames", Count, Summary("/pauses/pause_frames")),
        m("waiting-ports", Count, Summary("/waiting")),
        m("named-waits", Count, Summary("/blocking/named_waits")),
        m("named-victims", Count, Summary("/blocking/named_victims")),
        m("resume-frames", Count, Summary("/pauses/resume_frames")),
        m("extra-control", Size, Summary("/counters/extra_control")),
        m("merge-time", Time, Summary("/blocking/merged_longest_ps")),
        m("merged-pauses", Count, Summary("/blocking/merged_pauses")),
        m("merged-victims", Time, Summary("/blocking/merged_victim_ps")),
        m("job-time", Time, Jobs("time_ps")),
        m("bus-bandwidth", Rate, Operations("/bus_bandwidth_bps")),
        m("straggler", Time, Operations("/straggler/behind_median_ps")),
        m("fct", Time, Flows),
        m("slowdown", Ratio, Flows),
        m("flow-rate", Rate, Flows),
        m("total-rate", Rate, Sum),
        m("completion", Time, Flows),
        m("delivery", Time, Flows),
        m("size", Size, Flows),
        m("flows", Count, Sum),
        m("finished", Count, Sum),
        m("unfinished", Count, Sum),
        m("share", Ratio, Sum),
        m("delivered", Size, Sum),
        m("retransmitted", Count, Sum),
        m("spurious", Count, Sum),
        m("out-of-order", Count, Sum),
        m("out-of-order-flows", Count, Sum),
        m("dropped", Count, Sum),
        m("timeouts", Count, Sum),
        m("marked", Count, Sum),
        m("own-time", Time, Sum),
        m("victim-time", Time, Sum),
        m("victim-flows", Count, Sum),
        m("named-victim-time", Time, Sum),
        m("pauses", Count, Pauses),
        m("pause-time", Time, Pauses),
        m("longest-pause", Time, Pauses),
        m("paused-ports", Count, Pauses),
        m("paused-queues", Count, Pauses),
        m("pause-links", Count, Pauses),
        m("series", Ratio, Series),
        m("memory", Size, Peak(DataFile::Nodes, "node", "buffer")),
        m("buffer-peak", Size, Peak(DataFile::Nodes, "node", "buffer_peak")),
        m("queue-peak", Size, Peak(DataFile::Ports, "port", "queue_peak")),
        m("headroom-peak", Size, Peak(DataFile::Accounts, "port", "headroom_peak")),
        m("hosts", Count, Nodes("host")),
        m("switches", Count, Nodes("switch")),
    ]
};

pub const QUANTITIES: [(&str, Dimension); 12] = [
    ("goodput", Dimension::Rate),
    ("throughput", Dimension::Rate),
    ("rate", Dimension::Rate),
    ("sequence", Dimension::Size),
    ("flow_goodput", Dimension::Rate),
    ("ate_high", Dimension::Rate),
    ("ate_other", Dimension::Rate),
    ("ate_weight", Dimension::Share),
    ("queue", Dimension::Size),
    ("buffered", Dimension::Size),
    ("paused_priorities", Dimension::Count),
    ("paused_queues", Dimension::Count),
];

pub const STATISTICS: [&str; 11] =
    ["mean", "min", "max", "sum", "stddev", "p30", "p50", "p90", "p95", "p99", "p999"];
/// Statistics only of a series: how long it is below or above `threshold`, in total and without interruption.
pub const TIMES: [&str; 4] = ["time-below", "time-above", "longest-below", "longest-above"];

/// The metric or fact with the name `name`: one of [`MEASURABLE`], or a fact.
pub fn measurable(name: &str) -> Option<Measurable> {
    MEASURABLE.iter().find(|m| m.name == name).copied().or_else(|| fact(name))
}

/// A fact that some mechanism reports: `section.fact`, or `*.fact` of any mechanism that has it. Of counts by
/// port the greatest, and with `.mean` the mean of those above 0.
fn fact(name: &str) -> Option<Measurable> {
    let (section, name) = name.split_once('.')?;
    let (name, mean) = name.strip_suffix(".mean").map_or((name, false), |name| (name, true));
    let sections = || xoff_schemes::facts().into_iter().filter(|f| section == "*" || f.section == section);
    let (of, fact) = sections().find_map(|f| Some((f.section, f.facts.iter().find(|f| f.name == name)?)))?;
    let dimension = match fact.unit {
        Unit::Count | Unit::List | Unit::ByPort => Dimension::Count,
        Unit::Time => Dimension::Time,
        Unit::Bytes => Dimension::Size,
        Unit::Rate => Dimension::Rate,
        Unit::Share => Dimension::Ratio,
        Unit::Text => return None,
    };
    let place = match (fact.unit, mean) {
        (Unit::ByPort, false) => Place::Peak(DataFile::Ports, "port", fact.name),
        (Unit::ByPort, true) => Place::MeanInUse(DataFile::Ports, "port", fact.name),
        (_, true) => return None,
        (_, false) => Place::Fact((section != "*").then_some(of), fact),
    };
    Some(m(fact.name, dimension, place))
}

/// The names of all facts that can be measured, with their sections.
pub fn facts() -> impl Iterator<Item = String> {
    let of = |f: &'static Facts| f.facts.iter().map(move |fact| format!("{}.{}", f.section, fact.name));
    xoff_schemes::facts().into_iter().flat_map(of).filter(|name| fact(name).is_some())
}

pub fn quantity(name: &str) -> Option<Dimension> {
    QUANTITIES.iter().find(|(n, _)| *n == name).map(|(_, d)| *d)
}

impl Metric {
    /// The dimension of its values. The metric must be checked.
    pub fn dimension(&self) -> Dimension {
        let measurable = measurable(&self.of).expect("a metric was checked");
        match (measurable.place, self.statistic.as_deref(), self.quantity.as_deref()) {
            (Place::Series, Some(s), _) if TIMES.contains(&s) => Dimension::Time,
            (Place::Series, _, Some(q)) => quantity(q).expect("a metric was checked"),
            _ => measurable.dimension,
        }
    }

    /// Its unit, and how much of the results' own that is.
    pub fn scale(&self) -> (&'static str, f64) {
        let units = self.dimension().units();
        let named = |u: &&(&str, f64)| self.unit.as_deref().is_none_or(|unit| unit == u.0);
        *units.iter().find(named).expect("a metric was checked")
    }
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct Value {
    /// The value in the metric's unit; `None` if the run has none.
    pub value: Option<f64>,
    /// If there is none because it is a time of an unfinished flow: what it would be if every unfinished flow
    /// finished at the end of the run, and at least is.
    pub at_least: Option<f64>,
    /// Why there is no value, or a remark about it.
    pub note: Option<String>,
}

impl Value {
    fn of(value: f64) -> Self {
        Self { value: Some(value), ..Self::default() }
    }

    fn none(why: impl Into<String>) -> Self {
        Self { note: Some(why.into()), ..Self::default() }
    }
}

/// The directory of a run, whose files are read when they are needed.
pub struct Run {
    path: PathBuf,
    summary: OnceCell<Json>,
    flows: Columns,
    pauses: Columns,
    series: Columns,
}

const PAUSES: [&str; 8] = ["port", "priority", "queue", "from_ps", "until_ps", "cause", "root", "links"];
const SERIES: [&str; 4] = ["time_ps", "quantity", "element", "value"];

/// A number, or how many entries a list has.
fn number(found: Option<&Json>) -> Value {
    match found {
        Some(Json::Array(list)) => Value::of(list.len() as f64),
        Some(v) if v.is_number() => Value::of(v.as_f64().expect("a number")),
        _ => Value::none("the run has no such value"),
    }
}

/// Whether a name is one of `names`, or there is no choice.
fn is_one(name: &Json, names: Option<&Names>) -> bool {
    names.is_none_or(|names| name.as_str().is_some_and(|name| names.has(name)))
}

/// The content of a cell, filled by `read` the first time.
fn once<T>(cell: &OnceCell<T>, read: impl FnOnce() -> Result<T, String>) -> Result<&T, String> {
    if let Some(value) = cell.get() {
        return Ok(value);
    }
    let value = read()?;
    Ok(cell.get_or_init(|| value))
}

impl Run {
    pub fn at(path: &Path) -> Self {
        let columns = |file: DataFile| Columns::of(path.join(file.name()));
        Self {
            path: path.into(),
            summary: OnceCell::new(),
            flows: columns(DataFile::Flows),
            pauses: columns(DataFile::Pauses),
            series: columns(DataFile::Series),
        }
    }

    fn summary(&self) -> Result<&Json, String> {
        let path = self.path.join(SUMMARY);
        once(&self.summary, || {
            let text = std::fs::read(&path).map_err(|e| format!("{} cannot be read: {e}", path.display()))?;
            serde_json::from_slice(&text).map_err(|e| format!("{} is damaged: {e}", path.display()))
        })
    }

    /// The jobs of the metric's classes.
    fn jobs(&self, metric: &Metric) -> Result<Vec<&Json>, String> {
        let jobs = self.summary()?["jobs"].as_array().into_iter().flatten();
        Ok(jobs.filter(|job| is_one(&job["class"], metric.class.as_ref())).collect())
    }

    /// Measures. Fails if a file of the run cannot be read. The metric must be checked.
    pub fn measure(&self, metric: &Metric) -> Result<Value, String> {
        let what = measurable(&metric.of).expect("a metric was checked");
        let mut found = match what.place {
            Place::Summary(pointer) => number(self.summary()?.pointer(pointer)),
            Place::Fact(section, fact) => match (self.fact(section, fact)?, &metric.port) {
                (Some(Json::Array(list)), Some(names)) => {
                    let named = |v: &&Json| v.as_str().is_some_and(|port| names.has(port));
                    Value::of(list.iter().filter(named).count() as f64)
                }
                (found, _) => number(found),
            },
            Place::Present(pointer) => {
                let found = self.summary()?.pointer(pointer).is_some_and(|v| !v.is_null());
                Value::of(f64::from(u8::from(found)))
            }
            Place::Jobs(key) => {
                let jobs = self.jobs(metric)?;
                // A job without a time is not done.
                let times: Option<Vec<f64>> = jobs.iter().map(|job| job[key].as_f64()).collect();
                let last = times.and_then(|times| times.into_iter().reduce(f64::max));
                last.map_or_else(|| Value::none("no such job has finished"), Value::of)
            }
            Place::Operations(key) => {
                let jobs = self.jobs(metric)?;
                let all = jobs.iter().filter_map(|job| job["operations"].as_array()).flatten();
                let ours = all.filter(|operation| is_one(&operation["name"], metric.element.as_ref()));
                // An operation of which some are not done has no value.
                let value = |operation: &Json| {
                    (operation["finished"] == operation["count"])
                        .then(|| operation.pointer(key)?.as_f64())
                        .flatten()
                };
                let values: Option<Vec<f64>> = ours.map(value).collect();
                // The worst one: the least rate, or the greatest time.
                let worse = if what.dimension == Dimension::Rate { f64::min } else { f64::max };
                let worst = values.and_then(|values| values.into_iter().reduce(worse));
                worst.map_or_else(|| Value::none("no such operation has finished"), Value::of)
            }
            Place::Flows => self.of_flows(metric)?,
            Place::Sum => self.sum(metric)?,
            Place::Pauses => self.of_pauses(metric)?,
            Place::Series => self.of_series(metric)?,
            Place::Peak(file, name, column) => {
                let all = self.column(metric, file, name, column)?;
                let most = all.into_iter().max();
                most.map_or_else(|| Value::none("no element with that name"), |v| Value::of(v as f64))
            }
            Place::MeanInUse(file, name, column) => {
                let mut all = self.column(metric, file, name, column)?;
                all.retain(|&v| v > 0);
                match all.len() {
                    0 => Value::none("none is in use"),
                    n => Value::of(all.iter().sum::<i64>() as f64 / n as f64),
                }
            }
            Place::Nodes(kind) => {
                let t = self.table(DataFile::Nodes, &["kind"])?;
                Value::of((0..t.rows()).filter(|&i| t.texts("kind").get(i) == Some(kind)).count() as f64)
            }
        };
        let scale = metric.scale().1;
        found.value = found.value.map(|v| v / scale);
        found.at_least = found.at_least.map(|v| v / scale);
        Ok(found)
    }

    /// The value of a fact of `section`, or of the first section that has it.
    fn fact(&self, section: Option<&str>, fact: &Fact) -> Result<Option<&Json>, String> {
        let summary = self.summary()?;
        let value = |section: &str| summary.get(section)?.get(fact.name).filter(|v| !v.is_null());
        Ok(match section {
            Some(section) => value(section),
            None => xoff_schemes::facts().iter().find_map(|facts| value(facts.section)),
        })
    }

    /// The flows that a metric is about, among those that started; with their `columns`.
    fn chosen(&self, metric: &Metric, columns: &[&str]) -> Result<(Table, Vec<usize>), String> {
        let sized = metric.min_size.is_some() || metric.max_size.is_some();
        let by_ideal = metric.min_ideal.is_some() || metric.max_ideal.is_some();
        let by_name = [("class", &metric.class), ("src", &metric.src), ("dst", &metric.dst)];
        let mut needed = vec!["start_ps"];
        needed.extend(sized.then_some("size"));
        needed.extend(by_ideal.then_some("ideal_ps"));
        needed.extend(by_name.iter().filter(|(_, names)| names.is_some()).map(|(column, _)| *column));
        needed.extend(columns.iter().filter(|c| !(sized && **c == "size") && **c != "start_ps"));
        let t = self.flows.table(&needed)?;
        let chosen = {
            let start = t.ints("start_ps");
            let size = sized.then(|| t.ints("size"));
            let ideal = by_ideal.then(|| t.ints("ideal_ps"));
            let by_name = by_name.iter().filter(|(_, names)| names.is_some());
            let named: Vec<_> =
                by_name.map(|(column, names)| named(t.texts(column), names.as_ref())).collect();
            let keep = |&i: &usize| {
                let Some(start) = start[i].map(|s| s as u64) else { return false };
                let bytes = size.map_or(0, |size| size[i].unwrap_or(0) as u64);
                let ideal = ideal.map_or(0, |ideal| ideal[i].unwrap_or(0) as u64);
                named.iter().all(|named| named(i))
                    && metric.min_size.is_none_or(|m| bytes >= m.0)
                    && metric.max_size.is_none_or(|m| bytes <= m.0)
                    && metric.min_ideal.is_none_or(|m| ideal >= m.0)
                    && metric.max_ideal.is_none_or(|m| ideal <= m.0)
                    && metric.from.is_none_or(|f| start >= f.0)
                    && metric.to.is_none_or(|t| start <= t.0)
            };
            (0..t.rows()).filter(keep).collect()
        };
        Ok((t, chosen))
    }

    /// One number of each flow that a metric is about and that has one; and for each other one the time that it
    /// would have if it finished at the end of the run.
    fn sample(&self, metric: &Metric) -> Result<(Vec<f64>, Vec<f64>), String> {
        let columns: &[&str] = match metric.of.as_str() {
            "fct" => &["fct_ps", "start_ps"],
            "slowdown" => &["slowdown", "ideal_ps", "start_ps"],
            "completion" => &["completed_ps"],
            "delivery" => &["delivered_ps", "start_ps"],
            // The size of a flow is known from the beginning.
            "size" => &["size"],
            _ => &["size", "fct_ps", "start_ps"],
        };
        let (t, chosen) = self.chosen(metric, columns)?;
        let end = self.summary()?.pointer("/simulated_ps").and_then(Json::as_i64).unwrap_or(0);
        let int = |column: &str, i: usize| t.ints(column)[i];
        let age = |i: usize| end - int("start_ps", i).unwrap_or(end);
        let (mut sample, mut until_end) = (Vec::new(), Vec::new());
        for i in chosen {
            let number = match metric.of.as_str() {
                "slowdown" => t.floats("slowdown")[i],
                "delivery" => {
                    int("delivered_ps", i).zip(int("start_ps", i)).map(|(at, start)| (at - start) as f64)
                }
                "flow-rate" => {
                    int("size", i).zip(int("fct_ps", i)).map(|(size, fct)| size as f64 * 8e12 / fct as f64)
                }
                _ => int(columns[0], i).map(|v| v as f64),
            };
            match number {
                Some(number) => sample.push(number),
                None => until_end.push(match metric.of.as_str() {
                    "slowdown" => age(i) as f64 / int("ideal_ps", i).unwrap_or(i64::MAX) as f64,
                    "completion" => end as f64,
                    _ => age(i) as f64,
                }),
            }
        }
        Ok((sample, until_end))
    }

    fn of_flows(&self, metric: &Metric) -> Result<Value, String> {
        let (sample, until_end) = self.sample(metric)?;
        let missing = until_end.len();
        let all = sample.len() + missing;
        if sample.is_empty() {
            let none = if missing == 0 { "no such flow started" } else { "no such flow finished" };
            return Ok(Value::none(none));
        }
        let statistic = metric.statistic.as_deref().expect("a metric was checked");
        let rate = metric.of == "flow-rate";
        let all_at_least = sample.iter().copied().chain(until_end).collect();
        let value = of_flow_sample(sample, missing, statistic, rate);
        let at_least = (value.is_none() && !rate).then(|| of_sample(all_at_least, statistic));
        let note = (missing > 0).then(|| {
            let what = match (statistic, value) {
                ("mean" | "sum" | "stddev", _) => format!("; {statistic} covers the finished flows"),
                (_, None) => format!("; {statistic} is that of an unfinished flow"),
                _ => String::new(),
            };
            format!("{missing} of {all} flows unfinished{what}")
        });
        Ok(Value { value, at_least, note })
    }

    fn sum(&self, metric: &Metric) -> Result<Value, String> {
        let of = metric.of.as_str();
        let columns: &[&str] = match of {
            "flows" | "share" => &[],
            "finished" | "unfinished" => &["fct_ps"],
            "delivered" => &["delivered_bytes"],
            "out-of-order" | "out-of-order-flows" => &["out_of_order"],
            "total-rate" => return self.total_rate(metric),
            "own-time" => &["own_ps", "source_own_ps"],
            "victim-time" | "victim-flows" => &["victim_ps", "source_victim_ps"],
            "named-victim-time" => &["named_victim_ps", "source_named_victim_ps"],
            // The column has its name.
            _ => std::slice::from_ref(&of),
        };
        let (t, chosen) = self.chosen(metric, columns)?;
        // The sum of a flow's values in these columns.
        let sum = |i: usize| columns.iter().try_fold(0, |sum, column| Some(sum + t.ints(column)[i]?));
        let sums = || chosen.iter().map(|&i| sum(i));
        let value: Option<i64> = match of {
            "flows" => Some(chosen.len() as i64),
            "finished" => Some(sums().flatten().count() as i64),
            "unfinished" => Some(sums().filter(Option::is_none).count() as i64),
            "share" => return self.share(metric, chosen.len()),
            "victim-flows" | "out-of-order-flows" => sums().map(|v| Some(i64::from(v? > 0))).sum(),
            _ => sums().sum(),
        };
        Ok(value
            .map(|v| v as f64)
            .map_or_else(|| Value::none("not measured: measure.blocking is off"), Value::of))
    }

    /// The payload of all finished flows over the sum of their FCTs.
    fn total_rate(&self, metric: &Metric) -> Result<Value, String> {
        let (t, chosen) = self.chosen(metric, &["size", "fct_ps"])?;
        let of_flow = |&i: &usize| Some((i128::from(t.ints("size")[i]?), i128::from(t.ints("fct_ps")[i]?)));
        let finished: Vec<_> = chosen.iter().filter_map(of_flow).collect();
        let (bytes, time) = finished.iter().fold((0, 0), |(bytes, time), f| (bytes + f.0, time + f.1));
        if time == 0 {
            let none = if chosen.is_empty() { "no such flow started" } else { "no such flow finished" };
            return Ok(Value::none(none));
        }
        let missing = chosen.len() - finished.len();
        let note =
            format!("{missing} of {} flows unfinished; total-rate covers the finished flows", chosen.len());
        Ok(Value { note: (missing > 0).then_some(note), ..Value::of(bytes as f64 * 8e12 / time as f64) })
    }

    /// The part of the flows of any size that are of the metric's sizes.
    fn share(&self, metric: &Metric, of_size: usize) -> Result<Value, String> {
        let any = Metric { min_size: None, max_size: None, ..metric.clone() };
        Ok(match self.chosen(&any, &[])?.1.len() {
            0 => Value::none("no such flow started"),
            all => Value::of(of_size as f64 / all as f64),
        })
    }

    fn of_pauses(&self, metric: &Metric) -> Result<Value, String> {
        let t = self.pauses.table(&PAUSES)?;
        let end = self.summary()?.pointer("/simulated_ps").and_then(Json::as_u64).unwrap_or(0);
        let (from, to) = (metric.from.map_or(0, |f| f.0), metric.to.map_or(u64::MAX, |t| t.0));
        let by_name = [("port", &metric.port), ("cause", &metric.cause), ("root", &metric.root)];
        let named = by_name.map(|(column, names)| named(t.texts(column), names.as_ref()));
        let mut lengths: Vec<u64> = Vec::new();
        let (mut ports, mut queues) = (BTreeSet::new(), BTreeSet::new());
        let mut links = 0;
        for i in 0..t.rows() {
            let begin = t.ints("from_ps")[i].unwrap_or(0) as u64;
            let until = t.ints("until_ps")[i].map_or(end, |u| u as u64);
            let (begin, until) = (begin.max(from), until.min(to));
            let fits = named.iter().all(|named| named(i))
                && metric.queue.as_ref().is_none_or(|q| t.ints("queue")[i].is_some_and(|i| q.contains(&i)));
            // One that is over at once counts as well, within the span.
            if !fits || until < begin || (until == begin && begin == from && from > 0) {
                continue;
            }
            lengths.push(until - begin);
            links = links.max(t.ints("links")[i].unwrap_or(0));
            let port = t.texts("port").get(i);
            ports.insert(port);
            queues.insert((port, t.ints("priority")[i], t.ints("queue")[i]));
        }
        if metric.of == "pause-links" && self.summary()?.pointer("/blocking").is_none_or(Json::is_null) {
            return Ok(Value::none("not measured: measure.blocking is not set"));
        }
        Ok(Value::of(match metric.of.as_str() {
            "pauses" => lengths.len() as f64,
            "pause-time" => lengths.iter().sum::<u64>() as f64,
            "longest-pause" => lengths.iter().max().map_or(0.0, |&l| l as f64),
            "paused-ports" => ports.len() as f64,
            "pause-links" => links as f64,
            _ => queues.len() as f64,
        }))
    }

    /// Samples after `span.0` and up to `span.1` (ps), in order; several elements are summed.
    pub fn samples(
        &self,
        quantity: &str,
        element: &Names,
        span: (u64, u64),
    ) -> Result<Vec<(u64, f64)>, String> {
        let t = self.series.table(&SERIES)?;
        let meant = Names(vec![quantity.to_string()]);
        let is_meant = named(t.texts("quantity"), Some(&meant));
        let is_element = named(t.texts("element"), Some(element));
        let mut sums: Vec<(u64, f64)> = Vec::new();
        for i in 0..t.rows() {
            let time = t.ints("time_ps")[i].unwrap_or(0) as u64;
            if !(is_meant(i) && is_element(i) && time > span.0 && time <= span.1) {
                continue;
            }
            let value = t.ints("value")[i].unwrap_or(0) as f64;
            // Samples are in the order of time.
            match sums.last_mut() {
                Some((last, sum)) if *last == time => *sum += value,
                _ => sums.push((time, value)),
            }
        }
        Ok(sums)
    }

    fn of_series(&self, metric: &Metric) -> Result<Value, String> {
        let quantity = metric.quantity.as_deref().expect("a metric was checked");
        let element = metric.element.as_ref().expect("a metric was checked");
        let mut span = (metric.from.map_or(0, |f| f.0), metric.to.map_or(u64::MAX, |t| t.0));
        if let Some(parts) = metric.arrivals {
            let flows = self.flows.table(&["start_ps"])?;
            let starts = || flows.ints("start_ps").iter().flatten().map(|&s| s as u64);
            let (Some(first), Some(last)) = (starts().min(), starts().max()) else {
                return Ok(Value::none("no flow started"));
            };
            let [from, to] = parts.map(|part| first + (part * (last - first) as f64) as u64);
            span = (from, to);
        }
        let samples = self.samples(quantity, element, span)?;
        if samples.is_empty() {
            return Ok(Value::none("no sample of it (measure.interval, and its element's name)"));
        }
        let statistic = metric.statistic.as_deref().expect("a metric was checked");
        if !TIMES.contains(&statistic) {
            return Ok(Value::of(of_sample(samples.iter().map(|s| s.1).collect(), statistic)));
        }
        let unit = self::quantity(quantity).expect("a metric was checked").units()[0].1;
        let threshold = metric.threshold.expect("a metric was checked") * unit;
        Ok(Value::of(time_beyond(&samples, span.0, statistic, threshold) as f64))
    }

    fn table(&self, file: DataFile, columns: &[&str]) -> Result<Table, String> {
        let path = self.path.join(file.name());
        Table::read(&path, columns).map_err(|e| format!("{} {e}", path.display()))
    }

    /// The values of a column for the nodes or ports of a metric.
    fn column(&self, metric: &Metric, file: DataFile, name: &str, column: &str) -> Result<Vec<i64>, String> {
        let t = self.table(file, &[name, column])?;
        let names = if file == DataFile::Nodes { &metric.node } else { &metric.port };
        let fits = named(t.texts(name), names.as_ref());
        Ok((0..t.rows()).filter(|&i| fits(i)).filter_map(|i| t.ints(column)[i]).collect())
    }

    /// One number of each flow that a metric is about, in its unit, in order of size.
    pub fn distribution(&self, metric: &Metric) -> Result<Vec<f64>, String> {
        let scale = metric.scale().1;
        let mut all: Vec<f64> = self.sample(metric)?.0.into_iter().map(|v| v / scale).collect();
        all.sort_unstable_by(f64::total_cmp);
        Ok(all)
    }
}

/// How long samples are below or above `threshold`, in one of the [`TIMES`]: in total, or the longest
/// stretch. Each sample counts for the time since the previous one, the first for the time since `from`.
fn time_beyond(samples: &[(u64, f64)], from: u64, statistic: &str, threshold: f64) -> u64 {
    let below = statistic.ends_with("-below");
    let (mut all, mut longest, mut stretch) = (0, 0, 0);
    let mut before = from;
    for &(at, value) in samples {
        let meant = if below { value < threshold } else { value > threshold };
        let time = if meant { at - before } else { 0 };
        stretch = if meant { stretch + time } else { 0 };
        all += time;
        longest = longest.max(stretch);
        before = at;
    }
    if statistic.starts_with("longest") { longest } else { all }
}

/// A statistic of flows. The `missing` unfinished ones take the ranks of the worst, else a scheme that holds
/// flows up until the end would be the better for each. `None` if the statistic is one of theirs. Mean and
/// sum are of the finished ones: a run of a fixed duration hardly ever finishes all.
fn of_flow_sample(mut sample: Vec<f64>, missing: usize, statistic: &str, worst_first: bool) -> Option<f64> {
    if !matches!(statistic, "mean" | "sum" | "stddev") {
        let worst = if worst_first { f64::NEG_INFINITY } else { f64::INFINITY };
        sample.extend(std::iter::repeat_n(worst, missing));
    }
    Some(of_sample(sample, statistic)).filter(|v| v.is_finite())
}

/// A statistic of a sample that is not empty. Quantiles are by nearest rank; the
/// standard deviation is of all values, not an estimate for more of them.
fn of_sample(mut sample: Vec<f64>, statistic: &str) -> f64 {
    sample.sort_unstable_by(f64::total_cmp);
    let rank = |per_mille| nearest_rank(&sample, per_mille).expect("the sample is not empty");
    let mean = || sample.iter().sum::<f64>() / sample.len() as f64;
    match statistic {
        "mean" => mean(),
        "stddev" => {
            let mean = mean();
            let squares: f64 = sample.iter().map(|v| (v - mean) * (v - mean)).sum();
            (squares / sample.len() as f64).sqrt()
        }
        "sum" => sample.iter().sum(),
        "min" => sample[0],
        "max" => sample[sample.len() - 1],
        "p30" => rank(300),
        "p50" => rank(500),
        "p90" => rank(900),
        "p95" => rank(950),
        "p99" => rank(990),
        _ => rank(999),
    }
}

#[cfg(test)]
mod tests {
    use super::{of_flow_sample, of_sample, time_beyond};

    #[test]
    fn spread_by_hand() {
        // Mean 5, squared distances 9 1 1 1 0 0 4 16: 32 of eight.
        let sample = vec![2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(of_sample(sample, "stddev"), 2.0);
        assert_eq!(of_sample(vec![7.0], "stddev"), 0.0);
        // Of flows, those that never finished are left out, as of the mean.
        assert_eq!(of_flow_sample(vec![1.0, 3.0], 5, "stddev", false), Some(1.0));
    }

    #[test]
    fn stretches_by_hand() {
        // From 10 on: low for 5 and 10, high for 10, low for 20, just at the bound for 1.
        let samples = [(15, 1.0), (25, 2.0), (35, 9.0), (55, 0.0), (56, 5.0)];
        for (statistic, time) in
            [("time-below", 35), ("longest-below", 20), ("time-above", 10), ("longest-above", 10)]
        {
            assert_eq!(time_beyond(&samples, 10, statistic, 5.0), time, "{statistic}");
        }
        // Two low samples in a row are one stretch, the last one too.
        assert_eq!(time_beyond(&samples[..2], 10, "longest-below", 5.0), 15);
        assert_eq!(time_beyond(&samples, 10, "longest-below", 6.0), 21);
        assert_eq!(time_beyond(&samples, 10, "longest-above", 9.0), 0);
    }

    #[test]
    fn unfinished_flows_are_the_worst_by_hand() {
        // 1 to 98 finished, so that the 99th of 100 is one of the unfinished.
        let finished = |n: u32| (1..=n).rev().map(f64::from).collect::<Vec<_>>();
        for (n, missing, statistic, value) in [
            (100, 0, "p99", Some(99.0)),
            (100, 0, "max", Some(100.0)),
            (99, 1, "p99", Some(99.0)),
            (99, 1, "max", None),
            (99, 1, "p999", None),
            (98, 2, "p99", None),
            (98, 2, "p95", Some(95.0)),
            // Half of them never finish: the median is the greatest that did.
            (50, 50, "p50", Some(50.0)),
            (49, 51, "p50", None),
            (49, 51, "min", Some(1.0)),
            (49, 51, "mean", Some(25.0)),
            (4, 96, "sum", Some(10.0)),
        ] {
            let found = of_flow_sample(finished(n), missing, statistic, false);
            assert_eq!(found, value, "{statistic} of {n} and {missing}");
        }
        // The worst rates are the lowest: of 100 the median is the 50th from below.
        for (n, missing, statistic, value) in [
            (100, 0, "p50", Some(50.0)),
            (60, 40, "p50", Some(10.0)),
            (50, 50, "p50", None),
            (50, 50, "p99", Some(49.0)),
            (99, 1, "min", None),
            (99, 1, "max", Some(99.0)),
        ] {
            let found = of_flow_sample(finished(n), missing, statistic, true);
            assert_eq!(found, value, "{statistic} of the rates of {n} and {missing}");
        }
    }
}
