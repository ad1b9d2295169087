//! Flows by chance, by the clock, and as a list.

use super::super::routes::{Routes, unroutable};
use super::super::{Context, LAST, host, node, sizes};
use super::hosts::HostSets;
use super::{Made, check_count, check_start, refused, refused_key, size_or_sizes, span};
use crate::error::Error;
use crate::plan::PacketFormat;
use crate::scenario::{
    Burst, FlowFile, Incast, IncastLoadOf, LoadOf, Loop, Permutation, Poisson, SingleFlow,
};
use xoff_kernel::time::{SECOND, Time};
use xoff_net::routing::{host_capacity, saturation, uniform};
use xoff_net::sizes::SizeDistribution;
use xoff_net::topology::{NodeId, Topology};
use xoff_net::traffic::{self, Demand, Level, Pairs};

pub(super) fn poisson(
    cx: &Context<'_>,
    topology: &Topology,
    routes: &mut Routes,
    packet: &PacketFormat,
    i: usize,
    t: &Poisson,
    hosts: &mut HostSets<'_>,
) -> Result<Made, Error> {
    let at = |key: &str| format!("traffic[{i}].{key}");
    check_load(cx, &at("load"), t.load)?;
    let sizes = sizes::distribution(cx, &at("sizes"), &t.sizes)?;
    let stop = t.stop.map(|s| s.0).or(t.flows.map(|_| LAST));
    let (start, until) = span(cx, i, t.start.0, stop, "Poisson traffic")?;
    let most = t.flows.unwrap_or(u64::MAX);
    if most == 0 {
        let message = "flows = 0 sends no traffic";
        return Err(cx.doc.error(&at("flows"), message, "write 1 or more, or remove the table"));
    }
    let Among { pairs, sources, destinations, uniform: even } = among(cx, topology, i, t, hosts)?;
    let mut limit = None;
    let capacity = match t.load_of {
        LoadOf::HostLinks => host_capacity(topology, &sources),
        LoadOf::Each(rate) => rate.0 as f64 * sources.len() as f64,
        LoadOf::Saturation => {
            // The same chances, found faster.
            let found = if even {
                let chance = uniform(&sources, &destinations);
                saturation(&mut routes.router, &sources, &destinations, &chance)
            } else {
                let chance = |src: NodeId, dst: NodeId| pairs.chance(src, dst);
                saturation(&mut routes.router, &sources, &destinations, &chance)
            };
            limit = found.map_err(|e| unroutable(cx, i, &e))?;
            limit.map_or(0.0, |s| s.rate)
        }
    };
    let rate = t.load * capacity / (8.0 * sizes::mean_wire_bytes(&sizes, packet));
    let expected = (rate * (until - start) as f64 / SECOND as f64).min(most as f64);
    check_count(cx, &at("load"), expected, "lower the load or the duration, or send larger flows")?;
    let spec = traffic::Arrivals { sizes: &sizes, rate, from: start, until, most };
    let demands = traffic::poisson_among(&pairs, &spec, cx.scenario.run.seed, i as u64)
        .map_err(|e| refused(cx, &at("load"), e))?;
    Ok(Made { saturation: limit, ..Made::of(demands).expecting(Some(expected), &sizes) })
}

/// The senders and receivers.
struct Among {
    pairs: Pairs,
    sources: Vec<NodeId>,
    destinations: Vec<NodeId>,
    /// All pairs of the two lists are equally likely.
    uniform: bool,
}

fn among(
    cx: &Context<'_>,
    topology: &Topology,
    i: usize,
    t: &Poisson,
    hosts: &mut HostSets<'_>,
) -> Result<Among, Error> {
    let at = |key: &str| format!("traffic[{i}].{key}");
    if let Some(blocks) = matrix(cx, i, t, hosts)? {
        let pairs = Pairs::matrix(&blocks).map_err(|e| {
            let inline = t.matrix.is_some() && !e.key.is_empty();
            let path = match inline {
                true => at(&format!("matrix[{}]", e.key)),
                false => at(if t.matrix.is_some() { "matrix" } else { "matrix_file" }),
            };
            refused(cx, &path, e)
        })?;
        let (sources, destinations) = pairs.ends();
        return Ok(Among { pairs, sources, destinations, uniform: false });
    }
    let sources = hosts.list(cx, &at("from"), t.from.as_ref())?;
    let destinations = hosts.list(cx, &at("to"), t.to.as_ref())?;
    if let [only] = destinations[..]
        && sources.contains(&only)
    {
        let name = hosts.name(only);
        let message = format!("{name} would send to itself: it is a sender and the only receiver");
        return Err(cx.doc.error(&at("to"), message, format!("add receivers, or remove {name} from `from`")));
    }
    let Some(locality) = &t.locality else {
        let pairs = Pairs::uniform(&sources, &destinations).map_err(|e| refused(cx, &at("from"), e))?;
        return Ok(Among { pairs, sources, destinations, uniform: true });
    };
    let given = [(Level::Rack, locality.rack), (Level::Pod, locality.pod), (Level::Dc, locality.dc)];
    let mut levels: Vec<(&str, Vec<u32>, f64)> = Vec::new();
    for (level, share) in given.into_iter().filter_map(|(level, share)| Some((level, share?))) {
        if share != 0.0 {
            let path = at(&format!("locality.{}", level.name()));
            levels.push((level.name(), hosts.groups(cx, &path, level)?.to_vec(), share));
        }
    }
    let groups: Vec<(&[u32], f64)> = levels.iter().map(|(_, of, share)| (&of[..], *share)).collect();
    let beyond = locality.other.unwrap_or(0.0);
    let pairs = Pairs::nested(topology, &sources, &destinations, &groups, beyond).map_err(|e| {
        let path = match e.key.strip_prefix("level.").map(|n| n.parse::<usize>()) {
            Some(Ok(n)) => at(&format!("locality.{}", levels.get(n).map_or("other", |l| l.0))),
            _ => at("locality"),
        };
        refused(cx, &path, e)
    })?;
    Ok(Among { pairs, sources, destinations, uniform: false })
}

/// Senders, receivers and share of a part of a traffic matrix.
type Block = (Vec<NodeId>, Vec<NodeId>, f64);

/// The traffic matrix of table `i`, if it has one.
fn matrix(
    cx: &Context<'_>,
    i: usize,
    t: &Poisson,
    hosts: &mut HostSets<'_>,
) -> Result<Option<Vec<Block>>, Error> {
    let at = |key: &str| format!("traffic[{i}].{key}");
    let key = match (&t.matrix, &t.matrix_file) {
        (None, None) => return Ok(None),
        (Some(_), None) => "matrix",
        (None, Some(_)) => "matrix_file",
        (Some(_), Some(_)) => {
            let message = "`matrix` and `matrix_file` cannot be combined";
            return Err(cx.doc.error(&at("matrix_file"), message, "remove one of the two keys"));
        }
    };
    for other in ["from", "to", "locality"] {
        if cx.doc.get(&at(other)).is_some() {
            let message = format!(
                "`{key}` and `{other}` cannot be combined: the matrix names the senders and receivers"
            );
            return Err(cx.doc.error(&at(other), message, "remove one of the two keys"));
        }
    }
    let mut blocks = Vec::new();
    for (n, entry) in t.matrix.iter().flatten().enumerate() {
        let end = |key: &str| format!("traffic[{i}].matrix[{n}].{key}");
        let from = hosts.expression(cx, &end("from"), &entry.from)?;
        let to = hosts.expression(cx, &end("to"), &entry.to)?;
        blocks.push((from, to, entry.share));
    }
    if let Some(name) = &t.matrix_file {
        let path = at("matrix_file");
        let text = cx.file(&path, name)?;
        let wrong = |line: usize, message: &str, help: &str| {
            Error::new(name, &text, Some(sizes::line_span(&text, line)), message.to_string()).with_help(help)
        };
        let form = "write the header `from,to,share` and one line per entry, such as `rack:0,rack:1,0.2`; \
                    or a square table with receivers in the header and senders in the first column";
        for entry in traffic::matrix_csv(&text).map_err(|e| wrong(e.line, &e.message, form))? {
            let mut end = |text: &str| {
                let hosts = hosts.expression(cx, &path, text);
                hosts.map_err(|e| wrong(entry.line, e.message(), e.remedy().unwrap_or(form)))
            };
            blocks.push((end(&entry.from)?, end(&entry.to)?, entry.share));
        }
    }
    Ok(Some(blocks))
}

pub(super) fn permutation(
    cx: &Context<'_>,
    i: usize,
    t: &Permutation,
    hosts: &mut HostSets<'_>,
) -> Result<Made, Error> {
    let sizes = size_or_sizes(cx, i, t.size, t.sizes.as_ref())?;
    check_start(cx, i, t.start)?;
    let path = format!("traffic[{i}].hosts");
    let hosts = hosts.list(cx, &path, t.hosts.as_ref())?;
    let demands = traffic::permutation(&hosts, &sizes, t.start.0, cx.scenario.run.seed, i as u64)
        .map_err(|e| refused(cx, &path, e))?;
    Ok(Made::of(demands).expecting(None, &sizes))
}

pub(super) fn burst(
    cx: &mut Context<'_>,
    i: usize,
    t: &Burst,
    hosts: &mut HostSets<'_>,
) -> Result<Made, Error> {
    let at = |key: &str| format!("traffic[{i}].{key}");
    let sizes = size_or_sizes(cx, i, t.size, t.sizes.as_ref())?;
    check_start(cx, i, t.start)?;
    let sources = hosts.list(cx, &at("from"), t.from.as_ref())?;
    let destinations = hosts.list(cx, &at("to"), t.to.as_ref())?;
    if t.flows == 0 {
        let help = "write a whole number, 1 or more";
        return Err(cx.doc.error(&at("flows"), "each sender needs at least one flow", help));
    }
    if t.flows == 1 && t.gap.0 > 0 {
        cx.warn(at("gap"), "had no effect: each sender has only one flow");
    }
    let count = f64::from(t.flows) * sources.len() as f64;
    check_count(cx, &at("flows"), count, "send fewer flows from each sender")?;
    let last = u128::from(t.flows - 1) * u128::from(t.gap.0) + u128::from(t.start.0);
    if let Some(duration) = cx.scenario.run.duration.filter(|d| last >= u128::from(d.0)) {
        let message = format!("the last of {} flows starts after the run ends at {duration}", t.flows);
        return Err(cx.doc.error(
            &at("gap"),
            message,
            "choose a shorter gap or fewer flows, or raise run.duration",
        ));
    }
    let spec = traffic::Burst {
        sources: &sources,
        destinations: &destinations,
        flows: t.flows,
        sizes: &sizes,
        start: t.start.0,
        gap: t.gap.0,
    };
    let demands = traffic::burst(&spec, cx.scenario.run.seed, i as u64).map_err(|e| refused_key(cx, i, e))?;
    Ok(Made::of(demands).expecting(None, &sizes))
}

pub(super) fn incast(
    cx: &mut Context<'_>,
    topology: &Topology,
    packet: &PacketFormat,
    i: usize,
    t: &Incast,
    hosts: &mut HostSets<'_>,
) -> Result<Made, Error> {
    let at = |key: &str| format!("traffic[{i}].{key}");
    let sizes = size_or_sizes(cx, i, t.size, t.sizes.as_ref())?;
    let senders = hosts.list(cx, &at("from"), t.from.as_ref())?;
    let rotate = t.to == "rotate";
    let receivers = match t.to.as_str() {
        "random" | "rotate" => hosts.list(cx, &at("receivers"), t.receivers.as_ref())?,
        name if t.receivers.is_some() => {
            let message =
                format!("`receivers` and to = \"{name}\" cannot be combined: the receiver is fixed");
            let help = "write to = \"random\" or \"rotate\", or remove `receivers`";
            return Err(cx.doc.error(&at("receivers"), message, help));
        }
        name => vec![host(cx, topology, &at("to"), name)?],
    };
    let others = senders.len() - usize::from(receivers.iter().any(|r| senders.contains(r)));
    if others == 0 {
        let name = hosts.name(senders[0]);
        let message =
            format!("no sender is left: {name} is the receiver and the only host in the list of senders");
        let key = if t.from.is_some() { "from" } else { "fan_in" };
        return Err(cx.doc.error(&at(key), message, "write other hosts in `from`, or another receiver"));
    }
    if t.fan_in == 0 || t.fan_in as usize > others {
        let message = format!("a fan-in of {} is out of range", t.fan_in);
        let help = format!("write 1 to {others}: {} hosts can send, and the receiver cannot", senders.len());
        return Err(cx.doc.error(&at("fan_in"), message, help));
    }
    if t.flows_per_sender == 0 {
        let help = "write a whole number, 1 or more, or remove the key for one flow of each sender";
        return Err(cx.doc.error(&at("flows_per_sender"), "each sender needs at least one flow", help));
    }
    let flows_per_event = f64::from(t.fan_in) * f64::from(t.flows_per_sender);
    check_count(cx, &at("flows_per_sender"), flows_per_event, "send fewer flows from each sender")?;
    let period = match t.load {
        None => t.period.map(|p| p.0),
        Some(load) => Some(period_of(cx, topology, i, t, load, &sizes, packet, (&senders, &receivers))?),
    };
    if t.load.is_none() && t.load_of.is_some() {
        cx.warn(at("load_of"), "had no effect: it requires `load`");
    }
    let until = match period {
        Some(0) => {
            return Err(cx.doc.error(
                &at("period"),
                "must be positive",
                "write a time above 0, or remove `period`",
            ));
        }
        Some(period) => {
            let (start, until) = span(cx, i, t.start.0, t.stop.map(|s| s.0), "periodic incast")?;
            let events = (until - start).div_ceil(period) as f64;
            check_count(
                cx,
                &at(if t.load.is_some() { "load" } else { "period" }),
                events * flows_per_event,
                "write a longer period or a lower load, or a smaller fan-in",
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
        rotate,
        senders: &senders,
        fan_in: t.fan_in,
        flows_per_sender: t.flows_per_sender,
        sizes: &sizes,
        first: t.start.0,
        period,
        until,
    };
    let demands =
        traffic::incast(&spec, cx.scenario.run.seed, i as u64).map_err(|e| refused_key(cx, i, e))?;
    Ok(Made::of(demands).expecting(None, &sizes))
}

/// The distance of incasts that makes their load.
#[allow(clippy::too_many_arguments)]
fn period_of(
    cx: &Context<'_>,
    topology: &Topology,
    i: usize,
    t: &Incast,
    load: f64,
    sizes: &SizeDistribution,
    packet: &PacketFormat,
    (senders, receivers): (&[NodeId], &[NodeId]),
) -> Result<Time, Error> {
    let at = |key: &str| format!("traffic[{i}].{key}");
    if t.period.is_some() {
        let message = "`load` and `period` cannot be combined";
        return Err(cx.doc.error(&at("load"), message, "remove one of the two keys"));
    }
    check_load(cx, &at("load"), load)?;
    let capacity = match t.load_of.unwrap_or_default() {
        IncastLoadOf::Receiver => host_capacity(topology, receivers) / receivers.len() as f64,
        IncastLoadOf::HostLinks => host_capacity(topology, senders),
    };
    let flows = f64::from(t.fan_in) * f64::from(t.flows_per_sender);
    let bits = 8.0 * flows * sizes::mean_wire_bytes(sizes, packet);
    // To the nearest picosecond; a float that is too large saturates.
    Ok(((bits / (load * capacity) * SECOND as f64 + 0.5) as Time).max(1))
}

/// Refuses a load that is no fraction.
fn check_load(cx: &Context<'_>, path: &str, load: f64) -> Result<(), Error> {
    if load > 0.0 && load <= 10.0 {
        return Ok(());
    }
    let message = format!("a load of {load} is out of range");
    Err(cx.doc.error(path, message, "write a number above 0, up to 10, such as 0.6 for 60%"))
}

pub(super) fn single(
    cx: &Context<'_>,
    topology: &Topology,
    i: usize,
    t: &SingleFlow,
) -> Result<Demand, Error> {
    let at = |key: &str| format!("traffic[{i}].{key}");
    let src = host(cx, topology, &at("src"), &t.src)?;
    let dst = host(cx, topology, &at("dst"), &t.dst)?;
    if src == dst {
        let message = format!("{} sends to itself", t.src);
        return Err(cx.doc.error(&at("dst"), message, "choose another receiver"));
    }
    sizes::fixed(cx, &at("size"), t.size)?;
    check_start(cx, i, t.start)?;
    Ok(Demand { src, dst, size: t.size.0, start: t.start.0 })
}

/// The nodes that `traffic[i].path` names, from one of `ends` to the other.
pub(super) fn named_path(
    cx: &Context<'_>,
    topology: &Topology,
    i: usize,
    names: &[String],
    ends: (NodeId, NodeId),
) -> Result<Vec<NodeId>, Error> {
    let path = format!("traffic[{i}].path");
    let nodes = nodes(cx, topology, &path, names)?;
    if nodes.first() != Some(&ends.0) || nodes.last() != Some(&ends.1) {
        let message = "the path does not begin at `src` and end at `dst`";
        return Err(cx.doc.error(
            &path,
            message,
            "write every node of the path: the sender first, the receiver last",
        ));
    }
    Ok(nodes)
}

/// The nodes of the list `names` at the key `path`.
fn nodes(cx: &Context<'_>, topology: &Topology, path: &str, names: &[String]) -> Result<Vec<NodeId>, Error> {
    names.iter().enumerate().map(|(i, name)| node(cx, topology, &format!("{path}[{i}]"), name)).collect()
}

/// The flows of a loop with the nodes on their paths.
pub(super) fn around(
    cx: &mut Context<'_>,
    topology: &Topology,
    i: usize,
    t: &Loop,
) -> Result<Vec<(Demand, Vec<NodeId>)>, Error> {
    let at = |key: &str| format!("traffic[{i}].{key}");
    let switches = nodes(cx, topology, &at("switches"), &t.switches)?;
    sizes::fixed(cx, &at("size"), t.size)?;
    check_start(cx, i, t.start)?;
    if t.bursts == 1 && t.period.0 > 0 {
        cx.warn(at("period"), "had no effect: there is only one burst");
    }
    let count = f64::from(t.flows) * f64::from(t.bursts) * switches.len() as f64;
    check_count(cx, &at("flows"), count, "send fewer flows from each switch")?;
    let offsets: Vec<Time> = t.offsets.iter().flatten().map(|o| o.0).collect();
    let latest = offsets.iter().copied().max().unwrap_or(0);
    let last = u128::from(t.bursts.saturating_sub(1)) * u128::from(t.period.0)
        + u128::from(t.start.0)
        + u128::from(latest);
    if let Some(duration) = cx.scenario.run.duration.filter(|d| last >= u128::from(d.0)) {
        let key = if t.bursts > 1 { at("period") } else { at("offsets") };
        let message = format!("the last flows start after the run ends at {duration}");
        return Err(cx.doc.error(&key, message, "start them earlier, or raise run.duration"));
    }
    let spec = traffic::Around {
        switches: &switches,
        hops: t.hops,
        flows: t.flows,
        size: t.size.0,
        start: t.start.0,
        offsets: &offsets,
        bursts: t.bursts,
        period: t.period.0,
    };
    traffic::around(topology, &spec).map_err(|e| refused_key(cx, i, e))
}

pub(super) fn from_file(
    cx: &mut Context<'_>,
    topology: &Topology,
    i: usize,
    t: &FlowFile,
    listed: Option<Vec<(Demand, u8)>>,
) -> Result<(Vec<Demand>, Vec<u8>), Error> {
    let path = format!("traffic[{i}].file");
    let (mut demands, priorities): (Vec<Demand>, Vec<u8>) = match listed {
        Some(flows) => {
            for key in ["priority", "priorities"].map(|key| format!("traffic[{i}].{key}")) {
                if cx.doc.get(&key).is_some() {
                    cx.warn(key, "had no effect: the file gives each flow a priority");
                }
            }
            flows.into_iter().unzip()
        }
        None => {
            let text = cx.file(&path, &t.file)?;
            let demands = traffic::flows_csv(&text, topology).map_err(|e| {
                let help = "write the header `src,dst,bytes,start` and one line per flow, such as `H0,H1,1000000,10us`";
                Error::new(&t.file, &text, Some(sizes::line_span(&text, e.line)), e.message).with_help(help)
            })?;
            (demands, Vec::new())
        }
    };
    let all = demands.len();
    // In the order of time: the last ones are left out.
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
