//! Congestion control at the ends of flows: rates and windows at senders, notifications at receivers. Arrays
//! of state are empty without one.
//!
//! A sender requests its gap when a packet leaves; later changes of the rate do not change that gap. Only a
//! window that falls below one packet later delays the next packet ([`Controls::not_before`]).

use crate::packet::{Kind, Packet};
use crate::{host::flow::SenderState, switch::telemetry::Telemetry};
use xoff_kernel::time::{Time, serialisation};
use xoff_plan::plan::{Flow, Plan};
use xoff_schemes::congestion_control::notification::NotificationPoint;
use xoff_schemes::congestion_control::seam::{Answer, Departure};
use xoff_schemes::congestion_control::{Controls, window_at};
use xoff_schemes::transport::{Senders, seam::Report};

/// The line rate of a flow that leaves by the port `nic`: its own where that is lower.
pub fn line_rate(plan: &Plan, nic: u32, pace: u64) -> u64 {
    let rate = plan.topology.ports[nic as usize].rate;
    if pace > 0 { rate.min(pace) } else { rate }
}

/// Every flow before its start: its rate begins at its line rate.
pub fn new(plan: &Plan) -> Controls {
    let line = |f: &Flow| line_rate(plan, plan.hops[f.path as usize], f.pace);
    Controls::new(&plan.congestion_control, plan.flows.iter().map(line))
}

pub fn notification_points(plan: &Plan) -> Vec<NotificationPoint> {
    let marks = plan.reacts_to_marks();
    vec![NotificationPoint::default(); if marks { plan.flows.len() } else { 0 }]
}

/// A packet leaves its sender: how long the next one must wait.
#[inline]
pub fn gap(controls: &mut Controls, plan: &Plan, now: Time, packet: Departure) -> Option<Time> {
    // At the flow's own rate the port does not space its packets by itself.
    controls.on_sent(now, packet).or_else(|| match plan.flows[packet.flow as usize].pace {
        0 => None,
        pace => Some(serialisation(u64::from(packet.size), pace)),
    })
}

/// An ACK or NACK has reached its transport, with this report. Its former slot, `id`, still names its telemetry.
#[cold]
pub fn on_response(
    controls: &mut Controls,
    now: Time,
    sender: &SenderState,
    response: &Packet,
    report: &Report,
    (telemetry, id): (&Telemetry, u32),
) {
    let flow = response.flow;
    let &Report { acknowledged, in_flight, loss, inferred } = report;
    if matches!(response.kind, Kind::ProbeAck | Kind::Pull) {
        // It measures no data packet. The next ACK reports what an ACK of a probe has acknowledged.
        return (0..inferred).for_each(|_| controls.on_loss(flow));
    }
    let answer = Answer {
        una: sender.transport.una,
        next: sender.transport.next,
        acknowledged,
        in_flight,
        complete: sender.complete(),
        marked: response.marked,
        loss,
        inferred,
        stamp: telemetry.stamp_of(id),
        hops: telemetry.of(id),
    };
    controls.on_answer(flow, now, &answer);
}

/// A marked packet reached the receiver: whether a CNP goes back.
pub fn on_marked(plan: &Plan, notifications: &mut [NotificationPoint], flow: u32, now: Time) -> bool {
    let point = notifications.get_mut(flow as usize);
    point.is_some_and(|point| point.on_marked(plan.congestion_control.cnps(), now))
}

/// Windows that follow rates, or that the congestion control sets. Empty where there are none.
#[derive(Default)]
pub struct Windows {
    /// By flow: the window without regard to the congestion control.
    pub full: Vec<u32>,
}

impl Windows {
    /// An ACK or NACK is about to reach the flow's transport, which knows the full window.
    #[cold]
    pub fn widen(&self, flow: u32, sender: &mut SenderState) {
        if let Some(&full) = self.full.get(flow as usize) {
            sender.transport.window = full;
        }
    }

    /// Sets the window that is left of a flow's full one by its congestion control.
    #[cold]
    pub fn bound(
        &self,
        plan: &Plan,
        controls: &Controls,
        now: Time,
        flow: u32,
        (sender, own): (&mut SenderState, &mut Senders),
    ) {
        let Some(&full) = self.full.get(flow as usize) else { return };
        let of_rate = || {
            let round_trip = plan.transport.variable_window?;
            Some(window_at(controls.rate_at(flow, now)?, round_trip, plan.packet.mtu))
        };
        let Some(window) = controls.window(flow).or_else(of_rate) else { return };
        if own.set_window(flow, &mut sender.transport, full.min(window)) {
            return;
        }
        // Fewer packets than the receiver acknowledges at once would never be acknowledged.
        sender.transport.window = full.min(window.max(plan.transport.ack_every));
    }
}
