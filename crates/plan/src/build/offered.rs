//! What is offered to the network: every flow of every `[[traffic]]` table.

use super::{Context, MEMORY, files::Listed, host, routes::Routes, routes::unroutable, sizes};
use crate::error::Error;
use crate::plan::{Flow, PacketFormat};
use crate::scenario::{FlowFile, Incast, LoadOf, Permutation, Poisson, SingleFlow, Sizes, Traffic};
use std::collections::BTreeMap;
use xoff_kernel::random::mix;
use xoff_kernel::time::{SECOND, Time};
use xoff_net::error::SpecError;
use xoff_net::routing::{Route, Saturation, host_capacity, saturation, uniform};
use xoff_net::sizes::SizeDistribution;
use xoff_net::topology::{NodeId, Topology};
use xoff_net::traffic::{self, Demand, MAX_FLOWS};
use xoff_net::units::{Bytes, Span};

/// A flow before it is routed.
pub(super) struct Offer {
    pub(super) start: Time,
    /// Index of its table.
    pub(super) class: u16,
    /// Position in its table: a part of its ECMP key, so that a table's flows
    /// keep their paths whatever else is sent.
    pub(super) position: u64,
    pub(super) src: NodeId,
    pub(super) dst: NodeId,
    pub(super) size: u64,
    /// Bits per second; 0 is line rate.
    pub(super) pace: u64,
    /// 802.1p priority of its data.
    pub(super) priority: u8,
}

/// What the ECMP hashes see of a flow's packets from one host to another: data, or ACKs.
pub(super) fn flow_key(offer: &Offer, from: NodeId, to: NodeId) -> u64 {
    let pair = u64::from(from) << 32 | u64::from(to);
    mix(mix(pair) ^ mix((u64::from(offer.class) << 48) ^ offer.position))
}

/// All flows, in the order of start, table and position.
pub(super) struct Offers {
    /// Names of the tables.
    pub(super) classes: Vec<String>,
    pub(super) offers: Vec<Offer>,
    /// Routes that tables spell out.
    pub(super) explicit: BTreeMap<u16, Route>,
    /// By table: what the network can carry of it, where its load refers to that.
    pub(super) saturation: Vec<Option<Saturation>>,
}

/// Most characters of a traffic class's name.
const LONGEST_NAME: usize = 64;

/// Room that one flow takes in a plan: itself, its demand, its two routes.
const BYTES_PER_FLOW: u64 = (size_of::<Flow>() + size_of::<Demand>() + size_of::<Offer>() + 64) as u64;

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
        return Err(cx.doc.error("traffic", message, "65535 are the most: put single flows into a CSV file"));
    }
    let classes = class_names(cx)?;
    let hosts: Vec<NodeId> = topology.hosts().collect();
    if hosts.len() < 2 {
        return Err(cx.doc.error(
            "topology",
            format!("{} host has nobody to send to", hosts.len()),
            "build at least two hosts",
        ));
    }
    let mut offers = Vec::new();
    let mut explicit = BTreeMap::new();
    let mut limits = vec![None; tables.len()];
    for (i, table) in tables.iter().enumerate() {
        let mut pace = 0;
        // Of each flow, where the table's flows have priorities of their own.
        let mut priorities = Vec::new();
        let demands = match table {
            Traffic::Poisson(t) => {
                let (demands, limit) = poisson(cx, topology, routes, packet, i, t, &hosts)?;
                limits[i] = limit;
                demands
            }
            Traffic::Incast(t) => incast(cx, topology, i, t, &hosts)?,
            Traffic::Permutation(t) => permutation(cx, topology, i, t, &hosts)?,
            Traffic::Flow(t) => {
                let demand = single(cx, topology, i, t)?;
                pace = t.rate.map_or(0, |r| r.0);
                if let Some(names) = &t.path {
                    explicit
                        .insert(i as u16, routes.explicit(cx, topology, i, names, (demand.src, demand.dst))?);
                }
                vec![demand]
            }
            Traffic::Flows(t) => {
                let demands;
                (demands, priorities) = from_file(cx, topology, i, t, listed.remove(&i))?;
                demands
            }
        };
        if demands.is_empty() {
            cx.warn(format!("traffic[{i}]"), "had no effect: no flow starts within the run".to_string());
        }
        offers.extend(demands.into_iter().zip(0..).map(|(d, position)| Offer {
            start: d.start,
            class: i as u16,
            position,
            src: d.src,
            dst: d.dst,
            size: d.size,
            pace,
            priority: priorities.get(position as usize).copied().unwrap_or(table.priority()),
        }));
    }
    check_count(cx, "traffic", offers.len() as f64, "send fewer flows in all")?;
    offers.sort_by_key(|o| (o.start, o.class, o.position));
    Ok(Offers { classes, offers, explicit, saturation: limits })
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
            return Err(cx.doc.error(&path, "an empty name", "write a name, or leave it out"));
        }
        if name.chars().any(char::is_control) || name.chars().count() > LONGEST_NAME {
            let message = format!("`{name}` cannot be shown in a table");
            let help = format!("write up to {LONGEST_NAME} characters, none of them a control character");
            return Err(cx.doc.error(&path, message, help));
        }
        if let Some(first) = names.iter().position(|n| *n == name) {
            let message = format!("`{name}` is the name of traffic[{first}] too");
            return Err(cx.doc.error(&path, message, "give each [[traffic]] table a name of its own"));
        }
        names.push(name);
    }
    Ok(names)
}

/// The hosts named at `path`, or all.
fn pool(
    cx: &Context<'_>,
    topology: &Topology,
    path: &str,
    names: Option<&Vec<String>>,
    all: &[NodeId],
) -> Result<Vec<NodeId>, Error> {
    let Some(names) = names else { return Ok(all.to_vec()) };
    if names.is_empty() {
        return Err(cx.doc.error(
            path,
            "an empty list of hosts",
            "name hosts, or leave the key out to mean all",
        ));
    }
    let mut seen = BTreeMap::new();
    let mut out = Vec::new();
    for (i, name) in names.iter().enumerate() {
        let at = format!("{path}[{i}]");
        let node = host(cx, topology, &at, name)?;
        if seen.insert(node, i).is_some() {
            return Err(cx.doc.error(&at, format!("{name} is listed twice"), "remove one of the two"));
        }
        out.push(node);
    }
    Ok(out)
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
        let message = format!("{what} would go on for ever");
        let help = format!("add run.duration, or `stop` to traffic[{i}]");
        return Err(cx.doc.error(&format!("traffic[{i}].kind"), message, help).with_key("run.duration"));
    };
    if start >= until {
        let message = format!("it starts at {}, but ends at {}", super::Span(start), super::Span(until));
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
    Err(cx.doc.error(path, message, format!("{most} flows are the most: {help}")))
}

fn poisson(
    cx: &Context<'_>,
    topology: &Topology,
    routes: &mut Routes,
    packet: &PacketFormat,
    i: usize,
    t: &Poisson,
    hosts: &[NodeId],
) -> Result<(Vec<Demand>, Option<Saturation>), Error> {
    let at = |key: &str| format!("traffic[{i}].{key}");
    if !(t.load > 0.0 && t.load <= 10.0) {
        let message = format!("a load of {} is out of range", t.load);
        return Err(cx.doc.error(
            &at("load"),
            message,
            "write a fraction above 0 and up to 10, such as 0.6 for 60%",
        ));
    }
    let sizes = sizes::distribution(cx, &at("sizes"), &t.sizes)?;
    let (start, until) = span(cx, i, t.start.0, t.stop.map(|s| s.0), "Poisson traffic")?;
    let sources = pool(cx, topology, &at("from"), t.from.as_ref(), hosts)?;
    let destinations = pool(cx, topology, &at("to"), t.to.as_ref(), hosts)?;
    if let [only] = destinations[..]
        && sources.contains(&only)
    {
        let name = &topology.nodes[only as usize].name;
        let message = format!("{name} is the only receiver and a sender too: it would send to itself");
        return Err(cx.doc.error(&at("to"), message, format!("add receivers, or take {name} out of `from`")));
    }
    let mut limit = None;
    let capacity = match t.load_of {
        LoadOf::HostLinks => host_capacity(topology, &sources),
        LoadOf::Saturation => {
            let pairs = uniform(&sources, &destinations);
            limit = saturation(&mut routes.router, &sources, &destinations, &pairs)
                .map_err(|e| unroutable(cx, i, &e))?;
            limit.map_or(0.0, |s| s.rate)
        }
    };
    let rate = t.load * capacity / (8.0 * sizes::mean_wire_bytes(&sizes, packet));
    let expected = rate * (until - start) as f64 / SECOND as f64;
    check_count(cx, &at("load"), expected, "lower the load or the duration, or send larger flows")?;
    let spec = traffic::Poisson {
        sources: &sources,
        destinations: &destinations,
        sizes: &sizes,
        rate,
        from: start,
        until,
    };
    let demands = traffic::poisson(&spec, cx.scenario.run.seed, i as u64).map_err(|e| {
        let key = match e.key.as_str() {
            "sources" => "from",
            "destinations" => "to",
            _ => "load",
        };
        refused(cx, &at(key), e)
    })?;
    Ok((demands, limit))
}

/// A generator's refusal, at the key that it is about.
fn refused(cx: &Context<'_>, path: &str, e: SpecError) -> Error {
    cx.doc.error(path, e.message, e.help)
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
            "`size` and `sizes` exclude each other",
            "remove one of the two keys",
        )),
        (None, None) => {
            let help = "add size = \"1MB\", or sizes = with a distribution";
            Err(cx.doc.error(&at("size"), "the flows have no size", help))
        }
    }
}

fn permutation(
    cx: &Context<'_>,
    topology: &Topology,
    i: usize,
    t: &Permutation,
    hosts: &[NodeId],
) -> Result<Vec<Demand>, Error> {
    let sizes = size_or_sizes(cx, i, t.size, t.sizes.as_ref())?;
    check_start(cx, i, t.start)?;
    let path = format!("traffic[{i}].hosts");
    let hosts = pool(cx, topology, &path, t.hosts.as_ref(), hosts)?;
    traffic::permutation(&hosts, &sizes, t.start.0, cx.scenario.run.seed, i as u64)
        .map_err(|e| refused(cx, &path, e))
}

/// Refuses a start after the end of the run.
fn check_start(cx: &Context<'_>, i: usize, start: Span) -> Result<(), Error> {
    match cx.scenario.run.duration {
        Some(duration) if start >= duration => {
            let message = format!("it starts at {start}, but the run's duration is {duration}");
            let path = format!("traffic[{i}].start");
            Err(cx.doc.error(&path, message, "start it earlier, or raise run.duration"))
        }
        _ => Ok(()),
    }
}

fn incast(
    cx: &Context<'_>,
    topology: &Topology,
    i: usize,
    t: &Incast,
    hosts: &[NodeId],
) -> Result<Vec<Demand>, Error> {
    let at = |key: &str| format!("traffic[{i}].{key}");
    let sizes = size_or_sizes(cx, i, t.size, t.sizes.as_ref())?;
    let senders = pool(cx, topology, &at("from"), t.from.as_ref(), hosts)?;
    let receivers = match t.to.as_str() {
        "random" => hosts.to_vec(),
        name => vec![host(cx, topology, &at("to"), name)?],
    };
    let others = senders.len() - usize::from(receivers.iter().any(|r| senders.contains(r)));
    if t.fan_in == 0 || t.fan_in as usize > others {
        let message = format!("a fan-in of {} is out of range", t.fan_in);
        let help = format!("write 1 to {others}: {} hosts may send, the receiver does not", senders.len());
        return Err(cx.doc.error(&at("fan_in"), message, help));
    }
    let period = t.period.map(|p| p.0);
    let until = match period {
        Some(0) => {
            return Err(cx.doc.error(
                &at("period"),
                "events need a distance",
                "write a time above 0, or remove `period`",
            ));
        }
        Some(period) => {
            let (start, until) = span(cx, i, t.start.0, t.stop.map(|s| s.0), "periodic incast")?;
            let events = (until - start).div_ceil(period) as f64;
            check_count(
                cx,
                &at("period"),
                events * f64::from(t.fan_in),
                "choose a longer period or a smaller fan-in",
            )?;
            until
        }
        None => match (t.stop, cx.scenario.run.duration) {
            (None, None) => Time::MAX,
            _ => span(cx, i, t.start.0, t.stop.map(|s| s.0), "incast")?.1,
        },
    };
    let spec = traffic::Incast {
        receivers: &receivers,
        senders: &senders,
        fan_in: t.fan_in,
        sizes: &sizes,
        first: t.start.0,
        period,
        until,
    };
    traffic::incast(&spec, cx.scenario.run.seed, i as u64).map_err(|e| {
        let key = match e.key.as_str() {
            "senders" => "from",
            "receivers" => "to",
            key => key,
        };
        refused(cx, &at(key), e)
    })
}

fn single(cx: &Context<'_>, topology: &Topology, i: usize, t: &SingleFlow) -> Result<Demand, Error> {
    let at = |key: &str| format!("traffic[{i}].{key}");
    let src = host(cx, topology, &at("src"), &t.src)?;
    let dst = host(cx, topology, &at("dst"), &t.dst)?;
    if src == dst {
        let message = format!("{} sends to itself", t.src);
        return Err(cx.doc.error(
            &at("dst"),
            message,
            "choose another receiver: nothing would cross the network",
        ));
    }
    sizes::fixed(cx, &at("size"), t.size)?;
    check_start(cx, i, t.start)?;
    Ok(Demand { src, dst, size: t.size.0, start: t.start.0 })
}

fn from_file(
    cx: &mut Context<'_>,
    topology: &Topology,
    i: usize,
    t: &FlowFile,
    listed: Option<Vec<(Demand, u8)>>,
) -> Result<(Vec<Demand>, Vec<u8>), Error> {
    let path = format!("traffic[{i}].file");
    let (mut demands, priorities): (Vec<Demand>, Vec<u8>) = match listed {
        Some(flows) => {
            let key = format!("traffic[{i}].priority");
            if cx.doc.get(&key).is_some() {
                cx.warn(key, "had no effect: the file has a priority for each flow".to_string());
            }
            flows.into_iter().unzip()
        }
        None => {
            let text = cx.file(&path, &t.file)?;
            let demands = traffic::flows_csv(&text, topology).map_err(|e| {
                let help = "the first line is `src,dst,bytes,start`; then a line per flow, such as `H0,H1,1000000,10us`";
                Error::new(&t.file, &text, Some(sizes::line_span(&text, e.line)), e.message).with_help(help)
            })?;
            (demands, Vec::new())
        }
    };
    let all = demands.len();
    // In the order of time: what is left out are the last ones.
    if let Some(duration) = cx.scenario.run.duration {
        demands.retain(|d| d.start < duration.0);
    }
    if demands.len() < all {
        let message =
            format!("{} of its {all} flows start after run.duration and are left out", all - demands.len());
        cx.warn(path, message);
    }
    Ok((demands, priorities))
}
