//! The traffic offered to the network: every flow of every `[[traffic]]` table.

mod collective;
mod hosts;
mod random;

use super::{Context, MEMORY, files::Listed, routes::Routes, sizes};
use crate::Expected;
use crate::error::Error;
use crate::plan::{Flow, Gate, PacketFormat};
use crate::scenario::{Sizes, Traffic};
use hosts::HostSets;
use std::collections::BTreeMap;
use xoff_kernel::random::mix;
use xoff_kernel::time::Time;
use xoff_net::error::SpecError;
use xoff_net::routing::{Route, Saturation};
use xoff_net::sizes::SizeDistribution;
use xoff_net::topology::{NodeId, Topology};
use xoff_net::traffic::{self, Demand, MAX_FLOWS, Schedule, Step};
use xoff_net::units::{Bytes, Span};

/// A flow before it is routed.
pub(super) struct Offer {
    pub(super) start: Time,
    /// The gate that it waits for.
    pub(super) after: Option<u32>,
    /// The gate that its delivery counts towards.
    pub(super) opens: Option<u32>,
    /// Index of its table.
    pub(super) class: u16,
    /// 802.1p priority.
    pub(super) priority: u8,
    /// Position in its table: a part of its ECMP key, so a table's flows keep their paths whatever other
    /// tables send.
    pub(super) position: u64,
    pub(super) src: NodeId,
    pub(super) dst: NodeId,
    pub(super) size: u64,
    /// Bits per second; 0 is line rate.
    pub(super) pace: u64,
}

/// The input of the ECMP hashes for a flow's packets from one host to another: data, or ACKs.
pub(super) fn flow_key(offer: &Offer, from: NodeId, to: NodeId) -> u64 {
    let pair = u64::from(from) << 32 | u64::from(to);
    mix(mix(pair) ^ mix((u64::from(offer.class) << 48) ^ offer.position))
}

/// All flows, in the order of start, table and position; flows after gates follow all others.
pub(super) struct Offers {
    /// Names of the tables.
    pub(super) classes: Vec<String>,
    pub(super) offers: Vec<Offer>,
    pub(super) gates: Vec<Gate>,
    /// Routes that tables spell out: of each such table those of its flows, by position.
    pub(super) explicit: BTreeMap<u16, Vec<Route>>,
    /// By table: the capacity of the network for it, if its load refers to that.
    pub(super) saturation: Vec<Option<Saturation>>,
    /// By table: the expected values of its distribution.
    pub(super) expected: Vec<Option<Expected>>,
}

/// The result of a table: flows, and their expected values.
#[derive(Default)]
struct Made {
    schedule: Schedule,
    /// Priority of each flow, where a file says it.
    priorities: Vec<u8>,
    /// Bits per second of each flow; 0 is line rate.
    pace: u64,
    saturation: Option<Saturation>,
    expected: Option<Expected>,
}

impl Made {
    /// Flows that wait for nothing.
    fn of(demands: Vec<Demand>) -> Self {
        let steps = demands.into_iter().map(|demand| Step { demand, after: None, opens: None }).collect();
        Made { schedule: Schedule { steps, barriers: Vec::new() }, ..Made::default() }
    }

    /// The same with the expected values of a distribution of sizes.
    fn expecting(self, flows: Option<f64>, sizes: &SizeDistribution) -> Self {
        Made { expected: Some(Expected { flows, mean_size: sizes.mean() }), ..self }
    }
}

/// Most characters of a traffic class's name.
const LONGEST_NAME: usize = 64;

/// Room that one flow takes in a plan: itself, its demand, its two routes, a gate.
const BYTES_PER_FLOW: u64 =
    (size_of::<Flow>() + size_of::<Step>() + size_of::<Offer>() + size_of::<Gate>() + 80) as u64;

pub(super) fn generate(
    cx: &mut Context<'_>,
    topology: &Topology,
    routes: &mut Routes,
    packet: &PacketFormat,
    mut listed: Listed,
) -> Result<Offers, Error> {
    let tables = &cx.scenario.traffic;
    if tables.len() > usize::from(u16::MAX) {
        let message = format!("{} [[traffic]] tables are too many", tables.len());
        return Err(cx.doc.error(
            "traffic",
            message,
            "the maximum is 65535: write single flows in a CSV file",
        ));
    }
    let classes = class_names(cx)?;
    let mut hosts = HostSets::new(topology);
    if hosts.all.len() < 2 {
        return Err(cx.doc.error(
            "topology",
            format!("{} host has no other host to send to", hosts.all.len()),
            "choose a topology with at least two hosts",
        ));
    }
    let mut all = Offers {
        classes,
        offers: Vec::new(),
        gates: Vec::new(),
        explicit: BTreeMap::new(),
        saturation: Vec::new(),
        expected: Vec::new(),
    };
    for (i, table) in tables.iter().enumerate() {
        let made = match table {
            Traffic::Poisson(t) => random::poisson(cx, topology, routes, packet, i, t, &mut hosts)?,
            Traffic::Incast(t) => random::incast(cx, topology, packet, i, t, &mut hosts)?,
            Traffic::Permutation(t) => random::permutation(cx, i, t, &mut hosts)?,
            Traffic::Flow(t) => {
                let demand = random::single(cx, topology, i, t)?;
                if let Some(names) = &t.path {
                    let nodes = random::named_path(cx, topology, i, names, (demand.src, demand.dst))?;
                    let route = routes.explicit(cx, topology, &format!("traffic[{i}].path"), nodes)?;
                    all.explicit.insert(i as u16, vec![route]);
                }
                Made { pace: t.rate.map_or(0, |r| r.0), ..Made::of(vec![demand]) }
            }
            Traffic::Flows(t) => {
                let (demands, priorities) = random::from_file(cx, topology, i, t, listed.remove(&i))?;
                Made { priorities, ..Made::of(demands) }
            }
            Traffic::AllToAll(t) => collective::all_to_all(cx, i, t, &mut hosts)?,
            Traffic::RingAllReduce(t) => collective::ring_all_reduce(cx, i, t, &mut hosts)?,
            Traffic::ParameterServer(t) => collective::parameter_server(cx, i, t, &mut hosts)?,
            Traffic::Moe(t) => collective::moe(cx, i, t, &mut hosts)?,
            Traffic::Probe(t) => collective::probe(cx, i, t, &mut hosts)?,
            Traffic::Burst(t) => random::burst(cx, i, t, &mut hosts)?,
            Traffic::Loop(t) => {
                let (demands, paths): (Vec<Demand>, Vec<_>) =
                    random::around(cx, topology, i, t)?.into_iter().unzip();
                let at = format!("traffic[{i}].switches");
                let along = |path| routes.explicit(cx, topology, &at, path);
                let paths = paths.into_iter().map(along).collect::<Result<_, _>>()?;
                all.explicit.insert(i as u16, paths);
                Made::of(demands)
            }
        };
        add(cx, &mut all, i, table, made)?;
    }
    check_count(cx, "traffic", all.offers.len() as f64, "send fewer flows in total")?;
    all.offers.sort_by_key(|o| (o.after.is_some(), o.start, o.class, o.position));
    for (offer, flow) in all.offers.iter().zip(0..) {
        if let Some(gate) = offer.opens {
            all.gates[gate as usize].waits += 1;
        }
        if let Some(gate) = offer.after {
            all.gates[gate as usize].flows.push(flow);
        }
    }
    Ok(all)
}

/// Adds the flows of table `i`.
fn add(cx: &mut Context<'_>, all: &mut Offers, i: usize, table: &Traffic, made: Made) -> Result<(), Error> {
    let Made { schedule, priorities: own, pace, saturation, expected } = made;
    if schedule.steps.is_empty() {
        cx.warn(format!("traffic[{i}]"), "had no effect: no flow starts within the run");
    }
    let (priorities, weights): (Vec<u8>, Vec<f64>) = priorities(cx, i, table)?.into_iter().unzip();
    let mut dealt = Vec::new();
    if weights.len() > 1 {
        dealt = traffic::split(&weights, schedule.steps.len(), cx.scenario.run.seed, i as u64);
    }
    let first = all.gates.len() as u32;
    let gates = schedule.barriers.into_iter();
    all.gates.extend(gates.map(|b| Gate { host: b.host, waits: 0, delay: b.delay, flows: Vec::new() }));
    all.offers.extend(schedule.steps.into_iter().enumerate().map(|(position, step)| Offer {
        start: step.demand.start,
        after: step.after.map(|gate| first + gate),
        opens: step.opens.map(|gate| first + gate),
        class: i as u16,
        priority: match own.get(position) {
            Some(&own) => own,
            None => priorities[dealt.get(position).copied().unwrap_or(0)],
        },
        position: position as u64,
        src: step.demand.src,
        dst: step.demand.dst,
        size: step.demand.size,
        pace,
    }));
    all.saturation.push(saturation);
    all.expected.push(expected);
    Ok(())
}

/// The priorities of table `i`, each with its weight.
pub(super) fn priorities(cx: &Context<'_>, i: usize, table: &Traffic) -> Result<Vec<(u8, f64)>, Error> {
    let path = format!("traffic[{i}].priority");
    let Some(shares) = table.priorities() else {
        super::lanes::check_priority(cx, &path, table.priority())?;
        return Ok(vec![(table.priority(), 1.0)]);
    };
    let several = format!("traffic[{i}].priorities");
    if cx.doc.get(&path).is_some() {
        let message = "`priority` and `priorities` cannot be combined";
        return Err(cx.doc.error(&several, message, "remove one of the two keys"));
    }
    if shares.is_empty() {
        return Err(cx.doc.error(
            &several,
            "the table of priorities is empty",
            "write { 3 = 0.5, 4 = 0.5 }, or remove the key",
        ));
    }
    let mut out = Vec::new();
    for (key, &weight) in shares {
        let at = format!("{several}.{key}");
        let priority = match key.as_bytes() {
            [digit @ b'0'..=b'7'] => digit - b'0',
            _ => {
                let message = format!("priority `{key}` does not exist");
                return Err(cx.doc.error(&several, message, "write 0 to 7, the 802.1p priorities"));
            }
        };
        if !(weight.is_finite() && weight > 0.0) {
            let help = "write a number above 0, or remove the priority";
            return Err(cx.doc.error(&at, format!("a weight of {weight} is out of range"), help));
        }
        out.push((priority, weight));
    }
    Ok(out)
}

/// A name for each table: its own, or its kind, numbered if several need it.
fn class_names(cx: &Context<'_>) -> Result<Vec<String>, Error> {
    let tables = &cx.scenario.traffic;
    let mut names: Vec<String> = Vec::new();
    for (i, table) in tables.iter().enumerate() {
        let kind = table.kind();
        let same = |t: &&Traffic| t.name().is_none() && t.kind() == kind;
        let name = match table.name() {
            Some(name) => name.to_string(),
            None if tables.iter().filter(same).count() == 1 => kind.to_string(),
            None => format!("{kind}-{}", 1 + tables[..i].iter().filter(same).count()),
        };
        let path = format!("traffic[{i}].name");
        if name.is_empty() {
            return Err(cx.doc.error(&path, "the name is empty", "write a name, or remove the key"));
        }
        if name.chars().any(char::is_control) || name.chars().count() > LONGEST_NAME {
            let message = format!("`{name}` is not a valid name");
            let help = format!("write at most {LONGEST_NAME} characters, without control characters");
            return Err(cx.doc.error(&path, message, help));
        }
        if let Some(first) = names.iter().position(|n| *n == name) {
            let message = format!("the name `{name}` is used twice, first in traffic[{first}]");
            return Err(cx.doc.error(&path, message, "give each [[traffic]] table a different name"));
        }
        names.push(name);
    }
    Ok(names)
}

/// When flows of table `i` may start: from `start` until `stop`, at most until
/// the run's duration.
fn span(
    cx: &Context<'_>,
    i: usize,
    start: Time,
    stop: Option<Time>,
    what: &str,
) -> Result<(Time, Time), Error> {
    let at = |key: &str| format!("traffic[{i}].{key}");
    let duration = cx.scenario.run.duration.map(|d| d.0);
    let Some(until) = stop.into_iter().chain(duration).min() else {
        let message = format!("{what} would never end");
        let help = format!("add run.duration, or `stop` to traffic[{i}]");
        return Err(cx.doc.error(&format!("traffic[{i}].kind"), message, help).with_key("run.duration"));
    };
    if start >= until {
        let message =
            format!("the traffic starts at {}, after it ends at {}", super::Span(start), super::Span(until));
        return Err(cx.doc.error(&at("start"), message, "choose `start` below `stop` and run.duration"));
    }
    Ok((start, until))
}

fn check_count(cx: &Context<'_>, path: &str, flows: f64, help: &str) -> Result<(), Error> {
    let most = (MEMORY / BYTES_PER_FLOW).min(MAX_FLOWS);
    if flows <= most as f64 {
        return Ok(());
    }
    let gib = flows * BYTES_PER_FLOW as f64 / (1u64 << 30) as f64;
    let message = format!("about {flows:.3e} flows would need {gib:.0} GiB");
    Err(cx.doc.error(path, message, format!("the maximum is {most} flows: {help}")))
}

/// A generator's refusal, at the key that it is about.
fn refused(cx: &Context<'_>, path: &str, e: SpecError) -> Error {
    cx.doc.error(path, e.message, e.help)
}

/// A generator's refusal, at the key that is called as the scenario calls it.
fn refused_key(cx: &Context<'_>, i: usize, e: SpecError) -> Error {
    let key = match e.key.as_str() {
        "sources" | "senders" => "from",
        "destinations" | "receivers" => "to",
        "per_token" => "experts_per_token",
        key => key,
    };
    refused(cx, &format!("traffic[{i}].{key}"), e)
}

/// The sizes of a table that gives either one size or a distribution.
fn size_or_sizes(
    cx: &Context<'_>,
    i: usize,
    size: Option<Bytes>,
    sizes: Option<&Sizes>,
) -> Result<SizeDistribution, Error> {
    let at = |key: &str| format!("traffic[{i}].{key}");
    match (size, sizes) {
        (Some(size), None) => sizes::fixed(cx, &at("size"), size),
        (None, Some(sizes)) => sizes::distribution(cx, &at("sizes"), sizes),
        (Some(_), Some(_)) => Err(cx.doc.error(
            &at("sizes"),
            "`size` and `sizes` cannot be combined",
            "remove one of the two keys",
        )),
        (None, None) => {
            let help = "add size = \"1MB\", or a distribution such as sizes = \"websearch\"";
            Err(cx.doc.error(&at("size"), "the size of the flows is missing", help))
        }
    }
}

/// Refuses a start after the end of the run.
fn check_start(cx: &Context<'_>, i: usize, start: Span) -> Result<(), Error> {
    match cx.scenario.run.duration {
        Some(duration) if start >= duration => {
            let message = format!("the flow starts at {start}, after the run ends at {duration}");
            let path = format!("traffic[{i}].start");
            Err(cx.doc.error(&path, message, "start it earlier, or raise run.duration"))
        }
        _ => Ok(()),
    }
}
