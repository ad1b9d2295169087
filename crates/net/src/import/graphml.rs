//! GraphML: nodes and edges, with attributes that keys declare.

use super::{Cable, Inventory, quantities};
use crate::builders::fault;
use crate::error::SpecError;
use roxmltree::{Document, Node};
use std::collections::BTreeMap;

const FORM: &str = "expected GraphML: <graph> with <node id=\"…\"/> and <edge source=\"…\" target=\"…\"/>";

pub(super) fn read(text: &str, inventory: &mut Inventory) -> Result<(), SpecError> {
    let document = Document::parse(text).map_err(|e| {
        let at = e.pos();
        fault(at.row as usize, e, "correct the syntax of the file").in_column(at.col as usize)
    })?;
    let place = |node: Node<'_, '_>| document.text_pos_at(node.range().start);
    let refused = |node: Node<'_, '_>, message: String| {
        let at = place(node);
        fault(at.row as usize, message, FORM).in_column(at.col as usize)
    };
    let called =
        |name: &'static str| document.descendants().filter(move |node| node.tag_name().name() == name);
    let Some(graph) = called("graph").next() else {
        return Err(refused(document.root_element(), "this XML file has no element <graph>".to_string()));
    };
    // By the identifier of a key, the attribute that it declares.
    let keys: BTreeMap<&str, String> = called("key")
        .filter_map(|key| {
            Some((key.attribute("id")?, key.attribute("attr.name").unwrap_or(key.attribute("id")?)))
        })
        .map(|(id, name)| (id, name.to_ascii_lowercase()))
        .collect();
    let data = |node: Node<'_, '_>, names: &[&str]| -> Option<String> {
        let found = |name: &str| {
            node.children().filter(|child| child.tag_name().name() == "data").find_map(|child| {
                let id = child.attribute("key")?;
                let declared = keys.get(id).map_or(id, String::as_str);
                (declared == name).then(|| child.text().unwrap_or("").trim().to_string())
            })
        };
        names.iter().find_map(|name| found(name)).filter(|text| !text.is_empty())
    };

    // Names are labels where these differ, else identifiers.
    let nodes: Vec<(&str, Option<String>, Node<'_, '_>)> = called("node")
        .filter_map(|node| Some((node.attribute("id")?, data(node, &["label", "name"]), node)))
        .collect();
    let mut labels: BTreeMap<&str, u32> = BTreeMap::new();
    nodes
        .iter()
        .filter_map(|(_, label, _)| label.as_deref())
        .for_each(|label| *labels.entry(label).or_default() += 1);
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for (id, label, node) in &nodes {
        let name = label.as_deref().filter(|label| labels.get(label) == Some(&1)).unwrap_or(id);
        names.insert(id, name);
        inventory.device(name);
        if let Some(role) = data(*node, &["role", "type", "kind", "devicetype"]) {
            inventory.set_role(name, &role);
        }
    }
    for edge in called("edge") {
        let end = |name: &'static str| {
            let id = edge.attribute(name).ok_or_else(|| refused(edge, format!("this edge has no {name}")))?;
            names.get(id).copied().ok_or_else(|| refused(edge, format!("no node has the id `{id}`")))
        };
        let (source, target) = (end("source")?, end("target")?);
        let rate = match data(edge, &["linkspeedraw"]) {
            Some(raw) => Some(quantities::rate(&raw, Some(1))),
            None => data(edge, &["rate", "speed", "bandwidth", "capacity"])
                .map(|rate| quantities::rate(&rate, None)),
        };
        let rate = rate.transpose().map_err(|e| refused(edge, e))?;
        let delay = data(edge, &["delay", "latency", "length", "distance"])
            .map(|delay| quantities::delay(&delay, None))
            .transpose()
            .map_err(|e| refused(edge, e))?;
        let port = |attribute: &str, names: &[&str]| {
            edge.attribute(attribute).map(str::to_string).or_else(|| data(edge, names))
        };
        let ports = [
            port("sourceport", &["sourceport", "source_port", "port_a"]),
            port("targetport", &["targetport", "target_port", "port_b"]),
        ];
        let ends = [inventory.end(source, ports[0].as_deref()), inventory.end(target, ports[1].as_deref())];
        let line = place(edge).row as usize;
        inventory.connect(Cable { ends, rate, delay, loss: 0.0, line })?;
    }
    if graph.attribute("edgedefault") == Some("directed") {
        inventory.join_directions();
    }
    Ok(())
}
