//! The reported paths: of complete flows, of the others at the end of a run, and of all parts together.

use super::record::{Piece, Sent, Wait, add};
use super::{ahead, leg};
use crate::outcome::{Ahead, Leg, Share};
use crate::packet::NONE;
use crate::{core::Core, host::flow::SenderState};
use std::collections::BTreeMap;
use xoff_kernel::time::Time;
use xoff_plan::plan::Plan;

/// A path, and its waits for other packets.
type Path = (Vec<Piece>, Vec<Wait>);

/// The paths that a part of a run has recorded at its end.
#[derive(Default)]
pub struct Known {
    /// Of flows whose sources it runs, complete or waiting. `true`: a packet in flight counts if any.
    flows: Vec<(u32, bool, Path)>,
    /// By unfinished flow: the oldest packet in flight, and when it was sent.
    under_way: BTreeMap<u32, (Time, Path)>,
    /// By port: what it sent.
    sent: Vec<Vec<Sent>>,
}

impl Core<'_> {
    /// The records of this part at the end of the run. Before [`Core::blame`].
    pub fn paths(&mut self, now: Time) -> Option<Known> {
        self.now = now;
        for (port, id) in self.links.kept() {
            self.arrives_late(self.egress.ports[port as usize].peer, id);
        }
        let mut critical = self.critical()?;
        let mut known = Known { sent: std::mem::take(&mut critical.sent), ..Known::default() };
        known.flows.extend(critical.done.drain(..).map(|(flow, path, waits)| (flow, false, (path, waits))));
        for (flow, f) in (0u32..).zip(&self.plan.flows) {
            let seen = &self.observed.flows[flow as usize];
            if self.partition.of(f.src) != self.part || !seen.is_unfinished() {
                continue;
            }
            let SenderState { in_ring, held, .. } = self.hosts.senders[flow as usize];
            let path = (self.source_path(&mut critical, flow, now), Vec::new());
            known.flows.push((flow, !in_ring && !held, path));
        }
        for id in 0..self.packets.slots().len() as u32 {
            let packet = self.packets[id];
            let Some(leg) = leg(packet.kind) else { continue };
            let Some(mut record) = critical.take(id) else { continue };
            if known.under_way.get(&packet.flow).is_some_and(|other| other.0 < record.sent) {
                continue;
            }
            if record.list != NONE {
                let port = self.hops[packet.hop as usize];
                let group = self.egress.ports[port as usize].first_queue + 1 + u32::from(packet.lane);
                self.wait_in_queues(&mut critical, &mut record, group, (port, leg, packet.hop), now);
            }
            // A packet on a wire arrives after the end.
            let mut ahead = record.at - now;
            for piece in record.pieces[record.source as usize..].iter_mut().rev() {
                let time = piece.time.min(ahead);
                piece.time -= time;
                ahead -= time;
            }
            let (sent, waits) = (record.sent, record.waits());
            known.under_way.insert(packet.flow, (sent, (record.path(), waits)));
        }
        Some(known)
    }
}

/// The pieces of a path: those of the source first, then port by port; equal pieces are merged.
pub(super) fn in_order(source: Vec<Piece>, network: Vec<Piece>) -> Vec<Piece> {
    let mut places: Vec<(Leg, u32)> = Vec::new();
    for piece in network.iter().chain(&source) {
        if !places.contains(&(piece.leg, piece.port)) {
            places.push((piece.leg, piece.port));
        }
    }
    // Stable: within a leg they stay in the order of the path.
    places.sort_by_key(|place| place.0);
    let mut path = source;
    network.into_iter().for_each(|piece| add(&mut path, piece));
    let place = |p: &Piece| places.iter().position(|&place| place == (p.leg, p.port));
    path.retain(|p| p.time > 0);
    path.sort_by_key(|p| (place(p), p.part, p.root, p.named));
    path
}

/// All flows' paths and the packets ahead of them, from the records of the parts of a run.
pub fn paths(plan: &Plan, parts: Vec<Known>) -> (Vec<Share>, Vec<Ahead>) {
    let mut under_way: BTreeMap<u32, (Time, Path)> = BTreeMap::new();
    let mut flows: Vec<Option<(bool, Path)>> = vec![None; plan.flows.len()];
    let mut sent: Vec<Vec<Sent>> = vec![Vec::new(); plan.topology.ports.len()];
    for part in parts {
        for (flow, waits, path) in part.flows {
            flows[flow as usize] = Some((waits, path));
        }
        for (flow, other) in part.under_way {
            let known = under_way.entry(flow).or_insert_with(|| (Time::MAX, Path::default()));
            if other.0 < known.0 {
                *known = other;
            }
        }
        // A port is of one part.
        for (all, own) in sent.iter_mut().zip(part.sent) {
            if !own.is_empty() {
                *all = own;
            }
        }
    }
    let (mut shares, mut ahead) = (Vec::new(), Vec::new());
    for (flow, known) in (0..).zip(flows) {
        let Some((waits, mut path)) = known else { continue };
        if let Some((_, network)) = under_way.remove(&flow).filter(|_| waits) {
            path = network;
        }
        ahead.extend(ahead::of_flow(plan, &sent, flow, &path.1));
        let path = in_order(path.0, Vec::new());
        let mut step = 0;
        for (i, p) in path.iter().enumerate() {
            step += u32::from(i > 0 && (path[i - 1].leg, path[i - 1].port) != (p.leg, p.port));
            let root = (p.root != NONE).then_some(p.root);
            let &Piece { leg, part, port, named, time, .. } = p;
            shares.push(Share { flow, step, leg, part, port, root, named, time });
        }
    }
    (shares, ahead)
}
