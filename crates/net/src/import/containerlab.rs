//! Topologies of containerlab: `topology.nodes`, and `topology.links` with their endpoints.

use super::tree::{self, Value};
use super::{Cable, Inventory, quantities};
use crate::error::SpecError;

const FORM: &str = "write links such as `- endpoints: [\"leaf1:e1-1\", \"spine1:e1-1\"]`";

pub(super) fn read(text: &str, inventory: &mut Inventory) -> Result<(), SpecError> {
    let documents = tree::parse(text)?;
    let root = tree::first(&documents)?;
    let Some(topology) = root.get("topology") else {
        return Err(root.refused("this file has no table `topology`", FORM));
    };
    let defaults = topology.get("defaults").and_then(|d| d.get("kind")?.text());
    for (name, node) in topology.get("nodes").into_iter().flat_map(Value::entries) {
        inventory.device(name);
        let label = node.get("labels").and_then(|l| l.get("role").or_else(|| l.get("graph-icon"))?.text());
        let group = || node.get("group").and_then(Value::text);
        // Network operating systems have kinds of their own.
        let kind = || node.get("kind").and_then(Value::text).or_else(|| defaults.clone());
        let linux = || kind().filter(|kind| kind == "linux").map(|_| "host".to_string());
        if let Some(role) = label.or_else(group).or_else(linux) {
            inventory.set_role(name, &role);
        }
    }
    let Some(links) = topology.get("links") else {
        return Err(topology.refused("this topology has no `links`", FORM));
    };
    for link in links.list() {
        let Some(endpoints) = link.get("endpoints") else {
            return Err(link.refused("this link has no `endpoints`", FORM));
        };
        let mut ends = Vec::new();
        for end in endpoints.list() {
            let short = end.text();
            let named = match &short {
                Some(text) => text.split_once(':').map(|(node, port)| (node.to_string(), port.to_string())),
                None => end.get("node").and_then(Value::text).zip(end.get("interface").and_then(Value::text)),
            };
            let Some((node, port)) = named else {
                return Err(end.refused("this end is no node and interface", FORM));
            };
            ends.push((node, port));
        }
        let [a, b] = &ends[..] else {
            return Err(endpoints.refused(format!("a link has 2 endpoints, not {}", ends.len()), FORM));
        };
        // Management networks and bridges of the machine are no devices of the network.
        if [a, b].iter().any(|(node, _)| matches!(node.as_str(), "host" | "mgmt-net" | "macvlan")) {
            inventory
                .remarks
                .push(format!("the link {}:{} - {}:{} left out: it leaves the network", a.0, a.1, b.0, b.1));
            continue;
        }
        let value = |names: [&str; 2]| {
            let vars = link.get("vars");
            names.iter().find_map(|name| link.get(name).or_else(|| vars?.get(name)))
        };
        let rate = value(["rate", "bandwidth"])
            .and_then(|at| Some((at, at.text()?)))
            .map(|(at, rate)| quantities::rate(&rate, None).map_err(|e| at.refused(e, FORM)))
            .transpose()?;
        let delay = value(["delay", "length"])
            .and_then(|at| Some((at, at.text()?)))
            .map(|(at, delay)| quantities::delay(&delay, None).map_err(|e| at.refused(e, FORM)))
            .transpose()?;
        let ends = [a, b].map(|(node, port)| inventory.end(node, Some(port)));
        inventory.connect(Cable { ends, rate, delay, loss: 0.0, line: link.line() })?;
    }
    Ok(())
}
