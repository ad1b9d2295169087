//! The next hop of a packet where its route forks, and the marks that ACKs report if senders change labels.

use crate::core::Core;
use crate::packet::{Kind, Packet};
use crate::switch::balancing::Labelled;
use xoff_schemes::load_balancing::seam::{Ack, Arrival, Label};

impl Core<'_> {
    /// A packet's route forks at `entry` of the plan's hops: it takes one path. Returns its egress port.
    #[inline(never)]
    pub fn choose(&mut self, node: u32, id: u32, entry: u32) -> u32 {
        let Some(chooser) = &mut self.chooser else { unreachable!("only such plans have choices") };
        let options = chooser.choices.options(entry);
        let draws = &mut chooser.draws[node as usize];
        let (hops, egress, lanes) = (self.hops, &self.egress, self.lanes);
        let load = |option: usize| -> u64 {
            let first = egress.at(hops[options[option] as usize], 0);
            egress.queues[first..=first + lanes].iter().map(|queue| queue.bytes).sum()
        };
        let draw = |below: u64| draws.below(below);
        let set = chooser.choices.set(entry) as usize;
        let packet = Arrival { flow: self.packets[id].flow, now: self.now };
        let chosen = chooser.choosers.choose(set, packet, chooser.choices.offer(entry), draw, load);
        let position = options[chosen];
        self.packets[id].hop = position;
        self.hops[position as usize]
    }

    /// The ACK of such a flow reports the marks since the last one. (A NACK that names two packets has no
    /// room; the next one reports them.)
    #[inline(never)]
    pub fn echo_marks(&mut self, id: u32) {
        let packet = &mut self.packets[id];
        if packet.kind == Kind::Nack && self.hosts.own_receivers.used() {
            return;
        }
        let echo = &mut self.hosts.echoes[packet.flow as usize];
        let echoed = (*echo).min(0x00ff_ffff);
        *echo -= echoed;
        packet.ahead = Packet::three_bytes(echoed);
    }

    /// The data packet, which has just left a sender that labels each packet, gets a label and its route, which begins
    /// at the same port.
    #[inline(never)]
    pub fn label(&mut self, id: u32) {
        let Some(labels) = self.plan.labels() else { return };
        let packet = &mut self.packets[id];
        let flow = packet.flow;
        let Labelled { labellers, draws, .. } = &mut self.hosts.labelled;
        let number = labellers.next(flow, |below| draws[flow as usize].below(below));
        self.hosts.labelled.current[flow as usize] = number as u16;
        let path = self.hosts.labelled.route(labels, flow, number);
        if packet.hop != path {
            self.hosts.labelled.labellers.on_move(flow);
            packet.hop = path;
            self.hosts.senders[flow as usize].path = path;
        }
        self.telemetry.label(id, number as u16);
    }

    /// The ACK or NACK, which has taken the place of a packet whose sender labels each packet, gets the route of that
    /// label, which begins at the same port.
    #[inline(never)]
    pub fn label_answer(&mut self, id: u32) {
        let Some(labels) = self.plan.labels() else { return };
        let Some(Label { number, .. }) = self.telemetry.beside(id).label else { return };
        let packet = &mut self.packets[id];
        packet.hop = self.hosts.labelled.ack_route(labels, packet.flow, number.into());
    }

    /// An answer with this label has reached the sender of such a flow, which is not complete yet.
    #[inline(never)]
    pub fn weigh_answer(&mut self, packet: &Packet, label: Option<Label>) {
        let flow = packet.flow;
        if self.hosts.labelled.each_packet && label.is_none() {
            return;
        }
        let sender = &self.hosts.senders[flow as usize].transport;
        let Labelled { labellers, draws, acknowledged, each_packet, .. } = &mut self.hosts.labelled;
        let counts = !*each_packet && (packet.kind != Kind::Nack || !self.hosts.own_senders.used());
        let before = std::mem::replace(&mut acknowledged[flow as usize], sender.una);
        let ack = Ack {
            now: self.now,
            newly_acknowledged: sender.una - before,
            marked: if counts { packet.echoed() } else { 0 },
            label,
            acknowledged: sender.una,
            sent: sender.highest,
        };
        if let Some(label) = labellers.on_ack(flow, &ack, |below| draws[flow as usize].below(below)) {
            self.relabel(flow, label);
        }
    }

    /// Such a flow has timed out.
    #[inline(never)]
    pub fn relabel_after_timeout(&mut self, flow: u32) {
        let Labelled { labellers, draws, .. } = &mut self.hosts.labelled;
        if let Some(label) = labellers.on_timeout(flow, self.now, |below| draws[flow as usize].below(below)) {
            self.relabel(flow, label);
        }
    }

    /// The flow gets a label, and that label's route, which begins at the same port. The
    /// caller then kicks that port if the flow is in no ring.
    fn relabel(&mut self, flow: u32, label: u32) {
        let Some(labels) = self.plan.labels() else { return };
        self.hosts.labelled.current[flow as usize] = label as u16;
        let path = self.hosts.labelled.route(labels, flow, label);
        if path != self.hosts.senders[flow as usize].path {
            self.hosts.labelled.labellers.on_move(flow);
            if self.hosts.senders[flow as usize].in_ring && self.queues_by_route() {
                self.step_aside(flow);
            }
            self.set_data_route(flow, path);
        }
    }
}
