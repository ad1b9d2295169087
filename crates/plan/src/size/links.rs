//! Which links of a scenario have less memory than its scheme needs on them.
//!
//! What is needed is worked out anew from the facts of each link, as if nothing had been
//! set; what is set is what the plan has.

use crate::plan::{Account, Limit, Plan};
use serde::Serialize;
use xoff_kernel::time::Time;
use xoff_net::topology::{NodeKind, PortId};
use xoff_schemes::flow_control::bifrost::BifrostParams;
use xoff_schemes::flow_control::cbfc::frame::BLOCK;
use xoff_schemes::flow_control::cbfc::{self, CbfcParams};
use xoff_schemes::flow_control::pfc::headroom;
use xoff_schemes::flow_control::portfc::PortFcParams;
use xoff_schemes::flow_control::pyrrha::PyrrhaParams;
use xoff_schemes::flow_control::sizing::{Term, bifrost, pfc};
use xoff_schemes::flow_control::swing;
use xoff_schemes::flow_control::{FlowControlParams, LinkFacts};

/// A memory of the scenario against what it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Need {
    /// The port that receives, such as `S0:1`, or the device, where its ports share.
    pub place: String,
    /// The port that sends to it; of a device, empty.
    pub from: String,
    /// 802.1p priority; none where all share.
    pub priority: Option<u8>,
    /// Bits per second of the link; of a device 0.
    pub rate_bps: u64,
    /// One-way delay of the link; of a device 0.
    pub delay_ps: Time,
    /// What is compared: `headroom`, `XON`, `margin`, `room beyond H`, `H`, `credit`,
    /// `relay memory` or `buffer`.
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
pub const SCHEMES: [&str; 9] =
    ["pfc", "tagger", "bifrost", "bifrostx", "cbfc", "swing", "portfc", "pyrrha", "pfc-watchdog"];

/// Compares every link of a plan with what its scheme needs.
///
/// # Errors
/// No memory is known to suffice under the scheme; its name.
pub fn links(plan: &Plan) -> Result<Report, &'static str> {
    let mut report = Report { scheme: plan.flow_control.name(), ..Report::default() };
    match &plan.flow_control {
        FlowControlParams::None(_) | FlowControlParams::Bfc(_) | FlowControlParams::PerFlowQueue(_) => {
            return Err(report.scheme);
        }
        FlowControlParams::Cbfc(params) => {
            credits(plan, params, &mut report);
            return Ok(report);
        }
        FlowControlParams::PortFc(params) => shared(plan, params, &mut report),
        FlowControlParams::Pyrrha(params) => roots(plan, params, &mut report),
        _ => {}
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

    /// Hosts have no egress that could wait for what comes in.
    fn idle(&mut self, plan: &Plan, port: PortId, need: Need) {
        let node = plan.topology.ports[port as usize].node;
        if plan.topology.nodes[node as usize].kind == NodeKind::Switch && !need.is_met() {
            self.may_idle.push(need);
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

/// What a port is set to, beside what its link needs.
fn need(
    plan: &Plan,
    port: PortId,
    priority: Option<u8>,
    what: &'static str,
    configured: u64,
    terms: &[Term],
) -> Need {
    let p = &plan.topology.ports[port as usize];
    Need {
        place: plan.topology.port_name(port),
        from: plan.topology.port_name(p.peer),
        priority,
        rate_bps: p.rate,
        delay_ps: p.delay,
        what,
        ..device("", configured, terms)
    }
}

/// CBFC: with any credit nothing is lost.
fn credits(plan: &Plan, params: &CbfcParams, report: &mut Report) {
    let most = cbfc::most(params.form, params.response_time);
    for (id, (&blocks, &period)) in (0..).zip(params.buffer.iter().zip(&params.update)) {
        let needed = cbfc::full_throughput(&facts(plan, id), period, params.response_time, params.form);
        let bytes = |blocks: u64| blocks.saturating_mul(BLOCK.into());
        for (lane, _) in plan.lanes.iter().zip(&params.lanes).filter(|(_, on)| **on) {
            report.compared += 1;
            let terms = [("a round trip, an update and packets, in blocks", bytes(needed))];
            let need = need(plan, id, Some(lane.priority), "credit", bytes(blocks.min(most)), &terms);
            report.idle(plan, id, need);
        }
    }
}

/// Every ingress account with room of its own: PFC's, and what Bifrost grants by.
fn accounts(plan: &Plan, report: &mut Report) {
    let topology = &plan.topology;
    for (id, port) in (0..).zip(&topology.ports) {
        // Inner ports of slow hosts are no links.
        if topology.neighbour(id) == port.node {
            continue;
        }
        let accounts = &plan.accounts[id as usize * plan.lanes.len()..][..plan.lanes.len()];
        let lossless = plan.lanes.iter().zip(accounts).filter(|(_, account)| account.headroom.is_some());
        match &plan.flow_control {
            FlowControlParams::Bifrost(p) if p.ports[id as usize].is_some() => {
                for (lane, account) in lossless {
                    granted(plan, p, id, lane.priority, account, report);
                    // BifrostX: all of them share what is said of the first.
                    if p.tokens.is_some() {
                        break;
                    }
                }
            }
            FlowControlParams::Swing(_) if port.long && topology.is_relay(port.node) => {
                lossless.for_each(|(lane, account)| relayed(plan, id, lane.priority, account, report));
            }
            _ => lossless.for_each(|(lane, account)| paused(plan, id, lane.priority, account, report)),
        }
    }
}

/// SWING's relays, towards the long link: what a round trip leaves in them, or headroom
/// above a threshold of their own, which alone is enough where several priorities have data.
fn relayed(plan: &Plan, id: PortId, priority: u8, account: &Account, report: &mut Report) {
    let (link, response_time) = (facts(plan, id), plan.flow_control.traits().response_time);
    let room = account.headroom.as_ref().map_or(0, |room| room.total);
    let needed = headroom(&link, response_time);
    let lanes = (0..).zip(&plan.lanes).filter(|(_, lane)| lane.lossless);
    let several = lanes.filter(|(i, _)| plan.flows.iter().any(|f| f.lane == *i)).count() > 1;
    if several || room >= needed.total {
        report.add(need(plan, id, Some(priority), "headroom", room, &needed.terms));
    } else {
        let threshold = match account.limit {
            Limit::Static(more) => account.reserve.saturating_add(more),
            _ => account.reserve,
        };
        let memory = swing::memory(&link, response_time);
        report.add(need(plan, id, Some(priority), "relay memory", threshold, &memory.terms));
    }
}

/// PFC: headroom, so that nothing is lost; and XON, so that the egress stays busy.
fn paused(plan: &Plan, id: PortId, priority: u8, account: &Account, report: &mut Report) {
    let (link, response_time) = (facts(plan, id), plan.flow_control.traits().response_time);
    let room = account.headroom.as_ref().map_or(0, |room| room.total);
    let needed = headroom(&link, response_time);
    report.add(need(plan, id, Some(priority), "headroom", room, &needed.terms));
    // A threshold that moves with what is free has no least value.
    if matches!(account.limit, Limit::Static(_)) {
        let on = account.reserve.saturating_add(account.resume);
        let busy = pfc::busy(&link, response_time);
        report.idle(plan, id, need(plan, id, Some(priority), "XON", on, &busy.terms));
    }
}

/// Bifrost: the margin and the room beyond H, so that nothing is lost; and H, so that the
/// egress stays busy.
fn granted(plan: &Plan, p: &BifrostParams, id: PortId, priority: u8, account: &Account, report: &mut Report) {
    let Some(slots) = p.ports[id as usize] else { return };
    let priority = p.tokens.is_none().then_some(priority);
    let link = facts(plan, id);
    let ask = bifrost::Ask {
        slot: slots.slot,
        processing: p.processing,
        jitter: p.jitter,
        margin: None,
        response_time: p.pfc.response_time,
        repair_every: slots.repair_every,
        counted: slots.counted,
        history: slots.history,
    };
    let needed = bifrost::params(&link, &ask);
    let spare = bifrost::spare(&link, p.jitter, slots.repair_every, slots.counted);
    let room = match account.pool {
        Some(pool) => plan.buffers[pool as usize].total.saturating_sub(slots.buffer),
        None => account.headroom.as_ref().map_or(0, |room| room.total),
    };
    report.add(need(plan, id, priority, "margin", slots.margin, &[("packet and late frame", needed.margin)]));
    report.add(need(plan, id, priority, "room beyond H", room, &spare.terms));
    let least = [("BDP, two slots and margin", needed.least_buffer())];
    report.idle(plan, id, need(plan, id, priority, "H", slots.buffer, &least));
}
