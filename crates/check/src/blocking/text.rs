//! The possible blocking, in names and in words.

use super::worst::{Tree, Victim, tree};
use super::{Blocking, Cause, Congested, view};
use crate::graph::Part;
use crate::walks::{Queue, Walks};
use serde::Serialize;
use std::fmt::Write;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::PauseScope;

/// Most congested ports that are listed.
pub const PORTS: usize = 5;
/// Most victim flows that are listed for each.
pub const FLOWS: usize = 10;
/// Most of them in the text: of the worst port, and of the others.
const SHOWN: [usize; 2] = [6, 2];

/// The possible blocking, by names. Counts are of all flows; lists are shortened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlockingReport {
    pub flows: u64,
    /// Of pauses by root: whether it is by the roots that frames name; otherwise it is the worst case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_named_root: Option<bool>,
    /// Queues of flows that a pause can stop; shared queues of a port and priority count as one.
    pub pausable_queues: u64,
    /// Ports that can stay congested, and can pause a queue then.
    pub congested_ports: u64,
    /// Those of them for which victim flows can wait.
    pub blocking_ports: u64,
    /// Queues that these ports can pause.
    pub queues: u64,
    /// Flows that can wait for one of these ports without crossing it.
    pub victim_flows: u64,
    /// Further ports, which are offered more than they send only together with acknowledgements.
    pub tight_ports: u64,
    /// Further ports, at which packets wait only when held packets arrive at once.
    pub bursty_ports: u64,
    pub worst: Vec<PortReport>,
    /// How many of the blocking ports are not listed.
    pub ports_left_out: u64,
}

/// A [`Congested`] port by names.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PortReport {
    pub port: String,
    pub offered_bps: u64,
    pub rate_bps: u64,
    pub stalls: bool,
    pub culprits: u64,
    pub queues: u64,
    /// How many pauses lead to the farthest of them.
    pub levels: u32,
    pub victims: u64,
    /// Victims that share a queue with a culprit, as Definition 7 of Liu et al. (NSDI 2025) counts.
    pub beside_culprits: u64,
    /// How many these are on average if flows are spread over the queues by chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_beside_culprits: Option<f64>,
    pub victim_answers: u64,
    /// The first of the victims: those beside culprits first, the nearest first.
    pub listed: Vec<VictimReport>,
    pub left_out: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VictimReport {
    /// Its `id` in `flows.parquet`.
    pub flow: u32,
    /// In words: `flow 17: H3 -> H9 (websearch)`.
    pub name: String,
    pub queue: String,
    /// The queues that pause each other between this one and the congested port, this one first.
    pub chain: Vec<String>,
    /// A flow that crosses the congested port, in the first of them that one comes through.
    pub culprit: u32,
    /// Whether the culprit's control packets cross it, not its data.
    pub culprit_answers: bool,
    pub culprit_name: String,
    pub beside: bool,
}

/// `flow 17: H3 -> H9 (websearch)`.
pub fn flow_name(plan: &Plan, flow: u32) -> String {
    let f = &plan.flows[flow as usize];
    let node = |n: u32| &plan.topology.nodes[n as usize].name;
    format!("flow {flow}: {} -> {} ({})", node(f.src), node(f.dst), plan.classes[usize::from(f.class)])
}

/// `S1.2:3`, with its priority where there are several, and its flow where each has a queue.
pub fn queue_name(plan: &Plan, queue: Queue) -> String {
    let mut name = plan.topology.port_name(queue.port);
    if plan.lanes.len() > 1 && !matches!(queue.part, Part::Queue(_)) {
        let _ = write!(name, " (priority {})", plan.lanes[usize::from(queue.lane)].priority);
    }
    let _ = match queue.part {
        Part::Flow(flow) => write!(name, " (flow {flow})"),
        Part::Queue(number) => {
            let queue = plan.flow_control.onward_queues().map(|all| all.name(queue.port, number));
            write!(name, " {}", queue.unwrap_or_default())
        }
        Part::Root(root) => write!(name, " for {}", plan.topology.port_name(root)),
        Part::Whole => Ok(()),
    };
    name
}

/// The findings by names, and the tree of the worst port.
pub fn report(
    plan: &Plan,
    walks: &Walks,
    blocking: &Blocking,
) -> (BlockingReport, Option<(Congested, Tree)>) {
    let lasting = blocking.lasting();
    let blocks = |c: &&Congested| c.victims + c.control_victims > 0;
    let blocking_ports = lasting.iter().filter(blocks).count();
    let views: Vec<_> = lasting.iter().take(PORTS).map(|c| view(walks, blocking, c.port)).collect();
    let trees: Vec<Tree> = lasting.iter().zip(&views).map(|(c, walks)| tree(plan, walks, c.port)).collect();
    let shown = lasting.iter().zip(trees.iter().zip(&views));
    let worst = shown.map(|(c, (tree, walks))| port_report(plan, walks, c, tree)).collect();
    let of = |cause| blocking.congested.iter().filter(|c| c.cause == cause).count() as u64;
    let listed = lasting.iter().take(PORTS).filter(blocks).count();
    let report = BlockingReport {
        flows: blocking.flows,
        by_named_root: (blocking.scope == PauseScope::Root).then_some(blocking.by_root),
        pausable_queues: blocking.all_queues,
        congested_ports: lasting.len() as u64,
        blocking_ports: blocking_ports as u64,
        queues: blocking.queues,
        victim_flows: blocking.victims,
        tight_ports: of(Cause::Control),
        bursty_ports: of(Cause::Bursts),
        ports_left_out: (blocking_ports - listed) as u64,
        worst,
    };
    let first = lasting.first().cloned().zip(trees.into_iter().next());
    (report, first)
}

fn port_report(plan: &Plan, walks: &Walks, c: &Congested, tree: &Tree) -> PortReport {
    let name = |i: u32| queue_name(plan, walks.queues[tree.queues[i as usize].queue as usize]);
    let victim = |i: &Victim| VictimReport {
        flow: i.flow,
        name: flow_name(plan, i.flow),
        queue: name(i.queue),
        chain: std::iter::successors(Some(i.queue), |&q| tree.queues[q as usize].towards).map(name).collect(),
        culprit: i.culprit.flow,
        culprit_answers: i.culprit.is_control,
        culprit_name: flow_name(plan, i.culprit.flow),
        beside: i.beside,
    };
    let listed: Vec<_> = tree.victims.iter().take(FLOWS).map(victim).collect();
    PortReport {
        port: plan.topology.port_name(c.port),
        offered_bps: c.offered,
        rate_bps: c.rate,
        stalls: c.stalls,
        culprits: c.culprits,
        queues: c.queues,
        levels: tree.queues.last().map_or(0, |q| q.level),
        victims: c.victims,
        beside_culprits: c.beside,
        expected_beside_culprits: tree.expected,
        victim_answers: c.control_victims,
        left_out: tree.victims.len() as u64 - listed.len() as u64,
        listed,
    }
}

/// Bits per second, three digits: `6.4 Tbps`.
pub fn rate(bits_per_second: u64) -> String {
    let (mut x, mut unit) = (bits_per_second as f64, "bps");
    for next in ["kbps", "Mbps", "Gbps", "Tbps", "Pbps"] {
        if x < 999.5 {
            break;
        }
        (x, unit) = (x / 1000.0, next);
    }
    let digits = [9.995, 99.95].iter().filter(|&&limit| x < limit).count();
    let text = format!("{x:.digits$}");
    let text = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}")
}

/// `1 flow`, `64 flows`.
pub fn counted(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// The paragraphs about blocking; `pauses` is whether the flow control ever pauses anything.
pub fn render(report: &BlockingReport, pauses: bool) -> String {
    let r = report;
    match () {
        () if !pauses => {
            return "Blocking: none. There are no pauses, so no flow waits for a port that it does not cross.\n".into();
        }
        () if r.congested_ports == 0 => {
            return "Blocking: none. No port that can pause others stays congested: its flows never offer more than its rate.\n".into();
        }
        () => {}
    }
    let mut text = String::new();
    let how = match r.by_named_root {
        Some(true) => " (by the roots that frames name)",
        Some(false) => " (worst case)",
        None => "",
    };
    let (can, path) =
        if r.victim_flows == 1 { ("can be a victim", "its") } else { ("can be victims", "their") };
    if r.victim_flows == 0 {
        let _ = write!(
            text,
            "Blocking: none{how}. {} can stay congested and pause {}, but every flow in these queues crosses that port",
            counted(r.congested_ports, "port"),
            counted(r.queues, "queue"),
        );
    } else {
        let _ = write!(
            text,
            "Blocking{how}: {} of {} {can} of congestion off {path} path. {} can stay congested, {} of them with \
             victims. {} of {} can be paused",
            r.victim_flows,
            counted(r.flows, "flow"),
            counted(r.congested_ports, "port"),
            r.blocking_ports,
            r.queues,
            counted(r.pausable_queues, "queue"),
        );
    }
    let more = [(r.tight_ports, "together with ACKs"), (r.bursty_ports, "briefly, after a pause ends")];
    let more = more.iter().filter(|m| m.0 > 0).map(|(ports, when)| format!("{ports} only {when}"));
    let _ = match &more.collect::<Vec<_>>()[..] {
        [] => writeln!(text, "."),
        more => writeln!(text, ". (More ports can be congested: {}.)", more.join("; ")),
    };
    let shown = r.worst.iter().filter(|p| p.victims + p.victim_answers > 0 || r.victim_flows == 0);
    for (i, p) in shown.enumerate() {
        port_text(&mut text, p, SHOWN[i.min(1)]);
    }
    if r.ports_left_out > 0 {
        let more = counted(r.ports_left_out, "more port");
        let _ = writeln!(text, "\n… and {more} with at most as many victims.");
    }
    text
}

fn port_text(text: &mut String, p: &PortReport, shown: usize) {
    let why = match (p.stalls, p.offered_bps > p.rate_bps) {
        (true, false) => "its host stops accepting packets".to_string(),
        (stalls, _) => {
            let and = if stalls { ", and its host stops accepting packets" } else { "" };
            format!("offered {}, rate {}{and}", rate(p.offered_bps), rate(p.rate_bps))
        }
    };
    let _ = write!(
        text,
        "\n{}, congested by {} ({why}), can pause {} up to {} away",
        p.port,
        counted(p.culprits, "flow"),
        counted(p.queues, "queue"),
        counted(p.levels.into(), "hop")
    );
    if p.victims == 0 {
        let _ = write!(text, "; every flow in them crosses this port");
    } else {
        let _ = write!(
            text,
            "; {} that never cross{} this port can be blocked",
            counted(p.victims, "flow"),
            if p.victims == 1 { "es" } else { "" }
        );
        let _ = write!(text, ", {} of them in a queue shared with culprits", p.beside_culprits);
        if let Some(expected) = p.expected_beside_culprits {
            let _ = write!(text, " ({expected:.1} expected with random queues)");
        }
    }
    let _ = match p.victim_answers {
        0 => writeln!(text, "."),
        n => writeln!(text, "; also the control packets of {}.", counted(n, "flow")),
    };
    for i in p.listed.iter().take(shown) {
        let controls = if i.culprit_answers { "the control packets of " } else { "" };
        let waits = if i.culprit_answers { "wait" } else { "waits" };
        let (VictimReport { name, queue, culprit_name: culprit, .. }, chain) = (i, i.chain[1..].join(", "));
        let _ = match i.beside {
            true => writeln!(text, "  {name} in {queue}, shared with {controls}{culprit}"),
            false => {
                writeln!(text, "  {name} in {queue}, blocked by {chain}, where {controls}{culprit} {waits}")
            }
        };
    }
    let rest = p.victims - p.listed.len().min(shown) as u64;
    if rest > 0 {
        let _ = writeln!(text, "  … and {}", counted(rest, "more flow"));
    }
}
