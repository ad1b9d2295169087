//! Which ports can be congested: where more can arrive than leaves.

use crate::walks::{Walk, Walks};
use std::collections::BTreeMap;
use xoff_net::topology::PortId;
use xoff_plan::plan::{Flow, Plan};

/// By walk: the maximum rate of its packets at its beginning, in bits per second. Control packets come in
/// proportion to the bytes of the data that they acknowledge.
pub fn rates(plan: &Plan, walks: &Walks) -> Vec<u64> {
    let every = u64::from(plan.transport.least_per_ack());
    // Where the source chooses between routes, each may have all of the flow.
    let line = |(flow, id): (&Flow, u32)| {
        let starts = std::iter::once(flow.path).chain(plan.other_routes(id));
        let first = |start: u32| plan.topology.ports[plan.hops[start as usize] as usize].rate;
        starts.map(first).max().unwrap_or(0)
    };
    let lines: Vec<u64> = plan.flows.iter().zip(0..).map(line).collect();
    let rate = |w| {
        let walk = &walks.walks[w as usize];
        let flow = &plan.flows[walk.flow as usize];
        let line = match walk.whole && !walk.is_control {
            true => plan.topology.ports[walks.ports(w)[0] as usize].rate,
            false => lines[walk.flow as usize],
        };
        let data = if flow.pace > 0 { line.min(flow.pace) } else { line };
        if !walk.is_control {
            return data;
        }
        let packets = plan.packet.packets(flow.size);
        let sent = u128::from(flow.size) + u128::from(packets) * u128::from(plan.packet.header);
        let ack_bytes = u128::from(packets.div_ceil(every)) * u128::from(plan.packet.ack);
        u64::try_from(u128::from(data) * ack_bytes / sent).unwrap_or(u64::MAX)
    };
    (0..walks.walks.len() as u32).map(rate).collect()
}

/// The maximum rate at which packets arrive for a port, in bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arriving {
    /// When all its flows send at once: the sum over the links they come through,
    /// each at most at its rate, and so on back to the senders.
    pub offered: u64,
    /// In a burst, when held packets arrive at once: the sum of the rates of these links and of its own
    /// packets.
    pub burst: u64,
}

/// The maximum arrivals for `port`: data, and control packets if `with_control`.
pub fn arriving(plan: &Plan, walks: &Walks, rates: &[u64], port: PortId, with_control: bool) -> Arriving {
    let mut set: Vec<(u32, u32)> = Vec::new();
    for &walk in walks.over.get(port).iter().filter(|&&w| with_control || !walks.walks[w as usize].is_control)
    {
        let ports = (0u32..).zip(walks.ports(walk));
        set.extend(ports.filter(|&(_, &p)| p == port).map(|(at, _)| (walk, at)));
    }
    // Packets of one flow may arrive through several links. Together they have at most the rate of the flow.
    let mut senders: BTreeMap<(u32, bool), u64> = BTreeMap::new();
    for &(walk, _) in &set {
        let Walk { flow, is_control, .. } = walks.walks[walk as usize];
        let sent = senders.entry((flow, is_control)).or_default();
        *sent = rates[walk as usize].max(*sent);
    }
    let sent = senders.values().fold(0, |sum: u64, &rate| sum.saturating_add(rate));
    let mut arriving = Arriving { offered: 0, burst: 0 };
    by_link(walks, &mut set, |link, set| {
        let (sum, most) = match link {
            None => (own(rates, set), own(rates, set)),
            Some(link) => (carried(plan, walks, rates, link, set), plan.topology.ports[link as usize].rate),
        };
        arriving.offered = arriving.offered.saturating_add(sum);
        arriving.burst = arriving.burst.saturating_add(most);
    });
    arriving.offered = arriving.offered.min(sent);
    arriving
}

/// Parts places on walks by the port before each; a walk's beginning has none.
fn by_link(walks: &Walks, set: &mut [(u32, u32)], mut each: impl FnMut(Option<PortId>, &mut [(u32, u32)])) {
    let before = |&(walk, at): &(u32, u32)| at.checked_sub(1).map(|at| walks.ports(walk)[at as usize]);
    set.sort_by_cached_key(before);
    for part in set.chunk_by_mut(|a, b| before(a) == before(b)) {
        each(before(&part[0]), part);
    }
}

/// The rate of the walks that begin here.
fn own(rates: &[u64], set: &[(u32, u32)]) -> u64 {
    set.iter().fold(0, |sum: u64, &(walk, _)| sum.saturating_add(rates[walk as usize]))
}

/// The most that `link` carries of the walks whose next place is in `set`.
fn carried(plan: &Plan, walks: &Walks, rates: &[u64], link: PortId, set: &mut [(u32, u32)]) -> u64 {
    set.iter_mut().for_each(|place| place.1 -= 1);
    let mut sum = 0u64;
    by_link(walks, set, |before, part| {
        sum = sum.saturating_add(match before {
            None => own(rates, part),
            Some(before) => carried(plan, walks, rates, before, part),
        });
    });
    sum.min(plan.topology.ports[link as usize].rate)
}
