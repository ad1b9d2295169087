//! `[flow_control]` of GFC.

use super::super::fabric::{Account, Fabric, Lane, Memory, PacketFormat, UNBOUNDED, partitioned};
use super::super::keys::{
    Complaint, Keys, LARGEST, LARGEST_ALLOWED, Setting, Whole, default_keys, defaults, link, shown, time,
};
use super::super::{FlowControlParams, Headroom};
use super::{GfcParams, Ladder, feedback, least_room, stages};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use xoff_kernel::time::Time;
use xoff_net::topology::{NodeId, PortId, Topology};
use xoff_net::units::{Span, Threshold};

/// Gentle flow control, buffer-based: an ingress account halves the rate of its peer at each of its
/// stages. Each port has its own buffer for each priority of the packets that arrive at it. Ports
/// share no buffer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GfcKeys {
    /// B_1: from this many stored bytes on, an ingress account asks for half of the link's rate.
    /// Each further stage halves the rate again. In bytes, or in BDP (rate times one-way delay) of
    /// the link. Default: `buffer` without the room for all stages if `buffer` is written, otherwise
    /// the bytes that the link carries in one feedback time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: `buffer` without the room for all stages; without `buffer`, rate times feedback time"))]
    pub b1: Option<Threshold>,
    /// B_m: buffer of each port for each priority. In bytes, or in BDP of the link. Beyond B_1 the
    /// stages need room for twice the bytes of a feedback time and a largest packet each; a buffer
    /// with less is refused. Default: `b1` and this room. The memory of the device grows to the port buffers if
    /// `switch.buffer` or `host.buffer` is not written, and always at switches with long links.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: `b1` and the room for all stages"))]
    pub buffer: Option<Threshold>,
    /// Which packet of a priority leaves a port next.
    #[serde(default)]
    pub service: Service,
    /// Time from the arrival of a feedback frame until it takes effect.
    #[serde(default = "defaults::zero_time")]
    pub response_time: Span,
}

default_keys!(GfcKeys);

/// Which packet of a priority leaves a port next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// Ingress ports have turns, by deficit round robin: each has its own queue at each egress port.
    #[default]
    ByIngress,
    /// The one that came first: one queue for all ingress ports. In a cycle of queues the rates then fall
    /// continuously.
    Fifo,
}

impl Whole for GfcKeys {}

impl Keys for GfcKeys {
    fn check(&self, _: &mut Setting<'_>) -> Result<(), Complaint> {
        time("response_time", self.response_time)
    }

    fn covers_all(&self) -> bool {
        true
    }

    /// Buffer of every node and accounts of every port.
    ///
    /// An account is a separate partition. Its reserve is B_1, and the rest is its headroom: so it is over
    /// while it has a stage above 0, or about to leave one.
    fn memory(
        &self,
        cx: &mut Setting<'_>,
        topology: &Topology,
        lanes: &[Lane],
    ) -> Result<Option<Memory>, Complaint> {
        let packet = cx.packet;
        let (ladders, of_port) = ladders(self, topology, &packet, topology.ports.len())?;
        let account = |port: PortId, ladder: &Ladder| {
            let (b1, link) = (ladder.thresholds[0], packet.facts(&topology.ports[port as usize]));
            let total = ladder.buffer - b1;
            let stages = feedback(&link, self.response_time.0).saturating_mul(2);
            let terms = match self.buffer {
                None => vec![
                    ("twice the bytes of a feedback time", stages),
                    ("a packet for each stage", total.saturating_sub(stages)),
                ],
                Some(_) => Vec::new(),
            };
            Account { reserve: b1, ..Account::fixed(0, 0, Headroom { terms, total }) }
        };
        let mut accounts = Vec::with_capacity(of_port.len() * lanes.len());
        for (id, &ladder) in (0..).zip(&of_port) {
            let account = account(id, &ladders[ladder as usize]);
            accounts.extend(lanes.iter().map(|l| if l.lossless { account.clone() } else { UNBOUNDED }));
        }
        let lossless = lanes.iter().filter(|l| l.lossless).count() as u64;
        // Lossy priorities share room for one packet at least.
        let rest = if lossless < lanes.len() as u64 { packet.largest().into() } else { 0 };
        let lower = if self.buffer.is_some() { "flow_control.buffer" } else { "flow_control.b1" };
        let buffers = (0..topology.nodes.len() as NodeId).map(|node| {
            let ports = &topology.nodes[node as usize].ports;
            let sizes = ports.iter().map(|&p| ladders[of_port[p as usize] as usize].buffer);
            let taken = sizes.fold(0, u64::saturating_add).saturating_mul(lossless);
            partitioned(cx, topology, node, taken, rest, lower)
        });
        Ok(Some((buffers.collect::<Result<_, _>>()?, accounts)))
    }

    fn params(&self, cx: &mut Setting<'_>, fabric: Fabric<'_>) -> Result<FlowControlParams, Complaint> {
        let topology = fabric.topology;
        // Ports of links come first.
        let links = (0..).zip(&topology.ports).take_while(|&(id, port)| topology.neighbour(id) != port.node);
        let (ladders, of_port) = ladders(self, topology, &cx.packet, links.count())?;
        Ok(FlowControlParams::Gfc(GfcParams {
            ladders,
            of_port,
            lanes: fabric.lanes.iter().map(|l| l.lossless).collect(),
            response_time: self.response_time.0,
            service: self.service,
            places: topology.ports.iter().map(|port| port.index).collect(),
            repeats: fabric.loses,
            last_end: fabric.last_end,
        }))
    }
}

/// The different ladders of the first `count` ports, and by port which one it has.
fn ladders(
    keys: &GfcKeys,
    topology: &Topology,
    packet: &PacketFormat,
    count: usize,
) -> Result<(Vec<Ladder>, Vec<u32>), Complaint> {
    let mut kinds: BTreeMap<(u64, Time), u32> = BTreeMap::new();
    let mut ladders = Vec::new();
    let mut of_port = Vec::with_capacity(count);
    for (id, port) in (0..).zip(&topology.ports[..count]) {
        let kind = (port.rate, port.delay);
        let at = match kinds.get(&kind) {
            Some(&at) => at,
            None => {
                ladders.push(ladder(keys, topology, packet, id)?);
                let at = ladders.len() as u32 - 1;
                kinds.insert(kind, at);
                at
            }
        };
        of_port.push(at);
    }
    Ok((ladders, of_port))
}

/// The ladder of a port; an error if a packet could be lost.
fn ladder(
    keys: &GfcKeys,
    topology: &Topology,
    packet: &PacketFormat,
    id: PortId,
) -> Result<Ladder, Complaint> {
    let port = &topology.ports[id as usize];
    let facts = packet.facts(port);
    let (feedback, room) = (feedback(&facts, keys.response_time.0), least_room(&facts, keys.response_time.0));
    let read = |key: &str, threshold: Option<Threshold>| {
        let Some(threshold) = threshold else { return Ok(None) };
        let bytes = threshold.resolve(port.rate, port.delay);
        let shown = shown(threshold, bytes);
        if bytes == 0 {
            let message = format!("{shown} is not a valid number of bytes on {}", link(topology, id));
            let help = "write a number of bytes above 0: a link without delay has no BDP";
            return Err(Complaint::of_key(key, message, help));
        }
        if bytes > LARGEST {
            let message = format!("{key} = {shown} is out of range");
            return Err(Complaint::of_key(key, message, LARGEST_ALLOWED));
        }
        Ok(Some((bytes, shown)))
    };
    let (b1, buffer) = (read("b1", keys.b1)?, read("buffer", keys.buffer)?);
    let Some((buffer, shown)) = buffer else {
        let b1 = b1.map_or(feedback, |b1| b1.0);
        let buffer = b1.saturating_add(room);
        return Ok(Ladder::new(b1, feedback.saturating_mul(2), buffer, &facts));
    };
    let least = b1.as_ref().map_or(1, |b1| b1.0).saturating_add(room);
    if buffer < least {
        let link = link(topology, id);
        let (from, lower) = match &b1 {
            Some((_, b1)) => (format!("from b1 = {b1} on"), ", or lower flow_control.b1"),
            None => ("beyond b1, which is above 0,".to_string(), ""),
        };
        let message = format!(
            "buffer = {shown} is too small on {link}: {from} its stages need {room} B, or a packet could be lost"
        );
        return Err(Complaint::of_key("buffer", message, format!("write {least}B or more{lower}")));
    }
    // What is left over makes the steps wider if B_1 is written, and otherwise raises B_1.
    let Some((b1, _)) = b1 else {
        return Ok(Ladder::new(buffer - room, feedback.saturating_mul(2), buffer, &facts));
    };
    let count = u64::from(stages(&facts));
    let packets = (count + 1) * u64::from(facts.largest) + count;
    let span = (buffer - b1).saturating_sub(packets).max(feedback.saturating_mul(2));
    Ok(Ladder::new(b1, span, buffer, &facts))
}
