//! The deadlock oracle where switches that know PFC alone stand beside Pyrrha's.
//!
//! Two kinds of members wait for each other: ingress accounts that keep a priority of
//! their upstream paused, as in [`crate::deadlock`], and pairs of a port and a root that is
//! paused there, as in [`crate::deadlock_by_root`]. What each waits for by itself is as
//! there; and across:
//!
//! - bytes of an account also stay where they lie in an isolation queue that is paused
//!   for a root of the set;
//! - a port stays stopped for a root also while the queue that wants it so, the root's own
//!   output queue included, cannot send since an account of the set has paused its
//!   priority.
//!
//! Begin with all of both kinds, and strike out who waits for none of the set, until
//! nothing more can be struck out. What is left stands.

use crate::deadlock::{self, Snapshot};
use crate::deadlock_by_root::{self as by_root, Key, pyrrha};
use crate::outcome::{Deadlock, Held, Wait};
use crate::packet::Packet;
use crate::world::World;
use std::collections::{BTreeMap, BTreeSet};
use xoff_kernel::time::Time;
use xoff_schemes::flow_control::FlowControlParams;

/// Who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Member {
    /// An ingress account.
    Account(u32),
    /// A port that is stopped for a root.
    Root(Key),
}

/// What makes a member wait.
#[derive(Clone, Debug)]
struct Hold {
    /// While any of them stands; nobody: for a host that has stopped reading.
    by: Vec<Member>,
    /// The port whose queue it is.
    port: u32,
    /// Bytes: of the account, or of the queue.
    bytes: u64,
}

impl Hold {
    fn stands(&self, set: &BTreeSet<Member>) -> bool {
        self.by.is_empty() || self.by.iter().any(|by| set.contains(by))
    }
}

/// Those who stand, each with what holds it.
type Stuck = BTreeMap<Member, Vec<Hold>>;

/// Whether a plan's links are paused in both ways.
pub fn applies(world: &World) -> bool {
    matches!(&world.plan.flow_control, FlowControlParams::Pyrrha(pyrrha) if pyrrha.pfc.is_some())
}

fn peer(world: &World, port: u32) -> u32 {
    world.plan.topology.ports[port as usize].peer
}

/// The account whose pause stops a lane of `port`.
fn account_before(world: &World, port: u32, lane: u8) -> Member {
    Member::Account(peer(world, port) * world.lanes() + u32::from(lane))
}

/// The ingress that keeps its upstream stopped.
fn ingress_of(world: &World, member: Member) -> (u32, u8) {
    match member {
        Member::Account(account) => (account / world.lanes(), (account % world.lanes()) as u8),
        Member::Root((port, lane, _)) => (peer(world, port), lane),
    }
}

/// The port that a member keeps stopped, and the lane.
fn upstream(world: &World, member: Member) -> (u32, u8) {
    let (ingress, lane) = ingress_of(world, member);
    (peer(world, ingress), lane)
}

/// Every list of packets that are forwarded on a lane of `port`, with the roots that may
/// stop it.
fn lists(world: &World, port: u32, lane: u8) -> Vec<(usize, Vec<Member>)> {
    let core = world.home_of_port(port);
    let own = (core.ports[port as usize].first_queue + 1 + u32::from(lane)) as usize;
    let mut lists = vec![(own, Vec::new())];
    for leaf in core.forwarding_leaves(port, lane) {
        let number = core.leaves.number(leaf, lane);
        let ahead = pyrrha(world, port).ahead(port, lane);
        let stops = ahead.filter(|ahead| ahead.paused() && ahead.queues().contains(&number));
        let roots = stops.map(|ahead| Member::Root((port, lane, ahead.root()))).collect();
        let list = core.leaves.list(leaf);
        if list != own {
            lists.push((list, roots));
        }
    }
    lists
}

/// The accounts and pairs that may stand, with everything that may hold them for ever.
fn candidates(world: &World, now: Time, last: &Snapshot, stalls: bool) -> Stuck {
    let accounts = deadlock::candidates(world, now, last).into_iter().map(Member::Account);
    let roots = by_root::candidates(world).into_iter().map(Member::Root);
    let mut set: Stuck = accounts.chain(roots).map(|member| (member, Vec::new())).collect();
    let members: BTreeSet<Member> = set.keys().copied().collect();
    // Bytes of accounts, list by list.
    let stalled = |port: u32| {
        stalls && world.port(port).paused != 0 && world.plan.receivers.iter().any(|r| r.rx == port)
    };
    let mut places: BTreeSet<(u32, u8)> = members.iter().map(|&member| upstream(world, member)).collect();
    let receivers = world.plan.receivers.iter().map(|r| r.rx).filter(|&rx| stalled(rx));
    places.extend(receivers.flat_map(|rx| (0..world.lanes() as u8).map(move |lane| (rx, lane))));
    for (port, lane) in places {
        let before = account_before(world, port, lane);
        // Bytes by account and by who stops them.
        let mut bytes: BTreeMap<(u32, Vec<Member>), u64> = BTreeMap::new();
        for (list, roots) in lists(world, port, lane) {
            let mut by: Vec<Member> = roots.into_iter().filter(|r| members.contains(r)).collect();
            by.extend(Some(before).filter(|account| members.contains(account)));
            if stalled(port) {
                by.clear();
            } else if by.is_empty() {
                continue;
            }
            for packet in world.packets_of(port, list) {
                *bytes.entry((packet.account, by.clone())).or_default() += u64::from(packet.size);
            }
        }
        for ((account, by), bytes) in bytes {
            if let Some(holds) = set.get_mut(&Member::Account(account)) {
                holds.push(Hold { by, port, bytes });
            }
        }
    }
    for (&member, holds) in &mut set {
        let Member::Root(key) = member else { continue };
        let by_root = by_root::holds(world, key, stalls).into_iter();
        holds.extend(by_root.map(|hold| Hold {
            by: hold.by.map(Member::Root).into_iter().collect(),
            port: hold.port,
            bytes: hold.bytes,
        }));
        holds.extend(by_lanes(world, key).filter(|hold| hold.stands(&members)));
    }
    set
}

/// The queues that want a port stopped for a root and may be stopped by their lanes.
fn by_lanes(world: &World, (port, lane, root): Key) -> impl Iterator<Item = Hold> {
    let ingress = peer(world, port);
    let device = world.plan.topology.ports[ingress as usize].node;
    let pyrrha = pyrrha(world, ingress);
    world.plan.topology.nodes[device as usize].ports.iter().filter_map(move |&by| {
        let bytes = if by == root {
            pyrrha.stopped_by_oq(by, lane).contains(&ingress).then(|| by_root::bytes(world, by, lane, 0))?
        } else {
            let ahead = pyrrha.root_ahead(by, lane, root).filter(|a| a.holding().contains(&ingress))?;
            let bytes = ahead.queues().iter().map(|&queue| by_root::bytes(world, by, lane, queue)).max();
            bytes.filter(|&bytes| bytes > pyrrha.k_resume(by))?
        };
        Some(Hold { by: vec![account_before(world, by, lane)], port: by, bytes })
    })
}

/// The greatest fixpoint; with `stalls` a host that has stopped reading holds what waits
/// for it.
fn stuck(world: &World, now: Time, last: &Snapshot, stalls: bool) -> Stuck {
    let mut set = candidates(world, now, last, stalls);
    loop {
        let members: BTreeSet<Member> = set.keys().copied().collect();
        for holds in set.values_mut() {
            holds.retain(|hold| hold.stands(&members));
        }
        set.retain(|&member, holds| match member {
            Member::Account(account) => {
                let kept = holds.iter().map(|hold| hold.bytes).sum();
                kept > 0 && !world.could_resume(account, kept)
            }
            Member::Root(_) => !holds.is_empty(),
        });
        if set.len() == members.len() {
            break;
        }
    }
    let members: BTreeSet<Member> = set.keys().copied().collect();
    for holds in set.values_mut() {
        for hold in holds.iter_mut() {
            hold.by.retain(|by| members.contains(by));
        }
        // What holds most comes first; port and member decide ties.
        holds.sort_by(|a, b| (b.bytes, a.port, &a.by).cmp(&(a.bytes, b.port, &b.by)));
    }
    set
}

/// Whether something waits for a member.
fn filled(world: &World, member: Member) -> bool {
    match member {
        // Whoever stands has bytes in queues that stand.
        Member::Account(_) => true,
        Member::Root(key) => by_root::filled(world, key),
    }
}

/// What a member waits for in its first hold: a queue, bytes there, and whose they are.
fn held(world: &World, set: &Stuck, member: Member) -> Held {
    let hold = &set[&member][0];
    let (ingress, lane) = ingress_of(world, member);
    if let (Member::Root(_), Some(&Member::Root(by))) = (member, hold.by.first()) {
        let (bytes, flows) = by_root::waiting_packets(world, by);
        return Held { port: by.0, lane, bytes, flows: flows.into_iter().collect() };
    }
    let account = ingress * world.lanes() + u32::from(lane);
    let queued = || world.queued(hold.port, u32::from(lane));
    let flows: BTreeSet<u32> = queued().filter(|p| p.account == account).map(|p| p.flow).collect();
    let bytes = queued().map(|p: &Packet| u64::from(p.size)).sum();
    Held { port: hold.port, lane, bytes, flows: flows.into_iter().collect() }
}

/// Looks for a deadlock at time `now`: something waits, and for ever.
pub fn look(world: &World, now: Time, last: &Snapshot) -> Option<Deadlock> {
    let set = stuck(world, now, last, false);
    // From any member, what holds most of it, and so on, runs into a cycle.
    let mut member = *set.keys().find(|&&member| filled(world, member))?;
    let mut order = Vec::new();
    while !order.contains(&member) {
        order.push(member);
        member = set[&member][0].by[0];
    }
    let start = order.iter().position(|&m| m == member).unwrap_or(0);
    let members = &order[start..];
    let closed = deadlock::closed(world);
    let since = |&member: &Member| match member {
        Member::Account(account) => closed.get(&account).map(|closed| closed.0),
        Member::Root(key) => by_root::since(world, key),
    };
    let stuck: BTreeSet<(u32, u8)> = set.keys().map(|&member| ingress_of(world, member)).collect();
    Some(Deadlock {
        closed: members.iter().filter_map(since).max().unwrap_or(now),
        seen: now,
        ended: None,
        cycle: members.iter().map(|&member| held(world, &set, member)).collect(),
        stuck: stuck.into_iter().collect(),
    })
}

/// Who waits for whom and will not move.
pub fn waiting(world: &World, now: Time, last: &Snapshot) -> Vec<Wait> {
    let set = stuck(world, now, last, true);
    let wait = |&member: &Member| {
        let mut seen = BTreeSet::new();
        let mut at = member;
        let root = loop {
            let hold = &set[&at][0];
            let Some(&by) = hold.by.first() else { break Some(world.port(hold.port).node) };
            if !seen.insert(at) {
                break None;
            }
            at = by;
        };
        let (waits_for, lane) = ingress_of(world, member);
        let (port, _) = upstream(world, member);
        let (bytes, since) = match member {
            Member::Account(_) => {
                let queued = world.queued(port, u32::from(lane));
                let since = world.standing(port, lane).map(|pause| pause.from);
                (queued.map(|p| u64::from(p.size)).sum(), since)
            }
            Member::Root(key) => (by_root::waiting_packets(world, key).0, by_root::since(world, key)),
        };
        Wait { port, lane, bytes, since: since.unwrap_or(now), waits_for, root }
    };
    set.keys().filter(|&&member| filled(world, member)).map(wait).collect()
}
