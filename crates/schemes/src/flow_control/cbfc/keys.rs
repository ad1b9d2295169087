//! `[flow_control]` of credit-based flow control.

use super::super::fabric::{
    Account, Buffer, Fabric, Lane, Memory, PacketFormat, UNBOUNDED, is_gateway, partitioned,
};
use super::super::keys::{
    Complaint, Keys, LARGEST, LARGEST_ALLOWED, Setting, Whole, default_keys, defaults, link, shown, time,
};
use super::super::{FlowControlParams, Headroom};
use super::frame::{BLOCK, CreditPacket, Form};
use super::{CbfcParams, blocks, full_throughput, longest_update, most};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use xoff_kernel::time::{MICROSECOND, SECOND, Time, serialisation};
use xoff_net::topology::{NodeId, Port, PortId, Topology};
use xoff_net::units::{Span, Threshold};

/// Credit-based flow control after InfiniBand. Each port has a buffer of its own for each
/// priority that comes in by it; nothing is shared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CbfcKeys {
    /// Buffer of each port for each priority, in whole blocks of 64 B, at least a largest packet.
    /// In bytes, or in BDP (rate times one-way delay) of its link. Default: enough to keep the link
    /// busy; without `unlimited` at most 131,072 B, which 12 bits can grant. Lossy priorities use
    /// the rest of the device's memory. That memory grows to the port buffers if `switch.buffer` or
    /// `host.buffer` is not written, and always at switches with long links.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: the least that keeps the link busy; without `unlimited` at most 131,072 B"))]
    pub buffer: Option<Threshold>,
    /// Time between two flow-control packets of a priority on a link. Default: the longest of
    /// InfiniBand, 65,536 symbol times: the time of 262,144 B at the link's rate, 20.97 us at 100
    /// Gbit/s. Results count the time that a priority waits for credit as paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: the time of 262,144 B at the rate of the link"))]
    pub update: Option<Span>,
    /// Uses 64-bit counters instead of 12-bit counters, which can grant only 2,048 blocks:
    /// CBFC-ideal.
    #[serde(default)]
    pub unlimited: bool,
    /// Buffer of the ports of long links. Default: `buffer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`buffer`"))]
    pub long_buffer: Option<Threshold>,
    /// Buffer of the other ports of switches with long links. Default: `buffer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`buffer`"))]
    pub gateway_buffer: Option<Threshold>,
    /// Time from the arrival of a flow-control packet until it takes effect.
    #[serde(default = "defaults::zero_time")]
    pub response_time: Span,
}

default_keys!(CbfcKeys);

impl Whole for CbfcKeys {}

impl Keys for CbfcKeys {
    fn allows_channels(&self) -> bool {
        true
    }

    fn check(&self, _: &mut Setting<'_>) -> Result<(), Complaint> {
        time("response_time", self.response_time)?;
        let Some(update) = self.update else { return Ok(()) };
        if update.0 == 0 {
            let message = "update = 0 is out of range: flow-control packets would fill the link";
            let help = "write a time above 0, such as \"1us\"";
            return Err(Complaint::of_key("update", message, help));
        }
        time("update", update)
    }

    fn covers_all(&self) -> bool {
        true
    }

    /// Buffer of every node and accounts of every port.
    ///
    /// An account is a separate partition. What its link needs to stay busy is its headroom, but for a block, and the
    /// rest its reserve. So it is over while it holds blocks that the link needs, and oracles take it for the cause of
    /// a wait for credit then; credit keeps it within its blocks.
    fn memory(
        &self,
        cx: &mut Setting<'_>,
        topology: &Topology,
        lanes: &[Lane],
    ) -> Result<Option<Memory>, Complaint> {
        check_updates(self, topology, lanes.len())?;
        let packet = cx.packet;
        let largest = blocks(packet.largest().into());
        let block = u64::from(BLOCK);
        let ports = 0..topology.ports.len() as PortId;
        let sizes = ports.map(|id| buffer(self, topology, id, &packet)).collect::<Result<Vec<u64>, _>>()?;
        warn(cx, self, topology, &sizes);
        for (key, given) in [("long_buffer", self.long_buffer), ("gateway_buffer", self.gateway_buffer)] {
            if given.is_some() && topology.ports.iter().all(|p| !p.long) {
                let message = "had no effect: this topology has no long link";
                cx.warn(format!("flow_control.{key}"), message.into());
            }
        }
        let account = |(&size, port): (&u64, &Port)| {
            let spare = size.saturating_sub(needed(self, port, &packet));
            let headroom = Headroom { terms: Vec::new(), total: (size - spare - 1) * block };
            // One byte beyond: accounts count whole blocks, and cross at the next one.
            Account { reserve: spare * block + 1, ..Account::fixed(0, 0, headroom) }
        };
        let of_port = |account: Account| {
            lanes.iter().map(move |lane| if lane.lossless { account.clone() } else { UNBOUNDED })
        };
        let accounts = sizes.iter().zip(&topology.ports).map(account).flat_map(of_port).collect();
        let lossless = lanes.iter().filter(|l| l.lossless).count() as u64;
        let buffers = (0..topology.nodes.len() as NodeId)
            .map(|node| {
                let ports = &topology.nodes[node as usize].ports;
                let each = ports.iter().map(|&p| sizes[p as usize] * block).fold(0, u64::saturating_add);
                // Lossy priorities share room for one packet at least, charged in whole blocks.
                let lossy = lossless < lanes.len() as u64;
                let rest = if lossy { largest * block } else { 0 };
                partitioned(cx, topology, node, each.saturating_mul(lossless), rest, "flow_control.buffer")
            })
            .collect::<Result<Vec<Buffer>, _>>()?;
        Ok(Some((buffers, accounts)))
    }

    fn params(&self, cx: &mut Setting<'_>, fabric: Fabric<'_>) -> Result<FlowControlParams, Complaint> {
        let topology = fabric.topology;
        // Ports of links come first.
        let is_link = |&(id, port): &(PortId, &Port)| topology.neighbour(id) != port.node;
        let links: Vec<(PortId, &Port)> = (0..).zip(&topology.ports).take_while(is_link).collect();
        let buffers = links.iter().map(|&(id, _)| buffer(self, topology, id, &cx.packet));
        let buffer = buffers.collect::<Result<Vec<u64>, _>>()?;
        Ok(FlowControlParams::Cbfc(CbfcParams {
            form: form(self),
            ahead: links.iter().map(|(_, port)| buffer[port.peer as usize]).collect(),
            buffer,
            update: links.iter().map(|(_, port)| update(self, port)).collect(),
            lanes: fabric.lanes.iter().map(|l| l.lossless).collect(),
            response_time: self.response_time.0,
        }))
    }
}

fn form(keys: &CbfcKeys) -> Form {
    if keys.unlimited { Form::Wide } else { Form::Narrow }
}

fn update(keys: &CbfcKeys, port: &Port) -> Time {
    keys.update.map_or_else(|| longest_update(port.rate), |t| t.0)
}

/// Blocks that keep the link of a port busy.
fn needed(keys: &CbfcKeys, port: &Port, packet: &PacketFormat) -> u64 {
    full_throughput(&packet.facts(port, 0), update(keys, port), keys.response_time.0, form(keys))
}

/// The buffer that is written for a port, with its key.
fn written(keys: &CbfcKeys, topology: &Topology, port: &Port) -> Option<(&'static str, Threshold)> {
    let (key, own) = if port.long {
        ("flow_control.long_buffer", keys.long_buffer)
    } else if is_gateway(topology, port.node) {
        ("flow_control.gateway_buffer", keys.gateway_buffer)
    } else {
        ("flow_control.buffer", None)
    };
    own.map(|buffer| (key, buffer)).or(keys.buffer.map(|buffer| ("flow_control.buffer", buffer)))
}

/// Blocks of the buffer of a port for each lane.
fn buffer(keys: &CbfcKeys, topology: &Topology, id: PortId, packet: &PacketFormat) -> Result<u64, Complaint> {
    let port = &topology.ports[id as usize];
    let largest = blocks(packet.largest().into());
    let Some((key, threshold)) = written(keys, topology, port) else {
        let grantable = most(form(keys), keys.response_time.0);
        // The largest packet of all, with its 75 kB, takes less than 12 bits can grant.
        return Ok(needed(keys, port, packet).min(grantable));
    };
    let resolved = threshold.resolve(port.rate, port.delay);
    let shown = shown(threshold, resolved);
    if resolved > LARGEST {
        return Err(Complaint::new(key, format!("a buffer of {shown} is out of range"), LARGEST_ALLOWED));
    }
    let buffer = resolved / u64::from(BLOCK);
    if buffer < largest {
        let link = link(topology, id);
        let message = format!(
            "the largest packet could never be sent: {shown} is {buffer} blocks of 64 B on {link}, and it needs {largest}"
        );
        let help = format!("write {}B or more", largest * u64::from(BLOCK));
        return Err(Complaint::new(key, message, help));
    }
    Ok(buffer)
}

/// Warns about the worst link that the 12 bits cannot keep busy, and about buffers that are never full.
fn warn(cx: &mut Setting<'_>, keys: &CbfcKeys, topology: &Topology, buffers: &[u64]) {
    let packet = cx.packet;
    let grantable = most(form(keys), keys.response_time.0);
    let room = grantable.saturating_mul(u64::from(BLOCK));
    let never_full = |(id, port): (PortId, &Port)| {
        let buffer = Some(buffers[id as usize]).filter(|&buffer| buffer > grantable)?;
        Some((buffer, Reverse(id), written(keys, topology, port)?.0))
    };
    let worst = (0..).zip(&topology.ports).filter_map(never_full).max();
    if let Some((buffer, Reverse(id), key)) = worst {
        // The longest cable whose round trip takes no more than that, at 5 us per km.
        let time =
            u128::from(room) * 8 * u128::from(SECOND) / u128::from(topology.ports[id as usize].rate) / 2;
        let (buffer, km) = (buffer * u64::from(BLOCK), time as f64 / 5e6);
        let message = format!(
            "12-bit credits limit the buffer to {room} B of {buffer} B: on {} they fill at most {km:.2} km of cable \
             if updates take no time; unlimited = true removes the limit",
            link(topology, id)
        );
        return cx.warn(key.into(), message);
    }
    let worst = (0..)
        .zip(&topology.ports)
        .map(|(id, port)| (needed(keys, port, &packet), Reverse(id)))
        .max()
        .filter(|&(need, _)| need > grantable);
    if let Some((need, Reverse(id))) = worst {
        let share = 100.0 * grantable as f64 / need as f64;
        let digits = if share < 1.0 { 3 } else { 0 };
        let message = format!(
            "12-bit credits limit throughput: they grant {room} B at most, and {} with an update every {:.2} us needs {} B: \
             the link is used at about {share:.digits$}%; write a shorter update, or unlimited = true",
            link(topology, id),
            update(keys, &topology.ports[id as usize]) as f64 / MICROSECOND as f64,
            need.saturating_mul(u64::from(BLOCK)),
        );
        cx.warn("flow_control.update".into(), message);
    }
}

/// Refuses updates that would leave no wire for data.
fn check_updates(keys: &CbfcKeys, topology: &Topology, lanes: usize) -> Result<(), Complaint> {
    let Some(given) = keys.update else { return Ok(()) };
    let packet = CreditPacket::new(form(keys), 0, 0, 0).length();
    let of = |port: &Port| serialisation(u64::from(packet) * lanes as u64, port.rate);
    let slowest = (0..).zip(&topology.ports).max_by_key(|(_, port)| of(port));
    if let Some((id, port)) = slowest
        && given.0 <= 2 * of(port)
    {
        let link = link(topology, id);
        let message = format!(
            "an update every {given} is too often: flow-control packets would take at least half of {link}"
        );
        let help = format!("write a time above {}", Span(2 * of(port)));
        return Err(Complaint::of_key("update", message, help));
    }
    Ok(())
}
