//! The deadlock oracle where queues are paused one by one (BFC, PortFC).
//!
//! A paused queue waits until every packet that was counted against it has left
//! the next device, where these packets lie in queues, some of which are paused
//! themselves. Begin with all paused queues that hold something, and strike out
//! each one against which no packet is counted in a queue of the set: such a
//! queue will be resumed. What is left when nothing more can be struck out (the
//! greatest fixpoint) stands for ever: its counted packets cannot move, and a
//! resume or a new packet that is still under way changes nothing about them.
//!
//! Under PortFC a paused queue waits until the queues of the port that has paused
//! it hold no more than X_on: it is struck out where those of them that are not in
//! the set suffice.
//!
//! A queue for each flow cannot deadlock on a route without a loop: a flow waits for its own queue at the
//! next hop alone, and the last hop is never paused. So only numbered queues
//! are looked at.

use crate::leaves::Leaf;
use crate::outcome::{Deadlock, Held, Wait};
use crate::packet::{NONE, Packet};
use crate::port::Queue;
use crate::world::World;
use std::collections::{BTreeMap, BTreeSet};
use xoff_kernel::time::Time;
use xoff_schemes::flow_control::portfc::PortFcParams;
use xoff_schemes::flow_control::portfc::map::Role;
use xoff_schemes::flow_control::{FlowControlParams, Queueing};

/// Packets in one leaf that are counted against another.
#[derive(Clone, Copy)]
struct Hold {
    /// The leaf that they lie in.
    by: u32,
    bytes: u64,
    /// That leaf belongs to a host that has stopped reading.
    stalled: bool,
}

/// The leaves that stand for ever, each with what holds it.
type Stuck = BTreeMap<u32, Vec<Hold>>;

/// A leaf, where it lives.
fn leaf_of<'w>(world: &World<'w, '_>, leaf: u32) -> &'w Leaf {
    let port = world.cores[0].leaves.get(leaf).port;
    world.home_of_port(port).leaves.get(leaf)
}

/// The list of a leaf.
fn list<'w>(world: &World<'w, '_>, leaf: u32) -> &'w Queue {
    let core = world.home_of_port(leaf_of(world, leaf).port);
    &core.queues[core.leaves.list(leaf)]
}

fn lane_of(world: &World, leaf: u32) -> u8 {
    ((u32::from(leaf_of(world, leaf).queue) - 1) % world.lanes()) as u8
}

/// The packets in a leaf of forwarded packets.
fn packets<'w>(world: &World<'w, '_>, leaf: u32) -> impl Iterator<Item = &'w Packet> + use<'w> {
    let packets = &world.home_of_port(leaf_of(world, leaf).port).packets;
    let mut next = list(world, leaf).head;
    std::iter::from_fn(move || {
        let packet = (next != NONE).then(|| &packets[next])?;
        next = packet.next;
        Some(packet)
    })
}

/// The leaf upstream that a packet came from, if it is counted against it.
fn counted_against(world: &World, packet: &Packet) -> Option<u32> {
    // Only what came through a port is counted.
    packet.counted().then(|| {
        let ingress = packet.account / world.lanes();
        let upstream = world.plan.topology.ports[ingress as usize].peer;
        world.cores[0].leaves.numbered(upstream, packet.lane, packet.upstream())
    })
}

/// Under PortFC: the queues of the port that has paused a leaf, and what they may
/// hold when it is resumed.
fn pausers(world: &World, portfc: &PortFcParams, leaf: u32) -> Option<(Vec<u32>, u64)> {
    let leaves = &world.cores[0].leaves;
    let (map, port) = (&portfc.map, leaf_of(world, leaf).port);
    let queue = leaves.number(leaf, portfc.lane);
    let congested = map.leads_to(port, queue)?;
    let (set, xon) = match map.role(port, queue) {
        Role::FourHop => (0..map.n - 1, &portfc.xon),
        _ => (map.n - 1..map.n, &portfc.ddq_xon),
    };
    let set = set.map(|queue| leaves.numbered(congested, portfc.lane, queue)).collect();
    Some((set, xon[congested as usize]))
}

/// The greatest fixpoint; with `stalls` a host that has stopped reading holds
/// what waits for it.
fn stuck(world: &World, stalls: bool) -> Stuck {
    if !matches!(world.cores[0].leaves.queueing, Queueing::Numbered { .. }) {
        return Stuck::new();
    }
    let filled = |leaf: u32| list(world, leaf).head != NONE;
    let mut set: Stuck = world
        .cores
        .iter()
        .flat_map(|core| core.observed.open.iter().map(|&pause| &core.observed.pauses[pause as usize]))
        .filter_map(|pause| Some(world.cores[0].leaves.numbered(pause.port, pause.lane, pause.queue? as u16)))
        .filter(|&leaf| filled(leaf))
        .map(|leaf| (leaf, Vec::new()))
        .collect();
    // What those that hold a leaf may keep when it goes on: nothing, but under PortFC.
    let mut kept: BTreeMap<u32, u64> = BTreeMap::new();
    let portfc = match &world.plan.flow_control {
        FlowControlParams::PortFc(portfc) => Some(portfc),
        _ => None,
    };
    if let Some(portfc) = portfc {
        let members: BTreeSet<u32> = set.keys().copied().collect();
        for (&leaf, holds) in &mut set {
            let Some((pausers, xon)) = pausers(world, portfc, leaf) else { continue };
            kept.insert(leaf, xon);
            let held = pausers.into_iter().filter(|by| members.contains(by));
            holds.extend(held.map(|by| Hold { by, bytes: list(world, by).bytes, stalled: false }));
        }
    }
    let forwarded = |leaf: u32| u32::from(leaf_of(world, leaf).queue) <= world.lanes();
    let mut holders: Vec<(u32, bool)> = set.keys().filter(|&&l| forwarded(l)).map(|&l| (l, false)).collect();
    if stalls {
        let stalled = world.plan.receivers.iter().map(|r| r.rx).filter(|&rx| world.port(rx).paused != 0);
        for rx in stalled {
            let leaves = (0..world.cores[0].leaves.len() as u32).filter(|&l| leaf_of(world, l).port == rx);
            holders.extend(leaves.filter(|&l| forwarded(l) && filled(l)).map(|l| (l, true)));
        }
    }
    for (by, stalled) in holders.into_iter().filter(|_| portfc.is_none()) {
        let mut bytes: BTreeMap<u32, u64> = BTreeMap::new();
        for packet in packets(world, by) {
            if let Some(upstream) = counted_against(world, packet) {
                *bytes.entry(upstream).or_default() += u64::from(packet.size);
            }
        }
        for (upstream, bytes) in bytes {
            if let Some(holds) = set.get_mut(&upstream) {
                holds.push(Hold { by, bytes, stalled });
            }
        }
    }
    loop {
        let members: BTreeSet<u32> = set.keys().copied().collect();
        for holds in set.values_mut() {
            holds.retain(|h| h.stalled || members.contains(&h.by));
        }
        set.retain(|leaf, holds| {
            holds.iter().map(|h| h.bytes).sum::<u64>() > kept.get(leaf).copied().unwrap_or(0)
        });
        if set.len() == members.len() {
            break;
        }
    }
    for holds in set.values_mut() {
        // What holds most comes first; the leaf's number decides ties.
        holds.sort_by_key(|h| (std::cmp::Reverse(h.bytes), h.by));
    }
    set
}

fn since(world: &World, leaf: u32) -> Time {
    let leaf = leaf_of(world, leaf);
    world.home_of_port(leaf.port).observed.pauses[leaf.standing as usize].from
}

fn ingress_of(world: &World, leaf: u32) -> u32 {
    world.port(leaf_of(world, leaf).port).peer
}

/// Looks for a deadlock at time `now`.
pub fn look(world: &World, now: Time) -> Option<Deadlock> {
    let set = stuck(world, false);
    // From any member, what holds most of it, and so on, runs into a cycle.
    let mut order = Vec::new();
    let mut leaf = *set.keys().next()?;
    while !order.contains(&leaf) {
        order.push(leaf);
        leaf = set[&leaf][0].by;
    }
    let start = order.iter().position(|&l| l == leaf).unwrap_or(0);
    let members = &order[start..];
    let cycle = members
        .iter()
        .map(|&member| {
            let by = set[&member][0].by;
            let all = matches!(world.plan.flow_control, FlowControlParams::PortFc(_));
            let flows: BTreeSet<u32> = packets(world, by)
                .filter(|packet| all || counted_against(world, packet) == Some(member))
                .map(|packet| packet.flow)
                .collect();
            let bytes = list(world, by).bytes;
            Held {
                port: leaf_of(world, by).port,
                lane: lane_of(world, by),
                bytes,
                flows: flows.into_iter().collect(),
            }
        })
        .collect();
    let stuck: BTreeSet<(u32, u8)> = set.keys().map(|&l| (ingress_of(world, l), lane_of(world, l))).collect();
    Some(Deadlock {
        closed: members.iter().map(|&l| since(world, l)).max().unwrap_or(now),
        seen: now,
        ended: None,
        cycle,
        stuck: stuck.into_iter().collect(),
    })
}

/// Who waits for whom and will not move.
pub fn waiting(world: &World) -> Vec<Wait> {
    let set = stuck(world, true);
    set.keys()
        .map(|&leaf| {
            let mut seen = BTreeSet::new();
            let mut at = leaf;
            let root = loop {
                let hold = set[&at][0];
                if hold.stalled {
                    break Some(world.port(leaf_of(world, hold.by).port).node);
                }
                if !seen.insert(at) {
                    break None;
                }
                at = hold.by;
            };
            Wait {
                port: leaf_of(world, leaf).port,
                lane: lane_of(world, leaf),
                bytes: list(world, leaf).bytes,
                since: since(world, leaf),
                waits_for: ingress_of(world, leaf),
                root,
            }
        })
        .collect()
}
