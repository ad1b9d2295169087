//! Load balancing: devices that choose for each packet, and senders that change the
//! labels of their flows. The state is in arrays that are empty under ECMP.
//!
//! A device chooses when a packet has arrived whose route forks there, by the queues
//! of its own ports and its own random stream. A sender looks at the answers that come
//! to it; its receiver counts the marks between two of them.

use crate::core::Core;
use crate::packet::{Kind, Packet};
use xoff_kernel::random::Stream;
use xoff_plan::balancing::{Choices, LoadBalancing};
use xoff_plan::plan::Plan;
use xoff_schemes::load_balancing::PacketRule;
use xoff_schemes::load_balancing::drill::{self, EMPTY};
use xoff_schemes::load_balancing::plb::report::Relabelling;
use xoff_schemes::load_balancing::plb::{Answer, Plb};

/// Devices that choose for each packet.
pub struct Chooser<'a> {
    choices: &'a Choices,
    draws: Vec<Stream>,
    /// By set of ports, so many places each.
    memory: Vec<u16>,
    places: usize,
}

impl<'a> Chooser<'a> {
    /// The devices of a plan, before anything has arrived; `None` if they do not choose.
    pub fn new(plan: &'a Plan) -> Option<Box<Self>> {
        let LoadBalancing::Packets(choices) = &plan.load_balancing else { return None };
        let name = match choices.rule {
            PacketRule::Spray => "spraying",
            PacketRule::Drill(_) => "DRILL",
        };
        let sets = choices.sets.iter().max().map_or(0, |&last| last as usize + 1);
        let places = choices.rule.memory();
        Some(Box::new(Self {
            choices,
            draws: (0..plan.topology.nodes.len() as u64).map(|n| Stream::new(plan.seed, name, n)).collect(),
            memory: vec![EMPTY; sets * places],
            places,
        }))
    }
}

/// The sending end of a flow that changes its label.
pub struct Labelled {
    plb: Plb,
    draws: Stream,
    label: u32,
    /// Data packets that earlier answers have acknowledged.
    acknowledged: u32,
    changes: Relabelling,
}

/// By flow; empty where senders do not change labels.
pub fn labelled(plan: &Plan) -> Vec<Labelled> {
    let LoadBalancing::Plb(_) = &plan.load_balancing else { return Vec::new() };
    let flow = |flow: usize| Labelled {
        plb: Plb::default(),
        draws: Stream::new(plan.seed, "PLB", flow as u64),
        label: 0,
        acknowledged: 0,
        changes: Relabelling::default(),
    };
    (0..plan.flows.len()).map(flow).collect()
}

impl Labelled {
    /// How often it has changed so far.
    pub fn changes(&self) -> Relabelling {
        self.changes
    }
}

impl Core<'_> {
    /// A packet has come to a device where its route forks, at `entry` of the plan's
    /// hops: it goes on by one of the ways. Answers its egress port.
    #[inline(never)]
    pub fn choose(&mut self, node: u32, id: u32, entry: u32) -> u32 {
        let Some(chooser) = &mut self.chooser else { unreachable!("only such plans have choices") };
        let options = chooser.choices.options(entry);
        let draws = &mut chooser.draws[node as usize];
        let chosen = match &chooser.choices.rule {
            PacketRule::Spray => draws.below(options.len() as u64) as usize,
            PacketRule::Drill(params) => {
                let set = chooser.choices.set(entry) as usize;
                let memory = &mut chooser.memory[set * chooser.places..][..chooser.places];
                let (hops, ports, queues, lanes) = (self.hops, &self.ports, &self.queues, self.lanes);
                let load = |option: usize| -> u64 {
                    let first = ports[hops[options[option] as usize] as usize].first_queue as usize;
                    queues[first..=first + lanes].iter().map(|queue| queue.bytes).sum()
                };
                drill::choose(params, memory, options.len(), |below| draws.below(below), load)
            }
        };
        let position = options[chosen];
        self.packets[id].hop = position;
        self.hops[position as usize]
    }

    /// The answer of a flow whose sender changes its label tells of the marks since the last one, if it can: a
    /// NACK that names two packets has no room, and the next answer tells of them.
    #[inline(never)]
    pub fn echo_marks(&mut self, id: u32) {
        let packet = &mut self.packets[id];
        if packet.kind == Kind::Nack && !self.selective_receivers.is_empty() {
            return;
        }
        let echo = &mut self.echoes[packet.flow as usize];
        let told = (*echo).min(0x00ff_ffff);
        *echo -= told;
        packet.ahead = Packet::three_bytes(told);
    }

    /// An answer has come to the sender of such a flow, which is not complete yet.
    #[inline(never)]
    pub fn weigh_answer(&mut self, packet: &Packet) {
        let LoadBalancing::Plb(plan) = &self.plan.load_balancing else { return };
        let flow = packet.flow;
        let sender = &self.senders[flow as usize].transport;
        let labelled = &mut self.labelled[flow as usize];
        let known = packet.kind != Kind::Nack || self.selective_senders.is_empty();
        let answer = Answer {
            news: sender.una - labelled.acknowledged,
            marked: if known { packet.told() } else { 0 },
            acknowledged: sender.una,
            sent: sender.highest,
        };
        labelled.acknowledged = sender.una;
        if labelled.plb.answered(&plan.params, &answer) {
            labelled.changes.by_marks += 1;
            self.relabel(flow);
        }
    }

    /// Such a flow has timed out.
    #[inline(never)]
    pub fn relabel_after_timeout(&mut self, flow: u32) {
        let labelled = &mut self.labelled[flow as usize];
        labelled.plb.timed_out();
        labelled.changes.by_timeouts += 1;
        self.relabel(flow);
    }

    /// The flow gets one of its other labels, and goes over to that one's route, which
    /// begins at the same port. The caller then kicks that port if the flow stands in no
    /// ring.
    fn relabel(&mut self, flow: u32) {
        let LoadBalancing::Plb(plan) = &self.plan.load_balancing else { return };
        let labelled = &mut self.labelled[flow as usize];
        let other = labelled.draws.below(u64::from(plan.labels) - 1) as u32;
        labelled.label = other + u32::from(other >= labelled.label);
        let path = plan.routes(flow)[labelled.label as usize];
        if path != self.senders[flow as usize].path() {
            labelled.changes.moves += 1;
            if self.senders[flow as usize].ready() && self.queues_by_route() {
                self.step_aside(flow);
            }
            self.set_data_route(flow, path);
        }
    }
}
