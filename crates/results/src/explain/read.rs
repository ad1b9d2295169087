//! The input of `xoff explain` about a run, read from its directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Serialize;
use serde_json::Value as Json;

use crate::breaking::Step;
use crate::columns::read::Table;
use crate::data::DataFile;
use crate::layout::{MANIFEST, SUMMARY};
use crate::storage::Error;
use crate::{grid, integrity};

/// A flow and how long it took.
#[derive(Clone, Debug, Serialize)]
pub struct Flow {
    /// As in `flows.parquet`.
    pub flow: usize,
    pub src: String,
    pub dst: String,
    pub class: String,
    /// Payload bytes.
    pub size: u64,
    /// When it began; null if the run ended before.
    pub start_ps: Option<u64>,
    /// Whether it was complete when the run ended.
    pub finished: bool,
    /// Whether its sender gave up.
    pub failed: bool,
    /// From its beginning until it was complete or failed, or the run's end.
    pub took_ps: u64,
    /// Its ideal FCT; 0 if its route loops.
    pub ideal_ps: u64,
    /// Its shares: where they begin and end among those of the run.
    #[serde(skip)]
    pub shares: (usize, usize),
}

/// A part of the time of a flow, as `critical.parquet` has it.
#[derive(Clone, Debug)]
pub struct Share {
    pub flow: usize,
    pub step: u64,
    /// `source`, `data` or `ack`.
    pub leg: String,
    pub port: String,
    pub part: String,
    /// The congested port, of pauses.
    pub root: Option<String>,
    /// `own` or `victim` by the port that the pause's frame named, if it named one.
    pub named_part: Option<String>,
    pub named_root: Option<String>,
    pub time_ps: u64,
}

/// Packets that were ahead of a flow's at a port, as `ahead.parquet` has them.
#[derive(Clone, Debug)]
pub struct Ahead {
    pub flow: usize,
    pub leg: String,
    pub port: String,
    /// The flow whose packets they were; none for all that are not listed.
    pub other: Option<usize>,
    /// The number of flows.
    pub others: u64,
    pub bytes: u64,
    pub time_ps: u64,
}

/// By which congested port the waiting in paused queues is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// By the port that the pause's frame named; where it named none, as below.
    Named,
    /// By the port at whose packets the pause was caused: the root that the oracle has found.
    Surviving,
}

impl Share {
    pub fn part(&self, by: By) -> &str {
        match by {
            By::Named => self.named_part.as_ref().unwrap_or(&self.part),
            By::Surviving => &self.part,
        }
    }

    pub fn root(&self, by: By) -> Option<&str> {
        match by {
            By::Named => self.named_root.as_deref().or(self.root.as_deref()),
            By::Surviving => self.root.as_deref(),
        }
    }

    /// Whether it is waiting in a paused queue for a port off the rest of the path.
    pub fn is_victim(&self, by: By) -> bool {
        self.part(by) == "victim"
    }
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ending {
    /// As in `summary.json`: a name of [`crate::summary::stop_name`].
    pub stop: String,
    pub end_ps: u64,
    /// The first deadlock; null if there was none.
    pub deadlock: Option<Deadlock>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deadlock {
    pub closed_ps: u64,
    /// When the first of its queues continued nevertheless; null if they were paused at the end.
    pub ended_ps: Option<u64>,
    /// Its egress ports: each waits for the next one, the last for the first.
    pub cycle: Vec<String>,
    /// As in `summary.json`.
    pub weakest: Option<Step>,
}

#[derive(Clone, Debug)]
pub struct Run {
    pub scenario: String,
    pub ending: Ending,
    /// As in [`Overview`](super::Overview).
    pub merged_longest_ps: u64,
    /// Packets that were dropped.
    pub dropped: u64,
    pub flows: Vec<Flow>,
    /// By flow, then along its path.
    pub shares: Vec<Share>,
    /// By flow, then along its path, most time first.
    pub ahead: Vec<Ahead>,
    /// The port at the other end of each port.
    pub peers: BTreeMap<String, String>,
}

impl Run {
    pub fn of(&self, flow: &Flow) -> &[Share] {
        &self.shares[flow.shares.0..flow.shares.1]
    }

    /// Whether pauses that flows waited for named the port that they were for.
    pub fn names_roots(&self) -> bool {
        self.shares.iter().any(|share| share.named_root.is_some())
    }
}

pub(crate) fn table(path: &Path, file: DataFile, columns: &[&str]) -> Result<Table, Error> {
    let file = path.join(file.name());
    Table::read(&file, columns).map_err(|message| damaged(&file, message))
}

pub(crate) fn damaged(path: &Path, message: String) -> Error {
    Error::new(path, message, "Run the scenario again.")
}

/// Reads a run directory whose run has kept critical paths. The parts of each flow must add up to its time.
pub fn read(path: &Path) -> Result<Run, Error> {
    let manifest = manifest(path)?;
    integrity::guarded(path, || with(path, &manifest))
}

/// As [`read`], of a run with this manifest, whose files have been compared with it.
pub(crate) fn with(path: &Path, manifest: &Json) -> Result<Run, Error> {
    if manifest["scenario"]["measure"]["explain"] != true {
        let help = "Run the scenario again with --overwrite --set measure.explain=true.";
        let message = "has no per-flow timing, because measure.explain was not set";
        return Err(Error::new(path, message, help));
    }
    let table = |file, columns| table(path, file, columns);
    let summary = summary(path)?;
    let ending = ending(&summary);
    let flows = flows(&table(DataFile::Flows, &FLOW_COLUMNS)?, ending.end_ps);
    let shares = shares(&table(DataFile::Critical, &SHARE_COLUMNS)?);
    let ahead = ahead(&table(DataFile::Ahead, &AHEAD_COLUMNS)?);
    if let Some(wrong) =
        ahead.iter().flat_map(|a| [Some(a.flow), a.other]).flatten().find(|id| *id >= flows.len())
    {
        return Err(damaged(
            path,
            format!("is damaged: ahead.parquet names flow {wrong}, which is not there"),
        ));
    }
    let ports = table(DataFile::Ports, &["port", "peer"])?;
    let (names, peers) = (ports.texts("port"), ports.texts("peer"));
    let pair = |i: usize| Some((names.get(i)?.to_owned(), peers.get(i)?.to_owned()));
    let mut run = Run {
        scenario: manifest["name"].as_str().unwrap_or_default().into(),
        ending,
        merged_longest_ps: summary["blocking"]["merged_longest_ps"].as_u64().unwrap_or(0),
        dropped: summary["counters"]["dropped"].as_u64().unwrap_or(0),
        flows,
        shares,
        ahead,
        peers: (0..ports.rows()).filter_map(pair).collect(),
    };
    index(&mut run).map_err(|message| damaged(path, message))?;
    Ok(run)
}

/// The manifest of the run at `path`, whose files are as they were written.
pub(crate) fn manifest(path: &Path) -> Result<Json, Error> {
    let example = "Type the directory of a run, such as xoff-runs/NAME: `xoff run NAME.toml` writes it.";
    if !path.exists() {
        return Err(Error::new(path, "does not exist", example));
    }
    if !path.is_dir() {
        return Err(Error::new(path, "is a file, not a run directory", example));
    }
    if path.join(grid::directory::MANIFEST).exists() {
        let help = format!("Type one of its runs, a directory in {}.", path.join("runs").display());
        return Err(Error::new(path, "is a grid, not a single run", help));
    }
    if !path.join(MANIFEST).exists() {
        let message = format!("is not a run directory of xoff: it has no {MANIFEST}");
        return Err(Error::new(path, message, example));
    }
    integrity::run(path)
}

pub(crate) fn summary(path: &Path) -> Result<Json, Error> {
    let text = fs::read(path.join(SUMMARY)).ok();
    let summary = text.and_then(|text| serde_json::from_slice(&text).ok());
    summary.ok_or_else(|| damaged(path, format!("is damaged: no {SUMMARY}")))
}

fn ending(summary: &Json) -> Ending {
    let int = |value: &Json| value.as_u64().unwrap_or(0);
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let deadlock = summary["deadlock"].as_object().map(|deadlock| Deadlock {
        closed_ps: int(&deadlock["closed_ps"]),
        ended_ps: deadlock["ended_ps"].as_u64(),
        cycle: deadlock["cycle"].as_array().into_iter().flatten().map(|held| text(&held["port"])).collect(),
        weakest: serde_json::from_value(deadlock["weakest"].clone()).ok(),
    });
    Ending { stop: text(&summary["stop"]), end_ps: int(&summary["simulated_ps"]), deadlock }
}

const FLOW_COLUMNS: [&str; 8] =
    ["src", "dst", "class", "size", "start_ps", "completed_ps", "failed_ps", "ideal_ps"];

fn flows(table: &Table, end_ps: u64) -> Vec<Flow> {
    let flow = |i: usize| {
        let [start_ps, completed_ps, failed_ps] =
            ["start_ps", "completed_ps", "failed_ps"].map(|column| table.maybe_int(column, i));
        let until = completed_ps.or(failed_ps).unwrap_or(end_ps);
        Flow {
            flow: i,
            src: table.text("src", i).into(),
            dst: table.text("dst", i).into(),
            class: table.text("class", i).into(),
            size: table.int("size", i),
            start_ps,
            finished: completed_ps.is_some(),
            failed: failed_ps.is_some(),
            took_ps: start_ps.map_or(0, |start| until.saturating_sub(start)),
            ideal_ps: table.int("ideal_ps", i),
            shares: (0, 0),
        }
    };
    (0..table.rows()).map(flow).collect()
}

const SHARE_COLUMNS: [&str; 9] =
    ["flow", "step", "leg", "port", "part", "root", "named_part", "named_root", "time_ps"];

fn shares(table: &Table) -> Vec<Share> {
    let share = |i: usize| Share {
        flow: table.int("flow", i) as usize,
        step: table.int("step", i),
        leg: table.text("leg", i).into(),
        port: table.text("port", i).into(),
        part: table.text("part", i).into(),
        root: table.texts("root").get(i).map(Into::into),
        named_part: table.texts("named_part").get(i).map(Into::into),
        named_root: table.texts("named_root").get(i).map(Into::into),
        time_ps: table.int("time_ps", i),
    };
    (0..table.rows()).map(share).collect()
}

const AHEAD_COLUMNS: [&str; 7] = ["flow", "leg", "port", "other", "others", "bytes", "time_ps"];

fn ahead(table: &Table) -> Vec<Ahead> {
    let one = |i: usize| Ahead {
        flow: table.int("flow", i) as usize,
        leg: table.text("leg", i).into(),
        port: table.text("port", i).into(),
        other: table.maybe_int("other", i).map(|id| id as usize),
        others: table.int("others", i),
        bytes: table.int("bytes", i),
        time_ps: table.int("time_ps", i),
    };
    (0..table.rows()).map(one).collect()
}

/// Finds each flow's shares, and sees that they add up.
fn index(run: &mut Run) -> Result<(), String> {
    let mut at = 0;
    for (id, flow) in run.flows.iter_mut().enumerate() {
        let rest = &run.shares[at..];
        let count = rest.iter().take_while(|share| share.flow == id).count();
        flow.shares = (at, at + count);
        at += count;
        let sum: u64 = rest[..count].iter().map(|share| share.time_ps).sum();
        if sum != flow.took_ps {
            let took = flow.took_ps;
            return Err(format!("is damaged: the parts of flow {id} add up to {sum} ps, not to {took} ps"));
        }
    }
    match run.shares.get(at) {
        Some(share) => Err(format!("is damaged: critical.parquet names flow {} out of order", share.flow)),
        None => Ok(()),
    }
}
