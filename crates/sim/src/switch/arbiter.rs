//! An arbiter that knows all and decides at once who sends: an upper bound to hold schemes against, and no
//! scheme (YAPS's *ideal*, after pFabric: shortest remaining flow first).
//!
//! It has a list of the flows that have begun and have not been sent completely, in the order of their bytes
//! without ACK; of equals the first of the plan. When a flow begins, or has been sent completely, it goes
//! through the list and grants each flow whose source and destination no earlier flow has. A flow that must
//! stop stops after the packet on its wire. Packets still cross real queues.
//!
//! - [`Rule::Srpt`] is YAPS's: it selects the flow that a source sends, and never stops one. A flow whose
//!   source has been granted another one stops; a flow that loses only its destination continues, so two
//!   sources send to one host. A destination is free as soon as its last packet begins to leave, so many
//!   flows of one packet may be sent to it at once.
//! - [`Rule::SrptStrict`] is a matching: never two flows from one source or to one destination. A flow
//!   without a grant stops, and both ends are free when the last packet has left the source.
//!
//! YAPS puts its list in order when a flow begins; here that is done each time.

use crate::packet::NONE;
use xoff_plan::plan::{Arbiter as Rule, Plan};

pub struct Arbiter {
    pub rule: Rule,
    list: Vec<Entry>,
    /// By node: the flow that it may send, or [`NONE`].
    sends: Vec<u32>,
    /// By node: granted as a source, and as a destination.
    taken: Vec<[bool; 2]>,
    /// By node: a last packet of it, and for it, is leaving its source. Only if strict.
    leaving: Vec<[bool; 2]>,
    /// The flows that may send from now on, and those that may not any more.
    pub changes: Vec<(u32, bool)>,
}

/// A flow that has begun; in the order of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    left: u32,
    flow: u32,
    src: u32,
    dst: u32,
}

impl Arbiter {
    pub fn new(plan: &Plan) -> Option<Self> {
        plan.arbiter.map(|rule| Self::of(rule, plan.topology.nodes.len()))
    }

    fn of(rule: Rule, nodes: usize) -> Self {
        Self {
            rule,
            list: Vec::new(),
            sends: vec![NONE; nodes],
            taken: vec![[false; 2]; nodes],
            leaving: vec![[false; 2]; nodes],
            changes: Vec::new(),
        }
    }

    /// Whether a source may send a flow.
    pub fn lets(&self, src: u32, flow: u32) -> bool {
        self.sends[src as usize] == flow
    }

    pub fn begins(&mut self, flow: u32, (src, dst): (u32, u32)) {
        self.list.push(Entry { left: 0, flow, src, dst });
    }

    /// The last packet of a flow begins to leave.
    pub fn sent(&mut self, flow: u32, (src, dst): (u32, u32)) {
        self.list.retain(|entry| entry.flow != flow);
        if self.sends[src as usize] == flow {
            self.sends[src as usize] = NONE;
        }
        if self.rule == Rule::SrptStrict {
            self.leaves((src, dst), true);
        }
    }

    /// It has left, or has not.
    pub fn leaves(&mut self, (src, dst): (u32, u32), still: bool) {
        self.leaving[src as usize][0] = still;
        self.leaving[dst as usize][1] = still;
    }

    /// Goes through the list, where `left` returns the packets of a flow without ACK.
    pub fn grant(&mut self, left: impl Fn(u32) -> u32) {
        self.list.iter_mut().for_each(|entry| entry.left = left(entry.flow));
        // Next to nothing has moved since last time, which this sort makes use of.
        self.list.sort();
        self.taken.copy_from_slice(&self.leaving);
        for &Entry { flow, src, dst, .. } in &self.list {
            let (src, dst) = (src as usize, dst as usize);
            if self.taken[src][0] || self.taken[dst][1] {
                continue;
            }
            self.taken[src][0] = true;
            self.taken[dst][1] = true;
            let before = std::mem::replace(&mut self.sends[src], flow);
            if before == flow {
                continue;
            }
            if before != NONE {
                self.changes.push((before, false));
            }
            self.changes.push((flow, true));
        }
        if self.rule == Rule::SrptStrict {
            for (sends, taken) in self.sends.iter_mut().zip(&self.taken) {
                if *sends != NONE && !taken[0] {
                    self.changes.push((std::mem::replace(sends, NONE), false));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NODES: u32 = 6;

    /// The next event: a flow begins, packets of a sending flow are acknowledged, it is sent completely, or a
    /// last packet has left.
    #[derive(Clone, Debug)]
    enum Step {
        Begins { src: u32, by: u32, left: u32 },
        Sends { which: usize, packets: u32 },
        Left { which: usize },
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0..NODES, 1..NODES, 1u32..20).prop_map(|(src, by, left)| Step::Begins { src, by, left }),
            3 => (any::<usize>(), 1u32..8).prop_map(|(which, packets)| Step::Sends { which, packets }),
            1 => any::<usize>().prop_map(|which| Step::Left { which }),
        ]
    }

    /// An arbiter, and a fabric's state of its flows.
    struct Bench {
        arbiter: Arbiter,
        /// Source, destination and remaining packets; by flow.
        flows: Vec<(u32, u32, u32)>,
        /// Flows that may send, by the notifications of each change.
        notified: Vec<u32>,
        /// Ends of flows whose last packets are leaving.
        leaving: Vec<(u32, u32)>,
    }

    impl Bench {
        fn new(rule: Rule) -> Self {
            let arbiter = Arbiter::of(rule, NODES as usize);
            Self { arbiter, flows: Vec::new(), notified: Vec::new(), leaving: Vec::new() }
        }

        fn ends(&self, flow: u32) -> (u32, u32) {
            let (src, dst, _) = self.flows[flow as usize];
            (src, dst)
        }

        fn begins(&mut self, src: u32, dst: u32, left: u32) {
            let flow = self.flows.len() as u32;
            self.flows.push((src, dst, left));
            self.arbiter.begins(flow, (src, dst));
            self.grant();
        }

        fn sends(&mut self, flow: u32, packets: u32) {
            let left = &mut self.flows[flow as usize].2;
            *left = left.saturating_sub(packets);
            if *left > 0 {
                return;
            }
            self.arbiter.sent(flow, self.ends(flow));
            self.notified.retain(|&f| f != flow);
            if self.arbiter.rule == Rule::SrptStrict {
                self.leaving.push(self.ends(flow));
            }
            self.grant();
        }

        fn grant(&mut self) {
            self.arbiter.grant(|flow| self.flows[flow as usize].2);
            for (flow, sends) in std::mem::take(&mut self.arbiter.changes) {
                match sends {
                    true => self.notified.push(flow),
                    false => self.notified.retain(|&f| f != flow),
                }
            }
        }

        fn step(&mut self, step: &Step) {
            match *step {
                Step::Begins { src, by, left } => self.begins(src, (src + by) % NODES, left),
                Step::Sends { which, packets } if !self.notified.is_empty() => {
                    self.sends(self.notified[which % self.notified.len()], packets);
                }
                Step::Left { which } if !self.leaving.is_empty() => {
                    let ends = self.leaving.swap_remove(which % self.leaving.len());
                    self.arbiter.leaves(ends, false);
                    self.grant();
                }
                _ => {}
            }
        }

        /// Flows that share a source, or a destination, among some.
        fn share(&self, flows: &[u32], end: fn((u32, u32)) -> u32) -> bool {
            let mut ends: Vec<u32> = flows.iter().map(|&f| end(self.ends(f))).collect();
            ends.sort_unstable();
            ends.windows(2).any(|pair| pair[0] == pair[1])
        }

        /// Shortest first, as one would do it by hand.
        fn greedy(&self) -> Vec<u32> {
            let mut waiting: Vec<u32> =
                (0..).zip(&self.flows).filter(|(_, f)| f.2 > 0).map(|(flow, _)| flow).collect();
            waiting.sort_by_key(|&flow| (self.flows[flow as usize].2, flow));
            let mut granted: Vec<u32> = Vec::new();
            for flow in waiting {
                let (src, dst) = self.ends(flow);
                let ends = granted.iter().map(|&g| self.ends(g));
                if ends.chain(self.leaving.iter().copied()).all(|(s, d)| s != src && d != dst) {
                    granted.push(flow);
                }
            }
            granted
        }
    }

    fn sorted(mut flows: Vec<u32>) -> Vec<u32> {
        flows.sort_unstable();
        flows
    }

    proptest! {
        /// The sending flows are a matching, shortest first: a flow that may not send has a shorter one
        /// before it at its source or at its destination, or one of them is not free yet.
        #[test]
        fn strictly_it_is_a_matching(steps in prop::collection::vec(step(), 1..120)) {
            let mut bench = Bench::new(Rule::SrptStrict);
            for step in &steps {
                bench.step(step);
                prop_assert!(!bench.share(&bench.notified, |ends| ends.0), "{:?}", bench.notified);
                prop_assert!(!bench.share(&bench.notified, |ends| ends.1), "{:?}", bench.notified);
                // Between two walks the order may change; who may send does not.
                bench.grant();
                prop_assert_eq!(sorted(bench.notified.clone()), sorted(bench.greedy()));
            }
        }

        /// YAPS's rule grants the same flows, and flows that have lost only their destination continue beside
        /// them.
        #[test]
        fn a_flow_that_loses_its_destination_continues(steps in prop::collection::vec(step(), 1..120)) {
            let mut bench = Bench::new(Rule::Srpt);
            for step in &steps {
                bench.step(step);
                bench.grant();
                prop_assert!(!bench.share(&bench.notified, |ends| ends.0));
                let granted = bench.greedy();
                prop_assert!(granted.iter().all(|flow| bench.notified.contains(flow)));
                for &flow in bench.notified.iter().filter(|flow| !granted.contains(flow)) {
                    let (src, dst) = bench.ends(flow);
                    prop_assert!(granted.iter().all(|&g| bench.ends(g).0 != src));
                    prop_assert!(granted.iter().any(|&g| bench.ends(g).1 == dst));
                }
            }
        }
    }

    /// A long flow loses its destination to a short one from elsewhere: YAPS lets both send.
    #[test]
    fn two_sources_send_to_one_host_only_under_yaps() {
        for (rule, senders) in [(Rule::Srpt, vec![0, 1]), (Rule::SrptStrict, vec![1])] {
            let mut bench = Bench::new(rule);
            bench.begins(0, 2, 10);
            bench.begins(1, 2, 5);
            assert_eq!(sorted(bench.notified.clone()), senders);
            // One by its own source is heeded under both.
            bench.begins(0, 3, 4);
            assert_eq!(sorted(bench.notified.clone()), [1, 2]);
        }
    }
}
