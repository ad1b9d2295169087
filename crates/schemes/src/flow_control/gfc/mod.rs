//! GFC, gentle flow control (Qian et al., SIGCOMM 2019): an ingress account does not stop its upstream, but lowers
//! its rate. No rate is 0, so nothing waits for ever: *hold and wait*, a condition of each deadlock, is missing. That
//! is the idea of the paper's abstract. Stages, maps, thresholds, proofs and frames are this project's reading; see
//! `docs/schemes/gfc.md`. This page has the buffer-based form, for Ethernet. [`time`] has the time-based one, for
//! InfiniBand.
//!
//! An account of (port, lane) stores q bytes, and has stages 0 to K with thresholds B_1 < B_2 < … < B_K. A link
//! has the rate C; stage k means the rate R_k = C / 2^k. Ingress half, for each (port, lane):
//!
//! ```text
//!            q ≥ B_{k+1}: send the stage k+1 (or the highest that q has reached)
//!   stage k ◄──────────────────────────────────────────────────────────────────► stage k+1
//!            q ≤ B_{k+1} − L: send the stage k (or the lowest so)
//! ```
//!
//! L is the largest packet. Without the difference of L a single packet at a threshold would send a frame
//! when it comes, and another when it goes.
//!
//! Egress half, for each (port, lane): a packet may begin a time of (bytes of the last one) / R_k after the
//! last one began. A frame with another stage changes this time at once, also for a packet that waits.
//!
//! *No packet is lost.* τ is the longest time from a crossing until the new rate is seen here, and H = C·τ the
//! bytes that a link carries meanwhile: those of [`pfc::headroom`]. Let t_k be the last time when q was below
//! B_k. After t_k + τ all that comes was sent at R_k or less. The packet that crosses B_k and those that follow
//! until then are at most R_{k−1}·τ + L (of k = 1: H + L) bytes. So with
//!
//! ```text
//! B_{k+1} − B_k ≥ H / 2^{k−1} + L
//! ```
//!
//! the account reaches B_{k+1} only after R_k has come into effect, and the same holds for the next stage. The
//! sum of the first terms is below 2·C·τ: without the bytes of whole packets, B_1 ≤ B_m − 2·C·τ. In stage K, at most R_K · t + 2·L + H /
//! 2^{K−1} bytes come in a time t. K is the first stage in which less than a packet passes in the longest time
//! of a run ([`LAST`]). So a receiver that has stopped reading, at whatever time, never makes its account
//! overflow in a run, and no rate is 0.
//!
//! *Turns.* A packet waits in its egress in a queue for its ingress, and these have turns
//! ([`Service::ByIngress`]): so an account whose rate is low gets its part of the port. In one queue for all
//! ([`Service::Fifo`]) each account has a part in proportion to its stored bytes. In a cycle, a flow that joins
//! and the flows that it meets then have equal parts only if their accounts store the same, and have the same
//! rate; but it needs half of theirs. So the only rate that lasts is 0, which all come nearer to.
//!
//! *Frames that are lost.* Only if the scenario has links that lose frames, an account repeats a stage above 0
//! after half of [`lifetime`], and a stage ends when no frame has come for that time, as a pause of 802.1Qbb.

pub mod frame;
pub mod keys;
pub mod report;
pub mod size;
pub mod time;

use super::keys::LAST;
use super::pfc;
use super::registry::FlowControl;
use super::seam::range;
use super::size::links::{Links, Report as SizeReport};
use super::{
    ControlFrame, Device, LinkFacts, Machine, Numbers, Parameters, QueueEntry, Queueing, Scheme, Seen, Traits,
};
use frame::{StageFrame, StoredFrame};
pub use keys::Service;
use report::Report;
use time::Map;
use xoff_kernel::time::{Time, serialisation};
use xoff_net::units::{Bytes, Span};
use xoff_outcome::report::{Facts, Records};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GfcParams {
    /// The different ladders of ports; empty in the time-based form.
    pub ladders: Vec<Ladder>,
    /// Their different maps; empty in the buffer-based form.
    pub maps: Vec<Map>,
    /// By port: its ladder or map. Ports after those listed (the inner ones of slow hosts) have none.
    pub of_port: Vec<u32>,
    /// By lane: whether it has a rate. On others every packet may leave, and a packet that does not fit is
    /// dropped.
    pub lanes: Vec<bool>,
    /// Time from the arrival of a frame until it takes effect.
    pub response_time: Time,
    pub service: Service,
    /// By port: its place at its device.
    pub places: Vec<u16>,
    /// Whether frames can be lost, so that stages are repeated and expire.
    pub repeats: bool,
    /// When the last stall or failure of the scenario ends; 0 without them.
    pub last_end: Time,
}

/// The stages of an ingress account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ladder {
    /// B_1 to B_K, in bytes, in ascending order.
    pub thresholds: Vec<u64>,
    /// Bytes that the account may store.
    pub buffer: u64,
    /// L: bytes of the largest packet.
    pub largest: u64,
}

impl Ladder {
    /// The ladder from B_1 on whose first step has half of `span` bytes, besides a packet; `span` is 2·C·τ at
    /// least.
    fn new(b1: u64, span: u64, buffer: u64, link: &LinkFacts) -> Self {
        let largest = link.largest.into();
        let steps = (1..stages(link)).scan(b1, |b, k| {
            *b = b.saturating_add(step(span, k, largest));
            Some(*b)
        });
        Self { thresholds: std::iter::once(b1).chain(steps).collect(), buffer, largest }
    }

    /// The stage of an account that was in `stage` and stores `q` bytes.
    fn stage(&self, mut stage: u8, q: u64) -> u8 {
        while self.thresholds.get(usize::from(stage)).is_some_and(|&b| q >= b) {
            stage += 1;
        }
        while stage > 0 && q <= self.thresholds[usize::from(stage) - 1].saturating_sub(self.largest) {
            stage -= 1;
        }
        stage
    }
}

/// B_{k+1} − B_k if all steps together have `span` bytes, besides a packet in each.
fn step(span: u64, k: u8, largest: u64) -> u64 {
    let part = u128::from(span).div_ceil(1u128 << k.min(127)) as u64;
    part.saturating_add(largest)
}

/// K: in the last stage a largest packet takes longer than any run.
pub fn stages(link: &LinkFacts) -> u8 {
    let packet = serialisation(link.largest.into(), link.rate).max(1);
    let fewest = (1..64).find(|&k| u128::from(packet) << k >= u128::from(LAST));
    fewest.expect("a picosecond, doubled 63 times, is longer than any run")
}

/// C·τ: bytes that a link carries from a crossing until the new rate is seen. A link layer that repairs frames makes
/// τ longer.
pub fn feedback(link: &LinkFacts, response_time: Time) -> u64 {
    pfc::headroom(link, response_time).total
}

/// Bytes that an account needs from B_1 on, if its steps have `span` bytes, besides a packet in each.
fn room(span: u64, link: &LinkFacts) -> u64 {
    let largest = link.largest.into();
    let steps = (1..=stages(link)).map(|k| step(span, k, largest));
    steps.fold(largest, u64::saturating_add)
}

/// Bytes that an account needs from B_1 on, at least.
pub fn least_room(link: &LinkFacts, response_time: Time) -> u64 {
    room(feedback(link, response_time).saturating_mul(2), link)
}

/// How long a stage lasts without a frame, where frames can be lost: 65,535 quanta of 512 bit times, as the
/// longest pause of 802.1Qbb.
pub fn lifetime(rate: u64) -> Time {
    serialisation(65_535 * 512 / 8, rate)
}

/// The time from the begin of a packet of `size` bytes until the next one may begin.
pub fn spacing(size: u32, rate: u64, stage: u8) -> Time {
    let time = u128::from(serialisation(size.into(), rate)) << stage.min(63);
    Time::try_from(time).unwrap_or(Time::MAX)
}

impl GfcParams {
    /// The map of a port, in the time-based form.
    fn map(&self, port: u32) -> Option<&Map> {
        if self.maps.is_empty() { None } else { Some(&self.maps[self.of_port[port as usize] as usize]) }
    }

    /// Ingress ports of a device, at most.
    fn queues(&self) -> u16 {
        self.places.iter().max().map_or(1, |place| place + 1)
    }
}

impl Parameters for GfcParams {
    fn traits(&self) -> Traits {
        Traits {
            response_time: self.response_time,
            // After a stall, a cycle of queues goes on at rates that are low because of the stall. A rate is so
            // low only if nothing has drained for a quarter of a packet's time at that rate.
            patience: self.last_end.saturating_mul(4).min(LAST),
            asks_to_leave: true,
            // A stage may change with each packet.
            reports_storage: self.maps.is_empty(),
            slows: true,
            queueing: match self.service {
                Service::ByIngress => {
                    let queues = self.queues();
                    // The last one of a host is for its own queue pairs, the one before for its ACKs.
                    let numbers = Numbers { switch: queues, relayed: (0, queues + 1), own: (queues + 1, 1) };
                    Queueing::Numbered { numbers, acks: true, pulls: false, lowest: false }
                }
                Service::Fifo => Queueing::PerLane,
            },
            ..Traits::NONE
        }
    }

    fn has_thresholds(&self) -> bool {
        false
    }

    fn describe(&self, _: &Seen<'_>) -> String {
        let show = |bytes: &u64| Bytes(*bytes).to_string();
        let of = |get: fn(&Ladder) -> u64| range(&self.ladders.iter().map(get).collect::<Vec<_>>(), show);
        let of_map = |get: fn(&Map) -> u64| range(&self.maps.iter().map(get).collect::<Vec<_>>(), show);
        let counts: Vec<usize> = self.ladders.iter().map(|l| l.thresholds.len()).collect();
        let (rates, buffer) = match self.maps.is_empty() {
            true => (
                format!("B_1 {}, {} stages", of(|l| l.thresholds[0]), range(&counts, usize::to_string)),
                of(|l| l.buffer),
            ),
            false => {
                let periods: Vec<Time> = self.maps.iter().map(|map| map.period).collect();
                let period = range(&periods, |&t| Span(t).to_string());
                (format!("feedback every {period}, B_0 {}", of_map(|m| m.b0)), of_map(|m| m.buffer))
            }
        };
        format!(
            "({rates}, buffer of a port and priority {buffer}, {}, response time {})",
            match self.service {
                Service::ByIngress => "egress queues by ingress port",
                Service::Fifo => "one egress queue for all ingress ports",
            },
            Span(self.response_time)
        )
    }

    fn compare(&self, links: &Links<'_>, report: &mut SizeReport) -> bool {
        size::compare(links, self, report);
        true
    }

    fn start(&self, _ports: usize, priorities: &[u8]) -> FlowControl {
        FlowControl::Gfc(Gfc::new(self, priorities))
    }
}

/// Both ends of a (port, lane).
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    /// Ingress half: the stage of the last frame, in the buffer-based form.
    said: u8,
    /// Egress half: the stage in effect, or the stored bytes that give the rate.
    level: u32,
    /// The last packet that left: its begin, and its bytes. In the time-based form the bytes that are owed, since the
    /// last frame.
    begun: Time,
    size: u32,
    /// Since when a packet waits for the rate.
    held: Option<Time>,
}

#[derive(Clone, Debug)]
pub struct Gfc {
    params: GfcParams,
    priorities: Vec<u8>,
    /// By port and lane.
    ends: Vec<Ends>,
    /// Ingress ports of a device, at most.
    queues: u16,
    report: Report,
}

/// The entries of a frame, by priority.
fn by_priority(entries: impl Iterator<Item = (u8, u32)>) -> [Option<u32>; 8] {
    let mut levels = [None; 8];
    entries.for_each(|(priority, level)| levels[usize::from(priority)] = Some(level));
    levels
}

#[derive(Clone, Copy)]
enum Role {
    /// Egress: the next packet may begin.
    Pace,
    /// Egress: the stage has ended.
    Expiry,
    /// Ingress: time to repeat the stage, or to name the stored bytes.
    Repeat,
}

const ROLES: u32 = 3;

impl Gfc {
    pub(super) fn new(params: &GfcParams, priorities: &[u8]) -> Self {
        let ends = vec![Ends::default(); params.of_port.len() * priorities.len()];
        let (params, queues) = (params.clone(), params.queues());
        Self { params, priorities: priorities.to_vec(), ends, queues, report: Report::default() }
    }

    /// The place of (`port`, `lane`), if it has stages.
    fn place(&self, port: u32, lane: u8) -> Option<usize> {
        let governed = (port as usize) < self.params.of_port.len() && self.params.lanes[usize::from(lane)];
        governed.then(|| port as usize * self.priorities.len() + usize::from(lane))
    }

    fn timer_of(place: usize, role: Role) -> u32 {
        place as u32 * ROLES + role as u32
    }

    /// The stage of the account now.
    fn stage(&self, device: &impl Device, port: u32, lane: u8, from: u8) -> u8 {
        let ladder = &self.params.ladders[self.params.of_port[port as usize] as usize];
        ladder.stage(from, device.stored(port, lane))
    }

    /// Ingress half, time-based: names the stored bytes, and arms the timer of the next frame.
    fn name_stored(&mut self, device: &mut impl Device, port: u32, lane: u8, place: usize) {
        let Some(map) = self.params.map(port) else { return };
        // The buffer has fewer bytes.
        let stored = u32::try_from(device.stored(port, lane)).unwrap_or(u32::MAX);
        self.report.frames += 1;
        self.report.deepest = self.report.deepest.max(map.halvings(stored.into()));
        device.send_control(port, StoredFrame::single(self.priorities[usize::from(lane)], stored).into());
        device.arm(Self::timer_of(place, Role::Repeat), device.now() + map.period);
    }

    /// Ingress half: the stored bytes have changed.
    fn settle(&mut self, device: &mut impl Device, port: u32, lane: u8) {
        let Some(place) = self.place(port, lane).filter(|_| self.params.maps.is_empty()) else { return };
        let said = self.ends[place].said;
        let stage = self.stage(device, port, lane, said);
        if stage != said {
            self.send(device, port, lane, place, stage);
        }
    }

    fn send(&mut self, device: &mut impl Device, port: u32, lane: u8, place: usize, stage: u8) {
        self.ends[place].said = stage;
        self.report.frames += 1;
        self.report.deepest = self.report.deepest.max(stage);
        device.send_control(port, StageFrame::single(self.priorities[usize::from(lane)], stage).into());
        if !self.params.repeats {
            return;
        }
        let timer = Self::timer_of(place, Role::Repeat);
        if stage > 0 {
            device.arm(timer, device.now() + lifetime(device.rate(port)) / 2);
        } else {
            device.cancel(timer);
        }
    }

    /// When the next packet may begin.
    fn next(&self, device: &impl Device, port: u32, place: usize) -> Time {
        let Ends { level, begun, size, .. } = self.ends[place];
        match self.params.map(port) {
            Some(map) => begun.saturating_add(map.time(size, device.rate(port), level.into())),
            None if level == 0 => 0,
            // A stage has 8 bits.
            None => begun.saturating_add(spacing(size, device.rate(port), level as u8)),
        }
    }

    /// Egress half: the packet that waits may begin at `at`, and not earlier.
    fn wait(&self, device: &mut impl Device, place: usize, at: Time) {
        let timer = Self::timer_of(place, Role::Pace);
        // No run is that long.
        if at <= LAST {
            device.arm(timer, at);
        } else {
            device.cancel(timer);
        }
    }

    /// Egress half: the rate has changed.
    fn change(&mut self, device: &mut impl Device, port: u32, lane: u8, place: usize, level: u32) {
        let now = device.now();
        let ends = &mut self.ends[place];
        if let Some(map) = self.params.map(port) {
            let whole = map.time(ends.size, device.rate(port), ends.level.into());
            let passed = match now - ends.begun {
                elapsed if elapsed >= whole => ends.size,
                // Less than the size.
                elapsed => (u128::from(ends.size) * u128::from(elapsed) / u128::from(whole)) as u32,
            };
            (ends.begun, ends.size) = (now, ends.size - passed);
        }
        ends.level = level;
        if self.ends[place].held.is_none() {
            return;
        }
        let next = self.next(device, port, place);
        if next <= now {
            self.go_on(device, port, lane, place);
        } else {
            self.wait(device, place, next);
        }
    }

    /// Egress half: the packet that waits may begin now.
    fn go_on(&mut self, device: &mut impl Device, port: u32, lane: u8, place: usize) {
        device.cancel(Self::timer_of(place, Role::Pace));
        if let Some(since) = self.ends[place].held.take() {
            self.report.count_wait(device.now() - since);
        }
        device.resume(port, lane);
    }
}

impl Machine for Gfc {
    const FACTS: Option<&'static Facts> = Some(&report::FACTS);

    fn timers(&self) -> usize {
        self.ends.len() * ROLES as usize
    }

    fn records(&self) -> Records {
        Records::of(self.report)
    }
}

impl<D: Device> Scheme<D> for Gfc {
    /// The time-based form sends its first frames at phases that are spread over the period.
    fn begins(&mut self, device: &mut D, port: u32) {
        for lane in 0..self.priorities.len() as u8 {
            let (Some(place), Some(map)) = (self.place(port, lane), self.params.map(port)) else { continue };
            // The fractions of multiples of the golden ratio lie evenly.
            let turn = (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let phase = (u128::from(map.period) * u128::from(turn)) >> 32;
            device.arm(Self::timer_of(place, Role::Repeat), device.now() + phase as Time);
        }
    }

    fn stored(&mut self, device: &mut D, ingress: u32, lane: u8, _size: u32) {
        self.settle(device, ingress, lane);
    }

    fn freed(&mut self, device: &mut D, ingress: u32, _egress: u32, lane: u8, _size: u32) {
        self.settle(device, ingress, lane);
    }

    fn classify(&mut self, _: &mut D, packet: &mut QueueEntry) -> u16 {
        let queues = self.queues;
        match packet.ingress {
            _ if packet.own => queues + 1,
            Some(port) => self.params.places.get(port as usize).copied().unwrap_or(0),
            None => queues,
        }
    }

    fn may_leave(&mut self, device: &mut D, port: u32, lane: u8, size: u32) -> bool {
        let Some(place) = self.place(port, lane) else { return true };
        let (now, next) = (device.now(), self.next(device, port, place));
        if next <= now {
            let ends = &mut self.ends[place];
            (ends.begun, ends.size) = (now, size);
            return true;
        }
        self.ends[place].held = Some(now);
        device.hold(port, lane);
        self.wait(device, place, next);
        false
    }

    fn received(&mut self, device: &mut D, port: u32, frame: &ControlFrame) {
        let levels: [Option<u32>; 8] = match frame {
            ControlFrame::Stages(frame) if self.params.maps.is_empty() => {
                by_priority(frame.entries().map(|(priority, stage)| (priority, stage.into())))
            }
            ControlFrame::Stored(frame) if !self.params.maps.is_empty() => by_priority(frame.entries()),
            _ => return,
        };
        for (priority, level) in (0..8u8).zip(levels).filter_map(|(p, level)| Some((p, level?))) {
            let Some(lane) = self.priorities.iter().position(|&p| p == priority) else { continue };
            let lane = lane as u8;
            let Some(place) = self.place(port, lane) else { continue };
            if self.params.repeats && self.params.maps.is_empty() {
                let timer = Self::timer_of(place, Role::Expiry);
                match level {
                    0 => device.cancel(timer),
                    _ => device.arm(timer, device.now() + lifetime(device.rate(port))),
                }
            }
            self.change(device, port, lane, place, level);
        }
    }

    fn timer(&mut self, device: &mut D, timer: u32) {
        let (place, lanes) = ((timer / ROLES) as usize, self.priorities.len());
        let (port, lane) = ((place / lanes) as u32, (place % lanes) as u8);
        match timer % ROLES {
            pace if pace == Role::Pace as u32 => self.go_on(device, port, lane, place),
            expiry if expiry == Role::Expiry as u32 => self.change(device, port, lane, place, 0),
            _ if !self.params.maps.is_empty() => self.name_stored(device, port, lane, place),
            _ => {
                self.report.repeats += 1;
                self.send(device, port, lane, place, self.ends[place].said);
            }
        }
    }

    /// Both halves clear their state: the port has no neighbour that it slows, and none that slows it.
    fn link_failed(&mut self, device: &mut D, port: u32, lane: u8) {
        let Some(place) = self.place(port, lane) else { return };
        device.cancel(Self::timer_of(place, Role::Expiry));
        device.cancel(Self::timer_of(place, Role::Repeat));
        (self.ends[place].said, self.ends[place].level) = (0, 0);
        self.go_on(device, port, lane, place);
    }

    /// The account names its stage or its bytes, and nothing is sent until the neighbour can have done the same.
    fn link_recovered(&mut self, device: &mut D, port: u32, lane: u8, _over: bool, settled: Time) {
        let Some(place) = self.place(port, lane) else { return };
        self.ends[place] = Ends { held: Some(device.now()), ..Ends::default() };
        device.cancel(Self::timer_of(place, Role::Repeat));
        if self.params.maps.is_empty() {
            let stage = self.stage(device, port, lane, 0);
            if stage > 0 {
                self.send(device, port, lane, place, stage);
            }
        } else {
            self.name_stored(device, port, lane, place);
        }
        device.hold(port, lane);
        let frame = serialisation(StageFrame::LENGTH.into(), device.rate(port));
        device.arm(Self::timer_of(place, Role::Pace), settled + frame);
    }
}

#[cfg(test)]
mod tests;
