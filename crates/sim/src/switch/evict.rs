//! Packets that a flow control drops to end a deadlock: from one ingress queue, in one egress queue, by flow.

use crate::packet::{Kind, NONE};
use crate::switch::{drops::discard, release::release};
use crate::{core::Core, features::All, outcome::DropReason};
use std::cmp::Reverse;
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
    // In the order of their first packets.
    let mut flows: Vec<((u32, bool), u64)> = Vec::new();
    let mut at = core.egress.queues[list].head;
    while at != NONE {
        let packet = &core.packets[at];
        if packet.account == account {
            let (key, size) = ((packet.flow, packet.kind == Kind::Data), u64::from(packet.size));
            match flows.iter_mut().find(|flow| flow.0 == key) {
                Some(flow) => flow.1 += size,
                None => flows.push((key, size)),
            }
        }
        at = packet.next;
    }
    flows.sort_by_key(|flow| Reverse(flow.1)); // stable: the earlier one of two alike
    for (key, _) in flows {
        let (mut before, mut at) = (NONE, core.egress.queues[list].head);
        while at != NONE && core.ingress.accounts[account as usize].over {
            let packet = core.packets[at];
            if packet.account == account && (packet.flow, packet.kind == Kind::Data) == key {
                core.unlink_behind(egress, queue, before);
                discard(core, ingress, at, reason, 0);
                release::<All>(core, scheme, account, egress, packet.size);
            } else {
                before = at;
            }
            at = packet.next;
        }
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
