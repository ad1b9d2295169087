//! Failures, and their detection by schedulers (§IV-E).
//!
//! RTS and SCHD arrive in every epoch at known times, also without content, so a missing one shows a link
//! that is down. Missing arrivals show other failed links. Only in runs with failures, or with wrong clocks,
//!
//! - an RTS repeats all for which its sender still waits: requested cells, and served cells. From its grants
//!   until then the scheduler detects grants without effect, because their SCHD was lost, and counts them as
//!   demands again;
//! - without an RTS in its epoch a sender's link up is down, until the next one comes;
//! - a sender reports if there was no SCHD for it: then its link down is down;
//! - it also reports whether it sent data in an epoch, and whether it received any. Where a grant's sender
//!   sent and its receiver got nothing, one of the two links between them is down. One that fails [`SUSPECT`]
//!   times, more often than the other, and never carries anything between, is taken to be it; after a while
//!   it is tried again, and found at its first failure (the paper says that the scheduler infers where a
//!   failure is, and not how);
//! - an RTS that comes at another time than it should is of a host whose clock is off by more than half a
//!   guard band, so that two such hosts' cells might meet (`zeropod.clock`): it gets no grant;
//! - a scheduler's backup knows all that the scheduler knew (the paper leaves that to a coordination
//!   service). What should have come before it took over it does not wait for.

use crate::{World, scheduler::Planned};
use xoff_kernel::time::Time;
use xoff_net::topology::NodeId;
use xoff_schemes::scheduling::zeropod::params::{SchedulerFailure, ZeropodParams};
use xoff_schemes::scheduling::zeropod::report::LinkFound;
use xoff_schemes::scheduling::zeropod::{Link, Sender, Target};

/// A link that fails so often, and carries nothing between, is taken to be down.
const SUSPECT: u8 = 3;

/// A sender's report about an epoch.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Said {
    /// The epoch, plus 1; 0: nothing yet.
    pub epoch: u64,
    /// It sent data, and got some.
    pub sent: bool,
    pub got: bool,
}

pub struct Watch {
    /// By row: the epoch, plus 1, of the last RTS that came; 0: none yet.
    last_rts_epoch: Vec<u64>,
    /// By row: links taken to be down, the one up and the one down.
    silent: Vec<bool>,
    deaf: Vec<bool>,
    /// By row and epoch modulo the length of the ring: past and future reports.
    report: Vec<Said>,
    seen: Vec<Said>,
    /// By link: how often it was suspected since it last carried something.
    suspected: Vec<u8>,
    /// Links inside the pod that count as down, and until when they are not used.
    left_alone: Vec<(Time, Link)>,
    /// Epochs, plus 1, for which no report is expected any more.
    forgiven: u64,
}

impl Watch {
    pub fn new(rows: usize, links: usize, ring: usize) -> Self {
        Self {
            last_rts_epoch: vec![0; rows],
            silent: vec![false; rows],
            deaf: vec![false; rows],
            report: vec![Said::default(); rows * ring],
            seen: vec![Said::default(); rows * ring],
            suspected: vec![0; links],
            left_alone: Vec::new(),
            forgiven: 0,
        }
    }
}

pub fn watches(zeropod: &ZeropodParams, links_fail: bool) -> bool {
    links_fail
        || !zeropod.scheduler_failures.is_empty()
        || !zeropod.scheduler_links.is_empty()
        || (0..zeropod.clock_errors.len()).any(|host| is_out_of_sync(zeropod, host))
}

/// Whether the cells of a host might meet those of others.
pub fn is_out_of_sync(zeropod: &ZeropodParams, host: usize) -> bool {
    2 * zeropod.clock_errors[host].unsigned_abs() > zeropod.slots.guard
}

impl World<'_> {
    /// Whether the scheduler of a pod is at work at a time.
    pub(crate) fn works(&self, pod: u16, at: Time) -> bool {
        let fails = |f: &&SchedulerFailure| f.pod == pod && (f.at..f.at + f.takeover).contains(&at);
        !self.zeropod.scheduler_failures.iter().any(|f| fails(&f))
    }

    /// The switch by which a row reaches its scheduler, and its own link there and back.
    pub(crate) fn way(&self, pod: u16, row: u16) -> (NodeId, Link, Link) {
        let z = &self.zeropod.pod;
        let tors = self.all as NodeId;
        match usize::from(row).checked_sub(self.per_pod) {
            None => {
                let tor = tors + NodeId::from(pod) * NodeId::from(z.racks) + NodeId::from(z.rack_of(row));
                (tor, Link::HostUp { host: row }, Link::HostDown { host: row })
            }
            Some(core) => {
                let core = core as u16;
                let aggs = tors + NodeId::from(z.pods) * NodeId::from(z.racks);
                let agg = aggs + NodeId::from(pod) * NodeId::from(z.aggs) + NodeId::from(z.agg_of(core));
                (agg, Link::CoreDown { core }, Link::CoreUp { core })
            }
        }
    }

    fn scheduler_link_is_down(&self, switch: NodeId, at: Time) -> bool {
        let mut links = self.zeropod.scheduler_links.iter();
        links.any(|&(s, from, until)| s == switch && (from..until).contains(&at))
    }

    /// Whether an RTS that begins at a time is lost, or comes when it should not.
    pub(crate) fn rts_is_lost(&mut self, pod: u16, row: u16, at: Time) -> bool {
        let (switch, up, _) = self.way(pod, row);
        let until = at + self.zeropod.slots.control;
        if self.links.is_down(pod, up, at, until)
            || self.scheduler_link_is_down(switch, until + self.hop)
            || !self.works(pod, until + 2 * self.hop)
        {
            return true;
        }
        let off = usize::from(row) < self.per_pod
            && is_out_of_sync(self.zeropod, usize::from(pod) * self.per_pod + usize::from(row));
        self.report.off_time += u64::from(off);
        off
    }

    /// The link by which the SCHD of an epoch for a row comes, when it begins there, and if it gets so far.
    pub(crate) fn schd_comes(&self, pod: u16, row: u16, epoch: u64) -> (Link, Time, bool) {
        let (switch, _, down) = self.way(pod, row);
        let position = match usize::from(row).checked_sub(self.per_pod) {
            None => row % self.zeropod.pod.hosts_per_rack,
            Some(core) => core as u16 / self.zeropod.pod.aggs,
        };
        let from = self.laid(usize::from(pod), down, epoch).map(|laid| laid.from);
        let slots = &self.zeropod.slots;
        let begins = self.pods[usize::from(pod)].clock + epoch * self.epoch;
        let at = begins + slots.begins(down) + slots.schd_at(from, u32::from(position));
        let comes = !self.scheduler_link_is_down(switch, at - self.hop)
            && self.works(pod, at.saturating_sub(2 * self.hop));
        (down, at, comes)
    }

    /// Whether the SCHD for a row is lost that leaves in an epoch.
    pub(crate) fn schd_is_lost(&self, pod: u16, row: u16, epoch: u64) -> bool {
        let (down, at, comes) = self.schd_comes(pod, row, epoch);
        !comes || self.links.is_down(pod, down, at, at + self.zeropod.slots.control)
    }

    /// So many epochs later everything of an epoch has arrived.
    pub(crate) fn settled(&self) -> u64 {
        (4 * self.hop + self.epoch).div_ceil(self.epoch)
    }

    /// A row has sent data in an epoch, or will have got some.
    pub(crate) fn saw(&mut self, pod: u16, row: u16, epoch: u64, sent: bool) {
        let state = &mut self.pods[usize::from(pod)];
        let ring = state.plans.len();
        let seen = &mut state.watch.seen[usize::from(row) * ring + epoch as usize % ring];
        if seen.epoch != epoch + 1 {
            *seen = Said { epoch: epoch + 1, ..Said::default() };
        }
        seen.sent |= sent;
        seen.got |= !sent;
    }

    /// The report of an epoch's RTS about an earlier one, and whether there was an SCHD.
    pub(crate) fn account(&self, pod: u16, row: u16, epoch: u64) -> (Said, bool) {
        let settled = self.settled();
        let Some(of) = epoch.checked_sub(settled) else { return (Said::default(), false) };
        let state = &self.pods[usize::from(pod)];
        let ring = state.plans.len();
        let seen = state.watch.seen[usize::from(row) * ring + of as usize % ring];
        let said = if seen.epoch == of + 1 { seen } else { Said { epoch: of + 1, ..Said::default() } };
        (said, self.schd_is_lost(pod, row, of))
    }

    /// The beginning of an epoch at the scheduler: the conclusions from received and missing RTS.
    pub(crate) fn look_for_failures(&mut self, pod: u16, epoch: u64) {
        let at = usize::from(pod);
        // The backup waits for nothing that should have come before.
        if !self.works(pod, self.now) {
            self.pods[at].watch.forgiven = epoch + 1;
            return;
        }
        let late = |begins: Time| (self.epoch + begins + 2 * self.hop - self.late).div_ceil(self.epoch);
        let lags = [late(0), late(self.hop)];
        let rows = self.per_pod + self.cores.len();
        for row in 0..rows {
            let Some(of) = epoch.checked_sub(lags[usize::from(row >= self.per_pod)]) else { continue };
            let watch = &mut self.pods[at].watch;
            let silent = watch.last_rts_epoch[row] < of + 1 && of + 1 > watch.forgiven;
            if silent != watch.silent[row] && (silent || watch.last_rts_epoch[row] > watch.forgiven) {
                watch.silent[row] = silent;
                let up = self.way(pod, row as u16).1;
                self.found(pod, up, silent);
            }
        }
        // Both RTS that report an epoch have arrived.
        if let Some(of) = epoch.checked_sub(self.settled() + lags[1]) {
            self.for_grants(pod, of, |world, planned| world.compare(pod, of, planned));
        }
        let now = self.now;
        while let Some(index) = self.pods[at].watch.left_alone.iter().position(|l| l.0 <= now) {
            let (_, link) = self.pods[at].watch.left_alone.swap_remove(index);
            let number = self.links.number(link);
            self.pods[at].watch.suspected[number] = SUSPECT - 1;
            self.found(pod, link, false);
        }
    }

    /// Compares a grant of an epoch with the reports about that.
    fn compare(&mut self, pod: u16, epoch: u64, planned: &Planned) {
        let at = usize::from(pod);
        let state = &self.pods[at];
        let ring = state.plans.len();
        let of = |row: usize| {
            let said = state.watch.report[row * ring + epoch as usize % ring];
            (said.epoch == epoch + 1).then_some(said)
        };
        let rack = |host: u16| self.zeropod.pod.rack_of(host);
        let agg = planned.grant.agg;
        let (receiver, down) = match planned.grant.demand.to {
            Target::Host(host) => (usize::from(host), Some(Link::RackDown { agg, rack: rack(host) })),
            Target::Pod(_) => {
                (self.per_pod + usize::from(planned.grant.core.expect("it goes to a core")), None)
            }
        };
        let (Some(sender), Some(receiver)) = (of(usize::from(planned.row)), of(receiver)) else { return };
        if !sender.sent {
            return;
        }
        let up = match planned.grant.demand.from {
            Sender::Host(host) => Some(Link::RackUp { rack: rack(host), agg }),
            Sender::Core(_) => None,
        };
        let numbers = [up, down].map(|link| link.map(|link| self.links.number(link)));
        for number in numbers.into_iter().flatten() {
            let suspected = &mut self.pods[at].watch.suspected[number];
            *suspected = if receiver.got { 0 } else { suspected.saturating_add(1) };
        }
        if receiver.got {
            return;
        }
        // The one that has failed more often; both, if nothing ever distinguishes them.
        let counts = numbers.map(|number| number.map_or(0, |n| self.pods[at].watch.suspected[n]));
        for (link, [own, other]) in [(up, counts), (down, [counts[1], counts[0]])] {
            let known = |link: &Link| self.pods[at].watch.left_alone.iter().any(|l| l.1 == *link);
            let Some(link) = link.filter(|link| !known(link)) else { continue };
            if own >= SUSPECT && (own > other || own >= 2 * SUSPECT) {
                self.pods[at].watch.left_alone.push((self.now + self.zeropod.retry, link));
                self.found(pod, link, true);
            }
        }
    }

    /// A link is taken to be down, or no longer.
    fn found(&mut self, pod: u16, link: Link, down: bool) {
        self.pods[usize::from(pod)].scheduler.set_down(link, down);
        let port = self.links.port(pod, link);
        self.report.found.push(LinkFound { at: self.now, port, down });
    }

    /// The report of an epoch's RTS about failures.
    pub(crate) fn hear_of_failures(&mut self, pod: u16, row: u16, epoch: u64, said: Said, no_schd: bool) {
        let at = usize::from(pod);
        let ring = self.pods[at].plans.len();
        let watch = &mut self.pods[at].watch;
        watch.last_rts_epoch[usize::from(row)] = watch.last_rts_epoch[usize::from(row)].max(epoch + 1);
        if said.epoch > 0 {
            watch.report[usize::from(row) * ring + (said.epoch - 1) as usize % ring] = said;
        }
        // An SCHD that the scheduler did not send cannot have arrived.
        let blames = no_schd && said.epoch > watch.forgiven;
        if blames != watch.deaf[usize::from(row)] {
            watch.deaf[usize::from(row)] = blames;
            let down = self.way(pod, row).2;
            self.found(pod, down, blames);
        }
    }

    /// Cells that a row has been granted for a target in epochs after `epoch`.
    pub(crate) fn granted_behind(&self, pod: u16, row: u16, column: u16, epoch: u64, last: u64) -> u32 {
        let link = self.way(pod, row).1;
        let of = |epoch| self.laid(usize::from(pod), link, epoch).filter(|laid| laid.column == column);
        (epoch + 1..=last).filter_map(of).map(|laid| laid.cells).sum()
    }
}
