//! The samples, and whether they fit.

use super::{Context, MEMORY};
use crate::error::Error;
use crate::names;
use crate::plan::Measure;
use crate::scenario::PortSet;
use xoff_kernel::time::Time;
use xoff_net::topology::{NodeKind, PortId, Topology};
use xoff_net::units::Span;

pub(super) fn ports_and_interval(cx: &Context<'_>, topology: &Topology) -> Result<Measure, Error> {
    let m = &cx.scenario.measure;
    let ports = match &m.ports {
        PortSet::None => Vec::new(),
        PortSet::All => (0..topology.ports.len() as PortId).collect(),
        PortSet::Switches => (0..topology.ports.len() as PortId)
            .filter(|&p| topology.nodes[topology.ports[p as usize].node as usize].kind == NodeKind::Switch)
            .collect(),
        PortSet::Named(names) => {
            let mut ports = Vec::new();
            for (i, name) in names.iter().enumerate() {
                let path = format!("measure.ports[{i}]");
                let port = port(cx, topology, &path, name)?;
                if ports.contains(&port) {
                    return cx.refuse(&path, format!("{name} is listed twice"), "remove one of the two");
                }
                ports.push(port);
            }
            ports
        }
    };
    let interval = match (m.interval, cx.scenario.run.duration) {
        (Some(Span(0)), _) => {
            let help = "write a time above 0, such as \"10us\"";
            return cx.refuse("measure.interval", "must be positive", help);
        }
        (Some(interval), _) => Some(interval.0),
        (None, Some(duration)) => Some((duration.0 / 200).max(1)),
        (None, None) if ports.is_empty() && m.flows.is_empty() => None,
        (None, None) => {
            let help = "add measure.interval, or run.duration: the interval is then 1/200 of it";
            let key = if ports.is_empty() { "flows" } else { "ports" };
            return cx.refuse(&format!("measure.{key}"), "requires measure.interval", help);
        }
    };
    let blocking = m.blocking || m.explains();
    if blocking {
        check_oracle(cx, topology)?;
    }
    Ok(Measure { interval, ports, flows: Vec::new(), blocking, explain: m.explains() })
}

/// Refuses the blocking oracle where its table (for each ingress, priority and
/// egress of a device 8 B) does not fit; each priority in use counts.
fn check_oracle(cx: &Context<'_>, topology: &Topology) -> Result<(), Error> {
    let pairs: u64 = topology.nodes.iter().map(|node| (node.ports.len() as u64).pow(2)).sum();
    let need = pairs.saturating_mul(8 * 8);
    if need <= MEMORY {
        return Ok(());
    }
    let message = format!("the blocking oracle would need up to {} GiB for this network", need >> 30);
    let help = format!("the maximum is {} GiB: remove the key, or choose a smaller network", MEMORY >> 30);
    let key = if cx.scenario.measure.blocking { "measure.blocking" } else { "measure.explain" };
    cx.refuse(key, message, help)
}

/// The flows that are sampled, of `flows` in the run.
pub(super) fn flows(cx: &mut Context<'_>, measure: &mut Measure, flows: usize) -> Result<(), Error> {
    let ids = &cx.scenario.measure.flows;
    for (i, &id) in ids.iter().enumerate() {
        let path = format!("measure.flows[{i}]");
        if id >= flows as u64 {
            let message = format!("flow {id} does not exist");
            let help = match flows {
                0 => "this run has no flows".to_string(),
                n => format!("the flows of this run are 0 to {}", n - 1),
            };
            return cx.refuse(&path, message, help);
        }
        if ids[..i].contains(&id) {
            return cx.refuse(&path, format!("flow {id} is listed twice"), "remove one of the two");
        }
    }
    measure.flows = ids.iter().map(|&id| id as u32).collect();
    Ok(())
}

/// Refuses more samples than memory holds in a run until `end` (or longer).
pub(super) fn check_samples(cx: &Context<'_>, measure: &Measure, end: Time) -> Result<(), Error> {
    // A port and a flow give three series each; a sample takes 32 B.
    let Some(interval) = measure.interval else { return Ok(()) };
    let series =
        3 * (measure.ports.len() + measure.flows.len()) as u64 + cx.scenario.traffic.len() as u64 + 1;
    let need = (end / interval).saturating_mul(series).saturating_mul(32);
    // Not given, the distance is a part of the duration, and the drain makes the number.
    let key = if cx.scenario.measure.interval.is_some() { "measure.interval" } else { "run.drain" };
    let what = format_args!("{} samples of {series} series", end / interval);
    cx.fits(key, need, what, "write a longer measure.interval, or name fewer ports")
}

pub(super) fn port(cx: &Context<'_>, topology: &Topology, path: &str, name: &str) -> Result<PortId, Error> {
    names::port(topology, name).map_err(|e| cx.doc.error(path, e.message, e.help))
}
