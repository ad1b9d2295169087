//! Charging those who wait, as pauses end.

use super::{Cause, Known, Merges, crosses};
use crate::outcome::{Blocking, Pause};
use crate::{core::Core, packet::NONE};
use xoff_kernel::time::Time;

impl Core<'_> {
    /// Charges the queue pairs that waited for a pause in the list `at`, which ends now.
    fn charge_pairs(&mut self, pause: &Pause, cause: Cause, at: usize, now: Time) {
        let mut next = self.egress.queues[at].head;
        while next != NONE {
            self.charge_pair(pause, cause, at, next, now);
            next = self.hosts.senders[next as usize].ring_next;
        }
    }

    /// Charges the queue pair of a flow, which has waited in the list `at` for a pause until now.
    fn charge_pair(&mut self, pause: &Pause, cause: Cause, at: usize, flow: u32, now: Time) {
        let Some(oracle) = &mut self.blocking else { return };
        let from = oracle.begins(at, pause, now);
        let place = oracle.place(pause.port, cause);
        let place = &mut oracle.blame[place as usize];
        let waited = now.saturating_sub(oracle.pair_joined[flow as usize].max(from));
        let flow_blame = &mut oracle.flows[flow as usize];
        let path = self.hosts.senders[flow as usize].path;
        let (victim, named) = cause.off_path(self.plan, path, &mut oracle.known);
        let (sum, its) = match victim {
            false => (&mut place.source_own, &mut flow_blame.source_own),
            true => (&mut place.source_victim, &mut flow_blame.source_victim),
        };
        *sum += waited;
        *its += waited;
        let waited = if named { waited } else { 0 };
        place.source_named_victim += waited;
        flow_blame.source_named_victim += waited;
    }

    /// A queue pair leaves its list, maybe a paused one: its window has closed, or it waits for another root.
    #[cold]
    pub fn pair_leaves(&mut self, flow: u32) {
        let at = self.ring_of(flow);
        let leaves = &self.egress.leaves;
        let leaf = leaves.used().then(|| leaves.get((at - leaves.list(0)) as u32));
        let of_leaf = leaf.and_then(|leaf| self.observed.pauses.get(leaf.standing as usize));
        let (port, lane) = (self.hosts.senders[flow as usize].port, self.plan.flows[flow as usize].lane);
        let pauses = of_leaf.into_iter().chain(self.observed.standing(port, lane));
        if let Some(&pause) = pauses.min_by_key(|pause| pause.from)
            && let Some(cause) = Cause::of(&pause)
        {
            self.charge_pair(&pause, cause, at, flow, self.now);
        }
        self.ring_wait_ends(flow);
    }

    /// The pause of a list ends now, of packets or of the host's `own` queue pairs.
    fn end_wait(&mut self, pause: &Pause, at: usize, own: bool, now: Time) {
        if let Some(named) = pause.named_root {
            self.check_named(named, at, own);
            let merging = self.blocking.as_ref().and_then(|oracle| oracle.merging);
            if let Some(merges) = merging.filter(|merges| merges.old == named) {
                self.charge_merged(pause, merges, at, own, now);
            }
        }
        if let Some(critical) = self.critical_mut() {
            critical.paused(at, pause, now);
        }
    }

    /// Charges those in the list `at` with a pause that ends now.
    fn charge(&mut self, pause: &Pause, at: usize, own: bool, now: Time) {
        let (Some(oracle), Some(cause)) = (&mut self.blocking, Cause::of(pause)) else { return };
        if own {
            self.charge_pairs(pause, cause, at, now);
        } else {
            oracle.list_resumes(at, pause, cause, now);
        }
        if let Some(oracle) = &mut self.blocking
            && let Some(until) = oracle.charged_until.get_mut(at)
        {
            *until = now;
        }
    }

    /// The pause of the list `at` ends because the root that it named yields to another one: who waited for
    /// it, and not for that one, should have gone on earlier.
    #[cold]
    fn charge_merged(&mut self, pause: &Pause, merges: Merges, at: usize, own: bool, now: Time) {
        let Some(oracle) = &mut self.blocking else { return };
        oracle.merged.pauses += 1;
        let mut next = self.egress.queues[at].head;
        while next != NONE {
            let (path, joined, behind) = match own {
                true => {
                    let sender = &self.hosts.senders[next as usize];
                    (sender.path, oracle.pair_joined[next as usize], sender.ring_next)
                }
                false => {
                    let joined = oracle.joined.get(next as usize).copied().unwrap_or(0);
                    (self.packets[next].hop, joined, self.packets[next].next)
                }
            };
            if !crosses(self.plan, path, merges.into, &mut oracle.known) {
                oracle.merged.waits += 1;
                oracle.merged.victim += now - joined.max(pause.from).max(merges.since).min(now);
            }
            next = behind;
        }
    }

    /// Whether all who waited in the list `at` go through the port that the pause named.
    fn check_named(&mut self, named: u32, at: usize, own: bool) {
        let (mut waits, mut off) = (0, 0);
        let mut next = self.egress.queues[at].head;
        while next != NONE {
            let (path, behind) = match own {
                true => (self.hosts.senders[next as usize].path, self.hosts.senders[next as usize].ring_next),
                false => (self.packets[next].hop, self.packets[next].next),
            };
            waits += 1;
            let known = self.blocking.as_mut().map(|oracle| &mut oracle.known);
            off += u64::from(!crosses(self.plan, path, named, known.unwrap_or(&mut Known::new())));
            next = behind;
        }
        if let Some(oracle) = &mut self.blocking {
            oracle.named.0 += waits;
            oracle.named.1 += off;
        }
    }

    #[cold]
    pub fn lane_resumes(&mut self, port: u32, lane: u8, now: Time) {
        let Some(&pause) = self.observed.standing(port, lane) else { return };
        let first = self.egress.ports[port as usize].first_queue as usize + 1 + usize::from(lane);
        for (at, own) in [(first, false), (first + self.lanes, true)] {
            self.end_wait(&pause, at, own, now);
            self.charge(&pause, at, own, now);
        }
        for leaf in self.leaves_of(port, lane) {
            let l = *self.egress.leaves.get(leaf);
            let earlier = |other: &Pause| other.from <= pause.from;
            // Of two pauses at once the one that began first counts.
            if !self.observed.pauses.get(l.standing as usize).is_some_and(earlier) {
                let own = usize::from(l.queue) > self.lanes;
                self.charge(&pause, self.egress.leaves.list(leaf), own, now);
            }
        }
    }

    #[cold]
    pub fn leaf_resumes(&mut self, leaf: u32, now: Time) {
        let l = *self.egress.leaves.get(leaf);
        let Some(&pause) = self.observed.pauses.get(l.standing as usize) else { return };
        let (at, own) = (self.egress.leaves.list(leaf), usize::from(l.queue) > self.lanes);
        self.end_wait(&pause, at, own, now);
        let by_lane = self.observed.standing(l.port, self.lane_of(&l));
        if by_lane.is_none_or(|other| other.from >= pause.from) {
            self.charge(&pause, at, own, now);
        }
    }

    /// The results, at the end of the run: active pauses end, and waiting packets leave.
    pub fn blame(&mut self, now: Time) -> Option<Blocking> {
        self.blocking.as_ref()?;
        for port in 0..self.egress.ports.len() as u32 {
            (0..self.lanes as u8).for_each(|lane| self.lane_resumes(port, lane, now));
        }
        (0..self.egress.leaves.len() as u32).for_each(|leaf| self.leaf_resumes(leaf, now));
        let mut oracle = self.blocking.take()?;
        for (at, queue) in self.egress.queues.iter().enumerate() {
            // Lists of queue pairs hold no packets.
            let mut next = if oracle.counts[at].length > 0 { queue.head } else { NONE };
            while next != NONE {
                let packet = &self.packets[next];
                oracle.packet_leaves(at, next, packet, self.plan);
                next = packet.next;
            }
        }
        let places = oracle.places.iter().map(|(&at, &place)| (at, oracle.blame[place as usize])).collect();
        Some(Blocking { flows: oracle.flows, places, named: oracle.named, merged: oracle.merged })
    }
}
