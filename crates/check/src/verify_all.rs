//! The small checker's walk over all routes: for each host, from every other host along every next hop.

use crate::verify::{Places, compare, control_lanes};
use std::collections::{BTreeMap, BTreeSet};
use xoff_net::routing::Router;
use xoff_net::topology::{NodeId, NodeKind};
use xoff_plan::plan::Plan;

/// A port, and a lane of it.
pub type Queue = (u32, u8);

/// The action of a walk at each pair of queues that packets take one after the other.
pub type Step<'s> = &'s mut dyn FnMut(Queue, Queue) -> Result<(), String>;

/// Links that have just failed, by all of their ports, and the router from before.
pub type After<'a> = Option<(&'a BTreeSet<u32>, &'a mut Router)>;

/// Compares the waits of every two queues that packets to some host may take one after the other. Where
/// links have just failed (`after`), the waits of the old routes may remain, and packets continue from the devices that they reached on these. Hosts in `apart` have routes of
/// their own; the other hosts of one switch are checked together, except for the last link.
pub fn all(
    plan: &Plan,
    router: &mut Router,
    mut after: After<'_>,
    apart: &BTreeSet<NodeId>,
    places: &Places,
) -> Result<u64, String> {
    let topology = &plan.topology;
    let mut compared = 0;
    // Queues into each switch that has been walked to.
    let mut walked: BTreeMap<NodeId, Vec<Queue>> = BTreeMap::new();
    for to in topology.hosts() {
        let links = &topology.nodes[to as usize].ports;
        if !links.iter().any(|&p| topology.neighbour(p) != to && router.alive(p)) {
            continue;
        }
        let switch = links.first().map(|&p| topology.neighbour(p)).filter(|&switch| {
            let lone = topology.nodes[switch as usize].kind == NodeKind::Switch
                && links.iter().all(|&p| [switch, to].contains(&topology.neighbour(p)));
            lone && !topology.relay_hosts && !apart.contains(&to)
        });
        let mut check = |from: Queue, next: Queue| {
            compared += u64::from(compare(plan, places, from, next, 0)?);
            Ok(())
        };
        if let Some((switch, known)) = switch.and_then(|s| Some((s, walked.get(&s)?))) {
            let mut outs = router.next_hops(switch, to);
            outs.extend(after.iter_mut().flat_map(|(_, before)| before.next_hops(switch, to)));
            for out in outs {
                for &(into, lane) in known.iter().filter(|q| topology.ports[q.0 as usize].node != to) {
                    let ingress = topology.ports[into as usize].peer;
                    check((into, lane), (out, plan.onward_lane(lane, ingress, out)))?;
                }
            }
            continue;
        }
        let (mut begun, mut lost) = (Vec::new(), Vec::new());
        if let Some((failed, before)) = &mut after {
            begun = reached(plan, before, to, Vec::new(), &mut check)?;
            lost = begun.extract_if(.., |&mut (port, _)| failed.contains(&port)).collect();
        }
        let queues = reached(plan, router, to, begun, &mut check)?;
        if let Some(switch) = switch {
            let mut into: Vec<Queue> =
                queues.into_iter().chain(lost).filter(|q| topology.neighbour(q.0) == switch).collect();
            // This host itself sends to the others.
            into.extend(first_queues(plan, links));
            walked.insert(switch, into);
        }
    }
    Ok(compared)
}

/// The queues in which packets may begin at some ports.
fn first_queues(plan: &Plan, ports: &[u32]) -> Vec<Queue> {
    let lanes: BTreeSet<u8> = plan.flows.iter().flat_map(|f| [f.lane, f.ack_lane]).collect();
    let mut lanes = if lanes.is_empty() { (0..plan.lanes.len() as u8).collect() } else { lanes };
    let (paused, cnp_lane) = control_lanes(plan);
    lanes.extend(cnp_lane.filter(|_| paused));
    ports.iter().flat_map(|&port| lanes.iter().map(move |&lane| (port, lane))).collect()
}

/// All queues in which packets to a host lie, from all other hosts and from where they are already.
pub fn reached(
    plan: &Plan,
    router: &mut Router,
    to: NodeId,
    begun: Vec<Queue>,
    step: Step<'_>,
) -> Result<Vec<Queue>, String> {
    let topology = &plan.topology;
    let mut outs: Vec<Option<Vec<u32>>> = vec![None; topology.nodes.len()];
    let firsts: Vec<u32> =
        topology.hosts().filter(|&h| h != to).flat_map(|h| router.next_hops(h, to)).collect();
    let mut seen: Vec<u8> = vec![0; topology.ports.len()];
    let mut queues: Vec<Queue> = begun.into_iter().chain(first_queues(plan, &firsts)).collect();
    queues.iter().for_each(|&(port, lane)| seen[port as usize] |= 1 << lane);
    let mut next = 0;
    while let Some(&(into, lane)) = queues.get(next) {
        next += 1;
        let at = topology.neighbour(into);
        if at == to {
            continue;
        }
        let source = topology.ports[into as usize].node;
        if plan.is_non_minimal() && topology.nodes[source as usize].kind == NodeKind::Host {
            for path in router.non_minimal(at, to) {
                let mut from = (into, lane);
                for out in path {
                    let onward = plan.onward_lane(from.1, topology.ports[from.0 as usize].peer, out);
                    step(from, (out, onward))?;
                    from = (out, onward);
                }
                if seen[from.0 as usize] >> from.1 & 1 == 0 {
                    seen[from.0 as usize] |= 1 << from.1;
                    queues.push(from);
                }
            }
        }
        for &out in outs[at as usize].get_or_insert_with(|| router.next_hops(at, to)).iter() {
            let onward = plan.onward_lane(lane, topology.ports[into as usize].peer, out);
            step((into, lane), (out, onward))?;
            if seen[out as usize] >> onward & 1 == 0 {
                seen[out as usize] |= 1 << onward;
                queues.push((out, onward));
            }
        }
    }
    Ok(queues)
}
