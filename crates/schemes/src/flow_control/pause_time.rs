//! How long pauses of single queues last.

use super::fabric::PacketFormat;
use super::keys::{Complaint, time};
use xoff_kernel::time::{MICROSECOND, Time, serialisation};
use xoff_net::topology::{Port, PortId, Topology};
use xoff_net::units::{Bandwidth, Span};
use xoff_wire::queue_pause::QueuePauseFrame;

/// A pause lasts so long, unless the scenario says otherwise, where frames can be
/// lost: many times as long as most pauses, and much less than a timeout.
pub(super) const PAUSE_TIME: Span = Span(100 * MICROSECOND);
const SHORTEST_PAUSE: Time = MICROSECOND;

pub(super) fn check_pause_time(given: Option<Span>) -> Result<(), Complaint> {
    let Some(value) = given else { return Ok(()) };
    if value.0 < SHORTEST_PAUSE {
        let message = format!("pause_time = {value} is too short: a pause expires before it is repeated");
        let help = format!(
            "write {} or more; the default is {} where frames can be lost",
            Span(SHORTEST_PAUSE),
            PAUSE_TIME
        );
        return Err(Complaint::of_key("pause_time", message, help));
    }
    time("pause_time", value)
}

/// The slowest of a network's own links: its port, and how long a pause must last there so that its
/// repetition, sent after half of it and after one largest packet, comes in time.
fn slowest(topology: &Topology, packet: &PacketFormat) -> Option<(PortId, Time)> {
    let frames = 2 * u64::from(packet.largest() + QueuePauseFrame::LENGTH);
    let of = |(port, p): (PortId, &Port)| (port, serialisation(frames, p.rate));
    (0..).zip(&topology.ports).min_by_key(|(_, p)| p.rate).map(of)
}

/// Refuses pauses that have run out before they can be repeated. (How long
/// it takes until a pause is obeyed does not matter: it lasts from then on.)
pub(super) fn check_pauses(
    given: Option<Span>,
    topology: &Topology,
    packet: &PacketFormat,
) -> Result<(), Complaint> {
    let (Some(given), Some((port, least))) = (given, slowest(topology, packet)) else { return Ok(()) };
    if given.0 < least {
        let message = format!(
            "pause_time = {given} is too short on the link of {} ({}): a pause expires before it can be repeated",
            topology.port_name(port),
            Bandwidth(topology.ports[port as usize].rate)
        );
        let help = format!("write {} or more", Span(least));
        return Err(Complaint::of_key("pause_time", message, help));
    }
    Ok(())
}

/// How long a pause lasts in this run; 0 is until its resume. Where links are
/// slow, 100 us would be too short.
pub(super) fn pause_time(
    given: Option<Span>,
    topology: &Topology,
    packet: &PacketFormat,
    faulty: bool,
) -> Time {
    let least = slowest(topology, packet).map_or(0, |(_, least)| least);
    match given {
        Some(given) => given.0,
        None if faulty => PAUSE_TIME.0.max(least),
        None => 0,
    }
}

/// The same in words; nothing where a pause lasts until its resume.
pub(super) fn shown(time: Time) -> String {
    if time == 0 { String::new() } else { format!(", pauses last {}", Span(time)) }
}
