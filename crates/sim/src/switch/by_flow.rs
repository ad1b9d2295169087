//! Events at leaves, reported to the flow control: packets enter and leave them, and a host's queue pairs get
//! ready or have nothing to send.

use crate::packet::{Kind, NONE};
use crate::switch::lists::{make, own_left, waits};
use crate::switch::{leaves::HostEvent, pull};
use crate::{core::Core, features::Features, host::flow::SenderState};
use xoff_schemes::flow_control::{FlowControl, QueueEntry, Queueing, Scheme};

impl Core<'_> {
    /// The scheme's view of a packet at `port`.
    #[inline(always)]
    pub fn entry(&self, port: u32, id: u32) -> QueueEntry {
        let packet = &self.packets[id];
        let ingress = (packet.account != NONE).then(|| packet.account / self.lanes as u32);
        QueueEntry {
            port,
            lane: packet.lane,
            size: packet.size,
            hop: packet.hop,
            flow: packet.flow,
            response: packet.kind != Kind::Data,
            ingress,
            upstream: packet.upstream(),
            counted: packet.counted(),
            ..QueueEntry::default()
        }
    }

    /// The scheme's view of a queue pair.
    pub fn passing_flow(&self, flow: u32) -> QueueEntry {
        let SenderState { port, path, .. } = self.hosts.senders[flow as usize];
        let lane = self.plan.flows[flow as usize].lane;
        QueueEntry { port, lane, own: true, hop: path, flow, ..QueueEntry::default() }
    }
}

/// Puts a packet, already charged to its ingress, into its leaf of `port`. The caller then kicks the port.
#[inline(never)]
pub fn enqueue(core: &mut Core, scheme: &mut FlowControl, port: u32, id: u32) {
    core.packets[id].set_counted(false);
    if !waits(core, id) {
        let packet = &mut core.packets[id];
        packet.set_upstream(0);
        let lane = usize::from(packet.lane);
        return core.enqueue(port, 1 + lane, id);
    }
    let mut entry = core.entry(port, id);
    let leaf = match core.egress.leaves.queueing {
        Queueing::Numbered { .. } => {
            entry.queue = scheme.classify(core, &mut entry);
            core.egress.leaves.numbered(port, entry.lane, entry.queue)
        }
        Queueing::PerFlow | Queueing::PerLane => core.egress.leaves.of_packet(entry.flow, port, entry.hop),
    };
    core.leaf_append(leaf, id);
    entry.queued = core.egress.queues[core.egress.leaves.list(leaf)].bytes;
    entry.pausing = core.egress.leaves.get(leaf).pausing;
    core.grows(leaf);
    scheme.enqueued(core, &mut entry);
    core.grows(NONE);
    core.packets[id].set_counted(entry.counted);
    core.egress.leaves.get_mut(leaf).pausing = entry.pausing;
}

/// Takes the packet to send from a group that is ready; [`NONE`] if there is none after all.
#[inline(always)]
pub fn serve<F: Features>(core: &mut Core, scheme: &mut FlowControl, port: u32, queue: usize) -> u32 {
    if queue > core.lanes {
        return serve_own::<F>(core, scheme, port, queue);
    }
    if core.egress.waits_apart(port, queue) {
        let id = core.egress.unlink_apart(&core.packets, port, queue);
        core.departed(port, queue, id);
        return id;
    }
    let packets = &core.packets;
    let (leaf, size) = core.egress.leaves.settle(port, queue, &core.egress.queues, |q| packets[q.head].size);
    core.egress.leaves.get_mut(leaf).deficit -= size;
    take(core, scheme, leaf)
}

/// Takes a packet that waits in a group's leaves, in any order, except those of its own list.
#[cold]
pub fn drain(core: &mut Core, scheme: &mut FlowControl, port: u32, queue: usize) -> Option<u32> {
    if core.egress.leaves.pulls {
        return pull::drain(core, scheme, port, queue);
    }
    let leaf = core.egress.leaves.first(port, queue)?;
    Some(take(core, scheme, leaf))
}

/// Takes the first packet of a leaf, and informs the scheme.
#[inline(always)]
fn take(core: &mut Core, scheme: &mut FlowControl, leaf: u32) -> u32 {
    let port = core.egress.leaves.get(leaf).port;
    let id = core.leaf_take(leaf);
    let mut entry = core.entry(port, id);
    entry.queue = core.egress.leaves.number(leaf);
    entry.queued = core.egress.queues[core.egress.leaves.list(leaf)].bytes;
    entry.pausing = core.egress.leaves.get(leaf).pausing;
    scheme.left(core, &mut entry);
    core.egress.leaves.get_mut(leaf).pausing = entry.pausing;
    core.packets[id].set_upstream(entry.queue);
    id
}

/// Makes the packet of the queue pair whose turn it is.
fn serve_own<F: Features>(core: &mut Core, scheme: &mut FlowControl, port: u32, queue: usize) -> u32 {
    let senders = &core.hosts.senders;
    let (leaf, size) =
        core.egress.leaves.settle(port, queue, &core.egress.queues, |q| senders[q.head as usize].next_size());
    let id = make::<F>(core, scheme, leaf, size);
    let number = core.egress.leaves.number(leaf);
    core.packets[id].set_upstream(number);
    id
}

/// Reports a host event to the scheme; its flow or packet goes into its leaf. The caller then kicks the port.
#[cold]
#[inline(never)]
pub fn report_host_event(core: &mut Core, scheme: &mut FlowControl) {
    match std::mem::replace(&mut core.egress.host_event, HostEvent::None) {
        HostEvent::None => {}
        HostEvent::Gone(flow) => own_left(core, scheme, flow),
        HostEvent::Answer(id) => {
            let port = core.hops[core.packets[id].hop as usize];
            match core.egress.leaves.pulls {
                true => pull::enqueue(core, scheme, port, id),
                false => enqueue(core, scheme, port, id),
            }
        }
        HostEvent::Flow(flow) => {
            let mut entry = core.passing_flow(flow);
            if let Queueing::Numbered { .. } = core.egress.leaves.queueing {
                entry.queue = scheme.classify(core, &mut entry);
                let leaf = core.egress.leaves.numbered(entry.port, entry.lane, entry.queue);
                core.egress.leaves.assign(flow, leaf);
            }
            core.leaf_join(core.egress.leaves.of_flow(flow), flow);
            scheme.enqueued(core, &mut entry);
        }
    }
}
