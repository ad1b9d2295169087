//! The data files of a run: their columns, and the values in them.
//!
//! Times are picoseconds, sizes bytes, rates bits per second. Names, never indices (a flow's `id` is its
//! position in the plan, as in the notes).

use std::io::Write;
use std::ops::Range;

use crate::blocking::capped;
use crate::columns::{self, Column};
use crate::network::kind_name;
use crate::{jobs, names, statistics};
use parquet::errors::Result;
use xoff_net::topology::{NodeId, PortId};
use xoff_outcome::report::Unit;
use xoff_outcome::{
    Ahead, FlowBlame, FlowOutcome, Leg, Outcome, Part, Pause, Place, PortOutcome, Quantity, Share,
};
use xoff_plan::plan::{Account, Flow, Gate, Limit, Plan};

/// The enum of the files in the order in which they are written, with what a row of each is about; the name of
/// each, its number of rows, and the function that makes its columns for a range of rows.
macro_rules! files {
    ($plan:ident, $outcome:ident: $(#[$about:meta] $file:ident $name:literal $rows:expr, $columns:ident;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum DataFile {
            $(#[$about] $file,)*
        }

        impl DataFile {
            pub const ALL: &[DataFile] = &[$(DataFile::$file,)*];

            /// The file's name in the run directory.
            pub fn name(self) -> &'static str {
                match self {
                    $(DataFile::$file => $name,)*
                }
            }

            pub fn rows(self, $plan: &Plan, $outcome: &Outcome) -> usize {
                match self {
                    $(DataFile::$file => $rows,)*
                }
            }

            fn columns(self, plan: &Plan, outcome: &Outcome, range: Range<usize>) -> Columns {
                match self {
                    $(DataFile::$file => $columns(plan, outcome, range),)*
                }
            }
        }
    };
}

files! { plan, outcome:
    /// A flow.
    Flows "flows.parquet" plan.flows.len(), flows;
    /// A sample.
    Series "series.parquet" outcome.series.len(), series;
    /// A pause of a queue.
    Pauses "pauses.parquet" outcome.pauses.len(), pauses;
    /// A paused port and a congested port that its pauses were traced to.
    Blocking "blocking.parquet" outcome.blocking.as_ref().map_or(0, |b| b.places.len()), blocked;
    /// A part of a flow's time on its critical path.
    Critical "critical.parquet" outcome.paths.as_ref().map_or(0, Vec::len), critical;
    /// Packets of another flow that were ahead of a flow's critical packet at a port.
    Ahead "ahead.parquet" outcome.ahead.len(), ahead;
    /// A computation of a host.
    Computations "computations.parquet" computing(plan).count(), computations;
    /// A port.
    Ports "ports.parquet" plan.topology.ports.len(), ports;
    /// An ingress port and priority.
    Accounts "accounts.parquet" plan.accounts.len(), accounts;
    /// A node.
    Nodes "nodes.parquet" plan.topology.nodes.len(), nodes;
}

impl DataFile {
    /// Writes the file as Parquet and returns the sink, flushed. Fails if the format cannot hold a value.
    pub fn write<W: Write + Send>(self, sink: W, plan: &Plan, outcome: &Outcome) -> Result<W> {
        columns::write(sink, self.rows(plan, outcome), |range| self.columns(plan, outcome, range))
    }
}

type Columns = Vec<(&'static str, Column)>;

/// The columns of `flows.parquet` for a range of flows.
pub fn flow_columns(plan: &Plan, outcome: &Outcome, range: Range<usize>) -> Vec<(&'static str, Column)> {
    flows(plan, outcome, range)
}

fn flows(plan: &Plan, outcome: &Outcome, range: Range<usize>) -> Columns {
    let (flows, outcomes) = (&plan.flows[range.clone()], &outcome.flows[range.clone()]);
    // Null, not 0, for a value that was not measured.
    let waits = |get: &dyn Fn(FlowBlame) -> u64| {
        let found = |i: usize| outcome.blocking.as_ref().map(|b| get(capped(&b.flows[i])));
        Column::MaybeInt(range.clone().map(found).collect())
    };
    let text = |get: &dyn Fn(&Flow) -> String| Column::Text(flows.iter().map(get).collect());
    let plan_int = |get: &dyn Fn(&Flow) -> u64| Column::Int(flows.iter().map(get).collect());
    let int = |get: &dyn Fn(&FlowOutcome) -> u64| Column::Int(outcomes.iter().map(get).collect());
    let maybe =
        |get: &dyn Fn(&FlowOutcome) -> Option<u64>| Column::MaybeInt(outcomes.iter().map(get).collect());
    let both = || flows.iter().zip(outcomes);
    vec![
        ("id", Column::Int(range.clone().map(|id| id as u64).collect())),
        ("src", text(&|f| names::node(plan, f.src).to_string())),
        ("dst", text(&|f| names::node(plan, f.dst).to_string())),
        ("class", text(&|f| plan.classes[usize::from(f.class)].clone())),
        ("priority", plan_int(&|f| u64::from(names::priority(plan, f.lane)))),
        ("size", plan_int(&|f| f.size)),
        ("start_ps", maybe(&|o| o.started)),
        ("first_sent_ps", maybe(&|o| o.first_sent)),
        ("delivered_ps", maybe(&|o| o.delivered)),
        ("completed_ps", maybe(&|o| o.completed)),
        ("failed_ps", maybe(&|o| o.failed)),
        ("fct_ps", maybe(&statistics::fct)),
        ("ideal_ps", plan_int(&|f| f.ideal)),
        ("slowdown", Column::MaybeFloat(both().map(|(f, o)| statistics::slowdown(f, o)).collect())),
        ("delivered_bytes", int(&|o| o.delivered_bytes)),
        ("packets_sent", int(&|o| o.packets_sent)),
        ("retransmitted", int(&|o| o.retransmitted)),
        ("timeouts", int(&|o| u64::from(o.timeouts))),
        ("nacks", int(&|o| u64::from(o.nacks))),
        ("out_of_order", int(&|o| o.out_of_order)),
        ("marked", int(&|o| o.marked)),
        ("dropped", int(&|o| o.dropped)),
        ("spurious", int(&|o| o.spurious)),
        ("cnps", int(&|o| o.cnps)),
        ("own_ps", waits(&|w| w.own)),
        ("victim_ps", waits(&|w| w.victim)),
        ("source_own_ps", waits(&|w| w.source_own)),
        ("source_victim_ps", waits(&|w| w.source_victim)),
        ("named_victim_ps", waits(&|w| w.named_victim)),
        ("source_named_victim_ps", waits(&|w| w.source_named_victim)),
    ]
}

/// The quantity of a sample, its object and its unit.
fn described(plan: &Plan, what: Quantity) -> (&'static str, String, &'static str) {
    match what {
        Quantity::Goodput(class) => ("goodput", plan.classes[usize::from(class)].clone(), "bit/s"),
        Quantity::Throughput(port) => ("throughput", names::port(plan, port), "bit/s"),
        Quantity::Queue(port) => ("queue", names::port(plan, port), "byte"),
        Quantity::PausedLanes(port) => ("paused_priorities", names::port(plan, port), "count"),
        Quantity::Buffered(node) => ("buffered", names::node(plan, node).to_string(), "byte"),
        Quantity::Rate(flow) => ("rate", format!("flow {flow}"), "bit/s"),
        Quantity::Sequence(flow) => ("sequence", format!("flow {flow}"), "byte"),
        Quantity::FlowGoodput(flow) => ("flow_goodput", format!("flow {flow}"), "bit/s"),
        Quantity::Told(node, gauge) => (gauge.name, names::node(plan, node).to_string(), gauge.unit),
        Quantity::PausedQueues => ("paused_queues", "network".into(), "count"),
    }
}

fn series(plan: &Plan, outcome: &Outcome, range: Range<usize>) -> Columns {
    let samples = &outcome.series[range];
    let what = || samples.iter().map(|s| described(plan, s.what));
    vec![
        ("time_ps", Column::Int(samples.iter().map(|s| s.at).collect())),
        ("quantity", Column::Text(what().map(|w| w.0.to_string()).collect())),
        ("element", Column::Text(what().map(|w| w.1).collect())),
        ("unit", Column::Text(what().map(|w| w.2.to_string()).collect())),
        ("value", Column::Int(samples.iter().map(|s| s.value).collect())),
    ]
}

fn pauses(plan: &Plan, outcome: &Outcome, range: Range<usize>) -> Columns {
    let pauses = &outcome.pauses[range];
    let port = |get: &dyn Fn(&Pause) -> PortId| {
        Column::Text(pauses.iter().map(|p| names::port(plan, get(p))).collect())
    };
    let maybe = |get: &dyn Fn(&Pause) -> Option<PortId>| {
        Column::MaybeText(pauses.iter().map(|p| get(p).map(|port| names::port(plan, port))).collect())
    };
    let priorities = pauses.iter().map(|p| u64::from(names::priority(plan, p.lane))).collect();
    vec![
        ("port", port(&|p| p.port)),
        ("priority", Column::Int(priorities)),
        ("queue", Column::MaybeInt(pauses.iter().map(|p| p.queue.map(u64::from)).collect())),
        ("from_ps", Column::Int(pauses.iter().map(|p| p.from).collect())),
        ("until_ps", Column::MaybeInt(pauses.iter().map(|p| p.until).collect())),
        ("duration_ps", Column::Int(pauses.iter().map(|p| p.length(outcome.end)).collect())),
        ("cause", port(&|p| p.cause)),
        ("root", maybe(&|p| p.root)),
        ("named_root", maybe(&|p| p.named_root)),
        ("links", Column::Int(pauses.iter().map(|p| u64::from(p.links)).collect())),
    ]
}

fn blocked(plan: &Plan, outcome: &Outcome, range: Range<usize>) -> Columns {
    let places = outcome.blocking.as_ref().map_or(&[][..], |b| &b.places[range]);
    let port = |get: &dyn Fn(&Place) -> PortId| {
        Column::Text(places.iter().map(|(place, _)| names::port(plan, get(place))).collect())
    };
    let named = places.iter().map(|(place, _)| place.named.map(|port| names::port(plan, port)));
    let waits = |get: &dyn Fn(FlowBlame) -> u64| {
        Column::Int(places.iter().map(|(_, blame)| get(capped(&blame.waits()))).collect())
    };
    vec![
        ("port", port(&|place| place.port)),
        ("root", port(&|place| place.root)),
        ("named_root", Column::MaybeText(named.collect())),
        ("pauses", Column::Int(places.iter().map(|(_, blame)| blame.pauses).collect())),
        ("own_ps", waits(&|w| w.own)),
        ("victim_ps", waits(&|w| w.victim)),
        ("source_own_ps", waits(&|w| w.source_own)),
        ("source_victim_ps", waits(&|w| w.source_victim)),
        ("named_victim_ps", waits(&|w| w.named_victim)),
        ("source_named_victim_ps", waits(&|w| w.source_named_victim)),
    ]
}

fn leg_name(leg: Leg) -> &'static str {
    match leg {
        Leg::Source => "source",
        Leg::Data => "data",
        Leg::Ack => "ack",
    }
}

fn part_name(part: Part) -> &'static str {
    match part {
        Part::Sending => "sending",
        Part::Propagation => "propagation",
        Part::Queueing => "queueing",
        Part::Own => "own",
        Part::Victim => "victim",
        Part::Pacing => "pacing",
        Part::Receiver => "receiver",
        Part::Down => "down",
        Part::Recovery => "recovery",
    }
}

fn critical(plan: &Plan, outcome: &Outcome, range: Range<usize>) -> Columns {
    let shares = outcome.paths.as_ref().map_or(&[][..], |paths| &paths[range]);
    let int = |get: &dyn Fn(&Share) -> u64| Column::Int(shares.iter().map(get).collect());
    let text = |get: &dyn Fn(&Share) -> String| Column::Text(shares.iter().map(get).collect());
    let roots = shares.iter().map(|s| s.root.map(|root| names::port(plan, root)));
    let named = || shares.iter().map(|s| s.named);
    let named_parts = named().map(|n| n.map(|n| if n.victim { Part::Victim } else { Part::Own }));
    vec![
        ("flow", int(&|s| u64::from(s.flow))),
        ("step", int(&|s| u64::from(s.step))),
        ("leg", text(&|s| leg_name(s.leg).into())),
        ("port", text(&|s| names::port(plan, s.port))),
        ("part", text(&|s| part_name(s.part).into())),
        ("root", Column::MaybeText(roots.collect())),
        ("named_part", Column::MaybeText(named_parts.map(|p| p.map(|p| part_name(p).into())).collect())),
        ("named_root", Column::MaybeText(named().map(|n| n.map(|n| names::port(plan, n.root))).collect())),
        ("time_ps", int(&|s| s.time)),
    ]
}

fn ahead(plan: &Plan, outcome: &Outcome, range: Range<usize>) -> Columns {
    let ahead = &outcome.ahead[range];
    let int = |get: &dyn Fn(&Ahead) -> u64| Column::Int(ahead.iter().map(get).collect());
    vec![
        ("flow", int(&|a| u64::from(a.flow))),
        ("leg", Column::Text(ahead.iter().map(|a| leg_name(a.leg).into()).collect())),
        ("port", Column::Text(ahead.iter().map(|a| names::port(plan, a.port)).collect())),
        ("other", Column::MaybeInt(ahead.iter().map(|a| a.other.map(u64::from)).collect())),
        ("others", int(&|a| u64::from(a.others))),
        ("bytes", int(&|a| a.bytes)),
        ("time_ps", int(&|a| a.time)),
    ]
}

/// The gates at which their hosts compute.
fn computing(plan: &Plan) -> impl Iterator<Item = (usize, &Gate)> {
    plan.gates.iter().enumerate().filter(|(_, gate)| gate.delay > 0)
}

fn computations(plan: &Plan, outcome: &Outcome, range: Range<usize>) -> Columns {
    let opened = jobs::opened(plan, outcome);
    let gates = || computing(plan).skip(range.start).take(range.len());
    let ends = || gates().map(|(index, gate)| (opened[index], gate));
    vec![
        ("class", Column::Text(gates().map(|(_, g)| plan.classes[usize::from(g.class)].clone()).collect())),
        ("host", Column::Text(gates().map(|(_, g)| names::node(plan, g.host).to_string()).collect())),
        ("start_ps", Column::MaybeInt(ends().map(|(end, g)| end.map(|end| end - g.delay)).collect())),
        ("end_ps", Column::MaybeInt(ends().map(|(end, _)| end).collect())),
    ]
}

fn ports(plan: &Plan, outcome: &Outcome, range: Range<usize>) -> Columns {
    let ports = &plan.topology.ports[range.clone()];
    let outcomes = &outcome.ports[range.clone()];
    let ids = || range.clone().map(|p| p as PortId);
    let int = |get: &dyn Fn(&PortOutcome) -> u64| Column::Int(outcomes.iter().map(get).collect());
    let mut columns = vec![
        ("port", Column::Text(ids().map(|p| names::port(plan, p)).collect())),
        ("node", Column::Text(ports.iter().map(|p| names::node(plan, p.node).to_string()).collect())),
        ("peer", Column::Text(ports.iter().map(|p| names::port(plan, p.peer)).collect())),
        ("rate_bps", Column::Int(ports.iter().map(|p| p.rate).collect())),
        ("delay_ps", Column::Int(ports.iter().map(|p| p.delay).collect())),
        ("packets", int(&|o| o.packets)),
        ("bytes", int(&|o| o.bytes)),
        ("data_packets", int(&|o| o.data_packets)),
        ("queue_peak", int(&|o| o.queue_peak)),
        ("pause_frames", int(&|o| o.pause_frames)),
        ("resume_frames", int(&|o| o.resume_frames)),
        ("marks", int(&|o| o.marks)),
    ];
    let counts = outcome.records.by_port(plan.topology.ports.len());
    let of = |name: &str| counts.iter().find(|(known, _)| *known == name).map(|(_, counts)| counts);
    let known = xoff_schemes::facts().into_iter().flat_map(|facts| facts.facts);
    columns.extend(known.filter(|fact| fact.unit == Unit::ByPort).map(|fact| {
        let counts = of(fact.name);
        (fact.name, Column::MaybeInt(range.clone().map(|p| counts.map(|c| c[p])).collect()))
    }));
    columns
}

fn accounts(plan: &Plan, outcome: &Outcome, range: Range<usize>) -> Columns {
    let lanes = plan.lanes.len();
    let accounts = &plan.accounts[range.clone()];
    let peaks = &outcome.accounts[range.clone()];
    let static_limit = |a: &Account| match a.limit {
        Limit::Static(bytes) => Some(bytes),
        Limit::Unlimited | Limit::Dynamic { .. } => None,
    };
    let ports = range.clone().map(|i| names::port(plan, (i / lanes) as PortId)).collect();
    let priorities = range.map(|i| u64::from(names::priority(plan, (i % lanes) as u8))).collect();
    let headroom = |a: &Account| a.headroom.as_ref().map(|h| h.total);
    vec![
        ("port", Column::Text(ports)),
        ("priority", Column::Int(priorities)),
        ("reserve", Column::Int(accounts.iter().map(|a| a.reserve).collect())),
        ("static_limit", Column::MaybeInt(accounts.iter().map(static_limit).collect())),
        ("headroom", Column::MaybeInt(accounts.iter().map(headroom).collect())),
        ("main_peak", Column::Int(peaks.iter().map(|p| p.main).collect())),
        ("headroom_peak", Column::Int(peaks.iter().map(|p| p.headroom).collect())),
    ]
}

fn nodes(plan: &Plan, outcome: &Outcome, range: Range<usize>) -> Columns {
    let nodes = &plan.topology.nodes[range.clone()];
    let buffers = &plan.buffers[range.clone()];
    let kind = |node: usize| kind_name(&plan.topology, node as NodeId).to_string();
    vec![
        ("node", Column::Text(nodes.iter().map(|n| n.name.clone()).collect())),
        ("kind", Column::Text(range.clone().map(kind).collect())),
        ("buffer", Column::Int(buffers.iter().map(|b| b.total).collect())),
        ("shared", Column::Int(buffers.iter().map(|b| b.shared).collect())),
        ("buffer_peak", Column::Int(outcome.buffer_peaks[range].to_vec())),
    ]
}
