//! Packets depart and arrive: the records of their past.

use super::record::{Piece, Record, Sent, add};
use super::{Critical, Past, Place, leg, past};
use crate::outcome::{Leg, Part};
use crate::packet::{Kind, NONE};
use crate::{core::Core, host::flow::SenderState};
use xoff_kernel::{time::Time, wheel::prefetch};

impl Core<'_> {
    pub fn critical(&mut self) -> Option<Box<Critical>> {
        self.blocking.as_mut()?.critical.take()
    }

    pub fn critical_mut(&mut self) -> Option<&mut Critical> {
        self.blocking.as_mut()?.critical.as_deref_mut()
    }

    fn put_back(&mut self, critical: Box<Critical>) {
        if let Some(oracle) = &mut self.blocking {
            oracle.critical = Some(critical);
        }
    }

    /// The present pause of a list.
    fn standing_at(&self, list: u32) -> Option<Past> {
        let first_leaf = self.egress.queues.len() - self.egress.leaves.len();
        let pause = if list as usize >= first_leaf {
            let leaf = self.egress.leaves.get(list - first_leaf as u32);
            self.observed.pauses.get(leaf.standing as usize)
        } else {
            let queues = (1 + 2 * self.lanes) as u32;
            let lane = (list % queues).checked_sub(1)? as usize % self.lanes;
            self.observed.standing(list / queues, lane as u8)
        };
        pause.map(|pause| past(pause, Time::MAX))
    }

    #[cold]
    pub fn path_begins(&mut self, flow: u32) {
        let now = self.now;
        if let Some(critical) = self.critical_mut() {
            critical.sources[flow as usize].at = now;
        }
    }

    /// The wait of a flow's queue pair in its ring ends: it sends, or leaves the ring.
    #[cold]
    pub fn ring_wait_ends(&mut self, flow: u32) {
        let Some(mut critical) = self.critical() else { return };
        self.wait_in_ring(&mut critical, flow);
        self.put_back(critical);
    }

    pub fn wait_in_ring(&self, critical: &mut Critical, flow: u32) {
        let sender = &self.hosts.senders[flow as usize];
        let port = sender.port;
        let lane = u32::from(self.plan.flows[flow as usize].lane);
        let place = Place {
            list: self.ring_of(flow) as u32,
            group: self.egress.ports[port as usize].first_queue + 1 + self.lanes as u32 + lane,
            port,
            leg: Leg::Source,
            plan: self.plan,
            hop: sender.path,
        };
        let standing = [self.standing_at(place.list), self.standing_at(place.group)];
        let mut source = std::mem::take(&mut critical.sources[flow as usize]);
        critical.cut(place, (source.at, self.now), standing, |piece| add(&mut source.pieces, piece));
        source.at = source.at.max(self.now);
        critical.sources[flow as usize] = source;
    }

    /// A flow's wait outside of its ring ends: by its pace, its timer, or an ACK or NACK (packet `response`).
    #[cold]
    pub fn source_wait_ends(&mut self, flow: u32, response: Option<u32>) {
        let (now, sender) = (self.now, &self.hosts.senders[flow as usize]);
        let (port, next) = (sender.port, sender.transport.next);
        let Some(critical) = self.critical_mut() else { return };
        let source = &mut critical.sources[flow as usize];
        let mut left = now.saturating_sub(source.at);
        source.at = source.at.max(now);
        let here = |part, time| Piece::free(Leg::Source, part, port, time);
        if next < source.highest {
            return add(&mut source.pieces, here(Part::Recovery, left));
        }
        let followed = response.filter(|id| critical.live.get(*id as usize) == Some(&true));
        let Some(id) = followed else { return add(&mut source.pieces, here(Part::Pacing, left)) };
        for piece in critical.records[id as usize].network().iter().rev() {
            let time = piece.time.min(left);
            add(&mut source.pieces, Piece { time, ..*piece });
            left -= time;
        }
        debug_assert_eq!(left, 0, "the packet was under way before the wait began");
    }

    #[cold]
    pub fn pace_ends(&mut self, flow: u32) {
        let (now, port) = (self.now, self.hosts.senders[flow as usize].port);
        let Some(critical) = self.critical_mut() else { return };
        let source = &mut critical.sources[flow as usize];
        let time = now.saturating_sub(source.at);
        source.at = source.at.max(now);
        add(&mut source.pieces, Piece::free(Leg::Source, Part::Pacing, port, time));
    }

    /// Packet `id` of `queue` of `port` goes on the wire now.
    #[cold]
    #[inline(never)]
    pub fn departs(&mut self, port: u32, queue: usize, id: u32) {
        let Some(mut critical) = self.critical() else { return };
        let (packet, now, p) = (self.packets[id], self.now, &self.egress.ports[port as usize]);
        let flow = if packet.kind == Kind::Control { NONE } else { packet.flow };
        critical.sent[port as usize].push(Sent { at: now, flow, size: packet.size });
        let Some(leg) = leg(packet.kind) else {
            critical.forget(id);
            return self.put_back(critical);
        };
        let own = leg == Leg::Data && queue > self.lanes;
        if !own && !critical.follows(id) {
            return self.put_back(critical);
        }
        let sending = p.wire_time(packet.size, || self.plan.topology.ports[port as usize].rate);
        let group = p.first_queue + queue as u32;
        let mut record;
        if own {
            self.wait_in_ring(&mut critical, packet.flow);
            let last = packet.number + 1 == self.hosts.senders[packet.flow as usize].transport.total;
            let again = packet.number < critical.sources[packet.flow as usize].highest;
            let followed = critical.all || last || again;
            record = if followed { std::mem::take(critical.begin(id)) } else { Record::default() };
            let source = &mut critical.sources[packet.flow as usize];
            source.rewind(now);
            if followed {
                (record.sent, record.at, record.stays) = (now, now, None);
                record.source = source.pieces.len() as u32;
                record.pieces.clone_from(&source.pieces);
            }
            let part = if again { Part::Recovery } else { Part::Sending };
            add(&mut source.pieces, Piece::free(Leg::Source, part, port, sending));
            source.highest = source.highest.max(packet.number + 1);
            source.last = Some((port, part));
            source.at = now + sending;
            if !followed {
                critical.forget(id);
                return self.put_back(critical);
            }
        } else {
            // The packet after it is next, and its record may be anywhere in memory.
            prefetch(&critical.records, packet.next as usize);
            record = std::mem::take(&mut critical.records[id as usize]);
            self.wait_in_queues(&mut critical, &mut record, group, (port, leg, packet.hop), now);
        }
        let mut on = |part, time| {
            if time > 0 {
                record.pieces.push(Piece::free(leg, part, port, time));
            }
        };
        on(Part::Sending, sending);
        on(Part::Propagation, p.delay);
        record.at = now + sending + p.delay;
        record.list = NONE;
        critical.records[id as usize] = record;
        self.put_back(critical);
    }

    /// A packet that left `port` has arrived only now, because its link has retransmitted it.
    #[cold]
    pub fn arrives_late(&mut self, port: u32, id: u32) {
        let (packet, now) = (self.packets[id], self.now);
        let (Some(leg), Some(critical)) = (leg(packet.kind), self.critical_mut()) else { return };
        if !critical.follows(id) {
            return;
        }
        let record = &mut critical.records[id as usize];
        let late = now.saturating_sub(record.at);
        record.pieces.push(Piece::free(leg, Part::Recovery, port, late));
        record.at += late;
    }

    /// Records the waits at a port of a packet at `hop` of the plan's hops.
    pub fn wait_in_queues(
        &self,
        critical: &mut Critical,
        record: &mut Record,
        group: u32,
        (port, leg, hop): (u32, Leg, u32),
        now: Time,
    ) {
        let last = if record.list == NONE { group } else { record.list };
        let stays = record.stays.take();
        for &(list, until) in stays.iter().flat_map(|stays| stays.iter()).chain(&[(last, now)]) {
            let place = Place { list, group, port, leg, plan: self.plan, hop };
            let standing = [self.standing_at(list), self.standing_at(group)];
            critical.cut(place, (record.at, until), standing, |piece| record.pieces.push(piece));
            record.at = record.at.max(until);
        }
    }

    /// The ACK `id`, which has just been taken out, completes its flow.
    #[cold]
    pub fn path_ends(&mut self, flow: u32, id: u32) {
        let took = self.now - self.observed.flows[flow as usize].started.unwrap_or(0);
        let Some(critical) = self.critical_mut() else { return };
        let record = critical.take(id).expect("what completes a flow is followed");
        let (waits, path) = (record.waits(), record.path());
        assert_eq!(path.iter().map(|p| p.time).sum::<Time>(), took, "the parts of flow {flow} add up");
        critical.done.push((flow, path, waits));
        critical.sources[flow as usize].pieces = Vec::new();
    }

    /// The sender of a flow gives up: all of its time is that of its source. Before it leaves its ring.
    #[cold]
    pub fn path_is_cut(&mut self, flow: u32) {
        let now = self.now;
        let Some(mut critical) = self.critical() else { return };
        let path = self.source_path(&mut critical, flow, now);
        critical.done.push((flow, path, Vec::new()));
        self.put_back(critical);
    }

    /// The pieces of an unfinished flow at its source until `now`.
    pub(super) fn source_path(&self, critical: &mut Critical, flow: u32, now: Time) -> Vec<Piece> {
        let SenderState { in_ring, held, port, .. } = self.hosts.senders[flow as usize];
        critical.sources[flow as usize].rewind(now);
        if in_ring {
            self.wait_in_ring(critical, flow);
        }
        let source = &mut critical.sources[flow as usize];
        let part = if held { Part::Pacing } else { Part::Recovery };
        add(&mut source.pieces, Piece::free(Leg::Source, part, port, now - source.at));
        source.at = now;
        std::mem::take(&mut source.pieces)
    }

    /// A link has recovered, and a lane of its port is held.
    #[cold]
    pub fn lane_is_held(&mut self, port: u32, lane: u8) {
        let now = self.now;
        if let Some(critical) = self.critical_mut() {
            critical.held.entry((port, lane)).or_insert(now);
        }
    }

    /// A lane that may have been held goes on.
    #[cold]
    pub fn held_lane_resumes(&mut self, port: u32, lane: u8) {
        let until = self.observed.standing(port, lane).map_or(self.now, |pause| pause.from);
        let first = self.egress.ports[port as usize].first_queue as usize + 1 + usize::from(lane);
        let lanes = self.lanes;
        // Without rates of the flow control, only a link that has just recovered is held.
        let part = if self.plan.flow_control.traits().slows { Part::Pacing } else { Part::Down };
        let Some(critical) = self.critical_mut() else { return };
        if let Some(from) = critical.held.remove(&(port, lane)) {
            for list in [first, first + lanes] {
                critical.pasts[list].push(Past::closed(from, until, part));
            }
        }
    }
}
