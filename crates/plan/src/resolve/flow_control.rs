//! Schemes that queue by flow: their parameters, resolved for every port.

use super::tags::Layout;
use super::{Context, LONGEST, MEMORY, bytes};
use crate::error::Error;
use crate::plan::{Faults, Lane, PacketFormat};
use crate::scenario::{Bfc, BfcAcks, FlowControl, PerFlowQueue, Relay};
use xoff_kernel::time::{MICROSECOND, Time, serialisation};
use xoff_net::topology::{Port, PortId, Topology};
use xoff_net::units::{Bandwidth, Span, Threshold};
use xoff_schemes::flow_control::FlowControlParams;
use xoff_schemes::flow_control::bfc::BfcParams;
use xoff_schemes::flow_control::none::NoParams;
use xoff_schemes::flow_control::per_flow_queue::PerFlowQueueParams;
use xoff_schemes::flow_control::swing::SwingParams;
use xoff_wire::queue_pause::QueuePauseFrame;

/// A pause lasts so long, unless the scenario says otherwise, where frames can be
/// lost: many times as long as most pauses, and much less than a timeout.
const PAUSE_TIME: Time = 100 * MICROSECOND;
const SHORTEST_PAUSE: Time = MICROSECOND;

/// Refuses values out of range, and keys that contradict each other.
pub(super) fn check(cx: &mut Context<'_>, packet: &PacketFormat) -> Result<(), Error> {
    match &cx.scenario.flow_control {
        FlowControl::Bfc(bfc) => check_bfc(cx, bfc),
        FlowControl::PerFlowQueue(pfq) => {
            time(cx, "response_time", pfq.response_time)?;
            check_pause_time(cx, pfq.pause_time)
        }
        FlowControl::PortFc(portfc) => super::portfc::check(cx, portfc),
        FlowControl::Pyrrha(pyrrha) => super::pyrrha::check(cx, pyrrha),
        FlowControl::Bifrost(bifrost) | FlowControl::BifrostX(bifrost) => {
            super::bifrost::check(cx, &bifrost.keys)
        }
        FlowControl::Cbfc(keys) => super::cbfc::check(cx, keys),
        FlowControl::Swing(keys) => super::swing::check(cx, keys, packet),
        FlowControl::PfcWatchdog(keys) => super::watchdog::check(cx, &keys.watch),
        FlowControl::Roundabout(keys) => super::roundabout::check(cx, keys, packet),
        FlowControl::LoopBreaker(_) | FlowControl::DeadlockBreaker(_) => super::breakers::check(cx, packet),
        FlowControl::Itsy(keys) => super::itsy::check(cx, keys, packet),
        FlowControl::Pfc(_) | FlowControl::Tagger(_) | FlowControl::None => Ok(()),
    }
}

pub(super) fn time(cx: &Context<'_>, key: &str, value: Span) -> Result<(), Error> {
    if value.0 <= LONGEST {
        return Ok(());
    }
    let message = format!("{key} = {value} is out of range");
    Err(cx.doc.error(&format!("flow_control.{key}"), message, format!("{} are the most", Span(LONGEST))))
}

fn check_pause_time(cx: &Context<'_>, given: Option<Span>) -> Result<(), Error> {
    let Some(value) = given else { return Ok(()) };
    if value.0 < SHORTEST_PAUSE {
        let message = format!("a pause of {value} is over before it is repeated");
        let help = format!(
            "write {} or more; without the key it is {} where frames can be lost",
            Span(SHORTEST_PAUSE),
            Span(PAUSE_TIME)
        );
        return Err(cx.doc.error("flow_control.pause_time", message, help));
    }
    time(cx, "pause_time", value)
}

/// Refuses pauses that are passed on where no host relays.
pub(super) fn check_relay(cx: &mut Context<'_>, topology: &Topology) -> Result<(), Error> {
    let Some(pfc) = cx.scenario.flow_control.pfc() else { return Ok(()) };
    let relays = topology.hosts().any(|h| topology.nodes[h as usize].ports.len() > 1) && topology.relay_hosts;
    let key = "flow_control.relay";
    if pfc.relay == Relay::Blind && matches!(cx.scenario.flow_control, FlowControl::Tagger(_)) {
        let message = "`tagger` cannot pass pauses on: what waits for a tag has come in by another one";
        return Err(cx.doc.error(key, message, "remove the key, or choose scheme = \"pfc\""));
    }
    if relays || cx.doc.get(key).is_none() {
        return Ok(());
    }
    if pfc.relay == Relay::Accounts {
        cx.warn(key.into(), "had no effect: no host relays in this topology".into());
        return Ok(());
    }
    let help = "remove the key, or choose a topology whose hosts relay: ndc, rail-only, or custom with relay_hosts = true";
    Err(cx.doc.error(key, "no host relays in this topology, so that none can pass a pause on", help))
}

/// The slowest of a network's own links: its port, and how long a pause must last
/// there so that its repetition, sent after half of it and behind one largest
/// packet, comes in time.
fn slowest(topology: &Topology, packet: &PacketFormat) -> Option<(PortId, Time)> {
    let frames = 2 * u64::from(packet.largest() + QueuePauseFrame::LENGTH);
    let of = |(port, p): (PortId, &Port)| (port, serialisation(frames, p.rate));
    (0..).zip(&topology.ports).min_by_key(|(_, p)| p.rate).map(of)
}

/// Refuses pauses that have run out before they can be repeated. (PFC's are, by
/// the number of their quanta alone. How long it takes until a pause is obeyed
/// does not matter: it lasts from then on.)
pub(super) fn check_pauses(
    cx: &Context<'_>,
    topology: &Topology,
    packet: &PacketFormat,
) -> Result<(), Error> {
    let given = match &cx.scenario.flow_control {
        FlowControl::Bfc(b) => b.pause_time,
        FlowControl::PerFlowQueue(p) => p.pause_time,
        FlowControl::Pfc(_)
        | FlowControl::Tagger(_)
        | FlowControl::PortFc(_)
        | FlowControl::Pyrrha(_)
        | FlowControl::Bifrost(_)
        | FlowControl::BifrostX(_)
        | FlowControl::Cbfc(_)
        | FlowControl::Swing(_)
        | FlowControl::PfcWatchdog(_)
        | FlowControl::Roundabout(_)
        | FlowControl::LoopBreaker(_)
        | FlowControl::DeadlockBreaker(_)
        | FlowControl::Itsy(_)
        | FlowControl::None => return Ok(()),
    };
    let (Some(given), Some((port, least))) = (given, slowest(topology, packet)) else { return Ok(()) };
    if given.0 < least {
        let message = format!(
            "a pause of {given} would run out before it can be repeated on the link of {} ({})",
            topology.port_name(port),
            Bandwidth(topology.ports[port as usize].rate)
        );
        let help = format!("write {} or more", Span(least));
        return Err(cx.doc.error("flow_control.pause_time", message, help));
    }
    Ok(())
}

/// How long a pause lasts in this run; 0 is until its resume. Where links are
/// slow, 100 us would be too short.
fn pause_time(given: Option<Span>, topology: &Topology, packet: &PacketFormat, faulty: bool) -> Time {
    let least = slowest(topology, packet).map_or(0, |(_, least)| least);
    match given {
        Some(given) => given.0,
        None if faulty => PAUSE_TIME.max(least),
        None => 0,
    }
}

fn check_bfc(cx: &mut Context<'_>, bfc: &Bfc) -> Result<(), Error> {
    for (key, value, least, most) in [
        ("queues", bfc.queues, 2, 1_024),
        ("virtual_flows", bfc.virtual_flows, 1, 1 << 24),
        ("keep", bfc.keep, 0, 1_000),
    ] {
        if !(least..=most).contains(&value) {
            let message = format!("{key} = {value} is out of range");
            let help = format!("write a whole number from {least} to {most}");
            return Err(cx.doc.error(&format!("flow_control.{key}"), message, help));
        }
    }
    for (key, value) in [("resume_interval", bfc.resume_interval), ("response_time", bfc.response_time)] {
        time(cx, key, value)?;
    }
    if let Some(hop_rtt) = bfc.hop_rtt {
        time(cx, "hop_rtt", hop_rtt)?;
    }
    check_pause_time(cx, bfc.pause_time)?;
    if bfc.keep == 0 && bfc.reuse_kept {
        cx.warn("flow_control.reuse_kept".into(), "had no effect: with keep = 0 no queue is kept".into());
    }
    Ok(())
}

/// Refuses more queues than fit in memory.
pub(super) fn check_queues(cx: &Context<'_>, topology: &Topology, lanes: usize) -> Result<(), Error> {
    let (queues, each) = match &cx.scenario.flow_control {
        // Lists and states of a port's queues and of its host's, and counters against its neighbour's.
        FlowControl::Bfc(bfc) => (bfc.queues, 2 * (32 + 32 + 24 + 8)),
        FlowControl::Pyrrha(pyrrha) => (1 + pyrrha.queues, 2 * (32 + 32)),
        _ => return Ok(()),
    };
    let queues = u64::from(queues) * (topology.ports.len() * lanes) as u64;
    if queues * each <= MEMORY {
        return Ok(());
    }
    let message = format!("{queues} queues would need {} GiB", (queues * each) >> 30);
    let help = format!("{} GiB are the most: use fewer queues, or a smaller network", MEMORY >> 30);
    Err(cx.doc.error("flow_control.queues", message, help).with_key("flow_control.queues"))
}

/// The parameters of BFC on the ports of `topology`, whose links may be `faulty`.
fn bfc(bfc: &Bfc, topology: &Topology, packet: &PacketFormat, faulty: bool) -> BfcParams {
    let hop_rtt = |delay: u64| bfc.hop_rtt.map_or(2 * delay, |t| t.0);
    BfcParams {
        queues: bfc.queues as u16,
        virtual_flows: bfc.virtual_flows,
        hop_rtt: topology.ports.iter().map(|p| hop_rtt(p.delay)).collect(),
        keep: bfc.keep,
        reuse_kept: bfc.reuse_kept,
        resume_interval: bfc.resume_interval.0,
        acks_in_queues: bfc.acks == BfcAcks::Queues,
        response_time: bfc.response_time.0,
        pause_time: pause_time(bfc.pause_time, topology, packet, faulty),
    }
}

/// The parameters of per-flow queues on the ports of `topology`, whose links may
/// be `faulty`.
fn per_flow_queue(
    cx: &Context<'_>,
    pfq: &PerFlowQueue,
    topology: &Topology,
    packet: &PacketFormat,
    faulty: bool,
) -> Result<PerFlowQueueParams, Error> {
    let least = u64::from(packet.largest());
    let mut params = PerFlowQueueParams {
        pause: vec![],
        resume: vec![],
        response_time: pfq.response_time.0,
        pause_time: pause_time(pfq.pause_time, topology, packet, faulty),
    };
    let shown = |t: Threshold, resolved: u64| match t {
        Threshold::Bytes(b) => b.to_string(),
        bdp => format!("{bdp} ({})", bytes(resolved)),
    };
    for (id, port) in topology.ports.iter().enumerate() {
        let xoff = pfq.xoff.resolve(port.rate, port.delay);
        let xon = pfq.xon.map_or(xoff / 2, |t| t.resolve(port.rate, port.delay));
        // Nothing comes through the inner ports of a slow host.
        let inner = topology.neighbour(id as PortId) == port.node;
        if let Some(given) = pfq.xon.filter(|_| xon > xoff && !inner) {
            let message = format!(
                "xon = {} is above xoff = {} on the link of {} ({}, {})",
                shown(given, xon),
                shown(pfq.xoff, xoff),
                topology.port_name(id as PortId),
                Bandwidth(port.rate),
                Span(port.delay)
            );
            return Err(cx.doc.error("flow_control.xon", message, "choose `xon` no larger than `xoff`"));
        }
        params.pause.push(xoff.max(least));
        params.resume.push(xon);
    }
    Ok(params)
}

/// What is the plan's to keep of the flow control.
pub(super) fn params(
    cx: &Context<'_>,
    topology: &Topology,
    packet: &PacketFormat,
    faults: &Faults,
    tags: Option<Layout>,
    lanes: &[Lane],
) -> Result<FlowControlParams, Error> {
    let faulty = !(faults.down.is_empty() && faults.losses.is_empty());
    Ok(match &cx.scenario.flow_control {
        FlowControl::Pfc(pfc) => FlowControlParams::Pfc(super::memory::params(pfc)),
        FlowControl::Tagger(tagger) => {
            let layout = tags.expect("laid out for this scheme");
            FlowControlParams::Tagger(layout.params(&tagger.pfc, lanes))
        }
        FlowControl::Bfc(b) => FlowControlParams::Bfc(bfc(b, topology, packet, faulty)),
        FlowControl::PerFlowQueue(pfq) => {
            FlowControlParams::PerFlowQueue(per_flow_queue(cx, pfq, topology, packet, faulty)?)
        }
        FlowControl::Bifrost(bifrost) | FlowControl::BifrostX(bifrost) => {
            FlowControlParams::Bifrost(super::bifrost::params(cx, bifrost, topology, packet, lanes)?)
        }
        FlowControl::Cbfc(keys) => {
            FlowControlParams::Cbfc(super::cbfc::params(cx, keys, topology, lanes, packet)?)
        }
        FlowControl::PortFc(_) | FlowControl::Pyrrha(_) => {
            unreachable!("have parameters of the whole plan")
        }
        FlowControl::Swing(keys) => {
            FlowControlParams::Swing(SwingParams { pfc: super::swing::params(&keys.pfc, topology, packet) })
        }
        FlowControl::PfcWatchdog(keys) => {
            FlowControlParams::Watchdog(super::watchdog::params(cx, keys, topology))
        }
        FlowControl::Roundabout(keys) => {
            FlowControlParams::Roundabout(super::roundabout::params(cx, keys, topology, packet))
        }
        FlowControl::LoopBreaker(_) | FlowControl::DeadlockBreaker(_) => {
            FlowControlParams::Breaker(super::breakers::params(cx, topology, packet))
        }
        FlowControl::Itsy(keys) => FlowControlParams::Itsy(super::itsy::params(keys, topology, packet)),
        FlowControl::None => FlowControlParams::None(NoParams),
    })
}
