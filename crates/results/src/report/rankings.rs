//! The worst of the run, in tables whose rows lead to stories.

use serde::Serialize;
use serde_json::Value as Json;

use super::fabric::Fabric;
use super::flows::Flows;
use super::pauses::Pauses;
use super::{int, text};
use crate::explain::text::name;
use crate::explain::{Overview, Place, Victim};
use crate::human;
use crate::names::link;

const LISTED: usize = 10;

#[derive(Clone, Debug, Serialize)]
pub struct Ranking {
    pub title: String,
    /// The meaning of its numbers.
    pub about: String,
    /// Heads of the columns; the first is that of the ranked objects.
    pub heads: Vec<String>,
    pub rows: Vec<Row>,
}

/// A row, of a flow or of a port.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// A text for each column.
    pub cells: Vec<String>,
}

fn table(title: &str, about: &str, heads: &[&str], rows: Vec<Row>) -> Option<Ranking> {
    let heads = heads.iter().map(|head| head.to_string()).collect();
    (!rows.is_empty()).then(|| Ranking { title: title.into(), about: about.into(), heads, rows })
}

fn flow(id: usize, cells: Vec<String>) -> Row {
    Row { flow: Some(id), port: None, cells }
}

fn port(name: &str, cells: Vec<String>) -> Row {
    Row { flow: None, port: Some(name.into()), cells }
}

/// The tables of a run: the findings of `xoff explain`, or of the blocking oracle; and the slowest flows, the
/// ports that were paused longest, and the places that lost packets.
pub fn of_run(
    fabric: &Fabric,
    flows: &Flows,
    pauses: &Pauses,
    overview: Option<&Overview>,
    summary: &Json,
) -> Vec<Ranking> {
    let (victims, roots) = match overview {
        Some(overview) => (victims(overview), roots(overview)),
        None => (blocked_flows(summary), blocking_ports(summary)),
    };
    let all = [victims, roots, slowest(fabric, flows), longest(fabric, pauses), lossy(summary)];
    all.into_iter().flatten().collect()
}

fn victims(overview: &Overview) -> Option<Ranking> {
    let row = |victim: &Victim| {
        let head = &victim.head;
        let most = victim.most.first().map_or(String::new(), |place| link(&place.port, &place.peer));
        let cells = vec![
            name(head),
            human::bytes(head.size),
            human::time(head.took_ps),
            human::time(head.ideal_ps),
            human::time(victim.victim_ps),
            most,
        ];
        flow(head.flow, cells)
    };
    table(
        "Worst victims",
        "Flows that waited longest in paused queues because of a congested port off their path",
        &["flow", "size", "FCT", "ideal", "victim", "mostly blocked by"],
        overview.victims.iter().map(row).collect(),
    )
}

fn roots(overview: &Overview) -> Option<Ranking> {
    let row = |name: &str, peer: &str, time: u64, flows: usize, places: &[Place]| {
        let mut cells = vec![link(name, peer), human::time(time), human::count(flows as u64)];
        cells.extend(places.first().map(|place| link(&place.port, &place.peer)));
        port(name, cells)
    };
    let rows = overview.roots.iter().map(|r| row(&r.port, &r.peer, r.victim_ps, r.victims, &r.places));
    let victim = table(
        "Worst roots",
        "Congested ports that blocked flows which do not cross them",
        &["congested port", "victim", "flows", "victims waited mostly at"],
        rows.collect(),
    );
    victim.or_else(|| {
        let rows = overview.own_roots.iter().map(|p| row(&p.port, &p.peer, p.time_ps, p.flows, &[]));
        table(
            "Worst congested ports",
            "No flow was a victim; these ports blocked flows that cross them",
            &["congested port", "waiting", "flows"],
            rows.collect(),
        )
    })
}

fn listed<'j>(summary: &'j Json, pointer: &str) -> impl Iterator<Item = &'j Json> {
    summary.pointer(pointer).and_then(Json::as_array).into_iter().flatten().take(LISTED)
}

fn blocked_flows(summary: &Json) -> Option<Ranking> {
    let row = |victim: &Json| {
        // `flow 165: H5 -> H4 (poisson)`
        let name = text(victim, "/flow").trim_start_matches("flow ");
        let (id, rest) = name.split_once(": ")?;
        let cells = vec![
            format!("{id} {rest}"),
            human::time(int(victim, "/victim_ps")),
            human::time(int(victim, "/source_victim_ps")),
        ];
        Some(flow(id.parse().ok()?, cells))
    };
    table(
        "Worst victims",
        "Flows whose packets waited longest because of a congested port off their path (sums over packets)",
        &["flow", "packets", "at its source"],
        listed(summary, "/blocking/victims").filter_map(row).collect(),
    )
}

fn blocking_ports(summary: &Json) -> Option<Ranking> {
    let row = |root: &Json| {
        let cells = vec![
            text(root, "/port").to_string(),
            human::count(int(root, "/pauses")),
            human::time(int(root, "/victim_ps")),
            human::time(int(root, "/own_ps")),
        ];
        port(text(root, "/port"), cells)
    };
    table(
        "Worst roots",
        "Congested ports that packets waited for, off their path (victim) or on it (own); sums over packets",
        &["congested port", "pauses", "victim", "own"],
        listed(summary, "/blocking/roots").map(row).collect(),
    )
}

fn slowest(fabric: &Fabric, flows: &Flows) -> Option<Ranking> {
    let mut rows: Vec<_> = flows.rows.iter().filter_map(|row| Some((row, row.slowdown?))).collect();
    rows.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.id.cmp(&b.0.id)));
    let name = |node: usize| fabric.nodes[node].name.as_str();
    let rows = rows.into_iter().take(LISTED).map(|(row, slowdown)| {
        let who = format!("{} {} -> {} ({})", row.id, name(row.src), name(row.dst), flows.classes[row.class]);
        let fct = human::time(row.fct_ps.unwrap_or(0));
        flow(row.id, vec![who, human::bytes(row.size), fct, human::ratio(slowdown)])
    });
    table(
        "Slowest flows",
        "Finished flows by slowdown (FCT over ideal FCT)",
        &["flow", "size", "FCT", "slowdown"],
        rows.collect(),
    )
}

fn longest(fabric: &Fabric, pauses: &Pauses) -> Option<Ranking> {
    let row = |one: &super::pauses::PortPauses| {
        let cells = vec![fabric.link(one.port), human::time(one.paused_ps), human::count(one.count)];
        port(&fabric.ports[one.port].name, cells)
    };
    table(
        "Ports paused longest",
        "Time during which at least one queue of the port was paused",
        &["paused port", "time", "pauses"],
        pauses.ports.iter().take(LISTED).map(row).collect(),
    )
}

fn lossy(summary: &Json) -> Option<Ranking> {
    let row = |place: &Json| {
        let cells = vec![
            text(place, "/ingress").to_string(),
            text(place, "/reason").to_string(),
            human::count(int(place, "/packets")),
            human::bytes(int(place, "/bytes")),
            human::time(int(place, "/first_ps")),
        ];
        port(text(place, "/ingress"), cells)
    };
    table(
        "Where packets were dropped",
        "By the ingress port of the packets",
        &["ingress port", "reason", "packets", "bytes", "first at"],
        listed(summary, "/drops/places").map(row).collect(),
    )
}
