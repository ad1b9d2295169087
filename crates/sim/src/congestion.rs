//! Congestion control at the ends of flows: rates at senders, notifications at
//! receivers. The state is in arrays that are empty without one.
//!
//! A sender asks for its gap when a packet leaves. A gap that stands stays when
//! the rate changes; the next one is of the rate that holds then.

use crate::core::Core;
use crate::packet::{Kind, Packet};
use xoff_kernel::time::{Time, serialisation};
use xoff_plan::plan::{Flow, Plan};
use xoff_schemes::congestion_control::CongestionControlParams;
use xoff_schemes::congestion_control::dcqcn::{DcqcnParams, NotificationPoint, ReactionPoint};

/// In place of a pace: the congestion control sets the rate.
pub const CONTROLLED: u64 = u64::MAX;

fn params(plan: &Plan) -> Option<&DcqcnParams> {
    match &plan.congestion_control {
        CongestionControlParams::None => None,
        CongestionControlParams::Dcqcn(params) => Some(params),
    }
}

/// The line rate of a flow that leaves by the port `nic`: its own where that is lower.
pub fn line_rate(plan: &Plan, nic: u32, pace: u64) -> u64 {
    let rate = plan.topology.ports[nic as usize].rate;
    if pace > 0 { rate.min(pace) } else { rate }
}

/// By flow: the rate begins at its line rate.
pub fn reaction_points(plan: &Plan) -> Vec<ReactionPoint> {
    if params(plan).is_none() {
        return Vec::new();
    }
    let line = |f: &Flow| line_rate(plan, plan.hops[f.path as usize], f.pace);
    plan.flows.iter().map(|f| ReactionPoint::new(line(f))).collect()
}

/// By flow.
pub fn notification_points(plan: &Plan) -> Vec<NotificationPoint> {
    let flows = if params(plan).is_some() { plan.flows.len() } else { 0 };
    vec![NotificationPoint::default(); flows]
}

/// A packet of `size` bytes leaves its sender: how long the next one must wait.
pub fn gap(plan: &Plan, reactions: &mut [ReactionPoint], flow: u32, now: Time, size: u32) -> Option<Time> {
    let controlled = reactions[flow as usize].on_sent(params(plan)?, now, size);
    // At the flow's own rate the port does not space its packets by itself.
    controlled.or_else(|| match plan.flows[flow as usize].pace {
        0 => None,
        pace => Some(serialisation(u64::from(size), pace)),
    })
}

/// A notification reached the sender.
pub fn on_cnp(plan: &Plan, reactions: &mut [ReactionPoint], flow: u32, now: Time) {
    if let Some(params) = params(plan) {
        reactions[flow as usize].on_cnp(params, now);
    }
}

/// A marked packet reached the receiver: whether a CNP goes back.
pub fn on_marked(plan: &Plan, notifications: &mut [NotificationPoint], flow: u32, now: Time) -> bool {
    params(plan).is_some_and(|params| notifications[flow as usize].on_marked(params, now))
}

impl Core<'_> {
    /// Sends a CNP the way of the ACKs, which begins at `path`. Answers the port to kick.
    #[cold]
    pub fn send_cnp(&mut self, flow: u32, path: u32, ack_lane: u8) -> u32 {
        let params = params(self.plan).expect("only a congestion control notifies");
        let lane = params.cnp_lane.unwrap_or(ack_lane);
        let id = self.packets.insert(Packet::new(Kind::Cnp, flow, 0, params.cnp_size, lane, path));
        let port = self.hops[path as usize];
        self.enqueue(port, 1 + usize::from(lane), id);
        port
    }
}
