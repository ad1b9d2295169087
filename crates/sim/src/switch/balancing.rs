//! Load balancing: devices that choose for each packet, and senders that change the labels of their flows.
//! The state is in arrays that are empty under ECMP.
//!
//! A device chooses when a packet has arrived whose route forks, by its own queues and its own random stream.
//! A sender evaluates its ACKs; its receiver counts the marks between two of them.

use xoff_kernel::random::Stream;
use xoff_plan::balancing::{Choices, LoadBalancing};
use xoff_plan::plan::Plan;
use xoff_schemes::load_balancing::PacketRule;
use xoff_schemes::load_balancing::adaptive::Burst;
use xoff_schemes::load_balancing::drill::EMPTY;
use xoff_schemes::load_balancing::plb::Plb;
use xoff_schemes::load_balancing::plb::report::Relabelling;

pub struct Chooser<'a> {
    pub choices: &'a Choices,
    pub draws: Vec<Stream>,
    /// By set of ports, so many places each.
    pub memory: Vec<u16>,
    pub places: usize,
    /// By set of ports, so many entries each.
    pub bursts: Vec<Burst>,
    pub entries: usize,
}

impl<'a> Chooser<'a> {
    pub fn new(plan: &'a Plan) -> Option<Box<Self>> {
        let LoadBalancing::Packets(choices) = &plan.load_balancing else { return None };
        let name = match choices.rule {
            PacketRule::Spray => "spraying",
            PacketRule::Drill(_) => "DRILL",
            PacketRule::Adaptive(_) => "adaptive routing",
            PacketRule::Valiant | PacketRule::Ugal(_) => "non-minimal routing",
        };
        let sets = choices.sets.iter().max().map_or(0, |&last| last as usize + 1);
        let (places, entries) = (choices.rule.memory(), choices.rule.bursts());
        Some(Box::new(Self {
            choices,
            draws: (0..plan.topology.nodes.len() as u64).map(|n| Stream::new(plan.seed, name, n)).collect(),
            memory: vec![EMPTY; sets * places],
            places,
            bursts: vec![Burst::default(); sets * entries],
            entries,
        }))
    }
}

pub struct Labelled {
    pub plb: Plb,
    pub draws: Stream,
    pub label: u32,
    /// Data packets that earlier ACKs have acknowledged.
    pub acknowledged: u32,
    /// How often it has changed so far.
    pub changes: Relabelling,
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
