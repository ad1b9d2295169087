//! Hosts as senders: their queues, their requests, and the cells that they are granted.

use crate::cores::Part;
use crate::scheduler::{Planned, Rts};
use crate::voq::{Items, NONE, Piece, Voq};
use crate::{World, kind};
use std::collections::VecDeque;
use xoff_kernel::{time::Time, wheel::Event};
use xoff_schemes::scheduling::zeropod::{Link, Sender, Subtract, Target};

/// A host's data for a target: one of its pod, or another pod.
#[derive(Clone, Copy, Default)]
pub struct Wanted {
    /// Cells that it would need now.
    pub cells: u32,
    /// Cells requested, and granted for epochs which have begun; counts that wrap around.
    pub asked: u32,
    pub served: u32,
    /// Whether it is among the host's news, and among those with mice.
    pub is_news: bool,
    pub has_mice: bool,
}

#[derive(Default)]
pub struct Host {
    /// Flows that have begun and are in no queue yet.
    pub begun: VecDeque<(Time, u32)>,
    /// Targets for which more cells are needed than requested.
    pub pending: Vec<u16>,
    /// Targets for which mice wait, or did.
    pub mice: Vec<u16>,
    /// Whether its mice have changed since the last RTS.
    pub mice_changed: bool,
    /// Queues for other pods, by pod, that are not empty.
    pub open: Vec<Vec<u32>>,
}

impl World<'_> {
    /// The queue from one host to another.
    fn voq(&mut self, src: u32, dst: u32) -> u32 {
        let at = &mut self.voq_of[src as usize * self.all + dst as usize];
        if *at == NONE {
            *at = self.voqs.len() as u32;
            self.voqs.push(Voq::new(src, dst));
        }
        *at
    }

    /// Which target of `src` a host is.
    fn target(&self, src: u32, dst: u32) -> u16 {
        let (src, dst, per_pod) = (src as usize, dst as usize, self.per_pod);
        let target = if src / per_pod == dst / per_pod { dst % per_pod } else { per_pod + dst / per_pod };
        target as u16
    }

    /// Puts the flows that began at a host by `until` into its queues.
    fn enqueue_begun(&mut self, host: usize, until: Time) {
        while let Some(&(at, item)) = self.hosts[host].begun.front() {
            if at > until {
                return;
            }
            self.hosts[host].begun.pop_front();
            let (src, dst) = match self.plan.flows.get(item as usize) {
                Some(flow) => (flow.src, flow.dst),
                None => {
                    let acks = self.acks.as_ref().expect("all other items are acknowledgements");
                    let (flow, _) = acks.acks_sent[item as usize - self.plan.flows.len()];
                    let flow = &self.plan.flows[flow as usize];
                    (flow.dst, flow.src)
                }
            };
            let voq = self.voq(src, dst);
            self.items.list[item as usize].voq = voq;
            self.change(voq, |queue, items| queue.add(items, item));
        }
    }

    /// Puts something into a queue.
    pub(crate) fn change(&mut self, voq: u32, put: impl FnOnce(&mut Voq, &mut Items)) {
        let payload = u64::from(self.zeropod.scheduler.payload);
        let queue = &mut self.voqs[voq as usize];
        let before = queue.bytes.div_ceil(payload);
        put(queue, &mut self.items);
        let (src, dst, after, mice) = (queue.src, queue.dst, queue.bytes.div_ceil(payload), queue.mice);
        let target = self.target(src, dst);
        let host = &mut self.hosts[src as usize];
        let wanted = &mut self.wanted[src as usize * self.targets + usize::from(target)];
        wanted.cells += (after - before) as u32;
        if !std::mem::replace(&mut wanted.is_news, true) {
            host.pending.push(target);
        }
        if mice > 0 {
            host.mice_changed = true;
            if !std::mem::replace(&mut wanted.has_mice, true) {
                host.mice.push(target);
            }
        }
        if before == 0 && usize::from(target) >= self.per_pod {
            host.open[usize::from(target) - self.per_pod].push(voq);
        }
    }

    /// Bytes of mice that a host has for a target.
    fn mice_for(&self, host: usize, target: u16) -> u64 {
        match usize::from(target).checked_sub(self.per_pod) {
            None => {
                let dst = host / self.per_pod * self.per_pod + usize::from(target);
                let voq = self.voq_of[host * self.all + dst];
                self.voqs.get(voq as usize).map_or(0, |voq| voq.mice)
            }
            Some(pod) => self.hosts[host].open[pod].iter().map(|&voq| self.voqs[voq as usize].mice).sum(),
        }
    }

    /// An epoch begins at the hosts of a pod.
    pub(crate) fn hosts_begin(&mut self, pod: u16) {
        let epoch = self.epoch_at(pod, 0);
        if epoch > 0 {
            self.request(pod, epoch - 1, self.now - self.epoch);
        }
        for host in 0..self.per_pod {
            self.enqueue_begun(usize::from(pod) * self.per_pod + host, self.now);
        }
        self.for_grants(pod, epoch, |world, planned| match planned.grant.demand.from {
            Sender::Host(host) if !planned.lost => world.send_from_host(pod, host, epoch, planned),
            _ => {}
        });
        self.wheel.push(Event::new(self.now + self.epoch, kind::HOSTS, u32::from(pod), 0));
    }

    /// The RTS that the hosts of a pod have sent in an epoch that began at `base`.
    fn request(&mut self, pod: u16, epoch: u64, base: Time) {
        let slots = self.zeropod.slots;
        let first = self.pods[usize::from(pod)].from_hosts.len();
        for host in 0..self.per_pod as u16 {
            let index = usize::from(pod) * self.per_pod + usize::from(host);
            let h = &self.hosts[index];
            if h.begun.is_empty() && h.pending.is_empty() && !h.mice_changed && !self.watches {
                continue;
            }
            let position = u32::from(host % self.zeropod.pod.hosts_per_rack);
            let to = self.laid(usize::from(pod), Link::HostUp { host }, epoch).map(|laid| laid.to);
            let at = base + slots.rts_at(position, to);
            self.enqueue_begun(index, at);
            let h = &mut self.hosts[index];
            if h.pending.is_empty() && !h.mice_changed && !self.watches {
                continue;
            }
            let mut rts = self.pods[usize::from(pod)].blank();
            rts.arrives = at + slots.control + 2 * self.hop;
            rts.row = host;
            for target in h.pending.drain(..) {
                let wanted = &mut self.wanted[index * self.targets + usize::from(target)];
                wanted.is_news = false;
                let promised = wanted.asked.wrapping_sub(wanted.served);
                if wanted.cells > promised {
                    wanted.asked = wanted.asked.wrapping_add(wanted.cells - promised);
                    rts.asks.push((target, wanted.asked));
                }
            }
            rts.names_mice = std::mem::take(&mut h.mice_changed) || self.watches;
            if rts.names_mice {
                self.name_mice(index, &mut rts);
            }
            if self.watches {
                self.repeat(pod, epoch, &mut rts, |world, target| {
                    let wanted = &world.wanted[index * world.targets + usize::from(target)];
                    (wanted.asked, wanted.served)
                });
            }
            if !self.watches && rts.asks.is_empty() && !rts.names_mice {
                self.pods[usize::from(pod)].spare.push(rts);
                continue;
            }
            if self.taps.is_some() {
                self.tap_rts(pod, epoch, at, &rts);
            }
            if self.watches && self.rts_is_lost(pod, host, at) {
                self.pods[usize::from(pod)].spare.push(rts);
                continue;
            }
            self.report.most_in_rts = self.report.most_in_rts.max((rts.asks.len() + rts.mice.len()) as u64);
            self.pods[usize::from(pod)].from_hosts.push_back(rts);
        }
        let sent = &mut self.pods[usize::from(pod)].from_hosts.make_contiguous()[first..];
        sent.sort_by_key(|rts| (rts.arrives, rts.row));
    }

    /// Lets an RTS repeat all pending requests, with the counts `of` a target, and report an earlier epoch.
    pub(crate) fn repeat(&self, pod: u16, epoch: u64, rts: &mut Rts, of: impl Fn(&Self, u16) -> (u32, u32)) {
        rts.epoch = epoch;
        rts.asks.clear();
        for target in 0..self.targets as u16 {
            let (asked, served) = of(self, target);
            if asked != served {
                rts.asks.push((target, asked));
                rts.served.push((target, served));
            }
        }
        (rts.said, rts.no_schd) = self.account(pod, rts.row, epoch);
    }

    /// Names the targets with the smallest mice (§IV-B.1).
    fn name_mice(&mut self, host: usize, rts: &mut Rts) {
        let mut mice = std::mem::take(&mut self.hosts[host].mice);
        self.room.clear();
        mice.retain(|&target| {
            let bytes = self.mice_for(host, target);
            if bytes > 0 {
                self.room.push((bytes, target));
            }
            self.wanted[host * self.targets + usize::from(target)].has_mice = bytes > 0;
            bytes > 0
        });
        self.hosts[host].mice = mice;
        let top = usize::from(self.zeropod.top_k);
        if self.room.len() > top {
            if top > 0 {
                self.room.select_nth_unstable(top - 1);
            }
            self.room.truncate(top);
        }
        for &(bytes, target) in &self.room {
            let wanted = &self.wanted[host * self.targets + usize::from(target)];
            rts.mice.push((target, bytes, wanted.served));
        }
    }

    /// A host sends the cells of a grant, in the epoch that begins now.
    fn send_from_host(&mut self, pod: u16, host: u16, epoch: u64, planned: &Planned) {
        let src = usize::from(pod) * self.per_pod + usize::from(host);
        let payload = self.zeropod.scheduler.payload;
        let cells = self.begun(planned);
        let mut pieces = std::mem::take(&mut self.pieces);
        let mut filled = 0;
        let wanted = src * self.targets + usize::from(planned.column);
        let (path, links) = self.path(planned);
        let path = &path[..links];
        match planned.grant.demand.to {
            Target::Host(to) => {
                let voq = self.voq_of[src * self.all + usize::from(pod) * self.per_pod + usize::from(to)];
                // Where cells may be lost they are looked at one by one.
                let together = if self.watches { 1 } else { cells };
                while filled < cells && voq != NONE {
                    pieces.clear();
                    let queue = &mut self.voqs[voq as usize];
                    let before = queue.mice;
                    let taken = queue.take(&mut self.items, (together, payload), false, &mut pieces);
                    self.hosts[src].mice_changed |= queue.mice != before;
                    self.wanted[wanted].cells = queue.bytes.div_ceil(u64::from(payload)) as u32;
                    if taken == 0 {
                        break;
                    }
                    self.arrive_behind(pod, &pieces, planned, path, (filled, taken), false);
                    self.sent_all(&pieces);
                    filled += taken;
                    if !self.watches {
                        break;
                    }
                }
            }
            Target::Pod(to) => {
                let core = planned.grant.core.expect("what leaves the pod goes to a core");
                let mice_only = core >= self.zeropod.pod.cores - self.zeropod.scheduler.mice_cores;
                while filled < cells {
                    let open = &self.hosts[src].open[usize::from(to)];
                    let head = |&voq: &u32| {
                        let head = self.voqs[voq as usize].head(&self.items)?;
                        (!mice_only || head.0 == 0).then_some((head, voq))
                    };
                    let Some((_, voq)) = open.iter().filter_map(head).min() else { break };
                    let queue = &mut self.voqs[voq as usize];
                    let before = queue.mice;
                    pieces.clear();
                    queue.take(&mut self.items, (1, payload), mice_only, &mut pieces);
                    self.hosts[src].mice_changed |= queue.mice != before;
                    let dst = queue.dst;
                    if queue.bytes == 0 {
                        let open = &mut self.hosts[src].open[usize::from(to)];
                        let at = open.iter().position(|&o| o == voq).expect("it was chosen among them");
                        open.swap_remove(at);
                    }
                    let sent = self.now + self.zeropod.slots.data_at(filled, planned.from, planned.to);
                    pieces.iter().for_each(|piece| self.first_sent(piece.item, sent, 1));
                    self.sent_all(&pieces);
                    self.counters.sent += 1;
                    filled += 1;
                    if self.taps.is_some() {
                        self.tap_cells(pod, path, &pieces, 1, &|_| sent);
                    }
                    if self.is_lost(pod, path, sent, &pieces) {
                        continue;
                    }
                    let arrives = sent + 3 * self.hop + self.zeropod.slots.data;
                    if self.watches {
                        self.saw(pod, (self.per_pod + usize::from(core)) as u16, epoch, false);
                    }
                    let coming = &mut self.cores[usize::from(core)].coming[usize::from(pod)];
                    for (index, &Piece { item, from, bytes, .. }) in pieces.iter().enumerate() {
                        let ends_cell = index + 1 == pieces.len();
                        let part = Part { item, from, bytes: bytes as u32, ends_cell };
                        coming.push_back((arrives, dst, part));
                    }
                }
                let open = &self.hosts[src].open[usize::from(to)];
                let need = |&voq: &u32| self.voqs[voq as usize].bytes.div_ceil(u64::from(payload)) as u32;
                self.wanted[wanted].cells = open.iter().map(need).sum();
            }
        }
        self.use_links(pod, path, filled);
        if self.watches && filled > 0 {
            self.saw(pod, host, epoch, true);
        }
        self.report.unused += u64::from(cells - filled);
        // Requested cells were served, used or not; cells that are still needed are requested again.
        let w = &mut self.wanted[wanted];
        let served = match self.zeropod.scheduler.subtract {
            Subtract::AtOnce => cells,
            // The same cells may have been granted repeatedly.
            Subtract::WithSchd => cells.min(w.asked.wrapping_sub(w.served)),
        };
        w.served = w.served.wrapping_add(served);
        if w.cells > w.asked.wrapping_sub(w.served) && !std::mem::replace(&mut w.is_news, true) {
            self.hosts[src].pending.push(planned.column);
        }
        self.pieces = pieces;
    }
}
