//! The deadlock oracle where queues are paused root by root (Pyrrha).
//!
//! A port P that has been told to stop for root r goes on when the device D behind it
//! says so, and that is when no queue of D wants P stopped for r any more:
//!
//! - the output queue of r, if r is a port of D, wants it while it is longer than
//!   K_resume. It is never paused, so that it drains; unless it belongs to a host that
//!   has stopped reading;
//! - an isolation queue of r at another port p of D wants it until its own pause ends
//!   and all queues of r at p are down to K_resume. So P waits for (p, r) if that is
//!   paused; and for (p, s), if root s shares a queue of r at p that is longer than
//!   K_resume, and s is paused.
//!
//! Begin with all pairs of a port and a root that is paused there, and strike out each
//! one that waits for none of the set: its resume is sent already, or will be. What is
//! left when nothing more can be struck out (the greatest fixpoint) stands: its queues
//! are paused, nothing leaves them, and so nobody there lets go of anybody upstream.
//! Frames under way change nothing, but for one: a MERGE, where a root of the set finds
//! that it was none.
//!
//! Pairs of a host's own port stand for the queue pairs that it holds back as well.

use crate::outcome::{Deadlock, Held, RootAhead, RootsAtPort, Wait};
use crate::packet::NONE;
use crate::world::World;
use std::collections::{BTreeMap, BTreeSet};
use xoff_kernel::time::Time;
use xoff_schemes::flow_control::FlowControl;
use xoff_schemes::flow_control::pyrrha::Pyrrha;

/// A root that is paused at a port: the port, its lane, and the root.
pub type Key = (u32, u8, u32);

/// What wants a port stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// Who must go on first; `None`: a host that has stopped reading.
    pub by: Option<Key>,
    /// The port whose queue it is.
    pub port: u32,
    /// Bytes in it.
    pub bytes: u64,
}

/// Those who stand, each with what holds it.
type Stuck = BTreeMap<Key, Vec<Hold>>;

/// Pyrrha on the device of a port.
pub fn pyrrha<'w>(world: &World<'w, '_>, port: u32) -> &'w Pyrrha {
    match world.flow_control(port) {
        FlowControl::Pyrrha(pyrrha) => pyrrha,
        _ => unreachable!("whoever pulls is Pyrrha"),
    }
}

/// Bytes in numbered queue `queue` of a port.
pub fn bytes(world: &World, port: u32, lane: u8, queue: u16) -> u64 {
    world.home_of_port(port).pulled_bytes(port, lane, queue)
}

/// Everything that wants `(port, lane, root)` stopped and may want it for ever.
pub fn holds(world: &World, (port, lane, root): Key, stalls: bool) -> Vec<Hold> {
    let topology = &world.plan.topology;
    let ingress = topology.ports[port as usize].peer;
    let device = topology.ports[ingress as usize].node;
    let pyrrha = pyrrha(world, ingress);
    let mut holds = Vec::new();
    for &by in &topology.nodes[device as usize].ports {
        if by == root {
            let reads = |r: &xoff_plan::plan::Receiver| r.rx == by && world.port(by).paused != 0;
            let stalled = stalls && world.plan.receivers.iter().any(reads);
            if stalled && pyrrha.stopped_by_oq(by, lane).contains(&ingress) {
                holds.push(Hold { by: None, port: by, bytes: bytes(world, by, lane, 0) });
            }
            continue;
        }
        let Some(ahead) = pyrrha.root_ahead(by, lane, root) else { continue };
        if !ahead.holding().contains(&ingress) {
            continue;
        }
        let queues = ahead.queues();
        if ahead.paused() {
            let bytes = queues.iter().map(|&queue| bytes(world, by, lane, queue)).sum();
            holds.push(Hold { by: Some((by, lane, root)), port: by, bytes });
        }
        for queue in queues {
            let bytes = bytes(world, by, lane, queue);
            if bytes <= pyrrha.k_resume(by) {
                continue;
            }
            let paused = |s: u32| pyrrha.root_ahead(by, lane, s).is_some_and(|a| a.paused());
            let others = ahead.sharing(queue).iter().filter(|&&s| s != root && paused(s));
            holds.extend(others.map(|&s| Hold { by: Some((by, lane, s)), port: by, bytes }));
        }
    }
    holds
}

/// All pairs of a port and a root that is paused there.
pub fn candidates(world: &World) -> Vec<Key> {
    let lanes = world.lanes() as u8;
    let ports = 0..world.plan.topology.ports.len() as u32;
    let lanes = ports.flat_map(|port| (0..lanes).map(move |lane| (port, lane)));
    let pairs = lanes.flat_map(|(port, lane)| {
        let paused = pyrrha(world, port).ahead(port, lane).filter(|ahead| ahead.paused());
        paused.map(move |ahead| (port, lane, ahead.root()))
    });
    pairs.collect()
}

/// The greatest fixpoint; with `stalls` a host that has stopped reading holds what
/// waits for it.
fn stuck(world: &World, stalls: bool) -> Stuck {
    let mut set: Stuck = candidates(world).into_iter().map(|key| (key, holds(world, key, stalls))).collect();
    loop {
        let members: BTreeSet<Key> = set.keys().copied().collect();
        for holds in set.values_mut() {
            holds.retain(|hold| hold.by.is_none_or(|by| members.contains(&by)));
        }
        set.retain(|_, holds| !holds.is_empty());
        if set.len() == members.len() {
            break;
        }
    }
    for holds in set.values_mut() {
        // What holds most comes first; port and root decide ties.
        holds.sort_by_key(|h| (std::cmp::Reverse(h.bytes), h.by));
    }
    set
}

/// The leaves that stand still because of a pair: those of packets and of queue pairs.
fn leaves(world: &World, (port, lane, root): Key) -> Vec<u32> {
    let pyrrha = pyrrha(world, port);
    let leaves = &world.home_of_port(port).leaves;
    let node = world.plan.topology.ports[port as usize].node;
    let host = world.plan.topology.nodes[node as usize].kind == xoff_net::topology::NodeKind::Host;
    let queues = pyrrha.root_ahead(port, lane, root).map(|ahead| ahead.queues()).unwrap_or_default();
    let own = queues.iter().filter(|_| host).map(|&queue| pyrrha.pairs_of(queue));
    let all = queues.iter().copied().chain(own).map(|queue| leaves.numbered(port, lane, queue));
    all.filter(|&leaf| leaves.get(leaf).paused).collect()
}

/// Whether something waits in one of its leaves.
pub fn filled(world: &World, key: Key) -> bool {
    let core = world.home_of_port(key.0);
    leaves(world, key).iter().any(|&leaf| core.queues[core.leaves.list(leaf)].head != NONE)
}

/// Since when one of its leaves has been paused, for one root or another; `None` if
/// it has no leaf.
pub fn since(world: &World, key: Key) -> Option<Time> {
    let core = world.home_of_port(key.0);
    let standing = leaves(world, key).into_iter().map(|leaf| core.leaves.get(leaf).standing);
    standing.map(|pause| core.observed.pauses[pause as usize].from).min()
}

/// Bytes of packets that wait in its queues, and whose they are.
pub fn waiting_packets(world: &World, (port, lane, root): Key) -> (u64, BTreeSet<u32>) {
    let core = world.home_of_port(port);
    let (mut sum, mut flows) = (0, BTreeSet::new());
    let queues = pyrrha(world, port).root_ahead(port, lane, root).map(|ahead| ahead.queues());
    for queue in queues.into_iter().flatten() {
        let list = &core.queues[core.leaves.list(core.leaves.numbered(port, lane, queue))];
        sum += list.bytes;
        let mut next = list.head;
        while next != NONE {
            let packet = &core.packets[next];
            flows.insert(packet.flow);
            next = packet.next;
        }
    }
    (sum, flows)
}

fn ingress_of(world: &World, key: Key) -> u32 {
    world.plan.topology.ports[key.0 as usize].peer
}

/// Looks for a deadlock at time `now`: something waits, and for ever.
pub fn look(world: &World, now: Time) -> Option<Deadlock> {
    let set = stuck(world, false);
    let by = |key: Key| set[&key][0].by.expect("nobody has stopped reading");
    // From any member, what holds most of it, and so on, runs into a cycle.
    let mut key = *set.keys().find(|&&key| filled(world, key))?;
    let mut order = Vec::new();
    while !order.contains(&key) {
        order.push(key);
        key = by(key);
    }
    let start = order.iter().position(|&k| k == key).unwrap_or(0);
    let members = &order[start..];
    let cycle = members.iter().map(|&member| {
        let by = by(member);
        let (bytes, flows) = waiting_packets(world, by);
        Held { port: by.0, lane: by.1, bytes, flows: flows.into_iter().collect() }
    });
    let stuck: BTreeSet<(u32, u8)> = set.keys().map(|&key| (ingress_of(world, key), key.1)).collect();
    Some(Deadlock {
        closed: members.iter().filter_map(|&member| since(world, member)).max().unwrap_or(now),
        seen: now,
        ended: None,
        cycle: cycle.collect(),
        stuck: stuck.into_iter().collect(),
    })
}

/// Who waits for whom and will not move.
pub fn waiting(world: &World) -> Vec<Wait> {
    let set = stuck(world, true);
    set.keys()
        .filter(|&&key| filled(world, key))
        .map(|&key| {
            let mut seen = BTreeSet::new();
            let mut at = key;
            let root = loop {
                let hold = set[&at][0];
                let Some(by) = hold.by else { break Some(world.port(hold.port).node) };
                if !seen.insert(at) {
                    break None;
                }
                at = by;
            };
            Wait {
                port: key.0,
                lane: key.1,
                bytes: waiting_packets(world, key).0,
                since: since(world, key).expect("a leaf that is filled is paused"),
                waits_for: ingress_of(world, key),
                root,
            }
        })
        .collect()
}

/// Ports that are roots, or know of any, as they stand; none where nothing is pulled.
pub fn roots(world: &World) -> Vec<RootsAtPort> {
    if !world.cores[0].leaves.pulls {
        return Vec::new();
    }
    let mut all = Vec::new();
    for port in 0..world.plan.topology.ports.len() as u32 {
        for lane in 0..world.lanes() as u8 {
            let pyrrha = pyrrha(world, port);
            let is_root = pyrrha.is_root(port, lane);
            let ahead = pyrrha.ahead(port, lane).map(|ahead| RootAhead {
                root: ahead.root(),
                paused: ahead.paused(),
                queues: ahead.queues(),
                bytes: ahead.queues().iter().map(|&queue| bytes(world, port, lane, queue)).sum(),
            });
            let mut ahead: Vec<RootAhead> = ahead.collect();
            ahead.sort_by_key(|a| a.root);
            if is_root || !ahead.is_empty() {
                let output_bytes = bytes(world, port, lane, 0);
                all.push(RootsAtPort { port, lane, is_root, output_bytes, ahead });
            }
        }
    }
    all
}
