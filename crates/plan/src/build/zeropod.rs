//! Pods without buffers: their cells in time, schedulers, clocks and failures; and what of a scenario has no
//! meaning there.

use super::{Context, LARGEST, LAST, node};
use crate::error::Error;
use crate::plan::{Collision, SchedulerFailure, Zeropod};
use crate::scenario::{self, LoadBalancing, PortSet, Traffic};
use xoff_kernel::random::Stream;
use xoff_kernel::time::{MICROSECOND, Time, serialisation};
use xoff_net::builders::TopologySpec;
use xoff_net::topology::{PodShape, Topology};
use xoff_net::units::{Bytes, Span};
use xoff_schemes::scheduling::zeropod::slots::Slots;
use xoff_schemes::scheduling::zeropod::{Params, Pod};

/// Whether the scenario's pods have no buffers.
pub(super) fn chosen(cx: &Context<'_>) -> bool {
    matches!(cx.scenario.topology, TopologySpec::Zeropod(_))
}

/// Most hosts of all pods: each pair of them may have a queue.
const MOST_HOSTS: u64 = 16_384;

/// Refuses what needs queues in switches, or ports that send by themselves; and says what has no effect.
pub(super) fn check(cx: &mut Context<'_>) -> Result<(), Error> {
    if !chosen(cx) {
        if cx.scenario.zeropod.is_some() {
            let message = "had no effect: topology.kind is not `zeropod`";
            cx.warn("zeropod".to_string(), message.to_string());
        }
        return Ok(());
    }
    let s = cx.scenario;
    let no = |key: &str, what: &str| {
        let message = format!("{what}, and pods without buffers have none");
        Err(cx.doc.error(key, message, "remove it, or write topology.kind = \"pods\" for pods with buffers"))
    };
    if s.measure.blocking {
        return no("measure.blocking", "head-of-line blocking is of queues in switches");
    }
    if s.measure.explain {
        return no("measure.explain", "waits that `explain` tells of are in queues of switches");
    }
    if s.measure.ports != PortSet::None {
        return no("measure.ports", "samples of ports are of their queues");
    }
    if !s.measure.flows.is_empty() {
        return no("measure.flows", "samples of flows are of windows and rates");
    }
    if !s.slow_receiver.is_empty() {
        return no("slow_receiver", "a slow receiver fills a queue");
    }
    if !s.loss.is_empty() {
        return no("loss", "lost frames are of ports that send by themselves");
    }
    if s.routing.ate.is_some() {
        return no("routing.ate", "first hops are chosen for ports with queues");
    }
    if s.routing.load_balancing != LoadBalancing::Ecmp {
        return no("routing.load_balancing", "load balancing is of ports with queues");
    }
    for (i, traffic) in s.traffic.iter().enumerate() {
        match traffic {
            Traffic::Loop(_) => return no(&format!("traffic[{i}].kind"), "flows around a loop fill queues"),
            Traffic::Flow(flow) if flow.path.is_some() => {
                return no(&format!("traffic[{i}].path"), "a path is of ports that send by themselves");
            }
            Traffic::Flow(flow) if flow.rate.is_some() => {
                return no(&format!("traffic[{i}].rate"), "a rate is of ports that send by themselves");
            }
            _ => {}
        }
    }
    for table in ["flow_control", "switch", "host", "routing", "ecn", "priority"] {
        if cx.doc.get(table).is_some() {
            let message = "had no effect: pods have no buffers, and the schedulers choose the paths";
            cx.warn(table.to_string(), message.to_string());
        }
    }
    Ok(())
}

/// The scenario's keys, but for their defaults.
fn keys(cx: &Context<'_>) -> scenario::Zeropod {
    cx.scenario.zeropod.clone().unwrap_or_default()
}

/// Works out what the pods are.
pub(super) fn build(cx: &Context<'_>, topology: &Topology) -> Result<Option<Zeropod>, Error> {
    let Some(shape) = topology.pods.filter(|_| chosen(cx)) else { return Ok(None) };
    let keys = keys(cx);
    let size = |key: &str, value: Bytes, least: u64, most: u64| {
        if (least..=most).contains(&value.0) {
            return Ok(value.0);
        }
        let message = format!("{key} = {value} is out of range");
        Err(cx.doc.error(&format!("zeropod.{key}"), message, format!("write {least}B to {most}B")))
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
    let pod = pod(cx, &shape)?;
    check_slots(cx, &slots, &pod)?;
    let scheduler = Params {
        cells: slots.cells,
        payload,
        iterations: count("iterations", keys.iterations, 1, 1000)?,
        requests: count("requests", keys.requests, 1, 1000)?,
        mice_cores: mice_cores(cx, keys.mice_cores, &pod)?,
    };
    let seed = cx.scenario.run.seed;
    let clock = |pod: u64| Stream::new(seed, "zeropod clocks", pod).below(slots.epoch());
    let off = time("clock_error", keys.clock_error, 0)?;
    let clock_error =
        |host: u64| Stream::new(seed, "zeropod clock errors", host).below(2 * off + 1) as i64 - off as i64;
    let hosts = pod.hosts() as u64 * u64::from(pod.pods);
    let (scheduler_failures, scheduler_links) = failures(cx, &keys, topology, &shape)?;
    Ok(Some(Zeropod {
        scheduler,
        slots,
        header,
        control,
        delay: time("delay", keys.delay, 0)?,
        top_k: keys.top_k,
        levels: levels(cx, &keys.levels)?,
        optimistic: count("optimistic", keys.optimistic, 0, 1000)?,
        scheduled: keys.scheduled,
        collision: match keys.collision {
            scenario::Collision::Later => Collision::Later,
            scenario::Collision::Both => Collision::Both,
        },
        core_buffer: size("core_buffer", keys.core_buffer, 1, LARGEST)?,
        backpressure: keys.backpressure,
        clocks: (0..u64::from(pod.pods)).map(|p| if keys.in_phase { 0 } else { clock(p) }).collect(),
        clock_errors: (0..hosts).map(|host| if off == 0 { 0 } else { clock_error(host) }).collect(),
        acks: keys.acks.then_some(time("ack_timeout", keys.ack_timeout, MICROSECOND)?),
        retry: time("retry", keys.retry, MICROSECOND)?,
        scheduler_failures,
        scheduler_links,
        pod,
    }))
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

/// Refuses epochs that have no room for everyone's control slot, and links so short that what is sent in an
/// epoch's slot could come before the slot is over.
fn check_slots(cx: &Context<'_>, slots: &Slots, pod: &Pod) -> Result<(), Error> {
    let positions = u32::from(pod.hosts_per_rack.max(pod.cores.div_ceil(pod.aggs)));
    let two = 2 * (slots.control + 2 * slots.guard);
    if slots.cells + 1 < positions {
        let message = format!(
            "an epoch of {} cells has {} control slots, and {positions} positions below a switch need one each",
            slots.cells,
            slots.cells + 1
        );
        let help = format!("write cells = {} or more", positions - 1);
        return Err(cx.doc.error("zeropod.cells", message, help));
    }
    if !slots.fits(positions) {
        let message = format!(
            "two control slots take {}, and a data cell {}: neighbours' slots would overlap",
            Span(two),
            Span(slots.data)
        );
        let help = "choose a larger payload, a smaller `control` or a narrower `guard`";
        return Err(cx.doc.error("zeropod.control", message, help));
    }
    if 4 * slots.hop < two + slots.guard {
        let message =
            format!("links of {} are too short for control slots of {}", Span(slots.hop), Span(two / 2));
        let help = "write a longer delay of the links";
        return Err(cx.doc.error("topology.link.delay", message, help));
    }
    Ok(())
}

fn mice_cores(cx: &Context<'_>, cores: u32, pod: &Pod) -> Result<u16, Error> {
    if cores == 0 || cores < u32::from(pod.cores) {
        return Ok(cores as u16);
    }
    let message = format!("{cores} cores for mice leave none of {} for all else", pod.cores);
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
            return Err(cx.doc.error(&at("pod"), message, format!("write 0 to {}", shape.pods - 1)));
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
