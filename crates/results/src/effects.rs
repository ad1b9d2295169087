//! Notes on options without effect and mechanisms that never acted, with how near they came to acting.

use crate::statistics::started;
use crate::{human, names};
use xoff_net::topology::PortId;
use xoff_outcome::Outcome;
use xoff_outcome::report::{Level, Note, Ran};
use xoff_plan::plan::{Limit, Plan};
use xoff_schemes::congestion_control::CongestionControlParams;
use xoff_schemes::flow_control::PauseScope;

pub(crate) fn notes(plan: &Plan, ran: &Ran<'_>, notes: &mut Vec<Note>) {
    let outcome = ran.outcome;
    traffic(plan, outcome, notes);
    pfc(plan, outcome, notes);
    notes.extend(plan.flow_control.idle(ran));
    blocking(plan, outcome, notes);
    ecn(plan, outcome, notes);
    receivers(plan, outcome, notes);
    window(plan, notes);
    pacing(plan, notes);
    repeats(outcome, notes);
}

fn note(text: impl Into<String>) -> Note {
    Note::new(Level::Note, text)
}

/// The account that came nearest to its threshold: who, its occupancy, and the lowest its threshold can have
/// been at any time of the run.
struct Fullest {
    port: PortId,
    lane: u8,
    peak: u64,
    threshold: u64,
    dynamic: bool,
}

fn pfc(plan: &Plan, outcome: &Outcome, notes: &mut Vec<Note>) {
    if plan.flow_control.pfc().is_none() {
        return;
    }
    let name = match plan.flow_control.traits().pause_scope {
        PauseScope::Link => "PAUSE",
        _ => "PFC",
    };
    if !plan.lanes.iter().any(|l| l.lossless) {
        return notes.push(note(format!("{name} had no effect: no priority in use is lossless.")));
    }
    if outcome.ports.iter().any(|p| p.pause_frames > 0) {
        return;
    }
    let text = match fullest(plan, outcome) {
        None => format!("{name} never paused: no ingress of a lossless priority has a threshold."),
        Some(f) if f.peak == 0 => {
            format!("{name} never paused: no packet of a lossless priority was buffered.")
        }
        Some(f) => {
            let (queue, reached) = (names::queue(plan, f.port, f.lane), human::bytes(f.peak));
            let of = match f.dynamic {
                true => "and its dynamic XOFF threshold stayed at or above",
                false => "of its XOFF threshold of",
            };
            let threshold = human::bytes(f.threshold);
            format!("{name} never paused: the fullest ingress, {queue}, reached {reached} {of} {threshold}.")
        }
    };
    let help = "To cause pauses, raise the load or the fan-in, or lower the threshold (flow_control.xoff).";
    notes.push(note(text).help(help));
}

/// The blocking oracle examines the effects of pauses.
fn blocking(plan: &Plan, outcome: &Outcome, notes: &mut Vec<Note>) {
    // The explanation of flows needs their paths and queues in any case.
    let measured = plan.measure.blocking && !plan.measure.explain;
    let traits = plan.flow_control.traits();
    if measured && traits.pause_scope == PauseScope::Nothing && !traits.slows && outcome.pauses.is_empty() {
        let text = "measure.blocking had no effect: with flow_control.scheme = \"none\" there are no pauses.";
        notes.push(note(text));
    }
}

fn fullest(plan: &Plan, outcome: &Outcome) -> Option<Fullest> {
    let lanes = plan.lanes.len();
    let mut best: Option<Fullest> = None;
    for (index, (account, peak)) in plan.accounts.iter().zip(&outcome.accounts).enumerate() {
        let (port, lane) = ((index / lanes) as PortId, (index % lanes) as u8);
        // A scheme that grants by slots has no threshold.
        if account.headroom.is_none() || plan.flow_control.grants_slots(port) {
            continue;
        }
        let (limit, dynamic) = match account.limit {
            Limit::Unlimited => continue,
            Limit::Static(bytes) => (bytes, false),
            Limit::Dynamic { alpha_q16, cap } => {
                // The free bytes of the shared pool when the buffer was fullest, or more: not all of its
                // bytes were shared.
                let node = plan.topology.ports[port as usize].node as usize;
                let free = plan.buffers[node].shared.saturating_sub(outcome.buffer_peaks[node]);
                let share = (u128::from(alpha_q16) * u128::from(free)) >> 16;
                (u64::try_from(share).unwrap_or(u64::MAX).min(cap), true)
            }
        };
        let threshold = account.reserve.saturating_add(limit);
        let this = Fullest { port, lane, peak: peak.main, threshold, dynamic };
        let fuller = |b: &Fullest| {
            u128::from(this.peak) * u128::from(b.threshold) > u128::from(b.peak) * u128::from(this.threshold)
        };
        if best.as_ref().is_none_or(fuller) {
            best = Some(this);
        }
    }
    best
}

fn ecn(plan: &Plan, outcome: &Outcome, notes: &mut Vec<Note>) {
    if plan.lanes.iter().all(|l| l.ecn.is_none()) {
        return;
    }
    let marks: u64 = outcome.ports.iter().map(|p| p.marks).sum();
    if marks > 0 {
        if !plan.reacts_to_marks() {
            let set = human::counted(marks, "mark") + if marks == 1 { " was set" } else { " were set" };
            let name = plan.congestion_control.name();
            notes.push(note(format!(
                "ECN marks had no effect: {set}, and transport.congestion_control = \"{name}\" ignores them."
            )));
        }
        return;
    }
    let marks_at = |port: PortId| {
        let mut all = plan.lanes.iter().filter_map(|l| l.ecn);
        all.any(|red| red.holds_at(&plan.topology, port))
    };
    let ports = outcome.ports.iter().enumerate().filter(|&(port, _)| marks_at(port as PortId));
    let longest = ports.rev().max_by_key(|(_, p)| p.queue_peak);
    let reached = longest.map_or(String::new(), |(port, p)| {
        let rate = plan.topology.ports[port].rate;
        let k_min = plan.lanes.iter().filter_map(|l| l.ecn).map(|e| e.at(rate).k_min).min().unwrap_or(0);
        let [peak, k_min] = [p.queue_peak, k_min].map(human::bytes);
        let at = names::port(plan, port as PortId);
        format!(": the longest queue, at {at}, reached {peak}, and marking begins above {k_min}")
    });
    let idle = match plan.reacts_to_marks() {
        true if plan.congestion_control == CongestionControlParams::None => {
            format!(" So {} reduced no window because of a mark.", names::transport(plan))
        }
        // It also reacts to delays and trimmed packets.
        true if plan.congestion_control.sets_windows() => {
            format!(" So {} reduced no window because of a mark.", plan.congestion_control.name())
        }
        true => format!(" So {} changed no rate.", plan.congestion_control.name()),
        false => String::new(),
    };
    notes.push(note(format!("ECN never marked a packet{reached}.{idle}")));
}

fn receivers(plan: &Plan, outcome: &Outcome, notes: &mut Vec<Note>) {
    for receiver in &plan.receivers {
        let host = names::node(plan, receiver.host);
        let mut flows = plan.flows.iter().zip(&outcome.flows);
        if !flows.any(|(f, o)| f.dst == receiver.host && started(o)) {
            let text = format!("The slow receiver {host} had no effect: no flow has it as its destination.");
            notes.push(note(text));
        } else if let Some(&(from, _)) = receiver.stalls.iter().find(|&&(from, _)| from >= outcome.end) {
            let (from, end) = (human::time(from), human::time(outcome.end));
            notes.push(note(format!("The stall of {host} at {from} had no effect: the run ended at {end}.")));
        }
    }
}

fn window(plan: &Plan, notes: &mut Vec<Note>) {
    if let Some(window) = plan.transport.window
        && let Some(largest) = plan.flows.iter().map(|f| f.size).max().filter(|&size| size <= window)
    {
        let [window, largest] = [window, largest].map(human::bytes);
        notes.push(note(format!(
            "transport.window = {window} had no effect: the largest flow has {largest}."
        )));
    }
}

fn pacing(plan: &Plan, notes: &mut Vec<Note>) {
    let first = (0..).zip(&plan.flows).find(|&(i, f): &(u32, _)| {
        let nic =
            |start: u32| names::route(plan, start).0.first().map(|&p| plan.topology.ports[p as usize].rate);
        // The faster one of two ports that its host may choose.
        let line = nic(f.path).max(plan.other_route(i).and_then(nic));
        f.pace > 0 && line.is_some_and(|line| f.pace >= line)
    });
    if let Some((index, flow)) = first {
        let (name, rate) = (names::flow(plan, index), human::rate(flow.pace as f64));
        notes.push(note(format!(
            "The rate of {name} had no effect: its host's port is not faster than that rate, {rate}."
        )));
    }
}

/// Packets that were retransmitted although they had arrived.
fn repeats(outcome: &Outcome, notes: &mut Vec<Note>) {
    let sum = |get: &dyn Fn(&xoff_outcome::FlowOutcome) -> u64| outcome.flows.iter().map(get).sum();
    let (spurious, all): (u64, u64) = (sum(&|f| f.spurious), sum(&|f| f.retransmitted));
    if spurious > all {
        let again = human::counted(spurious, "packet");
        notes.push(note(format!("{again} arrived after another copy had already arrived.")));
    } else if spurious > 0 {
        let (again, all) = (human::count(spurious), human::counted(all, "retransmission"));
        notes.push(note(format!("{again} of {all} were unnecessary: the packets had already arrived.")));
    }
}

/// Traffic that sent nothing.
fn traffic(plan: &Plan, outcome: &Outcome, notes: &mut Vec<Note>) {
    if plan.flows.is_empty() {
        let text = "No flow ran: the traffic starts none before the run ends.";
        let help = "Lengthen run.duration, raise the load or change run.seed.";
        return notes.push(Note::new(Level::Warning, text).help(help));
    }
    // Traffic without any flow is the scenario's matter, known before the run.
    for (class, name) in plan.classes.iter().enumerate() {
        let all = plan.flows.iter().zip(&outcome.flows);
        let mut flows = all.filter(|(f, _)| usize::from(f.class) == class).peekable();
        if flows.peek().is_some() && !flows.any(|(_, o)| started(o)) {
            let text =
                format!("The traffic \"{name}\" had no effect: none of its flows started before the end.");
            notes.push(note(text));
        }
    }
}
