//! Flows around a loop of switches, for a cycle of waiting links.

use super::burst::AFTER_THE_END;
use super::{Demand, check_count, nonzero};
use crate::error::SpecError;
use crate::topology::{NodeId, NodeKind, Topology};
use xoff_kernel::time::Time;

/// Flows that enter a loop of switches at each of them and go on in one direction.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    /// The switches, in the direction of the flows; each is linked to the next one and the last to the first.
    pub switches: &'a [NodeId],
    /// Links of the loop that each flow crosses, from 1 to one less than there are switches.
    pub hops: u32,
    /// Flows that enter at each switch at a time, at least 1: from one of its hosts after
    /// another, to the hosts of the switch `hops` links on, in their order likewise.
    pub flows: u32,
    /// Payload bytes of each flow, at least 1.
    pub size: u64,
    /// When those at the first time start.
    pub start: Time,
    /// By switch: how much later those that enter there start. Empty is 0 for all.
    pub offsets: &'a [Time],
    /// How many times, at least 1.
    pub bursts: u32,
    /// Time from one burst to the next.
    pub period: Time,
}

/// The flows and the nodes on the path of each, both ends included: by time, then by switch, then by host.
pub fn around(topology: &Topology, spec: &Around<'_>) -> Result<Vec<(Demand, Vec<NodeId>)>, SpecError> {
    let n = spec.switches.len();
    let name = |node: NodeId| &topology.nodes[node as usize].name;
    let neighbours = |node: NodeId| {
        topology.nodes[node as usize].ports.iter().map(|&port| topology.neighbour(port)).collect::<Vec<_>>()
    };
    let refuse = |key: &str, message: String, help: &str| Err(SpecError::new(key, message, help));
    if n < 3 {
        let message = format!("{n} switches cannot form a loop");
        return refuse("switches", message, "write at least three switches");
    }
    let mut hosts = Vec::with_capacity(n);
    for (i, &switch) in spec.switches.iter().enumerate() {
        if spec.switches[..i].contains(&switch) {
            let message = format!("{} is listed twice", name(switch));
            return refuse("switches", message, "write each switch of the loop once");
        }
        let next = spec.switches[(i + 1) % n];
        let around = neighbours(switch);
        if !around.contains(&next) {
            let help = "each switch must have a link to the next, and the last to the first";
            return refuse("switches", format!("{} has no link to {}", name(switch), name(next)), help);
        }
        let own: Vec<NodeId> =
            around.into_iter().filter(|&node| topology.nodes[node as usize].kind == NodeKind::Host).collect();
        if own.is_empty() {
            let message = format!("{} has no hosts", name(switch));
            return refuse("switches", message, "choose switches that have hosts");
        }
        hosts.push(own);
    }
    if spec.hops == 0 || spec.hops as usize >= n {
        let message = format!("hops = {} is out of range: the loop has {n} links", spec.hops);
        return refuse("hops", message, "write at least 1, and less than the number of links");
    }
    if !spec.offsets.is_empty() && spec.offsets.len() != n {
        let message = format!("expected {n} offsets, one for each switch, found {}", spec.offsets.len());
        return refuse("offsets", message, "write one offset for each switch, in the same order");
    }
    nonzero("flows", spec.flows)?;
    nonzero("bursts", spec.bursts)?;
    let count = u64::from(spec.flows).saturating_mul(u64::from(spec.bursts)).saturating_mul(n as u64);
    check_count("flows", count as f64)?;
    let latest = spec.offsets.iter().copied().max().unwrap_or(0);
    let last = u64::from(spec.bursts - 1)
        .checked_mul(spec.period)
        .and_then(|t| t.checked_add(spec.start)?.checked_add(latest));
    if last.is_none() {
        return refuse("period", AFTER_THE_END.into(), "write a shorter time");
    }

    let mut flows = Vec::with_capacity(count as usize);
    for burst in 0..u64::from(spec.bursts) {
        for i in 0..n {
            let start = spec.start + burst * spec.period + spec.offsets.get(i).copied().unwrap_or(0);
            let exit = (i + spec.hops as usize) % n;
            for f in 0..spec.flows as usize {
                let src = hosts[i][f % hosts[i].len()];
                let dst = hosts[exit][f % hosts[exit].len()];
                let on = (0..=spec.hops as usize).map(|hop| spec.switches[(i + hop) % n]);
                let way = [src].into_iter().chain(on).chain([dst]).collect();
                flows.push((Demand { src, dst, size: spec.size, start }, way));
            }
        }
    }
    Ok(flows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builders::FullMesh;
    use crate::topology::LinkSpec;

    fn mesh() -> Topology {
        let link = LinkSpec { rate: "100Gbps".parse().unwrap(), delay: "1us".parse().unwrap() };
        FullMesh { switches: 5, hosts_per_switch: 2, link, fabric_link: None }.build().unwrap()
    }

    fn nodes(topology: &Topology, names: &[&str]) -> Vec<NodeId> {
        names.iter().map(|name| topology.find(name).unwrap()).collect()
    }

    #[test]
    fn flows_enter_at_every_switch_and_leave_some_links_on() {
        let topology = mesh();
        let switches = nodes(&topology, &["S0.0", "S0.3", "S0.1", "S0.4"]);
        let offsets = [0, 7, 0, 9];
        let spec = Around {
            switches: &switches,
            hops: 3,
            flows: 3,
            size: 500,
            start: 100,
            offsets: &offsets,
            bursts: 2,
            period: 1_000,
        };
        let flows = around(&topology, &spec).unwrap();
        assert_eq!(flows.len(), 4 * 3 * 2);
        // The first of those that enter at the second switch, and the third, of its first host again.
        let name = |&node: &NodeId| topology.nodes[node as usize].name.as_str();
        let way: Vec<&str> = flows[3].1.iter().map(name).collect();
        assert_eq!(way, ["H6", "S0.3", "S0.1", "S0.4", "S0.0", "H0"]);
        assert_eq!((flows[3].0.start, flows[3].0.size), (107, 500));
        assert_eq!(flows[5].1, flows[3].1);
        assert_eq!(flows[4].0.dst, topology.find("H1").unwrap());
        assert_eq!(flows[12 + 3], (Demand { start: 1_107, ..flows[3].0 }, flows[3].1.clone()));
        // Each link of the loop has the flows of three switches.
        for i in 0..4 {
            let link = [switches[i], switches[(i + 1) % 4]];
            let over = flows.iter().filter(|(_, way)| way.windows(2).any(|pair| pair == link));
            assert_eq!(over.count(), 3 * 3 * 2);
        }
    }

    #[test]
    fn invalid_loops_are_refused() {
        let topology = mesh();
        let switches = nodes(&topology, &["S0.0", "S0.1", "S0.2"]);
        let spec = Around {
            switches: &switches,
            hops: 2,
            flows: 1,
            size: 1,
            start: 0,
            offsets: &[],
            bursts: 1,
            period: 0,
        };
        assert_eq!(around(&topology, &spec).unwrap().len(), 3);
        let key = |spec: &Around<'_>| around(&topology, spec).unwrap_err().key;
        assert_eq!(key(&Around { switches: &switches[..2], ..spec }), "switches");
        assert_eq!(
            key(&Around { switches: &nodes(&topology, &["S0.0", "S0.1", "S0.0"]), ..spec }),
            "switches"
        );
        assert_eq!(key(&Around { switches: &nodes(&topology, &["S0.0", "S0.1", "H0"]), ..spec }), "switches");
        assert_eq!(key(&Around { hops: 0, ..spec }), "hops");
        assert_eq!(key(&Around { hops: 3, ..spec }), "hops");
        assert_eq!(key(&Around { offsets: &[1, 2], ..spec }), "offsets");
        assert_eq!(key(&Around { flows: 0, ..spec }), "flows");
        assert_eq!(key(&Around { flows: u32::MAX, ..spec }), "flows");
        assert_eq!(key(&Around { bursts: 0, ..spec }), "bursts");
        assert_eq!(key(&Around { bursts: 3, period: Time::MAX / 2 + 1, ..spec }), "period");
    }
}
