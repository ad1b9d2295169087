//! How many queues keep flows of different congested ports apart: the model of section
//! VI of Pyrrha's paper, for cases that are small enough to try everything.
//!
//! A case has flows with routes without loops, and congested ports. At each port its flows are put into
//! queues, each into one. A queue may be paused for a congested port that is ahead of one of its flows; then
//! all its flows are paused. There is *head-of-line blocking* if one of these has no business with the
//! congested port. The conditions at different ports are independent, so the model examines
//! each port separately.
//!
//! What counts as business is read in two ways ([`Business`]). The proof of Theorem 2
//! takes flows that share a queue for such that have the same ports ahead, where
//! Definition 7 asks only that they cross it anywhere: these differ where two flows
//! cross two congested ports in opposite orders.

use std::collections::BTreeSet;

/// A case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// By flow: the ports that it crosses, in order, none twice.
    pub routes: Vec<Vec<u32>>,
    /// Congested ports.
    pub congested: BTreeSet<u32>,
}

/// When a flow is no victim of a congested port for which it is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Business {
    /// The port is ahead of it.
    Ahead,
    /// It crosses the port, before or after: the exact wording of Definition 7.
    Anywhere,
}

/// Flows in queues: by flow of a port, in order, the number of its queue, numbered as
/// they come.
pub type Queues = Vec<usize>;

impl Case {
    /// The flows that cross a port.
    pub fn flows(&self, port: u32) -> Vec<usize> {
        (0..self.routes.len()).filter(|&flow| self.routes[flow].contains(&port)).collect()
    }

    /// The congested ports ahead of a flow at `port`.
    pub fn ahead(&self, flow: usize, port: u32) -> BTreeSet<u32> {
        let rest = self.routes[flow].iter().skip_while(|&&p| p != port).skip(1);
        rest.filter(|p| self.congested.contains(p)).copied().collect()
    }

    /// Pyrrha's queues with a single tier: one for each set of congested ports ahead;
    /// that of none is the output queue.
    pub fn single_tier(&self, port: u32) -> Queues {
        let mut known: Vec<BTreeSet<u32>> = Vec::new();
        let number = |set: BTreeSet<u32>| {
            known.iter().position(|k| *k == set).unwrap_or_else(|| {
                known.push(set);
                known.len() - 1
            })
        };
        self.flows(port).into_iter().map(|flow| self.ahead(flow, port)).map(number).collect()
    }

    /// How many of the queues at a port count (section VI-C): those that may be paused,
    /// and all of a congested port.
    pub fn count(&self, port: u32, queues: &Queues) -> usize {
        let flows = self.flows(port);
        let of = |queue: usize| flows.iter().zip(queues).filter(move |q| *q.1 == queue).map(|q| *q.0);
        let all = queues.iter().max().map_or(0, |last| last + 1);
        let counts =
            |&q: &usize| self.congested.contains(&port) || of(q).any(|f| !self.ahead(f, port).is_empty());
        (0..all).filter(counts).count()
    }

    /// The same of hierarchical queues: one for each congested port ahead of any flow,
    /// and the output queue of a congested port.
    pub fn count_hiq(&self, port: u32) -> usize {
        let ahead: BTreeSet<u32> = self.flows(port).into_iter().flat_map(|f| self.ahead(f, port)).collect();
        ahead.len() + usize::from(self.congested.contains(&port))
    }

    /// Whether some flow at `port` can be paused as a victim.
    pub fn blocks(&self, port: u32, queues: &Queues, business: Business) -> bool {
        let flows = self.flows(port);
        let together = |i: usize| (0..flows.len()).filter(move |&j| queues[i] == queues[j]);
        (0..flows.len()).any(|i| {
            self.ahead(flows[i], port).into_iter().any(|congested| {
                together(i).any(|j| match business {
                    Business::Ahead => !self.ahead(flows[j], port).contains(&congested),
                    Business::Anywhere => !self.routes[flows[j]].contains(&congested),
                })
            })
        })
    }
}

/// All assignments of so many flows to queues: the partitions of a set, each once.
pub fn partitions(flows: usize) -> Vec<Queues> {
    let mut all = vec![Queues::new()];
    for _ in 0..flows {
        let longer = all.into_iter().flat_map(|queues| {
            let next = queues.iter().max().map_or(0, |last| last + 1);
            (0..=next).map(move |queue| {
                let mut queues = queues.clone();
                queues.push(queue);
                queues
            })
        });
        all = longer.collect();
    }
    all
}
