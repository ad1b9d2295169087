//! The output of `show lldp table` of SONiC: the ports of one switch, and the neighbour of each.

use super::{Cable, Inventory};
use crate::builders::fault;
use crate::error::SpecError;
use crate::text::count;

const FORM: &str =
    "expected the output of `show lldp table`, with the columns LocalPort, RemoteDevice and RemotePortID";

/// Columns of the table, by the places where their titles begin.
struct Columns {
    local: usize,
    remote: usize,
    port: usize,
    /// After [`Columns::port`].
    capability: usize,
    description: Option<usize>,
}

impl Columns {
    fn of(line: &str) -> Option<Self> {
        let place = |title: &str| line.find(title);
        Some(Self {
            local: place("LocalPort")?,
            remote: place("RemoteDevice")?,
            port: place("RemotePortID")?,
            capability: place("Capability").unwrap_or(usize::MAX),
            description: place("RemotePortDescr"),
        })
    }
}

pub(super) fn read(text: &str, device: &str, inventory: &mut Inventory) -> Result<(), SpecError> {
    let mut columns: Option<Columns> = None;
    let mut management = 0;
    for (line, content) in (1..).zip(text.lines()) {
        let Some(at) = &columns else {
            columns = Columns::of(content);
            continue;
        };
        let rule = content.trim().bytes().all(|b| b == b'-' || b == b' ');
        if rule || content.starts_with("Total") {
            continue;
        }
        let cell = |from: usize, to: usize| content.get(from..to.min(content.len())).unwrap_or("").trim();
        let (local, remote) = (cell(at.local, at.remote), cell(at.remote, at.port));
        let (id, description) =
            (cell(at.port, at.capability), at.description.map_or("", |from| cell(from, usize::MAX)));
        if local.is_empty() || remote.is_empty() || id.is_empty() {
            return Err(fault(line, "this line has no local port, remote device and remote port", FORM));
        }
        // SONiC's own ports are called so; `eth0` is that of the management.
        if !local.starts_with("Ethernet") {
            management += 1;
            continue;
        }
        // SONiC sends the alias of a port as its identifier, and its name as the description.
        let is_name = |text: &str| text.starts_with("Ethernet") && !text.contains(' ');
        let port = if !is_name(id) && is_name(description) { description } else { id };
        let ends = [inventory.end(device, Some(local)), inventory.end(remote, Some(port))];
        inventory.connect(Cable { ends, rate: None, delay: None, loss: 0.0, line })?;
    }
    if management > 0 {
        let lines = count(management, "line");
        inventory
            .remarks
            .push(format!("{lines} of `{device}` left out: its local port is not a data port (Ethernet…)"));
    }
    columns.map(|_| ()).ok_or_else(|| fault(1, "this file has no header of an LLDP table", FORM))
}
