//! The effects of failed links, missing routes, loss and corruption, in words.

use std::collections::BTreeMap;

use crate::{drops, human, names, statistics};
use xoff_kernel::time::Time;
use xoff_net::topology::PortId;
use xoff_outcome::report::{Level, Note};
use xoff_outcome::{DropReason, Outcome};
use xoff_plan::balancing::is_choice;
use xoff_plan::plan::{DELIVER, ENDS, Plan};

/// Most flows that are named.
const NAMED: usize = 4;

pub fn notes(plan: &Plan, outcome: &Outcome, notes: &mut Vec<Note>) {
    lost(plan, outcome, notes);
    isolated(plan, outcome, notes);
}

/// Packets lost to faults, by reason.
fn lost(plan: &Plan, outcome: &Outcome, notes: &mut Vec<Note>) {
    let mut by_reason: BTreeMap<DropReason, u64> = BTreeMap::new();
    let faults = || outcome.drops.iter().filter(|d| d.reason.by_fault());
    faults().for_each(|d| *by_reason.entry(d.reason).or_default() += d.packets);
    // The first of those that lost most.
    let Some(worst) = faults().rev().max_by_key(|d| d.packets) else { return };
    let part = |(&reason, &packets)| format!("{} because {}", human::count(packets), drops::reason(reason));
    let parts: Vec<String> = by_reason.iter().map(part).collect();
    let text = format!(
        "Faults dropped {}: {}. The most at {}: {}.",
        human::counted(by_reason.values().sum(), "packet"),
        human::listed(&parts),
        names::port(plan, worst.ingress),
        human::count(worst.packets),
    );
    notes.push(Note::new(Level::Note, text));
}

fn down(plan: &Plan, port: PortId, at: Time) -> bool {
    let faults = &plan.faults.down;
    faults
        .binary_search_by_key(&port, |d| d.port)
        .is_ok_and(|i| faults[i].spans.iter().any(|&(from, until)| from <= at && at < until))
}

/// Where the routes of a flow and of its ACKs start in the plan's hops at the end of the run.
pub fn last_routes(plan: &Plan, outcome: &Outcome, flow: u32) -> (u32, u32) {
    let planned = &plan.flows[flow as usize];
    let last = plan.faults.reroutes.iter().rfind(|r| r.at <= outcome.end);
    let changed = last.and_then(|r| {
        let routes = &plan.faults.tables[r.table as usize].flows;
        routes.binary_search_by_key(&flow, |r| r.flow).ok().map(|at| routes[at])
    });
    let (path, ack_path) = changed.map_or((planned.path, planned.ack_path), |r| (r.path, r.ack_path));
    (outcome.routes.as_ref().map_or(path, |routes| routes[flow as usize]), ack_path)
}

/// Whether a flow that did not finish had no working path at the end, or its ACKs had none.
pub fn cut_off(plan: &Plan, outcome: &Outcome, flow: u32) -> bool {
    let open = |start: u32| {
        let tail = &plan.hops[start as usize..];
        let end = tail.iter().position(|&h| h >= ENDS).expect("a route has an end");
        // After a choice every path leads on, over links that routes know to be up.
        (tail[end] == DELIVER || is_choice(tail[end]))
            && !tail[..end].iter().any(|&p| down(plan, p, outcome.end))
    };
    let (path, ack_path) = last_routes(plan, outcome, flow);
    !plan.faults.down.is_empty()
        && statistics::started(&outcome.flows[flow as usize])
        && outcome.flows[flow as usize].is_unfinished()
        && !(open(path) && open(ack_path))
}

fn isolated(plan: &Plan, outcome: &Outcome, notes: &mut Vec<Note>) {
    let cut: Vec<u32> = (0..plan.flows.len() as u32).filter(|&i| cut_off(plan, outcome, i)).collect();
    if cut.is_empty() {
        return;
    }
    let text = format!(
        "{} did not finish and had no working path at the end: a link was down and no other route was in use.",
        human::counted(cut.len() as u64, "flow"),
    );
    let help = "Let the link recover (failure.until) or shorten routing.reconvergence.";
    let mut note = Note::new(Level::Warning, text).help(help);
    note.details = cut.iter().take(NAMED).map(|&i| names::flow(plan, i)).collect();
    if cut.len() > NAMED {
        note.details.push(format!("and {} more", human::count((cut.len() - NAMED) as u64)));
    }
    notes.push(note);
}
