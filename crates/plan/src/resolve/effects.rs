//! Written keys that cannot have an effect in any run.

use super::{Context, Slow};
use crate::plan::{Buffer, Lane};
use crate::scenario::{Host, Traffic};
use std::collections::BTreeMap;
use xoff_kernel::time::Time;
use xoff_net::topology::{NodeId, NodeKind, Topology};
use xoff_net::units::Span;

pub(super) fn warn(
    cx: &mut Context<'_>,
    topology: &Topology,
    slow: &BTreeMap<NodeId, Slow>,
    buffers: &[Buffer],
    lanes: &[Lane],
) {
    unused_buffers(cx, topology, slow, buffers);
    marks(cx, topology, slow);
    readers(cx, topology);
    stops(cx);
    oracles(cx);
    tiers(cx, lanes);
}

fn unused_buffers(
    cx: &mut Context<'_>,
    topology: &Topology,
    slow: &BTreeMap<NodeId, Slow>,
    buffers: &[Buffer],
) {
    if cx.doc.get("switch.buffer").is_some() && topology.nodes.iter().all(|n| n.kind != NodeKind::Switch) {
        cx.warn("switch.buffer", "had no effect: this topology has no switch");
    }
    // Headroom beyond the default makes the key necessary, for any queues there.
    let default = Host::default().buffer.0;
    let needed = topology.hosts().map(|h| &buffers[h as usize]).any(|b| b.total - b.shared >= default);
    if cx.doc.get("host.buffer").is_some() && !topology.relay_hosts && slow.is_empty() && !needed {
        let message = "had no effect: nothing waits in a host, because no host relays or reads slowly";
        cx.warn("host.buffer", message);
    }
}

/// Marks of hosts in which no packet waits.
fn marks(cx: &mut Context<'_>, topology: &Topology, slow: &BTreeMap<NodeId, Slow>) {
    let tables = (0..cx.scenario.priority.len()).map(|i| format!("priority[{i}].ecn"));
    for key in tables.chain(["ecn".to_string()]).map(|table| table + ".hosts") {
        if cx.doc.get(&key).is_some() && !topology.relay_hosts && slow.is_empty() {
            cx.warn(key, "had no effect: no host relays or reads slowly");
        }
    }
}

/// Slow receivers that read as fast as data can come.
fn readers(cx: &mut Context<'_>, topology: &Topology) {
    for (i, s) in cx.scenario.slow_receiver.iter().enumerate() {
        let Some(node) = topology.find(&s.host) else { continue };
        let links = topology.nodes[node as usize].ports.iter().map(|&p| topology.ports[p as usize].rate);
        let most = links.fold(0, u64::saturating_add);
        if let Some(rate) = s.rate.filter(|r| r.0 >= most) {
            let message = format!("had no effect: {rate} is not below the rate of the links of {}", s.host);
            cx.warn(format!("slow_receiver[{i}].rate"), message);
        }
    }
}

/// Ends of traffic that comes to its end without them.
fn stops(cx: &mut Context<'_>) {
    let duration = cx.scenario.run.duration;
    for (i, traffic) in cx.scenario.traffic.iter().enumerate() {
        let (stop, repeats) = match traffic {
            Traffic::Poisson(t) => (t.stop, true),
            Traffic::Incast(t) => (t.stop, t.period.is_some() || t.load.is_some()),
            Traffic::Probe(t) => (t.stop, true),
            Traffic::Permutation(_)
            | Traffic::Burst(_)
            | Traffic::Loop(_)
            | Traffic::Flow(_)
            | Traffic::Flows(_)
            | Traffic::AllToAll(_)
            | Traffic::RingAllReduce(_)
            | Traffic::ParameterServer(_)
            | Traffic::Moe(_)
            | Traffic::TrainingStep(_)
            | Traffic::Trace(_) => continue,
        };
        let Some(stop) = stop else { continue };
        let key = format!("traffic[{i}].stop");
        if !repeats {
            cx.warn(key, "had no effect: without `period` or `load` there is only one event");
        } else if duration.is_some_and(|d| stop > d) {
            cx.warn(
                key,
                format!("had no effect: run.duration ends before {stop}, and no flow starts after it"),
            );
        }
    }
}

/// An oracle that is switched off, although another key needs it and switches it on again.
fn oracles(cx: &mut Context<'_>) {
    let m = &cx.scenario.measure;
    if m.explains() && !m.blocking && cx.doc.get("measure.blocking").is_some() {
        cx.warn("measure.blocking", "had no effect: measure.explain enables the oracle already");
    }
}

/// Frames of the flow control that take effect when the run is over.
pub(super) fn late_frames(cx: &mut Context<'_>, response_time: Time, end: Option<Time>) {
    if let Some(end) = end.filter(|&end| response_time >= end) {
        let message =
            format!("is longer than the run, which ends at {}: no control frame takes effect", Span(end));
        cx.warn("flow_control.response_time", message);
    }
}

fn tiers(cx: &mut Context<'_>, lanes: &[Lane]) {
    for (i, p) in cx.scenario.priority.iter().enumerate() {
        if p.tier.is_some() && lanes.iter().all(|l| l.priority == p.id) {
            cx.warn(format!("priority[{i}].tier"), "had no effect: no other priority is in use");
        }
    }
}
