//! Congestion control at the ends of flows: rates and windows at senders, notifications at receivers. Arrays
//! of state are empty without one.
//!
//! A sender requests its gap when a packet leaves; later changes of the rate do not change that gap. Only a
//! window that falls below one packet later delays the next packet ([`Controls::not_before`]).

use crate::host::selective::{Report, SelectiveSender};
use crate::packet::{Kind, Packet};
use crate::{host::flow::SenderState, switch::telemetry::Telemetry};
use xoff_kernel::time::{Time, serialisation};
use xoff_plan::plan::{Flow, Plan};
use xoff_schemes::congestion_control::dcqcn::{DcqcnParams, NotificationPoint, ReactionPoint};
use xoff_schemes::congestion_control::dctcp::{self, DctcpParams};
use xoff_schemes::congestion_control::hpcc::{self, HpccParams};
use xoff_schemes::congestion_control::nscc::{self, Loss, NsccParams};
use xoff_schemes::congestion_control::nscc_rccc::NsccRcccParams;
use xoff_schemes::congestion_control::powertcp::{self, PowerTcpParams};
use xoff_schemes::congestion_control::swift::{self, SwiftParams};
use xoff_schemes::congestion_control::timely::{self, TimelyParams};
use xoff_schemes::congestion_control::{CongestionControlParams, window_at};

/// The congestion control of flows, with its state by flow.
pub enum Controls {
    None,
    Dcqcn(DcqcnParams, Vec<ReactionPoint>),
    Timely(TimelyParams, Vec<timely::Sender>),
    Hpcc(HpccParams, Vec<hpcc::Sender>),
    Dctcp(DctcpParams, Vec<dctcp::Sender>),
    Swift(SwiftParams, Vec<swift::Sender>),
    Nscc(NsccParams, Vec<nscc::Sender>),
    PowerTcp(PowerTcpParams, Vec<powertcp::Sender>),
}

/// A data packet that leaves its sender.
#[derive(Clone, Copy)]
pub struct Departure {
    pub flow: u32,
    pub psn: u32,
    /// It was sent before.
    pub again: bool,
    /// Bytes on the wire.
    pub size: u32,
}

/// The line rate of a flow that leaves by the port `nic`: its own where that is lower.
pub fn line_rate(plan: &Plan, nic: u32, pace: u64) -> u64 {
    let rate = plan.topology.ports[nic as usize].rate;
    if pace > 0 { rate.min(pace) } else { rate }
}

pub fn notification_points(plan: &Plan) -> Vec<NotificationPoint> {
    let marks = plan.reacts_to_marks();
    vec![NotificationPoint::default(); if marks { plan.flows.len() } else { 0 }]
}

impl Controls {
    /// Every flow before its start: its rate begins at its line rate.
    pub fn new(plan: &Plan) -> Self {
        let line = |f: &Flow| line_rate(plan, plan.hops[f.path as usize], f.pace);
        let lines = plan.flows.iter().map(line);
        match plan.congestion_control {
            // The credit of RCCC is a part of its transport, alone and beside NSCC.
            CongestionControlParams::None | CongestionControlParams::Rccc(_) => Self::None,
            CongestionControlParams::Dcqcn(p) => Self::Dcqcn(p, lines.map(ReactionPoint::new).collect()),
            CongestionControlParams::Timely(p) => Self::Timely(p, lines.map(timely::Sender::new).collect()),
            CongestionControlParams::Hpcc(p) => Self::Hpcc(p, lines.map(hpcc::Sender::new).collect()),
            CongestionControlParams::Dctcp(p) => Self::Dctcp(p, lines.map(dctcp::Sender::new).collect()),
            CongestionControlParams::Swift(p) => {
                Self::Swift(p, lines.map(|line| swift::Sender::new(&p, line)).collect())
            }
            CongestionControlParams::Nscc(p)
            | CongestionControlParams::NsccRccc(NsccRcccParams { nscc: p, .. }) => {
                Self::Nscc(p, lines.map(|line| nscc::Sender::new(&p, line)).collect())
            }
            CongestionControlParams::PowerTcp(p) => {
                Self::PowerTcp(p, lines.map(powertcp::Sender::new).collect())
            }
        }
    }

    /// A flow that has sent nothing begins at another line rate.
    pub fn restart(&mut self, flow: u32, line: u64) {
        let flow = flow as usize;
        match self {
            Self::None => {}
            Self::Dcqcn(_, of) => of[flow] = ReactionPoint::new(line),
            Self::Timely(_, of) => of[flow] = timely::Sender::new(line),
            Self::Hpcc(_, of) => of[flow] = hpcc::Sender::new(line),
            Self::Dctcp(_, of) => of[flow] = dctcp::Sender::new(line),
            Self::Swift(params, of) => of[flow] = swift::Sender::new(params, line),
            Self::Nscc(params, of) => of[flow] = nscc::Sender::new(params, line),
            Self::PowerTcp(_, of) => of[flow] = powertcp::Sender::new(line),
        }
    }

    /// Whether ACKs without marks change anything.
    pub fn wants_acks(&self) -> bool {
        !matches!(self, Self::None | Self::Dcqcn(..))
    }

    /// The rate of a flow at `now`, in bits per second; `None` without congestion control.
    pub fn rate_at(&self, flow: u32, now: Time) -> Option<f64> {
        let flow = flow as usize;
        match self {
            Self::None => None,
            Self::Dcqcn(params, of) => Some(of[flow].rate_at(params, now) as f64),
            Self::Timely(_, of) => Some(of[flow].rate()),
            Self::Hpcc(_, of) => Some(of[flow].rate()),
            Self::Dctcp(_, of) => Some(of[flow].rate()),
            Self::Swift(params, of) => Some(of[flow].rate(params)),
            Self::Nscc(_, of) => Some(of[flow].rate()),
            Self::PowerTcp(_, of) => Some(of[flow].rate()),
        }
    }

    /// The window of a flow in packets, if the congestion control sets windows.
    pub fn window(&self, flow: u32) -> Option<u32> {
        match self {
            Self::Swift(_, of) => Some(of[flow as usize].window()),
            Self::Nscc(params, of) => Some(of[flow as usize].window(params)),
            _ => None,
        }
    }

    /// Whether the congestion control sets windows instead of rates.
    pub fn sets_windows(&self) -> bool {
        matches!(self, Self::Swift(..) | Self::Nscc(..))
    }

    /// The earliest time of the flow's next packet, if its window is below one packet.
    #[inline]
    pub fn not_before(&self, flow: u32) -> Option<Time> {
        let Self::Swift(_, of) = self else { return None };
        of[flow as usize].not_before()
    }

    /// A retransmission timer of the flow has expired, from which so many losses are inferred.
    pub fn on_timeout(&mut self, flow: u32, losses: u32, now: Time) {
        match self {
            Self::Swift(params, of) => of[flow as usize].on_timeout(params, now),
            Self::Nscc(params, of) => (0..losses).for_each(|_| of[flow as usize].on_loss(params)),
            _ => {}
        }
    }

    /// A packet leaves its sender: how long the next one must wait.
    #[inline]
    pub fn gap(&mut self, plan: &Plan, now: Time, packet: Departure) -> Option<Time> {
        let controlled = match self {
            Self::Dcqcn(params, of) => of[packet.flow as usize].on_sent(params, now, packet.size),
            others => others.gap_of_others(now, packet),
        };
        // At the flow's own rate the port does not space its packets by itself.
        controlled.or_else(|| match plan.flows[packet.flow as usize].pace {
            0 => None,
            pace => Some(serialisation(u64::from(packet.size), pace)),
        })
    }

    /// The same; a separate function, which keeps DCQCN's code path short.
    #[inline(never)]
    fn gap_of_others(&mut self, now: Time, packet: Departure) -> Option<Time> {
        let flow = packet.flow as usize;
        match self {
            Self::None | Self::Dcqcn(..) | Self::Nscc(..) => None,
            Self::Timely(_, of) => of[flow].on_sent(now, packet.size, packet.psn, packet.again),
            Self::Hpcc(_, of) => of[flow].on_sent(packet.size),
            Self::Dctcp(_, of) => of[flow].on_sent(packet.size),
            Self::Swift(_, of) => of[flow].on_sent(now),
            Self::PowerTcp(_, of) => of[flow].on_sent(packet.size),
        }
    }

    /// An ACK or NACK has reached its transport, with this report. Its former slot, `id`, still names its telemetry.
    #[cold]
    pub fn on_response(
        &mut self,
        now: Time,
        sender: &SenderState,
        response: &Packet,
        report: &Report,
        (telemetry, id): (&Telemetry, u32),
    ) {
        let flow = response.flow as usize;
        if matches!(response.kind, Kind::ProbeAck | Kind::Pull) {
            // It measures no data packet. The next ACK reports what an ACK of a probe has acknowledged.
            if let Self::Nscc(params, of) = self {
                (0..report.inferred).for_each(|_| of[flow].on_loss(params));
            }
            return;
        }
        let (acknowledged, next) = (sender.transport.una, sender.transport.next);
        match self {
            Self::None | Self::Dcqcn(..) => {}
            Self::Timely(params, of) => of[flow].on_response(params, now, acknowledged),
            Self::Hpcc(_, of) if sender.complete() => of[flow].release(),
            Self::PowerTcp(_, of) if sender.complete() => of[flow].release(),
            // Its packet has no records of the devices after the one that has trimmed it.
            Self::Hpcc(..) | Self::PowerTcp(..) if matches!(report.loss, Some(Loss::Trimmed { .. })) => {}
            // A packet that crossed more devices than its telemetry has room for cannot be compared.
            Self::Hpcc(params, of) => {
                if let Some(hops) = telemetry.of(id) {
                    of[flow].on_response(params, acknowledged, next, hops);
                }
            }
            Self::PowerTcp(params, of) => {
                if let Some(hops) = telemetry.of(id) {
                    of[flow].on_response(params, acknowledged, next, hops);
                }
            }
            Self::Dctcp(params, of) => {
                of[flow].on_response(params, dctcp::Response { acknowledged, next, marked: response.marked });
            }
            Self::Swift(params, of) => {
                let lost = report.loss.is_some() || report.inferred > 0;
                let stamp = telemetry.stamp_of(id);
                of[flow].on_response(params, now, swift::Response { acknowledged, lost, stamp });
            }
            Self::Nscc(params, of) => {
                let &Report { acknowledged, in_flight, loss, inferred } = report;
                let stamp = telemetry.stamp_of(id);
                let response =
                    nscc::Response { acknowledged, in_flight, loss, marked: response.marked, stamp };
                of[flow].on_response(params, now, response);
                (0..inferred).for_each(|_| of[flow].on_loss(params));
            }
        }
    }

    /// The sender of the flow has given up.
    pub fn release(&mut self, flow: u32) {
        match self {
            Self::Hpcc(_, of) => of[flow as usize].release(),
            Self::PowerTcp(_, of) => of[flow as usize].release(),
            _ => {}
        }
    }

    /// A notification reached the sender.
    pub fn on_cnp(&mut self, flow: u32, now: Time) {
        if let Self::Dcqcn(params, of) = self {
            of[flow as usize].on_cnp(params, now);
        }
    }
}

/// A marked packet reached the receiver: whether a CNP goes back.
pub fn on_marked(plan: &Plan, notifications: &mut [NotificationPoint], flow: u32, now: Time) -> bool {
    if let CongestionControlParams::Dcqcn(params) = &plan.congestion_control {
        return notifications[flow as usize].on_marked(params, now);
    }
    // If marks count, the ACK or NACK reports the mark.
    if let Some(point) = notifications.get_mut(flow as usize) {
        point.echo();
    }
    false
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
        (sender, own): (&mut SenderState, Option<&mut SelectiveSender>),
    ) {
        let Some(&full) = self.full.get(flow as usize) else { return };
        let of_rate = || {
            let round_trip = plan.transport.variable_window?;
            Some(window_at(controls.rate_at(flow, now)?, round_trip, plan.packet.mtu))
        };
        let Some(window) = controls.window(flow).or_else(of_rate) else { return };
        if own.is_some_and(|own| own.set_window(&mut sender.transport, full.min(window))) {
            return;
        }
        // Fewer packets than the receiver acknowledges at once would never be acknowledged.
        sender.transport.window = full.min(window.max(plan.transport.ack_every));
    }
}
