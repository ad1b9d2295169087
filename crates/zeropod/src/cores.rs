//! Core switches, which keep what goes from pod to pod (§III-C, §IV-A.2).
//!
//! A core has a VOQ for each host, in the port to that host's pod, first in, first out; all share its memory.
//! Cells stay what they are: what came in one cell leaves in one. A port follows the clock of its pod, a hop
//! behind the hosts (§IV-D).
//!
//! What leaves in an epoch is out of the queue when the epoch begins, and out of the memory when it ends.

use std::collections::VecDeque;
use xoff_kernel::time::Time;

/// A part of an item in a cell.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub item: u32,
    pub from: u64,
    pub bytes: u32,
    /// Whether it is the last one of its cell.
    pub ends_cell: bool,
}

/// What comes from a pod: when its cell is there as a whole, and for which host of the network.
pub type Coming = (Time, u32, Part);

pub struct Core {
    /// By pod: what is under way from there, in the order of arrival.
    pub coming: Vec<VecDeque<Coming>>,
    /// By host of the network.
    queues: Vec<VecDeque<Part>>,
    /// By host of the network: cells that its scheduler has been told of, and cells that it was granted for
    /// epochs which have begun, as counts that go round.
    pub asked: Vec<u32>,
    pub served: Vec<u32>,
    /// By pod: hosts for which cells have come, one entry for each, since the last RTS.
    pub news: Vec<Vec<u32>>,
    /// By pod: cells that wait for it.
    pub cells: Vec<u32>,
    /// By pod: cells that leave for it in this epoch.
    pub leaving: Vec<u32>,
    /// By pod: what its scheduler was told last of backpressure, by pod.
    pub told: Vec<Vec<bool>>,
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
            news: vec![Vec::new(); pods],
            cells: vec![0; pods],
            leaving: vec![0; pods],
            told: vec![vec![false; pods]; pods],
            stored: 0,
            peak: 0,
            dropping: false,
        }
    }

    /// Takes in what has come by `now`; `room` cells fit the memory. Calls `dropped` for each part of a cell
    /// that does not, with the time, the pod that it came from and whether it is the cell's last part.
    pub fn take_in(
        &mut self,
        now: Time,
        room: u64,
        hosts_per_pod: usize,
        dropped: &mut impl FnMut(Time, usize, Part),
    ) {
        loop {
            // The earliest of all, for the memory fills in their order.
            let next = |from: usize| self.coming[from].front().map(|c| (c.0, from));
            let Some((at, from)) = (0..self.coming.len()).filter_map(next).min() else { return };
            if at > now {
                return;
            }
            // A whole cell.
            self.dropping = self.stored >= room;
            while let Some((_, host, part)) = self.coming[from].pop_front() {
                if self.dropping {
                    dropped(at, from, part);
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
        self.news[pod].push(host);
    }

    /// What left for a pod is gone.
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

    /// Cells that it holds, and that are under way to it, at the end: none of them has been sent on.
    pub fn left(&self) -> u64 {
        let ends = |part: &&Part| part.ends_cell;
        let queued = self.queues.iter().map(|q| q.iter().filter(ends).count() as u64).sum::<u64>();
        let coming = self.coming.iter().flatten().filter(|(_, _, part)| part.ends_cell).count() as u64;
        queued + coming
    }
}
