//! Credit-based flow control: buffers of ports, periods, and what 12 bits can grant.

use super::flow_control::time;
use super::memory::{UNBOUNDED, at_buffer, default_switch};
use super::{Context, LARGEST, bytes};
use crate::error::Error;
use crate::plan::{Account, Buffer, Lane, Limit, PacketFormat};
use crate::scenario::Cbfc;
use xoff_kernel::time::{MICROSECOND, SECOND, Time, serialisation};
use xoff_net::topology::{NodeId, NodeKind, Port, PortId, Topology};
use xoff_net::units::{Bandwidth, Bytes, Span, Threshold};
use xoff_schemes::flow_control::cbfc::frame::{BLOCK, CreditPacket, Form};
use xoff_schemes::flow_control::cbfc::{CbfcParams, blocks, full_throughput, longest_update, most};
use xoff_schemes::flow_control::{Headroom, LinkFacts};

/// Refuses values out of range.
pub(super) fn check(cx: &Context<'_>, keys: &Cbfc) -> Result<(), Error> {
    time(cx, "response_time", keys.response_time)?;
    let Some(update) = keys.update else { return Ok(()) };
    if update.0 == 0 {
        let message = "an update of no time: flow-control packets would take all of the wire";
        return Err(cx.doc.error("flow_control.update", message, "write a time above 0, such as \"1us\""));
    }
    time(cx, "update", update)
}

fn form(keys: &Cbfc) -> Form {
    if keys.unlimited { Form::Wide } else { Form::Narrow }
}

fn update(keys: &Cbfc, port: &Port) -> Time {
    keys.update.map_or_else(|| longest_update(port.rate), |t| t.0)
}

fn facts(port: &Port, packet: &PacketFormat) -> LinkFacts {
    LinkFacts { rate: port.rate, delay: port.delay, largest: packet.largest() }
}

/// Blocks that keep the link of a port busy.
fn needed(keys: &Cbfc, port: &Port, packet: &PacketFormat) -> u64 {
    full_throughput(&facts(port, packet), update(keys, port), keys.response_time.0, form(keys))
}

/// Whether a node has a long link.
fn is_gateway(topology: &Topology, node: NodeId) -> bool {
    topology.nodes[node as usize].ports.iter().any(|&p| topology.ports[p as usize].long)
}

/// The buffer that is written for a port, with its key.
fn written(keys: &Cbfc, topology: &Topology, port: &Port) -> Option<(&'static str, Threshold)> {
    let other = keys.buffer.map(|b| ("flow_control.buffer", b));
    if port.long {
        keys.long_buffer.map(|b| ("flow_control.long_buffer", b)).or(other)
    } else if is_gateway(topology, port.node) {
        keys.gateway_buffer.map(|b| ("flow_control.gateway_buffer", b)).or(other)
    } else {
        other
    }
}

/// A link, as errors name it.
fn link(topology: &Topology, id: PortId) -> String {
    let port = &topology.ports[id as usize];
    format!("the link of {} ({}, {})", topology.port_name(id), Bandwidth(port.rate), Span(port.delay))
}

/// Blocks of the buffer of a port for each lane.
fn buffer(
    cx: &Context<'_>,
    keys: &Cbfc,
    topology: &Topology,
    id: PortId,
    packet: &PacketFormat,
) -> Result<u64, Error> {
    let port = &topology.ports[id as usize];
    let largest = blocks(packet.largest().into());
    let Some((key, threshold)) = written(keys, topology, port) else {
        let grantable = most(form(keys), keys.response_time.0);
        // The largest packet of all, with its 75 kB, takes less than 12 bits can grant.
        return Ok(needed(keys, port, packet).min(grantable));
    };
    let resolved = threshold.resolve(port.rate, port.delay);
    let shown = match threshold {
        Threshold::Bytes(b) => b.to_string(),
        bdp => format!("{bdp} ({})", bytes(resolved)),
    };
    if resolved > LARGEST {
        let message = format!("a buffer of {shown} is out of range");
        return Err(cx.doc.error(key, message, format!("{} are the most", Bytes(LARGEST))));
    }
    let buffer = resolved / u64::from(BLOCK);
    if buffer < largest {
        let message = format!(
            "{shown} are {buffer} blocks of 64 B on {}, and the largest packet takes {largest}: it could never be sent",
            link(topology, id)
        );
        let help = format!("write {}B or more", largest * u64::from(BLOCK));
        return Err(cx.doc.error(key, message, help));
    }
    Ok(buffer)
}

/// A time as a reader can take it in.
fn microseconds(time: Time) -> String {
    format!("{:.2} us", time as f64 / MICROSECOND as f64)
}

/// Says where a link cannot be kept busy for want of bits, the worst one, and what of
/// written buffers is never used.
fn warn(cx: &mut Context<'_>, keys: &Cbfc, topology: &Topology, buffers: &[u64], packet: &PacketFormat) {
    let grantable = most(form(keys), keys.response_time.0);
    let room = grantable.saturating_mul(u64::from(BLOCK));
    let mut unused: Option<(&str, PortId)> = None;
    for (id, port) in (0..).zip(&topology.ports) {
        if let Some((key, _)) = written(keys, topology, port)
            && buffers[id as usize] > grantable
            && unused.is_none_or(|(_, known)| buffers[known as usize] < buffers[id as usize])
        {
            unused = Some((key, id));
        }
    }
    if let Some((key, id)) = unused {
        let port = &topology.ports[id as usize];
        // The longest cable whose round trip takes no more than that, at 5 us per km.
        let time = u128::from(room) * 8 * u128::from(SECOND) / u128::from(port.rate) / 2;
        let message = format!(
            "12-bit credits grant {room} B at most, of {} B here: on {} they keep a cable of up to {:.2} km busy, \
             if updates take no time; unlimited = true lifts the limit",
            buffers[id as usize] * u64::from(BLOCK),
            link(topology, id),
            time as f64 / 5e6
        );
        cx.warn(key.to_string(), message);
        return;
    }
    let worst = (0..)
        .zip(&topology.ports)
        .map(|(id, port)| (needed(keys, port, packet), std::cmp::Reverse(id)))
        .max()
        .filter(|&(need, _)| need > grantable);
    if let Some((need, std::cmp::Reverse(id))) = worst {
        let share = 100.0 * grantable as f64 / need as f64;
        let digits = if share < 1.0 { 3 } else { 0 };
        let message = format!(
            "12-bit credits grant {room} B at most, and {} with an update every {} needs {} B to be always busy: \
             it is used by about {share:.digits$}%; write a shorter update, or unlimited = true",
            link(topology, id),
            microseconds(update(keys, &topology.ports[id as usize])),
            need.saturating_mul(u64::from(BLOCK)),
        );
        cx.warn("flow_control.update".to_string(), message);
    }
}

/// Buffer of every node and accounts of every port.
///
/// An account is a partition of its own: all but the largest packet's room is its reserve,
/// and the rest, but for a block, its headroom. So it is over exactly while there is no
/// room for the largest packet, which is what oracles look at; credit alone keeps it
/// within its blocks.
pub(super) fn memory(
    cx: &mut Context<'_>,
    keys: &Cbfc,
    topology: &Topology,
    lanes: &[Lane],
    packet: &PacketFormat,
) -> Result<(Vec<Buffer>, Vec<Account>), Error> {
    check_updates(cx, keys, topology, lanes.len())?;
    let largest = blocks(packet.largest().into());
    let block = u64::from(BLOCK);
    let sizes = (0..topology.ports.len() as PortId)
        .map(|id| buffer(cx, keys, topology, id, packet))
        .collect::<Result<Vec<u64>, Error>>()?;
    warn(cx, keys, topology, &sizes, packet);
    for (key, given) in [("long_buffer", keys.long_buffer), ("gateway_buffer", keys.gateway_buffer)] {
        if given.is_some() && topology.ports.iter().all(|p| !p.long) {
            cx.warn(format!("flow_control.{key}"), "had no effect: this topology has no long link".into());
        }
    }
    let account = |size: u64| Account {
        // One byte beyond: accounts count whole blocks, and cross at the next one.
        reserve: (size - largest) * block + 1,
        limit: Limit::Static(0),
        resume: 0,
        resume_offset: 0,
        headroom: Some(Headroom { terms: Vec::new(), total: (largest - 1) * block }),
        pool: None,
    };
    let of_lane = |&size: &u64| lanes.iter().map(move |l| if l.lossless { account(size) } else { UNBOUNDED });
    let accounts = sizes.iter().flat_map(of_lane).collect();
    let lossless = lanes.iter().filter(|l| l.lossless).count() as u64;
    let buffers = (0..topology.nodes.len() as NodeId)
        .map(|node| {
            let ports = &topology.nodes[node as usize].ports;
            let each = ports.iter().map(|&p| sizes[p as usize] * block).fold(0, u64::saturating_add);
            total(cx, topology, node, each.saturating_mul(lossless), lossless < lanes.len() as u64, packet)
        })
        .collect::<Result<Vec<Buffer>, Error>>()?;
    Ok((buffers, accounts))
}

/// The memory of a node whose partitions take `taken` bytes. Where its size is not
/// written, or a long link asks for what it needs, it grows with them.
fn total(
    cx: &Context<'_>,
    topology: &Topology,
    node: NodeId,
    taken: u64,
    lossy: bool,
    packet: &PacketFormat,
) -> Result<Buffer, Error> {
    let n = &topology.nodes[node as usize];
    let (key, given) = match n.kind {
        NodeKind::Host => ("host.buffer", cx.scenario.host.buffer.0),
        NodeKind::Switch => (
            "switch.buffer",
            cx.scenario.switch.buffer.map_or_else(|| default_switch(topology, node), |b| b.0),
        ),
    };
    // Lossy priorities share room for one packet at least, charged in whole blocks.
    let rest = if lossy { u64::from(packet.largest()).next_multiple_of(u64::from(BLOCK)) } else { 0 };
    let need = taken.saturating_add(rest);
    let total = given.max(need);
    if total > LARGEST {
        let message = format!("a buffer of {} is out of range", Bytes(total));
        return Err(at_buffer(cx, key, message, &format!("{} are the most", Bytes(LARGEST))));
    }
    let fixed = cx.doc.get(key).is_some() && !is_gateway(topology, node);
    if fixed && given < need {
        let message =
            format!("{} has {}, but the buffers of its ports take {}", n.name, bytes(given), bytes(need));
        let help = format!("raise {key} to {need}B or more, or lower flow_control.buffer");
        return Err(at_buffer(cx, key, message, &help));
    }
    Ok(Buffer { total, shared: total - taken })
}

/// The parameters on the ports of `topology`, of which those of links come first.
pub(super) fn params(
    cx: &Context<'_>,
    keys: &Cbfc,
    topology: &Topology,
    lanes: &[Lane],
    packet: &PacketFormat,
) -> Result<CbfcParams, Error> {
    let is_link = |&(id, port): &(PortId, &Port)| topology.neighbour(id) != port.node;
    let links: Vec<(PortId, &Port)> = (0..).zip(&topology.ports).take_while(is_link).collect();
    let buffer = links
        .iter()
        .map(|&(id, _)| buffer(cx, keys, topology, id, packet))
        .collect::<Result<Vec<u64>, Error>>()?;
    Ok(CbfcParams {
        form: form(keys),
        ahead: links.iter().map(|(_, port)| buffer[port.peer as usize]).collect(),
        buffer,
        update: links.iter().map(|(_, port)| update(keys, port)).collect(),
        lanes: lanes.iter().map(|l| l.lossless).collect(),
        response_time: keys.response_time.0,
    })
}

/// Refuses updates that would leave no wire for data.
fn check_updates(cx: &Context<'_>, keys: &Cbfc, topology: &Topology, lanes: usize) -> Result<(), Error> {
    let Some(given) = keys.update else { return Ok(()) };
    let packet = CreditPacket::new(form(keys), 0, 0, 0).length();
    let of = |port: &Port| serialisation(u64::from(packet) * lanes as u64, port.rate);
    let slowest = (0..).zip(&topology.ports).max_by_key(|(_, port)| of(port));
    if let Some((id, port)) = slowest
        && given.0 <= 2 * of(port)
    {
        let message = format!(
            "an update every {given} would take half of {} or more for flow-control packets",
            link(topology, id)
        );
        let help = format!("write more than {}", Span(2 * of(port)));
        return Err(cx.doc.error("flow_control.update", message, help));
    }
    Ok(())
}
