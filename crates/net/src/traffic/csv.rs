//! Flows from a CSV file.

use super::Demand;
use crate::error::LineError;
use crate::text::{lines, shown};
use crate::topology::{NodeId, NodeKind, Topology};
use crate::units::Span;
use std::collections::BTreeMap;
use xoff_kernel::time::Time;

const HEADER: &str = "src,dst,bytes,start";

/// Reads flows from lines of comma-separated values under the header `src,dst,bytes,start`, in any order of
/// columns. Hosts are given by name or by index (`H3` or `3`); `start` has a unit (`1.5us`), or the column is
/// called `start_ns`. Empty lines and lines that begin with `#` are skipped.
///
/// The flows are returned in the order of time; those of one time in that of the file.
pub fn flows_csv(text: &str, topology: &Topology) -> Result<Vec<Demand>, LineError> {
    // Spreadsheets begin their files with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut rows = lines(text);
    let Some((line, header)) = rows.next() else {
        return Err(LineError { line: 1, message: format!("the file is empty: write the header {HEADER}") });
    };
    let columns = columns(header).map_err(|message| LineError { line, message })?;
    let names = topology.names();
    let mut flows = Vec::new();
    for (line, content) in rows {
        let flow =
            flow(content, &columns, topology, &names).map_err(|message| LineError { line, message })?;
        flows.push(flow);
    }
    if flows.is_empty() {
        return Err(LineError { line, message: "there are no flows below the header".to_string() });
    }
    flows.sort_by_key(|flow| flow.start);
    Ok(flows)
}

fn columns(header: &str) -> Result<Vec<&str>, String> {
    let mut columns = Vec::new();
    for name in header.split(',').map(str::trim) {
        if !["src", "dst", "bytes", "start", "start_ns"].contains(&name) {
            return Err(format!(
                "unknown column `{}`: the header is {HEADER} (or start_ns), and no other columns",
                shown(name)
            ));
        }
        if columns.contains(&name) {
            return Err(format!("the column `{name}` is defined twice"));
        }
        columns.push(name);
    }
    if let Some(name) = ["src", "dst", "bytes"].into_iter().find(|name| !columns.contains(name)) {
        return Err(format!("the column `{name}` is missing: the header is {HEADER}"));
    }
    match (columns.contains(&"start"), columns.contains(&"start_ns")) {
        (false, false) => Err("the column `start` (or `start_ns`) is missing".to_string()),
        (true, true) => {
            Err("the columns `start` and `start_ns` cannot be combined: remove one of them".to_string())
        }
        _ => Ok(columns),
    }
}

fn flow(
    content: &str,
    columns: &[&str],
    topology: &Topology,
    names: &BTreeMap<&str, NodeId>,
) -> Result<Demand, String> {
    let fields: Vec<&str> = content.split(',').map(str::trim).collect();
    if fields.len() != columns.len() {
        return Err(format!("this line has {} fields, but the header has {}", fields.len(), columns.len()));
    }
    let mut flow = Demand { src: 0, dst: 0, size: 0, start: 0 };
    for (&column, field) in columns.iter().zip(fields) {
        match column {
            "src" => flow.src = host(field, topology, names)?,
            "dst" => flow.dst = host(field, topology, names)?,
            "bytes" => match field.parse() {
                Ok(0) => return Err("a flow must have at least 1 byte".to_string()),
                Ok(size) => flow.size = size,
                Err(_) => return Err(format!("`{}` is not a whole number of bytes", shown(field))),
            },
            "start" => flow.start = time(field)?,
            // Whether a number is there is said about the field, not about the unit that the column adds.
            _ if !field.ends_with(|c: char| c.is_ascii_digit()) => {
                return Err(format!("`{}` is not a number of nanoseconds", shown(field)));
            }
            _ => flow.start = time(&format!("{field}ns"))?,
        }
    }
    if flow.src == flow.dst {
        return Err(format!("a flow from {} to itself", topology.nodes[flow.src as usize].name));
    }
    Ok(flow)
}

fn time(field: &str) -> Result<Time, String> {
    field.parse::<Span>().map(|span| span.0).map_err(|error| error.to_string())
}

fn host(field: &str, topology: &Topology, names: &BTreeMap<&str, NodeId>) -> Result<NodeId, String> {
    let is_host =
        |id: NodeId| topology.nodes.get(id as usize).is_some_and(|node| node.kind == NodeKind::Host);
    if let Some(&id) = names.get(field) {
        let switch = || format!("`{field}` is a switch: only hosts send and receive flows");
        return is_host(id).then_some(id).ok_or_else(switch);
    }
    match field.parse::<NodeId>() {
        Ok(id) if is_host(id) => Ok(id),
        _ => {
            let last = topology.hosts().last().unwrap_or(0);
            Err(format!("no host is called `{}`: write a name, or an index from 0 to {last}", shown(field)))
        }
    }
}
