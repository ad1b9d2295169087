//! Files of the HPCC simulator: topologies, and flows that name their own
//! priorities, which is why they are read before the lanes are laid out.

use super::Context;
use crate::error::Error;
use crate::known::Known;
use crate::scenario::{FlowFormat, Traffic};
use std::collections::BTreeMap;
use xoff_net::error::SpecError;
use xoff_net::topology::Topology;
use xoff_net::traffic::{Demand, flows_hpcc, flows_left_out};

/// Flows with their priorities, by traffic table.
pub(super) type Listed = BTreeMap<usize, Vec<(Demand, u8)>>;

pub(super) fn topology(cx: &mut Context<'_>, known: Option<&mut Known>) -> Result<Topology, Error> {
    let spec = &cx.scenario.topology;
    let text = match spec.file() {
        Some(name) => cx.file("topology.file", name)?,
        None => String::new(),
    };
    let build =
        || spec.build(&text).map_err(|e| refused(cx, "topology", spec.file().unwrap_or_default(), &text, e));
    let topology = match known {
        Some(known) => known.topology(spec, &text, build),
        None => build(),
    }?;
    for remark in &topology.remarks {
        cx.warn("topology.file", remark.clone());
    }
    Ok(topology)
}

/// The flows of every table whose file has their priorities.
pub(super) fn flows(cx: &mut Context<'_>, topology: &Topology) -> Result<Listed, Error> {
    let mut listed = Listed::new();
    for (i, table) in cx.scenario.traffic.iter().enumerate() {
        if let Traffic::Flows(t) = table
            && t.format == FlowFormat::Hpcc
        {
            let table = format!("traffic[{i}]");
            let text = cx.file(&format!("{table}.file"), &t.file)?;
            let flows = flows_hpcc(&text, topology).map_err(|e| refused(cx, &table, &t.file, &text, e))?;
            if let Some(remark) = flows_left_out(&t.file, &text) {
                cx.warn(format!("{table}.file"), remark);
            }
            listed.insert(i, flows);
        }
    }
    Ok(listed)
}

/// The error at its line of the file, or else at its key of the table.
fn refused(cx: &Context<'_>, table: &str, file: &str, text: &str, e: SpecError) -> Error {
    match e.line {
        Some(_) => Error::in_file(file, text, e),
        None => cx.doc.error(&format!("{table}.{}", e.key), e.message, e.help),
    }
}
