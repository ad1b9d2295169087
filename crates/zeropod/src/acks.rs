//! The layer that acknowledges, if there is one (§IV-E: for links that flap).
//!
//! It is above Zeropod: its messages are data, 40 B that wait in queues and are granted as all other data.
//! The paper only names TCP; this module uses, like go-back-N:
//!
//! - a receiver reports how much of a flow it has in order: when that is all; when data arrives again; and,
//!   inside a pod, where cells stay in order, when a gap appears, once for each gap;
//! - a message before the end reports a gap: the sender begins again there;
//! - a sender that has sent all, and has received no final message for a timeout, sends the last cell again,
//!   to which the receiver replies.

use crate::{World, voq::Item};
use xoff_kernel::time::Time;

const ACK: u64 = 40;

/// Both ends of flows.
pub struct Acks {
    pub timeout: Time,
    /// By flow, at its sender: bytes known to have arrived in order.
    pub acked: Vec<u64>,
    /// By flow, at its receiver: the last reported gap.
    gap: Vec<u64>,
    /// When a sender last received an acknowledgement of new bytes.
    pub progressed: Time,
    /// Of items after those of flows: the flow, and its received bytes.
    pub acks_sent: Vec<(u32, u64)>,
}

impl Acks {
    pub fn new(timeout: Time, flows: usize) -> Self {
        let (acked, gap) = (vec![0; flows], vec![u64::MAX; flows]);
        Self { timeout, acked, gap, progressed: 0, acks_sent: Vec::new() }
    }
}

impl World<'_> {
    /// `[from, to)` of a flow has arrived: says so if there is a reason to. `new`: not all of it had come.
    pub(crate) fn acknowledge(&mut self, flow: u32, from: u64, new: bool) {
        let Some(acks) = &mut self.acks else { return };
        let f = &self.plan.flows[flow as usize];
        let prefix = self.receivers.received[flow as usize].prefix;
        let inside = f.src as usize / self.per_pod == f.dst as usize / self.per_pod;
        let gap = inside && from > prefix && acks.gap[flow as usize] != prefix;
        if gap {
            acks.gap[flow as usize] = prefix;
        }
        if prefix < f.size && new && !gap {
            return;
        }
        acks.acks_sent.push((flow, prefix));
        let item = self.items.list.len() as u32;
        self.items.list.push(Item::new(ACK));
        self.hosts[f.dst as usize].begun.push_back((self.now, item));
    }

    pub(crate) fn acknowledged(&mut self, item: u32) {
        let Some(acks) = &mut self.acks else { return };
        let (flow, prefix) = acks.acks_sent[item as usize - self.plan.flows.len()];
        let acked = &mut acks.acked[flow as usize];
        if prefix > *acked {
            acks.progressed = self.now;
        }
        *acked = prefix.max(*acked);
        if prefix < self.plan.flows[flow as usize].size && prefix == *acked {
            self.go_back(flow, prefix);
        }
    }

    pub(crate) fn ack_timeout(&mut self, flow: u32) {
        let Some(acks) = &mut self.acks else { return };
        let size = self.plan.flows[flow as usize].size;
        let acked = acks.acked[flow as usize];
        if acked == size || self.items.list[flow as usize].queued {
            return;
        }
        self.receivers.flows[flow as usize].timeouts += 1;
        let payload = u64::from(self.zeropod.scheduler.payload);
        self.go_back(flow, acked.max((size - 1) / payload * payload));
    }

    fn go_back(&mut self, flow: u32, from: u64) {
        let item = &self.items.list[flow as usize];
        let again = item.sent.saturating_sub(from);
        if again == 0 {
            return;
        }
        let payload = u64::from(self.zeropod.scheduler.payload);
        self.receivers.flows[flow as usize].retransmitted += again.div_ceil(payload);
        self.change(item.voq, |queue, items| queue.go_back(items, flow, from));
    }
}
