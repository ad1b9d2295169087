//! Notes on options without effect and mechanisms that never acted, with how near
//! they came to acting.

use crate::human;
use crate::names;
use crate::statistics::started;
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

/// The account that came nearest to its threshold: who, its occupancy, and the
/// lowest its threshold can have been at any time of the run.
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
        notes.push(note(format!("{name} had no effect: no priority in use is lossless.")));
        return;
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
            let reached = human::bytes(f.peak);
            let threshold = human::bytes(f.threshold);
            format!(
                "{name} never paused: the fullest ingress, {}, reached {reached} {}.",
                names::queue(plan, f.port, f.lane),
                if f.dynamic {
                    format!("and its dynamic XOFF threshold stayed at or above {threshold}")
                } else {
                    format!("of its XOFF threshold of {threshold}")
                }
            )
        }
    };
    notes.push(
        note(text).help(
            "To cause pauses, raise the load or the fan-in, or lower the threshold (flow_control.xoff).",
        ),
    );
}

/// The blocking oracle examines the effects of pauses.
fn blocking(plan: &Plan, outcome: &Outcome, notes: &mut Vec<Note>) {
    // The explanation of flows needs their paths and queues in any case.
    let measured = plan.measure.blocking && !plan.measure.explain;
    if measured && plan.flow_control.traits().pause_scope == PauseScope::Nothing && outcome.pauses.is_empty()
    {
        let text = "measure.blocking had no effect: with flow_control.scheme = \"none\" there are no pauses.";
        notes.push(note(text));
    }
}

fn fullest(plan: &Plan, outcome: &Outcome) -> Option<Fullest> {
    let lanes = plan.lanes.len();
    let mut best: Option<Fullest> = None;
    for (index, (account, peak)) in plan.accounts.iter().zip(&outcome.accounts).enumerate() {
        if account.headroom.is_none() {
            continue;
        }
        let (port, lane) = ((index / lanes) as PortId, (index % lanes) as u8);
        // A scheme that grants by slots has no threshold.
        if plan.flow_control.grants_slots(port) {
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
        let this = Fullest {
            port,
            lane,
            peak: peak.main,
            threshold: account.reserve.saturating_add(limit),
            dynamic,
        };
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
            notes.push(note(format!(
                "ECN marks had no effect: {}, and transport.congestion_control = \"{}\" ignores them.",
                human::counted(marks, "mark") + if marks == 1 { " was set" } else { " were set" },
                plan.congestion_control.name()
            )));
        }
        return;
    }
    let longest = outcome.ports.iter().enumerate().rev().max_by_key(|(_, p)| p.queue_peak);
    let reached = longest.map_or(String::new(), |(port, p)| {
        let rate = plan.topology.ports[port].rate;
        let k_min = plan.lanes.iter().filter_map(|l| l.ecn).map(|e| e.at(rate).k_min).min().unwrap_or(0);
        format!(
            ": the longest queue, at {}, reached {}, and marking begins above {}",
            names::port(plan, port as PortId),
            human::bytes(p.queue_peak),
            human::bytes(k_min)
        )
    });
    let idle = match plan.reacts_to_marks() {
        true if plan.congestion_control == CongestionControlParams::None => {
            format!(" So {} reduced no window because of a mark.", names::transport(plan))
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
            notes.push(note(format!(
                "The slow receiver {host} had no effect: no flow has it as its destination."
            )));
        } else if let Some(&(from, _)) = receiver.stalls.iter().find(|&&(from, _)| from >= outcome.end) {
            notes.push(note(format!(
                "The stall of {host} at {} had no effect: the run ended at {}.",
                human::time(from),
                human::time(outcome.end)
            )));
        }
    }
}

fn window(plan: &Plan, notes: &mut Vec<Note>) {
    let (Some(window), Some(largest)) = (plan.transport.window, plan.flows.iter().map(|f| f.size).max())
    else {
        return;
    };
    if largest <= window {
        notes.push(note(format!(
            "transport.window = {} had no effect: the largest flow has {}.",
            human::bytes(window),
            human::bytes(largest)
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
        notes.push(note(format!(
            "The rate of {} had no effect: its host's port is not faster than that rate, {}.",
            names::flow(plan, index),
            human::rate(flow.pace as f64)
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
        notes.push(note(format!(
            "{} of {} were unnecessary: the packets had already arrived.",
            human::count(spurious),
            human::counted(all, "retransmission")
        )));
    }
}

/// Traffic that sent nothing.
fn traffic(plan: &Plan, outcome: &Outcome, notes: &mut Vec<Note>) {
    if plan.flows.is_empty() {
        notes.push(
            Note::new(Level::Warning, "No flow ran: the traffic starts none before the run ends.")
                .help("Lengthen run.duration, raise the load or change run.seed."),
        );
        return;
    }
    // Traffic without any flow is the scenario's matter, known before the run.
    for (class, name) in plan.classes.iter().enumerate() {
        let all = plan.flows.iter().zip(&outcome.flows);
        let mut flows = all.filter(|(f, _)| usize::from(f.class) == class).peekable();
        if flows.peek().is_some() && !flows.any(|(_, o)| started(o)) {
            notes.push(note(format!(
                "The traffic \"{name}\" had no effect: none of its flows started before the end."
            )));
        }
    }
}
