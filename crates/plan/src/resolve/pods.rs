//! Pods without buffers: the parts of a scenario that have no meaning there. The values of their keys are in
//! `xoff_schemes::scheduling`.

use super::Context;
use crate::error::{Error, Warning};
use crate::plan::Buffer;
use crate::scenario::{LoadBalancing, PortSet, Traffic};
use std::borrow::Cow;
use xoff_kernel::time::Time;
use xoff_net::topology::{PodShape, Topology};
use xoff_schemes::scheduling::{PodsKeys, PodsParams, pods};

/// Tables of a scenario, and keys of its transport, that mean something without queues; or are refused.
const TABLES: [&str; 8] =
    ["topology", PodsKeys::NAME, "traffic", "run", "measure", "failure", "loss", "slow_receiver"];
const TRANSPORT: [&str; 2] = ["mtu", "header"];

/// Returns an error for keys that need queues in switches, or ports that send by themselves.
pub(super) fn check(cx: &mut Context<'_>) -> Result<(), Error> {
    if !cx.scenario.topology.is_bufferless() {
        if cx.scenario.pods.is_some() {
            let name = PodsKeys::NAME;
            cx.warn(name, format!("had no effect: topology.kind is not `{name}`"));
        }
        return Ok(());
    }
    let s = cx.scenario;
    let no = |key: &str, message: &str| {
        cx.refuse(key, message, "remove it, or choose topology.kind = \"pods\", which has buffers")
    };
    let (this, choose) = ("this key is", "their schedulers choose the paths");
    for (used, key, what, why) in [
        (s.measure.blocking, "measure.blocking", "`blocking` is", "nothing is paused there"),
        (s.measure.explains(), "measure.explain", "`explain` is", "their switches have no queues"),
        (s.measure.ports != PortSet::None, "measure.ports", "`ports` is", "ports have no queues to sample"),
        (
            !s.measure.flows.is_empty(),
            "measure.flows",
            "`flows` is",
            "flows have no rate or window to sample",
        ),
        (!s.slow_receiver.is_empty(), "slow_receiver", "slow receivers are", "there are no queues to fill"),
        (!s.loss.is_empty(), "loss", "[[loss]] is", "only [[failure]] is"),
        (s.routing.ate.is_some(), "routing.ate", this, choose),
        (s.routing.load_balancing != LoadBalancing::Ecmp, "routing.load_balancing", this, choose),
        (!s.routing.overrides.is_empty(), "routing.overrides", this, choose),
    ] {
        if used {
            return no(key, &format!("{what} not available in pods without buffers: {why}"));
        }
    }
    let paths = "this key is not available in pods without buffers: their schedulers choose the paths";
    for (i, traffic) in s.traffic.iter().enumerate() {
        match traffic {
            Traffic::Loop(_) => return no(&format!("traffic[{i}].kind"), paths),
            Traffic::Flow(flow) if flow.path.is_some() => return no(&format!("traffic[{i}].path"), paths),
            Traffic::Flow(flow) if flow.rate.is_some() => {
                let message = "`rate` is not available in pods without buffers: their schedulers decide when a host sends";
                return no(&format!("traffic[{i}].rate"), message);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Names written tables without effect, each once, in addition to other warnings about them.
fn warn_of_unused(cx: &mut Context<'_>) {
    let used = |key: &str| TABLES.contains(&key) || key == "transport";
    let queues: Vec<String> = cx.doc.keys("").into_iter().filter(|key| !used(key)).collect();
    cx.warnings.retain(|warning| {
        let table = warning.key.split(['.', '[']).next().unwrap_or_default();
        table != "transport" && !queues.iter().any(|t| t == table)
    });
    let mut warn =
        |key: String, why: &str| cx.warnings.push(Warning { key, message: format!("had no effect: {why}") });
    for table in queues {
        warn(table, "pods without buffers have no queues, and their schedulers choose the paths");
    }
    for key in cx.doc.keys("transport").iter().filter(|key| !TRANSPORT.contains(&key.as_str())) {
        warn(
            format!("transport.{key}"),
            &format!("granted cells always arrive; for ACKs set `acks` in [{}]", PodsKeys::NAME),
        );
    }
    for i in 0..cx.scenario.traffic.len() {
        for key in ["priority", "priorities"].map(|key| format!("traffic[{i}].{key}")) {
            if cx.doc.get(&key).is_some() {
                warn(key, "the level of a queue depends on the bytes that a flow has sent");
            }
        }
    }
}

/// The scenario's keys, or their defaults; and the pods, if they have no buffers.
fn chosen<'s>(cx: &Context<'s>, topology: &Topology) -> Option<(Cow<'s, PodsKeys>, PodShape)> {
    let keys = cx.scenario.pods.as_ref().map(Cow::Borrowed).unwrap_or_default();
    topology.pods.filter(|_| cx.scenario.topology.is_bufferless()).map(|shape| (keys, shape))
}

/// Computes the pods of a run until `end`, and names the keys that have no effect beside them.
pub(super) fn build(
    cx: &mut Context<'_>,
    topology: &Topology,
    end: Option<Time>,
) -> Result<Option<PodsParams>, Error> {
    let Some((keys, shape)) = chosen(cx, topology) else { return Ok(None) };
    let built = cx.ask(|_, cx| pods::params(&keys, cx, topology, &shape))?;
    warn_of_unused(cx);
    cx.ask(|_, cx| {
        pods::warn_of_unused(&keys, cx, shape.cores, end);
        Ok(())
    })?;
    Ok(Some(built))
}

/// The parameters of a flow's ideal FCT, if the network has no buffers.
pub(super) fn alone(cx: &Context<'_>, topology: &Topology) -> Option<pods::Alone> {
    chosen(cx, topology).map(|(keys, shape)| pods::alone(&keys, topology, &shape))
}

/// Memory of the nodes, if pods have none.
pub(super) fn buffers(cx: &mut Context<'_>, topology: &Topology) -> Result<Option<Vec<Buffer>>, Error> {
    let Some((keys, shape)) = chosen(cx, topology) else { return Ok(None) };
    cx.ask(|_, cx| Ok(Some(pods::buffers(&keys, cx, topology, &shape))))
}
