//! Traffic of distributed computing, in which flows wait for others: ring
//! all-reduce, parameter server, mixture of experts. And all-to-all, probes.

use super::pairs::{Pairs, by_share, sums};
use super::{Demand, check_count, nonzero, positions};
use crate::error::SpecError;
use crate::sizes::SizeDistribution;
use crate::topology::NodeId;
use std::ops::Range;
use xoff_kernel::random::Stream;
use xoff_kernel::time::Time;

/// A message that may wait for the delivery of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The message. If it waits, its start is that of the whole.
    pub demand: Demand,
    /// The barrier after which it starts.
    pub after: Option<u32>,
    /// The barrier that its delivery counts towards.
    pub opens: Option<u32>,
}

/// Where a host waits until all messages and barriers that count towards it are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Barrier {
    /// The host: receiver of the messages before, sender of the messages after.
    pub host: NodeId,
    /// It waits until then, too.
    pub start: Time,
    /// From the last arrival until the next messages begin.
    pub delay: Time,
    /// The barriers of the same host that wait for it, each of a higher index.
    pub then: Vec<u32>,
}

/// A collective operation: messages that are one thing to those who sent them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Index into [`Schedule::names`].
    pub name: usize,
    /// How many hosts take part.
    pub hosts: u32,
    /// Bytes of the buffer that it is about, as its users count them: of each host's where all-reduce or
    /// all-to-all, of the whole where all-gather or reduce-scatter.
    pub size: u64,
    /// Its messages, in [`Schedule::steps`].
    pub steps: Range<usize>,
}

/// Messages and their dependencies. A step comes after all steps that it waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    pub steps: Vec<Step>,
    pub barriers: Vec<Barrier>,
    /// What operations are called; several may share a name.
    pub names: Vec<String>,
    pub operations: Vec<Operation>,
    /// The barriers that open at the ends of iterations: of each iteration, one for each host.
    pub iterations: Vec<Vec<u32>>,
}

impl Schedule {
    pub(super) fn barrier(&mut self, host: NodeId, delay: Time) -> u32 {
        self.barriers.push(Barrier { host, start: 0, delay, then: Vec::new() });
        (self.barriers.len() - 1) as u32
    }

    /// Adds an operation of some steps, if there are any.
    pub fn operation(&mut self, name: &str, hosts: u32, size: u64, steps: Range<usize>) {
        if steps.is_empty() {
            return;
        }
        let known = self.names.iter().position(|known| known == name);
        let name = known.unwrap_or_else(|| {
            self.names.push(name.to_string());
            self.names.len() - 1
        });
        self.operations.push(Operation { name, hosts, size, steps });
    }

    /// Adds another schedule's messages, with what they depend on.
    pub fn add(&mut self, other: Schedule) {
        let (barrier, step) = (self.barriers.len() as u32, self.steps.len());
        self.barriers.extend(
            other
                .barriers
                .into_iter()
                .map(|b| Barrier { then: b.then.into_iter().map(|then| barrier + then).collect(), ..b }),
        );
        self.steps.extend(other.steps.into_iter().map(|s| Step {
            after: s.after.map(|b| barrier + b),
            opens: s.opens.map(|b| barrier + b),
            ..s
        }));
        for Operation { name, hosts, size, steps } in other.operations {
            self.operation(&other.names[name], hosts, size, step + steps.start..step + steps.end);
        }
        self.iterations
            .extend(other.iterations.into_iter().map(|all| all.into_iter().map(|b| barrier + b).collect()));
    }
}

/// When things happen in a collective, and how often.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    pub start: Time,
    /// How many, at least 1.
    pub count: u32,
    /// Time that a host computes with the received data before it sends the result on.
    pub compute: Time,
    /// Time that a host computes between its rounds.
    pub gap: Time,
}

impl Rounds {
    fn check(&self, flows_per_round: u64) -> Result<(), SpecError> {
        nonzero("rounds", self.count)?;
        check_count("rounds", flows_per_round.saturating_mul(self.count.into()) as f64)
    }
}

/// `size` bytes in `parts` parts that differ by one byte at most, the larger first.
pub(super) fn part(size: u64, parts: u64, index: u64) -> u64 {
    size / parts + u64::from(index < size % parts)
}

/// The messages of a step of a ring of `n` that exchanges `size` bytes, cut into a chunk for each member: sender,
/// receiver, bytes. Member i sends chunk i − step to the next member. The steps 0 to n − 2 are a reduce-scatter, or
/// an all-gather; the steps 0 to 2n − 3 are an all-reduce.
pub(super) fn ring(n: usize, size: u64, step: usize) -> impl Iterator<Item = (usize, usize, u64)> {
    (0..n).map(move |from| {
        let chunk = (from + n - step % n) % n;
        (from, (from + 1) % n, part(size, n as u64, chunk as u64))
    })
}

/// Every host sends one flow to every other, all at once. The flows are listed
/// in rounds in which every host sends one and receives one.
pub fn all_to_all(
    hosts: &[NodeId],
    sizes: &SizeDistribution,
    start: Time,
    seed: u64,
    element: u64,
) -> Result<Vec<Demand>, SpecError> {
    several("hosts", hosts)?;
    let n = hosts.len();
    let flows = (n as u64).saturating_mul(n as u64 - 1);
    check_count("hosts", flows as f64)?;
    let mut stream = Stream::new(seed, "flow sizes", element);
    let mut demands = Vec::with_capacity(flows as usize);
    for shift in 1..n {
        for i in 0..n {
            let (src, dst) = (hosts[i], hosts[(i + shift) % n]);
            demands.push(Demand { src, dst, size: sizes.sample(&mut stream), start });
        }
    }
    Ok(demands)
}

fn several(key: &str, hosts: &[NodeId]) -> Result<(), SpecError> {
    positions(key, hosts)?;
    if hosts.len() < 2 {
        return Err(SpecError::new(key, "one host has no other host to send to", "write at least two hosts"));
    }
    Ok(())
}

/// Ring all-reduce of `size` bytes per host over `hosts`, each sending to the next (Patarasu and Yuan, JPDC
/// 2009): in each step a host sends a chunk as soon as it has received that chunk in the step before. In the
/// first n − 1 steps, a host reduces the received chunk before it sends it on, which takes `compute`.
pub fn ring_all_reduce(hosts: &[NodeId], size: u64, rounds: &Rounds) -> Result<Schedule, SpecError> {
    several("hosts", hosts)?;
    let n = hosts.len();
    if size < n as u64 {
        let message = format!("{size} B is too small: each of {n} hosts needs a chunk of at least 1 B");
        return Err(SpecError::new("size", message, format!("write {n}B or more")));
    }
    let steps = 2 * (n - 1);
    rounds.check(steps as u64 * n as u64)?;
    let mut schedule = Schedule::default();
    // For each host: the barrier of its next step.
    let mut before: Vec<Option<u32>> = vec![None; n];
    for round in 0..rounds.count {
        let from = schedule.steps.len();
        for step in 0..steps {
            let last = step + 1 == steps;
            let delay = match step {
                _ if last => rounds.gap,
                _ if step < n - 1 => rounds.compute,
                _ => 0,
            };
            let ends = last && round + 1 == rounds.count;
            let after = before.clone();
            for (from, to, size) in ring(n, size, step) {
                let opens = (!ends).then(|| schedule.barrier(hosts[to], delay));
                before[to] = opens;
                let demand = Demand { src: hosts[from], dst: hosts[to], size, start: rounds.start };
                schedule.steps.push(Step { demand, after: after[from], opens });
            }
        }
        schedule.operation("all-reduce", n as u32, size, from..schedule.steps.len());
    }
    Ok(schedule)
}

/// Workers and parameter servers: every worker pushes `size` bytes, cut into a shard for each server; when a
/// server has the shards of all workers, it computes and sends its result, as large as its shard, to all of
/// them; a worker begins its next round when it has the results of all servers.
pub fn parameter_server(
    workers: &[NodeId],
    servers: &[NodeId],
    size: u64,
    rounds: &Rounds,
) -> Result<Schedule, SpecError> {
    let known = positions("workers", workers)?;
    positions("servers", servers)?;
    if let Some(i) = servers.iter().position(|&s| super::position(&known, s).is_some()) {
        let message = "a server is also a worker: it would send to itself";
        return Err(SpecError::new(format!("servers[{i}]"), message, "remove it from the workers"));
    }
    let k = servers.len() as u64;
    if size < k {
        let message = format!("{size} B is too small: each of {k} servers needs a shard of at least 1 B");
        return Err(SpecError::new("size", message, format!("write {k}B or more")));
    }
    rounds.check((workers.len() as u64).saturating_mul(2 * k))?;
    let mut schedule = Schedule::default();
    let mut before: Vec<Option<u32>> = vec![None; workers.len()];
    for round in 0..rounds.count {
        let last = round + 1 == rounds.count;
        let full: Vec<u32> = servers.iter().map(|&s| schedule.barrier(s, rounds.compute)).collect();
        for (&worker, &after) in workers.iter().zip(&before) {
            for (shard, (&server, &gate)) in (0..).zip(servers.iter().zip(&full)) {
                let demand =
                    Demand { src: worker, dst: server, size: part(size, k, shard), start: rounds.start };
                schedule.steps.push(Step { demand, after, opens: Some(gate) });
            }
        }
        for (worker, next) in workers.iter().zip(&mut before) {
            *next = (!last).then(|| schedule.barrier(*worker, rounds.gap));
        }
        for (shard, (&server, &gate)) in (0..).zip(servers.iter().zip(&full)) {
            for (&worker, &opens) in workers.iter().zip(&before) {
                let demand =
                    Demand { src: server, dst: worker, size: part(size, k, shard), start: rounds.start };
                schedule.steps.push(Step { demand, after: Some(gate), opens });
            }
        }
    }
    Ok(schedule)
}

#[derive(Clone, Copy, Debug)]
pub struct Moe<'a> {
    /// The hosts; each has tokens in every round.
    pub hosts: &'a [NodeId],
    /// Weight of each expert; the first hosts hold one expert each. At least one.
    pub weights: &'a [f64],
    /// Tokens of a host in a round, at least 1.
    pub tokens: u32,
    /// Bytes of a token, at least 1.
    pub token_size: u64,
    /// Different experts for each token, drawn by weight; at least 1.
    pub per_token: u32,
}

/// Most tokens that one mixture deals out.
const MAX_DRAWS: u64 = 100_000_000;

/// Dispatch and combine of a mixture of experts: in each round every host sends each expert the tokens that
/// are meant for it, in one flow; an expert that has all its tokens computes and sends each host as many
/// bytes back; a host that has all its results goes on to its next round. Tokens for a host's own expert stay
/// where they are.
pub fn moe(spec: &Moe<'_>, rounds: &Rounds, seed: u64, element: u64) -> Result<Schedule, SpecError> {
    let Moe { hosts, weights, tokens, token_size, per_token } = *spec;
    several("hosts", hosts)?;
    let experts = weights.len();
    if experts == 0 || experts > hosts.len() {
        let message = format!("{experts} experts do not fit on {} hosts", hosts.len());
        let help = "write at least 1 expert, and at most one for each host";
        return Err(SpecError::new("weights", message, help));
    }
    if let Some(i) = weights.iter().position(|w| !(w.is_finite() && *w > 0.0)) {
        let message = format!("a weight of {} is out of range", weights[i]);
        return Err(SpecError::new(format!("weights[{i}]"), message, "write a number above 0"));
    }
    for (key, value) in [("tokens", u64::from(tokens)), ("token_size", token_size)] {
        if value == 0 {
            let message = "0 is out of range: no traffic would be sent";
            return Err(SpecError::new(key, message, "write a value above 0"));
        }
    }
    if per_token == 0 || per_token as usize > experts {
        let message = format!("{per_token} experts per token is out of range: there are {experts} experts");
        return Err(SpecError::new("per_token", message, format!("write 1 to {experts}")));
    }
    rounds.check((hosts.len() as u64).saturating_mul(2 * experts as u64))?;
    let draws = u64::from(tokens) * u64::from(per_token) * hosts.len() as u64;
    let draws = draws.saturating_mul(rounds.count.into());
    if draws > MAX_DRAWS {
        let message = format!("{draws} tokens are too many");
        return Err(SpecError::new("tokens", message, format!("the maximum is {MAX_DRAWS}")));
    }
    let mut stream = Stream::new(seed, "flow endpoints", element);
    let mut schedule = Schedule::default();
    let mut before: Vec<Option<u32>> = vec![None; hosts.len()];
    let mut drawn = vec![vec![0u64; experts]; hosts.len()];
    for round in 0..rounds.count {
        for counts in &mut drawn {
            deal(counts, weights, tokens, per_token, &mut stream);
        }
        // Experts whose tokens are all their own need no barrier, nor do hosts
        // that sent nothing: they go on as they are.
        let arrives = |e: usize| drawn.iter().enumerate().any(|(h, counts)| h != e && counts[e] > 0);
        let sends = |h: usize| drawn[h].iter().enumerate().any(|(e, &count)| h != e && count > 0);
        let full: Vec<Option<u32>> =
            (0..experts).map(|e| arrives(e).then(|| schedule.barrier(hosts[e], rounds.compute))).collect();
        let from = schedule.steps.len();
        for (h, &after) in before.iter().enumerate() {
            for e in (0..experts).filter(|&e| e != h && drawn[h][e] > 0) {
                let size = drawn[h][e].saturating_mul(token_size);
                let demand = Demand { src: hosts[h], dst: hosts[e], size, start: rounds.start };
                schedule.steps.push(Step { demand, after, opens: full[e] });
            }
        }
        let buffer = u64::from(tokens) * u64::from(per_token) * token_size;
        schedule.operation("dispatch", hosts.len() as u32, buffer, from..schedule.steps.len());
        let last = round + 1 == rounds.count;
        let from = schedule.steps.len();
        let next: Vec<Option<u32>> = (0..hosts.len())
            .map(|h| match last {
                true => None,
                false if sends(h) => Some(schedule.barrier(hosts[h], rounds.gap)),
                false => before[h],
            })
            .collect();
        for e in 0..experts {
            for h in (0..hosts.len()).filter(|&h| h != e && drawn[h][e] > 0) {
                let size = drawn[h][e].saturating_mul(token_size);
                let demand = Demand { src: hosts[e], dst: hosts[h], size, start: rounds.start };
                schedule.steps.push(Step { demand, after: full[e], opens: next[h] });
            }
        }
        schedule.operation("combine", hosts.len() as u32, buffer, from..schedule.steps.len());
        before = next;
    }
    Ok(schedule)
}

/// Deals `tokens` tokens out: each goes to `per_token` different experts, drawn
/// one after another by the weights of those that are left.
fn deal(counts: &mut [u64], weights: &[f64], tokens: u32, per_token: u32, stream: &mut Stream) {
    counts.fill(0);
    let all = sums(weights);
    let mut left = weights.to_vec();
    for _ in 0..tokens {
        let mut expert = by_share(&all, stream);
        counts[expert] += 1;
        if per_token > 1 {
            left.copy_from_slice(weights);
            for _ in 1..per_token {
                left[expert] = 0.0;
                expert = by_share(&sums(&left), stream);
                counts[expert] += 1;
            }
        }
    }
}

/// Small flows at regular times.
#[derive(Clone, Copy, Debug)]
pub struct Probes<'a> {
    /// Each sends one probe per period; they begin evenly spread over one period.
    pub sources: &'a [NodeId],
    /// Each source sends to these one after another, beginning after its own place, and never to itself.
    pub destinations: &'a [NodeId],
    /// Payload bytes, at least 1.
    pub size: u64,
    /// Distance of a source's probes, above zero.
    pub period: Time,
    /// The first source's first probe.
    pub from: Time,
    /// No probe starts at or after.
    pub until: Time,
}

pub fn probes(spec: &Probes<'_>) -> Result<Vec<Demand>, SpecError> {
    Pairs::uniform(spec.sources, spec.destinations)?;
    if spec.period == 0 {
        return Err(SpecError::new(
            "period",
            "must be positive",
            "write a time above zero, such as \"10us\"",
        ));
    }
    let periods = spec.until.saturating_sub(spec.from).div_ceil(spec.period);
    let flows = periods.saturating_mul(spec.sources.len() as u64);
    check_count("period", flows as f64)?;
    let n = spec.sources.len() as u128;
    let mut demands = Vec::with_capacity(flows as usize);
    let mut turn: Vec<usize> = (1..=spec.sources.len()).collect();
    for period in 0..periods {
        for (i, (&src, turn)) in (0u128..).zip(spec.sources.iter().zip(&mut turn)) {
            let offset = (u128::from(spec.period) * i / n) as Time;
            let start = spec.from.saturating_add(period.saturating_mul(spec.period)).saturating_add(offset);
            if start >= spec.until {
                continue;
            }
            let mut dst = spec.destinations[*turn % spec.destinations.len()];
            if dst == src {
                *turn += 1;
                dst = spec.destinations[*turn % spec.destinations.len()];
            }
            *turn += 1;
            demands.push(Demand { src, dst, size: spec.size, start });
        }
    }
    Ok(demands)
}
