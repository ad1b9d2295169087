//! Flows by chance, by the clock, and as a list.

use super::super::routes::{Routes, unroutable};
use super::super::{LAST, node, sizes};
use super::{Made, Table};
use crate::error::Error;
use crate::scenario::{
    Burst, FlowFile, Incast, IncastLoadOf, LoadOf, Loop, Permutation, Poisson, SingleFlow,
};
use xoff_kernel::time::{SECOND, Time};
use xoff_net::routing::{host_capacity, saturation, uniform};
use xoff_net::sizes::SizeDistribution;
use xoff_net::topology::NodeId;
use xoff_net::traffic::{self, Demand, Level, Order, Pairs};
use xoff_net::units::Span;

pub(super) fn poisson(table: &mut Table<'_, '_>, t: &Poisson, routes: &mut Routes) -> Result<Made, Error> {
    check_load(table, t.load)?;
    let sizes = sizes::distribution(table.cx, &table.at("sizes"), &t.sizes)?;
    let stop = t.stop.or(t.flows.map(|_| Span(LAST)));
    let (start, until) = table.span(t.start, stop, "Poisson traffic")?;
    let most = t.flows.unwrap_or(u64::MAX);
    if most == 0 {
        return table.refuse("flows", "flows = 0 sends no traffic", "write 1 or more, or remove the table");
    }
    let Among { pairs, sources, destinations, uniform: even } = among(table, t)?;
    let mut limit = None;
    let capacity = match t.load_of {
        LoadOf::HostLinks => host_capacity(table.topology, &sources),
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
            limit = found.map_err(|e| unroutable(table.cx, table.i, &e))?;
            limit.map_or(0.0, |s| s.rate)
        }
    };
    let rate = t.load * capacity / (8.0 * sizes::mean_wire_bytes(&sizes, table.packet));
    let expected = (rate * (until - start) as f64 / SECOND as f64).min(most as f64);
    table.check_count("load", expected, "lower the load or the duration, or send larger flows")?;
    let spec = traffic::Arrivals { sizes: &sizes, rate, from: start, until, most };
    let demands = traffic::poisson_among(&pairs, &spec, table.seed(), table.element())
        .map_err(|e| table.refused("load", e))?;
    Ok(Made { saturation: limit, ..Made::of(demands).expecting(Some(expected), &sizes) })
}

struct Among {
    pairs: Pairs,
    sources: Vec<NodeId>,
    destinations: Vec<NodeId>,
    /// All pairs of the two lists are equally likely.
    uniform: bool,
}

fn among(table: &mut Table<'_, '_>, t: &Poisson) -> Result<Among, Error> {
    if let Some(blocks) = matrix(table, t)? {
        let pairs = Pairs::matrix(&blocks).map_err(|e| match t.matrix {
            Some(_) if !e.key.is_empty() => table.refused(&format!("matrix[{}]", e.key), e),
            Some(_) => table.refused("matrix", e),
            None => table.refused("matrix_file", e),
        })?;
        let (sources, destinations) = pairs.ends();
        return Ok(Among { pairs, sources, destinations, uniform: false });
    }
    let sources = table.list("from", t.from.as_ref())?;
    let destinations = table.list("to", t.to.as_ref())?;
    if let [only] = destinations[..]
        && sources.contains(&only)
    {
        let name = table.hosts.name(only);
        let message = format!("{name} would send to itself: it is a sender and the only receiver");
        return table.refuse("to", message, format!("add receivers, or remove {name} from `from`"));
    }
    let Some(locality) = &t.locality else {
        let pairs = Pairs::uniform(&sources, &destinations).map_err(|e| table.refused("from", e))?;
        return Ok(Among { pairs, sources, destinations, uniform: true });
    };
    let given = [(Level::Rack, locality.rack), (Level::Pod, locality.pod), (Level::Dc, locality.dc)];
    let mut levels: Vec<(&str, Vec<u32>, f64)> = Vec::new();
    for (level, share) in given.into_iter().filter_map(|(level, share)| Some((level, share?))) {
        if share != 0.0 {
            let path = table.at(&format!("locality.{}", level.name()));
            levels.push((level.name(), table.hosts.groups(table.cx, &path, level)?.to_vec(), share));
        }
    }
    let groups: Vec<(&[u32], f64)> = levels.iter().map(|(_, of, share)| (&of[..], *share)).collect();
    let beyond = locality.other.unwrap_or(0.0);
    let pairs = Pairs::nested(table.topology, &sources, &destinations, &groups, beyond).map_err(|e| {
        let key = match e.key.strip_prefix("level.").map(|n| n.parse::<usize>()) {
            Some(Ok(n)) => format!("locality.{}", levels.get(n).map_or("other", |l| l.0)),
            _ => "locality".to_string(),
        };
        table.refused(&key, e)
    })?;
    Ok(Among { pairs, sources, destinations, uniform: false })
}

/// Senders, receivers and share of a part of a traffic matrix.
type Block = (Vec<NodeId>, Vec<NodeId>, f64);

/// The traffic matrix of the table, if it has one.
fn matrix(table: &mut Table<'_, '_>, t: &Poisson) -> Result<Option<Vec<Block>>, Error> {
    let key = match (&t.matrix, &t.matrix_file) {
        (None, None) => return Ok(None),
        (Some(_), None) => "matrix",
        (None, Some(_)) => "matrix_file",
        (Some(_), Some(_)) => {
            let message = "`matrix` and `matrix_file` cannot be combined";
            return table.refuse("matrix_file", message, "remove one of the two keys");
        }
    };
    for other in ["from", "to", "locality"] {
        if table.cx.doc.get(&table.at(other)).is_some() {
            let message = format!(
                "`{key}` and `{other}` cannot be combined: the matrix names the senders and receivers"
            );
            return table.refuse(other, message, "remove one of the two keys");
        }
    }
    let mut blocks = Vec::new();
    for (n, entry) in t.matrix.iter().flatten().enumerate() {
        let [from, to] = ["from", "to"].map(|key| table.at(&format!("matrix[{n}].{key}")));
        let from = table.hosts.expression(table.cx, &from, &entry.from)?;
        blocks.push((from, table.hosts.expression(table.cx, &to, &entry.to)?, entry.share));
    }
    if let Some(name) = &t.matrix_file {
        let path = table.at("matrix_file");
        let text = table.cx.file(&path, name)?;
        let wrong = |line: usize, message: &str, help: &str| {
            Error::in_line(name, &text, line, message.to_string()).with_help(help)
        };
        let form = "write the header `from,to,share` and one line per entry, such as `rack:0,rack:1,0.2`; \
                    or a square table with receivers in the header and senders in the first column";
        for entry in traffic::matrix_csv(&text).map_err(|e| wrong(e.line, &e.message, form))? {
            let mut end = |text: &str| {
                let hosts = table.hosts.expression(table.cx, &path, text);
                hosts.map_err(|e| wrong(entry.line, e.message(), e.remedy().unwrap_or(form)))
            };
            blocks.push((end(&entry.from)?, end(&entry.to)?, entry.share));
        }
    }
    Ok(Some(blocks))
}

pub(super) fn permutation(table: &mut Table<'_, '_>, t: &Permutation) -> Result<Made, Error> {
    let sizes = table.sizes(t.size, t.sizes.as_ref())?;
    table.check_start(t.start)?;
    let hosts = table.list("hosts", t.hosts.as_ref())?;
    let demands = traffic::permutation(&hosts, &sizes, t.start.0, table.seed(), table.element())
        .map_err(|e| table.refused("hosts", e))?;
    Ok(Made::of(demands).expecting(None, &sizes))
}

pub(super) fn burst(table: &mut Table<'_, '_>, t: &Burst) -> Result<Made, Error> {
    let sizes = table.sizes(t.size, t.sizes.as_ref())?;
    table.check_start(t.start)?;
    let sources = table.list("from", t.from.as_ref())?;
    let destinations = table.list("to", t.to.as_ref())?;
    if t.flows == 0 {
        let help = "write a whole number, 1 or more";
        return table.refuse("flows", "each sender needs at least one flow", help);
    }
    if t.flows == 1 && t.gap.0 > 0 {
        table.warn("gap", "had no effect: each sender has only one flow");
    }
    let count = f64::from(t.flows) * sources.len() as f64;
    table.check_count("flows", count, "send fewer flows from each sender")?;
    let last = u128::from(t.flows - 1) * u128::from(t.gap.0) + u128::from(t.start.0);
    if let Some(duration) = table.duration().filter(|d| last >= u128::from(d.0)) {
        let message = format!("the last of {} flows starts after the run ends at {duration}", t.flows);
        return table.refuse("gap", message, "choose a shorter gap or fewer flows, or raise run.duration");
    }
    let spec = traffic::Burst {
        sources: &sources,
        destinations: &destinations,
        flows: t.flows,
        sizes: &sizes,
        start: t.start.0,
        gap: t.gap.0,
    };
    let demands = traffic::burst(&spec, table.seed(), table.element()).map_err(|e| table.refused_key(e))?;
    Ok(Made::of(demands).expecting(None, &sizes))
}

pub(super) fn incast(table: &mut Table<'_, '_>, t: &Incast) -> Result<Made, Error> {
    let sizes = table.sizes(t.size, t.sizes.as_ref())?;
    let senders = table.list("from", t.from.as_ref())?;
    let order = match t.to.as_str() {
        "rotate" => Order::Rotate,
        "fixed" => Order::Once,
        _ => Order::Random,
    };
    let receivers = match t.to.as_str() {
        "random" | "fixed" | "rotate" => table.list("receivers", t.receivers.as_ref())?,
        name if t.receivers.is_some() => {
            let message =
                format!("`receivers` and to = \"{name}\" cannot be combined: the receiver is fixed");
            let help = "write to = \"random\", \"fixed\" or \"rotate\", or remove `receivers`";
            return table.refuse("receivers", message, help);
        }
        name => vec![table.host("to", name)?],
    };
    let others = senders.len() - usize::from(receivers.iter().any(|r| senders.contains(r)));
    if others == 0 {
        let name = table.hosts.name(senders[0]);
        let message =
            format!("no sender is left: {name} is the receiver and the only host in the list of senders");
        let key = if t.from.is_some() { "from" } else { "fan_in" };
        return table.refuse(key, message, "write other hosts in `from`, or another receiver");
    }
    if t.fan_in == 0 || t.fan_in as usize > others {
        let help = format!("write 1 to {others}: {} hosts can send, and the receiver cannot", senders.len());
        return table.refuse("fan_in", format!("a fan-in of {} is out of range", t.fan_in), help);
    }
    if t.flows_per_sender == 0 {
        let help = "write a whole number, 1 or more, or remove the key for one flow of each sender";
        return table.refuse("flows_per_sender", "each sender needs at least one flow", help);
    }
    let flows_per_event = f64::from(t.fan_in) * f64::from(t.flows_per_sender);
    table.check_count("flows_per_sender", flows_per_event, "send fewer flows from each sender")?;
    let period = match t.load {
        None => t.period.map(|p| p.0),
        Some(load) => Some(period_of(table, t, load, &sizes, &senders, &receivers)?),
    };
    if t.load.is_none() && t.load_of.is_some() {
        table.warn("load_of", "had no effect: it requires `load`");
    }
    let until = match period {
        Some(0) => {
            return table.refuse("period", "must be positive", "write a time above 0, or remove `period`");
        }
        Some(period) => {
            let (start, until) = table.span(t.start, t.stop, "periodic incast")?;
            let flows = (until - start).div_ceil(period) as f64 * flows_per_event;
            let key = if t.load.is_some() { "load" } else { "period" };
            table.check_count(key, flows, "write a longer period or a lower load, or a smaller fan-in")?;
            until
        }
        None => match (t.stop, table.duration()) {
            (None, None) => Time::MAX,
            _ => table.span(t.start, t.stop, "incast")?.1,
        },
    };
    let spec = traffic::Incast {
        receivers: &receivers,
        order,
        senders: &senders,
        fan_in: t.fan_in,
        flows_per_sender: t.flows_per_sender,
        sizes: &sizes,
        first: t.start.0,
        period,
        until,
    };
    let demands = traffic::incast(&spec, table.seed(), table.element()).map_err(|e| table.refused_key(e))?;
    Ok(Made::of(demands).expecting(None, &sizes))
}

/// The distance of incasts that makes their load.
fn period_of(
    table: &Table<'_, '_>,
    t: &Incast,
    load: f64,
    sizes: &SizeDistribution,
    senders: &[NodeId],
    receivers: &[NodeId],
) -> Result<Time, Error> {
    if t.period.is_some() {
        return table.refuse("load", "`load` and `period` cannot be combined", "remove one of the two keys");
    }
    check_load(table, load)?;
    let capacity = match t.load_of.unwrap_or_default() {
        IncastLoadOf::Receiver => host_capacity(table.topology, receivers) / receivers.len() as f64,
        IncastLoadOf::HostLinks => host_capacity(table.topology, senders),
    };
    let flows = f64::from(t.fan_in) * f64::from(t.flows_per_sender);
    let bits = 8.0 * flows * sizes::mean_wire_bytes(sizes, table.packet);
    // To the nearest picosecond; a float that is too large saturates.
    Ok(((bits / (load * capacity) * SECOND as f64 + 0.5) as Time).max(1))
}

/// Refuses a load that is no fraction.
fn check_load(table: &Table<'_, '_>, load: f64) -> Result<(), Error> {
    if load > 0.0 && load <= 10.0 {
        return Ok(());
    }
    let message = format!("a load of {load} is out of range");
    table.refuse("load", message, "write a number above 0, up to 10, such as 0.6 for 60%")
}

pub(super) fn single(table: &Table<'_, '_>, t: &SingleFlow) -> Result<Demand, Error> {
    let (src, dst) = (table.host("src", &t.src)?, table.host("dst", &t.dst)?);
    if src == dst {
        return table.refuse("dst", format!("{} sends to itself", t.src), "choose another receiver");
    }
    sizes::fixed(table.cx, &table.at("size"), t.size)?;
    table.check_start(t.start)?;
    Ok(Demand { src, dst, size: t.size.0, start: t.start.0 })
}

/// The nodes that `path` names, from one of `ends` to the other.
pub(super) fn named_path(
    table: &Table<'_, '_>,
    names: &[String],
    ends: (NodeId, NodeId),
) -> Result<Vec<NodeId>, Error> {
    let nodes = nodes(table, "path", names)?;
    if nodes.first() != Some(&ends.0) || nodes.last() != Some(&ends.1) {
        let help = "write every node of the path: the sender first, the receiver last";
        return table.refuse("path", "the path does not begin at `src` and end at `dst`", help);
    }
    Ok(nodes)
}

/// The nodes of the list `names` at `key`.
fn nodes(table: &Table<'_, '_>, key: &str, names: &[String]) -> Result<Vec<NodeId>, Error> {
    let of =
        |(i, name): (usize, &String)| node(table.cx, table.topology, &table.at(&format!("{key}[{i}]")), name);
    names.iter().enumerate().map(of).collect()
}

/// The flows of a loop with the nodes on their paths.
pub(super) fn around(table: &mut Table<'_, '_>, t: &Loop) -> Result<Vec<(Demand, Vec<NodeId>)>, Error> {
    let switches = nodes(table, "switches", &t.switches)?;
    sizes::fixed(table.cx, &table.at("size"), t.size)?;
    table.check_start(t.start)?;
    if t.bursts == 1 && t.period.0 > 0 {
        table.warn("period", "had no effect: there is only one burst");
    }
    let count = f64::from(t.flows) * f64::from(t.bursts) * switches.len() as f64;
    table.check_count("flows", count, "send fewer flows from each switch")?;
    let offsets: Vec<Time> = t.offsets.iter().flatten().map(|o| o.0).collect();
    let latest = offsets.iter().copied().max().unwrap_or(0);
    let last = u128::from(t.bursts.saturating_sub(1)) * u128::from(t.period.0)
        + u128::from(t.start.0)
        + u128::from(latest);
    if let Some(duration) = table.duration().filter(|d| last >= u128::from(d.0)) {
        let key = if t.bursts > 1 { "period" } else { "offsets" };
        let message = format!("the last flows start after the run ends at {duration}");
        return table.refuse(key, message, "start them earlier, or raise run.duration");
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
    traffic::around(table.topology, &spec).map_err(|e| table.refused_key(e))
}

/// The flows of a file; `listed` are those whose file has their priorities, which was read before.
pub(super) fn from_file(
    table: &mut Table<'_, '_>,
    t: &FlowFile,
    listed: Option<Vec<(Demand, u8)>>,
) -> Result<Made, Error> {
    let (mut demands, priorities): (Vec<Demand>, Vec<u8>) = match listed {
        Some(flows) => {
            for key in ["priority", "priorities"] {
                if table.cx.doc.get(&table.at(key)).is_some() {
                    table.warn(key, "had no effect: the file gives each flow a priority");
                }
            }
            flows.into_iter().unzip()
        }
        None => {
            let text = table.cx.file(&table.at("file"), &t.file)?;
            let demands = traffic::flows_csv(&text, table.topology).map_err(|e| {
                let help = "write the header `src,dst,bytes,start` and one line per flow, such as `H0,H1,1000000,10us`";
                Error::in_line(&t.file, &text, e.line, e.message).with_help(help)
            })?;
            (demands, Vec::new())
        }
    };
    let all = demands.len();
    // In the order of time: the last ones are left out.
    if let Some(duration) = table.duration() {
        demands.retain(|d| d.start < duration.0);
    }
    if demands.len() < all {
        let late = all - demands.len();
        table.warn("file", &format!("{late} of its {all} flows start after run.duration and are left out"));
    }
    Ok(Made { priorities, ..Made::of(demands) })
}
