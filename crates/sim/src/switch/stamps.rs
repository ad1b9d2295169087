//! Telemetry that a packet takes up where it leaves a switch.

use crate::{core::Core, packet::Kind, switch::port::Wire};
use xoff_schemes::congestion_control::telemetry::Hop;

impl Core<'_> {
    /// A packet was taken from `queue` of `port`: if the port's device forwards it, it gets a record of the
    /// link; if it is a new one of the host, it has crossed no device yet.
    #[inline(never)]
    pub fn add_telemetry(&mut self, port: u32, queue: usize, id: u32) {
        if queue > self.lanes {
            return match self.telemetry.stamped() {
                true => self.telemetry.stamp(id, self.now),
                false => self.telemetry.clear(id),
            };
        }
        let p = &self.egress.ports[port as usize];
        if self.packets[id].kind != Kind::Data || p.wire == Wire::Inner {
            return;
        }
        if self.telemetry.stamped() {
            return self.telemetry.count_switch(id);
        }
        let first = p.first_queue as usize;
        let queued = self.egress.queues[first + 1..=first + self.lanes].iter().map(|q| q.bytes).sum();
        let rate = self.plan.topology.ports[port as usize].rate;
        self.telemetry.push(id, Hop { at: self.now, sent: p.bytes, queued, rate, port });
    }

    /// A packet has arrived and goes on to `egress`, perhaps inside a slow receiver.
    #[inline(never)]
    pub fn stamp_arrival(&mut self, egress: u32, id: u32) {
        if self.packets[id].kind == Kind::Data && self.egress.ports[egress as usize].wire == Wire::Inner {
            self.telemetry.waits_inside(id, self.now);
        }
    }
}
