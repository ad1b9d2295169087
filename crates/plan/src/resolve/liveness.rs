//! Flows that can never finish, if a plan shows it: packets that never find room, and ACKs that data can
//! starve. The simulator's livelock oracle finds the others in a run.

use super::{Context, bytes};
use crate::error::Error;
use crate::plan::{Flow, Limit, Plan};
use std::collections::BTreeSet;
use xoff_net::topology::{NodeKind, PortId};

/// Refuses lossy queues that never hold a packet, and warns of ACKs that data can starve.
pub(super) fn check(cx: &mut Context<'_>, plan: &Plan) -> Result<(), Error> {
    // Pods without buffers have no such queues.
    if cx.scenario.flow_control.changes_priorities() || plan.pods.is_some() {
        return Ok(());
    }
    check_room(cx, plan)?;
    starving_acks(cx, plan);
    Ok(())
}

/// Bytes that accounts share in the buffer that is charged for `lane` at `ingress`.
fn shared(plan: &Plan, ingress: PortId, lane: u8) -> u64 {
    let account = &plan.accounts[ingress as usize * plan.lanes.len() + usize::from(lane)];
    plan.buffers[account.pool.unwrap_or(plan.topology.ports[ingress as usize].node) as usize].shared
}

/// Bytes that a queue of `lane` may hold of the arrivals at `ingress`, with the device empty.
fn room(plan: &Plan, ingress: PortId, lane: u8) -> u64 {
    let shared = shared(plan, ingress, lane);
    match plan.lanes[usize::from(lane)].egress_limit {
        Limit::Unlimited => shared,
        Limit::Static(limit) => limit.min(shared),
        Limit::Dynamic { alpha_q16, cap } => {
            let share = (u128::from(alpha_q16) * u128::from(shared)) >> 16;
            u64::try_from(share).unwrap_or(u64::MAX).min(cap).min(shared)
        }
    }
}

/// The most bytes of a packet of `flow`: data, or an ACK.
fn packets(plan: &Plan, flow: &Flow) -> [(u32, u8, u64); 2] {
    let data = u64::from(plan.packet.mtu).min(flow.size) + u64::from(plan.packet.header);
    [(flow.path, flow.lane, data), (flow.ack_path, flow.ack_lane, u64::from(plan.packet.ack))]
}

fn check_room(cx: &Context<'_>, plan: &Plan) -> Result<(), Error> {
    let lossy = |lane: u8| !plan.lanes[usize::from(lane)].lossless;
    let cell = u64::from(plan.flow_control.traits().cell);
    let largest = u64::from(plan.packet.largest()).next_multiple_of(cell);
    let ports = 0..plan.topology.ports.len() as PortId;
    let lanes = 0..plan.lanes.len() as u8;
    let narrow: BTreeSet<(PortId, u8)> = lanes
        .filter(|&lane| lossy(lane))
        .flat_map(|lane| ports.clone().map(move |port| (port, lane)))
        .filter(|&(port, lane)| room(plan, port, lane) < largest)
        .collect();
    if narrow.is_empty() {
        return Ok(());
    }
    for flow in &plan.flows {
        for (path, lane, size) in packets(plan, flow) {
            // The last port leads to the flow's end, which stores nothing.
            let Some((_, stored)) = plan.onward(path).known.split_last() else { continue };
            let ingress = |&egress: &PortId| plan.topology.ports[egress as usize].peer;
            let charge = size.next_multiple_of(cell);
            let full = |&at: &PortId| {
                narrow.contains(&(at, lane))
                    && (room(plan, at, lane) < size || shared(plan, at, lane) < charge)
            };
            if let Some(at) = stored.iter().map(ingress).find(full) {
                return Err(no_room(cx, plan, at, lane, size));
            }
        }
    }
    Ok(())
}

fn no_room(cx: &Context<'_>, plan: &Plan, ingress: PortId, lane: u8, size: u64) -> Error {
    let priority = plan.lanes[usize::from(lane)].priority;
    let node = &plan.topology.nodes[plan.topology.ports[ingress as usize].node as usize];
    let table = cx.scenario.priority.iter().position(|p| p.id == priority);
    let shared = shared(plan, ingress, lane);
    let message = format!(
        "{} drops every packet of the lossy priority {priority}: a queue has room for {}, and a packet is {}",
        node.name,
        bytes(room(plan, ingress, lane)),
        bytes(size),
    );
    let (path, help) = match table {
        Some(i) if shared >= size => (
            format!("priority[{i}].alpha"),
            format!(
                "write a larger alpha: a queue holds at most alpha times the free shared buffer, which is {}",
                bytes(shared)
            ),
        ),
        Some(i) if cx.doc.get(&format!("priority[{i}].lossless")).is_some() => (
            format!("priority[{i}].lossless"),
            format!(
                "lossy packets use only the shared buffer, which is {}: make the priority lossless, or reserve less",
                bytes(shared)
            ),
        ),
        _ => (
            match node.kind {
                NodeKind::Switch => "switch.buffer".to_string(),
                _ => "host.buffer".to_string(),
            },
            format!(
                "lossy packets use only the shared buffer, which is {}: write a larger buffer",
                bytes(shared)
            ),
        ),
    };
    cx.doc.error(&path, message, help)
}

/// Warns of ACKs in a priority that ports serve strictly after that of their own data, where other
/// data are served before: while these keep the port busy no ACK leaves, and senders retransmit.
fn starving_acks(cx: &mut Context<'_>, plan: &Plan) {
    let tier = |lane: u8| plan.lanes[usize::from(lane)].tier;
    let behind = |flow: &&Flow| tier(flow.ack_lane) > tier(flow.lane);
    if !plan.flows.iter().any(|flow| behind(&flow)) {
        return;
    }
    // By port: the lane of data that is served first.
    let mut data: Vec<Option<u8>> = vec![None; plan.topology.ports.len()];
    for flow in &plan.flows {
        plan.divide(flow.path, 0, &mut |port, _| {
            let lane = &mut data[port as usize];
            *lane =
                Some(lane.map_or(flow.lane, |known| std::cmp::min_by_key(known, flow.lane, |&l| tier(l))));
        });
    }
    for flow in plan.flows.iter().filter(behind) {
        let mut found = None;
        plan.divide(flow.ack_path, 0, &mut |port, _| {
            let before = data[port as usize].filter(|&lane| tier(lane) < tier(flow.ack_lane));
            found = found.or(before.map(|lane| (port, lane)));
        });
        let Some((port, lane)) = found else { continue };
        let priority = |lane: u8| plan.lanes[usize::from(lane)].priority;
        let message = format!(
            "data can starve ACKs: {} serves data of priority {} before ACKs of priority {}, and a sender \
             without ACKs retransmits forever; write {} or more",
            plan.topology.port_name(port),
            priority(lane),
            priority(flow.ack_lane),
            priority(lane),
        );
        cx.warn("transport.ack_priority", message);
        return;
    }
}
