//! Topology files of the HPCC simulator, which its descendants (ns-3 RDMA simulators) read as well.

use super::{Estimate, MAX_RADIX};
use crate::error::SpecError;
use crate::text::{count, lines, shown};
use crate::topology::{LinkSpec, NodeId, NodeKind, Topology};
use crate::units::{Bandwidth, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Display;

/// A topology file of the HPCC simulator. Its first line has the numbers of
/// nodes, switches and links; then come the ids of the switches; then a line
/// `src dst rate delay error_rate` for each link. Empty lines, and those that
/// begin with `#`, are skipped. What follows the last link is left out, as by the
/// simulator: prose, and further links.
///
/// Node `i` of the file is `S<i>` if it is listed as a switch, else the host `H<i>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hpcc {
    /// Path of the file, relative to the scenario.
    pub file: String,
    /// Links with this one-way delay or more are long links between sites. Default: no link is
    /// long, because the format has no such field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none: no link is long"))]
    pub long_delay: Option<Span>,
}

/// The name of a host by its id in the files of the HPCC simulator.
pub fn host_name(id: u64) -> String {
    format!("H{id}")
}

const LINK_FORM: &str = "write `src dst rate delay error_rate`, such as `0 4 100Gbps 1000ns 0`";

struct Header {
    line: usize,
    nodes: u64,
    switches: u64,
    links: u64,
}

struct Row {
    ends: [u64; 2],
    spec: LinkSpec,
    loss: f64,
}

impl Hpcc {
    pub fn build(&self, text: &str) -> Result<Topology, SpecError> {
        let mut rows = lines(text).peekable();
        let header = header(rows.next())?;
        let is_switch = switches(&header, &mut rows)?;
        let (mut links, mut degree) = (Vec::new(), vec![0u64; is_switch.len()]);
        let mut further = 0;
        for (line, content) in rows {
            let found = links.len() as u64;
            if found == header.links {
                further += u64::from(is_row(content));
                continue;
            }
            if !is_row(content) {
                let announced = count(header.links, "link");
                let message =
                    format!("{} gives {announced}, but only {found} are above this line", header.name());
                return Err(fault(line, message, LINK_FORM));
            }
            let row = row(line, content, header.nodes)?;
            for end in row.ends {
                let degree = &mut degree[end as usize];
                *degree += 1;
                if *degree > MAX_RADIX {
                    let message = format!("node {end} has more than {MAX_RADIX} links");
                    return Err(fault(line, message, "spread its links over several switches"));
                }
            }
            links.push(row);
        }
        if (links.len() as u64) < header.links {
            let message =
                format!("the header gives {}, but {} follow", count(header.links, "link"), links.len());
            return Err(fault(header.line, message, "correct the number, or add the missing lines"));
        }
        if let Some(lonely) = degree.iter().position(|&d| d == 0) {
            let message =
                format!("the header gives {}, but node {lonely} has no link", count(header.nodes, "node"));
            let help = "ids begin at 0: correct the number, or add a link to the node";
            return Err(fault(header.line, message, help));
        }
        let mut topology = self.assemble(&is_switch, &links);
        topology.remarks.extend(left_out(&self.file, header.links, header.links + further, "link"));
        Ok(topology)
    }

    /// Hosts first, then switches, each in the order of their ids.
    fn assemble(&self, is_switch: &[bool], links: &[Row]) -> Topology {
        let mut topology = Topology::default();
        let mut nodes: Vec<NodeId> = vec![0; is_switch.len()];
        for kind in [NodeKind::Host, NodeKind::Switch] {
            for (id, _) in is_switch.iter().enumerate().filter(|&(_, &s)| s == (kind == NodeKind::Switch)) {
                let name = if kind == NodeKind::Switch { format!("S{id}") } else { host_name(id as u64) };
                nodes[id] = topology.add(name, kind);
            }
        }
        for link in links {
            let [a, b] = link.ends.map(|id| nodes[id as usize]);
            let (port, _) = topology.link(a, b, link.spec);
            topology.set_loss(port, link.loss);
            if self.long_delay.is_some_and(|least| link.spec.delay >= least) {
                topology.set_long(port);
            }
        }
        topology
    }
}

impl Header {
    fn name(&self) -> String {
        format!("the header (line {})", self.line)
    }
}

fn header(first: Option<(usize, &str)>) -> Result<Header, SpecError> {
    let form = "begin with the numbers of nodes, switches and links, such as `6 2 5`";
    let Some((line, content)) = first else {
        return Err(fault(1, "the file is empty", form));
    };
    let numbers: Vec<Option<u64>> = content.split_whitespace().map(|field| field.parse().ok()).collect();
    let &[Some(nodes), Some(switches), Some(links)] = &numbers[..] else {
        return Err(fault(line, format!("`{}` is not a header", shown(content)), form));
    };
    if switches >= nodes {
        let message = format!("{} of {nodes} nodes leave no host", count(switches, "switch"));
        return Err(fault(line, message, form));
    }
    let size = Estimate { key: "file", hosts: nodes, links, radix: 0 };
    size.admit().map_err(|e| fault(line, e.message, "choose a smaller network"))?;
    Ok(Header { line, nodes, switches, links })
}

/// Reads the list of switches: by node, whether it is one. It may go over
/// several lines, and ends with the announced number.
fn switches<'t>(
    header: &Header,
    rows: &mut std::iter::Peekable<impl Iterator<Item = (usize, &'t str)>>,
) -> Result<Vec<bool>, SpecError> {
    let mut is_switch = vec![false; header.nodes as usize];
    let mut left = header.switches;
    let announced = || format!("{} gives {}", header.name(), count(header.switches, "switch"));
    let help = "the second line lists the ids of all switches, separated by spaces";
    while left > 0 {
        let whole = |content: &str| content.split_whitespace().all(|f| f.bytes().all(|b| b.is_ascii_digit()));
        let Some((line, content)) = rows.next_if(|&(_, content)| whole(content)) else {
            let listed = header.switches - left;
            let (line, message) = match rows.peek() {
                Some(&(line, _)) => (line, format!("{}, but only {listed} are above this line", announced())),
                None => (header.line, format!("{}, but {listed} are listed", announced())),
            };
            return Err(fault(line, message, help));
        };
        for field in content.split_whitespace() {
            if left == 0 {
                return Err(fault(line, format!("{}, but this line lists more", announced()), help));
            }
            let id = node(line, field, header.nodes)?;
            if std::mem::replace(&mut is_switch[id as usize], true) {
                return Err(fault(line, format!("switch {id} is listed twice"), "list every switch once"));
            }
            left -= 1;
        }
    }
    Ok(is_switch)
}

/// Whether a line is no prose.
pub(crate) fn is_row(content: &str) -> bool {
    content.starts_with(|c: char| c.is_ascii_digit())
}

fn row(line: usize, content: &str, nodes: u64) -> Result<Row, SpecError> {
    let fields: Vec<&str> = content.split_whitespace().collect();
    let &[a, b, rate, delay, error_rate] = &fields[..] else {
        let message = format!("a link line with {}", count(fields.len() as u64, "field"));
        return Err(fault(line, message, LINK_FORM));
    };
    let ends = [node(line, a, nodes)?, node(line, b, nodes)?];
    if ends[0] == ends[1] {
        let message = format!("a link connects node {} to itself", ends[0]);
        return Err(fault(line, message, "write two different nodes"));
    }
    // ns-3 also writes `Gb/s`, and `K` for a thousand.
    let plain = rate.replace("b/s", "bps").replace("Kbps", "kbps");
    let rate: Bandwidth = plain.parse().map_err(|e| fault(line, e, LINK_FORM))?;
    let delay: Span = delay.parse().map_err(|e| fault(line, e, LINK_FORM))?;
    let loss = error_rate.parse().ok().filter(|p| (0.0..=1.0).contains(p)).ok_or_else(|| {
        let message = format!("`{}` is not an error rate", shown(error_rate));
        fault(line, message, "write the probability that a frame is lost, from 0 to 1")
    })?;
    Ok(Row { ends, spec: LinkSpec { rate, delay }, loss })
}

fn node(line: usize, field: &str, nodes: u64) -> Result<u64, SpecError> {
    field.parse().ok().filter(|&id| id < nodes).ok_or_else(|| {
        let message = format!("node `{}` does not exist", shown(field));
        fault(line, message, format!("write an id from 0 to {}: the header gives {nodes} nodes", nodes - 1))
    })
}

/// What to say of the lines of `file` beyond the announced ones. HPCC's simulator reads as many as the header
/// announces, also in the files of its repository.
pub(crate) fn left_out(file: &str, announced: u64, rows: u64, what: &str) -> Option<String> {
    let more = rows.checked_sub(announced).filter(|&more| more > 0)?;
    let (read, lines) = (count(announced, what), count(more, "further line"));
    Some(format!("the header of `{file}` gives {read}: {lines} left out, as by HPCC's simulator"))
}

/// An error in a line of a file.
pub(crate) fn fault(line: usize, message: impl Display, help: impl Into<String>) -> SpecError {
    SpecError::new("file", message.to_string(), help).in_line(line)
}
