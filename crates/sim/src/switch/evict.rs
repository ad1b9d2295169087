//! Packets that a flow control drops to end a deadlock: from one ingress queue, in one egress queue, by flow.

use crate::packet::{Kind, NONE};
use crate::switch::{drops::discard, release::release};
use crate::{core::Core, features::All, outcome::DropReason};
use std::{cmp::Reverse, collections::BTreeMap};
use xoff_schemes::flow_control::FlowControl;

/// Drops the packets that the flow control has marked for drops meanwhile.
#[inline]
pub fn settle(core: &mut Core, scheme: &mut FlowControl) {
    while let Some((ingress, egress, lane, cause)) = core.repairs.evictions.pop() {
        evict(core, scheme, ingress, egress, lane, DropReason::Scheme(cause));
    }
}

/// See [`Repair::drop_waiting`](xoff_schemes::flow_control::device::Repair::drop_waiting). The control
/// packets of a flow's receiver count as a flow of their own.
#[cold]
fn evict(core: &mut Core, scheme: &mut FlowControl, ingress: u32, egress: u32, lane: u8, reason: DropReason) {
    debug_assert!(core.egress.plain, "no scheme that asks for it has queues by flow, nor oracles beside it");
    let queue = 1 + usize::from(lane);
    let list = core.egress.at(egress, queue);
    let account = ingress * core.lanes as u32 + u32::from(lane);
    if !core.ingress.accounts[account as usize].over {
        return;
    }
    let mut waiting = Waiting { ids: vec![NONE], around: vec![(0, 1)] };
    // In the order of their first packets.
    let mut flows: Vec<Flow> = Vec::new();
    let mut number_of: BTreeMap<(u32, bool), usize> = BTreeMap::new();
    let mut at = core.egress.queues[list].head;
    while at != NONE {
        let packet = &core.packets[at];
        let place = waiting.push(at);
        if packet.account == account {
            let number = *number_of.entry((packet.flow, packet.kind == Kind::Data)).or_insert(flows.len());
            if number == flows.len() {
                flows.push(Flow::default());
            }
            flows[number].bytes += u64::from(packet.size);
            flows[number].places.push(place);
        }
        at = packet.next;
    }
    flows.sort_by_key(|flow| Reverse(flow.bytes)); // stable: the earlier one of two alike
    for place in flows.into_iter().flat_map(|flow| flow.places) {
        if !core.ingress.accounts[account as usize].over {
            return;
        }
        let (id, before) = waiting.take(place);
        core.unlink_behind(egress, queue, before);
        let size = core.packets[id].size;
        discard(core, ingress, id, reason, 0);
        release::<All>(core, scheme, account, egress, size);
    }
}

/// The packets of a flow in a queue that came in at one ingress.
#[derive(Default)]
struct Flow {
    bytes: u64,
    /// In [`Waiting`].
    places: Vec<usize>,
}

/// The packets of a queue in order, of which some are taken out.
struct Waiting {
    /// Place 0 is before the first packet.
    ids: Vec<u32>,
    /// The places before and after each.
    around: Vec<(usize, usize)>,
}

impl Waiting {
    fn push(&mut self, id: u32) -> usize {
        let place = self.ids.len();
        self.ids.push(id);
        self.around.push((place.saturating_sub(1), place + 1));
        place
    }

    /// Takes a packet out. Returns its id, and that of the packet before it or [`NONE`].
    fn take(&mut self, place: usize) -> (u32, u32) {
        let (before, after) = self.around[place];
        self.around[before].1 = after;
        if let Some(next) = self.around.get_mut(after) {
            next.0 = before;
        }
        (self.ids[place], self.ids[before])
    }
}

impl Core<'_> {
    /// Takes the packet after `before` (or [`NONE`]) out of a queue of `port`, without sending it.
    pub fn unlink_behind(&mut self, port: u32, queue: usize, before: u32) {
        let p = &mut self.egress.ports[port as usize];
        let q = &mut self.egress.queues[p.first_queue as usize + queue];
        let id = if before == NONE { q.head } else { self.packets[before].next };
        let packet = &self.packets[id];
        let (next, size) = (packet.next, u64::from(packet.size));
        match before {
            NONE => q.head = next,
            _ => self.packets[before].next = next,
        }
        if next == NONE {
            q.tail = before;
        }
        if q.head == NONE {
            p.ready &= !(1 << queue);
        }
        q.bytes -= size;
    }
}
