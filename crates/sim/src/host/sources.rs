//! Sources that choose the first hop of their flows (asymmetric traffic engineering). They ask when a flow
//! begins, and note each data packet that they make: only their own events and own random streams decide.

use xoff_kernel::{random::Stream, time::Time};
use xoff_net::topology::NodeId;
use xoff_plan::plan::Plan;
use xoff_schemes::load_balancing::ate::{Weight, report};

pub struct Source {
    pub weight: Weight,
    pub choices: Stream,
    /// Its port to the high-bandwidth domain.
    pub high: u32,
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
    /// Its actions so far, and w_H at `now`.
    pub fn report(&self, plan: &Plan, now: Time) -> report::Source {
        let mut copy = self.weight;
        let weight = plan.ate.as_ref().map_or(0.0, |ate| copy.at(&ate.params, now));
        report::Source { weight, ..self.report }
    }
}
