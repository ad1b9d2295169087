//! Pauses by root: a member is a root that is paused at a port.
//!
//! A port P that is paused for root r resumes when the device D at the other end permits it: when no queue of
//! D needs P stopped for r any more.
//!
//! - The output queue of r, if r is a port of D, wants it while it is longer than its resume level. No root
//!   pauses it, so it drains, unless its lane is paused or its host has stopped reading.
//! - An isolation queue of r at another port p of D wants it until its own pause ends and all queues of r at
//!   p are down to the resume level. So P waits for (p, r) if that is paused; for (p, s) if root s shares a
//!   queue of r at p that is too long, and s is paused; and for the account that has paused the lane of p, if
//!   a queue of r at p is too long.
//!
//! A member is struck out if it waits for none of the set: its resume is sent already, or will be. Frames in
//! flight change nothing, except a MERGE, if a root of the set is a false root. Members at a host's own port
//! represent the queue pairs that they stop as well.

use super::{Hold, Member, Set, Stalled, by_lane};
use crate::packet::{NONE, Packet};
use crate::world::World;
use xoff_kernel::time::Time;
use xoff_net::topology::NodeKind;

/// A root that is paused at a port: the port, its lane, and the root.
pub type Key = (u32, u8, u32);

/// Adds all roots that are paused at a port, and the queues that need each of these ports stopped.
pub fn add(world: &World, set: &mut Set, stalled: &Stalled) {
    for port in 0..world.plan.topology.ports.len() as u32 {
        let Some(roots) = world.roots(port) else { continue };
        for lane in 0..world.lanes() as u8 {
            for ahead in roots.ahead(port, lane).into_iter().filter(|ahead| ahead.paused) {
                let key = (port, lane, ahead.root);
                set.insert(Member::Root(key), holds(world, key, stalled));
            }
        }
    }
}

/// Everything that wants `(port, lane, root)` stopped and may want it for ever.
fn holds(world: &World, (port, lane, root): Key, stalled: &Stalled) -> Vec<Hold> {
    let ingress = world.peer(port);
    let topology = &world.plan.topology;
    let device = &topology.nodes[topology.ports[ingress as usize].node as usize];
    let Some(roots) = world.roots(ingress) else { return Vec::new() };
    let mut holds = Vec::new();
    for &at in &device.ports {
        let mut add = |by, bytes, whole| holds.push(Hold { by, port: at, account: NONE, bytes, whole });
        let length = |queue| world.home_of_port(at).pulled_bytes(at, lane, queue);
        let by_lane = vec![by_lane::pauser(world, at, lane)];
        if at == root {
            if roots.stopped_by_output(at, lane).contains(&ingress) {
                if stalled.contains(&(at, lane)) {
                    add(Vec::new(), length(0), true);
                }
                add(by_lane, length(0), false);
            }
            continue;
        }
        let ahead = roots.root_ahead(at, lane, root).filter(|ahead| ahead.holding.contains(&ingress));
        let Some(ahead) = ahead else { continue };
        let queues: Vec<(u16, u64)> =
            roots.queues_of(at, lane, root).into_iter().map(|queue| (queue, length(queue))).collect();
        if ahead.paused {
            add(vec![Member::Root((at, lane, root))], queues.iter().map(|q| q.1).sum(), true);
        }
        let too_long = || queues.iter().filter(|q| q.1 > roots.resume_level(at));
        let paused = |s: u32| roots.root_ahead(at, lane, s).is_some_and(|ahead| ahead.paused);
        for &(queue, bytes) in too_long() {
            for &s in roots.sharing(at, lane, queue).iter().filter(|&&s| s != root && paused(s)) {
                add(vec![Member::Root((at, lane, s))], bytes, true);
            }
        }
        if let Some(bytes) = too_long().map(|q| q.1).max() {
            add(by_lane, bytes, false);
        }
    }
    holds
}

/// The roots that stop queue `number` of a lane on `port`.
pub fn stopping(world: &World, port: u32, lane: u8, number: u16) -> Vec<Member> {
    let Some(roots) = world.roots(port) else { return Vec::new() };
    let stops = |root| roots.queues_of(port, lane, root).contains(&number);
    let ahead = roots.ahead(port, lane).into_iter().filter(|ahead| ahead.paused && stops(ahead.root));
    ahead.map(|ahead| Member::Root((port, lane, ahead.root))).collect()
}

/// The leaves that are paused because of a member: leaves of packets, and of queue pairs.
fn leaves(world: &World, (port, lane, root): Key) -> Vec<u32> {
    let Some(roots) = world.roots(port) else { return Vec::new() };
    let leaves = &world.home_of_port(port).egress.leaves;
    let host = world.plan.topology.nodes[world.port(port).node as usize].kind == NodeKind::Host;
    let queues = roots.queues_of(port, lane, root);
    let own = queues.iter().filter(|_| host).map(|&queue| roots.pairs_of(queue));
    let all = queues.iter().copied().chain(own).map(|queue| leaves.numbered(port, lane, queue));
    all.filter(|&leaf| leaves.get(leaf).paused).collect()
}

/// Whether something waits in one of its leaves.
pub fn filled(world: &World, key: Key) -> bool {
    let core = world.home_of_port(key.0);
    leaves(world, key).iter().any(|&leaf| core.egress.queues[core.egress.leaves.list(leaf)].head != NONE)
}

/// Since when one of its leaves has been paused, for one root or another; `None` if it has no leaf.
pub fn since(world: &World, key: Key) -> Option<Time> {
    let core = world.home_of_port(key.0);
    let standing = leaves(world, key).into_iter().map(|leaf| core.egress.leaves.get(leaf).standing);
    standing.map(|pause| core.observed.pauses[pause as usize].from).min()
}

/// The packets that wait in its isolation queues.
pub fn packets<'w>(world: &World<'w, '_>, (port, lane, root): Key) -> Vec<&'w Packet> {
    let leaves = &world.home_of_port(port).egress.leaves;
    let queues = world.roots(port).map(|roots| roots.queues_of(port, lane, root));
    let lists = queues.into_iter().flatten().map(|queue| leaves.list(leaves.numbered(port, lane, queue)));
    lists.flat_map(|list| world.packets_of(port, list)).collect()
}
