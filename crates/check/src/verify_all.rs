//! The small checker's walk over all routes: for each host by itself, from every
//! other host along every next hop.

use crate::verify::{Places, compare};
use std::collections::BTreeSet;
use xoff_net::routing::Router;
use xoff_net::topology::NodeId;
use xoff_plan::plan::Plan;

/// Compares the waits of every pair of links that packets to some host may take
/// one after the other.
pub fn all(plan: &Plan, router: &mut Router, places: &Places) -> Result<u64, String> {
    let topology = &plan.topology;
    let lanes: BTreeSet<u8> = plan.flows.iter().flat_map(|f| [f.lane, f.ack_lane]).collect();
    let lanes = if lanes.is_empty() { (0..plan.lanes.len() as u8).collect() } else { lanes };
    let mut compared = 0;
    // By port: the lanes in which packets to the host have been seen to leave, and to which host.
    let mut seen: Vec<(NodeId, u8)> = vec![(NodeId::MAX, 0); topology.ports.len()];
    let mut outs: Vec<(NodeId, Vec<u32>)> = vec![(NodeId::MAX, Vec::new()); topology.nodes.len()];
    let mut first = |to: NodeId, port: u32, lane: u8| {
        let known = &mut seen[port as usize];
        let new = known.0 != to || known.1 >> lane & 1 == 0;
        *known = (to, if known.0 == to { known.1 } else { 0 } | 1 << lane);
        new
    };
    for to in topology.hosts() {
        let mut links: Vec<(u32, u8)> = Vec::new();
        for from in topology.hosts().filter(|&from| from != to) {
            for port in router.next_hops(from, to) {
                links.extend(lanes.iter().map(|&lane| (port, lane)).filter(|&(p, l)| first(to, p, l)));
            }
        }
        while let Some((into, lane)) = links.pop() {
            let at = topology.neighbour(into);
            if at == to {
                continue;
            }
            if outs[at as usize].0 != to {
                outs[at as usize] = (to, router.next_hops(at, to));
            }
            for &out in &outs[at as usize].1 {
                let onward = plan.onward_lane(lane, topology.ports[into as usize].peer, out);
                compared += u64::from(compare(plan, places, (into, lane), (out, onward), 0)?);
                if first(to, out, onward) {
                    links.push((out, onward));
                }
            }
        }
    }
    Ok(compared)
}
