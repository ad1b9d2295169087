//! Roundabout's parameters, and the headroom that it has to spare.

use super::{Context, LARGEST, LONGEST};
use crate::error::Error;
use crate::plan::PacketFormat;
use crate::scenario::{FlowControl, LoadBalancing as Balancing, Relay as RelayKey, Roundabout};
use xoff_kernel::time::{Time, serialisation};
use xoff_net::topology::{Port, Topology};
use xoff_net::units::{Bytes, Span, Threshold};
use xoff_schemes::flow_control::Headroom;
use xoff_schemes::flow_control::roundabout::RoundaboutParams;
use xoff_schemes::flow_control::roundabout::dissolve::LONGEST_LOOP;

/// The paper's redundant headroom: one BDP by the round trip (section VI-A).
const SPARE: Threshold = Threshold::Bdp(2_000);
/// Turns around a loop after which an attempt is dropped (`roundabout.several-winners`).
const TURNS: Time = 4;
/// Bytes of the longest frame, which lists a whole loop.
const LONGEST_FRAME: u64 = 180;

/// The keys, where this is the scheme.
fn keys<'s>(cx: &Context<'s>) -> Option<&'s Roundabout> {
    match &cx.scenario.flow_control {
        FlowControl::Roundabout(roundabout) => Some(roundabout),
        _ => None,
    }
}

/// Refuses values out of range, and keys that contradict each other.
pub(super) fn check(cx: &Context<'_>, roundabout: &Roundabout, packet: &PacketFormat) -> Result<(), Error> {
    let at = |key: &str| format!("flow_control.{key}");
    let largest = u64::from(packet.largest());
    if let Some(Threshold::Bytes(bytes)) = roundabout.keys.spare {
        if bytes.0 < largest {
            let message = format!("spare = {bytes} has no room for a packet of {}", Bytes(largest));
            let help = format!("write \"{largest}B\" or more: what moves in a loop is whole packets");
            return Err(cx.doc.error(&at("spare"), message, help));
        }
        if bytes.0 > LARGEST {
            let message = format!("spare = {bytes} is out of range");
            return Err(cx.doc.error(&at("spare"), message, format!("{} are the most", Bytes(LARGEST))));
        }
    }
    if let Some(patience) = roundabout.keys.patience
        && (patience.0 == 0 || patience.0 > LONGEST)
    {
        let message = format!("patience = {patience} is out of range");
        let help = format!("write a time above 0, and {} at most", Span(LONGEST));
        return Err(cx.doc.error(&at("patience"), message, help));
    }
    if roundabout.pfc.relay == RelayKey::Blind {
        let message = "hosts that pass pauses on blindly have no queue whose packets a probe could follow";
        return Err(cx.doc.error(&at("relay"), message, "remove the key"));
    }
    let by_packet = matches!(cx.scenario.routing.load_balancing, Balancing::Spray | Balancing::Drill);
    if roundabout.keys.dissolve && by_packet {
        let message = "a packet that goes round a loop comes back to its way, which has to be settled";
        let help = "choose \"ecmp\" or \"plb\", or write flow_control.dissolve = false";
        return Err(cx.doc.error("routing.load_balancing", message, help));
    }
    if roundabout.keys.dissolve && (cx.scenario.measure.blocking || cx.scenario.measure.explain) {
        let key = if cx.scenario.measure.blocking { "blocking" } else { "explain" };
        let message = format!("`{key}` follows packets on their way, and in a loop they leave it");
        let help = "remove the key, or write flow_control.dissolve = false to find deadlocks alone";
        return Err(cx.doc.error(&format!("measure.{key}"), message, help));
    }
    Ok(())
}

/// Adds what a lossless account of `port` has to spare to its headroom.
pub(super) fn spare(cx: &Context<'_>, port: &Port, packet: &PacketFormat, headroom: &mut Headroom) {
    let Some(roundabout) = keys(cx) else { return };
    let spare = roundabout.keys.spare.unwrap_or(SPARE).resolve(port.rate, port.delay);
    let spare = spare.max(packet.largest().into());
    headroom.total = headroom.total.saturating_add(spare);
    if !headroom.terms.is_empty() {
        headroom.terms.push(("spare, for loops", spare));
    }
}

/// The parameters.
pub(super) fn params(
    cx: &Context<'_>,
    roundabout: &Roundabout,
    topology: &Topology,
    packet: &PacketFormat,
) -> RoundaboutParams {
    let response = roundabout.pfc.response_time.0;
    // A frame behind a packet, over the link, until it takes effect.
    let hop = |p: &Port| {
        let frame = serialisation(u64::from(packet.largest()) + LONGEST_FRAME, p.rate);
        frame.saturating_add(p.delay).saturating_add(response)
    };
    let longest = topology.ports.iter().map(hop).max().unwrap_or(0);
    let turn = longest.saturating_mul(LONGEST_LOOP).clamp(1, LONGEST);
    let patience = roundabout.keys.patience.map_or((TURNS * turn).min(LONGEST), |patience| patience.0);
    RoundaboutParams {
        pfc: super::memory::params(&roundabout.pfc),
        numbers: topology.ports.iter().map(|p| p.index).collect(),
        seed: cx.scenario.run.seed,
        largest: packet.largest(),
        patience,
        turn,
        audit: roundabout.keys.audit,
        dissolves: roundabout.keys.dissolve,
    }
}
