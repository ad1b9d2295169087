//! Queues that are pulled: a packet joins an isolation queue, a leaf, and at its turn it moves to a further
//! one, or after the packets of queue 0, the group's own list, whose first one is sent in its place. A turn
//! that leads into a paused queue sends nothing and takes no time on the wire. A host's queue pairs move
//! alike, until they are in their queue by the present pauses.

use crate::packet::{Kind, NONE};
use crate::switch::leaves::{Leaf, Turn};
use crate::switch::lists::{make, waits};
use crate::{core::Core, features::Features, switch::port::Queue};
use xoff_schemes::flow_control::{FlowControl, Pulled, QueueEntry, Scheme};

/// Puts a packet, already charged to its ingress, into its queue of `port`. The caller then kicks the port.
#[inline(never)]
pub fn enqueue(core: &mut Core, scheme: &mut FlowControl, port: u32, id: u32) {
    let packet = &mut core.packets[id];
    packet.set_upstream(0);
    let lane = packet.lane;
    if !waits(core, id) {
        // ACKs that do not wait as data does are in leaf 0, which has the number of the output queue.
        return core.leaf_append(core.egress.leaves.numbered(port, lane, 0), id);
    }
    let quiet = pulled(scheme).quiet_up_to(port, lane);
    if quiet > 0 {
        // It can only join the output queue, and its length does not matter while it is short.
        let queue = 1 + usize::from(lane);
        core.enqueue(port, queue, id);
        let all = core.egress.queues[core.egress.at(port, queue)].bytes;
        if all <= quiet || core.pulled_bytes(port, lane, 0) <= quiet {
            return;
        }
        let mut entry = core.entry(port, id);
        return notify(core, scheme, &mut entry);
    }
    let mut entry = core.entry(port, id);
    entry.queue = scheme.classify(core, &mut entry);
    join(core, scheme, id, &mut entry);
}

fn pulled(scheme: &FlowControl) -> &Pulled {
    scheme.pulled().expect("its queues are pulled")
}

/// A packet joins the queue that the scheme has chosen.
fn join(core: &mut Core, scheme: &mut FlowControl, id: u32, entry: &mut QueueEntry) {
    core.packets[id].set_upstream(entry.passed);
    // The scheme may have written another place into it.
    core.check_place(entry.port, entry.lane);
    match entry.queue {
        0 => core.enqueue(entry.port, 1 + usize::from(entry.lane), id),
        number => core.leaf_append(core.egress.leaves.numbered(entry.port, entry.lane, number), id),
    }
    notify(core, scheme, entry);
}

/// Informs the scheme that a packet has joined its queue.
fn notify(core: &mut Core, scheme: &mut FlowControl, entry: &mut QueueEntry) {
    entry.queued = core.pulled_bytes(entry.port, entry.lane, entry.queue);
    if core.blocking.is_some() {
        core.grows(core.egress.leaves.numbered(entry.port, entry.lane, entry.queue));
    }
    scheme.enqueued(core, entry);
    core.grows(NONE);
}

fn take_first(core: &mut Core, scheme: &mut FlowControl, port: u32, queue: usize) -> u32 {
    let id = core.dequeue(port, queue);
    if core.egress.leaves.active(port, queue) > 0 {
        core.egress.ports[port as usize].ready |= 1 << queue;
    }
    if pulled(scheme).quiet_up_to(port, (queue - 1) as u8) == 0 {
        left(core, scheme, port, id, 0);
    }
    id
}

fn take(core: &mut Core, scheme: &mut FlowControl, leaf: u32) -> u32 {
    let port = core.egress.leaves.get(leaf).port;
    let id = core.leaf_take(leaf);
    match core.egress.leaves.number(leaf) {
        // An ACK that goes apart.
        0 => {}
        number => left(core, scheme, port, id, number),
    }
    id
}

/// Informs the scheme that a packet has left a queue.
fn left(core: &mut Core, scheme: &mut FlowControl, port: u32, id: u32, number: u16) {
    let mut entry = core.entry(port, id);
    entry.queue = number;
    entry.queued = core.pulled_bytes(port, entry.lane, number);
    scheme.left(core, &mut entry);
}

/// Takes the first packet that waits in a group, in any order of its queues.
#[cold]
pub fn drain(core: &mut Core, scheme: &mut FlowControl, port: u32, queue: usize) -> Option<u32> {
    if core.egress.queues[core.egress.at(port, queue)].head != NONE {
        return Some(take_first(core, scheme, port, queue));
    }
    let leaf = core.egress.leaves.first(port, queue)?;
    Some(take(core, scheme, leaf))
}

/// Takes the packet to send from a group that is ready; [`NONE`] if all turns led into paused queues.
#[inline(never)]
pub fn serve<F: Features>(core: &mut Core, scheme: &mut FlowControl, port: u32, queue: usize) -> u32 {
    if queue > core.lanes {
        return serve_own::<F>(core, scheme, port, queue);
    }
    let quiet = pulled(scheme).quiet_up_to(port, (queue - 1) as u8) > 0;
    if quiet && !core.egress.leaves.apart() {
        debug_assert_eq!(core.egress.leaves.active(port, queue), 0, "what waits apart waits for a root");
        return core.dequeue(port, queue);
    }
    if core.egress.leaves.active(port, queue) == 0 {
        return take_first(core, scheme, port, queue);
    }
    serve_in_turn(core, scheme, port, queue)
}

/// The same, if leaves are in the ring.
fn serve_in_turn(core: &mut Core, scheme: &mut FlowControl, port: u32, queue: usize) -> u32 {
    let lane = (queue - 1) as u8;
    let apart = core.egress.leaves.numbered(port, lane, 0);
    if core.egress.leaves.apart() && core.egress.queues[core.egress.leaves.list(apart)].head != NONE {
        return take(core, scheme, apart);
    }
    if pulled(scheme).pushes {
        push(core, scheme, port, queue);
    }
    let at = core.egress.at(port, queue);
    while core.egress.leaves.active(port, queue) > 0 {
        let packets = &core.packets;
        let first = core.egress.queues[at].head;
        let own = (first != NONE).then(|| packets[first].size);
        let turn = core.egress.leaves.turn(port, queue, own, &core.egress.queues, |q| packets[q.head].size);
        let Turn::Leaf(leaf) = turn else { return take_first(core, scheme, port, queue) };
        let id = pull(core, scheme, leaf, lane);
        if id != NONE {
            let size = core.packets[id].size;
            let leaf = core.egress.leaves.get_mut(leaf);
            leaf.deficit = leaf.deficit.saturating_sub(size);
            return id;
        }
    }
    match core.egress.queues[at].head {
        NONE => NONE,
        _ => take_first(core, scheme, port, queue),
    }
}

/// Every isolation queue that may send gives its first packet to the next one (see [`Pulled::pushes`]).
#[cold]
fn push(core: &mut Core, scheme: &mut FlowControl, port: u32, queue: usize) {
    for leaf in core.egress.leaves.ring_of(port, queue) {
        if core.egress.queues[core.egress.leaves.list(leaf)].head == NONE {
            continue;
        }
        let id = take(core, scheme, leaf);
        let mut entry = core.entry(port, id);
        entry.queue = core.egress.leaves.number(leaf);
        entry.passed = core.packets[id].upstream();
        entry.queue = scheme.onward(core, &mut entry);
        core.moved(leaf, id);
        // To the output queue, like an arriving packet: it may become congested.
        join(core, scheme, id, &mut entry);
    }
}

/// It is the turn of an isolation queue: its first packet moves, and so does the packet that it replaces.
/// Returns the packet to send, or [`NONE`].
fn pull(core: &mut Core, scheme: &mut FlowControl, mut leaf: u32, lane: u8) -> u32 {
    let &Leaf { port, queue, .. } = core.egress.leaves.get(leaf);
    let queue = usize::from(queue);
    loop {
        let id = take(core, scheme, leaf);
        let mut entry = core.entry(port, id);
        entry.queue = core.egress.leaves.number(leaf);
        entry.passed = core.packets[id].upstream();
        let next = scheme.onward(core, &mut entry);
        if next == 0 {
            if core.egress.queues[core.egress.at(port, queue)].head == NONE {
                return id;
            }
            core.enqueue(port, queue, id);
            core.moved(leaf, id);
            return take_first(core, scheme, port, queue);
        }
        core.moved(leaf, id);
        entry.queue = next;
        join(core, scheme, id, &mut entry);
        leaf = core.egress.leaves.numbered(port, lane, next);
        if core.egress.leaves.get(leaf).paused {
            return NONE;
        }
    }
}

/// Makes the packet of the queue pair whose turn it is; [`NONE`] if all are held back.
fn serve_own<F: Features>(core: &mut Core, scheme: &mut FlowControl, port: u32, queue: usize) -> u32 {
    while core.egress.leaves.active(port, queue) > 0 {
        let (senders, leaves) = (&core.hosts.senders, &mut core.egress.leaves);
        let size = |q: &Queue| senders[q.head as usize].next_size();
        let (leaf, size) = leaves.settle(port, queue, &core.egress.queues, size);
        let flow = core.egress.queues[core.egress.leaves.list(leaf)].head;
        let lane = (queue - 1 - core.lanes) as u8;
        let pulled = pulled(scheme);
        let free = core.egress.leaves.numbered(port, lane, pulled.free_pairs);
        if pulled.quiet_up_to(port, lane) > 0 && leaf == free {
            return make::<F>(core, scheme, leaf, size);
        }
        let mut entry = core.passing_flow(flow);
        entry.queue = core.egress.leaves.number(leaf);
        let now = scheme.onward(core, &mut entry);
        let to = core.egress.leaves.numbered(port, entry.lane, now);
        if to != leaf {
            core.leaf_shift(leaf);
            scheme.left(core, &mut entry);
            core.egress.leaves.assign(flow, to);
            core.leaf_join(to, flow);
            entry.queue = now;
            scheme.enqueued(core, &mut entry);
            continue;
        }
        if core.egress.leaves.get(leaf).paused {
            // By a root that has come to share its queue just now.
            continue;
        }
        return make::<F>(core, scheme, leaf, size);
    }
    NONE
}

impl Core<'_> {
    /// A packet that left `leaf` was not sent.
    fn moved(&mut self, leaf: u32, id: u32) {
        let group = self.egress.leaves.get(leaf).group;
        self.egress.queues[group as usize].data_packets -= u64::from(self.packets[id].kind == Kind::Data);
    }
}
