//! Queues of loops that are being dissolved, and the exchange of charges there.

use crate::packet::{Kind, NONE, Packet};
use crate::{core::Core, features::All, kind, switch::port::lane_mask};
use xoff_schemes::flow_control::{ControlFrame, Crossing, Device, device};

impl device::Loops for Core<'_> {
    fn neighbour(&self, port: u32) -> u32 {
        self.plan.topology.neighbour(port)
    }

    fn headroom(&self, port: u32, lane: u8) -> (u64, u64) {
        self.check_place(port, lane);
        let account = &self.ingress.accounts[self.account(port, lane)];
        (self.ingress.profiles[usize::from(account.profile)].headroom(), account.in_headroom())
    }

    #[cold]
    fn enter_loop(&mut self, port: u32, lane: u8) {
        self.check_place(port, lane);
        self.resume(port, lane);
        self.egress.ports[port as usize].paused |= lane_mask(usize::from(lane), self.lanes);
        self.ingress.reports_storage = true;
        // A host's own control packets have no room in the loop that they leave and could return to.
        let queue = 1 + usize::from(lane);
        let at = self.egress.at(port, queue);
        let list = &mut self.egress.queues[at];
        let mut next = std::mem::replace(&mut list.head, NONE);
        (list.tail, list.bytes) = (NONE, 0);
        self.egress.ports[port as usize].ready &= !(1 << queue);
        let mut aside = Vec::new();
        while next != NONE {
            let id = next;
            next = self.packets[id].next;
            match self.packets[id].account {
                NONE => aside.push(id),
                _ => self.egress.append(&mut self.packets, port, queue, id),
            }
        }
        self.egress.aside.insert((port, lane), aside);
        self.egress.enters_loop();
    }

    fn gate(&mut self, port: u32, lane: u8, open: bool) {
        self.check_place(port, lane);
        let p = &mut self.egress.ports[port as usize];
        if open {
            p.paused &= !(1 << (1 + lane));
            self.post_decision(port);
        } else {
            p.paused |= 1 << (1 + lane);
        }
    }

    fn leave_loop(&mut self, port: u32, lane: u8) {
        self.check_place(port, lane);
        // Barriers that wait there have no destination left.
        let queue = 1 + usize::from(lane);
        let (mut before, mut at) = (NONE, self.egress.queues[self.egress.at(port, queue)].head);
        while at != NONE {
            let next = self.packets[at].next;
            if self.packets[at].kind == Kind::Control {
                self.unlink_behind(port, queue, before);
                self.take_frame(at);
            } else {
                before = at;
            }
            at = next;
        }
        for id in self.egress.aside.remove(&(port, lane)).unwrap_or_default() {
            self.enqueue(port, 1 + usize::from(lane), id);
        }
        self.egress.ports[port as usize].paused &= !lane_mask(usize::from(lane), self.lanes);
        self.egress.leaves_loop();
        self.follow_charges(self.ingress.follows_charges);
        self.post_decision(port);
    }

    fn insert(&mut self, port: u32, lane: u8, frame: ControlFrame, ahead: bool) {
        self.check_place(port, lane);
        let (size, slot) = (frame.length(), self.frames.keep(frame));
        let id = self.packets.insert(Packet::new(Kind::Control, NONE, slot, size, lane, NONE));
        let queue = 1 + usize::from(lane);
        match ahead {
            true => self.egress.prepend(&mut self.packets, port, queue, id),
            false => self.egress.append(&mut self.packets, port, queue, id),
        }
        self.post_decision(port);
    }

    fn follow_charges(&mut self, follow: bool) {
        let reports = self.egress.loops > 0 || self.plan.flow_control.traits().reports_storage;
        (self.ingress.follows_charges, self.ingress.reports_storage) = (follow, follow || reports);
    }

    fn release_charge(&mut self, port: u32, lane: u8, bytes: u64) -> Option<Crossing> {
        self.check_place(port, lane);
        let account = self.account(port, lane);
        let crossing = self.ingress.release::<All>(self.plan, port, account as u32, bytes)?;
        self.crosses(account as u32, crossing)
    }

    fn transfer_charge(&mut self, from: u32, to: u32, lane: u8, bytes: u64) -> u64 {
        self.check_place(from, lane);
        self.check_place(to, lane);
        self.ingress.transfer_charge(self.account(from, lane), self.account(to, lane), bytes)
    }

    fn charge(&mut self, port: u32, lane: u8, bytes: u64) -> (u64, Option<Crossing>) {
        self.check_place(port, lane);
        let account = self.account(port, lane);
        let (taken, crossing) = self.ingress.recharge(account, bytes);
        (taken, crossing.and_then(|crossing| self.crosses(account as u32, crossing)))
    }

    fn settle(&mut self, port: u32, lane: u8) {
        self.post(self.now, kind::SETTLE, port, u32::from(lane));
    }
}
