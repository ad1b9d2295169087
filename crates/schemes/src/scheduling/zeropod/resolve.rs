//! The resolved keys of `[zeropod]`, and their errors.

use super::keys::ZeropodKeys;
use super::params::{SchedulerFailure, ZeropodParams};
use super::slots::Slots;
use super::{MiceCores, Params, Pod, Subtract};
use crate::flow_control::fabric::Buffer;
use crate::flow_control::keys::{Complaint, LARGEST, LAST, MEMORY, Setting};
use std::fmt::Display;
use xoff_kernel::random::Stream;
use xoff_kernel::time::{MICROSECOND, SECOND, Time, serialisation};
use xoff_net::topology::{Node, NodeId, NodeKind, PodShape, Topology};
use xoff_net::units::{Bytes, Span};

/// Most hosts of all pods: each pair of them may have a queue.
const MOST_HOSTS: u64 = 16_384;
/// Bytes that the scheduler and its senders keep for each pair of those who send and those who receive.
const PAIR: u64 = 128;
const LONGEST_EPOCH: Time = SECOND;
/// Most epochs from a schedule until the last of its cells has arrived: so long it is kept.
const MOST_EPOCHS: u64 = 4096;

/// Names keys that have no effect beside the others.
pub fn warn_of_unused(keys: &ZeropodKeys, cx: &mut Setting<'_>, cores: u32, end: Option<Time>) {
    let fails = fails(keys, cx);
    let mut warn = |key: String, why: &str| {
        let key = format!("zeropod.{key}");
        if cx.written(&key) {
            cx.warn(key, format!("had no effect: {why}"));
        }
    };
    for (key, unused, why) in [
        ("core_buffer", cores == 0, "one pod has no cores"),
        ("backpressure", cores == 0, "one pod has no cores"),
        ("mice_over", keys.mice_cores == 0, "no core is only for mice"),
        ("entry", keys.top_k == 0, "an RTS lists no destination"),
        ("subtract", !keys.scheduled, "no cell is scheduled"),
        ("collision", keys.optimistic < 2, "every cell is sent with a grant"),
        ("ack_timeout", !keys.acks, "it requires `acks`"),
        ("retry", !fails, "no link or scheduler fails"),
    ] {
        if unused {
            warn(key.to_string(), why);
        }
    }
    let failures = keys.scheduler_failure.iter().enumerate().map(|(i, f)| ("failure", i, f.at));
    let links = keys.scheduler_link.iter().enumerate().map(|(i, l)| ("link", i, l.from));
    for (what, i, at) in failures.chain(links) {
        if end.is_some_and(|end| at.0 >= end) {
            warn(format!("scheduler_{what}[{i}]"), "the run ends earlier");
        }
    }
}

/// Whether something may fail, or a clock may be wrong.
fn fails(keys: &ZeropodKeys, cx: &Setting<'_>) -> bool {
    cx.failures
        || !keys.scheduler_failure.is_empty()
        || !keys.scheduler_link.is_empty()
        || keys.clock_error.0 > 0
}

/// The parameters of the pods of a topology.
pub fn params(
    keys: &ZeropodKeys,
    cx: &Setting<'_>,
    topology: &Topology,
    shape: &PodShape,
) -> Result<ZeropodParams, Complaint> {
    let wrong = |key: &str, value: &dyn Display, help: String| {
        let message = format!("{key} = {value} is out of range");
        Complaint::new(&format!("zeropod.{key}"), message, help)
    };
    let size = |key: &str, value: Bytes, least: u64, most: u64| match value.0 {
        bytes if (least..=most).contains(&bytes) => Ok(bytes),
        _ if most == LARGEST => Err(wrong(key, &value, format!("write {least}B to 1 EB"))),
        _ => Err(wrong(key, &value, format!("write {least}B to {}", Bytes(most)))),
    };
    let count = |key: &str, value: u32, least: u32, most: u32| match value {
        count if (least..=most).contains(&count) => Ok(count),
        _ => Err(wrong(key, &value, format!("write {least} to {most}"))),
    };
    let time = |key: &str, value: Span, least: Time| match value.0 {
        time if (least..=LAST / 2).contains(&time) => Ok(time),
        _ => Err(wrong(key, &value, format!("write {} to {}", Span(least), Span(LAST / 2)))),
    };
    let payload = size("payload", keys.payload, 1, 65_535)? as u32;
    let header = size("header", keys.header, 0, 10_000)? as u32;
    let entries = u64::from(keys.top_k).saturating_mul(keys.entry.0);
    let control = size("control", keys.control, 1, 10_000)?.saturating_add(entries);
    if control > 10_000 {
        let message = format!("a request with {} entries of {} is too long", keys.top_k, keys.entry);
        let help = "the maximum is 10000B: choose a smaller `entry` or `top_k`";
        return Err(Complaint::new("zeropod.entry", message, help));
    }
    let control = control as u32;
    let link = &topology.ports[0];
    let slots = Slots {
        cells: count("cells", keys.cells, 1, 4096)?,
        data: serialisation(u64::from(payload + header), link.rate),
        control: serialisation(u64::from(control), link.rate),
        guard: time("guard", keys.guard, 0)?,
        hop: link.delay,
    };
    let delay = time("delay", keys.delay, 0)?;
    let pod = pod(shape)?;
    check_slots(cx, &slots, &pod)?;
    check_pipeline(cx, &slots, &pod, delay)?;
    let scheduler = Params {
        cells: slots.cells,
        payload,
        iterations: count("iterations", keys.iterations, 1, 1000)?,
        requests: count("requests", keys.requests, 1, 1000)?,
        mice_cores: mice_cores(keys.mice_cores, &pod)?,
        mice_over: keys.mice_over,
        order: keys.order,
        subtract: keys.subtract,
    };
    if keys.mice_over == MiceCores::ExclusiveOnly && keys.mice_cores == 0 {
        let message = "mice_over = \"exclusive-only\" leaves no core for mice";
        let help = "write mice_cores = 1 or more";
        return Err(Complaint::new("zeropod.mice_over", message, help));
    }
    if keys.subtract == Subtract::WithSchd && fails(keys, cx) {
        let message = "subtract = \"with-schd\" is incompatible with failures and clock errors";
        let help = "write subtract = \"at-once\"";
        return Err(Complaint::new("zeropod.subtract", message, help));
    }
    let clock = |pod: u64| Stream::new(cx.seed, "zeropod clocks", pod).below(slots.epoch());
    let off = time("clock_error", keys.clock_error, 0)?;
    let clock_error =
        |host: u64| Stream::new(cx.seed, "zeropod clock errors", host).below(2 * off + 1) as i64 - off as i64;
    let hosts = pod.hosts() as u64 * u64::from(pod.pods);
    let (scheduler_failures, scheduler_links) = failures(cx, keys, topology, shape)?;
    let optimistic = count("optimistic", keys.optimistic, 0, 1000)?;
    if !keys.scheduled && optimistic < 2 {
        let message = "no cell can be sent: both scheduled and optimistic sending are disabled";
        let help = "write scheduled = true, or optimistic = 2 or more";
        return Err(Complaint::new("zeropod.scheduled", message, help));
    }
    let cell = if pod.cores == 0 { 1 } else { u64::from(payload + header) };
    Ok(ZeropodParams {
        scheduler,
        slots,
        header,
        control,
        delay,
        top_k: keys.top_k,
        levels: levels(&keys.levels)?,
        optimistic,
        optimistic_rounds: count("optimistic_rounds", keys.optimistic_rounds, 1, 1000)?,
        scheduled: keys.scheduled,
        collision: keys.collision,
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

pub struct Alone {
    payload: u64,
    cell: Time,
    hop: Time,
    /// Hosts of a pod.
    hosts: NodeId,
}

/// The parameters of a flow's ideal FCT. Keys that are out of range are refused elsewhere.
pub fn alone(keys: &ZeropodKeys, topology: &Topology, shape: &PodShape) -> Alone {
    let link = &topology.ports[0];
    let payload = keys.payload.0.clamp(1, u16::MAX.into());
    let cell = serialisation(payload + keys.header.0.min(10_000), link.rate);
    Alone { payload, cell, hop: link.delay, hosts: shape.racks * shape.hosts_per_rack }
}

impl Alone {
    /// From the start of a flow until its last byte has arrived, without requests: its cells one after the
    /// other, cut through in pods, and the last one stored by a core on the path to another pod. `None` if
    /// that is beyond 64 bits of picoseconds.
    pub fn completion(&self, src: NodeId, dst: NodeId, size: u64) -> Option<Time> {
        let (hops, stored) = if src / self.hosts == dst / self.hosts { (4, 0) } else { (6, 1) };
        let cells = size.div_ceil(self.payload) + stored;
        cells.checked_mul(self.cell)?.checked_add(hops * self.hop)
    }
}

/// Memory of the nodes: pods have none, and cores their own.
pub fn buffers(keys: &ZeropodKeys, cx: &Setting<'_>, topology: &Topology, shape: &PodShape) -> Vec<Buffer> {
    let cores = topology.nodes.len() - shape.cores as usize;
    let of = |(id, node): (usize, &Node)| match node.kind {
        NodeKind::Host => cx.host_buffer,
        NodeKind::Switch if id < cores => 0,
        NodeKind::Switch => keys.core_buffer.0,
    };
    topology.nodes.iter().enumerate().map(of).map(|total| Buffer { total, shared: total }).collect()
}

fn pod(shape: &PodShape) -> Result<Pod, Complaint> {
    let hosts = u64::from(shape.racks) * u64::from(shape.hosts_per_rack);
    let all = hosts * u64::from(shape.pods);
    let targets = hosts + u64::from(shape.cores.max(shape.pods));
    if all > MOST_HOSTS || targets >= u64::from(u16::MAX) {
        let message = format!("a run of Zeropod cannot hold {all} hosts, {hosts} in each pod");
        let help = format!("the maximum is {MOST_HOSTS} hosts: choose fewer or smaller pods");
        return Err(Complaint::new("topology", message, help).about("topology.pods"));
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
fn at(cx: &Setting<'_>, key: &str, message: String, help: &str) -> Complaint {
    let table = key.split('.').next().unwrap_or_default();
    let shown = if cx.written(table) { key } else { "topology" };
    Complaint::new(shown, message, help).about(key)
}

/// Refuses epochs without room for the control slots of all senders, and links so short that data of an
/// epoch's slot could arrive before the slot is over.
fn check_slots(cx: &Setting<'_>, slots: &Slots, pod: &Pod) -> Result<(), Complaint> {
    let positions = u32::from(pod.hosts_per_rack.max(pod.cores.div_ceil(pod.aggs)));
    let [data, control, guard] = [slots.data, slots.control, slots.guard].map(u128::from);
    let cells = slots.cells;
    let epoch = u128::from(cells) * data + 2 * control + 5 * guard;
    if epoch > u128::from(LONGEST_EPOCH) {
        let seconds = epoch / u128::from(SECOND);
        let message = format!("an epoch of {cells} cells is too long: it would take {seconds} s");
        let help = "the maximum is 1 s: choose fewer or smaller cells, a narrower `guard`, or faster links";
        let key = if 10 * guard > epoch { "zeropod.guard" } else { "zeropod.cells" };
        return Err(at(cx, key, message, help));
    }
    let two = 2 * (slots.control + 2 * slots.guard);
    let control_slots = cells + 1;
    if control_slots < positions {
        let message = format!(
            "an epoch of {cells} cells has too few control slots: {control_slots} for {positions} positions below a switch"
        );
        let help = format!("write cells = {} or more", positions - 1);
        return Err(at(cx, "zeropod.cells", message, &help));
    }
    if !slots.fits(positions) {
        let (two, data) = (Span(two), Span(slots.data));
        let message =
            format!("control slots would overlap: two of them take {two}, and a data cell takes {data}");
        let help = "choose a larger payload, a smaller `control` or a narrower `guard`";
        let key = if 2 * slots.control < slots.data { "zeropod.guard" } else { "zeropod.control" };
        return Err(at(cx, key, message, help));
    }
    if 4 * slots.hop < two + slots.guard {
        let message =
            format!("links of {} are too short for control slots of {}", Span(slots.hop), Span(two / 2));
        let help = "write a longer `delay` of the links";
        return Err(Complaint::new("topology.link.delay", message, help));
    }
    Ok(())
}

/// Refuses keys that would need much memory: grants that are old when they have an effect, and many pairs.
fn check_pipeline(cx: &Setting<'_>, slots: &Slots, pod: &Pod, delay: Time) -> Result<(), Complaint> {
    let cores = u64::from(pod.cores);
    let way = (8 * slots.hop).div_ceil(slots.epoch());
    let epochs = slots.pipeline(delay, cores > 0).data.saturating_add(way);
    if epochs > MOST_EPOCHS {
        let epoch = Span(slots.epoch());
        let message =
            format!("the cells of a schedule would arrive too late: {epochs} epochs of {epoch} later");
        let help = format!(
            "the maximum is {MOST_EPOCHS} epochs: choose a shorter delay, shorter links or longer epochs"
        );
        let key = if delay > 8 * slots.hop { "zeropod.delay" } else { "topology.link.delay" };
        return Err(at(cx, key, message, &help));
    }
    let (pods, hosts, racks) = (u64::from(pod.pods), pod.hosts() as u64, u64::from(pod.racks));
    let pairs = pods * (hosts + cores) * (hosts + pods);
    let links = 2 * pods * (hosts + racks * u64::from(pod.aggs) + cores);
    let need = pairs * PAIR + (pods * hosts).pow(2) * 4 + links * 2 * epochs * 32;
    if need > MEMORY {
        let message = format!("pods of {hosts} hosts would need {} GiB", need >> 30);
        let help = format!("the maximum is {} GiB: choose smaller pods", MEMORY >> 30);
        return Err(Complaint::new("topology", message, help).about("topology.racks"));
    }
    Ok(())
}

fn mice_cores(cores: u32, pod: &Pod) -> Result<u16, Complaint> {
    if cores == 0 || cores < u32::from(pod.cores) {
        return Ok(cores as u16);
    }
    let message = format!("mice_cores = {cores} leaves none of the {} cores for other flows", pod.cores);
    let help = match pod.cores.checked_sub(1) {
        Some(most) => format!("write {most} or less"),
        None => "remove the key: one pod has no cores".to_string(),
    };
    Err(Complaint::new("zeropod.mice_cores", message, help))
}

fn levels(levels: &[Bytes]) -> Result<Vec<u64>, Complaint> {
    let help = "write 1 to 15 sizes in ascending order, such as [\"100kB\", \"1MB\"]";
    if levels.is_empty() || levels.len() > 15 {
        let message = format!("expected 1 to 15 levels, found {}", levels.len());
        return Err(Complaint::new("zeropod.levels", message, help));
    }
    if levels[0].0 == 0 {
        return Err(Complaint::new("zeropod.levels", "the first level is empty", help));
    }
    if let Some(pair) = levels.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
        let message = format!("the sizes are not in ascending order: {} is followed by {}", pair[0], pair[1]);
        return Err(Complaint::new("zeropod.levels", message, help));
    }
    Ok(levels.iter().map(|l| l.0).collect())
}

type Failures = (Vec<SchedulerFailure>, Vec<(u32, Time, Time)>);

fn failures(
    cx: &Setting<'_>,
    keys: &ZeropodKeys,
    topology: &Topology,
    shape: &PodShape,
) -> Result<Failures, Complaint> {
    let mut schedulers = Vec::new();
    for (i, failure) in keys.scheduler_failure.iter().enumerate() {
        let at = |key: &str| format!("zeropod.scheduler_failure[{i}].{key}");
        if failure.pod >= shape.pods {
            let message = format!("pod {} does not exist", failure.pod);
            let help = match shape.pods {
                1 => "write 0: there is only one pod".to_string(),
                pods => format!("write 0 to {}", pods - 1),
            };
            return Err(Complaint::new(&at("pod"), message, help));
        }
        for (key, span) in [("at", failure.at), ("takeover", failure.takeover)] {
            if span.0 > LAST / 2 {
                let message = format!("{span} is out of range");
                return Err(Complaint::new(&at(key), message, format!("the maximum is {}", Span(LAST / 2))));
            }
        }
        let pod = failure.pod as u16;
        schedulers.push(SchedulerFailure { pod, at: failure.at.0, takeover: failure.takeover.0 });
    }
    schedulers.sort_by_key(|f| (f.at, f.pod));
    let mut links = Vec::new();
    for (i, link) in keys.scheduler_link.iter().enumerate() {
        let at = |key: &str| format!("zeropod.scheduler_link[{i}].{key}");
        let found = (cx.node)(topology, &link.switch);
        let switch = found.map_err(|(message, help)| Complaint::new(&at("switch"), message, help))?;
        let hosts = shape.pods * shape.racks * shape.hosts_per_rack;
        if !(hosts..hosts + shape.pods * (shape.racks + shape.aggs)).contains(&switch) {
            let message = format!("no scheduler has a link to {}", link.switch);
            let help = "a scheduler has a link to each ToR (S0.i) and aggregation switch (S1.i) of its pod";
            return Err(Complaint::new(&at("switch"), message, help));
        }
        let until = link.until.map_or(Time::MAX, |until| until.0);
        if until <= link.from.0 {
            let message = format!("the link recovers before it fails at {}", link.from);
            return Err(Complaint::new(&at("until"), message, "choose a time after `from`"));
        }
        links.push((switch, link.from.0, until));
    }
    Ok((schedulers, links))
}
