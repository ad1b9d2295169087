//! A queue for each flow on every port, and a pause for each flow: the ideal of queue-based flow control,
//! which no switch can build. A flow waits only for its own packets, so there is no head-of-line blocking.
//! (Two papers on flow control, NSDI 2022 and NSDI 2025, compare with it.)
//!
//! Per (egress port, flow), two states:
//!
//! ```text
//!            queue of the flow ≥ K_pause: pause(flow) to the flow's ingress
//!   Open ◄──────────────────────────────────────────────────────────────────► Closed
//!            queue of the flow ≤ K_resume: resume(flow)
//! ```
//!
//! By default `K_pause` is the rate times one hop round trip, and `K_resume` is half of it. A queue that
//! drains at line rate keeps packets until its upstream sends again only if `K_resume` is at least the rate
//! times the hop round trip. No memory is reserved for packets that arrive after the pause; what does not fit
//! is dropped.

pub mod keys;

use super::device::Queues;
use super::lasting::Lasting;
use super::pause_time;
use super::registry::FlowControl;
use super::remarks::never_paused;
use super::seam::range;
use super::{ControlFrame, Machine, Parameters, PauseScope, QueueEntry, Queueing, Scheme, Seen, Traits};
use std::collections::BTreeMap;
use xoff_kernel::time::Time;
use xoff_net::human;
use xoff_net::units::{Bytes, Span};
use xoff_outcome::report::{Note, Ran};
use xoff_wire::queue_pause::Target;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerFlowQueueParams {
    /// K_pause: bytes at which a flow is paused, by the port that it comes through.
    pub pause: Vec<u64>,
    /// K_resume: bytes at which it is resumed, by the port that it comes through.
    pub resume: Vec<u64>,
    /// From the arrival of a frame's last bit until it takes effect.
    pub response_time: Time,
    /// 0 where links neither fail nor lose: a pause holds until its resume.
    pub pause_time: Time,
}

impl Parameters for PerFlowQueueParams {
    fn traits(&self) -> Traits {
        Traits {
            response_time: self.response_time,
            pause_scope: PauseScope::Flow,
            queueing: Queueing::PerFlow,
            ..Traits::NONE
        }
    }

    fn describe(&self, seen: &Seen<'_>) -> String {
        format!(
            "(xoff {}, xon {}, response time {}{})",
            range(&self.pause[..seen.links], |&b| Bytes(b).to_string()),
            range(&self.resume[..seen.links], |&b| Bytes(b).to_string()),
            Span(self.response_time),
            pause_time::shown(self.pause_time)
        )
    }

    fn idle(&self, ran: &Ran<'_>) -> Option<Note> {
        let then = self.pause.iter().min().map_or(String::new(), |&least| {
            format!("; the queue of a flow is paused at {} or more", human::bytes(least))
        });
        let help = "To make it pause, raise the load or the fan-in, or lower flow_control.xoff.";
        never_paused(ran, "Per-flow queueing", |_| true, &then, help)
    }

    fn start(&self, ports: usize, priorities: &[u8]) -> FlowControl {
        FlowControl::PerFlowQueue(PerFlowQueue::new(self, ports, priorities))
    }
}

/// Per-flow queues on every port of a run. Whether a queue has paused its flow
/// is the device's to keep ([`QueueEntry::pausing`]).
#[derive(Clone, Debug)]
pub struct PerFlowQueue {
    params: PerFlowQueueParams,
    lasting: Lasting,
    /// By (egress port, flow): the paused ingress ports, several if routes change or loop.
    ingresses: BTreeMap<(u32, u32), Vec<u32>>,
}

impl PerFlowQueue {
    pub(super) fn new(params: &PerFlowQueueParams, ports: usize, priorities: &[u8]) -> Self {
        let lasting = Lasting::new(params.pause_time, ports, priorities, 0);
        Self { params: params.clone(), lasting, ingresses: BTreeMap::new() }
    }
}

impl Machine for PerFlowQueue {
    fn timers(&self) -> usize {
        self.lasting.timers()
    }
}

impl<D: Queues> Scheme<D> for PerFlowQueue {
    fn enqueued(&mut self, device: &mut D, packet: &mut QueueEntry) {
        let Some(ingress) = packet.ingress else { return };
        if packet.queued < self.params.pause[ingress as usize] {
            return;
        }
        let paused = self.ingresses.entry((packet.port, packet.flow)).or_default();
        if paused.contains(&ingress) {
            return;
        }
        paused.push(ingress);
        packet.pausing = true;
        self.lasting.pause(device, ingress, packet.lane, Target::Flow(packet.flow), packet.port);
    }

    fn left(&mut self, device: &mut D, packet: &mut QueueEntry) {
        if !packet.pausing {
            return;
        }
        let goes = |ingress: u32| packet.queued <= self.params.resume[ingress as usize];
        let flow = Target::Flow(packet.flow);
        let Some(paused) = self.ingresses.get_mut(&(packet.port, packet.flow)) else { return };
        let resumed: Vec<u32> = paused.extract_if(.., |i| goes(*i)).collect();
        if paused.is_empty() {
            packet.pausing = false;
            self.ingresses.remove(&(packet.port, packet.flow));
        }
        for ingress in resumed {
            self.lasting.resume(device, ingress, packet.lane, flow, packet.port);
        }
    }

    fn received(&mut self, device: &mut D, port: u32, frame: &ControlFrame) {
        if let ControlFrame::QueuePause(frame) = frame {
            self.lasting.received(device, port, frame);
        }
    }

    fn timer(&mut self, device: &mut D, timer: u32) {
        self.lasting.timer(device, timer);
    }

    fn link_failed(&mut self, device: &mut D, port: u32, lane: u8) {
        self.lasting.link_failed(device, port, lane);
    }

    fn link_reset(&mut self, device: &mut D, port: u32) {
        self.lasting.link_recovered(device, port);
    }
}

#[cfg(test)]
mod tests {
    use super::super::notes::Notes;
    use super::*;
    use xoff_wire::queue_pause::{QueuePauseFrame, Target};

    fn pfq(pause_time: Time) -> PerFlowQueue {
        let (pause, resume) = (vec![0, 3_000, 5_000], vec![0, 1_000, 2_000]);
        PerFlowQueue::new(&PerFlowQueueParams { pause, resume, response_time: 0, pause_time }, 3, &[3])
    }

    fn packet() -> QueueEntry {
        QueueEntry {
            port: 0,
            lane: 0,
            queue: 0,
            own: false,
            size: 1_000,
            queued: 0,
            hop: 0,
            flow: 7,
            response: false,
            ingress: Some(1),
            upstream: 0,
            passed: 0,
            counted: false,
            pausing: false,
        }
    }

    #[test]
    fn a_flow_is_paused_and_resumed_at_its_thresholds_once_each() {
        let (mut pfq, mut device, mut packet) = (pfq(0), Notes::default(), packet());
        for queued in [1_000, 2_000, 2_999, 3_000, 4_000] {
            packet.queued = queued;
            pfq.enqueued(&mut device, &mut packet);
        }
        assert_eq!(device.log, ["stop 1 Flow(7)"]);
        for queued in [3_000, 2_000, 1_001, 1_000, 0] {
            packet.queued = queued;
            pfq.left(&mut device, &mut packet);
        }
        assert_eq!(device.log, ["stop 1 Flow(7)", "go 1 Flow(7)"]);
        // A packet that begins here has no upstream to pause.
        packet.ingress = None;
        packet.queued = 9_000;
        pfq.enqueued(&mut device, &mut packet);
        assert_eq!(device.log.len(), 2);
    }

    /// On a route that loops, the packet that leaves may have come through another
    /// port than the one that was paused.
    #[test]
    fn the_ingress_that_was_paused_is_resumed() {
        let (mut pfq, mut device, mut packet) = (pfq(0), Notes::default(), packet());
        packet.queued = 3_000;
        pfq.enqueued(&mut device, &mut packet);
        (packet.ingress, packet.queued) = (Some(2), 500);
        pfq.left(&mut device, &mut packet);
        assert_eq!(device.log, ["stop 1 Flow(7)", "go 1 Flow(7)"]);
    }

    /// After a change of routes a queue may hold packets that came through two ports.
    #[test]
    fn every_ingress_is_paused_and_resumed_for_itself() {
        let (mut pfq, mut device, mut packet) = (pfq(1_000_000), Notes::default(), packet());
        for (ingress, queued) in [(1, 3_000), (2, 4_000), (1, 5_000), (2, 6_000), (2, 7_000)] {
            (packet.ingress, packet.queued) = (Some(ingress), queued);
            pfq.enqueued(&mut device, &mut packet);
        }
        assert_eq!(device.log, ["arm 2 500000", "stop 1 Flow(7)", "arm 4 500000", "stop 2 Flow(7)"]);
        device.log.clear();
        // Those from port 1 go first, and then nothing from there.
        for (ingress, queued) in [(1, 4_000), (1, 2_500), (2, 2_000), (2, 1_000)] {
            (packet.ingress, packet.queued) = (Some(ingress), queued);
            assert!(packet.pausing);
            pfq.left(&mut device, &mut packet);
        }
        assert_eq!(device.log, ["cancel 4", "go 2 Flow(7)", "cancel 2", "go 1 Flow(7)"]);
        assert!(!packet.pausing && pfq.ingresses.is_empty());
    }

    /// A flow that leaves through two ports at once is held by both queues.
    #[test]
    fn two_queues_of_one_flow_hold_one_pause() {
        let (mut pfq, mut device) = (pfq(1_000_000), Notes::default());
        let mut entries = [packet(), QueueEntry { port: 2, ..packet() }];
        for entry in &mut entries {
            entry.queued = 3_000;
            pfq.enqueued(&mut device, entry);
            entry.queued = 0;
        }
        pfq.left(&mut device, &mut entries[0]);
        assert_eq!(device.log, ["arm 2 500000", "stop 1 Flow(7)"]);
        pfq.left(&mut device, &mut entries[1]);
        assert_eq!(device.log[2..], ["cancel 2", "go 1 Flow(7)"]);
    }

    /// A queue that its neighbour paused goes on when the link fails; the pause runs out no more.
    #[test]
    fn a_link_that_fails_takes_its_pauses_with_it() {
        let (mut pfq, mut device) = (pfq(1_000_000), Notes::default());
        let frame = QueuePauseFrame { target: Target::Flow(7), priority: 3, pause: true };
        pfq.received(&mut device, 1, &frame.into());
        assert_eq!(device.log, ["arm 3 1000000", "pause 1/0 Flow(7)"]);
        device.log.clear();
        pfq.link_failed(&mut device, 1, 0);
        assert_eq!(device.log, ["cancel 3", "resume 1/0 Flow(7)"]);
    }
}
