//! The run explains itself: faults, findings, and settings without effect.

use crate::drops::{breaks_losslessness, reason};
use crate::sections::{priorities, ran};
use crate::{effects, faults, human, livelock, names, stuck};
use xoff_net::topology::{NodeKind, PortId};
use xoff_outcome::report::{Level, Note, Section};
use xoff_outcome::{DropReason, Drops, Outcome, Stop};
use xoff_plan::plan::{Flow, Plan};
use xoff_schemes::flow_control::LinkFacts;
use xoff_schemes::flow_control::pfc::headroom;
use xoff_schemes::scheduling::PodsKeys;

/// Most places of lossless drops that are reported one by one.
const LISTED_LOSSES: usize = 8;

/// Uses of memory that are listed where the memory budget ended a run.
const LARGEST: usize = 4;

/// All notes on a run, the gravest first.
pub fn notes(plan: &Plan, outcome: &Outcome, sections: &[Section]) -> Vec<Note> {
    let mut notes = Vec::new();
    let priorities = priorities(plan);
    let ran = ran(plan, outcome, &priorities);
    interrupted(plan, outcome, &mut notes);
    lossless_drops(plan, outcome, &mut notes);
    notes.extend(plan.flow_control.notes(&ran));
    lossy_drops(plan, outcome, &mut notes);
    expired(plan, outcome, &mut notes);
    faults::notes(plan, outcome, &mut notes);
    stuck::notes(plan, outcome, &mut notes);
    livelock::notes(plan, outcome, &mut notes);
    notes.extend(sections.iter().flat_map(|section| &section.notes).cloned());
    effects::notes(plan, &ran, &mut notes);
    notes.sort_by_key(|n| n.level); // stable: the order above within a level
    notes
}

fn interrupted(plan: &Plan, outcome: &Outcome, notes: &mut Vec<Note>) {
    let why = match outcome.stop {
        Stop::Interrupted => "The run was interrupted",
        Stop::Memory => "The memory budget ended the run",
        _ => return,
    };
    let planned = plan.end.map_or(String::new(), |end| format!(" of {}", human::time(end)));
    let end = human::time(outcome.end);
    let text = format!("{why} at {end}{planned}. All results cover only the time until then.");
    let mut note = Note::new(Level::Warning, text);
    if outcome.stop == Stop::Memory {
        let largest = outcome.memory.iter().take(LARGEST);
        note.details.extend(largest.map(|u| format!("{}: {}", u.what, human::bytes(u.bytes))));
        note = note.help("Allow more with --memory, or make the run smaller: shorten run.duration or lengthen measure.interval.");
    }
    notes.push(note);
}

fn lossless_drops(plan: &Plan, outcome: &Outcome, notes: &mut Vec<Note>) {
    let mut places: Vec<&Drops> = outcome.drops.iter().filter(|d| breaks_losslessness(d)).collect();
    // The first one to lose is the nearest to the cause.
    places.sort_by_key(|d| d.first);
    let more = places.split_off(places.len().min(LISTED_LOSSES));
    for d in places {
        let ingress = names::port(plan, d.ingress);
        let priority = names::priority(plan, d.lane);
        let short = human::bytes(d.shortfall);
        let (room, help) = match d.reason {
            DropReason::HeadroomFull => {
                let account = d.ingress as usize * plan.lanes.len() + usize::from(d.lane);
                let size = plan.accounts[account].headroom.as_ref().map_or(0, |h| h.total);
                (
                    format!("its headroom of {} was too small by up to {short}", human::bytes(size)),
                    headroom_help(plan, d.ingress, size),
                )
            }
            // A core has one buffer, and the cells that it asks for fill it.
            DropReason::BufferFull if let Some(pods) = &plan.pods => (
                format!("the core's buffer of {} was full", human::bytes(pods.core_buffer)),
                format!("Raise {0}.core_buffer, or lower {0}.backpressure.", PodsKeys::NAME),
            ),
            DropReason::BufferFull => {
                let node = plan.topology.ports[d.ingress as usize].node;
                let account = d.ingress as usize * plan.lanes.len() + usize::from(d.lane);
                let total = plan.buffers[plan.accounts[account].pool.unwrap_or(node) as usize].total;
                let kind = plan.topology.nodes[node as usize].kind;
                let help = if plan.flow_control.grants_slots(d.ingress) {
                    slots_help(plan, d.ingress)
                } else if plan.topology.is_relay(node) {
                    format!("Raise flow_control.relay_buffer by {short} or more.")
                } else if let Some(help) = plan.flow_control.full_buffer_help(kind) {
                    help.to_string()
                } else {
                    let table = match kind {
                        NodeKind::Host => "host",
                        NodeKind::Switch => "switch",
                    };
                    format!(
                        "Raise {table}.buffer by {short} or more, or lower the threshold at which the priority pauses."
                    )
                };
                (format!("its buffer of {} was full, too small by {short}", human::bytes(total)), help)
            }
            DropReason::QueueLimit => (
                format!("an egress queue was at its limit, too small by {short}"),
                format!(
                    "Remove egress_limit from priority {priority}: a limit on a lossless queue loses packets."
                ),
            ),
            DropReason::LoopGivenUp => (
                "the scheme gave up the deadlocked loop that they were in".to_string(),
                "Raise flow_control.patience: overlapping loops wait for each other.".to_string(),
            ),
            _ => unreachable!("filtered by breaks_losslessness"),
        };
        let text = format!(
            "{ingress} dropped {} ({}) of the lossless priority {priority}, the first at {}: {room}.",
            human::counted(d.packets, "packet"),
            human::bytes(d.bytes),
            human::time(d.first),
        );
        notes.push(Note::new(Level::Error, text).help(help));
    }
    if !more.is_empty() {
        let text = format!(
            "Later, {} of lossless priorities were dropped at {}: see drops.places in summary.json.",
            human::counted(more.iter().map(|d| d.packets).sum(), "more packet"),
            human::counted(more.len() as u64, "other place"),
        );
        notes.push(Note::new(Level::Error, text));
    }
}

/// Advice about a headroom of `size` bytes that was too small at `ingress`. The drops only show that it was
/// too small, not the required size: dropped bytes were never charged.
fn headroom_help(plan: &Plan, ingress: PortId, size: u64) -> String {
    if plan.flow_control.grants_slots(ingress) {
        return slots_help(plan, ingress);
    }
    if let Some(help) = plan.flow_control.full_headroom_help() {
        return help.into();
    }
    let Some(pfc) = plan.flow_control.pfc() else {
        return "Raise flow_control.headroom.".into();
    };
    let port = &plan.topology.ports[ingress as usize];
    if port.long && plan.topology.is_relay(port.node) {
        return "Raise flow_control.relay_buffer or lower flow_control.relay_limit. xoff topo warns if a relay is \
                not lossless."
            .into();
    }
    let limits = plan.link_layer.as_ref().and_then(|params| params.ports[ingress as usize]);
    let retries = limits.map_or(0, |limits| limits.headroom);
    let link = LinkFacts { rate: port.rate, delay: port.delay, largest: plan.packet.largest(), retries };
    let needed = headroom(&link, pfc.response_time).total;
    if size < needed {
        let key = if port.long { "flow_control.long.headroom" } else { "flow_control.headroom" };
        format!("This link needs {needed} B: remove {key} or set it to \"auto\".")
    } else if limits.is_some() {
        "The link layer repaired more often in a row than link_layer.recoveries allows. Raise it.".into()
    } else if plan.faults.losses.iter().any(|l| l.port == ingress) {
        // The pause frames leave by this port.
        "[[loss]] also loses pause frames on this link, and a retransmitted pause is too late.".into()
    } else {
        format!(
            "The headroom is at least the {needed} B of the formula: this is a bug of xoff; please report it."
        )
    }
}

/// Advice about a long link that was granted more bytes than it had room for.
fn slots_help(plan: &Plan, ingress: PortId) -> String {
    let peer = plan.topology.ports[ingress as usize].peer;
    if plan.faults.losses.iter().any(|l| l.port == ingress || l.port == peer) {
        return "[[loss]] also loses pause frames on this link: after such a loss, the whole slot is sent."
            .into();
    }
    "Remove flow_control.margin, spare and history: the defaults lose no packet.".into()
}

fn lossy_drops(plan: &Plan, outcome: &Outcome, notes: &mut Vec<Note>) {
    let lossy: Vec<&Drops> =
        outcome.drops.iter().filter(|d| !d.lossless && d.reason.for_want_of_room()).collect();
    // The first of those that lost most.
    let Some(worst) = lossy.iter().rev().max_by_key(|d| d.packets) else { return };
    let text = format!(
        "{} ({}) dropped in lossy priorities. The most at {}: {}, because {}.",
        human::counted(lossy.iter().map(|d| d.packets).sum(), "packet"),
        human::bytes(lossy.iter().map(|d| d.bytes).sum()),
        names::queue(plan, worst.ingress, worst.lane),
        human::count(worst.packets),
        reason(worst.reason),
    );
    notes.push(Note::new(Level::Note, text));
}

fn expired(plan: &Plan, outcome: &Outcome, notes: &mut Vec<Note>) {
    let packets: u64 =
        outcome.drops.iter().filter(|d| d.reason == DropReason::Expired).map(|d| d.packets).sum();
    let loops = |flow: &Flow| names::route(plan, flow.path).1 || names::route(plan, flow.ack_path).1;
    let mut looping = (0..).zip(&plan.flows).filter(|(_, flow)| loops(flow)).map(|(index, _)| index);
    let Some(first) = looping.next() else { return };
    let run = match 1 + looping.count() as u64 {
        1 => "1 flow runs".into(),
        n => format!("{} flows run", human::count(n)),
    };
    let expired = human::counted(packets, "packet");
    let text = format!("{run} in a routing loop and can never finish; {expired} expired there.");
    let help = "Change routing.overrides: each one must lead nearer to the destination.";
    let mut note = Note::new(Level::Warning, text).help(help);
    note.details.push(format!("{}: {}", names::flow(plan, first), loop_of(plan, first)));
    notes.push(note);
}

/// The loop that a flow's route runs in: `S0.0 -> S0.1 -> S0.0`.
fn loop_of(plan: &Plan, flow: u32) -> String {
    let flow = &plan.flows[flow as usize];
    let (route, loops) = names::route(plan, flow.path);
    let route = if loops { route } else { names::route(plan, flow.ack_path).0 };
    let nodes: Vec<u32> = route.iter().map(|&p| plan.topology.ports[p as usize].node).collect();
    for (end, node) in nodes.iter().enumerate() {
        if let Some(begin) = nodes[..end].iter().position(|n| n == node) {
            let names: Vec<&str> = nodes[begin..=end].iter().map(|&n| names::node(plan, n)).collect();
            return names.join(" -> ");
        }
    }
    "its time to live ends on the path".into()
}
