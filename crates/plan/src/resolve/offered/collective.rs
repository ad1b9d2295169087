//! Collectives, whose flows wait for others; all-to-all; probes.

use super::super::{Context, sizes};
use super::hosts::HostSets;
use super::{Made, check_count, check_start, refused, refused_key, size_or_sizes, span};
use crate::error::Error;
use crate::scenario::{AllToAll, Moe, ParameterServer, Probe, RingAllReduce};
use xoff_net::error::SpecError;
use xoff_net::traffic::{self, Rounds, Schedule};
use xoff_net::units::Span;

pub(super) fn all_to_all(
    cx: &Context<'_>,
    i: usize,
    t: &AllToAll,
    hosts: &mut HostSets<'_>,
) -> Result<Made, Error> {
    let sizes = size_or_sizes(cx, i, t.size, t.sizes.as_ref())?;
    check_start(cx, i, t.start)?;
    let path = format!("traffic[{i}].hosts");
    let hosts = hosts.list(cx, &path, t.hosts.as_ref())?;
    let flows = hosts.len() as f64 * hosts.len() as f64;
    check_count(cx, &path, flows, "name fewer hosts")?;
    let demands = traffic::all_to_all(&hosts, &sizes, t.start.0, cx.scenario.run.seed, i as u64)
        .map_err(|e| refused(cx, &path, e))?;
    Ok(Made::of(demands).expecting(None, &sizes))
}

pub(super) fn ring_all_reduce(
    cx: &mut Context<'_>,
    i: usize,
    t: &RingAllReduce,
    hosts: &mut HostSets<'_>,
) -> Result<Made, Error> {
    let list = hosts.list(cx, &format!("traffic[{i}].hosts"), t.hosts.as_ref())?;
    let rounds = rounds(cx, i, t.start, t.rounds, t.compute, t.gap)?;
    let steps = 2.0 * (list.len() as f64 - 1.0) * list.len() as f64;
    check_count(cx, &format!("traffic[{i}].rounds"), steps * f64::from(t.rounds), "run fewer rounds")?;
    made(cx, i, traffic::ring_all_reduce(&list, t.size.0, &rounds))
}

pub(super) fn parameter_server(
    cx: &mut Context<'_>,
    i: usize,
    t: &ParameterServer,
    hosts: &mut HostSets<'_>,
) -> Result<Made, Error> {
    let at = |key: &str| format!("traffic[{i}].{key}");
    let servers = hosts.list(cx, &at("servers"), Some(&t.servers))?;
    let workers = match &t.workers {
        Some(_) => hosts.list(cx, &at("workers"), t.workers.as_ref())?,
        None => hosts.all.iter().copied().filter(|h| !servers.contains(h)).collect(),
    };
    if let Some(&both) = servers.iter().find(|&s| workers.contains(s)) {
        let message = format!("{} is both a server and a worker: it would send to itself", hosts.name(both));
        return Err(cx.doc.error(&at("servers"), message, "remove it from one of the two lists"));
    }
    if workers.is_empty() {
        let help = "name fewer servers: the other hosts are the workers";
        return Err(cx.doc.error(
            &at("servers"),
            "no host is left to be a worker: every host is a server",
            help,
        ));
    }
    let rounds = rounds(cx, i, t.start, t.rounds, t.compute, t.gap)?;
    let pairs = 2.0 * workers.len() as f64 * servers.len() as f64;
    check_count(cx, &at("rounds"), pairs * f64::from(t.rounds), "run fewer rounds")?;
    made(cx, i, traffic::parameter_server(&workers, &servers, t.size.0, &rounds))
}

pub(super) fn moe(cx: &mut Context<'_>, i: usize, t: &Moe, hosts: &mut HostSets<'_>) -> Result<Made, Error> {
    let at = |key: &str| format!("traffic[{i}].{key}");
    let list = hosts.list(cx, &at("hosts"), t.hosts.as_ref())?;
    let groups = t.groups as usize;
    if groups == 0 || list.len() % groups != 0 || list.len() / groups < 2 {
        let message = format!("{} hosts cannot be divided into {groups} groups of equal size", list.len());
        let help = "choose a divisor of the number of hosts, with two or more hosts in each group";
        return Err(cx.doc.error(&at("groups"), message, help));
    }
    let members = list.len() / groups;
    if t.experts == 0 || t.experts as usize > members {
        let message = format!("a group of {members} hosts cannot have {} experts", t.experts);
        return Err(cx.doc.error(&at("experts"), message, format!("write 1 to {members}")));
    }
    let weights = t.weights.clone().unwrap_or_else(|| vec![1.0; t.experts as usize]);
    if weights.len() != t.experts as usize {
        let message = format!("expected {} weights, one for each expert, found {}", t.experts, weights.len());
        return Err(cx.doc.error(
            &at("weights"),
            message,
            "write one weight for each expert, or change `experts`",
        ));
    }
    if groups == 1 && t.phase.0 > 0 {
        cx.warn(at("phase"), "had no effect: there is only one group");
    }
    let flows = 2.0 * list.len() as f64 * f64::from(t.experts) * f64::from(t.rounds);
    check_count(cx, &at("rounds"), flows, "run fewer rounds, or use fewer experts")?;
    let first = rounds(cx, i, t.start, t.rounds, t.compute, t.gap)?;
    let mut all = Schedule::default();
    for (g, members) in list.chunks(members).enumerate() {
        let start = Span(first.start.saturating_add(t.phase.0.saturating_mul(g as u64)));
        if let Some(duration) = cx.scenario.run.duration.filter(|&d| start >= d) {
            let message = format!("group {g} starts at {start}, after the run ends at {duration}");
            return Err(cx.doc.error(&at("phase"), message, "choose a shorter phase, or raise run.duration"));
        }
        let spec = traffic::Moe {
            hosts: members,
            weights: &weights,
            tokens: t.tokens,
            token_size: t.token_size.0,
            per_token: t.experts_per_token,
        };
        // Every group draws from a stream of its own.
        let element = (i as u64) << 32 | g as u64;
        let rounds = Rounds { start: start.0, ..first };
        let group =
            traffic::moe(&spec, &rounds, cx.scenario.run.seed, element).map_err(|e| refused_key(cx, i, e))?;
        let base = all.barriers.len() as u32;
        all.barriers.extend(group.barriers);
        all.steps.extend(group.steps.into_iter().map(|s| traffic::Step {
            after: s.after.map(|b| base + b),
            opens: s.opens.map(|b| base + b),
            ..s
        }));
    }
    made(cx, i, Ok(all))
}

pub(super) fn probe(cx: &Context<'_>, i: usize, t: &Probe, hosts: &mut HostSets<'_>) -> Result<Made, Error> {
    let at = |key: &str| format!("traffic[{i}].{key}");
    let sources = hosts.list(cx, &at("from"), t.from.as_ref())?;
    let destinations = hosts.list(cx, &at("to"), t.to.as_ref())?;
    let sizes = sizes::fixed(cx, &at("size"), t.size)?;
    if t.period.0 == 0 {
        return Err(cx.doc.error(&at("period"), "must be positive", "write a time above 0"));
    }
    let (from, until) = span(cx, i, t.start.0, t.stop.map(|s| s.0), "probes")?;
    let flows = (until - from).div_ceil(t.period.0) as f64 * sources.len() as f64;
    check_count(cx, &at("period"), flows, "choose a longer period or fewer senders")?;
    let spec = traffic::Probes {
        sources: &sources,
        destinations: &destinations,
        size: t.size.0,
        period: t.period.0,
        from,
        until,
    };
    let demands = traffic::probes(&spec).map_err(|e| refused_key(cx, i, e))?;
    Ok(Made::of(demands).expecting(None, &sizes))
}

/// The rounds of a collective; times without effect are named.
fn rounds(
    cx: &mut Context<'_>,
    i: usize,
    start: Span,
    count: u32,
    compute: Span,
    gap: Span,
) -> Result<Rounds, Error> {
    let at = |key: &str| format!("traffic[{i}].{key}");
    check_start(cx, i, start)?;
    if count == 0 {
        return Err(cx.doc.error(
            &at("rounds"),
            "rounds = 0 is out of range",
            "write a whole number, 1 or more",
        ));
    }
    for (key, span) in [("start", start), ("compute", compute), ("gap", gap)] {
        if span.0 > super::super::LONGEST {
            let message = format!("{span} is out of range");
            let help = format!("the maximum is {}", Span(super::super::LONGEST));
            return Err(cx.doc.error(&at(key), message, help));
        }
    }
    if count == 1 && gap.0 > 0 {
        cx.warn(at("gap"), "had no effect: there is only one round");
    }
    Ok(Rounds { start: start.0, count, compute: compute.0, gap: gap.0 })
}

/// A schedule with its flows, or its refusal.
fn made(cx: &Context<'_>, i: usize, schedule: Result<Schedule, SpecError>) -> Result<Made, Error> {
    let schedule = schedule.map_err(|e| refused_key(cx, i, e))?;
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
