//! The two ends of a flow, as data.

use crate::packet::NONE;
use xoff_kernel::time::Time;
use xoff_plan::plan::{Flow, Plan};
use xoff_schemes::transport::go_back_n::{Receiver, Sender};

/// In place of a pace: the congestion control sets the rate.
pub const CONTROLLED: u64 = u64::MAX;

/// The sending end of a flow: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct SenderState {
    pub transport: Sender,
    /// Wire size of every packet but the last.
    full_size: u32,
    last_size: u32,
    /// Start of its route.
    pub path: u32,
    pub port: u32,
    /// The next one in the ring.
    pub ring_next: u32,
    pub retransmitted: u32,
    pub lane: u8,
    pub in_ring: bool,
    /// Waits for its pace.
    pub held: bool,
    /// A timeout event is pending.
    pub timer_pending: bool,
    /// Time out at this time.
    pub deadline: Time,
    /// Bits per second, or 0, or [`CONTROLLED`].
    pub pace: u64,
}

/// The receiving end of a flow: half a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct ReceiverState {
    pub transport: Receiver,
    pub total: u32,
    pub ack_path: u32,
    pub ack_lane: u8,
    pub class: u16,
}

impl SenderState {
    pub fn new(plan: &Plan, index: usize) -> Self {
        let flow = &plan.flows[index];
        let total =
            u32::try_from(plan.packet.packets(flow.size)).expect("the plan bounds flows to 2^32 packets");
        let in_packets =
            |bytes: u64| u32::try_from(bytes / u64::from(plan.packet.mtu)).unwrap_or(u32::MAX).max(1);
        let window = match plan.windows.get(index) {
            Some(own) => own.window,
            None => {
                let first = plan.transport.kind.first_window().or(plan.transport.window.map(in_packets));
                first.unwrap_or(u32::MAX)
            }
        };
        Self {
            transport: Sender::new(total, window),
            full_size: plan.packet.mtu + plan.packet.header,
            last_size: plan.packet.wire_size(flow.size, u64::from(total) - 1),
            path: flow.path,
            port: plan.hops[flow.path as usize],
            ring_next: NONE,
            retransmitted: 0,
            lane: flow.lane,
            in_ring: false,
            held: plan.arbiter.is_some(),
            timer_pending: false,
            deadline: 0,
            pace: if plan.congestion_control.has_senders() { CONTROLLED } else { flow.pace },
        }
    }

    /// Sent data packets, including retransmissions, and only the retransmissions.
    pub fn sent(&self) -> (u64, u64) {
        let repeats = u64::from(self.retransmitted);
        (u64::from(self.transport.highest) + repeats, repeats)
    }

    /// All of it is acknowledged.
    pub fn complete(&self) -> bool {
        self.transport.complete()
    }

    /// Wire size of the packet that it would send next.
    pub fn next_size(&self) -> u32 {
        if self.transport.next + 1 == self.transport.total { self.last_size } else { self.full_size }
    }
}

impl ReceiverState {
    pub fn new(plan: &Plan, flow: &Flow) -> Self {
        Self {
            transport: Receiver::default(),
            total: plan.packet.packets(flow.size) as u32,
            ack_path: flow.ack_path,
            ack_lane: flow.ack_lane,
            class: flow.class,
        }
    }

    /// Payload bytes delivered in order, of a flow of `size` bytes.
    pub fn delivered_bytes(&self, size: u64, mtu: u32) -> u64 {
        (u64::from(self.transport.expected) * u64::from(mtu)).min(size)
    }
}
