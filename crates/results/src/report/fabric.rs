//! Devices, ports and layers, with the most that they held.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use serde::Serialize;

use crate::data::DataFile;
use crate::explain::read::{damaged, table};
use crate::storage::Error;
use xoff_net::import::roles;

/// Devices and ports refer to each other by position. Sizes are bytes.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Fabric {
    /// `topology.kind` of the scenario.
    pub topology: String,
    pub nodes: Vec<Node>,
    pub ports: Vec<Port>,
    /// From the hosts upwards.
    pub layers: Vec<Layer>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Node {
    pub name: String,
    /// `host`, `switch` or `relay`.
    pub kind: String,
    pub layer: usize,
    pub buffer: u64,
    pub buffer_peak: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Port {
    pub name: String,
    pub node: usize,
    pub peer: usize,
    pub rate_bps: u64,
    pub delay_ps: u64,
    /// Bytes of any kind that left it.
    pub bytes: u64,
    /// Most that one of its egress queues held.
    pub queue_peak: u64,
    /// Pause frames sent out of it, refreshes included.
    pub pause_frames: u64,
}

/// Devices of one tier, by their names or their distance from the hosts.
#[derive(Clone, Debug, Serialize)]
pub struct Layer {
    pub name: String,
    pub nodes: usize,
    /// The device that was fullest in proportion to its memory; null if none held anything.
    pub buffer: Option<Mark>,
    /// The ingress queue whose headroom was fullest; null if none was used.
    pub headroom: Option<Mark>,
    /// The longest egress queue; null if there was none.
    pub queue: Option<Mark>,
}

/// The most that something ever held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mark {
    pub place: String,
    pub bytes: u64,
    /// Of how many; null for queues, which share their device's memory.
    pub of: Option<u64>,
}

impl Fabric {
    pub fn nodes_by_name(&self) -> BTreeMap<&str, usize> {
        self.nodes.iter().enumerate().map(|(i, node)| (node.name.as_str(), i)).collect()
    }

    pub fn by_name(&self) -> BTreeMap<&str, usize> {
        self.ports.iter().enumerate().map(|(i, port)| (port.name.as_str(), i)).collect()
    }

    /// A port with where it leads: `S0.1:3 -> H35`.
    pub fn link(&self, port: usize) -> String {
        let port = &self.ports[port];
        format!("{} -> {}", port.name, self.nodes[self.ports[port.peer].node].name)
    }
}

pub fn read(path: &Path, topology: &str) -> Result<Fabric, Error> {
    let t = table(path, DataFile::Nodes, &["node", "kind", "buffer", "buffer_peak"])?;
    let node = |i: usize| Node {
        name: t.text("node", i).into(),
        kind: t.text("kind", i).into(),
        layer: 0,
        buffer: t.int("buffer", i),
        buffer_peak: t.int("buffer_peak", i),
    };
    let nodes = (0..t.rows()).map(node).collect();
    let mut fabric = Fabric { topology: topology.into(), nodes, ports: Vec::new(), layers: Vec::new() };
    fabric.ports = ports(path, &fabric)?;
    layers(&mut fabric, &headrooms(path)?);
    Ok(fabric)
}

fn ports(path: &Path, fabric: &Fabric) -> Result<Vec<Port>, Error> {
    const TEXTS: [&str; 3] = ["port", "node", "peer"];
    const INTS: [&str; 5] = ["rate_bps", "delay_ps", "bytes", "queue_peak", "pause_frames"];
    let t = table(path, DataFile::Ports, &[&TEXTS[..], &INTS[..]].concat())?;
    let by_node = fabric.nodes_by_name();
    let by_port: BTreeMap<&str, usize> = (0..t.rows()).map(|i| (t.text("port", i), i)).collect();
    let port = |i: usize| {
        let node = by_node.get(t.text("node", i)).ok_or_else(|| t.text("node", i))?;
        let peer = by_port.get(t.text("peer", i)).ok_or_else(|| t.text("peer", i))?;
        Ok(Port {
            name: t.text("port", i).into(),
            node: *node,
            peer: *peer,
            rate_bps: t.int("rate_bps", i),
            delay_ps: t.int("delay_ps", i),
            bytes: t.int("bytes", i),
            queue_peak: t.int("queue_peak", i),
            pause_frames: t.int("pause_frames", i),
        })
    };
    let ports: Result<Vec<Port>, &str> = (0..t.rows()).map(port).collect();
    ports.map_err(|name| {
        damaged(path, format!("is damaged: ports.parquet names `{name}`, which does not exist"))
    })
}

/// Of each port the ingress queue whose headroom was fullest: used bytes, and of how many.
fn headrooms(path: &Path) -> Result<BTreeMap<String, (u64, u64)>, Error> {
    let t = table(path, DataFile::Accounts, &["port", "headroom", "headroom_peak"])?;
    let mut fullest: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for i in 0..t.rows() {
        let Some((of, used)) = t.maybe_int("headroom", i).zip(t.maybe_int("headroom_peak", i)) else {
            continue;
        };
        let most = fullest.entry(t.text("port", i).into()).or_insert((0, 1));
        if used > 0 && !fuller(*most, (used, of)) {
            *most = (used, of);
        }
    }
    Ok(fullest)
}

/// Whether the first is at least as full in proportion as the second.
fn fuller(a: (u64, u64), b: (u64, u64)) -> bool {
    u128::from(a.0) * u128::from(b.1.max(1)) >= u128::from(b.0) * u128::from(a.1.max(1))
}

/// The place of a device's layer, and its name: by the tier in generated names such as `S1.3`, otherwise by the distance
/// from the hosts.
fn tier(node: &Node, distance: usize, is_generated: bool) -> (usize, String) {
    let numbered = |prefix: &str| prefix.strip_prefix('S').and_then(|n| n.parse::<usize>().ok());
    match (node.kind.as_str(), node.name.split_once('.')) {
        ("host", _) => (0, "hosts".into()),
        ("relay", _) => (usize::MAX, "relays".into()),
        (_, Some((prefix, _))) if is_generated => match numbered(prefix) {
            Some(tier) => (1 + tier, format!("switches {prefix}")),
            None => (usize::MAX / 2, format!("switches {prefix}")),
        },
        _ => (distance, format!("switches, {}", roles::tier_name(distance as u32))),
    }
}

fn layers(fabric: &mut Fabric, headrooms: &BTreeMap<String, (u64, u64)>) {
    let distances = distances(fabric);
    let is_generated = !["custom", "file", "hpcc"].contains(&fabric.topology.as_str());
    let mut tiers: Vec<_> =
        fabric.nodes.iter().zip(&distances).map(|(node, &d)| tier(node, d, is_generated)).collect();
    if distances.iter().max() == Some(&1) && !is_generated {
        tiers.iter_mut().filter(|(distance, _)| *distance == 1).for_each(|tier| tier.1 = "switches".into());
    }
    let mut different = tiers.clone();
    different.sort_unstable();
    different.dedup();
    let mut layers: Vec<Layer> = different
        .iter()
        .map(|(_, name)| Layer { name: name.clone(), nodes: 0, buffer: None, headroom: None, queue: None })
        .collect();
    let most = |mark: &mut Option<Mark>, place: &str, bytes: u64, of: Option<u64>| {
        let is_more =
            mark.as_ref().is_none_or(|m| !fuller((m.bytes, m.of.unwrap_or(1)), (bytes, of.unwrap_or(1))));
        if bytes > 0 && is_more {
            *mark = Some(Mark { place: place.into(), bytes, of });
        }
    };
    for (node, tier) in fabric.nodes.iter_mut().zip(&tiers) {
        node.layer = different.binary_search(tier).unwrap_or(0);
        let layer = &mut layers[node.layer];
        layer.nodes += 1;
        most(&mut layer.buffer, &node.name, node.buffer_peak, Some(node.buffer));
    }
    for port in &fabric.ports {
        let layer = &mut layers[fabric.nodes[port.node].layer];
        most(&mut layer.queue, &port.name, port.queue_peak, None);
        if let Some(&(used, of)) = headrooms.get(&port.name) {
            most(&mut layer.headroom, &port.name, used, Some(of));
        }
    }
    fabric.layers = layers;
}

/// Links from each device to the nearest host; 0 for a device that no host reaches.
fn distances(fabric: &Fabric) -> Vec<usize> {
    let mut near: Vec<Vec<usize>> = vec![Vec::new(); fabric.nodes.len()];
    for port in &fabric.ports {
        near[port.node].push(fabric.ports[port.peer].node);
    }
    let mut found: Vec<Option<usize>> =
        fabric.nodes.iter().map(|node| (node.kind == "host").then_some(0)).collect();
    let mut queue: VecDeque<usize> = (0..found.len()).filter(|&node| found[node].is_some()).collect();
    while let Some(node) = queue.pop_front() {
        for &next in &near[node] {
            if found[next].is_none() {
                found[next] = found[node].map(|d| d + 1);
                queue.push_back(next);
            }
        }
    }
    found.into_iter().map(|d| d.unwrap_or(0)).collect()
}
