//! Bifrost (Huang et al., "Minimizing Buffer Utilization for Lossless Inter-DC Links",
//! 2024): the downstream port of a long link tells its peer in each slot of length T for
//! how much of it to pause, by what it stores *and* by what it has let go that can still
//! arrive. So it needs little more than one bandwidth-delay product of buffer, where PFC
//! needs two.
//!
//! Ingress half of a port that grants, at the end of each slot:
//!
//! ```text
//!          ┌───────────────── slot timer (every T) ─────────────────┐
//!          ▼                                                         │
//!   L, r read ──► Algorithm 1 (slots.rs): c, p ──► p > 0: processing time (and jitter),
//!                                                  then PAUSE(p in quanta) ─► wire
//!                                                  p = 0: nothing is sent
//! ```
//!
//! One frame speaks of all lossless lanes of the port that are to be stopped. Egress half:
//! that of PFC, each frame replacing the pause that stands (section V). On all other ports
//! PFC runs whole.
//!
//! The processing time is what the switch takes from the end of a slot until the frame is
//! at its MAC (about 1 us, section V); the jitter, uniform up to a bound and drawn for each
//! frame, is that of the cable and of the switch (section IV-D).

pub mod slots;
pub mod tokens;

use super::pfc::{Pfc, PfcParams};
use super::{ControlFrame, Crossing, Device};
use slots::{SlotParams, Slots, quanta};
use xoff_kernel::random::Stream;
use xoff_kernel::time::{Time, serialisation};
use xoff_wire::pfc::PfcFrame;

/// Parameters of Bifrost, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BifrostParams {
    /// PFC: of all ports that do not grant, and the obeying half of those that do.
    pub pfc: PfcParams,
    /// What each port grants its peer by, the same for each lossless lane; `None` where it
    /// runs PFC.
    pub ports: Vec<Option<SlotParams>>,
    /// By lane: it is lossless.
    pub lossless: Vec<bool>,
    /// From the end of a slot until its frame can be sent, shorter than a slot.
    pub processing: Time,
    /// Most that a frame is late beyond that.
    pub jitter: Time,
    /// Seed of the jitter.
    pub seed: u64,
}

/// A port that grants.
#[derive(Clone, Debug)]
struct Granter {
    port: u32,
    params: SlotParams,
    /// By lane; `None` where nothing is lossless.
    lanes: Vec<Option<Slots>>,
    /// Bytes received until the end of the latest slot, by lane.
    received: Vec<u64>,
    /// The frame that is being made.
    frame: PfcFrame,
    jitter: Stream,
}

/// Bifrost on the ports of a run.
#[derive(Clone, Debug)]
pub struct Bifrost {
    pub(super) pfc: Pfc,
    priorities: Vec<u8>,
    processing: Time,
    jitter: Time,
    granters: Vec<Granter>,
    /// By port: its place among the granters, or [`NONE`].
    of_port: Vec<u32>,
}

const NONE: u32 = u32::MAX;

/// Timers of a granter: the slot ends; the frame is made.
const TIMERS: u32 = 2;

impl Bifrost {
    pub(super) fn new(params: &BifrostParams, ports: usize, priorities: &[u8]) -> Self {
        let granters: Vec<Granter> = (0..)
            .zip(&params.ports)
            .filter_map(|(port, slots)| slots.map(|slots| (port, slots)))
            .map(|(port, slots)| Granter {
                port,
                params: slots,
                lanes: params.lossless.iter().map(|&lossless| lossless.then(|| Slots::new(slots))).collect(),
                received: vec![0; priorities.len()],
                frame: PfcFrame::default(),
                jitter: Stream::new(params.seed, "Bifrost", port.into()),
            })
            .collect();
        let mut of_port = vec![NONE; ports];
        for (i, granter) in granters.iter().enumerate() {
            of_port[granter.port as usize] = i as u32;
        }
        Self {
            pfc: Pfc::new(params.pfc, ports, priorities),
            priorities: priorities.to_vec(),
            processing: params.processing,
            jitter: params.jitter,
            granters,
            of_port,
        }
    }

    pub(super) fn timers(&self) -> usize {
        self.pfc.timers() + self.granters.len() * TIMERS as usize
    }

    /// The granter of `port`, if it grants.
    fn granter(&self, port: u32) -> Option<usize> {
        self.of_port.get(port as usize).filter(|&&i| i != NONE).map(|&i| i as usize)
    }

    fn slot_timer(&self, granter: usize) -> u32 {
        self.pfc.timers() as u32 + granter as u32 * TIMERS
    }

    /// The first slot of each port ends at another time, within a slot from the start.
    pub(super) fn begin(&mut self, device: &mut impl Device, port: u32) {
        let Some(i) = self.granter(port) else { return };
        let slot = self.granters[i].params.slot;
        device.arm(self.slot_timer(i), slot - slot / 64 * Time::from(port % 64));
    }

    pub(super) fn crossed(&mut self, device: &mut impl Device, port: u32, lane: u8, crossing: Crossing) {
        // A port that grants does not wait for thresholds.
        if self.granter(port).is_none() {
            self.pfc.crossed(device, port, lane, crossing);
        }
    }

    pub(super) fn timer(&mut self, device: &mut impl Device, timer: u32) {
        let Some(own) = timer.checked_sub(self.pfc.timers() as u32) else {
            return self.pfc.timer(device, timer);
        };
        let i = (own / TIMERS) as usize;
        if own % TIMERS == 0 { self.slot_ends(device, i) } else { self.send(device, i) }
    }

    /// Algorithm 1, lines 2 to 8.
    fn slot_ends(&mut self, device: &mut impl Device, i: usize) {
        let granter = &mut self.granters[i];
        let mut frame = PfcFrame::default();
        for (lane, slots) in (0u8..).zip(&mut granter.lanes) {
            let Some(slots) = slots else { continue };
            let received = device.received(granter.port, lane);
            let before = std::mem::replace(&mut granter.received[usize::from(lane)], received);
            let grant = slots.ends(device.stored(granter.port, lane), received - before);
            if !grant.whole {
                let priority = usize::from(self.priorities[usize::from(lane)]);
                frame.enabled |= 1 << priority;
                frame.quanta[priority] = u16::try_from(quanta(slots.params().stopped(grant)))
                    .expect("the plan refuses longer slots");
            }
        }
        device.arm(self.slot_timer(i), device.now() + self.granters[i].params.slot);
        if frame.enabled == 0 {
            return;
        }
        self.granters[i].frame = frame;
        let late = if self.jitter > 0 { self.granters[i].jitter.below(self.jitter + 1) } else { 0 };
        match self.processing + late {
            0 => self.send(device, i),
            delay => device.arm(self.slot_timer(i) + 1, device.now() + delay),
        }
    }

    fn send(&self, device: &mut impl Device, i: usize) {
        let granter = &self.granters[i];
        device.send_control(granter.port, ControlFrame::Pfc(granter.frame));
    }

    pub(super) fn link_failed(&mut self, device: &mut impl Device, port: u32, lane: u8) {
        self.pfc.link_failed(device, port, lane);
        if let Some(i) = self.granter(port) {
            device.cancel(self.slot_timer(i));
            device.cancel(self.slot_timer(i) + 1);
        }
    }

    /// Begins afresh with nothing under way: the downstream half says at once what it
    /// grants, and the upstream half waits until that can have been heard.
    pub(super) fn link_recovered(
        &mut self,
        device: &mut impl Device,
        port: u32,
        lane: u8,
        over: bool,
        settled: Time,
    ) {
        let Some(i) = self.granter(port) else {
            return self.pfc.link_recovered(device, port, lane, over, settled);
        };
        let granter = &mut self.granters[i];
        granter.lanes[usize::from(lane)] = Some(Slots::silent(granter.params));
        granter.received[usize::from(lane)] = device.received(port, lane);
        let longest =
            serialisation(u64::from(PfcFrame::LENGTH), device.rate(port)) + self.processing + self.jitter;
        self.pfc.hold_until(device, port, lane, settled + longest);
        device.arm(self.slot_timer(i), device.now());
    }
}
