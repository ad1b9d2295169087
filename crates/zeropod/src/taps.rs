//! The frames that cross tapped ports of pods, for captures: cells, and RTS and SCHD with content.
//!
//! Cells of a grant have no events. When they are sent, all their crossings are recorded at once, with the
//! times of their slots. RTS of hosts are computed after their epoch: records are complete an epoch later.

use crate::scheduler::{Planned, Rts};
use crate::{World, unscheduled::Flying, voq::Piece};
use std::sync::Arc;
use xoff_kernel::time::Time;
use xoff_net::topology::NodeId;
use xoff_outcome::tap::{Crosser, Crossing, Handover, INTERVAL, Tap};
use xoff_plan::plan::Plan;
use xoff_schemes::scheduling::zeropod::Link;
use xoff_schemes::scheduling::zeropod::frame::{self, Account, Cell, Frame, Holds, Part, Schd, Target};

pub struct Taps<'s> {
    tapped: Vec<bool>,
    handover: Handover<'s>,
    seen: Vec<Crossing>,
}

impl<'s> Taps<'s> {
    pub fn new(plan: &Plan, tap: Tap<'s>) -> Self {
        let mut tapped = vec![false; plan.topology.ports.len()];
        tap.ports.iter().for_each(|&port| tapped[port as usize] = true);
        Self { tapped, handover: Handover::new(tap.sink), seen: Vec::new() }
    }

    /// Hands on the crossings before `until`.
    pub fn flush(&mut self, until: Time) {
        self.handover.take(&mut self.seen);
        self.handover.flush(until);
    }
}

impl World<'_> {
    /// Hands on the complete records.
    #[cold]
    pub(crate) fn flush(&mut self) {
        let until = self.now.saturating_sub(self.epoch);
        if let Some(taps) = &mut self.taps {
            taps.flush(until);
        }
        self.next_tap = self.now.saturating_add(INTERVAL);
    }

    /// Whether an end of some of these links is tapped.
    fn is_tapped(&self, pod: u16, path: &[Link]) -> bool {
        let Some(taps) = &self.taps else { return false };
        path.iter().any(|&link| {
            let port = self.links.port(pod, link) as usize;
            taps.tapped[port] || taps.tapped[self.plan.topology.ports[port].peer as usize]
        })
    }

    /// Something begins to cross a link.
    fn tap_sent(&mut self, pod: u16, link: Link, at: Time, what: &Arc<[u8]>) {
        let port = self.links.port(pod, link);
        let Some(taps) = &mut self.taps else { return };
        if taps.tapped[port as usize] {
            let what = Crosser::Frame(Arc::clone(what));
            taps.seen.push(Crossing { at, port, sent: true, damaged: false, what });
        }
    }

    /// The end of something has crossed a link.
    fn tap_received(&mut self, pod: u16, link: Link, at: Time, damaged: bool, what: &Arc<[u8]>) {
        let port = self.plan.topology.ports[self.links.port(pod, link) as usize].peer;
        let Some(taps) = &mut self.taps else { return };
        if taps.tapped[port as usize] {
            let what = Crosser::Frame(Arc::clone(what));
            taps.seen.push(Crossing { at, port, sent: false, damaged, what });
        }
    }

    /// A frame as bytes. A slot is as long as a whole cell.
    fn bytes(&self, frame: &Frame) -> Arc<[u8]> {
        frame.emit([0; 6], self.zeropod.scheduler.payload + self.zeropod.header).into()
    }

    /// Something of a slot crosses links, one after the other, to the first that is down.
    fn tap_path(&mut self, pod: u16, path: &[Link], (begins, long): (Time, Time), what: Frame) {
        let what = self.bytes(&what);
        let mut at = begins;
        for &link in path {
            self.tap_sent(pod, link, at, &what);
            if self.links.is_down(pod, link, at, at + long) {
                return;
            }
            at += self.hop;
            self.tap_received(pod, link, at + long, false, &what);
        }
    }

    fn part(&self, item: u32, from: u64, bytes: u64) -> Part {
        let bytes = bytes as u32;
        match (item as usize).checked_sub(self.plan.flows.len()) {
            None => Part { flow: item, holds: Holds::Data(from), bytes },
            Some(ack) => {
                let acks = self.acks.as_ref().expect("all other items are acknowledgements");
                let (flow, report) = acks.acks_sent[ack];
                Part { flow, holds: Holds::Ack(report), bytes }
            }
        }
    }

    /// A cell of some parts, which are all between the same two hosts.
    fn cell(&self, parts: Vec<Part>, optimistic: bool) -> Frame {
        let first = parts.first().expect("no cell is empty");
        let flow = &self.plan.flows[first.flow as usize];
        let (source, destination) = match first.holds {
            Holds::Data(_) => (flow.src, flow.dst),
            Holds::Ack(_) => (flow.dst, flow.src),
        };
        Frame::Cell(Cell { optimistic, source, destination, parts })
    }

    /// Cells of a grant cross its links: `pieces` are their contents, and `begins` returns when each is sent.
    #[cold]
    pub(crate) fn tap_cells(
        &mut self,
        pod: u16,
        path: &[Link],
        pieces: &[Piece],
        cells: u32,
        begins: &dyn Fn(u32) -> Time,
    ) {
        if !self.is_tapped(pod, path) {
            return;
        }
        let payload = u64::from(self.zeropod.scheduler.payload);
        for cell in 0..cells {
            let (from, to) = (u64::from(cell) * payload, u64::from(cell + 1) * payload);
            let mut parts = Vec::new();
            let mut before = 0;
            for piece in pieces {
                let (first, last) = (from.max(before), to.min(before + piece.bytes));
                if first < last {
                    parts.push(self.part(piece.item, piece.from + first - before, last - first));
                }
                before += piece.bytes;
            }
            let what = self.cell(parts, false);
            self.tap_path(pod, path, (begins(cell), self.zeropod.slots.data), what);
        }
    }

    /// A cell without a grant begins to cross a link.
    pub(crate) fn tap_unscheduled(&mut self, pod: u16, link: Link, cell: &Flying) {
        if self.is_tapped(pod, &[link]) {
            let what = self.bytes(&self.unscheduled_cell(cell));
            self.tap_sent(pod, link, self.now, &what);
        }
    }

    /// The last bit of a cell without a grant will have crossed a link at a time.
    pub(crate) fn tap_unscheduled_end(&mut self, pod: u16, link: Link, at: Time, cell: &Flying) {
        if self.is_tapped(pod, &[link]) {
            let what = self.bytes(&self.unscheduled_cell(cell));
            self.tap_received(pod, link, at, !cell.intact, &what);
        }
    }

    fn unscheduled_cell(&self, cell: &Flying) -> Frame {
        let payload = u64::from(self.zeropod.scheduler.payload);
        let from = u64::from(cell.index) * payload;
        let bytes = payload.min(self.plan.flows[cell.flow as usize].size - from);
        self.cell(vec![self.part(cell.flow, from, bytes)], true)
    }

    fn core_node(&self, core: u16) -> NodeId {
        (self.plan.topology.nodes.len() - self.cores.len()) as NodeId + NodeId::from(core)
    }

    fn row_node(&self, pod: u16, row: u16) -> NodeId {
        match usize::from(row).checked_sub(self.per_pod) {
            None => (usize::from(pod) * self.per_pod) as NodeId + NodeId::from(row),
            Some(core) => self.core_node(core as u16),
        }
    }

    fn target_node(&self, pod: u16, column: u16) -> Target {
        match usize::from(column).checked_sub(self.per_pod) {
            None => Target::Host(self.row_node(pod, column)),
            Some(pod) => Target::Pod(pod as u16),
        }
    }

    /// An RTS of an epoch crosses its sender's link.
    #[cold]
    pub(crate) fn tap_rts(&mut self, pod: u16, epoch: u64, at: Time, rts: &Rts) {
        let up = self.way(pod, rts.row).1;
        if !self.is_tapped(pod, &[up]) {
            return;
        }
        let served = |target: u16| rts.served.iter().find(|s| s.0 == target).map_or(0, |s| s.1);
        let node = |target| self.target_node(pod, target);
        let demand = |&(target, asked): &(u16, u32)| frame::Demand {
            target: node(target),
            asked,
            served: served(target),
        };
        let mice =
            |&(target, bytes, served): &(u16, u64, u32)| frame::Mice { target: node(target), served, bytes };
        let what = Frame::Rts(frame::Rts {
            sender: self.row_node(pod, rts.row),
            epoch: epoch as u32,
            account: self.watches.then(|| Account {
                epoch: rts.said.epoch.saturating_sub(1) as u32,
                sent: rts.said.sent,
                got: rts.said.got,
                no_schd: rts.no_schd,
            }),
            demands: rts.asks.iter().map(demand).collect(),
            mice: rts.names_mice.then(|| rts.mice.iter().map(mice).collect()),
            full: (0..).zip(&rts.full).filter(|(_, full)| **full).map(|(pod, _)| pod).collect(),
        });
        self.tap_path(pod, &[up], (at, self.zeropod.slots.control), what);
    }

    /// The SCHD of a grant leaves in an epoch, if its scheduler is at work and the links before the last are.
    #[cold]
    pub(crate) fn tap_schd(&mut self, pod: u16, epoch: u64, data: u64, planned: &Planned) {
        let (down, at, comes) = self.schd_comes(pod, planned.row, epoch);
        if !comes || !self.is_tapped(pod, &[down]) {
            return;
        }
        let z = &self.zeropod.pod;
        let aggs = self.all as NodeId + NodeId::from(z.pods) * NodeId::from(z.racks);
        let what = Frame::Schd(Schd {
            sender: self.row_node(pod, planned.row),
            epoch: data as u32,
            target: self.target_node(pod, planned.column),
            aggregation: aggs + NodeId::from(pod) * NodeId::from(z.aggs) + NodeId::from(planned.grant.agg),
            core: planned.grant.core.map(|core| self.core_node(core)),
            cells: planned.grant.cells as u16,
        });
        self.tap_path(pod, &[down], (at, self.zeropod.slots.control), what);
    }
}
