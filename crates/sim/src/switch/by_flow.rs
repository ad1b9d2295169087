//! Events at leaves, reported to the flow control: packets that enter and leave them, and a host's queue
//! pairs that get ready or have nothing to send.
//!
//! The functions are marked cold, because then they do not slow runs that do not queue by flow.

use crate::core::Core;
use crate::features::All;
use crate::packet::{Kind, NONE};
use crate::switch::leaves::HostEvent;
use crate::switch::lists::{own_left, waits};
use crate::switch::pull;
use xoff_schemes::flow_control::{FlowControl, QueueEntry, Queueing, Scheme};

impl Core<'_> {
    /// The scheme's view of a packet at `port`.
    pub fn entry(&self, port: u32, id: u32) -> QueueEntry {
        let packet = &self.packets[id];
        let ingress = (packet.account != NONE).then(|| packet.account / self.lanes as u32);
        QueueEntry {
            port,
            lane: packet.lane,
            queue: 0,
            own: false,
            size: packet.size,
            queued: 0,
            hop: packet.hop,
            flow: packet.flow,
            response: packet.kind != Kind::Data,
            ingress,
            upstream: packet.upstream(),
            passed: 0,
            counted: packet.counted(),
            pausing: false,
        }
    }

    /// The scheme's view of a queue pair.
    pub fn passing_flow(&self, flow: u32) -> QueueEntry {
        QueueEntry {
            port: self.hosts.senders[flow as usize].port(),
            lane: self.plan.flows[flow as usize].lane,
            queue: 0,
            own: true,
            size: 0,
            queued: 0,
            hop: self.hosts.senders[flow as usize].path(),
            flow,
            response: false,
            ingress: None,
            upstream: 0,
            passed: 0,
            counted: false,
            pausing: false,
        }
    }
}

/// Puts a packet into its leaf of `port`; it is charged to its ingress already.
/// The caller then kicks the port.
#[cold]
#[inline(never)]
pub fn enqueue(core: &mut Core, flow_control: &mut FlowControl, port: u32, id: u32) {
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
            entry.queue = flow_control.classify(core, &mut entry);
            core.egress.leaves.numbered(port, entry.lane, entry.queue)
        }
        Queueing::PerFlow | Queueing::PerLane => core.egress.leaves.of_packet(entry.flow, port, entry.hop),
    };
    core.leaf_append(leaf, id);
    entry.queued = core.egress.queues[core.egress.leaves.list(leaf)].bytes;
    entry.pausing = core.egress.leaves.get(leaf).pausing;
    if let Some(oracle) = &mut core.blocking {
        oracle.grows(leaf);
    }
    flow_control.enqueued(core, &mut entry);
    if let Some(oracle) = &mut core.blocking {
        oracle.grows(NONE);
    }
    core.packets[id].set_counted(entry.counted);
    core.egress.leaves.get_mut(leaf).pausing = entry.pausing;
}

/// Takes the packet to send from a group that is ready; [`NONE`] if there is none
/// after all.
#[cold]
#[inline(never)]
pub fn serve(core: &mut Core, flow_control: &mut FlowControl, port: u32, queue: usize) -> u32 {
    let lanes = core.lanes;
    if queue > lanes {
        return serve_own(core, flow_control, port, queue);
    }
    let first = core.egress.queues[core.egress.ports[port as usize].first_queue as usize + queue].head;
    if first != NONE {
        let id = core.dequeue(port, queue);
        if core.egress.leaves.active(port, queue) > 0 {
            core.egress.ports[port as usize].ready |= 1 << queue;
        }
        return id;
    }
    let packets = &core.packets;
    let (leaf, size) = core.egress.leaves.settle(port, queue, &core.egress.queues, |q| packets[q.head].size);
    core.egress.leaves.get_mut(leaf).deficit -= size;
    take(core, flow_control, leaf)
}

/// Takes the first packet that waits in a group's leaves, in any order, except those of its own list.
#[cold]
pub fn drain(core: &mut Core, flow_control: &mut FlowControl, port: u32, queue: usize) -> Option<u32> {
    if core.egress.leaves.pulls {
        return pull::drain(core, flow_control, port, queue);
    }
    let leaf = core.egress.leaves.first(port, queue)?;
    Some(take(core, flow_control, leaf))
}

/// Takes the first packet of a leaf, and informs the scheme.
fn take(core: &mut Core, flow_control: &mut FlowControl, leaf: u32) -> u32 {
    let port = core.egress.leaves.get(leaf).port;
    let id = core.leaf_take(leaf);
    let mut entry = core.entry(port, id);
    entry.queue = core.egress.leaves.number(leaf, entry.lane);
    entry.queued = core.egress.queues[core.egress.leaves.list(leaf)].bytes;
    entry.pausing = core.egress.leaves.get(leaf).pausing;
    flow_control.left(core, &mut entry);
    core.egress.leaves.get_mut(leaf).pausing = entry.pausing;
    core.packets[id].set_upstream(entry.queue);
    id
}

/// Makes the packet of the queue pair whose turn it is.
fn serve_own(core: &mut Core, flow_control: &mut FlowControl, port: u32, queue: usize) -> u32 {
    let senders = &core.hosts.senders;
    let (leaf, size) =
        core.egress.leaves.settle(port, queue, &core.egress.queues, |q| senders[q.head as usize].next_size());
    core.egress.leaves.get_mut(leaf).deficit -= size;
    let flow = core.egress.queues[core.egress.leaves.list(leaf)].head;
    let id = core.serve_ring::<All>(port, queue);
    let at = core.egress.ports[port as usize].first_queue as usize + queue;
    core.egress.queues[at].data_packets += 1;
    let number = core.egress.leaves.number(leaf, core.packets[id].lane);
    core.packets[id].set_upstream(number);
    if !core.hosts.senders[flow as usize].ready() {
        own_left(core, flow_control, flow);
    }
    id
}

/// Reports a host event to the scheme; its flow or packet goes into its leaf. The caller then kicks the port.
#[cold]
#[inline(never)]
pub fn report_host_event(core: &mut Core, flow_control: &mut FlowControl) {
    match std::mem::replace(&mut core.egress.host_event, HostEvent::None) {
        HostEvent::None => {}
        HostEvent::Gone(flow) => own_left(core, flow_control, flow),
        HostEvent::Answer(id) => {
            let port = core.hops[core.packets[id].hop as usize];
            match core.egress.leaves.pulls {
                true => pull::enqueue(core, flow_control, port, id),
                false => enqueue(core, flow_control, port, id),
            }
        }
        HostEvent::Flow(flow) => {
            let mut entry = core.passing_flow(flow);
            if let Queueing::Numbered { .. } = core.egress.leaves.queueing {
                entry.queue = flow_control.classify(core, &mut entry);
                let leaf = core.egress.leaves.numbered(entry.port, entry.lane, entry.queue);
                core.egress.leaves.assign(flow, leaf);
            }
            core.leaf_join(core.egress.leaves.of_flow(flow), flow);
            flow_control.enqueued(core, &mut entry);
        }
    }
}
