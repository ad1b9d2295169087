//! The scheduler of a pod: RTS go in, and grants are laid onto links.

use crate::failures::{Said, Watch};
use crate::{World, kind};
use std::collections::VecDeque;
use xoff_kernel::{random::Stream, time::Time, wheel::Event};
use xoff_schemes::scheduling::zeropod::{Demand, Grant, Link, Scheduler, Sender, Subtract, Target};

/// A request to send, in flight.
#[derive(Default)]
pub struct Rts {
    pub arrives: Time,
    /// The sender, as a row of the scheduler's matrices.
    pub row: u16,
    /// Target, and requested cells in total.
    pub asks: Vec<(u16, u32)>,
    /// Whether it names the targets of mice anew …
    pub names_mice: bool,
    /// … which are these: target, bytes of mice, and cells served in all when it was sent.
    pub mice: Vec<(u16, u64, u32)>,
    /// Of a core: for each pod whether it takes no more for it. Of a host it is empty.
    pub full: Vec<bool>,
    /// If failures are possible: its epoch, the total of served cells for each pending target, the data sent
    /// and received in an earlier epoch, and whether there was no SCHD then.
    pub epoch: u64,
    pub served: Vec<(u16, u32)>,
    pub said: Said,
    pub no_schd: bool,
}

/// A grant, laid down.
#[derive(Clone, Copy)]
pub struct Planned {
    pub grant: Grant,
    pub row: u16,
    pub column: u16,
    /// Positions of sender and receiver, which determine the control slots.
    pub from: u32,
    pub to: u32,
    /// Its SCHD is lost.
    pub lost: bool,
}

/// The user of a link in an epoch.
#[derive(Clone, Copy)]
pub struct Laid {
    /// The epoch; of one that is over another one's are stored here.
    pub epoch: u64,
    pub from: u32,
    pub to: u32,
    pub cells: u32,
    /// The receiver, as a column of the matrices.
    pub column: u16,
}

pub const IDLE: Laid = Laid { epoch: u64::MAX, from: 0, to: 0, cells: 0, column: 0 };

pub struct PodState {
    pub scheduler: Scheduler,
    pub stream: Stream,
    /// When its first epoch begins at its hosts.
    pub clock: Time,
    /// RTS of hosts and of cores, in flight, in the order of arrival; and some to be used again.
    pub from_hosts: VecDeque<Rts>,
    pub from_cores: VecDeque<Rts>,
    pub spare: Vec<Rts>,
    /// By row and column: cells that were requested, and that were granted, as counts that wrap around.
    pub asked: Vec<u32>,
    pub granted: Vec<u32>,
    /// Cells that were requested and not granted.
    pub waiting: u64,
    /// Grants that are not subtracted yet, in the order of epochs: the epoch of the SCHD, row, column, cells.
    pub pending: VecDeque<(u64, u16, u16, u32)>,
    /// Grants, at their epoch modulo their number.
    pub plans: Vec<(u64, Vec<Planned>)>,
    /// By link, and epoch modulo the number of `plans`.
    pub laid: Vec<Laid>,
    pub watch: Watch,
}

impl PodState {
    /// An RTS that says nothing yet.
    pub fn blank(&mut self) -> Rts {
        let mut rts = self.spare.pop().unwrap_or_default();
        rts.asks.clear();
        rts.mice.clear();
        rts.names_mice = false;
        rts.full.clear();
        rts.served.clear();
        rts
    }

    fn demand(&self, row: u16, column: u16, hosts: usize) -> Demand {
        let hosts = hosts as u16;
        Demand {
            from: if row < hosts { Sender::Host(row) } else { Sender::Core(row - hosts) },
            to: if column < hosts { Target::Host(column) } else { Target::Pod(column - hosts) },
        }
    }

    /// Subtracts the grants whose SCHD leave by `epoch`.
    fn subtract_pending(&mut self, epoch: u64, (hosts, targets): (usize, usize), payload: u64) {
        while let Some((_, row, column, cells)) = self.pending.pop_front_if(|pending| pending.0 <= epoch) {
            let demand = self.demand(row, column, hosts);
            let cells = self.scheduler.subtract(demand, u64::from(cells) * payload) / payload;
            let granted = &mut self.granted[usize::from(row) * targets + usize::from(column)];
            *granted = granted.wrapping_add(cells as u32);
            self.waiting -= cells;
        }
    }

    fn hear(&mut self, rts: &Rts, (hosts, targets): (usize, usize), payload: u64) {
        let row = usize::from(rts.row);
        for &(column, asked) in &rts.asks {
            let known = &mut self.asked[row * targets + usize::from(column)];
            let cells = asked.wrapping_sub(*known);
            *known = asked;
            self.waiting += u64::from(cells);
            self.scheduler.add(self.demand(rts.row, column, hosts), u64::from(cells) * payload);
        }
        if rts.names_mice {
            // Less the cells that were granted and not served yet when this was sent.
            let left = |&(column, bytes, served): &(u16, u64, u32)| {
                let under_way = self.granted[row * targets + usize::from(column)].wrapping_sub(served);
                let cells = bytes.div_ceil(payload).saturating_sub(u64::from(under_way));
                (self.demand(rts.row, column, hosts).to, cells * payload)
            };
            let mice: Vec<(Target, u64)> = rts.mice.iter().map(left).filter(|m| m.1 > 0).collect();
            self.scheduler.advertise(Sender::Host(rts.row), &mice);
        }
        for (pod, &full) in (0..).zip(&rts.full) {
            self.scheduler.set_backpressure((row - hosts) as u16, pod, full);
        }
    }
}

impl World<'_> {
    /// The number of the epoch that begins now at a device that is `late` after the hosts.
    pub(crate) fn epoch_at(&self, pod: u16, late: Time) -> u64 {
        (self.now - late - self.pods[usize::from(pod)].clock) / self.epoch
    }

    /// The entry of an epoch in the ring of a link.
    fn laid_at(&self, pod: usize, link: Link, epoch: u64) -> usize {
        let ring = self.pods[pod].plans.len();
        self.links.number(link) * ring + epoch as usize % ring
    }

    /// The user of a link in an epoch.
    pub(crate) fn laid(&self, pod: usize, link: Link, epoch: u64) -> Option<Laid> {
        Some(self.pods[pod].laid[self.laid_at(pod, link, epoch)]).filter(|laid| laid.epoch == epoch)
    }

    /// Calls `each` for the grants of an epoch.
    pub(crate) fn for_grants(&mut self, pod: u16, epoch: u64, mut each: impl FnMut(&mut Self, &Planned)) {
        let pod = usize::from(pod);
        let slot = epoch as usize % self.pods[pod].plans.len();
        if self.pods[pod].plans[slot].0 == epoch {
            let grants = std::mem::take(&mut self.pods[pod].plans[slot].1);
            grants.iter().for_each(|planned| each(self, planned));
            self.pods[pod].plans[slot].1 = grants;
        }
    }

    /// An epoch begins at the scheduler of a pod.
    pub(crate) fn schedule(&mut self, pod: u16) {
        let epoch = self.epoch_at(pod, self.late);
        let (targets, per_pod) = (self.targets, self.per_pod);
        let payload = u64::from(self.zeropod.scheduler.payload);
        let mut due = std::mem::take(&mut self.due);
        let state = &mut self.pods[usize::from(pod)];
        state.subtract_pending(epoch, (per_pod, targets), payload);
        for queue in [&mut state.from_hosts, &mut state.from_cores] {
            while let Some(rts) = queue.pop_front_if(|rts| rts.arrives <= self.now) {
                due.push(rts);
            }
        }
        for rts in due.drain(..) {
            if self.watches {
                self.hear_of_failures(pod, rts.row, rts.epoch, rts.said, rts.no_schd);
                self.revoke(pod, epoch + self.pipeline.data, &rts);
            }
            let state = &mut self.pods[usize::from(pod)];
            state.hear(&rts, (per_pod, targets), payload);
            state.spare.push(rts);
        }
        self.due = due;
        if self.watches {
            self.look_for_failures(pod, epoch);
        }
        self.report.epochs += 1;
        let works = !self.watches || self.works(pod, self.now);
        let state = &mut self.pods[usize::from(pod)];
        if state.waiting > 0 && works {
            let data = epoch + self.pipeline.data;
            let at = data as usize % state.plans.len();
            let (_, mut plan) = std::mem::take(&mut state.plans[at]);
            plan.clear();
            for &grant in state.scheduler.schedule(&mut state.stream) {
                let (row, from) = match grant.demand.from {
                    Sender::Host(host) => (host, host % self.zeropod.pod.hosts_per_rack),
                    Sender::Core(core) => (per_pod as u16 + core, core / self.zeropod.pod.aggs),
                };
                let (column, to) = match grant.demand.to {
                    Target::Host(host) => (host, host % self.zeropod.pod.hosts_per_rack),
                    Target::Pod(to) => {
                        let core = grant.core.expect("what leaves the pod goes to a core");
                        (per_pod as u16 + to, core / self.zeropod.pod.aggs)
                    }
                };
                match self.zeropod.scheduler.subtract {
                    Subtract::AtOnce => {
                        let granted = &mut state.granted[usize::from(row) * targets + usize::from(column)];
                        *granted = granted.wrapping_add(grant.cells);
                        state.waiting -= u64::from(grant.cells);
                    }
                    Subtract::WithSchd => {
                        let schd = epoch + self.pipeline.schd;
                        state.pending.push_back((schd, row, column, grant.cells));
                    }
                }
                plan.push(Planned { grant, row, column, from: from.into(), to: to.into(), lost: false });
            }
            self.report.grants += plan.len() as u64;
            self.work += plan.len() as u64;
            for planned in &mut plan {
                self.lay(pod, data, planned);
                // The state of the wire at that time is known by now, because its grants are older.
                let schd = epoch + self.pipeline.schd;
                planned.lost = self.watches && self.schd_is_lost(pod, planned.row, schd);
                if self.taps.is_some() {
                    self.tap_schd(pod, schd, data, planned);
                }
            }
            self.pods[usize::from(pod)].plans[at] = (data, plan);
        }
        self.wheel.push(Event::new(self.now + self.epoch, kind::SCHEDULER, u32::from(pod), 0));
    }

    /// Lays a grant onto its links, which must be idle in that epoch.
    fn lay(&mut self, pod: u16, epoch: u64, planned: &Planned) {
        let (path, links) = self.path(planned);
        for &link in &path[..links] {
            let at = self.laid_at(usize::from(pod), link, epoch);
            let laid = &mut self.pods[usize::from(pod)].laid[at];
            assert!(laid.epoch != epoch, "two grants meet on {link:?} of pod {pod} in epoch {epoch}");
            let Planned { grant, column, from, to, .. } = *planned;
            *laid = Laid { epoch, from, to, cells: grant.cells, column };
        }
    }

    /// Grants without effect, which the served cells in an RTS show, are demands again.
    fn revoke(&mut self, pod: u16, last: u64, rts: &Rts) {
        let payload = u64::from(self.zeropod.scheduler.payload);
        for &(column, served) in &rts.served {
            let behind = self.granted_behind(pod, rts.row, column, rts.epoch, last);
            let state = &mut self.pods[usize::from(pod)];
            let granted = &mut state.granted[usize::from(rts.row) * self.targets + usize::from(column)];
            let lost = granted.wrapping_sub(behind).wrapping_sub(served);
            // Cells that were revoked before their epoch are served after all, or lost once.
            if lost == 0 || lost > u32::MAX / 2 {
                continue;
            }
            *granted = granted.wrapping_sub(lost);
            state.waiting += u64::from(lost);
            self.report.taken_back += u64::from(lost);
            let demand = state.demand(rts.row, column, self.per_pod);
            state.scheduler.add(demand, u64::from(lost) * payload);
        }
    }
}
