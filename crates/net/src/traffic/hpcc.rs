//! Flow files of the HPCC simulator, which its descendants (ns-3 RDMA simulators) read as well.

use super::{Demand, MAX_FLOWS};
use crate::builders::{fault, host_name, is_row, left_out};
use crate::error::SpecError;
use crate::text::{count, lines, shown};
use crate::topology::{NodeId, NodeKind, Topology};
use crate::units::Span;
use std::collections::BTreeMap;
use xoff_kernel::time::Time;

const FORM: &str =
    "write `src dst pg dport size start`, such as `0 5 3 100 1000000 2.000001` (bytes, seconds)";

/// Reads a flow file: the number of flows, then a line for each of them with `src dst pg dport size start`:
/// ids of hosts, priority group, destination port, payload bytes, and seconds with up to 12 decimals. All
/// lines may lack `dport`, as those of ConWeave do; it has no meaning here. Empty lines, and those that begin
/// with `#`, are skipped. What follows the last flow is left out, as by the simulator: prose, and further flows.
///
/// Id `i` is the host called `H<i>`; the priority group is the 802.1p priority. Returns the flows with their
/// priorities in the order of time; those of one time in that of the file.
pub fn flows_hpcc(text: &str, topology: &Topology) -> Result<Vec<(Demand, u8)>, SpecError> {
    let mut rows = lines(text);
    let form = "write only the number of flows on the first line";
    let Some((first, content)) = rows.next() else {
        return Err(fault(1, "the file is empty", form));
    };
    let announced: u64 = match content.parse() {
        Ok(0) => return Err(fault(first, "the file has no flows", form)),
        Ok(flows) if flows <= MAX_FLOWS => flows,
        Ok(flows) => {
            let help = format!("the maximum is {MAX_FLOWS}");
            return Err(fault(first, format!("{flows} flows are too many"), help));
        }
        Err(_) => return Err(fault(first, format!("`{}` is not a number of flows", shown(content)), form)),
    };
    let hosts = topology.names();
    let header = || format!("the header (line {first}) gives {}", count(announced, "flow"));
    let mut flows = Vec::new();
    let mut width = None;
    for (line, content) in rows {
        let found = flows.len() as u64;
        if found == announced {
            break;
        }
        if !is_row(content) {
            return Err(fault(line, format!("{}, but only {found} are above this line", header()), FORM));
        }
        // A line that lacks its start must not pass for one without `dport`.
        let fields = content.split_whitespace().count();
        let before = *width.get_or_insert(fields);
        if fields != before {
            let message = format!("this line has {fields} fields, but earlier lines have {before}");
            return Err(fault(line, message, FORM));
        }
        flows.push(flow(line, content, topology, &hosts)?);
    }
    if (flows.len() as u64) < announced {
        let message = format!("the header gives {}, but {} follow", count(announced, "flow"), flows.len());
        return Err(fault(first, message, "correct the number, or add the missing lines"));
    }
    flows.sort_by_key(|(flow, _)| flow.start);
    Ok(flows)
}

/// What to say of further flows in a file that can be read.
pub fn flows_left_out(file: &str, text: &str) -> Option<String> {
    let mut rows = lines(text);
    let flows = rows.next()?.1.parse().ok()?;
    left_out(file, flows, rows.filter(|(_, content)| is_row(content)).count() as u64, "flow")
}

fn flow(
    line: usize,
    content: &str,
    topology: &Topology,
    hosts: &BTreeMap<&str, NodeId>,
) -> Result<(Demand, u8), SpecError> {
    let fields: Vec<&str> = content.split_whitespace().collect();
    let (&[src, dst, pg, size, start] | &[src, dst, pg, _, size, start]) = &fields[..] else {
        return Err(fault(line, format!("this line has {} fields", fields.len()), FORM));
    };
    let host = |field: &str| {
        let id = field.parse().ok().and_then(|id: u64| hosts.get(host_name(id).as_str()).copied());
        match id {
            Some(id) if topology.nodes[id as usize].kind == NodeKind::Host => Ok(id),
            _ => {
                let message = format!("`{}` is not the id of a host", shown(field));
                Err(fault(line, message, "write an id such as 5, which is the host H5 of the topology"))
            }
        }
    };
    let (src, dst) = (host(src)?, host(dst)?);
    if src == dst {
        let message = format!("a flow from {} to itself", topology.nodes[src as usize].name);
        return Err(fault(line, message, "choose another receiver"));
    }
    let priority = pg.parse().ok().filter(|&pg: &u8| pg <= 7).ok_or_else(|| {
        fault(
            line,
            format!("the priority group `{}` is out of range", shown(pg)),
            "write 0 to 7, the 802.1p priority",
        )
    })?;
    let size = size.parse().ok().filter(|&size: &u64| size > 0).ok_or_else(|| {
        fault(line, format!("`{}` is not a number of bytes", shown(size)), "write a whole number, 1 or more")
    })?;
    let start: Time = format!("{start}s").parse::<Span>().map(|span| span.0).map_err(|_| {
        let message = format!("`{}` is not a time in seconds", shown(start));
        fault(
            line,
            message,
            "write a decimal number with at most 12 digits after the point, such as 2.000001",
        )
    })?;
    Ok((Demand { src, dst, size, start }, priority))
}
