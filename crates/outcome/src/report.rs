//! The form in which a mechanism reports its actions: a record for each part of a run, their sum, and from it
//! a section of facts, rows and notes. Tables, files, metrics and pages read sections, and do not depend on
//! mechanisms.

use crate::{Drops, Outcome};
use serde::Serialize;
use serde::ser::Serializer;
use std::any::Any;
use std::fmt::Debug;
use xoff_kernel::time::Time;
use xoff_net::topology::{PortId, Topology};

/// The record of one mechanism in a part of a run.
pub trait Record: Any + Clone + PartialEq + Debug + Send + Sync {
    /// Adds the record of another part of the run.
    fn add(&mut self, other: Self);

    /// Puts lists in an order that does not depend on the parts.
    fn sort(&mut self) {}

    /// When the mechanism found deadlocks, in order.
    fn deadlocks_found(&self) -> Vec<Time> {
        Vec::new()
    }

    /// Counts by port, with the name of their column in `ports.parquet`.
    fn by_port(&self, _ports: usize) -> Vec<(&'static str, Vec<u64>)> {
        Vec::new()
    }

    /// The section about it in the results.
    fn section(&self, ran: &Ran<'_>) -> Section;
}

/// A run as a section may look at it.
pub struct Ran<'a> {
    pub topology: &'a Topology,
    /// The 802.1p priority of each lane.
    pub priorities: &'a [u8],
    /// Bytes of the largest packet, headers included.
    pub largest: u32,
    /// Links lose or corrupt frames.
    pub loses_frames: bool,
    pub outcome: &'a Outcome,
}

impl Ran<'_> {
    /// The name of a port: `S1.2:3`.
    pub fn port(&self, port: PortId) -> String {
        self.topology.port_name(port)
    }

    /// A queue or an account: `S1.2:3`, with its priority where there are several.
    pub fn queue(&self, port: PortId, lane: u8) -> String {
        match self.priorities {
            [_] => self.port(port),
            all => format!("{} (priority {})", self.port(port), all[usize::from(lane)]),
        }
    }

    /// Packets and bytes that were dropped for `cause`.
    pub fn dropped(&self, cause: &'static Cause) -> (u64, u64) {
        self.dropped_if(|d| d.reason == crate::DropReason::Scheme(cause))
    }

    /// Packets and bytes of the drops for which `keep` returns `true`.
    pub fn dropped_if(&self, keep: impl Fn(&Drops) -> bool) -> (u64, u64) {
        let drops = self.outcome.drops.iter().filter(|d| keep(d));
        drops.fold((0, 0), |(packets, bytes), d| (packets + d.packets, bytes + d.bytes))
    }
}

/// Why a mechanism dropped packets of its own accord.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cause {
    /// Its name in files.
    pub name: &'static str,
    /// The reason, as the end of "because …".
    pub because: &'static str,
    /// The device or mechanism that dropped them, as the end of "3 packets dropped …".
    pub by: &'static str,
}

/// A series of values that a mechanism reports for some nodes.
#[derive(Debug, PartialEq, Eq)]
pub struct Gauge {
    /// Its name in files.
    pub name: &'static str,
    /// The unit of its values, as files spell it.
    pub unit: &'static str,
}

/// The kind of a fact's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of things.
    Count,
    /// Picoseconds.
    Time,
    /// Bytes.
    Bytes,
    Rate,
    /// A part of 1.
    Share,
    Text,
    /// A list: of texts, or of rows.
    List,
    /// A number of things for each port, in `ports.parquet` ([`Record::by_port`]).
    ByPort,
}

/// A fact that a mechanism reports for each run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Its key in the section; of counts by port, their column.
    pub name: &'static str,
    pub unit: Unit,
    /// Its description, in a sentence.
    pub about: &'static str,
}

/// The facts of a section, in their order.
#[derive(Debug, PartialEq, Eq)]
pub struct Facts {
    /// The key of the section in `summary.json`, and the first part of `section.fact`.
    pub section: &'static str,
    pub facts: &'static [Fact],
}

impl Facts {
    /// Those that a section has values of.
    fn in_summary(&self) -> impl Iterator<Item = &'static Fact> {
        self.facts.iter().filter(|fact| fact.unit != Unit::ByPort)
    }
}

/// `name: Unit, "description";` for each fact.
#[macro_export]
macro_rules! facts {
    ($section:literal: $($name:ident: $unit:ident, $about:literal;)*) => {
        $crate::report::Facts {
            section: $section,
            facts: &[$($crate::report::Fact {
                name: stringify!($name),
                unit: $crate::report::Unit::$unit,
                about: $about,
            },)*],
        }
    };
}

/// The value of a fact.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    None,
    /// A whole number of 0 or more.
    Count(u64),
    Signed(i64),
    Real(f64),
    Flag(bool),
    Text(String),
    List(Vec<Value>),
    Row(Vec<(&'static str, Value)>),
}

impl Value {
    /// The number, if it is a whole one of 0 or more.
    pub fn count(&self) -> Option<u64> {
        if let Self::Count(n) = self { Some(*n) } else { None }
    }
}

macro_rules! from {
    ($($type:ty => $variant:ident,)*) => {
        $(impl From<$type> for Value {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        })*
    };
}

from! {
    u64 => Count,
    u16 => Count,
    u8 => Count,
    i64 => Signed,
    f64 => Real,
    bool => Flag,
    String => Text,
    &str => Text,
    Vec<Value> => List,
    Vec<(&'static str, Value)> => Row,
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::None, Into::into)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => to.serialize_none(),
            Self::Count(n) => to.serialize_u64(*n),
            Self::Signed(n) => to.serialize_i64(*n),
            Self::Real(x) => to.serialize_f64(*x),
            Self::Flag(b) => to.serialize_bool(*b),
            Self::Text(text) => to.serialize_str(text),
            Self::List(values) => values.serialize(to),
            Self::Row(row) => to.collect_map(row.iter().map(|(name, value)| (name, value))),
        }
    }
}

/// The results' section about one mechanism.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// The definitions of its facts.
    pub facts: &'static Facts,
    /// Their values, in the same order.
    pub values: Vec<Value>,
    /// Rows of the totals in the results: a word, and a text.
    pub rows: Vec<(&'static str, String)>,
    /// Notes, in their order.
    pub notes: Vec<Note>,
    /// Whether the mechanism kept its promise of losslessness, if it reports that in its own words.
    pub lossless: Option<Promise>,
}

/// The result of a promise, with the activity that gives it meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Promise {
    Held(String),
    Broken(String),
}

impl Section {
    /// A section of these facts and values.
    ///
    /// # Panics
    /// If they are not as many.
    pub fn new(facts: &'static Facts, values: Vec<Value>) -> Self {
        assert_eq!(facts.in_summary().count(), values.len(), "a value for each fact of {}", facts.section);
        Self { facts, values, rows: Vec::new(), notes: Vec::new(), lossless: None }
    }

    /// The same with a row in the totals of the results.
    pub fn row(mut self, name: &'static str, text: String) -> Self {
        self.rows.push((name, text));
        self
    }

    /// The value of the fact called `name`.
    ///
    /// # Panics
    /// If there is none.
    pub fn value(&self, name: &str) -> &Value {
        let at = self.facts.in_summary().position(|fact| fact.name == name);
        &self.values[at.unwrap_or_else(|| panic!("{} has no fact {name}", self.facts.section))]
    }
}

impl Serialize for Section {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.facts.in_summary().map(|fact| fact.name).zip(&self.values))
    }
}

/// How much a note matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// A promise was broken, such as a drop in a lossless priority.
    Error,
    /// A finding of the run, such as a deadlock.
    Finding,
    /// The figures need care, such as flows that did not finish.
    Warning,
    /// Good to know, such as an option without effect.
    Note,
}

/// One remark about a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    pub level: Level,
    /// The finding, in one or two sentences.
    pub text: String,
    /// Particulars, a line each.
    pub details: Vec<String>,
    /// The advice.
    pub help: Option<String>,
}

impl Note {
    /// A note without details and help.
    pub fn new(level: Level, text: impl Into<String>) -> Self {
        Self { level, text: text.into(), details: Vec::new(), help: None }
    }

    /// The same note with advice.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// A record whose type is not known here.
trait Stored: Any + Debug + Send + Sync {
    fn copy(&self) -> Box<dyn Stored>;
    fn same(&self, other: &dyn Stored) -> bool;
    /// Whether `other` is of its type, and has been added.
    fn take(&mut self, other: &dyn Stored) -> bool;
    fn sort(&mut self);
    fn deadlocks_found(&self) -> Vec<Time>;
    fn by_port(&self, ports: usize) -> Vec<(&'static str, Vec<u64>)>;
    fn section(&self, ran: &Ran<'_>) -> Section;
}

impl<T: Record> Stored for T {
    fn copy(&self) -> Box<dyn Stored> {
        Box::new(self.clone())
    }

    fn same(&self, other: &dyn Stored) -> bool {
        (other as &dyn Any).downcast_ref() == Some(self)
    }

    fn take(&mut self, other: &dyn Stored) -> bool {
        let Some(other) = (other as &dyn Any).downcast_ref::<T>() else { return false };
        self.add(other.clone());
        true
    }

    fn sort(&mut self) {
        Record::sort(self);
    }

    fn deadlocks_found(&self) -> Vec<Time> {
        Record::deadlocks_found(self)
    }

    fn by_port(&self, ports: usize) -> Vec<(&'static str, Vec<u64>)> {
        Record::by_port(self, ports)
    }

    fn section(&self, ran: &Ran<'_>) -> Section {
        Record::section(self, ran)
    }
}

/// The records of a run, one for each mechanism that keeps any.
#[derive(Debug, Default)]
pub struct Records(Vec<Box<dyn Stored>>);

impl Records {
    pub fn of(record: impl Record) -> Self {
        Self(vec![Box::new(record)])
    }

    /// The record of this type.
    pub fn get<T: Record>(&self) -> Option<&T> {
        self.0.iter().find_map(|record| (&**record as &dyn Any).downcast_ref())
    }

    /// The same, to be changed.
    pub fn get_mut<T: Record>(&mut self) -> Option<&mut T> {
        self.0.iter_mut().find_map(|record| (&mut **record as &mut dyn Any).downcast_mut())
    }

    /// Adds the records of another part of the run, or of another mechanism.
    pub fn add(&mut self, other: Self) {
        for record in other.0 {
            if !self.0.iter_mut().any(|own| own.take(&*record)) {
                self.0.push(record);
            }
        }
    }

    /// Puts lists in an order that does not depend on the parts.
    pub fn sort(&mut self) {
        self.0.iter_mut().for_each(|record| record.sort());
    }

    /// When mechanisms found deadlocks, in order.
    pub fn deadlocks_found(&self) -> impl Iterator<Item = Time> + '_ {
        self.0.iter().flat_map(|record| record.deadlocks_found())
    }

    /// Counts by port, with the names of their columns.
    pub fn by_port(&self, ports: usize) -> Vec<(&'static str, Vec<u64>)> {
        self.0.iter().flat_map(|record| record.by_port(ports)).collect()
    }

    /// The results' sections about all mechanisms.
    pub fn sections(&self, ran: &Ran<'_>) -> Vec<Section> {
        self.0.iter().map(|record| record.section(ran)).collect()
    }
}

impl Clone for Records {
    fn clone(&self) -> Self {
        Self(self.0.iter().map(|record| record.copy()).collect())
    }
}

impl PartialEq for Records {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(a, b)| a.same(&**b))
    }
}
