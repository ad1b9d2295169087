//! Livelocks in names and words: the flows without progress, and the reason why each of them waits.

use serde::Serialize;

use crate::drops::reason;
use crate::{human, names};
use xoff_kernel::time::Time;
use xoff_outcome::report::{Level, Note};
use xoff_outcome::{Backlog, Outcome, StalledFlow};
use xoff_plan::plan::Plan;

/// Most flows and most places of drops that the note lists one by one.
const LISTED: usize = 8;

/// A livelock: packets move, and no flow progresses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LivelockSummary {
    /// When the last packet was delivered in order or acknowledged; at most 2.5 ms late.
    pub since_ps: Time,
    /// The flows that had started and not completed, by id.
    pub flows: Vec<StalledSummary>,
}

/// A flow in a livelock, with numbers as in [`StalledFlow`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StalledSummary {
    /// The flow's id in `flows.parquet`.
    pub flow: u32,
    pub packets: u64,
    pub delivered: u64,
    pub acknowledged: u64,
    /// The queues that packets of the flow wait in at the end.
    pub queues: Vec<BacklogSummary>,
}

/// Packets of a flow in an egress queue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BacklogSummary {
    pub port: String,
    /// 802.1p priority.
    pub priority: u8,
    pub data_packets: u64,
    /// Control packets: ACKs, NACKs and CNPs.
    pub answer_packets: u64,
    /// The priority that the port serves strictly before this one, if packets of it were ready.
    pub behind_priority: Option<u8>,
}

pub(crate) fn summarise(plan: &Plan, outcome: &Outcome) -> Option<LivelockSummary> {
    let livelock = outcome.livelock.as_ref()?;
    let queue = |b: &Backlog| BacklogSummary {
        port: names::port(plan, b.port),
        priority: names::priority(plan, b.lane),
        data_packets: b.data,
        answer_packets: b.control_packets,
        behind_priority: b.behind.map(|lane| names::priority(plan, lane)),
    };
    let flow = |f: &StalledFlow| StalledSummary {
        flow: f.flow,
        packets: f.packets,
        delivered: f.delivered,
        acknowledged: f.acknowledged,
        queues: f.places.iter().map(queue).collect(),
    };
    Some(LivelockSummary { since_ps: livelock.since, flows: livelock.flows.iter().map(flow).collect() })
}

pub(crate) fn notes(plan: &Plan, outcome: &Outcome, notes: &mut Vec<Note>) {
    let Some(livelock) = &outcome.livelock else { return };
    let text = format!(
        "Livelock since {}: packets move, but no flow makes progress. {} will never finish.",
        human::time(livelock.since),
        human::counted(livelock.flows.len() as u64, "flow"),
    );
    let mut note = Note::new(Level::Finding, text);
    note.details.extend(livelock.flows.iter().take(LISTED).map(|flow| waits(plan, flow)));
    if livelock.flows.len() > LISTED {
        note.details.push(format!("and {} more flows: see summary.json", livelock.flows.len() - LISTED));
    }
    let mut drops: Vec<_> = outcome.drops.iter().collect();
    drops.sort_by_key(|d| std::cmp::Reverse(d.packets));
    note.details.extend(drops.iter().take(LISTED / 2).map(|d| {
        let (packets, queue) = (human::counted(d.packets, "packet"), names::queue(plan, d.ingress, d.lane));
        format!("{packets} dropped at {queue} because {}", reason(d.reason))
    }));
    note.help = remedy(plan, &livelock.flows, outcome);
    notes.push(note);
}

/// A flow that made no progress, with the place of its packets.
fn waits(plan: &Plan, flow: &StalledFlow) -> String {
    let place = |b: &Backlog| {
        let (data, acks) = (human::counted(b.data, "data packet"), human::counted(b.control_packets, "ACK"));
        let waiting = match (b.data, b.control_packets) {
            (_, 0) => data,
            (0, _) => acks,
            _ => format!("{data} and {acks}"),
        };
        let first = |lane| format!(" (priority {} is served first)", names::priority(plan, lane));
        let behind = b.behind.map_or(String::new(), first);
        format!("{waiting} at {}{behind}", names::queue(plan, b.port, b.lane))
    };
    let mut places: Vec<String> = flow.places.iter().take(LISTED / 2).map(place).collect();
    if flow.places.len() > LISTED / 2 {
        places.push(format!("{} other queues", flow.places.len() - LISTED / 2));
    }
    let at = if places.is_empty() { String::new() } else { format!("; queued: {}", places.join(", ")) };
    let name = names::flow(plan, flow.flow);
    let delivered =
        format!("{} of {} delivered", human::count(flow.delivered), human::counted(flow.packets, "packet"));
    match flow.delivered > flow.acknowledged {
        true => {
            format!(
                "{name} waits for ACKs: {delivered}, {} acknowledged{at}",
                human::count(flow.acknowledged)
            )
        }
        false => format!("{name} waits for delivery: {delivered}{at}"),
    }
}

/// Advice that applies: ACKs after data of a priority that is served first, or packets that never find room.
fn remedy(plan: &Plan, flows: &[StalledFlow], outcome: &Outcome) -> Option<String> {
    let starved = flows.iter().flat_map(|f| &f.places).find(|b| b.control_packets > 0 && b.behind.is_some());
    if let Some(lane) = starved.and_then(|b| b.behind) {
        let priority = names::priority(plan, lane);
        return Some(format!("Give ACKs the priority of data: --set transport.ack_priority={priority}."));
    }
    let room = outcome.drops.iter().filter(|d| d.reason.for_want_of_room()).max_by_key(|d| d.packets)?;
    Some(format!(
        "Give {} room for a packet of {}: xoff topo shows its buffer and thresholds.",
        names::queue(plan, room.ingress, room.lane),
        human::bytes(u64::from(plan.packet.largest())),
    ))
}
