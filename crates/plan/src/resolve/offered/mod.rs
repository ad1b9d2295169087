//! The traffic offered to the network: every flow of every `[[traffic]]` table.

mod collective;
mod hosts;
mod random;
mod trace;

use super::{Context, MEMORY, files::Listed, host, routes::Routes, sizes};
use crate::Expected;
use crate::error::Error;
use crate::plan::{Flow, Gate, Job, Operation, PacketFormat};
use crate::scenario::{Sizes, Traffic};
use hosts::HostSets;
use std::collections::BTreeMap;
use std::ops::Range;
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

/// The operations of a table, each with the positions of its flows, in their order; and what [`Job`] has.
pub(super) struct JobOffer {
    names: Vec<String>,
    operations: Vec<(Range<u64>, Operation)>,
    iterations: Vec<Vec<u32>>,
}

impl JobOffer {
    /// The job, if the table has operations or iterations.
    pub(super) fn job(self, class: u16) -> Option<Job> {
        let operations: Vec<Operation> =
            self.operations.into_iter().map(|(_, operation)| operation).collect();
        let is_job = !operations.is_empty() || !self.iterations.is_empty();
        is_job.then_some(Job { class, names: self.names, operations, iterations: self.iterations })
    }
}

/// All flows, in the order of start, table and position; flows after gates follow all others.
#[derive(Default)]
pub(super) struct Offers {
    pub(super) classes: Vec<String>,
    pub(super) offers: Vec<Offer>,
    pub(super) gates: Vec<Gate>,
    /// By table.
    pub(super) jobs: Vec<JobOffer>,
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
        Made { schedule: Schedule { steps, ..Schedule::default() }, ..Made::default() }
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
    mut listed: Listed,
) -> Result<Offers, Error> {
    let tables = &cx.scenario.traffic;
    if tables.len() > usize::from(u16::MAX) {
        let message = format!("{} [[traffic]] tables are too many", tables.len());
        return cx.refuse("traffic", message, "the maximum is 65535: write single flows in a CSV file");
    }
    let classes = class_names(cx)?;
    let hosts = HostSets::new(topology);
    if hosts.all.len() < 2 {
        let message = format!("{} host has no other host to send to", hosts.all.len());
        return cx.refuse("topology", message, "choose a topology with at least two hosts");
    }
    let mut all = Offers { classes, ..Offers::default() };
    // The same flows for every congestion control: telemetry is no load.
    let (packet, telemetry) = (cx.packet, cx.telemetry()?);
    let packet = &PacketFormat { header: packet.header - telemetry, ack: packet.ack - telemetry, ..packet };
    let mut table = Table { cx, topology, packet, hosts, i: 0 };
    for (i, traffic) in tables.iter().enumerate() {
        table.i = i;
        let made = match traffic {
            Traffic::Poisson(t) => random::poisson(&mut table, t, routes)?,
            Traffic::Incast(t) => random::incast(&mut table, t)?,
            Traffic::Permutation(t) => random::permutation(&mut table, t)?,
            Traffic::Flow(t) => {
                let demand = random::single(&table, t)?;
                if let Some(names) = &t.path {
                    let nodes = random::named_path(&table, names, (demand.src, demand.dst))?;
                    let route = routes.explicit(table.cx, topology, &table.at("path"), nodes)?;
                    all.explicit.insert(i as u16, vec![route]);
                }
                Made { pace: t.rate.map_or(0, |r| r.0), ..Made::of(vec![demand]) }
            }
            Traffic::Flows(t) => random::from_file(&mut table, t, listed.remove(&i))?,
            Traffic::AllToAll(t) => collective::all_to_all(&mut table, t)?,
            Traffic::RingAllReduce(t) => collective::ring_all_reduce(&mut table, t)?,
            Traffic::ParameterServer(t) => collective::parameter_server(&mut table, t)?,
            Traffic::Moe(t) => collective::moe(&mut table, t)?,
            Traffic::TrainingStep(t) => collective::training_step(&mut table, t)?,
            Traffic::Trace(t) => trace::trace(&mut table, t)?,
            Traffic::Probe(t) => collective::probe(&mut table, t)?,
            Traffic::Burst(t) => random::burst(&mut table, t)?,
            Traffic::Loop(t) => {
                let (demands, paths): (Vec<Demand>, Vec<_>) =
                    random::around(&mut table, t)?.into_iter().unzip();
                let at = table.at("switches");
                let along = |path| routes.explicit(table.cx, topology, &at, path);
                all.explicit.insert(i as u16, paths.into_iter().map(along).collect::<Result<_, _>>()?);
                Made::of(demands)
            }
        };
        add(table.cx, &mut all, i, traffic, made)?;
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
        let job = &mut all.jobs[usize::from(offer.class)];
        let operation = job.operations.partition_point(|(steps, _)| steps.end <= offer.position);
        if let Some((_, operation)) =
            job.operations.get_mut(operation).filter(|(steps, _)| steps.start <= offer.position)
        {
            operation.flows.push(flow);
        }
    }
    for gate in 0..all.gates.len() {
        for then in all.gates[gate].then.clone() {
            all.gates[then as usize].waits += 1;
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
    let Schedule { steps, barriers, names, operations, iterations } = schedule;
    all.gates.extend(barriers.into_iter().map(|b| Gate {
        class: i as u16,
        host: b.host,
        waits: 0,
        start: b.start,
        delay: b.delay,
        flows: Vec::new(),
        then: b.then.into_iter().map(|then| first + then).collect(),
    }));
    all.jobs.push(JobOffer {
        names,
        operations: operations
            .into_iter()
            .map(|o| {
                let flows = Vec::with_capacity(o.steps.len());
                let steps = o.steps.start as u64..o.steps.end as u64;
                (steps, Operation { name: o.name, hosts: o.hosts, size: o.size, flows })
            })
            .collect(),
        iterations: iterations.into_iter().map(|all| all.into_iter().map(|b| first + b).collect()).collect(),
    });
    all.offers.extend(steps.into_iter().enumerate().map(|(position, step)| Offer {
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
        return cx.refuse(&several, message, "remove one of the two keys");
    }
    if shares.is_empty() {
        let help = "write { 3 = 0.5, 4 = 0.5 }, or remove the key";
        return cx.refuse(&several, "the table of priorities is empty", help);
    }
    let mut out = Vec::new();
    for (key, &weight) in shares {
        let at = format!("{several}.{key}");
        let priority = match key.as_bytes() {
            [digit @ b'0'..=b'7'] => digit - b'0',
            _ => {
                let message = format!("priority `{key}` does not exist");
                return cx.refuse(&several, message, "write 0 to 7, the 802.1p priorities");
            }
        };
        if !(weight.is_finite() && weight > 0.0) {
            let help = "write a number above 0, or remove the priority";
            return cx.refuse(&at, format!("a weight of {weight} is out of range"), help);
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
            return cx.refuse(&path, "the name is empty", "write a name, or remove the key");
        }
        if name.chars().any(char::is_control) || name.chars().count() > LONGEST_NAME {
            let help = format!("write at most {LONGEST_NAME} characters, without control characters");
            return cx.refuse(&path, format!("`{name}` is not a valid name"), help);
        }
        if let Some(first) = names.iter().position(|n| *n == name) {
            let message = format!("the name `{name}` is used twice, first in traffic[{first}]");
            return cx.refuse(&path, message, "give each [[traffic]] table a different name");
        }
        names.push(name);
    }
    Ok(names)
}

fn check_count(cx: &Context<'_>, path: &str, flows: f64, help: &str) -> Result<(), Error> {
    let most = (MEMORY / BYTES_PER_FLOW).min(MAX_FLOWS);
    if flows <= most as f64 {
        return cx.go_on((flows * BYTES_PER_FLOW as f64) as u64);
    }
    let gib = flows * BYTES_PER_FLOW as f64 / (1u64 << 30) as f64;
    let message = format!("about {flows:.3e} flows would need {gib:.0} GiB");
    cx.refuse(path, message, format!("the maximum is {most} flows: {help}"))
}

/// The table `traffic[i]`, as its flows are made.
struct Table<'c, 's> {
    cx: &'c mut Context<'s>,
    topology: &'c Topology,
    packet: &'c PacketFormat,
    hosts: HostSets<'c>,
    i: usize,
}

impl Table<'_, '_> {
    fn at(&self, key: &str) -> String {
        format!("traffic[{}].{key}", self.i)
    }

    fn refuse<T>(&self, key: &str, message: impl Into<String>, help: impl Into<String>) -> Result<T, Error> {
        self.cx.refuse(&self.at(key), message, help)
    }

    /// A generator's refusal, at the key that it is about.
    fn refused(&self, key: &str, e: SpecError) -> Error {
        self.cx.doc.error(&self.at(key), e.message, e.help)
    }

    /// A generator's refusal, at the key that is called as the scenario calls it.
    fn refused_key(&self, e: SpecError) -> Error {
        let path = self.at(match e.key.as_str() {
            "sources" | "senders" => "from",
            "destinations" | "receivers" => "to",
            "per_token" => "experts_per_token",
            key => key,
        });
        self.cx.doc.error(&path, e.message, e.help)
    }

    fn warn(&mut self, key: &str, message: &str) {
        self.cx.warn(self.at(key), message);
    }

    fn seed(&self) -> u64 {
        self.cx.scenario.run.seed
    }

    /// The number of the table's random streams.
    fn element(&self) -> u64 {
        self.i as u64
    }

    fn duration(&self) -> Option<Span> {
        self.cx.scenario.run.duration
    }

    /// The hosts of the list at a key, or all.
    fn list(&mut self, key: &str, list: Option<&Vec<String>>) -> Result<Vec<NodeId>, Error> {
        let path = self.at(key);
        self.hosts.list(self.cx, &path, list)
    }

    fn host(&self, key: &str, name: &str) -> Result<NodeId, Error> {
        host(self.cx, self.topology, &self.at(key), name)
    }

    fn check_count(&self, key: &str, flows: f64, help: &str) -> Result<(), Error> {
        check_count(self.cx, &self.at(key), flows, help)
    }

    /// When its flows may start: from `start` until `stop`, at most until the run's duration.
    fn span(&self, start: Span, stop: Option<Span>, what: &str) -> Result<(Time, Time), Error> {
        let Some(until) = stop.into_iter().chain(self.duration()).min() else {
            let message = format!("{what} would never end");
            let help = format!("add run.duration, or `stop` to traffic[{}]", self.i);
            return Err(self.cx.doc.error(&self.at("kind"), message, help).with_key("run.duration"));
        };
        if start >= until {
            let message = format!("the traffic starts at {start}, after it ends at {until}");
            return self.refuse("start", message, "choose `start` below `stop` and run.duration");
        }
        Ok((start.0, until.0))
    }

    /// The sizes of a table that gives either one size or a distribution.
    fn sizes(&self, size: Option<Bytes>, sizes: Option<&Sizes>) -> Result<SizeDistribution, Error> {
        match (size, sizes) {
            (Some(size), None) => sizes::fixed(self.cx, &self.at("size"), size),
            (None, Some(sizes)) => sizes::distribution(self.cx, &self.at("sizes"), sizes),
            (Some(_), Some(_)) => {
                self.refuse("sizes", "`size` and `sizes` cannot be combined", "remove one of the two keys")
            }
            (None, None) => {
                let help = "add size = \"1MB\", or a distribution such as sizes = \"websearch\"";
                self.refuse("size", "the size of the flows is missing", help)
            }
        }
    }

    /// Refuses a start after the end of the run.
    fn check_start(&self, start: Span) -> Result<(), Error> {
        let Some(duration) = self.duration().filter(|&duration| start >= duration) else { return Ok(()) };
        let message = format!("the flow starts at {start}, after the run ends at {duration}");
        self.refuse("start", message, "start it earlier, or raise run.duration")
    }
}
