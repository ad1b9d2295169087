//! The PFC watchdog: how long is too long, and who watches when.

use super::{Context, LONGEST};
use crate::error::Error;
use crate::scenario::{PfcWatchdog, WatchdogAction, WatchdogKeys};
use xoff_kernel::random::Stream;
use xoff_kernel::time::{MICROSECOND, Time};
use xoff_net::topology::{NodeId, NodeKind, PortId, Topology};
use xoff_net::units::Span;
use xoff_schemes::flow_control::watchdog::{Action, WatchdogParams};

/// The shortest time between two polls: a poll of every queue is an event.
const SHORTEST_POLL: Time = MICROSECOND;

/// Refuses times that cannot be, and polls too rare for the other two.
pub(super) fn check(cx: &Context<'_>, keys: &WatchdogKeys) -> Result<(), Error> {
    let at = |key: &str| format!("flow_control.{key}");
    let times = [("detection_time", keys.detection_time), ("restoration_time", keys.restoration_time)];
    for (key, value) in times.into_iter().chain([("poll", keys.poll())]) {
        if value.0 > LONGEST {
            let message = format!("{key} = {value} is out of range");
            return Err(cx.doc.error(&at(key), message, format!("{} are the most", Span(LONGEST))));
        }
        if value.0 < SHORTEST_POLL {
            let message = format!("{key} = {value} is too short for a watchdog, which polls");
            let help = format!("write {} or more, such as \"200ms\"", Span(SHORTEST_POLL));
            return Err(cx.doc.error(&at(key), message, help));
        }
    }
    match times.into_iter().find(|(_, value)| keys.poll().0 > value.0) {
        None => Ok(()),
        Some((key, value)) => {
            let message = format!("poll = {} is longer than {key} = {value}", keys.poll());
            let help = format!("choose a `poll` of {value} or less, or remove it");
            Err(cx.doc.error(&at("poll"), message, help))
        }
    }
}

/// Whether `node` watches its queues: switches do, and hosts that relay. The NIC of a
/// plain host has no watchdog.
pub(super) fn watches(topology: &Topology, node: NodeId) -> bool {
    let own = |&&port: &&PortId| topology.neighbour(port) != node;
    let n = &topology.nodes[node as usize];
    match n.kind {
        NodeKind::Switch => true,
        NodeKind::Host => topology.relay_hosts && n.ports.iter().filter(own).count() > 1,
    }
}

/// The parameters of its state machines. Devices boot at different times: each begins to
/// poll at one of its own.
pub(super) fn params(cx: &Context<'_>, keys: &PfcWatchdog, topology: &Topology) -> WatchdogParams {
    let (watch, poll) = (&keys.watch, keys.watch.poll().0);
    let nodes = 0..topology.nodes.len() as NodeId;
    let polls: Vec<Option<Time>> = nodes
        .map(|node| {
            let mut stream = Stream::new(cx.scenario.run.seed, "watchdog polls", node.into());
            watches(topology, node).then(|| stream.below(poll))
        })
        .collect();
    WatchdogParams {
        pfc: super::memory::params(&keys.pfc),
        action: match watch.action {
            WatchdogAction::Drop => Action::Drop,
            WatchdogAction::Forward => Action::Forward,
            WatchdogAction::Alert => Action::Alert,
        },
        detection: watch.detection_time.0,
        restoration: watch.restoration_time.0,
        poll,
        first: topology.ports.iter().map(|p| polls[p.node as usize]).collect(),
    }
}
