//! `[flow_control]` of GFC.

use super::super::fabric::{Account, Fabric, Lane, Memory, UNBOUNDED, partitioned};
use super::super::keys::{
    Complaint, Keys, LARGEST, LARGEST_ALLOWED, Setting, Whole, default_keys, defaults, link, shown,
    time as check_time,
};
use super::super::{FlowControlParams, Headroom};
use super::time::{self, Map};
use super::{GfcParams, Ladder, feedback, least_room, stages};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use xoff_kernel::time::Time;
use xoff_net::topology::{NodeId, PortId, Topology};
use xoff_net::units::{Bytes, Span, Threshold};

/// Gentle flow control: an ingress account lowers the rate of its peer while it fills, and never to 0. Each port
/// has its own buffer for each priority of the packets that arrive at it. Ports share no buffer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GfcKeys {
    /// How rates follow from stored bytes.
    #[serde(default)]
    pub form: Form,
    /// B_1 of `form = "buffer"`: from this many stored bytes on, an ingress account asks for half of the link's rate.
    /// Each further stage halves the rate again. In bytes, or in BDP (rate times one-way delay) of
    /// the link. Default: `buffer` without the room for all stages if `buffer` is written, otherwise
    /// the bytes that the link carries in one feedback time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: `buffer` without the room for all stages; without `buffer`, rate times feedback time"))]
    pub b1: Option<Threshold>,
    /// B_0 of `form = "time"`: from this many stored bytes on, the rate falls. In bytes, or in BDP of the link.
    /// Default: `buffer` without the room for the rates if `buffer` is written, otherwise the bytes that the link
    /// carries in one feedback time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: `buffer` without the room for the rates; without `buffer`, rate times feedback time"))]
    pub b0: Option<Threshold>,
    /// T of `form = "time"`: time between two feedback frames of a priority, at least one feedback time. Default:
    /// the time of 65,536 B on the link, or the feedback time if that is longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: the time of 65,536 B on the link, but at least the feedback time"))]
    pub period: Option<Span>,
    /// Buffer of each port for each priority. In bytes, or in BDP of the link. With `form = "buffer"` it is B_m, and
    /// beyond B_1 the stages need room for twice the bytes of a feedback time and a largest packet each. With
    /// `form = "time"` the rates need room for C·(√τ + √T)² and some packets beyond B_0; τ is the feedback time. A
    /// buffer with less is refused. Default: `b1` or `b0`, and this room. The memory of the device grows to the port buffers if
    /// `switch.buffer` or `host.buffer` is not written, and always at switches with long links.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: `b1` or `b0`, and the room for all rates"))]
    pub buffer: Option<Threshold>,
    /// Which packet of a priority leaves a port next.
    #[serde(default)]
    pub service: Service,
    /// Time from the arrival of a feedback frame until it takes effect.
    #[serde(default = "defaults::zero_time")]
    pub response_time: Span,
}

default_keys!(GfcKeys);

/// How rates follow from stored bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "GfcForm")]
pub enum Form {
    /// An account sends a frame when it changes its stage, and each stage halves the rate. For Ethernet.
    #[default]
    Buffer,
    /// An account names its stored bytes in each period. The rate falls linearly from `b0` on. For InfiniBand.
    Time,
}

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
        check_time("response_time", self.response_time)?;
        let (other, help) = match self.form {
            Form::Buffer => ("time", "remove it, or write form = \"time\""),
            Form::Time => ("buffer", "remove it, or write form = \"buffer\""),
        };
        let written = match self.form {
            Form::Buffer => [("b0", self.b0.is_some()), ("period", self.period.is_some())],
            Form::Time => [("b1", self.b1.is_some()), ("", false)],
        };
        if let Some((key, _)) = written.into_iter().find(|(_, written)| *written) {
            return Err(Complaint::of_key(key, format!("{key} belongs to form = \"{other}\""), help));
        }
        Ok(())
    }

    fn covers_all(&self) -> bool {
        true
    }

    /// Buffer of every node and accounts of every port.
    ///
    /// An account is a separate partition. Its reserve is B_1 or B_0, and the rest is its headroom: so it is over
    /// while its rate is below that of the link, or about to rise to it.
    fn memory(
        &self,
        cx: &mut Setting<'_>,
        topology: &Topology,
        lanes: &[Lane],
    ) -> Result<Option<Memory>, Complaint> {
        let packet = cx.packet;
        let (rooms, of_port) = of_kinds(cx, topology, topology.ports.len(), |cx, id| {
            let facts = cx.facts(topology, id);
            let (from, buffer, span, names) = match self.form {
                Form::Buffer => {
                    let ladder = ladder(self, topology, cx, id)?;
                    let span = feedback(&facts, self.response_time.0).saturating_mul(2);
                    let names = ["twice the bytes of a feedback time", "a packet for each stage"];
                    (ladder.thresholds[0], ladder.buffer, span, names)
                }
                Form::Time => {
                    let map = map(self, topology, cx, id)?;
                    (map.b0, map.buffer, map.bm - map.b0, ["the rates from B_0 to B_m", "whole packets"])
                }
            };
            let total = buffer - from;
            let terms = match self.buffer {
                None => vec![(names[0], span), (names[1], total.saturating_sub(span))],
                Some(_) => Vec::new(),
            };
            Ok((Account { reserve: from, ..Account::fixed(0, 0, Headroom { terms, total }) }, buffer))
        })?;
        let mut accounts = Vec::with_capacity(of_port.len() * lanes.len());
        for &room in &of_port {
            let account = &rooms[room as usize].0;
            accounts.extend(lanes.iter().map(|l| if l.lossless { account.clone() } else { UNBOUNDED }));
        }
        let lossless = lanes.iter().filter(|l| l.lossless).count() as u64;
        // Lossy priorities share room for one packet at least.
        let rest = if lossless < lanes.len() as u64 { packet.largest().into() } else { 0 };
        let lower = match self.form {
            _ if self.buffer.is_some() => "flow_control.buffer",
            Form::Buffer => "flow_control.b1",
            Form::Time => "flow_control.b0",
        };
        let buffers = (0..topology.nodes.len() as NodeId).map(|node| {
            let ports = &topology.nodes[node as usize].ports;
            let sizes = ports.iter().map(|&p| rooms[of_port[p as usize] as usize].1);
            let taken = sizes.fold(0, u64::saturating_add).saturating_mul(lossless);
            partitioned(cx, topology, node, taken, rest, lower)
        });
        Ok(Some((buffers.collect::<Result<_, _>>()?, accounts)))
    }

    fn params(&self, cx: &mut Setting<'_>, fabric: Fabric<'_>) -> Result<FlowControlParams, Complaint> {
        let topology = fabric.topology;
        // Ports of links come first.
        let links = (0..).zip(&topology.ports).take_while(|&(id, port)| topology.neighbour(id) != port.node);
        let count = links.count();
        let (ladders, maps, of_port) = match self.form {
            Form::Buffer => {
                let (ladders, of_port) =
                    of_kinds(cx, topology, count, |cx, id| ladder(self, topology, cx, id))?;
                (ladders, Vec::new(), of_port)
            }
            Form::Time => {
                let (maps, of_port) = of_kinds(cx, topology, count, |cx, id| map(self, topology, cx, id))?;
                (Vec::new(), maps, of_port)
            }
        };
        Ok(FlowControlParams::Gfc(GfcParams {
            ladders,
            maps,
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

/// The results of `make` for the different links of the first `count` ports, and by port which one it has.
fn of_kinds<T>(
    cx: &Setting<'_>,
    topology: &Topology,
    count: usize,
    make: impl Fn(&Setting<'_>, PortId) -> Result<T, Complaint>,
) -> Result<(Vec<T>, Vec<u32>), Complaint> {
    let mut kinds: BTreeMap<(u64, Time, u64), u32> = BTreeMap::new();
    let mut made = Vec::new();
    let mut of_port = Vec::with_capacity(count);
    for (id, port) in (0..).zip(&topology.ports[..count]) {
        let kind = (port.rate, port.delay, cx.retries_at(id));
        let at = match kinds.get(&kind) {
            Some(&at) => at,
            None => {
                made.push(make(cx, id)?);
                let at = made.len() as u32 - 1;
                kinds.insert(kind, at);
                at
            }
        };
        of_port.push(at);
    }
    Ok((made, of_port))
}

/// The bytes of a written key on the link of a port, and the key's text with them.
fn read(
    key: &str,
    threshold: Option<Threshold>,
    topology: &Topology,
    id: PortId,
) -> Result<Option<(u64, String)>, Complaint> {
    let Some(threshold) = threshold else { return Ok(None) };
    let port = &topology.ports[id as usize];
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
}

/// The map of a port; an error if a packet could be lost.
fn map(keys: &GfcKeys, topology: &Topology, cx: &Setting<'_>, id: PortId) -> Result<Map, Complaint> {
    let port = &topology.ports[id as usize];
    let (facts, response_time) = (cx.facts(topology, id), keys.response_time.0);
    let feedback = feedback(&facts, response_time);
    // The inside of a slow host is no link.
    let written = keys.period.filter(|_| topology.neighbour(id) != port.node);
    if let Some(period) = written {
        check_time("period", period)?;
        // Its bytes are rounded up.
        let least = xoff_kernel::time::serialisation(feedback, port.rate);
        if period.0 < least {
            let message = format!(
                "period = {period} is too short on {}: a rate takes {} to have an effect",
                link(topology, id),
                Span(least)
            );
            return Err(Complaint::of_key("period", message, format!("write {} or more", Span(least))));
        }
    }
    let period = written.map_or_else(|| time::default_period(&facts, response_time), |period| period.0);
    let room = time::room(&facts, period, response_time);
    let (b0, buffer) = (read("b0", keys.b0, topology, id)?, read("buffer", keys.buffer, topology, id)?);
    let from = b0.as_ref().map(|b0| b0.0);
    let (key, bytes) = match &buffer {
        Some((bytes, shown)) => {
            let least = from.unwrap_or(1).saturating_add(room);
            if *bytes < least {
                let (from, lower) = match &b0 {
                    Some((_, b0)) => (format!("from b0 = {b0} on"), ", or lower flow_control.b0"),
                    None => ("beyond b0, which is above 0,".to_string(), ""),
                };
                let message = format!(
                    "buffer = {shown} is too small on {}: {from} its rates need {room} B, or a packet could be lost",
                    link(topology, id)
                );
                return Err(Complaint::of_key("buffer", message, format!("write {least}B or more{lower}")));
            }
            ("buffer", *bytes)
        }
        None => ("b0", from.unwrap_or(feedback).saturating_add(room)),
    };
    if bytes > u32::MAX.into() {
        let message = format!(
            "the buffer of {} has {}, but a frame of form = \"time\" names fewer than 4 GiB",
            link(topology, id),
            Bytes(bytes)
        );
        let key = if b0.is_none() && buffer.is_none() { "form" } else { key };
        return Err(Complaint::of_key(key, message, "lower it, or write form = \"buffer\""));
    }
    // What is left over widens the map if B_0 is written, and otherwise raises B_0.
    let b0 = match (&buffer, from) {
        (Some(_), None) => bytes - room,
        _ => from.unwrap_or(feedback),
    };
    Ok(Map::new(b0, bytes, period, &facts))
}

/// The ladder of a port; an error if a packet could be lost.
fn ladder(keys: &GfcKeys, topology: &Topology, cx: &Setting<'_>, id: PortId) -> Result<Ladder, Complaint> {
    let facts = cx.facts(topology, id);
    let (feedback, room) = (feedback(&facts, keys.response_time.0), least_room(&facts, keys.response_time.0));
    let (b1, buffer) = (read("b1", keys.b1, topology, id)?, read("buffer", keys.buffer, topology, id)?);
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
