//! Why flows did not finish: deadlock, waits, or the end of the run.

use std::collections::BTreeMap;

use crate::statistics::started;
use crate::{breaking, faults, human, names};
use xoff_kernel::time::Time;
use xoff_net::topology::{NodeId, PortId};
use xoff_outcome::report::{Level, Note};
use xoff_outcome::{Deadlock, Outcome, Quantity, Stop, Wait};
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::FlowControlParams;

/// Most flows or waits that a note lists one by one.
const LISTED: usize = 8;

pub(crate) fn notes(plan: &Plan, outcome: &Outcome, notes: &mut Vec<Note>) {
    if let Some(deadlock) = &outcome.deadlock {
        notes.push(story(plan, outcome, deadlock));
    }
    waits(plan, outcome, notes);
    failed(plan, outcome, notes);
    unfinished(plan, outcome, notes);
    never_started(plan, outcome, notes);
}

/// The cycle, each queue before the one that it waits for: `S0.1:2 -> S1.0:3 -> S0.1:2`.
pub fn cycle(plan: &Plan, deadlock: &Deadlock) -> String {
    let ring = deadlock.cycle.iter().chain(deadlock.cycle.first());
    ring.map(|h| names::queue(plan, h.port, h.lane)).collect::<Vec<_>>().join(" -> ")
}

fn story(plan: &Plan, outcome: &Outcome, deadlock: &Deadlock) -> Note {
    let text = format!(
        "A deadlock formed at {} (xoff detected it at {}). Each queue waits for the next: {}.",
        human::time(deadlock.closed),
        human::time(deadlock.seen),
        cycle(plan, deadlock)
    );
    let mut note = Note::new(Level::Finding, text);
    if let Some(ended) = deadlock.ended.map(human::time) {
        note.details.push(format!("it lasted until {ended}, when the first of these queues sent again"));
    }
    for held in &deadlock.cycle {
        let queue = names::queue(plan, held.port, held.lane);
        if held.bytes == 0 {
            note.details.push(format!("{queue} holds no packets of the cycle: it passes the pause on"));
            continue;
        }
        let flows: Vec<String> = held.flows.iter().map(|&f| names::flow(plan, f)).collect();
        let bytes = human::bytes(held.bytes);
        note.details.push(format!("{queue} holds {bytes} of {}", breaking::flows(&flows, LISTED / 2)));
    }
    let behind = deadlock.stuck.len().saturating_sub(deadlock.cycle.len());
    if behind > 0 {
        let can = if deadlock.ended.is_some() { "could not drain" } else { "can never drain" };
        let queues = if behind == 1 { "ingress queue" } else { "ingress queues" };
        note.details.push(format!("{behind} {queues} upstream of the cycle {can}"));
    }
    note.details.extend(collapse(outcome, deadlock));
    note.details.extend(breaking::step(plan, deadlock).iter().flat_map(breaking::advice));
    let lossless = match plan.flow_control {
        FlowControlParams::Pfc(_) => "PFC",
        _ => "flow control",
    };
    note.help(format!(
        "Change the routes until no cycle of queues can form: xoff check finds such cycles, and xoff check --suggest \
         examines changes. Without {lossless} (--set flow_control.scheme=none), packets are dropped instead."
    ))
}

/// The goodput before and after the deadlock, if it was sampled.
fn collapse(outcome: &Outcome, deadlock: &Deadlock) -> Option<String> {
    // Total of all classes by time of sample.
    let mut goodput: BTreeMap<Time, u64> = BTreeMap::new();
    for s in &outcome.series {
        if let Quantity::Goodput(_) = s.what {
            *goodput.entry(s.at).or_default() += s.value;
        }
    }
    let before: Vec<u64> = goodput.range(..=deadlock.closed).map(|(_, &v)| v).collect();
    let (&last, &rate) = goodput.last_key_value()?;
    if before.is_empty() || last <= deadlock.closed {
        return None;
    }
    let mean = before.iter().map(|&v| v as f64).sum::<f64>() / before.len() as f64;
    Some(format!(
        "goodput was {} on average before the deadlock and {} in the last sample (at {})",
        human::rate(mean),
        human::rate(rate as f64),
        human::time(last),
    ))
}

/// Waits for a host that accepts no packets, and waits without a deadlock.
fn waits(plan: &Plan, outcome: &Outcome, notes: &mut Vec<Note>) {
    let mut roots: Vec<NodeId> = outcome.waiting.iter().filter_map(|w| w.root).collect();
    roots.sort_unstable();
    roots.dedup();
    for root in roots {
        let waits: Vec<&Wait> = outcome.waiting.iter().filter(|w| w.root == Some(root)).collect();
        let why = format!("because {} does not accept packets", names::node(plan, root));
        notes.push(listed_waits(plan, &waits, &why));
    }
    if outcome.deadlock.as_ref().is_none_or(|d| d.ended.is_some()) {
        let waits: Vec<&Wait> = outcome.waiting.iter().filter(|w| w.root.is_none()).collect();
        if !waits.is_empty() {
            notes.push(listed_waits(plan, &waits, "by pauses of the next hop"));
        }
    }
}

fn listed_waits(plan: &Plan, waits: &[&Wait], why: &str) -> Note {
    let blocked = match waits.len() {
        1 => "1 queue was blocked".into(),
        n => format!("{n} queues were blocked"),
    };
    let mut note = Note::new(Level::Warning, format!("{blocked} at the end {why}:"));
    for w in waits.iter().take(LISTED) {
        // A host's unsent flows are in no queue.
        let held = if w.bytes > 0 { format!("holds {} and ", human::bytes(w.bytes)) } else { String::new() };
        let (queue, waits_for) = (names::queue(plan, w.port, w.lane), names::port(plan, w.waits_for));
        note.details.push(format!("{queue} {held}has waited for {waits_for} since {}", human::time(w.since)));
    }
    if waits.len() > LISTED {
        note.details.push(format!("and {} more: see summary.json", waits.len() - LISTED));
    }
    note
}

/// For each account (`port * lanes + lane`): whether it can never drain.
fn stuck_accounts(plan: &Plan, outcome: &Outcome) -> Vec<bool> {
    let lanes = plan.lanes.len();
    let mut stuck = vec![false; plan.topology.ports.len() * lanes];
    let standing = outcome.deadlock.iter().filter(|d| d.ended.is_none());
    for &(port, lane) in standing.flat_map(|d| &d.stuck) {
        stuck[port as usize * lanes + usize::from(lane)] = true;
    }
    stuck
}

/// Whether a route of `lane` crosses an account that can never drain.
fn crosses(plan: &Plan, stuck: &[bool], route: &[PortId], lane: u8) -> bool {
    route.iter().any(|&egress| {
        let ingress = plan.topology.ports[egress as usize].peer;
        stuck[ingress as usize * plan.lanes.len() + usize::from(lane)]
    })
}

/// `1 runs`, `2 run`.
fn verb(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", human::count(n), if n == 1 { one } else { many })
}

/// Flows whose senders gave up.
fn failed(plan: &Plan, outcome: &Outcome, notes: &mut Vec<Note>) {
    let given_up =
        || (0u32..).zip(&outcome.flows).filter_map(|(flow, result)| Some((flow, result, result.failed?)));
    let Some((.., first)) = given_up().min_by_key(|&(flow, _, at)| (at, flow)) else { return };
    let all = outcome.flows.iter().filter(|result| started(result)).count();
    let text = format!(
        "{} of {} failed, the first at {}: their senders gave up after too many retries. Slowdowns cover only finished \
         flows.",
        human::count(given_up().count() as u64),
        human::counted(all as u64, "flow"),
        human::time(first),
    );
    let mut note = Note::new(Level::Warning, text)
        .help("To let senders retry more often, raise transport.retries or write \"unlimited\".");
    for (flow, result, at) in given_up().take(LISTED) {
        let size = plan.flows[flow as usize].size;
        let delivered = match result.delivered_bytes {
            bytes if bytes == size => "all was delivered, but not acknowledged".to_string(),
            bytes => format!("{} of {} were delivered in order", human::bytes(bytes), human::bytes(size)),
        };
        let timeouts = human::counted(result.timeouts.into(), "timeout");
        note.details.push(format!(
            "{} failed at {} after {timeouts}: {delivered}",
            names::flow(plan, flow),
            human::time(at)
        ));
    }
    if given_up().count() > LISTED {
        note.details.push(format!("and {} more: see flows.parquet", given_up().count() - LISTED));
    }
    notes.push(note);
}

fn unfinished(plan: &Plan, outcome: &Outcome, notes: &mut Vec<Note>) {
    let stuck = stuck_accounts(plan, outcome);
    let (mut left, mut all, mut locked, mut looping, mut cut) = (0u64, 0u64, 0u64, 0u64, 0u64);
    for (index, (flow, result)) in (0..).zip(plan.flows.iter().zip(&outcome.flows)) {
        if !started(result) {
            continue;
        }
        all += 1;
        if !result.is_unfinished() {
            continue;
        }
        left += 1;
        let (path, ack_path) = faults::last_routes(plan, outcome, index);
        let data_loops = names::route(plan, path).1;
        // Any port that its packets may come to.
        let mut data: Vec<PortId> = Vec::new();
        plan.divide(path, 0, &mut |port, _| data.push(port));
        let (acks, acks_loop) = names::route(plan, ack_path);
        if faults::cut_off(plan, outcome, index) {
            cut += 1;
        } else if data_loops || acks_loop {
            looping += 1;
        } else if crosses(plan, &stuck, &data, flow.lane) || crosses(plan, &stuck, acks, flow.ack_lane) {
            locked += 1;
        }
    }
    if left == 0 {
        return;
    }
    let other = left - locked - looping - cut;
    let mut reasons = Vec::new();
    if locked > 0 {
        reasons.push(format!("{} the deadlock", verb(locked, "crosses", "cross")));
    }
    if looping > 0 {
        reasons.push(format!("{} in a routing loop", verb(looping, "runs", "run")));
    }
    if cut > 0 {
        reasons.push(format!("{} no working path at the end", verb(cut, "had", "had")));
    }
    if other > 0 {
        let running = |when: &str| format!("{} still running when {when}", verb(other, "was", "were"));
        reasons.push(match outcome.stop {
            Stop::Interrupted => running("the run was interrupted"),
            Stop::Memory => running("the memory budget was exhausted"),
            Stop::Livelock => format!("{} made no progress: livelock", human::count(other)),
            Stop::Starved => format!("{} can never continue, because no event is left", human::count(other)),
            _ => running("the simulation ended"),
        });
    }
    let text = format!(
        "{} of {} unfinished at {}: {}. Slowdowns cover only finished flows.",
        human::count(left),
        human::counted(all, "flow"),
        human::time(outcome.end),
        human::listed(&reasons),
    );
    let mut note = Note::new(Level::Warning, text);
    if other > 0 && locked == 0 && outcome.stop == Stop::EndTime {
        note = note.help("To let the last flows finish, raise run.drain or run.duration.");
    }
    notes.push(note);
}

/// Flows whose gate never opened, by traffic class.
fn never_started(plan: &Plan, outcome: &Outcome, notes: &mut Vec<Note>) {
    let mut left = vec![(0u64, 0u64); plan.classes.len()];
    for (flow, result) in plan.flows.iter().zip(&outcome.flows).filter(|(f, _)| f.after.is_some()) {
        let (never, all) = &mut left[usize::from(flow.class)];
        *all += 1;
        *never += u64::from(!started(result));
    }
    for (name, (never, all)) in plan.classes.iter().zip(left).filter(|(_, (never, _))| *never > 0) {
        let text = format!(
            "{} of the {} of \"{name}\" that depend on other flows never started: at {} those flows were not yet \
             delivered, or the host was still computing.",
            human::count(never),
            human::counted(all, "flow"),
            human::time(outcome.end),
        );
        notes.push(Note::new(Level::Warning, text));
    }
}
