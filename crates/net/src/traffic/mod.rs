//! Traffic: who sends how much to whom, and when.
//!
//! This module has flows at random times or at fixed intervals. Dependent messages are in `collective.rs`,
//! pairs by share in `pairs.rs`.
//!
//! Arrivals, sizes and endpoints are drawn from three streams, so that a change of the one leaves the others
//! where they were. `element` is the index of the traffic table: tables do not disturb each other either.

mod around;
mod burst;
pub mod chakra;
mod collective;
mod csv;
mod groups;
mod hpcc;
mod matrix;
mod pairs;
mod program;
#[cfg(test)]
mod tests;
mod trace;
mod training;

pub use around::{Around, around};
pub use burst::{Burst, burst};
pub use collective::{
    Barrier, Moe, Operation, Probes, Rounds, Schedule, Step, all_to_all, moe, parameter_server, probes,
    ring_all_reduce,
};
pub use csv::flows_csv;
pub use groups::{Level, groups};
pub use hpcc::{flows_hpcc, flows_left_out};
pub use matrix::{MatrixEntry, matrix_csv};
pub use pairs::Pairs;
pub use program::{Label, Members, Node, Pattern, Program, Work};
pub use trace::{Groups, Replay, Replayed, Settings, group_file};
pub use training::Training;

use crate::error::SpecError;
use crate::sizes::SizeDistribution;
use crate::topology::NodeId;
use xoff_kernel::random::Stream;
use xoff_kernel::time::{SECOND, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    pub src: NodeId,
    /// Receiver, never the sender.
    pub dst: NodeId,
    /// Payload bytes, at least 1.
    pub size: u64,
    /// When the sender may begin.
    pub start: Time,
}

/// Most flows that one generator makes.
pub const MAX_FLOWS: u64 = 50_000_000;

struct Streams {
    arrivals: Stream,
    sizes: Stream,
    endpoints: Stream,
}

impl Streams {
    fn new(seed: u64, element: u64) -> Self {
        Self {
            arrivals: Stream::new(seed, "flow arrivals", element),
            sizes: Stream::new(seed, "flow sizes", element),
            endpoints: Stream::new(seed, "flow endpoints", element),
        }
    }
}

/// When flows of a Poisson process arrive, and how large they are.
#[derive(Clone, Copy, Debug)]
pub struct Arrivals<'a> {
    pub sizes: &'a SizeDistribution,
    /// Flows per second, of all sources together.
    pub rate: f64,
    /// No flow starts before.
    pub from: Time,
    /// No flow starts at or after.
    pub until: Time,
    /// No more than so many flows.
    pub most: u64,
}

/// Draws the flows of a Poisson process among given pairs, in the order of time.
pub fn poisson_among(
    pairs: &Pairs,
    spec: &Arrivals<'_>,
    seed: u64,
    element: u64,
) -> Result<Vec<Demand>, SpecError> {
    if !(spec.rate > 0.0 && spec.rate.is_finite()) {
        let message = format!("{} flows per second", spec.rate);
        return Err(SpecError::new("rate", message, "the rate of arrivals must be above zero"));
    }
    let expected = spec.until.saturating_sub(spec.from) as f64 / SECOND as f64 * spec.rate;
    let expected = expected.min(spec.most as f64);
    check_count("rate", expected)?;

    let mut streams = Streams::new(seed, element);
    let gap = SECOND as f64 / spec.rate;
    let mut flows = Vec::with_capacity(expected as usize);
    let mut start = spec.from;
    loop {
        // To the nearest picosecond; a float that is too large saturates.
        start = start.saturating_add((streams.arrivals.exponential(gap) + 0.5) as Time);
        if start >= spec.until || flows.len() as u64 == spec.most {
            return Ok(flows);
        }
        let (src, dst) = pairs.draw(&mut streams.endpoints);
        let size = spec.sizes.sample(&mut streams.sizes);
        flows.push(Demand { src, dst, size, start });
    }
}

/// How the events of incasts choose among their receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Each event draws one uniformly.
    Random,
    /// One is drawn uniformly for all events.
    Once,
    /// They take turns in the order of the list.
    Rotate,
}

/// Several senders to one receiver at once, once or periodically.
#[derive(Clone, Copy, Debug)]
pub struct Incast<'a> {
    /// One node is a named receiver.
    pub receivers: &'a [NodeId],
    pub order: Order,
    /// Each event draws `fan_in` different nodes of these, none of them its receiver.
    pub senders: &'a [NodeId],
    pub fan_in: u32,
    /// Flows of each sender in an event, each with a size of its own.
    pub flows_per_sender: u32,
    pub sizes: &'a SizeDistribution,
    pub first: Time,
    /// Time between events; `None` is one event.
    pub period: Option<Time>,
    /// No event happens at or after.
    pub until: Time,
}

/// Draws the flows of incast events, in the order of time.
pub fn incast(spec: &Incast<'_>, seed: u64, element: u64) -> Result<Vec<Demand>, SpecError> {
    positions("receivers", spec.receivers)?;
    let senders = positions("senders", spec.senders)?;
    nonzero("fan_in", spec.fan_in)?;
    nonzero("flows_per_sender", spec.flows_per_sender)?;
    let receives = spec.receivers.iter().any(|&receiver| position(&senders, receiver).is_some());
    let available = spec.senders.len() - usize::from(receives);
    if spec.fan_in as usize > available {
        return Err(SpecError::new(
            "fan_in",
            format!(
                "{} different senders are needed, but only {available} hosts other than the receiver can send",
                spec.fan_in
            ),
            format!("write at most {available}, or add senders"),
        ));
    }
    let events = match spec.period {
        Some(0) => {
            return Err(SpecError::new(
                "period",
                "must be positive",
                "write a time above 0, such as \"1ms\"",
            ));
        }
        Some(period) => spec.until.saturating_sub(spec.first).div_ceil(period),
        None => u64::from(spec.first < spec.until),
    };
    let per_event = u64::from(spec.fan_in).saturating_mul(u64::from(spec.flows_per_sender));
    let flows = events.saturating_mul(per_event);
    check_count(if spec.period.is_some() { "period" } else { "flows_per_sender" }, flows as f64)?;

    let mut streams = Streams::new(seed, element);
    let mut demands = Vec::with_capacity(flows as usize);
    let mut pool = spec.senders.to_vec();
    let receivers = spec.receivers.len() as u64;
    let once = if spec.order == Order::Once { streams.endpoints.below(receivers) } else { 0 };
    for event in 0..events {
        let start = spec.first + event * spec.period.unwrap_or(0);
        let turn = match spec.order {
            Order::Random => streams.endpoints.below(receivers),
            Order::Once => once,
            Order::Rotate => event % receivers,
        };
        let dst = spec.receivers[turn as usize];
        // The first steps of a Fisher-Yates shuffle of those that may send. It begins from the scenario's
        // order, so that an event does not depend on the events before but through the stream.
        pool.copy_from_slice(spec.senders);
        let mut count = pool.len();
        if let Some(at) = position(&senders, dst) {
            pool[at..].rotate_left(1);
            count -= 1;
        }
        for i in 0..spec.fan_in as usize {
            pool.swap(i, i + streams.endpoints.below((count - i) as u64) as usize);
            for _ in 0..spec.flows_per_sender {
                let size = spec.sizes.sample(&mut streams.sizes);
                demands.push(Demand { src: pool[i], dst, size, start });
            }
        }
    }
    Ok(demands)
}

/// A random permutation: every host sends one flow and receives one, none from itself (the hosts in a random
/// ring, each sending to the next). All start at once.
pub fn permutation(
    hosts: &[NodeId],
    sizes: &SizeDistribution,
    start: Time,
    seed: u64,
    element: u64,
) -> Result<Vec<Demand>, SpecError> {
    positions("hosts", hosts)?;
    if hosts.len() < 2 {
        return Err(SpecError::new("hosts", "a permutation of one host", "name at least two hosts"));
    }
    let mut streams = Streams::new(seed, element);
    let mut circle = hosts.to_vec();
    for i in 1..circle.len() {
        circle.swap(i, streams.endpoints.below(i as u64 + 1) as usize);
    }
    let receivers = circle[1..].iter().chain(&circle[..1]);
    let pairs = circle.iter().zip(receivers);
    Ok(pairs.map(|(&src, &dst)| Demand { src, dst, size: sizes.sample(&mut streams.sizes), start }).collect())
}

/// Each node with its position in the list, by node.
fn positions(key: &str, nodes: &[NodeId]) -> Result<Vec<(NodeId, usize)>, SpecError> {
    if nodes.is_empty() {
        return Err(SpecError::new(key, "the list is empty", "name at least one host"));
    }
    let mut sorted: Vec<(NodeId, usize)> = nodes.iter().copied().zip(0..).collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        None => Ok(sorted),
        Some(pair) => Err(SpecError::new(
            format!("{key}[{}]", pair[1].1),
            format!("the host is listed already, as {key}[{}]", pair[0].1),
            "list every host once",
        )),
    }
}

fn position(sorted: &[(NodeId, usize)], node: NodeId) -> Option<usize> {
    sorted.binary_search_by_key(&node, |&(node, _)| node).ok().map(|i| sorted[i].1)
}

/// A uniform node of the list, but for the one at `except`.
fn other(nodes: &[NodeId], except: Option<usize>, stream: &mut Stream) -> NodeId {
    let Some(except) = except else {
        return nodes[stream.below(nodes.len() as u64) as usize];
    };
    let drawn = stream.below(nodes.len() as u64 - 1) as usize;
    nodes[drawn + usize::from(drawn >= except)]
}

/// Refuses more than [`MAX_FLOWS`].
fn check_count(key: &str, flows: f64) -> Result<(), SpecError> {
    if flows <= MAX_FLOWS as f64 {
        return Ok(());
    }
    let help = format!("the maximum is {MAX_FLOWS}: choose a shorter run, a lower load or larger flows");
    Err(SpecError::new(key, format!("about {flows:.0} flows are too many"), help))
}

fn nonzero(key: &str, count: u32) -> Result<(), SpecError> {
    if count > 0 {
        return Ok(());
    }
    Err(SpecError::new(key, format!("{key} = 0 is out of range"), "write a whole number, 1 or more"))
}

/// Deals flows out to several priorities: one index into `weights` for each of
/// `flows`, drawn by weight. No other draw of the table moves by it.
pub fn split(weights: &[f64], flows: usize, seed: u64, element: u64) -> Vec<usize> {
    let mut stream = Stream::new(seed, "flow priorities", element);
    let sums = pairs::sums(weights);
    (0..flows).map(|_| pairs::by_share(&sums, &mut stream)).collect()
}
