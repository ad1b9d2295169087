//! Which flows can block which others, from the plan only.
//!
//! *Congested port*: one at which packets can pile up. *Culprits*: the flows that cross it. *Queues that it
//! can pause*: those that send packets to it in lanes that are paused, and so on upstream. Where pauses are by
//! onward port: those that the port's own frames pause, then those that the ports of these queues pause, and
//! so on ([`crate::onward`]). *Victims*: flows that do not cross the port and have packets in these queues.
//!
//! Definition 7 of Liu et al. (NSDI 2025) counts the queues in which culprits wait on their path to the port.
//! These are a part of the affected queues: packets in them can fill the memory of their device, whatever
//! flow they belong to, and pause queues that no culprit crosses. This module counts both: the *victims*, and
//! the victims that share a queue with a culprit.
//!
//! If pauses are by root, with enough isolation queues, each root is examined separately: a port can pause
//! the queues that hold only packets through it ([`Walks::toward`]), so there are no victims. If ports may
//! have too few queues, any two roots may share one, and the result is the worst case, as for all shared
//! queues. The same holds if false roots persist (`merging = "off"`).
//!
//! The result is the possible blocking, not the actual one: all flows count, at any time, and on all routes
//! that they ever take.

mod offered;
mod spread;
pub mod text;
mod worst;

pub use text::{BlockingReport, flow_name, queue_name, render, report};
pub use worst::{Culprit, Link, Tree, TreeQueue, Victim, tree};

use crate::{graph::Lists, roots::Ahead, walks::Walks};
use offered::{arriving, rates};
use spread::Groups;
use std::{borrow::Cow, collections::BTreeSet, ops::Range};
use xoff_net::topology::PortId;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::PauseScope;

/// Why packets can pile up at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// More data is offered than it sends; or it belongs to a receiver that stalls.
    Lasting,
    /// Only together with acknowledgements it is more than it sends.
    Control,
    /// In the long run the port is offered no more than it sends. Packets that were held upstream can arrive
    /// at once, through several links or a faster one.
    Bursts,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Congested {
    pub port: PortId,
    pub cause: Cause,
    /// Bits per second that its flows offer it when all send at once.
    pub offered: u64,
    /// Its rate in bits per second.
    pub rate: u64,
    /// It is where a slow receiver reads, and there are times when it does not.
    pub stalls: bool,
    /// Flows whose data crosses it.
    pub culprits: u64,
    /// Queues that it can pause.
    pub queues: u64,
    /// Flows whose data never crosses it, and waits in these queues.
    pub victims: u64,
    /// Those of them that share a queue with a culprit.
    pub beside: u64,
    /// Flows whose control packets never cross it, and wait in these queues.
    pub control_victims: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocking {
    pub scope: PauseScope,
    /// Ports that can be congested and can pause a queue: lasting causes first, then by victims.
    pub congested: Vec<Congested>,
    /// How many flows are victims of at least one of the ports whose congestion can last.
    pub victims: u64,
    /// How many queues at least one of these ports can pause.
    pub queues: u64,
    pub flows: u64,
    /// How many queues can be paused at all, as far as flows come through them.
    pub all_queues: u64,
    /// Pauses name a root, and queues suffice for every root: no two congested ports share a queue.
    pub by_root: bool,
}

impl Blocking {
    pub fn lasting(&self) -> &[Congested] {
        &self.congested[..self.congested.partition_point(|c| c.cause == Cause::Lasting)]
    }
}

/// The walks to ask about a congested port.
pub fn view<'w>(walks: &'w Walks, blocking: &Blocking, port: PortId) -> Cow<'w, Walks> {
    if blocking.by_root { Cow::Owned(walks.toward(port)) } else { Cow::Borrowed(walks) }
}

/// The same where no two congested ports share a queue. `all_queues` is the number of queues
/// that can be paused.
fn by_root(plan: &Plan, walks: &Walks, all_queues: u64) -> Blocking {
    let mut congested = candidates(plan, walks);
    let (mut victims, mut queues) = (BTreeSet::new(), 0);
    for c in &mut congested {
        let tree = tree(plan, &walks.toward(c.port), c.port);
        c.queues = tree.queues.len() as u64;
        c.victims = tree.victims.len() as u64;
        c.beside = tree.victims.iter().filter(|i| i.beside).count() as u64;
        if c.cause == Cause::Lasting {
            victims.extend(tree.victims.iter().map(|i| i.flow));
            queues += c.queues;
        }
    }
    congested.retain(|c| c.queues > 0);
    congested.sort_by_key(|c| (c.cause, std::cmp::Reverse((c.victims, c.queues, c.culprits)), c.port));
    Blocking {
        scope: PauseScope::Root,
        congested,
        victims: victims.len() as u64,
        queues,
        flows: plan.flows.len() as u64,
        all_queues,
        by_root: true,
    }
}

/// `ahead` has the roots ahead of each port, for pauses by root with separate queues
/// ([`crate::roots::apart`]).
pub fn blocking(plan: &Plan, walks: &Walks, ahead: Option<&Ahead>) -> Blocking {
    let scope = plan.flow_control.traits().pause_scope;
    if let Some(ahead) = ahead {
        return by_root(plan, walks, ahead.roots().1 as u64);
    }
    let mut congested = candidates(plan, walks);
    let groups = Groups::new(&walks.upstream);
    let of = |(c, set): (&Congested, u32)| walks.of_port.get(c.port).iter().map(move |&queue| (set, queue));
    let asked = Lists::of(congested.len(), congested.iter().zip(0..).flat_map(of).collect());
    let (mut victims, mut queues) = (0, 0);

    let count = walks.queues.len() as u32;
    let own = Lists::of(count as usize, (0..count).map(|q| (q, q)).collect());
    groups.spread(&walks.upstream, &own, count, &|_| true, &asked, |set, _, bits| {
        let Some(set) = set else {
            queues += ones(bits);
            return false;
        };
        let its = &mut congested[set as usize];
        its.queues += ones(bits);
        its.cause == Cause::Lasting
    });
    for is_control in [false, true] {
        let kind = Kind::new(walks, is_control);
        let (all, begins) = (kind.walks.len() as u32, |i| kind.begins(walks, i));
        groups.spread(&walks.upstream, &kind.through, all, &begins, &asked, |set, range, bits| {
            let Some(set) = set else {
                victims += if is_control { 0 } else { kind.flows(walks, &range, bits) };
                return false;
            };
            let its = &mut congested[set as usize];
            kind.clear(walks, its.port, scope == PauseScope::Flow, &range, bits);
            *(if is_control { &mut its.control_victims } else { &mut its.victims }) +=
                kind.flows(walks, &range, bits);
            its.cause == Cause::Lasting
        });
    }
    let mut beside = worst::Beside::new(walks);
    congested.iter_mut().for_each(|c| c.beside = beside.count(walks, c.port, scope == PauseScope::Flow));
    // A port that can pause no queue has no victims.
    congested.retain(|c| c.queues > 0);
    congested.sort_by_key(|c| {
        (c.cause, std::cmp::Reverse((c.victims, c.beside, c.control_victims, c.queues, c.culprits)), c.port)
    });
    let (flows, all_queues) = (plan.flows.len() as u64, u64::from(count) - walks.unstopped);
    Blocking { scope, congested, victims, queues, flows, all_queues, by_root: false }
}

/// The ports that can be congested, without the effect of their congestion.
fn candidates(plan: &Plan, walks: &Walks) -> Vec<Congested> {
    let rates = rates(plan, walks);
    let mut stalls = vec![false; plan.topology.ports.len()];
    plan.receivers.iter().for_each(|r| stalls[r.rx as usize] = !r.stalls.is_empty());
    let mut found = Vec::new();
    for port in 0..plan.topology.ports.len() as PortId {
        // If no packet comes from a queue that can be paused, congestion pauses no queue.
        let queues = walks.of_port.get(port);
        if queues.iter().all(|&queue| walks.upstream.get(queue).is_empty()) {
            continue;
        }
        let [data, all] = [false, true].map(|with_control| arriving(plan, walks, &rates, port, with_control));
        let rate = plan.topology.ports[port as usize].rate;
        let stalls = stalls[port as usize];
        let cause = match () {
            () if stalls || data.offered > rate => Cause::Lasting,
            () if all.offered > rate => Cause::Control,
            () if all.burst > rate => Cause::Bursts,
            () => continue,
        };
        found.push(Congested {
            port,
            cause,
            offered: all.offered,
            rate,
            stalls,
            culprits: walks.data_over(port).len() as u64,
            queues: 0,
            victims: 0,
            beside: 0,
            control_victims: 0,
        });
    }
    found
}

fn ones(bits: &[u64]) -> u64 {
    bits.iter().map(|w| u64::from(w.count_ones())).sum()
}

/// The walks of one kind, data or control packets, with new numbers in the same order.
struct Kind {
    /// By new number, the walk.
    walks: Vec<u32>,
    /// By walk; those of the other kind have none.
    number: Vec<u32>,
    /// By queue: those through it, by new numbers.
    through: Lists,
    /// There are flows with more than one of them.
    several: bool,
}

impl Kind {
    fn new(walks: &Walks, is_control: bool) -> Self {
        let mut number = vec![u32::MAX; walks.walks.len()];
        let all = (0u32..).zip(&walks.walks);
        let its: Vec<u32> = all.filter(|(_, w)| w.is_control == is_control).map(|(i, _)| i).collect();
        its.iter().zip(0..).for_each(|(&walk, new)| number[walk as usize] = new);
        let queues = 0..walks.queues.len() as u32;
        let through = queues.flat_map(|q| walks.through.get(q).iter().map(move |&w| (q, w)));
        let through = through.map(|(q, w)| (q, number[w as usize])).filter(|p| p.1 != u32::MAX).collect();
        let flow = |w: u32| walks.walks[w as usize].flow;
        let several = its.windows(2).any(|pair| flow(pair[0]) == flow(pair[1]));
        Self { through: Lists::of(walks.queues.len(), through), walks: its, number, several }
    }

    fn flow(&self, walks: &Walks, i: u32) -> u32 {
        walks.walks[self.walks[i as usize] as usize].flow
    }

    /// Whether the walk `i` is the first one of its flow.
    fn begins(&self, walks: &Walks, i: u32) -> bool {
        i == 0 || self.flow(walks, i) != self.flow(walks, i - 1)
    }

    /// Clears the bits of walks that cross `port`, which are no victims; with `own_flow`, of all walks of
    /// their flows.
    fn clear(&self, walks: &Walks, port: PortId, own_flow: bool, range: &Range<u32>, bits: &mut [u64]) {
        let mut clear = |i: u32| {
            if range.contains(&i) {
                bits[((i - range.start) / 64) as usize] &= !(1 << ((i - range.start) % 64));
            }
        };
        let over = walks.over.get(port);
        if !own_flow {
            let from = self.walks.get(range.start as usize).copied().unwrap_or(u32::MAX);
            let over = over[over.partition_point(|&w| w < from)..].iter().map(|&w| self.number[w as usize]);
            over.take_while(|&i| i == u32::MAX || i < range.end).for_each(&mut clear);
            return;
        }
        for &walk in over {
            let flow = walks.walks[walk as usize].flow;
            let first = self.walks.partition_point(|&w| walks.walks[w as usize].flow < flow) as u32;
            let its = (first..self.walks.len() as u32).take_while(|&i| self.flow(walks, i) == flow);
            its.for_each(&mut clear);
        }
    }

    /// How many flows the walks with a bit belong to.
    fn flows(&self, walks: &Walks, range: &Range<u32>, bits: &[u64]) -> u64 {
        if !self.several {
            return ones(bits);
        }
        let (mut n, mut last) = (0, u32::MAX);
        for (word, &bits) in (0u32..).zip(bits) {
            let mut rest = bits;
            while rest != 0 {
                let flow = self.flow(walks, range.start + 64 * word + rest.trailing_zeros());
                n += u64::from(flow != last);
                last = flow;
                rest &= rest - 1;
            }
        }
        n
    }
}
