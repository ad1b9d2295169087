//! When cells cross the links of a pod (*Zeropod*, §III-A, §IV-C, §IV-D and §IV-E).
//!
//! A pod has one clock. An epoch has N data slots, and N + 1 control slots in the gaps before, between and
//! after them, of which two are used on each link. A sender at position i (of a host among those of its ToR,
//! of a core among those of its aggregation switch) sends its request (RTS) in control slot i, and leaves
//! control slot j free, where j is the position of the receiver of its data: there the scheduler's reply
//! (SCHD) for that receiver crosses the same last link. So the places of these slots need no messages.
//!
//! A switch holds nothing: a cell that comes in goes out at once, and a hop later it is at the next one.
//! On each link the epoch begins so much later than at the hosts:
//!
//! ```text
//! host → ToR                              0
//! ToR → aggregation, ToR → scheduler      1 hop     core → aggregation    1 hop
//! aggregation → ToR, core or scheduler    2 hops
//! ToR → host                              3 hops
//! scheduler → aggregation                 1 hop
//! scheduler → ToR                         2 hops
//! ```
//!
//! The paper leaves open, and here is taken:
//! - *Both control slots at once* (`zeropod.control-slots`). If i = j, the RTS comes first.
//! - *Alignment* (`zeropod.epoch-alignment`). Cores begin an epoch one hop after the hosts.
//! - *Scheduler's links* (`zeropod.scheduler-links`). One to each switch, of the same rate and length.
//! - *Guard bands* (§IV-E) lie on both sides of a control slot, and after each epoch.
//! - *Pipeline* (`zeropod.rts-schd-timing`). A schedule is of what had reached the scheduler when an epoch
//!   began; its SCHD leave in the first epoch that begins, at the scheduler, after the scheduling delay, and
//!   the data in the first one that begins after all SCHD have arrived.

use super::Link;

/// Sizes of cells, in picoseconds on the wire, and of the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// N: data slots of an epoch, at least 1.
    pub cells: u32,
    pub data: u64,
    /// A control cell (RTS or SCHD).
    pub control: u64,
    /// The gap between a control slot and its neighbours, and between epochs.
    pub guard: u64,
    pub hop: u64,
}

/// How many epochs after the one at whose beginning a schedule is worked out …
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// … its SCHD leave.
    pub schd: u64,
    /// … its data do.
    pub data: u64,
}

impl Slots {
    /// A control slot with its gaps.
    fn slot(&self) -> u64 {
        self.control + 2 * self.guard
    }

    /// Whether all positions have control slots that do not overlap (`zeropod.control-constraints`).
    pub fn fits(&self, positions: u32) -> bool {
        self.cells + 1 >= positions && 2 * self.slot() < self.data
    }

    pub fn epoch(&self) -> u64 {
        u64::from(self.cells) * self.data + 2 * self.slot() + self.guard
    }

    /// When data cell `cell` (0 to N − 1) begins in the epoch, from position `from` to position `to`.
    pub fn data_at(&self, cell: u32, from: u32, to: u32) -> u64 {
        let slots = u64::from(from <= cell) + u64::from(to <= cell);
        u64::from(cell) * self.data + slots * self.slot()
    }

    /// When the RTS of position `from` begins, which sends to position `to`, if to any.
    pub fn rts_at(&self, from: u32, to: Option<u32>) -> u64 {
        let before = u64::from(to.is_some_and(|to| to < from));
        u64::from(from) * self.data + before * self.slot() + self.guard
    }

    /// When the SCHD for position `to` begins on its last link, where data of position `from` come, if any.
    pub fn schd_at(&self, from: Option<u32>, to: u32) -> u64 {
        let before = u64::from(from.is_some_and(|from| from <= to));
        u64::from(to) * self.data + before * self.slot() + self.guard
    }

    /// How much later than at the hosts an epoch begins on a link.
    pub fn begins(&self, link: Link) -> u64 {
        let hops = match link {
            Link::HostUp { .. } => 0,
            Link::RackUp { .. } | Link::CoreDown { .. } => 1,
            Link::RackDown { .. } | Link::CoreUp { .. } => 2,
            Link::HostDown { .. } => 3,
        };
        hops * self.hop
    }

    /// How much later than at the hosts an epoch begins at the scheduler: in time for SCHD to aggregation
    /// switches, in a pod with cores, or else to ToRs.
    pub fn late_at_scheduler(&self, cores: bool) -> u64 {
        if cores { self.hop } else { 2 * self.hop }
    }

    pub fn pipeline(&self, delay: u64, cores: bool) -> Pipeline {
        let epoch = self.epoch();
        let schd = delay.saturating_sub(self.late_at_scheduler(cores)).div_ceil(epoch);
        // Those for hosts arrive last: four hops after the beginning of their epoch, and its length.
        Pipeline { schd, data: schd + (4 * self.hop + epoch).div_ceil(epoch) }
    }
}
