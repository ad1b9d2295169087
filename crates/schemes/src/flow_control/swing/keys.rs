//! `[flow_control]` of SWING.

use super::super::fabric::{Account, Buffer, Fabric, Lane, Limit};
use super::super::keys::{Complaint, Keys, OnPfc, Setting, at_most, bytes, default_keys, defaults, time};
use super::super::pfc::keys::{PfcKeys, Relay};
use super::super::pfc::{self, PfcParams, headroom};
use super::super::{FlowControlParams, Headroom};
use super::{SwingParams, THRESHOLD, hold, memory, xon};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::topology::{NodeId, PortId, Topology};
use xoff_net::units::{Bytes, Span};

/// SWING: keys of its relays, and those of PFC on all other links.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Swing")]
pub struct SwingKeys {
    /// Buffer of a relay for packets from its long link, for each lossless priority. Default: PFC's
    /// headroom of the long link (a round trip, the response time, packets) plus two largest
    /// packets; twice that headroom if several lossless priorities carry data.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: PFC's headroom of the long link, twice if several lossless priorities have data, + two largest packets"))]
    pub relay_buffer: Option<Bytes>,
    /// A relay pauses its peer by itself while it holds this much from its long link. Default:
    /// `relay_buffer`, which forwarded pauses keep it below; if several lossless priorities carry
    /// data, PFC's headroom of the long link below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: `relay_buffer`, less PFC's headroom of the long link if several lossless priorities have data"))]
    pub relay_limit: Option<Bytes>,
    /// XOFF threshold between a relay and its switch: each of the two pauses the other when it
    /// holds this much from it. Default: 198 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = Bytes(THRESHOLD)))]
    pub relay_xoff: Option<Bytes>,
    /// XON threshold between a relay and its switch. Default: 16 largest packets below
    /// `relay_xoff`, or half of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: `relay_xoff` − 16 largest packets, at least `relay_xoff` / 2"))]
    pub relay_xon: Option<Bytes>,
    /// Thresholds at the switch's end of the cable to its relay.
    #[serde(default, skip_serializing_if = "SwitchSide::is_default")]
    #[schemars(extend("default" = SwitchSide::default()))]
    pub switch_side: SwitchSide,
    /// Delay of the cable between a relay and its switch. The cable has the rate of the long link.
    #[serde(default = "defaults::zero_time")]
    pub relay_delay: Span,
}

/// When a switch pauses the relay beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchSide {
    /// The relay's thresholds, `relay_xoff` and `relay_xon`.
    #[default]
    Relay,
    /// The switch's PFC thresholds, as for its other neighbours.
    Pfc,
}

impl SwitchSide {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

default_keys!(SwingKeys);

impl Keys for OnPfc<SwingKeys> {
    fn pfc(&self) -> Option<&PfcKeys> {
        Some(&self.pfc)
    }

    fn check(&self, cx: &mut Setting<'_>) -> Result<(), Complaint> {
        let keys = &self.keys;
        at_most("relay_buffer", keys.relay_buffer)?;
        at_most("relay_limit", keys.relay_limit)?;
        at_most("relay_xoff", keys.relay_xoff)?;
        at_most("relay_xon", keys.relay_xon)?;
        time("relay_delay", keys.relay_delay)?;
        let (xoff, xon) = self.thresholds(cx.packet.largest());
        if xoff == 0 {
            let message = "relay_xoff = 0 is out of range: every packet would cause a pause";
            return Err(Complaint::of_key("relay_xoff", message, "write a size above 0, such as \"198KiB\""));
        }
        if xon > xoff {
            let message = format!("relay_xon = {} is above relay_xoff = {}", Bytes(xon), Bytes(xoff));
            let help = "choose `relay_xon` no larger than `relay_xoff`";
            return Err(Complaint::of_key("relay_xon", message, help));
        }
        if self.pfc.relay == Relay::Blind {
            let message = "incompatible with `swing`: its relays forward pauses, its hosts do not";
            return Err(Complaint::of_key("relay", message, "remove the key"));
        }
        Ok(())
    }

    /// Puts relays into the long links.
    fn extend(&self, topology: &mut Topology) -> Result<(), Complaint> {
        if topology.ports.iter().all(|p| !p.long) {
            let message = "`swing` requires long links, and this topology has none";
            let help = "choose topology.kind = \"dci\", write long = true for a link of a custom topology, or choose scheme = \"pfc\"";
            return Err(Complaint::of_key("scheme", message, help));
        }
        if topology.relay_hosts {
            let message = "`swing` is not defined for topologies whose hosts relay";
            let help = "choose another topology, or scheme = \"pfc\"";
            return Err(Complaint::of_key("scheme", message, help));
        }
        topology.insert_relays(self.keys.relay_delay.0).map_err(|name| {
            let message = format!("the name `{name}` is reserved for a relay of `swing`");
            Complaint::new("topology", message, "rename the node")
        })
    }

    fn account(
        &self,
        cx: &Setting<'_>,
        topology: &Topology,
        port: PortId,
        lanes: &[Lane],
    ) -> Result<Option<Account>, Complaint> {
        let p = &topology.ports[port as usize];
        let beside_relay = topology.is_relay(topology.neighbour(port));
        if !topology.is_relay(p.node) && (!beside_relay || self.keys.switch_side == SwitchSide::Pfc) {
            return Ok(None);
        }
        if !p.long {
            let (xoff, xon) = self.thresholds(cx.packet.largest());
            let room = headroom(&cx.facts(topology, port), self.pfc.response_time.0);
            return Ok(Some(Account::fixed(xoff, xon, room)));
        }
        let Depth { buffer, limit, .. } = self.depth(cx, topology, port, lanes)?;
        let total = buffer - limit;
        let is_set = self.keys.relay_buffer.is_some() || self.keys.relay_limit.is_some();
        let terms = if is_set { Vec::new() } else { vec![("after the relay's own pause", total)] };
        let room = Headroom { terms, total };
        Ok(Some(Account::fixed(limit, limit, room)))
    }

    /// The memory of a relay: the grants of its accounts, and a packet for each; for a lossy priority the
    /// same as between relay and switch.
    fn buffer(
        &self,
        cx: &Setting<'_>,
        topology: &Topology,
        node: NodeId,
        lanes: &[Lane],
        accounts: &[Account],
    ) -> Result<Option<Buffer>, Complaint> {
        if !topology.is_relay(node) {
            return Ok(None);
        }
        let (mut total, mut shared) = (0u64, 0u64);
        for &port in &topology.nodes[node as usize].ports {
            for account in &accounts[port as usize * lanes.len()..][..lanes.len()] {
                let (xoff, headroom) = match (&account.headroom, account.limit) {
                    (Some(headroom), Limit::Static(xoff)) => (xoff, headroom.total),
                    _ => (self.thresholds(cx.packet.largest()).0, 0),
                };
                // The packet that crosses a threshold.
                let pool = xoff.saturating_add(cx.packet.largest().into());
                shared = shared.saturating_add(pool);
                total = total.saturating_add(pool).saturating_add(headroom);
            }
        }
        Ok(Some(Buffer { total, shared }))
    }

    /// Warns where a relay may drop packets: less deep than a round trip, or with too little headroom.
    fn check_links(
        &self,
        cx: &mut Setting<'_>,
        topology: &Topology,
        lanes: &[Lane],
    ) -> Result<(), Complaint> {
        for port in (0..topology.ports.len() as PortId).filter(|&p| topology.ports[p as usize].long) {
            let Depth { buffer, limit, several, room, least } = self.depth(cx, topology, port, lanes)?;
            let mirrored = !several && buffer >= least && limit >= least;
            if buffer - limit >= room || mirrored {
                continue;
            }
            let name = topology.port_name(port);
            let key = if several || buffer < least { "relay_buffer" } else { "relay_limit" };
            let rest = bytes(buffer - limit);
            let [buffer_shown, limit, room, least_shown] = [buffer, limit, room, least].map(bytes);
            let why = if several {
                format!(
                    "with several data priorities {name} needs {room} of headroom above `relay_limit`, but has {rest}"
                )
            } else if buffer < least {
                format!(
                    "its relays have {buffer_shown}, less than {least_shown} for a round trip of {name} and its packets"
                )
            } else {
                format!(
                    "{name} pauses by itself at {limit}, less than a round trip and its packets ({least_shown}), with \
                     less than the headroom ({room}) above"
                )
            };
            cx.warn(format!("flow_control.{key}"), format!("relays may drop packets: {why}"));
            break;
        }
        Ok(())
    }

    /// Relays hold back the end of a pause by the longest time of all long links.
    fn params(&self, cx: &mut Setting<'_>, fabric: Fabric<'_>) -> Result<FlowControlParams, Complaint> {
        let long = fabric.topology.ports.iter().filter(|p| p.long);
        let hold = long.map(|p| hold(&cx.packet.facts(p, 0))).max().unwrap_or(0);
        let pfc = PfcParams { relay: pfc::Relay::Mirror { hold }, ..self.pfc.params() };
        Ok(FlowControlParams::Swing(SwingParams { pfc }))
    }
}

impl OnPfc<SwingKeys> {
    /// XOFF and XON between a relay and its switch.
    fn thresholds(&self, largest: u32) -> (u64, u64) {
        let xoff = self.keys.relay_xoff.map_or(THRESHOLD, |b| b.0);
        (xoff, self.keys.relay_xon.map_or_else(|| xon(xoff, largest), |b| b.0))
    }

    /// The depth of a relay for arrivals over its long link at `port`.
    fn depth(
        &self,
        cx: &Setting<'_>,
        topology: &Topology,
        port: PortId,
        lanes: &[Lane],
    ) -> Result<Depth, Complaint> {
        let link = cx.facts(topology, port);
        let response = self.pfc.response_time.0;
        let room = headroom(&link, response);
        let least = memory(&link, response);
        let several = lanes.iter().filter(|l| l.lossless && cx.data.contains(&l.priority)).count() > 1;
        let default = if several { least.total + room.total } else { least.total };
        let buffer = self.keys.relay_buffer.map_or(default, |b| b.0);
        let largest = u64::from(cx.packet.largest());
        let limit = match self.keys.relay_limit {
            Some(limit) => limit.0,
            None if several => buffer.saturating_sub(room.total),
            None => buffer,
        };
        if limit < largest {
            let (key, value) = match self.keys.relay_limit {
                Some(_) => ("relay_limit", bytes(limit)),
                None => ("relay_buffer", bytes(buffer)),
            };
            let message = if self.keys.relay_limit.is_none() && several {
                let (taken, name) = (bytes(room.total), topology.port_name(port));
                format!("{key} = {value} is too small: the headroom takes {taken} on the link of {name}")
            } else {
                format!("{key} = {value} is smaller than one packet")
            };
            // Of a buffer less than the default, which is lossless, a relay warns.
            let help = match self.keys.relay_limit {
                Some(_) => format!("write {} to {}", bytes(largest), bytes(buffer)),
                None => format!("write more, or remove the key: the default is {}", bytes(default)),
            };
            return Err(Complaint::of_key(key, message, help));
        }
        if limit > buffer {
            let message = format!("relay_limit = {} is above relay_buffer = {}", bytes(limit), bytes(buffer));
            let help = "write `relay_limit` no larger than `relay_buffer`";
            return Err(Complaint::of_key("relay_limit", message, help));
        }
        Ok(Depth { buffer, limit, several, room: room.total, least: least.total })
    }
}

/// How deep a relay is for one lossless priority, in bytes.
struct Depth {
    buffer: u64,
    /// Where it pauses its peer of its own accord.
    limit: u64,
    /// There are several lossless priorities of data.
    several: bool,
    /// The bytes that can arrive after a pause: PFC's headroom of the long link.
    room: u64,
    /// The bytes that one priority's mirrored stops can leave here.
    least: u64,
}
