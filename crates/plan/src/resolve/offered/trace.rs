//! Recorded traces, one for each rank.

use super::super::LONGEST;
use super::collective::made;
use super::{Made, Table};
use crate::error::Error;
use crate::scenario::{OtherCollectives, Trace};
use std::path::Path;
use xoff_net::traffic::{Groups, Replay, Settings, group_file};
use xoff_net::units::Span;

/// What `files` has in the place of the rank.
const RANK: &str = "{rank}";

/// Largest factor of computations.
const MOST_SCALE: f64 = 1e6;

pub(super) fn trace(table: &mut Table<'_, '_>, t: &Trace) -> Result<Made, Error> {
    let hosts = table.list("hosts", t.hosts.as_ref())?;
    table.check_start(t.start)?;
    table.cx.at_most(&table.at("start"), t.start, Span(LONGEST))?;
    if hosts.len() < 2 {
        return table.refuse("hosts", "one host has no other host to send to", "write at least two hosts");
    }
    if t.steps == 0 {
        return table.refuse("steps", "steps = 0 is out of range", "write a whole number, 1 or more");
    }
    if !(0.0..=MOST_SCALE).contains(&t.compute_scale) {
        let message = format!("compute_scale = {} is out of range", t.compute_scale);
        return table.refuse("compute_scale", message, format!("write a number of 0 to {MOST_SCALE}"));
    }
    if t.files.matches(RANK).count() != 1 {
        let message = format!("`{}` does not name a file for each rank", t.files);
        return table.refuse("files", message, "write the path with {rank} once: \"trace/step.{rank}.et\"");
    }
    let settings = Settings {
        scale: t.compute_scale,
        longest: LONGEST / u64::from(t.steps),
        recorded_time: t.other_collectives == OtherCollectives::RecordedTime,
    };
    let mut replay =
        Replay::new(hosts.len() as u32, groups(table, t)?, settings).map_err(|e| table.refused_key(e))?;
    let file = |rank: usize| t.files.replace(RANK, &rank.to_string());
    for rank in 0..hosts.len() {
        let name = file(rank);
        let bytes = table.cx.bytes(&table.at("files"), &name)?;
        replay.add(&name, &bytes).map_err(|e| table.refused_key(e))?;
        let nodes = replay.nodes() as f64 * f64::from(t.steps);
        table.check_count("files", nodes, "run fewer steps, or shorter traces")?;
    }
    // A job of more ranks would be another one.
    let more = file(hosts.len());
    if (table.cx.files)(Path::new(&more)).is_ok() {
        let message =
            format!("there are {} hosts, but also the trace `{more}` of a further rank", hosts.len());
        return table.refuse("files", message, "name a host for each trace in `hosts`");
    }
    let messages = replay.messages() as f64 * f64::from(t.steps);
    table.check_count("files", messages, "run fewer steps, or smaller groups")?;
    let replayed = replay.finish(t.steps).map_err(|e| table.refused_key(e))?;
    if let Some(untimed) = &replayed.untimed {
        table.warn("files", untimed);
    }
    let schedule = replayed.program.schedule(&hosts, t.start.0, &replayed.label());
    made(table, schedule.map_err(|e| xoff_net::error::SpecError { key: "files".into(), ..e }))
}

/// The groups of the file that names them.
fn groups(table: &mut Table<'_, '_>, t: &Trace) -> Result<Groups, Error> {
    let Some(name) = &t.groups else { return Ok(Groups::new()) };
    let text = table.cx.file(&table.at("groups"), name)?;
    group_file(&text).map_err(|e| Error::in_file(name, &text, e))
}
