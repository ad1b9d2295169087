//! Load balancing: devices that choose for each packet, and senders that label their packets.
//! The state is empty under ECMP.
//!
//! A device chooses when a packet has arrived whose route forks, by its own queues and its own random stream.
//! A sender evaluates its ACKs; its receiver counts the marks between two of them.

use xoff_kernel::random::Stream;
use xoff_plan::balancing::{Choices, Labels, LoadBalancing};
use xoff_plan::plan::{LabelRoute, Plan};
use xoff_schemes::load_balancing::{Choosers, Labellers};

pub struct Chooser<'a> {
    pub choices: &'a Choices,
    pub draws: Vec<Stream>,
    pub choosers: Choosers,
}

impl<'a> Chooser<'a> {
    pub fn new(plan: &'a Plan) -> Option<Box<Self>> {
        let LoadBalancing::Packets(choices) = &plan.load_balancing else { return None };
        let stream = |node| Stream::new(plan.seed, choices.rule.stream(), node);
        let sets = choices.sets.iter().max().map_or(0, |&last| last as usize + 1);
        Some(Box::new(Self {
            choices,
            draws: (0..plan.topology.nodes.len() as u64).map(stream).collect(),
            choosers: Choosers::new(&choices.rule, sets),
        }))
    }
}

/// The senders that label their packets, by flow; empty where there are none.
#[derive(Default)]
pub struct Labelled {
    pub labellers: Labellers,
    pub draws: Vec<Stream>,
    /// Data packets that earlier ACKs have acknowledged.
    pub acknowledged: Vec<u32>,
    /// Whether each packet can have another label.
    pub each_packet: bool,
    /// The label of the last packet, or of the next one.
    pub current: Vec<u16>,
    /// By flow and label, as those of the plan; empty until routes change.
    routes: Vec<u32>,
    ack_routes: Vec<u32>,
}

impl Labelled {
    pub fn new(plan: &Plan) -> Self {
        let Some(labels) = plan.labels() else { return Self::default() };
        let flows = plan.flows.len();
        Self {
            labellers: Labellers::new(&labels.rule, flows),
            draws: (0..flows as u64).map(|flow| Stream::new(plan.seed, labels.rule.stream(), flow)).collect(),
            acknowledged: vec![0; flows],
            each_packet: labels.rule.each_packet(),
            current: vec![0; flows],
            routes: Vec::new(),
            ack_routes: Vec::new(),
        }
    }

    /// Where the route of a flow's label starts.
    #[inline]
    pub fn route(&self, labels: &Labels, flow: u32, label: u32) -> u32 {
        match self.routes.is_empty() {
            true => labels.routes(flow)[label as usize],
            false => self.routes[flow as usize * labels.rule.labels() as usize + label as usize],
        }
    }

    /// Where the route of answers with a flow's label starts.
    #[inline]
    pub fn ack_route(&self, labels: &Labels, flow: u32, label: u32) -> u32 {
        match self.ack_routes.is_empty() {
            true => labels.ack_routes(flow)[label as usize],
            false => self.ack_routes[flow as usize * labels.rule.labels() as usize + label as usize],
        }
    }

    /// Where the route of a flow's current label starts; `None` if there are no labels.
    pub fn current_route(&self, plan: &Plan, flow: u32) -> Option<u32> {
        let labels = plan.labels()?;
        Some(self.route(labels, flow, self.current[flow as usize].into()))
    }

    /// Routes change: these labels have other ones.
    pub fn reroute(&mut self, plan: &Plan, changed: &[LabelRoute]) {
        let Some(labels) = plan.labels() else { return };
        if self.routes.is_empty() {
            self.routes.clone_from(&labels.routes);
            self.ack_routes.clone_from(&labels.ack_routes);
        }
        let count = labels.rule.labels() as usize;
        for &LabelRoute { flow, label, path, ack_path } in changed {
            let entry = flow as usize * count + label as usize;
            self.routes[entry] = path;
            if let Some(path) = ack_path {
                self.ack_routes[entry] = path;
            }
        }
    }

    /// Whether ACKs return the number of marked packets.
    #[inline]
    pub fn counts_marks(&self) -> bool {
        self.used() && !self.each_packet
    }

    #[inline]
    pub fn used(&self) -> bool {
        !self.draws.is_empty()
    }
}
