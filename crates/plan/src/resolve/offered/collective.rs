//! Collectives, whose flows wait for others; all-to-all; probes.

use super::super::{LONGEST, sizes};
use super::{Made, Table};
use crate::error::Error;
use crate::scenario::{AllToAll, Moe, ParameterServer, Probe, RingAllReduce, TrainingStep};
use xoff_net::error::SpecError;
use xoff_net::traffic::{self, Rounds, Schedule, Training};
use xoff_net::units::Span;

pub(super) fn all_to_all(table: &mut Table<'_, '_>, t: &AllToAll) -> Result<Made, Error> {
    let sizes = table.sizes(t.size, t.sizes.as_ref())?;
    table.check_start(t.start)?;
    let hosts = table.list("hosts", t.hosts.as_ref())?;
    let flows = hosts.len() as f64 * hosts.len() as f64;
    table.check_count("hosts", flows, "name fewer hosts")?;
    let demands = traffic::all_to_all(&hosts, &sizes, t.start.0, table.seed(), table.element())
        .map_err(|e| table.refused("hosts", e))?;
    let bytes = demands.iter().map(|d| d.size).fold(0, u64::saturating_add);
    let all = 0..demands.len();
    let mut made = Made::of(demands).expecting(None, &sizes);
    made.schedule.operation("all-to-all", hosts.len() as u32, bytes / (hosts.len() as u64 - 1), all);
    Ok(made)
}

pub(super) fn training_step(table: &mut Table<'_, '_>, t: &TrainingStep) -> Result<Made, Error> {
    let hosts = table.list("hosts", t.hosts.as_ref())?;
    table.check_start(t.start)?;
    for (key, span) in [("start", t.start), ("forward", t.forward), ("optimizer", t.optimizer)] {
        table.cx.at_most(&table.at(key), span, Span(LONGEST))?;
    }
    if let Some(backward) = t.backward {
        table.cx.at_most(&table.at("backward"), backward, Span(LONGEST))?;
    }
    if t.expert == 1 {
        for (key, written) in
            [("experts_per_token", t.experts_per_token > 1), ("expert_parameters", t.expert_parameters > 0)]
        {
            if written {
                return table.refuse(
                    key,
                    format!("{key} without experts"),
                    "write the `expert` ranks that hold them",
                );
            }
        }
    }
    if t.scale_up.is_some_and(|rate| rate.0 == 0) {
        return table.refuse("scale_up", "a rate of 0 is out of range", "write a rate such as \"3.6Tbps\"");
    }
    if t.scale_up.is_some() && t.tensor == 1 {
        table.warn("scale_up", "had no effect: a tensor group has one GPU");
    }
    let mut training = Training {
        layers: t.layers,
        hidden: t.hidden,
        sequence: t.sequence,
        micro_batch: t.micro_batch.into(),
        micro_batches: t.micro_batches,
        parameters: t.parameters,
        expert_parameters: t.expert_parameters,
        element: t.element.0,
        gradient: t.gradient.0,
        tensor: t.tensor,
        pipeline: t.pipeline,
        data: 1,
        expert: 1,
        experts_per_token: t.experts_per_token.into(),
        scale_up: t.scale_up.map(|rate| rate.0),
        forward: t.forward.0,
        backward: t.backward.map_or(2 * t.forward.0, |b| b.0),
        steps: t.steps,
        optimizer: t.optimizer.0,
    };
    if hosts.len() < 2 {
        return table.refuse("hosts", "one host has no other host to send to", "write at least two hosts");
    }
    let replica = training.ranks();
    if !(hosts.len() as u64).is_multiple_of(replica) {
        let message = format!("{} hosts cannot be divided into replicas of {replica} ranks", hosts.len());
        let help = "a replica has `tensor` × `pipeline` ranks, or `pipeline` with `scale_up`: change them, or `hosts`";
        return table.refuse("hosts", message, help);
    }
    training.data = (hosts.len() as u64 / replica) as u32;
    training.expert = t.expert;
    if training.inside() > LONGEST {
        let message = format!("the all-reduce of a tensor group takes longer than {}", Span(LONGEST));
        return table.refuse("scale_up", message, "raise the rate");
    }
    let nodes = training.nodes();
    table.check_count("micro_batches", nodes, "use fewer micro-batches, layers or steps")?;
    let program = training.program().map_err(|e| table.refused_key(e))?;
    table.check_count(
        "micro_batches",
        program.messages() as f64,
        "use fewer micro-batches, layers or steps",
    )?;
    let label = |rank: u32, node: u32| format!("node {node} of rank {rank}");
    made(table, program.schedule(&hosts, t.start.0, &label))
}

pub(super) fn ring_all_reduce(table: &mut Table<'_, '_>, t: &RingAllReduce) -> Result<Made, Error> {
    let list = table.list("hosts", t.hosts.as_ref())?;
    let rounds = rounds(table, t.start, t.rounds, t.compute, t.gap)?;
    let steps = 2.0 * (list.len() as f64 - 1.0) * list.len() as f64;
    table.check_count("rounds", steps * f64::from(t.rounds), "run fewer rounds")?;
    made(table, traffic::ring_all_reduce(&list, t.size.0, &rounds))
}

pub(super) fn parameter_server(table: &mut Table<'_, '_>, t: &ParameterServer) -> Result<Made, Error> {
    let servers = table.list("servers", Some(&t.servers))?;
    let workers = match &t.workers {
        Some(_) => table.list("workers", t.workers.as_ref())?,
        None => table.hosts.all.iter().copied().filter(|h| !servers.contains(h)).collect(),
    };
    if let Some(&both) = servers.iter().find(|&s| workers.contains(s)) {
        let name = table.hosts.name(both);
        let message = format!("{name} is both a server and a worker: it would send to itself");
        return table.refuse("servers", message, "remove it from one of the two lists");
    }
    if workers.is_empty() {
        let message = "no host is left to be a worker: every host is a server";
        return table.refuse("servers", message, "name fewer servers: the other hosts are the workers");
    }
    let rounds = rounds(table, t.start, t.rounds, t.compute, t.gap)?;
    let pairs = 2.0 * workers.len() as f64 * servers.len() as f64;
    table.check_count("rounds", pairs * f64::from(t.rounds), "run fewer rounds")?;
    made(table, traffic::parameter_server(&workers, &servers, t.size.0, &rounds))
}

pub(super) fn moe(table: &mut Table<'_, '_>, t: &Moe) -> Result<Made, Error> {
    let list = table.list("hosts", t.hosts.as_ref())?;
    let groups = t.groups as usize;
    if groups == 0 || list.len() % groups != 0 || list.len() / groups < 2 {
        let message = format!("{} hosts cannot be divided into {groups} groups of equal size", list.len());
        let help = "choose a divisor of the number of hosts, with two or more hosts in each group";
        return table.refuse("groups", message, help);
    }
    let members = list.len() / groups;
    if t.experts == 0 || t.experts as usize > members {
        let message = format!("a group of {members} hosts cannot have {} experts", t.experts);
        return table.refuse("experts", message, format!("write 1 to {members}"));
    }
    let weights = t.weights.clone().unwrap_or_else(|| vec![1.0; t.experts as usize]);
    if weights.len() != t.experts as usize {
        let message = format!("expected {} weights, one for each expert, found {}", t.experts, weights.len());
        return table.refuse("weights", message, "write one weight for each expert, or change `experts`");
    }
    if groups == 1 && t.phase.0 > 0 {
        table.warn("phase", "had no effect: there is only one group");
    }
    let flows = 2.0 * list.len() as f64 * f64::from(t.experts) * f64::from(t.rounds);
    table.check_count("rounds", flows, "run fewer rounds, or use fewer experts")?;
    let first = rounds(table, t.start, t.rounds, t.compute, t.gap)?;
    let mut all = Schedule::default();
    for (g, members) in list.chunks(members).enumerate() {
        let start = Span(first.start.saturating_add(t.phase.0.saturating_mul(g as u64)));
        if let Some(duration) = table.duration().filter(|&d| start >= d) {
            let message = format!("group {g} starts at {start}, after the run ends at {duration}");
            return table.refuse("phase", message, "choose a shorter phase, or raise run.duration");
        }
        let spec = traffic::Moe {
            hosts: members,
            weights: &weights,
            tokens: t.tokens,
            token_size: t.token_size.0,
            per_token: t.experts_per_token,
        };
        // Every group draws from a stream of its own.
        let element = table.element() << 32 | g as u64;
        let rounds = Rounds { start: start.0, ..first };
        let group = traffic::moe(&spec, &rounds, table.seed(), element).map_err(|e| table.refused_key(e))?;
        all.add(group);
    }
    made(table, Ok(all))
}

pub(super) fn probe(table: &mut Table<'_, '_>, t: &Probe) -> Result<Made, Error> {
    let sources = table.list("from", t.from.as_ref())?;
    let destinations = table.list("to", t.to.as_ref())?;
    let sizes = sizes::fixed(table.cx, &table.at("size"), t.size)?;
    if t.period.0 == 0 {
        return table.refuse("period", "must be positive", "write a time above 0");
    }
    let (from, until) = table.span(t.start, t.stop, "probes")?;
    let flows = (until - from).div_ceil(t.period.0) as f64 * sources.len() as f64;
    table.check_count("period", flows, "choose a longer period or fewer senders")?;
    let spec = traffic::Probes {
        sources: &sources,
        destinations: &destinations,
        size: t.size.0,
        period: t.period.0,
        from,
        until,
    };
    let demands = traffic::probes(&spec).map_err(|e| table.refused_key(e))?;
    Ok(Made::of(demands).expecting(None, &sizes))
}

/// The rounds of a collective; times without effect are named.
fn rounds(
    table: &mut Table<'_, '_>,
    start: Span,
    count: u32,
    compute: Span,
    gap: Span,
) -> Result<Rounds, Error> {
    table.check_start(start)?;
    if count == 0 {
        return table.refuse("rounds", "rounds = 0 is out of range", "write a whole number, 1 or more");
    }
    for (key, span) in [("start", start), ("compute", compute), ("gap", gap)] {
        table.cx.at_most(&table.at(key), span, Span(LONGEST))?;
    }
    if count == 1 && gap.0 > 0 {
        table.warn("gap", "had no effect: there is only one round");
    }
    Ok(Rounds { start: start.0, count, compute: compute.0, gap: gap.0 })
}

/// A schedule with its flows, or its refusal.
pub(super) fn made(table: &Table<'_, '_>, schedule: Result<Schedule, SpecError>) -> Result<Made, Error> {
    let schedule = schedule.map_err(|e| table.refused_key(e))?;
    debug_assert!(local(&schedule));
    Ok(Made { schedule, ..Made::default() })
}

/// Whether all that happens at a barrier happens at its host.
fn local(schedule: &Schedule) -> bool {
    let host = |barrier: u32| schedule.barriers[barrier as usize].host;
    schedule.steps.iter().all(|s| {
        s.after.is_none_or(|b| host(b) == s.demand.src) && s.opens.is_none_or(|b| host(b) == s.demand.dst)
    })
}
