//! The deadlock oracle where queues are paused one by one (BFC).
//!
//! A paused queue waits until every packet that was counted against it has left
//! the next device, where these packets lie in queues, some of which are paused
//! themselves. Begin with all paused queues that hold something, and strike out
//! each one against which no packet is counted in a queue of the set: such a
//! queue will be resumed. What is left when nothing more can be struck out (the
//! greatest fixpoint) stands for ever: its counted packets cannot move, and a
//! resume or a new packet that is still under way changes nothing about them.
//!
//! A queue for each flow cannot deadlock: a flow waits for its own queue at the
//! next hop alone, and the last hop is never paused. So only numbered queues
//! are looked at.

use crate::core::Core;
use crate::outcome::{Deadlock, Held, Wait};
use crate::packet::NONE;
use std::collections::{BTreeMap, BTreeSet};
use xoff_kernel::time::Time;
use xoff_schemes::flow_control::Queueing;

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

fn lane_of(core: &Core, leaf: u32) -> u8 {
    ((usize::from(core.leaves.get(leaf).queue) - 1) % core.lanes) as u8
}

/// The packets in a leaf of forwarded packets.
fn packets<'c>(core: &'c Core, leaf: u32) -> impl Iterator<Item = u32> + 'c {
    let mut next = core.queues[core.leaves.list(leaf)].head;
    std::iter::from_fn(move || {
        let id = (next != NONE).then_some(next)?;
        next = core.packets[id].next;
        Some(id)
    })
}

/// The leaf upstream that a packet came from, if it is counted against it.
fn counted_against(core: &Core, id: u32) -> Option<u32> {
    let packet = &core.packets[id];
    // Only what came through a port is counted.
    packet.counted.then(|| {
        let ingress = packet.account / core.lanes as u32;
        core.leaves.numbered(core.ports[ingress as usize].peer, packet.lane, packet.upstream)
    })
}

/// The greatest fixpoint; with `stalls` a host that has stopped reading holds
/// what waits for it.
fn stuck(core: &Core, stalls: bool) -> Stuck {
    if !matches!(core.leaves.queueing, Queueing::Numbered { .. }) {
        return Stuck::new();
    }
    let filled = |leaf: u32| core.queues[core.leaves.list(leaf)].head != NONE;
    let mut set: Stuck = core
        .observed
        .open
        .iter()
        .filter_map(|&pause| {
            let pause = &core.observed.pauses[pause as usize];
            Some(core.leaves.numbered(pause.port, pause.lane, pause.queue? as u16))
        })
        .filter(|&leaf| filled(leaf))
        .map(|leaf| (leaf, Vec::new()))
        .collect();
    let forwarded = |leaf: u32| usize::from(core.leaves.get(leaf).queue) <= core.lanes;
    let mut holders: Vec<(u32, bool)> = set.keys().filter(|&&l| forwarded(l)).map(|&l| (l, false)).collect();
    if stalls {
        let stalled =
            core.plan.receivers.iter().map(|r| r.rx).filter(|&rx| core.ports[rx as usize].paused != 0);
        for rx in stalled {
            let leaves = (0..core.leaves.len() as u32).filter(|&l| core.leaves.get(l).port == rx);
            holders.extend(leaves.filter(|&l| forwarded(l) && filled(l)).map(|l| (l, true)));
        }
    }
    for (by, stalled) in holders {
        let mut bytes: BTreeMap<u32, u64> = BTreeMap::new();
        for id in packets(core, by) {
            if let Some(upstream) = counted_against(core, id) {
                *bytes.entry(upstream).or_default() += u64::from(core.packets[id].size);
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
        set.retain(|_, holds| !holds.is_empty());
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

fn since(core: &Core, leaf: u32) -> Time {
    core.observed.pauses[core.leaves.get(leaf).standing as usize].from
}

fn ingress_of(core: &Core, leaf: u32) -> u32 {
    core.ports[core.leaves.get(leaf).port as usize].peer
}

/// Looks for a deadlock at time `now`.
pub fn look(core: &Core, now: Time) -> Option<Deadlock> {
    let set = stuck(core, false);
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
            let flows: BTreeSet<u32> = packets(core, by)
                .filter(|&id| counted_against(core, id) == Some(member))
                .map(|id| core.packets[id].flow)
                .collect();
            let bytes = core.queues[core.leaves.list(by)].bytes;
            Held {
                port: core.leaves.get(by).port,
                lane: lane_of(core, by),
                bytes,
                flows: flows.into_iter().collect(),
            }
        })
        .collect();
    let stuck: BTreeSet<(u32, u8)> = set.keys().map(|&l| (ingress_of(core, l), lane_of(core, l))).collect();
    Some(Deadlock {
        closed: members.iter().map(|&l| since(core, l)).max().unwrap_or(now),
        seen: now,
        cycle,
        stuck: stuck.into_iter().collect(),
    })
}

/// Who waits for whom and will not move.
pub fn waiting(core: &Core) -> Vec<Wait> {
    let set = stuck(core, true);
    set.keys()
        .map(|&leaf| {
            let mut seen = BTreeSet::new();
            let mut at = leaf;
            let root = loop {
                let hold = set[&at][0];
                if hold.stalled {
                    break Some(core.ports[core.leaves.get(hold.by).port as usize].node);
                }
                if !seen.insert(at) {
                    break None;
                }
                at = hold.by;
            };
            Wait {
                port: core.leaves.get(leaf).port,
                lane: lane_of(core, leaf),
                bytes: core.queues[core.leaves.list(leaf)].bytes,
                since: since(core, leaf),
                waits_for: ingress_of(core, leaf),
                root,
            }
        })
        .collect()
}
