//! Bifrost (Huang et al., "Minimizing Buffer Utilization for Lossless Inter-DC Links", 2024): the downstream
//! port of a long link sends its peer the length of the pause in each slot of length T. This depends on the bytes
//! that it stores *and* on granted bytes that can still arrive. So it needs little more than one
//! bandwidth-delay product of buffer, where PFC needs two.
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
//! One frame names all lossless lanes of the port that must stop. Egress half: that of PFC, each frame
//! replacing the present pause (section V). All other ports run ordinary PFC.
//!
//! BifrostX ([`tokens`]) sends tokens instead of pauses: in every slot a total, and a number for each
//! lossless lane.
//!
//! The processing time lasts from the end of a slot until the frame is at its MAC (about 1 us, section V);
//! the jitter of cable and switch, uniform up to a bound, is drawn for each frame (section IV-D).

pub mod frame;
pub mod keys;
pub mod report;
pub mod size;
pub mod slots;
pub mod tokens;

use super::pfc::{self, Pfc, PfcParams};
use super::size::links::{self, Links};
use super::{ControlFrame, Crossing, Device, FlowControl, Machine, Parameters, Scheme, Seen, Traits};
use frame::FeedbackFrame;
pub use report::Report;
use slots::{Grant, SlotParams, Slots, quanta};
use tokens::{Leftover, Tokens, of_class};
use xoff_kernel::random::Stream;
use xoff_kernel::time::{SECOND, Time, serialisation};
use xoff_net::units::{Bandwidth, Span};
use xoff_outcome::report::{Facts, Records};
use xoff_wire::pfc::PfcFrame;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BifrostParams {
    /// PFC: of all ports that do not grant, and the obeying half of those that do.
    pub pfc: PfcParams,
    /// By port: the parameters with which it grants its peer, for each lossless lane; `None` where it runs PFC.
    pub ports: Vec<Option<SlotParams>>,
    /// By port: the parameters with which its peer grants it.
    pub granted: Vec<Option<SlotParams>>,
    /// By lane: it is lossless.
    pub lossless: Vec<bool>,
    /// From the end of a slot until its frame can be sent, shorter than a slot.
    pub processing: Time,
    /// Most that a frame is late beyond that.
    pub jitter: Time,
    pub seed: u64,
    /// BifrostX: tokens instead of pauses, and all lossless lanes of a port together.
    pub tokens: Option<Leftover>,
}

impl Parameters for BifrostParams {
    fn alias(&self) -> Option<&'static str> {
        self.tokens.is_some().then_some("bifrostx")
    }

    fn traits(&self) -> Traits {
        Traits { asks_to_leave: self.tokens.is_some(), counts_arrivals: true, ..Traits::of_pfc(&self.pfc) }
    }

    fn pfc(&self) -> Option<&PfcParams> {
        Some(&self.pfc)
    }

    fn grants_slots(&self, port: u32) -> bool {
        self.ports.get(port as usize).is_some_and(Option::is_some)
    }

    fn describe(&self, _: &Seen<'_>) -> String {
        let mut kinds: Vec<&SlotParams> = Vec::new();
        for slots in self.ports.iter().flatten() {
            if !kinds.contains(&slots) {
                kinds.push(slots);
            }
        }
        let mut text = format!(
            "(processing {}, jitter {}, response time {}; pfc with {} quanta on other links)",
            Span(self.processing),
            Span(self.jitter),
            Span(self.pfc.response_time),
            self.pfc.quanta
        );
        for slots in kinds {
            text += &format!(
                "\n  links of {}: slot {}, round trip {}, H {} B ({} B for one round trip), margin {} B",
                Bandwidth(slots.rate),
                Span(slots.slot),
                Span(slots.round_trip),
                slots.buffer,
                slots.bdp(),
                slots.margin
            );
        }
        text
    }

    fn compare(&self, links: &Links<'_>, report: &mut links::Report) -> bool {
        links.accounts(|ingress| match &self.ports[ingress.port as usize] {
            Some(slots) => {
                size::compare(links, self, slots, ingress, report);
                // BifrostX: all of them share the first one's state.
                self.tokens.is_none()
            }
            None => {
                pfc::size::compare(links, ingress, self.pfc.response_time, report);
                true
            }
        });
        true
    }

    fn start(&self, ports: usize, priorities: &[u8]) -> FlowControl {
        FlowControl::Bifrost(Bifrost::new(self, ports, priorities))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotTally {
    pub slots: u64,
    /// Those that were granted whole.
    pub whole: u64,
    /// Most of L, in bytes.
    pub most_stored: u64,
    /// Least of L + F, in bytes.
    pub least: u64,
    /// Most of L + F, in bytes.
    pub most: u64,
    /// BifrostX: least of Σ c_i − c_max, in bytes.
    pub least_spread: i64,
}

/// A port that grants, as an observer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granting {
    pub port: u32,
    /// The first of the lanes that are granted together: one with Bifrost, all lossless with BifrostX.
    pub lane: u8,
    pub params: SlotParams,
    pub tally: SlotTally,
}

/// Lanes that are granted together.
#[derive(Clone, Debug)]
struct Group {
    lanes: Vec<u8>,
    slots: Slots,
    /// Bytes received until the end of the latest slot.
    received: u64,
    /// Bytes of each lane that were stored then.
    stored: Vec<u64>,
    tally: SlotTally,
}

#[derive(Clone, Debug)]
struct Granter {
    port: u32,
    params: SlotParams,
    groups: Vec<Group>,
    /// The frame that is being made.
    frame: ControlFrame,
    jitter: Stream,
}

/// A port that is granted: the upstream half of a link.
#[derive(Clone, Debug)]
struct Granted {
    params: SlotParams,
    tokens: Option<Tokens>,
}

#[derive(Clone, Debug)]
pub struct Bifrost {
    pub(super) pfc: Pfc,
    priorities: Vec<u8>,
    processing: Time,
    jitter: Time,
    leftover: Option<Leftover>,
    /// By lane: it is lossless, and takes tokens.
    lossless: Vec<bool>,
    granters: Vec<Granter>,
    /// By port: its place among the granters, or [`NONE`].
    of_port: Vec<u32>,
    /// By port; `None` where it is not granted.
    granted: Vec<Option<Granted>>,
}

const NONE: u32 = u32::MAX;

/// Timers of a granter: the slot ends; the frame is made.
const TIMERS: u32 = 2;

impl Group {
    fn new(lanes: Vec<u8>, params: SlotParams) -> Self {
        let tally = SlotTally { least: u64::MAX, least_spread: i64::MAX, ..SlotTally::default() };
        Self { stored: vec![0; lanes.len()], lanes, slots: Slots::new(params), received: 0, tally }
    }

    /// Lines 3 to 6.
    fn slot_ends(&mut self, device: &impl Device, port: u32) -> (Grant, [u64; 8]) {
        let received = self.lanes.iter().map(|&lane| device.received(port, lane)).sum();
        let arrived = received - std::mem::replace(&mut self.received, received);
        let of_slot = self.slots.params().of_slot();
        let (mut stored, mut each) = (0, [0; 8]);
        for ((&lane, before), c) in self.lanes.iter().zip(&mut self.stored).zip(&mut each) {
            let now = device.stored(port, lane);
            *c = of_class(of_slot, std::mem::replace(before, now), now);
            stored += now;
        }
        let grant = self.slots.ends(stored, arrived);
        let sum = stored + self.slots.virtual_incoming();
        let spread = each.iter().sum::<u64>() as i64 - grant.let_go as i64;
        let t = &mut self.tally;
        *t = SlotTally {
            slots: t.slots + 1,
            whole: t.whole + u64::from(grant.whole),
            most_stored: t.most_stored.max(stored),
            least: t.least.min(sum),
            most: t.most.max(sum),
            least_spread: t.least_spread.min(spread),
        };
        (grant, each)
    }
}

impl Bifrost {
    pub(super) fn new(params: &BifrostParams, ports: usize, priorities: &[u8]) -> Self {
        let lossless: Vec<u8> =
            (0u8..).zip(&params.lossless).filter(|(_, lossless)| **lossless).map(|(lane, _)| lane).collect();
        let groups: Vec<&[u8]> = match params.tokens {
            Some(_) if lossless.is_empty() => Vec::new(),
            Some(_) => vec![&lossless],
            None => lossless.chunks(1).collect(),
        };
        let (mut of_port, mut granters) = (vec![NONE; ports], Vec::new());
        for (port, slots) in (0..).zip(&params.ports) {
            let Some(slots) = *slots else { continue };
            of_port[port as usize] = granters.len() as u32;
            granters.push(Granter {
                port,
                params: slots,
                groups: groups.iter().map(|lanes| Group::new(lanes.to_vec(), slots)).collect(),
                frame: ControlFrame::Pfc(PfcFrame::default()),
                jitter: Stream::new(params.seed, "Bifrost", port.into()),
            });
        }
        let tokens = params.tokens.map(|_| Tokens::new(priorities.len()));
        let granted = |params: SlotParams| Granted { params, tokens: tokens.clone() };
        Self {
            pfc: Pfc::new(params.pfc, ports, priorities),
            priorities: priorities.to_vec(),
            processing: params.processing,
            jitter: params.jitter,
            leftover: params.tokens,
            lossless: params.lossless.clone(),
            granters,
            of_port,
            granted: params.granted.iter().map(|slots| slots.map(granted)).collect(),
        }
    }

    fn seen(&self) -> Vec<Granting> {
        let groups =
            self.granters.iter().flat_map(|granter| granter.groups.iter().map(move |g| (granter, g)));
        let granting = |(&Granter { port, params, .. }, group): (&Granter, &Group)| {
            (group.tally.slots > 0).then_some(Granting {
                port,
                lane: group.lanes[0],
                params,
                tally: group.tally,
            })
        };
        groups.filter_map(granting).collect()
    }

    fn granter(&self, port: u32) -> Option<usize> {
        self.of_port.get(port as usize).filter(|&&i| i != NONE).map(|&i| i as usize)
    }

    fn slot_timer(&self, granter: usize) -> u32 {
        self.pfc.timers() as u32 + granter as u32 * TIMERS
    }

    /// Algorithm 1, lines 2 to 8; Algorithm 2.
    fn slot_ends(&mut self, device: &mut impl Device, i: usize) {
        let granter = &mut self.granters[i];
        let mut pause = PfcFrame::default();
        let mut feedback = FeedbackFrame::default();
        for group in &mut granter.groups {
            let (grant, each) = group.slot_ends(device, granter.port);
            let word = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
            feedback.whole = grant.whole;
            feedback.total = word(grant.let_go);
            for (&lane, &c) in group.lanes.iter().zip(&each) {
                let priority = usize::from(self.priorities[usize::from(lane)]);
                feedback.enabled |= 1 << priority;
                feedback.each[priority] = word(c);
                if !grant.whole {
                    let stopped = quanta(granter.params.stopped(grant));
                    pause.enabled |= 1 << priority;
                    pause.quanta[priority] = u16::try_from(stopped).expect("the plan refuses longer slots");
                }
            }
        }
        let frame = match self.leftover {
            Some(_) => (feedback.enabled != 0).then_some(ControlFrame::Feedback(feedback)),
            None => (pause.enabled != 0).then_some(ControlFrame::Pfc(pause)),
        };
        device.arm(self.slot_timer(i), device.now() + self.granters[i].params.slot);
        let Some(frame) = frame else { return };
        self.granters[i].frame = frame;
        let late = if self.jitter > 0 { self.granters[i].jitter.below(self.jitter + 1) } else { 0 };
        match self.processing + late {
            0 => self.send(device, i),
            delay => device.arm(self.slot_timer(i) + 1, device.now() + delay),
        }
    }

    fn send(&self, device: &mut impl Device, i: usize) {
        let granter = &self.granters[i];
        device.send_control(granter.port, granter.frame);
    }

    /// Algorithm 3.
    pub(super) fn on_feedback(&mut self, device: &mut impl Device, port: u32, frame: &FeedbackFrame) {
        let (priorities, leftover) = (&self.priorities, self.leftover);
        let Some(Some(Granted { params, tokens: Some(tokens) })) = self.granted.get_mut(port as usize) else {
            return;
        };
        let beyond = u128::from(params.margin) * 8 * u128::from(SECOND) / u128::from(params.rate);
        let slot = params.slot + beyond as Time;
        let (now, of_slot) = (device.now(), params.of_slot());
        let queued = |lane: u8| device.backlog(port, lane);
        let rule = (leftover == Some(Leftover::Reserved)).then_some(&queued as &dyn Fn(u8) -> u64);
        tokens.set(now, slot, of_slot, frame, priorities, rule);
        for (lane, &priority) in (0u8..).zip(&self.priorities) {
            if frame.enabled >> priority & 1 == 1 {
                device.resume(port, lane);
            }
        }
    }
}

impl Machine for Bifrost {
    const FACTS: Option<&'static Facts> = Some(&report::FACTS);

    fn timers(&self) -> usize {
        self.pfc.timers() + self.granters.len() * TIMERS as usize
    }

    fn records(&self) -> Records {
        let granting = self.seen();
        if granting.is_empty() { Records::default() } else { Records::of(Report(granting)) }
    }
}

impl<D: Device> Scheme<D> for Bifrost {
    /// The first slot of each port ends at another time, within a slot from the start.
    fn begins(&mut self, device: &mut D, port: u32) {
        let Some(i) = self.granter(port) else { return };
        let slot = self.granters[i].params.slot;
        device.arm(self.slot_timer(i), slot - slot / 64 * Time::from(port % 64));
    }

    fn crossed(&mut self, device: &mut D, port: u32, lane: u8, crossing: Crossing) {
        // A port that grants does not wait for thresholds.
        if self.granter(port).is_none() {
            self.pfc.crossed(device, port, lane, crossing);
        }
    }

    fn received(&mut self, device: &mut D, port: u32, frame: &ControlFrame) {
        match frame {
            ControlFrame::Feedback(feedback) => self.on_feedback(device, port, feedback),
            _ => self.pfc.received(device, port, frame),
        }
    }

    fn timer(&mut self, device: &mut D, timer: u32) {
        let Some(own) = timer.checked_sub(self.pfc.timers() as u32) else {
            return self.pfc.timer(device, timer);
        };
        let i = (own / TIMERS) as usize;
        if own % TIMERS == 0 { self.slot_ends(device, i) } else { self.send(device, i) }
    }

    /// Whether a packet has tokens, which it then takes. A lossy one needs none: it has no reserved buffer.
    fn may_leave(&mut self, device: &mut D, port: u32, lane: u8, size: u32) -> bool {
        if !self.lossless[usize::from(lane)] {
            return true;
        }
        let granted = self.granted.get_mut(port as usize);
        let Some(Some(Granted { tokens: Some(tokens), .. })) = granted else { return true };
        let may = tokens.take(device.now(), lane, size);
        if !may {
            device.pause(port, lane);
        }
        may
    }

    fn link_failed(&mut self, device: &mut D, port: u32, lane: u8) {
        self.pfc.link_failed(device, port, lane);
        if let Some(i) = self.granter(port) {
            device.cancel(self.slot_timer(i));
            device.cancel(self.slot_timer(i) + 1);
        }
    }

    /// Starts again with nothing in flight: the downstream half sends its grants at once, and the upstream
    /// half waits until they can have arrived.
    fn link_recovered(&mut self, device: &mut D, port: u32, lane: u8, over: bool, settled: Time) {
        if let Some(i) = self.granter(port) {
            let granter = &mut self.granters[i];
            for group in granter.groups.iter_mut().filter(|group| group.lanes.contains(&lane)) {
                group.slots = Slots::silent(granter.params);
            }
            device.arm(self.slot_timer(i), device.now());
        } else if over {
            self.pfc.pause_upstream(device, port, lane);
        }
        let late = match self.granted.get_mut(port as usize) {
            Some(Some(Granted { tokens: Some(tokens), .. })) => {
                *tokens = Tokens::none(self.priorities.len());
                return;
            }
            Some(Some(_)) => self.processing + self.jitter,
            _ => 0,
        };
        let frame = serialisation(u64::from(PfcFrame::LENGTH), device.rate(port));
        self.pfc.hold_until(device, port, lane, settled + frame + late);
    }
}

#[cfg(test)]
mod tests {
    use super::super::notes::Notes;
    use super::super::pfc::Relay;
    use super::slots::{History, Repair};
    use super::*;

    /// Slots of 1 us at 100 Gbit/s, 12,500 B, and a margin of 2,500 B, 200 ns.
    const SLOTS: SlotParams = SlotParams {
        rate: 100_000_000_000,
        slot: 1_000_000,
        round_trip: 20_000_000,
        buffer: 1_000_000,
        repair_every: 1,
        unit: 1,
        margin: 2_500,
        counted: true,
        history: History::Grants,
        repair: Repair::Excess,
    };

    /// Port 0 has received a grant of 9,000 B at 500 ps.
    fn granted() -> (Bifrost, Notes) {
        let params = BifrostParams {
            pfc: PfcParams { quanta: 1_000, response_time: 0, relay: Relay::Accounts },
            ports: vec![None; 2],
            granted: vec![Some(SLOTS), None],
            lossless: vec![true],
            processing: 0,
            jitter: 0,
            seed: 1,
            tokens: Some(Leftover::Pooled),
        };
        let mut bifrost = Bifrost::new(&params, 2, &[3]);
        let mut device = Notes { now: 500, ..Notes::default() };
        let frame = FeedbackFrame { enabled: 8, whole: false, total: 9_000, each: [9_000; 8] };
        bifrost.on_feedback(&mut device, 0, &frame);
        (bifrost, device)
    }

    /// The peer has forgotten its grants. Without tokens nothing leaves, so no hold is needed.
    #[test]
    fn tokens_of_before_a_failure_are_gone_when_the_link_recovers() {
        let (mut bifrost, mut device) = granted();
        bifrost.link_failed(&mut device, 0, 0);
        device.log.clear();
        bifrost.link_recovered(&mut device, 0, 0, false, 700);
        assert_eq!(device.log, Vec::<String>::new());
        assert!(!bifrost.may_leave(&mut device, 0, 0, 1_000));
    }

    /// Tokens last a slot and the time of the margin, so that a frame that is a little late costs nothing.
    #[test]
    fn tokens_last_until_the_margin_has_passed() {
        for (at, may) in [(0, true), (1_199_999, true), (1_200_000, false)] {
            let (mut bifrost, mut device) = granted();
            device.now += at;
            assert_eq!(bifrost.may_leave(&mut device, 0, 0, 1_000), may, "after {at} ps");
        }
    }

    /// Slots of ports begin apart: port 0's with the run, port 32's half a slot earlier than port 0's next.
    #[test]
    fn the_slots_of_ports_begin_apart() {
        let mut ports = vec![None; 40];
        (ports[0], ports[32]) = (Some(SLOTS), Some(SLOTS));
        let params = BifrostParams {
            pfc: PfcParams { quanta: 1_000, response_time: 0, relay: Relay::Accounts },
            ports,
            granted: vec![None; 40],
            lossless: vec![true],
            processing: 0,
            jitter: 0,
            seed: 1,
            tokens: None,
        };
        let mut bifrost = Bifrost::new(&params, 40, &[3]);
        let mut device = Notes::default();
        for port in [0, 1, 32] {
            bifrost.begins(&mut device, port);
        }
        let [first, second] = [0, 1].map(|granter| bifrost.slot_timer(granter));
        assert_eq!(device.log, [format!("arm {first} 1000000"), format!("arm {second} 500000")]);
    }
}
