//! Pyrrha's parameters, resolved for every port.

use super::flow_control::time;
use super::{Context, alpha_q16, bytes, memory, node};
use crate::error::Error;
use crate::plan::{Buffer, Receiver};
use crate::scenario::{
    FlowControl, Pfc, Pyrrha, PyrrhaAcks, PyrrhaHosts, PyrrhaMerging, PyrrhaOrganisation, PyrrhaVariant,
};
use std::sync::Arc;
use xoff_net::topology::{NodeKind, PortId, Topology};
use xoff_net::units::{Bandwidth, Span, Threshold};
use xoff_schemes::flow_control::pyrrha::{Merging, Organisation, Places, PyrrhaParams, Variant};
use xoff_schemes::flow_control::sizing;

/// Refuses values out of range.
pub(super) fn check(cx: &Context<'_>, pyrrha: &Pyrrha) -> Result<(), Error> {
    if !(1..=1_024).contains(&pyrrha.queues) {
        let message = format!("queues = {} is out of range", pyrrha.queues);
        return Err(cx.doc.error("flow_control.queues", message, "write a whole number from 1 to 1024"));
    }
    if let Some(legacy) = &pyrrha.legacy {
        if legacy.switches.is_empty() {
            let help = "name switches, or remove the table";
            return Err(cx.doc.error("flow_control.legacy.switches", "no switch is named", help));
        }
        if let Some(alpha) = legacy.alpha {
            alpha_q16(cx, "flow_control.legacy.alpha", alpha)?;
        }
        if !cx.scenario.failure.is_empty() {
            let message = "links that fail beside switches that know PFC alone are not simulated";
            let help = "remove [[failure]], or flow_control.legacy";
            return Err(cx.doc.error("flow_control.legacy", message, help));
        }
    }
    time(cx, "response_time", pyrrha.response_time)
}

/// Switches that know PFC alone, and what they ask of others.
pub(super) struct Legacy {
    /// PFC on their links.
    pub(super) pfc: Pfc,
    /// By port: its link is one of theirs, and runs PFC.
    pub(super) link: Vec<bool>,
    /// By port: it is one of theirs.
    switch: Vec<bool>,
}

/// Those that the scenario names, if it does.
pub(super) fn legacy(cx: &Context<'_>, topology: &Topology) -> Result<Option<Legacy>, Error> {
    let FlowControl::Pyrrha(pyrrha) = &cx.scenario.flow_control else { return Ok(None) };
    let Some(keys) = &pyrrha.legacy else { return Ok(None) };
    let mut named = vec![false; topology.nodes.len()];
    for (i, name) in keys.switches.iter().enumerate() {
        let path = format!("flow_control.legacy.switches[{i}]");
        let node = node(cx, topology, &path, name)?;
        if topology.nodes[node as usize].kind == NodeKind::Host {
            return Err(cx.doc.error(&path, format!("`{name}` is a host"), "name a switch"));
        }
        if std::mem::replace(&mut named[node as usize], true) {
            return Err(cx.doc.error(&path, format!("`{name}` is listed twice"), "remove one of the two"));
        }
    }
    let is = |port: PortId| named[topology.ports[port as usize].node as usize];
    let ports = 0..topology.ports.len() as PortId;
    Ok(Some(Legacy {
        pfc: Pfc { alpha: keys.alpha, response_time: pyrrha.response_time, ..Pfc::default() },
        link: ports.clone().map(|p| is(p) || is(topology.ports[p as usize].peer)).collect(),
        switch: ports.map(is).collect(),
    }))
}

/// The parameters on the ports of `topology`, the inner ones of slow hosts included.
pub(super) fn params(
    cx: &Context<'_>,
    pyrrha: &Pyrrha,
    topology: &Topology,
    receivers: &[Receiver],
) -> Result<PyrrhaParams, Error> {
    let shown = |t: Threshold, resolved: u64| match t {
        Threshold::Bytes(b) => b.to_string(),
        bdp => format!("{bdp} ({})", bytes(resolved)),
    };
    let legacy = legacy(cx, topology)?;
    let is_legacy = |port: PortId| legacy.as_ref().is_some_and(|l| l.switch[port as usize]);
    let (mut k_pause, mut k_resume) = (Vec::new(), Vec::new());
    for (id, port) in (0..).zip(&topology.ports) {
        // A slow host pauses by what it holds: of its inner port, which has no delay, the
        // thresholds are those of its link.
        let inner = receivers.iter().find(|r| r.rx == id || topology.ports[r.rx as usize].peer == id);
        let link = inner.map_or(port, |r| &topology.ports[topology.nodes[r.host as usize].ports[0] as usize]);
        let pause = pyrrha.k_pause.resolve(link.rate, link.delay);
        let resume = pyrrha
            .k_resume
            .map_or_else(|| sizing::pyrrha::k_resume(pause), |t| t.resolve(link.rate, link.delay));
        if let Some(given) = pyrrha.k_resume.filter(|_| resume > pause) {
            let message = format!(
                "k_resume = {} is above k_pause = {} on the link of {} ({}, {})",
                shown(given, resume),
                shown(pyrrha.k_pause, pause),
                topology.port_name(id as PortId),
                Bandwidth(port.rate),
                Span(port.delay)
            );
            let help = "choose `k_resume` no larger than `k_pause`";
            return Err(cx.doc.error("flow_control.k_resume", message, help));
        }
        // A switch that knows PFC alone is never a root.
        k_pause.push(if is_legacy(id) { u64::MAX } else { pause });
        k_resume.push(resume);
    }
    let kind = |node: u32| topology.nodes[node as usize].kind;
    let places = Places {
        of: topology.ports.iter().map(|p| (p.node, p.index)).collect(),
        ports: topology.nodes.iter().map(|n| n.ports.clone()).collect(),
        host: topology.ports.iter().map(|p| kind(p.node) == NodeKind::Host).collect(),
        to_host: (0..topology.ports.len() as PortId)
            .map(|p| kind(topology.neighbour(p)) == NodeKind::Host)
            .collect(),
    };
    Ok(PyrrhaParams {
        organisation: match pyrrha.organisation {
            PyrrhaOrganisation::Hiq => Organisation::Hiq,
            PyrrhaOrganisation::SingleTier => Organisation::SingleTier,
        },
        merging: match pyrrha.merging {
            PyrrhaMerging::Soft => Merging::Soft,
            PyrrhaMerging::Hard => Merging::Hard,
            PyrrhaMerging::Off => Merging::Off,
        },
        queues: pyrrha.queues as u16,
        k_pause,
        k_resume,
        hosts_obey: pyrrha.hosts == PyrrhaHosts::Obey,
        acks_in_queues: pyrrha.acks == PyrrhaAcks::Queues,
        variant: Variant {
            push: pyrrha.variants.contains(&PyrrhaVariant::Push),
            reclaim_at_once: pyrrha.variants.contains(&PyrrhaVariant::ReclaimAtOnce),
            hosts_are_no_leaves: pyrrha.variants.contains(&PyrrhaVariant::HostsAreNoLeaves),
            count_by_ingress: pyrrha.variants.contains(&PyrrhaVariant::CountByIngress),
        },
        deaf: legacy.as_ref().map_or_else(Vec::new, |l| l.link.clone()),
        pfc: legacy.map(|l| memory::params(&l.pfc)),
        places: Arc::new(places),
        response_time: pyrrha.response_time.0,
    })
}

/// Names what is written and cannot have an effect.
pub(super) fn warn(
    cx: &mut Context<'_>,
    pyrrha: &Pyrrha,
    params: &PyrrhaParams,
    topology: &Topology,
    buffers: &[Buffer],
) {
    for (i, variant) in pyrrha.variants.iter().enumerate() {
        let key = format!("flow_control.variants[{i}]");
        if pyrrha.variants[..i].contains(variant) {
            cx.warn(key, "had no effect: it is listed already".into());
        } else if *variant == PyrrhaVariant::ReclaimAtOnce && pyrrha.merging == PyrrhaMerging::Off {
            cx.warn(key, "had no effect: with merging = \"off\" no port abdicates".into());
        }
    }
    if !params.deaf.is_empty() && params.deaf.iter().take(topology.ports.len()).all(|&deaf| deaf) {
        let message = "name every switch: all links run PFC, and nothing of Pyrrha has an effect";
        cx.warn("flow_control.legacy.switches".into(), message.into());
        return;
    }
    unreachable_thresholds(cx, params, topology, buffers);
}

/// Ports of switches whose buffer cannot hold what would make them roots.
fn unreachable_thresholds(
    cx: &mut Context<'_>,
    params: &PyrrhaParams,
    topology: &Topology,
    buffers: &[Buffer],
) {
    let of_switches: Vec<PortId> = (0..topology.ports.len() as PortId)
        .filter(|&p| topology.nodes[topology.ports[p as usize].node as usize].kind == NodeKind::Switch)
        .filter(|&p| params.k_pause[p as usize] < u64::MAX)
        .collect();
    let buffer = |p: PortId| buffers[topology.ports[p as usize].node as usize].total;
    let never: Vec<PortId> =
        of_switches.iter().copied().filter(|&p| params.k_pause[p as usize] >= buffer(p)).collect();
    let Some(&first) = never.first() else { return };
    let which = match (never.len(), of_switches.len()) {
        (never, all) if never == all => "no port of a switch can become a root, such as".to_string(),
        (1, _) => "one port of a switch cannot become a root:".to_string(),
        (never, all) => format!("{never} of {all} ports of switches cannot become roots, first"),
    };
    let message = format!(
        "is more than a buffer holds: {which} {} (K_pause {}, buffer {})",
        topology.port_name(first),
        bytes(params.k_pause[first as usize]),
        bytes(buffer(first))
    );
    cx.warn("flow_control.k_pause".into(), message);
}
