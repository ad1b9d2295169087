//! Ports and buffers: line rate, memory, lossless priorities.

use xoff_kernel::time::serialisation;
use xoff_net::topology::{NodeId, NodeKind};
use xoff_plan::Loaded;
use xoff_plan::plan::Plan;
use xoff_plan::size::links;
use xoff_schemes::flow_control::FlowControlParams;
use xoff_schemes::flow_control::bifrost::slots::Repair;
use xoff_schemes::scheduling::zeropod::params::Collision;
use xoff_sim::outcome::{Outcome, Quantity};

use super::{Broken, holds};

/// No packet is dropped for lack of buffer in a lossless priority whose links have the required buffer.
pub fn lossless(loaded: &Loaded, outcome: &Outcome) -> Result<(), Broken> {
    let plan = &loaded.plan;
    let Ok(report) = links::links(plan) else { return Ok(()) };
    // Routes and credits that change in the middle of a run are not in that sum.
    let calm = plan.faults.down.is_empty() && plan.faults.losses.is_empty();
    if !report.too_small.is_empty() || !calm {
        return Ok(());
    }
    let lost = outcome.drops.iter().find(|d| {
        let node = plan.topology.ports[d.ingress as usize].node;
        d.lossless && d.reason.for_want_of_room() && promised(plan, node)
    });
    holds(lost.is_none(), "lossless", || format!("{lost:?}"))
}

/// Whether a scheme promises that a device drops no packet if links have the required buffer. Under PortFC
/// hosts pause no device, and switches rely on relay queues that stay short.
fn promised(plan: &Plan, node: NodeId) -> bool {
    match &plan.flow_control {
        FlowControlParams::PortFc(portfc) => {
            portfc.doubts.is_empty() && plan.topology.nodes[node as usize].kind == NodeKind::Switch
        }
        // The check as printed grants more than there is room for.
        FlowControlParams::Bifrost(bifrost) => {
            bifrost.ports.iter().flatten().all(|slots| slots.repair == Repair::Excess)
        }
        _ => true,
    }
}

/// No port sends faster than its line rate, and no buffer holds more than it has.
pub fn bounded(loaded: &Loaded, outcome: &Outcome) -> Result<(), Broken> {
    let plan = &loaded.plan;
    for (id, (port, seen)) in plan.topology.ports.iter().zip(&outcome.ports).enumerate() {
        if seen.bytes == 0 {
            continue;
        }
        // A packet counts when it begins.
        let before = seen.bytes.saturating_sub(longest(loaded) + overlapping(plan, outcome));
        let busy = serialisation(before, port.rate);
        holds(busy <= outcome.end, "line rate", || {
            format!("port {id}: {busy} ps of {}: {seen:?}", outcome.end)
        })?;
        holds(seen.data_packets <= seen.packets, "data packets are packets", || {
            format!("port {id}: {seen:?}")
        })?;
    }
    for (node, &peak) in outcome.buffer_peaks.iter().enumerate() {
        let Some(buffer) = plan.buffers.get(node) else { break };
        let pools: u64 =
            plan.buffers[plan.topology.nodes.len().min(plan.buffers.len())..].iter().map(|b| b.total).sum();
        holds(peak <= buffer.total.saturating_add(pools), "buffers hold no more than they have", || {
            format!("{}: {peak} of {buffer:?}", plan.topology.nodes[node].name)
        })?;
    }
    samples(loaded, outcome)
}

/// Bytes that links may have carried beside others: in the paper's model of collisions cells that meet go on, each
/// counts, and all are lost.
fn overlapping(plan: &Plan, outcome: &Outcome) -> u64 {
    let meet = plan.pods.as_ref().is_some_and(|zeropod| zeropod.collision == Collision::Both);
    if meet { outcome.drops.iter().map(|d| d.bytes).sum() } else { 0 }
}

/// The longest packet or control frame, with room for the frames that list routes.
fn longest(loaded: &Loaded) -> u64 {
    let packet = &loaded.plan.packet;
    u64::from(packet.largest().max(packet.mtu + packet.header)) + 10_000
}

/// Samples of throughput stay below line rate.
fn samples(loaded: &Loaded, outcome: &Outcome) -> Result<(), Broken> {
    let plan = &loaded.plan;
    let Some(interval) = plan.measure.interval else {
        return holds(outcome.series.is_empty(), "no samples unless asked for", String::new);
    };
    for sample in &outcome.series {
        holds(sample.at <= outcome.end, "samples are within the run", || format!("{sample:?}"))?;
        if let Quantity::Throughput(port) = sample.what {
            let rate = plan.topology.ports[port as usize].rate;
            // A packet counts whole in the interval in which it begins.
            let slack = u128::from(longest(loaded)) * 8 * 1_000_000_000_000 / u128::from(interval);
            let most = u128::from(rate) + slack;
            holds(u128::from(sample.value) <= most, "samples of throughput", || {
                format!("{sample:?} at {rate} bit/s")
            })?;
        }
    }
    Ok(())
}
