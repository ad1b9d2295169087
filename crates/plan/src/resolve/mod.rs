//! From a scenario to a plan. This module resolves every quantity, and finds the errors of the scenario as a
//! whole, before anything runs.

mod ate;
mod balancing;
mod channels;
pub(crate) mod congestion;
mod detours;
mod effects;
mod faults;
mod files;
mod flow_control;
mod lanes;
mod link_layer;
mod liveness;
mod measure;
mod memory;
mod offered;
mod pods;
mod reroute;
mod routes;
mod sizes;
mod transport;

use crate::Expected;
use crate::document::Document;
use crate::error::{Error, Warning};
use crate::ideal;
use crate::known::Known;
use crate::names::{self, extent};
use crate::plan::{Account, Faults, Flow, PacketFormat, Plan, Receiver};
use crate::scenario::{LoadOf, Scenario, Traffic, defaults};
use routes::Routes;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::Path;
use xoff_kernel::time::Time;
use xoff_net::routing::{Router, Saturation};
use xoff_net::topology::{LinkSpec, NodeId, NodeKind, PortId, Topology};
use xoff_net::units::{Bandwidth, Bytes, Span};
use xoff_schemes::flow_control::fabric::{Fabric, UNBOUNDED};
use xoff_schemes::flow_control::keys::{
    LARGEST, LARGEST_ALLOWED, LAST, LONGEST, MEMORY, SHORTEST_TIMER, bytes,
};

/// Fastest link: 1 Pbit/s. Within these two all sums of bytes fit 64 bits.
const FASTEST: u64 = 1_000_000_000_000_000;
/// Flows that are worked on between two questions whether to go on.
const FLOWS: usize = 1024;

/// The input of every part of the work, and its warnings.
struct Context<'s> {
    doc: &'s Document<'s>,
    scenario: &'s Scenario,
    files: &'s dyn Fn(&Path) -> io::Result<Vec<u8>>,
    goes_on: &'s dyn Fn(u64) -> Result<(), String>,
    packet: PacketFormat,
    /// Priorities of data, when they are known.
    data: Vec<u8>,
    /// By port, when they are known: see [`Setting::retries`](xoff_schemes::flow_control::keys::Setting::retries).
    retries: Vec<u64>,
    warnings: Vec<Warning>,
}

impl Context<'_> {
    fn warn(&mut self, key: impl Into<String>, message: impl Into<String>) {
        self.warnings.push(Warning { key: key.into(), message: message.into() });
    }

    /// Warns of every key of `table`, which has no effect.
    fn warn_of_table(&mut self, table: &str, why: impl fmt::Display) {
        for key in self.doc.keys(table) {
            self.warn(format!("{table}.{key}"), format!("had no effect: {why}"));
        }
    }

    fn refuse<T>(&self, key: &str, message: impl Into<String>, help: impl Into<String>) -> Result<T, Error> {
        Err(self.doc.error(key, message, help))
    }

    fn out_of_range<T>(
        &self,
        table: &str,
        key: &str,
        value: impl fmt::Display,
        help: impl Into<String>,
    ) -> Result<T, Error> {
        self.refuse(&format!("{table}.{key}"), format!("{key} = {value} is out of range"), help)
    }

    fn at_most<Q: PartialOrd + fmt::Display>(&self, key: &str, value: Q, most: Q) -> Result<(), Error> {
        if value <= most {
            return Ok(());
        }
        self.refuse(key, format!("{value} is out of range"), format!("the maximum is {most}"))
    }

    /// Asks the caller whether to go on, with a step that needs `bytes` more at least.
    fn go_on(&self, bytes: u64) -> Result<(), Error> {
        (self.goes_on)(bytes).map_err(|why| self.doc.error("", why, ""))
    }

    /// The same for the work on flow `i`, once for each [`FLOWS`].
    fn go_on_at(&self, i: usize) -> Result<(), Error> {
        if i.is_multiple_of(FLOWS) { self.go_on(0) } else { Ok(()) }
    }

    /// Refuses what needs more than [`MEMORY`], or more than the caller has.
    fn fits(&self, key: &str, need: u64, what: impl fmt::Display, advice: &str) -> Result<(), Error> {
        if need <= MEMORY {
            return self.go_on(need);
        }
        let help = format!("the maximum is {} GiB: {advice}", MEMORY >> 30);
        self.refuse(key, format!("{what} would need {} GiB", need >> 30), help)
    }

    /// The contents of a file that the scenario names at `path`.
    fn bytes(&self, path: &str, name: &str) -> Result<Vec<u8>, Error> {
        let help = "paths are relative to the scenario file";
        (self.files)(Path::new(name))
            .map_err(|e| self.doc.error(path, format!("cannot read `{name}`: {e}"), help))
    }

    /// The same of a text.
    fn file(&self, path: &str, name: &str) -> Result<String, Error> {
        let bytes = self.bytes(path, name)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| self.doc.error(path, format!("`{name}` is not a text file"), "check the path"))?;
        // Spreadsheets begin their files with a byte order mark.
        Ok(text.strip_prefix('\u{feff}').map(str::to_string).unwrap_or(text))
    }
}

pub(crate) struct Built {
    pub(crate) plan: Plan,
    pub(crate) saturation: Vec<Option<Saturation>>,
    pub(crate) expected: Vec<Option<Expected>>,
    pub(crate) router: Router,
    pub(crate) warnings: Vec<Warning>,
}

pub(crate) fn plan(
    doc: &Document<'_>,
    scenario: &Scenario,
    files: &dyn Fn(&Path) -> io::Result<Vec<u8>>,
    goes_on: &dyn Fn(u64) -> Result<(), String>,
    mut known: Option<&mut Known>,
) -> Result<Built, Error> {
    let packet = PacketFormat { mtu: 0, header: 0, ack: 0 };
    let (data, retries, warnings) = Default::default();
    let mut cx = Context { doc, scenario, files, goes_on, packet, data, retries, warnings };
    pods::check(&mut cx)?;
    let end = end(&mut cx)?;
    let packet = self::packet(&cx)?;
    cx.packet = packet;
    cx.ask(|keys, cx| {
        keys.pfc().map_or(Ok(()), |pfc| pfc.check_values(cx))?;
        keys.check(cx)
    })?;
    let mut topology = files::topology(&mut cx, known.as_deref_mut())?;
    cx.go_on(0)?;
    cx.ask(|keys, _| keys.extend(&mut topology))?;
    check_links(&cx, &topology)?;
    cx.ask(|keys, cx| keys.check_topology(cx, &topology))?;
    let balancing_rule = balancing::rule(&mut cx, &topology)?;
    let listed = files::flows(&mut cx, &topology)?;
    let mut used = used_priorities(&mut cx, &listed)?;
    let tags = flow_control::tags(&mut cx, &topology, &listed, end, &mut used)?;
    let channels = channels::read(&mut cx, &topology, &mut used)?;
    let lanes = lanes::build(&mut cx, &used, tags.as_ref(), channels.as_ref())?;
    check_memory(&cx, topology.ports.len() as u64 * lanes.len() as u64)?;
    flow_control::check_queues(&cx, &topology, lanes.len())?;
    check_distances(&cx, &topology)?;
    let link_layer = link_layer::read(&mut cx, &topology)?;
    cx.retries = link_layer.iter().flat_map(|params| params.retries()).collect();
    let (mut buffers, mut accounts) = memory::build(&mut cx, &topology, &lanes)?;
    cx.ask(|keys, cx| {
        keys.check_links(cx, &topology, &lanes)?;
        keys.warn_of_unused(cx, &topology);
        Ok(())
    })?;
    memory::warn_of_overcommitment(&mut cx, &topology, lanes.len(), &buffers, &accounts);
    let mut measure = measure::ports_and_interval(&cx, &topology)?;
    let slow = slow_receivers(&cx, &topology)?;
    let mut routes = Routes::new(&cx, &topology, &slow)?;
    if let Some(known) = &known {
        known.teach(&mut routes.router);
    }
    let offers = offered::generate(&mut cx, &topology, &mut routes, listed)?;
    let lane_of = |priority: u8| lanes.iter().position(|l| l.priority == priority).expect("in use") as u8;
    let mut flows = routes.flows(&mut cx, &topology, &offers, &lane_of)?;
    let routed = Routed { topology: &topology, routes: &routes, flows: &flows };
    let (transport, windows) = transport::build(&mut cx, &routed)?;
    let congestion_control = congestion::build(&mut cx, &routed, &lane_of)?;
    measure::flows(&mut cx, &mut measure, flows.len())?;
    let faults = faults::read(&mut cx, &topology, end)?;
    let timeline = reroute::timeline(&faults, end);
    let laying =
        balancing::Laying { topology: &topology, offers: &offers, lanes: &lanes, timeline: &timeline };
    let (mut load_balancing, laid) =
        balancing::lay(&mut cx, balancing_rule, &laying, &mut routes, &mut flows)?;
    let laid = (laid, &mut load_balancing);
    let planned = reroute::plan(&cx, &topology, &mut routes, &offers, &mut flows, &timeline, laid)?;
    let routed = Routed { topology: &topology, routes: &routes, flows: &flows };
    congestion::check_hops(&cx, &congestion_control, &routed, &load_balancing, &planned)?;
    faults::warn_of_unused(&mut cx, topology.ports.len(), &faults, &routes.hops);
    measure::check_samples(&cx, &measure, end.unwrap_or(routes.end))?;
    for (i, s) in scenario.slow_receiver.iter().enumerate() {
        let host = topology.find(&s.host).expect("checked above");
        if !flows.iter().any(|f| f.src == host || f.dst == host) {
            cx.warn(format!("slow_receiver[{i}]"), format!("had no effect: no flow goes to {}", s.host));
        }
    }
    effects::warn(&mut cx, &topology, &slow, &buffers, &lanes);
    let inner = 2 * slow.len();
    let laid =
        channels::Laid { hops: &routes.hops, flows: &flows, balancing: &load_balancing, faults: &planned };
    let channels = match channels {
        Some(channels) => Some(channels::lay(&cx, &topology, &channels, &lanes, inner, &laid)?),
        None => None,
    };
    let ate = routes.choices.take().map(|choices| choices.plan(&mut cx));
    let detours = detours::detours(&cx, &topology, &mut routes, &planned)?;
    let hops = routes.hops;
    let receivers: Vec<Receiver> = slow.values().map(|s| s.receiver.clone()).collect();
    for s in slow.values() {
        let spec = LinkSpec { rate: Bandwidth(s.rate), delay: Span(0) };
        let (rx, _) = topology.link(s.receiver.host, s.receiver.host, spec);
        assert_eq!(rx, s.receiver.rx, "inner ports follow the scenario's own, in the order of hosts");
        accounts.extend(std::iter::repeat_n(UNBOUNDED, 2 * lanes.len()));
    }
    buffers.shrink_to_fit();
    let flow_control = {
        let routes = flow_control::routes(&hops, &flows, &planned);
        let receivers: Vec<_> = receivers.iter().map(|r| (r.host, r.rx)).collect();
        let fabric = Fabric {
            topology: &topology,
            lanes: &lanes,
            buffers: &buffers,
            receivers: &receivers,
            routes: &routes,
            fails: !planned.down.is_empty(),
            loses: !planned.losses.is_empty(),
            last_end: last_end(&slow, &planned),
            tags,
        };
        cx.ask(|keys, cx| keys.params(cx, fabric))?
    };
    let pods = pods::build(&mut cx, &topology, end)?;
    effects::late_frames(&mut cx, flow_control.traits().response_time, end);
    let plan = Plan {
        seed: scenario.run.seed,
        topology,
        lanes,
        buffers,
        accounts,
        classes: offers.classes,
        gates: offers.gates,
        jobs: (0..).zip(offers.jobs).filter_map(|(class, job)| job.job(class)).collect(),
        flows,
        hops,
        load_balancing,
        channels,
        packet,
        flow_control,
        link_layer: link_layer.map(|mut params| {
            params.ports.extend(std::iter::repeat_n(None, inner));
            params
        }),
        transport,
        windows,
        congestion_control,
        receivers,
        end,
        measure,
        faults: planned,
        detours,
        ate,
        arbiter: transport::arbiter(&cx)?,
        pods,
    };
    liveness::check(&mut cx, &plan)?;
    if let Some(known) = known {
        known.keep(&routes.router);
    }
    Ok(Built {
        plan,
        saturation: offers.saturation,
        expected: offers.expected,
        router: routes.router,
        warnings: cx.warnings,
    })
}

fn end(cx: &mut Context<'_>) -> Result<Option<Time>, Error> {
    let run = cx.scenario.run;
    let Some(duration) = run.duration else {
        if run.drain.0 > 0 {
            let message = "had no effect: without run.duration the run ends when every flow has completed";
            cx.warn("run.drain", message);
        }
        return Ok(None);
    };
    if duration.0 == 0 {
        return cx.refuse("run.duration", "must be positive", "write a time above 0, such as \"10ms\"");
    }
    for (key, span) in [("run.duration", duration), ("run.drain", run.drain)] {
        cx.at_most(key, span, Span(LAST / 2))?;
    }
    let end = duration.0 + run.drain.0;
    Ok(Some(end))
}

fn packet(cx: &Context<'_>) -> Result<PacketFormat, Error> {
    let t = &cx.scenario.transport;
    let within = |key: &str, value: Bytes, least: u64, most: u64| {
        if (least..=most).contains(&value.0) {
            return Ok(value.0 as u32);
        }
        cx.out_of_range("transport", key, value, format!("write {least}B to {most}B"))
    };
    let telemetry = cx.telemetry()?;
    Ok(PacketFormat {
        mtu: within("mtu", t.mtu, 1, 65_535)?,
        header: within("header", t.header, 0, 10_000)? + telemetry,
        ack: within("ack", t.ack, 1, 10_000)? + telemetry,
    })
}

/// Priorities of data and ACKs, in descending order.
fn used_priorities(cx: &mut Context<'_>, listed: &files::Listed) -> Result<Vec<u8>, Error> {
    let mut used = Vec::new();
    for (i, t) in cx.scenario.traffic.iter().enumerate() {
        match listed.get(&i) {
            Some(flows) => {
                lanes::check_priority(cx, &format!("traffic[{i}].priority"), t.priority())?;
                used.extend(flows.iter().map(|(_, priority)| priority));
            }
            None => used.extend(offered::priorities(cx, i, t)?.into_iter().map(|(priority, _)| priority)),
        }
    }
    if let Some(p) = cx.scenario.transport.ack_priority {
        lanes::check_priority(cx, "transport.ack_priority", p)?;
    }
    if cx.scenario.traffic.is_empty() {
        used.push(defaults::priority());
    }
    cx.data.clone_from(&used);
    cx.ask(|keys, cx| keys.check_priorities(cx, cx.data))?;
    used.extend(cx.ack_priority());
    used.extend(cx.scenario.flow_control.brings_priority());
    let notified = cx.scenario.congestion.notification_priority(cx.scenario.transport.congestion_control);
    used.extend(notified.map_err(|c| cx.located(c))?.map(|(priority, _)| priority));
    used.sort_unstable_by(|a, b| b.cmp(a));
    used.dedup();
    Ok(used)
}

/// Returns an error for links outside the range of the arithmetic or of real networks.
fn check_links(cx: &Context<'_>, topology: &Topology) -> Result<(), Error> {
    let beyond = |p: &xoff_net::topology::Port| p.delay > LONGEST || p.rate > FASTEST;
    let Some(port) = topology.ports.iter().position(beyond) else { return Ok(()) };
    let (name, p) = (topology.port_name(port as PortId), &topology.ports[port]);
    let message = format!("the link of {name} ({}, {}) is out of range", Bandwidth(p.rate), Span(p.delay));
    cx.refuse("topology", message, format!("a link has at most {} and {}", Bandwidth(FASTEST), Span(LONGEST)))
}

fn check_memory(cx: &Context<'_>, accounts: u64) -> Result<(), Error> {
    let each = (size_of::<Account>() + 5 * size_of::<(&str, u64)>()) as u64;
    let what = format_args!("{accounts} ingress accounts");
    let advice = "choose a smaller network or fewer priorities";
    cx.fits("topology", accounts.saturating_mul(each), what, advice)
}

/// Returns an error for traffic to every host of a network whose tables of distances do not fit: one for each
/// switch with hosts (or host at several of them), with an entry of 4 B for each node. An NDC needs none,
/// because its addresses determine the distances.
fn check_distances(cx: &Context<'_>, topology: &Topology) -> Result<(), Error> {
    let to_all = cx.scenario.traffic.iter().any(|t| match t {
        Traffic::Poisson(t) => {
            let some = t.to.is_some() || t.matrix.is_some() || t.matrix_file.is_some();
            !some && t.load_of == LoadOf::Saturation
        }
        Traffic::Permutation(t) => t.hosts.is_none(),
        Traffic::AllToAll(t) => t.hosts.is_none(),
        Traffic::RingAllReduce(t) => t.hosts.is_none(),
        Traffic::ParameterServer(t) => t.workers.is_none(),
        Traffic::Moe(t) => t.hosts.is_none(),
        Traffic::TrainingStep(t) => t.hosts.is_none(),
        Traffic::Trace(t) => t.hosts.is_none(),
        Traffic::Probe(t) => t.to.is_none(),
        Traffic::Burst(t) => t.to.is_none(),
        Traffic::Incast(_) | Traffic::Flow(_) | Traffic::Flows(_) | Traffic::Loop(_) => false,
    });
    if topology.cube.is_some() || !to_all {
        return Ok(());
    }
    let root = |host: NodeId| {
        let mut near = topology.nodes[host as usize].ports.iter().map(|&p| topology.neighbour(p));
        let first = near.next()?;
        Some(if near.all(|n| n == first) { first } else { host })
    };
    let roots: BTreeSet<NodeId> = topology.hosts().filter_map(root).collect();
    let need = (roots.len() as u64).saturating_mul(topology.nodes.len() as u64 * 4);
    let what = format_args!("the routes from {} nodes to {} destinations", topology.nodes.len(), roots.len());
    cx.fits("topology", need, what, "choose a smaller network")
}

fn node(cx: &Context<'_>, topology: &Topology, path: &str, name: &str) -> Result<NodeId, Error> {
    names::node(topology, name).map_err(|e| cx.doc.error(path, e.message, e.help))
}

fn host(cx: &Context<'_>, topology: &Topology, path: &str, name: &str) -> Result<NodeId, Error> {
    let node = node(cx, topology, path, name)?;
    if topology.nodes[node as usize].kind == NodeKind::Switch {
        let message = format!("`{name}` is a switch");
        return cx.refuse(path, message, format!("only hosts send and receive flows; {}", extent(topology)));
    }
    Ok(node)
}

/// The network and the flows in it.
struct Routed<'p> {
    topology: &'p Topology,
    routes: &'p Routes,
    flows: &'p [Flow],
}

/// A slow host, with the inner ports that it will get.
struct Slow {
    receiver: Receiver,
    /// How fast it reads, in bits per second.
    rate: u64,
}

/// When the last stall of a receiver ends, and the last failure that does; 0 without them.
fn last_end(slow: &BTreeMap<NodeId, Slow>, faults: &Faults) -> Time {
    let stalls = slow.values().flat_map(|s| &s.receiver.stalls);
    let spans = faults.down.iter().flat_map(|down| &down.spans);
    stalls.chain(spans).map(|span| span.1).filter(|&until| until < Time::MAX).max().unwrap_or(0)
}

/// Slow hosts by node. Their inner ports are numbered after all others, two for each host.
fn slow_receivers(cx: &Context<'_>, topology: &Topology) -> Result<BTreeMap<NodeId, Slow>, Error> {
    let mut rates: BTreeMap<NodeId, Option<u64>> = BTreeMap::new();
    let mut stalls: BTreeMap<NodeId, Vec<(Time, Time, usize)>> = BTreeMap::new();
    for (i, s) in cx.scenario.slow_receiver.iter().enumerate() {
        let at = |key: &str| format!("slow_receiver[{i}].{key}");
        let host = host(cx, topology, &at("host"), &s.host)?;
        let rate = rates.entry(host).or_default();
        if let Some(given) = s.rate {
            if rate.is_some() {
                let message = format!("{} has two rates", s.host);
                return cx.refuse(&at("rate"), message, "write the rate in only one table");
            }
            cx.at_most(&at("rate"), given, Bandwidth(FASTEST))?;
            *rate = Some(given.0);
        }
        match (s.stall_from, s.stall_until) {
            (Some(_), Some(until)) if until.0 > LAST => {
                let message = format!("a stall until {until} is out of range");
                return cx.refuse(&at("stall_until"), message, format!("the maximum is {}", Span(LAST)));
            }
            (Some(from), Some(until)) if from < until => {
                stalls.entry(host).or_default().push((from.0, until.0, i));
            }
            (Some(from), Some(until)) => {
                let message = match until == from {
                    true => format!("the stall ends at {until}, when it begins"),
                    false => format!("the stall ends at {until}, before it begins at {from}"),
                };
                return cx.refuse(&at("stall_until"), message, "choose a time after `stall_from`");
            }
            (Some(_), None) | (None, Some(_)) => {
                let key = if s.stall_from.is_some() { "stall_from" } else { "stall_until" };
                let message = "`stall_from` and `stall_until` must be written together";
                return cx.refuse(&at(key), message, "write both keys, or remove both");
            }
            (None, None) if s.rate.is_none() => {
                let message = format!("this table does not slow {} down", s.host);
                return cx.refuse(&at("host"), message, "add `rate`, or `stall_from` and `stall_until`");
            }
            (None, None) => {}
        }
    }
    let mut out = BTreeMap::new();
    for (next, (host, rate)) in rates.into_iter().enumerate() {
        let mut spans = stalls.remove(&host).unwrap_or_default();
        spans.sort_unstable();
        if let Some(pair) = spans.windows(2).find(|p| p[1].0 <= p[0].1) {
            let path = format!("slow_receiver[{}].stall_from", pair[1].2);
            let message = format!("this stall overlaps the stall of slow_receiver[{}]", pair[0].2);
            return cx.refuse(&path, message, "write one stall for both");
        }
        let links = topology.nodes[host as usize].ports.iter().map(|&p| topology.ports[p as usize].rate);
        let rate = rate.unwrap_or_else(|| links.fold(0, u64::saturating_add).max(1));
        let rx = (topology.ports.len() + 2 * next) as PortId;
        let stalls = spans.into_iter().map(|(from, until, _)| (from, until)).collect();
        out.insert(host, Slow { receiver: Receiver { host, rx, stalls }, rate });
    }
    Ok(out)
}

/// The ideal's view of a route's ports.
fn hop(topology: &Topology, port: PortId) -> ideal::Hop {
    let p = &topology.ports[port as usize];
    ideal::Hop { rate: p.rate, delay: p.delay }
}
