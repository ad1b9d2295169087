//! Files of the HPCC simulator: topologies, and flows that name their own
//! priorities, which is why they are read before the lanes are laid out.

use super::{Context, sizes};
use crate::error::Error;
use crate::known::Known;
use crate::scenario::{FlowFormat, Traffic};
use std::collections::BTreeMap;
use xoff_net::builders::{Hpcc, TopologySpec};
use xoff_net::error::SpecError;
use xoff_net::text::count;
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
    if let TopologySpec::Hpcc(spec) = spec {
        warn_of_left_out(cx, "topology.file", &spec.file, Hpcc::left_out(&text), "link");
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
            warn_of_left_out(cx, &format!("{table}.file"), &t.file, flows_left_out(&text), "flow");
            listed.insert(i, flows);
        }
    }
    Ok(listed)
}

/// HPCC's simulator reads as many lines as the header announces, also in the files of its repository.
fn warn_of_left_out(cx: &mut Context<'_>, key: &str, file: &str, (read, left_out): (u64, u64), what: &str) {
    if left_out > 0 {
        let (read, lines) = (count(read, what), count(left_out, "further line"));
        cx.warn(
            key,
            format!("the header of `{file}` gives {read}: {lines} left out, as by HPCC's simulator"),
        );
    }
}

/// The error at its line of the file, or else at its key of the table.
fn refused(cx: &Context<'_>, table: &str, file: &str, text: &str, e: SpecError) -> Error {
    match e.line {
        Some(line) => Error::new(file, text, Some(sizes::line_span(text, line)), e.message).with_help(e.help),
        None => cx.doc.error(&format!("{table}.{}", e.key), e.message, e.help),
    }
}
