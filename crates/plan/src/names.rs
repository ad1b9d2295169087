//! Nodes and ports by the names that people write.

use crate::error::nearest;
use xoff_net::text::sample;
use xoff_net::topology::{NodeId, NodeKind, PortId, Topology};

/// A name that names nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    pub message: String,
    pub help: String,
}

pub fn node(topology: &Topology, name: &str) -> Result<NodeId, Unknown> {
    topology.find(name).ok_or_else(|| Unknown {
        message: format!("no node is called `{name}`"),
        help: match nearest(name, topology.nodes.iter().map(|n| n.name.as_str())) {
            Some(best) => format!("did you mean `{best}`? {}", extent(topology)),
            None => extent(topology),
        },
    })
}

/// The port called `name`, such as `S0.0:1`.
pub fn port(topology: &Topology, name: &str) -> Result<PortId, Unknown> {
    // A port's name may contain a colon, a node's does not.
    let Some((of, index)) = name.split_once(':') else {
        return Err(Unknown {
            message: format!("`{name}` is not the name of a port"),
            help: "write NODE:PORT, such as \"S0.0:1\"".into(),
        });
    };
    let id = node(topology, of)?;
    if let Some(port) = topology.find_port(id, index) {
        return Ok(port);
    }
    let of = &topology.nodes[id as usize];
    // `+1` and `01` are numbers, but no names.
    let number = index.parse::<usize>().ok().filter(|i| i.to_string() == index);
    let found = number.and_then(|i| of.ports.get(i));
    found.copied().ok_or_else(|| Unknown {
        message: format!("{} has no port `{index}`", of.name),
        help: {
            let last = of.ports.len().saturating_sub(1);
            let labels: Vec<&str> =
                of.ports.iter().filter_map(|p| Some(topology.port_labels.get(p)?.as_str())).collect();
            match labels[..] {
                [] => format!("its ports are 0 to {last}"),
                _ => format!("its ports are {}, or 0 to {last}", sample(&labels)),
            }
        },
    })
}

/// The ports of links that `names` name, in that order, each once: a port, a node for all of its
/// ports, `switches` for those of all switches, or `all`.
pub fn ports(topology: &Topology, names: &[String]) -> Result<Vec<PortId>, Unknown> {
    let inner = |port: PortId| topology.neighbour(port) == topology.ports[port as usize].node;
    let mut known = vec![false; topology.ports.len()];
    let mut found = Vec::new();
    let mut add = |ports: &[PortId]| {
        for &port in ports.iter().filter(|&&port| !inner(port)) {
            if !std::mem::replace(&mut known[port as usize], true) {
                found.push(port);
            }
        }
    };
    for name in names {
        // A node of a custom topology may be called anything.
        let is_node = topology.find(name).is_some();
        match name.as_str() {
            "all" if !is_node => topology.nodes.iter().for_each(|n| add(&n.ports)),
            "switches" if !is_node => {
                topology.nodes.iter().filter(|n| n.kind == NodeKind::Switch).for_each(|n| add(&n.ports));
            }
            name if name.contains(':') => {
                let port = port(topology, name)?;
                if inner(port) {
                    let host = &topology.nodes[topology.ports[port as usize].node as usize];
                    let links = host.ports.iter().filter(|&&p| !inner(p)).count();
                    return Err(Unknown {
                        message: format!("{name} is inside the slow receiver {} and has no link", host.name),
                        help: format!("the ports of its links are 0 to {}", links.saturating_sub(1)),
                    });
                }
                add(&[port]);
            }
            name => add(&topology.nodes[node(topology, name)? as usize].ports),
        }
    }
    Ok(found)
}

/// Which nodes there are, in a few words.
pub(crate) fn extent(topology: &Topology) -> String {
    let of = |kind: NodeKind| {
        let mut names = topology.nodes.iter().filter(|n| n.kind == kind).map(|n| n.name.as_str());
        match (names.next(), names.next_back()) {
            (Some(first), Some(last)) => format!("{first} to {last}"),
            (Some(only), None) => only.to_string(),
            _ => "none".to_string(),
        }
    };
    format!("the hosts are {}; the switches are {}", of(NodeKind::Host), of(NodeKind::Switch))
}
