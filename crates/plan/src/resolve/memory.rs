//! Memory of devices: buffers, ingress accounts, thresholds and headroom.

use super::{Context, LARGEST, LARGEST_ALLOWED, bytes, pods};
use crate::error::Error;
use crate::plan::{Account, Buffer, Lane, Limit};
use std::collections::BTreeMap;
use xoff_net::topology::{NodeId, NodeKind, PortId, Topology};
use xoff_net::units::Bytes;
use xoff_schemes::flow_control::Headroom;
use xoff_schemes::flow_control::fabric::{Memory, UNBOUNDED, at_buffer, default_switch};
use xoff_schemes::flow_control::keys::{Complaint, Keys, Setting};
use xoff_schemes::flow_control::pfc::keys::Place;

/// Buffer of every node and accounts of every port, as the scenario's topology has them.
pub(super) fn build(cx: &mut Context<'_>, topology: &Topology, lanes: &[Lane]) -> Result<Memory, Error> {
    if let Some(buffers) = pods::buffers(cx, topology)? {
        return Ok((buffers, vec![UNBOUNDED; topology.ports.len() * lanes.len()]));
    }
    cx.ask(|keys, cx| match keys.memory(cx, topology, lanes)? {
        Some(whole) => Ok(whole),
        None => lay_out(&**keys, cx, topology, lanes),
    })
}

/// Buffers and accounts of PFC, and their replacements by the flow control.
fn lay_out(
    keys: &dyn Keys,
    cx: &mut Setting<'_>,
    topology: &Topology,
    lanes: &[Lane],
) -> Result<Memory, Complaint> {
    let links = keys.pfc_links(cx, topology)?;
    let pfc = links.as_ref().map(|(pfc, _)| pfc).or(keys.pfc());
    let runs_pfc = |id: usize, lane: &Lane| match &links {
        Some((_, runs)) => runs[id],
        None => lane.lossless,
    };
    let apart = apart(keys, topology);
    // Links are few in kind: each kind's account is worked out once.
    let mut kinds: BTreeMap<(u64, u64, u64, Place), Account> = BTreeMap::new();
    let mut accounts = Vec::with_capacity(topology.ports.len() * lanes.len());
    for (id, port) in topology.ports.iter().enumerate() {
        let place = match apart[port.node as usize] {
            false => Place::Shared,
            true if port.long => Place::Long,
            true => Place::Gateway,
        };
        let kind = (port.rate, port.delay, cx.retries_at(id as PortId), place);
        for lane in lanes {
            let own = match lane.lossless {
                true => keys.account(cx, topology, id as PortId, lanes)?,
                false => None,
            };
            accounts.push(match (own, pfc) {
                (Some(account), _) => account,
                (None, Some(pfc)) if runs_pfc(id, lane) => match kinds.get(&kind) {
                    Some(account) => account.clone(),
                    None => {
                        let frame = keys.longest_frame();
                        let mut account = pfc.account(cx, topology, id as PortId, place, frame)?;
                        if let Some(headroom) = &mut account.headroom {
                            keys.spare(cx, port, headroom);
                        }
                        kinds.insert(kind, account.clone());
                        account
                    }
                },
                _ => UNBOUNDED,
            });
        }
    }
    if let Some(bytes) = without_retries(cx, &accounts, lanes.len()) {
        let message = format!(
            "memory that the scenario sets for packets after a pause does not grow for retries: packets can be lost \
             unless it has {bytes} B for them"
        );
        cx.warn("link_layer.scheme".into(), message);
    }
    let pools = keys.pool(cx, topology, &mut accounts, lanes.len());
    let mut buffers = Vec::with_capacity(topology.nodes.len() + pools.len());
    for node in 0..topology.nodes.len() as NodeId {
        buffers.push(match keys.buffer(cx, topology, node, lanes, &accounts)? {
            Some(buffer) => buffer,
            None => buffer(cx, topology, node, lanes, &accounts, apart[node as usize])?,
        });
    }
    for (node, pool) in pools {
        let whole = &mut buffers[node as usize].total;
        *whole = whole.saturating_add(pool.total);
        buffers.push(pool);
    }
    Ok((buffers, accounts))
}

/// The most bytes that a link layer sends after a pause into a headroom that the scenario sets.
fn without_retries(cx: &Setting<'_>, accounts: &[Account], lanes: usize) -> Option<u64> {
    let is_set = |account: &Account| account.headroom.as_ref().is_some_and(|room| room.terms.is_empty());
    let set =
        cx.retries.iter().zip(accounts.chunks(lanes)).filter(|(_, accounts)| accounts.iter().any(is_set));
    set.map(|(&bytes, _)| bytes).max()
}

/// By device: whether it shares no buffer, and each of its accounts has its own. Such devices are the ends of
/// long links, if the scenario separates them, and devices that the flow control separates. `long` has no
/// effect where relays are in the long links.
fn apart(keys: &dyn Keys, topology: &Topology) -> Vec<bool> {
    let set =
        keys.pfc().is_some_and(|pfc| pfc.gateway.is_some() || (pfc.long.is_some() && topology.relays == 0));
    let is = |port: PortId| {
        set && (topology.is_relay(topology.neighbour(port)) || topology.ports[port as usize].long)
            || keys.sets_apart(topology, port)
    };
    topology.nodes.iter().map(|n| n.ports.iter().any(|&p| is(p))).collect()
}

fn buffer(
    cx: &Setting<'_>,
    topology: &Topology,
    node: NodeId,
    lanes: &[Lane],
    accounts: &[Account],
    apart: bool,
) -> Result<Buffer, Complaint> {
    let n = &topology.nodes[node as usize];
    let (key, total) = match n.kind {
        NodeKind::Host => ("host.buffer", cx.host_buffer),
        NodeKind::Switch => {
            ("switch.buffer", cx.switch_buffer.unwrap_or_else(|| default_switch(topology, node)))
        }
    };
    let largest = u64::from(cx.packet.largest());
    if total > LARGEST {
        let message = format!("a buffer of {} is out of range", Bytes(total));
        return Err(at_buffer(cx, key, message, LARGEST_ALLOWED));
    }
    if total < largest && !n.ports.is_empty() {
        let message = format!(
            "the buffer of {} is {} and cannot hold one packet of {}",
            n.name,
            bytes(total),
            bytes(largest)
        );
        let help = format!("write {key} = \"{largest}B\" or more");
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
        // As much as they need, and for lossy packets as much as the others have.
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
            true => "as written".to_string(),
            false => {
                terms.values().map(|(name, b)| format!("{name} {}", bytes(*b))).collect::<Vec<_>>().join(", ")
            }
        };
        let message = format!(
            "the buffer of {} is {}, but its lossless ingress accounts ({count}) need {}: {} of headroom, {} of reserves and \
             {} for a packet each. The headroom is {detail}",
            n.name,
            bytes(total),
            bytes(taken),
            bytes(headroom),
            bytes(reserve),
            bytes(count * largest),
        );
        let help = format!(
            "raise {key} to {}B or more, use fewer lossless priorities, or lower flow_control.headroom or flow_control.reserve",
            taken.saturating_add(largest)
        );
        return Err(at_buffer(cx, key, message, &help));
    }
    for (account, _) in &lossless {
        if let Limit::Static(xoff) = account.limit
            && xoff > shared
        {
            let message = format!(
                "a threshold of {} cannot be reached: the ingress accounts of {} share {} of its {}",
                bytes(xoff),
                n.name,
                bytes(shared),
                bytes(total)
            );
            return Err(Complaint::new(
                "flow_control.xoff",
                message,
                format!("lower `xoff`, or raise {key}"),
            ));
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
                "the thresholds of {} add up to {}, but its ingress accounts share {}: a full pool can cause a pause below the threshold",
                node.name,
                bytes(thresholds),
                bytes(buffer.shared)
            );
            cx.warn("flow_control.xoff", message);
            return;
        }
    }
}
