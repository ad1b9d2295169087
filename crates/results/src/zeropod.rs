//! Pods without buffers in numbers and words: epochs, grants, what was sent without one, and what failed.

use crate::human;
use crate::names;
use crate::note::{Level, Note};
use serde::Serialize;
use xoff_kernel::time::Time;
use xoff_plan::plan::Plan;
use xoff_sim::outcome::Outcome;

/// What happened in pods without buffers. Two cells that were granted never met: the run would have stopped.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ZeropodSummary {
    /// Length of an epoch in picoseconds.
    pub epoch_ps: Time,
    /// From the epoch in which a request is heard until that of its data, in epochs.
    pub pipeline: u64,
    /// Epochs that schedulers worked for, all pods together.
    pub epochs: u64,
    /// Grants of an epoch to a sender.
    pub grants: u64,
    /// Cells that crossed a pod by them; those between pods cross two.
    pub scheduled: u64,
    /// Cells that were granted, and for which nothing was left.
    pub unused: u64,
    /// Iterations of Algorithm 1 in which a path was asked for.
    pub iterations: u64,
    /// Paths that were asked for, and those that were accepted.
    pub requests: u64,
    /// See `requests`.
    pub accepted: u64,
    /// Entries of the fullest request (RTS).
    pub most_in_rts: u64,
    /// Times that a core asked for nothing more for a pod.
    pub backpressure: u64,
    /// Most bytes that a receiver held back for others before them.
    pub most_held: u64,
    /// Cells sent optimistically.
    pub optimistic: u64,
    /// Those of them that arrived, …
    pub optimistic_delivered: u64,
    /// … as a share of all, 0 to 1; null if none was sent.
    pub optimistic_share: Option<f64>,
    /// Those that arrived, for each host and each time that a cell takes, from the first start of a flow to the last
    /// (S of equation 7); null if none was sent.
    pub optimistic_goodput: Option<f64>,
    /// Those that met something scheduled, …
    pub met_scheduled: u64,
    /// … or another one.
    pub met_optimistic: u64,
    /// Cells whose grants came to nothing, as an SCHD was lost, and that were granted again.
    pub taken_back: u64,
    /// Requests that came at another time than they should: a clock is off.
    pub off_time: u64,
    /// Links that schedulers took to be down, or tried again: in the order of time.
    pub links_found: Vec<LinkFound>,
}

/// A link that a scheduler took to be down, or tried again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkFound {
    /// When, in picoseconds.
    pub at_ps: Time,
    /// The port that sends over it.
    pub port: String,
    /// Whether it was taken to be down.
    pub down: bool,
}

/// Sums up, where pods have no buffers.
pub fn summarise(plan: &Plan, outcome: &Outcome) -> Option<ZeropodSummary> {
    let (zeropod, told) = (plan.zeropod.as_ref()?, outcome.zeropod.as_ref()?);
    let sent = told.unscheduled;
    let found = |f: &xoff_sim::outcome::LinkFound| LinkFound {
        at_ps: f.at,
        port: names::port(plan, f.port),
        down: f.down,
    };
    let starts = || outcome.flows.iter().filter_map(|f| f.started);
    let span = starts().max().unwrap_or(0) - starts().min().unwrap_or(0);
    let slots = plan.topology.hosts().count() as f64 * span as f64 / zeropod.slots.data as f64;
    Some(ZeropodSummary {
        epoch_ps: zeropod.slots.epoch(),
        pipeline: zeropod.slots.pipeline(zeropod.delay, zeropod.pod.cores > 0).data,
        epochs: told.epochs,
        grants: told.grants,
        scheduled: told.scheduled,
        unused: told.unused,
        iterations: told.tally.iterations,
        requests: told.tally.requests,
        accepted: told.tally.accepted,
        most_in_rts: told.most_in_rts,
        backpressure: told.backpressure,
        most_held: told.most_held,
        optimistic: sent.sent,
        optimistic_delivered: sent.delivered,
        optimistic_share: (sent.sent > 0).then(|| sent.delivered as f64 / sent.sent as f64),
        optimistic_goodput: (sent.sent > 0 && span > 0).then(|| sent.delivered as f64 / slots),
        met_scheduled: sent.met_scheduled,
        met_optimistic: sent.met_unscheduled,
        taken_back: told.taken_back,
        off_time: told.off_time,
        links_found: told.found.iter().map(found).collect(),
    })
}

/// The rows of the answer's totals.
pub fn rows(s: &ZeropodSummary) -> Vec<(&'static str, String)> {
    let mut rows = vec![(
        "grants",
        format!(
            "{} in {} of {}, {} cells, none of which met another one",
            human::count(s.grants),
            human::counted(s.epochs, "epoch"),
            human::time(s.epoch_ps),
            human::count(s.scheduled)
        ),
    )];
    if s.optimistic > 0 {
        rows.push((
            "cells",
            format!(
                "{} optimistic: {} arrived, {} met something scheduled, {} each other",
                human::count(s.optimistic),
                human::count(s.optimistic_delivered),
                human::count(s.met_scheduled),
                human::count(s.met_optimistic)
            ),
        ));
    }
    rows
}

/// What failed.
pub(crate) fn notes(plan: &Plan, outcome: &Outcome, notes: &mut Vec<Note>) {
    let Some(s) = summarise(plan, outcome) else { return };
    let mut down: Vec<&LinkFound> = s.links_found.iter().filter(|f| f.down).collect();
    if let Some(first) = down.first() {
        let at = human::time(first.at_ps);
        let first = first.port.clone();
        down.sort_by(|a, b| a.port.cmp(&b.port));
        down.dedup_by(|a, b| a.port == b.port);
        let text = format!(
            "Schedulers took {} to be down, the first ({first}) at {at}; {} of grants whose answer was lost were granted \
             again.",
            human::counted(down.len() as u64, "link"),
            human::counted(s.taken_back, "cell")
        );
        notes.push(Note::new(Level::Finding, text));
    }
    if s.off_time > 0 {
        let text = format!(
            "{} came at another time than they should: clocks are off by more than the guard band takes, and these \
             hosts got no grant.",
            human::counted(s.off_time, "request")
        );
        notes.push(
            Note::new(Level::Warning, text).help("Choose a wider zeropod.guard: twice the error or more."),
        );
    }
    let lost = outcome.drops.iter().any(|d| d.reason.by_fault());
    if lost && plan.zeropod.as_ref().is_some_and(|z| z.acks.is_none()) {
        let text = "Cells were lost with failed links, and nothing repeats them.";
        notes.push(
            Note::new(Level::Warning, text.to_string())
                .help("--set zeropod.acks=true has receivers say what has come."),
        );
    }
}
