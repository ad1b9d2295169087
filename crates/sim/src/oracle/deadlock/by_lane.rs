//! Pauses of lanes: a member is an ingress account that keeps a lane of its upstream paused.
//!
//! An account over its threshold resumes its upstream when its bytes are down to the resume level. They stay
//! where they lie in queues that are paused: with their lane, or for a root ([`by_root`]).
//!
//! Where hosts pass pauses on, an ingress also keeps its upstream paused while another port of the host is.
//! It is struck out only when none of those pauses is of the set, and its account is under or can resume.

use super::{Hold, Member, Reach, Set, Stalled, by_root};
use crate::packet::{Kind, NONE, Packet};
use crate::world::World;
use std::collections::{BTreeMap, BTreeSet};
use xoff_kernel::time::{Time, serialisation};
use xoff_schemes::flow_control::PauseScope;

/// Bytes of the accounts that were over at the last look. A deadlocked account neither gets nor gives any.
pub type Snapshot = BTreeMap<u32, u64>;

pub fn snapshot(world: &World) -> Snapshot {
    let closed = world.over_since().chain(world.short_of_credit());
    closed.map(|(account, _)| (account, stored(world, account))).collect()
}

/// The bytes that an account waits for: its own, and where lanes wait for each other those of its port.
fn stored(world: &World, account: u32) -> u64 {
    accounts(world, account).map(|account| world.account(account).held()).sum()
}

/// The accounts whose bytes an account waits for, itself included.
fn accounts(world: &World, account: u32) -> impl Iterator<Item = u32> {
    let (plan, lanes) = (world.plan, world.lanes());
    let first = account - account % lanes;
    let range = match world.waits_as_port(account) {
        true => first..first + lanes,
        false => account..account + 1,
    };
    range.filter(move |&other| other == account || plan.lanes[(other % lanes) as usize].lossless)
}

pub fn account(world: &World, ingress: u32, lane: u8) -> u32 {
    ingress * world.lanes() + u32::from(lane)
}

/// Whether `member` waits for the bytes of the account `of`.
pub fn waits_for(world: &World, member: Member, of: u32) -> bool {
    of != NONE && accounts(world, of).any(|account| member == Member::Account(account))
}

/// The account whose pause stops a lane of `port`.
pub fn pauser(world: &World, port: u32, lane: u8) -> Member {
    Member::Account(account(world, world.peer(port), lane))
}

/// The accounts whose pauses stop a lane of `port`, that of the lane first.
fn pausers(world: &World, port: u32, lane: u8) -> impl Iterator<Item = Member> {
    let link = world.plan.flow_control.traits().pause_scope == PauseScope::Link;
    let others = (0..world.lanes() as u8).filter(move |&other| link && other != lane);
    std::iter::once(lane).chain(others).map(move |lane| pauser(world, port, lane))
}

/// The ingresses that keep their upstream paused: since when (for one that only passes pauses on, the last
/// active one, or earlier), and whether by their own accounts.
pub fn closed(world: &World) -> BTreeMap<u32, (Time, bool)> {
    let full = world.over_since().chain(world.short_of_credit());
    let mut closed: BTreeMap<u32, (Time, bool)> =
        full.map(|(a, over)| (a, (world.out_of_credit(a).map_or(over, |t| t.max(over)), true))).collect();
    for pause in world.passed_on() {
        for port in world.others(pause.port) {
            let (since, over) = closed.entry(account(world, port, pause.lane)).or_insert((pause.from, false));
            if !*over {
                *since = pause.from.max(*since);
            }
        }
    }
    closed
}

/// Whether an account's pause has reached its upstream and all packets that were in flight then have arrived.
fn settled(world: &World, account: u32, since: Time, now: Time) -> bool {
    let (port, lane) = (account / world.lanes(), (account % world.lanes()) as u8);
    let link = &world.plan.topology.ports[port as usize];
    if world.plan.link_layer.is_some() {
        let delays = |port: u32, one: fn(&Packet) -> bool| {
            let core = world.home_of_port(port);
            core.links.delays(port, &core.packets, one)
        };
        if delays(link.peer, |p| p.kind == Kind::Control) || delays(port, |p| p.kind != Kind::Control) {
            return false;
        }
    }
    world.standing(link.peer, lane).is_some_and(|pause| {
        let last = serialisation(u64::from(world.plan.packet.largest()), link.rate) + link.delay;
        // An earlier pause replaced its resume, which waited for its wire: both ways count from the XOFF.
        let sent = match pause.from >= since {
            true => pause.from,
            false => since + 2 * last + world.plan.flow_control.traits().response_time,
        };
        now >= sent + last
    })
}

/// The accounts that keep their upstream paused, have settled, and hold the same bytes as at `last`.
pub fn members(world: &World, now: Time, last: &Snapshot) -> Set {
    let same = |account: u32| last.get(&account) == Some(&stored(world, account));
    closed(world)
        .into_iter()
        .filter(|&(account, (since, over))| (!over || same(account)) && settled(world, account, since, now))
        .filter(|&(account, _)| world.closes(account))
        .map(|(account, _)| (Member::Account(account), Vec::new()))
        .collect()
}

/// Whether an account is over, and the bytes in these queues keep it from its resume level.
pub fn full(world: &World, account: u32, holds: &[Hold]) -> bool {
    let held =
        |account: u32| holds.iter().filter(|h| !h.whole && h.account == account).map(|h| h.bytes).sum();
    let reserved: u64 = accounts(world, account).map(held).sum();
    let shares = world.plan.flow_control.traits().shares_credit;
    (shares || world.is_over(account)) && reserved > 0 && !world.could_resume(account, held)
}

/// Adds the holds of the accounts of a set. With `reach` only queues are read that its routes allow.
pub fn add_holds(world: &World, set: &mut Set, stalled: &Stalled, reach: Option<&Reach>) {
    let ingress = |member: &Member| match member {
        Member::Account(account) => Some(account / world.lanes()),
        Member::Queue(_) | Member::Root(_) => None,
    };
    let ingresses: BTreeSet<u32> = set.keys().filter_map(ingress).collect();
    if ingresses.is_empty() {
        return;
    }
    let mut places: BTreeSet<(u32, u8)> = set.keys().map(|member| member.upstream(world)).collect();
    if world.plan.flow_control.traits().pause_scope == PauseScope::Link {
        let lanes = |(port, _)| (0..world.lanes() as u8).map(move |lane| (port, lane));
        places = places.into_iter().flat_map(lanes).collect();
    }
    places.extend(stalled);
    if let Some(reach) = reach {
        places.retain(|&(port, _)| ingresses.iter().any(|&ingress| reach.leads(ingress, port)));
    }
    for (port, lane) in places {
        // Bytes by the queues that stop them, and by account.
        let mut bytes: BTreeMap<Vec<Member>, BTreeMap<u32, u64>> = BTreeMap::new();
        for (list, mut by) in lists(world, port, lane) {
            by.extend(pausers(world, port, lane));
            by.retain(|member| set.contains_key(member));
            if stalled.contains(&(port, lane)) {
                by.clear();
            } else if by.is_empty() {
                continue;
            }
            let bytes = bytes.entry(by).or_default();
            for packet in world.packets_of(port, list) {
                *bytes.entry(packet.account).or_default() += world.in_cells(packet);
            }
        }
        for (by, bytes) in bytes {
            for (account, bytes) in bytes {
                // An account of no port is that of a packet that began here.
                for waits in (account != NONE).then(|| accounts(world, account)).into_iter().flatten() {
                    if let Some(holds) = set.get_mut(&Member::Account(waits)) {
                        holds.push(Hold { by: by.clone(), port, account, bytes, whole: false });
                    }
                }
            }
        }
    }
    for pause in world.passed_on() {
        let by = pauser(world, pause.port, pause.lane);
        if !set.contains_key(&by) {
            continue;
        }
        let bytes = world.queued(pause.port, pause.lane.into()).map(|p| u64::from(p.size)).sum();
        for other in world.others(pause.port) {
            if let Some(holds) = set.get_mut(&Member::Account(account(world, other, pause.lane))) {
                holds.push(Hold { by: vec![by], port: pause.port, account: NONE, bytes, whole: true });
            }
        }
    }
}

/// The lists of packets that are forwarded on a lane of `port`, each with the roots that stop it.
fn lists(world: &World, port: u32, lane: u8) -> Vec<(usize, Vec<Member>)> {
    let core = world.home_of_port(port);
    let own = (core.egress.ports[port as usize].first_queue + 1 + u32::from(lane)) as usize;
    let leaves = core.forwarding_leaves(port, lane).filter(|&leaf| core.egress.leaves.list(leaf) != own);
    let stopping = |leaf| by_root::stopping(world, port, lane, core.egress.leaves.number(leaf));
    let leaves = leaves.map(|leaf| (core.egress.leaves.list(leaf), stopping(leaf)));
    std::iter::once((own, Vec::new())).chain(leaves).collect()
}
