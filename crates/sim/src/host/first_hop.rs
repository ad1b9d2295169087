//! Sources that choose the first hop of their flows (asymmetric traffic
//! engineering). The state is in an array that is empty where they do not.
//!
//! A source asks when a flow begins, and notes each data packet that it makes. So
//! nothing but its own events and its own random stream decides.

use crate::core::Core;
use crate::host::congestion::line_rate;
use xoff_kernel::random::Stream;
use xoff_kernel::time::Time;
use xoff_net::topology::NodeId;
use xoff_plan::plan::Plan;
use xoff_schemes::load_balancing::ate::{Weight, report};

/// A host and what it has chosen.
pub struct Source {
    weight: Weight,
    choices: Stream,
    /// Its port to the high-bandwidth domain.
    high: u32,
    /// What a run tells of it.
    told: report::Source,
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
            told: report::Source { node: host, ..report::Source::default() },
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

    /// What it has done so far.
    pub fn told(&self, plan: &Plan, now: Time) -> report::Source {
        report::Source { weight: self.weight(plan, now), ..self.told }
    }
}

impl Core<'_> {
    /// A data packet of `size` bytes leaves its source by `port`.
    #[inline(never)]
    pub fn note_sent(&mut self, port: u32, size: u32) {
        let Some(ate) = &self.plan.ate else { return };
        let source = &mut self.sources[self.ports[port as usize].node as usize];
        if port == source.high {
            source.weight.sent(&ate.params, self.now, size);
            source.told.high_bytes += u64::from(size);
        } else {
            source.told.other_bytes += u64::from(size);
        }
    }

    /// A flow begins, which stands in no ring: its source chooses its first hop, if
    /// there are two.
    #[cold]
    pub fn choose_first_hop(&mut self, flow: u32) {
        let Some(ate) = &self.plan.ate else { return };
        let f = &self.plan.flows[flow as usize];
        let source = &mut self.sources[f.src as usize];
        let headers = self.plan.packet.packets(f.size) * u64::from(self.plan.packet.header);
        source.told.offered_bytes += f.size + headers;
        let [high, other] = ate.routes[flow as usize];
        if high == other {
            return;
        }
        let random = source.choices.unit();
        let goes_high = source.weight.choose(&ate.params, self.now, random);
        source.told.chosen[usize::from(!goes_high)] += 1;
        let path = if goes_high { high } else { other };
        self.set_data_route(flow, path);
        self.restart_control(flow, line_rate(self.plan, self.hops[path as usize], f.pace));
    }
}
