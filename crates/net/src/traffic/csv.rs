//! Flows from a CSV file.

use super::Demand;
use crate::text::shown;
use crate::topology::{NodeId, NodeKind, Topology};
use crate::units::Span;
use std::collections::BTreeMap;
use std::fmt;
use xoff_kernel::time::Time;

/// An error in a CSV file of flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvError {
    /// Line, from 1.
    pub line: usize,
    /// The problem in that line.
    pub message: String,
}

impl fmt::Display for CsvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for CsvError {}

/// The content of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Src,
    Dst,
    Bytes,
    /// With a unit.
    Start,
    /// A number of nanoseconds.
    StartNs,
}

const HEADER: &str = "src,dst,bytes,start";

/// Reads flows from lines of comma-separated values under the header
/// `src,dst,bytes,start`, in any order of columns. Hosts are given by name or
/// by index (`H3` or `3`); `start` has a unit (`1.5us`), or the column is called
/// `start_ns`. Empty lines and lines that begin with `#` are skipped.
///
/// The flows are returned in the order of time; those of one time in that of
/// the file.
///
/// # Errors
/// With the line: a missing, repeated or unknown column, a wrong number of
/// fields, an unknown host, a flow to itself, no bytes, a time without unit, or
/// no flows at all.
pub fn flows_csv(text: &str, topology: &Topology) -> Result<Vec<Demand>, CsvError> {
    // Spreadsheets begin their files with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = (1..)
        .zip(text.lines())
        .map(|(line, content)| (line, content.trim()))
        .filter(|(_, content)| !content.is_empty() && !content.starts_with('#'));
    let Some((line, header)) = lines.next() else {
        return Err(CsvError { line: 1, message: format!("the file is empty: write the header {HEADER}") });
    };
    let columns = columns(header).map_err(|message| CsvError { line, message })?;
    let names = topology.names();
    let mut flows = Vec::new();
    for (line, content) in lines {
        let flow = flow(content, &columns, topology, &names).map_err(|message| CsvError { line, message })?;
        flows.push(flow);
    }
    if flows.is_empty() {
        return Err(CsvError { line, message: "there are no flows below the header".to_string() });
    }
    flows.sort_by_key(|flow| flow.start);
    Ok(flows)
}

fn columns(header: &str) -> Result<Vec<Column>, String> {
    let mut columns = Vec::new();
    for name in header.split(',').map(str::trim) {
        let column = match name {
            "src" => Column::Src,
            "dst" => Column::Dst,
            "bytes" => Column::Bytes,
            "start" => Column::Start,
            "start_ns" => Column::StartNs,
            _ => {
                return Err(format!(
                    "unknown column `{}`: the header is {HEADER} (or start_ns), and no other columns",
                    shown(name)
                ));
            }
        };
        if columns.contains(&column) {
            return Err(format!("the column `{name}` is defined twice"));
        }
        columns.push(column);
    }
    for (column, name) in [(Column::Src, "src"), (Column::Dst, "dst"), (Column::Bytes, "bytes")] {
        if !columns.contains(&column) {
            return Err(format!("the column `{name}` is missing: the header is {HEADER}"));
        }
    }
    match (columns.contains(&Column::Start), columns.contains(&Column::StartNs)) {
        (false, false) => Err("the column `start` (or `start_ns`) is missing".to_string()),
        (true, true) => {
            Err("the columns `start` and `start_ns` cannot be combined: remove one of them".to_string())
        }
        _ => Ok(columns),
    }
}

fn flow(
    content: &str,
    columns: &[Column],
    topology: &Topology,
    names: &BTreeMap<&str, NodeId>,
) -> Result<Demand, String> {
    let fields: Vec<&str> = content.split(',').map(str::trim).collect();
    if fields.len() != columns.len() {
        return Err(format!("this line has {} fields, but the header has {}", fields.len(), columns.len()));
    }
    let mut flow = Demand { src: 0, dst: 0, size: 0, start: 0 };
    for (column, field) in columns.iter().zip(fields) {
        match column {
            Column::Src => flow.src = host(field, topology, names)?,
            Column::Dst => flow.dst = host(field, topology, names)?,
            Column::Bytes => {
                flow.size = match field.parse() {
                    Ok(0) => return Err("a flow must have at least 1 byte".to_string()),
                    Ok(size) => size,
                    Err(_) => {
                        return Err(format!("`{}` is not a whole number of bytes", shown(field)));
                    }
                }
            }
            Column::Start => flow.start = time(field)?,
            Column::StartNs => {
                // Whether a number is there is said about the field, not about
                // the unit that the column adds.
                if !field.ends_with(|c: char| c.is_ascii_digit()) {
                    return Err(format!("`{}` is not a number of nanoseconds", shown(field)));
                }
                flow.start = time(&format!("{field}ns"))?;
            }
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
        return if is_host(id) {
            Ok(id)
        } else {
            Err(format!("`{field}` is a switch: only hosts send and receive flows"))
        };
    }
    match field.parse::<NodeId>() {
        Ok(id) if is_host(id) => Ok(id),
        _ => {
            let last = topology.hosts().last().unwrap_or(0);
            Err(format!("no host is called `{}`: write a name, or an index from 0 to {last}", shown(field)))
        }
    }
}
