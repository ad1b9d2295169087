//! Pyrrha's parameters, resolved for every port.

use super::flow_control::time;
use super::{Context, bytes};
use crate::error::Error;
use crate::plan::Receiver;
use crate::scenario::{Pyrrha, PyrrhaAcks, PyrrhaHosts, PyrrhaMerging, PyrrhaOrganisation};
use std::sync::Arc;
use xoff_net::topology::{NodeKind, PortId, Topology};
use xoff_net::units::{Bandwidth, Span, Threshold};
use xoff_schemes::flow_control::pyrrha::{Merging, Organisation, Places, PyrrhaParams};

/// Refuses values out of range.
pub(super) fn check(cx: &Context<'_>, pyrrha: &Pyrrha) -> Result<(), Error> {
    if !(1..=1_024).contains(&pyrrha.queues) {
        let message = format!("queues = {} is out of range", pyrrha.queues);
        return Err(cx.doc.error("flow_control.queues", message, "write a whole number from 1 to 1024"));
    }
    time(cx, "response_time", pyrrha.response_time)
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
    let (mut k_pause, mut k_resume) = (Vec::new(), Vec::new());
    for (id, port) in (0..).zip(&topology.ports) {
        // A slow host pauses by what it holds: of its inner port, which has no delay, the
        // thresholds are those of its link.
        let inner = receivers.iter().find(|r| r.rx == id || topology.ports[r.rx as usize].peer == id);
        let link = inner.map_or(port, |r| &topology.ports[topology.nodes[r.host as usize].ports[0] as usize]);
        let pause = pyrrha.k_pause.resolve(link.rate, link.delay);
        let resume = pyrrha.k_resume.map_or(pause / 2, |t| t.resolve(link.rate, link.delay));
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
        k_pause.push(pause);
        k_resume.push(resume);
    }
    let kind = |node: u32| topology.nodes[node as usize].kind;
    let places = Places {
        of: topology.ports.iter().map(|p| (p.node, p.index)).collect(),
        ports: topology.nodes.iter().map(|n| n.ports.clone()).collect(),
        host: topology.ports.iter().map(|p| kind(p.node) == NodeKind::Host).collect(),
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
        places: Arc::new(places),
        response_time: pyrrha.response_time.0,
    })
}
