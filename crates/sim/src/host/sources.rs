//! Sources that choose the first hop of their flows (asymmetric traffic
//! engineering). The state is in an array that is empty where they do not.
//!
//! A source asks when a flow begins, and notes each data packet that it makes. So
//! nothing but its own events and its own random stream decides.

use xoff_kernel::random::Stream;
use xoff_kernel::time::Time;
use xoff_net::topology::NodeId;
use xoff_plan::plan::Plan;
use xoff_schemes::load_balancing::ate::{Weight, report};

/// A host and its choices.
pub struct Source {
    pub weight: Weight,
    pub choices: Stream,
    /// Its port to the high-bandwidth domain.
    pub high: u32,
    /// Its report for the run.
    pub report: report::Source,
}

/// By host; empty where hosts do not choose.
pub fn sources(plan: &Plan) -> Vec<Source> {
    let Some(ate) = &plan.ate else { return Vec::new() };
    let topology = &plan.topology;
    let source = |host: NodeId| {
        let ports = &topology.nodes[host as usize].ports;
        let rate = |i: usize| topology.ports[ports[i] as usize].rate;
        Source {
            weight: Weight::new(&ate.params, rate(0), rate(1)),
            choices: Stream::new(plan.seed, "ATE", host.into()),
            high: ports[0],
            report: report::Source { node: host, ..report::Source::default() },
        }
    };
    topology.hosts().map(source).collect()
}

impl Source {
    /// w_H at `now`; nothing changes.
    pub fn weight(&self, plan: &Plan, now: Time) -> f64 {
        let mut weight = self.weight;
        plan.ate.as_ref().map_or(0.0, |ate| weight.at(&ate.params, now))
    }

    /// Its actions so far.
    pub fn report(&self, plan: &Plan, now: Time) -> report::Source {
        report::Source { weight: self.weight(plan, now), ..self.report }
    }
}
