//! Pods without buffers in words.

use super::params::{Collision, ZeropodParams};
use super::{MiceCores, Order, Subtract};
use std::fmt::{self, Write};
use xoff_kernel::time::Time;
use xoff_net::text::{count, sample};
use xoff_net::topology::Topology;
use xoff_net::units::{Bytes, Span};

/// Their epochs, the schedulers, and the actions of hosts and cores.
pub fn describe(out: &mut String, topology: &Topology, z: &ZeropodParams) -> fmt::Result {
    let (pod, slots, params) = (&z.pod, &z.slots, &z.scheduler);
    let n = |n: u16, what: &str| count(n.into(), what);
    let (pods, racks, hosts) = (n(pod.pods, "pod"), n(pod.racks, "rack"), n(pod.hosts_per_rack, "host"));
    let aggs = n(pod.aggs, "aggregation switch");
    let cores = if pod.cores == 0 { String::new() } else { format!("; {}", n(pod.cores, "core")) };
    writeln!(out, "{pods} without buffers (zeropod): {racks} of {hosts}, {aggs}{cores}")?;
    let epoch = slots.epoch();
    let rate = topology.ports[0].rate;
    // Bits in an epoch, and those of them that are payload.
    let (all, payload) = (rate as f64 * epoch as f64 / 1e12, f64::from(slots.cells * params.payload) * 8.0);
    writeln!(
        out,
        "  epoch {}: {} of {} + {} ({}), 2 control slots of {} ({}){}; payload is at most {:.2}% of a link",
        Span(epoch),
        count(slots.cells.into(), "cell"),
        params.payload,
        Bytes(z.header.into()),
        Span(slots.data),
        Bytes(z.control.into()),
        Span(slots.control),
        if slots.guard == 0 { String::new() } else { format!(", guard bands of {}", Span(slots.guard)) },
        100.0 * payload / all
    )?;
    if z.scheduled {
        let pipeline = slots.pipeline(z.delay, pod.cores > 0);
        let (delay, later) = (Span(z.delay), Span(pipeline.data * epoch));
        let (schd, data) = (count(pipeline.schd, "epoch"), count(pipeline.data, "epoch"));
        writeln!(
            out,
            "  a schedule takes {delay}. Its SCHD frames leave {schd} later, its cells {data} later ({later})"
        )?;
        if params.subtract == Subtract::WithSchd {
            writeln!(out, "  a grant is subtracted when its SCHD leaves; earlier epochs may repeat it")?;
        }
        writeln!(
            out,
            "  scheduler: {}, {} for each demand, {} first; an RTS lists mice for at most {}",
            count(params.iterations.into(), "iteration"),
            count(params.requests.into(), "path"),
            match params.order {
                Order::Smallest => "smallest",
                Order::Largest => "largest",
                Order::Random => "any",
            },
            n(z.top_k, "destination")
        )?;
    } else {
        writeln!(out, "  no cell is scheduled: only cells without a grant are sent")?;
    }
    let levels: Vec<String> = z.levels.iter().map(|&bytes| Bytes(bytes).to_string()).collect();
    writeln!(out, "  levels of flows: up to {} (the first level is mice), and larger", levels.join(", "))?;
    let both = z.collision == Collision::Both;
    let lost = if both { "both cells are" } else { "only the later cell is" };
    match z.optimistic {
        0 | 1 => writeln!(out, "  every cell needs a grant")?,
        cells => writeln!(
            out,
            "  flows of fewer than {cells} cells are also sent without a grant; if two such cells collide, {lost} lost"
        )?,
    }
    if pod.cores > 0 {
        let mice = match params.mice_cores {
            0 => String::new(),
            cores => {
                let over = match params.mice_over {
                    MiceCores::Any => "",
                    MiceCores::ExclusiveFirst => ", which take them first",
                    MiceCores::ExclusiveOnly => ", which take no others",
                };
                format!("; the last {cores} only for mice{over}")
            }
        };
        let (buffer, cells) = (Bytes(z.core_buffer), count(z.backpressure.into(), "cell"));
        writeln!(out, "  cores: {buffer} each, backpressure above {cells}{mice}")?;
    }
    if let Some(timeout) = z.acks {
        writeln!(out, "  receivers send ACKs; timeout {}", Span(timeout))?;
    }
    clocks(out, z)?;
    failures(out, topology, z)
}

/// When the pods' clocks begin, and how far those of hosts are off.
fn clocks(out: &mut String, z: &ZeropodParams) -> fmt::Result {
    if !z.scheduled {
        return Ok(());
    }
    let begins: Vec<String> = z.clocks.iter().map(|&at| Span(at).to_string()).collect();
    let names: Vec<&str> = begins.iter().map(String::as_str).collect();
    writeln!(out, "  first epochs of pods begin at: {}", sample(&names))?;
    let most = z.clock_errors.iter().map(|error| error.unsigned_abs()).max().unwrap_or(0);
    if most > 0 {
        // Two hosts may be off in opposite directions.
        let beyond = z.clock_errors.iter().filter(|e| 2 * e.unsigned_abs() > z.slots.guard).count() as u64;
        let (hosts, most) = (count(beyond, "host"), Span(most));
        writeln!(out, "  host clocks have errors of up to {most}: {hosts} by more than half a guard band")?;
    }
    Ok(())
}

/// Schedulers and their links that fail.
fn failures(out: &mut String, topology: &Topology, z: &ZeropodParams) -> fmt::Result {
    for failure in &z.scheduler_failures {
        let (pod, at, takeover) = (failure.pod, Span(failure.at), Span(failure.takeover));
        writeln!(out, "  the scheduler of pod {pod} fails at {at}; its backup takes over {takeover} later")?;
    }
    for &(switch, from, until) in &z.scheduler_links {
        let until = if until == Time::MAX { "to the end".to_string() } else { format!("to {}", Span(until)) };
        let name = &topology.nodes[switch as usize].name;
        writeln!(out, "  the scheduler's link to {name} is down from {} {until}", Span(from))?;
    }
    Ok(())
}
