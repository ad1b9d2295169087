//! The deadlock oracle. It sees everything and changes nothing.
//!
//! An ingress account that is over its threshold has paused its upstream queue.
//! It resumes only when enough of its packets have left, and they lie in egress
//! queues of its device, some of which are paused by accounts further on. Let
//! everything that can drain drain: begin with all accounts whose pause stands
//! and has settled, and strike out each one whose packets outside of queues that
//! are paused by accounts of the set suffice to bring it to its resume level.
//! What is left when nothing more can be struck out (the greatest fixpoint) can
//! never resume: it is deadlocked. A cycle of pauses that still drains is struck
//! out entirely.
//!
//! Where queues are paused one by one, [`deadlock_by_flow`] does the same.

use crate::core::Core;
use crate::deadlock_by_flow;
use crate::outcome::{Deadlock, Held, Wait};
use crate::packet::NONE;
use std::collections::{BTreeMap, BTreeSet};
use xoff_kernel::time::{Time, serialisation};

/// Bytes of one account in a queue that another account (or a stalled host) holds.
#[derive(Clone, Copy)]
struct Hold {
    /// The egress port of the queue.
    port: u32,
    bytes: u64,
    /// The account whose pause stops it; [`NONE`] for a stalled host's own reading.
    by: u32,
}

/// The accounts that can never resume, each with what holds its bytes.
type Stuck = BTreeMap<u32, Vec<Hold>>;

/// Whether an account's pause has reached its upstream and nothing that was
/// under way then can still arrive.
fn settled(core: &Core, account: u32, since: Time, now: Time) -> bool {
    let (port, lane) = (account / core.lanes as u32, (account % core.lanes as u32) as u8);
    let link = &core.plan.topology.ports[port as usize];
    core.observed.standing(link.peer, lane).is_some_and(|pause| {
        let last = serialisation(u64::from(core.plan.packet.largest()), link.rate) + link.delay;
        pause.from >= since && now >= pause.from + last
    })
}

/// What each account that was over held at the last look. A deadlocked account
/// neither gets nor gives, so only those that still hold the same are examined.
pub type Snapshot = BTreeMap<u32, u64>;

/// Takes a snapshot of the accounts that are over.
pub fn snapshot(core: &Core) -> Snapshot {
    let held = |account: u32| core.accounts[account as usize].held();
    core.observed.over_since.keys().map(|&account| (account, held(account))).collect()
}

/// The greatest fixpoint among the accounts that hold what they did at `last`;
/// with `stalls` a host that has stopped reading holds its queue as well.
fn stuck(core: &Core, now: Time, last: &Snapshot, stalls: bool) -> Stuck {
    let same = snapshot(core);
    let mut set: Stuck = core
        .observed
        .over_since
        .iter()
        .filter(|&(account, _)| last.get(account) == same.get(account))
        .filter(|&(&account, &since)| settled(core, account, since, now))
        .map(|(&account, _)| (account, Vec::new()))
        .collect();
    // Which bytes of the set's accounts lie in queues that the set (or a stall) holds.
    let lanes = core.lanes as u32;
    let stalled = core.plan.receivers.iter().map(|r| r.rx).filter(|&rx| core.ports[rx as usize].paused != 0);
    let mut queues: Vec<(u32, u32, u32)> = if stalls {
        stalled.flat_map(|rx| (0..lanes).map(move |l| (rx, l, NONE))).collect()
    } else {
        Vec::new()
    };
    queues
        .extend(set.keys().map(|&by| (core.plan.topology.ports[(by / lanes) as usize].peer, by % lanes, by)));
    for (port, lane, by) in queues {
        let mut bytes: BTreeMap<u32, u64> = BTreeMap::new();
        for id in queued(core, port, lane) {
            let packet = &core.packets[id];
            *bytes.entry(packet.account).or_default() += u64::from(packet.size);
        }
        for (account, bytes) in bytes {
            if let Some(holds) = set.get_mut(&account) {
                holds.push(Hold { port, bytes, by });
            }
        }
    }
    loop {
        let free: Vec<u32> = set
            .iter()
            .filter(|(account, holds)| {
                let kept =
                    holds.iter().filter(|h| h.by == NONE || set.contains_key(&h.by)).map(|h| h.bytes).sum();
                let a = &core.accounts[**account as usize];
                kept == 0
                    || a.could_resume(
                        kept,
                        &core.memories[a.node as usize],
                        &core.profiles[usize::from(a.profile)],
                    )
            })
            .map(|(&account, _)| account)
            .collect();
        if free.is_empty() {
            break;
        }
        for account in free {
            set.remove(&account);
        }
    }
    let members: BTreeSet<u32> = set.keys().copied().collect();
    for holds in set.values_mut() {
        holds.retain(|h| h.by == NONE || members.contains(&h.by));
        // What holds most comes first; the port's number decides ties.
        holds.sort_by_key(|h| (std::cmp::Reverse(h.bytes), h.port));
    }
    set
}

/// The packets in a forwarding queue.
fn queued<'c>(core: &'c Core, port: u32, lane: u32) -> impl Iterator<Item = u32> + 'c {
    let queue = core.ports[port as usize].first_queue + 1 + lane;
    let mut next = core.queues[queue as usize].head;
    std::iter::from_fn(move || {
        let id = (next != NONE).then_some(next)?;
        next = core.packets[id].next;
        Some(id)
    })
}

/// Looks for a deadlock at time `now`.
pub fn look(core: &Core, now: Time, last: &Snapshot) -> Option<Deadlock> {
    if core.leaves.used() {
        return deadlock_by_flow::look(core, now);
    }
    let set = stuck(core, now, last, false);
    // From any member, what holds most of it, and so on, runs into a cycle.
    let mut order = Vec::new();
    let mut account = *set.keys().next()?;
    while !order.contains(&account) {
        order.push(account);
        account = set[&account][0].by;
    }
    let start = order.iter().position(|&a| a == account).unwrap_or(0);
    let members = &order[start..];
    let lanes = core.lanes as u32;
    let cycle = members
        .iter()
        .map(|&member| {
            let (port, lane) = (set[&member][0].port, member % lanes);
            let flows: BTreeSet<u32> = queued(core, port, lane)
                .map(|id| &core.packets[id])
                .filter(|p| p.account == member)
                .map(|p| p.flow)
                .collect();
            let bytes = queued(core, port, lane).map(|id| u64::from(core.packets[id].size)).sum();
            Held { port, lane: lane as u8, bytes, flows: flows.into_iter().collect() }
        })
        .collect();
    Some(Deadlock {
        closed: members.iter().map(|a| core.observed.over_since[a]).max().unwrap_or(now),
        seen: now,
        cycle,
        stuck: set.keys().map(|&a| (a / lanes, (a % lanes) as u8)).collect(),
    })
}

/// Who waits for whom and will not move: in a deadlock, behind one, or behind a
/// host that has stopped reading. Empty if every flow is done.
pub fn waiting(core: &Core, now: Time, last: &Snapshot) -> Vec<Wait> {
    if core.observed.flows_done == core.plan.flows.len() {
        return Vec::new();
    }
    if core.leaves.used() {
        return deadlock_by_flow::waiting(core);
    }
    let set = stuck(core, now, last, true);
    let lanes = core.lanes as u32;
    set.keys()
        .map(|&account| {
            let (ingress, lane) = (account / lanes, account % lanes);
            let port = core.plan.topology.ports[ingress as usize].peer;
            let mut seen = BTreeSet::new();
            let mut at = account;
            let root = loop {
                let held = set[&at][0];
                if held.by == NONE {
                    break Some(core.ports[held.port as usize].node);
                }
                if !seen.insert(at) {
                    break None;
                }
                at = held.by;
            };
            Wait {
                port,
                lane: lane as u8,
                bytes: queued(core, port, lane).map(|id| u64::from(core.packets[id].size)).sum(),
                since: core.observed.standing(port, lane as u8).map_or(now, |p| p.from),
                waits_for: ingress,
                root,
            }
        })
        .collect()
}
