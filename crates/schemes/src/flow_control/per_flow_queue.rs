//! A queue for each flow on every port, and a pause for each flow: the ideal of
//! queue-based flow control, which no switch can build. A flow waits for nobody
//! but itself, so that there is no head-of-line blocking. (The yardstick of the
//! papers on BFC, NSDI 2022, and Pyrrha, NSDI 2024.)
//!
//! Per (egress port, flow), two states:
//!
//! ```text
//!            queue of the flow ≥ K_pause: pause(flow) to the flow's ingress
//!   Open ◄──────────────────────────────────────────────────────────────────► Closed
//!            queue of the flow ≤ K_resume: resume(flow)
//! ```
//!
//! A queue that is drained at the whole rate while its upstream is silent still
//! holds something if `K_resume` is at least the hop's round trip times the
//! rate; so the default is a hop round trip for each of the two steps. What
//! arrives after the pause is not bounded by anything that is reserved: the
//! buffer must be ample, and packets that it cannot hold are dropped.

use super::{ControlFrame, Device, Passing};
use xoff_kernel::time::Time;
use xoff_wire::queue_pause::{QueuePauseFrame, Target};

/// Parameters of per-flow queues, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerFlowQueueParams {
    /// K_pause: bytes at which a flow is paused, by the port that it comes through.
    pub pause: Vec<u64>,
    /// K_resume: bytes at which it is resumed, by the port that it comes through.
    pub resume: Vec<u64>,
    /// From the arrival of a frame's last bit until it takes effect.
    pub response_time: Time,
}

/// Per-flow queues on every port of a run. Whether a queue has paused its flow
/// is the device's to keep ([`Passing::pausing`]).
#[derive(Clone, Debug)]
pub struct PerFlowQueue {
    params: PerFlowQueueParams,
    /// Priority of each lane.
    pub(super) priorities: Vec<u8>,
}

impl PerFlowQueue {
    pub(super) fn new(params: &PerFlowQueueParams, priorities: &[u8]) -> Self {
        Self { params: params.clone(), priorities: priorities.to_vec() }
    }

    fn send(&self, device: &mut impl Device, ingress: u32, packet: &Passing, pause: bool) {
        let priority = self.priorities[usize::from(packet.lane)];
        let frame = QueuePauseFrame { target: Target::Flow(packet.flow), priority, pause };
        device.send_control(ingress, ControlFrame::QueuePause(frame));
    }

    pub(super) fn enqueued(&mut self, device: &mut impl Device, packet: &mut Passing) {
        let Some(ingress) = packet.ingress else { return };
        if !packet.pausing && packet.queued >= self.params.pause[ingress as usize] {
            packet.pausing = true;
            self.send(device, ingress, packet, true);
        }
    }

    pub(super) fn left(&mut self, device: &mut impl Device, packet: &mut Passing) {
        let Some(ingress) = packet.ingress else { return };
        if packet.pausing && packet.queued <= self.params.resume[ingress as usize] {
            packet.pausing = false;
            self.send(device, ingress, packet, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::notes::Notes;
    use super::*;

    #[test]
    fn a_flow_is_paused_and_resumed_at_its_thresholds_once_each() {
        let params = PerFlowQueueParams { pause: vec![0, 3_000], resume: vec![0, 1_000], response_time: 0 };
        let (mut pfq, mut device) = (PerFlowQueue::new(&params, &[3]), Notes::default());
        let mut packet = Passing {
            port: 0,
            lane: 0,
            queue: 0,
            own: false,
            queued: 0,
            flow: 7,
            answer: false,
            ingress: Some(1),
            upstream: 0,
            counted: false,
            pausing: false,
        };
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
        // What begins here has no upstream to pause.
        packet.ingress = None;
        packet.queued = 9_000;
        pfq.enqueued(&mut device, &mut packet);
        assert_eq!(device.log.len(), 2);
    }
}
