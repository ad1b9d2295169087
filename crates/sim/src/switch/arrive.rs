//! A packet has arrived: where it goes on, whether there is room for it, and whom it is charged to.

use crate::core::Core;
use crate::faults;
use crate::features::Features;
use crate::outcome::DropReason;
use crate::packet::{Kind, Packet};
use crate::switch::buffer::Refusal;
use crate::switch::drops::{discard, refuse};
use crate::switch::ingress::around;
use crate::switch::port::Wire;
use crate::switch::port_level;
use crate::switch::release::crossed;
use crate::switch::{by_flow, pull, trim};
use xoff_plan::balancing::is_choice;
use xoff_plan::plan::{DELIVER, ENDS};
use xoff_schemes::flow_control::{FlowControl, LoopDecision, LoopPacket, Scheme};

/// A packet's last bit arrived at `port`. Returns the port to kick.
#[inline(always)]
pub fn arrive<F: Features>(core: &mut Core, scheme: &mut FlowControl, port: u32, id: u32) -> Option<u32> {
    let id = match F::EXTRAS && core.links.used() {
        true => core.accepted(port, id)?,
        false => id,
    };
    let packet = &mut core.packets[id];
    packet.hop += 1;
    let mut next = core.hops[packet.hop as usize];
    if F::HOOKS && !core.ingress.received.is_empty() && !faults::is_lost(next) {
        core.count_arrival(port, id);
    }
    loop {
        if next < ENDS {
            if F::EXTRAS && core.telemetry.stamped() {
                core.stamp_arrival(next, id);
            }
            return forward::<F>(core, scheme, port, id, next);
        }
        if next == DELIVER {
            break;
        }
        if !is_choice(next) {
            discard(core, port, id, faults::reason(next), 0);
            return None;
        }
        next = core.choose(core.egress.ports[port as usize].node, id, next);
    }
    if F::EXTRAS && core.ingress.reports_storage {
        let Packet { lane, size, .. } = core.packets[id];
        scheme.stored(core, port, lane, size);
    }
    match core.packets[id].kind {
        Kind::Data => core.receive_data::<F>(id),
        Kind::Header => core.receive_header(id),
        Kind::Probe => Some(core.receive_probe(id)),
        _ => core.receive_answer::<F>(id),
    }
}

/// In loops: where a packet from `port` to `egress` waits, and if beside the queue; `None`: its path is lost.
#[cold]
fn detour(core: &mut Core, scheme: &mut FlowControl, port: u32, id: u32, egress: u32) -> Option<(u32, bool)> {
    let packet = core.packets[id];
    let (lane, flow, size) = (packet.lane, packet.flow, packet.size);
    let loop_packet = LoopPacket { ingress: port, egress, lane, flow, size, marked: packet.counted() };
    Some(match scheme.passes(core, &loop_packet) {
        LoopDecision::Continue => (egress, false),
        LoopDecision::SetAside => (egress, true),
        LoopDecision::Circulate(on) => {
            core.check_place(on, lane);
            // Its place stays in front of the port that it has missed.
            let packet = &mut core.packets[id];
            packet.set_counted(true);
            packet.hop -= 1;
            (on, false)
        }
        LoopDecision::Exit(at) => {
            core.packets[id].set_counted(false);
            core.packets[id].hop = core.place_before(id, |port| port == at)?;
            (at, false)
        }
        LoopDecision::NoLoop => {
            core.packets[id].set_counted(false);
            let own = core.egress.ports[port as usize].node;
            let hop = core.place_before(id, |port| core.egress.ports[port as usize].node == own)?;
            core.packets[id].hop = hop;
            (core.hops[hop as usize], false)
        }
    })
}

/// Buffers a packet from `port` for `egress`. Returns `egress`, to kick it, if there is room.
#[inline(always)]
fn forward<F: Features>(
    core: &mut Core,
    scheme: &mut FlowControl,
    port: u32,
    id: u32,
    egress: u32,
) -> Option<u32> {
    let (egress, aside) = match core.egress.loops {
        _ if !F::EXTRAS => (egress, false),
        0 if !core.packets[id].counted() => (egress, false),
        _ => match detour(core, scheme, port, id, egress) {
            Some(found) => found,
            None => {
                discard(core, port, id, DropReason::LoopGivenUp, 0);
                return None;
            }
        },
    };
    let out = &core.egress.ports[egress as usize];
    if out.wire >= Wire::Faulty
        && let Some(reason) = core.keeps_out(egress, core.packets[id].lane)
    {
        discard(core, port, id, reason, 0);
        return None;
    }
    let out = &core.egress.ports[egress as usize];
    let first_queue = out.first_queue as usize;
    let mut charge = core.ingress.in_cells(core.packets[id].size);
    let packet = &mut core.packets[id];
    let (size, arrived) = (u64::from(packet.size), packet.lane);
    // It is charged to the lane that it came in, and waits in that it goes on in.
    let lane = usize::from(match core.lane_rules {
        Some(rules) if F::HOOKS => {
            let onward = rules.onward(arrived, port, egress);
            core.check_place(egress, onward);
            onward
        }
        _ => arrived,
    });
    let at = port as usize * core.lanes + usize::from(arrived);
    if F::EXTRAS && core.ingress.follows_charges {
        charge = scheme.charged(core, port, arrived, charge);
    }
    let packet = &mut core.packets[id];
    let a = &mut core.ingress.accounts[at];
    let memory = &mut core.ingress.memories[a.memory as usize];
    let rule = &core.egress.rules[lane];
    let queued = core.egress.queues[first_queue + 1 + lane].bytes;
    if rule.limit != xoff_plan::plan::Limit::Unlimited {
        let room = memory.egress_share(rule.limit);
        if queued + size > room {
            packet.lane = lane as u8;
            return no_room::<F>(core, scheme, (port, id, egress), Refusal::Limit(queued + size - room));
        }
    }
    let profile = &core.ingress.profiles[usize::from(a.profile)];
    let admitted = match F::EXTRAS && !core.ingress.rooms.is_empty() {
        true => core.ingress.rooms[port as usize].admit(a, charge, memory, profile),
        false => a.admit(charge, memory, profile),
    };
    let crossing = match admitted {
        Ok(crossing) => crossing,
        Err(refusal) => {
            return no_room::<F>(core, scheme, (port, id, egress), refusal);
        }
    };
    if F::EXTRAS
        && let Some(whole) = around(&mut core.ingress.memories, core.plan, a, port)
    {
        whole.hold(charge);
    }
    packet.account = at as u32;
    packet.lane = lane as u8;
    if F::EXTRAS
        && let Some(oracle) = &mut core.blocking
    {
        oracle.charged(at as u32, core.plan.topology.ports[egress as usize].index, size);
    }
    if let Some(red) = rule.ecn
        && (queued > red.k_min || red.of_port)
        && !red.at_dequeue
        && packet.kind == Kind::Data
        && core.egress.marks(core.plan, egress, lane, queued)
    {
        core.packets[id].marked = true;
        core.observed.control[egress as usize][2] += 1;
    }
    if F::EXTRAS && aside {
        core.egress.aside.entry((egress, lane as u8)).or_default().push(id);
    } else if !F::BY_FLOW || F::EXTRAS && core.egress.plain {
        core.egress.append(&mut core.packets, egress, 1 + lane, id);
    } else if !F::EXTRAS && core.egress.leaves.acks_first && core.packets[id].kind != Kind::Data {
        let packet = &mut core.packets[id];
        packet.set_upstream(0);
        packet.set_counted(false);
        core.egress.append(&mut core.packets, egress, 1 + lane, id);
    } else if core.egress.leaves.pulls {
        pull::enqueue(core, scheme, egress, id);
    } else if !F::EXTRAS || core.egress.leaves.used() {
        by_flow::enqueue(core, scheme, egress, id);
    } else {
        core.enqueue(egress, 1 + lane, id);
    }
    if F::EXTRAS && core.ingress.reports_storage {
        scheme.stored(core, port, arrived, size as u32);
    }
    if F::EXTRAS && core.ingress.causes.used() {
        let index = core.plan.topology.ports[egress as usize].index;
        if core.ingress.causes.joins(at as u32, index) {
            scheme.waits(core, port, egress, lane as u8);
        }
    }
    if let Some(crossing) = crossing {
        crossed(core, scheme, at as u32, crossing);
    }
    if F::EXTRAS && !core.ingress.rooms.is_empty() {
        port_level::report(core, scheme, port);
    }
    Some(egress)
}

/// There is no room for a packet from `port` in `egress`. If the device trims packets, the header of this one or of
/// the last one of its queue goes on; otherwise it is dropped. Returns the port to kick.
#[cold]
#[inline(never)]
fn no_room<F: Features>(
    core: &mut Core,
    scheme: &mut FlowControl,
    (port, id, egress): (u32, u32, u32),
    refusal: Refusal,
) -> Option<u32> {
    let (port, id) = trim::choose::<F>(core, scheme, (port, id, egress));
    if core.trim(port, id, egress) {
        return forward::<F>(core, scheme, port, id, egress);
    }
    refuse(core, port, id, refusal);
    None
}
