//! Bifrost's parameters, resolved for every port.

use super::flow_control::time;
use super::{Context, LARGEST, bytes};
use crate::error::Error;
use crate::plan::{Account, Buffer, Lane, Limit, PacketFormat};
use crate::scenario::{Bifrost, BifrostHistory, BifrostKeys, BifrostLeftover, BifrostLinks, FlowControl};
use xoff_kernel::time::{Time, serialisation};
use xoff_net::topology::{NodeId, NodeKind, PortId, Topology};
use xoff_net::units::{Bandwidth, Bytes, Span};
use xoff_schemes::flow_control::bifrost::BifrostParams;
use xoff_schemes::flow_control::bifrost::slots::{History, SlotParams};
use xoff_schemes::flow_control::bifrost::tokens::Leftover;
use xoff_schemes::flow_control::sizing::bifrost::{self as sizing, MOST_QUANTA, SLOTS_PER_DELAY};
use xoff_schemes::flow_control::{Headroom, LinkFacts};
use xoff_wire::SMALLEST_FRAME;

/// Slots in a round trip: a port keeps the grant of each, in 8 bytes.
const MOST_SLOTS: u64 = 1 << 20;

/// Refuses values out of range.
pub(super) fn check(cx: &mut Context<'_>, keys: &BifrostKeys) -> Result<(), Error> {
    for (key, value) in [("slot", keys.slot), ("processing", keys.processing), ("jitter", keys.jitter)] {
        time(cx, key, value)?;
    }
    if let Some(margin) = keys.margin {
        time(cx, "margin", margin)?;
    }
    if let Some(spare) = keys.spare.filter(|spare| spare.0 > LARGEST) {
        let message = format!("spare = {spare} is out of range");
        let help = format!("{} are the most", Bytes(LARGEST));
        return Err(cx.doc.error("flow_control.spare", message, help));
    }
    if !(1..=1_000).contains(&keys.repair_every) {
        let message = format!("repair_every = {} is out of range", keys.repair_every);
        return Err(cx.doc.error(
            "flow_control.repair_every",
            message,
            "write a whole number from 1 to 1000",
        ));
    }
    if keys.slot.0 <= keys.processing.0 + keys.jitter.0 {
        let message = format!(
            "a slot of {} ends before its frame is at the wire, after {}",
            keys.slot,
            Span(keys.processing.0 + keys.jitter.0)
        );
        let help = "choose a slot longer than `processing` and `jitter` together";
        return Err(cx.doc.error("flow_control.slot", message, help).with_key("flow_control.slot"));
    }
    if keys.undersized && keys.buffer.is_none() {
        let message = "had no effect: without `buffer` it is as large as it should be".to_string();
        cx.warn("flow_control.undersized".to_string(), message);
    }
    if !counted(cx) && cx.doc.get("flow_control.leftover").is_some() {
        let message = "had no effect: it belongs to `bifrostx`, and this run has `bifrost`".to_string();
        cx.warn("flow_control.leftover".to_string(), message);
    }
    Ok(())
}

/// Whether grants are counted as tokens: BifrostX.
pub(super) fn counted(cx: &Context<'_>) -> bool {
    matches!(cx.scenario.flow_control, FlowControl::BifrostX(_))
}

/// Whether the ingress of `port` grants its peer.
pub(super) fn grants(keys: &BifrostKeys, topology: &Topology, port: PortId) -> bool {
    let p = &topology.ports[port as usize];
    match keys.links {
        BifrostLinks::Long => p.long,
        BifrostLinks::All => topology.nodes[p.node as usize].kind == NodeKind::Switch,
    }
}

/// What the downstream port of a link is set to, without its buffer.
fn without_buffer(keys: &BifrostKeys, counted: bool, response_time: Time, link: &LinkFacts) -> SlotParams {
    let ask = sizing::Ask {
        slot: keys.slot.0,
        processing: keys.processing.0,
        jitter: keys.jitter.0,
        margin: keys.margin.map(|margin| margin.0),
        response_time,
        repair_every: keys.repair_every,
        counted,
        history: match keys.history {
            BifrostHistory::Grants => History::Grants,
            BifrostHistory::Recurrence => History::Recurrence,
        },
    };
    sizing::params(link, &ask)
}

/// What the downstream port of a link is set to.
fn slots(
    cx: &Context<'_>,
    bifrost: &Bifrost,
    topology: &Topology,
    port: PortId,
    packet: &PacketFormat,
) -> Result<SlotParams, Error> {
    let keys = &bifrost.keys;
    let p = &topology.ports[port as usize];
    let link = LinkFacts { rate: p.rate, delay: p.delay, largest: packet.largest() };
    let name =
        || format!("the link of {} ({}, {})", topology.port_name(port), Bandwidth(p.rate), Span(p.delay));
    if !sizing::far_below(&link, keys.slot.0) {
        let message = format!("a slot of {} is not far below the one-way delay of {}", keys.slot, name());
        let help = format!("write {} or less: a quarter of the delay", Span(p.delay / SLOTS_PER_DELAY));
        return Err(cx.doc.error("flow_control.slot", message, help).with_key("flow_control.slot"));
    }
    let params = without_buffer(keys, counted(cx), bifrost.pfc.response_time.0, &link);
    let longest = sizing::longest_pause(&params);
    if longest > MOST_QUANTA {
        let message = format!(
            "a pause of a slot of {} and its margin ({}) on {} takes {longest} quanta of 512 bit times, and a frame has \
             room for {MOST_QUANTA}",
            keys.slot,
            bytes(params.margin),
            name()
        );
        // By itself the slot may fit, and what was given be the reason that it does not.
        let fits = sizing::longest_pause(&SlotParams { margin: 0, ..params }) <= MOST_QUANTA;
        let (key, help) = match keys.margin.is_some() && fits {
            true => ("flow_control.margin", "choose a smaller margin, or a shorter slot"),
            false => ("flow_control.slot", "choose a shorter slot"),
        };
        return Err(cx.doc.error(key, message, help).with_key(key));
    }
    let history = params.round_trip / params.slot;
    if history > MOST_SLOTS {
        let message = format!(
            "a round trip of {} on {} has {history} slots of {}, and a port keeps the grant of each",
            Span(params.round_trip),
            name(),
            keys.slot
        );
        let help = format!("choose a faster link or a longer slot: the maximum is {MOST_SLOTS} slots");
        return Err(cx.doc.error("flow_control.slot", message, help).with_key("flow_control.slot"));
    }
    let frame = serialisation(u64::from(SMALLEST_FRAME), p.rate);
    if keys.slot.0 <= frame {
        let message = format!(
            "a slot of {} is not longer than the frame of {SMALLEST_FRAME} B that it sends back, which takes {} on {}: \
             nothing else would leave there",
            keys.slot,
            Span(frame),
            name()
        );
        let help = format!("write more than {}", Span(frame));
        return Err(cx.doc.error("flow_control.slot", message, help).with_key("flow_control.slot"));
    }
    let least = params.least_buffer();
    let Some(given) = keys.buffer else { return Ok(SlotParams { buffer: least, ..params }) };
    let buffer = given.resolve(p.rate, p.delay);
    // With less an idle link is never let go (`bifrost.min-H`).
    let dead = params.bdp() + params.of_slot() + params.margin + 2 * u64::from(link.largest);
    let (short, help) = if buffer > LARGEST {
        let help = format!("{} are the most", Bytes(LARGEST));
        return Err(cx.doc.error("flow_control.buffer", format!("buffer = {given} is out of range"), help));
    } else if buffer < dead {
        (
            "would never let anything go on",
            format!("write {dead}B or more; with {least}B no throughput is lost"),
        )
    } else if buffer < least && !keys.undersized {
        (
            "loses throughput on",
            format!("write {least}B or more, remove `buffer`, or add undersized = true to see what it does"),
        )
    } else {
        return Ok(SlotParams { buffer, ..params });
    };
    let shown = match given {
        xoff_net::units::Threshold::Bytes(b) => b.to_string(),
        bdp => format!("{bdp} ({})", bytes(buffer)),
    };
    Err(cx.doc.error("flow_control.buffer", format!("buffer = {shown} {short} {}", name()), help))
}

/// The account of a port that grants: it counts as over where nothing can be granted,
/// even with nothing under way.
pub(super) fn account(
    cx: &Context<'_>,
    bifrost: &Bifrost,
    topology: &Topology,
    port: PortId,
    packet: &PacketFormat,
) -> Result<Account, Error> {
    let params = slots(cx, bifrost, topology, port, packet)?;
    let keys = &bifrost.keys;
    let p = &topology.ports[port as usize];
    let largest = u64::from(packet.largest());
    let headroom = match keys.spare {
        Some(Bytes(total)) => Headroom { terms: Vec::new(), total },
        None => {
            let link = LinkFacts { rate: p.rate, delay: p.delay, largest: packet.largest() };
            sizing::spare(&link, keys.jitter.0, keys.repair_every, counted(cx))
        }
    };
    Ok(Account {
        reserve: 0,
        limit: Limit::Static(params.buffer - largest + 1),
        resume: params.buffer - largest,
        resume_offset: 0,
        headroom: Some(headroom),
        pool: None,
    })
}

/// Makes the lossless accounts of each port that grants share one buffer, which is that
/// of a single one; answers those buffers and whose they are.
pub(super) fn pool(
    keys: &BifrostKeys,
    topology: &Topology,
    accounts: &mut [Account],
    lanes: usize,
    largest: u64,
) -> Vec<(NodeId, Buffer)> {
    let mut pools = Vec::new();
    for port in (0..topology.ports.len() as PortId).filter(|&p| grants(keys, topology, p)) {
        let index = (topology.nodes.len() + pools.len()) as u32;
        let mut pool = None;
        for account in &mut accounts[port as usize * lanes..][..lanes] {
            let (Some(headroom), Limit::Static(xoff)) = (&mut account.headroom, account.limit) else {
                continue;
            };
            let total = account.resume + largest + headroom.total;
            pool = Some(Buffer { total, shared: xoff });
            // Each may use all that is left, whichever of them fills it: the buffer is the bound.
            headroom.total = total;
            headroom.terms.clear();
            account.limit = Limit::Unlimited;
            account.resume = u64::MAX;
            account.pool = Some(index);
        }
        pools.extend(pool.map(|pool| (topology.ports[port as usize].node, pool)));
    }
    pools
}

/// The parameters on the ports of `topology`.
pub(super) fn params(
    cx: &Context<'_>,
    bifrost: &Bifrost,
    topology: &Topology,
    packet: &PacketFormat,
    lanes: &[Lane],
) -> Result<BifrostParams, Error> {
    let own = |port: PortId| topology.neighbour(port) != topology.ports[port as usize].node;
    let ports = (0..topology.ports.len() as PortId)
        .map(|port| match own(port) && grants(&bifrost.keys, topology, port) {
            true => slots(cx, bifrost, topology, port, packet).map(Some),
            false => Ok(None),
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(BifrostParams {
        pfc: super::memory::params(&bifrost.pfc),
        granted: topology.ports.iter().map(|p| ports[p.peer as usize]).collect(),
        ports,
        lossless: lanes.iter().map(|lane| lane.lossless).collect(),
        processing: bifrost.keys.processing.0,
        jitter: bifrost.keys.jitter.0,
        seed: cx.scenario.run.seed,
        tokens: counted(cx).then_some(match bifrost.keys.leftover {
            BifrostLeftover::Pooled => Leftover::Pooled,
            BifrostLeftover::Reserved => Leftover::Reserved,
        }),
    })
}

/// The keys of Bifrost, where it is chosen.
pub(super) fn chosen<'s>(cx: &Context<'s>) -> Option<&'s Bifrost> {
    match &cx.scenario.flow_control {
        FlowControl::Bifrost(bifrost) | FlowControl::BifrostX(bifrost) => Some(bifrost),
        _ => None,
    }
}
