//! Pauses of single queues and flows that a lost frame cannot make eternal.
//!
//! A pause holds until its resume, which a link may lose. So, in a network whose
//! links fail or lose frames, a pause has a time T, and both ends know it:
//!
//! ```text
//!   ingress: a first pause begins:   send it, and T/2 later repeat all active ones
//!   egress:  pause taken for T;      resumed by its resume, or when T has passed
//! ```
//!
//! All active pauses of a port are repeated together: the frames are then like a bitmap of the neighbour's
//! queues, distributed over frames of one queue each. They take at most a quarter of the link. If that makes
//! them rarer than T, pauses end early, and never too late. When the link fails, the egress half clears its
//! state; when it is up again, the ingress half repeats at once.

use super::ControlFrame;
use super::device::Queues;
use std::collections::{BTreeMap, BTreeSet};
use xoff_kernel::time::{Time, serialisation};
use xoff_wire::queue_pause::{QueuePauseFrame, Target};

#[derive(Clone, Debug)]
pub(super) struct Lasting {
    /// T; 0: a pause holds until its resume, and nothing is kept here.
    time: Time,
    priorities: Vec<u8>,
    /// Number of its first timer: two for each port, repeat and expiry.
    first: u32,
    /// By ingress port: the paused upstream queues by lane, and their holders (see [`Lasting::pause`]).
    sent: Vec<BTreeSet<(u8, Target, u32)>>,
    /// By egress port: the paused queues here, by lane, and the ends of their pauses.
    obeyed: Vec<BTreeMap<(u8, Target), Time>>,
}

impl Lasting {
    /// For `ports` ports; `first` is the number of its first timer.
    pub(super) fn new(time: Time, ports: usize, priorities: &[u8], first: usize) -> Self {
        let tracked = if time > 0 { ports } else { 0 };
        Self {
            time,
            priorities: priorities.to_vec(),
            first: first as u32,
            sent: vec![BTreeSet::new(); tracked],
            obeyed: vec![BTreeMap::new(); tracked],
        }
    }

    pub(super) fn timers(&self) -> usize {
        2 * self.sent.len()
    }

    /// Whether pauses have a time at all.
    pub(super) fn used(&self) -> bool {
        self.time > 0
    }

    fn repeat_timer(&self, port: u32) -> u32 {
        self.first + 2 * port
    }

    fn expiry_timer(&self, port: u32) -> u32 {
        self.first + 2 * port + 1
    }

    fn send(&self, device: &mut impl Queues, port: u32, lane: u8, target: Target, pause: bool) {
        let frame = QueuePauseFrame { target, priority: self.priorities[usize::from(lane)], pause };
        device.send_control(port, ControlFrame::QueuePause(frame));
    }

    fn is_paused(&self, port: u32, lane: u8, target: Target) -> bool {
        let holders = (lane, target, 0)..=(lane, target, u32::MAX);
        self.sent[port as usize].range(holders).next().is_some()
    }

    /// Pauses `target` upstream of `port`. If several holders of this device pause it, each with another
    /// `holder` number, it is paused until the last one resumes it.
    pub(super) fn pause(
        &mut self,
        device: &mut impl Queues,
        port: u32,
        lane: u8,
        target: Target,
        holder: u32,
    ) {
        if self.used() {
            let paused = self.is_paused(port, lane, target);
            let sent = &mut self.sent[port as usize];
            if sent.is_empty() {
                device.arm(self.first + 2 * port, device.now() + self.time / 2);
            }
            sent.insert((lane, target, holder));
            if paused {
                return;
            }
        }
        self.send(device, port, lane, target, true);
    }

    /// `holder` does not want `target` paused any more.
    pub(super) fn resume(
        &mut self,
        device: &mut impl Queues,
        port: u32,
        lane: u8,
        target: Target,
        holder: u32,
    ) {
        if self.used() {
            let sent = &mut self.sent[port as usize];
            sent.remove(&(lane, target, holder));
            if sent.is_empty() {
                device.cancel(self.repeat_timer(port));
            }
            if self.is_paused(port, lane, target) {
                return;
            }
        }
        self.send(device, port, lane, target, false);
    }

    pub(super) fn received(&mut self, device: &mut impl Queues, port: u32, frame: &QueuePauseFrame) {
        // A priority that this device does not use has no queue to pause.
        let Some(lane) = self.priorities.iter().position(|&p| p == frame.priority) else { return };
        let (lane, target) = (lane as u8, frame.target);
        if self.used() {
            let expiry = self.expiry_timer(port);
            let obeyed = &mut self.obeyed[port as usize];
            if frame.pause {
                let end = device.now() + self.time;
                if obeyed.is_empty() {
                    device.arm(expiry, end);
                }
                obeyed.insert((lane, target), end);
            } else {
                obeyed.remove(&(lane, target));
                if obeyed.is_empty() {
                    device.cancel(expiry);
                }
            }
        }
        if frame.pause {
            device.pause_queue(port, lane, target);
        } else {
            device.resume_queue(port, lane, target);
        }
    }

    /// Whether `timer` is one of these.
    pub(super) fn owns(&self, timer: u32) -> bool {
        timer >= self.first
    }

    pub(super) fn timer(&mut self, device: &mut impl Queues, timer: u32) {
        let port = (timer - self.first) / 2;
        if timer == self.expiry_timer(port) { self.expire(device, port) } else { self.repeat(device, port) }
    }

    fn repeat(&mut self, device: &mut impl Queues, port: u32) {
        let mut standing: Vec<(u8, Target)> = self.sent[port as usize].iter().map(|s| (s.0, s.1)).collect();
        standing.dedup();
        let length = u64::from(QueuePauseFrame::LENGTH) * standing.len() as u64;
        for (lane, target) in standing {
            self.send(device, port, lane, target, true);
        }
        if length > 0 {
            let apart = (self.time / 2).max(serialisation(4 * length, device.rate(port)));
            device.arm(self.repeat_timer(port), device.now() + apart);
        }
    }

    fn expire(&mut self, device: &mut impl Queues, port: u32) {
        let now = device.now();
        let obeyed = &mut self.obeyed[port as usize];
        let due: Vec<(u8, Target)> = obeyed.iter().filter(|o| *o.1 <= now).map(|o| *o.0).collect();
        obeyed.retain(|_, end| *end > now);
        if let Some(&next) = obeyed.values().min() {
            device.arm(self.expiry_timer(port), next);
        }
        for (lane, target) in due {
            device.resume_queue(port, lane, target);
        }
    }

    /// The link of `port` has failed, so no neighbour pauses it. The upstream pauses remain recorded.
    pub(super) fn link_failed(&mut self, device: &mut impl Queues, port: u32, lane: u8) {
        let Some(obeyed) = self.obeyed.get_mut(port as usize) else { return };
        let ended: Vec<(u8, Target)> = obeyed.keys().filter(|o| o.0 == lane).copied().collect();
        obeyed.retain(|o, _| o.0 != lane);
        if obeyed.is_empty() {
            device.cancel(self.expiry_timer(port));
        }
        for (lane, target) in ended {
            device.resume_queue(port, lane, target);
        }
    }

    /// The link of `port` is up again, and the peer knows of no pause.
    pub(super) fn link_recovered(&mut self, device: &mut impl Queues, port: u32) {
        if self.used() {
            self.repeat(device, port);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::notes::Notes;
    use super::*;

    const ONE: Target = Target::Queue(1);
    const TWO: Target = Target::Flow(2);

    /// Timers from 5 on: of port 1, 7 repeats and 8 expires.
    fn lasting(time: Time) -> (Lasting, Notes) {
        (Lasting::new(time, 2, &[3, 5], 5), Notes::default())
    }

    fn frame(target: Target, pause: bool) -> QueuePauseFrame {
        QueuePauseFrame { target, priority: 3, pause }
    }

    #[test]
    fn without_a_time_frames_are_sent_and_obeyed_and_that_is_all() {
        let (mut lasting, mut device) = lasting(0);
        assert_eq!(lasting.timers(), 0);
        lasting.pause(&mut device, 1, 0, ONE, 0);
        lasting.resume(&mut device, 1, 0, ONE, 0);
        lasting.received(&mut device, 1, &frame(TWO, true));
        lasting.received(&mut device, 1, &frame(TWO, false));
        lasting.received(&mut device, 1, &QueuePauseFrame { priority: 4, ..frame(TWO, true) });
        assert_eq!(
            device.log,
            ["stop 1 Queue(1)", "go 1 Queue(1)", "pause 1/0 Flow(2)", "resume 1/0 Flow(2)"]
        );
    }

    #[test]
    fn pauses_are_repeated_until_the_last_holder_resumes() {
        let (mut lasting, mut device) = lasting(100_000);
        lasting.pause(&mut device, 1, 0, ONE, 7);
        lasting.pause(&mut device, 1, 0, ONE, 8);
        lasting.pause(&mut device, 1, 1, TWO, 0);
        device.now = 50_000;
        lasting.timer(&mut device, 7);
        lasting.resume(&mut device, 1, 0, ONE, 7);
        lasting.resume(&mut device, 1, 1, TWO, 0);
        lasting.resume(&mut device, 1, 0, ONE, 8);
        let expected = [
            "arm 7 50000",
            "stop 1 Queue(1)",
            "stop 1 Flow(2)",
            "stop 1 Queue(1)",
            "stop 1 Flow(2)",
            // Two frames of 64 B at 100 Gbit/s take 10.24 ns: a quarter of 40.96 ns.
            "arm 7 100000",
            "go 1 Flow(2)",
            "cancel 7",
            "go 1 Queue(1)",
        ];
        assert_eq!(device.log, expected);
    }

    #[test]
    fn repeats_leave_three_quarters_of_the_link() {
        let (mut lasting, mut device) = lasting(1_000);
        lasting.pause(&mut device, 1, 0, ONE, 0);
        device.now = 500;
        lasting.timer(&mut device, 7);
        // 64 B at 100 Gbit/s: 5.12 ns.
        assert_eq!(device.log.last().map(String::as_str), Some("arm 7 20980"));
    }

    #[test]
    fn a_pause_ends_when_its_resume_is_lost() {
        let (mut lasting, mut device) = lasting(1_000);
        lasting.received(&mut device, 1, &frame(ONE, true));
        device.now = 400;
        lasting.received(&mut device, 1, &frame(TWO, true));
        device.now = 500;
        lasting.received(&mut device, 1, &frame(ONE, true)); // repeated
        device.now = 1_000;
        lasting.timer(&mut device, 8); // nothing is due yet
        device.now = 1_400;
        lasting.timer(&mut device, 8);
        device.now = 1_500;
        lasting.timer(&mut device, 8);
        let expected = [
            "arm 8 1000",
            "pause 1/0 Queue(1)",
            "pause 1/0 Flow(2)",
            "pause 1/0 Queue(1)",
            "arm 8 1400",
            "arm 8 1500",
            "resume 1/0 Flow(2)",
            "resume 1/0 Queue(1)",
        ];
        assert_eq!(device.log, expected);
    }

    #[test]
    fn a_failed_link_is_cleared_and_a_recovered_one_gets_its_pauses_again() {
        let (mut lasting, mut device) = lasting(1_000_000);
        lasting.received(&mut device, 1, &frame(ONE, true));
        lasting.pause(&mut device, 1, 0, TWO, 0);
        device.log.clear();
        lasting.link_failed(&mut device, 1, 1);
        assert!(device.log.is_empty(), "nothing of that lane");
        lasting.link_failed(&mut device, 1, 0);
        device.now = 7;
        lasting.link_recovered(&mut device, 1);
        assert_eq!(device.log, ["cancel 8", "resume 1/0 Queue(1)", "stop 1 Flow(2)", "arm 7 500007"]);
    }
}
