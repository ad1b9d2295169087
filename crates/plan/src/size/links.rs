//! Which links of a scenario have less memory than its scheme needs on them.
//!
//! What is needed is worked out anew from the facts of each link, as if nothing had been
//! set; what is set is what the plan has.

use crate::plan::{Limit, Plan};
use serde::Serialize;
use xoff_kernel::time::Time;
use xoff_net::topology::{NodeKind, PortId};
use xoff_schemes::flow_control::pfc::headroom;
use xoff_schemes::flow_control::portfc::PortFcParams;
use xoff_schemes::flow_control::pyrrha::PyrrhaParams;
use xoff_schemes::flow_control::sizing::{Term, bifrost, pfc};
use xoff_schemes::flow_control::{FlowControlParams, LinkFacts};

/// A memory of the scenario against what it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Need {
    /// The port that receives, such as `S0:1`, or the device, where its ports share.
    pub place: String,
    /// The port that sends to it; of a device, empty.
    pub from: String,
    /// 802.1p priority; of a device, that of all.
    pub priority: Option<u8>,
    /// Bits per second of the link; of a device 0.
    pub rate_bps: u64,
    /// One-way delay of the link; of a device 0.
    pub delay_ps: Time,
    /// What is compared: `headroom`, `XON`, `margin`, `room beyond H`, `H` or `buffer`.
    pub what: &'static str,
    /// Bytes that the scenario has.
    pub configured: u64,
    /// Bytes that it needs.
    pub needed: u64,
    /// Terms of what it needs.
    pub terms: Vec<(String, u64)>,
}

impl Need {
    /// Whether there is enough.
    pub fn is_met(&self) -> bool {
        self.configured >= self.needed
    }
}

/// What is found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The scheme.
    pub scheme: &'static str,
    /// Memories that were compared with what losslessness needs.
    pub compared: u64,
    /// Those that are too small: packets can be lost.
    pub too_small: Vec<Need>,
    /// Where nothing is lost for it, but an egress can run dry while its sender, which was
    /// stopped, has more.
    pub may_idle: Vec<Need>,
}

/// Schemes under which some memory is known to suffice.
pub const SCHEMES: [&str; 5] = ["pfc", "tagger", "bifrost", "portfc", "pyrrha"];

/// Compares every link of a plan with what its scheme needs.
///
/// # Errors
/// No memory is known to suffice under the scheme; its name.
pub fn links(plan: &Plan) -> Result<Report, &'static str> {
    let mut report = Report::default();
    match &plan.flow_control {
        FlowControlParams::None => return Err("none"),
        FlowControlParams::Bfc(_) => return Err("bfc"),
        FlowControlParams::PerFlowQueue(_) => return Err("per-flow-queue"),
        FlowControlParams::Pfc(_) => report.scheme = "pfc",
        FlowControlParams::Tagger(_) => report.scheme = "tagger",
        FlowControlParams::Bifrost(_) => report.scheme = "bifrost",
        FlowControlParams::PortFc(params) => {
            report.scheme = "portfc";
            shared(plan, params, &mut report);
        }
        FlowControlParams::Pyrrha(params) => {
            report.scheme = "pyrrha";
            roots(plan, params, &mut report);
        }
    }
    accounts(plan, &mut report);
    Ok(report)
}

impl Report {
    fn add(&mut self, need: Need) {
        self.compared += 1;
        if !need.is_met() {
            self.too_small.push(need);
        }
    }
}

fn device(name: &str, configured: u64, terms: &[Term]) -> Need {
    Need {
        place: name.to_string(),
        from: String::new(),
        priority: None,
        rate_bps: 0,
        delay_ps: 0,
        what: "buffer",
        configured,
        needed: terms.iter().fold(0, |sum, t| sum.saturating_add(t.1)),
        terms: named(terms),
    }
}

fn named(terms: &[Term]) -> Vec<(String, u64)> {
    terms.iter().map(|t| (t.0.to_string(), t.1)).collect()
}

fn facts(plan: &Plan, port: PortId) -> LinkFacts {
    let p = &plan.topology.ports[port as usize];
    LinkFacts { rate: p.rate, delay: p.delay, largest: plan.packet.largest() }
}

/// PortFC: a switch holds what all of its queues can.
fn shared(plan: &Plan, params: &PortFcParams, report: &mut Report) {
    for ((node, need), buffer) in plan.topology.nodes.iter().zip(&params.needs).zip(&plan.buffers) {
        if node.kind == NodeKind::Switch {
            let terms = [
                ("thresholds", need.thresholds),
                ("what still comes for forwarding queues", need.forwarding),
                ("what still comes for direct queues", need.direct),
            ];
            report.add(device(&node.name, buffer.total, &terms));
        }
    }
}

/// Pyrrha: a switch holds what one congested port of it leaves, when all of its other
/// ports feed that one. Of its ports the one that takes most counts.
fn roots(plan: &Plan, params: &PyrrhaParams, report: &mut Report) {
    for (node, buffer) in plan.topology.nodes.iter().zip(&plan.buffers) {
        // A switch that knows PFC alone is never a root.
        let own = |p: &&PortId| params.k_pause[**p as usize] != u64::MAX;
        if node.kind == NodeKind::Host {
            continue;
        }
        let after = |p: PortId| headroom(&facts(plan, p), params.response_time).total;
        let all: u64 = node.ports.iter().map(|&p| after(p)).fold(0, u64::saturating_add);
        let worst = node.ports.iter().filter(own).map(|&p| {
            let k_pause = params.k_pause[p as usize];
            [
                ("K_pause", k_pause),
                ("packet that exceeds it", plan.packet.largest().into()),
                ("what all other ports still bring", all.saturating_sub(after(p))),
            ]
        });
        if let Some(terms) =
            worst.max_by_key(|terms| terms.iter().fold(0u64, |sum, t| sum.saturating_add(t.1)))
        {
            report.add(device(&node.name, buffer.total, &terms));
        }
    }
}

/// Every ingress account with room of its own: PFC's, and what Bifrost grants by.
fn accounts(plan: &Plan, report: &mut Report) {
    let response_time = plan.flow_control.response_time();
    let topology = &plan.topology;
    for (id, port) in (0..).zip(&topology.ports) {
        // Inner ports of slow hosts are no links.
        if topology.neighbour(id) == port.node {
            continue;
        }
        let link = facts(plan, id);
        let accounts = &plan.accounts[id as usize * plan.lanes.len()..][..plan.lanes.len()];
        for (lane, account) in plan.lanes.iter().zip(accounts) {
            let Some(room) = &account.headroom else { continue };
            let need = |what, configured: u64, terms: &[Term]| Need {
                place: topology.port_name(id),
                from: topology.port_name(port.peer),
                priority: Some(lane.priority),
                rate_bps: port.rate,
                delay_ps: port.delay,
                what,
                ..device("", configured, terms)
            };
            let slots = match &plan.flow_control {
                FlowControlParams::Bifrost(p) => p.ports[id as usize].map(|slots| (p, slots)),
                _ => None,
            };
            let least = if let Some((p, slots)) = slots {
                let ask = bifrost::Ask {
                    slot: slots.slot,
                    processing: p.processing,
                    jitter: p.jitter,
                    margin: None,
                    response_time,
                    repair_every: slots.repair_every,
                    history: slots.history,
                };
                let needed = bifrost::params(&link, &ask);
                report.add(need("margin", slots.margin, &[("packet and late frame", needed.margin)]));
                let spare = bifrost::spare(&link, p.jitter, slots.repair_every);
                report.add(need("room beyond H", room.total, &spare.terms));
                need("H", slots.buffer, &[("BDP, two slots and margin", needed.least_buffer())])
            } else {
                let needed = headroom(&link, response_time);
                report.add(need("headroom", room.total, &needed.terms));
                // A threshold that moves with what is free has no least value.
                let Limit::Static(_) = account.limit else { continue };
                let on = account.reserve.saturating_add(account.resume);
                need("XON", on, &pfc::busy(&link, response_time).terms)
            };
            if topology.nodes[port.node as usize].kind == NodeKind::Switch && !least.is_met() {
                report.may_idle.push(least);
            }
        }
    }
}
