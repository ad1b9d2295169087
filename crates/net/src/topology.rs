//! A topology: nodes, ports and the links between them.
//!
//! Ports are directed from the inside of their node outwards: port `p` sends over its link to
//! `ports[p].peer`. Both directions of a link have the same rate and delay.

use crate::units::{Bandwidth, Span};
use std::collections::{BTreeMap, VecDeque};
use xoff_kernel::time::Time;

/// Index of a node in [`Topology::nodes`].
pub type NodeId = u32;
/// Index of a port in [`Topology::ports`]; also the name of a link direction.
pub type PortId = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// Sends and receives flows; in node-centric networks it also relays.
    Host,
    /// Forwards only.
    Switch,
}

/// A device with a name that errors, results and figures use.
#[derive(Clone, Debug)]
pub struct Node {
    /// `H13` for hosts; `S<tier>.<index>` for switches; free in custom topologies and files.
    pub name: String,
    pub kind: NodeKind,
    /// The node's ports, in the order of their index.
    pub ports: Vec<PortId>,
}

#[derive(Clone, Debug)]
pub struct Port {
    pub node: NodeId,
    pub peer: PortId,
    /// Position among the node's ports, from 0.
    pub index: u16,
    /// Bits per second.
    pub rate: u64,
    /// One-way propagation delay of the link, in picoseconds.
    pub delay: Time,
    /// Whether the link leads from one site to another, so that the settings for
    /// traffic between datacenters hold on it. Both ends say the same.
    pub long: bool,
    /// Probability that a frame is lost on the link, 0 to 1, in each direction. Both ends say the same.
    pub loss: f64,
}

/// Rate and delay of a link as a scenario writes them: `{ rate = "100Gbps", delay = "1us" }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Line rate, above zero.
    pub rate: Bandwidth,
    /// One-way propagation delay; a length such as `"80km"` counts 5 us per km.
    pub delay: Span,
}

/// The shape of an NDC(n, k), which is BCube(n, k): host addresses are `k + 1`
/// digits in base `n`, and port `l` of a host leads to its switch of layer `l`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cube {
    /// Ports of a switch, at least 2.
    pub n: u32,
    /// Highest layer, from 0; a host has `k + 1` ports.
    pub k: u32,
}

impl Cube {
    pub fn switches_per_layer(&self) -> u32 {
        self.n.pow(self.k)
    }

    pub fn hosts(&self) -> u32 {
        self.n.pow(self.k + 1)
    }

    /// Digit `l` of a host's address.
    pub fn digit(&self, host: NodeId, l: u32) -> u32 {
        host / self.n.pow(l) % self.n
    }

    /// Index within layer `l` of the switch that `host` is attached to: the host's address without digit `l`.
    pub fn switch_of(&self, host: NodeId, l: u32) -> u32 {
        let low = self.n.pow(l);
        host / low / self.n * low + host % low
    }

    /// Number of digits in which two hosts differ (their Hamming distance).
    pub fn hamming(&self, a: NodeId, b: NodeId) -> u32 {
        (0..=self.k).filter(|&l| self.digit(a, l) != self.digit(b, l)).count() as u32
    }
}

/// The shape of a two-dimensional torus: hosts in the order of their switches, then the switches row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torus {
    /// Switches of a row, at least 3.
    pub width: u32,
    /// Rows, at least 3.
    pub height: u32,
    /// Hosts at each switch, at least 1.
    pub hosts_per_switch: u32,
}

impl Torus {
    /// Column and row of a switch, or of the switch that a host is at.
    pub fn position(&self, node: NodeId) -> (u32, u32) {
        let hosts = self.width * self.height * self.hosts_per_switch;
        let switch = if node < hosts { node / self.hosts_per_switch } else { node - hosts };
        (switch % self.width, switch / self.width)
    }
}

/// The groups of a dragonfly: its switches are the last nodes, group by group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Switches of a group, at least 1.
    pub switches: u32,
    /// The first switch.
    pub first: NodeId,
}

impl Groups {
    /// The group of a switch; `None` for hosts.
    pub fn of(&self, node: NodeId) -> Option<u32> {
        node.checked_sub(self.first).map(|switch| switch / self.switches)
    }
}

/// The shape of pods and the cores between them. Hosts lie pod by pod and rack by
/// rack, then all ToRs, all aggregation switches, all cores. Links of hosts come first,
/// then those of each ToR, then those of each core, pod by pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodShape {
    /// Pods, at least 1.
    pub pods: u32,
    /// ToRs of a pod, at least 1.
    pub racks: u32,
    /// Hosts of a ToR, at least 1.
    pub hosts_per_rack: u32,
    /// Aggregation switches of a pod, 1 to 64.
    pub aggs: u32,
    /// Cores of all pods; core c is linked to aggregation switch `c mod aggs` of each.
    pub cores: u32,
}

#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// Every device. Hosts come first, in order, so that host `i` is node `i`.
    pub nodes: Vec<Node>,
    pub ports: Vec<Port>,
    /// Names of ports, such as `Ethernet16`, where they are no numbers.
    pub port_labels: BTreeMap<PortId, String>,
    /// What the topology's file was read without, or with a default for.
    pub remarks: Vec<String>,
    /// Whether hosts forward packets of other hosts.
    pub relay_hosts: bool,
    /// Set where the nodes are laid out as an NDC: hosts in the order of their
    /// addresses, then the switches layer by layer.
    pub cube: Option<Cube>,
    pub torus: Option<Torus>,
    pub groups: Option<Groups>,
    pub pods: Option<PodShape>,
    /// Number of relays, the last ones of the nodes: devices with two ports, port 0 towards a switch and port
    /// 1 towards the relay at the other end of a long link. A packet that arrives by one port leaves by the
    /// other.
    pub relays: u32,
}

impl Topology {
    pub fn add(&mut self, name: String, kind: NodeKind) -> NodeId {
        self.nodes.push(Node { name, kind, ports: Vec::new() });
        (self.nodes.len() - 1) as NodeId
    }

    /// By node: links to the nearest host; `u32::MAX` if there is no path to one.
    pub fn levels(&self) -> Vec<u32> {
        let mut levels = vec![u32::MAX; self.nodes.len()];
        let mut found: VecDeque<NodeId> = self.hosts().collect();
        found.iter().for_each(|&host| levels[host as usize] = 0);
        while let Some(node) = found.pop_front() {
            for &port in &self.nodes[node as usize].ports {
                let to = self.neighbour(port);
                if levels[to as usize] == u32::MAX {
                    levels[to as usize] = levels[node as usize] + 1;
                    found.push_back(to);
                }
            }
        }
        levels
    }

    /// Connects two nodes; returns the new ports at `a` and at `b`.
    pub fn link(&mut self, a: NodeId, b: NodeId, spec: LinkSpec) -> (PortId, PortId) {
        let first = self.ports.len() as PortId;
        for (offset, node) in [(0, a), (1, b)] {
            let ports = &mut self.nodes[node as usize].ports;
            let index = u16::try_from(ports.len()).expect("a node has at most 65,536 ports");
            ports.push(first + offset);
            self.ports.push(Port {
                node,
                peer: first + 1 - offset,
                index,
                rate: spec.rate.0,
                delay: spec.delay.0,
                long: false,
                loss: 0.0,
            });
        }
        (first, first + 1)
    }

    pub fn set_long(&mut self, port: PortId) {
        for end in [port, self.ports[port as usize].peer] {
            self.ports[end as usize].long = true;
        }
    }

    /// Puts a relay into each end of each long link, in the order of the links' ports: `RELAY.0` at the end
    /// of the first one's first port, `RELAY.1` at the other, and so on. A port of a long link keeps its
    /// number. It now leads to its relay, over a cable with the link's rate and this `delay`, which is not
    /// long and loses no packets. The link between the two relays has the properties of the long link. Relays
    /// have the last numbers of nodes and ports.
    /// Fails with the name of a relay that is the name of a node already.
    pub fn insert_relays(&mut self, delay: Time) -> Result<(), String> {
        let ends = (0..self.ports.len() as PortId).filter(|&p| {
            let port = &self.ports[p as usize];
            port.long && p < port.peer
        });
        for near in ends.collect::<Vec<_>>() {
            let Port { rate, delay: long, loss, peer: far, .. } = self.ports[near as usize];
            let relays = [near, far].map(|switch| {
                let name = format!("RELAY.{}", self.relays);
                if self.find(&name).is_some() {
                    return Err(name);
                }
                self.relays += 1;
                let node = self.add(name, NodeKind::Switch);
                let port = self.ports.len() as PortId;
                self.ports.push(Port { node, peer: switch, index: 0, rate, delay, long: false, loss: 0.0 });
                self.nodes[node as usize].ports.push(port);
                let end = &mut self.ports[switch as usize];
                *end = Port { peer: port, delay, long: false, loss: 0.0, ..end.clone() };
                Ok(node)
            });
            let [a, b] = relays;
            let (port, _) = self.link(a?, b?, LinkSpec { rate: Bandwidth(rate), delay: Span(long) });
            self.set_long(port);
            self.set_loss(port, loss);
        }
        Ok(())
    }

    /// The long links that join `a` and `b` through relays, in the order of the ports of `a`: of each, the
    /// port of the relay that is nearer to `a`.
    pub fn relayed(&self, a: NodeId, b: NodeId) -> Vec<PortId> {
        let long = |&port: &PortId| {
            let near = self.neighbour(port);
            let long = *self.nodes[near as usize].ports.get(1).filter(|_| self.is_relay(near))?;
            let far = self.neighbour(long);
            (self.is_relay(far) && self.neighbour(self.nodes[far as usize].ports[0]) == b).then_some(long)
        };
        self.nodes[a as usize].ports.iter().filter_map(long).collect()
    }

    /// Whether `node` is a relay in the end of a long link.
    pub fn is_relay(&self, node: NodeId) -> bool {
        node as usize + self.relays as usize >= self.nodes.len()
    }

    /// The ports of `node` between which it relays, if it is a relay in a long link,
    /// or a host that does so; else none. (The inner ports of a slow host lead nowhere.)
    pub fn relay_ports(&self, node: NodeId) -> &[PortId] {
        let n = &self.nodes[node as usize];
        if self.is_relay(node) {
            return &n.ports;
        }
        if !self.relay_hosts || n.kind != NodeKind::Host {
            return &[];
        }
        let own = n.ports.iter().take_while(|&&p| self.neighbour(p) != node).count();
        &n.ports[..own]
    }

    /// Sets the probability (0 to 1) that a frame is lost on the link of `port`.
    pub fn set_loss(&mut self, port: PortId, probability: f64) {
        for end in [port, self.ports[port as usize].peer] {
            self.ports[end as usize].loss = probability;
        }
    }

    /// The site of each node: nodes connected without long links are one site. Sites are numbered from 0, in
    /// the order of their first nodes.
    pub fn sites(&self) -> Vec<u32> {
        self.components(|port| !self.ports[port as usize].long)
    }

    /// The component of each node over the links that are kept, numbered in the order of their first nodes.
    pub(crate) fn components(&self, keep_link: impl Fn(PortId) -> bool) -> Vec<u32> {
        const NONE: u32 = u32::MAX;
        let mut components = vec![NONE; self.nodes.len()];
        let mut count = 0;
        for first in 0..components.len() {
            if components[first] != NONE {
                continue;
            }
            components[first] = count;
            let mut found = vec![first as NodeId];
            while let Some(node) = found.pop() {
                for &port in &self.nodes[node as usize].ports {
                    let to = self.neighbour(port);
                    if components[to as usize] == NONE && keep_link(port) {
                        components[to as usize] = count;
                        found.push(to);
                    }
                }
            }
            count += 1;
        }
        components
    }

    pub fn neighbour(&self, port: PortId) -> NodeId {
        self.ports[self.ports[port as usize].peer as usize].node
    }

    /// Whether the link of `port` ends at a host.
    pub fn leads_to_host(&self, port: PortId) -> bool {
        self.nodes[self.neighbour(port) as usize].kind == NodeKind::Host
    }

    /// The port with this number at a node, if there are both.
    pub fn port_at(&self, (node, port): (NodeId, u16)) -> Option<PortId> {
        self.nodes.get(node as usize)?.ports.get(usize::from(port)).copied()
    }

    pub fn hosts(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..self.nodes.len() as NodeId).filter(|&n| self.nodes[n as usize].kind == NodeKind::Host)
    }

    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|n| n.name == name).map(|i| i as NodeId)
    }

    /// Every node by its name, for many lookups.
    pub fn names(&self) -> BTreeMap<&str, NodeId> {
        self.nodes.iter().zip(0..).map(|(node, id)| (node.name.as_str(), id)).collect()
    }

    /// A port's name in results and errors: `S1.2:3` is port 3 of switch S1.2, or `leaf1:Ethernet16` by its label.
    pub fn port_name(&self, port: PortId) -> String {
        let p = &self.ports[port as usize];
        let node = &self.nodes[p.node as usize].name;
        match self.port_labels.get(&port) {
            Some(label) => format!("{node}:{label}"),
            None => format!("{node}:{}", p.index),
        }
    }

    /// The port of `node` with this label.
    pub fn find_port(&self, node: NodeId, label: &str) -> Option<PortId> {
        let mut ports = self.nodes[node as usize].ports.iter().copied();
        ports.find(|port| self.port_labels.get(port).is_some_and(|known| known == label))
    }
}
