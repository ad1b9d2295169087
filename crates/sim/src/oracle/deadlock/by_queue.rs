//! Pauses of queues: a member is a paused queue, for all that keeps it paused at the next device.
//!
//! Where packets are counted against the queue that they came from, it resumes when every counted packet has
//! left the next device. It is struck out if none of them lies in a queue of the set. Where queues of a port
//! downstream pause it together ([`Pausers`]), it resumes when they, or the longest of them, are down to their
//! resume level. It is struck out if the bytes in those that are of the set are no more than that.
//!
//! These pauses need not settle: a frame or packet in flight changes nothing about packets that cannot move.

use super::{Hold, Member, Set, Stalled};
use crate::packet::{NONE, Packet};
use crate::world::World;
use std::collections::BTreeMap;
use xoff_kernel::time::Time;
use xoff_schemes::flow_control::{PauseScope, seen::Pausers};

pub fn place(world: &World, leaf: u32) -> (u32, u8) {
    let core = world.cores[0];
    let leaf = core.egress.leaves.get(leaf);
    (leaf.port, core.lane_of(leaf))
}

pub fn since(world: &World, leaf: u32) -> Time {
    let core = world.home_of_port(place(world, leaf).0);
    core.observed.pauses[core.egress.leaves.get(leaf).standing as usize].from
}

/// Whether packets or queue pairs wait in a leaf.
fn filled(world: &World, leaf: u32) -> bool {
    let core = world.home_of_port(place(world, leaf).0);
    core.egress.queues[core.egress.leaves.list(leaf)].head != NONE
}

/// The packets in a leaf; none in a leaf of queue pairs.
pub fn packets<'w>(world: &World<'w, '_>, leaf: u32) -> impl Iterator<Item = &'w Packet> {
    let leaves = &world.cores[0].egress.leaves;
    let (port, lane) = place(world, leaf);
    let forwards = leaves.get(leaf).queue == 1 + u16::from(lane);
    forwards.then(|| world.packets_of(port, leaves.list(leaf))).into_iter().flatten()
}

/// The leaf upstream that a packet came from, if it is counted against it.
pub fn counted_against(world: &World, packet: &Packet) -> Option<u32> {
    // Only packets that came through a port are counted.
    packet.counted().then(|| {
        let upstream = world.peer(packet.account / world.lanes());
        world.cores[0].egress.leaves.numbered(upstream, packet.lane, packet.upstream())
    })
}

/// The queues that pause a leaf together, if any do.
fn pausers(world: &World, leaf: u32) -> Option<Pausers> {
    let (port, _) = place(world, leaf);
    world.plan.flow_control.onward_queues()?.pausers(port, world.cores[0].egress.leaves.number(leaf))
}

/// Whether the bytes in these queues keep a leaf from its resume level.
pub fn full(world: &World, leaf: u32, holds: &[Hold]) -> bool {
    let (alone, resume) = pausers(world, leaf).map_or((false, 0), |pausers| (pausers.alone, pausers.resume));
    let bytes = holds.iter().map(|h| h.bytes);
    let held = if alone { bytes.max().unwrap_or(0) } else { bytes.sum() };
    held > resume
}

/// Adds the paused queues that are not empty.
pub fn add(world: &World, set: &mut Set) {
    let leaves = &world.cores[0].egress.leaves;
    let paused = world.open_pauses().filter_map(|p| Some(leaves.numbered(p.port, p.lane, p.queue? as u16)));
    set.extend(paused.filter(|&leaf| filled(world, leaf)).map(|leaf| (Member::Queue(leaf), Vec::new())));
}

/// Adds the reasons of the pauses of a set's queues.
pub fn add_holds(world: &World, set: &mut Set, stalled: &Stalled) {
    match world.plan.flow_control.traits().pause_scope {
        PauseScope::Queue { .. } => add_counted(world, set, stalled),
        PauseScope::Onward => add_onward(world, set),
        _ => {}
    }
}

/// The queues of a set.
fn queues(set: &Set) -> Vec<u32> {
    let queue = |member: &Member| match *member {
        Member::Queue(leaf) => Some(leaf),
        Member::Account(_) | Member::Root(_) => None,
    };
    set.keys().filter_map(queue).collect()
}

fn add_onward(world: &World, set: &mut Set) {
    let leaves = &world.cores[0].egress.leaves;
    for leaf in queues(set) {
        let Some(Pausers { port, queues, .. }) = pausers(world, leaf) else { continue };
        let lane = place(world, leaf).1;
        let queues = queues.map(|queue| leaves.numbered(port, lane, queue));
        let paused = queues.filter(|&queue| set.contains_key(&Member::Queue(queue)));
        let holds = paused.map(|queue| {
            let bytes = packets(world, queue).map(|p| u64::from(p.size)).sum();
            Hold { by: vec![Member::Queue(queue)], port, account: NONE, bytes, whole: true }
        });
        let holds: Vec<Hold> = holds.collect();
        set.entry(Member::Queue(leaf)).or_default().extend(holds);
    }
}

fn add_counted(world: &World, set: &mut Set, stalled: &Stalled) {
    let held = queues(set).into_iter().map(|leaf| (leaf, vec![Member::Queue(leaf)]));
    let unread = stalled.iter().flat_map(|&(rx, lane)| world.home_of_port(rx).forwarding_leaves(rx, lane));
    for (leaf, by) in held.chain(unread.map(|leaf| (leaf, Vec::new()))) {
        let mut bytes: BTreeMap<u32, u64> = BTreeMap::new();
        for packet in packets(world, leaf) {
            if let Some(upstream) = counted_against(world, packet) {
                *bytes.entry(upstream).or_default() += u64::from(packet.size);
            }
        }
        for (upstream, bytes) in bytes {
            if let Some(holds) = set.get_mut(&Member::Queue(upstream)) {
                holds.push(Hold {
                    by: by.clone(),
                    port: place(world, leaf).0,
                    account: NONE,
                    bytes,
                    whole: false,
                });
            }
        }
    }
}
