//! The view that a flow control has of its own device.

use crate::packet::{Kind, NONE, Packet};
use crate::{core::Core, kind, switch::port::lane_mask};
use xoff_kernel::time::Time;
use xoff_schemes::flow_control::{ControlFrame, Device, device};

impl Device for Core<'_> {
    fn now(&self) -> Time {
        self.now
    }

    fn rate(&self, port: u32) -> u64 {
        self.plan.topology.ports[port as usize].rate
    }

    fn pause(&mut self, port: u32, lane: u8) {
        self.check_place(port, lane);
        let mask = lane_mask(usize::from(lane), self.lanes);
        if self.observed.standing(port, lane).is_none() {
            self.egress.ports[port as usize].paused |= mask;
            let pause = self.new_pause(port, lane, None);
            self.observed.pause_begins(pause);
        }
    }

    fn hold(&mut self, port: u32, lane: u8) {
        self.check_place(port, lane);
        self.egress.ports[port as usize].paused |= lane_mask(usize::from(lane), self.lanes);
        if self.blocking.is_some() {
            self.lane_is_held(port, lane);
        }
    }

    fn resume(&mut self, port: u32, lane: u8) {
        self.check_place(port, lane);
        let mask = lane_mask(usize::from(lane), self.lanes);
        let p = &mut self.egress.ports[port as usize];
        if p.paused & mask != 0 {
            p.paused &= !mask;
            if self.blocking.is_some() {
                self.held_lane_resumes(port, lane);
            }
            if self.observed.standing(port, lane).is_some() {
                if self.blocking.is_some() {
                    self.lane_resumes(port, lane, self.now);
                }
                self.observed.pause_ends(self.now, port, lane);
            }
            self.post_decision(port);
        }
    }

    fn backlog(&self, port: u32, lane: u8) -> u64 {
        self.check_place(port, lane);
        let first = self.egress.ports[port as usize].first_queue as usize + 1 + usize::from(lane);
        match self.egress.queues[first + self.lanes].head {
            NONE => self.egress.queues[first].bytes,
            _ => u64::MAX,
        }
    }

    fn device_of(&self, port: u32) -> u32 {
        self.check_place(port, 0);
        self.egress.ports[port as usize].node
    }

    fn port_of(&self, port: u32, index: usize) -> Option<u32> {
        self.check_place(port, 0);
        let node = self.egress.ports[port as usize].node;
        self.plan.topology.nodes[node as usize].ports.get(index).copied()
    }

    fn relay_port(&self, port: u32, index: usize) -> Option<u32> {
        self.check_place(port, 0);
        self.plan.topology.relay_ports(self.egress.ports[port as usize].node).get(index).copied()
    }

    fn stored(&self, port: u32, lane: u8) -> u64 {
        self.check_place(port, lane);
        self.ingress.accounts[port as usize * self.lanes + usize::from(lane)].held()
    }

    fn received(&self, port: u32, lane: u8) -> u64 {
        self.ingress.received[self.account(port, lane)]
    }

    fn send_control(&mut self, port: u32, frame: ControlFrame) {
        self.check_place(port, 0);
        let roots = self.blocking.is_some().then(|| self.roots(port, frame.effect()));
        if self.is_down(port) {
            return;
        }
        // A frame of this kind that still waits says this, too: the last one, or the first where the last one
        // is overtaken (those between are of its kind).
        let queue = &self.egress.queues[self.egress.ports[port as usize].first_queue as usize];
        let mut ahead = false;
        for waiting in [queue.tail, queue.head] {
            if waiting == NONE {
                break;
            }
            let slot = self.packets[waiting].number;
            let said = self.frames.get_mut(slot);
            if said.merge(&frame) {
                if let (Some(oracle), Some(later)) = (&mut self.blocking, roots) {
                    oracle.merge(slot, &later);
                }
                return;
            }
            ahead = frame.overtakes(said);
            if !ahead {
                break;
            }
        }
        let slot = self.frames.keep(frame);
        if let (Some(oracle), Some(roots)) = (&mut self.blocking, roots) {
            oracle.keep(slot, roots);
        }
        let id = self.packets.insert(Packet::new(Kind::Control, NONE, slot, frame.length(), 0, NONE));
        match ahead {
            true => {
                if let Some(oracle) = &mut self.blocking {
                    let list = self.egress.ports[port as usize].first_queue as usize;
                    oracle.packet_joins(list, id, false, self.now);
                }
                self.egress.prepend(&mut self.packets, port, 0, id);
            }
            false => self.enqueue(port, 0, id),
        }
        self.post_decision(port);
    }

    fn arm(&mut self, timer: u32, at: Time) {
        let generation = &mut self.timers[timer as usize];
        *generation = generation.wrapping_add(1);
        let generation = *generation;
        self.post(at, kind::TIMER, timer, generation);
    }

    fn cancel(&mut self, timer: u32) {
        let generation = &mut self.timers[timer as usize];
        *generation = generation.wrapping_add(1);
    }
}

impl device::Causes for Core<'_> {
    fn is_stopped(&self, port: u32, lane: u8) -> bool {
        self.check_place(port, lane);
        self.egress.ports[port as usize].paused >> (1 + lane) & 1 == 1
    }

    fn is_over(&self, port: u32, lane: u8, bytes: u64) -> bool {
        self.check_place(port, lane);
        self.ingress.is_over(self.account(port, lane), bytes)
    }

    fn waits(&self, ingress: u32, egress: u32, lane: u8) -> bool {
        let account = ingress * self.lanes as u32 + u32::from(lane);
        self.ingress.causes.any(account, self.plan.topology.ports[egress as usize].index)
    }
}
