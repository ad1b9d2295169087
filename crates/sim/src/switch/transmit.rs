//! The wire of a port is free: the choice of the packet, and its transmission.

use crate::features::{All, Features};
use crate::packet::{Kind, NONE};
use crate::switch::port::{Port, Queue, Wire};
use crate::switch::{by_flow, failures::purge, leaves::HostEvent, pull, release::release};
use crate::{core::Core, kind};
use xoff_kernel::time::Time;
use xoff_schemes::flow_control::{FlowControl, Mode, Scheme};

/// Something was given to `port`: it starts if it can.
#[inline(always)]
pub fn kick<F: Features>(core: &mut Core, scheme: &mut FlowControl, port: u32) {
    if F::BY_FLOW && core.egress.host_event != HostEvent::None {
        by_flow::report_host_event(core, scheme);
    }
    let p = &mut core.egress.ports[port as usize];
    let idle = p.eligible() == 0 && !(F::EXTRAS && core.links.wants(port, p.free_at.max(core.now)));
    if p.pending || idle {
        if F::EXTRAS && core.is_down(port) {
            purge(core, scheme, port);
        }
        return;
    }
    if p.free_at <= core.now {
        transmit::<F>(core, scheme, port);
    } else {
        p.pending = true;
        let at = p.free_at;
        core.post(at, kind::DECISION, port, 0);
    }
}

/// The wire of `port` is free: the next packet goes, if one may.
#[inline(always)]
pub fn transmit<F: Features>(core: &mut Core, scheme: &mut FlowControl, port: u32) {
    if F::EXTRAS && core.links.used() && core.link_uses(port) {
        return;
    }
    let p = &core.egress.ports[port as usize];
    let eligible = p.eligible();
    if eligible == 0 {
        return;
    }
    let first_queue = p.first_queue as usize;
    let lanes = core.lanes;
    let queue = core.egress.discipline.select(eligible, port, &mut core.egress.rounds, |q| {
        let queue = &core.egress.queues[first_queue + q as usize];
        if F::BY_FLOW && core.egress.leaves.used() && queue.head == NONE {
            if core.egress.leaves.pulls && q as usize <= lanes {
                let list = core.egress.leaves.serving(port, q as usize);
                return core.packets[core.egress.queues[list].head].size;
            }
            let size = |list: &Queue| match q as usize > lanes {
                true => core.hosts.senders[list.head as usize].next_size(),
                false => core.packets[list.head].size,
            };
            return core.egress.leaves.settle(port, q as usize, &core.egress.queues, size).1;
        }
        if q as usize > lanes {
            core.hosts.senders[queue.head as usize].next_size()
        } else {
            core.packets[queue.head].size
        }
    }) as usize;
    let id = if F::BY_FLOW
        && !F::EXTRAS
        && core.egress.leaves.acks_first
        && core.egress.waits_apart(port, queue)
    {
        core.egress.unlink_apart(&core.packets, port, queue)
    } else if (F::HOOKS || F::BY_FLOW) && !core.egress.plain {
        serve::<F>(core, scheme, port, queue)
    } else if queue > lanes {
        core.serve_ring::<F>(port, queue)
    } else {
        let id = core.egress.unlink(&core.packets, port, queue);
        if F::HOOKS {
            core.mark_leaving(port, queue, id);
        }
        id
    };
    if (F::HOOKS || F::BY_FLOW) && id == NONE {
        return nothing_to_send(core, scheme, port);
    }
    let packet = &mut core.packets[id];
    let (size, kind_of, account) = (packet.size, packet.kind, packet.account);
    packet.account = NONE;
    let p = &mut core.egress.ports[port as usize];
    let plan = core.plan;
    let done = core.now + p.wire_time(size, || plan.topology.ports[port as usize].rate);
    p.free_at = done;
    p.bytes += u64::from(size);
    p.packets += 1;
    let (peer, arrival, wire) = (p.peer, done + p.delay, p.wire);
    let more = p.eligible() != 0 || F::EXTRAS && core.links.wants(port, done);
    p.pending = more;
    if wire != Wire::Inner {
        core.observed.counters.packet_hops += 1;
        core.observed.counters.data_hops += u64::from(kind_of == Kind::Data);
    }
    if more {
        core.post(done, kind::DECISION, port, 0);
    }
    if kind_of == Kind::Control || wire >= Wire::Faulty {
        send(core, port, id, arrival);
    } else if wire == Wire::Away {
        core.send_away(usize::from(core.peer_parts[port as usize]), arrival, kind::ARRIVAL, peer, id);
    } else {
        core.post(arrival, kind::ARRIVAL, peer, id);
    }
    if account != NONE {
        release::<F>(core, scheme, account, port, size);
    }
}

/// The ready packets have moved into paused queues, or may not leave. There may be more, and new frames.
#[cold]
fn nothing_to_send(core: &mut Core, scheme: &mut FlowControl, port: u32) {
    core.egress.ports[port as usize].pending = false;
    transmit::<All>(core, scheme, port);
}

/// Takes the next packet of a queue of `port` if a function must be called about it.
#[inline(never)]
fn serve<F: Features>(core: &mut Core, scheme: &mut FlowControl, port: u32, queue: usize) -> u32 {
    if F::EXTRAS && core.egress.loops > 0 && queue > 0 && !passes_barrier(core, scheme, port, queue) {
        return NONE;
    }
    if F::HOOKS && core.egress.asks_to_leave && queue > 0 && !may_leave(core, scheme, port, queue) {
        return NONE;
    }
    let id = if F::BY_FLOW && core.egress.leaves.used() && queue > 0 {
        // Frames that the scheme sends meanwhile wait for the present choice.
        core.egress.ports[port as usize].pending = true;
        match core.egress.leaves.pulls {
            true => pull::serve::<F>(core, scheme, port, queue),
            false => by_flow::serve::<F>(core, scheme, port, queue),
        }
    } else if queue > core.lanes {
        core.serve_ring::<F>(port, queue)
    } else {
        core.dequeue(port, queue)
    };
    if !F::HOOKS || id == NONE {
        return id;
    }
    core.mark_leaving(port, queue, id);
    if !F::EXTRAS {
        return id;
    }
    if core.telemetry.used() && queue > 0 {
        core.add_telemetry(port, queue, id);
    }
    // After that: it may have made the packet longer.
    if core.blocking.as_ref().is_some_and(|oracle| oracle.critical.is_some()) {
        core.departs(port, queue, id);
    }
    id
}

/// Whether the flow control lets the first packet of a queue of `port` go; if not, it has stopped its lane.
fn may_leave(core: &mut Core, scheme: &mut FlowControl, port: u32, queue: usize) -> bool {
    let head = core.egress.queues[core.egress.at(port, queue)].head;
    let (lane, size) = match queue > core.lanes {
        // A host's own CNPs, PULLs and credit go before the leaves.
        _ if core.egress.leaves.used() && !core.egress.waits_apart(port, queue) => {
            next_of_leaves(core, port, queue)
        }
        true => (queue - 1 - core.lanes, core.hosts.senders[head as usize].next_size()),
        // The barrier was checked already.
        false if core.packets[head].kind == Kind::Control => return true,
        false => (queue - 1, core.packets[head].size),
    };
    // Frames that the scheme sends meanwhile wait for the present choice.
    core.egress.ports[port as usize].pending = true;
    let may = scheme.may_leave(core, port, lane as u8, size);
    let eligible = core.egress.ports[port as usize].eligible();
    debug_assert!(may || eligible >> queue & 1 == 0, "else it would be asked again");
    may
}

/// The lane of a group of leaves, and the size of the packet whose turn it is.
fn next_of_leaves(core: &mut Core, port: u32, queue: usize) -> (usize, u32) {
    let egress = &mut core.egress;
    debug_assert!(!egress.leaves.pulls && !egress.leaves.acks_first, "no scheme that is asked has others");
    let (senders, packets) = (&core.hosts.senders, &core.packets);
    let own = queue > core.lanes;
    let size = |list: &Queue| match own {
        true => senders[list.head as usize].next_size(),
        false => packets[list.head].size,
    };
    let (_, size) = egress.leaves.settle(port, queue, &egress.queues, size);
    (if own { queue - 1 - core.lanes } else { queue - 1 }, size)
}

/// Whether the first packet of a queue of `port` is a barrier that ends here: then it is removed.
#[cold]
fn passes_barrier(core: &mut Core, scheme: &mut FlowControl, port: u32, queue: usize) -> bool {
    let head = core.egress.queues[core.egress.at(port, queue)].head;
    if queue > core.lanes || head == NONE || core.packets[head].kind != Kind::Control {
        return true;
    }
    // Frames that the scheme sends meanwhile wait for the present choice.
    core.egress.ports[port as usize].pending = true;
    let frame = *core.frame_of(head);
    let goes = scheme.barrier_leaves(core, port, &frame);
    if !goes {
        let id = core.egress.unlink(&core.packets, port, queue);
        core.take_frame(id);
    }
    goes
}

/// Sends a control frame, or any packet over a link that may lose it or that leads to another part: its last
/// bit is due at the peer at `arrival`.
#[inline(never)]
fn send(core: &mut Core, port: u32, id: u32, arrival: Time) {
    let Port { peer, wire: seen, .. } = core.egress.ports[port as usize];
    let (wire, is_control) = (core.wire_of(port), core.packets[id].kind == Kind::Control);
    if seen == Wire::Special && !is_control && core.mode(port, core.packets[id].lane) == Mode::Forward {
        core.packets[id].set_against(peer);
    }
    if is_control {
        core.observed.control_sent(port, core.frames.get(core.packets[id].number));
    }
    if core.links.has(port) {
        return core.send_numbered(port, id, arrival);
    }
    let lost = wire == Wire::Faulty && core.loses(port, id, arrival);
    if seen == Wire::Special {
        core.tap(port, id, arrival, lost);
    }
    let (at, what) = match is_control && !lost {
        true if core.frame_of(id).is_barrier() => (arrival, kind::BARRIER),
        true => (arrival + core.response_time, kind::CONTROL),
        false => (arrival, kind::ARRIVAL),
    };
    match wire {
        Wire::Inner | Wire::Link => core.post(at, what, peer, id),
        // Nobody is at the other end to see it be lost.
        Wire::Faulty if lost && core.is_cut(port, arrival) => core.post(at, what, peer, id),
        Wire::Away | Wire::Faulty | Wire::Special => core.send_over(at, what, peer, id),
    }
}
