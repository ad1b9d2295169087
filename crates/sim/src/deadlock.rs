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
//! Where hosts pass pauses on blindly, an ingress of such a host is also closed
//! while another port of the host is paused, whatever its account holds: it is
//! struck out only when none of those pauses is one of the set, and its account
//! is under or can resume. So a member is an ingress that keeps its upstream
//! paused, for one reason or the other.
//!
//! Where queues are paused one by one, [`deadlock_by_flow`] does the same, and
//! [`deadlock_by_root`] where they are paused root by root; [`deadlock_hybrid`] where some
//! links are paused in this way and others in that.

use crate::outcome::{Deadlock, Held, Pause, Wait};
use crate::packet::NONE;
use crate::world::World;
use crate::{deadlock_by_flow, deadlock_by_root, deadlock_hybrid};
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
    /// The pause of `port` is passed on, whoever's the bytes in its queue are.
    passed_on: bool,
}

/// The accounts that can never resume, each with what holds its bytes.
type Stuck = BTreeMap<u32, Vec<Hold>>;

/// The ingresses that keep their upstream paused: since when, and whether by
/// their own accounts. One that only passes pauses on has done so since the last
/// of those that stand began, or for longer.
pub fn closed(world: &World) -> BTreeMap<u32, (Time, bool)> {
    let mut closed: BTreeMap<u32, (Time, bool)> = world.over_since().map(|(a, t)| (a, (t, true))).collect();
    for pause in world.passed_on() {
        for port in world.others(pause.port) {
            let ingress = port * world.lanes() + u32::from(pause.lane);
            let (since, over) = closed.entry(ingress).or_insert((pause.from, false));
            if !*over {
                *since = pause.from.max(*since);
            }
        }
    }
    closed
}

/// Whether an account's pause has reached its upstream and nothing that was
/// under way then can still arrive.
fn settled(world: &World, account: u32, since: Time, now: Time) -> bool {
    let (port, lane) = (account / world.lanes(), (account % world.lanes()) as u8);
    let link = &world.plan.topology.ports[port as usize];
    world.standing(link.peer, lane).is_some_and(|pause| {
        let last = serialisation(u64::from(world.plan.packet.largest()), link.rate) + link.delay;
        // A pause from before that XOFF stands on: its resume was taken up by this
        // pause while it waited for its wire. Then both ways count from the XOFF.
        let sent = match pause.from >= since {
            true => pause.from,
            false => since + 2 * last + world.plan.flow_control.traits().response_time,
        };
        now >= sent + last
    })
}

/// What each account that was over held at the last look. A deadlocked account
/// neither gets nor gives, so only those that still hold the same are examined.
pub type Snapshot = BTreeMap<u32, u64>;

/// Takes a snapshot of the accounts that are over.
pub fn snapshot(world: &World) -> Snapshot {
    world.over_since().map(|(account, _)| (account, world.account(account).held())).collect()
}

/// The accounts that keep their upstream paused, whose pauses have settled, and that hold
/// what they did at `last`.
pub fn candidates(world: &World, now: Time, last: &Snapshot) -> Vec<u32> {
    let same = |account: u32| last.get(&account) == Some(&world.account(account).held());
    closed(world)
        .into_iter()
        .filter(|&(account, (_, over))| !over || same(account))
        .filter(|&(account, (since, _))| settled(world, account, since, now))
        .filter(|&(account, _)| world.closes(account))
        .map(|(account, _)| account)
        .collect()
}

/// The greatest fixpoint among the accounts that hold what they did at `last`;
/// with `stalls` a host that has stopped reading holds its queue as well.
fn stuck(world: &World, now: Time, last: &Snapshot, stalls: bool) -> Stuck {
    let closed = closed(world);
    let over = |account: u32| closed[&account].1;
    let mut set: Stuck =
        candidates(world, now, last).into_iter().map(|account| (account, Vec::new())).collect();
    // Which bytes of the set's accounts lie in queues that the set (or a stall) holds.
    let lanes = world.lanes();
    let stalled = world.plan.receivers.iter().map(|r| r.rx).filter(|&rx| world.port(rx).paused != 0);
    let mut queues: Vec<(u32, u32, u32)> = if stalls {
        stalled.flat_map(|rx| (0..lanes).map(move |l| (rx, l, NONE))).collect()
    } else {
        Vec::new()
    };
    queues.extend(
        set.keys().map(|&by| (world.plan.topology.ports[(by / lanes) as usize].peer, by % lanes, by)),
    );
    for (port, lane, by) in queues {
        let mut bytes: BTreeMap<u32, u64> = BTreeMap::new();
        for packet in world.queued(port, lane) {
            *bytes.entry(packet.account).or_default() += world.in_cells(packet);
        }
        for (account, bytes) in bytes {
            if let Some(holds) = set.get_mut(&account) {
                holds.push(Hold { port, bytes, by, passed_on: false });
            }
        }
    }
    for pause in world.passed_on() {
        let (port, lane) = (pause.port, u32::from(pause.lane));
        let by = world.plan.topology.ports[port as usize].peer * lanes + lane;
        let bytes = world.queued(port, lane).map(|p| u64::from(p.size)).sum();
        for other in world.others(port).filter(|_| set.contains_key(&by)).collect::<Vec<_>>() {
            if let Some(holds) = set.get_mut(&(other * lanes + lane)) {
                holds.push(Hold { port, bytes, by, passed_on: true });
            }
        }
    }
    // Whether what its account holds keeps an ingress closed.
    let full = |set: &Stuck, account: u32, holds: &[Hold]| {
        let stays = |h: &&Hold| !h.passed_on && (h.by == NONE || set.contains_key(&h.by));
        let kept = holds.iter().filter(stays).map(|h| h.bytes).sum();
        over(account) && kept > 0 && !world.could_resume(account, kept)
    };
    loop {
        let free: Vec<u32> = set
            .iter()
            .filter(|(_, holds)| !holds.iter().any(|h| h.passed_on && set.contains_key(&h.by)))
            .filter(|(account, holds)| !full(&set, **account, holds))
            .map(|(&account, _)| account)
            .collect();
        if free.is_empty() {
            break;
        }
        for account in free {
            set.remove(&account);
        }
    }
    let members: BTreeMap<u32, bool> =
        set.iter().map(|(&account, holds)| (account, full(&set, account, holds))).collect();
    for (account, holds) in &mut set {
        holds.retain(|h| h.by == NONE || members.contains_key(&h.by));
        holds.retain(|h| h.passed_on || members[account]);
        // What holds most comes first; the port's number decides ties.
        holds.sort_by_key(|h| (std::cmp::Reverse(h.bytes), h.port));
    }
    set
}

/// Looks for a deadlock at time `now`.
pub fn look(world: &World, now: Time, last: &Snapshot) -> Option<Deadlock> {
    if deadlock_hybrid::applies(world) {
        return deadlock_hybrid::look(world, now, last);
    }
    if world.cores[0].leaves.pulls {
        return deadlock_by_root::look(world, now);
    }
    if world.cores[0].leaves.used() {
        return deadlock_by_flow::look(world, now);
    }
    let set = stuck(world, now, last, false);
    // From any member, what holds most of it, and so on, runs into a cycle.
    let mut order = Vec::new();
    let mut account = *set.keys().next()?;
    while !order.contains(&account) {
        order.push(account);
        account = set[&account][0].by;
    }
    let start = order.iter().position(|&a| a == account).unwrap_or(0);
    let members = &order[start..];
    let lanes = world.lanes();
    let cycle = members
        .iter()
        .map(|&member| {
            let Hold { port, by, passed_on, .. } = set[&member][0];
            // A packet may have come in by another lane than it goes on in.
            let lane = by % lanes;
            let waits = world.queued(port, lane).filter(|p| passed_on || p.account == member);
            let flows: BTreeSet<u32> = waits.map(|p| p.flow).collect();
            let bytes = world.queued(port, lane).map(|p| u64::from(p.size)).sum();
            Held { port, lane: lane as u8, bytes, flows: flows.into_iter().collect() }
        })
        .collect();
    Some(Deadlock {
        closed: members.iter().map(|member| closed(world)[member].0).max().unwrap_or(now),
        seen: now,
        ended: None,
        cycle,
        stuck: set.keys().map(|&a| (a / lanes, (a % lanes) as u8)).collect(),
    })
}

/// When the first of a cycle's queues went on, if any did: by the pauses of the whole run.
/// What never drains by itself goes on when a scheme dissolves it, or when a link fails.
pub fn ended(deadlock: &Deadlock, pauses: &[Pause]) -> Option<Time> {
    let held = |p: &&Pause| deadlock.cycle.iter().any(|h| (h.port, h.lane) == (p.port, p.lane));
    let stood = pauses.iter().filter(|p| p.queue.is_none() && p.from <= deadlock.seen).filter(held);
    stood.filter_map(|p| p.until.filter(|&until| until >= deadlock.seen)).min()
}

/// Who waits for whom and will not move: in a deadlock, behind one, or behind a
/// host that has stopped reading. Empty if every flow is done.
pub fn waiting(world: &World, now: Time, last: &Snapshot) -> Vec<Wait> {
    if world.flows_done() == world.plan.flows.len() {
        return Vec::new();
    }
    if deadlock_hybrid::applies(world) {
        return deadlock_hybrid::waiting(world, now, last);
    }
    if world.cores[0].leaves.pulls {
        return deadlock_by_root::waiting(world);
    }
    if world.cores[0].leaves.used() {
        return deadlock_by_flow::waiting(world);
    }
    let set = stuck(world, now, last, true);
    let lanes = world.lanes();
    set.keys()
        .map(|&account| {
            let (ingress, lane) = (account / lanes, account % lanes);
            let port = world.plan.topology.ports[ingress as usize].peer;
            let mut seen = BTreeSet::new();
            let mut at = account;
            let root = loop {
                let held = set[&at][0];
                if held.by == NONE {
                    break Some(world.port(held.port).node);
                }
                if !seen.insert(at) {
                    break None;
                }
                at = held.by;
            };
            Wait {
                port,
                lane: lane as u8,
                bytes: world.queued(port, lane).map(|p| u64::from(p.size)).sum(),
                since: world.standing(port, lane as u8).map_or(now, |p| p.from),
                waits_for: ingress,
                root,
            }
        })
        .collect()
}
