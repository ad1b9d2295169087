//! The input that senders and receivers give the congestion control, and its effects.

use crate::packet::{Kind, Packet};
use crate::{core::Core, kind};
use xoff_kernel::time::Time;

impl Core<'_> {
    /// Determines which ACKs matter, and limits the flows' first windows.
    pub fn begin_control(&mut self) {
        let variable = self.plan.transport.variable_window.is_some();
        self.hosts.wants_acks = self.plan.congestion_control.wants_answers() || variable;
        if variable || self.plan.congestion_control.sets_windows() {
            self.hosts.windows.full = self.hosts.senders.iter().map(|s| s.transport.window).collect();
        }
        for (flow, sender) in (0..).zip(self.hosts.senders.iter_mut()) {
            let own = &mut self.hosts.own_senders;
            self.hosts.windows.bound(self.plan, &self.hosts.controls, self.now, flow, (sender, own));
        }
    }

    /// A flow leaves by another port than the plan has it, before it has sent anything.
    pub fn restart_control(&mut self, flow: u32, line: u64) {
        self.hosts.controls.restart(flow, line);
        let sender = &mut self.hosts.senders[flow as usize];
        let own = &mut self.hosts.own_senders;
        self.hosts.windows.bound(self.plan, &self.hosts.controls, self.now, flow, (sender, own));
    }

    /// A window below one packet delays the flow's next packet until `not_before`, if that is still to come:
    /// the flow leaves its ring until then. Returns whether it waits now.
    #[cold]
    pub fn hold_back(&mut self, flow: u32, not_before: Option<Time>) -> bool {
        let sender = &self.hosts.senders[flow as usize];
        let Some(until) = not_before.filter(|&until| until > self.now && !sender.held) else {
            return sender.held;
        };
        if sender.in_ring {
            self.leave_ring(flow);
        }
        self.hosts.senders[flow as usize].held = true;
        self.post(until, kind::PACE, flow, 0);
        true
    }

    /// A retransmission timer has expired: the flow's window may be smaller now.
    #[cold]
    pub fn control_timeout(&mut self, flow: u32, losses: u32) {
        self.hosts.controls.on_timeout(flow, losses, self.now);
        if !self.plan.congestion_control.sets_windows() {
            return;
        }
        let sender = &mut self.hosts.senders[flow as usize];
        let own = &mut self.hosts.own_senders;
        self.hosts.windows.bound(self.plan, &self.hosts.controls, self.now, flow, (sender, own));
        let not_before = self.hosts.controls.not_before(flow);
        self.hold_back(flow, not_before);
        let sender = &self.hosts.senders[flow as usize];
        if sender.in_ring && !sender.transport.can_send() {
            self.leave_ring(flow);
        }
    }

    /// Sends a CNP on the path of the ACKs, which begins at `path`. Returns the port to kick.
    #[cold]
    pub fn send_cnp(&mut self, flow: u32, path: u32, ack_lane: u8) -> u32 {
        let cnps = self.plan.congestion_control.cnps().expect("a notification point sent it");
        let lane = cnps.lane.unwrap_or(ack_lane);
        let id = self.packets.insert(Packet::new(Kind::Cnp, flow, 0, cnps.size, lane, path));
        self.telemetry.begin(id, self.now);
        let port = self.hops[path as usize];
        self.enqueue_own(port, lane, id);
        port
    }
}
