//! A topology written out node by node.

use super::{Estimate, MAX_RADIX};
use crate::error::SpecError;
use crate::text::{is_in_node_name, is_in_port_name};
use crate::topology::{LinkSpec, NodeId, NodeKind, Topology};
use crate::units::{Bandwidth, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Hosts, switches and the links between them, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Custom {
    /// Names of the hosts, in order. A name consists of letters, digits, `.`, `_` and `-`, and not
    /// only of digits.
    pub hosts: Vec<String>,
    /// Names of the switches, under the same rule as `hosts`.
    #[serde(default)]
    pub switches: Vec<String>,
    /// The links; two links between the same nodes are parallel.
    pub links: Vec<CustomLink>,
    /// Whether hosts forward packets of other hosts.
    #[serde(default)]
    pub relay_hosts: bool,
}

/// A link of a custom topology.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CustomLink {
    /// One end.
    pub a: String,
    /// The other end.
    pub b: String,
    /// Name of the port at `a`, such as `Ethernet16`. Default: its number, from 0 in the order of
    /// the links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: the number of the port"))]
    pub a_port: Option<String>,
    /// Name of the port at `b`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: the number of the port"))]
    pub b_port: Option<String>,
    /// Line rate, the same in both directions.
    pub rate: Bandwidth,
    /// One-way propagation delay; a length such as `"80km"` counts 5 us per km.
    pub delay: Span,
    /// Whether it is a long link between sites: the settings for traffic between datacenters then
    /// apply to it.
    #[serde(default)]
    pub long: bool,
}

impl Custom {
    pub fn build(&self) -> Result<Topology, SpecError> {
        if self.hosts.is_empty() {
            let message = "the topology has no hosts";
            return Err(SpecError::new("hosts", message, "write at least one host, such as [\"A\", \"B\"]"));
        }
        let key = if self.hosts.len() > self.links.len() { "hosts" } else { "links" };
        Estimate { key, hosts: self.hosts.len() as u64, links: self.links.len() as u64, radix: 0 }.admit()?;

        let mut topology = Topology { relay_hosts: self.relay_hosts, ..Topology::default() };
        let mut by_name: BTreeMap<&str, (NodeId, String)> = BTreeMap::new();
        let lists = [("hosts", &self.hosts, NodeKind::Host), ("switches", &self.switches, NodeKind::Switch)];
        for (list, names, kind) in lists {
            for (i, name) in names.iter().enumerate() {
                let key = format!("{list}[{i}]");
                check_name(&key, name)?;
                let id = topology.add(name.clone(), kind);
                if let Some((_, first)) = by_name.insert(name, (id, key.clone())) {
                    let message = format!("the name `{name}` is used twice, first in {first}");
                    return Err(SpecError::new(key, message, "give each node a different name"));
                }
            }
        }
        let mut labels: BTreeMap<(NodeId, &str), usize> = BTreeMap::new();
        for (i, link) in self.links.iter().enumerate() {
            let end = |key: &str, name: &str| match by_name.get(name) {
                Some(&(id, _)) if topology.nodes[id as usize].ports.len() as u64 >= MAX_RADIX => {
                    let message = format!("`{name}` has more than {MAX_RADIX} links");
                    let help = "spread its links over several switches";
                    Err(SpecError::new(format!("links[{i}].{key}"), message, help))
                }
                Some(&(id, _)) => Ok(id),
                None => Err(SpecError::new(
                    format!("links[{i}].{key}"),
                    format!("no node is called `{name}`"),
                    format!("write one of {}", listed(by_name.keys())),
                )),
            };
            let (a, b) = (end("a", &link.a)?, end("b", &link.b)?);
            if a == b {
                let message = format!("a link connects `{}` to itself", link.a);
                return Err(SpecError::new(format!("links[{i}].b"), message, "write two different nodes"));
            }
            let (port, peer) = topology.link(a, b, LinkSpec { rate: link.rate, delay: link.delay });
            for (key, port, label) in [("a_port", port, &link.a_port), ("b_port", peer, &link.b_port)] {
                let Some(label) = label else { continue };
                let key = format!("links[{i}].{key}");
                check_port(&key, label)?;
                let node = topology.ports[port as usize].node;
                if let Some(first) = labels.insert((node, label), i) {
                    let node = &topology.nodes[node as usize].name;
                    let message = format!("port `{label}` of {node} is used twice, first in links[{first}]");
                    return Err(SpecError::new(key, message, "use each port for one link only"));
                }
                topology.port_labels.insert(port, label.clone());
            }
            if link.long {
                topology.set_long(port);
            }
        }
        for (i, name) in self.hosts.iter().enumerate() {
            if topology.nodes[i].ports.is_empty() {
                let help = format!("add a link with `{name}` at one end, or remove the host");
                return Err(SpecError::new(
                    format!("hosts[{i}]"),
                    format!("host `{name}` has no link"),
                    help,
                ));
            }
        }
        Ok(topology)
    }
}

/// Names appear in port names (`S1:3`), CSV files and on the command line, and a bare number would mean the
/// index of a host.
fn check_name(key: &str, name: &str) -> Result<(), SpecError> {
    if !name.is_empty() && name.chars().all(is_in_node_name) && !name.bytes().all(|b| b.is_ascii_digit()) {
        return Ok(());
    }
    let help = "use letters, digits, `.`, `_` and `-`; at least one must not be a digit";
    Err(SpecError::new(key, format!("`{name}` is not a valid name of a node"), help))
}

/// Names of ports appear behind the node's: `leaf1:Ethernet16`.
fn check_port(key: &str, name: &str) -> Result<(), SpecError> {
    if !name.is_empty() && name.chars().all(is_in_port_name) {
        return Ok(());
    }
    let help = "write a name without white space and quotes, such as Ethernet16";
    Err(SpecError::new(key, format!("`{name}` is not a valid name of a port"), help))
}

/// The first few names, for an error.
fn listed<'a>(names: impl ExactSizeIterator<Item = &'a &'a str>) -> String {
    const SHOWN: usize = 8;
    let more = names.len().saturating_sub(SHOWN);
    let text = names.take(SHOWN).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{text} and {more} more") } else { text }
}
