//! Pods without buffers: their cells in time, schedulers, clocks and failures; and what of a scenario has no
//! meaning there.

use super::{Context, LARGEST, LAST, MEMORY, node};
use crate::error::{Error, Warning};
use crate::plan::{Buffer, Collision, SchedulerFailure, Zeropod};
use crate::scenario::{self, LoadBalancing, PortSet, Traffic};
use xoff_kernel::random::Stream;
use xoff_kernel::time::{MICROSECOND, SECOND, Time, serialisation};
use xoff_net::builders::TopologySpec;
use xoff_net::topology::{Node, NodeId, NodeKind, PodShape, Topology};
use xoff_net::units::{Bytes, Span};
use xoff_schemes::scheduling::zeropod::slots::Slots;
use xoff_schemes::scheduling::zeropod::{Order, Params, Pod};

/// Whether the scenario's pods have no buffers.
pub(super) fn chosen(cx: &Context<'_>) -> bool {
    matches!(cx.scenario.topology, TopologySpec::Zeropod(_))
}

/// Most hosts of all pods: each pair of them may have a queue.
const MOST_HOSTS: u64 = 16_384;
/// Bytes that the scheduler and its senders keep for each pair of those who send and those who receive.
const PAIR: u64 = 128;
/// Longest epoch.
const LONGEST_EPOCH: Time = SECOND;
/// Most epochs from a schedule until the last of its cells has arrived: so long it is kept.
const MOST_EPOCHS: u64 = 4096;

/// Tables of a scenario, and keys of its transport, that mean something without queues; or are refused.
const TABLES: [&str; 8] =
    ["topology", "zeropod", "traffic", "run", "measure", "failure", "loss", "slow_receiver"];
const TRANSPORT: [&str; 2] = ["mtu", "header"];

/// Refuses what needs queues in switches, or ports that send by themselves.
pub(super) fn check(cx: &mut Context<'_>) -> Result<(), Error> {
    if !chosen(cx) {
        if cx.scenario.zeropod.is_some() {
            let message = "had no effect: topology.kind is not `zeropod`";
            cx.warn("zeropod".to_string(), message.to_string());
        }
        return Ok(());
    }
    let s = cx.scenario;
    let no = |key: &str, message: &str| {
        Err(cx.doc.error(key, message, "remove it, or write topology.kind = \"pods\" for pods with buffers"))
    };
    if s.measure.blocking {
        return no(
            "measure.blocking",
            "nothing is paused in pods without buffers, so that nothing is blocked",
        );
    }
    if s.measure.explain {
        return no(
            "measure.explain",
            "`explain` tells of queues in switches, and pods without buffers have none",
        );
    }
    if s.measure.ports != PortSet::None {
        return no("measure.ports", "ports of pods without buffers have no queues to sample");
    }
    if !s.measure.flows.is_empty() {
        return no("measure.flows", "flows in pods without buffers have no rates and windows to sample");
    }
    if !s.slow_receiver.is_empty() {
        return no("slow_receiver", "a slow receiver fills queues, and pods without buffers have none");
    }
    if !s.loss.is_empty() {
        return no("loss", "links of pods without buffers fail by [[failure]] alone");
    }
    let paths = "schedulers choose the paths in pods without buffers";
    if s.routing.ate.is_some() {
        return no("routing.ate", paths);
    }
    if s.routing.load_balancing != LoadBalancing::Ecmp {
        return no("routing.load_balancing", paths);
    }
    if !s.routing.overrides.is_empty() {
        return no("routing.overrides", paths);
    }
    for (i, traffic) in s.traffic.iter().enumerate() {
        match traffic {
            Traffic::Loop(_) => return no(&format!("traffic[{i}].kind"), paths),
            Traffic::Flow(flow) if flow.path.is_some() => return no(&format!("traffic[{i}].path"), paths),
            Traffic::Flow(flow) if flow.rate.is_some() => {
                let message = "schedulers say who sends when in pods without buffers";
                return no(&format!("traffic[{i}].rate"), message);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Names what is written and has no effect, each table once, whatever else was said of it.
fn warn_of_unused(cx: &mut Context<'_>, keys: &scenario::Zeropod, pod: &Pod, end: Option<Time>) {
    let used = |key: &str| TABLES.contains(&key) || key == "transport";
    let queues: Vec<String> = cx.doc.keys("").into_iter().filter(|key| !used(key)).collect();
    cx.warnings.retain(|warning| {
        let table = warning.key.split(['.', '[']).next().unwrap_or_default();
        table != "transport" && !queues.iter().any(|t| t == table)
    });
    let mut warn =
        |key: String, why: &str| cx.warnings.push(Warning { key, message: format!("had no effect: {why}") });
    for table in queues {
        warn(table, "pods without buffers have no queues, and their schedulers choose the paths");
    }
    for key in cx.doc.keys("transport").iter().filter(|key| !TRANSPORT.contains(&key.as_str())) {
        warn(format!("transport.{key}"), "what is granted arrives, and [zeropod] has `acks`");
    }
    for i in 0..cx.scenario.traffic.len() {
        for key in ["priority", "priorities"].map(|key| format!("traffic[{i}].{key}")) {
            if cx.doc.get(&key).is_some() {
                warn(key, "the levels of queues are by what a flow has sent");
            }
        }
    }
    let given = |key: &str| cx.doc.get(&format!("zeropod.{key}")).is_some();
    let fails = !cx.scenario.failure.is_empty()
        || !keys.scheduler_failure.is_empty()
        || !keys.scheduler_link.is_empty()
        || keys.clock_error.0 > 0;
    for (key, unused, why) in [
        ("core_buffer", pod.cores == 0, "one pod has no cores"),
        ("backpressure", pod.cores == 0, "one pod has no cores"),
        ("collision", keys.optimistic < 2, "nothing is sent without a grant"),
        ("ack_timeout", !keys.acks, "`acks` is not set"),
        ("retry", !fails, "nothing fails"),
    ] {
        if unused && given(key) {
            warn(format!("zeropod.{key}"), why);
        }
    }
    let over = |at: Span| end.is_some_and(|end| at.0 >= end);
    for (i, _) in keys.scheduler_failure.iter().enumerate().filter(|(_, f)| over(f.at)) {
        warn(format!("zeropod.scheduler_failure[{i}]"), "the run is over by then");
    }
    for (i, _) in keys.scheduler_link.iter().enumerate().filter(|(_, l)| over(l.from)) {
        warn(format!("zeropod.scheduler_link[{i}]"), "the run is over by then");
    }
}

/// The scenario's keys, but for their defaults.
fn keys(cx: &Context<'_>) -> scenario::Zeropod {
    cx.scenario.zeropod.clone().unwrap_or_default()
}

/// Works out what the pods of a run until `end` are, and says what has no effect beside them.
pub(super) fn build(
    cx: &mut Context<'_>,
    topology: &Topology,
    end: Option<Time>,
) -> Result<Option<Zeropod>, Error> {
    let Some(shape) = topology.pods.filter(|_| chosen(cx)) else { return Ok(None) };
    let keys = keys(cx);
    let built = pods(cx, topology, &shape, &keys)?;
    warn_of_unused(cx, &keys, &built.pod, end);
    Ok(Some(built))
}

fn pods(
    cx: &Context<'_>,
    topology: &Topology,
    shape: &PodShape,
    keys: &scenario::Zeropod,
) -> Result<Zeropod, Error> {
    let size = |key: &str, value: Bytes, least: u64, most: u64| {
        if (least..=most).contains(&value.0) {
            return Ok(value.0);
        }
        let message = format!("{key} = {value} is out of range");
        let most = if most == LARGEST { "1 EB".to_string() } else { Bytes(most).to_string() };
        Err(cx.doc.error(&format!("zeropod.{key}"), message, format!("write {least}B to {most}")))
    };
    let count = |key: &str, value: u32, least: u32, most: u32| {
        if (least..=most).contains(&value) {
            return Ok(value);
        }
        let message = format!("{key} = {value} is out of range");
        Err(cx.doc.error(&format!("zeropod.{key}"), message, format!("write {least} to {most}")))
    };
    let time = |key: &str, value: Span, least: Time| {
        if (least..=LAST / 2).contains(&value.0) {
            return Ok(value.0);
        }
        let message = format!("{key} = {value} is out of range");
        let help = format!("write {} to {}", Span(least), Span(LAST / 2));
        Err(cx.doc.error(&format!("zeropod.{key}"), message, help))
    };
    let payload = size("payload", keys.payload, 1, 65_535)? as u32;
    let header = size("header", keys.header, 0, 10_000)? as u32;
    let control = size("control", keys.control, 1, 10_000)? as u32;
    let link = &topology.ports[0];
    let slots = Slots {
        cells: count("cells", keys.cells, 1, 4096)?,
        data: serialisation(u64::from(payload + header), link.rate),
        control: serialisation(u64::from(control), link.rate),
        guard: time("guard", keys.guard, 0)?,
        hop: link.delay,
    };
    let delay = time("delay", keys.delay, 0)?;
    let pod = pod(cx, shape)?;
    check_slots(cx, &slots, &pod)?;
    check_pipeline(cx, &slots, &pod, delay)?;
    let scheduler = Params {
        cells: slots.cells,
        payload,
        iterations: count("iterations", keys.iterations, 1, 1000)?,
        requests: count("requests", keys.requests, 1, 1000)?,
        mice_cores: mice_cores(cx, keys.mice_cores, &pod)?,
        order: match keys.order {
            scenario::Order::Smallest => Order::Smallest,
            scenario::Order::Largest => Order::Largest,
            scenario::Order::Random => Order::Random,
        },
    };
    let seed = cx.scenario.run.seed;
    let clock = |pod: u64| Stream::new(seed, "zeropod clocks", pod).below(slots.epoch());
    let off = time("clock_error", keys.clock_error, 0)?;
    let clock_error =
        |host: u64| Stream::new(seed, "zeropod clock errors", host).below(2 * off + 1) as i64 - off as i64;
    let hosts = pod.hosts() as u64 * u64::from(pod.pods);
    let (scheduler_failures, scheduler_links) = failures(cx, keys, topology, shape)?;
    let optimistic = count("optimistic", keys.optimistic, 0, 1000)?;
    if !keys.scheduled && optimistic < 2 {
        let message = "nothing is sent: neither with a grant nor without";
        let help = "write scheduled = true, or optimistic = 2 or more";
        return Err(cx.doc.error("zeropod.scheduled", message, help));
    }
    let cell = if pod.cores == 0 { 1 } else { u64::from(payload + header) };
    Ok(Zeropod {
        scheduler,
        slots,
        header,
        control,
        delay,
        top_k: keys.top_k,
        levels: levels(cx, &keys.levels)?,
        optimistic,
        optimistic_rounds: count("optimistic_rounds", keys.optimistic_rounds, 1, 1000)?,
        scheduled: keys.scheduled,
        collision: match keys.collision {
            scenario::Collision::Later => Collision::Later,
            scenario::Collision::Both => Collision::Both,
        },
        core_buffer: size("core_buffer", keys.core_buffer, cell, LARGEST)?,
        backpressure: keys.backpressure,
        clocks: (0..u64::from(pod.pods)).map(|p| if keys.in_phase { 0 } else { clock(p) }).collect(),
        clock_errors: (0..hosts).map(|host| if off == 0 { 0 } else { clock_error(host) }).collect(),
        acks: keys.acks.then_some(time("ack_timeout", keys.ack_timeout, MICROSECOND)?),
        retry: time("retry", keys.retry, MICROSECOND)?,
        scheduler_failures,
        scheduler_links,
        pod,
    })
}

/// What a flow's time depends on when it is alone in the network.
pub(super) struct Alone {
    payload: u64,
    cell: Time,
    hop: Time,
    /// Hosts of a pod.
    hosts: NodeId,
}

/// The same for the pods of the scenario, if they have no buffers.
pub(super) fn alone(cx: &Context<'_>, topology: &Topology) -> Option<Alone> {
    let shape = topology.pods.filter(|_| chosen(cx))?;
    let keys = keys(cx);
    let link = &topology.ports[0];
    // What is out of range is refused later.
    let payload = keys.payload.0.clamp(1, u16::MAX.into());
    let cell = serialisation(payload + keys.header.0.min(10_000), link.rate);
    Some(Alone { payload, cell, hop: link.delay, hosts: shape.racks * shape.hosts_per_rack })
}

impl Alone {
    /// From the start of a flow until its last byte has arrived, if it did not have to ask: its cells one behind
    /// the other, cut through in pods, and the last one stored by a core on the way to another pod. `None` if
    /// that is beyond 64 bits of picoseconds.
    pub(super) fn completion(&self, src: NodeId, dst: NodeId, size: u64) -> Option<Time> {
        let (hops, stored) = if src / self.hosts == dst / self.hosts { (4, 0) } else { (6, 1) };
        let cells = size.div_ceil(self.payload) + stored;
        cells.checked_mul(self.cell)?.checked_add(hops * self.hop)
    }
}

/// Memory of the nodes: pods have none, and cores their own.
pub(super) fn buffers(cx: &Context<'_>, topology: &Topology) -> Option<Vec<Buffer>> {
    let shape = topology.pods.filter(|_| chosen(cx))?;
    let cores = topology.nodes.len() - shape.cores as usize;
    let of = |(id, node): (usize, &Node)| match node.kind {
        NodeKind::Host => cx.scenario.host.buffer.0,
        NodeKind::Switch if id < cores => 0,
        NodeKind::Switch => keys(cx).core_buffer.0,
    };
    Some(topology.nodes.iter().enumerate().map(of).map(|total| Buffer { total, shared: total }).collect())
}

fn pod(cx: &Context<'_>, shape: &PodShape) -> Result<Pod, Error> {
    let hosts = u64::from(shape.racks) * u64::from(shape.hosts_per_rack);
    let all = hosts * u64::from(shape.pods);
    let targets = hosts + u64::from(shape.cores.max(shape.pods));
    if all > MOST_HOSTS || targets >= u64::from(u16::MAX) {
        let message = format!("{all} hosts, {hosts} in a pod, are more than one run of Zeropod holds");
        let help = format!("{MOST_HOSTS} hosts are the most: choose fewer pods, or smaller ones");
        return Err(cx.doc.error("topology", message, help).with_key("topology.pods"));
    }
    Ok(Pod {
        racks: shape.racks as u16,
        hosts_per_rack: shape.hosts_per_rack as u16,
        aggs: shape.aggs as u16,
        cores: shape.cores as u16,
        pods: shape.pods as u16,
    })
}

/// An error about a key; where neither it nor its table is written, the topology is shown.
fn at(cx: &Context<'_>, key: &str, message: String, help: &str) -> Error {
    let table = key.split('.').next().unwrap_or_default();
    let shown = if cx.doc.get(table).is_some() { key } else { "topology" };
    cx.doc.error(shown, message, help).with_key(key)
}

/// Refuses epochs that have no room for everyone's control slot, and links so short that what is sent in an
/// epoch's slot could come before the slot is over.
fn check_slots(cx: &Context<'_>, slots: &Slots, pod: &Pod) -> Result<(), Error> {
    let positions = u32::from(pod.hosts_per_rack.max(pod.cores.div_ceil(pod.aggs)));
    let [data, control, guard] = [slots.data, slots.control, slots.guard].map(u128::from);
    let epoch = u128::from(slots.cells) * data + 2 * control + 5 * guard;
    if epoch > u128::from(LONGEST_EPOCH) {
        let message =
            format!("an epoch of {} cells would take {} s", slots.cells, epoch / u128::from(SECOND));
        let help = "1 s is the most: choose fewer or smaller cells, narrower guard bands, or faster links";
        let key = if 10 * guard > epoch { "zeropod.guard" } else { "zeropod.cells" };
        return Err(at(cx, key, message, help));
    }
    let two = 2 * (slots.control + 2 * slots.guard);
    if slots.cells + 1 < positions {
        let message = format!(
            "an epoch of {} cells has {} control slots, and {positions} positions below a switch need one each",
            slots.cells,
            slots.cells + 1
        );
        let help = format!("write cells = {} or more", positions - 1);
        return Err(at(cx, "zeropod.cells", message, &help));
    }
    if !slots.fits(positions) {
        let message = format!(
            "two control slots take {}, and a data cell {}: neighbours' slots would overlap",
            Span(two),
            Span(slots.data)
        );
        let help = "choose a larger payload, a smaller `control` or a narrower `guard`";
        let key = if 2 * slots.control < slots.data { "zeropod.guard" } else { "zeropod.control" };
        return Err(at(cx, key, message, help));
    }
    if 4 * slots.hop < two + slots.guard {
        let message =
            format!("links of {} are too short for control slots of {}", Span(slots.hop), Span(two / 2));
        let help = "write a longer delay of the links";
        return Err(cx.doc.error("topology.link.delay", message, help));
    }
    Ok(())
}

/// Refuses what would make much to be kept: grants that are old when they have an effect, and many pairs.
fn check_pipeline(cx: &Context<'_>, slots: &Slots, pod: &Pod, delay: Time) -> Result<(), Error> {
    let cores = u64::from(pod.cores);
    let way = (8 * slots.hop).div_ceil(slots.epoch());
    let epochs = slots.pipeline(delay, cores > 0).data.saturating_add(way);
    if epochs > MOST_EPOCHS {
        let message =
            format!("cells of a schedule would arrive {epochs} epochs of {} later", Span(slots.epoch()));
        let help =
            format!("{MOST_EPOCHS} are the most: choose a shorter delay, shorter links or longer epochs");
        let key = if delay > 8 * slots.hop { "zeropod.delay" } else { "topology.link.delay" };
        return Err(at(cx, key, message, &help));
    }
    let (pods, hosts, racks) = (u64::from(pod.pods), pod.hosts() as u64, u64::from(pod.racks));
    let pairs = pods * (hosts + cores) * (hosts + pods);
    let links = 2 * pods * (hosts + racks * u64::from(pod.aggs) + cores);
    let need = pairs * PAIR + (pods * hosts).pow(2) * 4 + links * 2 * epochs * 32;
    if need > MEMORY {
        let message = format!("pods of {hosts} hosts would need {} GiB", need >> 30);
        let help = format!("{} GiB are the most: choose smaller pods", MEMORY >> 30);
        return Err(cx.doc.error("topology", message, help).with_key("topology.racks"));
    }
    Ok(())
}

fn mice_cores(cx: &Context<'_>, cores: u32, pod: &Pod) -> Result<u16, Error> {
    if cores == 0 || cores < u32::from(pod.cores) {
        return Ok(cores as u16);
    }
    let message = format!("mice_cores = {cores} leaves none of {} cores for all else", pod.cores);
    let help = match pod.cores.checked_sub(1) {
        Some(most) => format!("write up to {most}"),
        None => "remove it: one pod has no cores".to_string(),
    };
    Err(cx.doc.error("zeropod.mice_cores", message, help))
}

fn levels(cx: &Context<'_>, levels: &[Bytes]) -> Result<Vec<u64>, Error> {
    let help = "write 1 to 15 sizes in ascending order, such as [\"100kB\", \"1MB\"]";
    if levels.is_empty() || levels.len() > 15 {
        let message = format!("{} levels are out of range", levels.len());
        return Err(cx.doc.error("zeropod.levels", message, help));
    }
    if levels[0].0 == 0 {
        return Err(cx.doc.error("zeropod.levels", "the first level would hold nothing", help));
    }
    if let Some(pair) = levels.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
        let message = format!("{} does not come before {}", pair[0], pair[1]);
        return Err(cx.doc.error("zeropod.levels", message, help));
    }
    Ok(levels.iter().map(|l| l.0).collect())
}

type Failures = (Vec<SchedulerFailure>, Vec<(u32, Time, Time)>);

/// Schedulers that fail, and their links.
fn failures(
    cx: &Context<'_>,
    keys: &scenario::Zeropod,
    topology: &Topology,
    shape: &PodShape,
) -> Result<Failures, Error> {
    let mut schedulers = Vec::new();
    for (i, failure) in keys.scheduler_failure.iter().enumerate() {
        let at = |key: &str| format!("zeropod.scheduler_failure[{i}].{key}");
        if failure.pod >= shape.pods {
            let message = format!("there is no pod {}", failure.pod);
            let help = match shape.pods {
                1 => "write 0: there is one pod".to_string(),
                pods => format!("write 0 to {}", pods - 1),
            };
            return Err(cx.doc.error(&at("pod"), message, help));
        }
        for (key, span) in [("at", failure.at), ("takeover", failure.takeover)] {
            if span.0 > LAST / 2 {
                let message = format!("{span} is out of range");
                return Err(cx.doc.error(&at(key), message, format!("{} are the most", Span(LAST / 2))));
            }
        }
        let pod = failure.pod as u16;
        schedulers.push(SchedulerFailure { pod, at: failure.at.0, takeover: failure.takeover.0 });
    }
    schedulers.sort_by_key(|f| (f.at, f.pod));
    let mut links = Vec::new();
    for (i, link) in keys.scheduler_link.iter().enumerate() {
        let at = |key: &str| format!("zeropod.scheduler_link[{i}].{key}");
        let switch = node(cx, topology, &at("switch"), &link.switch)?;
        let hosts = shape.pods * shape.racks * shape.hosts_per_rack;
        if !(hosts..hosts + shape.pods * (shape.racks + shape.aggs)).contains(&switch) {
            let message = format!("no scheduler has a link to {}", link.switch);
            let help =
                "schedulers have one to each ToR (S0.i) and each aggregation switch (S1.i) of their pod";
            return Err(cx.doc.error(&at("switch"), message, help));
        }
        let until = link.until.map_or(Time::MAX, |until| until.0);
        if until <= link.from.0 {
            let message = format!("the link fails at {}, and is up again before", link.from);
            return Err(cx.doc.error(&at("until"), message, "choose it above `from`"));
        }
        links.push((switch, link.from.0, until));
    }
    Ok((schedulers, links))
}
