//! The next hop of a packet where its route forks, and the marks that ACKs report if senders change labels.

use crate::core::Core;
use crate::packet::{Kind, Packet};
use xoff_plan::balancing::LoadBalancing;
use xoff_schemes::load_balancing::{PacketRule, adaptive, drill, plb::Ack, ugal};

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
        let offer = || {
            let (minimal, links) = chooser.choices.lengths(entry);
            (ugal::Offer { minimal, non_minimal: options.len() - minimal }, links)
        };
        let chosen = match &chooser.choices.rule {
            PacketRule::Spray => draws.below(options.len() as u64) as usize,
            PacketRule::Drill(params) => {
                let memory = &mut chooser.memory[set * chooser.places..][..chooser.places];
                drill::choose(params, memory, options.len(), draw, load)
            }
            PacketRule::Adaptive(_) if chooser.entries == 0 => adaptive::least(options.len(), draw, load),
            PacketRule::Adaptive(params) => {
                let flow = adaptive::entry(self.packets[id].flow, chooser.entries);
                let burst = &mut chooser.bursts[set * chooser.entries + flow];
                let least = || adaptive::least(options.len(), draw, load);
                adaptive::follow(params, burst, self.now, least)
            }
            PacketRule::Valiant => ugal::valiant(offer().0, draw),
            PacketRule::Ugal(params) => {
                let (offer, links) = offer();
                ugal::choose(params, offer, draw, load, |option| links[option].into())
            }
        };
        let position = options[chosen];
        self.packets[id].hop = position;
        self.hops[position as usize]
    }

    /// The ACK of such a flow reports the marks since the last one. (A NACK that names two packets has no
    /// room; the next one reports them.)
    #[inline(never)]
    pub fn echo_marks(&mut self, id: u32) {
        let packet = &mut self.packets[id];
        if packet.kind == Kind::Nack && !self.hosts.selective_receivers.is_empty() {
            return;
        }
        let echo = &mut self.hosts.echoes[packet.flow as usize];
        let echoed = (*echo).min(0x00ff_ffff);
        *echo -= echoed;
        packet.ahead = Packet::three_bytes(echoed);
    }

    /// An ACK has reached the sender of such a flow, which is not complete yet.
    #[inline(never)]
    pub fn weigh_answer(&mut self, packet: &Packet) {
        let LoadBalancing::Plb(plan) = &self.plan.load_balancing else { return };
        let flow = packet.flow;
        let sender = &self.hosts.senders[flow as usize].transport;
        let labelled = &mut self.hosts.labelled[flow as usize];
        let known = packet.kind != Kind::Nack || self.hosts.selective_senders.is_empty();
        let ack = Ack {
            newly_acknowledged: sender.una - labelled.acknowledged,
            marked: if known { packet.echoed() } else { 0 },
            acknowledged: sender.una,
            sent: sender.highest,
        };
        labelled.acknowledged = sender.una;
        if labelled.plb.on_ack(&plan.params, &ack) {
            labelled.changes.by_marks += 1;
            self.relabel(flow);
        }
    }

    /// Such a flow has timed out.
    #[inline(never)]
    pub fn relabel_after_timeout(&mut self, flow: u32) {
        let labelled = &mut self.hosts.labelled[flow as usize];
        labelled.plb.timed_out();
        labelled.changes.by_timeouts += 1;
        self.relabel(flow);
    }

    /// The flow gets one of its other labels, and that label's route, which begins at the same port. The
    /// caller then kicks that port if the flow is in no ring.
    fn relabel(&mut self, flow: u32) {
        let LoadBalancing::Plb(plan) = &self.plan.load_balancing else { return };
        let labelled = &mut self.hosts.labelled[flow as usize];
        let other = labelled.draws.below(u64::from(plan.labels) - 1) as u32;
        labelled.label = other + u32::from(other >= labelled.label);
        let path = plan.routes(flow)[labelled.label as usize];
        if path != self.hosts.senders[flow as usize].path {
            labelled.changes.moves += 1;
            if self.hosts.senders[flow as usize].in_ring && self.queues_by_route() {
                self.step_aside(flow);
            }
            self.set_data_route(flow, path);
        }
    }
}
