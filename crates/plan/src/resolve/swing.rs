//! SWING: relays in the ends of long links, and their memory.

use super::{Context, LARGEST, LONGEST, bytes, files, offered};
use crate::error::Error;
use crate::plan::{Account, Buffer, Lane, Limit, PacketFormat};
use crate::scenario::{FlowControl, Pfc, Relay as RelayKey, Swing, SwitchSide};
use std::collections::BTreeSet;
use xoff_net::topology::{NodeId, Port, PortId, Topology};
use xoff_net::units::{Bytes, Span};
use xoff_schemes::flow_control::pfc::{PfcParams, Relay, headroom};
use xoff_schemes::flow_control::swing::{THRESHOLD, hold, memory, xon};
use xoff_schemes::flow_control::{Headroom, LinkFacts};

/// The keys, where this is the scheme.
fn keys<'s>(cx: &Context<'s>) -> Option<&'s Swing> {
    match &cx.scenario.flow_control {
        FlowControl::Swing(swing) => Some(swing),
        _ => None,
    }
}

/// Refuses values out of range, and keys that contradict each other.
pub(super) fn check(cx: &Context<'_>, swing: &Swing, packet: &PacketFormat) -> Result<(), Error> {
    let at = |key: &str| format!("flow_control.{key}");
    let keys = &swing.relays;
    for (key, value) in [
        ("relay_buffer", keys.relay_buffer),
        ("relay_limit", keys.relay_limit),
        ("relay_xoff", keys.relay_xoff),
        ("relay_xon", keys.relay_xon),
    ] {
        if let Some(value) = value.filter(|v| v.0 > LARGEST) {
            let message = format!("{key} = {value} is out of range");
            return Err(cx.doc.error(&at(key), message, format!("{} are the most", Bytes(LARGEST))));
        }
    }
    if keys.relay_delay.0 > LONGEST {
        let message = format!("relay_delay = {} is out of range", keys.relay_delay);
        return Err(cx.doc.error(&at("relay_delay"), message, format!("{} are the most", Span(LONGEST))));
    }
    let (xoff, xon) = thresholds(swing, packet.largest());
    if xoff == 0 {
        let message = "a threshold of 0 B would pause for every packet";
        return Err(cx.doc.error(&at("relay_xoff"), message, "write bytes above 0, such as \"198KiB\""));
    }
    if xon > xoff {
        let message = format!("relay_xon = {} is above relay_xoff = {}", Bytes(xon), Bytes(xoff));
        return Err(cx.doc.error(
            &at("relay_xon"),
            message,
            "choose `relay_xon` no larger than `relay_xoff`",
        ));
    }
    if swing.pfc.relay == RelayKey::Blind {
        let message = "`swing` passes pauses on at its relays, not at hosts";
        return Err(cx.doc.error(&at("relay"), message, "remove the key"));
    }
    Ok(())
}

/// XOFF and XON between a relay and its switch.
fn thresholds(swing: &Swing, largest: u32) -> (u64, u64) {
    let xoff = swing.relays.relay_xoff.map_or(THRESHOLD, |b| b.0);
    (xoff, swing.relays.relay_xon.map_or_else(|| xon(xoff, largest), |b| b.0))
}

/// Puts relays into the long links, if this is the scheme.
pub(super) fn insert(cx: &Context<'_>, topology: &mut Topology) -> Result<(), Error> {
    let Some(swing) = keys(cx) else { return Ok(()) };
    if topology.ports.iter().all(|p| !p.long) {
        let message = "`swing` puts relays into long links, and this topology has none";
        let help = "choose the topology dci, or say long = true of a link of a custom one; or choose scheme = \"pfc\"";
        return Err(cx.doc.error("flow_control.scheme", message, help));
    }
    if topology.relay_hosts {
        let message = "`swing` does not say what hosts do that relay";
        let help = "choose a topology whose hosts do not relay, or scheme = \"pfc\"";
        return Err(cx.doc.error("flow_control.scheme", message, help));
    }
    topology.insert_relays(swing.relays.relay_delay.0).map_err(|name| {
        let message = format!("the name `{name}` is that of a relay of `swing`");
        cx.doc.error("topology", message, "rename the node")
    })
}

/// The parameters of its state machines: those of PFC, and how long relays hold
/// back the end of a pause; the longest of all long links.
pub(super) fn params(pfc: &Pfc, topology: &Topology, packet: &PacketFormat) -> PfcParams {
    let long = topology.ports.iter().filter(|p| p.long);
    let facts = |p: &Port| LinkFacts { rate: p.rate, delay: p.delay, largest: packet.largest() };
    let hold = long.map(|p| hold(&facts(p))).max().unwrap_or(0);
    PfcParams { relay: Relay::Mirror { hold }, ..super::memory::params(pfc) }
}

/// Memory at relays and beside them.
pub(super) struct Relays {
    /// The priorities of data.
    data: BTreeSet<u8>,
}

impl Relays {
    /// What is known before the accounts are laid out; `None` under other schemes.
    pub(super) fn new(cx: &Context<'_>, listed: &files::Listed) -> Result<Option<Self>, Error> {
        if keys(cx).is_none() {
            return Ok(None);
        }
        let mut data = BTreeSet::new();
        for (i, table) in cx.scenario.traffic.iter().enumerate() {
            match listed.get(&i) {
                Some(flows) => data.extend(flows.iter().map(|(_, priority)| *priority)),
                None => data.extend(offered::priorities(cx, i, table)?.into_iter().map(|(p, _)| p)),
            }
        }
        Ok(Some(Self { data }))
    }

    /// The account of a lossless lane on a relay's port, or on one that leads to a
    /// relay; `None` on others, and where the switch pauses its relay like any other.
    pub(super) fn account(
        &self,
        cx: &Context<'_>,
        topology: &Topology,
        port: PortId,
        lanes: &[Lane],
        packet: &PacketFormat,
    ) -> Result<Option<Account>, Error> {
        let swing = keys(cx).expect("made for this scheme");
        let p = &topology.ports[port as usize];
        let far = topology.neighbour(port);
        if !topology.is_relay(p.node) && !topology.is_relay(far) {
            return Ok(None);
        }
        if !topology.is_relay(p.node) && swing.relays.switch_side == SwitchSide::Pfc {
            return Ok(None);
        }
        let link = LinkFacts { rate: p.rate, delay: p.delay, largest: packet.largest() };
        if !p.long {
            let (xoff, xon) = thresholds(swing, packet.largest());
            return Ok(Some(dedicated(xoff, xon, headroom(&link, swing.pfc.response_time.0))));
        }
        let Depth { buffer, limit, .. } = self.depth(cx, topology, port, lanes, packet)?;
        let room = Headroom { terms: Vec::new(), total: buffer - limit };
        Ok(Some(dedicated(limit, limit, room)))
    }

    /// How deep a relay is for what comes in over its long link at `port`.
    fn depth(
        &self,
        cx: &Context<'_>,
        topology: &Topology,
        port: PortId,
        lanes: &[Lane],
        packet: &PacketFormat,
    ) -> Result<Depth, Error> {
        let swing = keys(cx).expect("made for this scheme");
        let p = &topology.ports[port as usize];
        let link = LinkFacts { rate: p.rate, delay: p.delay, largest: packet.largest() };
        let response = swing.pfc.response_time.0;
        let room = headroom(&link, response);
        let least = memory(&link, response);
        let several = lanes.iter().filter(|l| l.lossless && self.data.contains(&l.priority)).count() > 1;
        let default = if several { least.total + room.total } else { least.total };
        let buffer = swing.relays.relay_buffer.map_or(default, |b| b.0);
        let at = |key: &str| format!("flow_control.{key}");
        let largest = u64::from(packet.largest());
        let limit = match swing.relays.relay_limit {
            Some(limit) => limit.0,
            None if several => buffer.saturating_sub(room.total),
            None => buffer,
        };
        if limit < largest {
            let (key, what) = match swing.relays.relay_limit {
                Some(_) => ("relay_limit", format!("a threshold of {} holds no packet", bytes(limit))),
                None if several => (
                    "relay_buffer",
                    format!(
                        "relays of {} have nothing left above their headroom of {} on the link of {}",
                        bytes(buffer),
                        bytes(room.total),
                        topology.port_name(port)
                    ),
                ),
                None => ("relay_buffer", format!("relays of {} hold no packet", bytes(buffer))),
            };
            // Of a buffer less than the default, which is lossless, a relay warns.
            let help = match swing.relays.relay_limit {
                Some(_) => format!("write {} to {}", bytes(largest), bytes(buffer)),
                None => format!("without the key it is {}", bytes(default)),
            };
            return Err(cx.doc.error(&at(key), what, help));
        }
        if limit > buffer {
            let message =
                format!("relay_limit = {} is above the relays' memory of {}", bytes(limit), bytes(buffer));
            return Err(cx.doc.error(&at("relay_limit"), message, "choose it no larger than `relay_buffer`"));
        }
        Ok(Depth { buffer, limit, several, room: room.total, least: least.total })
    }

    /// Says where a relay may drop what it gets: it is less deep than a round trip, or
    /// has too little headroom where pauses alone do not bound what waits in it.
    pub(super) fn warn(
        &self,
        cx: &mut Context<'_>,
        topology: &Topology,
        lanes: &[Lane],
        packet: &PacketFormat,
    ) -> Result<(), Error> {
        for port in (0..topology.ports.len() as PortId).filter(|&p| topology.ports[p as usize].long) {
            let Depth { buffer, limit, several, room, least } =
                self.depth(cx, topology, port, lanes, packet)?;
            let mirrored = !several && buffer >= least && limit >= least;
            if buffer - limit >= room || mirrored {
                continue;
            }
            let name = topology.port_name(port);
            let (key, why) = if several {
                let why = format!(
                    "with data of several priorities {name} needs a headroom of {} above `relay_limit`, and has {}",
                    bytes(room),
                    bytes(buffer - limit)
                );
                ("relay_buffer", why)
            } else if buffer < least {
                let why = format!(
                    "a round trip of {name} and its packets are {}, and its relays have {}",
                    bytes(least),
                    bytes(buffer)
                );
                ("relay_buffer", why)
            } else {
                let why = format!(
                    "{name} pauses of its own accord at {}, with less below it than a round trip and its packets ({}), \
                     and less above it than headroom ({})",
                    bytes(limit),
                    bytes(least),
                    bytes(room)
                );
                ("relay_limit", why)
            };
            cx.warn(format!("flow_control.{key}"), format!("relays may drop packets: {why}"));
            break;
        }
        Ok(())
    }
}

/// How deep a relay is for one lossless priority, in bytes.
struct Depth {
    /// All of it.
    buffer: u64,
    /// Where it pauses its peer of its own accord.
    limit: u64,
    /// There are several lossless priorities of data.
    several: bool,
    /// What can come in after a pause: PFC's headroom of the long link.
    room: u64,
    /// What one priority's mirrored stops can leave here.
    least: u64,
}

/// An account that is over at `xoff` bytes and under again at `xon`. (A relay has
/// memory for the thresholds of all its accounts.)
fn dedicated(xoff: u64, xon: u64, headroom: Headroom) -> Account {
    Account {
        reserve: 0,
        limit: Limit::Static(xoff),
        resume: xon,
        resume_offset: 0,
        headroom: Some(headroom),
        pool: None,
    }
}

/// The memory of a relay: what its accounts are granted, and a packet for each;
/// for a lossy priority the same as between relay and switch. `None` of others.
pub(super) fn buffer(
    cx: &Context<'_>,
    topology: &Topology,
    node: NodeId,
    lanes: &[Lane],
    accounts: &[Account],
    packet: &PacketFormat,
) -> Option<Buffer> {
    let swing = keys(cx).filter(|_| topology.is_relay(node))?;
    let (mut total, mut shared) = (0u64, 0u64);
    for &port in &topology.nodes[node as usize].ports {
        for account in &accounts[port as usize * lanes.len()..][..lanes.len()] {
            let (xoff, headroom) = match (&account.headroom, account.limit) {
                (Some(headroom), Limit::Static(xoff)) => (xoff, headroom.total),
                _ => (thresholds(swing, packet.largest()).0, 0),
            };
            // The packet that crosses a threshold.
            let pool = xoff.saturating_add(packet.largest().into());
            shared = shared.saturating_add(pool);
            total = total.saturating_add(pool).saturating_add(headroom);
        }
    }
    Some(Buffer { total, shared })
}

/// The nodes of a path through the relays of long links, which its writer need
/// not name: between two that a long link joined, its relays are put.
pub(super) fn through(topology: &Topology, nodes: Vec<NodeId>) -> Vec<NodeId> {
    let mut out: Vec<NodeId> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let before = out.last().copied();
        if let Some(port) = before.and_then(|b| topology.relayed(b, node).first().copied()) {
            out.extend([topology.ports[port as usize].node, topology.neighbour(port)]);
        }
        out.push(node);
    }
    out
}
