//! Queues that are pulled (Pyrrha): a packet joins an isolation queue, and when its turn
//! comes there it goes on to a further one, or behind the packets of queue 0, whose
//! first one is sent in its place. A turn that leads into a paused queue sends nothing
//! and takes no time on the wire. A host's queue pairs move alike, until they stand in
//! the queue that is theirs by what is paused now.

use crate::by_flow::{own_left, waits};
use crate::core::Core;
use crate::packet::{Kind, NONE};
use xoff_schemes::flow_control::{FlowControl, Passing};

/// Puts a packet into its queue of `port`; it is charged to its ingress already. The
/// caller then kicks the port.
#[inline(never)]
pub fn enqueue(core: &mut Core, flow_control: &mut FlowControl, port: u32, id: u32) {
    let packet = &mut core.packets[id];
    packet.set_upstream(0);
    let lane = packet.lane;
    if !waits(core, id) {
        return core.enqueue(port, 1 + usize::from(lane), id);
    }
    let FlowControl::Pyrrha(pyrrha) = flow_control else { unreachable!("whoever pulls is Pyrrha") };
    if pyrrha.is_quiet(port, lane) {
        // It can only join queue 0, and nobody cares while that is short.
        let leaf = core.leaves.numbered(port, lane, 0);
        core.leaf_append(leaf, id);
        if core.queues[core.leaves.list(leaf)].bytes <= pyrrha.k_pause(port) {
            return;
        }
        let mut passing = core.passing(port, id);
        return told(core, flow_control, leaf, &mut passing);
    }
    let mut passing = core.passing(port, id);
    passing.queue = flow_control.classify(core, &mut passing);
    join(core, flow_control, id, &mut passing);
}

/// A packet joins the queue that the scheme has chosen.
fn join(core: &mut Core, flow_control: &mut FlowControl, id: u32, passing: &mut Passing) {
    core.packets[id].set_upstream(passing.passed);
    let leaf = core.leaves.numbered(passing.port, passing.lane, passing.queue);
    core.leaf_append(leaf, id);
    told(core, flow_control, leaf, passing);
}

/// Tells the scheme that a packet has joined `leaf`.
fn told(core: &mut Core, flow_control: &mut FlowControl, leaf: u32, passing: &mut Passing) {
    passing.queued = core.queues[core.leaves.list(leaf)].bytes;
    if let Some(oracle) = &mut core.blocking {
        oracle.grows(leaf);
    }
    flow_control.enqueued(core, passing);
    if let Some(oracle) = &mut core.blocking {
        oracle.grows(NONE);
    }
}

/// Takes the first packet of a leaf.
fn take(core: &mut Core, flow_control: &mut FlowControl, leaf: u32) -> u32 {
    let port = core.leaves.get(leaf).port;
    let id = core.leaf_take(leaf);
    let lane = core.packets[id].lane;
    let number = core.leaves.number(leaf, lane);
    let FlowControl::Pyrrha(pyrrha) = flow_control else { unreachable!("whoever pulls is Pyrrha") };
    if number > 0 || !pyrrha.is_quiet(port, lane) {
        let mut passing = core.passing(port, id);
        passing.queue = number;
        passing.queued = core.queues[core.leaves.list(leaf)].bytes;
        flow_control.left(core, &mut passing);
    }
    id
}

/// Takes the first packet that waits in a group's leaves, in whatever order; those of
/// its own list excepted.
#[cold]
pub fn drain(core: &mut Core, flow_control: &mut FlowControl, port: u32, queue: usize) -> Option<u32> {
    let leaf = core.leaves.first(port, queue)?;
    Some(take(core, flow_control, leaf))
}

/// Takes the packet to send from a group that is ready; [`NONE`] if all turns led into
/// paused queues.
#[inline(never)]
pub fn serve(core: &mut Core, flow_control: &mut FlowControl, port: u32, queue: usize) -> u32 {
    if queue > core.lanes {
        return serve_own(core, flow_control, port, queue);
    }
    let first = core.queues[core.ports[port as usize].first_queue as usize + queue].head;
    if first != NONE {
        let id = core.dequeue(port, queue);
        if core.leaves.active(port, queue) > 0 {
            core.ports[port as usize].ready |= 1 << queue;
        }
        return id;
    }
    if matches!(flow_control, FlowControl::Pyrrha(pyrrha) if pyrrha.pushes()) {
        push(core, flow_control, port, queue);
    }
    while core.leaves.active(port, queue) > 0 {
        let packets = &core.packets;
        let (leaf, _) = core.leaves.settle(port, queue, &core.queues, |q| packets[q.head].size);
        let lane = (queue - 1) as u8;
        let id = match core.leaves.number(leaf, lane) {
            0 => take(core, flow_control, leaf),
            _ => pull(core, flow_control, leaf, lane),
        };
        if id != NONE {
            let size = core.packets[id].size;
            let leaf = core.leaves.get_mut(leaf);
            leaf.deficit = leaf.deficit.saturating_sub(size);
            return id;
        }
    }
    NONE
}

/// Every isolation queue that may send gives its first packet to the one that it goes on
/// to (see `Variant::push` of Pyrrha).
#[cold]
fn push(core: &mut Core, flow_control: &mut FlowControl, port: u32, queue: usize) {
    let lane = (queue - 1) as u8;
    for leaf in core.leaves.ring_of(port, queue) {
        let number = core.leaves.number(leaf, lane);
        if number == 0 || core.queues[core.leaves.list(leaf)].head == NONE {
            continue;
        }
        let id = take(core, flow_control, leaf);
        let mut passing = core.passing(port, id);
        passing.queue = number;
        passing.passed = core.packets[id].upstream();
        passing.queue = flow_control.onward(core, &mut passing);
        core.moved(leaf, id);
        // To the output queue like what arrives: it may be congested by this.
        join(core, flow_control, id, &mut passing);
    }
}

/// It is the turn of an isolation queue: its first packet goes on, and so does what it
/// pushes ahead. Answers the packet to send, or [`NONE`].
fn pull(core: &mut Core, flow_control: &mut FlowControl, mut leaf: u32, lane: u8) -> u32 {
    let port = core.leaves.get(leaf).port;
    loop {
        let number = core.leaves.number(leaf, lane);
        let id = take(core, flow_control, leaf);
        let mut passing = core.passing(port, id);
        passing.queue = number;
        passing.passed = core.packets[id].upstream();
        let next = flow_control.onward(core, &mut passing);
        let to = core.leaves.numbered(port, lane, next);
        if next == 0 {
            if core.queues[core.leaves.list(to)].head == NONE {
                return id;
            }
            core.leaf_append(to, id);
            core.moved(leaf, id);
            return take(core, flow_control, to);
        }
        core.moved(leaf, id);
        passing.queue = next;
        join(core, flow_control, id, &mut passing);
        if core.leaves.get(to).paused {
            return NONE;
        }
        leaf = to;
    }
}

/// Makes the packet of the queue pair whose turn it is; [`NONE`] if all are held back.
fn serve_own(core: &mut Core, flow_control: &mut FlowControl, port: u32, queue: usize) -> u32 {
    while core.leaves.active(port, queue) > 0 {
        let senders = &core.senders;
        let (leaf, size) =
            core.leaves.settle(port, queue, &core.queues, |q| senders[q.head as usize].next_size());
        let flow = core.queues[core.leaves.list(leaf)].head;
        let mut passing = core.passing_flow(flow);
        passing.queue = core.leaves.number(leaf, passing.lane);
        let now = flow_control.onward(core, &mut passing);
        let to = core.leaves.numbered(port, passing.lane, now);
        if to != leaf {
            core.leaf_shift(leaf);
            flow_control.left(core, &mut passing);
            core.leaves.assign(flow, to);
            core.leaf_join(to, flow);
            passing.queue = now;
            flow_control.enqueued(core, &mut passing);
            continue;
        }
        // Where roots share a queue, it may have been paused by the question.
        if core.leaves.get(leaf).paused {
            continue;
        }
        core.leaves.get_mut(leaf).deficit -= size;
        let id = core.serve_ring(port, queue);
        let at = core.ports[port as usize].first_queue as usize + queue;
        core.queues[at].data_packets += 1;
        if !core.senders[flow as usize].ready() {
            own_left(core, flow_control, flow);
        }
        return id;
    }
    NONE
}

impl Core<'_> {
    /// A packet that left `leaf` was not sent.
    fn moved(&mut self, leaf: u32, id: u32) {
        let leaf = self.leaves.get(leaf);
        let group = self.ports[leaf.port as usize].first_queue as usize + usize::from(leaf.queue);
        self.queues[group].data_packets -= u64::from(self.packets[id].kind == Kind::Data);
    }
}
