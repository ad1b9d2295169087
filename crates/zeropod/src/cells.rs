//! The fate of the cells of grants: the links that they cross, and where they arrive or are lost.

use crate::{World, kind, scheduler::Planned, voq::Piece};
use xoff_kernel::{time::Time, wheel::Event};
use xoff_outcome::{DropReason, Drops};
use xoff_schemes::scheduling::zeropod::{Grant, Link, Sender, Target, report};

impl World<'_> {
    /// Cells of a grant, in the epoch that begins now, that begin before the run ends.
    pub(crate) fn begun(&self, planned: &Planned) -> u32 {
        let cells = planned.grant.cells;
        if self.end - self.now >= self.epoch {
            return cells;
        }
        let begins = |cell| self.now + self.zeropod.slots.data_at(cell, planned.from, planned.to);
        (0..cells).take_while(|&cell| begins(cell) < self.end).count() as u32
    }

    /// Cells of a grant for a host of the pod, `taken` after the first `before`, arrive or are lost.
    pub(crate) fn arrive_behind(
        &mut self,
        pod: u16,
        pieces: &[Piece],
        planned: &Planned,
        path: &[Link],
        (before, taken): (u32, u32),
        from_core: bool,
    ) {
        let (slots, now) = (self.zeropod.slots, self.now);
        let begins = |cell: u32| now + slots.data_at(before + cell, planned.from, planned.to);
        let behind = path.len() as Time * self.hop + slots.data;
        let last = begins(taken - 1);
        if self.taps.is_some() {
            self.tap_cells(pod, path, pieces, taken, &begins);
        }
        if !from_core {
            self.counters.sent += u64::from(taken);
            for piece in pieces {
                self.first_sent(piece.item, begins(piece.first), piece.last - piece.first + 1);
            }
        }
        if self.watches {
            if self.is_lost(pod, path, last, pieces) {
                return;
            }
            let epoch = self.epoch_at(pod, if from_core { self.hop } else { 0 });
            self.saw(pod, planned.column, epoch, false);
        }
        let here = match last + behind <= self.end {
            true => taken,
            false => (0..taken).filter(|&cell| begins(cell) + behind <= self.end).count() as u32,
        };
        self.counters.delivered += u64::from(here);
        self.counters.in_flight += u64::from(taken - here);
        for piece in pieces {
            self.receive(piece.item, (piece.from, piece.from + piece.bytes), begins(piece.last) + behind);
        }
    }

    /// Whether a cell that begins at a time is lost on a link of its path; then it is dropped there.
    pub(crate) fn is_lost(&mut self, pod: u16, path: &[Link], begins: Time, pieces: &[Piece]) -> bool {
        if !self.links.may_fail() {
            return false;
        }
        let long = self.zeropod.slots.data;
        let mut at = begins;
        for (index, &link) in path.iter().enumerate() {
            if self.links.is_down(pod, link, at, at + long) {
                self.spared.extend(&path[index + 1..]);
                for piece in pieces {
                    if let Some(flow) = self.receivers.flows.get_mut(piece.item as usize) {
                        flow.dropped += 1;
                    }
                }
                let port = self.links.port(pod, link);
                self.drop_cell(self.plan.topology.ports[port as usize].peer, DropReason::LinkDown, at);
                return true;
            }
            at += self.hop;
        }
        false
    }

    pub(crate) fn sent_all(&mut self, pieces: &[Piece]) {
        let Some(acks) = &self.acks else { return };
        for piece in pieces {
            let item = &self.items.list[piece.item as usize];
            if item.sent == item.size && (piece.item as usize) < self.plan.flows.len() {
                self.wheel.push(Event::new(self.now + acks.timeout, kind::ACK, piece.item, 0));
            }
        }
    }

    pub(crate) fn first_sent(&mut self, item: u32, at: Time, cells: u32) {
        if let Some(flow) = self.receivers.flows.get_mut(item as usize) {
            flow.first_sent = Some(flow.first_sent.map_or(at, |first| first.min(at)));
            flow.packets_sent += u64::from(cells);
        }
    }

    /// Bytes of an item will be at their receiver at a time.
    pub(crate) fn receive(&mut self, item: u32, (from, to): (u64, u64), at: Time) {
        if self.acks.is_some() || self.unscheduled.tries(item) {
            // The consequences, and whether a copy arrives before it, are determined at that time.
            let element = self.unscheduled.parts.keep((item, from, to));
            self.wheel.push(Event::new(at, kind::ARRIVAL, element, 0));
            return;
        }
        self.receivers.receive(item, (from, to), at, &mut self.wheel);
    }

    /// The links that a grant's cells cross, and how many they are.
    pub(crate) fn path(&self, planned: &Planned) -> ([Link; 4], usize) {
        let Grant { demand, agg, core, .. } = planned.grant;
        let rack = |host: u16| self.zeropod.pod.rack_of(host);
        match (demand.from, demand.to, core) {
            (Sender::Host(host), Target::Host(to), _) => {
                let up = [Link::HostUp { host }, Link::RackUp { rack: rack(host), agg }];
                ([up[0], up[1], Link::RackDown { agg, rack: rack(to) }, Link::HostDown { host: to }], 4)
            }
            (Sender::Host(host), Target::Pod(_), Some(core)) => {
                let up = [Link::HostUp { host }, Link::RackUp { rack: rack(host), agg }];
                ([up[0], up[1], Link::CoreUp { core }, Link::CoreUp { core }], 3)
            }
            (Sender::Core(core), Target::Host(to), _) => {
                let last = Link::HostDown { host: to };
                ([Link::CoreDown { core }, Link::RackDown { agg, rack: rack(to) }, last, last], 3)
            }
            _ => unreachable!("what goes to another pod goes from a host to a core"),
        }
    }

    /// Cells cross the links of a grant, but for those that were lost before.
    pub(crate) fn use_links(&mut self, pod: u16, path: &[Link], cells: u32) {
        if cells == 0 {
            return;
        }
        self.moved = self.now;
        self.work += u64::from(cells);
        let bytes = u64::from(cells) * u64::from(self.zeropod.scheduler.payload + self.zeropod.header);
        for &link in path {
            let port = &mut self.ports[self.links.port(pod, link) as usize];
            port.packets += u64::from(cells);
            port.data_packets += u64::from(cells);
            port.bytes += bytes;
        }
        self.counters.data_hops += u64::from(cells) * path.len() as u64;
        while let Some(link) = self.spared.pop() {
            let port = &mut self.ports[self.links.port(pod, link) as usize];
            port.packets -= 1;
            port.data_packets -= 1;
            port.bytes -= bytes / u64::from(cells);
            self.counters.data_hops -= 1;
        }
        self.report.scheduled += u64::from(cells);
    }

    pub(crate) fn drop_cell(&mut self, ingress: u32, reason: DropReason, at: Time) {
        self.counters.dropped += 1;
        let bytes = u64::from(self.zeropod.scheduler.payload + self.zeropod.header);
        // A scheduled cell is promised to arrive.
        let lossless = reason != DropReason::Scheme(&report::COLLISION);
        let none =
            Drops { ingress, lane: 0, lossless, reason, packets: 0, bytes: 0, first: at, shortfall: 0 };
        let drops = self.drops.entry((ingress, reason)).or_insert(none);
        drops.packets += 1;
        drops.bytes += bytes;
    }
}
