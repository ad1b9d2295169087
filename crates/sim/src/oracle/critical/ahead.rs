//! Who was ahead of the packets of critical paths.

use super::record::{Sent, Wait};
use crate::outcome::{Ahead, Leg};
use crate::packet::NONE;
use std::collections::BTreeMap;
use xoff_kernel::time::{Time, serialisation};
use xoff_plan::plan::Plan;

/// Flows that are listed at each port; the others are one entry.
const LISTED: usize = 5;

/// Bytes, and time within the wait.
type Sum = (u64, Time);

/// The packets that were ahead of one flow's, by its `waits` and by what each port sent.
pub(super) fn of_flow(plan: &Plan, sent: &[Vec<Sent>], flow: u32, waits: &[Wait]) -> Vec<Ahead> {
    let mut found = Vec::new();
    // Waits of one place are neighbours.
    for waits in waits.chunk_by(|a, b| (a.leg, a.port) == (b.leg, b.port)) {
        let Wait { leg, port, .. } = waits[0];
        let mut sums: BTreeMap<u32, Sum> = BTreeMap::new();
        waits.iter().for_each(|wait| add(plan, sent, wait, &mut sums));
        found.extend(listed((flow, leg, port), sums));
    }
    found
}

/// Adds what the port sent within a wait, by flow.
fn add(plan: &Plan, sent: &[Vec<Sent>], wait: &Wait, sums: &mut BTreeMap<u32, Sum>) {
    let (sent, rate) = (&sent[wait.port as usize], plan.topology.ports[wait.port as usize].rate);
    // The packet that was on the wire when the wait began counts with its rest.
    let first = sent.partition_point(|s| s.at < wait.from).saturating_sub(1);
    for one in sent[first..].iter().take_while(|s| s.at < wait.until) {
        let end = one.at + serialisation(one.size.into(), rate);
        let time = end.min(wait.until).saturating_sub(one.at.max(wait.from));
        if time > 0 {
            let sum = sums.entry(one.flow).or_default();
            *sum = (sum.0 + u64::from(one.size), sum.1 + time);
        }
    }
}

/// The flows with most time, and the sum of all others.
fn listed((flow, leg, port): (u32, Leg, u32), sums: BTreeMap<u32, Sum>) -> impl Iterator<Item = Ahead> {
    let entry =
        move |other, others, (bytes, time): Sum| Ahead { flow, leg, port, other, others, bytes, time };
    let mut flows: Vec<(u32, Sum)> = sums.into_iter().collect();
    // Control frames are nobody's.
    flows.sort_by_key(|&(other, (_, time))| (other == NONE, std::cmp::Reverse(time), other));
    let named = flows.iter().take_while(|(other, _)| *other != NONE).count().min(LISTED);
    let rest = flows.split_off(named);
    let add = |sum: Sum, (_, (bytes, time)): &(u32, Sum)| (sum.0 + bytes, sum.1 + time);
    let others = rest.iter().filter(|(other, _)| *other != NONE).count() as u32;
    let last = (!rest.is_empty()).then(|| entry(None, others, rest.iter().fold((0, 0), add)));
    flows.into_iter().map(move |(other, sum)| entry(Some(other), 1, sum)).chain(last)
}
