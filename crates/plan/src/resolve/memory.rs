//! Memory of devices: buffers, ingress accounts, thresholds and headroom.

use super::{Context, LARGEST, LONGEST, alpha_q16, bifrost, bytes, cbfc, pyrrha, roundabout, swing, zeropod};
use crate::error::Error;
use crate::plan::{Account, Buffer, Lane, Limit, PacketFormat};
use crate::scenario::{self, FlowControl, HeadroomRule, LinkThresholds, Pfc};
use std::borrow::Cow;
use std::collections::BTreeMap;
use xoff_net::topology::{NodeId, NodeKind, Port, PortId, Topology};
use xoff_net::units::{Bandwidth, Bytes, Span, Threshold};
use xoff_schemes::flow_control::pfc::{PfcParams, Relay, headroom, least_quanta};
use xoff_schemes::flow_control::{Headroom, LinkFacts};

/// How far below a dynamic threshold an account resumes, if not given.
const XON_OFFSET: u64 = 3_000;
/// Reserve under a dynamic threshold, if not given.
const RESERVE: u64 = 4_000;
/// Dynamic threshold's share of what is free, if not given.
const ALPHA: f64 = 0.125;

/// An account that nothing is ever charged to, or that is bounded by egress queues only.
pub(super) const UNBOUNDED: Account =
    Account { reserve: 0, limit: Limit::Unlimited, resume: 0, resume_offset: 0, headroom: None, pool: None };

/// Refuses keys of PFC that contradict each other.
pub(super) fn check_pfc(cx: &Context<'_>, pfc: &Pfc, packet: &PacketFormat) -> Result<(), Error> {
    let at = |key: &str| format!("flow_control.{key}");
    if pfc.xoff.is_some() {
        for (key, given) in [("alpha", pfc.alpha.is_some()), ("cap", pfc.cap.is_some())] {
            if given {
                let message = format!(
                    "`{key}` contradicts `xoff`: it belongs to a dynamic threshold, `xoff` is a static one"
                );
                return Err(cx.doc.error(
                    &at(key),
                    message,
                    format!("remove `{key}`, or remove `xoff` and `xon`"),
                ));
            }
        }
        if pfc.xon.is_some() && pfc.xon_offset.is_some() {
            let message = "`xon_offset` contradicts `xon`: both say where to resume";
            return Err(cx.doc.error(&at("xon_offset"), message, "remove one of the two keys"));
        }
    } else if pfc.xon.is_some() {
        let message = "`xon` without `xoff`: a static threshold needs both ends";
        return Err(cx.doc.error(
            &at("xon"),
            message,
            "add `xoff`, or use `xon_offset` with a dynamic threshold",
        ));
    }
    if let Some(alpha) = pfc.alpha {
        alpha_q16(cx, &at("alpha"), alpha)?;
    }
    for (key, value) in [("xon_offset", pfc.xon_offset), ("reserve", pfc.reserve)] {
        if let Some(value) = value.filter(|v| v.0 > LARGEST) {
            let message = format!("{key} = {value} is out of range");
            return Err(cx.doc.error(&at(key), message, format!("{} are the most", Bytes(LARGEST))));
        }
    }
    let headrooms = [
        ("headroom", Some(pfc.headroom)),
        ("long.headroom", pfc.long.and_then(|t| t.headroom)),
        ("gateway.headroom", pfc.gateway.and_then(|t| t.headroom)),
    ];
    for (key, rule) in headrooms {
        if let Some(HeadroomRule::Fixed(value)) = rule
            && value.0 > LARGEST
        {
            let message = format!("a headroom of {value} is out of range");
            return Err(cx.doc.error(&at(key), message, format!("{} are the most", Bytes(LARGEST))));
        }
    }
    if pfc.response_time.0 > LONGEST {
        let message = format!("a response time of {} is out of range", pfc.response_time);
        return Err(cx.doc.error(&at("response_time"), message, format!("{} are the most", Span(LONGEST))));
    }
    if u64::from(pfc.quanta) < least_quanta(packet.largest()) {
        let message = format!("a pause of {} quanta would run out before it can be repeated", pfc.quanta);
        let help = format!(
            "with packets of {}, write {} to 65535",
            bytes(packet.largest().into()),
            least_quanta(packet.largest())
        );
        return Err(cx.doc.error(&at("quanta"), message, help));
    }
    Ok(())
}

/// Names tables of thresholds that rule no link.
pub(super) fn warn_of_unused(cx: &mut Context<'_>, topology: &Topology) {
    let Some(pfc) = cx.scenario.flow_control.pfc() else { return };
    let (long, gateway) = (pfc.long.is_some(), pfc.gateway.is_some());
    let grants = bifrost::chosen(cx).is_some();
    if topology.ports.iter().all(|p| !p.long) {
        for (key, given) in [("long", long), ("gateway", gateway)] {
            if given {
                let message = "had no effect: this topology has no long link".to_string();
                cx.warn(format!("flow_control.{key}"), message);
            }
        }
        if bifrost::chosen(cx).is_some_and(|b| b.keys.links == scenario::BifrostLinks::Long) {
            let message = "grants nothing: this topology has no long link, and all links run PFC";
            cx.warn("flow_control.scheme".to_string(), message.to_string());
        }
    } else if long && topology.relays > 0 {
        let message = "had no effect: under this scheme relays are at both ends of long links";
        cx.warn("flow_control.long".to_string(), message.to_string());
    } else if long && grants {
        let message = "had no effect: long links have no thresholds under this scheme".to_string();
        cx.warn("flow_control.long".to_string(), message);
    }
}

/// PFC's parameters for its state machines.
pub(super) fn params(pfc: &Pfc) -> PfcParams {
    let relay = match pfc.relay {
        scenario::Relay::Accounts => Relay::Accounts,
        scenario::Relay::Blind => Relay::Blind,
    };
    PfcParams { quanta: pfc.quanta, response_time: pfc.response_time.0, relay }
}

/// Buffer of every node and accounts of every port, as the scenario's topology has them.
pub(super) fn build(
    cx: &mut Context<'_>,
    topology: &Topology,
    lanes: &[Lane],
    packet: &PacketFormat,
    relays: Option<&swing::Relays>,
) -> Result<(Vec<Buffer>, Vec<Account>), Error> {
    if let FlowControl::Cbfc(keys) = &cx.scenario.flow_control {
        return cbfc::memory(cx, keys, topology, lanes, packet);
    }
    if let Some(buffers) = zeropod::buffers(cx, topology) {
        return Ok((buffers, vec![UNBOUNDED; topology.ports.len() * lanes.len()]));
    }
    let legacy = pyrrha::legacy(cx, topology)?;
    let pfc = legacy.as_ref().map(|l| &l.pfc).or(cx.scenario.flow_control.pfc());
    let runs_pfc = |id: usize, lane: &Lane| match &legacy {
        Some(legacy) => legacy.link[id],
        None => lane.lossless,
    };
    let apart = apart(cx, topology);
    // Links are few in kind: each kind's account is worked out once.
    let mut kinds: BTreeMap<(u64, u64, Place, bool), Account> = BTreeMap::new();
    let bifrost = bifrost::chosen(cx);
    let mut accounts = Vec::with_capacity(topology.ports.len() * lanes.len());
    for (id, port) in topology.ports.iter().enumerate() {
        let place = match apart[port.node as usize] {
            false => Place::Shared,
            true if port.long => Place::Long,
            true => Place::Gateway,
        };
        let grants = bifrost.filter(|b| bifrost::grants(&b.keys, topology, id as PortId));
        let kind = (port.rate, port.delay, place, grants.is_some());
        for lane in lanes {
            if let Some(relays) = relays.filter(|_| lane.lossless)
                && let Some(account) = relays.account(cx, topology, id as PortId, lanes, packet)?
            {
                accounts.push(account);
                continue;
            }
            accounts.push(match pfc {
                Some(pfc) if runs_pfc(id, lane) => match kinds.get(&kind) {
                    Some(account) => account.clone(),
                    None => {
                        let id = id as PortId;
                        let account = match grants {
                            Some(b) => bifrost::account(cx, b, topology, id, packet)?,
                            None => {
                                let mut account = account(cx, topology, id, port, &place.keys(pfc), packet)?;
                                if let Some(headroom) = &mut account.headroom {
                                    roundabout::spare(cx, port, packet, headroom);
                                }
                                account
                            }
                        };
                        kinds.insert(kind, account.clone());
                        account
                    }
                },
                _ => UNBOUNDED,
            });
        }
    }
    let pools = match bifrost.filter(|_| bifrost::counted(cx)) {
        Some(b) => bifrost::pool(&b.keys, topology, &mut accounts, lanes.len(), packet.largest().into()),
        None => Vec::new(),
    };
    let mut buffers = Vec::with_capacity(topology.nodes.len() + pools.len());
    for node in 0..topology.nodes.len() as NodeId {
        let apart = apart[node as usize];
        buffers.push(match swing::buffer(cx, topology, node, lanes, &accounts, packet) {
            Some(buffer) => buffer,
            None => buffer(cx, topology, node, lanes, &accounts, packet, apart)?,
        });
    }
    for (node, pool) in pools {
        let whole = &mut buffers[node as usize].total;
        *whole = whole.saturating_add(pool.total);
        buffers.push(pool);
    }
    Ok((buffers, accounts))
}

/// Whose ingress an account is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// Of a device that shares its buffer.
    Shared,
    /// Of a long link, at a device that shares none.
    Long,
    /// Of another link there.
    Gateway,
}

impl Place {
    /// The table that has its thresholds.
    fn table(self, pfc: &Pfc) -> Option<&LinkThresholds> {
        match self {
            Self::Shared => None,
            Self::Long => pfc.long.as_ref(),
            Self::Gateway => pfc.gateway.as_ref(),
        }
    }

    /// PFC's keys there. Without a pool to share, all thresholds are static.
    fn keys<'p>(self, pfc: &'p Pfc) -> (Cow<'p, Pfc>, &'static str) {
        if self == Self::Shared {
            return (Cow::Borrowed(pfc), "flow_control");
        }
        let table = self.table(pfc).copied().unwrap_or_default();
        // Where nothing is said, the round trip that keeps the egress busy after a pause.
        let own = pfc.xoff.or(pfc.reserve.map(Threshold::Bytes));
        let round_trip = "2bdp".parse().expect("a threshold");
        let xon = table.xon.or(if table.xoff.is_none() && pfc.xoff.is_some() { pfc.xon } else { None });
        let keys = Pfc {
            xoff: table.xoff.or(own).or(Some(round_trip)),
            xon,
            // A reserve has no resume level of its own.
            xon_offset: if xon.is_some() || own.is_some() && pfc.xoff.is_none() && table.xoff.is_none() {
                Some(Bytes(0))
            } else {
                pfc.xon_offset
            },
            headroom: table.headroom.unwrap_or(pfc.headroom),
            alpha: None,
            cap: None,
            reserve: None,
            ..pfc.clone()
        };
        let path = match self {
            Self::Shared => "flow_control",
            Self::Long => "flow_control.long",
            Self::Gateway => "flow_control.gateway",
        };
        (Cow::Owned(keys), path)
    }
}

/// By device: it shares no buffer, each of its accounts has its own. Those are the ends
/// of long links, where the scenario sets them apart, and whoever grants by slots.
fn apart(cx: &Context<'_>, topology: &Topology) -> Vec<bool> {
    let pfc = cx.scenario.flow_control.pfc();
    let set = pfc.is_some_and(|pfc| pfc.long.is_some() || pfc.gateway.is_some());
    let bifrost = bifrost::chosen(cx);
    let is = |port: PortId| {
        set && topology.is_relay(topology.neighbour(port))
            || (set || bifrost.is_some()) && topology.ports[port as usize].long
            || bifrost.is_some_and(|b| bifrost::grants(&b.keys, topology, port))
    };
    topology.nodes.iter().map(|n| n.ports.iter().any(|&p| is(p))).collect()
}

fn account(
    cx: &Context<'_>,
    topology: &Topology,
    id: PortId,
    port: &Port,
    (pfc, path): &(Cow<'_, Pfc>, &str),
    packet: &PacketFormat,
) -> Result<Account, Error> {
    // Where the table that rules here does not have the key, the scheme's does.
    let at = |key: &str| match format!("{path}.{key}") {
        own if cx.doc.get(&own).is_some() => own,
        _ => format!("flow_control.{key}"),
    };
    let facts = LinkFacts {
        rate: port.rate,
        delay: port.delay,
        largest: packet.largest().max(super::breakers::longest_frame(cx)),
    };
    let headroom = match pfc.headroom {
        HeadroomRule::Auto => headroom(&facts, pfc.response_time.0),
        HeadroomRule::Fixed(Bytes(total)) => Headroom { terms: Vec::new(), total },
    };
    let xon_offset = pfc.xon_offset.map_or(XON_OFFSET, |b| b.0);
    let Some(threshold) = pfc.xoff else {
        return Ok(Account {
            reserve: pfc.reserve.map_or(RESERVE, |b| b.0),
            limit: Limit::Dynamic {
                alpha_q16: alpha_q16(cx, &at("alpha"), pfc.alpha.unwrap_or(ALPHA))?,
                cap: pfc.cap.map_or(u64::MAX, |b| b.0),
            },
            resume: 0,
            resume_offset: xon_offset,
            headroom: Some(headroom),
            pool: None,
        });
    };
    let link =
        format!("the link of {} ({}, {})", topology.port_name(id), Bandwidth(port.rate), Span(port.delay));
    let shown = |t: Threshold, resolved: u64| match t {
        Threshold::Bytes(b) => b.to_string(),
        bdp => format!("{bdp} ({})", bytes(resolved)),
    };
    let xoff = threshold.resolve(port.rate, port.delay);
    if xoff == 0 {
        let message = format!("{} is no threshold on {link}", shown(threshold, xoff));
        return Err(cx.doc.error(
            &at("xoff"),
            message,
            "write bytes above 0; a link without delay has no BDP",
        ));
    }
    let resume = match pfc.xon {
        None if pfc.xon_offset.is_some() && xon_offset > xoff => {
            let message = format!(
                "xon_offset = {} is more than xoff = {} on {link}",
                Bytes(xon_offset),
                shown(threshold, xoff)
            );
            return Err(cx.doc.error(
                &at("xon_offset"),
                message,
                "choose `xon_offset` no larger than `xoff`",
            ));
        }
        None => xoff.saturating_sub(xon_offset),
        Some(t) => {
            let xon = t.resolve(port.rate, port.delay);
            if xon > xoff {
                let message =
                    format!("xon = {} is above xoff = {} on {link}", shown(t, xon), shown(threshold, xoff));
                return Err(cx.doc.error(&at("xon"), message, "choose `xon` no larger than `xoff`"));
            }
            xon
        }
    };
    Ok(Account {
        reserve: pfc.reserve.map_or(0, |b| b.0),
        limit: Limit::Static(xoff),
        resume,
        resume_offset: 0,
        headroom: Some(headroom),
        pool: None,
    })
}

/// Memory of a switch whose size is not given: 32 MB per 100 Gbit/s of its
/// fastest port.
pub(super) fn default_switch(topology: &Topology, node: NodeId) -> u64 {
    let ports = &topology.nodes[node as usize].ports;
    ports.iter().map(|&p| topology.ports[p as usize].rate).max().unwrap_or(0) / 3_125
}

/// An error about a buffer; where its size is not written, what was written of its
/// use is shown, or else the topology.
pub(super) fn at_buffer(cx: &Context<'_>, key: &str, message: String, help: &str) -> Error {
    let taking = [
        "flow_control.headroom",
        "flow_control.response_time",
        "flow_control.reserve",
        "flow_control.buffer",
    ];
    let written = |key: &&str| cx.doc.get(key).is_some();
    let shown = [key].into_iter().chain(taking).find(written).unwrap_or("topology");
    cx.doc.error(shown, message, help).with_key(key)
}

fn buffer(
    cx: &Context<'_>,
    topology: &Topology,
    node: NodeId,
    lanes: &[Lane],
    accounts: &[Account],
    packet: &PacketFormat,
    apart: bool,
) -> Result<Buffer, Error> {
    let n = &topology.nodes[node as usize];
    let (key, total) = match n.kind {
        NodeKind::Host => ("host.buffer", cx.scenario.host.buffer.0),
        NodeKind::Switch => (
            "switch.buffer",
            cx.scenario.switch.buffer.map_or_else(|| default_switch(topology, node), |b| b.0),
        ),
    };
    let largest = u64::from(packet.largest());
    if total > LARGEST {
        let message = format!("a buffer of {} is out of range", Bytes(total));
        return Err(at_buffer(cx, key, message, &format!("{} are the most", Bytes(LARGEST))));
    }
    if total < largest && !n.ports.is_empty() {
        let message = format!("{} of {} hold no packet of {}", bytes(total), n.name, bytes(largest));
        let help = format!("write {key} = \"{largest}B\" or more: a buffer must hold at least one packet");
        return Err(at_buffer(cx, key, message, &help));
    }
    let mine = n.ports.iter().flat_map(|&p| &accounts[p as usize * lanes.len()..][..lanes.len()]);
    let lossless: Vec<(&Account, &Headroom)> =
        mine.filter(|a| a.pool.is_none()).filter_map(|a| a.headroom.as_ref().map(|h| (a, h))).collect();
    if lossless.is_empty() {
        return Ok(Buffer { total, shared: total });
    }
    let count = lossless.len() as u64;
    let sum = |f: &dyn Fn(&(&Account, &Headroom)) -> u64| lossless.iter().map(f).fold(0, u64::saturating_add);
    let headroom = sum(&|(_, h)| h.total);
    let reserve = sum(&|(a, _)| a.reserve);
    let taken = headroom.saturating_add(reserve).saturating_add(count.saturating_mul(largest));
    if apart {
        // As much as they need, and for lossy packets what others have.
        let own = sum(&|(a, _)| match a.limit {
            Limit::Static(xoff) => xoff,
            _ => unreachable!("thresholds are static there"),
        });
        let lossy = if lanes.iter().all(|lane| lane.lossless) { 0 } else { total };
        let shared = own.saturating_add(lossy);
        return Ok(Buffer { total: taken.saturating_add(shared), shared });
    }
    let shared = total.saturating_sub(taken);
    if shared < largest {
        let mut terms: BTreeMap<usize, (&str, u64)> = BTreeMap::new();
        for (_, h) in &lossless {
            for (i, &(name, b)) in h.terms.iter().enumerate() {
                let term = terms.entry(i).or_insert((name, 0));
                term.1 = term.1.saturating_add(b);
            }
        }
        let detail = match terms.is_empty() {
            true => "as set".to_string(),
            false => {
                terms.values().map(|(name, b)| format!("{name} {}", bytes(*b))).collect::<Vec<_>>().join(", ")
            }
        };
        let message = format!(
            "{} has {}, but its {count} lossless ingress accounts take {}: headroom {} ({detail}), reserve {}, \
             one packet each {}",
            n.name,
            bytes(total),
            bytes(taken),
            bytes(headroom),
            bytes(reserve),
            bytes(count * largest),
        );
        let help = format!(
            "raise {key} to {}B or more, use fewer lossless priorities, or set a smaller flow_control.headroom or reserve",
            taken.saturating_add(largest)
        );
        return Err(at_buffer(cx, key, message, &help));
    }
    for (account, _) in &lossless {
        if let Limit::Static(xoff) = account.limit
            && xoff > shared
        {
            let message = format!(
                "a threshold of {} cannot be reached: {} has {} that its accounts share ({} in all)",
                bytes(xoff),
                n.name,
                bytes(shared),
                bytes(total)
            );
            let help = format!("lower `xoff`, or raise {key}");
            return Err(cx.doc.error("flow_control.xoff", message, help));
        }
    }
    Ok(Buffer { total, shared })
}

/// Says where static thresholds add up to more than there is to share.
pub(super) fn warn_of_overcommitment(
    cx: &mut Context<'_>,
    topology: &Topology,
    lanes: usize,
    buffers: &[Buffer],
    accounts: &[Account],
) {
    for (node, buffer) in topology.nodes.iter().zip(buffers) {
        let mine = node.ports.iter().flat_map(|&p| &accounts[p as usize * lanes..][..lanes]);
        let thresholds = mine
            .filter_map(|a| match a.limit {
                Limit::Static(xoff) => Some(xoff),
                _ => None,
            })
            .fold(0, u64::saturating_add);
        if thresholds > buffer.shared {
            let message = format!(
                "the thresholds of {} add up to {}, but its accounts share {}: a full pool can pause before a threshold does",
                node.name,
                bytes(thresholds),
                bytes(buffer.shared)
            );
            cx.warn("flow_control.xoff".to_string(), message);
            return;
        }
    }
}
