//! Core switches, which store cells between pods (§III-C, §IV-A.2).
//!
//! A core has a VOQ for each host, in the port to that host's pod, first in, first out; all share its memory.
//! Cells do not change: the content of a received cell leaves in one cell. A port follows the clock of its
//! pod, a hop after the hosts (§IV-D). Cells that leave in an epoch are out of the queue when the epoch
//! begins, and out of the memory when it ends.

use crate::{World, kind, scheduler::Planned, voq::Piece};
use std::collections::VecDeque;
use xoff_kernel::{time::Time, wheel::Event};
use xoff_outcome::DropReason;
use xoff_schemes::scheduling::zeropod::{Link, Sender};

/// A part of an item in a cell.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub item: u32,
    pub from: u64,
    pub bytes: u32,
    pub ends_cell: bool,
}

/// A cell from a pod: when it has arrived completely, and its host of the network.
pub type Coming = (Time, u32, Part);

pub struct Core {
    /// By pod: cells in flight from there, in the order of arrival.
    pub coming: Vec<VecDeque<Coming>>,
    /// By host of the network.
    queues: Vec<VecDeque<Part>>,
    /// By host of the network: cells reported to its scheduler, and granted for begun epochs; both wrap.
    pub asked: Vec<u32>,
    pub served: Vec<u32>,
    /// By pod: hosts for which cells have come, one entry for each, since the last RTS.
    pub pending: Vec<Vec<u32>>,
    /// By pod: cells that wait for it.
    pub cells: Vec<u32>,
    /// By pod: cells that leave for it in this epoch.
    pub leaving: Vec<u32>,
    /// By pod: the last report of backpressure to its scheduler, by pod.
    pub report: Vec<Vec<bool>>,
    /// Cells in memory, now and at most.
    pub stored: u64,
    pub peak: u64,
    /// Whether the cell that comes is being dropped.
    dropping: bool,
}

impl Core {
    pub fn new(pods: usize, hosts: usize) -> Self {
        Self {
            coming: vec![VecDeque::new(); pods],
            queues: vec![VecDeque::new(); hosts],
            asked: vec![0; hosts],
            served: vec![0; hosts],
            pending: vec![Vec::new(); pods],
            cells: vec![0; pods],
            leaving: vec![0; pods],
            report: vec![vec![false; pods]; pods],
            stored: 0,
            peak: 0,
            dropping: false,
        }
    }

    /// Takes in the cells that have arrived by `now`; `room` cells fit the memory. Returns the parts of cells
    /// that do not, each with the time and the source pod.
    pub fn take_in(&mut self, now: Time, room: u64, hosts_per_pod: usize) -> Vec<(Time, usize, Part)> {
        let mut lost = Vec::new();
        loop {
            // The earliest of all, for the memory fills in their order.
            let next = |from: usize| self.coming[from].front().map(|c| (c.0, from));
            let first = (0..self.coming.len()).filter_map(next).min();
            let Some((at, from)) = first.filter(|first| first.0 <= now) else { return lost };
            // A whole cell.
            self.dropping = self.stored >= room;
            while let Some((_, host, part)) = self.coming[from].pop_front() {
                if self.dropping {
                    lost.push((at, from, part));
                } else {
                    self.queues[host as usize].push_back(part);
                }
                if part.ends_cell {
                    if !self.dropping {
                        self.arrived(host, hosts_per_pod);
                    }
                    break;
                }
            }
        }
    }

    fn arrived(&mut self, host: u32, hosts_per_pod: usize) {
        let pod = host as usize / hosts_per_pod;
        self.stored += 1;
        self.peak = self.peak.max(self.stored);
        self.cells[pod] += 1;
        self.pending[pod].push(host);
    }

    pub fn release(&mut self, pod: usize) {
        self.stored -= u64::from(std::mem::take(&mut self.leaving[pod]));
    }

    /// The next cell for a host, as its parts; `false` if there is none.
    pub fn send(&mut self, host: u32, pod: usize, parts: &mut Vec<Part>) -> bool {
        let queue = &mut self.queues[host as usize];
        if queue.is_empty() {
            return false;
        }
        while let Some(part) = queue.pop_front() {
            parts.push(part);
            if part.ends_cell {
                break;
            }
        }
        self.cells[pod] -= 1;
        self.leaving[pod] += 1;
        true
    }

    /// Cells that it holds, and cells in flight to it, at the end: none of them has been sent on.
    pub fn left(&self) -> u64 {
        let ends = |part: &&Part| part.ends_cell;
        let queued = self.queues.iter().map(|q| q.iter().filter(ends).count() as u64).sum::<u64>();
        let coming = self.coming.iter().flatten().filter(|(_, _, part)| part.ends_cell).count() as u64;
        queued + coming
    }
}

impl World<'_> {
    /// An epoch begins at the cores' ports to a pod.
    pub(crate) fn cores_begin(&mut self, pod: u16) {
        let epoch = self.epoch_at(pod, self.hop);
        let at = usize::from(pod);
        for core in 0..self.cores.len() {
            self.take_in(core, self.now);
            self.cores[core].release(at);
        }
        self.for_grants(pod, epoch, |world, planned| match planned.grant.demand.from {
            Sender::Core(core) if !planned.lost => world.send_from_core(pod, core, epoch, planned),
            _ => {}
        });
        self.wheel.push(Event::new(self.now + self.epoch, kind::CORES, u32::from(pod), 0));
    }

    /// A core takes in the cells that have arrived by a time.
    fn take_in(&mut self, core: usize, until: Time) {
        let cell = u64::from(self.zeropod.scheduler.payload + self.zeropod.header);
        let room = self.zeropod.core_buffer / cell;
        for (at, from, part) in self.cores[core].take_in(until, room, self.per_pod) {
            // The items of acknowledgements follow those of flows.
            if let Some(flow) = self.receivers.flows.get_mut(part.item as usize) {
                flow.dropped += 1;
            }
            if part.ends_cell {
                let ingress = self.links.port(from as u16, Link::CoreDown { core: core as u16 });
                self.drop_cell(ingress, DropReason::BufferFull, at);
            }
        }
    }

    pub(crate) fn request_of_core(&mut self, core: u16, pod: u16) {
        let slots = self.zeropod.slots;
        let at = usize::from(pod);
        self.take_in(usize::from(core), self.now);
        let threshold = self.zeropod.backpressure;
        let c = &self.cores[usize::from(core)];
        let same = c.report[at].iter().zip(&c.cells).all(|(&report, &cells)| report == (cells > threshold));
        if !same || !c.pending[at].is_empty() || self.watches {
            let mut rts = self.pods[at].blank();
            rts.arrives = self.now + slots.control + 2 * self.hop;
            rts.row = self.per_pod as u16 + core;
            let c = &mut self.cores[usize::from(core)];
            for host in c.pending[at].drain(..) {
                let asked = &mut c.asked[host as usize];
                *asked = asked.wrapping_add(1);
                let target = (host as usize % self.per_pod) as u16;
                match rts.asks.iter_mut().find(|ask| ask.0 == target) {
                    Some(ask) => ask.1 = *asked,
                    None => rts.asks.push((target, *asked)),
                }
            }
            for (report, &cells) in c.report[at].iter_mut().zip(&c.cells) {
                let full = cells > threshold;
                self.report.backpressure += u64::from(full && !*report);
                *report = full;
                rts.full.push(full);
            }
            let epoch = self.epoch_at(pod, self.hop);
            if self.watches {
                self.repeat(pod, epoch, &mut rts, |world, target| {
                    if usize::from(target) >= world.per_pod {
                        return (0, 0);
                    }
                    let core = &world.cores[usize::from(core)];
                    let host = at * world.per_pod + usize::from(target);
                    (core.asked[host], core.served[host])
                });
            }
            self.report.most_in_rts = self.report.most_in_rts.max(rts.asks.len() as u64);
            if self.taps.is_some() {
                self.tap_rts(pod, epoch, self.now, &rts);
            }
            if self.watches && self.rts_is_lost(pod, rts.row, self.now) {
                self.pods[at].spare.push(rts);
            } else {
                self.pods[at].from_cores.push_back(rts);
            }
        }
        let epoch = self.epoch_at(pod, self.hop) + 1;
        let begins = self.pods[at].clock + epoch * self.epoch + self.hop;
        self.next_request_of_core(core, pod, epoch, begins);
    }

    /// A core will send its RTS of an epoch, which begins there at a time.
    pub(crate) fn next_request_of_core(&mut self, core: u16, pod: u16, epoch: u64, begins: Time) {
        let position = u32::from(core / self.zeropod.pod.aggs);
        let to = self.laid(usize::from(pod), Link::CoreDown { core }, epoch).map(|laid| laid.to);
        let at = begins + self.zeropod.slots.rts_at(position, to);
        let element = u32::from(core) * u32::from(self.zeropod.pod.pods) + u32::from(pod);
        self.wheel.push(Event::new(at, kind::CORE_RTS, element, 0));
    }

    /// A core sends the cells of a grant.
    fn send_from_core(&mut self, pod: u16, core: u16, epoch: u64, planned: &Planned) {
        let dst = u32::from(pod) * self.per_pod as u32 + u32::from(planned.column);
        let (path, links) = self.path(planned);
        let path = &path[..links];
        let mut parts = std::mem::take(&mut self.parts);
        let mut pieces = std::mem::take(&mut self.pieces);
        let mut sent = 0;
        let cells = self.begun(planned);
        while sent < cells {
            parts.clear();
            if !self.cores[usize::from(core)].send(dst, usize::from(pod), &mut parts) {
                break;
            }
            pieces.clear();
            pieces.extend(parts.iter().map(|&Part { item, from, bytes, .. }| Piece {
                item,
                from,
                bytes: u64::from(bytes),
                first: 0,
                last: 0,
            }));
            self.arrive_behind(pod, &pieces, planned, path, (sent, 1), true);
            sent += 1;
        }
        self.parts = parts;
        self.pieces = pieces;
        let c = &mut self.cores[usize::from(core)];
        c.served[dst as usize] = c.served[dst as usize].wrapping_add(planned.grant.cells);
        self.report.unused += u64::from(cells - sent);
        self.use_links(pod, path, sent);
        if self.watches && sent > 0 {
            self.saw(pod, planned.row, epoch, true);
        }
    }
}
