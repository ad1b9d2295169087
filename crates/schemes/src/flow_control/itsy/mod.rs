//! ITSY: deadlocks found by the switch that began them (Wu and Ng, *Detecting and Resolving PFC
//! Deadlocks with ITSY Entirely in the Data Plane*, INFOCOM 2022).
//!
//! Modelled on the description by Lv et al. (*Solving PFC Deadlocks with Distributed Detection and Buffer
//! Collaboration*, 2025, sections II-B and VI-D, `roundabout.itsy-model`), because its own paper is not
//! openly available; the abstract of its forerunner DCFIT names the same *initial trigger*. It is PFC
//! ([`super::pfc`]), and on top of it one ingress queue, described by its frames to its upstream neighbour:
//!
//! ```text
//!          reaches XOFF, and none of the egress queues that its packets
//!          wait in is paused: send PAUSE with a check of its own
//!   Open ──────────────────────────────────────────────────────────────► Trigger
//!    │  ▲  drains to XON: send RESUME                                        │
//!    │  ├────────────────────────────────────────────────────────────────────┤
//!    │  │                                                                    │ its own check
//!    │  ├─── Spreader: a check that arrives where its packets wait           │ comes back:
//!    │  │       ▲      goes on upstream, each once                           │ deadlock
//!    └──┼───────┘                                                            ▼
//!       │  reaches XOFF, and one of them is paused:                      Resolving
//!       │  send PAUSE, with the checks that came with its pause              │
//!       └────────────────────────────────────────────────────────────────────┘
//!          the egress queue that the check came back to goes on
//! ```
//!
//! - A *trigger* drops every check but its own. So the deadlock is missed where several queues of one loop
//!   are triggers (Lv et al., Figure 3), where the trigger lies outside the loop, or where it has gone to XON
//!   before the loop closed and come back as a spreader.
//! - *Resolving*, `Lossy`: packets of the queue that wait for the egress queue by which the check came back
//!   are dropped until the queue is at XON, those of the flow with most bytes there first, each from the head
//!   on. `Lossless`: the queue's threshold is raised by the shared pool's bytes, if the pool has them
//!   ([`Repair::enlarge`]). Either way upstream is resumed. It is done again whenever the queue reaches its
//!   threshold while that egress queue has not gone on, and with every refresh of its pause: one drop need
//!   not bring upstream to XON, and a queue that is no trigger could not find the deadlock again.
//!
//! *Readings.* The queue is the unit, not the switch: a switch whose other queues are triggers passes checks
//! on. (By the switch ITSY would find less.) A paused egress queue stores the checks that came with its pause
//! or after it until it resumes, for ingress queues that pause later: without that ITSY would find only loops
//! in which every pause is older than the trigger's. Stored checks can be out of date: if a pause on the path
//! has ended, a detection is false for a short time. A refresh repeats its queue's checks, so a lost check
//! only costs time. The paper does not number triggers, so an old check counts as new.
//!
//! Checks delay no frame: one that is sent with a pause is part of it. One that is passed on later is a
//! separate frame, which pauses and resumes overtake ([`ControlFrame::overtakes`]). So PFC's headroom suffices.

pub mod frame;
pub mod keys;
pub mod report;

#[cfg(test)]
mod tests;

use super::device::{Causes, Repair};
use super::pfc::{Pfc, PfcParams};
use super::{ControlFrame, Crossing, FlowControl, Machine, Parameters, Scheme, Seen, Traits};
use frame::{Check, ItsyFrame};
pub use report::Report;
use xoff_kernel::time::Time;
use xoff_net::units::{Bytes, Span};
use xoff_outcome::report::{Facts, Records};

/// The action against a deadlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// Packets of the loop are dropped.
    Lossy,
    /// The queue may take in so many bytes more, from the shared pool.
    Lossless(u64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItsyParams {
    pub pfc: PfcParams,
    /// By port: its number within its device.
    pub numbers: Vec<u16>,
    pub resolution: Resolution,
}

impl Parameters for ItsyParams {
    fn traits(&self) -> Traits {
        Traits { ends_deadlocks: true, knows_causes: true, ..Traits::of_pfc(&self.pfc) }
    }

    fn pfc(&self) -> Option<&PfcParams> {
        Some(&self.pfc)
    }

    fn describe(&self, _: &Seen<'_>) -> String {
        let resolution = match self.resolution {
            Resolution::Lossy => "drops packets of a deadlocked queue".to_string(),
            Resolution::Lossless(bytes) => {
                format!("gives a deadlocked queue {} of room, if the shared pool has it", Bytes(bytes))
            }
        };
        format!("({resolution}; {} quanta, response time {})", self.pfc.quanta, Span(self.pfc.response_time))
    }

    fn start(&self, ports: usize, priorities: &[u8]) -> FlowControl {
        FlowControl::Itsy(Itsy::new(self, ports, priorities))
    }
}

/// A time for which a queue was an initial trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Its ingress port and lane.
    pub port: u32,
    pub lane: u8,
    /// When it reached XOFF.
    pub from: Time,
    /// When it was at XON again, or got room; `None` if it lasted until the end.
    pub until: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detection {
    /// When its check came back.
    pub at: Time,
    /// The trigger's ingress port and lane.
    pub port: u32,
    pub lane: u8,
    /// The egress port that the check came back to.
    pub egress: u32,
    /// How often packets were dropped, or room was given.
    pub acted: u64,
    /// How often the shared pool had too little.
    pub refused: u64,
    /// Bytes that were taken from it.
    pub room: u64,
    /// When that egress port's queue went on.
    pub ended: Option<Time>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Queue {
    pausing: bool,
    /// It is a trigger: the index of that.
    trigger: Option<usize>,
    /// How often it has been one.
    number: u16,
    /// Checks of others that it has passed on with the present pause.
    passed: Vec<Check>,
    /// It is resolving: the index of the detection.
    resolves: Option<usize>,
    raised: bool,
}

#[derive(Clone, Debug)]
pub struct Itsy {
    pfc: Pfc,
    params: ItsyParams,
    /// By port and lane, of the ingress queue.
    queues: Vec<Queue>,
    /// By port and lane: the checks that a paused egress queue received.
    reported: Vec<Vec<Check>>,
    triggers: Vec<Trigger>,
    detections: Vec<Detection>,
    /// Checks that triggers dropped which were not their own.
    discarded: u64,
}

impl Itsy {
    pub(super) fn new(params: &ItsyParams, ports: usize, priorities: &[u8]) -> Self {
        let queues = ports * priorities.len();
        Self {
            pfc: Pfc::new(params.pfc, ports, priorities),
            params: params.clone(),
            queues: vec![Queue::default(); queues],
            reported: vec![Vec::new(); queues],
            triggers: Vec::new(),
            detections: Vec::new(),
            discarded: 0,
        }
    }

    fn ports<D: Causes + Repair>(device: &D, port: u32) -> impl Iterator<Item = u32> + '_ {
        (0..).map_while(move |i| device.port_of(port, i))
    }

    /// The check of an ingress queue that is a trigger now, or was last.
    fn own(&self, device: &(impl Causes + Repair), port: u32, lane: u8) -> Check {
        let priority = self.pfc.priority(lane);
        let qid = self.params.numbers[port as usize] * 8 + u16::from(priority);
        Check {
            priority,
            sid: device.device_of(port),
            qid,
            number: self.queues[self.pfc.at(port, lane)].number,
        }
    }

    fn send(device: &mut (impl Causes + Repair), port: u32, check: Check) {
        device.send_control(port, ControlFrame::Itsy(ItsyFrame::alone(check)));
    }

    fn pauses(&mut self, device: &mut (impl Causes + Repair), port: u32, lane: u8) {
        let at = self.pfc.at(port, lane);
        self.queues[at].pausing = true;
        if self.queues[at].resolves.is_some() {
            return self.await_action(device, port, lane);
        }
        let paused: Vec<u32> = Self::ports(device, port)
            .filter(|&egress| device.waits(port, egress, lane) && device.is_stopped(egress, lane))
            .collect();
        if paused.is_empty() {
            let queue = &mut self.queues[at];
            (queue.trigger, queue.number) = (Some(self.triggers.len()), queue.number.wrapping_add(1));
            self.triggers.push(Trigger { port, lane, from: device.now(), until: None });
            let check = self.own(device, port, lane);
            return Self::send(device, port, check);
        }
        for egress in paused {
            self.waits(device, port, egress, lane);
        }
    }

    fn opens(&mut self, device: &(impl Causes + Repair), port: u32, lane: u8) {
        let at = self.pfc.at(port, lane);
        let queue = &mut self.queues[at];
        queue.pausing = false;
        queue.passed.clear();
        if let Some(trigger) = queue.trigger.take() {
            self.triggers[trigger].until = Some(device.now());
        }
    }

    /// A check has come to `egress`, where packets of the ingress queue wait.
    fn on_check(
        &mut self,
        device: &mut (impl Causes + Repair),
        port: u32,
        lane: u8,
        egress: u32,
        check: Check,
    ) {
        let at = self.pfc.at(port, lane);
        let own = self.own(device, port, lane);
        let queue = &mut self.queues[at];
        // It would pass the check on with its pause.
        if !queue.pausing || queue.resolves.is_some() {
            return;
        }
        if queue.trigger.is_some() {
            if check == own {
                queue.resolves = Some(self.detections.len());
                let (at, acted, refused, room, ended) = (device.now(), 0, 0, 0, None);
                self.detections.push(Detection { at, port, lane, egress, acted, refused, room, ended });
                self.await_action(device, port, lane);
            } else if !check.same_source(&own) {
                self.discarded += 1;
            }
            return;
        }
        if check.same_source(&own) || queue.passed.contains(&check) {
            return;
        }
        queue.passed.retain(|passed| !passed.same_source(&check));
        queue.passed.push(check);
        Self::send(device, port, check);
    }

    fn goes(&mut self, device: &mut (impl Causes + Repair), egress: u32, lane: u8) {
        let at = self.pfc.at(egress, lane);
        self.reported[at].clear();
        let ports: Vec<u32> = Self::ports(device, egress).collect();
        for port in ports {
            let queue = self.pfc.at(port, lane);
            if let Some(found) = self.queues[queue].resolves.filter(|&i| self.detections[i].egress == egress)
            {
                self.detections[found].ended = Some(device.now());
                self.queues[queue].resolves = None;
                self.lowers(device, port, lane);
            }
        }
    }

    /// Takes back the room of an ingress queue, if it has drained.
    fn lowers(&mut self, device: &mut impl Repair, port: u32, lane: u8) {
        let at = self.pfc.at(port, lane);
        if self.queues[at].raised && device.shrink(port, lane) {
            self.queues[at].raised = false;
        }
    }

    /// Acts once all that happens with this event has happened.
    fn await_action(&self, device: &mut (impl Causes + Repair), port: u32, lane: u8) {
        device.arm((self.pfc.timers() + self.pfc.at(port, lane)) as u32, device.now());
    }

    fn acts(&mut self, device: &mut (impl Causes + Repair), port: u32, lane: u8) {
        let at = self.pfc.at(port, lane);
        let Some(found) = self.queues[at].resolves else { return };
        if !device.is_over(port, lane, 0) {
            return;
        }
        let detection = &mut self.detections[found];
        match self.params.resolution {
            Resolution::Lossy => {
                detection.acted += 1;
                device.drop_waiting(port, detection.egress, lane, &report::DROPPED);
            }
            Resolution::Lossless(room) => match device.enlarge(port, lane, room) {
                None => detection.refused += 1,
                Some(taken) => {
                    detection.acted += 1;
                    detection.room += taken;
                    self.queues[at].raised = true;
                    self.opens(device, port, lane);
                    self.pfc.crossed(device, port, lane, Crossing::Under);
                }
            },
        }
    }
}

impl Machine for Itsy {
    const FACTS: Option<&'static Facts> = Some(&report::FACTS);

    fn timers(&self) -> usize {
        self.pfc.timers() + self.queues.len()
    }

    fn records(&self) -> Records {
        Records::of(Report {
            resolution: self.params.resolution,
            triggers: self.triggers.clone(),
            detections: self.detections.clone(),
            discarded: self.discarded,
        })
    }
}

impl<D: Causes + Repair> Scheme<D> for Itsy {
    fn crossed(&mut self, device: &mut D, port: u32, lane: u8, crossing: Crossing) {
        self.pfc.crossed(device, port, lane, crossing);
        match crossing {
            Crossing::Over => self.pauses(device, port, lane),
            Crossing::Under => {
                self.opens(device, port, lane);
                self.lowers(device, port, lane);
            }
        }
    }

    fn received(&mut self, device: &mut D, port: u32, frame: &ControlFrame) {
        let (pfc, check) = match frame {
            ControlFrame::Pfc(pfc) => (pfc, None),
            ControlFrame::Itsy(frame) => (&frame.pfc, Some(frame.check)),
            _ => return,
        };
        for (priority, quanta) in pfc.entries() {
            if let Some(lane) = self.pfc.lane(priority).filter(|_| quanta == 0) {
                self.goes(device, port, lane);
            }
        }
        self.pfc.obey(device, port, pfc);
        let Some(check) = check else { return };
        let Some(lane) = self.pfc.lane(check.priority) else { return };
        // A resume has overtaken it.
        if !device.is_stopped(port, lane) {
            return;
        }
        let at = self.pfc.at(port, lane);
        match self.reported[at].iter_mut().find(|known| known.same_source(&check)) {
            Some(known) => *known = check,
            None => self.reported[at].push(check),
        }
        let causes: Vec<u32> =
            Self::ports(device, port).filter(|&cause| device.waits(cause, port, lane)).collect();
        for cause in causes {
            self.on_check(device, cause, lane, port, check);
        }
    }

    /// The first packet of `ingress` waits in `lane` of `egress`: it has a cause more.
    fn waits(&mut self, device: &mut D, ingress: u32, egress: u32, lane: u8) {
        for i in 0..self.reported[self.pfc.at(egress, lane)].len() {
            let check = self.reported[self.pfc.at(egress, lane)][i];
            self.on_check(device, ingress, lane, egress, check);
        }
    }

    fn timer(&mut self, device: &mut D, timer: u32) {
        if let Some(at) = (timer as usize).checked_sub(self.pfc.timers()) {
            let (port, lane) = self.pfc.port_and_lane(at);
            return self.acts(device, port, lane);
        }
        self.pfc.timer(device, timer);
        if let Some((port, lane)) = self.pfc.refreshes(timer) {
            let queue = &self.queues[self.pfc.at(port, lane)];
            let checks = match queue.trigger {
                Some(_) => vec![self.own(device, port, lane)],
                None => queue.passed.clone(),
            };
            checks.into_iter().for_each(|check| Self::send(device, port, check));
            if queue.resolves.is_some() {
                self.await_action(device, port, lane);
            }
        } else if let Some((port, lane)) = self.pfc.expires(timer) {
            self.goes(device, port, lane);
        }
    }

    /// After a link failure the port has no neighbour to pause, and no neighbour that pauses it.
    fn link_failed(&mut self, device: &mut D, port: u32, lane: u8) {
        self.pfc.link_failed(device, port, lane);
        self.opens(device, port, lane);
        self.goes(device, port, lane);
        let at = self.pfc.at(port, lane);
        if let Some(found) = self.queues[at].resolves.take() {
            self.detections[found].ended = Some(device.now());
        }
    }

    /// Begins afresh, as PFC does; an account that is over says so again.
    fn link_recovered(&mut self, device: &mut D, port: u32, lane: u8, over: bool, settled: Time) {
        self.pfc.link_recovered(device, port, lane, over, settled);
        if over {
            self.pauses(device, port, lane);
        }
    }
}
