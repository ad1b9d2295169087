//! The other paths that a flow control gives packets which wait.

use super::routes::Routes;
use super::{Context, MEMORY};
use crate::error::Error;
use crate::plan::{self, DELIVER, ENDS};
use std::collections::{BTreeMap, BTreeSet};
use xoff_net::routing::{Ends, Router};
use xoff_net::topology::{NodeId, PortId, Topology};
use xoff_schemes::flow_control::fabric::watches;

/// The alternatives of a flow control that reroutes: for each place on a route where a packet can wait in a
/// device, another place of the same device. From there the packet reaches its host on a path that the
/// network's routing finds without the original link, and without the links that fail at some time. All
/// packets of a queue for one host get the same path. Packets on such paths can be rerouted again.
pub(super) fn detours(
    cx: &Context<'_>,
    topology: &Topology,
    routes: &mut Routes,
    faults: &plan::Faults,
) -> Result<Vec<(u32, u32)>, Error> {
    if !cx.scenario.flow_control.reroutes() {
        return Ok(Vec::new());
    }
    let failing: BTreeSet<PortId> = faults.down.iter().map(|down| down.port).collect();
    let devices: Vec<bool> =
        (0..topology.nodes.len() as NodeId).map(|node| watches(topology, node)).collect();
    // By egress port and destination: the beginning of the other path, if there is one.
    let mut paths: BTreeMap<(PortId, NodeId), Option<u32>> = BTreeMap::new();
    let mut detours: Vec<(u32, PortId, NodeId)> = Vec::new();
    let mut seen = 0;
    while seen < routes.hops.len() {
        // By egress port, so that each needs one router at a time.
        let mut wanted: BTreeMap<PortId, BTreeMap<NodeId, Vec<u32>>> = BTreeMap::new();
        while let Some(length) = routes.hops[seen..].iter().position(|&hop| hop >= ENDS) {
            let (from, end) = (seen, seen + length);
            seen = end + 1;
            let outer =
                routes.hops[from..end].iter().filter(|&&p| (p as usize) < topology.ports.len()).count();
            if routes.hops[end] != DELIVER || outer == 0 {
                continue;
            }
            let host = topology.neighbour(routes.hops[from + outer - 1]);
            // The part of the path that leads into a slow host's inner queue.
            let tail = routes.hops[from + outer..=end].to_vec();
            for at in from..from + outer {
                let port = routes.hops[at];
                if devices[topology.ports[port as usize].node as usize] {
                    detours.push((at as u32, port, host));
                    if !paths.contains_key(&(port, host)) {
                        wanted.entry(port).or_default().entry(host).or_insert_with(|| tail.clone());
                    }
                }
            }
        }
        for (port, hosts) in wanted {
            let mut dead = failing.clone();
            dead.extend([port, topology.ports[port as usize].peer]);
            let mut router = routes.router.without(&dead);
            for (host, tail) in hosts {
                let path = find_other_path(&mut router, topology.ports[port as usize].node, host);
                paths.insert(
                    (port, host),
                    path.map(|ports| {
                        let start = routes.hops.len() as u32;
                        routes.hops.extend(ports);
                        routes.hops.extend(tail);
                        start
                    }),
                );
            }
        }
        if routes.hops.len() > (u32::MAX / 2) as usize || detours.len() as u64 * 12 > MEMORY {
            let message = "the alternative paths of all packets need too much memory";
            return cx.refuse(
                "flow_control.scheme",
                message,
                "send fewer flows, or choose a smaller network",
            );
        }
    }
    Ok(detours.into_iter().filter_map(|(at, port, host)| Some((at, paths[&(port, host)]?))).collect())
}

/// The egress ports of a path that ends at `host`.
fn find_other_path(router: &mut Router, device: NodeId, host: NodeId) -> Option<Vec<PortId>> {
    if device == host {
        return None;
    }
    let route = router.route(device, host, host.into()).ok()?;
    (route.ends == Ends::Deliver).then_some(route.ports)
}
